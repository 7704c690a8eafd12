"""The spread of a kernel machine's decision value over an uncertain example.

In:  examples x ~ X_i, support examples and their coefficients, a kernel, and the way to go.
Out: the standard deviations of f(x) = sum_j c_j h_j(x): in closed form, of draws, or of slopes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from halosvm import _core
from halosvm.gaussians.covariance_arrays import roots_of
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples
    from halosvm.kernel.expected_kernel import ExpectedKernel

    Array = NDArray[np.float64]

SPREADS = ("auto", "exact", "slopes", "draws")
# Pairs of support components, times the squared rank of their factors, up to which "auto" takes the
# closed form, whatever the number of rows: what is said of a row must not depend on the rows beside
# it. There a row takes some milliseconds, as long as one to three rows by draws, with diagonal
# covariances of 10 features; from 2^15 to 2^18 either is a fair choice. Of full ones, whose rank is
# the number of features, a pair takes about the square of that as long (bench/kernel_spread.py).
_EXACT_PAIRS = 2**16
# Directions, each taken forth and back: as many as features within these limits, so that f is free
# to be linear at no error.
_FEWEST, _MOST = 32, 128
# Standard deviation, in units of the kernel's bandwidth, up to which f is linear to ten digits. At
# it differences of f keep ten digits as well.
_NARROW = 1e-5
_BLOCK = 2**22  # numbers of kernels or dense matrices that are held at a time


class NoClosedFormError(ValueError):
    """The standard deviation of decision values has no closed form for a kernel."""


def expansion_std(
    X: Examples,
    Z: Examples,
    coefficients: Array,
    kernel: ExpectedKernel,
    n_threads: int,
    spread: str = "auto",
) -> Array:
    """Return the standard deviations of sum_j c_pj h_j(x) over x ~ X_i, (n_samples, n_problems).

    Parameters
    ----------
    X, Z : Gaussians or GaussianMixtures
        Examples, and the support examples.
    coefficients : ndarray of shape (n_problems, n_support)
        The c.
    kernel : ExpectedKernel
        Not of level 2.
    n_threads : int
        Number of threads; 0 stands for every processor.
    spread : {"auto", "exact", "slopes", "draws"}
        As in `UncertainKernelSVC`.

    Raises
    ------
    ValueError
        For a kernel without closed form where that is asked for, and a polynomial kernel that is
        normalised.
    """
    if kernel.normalize and kernel.order is not None:
        raise NoClosedFormError(
            f"normalize=True with kernel {kernel.kind} has no standard deviation in closed form: "
            "it divides also certain points, each by a number of its own; rbf has one"
        )
    if spread == "exact" and not kernel.spread_has_closed_form:
        name = kernel.kind if kernel.order is None else f"{kernel.kind} of degree {kernel.order}"
        raise NoClosedFormError(
            f"kernel {name} has no closed form of the standard deviation; rbf, linear and poly of "
            "degree 1 and 2 have one, and spread='draws' takes any"
        )
    norms = _norms(X, kernel, n_threads) if kernel.normalize else np.ones((len(X), 1))
    if spread == "auto":
        cheap = kernel.order is not None or _cost_of_pairs(Z) <= _EXACT_PAIRS
        # the closed form divides in logarithms, where these may vanish
        closed = kernel.spread_has_closed_form and (cheap or not norms.all())
        spread = "exact" if closed else "draws"
    if spread == "exact" and kernel.order is None:
        variance = _core.expansion_variance(
            X.core_view(), Z.core_view(), coefficients, kernel.gamma, kernel.normalize, n_threads
        )
        return np.sqrt(variance)
    if not norms.all():
        row = int(np.argmin(norms))
        raise ValueError(f"X: the kernel of row {row} with itself vanishes; spread must be 'exact'")
    points = X.components if isinstance(X, GaussianMixtures) else X
    if spread == "exact":
        means, variances = _moments_of_polynomials(points, Z, coefficients, kernel, n_threads)
    else:
        parts = (points, Z, coefficients, kernel, n_threads)
        variances = _variances_by_points(*parts, slopes=spread == "slopes")
        means = _means(*parts) if isinstance(X, GaussianMixtures) else variances
    if isinstance(X, GaussianMixtures):
        variances = X.variances_of(means, variances)
    std: Array = np.sqrt(np.maximum(variances, 0.0)) / norms
    return std


def _cost_of_pairs(Z: Examples) -> int:
    """Return the number of pairs of components, times the squared rank of their factors."""
    parts = Z.components if isinstance(Z, GaussianMixtures) else Z
    covariances = parts.covariances.expanded()
    rank = covariances.n_features if storage_of(covariances).whole else _rank(covariances)
    return (len(parts) * max(rank, 1)) ** 2


def _rank(covariances: Covariances) -> int:
    """Return the largest number of factors of a matrix, of kinds that have some."""
    groups = storage_of(covariances).factor_groups(covariances)
    return max((F.shape[2] for _, F in groups), default=0)


def _norms(X: Examples, kernel: ExpectedKernel, n_threads: int) -> Array:
    """Return the roots of the kernel of each example with itself, (n, 1)."""
    plain = dataclasses.replace(kernel, normalize=False)
    return np.sqrt(plain.expectations_with_themselves(X, n_threads))[:, np.newaxis]


# ---- closed forms of polynomials -----------------------------------------------------------------
def _moments_of_polynomials(
    X: Gaussians, Z: Examples, coefficients: Array, kernel: ExpectedKernel, n_threads: int
) -> tuple[Array, Array]:
    if isinstance(Z, GaussianMixtures):
        coefficients = Z.weights * np.repeat(coefficients, np.diff(Z.offsets), axis=1)
        Z = Z.components
    if kernel.order == 2:
        return _quadratic_moments(X, Z, coefficients, kernel)
    return _linear_moments(X, Z, coefficients, kernel, n_threads)


def _linear_moments(
    X: Gaussians, Z: Gaussians, weights: Array, kernel: ExpectedKernel, n_threads: int
) -> tuple[Array, Array]:
    """Return means, less a constant, and variances of w'x with w = sum_j c_j z_j, scaled."""
    w = np.ascontiguousarray((weights @ Z.mean) * kernel.gamma)
    std = _core.decision_std(X.covariances.core_view(), w, n_threads)
    return X.mean @ w.T, np.square(std)


def _quadratic_moments(
    X: Gaussians, Z: Gaussians, weights: Array, kernel: ExpectedKernel
) -> tuple[Array, Array]:
    """Return means, less a constant, and variances of x'M x + k'x.

    (x'G z + c)^2 over z ~ N(z_j, T_j), with G = diag(gamma), makes
    M = G sum_j c_j (z_j z_j' + T_j) G and k = 2 c G sum_j c_j z_j. The mean is
    tr(M S) + mu'M mu + k'mu, the variance 2 tr(M S M S) + v'S v with v = 2 M mu + k.
    """
    n, d = X.shape
    gamma = np.broadcast_to(kernel.gamma, d)
    means, variances = np.empty((n, len(weights))), np.empty((n, len(weights)))
    for p, c in enumerate(weights):
        M = (Z.mean.T * c) @ Z.mean + _weighted_sum(Z.covariances, c)
        M *= np.outer(gamma, gamma)
        k = 2.0 * kernel.coef0 * gamma * (c @ Z.mean)
        for rows in _blocks(n, d):  # between which signals are heeded
            x = X.mean[rows]
            product = x @ M
            v = 2.0 * product + k
            part = X.covariances[rows]
            trace, squared, slope = storage_of(part).quadratic_forms(part, M, v)
            means[rows, p] = trace + np.einsum("nd,nd->n", product, x) + x @ k
            variances[rows, p] = 2.0 * squared + slope
    return means, variances


def _weighted_sum(covariances: Covariances, weights: Array) -> Array:
    """Return sum_j c_j S_j, (d, d)."""
    n, d = covariances.shape
    total = np.zeros((d, d))
    for rows in _blocks(n, d):
        part = covariances[rows]
        total += storage_of(part).weighted_sum(part, weights[rows])
    return total


def _blocks(n: int, d: int) -> Iterator[slice]:
    step = max(1, _BLOCK // (d * d))
    for begin in range(0, n, step):
        yield slice(begin, min(begin + step, n))


# ---- points drawn from each example --------------------------------------------------------------
def _means(
    X: Gaussians, Z: Examples, coefficients: Array, kernel: ExpectedKernel, n_threads: int
) -> Array:
    """Return E f(x) over each example, without intercept."""
    means: Array = kernel.gram(X, Z, n_threads=n_threads) @ coefficients.T
    return means * _norms(X, kernel, n_threads) if kernel.normalize else means


def _variances_by_points(
    X: Gaussians,
    Z: Examples,
    coefficients: Array,
    kernel: ExpectedKernel,
    n_threads: int,
    *,
    slopes: bool,
) -> Array:
    """Return variances of f over x = mu + R u, S = R R', of f at pairs of points mu +- R u.

    The part of f that is odd in u and the part that is even are not correlated. For slopes the u
    are the axes, and the pairs so near to the mean that f is linear there; so they are of examples
    that are themselves that narrow, whose digits differences of f would lose.
    """
    covariances = X.covariances.expanded()
    variances = storage_of(covariances).variances(covariances)
    length = np.sqrt((variances * kernel.inverse_squares).sum(axis=1))
    u = _directions(covariances, slopes=slopes)
    out = np.zeros((len(X), len(coefficients)))
    uncertain = np.flatnonzero(length > 0.0)
    d = X.shape[1]
    step = max(1, _BLOCK // max(2 * len(u) * max(len(Z), d), d * d))
    for begin in range(0, len(uncertain), step):
        rows = uncertain[begin : begin + step]
        stretch = _NARROW / length[rows]
        stretch = (stretch if slopes else np.maximum(stretch, 1.0))[:, np.newaxis, np.newaxis]
        shifts = _images(covariances[rows], u) * stretch
        centres = X.mean[rows, np.newaxis]
        points = np.concatenate([centres + shifts, centres - shifts], axis=1)
        K = kernel.gram(Gaussians(points.reshape(-1, d)), Z, n_threads=n_threads)
        f = (K @ coefficients.T).reshape(len(rows), 2, len(u), -1)
        odd, even = 0.5 * (f[:, 0] - f[:, 1]), 0.5 * (f[:, 0] + f[:, 1])
        out[rows] = np.square(odd).mean(axis=1)
        if not slopes:
            out[rows] += even.var(axis=1) * ((len(u) + 2) / (len(u) - 1))
        out[rows] /= np.square(stretch[:, 0])
    return out


def _directions(covariances: Covariances, *, slopes: bool) -> Array:
    """Return the u, always the same ones, (n_directions, n_columns of R).

    They are rows of orthogonal matrices, by which the mean of (u'v)^2 is exactly |v|^2 unless R has
    more columns than there are rows. Squares of such entries have the variance 2 (n - 1) / (n + 2)
    for n rows, in place of the 2 of normal ones.
    """
    n = _rank(covariances) + (covariances.n_features if _has_columns(covariances) else 0)
    if slopes:
        return np.asarray(np.sqrt(n) * np.eye(n))
    k = min(max(_FEWEST, covariances.n_features), _MOST)
    blocks = np.random.default_rng(0).standard_normal((-(-n // k), k, k))
    u: Array = np.sqrt(k) * np.concatenate(np.linalg.qr(blocks)[0], axis=1)[:, :n]
    return u


def _images(covariances: Covariances, u: Array) -> Array:
    """Return R u of each example and each u, (n, n_directions, d), for S = R R'."""
    storage, d = storage_of(covariances), covariances.n_features
    if storage.whole:
        return np.asarray(u @ roots_of(storage.dense(covariances)).transpose(0, 2, 1))
    images, first = np.zeros((len(covariances), len(u), d)), 0
    if _has_columns(covariances):
        own = storage.own_diagonal(covariances).astype(np.float64, copy=False)
        images += np.sqrt(own)[:, np.newaxis] * u[:, :d]
        first = d
    for rows, F in storage.factor_groups(covariances):
        images[rows] += u[:, first : first + F.shape[2]] @ F.transpose(0, 2, 1)
    return images


def _has_columns(covariances: Covariances) -> bool:
    """Tell whether R has a column for each feature, beside those of factors."""
    storage = storage_of(covariances)
    return storage.independent or storage.whole or covariances.diagonal_values is not None
