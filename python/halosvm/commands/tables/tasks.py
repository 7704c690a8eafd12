"""Classification and regression: a table and the options in; a machine and how to judge it out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import KFold, StratifiedKFold

from halosvm import _core
from halosvm.commands.tables.reading import CommandError
from halosvm.files.table import parse_labels
from halosvm.linear.residuals import LOSSES as REGRESSION_LOSSES
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    import numpy.typing as npt

    from halosvm.files.table import Table

C_GRID = tuple(float(value) for value in np.logspace(-3, 1, 9))

_LOSSES = {"classification": _core.loss_names(), "regression": list(REGRESSION_LOSSES)}
LOSSES = [name for names in _LOSSES.values() for name in names]
_BOUNDED = [name for name in _core.loss_names() if _core.loss_traits(name)["has_radius"]]
# the options that mean something to a few losses alone
OF_LOSSES = {
    "radius": _BOUNDED,
    "norm": _BOUNDED,
    "epsilon": ["epsilon_insensitive", "squared_epsilon_insensitive"],
    "quantile": ["pinball"],
    "delta": ["huber"],
}


@dataclass(frozen=True)
class Task:
    """What is to be learnt, and how to judge it.

    Attributes
    ----------
    machine : UncertainSVC or UncertainSVR
        Not fitted, C aside.
    y : ndarray of shape (n_samples,)
        Labels or values.
    fit_params : dict
        What `fit` of the machine takes besides.
    summary : dict of str to str
        What the table says of labels or values.
    largest : int
        The largest number of folds that the rows can be split into.
    too_few : str
        Why that is less than two, where it is.
    grid : tuple of float
        The values of C to try.
    measure : str
        What is measured on the folds.
    told : callable
        A score as text.
    scoring : callable or None
        The scorer, None for `score` of the machine.
    """

    machine: UncertainSVC | UncertainSVR
    y: npt.NDArray[Any]
    fit_params: dict[str, npt.NDArray[np.float64]]
    summary: dict[str, str]
    largest: int
    too_few: str
    grid: tuple[float, ...]
    measure: str
    told: Callable[[float], str]
    scoring: Any = None

    def folds(self, n_folds: int, seed: int) -> KFold | StratifiedKFold:
        """Return the splitter of the rows."""
        kind = StratifiedKFold if isinstance(self.machine, UncertainSVC) else KFold
        return kind(n_folds, shuffle=True, random_state=seed)


def check_options(arguments: argparse.Namespace) -> str:
    """Return the loss after a check that the options go with it and with the task."""
    losses = _LOSSES[arguments.task]
    loss = arguments.loss or losses[0]
    if loss not in losses:
        raise CommandError(
            f"--loss {loss} is not for --task {arguments.task}, whose losses are "
            f"{', '.join(losses)}"
        )
    for option, those in OF_LOSSES.items():
        if getattr(arguments, option) is not None and loss not in those:
            raise CommandError(f"--{option} is of use only with --loss {' or '.join(those)}")
    if arguments.class_weight is not None and arguments.task != "classification":
        raise CommandError("--class-weight is of use only with --task classification")
    if arguments.components != 1 and arguments.errors != "measurement":
        raise CommandError("--components is of use only with --errors measurement")
    return str(loss)


def classification(table: Table, loss: str, arguments: argparse.Namespace) -> Task:
    """Return the task of telling labels."""
    counts = Counter(table.labels)
    if len(counts) < 2:
        raise CommandError(f"column {arguments.label!r} holds one class only: {table.labels[0]!r}")
    machine = UncertainSVC(loss=loss, class_weight=arguments.class_weight, **_parameters(arguments))
    return Task(
        machine,
        parse_labels(table.labels),
        {},
        {"classes": ", ".join(f"{label} ({count})" for label, count in sorted(counts.items()))},
        min(counts.values()),
        "a class has one row",
        C_GRID,
        "accuracy",
        lambda score: f"{100 * score:.2f} %",
    )


def regression(table: Table, loss: str, arguments: argparse.Namespace) -> Task:
    """Return the task of telling values."""
    y, std = table.values, table.values_std
    assert y is not None
    machine = UncertainSVR(loss=loss, **_parameters(arguments))
    # |w|^2 grows with the square of the unit of the values, and the losses with their degree
    unit = float(np.std(y)) or 1.0
    grid = tuple(C * unit ** (2 - REGRESSION_LOSSES[loss].degree) for C in C_GRID)
    errors = "no error column" if std is None else "with an error column"
    task = Task(
        machine,
        y,
        {} if std is None else {"y_std": std},
        {"values": f"{y.min():g} to {y.max():g}, {errors}"},
        len(y) // 2,  # R^2 needs two rows
        "1 row" if len(y) == 1 else f"{len(y)} rows",
        grid,
        "R^2",
        lambda score: f"{score:.4f}",
    )
    if loss != "pinball":
        return task
    # R^2 would favour the mean where another quantile is asked for
    scoring = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=machine.quantile)
    return replace(
        task, measure="pinball loss", told=lambda score: f"{-score:.6g}", scoring=scoring
    )


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of a machine that are options, but for C."""
    given = {name: getattr(arguments, name) for name in OF_LOSSES}
    parameters = {name: value for name, value in given.items() if value is not None}
    return parameters | {"error_scale": arguments.error_scale, "random_state": arguments.seed}
