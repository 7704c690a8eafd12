"""The strongest perturbations of bounded inputs that gradient ascent finds, in pure NumPy.

In:  features as functions of points, with their derivative; an example mean + R u, |u|_p <= radius.
Out: how far they move, a bound from below of the largest move, beside those from above of G.5, G.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .features import turned

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]
    # Points (n, d) -> features (n, D), and v (n, D) -> sum_f v_f grad phi_f (n, d).
    Features = Callable[[Array], tuple[Array, Callable[[Array], Array]]]


def differentiable_fourier(W: Array, phases: Array | None) -> Features:
    """Return the Fourier features of points, and their derivative (spec G.5)."""
    W, phases = turned(W, phases)
    root = np.sqrt(2.0 / (2 * len(W) if phases is None else len(W)))

    def features(points: Array) -> tuple[Array, Callable[[Array], Array]]:
        u = points @ W.T + (0.0 if phases is None else phases)
        c, s = root * np.cos(u), root * np.sin(u)
        if phases is not None:
            return c, lambda v: (-s * v) @ W
        half = len(W)
        return np.hstack([c, s]), lambda v: (-s * v[:, :half] + c * v[:, half:]) @ W

    return features


def differentiable_nystroem(Z: Array, gamma: float | Array, projection: Array) -> Features:
    """Return the features projection h(x) of points, and their derivative (spec G.6)."""
    each = np.broadcast_to(gamma, Z.shape[1])

    def features(points: Array) -> tuple[Array, Callable[[Array], Array]]:
        apart = points[:, np.newaxis] - Z
        h = np.exp(-np.square(apart) @ each)

        def pull(v: Array) -> Array:
            return np.asarray(np.einsum("nm,nmd->nd", -2.0 * (v @ projection) * h, apart) * each)

        return h @ projection.T, pull

    return features


def strongest_move(
    features: Features,
    mean: Array,
    R: Array,
    radius: float,
    p: float,
    rng: np.random.Generator,
    *,
    n_starts: int = 100,
    n_steps: int = 60,
) -> float:
    """Return the largest |phi(mean + R u) - phi(mean)| over |u|_p <= radius that is found.

    Half of the starts are random, half random corners of the ball if it has any. Each step goes
    along the gradient, back into the ball; its length grows where that pays and shrinks where not.
    """
    r = R.shape[1]
    u: Array = rng.normal(size=(n_starts, r))
    if p == 1:
        corners = np.eye(r)[rng.integers(r, size=n_starts // 2)]
        u[: n_starts // 2] = corners * rng.choice([-1.0, 1.0], (n_starts // 2, 1))
    elif p == np.inf:
        u[: n_starts // 2] = np.sign(u[: n_starts // 2])
    u = _in_ball(u, p)
    origin, _ = features(mean[np.newaxis])

    def move(u: Array) -> tuple[Array, Array]:
        values, pull = features(mean + radius * u @ R.T)
        apart = values - origin
        return np.linalg.norm(apart, axis=1), pull(apart) @ R

    size, slope = move(u)
    length: Array = np.full((n_starts, 1), 0.5)
    for _ in range(n_steps):
        steepest = slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
        trial = _in_ball(u + length * steepest, p)
        trial_size, trial_slope = move(trial)
        better = trial_size > size
        size = np.where(better, trial_size, size)
        better = better[:, np.newaxis]
        u, slope = np.where(better, trial, u), np.where(better, trial_slope, slope)
        length = np.where(better, 1.3 * length, 0.4 * length)
    return float(size.max())


def _in_ball(u: Array, p: float) -> Array:
    """Return rows put back into the unit ball of a norm, those of a box entry by entry."""
    if p == np.inf:
        return np.clip(u, -1.0, 1.0)
    return np.asarray(u / np.maximum(1.0, np.linalg.norm(u, p, axis=1, keepdims=True)))
