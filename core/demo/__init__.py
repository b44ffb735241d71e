"""Embedded demo tables with known truth: hiring, lending and admissions.

Made-up people drawn from structural causal models.  Each world has a legitimate path from the
protected column to the outcome through admissible ones, a proxy, and a biased direct effect, so
that an unconstrained tree takes the forbidden edge.  Privacy cost: none, nobody is in the data.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.demo import admissions, hiring, lending
from core.demo.world import DemoTruth, World
from core.errors import PlanError
from core.roles import Roles
from core.schema import Kind, Schema

__all__ = [
    "DEFAULT_ROWS",
    "DEFAULT_SEED",
    "DemoTruth",
    "changed_outcomes",
    "csv_bytes",
    "describe",
    "names",
    "roles",
    "schema",
    "table",
    "truth",
]

DEFAULT_ROWS = 20_000
DEFAULT_SEED = 0

_WORLDS = {world.name: world for world in (hiring.WORLD, lending.WORLD, admissions.WORLD)}


def _world(name: str) -> World:
    if name not in _WORLDS:
        raise PlanError(f"no demo is called {name!r}; choose one of {', '.join(_WORLDS)}")
    return _WORLDS[name]


def names() -> tuple[str, ...]:
    """Names of the demo worlds.

    >>> names()
    ('hiring', 'lending', 'admissions')
    """
    return tuple(_WORLDS)


def describe(name: str) -> str:
    """The world's story in one paragraph."""
    return _world(name).story


def schema(name: str) -> Schema:
    """Public declarations of the demo's columns; nothing in them was read off the rows."""
    return _world(name).schema


def roles(name: str) -> Roles:
    """The demo's own roles, with its proxy declared."""
    return _world(name).roles


def truth(name: str) -> DemoTruth:
    """The structural model behind the table: equations, graph, paths and effect sizes."""
    return _world(name).truth()


def table(
    name: str, rows: int = DEFAULT_ROWS, seed: int = DEFAULT_SEED, *, biased: bool = True
) -> pd.DataFrame:
    """Draw a demo table.

    Parameters
    ----------
    name
        One of :func:`names`.
    rows
        Number of rows, 0 or more.
    seed
        Same seed, same table.
    biased
        False draws the same people with the same luck in a world without the direct effect: only
        the outcome column can differ.

    Returns
    -------
    pandas.DataFrame
        Columns in schema order; missing values are empty, dates are timestamps.

    Raises
    ------
    PlanError
        Unknown name, or rows or seed that are not whole numbers of at least 0.
    """
    return _world(name).simulate(rows, seed, biased=biased)


def changed_outcomes(
    name: str, rows: int = DEFAULT_ROWS, seed: int = DEFAULT_SEED
) -> dict[str, float]:
    """Share of each protected group whose outcome the direct effect changed.

    Compares the two worlds person by person, which only a structural model allows.  A group
    without rows is left out.
    """
    outcome = _world(name).outcome
    with_effect, without = table(name, rows, seed), table(name, rows, seed, biased=False)
    changed = with_effect[outcome.column] != without[outcome.column]
    group = with_effect[outcome.protected]
    shares = changed.groupby(group).mean()
    labels = schema(name)[outcome.protected].categories
    return {label: float(shares[label]) for label in labels if label in shares.index}


def csv_bytes(name: str, rows: int = DEFAULT_ROWS, seed: int = DEFAULT_SEED) -> bytes:
    """The demo table as a CSV file: UTF-8 without mark, ISO dates, missing values empty.

    Same arguments, same bytes, on every system.
    """
    frame = table(name, rows, seed)
    for column in schema(name).columns:
        if column.kind is Kind.REAL:
            values = frame[column.name].to_numpy()
            text = np.char.mod(f"%.{column.decimals or 0}f", values).astype(object)
            text[np.isnan(values)] = ""
            frame[column.name] = text
        elif column.kind is Kind.DATE:
            frame[column.name] = frame[column.name].dt.strftime("%Y-%m-%d")
    return frame.to_csv(index=False, lineterminator="\n").encode()
