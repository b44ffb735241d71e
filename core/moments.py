"""Public requests for noisy moments, and the noisy answers.

Everything here is public: a :class:`MomentFrame` says how columns are centred, scaled and clipped
(constants fixed before the data are looked at, or released values), a :class:`MomentRequest` says
which sums are wanted, and :class:`NoisyMoments` holds what came out.

A factor of a sum is a *feature*: a scaled number, or the indicator of one cell of a coded column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.column import Column
from core.errors import SchemaError
from core.kinds import Missing, OutOfDomain
from core.schema import Schema

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Monomial = tuple[str, ...]

#: A summand is at most ``2**SUMMAND_BITS`` grid units, so that ``2**29`` rows sum below ``2**53``.
SUMMAND_BITS = 24
#: Largest numerator and denominator of a diagonal weight.
MAXIMUM_WEIGHT = 512
HIGHEST_DEGREE = 4
#: Most factors of one sum, indicators included.
MOST_FACTORS = 8


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
class Indicator:
    """A feature that is 1 in rows whose coded column lies in one cell, and 0 in all others."""

    column: str
    code: int

    def __post_init__(self) -> None:
        """Refuse what is no cell number."""
        if isinstance(self.code, bool) or not isinstance(self.code, int) or self.code < 0:
            raise SchemaError(f"column {self.column!r}: an indicator needs the number of a cell")


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
    indicators
        Cells of coded columns as features of their own, by feature name, sorted.
    complete
        Complete cases only: a row that misses any column of the frame contributes nothing to any
        sum.  A number is missing where the coded table holds none (missing without a constant, or
        out of domain without clipping); a coded column where the row lies in a cell that was not
        declared (the missing-cell or the other-cell) and that no indicator of the frame names.
    whole_rows
        The same rule for frames of numbers alone, which may then have a row clip: a row without
        one of the numbers is a row of zeros.
    """

    scales: tuple[tuple[str, Scale], ...]
    clip_squared: Fraction | None = None
    indicators: tuple[tuple[str, Indicator], ...] = ()
    complete: bool = False
    whole_rows: bool = False

    def __post_init__(self) -> None:
        """Sort by name; refuse an empty frame, repeats and a clip below 1."""
        set_ = object.__setattr__
        set_(self, "scales", tuple(sorted(self.scales, key=lambda item: item[0])))
        set_(self, "indicators", tuple(sorted(self.indicators, key=lambda item: item[0])))
        if not self.features:
            raise SchemaError("moments need at least one column")
        if len(set(self.features)) != len(self.features):
            raise SchemaError("a column is scaled twice; keep one scale a column")
        cells = [cell for _, cell in self.indicators]
        if len(set(cells)) != len(cells):
            raise SchemaError("two indicators name the same cell; keep one")
        if self.whole_rows and not self.plain:
            raise SchemaError("whole rows are asked of frames of numbers alone")
        if self.clip_squared is not None:
            set_(self, "clip_squared", Fraction(self.clip_squared))
            if self.clip_squared < 1:
                raise SchemaError("a row clip must be at least 1, the bound of one column alone")
            if not self.plain:
                raise SchemaError(
                    "a row clip fits frames of numbers only; leave out indicators and complete "
                    "cases"
                )

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

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the numeric columns, sorted."""
        return tuple(name for name, _ in self.scales)

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each numeric column."""
        return {name: index for index, name in enumerate(self.columns)}

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features, sorted."""
        return tuple(sorted((*self.columns, *(name for name, _ in self.indicators))))

    @property
    def plain(self) -> bool:
        """Whether every feature is a number, and sums are those of rows in the unit box."""
        return not self.indicators and not self.complete

    @property
    def cells(self) -> dict[str, Indicator]:
        """Cell of each indicator feature."""
        return dict(self.indicators)

    def absent_codes(self, column: Column) -> tuple[int, ...]:
        """Cells of a coded column whose rows are no complete cases.

        >>> from core.schema import Column, Kind
        >>> job = Column("job", Kind.CATEGORICAL, categories=("clerk", "cook"))
        >>> MomentFrame((), indicators=(("cook", Indicator("job", 1)),)).absent_codes(job)
        (2, 3)
        """
        named = {cell.code for _, cell in self.indicators if cell.column == column.name}
        return tuple(code for code in range(column.declared_size, column.size) if code not in named)

    def may_miss(self, schema: Schema) -> bool:
        """Whether the *declarations* allow a row that is no complete case; never asks the data.

        The number of complete cases is private as soon as they do, under either relation.
        """
        if not self.complete:
            return False
        coded = {cell.column for _, cell in self.indicators}
        return any(_may_lack_a_number(schema[name]) for name in self.columns) or any(
            bool(self.absent_codes(schema[name])) for name in coded
        )

    def half_width(self, name: str) -> float:
        """Half-width of one column."""
        return dict(self.scales)[name].half_width


def _may_lack_a_number(column: Column) -> bool:
    """Whether a row can have no number: missing without a constant, or out of domain unclipped."""
    clipped = column.out_of_domain is OutOfDomain.CLIP
    return column.missing is not Missing.CONSTANT or not clipped


def grid_bits(degree: int) -> int:
    """Bits of the grid on which each factor of a degree-``degree`` sum lives.

    >>> [grid_bits(degree) for degree in (1, 2, 3, 4)]
    [24, 12, 8, 6]
    """
    return SUMMAND_BITS // degree


@dataclass(frozen=True)
class MomentRequest:
    """Sums over rows of products of features, all of one degree unless ``mixed``.

    Frames with indicators or of complete cases know three things more: the empty monomial, which
    counts the complete cases; products with indicators, whose powers are left out because an
    indicator is its own square; and sums of mixed degree with one σ, which share their
    sensitivity (under ``replace_one`` that is often cheaper than a draw a degree).

    Attributes
    ----------
    frame
        Centres, half-widths and row clip.
    monomials
        Feature names with repeats, sorted: ``("age",)``, ``("age", "age")``, ``("age", "pay")``.
    diagonal_weight
        ``w``: squares are measured with standard deviation σ/w where products have σ (degree 2
        and plain frames only; a ratio of whole numbers up to 512).
    mixed
        Whether degrees may differ.
    """

    frame: MomentFrame
    monomials: tuple[Monomial, ...]
    diagonal_weight: Fraction = Fraction(1)
    mixed: bool = False

    def __post_init__(self) -> None:
        """Sort names within monomials; refuse mixed degrees, repeats and unknown columns."""
        set_ = object.__setattr__
        set_(self, "monomials", tuple(tuple(sorted(names)) for names in self.monomials))
        set_(self, "diagonal_weight", Fraction(self.diagonal_weight))
        unknown = sorted(
            {name for names in self.monomials for name in names} - set(self.frame.features)
        )
        if unknown:
            raise SchemaError(f"column {unknown[0]!r} has no scale in this frame")
        self._check_degrees()
        if len(set(self.monomials)) != len(self.monomials):
            raise SchemaError("a moment is asked for twice; keep one")
        if not self.frame.plain:
            self._check_indicators()
        weight = self.diagonal_weight
        if not 0 < weight <= MAXIMUM_WEIGHT or weight.denominator > MAXIMUM_WEIGHT:
            raise SchemaError("a diagonal weight is a positive ratio of whole numbers up to 512")
        weightless = self.degree != 2 or not self.frame.plain
        if weight.numerator > MAXIMUM_WEIGHT or (weight != 1 and weightless):
            raise SchemaError("a diagonal weight needs degree 2 and whole numbers up to 512")

    def _check_degrees(self) -> None:
        degrees = {len(names) for names in self.monomials}
        if self.frame.plain:
            if self.mixed or len(degrees) != 1 or not degrees <= set(range(1, HIGHEST_DEGREE + 1)):
                raise SchemaError(
                    "a moment request has one degree, 1 to 4; draw degrees one by one"
                )
            return
        if not degrees or (len(degrees) > 1 and not self.mixed):
            raise SchemaError("a moment request has one degree unless it is mixed")
        if max(degrees) > MOST_FACTORS or self.real_degree > HIGHEST_DEGREE:
            raise SchemaError("a moment has at most four numbers and eight features as factors")
        if () in self.monomials and not self.frame.complete:
            raise SchemaError("only complete cases are counted by a moment; ask for the row count")

    def _check_indicators(self) -> None:
        cells = self.frame.cells
        for names in self.monomials:
            columns = [cells[name].column for name in names if name in cells]
            if len(set(columns)) != len(columns):
                raise SchemaError(
                    "a moment names two cells of one column, or one cell twice: that sum is 0, or "
                    "the sum without the repeat; leave it out"
                )

    @classmethod
    def triangle(cls, frame: MomentFrame, diagonal_weight: Fraction = Fraction(1)) -> MomentRequest:
        """All squares and products of the frame's columns."""
        names = frame.columns
        pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i:])
        return cls(frame, pairs, diagonal_weight)

    @property
    def columns(self) -> tuple[str, ...]:
        """Numeric columns of the frame."""
        return self.frame.columns

    @property
    def degree(self) -> int:
        """Number of factors in each monomial (the most, where degrees are mixed)."""
        return max(len(names) for names in self.monomials)

    @property
    def real_degree(self) -> int:
        """Most factors of a monomial that are numbers."""
        cells = self.frame.cells
        return max(sum(name not in cells for name in names) for names in self.monomials)

    @property
    def grid(self) -> int:
        """Grid units in 1 for each factor of a plain frame, a power of two."""
        return 1 << grid_bits(self.degree)

    @property
    def whole(self) -> int:
        """Integer units in 1 of a sum: a sum of indicators alone counts rows, one by one."""
        if self.frame.plain:
            return 1 << (grid_bits(self.degree) * self.degree)
        return 1 << SUMMAND_BITS if self.real_degree else 1

    @property
    def multipliers(self) -> IntArray:
        """Whole factors on the exact sums that realise the diagonal weight with one σ."""
        weight = self.diagonal_weight
        diagonal = [len(names) == 2 and names[0] == names[1] for names in self.monomials]
        return cast(
            IntArray,
            np.where(diagonal, weight.numerator, weight.denominator).astype(np.int64),
        )

    @property
    def steps(self) -> FloatArray:
        """Scaled units in one unit of the noisy integers."""
        return cast(FloatArray, 1.0 / (self.multipliers * float(self.whole)))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        frame = self.frame
        return {
            "scales": [[name, scale.centre, scale.half_width] for name, scale in frame.scales],
            "clip_squared": None if frame.clip_squared is None else str(frame.clip_squared),
            "indicators": [[name, cell.column, cell.code] for name, cell in frame.indicators],
            "complete": frame.complete,
            "monomials": [list(names) for names in self.monomials],
            "diagonal_weight": str(self.diagonal_weight),
            "mixed": self.mixed,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MomentRequest:
        """Inverse of :meth:`to_dict`."""
        clip = plain["clip_squared"]
        frame = MomentFrame(
            tuple((name, Scale(float(c), float(h))) for name, c, h in plain["scales"]),
            None if clip is None else Fraction(clip),
            tuple((name, Indicator(column, code)) for name, column, code in plain["indicators"]),
            bool(plain["complete"]),
        )
        monomials = tuple(tuple(names) for names in plain["monomials"])
        return cls(frame, monomials, Fraction(plain["diagonal_weight"]), bool(plain["mixed"]))


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
