"""Models of tables: trained on standardised features, kept and applied in the table's units.

In:  pipelines of a population, scales, a map and a machine, trained on tables; model files.
Out: the same with scales absorbed where the machine is linear; examples as the machine takes them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.checks.error_names import KINDS, ErrorColumn
from halosvm.files.model_file import ModelFileError, load_with_table, save_with_table
from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.safe_svc import SafeSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR
from halosvm.linear.total import TotalSVC
from halosvm.maps import UncertainStandardScaler
from halosvm.population import EmpiricalBayes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halosvm.files.json_tree import Node

_LINEAR = (UncertainSVC, UncertainSVR, SafeSVC, TotalSVC)


def in_table_units(model: Any, names: Sequence[str]) -> Any:
    """Return a model for features that are not standardised, with their names."""
    if isinstance(model, UncertainCalibratedClassifier):
        calibrated = copy.copy(model)
        calibrated.estimator_ = in_table_units(model.estimator_, names)
        return calibrated
    steps = [step for _, step in model.steps if step != "passthrough"]
    own = (EmpiricalBayes, UncertainStandardScaler)
    straight = all(isinstance(step, own) for step in steps[:-1])
    if straight and isinstance(steps[-1], _LINEAR) and hasattr(steps[-1], "coef_"):
        machine = copy.deepcopy(steps[-1])
        before = [step for step in steps[:-1] if isinstance(step, EmpiricalBayes)]
        for step in steps[:-1]:
            if isinstance(step, UncertainStandardScaler):
                machine.coef_ = machine.coef_ / step.scale_
                if step.with_mean:
                    machine.intercept_ = machine.intercept_ - machine.coef_ @ step.mean_
        steps = [*before, machine]
        machine.feature_names_in_ = np.array(names, dtype=object)
    steps[0].feature_names_in_ = np.array(names, dtype=object)
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


_WITHOUT_LIMITS = (
    ", which this model does not take: one that is trained with --errors measurement takes it for "
    "what it tells"
)


def machine_of(model: Any) -> Any:
    """Return the machine at the end of a model."""
    if isinstance(model, UncertainCalibratedClassifier):
        return machine_of(model.estimator_)
    return model[-1] if isinstance(model, Pipeline) else model


def population_of(model: Any) -> EmpiricalBayes | None:
    """Return the population of true values that a model holds, None for none."""
    if isinstance(model, UncertainCalibratedClassifier):
        return population_of(model.estimator_)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else []
    return next((step for step in steps if isinstance(step, EmpiricalBayes)), None)


def as_taken(model: Any, X: Gaussians) -> Gaussians:
    """Return examples with means in full where one of the steps of a model takes no sparse ones.

    Limits are refused that the first step does not take.
    """
    if not getattr(first_of(model), "_takes_limits", False):
        X.require_no_limits("the table", _WITHOUT_LIMITS)
    if isinstance(model, UncertainCalibratedClassifier):
        return as_taken(model.estimator_, X)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not X.is_sparse or all(get_tags(step).input_tags.sparse for step in steps):
        return X
    return X.replaced(mean=X.mean.toarray())


def as_the_machine_sees(model: Any, X: Gaussians, batch: Any = None) -> Gaussians:
    """Return the examples before the last step of a model.

    What is known of true values comes with its spread, also where the model was fitted to means
    alone. `batch` are the labels of the batches of the rows, where the model knows some.
    """
    if isinstance(model, UncertainCalibratedClassifier):
        return as_the_machine_sees(model.estimator_, X)
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            if isinstance(step, EmpiricalBayes):
                X = copy.copy(step).set_params(output="gaussian").transform(X, batch=batch)
            else:
                X = step.transform(X)
    return X


def first_of(model: Any) -> Any:
    """Return what sees the examples first in a model."""
    if isinstance(model, UncertainCalibratedClassifier):
        return first_of(model.estimator_)
    return model[0] if isinstance(model, Pipeline) else model


def takes_missing(model: Any) -> bool:
    """Tell whether a model knows what to do about missing values."""
    return bool(get_tags(first_of(model)).input_tags.allow_nan)


def has_errors(seen: Any) -> bool:
    """Tell whether what a machine sees has errors; columns of features have none."""
    return isinstance(seen, Gaussians) and not seen.covariances.certain


def meaning_of_errors(model: Any) -> str:
    """Say what a model takes the errors of a table for."""
    truth = population_of(model)
    if truth is None and takes_missing(model):
        first = first_of(model)
        by = ", ".join(map(repr, getattr(first, "chosen_", [type(first).__name__])))
        return f"measurement: each row measures its true values, answered by {by}"
    if truth is None:
        return "distribution: each row is taken as a Gaussian (--errors distribution)"
    mean = "mean " if truth.output == "mean" else ""
    count = f"{truth.n_components_} component" + ("s" if truth.n_components_ > 1 else "")
    scales = getattr(truth, "error_scale_", np.ones(1))
    low, high = float(np.min(scales)), float(np.max(scales))
    factor = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    return (
        f"measurement: each row is replaced by the posterior {mean}of its true values, under a "
        f"population of {count}{f', errors times {factor}' * (factor != '1')} "
        "(--errors measurement)"
    )


class Trained(NamedTuple):
    """What a model remembers of the table it was trained on; None where it does not know.

    Attributes
    ----------
    label : str or None
        The column of labels or values.
    unit : str or None
        The unit of values.
    errors : dict of str to ErrorColumn, or None
        The error columns of features and values.
    weight : str or None
        The column of weights.
    group : str or None
        The column of what rows belong to.
    groups : sequence of str or None
        What the rows of the training belong to.
    batch : str or None
        The column of the batches of rows.
    """

    label: str | None = None
    unit: str | None = None
    errors: dict[str, ErrorColumn] | None = None
    weight: str | None = None
    group: str | None = None
    groups: Sequence[str] | None = None
    batch: str | None = None


NOTHING = Trained()


def save(model: Any, path: str, trained: Trained) -> None:
    """Write a model with what it remembers of its table."""
    errors = None
    if trained.errors is not None:
        errors = {
            name: {"columns": list(column.names), "holds": column.holds}
            for name, column in trained.errors.items()
        }
    table = trained._asdict() | {"errors": errors}
    if trained.group is None:
        del table["group"], table["groups"]
    if trained.batch is None:
        del table["batch"]
    save_with_table(model, path, table)


def _trained(table: Node | None) -> Trained:
    if table is None:
        return NOTHING
    fields = table.fields(("label", "unit", "errors"), ("weight", "group", "groups", "batch"))
    given = {key: each for key, each in fields.items() if each.value is not None}
    errors = {
        name: _error_column(each)
        for name, each in (given["errors"].fields((), None) if "errors" in given else {}).items()
    }
    groups = [each.text() for each in given["groups"].items()] if "groups" in given else None
    texts = {key: each.text() for key, each in given.items() if key not in ("errors", "groups")}
    return Trained(**texts, errors=errors if "errors" in given else None, groups=groups)


def _error_column(node: Node) -> ErrorColumn:
    fields = node.fields(("columns", "holds"))
    columns = tuple(each.text() for each in fields["columns"].items())
    if len(columns) not in (1, 2):
        fields["columns"].fail(f"expected one column or two, got {len(columns)}")
    return ErrorColumn(columns, fields["holds"].choice(KINDS))


def load(path: str) -> tuple[Any, list[str], Trained]:
    """Read a model, and what it knows of tables.

    The names of its features are 1, 2, ... where it knows none.
    """
    model, table = load_with_table(path)
    try:
        trained = _trained(table)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    first = first_of(model)
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        names = range(1, first.n_features_in_ + 1)
    return model, [str(name) for name in names], trained
