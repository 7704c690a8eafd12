"""The NumPy robust machine against explicit roots, random perturbations, differences and cvxpy."""

import numpy as np
import pytest
from cases import KINDS, each
from scipy import optimize

from halosvm import Covariances, Gaussians, reference
from halosvm.reference import best_case, norm_spread, robust_lower_bound, worst_case

LAM = 0.05
FACTORED = ["zero", "isotropic_std", "diagonal", "low_rank", "low_rank_diagonal", "ragged_diagonal"]
NORMS = [1, 1.5, 2, 3, np.inf]


def conjugate(p):
    return np.inf if p == 1 else 1.0 if p == np.inf else p / (p - 1)


def roots(covariances):
    """Return the R of S = R R' that the kind has: its factor beside the diagonal, or std alone."""
    d = covariances.shape[1]
    found = []
    for i in range(len(covariances)):
        one = covariances[i : i + 1]
        if one.kind != "low_rank":
            found.append(np.diag(np.sqrt(one.variances()[0])))
            continue
        factor = np.reshape(one.values, (d, -1))
        added = np.zeros((1, d)) if one.diagonal_values is None else one.diagonal_values
        found.append(np.hstack([factor, np.diag(np.sqrt(added[0]))]))
    return found


@pytest.fixture(params=NORMS, ids=[f"p={p}" for p in NORMS])
def norm(request):
    return request.param


# -- losses ----------------------------------------------------------------------------------------


def test_losses_are_the_hinge_of_the_worst_and_of_the_best_score_within_the_radius():
    rng = np.random.default_rng(0)
    m, s, radius = rng.normal(size=500), rng.exponential(size=500), rng.exponential(size=500)
    scores = m + np.linspace(-1, 1, 41)[:, None] * radius * s
    hinges = np.maximum(scores, 0.0)
    np.testing.assert_allclose(worst_case(m, s, radius)[0], hinges.max(axis=0), rtol=1e-13)
    np.testing.assert_allclose(best_case(m, s, radius)[0], hinges.min(axis=0), rtol=1e-13)


@pytest.mark.parametrize("loss", [worst_case, best_case])
def test_slopes_of_the_losses_equal_central_differences(loss):
    rng = np.random.default_rng(1)
    m, s = rng.normal(size=500), rng.uniform(0.1, 2.0, 500)
    apart = np.abs(m + 1.3 * s * (1 if loss is worst_case else -1)) > 1e-3
    m, s, h = m[apart], s[apart], 1e-5
    _, slope_m, slope_s2 = loss(m, s, 1.3)
    by_m = (loss(m + h, s, 1.3)[0] - loss(m - h, s, 1.3)[0]) / (2 * h)
    by_s = (loss(m, s + h, 1.3)[0] - loss(m, s - h, 1.3)[0]) / (2 * h)
    np.testing.assert_allclose(slope_m, by_m, atol=1e-9)
    np.testing.assert_allclose(slope_s2 * s, by_s, atol=1e-9)


@pytest.mark.parametrize("loss", [worst_case, best_case])
def test_losses_of_radius_or_spread_zero_are_the_hinge(loss):
    m, s = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 0.5, 0.0])
    for found in (loss(m, s, 0.0), loss(m, np.zeros(3), 3.0)):
        np.testing.assert_array_equal(found, reference.hinge(m, s))


def test_losses_are_ordered_from_the_best_case_to_the_worst():
    rng = np.random.default_rng(2)
    s = 10 ** rng.uniform(-3, 3, 10000)
    m = rng.normal(size=10000) * 10 ** rng.uniform(-3, 3, 10000)
    best, hinge, worst = best_case(m, s)[0], reference.hinge(m, s)[0], worst_case(m, s)[0]
    expected, largest = reference.expected_hinge(m, s)[0], s / np.sqrt(2 * np.pi)
    assert (best <= hinge).all()
    assert (hinge <= expected).all()
    assert (expected - hinge <= largest + 1e-15 * np.abs(m)).all()
    assert (hinge <= worst).all()
    assert (worst <= hinge + s).all()


# -- spreads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FACTORED)
def test_spread_is_the_conjugate_norm_of_the_root_times_w(kind, norm, make_covariances):
    rng = np.random.default_rng(3)
    cov, w = make_covariances(kind, 12, 4, rng), rng.normal(size=4)
    expected = [np.linalg.norm(R.T @ w, ord=conjugate(norm)) for R in roots(cov)]
    np.testing.assert_allclose(norm_spread(cov, w, norm)[0], expected, rtol=1e-13)


@each("kind", KINDS)
def test_spread_in_the_euclidean_norm_is_the_standard_deviation(kind, make_covariances):
    rng = np.random.default_rng(4)
    cov, w = make_covariances(kind, 12, 4, rng), rng.normal(size=4)
    s, slope = norm_spread(cov, w)
    np.testing.assert_allclose(s**2, reference.spread_squared(cov, w), rtol=1e-12)
    product = reference.covariance_product(cov, w)
    np.testing.assert_allclose(slope * s[:, None], product, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", FACTORED[1:])
def test_slope_of_the_spread_equals_central_differences(kind, norm, make_covariances):
    rng = np.random.default_rng(5)
    cov, w, h = make_covariances(kind, 12, 4, rng), rng.normal(size=4), 1e-6
    _, slope = norm_spread(cov, w, norm)
    for k, e in enumerate(h * np.eye(4)):
        differences = norm_spread(cov, w + e, norm)[0] - norm_spread(cov, w - e, norm)[0]
        np.testing.assert_allclose(slope[:, k], differences / (2 * h), atol=1e-7)


def test_spread_of_huge_and_tiny_numbers_neither_overflows_nor_vanishes(norm):
    for size in (1e-140, 1e70):
        s, slope = norm_spread(Covariances.from_std(np.array([[size, size]])), np.ones(2), norm)
        np.testing.assert_allclose(s, size * np.linalg.norm([1, 1], ord=conjugate(norm)))
        assert np.isfinite(slope).all()


def test_spread_of_w_zero_has_the_slope_zero(norm):
    s, slope = norm_spread(Covariances.from_std(np.ones((3, 2))), np.zeros(2), norm)
    assert not s.any()
    assert not slope.any()


def test_full_covariances_are_refused_where_their_root_matters(norm):
    cov = Covariances.full(np.eye(2)[np.newaxis])
    if norm == 2:
        assert norm_spread(cov, np.array([3.0, 4.0]), norm)[0] == 5.0
        return
    with pytest.raises(ValueError, match=f"norm is {norm:g}.*covariances are full.*low_rank"):
        norm_spread(cov, np.ones(2), norm)


# -- perturbations and the objective ---------------------------------------------------------------


@pytest.mark.parametrize("kind", FACTORED)
def test_the_worst_perturbation_attains_the_loss_and_no_other_exceeds_it(
    kind, norm, make_gaussians
):
    X, y = make_gaussians(kind, n=20, d=3)
    rng = np.random.default_rng(6)
    w, b, radius = rng.normal(size=3), 0.2, rng.uniform(0.1, 2.0, 20)
    s = norm_spread(X.covariances, w, norm)[0]
    loss = worst_case(1 - y * (X.mean @ w + b), s, radius)[0]
    dx = reference.worst_perturbation(X.covariances, y, w, radius, norm)
    hinge = np.maximum(0, 1 - y * ((X.mean + dx) @ w + b))
    np.testing.assert_allclose(hinge, loss, rtol=1e-12, atol=1e-13)
    for i, R in enumerate(roots(X.covariances)):
        u = rng.normal(size=(2000, R.shape[1]))
        u *= radius[i] / np.linalg.norm(u, ord=norm, axis=1)[:, None]
        others = np.maximum(0, 1 - y[i] * ((X.mean[i] + u @ R.T) @ w + b))
        assert others.max() <= loss[i] + 1e-12
        root = np.linalg.pinv(R) @ dx[i]  # of the least |.|_2, which is in the set too if p <= 2
        if norm <= 2 and R.shape[0] == R.shape[1]:
            assert np.linalg.norm(root, ord=norm) <= radius[i] * (1 + 1e-9)


@pytest.mark.parametrize("loss", [worst_case, best_case])
def test_gradient_equals_central_differences(norm, loss, make_gaussians):
    X, y = make_gaussians("low_rank_diagonal", n=40, d=3)
    rng = np.random.default_rng(7)
    c, point, h = rng.uniform(0.5, 2, 40), rng.normal(size=4), 1e-6

    def value(p):
        return reference.robust_objective(X, y, p[:3], p[3], LAM, 0.7, norm, c, loss)

    _, grad_w, grad_b = value(point)
    differences = [(value(point + e)[0] - value(point - e)[0]) / (2 * h) for e in h * np.eye(4)]
    np.testing.assert_allclose(np.append(grad_w, grad_b), differences, atol=1e-8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", FACTORED)
def test_lower_bound_holds_everywhere_and_is_tight_at_the_optimum(kind, norm, make_gaussians):
    cp = pytest.importorskip("cvxpy")
    X, y = make_gaussians(kind, n=40, d=3, scale=0.4, gap=2.0)
    rng = np.random.default_rng(8)
    c, radius = rng.uniform(0.5, 2, 40), rng.uniform(0.0, 1.0, 40)
    w, b, xi = cp.Variable(3), cp.Variable(), cp.Variable(40)
    spread = cp.hstack([cp.pnorm(R.T @ w, conjugate(norm)) for R in roots(X.covariances)])
    margins = 1 - cp.multiply(y, X.mean @ w + b) + cp.multiply(radius, spread) <= xi
    objective = LAM / 2 * cp.sum_squares(w) + (c / c.sum()) @ xi
    problem = cp.Problem(cp.Minimize(objective), [margins, xi >= 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)

    def bound(w, b, theta=None):
        return robust_lower_bound(X, y, w, b, LAM, radius, norm, c, theta)

    optimum = problem.value
    found = reference.robust_objective(X, y, w.value, b.value, LAM, radius, norm, c)[0]
    np.testing.assert_allclose(found, optimum, rtol=1e-7)
    theta = np.clip(margins.dual_value * c.sum() / c, 0, 1)
    # the slope of the spread is unique but where entries of R'w tie (p = 1) or vanish (p = inf)
    assert np.abs(w.value).min() > 1e-3
    diagonal = kind in ("isotropic_std", "diagonal")
    if 1 < norm < np.inf or kind == "zero" or (norm == np.inf and diagonal):
        np.testing.assert_allclose(bound(w.value, b.value, theta), optimum, rtol=1e-6)
    for size in (0.0, 0.01, 0.3, 3.0):
        off = w.value + size * rng.normal(size=3), b.value + size * rng.normal()
        assert bound(*off) <= optimum * (1 + 1e-9)
        assert bound(*off, rng.uniform(size=40)) <= optimum * (1 + 1e-9)


def test_lower_bound_equals_the_suboptimality_bound_of_the_hinge_without_spread(make_gaussians):
    X, y = make_gaussians("zero", n=40, d=3)
    rng = np.random.default_rng(9)
    for _ in range(50):
        w, b = rng.normal(size=3), rng.normal()
        value, gap = reference.suboptimality_bound(X, y, w, b, LAM, loss="hinge")
        found = robust_lower_bound(X, y, w, b, LAM)
        np.testing.assert_allclose(found, value - gap, rtol=1e-11, atol=1e-12)


def test_box_errors_are_the_corners_of_the_box():
    rng = np.random.default_rng(10)
    mean, half = rng.normal(size=(15, 3)), rng.uniform(0, 1, (15, 3))
    y, w = np.where(rng.random(15) < 0.5, -1, 1), rng.normal(size=3)
    X = Gaussians(mean, std=half)
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    at_corners = np.maximum(0, 1 - y * ((mean + corners[:, None] * half) @ w)).mean(axis=1)
    s = norm_spread(X.covariances, w, np.inf)[0]
    each = np.maximum(0, 1 - y * ((mean + corners[:, None] * half) @ w)).max(axis=0)
    np.testing.assert_allclose(worst_case(1 - y * (mean @ w), s)[0], each, rtol=1e-13)
    value = reference.robust_objective(X, y, w, 0.0, 0.0, 1.0, np.inf)[0]
    np.testing.assert_allclose(value, each.mean())
    assert value >= at_corners.max()


def test_a_search_from_the_optimum_of_the_smoothed_problem_finds_nothing_lower(make_gaussians):
    # independent of conic solvers: Nelder-Mead knows only values
    X, y = make_gaussians("diagonal_std", n=30, d=2)

    def value(p):
        return reference.robust_objective(X, y, p[:2], p[2], LAM, 0.5, np.inf)[0]

    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000}
    best = min(
        optimize.minimize(value, start, method="Nelder-Mead", options=options).fun
        for start in np.random.default_rng(11).normal(size=(5, 3))
    )
    smoothed, theta = smooth_optimum(X, y, 0.5)
    bound = robust_lower_bound(X, y, smoothed[:2], smoothed[2], LAM, 0.5, np.inf, theta=theta)
    assert bound <= best <= bound * (1 + 1e-3)


def smooth_optimum(X, y, radius, floor=1e-3):
    """Minimise with the kink of width `floor`; return (w, b) and its multipliers."""

    def both(p):
        s, slope = norm_spread(X.covariances, p[:2], np.inf)
        m = 1 - y * (X.mean @ p[:2] + p[2]) + radius * s
        psi, theta, _ = reference.expected_hinge(m, np.full(len(y), floor))
        by_w = LAM * p[:2] + (theta @ (radius * slope - y[:, None] * X.mean)) / len(y)
        value = LAM / 2 * p[:2] @ p[:2] + psi.mean()
        return value, np.append(by_w, -(theta @ y) / len(y)), theta

    found = optimize.minimize(
        lambda p: both(p)[:2], np.array([0.5, 0.5, 0.0]), jac=True, method="BFGS"
    )
    return found.x, both(found.x)[2]
