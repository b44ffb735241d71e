"""Worlds made of plain codes."""

from __future__ import annotations

import numpy as np

from core.audit.worlds import World
from core.roles import Constraint
from core.schema import Column, Kind, Schema

RULE = Constraint(frozenset({"s"}), frozenset({"o"}), frozenset({"a"}))
BARE = Constraint(frozenset({"s"}), frozenset({"o"}))


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


def shuffled(world, seed=0):
    """Every column shuffled on its own: the same one-way tables, nothing else left."""
    generator = np.random.default_rng(seed)
    codes = {name: generator.permutation(column) for name, column in world.codes.items()}
    return World("shuffled rows", world.schema, codes, world.rows, world.private)


def chained_world(rows=2_000, columns=4, seed=0, **more):
    """Each column nearly repeats the one before."""
    generator = np.random.default_rng(seed)
    codes = {"c0": generator.integers(0, 5, rows)}
    for place in range(1, columns):
        fresh = generator.random(rows) < 0.05
        before = codes[f"c{place - 1}"]
        codes[f"c{place}"] = np.where(fresh, generator.integers(0, 5, rows), before)
    return world_of(codes, [5] * columns, **more)


def numeric_columns():
    return (
        Column("x", Kind.INTEGER, lower=0, upper=9, bins=5, missing_label="(gone)"),
        Column("y", Kind.REAL, lower=-1.0, upper=1.0, edges=(-1.0, 0.0, 0.5, 1.0)),
    )


def numeric_world(seed, rows=500):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 5, rows)
    y = np.minimum(x // 2 + (generator.random(rows) < 0.3), 2)
    missing = generator.random(rows) < 0.1
    codes = {"x": np.where(missing, 5, x), "y": np.where(generator.random(rows) < 0.1, 3, y)}
    return world_of(codes, numeric_columns())
