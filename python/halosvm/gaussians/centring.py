"""Means, and deviations from them that are exactly 0 where values are equal.

The rounded mean of equal values is in general not one of them: three times 0.1 has a standard
deviation of 1e-17 by the usual formula, and what asks whether it is 0 gets the wrong answer. Here
values are counted from the first one, so that no difference of equal values is ever rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Numbers that a few operations should have made equal differ by a few of their last digits.
_ROUNDINGS = 8


def centred(values: NDArray[Any], weights: Array | None = None) -> tuple[Array, Array]:
    """Return the mean over the first axis, and each value less the mean, in float64."""
    first = values[0].astype(np.float64)
    from_first = values - first
    mean = np.average(from_first, axis=0, weights=weights)
    return first + mean, from_first - mean


def equal_but_for_rounding(
    extent: Any, largest: Any, eps: float = float(np.finfo(np.float64).eps)
) -> Any:
    """Tell whether values with this difference between them are the results of rounding one.

    Parameters
    ----------
    extent : float or ndarray
        The largest value less the smallest.
    largest : float or ndarray
        The size of the numbers that they were computed from.
    eps : float
        The relative step of their type.
    """
    return extent <= _ROUNDINGS * eps * largest


def column_spreads(values: NDArray[Any], weights: Array | None = None) -> Array:
    """Return the standard deviation of each column; 0 for columns that are constant.

    That is a column whose values are equal up to rounding: its deviations hold no information, and
    to divide by them would make them a feature of the size of all others.
    """
    low, high = values.min(axis=0).astype(np.float64), values.max(axis=0).astype(np.float64)
    extent, largest = high - low, np.maximum(np.abs(low), np.abs(high))
    constant = equal_but_for_rounding(extent, largest, float(np.finfo(values.dtype).eps))
    extent[constant] = 1.0
    # In units of the extent, where no square can underflow or overflow.
    _, deviations = centred((values - low) / extent, weights)
    spreads = extent * np.sqrt(np.average(np.square(deviations), axis=0, weights=weights))
    return np.where(constant, 0.0, spreads)
