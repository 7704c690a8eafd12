"""Gaussians from errors as they are reported: error bars, asymmetric errors, quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from halosvm.checks import reading, units
from halosvm.checks.frames import Labels, labels_of, paired
from halosvm.gaussians.centring import centred
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.uncertainty import containers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from halosvm.checks.reading import FloatArray
    from halosvm.checks.units import FeatureUnits
    from halosvm.gaussians.gaussians import Gaussians


def standard_errors(
    values: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    n_observations: ArrayLike | None = None,
) -> Gaussians:
    r"""Read values with standard errors.

    .. math:: \Sigma = \operatorname{diag}(e^2), \qquad \text{or}\quad
              \Sigma = \operatorname{diag}(N e^2)

    The standard error of a mean of N independent observations is
    :math:`e = \sigma / \sqrt N`, so the variance of one observation is :math:`N e^2`.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_features)
        The values. Arrays of the package uncertainties and astropy's NDData hold their errors;
        `errors` is then left out. Errors that values of one row have in common become a factor of
        rank as high as their number.
    errors : array-like of shape (n_samples, n_features) or (n_samples,), optional
        Standard errors in the unit of `values`; 0 means certain. Also one of astropy's
        StdDevUncertainty, VarianceUncertainty and InverseVariance.
    n_observations : array-like of shape (n_samples, n_features) or (n_samples,), or int, optional
        N >= 1. Without it, the covariance is that of the reported means; with it, that of a single
        observation.

    Returns
    -------
    Gaussians

    Raises
    ------
    ValueError, TypeError
        For missing or infinite values and errors, negative errors, and units that differ.

    Notes
    -----
    SVM-GSU (C. Tzelepis, V. Mezaris and I. Patras, IEEE Transactions on Pattern Analysis and
    Machine Intelligence 40 (2018), section 4.3) reads the standard errors of the Wisconsin breast
    cancer data in this way.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import standard_errors
    >>> X = standard_errors([[1.0, 2.0]], [[0.1, 0.5]], n_observations=4)
    >>> X.covariances.variances()
    array([[0.04, 1.  ]])
    """
    labels = labels_of(values, "values")
    if containers.holds_errors(values):
        if errors is not None:
            raise ValueError("errors is given, but values hold their errors")
        read, covariances, unit = containers.split(values)
        features = units.for_features(unit, read.shape[1])
    else:
        if errors is None:
            raise ValueError("errors is needed, because values hold none")
        bare, unit = units.split(values)
        read = _finite(bare, "values", "n_samples", "n_features")
        features = units.for_features(unit, read.shape[1])
        bars = _read_errors(errors, "errors", read, labels, features)
        covariances = Covariances.from_std(bars, read.shape[1], argument="errors")
    if n_observations is not None:
        covariances = _of_one_observation(covariances, n_observations, labels)
    gaussians = as_gaussians(read, X_cov=covariances, labels=labels)
    return gaussians.replaced(feature_units=features)


def _read_errors(
    errors: Any,
    argument: str,
    values: FloatArray,
    labels: Labels,
    features: FeatureUnits,
    *axes: int,
) -> FloatArray:
    """Read errors of values, in the order of their labels and in their units."""
    bare, unit = containers.standard_deviations(errors, argument)
    array = reading.as_float_array(bare, argument, *axes)
    _require_rows(array, values, argument)
    return units.matched_errors(array, unit, errors, argument, labels, features, "values")


def _finite(values: Any, argument: str, *axes: str | int) -> FloatArray:
    read = reading.as_float_array(values, argument, *axes)
    reading.require_in_range(read, argument)
    return read


def _require_rows(array: FloatArray, values: FloatArray, argument: str) -> None:
    """Raise unless the shape is (n_samples,) or that of the values."""
    if array.shape not in (values.shape, values.shape[:1]):
        raise ValueError(f"{argument} has shape {array.shape}, values have shape {values.shape}")


def _of_one_observation(of_mean: Covariances, n_observations: Any, labels: Labels) -> Covariances:
    """Multiply variances by the number of observations."""
    argument = "n_observations"
    counts: FloatArray = reading.as_float_array(n_observations, argument).astype(np.float64)
    bad = ~((counts >= 1) & (counts < np.inf))
    reading.refuse_where(np.atleast_1d(bad), argument, "it must be >= 1", np.atleast_1d(counts))
    if counts.ndim:
        _require_rows(counts, np.empty(of_mean.shape), argument)
        counts = paired(counts, n_observations, argument, labels, "values")
    each = np.broadcast_to(counts[:, None] if counts.ndim == 1 else counts, of_mean.shape)
    if not storage_of(of_mean).independent:
        raise ValueError("n_observations is given, but the errors of values depend on each other")
    return Covariances.diagonal(each * of_mean.variances(), argument="n_observations * errors**2")


def asymmetric_errors(
    values: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    center: Literal["median", "mode", "mean"] = "median",
    limits: Literal["error", "one_sided"] | ArrayLike = "error",
) -> Gaussians:
    r"""Read values with different errors below and above, as in astronomical catalogues.

    The Gaussian has the mean and the variance of a law that the three numbers describe, with the
    lower error l and the upper error u:

    ========== ================================================ ==========================
    `center`   law                                              mean - value, variance
    ========== ================================================ ==========================
    "median"   half a normal law on either side, each with      (u - l) / sqrt(2 pi),
               probability 1/2                                  (l^2 + u^2) / 2 - shift^2
    "mode"     two-piece normal law: the same, joined without   (u - l) sqrt(2 / pi),
               a jump of the density                            (1 - 2/pi)(u - l)^2 + l u
    "mean"     normal law, both errors averaged                 0, ((l + u) / 2)^2
    ========== ================================================ ==========================

    Parameters
    ----------
    values : array-like of shape (n_samples, n_features)
        The values of the catalogue.
    lower, upper : array-like of shape (n_samples, n_features)
        Errors below and above, both >= 0, in the unit of `values`: 68.27 % of the probability lies
        between ``values - lower`` and ``values + upper``, half on either side for "median".
    center : {"median", "mode", "mean"}, default="median"
        What `values` are. Quantiles of 16, 50 and 84 % are "median", a best fit is "mode".
    limits : {"error", "one_sided"} or array-like, default="error"
        What to do where an error is NaN, as for values that are upper or lower limits. "error"
        raises ValueError. "one_sided" takes the error of the other side, and raises where both are
        missing. Numbers, one or one per feature, stand in for each missing error. Values that are
        NaN always raise.

    Returns
    -------
    Gaussians
        With diagonal covariances. The means differ from `values` where errors are not symmetric.

    References
    ----------
    R. Barlow, "Asymmetric errors", Proceedings of PHYSTAT 2003, for "median"; S. John, "The
    three-parameter two-piece normal family of distributions", Communications in Statistics 11
    (1982), for "mode".

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import asymmetric_errors
    >>> X = asymmetric_errors([[1.0]], [[0.2]], [[0.4]], center="mean")
    >>> X.mean, X.covariances.variances()
    (array([[1.]]), array([[0.09]]))
    """
    if center not in ("median", "mode", "mean"):
        raise ValueError(f"center must be 'median', 'mode' or 'mean', got {center!r}")
    bare, unit = units.split(values)
    read = _finite(bare, "values", "n_samples", "n_features").astype(np.float64, copy=False)
    labels, features = labels_of(values, "values"), units.for_features(unit, read.shape[1])
    l, u = (  # noqa: E741
        _read_side(side, name, read, labels, features)
        for name, side in (("lower", lower), ("upper", upper))
    )
    l, u = _fill_missing(l, u, limits, features)  # noqa: E741
    if center == "median":
        shift = (u - l) / np.sqrt(2 * np.pi)
        variance = (l**2 + u**2) / 2 - shift**2
    elif center == "mode":
        shift = (u - l) * np.sqrt(2 / np.pi)
        variance = (1 - 2 / np.pi) * (u - l) ** 2 + l * u
    else:
        shift, variance = np.zeros_like(l), ((l + u) / 2) ** 2
    covariances = Covariances.diagonal(variance, argument="lower and upper")
    gaussians = as_gaussians(read + shift, X_cov=covariances, labels=labels)
    return gaussians.replaced(feature_units=features)


def _read_side(
    errors: Any, argument: str, values: FloatArray, labels: Labels, features: FeatureUnits
) -> FloatArray:
    side = _read_errors(errors, argument, values, labels, features, *values.shape)
    side = side.astype(np.float64, copy=False)
    bad = ~np.isnan(side) & ~((side >= 0) & (side <= 1e75))  # squares stay below 1e150
    verdict = "errors must be finite and >= 0; give -lower where a catalogue has negative ones"
    reading.refuse_where(bad, argument, verdict, side)
    return side


def _fill_missing(
    lower: FloatArray, upper: FloatArray, limits: Any, features: FeatureUnits
) -> tuple[FloatArray, ...]:
    if isinstance(limits, str):
        if limits not in ("error", "one_sided"):
            raise ValueError(f"limits must be 'error', 'one_sided' or numbers, got {limits!r}")
        if limits == "one_sided":
            lower, upper = (
                np.where(np.isnan(lower), upper, lower),
                np.where(np.isnan(upper), lower, upper),
            )
        for name, side in (("lower", lower), ("upper", upper)):
            reading.refuse_where(
                np.isnan(side), name, "missing; say by `limits` what it stands for"
            )
        return lower, upper
    bare, unit = units.split(limits)
    standing_in = reading.as_float_array(bare, "limits").astype(np.float64)
    if standing_in.shape not in ((), lower.shape[1:]):
        raise ValueError(
            f"limits has shape {standing_in.shape}, expected one number or {lower.shape[1]}"
        )
    bad = np.atleast_1d(~((standing_in >= 0) & (standing_in <= 1e75)))
    reading.refuse_where(bad, "limits", "it must be finite and >= 0", np.atleast_1d(standing_in))
    factors = units.error_factors(unit, features, 2, "limits", "values")
    if factors is not None:
        standing_in = standing_in * factors
    return tuple(np.where(np.isnan(side), standing_in, side) for side in (lower, upper))


def quantiles(values: ArrayLike, probabilities: ArrayLike) -> Gaussians:
    r"""Fit a normal law to quantiles of each value.

    The quantiles of :math:`N(\mu, \sigma^2)` are :math:`q(p) = \mu + \sigma \Phi^{-1}(p)`;
    :math:`\mu` and :math:`\sigma` are the least-squares line through the points
    :math:`(\Phi^{-1}(p_k), q_k)`, which passes through all of them when there are two.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_features, n_quantiles)
        Quantiles, not decreasing along the last axis.
    probabilities : array-like of shape (n_quantiles,)
        Two or more, increasing, between 0 and 1; 0.16 and 0.84 for the usual interval, 0.25, 0.5
        and 0.75 for quartiles.

    Returns
    -------
    Gaussians
        With diagonal covariances; equal quantiles make a certain value.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import quantiles
    >>> X = quantiles([[[-0.6745, 0.0, 0.6745]]], [0.25, 0.5, 0.75])
    >>> X.covariances.variances().round(4)
    array([[1.]])
    """
    levels = _finite(probabilities, "probabilities", "n_quantiles").astype(np.float64)
    if len(levels) < 2 or not (levels > 0).all() or not (levels < 1).all():
        raise ValueError(f"probabilities must be two or more between 0 and 1, got {levels}")
    if not (np.diff(levels) > 0).all():
        raise ValueError(f"probabilities must increase, got {levels}")
    bare, unit = units.split(values)
    axes = ("n_samples", "n_features", len(levels))
    read = _finite(bare, "values", *axes).astype(np.float64, copy=False)
    steps = np.diff(read, axis=2)
    reading.refuse_where(steps < 0, "values", "the step to the next quantile; none may fall", steps)
    z = ndtri(levels)
    weights = z - z.mean()
    middle, from_middle = centred(np.moveaxis(read, 2, 0))
    std = np.tensordot(weights / (weights @ weights), from_middle, 1)
    # Rounding can leave a spread of nearly equal quantiles just below 0.
    covariances = Covariances.from_std(np.maximum(std, 0.0), argument="values")
    gaussians = as_gaussians(middle - std * z.mean(), X_cov=covariances)
    return gaussians.replaced(feature_units=units.for_features(unit, read.shape[1]))
