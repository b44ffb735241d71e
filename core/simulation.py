"""Seeded noise and throw-away ledgers: for demos, teaching, tests and benchmarks.  NOT PRIVATE.

Whoever knows the seed can subtract the noise.  Provenance follows the noise: every release made
here is stamped ``SIMULATED, NOT PRIVATE``, and a vault refuses seeded noise for a population that
is not simulated.  Outside ``core.private`` this module and the tests are the only ones that take
a coded table as an argument.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from core.moments import FloatArray, IntArray
from core.private.ledger import Ledger, Population
from core.private.noise import GaussianDraw, SelectionDraw
from core.private.scales import gaussian_rho, gaussian_sigma, selection_rho, selection_scale
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.vault import Vault
from core.private.zcdp import as_rho
from core.releases import Relation, Unit

#: Beyond this σ a rounded normal and the discrete Gaussian cannot be told apart by simulations.
TABLE_SIGMA = 30.0


class SeededNoise:
    """The laws of the real noise from a seeded generator: same scales, same debits, NOT PRIVATE.

    The discrete Gaussian is drawn from its cumulative table up to σ = 30, and as a rounded normal
    beyond; selection is the exponential mechanism by Gumbel noise.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    @property
    def name(self) -> str:
        """What it is, for the statement."""
        return "seeded discrete Gaussian / Gumbel maximum (simulation, not private)"

    @property
    def simulated(self) -> bool:
        """Always."""
        return True

    def gaussian(
        self, values: IntArray, *, sensitivity_squared: Fraction, rho: Fraction
    ) -> GaussianDraw:
        """Discrete Gaussian noise on every value; scale and debit as in the real noise."""
        sigma = gaussian_sigma(sensitivity_squared, rho)
        noisy = values + discrete_gaussian(self._generator, sigma, values.shape)
        return GaussianDraw(noisy, sigma, gaussian_rho(sensitivity_squared, sigma))

    def select(self, scores: IntArray, *, sensitivity: int, rho: Fraction) -> SelectionDraw:
        """Index with probability proportional to ``exp(score / scale)``."""
        scale = selection_scale(sensitivity, rho)
        noisy = scores / scale + self._generator.gumbel(size=scores.shape)
        return SelectionDraw(int(noisy.argmax()), scale, selection_rho(sensitivity, scale))


def discrete_gaussian(
    generator: np.random.Generator, sigma: float, shape: tuple[int, ...]
) -> IntArray:
    """Integers with P(z) proportional to ``exp(-z²/(2σ²))``, from a seeded generator."""
    if sigma > TABLE_SIGMA:
        rounded: IntArray = np.rint(generator.normal(0.0, sigma, shape)).astype(np.int64)
        return rounded
    reach = max(math.ceil(12 * sigma), 1)
    support = np.arange(-reach, reach + 1, dtype=np.int64)
    mass: FloatArray = np.exp(-(support.astype(np.float64) ** 2) / (2 * sigma**2))
    cumulative = np.cumsum(mass)
    uniform = generator.random(shape) * cumulative[-1]
    drawn: IntArray = support[np.searchsorted(cumulative, uniform, side="right")]
    return drawn


def simulated_vault(
    table: CodedTable,
    *,
    seed: int,
    relation: Relation = Relation.ADD_REMOVE,
    unit: Unit | None = None,
    cap: str | int | Fraction = "1000000",
) -> Vault:
    """A vault with seeded noise, a simulated population and a ledger that lives in memory.

    Parameters
    ----------
    table
        Coded rows, of a demo, a test or a benchmark.
    seed
        Of the noise.
    unit
        The table's own unit unless given.
    cap
        Of the throw-away ledger.
    """
    population = Population(
        name="simulation",
        relation=relation,
        unit=table.unit if unit is None else unit,
        cap=as_rho(cap),
        simulated=True,
    )
    ledger = Ledger("sqlite://")
    ledger.create_population(population)
    return Vault(InMemorySource(table), population, ledger, SeededNoise(seed))
