"""Equal values have no spread: nothing that asks for 0 is told of a rounded number."""

import numpy as np
import pytest

from halosvm import Covariances, GaussianMixtures, Gaussians, UncertainKernelSVC, median_gamma
from halosvm.gaussians.centring import centred, column_spreads
from halosvm.kernel.expected_kernel import resolve_gamma
from halosvm.uncertainty import from_samples, quantiles, welch

# Repeated 3, 6, 7, ... times, these have a rounded mean that is not their value.
VALUES = [0.1, 0.7, 1e-3, -12345.6789, 1e150, 1e-300]
COUNTS = [3, 7, 100, 569]


@pytest.mark.parametrize("count", COUNTS)
def test_deviations_of_equal_values_are_zero(count):
    repeated = np.tile(VALUES, (count, 1))
    assert (repeated.std(axis=0) != 0).any()  # the reason for all this
    mean, deviations = centred(repeated)
    np.testing.assert_array_equal(mean, VALUES)
    assert (deviations == 0).all()
    mean, deviations = centred(repeated, np.linspace(0.1, 1.0, count))
    np.testing.assert_array_equal(mean, VALUES)
    assert (deviations == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spreads_of_columns_are_standard_deviations_and_0_where_constant(dtype):
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(100, 5)) * [1.0, 1e-3, 1e30, 1e-30, 1.0] + [0, 1.0, 0, 0, 1e3]
    data = columns.astype(dtype)
    expected = data.astype(np.longdouble).std(axis=0)
    np.testing.assert_allclose(
        column_spreads(data), expected, rtol=1e-12 if dtype is np.float64 else 1e-6
    )
    constant = np.full((100, 3), 0.1, dtype)
    constant[::2, 1] = np.nextafter(dtype(0.1), dtype(1))  # the last digit, as 0.3 / 3 may have
    constant[:, 2] = 0.0
    np.testing.assert_array_equal(column_spreads(constant), 0.0)


def test_spreads_do_not_underflow_or_overflow():
    tiny = np.array([[0.0, 0.0], [1e-200, 1e150]])
    np.testing.assert_allclose(column_spreads(tiny), [0.5e-200, 0.5e150], rtol=1e-15)


@pytest.mark.parametrize("kind", ["full", "diagonal", "low_rank"])
@pytest.mark.parametrize("count", COUNTS)
def test_bags_of_equal_observations_are_certain(kind, count):
    X = from_samples([np.tile(VALUES[:4], (count, 1))] * 2, of="observations", kind=kind)
    np.testing.assert_array_equal(X.mean, [VALUES[:4]] * 2)
    assert (X.covariances.to_full() == 0).all()


def test_equal_quantiles_make_a_certain_value():
    levels = [0.1, 0.25, 0.5, 0.8, 0.9, 0.95]
    X = quantiles(np.repeat(np.array(VALUES[:4])[None, :, None], 6, axis=2), levels)
    np.testing.assert_array_equal(X.mean, [VALUES[:4]])
    assert (X.covariances.values == 0).all()


@pytest.mark.parametrize("value", VALUES[:4])
@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_the_gamma_of_equal_examples_is_1(value):
    points = Gaussians(np.full((7, 3), value))
    assert resolve_gamma("scale", points, "rbf") == [1.0]
    assert resolve_gamma("scale", points, "rbf", np.linspace(0.1, 1, 7)) == [1.0]
    weights = np.array([0.3, 0.7] * 6)
    mixtures = GaussianMixtures(np.full((12, 3), value), weights, 2)
    assert resolve_gamma("scale", mixtures, "rbf") == [1.0]
    with pytest.raises(ValueError, match="a median distance of 0"):
        median_gamma(mixtures)
    clf = UncertainKernelSVC().fit(np.full((7, 3), value), np.arange(7) % 2)
    assert clf.gamma_ == [1.0]


def test_moments_of_mixtures_are_those_of_their_law():
    rng = np.random.default_rng(1)
    means, std, weights = rng.normal(size=(6, 2)), rng.uniform(0, 1, (6, 2)), np.full(6, 1 / 3)
    got, traces = GaussianMixtures(Gaussians(means, std=std), weights, 3).moments()
    for i in range(2):
        own = slice(3 * i, 3 * i + 3)
        mean = means[own].mean(axis=0)
        np.testing.assert_allclose(got[i], mean, rtol=1e-13)
        second = (np.square(means[own]) + np.square(std[own])).mean(axis=0)
        np.testing.assert_allclose(traces[i], (second - mean**2).sum(), rtol=1e-13)


@pytest.mark.parametrize("detrend", ["constant", "linear"])
@pytest.mark.parametrize("value", VALUES[:4])
def test_a_constant_signal_has_no_power(detrend, value):
    signal = np.full((1, 2, 1024), value)
    with pytest.raises(ValueError, match="channel 0 has no power in band"):
        welch(signal, 1.0, [(0.01, 0.1)], of="observations", detrend=detrend)


def test_variances_of_certain_bags_join_as_certain():
    X = Covariances.from_samples([np.full((3, 2), 0.1)], "diagonal")
    assert (X.values == 0).all()
