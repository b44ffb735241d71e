"""A completion that is kept up to date while entries are measured one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.blas import one_blas_thread
from core.pace.conditioning import conditioned
from core.pace.local_update import (
    Block,
    add_square_to_inverse,
    add_to_inverse,
    block_change,
    one_column_change,
)
from core.pace.maxent import (
    BARRIER,
    TOLERANCE,
    Completion,
    complete,
    fit_component,
)
from core.pace.measurements import Measurements

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Components of up to this many columns are solved in full each time.
SMALL_COMPONENT = 40
#: On λ² of the full solves between rounds.
ROUND_TOLERANCE = 1e-6


class RunningCompletion:
    """The maximum-entropy completion of measurements that keep coming.

    ``add`` pools a measurement with those of the same entry and brings W up to date: by a full
    solve of the component it touches where that is small, else by a local update of rank 2 and a
    full solve from time to time.  W is close to the completion, and ``completed`` makes it exact.

    Hold ``one_blas_thread`` around a loop of additions.

    Parameters
    ----------
    measurements
        What is known at the start: all squares at least.
    mu
        Weight of the entropy, in nats.
    clip
        Cut pooled values to what the unit box allows before they are fitted.

    Raises
    ------
    EstimationError
        As ``complete``.
    """

    def __init__(
        self, measurements: Measurements, *, mu: float = BARRIER, clip: bool = False
    ) -> None:
        pooled = measurements.pooled()
        start = complete(pooled, mu=mu, clip=clip, tolerance=ROUND_TOLERANCE)
        self.mu = mu
        self.clip = clip
        self.size = pooled.size
        self._covariance = start.covariance
        self._precision = start.precision
        self._count = len(pooled)
        self._pairs = pooled.pairs.copy()
        self._values = pooled.values.copy()
        self._precisions = pooled.precisions.copy()
        self._index = {(int(a), int(b)): place for place, (a, b) in enumerate(pooled.pairs)}
        self._nodes = {label: list(nodes) for label, nodes in enumerate(start.components)}
        self._label = np.empty(self.size, dtype=np.int64)
        self._entries: dict[int, list[int]] = {}
        for label, nodes in self._nodes.items():
            self._label[nodes] = label
            self._entries[label] = []
        for place, owner in enumerate(self._label[pooled.pairs[:, 0]]):
            self._entries[int(owner)].append(place)
        self._waiting = dict.fromkeys(self._nodes, 0)

    # -- reading ---------------------------------------------------------------------------

    @property
    def covariance(self) -> FloatArray:
        """W, (d, d): a read-only view that the next ``add`` changes; copy it to keep it."""
        view = self._covariance.view()
        view.setflags(write=False)
        return view

    @property
    def measurements(self) -> Measurements:
        """Everything measured so far, pooled and not clipped."""
        count = self._count
        return Measurements(
            self.size, self._pairs[:count], self._values[:count], self._precisions[:count]
        )

    def pooled(self, first: int, second: int) -> tuple[float, float] | None:
        """Pooled value and precision of an entry, or None where it was not measured."""
        place = self._index.get((min(first, second), max(first, second)))
        if place is None:
            return None
        return float(self._values[place]), float(self._precisions[place])

    def completed(self, *, tolerance: float = TOLERANCE) -> Completion:
        """The exact completion of everything measured so far; a warm start makes it fast."""
        start = Completion(
            self._covariance,
            self._precision,
            self.measurements,
            self.mu / self._precisions[: self._count],
            self.mu,
            float("nan"),
            0,
            (),
        )
        return complete(
            self.measurements, mu=self.mu, start=start, tolerance=tolerance, clip=self.clip
        )

    # -- measuring -------------------------------------------------------------------------

    def add(self, pairs: ArrayLike, values: ArrayLike, precisions: ArrayLike) -> None:
        """Pool one or several measurements and bring W up to date.

        Parameters
        ----------
        pairs, values, precisions
            As in :class:`Measurements`.  An entry and its two squares that are measured together
            cost one local update.
        """
        new = Measurements(self.size, np.asarray(pairs), np.asarray(values), np.asarray(precisions))
        with one_blas_thread():
            for (a, b), value, precision in zip(
                new.pairs.tolist(), new.values.tolist(), new.precisions.tolist(), strict=True
            ):
                self._pool(a, b, value, precision)
            for a, b in _blocks(new.pairs.tolist()):
                self._refresh(a, b)

    def _pool(self, a: int, b: int, value: float, precision: float) -> None:
        place = self._index.get((a, b))
        if place is not None:
            total = self._precisions[place] + precision
            self._values[place] += precision / total * (value - self._values[place])
            self._precisions[place] = total
            return
        if self._count == len(self._values):
            self._pairs = np.concatenate([self._pairs, np.zeros_like(self._pairs)])
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
            self._precisions = np.concatenate([self._precisions, np.zeros_like(self._precisions)])
        place = self._count
        self._pairs[place] = a, b
        self._values[place] = value
        self._precisions[place] = precision
        self._index[a, b] = place
        self._count += 1
        self._entries[self._merged(a, b)].append(place)

    def _merged(self, a: int, b: int) -> int:
        """Label of the one component that a new entry makes of those of its columns."""
        kept, gone = int(self._label[a]), int(self._label[b])
        if kept == gone:
            return kept
        if len(self._nodes[kept]) < len(self._nodes[gone]):
            kept, gone = gone, kept
        nodes = self._nodes.pop(gone)
        self._label[nodes] = kept
        self._nodes[kept] += nodes
        self._entries[kept] += self._entries.pop(gone)
        self._waiting[kept] += self._waiting.pop(gone)
        return kept

    def _refresh(self, a: int, b: int) -> None:
        label = int(self._label[a])
        entries = len(self._entries[label])
        if len(self._nodes[label]) > SMALL_COMPONENT and self._waiting[label] < max(
            10, entries / 20
        ):
            self._waiting[label] += 1
            if self._local(a, b):
                return
        self._waiting[label] = 0
        self._full(label)

    def _full(self, label: int) -> None:
        """Newton on one component, from where it is."""
        nodes = np.sort(np.array(self._nodes[label]))
        entries = np.array(self._entries[label])
        place = np.ix_(nodes, nodes)
        fit = fit_component(
            np.searchsorted(nodes, self._pairs[entries]),
            self._targets(entries),
            self._precisions[entries],
            size=len(nodes),
            mu=self.mu,
            warm=self._precision[place],
            tolerance=ROUND_TOLERANCE,
        )
        self._covariance[place], self._precision[place] = fit.covariance, fit.precision

    def _local(self, a: int, b: int) -> bool:
        """Minimise over one entry and its squares; False where only a full solve will do."""
        W, K = self._covariance, self._precision
        nodes = (a,) if a == b else (a, b)
        keys = ((a, a),) if a == b else ((a, a), (a, b), (b, b))
        entries = np.array([self._index[key] for key in keys])
        _, values, ridge = conditioned(
            np.array([nodes.index(row) for row, _ in keys]),
            np.array([nodes.index(column) for _, column in keys]),
            self._targets(entries),
            self._precisions[entries],
            size=len(nodes),
            mu=self.mu,
        )
        if a == b:
            grown = one_column_change(
                float(W[a, a]), float(K[a, a]), float(values[0]), float(ridge[0])
            )
            if not add_square_to_inverse(W, a, grown):
                return False
            K[a, a] += grown
            return True
        change = block_change(
            (float(W[a, a]), float(W[a, b]), float(W[b, b])),
            (float(K[a, a]), float(K[a, b]), float(K[b, b])),
            cast(Block, tuple(values.tolist())),
            cast(Block, tuple(ridge.tolist())),
        )
        if change is None or not add_to_inverse(W, a, b, change):
            return False
        K[a, a] += change[0]
        K[b, b] += change[2]
        K[a, b] = K[b, a] = K[a, b] + change[1]
        return True

    def _targets(self, entries: IntArray) -> FloatArray:
        values = self._values[entries]
        if not self.clip:
            return values
        squares = self._pairs[entries, 0] == self._pairs[entries, 1]
        return np.clip(values, np.where(squares, 0.0, -1.0), 1.0)


def _blocks(pairs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Blocks to minimise over: the products, and the squares that belong to none of them."""
    products = [(a, b) for a, b in pairs if a != b]
    covered = {index for pair in products for index in pair}
    squares = [(a, b) for a, b in pairs if a == b and a not in covered]
    return list(dict.fromkeys(products + squares))
