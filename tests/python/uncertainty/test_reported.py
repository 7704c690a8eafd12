"""uncertainty.standard_errors, asymmetric_errors, quantiles: closed forms, quadrature, sampling."""

import numpy as np
import pytest
from cases import DTYPES, each
from scipy.integrate import quad
from scipy.stats import norm

from halosvm.uncertainty import asymmetric_errors, quantiles, standard_errors

VALUES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ERRORS = np.array([[0.1, 0.2], [0.0, 0.4], [0.5, 0.6]])
nan = np.nan


# ---- standard_errors -------------------------------------------------------------------------


@each("dtype", DTYPES)
def test_standard_errors_are_standard_deviations_of_the_means(dtype):
    X = standard_errors(VALUES.astype(dtype), ERRORS.astype(dtype))
    assert X.dtype == X.covariances.dtype == dtype
    assert (X.mean == VALUES.astype(dtype)).all()
    np.testing.assert_allclose(X.covariances.variances(), ERRORS**2, rtol=1e-6)
    assert standard_errors(VALUES, ERRORS[:, 0]).covariances.kind == "isotropic"


@pytest.mark.parametrize(
    "counts",
    [5, np.array([2, 3, 4]), np.array([[2, 3], [4, 5], [6, 7]])],
    ids=["one", "row", "all"],
)
def test_the_variance_of_one_observation_is_n_times_the_squared_error(counts):
    S = standard_errors(VALUES, ERRORS, n_observations=counts).covariances
    each = counts[:, None] if np.ndim(counts) == 1 else counts
    np.testing.assert_allclose(S.variances(), each * ERRORS**2, rtol=1e-14)


def test_observations_are_recovered_from_their_reported_means():
    draws = np.random.default_rng(0).normal(0.0, 3.0, (2000, 50, 1))
    errors = draws.std(axis=1, ddof=1) / np.sqrt(50)
    S = standard_errors(draws.mean(axis=1), errors, n_observations=50).covariances
    # the mean of 2000 sample variances has the relative error sqrt(2 / 49 / 2000) = 0.0045
    assert abs(S.variances().mean() / 9.0 - 1.0) < 0.02


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[nan, 1.0]], [[1.0, 1.0]]), "values row 0, column 0 is nan"),
        (([[1.0, 1.0]], [[1.0, nan]]), "errors row 0, column 1 is nan"),
        (([[1.0, 1.0]], [[1.0, -2.0]]), "errors row 0, column 1 is -2"),
        (([[1.0, 1.0]], [[1.0]]), r"errors has shape \(1, 1\), values have shape \(1, 2\)"),
        (([[1.0, 1.0]], None), "errors is needed"),
        (([[1.0, 1.0]], [[1.0, 1.0]], 0), "n_observations: row 0 is 0; it must be >= 1"),
        (([[1.0, 1.0]], [[1.0, 1.0]], [[1, nan]]), "n_observations: row 0, column 1 is nan"),
        (([[1.0, 1.0]], [[1.0, 1.0]], [1, 2]), r"n_observations has shape \(2,\)"),
        (([1.0, 1.0], [1.0, 1.0]), r"values has shape \(2,\)"),
    ],
)
def test_standard_errors_names_bad_input(arguments, message):
    values, errors, *counts = arguments
    with pytest.raises(ValueError, match=message):
        standard_errors(values, errors, n_observations=counts[0] if counts else None)


def test_masked_values_and_errors_do_not_pass():
    masked = np.ma.array(VALUES, mask=VALUES == 4.0)
    with pytest.raises(ValueError, match="values: row 1, column 1 is masked"):
        standard_errors(masked, ERRORS)
    with pytest.raises(ValueError, match="errors: row 1, column 1 is masked"):
        standard_errors(VALUES, np.ma.array(ERRORS, mask=masked.mask))


# ---- asymmetric_errors -----------------------------------------------------------------------


def moments(density, low, high):
    """Mean and variance of an unnormalised density on [low, 0] and [0, high]."""

    def integral(power):
        parts = [(low, 0.0), (0.0, high)]
        return sum(quad(lambda x: x**power * density(x), *part, epsabs=1e-13)[0] for part in parts)

    mean = integral(1) / integral(0)
    return mean, integral(2) / integral(0) - mean**2


@pytest.mark.parametrize(("lower", "upper"), [(0.5, 2.0), (1.0, 1.0), (3.0, 0.01)])
@pytest.mark.parametrize("center", ["median", "mode", "mean"])
def test_asymmetric_errors_have_the_moments_of_their_law(center, lower, upper):
    def density(x):
        width = lower if x < 0 else upper
        # pieces of equal mass for the median, of equal height for the mode
        return np.exp(-0.5 * (x / width) ** 2) / (width if center == "median" else 1.0)

    mean, variance = moments(density, -12 * lower, 12 * upper)
    if center == "mean":
        mean, variance = 0.0, (lower + upper) ** 2 / 4
    X = asymmetric_errors([[7.0]], [[lower]], [[upper]], center=center)
    np.testing.assert_allclose(X.mean, [[7.0 + mean]], rtol=1e-10)
    np.testing.assert_allclose(X.covariances.values, [[variance]], rtol=1e-9)


def test_equal_errors_are_standard_errors_for_every_center():
    for center in ("median", "mode", "mean"):
        X = asymmetric_errors(VALUES, ERRORS, ERRORS, center=center)
        assert (X.mean == VALUES).all()
        np.testing.assert_allclose(X.covariances.values, ERRORS**2, rtol=1e-15)


def test_limits_are_handled_as_told():
    lower, upper = np.array([[nan, 1.0, nan]]), np.array([[2.0, nan, 3.0]])
    values = np.zeros((1, 3))
    X = asymmetric_errors(values, lower, upper, center="mean", limits="one_sided")
    np.testing.assert_allclose(X.covariances.values, [[4.0, 1.0, 9.0]])
    X = asymmetric_errors(values, lower, upper, center="mean", limits=5)
    np.testing.assert_allclose(X.covariances.values, [[3.5**2, 9.0, 16.0]])
    X = asymmetric_errors(values, lower, upper, center="mean", limits=[0.0, 1.0, 5.0])
    np.testing.assert_allclose(X.covariances.values, [[1.0, 1.0, 16.0]])
    both = asymmetric_errors(values, lower * nan, upper * nan, center="mean", limits=2.0)
    np.testing.assert_allclose(both.covariances.values, [[4.0, 4.0, 4.0]])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[nan]], [[1.0]], [[1.0]]), {"limits": 3.0}, "values row 0, column 0 is nan"),
        (([[1.0]], [[nan]], [[1.0]]), {}, "lower: row 0, column 0 is missing"),
        (([[1.0]], [[1.0]], [[nan]]), {}, "upper: row 0, column 0 is missing"),
        (([[1.0]], [[nan]], [[nan]]), {"limits": "one_sided"}, "lower: row 0, column 0 is missing"),
        (([[1.0]], [[-0.5]], [[1.0]]), {}, "lower: row 0, column 0 is -0.5"),
        (([[1.0]], [[1.0]], [[np.inf]]), {"limits": 1.0}, "upper: row 0, column 0 is inf"),
        (([[1.0]], [[1.0]], [[1.0, 2.0]]), {}, r"upper has shape \(1, 2\), expected \(1, 1\)"),
        (([[1.0]], [[1.0]], [[1.0]]), {"center": "best"}, "center must be 'median'"),
        (([[1.0]], [[1.0]], [[1.0]]), {"limits": "drop"}, "limits must be 'error'"),
        (([[1.0]], [[1.0]], [[1.0]]), {"limits": [1.0, 2.0]}, r"limits has shape \(2,\)"),
        (([[1.0]], [[1.0]], [[1.0]]), {"limits": nan}, "limits: row 0 is nan"),
    ],
)
def test_asymmetric_errors_names_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        asymmetric_errors(*arguments, **options)


# ---- quantiles -------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [(0.16, 0.84), (0.25, 0.5, 0.75), (0.01, 0.2, 0.5, 0.9)])
def test_quantiles_of_normal_laws_give_them_back(levels):
    std = ERRORS + 0.1
    q = norm.ppf(np.array(levels), VALUES[:, :, None], std[:, :, None])
    X = quantiles(q, levels)
    np.testing.assert_allclose(X.mean, VALUES, rtol=1e-12)
    np.testing.assert_allclose(X.covariances.variances(), std**2, rtol=1e-11)


def test_quantiles_of_another_law_are_fitted_by_least_squares():
    levels, q = np.array([0.1, 0.5, 0.6, 0.95]), np.array([0.0, 1.0, 1.5, 7.0])
    slope, intercept = np.polyfit(norm.ppf(levels), q, 1)
    X = quantiles(q.reshape(1, 1, 4), levels)
    np.testing.assert_allclose(X.mean, [[intercept]], rtol=1e-12)
    np.testing.assert_allclose(X.covariances.variances(), [[slope**2]], rtol=1e-12)


def test_equal_quantiles_are_certain():
    X = quantiles(np.full((1, 2, 3), 0.1), [0.2, 0.5, 0.7])
    np.testing.assert_allclose(X.mean, 0.1)
    assert X.covariances.variances().max() < 1e-30


@pytest.mark.parametrize(
    ("values", "levels", "message"),
    [
        ([[[2.0, 1.0]]], [0.2, 0.8], "values: row 0, entry .0, 0. is -1; the step to the next"),
        ([[[nan, 1.0]]], [0.2, 0.8], "values: row 0, entry .0, 0. is nan"),
        ([[[1.0, 2.0]]], [0.8, 0.2], "probabilities must increase"),
        ([[[1.0, 2.0]]], [0.0, 0.2], "probabilities must be two or more between 0 and 1"),
        ([[[1.0]]], [0.5], "probabilities must be two or more"),
        ([[[1.0, 2.0]]], [0.1, nan], "probabilities: row 1 is nan"),
        ([[[1.0, 2.0]]], [0.1, 0.2, 0.3], r"values has shape \(1, 1, 2\)"),
    ],
)
def test_quantiles_names_bad_input(values, levels, message):
    with pytest.raises(ValueError, match=message):
        quantiles(values, levels)


def test_columns_of_errors_are_paired_by_name_refused_where_they_differ_and_may_have_own_names():
    pandas = pytest.importorskip("pandas")
    values = pandas.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "c"])
    swapped = values[["b", "a", "c"]]
    for X in (
        standard_errors(values, swapped),
        asymmetric_errors(values, swapped, values, center="mean"),
        standard_errors(values, values / values, n_observations=swapped**2),
    ):
        np.testing.assert_allclose(X.covariances.variances(), [[1.0, 4.0, 9.0]])
    errors = swapped.rename(columns={"a": "d"})
    message = "has column 0 named 'b', in values it is 'a'"
    with pytest.raises(ValueError, match=f"^errors {message}"):
        standard_errors(values, errors)
    with pytest.raises(ValueError, match=f"^n_observations {message}"):
        standard_errors(values, values, n_observations=errors)
    with pytest.raises(ValueError, match=f"^lower {message}"):
        asymmetric_errors(values, errors, values)
    with pytest.raises(ValueError, match=f"^upper {message}"):
        asymmetric_errors(values, values, errors)
    own = values.add_prefix("e_")
    for X in (standard_errors(values, own), asymmetric_errors(values, own, own)):
        assert list(X.feature_names) == ["a", "b", "c"]
        np.testing.assert_allclose(X.covariances.variances(), [[1.0, 4.0, 9.0]])
