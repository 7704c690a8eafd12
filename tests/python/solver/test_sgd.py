"""Stochastic gradient descent against the NumPy reference on the same mini-batches, and SciPy."""

import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from scipy import optimize

from halosvm import Gaussians, _core, reference

LAM = 0.02
RELATIVE = 1e-9


def run(X, y, *, weights=None, lam=LAM, loss="expected_hinge", **options):
    """Run the core from zero; options of the objective and of the solver together."""
    n_problems = options.pop("n_problems", 1)
    codes = np.asarray(y if n_problems > 1 else np.asarray(y) > 0, dtype=np.int16)
    objective = _core.Objective(
        X.core_view(),
        codes,
        n_problems,
        weights,
        lam,
        loss=loss,
        fit_intercept=options.pop("fit_intercept", True),
        n_threads=options.pop("n_threads", 1),
    )
    start = np.zeros((n_problems, X.shape[1])), np.zeros(n_problems)
    coef, intercept = options.pop("start", start)
    options = {"tolerance": 0.0, "batch_size": 8, **options}
    return _core.minimize_sgd(objective, coef=coef, intercept=intercept, **options)


def random_weights(n):
    return np.random.default_rng(2).uniform(0.2, 2.0, n)


def assert_same_model(result, w, b):
    scale = np.abs(w).max()
    np.testing.assert_allclose(result["coef"][0], w, rtol=0, atol=RELATIVE * scale)
    assert result["intercept"][0] == pytest.approx(b, abs=RELATIVE * max(1, abs(b), scale))


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each("averaging", ["weighted", "none"])
@each("fit_intercept", [True, False])
def test_core_walks_the_same_path_as_the_reference(
    make_gaussians, kind, dtype, averaging, fit_intercept
):
    X, y = make_gaussians(kind, dtype=dtype)
    options = {
        "weights": random_weights(60) if dtype == np.float64 else None,
        "averaging": averaging,
        "fit_intercept": fit_intercept,
        "seed": 7,
        "batch_size": 8,
    }
    w, b = reference.sgd(X, y, LAM, steps=200, **options)
    result = run(X, y, max_steps=200, **options)
    assert result["steps"] == 200
    assert_same_model(result, w, b)


@pytest.mark.parametrize("averaging", ["weighted", "none"])
def test_hinge_walks_the_same_path_as_the_reference(make_gaussians, averaging):
    X, y = make_gaussians("diagonal")
    options = {"loss": "hinge", "averaging": averaging, "seed": 3, "batch_size": 8}
    w, b = reference.sgd(X, y, LAM, steps=200, **options)
    assert_same_model(run(X, y, max_steps=200, **options), w, b)


@pytest.mark.parametrize("batch_size", [1, 3, 59, 60, 1000])
@pytest.mark.parametrize("seed", [0, 2**31, 2**64 - 1])
def test_every_batch_size_and_seed_walks_the_same_path_as_the_reference(
    make_gaussians, batch_size, seed
):
    X, y = make_gaussians()
    w, b = reference.sgd(X, y, LAM, steps=200, batch_size=batch_size, seed=seed)
    assert_same_model(run(X, y, max_steps=200, batch_size=batch_size, seed=seed), w, b)


@pytest.mark.parametrize("averaging", ["weighted", "none"])
def test_start_is_used_as_by_the_reference(make_gaussians, averaging):
    X, y = make_gaussians()
    start = np.array([0.5, -1.0, 2.0, 0.0]), 1.5
    w, b = reference.sgd(X, y, LAM, steps=50, start=start, averaging=averaging, batch_size=8)
    start = start[0][None], np.array([start[1]])
    assert_same_model(run(X, y, max_steps=50, start=start, averaging=averaging), w, b)


def test_batch_of_all_rows_reads_each_once_whatever_the_seed(make_gaussians):
    X, y = make_gaussians()
    one = run(X, y, batch_size=60, max_steps=30, seed=1)
    other = run(X, y, batch_size=10_000, max_steps=30, seed=2)
    np.testing.assert_array_equal(one["coef"], other["coef"])
    w = np.zeros(4)  # the same steps by hand, on the full gradient
    centre, average, b = X.mean.mean(axis=0), np.zeros(4), 0.0
    size = np.square(X.mean - centre).sum(1) + 1 + X.covariances.trace()
    for t in range(1, 31):
        _, gradient, slope = reference.objective_and_gradient(X, y, w, b - w @ centre, LAM)
        eta = 1 / (LAM * t + size.mean())
        w, b = w - eta * (gradient - slope * centre), b - eta * slope
        w = w / max(1.0, np.sqrt(LAM * (w @ w)))
        average = average + 2 / (t + 1) * (w - average)
    np.testing.assert_allclose(one["coef"][0], average, rtol=1e-10)


@each("kind", KINDS)
@each("n_problems", [1, 5])
def test_one_seed_gives_the_same_bits_on_any_number_of_threads(make_gaussians, kind, n_problems):
    X, y = make_gaussians(kind, n=400)
    labels = y if n_problems == 1 else np.arange(400) % n_problems
    results = [
        run(X, labels, n_problems=n_problems, max_epochs=4, seed=11, n_threads=n_threads)
        for n_threads in (1, 2, 4)
    ]
    for other in results[1:]:
        for key in ("coef", "intercept", "objective", "suboptimality"):
            np.testing.assert_array_equal(results[0][key], other[key])


def test_different_seeds_give_different_walks(make_gaussians):
    X, y = make_gaussians()
    one, other = (run(X, y, max_steps=5, seed=seed)["coef"] for seed in (0, 1))
    assert (one != other).any()


@each("kind", KINDS)
def test_several_problems_equal_single_ones_with_the_same_seed(make_gaussians, kind):
    X, _ = make_gaussians(kind)
    codes = np.random.default_rng(4).integers(0, 3, 60)
    together = run(X, codes, n_problems=3, max_steps=100, seed=5)
    for k in range(3):
        w, b = reference.sgd(X, np.where(codes == k, 1, -1), LAM, steps=100, seed=5, batch_size=8)
        alone = {key: together[key][k : k + 1] for key in ("coef", "intercept")}
        assert_same_model(alone, w, b)


def test_rows_are_drawn_uniformly_and_as_the_reference_draws_them():
    n, size = 10, 4
    batches = reference.linear._batches(n, size, steps=5000, seed=9)
    rows = np.array(list(batches)).ravel()
    core = [_core.sgd_row(9, draw, n) for draw in range(20_000)]
    np.testing.assert_array_equal(core, rows)
    expected = len(rows) / n
    deviation = np.bincount(rows, minlength=n) - expected
    assert (deviation**2 / expected).sum() < 40  # chi squared with 9 degrees of freedom: p = 1e-5


def test_rows_stay_in_range_for_every_number_of_rows():
    for n in (1, 2, 3, 7, 10**9, 2**52):
        rows = [_core.sgd_row(0, draw, n) for draw in range(1000)]
        assert min(rows) >= 0
        assert max(rows) < n


@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_descent_ends_at_the_optimum_that_scipy_finds(make_gaussians, loss, fit_intercept):
    X, y = make_gaussians("full")

    def function(point):
        value, grad_w, grad_b = reference.objective_and_gradient(
            X, y, point[:4], point[4] * fit_intercept, LAM, None, loss
        )
        return value, np.r_[grad_w, grad_b * fit_intercept]

    best = optimize.minimize(function, np.zeros(5), jac=True, method="L-BFGS-B")
    result = run(X, y, loss=loss, fit_intercept=fit_intercept, max_epochs=4000, n_threads=2)
    value = reference.objective_and_gradient(
        X, y, result["coef"][0], result["intercept"][0], LAM, None, loss
    )[0]
    assert result["objective"][0] == pytest.approx(value, rel=1e-12)
    assert value <= best.fun * 1.002
    assert result["suboptimality"][0] >= value / best.fun - 1 - 1e-9


def test_published_schedule_is_followed_to_the_letter(make_gaussians):
    # w <- w - eta (lam w + g), b <- b - eta g_b, eta = 1/(lam t), |w| <= 1/sqrt(lam).
    X, y = make_gaussians("diagonal", n=20)
    w, b = np.zeros(4), 0.0
    for step in range(40):
        rows = [_core.sgd_row(3, 5 * step + j, 20) for j in range(5)]
        batch = Gaussians(X.mean[rows], cov=X.covariances[rows])
        _, gradient, slope = reference.objective_and_gradient(batch, y[rows], w, b, LAM)
        eta = 1 / (LAM * (step + 1))
        w, b = w - eta * gradient, b - eta * slope
        w = w * min(1.0, 1 / (np.sqrt(LAM) * np.linalg.norm(w)))
    result = run(X, y, averaging="none", batch_size=5, max_steps=40, seed=3)
    assert_same_model(result, w, b)


@each("kind", KINDS)
def test_intercept_is_exact_for_the_averaged_coefficients(make_gaussians, kind):
    X, y = make_gaussians(kind)
    result = run(X, y, max_steps=37)
    expected = reference.exact_intercept(X, y, result["coef"][0])
    assert result["intercept"][0] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_tolerance_ends_the_run_when_it_is_certified(make_gaussians):
    X, y = make_gaussians()
    result = run(X, y, tolerance=0.01, max_epochs=10_000)
    assert result["converged"]
    assert result["suboptimality"][0] <= 0.01
    assert result["epochs"] < 10_000
    assert "tolerance" in result["message"]
    ended = run(X, y, tolerance=0.01, max_epochs=1)
    assert not ended["converged"]
    assert ended["epochs"] == 1
    assert ended["suboptimality"][0] > 0.01


@pytest.mark.parametrize(
    ("options", "reports"),
    [
        ({"max_epochs": 5}, [1, 2, 4, 5]),
        ({"max_epochs": 8}, [1, 2, 4, 8]),
        ({"max_steps": 20, "batch_size": 10}, [1, 2, 4]),  # 6 steps make a pass of 60 rows
    ],
)
def test_reports_come_after_1_2_4_passes_and_at_the_end(make_gaussians, options, reports):
    X, y = make_gaussians()
    calls = []
    result = run(X, y, report=lambda *call: calls.append(call), **options)
    assert [epochs for epochs, *_ in calls] == reports
    assert calls[-1][1:] == (result["objective"][0], result["suboptimality"][0])
    assert result["epochs"] == reports[-1]


def test_exception_of_the_report_ends_the_run(make_gaussians):
    X, y = make_gaussians()

    def report(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(X, y, report=report, max_epochs=100)


def test_coefficients_stay_in_the_ball_that_holds_every_optimum(make_gaussians):
    X, y = make_gaussians(n=30)
    for averaging in ("weighted", "none"):
        for steps in (1, 2, 3, 10):
            result = run(X, y, averaging=averaging, max_steps=steps, lam=1e-6)
            assert np.linalg.norm(result["coef"]) <= 1e3 * (1 + 1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be positive"),
        ({"max_epochs": 0}, "max_epochs must be positive"),
        ({"tolerance": -1.0}, "tolerance must be >= 0"),
        ({"tolerance": np.nan}, "tolerance must be >= 0"),
        ({"averaging": "mean"}, "averaging is 'mean'; it must be 'weighted' or 'none'"),
        ({"start": (np.zeros((1, 3)), np.zeros(1))}, "start has 3 features, objective has 4"),
        ({"start": (np.zeros((2, 4)), np.zeros(2))}, "start has 2 problems, objective has 1"),
        ({"start": (np.full((1, 4), np.nan), np.zeros(1))}, "start must be finite"),
    ],
)
def test_bad_settings_are_errors_that_name_them(make_gaussians, options, message):
    X, y = make_gaussians()
    with pytest.raises(ValueError, match=message):
        run(X, y, **options)


@pytest.mark.parametrize("n_intercepts", [0, 3])
def test_intercepts_that_do_not_match_the_coefficients_are_an_error(make_gaussians, n_intercepts):
    X, y = make_gaussians()
    with pytest.raises(ValueError, match=f"has {n_intercepts} .*has 1"):
        run(X, y, start=(np.zeros((1, 4)), np.zeros(n_intercepts)), max_epochs=1)
