"""Judges: how probably a machine is wrong about each row, now and after one more reading.

In:  a fitted classifier, and outlooks: posteriors of true values and values of a reading.
Out: probabilities of a wrong label, (n,) for a block of rows, and how far readings bring them down.

A reading gains where the label after it is another one, which is then the more probable by so much.
Of a linear machine they are formulas, or one-dimensional integrals of them where posteriors are
mixtures; of any other without probabilities, shares of draws; of one that has `predict_proba`, what
that says of the measurement with the reading.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri, owens_t
from scipy.stats import qmc
from sklearn.pipeline import Pipeline

from halosvm.checks.estimator import GaussianEstimator
from halosvm.gaussians.covariance_arrays import roots_of
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.measurement.candidates import first_of
from halosvm.measurement.folds import without_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.measurement.readings.outlook import Outlook, Population

    Array = NDArray[np.float64]

_READINGS = 256  # of integrals of formulas: to about 1e-4
_ASKED = 64  # of probabilities that a machine is asked for: to about 1e-3
_DRAWS = 1024
_GRID = 128
# Of the spread of a feature: draws tell nothing of what is finer.
_FINEST = 0.1
_AFFINE = 1e-8


class Judge(ABC):
    """How probably a machine is wrong."""

    numbers_a_row: ClassVar[int]  # of which blocks of rows are to be cut

    @abstractmethod
    def now(self, rows: Outlook) -> Array:
        """Return the probability that the label told is wrong."""

    @abstractmethod
    def gain(self, rows: Outlook, j: int, error: Array) -> Array:
        """Return how far a reading of feature j, of errors (n,), brings it down in the mean."""

    def largest_error(self, rows: Outlook, epsilon: float) -> Array:  # noqa: ARG002
        """Return the largest error of each feature, NaN where there is no formula."""
        return np.full(rows.data.shape, np.nan)


class LinearJudge(Judge):
    """Of f(v) = w'v + b: the label told is that of the larger probability of f(v) > 0 and < 0."""

    numbers_a_row = 4 * _READINGS

    def __init__(self, w: Array, intercept: float, population: Population | None) -> None:
        self.w, self.intercept, self.population = w, intercept, population

    def _law(self, rows: Outlook) -> tuple[Array, Array, Array]:
        """Return mean and variance of f, (n, k), and B w, (n, k, d)."""
        pulled = rows.B @ self.w
        return rows.b @ self.w + self.intercept, np.maximum(pulled @ self.w, 0.0), pulled

    def now(self, rows: Outlook) -> Array:
        """Return the probability that the label told is wrong."""
        return np.asarray(np.minimum(*self._sides(rows)))

    def _sides(self, rows: Outlook) -> list[Array]:
        """Return P(f < 0) and P(f > 0)."""
        mu, variance, _ = self._law(rows)
        s = np.sqrt(variance)
        return [np.einsum("nk,nk->n", rows.r, _beyond(sign * mu, s)) for sign in (-1.0, 1.0)]

    def gain(self, rows: Outlook, j: int, error: Array) -> Array:
        """Return how far a reading brings it down in the mean."""
        mu, variance, pulled = self._law(rows)
        spread = rows.spread(j, error)
        slope = np.divide(pulled[:, :, j], spread, where=spread > 0, out=np.zeros_like(spread))
        told = np.minimum(slope * pulled[:, :, j], variance)  # what the reading tells of f
        if mu.shape[1] == 1:
            after = _after_one(mu[:, 0], variance[:, 0], told[:, 0])
            return np.maximum(self.now(rows) - after, 0.0)
        z, weights = rows.readings(j, error, _READINGS)
        moved = mu[..., np.newaxis] + slope[..., np.newaxis] * (
            z[:, np.newaxis] - rows.b[:, :, j, np.newaxis]
        )
        left = np.sqrt(variance - told)[..., np.newaxis]
        r = rows.responsibilities(j, error, z)
        sides = [np.sum(r * _beyond(sign * moved, left), axis=1) for sign in (-1.0, 1.0)]
        told_now = np.subtract(*self._sides(rows)) > 0.0
        more = np.where(told_now, 1.0, -1.0)[:, np.newaxis] * (sides[1] - sides[0])
        return np.asarray(np.maximum(more, 0.0) @ weights)

    def largest_error(self, rows: Outlook, epsilon: float) -> Array:
        """Return the error of each reading with which the label is wrong with probability epsilon.

        Only the spread s of f depends on it; mu is what it is. With D = mu^2 / z_epsilon^2 - s^2,
        an independent variance q more of reading j adds q g_j^2 / (1 + q H_jj) to s^2, where
        H = T^-1, g = H V w; a reading where there is none, of variance t, takes (w'B e_j)^2 /
        (B_jj + t) from it.
        """
        mu, variance, pulled = self._law(rows)
        if mu.shape[1] > 1:
            return super().largest_error(rows, epsilon)
        B, pulled, variance = rows.B[:, 0], pulled[:, 0], variance[:, 0]
        room = (np.square(mu[:, 0] / ndtri(epsilon)) - variance)[:, np.newaxis]
        there = ~np.isnan(rows.data.mean)
        both = there[:, :, np.newaxis] & there[:, np.newaxis]
        S = np.where(both, rows.data.covariances.to_full(), 0.0).astype(np.float64)
        scale = np.ones(B.shape[1])
        g, h = np.broadcast_to(self.w, there.shape), np.zeros(there.shape)
        if self.population is not None:
            scale = self.population.error_scale
            S *= np.outer(scale, scale)
            V = self.population.covariances[0]
            inverse = np.linalg.inv(np.where(both, V, 0.0) + S + np.eye(len(V)) * ~there[..., None])
            g = np.einsum("nij,nj->ni", inverse, there * (V @ self.w))
            h = np.einsum("nii->ni", inverse)
        own = np.einsum("nii->ni", S)
        with np.errstate(divide="ignore", invalid="ignore"):
            safe = g * g - room * h
            more = np.where(safe > 0.0, room / safe, np.inf)
            square = np.where(more >= -_own_part(S, rows), own + more, 0.0)
            first = np.where(room < 0.0, -(pulled**2) / room, np.inf) - np.einsum("nii->ni", B)
        found: Array = np.sqrt(np.maximum(np.where(there, square, first), 0.0)) / scale
        return found


def _own_part(S: Array, rows: Outlook) -> Array:
    """Return the part of the variance of each error that it shares with no other."""
    if storage_of(rows.data.covariances).independent:
        return np.asarray(np.einsum("nii->ni", S))
    values, vectors = np.linalg.eigh(S)
    certain = values <= 1e-12 * np.maximum(values[:, -1:], np.finfo(np.float64).tiny)
    squares = np.square(vectors)
    inverse = np.einsum(
        "nir,nr->ni", squares, np.where(certain, 0.0, 1.0 / np.where(certain, 1.0, values))
    )
    fixed = np.einsum("nir,nr->ni", squares, certain.astype(np.float64)) > 1e-12
    return np.where(fixed | (inverse == 0.0), 0.0, 1.0 / np.where(inverse > 0.0, inverse, 1.0))


def _beyond(mu: Array, s: Array) -> Array:
    """Return P(mu + s Z > 0); where s = 0, 0, 1/2 or 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(s > 0.0, ndtr(mu / s), 0.5 * (1.0 + np.sign(mu)))


def _after_one(mu: Array, variance: Array, told: Array) -> Array:
    """Return P(f < 0) + P(mu' < 0) - 2 P(f < 0, mu' < 0), f ~ N(mu, s^2), mu' ~ N(mu, told).

    Their covariance is `told`, too, so that it is 2 T(|mu| / s, sqrt(s^2 / told - 1)) in Owen's T.
    """
    s = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.sqrt(np.maximum(variance / told - 1.0, 0.0))
        h = np.where(s > 0.0, np.abs(mu) / s, np.where(mu == 0.0, 0.0, np.inf))
    found: Array = np.where(told > 0.0, 2.0 * owens_t(h, left), _beyond(-np.abs(mu), s))
    return found


class DrawnJudge(Judge):
    """Of the labels that a machine tells of draws of the true values.

    Draws nearer to a value of the reading count more there, as its error says. The label is chosen
    by one half of the draws and judged by the other, for one that is judged by what it was chosen
    by seems better than it is.
    """

    def __init__(self, machine: Any, n_features: int, n_draws: int, random_state: Any) -> None:
        self.machine, self.classes = machine, machine.classes_
        self.numbers_a_row = n_draws * max(n_features, _GRID)  # type: ignore[misc]
        power = max(1, int(n_draws - 1).bit_length())
        sobol = qmc.Sobol(n_features + 1, rng=random_state)
        points = np.clip(sobol.random_base2(power), 1e-12, 1.0 - 1e-12)
        self.shares, self.nodes = points[:, 0], ndtri(points[:, 1:])
        self._of: Outlook | None = None

    def _draw(self, rows: Outlook) -> tuple[Array, Array]:
        """Return draws, (n, m, d), and indicators of their labels, (n, m, n_classes)."""
        if self._of is not rows:
            limits = np.cumsum(rows.r, axis=1)[:, np.newaxis, :-1]
            k = np.sum(self.shares[:, np.newaxis] > limits, axis=2)
            n, d = len(rows.r), rows.b.shape[2]
            roots = roots_of(rows.B.reshape(-1, d, d)).reshape(rows.B.shape)
            values = np.empty((n, len(self.nodes), d))
            for i in range(n):
                for each in range(rows.r.shape[1]):
                    mine = k[i] == each
                    values[i, mine] = rows.b[i, each] + self.nodes[mine] @ roots[i, each].T
            points = _true_values(self.machine, values.reshape(-1, d), rows)
            with without_warnings():
                labels = np.asarray(self.machine.predict(points))
            told = labels[:, np.newaxis] == np.asarray(self.classes)
            self._of = rows
            self._drawn = values, told.reshape(n, -1, len(self.classes)).astype(np.float64)
        return self._drawn

    def now(self, rows: Outlook) -> Array:
        """Return the probability that the label told is wrong."""
        return np.asarray(1.0 - self._draw(rows)[1].mean(axis=1).max(axis=1))

    def gain(self, rows: Outlook, j: int, error: Array) -> Array:
        """Return how far a reading brings it down in the mean."""
        values, told = self._draw(rows)
        v = values[:, :, j]
        width = np.maximum(error, _FINEST * v.std(axis=1))[:, np.newaxis]
        low, high = v.min(axis=1, keepdims=True), v.max(axis=1, keepdims=True)
        z = low - 5.0 * width + (high - low + 10.0 * width) * np.linspace(0.0, 1.0, _GRID)
        step = z[:, 1] - z[:, 0]
        width = np.where(width > 0.0, width, 1.0)
        near = np.exp(-0.5 * np.square((z[..., np.newaxis] - v[:, np.newaxis]) / width[..., None]))
        near *= (step[:, np.newaxis] / width / np.sqrt(2.0 * np.pi))[..., np.newaxis]
        half = v.shape[1] // 2
        parts = [near[..., :half] @ told[:, :half], near[..., half:] @ told[:, half:]]
        label = told.mean(axis=1).argmax(axis=1)[:, np.newaxis, np.newaxis]
        gain = np.zeros(len(v))
        for judged, chosen in (parts, parts[::-1]):
            best = chosen.argmax(axis=2)[..., np.newaxis]
            gain += np.sum(
                np.take_along_axis(judged, best, axis=2)
                - np.take_along_axis(judged, label, axis=2),
                axis=(1, 2),
            )
        return np.asarray(np.maximum(gain / v.shape[1], 0.0))


class ProbabilityJudge(Judge):
    """Of what `predict_proba` says of the measurement with each value of the reading."""

    def __init__(self, machine: Any, n_features: int) -> None:
        self.machine = machine
        self.takes_errors = isinstance(first_of(machine), GaussianEstimator)
        self.numbers_a_row = _ASKED * n_features  # type: ignore[misc]
        self._of: Outlook | None = None

    def _probabilities(self, data: Gaussians) -> Array:
        with without_warnings():
            p = self.machine.predict_proba(data if self.takes_errors else data.mean)
        return np.asarray(p, dtype=np.float64)

    def now(self, rows: Outlook) -> Array:
        """Return the probability that the label told is wrong."""
        if self._of is not rows:
            self._of, self._now = rows, self._probabilities(rows.data)
        return np.asarray(1.0 - self._now.max(axis=1))

    def gain(self, rows: Outlook, j: int, error: Array) -> Array:
        """Return how far a reading brings it down in the mean."""
        z, weights = rows.readings(j, error, _ASKED)
        p = self._probabilities(rows.measured(j, error, z)).reshape(*z.shape, -1)
        self.now(rows)
        label = self._now.argmax(axis=1)[:, np.newaxis, np.newaxis]
        more = p.max(axis=2) - np.take_along_axis(p, label, axis=2)[..., 0]
        return np.asarray(np.minimum(more @ weights, self.now(rows)))


# ---- which judge --------------------------------------------------------------------------------
def judge_of(
    machine: Any, after_population: Any, rows: Outlook, population: Population | None, **draws: Any
) -> Judge:
    """Return the judge of a machine, whose steps after the population see true values."""
    d = rows.data.shape[1]
    if hasattr(machine, "predict_proba"):
        return ProbabilityJudge(machine, d)
    found = affine_score(after_population, rows)
    if found is not None:
        return LinearJudge(*found, population)
    return DrawnJudge(after_population, d, **draws)


def affine_score(machine: Any, rows: Outlook) -> tuple[Array, float] | None:
    """Return w and b of a score f(v) = w'v + b; None if it is none, as some rows tell."""
    if not hasattr(machine, "decision_function") or len(machine.classes_) != 2:
        return None
    means = np.einsum("nk,nkd->nd", rows.r, rows.b)[:100]
    d = means.shape[1]
    centre = means.mean(axis=0)
    unit = means.std(axis=0) + np.sqrt(np.einsum("nkjj->nkj", rows.B).max(axis=(0, 1)))
    unit = np.where(unit > 0.0, unit, 1.0)
    others = np.vstack([means, centre + 3.0 * unit, centre - 3.0 * unit])
    values = np.vstack([centre, centre + np.diag(unit), centre - np.diag(unit), others])
    points = _true_values(machine, values, rows)
    with without_warnings():
        f = np.asarray(machine.decision_function(points), dtype=np.float64)
    if f.ndim != 1:
        return None
    w = (f[1 : d + 1] - f[d + 1 : 2 * d + 1]) / (2.0 * unit)
    expected = f[0] + (others - centre) @ w
    size = np.abs(f).max(initial=0.0) + np.abs(others - centre) @ np.abs(w)
    if (np.abs(expected - f[2 * d + 1 :]) > _AFFINE * size).any():
        return None
    return w, float(f[0] - centre @ w)


def _true_values(machine: Any, values: Array, rows: Outlook) -> Any:
    """Return true values as a machine takes them: certain, with the names and units of the rows."""
    if not isinstance(first_of(machine), GaussianEstimator):
        return values
    return rows.data.replaced(mean=values, covariances=Covariances.zero(*values.shape), groups=None)


def steps_of(machine: Any) -> list[Any]:
    """Return the steps of a pipeline, or a machine as the only one."""
    if isinstance(machine, Pipeline):
        return [step for _, step in machine.steps if step not in (None, "passthrough")]
    return [machine]
