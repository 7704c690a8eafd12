"""uncertainty.welch: white noise, whose log band powers have known moments, and NumPy."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from halosvm.uncertainty import welch

FS = 64.0
BANDS = {"low": (2.0, 6.0), "high": (6.0, np.inf)}


def noise(n=3, channels=2, times=640, seed=0):
    return np.random.default_rng(seed).normal(size=(n, channels, times))


def test_white_noise_has_the_log_gamma_moments_of_theory():
    """K bins of a rectangular window are independent exponentials: their sum is Gamma(K)."""
    sigma, n_windows, size = 3.0, 20_000, 64
    signals = sigma * noise(2, 1, n_windows * size)
    X = welch(
        signals, FS, [(2, 6), (10, 11)], of="observations", nperseg=size, window="boxcar",
        detrend=False,
    )  # fmt: skip
    bins = np.array([4, 1])  # df = 1; the density is 2 sigma^2 / fs
    mean = np.log(2 * sigma**2 / FS) + digamma(bins)
    variance = polygamma(1, bins)
    se = np.sqrt(variance / n_windows)
    assert (np.abs(X.mean - mean) < 5 * se).all()
    np.testing.assert_allclose(X.covariances.values, np.tile(variance, (2, 1)), rtol=0.06)
    of_mean = welch(
        signals, FS, [(2, 6), (10, 11)], of="mean", nperseg=size, window="boxcar", detrend=False
    )
    np.testing.assert_allclose(of_mean.covariances.values * n_windows, X.covariances.values)


@pytest.mark.parametrize("noverlap", [0, 40])
def test_features_are_those_of_a_periodogram_written_out(noverlap):
    size, signals = 64, noise(2, 3, 320)
    X = welch(signals, FS, BANDS, of="observations", nperseg=size, noverlap=noverlap, kind="full")
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)  # Hann, periodic
    starts = range(0, 320 - size + 1, size - noverlap)
    for i, signal in enumerate(signals):
        rows = []
        for start in starts:
            part = signal[:, start : start + size]
            part = (part - part.mean(axis=1, keepdims=True)) * taper
            power = np.abs(np.fft.rfft(part)) ** 2 / (FS * np.sum(taper**2))
            power[:, 1:-1] *= 2
            f = np.fft.rfftfreq(size, 1 / FS)
            bands = [power[:, (f >= low) & (f < high)].sum(axis=1) for low, high in BANDS.values()]
            rows.append(np.log(np.array(bands).T.ravel()))  # channel by channel
        np.testing.assert_allclose(X.mean[i], np.mean(rows, axis=0), rtol=1e-10)
        covariance = np.cov(rows, rowvar=False)
        np.testing.assert_allclose(X.covariances.values[i], covariance, rtol=1e-8, atol=1e-12)


def test_signals_may_differ_in_length_and_storage():
    signals = noise(3)
    expected = welch(signals, FS, BANDS, of="mean", nperseg=64)
    X = welch(
        [signals[0], signals[1, :, :400], np.asfortranarray(signals[2])], FS, BANDS, of="mean",
        nperseg=64,
    )  # fmt: skip
    np.testing.assert_allclose(X.mean[[0, 2]], expected.mean[[0, 2]], rtol=1e-12)
    assert (X.covariances.values[1] != expected.covariances.values[1]).all()
    single = welch(signals.astype(np.float32), FS, BANDS, of="mean", nperseg=64)
    np.testing.assert_allclose(single.mean, expected.mean, atol=1e-5)


def test_shrinkage_and_low_rank_reach_the_estimate():
    options = {"of": "observations", "nperseg": 64}
    full = welch(noise(), FS, BANDS, **options, kind="full", shrinkage=0.5)
    low = welch(noise(), FS, BANDS, **options, kind="low_rank", shrinkage=0.5)
    plain = welch(noise(), FS, BANDS, **options, kind="full")
    np.testing.assert_allclose(low.covariances.to_full(), full.covariances.values, atol=1e-12)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(
        full.covariances.values[:, off], plain.covariances.values[:, off] / 2
    )


SILENT = noise(1)
SILENT[0, 1, 64:128] = 0.0
MISSING = noise(1)
MISSING[0, 1, 5] = np.nan


@pytest.mark.parametrize(
    ("signals", "options", "message"),
    [
        (SILENT, {}, r"signals\[0\]: channel 1 has no power in band low in window 1"),
        (MISSING, {}, r"signals\[0\] row 1, column 5 is nan"),
        (noise(1, times=127), {}, r"signals\[0\] has 127 samples; two windows of 64 need 128"),
        ([noise()[0], noise()[0, :1]], {}, r"signals\[1\] has 1 channels, signals\[0\] has 2"),
        (noise()[:, 0], {}, r"signals\[0\] has shape \(640,\)"),
        ([], {}, "signals is empty"),
        (noise(1, 0), {}, r"signals\[0\] has shape \(0, 640\)"),
        (noise(), {"bands": {"thin": (2.1, 2.9)}}, "bands: thin holds none of the frequencies"),
        (noise(), {"bands": {"odd": (6, 2)}}, r"bands: odd is \[6, 2\)"),
        (noise(), {"bands": [(np.nan, 2)]}, "it needs 0 <= low < high"),
        (noise(), {"bands": []}, "bands is empty"),
        (noise(), {"bands": {}}, "bands is empty"),
        (noise(), {"bands": (4, 8)}, r"bands has shape \(2,\), expected \(n_bands, 2\)"),
        (noise(), {"bands": {"low": 4}}, r"bands\['low'\] has shape \(\), expected \(2,\)"),
        (noise(), {"noverlap": 64}, "noverlap must be less than nperseg = 64"),
        (noise(), {"noverlap": 8, "of": "mean"}, "windows that do not overlap"),
        (noise(), {"fs": 0.0}, "fs must be positive and finite"),
        (noise(), {"nperseg": 1}, "nperseg must be at least 2"),
        (noise(), {"of": "window"}, "of must be 'observations' or 'mean'"),
    ],
)
def test_bad_input_is_named(signals, options, message):
    arguments = {"fs": FS, "bands": BANDS, "of": "observations", "nperseg": 64, **options}
    with pytest.raises(ValueError, match=message):
        welch(signals, **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fs": "128"}, "fs must be a number, got '128'"),
        ({"bands": {"low": ("4", "8")}}, r"bands\['low'\] has dtype <U1"),
        ({"bands": None}, "bands has dtype object"),
    ],
)
def test_numbers_must_be_numbers(options, message):
    arguments = {"fs": FS, "bands": BANDS, "of": "observations", "nperseg": 64, **options}
    with pytest.raises(TypeError, match=message):
        welch(noise(), **arguments)
