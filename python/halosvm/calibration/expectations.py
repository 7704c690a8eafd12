"""Means over uncertain decision values: a curve and normal laws come in, expectations go out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from halosvm import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NUMBERS = 4_000_000  # of one block of values


def normal_nodes(n_dimensions: int, power: int) -> Array:
    """Return 2**power points that fill a normal law evenly, always the same ones."""
    n = 2**power
    cube = qmc.Sobol(n_dimensions, scramble=False).random_base2(power)
    nodes: Array = ndtri(cube + 0.5 / n)
    return nodes


def mean_over(curve: Callable[[Array], Array], mean: Array, roots: Array, power: int = 12) -> Array:
    """Return E curve(F) of each row for F ~ N(mean, R R').

    Parameters
    ----------
    curve : callable
        Takes arrays (..., k) to arrays (..., k).
    mean : ndarray of shape (n, k)
    roots : ndarray of shape (n, k, k)
        The R.
    power : int
        2**power points stand for each law.
    """
    n, k = mean.shape
    nodes = normal_nodes(k, power)
    out = np.empty((n, k))
    block = max(1, _NUMBERS // nodes.size)
    for begin in range(0, n, block):
        rows = slice(begin, begin + block)
        points = nodes @ roots[rows].transpose(0, 2, 1) + mean[rows, np.newaxis, :]
        out[rows] = curve(points).mean(axis=1)
    return out


def mean_of_interpolation(at: Array, heights: Array, mean: Array, std: Array) -> Array:
    """Return E g(F) for F ~ N(mean, std^2) of the g that interpolates and is constant outside.

    Each piece contributes its slope times the difference of two expected hinges; where the law is
    much wider than a piece, its rise times the probability of lying above its middle.

    Parameters
    ----------
    at, heights : ndarray of shape (k,)
        Points, increasing, and the values of g there.
    mean, std : ndarray of shape (n,)
    """
    out: Array = np.interp(mean, at, heights)
    uncertain = np.flatnonzero(std > 0.0)
    rises, widths = np.diff(heights), np.diff(at)
    block = max(1, _NUMBERS // max(1, len(at)))
    for begin in range(0, len(uncertain), block):
        rows = uncertain[begin : begin + block]
        m, s = mean[rows, np.newaxis] - at, std[rows, np.newaxis]
        hinges = _core.evaluate_loss("expected_hinge", m, np.broadcast_to(s, m.shape).copy())[0]
        middle = ndtr(0.5 * (m[:, :-1] + m[:, 1:]) / s)
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = (hinges[:, :-1] - hinges[:, 1:]) / widths
        shares = np.where(widths < 1e-3 * s, middle, exact)
        out[rows] = heights[0] + shares @ rises
    return out
