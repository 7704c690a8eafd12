"""The marginal logistic loss: its values far out, its limits, and the machine that minimises it.

Oracles: quadrature in mpmath, SciPy on the NumPy reference, draws of true inputs.
"""

import mpmath
import numpy as np
import pytest
from label_likelihood import derivatives
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC, _core, reference

LOSS = "marginal_logistic"
LAM = 0.02


def first(m, s, loss=LOSS):
    return np.array(_core.evaluate_loss(loss, np.asarray(m, float), np.asarray(s, float)))


def second(m, s):
    return np.array(_core.loss_curvature(LOSS, np.asarray(m, float), np.asarray(s, float)))


# ---- the function --------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [-1e3, -30.0, -1.1, 0.0, 1e-4, 1.001, 8.0, 1e3])
def test_value_and_derivatives_equal_quadrature_in_mpmath_far_out(m):
    # 1.42 is next to where one formula takes over from another at m = 1, 44.8 at m = 1000.
    for s in (1e-3, 0.3, 1.42, 44.8, 1e3):
        exact = [float(each) for each in derivatives(m, s)]
        found = np.r_[first(m, s), second(m, s)]
        size = np.abs(exact)
        size[4:] += [s * exact[3], abs(exact[2])]  # sums of terms that may cancel
        nothing = 1e-250 if m else 1e-30  # by symmetry some are 0 there
        assert (np.abs(found - exact) <= 1e-12 * size + nothing).all(), s


def test_value_and_derivatives_equal_central_differences():
    rng = np.random.default_rng(0)
    m, s, h = 6.0 * rng.normal(size=500), 10.0 ** rng.uniform(-1, 1.5, 500), 1e-5
    _, slope_m, slope_s2 = first(m, s)
    mm, ms, ss = second(m, s)
    by_m = (first(m + h, s) - first(m - h, s)) / (2 * h)
    by_s = (first(m, s + h) - first(m, s - h)) / (2 * h)
    tolerance = 1e-9 * (1 + s**2 + np.abs(m))  # rounding of psi over h, third derivatives times h^2
    assert (np.abs(by_m[0] - slope_m) <= tolerance).all()
    assert (np.abs(by_s[0] - s * slope_s2) <= tolerance).all()
    assert (np.abs(by_m[1] - mm) <= tolerance).all()
    assert (np.abs(by_s[1] - ms) <= tolerance).all()
    assert (np.abs(by_s[2] * s + slope_s2 - ss) <= tolerance).all()


def test_certain_points_have_the_logistic_loss_to_the_last_digits():
    m = np.r_[-700.0, -40.0, np.linspace(-5, 5, 41), 40.0, 1e3, 1e300]
    value, slope_m, slope_s2 = first(m, np.zeros(len(m)))
    p = np.exp(-np.logaddexp(0, -m))
    exact = [float(mpmath.log1p(mpmath.exp(each))) for each in m[:-1]]
    np.testing.assert_allclose(value[:-1], exact, rtol=2e-14)
    assert value[-1] == 1e300
    np.testing.assert_allclose(slope_m, p, rtol=1e-13)
    np.testing.assert_allclose(slope_s2, p * (1 - 2 * p), rtol=1e-12)
    np.testing.assert_allclose(first(m, np.full(len(m), 1e-9)), first(m, 0 * m), rtol=1e-12)


def test_overwhelming_spreads_leave_nothing_but_the_prior():
    s = np.array([1e6, 1e20, 1e100, 1e300])
    for m in (-1e3, 0.0, 1e3):
        value, slope_m, slope_s2 = first(np.full(4, m), s)
        np.testing.assert_allclose(value, np.log(2), atol=1e-3)
        assert (slope_m <= 1e-6).all()
        assert (np.abs(slope_s2) <= 1e-8).all()
    extreme = np.array([-1e308, -1e100, -1.0, 0.0, 1.0, 1e100, 1e308])
    for width in (0.0, 1e-320, 1e-8, 1.0, 1e8, 1e25, 1e150, 1e308):
        for found in (first(extreme, 0 * extreme + width), second(extreme, 0 * extreme + width)):
            assert np.isfinite(found).all(), width


def test_probabilities_of_both_labels_sum_to_one():
    rng = np.random.default_rng(1)
    m, s = 20.0 * rng.normal(size=2000), 10.0 ** rng.uniform(-3, 3, 2000)
    np.testing.assert_allclose(np.exp(-first(m, s)[0]) + np.exp(-first(-m, s)[0]), 1, rtol=4e-15)


def test_expected_logistic_loss_is_nowhere_below_by_more_than_its_own_error():
    m, s = np.meshgrid(np.linspace(-30, 30, 121), np.r_[0, 10.0 ** np.linspace(-3, 2, 30)])
    assert (first(m, s)[0] <= first(m, s, "expected_logistic")[0] + 4e-5).all()


def test_reference_in_numpy_equals_mpmath():
    for m, s in [(0.0, 1.0), (-3.0, 2.0), (5.0, 0.1), (30.0, 8.0), (-20.0, 20.0), (100.0, 40.0)]:
        found = [*reference.marginal_logistic(m, s), *reference.curvature(LOSS, m, s)]
        exact = [float(each) for each in derivatives(m, s)]
        np.testing.assert_allclose(found, exact, rtol=1e-10, atol=2e-13)


# ---- the machine ---------------------------------------------------------------------------------


def function_of(X, y, lam, weights=None):
    def function(u):
        value, w, b = reference.objective_and_gradient(X, y, u[:-1], u[-1], lam, weights, LOSS)
        return value, np.r_[w, b]

    return function


def local_minimum(function, start):
    options = {"maxiter": 3000, "gtol": 1e-9}
    return optimize.minimize(function, start, jac=True, method="BFGS", options=options).fun


@pytest.mark.parametrize("lam", [1.0, 0.02, 1e-4])
def test_fit_ends_where_scipy_ends_from_the_expected_logistic_model(
    make_gaussians, solve, kind, lam
):
    X, y = make_gaussians(kind, n=50)
    start = solve(X, y, "auto", lam=lam, loss="expected_logistic")
    found = solve(X, y, "auto", lam=lam, loss=LOSS)
    assert found["status"] == "stationary"
    assert not found["converged"]
    assert np.isposinf(found["suboptimality"][0])
    assert found["lower_bound"][0] == 0.0
    function = function_of(X, y, lam)
    model, before = (np.r_[run["coef"][0], run["intercept"][0]] for run in (found, start))
    value, gradient = function(model)
    assert found["objective"][0] == pytest.approx(value, rel=1e-11)
    assert value <= function(before)[0]
    assert gradient[:-1] @ gradient[:-1] <= 2 * lam * 1e-6 * value
    assert abs(gradient[-1]) <= 1e-6
    assert value <= local_minimum(function, before) * (1 + 1e-6)


def test_no_random_start_of_scipy_ends_lower_on_small_problems(make_gaussians, solve):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = make_gaussians("diagonal", n=30, d=2, seed=seed, gap=rng.uniform(0, 2))
        lam = 10.0 ** rng.uniform(-3, 0)
        found = solve(X, y, "auto", lam=lam, loss=LOSS)
        function = function_of(X, y, lam)
        for _ in range(4):
            least = local_minimum(function, 3.0 * rng.normal(size=3))
            assert found["objective"][0] <= least * (1 + 1e-6), seed


def test_objective_never_rises_over_random_problems(make_gaussians, solve):
    steps = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(4, 30), rng.integers(1, 5)
        kind = ("isotropic", "diagonal_std", "half_certain", "low_rank", "full")[seed % 5]
        scale, gap = 10 ** rng.uniform(-1, 1), rng.uniform(0, 2)
        X, y = make_gaussians(kind, n, d, seed=seed, scale=scale, gap=gap)
        lam, history = 10 ** rng.uniform(-4, 0), []
        report = lambda _, value, bound, seen=history: seen.append((value, bound))  # noqa: E731
        start = solve(X, y, "auto", lam=lam, loss="expected_logistic")
        objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, lam, LOSS)
        found = solve(X, y, "auto", lam=lam, loss=LOSS, report=report)
        assert found["status"] == "stationary", seed
        values, bounds = np.array(history).T
        assert (np.diff(values) <= 0.0).all(), seed
        assert np.isposinf(bounds).all()
        assert values[0] == pytest.approx(objective(start["coef"], start["intercept"]).value[0])
        assert found["objective"][0] == pytest.approx(values[-1], rel=1e-12)
        steps.append(len(history))
    assert max(steps) >= 10  # otherwise nothing was tried


def test_descent_begins_at_a_given_model(solve):
    """All means are 0, and the errors of one class are large: w and -w are as good, 0 a saddle."""
    std = np.where(np.arange(40) % 4 == 0, 5.0, 0.1)
    X, y = Gaussians(np.zeros((40, 1)), std=std[:, None]), np.where(std > 1, 1, -1)
    ends = [
        solve(X, y, "auto", loss=LOSS, lam=0.01, start=(np.array([[w]]), np.zeros(1)))
        for w in (0.5, -0.5)
    ]
    assert ends[0]["coef"][0, 0] > 0.1
    assert ends[1]["coef"][0, 0] == pytest.approx(-ends[0]["coef"][0, 0], rel=1e-2)
    at_zero = solve(X, y, "auto", loss="expected_logistic", lam=0.01)["objective"][0]
    assert ends[0]["objective"][0] < at_zero


def test_without_errors_it_is_logistic_regression(make_gaussians):
    X, y = make_gaussians("zero", n=200)
    for C in (0.01, 1.0, 100.0):
        model = UncertainSVC(C=C, loss=LOSS, tol=1e-10).fit(X, y)
        rival = LogisticRegression(C=C, tol=1e-10, max_iter=10**4).fit(X.mean, y)
        np.testing.assert_allclose(model.coef_, rival.coef_, rtol=1e-3, atol=1e-4)
        assert np.isposinf(model.suboptimality_)
        assert "not convex" in model.status_


def test_several_problems_are_those_one_by_one(make_gaussians, solve):
    X, _ = make_gaussians("full", n=90)
    codes = np.random.default_rng(1).permutation(90) % 3
    found = solve(X, codes, "auto", loss=LOSS, lam=LAM, n_problems=3)
    assert found["status"] == "stationary"
    for k in range(3):
        one = solve(X, np.where(codes == k, 1, -1), "auto", loss=LOSS, lam=LAM)
        assert found["objective"][k] == pytest.approx(one["objective"][0], rel=1e-6)


def test_weights_are_repetitions_and_scales_of_features_change_nothing(make_gaussians, solve):
    X, y = make_gaussians("diagonal", n=50)
    weights = np.random.default_rng(2).integers(0, 3, 50)
    rows = np.repeat(np.arange(50), weights)[::-1]
    found = solve(X, y, "auto", loss=LOSS, lam=LAM, weights=weights.astype(float))
    repeated = solve(X[rows], y[rows], "auto", loss=LOSS, lam=LAM)
    assert found["objective"][0] == pytest.approx(repeated["objective"][0], rel=1e-6)
    larger = Gaussians(100.0 * X.mean, variance=1e4 * X.covariances.variances())
    scaled = solve(larger, y, "auto", loss=LOSS, lam=1e4 * LAM, weights=weights.astype(float))
    assert scaled["objective"][0] == pytest.approx(found["objective"][0], rel=1e-6)
    mirrored = solve(X, -y, "auto", loss=LOSS, lam=LAM, weights=weights.astype(float))
    assert mirrored["objective"][0] == pytest.approx(found["objective"][0], rel=1e-6)


def test_offsets_wide_data_and_many_rows_do_no_harm(make_gaussians, solve):
    X, y = make_gaussians("diagonal", n=30)
    far = Gaussians(np.round(X.mean * 2**20) / 2**20 + 2.0**20, cov=X.covariances)
    near = Gaussians(far.mean - 2.0**20, cov=X.covariances)
    here, there = (solve(G, y, "auto", loss=LOSS, lam=LAM)["objective"][0] for G in (near, far))
    assert there == pytest.approx(here, rel=2e-6)
    for n, d in ((12, 150), (3000, 3)):
        G, labels = make_gaussians("isotropic", n=n, d=d)
        found = solve(G, labels, "auto", loss=LOSS, lam=LAM)
        assert found["status"] == "stationary"
        model = np.r_[found["coef"][0], found["intercept"][0]]
        gradient = function_of(G, labels, LAM)(model)[1][:-1]
        assert gradient @ gradient <= 2 * LAM * 1e-6 * found["objective"][0]


def test_all_iterations_count_against_the_limit(make_gaussians, solve):
    X, y = make_gaussians("diagonal")
    for limit in (1, 2, 5, 9):
        found = solve(X, y, "auto", loss=LOSS, lam=1e-4, max_iterations=limit)
        assert found["status"] == "max_iterations"
        assert found["steps"] <= limit
    enough = solve(X, y, "auto", loss=LOSS, lam=1e-4, max_iterations=200)
    assert enough["status"] == "stationary"


def test_threads_change_nothing(make_gaussians):
    X, y = make_gaussians("low_rank", n=3000)
    models = [UncertainSVC(loss=LOSS, n_threads=k).fit(X, y) for k in (1, 2, 4)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


@pytest.mark.parametrize("solver", ["lbfgs", "interior_point", "dual_coordinate", "sgd"])
def test_solvers_of_convex_losses_refuse_it(make_gaussians, solver):
    X, y = make_gaussians("diagonal")
    with pytest.raises(ValueError, match=f"loss is '{LOSS}', which is not convex; only the defaul"):
        UncertainSVC(loss=LOSS, solver=solver).fit(X, y)


def test_probabilities_of_posteriors_come_true():
    """2,000 labels tell the share that is right to 0.01; expected_logistic is under-confident."""
    rng = np.random.default_rng(1)
    truth, std = rng.normal(size=(4000, 2)), rng.uniform(0.5, 1.5, (4000, 2))
    y = rng.random(4000) < 1.0 / (1.0 + np.exp(-2.0 * truth @ [1.0, -1.0]))
    X = Gaussians(truth + std * rng.normal(size=truth.shape), std=std)
    posteriors = EmpiricalBayes().fit(X[:2000]).transform(X)
    said, slopes = {}, {}
    for loss in (LOSS, "expected_logistic"):
        model = UncertainSVC(loss=loss).fit(posteriors[:2000], y[:2000])
        test = posteriors[2000:]
        f, s = model.decision_function(test), model.decision_std(test)
        p = np.exp(-first(-f, s)[0])
        said[loss] = np.maximum(p, 1 - p).mean() - np.mean((f > 0) == y[2000:])
        slopes[loss] = model.coef_[0]
    assert abs(said[LOSS]) < 0.03
    assert said["expected_logistic"] < -0.05
    np.testing.assert_allclose(slopes[LOSS], [2.0, -2.0], rtol=0.2)
    assert (np.abs(slopes["expected_logistic"]) < 1.0).all()
