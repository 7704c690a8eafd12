"""Minimise J in extended precision: Newton's method on smoothed problems, floor by floor.

In:  a Problem.
Out: ever better points and, by weak duality, ever better bounds of min J from below.
"""

import contextlib
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .normal import LD, cdf, coarse_cdf, expected_hinge, hinge_parts

COARSE = 1e-5  # down to this floor the arithmetic of doubles leads the way


def solve_positive(matrix, right, *, coarse=False):
    """Solve a positive definite system by Cholesky's method, in doubles if that is good enough."""
    size = len(right)
    scale = 1 / np.sqrt(np.maximum(matrix.diagonal(), LD("1e-4000")))
    A, x = matrix * scale[:, None] * scale, scale * right
    if coarse:
        largest = max(np.abs(x).max(), LD("1e-4000"))
        with contextlib.suppress(np.linalg.LinAlgError):
            factor = cho_factor(A.astype(np.float64), check_finite=False)
            solution = cho_solve(factor, (x / largest).astype(np.float64), check_finite=False)
            return scale * largest * solution
    A = np.column_stack([A, x])
    for k in range(size):
        pivot = max(A[k, k], LD(1e-19))
        A[k, k:] /= pivot
        if k + 1 < size:
            A[k + 1 :, k + 1 :] -= np.multiply.outer(A[k, k + 1 : size] * pivot, A[k, k + 1 :])
    x = A[:, size]
    for k in range(size - 1, 0, -1):
        x[:k] -= A[:k, k] * x[k]
    return scale * x


class Point(NamedTuple):
    """A point u: margin deficits m, variances, q = S w, s with its floor, phi, Phi, smoothed J."""

    u: np.ndarray
    m: np.ndarray
    variance: np.ndarray
    q: np.ndarray
    s: np.ndarray
    density: np.ndarray
    theta: np.ndarray
    value: LD


class Smoothed:
    """J in u = (w * unit, intercept of centred means), with sqrt(s^2 + floor^2) in place of s."""

    def __init__(self, problem):
        self.problem, self.c, self.y = problem, problem.c, problem.y
        n, rank, d = problem.F.shape
        total = problem.side**2 + np.einsum("nrd,nrd->nd", problem.F, problem.F) + problem.V
        unit = np.sqrt(self.c @ total)
        unit[unit == 0] = 1
        self.unit, self.ridge = unit, problem.lam / unit**2
        self.F = (problem.F / unit).reshape(n * rank, d)
        self.V = problem.V / unit**2
        self.has_factors, self.has_diagonal = self.F.any(), self.V.any()
        self.shape = n, rank, d
        self.free = LD(problem.fit_intercept)
        self.side = np.column_stack([problem.side / unit, np.full(n, self.free)])
        self.signed = self.y[:, None] * self.side

    def at(self, u, floor):
        """Return all that is known of the point u with that floor."""
        n, rank, d = self.shape
        w = u[:-1]
        m = 1 - self.signed @ u
        variance, q = np.zeros(n, LD), np.zeros((n, d), LD)
        if self.has_factors:
            p = (self.F @ w).reshape(n, rank)
            variance = np.einsum("nr,nr->n", p, p)
            q = np.einsum("nr,nrd->nd", p, self.F.reshape(n, rank, d))
        if self.has_diagonal:
            r = self.V * w
            variance, q = variance + r @ w, q + r
        return self.with_floor(u, m, variance, q, floor)

    def with_floor(self, u, m, variance, q, floor):
        """Return the same point with another floor."""
        s = np.sqrt(variance + floor**2)
        loss, density, theta = hinge_parts(m, s, coarse_cdf if floor > COARSE else cdf)
        value = self.ridge @ u[:-1] ** 2 / 2 + self.c @ loss
        return Point(u, m, variance, q, s, density, theta, value)

    def value(self, point):
        """J itself."""
        return self.ridge @ point.u[:-1] ** 2 / 2 + self.c @ expected_hinge(
            point.m, np.sqrt(point.variance)
        )

    def rounding(self, u):
        """Bound of the rounding error of J at u, in longdoubles."""
        return LD(4e-19) * len(u) * (1 + self.c @ (np.abs(self.side) @ np.abs(u)))

    def step(self, point, damping, *, coarse=False):
        """Newton's step with the Hessian plus a multiple of I, the slope of J along it, and what
        the gradient costs the bound from below.
        """
        rank, s, q = self.shape[1], point.s, point.q
        curve = self.c * point.density / s
        gradient = -(self.c * point.theta) @ self.signed
        gradient[:-1] += self.ridge * point.u[:-1] + curve @ q
        a = -self.signed
        a[:, :-1] -= (point.m / s**2)[:, None] * q
        hessian = (a.T * curve) @ a
        if self.has_factors:
            hessian[:-1, :-1] += (self.F.T * np.repeat(curve, rank)) @ self.F
        if self.has_factors or self.has_diagonal:
            hessian[:-1, :-1] -= (q.T * (curve / s**2)) @ q
        diagonal = np.einsum("ii->i", hessian)
        diagonal[:-1] += self.ridge + curve @ self.V
        diagonal[-1] += 1 - self.free + LD(1e-300)
        diagonal += damping
        step = -solve_positive(hessian, gradient, coarse=coarse)
        loss = (gradient[:-1] ** 2 / self.ridge).sum() / 2 + abs(gradient[-1])
        return step, gradient @ step, loss

    def lower_bound(self, point):
        """The dual objective at theta = Phi(m / s), v = phi(m / s) S^1/2 w / s: at most min J."""
        return self.dual(point.theta, (point.density / point.s)[:, None] * point.q)

    def dual(self, theta, pull):
        """The dual objective, after the heavier side has been made as light as the other."""
        share = self.c
        if self.free:
            heavy = [(self.c * theta)[self.y == sign].sum() for sign in (1, -1)]
            if min(heavy) <= 0:
                return LD(0)
            factor = [min(LD(1), heavy[1] / heavy[0]), min(LD(1), heavy[0] / heavy[1])]
            share = self.c * np.where(self.y > 0, *factor)
        force = (share * theta) @ self.signed[:, :-1] - share @ pull
        return share @ theta - (force**2 / self.ridge).sum() / 2

    def minimise(self, done, factor=0.1, tight=1e-4, smallest=1e-19):
        """Follow the minimisers as the floor falls, until done(u, J(u), bound) says so.

        The margins of examples at the kink are proportional to the floor, so that a straight line
        through the last two minimisers leads near the next.
        """
        floor, last = LD(1), None
        point = self.at(np.zeros(self.shape[2] + 1, LD), floor)
        while floor > smallest:
            point = self._descend(point, floor, LD(tight))
            u = point.u
            if done(u, self.value(point), self.lower_bound(point)):
                return True
            before, floor = floor, floor * LD(factor)
            point = self.with_floor(u, point.m, point.variance, point.q, floor)
            if last is not None:
                line = (u - last[0]) / (before - last[1])
                guess = self.at(u + line * (floor - before), floor)
                if guess.value < point.value:
                    point = guess
            last = u, before
        return False

    def _descend(self, point, floor, tight):
        """Newton's method, damped where J is so flat that its step leads too far.

        At last, where J no longer tells points apart, steps count that lessen the gradient.
        """
        damping, least, best = LD(0), LD(np.inf), point
        tight = max(tight, LD(1e-2)) if floor > COARSE else tight
        for _ in range(100):
            step, slope, loss = self.step(point, damping, coarse=floor > COARSE)
            if not np.isfinite(loss + slope):
                break
            flat = -slope < LD(1e-12) * point.value
            if loss < least:
                least, best = loss, point
            elif flat and damping == 0:
                break
            enough = min(floor, point.value)
            if loss < tight * enough and -slope < tight * enough:
                break
            for length in (LD(1), LD(0.5), LD(0.25)):
                trial = self.at(point.u + length * step, floor)
                drop = LD(1e-3) * length * slope
                if trial.value <= point.value + drop or (flat and length == 1):
                    point = trial
                    damping = damping / 20 if damping > 1e-12 else LD(0)
                    break
            else:
                if damping > 1e12:
                    break
                damping = max(10 * damping, LD(1e-6))
        return best
