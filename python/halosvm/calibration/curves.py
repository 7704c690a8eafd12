"""Curves from decision values to probabilities, beside Platt's: isotonic ones and a temperature.

In:  decision values of known spread, and the classes of their examples.
Out: probabilities, for uncertain values their expectations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from halosvm import _core
from halosvm.calibration.expectations import mean_of_interpolation, mean_over
from halosvm.gaussians.covariance_arrays import roots_of

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NODES = 15  # of a normal law
_ROUNDS = 30
_LITTLE = 1e-5  # gain in the mean log-likelihood that ends the rounds


class IsotonicCurve:
    """The rising curve under which the classes are most likely, linear between its points.

    For uncertain values it is the curve of the values without their errors: the likelihood is that
    of the expected probabilities, raised by rounds of expectation and maximisation.
    """

    def fit(
        self, decision: Array, positive: NDArray[np.bool_], weights: Array, *, std: Array
    ) -> Self:
        """Fit the curve by maximum likelihood."""
        self._fit_points(decision, positive, weights)
        if not std.any():
            return self
        nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
        shares = shares / shares.sum()
        points = decision[:, np.newaxis] + std[:, np.newaxis] * nodes
        rows = np.broadcast_to(positive[:, np.newaxis], points.shape)
        last = -np.inf
        for _ in range(_ROUNDS):
            p = np.interp(points, self._at, self._heights)
            likelihood = shares * np.where(rows, p, 1.0 - p)
            total = likelihood.sum(axis=1)
            reached = float(weights @ np.log(np.maximum(total, 1e-300)) / weights.sum())
            if reached - last < _LITTLE:
                break
            last = reached
            known = np.divide(
                likelihood,
                total[:, np.newaxis],
                out=np.broadcast_to(shares, points.shape).copy(),
                where=total[:, np.newaxis] > 0.0,
            )
            known *= weights[:, np.newaxis]
            self._fit_points(points.ravel(), rows.ravel(), known.ravel())
        return self

    def _fit_points(self, values: Array, positive: NDArray[np.bool_], weights: Array) -> None:
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        curve.fit(values, positive.astype(np.float64), weights)
        self._at, self._heights = curve.X_thresholds_, curve.y_thresholds_

    def probability(self, decision: Array, std: Array | float = 0.0) -> Array:
        """Return P(positive), for uncertain decision values its expectation."""
        shape = np.shape(decision)
        mean, spread = (np.ravel(each) for each in np.broadcast_arrays(decision, std))
        return mean_of_interpolation(self._at, self._heights, mean, spread).reshape(shape)


class Temperature:
    """Softmax of the decision values over one temperature; of two classes a logistic curve in 0."""

    def fit(self, decision: Array, codes: NDArray[np.intp], weights: Array, spread: Array) -> Self:
        """Fit the temperature by maximum likelihood.

        Parameters
        ----------
        decision : ndarray of shape (n,) or (n, k)
        codes : ndarray of shape (n,)
            The class of each example.
        weights : ndarray of shape (n,)
        spread : ndarray of shape (n,) or (n, k, k)
            Standard deviations of the decision values, or their covariances.
        """
        unit = float(np.abs(decision).max()) or 1.0
        certain = not spread.any()
        roots = roots_of(spread) if decision.ndim == 2 and not certain else spread

        def loss(log_t: float) -> float:
            self.temperature = unit * np.exp(log_t)
            if decision.ndim == 2 and certain:
                logs = log_softmax(decision / self.temperature, axis=1)
                mine = logs[np.arange(len(codes)), codes]
            elif decision.ndim == 2:
                p = self._expected(decision, roots, power=6)
                mine = np.log(np.maximum(p[np.arange(len(codes)), codes], 1e-300))
            else:
                sign = np.where(codes == 1, 1.0, -1.0)
                mine = np.log(np.maximum(self.probability(sign * decision, spread), 1e-300))
            return float(-(weights @ mine) / weights.sum())

        best = minimize_scalar(loss, bounds=(-12.0, 5.0), method="bounded", options={"xatol": 1e-8})
        self.temperature = unit * float(np.exp(best.x))
        return self

    def probability(self, decision: Array, spread: Array | float = 0.0) -> Array:
        """Return P(positive), or the probability of each class; of uncertain values expectations.

        Parameters
        ----------
        decision, spread
            As in `fit`.
        """
        t = self.temperature
        if np.ndim(decision) == 1:
            std = np.asarray(spread) / t
            return np.asarray(_core.platt_probability(np.asarray(decision) / t, std, -1.0, 0.0))
        if np.any(spread):
            return self._expected(decision, roots_of(np.asarray(spread)))
        p: Array = softmax(decision / t, axis=1)
        return p

    def _expected(self, decision: Array, roots: Array, power: int = 12) -> Array:
        t = self.temperature
        return mean_over(lambda f: softmax(f, axis=-1), decision / t, roots / t, power)


def normalised(p: Array) -> Array:
    """Return values (..., k) of the curves of k classes as shares; equal ones where all are 0."""
    total = p.sum(axis=-1, keepdims=True)
    even = np.full_like(p, 1.0 / p.shape[-1])
    shares: Array = np.divide(p, total, out=even, where=total > 0.0)
    return shares


def margin_log_loss(decision: Array, codes: NDArray[np.intp], weights: Array) -> float:
    """Return the log loss of left-out decision values under the temperature that suits them.

    It tells how well margins tell classes, and on which side of 0, whatever their scale. Where one
    class is rare, accuracy may be highest where all examples lie on one side.

    Parameters
    ----------
    decision, codes, weights
        As in `Temperature.fit`.
    """
    certain = np.zeros(decision.shape + decision.shape[1:])
    curve = Temperature().fit(decision, codes, weights, certain)
    p = curve.probability(decision)
    p = np.column_stack([1.0 - p, p]) if p.ndim == 1 else p
    of_label = np.maximum(p[np.arange(len(codes)), codes], np.finfo(np.float64).tiny)
    return float(np.average(-np.log(of_label), weights=weights))
