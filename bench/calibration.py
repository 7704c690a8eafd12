"""What probabilities gain from the error bars of test rows: `python bench/calibration.py`.

The cells of scikit-learn's breast cancer data, each value measured with an error of its own known
size, after `EmpiricalBayes`, in 20 random halves. The same `UncertainCalibratedClassifier`, whose
probabilities are expectations over the errors of the test rows or those of their means, and
scikit-learn's `CalibratedClassifierCV`. Log loss; calibration error in ten bins of equal counts;
accuracy of the 90 % of rows that are surest. Paired differences with their standard errors.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from halosvm import EmpiricalBayes, Gaussians, UncertainCalibratedClassifier, UncertainSVC

MEASURES = ("log loss", "calibration error", "accuracy of the surest 90 %")


def judge(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the measures of probabilities of class 1."""
    of_label = np.where(y == 1, p, 1.0 - p)
    parts = np.array_split(np.argsort(p), 10)
    errors = [len(part) * abs(p[part].mean() - y[part].mean()) for part in parts]
    surest = np.argsort(-np.abs(p - 0.5))[: int(0.9 * len(y))]
    right = (p > 0.5) == y
    loss = -np.log(np.maximum(of_label, 1e-12)).mean()
    return np.array([loss, sum(errors) / len(y), right[surest].mean()])


def one_split(seed: int, methods: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the measures of each way in one random half of the cells."""
    rng = np.random.default_rng(seed)
    truth, y = load_breast_cancer(return_X_y=True)
    truth = truth[:, :10]
    truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    std = rng.lognormal(0.0, 1.0, size=(len(y), 1)) * np.ones(10)
    X = Gaussians(truth + std * rng.normal(size=truth.shape), std=std)
    order = rng.permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    prior = EmpiricalBayes(n_components=2, random_state=0).fit(X[train])
    known, new = prior.transform(X[train]), prior.transform(X[test])
    out = {}
    for method in methods:
        clf = UncertainCalibratedClassifier(UncertainSVC(), method=method)
        clf.fit(known, y[train])
        out[f"{method}, with errors"] = judge(clf.predict_proba(new)[:, 1], y[test])
        out[f"{method}, means alone"] = judge(clf.predict_proba(new.mean, X_std=0)[:, 1], y[test])
    plain = CalibratedClassifierCV(UncertainSVC(), ensemble=False).fit(known, y[train])
    out["CalibratedClassifierCV"] = judge(plain.predict_proba(new)[:, 1], y[test])
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    methods = ("sigmoid", "isotonic", "temperature")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs = [one_split(seed, methods) for seed in range(arguments.splits)]
    print("| probabilities |", " | ".join(MEASURES), "|")
    print("| --- " * (1 + len(MEASURES)) + "|")
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        print(f"| {name} |", " | ".join(f"{v:.4f}" for v in values.mean(axis=0)), "|")
    print()
    for method in methods:
        gains = [run[f"{method}, means alone"] - run[f"{method}, with errors"] for run in runs]
        gain, error = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / len(gains) ** 0.5
        text = ", ".join(
            f"{what} {g:+.4f} +- {e:.4f}" for what, g, e in zip(MEASURES, gain, error, strict=True)
        )
        print(f"{method}: means alone less with errors: {text}")


if __name__ == "__main__":
    main()
