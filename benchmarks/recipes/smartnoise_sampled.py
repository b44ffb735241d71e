"""smartnoise-synth's MST with rows drawn independently from its fitted model.

smartnoise-synth 1.0 needs mbi 1.1, whose default rounding makes columns depend on each other that
the model keeps independent (ryan112358/mbi, pull request 145; mended in mbi 2).  Its other method
does not, so this is what the mechanism is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.recipes import smartnoise_mst

LABEL = "smartnoise-synth MST, rows drawn independently"


def run(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Synthetic table and seconds a stage."""
    np.random.seed(seed)
    start = perf_counter()
    fitted = smartnoise_mst.fitted(frame, sizes, rho)
    middle = perf_counter()
    drawn = fitted.synthesizer.synthetic_data(rows=len(frame), method="sample")
    opened = fitted.undo_compress_fn(drawn).df
    codes = {name: opened[f"col{place}"].to_numpy() for place, name in enumerate(frame.columns)}
    return pd.DataFrame(codes), {"fit": middle - start, "sample": perf_counter() - middle}
