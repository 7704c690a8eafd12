"""Kernel machines of many examples: features of Gaussians before a linear machine; and bounds.

That SVM-GSU should learn with kernels, and from very many examples, is left open by its paper and
by that on probabilistic kernels. `UncertainKernelSVC`, whose Gram matrix grows with the square of
the examples, stands beside `UncertainSVC` on random Fourier features and on Nystroem features:
accuracy, time and memory against the number of examples. These are made up: distributions of
unequal size, each with the label of one draw from it. Test examples are distributions too; C and
gamma are chosen once, by cross-validation of the kernel machine.

N. Couellan and S. Jan, "Feature uncertainty bounding schemes for large robust
nonlinear SVM classifiers" (2017), bounds how far features of bounded inputs move. Their bounds
stand beside the package's, and both beside the strongest perturbation that gradient ascent finds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Options, format_columns, means_only, run_script
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from halosvm import (
    Gaussians,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainSVC,
    reference,
)
from halosvm.commands.benchmark.memory import resident

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

D = 5
N_TEST = 5000
GRAM_BYTES = 2e9  # beyond which the Gram matrix counts as too large
TOL = 1e-4


# -- machines ------------------------------------------------------------------------------------
def machines(C: float, gamma: float) -> dict[str, Any]:
    """Return the contestants.

    "expectations" are certain features, of which inner products are expected kernels: what
    `UncertainKernelSVC` minimises, approximated. "means" have no errors.
    """
    shared = {"gamma": gamma, "dtype": np.float32, "random_state": 0}
    fourier = {
        form: UncertainFourierFeatures(500, covariance=form, **shared)
        for form in ("low_rank", "diagonal")
    }
    nystroem = UncertainNystroem(n_components=200, **shared)
    linear = UncertainSVC(C, tol=TOL)
    expected = UncertainNystroem(n_components=200, output="mean", **shared)
    return {
        "kernel": UncertainKernelSVC(C, gamma=gamma, tol=TOL),
        "Fourier, low_rank": make_pipeline(fourier["low_rank"], linear),
        "Fourier, diagonal": make_pipeline(fourier["diagonal"], linear),
        "Nystroem, low_rank": make_pipeline(nystroem, linear),
        "Nystroem, expectations": make_pipeline(expected, linear),
        "Fourier, means": make_pipeline(fourier["low_rank"], linear),
    }


def examples(n: int, seed: int) -> tuple[Gaussians, NDArray[np.bool_]]:
    """Return distributions, and of a draw from each whether it lies outside of a tilted ball."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(n, D))
    std = np.minimum(np.exp(rng.normal(-1.5, 1.0, (n, D))), 1.0)
    drawn = mean + std * rng.normal(size=(n, D))
    return Gaussians(mean, std=std), np.sum(drawn[:, :3] ** 2, axis=1) > 2.4 + drawn[:, 3]


def fit(name: str, n: int, C: float, gamma: float, seed: int) -> dict[str, float]:
    """Fit one machine in this process; return accuracy, seconds, bytes and the certified gap."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    clf = machines(C, gamma)[name]
    view = means_only if name.endswith("means") else lambda X: X
    small, labels = examples(300, seed + 2)
    clf.fit(view(small), labels)  # libraries load on first use
    X, y = examples(n, seed)
    points, truth = examples(N_TEST, seed + 1)
    before = resident("VmHWM")
    start = time.perf_counter()
    clf.fit(view(X), y)
    seconds = time.perf_counter() - start
    extra = resident("VmHWM") - before
    machine = clf if name == "kernel" else clf[-1]
    gap = float(getattr(machine, "suboptimality_", np.nan))  # kernel machines do not tell
    accuracy = float(clf.score(view(points), truth))
    return {"accuracy": accuracy, "seconds": seconds, "extra": float(extra), "gap": gap}


def chosen(n: int, seed: int) -> dict[str, float]:
    """Return the C and the gamma of the kernel machine with the best cross-validation."""
    X, y = examples(n, seed + 3)
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.03, 0.1, 0.3]}
    found = GridSearchCV(UncertainKernelSVC(), grid, cv=3).fit(X, y)
    return {name: float(value) for name, value in found.best_params_.items()}


def compare(sizes: tuple[int, ...], seed: int) -> Iterator[list[Any]]:
    """Yield machine, n, accuracy, seconds, bytes and gap, each fit in a process of its own."""
    best = chosen(min(1000, sizes[0]), seed)
    print(f"C = {best['C']:g}, gamma = {best['gamma']:g}", flush=True)
    for n in sizes:
        for name in machines(**best):
            if name == "kernel" and 8.0 * n * n > GRAM_BYTES:
                yield [name, n, None, None, 8.0 * n * n, None]
                continue
            values = (name, n, best["C"], best["gamma"], seed)
            command = [sys.executable, __file__, "--fit", *map(str, values)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            yield [name, n, *(found[key] for key in ("accuracy", "seconds", "extra", "gap"))]


def format_machines(rows: list[list[Any]]) -> str:
    """Return a table of accuracies with their standard errors over test examples."""
    lines = []
    for name, n, accuracy, seconds, extra, gap in rows:
        if accuracy is None:
            size = f"Gram matrix of {extra / 1e9:.0f} GB"
            lines.append([name, f"{n:,}", size, "", "", ""])
            continue
        error = np.sqrt(accuracy * (1 - accuracy) / N_TEST)
        told = f"{100 * accuracy:.2f} +- {100 * error:.2f}"
        told_gap = "" if np.isnan(gap) else f"{gap:.0e}"
        lines.append([name, f"{n:,}", told, f"{seconds:.1f}", f"{extra / 1e6:.0f}", told_gap])
    header = ["machine", "examples", "accuracy (%)", "seconds", "memory (MB)", "gap"]
    return format_columns(header, lines)


# -- bounds --------------------------------------------------------------------------------------
def fourier_case(title: str, n: int, form: str, spec: str, n_starts: int, seed: int) -> list[Any]:
    """Return printed bound, ours and the largest move of 1000 features of n inputs in a ball.

    The size of the ball is that for which the printed bound is 0.6, as in the specification.
    """
    rng = np.random.default_rng(seed)
    X = Gaussians(rng.normal(size=(1, n)), std=np.full(1, 0.6 / np.sqrt(n)))
    features = UncertainFourierFeatures(
        1000, gamma=0.5, map=form, covariance="bound", random_state=seed
    ).fit(X)
    ours, printed = (
        float(np.sqrt(features.set_params(bound=bound).transform(X).covariances[0][0, 0]))
        for bound in ("tight", "printed")
    )
    differentiable = reference.differentiable_fourier(features.frequencies_, features.phases_)
    R = np.sqrt(X.covariances[0][0, 0]) * np.eye(n)
    found = strongest(differentiable, X.mean[0], R, 1.0, n_starts, rng)
    return [title, printed, ours, found, spec]


def strongest(
    features: Any, x: Any, R: Any, radius: float, n_starts: int, rng: np.random.Generator
) -> float:
    """Return the largest move of all starts, a few at a time."""
    at_once = 500
    return max(
        reference.strongest_move(features, x, R, radius, 2, rng, n_starts=at_once)
        for _ in range(max(1, n_starts // at_once))
    )


def nystroem_cases(radius: float, n_starts: int, seed: int) -> Iterator[list[Any]]:
    """Yield bounds of Nystroem features from 30 landmarks in three dimensions."""
    rng = np.random.default_rng(seed)
    Z, x, gamma = rng.normal(size=(30, 3)), rng.normal(size=3), 0.3
    R = np.diag(rng.uniform(0.5, 1.0, 3))
    values, U = np.linalg.eigh(np.exp(-gamma * np.square(Z[:, np.newaxis] - Z).sum(-1)))
    bounds = reference.nystroem_bounds(Z, gamma, x, R, radius)
    whitened = reference.differentiable_nystroem(Z, gamma, (U / np.sqrt(values)).T)
    plain = reference.differentiable_nystroem(Z, gamma, U.T)
    found = strongest(whitened, x, R, radius, n_starts, rng)
    before = strongest(plain, x, R, radius, n_starts, rng)
    title = f"Nystroem, radius {radius:g}"
    yield [f"{title}, in the kernel's space", None, bounds["kernel"][0], found, "1.0 to 1.27"]
    both = bounds["printed"][0], bounds["landmarks"][0]
    yield [f"{title}, each landmark", *both, before, "17 to 84; 1.5 to 3"]


def bounds(n_starts: int, seed: int) -> Iterator[list[Any]]:
    """Yield title, printed bound, ours, the largest move found, and what the specification has."""
    for n, spec in ((5, ""), (50, "0.600, 0.107, 0.107"), (500, "0.599, 0.053, 0.053")):
        yield fourier_case(f"Fourier, paired, n = {n}", n, "paired", spec, n_starts, seed)
    yield fourier_case("Fourier, phase, n = 50", 50, "phase", "", n_starts, seed)
    for radius in (0.01, 0.1, 1.0):
        yield from nystroem_cases(radius, n_starts, seed)


def format_bounds(rows: list[list[Any]]) -> str:
    """Return a table of bounds and their ratios to what was found."""
    lines = [
        [
            title,
            "" if printed is None else f"{printed:.4f}",
            f"{ours:.4f}",
            f"{found:.4f}",
            "" if printed is None else f"{printed / found:.2f}",
            f"{ours / found:.2f}",
            spec,
        ]
        for title, printed, ours, found, spec in rows
    ]
    header = ["bound", "printed", "ours", "found", "printed / found", "ours / found", "expected"]
    return format_columns(header, lines)


# -- the experiment ------------------------------------------------------------------------------
def experiment(options: Options) -> None:
    """Print both tables, and draw accuracy and time against the number of examples."""
    sizes = (500, 2000) if options.quick else (1000, 3000, 10_000, 30_000, 100_000)
    rows = list(compare(sizes, options.seed))
    print(f"{format_machines(rows)}\n")
    n_starts = 500 if options.quick else 10_000
    print(f"{format_bounds(list(bounds(n_starts, options.seed)))}\n", flush=True)
    figure, save = options.figure("random_features", (11, 4))
    for axes, column, label in zip(figure.subplots(1, 2), (2, 3), ("accuracy", "s"), strict=True):
        for name in dict.fromkeys(row[0] for row in rows):
            points = [(row[1], row[column]) for row in rows if row[0] == name and row[2]]
            axes.plot(*zip(*points, strict=True), "-o", ms=4, label=name)
        axes.set(xlabel="examples", ylabel=label, xscale="log")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    save()
    header = ["machine", "examples", "accuracy", "seconds", "extra bytes", "gap"]
    options.table("random_features", header, rows)


if __name__ == "__main__":
    if "--fit" in sys.argv:
        single = argparse.ArgumentParser()
        single.add_argument("--fit", nargs=5)
        name, *numbers = single.parse_args().fit
        print(json.dumps(fit(name, int(numbers[0]), *map(float, numbers[1:3]), int(numbers[3]))))
    else:
        run_script(experiment, __doc__)
