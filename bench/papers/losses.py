"""All losses on noisy data whose errors are stated right, by half, twice, or up to a factor.

No paper; the question is which loss to choose. Normal noise of a known standard deviation, another
one for each value, is added to real tables. It has two meanings:

- Measurements: training and test examples are values with noise.
- Distributions: training examples are the values themselves and what they may become, N(x, S); test
  examples are what they became, one draw each. And ones and sevens, of which 25 images each are
  known, are seen shifted; for these there are no posteriors, since nothing was measured, and
  `calibrate_scale`, which is slow with 784 features, is left out.

The errors told to the methods are right, half or twice of what they are; or, "learnt", all of them
are wrong by one unknown factor between 1/4 and 4, and validation chooses among multiples of them,
none included. All methods choose on the same folds, which are judged by points such as those of the
test. A column is an experiment of its own: a mark says nothing of differences between columns.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from common import Options, SamplingSVC, isotropic, run_script, standard_error
from loaders import Digits, digits
from measurements import (
    FOLDS,
    LEGEND,
    OVERLAP,
    Contestant,
    format_results,
    given,
    ignored,
    posterior_means,
    posteriors,
    splits,
    tables,
)
from mnist import STD
from scipy import ndimage
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from halosvm import Gaussians, TotalSVC, UncertainSVC, calibrate_scale
from halosvm.commands.demo import measurements as demo
from halosvm.uncertainty import confidence_radius, image_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from common import Array
    from measurements import Pair
    from numpy.typing import NDArray

FACTORS = {"right": 1.0, "half": 0.5, "twice": 2.0, "learnt": None}  # errors told over true ones
SCALES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the errors told, to choose from
SIZE = 1.0  # mean standard deviation of the noise, in that of the feature
EPSILON = 0.05
C = {"C": (0.01, 0.1, 1.0, 10.0)}
BALLS = {"ball_radius": (0.05, 0.1, 0.2, 0.4, 0.8)}
PER_CLASS = 25  # images for training
REFERENCE = "ignored"
CALIBRATED = "calibrated"
NOT_FOR_SHIFTS = ("means", "posteriors", CALIBRATED)


# -- methods -------------------------------------------------------------------------------------
def isotropic_given(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return isotropic Gaussians of the same total variance, and the values of test examples."""
    return [(isotropic(X), Z.mean)]


def times(X: Gaussians, factor: float) -> Gaussians:
    """Multiply all standard deviations."""
    return Gaussians(X.mean, cov=X.covariances.scaled(np.full(X.shape[1], factor)))


def scaled(view: Callable[[Any, Any], list[Pair]]) -> Callable[[Any, Any], list[Pair]]:
    """Return a view of several: what the given one sees of all multiples of the errors."""

    def views(X: Gaussians, Z: Gaussians) -> list[Pair]:
        return [pair for scale in SCALES for pair in view(times(X, scale), times(Z, scale))]

    return views


def contestants() -> dict[str, Contestant]:
    """Return a method for each loss, beside plain losses on means and on posteriors."""
    worst = f"worst case, radius {confidence_radius(EPSILON):.2f}"

    def linear(loss: str, **parameters: float) -> UncertainSVC:
        return UncertainSVC(loss=loss, n_threads=1, **parameters)

    ball = TotalSVC(formulation="ball", n_threads=1)
    robust = linear("worst_case", radius=confidence_radius(EPSILON))
    square, logistic = linear("expected_squared_hinge"), linear("expected_logistic")
    return {
        REFERENCE: Contestant("hinge, errors ignored", ignored, linear("hinge"), C, False),
        "square": Contestant("squared hinge, errors ignored", ignored, square, C, False),
        "logistic": Contestant("logistic, errors ignored", ignored, logistic, C, False),
        "expected_hinge": Contestant("expected hinge", given, linear("expected_hinge"), C),
        "expected_squared_hinge": Contestant("expected squared hinge", given, square, C),
        "expected_logistic": Contestant("expected logistic", given, logistic, C),
        "worst_case": Contestant(worst, given, robust, C),
        "best_case": Contestant("best case, TotalSVC(linear)", given, linear("best_case"), C),
        "ball": Contestant("TotalSVC in a ball, isotropic errors", isotropic_given, ball, BALLS),
        "draws": Contestant("hinge on 10 draws", given, SamplingSVC(), C),
        "means": Contestant("hinge on posterior means", posterior_means, linear("hinge"), C),
        "posteriors": Contestant(
            "expected hinge on posteriors", posteriors, linear("expected_hinge"), C
        ),
        CALIBRATED: Contestant(
            "expected hinge, calibrate_scale", given, linear("expected_hinge"), C
        ),
    }


# -- data ----------------------------------------------------------------------------------------
class Task(NamedTuple):
    """One run: training examples, a point to judge each by, test points; errors told / true."""

    X: Gaussians
    y: NDArray[Any]
    points: Gaussians  # those to judge by, then those of the test
    y_test: NDArray[Any]
    factor: float


def binary_tables() -> dict[str, tuple[Array, NDArray[np.bool_]]]:
    """Return the tables of two classes, and of the wine the second cultivar against the others."""
    positive = {"cells": "malignant", "ionosphere": "g", "wine": 1}
    return {name: (values, y == positive[name]) for name, (values, y) in tables().items()}


def told(factor: float | None, seed: int, number: int) -> float:
    """Return the factor of the errors, of a run its own if it is None."""
    if factor is not None:
        return factor
    return float(4.0 ** np.random.default_rng((seed, number, 1)).uniform(-1.0, 1.0))


def measured(
    values: Array, y: NDArray[Any], factor: float | None, n_runs: int, seed: int
) -> Iterator[Task]:
    """Add noise to training and test examples, which have errors both."""
    for number, train, test in splits(y, n_runs, seed):
        by = told(factor, seed, number)
        X = times(demo.measure(values, SIZE, np.random.default_rng((seed, number))), by)
        yield Task(X[train], y[train], X[np.append(train, test)], y[test], by)


def distributed(
    values: Array, y: NDArray[Any], factor: float | None, n_runs: int, seed: int
) -> Iterator[Task]:
    """Add noise to the points to judge by and to those of the test alone, which have no errors."""
    for number, train, test in splits(y, n_runs, seed):
        by = told(factor, seed, number)
        drawn = demo.measure(values, SIZE, np.random.default_rng((seed, number)))
        X = times(Gaussians(values, cov=drawn.covariances), by)
        points = Gaussians(drawn.mean[np.append(train, test)])
        yield Task(X[train], y[train], points, y[test], by)


def shifted(data: Digits, factor: float | None, n_runs: int, seed: int) -> Iterator[Task]:
    """Shift the images to judge by and those of the test; the errors are those of such shifts."""

    def moved(images: Array, rng: np.random.Generator) -> Array:
        found = [ndimage.shift(image, rng.normal(0.0, STD, 2), order=1) for image in images]
        return np.array(found).reshape(len(images), -1)

    for number in range(n_runs):
        by, rng = told(factor, seed, number), np.random.default_rng((seed, number))
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(data.train_labels == label), PER_CLASS, replace=False)
                for label in (False, True)
            ]
        )
        X = image_transform(data.train[rows], std=[by * STD] * 2)
        points = np.concatenate([moved(part, rng) for part in (data.train[rows], data.test)])
        yield Task(X, data.train_labels[rows], Gaussians(points), data.test_labels, by)


# -- runs ----------------------------------------------------------------------------------------
def with_judges(
    known: Gaussians | Array, points: Array, y: NDArray[Any], seed: int
) -> tuple[Any, NDArray[Any], list[Any]]:
    """Stack examples and the points to judge them by; return them, labels and folds of rows."""
    n, certain = len(y), isinstance(known, np.ndarray)
    stacked: Any = (
        np.concatenate([known, points])
        if certain
        else Gaussians.concatenate([known, Gaussians(points, cov=times(known, 0.0).covariances)])
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y)
    return stacked, np.tile(y, 2), [(fitted, n + judged) for fitted, judged in folds]


def score(method: Contestant, task: Task, seed: int) -> float:
    """Choose what the method sees and its parameters by the judges; return the test accuracy."""
    best, accuracy, n = -1.0, 0.0, len(task.y)
    for known, asked in method.view(task.X, task.points):
        X, y, folds = with_judges(known, asked[:n], task.y, seed)
        search = GridSearchCV(
            method.estimator, dict(method.grid), cv=folds, refit=False, error_score="raise"
        ).fit(X, y)
        if search.best_score_ > best:
            chosen = clone(method.estimator).set_params(**search.best_params_)
            best = search.best_score_
            accuracy = float(chosen.fit(known, task.y).score(asked[n:], task.y_test))
    return accuracy


def calibrated(task: Task, seed: int) -> tuple[float, float]:
    """Learn C and the scale by `calibrate_scale`; return the accuracy, and scale over true one."""
    n = len(task.y)
    X, y, folds = with_judges(task.X, task.points.mean[:n], task.y, seed)
    found = {
        c: calibrate_scale(X, y, C=c, bounds=(0.05, 20.0), validation=folds, n_threads=1)
        for c in C["C"]
    }
    c, best = min(found.items(), key=lambda item: item[1].validation_losses[-1])
    clf = UncertainSVC(c, error_scale=best.scale, n_threads=1).fit(task.X, task.y)
    accuracy = clf.score(task.points.mean[n:], task.y_test)
    return float(accuracy), best.scale * task.factor


class Results(NamedTuple):
    """Accuracies of each column and method, and the scales that `calibrate_scale` found."""

    columns: dict[str, dict[str, Array]]
    scales: Array  # over the true ones


def compare(methods: Mapping[str, Contestant], tasks: Mapping[str, list[Task]]) -> Results:
    """Return the accuracy of every method on every run of every column."""
    columns: dict[str, dict[str, Array]] = {}
    scales = np.empty(0)
    for name, runs in tasks.items():
        columns[name] = {}
        for key, method in methods.items():
            if key == CALIBRATED:
                if name == "learnt":
                    found = [calibrated(run, number) for number, run in enumerate(runs)]
                    columns[name][key], scales = np.array(found).T
            elif not method.uses_errors and name != "right":
                columns[name][key] = columns["right"][key]
            else:
                view = scaled(method.view) if name == "learnt" else method.view
                seeing = method._replace(view=view)
                accuracies = [score(seeing, run, number) for number, run in enumerate(runs)]
                columns[name][key] = np.array(accuracies)
    return Results(columns, scales)


class Situation(NamedTuple):
    """A kind of data: its title, its runs by the factor of the errors, the methods for it."""

    title: str
    runs: Callable[[float | None], Iterator[Task]]
    methods: Mapping[str, Contestant]
    overlap: float  # see `paired_p`


def situations(n_runs: int, seed: int) -> list[Situation]:
    """Return all kinds of data."""
    methods = contestants()
    for_shifts = {key: method for key, method in methods.items() if key not in NOT_FOR_SHIFTS}
    return [
        *(
            Situation(
                f"{name}, {meaning}",
                partial(make, *data, n_runs=n_runs, seed=seed),
                methods,
                OVERLAP,
            )
            for meaning, make in (("measurements", measured), ("distributions", distributed))
            for name, data in binary_tables().items()
        ),
        Situation(
            "ones and sevens under shifts",
            partial(shifted, digits(), n_runs=n_runs, seed=seed),
            for_shifts,
            0.0,
        ),
    ]


def draw_gains(
    axes: Any,
    methods: Mapping[str, Contestant],
    columns: Mapping[str, Mapping[str, Array]],
    overlap: float,
) -> None:
    """Draw the differences to the plain machine, a colour for each column."""
    keys = [key for key in methods if key != REFERENCE]
    for number, (name, found) in enumerate(columns.items()):
        rows = [i for i, key in enumerate(keys) if key in found]
        gains = [100 * (found[keys[i]] - found[REFERENCE]) for i in rows]
        places = [-i + 0.15 * (1.5 - number) for i in rows]
        bars = [standard_error(gain, overlap) for gain in gains]
        axes.errorbar([gain.mean() for gain in gains], places, xerr=bars, fmt="o", ms=4, label=name)
    axes.axvline(0.0, color="0.5", lw=0.8, zorder=0)
    axes.set_yticks([-i for i in range(len(keys))], [methods[key].title for key in keys])
    axes.set_xlabel("accuracy minus hinge on the means (points)")
    axes.grid(axis="y", alpha=0.3)


def experiment(options: Options) -> None:
    """Print a table for each kind of data, and draw the differences to the plain machine."""
    n_runs = 3 if options.quick else 20
    shown = contestants()
    print(f"{n_runs} splits; size of the noise {SIZE:g}\n{LEGEND}\n")
    figure, save = options.figure("losses", (20, 10))
    panels = figure.subplots(2, 4, sharey=True)
    panels[0, 3].set_visible(False)
    places, records = [*panels[0, :3], *panels[1]], []
    listed = situations(n_runs, options.seed)
    for axes, (title, runs, methods, overlap) in zip(places, listed, strict=True):
        tasks = {name: list(runs(factor)) for name, factor in FACTORS.items()}
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of w = 0, which the table shows
            columns, scales = compare(methods, tasks)
        print(f"{title}: errors told\n{format_results(shown, columns, overlap)}")
        if len(scales):
            low, middle, high = np.quantile(scales, (0.25, 0.5, 0.75))
            print(
                f"calibrate_scale finds {middle:.2g} times the true errors; half of the runs are "
                f"between {low:.2g} and {high:.2g}"
            )
        print(flush=True)
        records += [
            [title, name, shown[key].title, run, float(accuracy)]
            for name, found in columns.items()
            for key, accuracies in found.items()
            for run, accuracy in enumerate(accuracies)
        ]
        draw_gains(axes, shown, columns, overlap)
        axes.set_title(title)
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    save()
    options.table("losses", ["data", "errors told", "method", "run", "accuracy"], records)


if __name__ == "__main__":
    run_script(experiment, __doc__)
