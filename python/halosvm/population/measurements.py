"""Measurements: what their values and errors tell at first sight of the true values.

In:  Gaussians whose means are NaN where nothing was measured, and the weights of the examples.
Out: a mean and a variance of the true values of each feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]


def values_or_limits(X: Gaussians) -> Array:
    """Return the values; of columns without any, the limits: a start, no estimate.

    Beside values, limits may be far away, as those that say nothing.
    """
    values: Array = X.mean.astype(np.float64)
    if X.limits is None:
        return values
    bare = np.isnan(values).all(axis=0)
    return np.where(bare & X.limits.there, X.limits.middles(), values)


def robust_scale(X: Gaussians, weights: Array) -> tuple[Array, Array]:
    """Return a mean and a variance above 0 of the true values of each feature, (n_features,) each.

    The variance is that of Paule and Mandel: with weights 1 / (variance + error^2) the squared
    deviations sum to their expectation. It is at least its own standard error, for errors may
    explain all; and where all values are equal and certain, it is the square of that value. At most
    a few thousand rows, spread over all, are read: it serves as a unit and a start.
    """
    n, d = X.shape
    mean, variance = np.zeros(d), np.ones(d)
    used = np.flatnonzero(weights > 0)
    used = used[:: max(1, len(used) // _ROWS)]
    values = values_or_limits(X[used])
    errors = X.covariances[used].variances()
    for j in range(d):
        there = ~np.isnan(values[:, j])
        if not there.any() and n > _ROWS:
            column = values_or_limits(X[:, [j]])[:, 0]
            rows = np.flatnonzero(~np.isnan(column) & (weights > 0))[:_ROWS]
            if rows.size:
                error = X.covariances[rows].variances()[:, j]
                of_rows = column[rows].astype(np.float64), error, weights[rows]
                mean[j], variance[j] = _unit_and_start(*of_rows)
        elif there.any():
            of_rows = values[there, j], errors[there, j], weights[used][there]
            mean[j], variance[j] = _unit_and_start(*of_rows)
    return mean, variance


_ROWS = 4096


def _unit_and_start(x: Array, error: Array, c: Array) -> tuple[float, float]:
    """Return the mean and the variance of one feature; see `robust_scale`."""
    mean, variance, resolution = paule_mandel(x, error, c, tol=1e-2)
    if variance > 0 or resolution > 0:
        return mean, max(variance, resolution)
    return mean, mean**2 if mean != 0 else 1.0


def paule_mandel(x: Array, error: Array, c: Array, *, tol: float) -> tuple[float, float, float]:
    """Return mean and variance of true values, and the standard error of a variance near 0.

    With weights 1 / (variance + error) the squared deviations sum to their expectation.

    Parameters
    ----------
    x, error : ndarray of shape (n,)
        Measured values and the variances of their errors.
    c : ndarray of shape (n,)
        Numbers of repetitions.
    tol : float
        Stop when the logarithm of the variance changes by less.
    """
    centre = float(x[np.argmin(error)])
    x = x - centre
    spread = float(c @ (x - c @ x / c.sum()) ** 2 / c.sum())
    expected = max(float(c.sum()) - 1.0, 0.5)
    least = float(error.min())
    variance = spread
    if spread > 0:
        for _ in range(60):  # Newton's method in logarithms, where the function is nearly straight
            w = c / (variance + error)
            apart = (x - w @ x / w.sum()) ** 2
            sum_of_squares = float(w @ apart)
            slope = variance * float((w / (variance + error)) @ apart) / sum_of_squares
            step = np.log(sum_of_squares / expected) / max(slope, 1e-3)
            variance *= float(np.exp(np.clip(step, -5.0, 5.0)))
            if abs(step) < tol or variance < 1e-6 * least:
                break
    if not variance > 0 and not least > 0:
        return centre, 0.0, 0.0
    w = c / (variance + error)
    resolution = float(np.sqrt(2.0 / np.sum(w * w / c)))
    return float(w @ x / w.sum() + centre), variance, resolution
