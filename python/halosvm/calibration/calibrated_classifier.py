"""`UncertainCalibratedClassifier`: a classifier comes in, with probabilities that know its errors.

Curves are fitted to decision values of examples that the classifier has not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from halosvm.calibration import METHODS
from halosvm.calibration.curves import IsotonicCurve, Temperature, normalised
from halosvm.calibration.expectations import mean_over
from halosvm.calibration.platt import PlattScaling
from halosvm.calibration.scores import plain, scores
from halosvm.checks.errors_seen import had_errors, warn_of_errors_left_out
from halosvm.checks.estimator import (
    GaussianEstimator,
    read_example_weights,
)
from halosvm.checks.parameters import require_choice
from halosvm.checks.probabilities import ProbabilityClassifier
from halosvm.checks.targets import exact_labels
from halosvm.gaussians.covariance_arrays import roots_of
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures
from halosvm.linear.svc import UncertainSVC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class UncertainCalibratedClassifier(MetaEstimatorMixin, ProbabilityClassifier, GaussianEstimator):  # type: ignore[misc]
    """Probabilities of classes that know the error bars: their expectations over each example.

    scikit-learn's `CalibratedClassifierCV` does the same for points, and takes Gaussians as well,
    but its probabilities are those of the means. Here a curve from decision values to probabilities
    is fitted to examples that the classifier has not seen, such that its *expectations* over the
    errors of these examples make their labels most likely; and the probability of a new example is
    the expectation over its own errors. An example with wide error bars across the border gets a
    probability near 1/2, a precise one at the same place its own.

    Parameters
    ----------
    estimator : classifier, default=None
        With `decision_function`, and for uncertain examples `decision_std`; or a pipeline that ends
        in one. Of one with `predict_proba` alone, such as a random forest, the probabilities are
        calibrated, for certain examples. None is ``UncertainSVC()``. A fitted one in
        `sklearn.frozen.FrozenEstimator` is taken as it is, and all examples serve for the curve.
    method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
        - "sigmoid": a logistic curve for each class (Platt).
        - "isotonic": any rising curve; for a thousand examples or more.
        - "temperature": the softmax of the decision values over one number.
    cv : int, splitter or iterable, default=None
        Which examples are left out for the curve, as in scikit-learn. None makes 5 parts, fewer
        where a class has fewer examples, but no less than 2.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        Fitted to all examples.
    curves_ : list
        The fitted curves: one for each class, or a single one.

    Notes
    -----
    Probabilities of two classes are exact to 1e-4; those of more classes are means over 4,096
    evenly spread points, normalised point by point. Errors of different decision values go together
    where the classifier has `coef_`; else they are taken as independent. A machine of pairs of
    classes (`UncertainKernelSVC`, scikit-learn's `SVC`) is calibrated by its values of the classes,
    as with ``decision_function_shape="ovr"``, whatever its own shape; of uncertain examples by the
    means and covariances of these, with the errors of the pairs as independent.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import UncertainCalibratedClassifier, UncertainSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = 3 * y[:, None] + rng.normal(size=(200, 2))
    >>> clf = UncertainCalibratedClassifier(UncertainSVC()).fit(X, y, X_std=np.full(200, 0.3))
    >>> sure, unsure, _ = clf.predict_proba([[3.0, 3.0]] * 3, X_std=[0.0, 5.0, 9.0])[:, 1]
    >>> bool(sure > 0.95 > 0.8 > unsure)
    True
    """

    _example_types = (Gaussians, GaussianMixtures)
    _takes_sparse = True
    _takes_missing = _takes_limits = True  # as far as the estimator does

    def __init__(self, estimator: Any = None, *, method: str = "sigmoid", cv: Any = None) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_std: Any = None,
        X_cov: Any = None,
    ) -> Self:
        """Fit the classifier, and the curves to what it says of examples that were left out.

        Parameters
        ----------
        X, y, sample_weight, X_std, X_cov
            Training examples as in `UncertainSVC.fit`.

        Returns
        -------
        self
        """
        require_choice(self.method, "method", METHODS)
        with self._all_or_nothing():
            frozen = isinstance(self.estimator, FrozenEstimator)
            given = self._tells_of_errors(X, X_std, X_cov)
            if frozen and not given and had_errors(self.estimator):
                warn_of_errors_left_out(self)
            data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
            check_classification_targets(exact_labels(y, "y", objects=True))
            self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class, {self.classes_.tolist()[0]!r}; two are needed")
            weights = read_example_weights(data, sample_weight, len(data))
            estimator = UncertainSVC() if self.estimator is None else self.estimator
            weighted = {} if sample_weight is None else {"sample_weight": weights}
            if weighted and not takes_weights(estimator):
                raise TypeError(f"{type(estimator).__name__} takes no sample_weight")
            y = np.asarray(y)
            self.estimator_ = estimator
            if isinstance(estimator, FrozenEstimator):
                _require_same_classes(estimator, self.classes_)
            else:
                self.estimator_ = clone(estimator).fit(
                    plain(data), y, **weights_for(estimator, weighted)
                )
            decision, spread = self._left_out(estimator, data, y, codes, weighted)
            self._fit_curves(decision, spread, codes, weights)
        return self

    def _left_out(
        self,
        estimator: Any,
        data: Any,
        y: NDArray[Any],
        codes: NDArray[np.intp],
        weighted: dict[str, Array],
    ) -> tuple[Array, Array]:
        """Return decision values and spreads of all examples, from fits that left them out."""
        if isinstance(estimator, FrozenEstimator):
            return self._scores(estimator, data)
        counts = np.bincount(codes)
        parts = min(5, max(2, int(counts.min()))) if self.cv is None else self.cv
        cv = check_cv(parts, y, classifier=True)
        folds = cv.get_n_splits(data, y) if hasattr(cv, "get_n_splits") else 0
        if isinstance(self.cv, int | None) and counts.min() < folds:
            label = self.classes_[counts.argmin() : counts.argmin() + 1].tolist()[0]
            raise ValueError(
                f"cv is {folds}, and class {label!r} has only {counts.min()} examples; each part "
                "needs one of every class"
            )
        decision: Array | None = None
        spread: Array | None = None
        for train, test in cv.split(np.zeros(len(data)), y):
            if len(np.unique(codes[train])) < len(self.classes_):
                raise ValueError("cv leaves out all examples of a class; use a stratified splitter")
            rest = {name: each[train] for name, each in weighted.items()}
            model = clone(estimator)
            model.fit(plain(data[train]), y[train], **weights_for(estimator, rest))
            values, spreads = self._scores(model, data[test])
            if decision is None or spread is None:
                decision = np.full((len(y), *values.shape[1:]), np.nan)
                spread = np.zeros((len(y), *spreads.shape[1:]))
            decision[test], spread[test] = values, spreads
        assert decision is not None
        assert spread is not None
        missing = np.flatnonzero(np.isnan(decision.reshape(len(y), -1)[:, 0]))
        if missing.size:
            raise ValueError(f"cv never leaves out row {missing[0]}; it must leave out each row")
        return decision, spread

    def _fit_curves(
        self, decision: Array, spread: Array, codes: NDArray[np.intp], weights: Array
    ) -> None:
        self.curves_: list[Any]
        if self.method == "temperature":
            self.curves_ = [Temperature().fit(decision, codes, weights, spread)]
            return
        curve = PlattScaling if self.method == "sigmoid" else IsotonicCurve
        if decision.ndim == 1:
            self.curves_ = [curve().fit(decision, codes == 1, weights, std=spread)]
            return
        std = np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 0.0))
        self.curves_ = [
            curve().fit(decision[:, k], codes == k, weights, std=std[:, k])
            for k in range(len(self.classes_))
        ]

    def predict_proba(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return the probability of each class, expected over the errors of the examples.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without errors are certain.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        decision, spread = self._scores(self.estimator_, self._read_with_errors(X, X_std, X_cov))
        if decision.ndim == 1:
            p = self.curves_[0].probability(decision, spread)
            return np.column_stack([1.0 - p, p])
        if self.method == "temperature":
            of_each: Array = self.curves_[0].probability(decision, spread)
            return of_each
        return (
            mean_over(self._normalised, decision, roots_of(spread))
            if spread.any()
            else self._normalised(decision)
        )

    def _normalised(self, decision: Array) -> Array:
        """Return the probabilities of certain decision values (..., k)."""
        p = np.stack(
            [curve.probability(decision[..., k], 0.0) for k, curve in enumerate(self.curves_)],
            axis=-1,
        )
        return normalised(p)

    def _scores(self, model: Any, data: Any) -> tuple[Array, Array]:
        return scores(model, data, logits=self.method == "temperature")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier within."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _require_same_classes(estimator: Any, classes: NDArray[Any]) -> None:
    known = np.asarray(estimator.classes_).tolist()
    if known != classes.tolist():
        raise ValueError(
            f"y has the classes {classes.tolist()}, the frozen estimator was fitted to {known}"
        )


def weights_for(estimator: Any, weighted: dict[str, Array]) -> dict[str, Array]:
    """Return the weights under the name that a pipeline has for those of its last step.

    Under scikit-learn's routing its steps ask for them by themselves.
    """
    if not isinstance(estimator, Pipeline) or get_config()["enable_metadata_routing"]:
        return weighted
    return {f"{estimator.steps[-1][0]}__{name}": each for name, each in weighted.items()}


def takes_weights(estimator: Any) -> bool:
    """Tell whether the fit of an estimator, or of the last step of a pipeline, takes weights."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return isinstance(last, FrozenEstimator) or has_fit_parameter(last, "sample_weight")
