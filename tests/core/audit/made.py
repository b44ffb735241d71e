"""Worlds made of plain codes."""

from __future__ import annotations

import numpy as np

from core.audit.worlds import World
from core.schema import Column, Kind, Schema


def labelled(name, size, **more):
    """A categorical column of exactly this many cells, called v0, v1, …"""
    categories = tuple(f"v{i}" for i in range(size))
    settings = {"missing_label": "v0", "other_label": "v0", **more}
    return Column(name, Kind.CATEGORICAL, categories=categories, **settings)


def world_of(codes, columns=None, *, private=False, name="synthetic rows"):
    """A world of these codes; columns are declared as wide as their largest code by default."""
    codes = {key: np.asarray(value, dtype=np.int64) for key, value in codes.items()}
    if columns is None:
        columns = [labelled(key, int(value.max(initial=0)) + 1) for key, value in codes.items()]
    elif not isinstance(columns[0], Column):
        columns = [labelled(key, size) for key, size in zip(codes, columns, strict=True)]
    rows = len(next(iter(codes.values())))
    return World(name, Schema(tuple(columns)), codes, rows, private)


def random_world(generator, rows, sizes, **more):
    """Independent columns c0, c1, …"""
    codes = {f"c{i}": generator.integers(0, size, rows) for i, size in enumerate(sizes)}
    return world_of(codes, list(sizes), **more)
