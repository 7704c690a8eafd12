"""Covariances estimated from bags of repeated observations, one bag per example.

In:  arrays of observations of any number, or one array with the number of the example of each row.
Out: for each bag a matrix, a diagonal or a factor, as `Covariances` stores them.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from halosvm.checks import reading
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians.centring import centred
from halosvm.gaussians.groups import read_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Packed = tuple[Array, NDArray[np.int64] | None, Array | None, tuple[int, ...]]

BagKind: TypeAlias = Literal["full", "diagonal", "low_rank"]
Shrinkage: TypeAlias = float | Literal["ledoit_wolf"] | None
Of: TypeAlias = Literal["observations", "mean"]


def as_bags(samples: Iterable[Any]) -> list[Array]:
    """Read bags of observations: (N_i, d) arrays, N_i >= 2, one d for all, finite values."""
    axes = ("n_observations", "n_features")
    read = [reading.as_float_array(bag, f"samples[{i}]", *axes) for i, bag in enumerate(samples)]
    bags = [bag.astype(np.float64, copy=False) for bag in read]
    if not bags:
        raise ValueError("samples is empty; it needs at least one bag of observations")
    for i, bag in enumerate(bags):
        reading.require_shape(bag, f"samples[{i}]", "n_observations", bags[0].shape[1])
        if len(bag) < 2:
            raise ValueError(
                f"samples[{i}] holds {len(bag)} observation(s); a sample covariance needs 2 or more"
            )
        reading.require_in_range(bag, f"samples[{i}]")
    return bags


def split_by_group(samples: Any, groups: Any) -> tuple[NDArray[Any], list[Array]]:
    """Return the groups in ascending order, and the bag of observations of each."""
    axes = ("n_observations", "n_features")
    observations = reading.as_float_array(samples, "samples", *axes).astype(np.float64, copy=False)
    reading.require_in_range(observations, "samples")
    names, codes = read_groups(groups, samples, len(observations))
    sizes = np.bincount(codes)
    if (sizes < 2).any():
        raise ValueError(
            f"groups: {names.tolist()[np.argmax(sizes < 2)]!r} has one observation; a sample "
            "covariance needs 2 or more, and halosvm.uncertainty.pooled_errors lends it the others'"
        )
    rows = np.argsort(codes, kind="stable")
    return names, np.split(observations[rows], np.cumsum(sizes)[:-1])


def check_options(kind: str, shrinkage: Shrinkage, of: str) -> None:
    """Raise for options of `covariance_of_bag` that do not exist."""
    for name, value, allowed in (
        ("kind", kind, tuple(_ESTIMATES)),
        ("of", of, ("observations", "mean")),
    ):
        if value not in allowed:
            listed = " or ".join(map(repr, allowed[-2:]))
            listed = ", ".join([*map(repr, allowed[:-2]), listed])
            raise ValueError(f"{name} must be {listed}, got {value!r}")
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "ledoit_wolf"):
        return
    number = isinstance(shrinkage, numbers.Real) and not isinstance(shrinkage, bool)
    if not number or not 0.0 <= float(shrinkage) <= 1.0:
        raise ValueError(
            f"shrinkage must be None, 'ledoit_wolf' or between 0 and 1, got {shrinkage!r}"
        )


def covariance_of_bag(
    bag: Array, kind: BagKind, shrinkage: Shrinkage = None, of: Of = "observations"
) -> tuple[Array, float]:
    """Estimate the covariance ``S`` of one bag of N observations, unbiased without shrinkage.

    ``S = (1 - a) C + a tr(C) / d I`` with C the sample covariance (ddof = 1) and a the shrinkage;
    the mean of the bag has the covariance ``S / N``.

    Returns
    -------
    array : ndarray of shape (d, d), (d,) or (d, rank)
        S, its diagonal, or a factor F, rank <= N - 1, for which ``S = F F' + added I``.
    added : float
        0 unless the kind is "low_rank".
    """
    n, d = bag.shape
    _, deviations = centred(bag)
    a = 0.0 if shrinkage is None else shrinkage
    if isinstance(a, str):
        a = _ledoit_wolf_share(deviations)
    deviations /= np.sqrt((n - 1) * (n if of == "mean" else 1))
    added = a * float(np.square(deviations).sum()) / d
    if a:
        deviations *= np.sqrt(1.0 - a)
    return _ESTIMATES[kind].of_bag(deviations, added)


def _ledoit_wolf_share(deviations: Array) -> float:
    """Return the share of the identity, which depends on no unit and is 0 to 1 but for rounding."""
    from sklearn.covariance import ledoit_wolf_shrinkage  # slow to import, seldom needed

    largest = np.abs(deviations).max()
    if largest == 0.0:
        return 0.0
    return min(max(float(ledoit_wolf_shrinkage(deviations / largest)), 0.0), 1.0)


def estimate_covariances(
    samples: Iterable[Any], kind: BagKind, shrinkage: Shrinkage, of: Of
) -> Packed:
    """Return values, offsets, diagonal_values and shape of Covariances of that kind."""
    check_options(kind, shrinkage, of)
    bags = as_bags(samples)
    estimates = [covariance_of_bag(bag, kind, shrinkage, of) for bag in bags]
    return _ESTIMATES[kind].packed(estimates)


class _Estimate(NamedTuple):
    """What a kind keeps of scaled deviations, and how `Covariances` stores that of all bags."""

    of_bag: Callable[[Array, float], tuple[Array, float]]
    packed: Callable[[list[tuple[Array, float]]], Packed]


def _diagonal(deviations: Array, added: float) -> tuple[Array, float]:
    return np.asarray(np.square(deviations).sum(axis=0)) + added, 0.0


def _full(deviations: Array, added: float) -> tuple[Array, float]:
    return np.asarray(deviations.T @ deviations) + added * np.eye(deviations.shape[1]), 0.0


def _factor(deviations: Array, added: float) -> tuple[Array, float]:
    _, scales, directions = np.linalg.svd(deviations, full_matrices=False)
    # Centring costs one rank; what the decomposition leaves in its place is rounding.
    kept = scales > scales[0] * max(deviations.shape) * np.finfo(np.float64).eps
    rank = min(np.count_nonzero(kept), len(deviations) - 1)
    return np.ascontiguousarray((directions[:rank] * scales[:rank, np.newaxis]).T), added


def _stacked(estimates: list[tuple[Array, float]]) -> Packed:
    values = np.stack([estimate for estimate, _ in estimates])
    return values, None, None, values.shape


def _as_factors(estimates: list[tuple[Array, float]]) -> Packed:
    factors, offsets, shape = arrays.read_factors([factor for factor, _ in estimates])
    shrunk = [added for _, added in estimates]
    diagonal = np.repeat(shrunk, shape[1]).reshape(shape) if any(shrunk) else None
    return np.asarray(factors, np.float64), offsets, diagonal, shape


_ESTIMATES: dict[str, _Estimate] = {
    "full": _Estimate(_full, _stacked),
    "diagonal": _Estimate(_diagonal, _stacked),
    "low_rank": _Estimate(_factor, _as_factors),
}
