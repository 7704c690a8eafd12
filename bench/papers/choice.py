"""Which way for measurements with errors: `MeasurementClassifier` against what one would do.

No paper. Tables of measured values, real ones with their own errors or with known noise, and made
ones, whose classes have other shapes or sizes; some have values that are missing, some other noise
in training than in use. Rivals choose their parameters by the log loss on folds of the training
rows, as the candidates do. Log loss, accuracy, calibration, ranks, paired differences.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import kepler
import numpy as np
from clips import gaussians
from common import Options, format_columns, paired_p, run_script, standard_error
from loaders import Clips, ionosphere, speakers, tess
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from halosvm import Gaussians, MeasurementClassifier
from halosvm.commands.demo import measurements

if TYPE_CHECKING:
    from collections.abc import Callable

    from common import Array
    from numpy.typing import NDArray

    Labels = NDArray[Any]

FOLDS = 5
DRAWS = 10  # of each training row, for training on noise that is added
LOGARITHMIC = ("pl_trandep", "pl_trandurh", "pl_rade", "st_teff", "st_rad", "st_dist")
PLAIN = ("st_logg", "st_tmag")
BINS = 10  # of the expected calibration error
TEST = 0.4


class Run(NamedTuple):
    """One split: measurements and labels, of training and of test rows."""

    X: Gaussians
    y: Labels
    X_test: Gaussians
    y_test: Labels


# -- tables --------------------------------------------------------------------------------------
def _split(X: Gaussians, y: Labels, n_train: int, rng: np.random.Generator) -> Run:
    seed = int(rng.integers(2**31))
    n_test = min(len(y) - n_train, 2000)
    splitter = StratifiedShuffleSplit(1, train_size=n_train, test_size=n_test, random_state=seed)
    train, test = next(splitter.split(y, y))
    return Run(X[train], y[train], X[test], y[test])


def kepler_run(rng: np.random.Generator) -> Run:
    """Split the Kepler objects with all values: 300 for training."""
    X, planet, _ = kepler.measured_values()
    return _split(X, planet, 300, rng)


def tess_run(rng: np.random.Generator) -> Run:
    """Split the TESS objects: 300 for training. A value without an error counts as missing."""
    table = tess()
    columns = []
    for name in LOGARITHMIC + PLAIN:
        value, upper, lower = (table.numbers(f"{name}{end}") for end in ("", "err1", "err2"))
        std = (upper - lower) / 2.0
        columns.append((np.log(value), std / value) if name in LOGARITHMIC else (value, std))
    motion = [table.numbers(f"st_{name}") for name in ("pmra", "pmdec", "pmraerr1", "pmdecerr1")]
    speed = np.hypot(*motion[:2])
    columns.append((np.log(speed), np.hypot(*motion[2:]) / speed))
    values, errors = (np.column_stack(part) for part in zip(*columns, strict=True))
    known = np.isfinite(values) & np.isfinite(errors)
    X = Gaussians(np.where(known, values, np.nan), std=np.where(known, errors, np.nan))
    return _split(X, np.isin(table.columns["tfopwg_disp"], ("CP", "KP")), 300, rng)


def noisy_run(load: Callable[[], tuple[Array, Labels]], size: float, rng: Any) -> Run:
    """Add noise of known, unequal size to a real table, and keep 60 % for training."""
    values, y = load()
    X = measurements.measure(values, size, rng)
    return _split(X, y, int((1 - TEST) * len(y)), rng)


def cells() -> tuple[Array, Labels]:
    """Return the ten mean features of the cells."""
    found = measurements.true_values()
    return found.values, found.labels


def radar() -> tuple[Array, Labels]:
    """Return the radar returns, standardised."""
    values, good = ionosphere()
    return stats.zscore(values[:, values.std(axis=0) > 0]), good


def wine() -> tuple[Array, Labels]:
    """Return the wines, standardised."""
    values, kind = load_wine(return_X_y=True)
    return stats.zscore(values), kind


def vowels_run(rng: np.random.Generator) -> Run:
    """Take the means of clips, whose errors are full covariances; half for training."""
    parts = speakers()
    both = Clips([*parts[0].frames, *parts[1].frames], np.concatenate([p.labels for p in parts]))
    return _split(gaussians(both, "1 m"), both.labels, len(both.labels) // 2, rng)


def _measured(v: Array, y: Labels, n_train: int, rng: Any, size: float = 1.0) -> Run:
    return _split(measurements.measure(v, size, rng), y, n_train, rng)


def shapes_run(rng: np.random.Generator) -> Run:
    """Make classes of the same mean and other correlations, 4 features."""
    n = 2300
    y = rng.integers(0, 2, n)
    roots = rng.normal(size=(2, 4, 4))
    v = np.einsum("njk,nk->nj", roots[y], rng.normal(size=(n, 4)))
    return _measured(v, y, 300, rng)


def lobes_run(rng: np.random.Generator) -> Run:
    """Make one class of two lobes around the other, 3 features."""
    n = 2300
    y = rng.integers(0, 2, n)
    side = np.where(rng.random(n) < 0.5, -2.0, 2.0)
    v = 0.7 * rng.normal(size=(n, 3)) + np.where(y == 1, side, 0.0)[:, np.newaxis] * [1, 1, 0]
    return _measured(v, y, 300, rng)


def uneven_run(rng: np.random.Generator) -> Run:
    """Make a class of 15 %, 5 features."""
    n = 2300
    y = (rng.random(n) < 0.15).astype(int)
    v = rng.normal(size=(n, 5)) + 1.2 * y[:, np.newaxis] * [1, 1, 1, 0, 0]
    return _measured(v, y, 300, rng)


def precise_run(rng: np.random.Generator) -> Run:
    """Train on noisy measurements of cells, and use precise ones."""
    values, y = cells()
    run = _split(Gaussians(values, std=0.1 * np.ones_like(values)), y, 300, rng)
    noisy = measurements.measure(run.X.mean, 1.0, rng)
    precise = measurements.measure(run.X_test.mean, 0.1, rng)
    return Run(noisy, run.y, precise, run.y_test)


TABLES: dict[str, Callable[[np.random.Generator], Run]] = {
    "kepler": kepler_run,
    "tess": tess_run,
    "cells": partial(noisy_run, cells, 1.0),
    "ionosphere": partial(noisy_run, radar, 1.0),
    "wine": partial(noisy_run, wine, 1.0),
    "vowels": vowels_run,
    "shapes": shapes_run,
    "lobes": lobes_run,
    "uneven": uneven_run,
    "precise": precise_run,
}


# -- rivals --------------------------------------------------------------------------------------
def searched(model: Any, grid: dict[str, tuple[float, ...]], X: Any, y: Labels) -> Any:
    """Choose parameters by the log loss on folds, and fit."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring="neg_log_loss", cv=folds).fit(X, y)


def values_of(X: Gaussians) -> Array:
    """Return the values alone."""
    return np.asarray(X.mean)


def values_and_errors(X: Gaussians) -> Array:
    """Return the values, and the logarithms of their errors beside them."""
    std = np.sqrt(X.covariances.variances())
    positive = np.where(std > 0, std, np.nan)
    floor = np.nanmin(np.where(np.isfinite(positive), positive, np.nan), axis=0, initial=1.0)
    logs = np.log(np.maximum(np.where(np.isfinite(std), std, np.nan), floor))
    return np.hstack([X.mean, logs[:, np.ptp(np.nan_to_num(logs), axis=0) > 0]])


def logistic(X: Array, y: Labels) -> Any:
    """Fit a logistic regression."""
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
    return searched(model, {"logisticregression__C": (0.01, 0.1, 1.0, 10.0, 100.0)}, X, y)


def svc(X: Array, y: Labels) -> Any:
    """Fit an SVC with an RBF kernel, calibrated on left-out rows."""
    calibrated = CalibratedClassifierCV(SVC(), cv=FOLDS, ensemble=False)
    model = make_pipeline(SimpleImputer(), StandardScaler(), calibrated)
    return searched(model, {"calibratedclassifiercv__estimator__C": (0.3, 1.0, 10.0)}, X, y)


def forest(X: Array, y: Labels) -> Any:
    """Fit a forest, its leaves by the log loss."""
    model = make_pipeline(SimpleImputer(), RandomForestClassifier(200, random_state=0))
    return searched(model, {"randomforestclassifier__min_samples_leaf": (1, 5)}, X, y)


def boosting(X: Array, y: Labels) -> Any:
    """Fit gradient boosting, which has a way of its own for missing values."""
    model = HistGradientBoostingClassifier(max_leaf_nodes=8, random_state=0)
    return searched(model, {"max_iter": (20, 60), "learning_rate": (0.1,)}, X, y)


def imputed(X: Array, y: Labels) -> Any:
    """Impute by regressions on the other features, then fit a logistic regression."""
    model = make_pipeline(
        IterativeImputer(random_state=0), StandardScaler(), LogisticRegression(max_iter=1000)
    )
    return searched(model, {"logisticregression__C": (0.01, 0.1, 1.0, 10.0)}, X, y)


def with_more_noise(run: Run) -> Array:
    """Train a logistic regression on draws from N(x, S)."""
    rng = np.random.default_rng(0)
    errors = np.where(np.isnan(run.X.mean), 0.0, np.sqrt(run.X.covariances.variances()))
    drawn = np.concatenate(
        [run.X.mean + errors * rng.normal(size=errors.shape) for _ in range(DRAWS)]
    )
    return np.asarray(logistic(drawn, np.tile(run.y, DRAWS)).predict_proba(run.X_test.mean))


def deconvolved(run: Run) -> Array | None:
    """Use Bayes' rule on astroML's extreme deconvolution of each class, by its BIC."""
    from astroML.density_estimation import XDGMM

    if np.isnan(run.X.mean).any() or np.isnan(run.X_test.mean).any():
        return None
    known, asked = (G.covariances.to_full() for G in (run.X, run.X_test))
    logs = []
    for label in np.unique(run.y):
        rows = run.y == label
        X, S, n, d = run.X.mean[rows], known[rows], int(rows.sum()), run.X.shape[1]
        found = []
        for k in (1, 2):
            with suppress(ValueError, np.linalg.LinAlgError):  # of covariances that it has lost
                model = XDGMM(k, max_iter=100, random_state=0).fit(X, S)
                size = k * (d + d * (d + 1) // 2) + k - 1
                found.append((size * np.log(n) - 2 * model.logL(X, S), model))
        if not found:
            return None
        best = min(found, key=lambda one: one[0])[1]
        density = np.logaddexp.reduce(best.logprob_a(run.X_test.mean, asked), axis=1)
        logs.append(np.log(rows.mean()) + density)
    joint = np.stack(logs, axis=1)
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, np.newaxis])


def plain(fit: Callable[[Array, Labels], Any], view: Callable[[Gaussians], Array]) -> Any:
    """Return a rival: a classifier of scikit-learn on what it sees of measurements."""

    def probabilities(run: Run) -> Array:
        model = fit(view(run.X), run.y)
        return np.asarray(model.predict_proba(view(run.X_test)))

    return probabilities


def choosing(combine: str, run: Run) -> Array:
    """Use `MeasurementClassifier`."""
    model = MeasurementClassifier(combine=combine, random_state=0).fit(run.X, run.y)
    return np.asarray(model.predict_proba(run.X_test))


VALUES = "logistic, values"
OURS = "MeasurementClassifier"
RIVALS: dict[str, Callable[[Run], Array | None]] = {
    VALUES: plain(logistic, values_of),
    "logistic, values and errors": plain(logistic, values_and_errors),
    "SVC, values": plain(svc, values_of),
    "SVC, values and errors": plain(svc, values_and_errors),
    "forest, values": plain(forest, values_of),
    "forest, values and errors": plain(forest, values_and_errors),
    "boosting, values": plain(boosting, values_of),
    "boosting, values and errors": plain(boosting, values_and_errors),
    "iterative imputation, logistic": plain(imputed, values_of),
    "noise added in training, logistic": with_more_noise,
    "Bayes' rule, XDGMM of astroML": deconvolved,
    f"{OURS}, best": partial(choosing, "best"),
    OURS: partial(choosing, "mean"),
}


# -- scores --------------------------------------------------------------------------------------
class Score(NamedTuple):
    """What one method reached on one split."""

    loss: float
    accuracy: float
    calibration: float
    seconds: float


def calibration_error(probabilities: Array, right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error of the largest probability, over bins of it."""
    sure = probabilities.max(axis=1)
    number = np.minimum((sure * BINS).astype(int), BINS - 1)
    off = [
        abs(sure[number == b].sum() - right[number == b].sum())
        for b in range(BINS)
        if (number == b).any()
    ]
    return float(np.sum(off) / len(sure))


def judge(probabilities: Array, run: Run, seconds: float) -> Score:
    """Score probabilities of the test rows."""
    classes = np.unique(run.y)
    right = classes[probabilities.argmax(axis=1)] == run.y_test
    loss = float(log_loss(run.y_test, np.clip(probabilities, 1e-6, 1.0), labels=classes))
    return Score(loss, float(right.mean()), calibration_error(probabilities, right), seconds)


def scores_of(table: str, seed: int, number: int) -> dict[str, Score]:
    """Return the scores of all methods on one split of a table; NaN where one is not possible."""
    run = TABLES[table](np.random.default_rng((seed, number)))
    found = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, rival in RIVALS.items():
            start = time.perf_counter()
            made = rival(run)
            seconds = time.perf_counter() - start
            found[name] = Score(*[np.nan] * 4) if made is None else judge(made, run, seconds)
    return found


def all_scores(table: str, n_runs: int, seed: int) -> dict[str, list[Score]]:
    """Return the scores of all methods on all splits of a table, two splits at a time."""
    with ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(partial(scores_of, table, seed), range(n_runs)))
    return {name: [run[name] for run in runs] for name in RIVALS}


def column(scores: list[Score], name: str) -> Array:
    """Return one number of every split."""
    return np.array([getattr(score, name) for score in scores])


OVERLAP = TEST / (1.0 - TEST)


def report(table: str, found: dict[str, list[Score]]) -> str:
    """Return a table: log loss and its difference to the values alone, accuracy, calibration."""
    reference = column(found[VALUES], "loss")
    rows = []
    for name, scores in found.items():
        loss = column(scores, "loss")
        if np.isnan(loss).any():
            rows.append([name, "not on all splits", *[""] * 6])
            continue
        rows.append(
            [
                name,
                f"{loss.mean():.3f}",
                f"{(loss - reference).mean():+.3f}",
                f"{standard_error(loss - reference, OVERLAP):.3f}",
                f"{paired_p(loss, reference, OVERLAP):.2g}",
                f"{100 * column(scores, 'accuracy').mean():.1f}",
                f"{100 * column(scores, 'calibration').mean():.1f}",
                f"{np.median(column(scores, 'seconds')):.1f}",
            ]
        )
    header = [table, "log loss", "- values", "error", "p", "accuracy (%)", "ECE (%)", "s"]
    return format_columns(header, rows)


def summary(results: dict[str, dict[str, list[Score]]]) -> str:
    """Return the mean rank of every method by log loss, and where ours stands."""
    ranks: dict[str, list[float]] = {name: [] for name in RIVALS}
    lines = []
    for table, found in results.items():
        losses = {name: column(scores, "loss") for name, scores in found.items()}
        known = {name: loss for name, loss in losses.items() if not np.isnan(loss).any()}
        order = stats.rankdata([loss.mean() for loss in known.values()])
        for name, rank in zip(known, order, strict=True):
            ranks[name].append(float(rank))
        rivals = {name: loss for name, loss in known.items() if not name.startswith(OURS)}
        best = min(rivals, key=lambda name: rivals[name].mean())
        apart = known[OURS] - rivals[best]
        lines.append(
            [
                table,
                best,
                f"{rivals[best].mean():.3f}",
                f"{known[OURS].mean():.3f}",
                f"{apart.mean():+.3f}",
                f"{standard_error(apart, OVERLAP):.3f}",
            ]
        )
    header = ["table", "best rival", "its log loss", "ours", "difference", "error"]
    by_rank = sorted(ranks, key=lambda name: float(np.mean(ranks[name])))
    listed = [[name, f"{np.mean(ranks[name]):.1f}", str(len(ranks[name]))] for name in by_rank]
    return (
        format_columns(header, lines)
        + "\n\n"
        + format_columns(["method", "mean rank", "tables"], listed)
    )


def experiment(options: Options) -> None:
    """Print a table for every data set, then ranks; keep all scores as CSV."""
    results = {}
    for table in TABLES:
        found = all_scores(table, 3 if options.quick else 20, options.seed)
        results[table] = found
        print(f"{report(table, found)}\n", flush=True)
    print(summary(results))
    rows = (
        [table, name, number, *score]
        for table, found in results.items()
        for name, scores in found.items()
        for number, score in enumerate(scores)
    )
    options.table("choice", ["table", "method", "split", *Score._fields], rows)


if __name__ == "__main__":
    run_script(experiment, __doc__)
