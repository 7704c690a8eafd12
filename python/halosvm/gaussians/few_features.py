"""Kinds of covariances in which most features are certain: a sparse diagonal, and few columns.

In:  batches of `Covariances`, of which only the stored arrays are read.
Out: as of every kind; what cannot keep to few features is answered as by the batch in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from halosvm import _core
from halosvm.gaussians.covariance_storage import Storage, Stored
from halosvm.gaussians.linear_maps import placing, read_alone, reads_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_arrays import Rows
    from halosvm.gaussians.covariance_storage import Array, Kind, Offsets
    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.linear_maps import LinearMap

# Numbers of a block of rows in all features.
_BLOCK = 1 << 20


class _FewFeatures(Storage):
    """What both kinds answer as the batch in all features does.

    Parameters
    ----------
    storages : mapping
        Those of the kinds of all features, by their names.
    """

    few = True
    independent = False

    def __init__(self, storages: Mapping[Kind, Storage]) -> None:
        self._storages = storages

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        everywhere, storage = self._everywhere(batch)
        return storage.own_diagonal(everywhere)

    def factor_groups(self, batch: Covariances) -> Iterator[tuple[Rows, Array]]:
        everywhere, storage = self._everywhere(batch)
        return storage.factor_groups(everywhere)

    def variances(self, batch: Covariances) -> Array:
        everywhere, storage = self._everywhere(batch)
        return storage.variances(everywhere)

    def dense(self, batch: Covariances) -> Array:
        everywhere, storage = self._everywhere(batch)
        return storage.dense(everywhere)

    def weighted_sum(self, batch: Covariances, weights: Array) -> Array:
        everywhere, storage = self._everywhere(batch)
        return storage.weighted_sum(everywhere, weights)

    def products(self, batch: Covariances, v: Array) -> Array:
        everywhere, storage = self._everywhere(batch)
        return storage.products(everywhere, v)

    def quadratic_forms(self, batch: Covariances, M: Array, v: Array) -> tuple[Array, Array, Array]:
        everywhere, storage = self._everywhere(batch)
        return storage.quadratic_forms(everywhere, M, v)

    def _everywhere(self, batch: Covariances) -> tuple[Covariances, Storage]:
        everywhere = self.expanded(batch)
        return everywhere, self._storages[everywhere.kind]


class _SparseDiagonal(_FewFeatures):
    """A variance or standard deviation for some of the features of each example: a csr_array."""

    kind = "sparse_diagonal"

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.sparse_diagonal(batch.values, batch.squared)

    def expanded(self, batch: Covariances) -> Covariances:
        return batch.replaced(kind="diagonal", values=_stored(batch).toarray())

    def trace(self, batch: Covariances) -> Array:
        return np.asarray(_variances(batch).sum(axis=1), np.float64)

    def joined(self, batches: Sequence[Covariances]) -> tuple[sparse.csr_array, bool, None, None]:
        squared = all(batch.squared for batch in batches if not batch.certain)
        parts = [
            sparse.csr_array(batch.shape, dtype=np.float32)
            if batch.values is None
            else batch.values
            if squared
            else _variances(batch)
            for batch in batches
        ]
        return sparse.vstack(parts, format="csr"), squared, None, None

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, sparse.csr_array, None]:
        places = sparse.coo_array(batch.values)
        rows, columns = places.row, places.col
        own = np.broadcast_to(factors, batch.shape)[rows, columns]
        values = sparse.csr_array(batch.values, dtype=np.float64, copy=True)
        values.data *= own if batch.squared else np.square(own)
        return self.kind, values, None

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        if isinstance(A, np.ndarray) or read_alone(A) is None or not reads_apart(A):
            everywhere, storage = self._everywhere(batch)
            return storage.mapped(everywhere, A)
        scales = abs(A) if batch.squared else A.power(2)
        values = sparse.csr_array(batch.values @ scales.T, dtype=batch.dtype)
        values.sort_indices()
        return Stored(self.kind, values, batch.squared)

    def truncated(
        self, batch: Covariances, p: float, n_threads: int
    ) -> tuple[Kind, sparse.csr_array, Offsets]:
        values = sparse.csr_array(batch.values, copy=True)
        step = max(1, _BLOCK // batch.n_features)
        for begin in range(0, len(batch), step):
            part = batch[begin : begin + step]
            kept = _core.truncate_diagonal(self.expanded(part).core_view(), p, n_threads)
            places = sparse.coo_array(part.values)
            rows, columns = places.row, places.col
            values.data[values.indptr[begin] :][: len(rows)] *= kept[rows, columns]
        return self.kind, values, None


class _Columns(_FewFeatures):
    """Covariances of any other kind in some of the columns."""

    kind = "columns"

    def core_view(self, batch: Covariances) -> _core.Covariances:
        inner, columns = batch.inside()
        return _core.Covariances.columns(inner.core_view(), columns.tolist(), batch.n_features)

    def expanded(self, batch: Covariances) -> Covariances:
        inner, columns = batch.inside()
        return inner.mapped(placing(columns, batch.n_features))

    def alike(self, batch: Covariances, other: Covariances) -> bool:
        return np.array_equal(batch.inside()[1], other.inside()[1])

    def trace(self, batch: Covariances) -> Array:
        return batch.inside()[0].trace()

    def joined(self, batches: Sequence[Covariances]) -> tuple[None, bool, None, None]:  # noqa: ARG002
        return None, False, None, None  # the batches inside are joined

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, None, None]:  # noqa: ARG002
        return self.kind, None, None  # the batch inside is scaled

    def truncated(
        self,
        batch: Covariances,  # noqa: ARG002
        p: float,  # noqa: ARG002
        n_threads: int,  # noqa: ARG002
    ) -> tuple[Kind, None, None]:
        return self.kind, None, None  # the batch inside is truncated

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        """Return what the columns' features become, in the features that read any of them."""
        inner, columns = batch.inside()
        own = A[..., columns] if isinstance(A, np.ndarray) else sparse.csr_array(A[:, columns])
        if isinstance(own, np.ndarray):
            read = (own != 0).any(axis=(0, 2) if own.ndim == 3 else 1)
        else:
            read = np.diff(own.indptr) > 0
        if not read.any():
            return Stored("zero")
        rows = np.flatnonzero(read)
        return Stored(
            self.kind,
            columns=rows,
            inner=inner.mapped(own[..., rows, :] if A.ndim == 3 else own[rows]),
        )


def few_features(storages: Mapping[Kind, Storage]) -> tuple[Storage, ...]:
    """Return both kinds, given those of all features by their names."""
    return _SparseDiagonal(storages), _Columns(storages)


def _stored(batch: Covariances) -> Any:
    """Return the csr_array of a sparse diagonal."""
    return batch.values


def _variances(batch: Covariances) -> Any:
    values = _stored(batch)
    return values.astype(np.float64).power(2) if batch.squared else values
