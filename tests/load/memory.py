"""Memory of a server over waves of visitors: what a wave needs, and whether any of it stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.load.running import Running

#: Largest part of a wave's footprint that may stay behind, wave after wave.
TOLERATED = 0.10


@dataclass(frozen=True)
class Waves:
    """Own bytes of the server after each wave, and the most that any wave added while it ran."""

    after: tuple[int, ...]
    footprint: int

    @property
    def slope(self) -> float:
        """Bytes that stay for each wave, by least squares."""
        return float(np.polyfit(np.arange(len(self.after)), self.after, 1)[0])

    @property
    def error(self) -> float:
        """Standard error of the slope."""
        x = np.arange(len(self.after))
        fitted = np.polyval(np.polyfit(x, self.after, 1), x)
        residual = float(((np.asarray(self.after) - fitted) ** 2).sum())
        spread = float(((x - x.mean()) ** 2).sum())
        return float(np.sqrt(residual / max(len(x) - 2, 1) / spread))

    @property
    def grows(self) -> bool:
        """Whether more stays than is tolerated, beyond what the scatter explains."""
        return self.slope - 2 * self.error > TOLERATED * self.footprint


def watched(server: Running, wave: Callable[[], object], waves: int) -> Waves:
    """Run so many waves and measure the server before, during and after each."""
    after, footprints = [], []
    for _ in range(waves):
        before = server.own_bytes
        peak = _peak_while(server, wave)
        footprints.append(peak - before)
        after.append(server.own_bytes)
    return Waves(tuple(after), max(footprints))


def _peak_while(server: Running, wave: Callable[[], object]) -> int:
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.25):
            seen.append(server.own_bytes)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        wave()
    finally:
        done.set()
        watcher.join()
    return max(seen, default=server.own_bytes)


def megabytes(sizes: Sequence[float]) -> str:
    """Sizes as people read them."""
    return ", ".join(f"{size / 1e6:.0f}" for size in sizes)
