"""Everything that a covariance release paid for: counts, means, moments, and the rounds log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import JustitiaError, ReleaseError
from core.moments import FloatArray, IntArray, MomentFrame, Scale
from core.provenance import Provenance
from core.releases import NONSENSE, pack_bytes, unpack_bytes
from core.schema import Schema

Pair = tuple[str, str]

#: Ways to spend the budget on a covariance matrix, the recommended one first.
METHODS = (
    "pace_auto",
    "pace",
    "ssp_clip_sure",
    "ssp_tight",
    "ssp",
    "diagonal",
    "adaptive_cov",
)
#: What blank values count as, in every moment.
BLANKS = (
    "Rows that miss one of these columns (without a declared constant) are left out, and the "
    "number of rows is that of the others."
)


@dataclass(frozen=True)
class RowCount:
    """The number of rows by which sums are divided.

    Attributes
    ----------
    value
        At least 1.
    noisy
        What the draw returned; None where the count is public.
    sigma
        Standard deviation of the draw; 0 where the count is public.
    rho
        Debit of the draw.
    """

    value: float
    noisy: int | None
    sigma: float
    rho: Fraction

    @property
    def public(self) -> bool:
        """Whether the relation makes the count public."""
        return self.noisy is None


@dataclass(frozen=True, eq=False)
class Means:
    """The centres about which second moments are taken, in raw units, one a column.

    ``sigmas`` are their standard deviations (privacy noise only) and ``sums`` the noisy sums of
    scaled values behind them; public means have sigma 0, sum 0 and no debit.
    """

    values: FloatArray
    sigmas: FloatArray
    sums: FloatArray
    public: bool
    rho: Fraction


@dataclass(frozen=True)
class Clip:
    """The bound C² on the squared norm of a scaled row, chosen privately among candidates."""

    squared: Fraction
    candidates: tuple[Fraction, ...]
    rho: Fraction


@dataclass(frozen=True)
class Draw:
    """One noisy answer: which entries of the release's arrays it gave, and at what price.

    Attributes
    ----------
    stage
        ``diagonal``, ``triangle``, ``second triangle`` or ``round``.
    start, stop
        Slice of the release's ``pairs``, ``sums`` and ``sigmas``.
    clip_squared
        Row clip C² in force; None where rows were only held in the box.
    step
        Lattice of the noise on products, in scaled units; squares have ``step / diagonal_weight``.
    diagonal_weight
        Squares were measured with the products' sigma over this.
    rho
        Debit.
    """

    stage: str
    start: int
    stop: int
    clip_squared: Fraction | None
    step: float
    diagonal_weight: Fraction
    rho: Fraction


@dataclass(frozen=True)
class Round:
    """One round of the loop: select an entry by its distance from the current matrix, measure it.

    Attributes
    ----------
    index
        From 0.
    chosen
        The entry, names sorted.
    draw
        Index of its measurement among the release's draws.
    expected
        Second moment that the matrix before the round gave to the entry, in scaled units.
    measured
        The noisy one, in scaled units.
    sigma
        Of that measurement, in scaled units.
    edge
        Whether the entry joined the graph, or was only kept for pooling.
    reason
        Why, in words.
    selection_rho
        Debit of the selection.
    """

    index: int
    chosen: Pair
    draw: int
    expected: float
    measured: float
    sigma: float
    edge: bool
    reason: str
    selection_rho: Fraction

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "index": self.index,
            "chosen": list(self.chosen),
            "draw": self.draw,
            "expected": self.expected,
            "measured": self.measured,
            "sigma": self.sigma,
            "edge": self.edge,
            "reason": self.reason,
            "selection_rho": str(self.selection_rho),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Round:
        """Inverse of :meth:`to_dict`."""
        return cls(
            int(plain["index"]),
            (str(plain["chosen"][0]), str(plain["chosen"][1])),
            int(plain["draw"]),
            float(plain["expected"]),
            float(plain["measured"]),
            float(plain["sigma"]),
            bool(plain["edge"]),
            str(plain["reason"]),
            Fraction(plain["selection_rho"]),
        )


@dataclass(frozen=True, eq=False)
class CovarianceRelease:
    """All noisy second moments that were paid for, in the order in which they were measured.

    Attributes
    ----------
    provenance
        Budget, relation, unit and flags.
    schema
        Declarations of the columns, in file order.
    method
        One of ``METHODS``.
    rows, means
        What sums are divided by, and what values are centred at.
    scales
        Centre and half-width of each column, sorted by name: moments are about the centre, in
        units of the half-width, of values clipped to one half-width on either side.
    clip
        The row clip, where one was chosen.
    draws
        Noisy answers in order.
    pairs
        (M, 2): columns (by sorted name) of each measured entry, the smaller first.
    sums
        (M,): noisy sums of products of scaled values.
    sigmas
        (M,): their standard deviations.
    rounds
        The log of the adaptive rounds.
    route
        What ``pace_auto`` did after its first measurement: ``rounds``, ``second triangle`` or
        ``diagonal``; empty for other methods.
    forecasts
        Why: the figures that it compared, all from released numbers.
    partial
        True when a cancel kept what was measured up to then.
    """

    provenance: Provenance
    schema: Schema
    method: str
    rows: RowCount
    means: Means
    scales: tuple[tuple[str, Scale], ...]
    clip: Clip | None
    draws: tuple[Draw, ...]
    pairs: IntArray
    sums: FloatArray
    sigmas: FloatArray
    rounds: tuple[Round, ...] = ()
    route: str = ""
    forecasts: tuple[tuple[str, float], ...] = ()
    partial: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be a release."""
        size, count = len(self.scales), len(self.sums)
        if self.method not in METHODS:
            raise ReleaseError(f"a covariance release of the unknown method {self.method!r}")
        if self.pairs.shape != (count, 2) or self.sigmas.shape != (count,):
            raise ReleaseError("a covariance release needs one pair and one sigma a measured entry")
        if count and not (self.pairs.min() >= 0 and self.pairs.max() < size):
            raise ReleaseError("a covariance release measures a column that it does not have")
        if not (np.all(np.isfinite(self.sums)) and np.all(self.sigmas >= 0)):
            raise ReleaseError("a covariance release holds a sum that is no finite number")
        if sorted(self.schema.names) != list(self.columns):
            raise ReleaseError("the scales of a covariance release do not fit its columns")
        if any(array.shape != (size,) for array in self._per_column):
            raise ReleaseError("a covariance release needs one mean a column")
        for step in self.rounds:
            if not (0 <= step.draw < len(self.draws) and set(step.chosen) <= set(self.columns)):
                raise ReleaseError("a round of a covariance release fits none of its draws")
        ends = [0, *(draw.stop for draw in self.draws)]
        starts = [*(draw.start for draw in self.draws), count]
        if ends != starts:
            raise ReleaseError("the draws of a covariance release do not add up to its entries")

    @property
    def _per_column(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.means.values, self.means.sigmas, self.means.sums

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, sorted: the order of every matrix."""
        return tuple(name for name, _ in self.scales)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.scales)

    @property
    def half_widths(self) -> FloatArray:
        """Half-width of each column, raw units."""
        return np.array([scale.half_width for _, scale in self.scales])

    @property
    def frame(self) -> MomentFrame:
        """Centres and half-widths, without a row clip."""
        return MomentFrame(self.scales, whole_rows=True)

    @property
    def estimand(self) -> str:
        """What the matrix estimates, in words."""
        about = "the declared means" if self.means.public else "the released noisy means"
        words = (
            f"Second moments about {about}, of values clipped to one half-width on either side of "
            "them: the covariance of the clipped values, plus the product of the distances of "
            "their true means from those centres."
        )
        if self.clip is not None and self.clip.squared < self.size:
            words += (
                f" Rows of the first measurement were shrunk to a squared norm of at most "
                f"{float(self.clip.squared):.4g} (of {self.size})."
            )
        return f"{words} {BLANKS}"

    # -- bytes -----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """NPZ with a JSON header; the same release gives the same bytes."""
        clip = self.clip
        header = {
            "type": "CovarianceRelease",
            "version": 1,
            "provenance": self.provenance.to_dict(),
            "schema": self.schema.to_dict(),
            "method": self.method,
            "rows": {
                "value": self.rows.value,
                "noisy": self.rows.noisy,
                "sigma": self.rows.sigma,
                "rho": str(self.rows.rho),
            },
            "means": {"public": self.means.public, "rho": str(self.means.rho)},
            "scales": [[name, scale.centre, scale.half_width] for name, scale in self.scales],
            "clip": None
            if clip is None
            else {
                "squared": str(clip.squared),
                "candidates": [str(candidate) for candidate in clip.candidates],
                "rho": str(clip.rho),
            },
            "draws": [_draw_dict(draw) for draw in self.draws],
            "rounds": [step.to_dict() for step in self.rounds],
            "route": self.route,
            "forecasts": [[name, value] for name, value in self.forecasts],
            "partial": self.partial,
        }
        arrays: dict[str, NDArray[Any]] = {
            "pairs": self.pairs,
            "sums": self.sums,
            "sigmas": self.sigmas,
            "mean_values": self.means.values,
            "mean_sigmas": self.means.sigmas,
            "mean_sums": self.means.sums,
        }
        return pack_bytes(header, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> CovarianceRelease:
        """Inverse of :meth:`to_bytes`; pickles are refused.

        Raises
        ------
        ReleaseError
            The bytes are no covariance release.
        """
        header, arrays = unpack_bytes(blob, "CovarianceRelease")
        try:
            return _read(header, arrays)
        except NONSENSE as error:
            raise ReleaseError(
                "the stored covariance is damaged; restore the store's backup"
            ) from error
        except JustitiaError as error:
            raise ReleaseError(f"the stored covariance is damaged: {error}") from error


def _read(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> CovarianceRelease:
    rows, means, clip = header["rows"], header["means"], header["clip"]
    floats = {
        name: _finite(arrays[name])
        for name in ("sums", "sigmas", "mean_values", "mean_sigmas", "mean_sums")
    }
    return CovarianceRelease(
        provenance=Provenance.from_dict(header["provenance"]),
        schema=Schema.from_dict(header["schema"]),
        method=str(header["method"]),
        rows=RowCount(
            float(rows["value"]),
            None if rows["noisy"] is None else int(rows["noisy"]),
            float(rows["sigma"]),
            Fraction(rows["rho"]),
        ),
        means=Means(
            floats["mean_values"],
            floats["mean_sigmas"],
            floats["mean_sums"],
            bool(means["public"]),
            Fraction(means["rho"]),
        ),
        scales=tuple(
            (str(name), Scale(float(centre), float(half)))
            for name, centre, half in header["scales"]
        ),
        clip=None
        if clip is None
        else Clip(
            Fraction(clip["squared"]),
            tuple(Fraction(candidate) for candidate in clip["candidates"]),
            Fraction(clip["rho"]),
        ),
        draws=tuple(_draw_from(plain) for plain in header["draws"]),
        pairs=_whole_numbers(arrays["pairs"]),
        sums=floats["sums"],
        sigmas=floats["sigmas"],
        rounds=tuple(Round.from_dict(plain) for plain in header["rounds"]),
        route=str(header["route"]),
        forecasts=tuple((str(name), float(value)) for name, value in header["forecasts"]),
        partial=bool(header["partial"]),
    )


def _finite(values: NDArray[Any]) -> FloatArray:
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise ValueError("not finite numbers")
    return np.asarray(values, dtype=np.float64)


def _whole_numbers(values: NDArray[Any]) -> IntArray:
    if values.dtype.kind not in "iu":
        raise ValueError("not whole numbers")
    return np.asarray(values, dtype=np.int64)


def _draw_dict(draw: Draw) -> dict[str, Any]:
    return {
        "stage": draw.stage,
        "start": draw.start,
        "stop": draw.stop,
        "clip_squared": None if draw.clip_squared is None else str(draw.clip_squared),
        "step": draw.step,
        "diagonal_weight": str(draw.diagonal_weight),
        "rho": str(draw.rho),
    }


def _draw_from(plain: Mapping[str, Any]) -> Draw:
    clip = plain["clip_squared"]
    return Draw(
        str(plain["stage"]),
        int(plain["start"]),
        int(plain["stop"]),
        None if clip is None else Fraction(clip),
        float(plain["step"]),
        Fraction(plain["diagonal_weight"]),
        Fraction(plain["rho"]),
    )
