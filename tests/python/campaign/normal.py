"""The normal distribution and the expected hinge in longdoubles.

In:  arrays of longdoubles.
Out: Phi to an absolute error of some 1e-19, and E max(0, m + s Z) as accurately.
"""

from functools import cache

import mpmath
import numpy as np
from scipy.special import erfcx, ndtr

LD = np.longdouble
ROOT_TWO_PI = np.sqrt(2 * LD(np.pi) + LD(2 * 1.2246467991473532e-16))  # pi to all digits
STEPS, LIMIT = 32, 10  # a grid of 1/32 from -10 to 10


@cache
def _grid():
    with mpmath.workdps(30):
        values = [
            mpmath.ncdf(mpmath.mpf(k) / STEPS) for k in range(-LIMIT * STEPS, LIMIT * STEPS + 1)
        ]
        highs = [float(value) for value in values]
        lows = [float(value - high) for value, high in zip(values, highs, strict=True)]
    return np.array(highs, LD) + np.array(lows, LD)


def pdf(z):
    """phi(z)."""
    return np.exp(-z * z / 2) / ROOT_TWO_PI


def cdf(z):
    """Phi(z): Taylor's series about the next point of a grid, with Hermite's polynomials."""
    near = np.fmax(np.fmin(z, LIMIT), -LIMIT)
    k = np.rint(near * STEPS)
    point = k / STEPS
    h = near - point
    before, polynomial, power, total = LD(0), LD(1), h, h
    for order in range(1, 10):
        before, polynomial = polynomial, point * polynomial - (order - 1) * before
        power = -power * h / (order + 1)
        total = total + polynomial * power
    value = _grid()[(k + LIMIT * STEPS).astype(int)] + pdf(point) * total
    far = (z < -5) | (z > LIMIT)  # where doubles are as accurate
    if far.any():
        value[far] = ndtr(np.clip(z[far], -1e3, 1e3).astype(np.float64))
    return value


def coarse_cdf(z):
    """Phi(z) to the accuracy of doubles: faster."""
    return ndtr(np.clip(z, -1e3, 1e3).astype(np.float64)).astype(LD)


def hinge_parts(m, s, cdf=cdf):
    """Return E max(0, m + s Z) = m Phi(z) + s phi(z) of s > 0, with phi(z) and Phi(z), z = m / s.

    Where this cancels it is s phi (1 - t Phi(-t) / phi(t)), t = -z: 1e-13 of next to nothing.
    """
    z = m / s
    density, theta = pdf(z), cdf(z)
    loss = m * theta + s * density
    far = z < -5
    if far.any():
        t = np.minimum(-z[far], 60).astype(np.float64)
        rest = 1 - t * np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2))
        loss[far] = s[far] * density[far] * np.maximum(rest, 0)
    return loss, density, theta


def expected_hinge(m, s):
    """E max(0, m + s Z), also of s = 0."""
    positive = s > 0
    loss, _, _ = hinge_parts(m, np.where(positive, s, 1))
    return np.where(positive, loss, np.maximum(m, 0))
