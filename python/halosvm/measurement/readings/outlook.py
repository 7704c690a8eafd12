"""Outlooks: posteriors of true values, where a new reading will lie, and what it will tell.

In:  a population of true values, and measurements with their errors.
Out: for blocks of rows the components of the posteriors; values of a reading; what it updates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from halosvm import _core
from halosvm.checks.parameters import thread_count
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.population.class_populations import ClassPopulations
from halosvm.population.populations import posterior_covariances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

_HALVINGS = 60
_WIDER = 1.5  # rare readings weigh where few labels are wrong


class Population:
    """A fitted population of true values: of `EmpiricalBayes`, or of all classes together."""

    def __init__(self, model: Any) -> None:
        parts = [model]
        shares = np.ones(1)
        if isinstance(model, ClassPopulations):
            parts, shares = model.populations_, model.priors_
        for each in parts:
            each._require_normal_errors("next_measurement")  # noqa: SLF001
            each._refuse_batches("next_measurement")  # noqa: SLF001
        self._model = model
        self._threads = thread_count(model.n_threads)
        weights = [share * part.weights_ for share, part in zip(shares, parts, strict=True)]
        self.weights = np.concatenate(weights)
        self.means = np.concatenate([part.means_ for part in parts])
        self.covariances = np.concatenate([part.covariances_.to_full() for part in parts])
        self._core = _core.Population(
            "full", self.weights, self.means, matrices=self.covariances.astype(np.float64)
        )
        scale = getattr(model, "error_scale_", None)
        self.error_scale = np.ones(self.means.shape[1]) if scale is None else scale

    def read(self, data: Gaussians) -> Gaussians:
        """Return measurements in the units of the fit, after a check of their features."""
        checked: Gaussians = self._model._check_features(data)  # noqa: SLF001
        return checked

    def posterior(self, data: Gaussians) -> tuple[Array, Array, Array]:
        """Return responsibilities, means and covariances of the components of each posterior."""
        if (self.error_scale != 1.0).any():
            data = data.replaced(covariances=data.covariances.scaled(self.error_scale))
        view = data.core_view(missing=True)
        found = _core.true_value_posteriors(self._core, view, False, n_threads=self._threads)
        n, k, d = len(data), len(self.weights), data.shape[1]
        covariances = posterior_covariances(found).to_full().astype(np.float64)
        return (
            found["responsibilities"].reshape(n, k),
            found["means"].reshape(n, k, d),
            covariances.reshape(n, k, d, d),
        )


@dataclass
class Outlook:
    """A block of rows: their measurements, and the posteriors of their true values.

    Attributes
    ----------
    data : Gaussians
        Measurements with errors as they are told.
    r, b, B : ndarray of shape (n, k), (n, k, d) and (n, k, d, d)
        The posteriors sum_k r_k N(b_k, B_k).
    """

    data: Gaussians
    r: Array
    b: Array
    B: Array

    @classmethod
    def of(cls, data: Gaussians, population: Population | None) -> Outlook:
        """Return that of measurements; without a population each is its own posterior."""
        if population is not None:
            return cls(data, *population.posterior(data))
        b = data.mean.astype(np.float64)[:, np.newaxis]
        B = data.covariances.to_full().astype(np.float64)[:, np.newaxis]
        return cls(data, np.ones((len(data), 1)), b, B)

    def spread(self, j: int, error: Array) -> Array:
        """Return the variance of a new reading of a feature under each component, (n, k)."""
        variance: Array = self.B[:, :, j, j] + np.square(error)[:, np.newaxis]
        return variance

    def readings(self, j: int, error: Array, count: int) -> tuple[Array, Array]:
        """Return values of a new reading, (n, count), and their weights, (count,).

        Where a normal score of it would be t, that are the middles of parts of equal probability of
        a wider normal law; the law of the reading is sum_k r_k N(b_kj, B_kjj + error^2), whose
        quantiles are found by halving where there are several k.
        """
        narrow = ndtri((np.arange(count) + 0.5) / count)
        t = _WIDER * narrow
        weights = np.exp(0.5 * (narrow**2 - t**2))
        weights /= weights.sum()
        centre, spread = self.b[:, :, j], np.sqrt(self.spread(j, error))
        each = centre[..., np.newaxis] + spread[..., np.newaxis] * t
        if each.shape[1] == 1:
            return each[:, 0], weights
        shares = ndtr(t)
        low, high = each.min(axis=1), each.max(axis=1)
        room = np.where(spread > 0.0, spread, np.finfo(np.float64).tiny)
        for _ in range(_HALVINGS):
            z = 0.5 * (low + high)
            below = np.zeros_like(z)
            for k in range(each.shape[1]):
                below += self.r[:, [k]] * ndtr((z - centre[:, [k]]) / room[:, [k]])
            low, high = np.where(below < shares, z, low), np.where(below < shares, high, z)
        return 0.5 * (low + high), weights

    def responsibilities(self, j: int, error: Array, z: Array) -> Array:
        """Return those of the components after each reading, (n, k, count)."""
        variance = self.spread(j, error)[..., np.newaxis]
        apart = z[:, np.newaxis] - self.b[:, :, j, np.newaxis]
        with np.errstate(divide="ignore"):
            logs = np.log(self.r)[..., np.newaxis] - 0.5 * (np.log(variance) + apart**2 / variance)
        shares: Array = softmax(logs, axis=1)
        return shares

    def measured(self, j: int, error: Array, z: Array) -> Gaussians:
        """Return the measurements with each new reading z, (n, count), a row after the other.

        It joins the old reading, by their errors, or stands alone where there is none; features
        whose errors go with its own move, too.
        """
        n, count = z.shape
        x = self.data.mean.astype(np.float64)
        there = ~np.isnan(x)
        independent = storage_of(self.data.covariances).independent
        if independent:
            own = np.where(there, self.data.covariances.variances(), 0.0).astype(np.float64)
            column = np.zeros_like(own)
            column[:, j] = own[:, j]
        else:
            both = there[:, :, np.newaxis] & there[:, np.newaxis]
            S = np.where(both, self.data.covariances.to_full(), 0.0).astype(np.float64)
            column = S[:, :, j]
        tau = np.square(error)
        total = column[:, j] + tau
        gain = column / np.where(total > 0.0, total, 1.0)[:, np.newaxis]
        lost = ~there[:, j]
        moves = z - np.where(lost[:, np.newaxis], 0.0, x[:, [j]])
        values = x[:, np.newaxis] + moves[..., np.newaxis] * gain[:, np.newaxis]
        values[lost, :, j] = z[lost]
        if independent:
            own[:, j] = np.where(lost, tau, gain[:, j] * tau)
            covariances = Covariances.diagonal(np.repeat(own, count, axis=0))
        else:
            S -= gain[:, :, np.newaxis] * column[:, np.newaxis]
            S[:, j, j] = np.where(lost, tau, gain[:, j] * tau)
            covariances = Covariances.full(np.repeat(S, count, axis=0))
        mean = values.reshape(n * count, -1)
        return self.data.replaced(mean=mean, covariances=covariances, groups=None)
