"""halosvm.reference against mpmath, quadrature, finite differences, Monte Carlo and plain loops."""

from __future__ import annotations

import itertools
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, stats
from sklearn.svm import SVC

from halosvm import Covariances, Gaussians, reference

mpmath.mp.dps = 50

N_SAMPLES, N_FEATURES = 12, 4
LAM = 0.05


def make_covariances(kind, rng, n=N_SAMPLES, d=N_FEATURES):
    ranks = rng.integers(0, d, size=n)
    ranks[:2] = 0, d
    ragged = [rng.normal(size=(d, rank)) for rank in ranks]
    factors = rng.normal(size=(n, d, 2))
    variances = rng.uniform(0.1, 2.0, size=(n, d))
    half = variances * (np.arange(n) % 2)[:, np.newaxis]
    makers = {
        "zero": lambda: Covariances.zero(n, d),
        "isotropic": lambda: Covariances.isotropic(variances[:, 0], d),
        "isotropic_std": lambda: Covariances.from_std(variances[:, 0], d),
        "diagonal": lambda: Covariances.diagonal(variances),
        "diagonal_std": lambda: Covariances.from_std(variances),
        "half_certain": lambda: Covariances.diagonal(half),
        "low_rank": lambda: Covariances.low_rank(factors),
        "low_rank_diagonal": lambda: Covariances.low_rank(factors, variances),
        "ragged": lambda: Covariances.low_rank(ragged),
        "ragged_diagonal": lambda: Covariances.low_rank(ragged, variances),
        "full": lambda: Covariances.full(factors @ factors.transpose(0, 2, 1)),
    }
    return makers[kind]()


KINDS = [
    "zero",
    "isotropic",
    "isotropic_std",
    "diagonal",
    "diagonal_std",
    "half_certain",
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
]
UNCERTAIN_KINDS = [kind for kind in KINDS if kind not in {"zero", "half_certain", "ragged"}]


def make_problem(kind, seed=0, n=N_SAMPLES, d=N_FEATURES):
    """Return overlapping classes with unequal weights, and a point (w, b) off the optimum."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, -1, 1)
    mean = 0.6 * y[:, np.newaxis] + rng.normal(size=(n, d)) + 2.0
    X = Gaussians(mean, cov=make_covariances(kind, rng, n, d))
    return X, y, rng.uniform(0.5, 2.0, size=n), rng.normal(size=d), 0.3


def dense_margin(X, y, w, b):
    """Return m and s from expanded matrices, one sample at a time."""
    m = np.array([1 - label * (w @ x + b) for label, x in zip(y, X.mean, strict=True)])
    s = np.array([np.sqrt(w @ matrix @ w) for matrix in X.covariances.to_full()])
    return m, s


def exact_functions(m, s):
    """Return psi, Phi(z), phi(z)/s and E max(0, m + s Z)^2 in 50 digits."""
    m, s = mpmath.mpf(float(m)), mpmath.mpf(float(s))
    z = m / s
    cdf, pdf = mpmath.erfc(-z / mpmath.sqrt(2)) / 2, mpmath.npdf(z)
    return m * cdf + s * pdf, cdf, pdf / s, (m * m + s * s) * cdf + m * s * pdf


def relative_error(value, exact):
    """Return the relative error, or 0 where both are lost to underflow."""
    if abs(exact) < 1e-290:
        return float(abs(value) >= 1e-290)
    return float(abs((mpmath.mpf(float(value)) - exact) / exact))


def minimise(X, y, lam, weights=None, start=None):
    """Return the value of a long L-BFGS-B run and its (w, b)."""
    d = X.shape[1]

    def value_and_gradient(params):
        value, grad_w, grad_b = reference.objective_and_gradient(
            X, y, params[:d], params[d], lam, weights
        )
        return value, np.append(grad_w, grad_b)

    result = optimize.minimize(
        value_and_gradient,
        np.zeros(d + 1) if start is None else start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30},
    )
    return result.fun, result.x[:d], result.x[d]


# -- the module itself ---------------------------------------------------------------------------


def test_reference_runs_without_the_package_and_its_compiled_core():
    program = (
        "import importlib.util, sys; "
        f"spec = importlib.util.spec_from_file_location('alone', {reference.__file__!r}); "
        "alone = sys.modules['alone'] = importlib.util.module_from_spec(spec); "
        "spec.loader.exec_module(alone); "
        "assert alone.expected_hinge(0.0, 1.0)[1] == 0.5; "
        "sys.exit(any(name.startswith('halosvm') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# -- covariances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_operations_equal_those_of_the_dense_matrices(kind):
    rng = np.random.default_rng(3)
    cov = make_covariances(kind, rng)
    dense = cov.to_full()
    w, v, a = rng.normal(size=N_FEATURES), rng.normal(size=N_FEATURES), rng.normal(size=N_SAMPLES)
    rows = np.array([7, 0, 1, 7])
    exact = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(
        reference.spread_squared(cov, w), [w @ S @ w for S in dense], **exact
    )
    np.testing.assert_allclose(reference.bilinear(cov, w, v), [w @ S @ v for S in dense], **exact)
    np.testing.assert_allclose(reference.covariance_product(cov, w), dense @ w, **exact)
    np.testing.assert_allclose(reference.covariance_product(cov, w, rows), dense[rows] @ w, **exact)
    np.testing.assert_allclose(
        reference.weighted_product(cov, a, w),
        sum(a_i * S @ w for a_i, S in zip(a, dense, strict=True)),
        **exact,
    )
    np.testing.assert_allclose(reference.trace(cov), np.trace(dense, axis1=1, axis2=2), **exact)
    np.testing.assert_allclose(
        reference.spread_squared(cov[3:9], w), [w @ S @ w for S in dense[3:9]], **exact
    )


@pytest.mark.parametrize("kind", ["isotropic", "diagonal_std", "low_rank_diagonal", "full"])
def test_float32_covariances_are_computed_in_float64(kind):
    rng = np.random.default_rng(4)
    wide = make_covariances(kind, rng)
    regular = wide.to_full() + np.eye(N_FEATURES)  # stays positive definite when rounded
    narrow = {
        "isotropic": lambda: Covariances.isotropic(wide.values.astype(np.float32), N_FEATURES),
        "diagonal_std": lambda: Covariances.from_std(wide.values.astype(np.float32)),
        "low_rank_diagonal": lambda: Covariances.low_rank(
            wide.values.astype(np.float32), wide.diagonal_values.astype(np.float32)
        ),
        "full": lambda: Covariances.full(regular.astype(np.float32)),
    }[kind]()
    assert narrow.dtype == np.float32
    dense = narrow.to_full()  # of the rounded numbers, in float64
    w = rng.normal(size=N_FEATURES)
    a = rng.normal(size=N_SAMPLES)
    np.testing.assert_allclose(
        reference.spread_squared(narrow, w), [w @ S @ w for S in dense], rtol=1e-13
    )
    np.testing.assert_allclose(
        reference.weighted_product(narrow, a, w), a @ (dense @ w), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        reference.trace(narrow), np.trace(dense, axis1=1, axis2=2), rtol=1e-14
    )


# -- the normal distribution ---------------------------------------------------------------------


def test_normal_tails_are_accurate_to_the_rounding_of_the_square_of_t():
    t = np.concatenate([np.linspace(0, 37, 371), [2.9999, 3.0, 5.9999, 6.0, 36.999]])
    pdf, upper, tail = reference.normal_tail(t)
    squared = reference.squared_hinge_tail(t)
    for i, exact_t in enumerate(map(mpmath.mpf, t.tolist())):
        exact_upper, exact_pdf = mpmath.erfc(exact_t / mpmath.sqrt(2)) / 2, mpmath.npdf(exact_t)
        rounding = 5e-15 + 6e-17 * t[i] ** 2  # the direct forms below 6 and 3 also cancel a little
        assert relative_error(pdf[i], exact_pdf) < rounding
        assert relative_error(upper[i], exact_upper) < rounding
        exact_tail = exact_pdf - exact_t * exact_upper
        assert relative_error(tail[i], exact_tail) < rounding + (3e-14 if t[i] < 6 else 0)
        exact_squared = (1 + exact_t**2) * exact_upper - exact_t * exact_pdf
        assert relative_error(squared[i], exact_squared) < rounding + (5e-14 if t[i] < 3 else 0)


def test_normal_tails_vanish_far_out():
    for function in (
        *(lambda t, k=k: reference.normal_tail(t)[k] for k in range(3)),
        reference.squared_hinge_tail,
    ):
        assert (function(np.array([40.0, 1e10, np.inf])) == 0.0).all()


# -- losses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1e-150, 1e-20, 1.0, 3.7, 1e20, 1e150])
def test_expected_hinge_equals_mpmath_to_the_rounding_of_z(s):
    z = np.concatenate([np.linspace(-37, 37, 149), [-1e-9, 1e-9, -0.0]])
    m = z * s
    value, slope_m, slope_s = reference.expected_hinge(m, s)
    for i in range(len(m)):
        exact_value, exact_cdf, exact_slope, _ = exact_functions(m[i], s)
        tolerance = 2e-14 + 2.5e-16 * z[i] ** 2  # z = m/s is rounded, and so is z^2
        assert relative_error(slope_m[i], exact_cdf) < tolerance
        assert relative_error(slope_s[i], exact_slope) < tolerance
        assert relative_error(value[i], exact_value) < tolerance
        assert value[i] >= 0


@pytest.mark.parametrize("s", [1e-150, 1.0, 1e150])
def test_curvature_equals_mpmath_to_the_rounding_of_z(s):
    z = np.array([-37.0, -12.3, -1.5, -0.1, 0.0, 0.7, 5.0, 36.0])
    mm, ms, ss = reference.curvature("expected_hinge", z * s, np.full(len(z), s))
    for i in range(len(z)):
        exact = exact_functions(z[i] * s, s)[2]
        exact_z = mpmath.mpf(float(z[i] * s)) / mpmath.mpf(s)
        assert relative_error(mm[i], exact) < 5e-13
        assert relative_error(ms[i], -exact_z * exact) < 5e-13
        assert relative_error(ss[i], exact_z**2 * exact) < 5e-13


@pytest.mark.parametrize(
    ("m", "s", "value", "cdf", "squared"),
    [
        (0.0, 1.0, 0.39894228040143268, 0.5, 0.5),
        (0.3, 0.7, 0.4545204339315511, 0.66588242910237531, 0.46263852043962923),
        (-1.5, 1.0, 0.029306793762604629, 0.066807201268858066, 0.022847010624951123),
        (2.0, 0.4, 2.0000000213846621, 0.99999971334842812, 4.1599999969050728),
        (-6.0, 1.0, 1.5635697959709664e-10, 9.8658764503769814e-10, 4.8445767455118284e-11),
        (-12.0, 1.0, 1.4605201169845548e-34, 1.776482112077679e-33, 2.3857971696213262e-35),
        (-30.0, 1.0, 1.6319567340914012e-199, 4.9067139271481871e-198, 1.0843724873983491e-200),
    ],
)
def test_expected_losses_have_their_golden_values(m, s, value, cdf, squared):
    got_value, got_cdf, _ = reference.expected_hinge(m, s)
    assert got_value == pytest.approx(value, rel=3e-13, abs=0)
    assert got_cdf == pytest.approx(cdf, rel=3e-13, abs=0)
    tail = s * s * reference.squared_hinge_tail(abs(m / s))
    got_squared = m * m + s * s - tail if m > 0 else tail
    assert got_squared == pytest.approx(squared, rel=3e-13, abs=0)


@pytest.mark.parametrize(("m", "s"), [(0.4, 1.3), (-2.0, 0.8), (3.0, 0.5), (-1e-3, 2.0)])
def test_expected_hinge_is_the_integral_of_the_hinge_against_the_normal_density(m, s):
    """E max(0, m + s Z) and its derivatives in m and s, by quadrature from the kink on."""
    limits = (max(-m / s, -12.0), max(-m / s, 0.0) + 12.0)
    points = [0.0] if limits[0] < 0.0 else None

    def integral(function):
        result, _ = integrate.quad(
            lambda u: function(u) * stats.norm.pdf(u), *limits, points=points, epsabs=1e-14
        )
        return result

    value, slope_m, slope_s = reference.expected_hinge(m, s)
    assert value == pytest.approx(integral(lambda u: m + s * u), abs=1e-12)
    assert slope_m == pytest.approx(integral(lambda u: 1.0), abs=1e-12)
    assert s * slope_s == pytest.approx(integral(lambda u: u), abs=1e-12)


def test_expected_hinge_is_the_mean_hinge_over_draws_of_the_example():
    X, y, _, w, b = make_problem("full")
    rng = np.random.default_rng(11)
    psi, _, _ = reference.expected_hinge(*dense_margin(X, y, w, b))
    for i in range(3):
        draws = rng.multivariate_normal(X.mean[i], X.covariances[i], size=20000, method="eigh")
        losses = np.maximum(0.0, 1.0 - y[i] * (draws @ w + b))
        standard_error = losses.std() / np.sqrt(len(losses))
        assert abs(losses.mean() - psi[i]) < 4 * standard_error


@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_losses_obey_the_identities_of_homogeneous_losses(loss):
    rng = np.random.default_rng(5)
    m, s = rng.normal(size=200), rng.uniform(0.01, 3.0, size=200)
    value, slope_m, slope_s = reference.LOSSES[loss](m, s)
    mm, ms, ss = reference.curvature(loss, m, s)
    np.testing.assert_allclose(slope_m * m + slope_s * s * s, value, atol=1e-14)
    np.testing.assert_allclose(value - reference.LOSSES[loss](-m, s)[0], m, atol=1e-14)
    np.testing.assert_allclose(reference.LOSSES[loss](7.0 * m, 7.0 * s)[0], 7.0 * value, rtol=1e-13)
    np.testing.assert_allclose(mm * m + ms * s, 0.0, atol=1e-13)
    np.testing.assert_allclose(ms * m + ss * s, 0.0, atol=1e-13)


def test_expected_hinge_lies_between_the_hinge_and_its_upper_bound():
    rng = np.random.default_rng(6)
    m, s = 5 * rng.normal(size=500), rng.uniform(0.0, 3.0, size=500)
    value, hinge = reference.expected_hinge(m, s)[0], reference.hinge(m, s)[0]
    assert (value >= hinge).all()
    assert (value <= hinge + s / np.sqrt(2 * np.pi) * (1 + 1e-15)).all()


@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
@pytest.mark.parametrize("s", [0.0, 1e-301])
def test_without_spread_losses_are_the_hinge_with_half_a_slope_at_the_kink(loss, s):
    m = np.array([-2.0, -1e-9, 0.0, 1e-9, 3.0, 1e150])
    value, slope_m, slope_s = reference.LOSSES[loss](m, np.full(6, s))
    np.testing.assert_array_equal(value, np.maximum(m, 0.0))
    np.testing.assert_array_equal(slope_m, [0.0, 0.0, 0.5, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(slope_s, np.zeros(6))
    for second in reference.curvature(loss, m, np.full(6, s)):
        np.testing.assert_array_equal(second, np.zeros(6))


def test_a_spread_too_small_for_the_ratio_gives_the_hinge_without_overflow():
    value, slope_m, slope_s = reference.expected_hinge(np.array([1e150, -1e150]), 1e-299)
    np.testing.assert_array_equal(value, [1e150, 0.0])
    np.testing.assert_array_equal(slope_m, [1.0, 0.0])
    np.testing.assert_array_equal(slope_s, [0.0, 0.0])
    for second in reference.curvature("expected_hinge", np.array([1e150, -1e150]), 1e-299):
        np.testing.assert_array_equal(second, [0.0, 0.0])


# -- objective -----------------------------------------------------------------------------------

GOLDEN_X = Gaussians(
    np.array([[0.3, 0.1, -0.4]]),
    cov=Covariances.full(np.array([[[2.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 0.8]]])),
)
GOLDEN_W, GOLDEN_B, GOLDEN_Y = np.array([1.0, -2.0, 0.5]), 0.25, np.array([-1])


def test_objective_and_derivatives_have_their_golden_values():
    lam = 0.3
    assert reference.spread_squared(GOLDEN_X.covariances, GOLDEN_W)[0] == pytest.approx(4.6)
    value, grad_w, grad_b = reference.objective_and_gradient(
        GOLDEN_X, GOLDEN_Y, GOLDEN_W, GOLDEN_B, lam
    )
    norm_squared = GOLDEN_W @ GOLDEN_W
    assert value - lam / 2 * norm_squared == pytest.approx(1.5507692989018125, rel=1e-14)
    assert grad_b == pytest.approx(0.70408646946727405, rel=1e-14)
    expected = [0.37232808410419249, -0.187354782275689, -0.15275287317570144]
    np.testing.assert_allclose(grad_w - lam * GOLDEN_W, expected, rtol=1e-13)
    v = np.ones(3)
    h_w, h_b = reference.hessian_vector(GOLDEN_X, GOLDEN_Y, GOLDEN_W, GOLDEN_B, v, 1.0, lam)
    expected = [0.40340326895358747, 0.29716340991198414, -0.00077048851126267082]
    np.testing.assert_allclose(h_w - lam * v, expected, rtol=1e-12, atol=1e-16)
    assert h_b == pytest.approx(0.15304703610080975, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_objective_is_the_regularised_weighted_mean_of_the_losses(kind, loss):
    X, y, weights, w, b = make_problem(kind)
    m, s = dense_margin(X, y, w, b)
    losses = [
        float(exact_functions(m_i, s_i)[0]) if s_i > 0 and loss == "expected_hinge" else max(m_i, 0)
        for m_i, s_i in zip(m, s, strict=True)
    ]
    expected = LAM / 2 * w @ w + np.average(losses, weights=weights)
    value, _, _ = reference.objective_and_gradient(X, y, w, b, LAM, weights, loss)
    assert value == pytest.approx(expected, rel=1e-13)
    assert reference.suboptimality_bound(X, y, w, b, LAM, weights, loss)[0] == value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_gradient_equals_central_differences(kind, loss):
    X, y, weights, w, b = make_problem(kind)
    _, grad_w, grad_b = reference.objective_and_gradient(X, y, w, b, LAM, weights, loss)
    step = 1e-5

    def value(params):
        return reference.objective_and_gradient(X, y, params[:-1], params[-1], LAM, weights, loss)[
            0
        ]

    point = np.append(w, b)
    for j, unit in enumerate(step * np.eye(len(point))):
        difference = (value(point + unit) - value(point - unit)) / (2 * step)
        assert np.append(grad_w, grad_b)[j] == pytest.approx(difference, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_hessian_vector_product_equals_central_differences_of_the_gradient(kind, loss):
    X, y, weights, w, b = make_problem(kind)
    rng = np.random.default_rng(8)
    v, v0 = rng.normal(size=N_FEATURES), -0.7
    step = 1e-5
    ends = [
        reference.objective_and_gradient(X, y, w + h * v, b + h * v0, LAM, weights, loss)
        for h in (step, -step)
    ]
    h_w, h_b = reference.hessian_vector(X, y, w, b, v, v0, LAM, weights, loss)
    np.testing.assert_allclose(h_w, (ends[0][1] - ends[1][1]) / (2 * step), atol=1e-7)
    assert h_b == pytest.approx((ends[0][2] - ends[1][2]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("kind", UNCERTAIN_KINDS)
def test_hessian_equals_its_outer_product_form_and_is_positive_semidefinite(kind):
    """H = sum_i c_i phi(z)/s [u u' + S - q q'/s^2], u = -y (x, 1) - (z/s) q, q = S w."""
    X, y, weights, w, b = make_problem(kind)
    m, s = dense_margin(X, y, w, b)
    size = N_FEATURES + 1
    expected = LAM * np.diag(np.append(np.ones(N_FEATURES), 0.0))
    for i, c in enumerate(weights / weights.sum()):
        q = np.append(X.covariances[i] @ w, 0.0)
        u = -y[i] * np.append(X.mean[i], 1.0) - m[i] / s[i] ** 2 * q
        padded = np.zeros((size, size))
        padded[:-1, :-1] = X.covariances[i]
        pdf = stats.norm.pdf(m[i] / s[i])
        expected += c * pdf / s[i] * (np.outer(u, u) + padded - np.outer(q, q) / s[i] ** 2)
    columns = [
        np.append(*reference.hessian_vector(X, y, w, b, unit[:-1], unit[-1], LAM, weights))
        for unit in np.eye(size)
    ]
    np.testing.assert_allclose(np.column_stack(columns), expected, rtol=1e-11, atol=1e-13)
    assert np.linalg.eigvalsh(expected).min() > -1e-14


def test_hessian_at_the_point_itself_is_the_sum_of_the_curvatures():
    X, y, _, w, b = make_problem("low_rank_diagonal")
    m, s = dense_margin(X, y, w, b)
    h_w, h_b = reference.hessian_vector(X, y, w, b, w, b, LAM)
    expected = LAM * w @ w + np.mean(stats.norm.pdf(m / s) / s)
    assert w @ h_w + b * h_b == pytest.approx(expected, rel=1e-12)


def test_zero_coefficients_have_the_gradient_of_certain_examples():
    X, y, weights, w, _ = make_problem("full")
    c = weights / weights.sum()
    value, grad_w, grad_b = reference.objective_and_gradient(X, y, 0 * w, 0.0, LAM, weights)
    assert value == pytest.approx(1.0)
    np.testing.assert_allclose(grad_w, -(c * y) @ X.mean, rtol=1e-14)
    assert grad_b == pytest.approx(-(c @ y))


def same_results(first, second, rtol=1e-12):
    """Compare value, gradient and exact intercept of two problems (X, y, w, b, weights)."""
    results = []
    for X, y, w, b, weights in (first, second):
        value, grad_w, grad_b = reference.objective_and_gradient(X, y, w, b, LAM, weights)
        intercept = reference.exact_intercept(X, y, w, weights)
        results.append(np.concatenate([[value, grad_b, intercept], grad_w]))
    np.testing.assert_allclose(*results, rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_equals_the_full_covariances_it_stands_for(kind):
    X, y, weights, w, b = make_problem(kind)
    dense = Gaussians(X.mean, cov=Covariances.full(X.covariances.to_full()))
    same_results((X, y, w, b, weights), (dense, y, w, b, weights))


def test_integer_weights_equal_repeated_examples():
    X, y, _, w, b = make_problem("full")
    counts = np.arange(N_SAMPLES) % 3 + 1
    rows = np.repeat(np.arange(N_SAMPLES), counts)
    same_results((X, y, w, b, counts), (X[rows], y[rows], w, b, None))


def test_common_factor_of_the_weights_is_irrelevant():
    X, y, weights, w, b = make_problem("diagonal")
    same_results((X, y, w, b, weights), (X, y, w, b, 1e6 * weights))


def test_objective_is_invariant_under_rotation_shift_scale_and_relabelling():
    X, y, weights, w, b = make_problem("full")
    dense = X.covariances.to_full()
    rotation, _ = np.linalg.qr(np.random.default_rng(9).normal(size=(N_FEATURES, N_FEATURES)))
    rotated = Gaussians(X.mean @ rotation.T, cov=Covariances.full(rotation @ dense @ rotation.T))
    shift = np.array([1.0, -2.0, 0.5, 3.0])
    shifted = Gaussians(X.mean + shift, cov=X.covariances)
    scaled = Gaussians(3.0 * X.mean, cov=Covariances.full(9.0 * dense))
    value, grad_w, grad_b = reference.objective_and_gradient(X, y, w, b, LAM, weights)
    intercept = reference.exact_intercept(X, y, w, weights)
    for other, y1, w1, b1, lam1, intercept1, grad1, sign in (
        (rotated, y, rotation @ w, b, LAM, intercept, rotation @ grad_w, 1),
        (shifted, y, w, b - w @ shift, LAM, intercept - w @ shift, grad_w + shift * grad_b, 1),
        (scaled, y, w / 3.0, b, 9.0 * LAM, intercept, 3.0 * grad_w, 1),
        (X, -y, -w, -b, LAM, -intercept, -grad_w, -1),
    ):
        got = reference.objective_and_gradient(other, y1, w1, b1, lam1, weights)
        assert got[0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(got[1], grad1, rtol=1e-11, atol=1e-13)
        assert got[2] == pytest.approx(sign * grad_b, abs=1e-13)
        assert reference.exact_intercept(other, y1, w1, weights) == pytest.approx(
            intercept1, abs=1e-11
        )


# -- exact intercept -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_exact_intercept_is_not_beaten_by_brute_force(kind, loss):
    for seed in range(4):
        X, y, weights, w, _ = make_problem(kind, seed, n=15)

        def value(b, X=X, y=y, weights=weights, w=w):
            return reference.objective_and_gradient(X, y, w, b, LAM, weights, loss)[0]

        b = reference.exact_intercept(X, y, w, weights, loss)
        reach = 20.0 + np.abs(X.mean @ w).max()
        grid = np.linspace(-reach, reach, 401)
        start = grid[np.argmin([value(g) for g in grid])]
        width = grid[1] - grid[0]
        found = optimize.minimize_scalar(
            value, bounds=(start - width, start + width), options={"xatol": 1e-12}
        )
        assert value(b) <= found.fun + 1e-14
        # The minimiser of the convex function of b is where brute force found it, unless flat.
        assert abs(b - found.x) < 1e-5 or value(b) == pytest.approx(found.fun, rel=1e-12)


def test_exact_intercept_of_certain_examples_is_the_middle_of_the_root_interval():
    """Scores 0 (-) and 4 (+): both hinges vanish for b in [-3, -1]."""
    X = Gaussians(np.array([[0.0], [4.0]]))
    for weights in (None, np.array([1.0, 30.0])):
        intercept = reference.exact_intercept(X, np.array([-1, 1]), np.ones(1), weights)
        assert intercept == pytest.approx(-2.0, abs=1e-14)


def test_exact_intercept_of_certain_examples_is_a_weighted_quantile():
    """-dJ/db falls by c_i at t_i = y_i - w'x_i, and starts at the weight of the positives."""
    rng = np.random.default_rng(12)
    for n, weights in ((7, None), (8, None), (9, np.arange(1.0, 10.0)), (10, rng.random(10))):
        X, y, _, w, _ = make_problem("zero", seed=n, n=n)
        c = np.ones(n) if weights is None else weights
        pairs = sorted(zip(y - X.mean @ w, c, strict=True))
        g, ends = c[y > 0].sum(), []
        for t, c_i in pairs:
            before, g = g, g - c_i
            if before > 1e-9 and g < 1e-9:
                ends.append(t)
            if before > -1e-9 and g < -1e-9:
                ends.append(t)
        intercept = reference.exact_intercept(X, y, w, weights)
        assert intercept == pytest.approx(np.mean(ends), abs=1e-14)


def test_exact_intercept_with_zero_coefficients_is_the_heavier_label_or_the_middle():
    X, _, _, w, _ = make_problem("diagonal", n=6)
    y = np.array([1, 1, 1, 1, -1, -1])
    assert reference.exact_intercept(X, y, 0 * w) == pytest.approx(1.0)
    assert reference.exact_intercept(X, -y, 0 * w) == pytest.approx(-1.0)
    assert reference.exact_intercept(X, y, 0 * w, [1, 1, 1, 1, 2, 2]) == pytest.approx(
        0.0, abs=1e-14
    )


def test_exact_intercept_without_spread_of_one_example_finds_the_jump():
    """Three certain examples and one uncertain: dJ/db changes sign in the jump at t = 1 - 0.5."""
    X = Gaussians(np.array([[0.5], [-9.0], [9.0], [3.0]]), std=np.array([0.0, 0.0, 0.0, 1.0]))
    y = np.array([1, -1, 1, -1])
    weights = np.array([2.0, 1.0, 1.0, 1.0])
    assert reference.exact_intercept(X, y, np.ones(1), weights) == pytest.approx(0.5, abs=1e-14)


def test_exact_intercept_makes_the_weighted_slopes_cancel():
    X, y, weights, w, _ = make_problem("full", n=60)
    b = reference.exact_intercept(X, y, w, weights)
    assert abs(reference.objective_and_gradient(X, y, w, b, LAM, weights)[2]) < 1e-14


@pytest.mark.parametrize("weights", [None, [0.0, 0.0, 1.0]])
def test_exact_intercept_of_one_class_is_an_error(weights):
    X = Gaussians(np.zeros((3, 1)))
    y = np.array([1, 1, 1]) if weights is None else np.array([-1, -1, 1])
    with pytest.raises(ValueError, match="both classes"):
        reference.exact_intercept(X, y, np.ones(1), weights)


# -- certificate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", UNCERTAIN_KINDS)
def test_suboptimality_bound_holds_and_vanishes_at_the_optimum(kind):
    X, y, weights, w, b = make_problem(kind, n=40)
    best, best_w, best_b = minimise(X, y, LAM, weights)
    at_optimum = reference.suboptimality_bound(X, y, best_w, best_b, LAM, weights)[1]
    assert at_optimum < 1e-9
    rng = np.random.default_rng(1)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        near = best_w + scale * rng.normal(size=len(w))
        exact = reference.exact_intercept(X, y, near, weights)
        for intercept in (exact, exact + scale, b):
            value, bound = reference.suboptimality_bound(X, y, near, intercept, LAM, weights)
            assert bound >= value - best - 1e-13
        value, bound = reference.suboptimality_bound(X, y, near, exact, LAM, weights)
        _, grad_w, _ = reference.objective_and_gradient(X, y, near, exact, LAM, weights)
        assert bound == pytest.approx(min(value, grad_w @ grad_w / (2 * LAM)), rel=1e-6)


def test_optimum_fulfils_its_norm_identity_and_radius():
    """lam |w|^2 = sum_i c_i (Phi(z_i) - L_i) <= 1."""
    X, y, weights, _, _ = make_problem("diagonal", n=40)
    _, w, b = minimise(X, y, LAM, weights)
    value, slope_m, _ = reference.expected_hinge(*dense_margin(X, y, w, b))
    assert LAM * w @ w == pytest.approx(np.average(slope_m - value, weights=weights), abs=1e-5)
    assert LAM * w @ w <= 1


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("zero", "expected_hinge"),
        ("zero", "hinge"),
        ("diagonal", "hinge"),
        ("half_certain", "expected_hinge"),
    ],
)
def test_suboptimality_bound_holds_with_certain_examples(kind, loss):
    X, y, weights, w, _ = make_problem(kind, n=40)
    if kind == "half_certain":
        best, near, near_b = minimise(X, y, LAM, weights)
    else:  # the plain support vector machine on the means
        svm = SVC(kernel="linear", C=1 / LAM, tol=1e-10)
        svm.fit(X.mean, y, sample_weight=weights / weights.sum())
        near, near_b = svm.coef_[0], svm.intercept_[0]
        best = reference.objective_and_gradient(X, y, near, near_b, LAM, weights, loss)[0]
    rng = np.random.default_rng(2)
    for scale in (0.0, 1e-8, 1e-3, 0.1, 1.0):
        other = near + scale * rng.normal(size=len(w))
        exact = reference.exact_intercept(X, y, other, weights, loss)
        for intercept in (exact, near_b, exact + scale, exact - 10 * scale):
            value, bound = reference.suboptimality_bound(X, y, other, intercept, LAM, weights, loss)
            assert bound >= value - best - 1e-9


@pytest.mark.parametrize("loss", ["expected_hinge", "hinge"])
def test_suboptimality_bound_shares_the_slope_of_examples_at_the_kink(loss):
    """Positives at 1 (weight 0.5) and -0.5 (0.1), a negative at -1 (0.4): b = 1 - w.

    The first is then at the kink, the others have m > 0, and J = w^2 + 0.15 w + 0.4 (2 - 2 w) for
    lam = 2. The dual slope 3/5 at the kink makes the gap exactly J - min J = (w - 0.325)^2. The
    uncertain second feature is so nearly orthogonal to the coefficients that the kink stays sharp.
    """
    X = Gaussians(np.array([[1.0, 0], [-0.5, 0], [-1.0, 0]]), std=np.tile([0.0, 1.0], (3, 1)))
    y, weights = np.array([1, 1, -1]), np.array([0.5, 0.1, 0.4])
    for w in (0.1, 0.3, 0.325, 0.7):
        coef = np.array([w, 5e-16])
        b = reference.exact_intercept(X, y, coef, weights, loss)
        assert b == pytest.approx(1 - w, abs=1e-14)
        value, bound = reference.suboptimality_bound(X, y, coef, b, 2.0, weights, loss)
        assert value == pytest.approx(w * w + 0.15 * w + 0.8 * (1 - w), rel=1e-14)
        assert bound == pytest.approx((w - 0.325) ** 2, abs=1e-14)


# -- solver --------------------------------------------------------------------------------------


def split_mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def literal_index(seed, draw, n):
    golden = 0x9E3779B97F4A7C15
    key = split_mix((seed + golden) % 2**64)
    return int((split_mix((key + (draw + 1) * golden) % 2**64) >> 11) * 2.0**-53 * n)


def literal_sgd(X, y, lam, *, steps, batch_size, averaging, fit_intercept, seed, weights, start):
    """Walk the same path with one example and one scalar at a time."""
    n, d = X.shape
    c, mean, dense = weights / weights.sum(), X.mean, X.covariances.to_full()
    weighted = averaging == "weighted"
    centred = weighted and fit_intercept
    centre = sum(c[i] * mean[i] for i in range(n)) if centred else np.zeros(d)
    radius = sum(
        c[i] * (np.sum((mean[i] - centre) ** 2) + 1 + np.trace(dense[i])) for i in range(n)
    )
    delay = radius / lam if weighted else 0.0
    w, beta, average = start[0], start[1] + start[0] @ centre, np.zeros(d)
    for t in range(1, steps + 1):
        rows = [literal_index(seed, (t - 1) * batch_size + j, n) for j in range(batch_size)]
        scale = n / batch_size
        if batch_size >= n:
            rows, scale = range(n), 1.0
        g_w, g_b = np.zeros(d), 0.0
        for i in rows:
            m, s = 1 - y[i] * (w @ (mean[i] - centre) + beta), np.sqrt(w @ dense[i] @ w)
            slope_m = stats.norm.cdf(m / s) if s > 0 else np.heaviside(m, 0.5)
            slope_s = stats.norm.pdf(m / s) / s if s > 0 else 0.0
            g_w += scale * c[i] * (-y[i] * slope_m * (mean[i] - centre) + slope_s * dense[i] @ w)
            g_b += scale * c[i] * -y[i] * slope_m
        eta = 1 / (lam * (t + delay))
        w = w - eta * (lam * w + g_w)
        beta = beta - eta * g_b if fit_intercept else beta
        if np.linalg.norm(w) > 1 / np.sqrt(lam):
            w = w / np.linalg.norm(w) / np.sqrt(lam)
        average += 2 / (t + 1) * (w - average)
    return (average, None) if weighted else (w, beta)


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 11, -1])
def test_mini_batches_are_those_of_the_counter_based_generator(seed):
    rows = np.array(list(reference.linear._batches(1000, 7, 600, seed)))
    assert rows.shape == (600, 7)
    draws = [0, 1, 6, 7, 255 * 7, 256 * 7 - 1, 256 * 7, 600 * 7 - 1]
    assert [rows.flat[draw] for draw in draws] == [literal_index(seed, i, 1000) for i in draws]


def test_mini_batches_draw_every_row_equally_often():
    rows = np.concatenate(list(reference.linear._batches(10, 32, 1000, 5)))
    assert stats.chisquare(np.bincount(rows, minlength=10)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("kind", "averaging", "fit_intercept", "batch_size"),
    [
        ("diagonal_std", "weighted", True, 5),
        ("full", "weighted", False, 5),
        ("ragged_diagonal", "none", True, 5),
        ("half_certain", "none", False, 3),
        ("isotropic", "weighted", True, 12),
        ("low_rank", "none", True, 50),
    ],
)
def test_sgd_walks_the_path_of_the_literal_algorithm(kind, averaging, fit_intercept, batch_size):
    X, y, weights, w, b = make_problem(kind)
    options = {
        "steps": 30,
        "batch_size": batch_size,
        "averaging": averaging,
        "fit_intercept": fit_intercept,
        "seed": 42,
        "weights": weights,
    }
    start = (0.3 * w, b if fit_intercept else 0.0)
    expected_w, expected_b = literal_sgd(X, y, LAM, start=start, **options)
    got_w, got_b = reference.sgd(X, y, LAM, start=start, **options)
    np.testing.assert_allclose(got_w, expected_w, rtol=1e-9, atol=1e-11)
    if expected_b is None:
        expected_b = reference.exact_intercept(X, y, got_w, weights) if fit_intercept else 0.0
    assert got_b == pytest.approx(expected_b, rel=1e-9, abs=1e-10)


def test_sgd_converges_to_the_optimum():
    X, y, weights, _, _ = make_problem("diagonal", n=200)
    best, _, _ = minimise(X, y, LAM, weights)
    gaps = []
    for steps in (100, 400, 3200):
        w, b = reference.sgd(X, y, LAM, weights=weights, steps=steps, seed=3)
        value, bound = reference.suboptimality_bound(X, y, w, b, LAM, weights)
        assert bound >= value - best - 1e-13
        gaps.append((value - best) / best)
    assert gaps[2] < gaps[1] < gaps[0] < 0.2
    assert gaps[2] < 1e-4


def test_sgd_leaves_its_arguments_unchanged():
    X, y, weights, w, b = make_problem("full")
    before = [array.copy() for array in (X.mean, X.covariances.values, y, weights, w)]
    reference.sgd(X, y, LAM, weights=weights, steps=5, start=(w, b))
    for array, copy in zip((X.mean, X.covariances.values, y, weights, w), before, strict=True):
        np.testing.assert_array_equal(array, copy)


# -- linear model --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_decision_values_have_the_moments_of_the_score(kind):
    X, _, _, w, b = make_problem(kind)
    np.testing.assert_allclose(
        reference.decision_function(X, w, b), [w @ x + b for x in X.mean], rtol=1e-13
    )
    expected = [np.sqrt(w @ S @ w) for S in X.covariances.to_full()]
    np.testing.assert_allclose(reference.decision_std(X, w), expected, rtol=1e-13)


def test_side_probability_is_the_share_of_draws_on_the_positive_side():
    X, _, _, w, b = make_problem("full")
    rng = np.random.default_rng(13)
    for i, probability in enumerate(reference.side_probability(X, w, b)[:4]):
        draws = rng.multivariate_normal(X.mean[i], X.covariances[i], size=20000, method="eigh")
        share = np.mean(draws @ w + b > 0)
        assert abs(share - probability) < 4 * np.sqrt(0.25 / 20000)


def test_side_probability_of_certain_points_is_zero_half_or_one():
    X = Gaussians(np.array([[-2.0], [1.0], [5.0]]))
    got = reference.side_probability(X, np.array([2.0]), -2.0)
    np.testing.assert_array_equal(got, [0.0, 0.5, 1.0])


# -- Platt scaling -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_fit_minimises_the_cross_entropy_with_its_targets(weighted):
    rng = np.random.default_rng(14)
    f = rng.normal(size=80)
    positive = f + rng.normal(size=80) > 0.3
    weights = rng.uniform(0.2, 3.0, size=80) if weighted else np.ones(80)
    n_pos, n_neg = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))

    def cross_entropy(params):  # of p = 1/(1 + exp(u)), 1 - p = 1/(1 + exp(-u))
        u = params[0] * f + params[1]
        each = target * np.logaddexp(0, u) + (1 - target) * np.logaddexp(0, -u)
        return np.sum(weights * each)

    a, b = reference.fit_platt(f, positive, weights if weighted else None)
    best = optimize.minimize(cross_entropy, [0.0, 0.0], options={"gtol": 1e-6})
    np.testing.assert_allclose([a, b], best.x, atol=1e-5)
    assert a < 0


def test_platt_fit_of_separable_data_reaches_the_finite_targets():
    f = np.array([-3.0, -3.0, 2.0, 2.0, 2.0])
    a, b = reference.fit_platt(f, f > 0)
    np.testing.assert_allclose(
        reference.platt_probability([-3.0, 2.0], a, b), [1 / 4, 4 / 5], atol=1e-6
    )


def test_platt_fit_of_one_class_is_a_constant():
    a, b = reference.fit_platt([0.5, 1.5, -2.0], [True, True, True])
    assert a == 0.0
    assert reference.platt_probability(17.0, a, b) == pytest.approx(4 / 5)
    a, b = reference.fit_platt([0.5, 1.5, -2.0], [False, False, False], [2.0, 1.0, 1.0])
    assert a == 0.0
    assert reference.platt_probability(17.0, a, b) == pytest.approx(1 / 6)


def test_platt_probabilities_do_not_depend_on_the_scale_of_the_scores():
    rng = np.random.default_rng(15)
    f = rng.normal(size=200)
    positive = rng.random(200) < 1 / (1 + np.exp(-2 * f))
    a, b = reference.fit_platt(f, positive)
    a_scaled, b_scaled = reference.fit_platt(1000 * f, positive)
    assert a_scaled * 1000 == pytest.approx(a, rel=1e-5)
    assert b_scaled == pytest.approx(b, abs=1e-5)


def test_platt_probabilities_do_not_overflow():
    np.testing.assert_allclose(
        reference.platt_probability([-2000.0, 0.0, 2000.0], -1.0, 0.0), [0.0, 0.5, 1.0], atol=0
    )
    np.testing.assert_array_equal(
        reference.expected_platt_probability([-2000.0, 2000.0], [0.0, 0.0], -1.0, 0.0), [0.0, 1.0]
    )


def test_expected_platt_probability_is_the_mean_over_the_score_to_its_stated_error():
    a, b = -1.7, 0.4
    for mean, std in itertools.product((-3.0, -0.5, 0.0, 1.0, 4.0), (0.1, 1.0, 3.0)):
        exact, _ = integrate.quad(
            lambda u, mean=mean, std=std: (
                stats.norm.pdf(u) / (1 + np.exp(a * (mean + std * u) + b))
            ),
            -10,
            10,
            epsabs=1e-10,
        )
        got = reference.expected_platt_probability(mean, std, a, b)
        assert got == pytest.approx(exact, abs=1e-4)
    certain = reference.expected_platt_probability([0.3, -2.0], 0.0, a, b)
    np.testing.assert_allclose(certain, reference.platt_probability([0.3, -2.0], a, b), rtol=1e-15)
