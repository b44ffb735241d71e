"""PACE's paid part: measure the squares, then select and measure entries round by round.

Section 4 of arXiv 2605.24295, with the budget rules of AIM (McKenna et al. 2022), which it builds
on.  Everything here sees noisy answers only; the loop alternates the grant's primitives with pure
functions of earlier outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from core.blas import one_blas_thread
from core.errors import BudgetError, Cancelled, PlanError
from core.pace import auto, baselines
from core.pace.frames import (
    COUNT_SHARE,
    MEAN_SHARE,
    MeansSetting,
    checked_means,
    checked_widths,
    covariance_schema,
)
from core.pace.paid import PaidRun
from core.pace.release import METHODS, CovarianceRelease
from core.pace.rounds import Rounds, run_rounds
from core.pace.running import RunningCompletion
from core.protocols import MomentGrant, Progress
from core.schema import Schema

#: Share of the moments' budget for the squares.
DIAGONAL_SHARE = Fraction(1, 5)
#: Share of a round's budget for its selection.
SELECTION_SHARE = Fraction(1, 2)
#: Rounds that the budget is split into at first, a column.
ROUNDS_A_COLUMN = 4


def release_covariance(
    grant: MomentGrant,
    schema: Schema,
    columns: Sequence[str],
    *,
    method: str = "pace_auto",
    means: MeansSetting = "private",
    half_widths: Mapping[str, float] | None = None,
    mean_share: Fraction = MEAN_SHARE,
    expected_rows: int | None = None,
    progress: Progress | None = None,
) -> CovarianceRelease:
    """Measure second moments about the means, as many and as well as the budget allows.

    Parameters
    ----------
    grant
        Noisy answers about one table; its whole rho is used.
    schema
        Public declarations; bounds scale the columns.
    columns
        Names of integer, real or date columns.
    method
        One of ``core.pace.release.METHODS``.
    means
        ``"private"``: measured first, for ``mean_share`` of the budget.  Or the public mean of
        every column.
    half_widths
        Public half-widths, in raw units, of columns whose values mostly lie much closer to their
        mean than their bounds allow (three standard deviations, say, known from elsewhere).
        Values beyond are clipped.
    expected_rows
        The steward's public guess, which steadies the count where noise swamps it.
    progress
        Called as (stage, done, total, detail) with stage ``means``, ``diagonal``, ``triangle`` or
        ``rounds`` (detail: the :class:`core.pace.release.Round`); may raise :class:`Cancelled`.

    Returns
    -------
    CovarianceRelease
        After a cancel with something paid: what was measured up to then, ``partial=True``.

    Raises
    ------
    PlanError, SchemaError, BudgetError
        Unknown method, columns without numbers, means that do not fit; nothing was paid.
    Cancelled
        The cancel came before anything was paid.

    Notes
    -----
    Costs at most ``grant.rho``, and at least 99.9 % of it except for method ``ssp``, whose looser
    analysis forfeits what it does not need.  Under ``add_remove`` one part in a hundred goes to
    the row count.
    """
    if method not in METHODS:
        raise PlanError(f"covariance: unknown method {method!r}; known: {', '.join(METHODS)}")
    used = covariance_schema(schema, columns)
    public, widths = checked_means(used, means), checked_widths(used, half_widths)
    share = Fraction(mean_share)
    if not 0 < share < 1 - COUNT_SHARE:
        raise BudgetError("covariance: mean_share must lie above 0 and leave a budget for the rest")
    run = PaidRun(grant, used, method, expected_rows=expected_rows, progress=progress)
    run.report("means", 0, 1)
    partial = False
    try:
        with one_blas_thread():
            run.start(public, widths, share)
            _METHODS[method](run)
    except Cancelled:
        if not run.started:
            raise
        partial = True
    return run.release(partial=partial)


def pace(run: PaidRun) -> None:
    """The paper's loop: all squares first, then rounds."""
    rho = run.grant.remaining
    squares = run.diagonal(rho * DIAGONAL_SHARE)
    run.report("diagonal", 1, 1)
    most = ROUNDS_A_COLUMN * run.size
    run_rounds(
        run,
        RunningCompletion(squares, clip=True),
        Rounds(first=run.grant.remaining / most, most=most, selection_share=SELECTION_SHARE),
    )


_METHODS: Mapping[str, Callable[[PaidRun], None]] = {
    "pace_auto": auto.pace_auto,
    "pace": pace,
    "ssp": baselines.ssp,
    "ssp_tight": baselines.ssp_tight,
    "ssp_clip_sure": baselines.ssp_clip_sure,
    "diagonal": baselines.diagonal,
    "adaptive_cov": baselines.adaptive_cov,
}
