"""The loss of the best case, which is not convex, and the rounds that minimise it.

Oracles: its formula in NumPy, LIBSVM on the means that a round has moved, and a grid.
"""

from functools import partial

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from sklearn.svm import SVC

from halosvm import Covariances, Gaussians, _core

LAM = 0.02


def objective_of(X, y, w, b, lam=LAM, weights=None):
    """Return lam/2 |w|^2 + sum c max(0, 1 - y f - |R'w|), of which the weights sum to 1."""
    c = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    s = np.sqrt(np.maximum(X.covariances.to_full() @ w @ w, 0.0))
    return lam / 2 * w @ w + c @ np.maximum(0.0, 1.0 - y * (X.mean @ w + b) - s)


def moved(X, y, w):
    """Return x + y S w / |R'w|."""
    q = X.covariances.to_full() @ w
    s = np.sqrt(np.maximum(q @ w, 0.0))
    return X.mean + np.divide(y, s, where=s > 0, out=np.zeros(len(s)))[:, None] * q


def values_of_rounds(history):
    """Return a function for `report` that keeps the objective after each round."""
    return lambda _epochs, value, _suboptimality: history.append(value)


def best(solve, X, y, **options):
    return solve(X, y, "auto", loss="best_case", lam=options.pop("lam", LAM), **options)


def assert_stationary(X, y, found, tolerance, lam=LAM):
    """The convex problem that touches the objective at the end has no lower point (LIBSVM)."""
    w, b = found["coef"][0], found["intercept"][0]
    value = objective_of(X, y, w, b, lam)
    assert found["objective"][0] == pytest.approx(value, rel=1e-12)
    points = moved(X, y, w)
    rival = SVC(kernel="linear", C=1 / (len(y) * lam), tol=1e-10).fit(points, y)
    v, a = rival.coef_[0], rival.intercept_[0]
    least = lam / 2 * v @ v + np.maximum(0.0, 1.0 - y * (points @ v + a)).mean()
    assert least >= value * (1 - tolerance)


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_value_and_gradient_are_those_of_the_formula(make_gaussians, kind, dtype):
    X, y = make_gaussians(kind, dtype=dtype)
    w, b, h = np.array([0.4, -0.3, 0.2, 0.5]), 0.3, 1e-6
    objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, LAM, "best_case")
    at = objective(w[None], np.array([b]))
    assert at.value[0] == pytest.approx(objective_of(X, y, w, b), rel=1e-12)
    for j, step in enumerate(h * np.eye(4)):
        above, below = objective_of(X, y, w + step, b), objective_of(X, y, w - step, b)
        assert (above - below) / (2 * h) == pytest.approx(at.coef[0, j], abs=2e-9)
    above, below = objective_of(X, y, w, b + h), objective_of(X, y, w, b - h)
    assert (above - below) / (2 * h) == pytest.approx(at.intercept[0], abs=2e-9)


@each("kind", KINDS)
@each("lam", [1.0, 0.02, 1e-4])
def test_rounds_end_where_the_convex_problem_has_no_lower_point(make_gaussians, solve, kind, lam):
    X, y = make_gaussians(kind)
    found = best(solve, X, y, lam=lam)
    assert found["status"] == "stationary"
    assert not found["converged"]
    assert np.isposinf(found["suboptimality"][0])
    assert found["lower_bound"][0] == 0.0
    assert_stationary(X, y, found, 3e-6, lam)


def test_objective_never_rises_over_1000_random_problems(make_gaussians, solve):
    rounds = []
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(4, 30), rng.integers(1, 5)
        kind = ("isotropic", "diagonal_std", "half_certain", "low_rank", "full")[seed % 5]
        scale, gap = 10 ** rng.uniform(-1, 1), rng.uniform(0, 2)
        X, y = make_gaussians(kind, n, d, seed=seed, scale=scale, gap=gap)
        history = []
        lam = 10 ** rng.uniform(-4, 0)
        found = best(solve, X, y, lam=lam, report=values_of_rounds(history))
        assert found["status"] == "stationary", seed
        assert (np.diff(history) <= 0.0).all(), seed
        assert history[-1] == found["objective"][0]
        rounds.append(len(history))
    assert max(rounds) >= 5  # otherwise nothing was tried


def test_first_round_is_the_ordinary_machine(make_gaussians, solve):
    for seed in range(20):
        X, y = make_gaussians("diagonal", seed=seed)
        history = []
        best(solve, X, y, tolerance=1e-8, report=values_of_rounds(history))
        plain = solve(X, y, "auto", loss="hinge", tolerance=1e-10)
        # w is known to sqrt(2 J 1e-10 / lam), and J falls with it by less than 1 + |x| + |S w|/s
        value = objective_of(X, y, plain["coef"][0], plain["intercept"][0])
        assert history[0] == pytest.approx(value, rel=1e-3)
        assert history[0] > history[-1] * 1.01


def test_without_errors_it_is_the_hinge(make_gaussians, solve):
    X, y = make_gaussians("diagonal")
    plain = solve(X, y, "auto", loss="hinge", tolerance=1e-9)
    for covariances in (Covariances.zero(60, 4), Covariances.diagonal(np.zeros((60, 4)))):
        found = best(solve, Gaussians(X.mean, cov=covariances), y)
        assert found["objective"][0] == pytest.approx(plain["objective"][0], rel=1e-9)


def test_minimum_in_one_dimension_is_that_of_a_grid_where_the_classes_are_apart(solve):
    rng = np.random.default_rng(3)
    y = np.where(np.arange(40) % 2 == 0, -1, 1)
    X = Gaussians(1.5 * y[:, None] + rng.normal(size=(40, 1)), std=rng.uniform(0, 0.5, (40, 1)))
    found = best(solve, X, y)
    w, b = np.linspace(-4, 4, 801)[:, None, None], np.linspace(-3, 3, 601)[:, None]
    s = np.sqrt(X.covariances.variances()[:, 0]) * np.abs(w)
    values = LAM / 2 * w[..., 0] ** 2 + np.mean(
        np.maximum(0.0, 1.0 - y * (X.mean[:, 0] * w + b) - s), axis=2
    )
    assert found["objective"][0] <= values.min()
    assert found["objective"][0] >= values.min() - 0.01 * 5  # half a cell times the steepest slope


def test_spreads_lead_away_from_zero_where_points_would_stay_there(solve):
    """The larger class wins for points, and w = 0; but each error reaches over the other class."""
    rng = np.random.default_rng(5)
    y = np.where(np.arange(60) % 6 == 0, 1, -1)
    X = Gaussians(0.05 * y[:, None] + rng.normal(size=(60, 2)), std=np.full((60, 2), 5.0))
    plain = solve(X, y, "auto", loss="hinge", lam=1.0)
    assert plain["status"] == "zero_model"
    found = best(solve, X, y, lam=1.0)
    assert found["objective"][0] < 0.9 * plain["objective"][0]
    assert_stationary(X, y, found, 3e-6, lam=1.0)


def test_rounds_begin_at_a_given_model(solve):
    """Two equal points of both classes: the minima are w = 1 and w = -1, with w = 0 between."""
    X, y = Gaussians(np.zeros((2, 1)), std=np.ones((2, 1))), np.array([-1, 1])
    for w in (0.1, -0.1):
        found = best(solve, X, y, lam=0.01, start=(np.array([[w]]), np.zeros(1)))
        assert found["coef"][0, 0] == pytest.approx(np.sign(w), rel=1e-6)
        assert found["objective"][0] == pytest.approx(0.005, rel=1e-6)
    assert best(solve, X, y, lam=0.01)["objective"][0] == 1.0


def test_several_problems_are_those_one_by_one(make_gaussians, solve):
    X, _ = make_gaussians("full", n=90)
    codes = np.random.default_rng(1).permutation(90) % 3
    found = best(solve, X, codes, n_problems=3)
    assert found["status"] == "stationary"
    assert np.isposinf(found["suboptimality"]).all()
    for k in range(3):
        one = best(solve, X, np.where(codes == k, 1, -1))
        np.testing.assert_array_equal(found["coef"][k], one["coef"][0])
        assert found["objective"][k] == one["objective"][0]


def test_weights_are_repetitions_and_scale_nothing(make_gaussians, solve):
    X, y = make_gaussians("diagonal", n=50)
    weights = np.random.default_rng(2).integers(0, 3, 50)
    rows = np.repeat(np.arange(50), weights)
    found = best(solve, X, y, weights=weights.astype(float))
    repeated = best(solve, X[rows], y[rows])
    assert found["objective"][0] == pytest.approx(repeated["objective"][0], rel=1e-6)
    w, b = found["coef"][0], found["intercept"][0]
    value = objective_of(X, y, w, b, weights=weights)
    assert found["objective"][0] == pytest.approx(value, rel=1e-12)


def test_without_intercept_there_is_none(make_gaussians, solve):
    X, y = make_gaussians("diagonal")
    found = best(solve, X, y, fit_intercept=False)
    assert found["status"] == "stationary"
    assert found["intercept"][0] == 0.0


def test_offsets_and_wide_data_do_no_harm(make_gaussians, solve):
    X, y = make_gaussians("diagonal", n=30)
    far = Gaussians(np.round(X.mean * 2**20) / 2**20 + 2.0**20, cov=X.covariances)
    near = Gaussians(far.mean - 2.0**20, cov=X.covariances)
    here, there = (best(solve, G, y)["objective"][0] for G in (near, far))
    assert there == pytest.approx(here, rel=2e-6)
    wide, labels = make_gaussians("isotropic", n=12, d=150)
    assert_stationary(wide, labels, best(solve, wide, labels), 3e-6)


def test_results_do_not_depend_on_the_number_of_threads(make_gaussians, solve):
    X, y = make_gaussians("low_rank", n=3000)
    runs = [best(solve, X, y, n_threads=k) for k in (1, 2, 4)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run["coef"], runs[0]["coef"])
        assert run["objective"][0] == runs[0]["objective"][0]


def test_iterations_of_all_rounds_count_against_the_limit(make_gaussians, solve):
    X, y = make_gaussians("diagonal")
    enough = best(solve, X, y)["steps"]
    found = best(solve, X, y, max_iterations=enough // 2)
    assert found["status"] == "max_iterations"
    assert found["steps"] <= enough // 2
    assert best(solve, X, y, max_iterations=enough)["status"] == "stationary"


@pytest.mark.parametrize("minimize", [partial(_core.minimize, method="lbfgs"), _core.minimize_sgd])
def test_solvers_of_convex_losses_refuse_it(make_gaussians, minimize):
    X, y = make_gaussians("diagonal")
    objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, LAM, "best_case")
    start = {"coef": np.zeros((1, 4)), "intercept": np.zeros(1)}
    with pytest.raises(ValueError, match=r"loss is 'best_case', which is not convex; only the"):
        minimize(objective, **start)
    with pytest.raises(ValueError, match=r"loss is 'best_case', which is not convex; only the"):
        _core.minimize(objective, **start, method="interior_point")
    options = {"weights": [1.0], "n_problems": 1, "n_features": 4, "lam": LAM, "loss": "best_case"}
    parts = _core.SummedObjective([objective], **options)
    with pytest.raises(ValueError, match=r"objective is a sum of parts, but a loss that is not"):
        _core.minimize(parts, **start)
    with pytest.raises(ValueError, match=r"loss is 'best_case', which is not convex"):
        _core.minimize(parts, **start, method="lbfgs")
