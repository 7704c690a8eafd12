"""UncertainSVC(loss="worst_case"): the robust machine of bounded errors, certified.

Oracles: the NumPy reference, the worst perturbation itself, draws, and cvxpy where it is installed.
"""

import warnings

import numpy as np
import pytest

from halosvm import Covariances, Gaussians, UncertainSVC, _core, reference, uncertainty

KINDS = ("isotropic", "diagonal", "low_rank", "full", "zero")


def problem(seed, kind=None):
    """Return Gaussians of any kind, some certain, factors R of their covariances, labels and C."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 80)), int(rng.integers(1, 12))
    y = (rng.random(n) < 0.5).astype(int)
    y[:2] = 0, 1
    X = rng.normal(size=(n, d))
    X[:, 0] += rng.uniform(0, 3) * y
    size = 10 ** rng.uniform(-2, 0.5) * (rng.random(n) > 0.2)
    kind = kind or KINDS[seed % len(KINDS)]
    if kind == "isotropic":
        variances = size * rng.uniform(0, 1, n)
        R, cov = np.sqrt(variances)[:, None, None] * np.eye(d), variances
    elif kind == "diagonal":
        variances = size[:, None] * rng.uniform(0, 1, (n, d))
        R, cov = np.sqrt(variances)[:, :, None] * np.eye(d), variances
    elif kind == "low_rank":
        R = size[:, None, None] * rng.normal(size=(n, d, 2))
        cov = Covariances.low_rank(R)
    elif kind == "full":
        R = size[:, None, None] * rng.normal(size=(n, d, d)) / np.sqrt(d)
        cov = R @ R.transpose(0, 2, 1)
    else:
        R, cov = np.zeros((n, d, 1)), None
    return Gaussians(X, cov=cov), R, y, 10 ** rng.uniform(-2, 2)


def objective(X, R, y, C, radius, w, b):
    """Return J as the definition has it."""
    sign = np.where(y == 1, 1.0, -1.0)
    spread = np.linalg.norm(np.einsum("ijk,j->ik", R, w), axis=1)
    loss = np.maximum(0.0, 1 - sign * (X.mean @ w + b) + radius * spread)
    return w @ w / (2 * C * len(y)) + loss.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_optimum_is_certified_and_no_neighbour_is_better(kind):
    for seed in range(20):
        X, R, y, C = problem(seed, kind)
        radius = (0.3, 1.0, 3.0)[seed % 3]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the objective is least at w = 0")
            clf = UncertainSVC(C=C, loss="worst_case", radius=radius).fit(X, y)
        assert clf.suboptimality_ <= 1e-6
        w, b = clf.coef_[0], clf.intercept_[0]
        found = objective(X, R, y, C, radius, w, b)
        assert clf.objective_ == pytest.approx(found, rel=1e-9)
        rng = np.random.default_rng(seed)
        for step in 10.0 ** -np.arange(0, 7):
            for _ in range(20):
                u = step * rng.normal(size=len(w) + 1)
                assert found <= objective(X, R, y, C, radius, w + u[1:], b + u[0]) * (1 + 1e-6)


def test_optimum_is_that_of_cvxpy():
    cp = pytest.importorskip("cvxpy")
    for seed in range(25):
        X, R, y, C = problem(1000 + seed)
        n, d = X.shape
        sign = np.where(y == 1, 1.0, -1.0)
        w, b = cp.Variable(d), cp.Variable()
        losses = [cp.pos(1 - sign[i] * (X.mean[i] @ w + b) + cp.norm(R[i].T @ w)) for i in range(n)]
        convex = cp.Problem(cp.Minimize(cp.sum_squares(w) / (2 * C * n) + sum(losses) / n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            convex.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
            clf = UncertainSVC(C=C, loss="worst_case").fit(X, y)
        assert clf.objective_ == pytest.approx(convex.value, rel=1e-6)


def test_the_worst_perturbation_is_charged():
    X, _, y, _ = problem(3)
    C = 10.0
    clf = UncertainSVC(C=C, loss="worst_case", radius=0.5).fit(X, y)
    sign, w = np.where(y == 1, 1.0, -1.0), clf.coef_[0]
    moved = X.mean + reference.worst_perturbation(X.covariances, sign, w, 0.5)
    loss = np.maximum(0.0, 1 - sign * (moved @ w + clf.intercept_[0])).mean()
    assert clf.objective_ == pytest.approx(w @ w / (2 * C * len(y)) + loss, rel=1e-12)


@pytest.mark.parametrize("loss", ["worst_case", "best_case"])
def test_without_a_radius_it_is_the_hinge(loss):
    for seed in range(10):
        X, _, y, C = problem(seed, "diagonal")
        hinge = UncertainSVC(C=C, loss="hinge").fit(X, y)
        other = UncertainSVC(C=C, loss=loss, radius=0.0).fit(X, y)
        assert other.objective_ == pytest.approx(hinge.objective_, rel=2e-6)
        np.testing.assert_allclose(other.coef_, hinge.coef_, rtol=2e-2, atol=2e-3)


def test_losses_are_ordered_at_every_margin_and_spread():
    rng = np.random.default_rng(0)
    m, s = rng.normal(size=10000) * 5, np.abs(rng.normal(size=10000)) * 3
    values = {name: _core.evaluate_loss(name, m, s)[0] for name in _core.loss_names()}
    assert (values["best_case"] <= values["hinge"]).all()
    assert (values["hinge"] <= values["expected_hinge"] * (1 + 1e-14)).all()
    highest = values["hinge"] + s / np.sqrt(2 * np.pi)
    assert (values["expected_hinge"] <= highest * (1 + 1e-14)).all()
    assert (values["hinge"] <= values["worst_case"]).all()


@pytest.mark.parametrize("law", ["gaussian", "chebyshev"])
def test_constraints_hold_with_the_confidence_that_the_radius_is_for(law):
    epsilon = 0.1
    X, _, y, C = problem(6, "diagonal")
    radius = uncertainty.confidence_radius(epsilon, law=law)
    clf = UncertainSVC(C=C, loss="worst_case", radius=radius).fit(X, y)
    sign, w, b = np.where(y == 1, 1.0, -1.0), clf.coef_[0], clf.intercept_[0]
    spread = clf.decision_std(X)
    slack = np.maximum(0.0, 1 - sign * (X.mean @ w + b) + radius * spread)
    draws = np.random.default_rng(0).normal(size=(20000, 1)) * spread
    kept = (sign * (X.mean @ w + b + draws) >= 1 - slack - 1e-12).mean(axis=0)
    assert (kept >= 1 - epsilon - 5 * np.sqrt(epsilon / 20000)).all()


def test_several_classes_weights_and_predictions_are_there():
    rng = np.random.default_rng(4)
    y = np.arange(90) % 3
    X = Gaussians(3 * np.eye(3)[y] + rng.normal(size=(90, 3)), std=rng.uniform(0, 0.5, (90, 3)))
    clf = UncertainSVC(loss="worst_case", radius=0.5).fit(X, y, sample_weight=1.0 + (y == 1))
    assert clf.coef_.shape == (3, 3)
    assert (clf.suboptimality_ <= 1e-6).all()
    assert clf.score(X, y) > 0.8
    assert clf.side_probability(X).shape == (90, 3)


@pytest.mark.parametrize("solver", ["lbfgs", "interior_point", "sgd"])
def test_solvers_find_one_optimum(solver, make_gaussians):
    X, y = make_gaussians("diagonal", n=200, d=4, gap=2.0, scale=0.2)
    best = UncertainSVC(loss="worst_case", radius=0.5).fit(X, y).objective_
    options = {"loss": "worst_case", "radius": 0.5, "random_state": 0, "max_iter": 3000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = UncertainSVC(solver=solver, **options).fit(X, y)
    assert best <= clf.objective_ * (1 + 1e-6)
    assert clf.objective_ <= best * (1.01 if solver == "sgd" else 1.0001)
    assert clf.objective_ / (1 + clf.suboptimality_) <= best * (1 + 1e-12)
