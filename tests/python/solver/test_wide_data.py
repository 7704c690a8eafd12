"""Wide data: more features than means and factors, so that the fit happens in their span."""

import numpy as np
import pytest
from scipy.optimize import minimize

from halosvm import Covariances, Gaussians, UncertainSVC
from halosvm.reference import objective_and_gradient

N, SMALL, WIDE = 40, 5, 300


def small_problem(kind, n_classes, rng):
    """Return means, factors as a list (empty for certain points), and labels."""
    y = np.arange(N) % n_classes
    X = rng.normal(size=(N, SMALL)) + 1.5 * np.eye(n_classes, SMALL)[y]
    ranks = {"certain": 0, "low_rank": 2, "ragged": np.arange(N) % 4}[kind]
    factors = [0.7 * rng.normal(size=(SMALL, r)) for r in np.broadcast_to(ranks, N)]
    return X, factors, y


def gaussians(X, factors, dtype):
    if not any(factor.size for factor in factors):
        return Gaussians(X.astype(dtype))
    return Gaussians(X.astype(dtype), cov=Covariances.low_rank([f.astype(dtype) for f in factors]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["certain", "low_rank", "ragged"])
def test_rotation_into_many_features_rotates_the_solution(kind, dtype, n_classes):
    rng = np.random.default_rng(7)
    X, factors, y = small_problem(kind, n_classes, rng)
    basis = np.linalg.qr(rng.normal(size=(WIDE, SMALL)))[0]
    wide = gaussians(X @ basis.T, [basis @ factor for factor in factors], dtype)
    expected = UncertainSVC(0.3, tol=1e-10).fit(gaussians(X, factors, np.float64), y)
    found = UncertainSVC(0.3, tol=1e-10).fit(wide, y)
    rounding = 1e-9 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=rounding)
    # J is strongly convex in w: lam/2 |w - w*|^2 is at most the gap.
    error = np.sqrt(2 * rounding * np.max(expected.objective_) * 0.3 * N)
    np.testing.assert_allclose(found.coef_, expected.coef_ @ basis.T, atol=error)
    assert np.max(found.suboptimality_) <= 1e-10


def test_optimum_of_wide_factors_is_that_of_scipy_with_a_vanishing_floor():
    rng = np.random.default_rng(3)
    n, d, lam = 12, 120, 1.0
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.3 * y[:, np.newaxis]
    factors = 0.5 * rng.normal(size=(n, d, 3))
    clf = UncertainSVC(1.0 / (lam * n), tol=1e-8)
    clf.fit(Gaussians(X, cov=Covariances.low_rank(factors)), y)
    assert clf.suboptimality_ <= 1e-8

    # A diagonal t^2 I keeps spreads from 0, where L-BFGS fails, and raises J by at most
    # t |w| / sqrt(2 pi) (spec A.1).
    found = np.r_[X.T @ y / n, 0.0]
    for t in (0.1, 0.03, 0.01, 0.003, 0.001):
        cov = Covariances.low_rank(factors, diagonal=np.full((n, d), t**2))
        data = Gaussians(X, cov=cov)

        def value(v, data=data):
            J, w, b = objective_and_gradient(data, y, v[:-1], v[-1], lam)
            return J, np.r_[w, b]

        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-9}
        result = minimize(value, found, jac=True, method="L-BFGS-B", options=options)
        found = result.x
    rise = t * np.linalg.norm(clf.coef_) / np.sqrt(2.0 * np.pi)
    assert clf.objective_ <= result.fun * (1.0 + 1e-8)
    assert clf.objective_ >= result.fun - rise - 1e-6


def test_features_beyond_what_newtons_method_can_hold_are_solved_all_the_same():
    rng = np.random.default_rng(5)
    n, d = 30, 9000
    y = np.arange(n) % 2
    clf = UncertainSVC().fit(rng.normal(size=(n, d)) + 0.1 * y[:, np.newaxis], y)
    assert clf.suboptimality_ <= clf.tol
    assert clf.n_iter_ < 400  # more would be taken in the span


@pytest.mark.parametrize("lam", [0.1, 0.05, 0.02, 0.005, 0.001])
def test_wide_data_half_of_them_certain_are_solved_in_the_span_of_their_means(bracket, solve, lam):
    # The minimum has no part beyond the means: one only adds to |w| and to the spreads.
    rng = np.random.default_rng(0)
    n, d = 60, 1000
    y = np.where(np.arange(n) % 2, 1, -1)
    means = rng.normal(size=(n, d)) + 0.05 * y[:, None]
    std = np.where(np.arange(n) % 2, 0.0, 0.2)
    result = solve(Gaussians(means, std=std), y, lam=lam)
    assert result["converged"]
    basis = np.linalg.qr(means.T)[0]
    inside = Gaussians(means @ basis, cov=Covariances.from_std(std, n_features=n))
    low, high = bracket(inside, y, lam, relative=1e-9)
    assert low * (1 - 1e-9) <= result["objective"][0] <= high * (1 + 1.1e-6)
    assert result["steps"] <= 100
