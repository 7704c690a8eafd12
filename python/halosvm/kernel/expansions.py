"""The decision value of a kernel machine, and its spread over an uncertain example.

f(x) = sum_j c_j h_j(x) with h_j(x) = E k(x, z) over z ~ Z_j; examples x ~ X_i and support examples
Z_j enter, the expectation and the standard deviation of f(x) leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import GaussianEstimator, require_finite_decisions
from halosvm.checks.parameters import thread_count
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures, moments_of
from halosvm.kernel.given_kernel import GivenKernel, PrecomputedKernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples
    from halosvm.kernel.expected_kernel import ExpectedKernel

    Array = NDArray[np.float64]

_BLOCK = 2**22  # numbers of kernels or dense matrices that are held at a time


class NoClosedFormError(ValueError):
    """The standard deviation of decision values has no closed form for a kernel."""


class KernelExpansion(GaussianEstimator):
    """Scores f(x) = sum_j c_j h_j(x) + b; base class of the kernel machines."""

    _example_types = (Gaussians, GaussianMixtures)

    n_threads: int | None
    classes_: NDArray[Any]
    support_gaussians_: Examples
    dual_coef_: Array
    n_support_: NDArray[np.int32]
    # As it was fitted, whatever became of the parameters since.
    _kernel: ExpectedKernel | GivenKernel

    @property
    def support_vectors_(self) -> NDArray[Any]:
        """Means of the support examples; none are kept of a precomputed kernel."""
        check_is_fitted(self)
        if isinstance(self._kernel, PrecomputedKernel):
            return np.empty((0, 0))
        means: NDArray[Any] = moments_of(self.support_gaussians_)[0]
        return means

    @property
    def _pairs(self) -> Array:
        """The coefficients of all support examples in each pair of classes.

        `SVC` stores of an example of class i its coefficients against each other class, in order;
        those of two classes it stores with the sign of the decision function already turned.
        """
        n_classes, dual_coef = len(self.n_support_), self.dual_coef_
        if n_classes == 2:
            return dual_coef
        ends = np.r_[0, np.cumsum(self.n_support_)]
        of_class = [slice(ends[i], ends[i + 1]) for i in range(n_classes)]
        pairs = np.zeros((n_classes * (n_classes - 1) // 2, dual_coef.shape[1]))
        for row, i, j in zip(pairs, *np.triu_indices(n_classes, 1), strict=True):
            row[of_class[i]] = dual_coef[j - 1, of_class[i]]
            row[of_class[j]] = dual_coef[i, of_class[j]]
        return pairs

    def decision_std(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        r"""Return the standard deviation of the decision value over each uncertain example.

        The decision value f(x) is a function of the point x, the support examples being what they
        are; this is its standard deviation over :math:`x \sim X_i`, exactly 0 for a certain
        example, and in closed form for the kernels "rbf", "linear" and "poly" of degree 1 or 2. It
        keeps its digits however small the covariances are. f(x) is not Gaussian. It takes all pairs
        of support examples, n_samples n_support^2 kernels with "rbf", where `decision_function`
        takes n_samples n_support: milliseconds an example from 1,000 support examples on. With
        ``normalize=True``, "rbf" only, it is divided by the root of the kernel of X_i with itself,
        as the decision value is.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without covariances are certain.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_pairs)
            Of more than two classes, that of the decision value of each pair of classes, in the
            order of `intercept_` and of `decision_function` with decision_function_shape="ovo".

        Raises
        ------
        ValueError
            For kernels without closed form, and a level-2 kernel.

        Notes
        -----
        For m support examples and d features an example costs, with "rbf": O(m^2 d) if all
        covariances are zero, isotropic or diagonal; O(m^2 r^3) if its own are factors of rank r
        without a diagonal, or with full matrices, where r is d; else O(m^2 (d r^2 + r^3)) for the
        ranks r of both sides together. With "poly" of degree 2: O(d^2) for each pair of classes,
        O(d^3) for full matrices.
        """
        check_is_fitted(self)
        if isinstance(self._kernel, GivenKernel):
            raise NoClosedFormError(
                f"kernel {self._kernel.kind} has no closed form of the standard deviation"
            )
        if self._kernel.tau is not None:
            raise NoClosedFormError(
                "level2='gaussian' has no standard deviation in closed form; the expected kernel "
                "itself, level2=None, has one"
            )
        std = expansion_std(
            self._read_with_errors(X, X_std, X_cov),
            self.support_gaussians_,
            self._pairs,
            self._kernel,
            thread_count(self.n_threads),
        )
        return std[:, 0] if len(self.classes_) == 2 else std


def expansion_values(
    X: Examples,
    Z: Any,
    coefficients: Array,
    intercepts: Array,
    kernel: ExpectedKernel | GivenKernel,
    n_threads: int,
) -> Array:
    """Return sum_j c_pj k(X_i, Z_j) + b_p, (n_samples, n_problems), in blocks of examples.

    Parameters
    ----------
    X, Z : Gaussians or GaussianMixtures
        Examples, and the support examples; of a precomputed kernel the rows of these.
    coefficients : ndarray of shape (n_problems, n_support)
        The c.
    intercepts : ndarray of shape (n_problems,)
        The b.
    kernel : ExpectedKernel
    n_threads : int
        Number of threads; 0 stands for every processor.

    Raises
    ------
    ValueError
        If a kernel or a decision value overflows.
    """
    values = np.empty((len(X), len(intercepts)))
    step = max(1, _BLOCK // max(1, len(Z)))
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        with np.errstate(over="ignore", invalid="ignore"):
            values[rows] = kernel.gram(X[rows], Z, n_threads=n_threads) @ coefficients.T
            values[rows] += intercepts
    require_finite_decisions(values)
    return values


def expansion_std(
    X: Examples,
    Z: Examples,
    coefficients: Array,
    kernel: ExpectedKernel,
    n_threads: int,
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

    Raises
    ------
    ValueError
        For a kernel without closed form.
    """
    _require_closed_form(kernel)
    if kernel.order is None:
        variance = _core.expansion_variance(
            X.core_view(), Z.core_view(), coefficients, kernel.gamma, kernel.normalize, n_threads
        )
        return np.sqrt(variance)
    if isinstance(Z, GaussianMixtures):
        coefficients = Z.weights * np.repeat(coefficients, np.diff(Z.offsets), axis=1)
        Z = Z.components
    moments = _quadratic_moments if kernel.order == 2 else _linear_moments
    points = X.components if isinstance(X, GaussianMixtures) else X
    means, variances = moments(points, Z, coefficients, kernel)
    if isinstance(X, GaussianMixtures):
        centres = X.sums(X.weights[:, np.newaxis] * means)
        variances = variances + np.square(means - np.repeat(centres, np.diff(X.offsets), axis=0))
        variances = X.sums(X.weights[:, np.newaxis] * variances)
    return np.sqrt(np.maximum(variances, 0.0))


def _require_closed_form(kernel: ExpectedKernel) -> None:
    if not kernel.spread_has_closed_form:
        name = kernel.kind if kernel.order is None else f"{kernel.kind} of degree {kernel.order}"
        raise NoClosedFormError(
            f"kernel {name} has no closed form of the standard deviation; rbf, linear and poly of "
            "degree 1 and 2 have one"
        )
    if kernel.normalize and kernel.order is not None:
        raise NoClosedFormError(
            f"normalize=True with kernel {kernel.kind} has no standard deviation in closed form: "
            "it divides also certain points, each by a number of its own; rbf has one"
        )


def _linear_moments(
    X: Gaussians, Z: Gaussians, weights: Array, kernel: ExpectedKernel
) -> tuple[Array, Array]:
    """Return means, less a constant, and variances of w'x with w = sum_j c_j z_j, scaled."""
    w = np.ascontiguousarray((weights @ Z.mean) * kernel.gamma)
    std = _core.decision_std(X.covariances.core_view(), w, thread_count(None))
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
