"""``halosvm predict``, ``evaluate``: a model and a table in; predictions and their quality out."""

from __future__ import annotations

import contextlib
import csv
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import (
    confusion_matrix,
    mean_absolute_error,
    mean_pinball_loss,
    precision_recall_fscore_support,
    r2_score,
)

from halosvm.commands.tables.reading import CommandError, read
from halosvm.files.table import listing
from halosvm.files.table_models import load, meaning_of_errors, true_values

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import numpy.typing as npt

    from halosvm.files.table import Table
    from halosvm.gaussians.gaussians import Gaussians


def predict(arguments: argparse.Namespace) -> None:
    """Write label and decision value, or the value, of every row, and what its errors do to it."""
    truth, model, names = load(arguments.model)
    table = read(arguments, features=names)
    X = true_values(truth, table)
    columns = (_values if is_regressor(model) else _decisions)(model, X)
    with_errors = f"{len(table.errors)} of {len(names)} features have an error column"
    meaning = meaning_of_errors(truth)
    print(f"{len(X)} rows; {with_errors}; errors: {meaning}", file=sys.stderr)
    if arguments.output is None:
        _write_columns(sys.stdout, columns)
        return
    with Path(arguments.output).open("w", encoding="utf-8", newline="") as file:
        _write_columns(file, columns)


def evaluate(arguments: argparse.Namespace) -> None:
    """Compare the predictions for a table with its labels or values."""
    population, model, names = load(arguments.model)
    if is_regressor(model):
        table = read(arguments, target=arguments.label, features=names)
        lines = _errors(model, table.values, true_values(population, table))
    else:
        table = read(arguments, label=arguments.label, features=names)
        truth = _class_codes(model, table, arguments.table)
        lines = _hits(model, truth, true_values(population, table))
    for line in lines:
        print(line)


def _values(model: Any, X: Gaussians) -> dict[str, npt.NDArray[Any]]:
    if X.covariances.certain:
        return {"value": model.predict(X)}
    value, std = model.predict(X, return_std=True)
    return {"value": value, "value_std": std}


def _decisions(model: Any, X: Gaussians) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {"label": model.predict(X)}
    columns |= _by_class("decision_value", model, model.decision_function(X))
    if not X.covariances.certain:
        columns |= _by_class("decision_std", model, model.decision_std(X))
        columns |= _by_class("side_probability", model, model.side_probability(X))
    return columns


def _errors(model: Any, truth: Any, X: Gaussians) -> Iterator[str]:
    """Write how far values are from their predictions, line by line."""
    predicted = model.predict(X)
    share = f"{r2_score(truth, predicted):.4f}" if len(truth) > 1 else "not defined"
    rows = "1 row" if len(truth) == 1 else f"{len(truth)} rows"
    yield f"R^2                  {share} ({rows})"
    yield f"mean absolute error  {mean_absolute_error(truth, predicted):.6g}"
    if model.loss == "pinball":
        loss = mean_pinball_loss(truth, predicted, alpha=model.quantile)
        below = 100 * np.mean(truth <= predicted)
        yield f"pinball loss         {loss:.6g} at the quantile {model.quantile:g}"
        yield f"share                {below:.2f} % of the rows at or below their prediction"


def _hits(model: Any, truth: npt.NDArray[np.intp], X: Gaussians) -> Iterator[str]:
    """Write how many labels are right, and of which classes, line by line."""
    predicted = np.searchsorted(model.classes_, model.predict(X))
    right = int(np.sum(truth == predicted))
    yield f"accuracy     {100 * right / len(truth):.2f} % ({right} of {len(truth)} rows)"
    if not X.covariances.certain and len(model.classes_) == 2:
        positive = model.side_probability(X)
        expected = np.where(truth == 1, positive, 1 - positive).mean()
        yield f"expected     {100 * expected:.2f} % when every row moves within its errors"
    yield from _report([str(value) for value in model.classes_], truth, predicted)


def _class_codes(model: Any, table: Table, path: str) -> npt.NDArray[np.intp]:
    """Find each row's label among the classes; numbers are compared as numbers."""
    by_text = {str(value): code for code, value in enumerate(model.classes_)}
    by_number: dict[float, int] = {}
    if model.classes_.dtype.kind in "iuf":
        by_number = {float(value): code for code, value in enumerate(model.classes_)}
    codes = []
    for line, label in zip(table.lines, table.labels, strict=True):
        code = by_text.get(label)
        if code is None and by_number:
            with contextlib.suppress(ValueError):
                code = by_number.get(float(label))
        if code is None:
            known = listing(list(by_text))
            raise CommandError(
                f"{path}, line {line}: the model has no class {label!r}; its classes are {known}"
            )
        codes.append(code)
    return np.array(codes, dtype=np.intp)


def _by_class(name: str, model: Any, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Make one column for two classes (about the second), one per class for more."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{label}": values[:, k] for k, label in enumerate(model.classes_)}


def _write_columns(file: IO[str], columns: dict[str, Any]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _report(
    names: list[str], truth: npt.NDArray[np.intp], predicted: npt.NDArray[np.intp]
) -> Iterator[str]:
    """Write the confusion matrix and the measures of each class, line by line."""
    codes = np.arange(len(names))
    matrix = confusion_matrix(truth, predicted, labels=codes)
    measures = precision_recall_fscore_support(truth, predicted, labels=codes, zero_division=0)
    width = max(10, *(len(name) + 2 for name in names))
    yield ""
    yield "confusion matrix (lines: true class, columns: predicted class)"
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, row in zip(names, matrix, strict=True):
        yield f"{name:<{width}}" + "".join(f"{count:>{width}}" for count in row)
    yield ""
    yield f"{'class':<{width}}{'precision':>11}{'recall':>9}{'F1':>9}{'rows':>8}"
    for name, precision, recall, f1, rows in zip(names, *measures, strict=True):
        yield f"{name:<{width}}{precision:>11.4f}{recall:>9.4f}{f1:>9.4f}{rows:>8}"
