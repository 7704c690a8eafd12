"""The four displays, on cells whose features are measured with noise of known size.

Run as `python docs/figures/pictures.py [FILE.png]`.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    ObjectivePlot,
    ReliabilityDisplay,
    SupportPlot,
    UncertainCalibratedClassifier,
    UncertainDecisionBoundaryDisplay,
    UncertainKernelSVC,
    UncertainSVC,
)

SHOWN = 60  # examples in the first picture


def measured_cells(columns, noise, unequal, seed=0):
    """Return cells, standardised and measured with noise of known size, and their labels.

    The standard deviations have the median `noise`; their logarithms spread by `unequal` from row
    to row, and half as much from feature to feature.
    """
    data = load_breast_cancer(as_frame=True)
    truth = data.data.iloc[:, columns]
    truth = (truth - truth.mean()) / truth.std()
    rng = np.random.default_rng(seed)
    rows, each = rng.normal(size=(len(truth), 1)), rng.normal(size=truth.shape)
    std = noise * np.exp(unequal * (rows + 0.5 * each))
    X = Gaussians(truth + std * rng.normal(size=truth.shape), std=std)
    return X, data.target_names[data.target]


def main(output):
    """Draw the figure and write it."""
    plt.rcParams.update({
        "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False,
    })  # fmt: skip
    figure = plt.figure(figsize=(9.6, 7.2), layout="constrained")
    left, right = figure.add_gridspec(1, 2, width_ratios=[1.0, 1.0])
    ax = {}
    ax["border"], ax["support"] = left.subgridspec(2, 1).subplots()
    grid = right.subgridspec(4, 1, height_ratios=[1.0, 1.0, 1.5, 0.5])
    ax["value"] = figure.add_subplot(grid[0])
    ax["gap"] = figure.add_subplot(grid[1], sharex=ax["value"])
    ax["curve"] = figure.add_subplot(grid[2])
    ax["counts"] = figure.add_subplot(grid[3], sharex=ax["curve"])

    for name in ("value", "curve"):
        ax[name].tick_params(labelbottom=False)

    X, y = measured_cells([0, 7], 0.2, 0.6)
    clf = UncertainKernelSVC(C=3.0).fit(X, y)
    few = np.arange(SHOWN)
    UncertainDecisionBoundaryDisplay.from_estimator(clf, X[few], y=y[few], ax=ax["border"])
    ax["border"].set_title("a   UncertainDecisionBoundaryDisplay")
    SupportPlot.from_estimator(UncertainSVC().fit(X, y), X, y, ax=ax["support"])
    ax["support"].set_title("b   SupportPlot")

    axes = ax["value"], ax["gap"]
    wide, y = measured_cells(range(10), 1.0, 1.0)
    for name, solver in (("L-BFGS", "lbfgs"), ("interior points", "interior_point")):
        ObjectivePlot.from_estimator(UncertainSVC(solver=solver), wide, y, name=name, ax=axes)
    ax["value"].set_title("c   ObjectivePlot")

    parts = train_test_split(np.arange(len(y)), stratify=y, random_state=0)
    prior = EmpiricalBayes().fit(wide[parts[0]])
    train, test = (prior.transform(wide[rows]) for rows in parts)
    sure = UncertainCalibratedClassifier(UncertainSVC()).fit(train, y[parts[0]])
    certain = Gaussians(pd.DataFrame(test.mean, columns=test.feature_names))
    axes = ax["curve"], ax["counts"]
    for name, examples in (("with errors", test), ("means alone", certain)):
        ReliabilityDisplay.from_estimator(sure, examples, y[parts[1]], n_bins=6, name=name, ax=axes)
    ax["curve"].set_title("d   ReliabilityDisplay")
    figure.savefig(output, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures.png")
