"""L-BFGS prepared by samples of the rows, and bounds whose dual variables are balanced on some of
them: for every kind of data the bound is true, and the slope in b costs no pass of its own.
"""

from __future__ import annotations

import numpy as np
from cases import each, in_pairs

from halosvm import Covariances, Gaussians, UncertainSVC

N, D = 6000, 4
LAM = 1e-4


def rows_in_order(rng, y, weights):
    return np.sort(y), weights


def rare_class(rng, y, weights):
    return np.where(rng.random(N) < 0.004, 1, -1), weights


def few_weights(rng, y, weights):
    return y, np.where(rng.random(N) < 0.02, rng.uniform(0.1, 9.0, N), 0.0)


def one_heavy_row(rng, y, weights):
    weights = np.ones(N)
    weights[17] = 1e3
    return y, weights


def plain(rng, y, weights):
    return y, weights


def make(seed, arrange, spread, offset):
    rng = np.random.default_rng(seed)
    y, weights = arrange(rng, np.where(rng.random(N) < 0.4, 1, -1), None)
    means = rng.normal(size=(N, D)) + offset
    means[:, 0] += y
    variances = (spread * rng.uniform(0.1, 1.0, (N, D))) ** 2
    return Gaussians(means, cov=Covariances.diagonal(variances)), y, weights


@in_pairs
@each("offset", [0.0, 1e3])
@each("spread", [0.03, 0.5, 5.0])
@each("arrange", [plain, rows_in_order, rare_class, few_weights, one_heavy_row])
def test_bound_is_true_where_dual_variables_are_balanced_on_some_rows(
    bracket, solve, arrange, spread, offset
):
    X, y, weights = make(3, arrange, spread, offset)
    low, high = bracket(X, y, LAM, weights=weights, relative=1e-10)
    for tolerance in (1e-2, 1e-4, 1e-6):
        result = solve(X, y, "lbfgs", lam=LAM, weights=weights, tolerance=tolerance)
        objective, suboptimality = result["objective"][0], result["suboptimality"][0]
        assert low * (1 - 1e-9) <= objective
        assert objective / (1 + suboptimality) <= high * (1 + 1e-9)
        assert result["converged"] == (suboptimality <= tolerance)


def test_several_problems_are_balanced_each_for_itself(bracket, solve):
    rng = np.random.default_rng(5)
    classes = rng.integers(0, 3, N)
    means = rng.normal(size=(N, D)) + 1.5 * np.eye(3, D)[classes]
    X = Gaussians(means, std=rng.uniform(0.1, 0.8, (N, D)))
    clf = UncertainSVC(C=1 / (LAM * N)).fit(X, classes)
    assert (clf.suboptimality_ <= clf.tol).all()
    for k in range(3):
        low, high = bracket(X, np.where(classes == k, 1, -1), LAM, relative=1e-9)
        assert low * (1 - 1e-9) <= clf.objective_[k] <= high * (1 + 1.1e-6)
        assert clf.objective_[k] / (1 + clf.suboptimality_[k]) <= high * (1 + 1e-9)


def test_samples_of_samples_take_most_of_the_passes_off_all_rows():
    rng = np.random.default_rng(6)
    n, d = 60000, 10
    y = np.where(rng.random(n) < 0.5, 1, -1)
    means = rng.normal(size=(n, d)) @ np.diag(np.logspace(0, -2, d)) @ rng.normal(size=(d, d))
    means += 0.3 * y[:, None] * means.std(axis=0)
    X = Gaussians(means, std=rng.uniform(0.1, 0.5, (n, d)) * means.std(axis=0))
    clf = UncertainSVC(C=1 / (LAM * n)).fit(X, y)
    assert clf.suboptimality_ <= clf.tol
    assert clf.n_iter_ <= 4  # about two digits with each, and none for the intercept: it would be 5
