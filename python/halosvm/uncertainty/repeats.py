"""Errors from repeated readings: readings and the object of each in; one Gaussian an object out.

`pooled_errors` takes errors from how readings differ, and lends objects of few readings what the
others tell. `combined_readings` weighs readings by errors of their own, and tests these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, digamma, polygamma

from halosvm.checks import reading
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.gaussians.groups import read_groups

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

# A variance of 0, in the fit of the prior, is this part of the median of the others (limma).
_OF_MEDIAN = 1e-5


class PooledErrors(NamedTuple):
    """What repeated readings tell of each object, and of errors in general.

    Attributes
    ----------
    X : Gaussians
        Means of the readings of each object and the variances s~^2 / N of these; missing where an
        object has no reading. `groups` are the objects, in ascending order.
    nu : ndarray of shape (n_objects, n_features)
        Degrees of freedom nu_0 + N - 1: the error of a mean, over its standard deviation, is
        Student's t. Infinite for a normal error; NaN where there is no reading.
    prior_nu, prior_variance : ndarray of shape (n_features,)
        nu_0 and s_0^2: how alike the variances of objects are, and what they are like.
    counts : ndarray of shape (n_objects, n_features)
        N, the number of readings.
    """

    X: Gaussians
    nu: Array
    prior_nu: Array
    prior_variance: Array
    counts: NDArray[np.intp]


class CombinedReadings(NamedTuple):
    """Weighted means of readings, and whether their errors are right.

    Attributes
    ----------
    X : Gaussians
        Of each object x and S; missing where it has no reading. `groups` are the objects, in
        ascending order.
    chi2 : ndarray of shape (n_objects,)
        Squares of the deviations of readings from x, over their errors.
    degrees : ndarray of shape (n_objects,)
        Values that are read, less those of x: (N - 1) d if none is missing.
    p_value : ndarray of shape (n_objects,)
        Probability of so large a chi2 if errors are right; NaN for 0 degrees.
    total : tuple of float, int and float
        The same three of all objects together. A small p value says that errors are too small, one
        near 1 that they are too large.
    """

    X: Gaussians
    chi2: Array
    degrees: NDArray[np.intp]
    p_value: Array
    total: tuple[float, int, float]


def pooled_errors(X: ArrayLike, groups: ArrayLike) -> PooledErrors:
    r"""Estimate the errors of means from repeated readings, two or three of each object.

    The variance s_i^2 of :math:`N_i` readings has :math:`\nu_i = N_i - 1` degrees of freedom, too
    few to be used alone. Variances of all objects are drawn from a scaled inverse chi-squared
    distribution, with :math:`\nu_0` degrees of freedom and scale :math:`s_0^2`, and what is known
    of one is moderated by it, feature by feature:

    .. math:: \tilde s_i^2 = \frac{\nu_0 s_0^2 + \nu_i s_i^2}{\nu_0 + \nu_i}

    Parameters
    ----------
    X : array-like of shape (n_readings, n_features)
        Readings; NaN and masked entries are missing.
    groups : array-like of shape (n_readings,)
        Which object each is of: numbers or names. An object may have any number of readings; one
        that has one gets the variance :math:`s_0^2`.

    Returns
    -------
    PooledErrors
        In the units, and with the feature names, of `X`.

    Raises
    ------
    ValueError, TypeError
        For infinite values, and features of which fewer than two objects have two readings, or all
        readings of each object are equal.

    Warns
    -----
    UserWarning
        If readings of an object are all equal, as rounded ones may be.

    Notes
    -----
    The prior is fitted by the moments of log variances [1]_. With
    :math:`e_i = \log s_i^2 - \psi(\nu_i / 2) + \log(\nu_i / 2)` of the n objects of two or more
    readings, :math:`\psi'(\nu_0 / 2)` is the mean of
    :math:`(e_i - \bar e)^2 n / (n - 1) - \psi'(\nu_i / 2)`, and
    :math:`\log s_0^2 = \bar e + \psi(\nu_0 / 2) - \log(\nu_0 / 2)`. Where variances differ no more
    than by chance, that mean is 0 or less: then :math:`\nu_0` is infinite, all objects have one
    variance, :math:`\sum \nu_i s_i^2 / \sum \nu_i`, and errors are normal.

    A variance of 0 has no logarithm. In the fit of the prior it counts as 1e-5 of the median of
    those above 0, as in the package limma; in :math:`\tilde s_i^2` it is 0.

    References
    ----------
    .. [1] G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential
       expression in microarray experiments", Statistical Applications in Genetics and Molecular
       Biology 3 (2004).

    Examples
    --------
    >>> from halosvm.uncertainty import pooled_errors
    >>> readings = [[5.1], [5.3], [4.8], [7.0], [6.6], [6.1]]
    >>> found = pooled_errors(readings, ["a", "a", "b", "c", "c", "c"])
    >>> found.X.groups.tolist(), found.counts.ravel().tolist()
    (['a', 'b', 'c'], [2, 1, 3])
    >>> found.X.covariances.variances().ravel().round(3)
    array([0.071, 0.142, 0.047])
    """
    data = as_gaussians(X, missing=True)
    if not data.covariances.certain:
        raise ValueError("X has errors; combined_readings weighs readings by their errors")
    names, codes = read_groups(groups, X, len(data), other="X")
    n, d = len(names), data.shape[1]
    there, first, counts, members = _by_object(data, codes, n)
    from_first = np.where(there, data.mean - first[codes], 0.0)
    mean = _over(members @ from_first, counts)
    squares = members @ np.where(there, from_first - mean[codes], 0.0) ** 2
    degrees = counts - 1
    prior_nu, prior_variance = np.empty(d), np.empty(d)
    for j in range(d):
        known = degrees[:, j] > 0
        called = f"column {j}" if data.feature_names is None else f"{data.feature_names[j]!r}"
        if np.count_nonzero(known) < 2:
            raise ValueError(
                f"X: {np.count_nonzero(known)} object(s) have two or more readings of {called}; "
                "errors are pooled from 2 or more"
            )
        nu = degrees[known, j].astype(np.float64)
        prior_nu[j], prior_variance[j] = _prior(squares[known, j] / nu, nu, called)
    own = np.where(counts > 1, squares, 0.0)  # nu_i s_i^2
    nu_i = np.maximum(degrees, 0)
    endless = np.isinf(prior_nu)
    nu_0 = np.where(endless, 1.0, prior_nu)
    moderated = (nu_0 * prior_variance + own) / (nu_0 + nu_i)
    moderated = np.where(endless, prior_variance, moderated)
    read = counts > 0
    variances = np.where(read, _over(moderated, counts), 0.0)
    covariances = Covariances.diagonal(variances, argument="variances of X")
    return PooledErrors(
        _objects(data, np.where(read, first + mean, np.nan), covariances, names),
        np.where(read, prior_nu + nu_i, np.nan),
        prior_nu,
        prior_variance,
        counts,
    )


def combined_readings(
    X: Gaussians | ArrayLike,
    groups: ArrayLike,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
) -> CombinedReadings:
    r"""Combine readings that have errors of their own, and test whether these are right.

    .. math:: S = \bigl(\sum_r S_r^{-1}\bigr)^{-1}, \qquad x = S \sum_r S_r^{-1} x_r, \qquad
              \chi^2 = \sum_r (x_r - x)' S_r^{-1} (x_r - x)

    Parameters
    ----------
    X : Gaussians or array-like of shape (n_readings, n_features)
        Readings, or only their values; NaN and masked entries are missing.
    groups : array-like of shape (n_readings,)
        Which object each is of: numbers or names.
    X_std : array-like of shape (n_readings, n_features) or (n_readings,), optional
        Standard deviations of the errors; infinite where a value is missing.
    X_cov : Covariances or array-like, optional
        Covariances of the errors; an array is read by its dimensions, as by `Gaussians`.

    Returns
    -------
    CombinedReadings
        In the units, and with the feature names, of `X`.

    Raises
    ------
    ValueError, TypeError
        For infinite values, and errors that are 0 or have a singular covariance.

    Notes
    -----
    The errors of one object's readings are independent of each other. If they are right, chi2
    follows the chi-squared distribution; if p values of many objects are small, their errors leave
    something out, as a part that is common to all readings of a day.

    Examples
    --------
    >>> from halosvm.uncertainty import combined_readings
    >>> found = combined_readings([[1.0], [3.0], [7.0]], ["a", "a", "b"], X_std=[1.0, 1.0, 0.5])
    >>> found.X.mean.ravel(), found.X.covariances.variances().ravel()
    (array([2., 7.]), array([0.5 , 0.25]))
    >>> found.chi2, found.degrees, found.p_value.round(3)
    (array([2., 0.]), array([1, 0]), array([0.157,   nan]))
    """
    data = as_gaussians(X, X_std=X_std, X_cov=X_cov, missing=True)
    names, codes = read_groups(groups, X, len(data), other="X")
    n, d = len(names), data.shape[1]
    there, first, counts, members = _by_object(data, codes, n)
    errors = data.covariances.variances()
    reading.refuse_where(
        there & (errors == 0),
        "errors of X",
        "readings are weighted by 1 / error^2: it must be above 0",
        errors,
    )
    from_first = np.where(there, data.mean - first[codes], 0.0)
    read = counts > 0
    if storage_of(data.covariances).independent:
        weights = np.where(there, 1.0 / np.where(there, errors, 1.0), 0.0)
        total = members @ weights
        mean = _over(members @ (weights * from_first), total)
        rest = from_first - mean[codes]
        squares = np.sum(weights * rest**2, axis=1)
        covariances = Covariances.diagonal(np.where(read, _over(1.0, total), 0.0))
    else:
        both = there[:, :, np.newaxis] & there[:, np.newaxis, :]
        S = np.where(both, data.covariances.to_full(), 0.0)
        weights = _inverses(S, there)
        total = (members @ weights.reshape(len(data), d * d)).reshape(n, d, d)
        spread = _inverses(total, read)
        pulled = members @ np.einsum("nij,nj->ni", weights, from_first)
        mean = np.einsum("nij,nj->ni", spread, pulled)
        rest = np.where(there, from_first - mean[codes], 0.0)
        squares = np.einsum("ni,nij,nj->n", rest, weights, rest)
        covariances = Covariances.full(spread)
    chi2 = members @ squares
    degrees = counts.sum(axis=1) - read.sum(axis=1)
    p_value = np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), chi2), np.nan)
    all_squares, all_degrees = float(chi2.sum()), int(degrees.sum())
    of_all = float(chdtrc(all_degrees, all_squares)) if all_degrees else np.nan
    return CombinedReadings(
        _objects(data, np.where(read, first + mean, np.nan), covariances, names),
        chi2,
        degrees,
        p_value,
        (all_squares, all_degrees, of_all),
    )


def _by_object(
    data: Gaussians, codes: NDArray[np.intp], n: int
) -> tuple[NDArray[np.bool_], Array, NDArray[np.intp], Any]:
    """Return which values are there, the first of each object, their numbers, and what adds them.

    Deviations from the first reading keep their digits, and are exactly 0 where readings are equal.
    """
    there = ~np.isnan(data.mean)
    rows = np.arange(len(data))
    members = sparse.csr_array((np.ones(len(data)), (codes, rows)), shape=(n, len(data)))
    counts = np.rint(members @ there.astype(np.float64)).astype(np.intp)
    first = np.zeros((n, data.shape[1]))
    for j in range(data.shape[1]):
        read = np.flatnonzero(there[:, j])[::-1]
        first[codes[read], j] = data.mean[read, j]  # of equal indices the last one counts
    return there, first, counts, members


def _over(values: Any, counts: Any) -> Array:
    """Divide, 0 where there is nothing."""
    values, counts = np.broadcast_arrays(np.asarray(values, np.float64), counts)
    quotients: Array = np.divide(values, counts, out=np.zeros(counts.shape), where=counts > 0)
    return quotients


def _objects(
    data: Gaussians, mean: Array, covariances: Covariances, names: NDArray[Any]
) -> Gaussians:
    made = as_gaussians(mean, X_cov=covariances, missing=True)
    return made.replaced(
        feature_names=data.feature_names, feature_units=data.feature_units, groups=names
    )


def _prior(variances: Array, nu: Array, called: str) -> tuple[float, float]:
    """Return nu_0 and s_0^2 of the variances of one feature, by the moments of their logarithms."""
    zero = np.count_nonzero(variances == 0)
    if zero == len(variances):
        raise ValueError(
            f"X: all readings of an object are equal in {called}, so that they tell no error; "
            "standard_errors takes errors that are known"
        )
    if zero:
        warn_user(
            f"X: {zero} of {len(variances)} objects have readings of {called} that are all equal; "
            "if they were rounded, errors may be larger than they seem",
            UserWarning,
        )
    least = _OF_MEDIAN * np.median(variances[variances > 0])
    e = np.log(np.maximum(variances, least)) - digamma(nu / 2) + np.log(nu / 2)
    n = len(e)
    excess = float(np.mean((e - e.mean()) ** 2 * n / (n - 1) - polygamma(1, nu / 2)))
    if excess <= 0:
        return np.inf, float(nu @ variances / nu.sum())
    half = trigamma_inverse(excess)
    return 2.0 * half, float(np.exp(e.mean() + digamma(half) - np.log(half)))


def trigamma_inverse(value: float) -> float:
    """Return y > 0 with trigamma(y) = value > 0.

    Newton's method on 1 / trigamma, which is convex and nearly straight: from 1/2 + 1 / value,
    which lies above, every step stays above (Smyth 2004, appendix).
    """
    if value > 1e7:
        return float(value**-0.5)
    if value < 1e-6:
        return 1.0 / value
    y = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, y))
        y += step
        if -step < 1e-12 * y:
            break
    return y


def _inverses(matrices: Array, there: NDArray[np.bool_]) -> Array:
    """Return inverses of the parts of matrices that are there, 0 elsewhere.

    Features are taken in units of their own variance, which may be of very different sizes.
    """
    unit = np.where(there, np.sqrt(np.einsum("njj->nj", matrices)), 1.0)
    unit = unit[:, :, np.newaxis] * unit[:, np.newaxis, :]
    unseen = np.eye(matrices.shape[1]) * ~there[:, :, np.newaxis]
    values, vectors = np.linalg.eigh(matrices / unit + unseen)
    singular = values[:, 0] <= matrices.shape[1] * np.finfo(np.float64).eps * values[:, -1]
    if singular.any():
        raise ValueError(
            f"errors of X: the covariance of row {np.argmax(singular)} is singular; readings are "
            "weighted by its inverse"
        )
    inverse: Array = np.einsum("nik,nk,njk->nij", vectors, 1.0 / values, vectors)
    return (inverse - unseen) / unit
