"""In place of SVM-GSU, section 4.5 (errors of some features): planets among Kepler's candidates.

Confirmed planets against false positives, from measured values with upper and lower errors; the
temperature, the signal-to-noise ratio and the magnitude have none. The paper's television data are
not to be had. Sizes that are positive enter by their logarithm. Objects without a value or an error
are left out, and all objects of one star are on the same side of a split.
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
from loaders import kepler
from sklearn.model_selection import GroupShuffleSplit

from halosvm.uncertainty import asymmetric_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from common import Array
    from numpy.typing import NDArray

    from halosvm import Gaussians

LOGARITHMIC = ("period", "duration", "depth", "prad", "insol", "srad", "steff")
PLAIN = ("impact", "slogg")
CERTAIN = ("teq", "model_snr")  # by their logarithm, and the magnitude
TEST = 0.3


def measured_values() -> tuple[Gaussians, NDArray[np.bool_], NDArray[np.str_]]:
    """Return features with errors, whether each object is a planet, and its star."""
    table = kepler()
    columns: list[tuple[Array, Array, Array]] = []
    for name in LOGARITHMIC + PLAIN:
        value, upper, lower = (table.numbers(f"koi_{name}{end}") for end in ("", "_err1", "_err2"))
        lower = -lower
        if name in LOGARITHMIC:
            upper = np.log1p(upper / value)
            lower = -np.log1p(-np.minimum(lower / value, 0.9))  # an error as large as the value
            value = np.log(value)
        columns.append((value, lower, upper))
    certain = [np.log(np.maximum(table.numbers(f"koi_{name}"), 0.1)) for name in CERTAIN]
    certain.append(table.numbers("koi_kepmag"))
    columns.extend((value, 0.0 * value, 0.0 * value) for value in certain)
    values, lowers, uppers = (np.column_stack(part) for part in zip(*columns, strict=True))
    complete = np.isfinite(values + lowers + uppers).all(axis=1)
    X = asymmetric_errors(values[complete], lowers[complete], uppers[complete], center="mean")
    planet = table.columns["koi_disposition"] == "CONFIRMED"
    return X, planet[complete], table.columns["kepid"][complete]


def runs(n_runs: int, seed: int, size: int | None) -> Iterator[Run]:
    """Split by stars, keep `size` objects for training, or all, and standardise."""
    X, planet, stars = measured_values()
    splits = GroupShuffleSplit(n_runs, test_size=TEST, random_state=seed)
    for train, test in splits.split(X.mean, groups=stars):
        chosen = np.random.default_rng(seed).permutation(train)[:size]
        known, points = standardise(X[chosen], X.mean[test])
        yield Run(known, planet[chosen], points, planet[test])


def experiment(options: Options) -> None:
    """Print a table for small and large training sets, and draw the scores."""
    n_runs, sizes = (10, (200, 1000)) if options.quick else (50, (200, 1000, None))
    grid = (0.01, 0.1, 1.0) if options.quick else tuple(np.logspace(-3, 1, 5))
    search = Search(grid, scoring=("balanced_accuracy", "f1"))
    methods = baselines()
    X, planet, _ = measured_values()
    print(
        f"Kepler: {planet.sum()} planets, {(~planet).sum()} false positives, {X.shape[1]} features"
    )
    print(f"of which {len(LOGARITHMIC + PLAIN)} with errors; {n_runs} splits by stars\n{LEGEND}\n")
    figure, save = options.figure("kepler", (6 * len(sizes), 4.8))
    for axes, size in zip(figure.subplots(1, len(sizes)), sizes, strict=True):
        results = compare(methods, runs(n_runs, options.seed, size), search)
        title = f"{size or 'all'} objects for training"
        overlap = TEST / (1 - TEST) if size is None else 0.0
        print(f"{title}\n{format_scores(methods, results, search, overlap=overlap)}\n", flush=True)
        draw_scores(axes, methods, results, "balanced accuracy")
        axes.set_title(title)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
