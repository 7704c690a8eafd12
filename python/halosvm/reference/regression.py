"""Losses of regression in pure NumPy: (mu, s) -> psi, psi_mu, psi_s/s, spec K.3.

mu = y - f(x) is the mean of the residual, s its standard deviation: sqrt(w'S w), or
sqrt(w'S w + variance of y) where the noise of the targets is known. psi is the expectation over
mu + s Z, Z standard normal; without spread, the loss of LinearSVR, QuantileRegressor, or
HuberRegressor. Each has two sides, which are the hinges of `losses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .losses import expected_hinge, expected_squared_hinge

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .losses import Triple


def expected_epsilon_insensitive(mu: ArrayLike, s: ArrayLike, epsilon: float = 0.1) -> Triple:
    """Return psi = E max(0, |mu + s Z| - epsilon) and its derivatives."""
    return _two_sides(expected_hinge, mu, s, epsilon)


def expected_squared_epsilon_insensitive(
    mu: ArrayLike, s: ArrayLike, epsilon: float = 0.1
) -> Triple:
    """Return psi = E max(0, |mu + s Z| - epsilon)^2 and its derivatives."""
    return _two_sides(expected_squared_hinge, mu, s, epsilon)


def expected_pinball(mu: ArrayLike, s: ArrayLike, quantile: float = 0.5) -> Triple:
    """Return psi = E max(quantile r, (quantile - 1) r), r = mu + s Z, and its derivatives."""
    return _two_sides(expected_hinge, mu, s, 0.0, quantile, 1.0 - quantile)


def expected_huber(mu: ArrayLike, s: ArrayLike, delta: float = 1.35) -> Triple:
    """Return psi = E h(mu + s Z), h(r) = r^2/2 up to |r| = delta, delta |r| - delta^2/2 beyond.

    h is half of the square less half of what the square exceeds it by. Beyond delta that difference
    cancels, and (mu - delta)^2 + s^2 - Q(delta - mu, s) takes the place of Q(mu - delta, s).
    """
    beyond = _two_sides(expected_squared_hinge, mu, s, delta)
    total = expected_squared_error(mu, s)
    near = [0.5 * (whole - part) for whole, part in zip(total, beyond, strict=True)]
    size = np.abs(mu)
    inner = expected_squared_hinge(delta - size, s)
    outer = expected_squared_hinge(-delta - size, s)
    far = (
        delta * size - 0.5 * delta**2 + 0.5 * (inner[0] - outer[0]),
        np.sign(mu) * (delta - 0.5 * (inner[1] - outer[1])),
        0.5 * (inner[2] - outer[2]),
    )
    parts = (np.where(size > delta, f, n) for f, n in zip(far, near, strict=True))
    return next(parts), next(parts), next(parts)


def expected_squared_error(mu: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = E (mu + s Z)^2 = mu^2 + s^2 and its derivatives."""
    return np.square(mu) + np.square(s), np.multiply(2.0, mu), np.full(np.shape(mu), 2.0)


def _two_sides(
    loss: Callable[[ArrayLike, ArrayLike], Triple],
    mu: ArrayLike,
    s: ArrayLike,
    epsilon: float,
    above: float = 1.0,
    below: float = 1.0,
) -> Triple:
    """Return above loss(mu - epsilon, s) + below loss(-mu - epsilon, s) and its derivatives."""
    over, under = loss(np.subtract(mu, epsilon), s), loss(np.subtract(np.negative(mu), epsilon), s)
    return (
        above * over[0] + below * under[0],
        above * over[1] - below * under[1],
        above * over[2] + below * under[2],
    )


REGRESSION_LOSSES = {
    "expected_epsilon_insensitive": expected_epsilon_insensitive,
    "expected_squared_epsilon_insensitive": expected_squared_epsilon_insensitive,
    "expected_huber": expected_huber,
    "expected_pinball": expected_pinball,
    "expected_squared_error": expected_squared_error,
}
