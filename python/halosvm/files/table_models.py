"""Models of tables: trained on standardised features, kept and applied in the table's units.

In:  tables, pipelines that were trained on them, model files.
Out: examples as the classifier takes them; classifiers and populations in the table's units.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from halosvm.files.model_file import load_model
from halosvm.gaussians.centring import column_scales
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.maps import EmpiricalBayes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halosvm.files.table import Table
    from halosvm.linear.svc import UncertainSVC


class Standardise(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features to mean 0 and standard deviation 1, their errors to the same units."""

    def fit(self, X: Gaussians, y: Any = None) -> Standardise:  # noqa: ARG002
        """Measure the features."""
        self.centre_ = X.mean.mean(axis=0)
        self.scale_ = column_scales(X.mean)
        return self

    def transform(self, X: Gaussians) -> Gaussians:
        """Return the same examples in those units."""
        means = (X.mean - self.centre_) / self.scale_
        return Gaussians(means, cov=X.covariances.scaled(1.0 / self.scale_))


def in_table_units(pipeline: Pipeline, names: Sequence[str]) -> UncertainSVC:
    """Return the classifier of a pipeline for features that are not standardised."""
    model: UncertainSVC = copy.deepcopy(pipeline.named_steps["svc"])
    scaling = pipeline.named_steps["scale"]
    if isinstance(scaling, Standardise):
        model.coef_ = model.coef_ / scaling.scale_
        model.intercept_ = model.intercept_ - model.coef_ @ scaling.centre_
    model.feature_names_in_ = np.array(names, dtype=object)
    return model


def population_in_table_units(pipeline: Pipeline, names: Sequence[str]) -> EmpiricalBayes:
    """Return the population of a pipeline for features that are not standardised."""
    truth: EmpiricalBayes = copy.deepcopy(pipeline.named_steps["truth"])
    scaling = pipeline.named_steps["scale"]
    if isinstance(scaling, Standardise):
        unit = scaling.scale_
        truth.means_ = truth.means_ * unit + scaling.centre_
        truth.covariances_ = Covariances.full(
            truth.covariances_.to_full() * unit[:, np.newaxis] * unit
        )
    truth.feature_names_in_ = np.array(names, dtype=object)
    return truth


def true_values(truth: EmpiricalBayes | None, table: Table) -> Gaussians:
    """Return what is known of the rows of a table, under the population that the model holds."""
    X = gaussians_of(table)
    if truth is None:
        return X
    posterior: Gaussians = truth.transform(X)
    return posterior


def meaning_of_errors(truth: EmpiricalBayes | None) -> str:
    """Say what a model takes the errors of a table for."""
    if truth is None:
        return "distribution: each row is taken as a Gaussian (--errors distribution)"
    count = f"{truth.n_components_} component" + ("s" if truth.n_components_ > 1 else "")
    return (
        "measurement: each row is replaced by the posterior of its true values, under a population "
        f"of {count} (--errors measurement)"
    )


def gaussians_of(table: Table) -> Gaussians:
    """Return the rows of a table."""
    return Gaussians(table.mean) if table.std is None else Gaussians(table.mean, std=table.std)


def load(path: str) -> tuple[EmpiricalBayes | None, UncertainSVC, list[str]]:
    """Read a model, the population before it, and the names of its features."""
    truth, model = None, load_model(path)
    if isinstance(model, Pipeline):
        truth, model = model[0], model[1]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(f"{path} has no feature names: fit on a table or a data frame first")
    return truth, model, [str(name) for name in names]
