"""SVM-GSU, section 4.3 and Table 2: breast cancer cells, with the standard errors of ten features.

The data and their standardisation are those of `halosvm demo`; here with all baselines.
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
)
from sklearn.model_selection import StratifiedShuffleSplit

from halosvm import Gaussians
from halosvm.commands import demo

if TYPE_CHECKING:
    from collections.abc import Iterator

PAPER = {"lsvm": "95.15", "sphere": "96.37", "iso": "96.53", "gsu": "97.14"}


def runs(n_runs: int, seed: int) -> Iterator[Run]:
    """Split the images, 90 % for training, and scale them by the training part."""
    cells = demo.load_cells()
    splits = StratifiedShuffleSplit(n_runs, test_size=0.1, random_state=seed)
    for train, test in splits.split(cells.features, cells.labels):
        means, variances = demo.scale(cells.features, cells.standard_errors, train)
        X = Gaussians(means[train], variance=variances[train])
        yield Run(X, cells.labels[train], means[test], cells.labels[test])


def experiment(options: Options) -> None:
    """Print Table 2 and draw the accuracies."""
    n_runs = 10 if options.quick else 50
    grid = (0.01, 0.1, 1.0) if options.quick else tuple(np.logspace(-3, 1, 9))
    search = Search(grid, folds=3 if options.quick else 10)
    methods = baselines()
    for key, accuracy in PAPER.items():
        methods[key] = methods[key]._replace(paper=accuracy)
    results = compare(methods, runs(n_runs, options.seed), search)
    print(f"Table 2: breast cancer cells, {n_runs} splits\n{demo.HOW_VARIANCES_ARISE}\n{LEGEND}\n")
    print(format_scores(methods, results, search, overlap=1 / 9), "\n")
    figure, save = options.figure("wdbc_table2", (8, 5))
    axes = figure.subplots()
    draw_scores(axes, methods, results, "test accuracy")
    axes.set_title(f"Breast cancer cells, {n_runs} splits")
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
