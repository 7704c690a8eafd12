"""Labels and weights: any labels to class codes, sample and class weights to one weight each."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from halosvm.checks import reading
from halosvm.core.user_warning import warn_user

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


# scikit-learn before 1.9 does not ask whether all weights are 0, as those of a part may be.
_ZEROS_PASS: dict[str, Any] = (
    {"allow_all_zero_weights": True}
    if "allow_all_zero_weights" in signature(_check_sample_weight).parameters
    else {}
)


def exact_labels(labels: Any, argument: str, *, objects: bool = False) -> Any:
    """Return labels with every integer as it is, where arrays would be made of rounded ones.

    Columns of nullable integers or booleans become arrays of them, which scikit-learn would make of
    floats, and so do arrays of objects if asked for. All others are returned as they are.

    Raises
    ------
    ValueError
        For an integer of a list that no array holds beside the others: rounded it could be another.
    """
    try:
        plain = np.asarray(labels)
    except ValueError:  # ragged lists, which scikit-learn explains
        return labels
    own = isinstance(getattr(labels, "dtype", None), np.dtype)
    if plain.dtype.kind in "biu":
        return labels if own else plain
    converted = plain.dtype.kind == "O" and (objects or not own)
    if not (converted or (plain.dtype.kind == "f" and isinstance(labels, list | tuple))):
        return labels
    items = (plain if converted else np.array(labels, dtype=object)).ravel().tolist()
    if not all(isinstance(item, numbers.Integral | np.bool_ | float) for item in items):
        return labels
    whole = [isinstance(item, numbers.Integral | np.bool_) for item in items]
    read = np.array(items)
    if all(whole) and read.dtype.kind in "biu":
        return read.reshape(plain.shape)
    for row, item in enumerate(items):
        if whole[row] and not (read.dtype.kind == "f" and int(read[row]) == int(item)):
            raise ValueError(
                f"{argument}: row {row} is {int(item)}, which no array of numbers holds beside the "
                f'others without rounding; pass text, such as "{int(item)}"'
            )
    return labels


def join_labels(parts: Sequence[NDArray[Any]], argument: str) -> NDArray[Any]:
    """Return the labels of all parts one behind another, each integer as it is."""
    if len({each.dtype.kind for each in parts}) == 1:
        return np.concatenate(parts)
    joined = [label for each in parts for label in each.tolist()]
    return np.asarray(exact_labels(joined, argument))


def read_labels(y: Any, n_samples: int) -> NDArray[Any]:
    """Read the labels of examples that scikit-learn has not seen."""
    shape = np.shape(y)
    labels: NDArray[Any] = column_or_1d(y)
    if len(shape) > 1:
        warn_user(f"y is a column-vector of shape {shape}; pass y.ravel()", DataConversionWarning)
    assert_all_finite(labels, input_name="y")
    if len(labels) != n_samples:
        raise ValueError(f"y has {len(labels)} values, X has {n_samples} rows")
    return labels


def read_weights(sample_weight: Any) -> Any:
    """Read weights as finite numbers of any shape; how many there are is asked by `raw_weights`."""
    weights = reading.as_float_array(sample_weight, "sample_weight")
    reading.require_finite(weights, "sample_weight")
    return weights if weights.ndim else float(weights)


def weight_of_each(sample_weight: Any, n_samples: int, *, is_part: bool = False) -> Array:
    """Return one weight >= 0 for each example; negative ones leave it out, as in scikit-learn.

    Unless the examples are a part of more, some weight must be above 0.
    """
    like = np.empty((n_samples, 1))
    weights: Array = _check_sample_weight(sample_weight, like, dtype=np.float64, **_ZEROS_PASS)
    bad = np.flatnonzero(weights < 0)
    if bad.size:
        warn_user(
            f"sample_weight row {bad[0]} is {weights[bad[0]]:g}; with a weight below 0 no "
            f"objective is convex: {_rows(bad.size)} left out, as by a weight of 0",
            UserWarning,
        )
        weights = np.maximum(weights, 0.0)
    if not (is_part or weights.any()):
        raise ValueError(
            "sample_weight is zero for all examples; give at least one non-zero weight"
        )
    return weights


def _rows(count: int) -> str:
    return "this row is" if count == 1 else f"these {count} rows are"


def encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int16]]:
    """Return the sorted classes and each label's place among them, with little extra memory."""
    try:
        classes = np.unique(y)
    except TypeError:
        types = ", ".join(sorted({type(label).__name__ for label in y}))
        raise TypeError(f"y has labels that cannot be sorted, of the types {types}") from None
    labels = classes.tolist()
    if isinstance(labels[0], bytes):
        raise TypeError(f"y has labels that are bytes, such as {labels[0]!r}; decode them")
    if y.dtype.kind == "f":
        if (classes != np.trunc(classes)).any():
            check_classification_targets(y)  # slow where there are few examples
    elif y.dtype == object and all(isinstance(label, numbers.Real) for label in labels):
        values = np.array(labels)  # what objects hold is checked only here
        assert_all_finite(values, input_name="y")
        check_classification_targets(values)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {labels[0]!r}; two or more classes are needed")
    if len(classes) > np.iinfo(np.int16).max:
        raise ValueError(f"y has {len(classes)} classes; the limit is {np.iinfo(np.int16).max}")
    codes = np.empty(len(y), dtype=np.int16)
    step = 65536
    for begin in range(0, len(y), step):
        codes[begin : begin + step] = np.searchsorted(classes, y[begin : begin + step])
    return classes, codes


def codes_among(classes: NDArray[Any], y: NDArray[Any], then: str = "") -> NDArray[np.int16]:
    """Return each label's place among sorted classes, of which it must be one.

    `then` says in the message what the classes are those of, and what to do.
    """
    # of integers of two types NumPy would compare floats
    alike = classes.dtype.kind in "iu" and y.dtype.kind in "iuf"
    codes = np.searchsorted(classes, y.astype(classes.dtype) if alike else y)
    codes = codes.clip(max=len(classes) - 1)
    unknown = np.flatnonzero(classes[codes] != y)
    if unknown.size:
        row = int(unknown[0])
        raise ValueError(f"y row {row} is {y.tolist()[row]!r}, {then or f'not one of {classes}'}")
    return codes.astype(np.int16)


_MANY_CLASSES = 20


def many_numbers(labels: Sequence[Any]) -> int:
    """Return the number of different numbers, if they are as many as values would be, else 0."""
    different = set(labels)
    if len(different) < _MANY_CLASSES // 2:
        return 0
    try:
        values = [float(cell) for cell in different]
    except (TypeError, ValueError):
        return 0
    whole = all(value.is_integer() for value in values)
    most = max(_MANY_CLASSES if whole else _MANY_CLASSES // 2, len(labels) // 20)
    return len(values) if len(values) > most else 0


def weights_of_part(
    classes: NDArray[Any],
    codes: NDArray[np.int16],
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
) -> Array | None:
    """Return weights as `raw_weights` does for a part of the examples, where classes may lack."""
    weights = (
        None if sample_weight is None else weight_of_each(sample_weight, len(codes), is_part=True)
    )
    if class_weight is None:
        return weights
    factors = class_factors(classes, np.ones(len(classes)), class_weight)[codes]
    return factors if weights is None else factors * weights


def weighted_rows(
    classes: NDArray[Any], codes: NDArray[np.int16], sample_weight: Any
) -> tuple[NDArray[np.intp], Array | None]:
    """Return the rows whose sample weight is not zero, and their weights, None if all are 1."""
    weights = raw_weights(classes, codes, sample_weight, None)
    if weights is None:
        return np.arange(len(codes)), None
    rows = np.flatnonzero(weights)
    return rows, weights[rows]


def raw_weights(
    classes: NDArray[Any],
    codes: NDArray[np.int16],
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
) -> Array | None:
    """Return the sample weights with class weights multiplied in, or None if all are 1."""
    weights: Array | None = None
    if sample_weight is not None:
        weights = weight_of_each(sample_weight, len(codes))
        _require_weight(classes, codes, weights, "sample_weight")
    if class_weight is None:
        return weights
    per_class = np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64)
    factors = class_factors(classes, per_class, class_weight)
    if weights is None:
        return np.asarray(factors[codes])
    scaled: Array = factors[codes] * weights
    _require_weight(classes, codes, scaled, "sample_weight times class_weight")
    return scaled


def one_class_alone(
    classes: NDArray[Any], predicted: NDArray[Any], rows: str = "training examples"
) -> str:
    """Say that one class alone is predicted of examples of several, if it is.

    `predicted` are places among the classes.
    """
    if predicted.min() != predicted.max():
        return ""
    return (
        f"only the class {classes.tolist()[predicted[0]]!r} is predicted of all {rows}: their "
        "errors are large, the classes overlap, or one is rare"
    )


def class_factors(
    classes: NDArray[Any], per_class: Array, class_weight: Mapping[Any, float] | str
) -> Array:
    """Return the factor of each class, by its weight among the examples where that counts."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(per_class.sum() / (len(classes) * per_class))
    _require_known(classes, class_weight)
    factors: Array = compute_class_weight(class_weight, classes=classes, y=classes)
    bad = np.flatnonzero(~((factors > 0) & np.isfinite(factors)))
    if bad.size:
        label, factor = classes.tolist()[bad[0]], factors[bad[0]]
        raise ValueError(
            f"class_weight of class {label!r} is {factor:g}; it must be positive and finite"
        )
    return factors


def _require_known(classes: NDArray[Any], class_weight: Any) -> None:
    """Raise ValueError for weights of a class that is absent, if one that is present has none."""
    labels = classes.tolist()
    if not isinstance(class_weight, Mapping) or all(label in class_weight for label in labels):
        return
    absent = [label for label in class_weight if label not in labels]
    if absent:
        raise ValueError(
            f"class_weight has the class {absent[0]!r}, which y has not; the classes of y are "
            f"{', '.join(map(repr, labels[:10]))}{', ...' if len(labels) > 10 else ''}"
        )


def _require_weight(
    classes: NDArray[Any], codes: NDArray[np.int16], weights: Array, argument: str
) -> None:
    """Raise ValueError for the first class none of whose weights is positive."""
    lost = np.flatnonzero(np.bincount(codes[weights > 0], minlength=len(classes)) == 0)
    if lost.size:
        raise ValueError(
            f"{argument} is 0 for all examples of class {classes.tolist()[lost[0]]!r}; leave them "
            "out, or give at least one non-zero weight"
        )
