"""The total SVM in a ball: the QCQP (8) of Bi and Zhang (2004), whose dual is (9) (spec I.5).

In:  points in coordinates, signs, weights, margins 1 - gamma delta_i, and the radius gamma.
Out: the w and b that minimise sum_i c_i max(0, margin_i - y_i (w'x_i + b)) over |w| <= gamma, and a
     number that no model is below.

A primal-dual interior-point method for the conditions of optimality

    mu w = sum a_i y_i x_i,  sum a_i y_i = 0,  t_i - r_i = margin_i - y_i (w'x_i + b),
    a_i r_i = sigma,  (c_i - a_i) t_i = sigma,  mu (gamma^2 - |w|^2) / 2 = sigma,

with sigma -> 0. Eliminating a, r, t and mu leaves one positive definite system for (w, b).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Move = tuple[Array, float, Array, Array, Array, float]

_TO_THE_BOUNDARY = 0.99
_STUCK = 8  # so many steps in a row that hardly reduce the gap end the search


@dataclass(frozen=True, eq=False)
class InBall:
    """A model, a bound of its loss (8) from below, and whether |w| is gamma."""

    coef: Array
    intercept: float
    lower_bound: float
    n_iter: int
    converged: bool
    on_sphere: bool


@dataclass(frozen=True, eq=False)
class Ball:
    """A problem (8).

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    y : ndarray of shape (n_samples,)
        Signs, both of them.
    c : ndarray of shape (n_samples,)
        Weights > 0.
    margins : ndarray of shape (n_samples,)
        Of any sign.
    gamma : float
        Radius of the ball.
    """

    X: Array
    y: Array
    c: Array
    margins: Array
    gamma: float

    def minimize(self, tol: float, max_iter: int) -> InBall:
        """Minimise to `tol` of the loss at w = 0, b = 0; on the sphere if it has a minimum there.

        A minimum inside may be one of many: that on the sphere in its direction is tried too, and
        in the direction from class to class if all models are minima.
        """
        scale = float(self.c @ np.maximum(0.0, self.margins))
        w, lower_bound, n_iter, converged = self.between_classes(), 0.0, 0, True
        if scale > 0.0:
            search = _Search(self)
            stuck, gap = 0, search.gap()
            # The last digits of w cost a few steps more than those of the loss.
            while gap > 1e-4 * tol * scale and stuck < _STUCK and n_iter < max_iter:
                if not search.step():
                    break
                stuck = stuck + 1 if search.gap() > 0.9 * gap else 0
                n_iter, gap = n_iter + 1, search.gap()
            converged = search.gap() <= tol * scale
            w, lower_bound = search.best, search.lower_bound
        length = float(np.linalg.norm(w))
        if length > 0.0:
            outside = w * (self.gamma / length)
            intercept, value = self.best_intercept(outside)
            if value - lower_bound <= tol * scale:
                return InBall(outside, intercept, lower_bound, n_iter, converged, True)
        inside = w if scale > 0.0 else np.zeros(len(w))
        intercept, _ = self.best_intercept(inside)
        return InBall(inside, intercept, lower_bound, n_iter, converged, False)

    def between_classes(self) -> Array:
        """Return the difference of the means of the classes."""
        sides = [self.y > 0, self.y < 0]
        positive, negative = (np.average(self.X[s], axis=0, weights=self.c[s]) for s in sides)
        return np.asarray(positive - negative)

    def deficits(self, w: Array, b: float) -> Array:
        """Return margin - y (w'x + b)."""
        return np.asarray(self.margins - self.y * (self.X @ w + b))

    def value(self, w: Array, b: float) -> float:
        """Return the loss (8)."""
        return float(self.c @ np.maximum(0.0, self.deficits(w, b)))

    def best_intercept(self, w: Array) -> tuple[float, float]:
        """Return the b that minimises the loss at w, of an interval the middle, and the loss.

        The slope in b grows from minus the weight of the positive class by c_i at each kink.
        """
        kinks = self.y * self.margins - self.X @ w
        order = np.argsort(kinks)
        slope = np.cumsum(self.c[order]) - self.c[self.y > 0].sum()
        zero = 1e-14 * self.c.sum()
        first = int(np.argmax(slope >= -zero))
        last = first + (slope[first] <= zero and first + 1 < len(kinks))
        b = float(0.5 * (kinks[order[first]] + kinks[order[last]]))
        return b, self.value(w, b)


class _Search:
    """The present point of the interior-point method; `best` is the w of the lowest value."""

    def __init__(self, ball: Ball) -> None:
        self.ball = ball
        X, y, c = ball.X, ball.y, ball.c
        self.w, self.b = np.zeros(X.shape[1]), 0.0
        sides = np.where(y > 0, c[y > 0].sum(), c[y < 0].sum())
        self.a = 0.5 * c * sides.min() / sides
        deficit = ball.deficits(self.w, self.b)
        size = float(np.abs(deficit).max())
        self.t = np.maximum(deficit, 0.0) + size  # t - r is the deficit
        self.r = self.t - deficit
        self.rest = c - self.a
        self.mu = size * float(c.sum()) / ball.gamma**2
        self.value, self.lower_bound, self.best = np.inf, 0.0, self.w
        self._look()

    def gap(self) -> float:
        """Return how far the best value may be above the minimum."""
        return self.value - self.lower_bound

    def step(self) -> bool:
        """Go one step on; False where rounding allows none."""
        before = self._complementarity(0.0, None)
        try:
            solve = self._factorised()
            aim = self._direction(solve, 0.0, None)
            after = self._complementarity(self._longest(aim), aim)
            sigma = before * min(1.0, (after / before)) ** 3
            move = self._direction(solve, sigma, aim)
        except (np.linalg.LinAlgError, ValueError):
            return False
        length = min(1.0, _TO_THE_BOUNDARY * self._longest(move))
        if not length > 1e-10:
            return False
        dw, db, da, dr, dt, dmu = move
        self.w, self.b = self.w + length * dw, self.b + length * db
        self.a, self.r, self.t = self.a + length * da, self.r + length * dr, self.t + length * dt
        self.rest = self.rest - length * da
        self.mu += length * dmu
        self._look()
        return True

    def _room(self) -> float:
        length = float(np.linalg.norm(self.w))
        return 0.5 * (self.ball.gamma - length) * (self.ball.gamma + length)

    def _look(self) -> None:
        """Evaluate the point and the bound that its multipliers give."""
        ball, y = self.ball, self.ball.y
        value = ball.value(self.w, self.b)
        if value < self.value:
            self.value, self.best = value, self.w
        sides = np.array([self.a[y > 0].sum(), self.a[y < 0].sum()])
        a = self.a * np.where(y > 0, *(sides.min() / sides))
        length = float(np.linalg.norm((a * y) @ ball.X))
        self.lower_bound = max(self.lower_bound, float(a @ ball.margins) - ball.gamma * length)

    def _complementarity(self, length: float, move: Move | None) -> float:
        """Return the mean of all products after a step."""
        a, rest, r, t, mu, w = self.a, self.rest, self.r, self.t, self.mu, self.w
        if move is not None:
            dw, _, da, dr, dt, dmu = move
            a, rest, r, t = a + length * da, rest - length * da, r + length * dr, t + length * dt
            mu, w = mu + length * dmu, w + length * dw
        room = 0.5 * (self.ball.gamma**2 - w @ w)
        return float(a @ r + rest @ t + mu * room) / (2 * len(a) + 1)

    def _stiffness(self) -> Array:
        """Return -da / d(y f) of each example."""
        return np.asarray(1.0 / (self.t / self.rest + self.r / self.a))

    def _factorised(self) -> Callable[[Array], Array]:
        """Return what solves the system for a step of (w, b)."""
        X, w, p, d = self.ball.X, self.w, self._stiffness(), len(self.w)
        matrix, weighted = np.zeros((d + 1, d + 1)), np.sqrt(p)[:, np.newaxis] * X
        matrix[:d, :d] = weighted.T @ weighted + (self.mu / self._room()) * np.outer(w, w)
        matrix.flat[:: d + 2] += self.mu
        matrix[:d, d] = matrix[d, :d] = p @ X
        matrix[d, d] = p.sum()
        scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= scale * scale[:, np.newaxis]
        factor = cho_factor(matrix, lower=True, overwrite_a=True)
        return lambda right: np.asarray(scale * cho_solve(factor, scale * right))

    def _direction(self, solve: Callable[[Array], Array], sigma: float, aim: Move | None) -> Move:
        """Return Newton's step to the products `sigma`, to second order along an earlier step."""
        X, y, w = self.ball.X, self.ball.y, self.w
        a, rest, r, t, mu, room = self.a, self.rest, self.r, self.t, self.mu, self._room()
        for_r, for_t = sigma - a * r, sigma - rest * t
        for_mu: float = sigma - mu * room
        if aim is not None:
            dw, _, da, dr, dt, dmu = aim
            for_r, for_t = for_r - da * dr, for_t + da * dt
            for_mu += dmu * float(w @ dw) + 0.5 * mu * float(dw @ dw)
        p = self._stiffness()
        error = self.ball.deficits(w, self.b) - (t - r)
        pull = p * (error - for_t / rest + for_r / a)  # da where (w, b) stays
        residual = mu * w - (a * y) @ X
        right = np.append(-residual - w * (for_mu / room) + (y * pull) @ X, y @ a + float(y @ pull))
        step = solve(right)
        dw, db = step[:-1], float(step[-1])
        da = pull - p * y * (X @ dw + db)
        dr, dt = (for_r - r * da) / a, (for_t + t * da) / rest
        return dw, db, da, dr, dt, (for_mu + mu * float(w @ dw)) / room

    def _longest(self, move: Move) -> float:
        """Return the step to where the first product vanishes, at most 1 / the safe share."""
        dw, _, da, dr, dt, dmu = move
        longest = 1.0 / _TO_THE_BOUNDARY
        for at, by in (
            (self.a, da), (self.rest, -da), (self.r, dr), (self.t, dt),
            (np.array([self.mu]), np.array([dmu])),
        ):  # fmt: skip
            down = by < 0.0
            if down.any():
                longest = min(longest, float((at[down] / -by[down]).min()))
        # |w + length dw| = gamma
        square, slope = float(dw @ dw), float(self.w @ dw)
        if square > 0.0:
            root = np.sqrt(slope**2 + 2.0 * square * self._room())
            reach = 2.0 * self._room() / (slope + root) if slope > 0.0 else (root - slope) / square
            longest = min(longest, float(reach))
        return longest
