"""Measurements: values of which some are missing, and their errors.

In:  arrays with NaN, masked arrays and frames for the values; errors that may be infinite or NaN.
Out: Gaussians whose means are NaN where nothing was measured, for the maps of this folder alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import reading, units
from halosvm.checks.error_arguments import read_errors
from halosvm.checks.frames import require_labelled_values
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.checks.frames import Labels
    from halosvm.checks.units import FeatureUnits

    Array = NDArray[np.float64]
    FloatArray = NDArray[np.floating[Any]]


def unmasked(X: Any) -> Any:
    """Return a masked array as a plain one with NaN where it is masked, anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    values: Any = X.astype(np.float64) if X.dtype.kind in "biu" else X
    return values.filled(np.nan)


def with_errors(
    means: FloatArray, X_std: Any, X_cov: Any, labels: Labels, feature_units: FeatureUnits
) -> Gaussians:
    """Join values and errors.

    Parameters
    ----------
    means : ndarray of shape (n_samples, n_features)
        NaN where a value is missing.
    X_std, X_cov
        As in `as_gaussians`; also infinite where a value is missing, and NaN where `means` is.
    labels : Labels
        Of the data frame whose bare array `means` is.
    feature_units : tuple of units, or None
        The unit of each feature.
    """
    left = feature_units
    if X_std is not None and X_cov is None and not isinstance(X_std, Covariances):
        errors, left = _errors(X_std, "X_std", labels, feature_units, 1), None
        means, X_std = _without_missing(means, errors, "X_std")
    elif X_cov is not None and X_std is None and not isinstance(X_cov, Covariances):
        errors, left = _errors(X_cov, "X_cov", labels, feature_units, 2), None
        means, X_cov = _without_missing(means, errors, "X_cov")
    covariances = read_errors(means.shape, left, X_std=X_std, X_cov=X_cov)
    measurements = Gaussians.__new__(Gaussians)
    measurements.__setstate__((means, covariances, labels.names, feature_units, None))
    return measurements


def _errors(
    given: Any, argument: str, labels: Labels, feature_units: FeatureUnits, power: int
) -> FloatArray:
    """Read errors in the order and the units of the features, NaN where they are masked."""
    require_labelled_values(given, argument, labels, "X")
    bare, unit = units.split(given)
    values = reading.as_float_array(unmasked(bare), argument)
    return units.matched_errors(
        values, unit, given, argument, labels, feature_units, "X", power=power
    )


def _without_missing(
    means: FloatArray, errors: FloatArray, argument: str
) -> tuple[FloatArray, FloatArray]:
    """Turn infinite errors into missing values, and the errors of missing values into 0."""
    n, d = means.shape
    if errors.shape not in {(n,), (n, d), (n, d, d)} or np.isfinite(errors).all():
        return means, errors  # shapes are the business of Gaussians
    own = np.einsum("njj->nj", errors) if errors.ndim == 3 else errors.reshape(n, -1)
    missing = np.isnan(means) | (own == np.inf)
    errors = errors.copy()
    if errors.ndim == 3:
        errors[missing[:, :, np.newaxis] | missing[:, np.newaxis, :]] = 0
    else:
        errors[missing.all(axis=1) if errors.ndim == 1 else missing] = 0
    left = np.isnan(errors)
    if left.any():
        row, *column = np.unravel_index(int(np.argmax(left)), left.shape)
        place = "".join(f", column {j}" for j in column)
        raise ValueError(
            f"{argument}: row {row}{place} is nan, but X has a value there; give it an error, 0 if "
            "it is certain, or make the value NaN, which is missing"
        )
    return np.where(missing, np.array(np.nan, means.dtype), means), errors


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
    values = X.mean[used].astype(np.float64)
    errors = X.covariances[used].variances()
    for j in range(d):
        there = ~np.isnan(values[:, j])
        if not there.any() and n > _ROWS:
            column = X.mean[:, j]
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
