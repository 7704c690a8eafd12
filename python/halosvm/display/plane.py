"""The plane of two features: where it ends, and what a classifier says of its points.

Points and the errors of examples come in; decision values, and how many standard deviations an
example there is away from the border, go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from halosvm.checks.estimator import GaussianEstimator
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NUMBERS = 2**22  # of dense covariances that are held at a time


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def limits(plane: Gaussians, level: float) -> list[tuple[float, float]]:
    """Return the ends of both axes: all means, and most ellipses, however large some may be."""
    reach = level * np.sqrt(np.median(plane.covariances.variances(), axis=0))
    low, high = plane.mean.min(axis=0) - reach, plane.mean.max(axis=0) + reach
    pad = np.where(high > low, 0.06 * (high - low), 1.0)
    return [(float(a), float(b)) for a, b in zip(low - pad, high + pad, strict=True)]


def on_plane(at: Array, pair: list[int], xx0: Array, xx1: Array) -> Array:
    """Return the points of a grid, whose other features are those of `at`."""
    points = np.tile(at, (xx0.size, 1))
    points[:, pair] = np.column_stack([xx0.ravel(), xx1.ravel()])
    return points


def decisions(estimator: Any, points: Array, data: Gaussians) -> Array:
    """Return decision values of certain points, of which the largest is that of the prediction."""
    given: Any = points
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    if isinstance(first, GaussianEstimator):
        given = data.replaced(mean=points, covariances=Covariances.zero(*points.shape), groups=None)
    elif data.feature_names is not None:
        import pandas as pd

        given = pd.DataFrame(points, columns=data.feature_names)
    model = last_step(estimator)
    if hasattr(model, "decision_function_shape") and len(model.classes_) > 2:
        return _of_classes(estimator, given)
    return np.asarray(estimator.decision_function(given), dtype=np.float64)


def _of_classes(machine: Any, points: Any) -> Array:
    """Return of each class, for a machine of pairs, the least value against another class.

    It is continuous, unlike votes. The class that wins all its pairs has the largest; where none
    does, the largest is given to the prediction.
    """
    model = last_step(machine)
    n_classes = len(model.classes_)
    pairs = _in_shape(machine, "ovo").decision_function(points)
    values = np.full((len(pairs), n_classes), np.inf)
    for pair, (i, j) in zip(pairs.T, zip(*np.triu_indices(n_classes, 1), strict=True), strict=True):
        values[:, i] = np.minimum(values[:, i], pair)
        values[:, j] = np.minimum(values[:, j], -pair)
    predicted = np.searchsorted(model.classes_, machine.predict(points))
    rows, best = np.arange(len(values)), values.argmax(axis=1)
    values[rows, predicted], values[rows, best] = values[rows, best], values[rows, predicted]
    return values


def _in_shape(estimator: Any, shape: str) -> Any:
    """Return a view of a fitted machine of pairs with another shape of its decision values."""
    model = last_step(estimator)
    other: Any = object.__new__(type(model))
    other.__dict__.update(model.__dict__ | {"decision_function_shape": shape})
    if not isinstance(estimator, Pipeline):
        return other
    return Pipeline([*estimator.steps[:-1], (estimator.steps[-1][0], other)])


def deviations(estimator: Any, points: Array, data: Gaussians) -> Array:
    """Return how many standard deviations examples of typical error are from the border."""
    n, d = points.shape
    whole = data.covariances
    mean = storage_of(whole).weighted_sum(whole, np.full(len(data), 1.0 / len(data)))
    own = np.array_equal(mean, np.diag(np.diag(mean)))
    step = max(1, _NUMBERS // (d if own else d * d))
    found = []
    for begin in range(0, n, step):
        part = points[begin : begin + step]
        shape = (len(part), d) if own else (len(part), d, d)
        typical = np.ascontiguousarray(np.broadcast_to(np.diag(mean) if own else mean, shape))
        kind = Covariances.diagonal if own else Covariances.full
        found.append(
            _ratio(estimator, data.replaced(mean=part, covariances=kind(typical), groups=None))
        )
    return np.concatenate(found)


def _ratio(estimator: Any, examples: Any) -> Array:
    """Return decision values over their standard deviations, of more classes of the best two."""
    model = last_step(estimator)
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        examples = estimator[:-1].transform(examples)
    if len(model.classes_) == 2:
        f, std = model.decision_function(examples), model.decision_std(examples)
    elif hasattr(model, "decision_function_shape"):
        first, second = _best_two(_in_shape(model, "ovr").decision_function(examples))
        low, high = np.minimum(first, second), np.maximum(first, second)
        of_pair = np.zeros((len(model.classes_),) * 2, dtype=np.intp)
        of_pair[np.triu_indices(len(of_pair), 1)] = np.arange(len(model.intercept_))
        at = np.arange(len(low)), of_pair[low, high]
        f = np.abs(_in_shape(model, "ovo").decision_function(examples)[at])
        std = model.decision_std(examples)[at]
    else:
        values = model.decision_function(examples)
        first, second = _best_two(values)
        rows = np.arange(len(values))
        f = values[rows, first] - values[rows, second]
        S = examples.covariances.mapped(np.asarray(model.coef_, dtype=np.float64)).to_full()
        variance = S[rows, first, first] + S[rows, second, second]
        variance -= 2.0 * S[rows, first, second]
        std = np.sqrt(np.maximum(variance, 0.0))
    far = np.copysign(1e9, f)
    ratio: Array = np.divide(f, std, out=far, where=std > 1e-9 * np.abs(f))
    return ratio


def _best_two(values: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(-values, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def leads(response: Array, n_classes: int) -> list[Array]:
    """Return how far each class is ahead of the best other one, on the grid."""
    if n_classes == 2:
        return [-response, response]
    best = np.sort(response, axis=-1)[..., -2:]
    return [
        response[..., k] - np.where(response[..., k] == best[..., 1], best[..., 0], best[..., 1])
        for k in range(n_classes)
    ]


def ellipses(covariances: Array) -> tuple[Array, Array, Array]:
    """Return the half axes of (n, 2, 2) covariances, and the angles of the first in degrees."""
    values, vectors = np.linalg.eigh(covariances)
    long, short = np.sqrt(np.maximum(values[:, ::-1], 0.0)).T
    return long, short, np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
