"""Kernels that the user brings: a Gram matrix, or a function of two sets of examples.

In:  the parameter `kernel` of an estimator, examples or rows of Gram matrices.
Out: Gram matrices, as of an `ExpectedKernel`, which these stand in for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import moments_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]


class GivenKernel(ABC):
    """What is alike in both: there is no bandwidth, no level-2 kernel and no closed form."""

    gamma = tau = order = None
    normalize = spread_has_closed_form = False
    kind: str

    @abstractmethod
    def training_gram(self, X: Any, used: NDArray[np.intp]) -> Array:
        """Return the Gram matrix of the used training examples."""

    @abstractmethod
    def gram(self, X: Any, Y: Any, *, n_threads: int) -> Array:
        """Return the kernel values of examples with the support examples."""


class PrecomputedKernel(GivenKernel):
    """A kernel whose values come in place of features, a column for each training example."""

    kind = "precomputed"

    def training_gram(self, X: Gaussians, used: NDArray[np.intp]) -> Array:
        """Return the part of the matrix that the used rows make up."""
        if not X.covariances.certain:
            raise ValueError(
                "kernel='precomputed' takes kernel values as X, which have no errors; "
                "expected_kernel has the values of uncertain examples"
            )
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X has shape {X.shape}; with kernel='precomputed' it must be a square matrix, of "
                "the kernel of each example with each"
            )
        values: Array = np.asarray(X.mean, np.float64)[np.ix_(used, used)]
        return values

    def gram(self, X: Gaussians, columns: Any, *, n_threads: int) -> Array:  # noqa: ARG002
        """Return the values of some training examples, given the rows of all."""
        values: Array = np.asarray(X.mean[:, columns], np.float64)
        return values


class CallableKernel(GivenKernel):
    """A function of two sets of examples.

    Certain examples reach it as arrays; where one of the two sets has errors, both are `Gaussians`
    or `GaussianMixtures`.
    """

    kind = "of your own"

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def training_gram(self, X: Examples, used: NDArray[np.intp]) -> Array:
        """Return the Gram matrix of the used examples."""
        rows = X[used]
        return self.gram(rows, rows, n_threads=1)

    def gram(self, X: Examples, Y: Examples, *, n_threads: int) -> Array:  # noqa: ARG002
        """Return what the function makes of the examples, after a check of its shape."""
        certain = all(isinstance(x, Gaussians) and x.covariances.certain for x in (X, Y))
        sides = (moments_of(X)[0], moments_of(Y)[0]) if certain else (X, Y)
        values = np.array(self.function(*sides), dtype=np.float64)
        if values.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernel returned shape {values.shape} for {len(X)} and {len(Y)} examples; it must "
                "return one row for each of the first and one column for each of the second"
            )
        return values


def given_kernel(kernel: Any) -> GivenKernel | None:
    """Return the kernel that the user brings, None for the name of another."""
    if callable(kernel):
        return CallableKernel(kernel)
    return PrecomputedKernel() if isinstance(kernel, str) and kernel == "precomputed" else None
