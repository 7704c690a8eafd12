"""Gaussians of log band powers of signals, by Welch's method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import reading
from halosvm.checks.parameters import require_number
from halosvm.uncertainty.samples import from_samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.gaussians.sample_covariances import BagKind, Of, Shrinkage

    Array = NDArray[np.float64]
    Band = tuple[str, float, float]


_ROUNDING = 64 * np.finfo(np.float64).eps


def welch(
    signals: Iterable[ArrayLike],
    fs: float,
    bands: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]],
    *,
    of: Of,
    nperseg: int = 256,
    noverlap: int = 0,
    window: Any = "hann",
    detrend: Any = "constant",
    kind: BagKind = "diagonal",
    shrinkage: Shrinkage = None,
) -> Gaussians:
    r"""Model the log band powers of multichannel signals, with their spread between windows.

    A signal is cut into windows. In window k the power of a band is the integral of the
    periodogram :math:`P_k` (scaled as a one-sided power spectral density), and the feature is the
    natural logarithm

    .. math:: x_k = \log \sum_{low \le f < high} P_k(f)\, \Delta f

    Mean and covariance of these vectors over the windows are those of `from_samples`.

    Parameters
    ----------
    signals : array-like of shape (n_samples, n_channels, n_times), or iterable
        The signals; those of an iterable are (n_channels, n_times_i) and may differ in length.
    fs : float
        Sampling frequency, in hertz if the bands are.
    bands : mapping of names to (low, high), or sequence of (low, high)
        Frequencies; low belongs to the band, high does not and may be infinite.
    of : {"observations", "mean"}
        Covariance of the log power in one window, or of its mean over all windows, which must then
        not overlap: only independent windows have a mean of N times less variance.
    nperseg : int, default=256
        Length of a window; frequencies are fs / nperseg apart.
    noverlap : int, default=0
        Samples that a window shares with the next.
    window, detrend
        As in `scipy.signal.welch`.
    kind : {"diagonal", "full", "low_rank"}, default="diagonal"
        What to keep of the covariance.
    shrinkage : float, "ledoit_wolf" or None
        As in `from_samples`.

    Returns
    -------
    Gaussians
        Feature ``c * len(bands) + b`` is the log power of channel c in band b, in
        log(unit of the signal squared).

    Raises
    ------
    ValueError, TypeError
        For signals shorter than two windows, bands between two frequencies, missing values, and
        windows without power, whose logarithm is infinite.

    References
    ----------
    P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE
    Transactions on Audio and Electroacoustics 15 (1967); C. Tzelepis, V. Mezaris and I. Patras,
    IEEE Transactions on Pattern Analysis and Machine Intelligence 40 (2018), section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import welch
    >>> signals = np.random.default_rng(0).normal(size=(3, 2, 1024))
    >>> X = welch(signals, 128.0, {"theta": (4, 8), "alpha": (8, 12)}, of="observations")
    >>> X.shape
    (3, 4)
    """
    edges = _read_bands(bands)
    nperseg = reading.as_count(nperseg, "nperseg", 2)
    noverlap = reading.as_count(noverlap, "noverlap", 0)
    if noverlap >= nperseg:
        raise ValueError(f"noverlap must be less than nperseg = {nperseg}, got {noverlap}")
    if of == "mean" and noverlap:
        raise ValueError("of='mean' needs windows that do not overlap: noverlap must be 0")
    require_number(fs, "fs")
    cut = {"nperseg": nperseg, "noverlap": noverlap, "window": window, "detrend": detrend}
    bags: list[Array] = []
    for i, each in enumerate(signals):
        signal = reading.as_float_array(each, f"signals[{i}]", "n_channels", "n_times")
        reading.require_shape(signal, f"signals[{i}]", signal.shape[0] or "n_features", "n_times")
        reading.require_in_range(signal, f"signals[{i}]")
        if signal.shape[1] < 2 * nperseg - noverlap:
            raise ValueError(
                f"signals[{i}] has {signal.shape[1]} samples; two windows of {nperseg} need "
                f"{2 * nperseg - noverlap}"
            )
        bags.append(_log_powers(signal.astype(np.float64, copy=False), fs, edges, cut, i))
        if bags[i].shape[1] != bags[0].shape[1]:
            raise ValueError(
                f"signals[{i}] has {len(signal)} channels, signals[0] has "
                f"{bags[0].shape[1] // len(edges)}"
            )
    if not bags:
        raise ValueError("signals is empty; at least one signal is needed")
    return from_samples(bags, of=of, kind=kind, shrinkage=shrinkage)


def _read_bands(bands: Any) -> list[Band]:
    """Return the name, low and high of each band; the name of one without is its interval."""
    if hasattr(bands, "keys"):
        each = [reading.as_float_array(bands[name], f"bands[{name!r}]", 2) for name in bands]
        pairs, names = np.reshape(each, (-1, 2)).tolist(), list(bands)
    else:
        read = reading.as_float_array(bands, "bands")
        if read.size:
            reading.require_shape(read, "bands", "n_bands", 2)
        pairs = read.reshape(-1, 2).tolist()
        names = [f"({low:g}, {high:g})" for low, high in pairs]
    if not pairs:
        raise ValueError("bands is empty; at least one band is needed")
    for name, (low, high) in zip(names, pairs, strict=True):
        if not 0 <= low < high:
            raise ValueError(f"bands: {name} is [{low:g}, {high:g}); it needs 0 <= low < high")
    return [(name, low, high) for name, (low, high) in zip(names, pairs, strict=True)]


def _log_powers(
    signal: Array,
    fs: float,
    bands: list[Band],
    cut: dict[str, Any],
    number: int,
) -> Array:
    """Return the log band powers in each window, (n_windows, n_channels * n_bands)."""
    import scipy.signal  # slow to import, seldom needed

    frequencies, _, density = scipy.signal.spectrogram(signal, fs, mode="psd", **cut)
    # What detrending leaves of a constant is rounding of its size, and no power of the signal.
    rounding = np.square(_ROUNDING * np.abs(signal).max(axis=1, keepdims=True, initial=0.0))
    powers = []
    for name, low, high in bands:
        inside = (frequencies >= low) & (frequencies < high)
        if not inside.any():
            raise ValueError(
                f"bands: {name} holds none of the frequencies 0, {fs / cut['nperseg']:g}, ..., "
                f"{frequencies[-1]:g}; use a longer nperseg or a wider band"
            )
        powers.append(density[:, inside].sum(axis=1) * (frequencies[1] - frequencies[0]))
        empty = np.argwhere(~(powers[-1] > rounding))
        if len(empty):
            channel, segment = empty[0]
            raise ValueError(
                f"signals[{number}]: channel {channel} has no power in band {name} in window "
                f"{segment}, and no logarithm of it"
            )
    stacked = np.log(np.stack(powers, axis=1))  # n_channels, n_bands, n_windows
    return np.ascontiguousarray(stacked.reshape(-1, stacked.shape[-1]).T)
