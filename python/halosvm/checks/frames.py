"""Labels of rows and columns: frames and labelled arrays in, the order that pairs two of them out.

Labels are those of frames of pandas, polars and pyarrow, of tables, and the coordinates of xarray.
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
    """What the rows and columns of data are called; None for what has no labels.

    Attributes
    ----------
    names : ndarray of str
        The columns as features are called, if all are text.
    index : pandas.Index
        The rows.
    columns : list
        The columns where these are numbers, dates or tuples, or coordinates of xarray.
    dims : tuple
        The dimensions of an array of xarray.
    unit : str
        What its attributes say of a unit, as files of netCDF do; nothing converts it.
    """

    names: FeatureNames | None = None
    index: Any = None
    columns: list[Any] | None = None
    dims: tuple[Any, ...] | None = None
    unit: str | None = None

    def along(self, axis: int) -> Any:
        """Return the labels that errors of these data can have along an axis."""
        if axis == 0:
            return self.index
        return self.columns if self.names is None else list(self.names)


def labels_of(array: Any, argument: str) -> Labels:
    """Return the labels of a data frame, a table, an array of xarray or a column; others none."""
    return Labels(
        feature_names_of(array, argument),
        index_of(array),
        _without_common_levels(_labels_along(array, 1) or []) or None,
        tuple(array.dims) if is_labelled_array(array) else None,
        array.attrs.get("units") if is_labelled_array(array) else None,
    )


def is_labelled_array(array: Any) -> bool:
    """Tell whether this is an array of xarray, with coordinates and perhaps a quantity inside."""
    return hasattr(array, "dims") and hasattr(array, "indexes") and hasattr(array, "data")


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
    columns = _columns(array)
    if columns is None:
        return None
    names = list(columns)
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        raise TypeError(f"{argument} has column names that are only partly strings: {names}")
    return np.array(names, dtype=object) if texts else None


def _columns(array: Any) -> Any:
    """Return the labels of the columns of a frame or a table, None for what is neither."""
    columns = columns_of(array)
    if columns is None and hasattr(array, "to_numpy") and not is_labelled_array(array):
        columns = getattr(array, "columns", None)
    return columns


def index_of(array: Any) -> Any:
    """Return the labels of the rows as a pandas index, None for what has none."""
    if is_labelled_array(array):
        return array.indexes.get(array.dims[0]) if array.dims else None
    index = getattr(array, "index", None)
    return index if hasattr(array, "to_numpy") and hasattr(index, "get_indexer") else None


def _labels_along(array: Any, axis: int) -> Any:
    """Return the labels along an axis: rows as a pandas index, others as a list."""
    if axis == 0:
        return index_of(array)
    if is_labelled_array(array):
        labels = array.indexes.get(array.dims[axis]) if axis < len(array.dims) else None
    else:
        labels = _columns(array) if axis == 1 else None
    return None if labels is None else list(labels)


def _without_common_levels(labels: list[Any]) -> list[Any]:
    """Return labels of several levels by those in which they differ, others as they are."""
    if not all(isinstance(label, tuple) and len(label) == len(labels[0]) for label in labels):
        return labels
    levels = [level for level in zip(*labels, strict=True) if len(set(level)) > 1]
    if not levels:
        return labels
    return list(levels[0]) if len(levels) == 1 else list(zip(*levels, strict=True))


def paired(
    values: NDArray[Any],
    given: Any,
    argument: str,
    labels: Labels,
    other: str,
    *,
    rows: bool = True,
) -> NDArray[Any]:
    """Return values in the order of the labels of the other side.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or (n_samples, n_features)
        What was read from `given`; also matrices, (n_samples, n_features, n_features).
    given : array-like
        What has the labels; without any, the values are returned as they are.
    argument, other : str
        What both sides are called in error messages.
    labels : Labels
        Of the other side.
    rows : bool
        Whether the first axis is that of the rows; else it is one of features, as the others are.

    Raises
    ------
    ValueError
        If the labels are others; the message names the first.
    """
    dims = tuple(given.dims) if is_labelled_array(given) else None
    if dims and labels.dims and dims != labels.dims and set(dims) == set(labels.dims):
        raise ValueError(
            f"{argument} has the dimensions {dims}, {other} has {labels.dims}; pass "
            f"{argument}.transpose{labels.dims}"
        )
    for axis in range(values.ndim):
        of_rows = rows and axis == 0
        own, wanted = _labels_along(given, axis), labels.along(0 if of_rows else 1)
        if own is None or wanted is None:
            continue
        order: Any
        if of_rows:
            order = _order_of_rows(argument, own, other, wanted)
        else:
            order = _order_of_columns(argument, _without_common_levels(list(own)), other, wanted)
        values = values if order is None else np.take(values, order, axis)
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
    argument: str, given: list[Any], other: str, wanted: list[Any]
) -> list[int] | None:
    """Return which column belongs to each wanted label, None for their own order.

    Columns of errors often have names of their own: `a_err` or `e_a` for `a`. A prefix and a suffix
    that all have in common tell which is which. Other labels say nothing about the order, unless
    one is, or holds the name of, another feature than that of its place.
    """
    if len(given) != len(wanted) or given == wanted:
        return None
    text = all(isinstance(label, str) for label in (*given, *wanted))
    order = _order_by_affix(given, wanted) if text else _order_of_equals(given, wanted)
    if order is not None:
        return None if order == list(range(len(wanted))) else order
    if text:
        _refuse_names_of_transformers(argument, given, other, wanted)
    features = set(wanted)
    some_are_features = not features.isdisjoint(given)
    for i, (name, expected) in enumerate(zip(given, wanted, strict=True)):
        held = _held(name, features) if text else ()
        if (name != expected and some_are_features) or (held and expected not in held):
            raise ValueError(
                f"{argument} has column {i} named {name!r}, in {other} it is {expected!r}; "
                f"give them equal names, or pass {argument}.to_numpy() to pair them by position"
            )
    return None


def _order_of_equals(given: list[Any], wanted: list[Any]) -> list[int] | None:
    """Match labels that are the wanted ones, each once."""
    places = {label: j for j, label in enumerate(given)}
    if len(places) < len(given) or places.keys() != set(wanted):
        return None
    return [places[label] for label in wanted]


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
