"""dpmm's MST pipeline on the same codes; runs under an interpreter that has ``dpmm`` installed."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import pandas as pd
from dpmm.pipelines import MSTPipeline

from core.private.zcdp import epsilon

LABEL = "dpmm MST"
#: dpmm takes epsilon and delta, and finds its own rho.
DELTA = 1e-9


def run(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Synthetic table and seconds a stage."""
    start = perf_counter()
    pipeline = MSTPipeline(
        epsilon=epsilon(rho, DELTA), delta=DELTA, disable_processing=True, n_jobs=1
    )
    pipeline.fit(frame, domain=dict(sizes), random_state=seed)
    fitted = perf_counter()
    synthetic = pipeline.generate(n_records=len(frame), random_state=seed)
    return synthetic, {"fit": fitted - start, "sample": perf_counter() - fitted}
