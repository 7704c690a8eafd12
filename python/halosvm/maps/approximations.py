"""Gaussians through maps that are not affine: by slopes, by chosen points, by draws.

In:  Gaussians, a function of arrays of means, and the one feature that each output depends on, if
that is known: then independent features are mapped at once, and stay independent.
Out: means, or what to add to the images of the means, and covariances of the images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from halosvm.core.abandonable import eigh
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

_BLOCK = 1 << 20
# Of the distance to 0 or of the spread of a feature, the shorter one: fourth-order differences then
# err by 1e-11 where a function changes at that scale, and rounding by 1e-13 of its value.
_STEP = 2e-3
_THIRD_POINT = np.sqrt(3.0)
_STAY_NEAR = "make the errors smaller, or use method='linear', which stays near the mean"


class Problem(NamedTuple):
    """A function of (m, d) arrays to (m, k) arrays, and what it is applied to."""

    function: Callable[[Array], Array]
    X: Gaussians
    n_outputs: int
    inputs: NDArray[np.intp] | None
    spreads: Array

    @property
    def covariances(self) -> Covariances:
        """Those of the examples."""
        return self.X.covariances

    def means(self, rows: slice) -> Array:
        """Return means in float64, where differences are taken."""
        return np.asarray(self.X.mean[rows], np.float64)

    @property
    def independent(self) -> bool:
        """Whether each output depends on one feature, and the features on none other."""
        return self.inputs is not None and storage_of(self.covariances).independent

    def blocks(self, numbers: int) -> Iterator[slice]:
        """Split the rows into blocks of rows of so many numbers each."""
        n, step = len(self.X), max(1, _BLOCK // max(1, numbers))
        for begin in range(0, n, step):
            yield slice(begin, min(n, begin + step))

    def at(self, points: Array, rows: slice, what: str, remedy: str = _STAY_NEAR) -> Array:
        """Apply the function to (b, p, d) points of rows, and refuse what is not finite."""
        b, p, d = points.shape
        with np.errstate(all="ignore"):
            values = self.function(points.reshape(b * p, d)).reshape(b, p, -1)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2)))
        if bad.size:
            lost = bad[self.covariances[rows].trace()[bad] > 0]
            if lost.size:
                raise ValueError(
                    f"X row {rows.start + int(lost[0])}: the transformer is not finite at a point "
                    f"of {what}; {remedy}"
                )
            values[bad] = 0.0  # certain examples need no points beside the mean
        return values


# -- slopes ----------------------------------------------------------------------------------------
def by_slopes(problem: Problem, jacobian: Any) -> Covariances:
    """Return J S J' with the Jacobian at each mean, given as a function or by differences."""
    if jacobian is not None:
        given = np.asarray(jacobian(problem.X.mean), dtype=np.float64)
        return _by_given_slopes(problem, given)
    if problem.inputs is not None:
        slopes = np.empty((len(problem.X), problem.n_outputs))
        for rows in problem.blocks(4 * (problem.n_outputs + problem.X.shape[1])):
            steps = _steps(problem.means(rows), problem.spreads)
            differences = _differences(problem, rows, steps[:, np.newaxis])[:, 0]
            slopes[rows] = differences / steps[:, problem.inputs]
        return _by_slopes_of_one(problem.covariances, problem.inputs, slopes)
    d = problem.X.shape[1]
    parts = []
    for rows in problem.blocks(4 * d * (problem.n_outputs + d)):
        steps = _steps(problem.means(rows), problem.spreads)
        each = steps[:, :, np.newaxis] * np.eye(d)
        jacobians = _differences(problem, rows, each) / steps[:, :, np.newaxis]
        A = np.ascontiguousarray(jacobians.transpose(0, 2, 1))
        parts.append(problem.covariances[rows].mapped(A))
    return Covariances.concatenate(parts)


def _by_given_slopes(problem: Problem, given: Array) -> Covariances:
    (n, d), k = problem.X.shape, problem.n_outputs
    if given.shape not in {(n, k, d), *([(n, d)] if k == d else [])}:
        own = f", or ({n}, {d}) for slopes of each feature by itself" if k == d else ""
        raise ValueError(f"jacobian returned shape {given.shape}, expected ({n}, {k}, {d}){own}")
    bad = np.argwhere(~np.isfinite(given))
    if bad.size:
        raise ValueError(f"jacobian returned {given[tuple(bad[0])]:g} for row {bad[0, 0]}")
    if given.ndim == 2:
        return problem.covariances.scaled(given)
    return problem.covariances.mapped(given)


def _by_slopes_of_one(
    covariances: Covariances, inputs: NDArray[np.intp], slopes: Array
) -> Covariances:
    k, d = len(inputs), covariances.n_features
    if k != d or (inputs != np.arange(d)).any():
        selection = sparse.csr_array((np.ones(k), (np.arange(k), inputs)), shape=(k, d))
        covariances = covariances.mapped(selection)
    return covariances.scaled(slopes)


def _steps(means: Array, spreads: Array) -> Array:
    """Return steps that stay on the side of 0 where a mean is."""
    sizes = np.abs(means)
    local = np.minimum(sizes, np.where(spreads > 0, spreads, np.inf))
    return _STEP * np.where(sizes > 0, local, np.where(spreads > 0, spreads, 1.0))


def _differences(problem: Problem, rows: slice, steps: Array) -> Array:
    """Return the slopes along (b, p, d) steps, times their lengths, by four points each."""
    x = problem.means(rows)[:, np.newaxis]
    p = steps.shape[1]
    points = np.concatenate([x + c * steps for c in (1.0, -1.0, 2.0, -2.0)], axis=1)
    values = problem.at(
        points, rows, "the differences that give its slopes", "give them as jacobian"
    )
    near, far = values[:, :p] - values[:, p : 2 * p], values[:, 2 * p : 3 * p] - values[:, 3 * p :]
    return np.asarray((8.0 * near - far) / 12.0)


# -- chosen points ---------------------------------------------------------------------------------
def by_points(problem: Problem) -> tuple[Array, Covariances]:
    """Return shifts of the images of the means, and covariances, by the three-point Gauss rule.

    Along each column l of a factor of S the map is seen at x and at x +- sqrt(3) l. With the odd
    and the even part o and v of what it does there, the mean shifts by v / 3, and o o' / 3 +
    2 v v' / 9 is the covariance: exactly what the rule gives for one direction, summed over all.
    """
    if problem.independent:
        return _by_points_of_one(problem)
    n, k, d = len(problem.X), problem.n_outputs, problem.X.shape[1]
    rank = _n_directions(problem.covariances)
    shifts, image = np.zeros((n, k)), _Image(n, k, 2 * rank)
    for rows in problem.blocks((2 * rank + 1) * (k + d)):
        x, L = problem.means(rows)[:, np.newaxis], _directions(problem.covariances[rows], rank)
        along = _THIRD_POINT * L.transpose(0, 2, 1)
        points = np.concatenate([x, x + along, x - along], axis=1)
        odd, even = _odd_and_even(problem.at(points, rows, "the unscented rule"))
        shifts[rows] = even.sum(axis=1) / 3.0
        columns = np.concatenate([odd / _THIRD_POINT, even * (np.sqrt(2.0) / 3.0)], axis=1)
        image.fill(rows, columns.transpose(0, 2, 1))
    return shifts, image.covariances()


def _odd_and_even(values: Array) -> tuple[Array, Array]:
    """Split what the map does at x + l and x - l, of values at x, all x + l and all x - l."""
    p = (values.shape[1] - 1) // 2
    ahead, back = values[:, 1 : p + 1] - values[:, :1], values[:, p + 1 :] - values[:, :1]
    return 0.5 * (ahead - back), 0.5 * (ahead + back)


def _by_points_of_one(problem: Problem) -> tuple[Array, Covariances]:
    """Map all features at once, for each output sees only one of them."""
    n, k, d = len(problem.X), problem.n_outputs, problem.X.shape[1]
    shifts, odds, evens = np.empty((n, k)), np.empty((n, k)), np.empty((n, k))
    for rows in problem.blocks(3 * (k + d)):
        x = problem.means(rows)
        along = _THIRD_POINT * np.sqrt(problem.covariances[rows].variances())
        points = np.stack([x, x + along, x - along], axis=1)
        odd, even = _odd_and_even(problem.at(points, rows, "the unscented rule"))
        odds[rows], evens[rows] = odd[:, 0] / _THIRD_POINT, even[:, 0] * (np.sqrt(2.0) / 3.0)
        shifts[rows] = even[:, 0] / 3.0
    assert problem.inputs is not None
    if _are_distinct(problem.inputs):
        return shifts, Covariances.diagonal(np.square(odds) + np.square(evens))
    image, places = _Image(n, k, 2 * d), np.arange(k)
    for rows in problem.blocks(2 * k * d):
        columns = np.zeros((rows.stop - rows.start, k, 2 * d))
        columns[:, places, problem.inputs] = odds[rows]
        columns[:, places, d + problem.inputs] = evens[rows]
        image.fill(rows, columns)
    return shifts, image.covariances()


# -- draws -----------------------------------------------------------------------------------------
def by_draws(
    problem: Problem, n_draws: int, rng: np.random.RandomState
) -> tuple[Array, Covariances]:
    """Return shifts of the images of the means, and covariances, of draws from each Gaussian."""
    n, k, d = len(problem.X), problem.n_outputs, problem.X.shape[1]
    apart = problem.independent and _are_distinct(problem.inputs)
    shifts, variances = np.empty((n, k)), np.empty((n, k) if apart else (0, k))
    image = None if apart else _Image(n, k, n_draws)
    independent = storage_of(problem.covariances).independent
    rank = d if independent else _n_directions(problem.covariances)
    for rows in problem.blocks((n_draws + 1) * (k + d + rank)):
        z = rng.standard_normal((rows.stop - rows.start, n_draws, rank))
        if independent:
            z *= np.sqrt(problem.covariances[rows].variances())[:, np.newaxis]
        else:
            z = z @ _directions(problem.covariances[rows], rank).transpose(0, 2, 1)
        x = problem.means(rows)[:, np.newaxis]
        values = problem.at(np.concatenate([x, x + z], axis=1), rows, "a draw")
        moved = values[:, 1:] - values[:, :1]
        shifts[rows] = moved.mean(axis=1)
        moved = (moved - shifts[rows, np.newaxis]) / np.sqrt(n_draws - 1.0)
        if image is None:
            variances[rows] = np.square(moved).sum(axis=1)
        else:
            image.fill(rows, moved.transpose(0, 2, 1))
    return shifts, Covariances.diagonal(variances) if image is None else image.covariances()


# -- factors in and out ----------------------------------------------------------------------------
class _Image:
    """Covariances C C' of given (k, rank) matrices C: as these factors, or summed if smaller."""

    def __init__(self, n: int, k: int, rank: int) -> None:
        self.values = np.empty((n, k, min(k, rank)))
        self.as_factors = rank < k

    def fill(self, rows: slice, columns: Array) -> None:
        """Write those of a block of rows."""
        if self.as_factors:
            self.values[rows] = columns
        else:
            np.matmul(columns, columns.transpose(0, 2, 1), out=self.values[rows])

    def covariances(self) -> Covariances:
        """Return them."""
        if self.as_factors:
            return Covariances.low_rank(self.values)
        return Covariances.full(self.values)


def _n_directions(covariances: Covariances) -> int:
    """Return how many columns a factor of each matrix needs."""
    store = storage_of(covariances)
    if store.whole:
        return covariances.n_features
    own = covariances.n_features if store.own_diagonal(covariances).any() else 0
    return own + max((F.shape[2] for _, F in store.factor_groups(covariances)), default=0)


def _directions(covariances: Covariances, rank: int) -> Array:
    """Return a factor L of each S = L L', (n, d, rank), columns of 0 where fewer are enough."""
    store, (n, d) = storage_of(covariances), covariances.shape
    if store.whole:
        values, vectors = eigh(covariances.to_full())
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis])
    L = np.zeros((n, d, rank))
    for rows, F in store.factor_groups(covariances):
        L[rows, :, : F.shape[2]] = F
    own = store.own_diagonal(covariances)
    if own.any():
        np.einsum("njj->nj", L[:, :, rank - d :])[...] = np.sqrt(own, dtype=np.float64)
    return L


def _are_distinct(inputs: NDArray[np.intp] | None) -> bool:
    return inputs is not None and len(np.unique(inputs)) == len(inputs)
