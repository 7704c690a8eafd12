"""uncertainty.confidence_radius and intervals: exact laws, draws, boxes and labels."""

from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from cases import DTYPES, each
from scipy.stats import binom

from halosvm.reference import norm_spread, worst_case
from halosvm.uncertainty import confidence_radius, intervals

nan, inf = np.nan, np.inf
LOW = np.array([[1.0, -2.0], [0.0, 3.0], [5.0, 5.0]])
HIGH = np.array([[2.0, 4.0], [0.0, 3.5], [7.0, 5.5]])


# ---- confidence_radius -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 0.2, 0.05, 1e-3, 1e-15, 1e-200])
def test_the_gaussian_radius_is_the_quantile_of_the_normal_law(epsilon):
    with mpmath.workdps(40):
        radius = mpmath.mpf(confidence_radius(epsilon))
        # P(Z > r) has the slope -phi(r), so that a rounding of r moves it by r phi(r) units
        rounding = 4e-16 * radius * mpmath.npdf(radius)
        assert abs(mpmath.ncdf(-radius) - mpmath.mpf(epsilon)) <= rounding + mpmath.mpf(1e-17) * (
            epsilon == 0.5
        )


@pytest.mark.parametrize("epsilon", [0.999, 0.5, 0.2, 0.05, 1e-3])
def test_no_radius_below_that_of_chebyshev_holds_for_every_law(epsilon):
    # the law on two points that attains the bound: mean 0, variance 1, mass epsilon at its radius
    radius, e = confidence_radius(epsilon, "chebyshev"), Fraction(epsilon)
    far, near = (1 - e) / e, e / (1 - e)  # squares of the two points
    assert e * far + (1 - e) * near == 1
    assert e * e * far == (1 - e) * (1 - e) * near  # the mean is 0
    assert abs(Fraction(radius) ** 2 / far - 1) < 1e-15


def test_radii_of_an_array_are_those_of_its_entries():
    epsilon = np.array([[0.5, 0.1], [0.05, 1e-6]])
    for law in ("gaussian", "chebyshev"):
        each = [[confidence_radius(e, law) for e in row] for row in epsilon]
        np.testing.assert_array_equal(confidence_radius(epsilon, law), each)
        assert type(confidence_radius(0.1, law)) is float


def test_one_half_is_the_radius_zero_of_the_plain_hinge():
    radius = confidence_radius(0.5)
    assert radius == 0.0
    assert not np.signbit(radius)
    assert confidence_radius(0.5, "chebyshev") == 1.0


@pytest.mark.parametrize("epsilon", [0.3, 0.05, 0.001])
def test_the_chance_constraint_holds_on_draws_and_is_not_slack(epsilon):
    rng, n = np.random.default_rng(0), 1_000_000
    factor = rng.normal(size=(3, 3))
    w, b, y = rng.normal(size=3), 0.4, -1
    x = rng.normal(size=3)
    s = np.linalg.norm(factor.T @ w)
    xi = worst_case(1 - y * (w @ x + b), s, confidence_radius(epsilon))[0]
    assert xi > 0  # else the constraint is slack
    scores = (x + rng.normal(size=(n, 3)) @ factor.T) @ w + b
    held = np.count_nonzero(y * scores >= 1 - xi)
    # the count is binomial: both ends are missed once in a million seeds
    low, high = binom.ppf([5e-7, 1 - 5e-7], n, 1 - epsilon)
    assert low <= held <= high


def test_the_radius_in_print_would_not_hold():
    # sqrt(e / (1 - e)) at e = 0.05: the constraint would hold with probability 0.591 alone
    radius = confidence_radius(0.05, "chebyshev")
    assert abs(mpmath.ncdf(1 / radius) - 0.591) < 1e-3
    assert radius > confidence_radius(0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.6,), ValueError, "^epsilon is 0.6; it must be above 0 and at most 0.5, beyond which"),
        ((0.0,), ValueError, "^epsilon is 0; it must be above 0"),
        ((1.0, "chebyshev"), ValueError, "^epsilon is 1; it must be above 0 and below 1$"),
        ((nan,), ValueError, "^epsilon is nan"),
        (([0.1, -0.2],), ValueError, "^epsilon: row 1 is -0.2; it must be above 0"),
        (([0.1, 0.9],), ValueError, "^epsilon: row 1 is 0.9; it must be above 0 and at most 0.5"),
        ((0.1, "normal"), ValueError, "^law must be 'gaussian' or 'chebyshev', got 'normal'"),
        (("0.1",), TypeError, "^epsilon has dtype"),
    ],
)
def test_confidence_radius_names_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        confidence_radius(*arguments)


# ---- intervals -------------------------------------------------------------------------------


@each("dtype", DTYPES)
def test_intervals_are_middles_with_half_widths(dtype):
    X = intervals(LOW.astype(dtype), HIGH.astype(dtype))
    np.testing.assert_allclose(X.mean, (LOW + HIGH) / 2)
    np.testing.assert_allclose(X.covariances.variances(), ((HIGH - LOW) / 2) ** 2)
    assert X.covariances.kind == "diagonal"


def test_the_worst_case_in_the_box_is_that_of_the_corners():
    X, w, b = intervals(LOW, HIGH), np.array([0.7, -1.3]), 0.1
    for y in (-1, 1):
        s = norm_spread(X.covariances, w, inf)[0]
        found = worst_case(1 - y * (X.mean @ w + b), s)[0]
        corners = [
            np.maximum(0, 1 - y * (np.column_stack([p[:, 0], q[:, 1]]) @ w + b))
            for p in (LOW, HIGH)
            for q in (LOW, HIGH)
        ]
        np.testing.assert_allclose(found, np.max(corners, axis=0), rtol=1e-14)


def test_a_narrow_interval_far_from_zero_keeps_its_digits():
    X = intervals([[1e15]], [[1e15 + 1]])
    assert X.mean == 1e15 + 0.5
    assert X.covariances.variances() == 0.25


def test_intervals_of_frames_are_paired_by_rows_and_columns():
    low = pd.DataFrame(LOW, columns=["a", "b"], index=["x", "y", "z"])
    high = pd.DataFrame(HIGH, columns=["a", "b"], index=["x", "y", "z"])
    X = intervals(low, high.loc[["z", "x", "y"], ["b", "a"]])
    np.testing.assert_array_equal(X.mean, (LOW + HIGH) / 2)
    assert list(X.feature_names) == ["a", "b"]
    np.testing.assert_array_equal(intervals(low, HIGH).mean, X.mean)


def test_columns_whose_order_the_names_cannot_tell_are_refused():
    low = pd.DataFrame(LOW, columns=["a_low", "b_low"])
    high = pd.DataFrame(HIGH, columns=["b_high", "a_high"])
    with pytest.raises(ValueError, match=r"^high has a column named 'b_high', low has none; give"):
        intervals(low, high)
    np.testing.assert_array_equal(intervals(low, high.to_numpy()).mean, (LOW + HIGH) / 2)


def test_tables_with_a_unit_for_each_column_are_converted_column_by_column():
    u = pytest.importorskip("astropy.units")
    from astropy.table import QTable

    low = QTable({"a": LOW[:, 0] * u.m, "b": LOW[:, 1] * u.s})
    high = QTable({"b": HIGH[:, 1] * 1000 * u.ms, "a": HIGH[:, 0] * 100 * u.cm})
    X = intervals(low, high)
    np.testing.assert_allclose(X.mean, (LOW + HIGH) / 2, rtol=1e-15)
    assert X.feature_units == (u.m, u.s)


def test_temperatures_are_converted_with_their_offset():
    pint = pytest.importorskip("pint")
    Q = pint.UnitRegistry(autoconvert_offset_to_baseunit=True).Quantity
    X = intervals(Q(np.array([[0.0]]), "degC"), Q(np.array([[283.15]]), "kelvin"))
    np.testing.assert_allclose(X.mean, [[5.0]], atol=1e-12)
    np.testing.assert_allclose(X.covariances.variances(), [[25.0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], [[1.5, 1.75]]), "high - low: row 0, column 1 is -0.25; high must not be"),
        (([[nan]], [[1.0]]), "low row 0, column 0 is nan"),
        (([[0.0]], [[inf]]), "high row 0, column 0 is inf"),
        (([[0.0, 1.0]], [[1.0]]), r"high has shape \(1, 1\), low has shape \(1, 2\)"),
        (([0.0, 1.0], [1.0, 2.0]), r"low has shape \(2,\)"),
        (([[-1e100]], [[1e100]]), r"\(high - low\) / 2 row 0, column 0 is 1e\+100; values beyond"),
    ],
)
def test_intervals_name_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        intervals(*arguments)
