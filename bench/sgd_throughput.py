"""Examples per second of the stochastic solver against the NumPy reference, same mini-batches.

Run as `python bench/sgd_throughput.py [--rows 10000] [--features 100] [--batch 32]`.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from halosvm import Gaussians, _core, reference

LAM = 1e-3
REFERENCE_STEPS = 2000
CORE_STEPS = 50 * REFERENCE_STEPS


def main() -> None:
    """Time both in turn, five times, and print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    n, d = options.rows, options.features
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = Gaussians(rng.normal(size=(n, d)) + 0.3 * y[:, None], variance=rng.random((n, d)))
    objective = _core.Objective(X.core_view(), (y > 0).astype(np.int16), 1, None, LAM)

    def core() -> np.ndarray:
        return _core.minimize_sgd(
            objective,
            coef=np.zeros((1, d)),
            intercept=np.zeros(1),
            batch_size=options.batch,
            max_steps=CORE_STEPS,
            tolerance=0.0,
        )["coef"][0]

    def numpy_reference() -> np.ndarray:
        return reference.sgd(X, y, LAM, batch_size=options.batch, steps=REFERENCE_STEPS)[0]

    rates: dict[str, list[float]] = {"halosvm": [], "reference": []}
    for _ in range(5):
        for name, run, steps in (
            ("halosvm", core, CORE_STEPS),
            ("reference", numpy_reference, REFERENCE_STEPS),
        ):
            start = time.perf_counter()
            run()
            rates[name].append(steps * options.batch / (time.perf_counter() - start))
    print(f"{n} x {d}, diagonal float64, mini-batches of {options.batch}, one thread each")
    for name, values in rates.items():
        print(f"{name:>10}: {statistics.median(values):12.0f} examples per second")
    ratios = [a / b for a, b in zip(rates["halosvm"], rates["reference"], strict=True)]
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    print(f"{'ratio':>10}: {middle:12.1f} (from {low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
