"""The robust linear machine, smoothed: its fit, and how a loss of the fit depends on the errors.

In:  means, labels +-1, weights, and the variances of one ellipsoid of errors for all examples.
Out: coefficients and intercept; derivatives of any function of these by the variances.

    J(w, b) = lam/2 |w|^2 + sum_i c_i E max(0, 1 - y_i (w'x_i + b) + r + FLOOR Z)
    r = |h|_q,  h_k = sqrt(variance_k w_k^2 + BEND^2 / d^(2/q)),  1/p + 1/q = 1

Z is standard normal: the floors round off the kink of the hinge and that of r at w = 0, so that J
is convex and has second derivatives, without which the fit would not be a smooth function of the
variances. They raise J by FLOOR/sqrt(2 pi) + BEND at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from halosvm import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FLOOR = 0.05
BEND = 0.01

# Shares of J: what Newton's steps must promise to end, and what is enough of it where rounding ends
# them; a gain that is none; a gain of one step from which on it is worth while to ask.
_PROMISED, _ENOUGH, _ROUNDING, _NEAR = 1e-20, 1e-8, 1e-15, 1e-4
_RESTS = 3  # so many steps in a row without a gain end the search


def smoothed_hinge(m: Array) -> tuple[Array, Array, Array]:
    """Return E max(0, m + FLOOR Z) and its first two derivatives."""
    # of the expected hinge with that spread, whose second derivative by m is psi_s/s
    return _core.evaluate_loss("expected_hinge", m, np.full(len(m), FLOOR))


class SmoothedRobust:
    """One training set, in coordinates of which each has the size 1: w times the feature's spread.

    A point holds the d coordinates of w and, if there is an intercept, that of the centred means.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Means.
    y, weights : ndarray of shape (n,)
        Labels -1 and +1, and weights of sum 1.
    lam : float
        Factor of the regulariser.
    q : float
        Of the norm |h|_q, 1 <= q < inf.
    fit_intercept : bool
        Whether there is an intercept.
    """

    def __init__(
        self, X: Array, y: Array, weights: Array, lam: float, q: float, *, fit_intercept: bool
    ) -> None:
        self.q, self.weights = q, weights
        self.centre = weights @ X if fit_intercept else np.zeros(X.shape[1])
        centred = X - self.centre
        spread = np.sqrt(weights @ np.square(centred))
        self.unit = np.where(spread > 0.0, spread, 1.0)
        self.sides = y[:, np.newaxis] * self.rows(X, fit_intercept=fit_intercept)
        self.ridge = np.append(lam / self.unit**2, np.zeros(int(fit_intercept)))

    def rows(self, X: Array, *, fit_intercept: bool) -> Array:
        """Return the rows whose products with a point are decision values of means X."""
        scaled = (X - self.centre) / self.unit
        return np.column_stack([scaled, np.ones(len(X))]) if fit_intercept else scaled

    def model(self, point: Array) -> tuple[Array, float]:
        """Return coefficients and intercept."""
        w = point[: len(self.unit)] / self.unit
        return w, float(point[len(w) :].sum() - w @ self.centre)

    def value_and_gradient(self, point: Array, variances: Array) -> tuple[float, Array]:
        """Return J and its gradient."""
        r, by_point, _ = self._spread(point, variances)
        psi, slope, _ = smoothed_hinge(1.0 - self.sides @ point + r)
        mass = self.weights * slope
        value = 0.5 * float(self.ridge @ point**2) + float(self.weights @ psi)
        return value, self.ridge * point - mass @ self.sides + mass.sum() * by_point

    def hessian(self, point: Array, variances: Array) -> Callable[[Array], Array]:
        """Return the function v -> Hessian of J times v."""
        r, slope, (curve, _, _) = self._spread(point, variances)
        _, first, second = smoothed_hinge(1.0 - self.sides @ point + r)
        bend, total = self.weights * second, float(self.weights @ first)

        def product(v: Array) -> Array:
            v = np.ravel(v)
            along = bend * (slope @ v - self.sides @ v)
            of_spread = curve * v - (self.q - 1.0) / r * (slope @ v) * slope
            shift = along.sum() * slope - along @ self.sides
            return np.asarray(self.ridge * v + shift + total * of_spread)

        return product

    def hypergradient(self, point: Array, variances: Array, push: Array) -> Array:
        """Return the derivative by the variances of a function of the fit, whose gradient is push.

        By the implicit function theorem it is -M'H^-1 push at the minimiser of J, with the second
        derivatives H in the point and M in point and variances; CG on products with H.
        """
        d = len(self.unit)
        u = self.solve(point, variances, push, 1e-10)
        r, slope, (_, t, share) = self._spread(point, variances)
        _, first, second = smoothed_hinge(1.0 - self.sides @ point + r)
        along = float(self.weights * second @ (slope @ u - self.sides @ u))
        by_variance = 0.5 * t[:d] * point[:d] ** 2
        mixed = t[:d] * point[:d] * (1.0 + 0.5 * (self.q - 2.0) * share[:d]) * u[:d]
        mixed -= (self.q - 1.0) / r * by_variance * (slope @ u)
        total = float(self.weights @ first)
        return np.asarray(-(by_variance * along + total * mixed) / self.unit**2)

    def solve(self, point: Array, variances: Array, right: Array, rtol: float) -> Array:
        """Return H^-1 times a vector by CG on products with the Hessian, which ends at rounding."""
        product = self.hessian(point, variances)
        bend = product(np.eye(len(point))[-1])[-1]
        shift = np.where(self.ridge > 0.0, 0.0, 1e-10 * bend if bend > 0.0 else 1.0)
        # where data do not determine an intercept, H is singular
        operator = LinearOperator(
            (len(point),) * 2, lambda v: product(v) + shift * np.ravel(v), dtype=np.float64
        )
        found, _ = cg(operator, right, rtol=rtol, maxiter=20 * len(point))
        return np.asarray(found)

    def _spread(
        self, point: Array, variances: Array
    ) -> tuple[float, Array, tuple[Array, Array, Array]]:
        """Return r, its gradient in the point, and parts of the second derivatives.

        With t_k = r^(1-q) h_k^(q-2) and share_k = variance_k w_k^2 / h_k^2 the gradient g is
        t o variance o w and the Hessian diag(curve) - (q - 1) g g'/r, where
        curve = t o variance o (1 + (q - 2) share).
        """
        own = np.zeros_like(point)  # an intercept has no spread
        own[: len(self.unit)] = variances / self.unit**2
        inside = own * point**2
        bend = np.where(np.arange(len(point)) < len(self.unit), BEND, 0.0)
        h = np.sqrt(inside + bend**2 * len(self.unit) ** (-2.0 / self.q))
        largest = h.max()
        r = float(largest * np.sum((h / largest) ** self.q) ** (1.0 / self.q))
        h[len(self.unit) :] = r
        t = (h / r) ** (self.q - 2.0) / r
        share = inside / h**2
        return r, t * own * point, (t * own * (1.0 + (self.q - 2.0) * share), t, share)


class _Newton:
    """Tells when steps of Newton's method have reached the minimum of J, whatever its size.

    The decrement g'H^-1 g is twice what a quadratic model promises still, so that its share of J
    depends on the units of neither features nor losses, as the length of the gradient does.
    """

    def __init__(self, problem: SmoothedRobust, variances: Array) -> None:
        self.problem, self.variances = problem, variances
        self.value, self.resting = np.inf, 0
        self._at: tuple[Array, Callable[[Array], Array]] | None = None

    def product(self, point: Array, v: Array, _: Array) -> Array:
        """Return the Hessian at a point times v."""
        if self._at is None or not np.array_equal(point, self._at[0]):
            self._at = point.copy(), self.problem.hessian(point, self.variances)
        return self._at[1](v)

    def promise(self, point: Array, value: float) -> float:
        """Return the decrement as a share of J."""
        gradient = self.problem.value_and_gradient(point, self.variances)[1]
        step = self.problem.solve(point, self.variances, gradient, 0.1)
        return float(gradient @ step) / value

    def __call__(self, intermediate_result: Any) -> None:
        """Stop where the model promises nothing, or rounding keeps J from falling further."""
        before, self.value = self.value, intermediate_result.fun
        gain = (before - self.value) / self.value
        self.resting = self.resting + 1 if gain < _ROUNDING else 0
        if gain < _NEAR:
            promised = self.promise(intermediate_result.x, self.value)
            if promised <= (_ENOUGH if self.resting >= _RESTS else _PROMISED):
                raise StopIteration


def fit_robust(
    problem: SmoothedRobust, variances: Array, start: Array | None = None
) -> tuple[Array, float, bool]:
    """Return the point that minimises J, J, and whether it is the minimum to 1e-8 of itself.

    By Newton's method with CG in a trust region.
    """
    begin = np.zeros(problem.sides.shape[1]) if start is None else start
    newton = _Newton(problem, variances)
    found = minimize(
        problem.value_and_gradient,
        begin,
        (variances,),
        jac=True,
        hessp=newton.product,
        method="trust-ncg",
        callback=newton,
        options={"gtol": 0.0, "maxiter": 500, "max_trust_radius": 1e10},
    )
    point, value = np.asarray(found.x), float(found.fun)
    return point, value, newton.promise(point, value) <= _ENOUGH
