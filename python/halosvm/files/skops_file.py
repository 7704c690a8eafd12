"""Model files of skops: estimators that hold scikit-learn's trees and the like, of known types.

In:  a fitted estimator and what is remembered of its table; or the bytes of a file.
Out: the bytes of an archive that holds plain parts, each with the name of its type; or both again.
     skops makes objects of the types below and of scikit-learn's estimators, and of no others.
"""

from __future__ import annotations

import copy
from inspect import signature
from io import BytesIO
from numbers import Integral
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_is_fitted
from skops import io

import halosvm.files.saved_estimators  # fills SAVED
from halosvm.core.user_warning import warn_user
from halosvm.files.records import SAVED
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures
from halosvm.kernel.expected_kernel import ExpectedKernel
from halosvm.kernel.given_kernel import PrecomputedKernel
from halosvm.maps.known_maps import KnownMap
from halosvm.measurement.candidates import Candidate, Fitted
from halosvm.measurement.classifier import MeasurementClassifier
from halosvm.measurement.comparison import ComparisonTable
from halosvm.measurement.features import MeasurementFeatures
from halosvm.measurement.regressor import MeasurementRegressor

if TYPE_CHECKING:
    from collections.abc import Iterator

# What fits consist of, beside what skops takes by itself: numbers, texts, lists, arrays, NumPy's
# generators and functions of arrays, and scikit-learn's public estimators.
TRUSTED: tuple[type[Any], ...] = (
    *(entry.estimator for entry in SAVED.values()),
    *(MeasurementClassifier, MeasurementRegressor, MeasurementFeatures),
    *(Candidate, Fitted, ComparisonTable),
    *(Covariances, Gaussians, GaussianMixtures),
    *(ExpectedKernel, PrecomputedKernel, KnownMap),
    *(Tree, TreePredictor, csr_array),
)


def skops_bytes(estimator: Any, table: dict[str, Any] | None) -> bytes:
    """Return the file of a fitted estimator; TypeError names what it cannot hold."""
    if hasattr(estimator, "to_local"):  # the machines of dask, whose models are ours
        estimator = estimator.to_local()
    check_is_fitted(estimator)
    document = {
        "halosvm": halosvm.__version__,
        "estimator": _without_settings_of_fits(estimator),
        "table": table,
    }
    try:
        content: bytes = io.dumps(document)
        _require_known_types(content)
    except TypeError as error:
        raise TypeError(f"{type(estimator).__name__} cannot be kept: {error}") from error
    return content


def skops_model(content: bytes) -> tuple[Any, dict[str, Any] | None]:
    """Return the estimator of a file, and what was remembered of its table.

    ValueError tells of a damaged file, or names the types that it must not hold.
    """
    try:
        _require_known_types(content)
        document = io.loads(content, trusted=list(TRUSTED))
        version, estimator, table = (document[key] for key in ("halosvm", "estimator", "table"))
        check_is_fitted(estimator)
        _forget_folders(estimator)
    except Exception as error:  # of any kind: the parts may be anything
        raise ValueError(" ".join(f"{type(error).__name__}: {error}".split())) from error
    if version != halosvm.__version__:
        warn_user(
            f"the model was written by halosvm {version}, this is {halosvm.__version__}; .skops "
            "files are made for the versions that wrote them",
            UserWarning,
        )
    return estimator, table


def _require_known_types(content: bytes) -> None:
    """Raise for an archive with other types, or with parts that take more room than the file."""
    with ZipFile(BytesIO(content)) as archive:
        if any(part.compress_type != ZIP_STORED for part in archive.infolist()):
            raise ValueError("its parts are compressed, and may be of any size")
    known = {f"{each.__module__}.{each.__qualname__}" for each in TRUSTED}
    if strange := sorted({*io.get_untrusted_types(data=content)} - known):
        raise TypeError(f"no .skops file may hold {' or '.join(strange)}")


def _without_settings_of_fits(estimator: Any) -> Any:
    """Return a copy without folders of caches, and with numbers in place of ways to split."""
    splits = {
        id(each.cv): signature(type(each)).parameters["cv"].default
        for each in _objects_in(estimator)
        if isinstance(each, BaseEstimator)
        and not isinstance(getattr(each, "cv", None), Integral | str | None)
    }
    kept = copy.deepcopy(estimator, splits)
    _forget_folders(kept)
    return kept


def _forget_folders(estimator: Any) -> None:
    """Take out folders of caches: a fit would write there, and unpickle what it finds."""
    for each in _objects_in(estimator):
        if getattr(each, "memory", None) is not None:
            each.memory = None


def _objects_in(root: Any) -> Iterator[Any]:
    """Yield objects with attributes, from the estimator down, each once."""
    seen: set[int] = set()
    rest = [root]
    while rest:
        each = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list | tuple):
            rest += each
        elif isinstance(each, np.ndarray):
            rest += each.ravel().tolist() if each.dtype == object else []
        elif hasattr(each, "__dict__") and not isinstance(each, type):
            yield each
            rest += vars(each).values()
