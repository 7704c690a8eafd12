"""What the kernel machines of the total SVM are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.gaussians import Gaussians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.kernel.expected_kernel import ExpectedKernel

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """Points with errors |R^-1 dx| <= 1, signs -1 and 1, costs >= 0, a kernel, a number of threads.

    A number of threads of 0 stands for every processor.
    """

    data: Gaussians
    signs: Array
    costs: Array
    kernel: ExpectedKernel
    n_threads: int

    @property
    def points(self) -> Array:
        """The means, (n_samples, n_features)."""
        return np.asarray(self.data.mean, np.float64)

    def of_rows(self, rows: NDArray[np.intp]) -> KernelProblem:
        """Return the problem of some examples."""
        data, signs, costs = self.data[rows], self.signs[rows], self.costs[rows]
        return replace(self, data=data, signs=signs, costs=costs)

    def radii(self) -> Array:
        """Return the radius of each example's errors, after a check that they are balls."""
        covariances = self.data.covariances
        if not storage_of(covariances).spherical:
            raise ValueError(
                f"X has {covariances.kind} covariances; formulation='ball' takes one standard "
                "deviation or variance for each example, of shape (n_samples,): use "
                "formulation='penalised'"
            )
        return np.sqrt(covariances.trace() / covariances.n_features)
