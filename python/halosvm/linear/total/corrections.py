"""Corrections: the best points within bounded errors (Bi and Zhang 2004, Lemma 1; spec I.2).

In:  covariances of errors |R^-1 dx| <= 1, and for each example a direction in which it would move.
Out: for each example the error that goes farthest in its direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halosvm.gaussians.covariance_kinds import storage_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.covariances import Covariances

    Array = NDArray[np.float64]


def farthest(covariances: Covariances, directions: Array) -> Array:
    """Return S v / |R'v| for the directions v, a row for each example or one for all; 0 for v = 0.

    Directions are scaled first, so that squares of small ones do not vanish.
    """
    v = np.broadcast_to(directions, covariances.shape)
    largest = np.abs(v).max(axis=1, keepdims=True)
    v = np.divide(v, largest, out=np.zeros(v.shape), where=largest > 0.0)
    products = storage_of(covariances).products(covariances, v)
    spreads = np.sqrt(np.maximum(np.einsum("nd,nd->n", products, v), 0.0))[:, np.newaxis]
    return np.asarray(np.divide(products, spreads, out=np.zeros(v.shape), where=spreads > 0.0))
