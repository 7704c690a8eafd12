"""Limits of readings, in pure NumPy and SciPy: the posterior of a row with one limit, spec O.3.

Notation as in `empirical_bayes`; the reading of feature c is NaN, and known to lie between `lower`
and `upper`, either of which may be infinite. It is a reading of S_cc about the true value, and 0
there says that the limit is of the true value itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import multivariate_normal, norm, truncnorm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]


def limited_posterior(
    x: Array, S: Array, c: int, lower: float, upper: float, a: Array, m: Array, V: Array
) -> tuple[float, Array, Array, Array]:
    """Return log p and the posterior r (k,), b (k, d), B (k, d, d) of one row: x (d,), S (d, d).

    The limited reading x_c is normal, given those that are read, with mean mu and variance s^2 of
    its own; P(it lies within the limits) enters the density of the component. With the moments of
    x_c within the limits, b is that of N at E x_c, and B + K_c Var(x_c) K_c'.
    """
    read = np.flatnonzero(~np.isnan(x))
    known = np.append(read, c)
    log_joint, b, B = [], [], []
    for a_k, m_k, V_k in zip(a, m, V, strict=True):
        T = V_k + S
        slope = np.linalg.solve(T[np.ix_(read, read)], T[read, c])
        mu, s = m_k[c] + slope @ (x - m_k)[read], np.sqrt(T[c, c] - slope @ T[read, c])
        within = truncnorm((lower - mu) / s, (upper - mu) / s, mu, s)
        edge = lower if np.isfinite(lower) else upper
        log_mass = norm(mu, s).logpdf(edge) - within.logpdf(edge)
        if read.size:
            log_mass += multivariate_normal(m_k[read], T[np.ix_(read, read)]).logpdf(x[read])
        log_joint.append(np.log(a_k) + log_mass)
        K = np.linalg.solve(T[np.ix_(known, known)], V_k[known]).T
        rest = np.append(x[read], within.mean()) - m_k[known]
        b.append(m_k + K @ rest)
        B.append(V_k - K @ V_k[known] + within.var() * np.outer(K[:, -1], K[:, -1]))
    total = float(np.logaddexp.reduce(log_joint))
    return total, np.exp(np.array(log_joint) - total), np.array(b), np.array(B)
