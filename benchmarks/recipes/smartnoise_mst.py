"""smartnoise-synth's MST on the same codes; runs under an interpreter that has it installed.

Its MST needs no torch: requirements-peers.txt says how to install without.  The number of rows is
public to it, as to the other recipes; its noise cannot be seeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import pandas as pd
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

from core.private.zcdp import epsilon

LABEL = "smartnoise-synth MST"
DELTA = 1e-9


def run(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Synthetic table and seconds a stage."""
    np.random.seed(seed)
    start = perf_counter()
    synthesizer = fitted(frame, sizes, rho)
    middle = perf_counter()
    synthetic = pd.DataFrame(synthesizer.sample(len(frame)), columns=list(frame.columns))
    return synthetic, {"fit": middle - start, "sample": perf_counter() - middle}


def fitted(frame: pd.DataFrame, sizes: Mapping[str, int], rho: float) -> MSTSynthesizer:
    """The synthesizer after its fit; epsilon follows from rho."""
    synthesizer = MSTSynthesizer(epsilon=epsilon(rho, DELTA), delta=DELTA)
    synthesizer.fit(frame, transformer=_declared({name: sizes[name] for name in frame.columns}))
    return synthesizer


def _declared(sizes: Mapping[str, int]) -> TableTransformer:
    """Every declared code is a label, whether or not it occurs: nothing is read off the rows."""
    columns = []
    for size in sizes.values():
        column = LabelTransformer(nullable=False)
        column.fit(list(range(size)))
        columns.append(column)
    return TableTransformer(columns)
