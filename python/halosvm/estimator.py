"""What estimators of Gaussians share: reading and checking the examples that they are given."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d, validate_data

from halosvm.gaussians import Gaussians
from halosvm.mixtures import as_examples
from halosvm.user_warning import warn_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.mixtures import Examples

_DTYPES = [np.float64, np.float32]


class GaussianEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of estimators whose examples are Gaussians or arrays of means."""

    _example_types: ClassVar[tuple[type[Any], ...]] = (Gaussians,)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the estimator as it was when a fit ends in an exception or an interrupt."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read_training_data(
        self, X: Any, y: Any, X_std: Any, X_cov: Any
    ) -> tuple[Any, NDArray[Any]]:
        if not isinstance(X, self._example_types):
            means, y = validate_data(self, X, y, dtype=_DTYPES, order="C")
            return self._with_errors(means, X_std, X_cov), y
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        data = as_examples(X, X_std=X_std, X_cov=X_cov)
        _require_rows(data)
        self.n_features_in_ = data.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        shape, y = np.shape(y), column_or_1d(y)
        if len(shape) > 1:
            message = f"y is a column-vector of shape {shape}; pass y.ravel()"
            warn_user(message, DataConversionWarning)
        assert_all_finite(y, input_name="y")
        if len(y) != len(data):
            raise ValueError(f"y has {len(y)} values, X has {len(data)} rows")
        return data, y

    def _read_means(self, X: Any) -> NDArray[Any]:
        if isinstance(X, Gaussians):
            self._check_features(X)
            return X.mean
        means = validate_data(self, X, reset=False, dtype=_DTYPES, order="C")
        return np.require(means, requirements=["ALIGNED"])

    def _read_data(self, X: Any, X_std: Any, X_cov: Any) -> Any:
        if isinstance(X, self._example_types):
            return self._check_features(as_examples(X, X_std=X_std, X_cov=X_cov))
        return self._with_errors(self._read_means(X), X_std, X_cov)

    def _with_errors(self, means: NDArray[Any], X_std: Any, X_cov: Any) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return as_examples(means, X_std=X_std, X_cov=X_cov, feature_names=names)

    def _check_features(self, X: Any) -> Any:
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


def require_finite_decisions(values: NDArray[np.float64]) -> None:
    """Raise ValueError that names the first row of X whose decision values, (n, k), overflow."""
    lost = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if lost.size:
        raise ValueError(f"X: row {lost[0]} is so large that its decision value overflows")


def _require_rows(X: Examples) -> None:
    if len(X) == 0:
        raise ValueError("X has 0 rows; at least 1 is needed")
