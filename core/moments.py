"""Public requests for noisy moments, and the noisy answers.

Everything here is public: a :class:`MomentFrame` says how columns are centred, scaled and clipped
(constants fixed before the data are looked at, or released values), a :class:`MomentRequest` says
which sums are wanted, and :class:`NoisyMoments` holds what came out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.errors import SchemaError
from core.schema import Schema

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Monomial = tuple[str, ...]

#: A summand is at most ``2**SUMMAND_BITS`` grid units, so that ``2**29`` rows sum below ``2**53``.
SUMMAND_BITS = 24
#: Largest numerator and denominator of a diagonal weight.
MAXIMUM_WEIGHT = 512
HIGHEST_DEGREE = 4


@dataclass(frozen=True)
class Scale:
    """A column's public centre and half-width: ``u = clip((x - centre) / half_width, -1, 1)``."""

    centre: float
    half_width: float

    def __post_init__(self) -> None:
        """Refuse what cannot scale."""
        if not (math.isfinite(self.centre) and math.isfinite(self.half_width)):
            raise SchemaError("a scale needs a finite centre and half-width")
        if self.half_width <= 0:
            raise SchemaError("a scale needs a positive half-width")


@dataclass(frozen=True)
class MomentFrame:
    """How rows become points of the unit box.

    Attributes
    ----------
    scales
        Public centre and half-width of each column, sorted by name.
    clip_squared
        Bound C² on the squared Euclidean norm of a scaled row (over all columns of the frame), at
        least 1; ``None`` leaves rows in the box.
    """

    scales: tuple[tuple[str, Scale], ...]
    clip_squared: Fraction | None = None

    def __post_init__(self) -> None:
        """Sort by name; refuse an empty frame, repeats and a clip below 1."""
        object.__setattr__(self, "scales", tuple(sorted(self.scales, key=lambda item: item[0])))
        if not self.scales:
            raise SchemaError("moments need at least one column")
        if len(set(self.columns)) != len(self.columns):
            raise SchemaError("a column is scaled twice; keep one scale a column")
        if self.clip_squared is not None:
            object.__setattr__(self, "clip_squared", Fraction(self.clip_squared))
            if self.clip_squared < 1:
                raise SchemaError("a row clip must be at least 1, the bound of one column alone")

    @classmethod
    def from_bounds(
        cls,
        schema: Schema,
        names: Sequence[str],
        *,
        centres: Mapping[str, float] | None = None,
        clip_squared: Fraction | None = None,
    ) -> MomentFrame:
        """Half-widths from the declared bounds, centres from their middle or from ``centres``.

        ``centres`` may hold released means; values are clipped *after* centring, to half the
        declared range on either side.

        >>> from core.schema import Column, Kind
        >>> schema = Schema((Column("age", Kind.INTEGER, lower=20, upper=80),))
        >>> MomentFrame.from_bounds(schema, ["age"]).scales
        (('age', Scale(centre=50.0, half_width=30.0)),)
        """
        scales = []
        for name in names:
            column = schema[name]
            if not column.axis:
                raise SchemaError(f"column {name!r}: moments need an integer, real or date column")
            low, high = column.bounds
            centre = (centres or {}).get(name, low + (high - low) / 2)
            # A column of one declared value has width 0; any positive width maps it to 0.
            scales.append((name, Scale(centre, (high - low) / 2 or 1.0)))
        return cls(tuple(scales), clip_squared)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, sorted."""
        return tuple(name for name, _ in self.scales)

    def half_width(self, name: str) -> float:
        """Half-width of one column."""
        return dict(self.scales)[name].half_width


def grid_bits(degree: int) -> int:
    """Bits of the grid on which each factor of a degree-``degree`` sum lives.

    >>> [grid_bits(degree) for degree in (1, 2, 3, 4)]
    [24, 12, 8, 6]
    """
    return SUMMAND_BITS // degree


@dataclass(frozen=True)
class MomentRequest:
    """Sums over rows of products of scaled columns, all of one degree.

    Attributes
    ----------
    frame
        Centres, half-widths and row clip.
    monomials
        Column names with repeats, sorted: ``("age",)``, ``("age", "age")``, ``("age", "pay")``.
    diagonal_weight
        ``w``: squares are measured with standard deviation σ/w where products have σ (degree 2
        only; a ratio of whole numbers up to 512).
    """

    frame: MomentFrame
    monomials: tuple[Monomial, ...]
    diagonal_weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        """Sort names within monomials; refuse mixed degrees, repeats and unknown columns."""
        set_ = object.__setattr__
        set_(self, "monomials", tuple(tuple(sorted(names)) for names in self.monomials))
        set_(self, "diagonal_weight", Fraction(self.diagonal_weight))
        degrees = {len(names) for names in self.monomials}
        if len(degrees) != 1 or not degrees <= set(range(1, HIGHEST_DEGREE + 1)):
            raise SchemaError("a moment request has one degree, 1 to 4; draw degrees one by one")
        if len(set(self.monomials)) != len(self.monomials):
            raise SchemaError("a moment is asked for twice; keep one")
        unknown = sorted({name for names in self.monomials for name in names} - set(self.columns))
        if unknown:
            raise SchemaError(f"column {unknown[0]!r} has no scale in this frame")
        weight = self.diagonal_weight
        if not 0 < weight <= MAXIMUM_WEIGHT or weight.denominator > MAXIMUM_WEIGHT:
            raise SchemaError("a diagonal weight is a positive ratio of whole numbers up to 512")
        if weight.numerator > MAXIMUM_WEIGHT or (weight != 1 and self.degree != 2):
            raise SchemaError("a diagonal weight needs degree 2 and whole numbers up to 512")

    @classmethod
    def triangle(cls, frame: MomentFrame, diagonal_weight: Fraction = Fraction(1)) -> MomentRequest:
        """All squares and products of the frame's columns."""
        names = frame.columns
        pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i:])
        return cls(frame, pairs, diagonal_weight)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the frame."""
        return self.frame.columns

    @property
    def degree(self) -> int:
        """Number of factors in each monomial."""
        return len(self.monomials[0])

    @property
    def grid(self) -> int:
        """Grid units in 1 for each factor, a power of two."""
        return 1 << grid_bits(self.degree)

    @property
    def multipliers(self) -> IntArray:
        """Whole factors on the exact sums that realise the diagonal weight with one σ."""
        weight = self.diagonal_weight
        diagonal = [self.degree == 2 and names[0] == names[1] for names in self.monomials]
        return cast(
            IntArray,
            np.where(diagonal, weight.numerator, weight.denominator).astype(np.int64),
        )

    @property
    def steps(self) -> FloatArray:
        """Scaled units in one unit of the noisy integers."""
        return cast(FloatArray, 1.0 / (self.multipliers * float(self.grid**self.degree)))


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Noisy sums of one request, as integers with one σ and as scaled sums.

    Attributes
    ----------
    units
        What the discrete Gaussian returned, one integer a monomial.
    unit_sigma
        Its standard deviation parameter, in the same units.
    rho
        The debit.
    """

    request: MomentRequest
    units: IntArray
    unit_sigma: float
    rho: Fraction

    @property
    def values(self) -> FloatArray:
        """Sums of scaled products (each factor within [-1, 1])."""
        return self.units * self.request.steps

    @property
    def sigmas(self) -> FloatArray:
        """Standard deviation of each entry of ``values``."""
        return self.unit_sigma * self.request.steps


@dataclass(frozen=True, eq=False)
class EntryReference:
    """Frozen second moments that a noisy selection compares the truth with.

    Built from released values only.

    Attributes
    ----------
    frame
        Centres, half-widths and row clip.
    sums
        n̂ Ŵ, the expected sums of scaled products, columns in the frame's order.
    """

    frame: MomentFrame
    sums: FloatArray

    def __post_init__(self) -> None:
        """Freeze a copy; refuse a wrong shape or sums beyond exact arithmetic."""
        sums = np.array(self.sums, dtype=np.float64)
        size = len(self.frame.columns)
        if sums.shape != (size, size) or not np.all(np.abs(sums) < 2.0 ** (53 - SUMMAND_BITS)):
            raise SchemaError("a moment reference is one finite sum a pair of the frame's columns")
        sums.setflags(write=False)
        object.__setattr__(self, "sums", sums)

    def grid_units(self) -> IntArray:
        """The sums in units of the exact second moments' grid, rounded."""
        return cast(IntArray, np.rint(self.sums * float(1 << SUMMAND_BITS)).astype(np.int64))
