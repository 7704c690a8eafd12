"""In place of SVM-GSU, section 4.4 (physiological signals): EEG of one person at rest or in a task.

Log band powers by Welch's method with their variances between windows, as in the paper, whose data
(DEAP) are not free. 80 clips of 4 channels and 0.9 seconds: 6 overlapping windows in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from common import (
    LEGEND,
    Options,
    Run,
    Search,
    baselines,
    compare,
    draw_scores,
    format_scores,
    run_script,
    standardise,
)
from loaders import eeg
from sklearn.model_selection import StratifiedShuffleSplit

from halosvm.uncertainty import welch

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLING_RATE = 112.5  # hertz
BANDS = {
    "theta": (4.0, 8.0),
    "slow alpha": (8.0, 10.0),
    "alpha": (8.0, 12.0),
    "beta": (12.0, 30.0),
    "gamma": (30.0, np.inf),
}
TEST = 0.8  # with more clips for training all methods reach 99 %
PAPER = {"lsvm": "62.6", "sphere": "62.5", "iso": "64.5", "gsu": "65.9"}


def runs(n_runs: int, seed: int) -> Iterator[Run]:
    """Split the clips, and standardise their band powers by the training part."""
    clips = eeg()
    signals = np.array([frames.T for frames in clips.frames])
    X = welch(signals, SAMPLING_RATE, BANDS, of="observations", nperseg=50, noverlap=40)
    task = clips.labels == "task"
    splits = StratifiedShuffleSplit(n_runs, test_size=TEST, random_state=seed)
    for train, test in splits.split(X.mean, task):
        known, points = standardise(X[train], X.mean[test])
        yield Run(known, task[train], points, task[test])


def experiment(options: Options) -> None:
    """Print accuracy and F1, and draw the accuracies."""
    n_runs = 10 if options.quick else 100
    grid = (0.01, 0.1, 1.0) if options.quick else tuple(np.logspace(-3, 1, 9))
    search = Search(grid, scoring=("accuracy", "f1"))
    methods = baselines()
    for key, accuracy in PAPER.items():
        methods[key] = methods[key]._replace(paper=accuracy)
    results = compare(methods, runs(n_runs, options.seed), search)
    print(
        f"EEG, task against rest, {n_runs} splits; paper: Table 3, arousal, other data\n{LEGEND}\n"
    )
    print(format_scores(methods, results, search, overlap=TEST / (1 - TEST)), "\n")
    figure, save = options.figure("eeg_table3", (8, 5))
    axes = figure.subplots()
    draw_scores(axes, methods, results, "test accuracy")
    axes.set_title(f"EEG, task against rest, {n_runs} splits")
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
