"""Populations behind errors of Student's t: their fit by expectation maximisation.

In:  a `Fitter` of populations for normal errors, and nu or None.
Out: the population, nu, and the way to it, as the core returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from halosvm import _core

from .fitting import Fitter, print_progress
from .heavy_tails import LEAST, Population, Sites, Tails, farthest, nodes_of, tilted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .heavy_tails import Expected

    Array = NDArray[np.float64]

NU_BOUNDS = 0.5, 200.0  # of what is estimated; more are as good as normal
_START = 4.0
_FIRST_NU = 5  # passes before nu is estimated, and between
_SAME_NU = 0.02  # of its logarithm
_WIDER = 0.1  # than the normal start, which may be singular, in units of the features' variances
_SWEEPS = 3  # of each pass
_MEMORY = 6  # of steps
_CELLS = 50_000  # by which nu is estimated, at most
_FACTOR = 2.0  # by which a pass changes nu, at most


class StudentFitter(Fitter):
    """Fits populations to measurements whose errors have heavy tails."""

    nu: float | None
    tails: Tails

    def with_tails(self, nu: float | None) -> StudentFitter:
        """Take errors for Student's t with nu degrees of freedom, None to estimate them."""
        used = self.weights > 0  # others may hold any number
        self.data, self.weights = self.data[used], self.weights[used]
        self.nu = nu
        self.tails = Tails(self.data, self.form, self.n_threads)
        return self

    def log_density(self, result: Any) -> Array:
        """Return the log density of each row under a fit."""
        return self.tails.expect(result["parts"], result["nu"]).density

    def fit_from(self, start: _core.Population, tol: float | None = None) -> Any:
        """Return a fit that begins with one for normal errors of a like size.

        A pass is a few sweeps of expectation propagation, from the sites of the last one, and the
        step of a normal population with the moments of the posteriors. Steps are extrapolated from
        the last ones (Anderson); where the likelihood falls, the plain step is taken.
        """
        settings = self.settings
        tol = float(settings.tol) if tol is None else tol
        nu = _START if self.nu is None else self.nu
        population = self._normal_start(start, nu, tol)
        sites: Sites | None = None
        history: list[float] = []
        best: tuple[float, Population, float] | None = None
        plain: Population | None = None
        leaps = _Leaps(self.scale)
        n, left = float(self.weights.sum()), np.inf
        passes, converged, nu_from = 0, False, _FIRST_NU
        while passes < int(settings.max_iter):
            sweeps, close = (_SWEEPS, 1e-3) if passes else (20, 1e-6)
            found = self.tails.expect(population, nu, sites, sweeps=sweeps, tol=close)
            value = float(self.weights @ found.density) + self._log_prior(population)
            passes += 1
            if plain is not None and not value >= history[-1] - tol * n:
                population, plain = plain, None  # the leap went too far
                leaps.forget()
                continue
            sites = found.sites
            if best is None or value > best[0]:
                best = value, population, nu
            history.append(value)
            left = _expected_gain(history)
            if settings.verbose:
                print_progress(passes, value, left)
            done = left < tol * n
            if self.nu is None and (done or len(history) >= nu_from):
                other = self._better_nu(found, nu)
                done = done and abs(np.log(other / nu)) < _SAME_NU
                if not done:
                    nu, nu_from = other, len(history) + _FIRST_NU
                    leaps.forget()
            if done:
                converged = True
                break
            plain = self._step(found)
            population = leaps.next(population, plain)
        assert best is not None
        value, population, nu = best
        said = "the expected gain is below tol" if converged else "max_iter passes are used up"
        return {
            "population": self.form.population(*population),
            "parts": population,
            "nu": nu,
            "history": np.maximum.accumulate(history),
            "iterations": passes,
            "converged": converged,
            "predicted_gain": left,
            "message": said,
        }

    def _normal_start(self, start: _core.Population, nu: float, tol: float) -> Population:
        """Return the fit for normal errors of the same variance, or nearly; none is singular."""
        factor = np.sqrt(nu / (nu - 2.0)) if nu > 3.0 else np.sqrt(3.0)
        told = self.data
        self.data = told.replaced(covariances=told.covariances.scaled(np.array([factor])))
        normal = super().fit_from(start, max(tol, 1e-4))
        self.data = told
        weights, means, matrices = parts_of(normal["population"], self.form)
        return Population(weights, means, matrices + np.diag(_WIDER * self.scale**2))

    def _step(self, found: Expected) -> Population:
        """Return the population of these moments, the M step of spec N."""
        r = self.weights[:, np.newaxis] * found.responsibilities
        q = r.sum(axis=0)
        safe = np.maximum(q, 1e-300)
        means = np.einsum("nk,nkd->kd", r, found.means) / safe[:, np.newaxis]
        apart = found.means - means
        scatter = np.einsum("nk,nki,nkj->kij", r, apart, apart)
        scatter += np.einsum("nk,nkij->kij", r, found.matrices)
        scatter += np.diag(self.prior)
        V = scatter / (safe + self.prior_weight)[:, np.newaxis, np.newaxis]
        if not self.form.any_matrix:
            V = V * np.eye(V.shape[1])
        return Population(q / q.sum(), means, 0.5 * (V + V.transpose(0, 2, 1)))

    def _log_prior(self, population: Population) -> float:
        """-1/2 sum_k [tr(W V_k^-1) + w log|w W^-1 V_k|], as of the core."""
        if not self.prior_weight:
            return 0.0
        total = 0.0
        for weight, V in zip(population.weights, population.matrices, strict=True):
            if weight > 0:
                ratio = V * (self.prior_weight / self.prior[:, np.newaxis])
                trace = np.trace(np.linalg.solve(V, np.diag(self.prior)))
                total -= 0.5 * (trace + self.prior_weight * np.linalg.slogdet(ratio)[1])
        return float(total)

    def _better_nu(self, found: Expected, nu: float) -> float:
        """Return nu by what each value tells of it, given the others."""
        if found.cavities is None:
            return self._better_nu_of_rows(found, nu)
        r = self.weights[:, np.newaxis] * found.responsibilities
        component, row, column = np.nonzero(
            np.broadcast_to(self.tails.there & (self.tails.S > 0), found.cavities[0].shape)
            & (r.T[:, :, np.newaxis] > 1e-3)
        )
        step = max(1, len(row) // _CELLS)
        component, row, column = component[::step], row[::step], column[::step]
        mu, s2 = (each[component, row, column] for each in found.cavities)
        S = np.maximum(self.tails.S[row, column], LEAST * self.scale[column] ** 2)
        weight = r[row, component]
        far = farthest(S, mu, s2)

        def lost(log_nu: float) -> float:
            return -float(weight @ tilted(S, mu, s2, nodes_of(np.exp(log_nu), far))[0])

        return _near(lost, nu)

    def _better_nu_of_rows(self, found: Expected, nu: float) -> float:
        """Return nu by the density of all rows."""
        population = self._step(found)

        def lost(log_nu: float) -> float:
            return -float(self.weights @ self.tails.expect(population, np.exp(log_nu)).density)

        return _near(lost, nu)


class _Leaps:
    """Anderson's extrapolation of the last steps, in coordinates of which all are populations.

    These are logarithms of weights, means, and Cholesky factors with logarithms on the diagonal.
    """

    def __init__(self, scale: Array) -> None:
        self.scale = scale
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.points: list[Array] = []
        self.images: list[Array] = []

    def next(self, population: Population, plain: Population) -> Population:
        """Return the population to go to from one and the step that it takes."""
        if plain.weights.min() < 1e-8:
            return plain
        self.points = [*self.points, self._packed(population)][-_MEMORY:]
        self.images = [*self.images, self._packed(plain)][-_MEMORY:]
        if len(self.points) < 2:
            return plain
        steps = np.array(self.images) - np.array(self.points)
        changes, of_images = np.diff(steps, axis=0), np.diff(self.images, axis=0)
        parts = np.linalg.lstsq(changes.T, steps[-1], rcond=1e-6)[0]
        return self._unpacked(self.images[-1] - parts @ of_images, plain.means.shape)

    def _packed(self, population: Population) -> Array:
        weights, means, matrices = population
        L = np.linalg.cholesky(matrices / np.outer(self.scale, self.scale))
        d = means.shape[1]
        lower = np.tril_indices(d)
        own = np.arange(d)
        L[:, own, own] = np.log(L[:, own, own])
        return np.concatenate(
            [np.log(weights), (means / self.scale).ravel(), L[:, lower[0], lower[1]].ravel()]
        )

    def _unpacked(self, packed: Array, shape: tuple[int, ...]) -> Population:
        k, d = shape
        weights = np.exp(packed[:k] - packed[:k].max())
        means = packed[k : k + k * d].reshape(k, d) * self.scale
        L = np.zeros((k, d, d))
        lower, own = np.tril_indices(d), np.arange(d)
        L[:, lower[0], lower[1]] = packed[k + k * d :].reshape(k, -1)
        L[:, own, own] = np.exp(np.clip(L[:, own, own], -50.0, 50.0))
        L *= self.scale[:, np.newaxis]
        return Population(weights / weights.sum(), means, L @ L.transpose(0, 2, 1))


def parts_of(population: _core.Population, form: Any) -> Population:
    """Return a population of the core as dense arrays."""
    return Population(population.weights, population.means, form.covariances(population).to_full())


def _near(lost: Any, nu: float) -> float:
    low, high = np.log(np.clip([nu / _FACTOR, nu * _FACTOR], *NU_BOUNDS))
    found = minimize_scalar(lost, bounds=(low, high), method="bounded", options={"xatol": 5e-3})
    return float(np.exp(found.x))


def _expected_gain(history: list[float]) -> float:
    """Return what further passes are expected to gain: as much as the last ones did."""
    return float(np.abs(np.diff(history[-4:])).sum()) if len(history) > 3 else np.inf
