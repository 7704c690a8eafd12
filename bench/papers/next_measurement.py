"""What to measure next: one more reading of each test object, and how many more labels are right.

No paper. Real tables get normal noise of a known standard deviation of 3 in the mean, another one
for each value, as in `measurements`. One value of each test object is read once more, with an error
of 0.2: that of the largest expected gain, one at random, or the one of the largest error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import Options, format_columns, paired_p, run_script, standard_error, verdict
from measurements import OVERLAP, splits, tables
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC, next_measurement
from halosvm.commands.demo import measurements

if TYPE_CHECKING:
    from common import Array
    from numpy.typing import NDArray

SIZE, ERROR = 3.0, 0.2
TABLES = ("cells", "wine")
FOLDS = 3
WAYS = ("none", "gain", "random", "largest error")


def choices(machine: Any, X: Gaussians, rng: np.random.Generator) -> dict[str, NDArray[np.intp]]:
    """Return the feature of each object that is read again, by each way to choose."""
    n, d = X.shape
    table = next_measurement(machine, X, new_error=ERROR)
    _, first = np.unique(table["row"], return_index=True)  # the best comes first
    return {
        "gain": table["feature"][first],
        "random": rng.integers(d, size=n),
        "largest error": X.covariances.variances().argmax(axis=1),
    }


def read_again(X: Gaussians, truth: Array, features: NDArray[np.intp], noise: Array) -> Gaussians:
    """Return measurements that are joined by one more reading of a feature each."""
    rows = np.arange(len(X))
    mean, variance = X.mean.copy(), X.covariances.variances().copy()
    old = variance[rows, features]
    share = old / (old + ERROR**2)
    new = truth[rows, features] + ERROR * noise
    mean[rows, features] += share * (new - mean[rows, features])
    variance[rows, features] = share * ERROR**2
    return Gaussians(mean, variance=variance)


def accuracies(values: Array, y: NDArray[Any], n_runs: int, seed: int) -> dict[str, Array]:
    """Return the accuracy on every split before and after the readings."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for number, train, test in splits(y, n_runs, seed):
        rng = np.random.default_rng((seed, number))
        X = measurements.measure(values, SIZE, rng)
        model = make_pipeline(
            EmpiricalBayes(output="mean", n_threads=1), UncertainSVC(loss="hinge", n_threads=1)
        )
        search = GridSearchCV(
            model,
            {"uncertainsvc__C": (0.03, 0.1, 0.3, 1.0, 3.0)},
            cv=StratifiedKFold(FOLDS, shuffle=True, random_state=number),
            error_score="raise",
        ).fit(X[train], y[train])
        machine = search.best_estimator_
        asked, noise = X[test], rng.normal(size=len(test))
        found["none"].append(machine.score(asked, y[test]))
        for way, features in choices(machine, asked, rng).items():
            again = read_again(asked, values[test], features, noise)
            found[way].append(machine.score(again, y[test]))
    return {way: np.array(each) for way, each in found.items()}


def experiment(options: Options) -> None:
    """Print, for each table, accuracies and gains of the three ways to choose a reading."""
    n_runs = 3 if options.quick else 20
    known = tables()
    print(f"{n_runs} splits, 60/40; noise {SIZE:g}, one reading of each test object to {ERROR:g}")
    print("gains in points of accuracy, paired t-tests against the reading of largest gain\n")
    for name in TABLES:
        values, y = known[name]
        with threadpool_limits(1):
            found = accuracies(values, y, n_runs, options.seed)
        rows = []
        for way, accuracy in found.items():
            gain = accuracy - found["none"]
            cells = [way, f"{100 * accuracy.mean():.1f}"]
            if way != "none":
                cells.append(
                    f"{100 * gain.mean():+.1f} ({100 * standard_error(gain, OVERLAP):.1f})"
                )
            if way in ("random", "largest error"):
                p = paired_p(accuracy, found["gain"], OVERLAP)
                cells += [f"{p:.2g}", verdict(float(np.mean(accuracy - found["gain"])), p)]
            rows.append([*cells, *[""] * (5 - len(cells))])
        print(f"{name}, {len(y)} x {values.shape[1]}")
        print(format_columns(["reading", "accuracy (%)", "gain", "p", ""], rows) + "\n", flush=True)


if __name__ == "__main__":
    run_script(experiment, __doc__)
