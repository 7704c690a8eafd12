"""The solvers that read all rows in each step: counts, reports, threads, starts and hard cases."""

import numpy as np
import pytest
from cases import KINDS, each, in_pairs
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer

from halosvm import Covariances, Gaussians, UncertainSVC

SOLVERS = ("auto", "lbfgs", "interior_point")


@pytest.fixture(params=SOLVERS)
def solver(request):
    """Every solver."""
    return request.param


# ---- counts and reports --------------------------------------------------------------------------


@in_pairs
@each("solver", SOLVERS)
@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
@each("n_problems", [1, 3])
@each("max_iterations", [1, 2, 7, 59, 60, 61, 75])
def test_no_more_iterations_than_allowed_are_made(
    make_gaussians, solve, kind, solver, loss, n_problems, max_iterations
):
    X, y = make_gaussians(kind, n=30)
    labels = y if n_problems == 1 else np.arange(30) % 3
    options = {"n_problems": n_problems, "loss": loss, "max_iterations": max_iterations}
    result = solve(X, labels, solver, **options, lam=1e-6, tolerance=1e-15)
    assert 1 <= result["steps"] <= max_iterations
    assert result["epochs"] == result["steps"]
    assert np.isfinite(result["objective"]).all()
    assert not np.isnan(result["suboptimality"]).any()


@each("solver", SOLVERS)
@each("kind", KINDS)
def test_runs_that_are_cut_short_say_so(make_gaussians, solve, kind, solver):
    X, y = make_gaussians(kind)
    result = solve(X, y, solver, max_iterations=2)
    assert result["steps"] == 2
    assert not result["converged"]
    assert result["suboptimality"][0] > 1e-6
    assert "allowed" in result["message"]


@each("solver", SOLVERS)
@each("kind", KINDS)
def test_more_iterations_never_end_at_a_worse_model(make_gaussians, solve, kind, solver):
    if solver == "lbfgs" and kind in ("zero", "half_certain", "ragged"):
        pytest.skip("models are compared by their smoothed objectives")
    X, y = make_gaussians(kind, n=40)
    values = [
        solve(X, y, solver, lam=1e-4, tolerance=1e-12, max_iterations=n)["objective"][0]
        for n in (1, 2, 4, 8, 16, 32, 59, 60, 61, 62, 64, 68, 76, 92, 124, 300)
    ]
    assert (np.diff(values) <= 1e-7 * values[-1]).all(), values


@each("kind", KINDS)
def test_reports_count_up_and_end_at_the_result(make_gaussians, solve, kind):
    X, y = make_gaussians(kind, n=40)
    reports = []
    result = solve(X, y, lam=1e-4, tolerance=1e-9, report=lambda *report: reports.append(report))
    epochs, objectives, gaps = (np.array(column) for column in zip(*reports, strict=True))
    assert (np.diff(epochs) >= 0).all()
    assert epochs[-1] == result["steps"]
    assert (gaps >= 0).all()
    assert gaps[-1] <= 1e-9
    assert result["suboptimality"][0] <= gaps[-1] + 1e-12
    # Every report holds a bound from above and, with its gap, one from below.
    assert (objectives >= result["objective"][0] * (1 - 1e-9)).all()
    assert (objectives / (1 + gaps) <= result["objective"][0] * (1 + 1e-12)).all()


@in_pairs
@each("kind", KINDS)
@each("loss", ["expected_hinge", "expected_squared_hinge", "expected_logistic"])
@each("lam", [1e-1, 1e-6])
def test_a_bound_is_known_from_the_first_pass(make_gaussians, solve, kind, loss, lam):
    """However small the regulariser is, a share of the first gradient's dual gives one."""
    X, y = make_gaussians(kind, n=40)
    reports = []
    result = solve(X, y, "lbfgs", lam=lam, loss=loss, report=lambda *report: reports.append(report))
    assert all(np.isfinite(gap) for _, _, gap in reports)
    least = float(result["objective"][0])
    for _, value, gap in reports:
        assert value / (1.0 + gap) <= least * (1.0 + 1e-12)


def test_exception_of_the_report_ends_the_run(make_gaussians, solve, solver):
    X, y = make_gaussians()

    def report(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        solve(X, y, solver, report=report)


def law(n, *, certain=False):
    """Return n draws of one law of Gaussians, and their labels."""
    rng = np.random.default_rng(n)
    y = rng.choice([-1, 1], n)
    means = rng.normal(size=(n, 10)) + 0.4 * y[:, None]
    return Gaussians(means, std=None if certain else rng.uniform(0.2, 1.0, (n, 10))), y


@pytest.mark.parametrize(
    ("certain", "sizes", "most"),
    [
        (False, (1000, 10_000, 100_000), 30),
        (True, (500, 1000, 1900), 30),  # interior points
        (True, (10_000, 30_000, 100_000), 60),  # very many examples: L-BFGS
    ],
)
def test_iterations_do_not_grow_with_the_number_of_examples(solve, certain, sizes, most):
    steps = [solve(*law(n, certain=certain), lam=1e-3, n_threads=0)["steps"] for n in sizes]
    assert max(steps) <= 1.5 * steps[0]
    assert max(steps) <= most


@pytest.mark.parametrize("certain", [False, True])
def test_iterations_hardly_grow_when_the_regularisation_fades(solve, certain):
    X, y = law(1500, certain=certain)
    steps = [solve(X, y, lam=lam)["steps"] for lam in (1.0, 1e-2, 1e-4, 1e-6, 1e-8)]
    assert max(steps) <= 60


@pytest.mark.parametrize("n_problems", [1, 3])
def test_few_passes_serve_many_examples_of_correlated_features(solve, n_problems):
    # With a diagonal model of the Hessian it takes 40 passes and more.
    rng = np.random.default_rng(0)
    codes = np.arange(30_000) % max(2, n_problems)
    mixing = np.arange(1.0, 31.0)[:, None] ** -1.5 * np.linalg.qr(rng.normal(size=(30, 30)))[0]
    mixing /= np.sqrt(np.square(mixing).sum(axis=0))
    means = (rng.normal(size=(30_000, 30)) + 1.2 * rng.normal(size=(3, 30))[codes]) @ mixing
    X = Gaussians(means, std=rng.uniform(0.05, 0.3, means.shape))
    labels = codes if n_problems > 1 else np.where(codes > 0, 1, -1)
    result = solve(X, labels, "lbfgs", lam=1e-6, n_problems=n_problems)
    assert result["converged"]
    assert result["steps"] <= 20


# ---- the same result, however it is run ----------------------------------------------------------


@in_pairs
@each("solver", SOLVERS)
@each("kind", KINDS)
@each("n_problems", [1, 3])
@each("loss", ["expected_hinge", "hinge"])
def test_number_of_threads_does_not_change_a_bit(
    make_gaussians, solve, kind, solver, loss, n_problems
):
    # As many rows as make several blocks for every kind of covariance.
    X, y = make_gaussians(kind, n=1500)
    labels = y if n_problems == 1 else np.arange(1500) % 3
    options = {"n_problems": n_problems, "loss": loss, "max_iterations": 4}
    results = [solve(X, labels, solver, **options, n_threads=n) for n in (1, 2, 4)]
    for other in results[1:]:
        for key in ("coef", "intercept", "objective", "suboptimality", "steps"):
            np.testing.assert_array_equal(results[0][key], other[key])


@in_pairs
@each("solver", SOLVERS)
@each("kind", KINDS)
@each("d", [1, 3, 7, 8, 33])
def test_place_of_arrays_in_memory_does_not_change_a_bit(make_gaussians, solve, kind, solver, d):
    X, y = make_gaussians(kind, n=100, d=d)
    if X.covariances.kind not in ("zero", "isotropic", "diagonal", "full"):
        pytest.skip("made from one array")

    def moved(array, offset):
        room = np.zeros(array.nbytes + 256, np.uint8)
        begin = -room.ctypes.data % 128 + offset
        copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    results = []
    for offset in (0, 8, 16, 32, 72):
        cov = X.covariances
        if cov.values is not None:
            cov = cov.to_full() if cov.kind == "full" else cov.variances()
            cov = Covariances.full(moved(cov, offset)) if cov.ndim == 3 else moved(cov, offset)
        data = Gaussians(moved(X.mean, offset), cov=cov)
        results.append(solve(data, y, solver, max_iterations=6, tolerance=0.0))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0]["coef"], other["coef"])


@each("solver", SOLVERS)
@each("kind", KINDS)
def test_result_does_not_depend_on_the_start(make_gaussians, solve, kind, solver):
    X, y = make_gaussians(kind)
    certain = kind in ("zero", "half_certain", "ragged") and solver == "lbfgs"
    tolerance = 1e-4 if certain else 1e-9
    expected = solve(X, y, solver, tolerance=tolerance)
    rng = np.random.default_rng(0)
    for scale in (1e-8, 1.0, 1e4):
        start = scale * rng.normal(size=(1, 4)), scale * rng.normal(size=1)
        result = solve(X, y, solver, start=start, tolerance=tolerance)
        assert result["converged"]
        assert result["objective"][0] == pytest.approx(expected["objective"][0], rel=2 * tolerance)


def test_start_at_the_optimum_takes_few_passes(make_gaussians, solve):
    X, y = make_gaussians("full", n=300)
    close = solve(X, y, "lbfgs", tolerance=1e-12)
    start = close["coef"], close["intercept"]
    assert solve(X, y, "lbfgs", start=start, tolerance=1e-9)["steps"] <= 3


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ((np.zeros((1, 3)), np.zeros(1)), "start has 3 features, objective has 4"),
        ((np.zeros((2, 4)), np.zeros(2)), "start has 2 problems, objective has 1"),
        ((np.zeros((1, 4)), np.zeros(2)), "start has 2 intercepts, objective has 1"),
        ((np.full((1, 4), np.nan), np.zeros(1)), "start must be finite"),
        ((np.zeros((1, 4)), np.array([np.inf])), "start must be finite"),
    ],
)
def test_start_that_does_not_fit_is_an_error(make_gaussians, solve, solver, start, message):
    X, y = make_gaussians()
    with pytest.raises(ValueError, match=message):
        solve(X, y, solver, start=start)


# ---- the optimum at w = 0 (spec A.6) -------------------------------------------------------------


def majority(share, noise, n=100):
    """`share` of the examples at +1, the others at -1, all with the standard deviation `noise`."""
    y = np.where(np.arange(n) < share * n, 1, -1)
    return Gaussians(y[:, None].astype(float), std=np.full((n, 1), noise)), y


def threshold(share):
    """Return the noise from which on w = 0 is optimal for any regularisation."""
    t = -norm.ppf((1 - share) / share)
    return 2 * (1 - share) / (share * norm.pdf(t))


@in_pairs
@each("share", [0.6, 0.8, 0.95])
@each("factor", [1.02, 1.2, 3.0, 100.0])
@each("lam", [1.0, 1e-3, 1e-6])
def test_optimum_at_zero_is_recognised(solve, share, factor, lam):
    assert threshold(0.8) == pytest.approx(1.573, abs=5e-4)
    X, y = majority(share, factor * threshold(share))
    result = solve(X, y, lam=lam)
    assert result["objective"][0] == pytest.approx(2 * (1 - share), rel=1e-12)
    assert result["coef"][0, 0] == 0.0
    assert result["intercept"][0] == pytest.approx(1.0, abs=1e-12)
    assert result["converged"]
    assert result["status"] == "zero_model"
    assert result["suboptimality"][0] <= 1e-6
    assert "w = 0" in result["message"]
    assert result["steps"] <= 300


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("lam", [1e-3, 1e-6])
def test_optimum_close_to_zero_is_not_taken_for_zero(bracket, solve, share, lam):
    X, y = majority(share, 0.9 * threshold(share))
    result = solve(X, y, lam=lam)
    assert result["converged"]
    assert result["status"] != "zero_model"
    assert result["coef"][0, 0] > 0
    low, high = bracket(X, y, lam)
    assert high < 2 * (1 - share) * (1 - 1e-5)
    assert low * (1 - 1e-12) <= result["objective"][0] <= high * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "full", "low_rank_diagonal"])
@pytest.mark.parametrize("n", [40, 400])
def test_optimum_at_zero_is_recognised_in_several_dimensions(make_covariances, solve, kind, n):
    # Most draws of these labels say nothing about the means, and the spreads are large.
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < 0.8, 1, -1)
    X = Gaussians(rng.normal(size=(n, 5)), cov=make_covariances(kind, n, 5, rng, scale=3.0))
    result = solve(X, y)
    assert result["objective"][0] == pytest.approx(2 * np.mean(y < 0), rel=1e-12)
    assert result["status"] == "zero_model"
    assert result["suboptimality"][0] <= 1e-6
    assert result["steps"] <= 300


def between(n=300, noise=2.0):
    """Three classes on a line; the one in the middle is rare, and no half-plane is its own."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [n * 4 // 10, n * 2 // 10, n * 4 // 10])
    means = rng.normal(size=(n, 2))
    means[:, 0] += 4.0 * (codes - 1)
    return Gaussians(means, std=np.full((n, 2), noise)), codes


def test_problem_at_zero_does_not_hold_up_the_others(bracket, solve):
    X, codes = between()
    result = solve(X, codes, n_problems=3, lam=1e-3)
    assert result["converged"]
    assert result["status"] == "zero_model"
    np.testing.assert_array_equal(result["coef"].any(axis=1), [True, False, True])
    assert result["objective"][1] == pytest.approx(0.4, rel=1e-12)
    for k in (0, 2):
        low, high = bracket(X, np.where(codes == k, 1, -1), 1e-3)
        assert low * (1 - 1e-12) <= result["objective"][k] <= high * (1 + 1e-6)


@in_pairs
@each("lam", [1e-2, 1e-4, 1e-6, 1e-9])
@each("options", [{}, {"fit_intercept": False}, {"weights": True}])
@each("shape", [(10, 30, 2), (30, 60, 2), (20, 100, 3), (25, 784, 2)])
def test_interior_points_need_few_steps_where_w_leaves_spreads_behind(solve, shape, options, lam):
    n, d, _ = shape
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1, -1)
    factors = 0.2 * rng.normal(size=shape)
    X = Gaussians(
        rng.normal(size=(n, d)) + y[:, None] / np.sqrt(d), cov=Covariances.low_rank(factors)
    )
    if "weights" in options:
        options = {"weights": rng.integers(0, 3, n) + (np.arange(n) < 2.0)}
    result = solve(X, y, "interior_point", lam=lam, **options, tolerance=1e-8, max_iterations=50)
    assert result["converged"]
    spreads = np.linalg.norm(np.einsum("ndr,d->nr", factors, result["coef"][0]), axis=1)
    assert spreads.min() < 1e-3 * 0.2 * np.linalg.norm(result["coef"][0])


@pytest.mark.parametrize("seed", range(3))
def test_interior_points_go_on_while_the_bound_grows(solve, seed):
    """Where classes nearly part, the bound doubles again and again while the value hardly falls."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 10))
    y = np.where(X @ rng.normal(size=10) + 0.06 * rng.normal(size=3000) > 0, 1, -1)
    result = solve(Gaussians(X), y, "interior_point", lam=1e-6)
    assert result["converged"]
    assert result["steps"] < 60


@pytest.mark.parametrize("d", [10, 15, 20])
def test_passes_go_on_near_the_end_and_are_given_up_far_from_it(solve, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200 * d, d))
    score = X @ rng.normal(size=d) / np.sqrt(d)
    noise = rng.normal(size=len(X))
    for size, same in ((0.5, True), (0.01, False)):
        y = np.where(score + size * noise > 0, 1, -1)
        steps = [
            solve(Gaussians(X), y, solver, lam=1e-4 if same else 1e-6)["steps"]
            for solver in ("auto", "lbfgs")
        ]
        assert (steps[0] == steps[1]) is same
        assert same or steps[0] < 150
        assert steps[1] > 60


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("lam", [1e3, 1e6, 1e9, 1e12])
def test_strong_regularisation_is_not_taken_for_zero(solve, noise, lam):
    # The optimum tends to the direction of the naive slope at w = 0, with length 1 / lam.
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200) % 5 < 2, 1, -1)
    means = rng.normal(size=(200, 5)) + 0.5 * y[:, None]
    X = Gaussians(means, std=np.full((200, 5), noise) if noise else None)
    result = solve(X, y, lam=lam)
    assert result["converged"]
    assert result["status"] != "zero_model"
    coef = result["coef"][0] * lam
    assert 0.1 < np.linalg.norm(coef) < 3.0
    difference = means[y > 0].mean(axis=0) - means[y < 0].mean(axis=0)
    assert coef @ difference > 0.5 * np.linalg.norm(coef) * np.linalg.norm(difference)


def cancer(change, errors):
    data = load_breast_cancer()
    means = (data.data[:, :10] - data.data[:, :10].mean(axis=0)) / data.data[:, :10].std(axis=0)
    std = data.data[:, 10:20] / data.data[:, :10].std(axis=0) * errors
    if change == "times a million":
        means, std = means * 1e6, std * 1e6
    elif change == "plus ten thousand":
        means = means + 1e4
    elif change == "one feature times ten thousand":
        means[:, 3] *= 1e4
        std[:, 3] *= 1e4
    elif change == "100 copies of columns":
        means, std = np.tile(means, (1, 11)), np.tile(std, (1, 11))
    elif change == "more features than rows":
        rng = np.random.default_rng(0)
        mix = rng.normal(size=(10, 60)) / np.sqrt(10)
        means, std = (means @ mix)[::12], np.abs(std @ mix)[::12]
        data.target = data.target[::12]
    return Gaussians(means, std=std if errors else None), np.where(data.target > 0, 1, -1)


CHANGES = (
    "none",
    "times a million",
    "plus ten thousand",
    "one feature times ten thousand",
    "100 copies of columns",
    "more features than rows",
)


@in_pairs
@each("errors", [0.0, 1e-3, 1.0, 30.0])
@each("change", CHANGES)
@each("lam", [1e-3, 1e-9])
def test_hard_data_are_solved_or_told_apart(bracket, solve, change, errors, lam):
    X, y = cancer(change, errors)
    result = solve(X, y, lam=lam, n_threads=0)
    objective, suboptimality = result["objective"][0], result["suboptimality"][0]
    assert np.isfinite(objective)
    assert np.isfinite(result["coef"]).all()
    assert suboptimality >= 0
    assert result["steps"] <= 1000
    assert result["converged"], result
    same = X
    if change == "100 copies of columns":
        # By symmetry all copies get the same weight v / sqrt(11): x counts sqrt(11)-fold.
        same = Gaussians(np.sqrt(11) * X.mean[:, :10], cov=X.covariances.variances()[:, :10])
    low, high = bracket(same, y, lam, relative=1e-7)
    rounding = 1e-15 * (1 + np.abs(result["coef"][0]) @ np.abs(X.mean).max(axis=0))
    assert low - rounding <= objective <= high * (1 + 1e-6) + rounding
    assert objective / (1 + suboptimality) <= high * (1 + 1e-8) + rounding


@pytest.mark.parametrize("certain", ["none", "every other", "all"])
def test_many_features_are_solved(bracket, solve, certain):
    # Beyond 4,000 features there is no room for a Hessian.
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1, -1)
    means = rng.normal(size=(60, 4100)) + 0.05 * y[:, None]
    step = {"none": 61, "every other": 2, "all": 1}[certain]
    std = np.where(np.arange(1, 61) % step == 0, 0.0, 0.2)
    X = Gaussians(means, std=std if std.any() else None)
    result = solve(X, y, n_threads=0, max_iterations=4000)
    assert result["suboptimality"][0] <= 1e-6


@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "low_rank"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kinks_of_many_certain_examples_are_smoothed_from_the_start(kind, n_classes):
    """Two hundred passes went by before L-BFGS gave up on J as it is."""
    rng = np.random.default_rng(5)
    n, d = 6000, 8
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y]
    size = np.where(rng.random(n) < 0.5, 0.0, 0.4)
    factors = rng.normal(size=(n, d, 2)) * size[:, np.newaxis, np.newaxis]
    covariances = {
        "isotropic": Covariances.isotropic(size**2, d),
        "diagonal": Covariances.diagonal(np.outer(size**2, np.linspace(0.5, 2.0, d))),
        "low_rank": Covariances.low_rank(factors - factors.mean(axis=1, keepdims=True)),
    }
    clf = UncertainSVC(C=1e3 / n, solver="lbfgs").fit(X, y, X_cov=covariances[kind])
    assert np.max(clf.suboptimality_) <= clf.tol
    assert clf.n_iter_ <= 120
