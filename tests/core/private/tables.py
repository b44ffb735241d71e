"""Coded tables for tests, made without the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.private.table import CodedTable
from core.releases import Unit
from core.schema import Column, Kind, Missing, Schema


def categorical(name: str, size: int) -> Column:
    """A column of exactly ``size`` cells, the last of which takes everything else."""
    labels = tuple(f"{name}{index}" for index in range(size))
    return Column(
        name,
        Kind.CATEGORICAL,
        categories=labels,
        other_label=labels[-1],
        missing=Missing.CATEGORY,
        missing_label=labels[-1],
    )


def coded(sizes: Mapping[str, int], codes: Mapping[str, Sequence[int]]) -> CodedTable:
    """A table of categorical columns from cell codes."""
    schema = Schema(tuple(categorical(name, size) for name, size in sizes.items()))
    rows = len(next(iter(codes.values())))
    arrays = {
        name: np.asarray(codes[name], dtype=np.min_scalar_type(sizes[name] - 1)) for name in sizes
    }
    return CodedTable(schema, arrays, {}, rows)


def random_coded(sizes: Mapping[str, int], rows: int, seed: int) -> CodedTable:
    """Uniform codes."""
    generator = np.random.default_rng(seed)
    return coded(sizes, {name: generator.integers(0, size, rows) for name, size in sizes.items()})


def numeric(
    values: Mapping[str, Sequence[float]], *, bound: float = 1.0, blanks: bool = True
) -> CodedTable:
    """A table of real columns within ±bound, two bins each; NaN is missing, if there are blanks.

    The numbers go in as they are, also beyond the bounds: moments must clip for themselves.
    """
    filled = {} if blanks else {"missing": Missing.CONSTANT, "missing_constant": 0.0}
    schema = Schema(
        tuple(
            Column(name, Kind.REAL, lower=-bound, upper=bound, bins=2, **filled) for name in values
        )
    )
    arrays = {name: np.asarray(column, dtype=np.float64) for name, column in values.items()}
    codes = {
        name: np.where(np.isnan(array), 2, array >= 0).astype(np.uint8)
        for name, array in arrays.items()
    }
    return CodedTable(schema, codes, arrays, len(next(iter(arrays.values()))), Unit())
