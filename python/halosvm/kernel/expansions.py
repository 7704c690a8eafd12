"""The decision value of a kernel machine, f(x) = sum_j c_j h_j(x) with h_j(x) = E k(x, z), z ~ Z_j.

Examples x ~ X_i and support examples Z_j enter, the expectation of f(x) leaves, and by `spread` its
standard deviation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianEstimator, require_finite_decisions
from halosvm.checks.parameters import require_choice, thread_count
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures, moments_of
from halosvm.kernel.given_kernel import GivenKernel, PrecomputedKernel
from halosvm.kernel.spread import SPREADS, NoClosedFormError, expansion_std

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples
    from halosvm.kernel.expected_kernel import ExpectedKernel

    Array = NDArray[np.float64]

_BLOCK = 2**22  # numbers of kernels that are held at a time


class KernelExpansion(GaussianEstimator):
    """Scores f(x) = sum_j c_j h_j(x) + b; base class of the kernel machines."""

    _example_types = (Gaussians, GaussianMixtures)

    n_threads: int | None
    spread: str = "auto"  # pickles of before have none
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
        example. f(x) is not Gaussian. The parameter `spread` says how it is found. With
        ``normalize=True``, "rbf" and "laplacian" only, it is divided by the root of the kernel of
        X_i with itself, as the decision value is.

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
            With spread="exact" for kernels without closed form; for a level-2 kernel, a polynomial
            one that is normalised, and one of the user's.

        Notes
        -----
        For m support examples and d features an example costs, with spread="exact" and "rbf":
        O(m^2 d) if all covariances are zero, isotropic or diagonal; O(m^2 r^3) if its own are
        factors of rank r without a diagonal, or with full matrices, where r is d; else
        O(m^2 (d r^2 + r^3)) for the ranks r of both sides together. With "poly" of degree 2:
        O(d^2) for each pair of classes, O(d^3) for full matrices. "draws" cost 64 to 256 m
        kernels and "slopes" 2 r m, in place of the m^2.
        """
        check_is_fitted(self)
        require_choice(self.spread, "spread", SPREADS)
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
            self.spread,
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
