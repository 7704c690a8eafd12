"""``halosvm predict``: a model and a table in; labels with decision values, or values, out."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from sklearn.base import is_regressor

from halosvm.commands.choices import CommandError
from halosvm.commands.tables.groups import batches_of
from halosvm.commands.tables.reading import read, refuse_one_file_for_both, tell
from halosvm.files.table_models import (
    as_taken,
    as_the_machine_sees,
    has_errors,
    load,
    machine_of,
    meaning_of_errors,
    takes_missing,
)
from halosvm.files.tables.cells import with_unit
from halosvm.files.tables.trouble import named
from halosvm.files.tables.typed import WITH_COLUMNS
from halosvm.files.tables.writing import output_format, require_table, write_columns
from halosvm.kernel.spread import NoClosedFormError

if TYPE_CHECKING:
    import argparse

    import numpy.typing as npt

    from halosvm.gaussians.gaussians import Gaussians


def predict(arguments: argparse.Namespace) -> None:
    """Write label, decision value and probability, or the value, of every row."""
    output = arguments.output or "-"
    form = output_format(output, arguments.to, "csv")
    if form not in WITH_COLUMNS:
        raise CommandError(
            f"predictions have columns, {form} has none; one of {', '.join(WITH_COLUMNS)}"
        )
    refuse_one_file_for_both(arguments)
    require_table(output, form)
    model, names, trained = load(arguments.model)
    require_population(arguments, model)
    table = read(arguments, model_features=names, trained=trained)
    batch = batches_of(table, trained.batch)
    columns = dict(table.kept)
    if trained.batch is not None and trained.batch not in arguments.keep:
        del columns[table.kept_as(trained.batch)]
    with named(table.path):
        X = as_taken(model, table.examples)
        if is_regressor(machine_of(model)):
            predicted = {with_unit(k, trained.unit): v for k, v in _values(model, X, batch).items()}
        else:
            predicted = _decisions(model, X, batch)
    for name in set(columns) & set(predicted):
        raise CommandError(f"--keep {name}: the predictions have a column {name!r} of their own")
    write_columns(columns | predicted, output, form)
    tell(
        arguments.command,
        f"{len(table.lines)} rows; {len(names)} features, {table.uncertain}; errors: "
        f"{meaning_of_errors(model)}",
    )


def require_population(arguments: argparse.Namespace, model: Any) -> None:
    """Raise CommandError if missing values are to be estimated by a model that cannot."""
    if arguments.missing == "impute" and not takes_missing(model):
        raise CommandError(
            f"--missing impute: {arguments.model} was trained without --errors measurement and "
            "knows no population to estimate values by"
        )


def _values(model: Any, X: Gaussians, batch: Any) -> dict[str, npt.NDArray[Any]]:
    machine, seen = machine_of(model), as_the_machine_sees(model, X, batch)
    if not has_errors(seen) or "return_std" not in signature(machine.predict).parameters:
        return {"value": machine.predict(seen)}
    value, std = machine.predict(seen, return_std=True)
    return {"value": value, "value_std": std}


def _decisions(model: Any, X: Gaussians, batch: Any) -> dict[str, npt.NDArray[Any]]:
    machine, seen = machine_of(model), as_the_machine_sees(model, X, batch)
    calibrated = hasattr(model, "predict_proba")
    columns: dict[str, Any] = {"label": model.predict(X) if calibrated else machine.predict(seen)}
    if hasattr(machine, "decision_function"):
        columns |= _by_class("decision_value", machine, machine.decision_function(seen))
    if has_errors(seen):
        # of kernels the decision value is no normal variable
        for method in ("decision_std", "side_probability"):
            if hasattr(machine, method):
                try:
                    columns |= _by_class(method, machine, getattr(machine, method)(seen))
                except NoClosedFormError as error:
                    tell("predict", f"no column {method!r}: {error}")
    if calibrated:
        probabilities = model.predict_proba(X)
        two = len(machine.classes_) == 2
        columns |= _by_class("probability", machine, probabilities[:, 1] if two else probabilities)
    return columns


def _by_class(name: str, machine: Any, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Make one column for two classes (about the second), one per class for more."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{label}": values[:, k] for k, label in enumerate(machine.classes_)}
