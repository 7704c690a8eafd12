"""Candidates: ways from measurements to answers, each some features and an estimator behind them.

In:  what the user gives as `candidates`, or "auto".
Out: candidates; each is fitted to the features of training rows, and tells scores of others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from halosvm.calibration.calibrated_classifier import takes_weights, weights_for
from halosvm.checks.estimator import GaussianEstimator
from halosvm.kernel.kernel_svc import UncertainKernelSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.maps.standard_scaler import UncertainStandardScaler
from halosvm.measurement.features import MeasurementFeatures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NEWS = {"sds", "log_errors", "missing"}  # what tells of the errors themselves
_GAUSSIANS = ("posteriors", "measurements")


@dataclass(frozen=True)
class Candidate:
    """A way from measurements to answers.

    Attributes
    ----------
    name : str
    features : tuple of str
        Blocks of `MeasurementFeatures` side by side; or "posteriors" or "measurements", Gaussians.
    estimator : estimator
        What is fitted to them.
    curve : bool
        Whether its scores become probabilities by a curve fitted to left-out ones.
    standardised : bool
        Whether features are brought to mean 0 and variance 1 first.
    least_rows, most_rows : float
        Numbers of training rows between which it is tried.
    most_features : float
        Number of features up to which it is tried.
    """

    name: str
    features: tuple[str, ...]
    estimator: Any
    curve: bool = False
    standardised: bool = True
    least_rows: float = 0
    most_rows: float = np.inf
    most_features: float = np.inf
    own_features: tuple[str, ...] = field(default=())  # of a pipeline that begins with them

    @property
    def uses_news(self) -> bool:
        """Whether sizes of errors are features."""
        return bool(_NEWS & {*self.features, *self.own_features})

    @property
    def ignores_errors(self) -> bool:
        """Whether errors make no difference."""
        return {*(self.own_features or self.features)} <= {"values", "missing"}

    def fit(self, blocks: dict[str, Any], y: Any, weights: Array | None, seed: int) -> Fitted:
        """Fit to the features of training rows."""
        return Fitted(self, blocks, y, weights, seed)


class Fitted:
    """A candidate that is fitted to training rows."""

    def __init__(
        self,
        candidate: Candidate,
        blocks: dict[str, Any],
        y: Any,
        weights: Array | None,
        seed: int,
    ) -> None:
        self.candidate = candidate
        self.curves: list[Any] = []
        self.scale: Any = None
        if candidate.standardised and (scaled := self._stacked(blocks, raw=False)) is not None:
            # As any scaler, but with weights, which pipelines do not hand on by themselves.
            self.scale = UncertainStandardScaler().fit(scaled, sample_weight=weights)
        self.estimator = _seeded(clone(candidate.estimator), seed)
        given = {}
        if weights is not None:
            if not takes_weights(self.estimator):
                raise TypeError(f"candidate {candidate.name!r} takes no sample_weight")
            given = weights_for(self.estimator, {"sample_weight": weights})
        self.estimator.fit(self._inputs(blocks), y, **given)

    def _stacked(self, blocks: dict[str, Any], *, raw: bool) -> Any:
        """Return the features that stay as they are, or the others; None if there are none."""
        names = self.candidate.features
        if names[0] in _GAUSSIANS:
            return None if raw else blocks[names[0]]
        # Log odds have their unit: standardised, rare large ones would make the others small.
        kept = [blocks[name] for name in names if (name == "log_odds") == raw]
        return np.hstack(kept) if kept else None

    def _inputs(self, blocks: dict[str, Any]) -> Any:
        raw, other = (self._stacked(blocks, raw=raw) for raw in (True, False))
        if other is not None and self.scale is not None:
            other = self.scale.transform(other)
        parts = [each for each in (raw, other) if each is not None]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def predict(self, blocks: dict[str, Any]) -> Array:
        """Return predicted values."""
        return _numbers(self.estimator.predict(self._inputs(blocks)))

    def scores(self, blocks: dict[str, Any]) -> Array:
        """Return what a curve takes, (n,) or (n, n_classes), or else probabilities."""
        X = self._inputs(blocks)
        if not self.candidate.curve:
            return _numbers(self.estimator.predict_proba(X))
        if hasattr(self.estimator, "decision_function"):
            return _numbers(self.estimator.decision_function(X))
        p = np.clip(_numbers(self.estimator.predict_proba(X)), _LEAST, 1.0 - _LEAST)
        logits: Array = np.log(p / (1.0 - p))
        return logits[:, 1] if p.shape[1] == 2 else logits


def _numbers(answers: Any) -> Array:
    return np.asarray(answers, dtype=np.float64)


_LEAST = 1e-3  # forests of some hundred trees resolve no less


def _seeded(estimator: Any, seed: int) -> Any:
    """Give the seed to all that is random and has none."""
    parameters = estimator.get_params()
    names = [n for n in parameters if n == "random_state" or n.endswith("__random_state")]
    return estimator.set_params(**{n: seed for n in names if parameters[n] is None})


# ---- lists ---------------------------------------------------------------------------------------
def candidates_of(given: Any, built_in: list[Candidate], needs: str) -> list[Candidate]:
    """Return the candidates that the user asks for, by names, estimators or pairs of both.

    `needs` is the method without which scores need a curve, or there is no candidate.
    """
    if isinstance(given, str):
        if given != "auto":
            raise ValueError(f"candidates must be 'auto' or a list; got {given!r}")
        return built_in
    known = {each.name: each for each in built_in}
    found = [_candidate_of(each, known, needs) for each in given]
    if not found:
        raise ValueError("candidates is an empty list; one is needed at least")
    names = Counter(each.name for each in found)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValueError(f"two candidates are named {twice[0]!r}; give pairs (name, estimator)")
    return found


def _candidate_of(given: Any, known: dict[str, Candidate], needs: str) -> Candidate:
    if isinstance(given, str):
        if given not in known:
            raise ValueError(f"no candidate is named {given!r}; there are {', '.join(known)}")
        return known[given]
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)
    name, estimator = given if pair else (type(given).__name__.lower(), given)
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"a candidate must be an estimator, a name or a pair (name, estimator); got {given!r}"
        )
    curve = needs == "predict_proba" and not hasattr(estimator, needs)
    if curve and not hasattr(estimator, "decision_function"):
        raise TypeError(f"candidate {name!r} has neither predict_proba nor decision_function")
    first = first_of(estimator)
    own = tuple(first.features) if isinstance(first, MeasurementFeatures) else ()
    features = ("measurements",) if isinstance(first, GaussianEstimator) else ("means",)
    return Candidate(name, features, estimator, curve=curve, standardised=False, own_features=own)


def first_of(estimator: Any) -> Any:
    """Return what sees the examples first within pipelines, searches and the like."""
    while not isinstance(estimator, GaussianEstimator):
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[0][1]
        elif hasattr(estimator, "estimator"):
            estimator = estimator.estimator
        else:
            break
    return estimator


def classifiers(*, curves: bool) -> list[Candidate]:
    """Return the candidates of `MeasurementClassifier`, the simplest first."""
    news = ("log_errors", "missing")
    logistic = LogisticRegression(max_iter=1000)
    # Of standardised features; "scale" would not see weights.
    kernel = SVC(gamma="auto", tol=1e-6)
    trees = ExtraTreesClassifier(100, min_samples_leaf=2)
    boosting = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, max_leaf_nodes=8, min_samples_leaf=10
    )
    expected = UncertainKernelSVC()
    smooth: dict[str, Any] = {"most_rows": 5000, "curve": True}
    boosted: dict[str, Any] = {"least_rows": 60, "curve": True}
    forest: dict[str, Any] = {"least_rows": 60, "most_rows": 20_000, "curve": True}
    odds: dict[str, Any] = {"least_rows": 50, "most_features": 20}  # from folds within folds
    several = [
        Candidate("values, logistic", ("values",), logistic),
        Candidate("values, kernel", ("values",), kernel, **smooth),
        Candidate("values, boosting", ("values",), boosting, **boosted),
        Candidate("values, trees", ("values",), trees, **forest),
        Candidate("means, logistic", ("means",), logistic),
        Candidate("posteriors, linear", ("posteriors",), UncertainSVC(), curve=True),
        Candidate("class populations", ("log_odds",), logistic, **odds),
        Candidate("means, kernel", ("means",), kernel, **smooth),
        Candidate("posteriors, kernel", ("posteriors",), expected, curve=True, most_rows=2000),
        Candidate("values and errors, logistic", ("values", *news), logistic),
        Candidate("means and errors, logistic", ("means", *news), logistic),
        Candidate("class populations and errors", ("log_odds", *news), logistic, **odds),
        Candidate("all, logistic", ("log_odds", "means", *news), logistic, **odds),
        Candidate("means and errors, kernel", ("means", *news), kernel, **smooth),
        Candidate("means and errors, boosting", ("means", "sds", *news), boosting, **boosted),
        Candidate("all, boosting", ("log_odds", "means", *news), boosting, **(odds | boosted)),
        Candidate("all, trees", ("log_odds", "means", *news), trees, **(odds | forest)),
    ]
    return [replace(each, curve=each.curve or curves) for each in several]


def regressors() -> list[Candidate]:
    """Return the candidates of `MeasurementRegressor`, the simplest first."""
    ridge = RidgeCV(np.logspace(-3.0, 3.0, 7))
    trees = ExtraTreesRegressor(100, min_samples_leaf=2)
    boosting = HistGradientBoostingRegressor(
        max_iter=60, learning_rate=0.08, max_leaf_nodes=8, min_samples_leaf=10
    )
    forest: dict[str, Any] = {"least_rows": 60, "most_rows": 20_000}
    return [
        Candidate("values, ridge", ("values",), ridge),
        Candidate("values, trees", ("values",), trees, **forest),
        Candidate("values, boosting", ("values",), boosting, least_rows=60),
        Candidate("means, ridge", ("means",), ridge),
        Candidate("means, trees", ("means",), trees, **forest),
        Candidate("means, boosting", ("means",), boosting, least_rows=60),
    ]
