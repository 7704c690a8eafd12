"""Fits of populations: which starts and how many components are tried.

In:  measurements, their weights, and the parameters of EmpiricalBayes.
Out: the best fit of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtr
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.parameters import thread_count
from halosvm.core.progress import say
from halosvm.core.user_warning import warn_user

from .fixed_parts import flags_of
from .measurements import robust_scale
from .populations import DIAGONAL, Form, drawn_start, given_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .empirical_bayes import EmpiricalBayes

    Array = NDArray[np.float64]

_MOST_COMPONENTS = 10
_MOST_NAMED = 10
_ROWS_OF_CHECK = 4096
_LARGEST_COUNT = 2**53  # all larger numbers are whole
_CHANCE = 1e-6
# Log likelihoods of dependent features round to about 1e-16 over this, for each row.
_RESOLUTION = 1e-9


def prior_weight_of(reg_covar: float, weights: Array) -> float:
    """Return how many examples of a feature's own variance join each component, if any."""
    return max(float(reg_covar), _RESOLUTION * float(weights.sum())) if reg_covar > 0 else 0.0


class Fitter:
    """Fits populations of several sizes to the same data."""

    def __init__(
        self, settings: EmpiricalBayes, data: Gaussians, weights: Array, form: Form
    ) -> None:
        self.settings, self.data, self.form = settings, data, form
        self.weights = as_repetitions(weights)
        self.n_threads = thread_count(settings.n_threads)
        self.mean, variance = robust_scale(data, self.weights)
        self.scale = np.sqrt(variance)
        self.prior_weight = prior_weight_of(settings.reg_covar, self.weights)
        self.prior = self.prior_weight * variance
        self.random_state = check_random_state(settings.random_state)
        self.points: tuple[Array, Array, Array] | None = None

    def fit_by_criterion(self) -> tuple[Any, int]:
        """Take components while the Bayesian information criterion falls."""
        n = self.weights.sum()
        best, chosen = None, 0
        lowest = np.inf
        most = min(_MOST_COMPONENTS, int((self.weights > 0).sum()))
        for k in range(1, most + 1):
            result = self.fit_best(k)
            densities = self.log_density(result)
            tied = self.settings.tied
            n_parameters = self.form.n_parameters(k, self.data.shape[1], tied=tied)
            criterion = float(n_parameters * np.log(n) - 2.0 * self.weights @ densities)
            if criterion < lowest:
                lowest, best, chosen = criterion, result, k
            elif k >= chosen + 2:
                break
        return best, chosen

    def log_density(self, result: Any) -> Array:
        """Return the log density of each row under a fit."""
        return _core.measurement_log_density(
            result["population"], self.view(), self.n_threads, self.data.limits
        )

    def fit_best(self, n_components: int) -> Any:
        """Return the fit of the highest likelihood of all starts."""
        best = None
        for _ in range(1 if n_components == 1 else self.settings.n_init):
            start = self._start(n_components)
            if self.settings.tied:
                start = self.form.tied(start, np.zeros(n_components, dtype=np.intp))
            if self.settings.fixed:
                start = start.holding(*flags_of(self.settings.fixed, n_components))
            result = self.fit_from(start)
            if best is None or result["history"][-1] > best["history"][-1]:
                best = result
        return best

    def _start(self, k: int) -> _core.Population:
        init = self.settings.init
        if not isinstance(init, str):
            return given_start(init, self.form, k, self.data.shape[1])
        if k == 1:
            return self._single_start()
        if self.points is None:
            self.points = self._posterior_means()
        points, weights, whole = self.points
        return drawn_start(
            init, self.form, k, points, weights, whole, self.scale, self.random_state
        )

    def _single_start(self) -> _core.Population:
        """Independent features; for factors, those of the posterior means under that."""
        whole = np.diag(self.scale**2)[np.newaxis]
        if not self.form.has_factors:
            return self.form.population(np.ones(1), self.mean[np.newaxis], whole)
        diagonal = DIAGONAL.population(np.ones(1), self.mean[np.newaxis], whole)
        points = _core.true_value_posteriors(
            diagonal,
            self.view(),
            True,
            covariances=False,
            n_threads=self.n_threads,
            limits=self.data.limits,
        )["means"]
        mean = np.average(points, axis=0, weights=self.weights)
        apart = points - mean
        scatter = (self.weights[:, np.newaxis] * apart).T @ apart / self.weights.sum()
        scatter[np.diag_indices_from(scatter)] = np.maximum(np.diag(scatter), self.scale**2)
        return self.form.population(np.ones(1), mean[np.newaxis], scatter[np.newaxis])

    def _posterior_means(self) -> tuple[Array, Array, Array]:
        """Return posterior means under one component, their weights, and its covariance."""
        one = self.fit_from(self._single_start(), tol=1e-3)["population"]
        points = _core.true_value_posteriors(
            one,
            self.view(),
            True,
            covariances=False,
            n_threads=self.n_threads,
            limits=self.data.limits,
        )["means"]
        used = self.weights > 0
        return points[used], self.weights[used], self.form.covariances(one)[0]

    def fit_from(self, start: _core.Population, tol: float | None = None) -> Any:
        """Return the fit of the core that begins with a population."""
        settings = self.settings
        return _core.fit_population(
            self.view(),
            start,
            labels=np.zeros(len(self.data), dtype=np.intp) if start.classes else (),
            sample_weight=self.weights,
            max_iterations=int(settings.max_iter),
            tolerance=float(settings.tol) if tol is None else tol,
            prior=self.prior,
            prior_weight=self.prior_weight,
            scale=self.scale,
            n_threads=self.n_threads,
            report=print_progress if settings.verbose and tol is None else None,
            limits=self.data.limits,
        )

    def view(self) -> _core.Gaussians:
        """Return the core's view of the data, of which values may be missing or limited."""
        return self.data.core_view(missing=True, limits=True)


def require_start(init: Any, n_components: int | str) -> None:
    """Raise unless `init` is a word or the components of a start."""
    if isinstance(init, str):
        if init not in ("kmeans", "random"):
            raise ValueError(f"init must be one of kmeans, random; got {init!r}")
    elif not isinstance(init, tuple) or len(init) != 3:
        raise TypeError(
            "init must be 'kmeans', 'random', or a tuple of weights, means and covariances, "
            f"got {init!r}"
        )
    elif n_components == "bic":
        raise ValueError("init holds the components of a start, but n_components is 'bic'")


def as_repetitions(weights: Array) -> Array:
    """Return weights as numbers of repetitions: whole numbers are, others say how rows compare.

    Those are scaled to the sum (sum w)^2 / sum w^2, the number of rows of equal weights that would
    tell as much: n for n equal weights, whatever they sum to.
    """
    if weights.max() < _LARGEST_COUNT and np.array_equal(weights, np.rint(weights)):
        return weights
    part = weights / weights.max()  # keeps squares within the range of double
    effective = part.sum() ** 2 / (part @ part)
    repetitions: Array = part * (effective / part.sum())
    return repetitions


def warn_of_columns(data: Gaussians, weights: Array) -> None:
    """Warn of features whose measurements do not tell what their true values are like."""
    counted = (weights > 0)[:, np.newaxis]
    counts = np.sum(~np.isnan(data.mean) & counted, axis=0)
    limited: NDArray[np.bool_] = np.zeros(len(counts), dtype=bool)
    if data.limits is not None:
        given = [~np.isnan(each) & counted for each in data.limits]
        below, above = (np.asarray(each.any(axis=0)) for each in given)
        limited = below | above
        _warn(
            data,
            (counts == 0) & (below != above),
            "limits on one side and no value: they do not tell where the true values lie, which "
            "the fit moves away from them without end",
        )
    _warn(
        data,
        (counts == 0) & ~limited,
        "no value: nothing is known of the true values, which are taken for N(0, 1); leave it out",
    )
    _warn(
        data,
        (counts == 1) & ~limited,
        "one value: it does not tell how much true values differ, which is taken for almost 0",
    )
    rows = np.flatnonzero(weights > 0)
    rows = rows[:: max(1, len(rows) // _ROWS_OF_CHECK)]
    values, errors = data.mean[rows], data.covariances[rows].variances()
    too_large = [_errors_are_too_large(*column) for column in zip(values.T, errors.T, strict=True)]
    _warn(
        data,
        np.array(too_large),
        "values that differ far less than their errors let expect: if the errors are not too "
        "large, as in another unit, all true values are as good as equal",
    )


def _errors_are_too_large(x: Array, error: Array) -> bool:
    """Whether the squared deviations from one mean, over the errors, are too small for chance."""
    there = ~np.isnan(x)
    x, error = x[there].astype(np.float64), error[there].astype(np.float64)
    if len(x) < 2 or not error.min() > 0:
        return False
    w = error.min() / error
    squares = float(w @ (x - w @ x / w.sum()) ** 2 / error.min())
    return bool(chdtr(len(x) - 1, squares) < _CHANCE)


def _warn(data: Gaussians, concerned: NDArray[np.bool_], what: str) -> None:
    columns = np.flatnonzero(concerned)
    if not len(columns):
        return
    names = data.feature_names
    named = [str(j) if names is None else f"{j} ({names[j]})" for j in columns[:_MOST_NAMED]]
    named += ["..."] * (len(columns) > _MOST_NAMED)
    which = "column" if len(columns) == 1 else "each of the columns"
    warn_user(f"X: {which} {', '.join(named)} has {what}", UserWarning)


def print_progress(iteration: int, log_likelihood: float, gain: float) -> None:
    """Print a line of what a pass over the data has reached."""
    say(f"pass {iteration:>6}   log likelihood {log_likelihood:.8e}   predicted gain {gain:.1e}")
