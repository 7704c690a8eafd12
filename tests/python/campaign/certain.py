"""Minimise J of certain data, a quadratic program, by Mehrotra's interior-point method.

In:  a Smoothed problem without covariances.
Out: points and bounds as of Smoothed.minimise, to the last digits of a longdouble.
"""

import numpy as np

from .newton import LD, solve_positive


class QuadraticProgram:
    """min ridge/2 |u|^2 + c'xi subject to slack = xi - m >= 0 and xi >= 0, m = 1 - rows u.

    alpha in (0, c) multiplies the first constraint, c - alpha the second. On the path that leads
    to the optimum slack * alpha and xi * (c - alpha) have the same value everywhere.
    """

    def __init__(self, smoothed):
        self.c, self.rows = smoothed.c, smoothed.signed
        self.ridge = np.append(smoothed.ridge, LD(0))
        self.fixed = 1 - smoothed.free + LD(1e-300)  # holds the intercept where there is none
        self.u, self.alpha = np.zeros(self.rows.shape[1], LD), self.c / 2
        self.xi, self.slack = np.full(len(self.c), LD(2)), np.ones(len(self.c), LD)

    def step(self):
        """Go one predictor-corrector step; return its length."""
        weights = self.slack / self.alpha + self.xi / (self.c - self.alpha)
        hessian = (self.rows.T / weights) @ self.rows
        np.einsum("ii->i", hessian)[:] += self.ridge
        hessian[-1, -1] += self.fixed
        zero = np.zeros(len(self.c), LD)
        _, dalpha, dslack, dxi = change = self._direction(hessian, weights, zero, zero)
        ahead = self._longest(change)
        now, after = self._complementarity(change, LD(0)), self._complementarity(change, ahead)
        target = now * (after / now) ** 3
        change = self._direction(hessian, weights, target - dslack * dalpha, target + dxi * dalpha)
        length = min(LD(1), LD(0.995) * self._longest(change))
        self.u, self.alpha, self.slack, self.xi = (
            value + length * d
            for value, d in zip((self.u, self.alpha, self.slack, self.xi), change, strict=True)
        )
        return length

    def _direction(self, hessian, weights, first, second):
        """Newton's step to slack * alpha = first and xi * (c - alpha) = second."""
        a, b = first / self.alpha - self.slack, second / (self.c - self.alpha) - self.xi
        infeasible = self.xi - 1 + self.rows @ self.u - self.slack
        right = (a - b - infeasible) / weights
        gradient = self.ridge * self.u - self.rows.T @ self.alpha
        du = solve_positive(hessian, self.rows.T @ right - gradient)
        dalpha = right - (self.rows @ du) / weights
        dslack = a - self.slack / self.alpha * dalpha
        return du, dalpha, dslack, b + self.xi / (self.c - self.alpha) * dalpha

    def _longest(self, change):
        _, dalpha, dslack, dxi = change
        values = np.concatenate([self.alpha, self.c - self.alpha, self.slack, self.xi])
        changes = np.concatenate([dalpha, -dalpha, dslack, dxi])
        down = changes < 0
        return min(LD(1), (values[down] / -changes[down]).min()) if down.any() else LD(1)

    def _complementarity(self, change, length):
        _, dalpha, dslack, dxi = (length * d for d in change)
        first = (self.slack + dslack) @ (self.alpha + dalpha)
        return (first + (self.xi + dxi) @ (self.c - self.alpha - dalpha)) / (2 * len(self.c))

    def value(self):
        """J at u."""
        return self.ridge @ self.u**2 / 2 + self.c @ np.maximum(1 - self.rows @ self.u, 0)


def minimise_certain(smoothed, done, iterations=60):
    """Call done(u, J(u), bound) after each step, until it says so; False if steps lead nowhere."""
    program, short = QuadraticProgram(smoothed), 0
    no_pull = np.zeros((len(program.c), len(program.u) - 1), LD)
    for _ in range(iterations):
        length = program.step()
        if not np.isfinite(length):
            break
        theta = np.clip(program.alpha / program.c, 0, 1)
        if done(program.u, program.value(), smoothed.dual(theta, no_pull)):
            return True
        short = short + 1 if length < 1e-8 else 0
        if short > 3:
            break
    return False
