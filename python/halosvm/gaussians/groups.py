"""Groups: which example an observation belongs to, and the labels of examples by their groups.

In:  the group of each observation; labels by group, or of each observation.
Out: the groups in ascending order with the place of each observation, and labels in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import frames, reading
from halosvm.checks.targets import exact_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_names(names: Any, argument: str) -> NDArray[Any]:
    """Read numbers or names, of which none may be masked or missing."""
    reading.refuse_masked(names, argument)
    ids = np.asarray(names)
    if ids.dtype.kind == "U" and not isinstance(names, np.ndarray):
        ids = np.asarray(names, dtype=object)  # NumPy would make the word "nan" of a missing name
    if ids.ndim == 1:
        reading.refuse_missing(ids, argument)
    exact = exact_labels(names, argument)
    return ids if exact is names else exact


def read_groups(
    groups: Any, values: Any, n_rows: int, *, argument: str = "groups", other: str = "samples"
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups in ascending order, and which of them each row of the values belongs to."""
    ids = read_names(groups, argument)
    if ids.shape != (n_rows,):
        raise ValueError(f"{argument} has shape {ids.shape}, {other} has {n_rows} rows")
    frames.require_same_index(argument, groups, other, frames.index_of(values))
    try:
        names, codes = np.unique(ids, return_inverse=True)
    except TypeError:
        types = ", ".join(sorted({type(name).__name__ for name in ids.tolist()}))
        raise TypeError(
            f"{argument} has names that cannot be sorted, of the types {types}"
        ) from None
    return names, codes


def labels_in_order(wanted: NDArray[Any] | None, labels: Any, groups: Any) -> NDArray[Any]:
    """Return the label of each wanted group, as `Gaussians.labels_by_group` does."""
    if wanted is None:
        raise ValueError("these Gaussians have no groups; from_samples(samples, groups) gives them")
    index = frames.index_of(labels)
    if groups is not None:
        frames.require_same_index("labels", labels, "groups", frames.index_of(groups))
        names, each = read_names(groups, "groups"), read_names(labels, "labels")
        if each.shape != names.shape or names.ndim != 1:
            raise ValueError(f"labels has shape {each.shape}, groups has shape {names.shape}")
    elif isinstance(labels, Mapping):
        names, each = (
            np.array([*labels, None], object)[:-1],
            read_names([*labels.values()], "labels"),
        )
    elif index is not None:
        names, each = np.asarray(index, dtype=object), read_names(labels, "labels")
    else:
        raise TypeError(
            "labels must be a mapping or a Series by group; labels of observations need groups too"
        )
    row_of: dict[Any, int] = {}
    for row, name in enumerate(names.tolist()):
        first = row_of.setdefault(name, row)
        if each[first] != each[row]:
            raise ValueError(f"labels: group {name!r} has both {each[first]!r} and {each[row]!r}")
    missing = [name for name in wanted.tolist() if name not in row_of]
    if missing:
        raise ValueError(f"labels: group {missing[0]!r} has none")
    return each[[row_of[name] for name in wanted.tolist()]]
