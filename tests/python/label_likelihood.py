"""The marginal logistic loss in many digits: Gauss and Legendre on its integral, for the tests."""

from itertools import pairwise

import mpmath
import numpy as np

DIGITS = 50
_N = 20


def _rule():
    """Return nodes and weights of Gauss and Legendre, by Newton's method from those in doubles."""
    with mpmath.workdps(DIGITS):
        found = []
        for start in np.polynomial.legendre.leggauss(_N)[0]:
            x = mpmath.mpf(float(start))
            for _ in range(4):
                p, q = mpmath.legendre(_N, x), mpmath.legendre(_N - 1, x)
                slope = _N * (x * p - q) / (x * x - 1)
                x -= p / slope
            found.append((x, 2 / ((1 - x * x) * slope * slope)))
        return found


RULE = _rule()


def _probability(a, s):
    """Return P(a) = E sigma(-(a + s Z)) for a >= 0 and its four derivatives: E He_j(Z) g / s^j."""
    low, high = -s, mpmath.mpf(0)  # the integrand is largest where z + s sigma(a + s z) = 0
    for _ in range(50):
        z = (low + high) / 2
        above = z + s / (1 + mpmath.exp(-(a + s * z))) > 0
        low, high = (low, z) if above else (z, high)
    edges = [z + mpmath.mpf(k) / 2 for k in range(-28, 29)]
    if s > 4:  # sigma goes from 1 to 0 within a part of a panel
        turn = [-a / s + 2 * mpmath.mpf(k) / s for k in range(-40, 41)]
        edges = sorted({*edges, *(t for t in turn if edges[0] < t < edges[-1])})
    sums = [mpmath.mpf(0)] * 5
    for left, right in pairwise(edges):
        half, middle = (right - left) / 2, (left + right) / 2
        for x, weight in RULE:
            z = middle + half * x
            square = z * z
            mass = weight * half * mpmath.exp(-square / 2) / (1 + mpmath.exp(a + s * z))
            hermite = 1, z, square - 1, z * (square - 3), square * (square - 6) + 3
            sums = [total + mass * h for total, h in zip(sums, hermite, strict=True)]
    root = mpmath.sqrt(2 * mpmath.pi)
    return [total / root / s**j for j, total in enumerate(sums)]


def derivatives(m, s):
    """Return psi = -log E sigma(-(m + s Z)), psi_m, psi_s / s, psi_mm, psi_ms and psi_ss, s > 0."""
    with mpmath.workdps(DIGITS):
        m, s = mpmath.mpf(float(m)), mpmath.mpf(float(s))
        if m > max(s * s / 2, 60):  # second derivatives cancel; psi(m) = m - s^2 / 2 + psi(s^2 - m)
            value, by_m, by_s2, mm, ms, ss = derivatives_of(s * s - m, s)
            return (
                m - s * s / 2 + value,
                1 - by_m,
                by_s2 + 2 * by_m - 1,
                mm,
                -ms - 2 * s * mm,
                ss + 4 * s * (ms + s * mm) + 2 * by_m - 1,
            )
        return derivatives_of(m, s)


def derivatives_of(m, s):
    """Return the same by the integral itself."""
    P = _probability(abs(m), s)
    value = -mpmath.log(P[0])
    if m < 0:  # P(-a) = 1 - P(a)
        value = -mpmath.log1p(-P[0])
        P = [1 - P[0], P[1], -P[2], P[3], -P[4]]
    r = [p / P[0] for p in P]
    return (
        value,
        -r[1],
        -r[2],
        r[1] ** 2 - r[2],
        s * (r[2] * r[1] - r[3]),
        s * s * (r[2] ** 2 - r[4]) - r[2],
    )
