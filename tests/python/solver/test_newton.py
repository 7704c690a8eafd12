"""Smooth losses of features that L-BFGS finds too unequal: are they certified, and optimal?

Oracle: the normal equations of ridge regression in mpmath, and LIBLINEAR's dual method.
"""

import mpmath
import numpy as np
import pytest
from sklearn.svm import LinearSVC

from halosvm import Covariances, Gaussians, UncertainSVC, UncertainSVR

SMOOTH = ("expected_squared_hinge", "expected_logistic")
VALUES = ("squared_epsilon_insensitive", "huber", "squared_error")


def unequal(seed, n=150, d=5):
    """Features whose principal axes differ in length by 1e5, and classes along the shortest."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scores = rng.normal(size=(n, d)) * np.logspace(2, -3, d)
    return scores @ axes.T, scores[:, -1] * 1e3


@pytest.mark.parametrize("std", [0.0, 1e-4])
@pytest.mark.parametrize("loss", SMOOTH)
def test_unequal_principal_axes_are_certified(loss, std):
    for seed in range(3):
        X, values = unequal(seed)
        data = Gaussians(X, std=np.full(X.shape, std)) if std else X
        clf = UncertainSVC(loss=loss, C=1e6).fit(data, values > 0)
        assert clf.suboptimality_ <= 1e-6
        assert clf.n_iter_ < 1000


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", [*SMOOTH, "expected_huber_hinge"])
@pytest.mark.parametrize("seed", [12, 23, 36])
def test_bounds_hold_where_covariances_of_unequal_features_cancel(loss, seed):
    """Two solvers: the bound of neither may be above the objective of the other."""
    rng = np.random.default_rng(seed)
    units = np.array([25.0, 0.015, 4e4])
    X, y = rng.normal(size=(5, 3)) * units, np.array([1, 1, 1, 0, 0])
    factors = rng.normal(size=(5, 3, 2)) * units[:, np.newaxis]
    diagonal = (rng.random((5, 3)) < 0.5) * (0.3 * units) ** 2
    errors, weights = Covariances.low_rank(factors, diagonal), 10.0 ** rng.uniform(-9, 9, 5)
    found = [
        UncertainSVC(1e4, loss=loss, solver=solver).fit(X, y, weights, X_cov=errors)
        for solver in ("auto", "lbfgs")
    ]
    least = min(clf.objective_ for clf in found)
    for clf in found:
        assert clf.objective_ / (1.0 + clf.suboptimality_) <= least * (1.0 + 1e-10)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("exponent", [20, 25, 29])
def test_features_far_from_0_without_intercept_are_certified(loss, exponent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    clf = UncertainSVC(loss=loss, fit_intercept=False).fit(X + 2.0**exponent, X[:, 0] > 0)
    assert clf.suboptimality_ <= 1e-6
    assert clf.n_iter_ < 200


@pytest.mark.parametrize("loss", VALUES)
def test_values_of_features_far_from_0_without_intercept_are_certified(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + 0.3 * rng.normal(size=100)
    reg = UncertainSVR(loss=loss, fit_intercept=False).fit(X + 2.0**25, y)
    assert reg.suboptimality_ <= 1e-6


def test_squared_errors_have_the_solution_of_their_normal_equations():
    X, y = unequal(4, n=60)
    reg = UncertainSVR(C=1e3, loss="squared_error", fit_intercept=False).fit(X, y)
    with mpmath.workdps(40):
        A, b = mpmath.matrix(X.tolist()), mpmath.matrix(y.tolist())
        w = mpmath.lu_solve(A.T * A * 2000 + mpmath.eye(5), 2000 * (A.T * b))
        r = A * w - b
        J = (mpmath.fsum(v * v for v in w) / 2000 + mpmath.fsum(v * v for v in r)) / 60
    assert reg.suboptimality_ <= 1e-6
    assert float(J) <= reg.objective_ * (1 + 1e-9)
    assert reg.objective_ <= float(J) * (1 + 1e-6)
    assert reg.objective_ / (1 + reg.suboptimality_) <= float(J) * (1 + 1e-9)


def test_squared_hinge_of_unequal_axes_is_no_worse_than_that_of_liblinear():
    X, values = unequal(5)
    y = np.where(values + 0.3 * np.random.default_rng(5).normal(size=150) > 0, 1, -1)
    clf = UncertainSVC(loss="expected_squared_hinge", C=1e3, fit_intercept=False).fit(X, y)
    other = LinearSVC(C=1e3, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)
    w = other.fit(X, y).coef_[0]
    least = w @ w / (2 * 1e3 * 150) + np.mean(np.maximum(1 - y * (X @ w), 0) ** 2)
    assert clf.suboptimality_ <= 1e-6
    assert clf.objective_ <= least * (1 + 1e-6)
