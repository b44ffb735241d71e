"""Small numeric tables, and releases of them with seeded noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.pace.select import release_covariance
from core.releases import Relation
from core.simulation import simulated_vault
from tests.core.private.tables import numeric

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD, REPLACE)


def names_of(columns):
    return [f"x{index:02d}" for index in range(columns)]


def correlated(rows, columns, seed, *, scale=0.3):
    """Rows whose columns form a chain of correlations, within the box for the most part."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(rows, columns))
    for index in range(1, columns):
        values[:, index] = 0.7 * values[:, index - 1] + 0.7 * values[:, index]
    return np.clip(scale * values, -1, 1)


def coded(values):
    """Columns that cannot miss by declaration, unless a value does."""
    named = dict(zip(names_of(values.shape[1]), values.T, strict=True))
    return numeric(named, blanks=bool(np.isnan(values).any()))


def zero_means(columns):
    return dict.fromkeys(names_of(columns), 0.0)


def released(values, rho, *, seed=0, relation=ADD, means=None, progress=None, **settings):
    """A release of a matrix of rows, with public zero means unless given."""
    table = coded(np.asarray(values, dtype=np.float64))
    vault = simulated_vault(table, seed=seed, relation=relation, cap="1000000000")
    grant = vault.grant(Fraction(rho), "covariance", "request-1")
    columns = np.asarray(values).shape[1]
    return release_covariance(
        grant,
        table.schema,
        names_of(columns),
        means=zero_means(columns) if means is None else means,
        progress=progress,
        **settings,
    )
