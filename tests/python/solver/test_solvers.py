"""The solvers that read all rows in each step: do they find the optimum, and is their bound true?

Oracles: bounds of the optimum from both sides by Newton's method in NumPy (`bracket` of conftest),
SciPy's L-BFGS-B on the NumPy reference, and LIBLINEAR where there is no intercept.
"""

import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.svm import LinearSVC

from halosvm import Covariances, Gaussians, reference

SOLVERS = ("auto", "lbfgs", "interior_point")
LAM = 0.02
# Kinds of which some examples have no spread: J has kinks there, and L-BFGS needs many passes.
WITH_CERTAIN = ("zero", "half_certain", "ragged")


@pytest.fixture(params=SOLVERS)
def solver(request):
    """Every solver."""
    return request.param


def value_of(result, X, y, lam, weights=None, loss="expected_hinge", k=0):
    """Return J of the NumPy reference at the model that a solver found."""
    w, b = result["coef"][k], result["intercept"][k]
    return reference.objective_and_gradient(X, y, w, b, lam, weights, loss)[0]


def assert_optimal(result, bounds, tolerance, k=0):
    """Assert that the model is within the tolerance of the optimum, and that its bound is true."""
    low, high = bounds
    objective, suboptimality = result["objective"][k], result["suboptimality"][k]
    assert result["converged"], result
    assert low * (1 - 1e-12) <= objective
    assert objective <= high * (1 + tolerance)
    assert suboptimality <= tolerance
    assert objective / (1 + suboptimality) <= high * (1 + 1e-12)


# ---- the optimum ---------------------------------------------------------------------------------


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each("weighted", [False, True])
@each("fit_intercept", [False, True])
def test_optimum_of_uncertain_examples_is_that_of_scipy(
    make_gaussians, solve, kind, dtype, fit_intercept, weighted
):
    if kind in WITH_CERTAIN:
        pytest.skip("SciPy needs a smooth objective")
    X, y = make_gaussians(kind, dtype=dtype)
    weights = np.random.default_rng(2).uniform(0.2, 2.0, 60) if weighted else None

    def function(point):
        value, grad_w, grad_b = reference.objective_and_gradient(
            X, y, point[:4], point[4] * fit_intercept, LAM, weights
        )
        return value, np.r_[grad_w, grad_b * fit_intercept]

    options = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 1000}
    best = optimize.minimize(
        function, np.full(5, 0.1), jac=True, method="L-BFGS-B", options=options
    )
    for solver in SOLVERS:
        result = solve(X, y, solver, weights=weights, fit_intercept=fit_intercept, tolerance=1e-10)
        assert result["converged"], solver
        value = value_of(result, X, y, LAM, weights)
        assert value == pytest.approx(best.fun, rel=1e-10), solver
        # J is strongly convex: |w - w*|^2 <= 2 (J - J*) / lam.
        distance = np.linalg.norm(result["coef"][0] - best.x[:4])
        assert distance <= 2 * np.sqrt(2 * 1e-10 * best.fun / LAM), solver
        expected = pytest.approx(best.x[4] * fit_intercept, abs=1e-4)
        assert result["intercept"][0] == expected, solver


@in_pairs
@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
@each("fit_intercept", [False, True])
@each("lam", [1.0, 0.02, 1e-4])
def test_optimum_lies_between_the_bounds_of_newtons_method(
    make_gaussians, bracket, solve, kind, loss, fit_intercept, lam
):
    X, y = make_gaussians(kind, n=50)
    weights = np.random.default_rng(2).integers(0, 3, 50).astype(float)
    bounds = bracket(X, y, lam, weights, loss, fit_intercept=fit_intercept)
    assert bounds[1] <= bounds[0] * (1 + 1e-8)
    options = {"weights": weights, "loss": loss, "fit_intercept": fit_intercept}
    for solver in SOLVERS:
        if solver == "lbfgs" and kind in WITH_CERTAIN:
            continue  # L-BFGS alone may end short of the tolerance; its certificate is tested below
        tolerance = 1e-4 if loss == "hinge" and solver == "lbfgs" else 1e-9
        result = solve(X, y, solver, lam=lam, **options, tolerance=tolerance)
        assert_optimal(result, bounds, tolerance)
        value = value_of(result, X, y, lam, weights, loss)
        assert result["objective"][0] == pytest.approx(value, rel=1e-12), solver


@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
def test_optimum_of_certain_examples_without_intercept_is_that_of_liblinear(
    make_gaussians, solve, lam
):
    X, y = make_gaussians("zero", n=200)
    svc = LinearSVC(
        loss="hinge", C=1 / (lam * 200), fit_intercept=False, dual=True, tol=1e-10, max_iter=10**7
    ).fit(X.mean, y)
    best = reference.objective_and_gradient(X, y, svc.coef_[0], 0.0, lam)[0]
    for solver in ("auto", "interior_point"):
        result = solve(X, y, solver, lam=lam, fit_intercept=False, tolerance=1e-9)
        assert result["objective"][0] == pytest.approx(best, rel=1e-8)
        assert result["intercept"][0] == 0.0


@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
def test_several_problems_have_the_optima_of_single_ones(
    make_gaussians, bracket, solve, kind, loss
):
    X, _ = make_gaussians(kind)
    codes = np.arange(60) % 3
    X = Gaussians(X.mean + 2.0 * np.eye(3, 4)[codes], cov=X.covariances)
    labels = [np.where(codes == k, 1, -1) for k in range(3)]
    bounds = [bracket(X, y, LAM, loss=loss) for y in labels]
    certain = loss == "hinge" or kind in WITH_CERTAIN
    for solver in SOLVERS:
        tolerance = 1e-4 if certain and solver == "lbfgs" else 1e-9
        result = solve(X, codes, solver, n_problems=3, loss=loss, tolerance=tolerance)
        for k, y in enumerate(labels):
            assert_optimal(result, bounds[k], tolerance, k)
            value = value_of(result, X, y, LAM, loss=loss, k=k)
            assert result["objective"][k] == pytest.approx(value, rel=1e-12), solver


# ---- unusual data --------------------------------------------------------------------------------


def blobs(n, d, *, gap=1.0, positive=0.5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < positive * n, 1, -1)
    return rng.normal(size=(n, d)) + gap * y[:, None] / np.sqrt(d), y, rng


def with_std(means, y, std):
    return Gaussians(means, std=np.broadcast_to(std, means.shape).copy()), y


def nearly_certain(variance):
    means, y, rng = blobs(80, 5)
    return with_std(means, y, np.sqrt(variance) * rng.uniform(0.5, 1.5, (80, 5)))


def nearly_certain_half():
    means, y, _ = blobs(80, 5)
    return with_std(means, y, np.where(np.arange(80) % 2, 0.5, 1e-4)[:, None])


def one_sided():
    means, y, rng = blobs(80, 5)  # only the positive examples are uncertain
    return with_std(means, y, np.where(y > 0, 0.7, 0.0)[:, None] * rng.uniform(0.5, 1, (80, 5)))


def certain_feature():
    means, y, _ = blobs(80, 3)  # no spread in one of the features: w may leave all spreads behind
    return with_std(means, y, np.array([0.0, 0.5, 1.0]))


def low_rank(n, d, rank, scale=0.5):
    means, y, rng = blobs(n, d)
    return Gaussians(means, cov=Covariances.low_rank(scale * rng.normal(size=(n, d, rank)))), y


def shared_low_rank():
    means, y, rng = blobs(80, 5)  # one covariance of rank 2 for all: they share a null space
    factor = rng.normal(size=(5, 2))
    return Gaussians(means, cov=Covariances.low_rank(np.repeat(factor[None], 80, axis=0))), y


def ragged(n, d):
    means, y, rng = blobs(n, d)
    factors = [0.4 * rng.normal(size=(d, rank)) for rank in rng.integers(0, 9, n)]
    factors[n // 2] *= 0.0
    return Gaussians(means, cov=Covariances.low_rank(factors)), y


def repeated_columns(times):
    means, y, _ = blobs(60, 3)
    return with_std(np.tile(means, (1, times)), y, 0.3)


def constant_columns():
    means, y, _ = blobs(60, 3)
    means = np.column_stack([np.full(60, 7.0), means, np.zeros(60)])
    return with_std(means, y, np.array([0.0, 0.3, 0.3, 0.3, 0.0]))


def constant_uncertain_column():
    means, y, _ = blobs(60, 3)
    return with_std(np.column_stack([np.full(60, 7.0), means]), y, np.array([2.0, 0.3, 0.3, 0.3]))


def imbalanced():
    means, y, _ = blobs(200, 3, positive=0.02, gap=2.0)
    return with_std(means, y, 0.2)


def repeated_rows():
    means, y, _ = blobs(20, 3)
    return with_std(np.tile(means, (4, 1)), np.tile(y, 4), 0.4)


def contradictory():
    means, y, _ = blobs(40, 3, gap=2.0)  # every fourth example comes with both labels
    return with_std(np.vstack([means, means[::4]]), np.concatenate([y, -y[::4]]), 0.3)


def separable():
    means, y, _ = blobs(60, 4, gap=8.0)
    return with_std(means, y, 0.3)


def far_outlier():
    means, y, _ = blobs(60, 3)
    means[7] = -1000.0 * y[7]
    return with_std(means, y, 0.3)


def steps():
    means, y, _ = blobs(100, 4)  # many equal values: many kinks at the same place
    return with_std(np.round(means), y, np.where(np.arange(100) % 2, 0.5, 0.0)[:, None])


UNUSUAL = {
    "variances 1e-6": lambda: nearly_certain(1e-6),
    "variances 1e-12": lambda: nearly_certain(1e-12),
    "variances 1e-24": lambda: nearly_certain(1e-24),
    "half nearly certain": nearly_certain_half,
    "one class certain": one_sided,
    "one feature certain": certain_feature,
    "rank 1": lambda: low_rank(80, 5, 1),
    "rank above the features": lambda: low_rank(40, 3, 6),
    "one covariance of low rank": shared_low_rank,
    "ragged": lambda: ragged(40, 6),
    "more features than rows": lambda: with_std(*blobs(15, 40)[:2], 0.5),
    "more features than rows, certain": lambda: with_std(*blobs(15, 40)[:2], 0.0),
    "more features than rows, low rank": lambda: low_rank(10, 30, 2),
    "more features than columns of factors": lambda: low_rank(12, 60, 3),
    "fewer features than columns of factors": lambda: low_rank(50, 30, 2, 0.1),
    "more features than rows, ragged": lambda: ragged(12, 30),
    "one feature": lambda: with_std(*blobs(60, 1)[:2], 0.5),
    "one feature, certain": lambda: with_std(*blobs(60, 1)[:2], 0.0),
    "two rows": lambda: with_std(np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1, -1]), 0.3),
    "two certain rows": lambda: with_std(np.array([[1.0], [3.0]]), np.array([1, -1]), 0.0),
    "two rows of low rank": lambda: low_rank(2, 3, 2),
    "each column twice": lambda: repeated_columns(2),
    "each column 12 times": lambda: repeated_columns(12),
    "constant columns": constant_columns,
    "a constant column with errors": constant_uncertain_column,
    "four positive rows of 200": imbalanced,
    "each row four times": repeated_rows,
    "rows with both labels": contradictory,
    "far apart": separable,
    "an outlier": far_outlier,
    "rounded values": steps,
}


@each("lam", [0.1, 1e-3, 1e-6])
@each("make", UNUSUAL.values())
def test_unusual_data_are_solved_to_the_tolerance(bracket, solve, make, lam):
    X, y = make()
    bounds = bracket(X, y, lam, relative=1e-8)
    assert bounds[1] <= bounds[0] * (1 + 1e-6)
    assert_optimal(solve(X, y, lam=lam), bounds, 1e-6)


@each("solver", ["lbfgs", "interior_point"])
@each("make", UNUSUAL.values())
def test_each_solver_is_honest_about_unusual_data(bracket, solve, make, solver):
    X, y = make()
    low, high = bracket(X, y, 1e-3, relative=1e-8)
    result = solve(X, y, solver, lam=1e-3)
    objective, suboptimality = result["objective"][0], result["suboptimality"][0]
    assert low * (1 - 1e-12) <= objective
    assert objective / (1 + suboptimality) <= high * (1 + 1e-9)
    assert result["converged"] == (suboptimality <= 1e-6)


@each("solver", SOLVERS)
@each("kind", KINDS)
def test_rows_without_weight_do_not_matter(make_gaussians, solve, kind, solver):
    X, y = make_gaussians(kind)
    weights = np.where(np.arange(60) % 4 == 1, 0.0, 1.0)
    used = weights > 0
    outliers = Gaussians(X.mean + 1e3 * ~used[:, None], cov=X.covariances)
    tolerance = 1e-4 if kind in WITH_CERTAIN and solver == "lbfgs" else 1e-9
    expected = solve(X[used], y[used], solver, tolerance=tolerance)
    result = solve(outliers, y, solver, weights=weights, tolerance=tolerance)
    assert result["converged"]
    assert result["objective"][0] == pytest.approx(expected["objective"][0], rel=2 * tolerance)


# ---- the certificate -----------------------------------------------------------------------------


@in_pairs
@each("solver", SOLVERS)
@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
def test_suboptimality_bounds_the_true_gap_and_reaches_every_tolerance(
    make_gaussians, bracket, solve, kind, solver, loss
):
    X, y = make_gaussians(kind, n=70, seed=4)
    low, high = bracket(X, y, LAM, loss=loss, relative=1e-11)
    close = solve(X, y, "interior_point", loss=loss, tolerance=1e-10)
    assert low * (1 - 1e-12) <= close["objective"][0] <= high * (1 + 1.01e-10)
    high = min(high, close["objective"][0])
    certain = loss == "hinge" or kind in WITH_CERTAIN
    for tolerance in (1e-1, 1e-3, 1e-6, 1e-9):
        result = solve(X, y, solver, loss=loss, tolerance=tolerance)
        objective, suboptimality = result["objective"][0], result["suboptimality"][0]
        assert objective / high - 1 <= suboptimality + 1e-10
        if not (solver == "lbfgs" and certain and tolerance < 1e-4):
            assert result["converged"]
            assert suboptimality <= tolerance


@in_pairs
@each("solver", SOLVERS)
@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
def test_bound_is_true_far_from_the_origin(make_gaussians, solve, kind, solver, loss):
    X, y = make_gaussians(kind)
    moved = Gaussians(X.mean + 1e4, cov=X.covariances)
    expected = solve(X, y, "interior_point", loss=loss, tolerance=1e-10)["objective"][0]
    for tolerance in (1e-2, 1e-4, 1e-6):
        result = solve(moved, y, solver, loss=loss, tolerance=tolerance)
        lower = result["objective"][0] / (1 + result["suboptimality"][0])
        assert lower <= expected * (1 + 1e-9)


def random_problem(rng):
    """Return a small problem of any kind and any scale."""
    n, d = int(rng.integers(2, 50)), int(rng.integers(1, 9))
    y = np.where(rng.random(n) < rng.choice([0.5, 0.2]), 1, -1)
    y[:2] = 1, -1
    means = rng.normal(size=(n, d)) + rng.choice([0.0, 0.5, 3.0]) * y[:, None] / np.sqrt(d)
    variances = 10.0 ** rng.uniform(-8, 4) * rng.uniform(0.05, 1.0, (n, d))
    kind = rng.choice(["zero", "isotropic", "diagonal", "half_certain", "low_rank", "full"])
    factors = np.sqrt(variances[:, :, None] / 3) * rng.normal(size=(n, d, 3))
    cov = {
        "zero": lambda: Covariances.zero(n, d),
        "isotropic": lambda: Covariances.isotropic(variances[:, 0].copy(), d),
        "diagonal": lambda: Covariances.diagonal(variances),
        "half_certain": lambda: Covariances.diagonal(variances * (np.arange(n) % 2)[:, None]),
        "low_rank": lambda: Covariances.low_rank(factors),
        "full": lambda: Covariances.full(factors @ factors.transpose(0, 2, 1)),
    }[kind]()
    change = rng.choice(["none", "scale", "shift", "feature", "round"])
    means = {
        "none": lambda: means,
        "scale": lambda: means * 1e6,
        "shift": lambda: means + 1e4,
        "feature": lambda: means * np.where(np.arange(d) == 0, 1e4, 1.0),
        "round": lambda: np.round(means),
    }[change]()
    options = {
        "lam": 10.0 ** rng.uniform(-9, 0),
        "weights": rng.integers(0, 3, n) + 0.5 * (np.arange(n) < 2) if rng.random() < 0.3 else None,
        "loss": str(rng.choice(["expected_hinge", "expected_hinge", "hinge"])),
        "fit_intercept": bool(rng.random() < 0.8),
    }
    return Gaussians(means, cov=cov), y, options


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=20, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), tolerance=st.sampled_from([1e-2, 1e-4, 1e-6, 1e-8]))
def test_lower_bound_is_never_above_the_optimum(bracket, solve, solver, tolerance, seed):
    X, y, options = random_problem(np.random.default_rng(seed))
    result = solve(X, y, solver, **options, tolerance=tolerance, max_iterations=300)
    objective, suboptimality = result["objective"][0], result["suboptimality"][0]
    assert np.isfinite(objective)
    assert np.isfinite(result["coef"]).all()
    assert np.isfinite(result["intercept"]).all()
    assert suboptimality >= 0.0
    assert result["steps"] <= 300
    assert result["converged"] == (suboptimality <= tolerance)
    fit_intercept = options.pop("fit_intercept")
    low, high = bracket(X, y, **options, fit_intercept=fit_intercept, relative=1e-7)
    # Margins are sums of terms as large as |w| |x|, and are rounded accordingly.
    rounding = 1e-15 * (1 + np.abs(result["coef"][0]) @ np.abs(X.mean).max(axis=0))
    assert low - rounding <= objective
    assert objective / (1 + suboptimality) <= high * (1 + 1e-8) + rounding


def test_proofs_of_a_minimum_at_zero_keep_to_the_iterations_that_are_allowed(solve):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = Gaussians(rng.normal(size=(400, 3)) + 0.3 * y[:, None], std=np.full((400, 3), 3.0))
    passes = []
    result = solve(X, y, "lbfgs", max_iterations=1, report=lambda *_: passes.append(1))
    assert result["steps"] <= 1
    assert len(passes) <= 1
    assert result["suboptimality"][0] > 1e-6
