"""The span of points in the feature space of a kernel: coordinates there, and the way back.

In:  points, a kernel, and radii of their errors.
Out: coordinates in which the kernel machine is linear, radii there, and the attributes of an
     estimator that say w in terms of the points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.gaussians.gaussians import Gaussians
from halosvm.kernel.isotropic_kernel_svc import decompose_gram
from halosvm.kernel.training_gram import require_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.linear.total.problem import KernelProblem

    Array = NDArray[np.float64]

_GRAM_MATRICES = 5  # at a time, with its decomposition


class Span:
    """Coordinates of points, (n_samples, rank); `linear` is the kernel x'z, whose w is a vector."""

    def __init__(self, problem: KernelProblem, *, linear: bool) -> None:
        self._points, self._kernel = points, kernel = problem.points, problem.kernel
        self._linear = linear
        self._direct = linear and points.shape[1] <= len(points)
        if self._direct:
            self._centre = np.average(points, axis=0, weights=problem.costs)
            self.coordinates = points - self._centre
        else:
            require_memory(len(points), _GRAM_MATRICES)
            values, self._vectors = decompose_gram(Gaussians(points), kernel, problem.n_threads)
            self._scales = np.sqrt(values)
            self.coordinates = self._vectors * self._scales

    def attributes(self, w: Array, b: float) -> dict[str, Any]:
        """Return coef_ or dual_coef_ and support_vectors_, and intercept_."""
        if self._direct:
            return {"coef_": w[np.newaxis], "intercept_": np.array([b - w @ self._centre])}
        coefficients = (w / self._scales) @ self._vectors.T
        intercept = np.array([b])
        if self._linear:
            return {"coef_": (coefficients @ self._points)[np.newaxis], "intercept_": intercept}
        kept = coefficients != 0.0
        return {
            "dual_coef_": coefficients[np.newaxis, kept],
            "support_vectors_": self._points[kept],
            "intercept_": intercept,
        }

    def radii(self, radii: Array) -> Array:
        """Return the largest |phi(x + dx) - phi(x)| over |dx| <= radius (spec I.6).

        It is that of a step away from the origin; for "rbf" of a step in any direction.
        """
        if self._linear:
            return radii
        lengths = np.linalg.norm(self._points, axis=1, keepdims=True)
        away = np.where(lengths > 0.0, self._points, np.eye(1, self._points.shape[1]))
        away = away / np.where(lengths > 0.0, lengths, 1.0)
        moved = self._points + radii[:, np.newaxis] * away
        square = np.empty(len(radii))
        for i, pair in enumerate(np.stack([self._points, moved], axis=1)):
            K = self._kernel.gram(Gaussians(pair), n_threads=1)
            square[i] = K[0, 0] - 2.0 * K[0, 1] + K[1, 1]
        return np.sqrt(np.maximum(square, 0.0))
