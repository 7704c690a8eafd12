"""``halosvm train``: a table with labels or values in; a model file and a summary out."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.checks.error_names import of_measurements
from halosvm.checks.targets import many_numbers, one_class_alone
from halosvm.commands.choices import CommandError
from halosvm.commands.tables.groups import batches_of, groups_of
from halosvm.commands.tables.machines import described, make_machine, make_pipeline
from halosvm.commands.tables.reading import (
    progress,
    read,
    refuse_one_file_for_both,
    tell,
)
from halosvm.commands.tables.tasks import classification, regression
from halosvm.files.atomic import require_writable
from halosvm.files.model_file import require_form
from halosvm.files.table_models import (
    Trained,
    as_taken,
    in_table_units,
    machine_of,
    meaning_of_errors,
    save,
)
from halosvm.files.tables.trouble import TableError, named

if TYPE_CHECKING:
    import argparse

    from sklearn.pipeline import Pipeline

    from halosvm.commands.tables.tasks import Task
    from halosvm.files.tables.table import Table
    from halosvm.gaussians.gaussians import Gaussians


def train(arguments: argparse.Namespace) -> None:
    """Fit a model to a table, estimate how well it predicts, and write it to a file."""
    asked = arguments.task is None
    arguments.task = arguments.task or "classification"
    _check_options(arguments)
    machine = make_machine(arguments)
    require_form(arguments.output)
    refuse_one_file_for_both(arguments)
    require_writable(arguments.output)
    classes = arguments.task == "classification"
    progress(f"reading {arguments.table}")
    table = read(
        arguments,
        labelled=classes,
        values=not classes,
        weighted=True,
        features=arguments.features,
    )
    if asked:
        _ask_about_numbers(table, arguments.label)
    why = ""
    if arguments.errors is None:
        arguments.errors, why = _meaning(table, arguments)
    if arguments.lam is not None:
        arguments.C = 1.0 / (arguments.lam * len(table.lines))
    with warnings.catch_warnings(), config_context(enable_metadata_routing=True):
        # The summary says how far from the optimum the fit may be.
        warnings.simplefilter("ignore", ConvergenceWarning)
        task = (
            classification(table, arguments.label, machine)
            if classes
            else regression(table, machine)
        )
        groups = None if arguments.group is None else groups_of(table, arguments.group)
        if groups is not None:
            task = task.by_groups(groups)
        batch = batches_of(table, arguments.batch)
        if batch is not None:
            task = task.with_batches(batch)
        X = table.examples
        pipeline = make_pipeline(machine, arguments, sparse=X.is_sparse)
        with named(table.path):
            X = as_taken(pipeline, X)
            fitted, quality = _choose_and_fit(pipeline, X, task, arguments)
        if classes:
            asked_with = {} if batch is None else {"batch": batch}
            predicted = np.searchsorted(fitted.classes_, fitted.predict(X, **asked_with))
            alone = one_class_alone(fitted.classes_, predicted, "rows")
            if alone:
                tell(arguments.command, f"{alone}; try --class-weight balanced, or another --C")
    model = in_table_units(fitted, table.features)
    trained = Trained(
        arguments.label,
        table.target_unit,
        table.roles,
        arguments.weight,
        arguments.group,
        None if groups is None else np.unique(groups).tolist(),
        arguments.batch,
    )
    save(model, arguments.output, trained)
    machine = machine_of(model)
    summary = {
        "rows": str(len(task.y)),
        **task.summary,
        **_weighed(table, arguments.weight),
        **_grouped(groups, arguments.group),
        **_batched(batch, arguments.batch),
        "features": f"{len(table.features)}, {table.uncertain}",
        "errors": meaning_of_errors(model) + why,
        "estimator": _named(machine, arguments),
        **({"loss": described(machine)} if hasattr(machine, "loss") else {}),
        "C": f"{machine.C:g}{' (chosen by cross-validation)' if arguments.C == 'cv' else ''}",
        task.measure: quality,
        **_optimality(machine),
        "model": "standard output" if arguments.output == "-" else arguments.output,
    }
    out = sys.stderr if arguments.output == "-" else sys.stdout
    for name, value in summary.items():
        print(f"{name:<15}{value}", file=out)


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.components != 1 and arguments.errors == "distribution":
        raise CommandError("--components is of use only with --errors measurement")
    if arguments.population and arguments.errors == "distribution":
        raise CommandError("--population is of use only with --errors measurement")
    if arguments.batch is not None and arguments.errors == "distribution":
        raise CommandError("--batch is of use only with --errors measurement")
    if arguments.batch is not None and arguments.calibrate is not None:
        raise CommandError("--batch does not go with --calibrate")
    if arguments.missing == "impute" and arguments.errors == "distribution":
        raise CommandError(
            "--missing impute is of use only with --errors measurement, which estimates the true "
            "values; --missing drop leaves out rows with missing cells"
        )
    if arguments.calibrate is not None and arguments.task != "classification":
        raise CommandError("--calibrate is of use only with --task classification")
    if arguments.calibrate is not None and arguments.folds == 0:
        raise CommandError("--calibrate needs folds, and --folds is 0")


def _ask_about_numbers(table: Table, column: str | None) -> None:
    """Raise CommandError for labels that are as many different numbers as values would be."""
    count = many_numbers(table.labels)
    if not count:
        return
    where = "the label" if column is None else f"column {column!r}"
    raise CommandError(
        f"{table.path}: {where} holds {count} different numbers in {len(table.labels)} "
        "rows; give --task regression if they are values, --task classification if each is a class"
    )


def _meaning(table: Table, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return what errors mean where no option says it, and why, in words."""
    limited, shared = table.limits is not None, arguments.batch is not None
    if arguments.components != 1 or arguments.missing == "impute" or limited or shared:
        return "measurement", ""
    names = [name for error in table.errors.values() for name in error.names]
    measured = of_measurements(table.errors)
    told = f", by names such as {(measured or names)[0]!r}" if names else ""
    return ("measurement" if measured else "distribution"), told


def _weighed(table: Table, column: str | None) -> dict[str, str]:
    if table.weights is None:
        return {}
    return {"weights": f"{table.weights.min():g} to {table.weights.max():g}, of column {column!r}"}


def _grouped(groups: Any, column: str | None) -> dict[str, str]:
    if groups is None:
        return {}
    count = len(np.unique(groups))
    return {"groups": f"{count}, of column {column!r}, none on both sides of a split"}


def _batched(batch: Any, column: str | None) -> dict[str, str]:
    if batch is None:
        return {}
    return {"batches": f"{len(np.unique(batch))}, of column {column!r}, whose rows share errors"}


def _named(machine: Any, arguments: argparse.Namespace) -> str:
    name = type(machine).__name__
    if arguments.approximate is not None:
        name += f" after {arguments.approximate[1]} {arguments.approximate[0]} features"
    elif hasattr(machine, "kernel"):
        name += f", kernel {machine.kernel}"
    return name + ("" if arguments.calibrate is None else f", calibrated ({arguments.calibrate})")


def _optimality(machine: Any) -> dict[str, str]:
    """Return the objective and how far from the optimum it may be, where the machine knows it."""
    lines = {}
    if hasattr(machine, "objective_"):
        lines["objective"] = ", ".join(f"{value:.10g}" for value in np.ravel(machine.objective_))
    if hasattr(machine, "suboptimality_"):
        gap = float(np.max(machine.suboptimality_))
        bound = f"at most {gap:.1e}" if np.isfinite(gap) else "no bound known"
        lines["suboptimality"] = f"{bound}: {machine.status_}"
    return lines


def _choose_and_fit(
    pipeline: Pipeline, X: Gaussians, task: Task, arguments: argparse.Namespace
) -> tuple[Any, str]:
    """Fit on all rows, with the given C or the best of the grid; describe the quality."""
    y, params = task.y, task.fit_params
    if arguments.C != "cv":
        pipeline.set_params(machine__C=arguments.C)
    n_folds = min(arguments.folds, task.largest)
    options: dict[str, Any] = {
        "cv": task.folds(n_folds, arguments.seed) if n_folds > 1 else None,
        "scoring": task.scoring,
        "error_score": "raise",
    }
    how = f"by {n_folds}-fold cross-validation"
    if n_folds < 2:
        why = "not asked for" if arguments.folds == 0 else task.too_few
        if arguments.C == "cv":
            reason = "--folds 0" if arguments.folds == 0 else task.too_few
            raise TableError(f"{reason}: too few for cross-validation, give --C a number")
        quality = f"not estimated: {why}"
    elif arguments.C != "cv":
        progress(f"judging on {n_folds} folds")
        scores = cross_val_score(pipeline, X, y, params=params, **options)
        quality = f"{task.told(scores.mean())} {how}"
    else:
        progress(f"trying {len(task.grid)} values of C on {n_folds} folds")
        options["scoring"] = {"told": task.scoring, "choosing": task.choosing}
        search = GridSearchCV(pipeline, {"machine__C": list(task.grid)}, refit=False, **options)
        found = search.fit(X, y, **params).cv_results_
        best = int(np.argmin(found["rank_test_choosing"]))
        quality = (
            f"{task.told(found['mean_test_told'][best])} {how}, with the best of {len(task.grid)} "
            f"values of C by {task.criterion}"
        )
        pipeline.set_params(machine__C=task.grid[best])
    progress("fitting all rows")
    if arguments.calibrate is None:
        return pipeline.fit(X, y, **params), quality
    if n_folds < 2:
        raise TableError(f"--calibrate needs folds: {task.too_few}")
    calibrated = UncertainCalibratedClassifier(
        pipeline, method=arguments.calibrate, cv=task.folds(n_folds, arguments.seed)
    )
    return calibrated.fit(X, y, **params), quality
