"""Validation data: which examples are fitted and which judge the fit.

In:  the parameter `validation` of an estimator, and labels.
Out: rows to fit and rows to judge by; or given data, for whoever reads them.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils.validation import column_or_1d

from halosvm.checks.reading import refuse_lost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]


def is_given(validation: Any) -> bool:
    """Tell whether the validation data are given, as the pair (X, y)."""
    return isinstance(validation, tuple) and len(validation) == 2


def split(
    validation: Any,
    classes: NDArray[Any],
    codes: NDArray[Any],
    weights: NDArray[np.float64] | None,
    random_state: Any,
) -> list[tuple[Rows, Rows]]:
    """Return the rows of each part to fit and to judge by.

    Parameters
    ----------
    validation : float, int, splitter or iterable
        A fraction of each class to judge by, drawn at random, or what scikit-learn takes as `cv`.
    classes, codes : ndarray of shape (n_classes,), (n_samples,)
        The labels, and the place among them of each example's; every part to fit must hold all.
    weights : ndarray of shape (n_samples,), or None
        Weights of the examples; those of weight 0 count for nothing.
    random_state : int, RandomState instance or None
        Of the fraction.
    """
    if isinstance(validation, numbers.Real) and not isinstance(validation, numbers.Integral):
        if not 0.0 < float(validation) < 1.0:
            raise ValueError(f"validation must be above 0 and below 1, got {validation!r}")
        splitter: Any = StratifiedShuffleSplit(
            1, test_size=float(validation), random_state=random_state
        )
    elif isinstance(validation, bool | np.bool_ | str) or validation is None:
        raise TypeError(
            "validation must be a fraction, a number of folds, a splitter or the data (X, y); got "
            f"{validation!r}"
        )
    else:
        splitter = check_cv(validation, codes, classifier=True)
    counts = np.ones(len(codes), bool) if weights is None else weights > 0.0
    parts = []
    for i, pair in enumerate(splitter.split(np.zeros((len(codes), 1)), codes)):
        fitted, judging = (np.asarray(rows)[counts[rows]] for rows in pair)
        missing = np.setdiff1d(codes, codes[fitted])
        if len(missing):
            raise ValueError(
                f"validation: part {i} has no example of class {classes.tolist()[missing[0]]!r} to "
                "fit; split so that every part has some of each, as StratifiedKFold does"
            )
        if len(judging) == 0:
            raise ValueError(f"validation: part {i} has no example to judge the fit by")
        parts.append((fitted, judging))
    return parts


def codes_of(y: Any, classes: NDArray[Any], n_samples: int) -> NDArray[np.intp]:
    """Return the places among the classes of the labels of given validation data."""
    refuse_lost(y, "validation: y")
    labels = column_or_1d(y)
    if len(labels) != n_samples:
        raise ValueError(f"validation: y has {len(labels)} values, X has {n_samples} rows")
    if n_samples == 0:
        raise ValueError("validation: X has 0 rows; at least 1 is needed")
    places = {label: code for code, label in enumerate(classes.tolist())}
    codes = [places.get(label, -1) for label in labels.tolist()]
    if -1 in codes:
        row = codes.index(-1)
        raise ValueError(
            f"validation: y row {row} is {labels.tolist()[row]!r}, which no example to fit has"
        )
    return np.array(codes, np.intp)
