"""How strong each edge looks in the noisy tables; for the width of a line, nothing more."""

from __future__ import annotations

import numpy as np

from core.releases import TreeRelease
from pages.shared.lanes import Edge


def strengths(release: TreeRelease) -> dict[Edge, float]:
    """Mutual information in bits of every released pair table, negative counts set to zero.

    Noise makes it larger than the truth, so it ranks edges and is not an estimate.
    """
    return {
        (table.clique[0], table.clique[1]): _bits(table.values)
        for table in release.two_way
        if len(table.clique) == 2
    }


def _bits(counts: np.ndarray) -> float:
    joint = np.clip(counts.astype(float), 0.0, None)
    total = joint.sum()
    if total <= 0:
        return 0.0
    joint /= total
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    kept = joint > 0
    return float(np.sum(joint[kept] * np.log2(joint[kept] / independent[kept])))
