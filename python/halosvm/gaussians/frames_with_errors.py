"""Frames that hold the errors of columns in other columns: a frame in, features and errors out.

Which column holds the errors of which, its name says; see `halosvm.checks.error_names`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import frames, reading, units
from halosvm.checks.error_names import (
    INVERSE_VARIANCE,
    STD,
    ErrorColumn,
    error_columns,
    held_by,
    look_alikes,
    pairs_in_words,
    unequal_sides_told,
)
from halosvm.core.user_warning import warn_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Pairs = dict[str, ErrorColumn]


def features_and_errors(
    frame: Any, label: str | Sequence[str] | None, errors: Mapping[str, Any] | None
) -> tuple[list[str], Pairs]:
    """Return the features of a frame and the error columns of those that have one.

    Pairs that names alone make are told in a warning, and so are features that look like errors.
    """
    found = frames.feature_names_of(frame, "frame")
    if found is None:
        raise TypeError(
            f"frame is {type(frame).__name__} without names of columns; a data frame or a table "
            "with names is needed"
        )
    names: list[str] = found.tolist()
    labels = [label] if isinstance(label, str) else list(label or ())
    given = {} if errors is None else dict(errors)
    pairs = {f: (c,) if isinstance(c, str) else tuple(c) for f, c in given.items()}
    for name in (*labels, *pairs, *(column for pair in pairs.values() for column in pair)):
        if name not in names:
            raise ValueError(f"frame has no column {name!r}; its columns are {', '.join(names)}")
    numbers = [name for name in names if name not in labels]
    if errors is None:
        known = error_columns(numbers, set(numbers), "name the one to use in errors")
    else:
        known = {f: ErrorColumn(pair, held_by(pair, STD)) for f, pair in pairs.items()}
    used = {column for error in known.values() for column in error.names}
    features = [name for name in numbers if name not in used]
    for feature in known:
        if feature not in features:
            raise ValueError(f"errors: {feature!r} is no feature, but a label or an error column")
    if not features:
        raise ValueError("frame has no column of a feature")
    if known and errors is None:
        warn_user(
            f"taken as errors: {pairs_in_words(known)}; say so by errors={{feature: column}}, or "
            "errors={} where all are features",
            UserWarning,
        )
    if errors is None:
        warn_of_errors_among(features)
    return features, known


def warn_of_errors_among(features: Iterable[str]) -> None:
    """Warn of features whose names say that they hold the errors of others."""
    alike = _alike(tuple(features))
    if alike:
        shown = ", ".join(f"{name!r} of {owner!r}" for name, owner in alike.items())
        warn_user(
            f"columns that look like errors are taken as features: {shown}; "
            "Gaussians.from_frame(frame, errors={feature: column}) takes them as errors",
            UserWarning,
        )


@lru_cache(maxsize=8)  # a search fits the same features again and again
def _alike(features: tuple[str, ...]) -> dict[str, str]:
    return look_alikes(features, features)


def columns_of(frame: Any, names: Sequence[str]) -> Any:
    """Return some columns of a frame or a table."""
    return frame.select(names) if hasattr(frame, "select") else frame[list(names)]


def read_std(frame: Any, features: Sequence[str], errors: Pairs, unit: Any) -> NDArray[np.float64]:
    """Return standard deviations, 0 of features without errors, in the units of the features."""
    names = [name for error in errors.values() for name in error.names]
    bare, own = units.split(columns_of(frame, names))
    block = reading.as_float_array(bare, "frame", len(frame), len(names)).astype(np.float64)
    of_errors, of_features = (each or (None,) * n for each, n in ((own, len(names)), (unit, 0)))
    std = np.zeros((len(frame), len(features)))
    begin, sides = 0, {}
    for feature, error in errors.items():
        j, end = features.index(feature), begin + len(error.names)
        std[:, j] = standard_deviations(block[:, begin:end], error)
        if len(error.names) > 1:
            sides[feature] = block[:, begin:end]
        if own is not None or unit is not None:
            power = 1 if error.holds == STD else 2
            given = of_errors[begin]
            if error.holds == INVERSE_VARIANCE and given is not None:
                given = given**-1
            wanted = of_features[j] if of_features else None
            factors = units.error_factors(
                None if given is None else (given,),
                None if wanted is None else (wanted,),
                2,
                f"column {error.names[0]!r}",
                f"column {feature!r}",
                power=power,
            )
            std[:, j] *= 1.0 if factors is None else float(factors[0]) ** (1 / power)
        begin = end
    if told := unequal_sides_told(sides):
        warn_user(told, UserWarning)
    return std


def standard_deviations(values: NDArray[np.float64], error: ErrorColumn) -> NDArray[np.float64]:
    """Return what the columns of the errors of one feature say, as standard deviations."""
    if len(error.names) > 1:
        values = np.abs(values)
    bad = np.argwhere(~(values >= 0) | np.isinf(values))
    if len(bad):
        row, j = bad[0]
        raise ValueError(
            f"column {error.names[j]!r}, row {row} is {values[row, j]:g}; an error must be >= 0 "
            "and finite"
        )
    column: NDArray[np.float64] = values.mean(axis=1)
    if error.holds == INVERSE_VARIANCE:
        if not column.all():
            row = int(np.argmin(column))
            raise ValueError(
                f"column {error.names[0]!r}, row {row} is 0, an infinite error; leave out the row"
            )
        column = 1.0 / column
    if error.holds != STD:
        np.sqrt(column, out=column)
    return column
