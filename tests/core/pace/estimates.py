"""Estimates for tests of what is derived from them, without a release behind them."""

from __future__ import annotations

import numpy as np

from core.pace.estimate import Estimate
from core.pace.maxent import complete


def names(d):
    return tuple(f"c{index:03}" for index in range(d))


def completed(measurements, *, mu=0.05, **settings):
    """The estimate of a maximum-entropy completion."""
    found = complete(measurements, mu=mu)
    return _estimate(
        found.covariance, found.precision, found.measurements, completion=found, **settings
    )


def whole(W, measurements, **settings):
    """The estimate of a one-shot method: W itself, all entries measured."""
    return _estimate(W, np.linalg.inv(W), measurements.pooled(), **settings)


def _estimate(
    W, K, pooled, *, rows=1000, half_widths=None, means=None, errors=None, completion=None
):
    d = len(W)
    sigmas = np.zeros((d, d))
    a, b = pooled.pairs.T
    sigmas[a, b] = sigmas[b, a] = pooled.precisions**-0.5
    return Estimate(
        columns=names(d),
        scaled=W,
        scaled_precision=K,
        half_widths=np.ones(d) if half_widths is None else half_widths,
        means=np.zeros(d) if means is None else means,
        mean_errors=np.zeros(d) if errors is None else errors,
        rows=rows,
        measured=pooled.mask,
        graph=pooled.mask,
        entry_sigmas=sigmas,
        completion=completion,
    )
