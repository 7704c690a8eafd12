"""Labels of data frames: names of columns and of rows in, the order that pairs two frames out.

Values are paired by their labels where both sides have some, and by position where one has none.
What cannot be paired is refused: no label is ever passed over. An estimator, which may stand behind
a transformer, refuses errors with names for values without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

FeatureNames: TypeAlias = NDArray[np.object_]


class Labels(NamedTuple):
    """What a data frame calls its columns and its rows; None for what has no names."""

    names: FeatureNames | None = None
    index: Any = None


def labels_of(array: Any, argument: str) -> Labels:
    """Return the labels of a data frame, a table, or a column, of others none."""
    return Labels(feature_names_of(array, argument), index_of(array))


def columns_of(table: Any) -> dict[str, Any] | None:
    """Return the columns of a table of astropy or pyarrow or a structured array, of others None."""
    names = getattr(table, "colnames", None)
    if names is None and not hasattr(table, "to_numpy"):  # of frames it would be a column
        names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(getattr(table, "dtype", None), "names", None)
    return None if names is None else {name: table[name] for name in names}


def feature_names_of(array: Any, argument: str) -> FeatureNames | None:
    """Return the column names of a frame or a table if all are strings, as scikit-learn does."""
    columns = columns_of(array)
    if columns is None and hasattr(array, "to_numpy"):
        columns = getattr(array, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        raise TypeError(f"{argument} has column names that are only partly strings: {names}")
    return np.array(names, dtype=object) if texts else None


def index_of(array: Any) -> Any:
    """Return the pandas index of a frame or a column, None for what has no labels of rows."""
    index = getattr(array, "index", None)
    return index if hasattr(array, "to_numpy") and hasattr(index, "get_indexer") else None


def paired(
    values: NDArray[Any], given: Any, argument: str, labels: Labels, other: str
) -> NDArray[Any]:
    """Return values in the order of the labels of the other side.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or (n_samples, n_features)
        What was read from `given`.
    given : array-like
        The frame, whose labels count; without any, the values are returned as they are.
    argument, other : str
        What both sides are called in error messages.
    labels : Labels
        Of the other side.

    Raises
    ------
    ValueError
        If the labels are others; the message names the first.
    """
    own = labels_of(given, argument)
    if own.index is not None and labels.index is not None and values.ndim:
        rows = _order_of_rows(argument, own.index, other, labels.index)
        values = values if rows is None else values[rows]
    if own.names is not None and labels.names is not None and values.ndim == 2:
        columns = _order_of_columns(argument, list(own.names), other, list(labels.names))
        values = values if columns is None else np.ascontiguousarray(values[:, columns])
    return values


def require_labelled_values(given: Any, argument: str, labels: Labels, other: str) -> None:
    """Raise ValueError for errors with column names, if the values they belong to have none.

    Values that had names and lost them went through a transformer, which left the errors behind.
    """
    if labels.names is None and feature_names_of(given, argument) is not None:
        raise ValueError(
            f"{argument} has column names and {other} has none, as after a transformer of {other} "
            f"alone, to which the errors would not belong: UncertainStandardScaler and "
            f"Propagate(transformer) take both. If they do belong together, pass "
            f"{argument}.to_numpy(), or {other} with its names"
        )


def require_same_index(argument: str, given: Any, other: str, index: Any) -> None:
    """Raise ValueError unless a column has the index of the other side, in the same order.

    For labels and weights, which scikit-learn pairs by position: another order is ambiguous.
    """
    own = index_of(given)
    if own is None or index is None or len(own) != len(index) or own.equals(index):
        return
    remedy = "give both one index in the same order, or pass"
    if other == "X.groups":
        remedy = f"pass X.labels_by_group({argument}), or"
    for i, (label, expected) in enumerate(zip(own.tolist(), index.tolist(), strict=True)):
        if label != expected:
            raise ValueError(
                f"{argument} has row {i} labelled {label!r}, in {other} it is {expected!r}; "
                f"{remedy} {argument}.to_numpy() to pair them by position"
            )


def _order_of_rows(argument: str, given: Any, other: str, wanted: Any) -> NDArray[np.intp] | None:
    if len(given) != len(wanted) or given.equals(wanted):
        return None
    if given.is_unique and wanted.is_unique:
        order: NDArray[np.intp] = given.get_indexer(wanted)
        if (order >= 0).all():
            return order
        i = int(np.argmax(order < 0))
        what = f"{argument} has no row labelled {wanted.tolist()[i]!r}, which is row {i} of {other}"
    else:
        repeated = given if not given.is_unique else wanted
        label = repeated.tolist()[int(np.argmax(repeated.duplicated()))]
        what = f"{argument} and {other} differ in their index, and the label {label!r} is repeated"
    raise ValueError(
        f"{what}; give both one index, or pass {argument}.to_numpy() to pair them by position"
    )


def _order_of_columns(
    argument: str, given: list[str], other: str, wanted: list[str]
) -> list[int] | None:
    """Return which column belongs to each wanted name, None for their own order.

    Columns of errors often have names of their own: `a_err` or `e_a` for `a`. A prefix and a suffix
    that all have in common tell which is which. Other names say nothing about the order, unless
    one holds the name of another feature than that of its place.
    """
    if len(given) != len(wanted) or given == wanted:
        return None
    order = _order_by_affix(given, wanted)
    if order is not None:
        return None if order == list(range(len(wanted))) else order
    _refuse_names_of_transformers(argument, given, other, wanted)
    features = set(wanted)
    some_are_features = not features.isdisjoint(given)
    for i, (name, expected) in enumerate(zip(given, wanted, strict=True)):
        held = _held(name, features)
        if (name != expected and some_are_features) or (held and expected not in held):
            raise ValueError(
                f"{argument} has column {i} named {name!r}, in {other} it is {expected!r}; "
                "give them equal names, or no names"
            )
    return None


def _refuse_names_of_transformers(
    argument: str, given: list[str], other: str, wanted: list[str]
) -> None:
    """Raise ValueError for names as ColumnTransformer gives them to what it makes of others."""
    sources = [name.rpartition("__") for name in wanted]
    if set(given) == {source for _, joint, source in sources if joint}:
        raise ValueError(
            f"{other} has column 0 named {wanted[0]!r}, as a transformer names what it makes of "
            f"{sources[0][2]!r}, to which {argument} would not belong: UncertainStandardScaler and "
            f"Propagate(transformer) take both. If they do belong together, give them equal names"
        )


def _order_by_affix(given: list[str], wanted: list[str]) -> list[int] | None:
    """Match names that are the wanted ones with one prefix and one suffix."""
    places = {name: j for j, name in enumerate(given)}
    if len(places) < len(given) or len(set(wanted)) < len(wanted):
        return None
    shortest = min(wanted, key=len)
    longest = max(wanted, key=len)
    extra = max(map(len, given)) - len(longest)
    if extra < 0 or extra != min(map(len, given)) - len(shortest):
        return None
    for name in given:
        for start in range(extra + 1):
            prefix, suffix = name[:start], name[len(name) - extra + start :]
            if all(prefix + feature + suffix in places for feature in wanted):
                return [places[prefix + feature + suffix] for feature in wanted]
    return None


def _held(name: str, features: set[str]) -> set[str]:
    """Return the features whose names stand in this one as words."""
    ends = (i for i in range(1, len(name)) if name[i - 1].isalnum() != name[i].isalnum())
    cuts = [0, *ends, len(name)]
    return {name[i:j] for i in cuts for j in cuts if i < j} & features


def common_names(of_each: Sequence[FeatureNames | None], argument: str) -> FeatureNames | None:
    """Return the feature names if all parts have them, in which case they must be equal."""
    for i, names in enumerate(of_each):
        require_equal_names(f"{argument}[{i}]", names, f"{argument}[0]", of_each[0])
    return None if any(names is None for names in of_each) else of_each[0]


def require_equal_names(
    argument: str, names: FeatureNames | None, other: str, expected: FeatureNames | None
) -> None:
    """Raise ValueError, which names the first difference, if both have names that differ."""
    if names is None or expected is None:
        return
    for i, (name, expected_name) in enumerate(zip(names, expected, strict=True)):
        if name != expected_name:
            raise ValueError(
                f"{argument} has column {i} named {name!r}, in {other} it is {expected_name!r}; "
                "give them equal names in the same order, or no names"
            )
