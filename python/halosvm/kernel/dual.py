"""The dual of kernel machines: a Gram matrix and costs come in, `SVC` solves it, bounded in time.

With the solver comes what is left between the objective and the bound that the dual is of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.svm import SVC

from halosvm.core.abandonable import abandonable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Of the objective. `SVC` reads kernels as single precision: where they are large and differ by
# little, as "poly" far from 0, its own tolerance is reached far from the minimum, or never.
GAP_TO_TELL = 1e-3


class DualSolver(SVC):  # type: ignore[misc]
    """`SVC` that leaves the warning to its caller, whose own caller it should name."""

    def _warn_from_fit_status(self) -> None:
        pass


def iteration_limit(n_samples: int) -> int:
    """Return a number of iterations that fits which end at all stay far below."""
    return 1_000_000 + 100 * n_samples


def solve_dual(gram: Array, y: Any, costs: Array | None, **parameters: Any) -> DualSolver:
    """Return the solver of a Gram matrix after its fit, which Ctrl-C leaves behind.

    Pairs of classes that have not begun, and columns that are not in the cache, are read from the
    matrix as it is: without numbers the solver finds nothing left to improve.
    """
    dual = DualSolver(kernel="precomputed", **parameters)
    abandonable(lambda: dual.fit(gram, y, costs), lambda: gram.fill(np.nan))
    return dual


def relative_gap(
    signs: Array, values: Array, square: float, dual: float, costs: Array, tol: float
) -> float:
    """Return how far the objective of a machine is above its dual, as a share of itself.

    What the tolerance of the decision values allows of the losses is taken off before.

    Parameters
    ----------
    signs, values, costs : ndarray of shape (n_samples,)
        Labels -1 and 1, decision values, and weights of the losses.
    square : float
        |w|^2.
    dual : float
        The sum of the dual variables.
    tol : float
        Tolerance of the solver.
    """
    with np.errstate(invalid="ignore"):  # costs are infinite where the margin is hard
        losses = float(costs @ np.maximum(0.0, 1.0 - signs * values))
    objective = 0.5 * square + losses
    gap = objective + 0.5 * square - dual - 2.0 * tol * float(costs.sum())
    return gap / objective if objective > 0.0 else 0.0


def largest_gap(
    dual: DualSolver, pairs: Array, values: Array, codes: NDArray[Any], costs: Array
) -> float:
    """Return the largest relative gap among the machines of all pairs of classes.

    Parameters
    ----------
    dual : DualSolver
        After its fit to the classes `codes`.
    pairs, values : ndarray of shape (n_pairs, n_support), (n_samples, n_pairs)
        Coefficients and decision values of each machine, positive for the first class of the pair,
        or of two classes for the second.
    """
    gaps = []
    n_classes = len(dual.classes_)
    for p, (i, j) in enumerate(zip(*np.triu_indices(n_classes, 1), strict=True)):
        rows = (codes == i) | (codes == j)
        signs = np.where(codes[rows] == (i if n_classes > 2 else j), 1.0, -1.0)
        f = values[:, p]
        square = float(pairs[p] @ (f[dual.support_] - dual.intercept_[p]))
        bound = float(np.abs(pairs[p]).sum())
        gaps.append(relative_gap(signs, f[rows], square, bound, costs[rows], dual.tol))
    return max(gaps)
