"""MeasurementClassifier: a small stand-in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.linear.svc import UncertainSVC
from halosvm.maps import UncertainStandardScaler
from halosvm.population import EmpiricalBayes


class Row(NamedTuple):
    """One candidate."""

    name: str
    log_loss: float
    standard_error: float
    difference: float
    difference_error: float


class MeasurementClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A small stand-in."""

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "mean",
        cv: Any = 5,
        errors_as_news: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.cv = cv
        self.errors_as_news = errors_as_news
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        sample_weight: Any = None,
        groups: Any = None,  # noqa: ARG002
    ) -> Any:
        """Compare three ways."""
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov, missing=True)
        w = np.ones(len(data)) if sample_weight is None else np.asarray(sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        known = ("values, logistic", "means, logistic", "posteriors, linear")
        names = known if self.candidates == "auto" else self.candidates
        self._kinds = [known.index(name) for name in names]
        self._training = data, codes, w
        losses = np.empty((len(names), len(data)))
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.random_state)
        for train, test in folds.split(codes, codes):
            for i, k in enumerate(self._kinds):
                p = _probabilities(k, data[train], codes[train], data[test], w[train])
                losses[i, test] = -np.log(np.maximum(p[np.arange(len(test)), codes[test]], 1e-9))
        overlap = np.sqrt(1.0 + 1.0 / (self.cv - 1))

        def error(each: Any) -> float:
            return float(overlap * each.std() / np.sqrt(len(each)))

        self.table_ = [
            Row(
                name,
                float(own.mean()),
                error(own),
                float((own - losses[0]).mean()),
                error(own - losses[0]),
            )
            for name, own in zip(names, losses, strict=True)
        ]
        self.best_ = min(self.table_, key=lambda row: row.log_loss).name
        self.advice_ = f"{self.best_} does best"
        return self

    def predict_proba(self, X: Any) -> Any:
        """Tell probabilities by the best candidate."""
        best = int(np.argmin([row.log_loss for row in self.table_]))
        data, codes, w = self._training
        return _probabilities(self._kinds[best], data, codes, X, w)


def _probabilities(k: int, train: Any, y: Any, test: Any, w: Any) -> Any:
    if k == 0:
        fill = np.nanmean(train.mean, axis=0)
        a, b = (np.where(np.isnan(each.mean), fill, each.mean) for each in (train, test))
    else:
        truth = EmpiricalBayes(output="gaussian").fit(train, sample_weight=w)
        a, b = truth.transform(train), truth.transform(test)
        if k == 1:
            a, b = a.mean, b.mean
    if k < 2:
        scaler = StandardScaler().fit(a)
        model = LogisticRegression().fit(scaler.transform(a), y, sample_weight=w)
        return model.predict_proba(scaler.transform(b))
    scale = UncertainStandardScaler().fit(a)
    machine = UncertainCalibratedClassifier(UncertainSVC(), method="sigmoid", cv=3)
    return machine.fit(scale.transform(a), y).predict_proba(scale.transform(b))
