"""Validation data: which examples are fitted and which judge the fit.

In:  the parameter `validation` of an estimator, and labels.
Out: rows to fit and rows to judge by; or given data, for whoever reads them.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit, check_cv

from halosvm.checks.estimator import read_targets
from halosvm.checks.targets import read_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Rows = NDArray[np.intp]


def is_given(validation: Any) -> bool:
    """Tell whether the validation data are given, as the pair (X, y)."""
    return isinstance(validation, tuple) and len(validation) == 2


def is_fraction(validation: Any) -> bool:
    """Tell whether a fraction of the examples, drawn at random, is to judge."""
    return isinstance(validation, numbers.Real) and not isinstance(validation, numbers.Integral)


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
    if is_fraction(validation):
        if not 0.0 < float(validation) < 1.0:
            raise ValueError(f"validation must be above 0 and below 1, got {validation!r}")
        splitter: Any = _Fraction(float(validation), random_state)
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


class _Fraction(NamedTuple):
    """A splitter that draws a fraction of each class, and leaves a class of one to be fitted."""

    fraction: float
    random_state: Any

    def split(self, X: NDArray[Any], codes: NDArray[Any]) -> Iterator[tuple[Rows, Rows]]:
        single = np.bincount(codes)[codes] == 1
        rows = np.flatnonzero(~single)
        splitter = StratifiedShuffleSplit(
            1, test_size=self.fraction, random_state=self.random_state
        )
        for fitted, judging in splitter.split(X[rows], codes[rows]):
            yield np.append(rows[fitted], np.flatnonzero(single)), rows[judging]


def read_given(
    validation: Any, read_means: Callable[[Any], NDArray[Any]], classes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int16]]:
    """Return means, and the places of the labels among the classes, of given validation data.

    Parameters
    ----------
    validation : (X, y)
        The data.
    read_means : callable
        What reads X as the training data were read; messages get the name of the parameter here.
    classes : ndarray of shape (n_classes,)
        The labels of the training data.
    """
    given, y = validation
    try:
        y, _ = read_targets(given, y, None)
        means = read_means(given)
        labels = read_labels(y, len(means)).tolist()
    except (ValueError, TypeError) as error:
        raise type(error)(f"validation: {error}") from None
    if len(means) == 0:
        raise ValueError("validation: X has 0 rows; at least 1 is needed")
    places = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([places.get(label, -1) for label in labels], np.int16)
    if codes.min() < 0:
        row = int(codes.argmin())
        raise ValueError(f"validation: y row {row} is {labels[row]!r}, which no example to fit has")
    return means, codes
