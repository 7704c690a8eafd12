"""Errors from two or three readings of each object: raw, pooled, or one for all.

No paper. True values of two classes, read two or three times with errors whose size differs from
object to object, as nu_0 degrees of freedom say. What each kind of errors is good for: the distance
of posterior means from true values, how often intervals of 95 % hold the true value, and the
accuracy of linear discriminant analysis on posterior means.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from common import Options, format_columns, run_script, standard_error
from scipy.special import stdtrit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from halosvm import EmpiricalBayes, Gaussians
from halosvm.uncertainty import from_samples, pooled_errors

if TYPE_CHECKING:
    from common import Array

N, FEATURES, TRAINING = 400, 4, 200
RUNS = 10
PRIORS = (2.0, 5.0, np.inf)  # nu_0
READINGS = ((2, 2), (1, 3))


def readings(
    rng: np.random.Generator, nu_0: float, least: int, most: int
) -> tuple[Array, Array, Array, Array]:
    """Return readings, which object each is of, true values and classes."""
    y = np.arange(N) % 2
    mixing = np.eye(FEATURES) + 0.4 * rng.normal(size=(FEATURES, FEATURES))
    v = (rng.normal(size=(N, FEATURES)) + 0.8 * y[:, np.newaxis]) @ mixing.T
    scale = np.ones(v.shape) if np.isinf(nu_0) else np.sqrt(nu_0 / rng.chisquare(nu_0, v.shape))
    groups = np.repeat(np.arange(N), rng.integers(least, most + 1, N))
    sd = 1.5 * v.std(axis=0) * scale
    x = v[groups] + sd[groups] * rng.normal(size=(len(groups), FEATURES))
    return x, groups, v, y


def judged(model: EmpiricalBayes, X: Gaussians, quantile: Array, v: Array, y: Array) -> list[float]:
    """Return rmse, coverage and accuracy of posteriors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.fit(X).transform(X)
    unit = v.std(axis=0)
    rmse = np.sqrt(np.mean(((posterior.mean - v) / unit) ** 2))
    # Of the readings alone, which is what their errors say.
    held = np.abs(X.mean - v) <= quantile * np.sqrt(X.covariances.variances())
    machine = LinearDiscriminantAnalysis().fit(posterior.mean[:TRAINING], y[:TRAINING])
    right = machine.score(posterior.mean[TRAINING:], y[TRAINING:])
    return [float(rmse), 100 * float(held.mean()), 100 * float(right)]


def one_table(
    rng: np.random.Generator, nu_0: float, least: int, most: int
) -> dict[str, list[float]]:
    """Return the results of each kind of errors for one table."""
    x, groups, v, y = readings(rng, nu_0, least, most)
    pooled = pooled_errors(x, groups)
    normal = np.array(1.959964)
    # One variance for each feature: the pooled one of all objects.
    squares = sum(
        np.square(x[groups == i] - x[groups == i].mean(axis=0)).sum(axis=0) for i in range(N)
    )
    common = squares / np.sum(np.bincount(groups) - 1)
    found = {}
    if least > 1:
        raw = from_samples(x, groups, of="mean", kind="diagonal")
        found["raw"] = judged(EmpiricalBayes(), raw, normal, v, y)
    one = Gaussians(pooled.X.mean, std=np.sqrt(common / pooled.counts))
    found["one for all"] = judged(EmpiricalBayes(), one, normal, v, y)
    t = stdtrit(pooled.nu, 0.975)
    found["pooled"] = judged(EmpiricalBayes(), pooled.X, t, v, y)
    nu = float(np.median(pooled.nu))
    heavy = EmpiricalBayes(noise="student", nu=nu)
    found["pooled, Student's t"] = judged(heavy, pooled.X, t, v, y)
    return found


def experiment(options: Options) -> None:
    """Compare the kinds of errors, for each spread of their sizes and number of readings."""
    runs = 2 if options.quick else RUNS
    rows = []
    for nu_0 in PRIORS[1:2] if options.quick else PRIORS:
        for least, most in READINGS[:1] if options.quick else READINGS:
            each = [
                one_table(np.random.default_rng([options.seed, k]), nu_0, least, most)
                for k in range(runs)
            ]
            for name in each[0]:
                rmse, held, right = np.array([of[name] for of in each]).T
                rows.append(
                    [
                        f"{nu_0:g}",
                        str(least) if least == most else f"{least} to {most}",
                        name,
                        f"{rmse.mean():.3f} ± {standard_error(rmse):.3f}",
                        f"{held.mean():.1f}",
                        f"{right.mean():.1f} ± {standard_error(right):.1f}",
                    ]
                )
    header = ["nu_0", "readings", "errors", "rmse", "held by 95 %", "accuracy, %"]
    print(format_columns(header, rows), flush=True)
    options.table("repeats", header, rows)


if __name__ == "__main__":
    run_script(experiment, __doc__)
