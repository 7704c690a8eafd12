"""The level-2 kernel: a Gaussian of the distances that an expected kernel gives its examples.

In:  an expected kernel, examples and a width tau.
Out: exp(-(k(X, X) + k(Y, Y) - 2 k(X, Y)) / (2 tau^2)), all of whose entries are of the size of 1.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halosvm.gaussians.mixtures import Examples
    from halosvm.kernel.expected_kernel import ExpectedKernel

    Array = NDArray[np.float64]

_BLOCK = 2**21  # kernel values that are converted at a time
_MEDIAN_ROWS = 1000  # examples among which the median distance is taken
_ROUNDING = 1e-14  # squared distances below this share of the largest kernel value are no distances


def check_level2(level2: Any, tau: Any, diagonal: str) -> None:
    """Raise for a level-2 kernel that does not exist, and for what it cannot be combined with."""
    if level2 is not None and not (isinstance(level2, str) and level2 == "gaussian"):
        raise ValueError(f"level2 must be None or 'gaussian', got {level2!r}")
    if isinstance(tau, bool) or not isinstance(tau, numbers.Real | str):
        raise TypeError(f"tau must be 'median' or a number, got {tau!r}")
    if isinstance(tau, str) and tau != "median":
        raise ValueError(f"tau must be 'median' or a number, got {tau!r}")
    if not isinstance(tau, str) and not 0.0 < float(tau) < np.inf:
        raise ValueError(f"tau is {tau:g}; it must be positive and finite")
    if level2 is not None and diagonal == "unit":
        raise ValueError(
            "diagonal='unit' and level2='gaussian' exclude each other: distances need the kernel "
            "of an example with itself by the product formula; the level-2 diagonal is 1 anyway"
        )


def resolve_tau(
    tau: float | str,
    X: Examples,
    gram: Callable[[Examples], Array],
    weights: Array | None = None,
) -> float:
    """Return tau as a number; "median" is the median distance of two examples of X that differ.

    Pairs count by the product of their weights. Those that rounding cannot tell apart do not count,
    an example and itself among them, so that a weight equals so many repetitions. Of more than
    1,000 examples, 1,000 evenly spaced rows count.
    """
    if not isinstance(tau, str):
        return float(tau)
    rows: NDArray[np.intp] = np.arange(len(X))
    if len(X) > _MEDIAN_ROWS:
        rows = np.linspace(0, len(X) - 1, _MEDIAN_ROWS).astype(np.intp)
    K = gram(X[rows])
    of_each = K.diagonal()
    squares = of_each[:, np.newaxis] + of_each - 2.0 * K
    differ = squares > _ROUNDING * np.abs(K).max()
    if not differ.any():
        raise ValueError(
            "tau='median' is 0: all pairs of examples have a distance of 0; give a number, or "
            "normalize=True where kernel values vanish"
        )
    each = np.ones(len(rows)) if weights is None else weights[rows]
    squares, counts = squares[differ], np.outer(each, each)[differ]
    order = np.argsort(squares)
    total = np.cumsum(counts[order])
    return float(np.sqrt(squares[order[np.searchsorted(total, 0.5 * total[-1])]]))


def write_level2(
    kernel: ExpectedKernel, X: Examples, Y: Examples | None, out: NDArray[Any], n_threads: int
) -> None:
    """Write the level-2 Gram matrix of a kernel with tau, in place or, for float32, by blocks.

    Distances are small differences of kernels, which float32 would lose; so blocks are float64.
    """
    columns, tau = X if Y is None else Y, kernel.tau
    assert tau is not None
    of_rows = kernel.expectations_with_themselves(X, n_threads)
    of_columns = of_rows if Y is None else kernel.expectations_with_themselves(Y, n_threads)
    step = max(1, _BLOCK // len(columns))
    in_place = out.dtype == np.float64
    if in_place:
        kernel.write_expectations(X, Y, out, n_threads)
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        first = 0 if in_place or Y is not None else begin  # each pair of examples once
        block = out[rows]
        if not in_place:
            block = np.empty((len(block), len(columns) - first))
            kernel.write_expectations(X[rows], columns[first:], block, n_threads)
        _to_gaussian(block, of_rows[rows], of_columns[first:], tau)
        if not in_place:
            out[rows, first:] = block
            if Y is None:
                out[first:, rows] = block.T
    if Y is None:
        np.fill_diagonal(out, 1.0)


def _to_gaussian(K: Array, of_rows: Array, of_columns: Array, tau: float) -> None:
    """Replace kernel values by exp(-(r + c - 2 k) / (2 tau^2)), in place."""
    K *= -2.0
    K += of_rows[:, np.newaxis] + of_columns  # one sum, so that the result is symmetric
    np.maximum(K, 0.0, out=K)
    with np.errstate(over="ignore"):  # a distance of 1e200 tau is a kernel of 0
        K /= tau
        K /= -2.0 * tau
    np.exp(K, out=K)
