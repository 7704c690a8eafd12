"""Bytes per second of a value+gradient pass, and examples per second of the stochastic solver.

The yardstick of the passes reads the very same arrays, in the same number of threads and in the
same turns, with NumPy reductions: they release the GIL and do next to nothing with a number, so
that memory is what limits them (they are as fast as a hand-written loop of vector additions). Of
two of them the faster counts, as either may be held up by its arithmetic on some processor.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm import _core, reference

from . import settings as table
from .data import make_examples
from .report import Section
from .timing import announce, available_threads, interleave, limit_blas

if TYPE_CHECKING:
    from collections.abc import Callable

    from .data import Array
    from .settings import Settings

INNER = 3  # passes in one timing
LAM = 1e-4
READS: dict[str, Callable[[Array], Any]] = {
    "add": np.add.reduce,
    "or": lambda part: np.bitwise_or.reduce(part.view(np.int64)),
}
PASS_NOTES = """
* The bytes are those of means and variances. bandwidth: the faster of two NumPy reductions of the
  same arrays, in as many threads.
"""


# -- passes --------------------------------------------------------------------------------------
def measure_passes(settings: Settings) -> Section:
    """Time passes over data of `pass_bytes` bytes for each number of features and type."""
    threads = available_threads()
    size = settings.pass_bytes / 1e6
    title = f"Value and gradient in one pass: {size:.0f} MB, diagonal, {threads} threads"
    section = Section("passes", title, "GB/s", "of the bandwidth", PASS_NOTES)
    with ThreadPoolExecutor(threads) as pool:
        for dtype in (np.float64, np.float32):
            for d in settings.pass_features:
                _pass(section, settings, d, dtype, pool)
    return section


def _pass(
    section: Section, settings: Settings, d: int, dtype: Any, pool: ThreadPoolExecutor
) -> None:
    name, threads = np.dtype(dtype).name, available_threads()
    announce(f"passes: {d} features, {name}")
    n = max(2, settings.pass_bytes // (2 * d * np.dtype(dtype).itemsize))
    n -= n % 2  # an even number of rows can be read as 8-byte words
    data = make_examples((n, d), "independent", seed=settings.seed, dtype=dtype)
    assert data.variance is not None
    X = data.gaussians()
    objective = _core.Objective(X.core_view(), data.codes, 1, None, LAM, n_threads=threads)
    W = np.random.default_rng(settings.seed).normal(size=(1, d)) / np.sqrt(d)
    b = np.zeros(1)
    parts = [
        part.view(dtype)
        for array in (data.mean, data.variance)
        for part in np.array_split(array.ravel().view(np.int64), threads)
    ]

    def one_pass() -> None:
        for _ in range(INNER):
            objective(W, b)

    def read(kernel: Callable[[Array], Any]) -> Callable[[], None]:
        def go() -> None:
            for _ in range(INNER):
                list(pool.map(kernel, parts))

        return go

    contestants = {"pass": one_pass, **{name: read(kernel) for name, kernel in READS.items()}}
    interleave(contestants, 1)  # warms up
    runs = interleave(contestants, settings.repeats)
    gigabytes = INNER * (data.mean.nbytes + data.variance.nbytes) / 1e9
    rates = {name: [gigabytes / t for t in run.seconds] for name, run in runs.items()}
    fastest = min(READS, key=lambda name: runs[name].median)
    case = f"d = {d}, {name}"
    share = table.BANDWIDTH_SHARE.get(d) if dtype is np.float64 else None
    target = "" if share is None else f">= {share:g}"
    section.add(
        case, rates["pass"], "bandwidth", rates[fastest], ours_over_theirs=True, target=target
    )
    section.details[case] = {"rows": n, "GB/s": rates, "fastest": fastest}


# -- steps ---------------------------------------------------------------------------------------
def measure_steps(settings: Settings) -> Section:
    """Time the stochastic solver and its NumPy reference on the same mini-batches."""
    announce("steps")
    n, d, lam = 10_000, 100, 1e-3
    data = make_examples((n, d), "independent", seed=settings.seed)
    X = data.gaussians()
    title = f"Stochastic solver: {n:,} x {d}, diagonal float64, one thread"
    section = Section("steps", title, "examples/s", "times faster")
    objective = _core.Objective(X.core_view(), data.codes, 1, None, lam, n_threads=1)
    ours, theirs = 50 * settings.steps, settings.steps  # so that both take long enough
    limited = limit_blas(1)
    for batch in (1, 32):

        def core(batch: int = batch) -> None:
            _core.minimize_sgd(
                objective,
                coef=np.zeros((1, d)),
                intercept=np.zeros(1),
                batch_size=batch,
                max_steps=ours,
                tolerance=0.0,
            )

        def in_numpy(batch: int = batch) -> None:
            with limited():
                reference.sgd(X, data.y, lam, batch_size=batch, steps=theirs)

        runs = interleave({"core": core, "reference": in_numpy}, settings.repeats)
        section.add(
            f"mini-batches of {batch}",
            [ours * batch / t for t in runs["core"].seconds],
            "halosvm.reference",
            [theirs * batch / t for t in runs["reference"].seconds],
            ours_over_theirs=True,
        )
    return section
