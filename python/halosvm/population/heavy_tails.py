"""Errors with heavy tails, Student's t: measurements and a population in; posteriors out.

An error is normal with the variance S / u, and u is drawn from a gamma distribution of the mean 1
(spec O.5). The integral over u is a sum over nodes. Where errors are independent, each value has
its own u: expectation propagation gives it a normal site, a factor of the posterior, by which the
moments are right if those of all others are; one value alone is exact. Otherwise a row has one u,
and its posterior is the mixture of those of all nodes, which is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln, logsumexp, polygamma

from halosvm import _core
from halosvm.gaussians.covariance_kinds import storage_of

from .populations import posterior_covariances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .populations import Form

    Array = NDArray[np.float64]

_STEP = 0.6  # between nodes, in standard deviations of log u, and at most 0.5
_LONGEST = 0.5  # for the sum is as good as exp(-pi^2 / step), or better
_ENDS = 1e-6, 1e-10  # what is left out of u on either side, where no value is far off
_FAR = 16.0  # squared deviation over its variance from which on a value is
_FALL = 15.0  # logarithm of what is left out below the u of the farthest value
LEAST = 1e-8  # variance of an error that is told smaller, over that of the feature
_BLOCK = 1 << 18  # numbers of nodes of rows at a time
_NODES = 32  # about as many there are
_HALVINGS = 40


class Population(NamedTuple):
    """Weights (k,), means (k, d) and matrices (k, d, d) of the components."""

    weights: Array
    means: Array
    matrices: Array


class Sites(NamedTuple):
    """exp(-tau v^2 / 2 + eta v), v counted from the measured value; (k, n, d) each."""

    tau: Array
    eta: Array


class Expected(NamedTuple):
    """What a population tells of measurements.

    Attributes
    ----------
    log_density : ndarray of shape (n, k)
        log a_k p(x_i | k).
    means, matrices : ndarray of shape (n, k, d) and (n, k, d, d)
        Posteriors of the true values under each component.
    sites : Sites or None
        To begin with next time.
    cavities : tuple of ndarray, each of shape (k, n, d), or None
        Mean, from the measured value, and variance of a true value by all that is known but its own
        measurement.
    """

    log_density: Array
    means: Array
    matrices: Array
    sites: Sites | None = None
    cavities: tuple[Array, Array] | None = None

    @property
    def density(self) -> Array:
        """The log density of each row, (n,)."""
        found: Array = logsumexp(self.log_density, axis=1)
        return found

    @property
    def responsibilities(self) -> Array:
        """Parts of the components, (n, k)."""
        found: Array = np.exp(self.log_density - self.density[:, np.newaxis])
        return found


def nodes_of(nu: float, farthest: float, size: int = 1) -> tuple[Array, Array]:
    """Return nodes u of the gamma distribution with shape and rate nu / 2, and log weights.

    The trapezoidal rule in log u, whose error falls exponentially with the number of nodes.

    Parameters
    ----------
    nu : float
    farthest : float
        As `farthest` finds it: u is as small as values that far off need it.
    size : int
        Number of values that share a u.
    """
    shape = 0.5 * nu
    low, high = (np.log(gammaincinv(shape, p) / shape) for p in (_ENDS[0], 1.0 - _ENDS[1]))
    width = np.sqrt(polygamma(1, shape + 0.5 * size))
    # Below the u of a value so far off, the density falls as exp(shape log u), or sooner.
    below = max(6.0 * width, _FALL / (shape + 0.5 * size))
    low = min(low, np.log((nu + size) / (nu + farthest)) - below)
    step = min(_STEP * width, _LONGEST)
    log_u = np.arange(low, high + step, step)
    log_weights = shape * (log_u - np.exp(log_u))
    whole = np.log(step) + shape * np.log(shape) - gammaln(shape)
    return np.exp(log_u), log_weights + whole


def farthest(S: Array, mu: Array, s2: Array) -> float:
    """Return the largest square of a deviation over S, of those beyond what s2 + S lets expect."""
    squares = np.square(mu)
    far = squares > _FAR * (s2 + S)
    return float(np.max(squares / S, where=far, initial=_FAR))


def tilted(
    S: Array, mu: Array, s2: Array, nodes: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Return log p(x), E[v | x] and Var[v | x] for v ~ N(mu, s2), counted from x."""
    u, log_weights = nodes
    own = S[..., np.newaxis] / u
    T = s2[..., np.newaxis] + own
    logs = log_weights - 0.5 * (np.log(T) + np.square(mu)[..., np.newaxis] / T)
    own /= T  # the part of mu, and of s2, that is left
    top = logs.max(axis=-1, keepdims=True)
    parts = np.exp(logs - top)
    total = parts.sum(axis=-1)
    left = np.einsum("...g,...g->...", parts, own) / total
    squares = np.einsum("...g,...g,...g->...", parts, own, own) / total
    log_z = top[..., 0] + np.log(total) - 0.5 * np.log(2.0 * np.pi)
    return log_z, mu * left, s2 * left + mu**2 * (squares - left**2)


class Tails:
    """Measurements whose errors have heavy tails; what a population tells of them."""

    def __init__(self, data: Gaussians, form: Form, n_threads: int) -> None:
        self.data, self.form, self.n_threads = data, form, n_threads
        self.by_cell = storage_of(data.covariances).independent
        self.there = ~np.isnan(data.mean)
        self.x = np.where(self.there, data.mean, 0.0)
        self.S = data.covariances.variances()

    def expect(
        self,
        population: Population,
        nu: float,
        sites: Sites | None = None,
        *,
        sweeps: int = 100,
        tol: float = 1e-6,
    ) -> Expected:
        """Return posteriors and densities; `sweeps` and `tol` are of the propagation."""
        if not self.by_cell:
            return self._of_rows(population, nu)
        n, d = self.x.shape
        k = len(population.weights)
        log_density, means = np.empty((n, k)), np.empty((n, k, d))
        matrices, tau, eta = np.empty((n, k, d, d)), np.empty((k, n, d)), np.empty((k, n, d))
        mu, s2 = np.empty((k, n, d)), np.empty((k, n, d))
        size = max(1, _BLOCK // (d * max(d, _NODES)))
        with np.errstate(divide="ignore"):  # a component without members
            log_weights = np.log(population.weights)
        for j in range(k):
            m, V = population.means[j], population.matrices[j]
            for begin in range(0, n, size):
                rows = slice(begin, begin + size)
                there = self.there[rows]
                S = np.maximum(self.S[rows], LEAST * np.diag(V))
                start = None if sites is None else (sites.tau[j, rows], sites.eta[j, rows])
                cells = _Cells(there, S, m - self.x[rows], V, nu, start)
                cells.propagate(sweeps, tol)
                log_density[rows, j] = cells.log_density + log_weights[j]
                means[rows, j], matrices[rows, j] = cells.b + self.x[rows], cells.B
                tau[j, rows], eta[j, rows] = cells.tau, cells.eta
                mu[j, rows], s2[j, rows] = cells.mu, cells.s2
        return Expected(log_density, means, matrices, Sites(tau, eta), (mu, s2))

    def _of_rows(self, population: Population, nu: float) -> Expected:
        """Add up the posteriors of all nodes, of rows that have one u each."""
        n, d = self.x.shape
        k = len(population.weights)
        core = self.form.population(*population)
        top = np.full((n, k), -np.inf)
        total, first = np.zeros((n, k)), np.zeros((n, k, d))
        second = np.zeros((n, k, d, d))
        origin = np.zeros((0, 0, 0))
        far = max(
            farthest(np.maximum(self.S, LEAST * own), np.where(self.there, m - self.x, 0.0), own)
            for m, own in zip(
                population.means, np.einsum("kjj->kj", population.matrices), strict=True
            )
        )
        for u, log_weight in zip(*nodes_of(nu, far, d), strict=True):
            data = self.data.replaced(covariances=self.data.covariances.scaled(np.array([u**-0.5])))
            view = data.core_view(missing=True)
            found = _core.true_value_posteriors(core, view, False, n_threads=self.n_threads)
            with np.errstate(divide="ignore"):
                parts = np.log(found["responsibilities"].reshape(n, k))
            density = _core.measurement_log_density(core, view, self.n_threads)
            logs = parts + density[:, np.newaxis] + log_weight
            means = found["means"].reshape(n, k, d)
            B = posterior_covariances(found).to_full().reshape(n, k, d, d)
            origin = origin if len(origin) == n else means
            apart = means - origin
            higher = np.maximum(top, logs)
            finite = np.isfinite(higher)
            old = np.where(finite, np.exp(top - np.where(finite, higher, 0.0)), 0.0)
            new = np.where(finite, np.exp(logs - np.where(finite, higher, 0.0)), 0.0)
            top, total = higher, total * old + new
            first = first * old[..., np.newaxis] + new[..., np.newaxis] * apart
            B = B + apart[..., :, np.newaxis] * apart[..., np.newaxis, :]
            second = (
                second * old[..., np.newaxis, np.newaxis] + new[..., np.newaxis, np.newaxis] * B
            )
        total_or_1 = np.where(total > 0, total, 1.0)
        mean = first / total_or_1[..., np.newaxis]
        matrices = second / total_or_1[..., np.newaxis, np.newaxis]
        matrices -= mean[..., :, np.newaxis] * mean[..., np.newaxis, :]
        with np.errstate(divide="ignore"):
            log_density = top + np.log(total)
        return Expected(log_density, mean + origin, matrices)


class _Cells:
    """Expectation propagation for some rows under one component; values count from those measured.

    Attributes
    ----------
    tau, eta : ndarray of shape (n, d)
        The sites.
    b, B : ndarray of shape (n, d) and (n, d, d)
        The posterior with them.
    mu, s2 : ndarray of shape (n, d)
        Of each value without its site.
    log_density : ndarray of shape (n,)
    """

    def __init__(
        self,
        there: NDArray[np.bool_],
        S: Array,
        m: Array,
        V: Array,
        nu: float,
        start: tuple[Array, Array] | None,
    ) -> None:
        self.there, self.S, self.m, self.V = there, S, m, V
        self.own = np.diag(V)
        self.nodes = nodes_of(nu, farthest(S, np.where(there, m, 0.0), self.own))
        if start is None:
            start = np.where(there, 1.0 / S, 0.0), np.zeros(S.shape)
        self.tau, self.eta = start
        self.b, self.B, self.log_volume, valid = self._posterior(self.tau, self.eta)
        if not valid.all():  # sites of another population
            tau = np.where(valid[:, np.newaxis], self.tau, np.where(there, 1.0 / S, 0.0))
            self.tau, self.eta = tau, np.where(valid[:, np.newaxis], self.eta, 0.0)
            self.b, self.B, self.log_volume, _ = self._posterior(self.tau, self.eta)

    def propagate(self, sweeps: int, tol: float) -> None:
        """Match the moments of all values at once, until they no longer change."""
        single = self.there.sum(axis=1) < 2  # where one step is exact
        for sweep in range(sweeps):
            variance = np.einsum("njj->nj", self.B)
            precision = 1.0 / variance - self.tau
            free = self.there & (precision > 1e-12 / self.own)
            self.s2 = np.where(free, 1.0 / np.where(free, precision, 1.0), self.own)
            self.mu = self.s2 * np.where(free, self.b / variance - self.eta, 0.0)
            log_z, mean, var = tilted(self.S, self.mu, self.s2, self.nodes)
            self._set_density(np.where(self.there, log_z, 0.0))
            change = np.abs(mean - self.b) / np.sqrt(variance) + np.abs(np.log(var / variance))
            if np.where(free, change, 0.0).max(initial=0.0) < tol or sweep == sweeps - 1:
                break
            # Values of a row are matched all at once, which may go too far.
            damping = np.where(single[:, np.newaxis], 1.0, 1.0 if sweep < 10 else 0.5)
            tau = np.where(free, 1.0 / var - precision, self.tau)
            eta = np.where(free, mean / var - self.mu * precision, self.eta)
            self._move(tau, eta, damping)

    def _move(self, tau: Array, eta: Array, step: Array) -> None:
        """Go as far towards other sites as the posterior stays one."""
        step = np.broadcast_to(step, (len(tau), 1)).copy()
        old_tau, old_eta = self.tau, self.eta
        for _ in range(_HALVINGS):
            self.tau = old_tau + step * (tau - old_tau)
            self.eta = old_eta + step * (eta - old_eta)
            self.b, self.B, self.log_volume, valid = self._posterior(self.tau, self.eta)
            if valid.all():
                return
            step[~valid] *= 0.5
        self.tau, self.eta = old_tau, old_eta
        self.b, self.B, self.log_volume, _ = self._posterior(old_tau, old_eta)

    def _posterior(self, tau: Array, eta: Array) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Return b, B = (V^-1 + diag(tau))^-1, log|I + diag(tau) V|, and whether B is one.

        Rows of I + diag(tau) V are scaled, so that precise values do no harm.
        """
        d = tau.shape[1]
        scale = 1.0 / (1.0 + np.abs(tau) * self.own)
        M = (tau * scale)[:, :, np.newaxis] * self.V
        M[:, range(d), range(d)] += scale
        sign, log_volume = np.linalg.slogdet(M)
        valid = sign > 0
        M[~valid] = np.eye(d)
        V = np.broadcast_to(self.V, M.shape)
        B = scale[:, :, np.newaxis] * np.linalg.solve(M.transpose(0, 2, 1), V)
        B = 0.5 * (B + B.transpose(0, 2, 1))
        valid &= (np.einsum("njj->nj", B) > 0).all(axis=1)
        b = self.m + np.einsum("nij,nj->ni", B, eta - tau * self.m)
        return b, B, log_volume - np.log(scale).sum(axis=1), valid

    def _set_density(self, log_z: Array) -> None:
        """Set log p(x), the integral over the sites, each as large as its tilted density says."""
        tau, eta, mu, s2 = self.tau, self.eta, self.mu, self.s2
        spread = np.maximum(1.0 + tau * s2, 1e-300)
        of_site = -0.5 * np.log(spread) + (eta * mu + 0.5 * (eta**2 * s2 - tau * mu**2)) / spread
        pull = eta - tau * self.m
        joint = np.sum(eta * self.m - 0.5 * tau * self.m**2, axis=1)
        joint += 0.5 * np.einsum("ni,nij,nj->n", pull, self.B, pull) - 0.5 * self.log_volume
        self.log_density = joint + np.sum(np.where(self.there, log_z - of_site, 0.0), axis=1)
