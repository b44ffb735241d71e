"""Areas with values that carry noise of known size, and how noisy they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from core.errors import EstimationError, StatisticError
from core.pumba.draws import FloatArray

#: Estimated noise ratio above which naive and imputed slopes are visibly attenuated: a true ratio
#: of 0.1 less the error of its estimate over some hundred areas.
ATTENUATION = 0.09


@dataclass(frozen=True, eq=False)
class ArealVariable:
    """One value an area, and the standard deviation of the noise that was added to it.

    Attributes
    ----------
    name
        Of the column.
    values
        (m,): as published.
    noise_sd
        (m,), or one number for all areas; 0 for values without noise.
    """

    name: str
    values: FloatArray
    noise_sd: FloatArray

    def __init__(self, name: str, values: ArrayLike, noise_sd: ArrayLike = 0.0) -> None:
        found = np.array(values, dtype=np.float64)
        if found.ndim != 1 or not found.size:
            raise StatisticError(f"column {name!r}: one value an area is needed")
        noise = np.broadcast_to(np.asarray(noise_sd, dtype=np.float64), found.shape).copy()
        if not np.isfinite(found).all():
            raise StatisticError(f"column {name!r}: leave out areas without a value")
        if not (np.isfinite(noise).all() and np.all(noise >= 0)):
            raise StatisticError(f"column {name!r}: a noise sd must be a number of at least 0")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", found)
        object.__setattr__(self, "noise_sd", noise)


@dataclass(frozen=True, eq=False)
class ArealData:
    """Areas with a noisy outcome and noisy covariates.

    Attributes
    ----------
    outcome, covariates
        Columns over the same areas.
    covariance
        (m, q + 1, q + 1), covariates first, outcome last: noise covariance in each area; None
        where the noise of different columns is independent.
    """

    outcome: ArealVariable
    covariates: tuple[ArealVariable, ...]
    covariance: FloatArray | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together."""
        columns = (*self.covariates, self.outcome)
        names = [column.name for column in columns]
        if not self.covariates:
            raise EstimationError("an areal regression needs at least one covariate")
        if len(set(names)) != len(names):
            raise EstimationError("outcome and covariates must be different columns")
        areas = len(self.outcome.values)
        if any(len(column.values) != areas for column in columns):
            raise StatisticError("all columns must have one value for each of the same areas")
        if areas <= len(columns):
            raise EstimationError(
                f"{areas} areas cannot determine {len(columns)} coefficients and a residual spread"
            )
        if self.covariance is not None:
            self._check_covariance(self.covariance, areas, columns)

    @staticmethod
    def _check_covariance(
        covariance: FloatArray, areas: int, columns: tuple[ArealVariable, ...]
    ) -> None:
        if covariance.shape != (areas, len(columns), len(columns)):
            raise StatisticError("a noise covariance needs one square matrix an area")
        if not np.allclose(covariance, np.swapaxes(covariance, 1, 2)):
            raise StatisticError("a noise covariance must be symmetric")
        for index, column in enumerate(columns):
            if not np.allclose(covariance[:, index, index], column.noise_sd**2):
                raise StatisticError(
                    f"column {column.name!r}: its noise sd and the covariance disagree"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Intercept and covariates."""
        return ("intercept", *(column.name for column in self.covariates))

    @cached_property
    def design(self) -> FloatArray:
        """(m, q + 1): the constant and the covariates as published."""
        columns = [column.values for column in self.covariates]
        return np.column_stack([np.ones(len(self.outcome.values)), *columns])

    @cached_property
    def noise(self) -> FloatArray:
        """(m, q + 2, q + 2): noise covariance of (constant, covariates, outcome) in each area."""
        columns = (*self.covariates, self.outcome)
        size = len(columns) + 1
        result = np.zeros((len(self.outcome.values), size, size))
        if self.covariance is not None:
            result[:, 1:, 1:] = self.covariance
        else:
            for index, column in enumerate(columns, 1):
                result[:, index, index] = column.noise_sd**2
        return result


@dataclass(frozen=True)
class Attenuation:
    """How noisy one covariate is.

    Attributes
    ----------
    name
        Of the covariate.
    ratio
        τ: noise sd over the estimated sd of the true values between areas; infinite where the
        values vary less than their noise.
    partial
        The same against what the other covariates leave of the true values; this is what attenuates
        a slope of a multiple regression.
    """

    name: str
    ratio: float
    partial: float

    @property
    def serious(self) -> bool:
        """Whether naive and imputed slopes are visibly attenuated."""
        return max(self.ratio, self.partial) > ATTENUATION


def attenuation(data: ArealData) -> tuple[Attenuation, ...]:
    """Noise ratio of every covariate; from 0.1 on naive and imputed slopes are misleading."""
    areas = len(data.design)
    centred = data.design[:, 1:] - data.design[:, 1:].mean(axis=0)
    noise = data.noise[:, 1:-1, 1:-1].mean(axis=0)
    spread = centred.T @ centred / (areas - 1) - noise
    found = []
    for index, column in enumerate(data.covariates):
        others = [i for i in range(len(noise)) if i != index]
        true, left = float(spread[index, index]), float(spread[index, index])
        if others:
            shared = np.linalg.lstsq(spread[np.ix_(others, others)], spread[others, index])[0]
            left -= float(shared @ spread[others, index])
        own = float(noise[index, index])
        found.append(Attenuation(column.name, _ratio(own, true), _ratio(own, left)))
    return tuple(found)


def _ratio(noise: float, spread: float) -> float:
    if noise == 0:
        return 0.0
    return float(np.sqrt(noise / spread)) if spread > 0 else float("inf")
