"""Features of kernels of Gaussians and of bounded inputs, in pure NumPy: spec K.9, K.10, G.5, G.6.

Notation (one example at a time):

    mean, S       (d,), (d, d) the example x ~ N(mean, S)
    R             (d, r) a root S = R R'; a bounded input is mean + R u with |u|_p <= radius
    W, phases     (J, d), (J,) frequencies and phases of Fourier features; phases None: the paired
                  map sqrt(2/D) (cos W x, sin W x) with D = 2 J, else sqrt(2/D) cos(W x + phases);
                  fewer than J: those of the last frequencies, after the pairs of the others
    Z, gamma      (m, d) landmarks of the kernel exp(-gamma |x - z|^2); gamma = 1 / (2 sigma^2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]


def turned(W: Array, phases: Array | None) -> tuple[Array, Array | None]:
    """Return a frequency and a phase for each feature if some have phases: sin u = cos(u - pi/2).

    Pairs come first, their cosines before their sines.
    """
    if phases is None or len(phases) == len(W):
        return W, phases
    pairs, last = np.split(W, [len(W) - len(phases)])
    turns = np.repeat([0.0, -0.5 * np.pi], len(pairs))
    return np.concatenate([pairs, pairs, last]), np.concatenate([turns, phases])


def fourier_features(W: Array, phases: Array | None, mean: Array, S: Array) -> tuple[Array, Array]:
    """Return mean (D,) and covariance (D, D) of the features of x, as spec K.9 has them."""
    W, phases = turned(W, phases)
    u = W @ mean + (0.0 if phases is None else phases)
    Q = W @ S @ W.T
    A = np.diag(Q)
    B = -0.5 * (A[:, np.newaxis] + A)
    plus, minus = np.exp(B + Q) - np.exp(B), np.exp(B - Q) - np.exp(B)
    less, sum_ = u[:, np.newaxis] - u, u[:, np.newaxis] + u
    cosines = 0.5 * (np.cos(less) * plus + np.cos(sum_) * minus)
    expected, decay = np.cos(u) * np.exp(-0.5 * A), np.exp(-0.5 * A)
    if phases is not None:
        D = len(W)
        return np.sqrt(2.0 / D) * expected, 2.0 / D * cosines
    sines = 0.5 * (np.cos(less) * plus - np.cos(sum_) * minus)
    mixed = 0.5 * (np.sin(sum_) * minus - np.sin(less) * plus)
    D = 2 * len(W)
    expected = np.concatenate([expected, np.sin(u) * decay])
    covariance = np.block([[cosines, mixed], [mixed.T, sines]])
    return np.sqrt(2.0 / D) * expected, 2.0 / D * covariance


def fourier_bounds(
    W: Array, R: Array, radius: float, p: float = 2, feature_norm: float = 2
) -> dict[str, float]:
    """Return bounds of |phi(x + R u) - phi(x)| in a norm, for the paired map (spec G.5).

    With another `feature_norm` than 2 it is that of the difference turned back by the angles w'x of
    each pair. "frequencies" is exact for each frequency by itself, "printed" the paper's, and
    "joint", of both norms 2, knows that no u moves all of them as far.
    """
    D = 2 * len(W)
    theta = radius * np.linalg.norm(W @ R, 1.0 if p == np.inf else np.inf if p == 1 else 2, axis=1)
    alpha, beta = np.minimum(2.0, 0.5 * theta**2), np.minimum(1.0, theta)
    versine, root = 1.0 - np.cos(np.minimum(theta, np.pi)), np.sqrt(2.0 / D)
    if feature_norm == 1:
        own = np.where(theta <= 0.75 * np.pi, versine + np.sin(theta), 1.0 + np.sqrt(2.0))
        return {"frequencies": root * own.sum(), "printed": root * (alpha + beta).sum()}
    if feature_norm == np.inf:
        own = np.where(theta <= 0.5 * np.pi, np.sin(theta), versine)
        return {"frequencies": root * own.max(), "printed": root * np.maximum(alpha, beta).max()}
    bounds = {
        "frequencies": np.sqrt(4.0 / D * versine.sum()),
        "printed": np.sqrt(4.0 / D * alpha.sum()),
    }
    if p == 2:
        angle = radius * np.linalg.norm(W @ R, 2) * root
        bounds["joint"] = 2.0 * np.sin(0.5 * min(np.pi, angle))
    return bounds


def section_moments(Z: Array, gamma: float, mean: Array, S: Array) -> tuple[Array, Array]:
    """Return E h (m,) and E h h' (m, m) of h_j(x) = exp(-gamma |x - z_j|^2), as spec K.10."""
    s2 = 0.5 / gamma
    one = np.eye(len(mean))

    def bump(widening: float, apart: Array) -> Array:
        M = s2 * one + widening * S
        quadratic = np.einsum(
            "...d,...d", apart, np.linalg.solve(M, apart[..., np.newaxis])[..., 0]
        )
        return np.asarray(np.exp(-0.5 * widening * quadratic) / np.sqrt(np.linalg.det(M / s2)))

    first = bump(1.0, mean - Z)
    middle = 0.5 * (Z[:, np.newaxis] + Z)
    apart = np.square(Z[:, np.newaxis] - Z).sum(axis=-1)
    return first, np.exp(-apart / (4.0 * s2)) * bump(2.0, mean - middle)


def nystroem_bounds(
    Z: Array, gamma: float, x: Array, R: Array, radius: float
) -> dict[str, tuple[float, Array]]:
    r"""Return Gamma and T, of bounds Gamma |T w| of w'(phi(x + R u) - phi(x)), |u|_2 <= radius.

    phi(x) = Lambda^(-1/2) U'h(x) for K = U Lambda U' (spec G.6). "kernel" is the distance in the
    kernel's feature space, T = I; of "landmarks", with the exact range of each section, and
    "printed", the paper's, T = Lambda^(-1/2).
    """
    s2 = 0.5 / gamma
    values = np.linalg.eigvalsh(np.exp(-gamma * np.square(Z[:, np.newaxis] - Z).sum(axis=-1)))
    step = radius * np.linalg.norm(R, 2)
    distance = np.linalg.norm(x - Z, axis=1)
    k = np.exp(-gamma * distance**2)
    least = np.exp(-gamma * (distance + step) ** 2)
    largest = np.exp(-gamma * np.maximum(0.0, distance - step) ** 2)
    change = np.maximum(k - least, largest - k)
    tau = np.exp(-radius * np.linalg.norm((x - Z) @ R, axis=1) / s2)
    rho = np.exp(-0.5 * step**2 / s2)
    squared = len(Z) * np.sum(k**2 * (1.0 / tau**2 + 1.0) - 2.0 * rho * k**2 * tau)
    whitening = np.diag(1.0 / np.sqrt(values))
    return {
        "kernel": (float(np.sqrt(2.0 * (1.0 - rho))), np.eye(len(Z))),
        "landmarks": (float(np.linalg.norm(change)), whitening),
        "printed": (float(np.sqrt(squared)), whitening),
    }
