"""What every loss must be, and what the machines that use it must find.

Oracles: mpmath, central differences, L-BFGS-B of SciPy on the NumPy reference, LIBLINEAR and
LogisticRegression of scikit-learn for examples without errors.
"""

from functools import partial

import mpmath
import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from label_likelihood import derivatives
from scipy import optimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from halosvm import Gaussians, UncertainSVC, _core, reference

LOSSES = _core.loss_names()
CONVEX = [loss for loss in LOSSES if _core.loss_traits(loss)["convex"]]
HINGES = [loss for loss in LOSSES if loss != "marginal_logistic"]  # alike far out, or sums of them
SMOOTH = ["expected_squared_hinge", "expected_logistic", "expected_huber_hinge"]
LAM = 0.02


def first(loss, m, s):
    return np.array(_core.evaluate_loss(loss, np.asarray(m, float), np.asarray(s, float)))


def second(loss, m, s):
    return np.array(_core.loss_curvature(loss, np.asarray(m, float), np.asarray(s, float)))


def exact(loss, m, s):
    """Return psi in the present precision; of the logistic loss its mixture of hinges."""

    def hinge(m, s):
        z = m / s
        return m * mpmath.ncdf(z) + s * mpmath.npdf(z)

    if loss == "hinge":
        return max(m, mpmath.mpf(0))
    if loss in ("worst_case", "best_case"):
        return max(m + s if loss == "worst_case" else m - s, mpmath.mpf(0))

    def squared_hinge(m, s):
        z = m / s
        return (m * m + s * s) * mpmath.ncdf(z) + m * s * mpmath.npdf(z)

    if loss == "expected_squared_hinge":
        return squared_hinge(m, s)
    if loss == "expected_huber_hinge":
        return (squared_hinge(m, s) - squared_hinge(m - 1, s)) / 2
    if loss == "expected_logistic":
        mixture = zip(reference.LOGISTIC_SHARES, reference.LOGISTIC_VARIANCES, strict=True)
        return sum(a * hinge(m, mpmath.sqrt(s * s + v)) for a, v in mixture)
    assert loss == "expected_hinge", "a loss needs its formula here"
    return hinge(m, s)


def differentiated(psi, m, s):
    """Return psi, psi_m, psi_s / s and the second derivatives of a function of mpmath."""
    with mpmath.workdps(200):  # of which differences lose most
        point = mpmath.mpf(m), mpmath.mpf(s)
        slope_m, slope_s = mpmath.diff(psi, point, (1, 0)), mpmath.diff(psi, point, (0, 1))
        bends = [mpmath.diff(psi, point, order) for order in ((2, 0), (1, 1), (0, 2))]
        return psi(*point), slope_m, slope_s / point[1], *bends


def points(seed, n, largest=37.0):
    rng = np.random.default_rng(seed)
    s = 10 ** rng.uniform(-3, 3, n)
    return rng.uniform(-largest, largest, n) * s, s


# ---- the functions -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_value_and_derivatives_equal_mpmath(loss):
    # The rounding of z = m/s changes densities by z^2 times a unit in the last place.
    for m, s in zip(*points(0, 6, largest=20.0), strict=True):
        z2 = (m / s) ** 2
        if loss == "marginal_logistic":  # an integral
            expected = [float(v) for v in derivatives(m, s)]
        else:
            expected = [float(v) for v in differentiated(partial(exact, loss), m, s)]
        found = np.r_[first(loss, m, s), second(loss, m, s)]
        # second derivatives in s are sums of terms that may cancel
        size = np.abs(expected) + np.r_[0, 0, 0, 1, 1, 1] * abs(expected[3]) * (1 + z2)
        assert (np.abs(found - expected) <= (1e-13 + 5e-16 * z2) * size + 1e-290).all(), (m, s)


@pytest.mark.parametrize("loss", HINGES)
def test_loss_is_convex_and_makes_a_convex_objective_if_it_grows_with_the_spread(loss):
    m, s = points(1, 2000)
    value, _, slope_s2 = first(loss, m, s)
    mm, ms, ss = second(loss, m, s)
    assert (value >= 0).all()
    assert (slope_s2 >= 0).all() == (loss in CONVEX)
    assert (mm >= 0).all()
    assert (ss >= -1e-13 * mm * (1 + (m / s) ** 2)).all()
    assert (mm * ss - ms * ms >= -1e-12 * (mm * np.abs(ss) + ms * ms)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_of_vanishing_spread_is_that_of_certain_points(loss):
    m = np.linspace(-3, 3, 25)  # 0 is among them
    certain = first(loss, m, np.zeros(25))
    assert np.isfinite(certain).all()
    assert np.isfinite(second(loss, m, np.zeros(25))).all()
    for s in 10.0 ** -np.arange(3, 12):
        near = first(loss, m, np.full(25, s))
        growth = near[0] - certain[0]
        growth = {"best_case": -growth, "marginal_logistic": np.abs(growth)}.get(loss, growth)
        assert (growth >= -4e-16 * certain[0]).all()
        assert (growth <= s + 4e-16 * certain[0]).all()
        smooth = m != 0 if "_case" in loss else slice(None)  # their kinks are at |m| = s
        np.testing.assert_allclose(near[1][smooth], certain[1][smooth], atol=s)


@pytest.mark.parametrize("loss", HINGES)
def test_loss_far_from_the_boundary_has_its_limits(loss):
    for s in (1e-3, 1.0, 1e3):
        m = 40.0 * max(s, 3.0)
        assert (first(loss, [-m, -10 * m], [s, s])[0] == 0).all()
        value, slope_m, _ = first(loss, m, s)
        square = loss == "expected_squared_hinge"
        spread = {"expected_squared_hinge": s * s, "best_case": -s, "worst_case": s}.get(loss, 0.0)
        offset = 0.5 if loss == "expected_huber_hinge" else 0.0
        assert value == pytest.approx((m * m if square else m) + spread - offset, rel=1e-13)
        assert slope_m == pytest.approx(2 * m if square else 1.0, rel=1e-13)


def test_best_case_hinge_and_expected_hinge_stand_in_this_order():
    m, s = points(3, 2000)
    best, plain, expected = (
        first(loss, m, s)[0] for loss in ("best_case", "hinge", "expected_hinge")
    )
    assert (best <= plain).all()
    assert (plain <= expected).all()
    assert (expected <= plain + s / np.sqrt(2 * np.pi) * (1 + 1e-15)).all()
    assert (best < plain).any()


def test_squared_hinge_of_both_signs_is_the_second_moment():
    m, s = points(2, 2000)
    both = first("expected_squared_hinge", m, s)[0] + first("expected_squared_hinge", -m, s)[0]
    np.testing.assert_allclose(both, m * m + s * s, rtol=1e-15)


@pytest.mark.parametrize(
    ("m", "s", "value"),
    [
        (0.3, 0.7, 0.46263852043962923),
        (-1.5, 1.0, 0.022847010624951123),
        (2.0, 0.4, 4.1599999969050728),
        (-6.0, 1.0, 4.8445767455118284e-11),
        (-12.0, 1.0, 2.3857971696213261e-35),
        (-30.0, 1.0, 1.0843724873983491e-200),
    ],
)
def test_squared_hinge_has_its_golden_values(m, s, value):
    assert first("expected_squared_hinge", m, s)[0] == pytest.approx(value, rel=1e-13, abs=0)


def test_logistic_loss_is_the_mean_of_the_softplus():
    # the mixture is off by at most 3.8e-5 in value and 1.1e-4 in slope at s = 0, and less above
    u, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / np.sqrt(2 * np.pi)
    for s in (0.0, 0.5, 1.0, 3.0):
        for m in np.linspace(-12, 12, 49):
            x = m + s * u
            value, slope_m, _ = first("expected_logistic", m, s)
            assert value == pytest.approx(weights @ np.logaddexp(0, x), abs=4e-5)
            assert slope_m == pytest.approx(weights @ (0.5 + 0.5 * np.tanh(x / 2)), abs=1.2e-4)


# ---- the machines --------------------------------------------------------------------------------


def lowest(X, y, loss, weights=None, lam=LAM, fit_intercept=True):
    """Return the minimum of the NumPy reference, by L-BFGS-B."""

    def function(u):
        b = u[-1] if fit_intercept else 0.0
        value, w, slope = reference.objective_and_gradient(X, y, u[:-1], b, lam, weights, loss)
        return value, np.r_[w, slope * fit_intercept]

    options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-13}
    start = np.zeros(X.shape[1] + 1)
    return optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options).fun


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each("loss", SMOOTH)
@each("lam", [1.0, 0.02, 1e-4])
def test_optimum_of_smooth_losses_is_certified_and_that_of_scipy(
    make_gaussians, solve, kind, dtype, loss, lam
):
    X, y = make_gaussians(kind, n=50, dtype=dtype)
    weights = np.random.default_rng(2).integers(0, 3, 50).astype(float)
    best = lowest(X, y, loss, weights, lam)
    for solver in ("auto", "lbfgs"):
        result = solve(X, y, solver, lam=lam, weights=weights, loss=loss, tolerance=1e-9)
        assert result["converged"], solver
        objective = result["objective"][0]
        assert objective == pytest.approx(best, rel=2e-9), solver
        assert objective / (1 + result["suboptimality"][0]) <= best * (1 + 1e-13), solver
        w, b = result["coef"][0], result["intercept"][0]
        value = reference.objective_and_gradient(X, y, w, b, lam, weights, loss)[0]
        assert objective == pytest.approx(value, rel=1e-12), solver


@each("kind", KINDS)
@each("loss", SMOOTH)
def test_lower_bound_of_smooth_losses_is_true_everywhere_and_tight_at_the_optimum(
    make_gaussians, solve, kind, loss
):
    X, y = make_gaussians(kind)
    result = solve(X, y, "lbfgs", lam=LAM, loss=loss, tolerance=1e-9)
    best = lowest(X, y, loss)
    objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, LAM, loss=loss)
    rng = np.random.default_rng(10)
    for distance in (0, 1e-6, 1e-3, 0.1, 1, 100):
        W = result["coef"] + distance * rng.normal(size=(1, 4))
        assert objective.lower_bound(W, result["intercept"])[0] <= best * (1 + 1e-13)
    assert objective.lower_bound(result["coef"], result["intercept"])[0] >= best * (1 - 1e-8)


@pytest.mark.parametrize("loss", CONVEX)
@pytest.mark.parametrize("positive", [2, 30])
@pytest.mark.parametrize("lam", [LAM, 100.0])
def test_bound_of_a_search_that_was_ended_early_is_true(make_gaussians, loss, positive, lam):
    # The classes are uneven and the starts bad, so that the slope in b is far from 0.
    X, _ = make_gaussians("diagonal")
    y = np.where(np.arange(60) < positive, 1, -1)
    best = lowest(X, y, loss, lam=lam)
    objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, lam, loss=loss)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        start = {"coef": rng.normal(size=(1, 4)) / lam, "intercept": 3.0 * rng.normal(size=1)}
        for passes in range(1, 9):
            options = {"max_iterations": passes, "tolerance": 0.0, **start}
            result = _core.minimize(objective, **options, method="lbfgs")
            assert result["lower_bound"][0] <= best * (1 + 1e-13), (seed, passes)


@each("kind", KINDS)
@each("loss", SMOOTH)
def test_smooth_losses_without_intercept_have_their_optimum(make_gaussians, solve, kind, loss):
    X, y = make_gaussians(kind)
    result = solve(X, y, "auto", lam=LAM, loss=loss, fit_intercept=False, tolerance=1e-9)
    assert result["converged"]
    assert result["intercept"][0] == 0.0
    best = lowest(X, y, loss, fit_intercept=False)
    assert result["objective"][0] == pytest.approx(best, rel=2e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_stochastic_descent_comes_near_the_optimum_of_smooth_losses(make_gaussians, loss):
    X, y = make_gaussians("diagonal", n=200)
    model = UncertainSVC(C=0.05, loss=loss, solver="sgd", max_iter=2000, tol=1e-3).fit(X, y)
    exact_model = UncertainSVC(C=0.05, loss=loss).fit(X, y)
    assert model.objective_ <= exact_model.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("positive", [1, 3, 20])
def test_rare_classes_and_overwhelming_errors_are_certified(loss, positive):
    rng = np.random.default_rng(positive)
    X = Gaussians(rng.normal(size=(60, 4)), std=30.0 * rng.random((60, 4)))
    y = np.where(np.arange(60) < positive, 1, -1)
    for C in (1e-6, 1.0, 1e6):
        model = UncertainSVC(C=C, loss=loss).fit(X, y)
        assert model.suboptimality_ <= 1e-6
        best = lowest(X, y, loss, lam=1 / (60 * C))
        assert model.objective_ == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("loss", SMOOTH)
def test_offsets_do_no_harm_to_smooth_losses(make_gaussians, loss):
    X, y = make_gaussians("diagonal", n=100)
    far = Gaussians(np.round(X.mean * 2**20) / 2**20 + 2.0**20, cov=X.covariances)
    near = Gaussians(far.mean - 2.0**20, cov=X.covariances)
    here, there = (UncertainSVC(loss=loss).fit(G, y) for G in (near, far))
    assert there.suboptimality_ <= 1e-6
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_certain_squared_hinge_is_that_of_liblinear(make_gaussians, C):
    X, y = make_gaussians("zero", n=200)
    model = UncertainSVC(C=C, loss="expected_squared_hinge", tol=1e-10).fit(X, y)
    rival = LinearSVC(C=C, dual=False, tol=1e-12, max_iter=10**6, fit_intercept=False)
    # LIBLINEAR regularises its intercept; a large constant feature makes that small, so only the
    # machine without intercept is the same to all digits.
    flat = UncertainSVC(C=C, loss="expected_squared_hinge", tol=1e-10, fit_intercept=False).fit(
        X, y
    )
    np.testing.assert_allclose(flat.coef_, rival.fit(X.mean, y).coef_, atol=1e-5)
    rival.set_params(fit_intercept=True, intercept_scaling=1e4).fit(X.mean, y)
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, rival.intercept_, atol=1e-5)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_certain_logistic_loss_is_logistic_regression(make_gaussians, C):
    # The slope of the mixture is off by up to 1.1e-4, the gradient by that times |x|, and w by that
    # over the least curvature.
    X, y = make_gaussians("zero", n=200)
    model = UncertainSVC(C=C, loss="expected_logistic", tol=1e-10).fit(X, y)
    rival = LogisticRegression(C=C, tol=1e-10, max_iter=10**4).fit(X.mean, y)
    scale = np.abs(rival.coef_).max()
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=2e-3 * scale)
    agreement = np.mean(model.predict(X.mean) == rival.predict(X.mean))
    assert agreement >= 0.99


@pytest.mark.parametrize("loss", SMOOTH)
def test_results_do_not_depend_on_the_number_of_threads(make_gaussians, loss):
    X, y = make_gaussians("full", n=3000)
    models = [UncertainSVC(loss=loss, n_threads=k).fit(X, y) for k in (1, 2, 4)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.objective_ == models[0].objective_


@pytest.mark.parametrize("loss", SMOOTH)
def test_interior_points_refuse_a_loss_whose_dual_they_do_not_know(make_gaussians, loss):
    X, y = make_gaussians("diagonal")
    with pytest.raises(ValueError, match=f"loss is '{loss}', whose dual interior points"):
        UncertainSVC(loss=loss, solver="interior_point").fit(X, y)
