"""Minimise J of certain data, a quadratic program, by Mehrotra's interior-point method.

In:  a Smoothed problem without covariances.
Out: points and bounds as of Smoothed.minimise, to the last digits of a longdouble.
"""

import numpy as np

from .newton import LD, solve_positive


def minimise_certain(smoothed, done, iterations=60):
    """Call done(u, J(u), bound) after each step, until it says so.

    Multipliers a in (0, c) of m <= xi and c - a of xi >= 0; both products fall to the same target.
    """
    c, rows, free = smoothed.c, smoothed.signed, smoothed.free
    n, size = rows.shape
    ridge = np.append(smoothed.ridge, LD(0))
    u, alpha = np.zeros(size, LD), c / 2
    xi = np.full(n, LD(2))
    gap_of = np.full(n, LD(1))  # slack xi - m, here 2 - 1
    still = LD(0)
    for _ in range(iterations):
        beta = c - alpha
        stationarity = ridge * u - rows.T @ alpha
        primal = xi - 1 + rows @ u - gap_of
        diagonal = gap_of / alpha + xi / beta
        hessian = (rows.T / diagonal) @ rows
        np.einsum("ii->i", hessian)[:] += ridge
        hessian[-1, -1] += 1 - free + LD(1e-300)
        mu = (gap_of @ alpha + xi @ beta) / (2 * n)

        def direction(first, second):
            # gap alpha -> first, xi beta -> second
            a = first / alpha - gap_of
            b = second / beta - xi
            right = (a - b - primal) / diagonal
            du = solve_positive(hessian, -stationarity + rows.T @ right)
            dalpha = right - (rows @ du) / diagonal
            dgap = a - gap_of / alpha * dalpha
            dxi = b + xi / beta * dalpha
            return du, dalpha, dgap, dxi

        def longest(dalpha, dgap, dxi):
            length = LD(1)
            for value, change in ((alpha, dalpha), (beta, -dalpha), (gap_of, dgap), (xi, dxi)):
                down = change < 0
                if down.any():
                    length = min(length, (-value[down] / change[down]).min())
            return length

        zero = np.zeros(n, LD)
        du, dalpha, dgap, dxi = direction(zero, zero)
        length = longest(dalpha, dgap, dxi)
        after = (
            (gap_of + length * dgap) @ (alpha + length * dalpha)
            + (xi + length * dxi) @ (beta - length * dalpha)
        ) / (2 * n)
        target = mu * (after / mu) ** 3
        du, dalpha, dgap, dxi = direction(target - dgap * dalpha, target + dxi * dalpha)
        length = min(LD(1), LD(0.995) * longest(dalpha, dgap, dxi))
        u, alpha = u + length * du, alpha + length * dalpha
        gap_of, xi = gap_of + length * dgap, xi + length * dxi
        value = ridge @ u**2 / 2 + c @ np.maximum(1 - rows @ u, 0)
        bound = smoothed.dual(np.clip(alpha / c, 0, 1), np.zeros((n, size - 1), LD))
        if done(u, value, bound):
            return
        still = still + 1 if length < 1e-8 else 0
        if still > 3:
            return
