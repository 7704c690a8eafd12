"""The doctor on tables made up: whether it says what is so.

No paper. Tables of two classes differ in rows, features, noise, in the factor that errors are told
by, and in whether errors themselves tell the classes apart. For each of three ways to learn, the
gain that left-out rows tell is compared with that on thousands of new rows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from common import Options, format_columns, run_script

import halosvm
from halosvm import Gaussians
from halosvm.measurement.classifier import MeasurementClassifier

if TYPE_CHECKING:
    from common import Array
    from numpy.typing import NDArray

WAYS = ("values, logistic", "means, logistic", "posteriors, linear")
TABLES, NEW_ROWS = 200, 4000
FACTORS = (0.5, 1.0, 2.0)
LEVEL = 0.05


class Table(NamedTuple):
    """Training and new rows with their labels, and what is so."""

    X: Gaussians
    y: NDArray[np.intp]
    X_new: Gaussians
    y_new: NDArray[np.intp]
    factor: float
    news: bool


def table(rng: np.random.Generator) -> Table:
    """Draw a table."""
    n, d = int(rng.integers(150, 601)), int(rng.integers(3, 9))
    factor, news = float(rng.choice(FACTORS)), bool(rng.integers(2))
    noise = float(np.exp(rng.uniform(np.log(0.1), np.log(3.0))))
    mixing = np.eye(d) + 0.5 * rng.normal(size=(d, d))
    apart = rng.normal(size=d) * rng.uniform(0.5, 2.0) / np.sqrt(d)
    y = rng.integers(2, size=n + NEW_ROWS)
    v = (rng.normal(size=(len(y), d)) + y[:, np.newaxis] * apart) @ mixing.T
    std = noise * v.std(axis=0) * np.exp(0.7 * rng.normal(size=v.shape))
    if news:
        std *= np.where(y == 1, 1.5, 1.0)[:, np.newaxis]
    x = v + std * rng.normal(size=v.shape)
    X = Gaussians(x, std=std / factor)
    return Table(X[:n], y[:n], X[n:], y[n:], factor, news)


def true_gains(made: Table, seed: int) -> dict[str, float]:
    """Return the gain of each way on new rows, of fits to all rows of training."""
    losses = {}
    for way in WAYS:
        model = MeasurementClassifier([way], random_state=seed).fit(made.X, made.y)
        p = model.predict_proba(made.X_new)[np.arange(len(made.y_new)), made.y_new]
        losses[way] = float(-np.log(np.maximum(p, 1e-12)).mean())
    return {way: losses[WAYS[0]] - loss for way, loss in losses.items()}


def examined(made: Table, seed: int) -> dict[str, Any]:
    """Return what the doctor says of a table, and what is so."""
    begin = time.perf_counter()
    compare = MeasurementClassifier(WAYS, random_state=seed)
    found = halosvm.doctor(made.X, made.y, classifier=compare, random_state=seed)
    seconds = time.perf_counter() - begin
    gains = true_gains(made, seed)
    clear = [each for each in found.candidates if each.clear]
    common, news = found.error_tests[0], found.news
    assert news is not None
    return {
        "factor": made.factor,
        "news": made.news,
        "refused": common.p_value < LEVEL,
        "inside": common.low < made.factor < common.high,
        "told": news.p_value < LEVEL,
        "clear": len(clear),
        "right": sum(each.gain * gains[each.name] > 0 for each in clear),
        "seconds": seconds,
    }


def experiment(options: Options) -> None:
    """Examine tables, and count what is right."""
    n = TABLES // 10 if options.quick else TABLES
    rows = []
    for number in range(n):
        made = table(np.random.default_rng((options.seed, number)))
        rows.append(examined(made, number))
    said: dict[str, Array] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    right, news = said["factor"] == 1.0, said["news"]
    lines = [
        ["signs right where clear", said["right"].sum(), said["clear"].sum()],
        ["errors told right, refused", said["refused"][right].sum(), right.sum()],
        ["errors told wrong, refused", said["refused"][~right].sum(), (~right).sum()],
        ["factor inside of its interval", said["inside"].sum(), n],
        ["errors tell nothing, said to", said["told"][~news].sum(), (~news).sum()],
        ["errors tell the classes apart, said to", said["told"][news].sum(), news.sum()],
    ]
    print(format_columns(["", "tables", "of"], [[str(cell) for cell in line] for line in lines]))
    print(f"{np.median(said['seconds']):.1f} s a table\n")
    options.table("doctor", list(said), [list(row.values()) for row in rows])


if __name__ == "__main__":
    run_script(experiment, __doc__)
