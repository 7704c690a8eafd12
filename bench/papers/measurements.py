"""Measurements with errors, and values that are missing: what posteriors of true values are worth.

No paper; the experiment behind `halosvm demo`, at length. Real tables get normal noise of a known
standard deviation, another one for each value; the errors given to the methods are right, half or
twice of what they are. Kepler objects have published errors. And values are deleted at random.
All methods choose their parameters on the same folds of the training examples.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import kernels
import numpy as np
from common import (
    Options,
    Run,
    format_columns,
    paired_p,
    run_script,
    standard_error,
    verdict,
)
from loaders import ionosphere
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from halosvm import EmpiricalBayes, Gaussians, UncertainKernelSVC, UncertainSVC
from halosvm.commands.demo import measurements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from common import Array
    from numpy.typing import NDArray

TEST = 0.4
OVERLAP = TEST / (1.0 - TEST)
SIZES = (0.3, 1.0, 3.0)
FACTORS = (1.0, 0.5, 2.0)  # errors given over errors that are
RATES = (0.1, 0.3, 0.5)
COMPONENTS = (1, 2, 3)
FOLDS = 3
DRAWN = ("ignored", "given", "means", "posteriors", "svc", "pk posteriors", "forest means")


# -- what a method sees of the errors ------------------------------------------------------------
Pair = tuple[Any, Any]  # training and test examples


def ignored(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return the values alone."""
    return [(X.mean, Z.mean)]


def given(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return N(x, S), and the values of test examples."""
    return [(X, Z.mean)]


def both_given(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return N(x, S) of training and test examples."""
    return [(X, Z)]


def as_features(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return the values with their standard deviations beside them."""
    known, asked = (np.hstack([G.mean, np.sqrt(G.covariances.variances())]) for G in (X, Z))
    return [(known, asked)]


def _posteriors(X: Any, Z: Any, n_components: int = 1) -> tuple[Gaussians, Gaussians]:
    maker = EmpiricalBayes(n_components, random_state=0, n_threads=1).fit(X)
    return maker.transform(X), maker.transform(Z)


def posterior_means(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return the means of the posteriors."""
    known, asked = _posteriors(X, Z)
    return [(known.mean, asked.mean)]


def posteriors(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return the posteriors, and the means of those of test examples."""
    known, asked = _posteriors(X, Z)
    return [(known, asked.mean)]


def both_posteriors(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return the posteriors of training and test examples."""
    return [_posteriors(X, Z)]


def validated_posterior_means(X: Gaussians, Z: Gaussians) -> list[Pair]:
    """Return what validation chooses from: the values, and posteriors by several populations."""
    made = [_posteriors(X, Z, n_components) for n_components in COMPONENTS]
    return [*ignored(X, Z), *((known.mean, asked.mean) for known, asked in made)]


def _imputed(imputer: Any, X: Array, Z: Array) -> list[Pair]:
    known = imputer.fit_transform(X)
    return [(known, imputer.transform(Z))]


def mean_imputed(X: Array, Z: Array) -> list[Pair]:
    """Replace what is missing by the mean of the feature."""
    return _imputed(SimpleImputer(keep_empty_features=True), X, Z)


def iteratively_imputed(X: Array, Z: Array) -> list[Pair]:
    """Replace what is missing by regressions on the other features."""
    imputer = IterativeImputer(random_state=0, keep_empty_features=True)
    return _imputed(imputer, X, Z)


class Contestant(NamedTuple):
    """A method: its title, what it sees, its estimator, and values of the parameters of that."""

    title: str
    view: Callable[[Any, Any], list[Pair]]
    estimator: Any
    grid: Mapping[str, tuple[float, ...]]
    uses_errors: bool = True


def contestants(quick: bool) -> dict[str, Contestant]:
    """Return the methods for data with noise; "ignored" is what the others are compared with."""
    linear = {"C": (0.03, 0.1, 0.3, 1.0, 3.0)}
    kernel = {"C": (1.0, 10.0) if quick else (1.0, 10.0, 100.0)}
    plain, expected = (UncertainSVC(loss=loss, n_threads=1) for loss in ("hinge", "expected_hinge"))
    pk = UncertainKernelSVC(n_threads=1)
    forest = RandomForestClassifier(100, random_state=0)
    return {
        "ignored": Contestant("linear, errors ignored", ignored, plain, linear, False),
        "given": Contestant("linear, expected hinge on N(x, S)", given, expected, linear),
        "features": Contestant("linear, errors as features", as_features, plain, linear),
        "means": Contestant("linear, posterior means", posterior_means, plain, linear),
        "posteriors": Contestant("linear, exp. hinge on posteriors", posteriors, expected, linear),
        "validated": Contestant(
            "linear, values or posterior means of 1-3 components, by validation",
            validated_posterior_means, plain, linear,
        ),
        "svc": Contestant("SVC(rbf), errors ignored", ignored, SVC(), kernel, False),
        "pk": Contestant("expected kernel on N(x, S)", both_given, pk, kernel),
        "pk posteriors": Contestant("expected kernel on posteriors", both_posteriors, pk, kernel),
        "forest": Contestant("random forest, errors ignored", ignored, forest, {}, False),
        "forest features": Contestant("random forest, errors as features", as_features, forest, {}),
        "forest means": Contestant("random forest, posterior means", posterior_means, forest, {}),
    }  # fmt: skip


def imputing() -> dict[str, Contestant]:
    """Return the methods for data with missing values."""
    linear = {"C": (0.03, 0.1, 0.3, 1.0, 3.0)}
    plain, expected = (UncertainSVC(loss=loss, n_threads=1) for loss in ("hinge", "expected_hinge"))
    return {
        "ignored": Contestant("linear, mean imputation", mean_imputed, plain, linear),
        "iterative": Contestant("linear, iterative imputation", iteratively_imputed, plain, linear),
        "means": Contestant("linear, posterior means", posterior_means, plain, linear),
        "posteriors": Contestant("linear, exp. hinge on posteriors", posteriors, expected, linear),
    }


# -- data ----------------------------------------------------------------------------------------
def tables() -> dict[str, tuple[Array, NDArray[Any]]]:
    """Return three real tables, standardised, and their labels."""
    cells = measurements.true_values()
    radar, good = ionosphere()
    wine, kind = load_wine(return_X_y=True)
    radar = radar[:, radar.std(axis=0) > 0]
    return {
        "cells": (cells.values, cells.labels),
        "ionosphere": (stats.zscore(radar), good),
        "wine": (stats.zscore(wine), kind),
    }


def splits(y: NDArray[Any], n_runs: int, seed: int) -> Iterator[tuple[int, Any, Any]]:
    """Return the number, the training and the test rows of each run."""
    splitter = StratifiedShuffleSplit(n_runs, test_size=TEST, random_state=seed)
    for number, (train, test) in enumerate(splitter.split(y, y)):
        yield number, train, test


def noisy_runs(
    values: Array, y: NDArray[Any], size: float, factor: float, n_runs: int, seed: int
) -> Iterator[Run]:
    """Add noise, and give the errors as `factor` times what they are."""
    for number, train, test in splits(y, n_runs, seed):
        X = measurements.measure(values, size, np.random.default_rng((seed, number)))
        X = Gaussians(X.mean, variance=factor**2 * X.covariances.variances())
        yield Run(X[train], y[train], X[test], y[test])


def incomplete_runs(
    values: Array, y: NDArray[Any], rate: float, n_runs: int, seed: int
) -> Iterator[Run]:
    """Delete values at random."""
    for number, train, test in splits(y, n_runs, seed):
        rng = np.random.default_rng((seed, number))
        X = np.where(rng.uniform(size=values.shape) < rate, np.nan, values)
        yield Run(X[train], y[train], X[test], y[test])


# -- runs ----------------------------------------------------------------------------------------
def score(method: Contestant, run: Run, seed: int) -> float:
    """Choose what the method sees and its parameters on the training part; return the accuracy."""
    found = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        views = method.view(run.X, run.X_test)
        for known, asked in views:
            search = GridSearchCV(
                method.estimator, dict(method.grid), cv=folds, error_score="raise"
            )
            if not method.grid and len(views) == 1:
                return float(method.estimator.fit(known, run.y).score(asked, run.y_test))
            search.fit(known, run.y)
            found.append((search.best_score_, search.score(asked, run.y_test)))
    return float(max(found, key=lambda one: one[0])[1])


def compare(methods: Mapping[str, Contestant], runs: list[Run]) -> dict[str, Array]:
    """Return the accuracy of every method on every run."""
    with threadpool_limits(1):  # threads of BLAS only delay such small products
        return {
            key: np.array([score(method, run, number) for number, run in enumerate(runs)])
            for key, method in methods.items()
        }


def cell(accuracy: Array, reference: Array, overlap: float) -> str:
    """Return mean, standard error, and a mark of a clear difference, all in percent."""
    p = paired_p(accuracy, reference, overlap)
    mark = {"better": "+", "worse": "-"}.get(verdict(np.mean(accuracy - reference), p), "")
    error = standard_error(accuracy, overlap)
    return f"{100 * accuracy.mean():.1f} ({100 * error:.1f}) {mark:1}"


def format_results(
    methods: Mapping[str, Contestant], columns: Mapping[str, dict[str, Array]], overlap: float
) -> str:
    """Return a table: a row for each method, a column for each kind of data."""
    rows = [
        [method.title]
        + [
            cell(found[key], found["ignored"], overlap) if key in found else ""
            for found in columns.values()
        ]
        for key, method in methods.items()
    ]
    return format_columns(["accuracy (%)", *columns], rows)


LEGEND = (
    "In brackets the standard error; + better, - worse than the first row, p < 0.05 in a paired\n"
    "t-test; both account for the rows that the splits share."
)


def noise_columns(
    methods: Mapping[str, Contestant], values: Array, y: NDArray[Any], n_runs: int, seed: int
) -> dict[str, dict[str, Array]]:
    """Return accuracies for all sizes of the noise, and given errors that are right and wrong."""
    columns = {}
    for factor in FACTORS:
        some = {
            key: method
            for key, method in methods.items()
            if factor == 1.0 or method.uses_errors or key == "ignored"
        }
        for size in SIZES:
            runs = list(noisy_runs(values, y, size, factor, n_runs, seed))
            columns[f"{size:g}" + f", x {factor:g}" * (factor != 1.0)] = compare(some, runs)
    return columns


def draw_columns(
    axes: Any, methods: Mapping[str, Contestant], columns: Mapping[str, dict[str, Array]]
) -> None:
    """Draw the accuracy of the main methods against the size of the noise."""
    for key in DRAWN:
        found = [100 * columns[f"{size:g}"][key] for size in SIZES]
        bars = [standard_error(accuracy, OVERLAP) for accuracy in found]
        means = [accuracy.mean() for accuracy in found]
        axes.errorbar(SIZES, means, bars, fmt="-o", ms=4, capsize=3, label=methods[key].title)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [f"{size:g}" for size in SIZES])
    axes.minorticks_off()
    axes.set_xlabel("size of the noise")
    axes.set_ylabel("accuracy (%)")
    axes.grid(alpha=0.3)


def experiment(options: Options) -> None:
    """Print tables of noise and of missing values for all data, and one of the Kepler objects."""
    n_runs = 3 if options.quick else 20
    methods, imputers = contestants(options.quick), imputing()
    print(f"{n_runs} splits, 60/40\n{LEGEND}\n")
    compared = tables()
    figure, save = options.figure("measurements", (5 * len(compared), 5))
    panels = figure.subplots(1, len(compared))
    for axes, (name, (values, y)) in zip(panels, compared.items(), strict=True):
        columns = noise_columns(methods, values, y, n_runs, options.seed)
        print(f"{name}, {len(y)} x {values.shape[1]}: size of the noise, x factor of given errors")
        print(f"{format_results(methods, columns, OVERLAP)}\n", flush=True)
        draw_columns(axes, methods, columns)
        axes.set_title(name)
        columns = {
            f"{100 * rate:.0f} %": compare(
                imputers, list(incomplete_runs(values, y, rate, n_runs, options.seed))
            )
            for rate in RATES
        }
        print(f"{name}: part of the values that is missing")
        print(f"{format_results(imputers, columns, OVERLAP)}\n", flush=True)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save()
    runs = list(kernels.kepler_runs(n_runs, options.seed))
    found = {"200 objects": compare(methods, runs)}
    print("Kepler objects with their own errors, 200 for training, test objects have errors")
    print(f"{format_results(methods, found, 0.0)}\n", flush=True)


if __name__ == "__main__":
    run_script(experiment, __doc__)
