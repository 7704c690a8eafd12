"""The safe machine in pure NumPy: sizes of the errors that validation data ask for, spec G.3.

One ellipsoid std o u, |u| <= 1, for all examples -> robust machine -> validation hinge -> its
derivative by std. Everything is smoothed: `floor` is the width of the kink of the hinge, `bend`
that of the spread at w = 0. The source is Couellan, Jan, "Feature uncertainty bounding schemes
for large robust nonlinear SVM classifiers" (2017), eq. (7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .losses import expected_hinge

if TYPE_CHECKING:
    from .losses import Array


def safe_lower_level(
    x: Array, y: Array, std: Array, w: Array, b: float, lam: float, floor: float, bend: float
) -> tuple[float, Array, Any]:
    """Return the smoothed robust objective, its gradient (d + 1,), and what both derive from.

    lam/2 |w|^2 + mean_i E max(0, m_i + r + floor Z), r = sqrt(|std o w|^2 + bend^2).
    """
    r = float(np.sqrt(np.square(std * w) @ np.ones_like(w) + bend**2))
    psi, theta, curve = expected_hinge(1.0 - y * (x @ w + b) + r, np.full(len(y), floor))
    rows = np.column_stack([-y[:, np.newaxis] * x + std**2 * w / r, -y])
    gradient = np.append(lam * w, 0.0) + theta @ rows / len(y)
    return 0.5 * lam * float(w @ w) + float(psi.mean()), gradient, (r, theta, curve, rows)


def safe_hypergradient(
    x: Array, y: Array, std: Array, w: Array, b: float, lam: float, floor: float, bend: float,
    validation: tuple[Array, Array], validation_floor: float = 0.0,
) -> Array:  # fmt: skip
    """Return the derivative, (d,), of the mean validation hinge by std, through (w, b) at its best.

    -M'H^-1 g of spec G.3 with dense matrices: H and M are the second derivatives of the smoothed
    objective in (w, b), and in (w, b) and std; g is the gradient of the validation hinge.
    """
    d, n = len(w), len(y)
    _, _, (r, theta, curve, A) = safe_lower_level(x, y, std, w, b, lam, floor, bend)
    slope, by_std = std**2 * w / r, std * w**2 / r
    H, M = A.T * curve @ A / n, np.outer(curve @ A / n, by_std)
    H[:d, :d] += lam * np.eye(d)
    H[:d, :d] += theta.mean() * (np.diag(std**2) / r - np.outer(slope, slope) / r)
    M[:d] += theta.mean() * (2.0 * np.diag(std * w) / r - np.outer(slope, by_std) / r)
    x_val, y_val = validation
    m = 1.0 - y_val * (x_val @ w + b)
    push = -y_val * expected_hinge(m, np.full(len(m), validation_floor))[1] / len(m)
    return np.asarray(-np.linalg.solve(H, np.append(push @ x_val, push.sum())) @ M)
