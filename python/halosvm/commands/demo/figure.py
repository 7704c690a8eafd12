"""The figure of the demo: accuracy against noise, posteriors, and accuracy of the surest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.files.atomic import write_figure
from halosvm.population import EmpiricalBayes

from . import measurements, probabilities
from .fits import METHODS
from .statistics import standard_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fits import Setup, Situation
    from .probabilities import Judged

# Colours that can be told apart by everyone (Okabe and Ito), markers for prints without colour.
STYLES = {
    "ignored": {"color": "#555555", "marker": "s", "ls": "--"},
    "distribution": {"color": "#D55E00", "marker": "v", "ls": "-"},
    "means": {"color": "#56B4E9", "marker": "D", "ls": ":"},
    "kernel": {"color": "#009E73", "marker": "^", "ls": "-"},
    "chosen": {"color": "#0072B2", "marker": "o", "ls": "-"},
}
OF_WAYS = {"with": STYLES["chosen"], "without": STYLES["ignored"]}
CLASSES = {"benign": "#0072B2", "malignant": "#D55E00"}
PLANE = (0, 7)  # mean radius, mean concave points
PLANE_SIZE = 1.0
SHORTEST = 0.25  # arrow
SHOWN = 5  # measurements of each class


def draw(
    situations: Sequence[Situation], judged: dict[str, Judged], setup: Setup, output: str
) -> None:
    """Draw the figure and write it as PNG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "legend.fontsize": 8.5,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(13.4, 4.3), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.1, 0.8])
        _draw_accuracies(left, [one for one in situations if one.story == measurements.STORY])
        _draw_plane(middle, setup)
        _draw_surest(right, judged)
        write_figure(output, figure, dpi=160)


def _draw_accuracies(axes: Any, situations: Sequence[Situation]) -> None:
    """Mean accuracies with bands of one standard error, and that of the true values."""
    noise = np.array([situation.noise for situation in situations])
    ideal = 100 * situations[0].ideal.mean()
    axes.axhline(ideal, color="0.6", lw=0.9, zorder=1)
    axes.annotate(
        "true values known", (noise[-1], ideal), (0, 3), textcoords="offset points",
        ha="right", va="bottom", color="0.45", fontsize=8.5,
    )  # fmt: skip
    for key, title in METHODS.items():
        mean = 100 * np.array([one.outcomes[key].accuracy.mean() for one in situations])
        error = 100 * np.array([one.error(key) for one in situations])
        style = STYLES[key]
        axes.fill_between(noise, mean - error, mean + error, color=style["color"], alpha=0.13, lw=0)
        axes.plot(noise, mean, ms=5, lw=1.6, mec="white", mew=0.6, label=title, **style)
    axes.set_xscale("log")
    axes.set_xticks(noise, [f"{size:g}" for size in noise])
    axes.minorticks_off()
    axes.set_xlabel("size of the noise, in units of a feature's spread")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title("a   Accuracy against noise (bands: one standard error)")
    axes.legend(loc="lower left")


def _draw_plane(axes: Any, setup: Setup) -> None:
    """Two features: measurements with error bars, and arrows to the means of their posteriors."""
    from matplotlib.patches import Ellipse

    truth = measurements.true_values()
    pair = list(PLANE)
    train, test = next(measurements.splits(setup, truth.labels))
    X = measurements.measure(truth.values, PLANE_SIZE, np.random.default_rng((setup.seed, 0)))
    population = EmpiricalBayes(n_threads=1).fit(X[train])
    axes.plot(*truth.values[:, pair].T, ".", ms=3, color="0.8", mew=0, zorder=0)
    axes.plot([], [], ".", ms=6, color="0.7", label="true values of all cells")
    centre = population.means_[0, pair]
    variances, vectors = np.linalg.eigh(population.covariances_[0][np.ix_(pair, pair)])
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    for deviations in (1, 2):
        size = 2 * deviations * np.sqrt(variances)
        ellipse = Ellipse(
            (centre[0], centre[1]), size[1], size[0], angle=angle, fill=False, ec="0.45", lw=0.9
        )
        axes.add_patch(ellipse)
    axes.plot([], [], color="0.45", lw=0.9, label="estimated population, 1 and 2 sd")
    rng = np.random.default_rng(setup.seed)
    for label, colour in CLASSES.items():
        rows = rng.choice(test[truth.labels[test] == label], SHOWN, replace=False)
        measured = X[rows].mean[:, pair]
        std = np.sqrt(X[rows].covariances.variances()[:, pair])
        moved = population.transform(X[rows]).mean[:, pair]
        axes.errorbar(
            *measured.T, std[:, 1], std[:, 0], fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.5
        )
        axes.plot(*measured.T, "o", ms=5, mfc="white", mec=colour, mew=1.1)
        for start, end in zip(measured, moved, strict=True):
            if np.hypot(*(end - start)) < SHORTEST:
                continue
            arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.2, "shrinkA": 3, "shrinkB": 2}
            axes.annotate("", end, start, arrowprops=arrow)
        axes.plot(*moved.T, "o", ms=5, color=colour, mec="white", mew=0.5, zorder=4)
        axes.plot([], [], "s", ms=6, color=colour, mew=0, label=label)
    bars = axes.errorbar([], [], [], [], fmt="o", ms=5, mfc="white", color="0.3", elinewidth=0.8)
    bars.set_label("measurement, 1 sd")
    axes.plot([], [], "o", ms=5, color="0.3", label="mean of its posterior")
    axes.set_xlim(-2.6, 4.2)
    axes.set_ylim(-3.9, 4.0)
    axes.set_xlabel(f"{truth.names[pair[0]]} (standardised)")
    axes.set_ylabel(f"{truth.names[pair[1]]} (standardised)")
    axes.set_title(f"b   Measurements (noise {PLANE_SIZE:g}) and where posteriors move them")
    axes.legend(loc="lower right", handlelength=1.6)


def _draw_surest(axes: Any, judged: dict[str, Judged]) -> None:
    """Mean accuracy of those test rows of which the classifier is surest."""
    shares = 100 * probabilities.SHARES
    overlap = measurements.TEST / (1.0 - measurements.TEST)
    for way, title in probabilities.WAYS.items():
        accuracy, style = 100 * judged[way].accuracy, OF_WAYS[way]
        mean = accuracy.mean(axis=0)
        error = np.array([standard_error(column, overlap) for column in accuracy.T])
        axes.fill_between(
            shares, mean - error, mean + error, color=style["color"], alpha=0.13, lw=0
        )
        axes.plot(shares, mean, ms=4, lw=1.6, mec="white", mew=0.5, label=title, **style)
    axes.set_xlabel("share of the test rows, the surest first (%)")
    axes.set_ylabel("their accuracy (%)")
    axes.set_title("c   Probabilities that know the errors")
    axes.legend(loc="lower left")
