"""TSVC, Table 1 and figure 2: total support vector classification against the plain machine.

J. Bi and T. Zhang, "Support Vector Classification with Input Data Uncertainty" (NIPS 17, 2004).
Points in a square, whose label a line or a circle tells, have noise of a known size each, larger
for some of the points near the boundary; the test points have none. The paper leaves open whether
sigma_i is a standard deviation or a variance, so both are tried, with the standard deviation as
radius delta_i; and how C was chosen, so cross-validation does it, of all machines on the same
folds. In place of NIST's digits, odd against even, there are the 8 x 8 digits of scikit-learn: the
first for training, the last 1,000 for the test, all turned by up to 8 degrees. Their delta is
chosen by cross-validation too.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from common import Options, format_columns, paired_p, run_script, standard_error, verdict
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from halosvm import Covariances, Gaussians, TotalSVC, UncertainSVC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from common import Array
    from numpy.typing import NDArray

SIZES = (20, 30, 50, 100, 150)
N_DIGITS = (100, 500)
HALF = 5.0  # half of the side of the square
N_TEST = 10_000
USUAL, OUTLYING = (0.1, 0.8), (0.5, 2.0)  # ranges of sigma
TURN = 8.0  # degrees
N_TEST_DIGITS = 1000
FOLDS = 3
PAPER = {
    ("linear", "svc"): (8.9, 7.8, 5.5, 2.9, 2.1),
    ("linear", "total"): (6.1, 5.2, 3.8, 2.1, 1.6),
    ("quadratic", "svc"): (9.9, 7.5, 6.7, 3.2, 2.8),
    ("quadratic", "total"): (7.9, 6.1, 4.4, 2.8, 2.4),
    ("digits", "svc"): (24.35, 18.91),
    ("digits", "ball"): (23.00, 16.10),
}


# -- data ----------------------------------------------------------------------------------------
class Trial(NamedTuple):
    """Training points with the radii of their errors, and test points."""

    X: Gaussians
    y: NDArray[np.bool_]
    X_test: Array
    y_test: NDArray[np.bool_]


def line(points: Array) -> Array:
    """Return the signed distance from x_1 = x_2."""
    return np.asarray((points[:, 0] - points[:, 1]) / np.sqrt(2.0))


def circle(points: Array) -> Array:
    """Return the signed distance from x_1^2 + x_2^2 = 9."""
    return np.asarray(np.hypot(points[:, 0], points[:, 1]) - 3.0)


TARGETS = {"linear": line, "quadratic": circle}


def with_radii(points: Array, radii: Any) -> Gaussians:
    """Return points that may be anywhere in a ball around them."""
    variance = np.broadcast_to(np.square(radii), len(points))
    return Gaussians(points, cov=Covariances.isotropic(variance, points.shape[1]))


def synthetic(
    target: Callable[[Array], Array], n: int, power: float, rng: np.random.Generator
) -> Trial:
    """Draw points and their noise, of the standard deviation sigma^power.

    Samples with fewer than FOLDS points of a class are drawn again.
    """
    while True:
        points = rng.uniform(-HALF, HALF, (n, 2))
        y = target(points) > 0.0
        if min(y.sum(), (~y).sum()) >= FOLDS:
            break
    sigma = rng.uniform(*USUAL, n)
    near = np.argsort(np.abs(target(points)))[: n // 5]
    outlying = rng.choice(near, n // 10, replace=False)
    sigma[outlying] = rng.uniform(*OUTLYING, len(outlying))
    std = sigma**power
    noisy = points + std[:, np.newaxis] * rng.normal(size=points.shape)
    asked = rng.uniform(-HALF, HALF, (N_TEST, 2))
    return Trial(with_radii(noisy, std), y, asked, target(asked) > 0.0)


def turned_digits(n: int, rng: np.random.Generator) -> Trial:
    """Turn the first n digits and the last ones, and standardise by the first."""
    images, digit = load_digits(return_X_y=True)
    rows = np.append(np.arange(n), np.arange(len(digit) - N_TEST_DIGITS, len(digit)))
    turned = [
        ndimage.rotate(
            images[row].reshape(8, 8), rng.uniform(-TURN, TURN), reshape=False, order=1
        ).ravel()
        for row in rows
    ]
    odd = digit[rows] % 2 == 1
    scaler = StandardScaler().fit(turned[:n])
    known, asked = scaler.transform(turned[:n]), scaler.transform(turned[n:])
    return Trial(with_radii(known, 1.0), odd[:n], asked, odd[n:])


# -- machines ------------------------------------------------------------------------------------
class PlainSVC(SVC):
    """scikit-learn's machine on the means of Gaussians."""

    def fit(self, X: Gaussians, y: NDArray[Any]) -> PlainSVC:
        """Fit on the means."""
        return super().fit(X.mean, y)

    def predict(self, X: Gaussians | Array) -> NDArray[Any]:
        """Predict from the means."""
        return np.asarray(super().predict(X.mean if isinstance(X, Gaussians) else X))


class Machine(NamedTuple):
    """A title, an estimator, and the values of its parameters."""

    title: str
    estimator: Any
    grid: Mapping[str, tuple[float, ...]]


C = {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}
BALL = {"ball_radius": (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)}
DELTA = {"radius": (0.35, 0.7, 1.4, 2.8)}
LINEAR = {
    "svc": Machine("SVC", UncertainSVC(loss="hinge", n_threads=1), C),
    "total": Machine("TSVC, penalised (6)", TotalSVC(n_threads=1), C),
    "ball": Machine("TSVC, ball (8)", TotalSVC(formulation="ball", n_threads=1), BALL),
}
SQUARE = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}  # (x'z)^2
QUADRATIC = {
    "svc": Machine("SVC", PlainSVC(**SQUARE), {"C": (1e-4, 1e-3, 1e-2, 0.1, 1.0)}),
    "total": Machine(
        "TSVC, Algorithm 1", TotalSVC(**SQUARE, n_threads=1), {"C": (1e-4, 1e-3, 1e-2, 0.1, 1.0)}
    ),
}
SMALL_C = {"C": (1e-3, 1e-2, 0.1, 1.0)}
DIGITS = {
    "svc": LINEAR["svc"]._replace(grid=SMALL_C),
    "total": LINEAR["total"]._replace(grid=SMALL_C | DELTA),
    "ball": LINEAR["ball"]._replace(grid=BALL | DELTA),
}


def chosen(machine: Machine, trial: Trial, seed: int) -> Any:
    """Choose the parameters by cross-validation, and fit."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(machine.estimator, dict(machine.grid), cv=folds, error_score="raise")
    return search.fit(trial.X, trial.y)


def errors(machines: Mapping[str, Machine], trials: Iterable[Trial]) -> dict[str, Array]:
    """Return the error in percent of every machine on every trial."""
    found: dict[str, list[float]] = {key: [] for key in machines}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of balls that are too large
        for number, trial in enumerate(trials):
            for key, machine in machines.items():
                search = chosen(machine, trial, number)
                found[key].append(100.0 - 100.0 * search.score(trial.X_test, trial.y_test))
    return {key: np.array(values) for key, values in found.items()}


# -- tables --------------------------------------------------------------------------------------
class Block(NamedTuple):
    """A part of the table: its title, the paper's name of it, machines, sizes and their trials."""

    title: str
    name: str
    machines: Mapping[str, Machine]
    sizes: tuple[int, ...]
    make: Callable[[int, np.random.Generator], Trial]


def blocks() -> list[Block]:
    """Return all parts of the table."""
    return [
        *(
            Block(
                f"{name} target, sigma a {reading}",
                name,
                LINEAR if name == "linear" else QUADRATIC,
                SIZES,
                lambda n, rng, target=target, power=power: synthetic(target, n, power, rng),
            )
            for name, target in TARGETS.items()
            for reading, power in (("standard deviation", 1.0), ("variance", 0.5))
        ),
        Block("digits, odd against even", "digits", DIGITS, N_DIGITS, turned_digits),
    ]


def format_block(block: Block, found: Mapping[int, Mapping[str, Array]]) -> str:
    """Return errors beside the paper's, and differences to SVC."""
    rows = []
    for key, machine in block.machines.items():
        paper = PAPER.get((block.name, key), ("",) * len(block.sizes))
        for n, printed in zip(block.sizes, paper, strict=True):
            error, plain = found[n][key], found[n]["svc"]
            gain, p = float(np.mean(error - plain)), paired_p(error, plain)
            measured = f"{error.mean():.2f} +- {standard_error(error):.2f}"
            against = ["", "", ""] if key == "svc" else [f"{gain:+.2f}", f"{p:.2g}"]
            if key != "svc":
                against.append(verdict(-gain, p))
            rows.append([machine.title, str(n), measured, str(printed), *against])
    return format_columns(["machine", "points", "error (%)", "paper", "minus SVC", "p", ""], rows)


def draw_boundaries(axes: Any, name: str, machines: Mapping[str, Machine], seed: int) -> None:
    """Draw what figure 2 of the paper shows: 50 points, the target and the machines."""
    from matplotlib.patches import Circle

    trial = synthetic(TARGETS[name], 50, 1.0, np.random.default_rng((seed, 50)))
    radii = np.sqrt(trial.X.covariances.variances()[:, 0])
    for label, colour in ((False, "tab:blue"), (True, "tab:red")):
        rows = trial.y == label
        axes.scatter(*trial.X.mean[rows].T, s=8, color=colour, zorder=3)
        for centre, radius in zip(trial.X.mean[rows], radii[rows], strict=True):
            axes.add_patch(Circle(centre, radius, fill=False, color=colour, lw=0.4, alpha=0.6))
    across = np.linspace(-HALF, HALF, 200)
    grid = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    lines = [("target", TARGETS[name](grid), "-.")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for key, style in (("svc", "--"), ("total", "-")):
            values = chosen(machines[key], trial, 0).decision_function(grid)
            lines.append((machines[key].title, values, style))
    for title, values, style in lines:
        axes.contour(across, across, values.reshape(200, 200), [0.0], colors="k", linestyles=style)
        axes.plot([], [], color="k", linestyle=style, label=title)
    axes.set(title=f"{name} target, 50 points", aspect="equal", xlim=(-6, 6), ylim=(-6, 6))
    axes.legend(fontsize=7, loc="upper left")


def experiment(options: Options) -> None:
    """Print Table 1, and draw figure 2."""
    n_trials = 5 if options.quick else 50
    print(
        f"Table 1, {n_trials} trials; +- is the standard error over trials, p of the paired t-test."
        "\nThe trials of the digits differ in their rotations and folds alone.\n"
    )
    records = []
    for block in blocks():
        found = {}
        for n in block.sizes:
            trials = [
                block.make(n, np.random.default_rng((options.seed, n, number)))
                for number in range(n_trials)
            ]
            found[n] = errors(block.machines, trials)
            records += [
                [block.title, n, block.machines[key].title, trial, float(error)]
                for key, values in found[n].items()
                for trial, error in enumerate(values)
            ]
        print(f"{block.title}\n{format_block(block, found)}\n", flush=True)
    options.table("tsvc", ["data", "points", "machine", "trial", "error (%)"], records)
    figure, save = options.figure("tsvc_figure2", (10, 5))
    panels = figure.subplots(1, 2)
    for axes, (name, machines) in zip(
        panels, (("linear", LINEAR), ("quadratic", QUADRATIC)), strict=True
    ):
        draw_boundaries(axes, name, machines, options.seed)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
