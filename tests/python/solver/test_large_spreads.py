"""Spreads so large that the optimum shuns uncertain features, or all: kinks that need cones."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from halosvm import Covariances, Gaussians, UncertainSVC
from halosvm.reference import objective_and_gradient

N, D = 60, 6


def data(kind, size, rng):
    """Return Gaussians whose first features are uncertain by `size`, and labels."""
    y = np.where(np.arange(N) % 4 == 0, 1.0, -1.0)
    X = rng.normal(size=(N, D)) + 0.8 * y[:, np.newaxis]
    std = size * rng.uniform(0.5, 2.0, size=(N, D))
    if kind == "isotropic":
        return Gaussians(X, cov=Covariances.isotropic(std[:, 0] ** 2, D)), y
    std[:, D // 2 :] = 0.0  # certain features
    if kind == "diagonal":
        return Gaussians(X, std=std), y
    mixed = rng.normal(size=(N, D // 2, D // 2)) * std[:, :3, np.newaxis]
    full = np.zeros((N, D, D))
    full[:, : D // 2, : D // 2] = mixed @ mixed.transpose(0, 2, 1)
    return Gaussians(X, cov=Covariances.full(full)), y


def smooth_optimum(X, y, lam, t):
    """Return the minimum for spreads sqrt(s^2 + t^2 |w|^2) by SciPy, with t falling."""
    found = np.zeros(D + 1)
    found[0] = 1e-3
    for floor in t * 3.0 ** np.arange(5, -1, -1):
        wide = Gaussians(
            X.mean, cov=Covariances.full(X.covariances.to_full() + floor**2 * np.eye(D))
        )

        def value(v, wide=wide):
            J, w, b = objective_and_gradient(wide, y, v[:-1], v[-1], lam)
            return J, np.r_[w, b]

        options = {"maxiter": 3000, "maxfun": 6000, "ftol": 1e-15, "gtol": 1e-9}
        result = minimize(value, found, jac=True, method="L-BFGS-B", options=options)
        found = result.x
    return result.fun


@pytest.mark.parametrize("solver", ["auto", "interior_point"])
@pytest.mark.parametrize("size", [3.0, 30.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_errors_that_the_optimum_shuns_are_solved_to_a_certified_optimum(kind, C, size, solver):
    X, y = data(kind, size, np.random.default_rng(1))
    clf = UncertainSVC(C, solver=solver).fit(X, y)
    assert clf.suboptimality_ <= clf.tol
    floor = 1e-3
    smooth = smooth_optimum(X, y, 1.0 / (C * N), floor)
    # A floor of t |w| raises the loss by at most t |w| / sqrt(2 pi) (spec A.1).
    rise = floor * np.linalg.norm(clf.coef_) / np.sqrt(2.0 * np.pi)
    assert smooth - rise - 1e-6 <= clf.objective_ <= smooth * (1.0 + clf.tol)


@pytest.mark.parametrize("solver", ["auto", "interior_point", "lbfgs"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_errors_that_drown_all_classes_leave_the_model_of_the_larger_class(C, solver):
    X, y = data("isotropic", 30.0, np.random.default_rng(1))
    with pytest.warns(ConvergenceWarning):
        clf = UncertainSVC(C, solver=solver).fit(X, y)
    assert not clf.coef_.any()
    assert clf.objective_ == pytest.approx(0.5, rel=1e-12)  # twice the weight of the smaller class


@pytest.mark.parametrize("seed", range(16, 24))
@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_a_rare_class_with_errors_of_all_sizes_is_never_worse_than_nothing(solver, seed):
    rng = np.random.default_rng(seed)
    n, d = 90, 6
    y = np.arange(n) % 15 == 0
    X = rng.normal(size=(n, d))
    if seed % 2:
        std = np.repeat(10.0 ** rng.uniform(-1.5, 1.5, size=(n, 1)), d, axis=1)
    else:
        std = 10.0 ** rng.uniform(-1.5, 1.5, size=(n, d)) * (np.arange(d) % 2)
    with warnings.catch_warnings(action="ignore"):
        clf = UncertainSVC([1.0, 100.0][seed // 2 % 2], solver=solver).fit(X, y, X_std=std)
    assert clf.objective_ <= 2.0 * np.mean(y) * (1.0 + 1e-12)
    if solver == "auto":
        assert clf.suboptimality_ <= clf.tol
