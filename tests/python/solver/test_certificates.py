"""Certificates of every loss and solver against J in extended precision, and its least value."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from campaign.any_loss import AnyLoss, draw
from campaign.normal import LD
from campaign.problem import Problem
from sklearn.exceptions import ConvergenceWarning

from halosvm import UncertainSVC

SLACK = 1e-8  # relative to J


def fitted(X, y, fit=None, **parameters):
    model = UncertainSVC(**parameters, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **(fit or {}))


def value_of(model, problem):
    """The judge of a model, its point, and J there."""
    judge = AnyLoss(problem, model.loss)
    u = judge.point(model.coef_[0], model.intercept_[0])
    return judge, u, judge.value(u)


def excess(model, problem):
    """How far a model is above the least J found, beyond what it claims; 0 or less is true."""
    judge, u, value = value_of(model, problem)
    if not np.isfinite(model.suboptimality_):
        return -np.inf
    rounding = judge.rounding(u)
    most = (value - rounding) / (1 + LD(model.suboptimality_) + LD(SLACK)) - rounding
    return float(most / judge.least(u, most) - 1)


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 48), marks=pytest.mark.campaign)]
)
def test_certificates_of_random_problems_are_true(seeds):
    false = []
    for seed in seeds:
        one = draw(seed)
        with np.errstate(all="ignore"):
            if excess(fitted(one.X, one.y, one.fit, **one.parameters), one.problem) > 0:
                false.append((seed, one.parameters))
    assert not false


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_bounds_hold_where_the_search_of_data_far_from_the_origin_ends_early(make):
    # The dual variables are then not in balance, and the centre matters.
    for seed in (11, 14, 87, 97, 117):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 14))
        X, y = rng.normal(size=(n, 2)) + 64.0, np.arange(n) % 2
        best = fitted(X, y, C=100.0, max_iter=5000).objective_
        for solver, max_iter in (("dual_coordinate", 20), ("dual_coordinate", 100), ("auto", 30)):
            model = fitted(make(X), y, C=100.0, solver=solver, max_iter=max_iter)
            assert model.objective_ / (1 + model.suboptimality_) <= best * (1 + 1e-12)


def far_away(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 20)), int(rng.integers(1, 4))
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + rng.choice([0, 0.5, 2.0, 5.0]) * np.where(y, 1, -1)[:, None]
    X = np.round(64 * X) / 64 + 2.0 ** int(rng.integers(26, 34))
    return X, y, 10.0 ** rng.integers(0, 10)


@pytest.mark.parametrize("solver", ["auto", "sgd", "proximal_sgd"])
@pytest.mark.parametrize("loss", ["expected_squared_hinge", "expected_huber_hinge", "hinge"])
def test_rounding_of_scores_far_from_the_origin_is_in_the_certificate(loss, solver):
    for seed in range(222, 242):  # at 232 errors of second order are all there is
        X, y, C = far_away(seed)
        model = fitted(X, y, loss=loss, solver=solver, C=C, max_iter=64)
        _, _, value = value_of(model, Problem(X, y, C))
        assert float(value / model.objective_ - 1) <= model.suboptimality_ + SLACK


def test_objective_of_the_best_case_is_that_of_its_model_far_from_the_origin():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X, y, _ = far_away(seed)
        std = rng.uniform(0.01, 0.3, X.shape)
        model = fitted(X, y, {"X_std": std}, loss="best_case", C=1e5)
        _, _, value = value_of(model, Problem(X, y, 1e5, V=std.astype(LD) ** 2))
        assert abs(float(value / model.objective_ - 1)) <= SLACK
        assert model.suboptimality_ == np.inf


def test_objective_with_matrices_indefinite_by_rounding_is_that_of_their_positive_part():
    for seed in (6, 8, 10):
        rng = np.random.default_rng(seed)
        y = np.arange(8) % 2
        factor = 100 * rng.normal(size=2)
        factors = factor * rng.uniform(0.5, 2, (8, 1))
        S = factors[:, :, None] * factors[:, None, :]
        across = np.array([-factor[1], factor[0]]) / np.linalg.norm(factor)
        X = 0.1 * rng.normal(size=(8, 2)) + 2 * np.where(y, 1, -1)[:, None] * across
        model = fitted(X, y, {"X_cov": S}, C=1e6)
        assert float(_positive_part_objective(model, X, y, S)) == pytest.approx(
            model.objective_, rel=SLACK
        )


def _positive_part_objective(model, X, y, S):
    with mpmath.workdps(60):
        w, b = mpmath.matrix(model.coef_[0].tolist()), mpmath.mpf(float(model.intercept_[0]))
        total = mpmath.mpf(0)
        for matrix, x, side in zip(S, X, np.where(y, 1, -1), strict=True):
            sizes, Q = mpmath.eigsy(mpmath.matrix(matrix.tolist()))
            p = Q.T * w
            s = mpmath.sqrt(sum(max(sizes[k], 0) * p[k] ** 2 for k in range(len(p))))
            m = 1 - int(side) * ((mpmath.matrix(x.tolist()).T * w)[0] + b)
            total += m * mpmath.ncdf(m / s) + s * mpmath.npdf(m / s) if s else max(m, 0)
        lam = 1 / (mpmath.mpf(model.C) * len(y))
        return lam / 2 * (w.T * w)[0] + total / len(y)


@pytest.mark.parametrize("solver", ["sgd", "proximal_sgd"])
@pytest.mark.parametrize("loss", ["expected_hinge", "expected_squared_hinge", "worst_case"])
def test_tolerance_ends_the_stochastic_search_soon_after_it_is_reached(loss, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=2000) > 0
    fit = {"X_std": rng.uniform(0.05, 0.3, X.shape)}
    options = {"loss": loss, "solver": solver, "tol": 3e-3, "random_state": 0}
    best = fitted(X, y, fit, loss=loss, tol=1e-8).objective_
    model = fitted(X, y, fit, max_iter=256, **options)
    gap = model.objective_ / best - 1
    assert gap <= model.suboptimality_ <= 3e-3
    assert model.n_iter_ <= 64
    assert model.suboptimality_ <= max(4 * gap, 3e-4)
