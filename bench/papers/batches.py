"""Errors that rows of a night share: what it is worth to estimate the offset of each night.

No paper. Real tables get normal noise of a known standard deviation, another one for each value,
and what is measured in one night shares an offset, which nobody tells: 12 nights for training, 8
new ones for the test. Classes are even over the nights, or each class has nights of its own that it
prefers. All methods see posterior means of true values, and choose C of a linear machine on the
same folds of the training rows.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from common import Options, format_columns, paired_p, run_script, standard_error, verdict
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC
from halosvm.commands.demo import measurements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from common import Array
    from numpy.typing import NDArray

    Labels = NDArray[Any]

TEST = 0.4
OVERLAP = TEST / (1.0 - TEST)
NOISE = 1.0
OFFSETS = (0.5, 1.0, 2.0)  # standard deviations, in those of the true values
TRAINING_NIGHTS, TEST_NIGHTS = 12, 8
EVEN, UNEVEN = np.inf, 1.0  # concentrations of the shares of nights within a class
FOLDS = 3
GRID = {"C": (0.03, 0.1, 0.3, 1.0, 3.0)}
OURS = "estimated"


class Night(NamedTuple):
    """Measurements of a split: with their offsets and, which nobody has, without."""

    X: Gaussians
    bare: Gaussians
    y: Labels
    nights: Labels


class Run(NamedTuple):
    """Training and test rows, and the standard deviation of the offsets."""

    known: Night
    asked: Night
    offset: float


# -- methods -------------------------------------------------------------------------------------
def alone(run: Run) -> tuple[Array, Array]:
    """Take the errors of each row alone."""
    maker = EmpiricalBayes(output="mean", n_threads=1).fit(run.known.X)
    return maker.transform(run.known.X), maker.transform(run.asked.X)


def added(run: Run) -> tuple[Array, Array]:
    """Add the true covariance of the offsets to the errors of each row."""
    known, asked = (
        Gaussians(each.X.mean, variance=each.X.covariances.variances() + run.offset**2)
        for each in (run.known, run.asked)
    )
    maker = EmpiricalBayes(output="mean", n_threads=1).fit(known)
    return maker.transform(known), maker.transform(asked)


def centred(run: Run) -> tuple[Array, Array]:
    """Subtract the mean of each night."""
    parts = []
    for each in (run.known, run.asked):
        places = np.unique(each.nights, return_inverse=True)[1]
        counts = np.bincount(places)[:, np.newaxis]
        means = np.zeros((len(counts), each.X.shape[1]))
        np.add.at(means, places, each.X.mean)
        values = each.X.mean - (means / counts)[places]
        parts.append(Gaussians(values, variance=each.X.covariances.variances()))
    maker = EmpiricalBayes(output="mean", n_threads=1).fit(parts[0])
    return maker.transform(parts[0]), maker.transform(parts[1])


def _estimated(run: Run, y: Labels | None, form: str = "full") -> tuple[Array, Array]:
    maker = EmpiricalBayes(batch_covariance=form, output="mean", n_threads=1)
    known = maker.fit_transform(run.known.X, y, batch=run.known.nights)
    return known, maker.transform(run.asked.X, batch=run.asked.nights)


def estimated(run: Run) -> tuple[Array, Array]:
    """Estimate the offsets, with a mean for each class."""
    return _estimated(run, run.known.y)


def isotropic(run: Run) -> tuple[Array, Array]:
    """Estimate the offsets, of one variance for all features."""
    return _estimated(run, run.known.y, "isotropic")


def pooled(run: Run) -> tuple[Array, Array]:
    """Estimate the offsets with one mean for all classes."""
    return _estimated(run, None)


def without(run: Run) -> tuple[Array, Array]:
    """Measure without offsets."""
    maker = EmpiricalBayes(output="mean", n_threads=1).fit(run.known.bare)
    return maker.transform(run.known.bare), maker.transform(run.asked.bare)


METHODS: Mapping[str, tuple[str, Callable[[Run], tuple[Array, Array]]]] = {
    "alone": ("errors of rows alone", alone),
    "added": ("W added to the errors", added),
    "centred": ("means of nights subtracted", centred),
    "pooled": ("offsets estimated without labels", pooled),
    OURS: ("offsets estimated", estimated),
    "isotropic": ("offsets estimated, isotropic W", isotropic),
    "without": ("no offsets", without),
}


# -- data ----------------------------------------------------------------------------------------
def tables() -> dict[str, tuple[Array, Labels]]:
    """Return two real tables, standardised, and their labels."""
    cells = measurements.true_values()
    wine, kind = load_wine(return_X_y=True)
    return {"cells": (cells.values, cells.labels), "wine": (stats.zscore(wine), kind)}


def nights_of(
    y: Labels, n_nights: int, concentration: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the night of each row, those of a class from shares of its own."""
    nights = np.empty(len(y), dtype=np.intp)
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        shares = np.full(n_nights, 1.0 / n_nights)
        if np.isfinite(concentration):
            shares = rng.dirichlet(np.full(n_nights, concentration))
        nights[mine] = rng.choice(n_nights, len(mine), p=shares)
    return nights


def runs(
    values: Array, y: Labels, offset: float, concentration: float, n_runs: int, seed: int
) -> Iterator[Run]:
    """Measure all rows, those of a night with one offset."""
    splitter = StratifiedShuffleSplit(n_runs, test_size=TEST, random_state=seed)
    for number, (train, test) in enumerate(splitter.split(y, y)):
        rng = np.random.default_rng((seed, number))
        bare = measurements.measure(values, NOISE, rng)
        parts = []
        for rows, n_nights, first in (
            (train, TRAINING_NIGHTS, 0),
            (test, TEST_NIGHTS, TRAINING_NIGHTS),
        ):
            nights = nights_of(y[rows], n_nights, concentration, rng)
            offsets = offset * rng.normal(size=(n_nights, values.shape[1]))
            part = bare[rows]
            X = Gaussians(part.mean + offsets[nights], variance=part.covariances.variances())
            parts.append(Night(X, part, y[rows], first + nights))
        yield Run(*parts, offset)


# -- runs ----------------------------------------------------------------------------------------
def score(view: Callable[[Run], tuple[Array, Array]], run: Run, seed: int) -> float:
    """Choose C on the training rows; return the accuracy on the test rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # W added is large beside a few columns
        known, asked = view(run)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        machine = UncertainSVC(loss="hinge", n_threads=1)
        search = GridSearchCV(machine, GRID, cv=folds, error_score="raise")
        return float(search.fit(known, run.known.y).score(asked, run.asked.y))


def cell(accuracy: Array, reference: Array) -> str:
    """Return mean, standard error, and a mark of a clear difference, all in percent."""
    mark = {"better": "+", "worse": "-"}.get(
        verdict(np.mean(accuracy - reference), paired_p(accuracy, reference, OVERLAP)), ""
    )
    return f"{100 * accuracy.mean():.1f} ({100 * standard_error(accuracy, OVERLAP):.1f}) {mark:1}"


def experiment(options: Options) -> None:
    """Print a table for each data set: methods by sizes of offsets, even and uneven classes."""
    n_runs = 4 if options.quick else 20
    print(
        f"{n_runs} splits, 60/40, in brackets the standard error; + better, - worse than offsets "
        "estimated,\np < 0.05 in a paired t-test; both account for the rows that splits share.\n"
    )
    for name, (values, y) in tables().items():
        columns: dict[str, dict[str, Array]] = {}
        for title, concentration in (("even", EVEN), ("uneven", UNEVEN)):
            for offset in OFFSETS:
                drawn = list(runs(values, y, offset, concentration, n_runs, options.seed))
                with threadpool_limits(1):  # threads of BLAS only delay such small products
                    columns[f"{title} {offset:g}"] = {
                        key: np.array([score(view, run, i) for i, run in enumerate(drawn)])
                        for key, (_, view) in METHODS.items()
                    }
        rows = [
            [title, *(cell(found[key], found[OURS]) for found in columns.values())]
            for key, (title, _) in METHODS.items()
        ]
        print(f"{name}, {len(y)} x {values.shape[1]}: classes over nights, size of the offsets")
        print(f"{format_columns(['accuracy (%)', *columns], rows)}\n", flush=True)
        options.table(
            f"batches_{name}",
            ["method", "column", *(f"split {i}" for i in range(n_runs))],
            [
                [title, column, *found[key]]
                for column, found in columns.items()
                for key, (title, _) in METHODS.items()
            ],
        )


if __name__ == "__main__":
    run_script(experiment, __doc__)
