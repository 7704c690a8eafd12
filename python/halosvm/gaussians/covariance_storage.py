"""Storage: what a kind of covariances must answer, and the answers that all kinds share.

In:  batches of `Covariances`, of which only the stored arrays are read.
Out: their diagonals, factors, matrices, products, images under linear maps, and parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from halosvm import _core
    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_arrays import Rows
    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.linear_maps import LinearMap

Array: TypeAlias = NDArray[np.float64]
Offsets: TypeAlias = NDArray[np.int64] | None
Kind: TypeAlias = Literal[
    "zero", "isotropic", "diagonal", "low_rank", "full", "sparse_diagonal", "columns"
]


class Stored(NamedTuple):
    """What `Covariances` keeps of a batch beside its size."""

    kind: Kind
    values: Any = None
    squared: bool = False
    offsets: Offsets = None
    diagonal_values: FloatArray | None = None
    columns: NDArray[np.intp] | None = None
    inner: Covariances | None = None


class Storage(ABC):
    """One kind: S = D + F F' with a diagonal D and factors F, either of which may be 0.

    A kind whose S is stored whole overrides what is said here in terms of D and F.
    """

    kind: ClassVar[Kind]
    spherical: ClassVar[bool] = False  # all matrices are multiples of the identity
    independent: ClassVar[bool] = True  # all matrices are diagonal
    whole: ClassVar[bool] = False  # S is stored as it is, not by D and F
    few: ClassVar[bool] = False  # most features may be certain, and are then not stored

    @abstractmethod
    def core_view(self, batch: Covariances) -> _core.Covariances:
        """Make the core's view of the arrays of a batch."""

    @abstractmethod
    def own_diagonal(self, batch: Covariances) -> FloatArray:
        """Return the diagonal of S less that of F F' as (n, d), a view if possible.

        Zeros are float32, so that they fit any dtype; squares are float64, where none overflows.
        """

    def alike(self, batch: Covariances, other: Covariances) -> bool:  # noqa: ARG002
        """Tell whether two batches of this kind are of the same features."""
        return True

    def expanded(self, batch: Covariances) -> Covariances:
        """Return the batch as a kind that stores all features."""
        return batch

    def factor_groups(self, batch: Covariances) -> Iterator[tuple[Rows, Array]]:  # noqa: ARG002
        """Yield the rows of each rank and their F, (n_rows, d, rank), in float64."""
        return iter(())

    def matrices(self, batch: Covariances) -> FloatArray:
        """Return S as (n, d, d), in a type that holds it; zeros are float32."""
        return self.dense(batch)

    @abstractmethod
    def joined(
        self, batches: Sequence[Covariances]
    ) -> tuple[FloatArray | None, bool, Offsets, FloatArray | None]:
        """Return values, squared, offsets and diagonal_values of batches of this or smaller kinds.

        The sizes are those of the order in `STORAGES`.
        """

    @abstractmethod
    def scaled(
        self, batch: Covariances, factors: Array
    ) -> tuple[Kind, FloatArray | None, FloatArray | None]:
        """Return kind, values and diagonal_values of a batch whose features are multiplied.

        The factors are of shape (n or 1, d or 1).
        """

    @abstractmethod
    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        """Return A S A' in the smallest kind that holds it, in the type of the batch."""

    @abstractmethod
    def truncated(
        self, batch: Covariances, p: float, n_threads: int
    ) -> tuple[Kind, FloatArray | None, Offsets]:
        """Return kind, values and offsets of the leading parts that hold the share p of each.

        Tied eigenvalues stay together.
        """

    def variances(self, batch: Covariances) -> Array:
        """Return the (n, d) diagonals of S, a view where they are stored as such."""
        return np.ascontiguousarray(self.own_diagonal(batch), dtype=np.float64)

    def trace(self, batch: Covariances) -> Array:
        """Return the (n,) sums of the diagonals of S."""
        return np.asarray(self.variances(batch).sum(axis=1))

    def dense(self, batch: Covariances) -> Array:
        """Return S as (n, d, d), a view where it is stored as such."""
        matrices = np.zeros((*batch.shape, batch.n_features))
        np.einsum("ndd->nd", matrices)[...] = self.own_diagonal(batch)
        for rows, factors in self.factor_groups(batch):
            matrices[rows] += factors @ factors.transpose(0, 2, 1)
        return matrices

    def weighted_sum(self, batch: Covariances, weights: Array) -> Array:
        """Return sum_j c_j S_j, (d, d)."""
        total = np.diag(weights @ self.own_diagonal(batch).astype(np.float64, copy=False))
        for rows, factors in self.factor_groups(batch):
            weighted = weights[rows, np.newaxis, np.newaxis] * factors
            total = total + np.tensordot(weighted, factors, ((0, 2), (0, 2)))
        return total

    def products(self, batch: Covariances, v: Array) -> Array:
        """Return S v of each example; v has a row for each, or one for all."""
        v = np.broadcast_to(v, batch.shape)
        out = np.asarray(self.own_diagonal(batch) * v)
        for rows, F in self.factor_groups(batch):
            out[rows] += np.einsum("ndr,nr->nd", F, np.einsum("ndr,nd->nr", F, v[rows]))
        return out

    def quadratic_forms(self, batch: Covariances, M: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return tr(M S), tr(M S M S) and v'S v of each example; v has a row for each.

        With S = diag(s) + F F' the second is s'(M o M) s + 2 s'|M F|^2 + |F'M F|^2.
        """
        s = self.own_diagonal(batch).astype(np.float64, copy=False)
        trace = s @ M.diagonal()
        squared = np.einsum("nd,nd->n", s @ np.square(M), s)
        slope = np.einsum("nd,nd->n", s, np.square(v))
        for rows, F in self.factor_groups(batch):
            MF = M @ F
            inner = F.transpose(0, 2, 1) @ MF
            trace[rows] += np.einsum("nrr->n", inner)
            squared[rows] += 2.0 * np.einsum("nd,ndr->n", s[rows], np.square(MF))
            squared[rows] += np.square(inner).sum(axis=(1, 2))
            slope[rows] += np.square(np.einsum("ndr,nd->nr", F, v[rows])).sum(axis=1)
        return trace, squared, slope
