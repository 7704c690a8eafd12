"""Draw the README's picture: a plain SVM and an uncertain SVM on nine Gaussians.

Run as `python docs/figures/decision_lines.py [FILE.png]`.
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from halosvm import Covariances, Gaussians, UncertainSVC

MEANS = np.array(
    [
        [-1.0, 0.1],
        [-1.1, -1.9],
        [-2.7, 1.5],
        [-3.2, -0.6],
        [1.0, -0.1],
        [1.1, 1.9],
        [2.6, -1.3],
        [3.3, 0.7],
        [2.4, 2.6],
    ]
)
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
# Standard deviations along the axes of each ellipse, and the angle of its first axis in degrees.
WIDTHS = [
    (1.3, 0.15),
    (0.3, 0.2),
    (0.4, 0.2),
    (0.5, 0.3),
    (1.3, 0.15),
    (0.2, 0.3),
    (0.5, 0.2),
    (0.3, 0.5),
    (0.4, 0.25),
]
ANGLES = [-48, 0, -30, 20, -48, 0, -40, 10, 30]
COLOURS = ["#2a6f97", "#bc4b51"]


def covariances() -> np.ndarray:
    """Return the nine 2 x 2 matrices."""
    matrices = []
    for (a, b), angle in zip(WIDTHS, np.deg2rad(ANGLES), strict=True):
        axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrices.append(axes @ np.diag([a**2, b**2]) @ axes.T)
    return np.array(matrices)


def main(path: str) -> None:
    """Fit both classifiers and write the picture."""
    X = Gaussians(MEANS, cov=Covariances.full(covariances()))
    uncertain = UncertainSVC(C=10.0).fit(X, LABELS)
    plain = UncertainSVC(C=10.0, loss="hinge").fit(MEANS, LABELS)

    figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for mean, (a, b), angle, label in zip(MEANS, WIDTHS, ANGLES, LABELS, strict=True):
        for deviations, alpha in ((1.0, 0.30), (2.0, 0.15)):
            axes.add_patch(
                Ellipse(
                    mean,
                    2 * deviations * a,
                    2 * deviations * b,
                    angle=angle,
                    color=COLOURS[label],
                    alpha=alpha,
                    lw=0,
                )
            )
    for label, marker in ((0, "o"), (1, "s")):
        axes.plot(*MEANS[label == LABELS].T, marker, color=COLOURS[label], ms=5)
    for clf, style, name in (
        (plain, "--", "SVM on the means"),
        (uncertain, "-", "halosvm, with the covariances"),
    ):
        (w,), (b,) = clf.coef_, clf.intercept_
        y = np.array([-4.5, 4.5])
        axes.plot(-(w[1] * y + b) / w[0], y, style, color="black", label=name)
    axes.set(xlim=(-5, 5), ylim=(-3.4, 3.6), xlabel="feature 1", ylabel="feature 2", aspect="equal")
    axes.legend(loc="lower left", frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/decision_lines.png")
