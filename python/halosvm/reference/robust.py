"""The robust linear machine in pure NumPy: worst and best cases of bounded errors, spec G and K.0b.

Gaussians -> m, s = |R'w|_q -> loss -> objective and its bound. The examples may be anywhere in
x_i + R_i u with |u|_p <= radius_i, where S_i = R_i R_i', p is called `norm`, and 1/p + 1/q = 1.
Other notation as in `linear`. The source is Couellan, Jan, "Feature uncertainty bounding schemes
for large robust nonlinear SVM classifiers" (2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .linear import _factors, _normalised, covariance_product, shared_product, spread_squared
from .losses import worst_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    from .linear import Gradient, Weights
    from .losses import Array, Triple


# -- the spread in other norms -------------------------------------------------------------------
def norm_spread(cov: Covariances, w: Array, norm: float = 2.0) -> tuple[Array, Array]:
    """Return s_i = |R_i'w|_q, shape (n,), and its slope R_i v_i, shape (n, d), 0 where s_i = 0.

    v_i is the vector with |v_i|_p = 1 and v_i'R_i'w = s_i. The root R is diag(std), or [F,
    diag(std)] for low rank with a diagonal; a full matrix has many, which only p = 2 tells not
    apart.
    """
    cov = cov.expanded()
    if cov.kind == "full":
        if norm != 2:
            raise ValueError(
                f"norm is {norm:g}, and the covariances are full: their roots R, S = R R', give "
                "different |R'w|_q; give their factors (low_rank), or norm=2"
            )
        s = np.sqrt(spread_squared(cov, w))
        return s, covariance_product(cov, w) / np.where(s > 0.0, s, 1.0)[:, np.newaxis]
    factors: Array = np.zeros((len(cov), len(w), 0))
    std: Array = np.zeros((len(cov), 1))
    if cov.kind == "low_rank":
        factors = _factors(cov)
        std = std if cov.diagonal_values is None else np.sqrt(cov.diagonal_values)
    else:
        std = np.sqrt(shared_product(cov, w))
    rank = factors.shape[2]
    s, v = _dual_vector(np.hstack([w @ factors, std * w]), norm)
    return s, np.einsum("ndr,nr->nd", factors, v[:, :rank]) + std * v[:, rank:]


def _dual_vector(a: Array, p: float) -> tuple[Array, Array]:
    """Return |a|_q of each row, and v with |v|_p = 1 and v'a = |a|_q; v = 0 for a = 0."""
    largest = np.abs(a).max(axis=1, initial=0.0)
    t = np.abs(a) / np.where(largest > 0.0, largest, 1.0)[:, np.newaxis]
    if p == 1:
        v = np.eye(a.shape[1])[t.argmax(axis=1)] * (t > 0.0)
        return largest, v * np.sign(a)
    q = 1.0 if p == np.inf else p / (p - 1.0)
    size = np.power(t, q).sum(axis=1) ** (1.0 / q)
    power = (t > 0.0) * t ** (q - 1.0) / np.where(size > 0.0, size, 1.0)[:, np.newaxis] ** (q - 1.0)
    return largest * size, power * np.sign(a)


def worst_perturbation(
    cov: Covariances, y: Array, w: Array, radius: ArrayLike = 1.0, norm: float = 2.0
) -> Array:
    """Return the dx_i = -y_i radius_i R_i v_i, shape (n, d), at which the hinge is the worst."""
    slope = norm_spread(cov, w, norm)[1]
    return np.asarray(-(y * np.asarray(radius))[:, np.newaxis] * slope)


# -- objective and bound -------------------------------------------------------------------------
def robust_objective(
    X: Gaussians, y: Array, w: Array, b: float, lam: float, radius: ArrayLike = 1.0,
    norm: float = 2.0, weights: Weights = None, loss: Callable[..., Triple] = worst_case,
) -> Gradient:  # fmt: skip
    """Return J = lam/2 |w|^2 + sum_i c_i psi(m_i, s_i), a subgradient (d,) in w, and dJ/db."""
    c, (s, slope) = _normalised(weights, y), norm_spread(X.covariances, w, norm)
    psi, slope_m, slope_s2 = loss(1.0 - y * (X.mean @ w + b), s, radius)
    a = -c * y * slope_m
    value = 0.5 * lam * float(w @ w) + float(c @ psi)
    return value, lam * w + a @ X.mean + (c * slope_s2 * s) @ slope, float(a.sum())


def robust_lower_bound(
    X: Gaussians, y: Array, w: Array, b: float, lam: float, radius: ArrayLike = 1.0,
    norm: float = 2.0, weights: Weights = None, theta: Array | None = None,
) -> float:  # fmt: skip
    """Return a lower bound on min J of the worst case, from any (w, b), and any theta in [0, 1].

    max(0, m + radius s) >= theta (m + radius v'R'w) is affine in (w, b). With theta scaled down on
    the heavier side, so that sum_i c_i y_i theta_i = 0, the intercept is gone, and
    D = sum_i c_i theta_i - |sum_i c_i theta_i (y_i x_i - radius_i R_i v_i)|^2/(2 lam).
    theta is psi_m unless it is given, as for the examples at the kink.
    """
    c, (s, slope) = _normalised(weights, y), norm_spread(X.covariances, w, norm)
    if theta is None:
        theta = worst_case(1.0 - y * (X.mean @ w + b), s, radius)[1]
    mass = c * theta
    heavier = 1.0 if mass @ y > 0.0 else -1.0
    own, other = mass[y == heavier].sum(), mass[y != heavier].sum()
    mass = np.where(y == heavier, other / own if own > 0.0 else 0.0, 1.0) * mass
    total = (mass * y) @ X.mean - (mass * np.asarray(radius)) @ slope
    return max(0.0, float(mass.sum()) - 0.5 / lam * float(total @ total))
