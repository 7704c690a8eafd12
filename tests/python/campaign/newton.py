"""Minimise J in extended precision: Newton's method on smoothed problems, floor by floor.

In:  a Problem.
Out: ever better points and, by weak duality, ever better bounds of min J from below.
"""

import numpy as np

from .problem import LD, ROOT_TWO_PI, cdf, expected_hinge


def solve_positive(matrix, right):
    """Solve a positive definite system by Cholesky's method in longdoubles."""
    size = len(right)
    scale = 1 / np.sqrt(np.maximum(matrix.diagonal(), LD(1e-4000)))
    A = matrix * scale[:, None] * scale
    x = scale * right
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

    def look(self, u):
        """Return margin deficits m, variances s^2, and q = S w of all examples."""
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
        return m, variance, q

    def value(self, u, look, floor):
        """J with that floor."""
        m, variance, _ = look
        ridge = self.ridge @ u[:-1] ** 2 / 2
        return ridge + self.c @ expected_hinge(m, np.sqrt(variance + floor**2))

    def rounding(self, u):
        """Bound of the rounding error of J at u, in longdoubles."""
        return LD(4e-19) * len(u) * (1 + self.c @ (np.abs(self.side) @ np.abs(u)))

    def step(self, u, look, floor, damping):
        """Newton's step with the Hessian plus a multiple of I, and the slope of J along it."""
        m, variance, q = look
        n, rank, _ = self.shape
        s = np.sqrt(variance + floor**2)
        z = m / s
        curve = self.c * np.exp(-z * z / 2) / ROOT_TWO_PI / s
        gradient = -(self.c * cdf(z)) @ self.signed
        gradient[:-1] += self.ridge * u[:-1] + curve @ q
        a = -self.signed
        a[:, :-1] -= (z / s)[:, None] * q
        hessian = (a.T * curve) @ a
        if self.has_factors:
            hessian[:-1, :-1] += (self.F.T * np.repeat(curve, rank)) @ self.F
        if self.has_factors or self.has_diagonal:
            hessian[:-1, :-1] -= (q.T * (curve / s**2)) @ q
        diagonal = np.einsum("ii->i", hessian)
        diagonal[:-1] += self.ridge + curve @ self.V
        diagonal[-1] += 1 - self.free + LD(1e-300)
        diagonal += damping
        step = -solve_positive(hessian, gradient)
        return step, gradient @ step

    def lower_bound(self, look, floor):
        """The dual objective at theta = Phi(m / s), v = phi(m / s) S^1/2 w / s: at most min J."""
        m, variance, q = look
        s = np.sqrt(variance + floor**2)
        z = m / s
        theta = cdf(z)
        curve = np.exp(-z * z / 2) / ROOT_TWO_PI / s
        return self.dual(theta, curve[:, None] * q)

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

    def minimise(self, done, smallest=LD(1e-19)):
        """Follow the minimisers as the floor falls, until done(u, J(u), bound) says so.

        The margins of examples at the kink are proportional to the floor, so that a straight line
        through the last two minimisers leads near the next.
        """
        u, floor, last = np.zeros(self.shape[2] + 1, LD), LD(1), None
        look = self.look(u)
        while floor > smallest:
            u, look = self._descend(u, look, floor)
            value, bound = self.value(u, look, LD(0)), self.lower_bound(look, floor)
            if done(u, value, bound):
                return
            here, next_floor = (u, floor), floor * LD(0.1)
            if last is not None:
                guess = u + (u - last[0]) * ((next_floor - floor) / (floor - last[1]))
                seen = self.look(guess)
                if self.value(guess, seen, next_floor) < self.value(u, look, next_floor):
                    u, look = guess, seen
            last, floor = here, next_floor

    def _descend(self, u, look, floor):
        """Newton's method, damped where J is so flat that its step leads too far."""
        value, damping = self.value(u, look, floor), LD(0)
        for _ in range(100):
            step, slope = self.step(u, look, floor, damping)
            if -slope < LD(1e-6) * min(floor, value) and damping <= floor:
                return u + step, self.look(u + step)
            for length in (LD(1), LD(0.5), LD(0.25)):
                trial = u + length * step
                seen = self.look(trial)
                there = self.value(trial, seen, floor)
                if there <= value + LD(1e-3) * length * slope:
                    u, look, value = trial, seen, there
                    damping = damping / 20 if damping > 1e-12 else LD(0)
                    break
            else:
                if damping > 1e12:
                    break
                damping = max(10 * damping, LD(1e-6))
        return u, look
