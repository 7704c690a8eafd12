"""Sparse means against LIBLINEAR: time to its objective, what few uncertain features add, memory.

    python bench/sparse_data.py --rows 100000 --features 50000

Certain means are compared with scikit-learn's `LinearSVC(loss="hinge")`, which is LIBLINEAR, at its
smaller tolerance, in seconds and objective, uncertain ones with certain ones, where the certified
suboptimality stands in place of the objective; memory with the arrays of the data. All in one run,
each fit in a process of its own. LIBLINEAR regularises its intercept, so none is fitted.
"""

import argparse
import multiprocessing
import resource
import time
import warnings

import numpy as np
import psutil
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from halosvm import Covariances, UncertainSVC

UNCERTAIN = 24


def make_data(n: int, d: int, stored: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Return rows with numbers in features that are the rarer the later they are, and labels."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.uniform(size=(n, stored)) ** 3).astype(np.int32)
    values = np.abs(rng.normal(size=(n, stored))) / np.sqrt(stored)
    X = sparse.csr_array(
        (values.ravel(), columns.ravel(), np.arange(0, n * stored + 1, stored, dtype=np.int32)),
        shape=(n, d),
    )
    X.sum_duplicates()
    score = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, (score > np.median(score)).astype(int)


def hinge_objective(X: sparse.csr_array, y: np.ndarray, w: np.ndarray, C: float) -> float:
    """Return the objective of the linear support vector machine over C n."""
    margins = 1.0 - np.where(y > 0, 1.0, -1.0) * (X @ w)
    return float(0.5 * w @ w / (C * len(y)) + np.maximum(margins, 0.0).mean())


def measured(machine, *data, **errors):
    """Return a fitted machine, seconds, and the bytes that its process grew by at its largest."""
    results, child = multiprocessing.get_context("fork").Pipe(duplex=False)
    worker = multiprocessing.get_context("fork").Process(
        target=_fit_and_tell, args=(child, machine, data, errors)
    )
    worker.start()
    fitted = results.recv()
    worker.join()
    return fitted


def _fit_and_tell(results, machine, data, errors) -> None:
    before = psutil.Process().memory_info().rss
    start = time.perf_counter()
    machine.fit(*data, **errors)
    seconds = time.perf_counter() - start
    largest = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.send((machine, seconds, largest - before))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--stored", type=int, default=50)
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0])
    options = parser.parse_args()
    X, y = make_data(options.rows, options.features, options.stored)
    arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    std = np.random.default_rng(1).uniform(0.05, 0.2, (options.rows, UNCERTAIN))
    few = Covariances.diagonal(
        np.square(std), columns=np.arange(UNCERTAIN), n_features=options.features
    )
    print(
        f"{X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.1f} stored a row, {arrays / 1e6:.0f} MB"
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("C      machine                   seconds      ratio        objective  memory/arrays")
    for C in options.C:
        options_of_both = {"C": C, "fit_intercept": False}
        best = np.inf
        for tol in (1e-1, 1e-3):
            rival = LinearSVC(loss="hinge", tol=tol, max_iter=3000, **options_of_both)
            rival, reference, memory = measured(rival, X, y)
            value = hinge_objective(X, y, rival.coef_[0], C)
            best = min(best, value)
            show(C, f"LIBLINEAR tol={tol:g}", reference, 1.0, value, memory / arrays)
        for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
            own = UncertainSVC(loss="hinge", tol=tol, **options_of_both)
            own, certain, memory = measured(own, X, y)
            value = hinge_objective(X, y, own.coef_[0], C) / best
            name = f"certain tol={tol:g} ({own.n_iter_})"
            show(C, name, certain, certain / reference, value, memory / arrays)
            own, seconds, memory = measured(
                UncertainSVC(tol=tol, **options_of_both), X, y, X_cov=few
            )
            name = f"{UNCERTAIN} uncertain tol={tol:g} ({own.n_iter_})"
            show(C, name, seconds, seconds / certain, own.suboptimality_, memory / arrays)


def show(C: float, name: str, seconds: float, ratio: float, value: float, memory: float) -> None:
    """Print a line."""
    print(
        f"{C:<6g} {name:<28} {seconds:8.2f} {ratio:10.2f} {value:16.8f} {memory:10.2f}", flush=True
    )


if __name__ == "__main__":
    main()
