"""What is audited: every primitive of a grant and every whole release, each on its worst pair.

The canary is chosen so that every answer changes by as much as its sensitivity allows, as far as
one row can do that to all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np

from core.moments import EntryReference, MomentFrame, MomentRequest
from core.pace.frames import COUNT_SHARE, measure_means, measure_rows
from core.pace.release import METHODS
from core.pace.select import release_covariance
from core.private.table import CodedTable
from core.privci.select import release_tree
from core.privci.structures import STRUCTURES
from core.pumba.measure import release_statistics
from core.pumba.requests import AnalysisSpec
from core.releases import PairReference, Relation, Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, Missing, Schema
from tests.core.private.tables import categorical, coded
from tests.privacy.audit_ledger import LedgerScene
from tests.privacy.audit_scenes import Scene

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
#: Parts of the report.
PRIMITIVES, TREES, ANALYSES, COVARIANCES, LEDGERS = (
    "Primitives of a grant",
    "Synthetic data (PrivCI)",
    "Analyses (PUMBA)",
    "Covariances (PACE)",
    "Through the ledger",
)

# -- tables of labels ----------------------------------------------------------------------

LABELS = dict.fromkeys("abcd", 5)
#: Clumps in which all columns agree: cells of two equal labels lie above independence, all others
#: below it.
CLUMPS = [(cell,) * 4 for cell in range(5) for _ in range(15)]
#: This row raises the scores of some pairs and lowers those of others.
TORN = (0, 0, 1, 1)
#: The second in place of the first does so twice over: out of a low cell into a high one, and back.
TORN_FROM, TORN_TO = (0, 1, 0, 0), (2, 2, 3, 3)
#: From a row in high cells alone to one in low cells alone: every score falls by 2.
HIGH, LOW = (0, 0, 0, 0), (1, 2, 3, 4)

ROLES = Roles(
    {"a": Role.PROTECTED, "b": Role.OUTCOME, "c": Role.ADMISSIBLE, "d": Role.INADMISSIBLE}
)


def labelled(*rows: tuple[int, ...], base: Sequence[tuple[int, ...]] = CLUMPS) -> CodedTable:
    """The clumps and these rows."""
    codes = np.array([*base, *rows], dtype=np.int64).reshape(-1, len(LABELS))
    return coded(LABELS, {name: codes[:, place] for place, name in enumerate(LABELS)})


def label_pair(relation: Relation, *, torn: bool = False) -> tuple[CodedTable, CodedTable]:
    """Neighbouring tables of labels."""
    if relation is ADD:
        return labelled(), labelled(TORN)
    return (labelled(TORN_FROM), labelled(TORN_TO)) if torn else (labelled(HIGH), labelled(LOW))


def independence() -> PairReference:
    """A frozen reference, in which few have c = 4."""
    shares = {name: np.full(5, 1 / 5) for name in LABELS}
    return PairReference(75.0, {**shares, "c": np.array([29, 29, 29, 29, 4]) / 120})


PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]

# -- tables of numbers ---------------------------------------------------------------------

#: The group first, then numbers within -1 and 1.
NUMBERS = ("x", "y", "z")
NUMERIC = Schema(
    (
        categorical("group", 3),
        *(
            Column(
                name,
                Kind.REAL,
                lower=-1,
                upper=1,
                bins=2,
                missing=Missing.CONSTANT,
                missing_constant=0.0,
            )
            for name in NUMBERS
        ),
    )
)
#: Everybody at the lower end: about the mean, which is there, only the canary counts.
LOWEST = (0, -1.0, -1.0, -1.0)
#: At the upper end, and beyond it: what lies there must count as the end itself.
BEYOND = (1, 40.0, 40.0, 40.0)
#: In the middle of all bounds.
MIDDLE = (0, 0.0, 0.0, 0.0)
#: Half of the rows at either end, so that the signs of all sums of products are known.
ENDS = ((0, 1.0, 1.0, 1.0), (0, -1.0, -1.0, -1.0))


def numeric(base: Sequence[tuple], *rows: tuple) -> CodedTable:
    """Twenty times the base, and these rows once."""
    every = [*(list(base) * 20), *rows]
    groups = np.array([row[0] for row in every], dtype=np.uint8)
    numbers = {
        name: np.array([row[place] for row in every], dtype=np.float64)
        for place, name in enumerate(NUMBERS, 1)
    }
    codes = {name: (column >= 0).astype(np.uint8) for name, column in numbers.items()}
    return CodedTable(NUMERIC, {"group": groups, **codes}, numbers, len(every))


def number_pair(relation: Relation, *, instead: tuple = LOWEST, canary: tuple = BEYOND):
    """Neighbouring tables of numbers; ``instead`` is the row that a canary replaces."""
    if relation is ADD:
        return numeric([LOWEST]), numeric([LOWEST], canary)
    return numeric([LOWEST], instead), numeric([LOWEST], canary)


def frame(clip: Fraction | None = None) -> MomentFrame:
    """All numbers within their bounds."""
    return MomentFrame.from_bounds(NUMERIC, NUMBERS, clip_squared=clip)


# -- primitives ----------------------------------------------------------------------------


def primitives(relation: Relation) -> Iterator[Scene]:
    """Every noisy answer of a grant on its own."""
    scene = partial(Scene, group=PRIMITIVES, relation=relation, fixed=True)
    yield from _count_primitives(scene, relation)
    yield from _moment_primitives(scene, relation)
    yield from _choices(partial(scene, gaussian=False), relation)


def _count_primitives(scene: Callable[..., Scene], relation: Relation) -> Iterator[Scene]:
    one_way, labels = [(name,) for name in LABELS], label_pair(relation)
    yield scene("counts", run=lambda g: g.counts(one_way, g.rho), tables=labels)
    cliques = [("a", "b"), ("b", "c", "d")]
    yield scene("counts of pairs", run=lambda g: g.counts(cliques, g.rho), tables=labels)
    if relation is ADD:  # under replace_one it is public, and units have one row
        yield scene("row_count", run=lambda g: g.row_count(g.rho), tables=labels)
        yield scene(
            "counts, 3 rows a person",
            run=lambda g: g.counts(one_way, g.rho),
            tables=(labelled(), labelled(TORN, TORN, TORN)),
            unit=Unit(3),
        )
    yield scene(
        "score_pairs", run=lambda g: g.score_pairs(PAIRS, independence(), g.rho), tables=labels
    )


def _moment_primitives(scene: Callable[..., Scene], relation: Relation) -> Iterator[Scene]:
    opposite = number_pair(relation)
    # Replaced by its mirror image in one column, a row changes two products by 2 and no square.
    mirrored = number_pair(relation, instead=(0, 1.0, 1.0, -1.0))
    # Clipped, a row has less to change; an edge of the box against its corner does most.
    edge = number_pair(relation, instead=(0, 1.0, -1.0, 0.0))
    sums = MomentRequest(frame(), tuple((name,) for name in NUMBERS))
    yield scene("moments: sums", run=lambda g: g.moments(sums, g.rho), tables=opposite)
    triangle = MomentRequest.triangle(frame())
    effort = 2 if relation is REPLACE else 1  # where bounds are not attained
    yield scene(
        "moments: products",
        run=lambda g: g.moments(triangle, g.rho),
        tables=mirrored,
        effort=effort,
    )
    clipped = MomentRequest.triangle(frame(Fraction(2)))
    yield scene(
        "moments: clipped rows",
        run=lambda g: g.moments(clipped, g.rho),
        tables=edge,
        effort=effort,
    )
    complete = MomentFrame(frame().scales, complete=True)
    high = MomentRequest(complete, (("x", "x", "y"), ("x",) * 4), mixed=True)
    yield scene(
        "moments: degree 3 and 4",
        run=lambda g: g.moments(high, g.rho),
        tables=opposite,
        effort=effort,
    )


def _choices(scene: Callable[..., Scene], relation: Relation) -> Iterator[Scene]:
    """Choices between what the canary raises and what it lowers, both tables as far from even."""
    two, tables = [("a", "b"), ("a", "c")], label_pair(relation, torn=True)
    if relation is ADD:  # this row lowers a, b by 1, and leaves a, c where it is
        tables = labelled((0, 1, 4, 0)), labelled((0, 1, 4, 0), TORN)
    yield scene(
        "select_pair",
        run=lambda g: g.select_pair(two, independence(), g.rho),
        tables=tables,
    )
    up, down = (1, 1.0, 1.0, -1.0), (1, 1.0, -1.0, 1.0)
    before = [] if relation is ADD else [down]
    entries, few = [("x", "y"), ("x", "z")], np.zeros((3, 3))
    few[0, 1] = few[1, 0] = relation is ADD
    yield scene(
        "select_entry",
        run=lambda g: g.select_entry(entries, EntryReference(frame(), few), g.rho),
        tables=(numeric(ENDS, *before), numeric(ENDS, up)),
    )
    yield _wide_choice(scene, relation)
    yield scene(
        "clip_norm",
        run=lambda g: g.clip_norm(wide_frame(), [Fraction(1), Fraction(24)], [0.0, 11.5], g.rho),
        tables=(wide(*[np.zeros(24)] * (relation is REPLACE)), wide(np.ones(24))),
    )


def _wide_choice(scene: Callable[..., Scene], relation: Relation) -> Scene:
    """Enough entries to be drawn by blocks."""
    row = np.r_[np.ones(12), -np.ones(12)]
    before = [] if relation is ADD else [np.r_[row[:6], -row[6:12], row[12:]]]
    change = np.outer(row, row) - sum(np.outer(other, other) for other in before)
    # Entries that stay where they are look settled; the few that go up, no rarer than others.
    raised = 1.0 if relation is ADD else -0.7
    sums = np.select([change == 0, change > 0], [4.0, raised], 0.0)
    return scene(
        "select_entry of 300",
        run=lambda g: g.select_entry(None, EntryReference(wide_frame(), sums), g.rho),
        tables=(wide(*before, ends=True), wide(row, ends=True)),
    )


@cache
def wide_schema() -> Schema:
    """So many columns that a selection is drawn by blocks."""
    return Schema(
        tuple(Column(f"v{place:02}", Kind.REAL, lower=-1, upper=1, bins=2) for place in range(24))
    )


def wide_frame() -> MomentFrame:
    """All of them within their bounds."""
    return MomentFrame.from_bounds(wide_schema(), wide_schema().names)


def wide(*rows: np.ndarray, ends: bool = False) -> CodedTable:
    """These rows, and two at either end of all bounds (or in the middle of them)."""
    every = np.vstack([*([np.ones(24), -np.ones(24)] * 2 if ends else [np.zeros(24)]), *rows])
    numbers = {name: every[:, place].copy() for place, name in enumerate(wide_schema().names)}
    codes = {name: (column >= 0).astype(np.uint8) for name, column in numbers.items()}
    return CodedTable(wide_schema(), codes, numbers, len(every))


# -- whole releases ------------------------------------------------------------------------


def trees(relation: Relation) -> Iterator[Scene]:
    """Synthetic data: every structure."""
    for structure in STRUCTURES:
        exact = structure == "privci-exact"
        tables = label_pair(relation, torn=not exact)
        run = partial(release_tree, schema=tables[0].schema, roles=ROLES, structure=structure)
        yield Scene(structure, TREES, run, tables, relation, gaussian=exact)


SPECS = (
    AnalysisSpec("table", "table of two columns", variables=("a", "b")),
    AnalysisSpec("proportion", "proportions by group", outcome="a", by="b"),
    AnalysisSpec("mean", "mean", outcome="x"),
    AnalysisSpec("mean", "mean, fourth moments", outcome="x", moments=4),
    AnalysisSpec("mean", "means by group", outcome="x", by="group"),
    AnalysisSpec("difference", "difference of means", outcome="x", by="group"),
    AnalysisSpec("regression", "regression", outcome="x", predictors=("y", "z")),
    AnalysisSpec("regression", "regression, groups", outcome="x", predictors=("group",)),
    AnalysisSpec("regression", "regression, robust", outcome="x", predictors=("y",), robust=True),
    AnalysisSpec("correlation", "correlations", variables=NUMBERS),
)


#: Pairs of rows under ``replace_one`` that do more than opposite corners: from and to.
TURNED = {
    "mean, fourth moments": ((0, -0.5, -0.5, -0.5), BEYOND),
    "regression": (LOWEST, (1, 40.0, 40.0, -1.0)),
    "regression, robust": (LOWEST, (1, 40.0, -1.0, -1.0)),
    "correlations": (LOWEST, (1, 40.0, 40.0, -1.0)),
}
#: Where bounds of joint sums are not attained, effects are smaller and need more runs.
LOOSER = {"mean, fourth moments", "regression, groups", "regression, robust"}


def analyses(relation: Relation) -> Iterator[Scene]:
    """Noisy statistics for posteriors."""
    for spec in SPECS:
        if spec.counts:
            tables = label_pair(relation)
        elif relation is ADD:
            tables = number_pair(relation)
        else:
            instead, canary = TURNED.get(spec.name, (LOWEST, BEYOND))
            tables = number_pair(relation, instead=instead, canary=canary)
        yield Scene(
            spec.name,
            ANALYSES,
            partial(release_statistics, schema=tables[0].schema, spec=spec),
            tables,
            relation,
            fixed=True,
            effort=2 if relation is REPLACE and spec.name in LOOSER else 1,
        )


#: Methods that choose a clip or entries by the exponential mechanism.
CHOOSING = {"pace_auto", "pace", "ssp_clip_sure", "adaptive_cov"}


def covariances(relation: Relation) -> Iterator[Scene]:
    """Row count, means, second moments: every method."""
    scene = partial(Scene, group=COVARIANCES, tables=number_pair(relation), relation=relation)
    yield scene("rows and means", run=_rows_and_means)
    for method in METHODS:
        yield scene(
            method,
            run=partial(release_covariance, schema=NUMERIC, columns=NUMBERS, method=method),
            gaussian=method not in CHOOSING,
            effort=4 if method == "ssp" and relation is REPLACE else 1,
        )


def _rows_and_means(grant):
    schema = NUMERIC.select(NUMBERS)
    rows = measure_rows(grant, schema, grant.rho * COUNT_SHARE, None)
    means = measure_means(grant, schema, rows, grant.remaining)
    return rows, means


def ledgers(relation: Relation) -> Iterator[LedgerScene]:
    """What the ledger says that all requests to one population cost."""
    first, second = label_pair(relation)
    scene = partial(LedgerScene, group=LEDGERS, relation=relation)
    yield scene(
        "one request, three times",
        requests=(("same", 0),) * 3,
        versions=((first, second),),
    )
    yield scene(
        "two versions of a table",
        requests=(("old", 0), ("new", 1)),
        versions=((first, first), (first, second)),
    )


def _every() -> Iterator[Scene | LedgerScene]:
    for relation in (ADD, REPLACE):
        for family in (primitives, trees, analyses, covariances, ledgers):
            yield from family(relation)


#: All scenes by key, in the order of the report.
SCENES: Mapping[str, Scene | LedgerScene] = {
    f"{scene.title} / {scene.relation.value}": scene for scene in _every()
}
