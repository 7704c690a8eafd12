"""The normal law's tail against mpmath in 60 digits, quadrature and exact identities."""

import mpmath
import numpy as np
import pytest
from scipy import integrate

from halosvm import _core

RELATIVE = 1e-13
SMALLEST = 1e-300  # results below lose digits to underflow, whatever the method


def exact_tail(t):
    """Return phi(t), Phi(-t), E max(0, Z - t) and E max(0, Z - t)^2 of a double, in 60 digits."""
    with mpmath.workdps(60):
        t = mpmath.mpf(float(t))
        density = mpmath.npdf(t)
        upper = mpmath.erfc(t / mpmath.sqrt(2)) / 2
        hinge = density - t * upper
        squared = (1 + t * t) * upper - t * density
        return [density, upper, hinge, squared]


def assert_relative(values, expected, tolerance=RELATIVE):
    for value, exact in zip(values, expected, strict=True):
        if abs(exact) >= SMALLEST:
            with mpmath.workdps(60):
                error = float(abs(mpmath.mpf(float(value)) / exact - 1))
            assert error <= tolerance, (float(exact), value, error)
        else:
            assert abs(value) <= 1.001 * SMALLEST


def points(n, low, high, seed=0):
    return np.random.default_rng(seed).uniform(low, high, n)


@pytest.mark.parametrize("column", range(4), ids=["density", "upper", "hinge", "squared_hinge"])
def test_tail_equals_mpmath_to_1e_13(column):
    t = np.r_[0.0, 5e-324, 1e-300, 1e-8, points(1500, 0, 37), points(500, 0, 3), 37.0]
    values = _core.normal_tail(t)[column]
    assert_relative(values, [exact_tail(x)[column] for x in t])


def test_density_and_distribution_function_equal_mpmath_on_both_sides():
    z = np.r_[0.0, -0.0, points(1500, -37, 37, seed=1), -37.0, 37.0]
    density, upper = zip(*(exact_tail(x)[:2] for x in z), strict=True)
    assert_relative(_core.normal_pdf(z), density)
    assert_relative(_core.normal_cdf(-z), upper)


@pytest.mark.parametrize(
    ("z", "probability"),
    [
        (0.0, 0.5),
        (0.3 / 0.7, 0.66588242910237531),
        (-1.5, 0.066807201268858066),
        (5.0, 0.99999971334842812),
        (-6.0, 9.8658764503769814e-10),
        (-12.0, 1.776482112077679e-33),
        (-30.0, 4.9067139271481871e-198),
    ],
)
def test_distribution_function_has_its_golden_values(z, probability):
    assert _core.normal_cdf(z) == pytest.approx(probability, rel=RELATIVE, abs=0)


@pytest.mark.parametrize(
    ("m", "s", "expected"),
    [
        (0.0, 1.0, 0.5),
        (0.3, 0.7, 0.46263852043962923),
        (-1.5, 1.0, 0.022847010624951123),
        (2.0, 0.4, 4.1599999969050728),
        (-6.0, 1.0, 4.8445767455118284e-11),
        (-12.0, 1.0, 2.3857971696213262e-35),
        (-30.0, 1.0, 1.0843724873983491e-200),
    ],
)
def test_squared_hinge_has_its_golden_values(m, s, expected):
    tail = s**2 * _core.normal_tail(abs(m) / s)[3]  # E (m + s Z)_+^2 of the smaller side
    value = m**2 + s**2 - tail if m > 0 else tail
    assert value == pytest.approx(expected, rel=RELATIVE, abs=0)


@pytest.mark.parametrize("t", [0.0, 0.4, 1.0, 2.5, 5.0, 9.0])
def test_tail_equals_quadrature(t):
    def density(x):
        return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)

    _, upper, hinge, squared = _core.normal_tail(t)
    # Substituting x = t + u / (1 + t) keeps the mass where the rule looks.
    for power, value in ((0, upper), (1, hinge), (2, squared)):
        scale = 1 / (1 + t)
        integral, _ = integrate.quad(
            lambda u, p=power, h=scale: (u * h) ** p * density(t + u * h) * h,
            0,
            60,
            epsabs=0,
            epsrel=1e-12,
            limit=200,
        )
        assert value == pytest.approx(integral, rel=1e-11, abs=0)


def test_tail_functions_are_derivatives_of_each_other():
    # d/dt of hinge is -upper and of squared_hinge is -2 hinge: central differences of step h
    # agree up to h^2/6 times the third derivative (at most 0.8) plus rounding 1e-16/h.
    t, h = np.linspace(0.1, 6.0, 60), 1e-4
    _, upper, hinge, _ = _core.normal_tail(t)
    above, below = _core.normal_tail(t + h), _core.normal_tail(t - h)
    np.testing.assert_allclose((above[2] - below[2]) / (2 * h), -upper, atol=1.4e-9, rtol=0)
    np.testing.assert_allclose((above[3] - below[3]) / (2 * h), -2 * hinge, atol=1.4e-9, rtol=0)


def test_squared_hinge_follows_from_the_other_tail_functions():
    t = np.linspace(0, 1, 101)  # beyond, the right hand side cancels
    density, upper, hinge, squared = _core.normal_tail(t)
    np.testing.assert_allclose(hinge, density - t * upper, rtol=1e-14)
    np.testing.assert_allclose(squared, upper - t * hinge, rtol=1e-14)


def test_both_tails_add_up_to_one():
    z = points(1000, -40, 40, seed=2)
    np.testing.assert_allclose(_core.normal_cdf(z) + _core.normal_cdf(-z), 1.0, rtol=2e-16)


def test_far_tail_underflows_to_zero_without_nan():
    t = np.array([37.6, 40.0, 1e10, 1e200, np.finfo(float).max, np.inf])
    for values in _core.normal_tail(t):
        np.testing.assert_array_equal(values, 0.0)
    np.testing.assert_array_equal(_core.normal_cdf(t), 1.0)
    np.testing.assert_array_equal(_core.normal_cdf(-t), 0.0)


def test_tail_keeps_the_shape_of_its_argument():
    for values in _core.normal_tail(np.ones((2, 3, 4))):
        assert values.shape == (2, 3, 4)
