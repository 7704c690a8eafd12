"""``halosvm demo``: what a classifier gains from the errors of its measurements.

In go the Wisconsin Diagnostic Breast Cancer data that scikit-learn ships: 569 images of cells, and
for each of ten measurements of the cell nuclei the mean over the cells of an image, the standard
error of that mean, and the largest values. Out come a table of test accuracies with the errors,
with an isotropic version of them, and without them, next to the table of the paper, and a picture.

References
----------
C. Tzelepis, V. Mezaris, I. Patras: Linear Maximum Margin Classifier for Learning from Uncertain
Data. IEEE TPAMI 40(12), 2018. Section 4.3 and Table 2.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit

from .centring import equal_but_for_rounding
from .covariances import Covariances
from .gaussians import Gaussians
from .svc import UncertainSVC

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

N_UNCERTAIN = 10
LARGEST_VARIANCE = 0.8

HOW_VARIANCES_ARISE = (
    "A standard error is sd/sqrt(N) with N unknown, so the variances of a measurement are its\n"
    "squared standard errors times one factor, which makes the largest variance in the training\n"
    "part 80 % of the range of the measurement there, both in standardised units; the other 20\n"
    "features (the standard errors themselves and the largest values) are taken as certain."
)


class Method(NamedTuple):
    """One way to treat the errors: its name in the table, its loss, and the paper's accuracy."""

    title: str
    loss: str
    paper_name: str
    paper_accuracy: float


METHODS = {
    "errors": Method("with errors (diagonal)", "expected_hinge", "LSVM-GSU", 0.9714),
    "isotropic": Method("isotropic errors", "expected_hinge", "LSVM-iso", 0.9653),
    "none": Method("without errors", "hinge", "LSVM", 0.9515),
}


@dataclass(frozen=True)
class Setup:
    """How large the experiment is.

    Attributes
    ----------
    splits : int
        Number of random stratified 90/10 splits.
    seed : int
        Seed of the splits, the folds and the solver.
    folds : int
        Folds of the cross-validation that chooses C inside each training part.
    grid : tuple of float
        The values of C to choose from.
    """

    splits: int = 10
    seed: int = 0
    folds: int = 5
    grid: tuple[float, ...] = tuple(float(value) for value in np.logspace(-3, 1, 9))

    @classmethod
    def quick(cls, splits: int = 3, seed: int = 0) -> Setup:
        """Return a setup that shows the same in a few seconds, with coarser numbers."""
        return cls(splits, seed, folds=3, grid=(0.01, 0.1, 1.0))


@dataclass(frozen=True)
class Outcome:
    """The result of one method: arrays with one entry per split."""

    accuracy: Floats
    seconds: Floats
    chosen_c: Floats
    suboptimality: Floats

    @property
    def standard_error(self) -> float:
        """Standard error of the mean accuracy over the splits; 0 for a single split."""
        n = len(self.accuracy)
        return float(self.accuracy.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


class Cells(NamedTuple):
    """The data: features (569, 30), standard errors of the first ten (569, 10), labels, names."""

    features: Floats
    standard_errors: Floats
    labels: npt.NDArray[np.str_]
    names: list[str]


def load_cells() -> Cells:
    """Load the data of scikit-learn; labels are "benign" and "malignant" (positive)."""
    data = load_breast_cancer()
    errors = data.data[:, N_UNCERTAIN : 2 * N_UNCERTAIN]
    return Cells(data.data, errors, data.target_names[data.target], list(data.feature_names))


def scale(
    features: Floats, standard_errors: Floats, train: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Standardise the features and turn standard errors into variances, by the training rows.

    The paper gives feature j the variances sigma_j^2 whose "maximum variance is set to 80 % of the
    range of the corresponding mean value". A variance and a range have different units, so the
    sentence has a meaning only for numbers without units. (Taken as it stands for the raw columns
    it would give the standard deviation of the smoothness, about 0.1, an error of up to 0.3.) Here
    both are measured after standardisation, in units of the feature's standard deviation over the
    training rows. Each feature has its own factor, as the word "corresponding" says. One factor
    for all ten, which a common N would mean, could be at most 0.18 for the rule to hold in every
    feature: an N below one.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    standard_errors : ndarray of shape (n_samples, n_uncertain)
        Standard errors of the first `n_uncertain` features, in their units.
    train : ndarray of int
        The rows that fix the location, the scale and the factors.

    Returns
    -------
    means : ndarray of shape (n_samples, n_features)
        Standardised features.
    variances : ndarray of shape (n_samples, n_features)
        Variances in the same units; 0 for features without standard error.
    """
    centre, spread = features[train].mean(axis=0), features[train].std(axis=0)
    means = (features - centre) / spread
    n_uncertain = standard_errors.shape[1]
    squares = (standard_errors / spread[:n_uncertain]) ** 2
    ranges = np.ptp(means[train, :n_uncertain], axis=0)
    factors = LARGEST_VARIANCE * ranges / squares[train].max(axis=0)
    variances = np.zeros_like(means)
    variances[:, :n_uncertain] = factors * squares
    return means, variances


def with_treatment(key: str, means: Floats, variances: Floats) -> Gaussians:
    """Return the examples as a method of `METHODS` sees them."""
    if key == "none":
        return Gaussians(means)
    if key == "isotropic":
        # t_i = tr(S_i)/d: the isotropic Gaussian of the same total variance.
        variance = variances.mean(axis=1)
        return Gaussians(means, cov=Covariances.isotropic(variance, means.shape[1]))
    return Gaussians(means, cov=Covariances.diagonal(variances))


def choose_and_fit(
    key: str, X: Gaussians, y: npt.NDArray[np.str_], setup: Setup, seed: int
) -> GridSearchCV:
    """Choose C by cross-validation on the given rows, then fit on all of them."""
    search = GridSearchCV(
        UncertainSVC(loss=METHODS[key].loss, random_state=seed),
        {"C": list(setup.grid)},
        cv=StratifiedKFold(setup.folds, shuffle=True, random_state=seed),
    )
    with warnings.catch_warnings():
        # The table reports how far from the optimum the fits may be at most.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(X, y)


def run(setup: Setup, progress: IO[str] | None = None) -> dict[str, Outcome]:
    """Train and test every method on every split.

    Parameters
    ----------
    setup : Setup
    progress : text stream, optional
        Where to show how far the work is.

    Returns
    -------
    dict of str to Outcome
        Keys as in `METHODS`.
    """
    cells = load_cells()
    splitter = StratifiedShuffleSplit(setup.splits, test_size=0.1, random_state=setup.seed)
    splits = list(splitter.split(cells.features, cells.labels))
    rows: dict[str, list[tuple[float, float, float, float]]] = {key: [] for key in METHODS}
    for number, key in _counted(len(splits), progress):
        train, test = splits[number]
        means, variances = scale(cells.features, cells.standard_errors, train)
        X = with_treatment(key, means, variances)
        search = choose_and_fit(key, X[train], cells.labels[train], setup, setup.seed + number)
        accuracy = search.score(X[test], cells.labels[test])
        gap = float(np.max(search.best_estimator_.suboptimality_))
        rows[key].append((accuracy, search.refit_time_, search.best_params_["C"], gap))
    return {key: Outcome(*np.array(values).T) for key, values in rows.items()}


def _counted(n_splits: int, stream: IO[str] | None) -> Iterator[tuple[int, str]]:
    """Go through all splits and methods, and show it: on a terminal in one line."""
    total, done = n_splits * len(METHODS), 0
    terminal = stream is not None and stream.isatty()
    for number in range(n_splits):
        for key, method in METHODS.items():
            text = f"split {number + 1} of {n_splits}: {method.title}"
            if terminal and stream is not None:
                bar = "#" * (30 * done // total)
                stream.write(f"\r[{bar:<30}] {text:<45}")
                stream.flush()
            elif stream is not None and done % len(METHODS) == 0:
                print(f"split {number + 1} of {n_splits}", file=stream, flush=True)
            yield number, key
            done += 1
    if terminal and stream is not None:
        stream.write(f"\r{'':<78}\r")
        stream.flush()


def format_table(outcomes: dict[str, Outcome]) -> str:
    """Show the results as a table beside the paper's numbers, and paired differences below it."""
    header = f"{'method':<24}{'test accuracy':>20}{'paper, Table 2':>21}"
    header += f"{'fit time':>11}{'C':>8}{'gap at most':>13}"
    lines = [header, "-" * len(header)]
    for key, outcome in outcomes.items():
        method = METHODS[key]
        accuracy = f"{100 * outcome.accuracy.mean():.2f} +- {100 * outcome.standard_error:.2f} %"
        paper = f"{method.paper_name} {100 * method.paper_accuracy:.2f} %"
        lines.append(
            f"{method.title:<24}{accuracy:>20}{paper:>21}"
            f"{1000 * outcome.seconds.mean():>8.1f} ms{np.median(outcome.chosen_c):>8.2g}"
            f"{np.median(outcome.suboptimality):>13.1e}"
        )
    lines.append(
        "+- is the standard error over the splits; C and gap are medians; gap bounds how far\n"
        "the objective J of a fit may be from the best, (J - J*)/J*. Paper: Tzelepis, Mezaris,\n"
        "Patras, IEEE Transactions on Pattern Analysis and Machine Intelligence 40(12), 2018."
    )
    lines.extend(_paired(outcomes, other) for other in ("isotropic", "none"))
    return "\n".join(lines)


def _paired(outcomes: dict[str, Outcome], other: str) -> str:
    """One sentence on the difference between the fits with errors and another method."""
    difference = outcomes["errors"].accuracy - outcomes[other].accuracy
    text = f"with errors minus {METHODS[other].title}: {100 * difference.mean():+.2f} points"
    if len(difference) < 2 or equal_but_for_rounding(np.ptp(difference), 1.0):
        return f"{text}, the same in every split"
    p = stats.ttest_rel(outcomes["errors"].accuracy, outcomes[other].accuracy).pvalue
    return f"{text}, paired t-test p = {p:.2g} (the splits share rows: p is too small)"


def main(setup: Setup, output: str) -> None:
    """Run the demo: print what it does and finds, and draw the picture.

    Parameters
    ----------
    setup : Setup
    output : str
        Name of the PNG file.
    """
    print(
        "Wisconsin Diagnostic Breast Cancer: 569 images of cells, 30 features, benign or malignant."
        f"\n{HOW_VARIANCES_ARISE}\n{setup.splits} stratified 90/10 splits; C by {setup.folds}-fold "
        f"cross-validation inside the training part, {len(setup.grid)} values.\n",
        flush=True,
    )
    outcomes = run(setup, sys.stderr)
    print(format_table(outcomes))
    try:
        draw(outcomes, setup, output)
        print(f"\nThe picture is in {output}")
    except ImportError:
        print("\nFor a picture of this, install matplotlib: python -m pip install matplotlib")
    print("Your own table next: halosvm train your_table.csv --label COLUMN")


def draw(outcomes: dict[str, Outcome], setup: Setup, output: str) -> None:
    """Draw the accuracies of the splits, and two decision lines among the errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    _draw_accuracies(left, outcomes, setup)
    _draw_decision_lines(right, setup)
    figure.savefig(output, dpi=130)


def _draw_accuracies(axes: Any, outcomes: dict[str, Outcome], setup: Setup) -> None:
    """One thin line per split, the mean and its standard error, and the paper's number."""
    places = np.arange(len(METHODS))
    values = 100 * np.array([outcome.accuracy for outcome in outcomes.values()])
    # Splits of equal accuracy would hide each other: each stands a little to the side.
    aside = np.linspace(-0.14, 0.14, values.shape[1]) if values.shape[1] > 1 else np.zeros(1)
    thin = {"marker": "o", "ms": 4, "lw": 0.8, "color": "0.65"}
    axes.plot(places[:, None] + aside, values, **thin)
    axes.plot([], [], **thin, label="one split")
    bars = [100 * outcome.standard_error for outcome in outcomes.values()]
    thick = {"fmt": "s", "color": "black", "capsize": 6, "ms": 8, "lw": 2, "zorder": 4}
    axes.errorbar(places, values.mean(axis=1), bars, **thick, label="mean, standard error")
    paper = [100 * method.paper_accuracy for method in METHODS.values()]
    axes.plot(places + 0.28, paper, "D", mfc="white", mec="tab:red", ms=7, label="paper, Table 2")
    axes.set_xticks(places, [method.title.replace(" (", "\n(") for method in METHODS.values()])
    axes.set_xlim(-0.5, len(METHODS) - 0.5)
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(f"Test accuracy on {setup.splits} random splits")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
    axes.grid(axis="y", alpha=0.3)


def _draw_decision_lines(axes: Any, setup: Setup, columns: tuple[int, int] = (0, 7)) -> None:
    """Two features of all images, the error ellipses of some, and the lines of two fits."""
    from matplotlib.collections import EllipseCollection

    cells = load_cells()
    pair = list(columns)
    features = cells.features[:, pair]
    centre, spread = features.mean(axis=0), features.std(axis=0)
    means, variances = scale(features, cells.standard_errors[:, pair], np.arange(len(features)))
    diameters = 2 * np.sqrt(variances) * spread
    rng = np.random.default_rng(setup.seed)
    for label, colour, marker in (("benign", "tab:blue", "o"), ("malignant", "tab:orange", "^")):
        rows = np.flatnonzero(cells.labels == label)
        some = rng.choice(rows, 15, replace=False)
        axes.plot(*features[rows].T, marker, color=colour, ms=3, alpha=0.4, label=label)
        axes.plot(*features[some].T, marker, color=colour, mec="black", mew=0.7, ms=5)
        ellipses = EllipseCollection(
            diameters[some, 0],
            diameters[some, 1],
            np.zeros(len(some)),
            units="xy",
            offsets=features[some],
            offset_transform=axes.transData,
            facecolor=(colour, 0.10),
            edgecolor=(colour, 0.9),
        )
        axes.add_collection(ellipses)
    for key, style in (("errors", "-"), ("none", "--")):
        X = with_treatment(key, means, variances)
        best = choose_and_fit(key, X, cells.labels, setup, setup.seed).best_estimator_
        # The line where w'(x - centre)/spread + b = 0, by its crossings of two verticals.
        weights = best.coef_[0] / spread
        across = features[:, 0].min() - spread[0], features[:, 0].max() + spread[0]
        level = [
            centre[1] - (weights[0] * (x - centre[0]) + best.intercept_[0]) / weights[1]
            for x in across
        ]
        title = METHODS[key].title.split(" (")[0]
        axes.plot(across, level, color="black", ls=style, lw=1.8, label=f"fit {title}")
    for limits, values in ((axes.set_xlim, features[:, 0]), (axes.set_ylim, features[:, 1])):
        margin = 0.06 * np.ptp(values)
        limits(values.min() - margin, values.max() + margin)
    axes.set_xlabel(cells.names[pair[0]])
    axes.set_ylabel(cells.names[pair[1]])
    axes.set_title("Fits on two features (ellipses: one standard deviation)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False)
