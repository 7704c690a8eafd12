"""Which method suits which data: `python bench/methods.py [--repeats N]` prints a table.

Seconds of `UncertainSVC` with each solver to a certified 1e-6, from arrays to the model, and of
SciPy's L-BFGS-B on `halosvm.reference`, until the objective is first within 1e-6 of the optimum;
medians. The default should be near the best of its own methods, and ahead of the rival.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm import Covariances, Gaussians, UncertainSVC
from halosvm.commands.benchmark import rivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Errors = Callable[[int, int, Array], dict[str, Any]]  # of (n, d, which are certain)

SOLVERS = ("auto", "lbfgs", "interior_point", "dual_coordinate")
GAP = 1e-6
LAMS = (1e-1, 1e-3, 1e-5)
LONGEST = 3000  # iterations


def means(rng: np.random.Generator, n: int, d: int, rare: float = 0.5) -> tuple[Array, Array]:
    """Draw means of two overlapping classes, the second with this share."""
    y = np.where(rng.random(n) < rare, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    direction = rng.normal(size=d)
    return rng.normal(size=(n, d)) + 1.2 * y[:, None] * direction / np.linalg.norm(direction), y


def kinds(rng: np.random.Generator) -> dict[str, tuple[Gaussians, Array]]:
    """Return data of every kind of covariances, shape and share of certain examples."""

    def data(n: int, d: int, make: Errors, rare: float = 0.5) -> tuple[Gaussians, Array]:
        X, y = means(rng, n, d, rare)
        certain = np.arange(n) % 2 == 0
        return Gaussians(X, **make(n, d, certain)), y

    def diagonal(size: float, half: bool = False) -> Errors:
        def make(n: int, d: int, certain: Array) -> dict[str, Any]:
            std = size * rng.uniform(0.1, 1.0, (n, d))
            return {"std": np.where(half * certain[:, None], 0.0, std)}

        return make

    def isotropic(size: float, half: bool = False) -> Errors:
        def make(n: int, _d: int, certain: Array) -> dict[str, Any]:
            return {"std": np.where(half * certain, 0.0, size * rng.uniform(0.1, 1.0, n))}

        return make

    def low_rank(rank: int, half: bool = False) -> Errors:
        def make(n: int, d: int, certain: Array) -> dict[str, Any]:
            factors = 0.5 * rng.normal(size=(n, d, rank))
            return {"cov": Covariances.low_rank(factors * (1 - half * certain)[:, None, None])}

        return make

    def full(size: float) -> Errors:
        def make(n: int, d: int, _certain: Array) -> dict[str, Any]:
            roots = size * rng.normal(size=(n, d, d)) / np.sqrt(d)
            return {"cov": roots @ roots.transpose(0, 2, 1)}

        return make

    return {
        "certain 20,000 x 50": data(20_000, 50, lambda *_: {}),
        "certain 500 x 2,000": data(500, 2_000, lambda *_: {}),
        "isotropic 20,000 x 50": data(20_000, 50, isotropic(0.5)),
        "isotropic, half certain": data(20_000, 50, isotropic(0.5, half=True)),
        "diagonal 20,000 x 20": data(20_000, 20, diagonal(0.5)),
        "diagonal, half certain": data(20_000, 20, diagonal(0.5, half=True)),
        "diagonal, nearly certain": data(20_000, 20, diagonal(0.02)),
        "diagonal, large errors": data(20_000, 50, diagonal(3.0)),
        "diagonal, 1 % of a class": data(20_000, 20, diagonal(0.5), rare=0.01),
        "diagonal 20,000 x 200": data(20_000, 200, diagonal(0.5)),
        "diagonal 300 x 3,000": data(300, 3_000, diagonal(0.5)),
        "low rank 2, 10,000 x 100": data(10_000, 100, low_rank(2)),
        "low rank 2, half certain": data(10_000, 100, low_rank(2, half=True)),
        "low rank 5, 5,000 x 200": data(5_000, 200, low_rank(5)),
        "full 5,000 x 40": data(5_000, 40, full(0.5)),
    }


def ours(X: Gaussians, y: Array, lam: float, solver: str) -> tuple[float, UncertainSVC]:
    """Return the seconds of one fit, and the fit."""
    clf = UncertainSVC(1.0 / (lam * len(y)), solver=solver, tol=GAP, max_iter=LONGEST)
    start = time.perf_counter()
    clf.fit(X, y)
    return time.perf_counter() - start, clf


def main() -> None:
    """Print the table as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    columns = "data, lam, auto, L-BFGS, interior points, dual, SciPy, SciPy / auto, auto / best"
    print("| " + columns.replace(", ", " | ") + " |")
    print("| --- " * 9 + "|")
    for name, (X, y) in kinds(np.random.default_rng(0)).items():
        for lam in LAMS:
            cells, medians, optimum = [], [], np.inf
            time.sleep(0.5)  # the rival's threads wait busily for some time
            ours(X, y, lam, "auto")
            for solver in SOLVERS:
                if solver == "dual_coordinate" and X.covariances.kind != "zero":
                    cells.append("")
                    continue
                runs = [ours(X, y, lam, solver) for _ in range(repeats)]
                clf, median = runs[0][1], float(np.median([seconds for seconds, _ in runs]))
                certified = clf.suboptimality_ <= GAP
                optimum = min(optimum, clf.objective_)
                medians.append(median if certified else np.inf)
                mark = "" if certified else f" (only {clf.suboptimality_:.0e})"
                cells.append(f"{median:.3f} s, {clf.n_iter_}{mark}")
            trace = rivals.lbfgsb_trace(X, y, lam, optimum * (1.0 + GAP), n_threads=2)()
            theirs = trace.time_to(optimum * (1.0 + GAP))
            there = np.isfinite(theirs)
            cells.append(f"{theirs:.3f} s, {len(trace.values)}" if there else "never")
            ratio = f"{theirs / medians[0]:.1f}" if there else ""
            row = [name, f"{lam:g}", *cells, ratio, f"{medians[0] / min(medians):.2f}"]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
