"""Fits of linear models to examples that come in chunks: the objective is a sum over the chunks.

In:  a source of chunks, settings of an estimator.
Out: the same result as of a fit of all chunks together, certified as that is.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from halosvm import _core
from halosvm.checks.targets import class_factors, encode_labels
from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.linear_fit import (
    Settings,
    complain,
    lambda_of,
    least_at_zero,
    make_objective,
    minimize,
)
from halosvm.linear.parts import Classes, Residuals, Whole
from halosvm.linear.residuals import free_model
from halosvm.linear.returned import View, as_returned
from halosvm.linear.sums import Reader, Summary, summarise, survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halosvm.linear.linear_fit import Result
    from halosvm.linear.residuals import HalvesOf
    from halosvm.linear.sums import Source

    Array = NDArray[np.float64]

SOLVERS = ("auto", "lbfgs")


def fit_classes(
    source: Source, estimator: Any, start: Callable[[NDArray[Any]], Any]
) -> tuple[NDArray[Any], Result, Summary]:
    """Fit a classifier's models to chunks; return its classes, the models and what is known of X.

    `start` returns the model to begin with, if any, for given classes.
    """
    settings = _settings(source, estimator)
    rows = source.then(Reader.of(estimator, values=False, n_threads=settings.n_threads))
    summary = summarise(rows.map(survey, settings, False), settings.fit_intercept)
    classes, _ = encode_labels(np.repeat(summary.labels, 3))
    shares = [summary.shares[label] for label in classes.tolist()]
    for label, share in zip(classes.tolist(), shares, strict=True):
        if not share.weight:
            raise ValueError(
                f"sample_weight is 0 for all examples of class {label!r}; leave them out, or give "
                "one of them a positive weight"
            )
    weights = np.array([share.weight for share in shares])
    factors = None
    if estimator.class_weight is not None:
        factors = class_factors(classes, weights, estimator.class_weight)
        weights = weights * factors
    lam = lambda_of(settings.C, float(weights.sum()))
    moments = _moments(shares, weights, settings)
    view = View(_origin(moments, settings))
    problem = Classes(classes, factors, lam, settings, view.centre if view.moves else None)
    whole = Whole(rows.then(problem), summary, _seen(moments, view))
    # Where w = 0 spreads are 0 too, and all that counts of a class is its weight and its mean.
    whole.at_zero = make_objective(
        Gaussians(np.stack([share.mean - view.centre for share in shares])),
        np.arange(len(classes), dtype=np.int16),
        problem.n_problems,
        weights,
        lam,
        settings,
        is_part=True,
    )
    result = _minimize(
        whole, problem.n_problems, lam, settings, start(classes), view, summary.many_kinks
    )
    if view.moves:
        result = as_returned(result, view, settings, lambda: moments, whole.exact_values)
    complain(result, settings.tol, least_at_zero(result, classes))
    return classes, result, summary


def _minimize(
    whole: Whole,
    n_problems: int,
    lam: float,
    settings: Settings,
    start: tuple[Array, Array] | None,
    view: View,
    many_kinks: bool,
    at_origin: float | None = None,
) -> Result:
    """Return the models of the sum, as they are seen from the view."""
    n_features = len(view.centre)
    objective = _core.SummedObjective(
        [whole],
        weights=[1.0],
        n_problems=n_problems,
        n_features=n_features,
        lam=lam,
        loss=settings.loss,
        fit_intercept=settings.fit_intercept,
        at_origin=at_origin,
        many_kinks=many_kinks,
    )
    if start is not None and start[0].shape == (n_problems, n_features):
        start = view.into(*start)
    return minimize(objective, n_problems, n_features, settings, start)


def survey_values(source: Source, estimator: Any, loss: str) -> tuple[Source, Summary, Settings]:
    """Return the checked chunks of a regression, what is known of all of them, and settings."""
    settings = _settings(source, estimator, loss=loss)
    rows = source.then(Reader.of(estimator, values=True, n_threads=settings.n_threads))
    summary = summarise(rows.map(survey, settings, True), settings.fit_intercept)
    if not summary.weight:
        raise ValueError(
            "sample_weight is zero for all examples; give at least one non-zero weight"
        )
    return rows, summary, settings


def fit_values(
    rows: Source,
    summary: Summary,
    halves: HalvesOf,
    settings: Settings,
    start: tuple[Array, Array] | None,
) -> Result:
    """Fit a regression to checked chunks; everything is as in `fit_residuals`."""
    one = np.ones(1)
    of_one = halves(one, one)
    twice = sum(float(weights.sum()) for weights in of_one.weights)
    lam = lambda_of(settings.C, twice * summary.weight)
    moments = _moments(list(summary.shares.values()), one, settings)
    view = View(_origin(moments, settings), halves.shift, halves.unit)
    problem = Residuals(halves, lam, settings, view.centre if view.centre.any() else None)
    whole = Whole(rows.then(problem), summary, _seen(moments, view))
    uncertain = of_one.variances is not None
    extremes = np.array([summary.low, summary.high])
    result = free_model(halves, extremes, uncertain, summary.shape[1], settings)
    if result is None:
        at_origin = whole(np.zeros((1, summary.shape[1])), np.zeros(1), 0.0).value[0]
        many_kinks = summary.many_kinks and not uncertain
        result = _minimize(whole, 1, lam, settings, start, view, many_kinks, float(at_origin))
    width = np.sqrt(summary.square + (summary.centre - halves.shift) ** 2) / halves.unit

    def exact_values(W: Array, b: Array) -> Array:
        return whole.exact_values(W, b, -halves.epsilon, halves.unit)

    unknown = halves.rounding(float(width))
    result = as_returned(result, view, settings, lambda: moments, exact_values, unknown)
    complain(result, settings.tol)
    return result


def _settings(source: Source, estimator: Any, **others: Any) -> Settings:
    settings = Settings.of(estimator, **others)
    if settings.n_threads is None:
        settings = dataclasses.replace(settings, n_threads=source.n_threads)
    if settings.solver not in SOLVERS:
        raise ValueError(
            f"solver is {settings.solver!r}, which needs all rows in memory; for chunks it must be "
            f"one of {', '.join(SOLVERS)}"
        )
    if not _core.loss_traits(settings.loss)["convex"]:
        raise ValueError(
            f"loss is {settings.loss!r}, which is not convex and needs all rows in memory; chunks "
            "are for the other losses"
        )
    return settings


def _moments(shares: list[Any], weights: Array, settings: Settings) -> _core.Moments:
    """Return the moments of all examples from those of each class."""
    share = weights / weights.sum()
    means = np.stack([one.mean for one in shares])
    mean = share @ means
    variance = share @ np.stack([one.variance for one in shares])
    if settings.fit_intercept:
        variance = variance + share @ (means - mean) ** 2
    centre = mean if settings.fit_intercept else np.zeros_like(mean)
    wide = [one.widest for one in shares if one.widest.size]
    widest = np.max(wide, axis=0) if wide else np.zeros(0)
    return _core.Moments(mean=mean, centre=centre, variance=variance, widest=widest)


def _origin(moments: _core.Moments, settings: Settings) -> Array:
    """Return from where scores keep their digits: the mean if it is far from 0.

    Each pass over means that are seen from elsewhere copies them.
    """
    far = 1000.0  # deviations
    constant = 1e-12  # rounding alone gives a constant feature a deviation
    offset, deviation = np.abs(moments.centre), np.sqrt(moments.variance)
    is_far = ((offset > far * deviation) & (deviation >= constant * offset)).any()
    return moments.centre if settings.fit_intercept and is_far else np.zeros_like(offset)


def _seen(moments: _core.Moments, view: View) -> _core.Moments:
    """Return the moments of the same features from the centre of a view."""
    return _core.Moments(
        mean=moments.mean - view.centre,
        centre=moments.centre - view.centre,
        variance=moments.variance,
        widest=moments.widest,
    )


def refuse_arguments(estimator: Any, **given: Any) -> None:
    """Raise ValueError for arguments of `fit` that chunks bring along, or cannot have."""
    for name, value in given.items():
        if value is not None:
            _refuse(name, type(estimator).__name__)


def _refuse(name: str, estimator: str) -> NoReturn:
    holds = "(X, y) or (X, y, sample_weight)"
    raise ValueError(
        f"{name} is given, but X is chunks, which {estimator} takes alone: each chunk is a tuple "
        f"{holds}, where errors are those of Gaussians"
    )
