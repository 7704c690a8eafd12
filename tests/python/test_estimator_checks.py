"""Every public estimator and transformer, by its defaults, passes scikit-learn's checks."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import halosvm
from halosvm import (
    EmpiricalBayes,
    IsotropicKernelSVC,
    Propagate,
    SafeSVC,
    TotalSVC,
    UncertainCalibratedClassifier,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

# Maps return means where Gaussians would, which are no arrays to compare.
ESTIMATORS = [
    EmpiricalBayes(output="mean"),
    IsotropicKernelSVC(),
    Propagate(StandardScaler()),
    SafeSVC(),
    TotalSVC(),
    UncertainCalibratedClassifier(cv=2),
    UncertainFourierFeatures(output="mean"),
    UncertainKernelSVC(),
    UncertainNystroem(output="mean"),
    UncertainSVC(),
    UncertainSVR(),
    UncertainStandardScaler(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_no_public_estimator_is_missing():
    # PlattScaling takes decision values, and has no predict.
    public = {
        value
        for value in (getattr(halosvm, name) for name in halosvm.__all__)
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }
    assert public - {type(estimator) for estimator in ESTIMATORS} == {halosvm.PlattScaling}
