"""Scores to calibrate: a fitted classifier and examples come in, one value a class comes out.

Of two classes it is one value alone. With the values comes their spread over uncertain examples.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import _ovr_decision_function

from halosvm.calibration.expectations import normal_nodes
from halosvm.checks.errors_seen import had_errors
from halosvm.checks.estimator import GaussianEstimator, have_errors
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_POWER = 10  # 2**_POWER points stand for the law of the decision values of all pairs
_NUMBERS = 4_000_000  # of one block of values
_LEAST = 1e-12  # added to probabilities before their logarithm is taken, as scikit-learn does


def scores(model: Any, data: Any, *, logits: bool) -> tuple[Array, Array]:
    """Return scores, and their standard deviations (n,) or covariances (n, k, k).

    Decision values; of machines of pairs of classes those of the classes, whatever their
    `decision_function_shape`. Of a classifier without decision values its probabilities.

    Parameters
    ----------
    model : classifier
        Fitted; a pipeline, a search and a frozen one are seen through.
    data : Gaussians, GaussianMixtures or ndarray
        Examples.
    logits : bool
        Whether probabilities are to be on the scale of logarithms of odds.
    """
    model, data = _innermost(model, data)
    if not hasattr(model, "decision_function"):
        return _of_probabilities(model, data, logits=logits)
    n_classes = len(model.classes_)
    model = _with_value_a_class(model)
    decision = np.asarray(model.decision_function(_given(model, data)), dtype=np.float64)
    if decision.ndim > 1 and decision.shape[1] != n_classes:
        raise ValueError(
            f"decision_function of {type(model).__name__} has {decision.shape[1]} columns for "
            f"{n_classes} classes; calibration needs one a class: with "
            "decision_function_shape='ovr', or wrapped in sklearn's OneVsRestClassifier"
        )
    if not uncertain(data):
        return decision, np.zeros(decision.shape + decision.shape[1:])
    _require_decision_std(model)
    std = np.asarray(model.decision_std(data), dtype=np.float64)
    if decision.ndim == 1:
        return decision, std
    if hasattr(model, "decision_function_shape"):
        model.decision_function_shape = "ovo"
        return _moments_of_votes(model.decision_function(data), std, n_classes)
    coef = getattr(model, "coef_", None)
    if coef is not None:
        coef = np.asarray(coef, dtype=np.float64)
        parts = data.components if isinstance(data, GaussianMixtures) else data
        spread = parts.covariances.mapped(coef).to_full()
        if isinstance(data, GaussianMixtures):
            apart = parts.mean @ coef.T - np.repeat(
                data.moments()[0] @ coef.T, np.diff(data.offsets), axis=0
            )
            spread = data.means_of(spread + apart[:, :, np.newaxis] * apart[:, np.newaxis])
        return decision, spread
    return decision, std[:, :, np.newaxis] ** 2 * np.eye(decision.shape[1])


def uncertain(data: Any) -> bool:
    """Return whether examples have errors."""
    return not isinstance(data, np.ndarray) and have_errors(data)


def plain(data: Any) -> Any:
    """Return the means of certain examples, which any classifier takes."""
    return data.mean if isinstance(data, Gaussians) and not uncertain(data) else data


def _given(model: Any, data: Any) -> Any:
    """Return what a fitted model is to see of examples.

    Names and units are lost with the Gaussians, and missed by a model that knows them.
    """
    known = hasattr(model, "feature_names_in_") or hasattr(model, "feature_units_in_")
    known = known or had_errors(model)  # which is told so that the examples are exact
    return data if known and isinstance(model, GaussianEstimator) else plain(data)


def _innermost(model: Any, data: Any) -> tuple[Any, Any]:
    """Return the classifier within pipelines, searches and frozen ones, and what it sees."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            data = model[:-1].transform(_given(model[0], data)) if len(model) > 1 else data
            model = model[-1]
        else:
            return model, data


def _with_value_a_class(part: Any) -> Any:
    """Return a copy that shares its arrays, with a decision value a class in all machines within.

    The number of columns does not tell: three classes have three pairs.
    """
    if type(part) in (list, tuple):
        return type(part)(_with_value_a_class(each) for each in part)
    if not isinstance(part, BaseEstimator):
        return part
    other = copy.copy(part)
    within = vars(part)
    if "final_estimator_" in within:  # the values of the machines before it are its features
        within = {"final_estimator_": part.final_estimator_}
    vars(other).update({name: _with_value_a_class(each) for name, each in within.items()})
    if "decision_function_shape" in vars(other):
        other.decision_function_shape = "ovr"
    return other


def _moments_of_votes(pairs: Array, std: Array, n_classes: int) -> tuple[Array, Array]:
    """Return means and covariances of the values of classes, for independent values of pairs."""
    n, n_pairs = pairs.shape
    nodes = normal_nodes(n_pairs, _POWER)
    mean, covariance = np.empty((n, n_classes)), np.empty((n, n_classes, n_classes))
    block = max(1, _NUMBERS // nodes.size)
    for begin in range(0, n, block):
        rows = slice(begin, begin + block)
        points = pairs[rows, np.newaxis] + std[rows, np.newaxis] * nodes
        flat = points.reshape(-1, n_pairs)
        votes = _ovr_decision_function(flat < 0, -flat, n_classes)
        votes = votes.reshape(len(points), -1, n_classes)
        mean[rows] = votes.mean(axis=1)
        votes -= mean[rows, np.newaxis]
        covariance[rows] = votes.transpose(0, 2, 1) @ votes / len(nodes)
    return mean, covariance


def _of_probabilities(model: Any, data: Any, *, logits: bool) -> tuple[Array, Array]:
    """Return the probabilities of a classifier without decision values, of two classes one."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} has neither decision_function nor predict_proba, one of which "
            "calibration needs"
        )
    if uncertain(data):
        _require_decision_std(model)
    p = np.asarray(model.predict_proba(_given(model, data)), dtype=np.float64)
    values = np.log(p + _LEAST) if logits else p
    if p.shape[1] == 2:
        values = values[:, 1] - values[:, 0] if logits else p[:, 1]
    return values, np.zeros(values.shape + values.shape[1:])


def _require_decision_std(model: Any) -> None:
    if not hasattr(model, "decision_std"):
        raise TypeError(
            f"{type(model).__name__} has no decision_std, so that it can be calibrated for "
            "certain examples only; leave the errors out"
        )
