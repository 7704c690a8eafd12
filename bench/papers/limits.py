"""Limits: "below 0.25" taken as missing, as a number, or as what it says.

No paper. Half of the features of two tables are measured with known noise, and readings below a
level of each feature are known by that level alone. Ways to go on from there are compared by the
labels that they predict, and by the true values that they recover.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from common import Options, format_columns, paired_p, percent, run_script, standard_error
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from halosvm import ClassPopulations, EmpiricalBayes, Gaussians

if TYPE_CHECKING:
    from collections.abc import Callable

    from common import Array
    from numpy.typing import NDArray

    Way = tuple[Array, Array, Array | None]

SHARES = (0.3, 0.5, 0.7)
NOISE = (0.1, 0.5)  # of the standard deviations of errors, in spreads of the feature
TEST = 0.4
OVERLAP = TEST / (1.0 - TEST)


class Data(NamedTuple):
    """True values and labels, readings of them, their errors, and the limits of some."""

    v: Array
    y: NDArray[Any]
    x: Array
    std: Array
    level: Array
    below: NDArray[np.bool_]

    def rows(self, some: NDArray[np.intp]) -> Data:
        """Return some rows."""
        return Data(*(each[some] for each in self))

    @property
    def known(self) -> Array:
        """Readings, NaN where there is a limit."""
        return np.where(self.below, np.nan, self.x)

    @property
    def replaced(self) -> Array:
        """Readings, the limit over the root of two in place of limits."""
        return np.where(self.below, self.level / np.sqrt(2.0), self.x)

    @property
    def limited(self) -> Gaussians:
        """Readings with their errors and limits."""
        upper = np.where(self.below, self.level, np.nan)
        return Gaussians(self.known, std=self.std, upper=upper)


def measured(v: Array, y: NDArray[Any], share: float, rng: np.random.Generator) -> Data:
    """Return readings, of which a share of every second feature is below its limit."""
    std = v.std(axis=0) * rng.uniform(*NOISE, v.shape)
    x = v + std * rng.normal(size=v.shape)
    level = np.broadcast_to(np.quantile(x, share, axis=0), x.shape).copy()
    below = x < level
    below[:, 1::2] = False
    return Data(v, y, x, std, level, below)


# -- ways: training and test rows in; features of both, and recovered values of test rows, out -----
def _posterior_means(fitted: Gaussians, asked: Gaussians) -> Way:
    model = EmpiricalBayes(output="mean").fit(fitted)
    recovered = model.transform(asked)
    return model.transform(fitted), recovered, recovered


def as_missing(a: Data, b: Data) -> Way:
    """Return posterior means, limits taken as missing values."""
    return _posterior_means(Gaussians(a.known, std=a.std), Gaussians(b.known, std=b.std))


def as_number(a: Data, b: Data) -> Way:
    """Return readings, L / sqrt 2 in place of limits."""
    return a.replaced, b.replaced, b.replaced


def with_indicator(a: Data, b: Data) -> Way:
    """Return the same with a column for each feature that says where limits are."""
    used = a.below.any(axis=0)
    one, other = (np.hstack([d.replaced, d.below[:, used]]) for d in (a, b))
    return one, other, None


def as_reading(a: Data, b: Data) -> Way:
    """Return posterior means, L / sqrt 2 taken for a reading with its error."""
    return _posterior_means(Gaussians(a.replaced, std=a.std), Gaussians(b.replaced, std=b.std))


def as_limit(a: Data, b: Data) -> Way:
    """Return posterior means with the limits."""
    return _posterior_means(a.limited, b.limited)


def without_limits(a: Data, b: Data) -> Way:
    """Return posterior means of the readings that limits hide."""
    return _posterior_means(Gaussians(a.x, std=a.std), Gaussians(b.x, std=b.std))


WAYS: dict[str, Callable[[Data, Data], Way]] = {
    "missing, posterior means": as_missing,
    "L / sqrt 2": as_number,
    "L / sqrt 2 and indicator": with_indicator,
    "L / sqrt 2, posterior means": as_reading,
    "limits, posterior means": as_limit,
    "(readings known, posterior means)": without_limits,
}
CLASSES = {"missing, ClassPopulations": False, "limits, ClassPopulations": True}
OURS = "limits, posterior means"


class Score(NamedTuple):
    """Accuracy, log loss, and root mean square error of limited values, in spreads."""

    accuracy: float
    log_loss: float
    rmse: float


def score(y: NDArray[Any], proba: Array, classes: Any, rmse: float) -> Score:
    """Return what was reached."""
    right = classes[proba.argmax(axis=1)] == y
    return Score(float(right.mean()), float(log_loss(y, proba, labels=classes)), rmse)


def one_split(a: Data, b: Data) -> dict[str, Score]:
    """Return the scores of all ways."""
    found, spread = {}, a.v.std(axis=0)
    for name, way in WAYS.items():
        known, asked, recovered = way(a, b)
        machine = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(known, a.y)
        rmse = np.nan
        if recovered is not None:
            rmse = float(np.sqrt(np.mean((((recovered - b.v) / spread)[b.below]) ** 2)))
        found[name] = score(b.y, machine.predict_proba(asked), machine.classes_, rmse)
    for name, aware in CLASSES.items():
        one, other = (d.limited if aware else Gaussians(d.known, std=d.std) for d in (a, b))
        model = ClassPopulations(1, tied=False, random_state=0).fit(one, a.y)
        found[name] = score(b.y, model.predict_proba(other), model.classes_, np.nan)
    return found


def experiment(options: Options) -> None:
    """Print a table for each data set and share."""
    sets = {"cells": load_breast_cancer(return_X_y=True), "wine": load_wine(return_X_y=True)}
    n_splits = 3 if options.quick else 20
    lines = []
    for number, (name, (v, y)) in enumerate(sets.items()):
        v = v[:, :10] if name == "cells" else v
        for share in SHARES:
            rng = np.random.default_rng([options.seed, number])
            data = measured(v, y, share, rng)
            splits = StratifiedShuffleSplit(n_splits, test_size=TEST, random_state=options.seed)
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                runs = [
                    one_split(data.rows(train), data.rows(test))
                    for train, test in splits.split(v, y)
                ]
            print(f"{name}, {100 * share:.0f} % of every second feature below the limit")
            lines += [(name, share, *line) for line in show(runs)]
    options.table("limits", ["table", "share", "way", *Score._fields], lines)


def show(runs: list[dict[str, Score]]) -> list[tuple[Any, ...]]:
    """Print and return mean scores, with the p of paired differences to ours."""
    rows, lines = [], []
    for name in runs[0]:
        scores = np.array([run[name] for run in runs])
        ours = np.array([run[OURS] for run in runs])
        p = [paired_p(*pair, OVERLAP) for pair in zip(scores.T, ours.T, strict=True)]
        told = ["" if name == OURS or np.isnan(each) else f"{each:.2g}" for each in p]
        rows.append((
            name, percent(scores[:, 0]), told[0],
            f"{scores[:, 1].mean():.3f} +- {standard_error(scores[:, 1]):.3f}", told[1],
            "" if np.isnan(scores[0, 2]) else f"{scores[:, 2].mean():.3f}", told[2],
        ))  # fmt: skip
        lines.append((name, *scores.mean(axis=0)))
    print(
        format_columns(["way", "right %", "p", "log loss", "p", "rmse", "p"], rows),
        "\n",
        flush=True,
    )
    return lines


if __name__ == "__main__":
    run_script(experiment, __doc__)
