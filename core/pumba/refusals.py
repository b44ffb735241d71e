"""Published numbers that are not their true value plus independent noise, and why."""

from __future__ import annotations

from collections.abc import Mapping

#: Why a statistic is not its true value plus independent noise, by what it is called.
NON_ADDITIVE: Mapping[str, str] = {
    "mean": "a noisy mean is a noisy sum divided by a noisy count, so its error is no additive "
    "noise; enter the sum and n as two rows",
    "ratio": "a ratio of noisy numbers has no additive noise; enter numerator and denominator as "
    "two rows",
    "proportion": "a proportion of noisy counts has no additive noise; enter the counts themselves",
    "percent": "a percentage of noisy counts has no additive noise; enter the counts themselves",
    "variance": "a noisy variance is made from noisy sums; enter n, sum and sum_squares",
    "sd": "a noisy standard deviation is made from noisy sums; enter n, sum and sum_squares",
    "median": "a private median is a noisy choice, not a number plus noise; enter the counts of a "
    "histogram",
    "quantile": "a private quantile is a noisy choice, not a number plus noise; enter the counts "
    "of a histogram",
    "minimum": "a private minimum is a noisy choice, not a number plus noise",
    "maximum": "a private maximum is a noisy choice, not a number plus noise",
    "coefficient": "a coefficient made from noisy sums has no additive noise; enter the sums",
    "correlation": "a correlation made from noisy sums has no additive noise; enter the sums",
    "adjusted": "values that were made consistent with each other carry correlated noise of an "
    "unknown law; enter the noisy measurements from before the adjustment",
    "rounded": "a rounded value carries rounding error besides its noise; enter the value as it "
    "was before rounding",
    "thresholded": "a value that was only published because it was large has truncated noise; "
    "enter releases that do not depend on a threshold",
}
