"""Populations of true values: where their fit starts, how many parameters they have, their form.

In:  measurements, or weights, means and covariances that the user gives.
Out: populations as the core takes them; Covariances of their components.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from halosvm import _core
from halosvm.checks import reading
from halosvm.core.abandonable import eigh
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Form(ABC):
    """How covariances of components are stored; a form is one class here and one line below."""

    has_factors: ClassVar[bool] = False
    any_matrix: ClassVar[bool] = False  # whether it holds every covariance

    @abstractmethod
    def population(self, weights: Array, means: Array, matrices: Array) -> _core.Population:
        """Make a population of this form from dense covariances, (k, d, d)."""

    @abstractmethod
    def n_of_one(self, d: int) -> int:
        """Count the free parameters of one covariance of d features."""

    def common(self, population: _core.Population) -> tuple[Array, Array | None]:
        """Return what is one in a tied population: variances of features, or 0 and a matrix."""
        return population.variances[0], None

    def n_parameters(self, n_components: int, d: int, *, tied: bool = False) -> int:
        """Count the free parameters of a population of d features."""
        n_covariances = 1 if tied else n_components
        return n_components * (d + 1) - 1 + n_covariances * self.n_of_one(d)

    def tied(self, population: _core.Population, classes: NDArray[np.intp]) -> _core.Population:
        """Return a start whose components have one covariance, the mean of theirs."""
        matrices = self.covariances(population).to_full()
        mean = np.average(matrices, axis=0, weights=population.weights)
        one = np.stack([mean] * len(matrices))
        return self.population(population.weights, population.means, one).labelled(classes, True)

    @abstractmethod
    def covariances(self, population: _core.Population) -> Covariances:
        """Return the covariances of the components."""

    @abstractmethod
    def restored(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        """Return the population of the fitted attributes, to the last bit."""

    def started(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        """Make a population that starts from given covariances of any kind."""
        return self.population(weights, means, covariances.to_full())


class _Full(Form):
    any_matrix = True

    def population(self, weights: Array, means: Array, matrices: Array) -> _core.Population:
        return _core.Population("full", weights, means, matrices=matrices)

    def common(self, population: _core.Population) -> tuple[Array, Array | None]:
        matrix = population.matrices[0]
        return np.zeros(len(matrix)), matrix

    def n_of_one(self, d: int) -> int:
        return d * (d + 1) // 2

    def covariances(self, population: _core.Population) -> Covariances:
        return Covariances.full(population.matrices)

    def restored(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        values = np.asarray(covariances.values, dtype=np.float64)
        return self.population(weights, means, values)


class _Diagonal(Form):
    def population(self, weights: Array, means: Array, matrices: Array) -> _core.Population:
        variances = np.einsum("kjj->kj", matrices).copy()
        return _core.Population("diagonal", weights, means, variances=variances)

    def n_of_one(self, d: int) -> int:
        return d

    def covariances(self, population: _core.Population) -> Covariances:
        return Covariances.diagonal(population.variances)

    def restored(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        values = np.asarray(covariances.values, dtype=np.float64)
        return _core.Population("diagonal", weights, means, variances=values)


class _Factors(Form):
    has_factors = True

    def __init__(self, n_factors: int) -> None:
        self.n_factors = n_factors

    def population(self, weights: Array, means: Array, matrices: Array) -> _core.Population:
        variances = np.einsum("kjj->kj", matrices).copy()
        factors = np.stack([_leading_factors(V, self.n_factors) for V in matrices])
        own = variances - np.einsum("kjh,kjh->kj", factors, factors)
        # Noise of each value's own keeps the factors free to move.
        own = np.maximum(own, 0.05 * variances)
        return _core.Population("factors", weights, means, variances=own, factors=factors)

    def n_of_one(self, d: int) -> int:
        h = self.n_factors
        return d + d * h - h * (h - 1) // 2

    def covariances(self, population: _core.Population) -> Covariances:
        return Covariances.low_rank(population.factors, population.variances)

    def restored(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        values = np.asarray(covariances.values, dtype=np.float64)
        own = np.asarray(covariances.diagonal_values, dtype=np.float64)
        return _core.Population("factors", weights, means, variances=own, factors=values)

    def started(self, weights: Array, means: Array, covariances: Covariances) -> _core.Population:
        factors, own = covariances.values, covariances.diagonal_values
        if factors is None or own is None or factors.shape[2:] != (self.n_factors,):
            return super().started(weights, means, covariances)
        return self.restored(weights, means, covariances)


DIAGONAL = _Diagonal()


def form_of(covariance: str, n_factors: int | None, d: int) -> Form:
    """Return the form of the covariances of d features that the parameters ask for."""
    if covariance in (others := {"full": _Full(), "diagonal": DIAGONAL}):
        return others[covariance]
    if n_factors is None:
        return _Factors(min(10, d - 1))
    if n_factors >= d:
        raise ValueError(f"n_factors is {n_factors}; it must be below n_features = {d}")
    return _Factors(int(n_factors))


def _leading_factors(V: Array, n_factors: int) -> Array:
    """Return the factors of the largest eigenvalues of the correlations, in the units of V."""
    scale = np.sqrt(np.diag(V))
    values, vectors = eigh(V / np.outer(scale, scale))
    kept = slice(len(values) - n_factors, None)
    # Half of what the noise of the other directions adds to each belongs there, not to the factor.
    excess = np.maximum(values[kept] - 0.5 * np.median(values), 0.05)
    factors: Array = scale[:, np.newaxis] * vectors[:, kept] * np.sqrt(excess)
    return factors


def joined_parts(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return posteriors that the core found part by part as if they were found together."""
    first, *others = parts
    if not others:
        return first
    arrays = {name for name, value in first.items() if isinstance(value, np.ndarray)}
    return first | {
        name: np.concatenate([first[name], *(part[name] for part in others)]) for name in arrays
    }


def posterior_covariances(found: dict[str, Any]) -> Covariances:
    """Return the covariances of posteriors that the core found, of the kind that it says."""
    if found["kind"] == "zero":
        return Covariances.zero(*found["means"].shape)
    if found["kind"] == "diagonal":
        return Covariances.diagonal(found["variances"])
    if found["kind"] == "low_rank":
        return Covariances.low_rank(found["factors"], found["variances"])
    return Covariances.full(found["matrices"])


def given_start(init: Any, form: Form, n_components: int, n_features: int) -> _core.Population:
    """Read an `init` of weights, means and covariances."""
    weights, means, covariances = init
    weights = reading.as_float_array(weights, "init weights", n_components).astype(np.float64)
    means = reading.as_float_array(means, "init means", n_components, n_features).astype(np.float64)
    if not isinstance(covariances, Covariances):
        values = reading.as_float_array(covariances, "init covariances")
        if values.ndim == 3:
            covariances = Covariances.full(values, argument="init covariances")
        else:
            covariances = Covariances.diagonal(values, argument="init covariances")
    if covariances.shape != (n_components, n_features):
        raise ValueError(
            f"init covariances have shape {covariances.shape}, expected "
            f"({n_components}, {n_features})"
        )
    return form.started(weights, means, covariances)


def drawn_start(
    init: str,
    form: Form,
    n_components: int,
    points: Array,
    weights: Array,
    whole: Array,
    scale: Array,
    random_state: np.random.RandomState,
) -> _core.Population:
    """Start from clusters, or from rows drawn at random.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Posterior means under one component.
    weights : ndarray of shape (n,)
        Numbers of repetitions of the examples, all positive.
    whole : ndarray of shape (d, d)
        Covariance of that component.
    scale : ndarray of shape (d,)
        Unit of each feature.
    """
    if init == "random":
        chosen = random_state.choice(len(points), n_components, p=weights / weights.sum())
        equal = np.full(n_components, 1.0 / n_components)
        return form.population(equal, points[chosen], np.stack([whole] * n_components))
    seed = int(random_state.randint(np.iinfo(np.int32).max))
    model = KMeans(n_components, n_init=1, random_state=seed)
    labels = model.fit_predict(points / scale, sample_weight=weights)
    mean = np.average(points, axis=0, weights=weights)
    # What the posterior means do not show of the spread of the true values.
    unseen = np.diag(whole) - np.average((points - mean) ** 2, axis=0, weights=weights)
    floor = np.diag(np.maximum(unseen, 1e-6 * np.diag(whole)))
    masses, means, scatters = [], [], []
    for k in range(n_components):
        c = np.where(labels == k, weights, 0.0)
        masses.append(c.sum())
        means.append(np.average(points, axis=0, weights=c) if c.any() else mean)
        apart = points - means[-1]
        scatters.append((c[:, np.newaxis] * apart).T @ apart)
    within = sum(scatters) / weights.sum()
    matrices = [
        (scatter + within) / (mass + 1.0) + floor
        for scatter, mass in zip(scatters, masses, strict=True)
    ]
    shares = np.maximum(masses, 1.0)
    return form.population(shares / shares.sum(), np.array(means), np.stack(matrices))


def class_start(
    form: Form,
    n_components: int,
    points: Array,
    codes: NDArray[np.intp],
    weights: Array,
    whole: Array,
    scale: Array,
    random_state: np.random.RandomState,
) -> _core.Population:
    """Start from clusters of each class, up to `n_components` of them.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Posterior means under one component for each class.
    codes : ndarray of shape (n,)
        Numbers of the classes.
    weights, whole, scale
        As in `drawn_start`.
    """
    shares = np.bincount(codes, weights=weights) / weights.sum()
    parts = []
    for c in range(len(shares)):
        mine = codes == c
        # Sorted, and copies as one, so that order and repetitions do not matter to clusters.
        own, copies = np.unique(points[mine], axis=0, return_inverse=True)
        of_each = np.zeros(len(own))
        np.add.at(of_each, copies.reshape(-1), weights[mine])
        count = min(n_components, len(own))
        with threadpool_limits(1, user_api="openmp"):  # few rows: threads wait for each other
            parts.append(
                drawn_start("kmeans", form, count, own, of_each, whole, scale, random_state)
            )
    start = form.population(
        np.concatenate([s * p.weights for s, p in zip(shares, parts, strict=True)]),
        np.concatenate([p.means for p in parts]),
        np.concatenate([form.covariances(p).to_full() for p in parts]),
    )
    classes = np.repeat(np.arange(len(parts)), [len(p.weights) for p in parts])
    return start.labelled(classes, False)
