"""Fits of populations: which starts and how many components are tried.

In:  measurements, their weights, and the parameters of EmpiricalBayes.
Out: the best fit of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.parameters import thread_count

from .measurements import robust_scale
from .populations import DIAGONAL, Form, drawn_start, given_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .empirical_bayes import EmpiricalBayes

    Array = NDArray[np.float64]

_MOST_COMPONENTS = 10


class Fitter:
    """Fits populations of several sizes to the same data."""

    def __init__(
        self, settings: EmpiricalBayes, data: Gaussians, weights: Array, form: Form
    ) -> None:
        self.settings, self.data, self.weights, self.form = settings, data, weights, form
        self.n_threads = thread_count(settings.n_threads)
        self.mean, variance = robust_scale(data, weights)
        self.scale = np.sqrt(variance)
        self.prior = float(settings.reg_covar) * variance
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
            densities = _core.measurement_log_density(
                result["population"], self.data.core_view(missing=True), self.n_threads
            )
            n_parameters = self.form.n_parameters(k, self.data.shape[1])
            criterion = float(n_parameters * np.log(n) - 2.0 * self.weights @ densities)
            if criterion < lowest:
                lowest, best, chosen = criterion, result, k
            elif k >= chosen + 2:
                break
        return best, chosen

    def fit_best(self, n_components: int) -> Any:
        """Return the fit of the highest likelihood of all starts."""
        best = None
        for _ in range(1 if n_components == 1 else self.settings.n_init):
            result = self._fit_from(self._start(n_components))
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
            self.data.core_view(missing=True),
            True,
            covariances=False,
            n_threads=self.n_threads,
        )["means"]
        mean = np.average(points, axis=0, weights=self.weights)
        apart = points - mean
        scatter = (self.weights[:, np.newaxis] * apart).T @ apart / self.weights.sum()
        scatter[np.diag_indices_from(scatter)] = np.maximum(np.diag(scatter), self.scale**2)
        return self.form.population(np.ones(1), mean[np.newaxis], scatter[np.newaxis])

    def _posterior_means(self) -> tuple[Array, Array, Array]:
        """Return posterior means under one component, their weights, and its covariance."""
        one = self._fit_from(self._single_start(), tol=1.0)["population"]
        points = _core.true_value_posteriors(
            one,
            self.data.core_view(missing=True),
            True,
            covariances=False,
            n_threads=self.n_threads,
        )["means"]
        used = self.weights > 0
        return points[used], self.weights[used], self.form.covariances(one)[0]

    def _fit_from(self, start: _core.Population, tol: float | None = None) -> Any:
        settings = self.settings
        return _core.fit_population(
            self.data.core_view(missing=True),
            start,
            sample_weight=self.weights,
            max_iterations=int(settings.max_iter),
            tolerance=float(settings.tol) if tol is None else tol,
            prior=self.prior,
            scale=self.scale,
            n_threads=self.n_threads,
            report=_print_progress if settings.verbose and tol is None else None,
        )


def _print_progress(iteration: int, log_likelihood: float, gain: float) -> None:
    print(
        f"pass {iteration:>6}   log likelihood {log_likelihood:.8e}   predicted gain {gain:.1e}",
        flush=True,
    )
