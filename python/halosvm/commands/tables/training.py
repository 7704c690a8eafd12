"""``halosvm train``: a table with labels or values in; a model file and a summary out."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from halosvm.commands.tables.reading import CommandError, read
from halosvm.commands.tables.tasks import OF_LOSSES, check_options, classification, regression
from halosvm.files.model_file import save_model
from halosvm.files.table_models import (
    gaussians_of,
    in_table_units,
    meaning_of_errors,
    population_in_table_units,
)
from halosvm.maps import EmpiricalBayes, UncertainStandardScaler

if TYPE_CHECKING:
    import argparse

    from halosvm.commands.tables.tasks import Task
    from halosvm.gaussians.gaussians import Gaussians


def train(arguments: argparse.Namespace) -> None:
    """Fit a model to a table, estimate how well it predicts, and write it to a file."""
    loss = check_options(arguments)
    labels = {"label" if arguments.task == "classification" else "target": arguments.label}
    table = read(arguments, features=arguments.features, **labels)
    make_task = classification if arguments.task == "classification" else regression
    task = make_task(table, loss, arguments)
    measured = arguments.errors == "measurement"
    # the spread of a posterior would shrink the slopes of a regression: it knows nothing of y
    output = "gaussian" if arguments.task == "classification" else "mean"
    prior = EmpiricalBayes(arguments.components, output=output, random_state=arguments.seed)
    pipeline = Pipeline(
        [
            ("scale", UncertainStandardScaler() if arguments.standardise else "passthrough"),
            ("truth", prior if measured else "passthrough"),
            ("machine", task.machine),
        ]
    )
    with warnings.catch_warnings():
        # The summary says how far from the optimum the fit may be.
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline, quality = _choose_and_fit(pipeline, gaussians_of(table), task, arguments)
    model = in_table_units(pipeline, table.features)
    truth = population_in_table_units(pipeline, table.features) if measured else None
    save_model(model if truth is None else make_pipeline(truth, model), arguments.output)
    gap = float(np.max(model.suboptimality_))
    bound = f"at most {gap:.1e}" if np.isfinite(gap) else "no bound known"
    summary = {
        "rows": len(task.y),
        **task.summary,
        "features": f"{len(table.features)}, {len(table.errors)} of them with an error column",
        "errors": meaning_of_errors(truth),
        "loss": _described(model),
        "C": f"{model.C:g}{' (chosen by cross-validation)' if arguments.C == 'cv' else ''}",
        task.measure: quality,
        "suboptimality": f"{bound}: {model.status_}",
        "model": arguments.output,
    }
    for name, value in summary.items():
        print(f"{name:<15}{value}")


def _described(model: Any) -> str:
    """Return a loss and the parameters that it has."""
    parts = [model.loss]
    own = [name for name, losses in OF_LOSSES.items() if model.loss in losses]
    parts += [f"{name} {getattr(model, name):g}" for name in own]
    if model.error_scale != 1.0:
        parts.append(f"errors times {model.error_scale:g}")
    return ", ".join(parts)


def _choose_and_fit(
    pipeline: Pipeline, X: Gaussians, task: Task, arguments: argparse.Namespace
) -> tuple[Pipeline, str]:
    """Fit on all rows, with the given C or the best of the grid; describe the quality."""
    y, params = task.y, {f"machine__{name}": value for name, value in task.fit_params.items()}
    if arguments.C != "cv":
        pipeline.set_params(machine__C=arguments.C)
    n_folds = min(arguments.folds, task.largest)
    if n_folds < 2:
        if arguments.C == "cv":
            raise CommandError(f"{task.too_few}: too few for cross-validation, give --C a number")
        return pipeline.fit(X, y, **params), f"not estimated: {task.too_few}"
    options = {
        "cv": task.folds(n_folds, arguments.seed),
        "scoring": task.scoring,
        "error_score": "raise",
    }
    how = f"by {n_folds}-fold cross-validation"
    if arguments.C != "cv":
        scores = cross_val_score(pipeline, X, y, params=params, **options)
        return pipeline.fit(X, y, **params), f"{task.told(scores.mean())} {how}"
    print(f"trying {len(task.grid)} values of C on {n_folds} folds", file=sys.stderr)
    search = GridSearchCV(pipeline, {"machine__C": list(task.grid)}, **options)
    search.fit(X, y, **params)
    best = task.told(search.best_score_)
    return search.best_estimator_, f"{best} {how}, the best of {len(task.grid)} values of C"
