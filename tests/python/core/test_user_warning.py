"""Every warning names the line of the user's call, however deep in the package it arises."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    SafeSVC,
    TotalSVC,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
)

ESTIMATORS = (
    UncertainSVC(max_iter=1),
    UncertainSVC(max_iter=1, solver="lbfgs"),
    UncertainSVC(max_iter=1, solver="sgd"),
    UncertainSVR(max_iter=1),
    IsotropicKernelSVC(max_iter=1),
    SafeSVC(max_iter=1, tol=0.0, bounds=(0.3, 3.0), random_state=0),
    UncertainKernelSVC(max_iter=1),
    TotalSVC(max_iter=1),
    TotalSVC(max_iter=1, kernel="rbf"),
    TotalSVC(max_iter=1, formulation="ball"),
)

_rng = np.random.default_rng(0)
X = _rng.normal(size=(60, 4))
Y = (X[:, 0] + _rng.normal(size=60) > 0).astype(int)


def test_every_classifier_is_here():
    import halosvm

    named = {name for name in halosvm.__all__ if name.endswith(("SVC", "SVR"))}
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == named


def lines(call, category):
    """Return the file of each warning of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {warning.category for warning in caught} == {category}
    return [warning.filename for warning in caught]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_an_early_end_is_told_once_at_the_line_of_the_fit(estimator):
    assert lines(lambda: estimator.fit(X, Y), ConvergenceWarning) == [__file__]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_an_early_end_is_told_at_the_line_that_fits_a_pipeline_or_searches(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator)
    assert lines(lambda: pipeline.fit(X, Y), ConvergenceWarning) == [__file__]
    search = lines(lambda: cross_val_score(pipeline, X, Y, cv=2), ConvergenceWarning)
    assert search == [__file__] * 2


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_column_of_labels_is_told_at_the_line_of_the_fit(estimator):
    estimator = type(estimator)()
    call = lambda: estimator.fit(Gaussians(X), Y[:, np.newaxis])  # noqa: E731
    assert lines(call, DataConversionWarning) == [__file__]
