"""Models of tables: trained on standardised features, kept and applied in the table's units.

In:  tables, pipelines that were trained on them, model files.
Out: examples as the machine takes them; machines and populations in the table's units.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
from sklearn.pipeline import Pipeline

from halosvm.files.model_file import LinearMachine, load_model
from halosvm.gaussians.gaussians import Gaussians
from halosvm.maps import EmpiricalBayes, UncertainStandardScaler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halosvm.files.table import Table


def in_table_units(pipeline: Pipeline, names: Sequence[str]) -> LinearMachine:
    """Return the machine of a pipeline for features that are not standardised."""
    model: LinearMachine = copy.deepcopy(pipeline.named_steps["machine"])
    scaling = pipeline.named_steps["scale"]
    if isinstance(scaling, UncertainStandardScaler):
        model.coef_ = model.coef_ / scaling.scale_
        model.intercept_ = model.intercept_ - model.coef_ @ scaling.mean_
    model.feature_names_in_ = np.array(names, dtype=object)
    return model


def population_in_table_units(pipeline: Pipeline, names: Sequence[str]) -> EmpiricalBayes:
    """Return the population of a pipeline for features that are not standardised."""
    truth: EmpiricalBayes = copy.deepcopy(pipeline.named_steps["truth"])
    scaling = pipeline.named_steps["scale"]
    if isinstance(scaling, UncertainStandardScaler):
        truth.means_ = scaling.inverse_transform(truth.means_)
        truth.covariances_ = truth.covariances_.mapped(np.diag(scaling.scale_))
    truth.feature_names_in_ = np.array(names, dtype=object)
    return truth


def true_values(truth: EmpiricalBayes | None, table: Table) -> Gaussians:
    """Return what is known of the rows of a table, under the population that the model holds.

    With its spread, also where the model was fitted to means alone.
    """
    X = gaussians_of(table)
    if truth is None:
        return X
    posterior: Gaussians = copy.copy(truth).set_params(output="gaussian").transform(X)
    return posterior


def meaning_of_errors(truth: EmpiricalBayes | None) -> str:
    """Say what a model takes the errors of a table for."""
    if truth is None:
        return "distribution: each row is taken as a Gaussian (--errors distribution)"
    mean = "mean " if truth.output == "mean" else ""
    count = f"{truth.n_components_} component" + ("s" if truth.n_components_ > 1 else "")
    return (
        f"measurement: each row is replaced by the posterior {mean}of its true values, under a "
        f"population of {count} (--errors measurement)"
    )


def gaussians_of(table: Table) -> Gaussians:
    """Return the rows of a table."""
    return Gaussians(table.mean) if table.std is None else Gaussians(table.mean, std=table.std)


def load(path: str) -> tuple[EmpiricalBayes | None, LinearMachine, list[str]]:
    """Read a model, the population before it, and the names of its features."""
    truth, model = None, load_model(path)
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", None)
    if isinstance(model, Pipeline):
        truth, model = model[0], model[1]
    if names is None:
        raise ValueError(f"{path} has no feature names: fit on a table or a data frame first")
    return truth, model, [str(name) for name in names]
