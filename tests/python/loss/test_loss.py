"""Losses psi(m, s) against mpmath in 60 digits, quadrature, Monte Carlo and exact identities."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from halosvm import _core

RELATIVE = 1e-13
SMALLEST = 1e-300

finite = st.floats(-1e307, 1e307)
spread = st.floats(0, 1e307)


def first(m, s, loss="expected_hinge"):
    return _core.evaluate_loss(loss, np.asarray(m, float), np.asarray(s, float))


def second(m, s, loss="expected_hinge"):
    return _core.loss_curvature(loss, np.asarray(m, float), np.asarray(s, float))


def exact(m, s):
    """Return psi, psi_m, psi_s/s, psi_mm, psi_ms, psi_ss of two doubles, in 60 digits."""
    with mpmath.workdps(60):
        m, s = mpmath.mpf(float(m)), mpmath.mpf(float(s))
        z = m / s
        density, probability = mpmath.npdf(z), mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        mm = density / s
        return [m * probability + s * density, probability, mm, mm, -z * mm, z * z * mm]


def random_points(n, seed, decades=150):
    """Return m and s > 0 with m/s between -37 and 37 and s between 1e-decades and 1e+decades."""
    rng = np.random.default_rng(seed)
    s = 10 ** rng.uniform(-decades, decades, n)
    z = rng.uniform(-37, 37, n)
    return z * s, s


def test_expected_hinge_and_all_its_derivatives_equal_mpmath_to_1e_13():
    m, s = random_points(3000, seed=0)
    near_m, near_s = random_points(1000, seed=1)
    m, s = np.r_[m, near_m / 20, 0.0], np.r_[s, near_s, 1.0]  # more of the kink's surroundings
    values = np.array([*first(m, s), *second(m, s)]).T
    worst = np.zeros(6)
    for point, row in zip(zip(m, s, strict=True), values, strict=True):
        for k, (value, expected) in enumerate(zip(row, exact(*point), strict=True)):
            if abs(expected) < SMALLEST:
                assert abs(value) <= 1.001 * SMALLEST
            else:
                with mpmath.workdps(60):
                    error = float(abs(mpmath.mpf(float(value)) / expected - 1))
                worst[k] = max(worst[k], error)
    assert (worst <= RELATIVE).all(), worst


@pytest.mark.parametrize(
    ("m", "s", "value", "probability"),
    [
        (0.0, 1.0, 0.39894228040143268, 0.5),
        (0.3, 0.7, 0.4545204339315511, 0.66588242910237531),
        (-1.5, 1.0, 0.029306793762604629, 0.066807201268858066),
        (2.0, 0.4, 2.0000000213846621, 0.99999971334842812),
        (-6.0, 1.0, 1.5635697959709664e-10, 9.8658764503769814e-10),
        (-12.0, 1.0, 1.4605201169845548e-34, 1.776482112077679e-33),
        (-30.0, 1.0, 1.6319567340914012e-199, 4.9067139271481871e-198),
    ],
)
def test_expected_hinge_has_its_golden_values(m, s, value, probability):
    psi, slope, _ = first(m, s)
    assert psi == pytest.approx(value, rel=RELATIVE, abs=0)
    assert slope == pytest.approx(probability, rel=RELATIVE, abs=0)


@pytest.mark.parametrize(("m", "s"), [(0.3, 0.7), (-2.0, 1.5), (4.0, 0.5), (0.0, 3.0), (-3.0, 0.6)])
def test_expected_hinge_equals_the_integral_of_the_hinge(m, s):
    def integrand(z):
        return (m + s * z) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

    start = -m / s
    integral, _ = integrate.quad(integrand, start, max(start, 0) + 12, epsabs=0, epsrel=1e-12)
    assert first(m, s)[0] == pytest.approx(integral, rel=1e-11, abs=0)


def test_expected_hinge_equals_the_mean_over_random_draws():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(400_000)
    for m, s in ((0.4, 1.3), (-1.0, 0.8), (2.0, 0.3)):
        draws = np.maximum(0.0, m + s * z)
        standard_error = draws.std() / np.sqrt(len(z))
        assert abs(draws.mean() - first(m, s)[0]) <= 5 * standard_error


def test_derivatives_equal_central_differences():
    rng = np.random.default_rng(1)
    m, s = rng.normal(size=200), rng.uniform(0.3, 2.0, 200)
    h = 1e-5  # error: h^2/6 times a third derivative below 10, and rounding 1e-16/h
    _, slope_m, slope_s2 = first(m, s)
    mm, ms, ss = second(m, s)

    def along_m(k, function):
        return (function(m + h, s)[k] - function(m - h, s)[k]) / (2 * h)

    def along_s(k, function):
        return (function(m, s + h)[k] - function(m, s - h)[k]) / (2 * h)

    np.testing.assert_allclose(along_m(0, first), slope_m, atol=1e-8)
    np.testing.assert_allclose(along_s(0, first), slope_s2 * s, atol=1e-8)
    np.testing.assert_allclose(along_m(1, first), mm, atol=1e-8)
    np.testing.assert_allclose(along_s(1, first), ms, atol=1e-8)
    slope_s_above, slope_s_below = first(m, s + h)[2] * (s + h), first(m, s - h)[2] * (s - h)
    np.testing.assert_allclose((slope_s_above - slope_s_below) / (2 * h), ss, atol=1e-8)


@given(m=st.floats(-1e100, 1e100), s=st.floats(1e-100, 1e100), factor=st.floats(1e-40, 1e40))
def test_expected_hinge_is_homogeneous(m, s, factor):
    # c m and c s are rounded, which changes z by 2e-16 z and psi by up to z^2 times that.
    z = min(abs(m / s), 40.0)
    value, scaled = float(first(m, s)[0]), float(first(factor * m, factor * s)[0])
    assert scaled == pytest.approx(factor * value, rel=1e-14 + 5e-16 * z * z, abs=1e-290)


@given(m=st.floats(-1e100, 1e100), s=st.floats(1e-100, 1e100), power=st.integers(-100, 100))
def test_expected_hinge_is_homogeneous_to_the_bit_for_powers_of_two(m, s, power):
    assert first(m * 2.0**power, s * 2.0**power)[0] == first(m, s)[0] * 2.0**power


def test_loss_of_m_less_loss_of_minus_m_is_m():
    m, s = random_points(2000, seed=2)
    positive, negative = first(m, s)[0], first(-m, s)[0]
    rounding = 4e-16 * (positive + negative)
    assert (np.abs(positive - negative - m) <= rounding).all()


def test_value_is_what_euler_makes_of_the_slopes():
    m, s = random_points(2000, seed=3, decades=6)  # so that phi/s does not underflow
    value, slope_m, slope_s2 = first(m, s)
    terms = np.abs(slope_m * m) + slope_s2 * s * s  # they cancel for m < 0
    assert (np.abs(slope_m * m + slope_s2 * s * s - value) <= 2e-13 * terms).all()


def test_value_at_the_margin_is_the_spread_over_root_two_pi():
    s = 10.0 ** np.arange(-150, 151, 10)
    np.testing.assert_allclose(first(0 * s, s)[0], s / np.sqrt(2 * np.pi), rtol=2e-15)


def test_value_is_the_maximum_of_its_conjugate_form():
    rng = np.random.default_rng(4)
    m, s, theta = rng.normal(size=500), rng.uniform(0.1, 3, 500), rng.uniform(0, 1, 500)
    value, slope_m, _ = first(m, s)

    def bound(share):
        return share * m + np.exp(-0.5 * special.ndtri(share) ** 2) / np.sqrt(2 * np.pi) * s

    assert (value >= bound(theta) - 1e-14).all()
    np.testing.assert_allclose(bound(slope_m), value, atol=1e-13)


@given(m=finite, s=spread)
def test_every_finite_point_has_a_finite_value_between_its_bounds(m, s):
    value, slope_m, slope_s2 = (float(x) for x in first(m, s))
    hinge = max(m, 0.0)
    assert hinge <= value
    assert value <= hinge * (1 + 1e-15) + s / np.sqrt(2 * np.pi) * (1 + 1e-15)
    assert 0.0 <= slope_m <= 1.0
    assert 0.0 <= slope_s2 < np.inf
    assert not any(np.isnan(second(m, s)))


@given(m=finite, s=st.floats(0, 1e-300, exclude_max=True))
def test_spread_below_1e_300_counts_as_certain(m, s):
    assert [float(x) for x in first(m, s)] == [max(m, 0.0), np.heaviside(m, 0.5), 0.0]
    assert [float(x) for x in second(m, s)] == [0.0, 0.0, 0.0]


def test_expected_hinge_approaches_the_hinge_at_the_rate_of_the_spread():
    m = np.linspace(-2, 2, 41)
    for s in 10.0 ** -np.arange(1, 15):
        gap = first(m, np.full_like(m, s))[0] - np.maximum(m, 0)
        assert (gap >= 0).all()
        assert gap.max() <= s / np.sqrt(2 * np.pi) * (1 + 1e-12) + 3e-16


def test_hinge_ignores_the_spread():
    m = np.array([-1e150, -2.0, -0.0, 0.0, 5e-324, 3.0, 1e150])
    for s in (0.0, 1.0, 1e150):
        value, slope_m, slope_s2 = first(m, np.full_like(m, s), "hinge")
        np.testing.assert_array_equal(value, np.maximum(m, 0))
        np.testing.assert_array_equal(slope_m, np.heaviside(m, 0.5))
        np.testing.assert_array_equal(slope_s2, 0.0)
        np.testing.assert_array_equal(second(m, np.full_like(m, s), "hinge"), 0.0)


def test_names_of_losses_are_those_that_can_be_evaluated():
    assert set(_core.loss_names()) >= {"expected_hinge", "hinge"}
    for name in _core.loss_names():
        assert np.isfinite(first(0.5, 0.5, name)).all()


def test_unknown_loss_is_an_error_that_lists_the_losses():
    with pytest.raises(ValueError, match=r"loss is 'hing'.*expected_hinge, hinge"):
        first(0.0, 1.0, "hing")


def test_different_lengths_of_m_and_s_are_an_error():
    with pytest.raises(ValueError, match="m has 2 values, s has 3"):
        first(np.zeros(2), np.zeros(3))
