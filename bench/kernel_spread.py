"""Spread of kernel decision values, closed form against draws: `python bench/kernel_spread.py`.

Two overlapping classes in 10 features, errors half a standard deviation wide; nearly all examples
support an `UncertainKernelSVC`. For growing numbers of support examples the time of
one row, on one thread, of the closed form, of draws and of slopes, and how far the two are from the
closed form: the ratio in the mean, and its scatter over rows. `_EXACT_PAIRS` in
python/halosvm/kernel/spread.py is chosen from the times: the closed form is worth its price while a
row takes about as long as two or three rows by draws.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from halosvm import Gaussians, UncertainKernelSVC


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--kind", choices=["diagonal", "full"], default="diagonal")
    arguments = parser.parse_args()
    d, rng = arguments.features, np.random.default_rng(0)
    print(" support  exact ms  draws ms  slopes ms  draws/exact   slopes/exact")
    for n in (30, 60, 100, 200, 400) if arguments.kind == "full" else (100, 200, 400, 800, 1600):
        y = np.arange(n) % 2
        x = rng.normal(size=(n, d)) + 0.2 * y[:, np.newaxis]
        if arguments.kind == "full":
            F = 0.5 * rng.normal(size=(n, d, d)) / np.sqrt(d)
            X = Gaussians(x, cov=F @ F.transpose(0, 2, 1))
        else:
            X = Gaussians(x, std=rng.uniform(0.2, 0.8, size=(n, d)))
        machine = UncertainKernelSVC(n_threads=1).fit(X, y)
        rows, times, found = X[:50], {}, {}
        for way in ("exact", "draws", "slopes"):
            machine.set_params(spread=way).decision_std(rows[:2])
            begin = time.perf_counter()
            found[way] = machine.decision_std(rows)
            times[way] = 1e3 * (time.perf_counter() - begin) / len(rows)
        ratios = [found[way] / found["exact"] for way in ("draws", "slopes")]
        print(
            f"{len(machine.support_):8}{times['exact']:10.3f}{times['draws']:10.3f}"
            f"{times['slopes']:11.3f}"
            + "".join(f"  {ratio.mean():6.3f}+-{ratio.std():.3f}" for ratio in ratios)
        )


if __name__ == "__main__":
    main()
