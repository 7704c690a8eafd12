"""Classification and regression: a table and a machine in; labels or values and their judge out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import get_scorer, make_scorer, mean_pinball_loss
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.multiclass import _ovr_decision_function

from halosvm.calibration.curves import margin_log_loss
from halosvm.files.tables.labels import parse_labels
from halosvm.files.tables.trouble import TableError
from halosvm.linear.residual_losses import LOSSES as REGRESSION_LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from halosvm.files.tables.table import Table

C_GRID = tuple(float(value) for value in np.logspace(-3, 1, 9))


@dataclass(frozen=True)
class Task:
    """What is to be learnt, and how to judge it.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        Labels or values.
    fit_params : dict
        What `fit` takes besides: weights, batches, and of a regression the errors of the values.
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
    stratified : bool
        Whether each fold is to have a part of each class.
    scoring : callable
        The scorer, which takes weights.
    choosing : callable
        The scorer by which C is chosen.
    criterion : str
        What that measures.
    groups : ndarray of str or None
        What each row belongs to, where rows of one are to stay together.
    """

    y: npt.NDArray[Any]
    fit_params: dict[str, npt.NDArray[Any]]
    summary: dict[str, str]
    largest: int
    too_few: str
    grid: tuple[float, ...]
    measure: str
    told: Callable[[float], str]
    stratified: bool
    scoring: Any
    choosing: Any
    criterion: str
    groups: npt.NDArray[np.str_] | None = None

    def by_groups(self, groups: npt.NDArray[np.str_]) -> Task:
        """Return the task with splits that leave the rows of a group together."""
        parts = [self.y == label for label in np.unique(self.y)] if self.stratified else [...]
        fewest = min(len(np.unique(groups[part])) for part in parts)
        too_few = "one group in a class" if self.stratified else "one group"
        largest = min(self.largest, fewest)
        return replace(
            self, groups=groups, largest=largest, too_few=too_few if fewest < 2 else self.too_few
        )

    def with_batches(self, batch: npt.NDArray[np.str_]) -> Task:
        """Return the task of rows of batches."""
        return replace(
            self,
            fit_params=self.fit_params | {"batch": batch},
            scoring=_OfBatches(self.scoring),
            choosing=_OfBatches(self.choosing),
        )

    def folds(self, n_folds: int, seed: int) -> Any:
        """Return the splitter of the rows, or the splits where rows have groups."""
        if self.groups is None:
            kind = StratifiedKFold if self.stratified else KFold
            return kind(n_folds, shuffle=True, random_state=seed)
        by_group = StratifiedGroupKFold if self.stratified else GroupKFold
        options = {"shuffle": True, "random_state": seed} if self.stratified else {}
        rows = np.empty((len(self.y), 0))
        return list(by_group(n_folds, **options).split(rows, self.y, self.groups))


def classification(table: Table, column: str | None, machine: Any) -> Task:
    """Return the task of telling labels.

    C is chosen by `margin_log_loss`, not by accuracy, which may be highest where the larger class
    alone is predicted.
    """
    counts = Counter(table.labels)
    if len(counts) < 2:
        where = "the label" if column is None else f"column {column!r}"
        raise TableError(f"{table.path}: {where} holds one class only: {table.labels[0]!r}")
    labels = parse_labels(table.labels)
    pairs = getattr(machine, "decision_function_shape", "ovr") == "ovo" and len(counts) > 2
    options = {"classes": np.unique(labels), "pairs": pairs}
    return Task(
        labels,
        _weights(table),
        {"classes": ", ".join(f"{label} ({count})" for label, count in sorted(counts.items()))},
        min(counts.values()),
        "a class has one row",
        _grid(table),
        "accuracy",
        lambda score: f"{100 * score:.2f} %",
        stratified=True,
        scoring=_weighted(get_scorer("accuracy")),
        choosing=_weighted(
            make_scorer(_of_margins, response_method="decision_function", **options)
        ),
        criterion="log loss",
    )


def regression(table: Table, machine: Any) -> Task:
    """Return the task of telling values."""
    y, std = table.values, table.values_std
    assert y is not None
    # |w|^2 grows with the square of the unit of the values, and the losses with their degree
    about_mean = y - np.average(y, weights=table.weights)
    unit = float(np.sqrt(np.average(about_mean**2, weights=table.weights))) or 1.0
    grid = _grid(table, unit ** (2 - REGRESSION_LOSSES[machine.loss].degree))
    errors = "no error column" if std is None else "with an error column"
    measure, told = "R^2", lambda score: f"{score:.4f}"
    scorer = get_scorer("r2")
    if machine.loss == "pinball":
        # R^2 would favour the mean where another quantile is asked for
        measure, told = "pinball loss", lambda score: f"{-score:.6g}"
        scorer = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=machine.quantile)
    scoring = _weighted(scorer)
    return Task(
        y,
        _weights(table) | ({} if std is None else {"y_std": std}),
        {"values": f"{y.min():g} to {y.max():g}, {errors}"},
        len(y) // 2,  # R^2 needs two rows
        "1 row" if len(y) == 1 else f"{len(y)} rows",
        grid,
        measure,
        told,
        stratified=False,
        scoring=scoring,
        choosing=scoring,
        criterion=measure,
    )


def _of_margins(
    y: npt.NDArray[Any],
    decision: npt.NDArray[np.float64],
    *,
    classes: npt.NDArray[Any],
    pairs: bool,
    sample_weight: npt.NDArray[np.float64] | None = None,
) -> float:
    if pairs:
        decision = _ovr_decision_function(decision < 0, -decision, len(classes))
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    return -margin_log_loss(decision, np.searchsorted(classes, y), weights)


def _grid(table: Table, unit: float = 1.0) -> tuple[float, ...]:
    """Return the values of C to try, which stand for weights of 1 in the mean.

    C multiplies the weights: what counts is their product, whatever the weights are counted in.
    """
    used = np.ones(1) if table.weights is None else table.weights[table.weights > 0.0]
    mean = float(used.mean()) if used.size else 1.0
    return tuple(C * (unit / mean) for C in C_GRID)


def _weights(table: Table) -> dict[str, npt.NDArray[np.float64]]:
    return {} if table.weights is None else {"sample_weight": table.weights}


class _OfBatches:
    """A scorer of pipelines whose steps before the last take the batches of rows."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer
        self._request = MetadataRequest(owner=self)
        for name in ("batch", "sample_weight"):
            self._request.score.add_request(param=name, alias=True)

    def get_metadata_routing(self) -> Any:
        """Return what it asks for."""
        return self._request

    def __call__(self, pipeline: Any, X: Any, y: Any, *, batch: Any, **weights: Any) -> float:
        seen = pipeline[:-1].transform(X, batch=batch)
        return float(self.scorer(pipeline[-1], seen, y, **weights))


def _weighted(scorer: Any) -> Any:
    return scorer.set_score_request(sample_weight=True)
