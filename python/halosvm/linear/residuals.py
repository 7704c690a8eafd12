"""Losses of residuals as two halves of losses of margin deficits, in units that suit a solver.

In:  values, their errors and weights, parameters of a loss of residuals.
Out: offsets, variances and weights of both halves (spec K.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from halosvm.checks.estimator import first_index
from halosvm.checks.frames import Labels, paired
from halosvm.checks.reading import as_float_array, refuse_where, require_finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        """Return a centre, and as unit the first of unit, width and centre that can be one."""
        if unit is None:
            widths = (width, abs(centre))
            unit = next((one for one in widths if 0 < one < np.inf), 1.0)
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
    epsilon: float
    shares: tuple[float, float]
    variance: float | None = None  # of each value, where all have the same

    def __call__(self, values: Array, weights: Array, variances: Array | None = None) -> Halves:
        """Return the halves for values and their weights."""
        r = (values - self.shift) / self.unit
        if variances is None and self.variance is not None:
            variances = np.full(len(r), self.variance)
        both = (self.shares[0] * weights, self.shares[1] * weights)
        return Halves(r - self.epsilon, r + self.epsilon, variances, both)


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
