"""Candidates: ways from measurements to answers, each some features and an estimator behind them.

In:  what the user gives as `candidates`, or "auto".
Out: candidates; each is fitted to the features of training rows, and tells scores of others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from halosvm.calibration.calibrated_classifier import takes_weights, weights_for
from halosvm.checks.estimator import GaussianEstimator
from halosvm.gaussians.gaussians import Gaussians
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
    """

    name: str
    features: tuple[str, ...]
    estimator: Any
    curve: bool = False
    standardised: bool = True
    least_rows: float = 0
    most_rows: float = np.inf
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
        X = self._stacked(blocks)
        self.scale: Any = None
        if candidate.standardised:
            # As any scaler, but with weights, which pipelines do not hand on by themselves.
            self.scale = UncertainStandardScaler().fit(X, sample_weight=weights)
        self.estimator = _seeded(clone(candidate.estimator), seed)
        given = {}
        if weights is not None:
            if not takes_weights(self.estimator):
                raise TypeError(f"candidate {candidate.name!r} takes no sample_weight")
            given = weights_for(self.estimator, {"sample_weight": weights})
        self.estimator.fit(self._inputs(X), y, **given)

    def _stacked(self, blocks: dict[str, Any]) -> Any:
        names = self.candidate.features
        if names[0] in _GAUSSIANS:
            return blocks[names[0]]
        return np.hstack([blocks[name] for name in names])

    def _inputs(self, X: Any) -> Any:
        return X if self.scale is None else self.scale.transform(X)

    def predict(self, blocks: dict[str, Any]) -> Array:
        """Return predicted values."""
        return np.asarray(self.estimator.predict(self._inputs(self._stacked(blocks))), float)

    def scores(self, blocks: dict[str, Any]) -> Array:
        """Return what a curve takes, (n,) or (n, n_classes), or else probabilities."""
        X = self._inputs(self._stacked(blocks))
        if not self.candidate.curve:
            return np.asarray(self.estimator.predict_proba(X), float)
        if hasattr(self.estimator, "decision_function"):
            return np.asarray(self.estimator.decision_function(X), float)
        p = np.clip(self.estimator.predict_proba(X), _LEAST, 1.0 - _LEAST)
        logits = np.log(p / (1.0 - p))
        return logits[:, 1] if p.shape[1] == 2 else logits


_LEAST = 1e-3  # forests of some hundred trees resolve no less


def _seeded(estimator: Any, seed: int) -> Any:
    """Give the seed to all that is random and has none."""
    parameters = estimator.get_params()
    names = [n for n in parameters if n == "random_state" or n.endswith("__random_state")]
    return estimator.set_params(**{n: seed for n in names if parameters[n] is None})
