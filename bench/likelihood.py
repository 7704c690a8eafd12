"""Which loss makes probabilities of measurements come true: `python bench/likelihood.py`.

True values are normal, and their labels logistic; each value is measured with an error of its own
known size, 1 in the mean. `EmpiricalBayes` tells what is known of the true values, and a linear
machine is fitted to that in each way. Log loss on new rows, and how much surer the machine is than
it is right; the best possible are the probabilities of the true model. Means over random data with
their standard errors, and paired differences from the best possible.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC
from halosvm.reference import marginal_logistic

SLOPES = np.array([2.0, -1.5, 1.0, -0.5, 0.0])
N_NEW = 20_000
MARGINAL = "`marginal_logistic` of posteriors"
MEANS = "`expected_logistic` of posterior means"
BEST = "best possible"


def probabilities(f: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return E sigma of scores N(f, s^2)."""
    parts = [slice(i, i + 1000) for i in range(0, len(f), 1000)]
    return np.exp(-np.concatenate([marginal_logistic(-f[k], s[k])[0] for k in parts]))


def judge(p: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the log loss, and mean confidence less the share that is right."""
    right = (p > 0.5) == y
    return -np.log(np.where(y, p, 1.0 - p)).mean(), np.maximum(p, 1.0 - p).mean() - right.mean()


def one_seed(seed: int, n: int) -> dict[str, tuple[float, float]]:
    """Return the measures of each way."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n + N_NEW, len(SLOPES)))
    y = rng.random(len(truth)) < expit(truth @ SLOPES)
    std = rng.gamma(2.0, 0.5, size=truth.shape)  # of mean 1
    X = Gaussians(truth + std * rng.normal(size=truth.shape), std=std)
    known = EmpiricalBayes().fit(X[:n]).transform(X)
    means = Gaussians(known.mean)
    out = {}
    for name, loss, data in (
        ("`expected_logistic` of posteriors", "expected_logistic", known),
        (MARGINAL, "marginal_logistic", known),
        (MEANS, "expected_logistic", means),
        ("`expected_logistic` of values", "expected_logistic", Gaussians(X.mean)),
    ):
        model = UncertainSVC(loss=loss).fit(data[:n], y[:n])
        new = data[n:]
        p = probabilities(model.decision_function(new), model.decision_std(new))
        out[name] = judge(p, y[n:])
    shrink = 1.0 / (1.0 + std[n:] ** 2)  # of a population N(0, 1)
    f, s2 = (shrink * X.mean[n:]) @ SLOPES, (1.0 - shrink) @ SLOPES**2
    return out | {BEST: judge(probabilities(f, np.sqrt(s2)), y[n:])}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    arguments = parser.parse_args()
    runs = [one_seed(seed, arguments.rows) for seed in range(arguments.seeds)]
    print("| fit | log loss | above the best possible | surer than right |")
    print("| --- | --- | --- | --- |")
    best = np.array([run[BEST][0] for run in runs])
    for name in runs[0]:
        loss, surer = np.array([run[name] for run in runs]).T
        cells = (loss, loss - best, surer)
        errors = [each.std(ddof=1) / len(runs) ** 0.5 for each in cells]
        text = [f"{c.mean():.4f} ± {e:.4f}" for c, e in zip(cells, errors, strict=True)]
        print(f"| {name} |", " | ".join(text), "|")
    apart = np.array([run[MEANS][0] - run[MARGINAL][0] for run in runs])
    print(f"\nmeans above: {apart.mean():.4f} ± {apart.std(ddof=1) / len(runs) ** 0.5:.4f}")


if __name__ == "__main__":
    main()
