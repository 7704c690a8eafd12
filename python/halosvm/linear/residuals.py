"""Losses of residuals as two halves of losses of margin deficits, in units that suit a solver.

In:  values, their errors and weights, parameters of a loss of residuals.
Out: offsets, variances and weights of both halves (spec K.3), and the fit of examples in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from halosvm import _core
from halosvm.checks.estimator import first_index
from halosvm.checks.frames import Labels, paired
from halosvm.checks.reading import as_float_array, refuse_where, require_finite
from halosvm.gaussians.mixtures import components_of
from halosvm.linear.linear_fit import (
    Result,
    Status,
    complain,
    lambda_of,
    make_objective,
    minimize,
)
from halosvm.linear.returned import ROUNDING, View, as_returned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.mixtures import Examples
    from halosvm.linear.linear_fit import Settings

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Halves:
    """A loss of residuals r = y - f as the sum of a loss of r and one of -r, spec K.3.

    Attributes
    ----------
    high, low : ndarray of shape (n_samples,)
        The offsets: one half is charged for what `high` - f is above 0, the other for f - `low`.
    variances : ndarray of shape (n_samples,), or None
        Of the targets.
    weights : pair of ndarrays of shape (n_samples,)
        Of each half.
    """

    high: Array
    low: Array
    variances: Array | None
    weights: tuple[Array, Array]


class Scale(NamedTuple):
    """Where values are and how wide they spread: what solvers take for 0 and for 1."""

    centre: float
    unit: float

    @classmethod
    def of(cls, values: Array, weights: Array, unit: float | None) -> Self:
        """Return weighted median and mean absolute deviation of the values."""
        centre = _median(values, weights)
        width = float(np.average(np.abs(values - centre), weights=weights))
        return cls.of_moments(centre, width, unit)

    @classmethod
    def of_moments(cls, centre: float, width: float, unit: float | None) -> Self:
        """Return a centre, and as unit the first of unit, width and centre that can be one.

        Of a width the power of two below is taken: division by it rounds nothing.
        """
        if unit is None:
            widths = (width, abs(centre))
            unit = next((one for one in widths if 0 < one < np.inf), 1.0)
            unit = float(np.ldexp(0.5, np.frexp(unit)[1]))
        return cls(centre, unit)


def _median(values: Array, weights: Array) -> float:
    """Return the median of values, each counted as often as its weight says."""
    order = np.argsort(values)
    above = np.cumsum(weights[order])
    above -= 0.5 * above[-1]
    rounding = 1e-12 * above[-1]
    first, last = np.argmax(above >= -rounding), np.argmax(above > rounding)
    return float(0.5 * (values[order[first]] + values[order[last]]))


@dataclass(frozen=True)
class HalvesOf:
    """Makes of values the halves of a loss, in units in which the values are of order 1."""

    shift: float
    unit: float
    epsilon: float  # in the unit of the values
    shares: tuple[float, float]
    variance: float | None = None  # of each value, where all have the same

    def __call__(self, values: Array, weights: Array, variances: Array | None = None) -> Halves:
        """Return the halves for values and their weights."""
        r, epsilon = (values - self.shift) / self.unit, self.epsilon / self.unit
        if variances is None and self.variance is not None:
            variances = np.full(len(r), self.variance)
        both = (self.shares[0] * weights, self.shares[1] * weights)
        return Halves(r - epsilon, r + epsilon, variances, both)

    def rounding(self, width: float) -> float:
        """Return how far offsets are from what they are of, for values of that mean square r."""
        return ROUNDING * (3 * width + 2 * self.epsilon / self.unit)


def free_model(
    halves: HalvesOf, extremes: Array, uncertain: bool, d: int, settings: Settings
) -> Result | None:
    """Return the model w = 0 if it costs nothing, as the solver sees it.

    `extremes` are the least and the largest value that have a weight.
    """
    both = halves(extremes, np.ones(2))
    low, high = float(both.high.max()), float(both.low.min())
    b = low + 0.5 * (high - low) if settings.fit_intercept else 0.0
    if uncertain or not low <= b <= high:
        return None
    zero = np.zeros(1)
    end = _core.judge(zero, zero, zero, 1, settings.max_iter, settings.tol)
    known = (zero, zero, end["suboptimality"], 1, Status(end["status"]), end["message"])
    return Result(np.zeros((1, d)), np.array([b]), *known)


def fit_residuals(
    data: Examples,
    values: Array,
    weights: Array,
    variances: Array | None,
    halves: HalvesOf,
    settings: Settings,
    start: tuple[Array, Array] | None = None,
) -> Result:
    """Fit one linear model to values; everything is as in `fit_linear`.

    The examples are there twice, once for each half: that of sign 1 and that of sign -1. J and its
    bound are in the unit of the halves, the model in that of the values; it is what J is of.
    """
    data, shares, rows = components_of(data, weights)
    assert shares is not None
    values, weights = values[rows], shares
    variances = None if variances is None else variances[rows]
    n, d = data.shape
    twice = data[np.tile(np.arange(n), 2)]
    codes = np.repeat(np.array([1, 0], dtype=np.int16), n)
    both = halves(values, weights, variances)
    c = np.concatenate(both.weights)
    lam = lambda_of(settings.C, float(c.sum()))

    def objective(offsets: tuple[Array, Array]) -> _core.Objective:
        noise = None if variances is None else np.tile(variances, 2)
        return make_objective(twice, codes, 1, c, lam, settings, np.concatenate(offsets), noise)

    def exact_values(W: Array, b: Array) -> Array:
        as_they_are = objective((values, -values))
        return as_they_are.exact_values(W, b, -halves.epsilon, halves.unit)

    view = View(np.zeros(d), halves.shift, halves.unit)
    seen = objective((both.high, -both.low))
    start = None if start is None else view.into(*start)
    counted = values[weights > 0]
    extremes = np.array([counted.min(), counted.max()])
    result = free_model(halves, extremes, variances is not None, d, settings)
    if result is None:
        result = minimize(seen, 1, d, settings, start)
    far = float(np.abs(extremes - halves.shift).max()) or 1.0  # without which squares overflow
    spread = float(np.sqrt(weights @ ((values - halves.shift) / far) ** 2 / weights.sum()))
    unknown = halves.rounding(far / halves.unit * spread)
    result = as_returned(result, view, settings, seen.moments, exact_values, unknown)
    complain(result, settings.tol)
    return result


def variances_of(y_std: Any, n: int, unit: float, **rows: Any) -> Array | None:
    """Return the variances of the values, or None if they are certain.

    `rows` are the arguments to the order of whose index errors are brought, the first that has one.
    """
    if y_std is None:
        return None
    std = as_float_array(y_std, "y_std")
    if std.ndim == 0:
        std = np.full(n, std)
    std = as_float_array(std, "y_std", n)
    other, index = first_index(rows)
    std = paired(std, y_std, "y_std", Labels(index=index), other)
    require_finite(std, "y_std")
    refuse_where(~(std >= 0), "y_std", "a standard deviation must be >= 0", std)
    variances = np.asarray(std / unit, dtype=np.float64) ** 2
    return variances if variances.any() else None
