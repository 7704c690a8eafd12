"""What estimators of Gaussians share: reading and checking the examples that they are given."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import validate_data

from halosvm.checks import frames
from halosvm.checks.errors_seen import warn_of_errors_left_out, without_counted_errors
from halosvm.checks.reading import (
    as_rows,
    needs_own_reading,
    place,
    refuse_lost,
    require_finite,
)
from halosvm.checks.targets import exact_labels, read_labels, read_weights, weight_of_each
from halosvm.checks.transformed_alone import warn_if_transformed_alone
from halosvm.checks.units import converted
from halosvm.gaussians.frames_with_errors import warn_of_errors_among
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import as_examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.checks.reading import Rows
    from halosvm.gaussians.mixtures import Examples

# What is not finite is told with its place, by `require_finite`.
_CHECKS = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}

# What estimators ask for by themselves where metadata are routed.
ERRORS = {"X_std": True, "X_cov": True}


class GaussianClassifier(ClassifierMixin):  # type: ignore[misc]
    """Mixin of classifiers of Gaussians: labels by decision values, and of their own examples."""

    __metadata_request__fit: ClassVar = ERRORS
    __metadata_request__predict: ClassVar = ERRORS
    __metadata_request__decision_function: ClassVar = ERRORS
    __metadata_request__score: ClassVar = ERRORS

    classes_: NDArray[Any]

    def predict(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> NDArray[Any]:
        """Return the most likely class label of each example.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X, X_std=X_std, X_cov=X_cov)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_std: Any = None, X_cov: Any = None
    ) -> float:
        """Return the accuracy of `predict`, the share of examples whose label is right.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `predict`.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        y, sample_weight = read_targets(X, y, sample_weight, X_std=X_std, X_cov=X_cov)
        return self._score(y, self.predict(X, X_std=X_std, X_cov=X_cov), sample_weight)

    def _score(self, y: Any, predicted: Any, sample_weight: Any) -> float:
        y, predicted = (exact_labels(each, "y", objects=True) for each in (y, predicted))
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


class GaussianRegressor(RegressorMixin):  # type: ignore[misc]
    """Mixin of regressors of Gaussians: values and weights that belong to their examples."""

    __metadata_request__fit: ClassVar = ERRORS
    __metadata_request__predict: ClassVar = ERRORS
    __metadata_request__score: ClassVar = ERRORS

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_std: Any = None, X_cov: Any = None
    ) -> float:
        """Return the coefficient of determination R^2 of `predict`.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `predict`.
        y : array-like of shape (n_samples,)
            Their true values.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        errors = {"X_std": X_std, "X_cov": X_cov}
        y, sample_weight = read_targets(X, y, sample_weight, values=True, **errors)
        return self._score(y, self.predict(X, X_std=X_std, X_cov=X_cov), sample_weight)

    def _score(self, y: Any, predicted: Any, sample_weight: Any) -> float:
        return float(r2_score(y, predicted, sample_weight=sample_weight))


class GaussianEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of estimators whose examples are Gaussians or arrays of means."""

    _example_types: ClassVar[tuple[type[Any], ...]] = (Gaussians,)
    _takes_sparse: ClassVar[bool] = False
    _takes_missing: ClassVar[bool] = False
    _takes_limits: ClassVar[bool] = False
    _had_errors = False  # whether examples of the fit had errors

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
        self, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[Any], Any]:
        """Read examples, labels and weights, and remember what the features are."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        values = isinstance(self, RegressorMixin)
        errors = {"X_std": X_std, "X_cov": X_cov}
        y, sample_weight = read_targets(X, y, sample_weight, values=values, **errors)
        data, y = self._read_first(X, X_std, X_cov, y)
        return data, y, sample_weight

    def _read_first(self, X: Any, X_std: Any, X_cov: Any, y: Any = None) -> tuple[Any, Any]:
        """Read the examples of a fit, with labels if there are any, and remember the features."""
        X_std, X_cov = without_counted_errors(X, X_std, X_cov)
        if self._is_read_by_us(X):
            data = self._with_errors(X, None, X_std, X_cov)
            _require_rows(data)
            self._remember_features(data)
            y = None if y is None else read_labels(y, len(data))
        else:
            if y is None:
                means = validate_data(self, X, **self._checks())
            else:
                means, y = validate_data(self, X, y, **self._checks())
            means = as_rows(means, "X")
            try:
                data = self._with_errors(means, self._labels_of(X), X_std, X_cov)
            except ValueError:
                self._require_finite(means)  # which comes first, in scikit-learn's words
                raise
            errors = [given for given in (X_std, X_cov) if given is not None]
            if errors:
                warn_if_transformed_alone(self, X, errors)
        if X_std is None and X_cov is None and not isinstance(X, self._example_types):
            names = frames.feature_names_of(X, "X")
            if names is not None:
                warn_of_errors_among(names)
        self._remember_units(data)
        self._remember_errors(have_errors(data))
        return data, y

    def _read_new_examples(self, X: Any, X_std: Any, X_cov: Any) -> Any:
        """Read examples without labels, and remember what the features are."""
        return self._read_first(X, X_std, X_cov)[0]

    def _remember_features(self, data: Any) -> None:
        self.n_features_in_ = data.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names

    def _remember_units(self, data: Any) -> None:
        self.__dict__.pop("feature_units_in_", None)
        if data.feature_units is not None:
            self.feature_units_in_ = data.feature_units

    def _remember_errors(self, there: bool) -> None:
        """Remember whether examples have errors: those to come should have some as well."""
        self.__dict__.pop("_had_errors", None)
        if there:
            self._had_errors = True

    def _read_means(self, X: Any, X_std: Any = None, X_cov: Any = None) -> Rows:
        """Read examples whose covariances do not matter; those that are given are checked."""
        if X_std is not None or X_cov is not None:
            read: Rows = self._read_data(X, X_std, X_cov).mean
            return read
        if self._is_read_by_us(X):
            examples = self._check_features(as_examples(X, **self._takes()))
            return examples.mean if isinstance(examples, Gaussians) else examples.moments()[0]
        means = as_rows(validate_data(self, X, reset=False, **self._checks()), "X")
        self._require_finite(means)
        units = getattr(self, "feature_units_in_", None)
        return converted(means, None, units, "X", "the training data")

    def _require_finite(self, means: Rows) -> None:
        if self._takes_missing and not issparse(means):
            means = np.where(np.isnan(means), 0, means)
        require_finite(means, "X")

    def _checks(self) -> dict[str, Any]:
        return _CHECKS | {"accept_sparse": "csr"} if self._takes_sparse else _CHECKS

    def _read_with_errors(self, X: Any, X_std: Any, X_cov: Any) -> Any:
        """Read examples whose errors matter, and warn if they are left out, unlike in the fit."""
        data = self._read_data(X, X_std, X_cov)
        self._warn_if_errors_left_out(X, X_std, X_cov)
        return data

    def _warn_if_errors_left_out(self, X: Any, X_std: Any, X_cov: Any) -> None:
        if self._had_errors and not self._tells_of_errors(X, X_std, X_cov):
            warn_of_errors_left_out(self)

    def _tells_of_errors(self, X: Any, X_std: Any, X_cov: Any) -> bool:
        return isinstance(X, self._example_types) or X_std is not None or X_cov is not None

    def _read_data(self, X: Any, X_std: Any, X_cov: Any) -> Any:
        X_std, X_cov = without_counted_errors(X, X_std, X_cov)
        if not self._is_read_by_us(X):
            return self._with_errors(self._read_means(X), self._labels_of(X), X_std, X_cov)
        own = None if isinstance(X, self._example_types) else self._labels_of(X)
        return self._check_features(self._with_errors(X, own, X_std, X_cov))

    def _is_read_by_us(self, X: Any) -> bool:
        """Tell whether an argument is for our own readers and not for scikit-learn's."""
        return isinstance(X, self._example_types) or needs_own_reading(X)

    def _labels_of(self, X: Any) -> frames.Labels:
        """Return the labels of examples, whose features may have names only from the fit."""
        labels = frames.labels_of(X, "X")
        if labels.names is not None or labels.columns is not None:
            return labels
        return labels._replace(names=getattr(self, "feature_names_in_", None))

    def _with_errors(self, X: Any, labels: frames.Labels | None, X_std: Any, X_cov: Any) -> Any:
        return as_examples(X, X_std=X_std, X_cov=X_cov, labels=labels, **self._takes())

    def _takes(self) -> dict[str, Any]:
        """Return what examples this estimator takes that others refuse."""
        return {
            "sparse": self._takes_sparse,
            "missing": self._takes_missing,
            "limits": self._takes_limits,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _check_features(self, X: Any) -> Any:
        """Return examples in the units of the fit, after a check of their features."""
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
        units = getattr(self, "feature_units_in_", None)
        return X.in_units(units, "X", "the training data")


def have_errors(examples: Any) -> bool:
    """Tell whether examples, as they are read, are uncertain."""
    return not (isinstance(examples, Gaussians) and examples.covariances.certain)


def require_finite_decisions(values: NDArray[np.float64], means: Any = None) -> None:
    """Raise ValueError that names the first row of X whose decision values, (n, k), are not finite.

    With the means, which nobody checked if scikit-learn was told to assume them finite.
    """
    lost = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if not lost.size:
        return
    row = int(lost[0])
    known = means is not None and not issparse(means)  # sparse ones are always checked
    bad = np.flatnonzero(~np.isfinite(means[row]) if known else [])
    if len(bad):
        value = means[row, bad[0]]
        raise ValueError(f"X: {place((row, bad[0]))} is {value:g}; it must be finite")
    raise ValueError(f"X: row {row} is so large that its decision value overflows")


def read_targets(
    X: Any, y: Any, sample_weight: Any, *, values: bool = False, **errors: Any
) -> tuple[Any, Any]:
    """Return labels, or values, and weights after a check that nothing of them is lost.

    That includes their order: see `require_one_order`, which `errors` are for.
    """
    require_one_order({"X": X} | errors, {"y": y, "sample_weight": sample_weight})
    refuse_lost(y, "y")
    if not values:
        y = exact_labels(y, "y")
    return y, None if sample_weight is None else read_weights(sample_weight)


def read_example_weights(X: Any, sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    """Return one weight >= 0 for each example, 1 if none are given; not all can be 0."""
    if sample_weight is None:
        return np.ones(n_samples)
    require_index_of(X, "sample_weight", sample_weight)
    given = read_weights(sample_weight)
    negative = np.flatnonzero(np.atleast_1d(given) < 0)
    if negative.size:
        value = np.atleast_1d(given)[negative[0]]
        raise ValueError(f"sample_weight row {negative[0]} is {value:g}; a weight must be >= 0")
    weights = weight_of_each(given, n_samples)
    if not weights.any():
        raise ValueError("sample_weight is 0 for all rows; one must be positive")
    return weights


def require_index_of(X: Any, argument: str, given: Any) -> None:
    """Raise ValueError unless a column that belongs to examples has their index, in their order."""
    require_one_order({"X": X}, {argument: given})


def require_one_order(examples: dict[str, Any], columns: dict[str, Any]) -> None:
    """Raise ValueError unless columns that belong to the rows have one index, in one order.

    It is that of the first of examples and columns that has one. Errors are brought into the order
    of the examples elsewhere, and count here where these have no index.
    """
    other, index = first_index(examples | columns)
    for argument, given in columns.items():
        frames.require_same_index(argument, given, other, index)


def read_groups(X: Any, groups: Any, n_samples: int) -> NDArray[np.intp] | None:
    """Return a number for the group of each row of X, None where none are given."""
    if groups is None:
        return None
    require_index_of(X, "groups", groups)
    given = np.asarray(groups)
    if given.shape != (n_samples,):
        raise ValueError(f"groups has shape {given.shape}, expected ({n_samples},)")
    return np.unique(given, return_inverse=True)[1]


def first_index(given: dict[str, Any]) -> tuple[str, Any]:
    """Return the name and the index of the first argument that has one, or groups."""
    for argument, each in given.items():
        groups = getattr(each, "groups", None) if isinstance(each, Gaussians) else None
        if groups is not None:
            from pandas import Index  # which the other side has

            return f"{argument}.groups", Index(groups)
        index = frames.index_of(each)
        if index is not None:
            return argument, index
    return "X", None


def _require_rows(X: Examples) -> None:
    if len(X) == 0:
        raise ValueError("X has 0 rows; at least 1 is needed")
