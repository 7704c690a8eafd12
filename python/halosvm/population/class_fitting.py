"""Fits of a population for each class: where they start, what small classes borrow, which is best.

In:  measurements with labels and weights, and the parameters of ClassPopulations.
Out: the fit of the core to all of them; left-out log losses of the candidates.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.parameters import thread_count

from .fitting import print_progress, prior_weight_of
from .measurements import robust_scale, values_or_limits
from .populations import class_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .class_populations import ClassPopulations
    from .populations import Form

    Array = NDArray[np.float64]
    Rows = NDArray[np.intp]
    Fold = tuple[Rows, Rows]

# Rows, spread over all, that choose among candidates and start the fit to all. With them log losses
# are known to about 0.01 and differences between candidates to a few thousandths; more would
# decide between candidates that are as good as equal.
ROWS_OF_CHOICE = 2000
# Of each class at least so many, where there are.
_LEAST_OF_CLASS = 200
# Fits that are only compared stop here, for each row: far below what their log losses differ by.
_TOL_OF_CHOICE = 1e-3
_FOLDS = 5
_FLOOR = 1e-6  # what `reg_covar` of EmpiricalBayes is by default


class Candidate(NamedTuple):
    """Number of components of each class, and whether all have one covariance."""

    n_components: int
    tied: bool


@dataclass(frozen=True)
class LabelledRows:
    """Measurements with the codes of their classes and their numbers of repetitions."""

    data: Gaussians
    codes: Rows
    weights: Array
    n_classes: int

    def part(self, rows: Rows) -> LabelledRows:
        """Return some of the rows."""
        return LabelledRows(self.data[rows], self.codes[rows], self.weights[rows], self.n_classes)

    def shares(self) -> Array:
        """Return the part of each class of the weights."""
        counts = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        shares: Array = counts / counts.sum()
        return shares

    def subset(self, random_state: np.random.RandomState) -> Rows:
        """Return at most about `ROWS_OF_CHOICE` rows, in order, of each class its part."""
        n = len(self.codes)
        if n <= ROWS_OF_CHOICE:
            return np.arange(n)
        chosen = []
        for c in range(self.n_classes):
            rows = np.flatnonzero(self.codes == c)
            part = max(_LEAST_OF_CLASS, ROWS_OF_CHOICE * len(rows) // n)
            if part < len(rows):
                rows = random_state.choice(rows, part, replace=False)
            chosen.append(rows)
        return np.sort(np.concatenate(chosen))


class ClassFitter:
    """Fits of several candidates to the same rows; what one finds out serves the next."""

    def __init__(
        self,
        settings: ClassPopulations,
        form: Form,
        rows: LabelledRows,
        *,
        tol: float | None = None,
    ) -> None:
        self.settings, self.form, self.rows = settings, form, rows
        self.tol = float(settings.tol if tol is None else tol)
        self.n_threads = thread_count(settings.n_threads)
        self.mean, self.variance = robust_scale(rows.data, rows.weights)
        self.random_state = check_random_state(settings.random_state)
        self._tied: dict[int, _core.PopulationFit] = {}
        self._points: Array | None = None

    def fit(self, candidate: Candidate) -> _core.PopulationFit:
        """Return the fit of a candidate from its own start."""
        if candidate.tied:
            return self._tied_fit(candidate.n_components)
        start = self._start(candidate.n_components)
        borrowed = self._tied_fit(candidate.n_components)["population"]
        return self.fit_from(start.labelled(self._classes(start), False), borrowed)

    def fit_from(
        self, start: _core.Population, borrowed: _core.Population | None
    ) -> _core.PopulationFit:
        """Return the fit from a start.

        Parameters
        ----------
        start : Population
            Of all classes, tied or not.
        borrowed : Population or None
            Whose covariance, one for all, joins the members of each component that has its own.
        """
        settings = self.settings
        weight = prior_weight_of(0.0 if settings.reg_covar == 0 else _FLOOR, self.rows.weights)
        prior, scatter = weight * self.variance, None
        if borrowed is not None and settings.reg_covar != 0:
            members = self._members(settings.reg_covar)
            weight += members
            variances, matrix = self.form.common(borrowed)
            prior = prior + members * variances
            scatter = None if matrix is None else members * matrix
        return _core.fit_population(
            self.rows.data.core_view(missing=True, limits=True),
            start,
            labels=self.rows.codes,
            sample_weight=self.rows.weights,
            max_iterations=int(settings.max_iter),
            tolerance=self.tol,
            prior=prior,
            prior_weight=weight,
            prior_scatter=scatter,
            scale=np.sqrt(self.variance),
            n_threads=self.n_threads,
            report=print_progress if settings.verbose and self.tol == settings.tol else None,
            limits=self.rows.data.limits,
        )

    def _members(self, reg_covar: float | str) -> float:
        # With 60 to 300 rows of 3 to 10 features, log losses of new rows for a quarter to three
        # times as many lay within 0.02 of each other.
        return float(self.rows.data.shape[1]) if isinstance(reg_covar, str) else float(reg_covar)

    def _tied_fit(self, k: int) -> _core.PopulationFit:
        if k not in self._tied:
            start = self._start(k)
            self._tied[k] = self.fit_from(self.form.tied(start, self._classes(start)), None)
        return self._tied[k]

    def _start(self, k: int) -> _core.Population:
        """Return a start: the means of the classes, or clusters of each class."""
        rows, shares = self.rows, self.rows.shares()
        if k == 1:
            means, scatter = self._within()
            start = self.form.population(shares, means, np.stack([scatter] * rows.n_classes))
            return start.labelled(np.arange(rows.n_classes), False)
        one = self._tied_fit(1)["population"]
        whole = self.form.covariances(one)[0]
        if self._points is None:
            self._points = self._posterior_means(one)
        return class_start(
            self.form,
            k,
            self._points,
            rows.codes,
            rows.weights,
            whole,
            np.sqrt(self.variance),
            self.random_state,
        )

    def _within(self) -> tuple[Array, Array]:
        """Return the mean of each class, and the pooled scatter about these."""
        rows = self.rows
        x = values_or_limits(rows.data)
        means = np.tile(self.mean, (rows.n_classes, 1))
        apart = np.zeros_like(x)
        for c in range(rows.n_classes):
            mine = rows.codes == c
            there = ~np.isnan(x[mine])
            weights = rows.weights[mine, np.newaxis] * there
            total = weights.sum(axis=0)
            sums = np.sum(np.where(there, x[mine], 0.0) * weights, axis=0)
            means[c] = np.divide(sums, total, out=means[c], where=total > 0)
            apart[mine] = np.where(there, x[mine] - means[c], 0.0)
        scatter = (rows.weights[:, np.newaxis] * apart).T @ apart / rows.weights.sum()
        # A feature that does not vary within classes has a spread to begin with.
        scatter[np.diag_indices_from(scatter)] += 1e-3 * self.variance
        return means, scatter

    def _posterior_means(self, one: _core.Population) -> Array:
        rows = self.rows
        points = np.empty(rows.data.shape)
        for c in range(rows.n_classes):
            mine = np.flatnonzero(rows.codes == c)
            own = rows.data[mine]
            points[mine] = _core.true_value_posteriors(
                one.of_class(c),
                own.core_view(missing=True, limits=True),
                True,
                covariances=False,
                n_threads=self.n_threads,
                limits=own.limits,
            )["means"]
        return points

    @staticmethod
    def _classes(start: _core.Population) -> Rows:
        return np.asarray(start.classes, dtype=np.intp)


def log_densities(populations: list[_core.Population], data: Gaussians, n_threads: int) -> Array:
    """Return log p(x_i | S_i, c) of each row and class; -inf where it underflows."""
    view, limits = data.core_view(missing=True, limits=True), data.limits
    columns = [_core.measurement_log_density(each, view, n_threads, limits) for each in populations]
    return np.column_stack(columns)


def choose(
    settings: ClassPopulations,
    form: Form,
    rows: LabelledRows,
    candidates: list[Candidate],
    priors: Array | None,
    folds: list[Fold],
) -> tuple[Candidate, dict[str, Any]]:
    """Return the candidate of the least left-out log loss, and the table of those tried.

    Candidates come in the order of their number of components, tied ones first, and end where one
    component more does not lower the least log loss. In trials the simplest candidate within a
    standard error was worse or as good for new examples, never better.
    """
    tol = max(settings.tol, _TOL_OF_CHOICE)
    parts = [rows.part(train) for train, _ in folds]
    fitters = [ClassFitter(settings, form, part, tol=tol) for part in parts]
    threads = thread_count(settings.n_threads)
    losses = np.full((len(candidates), len(rows.codes)), np.nan)
    counts = [each.n_components for each in candidates]
    least = np.inf
    for k in sorted(set(counts)):
        tried = [i for i, count in enumerate(counts) if count == k]
        for (_, test), part, fitter in zip(folds, parts, fitters, strict=True):
            log_priors = np.log(part.shares() if priors is None else priors)
            held_out = rows.data[test]
            for i in tried:
                population = fitter.fit(candidates[i])["population"]
                of_class = [population.of_class(c) for c in range(rows.n_classes)]
                joint = log_densities(of_class, held_out, threads) + log_priors
                joint = np.maximum(joint, -np.finfo(np.float64).max / 4)
                log_proba = log_softmax(joint, axis=1)
                losses[i, test] = -log_proba[np.arange(len(test)), rows.codes[test]]
        judged = ~np.isnan(losses[tried[0]])
        reached = float((losses[tried][:, judged] @ rows.weights[judged]).min())
        if reached >= least:
            break
        least = reached
    candidates = candidates[: tried[-1] + 1]
    losses = losses[: len(candidates)]
    losses, weights = losses[:, judged], rows.weights[judged]

    def mean_and_error(values: Array) -> tuple[Array, Array]:
        total = weights.sum()
        mean = values @ weights / total
        error = np.sqrt((values - mean[:, np.newaxis]) ** 2 @ weights / total / max(total - 1, 1))
        return mean, error

    loss, error = mean_and_error(losses)
    best = int(loss.argmin())
    excess, of_difference = mean_and_error(losses - losses[best])
    table = {
        "n_components": np.array([each.n_components for each in candidates]),
        "tied": np.array([each.tied for each in candidates]),
        "log_loss": loss,
        "standard_error": error,
        "difference": excess,
        "difference_error": of_difference,
        "chosen": best,
    }
    return candidates[best], table


def folds_of(
    cv: Any,
    whole: LabelledRows,
    part: Rows,
    groups: NDArray[Any] | None,
    labels: list[Any],
    random_state: np.random.RandomState,
) -> list[Fold]:
    """Return folds as places in a part of the rows; each has some of each class to fit.

    Parameters
    ----------
    cv : int, None, splitter or iterable
        The last two are of the whole.
    whole : LabelledRows
        All rows.
    part : ndarray
        Those that the folds are made of.
    groups : ndarray or None
        Of all rows.
    labels : list
        Of the classes.
    """
    codes = whole.codes
    if isinstance(cv, numbers.Integral | None):
        n_folds = _FOLDS if cv is None else int(cv)
        if groups is None:
            return _drawn_folds(whole.part(part), n_folds, random_state)
        groups, codes, part = groups[part], codes[part], np.arange(len(part))
        n_folds = min(n_folds, len(np.unique(groups)))
        if n_folds < 2:
            raise ValueError("groups has one group; give n_components and tied, or two groups")
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        cv = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    splitter = check_cv(cv, codes, classifier=True)
    places = np.full(len(codes), -1)
    places[part] = np.arange(len(part))
    found = []
    for pair in splitter.split(np.zeros((len(codes), 1)), codes, groups):
        train, test = (places[rows][places[rows] >= 0] for rows in pair)
        lost = np.setdiff1d(codes, codes[part[train]])
        if lost.size:
            raise ValueError(
                f"class {labels[lost[0]]!r} has no rows where a part, or a group, is left out, so "
                "that log losses cannot be compared; split otherwise, or give n_components and tied"
            )
        if len(test):
            found.append((train, test))
    return found


def _drawn_folds(
    rows: LabelledRows, n_folds: int, random_state: np.random.RandomState
) -> list[Fold]:
    """Return folds that have of each class its part; copies of a row stay together.

    The only example of a class is never left out.
    """
    limits = rows.data.limits or ()
    variances = rows.data.covariances.variances()
    table = np.column_stack([rows.codes, rows.data.mean, variances, *limits])
    _, first, copies = np.unique(
        np.nan_to_num(table, nan=np.inf), axis=0, return_index=True, return_inverse=True
    )
    codes = rows.codes[first]
    fold = np.empty(len(first), dtype=np.intp)
    begin = 0
    for c in range(rows.n_classes):
        mine = random_state.permutation(np.flatnonzero(codes == c))
        fold[mine] = (begin + np.arange(len(mine))) % n_folds if len(mine) > 1 else -1
        begin += len(mine)
    of_row = fold[copies.reshape(-1)]
    return [
        (np.flatnonzero(of_row != i), np.flatnonzero(of_row == i))
        for i in range(n_folds)
        if (of_row == i).any()
    ]
