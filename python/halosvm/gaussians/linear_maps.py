"""Linear maps of covariances: S -> A S A', each kind in the smallest that holds the result.

In:  what a kind stores, and A: one (k, d) matrix for all examples, dense or sparse, or (n, k, d).
Out: what `Covariances` stores of the result, in the type of the given numbers; products are taken
in float64 and in blocks of rows, so that no more memory is needed than for the result.

Independent features stay so, and diagonal, where no two rows of A read the same feature: scaling,
selection, sums over groups. Where two do, their errors depend on each other: d factors hold the
result if d < k, else only full matrices do. Spheres stay spheres where A A' is a multiple of the
identity. Factors stay factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from halosvm.gaussians.covariance_storage import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_arrays import Rows
    from halosvm.gaussians.covariance_storage import Array

    LinearMap: TypeAlias = Array | sparse.csr_array

# Numbers of a block.
_BLOCK = 1 << 18


def reads_apart(A: LinearMap) -> bool:
    """Tell whether no two rows of A read the same feature, so that independent features stay so."""
    if isinstance(A, np.ndarray):
        used = A != 0
        readers = (used if A.ndim == 2 else used.any(axis=0)).sum(axis=0)
    else:
        readers = np.bincount(A.indices[A.data != 0], minlength=1)
    return int(readers.max(initial=0)) <= 1


def placing(columns: NDArray[np.intp], n_features: int) -> sparse.csr_array:
    """Return the (n_features, k) matrix that puts k features in these columns, 0 elsewhere."""
    k = len(columns)
    return sparse.csr_array((np.ones(k), (columns, np.arange(k))), shape=(n_features, k))


def of_spheres(values: FloatArray, A: LinearMap, *, squared: bool) -> Stored:
    """Map v_i I: to c v_i I, to diagonals, or as diagonals are mapped."""
    n, d = len(values), A.shape[-1]
    alone = read_alone(A)
    if squared and alone is not None and reads_apart(A) and (alone[1] == alone[1][0]).all():
        return Stored("isotropic", _like(values, values * np.abs(alone[1][0])), squared)
    if A.ndim == 2:
        gram = sparse.coo_array(A @ A.T)
        own = gram.diagonal().astype(np.float64)
        rounding = 4.0 * d * float(np.finfo(A.dtype).eps)
        apart, between = gram.row != gram.col, np.sqrt(own[gram.row] * own[gram.col])
        if (np.abs(gram.data) <= rounding * between)[apart].all():
            own = np.sqrt(own) if squared else own
            if (np.abs(own - own[0]) <= rounding * own[0]).all():
                return Stored("isotropic", _like(values, values * own.mean()), squared)
            return Stored("diagonal", _like(values, np.multiply.outer(values, own)), squared)
    return _of_own(np.broadcast_to(values[:, np.newaxis], (n, d)), A, squared=squared)


def of_diagonals(values: FloatArray, A: LinearMap, *, squared: bool) -> Stored:
    """Map diagonals, given as variances or, squared, as standard deviations."""
    alone = read_alone(A)
    if squared and alone is not None and reads_apart(A):
        columns, factors = alone
        return Stored("diagonal", _like(values, values[:, columns] * np.abs(factors)), squared=True)
    return _of_own(values, A, squared=squared)


def of_factors(
    groups: list[tuple[Rows, Array]],
    added: FloatArray | None,
    ranks: NDArray[np.int64],
    dtype: np.dtype[Any],
    A: LinearMap,
) -> Stored:
    """Map F F' + diag(added), with factors in groups of equal rank."""
    n, k, d = len(ranks), A.shape[-2], A.shape[-1]
    if added is None:
        return _packed([(rows, _times(A, F, rows)) for rows, F in groups], ranks, k, dtype)
    if reads_apart(A):
        mapped = _packed([(rows, _times(A, F, rows)) for rows, F in groups], ranks, k, dtype)
        return mapped._replace(diagonal_values=_diagonals(added, A))
    if int(ranks.max(initial=0)) + d < k:
        spreads = np.sqrt(added, dtype=np.float64)
        joined = [
            (rows, np.concatenate([_times(A, F, rows), _spread(A, spreads[rows], rows)], axis=2))
            for rows, F in groups
        ]
        return _packed(joined, ranks + d, k, dtype)
    matrices = np.empty((n, k, k), dtype)
    _fill_grams(matrices, added, A)
    for rows, F in groups:
        image = _times(A, F, rows)
        matrices[rows] += image @ image.transpose(0, 2, 1)
    return Stored("full", matrices)


def of_matrices(values: FloatArray, A: LinearMap) -> Stored:
    """Map dense matrices."""
    n, k, d = len(values), A.shape[-2], A.shape[-1]
    matrices = np.empty((n, k, k), values.dtype)
    alone = read_alone(A)
    dense = _dense(A) if alone is None else np.empty(0)
    for rows in _blocks(n, d * max(k, d)):
        S = values[rows].astype(np.float64, copy=False)
        if alone is not None:
            columns, factors = alone
            image = S[:, columns[:, np.newaxis], columns] * np.outer(factors, factors)
        else:
            each = dense[rows] if A.ndim == 3 else dense
            image = each @ S @ each.swapaxes(-1, -2)
        image = 0.5 * (image + image.transpose(0, 2, 1))
        below = np.einsum("nii->ni", image) < 0  # where a variance of 0 was rounded
        if below.any():
            image[below[:, :, np.newaxis] | below[:, np.newaxis, :]] = 0.0
        matrices[rows] = image
    return Stored("full", matrices)


def _of_own(values: FloatArray, A: LinearMap, *, squared: bool) -> Stored:
    """Map (n, d) variances or standard deviations that are independent."""
    n, k, d = len(values), A.shape[-2], A.shape[-1]
    if reads_apart(A):
        return Stored("diagonal", _diagonals(values, A, squared=squared))
    if d < k:
        factors = np.empty((n, k, d), values.dtype)
        for rows in _blocks(n, k * d):
            own = values[rows].astype(np.float64)
            factors[rows] = _spread(A, own if squared else np.sqrt(own), rows)
        return Stored("low_rank", factors)
    matrices = np.empty((n, k, k), values.dtype)
    _fill_grams(matrices, values, A, squared=squared)
    return Stored("full", matrices)


def _diagonals(values: FloatArray, A: LinearMap, *, squared: bool = False) -> FloatArray:
    """Return the diagonals of A diag(v) A', (n, k)."""
    n, k, d = len(values), A.shape[-2], A.shape[-1]
    out = np.empty((n, k), values.dtype)
    squares = np.square(A, dtype=np.float64) if isinstance(A, np.ndarray) else A.power(2)
    for rows in _blocks(n, k * d if A.ndim == 3 else k + d):
        v = _variances(values[rows], squared=squared)
        out[rows] = np.einsum("nd,nkd->nk", v, squares[rows]) if A.ndim == 3 else v @ squares.T
    return out


def _fill_grams(
    out: FloatArray, values: FloatArray, A: LinearMap, *, squared: bool = False
) -> None:
    """Write A diag(v) A' of each example."""
    n, k, d = len(values), A.shape[-2], A.shape[-1]
    dense = _dense(A)
    for rows in _blocks(n, k * max(k, d)):
        v = _variances(values[rows], squared=squared)
        if A.ndim == 3:
            image = (dense[rows] * v[:, np.newaxis, :]) @ dense[rows].transpose(0, 2, 1)
            out[rows] = 0.5 * (image + image.transpose(0, 2, 1))
            continue
        for a in range(k):
            column = v @ (dense[: a + 1] * dense[a]).T
            out[rows, a, : a + 1] = column
            out[rows, : a + 1, a] = column


def _variances(values: FloatArray, *, squared: bool) -> Array:
    return np.square(values, dtype=np.float64) if squared else values.astype(np.float64, copy=False)


def _times(A: LinearMap, F: Array, rows: Rows) -> Array:
    """Return A F of each example, (n, k, r)."""
    alone = read_alone(A)
    if alone is not None:
        columns, factors = alone
        return np.asarray(F[:, columns] * factors[:, np.newaxis])
    return np.asarray((A[rows] if A.ndim == 3 else _dense(A)) @ F)


def _spread(A: LinearMap, spreads: Array, rows: Rows) -> Array:
    """Return A diag(s) of each example, (n, k, d)."""
    matrix = A[rows] if A.ndim == 3 else _dense(A)
    return np.asarray(matrix * spreads[:, np.newaxis, :])


def _packed(
    groups: list[tuple[Rows, Array]], ranks: NDArray[np.int64], k: int, dtype: np.dtype[Any]
) -> Stored:
    """Store factors (n, k, r) in groups of equal rank in the order of the rows."""
    if len(groups) == 1 and isinstance(groups[0][0], slice):
        return Stored("low_rank", np.ascontiguousarray(groups[0][1], dtype))
    offsets = np.concatenate([[0], np.cumsum(ranks, dtype=np.int64)])
    values = np.empty(k * int(offsets[-1]), dtype)
    for rows, factors in groups:
        entries = k * offsets[:-1][rows, np.newaxis] + np.arange(factors[0].size)
        values[entries] = factors.reshape(len(factors), -1)
    return Stored("low_rank", values, offsets=offsets)


def read_alone(A: LinearMap) -> tuple[NDArray[np.intp], Array] | None:
    """Return the feature that each row of one A reads, and its factor, if none reads two."""
    if A.ndim == 3:
        return None
    entries = sparse.coo_array(A)
    entries.eliminate_zeros()
    if np.bincount(entries.row, minlength=1).max() > 1:
        return None
    columns, factors = np.zeros(A.shape[0], np.intp), np.zeros(A.shape[0])
    columns[entries.row], factors[entries.row] = entries.col, entries.data
    return columns, factors


def _dense(A: LinearMap) -> Array:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())


def _like(values: FloatArray, image: FloatArray) -> FloatArray:
    return np.ascontiguousarray(image, values.dtype)


def _blocks(n: int, numbers: int) -> Iterator[slice]:
    """Split n rows into blocks of rows of so many numbers each."""
    step = max(1, _BLOCK // max(1, numbers))
    for begin in range(0, n, step):
        yield slice(begin, min(n, begin + step))
