"""PrivCI's paid part: measure one-ways, pool, select a constrained tree, measure its edges.

Steps 1 to 5 of arXiv 2603.12112.  Everything here sees noisy answers only; the loop alternates
the grant's primitives with pure functions, and its candidate sets follow from public roles and
earlier outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from core.errors import BudgetError, Cancelled, RolesError
from core.privci.compress import compress, compressed_one_ways, project_on_simplex
from core.privci.constraint import ConstraintFilter
from core.privci.structures import exact_forest, growth, record, rounds
from core.protocols import MarginalGrant, Progress
from core.releases import (
    NoisyMarginal,
    NoisyScores,
    PairReference,
    Recoding,
    Relation,
    SelectionStep,
    TreeRelease,
    estimated_total,
)
from core.roles import Roles
from core.schema import Schema

Split = tuple[Fraction, Fraction, Fraction]

THIRDS: Split = (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
#: Flag of a release whose ``privci-exact`` tree came from local search.
HEURISTIC = "heuristic structure: local search, not proven to be the best tree"


def normalised_split(split: Sequence[Fraction | float | str]) -> Split:
    """Three positive shares, scaled as fractions so that they sum to exactly one.

    >>> normalised_split((1, "0.5", 0.5))
    (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))

    Raises
    ------
    BudgetError
        Not three positive finite numbers.
    """
    words = "a split needs three positive numbers: one-way, selection and two-way shares"
    if isinstance(split, str) or len(split) != 3:
        raise BudgetError(words)
    try:
        # A float means the decimal that it prints as: 0.1 is one tenth.
        parts = [Fraction(str(part)) for part in split]
    except (ValueError, ZeroDivisionError) as error:
        raise BudgetError(words) from error
    if any(part <= 0 for part in parts):
        raise BudgetError(words)
    total = sum(parts, Fraction(0))
    return parts[0] / total, parts[1] / total, parts[2] / total


def modelled_schema(schema: Schema, roles: Roles) -> Schema:
    """The columns that a release models: neither excluded by kind nor ignored by role.

    Raises
    ------
    RolesError
        Roles do not fit the schema, or nothing is left.
    """
    names = tuple(column.name for column in schema.modelled)
    roles.check(names)
    kept = [name for name in names if name not in roles.ignored]
    if not kept:
        raise RolesError(
            "no column is left to model: give at least one a role other than ignore, and a kind "
            "other than identifier or text"
        )
    return schema.select(kept)


def release_tree(
    grant: MarginalGrant,
    schema: Schema,
    roles: Roles,
    *,
    structure: str = "privci",
    split: Sequence[Fraction | float | str] = THIRDS,
    progress: Progress | None = None,
) -> TreeRelease:
    """Measure and select a dependency tree that keeps every constraint.

    Parameters
    ----------
    grant
        Noisy answers about one table; its whole rho is split over the three stages.
    schema
        Public declarations; identifiers, free text and ignored columns are left out.
    roles
        Roles, proxies and constraints.
    structure
        ``mst``, ``privci``, ``privci-exact`` or ``prefair``.
    split
        Shares of one-way, selection and two-way measurements; scaled to sum to one.
    progress
        Called as (stage, done, total, detail) with stage ``one-way``, ``selection`` (detail: the
        :class:`SelectionStep`) or ``two-way``; may raise :class:`Cancelled`.

    Returns
    -------
    TreeRelease
        After a cancel with something paid: what was measured up to then, ``partial=True``.  Its
        edges may then lack two-way tables.

    Raises
    ------
    PlanError, BudgetError, RolesError
        Unknown structure, impossible split, roles that do not fit; nothing was paid.
    Cancelled
        The cancel came before anything was paid.

    Notes
    -----
    Costs at most ``grant.rho``.  Selection takes ``rho_2 / rounds`` a round, with the number of
    rounds known from public roles; what an earlier forest, a single column or a cancel leaves
    over is forfeited.
    """
    shares = normalised_split(split)
    used = modelled_schema(schema, roles)
    run = _Run(grant, used, roles, structure=structure, split=shares, progress=progress)
    run.report("one-way", 0, 1)
    try:
        run.measure_one_way()
        run.select()
        run.measure_two_way()
    except Cancelled:
        if not run.one_way:
            raise
    return run.release()


class _Run:
    """State of one release while it grows; every attribute holds noisy or public facts."""

    def __init__(
        self,
        grant: MarginalGrant,
        schema: Schema,
        roles: Roles,
        *,
        structure: str,
        split: Split,
        progress: Progress | None,
    ) -> None:
        self.grant, self.schema, self.roles = grant, schema, roles
        self.structure, self.split, self.progress = structure, split, progress
        self.names = tuple(sorted(schema.names))
        self.rows: ConstraintFilter = growth(structure, self.names, roles.constraints)
        self.forbidden = self.rows.forbidden()
        self.rounds = rounds(structure, self.names, roles.constraints)
        first, second, _ = split
        self.rho = (grant.rho * first, grant.rho * second)
        self.one_way: tuple[NoisyMarginal, ...] = ()
        self.two_way: tuple[NoisyMarginal, ...] = ()
        self.steps: list[SelectionStep] = []
        self.scores: NoisyScores | None = None
        self.recoding = Recoding()
        self.public_rows: int | None = None
        self.flags: list[str] = []
        self.finished = False

    def report(self, stage: str, done: int, total: int, detail: object = None) -> None:
        """Tell whoever watches; this may raise ``Cancelled``."""
        if self.progress is not None:
            self.progress(stage, done, total, detail)

    def measure_one_way(self) -> None:
        """Steps 1 and 2: all one-way tables jointly, then pooling."""
        self.one_way = tuple(self.grant.counts([(name,) for name in self.names], self.rho[0]))
        self.recoding = compress(self.one_way, self.schema)
        where = self.grant.provenance()
        if where.relation is Relation.REPLACE_ONE and where.unit.rows == 1:
            # Public under this relation: it costs nothing, and is sharper than any estimate.
            self.public_rows = int(self.grant.row_count(Fraction(0)).values)
        self.report("one-way", 1, 1, self.recoding)

    def reference(self) -> PairReference:
        """Step 3: the frozen independence model, from released values only."""
        known = self.public_rows
        total = max(1.0, estimated_total(self.one_way) if known is None else float(known))
        shares = {
            marginal.clique[0]: project_on_simplex(marginal.values, total, marginal.deviations)
            / total
            for marginal in compressed_one_ways(self.one_way, self.recoding, self.schema)
        }
        return PairReference(total, shares, self.recoding)

    def select(self) -> None:
        """Step 4: the edges, by rounds or from one joint draw."""
        if not self.rounds:
            return
        reference = self.reference()
        if self.structure == "privci-exact":
            self._select_jointly(reference)
        else:
            self._select_by_rounds(reference)

    def _select_by_rounds(self, reference: PairReference) -> None:
        for index in range(self.rounds):
            candidates = self.rows.candidates()
            if not candidates:
                break
            pair = self.grant.select_pair(candidates, reference, self.rho[1] / self.rounds)
            self.steps.append(record(index, pair, self.rows))
            self.report("selection", index + 1, self.rounds, self.steps[-1])

    def _select_jointly(self, reference: PairReference) -> None:
        # Pairs that the roles rule out are public knowledge: noise on them would buy nothing.
        pairs = self.rows.candidates()
        self.scores = self.grant.score_pairs(pairs, reference, self.rho[1])
        scores = dict(zip(self.scores.pairs, self.scores.values.tolist(), strict=True))
        forest = exact_forest(scores, self.names, self.roles.constraints)
        if forest.method == "heuristic":
            self.flags.append(HEURISTIC)
        for index, pair in enumerate(forest.edges):
            self.steps.append(record(index, pair, self.rows))
        self.report("selection", 1, 1, self.steps[-1])

    def measure_two_way(self) -> None:
        """Step 5: the chosen pairs on compressed cells, with all that is left for them."""
        if self.steps:
            edges = [step.chosen for step in self.steps]
            rho = self.grant.rho - sum(self.rho, Fraction(0))
            self.two_way = tuple(self.grant.counts(edges, rho, recoding=self.recoding))
        self.finished = True
        self.report("two-way", 1, 1)

    def release(self) -> TreeRelease:
        """What has been measured so far."""
        return TreeRelease(
            provenance=self.grant.provenance(flags=self.flags),
            structure=self.structure,
            schema=self.schema,
            roles=self.roles,
            split=self.split,
            forbidden=self.forbidden,
            steps=tuple(self.steps),
            one_way=self.one_way,
            recoding=self.recoding,
            two_way=self.two_way,
            scores=self.scores,
            partial=not self.finished,
            public_rows=self.public_rows,
        )
