"""Model files: a fitted classifier in; one readable JSON file out, and back.

The file holds the parameters of the estimator, its classes with their type, and its linear model;
of a pipeline that begins with EmpiricalBayes also the population of true values.
Numbers are written with as many digits as it takes to read the same float64 again, so that a model
that was loaded predicts bit for bit what the saved one predicted. Files hold data only: loading
one runs no code from it.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.units import text
from halosvm.gaussians.covariances import Covariances
from halosvm.linear.svc import UncertainSVC
from halosvm.maps import EmpiricalBayes

if TYPE_CHECKING:
    import numpy.typing as npt

FORMAT = "halosvm-model"
FORMAT_VERSION = 1
WITH_POPULATION = 2  # a version of its own: who reads version 1 alone must not leave the map out

# JSON has no infinity and no NaN; the measures of a fit (a bound that is not known) may be either.
_FIT_MEASURES = ("n_iter_", "objective_", "suboptimality_", "status_")


class ModelFileError(ValueError):
    """A file that is not a usable model; the message is one line and names the file."""


def save_model(estimator: UncertainSVC | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a JSON file.

    The file appears under its name when it is complete: a reader never sees half of it, and an
    interrupted or failed call leaves an earlier file as it was.

    Parameters
    ----------
    estimator : UncertainSVC or Pipeline
        A fitted classifier, or a fitted pipeline of EmpiricalBayes and it. A `random_state` that is
        a generator, which only a new fit would use, is saved as None, and the given start of a
        population as the default.
    path : path-like

    Raises
    ------
    TypeError
        When `estimator` is neither, or one of its parameters or classes is of a type that JSON
        cannot hold.
    ValueError
        When a coefficient is not finite, or the features have units.
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
    if not isinstance(estimator, UncertainSVC):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; only UncertainSVC can be saved, and a "
            "pipeline of EmpiricalBayes and UncertainSVC"
        )
    if not isinstance(population, EmpiricalBayes | None):
        raise TypeError(
            f"estimator begins with {type(population).__name__}; of pipelines only one of "
            "EmpiricalBayes and UncertainSVC can be saved"
        )
    check_is_fitted(estimator)
    for name in ("coef_", "intercept_"):
        if not np.isfinite(getattr(estimator, name)).all():
            raise ValueError(f"{name} holds a value that is not finite")
    if hasattr(estimator, "feature_units_in_"):
        raise ValueError(
            f"estimator was fitted to features with {text(estimator.feature_units_in_)}, which a "
            "model file cannot hold; fit it to plain numbers"
        )
    names = getattr(estimator, "feature_names_in_", None)
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION if population is None else WITH_POPULATION,
        "estimator": "UncertainSVC",
        "parameters": {
            name: _parameter_to_json(name, value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "classes": _classes_to_json(estimator.classes_),
        "feature_names": None if names is None else [str(name) for name in names],
        "coef": np.asarray(estimator.coef_, dtype=np.float64).tolist(),
        "intercept": np.asarray(estimator.intercept_, dtype=np.float64).tolist(),
        "fit": {
            name: _measure_to_json(getattr(estimator, name))
            for name in _FIT_MEASURES
            if hasattr(estimator, name)
        },
    }
    if population is not None:
        check_is_fitted(population)
        document["population"] = _population_to_json(population)
    _write_atomically(Path(path), json.dumps(document, indent=1, allow_nan=False) + "\n")


def load_model(path: str | os.PathLike[str]) -> UncertainSVC | Pipeline:
    """Read a classifier from a file that `save_model` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    UncertainSVC or Pipeline
        Fitted: its predictions are bit for bit those of the estimator that was saved.

    Raises
    ------
    ModelFileError
        When the file cannot be read, is not a model file, is of a later format, or is damaged.
    """
    try:
        document = json.loads(Path(path).read_bytes(), parse_constant=_reject_constant)
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


def _estimator_from(document: dict[str, Any]) -> UncertainSVC:
    """Build the estimator of a document whose format is right and whose content may not be."""
    if document["estimator"] != "UncertainSVC":
        raise ValueError(f"unknown estimator {document['estimator']!r}")
    parameters = {
        name: _parameter_from_json(value) for name, value in document["parameters"].items()
    }
    estimator = UncertainSVC(**parameters)
    classes = _classes_from_json(document["classes"])
    coef = _finite_array(document, "coef", n_dims=2)
    intercept = _finite_array(document, "intercept", n_dims=1)
    n_problems = 1 if len(classes) == 2 else len(classes)
    if len(classes) < 2 or len(coef) != n_problems or len(intercept) != n_problems:
        raise ValueError(
            f"{len(classes)} classes do not go with {len(coef)} rows of coef and "
            f"{len(intercept)} intercepts"
        )
    estimator.classes_ = classes
    estimator.coef_ = coef
    estimator.intercept_ = intercept
    estimator.n_features_in_ = coef.shape[1]
    names = document["feature_names"]
    if names is not None:
        if len(names) != coef.shape[1] or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names must be {coef.shape[1]} strings")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for name in _FIT_MEASURES:
        if name in document["fit"]:
            setattr(estimator, name, _measure_from_json(document["fit"][name]))
    return estimator


_ARRAYS = {"full": ("values",), "diagonal": ("values",), "factors": ("values", "diagonal_values")}


def _population_to_json(population: EmpiricalBayes) -> dict[str, Any]:
    covariances = population.covariances_
    return {
        "parameters": {
            name: _parameter_to_json(name, "kmeans" if isinstance(value, tuple) else value)
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


def _population_from(record: dict[str, Any], classifier: UncertainSVC) -> EmpiricalBayes:
    population = EmpiricalBayes(**record["parameters"])
    population.weights_ = _finite_array(record, "weights", n_dims=1)
    population.means_ = _finite_array(record, "means", n_dims=2)
    arrays = record["covariances"]
    if population.covariance == "full":
        values = _finite_array(arrays, "values", n_dims=3)
        population.covariances_ = Covariances.full(values)
    elif population.covariance == "diagonal":
        population.covariances_ = Covariances.diagonal(_finite_array(arrays, "values", n_dims=2))
    else:
        factors = _finite_array(arrays, "values", n_dims=3)
        own = _finite_array(arrays, "diagonal_values", n_dims=2)
        population.covariances_ = Covariances.low_rank(factors, own)
    k, d = population.means_.shape
    if d != classifier.n_features_in_ or population.weights_.shape != (k,):
        raise ValueError("population and classifier have different features or components")
    if population.covariances_.shape != (k, d):
        raise ValueError("the covariances of the population do not go with its means")
    population.n_components_, population.n_features_in_ = k, d
    population.log_likelihood_ = np.array([float(record["fit"]["log_likelihood"])])
    population.n_iter_ = record["fit"]["n_iter"]
    population.converged_ = record["fit"]["converged"]
    population.status_ = record["fit"]["status"]
    if hasattr(classifier, "feature_names_in_"):
        population.feature_names_in_ = classifier.feature_names_in_
    return population


def _parameter_to_json(name: str, value: Any) -> Any:
    """Prepare a parameter; a dict (`class_weight`) becomes pairs, for JSON's keys are strings."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, dict):
        pairs = [[_scalar(name, key), _scalar(name, item)] for key, item in value.items()]
        return {"pairs": pairs}
    return _scalar(name, value)


def _parameter_from_json(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value


def _scalar(name: str, value: Any) -> str | int | float | bool | None:
    """Return the value as a type of JSON that reads back equal."""
    if isinstance(value, np.generic):
        value = value.item()
    if (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    raise TypeError(f"{name} holds {value!r} of type {type(value).__name__}, which cannot be saved")


def _classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Keep the dtype with the classes, so that predictions come back as the same type."""
    return {
        "dtype": "object" if classes.dtype == object else classes.dtype.str,
        "values": [_scalar("classes_", value) for value in classes],
    }


def _classes_from_json(record: dict[str, Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(record["dtype"])
    values = record["values"]
    wanted: dict[str, Any] = {
        "b": bool,
        "i": int,
        "u": int,
        "f": float,
        "U": str,
        "O": (str, int, float),
    }
    if dtype.kind not in wanted:
        raise ValueError(f"classes cannot have dtype {dtype.str!r}")
    for value in values:
        if not isinstance(value, wanted[dtype.kind]):
            raise TypeError(f"class {value!r} does not go with dtype {dtype.str!r}")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values:
        raise ValueError(f"classes {values!r} do not fit into dtype {dtype.str!r}")
    if len(set(values)) != len(values):
        raise ValueError(f"classes {values!r} are not distinct")
    return classes


def _finite_array(document: dict[str, Any], name: str, *, n_dims: int) -> npt.NDArray[np.float64]:
    array = np.array(document[name])
    if array.ndim != n_dims or array.dtype.kind not in "if" or array.size == 0:
        raise ValueError(f"{name} must be numbers in {n_dims} dimensions")
    # Digits such as 1e999 read as infinity without being JSON's forbidden constants.
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a value that is not finite")
    return array.astype(np.float64)


def _measure_to_json(value: Any) -> Any:
    """Prepare a number, text or array; a number that is not finite becomes its name."""
    if isinstance(value, np.ndarray):
        return [_measure_to_json(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value


def _measure_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return np.array([_measure_from_json(item) for item in value])
    if isinstance(value, dict):
        return float(value["number"])
    return value


def _reject_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


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
