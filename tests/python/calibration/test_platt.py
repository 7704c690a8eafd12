"""Platt scaling against SciPy, the NumPy reference, quadrature and its closed cases."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from halosvm import PlattScaling, _core, reference
from halosvm.reference import losses


def decisions(n=200, seed=0, gap=1.0):
    """Return overlapping decision values, labels and weights."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return gap * (2 * positive - 1) + rng.normal(size=n), positive, rng.uniform(0.1, 2, n)


def targets(positive, weights):
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    return np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def negative_log_likelihood(point, values, positive, weights):
    """Return the cross entropy of the drawn-in targets, term by term as in its definition."""
    u = point[0] * values + point[1]
    t = targets(positive, weights)
    return weights @ (-t * special.log_expit(-u) - (1 - t) * special.log_expit(u))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_fit_is_the_optimum_that_scipy_finds(seed, weighted):
    values, positive, weights = decisions(seed=seed)
    used = weights if weighted else np.ones(len(values))
    best = optimize.minimize(
        negative_log_likelihood,
        [0.0, 0.0],
        args=(values, positive, used),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 5000},
    )
    fitted = PlattScaling().fit(values, positive, weights if weighted else None)
    point = np.array([fitted.slope_, fitted.offset_])
    # Newton stops at a gradient of 1e-5, which the curvature (above 1 here) turns into the error.
    np.testing.assert_allclose(point, best.x, atol=1e-5)
    found = negative_log_likelihood(point, values, positive, used)
    assert found <= best.fun + 1e-9


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, 3.0, 30.0, 1e6])
def test_fit_equals_the_reference(gap):
    values, positive, weights = decisions(gap=gap)
    for used in (None, weights):
        fitted = PlattScaling().fit(values, positive, used)
        a, b = reference.fit_platt(values, positive, used)
        scale = max(1e-8, abs(a))
        assert fitted.slope_ == pytest.approx(a, abs=1e-7 * scale)
        assert fitted.offset_ == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [1e-290, 1e-100, 1e-8, 1e-3, 7.0, -2.0, 1e8, 1e200, 1e305])
def test_probabilities_do_not_depend_on_the_unit_of_the_decision_values(factor, weighted):
    values, positive, weights = decisions()
    weights = weights if weighted else None
    std = np.geomspace(0.01, 100.0, len(values))
    one = PlattScaling().fit(values, positive, weights)
    other = PlattScaling().fit(factor * values, positive, weights)
    np.testing.assert_allclose(
        other.probability(factor * values), one.probability(values), rtol=1e-12
    )
    expected = one.probability(values, std)
    scaled = other.probability(factor * values, abs(factor) * std)
    np.testing.assert_allclose(scaled, expected, rtol=1e-12)


@pytest.mark.parametrize("shift", [1.0, -1e3, 1e6])
def test_probabilities_do_not_depend_on_the_origin_of_the_decision_values(shift):
    values, positive, _ = decisions()
    values = np.round(values * 2**20) / 2**20  # so that the shift is exact
    expected = PlattScaling().fit(values, positive).probability(values)
    shifted = PlattScaling().fit(values + shift, positive).probability(values + shift)
    # A f + B is a difference of numbers |A shift| that are rounded.
    np.testing.assert_allclose(shifted, expected, rtol=1e-12 + 1e-15 * abs(shift))


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e12])
def test_one_decision_value_far_away_does_not_stop_the_fit_early(outlier):
    values, positive, _ = decisions()
    values, positive = np.r_[values, outlier], np.r_[positive, True]
    fitted = PlattScaling().fit(values, positive)
    point = np.array([fitted.slope_, fitted.offset_])
    u = point[0] * values + point[1]
    missing = targets(positive, np.ones(len(values))) - special.expit(-u)
    design = np.column_stack([values, np.ones(len(values))])
    curvature = (special.expit(u) * special.expit(-u) * design.T) @ design
    gradient = missing @ design
    gain = gradient @ np.linalg.solve(curvature, gradient)
    assert gain < 1e-12


def nearly_expected(slope, offset, mean, std):
    """Return the mixture of normal laws less what it is off without errors, in 40 digits."""
    with mpmath.workdps(40):
        width = abs(mpmath.mpf(slope)) * mpmath.mpf(std)
        u = mpmath.mpf(slope) * mpmath.mpf(float(mean)) + mpmath.mpf(offset)

        def mixture(square):
            parts = zip(losses.LOGISTIC_SHARES, losses.LOGISTIC_VARIANCES, strict=True)
            return sum(mpmath.mpf(c) * mpmath.ncdf(-u / mpmath.sqrt(v + square)) for c, v in parts)

        if width > 100:
            return float(mixture(width**2))
        off = mixture(0) - 1 / (1 + mpmath.exp(u))
        return float(mixture(width**2) - mpmath.exp(-1.5 * width**2) * off)


@pytest.mark.parametrize("slope", [-1e-200, -1e-5, 1.0, -3.0, 1e8, -1e200])
def test_expected_probability_of_huge_spreads_keeps_the_ratio_of_mean_to_spread(slope):
    fitted = PlattScaling()
    fitted.slope_, fitted.offset_ = slope, 0.7
    for std in (1e100, 1e154, 1e155, 1e200, 1e300):
        ratio = np.array([-3.0, -0.5, 0.0, 0.2, 2.0])
        expected = [nearly_expected(slope, 0.7, mean, std) for mean in ratio * std]
        np.testing.assert_allclose(fitted.probability(ratio * std, std), expected, rtol=1e-12)


def test_values_that_differ_by_less_than_any_slope_can_resolve_are_refused():
    with pytest.raises(ValueError, match="decision has values that differ by less than 1e-300"):
        PlattScaling().fit([0.0, 5e-324, 0.0, 5e-324], [False, True, False, True])


def test_integer_weights_equal_duplicated_values():
    values, positive, _ = decisions()
    counts = np.random.default_rng(1).integers(0, 4, len(values))
    weighted = PlattScaling().fit(values, positive, counts)
    repeated = PlattScaling().fit(np.repeat(values, counts), np.repeat(positive, counts))
    assert weighted.slope_ == pytest.approx(repeated.slope_, rel=1e-9)
    assert weighted.offset_ == pytest.approx(repeated.offset_, rel=1e-9, abs=1e-12)


def test_swapped_labels_mirror_the_probabilities():
    values, positive, _ = decisions()
    one = PlattScaling().fit(values, positive)
    other = PlattScaling().fit(values, ~positive)
    np.testing.assert_allclose(one.probability(values) + other.probability(values), 1, atol=1e-5)


def test_separable_values_stay_finite_and_reach_the_targets():
    values = np.array([-3.0, -2.0, 2.0, 3.0, 4.0])
    positive = values > 0
    probability = PlattScaling().fit(values, positive).probability(values)
    expected = targets(positive, np.ones(5))
    assert expected[-1] == 4 / 5
    np.testing.assert_allclose(probability, expected, atol=0.12)
    # Two values can be matched exactly.
    probability = PlattScaling().fit([-1.0, 1.0], [False, True]).probability([-1.0, 1.0])
    np.testing.assert_allclose(probability, [1 / 3, 2 / 3], atol=1e-5)


@pytest.mark.parametrize("positive", [True, False])
def test_one_class_gives_a_constant_probability(positive):
    fitted = PlattScaling().fit([-1.0, 0.0, 5.0], [positive] * 3)
    assert fitted.slope_ == 0.0
    expected = 4 / 5 if positive else 1 / 5
    np.testing.assert_allclose(fitted.probability([-1e6, 0.0, 3.0]), expected, rtol=1e-14)


def test_probability_follows_the_formula():
    fitted = PlattScaling()
    fitted.slope_, fitted.offset_ = -1.7, 0.4
    values = np.linspace(-20, 20, 101).reshape(1, 101)
    expected = 1 / (1 + np.exp(-1.7 * values + 0.4))
    probability = fitted.probability(values)
    assert probability.shape == values.shape
    np.testing.assert_allclose(probability, expected, rtol=1e-14)
    np.testing.assert_allclose(
        probability, reference.platt_probability(values, -1.7, 0.4), rtol=1e-14
    )


def test_probability_of_extreme_values_is_0_or_1_without_overflow():
    fitted = PlattScaling()
    fitted.slope_, fitted.offset_ = -1.0, 0.0
    values = np.array([-1e300, -2000.0, 2000.0, 1e300])
    np.testing.assert_array_equal(fitted.probability(values), [0, 0, 1, 1])
    np.testing.assert_array_equal(fitted.probability(values, std=1e200) <= 1, True)


def test_expected_probability_equals_the_reference_and_nearly_quadrature():
    fitted = PlattScaling()
    fitted.slope_, fitted.offset_ = -1.3, 0.2
    worst = 0.0
    for mean in (-4.0, -1.0, 0.0, 0.3, 2.0, 6.0):
        for std in (0.0, 0.1, 1.0, 3.0, 10.0, 40.0):
            probability = float(fitted.probability(mean, std))
            expected = reference.expected_platt_probability(mean, std, -1.3, 0.2)
            assert probability == pytest.approx(float(expected), abs=1e-14)

            def integrand(z, mean=mean, std=std):
                sigmoid = special.expit(1.3 * (mean + std * z) - 0.2)
                return sigmoid * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

            exact, _ = integrate.quad(integrand, -12, 12, limit=200)
            worst = max(worst, abs(probability - exact))
    assert 1e-6 <= worst <= 1e-4


def test_uncertain_values_are_drawn_towards_one_half():
    fitted = PlattScaling().fit(*decisions()[:2])
    midpoint = -fitted.offset_ / fitted.slope_
    std = np.array([0.0, 0.5, 1.0, 5.0, 1e6])
    above, below = fitted.probability(midpoint + 2, std), fitted.probability(midpoint - 2, std)
    assert (np.diff(above) < 0).all()
    np.testing.assert_allclose(above + below, 1, rtol=1e-12)
    assert above[-1] == pytest.approx(0.5, abs=1e-5)


@given(
    mean=st.floats(-1e6, 1e6),
    std=st.floats(0, 1e6),
    slope=st.floats(-1e3, 1e3),
    offset=st.floats(-1e3, 1e3),
)
def test_every_probability_is_between_0_and_1(mean, std, slope, offset):
    assert 0.0 <= _core.platt_probability(mean, std, slope, offset) <= 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0, 2.0], [0, 1]), TypeError, "positive must be boolean, got int"),
        (([1.0, 2.0], ["a", "b"]), TypeError, "positive must be boolean, got <U1"),
        (([1.0, 2.0], [True]), ValueError, "inconsistent numbers of samples"),
        (([1.0, 2.0], [True, False], [1.0]), ValueError, "inconsistent numbers of samples"),
        (([1.0, np.nan], [True, False]), ValueError, "decision contains NaN"),
        (([1.0, np.inf], [True, False]), ValueError, "decision contains infinity"),
        (([1.0, 2.0], [True, False], [1.0, -1.0]), ValueError, "weights row 1 is -1"),
        (([1.0, 2.0], [True, False], [1.0, np.nan]), ValueError, "weights row 1 is nan"),
        (([1.0, 2.0], [True, False], [0.0, 0.0]), ValueError, "positive sum"),
        (([], []), ValueError, "0 sample"),
        (([[1.0], [2.0]], [True, False]), ValueError, r"decision has shape \(2, 1\)"),
        (([1.0, 2.0], [[True], [False]]), ValueError, r"positive has shape \(2, 1\)"),
        (([1.0, 2.0], [True, False], [[1.0], [2.0]]), ValueError, "sample_weight has shape"),
    ],
)
def test_bad_arguments_are_errors_that_name_them(arguments, error, message):
    with pytest.raises(error, match=message):
        PlattScaling().fit(*arguments)


def test_unfitted_scaling_has_no_probabilities():
    with pytest.raises(NotFittedError):
        PlattScaling().probability([0.0])


def test_scaling_follows_the_conventions_of_estimators():
    values, positive, _ = decisions()
    fitted = PlattScaling()
    assert fitted.fit(values, positive) is fitted
    assert not hasattr(clone(fitted), "slope_")
    assert fitted.slope_ < 0  # larger decision values are more likely positive
