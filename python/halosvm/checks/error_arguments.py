"""The arguments std, variance and cov of Gaussians: what they mean, by their dimensions.

In:  means, and what the user gave as errors, under the names of the arguments that held them.
Out: arrays of means, and covariances; errors for what is unclear name the constructor to use.

Where missing values are allowed, a value is missing if it is NaN or masked, or if its error is
infinite. Its mean then is NaN; what its covariances are says nothing, and is finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from halosvm import _core
from halosvm.checks import frames, reading, units
from halosvm.checks.limits import read_limits, require_errors_of_limited
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from halosvm.checks.frames import FeatureNames
    from halosvm.checks.limits import Limits
    from halosvm.checks.reading import FloatArray, Rows
    from halosvm.checks.units import FeatureUnits


class Names(NamedTuple):
    """What the arguments are called where the user wrote them."""

    mean: str = "mean"
    std: str = "std"
    variance: str = "variance"
    cov: str = "cov"
    lower: str = "lower"
    upper: str = "upper"


OWN_NAMES = Names()
X_NAMES = Names("X", "X_std", "X_variance", "X_cov", "X_lower", "X_upper")


State: TypeAlias = (
    "tuple[Rows, Covariances, FeatureNames | None, FeatureUnits, None, Limits | None]"
)


def read_examples(
    names: Names, mean: ArrayLike, labels: frames.Labels, *, missing: bool = False, **spreads: Any
) -> State:
    """Return the checked state of Gaussians; errors speak in the user's words.

    `missing` tells whether values may be missing.
    """
    bare, unit = units.split(mean)
    if missing:
        bare = reading.unmasked(bare)
    means = reading.as_rows(bare, names.mean, "n_samples", "n_features")
    features = units.for_features(unit, means.shape[1])
    return with_errors(names, means, labels, features, missing=missing, **spreads)


def with_errors(
    names: Names,
    means: Rows,
    labels: frames.Labels,
    features: FeatureUnits,
    *,
    missing: bool,
    lower: Any = None,
    upper: Any = None,
    **spreads: Any,
) -> State:
    """Return the checked state of Gaussians of means that are read already."""
    limits = read_limits(lower, upper, names, means, labels, features)
    missing = missing and not sparse.issparse(means)
    means, covariances = _with_covariances(names, means, labels, features, missing, spreads, limits)
    if means.shape[0]:
        holes = np.isnan(means) if missing and np.isnan(means.min(initial=0.0)) else None
        there = means if holes is None else np.where(holes, np.zeros((), means.dtype), means)
        _core.Gaussians(there, covariances.core_view()).check(names.mean)
    return means, covariances, labels.names, features, None, limits


def _with_covariances(
    names: Names,
    means: Rows,
    labels: frames.Labels,
    features: FeatureUnits,
    missing: bool,
    spreads: dict[str, Any],
    limits: Limits | None,
) -> tuple[Rows, Covariances]:
    """Make covariances of the one of std, variance and cov that is given, of none zeros."""
    shape = means.shape
    given = {keyword: value for keyword, value in spreads.items() if value is not None}
    if not given:
        return means, Covariances.zero(*shape)
    if len(given) > 1:
        first, second = list(given)[:2]
        raise ValueError(
            f"{getattr(names, first)} and {getattr(names, second)} are both given; give one"
        )
    [(keyword, value)] = given.items()
    argument = getattr(names, keyword)
    if isinstance(value, Covariances):
        if keyword != "cov":
            raise TypeError(f"{argument} is Covariances; pass them as {names.cov}")
        _require_rows_and_columns(argument, value.shape, names.mean, shape)
        if features is not None:
            raise ValueError(
                f"{argument} is Covariances, which are plain numbers, and {names.mean} has "
                f"{units.text(features)}; pass {names.mean} as plain numbers of one unit too"
            )
        return means, value
    if names is X_NAMES:
        frames.require_labelled_values(value, argument, labels, names.mean)
    make = Covariances.from_std if keyword == "std" else Covariances.from_variance
    if sparse.issparse(value):
        _require_rows_and_columns(argument, value.shape, names.mean, shape)
        return means, make(value, argument=argument)
    bare, unit = units.split(value)
    array = reading.as_float_array(reading.unmasked(bare) if missing else bare, argument)
    if array.ndim == 0 and array == 0:
        return means, Covariances.zero(*shape)
    # A matrix is symmetric; what is not holds variances for each row, as in a fold of d rows.
    square = keyword == "cov" and array.shape == shape and shape[0] == shape[1] > 1
    if not square or np.array_equal(array, array.T, equal_nan=True):
        _refuse_unclear(array.shape, keyword, names, shape)
    if keyword == "cov" and array.shape == shape:
        _refuse_cut(array, names, shape)
    _require_rows_and_columns(argument, array.shape, names.mean, shape)
    power = 1 if keyword == "std" else 2
    array = units.matched_errors(
        array, unit, value, argument, labels, features, names.mean, power=power
    )
    if missing and not np.isfinite(array.max(initial=0.0)):
        means, array = _without_missing(means, array, names.mean, argument, limits)
    if array.ndim == 3:
        return means, Covariances.full(array, argument=argument)
    return means, make(array, shape[1], argument=argument)


def _without_missing(
    means: FloatArray, errors: FloatArray, mean: str, argument: str, limits: Limits | None
) -> tuple[FloatArray, FloatArray]:
    """Turn infinite errors into missing values, and the errors of missing values into 0."""
    own = np.einsum("njj->nj", errors) if errors.ndim == 3 else errors.reshape(len(errors), -1)
    missing = np.isnan(means) | (own == np.inf)
    if limits is not None:
        require_errors_of_limited(own, limits.there, argument, mean)
        missing &= ~limits.there
    errors = errors.copy()
    if errors.ndim == 3:
        errors[missing[:, :, np.newaxis] | missing[:, np.newaxis, :]] = 0
    else:
        errors[missing.all(axis=1) if errors.ndim == 1 else missing] = 0
    left = np.isnan(errors)
    if left.any():
        row, *column = np.unravel_index(int(np.argmax(left)), left.shape)
        place = "".join(f", column {j}" for j in column)
        raise ValueError(
            f"{argument}: row {row}{place} is nan, but {mean} has a value there; give it an error, "
            "0 if it is certain, or make the value NaN, which is missing"
        )
    return np.where(missing, np.array(np.nan, means.dtype), means), errors


def _refuse_unclear(
    given: tuple[int, ...], keyword: str, names: Names, shape: tuple[int, ...]
) -> None:
    """Raise ValueError for an array that its dimensions do not explain, with the way to say it."""
    n, d = shape
    argument, cov = getattr(names, keyword), f"pass {names.cov}=Covariances."
    make_iso, make_diagonal = (
        ("from_std", "from_std") if keyword == "std" else ("isotropic", "diagonal")
    )
    for_rows = f"{cov}{make_iso}({argument}, n_features={d})"
    for_features = f"{cov}{make_diagonal}(np.broadcast_to({argument}, ({n}, {d})))"
    for_all = f"{cov}full(np.broadcast_to({argument}, ({n}, {d}, {d})))"
    start = f"{argument} has shape {given}: "
    if len(given) == 0:
        raise ValueError(f"{argument} is a single number; for the same everywhere {for_features}")
    if given == (d,) and n == d > 1:
        raise ValueError(f"{start}for one value per row {for_rows}, per feature {for_features}")
    if given == (d,) and n != d:
        raise ValueError(
            f"{start}{names.mean} has {n} rows; for one value per feature {for_features}"
        )
    if keyword == "cov" and given == (d, d) and d > 1:
        if n != d:
            raise ValueError(f"{start}one matrix for {n} rows; to use it for all {for_all}")
        raise ValueError(
            f"{start}for variances per row and feature {cov}diagonal({argument}), "
            f"for one matrix for all rows {for_all}"
        )
    if len(given) > (3 if keyword == "cov" else 2):
        raise ValueError(
            f"{start}too many dimensions; matrices are given as {names.cov}, (n, d, d)"
        )


def _refuse_cut(array: FloatArray, names: Names, shape: tuple[int, ...]) -> None:
    """Raise ValueError for rows of one matrix for all, as cross-validation cuts where n == d."""
    n, d = shape
    if not 3 <= n < d:
        return
    own = []
    for row in array:  # whose entry on the diagonal is in the column that its own values make up
        columns = np.flatnonzero(np.isin(array[:8], row).all(axis=0) & (row > 0))
        if len(columns) != 1 or not np.isin(array[:, columns[0]], row).all():
            return
        own.append(int(columns[0]))
    part = array[:, own]
    if len(set(own)) == n and np.array_equal(part, part.T):
        cov, make = names.cov, f"pass {names.cov}=Covariances."
        raise ValueError(
            f"{cov} has shape {shape}: these are rows of one symmetric matrix, cut as one of {d} "
            f"examples would be; for one matrix for all of n rows {make}full("
            f"np.broadcast_to({cov}, (n, {d}, {d}))), for variances per row and feature "
            f"{make}diagonal({cov})"
        )


def _require_rows_and_columns(
    argument: str, given: tuple[int, ...], mean: str, shape: tuple[int, ...]
) -> None:
    for axis, size, expected in zip(("rows", "columns"), given, shape, strict=False):
        if size != expected:
            raise ValueError(f"{argument} has {size} {axis}, {mean} has {expected}")
