"""The NumPy losses of regression against quadrature, scikit-learn's losses and identities."""

import mpmath
import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from halosvm.reference import (
    REGRESSION_LOSSES,
    expected_huber,
    expected_pinball,
    expected_squared_epsilon_insensitive,
    expected_squared_error,
)

# name, its parameter, and the loss of a residual in mpmath's numbers with its kinks
CASES = {
    "expected_epsilon_insensitive": (0.3, lambda r, e: max(abs(r) - e, 0), [-0.3, 0.3]),
    "expected_squared_epsilon_insensitive": (
        0.3,
        lambda r, e: max(abs(r) - e, 0) ** 2,
        [-0.3, 0.3],
    ),
    "expected_pinball": (0.8, lambda r, q: max(q * r, (q - 1) * r), [0]),
    "expected_huber": (
        1.35,
        lambda r, k: r * r / 2 if abs(r) <= k else k * abs(r) - k * k / 2,
        [-1.35, 1.35],
    ),
    "expected_squared_error": (None, lambda r, _: r * r, []),
}


def evaluate(name, mu, s):
    parameter = CASES[name][0]
    return REGRESSION_LOSSES[name](mu, s, *([] if parameter is None else [parameter]))


def test_every_loss_has_its_case():
    assert set(CASES) == set(REGRESSION_LOSSES)


POINTS = [(0.0, 1.0), (0.7, 0.2), (-2.0, 1.5), (3.0, 0.4), (0.3, 5.0), (-1.35, 0.01)]


@pytest.mark.parametrize(("mu", "s"), POINTS)
@pytest.mark.parametrize("name", CASES)
def test_value_and_slopes_equal_integrals_against_the_normal_density(name, mu, s):
    parameter, loss, kinks = CASES[name]
    cuts = sorted((mpmath.mpf(kink) - mpmath.mpf(mu)) / mpmath.mpf(s) for kink in kinks)
    pieces = [-30, *(c for c in cuts if abs(c) < 30), 30]

    def mean(times):
        def density(z):
            residual = mpmath.mpf(mu) + mpmath.mpf(s) * z
            return loss(residual, parameter) * times(z) * mpmath.npdf(z)

        return mpmath.quad(density, pieces)

    with mpmath.workdps(30):
        # Stein's lemma: E h'(mu + s Z) = E h Z / s, and the slope in s is E h (Z^2 - 1) / s
        value, by_mu = mean(lambda z: 1), mean(lambda z: z) / s
        by_s = mean(lambda z: z * z - 1) / s
        expected = np.array([value, by_mu, by_s / s], float)
    # huber and the slope in mu are differences of two sides
    size = 1.0 + mu**2 + s**2
    np.testing.assert_allclose(evaluate(name, mu, s), expected, rtol=1e-12, atol=1e-13 * size)


@pytest.mark.parametrize("name", CASES)
def test_without_spread_a_loss_is_that_of_the_residual(name):
    parameter, loss, _ = CASES[name]
    mu = np.array([-3.0, -1.35, -0.3, -0.1, 0.0, 0.2, 0.3, 1.0, 1.35, 40.0])
    found = evaluate(name, mu, np.zeros(10))[0]
    np.testing.assert_allclose(found, [loss(r, parameter) for r in mu], rtol=1e-14, atol=1e-16)


def test_pinball_is_the_loss_that_scikit_learn_calls_so():
    y, f = np.random.default_rng(0).normal(size=(2, 50))
    for quantile in (0.1, 0.5, 0.9):
        found = expected_pinball(y - f, np.zeros(50), quantile)[0].mean()
        np.testing.assert_allclose(found, mean_pinball_loss(y, f, alpha=quantile), rtol=1e-13)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"expected_pinball"}))
def test_losses_that_do_not_tell_the_sides_apart_are_even(name):
    rng = np.random.default_rng(1)
    mu, s = rng.normal(size=200), rng.exponential(size=200)
    (value, slope, by_s), (mirrored, other, of_s) = evaluate(name, mu, s), evaluate(name, -mu, s)
    np.testing.assert_allclose(value, mirrored, rtol=1e-13)
    np.testing.assert_allclose(slope, -other, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(by_s, of_s, rtol=1e-12, atol=1e-13)


def test_wide_bands_and_narrow_ones_meet_the_squared_error():
    rng = np.random.default_rng(2)
    mu, s = rng.normal(size=100), rng.exponential(size=100)
    whole = np.array(expected_squared_error(mu, s))
    np.testing.assert_allclose(expected_squared_epsilon_insensitive(mu, s, 0.0), whole, rtol=1e-12)
    np.testing.assert_allclose(expected_huber(mu, s, 100.0), 0.5 * whole, rtol=1e-12)


def test_huber_keeps_its_digits_far_outside():
    with mpmath.workdps(50):
        for mu in (1e3, -1e6, 1e9):
            exact = mpmath.mpf(1.35) * abs(mpmath.mpf(mu)) - mpmath.mpf(1.35) ** 2 / 2
            value, slope, _ = expected_huber(mu, 1.0)
            np.testing.assert_allclose(float(value), float(exact), rtol=1e-14)
            np.testing.assert_allclose(slope, 1.35 * np.sign(mu), rtol=1e-14)
