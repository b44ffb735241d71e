"""Frozen, noisy results and where they came from.

Everything here is already private: it may be stored, drawn and exported.  A release suffices for
every later step; nothing in it changes after construction.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.archives import DAMAGE, open_archive
from core.errors import JustitiaError, ReadingError, ReleaseError
from core.plain_data import json_value
from core.provenance import Provenance, Relation, Unit
from core.roles import Roles
from core.schema import Schema

__all__ = [
    "SCORE_GRID",
    "FloatArray",
    "ForbiddenPair",
    "IntArray",
    "NoisyMarginal",
    "NoisyScores",
    "PairReference",
    "Provenance",
    "Recoding",
    "Relation",
    "SelectionStep",
    "TreeRelease",
    "Unit",
    "digest",
    "estimated_total",
    "pack_bytes",
    "unpack_bytes",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Scores and references live on this grid (``privacy.md``: exact multiples of 2**-10).
SCORE_GRID = 1024


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """One noisy contingency table.

    Attributes
    ----------
    clique
        Column names, one an axis of ``values``.
    values
        Noisy integer counts (may be negative).
    sigma
        Standard deviation parameter of the discrete Gaussian, per measured cell.
    rho
        This table's part of the debit.
    """

    clique: tuple[str, ...]
    values: IntArray
    sigma: float
    rho: Fraction


@dataclass(frozen=True, eq=False)
class NoisyScores:
    """Noisy pair scores in rows (already divided by the grid), with their common sigma."""

    pairs: tuple[tuple[str, str], ...]
    values: FloatArray
    sigma: float
    rho: Fraction


@dataclass(frozen=True, eq=False)
class Recoding:
    """Map from declared cells to compressed cells, chosen from noisy counts only.

    ``maps[name][declared_code]`` is the compressed code.  Columns without a map stay as they are.
    """

    maps: Mapping[str, IntArray] = field(default_factory=dict)

    def size(self, name: str, declared: int) -> int:
        """Number of compressed cells of a column with ``declared`` declared cells."""
        return int(self.maps[name].max()) + 1 if name in self.maps else declared

    def members(self, name: str, declared: int) -> tuple[tuple[int, ...], ...]:
        """Declared codes behind each compressed cell."""
        codes = self.maps[name] if name in self.maps else np.arange(declared)
        return tuple(
            tuple(int(code) for code in np.flatnonzero(codes == cell))
            for cell in range(self.size(name, declared))
        )

    def merged_cell(self, name: str) -> int | None:
        """The compressed cell that stands for several declared ones, or None."""
        if name not in self.maps:
            return None
        counts = np.bincount(self.maps[name])
        return int(counts.argmax()) if counts.max() > 1 else None


@dataclass(frozen=True, eq=False)
class PairReference:
    """Frozen independence model: total times the outer product of one-way shares.

    Built from released values only.  ``grid_table`` rounds it to the score grid, so that scores
    are exact multiples of ``1 / SCORE_GRID``.
    """

    total: float
    shares: Mapping[str, FloatArray]
    recoding: Recoding = field(default_factory=Recoding)

    def grid_table(self, pair: tuple[str, str]) -> IntArray:
        """Expected pair table in units of ``1 / SCORE_GRID``, as integers."""
        table = self.total * np.outer(self.shares[pair[0]], self.shares[pair[1]])
        return cast(IntArray, np.rint(table * SCORE_GRID).astype(np.int64))


@dataclass(frozen=True)
class ForbiddenPair:
    """A pair that can no longer be joined, and why, in words."""

    pair: tuple[str, str]
    constraint: str
    reason: str


@dataclass(frozen=True)
class SelectionStep:
    """One event of the selection log.

    Attributes
    ----------
    chosen
        The pair joined in this step, names sorted.
    candidates
        How many pairs could have been chosen.
    components
        Connected components after the step, each sorted, sorted by first name.
    forbidden
        Pairs that this step made impossible because of a constraint.
    """

    index: int
    chosen: tuple[str, str]
    candidates: int
    components: tuple[tuple[str, ...], ...]
    forbidden: tuple[ForbiddenPair, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "index": self.index,
            "chosen": list(self.chosen),
            "candidates": self.candidates,
            "components": [list(component) for component in self.components],
            "forbidden": [_forbidden_dict(pair) for pair in self.forbidden],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SelectionStep:
        """Inverse of :meth:`to_dict`."""
        return cls(
            int(plain["index"]),
            (plain["chosen"][0], plain["chosen"][1]),
            int(plain["candidates"]),
            tuple(tuple(component) for component in plain["components"]),
            tuple(_forbidden_from(item) for item in plain["forbidden"]),
        )


def estimated_total(one_way: Sequence[NoisyMarginal]) -> float:
    """Row count from noisy tables on declared cells, inverse-variance weighted (may be negative).

    Every table's sum is the same count plus noise of variance cells * sigma**2.
    """
    weights = [1.0 / (marginal.values.size * marginal.sigma**2) for marginal in one_way]
    sums = [float(marginal.values.sum()) for marginal in one_way]
    return float(np.average(sums, weights=weights))


def _forbidden_dict(pair: ForbiddenPair) -> dict[str, Any]:
    return {"pair": list(pair.pair), "constraint": pair.constraint, "reason": pair.reason}


def _forbidden_from(plain: Mapping[str, Any]) -> ForbiddenPair:
    return ForbiddenPair((plain["pair"][0], plain["pair"][1]), plain["constraint"], plain["reason"])


@dataclass(frozen=True, eq=False)
class TreeRelease:
    """Everything that PrivCI paid for: one-ways, the step log, two-ways of the chosen edges.

    Attributes
    ----------
    structure
        ``mst``, ``privci``, ``privci-exact`` or ``prefair``.
    schema
        Declarations of the modelled columns, in file order.
    roles
        Roles and constraints in force.
    split
        Shares of rho for one-way, selection and two-way measurements.
    forbidden
        Pairs that the constraints forbid before the first step.
    steps
        The selection log; ``edges`` reads it.
    one_way
        Noisy one-way tables on declared cells, sorted by name.
    recoding
        Compression chosen from ``one_way``.
    two_way
        Noisy two-way tables of the edges on compressed cells, in edge order.
    scores
        Noisy scores of all pairs (``privci-exact`` only).
    partial
        True when a cancel kept what was measured up to then.
    public_rows
        The row count where it is public (replace_one); None where it is protected.
    """

    provenance: Provenance
    structure: str
    schema: Schema
    roles: Roles
    split: tuple[Fraction, Fraction, Fraction]
    forbidden: tuple[ForbiddenPair, ...]
    steps: tuple[SelectionStep, ...]
    one_way: tuple[NoisyMarginal, ...]
    recoding: Recoding
    two_way: tuple[NoisyMarginal, ...]
    scores: NoisyScores | None = None
    partial: bool = False
    public_rows: int | None = None

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Chosen pairs in order."""
        return tuple(step.chosen for step in self.steps)

    @property
    def total(self) -> float:
        """Row count: the public one, or inverse-variance weighted from uncompressed one-ways."""
        if self.public_rows is not None:
            return float(self.public_rows)
        return estimated_total(self.one_way)

    # -- bytes -----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """NPZ with a JSON header; the same release gives the same bytes."""
        arrays: dict[str, NDArray[Any]] = {}
        header = {
            "type": "TreeRelease",
            "version": 1,
            "provenance": self.provenance.to_dict(),
            "structure": self.structure,
            "schema": self.schema.to_dict(),
            "roles": self.roles.to_dict(),
            "split": [str(part) for part in self.split],
            "forbidden": [_forbidden_dict(pair) for pair in self.forbidden],
            "steps": [step.to_dict() for step in self.steps],
            "one_way": _pack(self.one_way, "one_way", arrays),
            "two_way": _pack(self.two_way, "two_way", arrays),
            "recoding": sorted(self.recoding.maps),
            "partial": self.partial,
            "public_rows": self.public_rows,
            "scores": None,
        }
        for index, name in enumerate(sorted(self.recoding.maps)):
            arrays[f"recoding_{index}"] = self.recoding.maps[name]
        if self.scores is not None:
            header["scores"] = {
                "pairs": [list(pair) for pair in self.scores.pairs],
                "sigma": self.scores.sigma,
                "rho": str(self.scores.rho),
            }
            arrays["scores"] = self.scores.values
        return pack_bytes(header, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> TreeRelease:
        """Inverse of :meth:`to_bytes`; pickles and damaged content are refused.

        Raises
        ------
        ReleaseError
            The bytes are no release of this type.
        """
        header, arrays = unpack_bytes(blob, "TreeRelease")
        try:
            return cls._from_plain(header, arrays)
        except (JustitiaError, *NONSENSE) as error:
            raise ReleaseError(_DAMAGED) from error

    @classmethod
    def _from_plain(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> TreeRelease:
        scores = header["scores"]
        return cls(
            provenance=Provenance.from_dict(header["provenance"]),
            structure=header["structure"],
            schema=Schema.from_dict(header["schema"]),
            roles=Roles.from_dict(header["roles"]),
            split=cast(
                tuple[Fraction, Fraction, Fraction], tuple(Fraction(x) for x in header["split"])
            ),
            forbidden=tuple(_forbidden_from(item) for item in header["forbidden"]),
            steps=tuple(SelectionStep.from_dict(item) for item in header["steps"]),
            one_way=_unpack(header["one_way"], "one_way", arrays),
            recoding=Recoding(
                {name: arrays[f"recoding_{i}"] for i, name in enumerate(header["recoding"])}
            ),
            two_way=_unpack(header["two_way"], "two_way", arrays),
            scores=None
            if scores is None
            else NoisyScores(
                tuple((a, b) for a, b in scores["pairs"]),
                arrays["scores"],
                float(scores["sigma"]),
                Fraction(scores["rho"]),
            ),
            partial=bool(header["partial"]),
            public_rows=header["public_rows"],
        )


def _pack(
    marginals: Sequence[NoisyMarginal], prefix: str, arrays: dict[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    for index, marginal in enumerate(marginals):
        arrays[f"{prefix}_{index}"] = marginal.values
    return [
        {"clique": list(item.clique), "sigma": item.sigma, "rho": str(item.rho)}
        for item in marginals
    ]


def _unpack(
    heads: Sequence[Mapping[str, Any]], prefix: str, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NoisyMarginal, ...]:
    return tuple(
        NoisyMarginal(
            tuple(head["clique"]),
            arrays[f"{prefix}_{index}"],
            float(head["sigma"]),
            Fraction(head["rho"]),
        )
        for index, head in enumerate(heads)
    )


#: What values of the wrong kind or shape raise where a release is put together from them.
NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_DAMAGED = "the stored release is damaged; restore the store's backup"
#: A release unpacks to at most so many bytes.
MAXIMUM_BYTES = 1_000_000_000


def pack_bytes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Deterministic NPZ: the JSON header as bytes beside the arrays."""
    text = json.dumps(header, sort_keys=True, ensure_ascii=False, allow_nan=False)
    buffer = io.BytesIO()
    content = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    np.savez_compressed(buffer, **cast(Any, content))
    return buffer.getvalue()


def unpack_bytes(blob: bytes, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Inverse of :func:`pack_bytes`; refuses pickles and other types."""
    try:
        with open_archive(blob, "the stored release", MAXIMUM_BYTES):
            pass  # it unpacks to no more than it may
        with np.load(io.BytesIO(blob), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json_value(arrays.pop("header").tobytes().decode(), "the stored release")
        found = header.get("type")
    except (ReadingError, AttributeError, *DAMAGE) as error:
        raise ReleaseError(_DAMAGED) from error
    if found != kind:
        raise ReleaseError(f"the stored release is a {str(found)[:40]}, not a {kind}")
    return header, arrays


def digest(blob: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(blob).hexdigest()
