"""In place of SVM-GSU, section 4.6 (events in videos): clips by mean and covariance of frames.

Japanese vowels (9 speakers) and Libras (15 hand movements), each class against the rest, by average
precision; the paper's video data are not to be had. Both configurations of Table 6: in the first
the features are the means of the frames with the diagonal of their covariance, in the second also
their standard deviations, which are certain. Added: full covariances, and the covariance of a mean
of all frames, smaller by their number, in place of that of one frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import (
    LEGEND,
    Method,
    Options,
    Run,
    SamplingSVC,
    Search,
    as_given,
    compare,
    draw_scores,
    format_scores,
    isotropic,
    mcnemar_p,
    means_only,
    run_script,
    standardise,
)
from loaders import Clips, hand_movements, speakers
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import label_binarize

from halosvm import Covariances, Gaussians, UncertainSVC
from halosvm.uncertainty import from_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from common import Scores
    from numpy.typing import NDArray

CONFIGURATIONS = {
    "1": "means",
    "2": "means and standard deviations",
    "1 m": "means, with the covariance of the mean",
}
PAPER = {"1": {"lsvm": "14.78", "gsu": "18.06"}, "2": {}, "1 m": {}}  # mean average precision
TEST = 0.5


def diagonal(X: Gaussians) -> Gaussians:
    """Return the examples with the diagonals of their covariances."""
    return Gaussians(X.mean, cov=Covariances.diagonal(X.covariances.variances()))


def mean_average_precision(estimator: UncertainSVC, X: Any, y: NDArray[Any]) -> float:
    """Return the mean over classes of the average precision of each against the rest."""
    truth = label_binarize(y, classes=estimator.classes_)
    return float(average_precision_score(truth, estimator.decision_function(X), average="macro"))


def gaussians(clips: Clips, configuration: str) -> Gaussians:
    """Return the Gaussian of each clip in a configuration of Table 6."""
    of = "mean" if configuration == "1 m" else "observations"
    X = from_samples(clips.frames, of=of)
    if configuration != "2":
        return X
    variances = X.covariances.variances()
    mean = np.hstack([X.mean, np.sqrt(variances)])
    return Gaussians(mean, variance=np.hstack([variances, np.zeros_like(variances)]))


def runs(clips: Clips, configuration: str, n_runs: int, seed: int) -> Iterator[Run]:
    """Split the clips in halves, and standardise by the training half."""
    X = gaussians(clips, configuration)
    splits = StratifiedShuffleSplit(n_runs, test_size=TEST, random_state=seed)
    for train, test in splits.split(X.mean, clips.labels):
        known, points = standardise(X[train], X.mean[test])
        yield Run(known, clips.labels[train], points, clips.labels[test])


def methods(configuration: str) -> dict[str, Method]:
    """Return the contestants; full covariances only where they belong to all features."""
    named = {
        "lsvm": Method("LSVM", means_only, UncertainSVC(loss="hinge")),
        "iso": Method("LSVM-iso", isotropic, UncertainSVC()),
        "sampling": Method("LSVM-sampling, 5 draws", as_given, SamplingSVC(n_draws=5)),
        "gsu": Method("LSVM-GSU, diagonal", diagonal, UncertainSVC()),
    }
    if configuration != "2":
        named["full"] = Method("LSVM-GSU, full", as_given, UncertainSVC())
    for key, precision in PAPER[configuration].items():
        named[key] = named[key]._replace(paper=precision)
    return named


def mcnemar(results: dict[str, Scores]) -> str:
    """Count the runs in which McNemar's test tells LSVM-GSU from another method."""
    lines = []
    for ours in ("gsu", "full"):
        for other in ("lsvm", "iso") if ours in results else ():
            pairs = zip(results[ours].right, results[other].right, strict=True)
            found = [(mcnemar_p(a, b) < 0.05, a.mean() > b.mean()) for a, b in pairs]
            better = sum(clear and up for clear, up in found)
            worse = sum(clear and not up for clear, up in found)
            lines.append(
                f"McNemar, {ours} against {other}: p < 0.05 in {better + worse} of {len(found)} "
                f"runs ({better} better, {worse} worse)"
            )
    return "\n".join(lines)


def experiment(options: Options) -> None:
    """Print a table for each data set and configuration, and draw the scores."""
    n_runs = 3 if options.quick else 20
    grid = (0.1, 1.0, 10.0) if options.quick else tuple(np.logspace(-2, 2, 7))
    search = Search(grid, scoring=(mean_average_precision, "accuracy"))
    train, test = speakers()
    vowels = Clips(train.frames + test.frames, np.concatenate([train.labels, test.labels]))
    print(f"Clips, {n_runs} splits in halves; paper: Table 5, other data\n{LEGEND}\n")
    figure, save = options.figure("clips_table5", (18, 8))
    axes = iter(figure.subplots(2, 3).ravel())
    for name, clips in (("Japanese vowels", vowels), ("Libras", hand_movements())):
        for configuration, features in CONFIGURATIONS.items():
            named = methods(configuration)
            results = compare(named, runs(clips, configuration, n_runs, options.seed), search)
            title = f"{name}, configuration {configuration}: {features}"
            table = format_scores(named, results, search, overlap=TEST / (1 - TEST))
            print(f"{title}\n{table}\n{mcnemar(results)}\n", flush=True)
            panel = next(axes)
            draw_scores(panel, named, results, "mean average precision")
            panel.set_title(title, fontsize=9)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
