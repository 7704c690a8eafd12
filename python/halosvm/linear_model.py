"""What linear models of Gaussians share: reading examples, decision values and their spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from halosvm import _core
from halosvm.gaussians import Gaussians, as_gaussians

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.covariances import Covariances

    Array = NDArray[np.float64]

_DTYPES = [np.float64, np.float32]


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """Scores f_k(x) = w_k'x + b_k; base class of the linear estimators."""

    n_threads: int | None
    coef_: Array
    intercept_: Array

    def decision_function(self, X: Gaussians | ArrayLike) -> Array:
        """Return the decision values w'x + b, for uncertain examples their means.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples; a covariance does not change the mean decision value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values speak for `classes_[1]`, or for the class of the column.
        """
        check_is_fitted(self)
        values = _core.decision_function(
            self._read_means(X), self.coef_, self.intercept_, self.n_threads or 0
        )
        lost = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if lost.size:
            raise ValueError(f"X: row {lost[0]} is so large that its decision value overflows")
        return self._squeezed(values)

    def decision_std(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation sqrt(w'Sw) of each example's decision value.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without covariances are certain.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        data = self._read_data(X, X_std, X_cov)
        std = _core.decision_std(data.covariances.core_view(), self.coef_, self.n_threads or 0)
        return self._squeezed(std)

    def side_probability(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the probability P(f(X) > 0) that an uncertain example lies on the positive side.

        It counts the error bars of the example alone, not how well the classes separate; for a
        certain example it is 0, 1/2 or 1.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        data = self._read_data(X, X_std, X_cov)
        probability: Array = _core.side_probability(
            self.decision_function(data), self.decision_std(data)
        )
        return probability

    def _read_training_data(
        self, X: Any, y: Any, X_std: Any, X_cov: Any
    ) -> tuple[Gaussians, NDArray[Any]]:
        if not isinstance(X, Gaussians):
            means, y = validate_data(self, X, y, dtype=_DTYPES, order="C")
            names = getattr(self, "feature_names_in_", None)
            return as_gaussians(means, X_std=X_std, X_cov=X_cov, feature_names=names), y
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov)
        _require_rows(data)
        self.n_features_in_ = data.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if len(y) != len(data):
            raise ValueError(f"y has {len(y)} values, X has {len(data)} rows")
        return data, y

    def _read_means(self, X: Any) -> NDArray[Any]:
        if isinstance(X, Gaussians):
            return self._check_features(X).mean
        means = validate_data(self, X, reset=False, dtype=_DTYPES, order="C")
        return np.require(means, requirements=["ALIGNED"])

    def _read_data(self, X: Any, X_std: Any, X_cov: Any) -> Gaussians:
        if isinstance(X, Gaussians):
            return self._check_features(as_gaussians(X, X_std=X_std, X_cov=X_cov))
        names = getattr(self, "feature_names_in_", None)
        return as_gaussians(self._read_means(X), X_std=X_std, X_cov=X_cov, feature_names=names)

    def _check_features(self, X: Gaussians) -> Gaussians:
        _require_rows(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        expected = getattr(self, "feature_names_in_", None)
        if X.feature_names is not None and expected is not None:
            for i, (name, fitted) in enumerate(zip(X.feature_names, expected, strict=True)):
                if name != fitted:
                    raise ValueError(f"X has feature {i} named {name!r}, in fit it was {fitted!r}")
        return X

    def _squeezed(self, values: Array) -> Array:
        return values[:, 0] if values.shape[1] == 1 else values


def _require_rows(X: Gaussians) -> None:
    if len(X) == 0:
        raise ValueError("X has 0 rows; at least 1 is needed")
