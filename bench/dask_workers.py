"""What an evaluation on a dask cluster costs: `python bench/dask_workers.py` prints two tables.

The first: fixed cost of an evaluation of next to no data, by workers, partitions and features. The
second: seconds of an evaluation of a million examples on 1 to 4 workers, and of the same in one
process. Workers are processes of this machine with one thread each.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import halosvm.dask
from halosvm import UncertainSVC
from halosvm.linear import parts

if TYPE_CHECKING:
    from collections.abc import Callable

Evaluation = Any
SECONDS: list[float] = []


def timed(evaluate: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
    def run(*arguments: Any) -> Evaluation:
        start = time.perf_counter()
        result = evaluate(*arguments)
        SECONDS.append(time.perf_counter() - start)
        return result

    return run


def collections(n: int, d: int, partitions: int) -> tuple[Any, Any, Any]:
    """Return examples, labels and errors that the workers themselves draw."""
    rng = da.random.default_rng(0)
    sizes = tuple(len(rows) for rows in np.array_split(np.arange(n), partitions))
    X = rng.normal(size=(n, d), chunks=(sizes, d))
    y = (X[:, 0] + rng.normal(size=n, chunks=(sizes,)) > 0).astype(np.int64)
    return X, y, rng.random(size=(n, d), chunks=(sizes, d))


def evaluations(n: int, d: int, partitions: int) -> tuple[float, float]:
    """Return the median and the fastest of the evaluations of fits, in seconds."""
    X, y, std = collections(n, d, partitions)
    SECONDS.clear()
    for _ in range(2):
        halosvm.dask.UncertainSVC().fit(X, y, X_std=std)
    return float(np.median(SECONDS)), min(SECONDS)


def with_workers(count: int) -> LocalCluster:
    return LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )


def fixed_costs() -> None:
    print("ms of an evaluation of next to no data")
    print("workers  partitions  features   median  fastest")
    for workers in (1, 2, 4):
        with with_workers(workers) as cluster, Client(cluster):
            for partitions, d in ((workers, 100), (4 * workers, 100), (workers, 10_000)):
                ms = [1e3 * each for each in evaluations(40 * partitions, d, partitions)]
                print(f"{workers:7} {partitions:11} {d:9} {ms[0]:8.1f} {ms[1]:8.1f}", flush=True)


def data_costs(n: int = 1_000_000, d: int = 50) -> None:
    size = n * d * 16 / 1e9
    print(f"\nseconds of an evaluation of {n} x {d} and errors, {size:.2f} GB")
    print("workers  median  fastest   GB/s")
    for workers in (1, 2, 3, 4):
        with with_workers(workers) as cluster, Client(cluster):
            median, fastest = evaluations(n, d, 2 * workers)
            print(f"{workers:7} {median:7.3f} {fastest:8.3f} {size / fastest:6.2f}", flush=True)
    X, y, std = (np.asarray(each) for each in collections(n, d, 1))
    for threads in (1, 2):
        clf = UncertainSVC(n_threads=threads, solver="lbfgs")
        start = time.perf_counter()
        clf.fit(X, y, X_std=std)
        each = (time.perf_counter() - start) / (clf.n_iter_ + 2)
        print(f"in memory, {threads} threads: {each:.3f} s a pass, {size / each:.2f} GB/s")


def main() -> None:
    warnings.simplefilter("ignore")
    evaluate = parts.Whole._by_a_pass  # noqa: SLF001 (what is measured)
    parts.Whole._by_a_pass = timed(evaluate)  # type: ignore[method-assign]  # noqa: SLF001
    fixed_costs()
    data_costs()


if __name__ == "__main__":
    main()
