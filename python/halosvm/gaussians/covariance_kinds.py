"""The kinds of covariances: how each stores its matrices, and all that depends on that.

In:  batches of `Covariances`, of which only the stored arrays are read.
Out: their diagonals, factors, matrices, products and parts; the core's views of them.
A kind is one class here, or in `few_features`, and one line in `STORAGES`; nothing else asks of
what kind a batch is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halosvm import _core
from halosvm.gaussians import linear_maps
from halosvm.gaussians.covariance_arrays import pack_factors
from halosvm.gaussians.covariance_storage import Kind, Storage, Stored
from halosvm.gaussians.few_features import few_features

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_arrays import Rows
    from halosvm.gaussians.covariance_storage import Array, Offsets
    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.linear_maps import LinearMap


class _Spherical(Storage):
    """What kinds share whose matrices have one eigenvalue."""

    spherical = True

    def truncated(
        self,
        batch: Covariances,
        p: float,  # noqa: ARG002
        n_threads: int,  # noqa: ARG002
    ) -> tuple[Kind, FloatArray | None, Offsets]:
        return batch.kind, batch.values, None


class _Zero(_Spherical):
    """Certain examples: nothing is stored."""

    kind = "zero"

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.zero(*batch.shape)

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        return _zeros(batch)

    def matrices(self, batch: Covariances) -> FloatArray:
        return np.zeros((*batch.shape, batch.n_features), np.float32)

    def joined(self, batches: Sequence[Covariances]) -> tuple[None, bool, None, None]:  # noqa: ARG002
        return None, False, None, None

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, None, None]:  # noqa: ARG002
        return "zero", None, None

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:  # noqa: ARG002
        return Stored("zero")


class _Isotropic(_Spherical):
    """One variance or standard deviation for each example."""

    kind = "isotropic"

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.isotropic(_values(batch), batch.n_features, batch.squared)

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        return np.broadcast_to(_as_variances(batch)[:, np.newaxis], batch.shape)

    def joined(self, batches: Sequence[Covariances]) -> tuple[FloatArray, bool, None, None]:
        diagonals, squared = _diagonals(batches)
        return np.concatenate([diagonal[:, 0] for diagonal in diagonals]), squared, None, None

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, FloatArray, None]:
        own, values = factors if batch.squared else np.square(factors), _values(batch)
        if (own == own[:, :1]).all():
            return "isotropic", values * own[:, 0], None
        return "diagonal", values[:, np.newaxis] * own, None

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        return linear_maps.of_spheres(_values(batch), A, squared=batch.squared)

    def trace(self, batch: Covariances) -> Array:
        return batch.n_features * _as_variances(batch).astype(np.float64, copy=False)


class _Diagonal(Storage):
    """A variance or standard deviation for each feature of each example."""

    kind = "diagonal"

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.diagonal(_values(batch), batch.squared)

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        return _as_variances(batch)

    def joined(self, batches: Sequence[Covariances]) -> tuple[FloatArray, bool, None, None]:
        diagonals, squared = _diagonals(batches)
        return np.concatenate(diagonals), squared, None, None

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, FloatArray, None]:
        return "diagonal", _values(batch) * (factors if batch.squared else np.square(factors)), None

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        return linear_maps.of_diagonals(_values(batch), A, squared=batch.squared)

    def truncated(
        self, batch: Covariances, p: float, n_threads: int
    ) -> tuple[Kind, FloatArray, None]:
        kept, values = _core.truncate_diagonal(batch.core_view(), p, n_threads), _values(batch)
        return "diagonal", np.where(kept, values, np.zeros((), values.dtype)), None


class _LowRank(Storage):
    """A factor for each example, maybe of different ranks, and maybe a diagonal."""

    kind = "low_rank"
    independent = False

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.low_rank(
            _values(batch), batch.n_features, batch.offsets, batch.diagonal_values
        )

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        return _zeros(batch) if batch.diagonal_values is None else batch.diagonal_values

    def factor_groups(self, batch: Covariances) -> Iterator[tuple[Rows, Array]]:
        if batch.offsets is None:
            yield slice(None), _values(batch).astype(np.float64, copy=False)
            return
        ranks, d = np.diff(batch.offsets), batch.n_features
        starts = d * batch.offsets
        for rank in np.unique(ranks):
            rows = np.flatnonzero(ranks == rank)
            entries = starts[rows, np.newaxis] + np.arange(d * rank)
            factors = _values(batch)[entries].astype(np.float64)
            yield rows, factors.reshape(len(rows), d, rank)

    def variances(self, batch: Covariances) -> Array:
        variances = super().variances(batch).copy()
        for rows, factors in self.factor_groups(batch):
            variances[rows] += np.einsum("ndr,ndr->nd", factors, factors)
        return variances

    def joined(
        self, batches: Sequence[Covariances]
    ) -> tuple[FloatArray, bool, Offsets, FloatArray | None]:
        factors, ranks = zip(*map(_factors_and_ranks, batches), strict=True)
        values, offsets = pack_factors(factors, np.concatenate(ranks), batches[0].n_features)
        if all(
            b.certain or (not storage_of(b).independent and b.diagonal_values is None)
            for b in batches
        ):
            return values, False, offsets, None
        added = np.concatenate([storage_of(b).own_diagonal(b) for b in batches])
        return values, False, offsets, added

    def scaled(
        self, batch: Covariances, factors: Array
    ) -> tuple[Kind, FloatArray, FloatArray | None]:
        values, added = _values(batch), batch.diagonal_values
        added = None if added is None else added * np.square(factors)
        if batch.offsets is None:
            return "low_rank", values * factors[:, :, np.newaxis], added
        ranks = np.repeat(np.diff(batch.offsets), batch.n_features)
        each = np.broadcast_to(factors, batch.shape).ravel()
        return "low_rank", values * np.repeat(each, ranks), added

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        groups, ranks = list(self.factor_groups(batch)), _factors_and_ranks(batch)[1]
        return linear_maps.of_factors(groups, batch.diagonal_values, ranks, batch.dtype, A)

    def truncated(
        self, batch: Covariances, p: float, n_threads: int
    ) -> tuple[Kind, FloatArray, Offsets]:
        return _leading_factors(batch, p, n_threads)


class _Full(Storage):
    """A dense matrix for each example."""

    kind = "full"
    independent = False
    whole = True

    def core_view(self, batch: Covariances) -> _core.Covariances:
        return _core.Covariances.full(_values(batch))

    def own_diagonal(self, batch: Covariances) -> FloatArray:
        return np.asarray(np.einsum("ndd->nd", _values(batch)))

    def matrices(self, batch: Covariances) -> FloatArray:
        return _values(batch)

    def joined(self, batches: Sequence[Covariances]) -> tuple[FloatArray, bool, None, None]:
        matrices = [storage_of(batch).matrices(batch) for batch in batches]
        return np.concatenate(matrices), False, None, None

    def scaled(self, batch: Covariances, factors: Array) -> tuple[Kind, FloatArray, None]:
        products = factors[:, :, np.newaxis] * factors[:, np.newaxis, :]
        return "full", _values(batch) * products, None

    def mapped(self, batch: Covariances, A: LinearMap) -> Stored:
        return linear_maps.of_matrices(_values(batch), A)

    def truncated(
        self, batch: Covariances, p: float, n_threads: int
    ) -> tuple[Kind, FloatArray, Offsets]:
        return _leading_factors(batch, p, n_threads)

    def dense(self, batch: Covariances) -> Array:
        return _values(batch).astype(np.float64, copy=False)

    def weighted_sum(self, batch: Covariances, weights: Array) -> Array:
        return np.asarray(np.tensordot(weights, self.dense(batch), 1))

    def products(self, batch: Covariances, v: Array) -> Array:
        each = np.broadcast_to(v, batch.shape)
        return np.asarray(np.einsum("nij,nj->ni", self.dense(batch), each))

    def quadratic_forms(self, batch: Covariances, M: Array, v: Array) -> tuple[Array, Array, Array]:
        S = self.dense(batch)
        MS = M @ S
        squared = np.einsum("nij,nji->n", MS, MS)
        return np.einsum("nii->n", MS), squared, np.einsum("ni,nij,nj->n", v, S, v, optimize=True)


# From the smallest to the largest: each kind holds those before it, low_rank as its added diagonal.
STORAGES: dict[Kind, Storage] = {
    storage.kind: storage for storage in (_Zero(), _Isotropic(), _Diagonal(), _LowRank(), _Full())
}
STORAGES |= {storage.kind: storage for storage in few_features(STORAGES)}


def storage_of(batch: Covariances) -> Storage:
    """Return what knows how a batch is stored."""
    return STORAGES[batch.kind]


def join(batches: Sequence[Covariances]) -> Stored:
    """Join batches as the smallest kind that holds all of them."""
    uncertain = [batch for batch in batches if not batch.certain]
    few = [storage_of(batch).few for batch in uncertain]
    if any(few):
        first = uncertain[0]
        alike = all(
            storage_of(batch) is storage_of(first) and storage_of(batch).alike(batch, first)
            for batch in uncertain
        )
        if alike and first.inner is not None:
            k = first.inner.n_features
            inner = [b.inner or type(b).zero(len(b), k) for b in batches]
            return Stored(first.kind, columns=first.columns, inner=type(first).concatenate(inner))
        if not alike:
            batches = [storage_of(batch).expanded(batch) for batch in batches]
    kind = max((batch.kind for batch in batches), key=list(STORAGES).index)
    return Stored(kind, *STORAGES[kind].joined(batches))


def _values(batch: Covariances) -> FloatArray:
    assert batch.values is not None
    return batch.values


def _zeros(batch: Covariances) -> FloatArray:
    return np.broadcast_to(np.zeros((), np.float32), batch.shape)


def _as_variances(batch: Covariances) -> FloatArray:
    """Return isotropic or diagonal values as variances."""
    return np.square(_values(batch), dtype=np.float64) if batch.squared else _values(batch)


def _diagonals(batches: Sequence[Covariances]) -> tuple[list[FloatArray], bool]:
    """Return the (n, d) diagonals of batches up to diagonal, and whether as standard deviations.

    They are that if all batches but the certain ones are stored so.
    """
    if not all(batch.squared for batch in batches if not batch.certain):
        return [storage_of(batch).own_diagonal(batch) for batch in batches], False
    stored = [np.zeros(len(b), np.float32) if b.values is None else b.values for b in batches]
    columns = [values if values.ndim == 2 else values[:, np.newaxis] for values in stored]
    return [np.broadcast_to(c, b.shape) for c, b in zip(columns, batches, strict=True)], True


def _factors_and_ranks(batch: Covariances) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the factors of a batch, flat, and the rank of each: 0 where there is none."""
    if storage_of(batch).independent or batch.values is None:
        return np.empty(0, np.float32), np.zeros(len(batch), np.int64)
    if batch.offsets is None:
        return batch.values.reshape(-1), np.full(len(batch), batch.values.shape[2])
    return batch.values, np.diff(batch.offsets)


def _leading_factors(
    batch: Covariances, p: float, n_threads: int
) -> tuple[Kind, FloatArray, Offsets]:
    """Return the truncated matrices by their factors, in the type of the given ones."""
    in_core = _core.truncate_float32 if batch.dtype == np.float32 else _core.truncate
    flat, offsets = in_core(batch.core_view(), p, n_threads)
    return "low_rank", *pack_factors([flat], np.diff(offsets), batch.n_features)
