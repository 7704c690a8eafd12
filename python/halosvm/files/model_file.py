"""Model files: a fitted estimator in; one file that holds data only out, and back.

Files are JSON text; what that cannot hold goes to `skops_file`. Numbers are written with as many
digits as it takes to read the same float64 again, long arrays as their bytes, so that a model that
was loaded predicts bit for bit what the saved one predicted. Loading one runs no code from it:
names of classes are those of a table.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePath
from typing import Any

from halosvm.checks.parameters import require_choice
from halosvm.files.atomic import write_bytes
from halosvm.files.json_tree import Node, parse, written
from halosvm.files.records import estimator_from, record_of
from halosvm.files.saved_estimators import LINEAR
from halosvm.files.svmgsu_file import HEADER, svmgsu_model, svmgsu_text
from halosvm.files.tables.opening import COMPRESSIONS
from halosvm.linear.safe_svc import SafeSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR
from halosvm.linear.total import TotalSVC

LinearMachine = UncertainSVC | UncertainSVR | SafeSVC | TotalSVC


FORMAT = "halosvm-model"
# Each version is of what those before cannot hold, so that readers of these leave nothing out.
LINEAR_MACHINE = 1
WITH_POPULATION = 2  # is read alone
ANY_ESTIMATOR = 3

FORMATS = ("halosvm", "svm-gsu")

_ARCHIVE = b"PK\x03\x04"  # how a file of skops begins

_AROUND = ("format", "format_version", "table")  # what stands beside the record


class ModelFileError(ValueError):
    """A file that is not a usable model; the message is one line and names the file."""


def save_model(estimator: Any, path: str | os.PathLike[str], *, format: str = "halosvm") -> None:  # noqa: A002
    """Write a fitted estimator to a file.

    The file appears under its name when it is complete: a reader never sees half of it, and an
    interrupted or failed call leaves an earlier file as it was. What it replaces gives the file its
    permissions; of a symbolic link it is what the link points to.

    Parameters
    ----------
    estimator : estimator
        Any fitted estimator of this package; a `Pipeline`, `OneVsRestClassifier` or
        `FrozenEstimator` of such; and, as steps or within `Propagate`, those transformers of
        scikit-learn that are numbers once they are fitted, as `StandardScaler` and `PCA`.
    path : path-like
        A file, or "-" for standard output. Its ending ``.skops`` asks for a file of skops
        (``pip install "halosvm[io]"``). That also holds `MeasurementClassifier`,
        `MeasurementRegressor`, `MeasurementFeatures`, and scikit-learn's estimators within
        pipelines and wrappers; C++ does not read it. All others are JSON.
    format : {"halosvm", "svm-gsu"}, default="halosvm"
        "svm-gsu" is the text that the public tool of this name reads, of linear classifiers of the
        labels -1 and 1, also calibrated with method="sigmoid".

    Raises
    ------
    TypeError
        When `estimator` is none of these, or one of its parameters or classes is of a type that
        a file of data cannot hold, as a kernel that is a function.
    ImportError
        When a file of skops is asked for, and skops is not installed.
    ValueError
        When a coefficient is not finite, the features have units, or the ending of `path` is one of
        compressed files.
    sklearn.exceptions.NotFittedError
    OSError
        When the file cannot be written.

    See Also
    --------
    load_model

    Notes
    -----
    The folder of a cache (`memory`) is neither saved nor loaded: whoever fits names their own. Of
    what only a new fit would use, a `random_state` that is a generator is saved as None, and the
    given start of a population, validation data, and splits, as the
    default; an estimator within another one comes back as a clone of its fit. `corrections_` of a
    `TotalSVC` are not saved. A machine of `halosvm.dask` comes back as that of `halosvm`. A stream
    goes on with the same bits after `partial_fit` was loaded.

    A file of skops is for the versions of halosvm and scikit-learn that wrote it, others warn. It
    keeps all that was fitted, and a `random_state` as it is.
    """
    require_choice(format, "format", FORMATS)
    require_form(path)
    if format == "svm-gsu":
        write_bytes(path, svmgsu_text(estimator).encode())
    else:
        save_with_table(estimator, path, None)


def is_skops(path: str | os.PathLike[str]) -> bool:
    """Tell whether the name of a model file asks for one of skops."""
    return PurePath(path).suffix.lower() == ".skops"


def require_form(path: str | os.PathLike[str]) -> None:
    """Raise for the name of a file that cannot be written as a model; for the time before the work.

    ValueError for a compressed file, which no model file is; ImportError where skops is missing.
    """
    suffix = PurePath(path).suffix
    if suffix.lower() in COMPRESSIONS:
        raise ValueError(f"cannot write {path}: model files are not compressed; leave {suffix} out")
    if is_skops(path):
        _skops_file()


def save_with_table(
    estimator: Any, path: str | os.PathLike[str], table: dict[str, Any] | None
) -> None:
    """Write an estimator as `save_model` does, with what is to be remembered of its table."""
    if is_skops(path):
        write_bytes(path, _skops_file().skops_bytes(estimator, table))
        return
    record = record_of(estimator)
    linear = record["estimator"] in LINEAR and "coef" in record and "stream" not in record
    version = LINEAR_MACHINE if linear else ANY_ESTIMATOR
    document = {"format": FORMAT, "format_version": version, **record}
    if table is not None:
        document["table"] = table
    write_bytes(path, written(document).encode())


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file that `save_model` wrote, or the public tool SVM-GSU.

    Parameters
    ----------
    path : path-like
        A file, or "-" for standard input. The format is known by its first bytes.

    Returns
    -------
    estimator
        Fitted: its predictions are bit for bit those of the estimator that was saved. A file of
        SVM-GSU makes an `UncertainSVC`, calibrated if it holds `sigmA` and `sigmB`.

    Raises
    ------
    ModelFileError
        When the file cannot be read, is not a model file, is of a later format, or is damaged; the
        message tells the line, or the place in the document, or the type of what a file of skops
        must not hold.
    ImportError
        When it is a file of skops, and skops is not installed.
    """
    return load_with_table(path)[0]


def load_with_table(path: str | os.PathLike[str]) -> tuple[Any, Node | None]:
    """Read an estimator as `load_model` does, and what was remembered of its table, or None."""
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    if content.startswith(HEADER.encode()):
        try:
            return svmgsu_model(content), None
        except ValueError as error:
            raise ModelFileError(f"{path} is damaged: {error}") from error
    if content.startswith(_ARCHIVE):
        skops_file = _skops_file()
        try:
            made, remembered = skops_file.skops_model(content)
        except ValueError as error:
            raise ModelFileError(f"{path} is not a model file, or damaged: {error}") from error
        return made, None if remembered is None else Node(remembered, "table")
    try:
        nodes = parse(content).fields((), None)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a model file: {error}") from error
    if "format" not in nodes or nodes["format"].value != FORMAT:
        raise ModelFileError(f'{path} is not a model file: it has no "format": "{FORMAT}"')
    version = nodes["format_version"].value if "format_version" in nodes else None
    if type(version) is not int or not LINEAR_MACHINE <= version <= ANY_ESTIMATOR:
        raise ModelFileError(
            f"{path} has format_version {version!r}; this version of halosvm reads "
            f"{LINEAR_MACHINE} to {ANY_ESTIMATOR}"
        )
    table = nodes.get("table")
    members = {key: each.value for key, each in nodes.items() if key not in _AROUND}
    try:
        record = Node(members, "")
        made = estimator_from(_pipeline_of(record) if version == WITH_POPULATION else record)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return made, None if table is None or table.value is None else table


def _skops_file() -> Any:
    """Return the module of files of skops; ImportError tells how to install it."""
    # Here, not above: it imports much that other files do without.
    try:
        from halosvm.files import skops_file
    except ImportError as error:
        raise ImportError('.skops files need skops: pip install "halosvm[io]"') from error
    return skops_file


def _pipeline_of(record: Node) -> Node:
    """Return the record of a pipeline for one of version 2: a machine with a population in it."""
    members = dict(record.fields(("population", "feature_names"), None))
    population = members.pop("population").fields(
        ("parameters", "weights", "means", "covariances", "fit")
    )
    parameters = population["parameters"].fields((), None)
    arrays = population["covariances"].fields(("values",), ("diagonal_values",))
    covariance = parameters["covariance"].value if "covariance" in parameters else "full"
    kinds = {"full": "full", "diagonal": "diagonal", "factors": "low_rank"}
    means = population["means"].items()
    shape = [len(means), len(means[0].items()) if means else 0]
    first = {key: each.value for key, each in population.items()} | {
        "estimator": "EmpiricalBayes",
        "feature_names": members["feature_names"].value,
        "covariances": {key: each.value for key, each in arrays.items()}
        | {"kind": kinds.get(covariance, "full"), "shape": shape},
        "fit": {f"{key}_": each.value for key, each in population["fit"].fields((), None).items()},
    }
    if "log_likelihood_" in first["fit"]:
        first["fit"]["log_likelihood_"] = [first["fit"]["log_likelihood_"]]
    second = {key: each.value for key, each in members.items()}
    if "output" in parameters and parameters["output"].value == "mean":
        second["feature_names"] = None  # means are arrays, which have none
    names = ("empiricalbayes", str(second.get("estimator")).lower())
    steps = [{"name": name} | each for name, each in zip(names, (first, second), strict=True)]
    return Node({"estimator": "Pipeline", "parameters": {}, "steps": steps}, "")
