"""``halosvm evaluate``: a model and a table with labels or values in; how good the model is out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    mean_pinball_loss,
    precision_recall_fscore_support,
    r2_score,
)

from halosvm.checks.targets import one_class_alone
from halosvm.commands.choices import RANKS, CommandError
from halosvm.commands.tables.groups import batches_of, without_groups
from halosvm.commands.tables.predicting import require_population
from halosvm.commands.tables.reading import read, tell
from halosvm.display.reliability import ReliabilityDisplay
from halosvm.files.table_models import (
    as_taken,
    as_the_machine_sees,
    has_errors,
    load,
    machine_of,
)
from halosvm.files.tables.labels import code_of, codes_by_cell
from halosvm.files.tables.trouble import TableError, as_option, counted, listing, named

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from halosvm.files.tables.table import Table
    from halosvm.gaussians.gaussians import Gaussians

    Weights = npt.NDArray[np.float64]


def evaluate(arguments: argparse.Namespace) -> None:
    """Compare the predictions for a table with its labels or values."""
    model, names, trained = load(arguments.model)
    require_population(arguments, model)
    machine = machine_of(model)
    values = is_regressor(machine)
    if arguments.at is not None and (values or len(machine.classes_) != 2):
        raise CommandError("--at is of use only with a model of two classes")
    table = read(
        arguments,
        labelled=not values,
        values=values,
        weighted=True,
        model_features=names,
        trained=trained,
    )
    if arguments.group is not None:
        table, left_out = without_groups(table, arguments.group, trained.groups)
        if left_out:
            tell(
                arguments.command,
                f"{counted(left_out, 'row')} left out: the model was trained on their "
                f"{arguments.group!r}",
            )
    elif trained.group is not None:
        tell(
            arguments.command,
            f"the model was trained on rows by {trained.group!r}; --group "
            f"{as_option(trained.group)} leaves out those of objects it has seen",
        )
    w = np.ones(len(table.lines)) if table.weights is None else table.weights
    batch = batches_of(table, trained.batch)
    with named(table.path):
        X = as_taken(model, table.examples)
        if values:
            lines = list(_errors(machine, table.values, as_the_machine_sees(model, X, batch), w))
        else:
            lines = list(_hits(model, _class_codes(machine, table), X, batch, w, arguments))
    if table.weights is not None:
        column = arguments.weight or trained.weight
        print(f"weights      of column {column!r}, in all but counts of rows and calibration")
    for line in lines:
        print(line)


def _errors(machine: Any, truth: Any, X: Gaussians, w: Weights) -> Iterator[str]:
    """Write how far values are from their predictions, line by line."""
    predicted = machine.predict(X)
    share = (
        f"{r2_score(truth, predicted, sample_weight=w):.4f}" if len(truth) > 1 else "not defined"
    )
    rows = "1 row" if len(truth) == 1 else f"{len(truth)} rows"
    yield f"R^2                  {share} ({rows})"
    yield f"mean absolute error  {mean_absolute_error(truth, predicted, sample_weight=w):.6g}"
    if getattr(machine, "loss", None) == "pinball":
        loss = mean_pinball_loss(truth, predicted, sample_weight=w, alpha=machine.quantile)
        below = 100 * np.average(truth <= predicted, weights=w)
        yield f"pinball loss         {loss:.6g} at the quantile {machine.quantile:g}"
        yield f"share                {below:.2f} % of the rows at or below their prediction"


def _hits(
    model: Any,
    truth: npt.NDArray[np.intp],
    X: Gaussians,
    batch: Any,
    w: Weights,
    arguments: argparse.Namespace,
) -> Iterator[str]:
    """Write how many labels are right, and of which classes, line by line."""
    machine, seen = machine_of(model), as_the_machine_sees(model, X, batch)
    calibrated = hasattr(model, "predict_proba")
    labels = model.predict(X) if calibrated else machine.predict(seen)
    predicted = np.searchsorted(machine.classes_, labels)
    alone = one_class_alone(machine.classes_, predicted, "rows")
    if alone and truth.min() != truth.max():
        tell(arguments.command, alone)
    names = [str(value) for value in machine.classes_]
    right = int(np.sum(truth == predicted))
    accuracy = accuracy_score(truth, predicted, sample_weight=w)
    yield f"accuracy     {100 * accuracy:.2f} % ({right} of {len(truth)} rows)"
    if len(names) == 2:
        if hasattr(machine, "decision_function"):
            ranking = "decision value", machine.decision_function(seen)
        else:
            ranking = "probability", model.predict_proba(X)[:, 1]
        yield from _of_two_classes(
            machine, truth, predicted, seen, w, names[1], ranking, arguments.at or RANKS
        )
    if calibrated:
        probabilities = model.predict_proba(X)
        for k in range(1 if len(names) == 2 else 0, len(names)):
            error = ReliabilityDisplay(y_true=truth == k, y_prob=probabilities[:, k])
            yield (
                f"calibration  {100 * error.calibration_error:.2f} % mean error of the probability "
                f"of {names[k]}"
            )
    yield from _report(names, truth, predicted, w)


def _of_two_classes(
    machine: Any,
    truth: npt.NDArray[np.intp],
    predicted: npt.NDArray[np.intp],
    seen: Any,
    w: Weights,
    positive: str,
    ranking: tuple[str, npt.NDArray[Any]],
    ranks: Sequence[int],
) -> Iterator[str]:
    """Write how good two classes are told apart, and how good a ranking is, by what and values."""
    if has_errors(seen) and hasattr(machine, "side_probability"):
        side = machine.side_probability(seen)
        expected = np.average(np.where(truth == 1, side, 1 - side), weights=w)
        yield f"expected     {100 * expected:.2f} % when every row moves within its errors"
    f1 = f1_score(truth, predicted, sample_weight=w, zero_division=0)
    yield f"F1           {f1:.4f} of {positive}"
    relevant = w[truth == 1].sum()
    if relevant == 0:
        yield f"ranking      not judged: no row is {positive}"
        return
    by, values = ranking
    average = average_precision_score(truth, values, sample_weight=w)
    yield f"ranking      average precision {average:.4f} of {positive}, by {by}"
    # of equal values the order of the rows decides, as everywhere
    order = np.argsort(-values, kind="stable")
    for k in ranks:
        first = order[:k]
        if k <= len(truth) and w[first].any():
            found = w[first] @ (truth[first] == 1)
            yield (
                f"  first {k:<6}precision {found / w[first].sum():.4f}  "
                f"recall {found / relevant:.4f}"
            )


def _class_codes(machine: Any, table: Table) -> npt.NDArray[np.intp]:
    """Find each row's label among the classes; numbers are compared as numbers."""
    known = codes_by_cell(machine.classes_)
    codes = np.empty(len(table.labels), dtype=np.intp)
    for row, label in enumerate(table.labels):
        code = code_of(label, known)
        if code is None:
            classes = listing([str(value) for value in machine.classes_])
            raise TableError(
                f"{table.place(row)}: the model has no class {label!r}; its classes are {classes}"
            )
        codes[row] = code
    return codes


def _report(
    names: list[str],
    truth: npt.NDArray[np.intp],
    predicted: npt.NDArray[np.intp],
    w: Weights,
) -> Iterator[str]:
    """Write the confusion matrix and the measures of each class, line by line."""
    codes = np.arange(len(names))
    matrix = confusion_matrix(truth, predicted, labels=codes)
    *measures, _ = precision_recall_fscore_support(
        truth, predicted, labels=codes, sample_weight=w, zero_division=0
    )
    counts = np.bincount(truth, minlength=len(names))
    width = max(10, *(len(name) + 2 for name in names))
    yield ""
    yield "confusion matrix (lines: true class, columns: predicted class)"
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, row in zip(names, matrix, strict=True):
        yield f"{name:<{width}}" + "".join(f"{count:>{width}}" for count in row)
    yield ""
    yield f"{'class':<{width}}{'precision':>11}{'recall':>9}{'F1':>9}{'rows':>8}"
    for name, precision, recall, f1, rows in zip(names, *measures, counts, strict=True):
        yield f"{name:<{width}}{precision:>11.4f}{recall:>9.4f}{f1:>9.4f}{rows:>8}"
