"""When errors pay: what knowing them gains over values alone, one thing varied at a time.

No paper. Tables of true values of two classes, made up and measured with known noise; new rows are
measurements, too. Ways that use the errors are compared with a logistic regression of the values,
and stand beside Bayes' rule with the densities that the tables were drawn from. The choice among
kernels, trees and the like without errors tells what is gained by shape and not by errors.

The picture of the documentation: `python bench/papers/when_errors_pay.py --output docs`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from choice import VALUES, Run, Score, column, judge, logistic, values_of
from common import Options, format_columns, means_only, paired_p, run_script, standard_error
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from halosvm import ClassPopulations, EmpiricalBayes, Gaussians, MeasurementClassifier
from halosvm.commands.demo.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from common import Array

TEST_ROWS = 2000
TABLES = 12
# Mahalanobis' distance of the means of the classes, which allows 89 % without noise; or of a lobe
# from the class between the lobes.
APART = 2.5


class Setting(NamedTuple):
    """What may differ between tables; the defaults are the centre.

    `noise` is the mean standard deviation of the errors, in units of the spread of a feature.
    """

    noise: float = 1.0
    errors: str = "unequal"
    rows: int = 300
    features: int = 5
    shape: str = "means"
    told: float = 1.0
    sharper: float = 1.0


CENTRE = Setting()


class Axis(NamedTuple):
    """A thing that is varied: its name in `Setting`, title, values, and what they are called."""

    name: str
    title: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]


AXES = (
    Axis("noise", "noise / spread", (0.1, 0.3, 1.0, 3.0), ("0.1", "0.3", "1", "3")),
    Axis("errors", "errors", ("unequal", "equal"), ("unequal", "equal")),
    Axis("rows", "training rows", (60, 150, 300, 1500), ("60", "150", "300", "1,500")),
    Axis("features", "features", (2, 5, 20), ("2", "5", "20")),
    Axis("shape", "classes differ in", ("means", "correlations", "lobes"),
         ("means", "correlations", "lobes")),
    Axis("told", "errors told / true", (0.5, 1.0, 2.0), ("half", "right", "twice")),
    Axis("sharper", "new rows measured", (1.0, 10.0), ("as training", "10 x sharper")),
)  # fmt: skip


# -- tables --------------------------------------------------------------------------------------
class Population(NamedTuple):
    """True values of a class: means (k, d) of equally frequent Gaussians of one covariance."""

    means: Array
    covariance: Array

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw true values."""
        which = rng.integers(len(self.means), size=n)
        noise = rng.normal(size=(n, self.means.shape[1]))
        return np.asarray(self.means[which] + noise @ np.linalg.cholesky(self.covariance).T)

    def log_density(self, X: Gaussians) -> Array:
        """Return the log density of measurements: sum over k of N(x; m_k, V + S) / k."""
        total = self.covariance + X.covariances.to_full()
        apart = X.mean[:, np.newaxis] - self.means
        solved = np.linalg.solve(total, apart.swapaxes(1, 2)).swapaxes(1, 2)
        each = (apart * solved).sum(axis=2) + np.linalg.slogdet(total)[1][:, np.newaxis]
        return np.asarray(np.logaddexp.reduce(-0.5 * each, axis=1) - np.log(len(self.means)))


def populations(shape: str, d: int, rng: np.random.Generator) -> list[Population]:
    """Return the population of each class; over both, each feature has mean 0 and variance 1."""

    def correlated(signs: Array, correlation: float) -> Array:
        return (1.0 - correlation) * np.eye(d) + correlation * np.outer(signs, signs)

    one = np.ones(d)
    direction = rng.normal(size=d)
    if shape == "correlations":
        signs = (one, (-1.0) ** np.arange(d))
        return [Population(np.zeros((1, d)), correlated(sign, 0.8)) for sign in signs]
    V = correlated(one, 0.5)
    side = APART * direction / np.sqrt(direction @ np.linalg.solve(V, direction))
    means = {
        "means": (-side[np.newaxis] / 2, side[np.newaxis] / 2),
        "lobes": (np.zeros((1, d)), np.stack([-side, side])),
    }[shape]
    between = np.mean([(m**2).mean(axis=0) for m in means], axis=0)
    spread = np.sqrt(np.diag(V) + between)
    return [Population(m / spread, V / np.outer(spread, spread)) for m in means]


def table(setting: Setting, rng: np.random.Generator) -> tuple[Run, Array]:
    """Draw a table; return what ways are given, and the probabilities by the true densities."""
    classes = populations(setting.shape, setting.features, rng)
    parts = []
    for n, sharper in ((TEST_ROWS, setting.sharper), (setting.rows, 1.0)):
        y = rng.integers(2, size=n)
        first, second = (each.draw(n, rng) for each in classes)
        v = np.where(y[:, np.newaxis] == 0, first, second)
        unequal = np.exp(rng.normal(-0.5, 1.0, v.shape))  # of mean 1
        size = setting.noise / sharper * (unequal if setting.errors == "unequal" else 1.0)
        std = size * np.ones_like(v)
        parts.append((v + std * rng.normal(size=v.shape), std, y))
    (x_test, std_test, y_test), (x, std, y) = parts
    logs = [each.log_density(Gaussians(x_test, std=std_test)) for each in classes]
    optimum = np.exp(np.stack(logs, axis=1) - np.logaddexp(*logs)[:, np.newaxis])
    told = [Gaussians(x, std=std * setting.told), Gaussians(x_test, std=std_test * setting.told)]
    return Run(told[0], y, told[1], y_test), optimum


# -- ways ----------------------------------------------------------------------------------------
def values(run: Run) -> Array:
    """Fit a logistic regression to the values."""
    model = logistic(values_of(run.X), run.y)
    return np.asarray(model.predict_proba(values_of(run.X_test)))


def means(run: Run) -> Array:
    """Fit a logistic regression to posterior means."""
    prior = EmpiricalBayes(output="mean", n_threads=1).fit(run.X)
    model = logistic(prior.transform(run.X), run.y)
    return np.asarray(model.predict_proba(prior.transform(run.X_test)))


def classes(run: Run) -> Array:
    """Fit a Gaussian to the true values of each class."""
    model = ClassPopulations(1, tied="auto", random_state=0, n_threads=1).fit(run.X, run.y)
    return np.asarray(model.predict_proba(run.X_test))


def choice(run: Run) -> Array:
    """Leave the choice among all ways to validation."""
    model = MeasurementClassifier(random_state=0).fit(run.X, run.y)
    return np.asarray(model.predict_proba(run.X_test))


def choice_without(run: Run) -> Array:
    """Leave the choice among all ways from values alone to validation."""
    return choice(Run(means_only(run.X), run.y, means_only(run.X_test), run.y_test))


OPTIMUM = "best possible"
WAYS: dict[str, Callable[[Run], Array]] = {
    VALUES: values,
    "MeasurementClassifier, values": choice_without,
    "posterior means, logistic": means,
    "ClassPopulations": classes,
    "MeasurementClassifier": choice,
}
GAINING = [*list(WAYS)[1:], OPTIMUM]  # over VALUES


def scores_of(setting: Setting, seed: int, number: int) -> dict[str, Score]:
    """Return the scores of all ways on one table."""
    run, optimum = table(setting, np.random.default_rng((seed, number)))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        found = {name: way(run) for name, way in WAYS.items()} | {OPTIMUM: optimum}
        return {name: judge(made, run, np.nan) for name, made in found.items()}


# -- gains ---------------------------------------------------------------------------------------
Map = dict[Setting, dict[str, list[Score]]]


def settings() -> dict[str, Setting]:
    """Return all settings by their names, the centre first."""
    found = {"centre": CENTRE}
    for axis in AXES:
        for value, label in zip(axis.values, axis.labels, strict=True):
            setting = CENTRE._replace(**{axis.name: value})
            if setting != CENTRE:
                found[f"{axis.title}: {label}"] = setting
    return found


def measured(n_tables: int, seed: int) -> Map:
    """Return the scores on all tables of every setting."""
    found: Map = {}
    for setting in settings().values():
        tables = [scores_of(setting, seed, number) for number in range(n_tables)]
        found[setting] = {name: [each[name] for each in tables] for name in tables[0]}
    return found


def gains(scores: dict[str, list[Score]], way: str, score: str) -> Array:
    """Return what a way gains over values alone on each table: log loss, or points of accuracy."""
    factor = {"accuracy": 100.0, "loss": -1.0}[score]
    return factor * (column(scores[way], score) - column(scores[VALUES], score))


def report(found: Map, score: str) -> str:
    """Return a table of gains: standard errors in brackets, + or - where they are clear."""
    digits = {"accuracy": 1, "loss": 3}[score]
    factor = {"accuracy": 100.0, "loss": 1.0}[score]
    rows = []
    for title, setting in settings().items():
        scores = found[setting]
        cells = [f"{factor * column(scores[VALUES], score).mean():.{digits}f}"]
        for way in GAINING:
            gain = gains(scores, way, score)
            mean, error = gain.mean(), standard_error(gain)
            clear = paired_p(gain, np.zeros_like(gain)) < SIGNIFICANT
            mark = "" if not clear else " +" if mean > 0 else " -"
            cells.append(f"{mean:+.{digits}f} ({error:.{digits}f}){mark}")
        rows.append([title, *cells])
    name = {"accuracy": "accuracy (%), gains", "loss": "log loss, gains"}[score]
    return format_columns([name, *WAYS, OPTIMUM], rows)


COLOURS = ("0.6", "C0", "C1", "C2", "black")
MARKERS = "vos^D"


def draw(found: Map, options: Options) -> None:
    """Draw the gain in accuracy against each thing that is varied."""
    figure, save = options.figure("when_errors_pay", (10.0, 5.6))
    panels = figure.subplots(2, 4).ravel()
    for axis, panel in zip(AXES, panels, strict=False):
        if axis.name != "shape":  # whose gains are larger
            panel.sharey(panels[0])
        places = np.arange(len(axis.values))
        line = "" if isinstance(axis.values[0], str) else "-"
        for number, way in enumerate(GAINING):
            of_values = [
                gains(found[CENTRE._replace(**{axis.name: value})], way, "accuracy")
                for value in axis.values
            ]
            panel.errorbar(
                places + 0.08 * (number - 2),
                [gain.mean() for gain in of_values],
                [standard_error(gain) for gain in of_values],
                fmt=f"{line}{MARKERS[number]}",
                ms=4,
                lw=1.1,
                capsize=2,
                color=COLOURS[number],
                label=way,
            )
        panel.axhline(0.0, color="0.8", lw=0.8, zorder=0)
        panel.set_xticks(places, axis.labels)
        panel.set_xlim(-0.4, len(places) - 0.6)
        panel.set_title(axis.title, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[::4]:
        panel.set_ylabel("gain in accuracy (points)")
    panels[-1].axis("off")
    handles, labels = panels[0].get_legend_handles_labels()
    title = f"beside {VALUES}"
    panels[-1].legend(handles, labels, loc="center", title=title, frameon=False, fontsize=9)
    save()


def experiment(options: Options) -> None:
    """Print the gains in accuracy and in log loss, and draw those in accuracy."""
    found = measured(2 if options.quick else TABLES, options.seed)
    for score in ("accuracy", "loss"):
        print(f"{report(found, score)}\n", flush=True)
    draw(found, options)


if __name__ == "__main__":
    run_script(experiment, __doc__)
