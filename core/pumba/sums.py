"""Stage 1 for bounded data: the sums of z, z² and z⁴ given their noisy releases, exactly.

Given S2 the support's slices for S1 and for S4 are intervals, and S1 and S4 are independent.  So
S2 is drawn from its marginal, whose density is its own likelihood times the other two's masses on
their slices, and then the others from truncated laws.  All laws of noise here are log-concave and
the support is convex; so the marginals are log-concave too, which is what the grid relies on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.errors import StatisticError
from core.pumba.laws import FloatArray, linear_quantile, open_uniform
from core.pumba.likelihoods import LatticeLikelihood, Likelihood

IndexArray = NDArray[np.int64]
LogDensity = Callable[[FloatArray], FloatArray]

#: Nodes of the search, and of the two halves of the final grid, for draws and for the mass alone.
SEARCH, HALF, ROUGH = 65, 513, 129
#: A log density this far below its maximum is left out.
DROP = 45.0
#: Quantiles within a cell keep this distance from its ends, of which logarithms are infinite.
EDGE = 2.0**-53
SEARCHES = 60


@dataclass(frozen=True)
class Support:
    """Which sums ``n`` values in [lower, upper] can have."""

    lower: float
    upper: float

    def sums(self, n: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of S1."""
        return n * self.lower, n * self.upper

    def squares(self, n: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of S2, whatever S1."""
        largest = max(self.lower**2, self.upper**2)
        inside = self.lower <= 0 <= self.upper
        smallest = 0.0 if inside else min(self.lower**2, self.upper**2)
        return n * smallest, n * largest

    def sums_given(self, n: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of S1 given S2: S1² <= n S2 and S2 <= (lower + upper) S1 - n lower upper."""
        root = np.sqrt(n * squares)
        low, high = np.maximum(n * self.lower, -root), np.minimum(n * self.upper, root)
        slope = self.lower + self.upper
        if abs(slope) > 1e-12 * (self.upper - self.lower):
            edge = (squares + n * self.lower * self.upper) / slope
            if slope > 0:
                low = np.maximum(low, edge)
            else:
                high = np.minimum(high, edge)
        # At the ends of S2 the slice is a point, which rounding may turn inside out.
        return np.minimum(low, high), high

    def quartics_given(self, n: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of S4 given S2: S2² / n <= S4 <= max(z²) S2."""
        largest = max(self.lower**2, self.upper**2)
        high = largest * squares
        return np.minimum(squares**2 / n, high), high


@dataclass(frozen=True, eq=False)
class SumProblem:
    """Likelihoods of the released sums, and the support."""

    support: Support
    total: Likelihood
    squares: Likelihood | None = None
    quartics: Likelihood | None = None

    def log_density(self, n: FloatArray) -> LogDensity:
        """Of S2's marginal for each ``n`` (rows, 1), up to one constant for all n."""
        if self.squares is None:
            raise StatisticError("no sum of squares was released")
        own = self.squares

        def evaluate(squares: FloatArray) -> FloatArray:
            log = own.log(squares) + self.total.log_mass(*self.support.sums_given(n, squares))
            if self.quartics is not None:
                log = log + self.quartics.log_mass(*self.support.quartics_given(n, squares))
            return log

        return evaluate

    def log_evidence(self, n: FloatArray) -> FloatArray:
        """Log mass of the releases under each ``n`` (rows,), the flat law on the support."""
        if self.squares is None:
            return self.total.log_mass(*self.support.sums(n))
        return self._grid(n, ROUGH).log_total

    def draw(self, n: FloatArray, draws: int, generator: np.random.Generator) -> FloatArray:
        """(rows, draws, k): k sums, for each ``n`` (rows,)."""
        rows = n[:, None]
        shape = (len(n), draws)
        if self.squares is None:
            low, high = (np.broadcast_to(end, shape) for end in self.support.sums(rows))
            return self.total.draw(low, high, open_uniform(generator, shape))[..., None]
        row = np.broadcast_to(np.arange(len(n))[:, None], shape)
        squares = self._grid(n).draw(row, open_uniform(generator, shape))
        return self._given(rows, squares, generator)

    def draw_mixed(
        self, n: FloatArray, row: IndexArray, generator: np.random.Generator
    ) -> FloatArray:
        """(draws, k): one draw for each entry of ``row``, an index into ``n`` (rows,)."""
        if self.squares is None:
            low, high = self.support.sums(n[row])
            return self.total.draw(low, high, open_uniform(generator, row.shape))[..., None]
        squares = self._grid(n).draw(row, open_uniform(generator, row.shape))
        return self._given(n[row], squares, generator)

    def _given(
        self, n: FloatArray, squares: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        uniform = open_uniform(generator, squares.shape)
        columns = [self.total.draw(*self.support.sums_given(n, squares), uniform), squares]
        if self.quartics is not None:
            uniform = open_uniform(generator, squares.shape)
            slices = self.support.quartics_given(n, squares)
            columns.append(self.quartics.draw(*slices, uniform))
        return np.stack(columns, axis=-1)

    def _grid(self, n: FloatArray, half: int = HALF) -> Grid | Atoms:
        density = self.log_density(n[:, None])
        first, last = self.support.squares(n)
        low, high = bracket(density, first, last)
        if isinstance(self.squares, LatticeLikelihood):
            # One step more on either side: the best point of the lattice may lie next to it.
            step = self.squares.step
            points = self.squares.points(
                np.maximum(low - step, first), np.minimum(high + step, last)
            )
            return Atoms.build(density, points)
        return Grid.build(density, low, high, half)


@dataclass(frozen=True, eq=False)
class Grid:
    """Densities on lines, one a row, with a logarithm that is linear between nodes.

    Attributes
    ----------
    nodes, logs
        (rows, g): ascending nodes and the log density there, less its row's maximum.
    cumulative
        (rows, g - 1): share of the mass up to the end of each cell.
    log_total
        (rows,): log of the mass.
    """

    nodes: FloatArray
    logs: FloatArray
    cumulative: FloatArray
    log_total: FloatArray

    @classmethod
    def build(
        cls, density: LogDensity, low: FloatArray, high: FloatArray, half: int = HALF
    ) -> Grid:
        """Half of the nodes evenly spaced, half at even shares of the mass."""
        even = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, half)
        first = cls._through(even, density(even))
        rows = np.broadcast_to(np.arange(len(low))[:, None], (len(low), half - 2))
        shares = np.linspace(0.0, 1.0, half)[1:-1]
        at_shares = first.draw(rows, np.broadcast_to(shares, rows.shape))
        nodes = np.sort(np.concatenate([even, at_shares], axis=1), axis=1)
        return cls._through(nodes, density(nodes))

    @classmethod
    def _through(cls, nodes: FloatArray, logs: FloatArray) -> Grid:
        top = logs.max(axis=1, keepdims=True)
        # Nowhere any mass: the slice is a point, and any law on it will do.
        top = np.where(np.isfinite(top), top, 0.0)
        shifted = np.where(np.isfinite(logs.max(axis=1, keepdims=True)), logs - top, 0.0)
        width = np.diff(nodes, axis=1)
        upper = np.maximum(shifted[:, 1:], shifted[:, :-1])
        with np.errstate(invalid="ignore"):  # both ends without mass: -inf less -inf
            fall = np.abs(np.diff(shifted, axis=1))
        mass = width * np.exp(upper) * _mean_of_fall(fall)
        cumulative = np.cumsum(mass, axis=1)
        total = cumulative[:, -1:]
        empty = total <= 0
        cells = mass.shape[1]
        even = np.broadcast_to(np.arange(1, cells + 1) / cells, mass.shape)
        shares = np.where(empty, even, cumulative / np.where(empty, 1.0, total))
        with np.errstate(divide="ignore"):  # a point has log mass -inf
            log_total = np.log(total[:, 0]) + top[:, 0]
        return cls(nodes, shifted, shares, log_total)

    def draw(self, row: IndexArray, uniform: FloatArray) -> FloatArray:
        """Quantiles ``uniform`` of the laws ``row``."""
        cell, rest = pick(self.cumulative, row, uniform)
        left, right = self.logs[row, cell], self.logs[row, cell + 1]
        start = self.nodes[row, cell]
        width = self.nodes[row, cell + 1] - start
        with np.errstate(invalid="ignore"):
            rise = right - left
        steep = ~np.isfinite(rise)
        safe = np.where(steep, 0.0, rise)
        slope = safe / np.where(width > 0, width, 1.0)
        inside = linear_quantile(slope, width, rest)
        # One end without mass (the edge of the support): a triangle.
        triangle = np.where(np.isneginf(left), np.sqrt(rest), 1.0 - np.sqrt(1.0 - rest))
        return start + np.where(steep, width * triangle, inside)


@dataclass(frozen=True, eq=False)
class Atoms:
    """Laws on points, one a row; points beyond a row's own have no mass."""

    points: FloatArray
    cumulative: FloatArray
    log_total: FloatArray

    @classmethod
    def build(cls, density: LogDensity, points: FloatArray) -> Atoms:
        """From points (rows, g), padded with NaN."""
        inside = np.isfinite(points)
        filled = np.where(inside, points, 0.0)
        logs = np.where(inside, density(filled), -np.inf)
        top = logs.max(axis=1, keepdims=True)
        if not np.all(np.isfinite(top)):
            raise StatisticError("no multiple of the noise's step lies within the bounds")
        cumulative = np.cumsum(np.exp(logs - top), axis=1)
        total = cumulative[:, -1:]
        return cls(filled, cumulative / total, np.log(total[:, 0]) + top[:, 0])

    def draw(self, row: IndexArray, uniform: FloatArray) -> FloatArray:
        """Quantiles ``uniform`` of the laws ``row``."""
        cell, _ = pick(self.cumulative, row, uniform)
        return self.points[row, cell]


def bracket(
    density: LogDensity, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends (rows,) between which log-concave densities are within ``DROP`` of their maximum.

    A log-concave function's maximum lies next to its largest node, however thin its peak; so the
    interval can be cut to the cells around what is large, again and again.
    """
    row = np.arange(len(low))
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    for _ in range(SEARCHES):
        width = high - low
        nodes = low[:, None] + width[:, None] * np.linspace(0.0, 1.0, SEARCH)
        logs = density(nodes)
        large = logs >= logs.max(axis=1, keepdims=True) - DROP
        first = np.maximum(large.argmax(axis=1) - 1, 0)
        last = np.minimum(SEARCH - large[:, ::-1].argmax(axis=1), SEARCH - 1)
        low, high = nodes[row, first], nodes[row, last]
        if not np.any(high - low < 0.5 * width):
            break
    return low, high


def pick(
    cumulative: FloatArray, row: IndexArray, uniform: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Cell of each quantile in the laws ``row``, and the share of the cell that lies below it."""
    rows, cells = cumulative.shape
    if rows == 1:
        cell = np.searchsorted(cumulative[0], uniform)
    else:
        # One search over all rows, each shifted by its number.
        flat = (cumulative + np.arange(rows)[:, None]).ravel()
        cell = np.searchsorted(flat, uniform + row) - row * cells
    cell = np.clip(cell, 0, cells - 1)
    before = np.where(cell > 0, cumulative[row, np.maximum(cell - 1, 0)], 0.0)
    mass = cumulative[row, cell] - before
    share = np.where(mass > 0, (uniform - before) / np.where(mass > 0, mass, 1.0), 0.5)
    return cell, np.clip(share, EDGE, 1.0 - EDGE)


def _mean_of_fall(fall: FloatArray) -> FloatArray:
    """Mean over a cell of exp(-fall t), t in [0, 1]; a half where one end has no mass at all."""
    small = fall < 1e-8
    safe = np.where(small | ~np.isfinite(fall), 1.0, fall)
    mean = np.where(small, 1.0, -np.expm1(-safe) / safe)
    return cast(FloatArray, np.where(np.isposinf(fall), 0.5, np.where(np.isnan(fall), 0.0, mean)))
