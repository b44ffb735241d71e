"""One covariance release while it grows: every attribute holds noisy or public facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from core.moments import EntryReference, FloatArray, IntArray, MomentFrame, MomentRequest, Scale
from core.pace.frames import (
    COUNT_SHARE,
    MEAN_SHARE,
    count_is_public,
    measure_means,
    measure_rows,
    public_means,
    scales_about,
)
from core.pace.measurements import Measurements
from core.pace.release import Clip, CovarianceRelease, Draw, Means, Round, RowCount
from core.protocols import MomentGrant, Progress
from core.schema import Schema


class PaidRun:
    """What has been measured so far, and how to measure more.

    Moments are kept as sums; what callers see is divided by the number of rows.
    """

    def __init__(
        self,
        grant: MomentGrant,
        schema: Schema,
        method: str,
        *,
        expected_rows: int | None,
        progress: Progress | None,
    ) -> None:
        where = grant.provenance()
        self.grant, self.schema, self.method, self.progress = grant, schema, method, progress
        self.expected_rows = expected_rows
        self.relation, self.unit_rows = where.relation, where.unit.rows
        self.names = tuple(sorted(schema.names))
        self.size = len(self.names)
        self.clip: Clip | None = None
        self.draws: list[Draw] = []
        self.rounds: list[Round] = []
        self.route = ""
        self.forecasts: list[tuple[str, float]] = []
        self.finished = False
        self._rows: RowCount | None = None
        self._means: Means | None = None
        self._widths: dict[str, float] = {}
        self._pairs: list[IntArray] = []
        self._sums: list[FloatArray] = []
        self._sigmas: list[FloatArray] = []

    def report(self, stage: str, done: int, total: int, detail: object = None) -> None:
        """Tell whoever watches; this may raise ``Cancelled``."""
        if self.progress is not None:
            self.progress(stage, done, total, detail)

    @property
    def started(self) -> bool:
        """Whether anything that a release needs was paid for or is public."""
        return self._means is not None

    @property
    def rows(self) -> float:
        """What sums are divided by."""
        assert self._rows is not None
        return self._rows.value

    # -- before the moments ----------------------------------------------------------------

    def start(
        self,
        public: Mapping[str, float] | None,
        widths: Mapping[str, float],
        mean_share: Fraction = MEAN_SHARE,
    ) -> None:
        """Measure the row count and the means, as far as they are private."""
        rho = self.grant.rho
        self._widths = dict(widths)
        public_count = count_is_public(self.schema, self.relation)
        share = Fraction(0) if public_count else COUNT_SHARE
        self._rows = measure_rows(self.grant, self.schema, rho * share, self.expected_rows)
        if public is None:
            self._means = measure_means(self.grant, self.schema, self._rows, rho * mean_share)
        else:
            self._means = public_means(self.schema, public)
        self.report("means", 1, 1)

    @cached_property
    def scales(self) -> tuple[tuple[str, Scale], ...]:
        """Centre and half-width of each column, once the means are known."""
        assert self._means is not None
        return scales_about(self._means, self._widths)

    @cached_property
    def box(self) -> MomentFrame:
        """The frame without a row clip."""
        return MomentFrame(self.scales, whole_rows=True)

    def frame(self, clip_squared: Fraction | None) -> MomentFrame:
        """The frame with a row clip; one that clips nothing is left out."""
        if clip_squared is None or clip_squared >= self.size:
            return self.box
        return replace(self.box, clip_squared=clip_squared)

    # -- moments ---------------------------------------------------------------------------

    def measure(
        self,
        stage: str,
        pairs: IntArray,
        rho: Fraction,
        *,
        weight: Fraction = Fraction(1),
        clip_squared: Fraction | None = None,
    ) -> Measurements:
        """Noisy second moments of the given pairs of column numbers: one draw."""
        frame = self.frame(clip_squared)
        monomials = tuple((self.names[a], self.names[b]) for a, b in pairs.tolist())
        request = MomentRequest(frame, monomials, weight)
        answer = self.grant.moments(request, rho)
        sums, sigmas = answer.values, answer.sigmas
        start = self.draws[-1].stop if self.draws else 0
        self.draws.append(
            Draw(
                stage,
                start,
                start + len(pairs),
                frame.clip_squared,
                1.0 / (request.grid**2 * weight.denominator),
                weight,
                answer.rho,
            )
        )
        self._pairs.append(pairs)
        self._sums.append(sums)
        self._sigmas.append(sigmas)
        return Measurements(self.size, pairs, sums / self.rows, (self.rows / sigmas) ** 2)

    def diagonal(self, rho: Fraction) -> Measurements:
        """All squares."""
        index = np.arange(self.size, dtype=np.int64)
        return self.measure("diagonal", np.column_stack([index, index]), rho)

    def triangle(
        self,
        rho: Fraction,
        *,
        weight: Fraction = Fraction(1),
        clip_squared: Fraction | None = None,
        stage: str = "triangle",
    ) -> Measurements:
        """All squares and products."""
        pairs = np.column_stack(np.triu_indices(self.size)).astype(np.int64)
        return self.measure(stage, pairs, rho, weight=weight, clip_squared=clip_squared)

    def select(self, covariance: FloatArray, rho: Fraction) -> tuple[int, int]:
        """Numbers of the columns of the entry that the exponential mechanism chose."""
        limit = 2.0**28  # beyond it a reference leaves exact arithmetic; no table has such sums
        sums = np.clip(covariance * self.rows, -limit, limit)
        first, second = self.grant.select_entry(None, EntryReference(self.box, sums), rho)
        return self.box.places[first], self.box.places[second]

    def choose_clip(
        self, candidates: Sequence[Fraction], penalties: Sequence[float], rho: Fraction
    ) -> Fraction:
        """A row clip by the exponential mechanism."""
        before = self.grant.debited
        squared = self.grant.clip_norm(self.box, candidates, penalties, rho)
        self.clip = Clip(squared, tuple(candidates), self.grant.debited - before)
        return squared

    # -- after -----------------------------------------------------------------------------

    def release(self, *, partial: bool) -> CovarianceRelease:
        """What has been measured so far."""
        assert self._rows is not None
        assert self._means is not None
        empty = np.empty(0)
        return CovarianceRelease(
            provenance=self.grant.provenance(),
            schema=self.schema,
            method=self.method,
            rows=self._rows,
            means=self._means,
            scales=self.scales,
            clip=self.clip,
            draws=tuple(self.draws),
            pairs=np.concatenate([np.empty((0, 2), dtype=np.int64), *self._pairs]),
            sums=np.concatenate([empty, *self._sums]),
            sigmas=np.concatenate([empty, *self._sigmas]),
            rounds=tuple(self.rounds),
            route=self.route,
            forecasts=tuple(self.forecasts),
            partial=partial,
        )
