"""What the experiments share: the methods compared, the choice of C, paired results and tables.

In:  training Gaussians and test points, once for each run of an experiment.
Out: for each method its scores on every run, and a table of them beside the paper's numbers.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from halosvm import (
    Covariances,
    Gaussians,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
)
from halosvm.commands.demo.statistics import paired_p, standard_error, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


# -- what a method sees of the errors ------------------------------------------------------------
def as_given(X: Gaussians) -> Gaussians:
    """Return the examples with all their errors."""
    return X


def means_only(X: Gaussians) -> Gaussians:
    """Return the examples as if they were certain."""
    return Gaussians(X.mean)


def isotropic(X: Gaussians) -> Gaussians:
    """Return isotropic Gaussians of the same total variance: t_i = tr(S_i) / d."""
    variance = X.covariances.variances().mean(axis=1)
    return Gaussians(X.mean, cov=Covariances.isotropic(variance, X.shape[1]))


def draw(X: Gaussians, n_draws: int, rng: np.random.Generator) -> Array:
    """Draw from each Gaussian; return (n_draws * n_samples, d), a whole round after the other."""
    n, d = X.shape
    covariances = X.covariances
    factors, apart = covariances.values, covariances.diagonal_values
    if covariances.kind == "low_rank" and factors.ndim == 3 and apart is None:
        noise = np.einsum("ndr,knr->knd", factors, rng.normal(size=(n_draws, n, factors.shape[2])))
    elif covariances.kind in ("low_rank", "full"):
        values, vectors = np.linalg.eigh(covariances.to_full())
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis]
        noise = np.einsum("ndr,knr->knd", roots, rng.normal(size=(n_draws, n, d)))
    else:
        noise = np.sqrt(covariances.variances()) * rng.normal(size=(n_draws, n, d))
    return np.asarray((X.mean + noise).reshape(-1, d))


def standardise(X: Gaussians, test: Gaussians | Array) -> tuple[Gaussians, Any]:
    """Standardise training examples, and test examples or points with the scales of the former."""
    scaler = UncertainStandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(test)


# -- baselines -----------------------------------------------------------------------------------
class SamplingSVC(UncertainSVC):
    """LSVM-sampling: the plain SVM on draws from each Gaussian, which share its weight C."""

    def __init__(self, C: float = 1.0, *, n_draws: int = 10, seed: int = 0) -> None:
        super().__init__(C, loss="hinge")
        self.n_draws = n_draws
        self.seed = seed

    def fit(self, X: Gaussians, y: NDArray[Any]) -> SamplingSVC:
        """Draw and fit."""
        points = draw(X, self.n_draws, np.random.default_rng(self.seed))
        weights = np.full(len(points), 1.0 / self.n_draws)
        return super().fit(points, np.tile(y, self.n_draws), sample_weight=weights)


class Method(NamedTuple):
    """One contestant: its name, what it sees of the errors, its estimator, the paper's number."""

    title: str
    view: Callable[[Gaussians], Gaussians]
    estimator: UncertainSVC | UncertainKernelSVC
    paper: str = ""
    grid: Mapping[str, tuple[float, ...]] = {}  # values of parameters beside C


def baselines(n_draws: int = 10) -> dict[str, Method]:
    """Return the methods that every experiment on two classes compares."""
    return {
        "lsvm": Method("LSVM", means_only, UncertainSVC(loss="hinge")),
        "sphere": Method("optimistic sphere", isotropic, UncertainSVC(loss="best_case")),
        "iso": Method("LSVM-iso", isotropic, UncertainSVC()),
        "sampling": Method(
            f"LSVM-sampling, {n_draws} draws", as_given, SamplingSVC(n_draws=n_draws)
        ),
        "gsu": Method("LSVM-GSU", as_given, UncertainSVC()),
    }


# -- runs ----------------------------------------------------------------------------------------
class Run(NamedTuple):
    """Data of one run: uncertain training examples, and test points without errors."""

    X: Gaussians
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]


@dataclass(frozen=True)
class Search:
    """How C is chosen: by cross-validation on the training examples alone.

    Attributes
    ----------
    grid : tuple of float
        The values of C.
    folds : int
        Folds of the cross-validation.
    scoring : tuple of str or callable
        scikit-learn's scorers for the test points; the first also chooses C.
    """

    grid: tuple[float, ...]
    folds: int = 3
    scoring: tuple[Any, ...] = ("accuracy",)


@dataclass
class Scores:
    """What one method reached, a list entry for each run; `values` has one number per scorer."""

    values: list[tuple[float, ...]] = field(default_factory=list)
    parameters: list[dict[str, float]] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)  # score of the cross-validation
    right: list[NDArray[np.bool_]] = field(default_factory=list)  # which test labels are
    gaps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def score(self, number: int = 0) -> Array:
        """Return the score of that number on each run."""
        return np.array([value[number] for value in self.values])


def choose_and_fit(method: Method, X: Gaussians, y: NDArray[Any], search: Search, seed: int) -> Any:
    """Choose C on the given examples, then fit on all of them; return the search's object."""
    chosen = GridSearchCV(
        method.estimator,
        {"C": search.grid, **method.grid},
        scoring=search.scoring[0],
        cv=StratifiedKFold(search.folds, shuffle=True, random_state=seed),
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table counts them
        return chosen.fit(method.view(X), y)


def compare(
    methods: Mapping[str, Method], runs: Iterable[Run], search: Search
) -> dict[str, Scores]:
    """Train and test every method on every run, all with the same folds."""
    results = {key: Scores() for key in methods}
    for number, run in enumerate(runs):
        for key, method in methods.items():
            chosen = choose_and_fit(method, run.X, run.y, search, number)
            best, scores = chosen.best_estimator_, results[key]
            scores.values.append(
                tuple(get_scorer(name)(best, run.X_test, run.y_test) for name in search.scoring)
            )
            scores.parameters.append(chosen.best_params_)
            scores.validation.append(float(chosen.best_score_))
            scores.right.append(best.predict(run.X_test) == run.y_test)
            gap = getattr(best, "suboptimality_", np.nan)  # kernel machines do not tell
            scores.gaps.append(float(np.max(gap)))
            scores.seconds.append(chosen.refit_time_)
    return results


# -- statistics ----------------------------------------------------------------------------------
def mcnemar_p(one_right: NDArray[np.bool_], other_right: NDArray[np.bool_]) -> float:
    """Return the exact two-sided p of McNemar's test, from which predictions are right."""
    first, second = int((one_right & ~other_right).sum()), int((other_right & ~one_right).sum())
    return float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0


# -- tables --------------------------------------------------------------------------------------
def format_columns(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Align columns: the first to the left, the others to the right."""
    lines = [list(map(str, header)), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(columns))
        for columns in (zip(line, widths, strict=True) for line in lines)
    ]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def best_by_validation(candidates: Iterable[Scores]) -> Scores:
    """Return, run by run, the scores of the candidate with the best cross-validation."""
    listed, best = list(candidates), Scores()
    for number in range(len(listed[0].values)):
        winner = max(listed, key=lambda scores: scores.validation[number])
        for name in ("values", "parameters", "validation", "right", "gaps", "seconds"):
            getattr(best, name).append(getattr(winner, name)[number])
    return best


def percent(values: Array) -> str:
    """Return mean and standard error in percent."""
    return f"{100 * np.mean(values):.2f} +- {100 * standard_error(values):.2f}"


def format_scores(
    methods: Mapping[str, Method],
    results: Mapping[str, Scores],
    search: Search,
    *,
    against: str = "lsvm",
    overlap: float = 0.0,
) -> str:
    """Return a table of scores, paired differences to one method, and how well fits are solved."""
    rows = []
    reference = results[against].score()
    for key, scores in results.items():
        value = scores.score()
        gain, p = float((value - reference).mean()), paired_p(value, reference, overlap)
        certified = sum(gap <= methods[key].estimator.tol for gap in scores.gaps)
        rows.append(
            [
                methods[key].title,
                *(percent(scores.score(number)) for number in range(len(search.scoring))),
                methods[key].paper,
                "" if key == against else f"{100 * gain:+.2f}",
                "" if key == against else f"{p:.2g}",
                "" if key == against else verdict(gain, p),
                f"{np.median([found['C'] for found in scores.parameters]):.2g}",
                f"{certified}/{len(scores.gaps)}",
                f"{np.median(scores.gaps):.0e}",
                f"{1000 * np.median(scores.seconds):.1f}",
            ]
        )
    names = [f"{_name(scorer)} (%)" for scorer in search.scoring]
    title = methods[against].title
    header = ["method", *names, "paper", f"minus {title}", "p", "", "C", "certified", "gap", "ms"]
    return format_columns(header, rows)


def _name(scorer: Any) -> str:
    return str(getattr(scorer, "__name__", scorer)).replace("_", " ")


LEGEND = (
    "+- is the standard error over runs; p of the paired t-test; C, gap and time of a fit are "
    "medians;\ncertified: fits whose gap (J - J*)/J* is proven to be at most the tolerance."
)


def draw_scores(
    axes: Any, methods: Mapping[str, Method], results: Mapping[str, Scores], name: str
) -> None:
    """Draw the first score of each method: thin lines for the runs, mean and standard error."""
    values = 100 * np.array([scores.score() for scores in results.values()])
    places = np.arange(len(values))
    axes.plot(places, values, "-o", ms=3, lw=0.6, color="0.75", zorder=1)
    bars = [standard_error(row) for row in values]
    axes.errorbar(places, values.mean(axis=1), bars, fmt="s", color="black", capsize=6, zorder=3)
    titles = [methods[key].title.replace(" ", "\n", 1).replace(", ", "\n") for key in results]
    axes.set_xticks(places, titles, fontsize=8)
    axes.margins(x=0.1)
    axes.set_ylabel(f"{name} (%)")
    axes.grid(axis="y", alpha=0.3)


# -- command line --------------------------------------------------------------------------------
class Options(NamedTuple):
    """What the command line says: small sizes, folder of the figures, seed."""

    quick: bool
    output: Path
    seed: int

    def figure(self, name: str, size: tuple[float, float]) -> tuple[Any, Callable[[], None]]:
        """Return a figure, and a function that saves it."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        path = self.output / f"{name}.png"

        def save() -> None:
            self.output.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=110)
            print(f"Figure: {path}\n", flush=True)

        return figure, save

    def table(self, name: str, header: list[str], rows: Iterable[Iterable[Any]]) -> None:
        """Write a table as CSV."""
        self.output.mkdir(parents=True, exist_ok=True)
        path = self.output / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        print(f"Table: {path}\n", flush=True)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that every experiment has."""
    text = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(description=description, formatter_class=text)
    made.add_argument("--quick", action="store_true", help="fewer runs and values")
    made.add_argument("--output", type=Path, default=Path(__file__).parent / "output")
    made.add_argument("--seed", type=int, default=0)
    return made


def run_script(experiment: Callable[[Options], None], description: str | None) -> None:
    """Run one experiment as its command line says, and tell the time it took."""
    found = parser(description).parse_args()
    start = time.perf_counter()
    experiment(Options(found.quick, found.output, found.seed))
    print(f"{time.perf_counter() - start:.0f} s")
