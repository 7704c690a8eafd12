"""Long tables, a row for each value: objects, features, values and errors in; Gaussians out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import frames, reading, units
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.gaussians.groups import read_groups
from halosvm.uncertainty.repeats import combined_readings, pooled_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.gaussians import Gaussians

REPEATS = ("refuse", "combine")


def from_long(
    frame: Any = None,
    *,
    objects: str | ArrayLike,
    features: str | ArrayLike,
    values: str | ArrayLike,
    errors: str | ArrayLike | None = None,
    names: Sequence[str] | None = None,
    repeats: str = "refuse",
) -> Gaussians:
    """Read a long table: a row for each value, with the object and the feature that it is of.

    Parameters
    ----------
    frame : data frame or table, optional
        What holds the columns, if the others name some of it.
    objects : str or array-like of shape (n_rows,)
        The object of each row: numbers or names.
    features : str or array-like of shape (n_rows,)
        The feature of each row, likewise.
    values : str or array-like of shape (n_rows,)
        The values; NaN and masked entries are missing.
    errors : str or array-like of shape (n_rows,), optional
        Their standard deviations; infinite where a value is missing.
    names : sequence of str, optional
        The features to return, in this order, such as ``X.feature_names`` of training data. None
        takes all, in the order in which they appear.
    repeats : {"refuse", "combine"}, default="refuse"
        What to do with more than one value of an object and a feature. "combine" makes them one:
        weighted by their errors, as `combined_readings` does; without errors, their mean with the
        error that `pooled_errors` finds, also for all that are read once.

    Returns
    -------
    Gaussians
        One for each object, in ascending order, which `groups` holds; its method `labels_by_group`
        brings labels into it. A value is missing where the table has no row.

    Raises
    ------
    ValueError, TypeError
        For infinite values, errors that are negative, missing objects or features, and a second
        value of an object and a feature.

    Examples
    --------
    >>> from halosvm.uncertainty import from_long
    >>> table = {"star": ["s1", "s1", "s2"], "band": ["g", "r", "g"], "flux": [1.0, 1.5, 3.0]}
    >>> X = from_long(
    ...     objects=table["star"], features=table["band"], values=table["flux"], errors=[0.1] * 3
    ... )
    >>> X.groups.tolist(), X.feature_names.tolist()
    (['s1', 's2'], ['g', 'r'])
    >>> X.mean
    array([[1. , 1.5],
           [3. , nan]])
    """
    if repeats not in REPEATS:
        raise ValueError(f"repeats must be 'refuse' or 'combine', got {repeats!r}")
    given = {"objects": objects, "features": features, "values": values, "errors": errors}
    of = {name: _column(frame, column, name) for name, column in given.items()}
    x, unit = _numbers(of["values"], "values")
    std, error_unit = (None, None) if errors is None else _numbers(of["errors"], "errors", len(x))
    if std is not None:
        factors = units.error_factors(
            units.for_features(error_unit, 1), units.for_features(unit, 1), 1, "errors", "values"
        )
        std = std if factors is None else std * factors
        reading.refuse_where(std < 0, "errors", "it must be >= 0", std)
        reading.refuse_where(
            np.isnan(std) & ~np.isnan(x), "errors", "missing, but values has one there"
        )
    groups, row = read_groups(
        of["objects"], of["values"], len(x), argument="objects", other="values"
    )
    kinds, column = read_groups(
        of["features"], of["values"], len(x), argument="features", other="values"
    )
    order = np.argsort(np.unique(column, return_index=True)[1], kind="stable")
    called = [str(kinds[k]) for k in order.tolist()] if names is None else [*map(str, names)]
    place = {name: j for j, name in enumerate(called)}
    if len(place) < len(called):
        raise ValueError("names: a feature is named twice")
    wanted = np.array([place.get(str(kind), -1) for kind in kinds.tolist()])
    column = wanted[column]
    there = ~np.isnan(x) & (column >= 0)
    if std is not None:
        there &= np.isfinite(std)
    kept = np.flatnonzero(there)
    again = occurrences(row[kept], column[kept])
    if repeats == "refuse" and again.any():
        at = kept[np.argmax(again > 0)]
        raise ValueError(
            f"values: object {groups.tolist()[row[at]]!r} has a second value of "
            f"{called[column[at]]!r} in row {at}; repeats='combine' makes them one"
        )
    # A row for each object and number of a reading.
    n = len(groups)
    shape = (n * (int(again.max(initial=0)) + 1), len(called))
    at = again * n + row[kept], column[kept]
    wide = np.full(shape, np.nan)
    wide[at] = x[kept]
    spread = None
    if std is not None:
        spread = np.zeros(shape)
        spread[at] = std[kept]
    of_rows = np.tile(np.arange(n), shape[0] // n) if n else np.arange(0)
    if repeats == "refuse":
        X = as_gaussians(wide, X_std=spread, missing=True)
    elif spread is None:
        X = pooled_errors(wide, of_rows).X
    else:
        X = combined_readings(wide, of_rows, X_std=spread).X
    return X.replaced(
        feature_names=np.array(called, dtype=object),
        feature_units=units.for_features(unit, len(called)),
        groups=groups,
    )


def _column(frame: Any, column: Any, argument: str) -> Any:
    if column is None or not isinstance(column, str):
        return column
    if frame is None:
        raise TypeError(f"{argument} is {column!r}, the name of a column; give its frame")
    columns = frames.feature_names_of(frame, "frame")
    if columns is None or column not in columns:
        listed = "" if columns is None else f"; its columns are {', '.join(columns)}"
        raise ValueError(f"{argument}: frame has no column {column!r}{listed}")
    return frame[column]


def _numbers(values: Any, argument: str, *axes: int) -> tuple[NDArray[np.float64], Any]:
    bare, unit = units.split(values)
    read = reading.as_float_array(reading.unmasked(bare), argument, *(axes or ("n_rows",)))
    if argument == "values":
        bad = reading.beyond_limits(read) & ~np.isnan(read)
        rule = f"it must be finite and at most {reading.LARGEST:g} in size"
        reading.refuse_where(bad, argument, rule, read)
    return read.astype(np.float64, copy=False), unit


def occurrences(row: NDArray[np.intp], column: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many entries of the same row and column come before each."""
    order = np.lexsort((column, row))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(row[order]) != 0) | (np.diff(column[order]) != 0)
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(order))
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return found
