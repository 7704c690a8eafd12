"""What the stories of the demo share: sizes, the choice of C, results, and the line of progress."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from halosvm.linear.svc import UncertainSVC

from .statistics import paired_p, standard_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from halosvm.kernel.kernel_svc import UncertainKernelSVC

    Array = NDArray[np.float64]

METHODS = {
    "ignored": "errors ignored",
    "distribution": "expected hinge on N(x, S)",
    "means": "posterior means",
    "kernel": "expected kernel on posteriors",
    "chosen": "chosen by validation",
}


@dataclass(frozen=True)
class Setup:
    """How large the experiments are.

    Attributes
    ----------
    splits : int
        Number of random splits.
    seed : int
        Seed of the splits, the noise and the folds.
    folds : int
        Folds of the cross-validation that chooses C inside each training part.
    grid, kernel_grid : tuple of float
        The values of C to choose from, of linear and of kernel machines.
    """

    splits: int = 10
    seed: int = 0
    folds: int = 3
    grid: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    kernel_grid: tuple[float, ...] = (1.0, 10.0, 100.0)

    @classmethod
    def quick(cls, splits: int = 3, seed: int = 0) -> Setup:
        """Return a setup that shows the same in a few seconds, with coarser numbers."""
        return cls(splits, seed, grid=(0.1, 1.0), kernel_grid=(10.0,))


@dataclass(frozen=True)
class Outcome:
    """What one method reached: arrays with one entry per split."""

    accuracy: Array
    chosen_c: Array
    suboptimality: Array  # NaN where no linear machine is fitted alone


class Situation(NamedTuple):
    """One row of the table: its story, its name, the test rows over training rows, its outcomes.

    `noise` is the size of the noise where there is one to vary, and `ideal` the accuracy with the
    true values.
    """

    story: str
    title: str
    overlap: float
    outcomes: dict[str, Outcome]
    noise: float = np.nan
    ideal: Array = np.array([])

    def gain(self, key: str) -> tuple[float, float]:
        """Return how much better a method is than to ignore the errors, and the p of it."""
        one, other = self.outcomes[key].accuracy, self.outcomes["ignored"].accuracy
        return float(np.mean(one - other)), paired_p(one, other, self.overlap)

    def error(self, key: str) -> float:
        """Return the standard error of the mean accuracy of a method."""
        return standard_error(self.outcomes[key].accuracy, self.overlap)


class Record:
    """Collects the outcomes of the methods, one split after the other."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[float, float, float]]] = {}

    def add(self, key: str, fitted: Any, accuracy: float) -> None:
        """Add one fit."""
        gap = float(np.max(getattr(fitted, "suboptimality_", np.nan)))
        self._rows.setdefault(key, []).append((accuracy, getattr(fitted, "C", np.nan), gap))

    def outcomes(self) -> dict[str, Outcome]:
        """Return them by method."""
        return {key: Outcome(*np.array(rows).T) for key, rows in self._rows.items()}


def choose_and_fit(
    estimator: UncertainSVC | UncertainKernelSVC, X: Any, y: NDArray[Any], setup: Setup, seed: int
) -> Any:
    """Choose C by cross-validation on the given rows, then fit on all of them."""
    linear = isinstance(estimator, UncertainSVC)
    search = GridSearchCV(
        estimator.set_params(n_threads=1),  # more threads only delay such small fits
        {"C": list(setup.grid if linear else setup.kernel_grid)},
        cv=StratifiedKFold(setup.folds, shuffle=True, random_state=seed),
    )
    return fit_quietly(search, X, y).best_estimator_


def fit_quietly(estimator: Any, X: Any, y: NDArray[Any]) -> Any:
    """Fit without warnings that an optimum is not reached, or that nothing beats one class.

    How far from the optimum the fits may be at most is told, and what they are worth is shown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)


class Progress:
    """Shows how far the work is: on a terminal in one line, else a line for each part of it."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()

    def steps(self, title: str, n_steps: int) -> Iterable[int]:
        """Count through the steps of one part of the work."""
        if self._stream is not None and not self._terminal:
            print(title, file=self._stream, flush=True)
        for number in range(n_steps):
            if self._stream is not None and self._terminal:
                bar = "#" * (20 * number // n_steps)
                self._stream.write(f"\r[{bar:<20}] {title:<55.55}")
                self._stream.flush()
            yield number

    def end(self) -> None:
        """Wipe the line."""
        if self._stream is not None and self._terminal:
            self._stream.write(f"\r{'':<78}\r")
            self._stream.flush()
