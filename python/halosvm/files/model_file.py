"""Model files: a fitted linear machine in; one readable JSON file out, and back.

The file holds the parameters of the estimator, its classes with their type, and its linear models;
of a pipeline that begins with EmpiricalBayes also the population of true values.
Numbers are written with as many digits as it takes to read the same float64 again, so that a model
that was loaded predicts bit for bit what the saved one predicted. Files hold data only: loading
one runs no code from it.
"""

from __future__ import annotations

import json
import numbers
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.units import text
from halosvm.files.json_values import (
    classes_from_json,
    classes_to_json,
    finite_array,
    measure_from_json,
    measure_to_json,
    parameter_from_json,
    parameter_to_json,
    reject_constant,
)
from halosvm.gaussians.covariances import Covariances
from halosvm.linear.safe_svc import SafeSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR
from halosvm.linear.total import TotalSVC
from halosvm.maps import EmpiricalBayes

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

FORMAT = "halosvm-model"
FORMAT_VERSION = 1
WITH_POPULATION = 2  # a version of its own: who reads version 1 alone must not leave the map out

_SUMMARY = ("n_iter_", "objective_", "status_")


class _Saved(NamedTuple):
    """An estimator that can be saved, and what is kept of its fit beside classes and models."""

    estimator: type[Any]
    measures: tuple[str, ...]


_SAVED = {
    "UncertainSVC": _Saved(UncertainSVC, (*_SUMMARY, "suboptimality_")),
    "UncertainSVR": _Saved(UncertainSVR, (*_SUMMARY, "suboptimality_")),
    "SafeSVC": _Saved(SafeSVC, ("n_iter_", "std_", "validation_losses_")),
    # not corrections_, which are as large as the training data
    "TotalSVC": _Saved(TotalSVC, (*_SUMMARY, "is_global_")),
}

LinearMachine = UncertainSVC | UncertainSVR | SafeSVC | TotalSVC


class ModelFileError(ValueError):
    """A file that is not a usable model; the message is one line and names the file."""


def save_model(estimator: LinearMachine | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted linear machine to a JSON file.

    The file appears under its name when it is complete: a reader never sees half of it, and an
    interrupted or failed call leaves an earlier file as it was.

    Parameters
    ----------
    estimator : UncertainSVC, UncertainSVR, SafeSVC, TotalSVC or Pipeline
        A fitted linear machine, or a fitted pipeline of EmpiricalBayes and it. Of what only a new
        fit would use, a `random_state` that is a generator is saved as None, and the given start of
        a population, or validation data or splits, as the default. `corrections_` of a `TotalSVC`
        are not saved.
    path : path-like

    Raises
    ------
    TypeError
        When `estimator` is none of these, or one of its parameters or classes is of a type that
        JSON cannot hold.
    ValueError
        When a coefficient is not finite, the features have units, or a machine has a kernel.
    sklearn.exceptions.NotFittedError
    OSError
        When the file cannot be written.

    See Also
    --------
    load_model
    """
    steps = (
        [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    )
    population = steps.pop(0) if len(steps) == 2 else None
    [estimator] = steps if len(steps) == 1 else [estimator]
    name = type(estimator).__name__
    if name not in _SAVED or type(estimator) is not _SAVED[name].estimator:
        raise TypeError(
            f"estimator is a {name}; only {_listed()} can be saved, and pipelines of "
            "EmpiricalBayes and one of them"
        )
    if not isinstance(population, EmpiricalBayes | None):
        raise TypeError(
            f"estimator begins with {type(population).__name__}; of pipelines only those of "
            f"EmpiricalBayes and one of {_listed()} can be saved"
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "coef_"):
        raise ValueError(
            f"estimator is a {name} with a kernel, which a model file cannot hold; fit it with "
            "kernel='linear', or keep it by joblib.dump"
        )
    for attribute in ("coef_", "intercept_"):
        if not np.isfinite(getattr(estimator, attribute)).all():
            raise ValueError(f"{attribute} holds a value that is not finite")
    if hasattr(estimator, "feature_units_in_"):
        raise ValueError(
            f"estimator was fitted to features with {text(estimator.feature_units_in_)}, which a "
            "model file cannot hold; fit it to plain numbers"
        )
    first = estimator if population is None else population
    names = getattr(first, "feature_names_in_", None)
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION if population is None else WITH_POPULATION,
        "estimator": name,
        "parameters": _parameters_to_json(estimator),
        "feature_names": None if names is None else [str(name) for name in names],
        # one row and one intercept for each model, also where there can be one alone
        "coef": np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64)).tolist(),
        "intercept": np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)).tolist(),
        "fit": {
            measure: measure_to_json(getattr(estimator, measure))
            for measure in _SAVED[name].measures
            if hasattr(estimator, measure)
        },
    }
    if is_classifier(estimator):
        document["classes"] = classes_to_json(estimator.classes_)
    if population is not None:
        check_is_fitted(population)
        document["population"] = _population_to_json(population)
    _write_atomically(Path(path), json.dumps(document, indent=1, allow_nan=False) + "\n")


def load_model(path: str | os.PathLike[str]) -> LinearMachine | Pipeline:
    """Read a machine from a file that `save_model` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    UncertainSVC, UncertainSVR, SafeSVC, TotalSVC or Pipeline
        Fitted: its predictions are bit for bit those of the estimator that was saved.

    Raises
    ------
    ModelFileError
        When the file cannot be read, is not a model file, is of a later format, or is damaged.
    """
    try:
        document = json.loads(Path(path).read_bytes(), parse_constant=reject_constant)
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a model file: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'{path} is not a model file: it has no "format": "{FORMAT}"')
    version = document.get("format_version")
    if version not in {FORMAT_VERSION, WITH_POPULATION}:
        raise ModelFileError(
            f"{path} has format_version {version!r}; this version of halosvm reads "
            f"{FORMAT_VERSION} and {WITH_POPULATION}"
        )
    try:
        estimator = _estimator_from(document)
        if version == FORMAT_VERSION:
            return estimator
        population = _population_from(document["population"], estimator)
        return make_pipeline(population, estimator)
    except KeyError as error:
        raise ModelFileError(f"{path} is damaged: {error} is missing") from error
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error


def _listed() -> str:
    *names, last = _SAVED
    return f"{', '.join(names)} and {last}"


def _parameters_to_json(estimator: LinearMachine) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    if isinstance(estimator, SafeSVC):
        parameters["bounds"] = tuple(estimator.bounds)
        if not isinstance(estimator.validation, numbers.Real):
            parameters["validation"] = SafeSVC().validation
    return {name: parameter_to_json(name, value) for name, value in parameters.items()}


def _estimator_from(document: dict[str, Any]) -> LinearMachine:
    """Build the estimator of a document whose format is right and whose content may not be."""
    name = document["estimator"]
    if name not in _SAVED:
        raise ValueError(f"unknown estimator {name!r}")
    parameters = {key: parameter_from_json(value) for key, value in document["parameters"].items()}
    estimator: LinearMachine = _SAVED[name].estimator(**parameters)
    coef = finite_array(document, "coef", n_dims=2)
    intercept = finite_array(document, "intercept", n_dims=1)
    if is_classifier(estimator):
        estimator.classes_ = classes_from_json(document["classes"])
        _require_models(estimator, coef, intercept)
        estimator.coef_, estimator.intercept_ = coef, intercept
    else:
        if len(coef) != 1 or len(intercept) != 1:
            raise ValueError(
                f"one model of values does not go with {len(coef)} rows of coef and "
                f"{len(intercept)} intercepts"
            )
        estimator.coef_, estimator.intercept_ = coef[0], float(intercept[0])
    estimator.n_features_in_ = coef.shape[1]
    names = document["feature_names"]
    if names is not None:
        if len(names) != coef.shape[1] or not all(isinstance(each, str) for each in names):
            raise ValueError(f"feature_names must be {coef.shape[1]} strings")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for measure in _SAVED[name].measures:
        if measure in document["fit"]:
            setattr(estimator, measure, measure_from_json(document["fit"][measure]))
    return estimator


def _require_models(classifier: Any, coef: Array, intercept: Array) -> None:
    """Raise unless there are as many models as the classes ask for."""
    n_classes = len(classifier.classes_)
    n_models = 1 if n_classes == 2 else n_classes
    if n_classes < 2 or len(coef) != n_models or len(intercept) != n_models:
        raise ValueError(
            f"{n_classes} classes do not go with {len(coef)} rows of coef and {len(intercept)} "
            "intercepts"
        )
    if n_classes > 2 and not classifier.__sklearn_tags__().classifier_tags.multi_class:
        raise ValueError(f"{type(classifier).__name__} has 2 classes, not {n_classes}")


_ARRAYS = {"full": ("values",), "diagonal": ("values",), "factors": ("values", "diagonal_values")}


def _population_to_json(population: EmpiricalBayes) -> dict[str, Any]:
    covariances = population.covariances_
    return {
        "parameters": {
            name: parameter_to_json(name, "kmeans" if isinstance(value, tuple) else value)
            for name, value in population.get_params(deep=False).items()
        },
        "weights": population.weights_.tolist(),
        "means": population.means_.tolist(),
        "covariances": {
            name: getattr(covariances, name).tolist() for name in _ARRAYS[population.covariance]
        },
        "fit": {
            "log_likelihood": float(population.log_likelihood_[-1]),
            "n_iter": population.n_iter_,
            "converged": bool(population.converged_),
            "status": population.status_,
        },
    }


def _population_from(record: dict[str, Any], machine: LinearMachine) -> EmpiricalBayes:
    population = EmpiricalBayes(**record["parameters"])
    population.weights_ = finite_array(record, "weights", n_dims=1)
    population.means_ = finite_array(record, "means", n_dims=2)
    arrays = record["covariances"]
    if population.covariance == "full":
        values = finite_array(arrays, "values", n_dims=3)
        population.covariances_ = Covariances.full(values)
    elif population.covariance == "diagonal":
        population.covariances_ = Covariances.diagonal(finite_array(arrays, "values", n_dims=2))
    else:
        factors = finite_array(arrays, "values", n_dims=3)
        own = finite_array(arrays, "diagonal_values", n_dims=2)
        population.covariances_ = Covariances.low_rank(factors, own)
    k, d = population.means_.shape
    if d != machine.n_features_in_ or population.weights_.shape != (k,):
        raise ValueError("population and machine have different features or components")
    if population.covariances_.shape != (k, d):
        raise ValueError("the covariances of the population do not go with its means")
    population.n_components_, population.n_features_in_ = k, d
    population.log_likelihood_ = np.array([float(record["fit"]["log_likelihood"])])
    population.n_iter_ = record["fit"]["n_iter"]
    population.converged_ = record["fit"]["converged"]
    population.status_ = record["fit"]["status"]
    if hasattr(machine, "feature_names_in_"):
        population.feature_names_in_ = machine.feature_names_in_
        if population.output == "mean":
            del machine.feature_names_in_  # means are arrays, which have none
    return population


def _write_atomically(path: Path, content: str) -> None:
    """Write beside the target, then rename: the rename replaces the old file in one step."""
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
