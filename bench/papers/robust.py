"""Robust and safe support vector machines against the plain one, on data with noise.

N. Couellan and S. Jan, "Feature uncertainty bounding schemes for large robust nonlinear SVM
classifiers" (2017), prints no table. It tells two results of an earlier article in words, without
its data: that the safe machine (7) has a smaller "robust error" than the robust one (4), and that
the volume of its ellipsoid grows with the noise. Here normal noise of one standard deviation is
added to all values of the training examples. Three accuracies are of test examples without noise:

- clean: of the test examples themselves;
- noisy: expected, when they get the noise of the training examples;
- safe: of how many the label holds with probability 0.95 under that noise, one minus our reading of
  the robust error.

C is chosen by cross-validation. And the radius that the paper prints for a chance constraint is
tried beside those that keep it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from common import (
    Method,
    Options,
    Run,
    Search,
    as_given,
    compare,
    format_columns,
    means_only,
    run_script,
    standard_error,
)
from loaders import australian, sonar
from measurements import LEGEND, OVERLAP, cell, splits
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from halosvm import Gaussians, SafeSVC, UncertainSVC
from halosvm.uncertainty import confidence_radius

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from common import Array
    from numpy.typing import NDArray

EPSILON = 0.05
NORMAL, ANY_LAW = confidence_radius(EPSILON), confidence_radius(EPSILON, "chebyshev")
PRINTED = float(np.sqrt(EPSILON / (1.0 - EPSILON)))
SIZES = (0.1, 0.3, 1.0)  # of the noise, in the standard deviation of the feature
VOLUMES = (0.0, 0.25, 0.5, 1.0, 2.0)  # sizes of the noise for the second table
LARGEST = 2.0  # sizes of the errors that the safe machine may learn there
N_DRAWS = 10_000


# -- data and methods ----------------------------------------------------------------------------
def tables() -> dict[str, tuple[Array, NDArray[Any]]]:
    """Return three real tables, standardised, and their labels."""
    cells = load_breast_cancer(return_X_y=True)
    named = {"australian": australian(), "sonar": sonar(), "cells": cells}
    return {name: (stats.zscore(values), y) for name, (values, y) in named.items()}


def noisy_runs(
    values: Array, y: NDArray[Any], size: float, n_runs: int, seed: int
) -> Iterator[Run]:
    """Add noise to the training examples; those of the test have none."""
    for number, train, test in splits(y, n_runs, seed):
        rng = np.random.default_rng((seed, number))
        noisy = values[train] + size * rng.normal(size=values[train].shape)
        X = Gaussians(noisy, std=np.full(noisy.shape, size))
        yield Run(X, y[train], values[test], y[test])


def methods(size: float) -> dict[str, Method]:
    """Return the machines for noise of a given size."""

    def robust(title: str, radius: float) -> Method:
        svc = UncertainSVC(loss="worst_case", radius=radius, n_threads=1)
        return Method(f"robust, radius {radius:.3g}, {title}", as_given, svc)

    safe = SafeSVC(bounds=(0.0, ANY_LAW * size), random_state=0, n_threads=1)
    return {
        "svm": Method("SVM", means_only, UncertainSVC(loss="hinge", n_threads=1)),
        "expected": Method("expected hinge", as_given, UncertainSVC(n_threads=1)),
        "printed": robust("as printed", PRINTED),
        "normal": robust("normal law", NORMAL),
        "any law": robust("any law", ANY_LAW),
        "safe": Method(f"safe SVM, sizes up to {ANY_LAW:.3g}", means_only, safe),
    }


class UnderNoise:
    """Scorers of linear machines by what noise of a given size would make of the labels."""

    def __init__(self, size: float) -> None:
        self.size = size

    def holds(self, clf: Any, X: Array, y: NDArray[Any]) -> Array:
        """Return the probability that each label is right."""
        right = np.where(y == clf.classes_[1], 1.0, -1.0) * clf.decision_function(X)
        spread = self.size * np.linalg.norm(clf.coef_)
        return np.asarray(stats.norm.cdf(right / spread) if spread > 0.0 else right > 0.0)

    def noisy(self, clf: Any, X: Array, y: NDArray[Any]) -> float:
        """Return the expected accuracy."""
        return float(self.holds(clf, X, y).mean())

    def safe(self, clf: Any, X: Array, y: NDArray[Any]) -> float:
        """Return the share of labels that hold with probability 1 - EPSILON."""
        return float((self.holds(clf, X, y) >= 1.0 - EPSILON).mean())


# -- tables --------------------------------------------------------------------------------------
def accuracies(
    values: Array, y: NDArray[Any], n_runs: int, seed: int
) -> dict[str, dict[str, Array]]:
    """Return, for each size and kind of accuracy, that of every machine on every run."""
    columns = {}
    for size in SIZES:
        by = UnderNoise(size)
        search = Search((0.01, 0.1, 1.0, 10.0), scoring=("accuracy", by.noisy, by.safe))
        results = compare(methods(size), noisy_runs(values, y, size, n_runs, seed), search)
        for number, kind in enumerate(("clean", "noisy", "safe")):
            columns[f"{kind}, {size:g}"] = {
                key: scores.score(number) for key, scores in results.items()
            }
    return columns


def format_accuracies(columns: Mapping[str, Mapping[str, Array]]) -> str:
    """Return a table with marks where a machine differs clearly from the plain one."""
    rows = [
        [method.title, *(cell(found[key], found["svm"], OVERLAP) for found in columns.values())]
        for key, method in methods(1.0).items()
    ]
    return format_columns(["accuracy (%)", *columns], rows)


def learnt_sizes(values: Array, y: NDArray[Any], n_runs: int, seed: int) -> dict[float, Array]:
    """Return the mean size of the errors that the safe machine learns, by noise and run."""
    clf = SafeSVC(bounds=(0.0, LARGEST), random_state=0, n_threads=1)

    def learnt(run: Run) -> float:
        return float(clf.fit(run.X.mean, run.y).std_.mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last steps change little
        return {
            size: np.array([learnt(run) for run in noisy_runs(values, y, size, n_runs, seed)])
            for size in VOLUMES
        }


def growth(sizes: Mapping[float, Array]) -> tuple[float, float]:
    """Return the mean over runs of the rank correlation with the noise, and the p that it is 0."""
    listed = np.array(list(sizes.values())).T
    found = np.array([stats.spearmanr(list(sizes), row).statistic for row in listed])
    return float(found.mean()), float(stats.wilcoxon(found).pvalue)


def coverage(values: Array, y: NDArray[Any], seed: int) -> list[list[str]]:
    """Return how often y f(X) >= 1 - xi holds, for each radius, where xi > 0 makes it tight."""
    [run] = noisy_runs(values, y, 0.3, 1, seed)
    signs = np.where(run.y == np.unique(run.y)[1], 1.0, -1.0)
    rows = []
    for title, radius in (("as printed", PRINTED), ("normal law", NORMAL), ("any law", ANY_LAW)):
        clf = UncertainSVC(loss="worst_case", radius=radius, n_threads=1).fit(run.X, run.y)
        margins, spread = signs * clf.decision_function(run.X.mean), clf.decision_std(run.X)
        slack = np.maximum(0.0, 1.0 - margins + radius * spread)
        rng = np.random.default_rng(seed)
        tight = np.flatnonzero(slack > 0.0)
        f = margins[tight] + spread[tight] * rng.normal(size=(N_DRAWS, len(tight)))
        holds = np.mean(f >= 1.0 - slack[tight])
        any_law = radius**2 / (1.0 + radius**2)  # Cantelli's bound, which a law of two points has
        rows.append([title, f"{radius:.3f}", f"{holds:.3f}", f"{any_law:.3f}"])
    return rows


def experiment(options: Options) -> None:
    """Print the accuracies, the learnt sizes and the coverages, and draw the first two."""
    n_runs = 3 if options.quick else 20
    print(
        f"{n_runs} splits, 60/40; the number beside the kind is the size of the noise\n{LEGEND}\n"
    )
    compared = tables()
    figure, save = options.figure("robust", (5 * len(compared), 8))
    panels = figure.subplots(2, len(compared))
    records, grown = [], []
    for (above, below), (name, data) in zip(panels.T, compared.items(), strict=True):
        with threadpool_limits(1):
            columns = accuracies(*data, n_runs, options.seed)
            sizes = learnt_sizes(*data, n_runs, options.seed)
        print(f"{name}, {len(data[1])} x {data[0].shape[1]}\n{format_accuracies(columns)}\n")
        correlation, p = growth(sizes)
        means = [f"{found.mean():.2f} ({standard_error(found, OVERLAP):.2f})" for found in
                 sizes.values()]  # fmt: skip
        grown.append([name, *means, f"{correlation:+.2f}", f"{p:.2g}"])
        records += [
            [name, kind, key, run, float(accuracy)]
            for kind, found in columns.items()
            for key, accuracies_of_runs in found.items()
            for run, accuracy in enumerate(accuracies_of_runs)
        ]
        for key, method in methods(1.0).items():
            safe = [100 * columns[f"safe, {size:g}"][key].mean() for size in SIZES]
            above.plot(SIZES, safe, "-o", ms=4, label=method.title)
        above.set(title=name, xlabel="size of the noise", ylabel="safe (%)", xscale="log")
        below.errorbar(
            VOLUMES,
            [found.mean() for found in sizes.values()],
            [standard_error(found, OVERLAP) for found in sizes.values()],
            fmt="-o", capsize=3,
        )  # fmt: skip
        below.set(xlabel="size of the noise", ylabel="mean size that the safe SVM learns")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    header = ["mean size learnt", *(f"noise {size:g}" for size in VOLUMES), "rank corr.", "p"]
    print(f"{format_columns(header, grown)}\n")
    header = ["chance constraint, 0.95", "radius", "normal law", "worst law"]
    print(format_columns(header, coverage(*compared["cells"], options.seed)), "\n", flush=True)
    save()
    options.table("robust", ["data", "accuracy, noise", "machine", "run", "accuracy"], records)


if __name__ == "__main__":
    run_script(experiment, __doc__)
