"""Probabilities that widen with the error bars: cells, each measured with noise of its own size.

The same calibrated classifier says how sure it is, once with the errors of the test rows and once
of their means alone. Out come the accuracy of those rows of which it is surest, and how far its
probabilities are from what happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.display.reliability import ReliabilityDisplay
from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.svc import UncertainSVC
from halosvm.population import EmpiricalBayes

from . import measurements
from .fits import Setup, fit_quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .fits import Progress

    Array = NDArray[np.float64]

WAYS = {"with": "errors of test rows used", "without": "their means alone"}
SHARES = np.linspace(0.3, 1.0, 15)
SUREST = 0.9  # the share in the table
POSITIVE = "malignant"
N_COMPONENTS = 2  # of the population


class Judged(NamedTuple):
    """What probabilities were worth, with one row or entry per split.

    `accuracy` has a column for each of SHARES, `surest` is that at SUREST, and `calibration_error`
    is that of `ReliabilityDisplay` in ten bins.
    """

    accuracy: Array
    surest: Array
    calibration_error: Array


def accuracy_of_surest(p: Array, positive: NDArray[np.bool_], share: float) -> float:
    """Return the accuracy of that share of the rows whose p is farthest from 1/2."""
    n = max(1, int(share * len(p)))
    rows = np.argsort(-np.abs(p - 0.5), kind="stable")[:n]
    return float(np.mean((p > 0.5)[rows] == positive[rows]))


def measure(values: Array, rng: np.random.Generator) -> Gaussians:
    """Add noise whose standard deviation, log-normal with median 1, is one for each row."""
    std = np.exp(rng.normal(size=(len(values), 1))) * np.ones(values.shape[1])
    return Gaussians(values + std * rng.normal(size=values.shape), std=std)


def judge_probabilities(setup: Setup, progress: Progress) -> dict[str, Judged]:
    """Compare probabilities of test rows, by way of WAYS, on the splits of the measurements."""
    truth = measurements.true_values()
    rows = list(measurements.splits(setup, truth.labels))
    found: dict[str, list[tuple[list[float], float, float]]] = {way: [] for way in WAYS}
    for number in progress.steps("probabilities of cells", setup.splits):
        train, test = rows[number]
        X = measure(truth.values, np.random.default_rng((setup.seed, number)))
        population = EmpiricalBayes(n_components=N_COMPONENTS, random_state=number, n_threads=1)
        known = population.fit(X[train]).transform(X[train])
        asked = population.transform(X[test])
        clf = UncertainCalibratedClassifier(UncertainSVC(n_threads=1), cv=setup.folds)
        fit_quietly(clf, known, truth.labels[train])
        positive = truth.labels[test] == POSITIVE
        column = clf.classes_.tolist().index(POSITIVE)
        for way, examples in (("with", asked), ("without", Gaussians(asked.mean))):
            p = clf.predict_proba(examples)[:, column]
            found[way].append(
                (
                    [accuracy_of_surest(p, positive, share) for share in SHARES],
                    accuracy_of_surest(p, positive, SUREST),
                    ReliabilityDisplay(y_true=positive, y_prob=p).calibration_error,
                )
            )
    progress.end()
    return {
        way: Judged(*(np.array(each) for each in zip(*of_way, strict=True)))
        for way, of_way in found.items()
    }
