"""Losses in pure NumPy: (m, s) -> psi, psi_m, psi_s/s, and the second derivatives of psi.

Z is standard normal, Phi and phi its distribution function and density, z = m/s. Relative accuracy:
1e-13 for functions of z in [-37, 37]. The rounding of z itself changes phi(z) by z^2 times 1.1e-16,
so that functions of (m, s) are good to 4e-13 at |z| = 37.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, expit, logsumexp

Array = NDArray[np.floating[Any]]
Triple = tuple[Array, Array, Array]


# -- the normal distribution, without cancellation -----------------------------------------------
def normal_tail(t: ArrayLike) -> Triple:
    """Return phi(t), Phi(-t) and h(t) = E max(0, Z - t) = phi(t) - t Phi(-t) for t >= 0.

    With the Mills ratio R = Phi(-t)/phi(t), h = phi (1 - t R), which cancels for large t; from
    t = 6 on h = phi R A_1 with the continued fraction A_1 = 1/(t + 2/(t + 3/(t + ...))).
    """
    t = np.asarray(np.minimum(t, 40.0))  # everything underflows to 0 there, and inf * 0 is avoided
    pdf = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    mills = np.sqrt(0.5 * np.pi) * erfcx(t * np.sqrt(0.5))
    relative = np.asarray(1.0 - t * mills)
    far = t >= 6.0
    if far.any():
        relative[far] = mills[far] * _tail_fractions(t[far], n_terms=20)[0]
    return pdf, pdf * mills, pdf * relative


def squared_hinge_tail(t: ArrayLike) -> Array:
    """Return E max(0, Z - t)^2 = (1 + t^2) Phi(-t) - t phi(t) = phi R A_1 A_2 for t >= 0."""
    t = np.asarray(np.minimum(t, 40.0))
    pdf, upper, _ = normal_tail(t)
    first, second = _tail_fractions(np.maximum(t, 3.0), n_terms=52)
    return np.where(t < 3.0, (1.0 + t * t) * upper - t * pdf, upper * first * second)


def _tail_fractions(t: Array, n_terms: int) -> tuple[Array, Array]:
    """Return A_1 and A_2 of A_k = k/(t + A_(k+1)), all terms positive."""
    fraction = following = np.zeros_like(t)
    for k in range(n_terms, 0, -1):
        fraction, following = k / (t + fraction), fraction
    return fraction, following


def ratio(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return z = m/s clipped to [-40, 40], s with 1 in place of 0, and the mask of s = 0."""
    certain = np.less(s, 1e-300)  # phi/s overflows there
    safe_s = np.where(certain, 1.0, s)
    with np.errstate(over="ignore"):
        return np.clip(np.divide(m, safe_s), -40.0, 40.0), safe_s, certain


def _normal(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return z, Phi(z) and phi(z); at s = 0 Phi is 0, 1/2 or 1 by the sign of m, and phi is 0."""
    z, _, certain = ratio(m, s)
    pdf, upper, _ = normal_tail(np.abs(z))
    cdf = np.where(certain, np.heaviside(m, 0.5), np.where(z > 0.0, 1.0 - upper, upper))
    return z, cdf, np.where(certain, 0.0, pdf)


# -- losses --------------------------------------------------------------------------------------
def expected_hinge(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = E max(0, m + s Z) = m Phi(z) + s phi(z), psi_m = Phi(z), psi_s/s = phi(z)/s.

    Evaluated as max(m, 0) + s h(|z|), where nothing cancels; SVM-GSU eq. (6). At s = 0 it is the
    hinge with psi_s/s = 0, and psi_m = 1/2 at the kink m = s = 0.
    """
    z, safe_s, certain = ratio(m, s)
    pdf, upper, tail = normal_tail(np.abs(z))
    slope_m = np.where(certain, np.heaviside(m, 0.5), np.where(z > 0.0, 1.0 - upper, upper))
    value = np.maximum(m, 0.0) + np.where(certain, 0.0, safe_s * tail)
    return value, slope_m, np.where(certain, 0.0, pdf / safe_s)


def hinge(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = max(0, m), psi_m (1/2 at m = 0) and psi_s/s = 0: the spread is ignored."""
    return np.maximum(m, 0.0), np.heaviside(m, 0.5), np.multiply(s, 0.0)


def expected_squared_hinge(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = E max(0, m + s Z)^2, psi_m = 2 E max(0, m + s Z), psi_s/s = 2 Phi(z).

    The two sides of m add up to m^2 + s^2, of which the smaller one is evaluated.
    """
    z, cdf, _ = _normal(m, s)
    smaller = np.square(s) * squared_hinge_tail(np.abs(z))
    value = np.where(np.less(z, 0.0), smaller, np.square(m) + np.square(s) - smaller)
    return value, 2.0 * expected_hinge(m, s)[0], 2.0 * cdf


def expected_huber_hinge(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = E h(m + s Z), psi_m and psi_s/s; h(u) is 0, u^2/2 or u - 1/2 below 0, 1, above.

    Half the difference of the squared hinges of m and m - 1, spec K.3; h(u) - h(1 - u) = u - 1/2.
    """
    high = np.greater(m, 0.5)
    n = np.where(high, np.subtract(1.0, m), m)
    outer, inner = np.array(expected_squared_hinge(n, s)), expected_squared_hinge(n - 1.0, s)
    value, slope_m, slope_s2 = (outer - inner) / 2.0
    value = np.where(high, np.subtract(m, 0.5) + value, value)
    return value, np.where(high, 1.0 - slope_m, slope_m), slope_s2


# E log(1 + exp(u)) is E max(0, u + L) for logistic L, nearly a mixture of three normal laws.
LOGISTIC_SHARES = (0.32329402, 0.56606181, 0.11064417)
LOGISTIC_VARIANCES = (1.32870897, 3.38999510, 8.50457061)


def expected_logistic(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = E log(1 + exp(m + s Z)) within 4e-5, psi_m and psi_s/s: a mixture of hinges."""
    value, slope_m, slope_s2 = np.sum(
        [
            share * np.array(expected_hinge(m, np.sqrt(np.square(s) + variance)))
            for share, variance in zip(LOGISTIC_SHARES, LOGISTIC_VARIANCES, strict=True)
        ],
        axis=0,
    )
    return value, slope_m, slope_s2


def _true_inputs(m: ArrayLike, s: ArrayLike) -> tuple[Array, Triple]:
    """Return -log E sigma(-(m + s Z)); and of Z given the label nodes, weights and sigma(m + s z).

    The trapezoidal rule around the likeliest z, where z + s sigma(m + s z) = 0. Its step is half of
    what sigma turns over, so that it takes memory for 36 s numbers of each (m, s).
    """
    m, s = (np.asarray(a, np.float64)[..., np.newaxis] for a in np.broadcast_arrays(m, s))
    low, high = -s, np.zeros_like(s)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = middle + s * expit(m + s * middle) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    step = min(0.4, 0.5 / max(1.0, float(np.max(s, initial=0.0))))
    z = low + np.arange(-9.0, 9.0, step)
    log_density = -np.logaddexp(0.0, m + s * z) - 0.5 * z * z
    total = logsumexp(log_density, axis=-1, keepdims=True)
    value = 0.5 * np.log(2.0 * np.pi) - np.log(step) - total[..., 0]
    return value, (z, np.exp(log_density - total), expit(m + s * z))


def marginal_logistic(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi = -log E sigma(-(m + s Z)), psi_m = E sigma and psi_s/s = E sigma (1 - 2 sigma).

    The latter are expectations given the label; Bi and Zhang (2004), eq. (1). To 1e-13, absolutely.
    """
    value, (_, weights, p) = _true_inputs(m, s)
    return value, (weights * p).sum(axis=-1), (weights * p * (1.0 - 2.0 * p)).sum(axis=-1)


def worst_case(m: ArrayLike, s: ArrayLike, radius: ArrayLike = 1.0) -> Triple:
    """Return psi = max(0, m + radius s), psi_m (1/2 at the kink) and psi_s/s, 0 where s = 0."""
    argument = np.add(m, np.multiply(radius, s))
    slope, certain = np.heaviside(argument, 0.5), np.less(s, 1e-300)
    slope_s2 = np.where(certain, 0.0, radius * slope / np.where(certain, 1.0, s))
    return np.maximum(argument, 0.0), slope, slope_s2


def best_case(m: ArrayLike, s: ArrayLike, radius: ArrayLike = 1.0) -> Triple:
    """Return psi = max(0, m - radius s), psi_m and psi_s/s; it is not convex in w."""
    return worst_case(m, s, np.negative(radius))


LOSSES = {
    "expected_hinge": expected_hinge,
    "hinge": hinge,
    "expected_squared_hinge": expected_squared_hinge,
    "expected_huber_hinge": expected_huber_hinge,
    "expected_logistic": expected_logistic,
    "marginal_logistic": marginal_logistic,
    "worst_case": worst_case,
    "best_case": best_case,
}

# What the labels' offset is in m = margin - y f.
MARGINS = {name: 0.0 if name.endswith("logistic") else 1.0 for name in LOSSES}


def curvature(loss: str, m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi_mm, psi_ms, psi_ss. Where psi = E h(m + s Z), psi_mm = psi_s/s."""
    if loss == "marginal_logistic":  # E sigma' a a' - Cov(sigma a) of a = (1, z), given the label
        z, weights, p = _true_inputs(m, s)[1]
        bend = p * (1.0 - p)
        mean, mean_z = ((weights * each).sum(axis=-1) for each in (p, p * z))
        second = [(weights * (bend - p * p) * z**j).sum(axis=-1) for j in range(3)]
        return second[0] + mean**2, second[1] + mean * mean_z, second[2] + mean_z**2
    if loss in ("worst_case", "best_case"):
        return (np.zeros(np.shape(m)),) * 3
    if loss == "expected_squared_hinge":
        z, cdf, pdf = _normal(m, s)
        return 2.0 * cdf, 2.0 * pdf, 2.0 * (cdf - z * pdf)
    if loss == "expected_huber_hinge":
        outer, inner = (curvature("expected_squared_hinge", np.subtract(m, t), s) for t in (0, 1))
        mm, ms, ss = (np.array(outer) - inner) / 2.0
        return mm, ms, ss
    if loss == "expected_logistic":
        total = np.zeros((3, *np.shape(m)))
        for share, variance in zip(LOGISTIC_SHARES, LOGISTIC_VARIANCES, strict=True):
            width = np.sqrt(np.square(s) + variance)
            mm, ms, ss = curvature("expected_hinge", m, width)
            slope = np.divide(s, width)
            total += share * np.array([mm, ms * slope, ss * slope**2 + mm * variance / width**2])
        return total[0], total[1], total[2]
    z, mm = ratio(m, s)[0], LOSSES[loss](m, s)[2]
    return mm, -z * mm, z * z * mm
