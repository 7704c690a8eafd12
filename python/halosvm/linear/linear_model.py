"""What linear models of Gaussians share: scores and their spread, of mixtures as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import GaussianEstimator, require_finite_decisions
from halosvm.checks.parameters import thread_count
from halosvm.gaussians.mixtures import GaussianMixtures

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]


class LinearScores(GaussianEstimator):
    """Scores f_k(x) = w_k'x + b_k of fitted models and their spread, a column for each k."""

    n_threads: int | None

    def _scores(
        self, X: Any, coef: Array, intercept: Array, X_std: Any = None, X_cov: Any = None
    ) -> Array:
        means = self._read_means(X, X_std, X_cov)
        values = _core.decision_function(means, coef, intercept, thread_count(self.n_threads))
        require_finite_decisions(values, means)
        return values

    def _spreads(self, X: Any, X_std: Any, X_cov: Any, coef: Array) -> Array:
        data = self._read_with_errors(X, X_std, X_cov)
        mixtures = isinstance(data, GaussianMixtures)
        parts = data.components if mixtures else data
        threads = thread_count(self.n_threads)
        std: Array = _core.decision_std(parts.covariances.core_view(), coef, threads)
        return np.sqrt(data.variances_of(parts.mean @ coef.T, np.square(std))) if mixtures else std


class LinearModel(LinearScores):
    """Base class of the linear classifiers."""

    coef_: Array
    intercept_: Array

    def decision_function(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the decision values w'x + b, for uncertain examples their means.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; a covariance does not change the mean decision value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values speak for `classes_[1]`, or for the class of the column.
        """
        check_is_fitted(self)
        return self._squeezed(self._scores(X, self.coef_, self.intercept_, X_std, X_cov))

    def decision_std(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation sqrt(w'Sw) of each example's decision value.

        S is the covariance; of a mixture, that within its components plus that of their means.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without covariances are certain.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        return self._squeezed(self._spreads(X, X_std, X_cov, self.coef_))

    def side_probability(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the probability P(f(X) > 0) that an uncertain example lies on the positive side.

        It counts the error bars of the example alone, not how well the classes separate; for a
        certain example it is 0, 1/2 or 1. Of a mixture it is the mean over its components.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        data = self._read_with_errors(X, X_std, X_cov)
        mixtures = isinstance(data, GaussianMixtures)
        parts = data.components if mixtures else data
        probability: Array = _core.side_probability(
            self.decision_function(parts), self.decision_std(parts)
        )
        return data.means_of(probability) if mixtures else probability

    def _squeezed(self, values: Array) -> Array:
        return values[:, 0] if values.shape[1] == 1 else values
