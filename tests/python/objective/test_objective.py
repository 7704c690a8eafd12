"""The objective against the NumPy reference, SciPy, Monte Carlo, differences and golden numbers."""

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, DTYPES, each, in_pairs
from scipy import optimize

from halosvm import Covariances, Gaussians, _core, reference

RELATIVE = 1e-12
LAM = 0.05
HINGES = ["expected_hinge", "hinge"]
LOSSES = [name for name in _core.loss_names() if name in reference.LOSSES]


def core_objective(X, y, weights=None, lam=LAM, loss="expected_hinge", **options):
    """Make the core's objective of labels -1 and +1, or of class codes if `n_problems` is given."""
    n_problems = options.pop("n_problems", 1)
    options = {"n_threads": 1, **options}
    codes = np.asarray(y if n_problems > 1 else np.asarray(y) > 0, dtype=np.int16)
    return _core.Objective(X.core_view(), codes, n_problems, weights, lam, loss=loss, **options)


def evaluate(objective, w, b):
    """Return value, gradient (d,) and slope in b of a single problem."""
    at = objective(w[None], np.array([b]))
    return at.value[0], at.coef[0], at.intercept[0]


def multiply(objective, w, b, v, v0):
    product_w, product_b = objective.hessian_vector(w[None], np.array([b]), v[None], np.array([v0]))
    return product_w[0], product_b[0]


def assert_equal_to(actual, expected, relative=RELATIVE):
    """Compare to within a fraction of the largest number, of sums that may be 0 of their terms."""
    for a, e in zip(actual, expected, strict=True):
        scale = np.abs(np.atleast_1d(e)).max()
        rounding = 4 * np.finfo(np.float64).eps  # of sums whose terms have sizes of sum 1
        np.testing.assert_allclose(a, e, rtol=0, atol=max(relative * scale, rounding))


def random_point(d, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=d), 0.3, rng.normal(size=d), -0.7


def random_weights(n, seed=2):
    return np.random.default_rng(seed).uniform(0.2, 2.0, n)


@pytest.mark.parametrize("loss", HINGES)
@pytest.mark.parametrize("weight", [None, 1.0, 0.1, 3e-300, 7e200])
def test_value_at_the_origin_is_exactly_one_whatever_the_number_of_examples(weight, loss):
    for n in [*range(2, 300), 10_007]:
        X = Gaussians(np.ones((n, 2)))
        weights = None if weight is None else np.full(n, weight)
        objective = core_objective(X, np.arange(n) % 2, weights, loss=loss)
        value, _, _ = evaluate(objective, np.zeros(2), 0.0)
        if weight in (None, 1.0):
            assert value == 1.0, n
        assert value == pytest.approx(1.0, rel=1e-15 + 1e-16 * n)  # a sum of rounded weights


# (700, 9) has many blocks and chunks; rows of (30, 150) are longer than the strips that full and
# low-rank covariances are read in; the rest is degenerate.
@in_pairs
@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
@each("n, d", [(700, 9), (30, 150), (2, 5), (40, 1)])
@each("loss", LOSSES)
def test_value_gradient_and_hessian_product_equal_the_reference(
    make_gaussians, kind, dtype, loss, n, d
):
    X, y = make_gaussians(kind, n, d, dtype=dtype)
    w, b, v, v0 = random_point(d)
    for weights in (None, random_weights(n)):
        objective = core_objective(X, y, weights, loss=loss)
        expected = reference.objective_and_gradient(X, y, w, b, LAM, weights, loss)
        assert_equal_to(evaluate(objective, w, b), expected)
        expected = reference.hessian_vector(X, y, w, b, v, v0, LAM, weights, loss)
        assert_equal_to(multiply(objective, w, b, v, v0), expected)


@each("kind", COVARIANCE_KINDS)
def test_gradient_at_zero_coefficients_is_that_of_certain_examples(make_gaussians, kind):
    X, y = make_gaussians(kind)
    value, grad_w, grad_b = evaluate(core_objective(X, y), np.zeros(4), 0.0)
    assert value == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(grad_w, -(y @ X.mean) / len(y), rtol=1e-13)
    assert grad_b == pytest.approx(-y.mean(), rel=1e-13)


@each("kind", COVARIANCE_KINDS)
def test_gradient_equals_central_differences_of_the_value(make_gaussians, kind):
    X, y = make_gaussians(kind)
    w, b, *_ = random_point(4)
    objective = core_objective(X, y, random_weights(60))
    _, grad_w, grad_b = evaluate(objective, w, b)
    h = 1e-6  # rounding 1e-16/h, curvature h^2/6; no margin is within h of its kink
    for j in range(4):
        step = h * np.eye(4)[j]
        above, below = evaluate(objective, w + step, b)[0], evaluate(objective, w - step, b)[0]
        assert (above - below) / (2 * h) == pytest.approx(grad_w[j], abs=2e-9)
    above, below = evaluate(objective, w, b + h)[0], evaluate(objective, w, b - h)[0]
    assert (above - below) / (2 * h) == pytest.approx(grad_b, abs=2e-9)


@each("kind", COVARIANCE_KINDS)
def test_hessian_product_equals_central_differences_of_the_gradient(make_gaussians, kind):
    X, y = make_gaussians(kind)
    w, b, v, v0 = random_point(4)
    objective = core_objective(X, y, random_weights(60))
    h = 1e-6
    above, below = (
        evaluate(objective, w + h * v, b + h * v0),
        evaluate(objective, w - h * v, b - h * v0),
    )
    product_w, product_b = multiply(objective, w, b, v, v0)
    np.testing.assert_allclose((above[1] - below[1]) / (2 * h), product_w, atol=5e-9)
    assert (above[2] - below[2]) / (2 * h) == pytest.approx(product_b, abs=5e-9)


def test_value_equals_the_mean_hinge_of_draws_from_the_gaussians(make_gaussians):
    X, y = make_gaussians("full", n=6, d=3)
    w, b, *_ = random_point(3)
    rng = np.random.default_rng(0)
    n_draws = 200_000
    means, variances = [], []
    for mean, matrix, label in zip(X.mean, X.covariances.to_full(), y, strict=True):
        draws = rng.multivariate_normal(mean, matrix, n_draws, method="eigh")
        hinge = np.maximum(0, 1 - label * (draws @ w + b))
        means.append(hinge.mean())
        variances.append(hinge.var() / n_draws)
    expected = 0.5 * LAM * w @ w + np.mean(means)
    standard_error = np.sqrt(np.sum(variances)) / len(y)
    assert abs(evaluate(core_objective(X, y), w, b)[0] - expected) <= 5 * standard_error


def test_three_dimensional_example_has_its_golden_values():
    # A second, certain example far on its right side gives the other class weight 1/2 and no loss.
    covariance = np.array([[2, 0.5, 0], [0.5, 1, -0.2], [0, -0.2, 0.8]])
    w, b, x = np.array([1.0, -2.0, 0.5]), 0.25, np.array([0.3, 0.1, -0.4])
    X = Gaussians([x, [1e6, 0, 0]], cov=Covariances.full([covariance, np.zeros((3, 3))]))
    objective = core_objective(X, [-1, 1], lam=1e-300)
    value, grad_w, grad_b = evaluate(objective, w, b)
    assert 2 * value == pytest.approx(1.5507692989018125, rel=1e-13)
    assert 2 * grad_b == pytest.approx(0.70408646946727405, rel=1e-13)
    expected = [0.37232808410419249, -0.187354782275689, -0.15275287317570144]
    np.testing.assert_allclose(2 * grad_w, expected, rtol=1e-13)
    product_w, product_b = multiply(objective, w, b, np.ones(3), 1.0)
    expected = [0.40340326895358747, 0.29716340991198414, -0.00077048851126267082]
    np.testing.assert_allclose(2 * product_w, expected, rtol=1e-13, atol=1e-16)
    assert 2 * product_b == pytest.approx(0.15304703610080975, rel=1e-13)
    std = _core.decision_std(X.covariances.core_view(), w[None])
    assert std[0, 0] ** 2 == pytest.approx(4.6, rel=1e-15)


def equivalent_pairs():
    rng = np.random.default_rng(3)
    n, d = 60, 4
    variances, t = rng.uniform(0.1, 1, (n, d)), rng.uniform(0.1, 1, n)
    factors = rng.normal(size=(n, d, 2))
    eye = np.eye(d)
    full_diagonal = Covariances.full(variances[:, :, None] * eye)
    full_factors = Covariances.full(factors @ factors.transpose(0, 2, 1))
    both = Covariances.full(factors @ factors.transpose(0, 2, 1) + variances[:, :, None] * eye)
    diagonal = Covariances.diagonal(variances)
    return {
        "diagonal_full": (diagonal, full_diagonal),
        "diagonal_low_rank": (diagonal, Covariances.low_rank(np.sqrt(variances)[:, :, None] * eye)),
        "diagonal_std": (diagonal, Covariances.from_std(np.sqrt(variances))),
        "diagonal_rank_zero": (diagonal, Covariances.low_rank(np.empty((n, d, 0)), variances)),
        "isotropic_full": (Covariances.isotropic(t, d), Covariances.full(t[:, None, None] * eye)),
        "isotropic_diagonal": (
            Covariances.isotropic(t, d),
            Covariances.diagonal(np.repeat(t[:, None], d, axis=1)),
        ),
        "low_rank_full": (Covariances.low_rank(factors), full_factors),
        "low_rank_ragged": (
            Covariances.low_rank(factors),
            Covariances.low_rank([np.pad(f, ((0, 0), (0, i % 3))) for i, f in enumerate(factors)]),
        ),
        "low_rank_diagonal_full": (Covariances.low_rank(factors, variances), both),
        "zero_full": (Covariances.zero(n, d), Covariances.full(np.zeros((n, d, d)))),
    }


@pytest.mark.parametrize("pair", equivalent_pairs().values(), ids=equivalent_pairs())
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equal_matrices_stored_in_different_ways_give_equal_results(
    make_gaussians, pair, fit_intercept
):
    gaussians, y = make_gaussians("zero")
    w, b, v, v0 = random_point(4)
    one, other = (
        core_objective(Gaussians(gaussians.mean, cov=cov), y, fit_intercept=fit_intercept)
        for cov in pair
    )
    assert_equal_to(evaluate(one, w, b), evaluate(other, w, b))
    assert_equal_to(multiply(one, w, b, v, v0), multiply(other, w, b, v, v0))


def test_expected_hinge_of_certain_examples_equals_the_hinge(make_gaussians):
    X, y = make_gaussians("zero")
    w, b, v, v0 = random_point(4)
    certain, hinge = core_objective(X, y), core_objective(X, y, loss="hinge")
    assert_equal_to(evaluate(certain, w, b), evaluate(hinge, w, b))
    assert_equal_to(multiply(certain, w, b, v, v0), multiply(hinge, w, b, v, v0))


@each("kind", COVARIANCE_KINDS)
def test_hinge_ignores_covariances(make_gaussians, kind):
    X, y = make_gaussians(kind)
    w, b, *_ = random_point(4)
    certain = core_objective(Gaussians(X.mean), y, loss="hinge")
    np.testing.assert_array_equal(
        np.hstack(evaluate(core_objective(X, y, loss="hinge"), w, b)),
        np.hstack(evaluate(certain, w, b)),
    )


@each("kind", COVARIANCE_KINDS)
def test_float32_storage_gives_the_results_of_the_same_numbers_in_float64(make_gaussians, kind):
    single, y = make_gaussians(kind, dtype=np.float32)
    cov = single.covariances
    double = {
        "zero": lambda: cov,
        "isotropic": lambda: Covariances.isotropic(cov.values.astype(float), 4),
        "isotropic_std": lambda: Covariances.from_std(cov.values.astype(float), 4),
        "diagonal_std": lambda: Covariances.from_std(cov.values.astype(float)),
    }.get(kind, lambda: Covariances.full(cov.to_full()))()
    w, b, v, v0 = random_point(4)
    one = core_objective(single, y)
    other = core_objective(Gaussians(single.mean.astype(float), cov=double), y)
    assert_equal_to(evaluate(one, w, b), evaluate(other, w, b))
    assert_equal_to(multiply(one, w, b, v, v0), multiply(other, w, b, v, v0))


@each("kind", COVARIANCE_KINDS)
def test_integer_weights_equal_duplicated_examples(make_gaussians, kind):
    X, y = make_gaussians(kind)
    counts = np.random.default_rng(4).integers(0, 4, len(y))
    w, b, v, v0 = random_point(4)
    weighted = core_objective(X, y, counts.astype(float))
    rows = np.repeat(np.arange(len(y)), counts)
    repeated = core_objective(X[rows], y[rows])
    assert_equal_to(evaluate(weighted, w, b), evaluate(repeated, w, b))
    assert_equal_to(multiply(weighted, w, b, v, v0), multiply(repeated, w, b, v, v0))
    np.testing.assert_allclose(
        weighted.exact_intercept(w[None]), repeated.exact_intercept(w[None]), rtol=1e-9
    )


def test_scale_of_the_weights_does_not_matter(make_gaussians):
    X, y = make_gaussians()
    w, b, *_ = random_point(4)
    weights = random_weights(60)
    for factor in (2.0**-900, 2.0**900):
        scaled = core_objective(X, y, factor * weights)
        assert_equal_to(evaluate(scaled, w, b), evaluate(core_objective(X, y, weights), w, b), 0)


@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_several_problems_equal_single_ones_of_each_class_against_the_rest(
    make_gaussians, kind, dtype
):
    X, _ = make_gaussians(kind, dtype=dtype)
    codes = np.random.default_rng(5).integers(0, 3, len(X))
    rng = np.random.default_rng(6)
    W, V, b, v0 = (
        rng.normal(size=(3, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=3),
        rng.normal(size=3),
    )
    weights = random_weights(60)
    together = core_objective(X, codes, weights, n_problems=3)
    at = together(W, b)
    product_W, product_b = together.hessian_vector(W, b, V, v0)
    intercepts = together.exact_intercept(W)
    bounds = together.lower_bound(W, intercepts)
    for k in range(3):
        y = np.where(codes == k, 1, -1)
        expected = reference.objective_and_gradient(X, y, W[k], b[k], LAM, weights)
        assert_equal_to((at.value[k], at.coef[k], at.intercept[k]), expected)
        expected = reference.hessian_vector(X, y, W[k], b[k], V[k], v0[k], LAM, weights)
        assert_equal_to((product_W[k], product_b[k]), expected)
        alone = core_objective(X, y, weights)
        assert intercepts[k] == pytest.approx(alone.exact_intercept(W[k : k + 1])[0], rel=1e-9)
        expected = alone.lower_bound(W[k : k + 1], intercepts[k : k + 1])[0]
        assert bounds[k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@each("kind", COVARIANCE_KINDS)
@each("n_problems", [1, 4])
def test_every_number_of_threads_gives_the_same_bits(make_gaussians, kind, n_problems):
    X, y = make_gaussians(kind, n=1500, d=6)
    codes = y if n_problems == 1 else np.arange(len(y)) % n_problems
    rng = np.random.default_rng(7)
    W, b = rng.normal(size=(n_problems, 6)), rng.normal(size=n_problems)
    results = []
    for n_threads in (1, 2, 3, 8):
        objective = core_objective(X, codes, n_problems=n_problems, n_threads=n_threads)
        intercept = objective.exact_intercept(W)
        at = objective(W, b)
        results.append(
            [
                at.value,
                at.coef,
                at.intercept,
                *objective.hessian_vector(W, b, W[::-1].copy(), b),
                intercept,
                objective.lower_bound(W, intercept),
            ]
        )
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_without_intercept_nothing_pulls_at_the_intercept(make_gaussians):
    X, y = make_gaussians()
    w, _, v, v0 = random_point(4)
    objective = core_objective(X, y, fit_intercept=False)
    value, grad_w, grad_b = evaluate(objective, w, 0.0)
    expected = reference.objective_and_gradient(X, y, w, 0.0, LAM)
    assert_equal_to((value, grad_w), expected[:2])
    assert grad_b == 0.0
    product = multiply(objective, w, 0.0, v, v0)
    assert_equal_to(product, (reference.hessian_vector(X, y, w, 0.0, v, 0.0, LAM)[0], 0.0))
    assert objective.exact_intercept(w[None])[0] == 0.0


# ---- exact intercept -----------------------------------------------------------------------------


@each("kind", COVARIANCE_KINDS)
@each("seed", range(5))
def test_exact_intercept_minimises_the_objective(make_gaussians, kind, seed):
    X, y = make_gaussians(kind, seed=seed)
    w, *_ = random_point(4, seed)
    weights = random_weights(60, seed)
    b = core_objective(X, y, weights).exact_intercept(w[None])[0]

    def value(intercept):
        return reference.objective_and_gradient(X, y, w, intercept, LAM, weights)[0]

    best = optimize.minimize_scalar(value, bracket=(b - 1, b + 1), options={"xtol": 1e-9})
    assert value(b) <= best.fun + 1e-14
    expected = reference.exact_intercept(X, y, w, weights)
    assert b == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_exact_intercept_of_certain_examples_is_the_middle_of_all_minimisers(make_gaussians):
    rng = np.random.default_rng(8)
    for n in (2, 3, 10, 11, 60):
        X, _ = make_gaussians("zero", n=n)
        y = np.where(rng.permutation(n) < max(1, n // 2), -1, 1)
        weights = rng.integers(1, 3, n).astype(float)
        w = rng.normal(size=4)
        b = core_objective(X, y, weights).exact_intercept(w[None])[0]
        # J is piecewise linear in b with its kinks at t, so that kinks find the set of minimisers.
        t = np.sort(y - X.mean @ w)
        values = np.array([np.mean(weights * np.maximum(0, 1 - y * (X.mean @ w + c))) for c in t])
        minimisers = t[values <= values.min() + 1e-12]
        assert b == pytest.approx((minimisers.min() + minimisers.max()) / 2, rel=1e-12, abs=1e-12)


def test_exact_intercept_survives_spreads_of_very_different_sizes(make_gaussians):
    rng = np.random.default_rng(9)
    for seed in range(20):
        gaussians, y = make_gaussians("zero", n=30, seed=seed)
        std = 10.0 ** rng.uniform(-8, 2, (30, 4)) * (rng.random((30, 1)) < 0.7)
        X = Gaussians(gaussians.mean, std=std)
        w = rng.normal(size=4)
        b = core_objective(X, y).exact_intercept(w[None])[0]
        values = [
            reference.objective_and_gradient(X, y, w, c, LAM)[0]
            for c in np.r_[b, b + np.outer([1, -1], 10.0 ** np.arange(-7, 3)).ravel()]
        ]
        assert values[0] <= min(values) * (1 + 1e-14)


# ---- lower bound ---------------------------------------------------------------------------------


def optimum(X, y, lam=LAM, weights=None, loss="expected_hinge"):
    """Return a minimiser and the minimum by L-BFGS-B on the reference."""

    def function(point):
        value, grad_w, grad_b = reference.objective_and_gradient(
            X, y, point[:-1], point[-1], lam, weights, loss
        )
        return value, np.r_[grad_w, grad_b]

    start = np.zeros(X.shape[1] + 1)
    options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-12}
    best = optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    return best.x[:-1], best.fun


@each("kind", COVARIANCE_KINDS)
def test_lower_bound_is_never_above_the_optimum(make_gaussians, kind):
    X, y = make_gaussians(kind)
    weights = random_weights(60)
    assert_bounded_by_the_optimum(X, y, weights, "expected_hinge")


def test_lower_bound_of_the_hinge_is_never_above_the_optimum(make_gaussians):
    X, y = make_gaussians("diagonal")
    assert_bounded_by_the_optimum(X, y, None, "hinge")


def assert_bounded_by_the_optimum(X, y, weights, loss):
    w_best, best = optimum(X, y, weights=weights, loss=loss)
    objective = core_objective(X, y, weights, loss=loss)
    rng = np.random.default_rng(10)
    for distance in (0, 1e-8, 1e-4, 1e-2, 1, 100):
        W = (w_best + distance * rng.normal(size=4))[None]
        assert objective.lower_bound(W, objective.exact_intercept(W))[0] <= best * (1 + 1e-12)


@each("kind", COVARIANCE_KINDS)
def test_lower_bound_is_tight_at_the_optimum(make_gaussians, kind):
    X, y = make_gaussians(kind)
    w, best = optimum(X, y)
    objective = core_objective(X, y)
    bound = objective.lower_bound(w[None], objective.exact_intercept(w[None]))[0]
    # A smooth objective costs |gradient|^2 / (2 lam), where SciPy leaves a gradient of about 1e-7.
    # At the kinks of certain examples no single subgradient is small.
    assert bound >= best * (0.9 if kind in {"zero", "half_certain", "ragged"} else 1 - 1e-8)


def test_lower_bound_holds_without_intercept(make_gaussians):
    X, y = make_gaussians()
    objective = core_objective(X, y, fit_intercept=False)

    def function(w):
        return reference.objective_and_gradient(X, y, w, 0.0, LAM)[:2]

    best = optimize.minimize(function, np.zeros(4), jac=True, options={"gtol": 1e-10})
    for w in (best.x, best.x + 0.1, np.zeros(4)):
        assert objective.lower_bound(w[None], np.zeros(1))[0] <= best.fun * (1 + 1e-14)
    assert objective.lower_bound(best.x[None], np.zeros(1))[0] >= best.fun * (1 - 1e-12)


def test_identity_of_the_regulariser_holds_at_the_optimum(make_gaussians):
    X, y = make_gaussians("full")
    w, best = optimum(X, y)
    b = core_objective(X, y).exact_intercept(w[None])[0]
    m = 1 - y * (X.mean @ w + b)
    s = np.sqrt(np.einsum("i,nij,j->n", w, X.covariances.to_full(), w))
    value, slope_m, _ = _core.evaluate_loss("expected_hinge", m, s)
    assert LAM * w @ w == pytest.approx(np.mean(slope_m - value), abs=1e-7)
    assert best == pytest.approx(0.5 * LAM * w @ w + np.mean(value), rel=1e-9)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lam": 0.0}, "regularisation is 0; it must be positive and finite"),
        ({"lam": np.nan}, "regularisation is nan"),
        ({"loss": "logistic"}, "loss is 'logistic'; it must be one of"),
        ({"weights": np.r_[-1.0, np.ones(59)]}, "sample_weight row 0 is -1"),
        ({"weights": np.r_[np.ones(59), np.nan]}, "sample_weight row 59 is nan"),
        ({"weights": np.ones(59)}, "sample_weight has 59 rows, X has 60"),
        ({"weights": np.zeros(60)}, "positive total weight in every class"),
        ({"y": np.ones(60)}, "class code 0 has 0"),
        ({"y": np.ones(59)}, "labels has 59 rows, X has 60"),
        ({"y": np.full(60, 3), "n_problems": 3}, "labels row 0 is 3; codes go from 0 to 2"),
    ],
)
def test_bad_arguments_are_errors_that_name_them(make_gaussians, changes, message):
    X, y = make_gaussians()
    with pytest.raises(ValueError, match=message):
        core_objective(X, **{"y": y, **changes})


def test_coefficients_of_the_wrong_shape_are_errors(make_gaussians):
    X, y = make_gaussians()
    objective = core_objective(X, y)
    good, one = np.zeros((1, 4)), np.zeros(1)
    for W, b in ((np.zeros((2, 4)), one), (np.zeros((1, 3)), one), (good, np.zeros(2))):
        with pytest.raises(ValueError, match=r"(coef|intercept) has \d (problems|features)"):
            objective(W, b)
        with pytest.raises(ValueError, match="has"):
            objective.hessian_vector(good, one, W, b)
        with pytest.raises(ValueError, match="has"):
            objective.lower_bound(W, b)


def test_only_aligned_contiguous_native_floats_enter_the_core():
    good = np.ones((4, 4))
    shifted = np.frombuffer(b"\0" + good.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 4)
    zero = _core.Covariances.zero(4, 4)
    assert _core.Gaussians(good, zero).n_samples == 4
    for array in (np.asfortranarray(np.eye(4, 4) + good.cumsum(0)), good[:, ::-1], shifted):
        with pytest.raises(TypeError, match="C-contiguous array of float32 or float64"):
            _core.Gaussians(array, zero)
    for dtype in (int, ">f8", np.float16, np.longdouble, complex):
        with pytest.raises(TypeError, match="C-contiguous array of float32 or float64"):
            _core.Gaussians(good.astype(dtype), zero)


def test_objective_keeps_the_arrays_it_looks_into_alive():
    def temporary():
        # Arrays of this size are unmapped when they die, so that reading them would crash.
        X = Gaussians(np.ones((100_000, 8)), std=np.ones((100_000, 8)))
        weights = np.ones(100_000)
        return core_objective(X, np.arange(100_000) % 2, weights)

    value, *_ = evaluate(temporary(), np.ones(8), 0.0)
    m, s = np.array([1.0 - 8.0, 1.0 + 8.0]), np.full(2, np.sqrt(8.0))
    expected = 0.5 * LAM * 8 + _core.evaluate_loss("expected_hinge", m, s)[0].mean()
    assert value == pytest.approx(expected, rel=1e-12)
