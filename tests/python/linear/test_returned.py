"""Certificates are of the numbers that are returned: coefficients and intercepts in doubles.

Oracle: J at these numbers in rational arithmetic, in mpmath where residuals are uncertain, and the
optimum of the same values on a grid near 0, where doubles have digits to spare.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halosvm import UncertainSVR, chunks

LOSSES = (
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "huber",
    "pinball",
    "squared_error",
)
OFFSETS = [0.0, 1.7e9, 2.0**33]
EPOCH = 1.7e9  # seconds since 1970, with errors of milliseconds


def loss_of(reg, r):
    beyond = max(Fraction(0), abs(r) - Fraction(reg.epsilon))
    delta, q = Fraction(reg.delta), Fraction(reg.quantile)
    return {
        "epsilon_insensitive": beyond,
        "squared_epsilon_insensitive": beyond**2,
        "huber": r * r / 2 if abs(r) <= delta else delta * abs(r) - delta**2 / 2,
        "pinball": q * r if r > 0 else (q - 1) * r,
        "squared_error": r * r,
    }[reg.loss]


def residuals(reg, X, y, intercept=None):
    w = [Fraction(value) for value in reg.coef_]
    b = Fraction(reg.intercept_ if intercept is None else float(intercept))
    for x, value in zip(X, y, strict=True):
        yield Fraction(value) - b - sum(Fraction(a) * c for a, c in zip(x, w, strict=True))


def exact_objective(reg, X, y, intercept=None):
    n = len(y)
    ridge = sum(Fraction(value) ** 2 for value in reg.coef_) / (2 * Fraction(reg.C) * n)
    return ridge + sum(loss_of(reg, r) for r in residuals(reg, X, y, intercept)) / n


def certified(reg):
    """Return the bound of J* that the fit claims."""
    return Fraction(reg.objective_) / (1 + Fraction(reg.suboptimality_))


def assert_true(reg, X, y, near, y_near):
    """Return J of the model, and about J*."""
    exact, optimum = exact_objective(reg, X, y), exact_objective(near, X, y_near)
    assert abs(Fraction(reg.objective_) / exact - 1) <= 1e-9
    assert certified(reg) <= optimum * (1 + Fraction(1e-9))
    return exact, optimum


def in_chunks(X, y):
    return chunks(lambda: ((X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), 3)))


def problem(seed, loss):
    """Values on a grid, so that an offset is added without rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    grid = 2.0**-19
    y = np.round((X @ [1.0, 2.0] + 1e-3 * rng.standard_t(2, 12)) / grid) * grid
    epsilon = float(rng.choice([0.0, 1e-3]))
    return UncertainSVR(C=1e6, loss=loss, epsilon=epsilon, quantile=0.3, delta=2e-3), X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_and_bound_hold_for_the_returned_numbers(loss, offset):
    for seed in range(2):
        reg, X, y = problem(seed, loss)
        near = clone(reg).set_params(tol=1e-9).fit(X, y)
        exact, optimum = assert_true(reg.fit(X, y + offset), X, y + offset, near, y)
        # and the claim is no larger than rounding makes it
        assert reg.suboptimality_ <= float(exact / optimum - 1) + 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_and_bound_of_chunks_hold_for_the_returned_numbers(loss):
    reg, X, y = problem(0, loss)
    near = clone(reg).set_params(tol=1e-9).fit(X, y)
    reg.set_params(max_iter=50)  # kinks take more
    assert_true(reg.fit(in_chunks(X, y + EPOCH)), X, y + EPOCH, near, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_no_neighbouring_intercept_is_better(loss):
    for seed in range(3):
        reg, X, y = problem(seed, loss)
        y = y + EPOCH
        reg.fit(X, y)
        here = exact_objective(reg, X, y)
        for side in (-np.inf, np.inf):
            b = np.nextafter(reg.intercept_, side)
            assert exact_objective(reg, X, y, b) >= here * (1 - Fraction(1e-12))


def test_rounding_above_the_tolerance_is_a_stall_with_the_true_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = EPOCH + X @ [1.0, 2.0] + 1e-3 * rng.normal(size=12)
    reg = UncertainSVR(C=1e6, epsilon=0.0)
    with pytest.warns(ConvergenceWarning, match="stalled.* 5e-05, above tol"):
        reg.fit(X, y)
    assert "stalled" in reg.status_
    near = clone(reg).set_params(tol=1e-9).fit(X, y - EPOCH)
    gap = exact_objective(reg, X, y) / exact_objective(near, X, y - EPOCH) - 1
    assert reg.suboptimality_ == pytest.approx(float(gap), abs=1e-6)


def expected_loss(reg, r, s):
    """Return the expected loss of a residual N(r, s^2), in mpmath (spec K.3)."""

    def hinge(m):
        return m * mpmath.ncdf(m / s) + s * mpmath.npdf(m / s)

    def square(m):
        return (m * m + s * s) * mpmath.ncdf(m / s) + m * s * mpmath.npdf(m / s)

    e, k, q = (mpmath.mpf(value) for value in (reg.epsilon, reg.delta, reg.quantile))
    return {
        "epsilon_insensitive": lambda: hinge(r - e) + hinge(-r - e),
        "squared_epsilon_insensitive": lambda: square(r - e) + square(-r - e),
        "huber": lambda: (r * r + s * s) / 2 - (square(r - k) + square(-r - k)) / 2,
        "pinball": lambda: q * hinge(r) + (1 - q) * hinge(-r),
        "squared_error": lambda: r * r + s * s,
    }[reg.loss]()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_uncertain_values_far_from_0_have_the_objective_of_the_returned_numbers(loss):
    reg, X, y = problem(5, loss)
    y = y + 2.0**33
    std = np.full(X.shape, 1e-3)
    reg.fit(X, y, X_std=std, y_std=2e-3)
    with mpmath.workdps(30):
        s = mpmath.sqrt(mpmath.fsum((1e-3 * w) ** 2 for w in reg.coef_) + mpmath.mpf(2e-3) ** 2)
        r = [mpmath.mpf(v.numerator) / v.denominator for v in residuals(reg, X, y)]
        ridge = mpmath.fsum(mpmath.mpf(w) ** 2 for w in reg.coef_) / (2 * reg.C * len(y))
        exact = ridge + mpmath.fsum(expected_loss(reg, v, s) for v in r) / len(y)
    assert reg.objective_ == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_of_values_change_no_certificate(unit):
    for loss in LOSSES:
        reg, X, y = problem(1, loss)
        degree = 1 if loss in ("epsilon_insensitive", "pinball") else 2
        reg.set_params(C=reg.C * unit ** (2 - degree), tol=1e-6)
        reg.set_params(epsilon=reg.epsilon * unit, delta=reg.delta * unit).fit(X, y * unit)
        assert reg.suboptimality_ <= 1e-6
        exact = exact_objective(reg, X, y * unit)
        assert abs(Fraction(reg.objective_) / exact - 1) <= 1e-9
