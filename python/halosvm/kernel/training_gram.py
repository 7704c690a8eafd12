"""The Gram matrix of the training examples: whether it fits into memory, and a cache for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_memory

from halosvm.core.memory import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from halosvm.gaussians.mixtures import Examples
    from halosvm.kernel.expected_kernel import ExpectedKernel


def training_gram(
    memory: Any, X: Examples, kernel: ExpectedKernel, n_threads: int, diagonal: str = "product"
) -> NDArray[np.float64]:
    """Return the Gram matrix of X with itself, from the cache if it was computed before."""
    gram: NDArray[np.float64] = cached(memory, _compute)(X, kernel, n_threads, diagonal)
    return gram


def cached(memory: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that keeps its results; `n_threads` has no influence on them."""
    place = os.fspath(memory) if isinstance(memory, os.PathLike) else memory
    keeping: Callable[..., Any] = check_memory(place).cache(function, ignore=["n_threads"])
    return keeping


def _compute(
    X: Examples, kernel: ExpectedKernel, n_threads: int, diagonal: str
) -> NDArray[np.float64]:
    return kernel.gram(X, diagonal=diagonal, n_threads=n_threads)


def require_memory(n_samples: int, matrices: int = 1) -> None:
    """Raise MemoryError unless so many matrices of the size of the Gram matrix fit into memory."""
    needed, free = 8 * matrices * n_samples**2, free_memory()
    if needed > free:
        what = "their Gram matrix takes"
        if matrices > 1:
            what = f"their Gram matrix and its decomposition take {matrices} times"
            what = f"{what} {8 * n_samples**2 / 1e9:.2g} GB, that is"
        raise MemoryError(
            f"X has {n_samples} rows: {what} {needed / 1e9:.2g} GB, and {free / 1e9:.2g} GB of "
            f"memory are free; at most {int((free / (8 * matrices)) ** 0.5)} rows fit: train on a "
            "part of the rows, or use UncertainSVC, which needs no Gram matrix"
        )
