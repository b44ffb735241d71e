"""What an analysis paid for, frozen: noisy tables and sums as measured, and what they are of.

A release suffices for every later step: :func:`problems` turns it into the statistics that
posteriors are drawn from, and :func:`core.pumba.wording.statement_lines` says in words what was
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError, JustitiaError, ReleaseError
from core.moments import MomentFrame, MomentRequest, Monomial, NoisyMoments
from core.provenance import Provenance
from core.pumba.specification import (
    AnalysisKind,
    AnalysisSpec,
    group_labels,
    indicator_name,
)
from core.pumba.wording import statement_lines
from core.releases import NONSENSE, NoisyMarginal, pack_bytes, unpack_bytes
from core.schema import Schema
from core.statistics import Family, NoiseLaw, NoisyStatistic

if TYPE_CHECKING:
    from core.pumba.gram import NoisyGram
    from core.pumba.means import BoundedMean
    from core.pumba.noisy_table import NoisyTable

__all__ = [
    "StatisticsRelease",
    "noisy_cells",
    "noisy_sums",
    "problems",
    "regressors",
    "statement_lines",
]

TYPE = "StatisticsRelease"
VERSION = 1


@dataclass(frozen=True, eq=False)
class StatisticsRelease:
    """Everything that an analysis paid for.

    Attributes
    ----------
    schema
        Declarations of the columns in use.
    split
        (draw, share of the budget), in order.
    tables
        Noisy contingency tables on declared cells.
    sums
        (draw, noisy sums).
    public_rows
        The number of complete rows (for a table: of all rows) where it is public, else None.
    shared_rows
        The noisy number of rows that an earlier release paid for, where the question uses it.
    partial
        True when a cancel kept what was measured up to then.
    """

    provenance: Provenance
    spec: AnalysisSpec
    schema: Schema
    split: tuple[tuple[str, Fraction], ...]
    tables: tuple[NoisyMarginal, ...] = ()
    sums: tuple[tuple[str, NoisyMoments], ...] = ()
    public_rows: int | None = None
    shared_rows: NoisyStatistic | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        """Refuse answers that do not belong to the question."""
        draws = [*("table" for _ in self.tables), *(name for name, _ in self.sums)]
        if draws != [name for name, _ in self.split][: len(draws)]:
            raise ReleaseError("the draws of a release do not follow its split")
        for table in self.tables:
            shape = tuple(self.schema[name].size for name in table.clique)
            if table.clique != self.spec.clique or table.values.shape != shape:
                raise ReleaseError("a table of a release does not fit its declarations")
        for _, moments in self.sums:
            if moments.units.shape != (len(moments.request.monomials),):
                raise ReleaseError("the sums of a release do not fit what was asked")

    @property
    def measured(self) -> dict[Monomial, NoisyStatistic]:
        """Every noisy sum, by monomial, in scaled units."""
        return {
            names: statistic
            for _, moments in self.sums
            for names, statistic in zip(moments.request.monomials, noisy_sums(moments), strict=True)
        }

    # -- bytes -----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """NPZ with a JSON header; the same release gives the same bytes."""
        arrays: dict[str, NDArray[Any]] = {}
        for place, table in enumerate(self.tables):
            arrays[f"table_{place}"] = table.values
        for place, (_, moments) in enumerate(self.sums):
            arrays[f"sums_{place}"] = moments.units
        header = {
            "type": TYPE,
            "version": VERSION,
            "provenance": self.provenance.to_dict(),
            "spec": self.spec.to_dict(),
            "schema": self.schema.to_dict(),
            "split": [[name, str(share)] for name, share in self.split],
            "tables": [
                {"clique": list(table.clique), "sigma": table.sigma, "rho": str(table.rho)}
                for table in self.tables
            ],
            "sums": [
                {
                    "name": name,
                    "request": moments.request.to_dict(),
                    "sigma": moments.unit_sigma,
                    "rho": str(moments.rho),
                }
                for name, moments in self.sums
            ],
            "public_rows": self.public_rows,
            "shared_rows": _statistic_dict(self.shared_rows),
            "partial": self.partial,
        }
        return pack_bytes(header, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> StatisticsRelease:
        """Inverse of :meth:`to_bytes`; pickles and damaged content are refused.

        Raises
        ------
        ReleaseError
            The bytes are no release of this type.
        """
        header, arrays = unpack_bytes(blob, TYPE)
        if header.get("version") != VERSION:
            raise ReleaseError("the stored statistics are of another version of this program")
        try:
            return cls._from_plain(header, arrays)
        except ReleaseError:
            raise
        except (JustitiaError, *NONSENSE) as error:
            raise ReleaseError(
                "the stored statistics are damaged; restore the store's backup"
            ) from error

    @classmethod
    def _from_plain(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> StatisticsRelease:
        spec, schema = AnalysisSpec.from_dict(header["spec"]), Schema.from_dict(header["schema"])
        spec.check(schema)
        rows = header["public_rows"]
        return cls(
            provenance=Provenance.from_dict(header["provenance"]),
            spec=spec,
            schema=schema,
            split=tuple((str(name), Fraction(share)) for name, share in header["split"]),
            tables=tuple(
                NoisyMarginal(
                    tuple(head["clique"]),
                    _integers(arrays[f"table_{place}"]),
                    _scale(head["sigma"]),
                    Fraction(head["rho"]),
                )
                for place, head in enumerate(header["tables"])
            ),
            sums=tuple(
                (
                    str(head["name"]),
                    NoisyMoments(
                        MomentRequest.from_dict(head["request"]),
                        _integers(arrays[f"sums_{place}"]),
                        _scale(head["sigma"]),
                        Fraction(head["rho"]),
                    ),
                )
                for place, head in enumerate(header["sums"])
            ),
            public_rows=None if rows is None else _whole(rows),
            shared_rows=_statistic_from(header["shared_rows"]),
            partial=bool(header["partial"]),
        )


def _integers(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype != np.int64:
        raise ReleaseError("the stored statistics hold numbers of the wrong type")
    return values


def _scale(value: Any) -> float:
    if not isinstance(value, float | int) or not (math.isfinite(value) and value > 0):
        raise ReleaseError("the stored statistics hold a noise scale that is none")
    return float(value)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ReleaseError("the stored number of rows is none")
    return value


def _statistic_dict(statistic: NoisyStatistic | None) -> dict[str, Any] | None:
    if statistic is None:
        return None
    law = statistic.law
    return {
        "value": statistic.value,
        "family": law.family.value,
        "scale": law.scale,
        "lattice": law.lattice,
        "clamped": list(statistic.clamped),
    }


def _statistic_from(plain: Mapping[str, Any] | None) -> NoisyStatistic | None:
    if plain is None:
        return None
    law = NoiseLaw(Family(plain["family"]), float(plain["scale"]), float(plain["lattice"]))
    low, high = plain["clamped"]
    return NoisyStatistic(float(plain["value"]), law, (low, high))


# -- problems ------------------------------------------------------------------------------


def noisy_sums(moments: NoisyMoments) -> tuple[NoisyStatistic, ...]:
    """Sums of scaled products with their discrete Gaussian laws, one a monomial."""
    return tuple(
        NoisyStatistic(
            float(unit * step),
            NoiseLaw(Family.DISCRETE_GAUSSIAN, float(moments.unit_sigma * step), float(step)),
        )
        for unit, step in zip(moments.units, moments.request.steps, strict=True)
    )


def noisy_cells(table: NoisyMarginal) -> tuple[NoisyStatistic, ...]:
    """Cells of a table with their discrete Gaussian law, in C order."""
    law = NoiseLaw(Family.DISCRETE_GAUSSIAN, table.sigma)
    return tuple(NoisyStatistic(float(value), law) for value in table.values.ravel())


def problems(release: StatisticsRelease) -> tuple[NoisyTable | BoundedMean | NoisyGram, ...]:
    """What posteriors are drawn from; costs nothing.

    One table (``proportion``, ``table``), one mean for all rows or each group in order (``mean``,
    ``difference``), or one Gram matrix (``regression``, ``correlation``).  Sums are of numbers
    scaled to [-1, 1] about the middle of their bounds, over complete rows.

    Raises
    ------
    EstimationError
        A cancel came before all that the question needs was measured.
    """
    if release.spec.counts:
        return (_table(release),)
    found = release.measured
    frame = release.spec.frame(release.schema)
    needed: dict[str, Sequence[Monomial]] = {"sums": _sum_names(release.spec, frame)}
    if release.spec.kind in {AnalysisKind.REGRESSION, AnalysisKind.CORRELATION}:
        needed["sums of squares and products"] = _product_names(frame)
    for words, monomials in needed.items():
        if not set(monomials) <= set(found):
            raise EstimationError(
                f"analysis {release.spec.name!r}: it was cancelled before the {words} were measured"
            )
    if release.spec.kind in {AnalysisKind.MEAN, AnalysisKind.DIFFERENCE}:
        groups = _groups(release.spec, release.schema)
        return tuple(_mean(release, frame, group, found) for group in groups)
    return (_gram(release, frame, found),)


def _groups(spec: AnalysisSpec, schema: Schema) -> list[Monomial]:
    """Indicators of the groups, in the order in which the question gives them."""
    if spec.by is None:
        return [()]
    return [(indicator_name(spec.by, label),) for label in group_labels(spec, schema)]


def _sum_names(spec: AnalysisSpec, frame: MomentFrame) -> list[Monomial]:
    if spec.by is None:
        return [(name,) for name in frame.features]
    return [tuple(sorted((name, spec.outcome or ""))) for name, _ in frame.indicators]


def _product_names(frame: MomentFrame) -> list[tuple[str, str]]:
    """Squares and products that no tie between indicators gives away."""
    names, cells = frame.features, frame.cells
    return [
        (a, b)
        for place, a in enumerate(names)
        for b in names[place:]
        if not (a in cells and b in cells and cells[a].column == cells[b].column)
    ]


def _table(release: StatisticsRelease) -> NoisyTable:
    from core.pumba.noisy_table import NoisyTable

    if not release.tables:
        raise EstimationError(f"analysis {release.spec.name!r}: its table was never measured")
    (table,) = release.tables
    axes = tuple((name, release.schema[name].cells) for name in table.clique)
    return NoisyTable(axes=axes, cells=noisy_cells(table), total=release.public_rows)


def _count(
    release: StatisticsRelease, group: Monomial, found: Mapping[Monomial, NoisyStatistic]
) -> int | NoisyStatistic:
    """Complete rows (of a group): public, shared or measured."""
    if not group and release.public_rows is not None:
        return release.public_rows
    if not group and release.shared_rows is not None:
        return release.shared_rows
    if group not in found:
        raise EstimationError(f"analysis {release.spec.name!r}: its rows were never counted")
    return found[group]


def _mean(
    release: StatisticsRelease,
    frame: MomentFrame,
    group: Monomial,
    found: Mapping[Monomial, NoisyStatistic],
) -> BoundedMean:
    from core.pumba.means import BoundedMean

    column = release.spec.outcome
    assert column is not None
    scale = dict(frame.scales)[column]

    def power(degree: int) -> NoisyStatistic | None:
        return found.get(tuple(sorted((*group, *(column,) * degree))))

    total = power(1)
    assert total is not None
    return BoundedMean(
        name=f"{column} ({group[0]})" if group else column,
        lower=-1.0,
        upper=1.0,
        count=_count(release, group, found),
        total=total,
        squares=power(2),
        quartics=power(4) if power(2) is not None else None,
        origin=scale.centre,
        unit=scale.half_width,
    )


def _gram(
    release: StatisticsRelease, frame: MomentFrame, found: Mapping[Monomial, NoisyStatistic]
) -> NoisyGram:
    from core.pumba.gram import NoisyGram
    from core.pumba.gram_variable import GramVariable

    cells, scales = frame.cells, dict(frame.scales)
    variables = [
        GramVariable(name, 0.0, 1.0, indicator=True, exclusive=cells[name].column)
        if name in cells
        else GramVariable(name, -1.0, 1.0, origin=scales[name].centre, unit=scales[name].half_width)
        for name in _ordered(release.spec, release.schema, frame)
    ]
    higher = {names: found[names] for names in found if len(names) > 2}
    degrees = {len(names) for names in higher}
    return NoisyGram(
        variables=tuple(variables),
        count=_count(release, (), found),
        sums={name: found[(name,)] for name in frame.features},
        products={names: found[names] for names in _product_names(frame)},
        # A cancel may have come between the two degrees, and one alone does not serve.
        fourth=higher if degrees == {3, 4} else {},
    )


def _ordered(spec: AnalysisSpec, schema: Schema, frame: MomentFrame) -> Sequence[str]:
    """Features as the question names them: predictors with their categories, then the outcome."""
    named = list(spec.variables)
    for column in spec.predictors:
        inside = {cell.code: name for name, cell in frame.indicators if cell.column == column}
        named += [inside[code] for code in sorted(inside)] or [column]
    return named if spec.outcome is None else [*named, spec.outcome]


def regressors(release: StatisticsRelease) -> tuple[str, ...]:
    """Names of a regression's predictors among the Gram matrix' variables, in order."""
    frame = release.spec.frame(release.schema)
    return tuple(_ordered(release.spec, release.schema, frame)[:-1])
