"""Measurements: cells whose ten mean features are measured with known, unequal noise.

The example is a true value plus noise, and N(x, S) is not what one knows of the true value. That is
its posterior under the population of true values, which `EmpiricalBayes` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from halosvm.gaussians.gaussians import Gaussians
from halosvm.kernel.kernel_svc import UncertainKernelSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.maps import UncertainStandardScaler
from halosvm.measurement.classifier import MeasurementClassifier
from halosvm.population import EmpiricalBayes

from .cells import N_UNCERTAIN, load_cells
from .fits import Record, Setup, Situation, choose_and_fit, fit_quietly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .fits import Progress

    Array = NDArray[np.float64]

STORY = "measurements"
SIZES = (0.1, 0.3, 1.0, 3.0)
TEST = 0.4
CANDIDATES = ("values, logistic", "values, kernel", "means, logistic", "means, kernel")  # the quick


class TrueValues(NamedTuple):
    """The ten mean features of all cells, standardised, their labels and names."""

    values: Array
    labels: NDArray[np.str_]
    names: list[str]


def true_values() -> TrueValues:
    """Return what the measurements measure."""
    cells = load_cells()
    values = cells.features[:, :N_UNCERTAIN]
    names = cells.names[:N_UNCERTAIN]
    return TrueValues(UncertainStandardScaler().fit_transform(values), cells.labels, names)


def measure(values: Array, size: float, rng: np.random.Generator) -> Gaussians:
    """Add noise of a standard deviation of its own, which is known, to each value.

    The standard deviations are log-normal with mean `size` and median 0.61 times that.
    """
    std = size * np.exp(rng.normal(-0.5, 1.0, values.shape))
    return Gaussians(values + std * rng.normal(size=values.shape), std=std)


def splits(setup: Setup, labels: NDArray[np.str_]) -> Iterator[tuple[NDArray[np.intp], ...]]:
    """Return training and test rows of all splits, 60/40."""
    splitter = StratifiedShuffleSplit(setup.splits, test_size=TEST, random_state=setup.seed)
    yield from splitter.split(labels, labels)


def noisy_cells(setup: Setup, progress: Progress) -> Iterator[Situation]:
    """Compare the treatments of the errors for each size of the noise."""
    values, y, _ = true_values()
    rows = list(splits(setup, y))
    ideal = []
    for number in progress.steps("cells without noise", setup.splits):
        train, test = rows[number]
        best = choose_and_fit(UncertainSVC(loss="hinge"), values[train], y[train], setup, number)
        ideal.append(best.score(values[test], y[test]))
    for size in SIZES:
        title, record = f"noise {size:g}", Record()
        for number in progress.steps(f"cells measured with {title}", setup.splits):
            train, test = rows[number]
            # The noise of a split differs between sizes in size alone.
            X = measure(values, size, np.random.default_rng((setup.seed, number)))
            population = EmpiricalBayes(n_threads=1).fit(X[train])
            known, asked = population.transform(X[train]), population.transform(X[test])
            for key, estimator, examples, points in (
                ("ignored", UncertainSVC(loss="hinge"), X[train].mean, X[test].mean),
                ("distribution", UncertainSVC(), X[train], X[test].mean),
                ("means", UncertainSVC(loss="hinge"), known.mean, asked.mean),
                ("kernel", UncertainKernelSVC(), known, asked),
            ):
                fitted = choose_and_fit(estimator, examples, y[train], setup, number)
                record.add(key, fitted, fitted.score(points, y[test]))
            choice = MeasurementClassifier(list(CANDIDATES), random_state=number)
            fit_quietly(choice, X[train], y[train])
            record.add("chosen", choice, choice.score(X[test], y[test]))
        overlap = TEST / (1.0 - TEST)
        yield Situation(STORY, title, overlap, record.outcomes(), size, np.array(ideal))
