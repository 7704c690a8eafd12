"""Descent in a box: the search for what the loss of validation data depends on through fits.

In:  a function of a point of the unit box that returns loss and gradient, and some first points.
Out: the best point, and losses that never increase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from halosvm.core.progress import say
from halosvm.core.user_warning import warn_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SHORTEST = 1e-9  # of a step, below which rounding of the fits decides


class Descent(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    point : ndarray
        The point of the lowest loss of all that were tried.
    losses : ndarray of shape (n_iter + 1,)
        The loss at the start and after each step; the last is that of the point.
    """

    point: Array
    losses: Array


def descend_in_box(
    evaluate: Callable[[Array], tuple[float, Array]],
    starts: Iterable[Array],
    max_iter: int,
    tol: float,
    *,
    verbose: int = 0,
) -> Descent:
    """Minimise by projected gradients with backtracking from the best of some starts.

    A step that does not decrease the loss by a share of what the gradient promises is halved; the
    first length tried is that of Barzilai and Borwein.

    Parameters
    ----------
    evaluate : callable
        Of a point in [0, 1]^k: its loss, and the gradient.
    starts : iterable of ndarray of shape (k,)
        Points to choose the start from; of equal losses the first.
    max_iter : int
        Largest number of steps.
    tol : float
        Stop when a step decreases the loss by less than this share of it.
    verbose : int
        If positive, print the loss after each step.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps end before.
    """
    best: tuple[float, Array] = (np.inf, np.empty(0))

    def tried(point: Array) -> tuple[float, Array]:
        nonlocal best
        loss, gradient = evaluate(point)
        if loss < best[0]:
            best = loss, point
        return loss, gradient

    def end() -> Descent:
        # A step that was too short for its loss, and was taken back, may have had the lowest.
        return Descent(best[1], np.array([*losses[:-1], best[0]]))

    first = [(*tried(start), start) for start in starts]
    loss, gradient, point = min(first, key=lambda each: each[0])
    losses, length = [loss], 0.1 / max(float(np.abs(gradient).max()), 1e-300)
    while len(losses) <= max_iter:
        say(f"step {len(losses) - 1:>5}   validation loss {loss:.8e}", verbose=verbose)
        while True:
            candidate = np.clip(point - length * gradient, 0.0, 1.0)
            step = candidate - point
            if np.abs(step).max() <= _SHORTEST:
                return end()
            new_loss, new_gradient = tried(candidate)
            if new_loss <= loss + 1e-4 * float(gradient @ step):
                break
            length *= 0.5
        gain, change = loss - new_loss, float(step @ (new_gradient - gradient))
        length = float(step @ step) / change if change > 0.0 else 4.0 * length
        point, loss, gradient = candidate, new_loss, new_gradient
        losses.append(loss)
        if gain <= tol * abs(loss):
            return end()
    warn_user(
        f"after {max_iter} steps the validation loss still falls, by {gain / abs(loss):.2g} of "
        f"itself in the last, above tol = {tol:g}; increase max_iter or tol"
    )
    return end()
