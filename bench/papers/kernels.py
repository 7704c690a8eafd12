"""PkSVM, expected kernels, against the RBF-SVC on the means, on four kinds of errors.

Y. Chen, T. T. Georgiou and A. Tannenbaum, "Probabilistic Kernel Support Vector Machines" (2019),
has no experiments; these are ours. Kepler objects have published errors, breast cancer cells have
standard errors, Japanese vowels are clips by mean and covariance of their frames, and the radar
returns (ionosphere) get noise of a known variance, another one for each value. All methods choose C
and gamma from the same grid on the same folds. Test examples have errors too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import clips
import kepler
import numpy as np
from common import (
    Method,
    Options,
    Run,
    Search,
    as_given,
    compare,
    draw_scores,
    format_columns,
    paired_p,
    percent,
    run_script,
    standardise,
    verdict,
)
from loaders import Clips, ionosphere, speakers
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from halosvm import Gaussians, UncertainKernelSVC
from halosvm.commands import demo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from common import Array, Scores
    from numpy.typing import NDArray

TEST = {"kepler": 0.3, "wdbc": 0.1, "vowels": 0.5, "ionosphere": 0.3}
NOISE = (0.1, 2.0)  # smallest and largest standard deviation, in that of the feature


class MeansSVC(UncertainKernelSVC):
    """The RBF-SVC: it ignores the errors of training and test examples."""

    def fit(self, X: Gaussians, y: NDArray[Any]) -> MeansSVC:
        """Fit on the means."""
        return super().fit(X.mean, y)

    def predict(self, X: Gaussians) -> NDArray[Any]:
        """Predict from the means."""
        return super().predict(X.mean)


class TrainingErrorsSVC(UncertainKernelSVC):
    """PkSVM that ignores the errors of test examples."""

    def predict(self, X: Gaussians) -> NDArray[Any]:
        """Predict from the means."""
        return super().predict(X.mean, X_std=0)


def methods(gammas: tuple[float, ...]) -> dict[str, Method]:
    """Return the contestants, all with the same values of gamma."""
    named = {
        "svc": ("RBF-SVC on the means", MeansSVC()),
        "training": ("PkSVM, test means", TrainingErrorsSVC()),
        "pk": ("PkSVM", UncertainKernelSVC()),
        "normalize": ("PkSVM, normalised", UncertainKernelSVC(normalize=True)),
        "unit": ("PkSVM, unit diagonal", UncertainKernelSVC(diagonal="unit")),
        "level2": ("PkSVM, level 2", UncertainKernelSVC(level2="gaussian")),
    }
    grid = {"gamma": gammas}
    return {
        key: Method(title, as_given, svc.set_params(n_threads=1), grid=grid)  # small matrices
        for key, (title, svc) in named.items()
    }


# -- data ----------------------------------------------------------------------------------------
def kepler_runs(n_runs: int, seed: int) -> Iterator[Run]:
    """Split the objects by stars, and keep 200 for training and 1,000 for the test."""
    X, planet, stars = kepler.measured_values()
    splits = GroupShuffleSplit(n_runs, test_size=TEST["kepler"], random_state=seed)
    for train, test in splits.split(X.mean, groups=stars):
        rng = np.random.default_rng(seed)
        train, test = rng.permutation(train)[:200], rng.permutation(test)[:1000]
        known, points = standardise(X[train], X[test])
        yield Run(known, planet[train], points, planet[test])


def wdbc_runs(n_runs: int, seed: int) -> Iterator[Run]:
    """Split the images of cells, and scale them as `wdbc.py` does."""
    cells = demo.load_cells()
    splits = StratifiedShuffleSplit(n_runs, test_size=TEST["wdbc"], random_state=seed)
    for train, test in splits.split(cells.features, cells.labels):
        means, variances = demo.scale(cells.features, cells.standard_errors, train)
        X = Gaussians(means, variance=variances)
        yield Run(X[train], cells.labels[train], X[test], cells.labels[test])


def vowel_runs(n_runs: int, seed: int, configuration: str) -> Iterator[Run]:
    """Split the utterances in halves, with diagonal covariances as in a configuration of clips."""
    train_part, test_part = speakers()
    labels = np.concatenate([train_part.labels, test_part.labels])
    both = Clips(train_part.frames + test_part.frames, labels)
    X = clips.diagonal(clips.gaussians(both, configuration))
    splits = StratifiedShuffleSplit(n_runs, test_size=TEST["vowels"], random_state=seed)
    for train, test in splits.split(X.mean, labels):
        known, points = standardise(X[train], X[test])
        yield Run(known, labels[train], points, labels[test])


def with_noise(clean: Array, rng: np.random.Generator) -> Gaussians:
    """Add normal noise to each value, of a standard deviation of its own that is known."""
    size = np.exp(rng.uniform(*np.log(NOISE), clean.shape)) * clean.std(axis=0)
    return Gaussians(clean + size * rng.normal(size=clean.shape), std=size)


def ionosphere_runs(n_runs: int, seed: int) -> Iterator[Run]:
    """Split the radar returns, with new noise in each run."""
    clean, labels = ionosphere()
    splits = StratifiedShuffleSplit(n_runs, test_size=TEST["ionosphere"], random_state=seed)
    for number, (train, test) in enumerate(splits.split(clean, labels)):
        X = with_noise(clean, np.random.default_rng((seed, number)))
        known, points = standardise(X[train], X[test])
        yield Run(known, labels[train], points, labels[test])


class Task(NamedTuple):
    """A data set: its title, its runs, and its test rows over training rows (see `paired_p`)."""

    title: str
    runs: Iterator[Run]
    overlap: float


def tasks(n_runs: int, seed: int) -> list[Task]:
    """Return what the methods are compared on."""
    overlap = {name: share / (1.0 - share) for name, share in TEST.items()}
    frame, mean = vowel_runs(n_runs, seed, "1"), vowel_runs(n_runs, seed, "1 m")
    return [
        Task("Kepler, 200 objects for training", kepler_runs(n_runs, seed), 0.0),
        Task("Breast cancer cells", wdbc_runs(n_runs, seed), overlap["wdbc"]),
        Task("Japanese vowels, covariance of a frame", frame, overlap["vowels"]),
        Task("Japanese vowels, covariance of the mean", mean, overlap["vowels"]),
        Task("Ionosphere with noise", ionosphere_runs(n_runs, seed), overlap["ionosphere"]),
    ]


# -- the experiment ------------------------------------------------------------------------------
def format_accuracies(
    named: Mapping[str, Method], results: Mapping[str, Scores], overlap: float
) -> str:
    """Return a table of scores, differences to the RBF-SVC, and what was chosen."""
    rows, reference = [], results["svc"].score()
    for key, scores in results.items():
        gain = float((scores.score() - reference).mean())
        p = paired_p(scores.score(), reference, overlap)
        others = [""] * 3 if key == "svc" else [f"{100 * gain:+.2f}", f"{p:.2g}", verdict(gain, p)]
        chosen = [
            np.median([found[name] for found in scores.parameters]) for name in ("C", "gamma")
        ]
        cells = [percent(scores.score()), percent(scores.score(1)), *others]
        milliseconds = 1000 * np.median(scores.seconds)
        rows.append(
            [named[key].title, *cells, *(f"{c:.2g}" for c in chosen), f"{milliseconds:.1f}"]
        )
    header = ["method", "accuracy (%)", "balanced (%)", "minus SVC", "p", "", "C", "gamma", "ms"]
    return format_columns(header, rows)


LEGEND = (
    "+- is the standard error over runs; minus SVC: of the accuracy, with the p of the paired\n"
    "t-test; C, gamma and the time of a fit are medians."
)


def experiment(options: Options) -> None:
    """Print a table for each data set, and draw the accuracies."""
    n_runs = 10 if options.quick else 50
    grid = (1.0, 10.0, 100.0) if options.quick else tuple(np.logspace(-1, 3, 5))
    gammas = (
        (0.03, 0.1, 0.3, 1.0, 3.0) if options.quick else tuple(np.logspace(-2, 1, 7))
    )  # times 1 / d
    search = Search(grid, folds=3, scoring=("accuracy", "balanced_accuracy"))
    print(f"Kernel machines, {n_runs} splits\n{LEGEND}\n")
    compared = tasks(n_runs, options.seed)
    figure, save = options.figure("kernels", (6 * len(compared), 4.8))
    for axes, task in zip(figure.subplots(1, len(compared)), compared, strict=True):
        runs = list(task.runs)
        named = methods(tuple(np.divide(gammas, runs[0].X.shape[1])))
        with threadpool_limits(1):  # threads of BLAS only delay such small products
            results = compare(named, runs, search)
        table = format_accuracies(named, results, task.overlap)
        print(f"{task.title}\n{table}\n", flush=True)
        draw_scores(axes, named, results, "accuracy")
        axes.tick_params(axis="x", rotation=30)
        axes.set_title(task.title)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
