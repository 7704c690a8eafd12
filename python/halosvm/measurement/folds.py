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
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

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
    # Codes, for scikit-learn does not know labels of all types.
    labels, codes = (None, y) if values else np.unique(y, return_inverse=True)
    if not isinstance(cv, Integral):
        return list(check_cv(cv, codes, classifier=not values).split(rows, codes, groups))
    require_count(cv, "cv")
    if cv < 2:
        raise ValueError(f"cv is {cv}; at least 2 folds are needed")
    if labels is None:
        most, what = len(y) if groups is None else len(np.unique(groups)), "X has"
        kind = KFold if groups is None else GroupKFold
    else:
        counts = np.bincount(codes)
        if groups is not None:
            number = np.unique(groups, return_inverse=True)[1]
            counts = np.bincount(np.unique(np.column_stack([codes, number]), axis=0)[:, 0])
        most = int(counts.min())
        what = f"class {labels[counts.argmin() :][:1].tolist()[0]!r} has"
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    if most < 2:
        unit = "sample" if groups is None else "group"
        raise ValueError(f"{what} {most} {unit}; each of 2 folds at least needs one")
    seed = random_state.randint(2**31 - 1)
    folds = kind(min(int(cv), most), shuffle=True, random_state=seed)
    return list(folds.split(rows, codes, groups))


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep fits of folds quiet: the fit to all rows says the same, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
