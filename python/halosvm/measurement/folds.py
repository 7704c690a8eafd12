"""Folds: which rows are left out together, in the same way by all that leaves rows out.

In:  `cv` as scikit-learn has it, labels and groups.
Out: pairs of training and test rows.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from halosvm.checks.parameters import require_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def splits_of(
    cv: Any, y: NDArray[Any], groups: Any, random_state: Any, *, values: bool = False
) -> list[Split]:
    """Return the folds; a number of them is brought down to the size of the smallest class.

    `values` tells that y holds values and no labels.
    """
    rows = np.zeros(len(y))
    if not isinstance(cv, Integral):
        return list(check_cv(cv, y, classifier=not values).split(rows, y, groups))
    require_count(cv, "cv")
    if cv < 2:
        raise ValueError(f"cv is {cv}; 2 folds are needed at least")
    seed = random_state.randint(2**31 - 1)
    if values:
        n = len(y) if groups is None else len(np.unique(groups))
        kind = KFold if groups is None else GroupKFold
        return list(kind(min(cv, max(n, 2)), shuffle=True, random_state=seed).split(rows, y, groups))
    labels, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    if groups is not None:
        pairs = np.unique(np.column_stack([codes, np.unique(groups, return_inverse=True)[1]]), axis=0)
        counts = np.bincount(pairs[:, 0])
    if counts.min() < 2:
        label, what = labels[counts.argmin() :][:1].tolist()[0], "group" if groups is not None else "row"
        raise ValueError(
            f"class {label!r} has one {what} of training, and each class needs one in each of 2 "
            "folds at least; give it more, or leave it out"
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = kind(int(min(cv, counts.min())), shuffle=True, random_state=seed)
    return list(folds.split(rows, y, groups))


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep fits of folds quiet: the fit to all rows says the same, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
