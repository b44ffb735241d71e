"""PUMBA's paid part: measure the statistics that a plan asked for, draw by draw."""

from __future__ import annotations

from fractions import Fraction

from core.errors import BudgetError, Cancelled, PlanError
from core.moments import NoisyMoments
from core.protocols import Progress, StatisticsGrant
from core.provenance import Relation
from core.pumba.release import StatisticsRelease
from core.pumba.requests import AnalysisSpec, Split, StatisticsRequest, plan_request
from core.releases import NoisyMarginal
from core.schema import Schema
from core.statistics import NoisyStatistic


def release_statistics(
    grant: StatisticsGrant,
    schema: Schema,
    spec: AnalysisSpec,
    *,
    split: Split | None = None,
    expected_rows: int | None = None,
    row_count: NoisyStatistic | int | None = None,
    progress: Progress | None = None,
) -> StatisticsRelease:
    """Measure the cheapest statistics that answer a question.

    Parameters
    ----------
    grant
        Noisy answers about one table; its whole rho is split over the draws.
    schema, spec, split, expected_rows
        As for :func:`core.pumba.requests.plan_request`, which the draws follow.
    row_count
        With ``rows = "tree"``: the number of rows as an earlier release of the same table version
        tells it, see :func:`core.pumba.from_tree.row_count_of`.
    progress
        Called as ("statistics", done, total, name of the draw); may raise :class:`Cancelled`.

    Returns
    -------
    StatisticsRelease
        After a cancel with something paid: what was measured up to then, ``partial=True``.

    Raises
    ------
    SchemaError, PlanError, BudgetError
        The question, the split or the row count does not fit; nothing was paid.
    Cancelled
        The cancel came before anything was paid.

    Notes
    -----
    Costs at most ``grant.rho``, and at least 99.9 % of it unless cancelled.
    """
    where = grant.provenance()
    request = plan_request(
        spec,
        schema,
        where.relation,
        where.unit,
        grant.rho,
        expected_rows=expected_rows,
        split=split,
    )
    shared = _shared(request, row_count)
    run = _Run(grant, request, progress)
    run.report(0)
    try:
        run.measure()
    except Cancelled:
        if not run.done:
            raise
    public = _public_rows(grant, request)
    return StatisticsRelease(
        provenance=grant.provenance(),
        spec=spec,
        schema=request.schema,
        split=tuple(request.split.items()),
        tables=tuple(run.tables),
        sums=tuple(run.sums),
        public_rows=public,
        shared_rows=shared,
        partial=run.done < len(request.draws),
    )


def _shared(
    request: StatisticsRequest, row_count: NoisyStatistic | int | None
) -> NoisyStatistic | None:
    """The row count of an earlier release; refuses one that is missing, unused or exact."""
    name = request.spec.name
    if request.spec.rows != "tree":
        if row_count is not None:
            raise PlanError(
                f"analysis {name!r}: a row count was handed over that it does not use; set "
                "rows = 'tree'"
            )
        return None
    if _rows_are_public(request):
        return None  # the grant tells the exact number for nothing
    if not isinstance(row_count, NoisyStatistic):
        raise PlanError(
            f"analysis {name!r}: rows = 'tree' needs the noisy row count of a tree release"
        )
    return row_count


def _rows_are_public(request: StatisticsRequest) -> bool:
    return request.relation is Relation.REPLACE_ONE and request.unit.rows == 1


def _public_rows(grant: StatisticsGrant, request: StatisticsRequest) -> int | None:
    """The number of all rows where the relation makes it public; costs nothing then."""
    known = request.count_known or request.spec.counts
    if not (known and _rows_are_public(request)):
        return None
    return int(grant.row_count(Fraction(0)).values)


class _Run:
    """What has been measured; every attribute holds noisy or public facts."""

    def __init__(
        self, grant: StatisticsGrant, request: StatisticsRequest, progress: Progress | None
    ) -> None:
        self.grant, self.request, self.progress = grant, request, progress
        self.tables: list[NoisyMarginal] = []
        self.sums: list[tuple[str, NoisyMoments]] = []

    @property
    def done(self) -> int:
        """Draws made."""
        return len(self.tables) + len(self.sums)

    def report(self, done: int) -> None:
        """Tell whoever watches; this may raise ``Cancelled``."""
        draws = self.request.draws
        if self.progress is not None:
            detail = draws[done].name if done < len(draws) else None
            self.progress("statistics", done, len(draws), detail)

    def measure(self) -> None:
        """All draws in order; the last takes exactly what the others leave."""
        left = self.grant.rho
        for place, draw in enumerate(self.request.draws):
            last = place == len(self.request.draws) - 1
            rho = left if last else draw.rho
            left -= rho
            if draw.clique is not None:
                self.tables += self.grant.counts([draw.clique], rho)
            elif draw.request is not None:
                self.sums.append((draw.name, self.grant.moments(draw.request, rho)))
            self.report(place + 1)
        if left != 0:
            raise BudgetError("the draws of an analysis do not add up to its budget")
