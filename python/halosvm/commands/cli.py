"""The command ``halosvm``: demo, bench, and train, predict, evaluate on tables with error bars.

Tables go in (see `halosvm.files.table`), a model file or a table of predictions comes out. Trouble
with a table, a model file or an option is told in one line on standard error, with exit status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from halosvm import __version__, _core
from halosvm.commands import benchmark
from halosvm.files.model_file import save_model
from halosvm.files.table import Table, listing, parse_labels, read_table
from halosvm.files.table_models import (
    Standardise,
    gaussians_of,
    in_table_units,
    load,
    meaning_of_errors,
    population_in_table_units,
    true_values,
)
from halosvm.linear.svc import UncertainSVC
from halosvm.maps import EmpiricalBayes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from halosvm.gaussians.gaussians import Gaussians

C_GRID = tuple(float(value) for value in np.logspace(-3, 1, 9))


class CommandError(ValueError):
    """A request that cannot be met; the message is one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``halosvm``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the name of the command; by default those of this process.

    Returns
    -------
    int
        Exit status: 0, or 2 after an error, or 130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`, say) has left; without this Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        message = " ".join(str(error).split())
        print(f"halosvm {arguments.command}: error: {message}", file=sys.stderr)
        return 2
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Fit a model to a labelled table, estimate its accuracy, and write it to a file."""
    table = _read(arguments, label=arguments.label, features=arguments.features)
    X, y = gaussians_of(table), parse_labels(table.labels)
    counts = Counter(table.labels)
    if len(counts) < 2:
        raise CommandError(f"column {arguments.label!r} holds one class only: {table.labels[0]!r}")
    svc = UncertainSVC(
        1.0 if arguments.C == "cv" else arguments.C,
        loss=arguments.loss,
        class_weight=arguments.class_weight,
        random_state=arguments.seed,
    )
    scaling = Standardise() if arguments.standardise else "passthrough"
    measured = arguments.errors == "measurement"
    if arguments.components != 1 and not measured:
        raise CommandError("--components is of use only with --errors measurement")
    prior = EmpiricalBayes(arguments.components, random_state=arguments.seed)
    pipeline = Pipeline(
        [("scale", scaling), ("truth", prior if measured else "passthrough"), ("svc", svc)]
    )
    with warnings.catch_warnings():
        # The summary says how far from the optimum the fit may be.
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline, accuracy = _choose_and_fit(pipeline, X, y, arguments, min(counts.values()))
    model = in_table_units(pipeline, table.features)
    truth = population_in_table_units(pipeline, table.features) if measured else None
    save_model(model if truth is None else make_pipeline(truth, model), arguments.output)
    classes = ", ".join(f"{label} ({count})" for label, count in sorted(counts.items()))
    chosen = " (chosen by cross-validation)" if arguments.C == "cv" else ""
    print(f"rows           {len(y)}")
    print(f"classes        {classes}")
    print(f"features       {len(table.features)}, {len(table.errors)} of them with an error column")
    print(f"errors         {meaning_of_errors(truth)}")
    print(f"C              {model.C:g}{chosen}")
    print(f"accuracy       {accuracy}")
    gap = float(np.max(model.suboptimality_))
    bound = f"at most {gap:.1e}" if np.isfinite(gap) else "no bound known"
    print(f"suboptimality  {bound}: {model.status_}")
    print(f"model          {arguments.output}")


def predict(arguments: argparse.Namespace) -> None:
    """Write the label of every row, the decision value, and what the row's errors do to it."""
    truth, model, names = load(arguments.model)
    table = _read(arguments, features=names)
    X = true_values(truth, table)
    columns: dict[str, npt.NDArray[Any]] = {"label": model.predict(X)}
    columns |= _by_class("decision_value", model, model.decision_function(X))
    if not X.covariances.certain:
        columns |= _by_class("decision_std", model, model.decision_std(X))
        columns |= _by_class("side_probability", model, model.side_probability(X))
    with_errors = f"{len(table.errors)} of {len(names)} features have an error column"
    meaning = meaning_of_errors(truth)
    print(f"{len(X)} rows; {with_errors}; errors: {meaning}", file=sys.stderr)
    if arguments.output is None:
        _write_columns(sys.stdout, columns)
        return
    with Path(arguments.output).open("w", encoding="utf-8", newline="") as file:
        _write_columns(file, columns)


def evaluate(arguments: argparse.Namespace) -> None:
    """Compare the predictions for a labelled table with its labels."""
    population, model, names = load(arguments.model)
    table = _read(arguments, label=arguments.label, features=names)
    truth = _class_codes(model, table, arguments.table)
    X = true_values(population, table)
    predicted = np.searchsorted(model.classes_, model.predict(X))
    right = int(np.sum(truth == predicted))
    print(f"accuracy     {100 * right / len(truth):.2f} % ({right} of {len(truth)} rows)")
    if not X.covariances.certain and len(model.classes_) == 2:
        positive = model.side_probability(X)
        expected = np.where(truth == 1, positive, 1 - positive).mean()
        print(f"expected     {100 * expected:.2f} % when every row moves within its errors")
    for line in _report([str(value) for value in model.classes_], truth, predicted):
        print(line)


def _choose_and_fit(
    pipeline: Pipeline,
    X: Gaussians,
    y: npt.NDArray[Any],
    arguments: argparse.Namespace,
    smallest_class: int,
) -> tuple[Pipeline, str]:
    """Fit on all rows, with the given C or the best of the grid; describe the accuracy."""
    n_folds = min(arguments.folds, smallest_class)
    if n_folds < 2:
        if arguments.C == "cv":
            raise CommandError(
                "a class has one row: too few for cross-validation, give --C a number"
            )
        return pipeline.fit(X, y), "not estimated: a class has one row"
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=arguments.seed)
    how = f"by {n_folds}-fold cross-validation"
    if arguments.C != "cv":
        scores = cross_val_score(pipeline, X, y, cv=folds, error_score="raise")
        return pipeline.fit(X, y), f"{100 * scores.mean():.2f} % {how}"
    print(f"trying {len(C_GRID)} values of C on {n_folds} folds", file=sys.stderr)
    search = GridSearchCV(pipeline, {"svc__C": list(C_GRID)}, cv=folds, error_score="raise")
    search.fit(X, y)
    what = f"{100 * search.best_score_:.2f} % {how}, the best of {len(C_GRID)} values of C"
    return search.best_estimator_, what


def _read(
    arguments: argparse.Namespace, *, label: str | None = None, features: list[str] | None = None
) -> Table:
    return read_table(
        arguments.table,
        label=label,
        features=features,
        drop=getattr(arguments, "drop", ()),
        std_suffix=arguments.std_suffix,
        variance_suffix=arguments.variance_suffix,
    )


def _class_codes(model: UncertainSVC, table: Table, path: str) -> npt.NDArray[np.intp]:
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


def _by_class(name: str, model: UncertainSVC, values: npt.NDArray[Any]) -> dict[str, Any]:
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


def _demo(arguments: argparse.Namespace) -> None:
    # Here, not above: data sets and statistics load slowly, and no other command needs them.
    from halosvm.commands import demo

    make = demo.Setup.quick if arguments.quick else demo.Setup
    splits = {} if arguments.splits is None else {"splits": arguments.splits}
    demo.main(make(**splits, seed=arguments.seed), arguments.output)


def _names(text: str) -> list[str]:
    """Split a list such as ``a,b,"c,d"``."""
    return next(csv.reader([text]), [""])


def _c_value(text: str) -> float | str:
    if text == "cv":
        return text
    with contextlib.suppress(ValueError):
        if 0 < float(text) < np.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a positive number nor cv")


def _components(text: str) -> int | str:
    return text if text == "bic" else int(_at_least(1)(text))


def _at_least(least: int) -> Any:
    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return integer


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", help="CSV or TSV file with a header line, also as .gz")
    parser.add_argument(
        "--std-suffix",
        default="_std",
        metavar="S",
        help="column NAME+S holds the standard deviations of NAME (default: %(default)s)",
    )
    parser.add_argument(
        "--variance-suffix",
        default="",
        metavar="S",
        help="column NAME+S holds the variances of NAME (default: none does)",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="halosvm", description="Support vector machines for data with error bars."
    )
    parser.add_argument("--version", action="version", version=f"halosvm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    sub = commands.add_parser("demo", help="what errors do for a classifier, on real data")
    sub.set_defaults(run=_demo)
    sub.add_argument("--splits", type=_at_least(1), help="number of random splits (default: 10)")
    sub.add_argument("--seed", type=_at_least(0), default=0)
    sub.add_argument("--output", default="halosvm_demo.png", metavar="FILE.png")
    sub.add_argument("--quick", action="store_true", help="three splits, a coarser search for C")

    sub = commands.add_parser("bench", help="time halosvm against named rivals, on made-up data")
    sub.set_defaults(run=benchmark.run)
    benchmark.add_arguments(sub)

    sub = commands.add_parser("train", help="fit a model to a labelled table")
    sub.set_defaults(run=train)
    _add_table(sub)
    sub.add_argument("--label", required=True, metavar="COLUMN", help="the column of the classes")
    sub.add_argument(
        "--features", type=_names, metavar="A,B,...", help="default: all other columns"
    )
    sub.add_argument("--drop", type=_names, default=[], metavar="A,B,...", help="not a feature")
    sub.add_argument("--C", type=_c_value, default="cv", help='a number, or "cv" (the default)')
    sub.add_argument("--folds", type=_at_least(2), default=5, help="default: %(default)s")
    sub.add_argument("--loss", choices=_core.loss_names(), default="expected_hinge")
    sub.add_argument(
        "--errors",
        choices=["distribution", "measurement"],
        default="distribution",
        help="what an error means: each row is a distribution, or a measurement of true values, "
        "which are estimated first (default: %(default)s)",
    )
    sub.add_argument(
        "--components",
        type=_components,
        default=1,
        metavar="K",
        help='Gaussians in the population of true values, or "bic" (default: %(default)s)',
    )
    sub.add_argument("--class-weight", choices=["balanced"], help="give classes equal weight")
    sub.add_argument(
        "--standardise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="train in units of each feature's spread; the model file is in the table's units",
    )
    sub.add_argument("--seed", type=_at_least(0), default=0)
    sub.add_argument("--output", default="model.json", metavar="FILE", help="default: %(default)s")

    sub = commands.add_parser("predict", help="classify the rows of a table")
    sub.set_defaults(run=predict)
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    sub.add_argument("--output", metavar="FILE", help="CSV file (default: standard output)")

    sub = commands.add_parser("evaluate", help="compare predictions with a labelled table")
    sub.set_defaults(run=evaluate)
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    sub.add_argument("--label", required=True, metavar="COLUMN", help="the column of the classes")
    return parser
