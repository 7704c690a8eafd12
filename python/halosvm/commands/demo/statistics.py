"""Paired comparisons over random splits: differences in, p values and words out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from halosvm.gaussians.centring import equal_but_for_rounding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIGNIFICANT = 0.05


def standard_error(values: Array, overlap: float = 0.0) -> float:
    """Return the standard error of the mean; 0 for a single value.

    Parameters
    ----------
    values : ndarray of shape (n_runs,)
    overlap : float
        As in `paired_p`.
    """
    n = len(values)
    return float(np.std(values, ddof=1) * np.sqrt(1.0 / n + overlap)) if n > 1 else 0.0


def paired_p(one: Any, other: Any, overlap: float = 0.0) -> float:
    """Return the two-sided p of the paired t-test over runs.

    Parameters
    ----------
    one, other : ndarray of shape (n_runs,)
    overlap : float
        Test rows over training rows, where all runs split the same rows: the variance of the mean
        is then (1/n_runs + overlap) times that of the differences, not 1/n_runs times (C. Nadeau
        and Y. Bengio, Machine Learning 52, 2003). 0, for independent runs, is the usual test.
    """
    difference = np.asarray(one) - np.asarray(other)
    n = len(difference)
    size = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    if n < 2 or equal_but_for_rounding(np.ptp(difference), size):
        return 1.0 if n < 2 or equal_but_for_rounding(abs(difference[0]), size) else 0.0
    t = difference.mean() / standard_error(difference, overlap)
    return float(2.0 * stats.t.sf(abs(t), n - 1))


def verdict(difference: float, p: float) -> str:
    """Say whether a difference can be told from chance."""
    if p >= SIGNIFICANT:
        return "no clear difference"
    return "better" if difference > 0 else "worse"
