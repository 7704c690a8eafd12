"""The array work of Covariances and Gaussians: reading, checking, selecting, packing, joining.

In:  array-likes, masked arrays, data frames, index expressions, stored batches.
Out: C-contiguous, aligned, native float32 or float64 arrays, in the memory of the argument where
it is one already. Types and shapes are checked here, the values of plain arrays by the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _core, reading
from .reading import FloatArray, as_float_array, beyond_limits, refuse_where, require_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from .covariances import Covariances

Rows: TypeAlias = slice | NDArray[np.intp]
Kind: TypeAlias = Literal["zero", "isotropic", "diagonal", "low_rank", "full"]

# From the smallest to the largest: each kind holds those before it, low_rank as its added diagonal.
KINDS: tuple[Kind, ...] = ("zero", "isotropic", "diagonal", "low_rank", "full")


class Frozen:
    """An immutable holder of arrays; pickles what `_state` names and not the core's view of it."""

    __slots__ = ("_view",)

    _state: ClassVar[tuple[str, ...]]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} are immutable: {name} cannot be set")

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._state)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(self._state, state, strict=True):
            kept = value
            if isinstance(value, np.ndarray):
                kept = value.view()
                kept.flags.writeable = False  # of our view, not of the array given
            object.__setattr__(self, name, kept)
        object.__setattr__(self, "_view", None)


# ---- reading and checking --------------------------------------------------------------------


def read_correlation(array: Any, shape: tuple[int, ...]) -> FloatArray:
    """Read (n or 1, d, d) correlations for (n, d) data: diagonals 1, entries at most 1 in size."""
    n_samples, n_features = shape
    correlation = as_float_array(array, "correlation")
    if correlation.ndim == 2:
        correlation, n_samples = correlation[np.newaxis], 1
    require_shape(correlation, "correlation", n_samples, n_features, n_features)
    rounding = 1e-6 if correlation.dtype == np.float32 else 1e-8
    units = np.einsum("ndd->nd", correlation)
    refuse_where(~(np.abs(units - 1) <= rounding), "correlation", "the diagonal must be 1", units)
    outside = ~(np.abs(correlation) <= 1 + rounding)
    refuse_where(outside, "correlation", "it must be between -1 and 1", correlation)
    return correlation


def inverse_of(inverse: FloatArray, argument: str) -> FloatArray:
    """Return 1 / inverse, after a check that every result is a valid variance."""
    with np.errstate(divide="ignore", over="ignore"):
        variance = 1 / inverse
    verdict = f"it must be > 0, and its inverse, the variance, at most {reading.LARGEST:g}"
    refuse_where(~(inverse > 0) | beyond_limits(variance), argument, verdict, inverse)
    return variance


# ---- selecting rows --------------------------------------------------------------------------


def select_rows(key: Any, n_samples: int) -> int | Rows:
    """Translate what stands in the brackets into one row, a range of rows, or row numbers.

    Parameters
    ----------
    key : int, slice, integer or boolean array-like, or a tuple of one of them and ``...`` or ``:``
        The index expression.
    n_samples : int
        Number of rows; negative indices count from there.

    Returns
    -------
    int, slice or ndarray of intp
        Non-negative and in range. Slices have step 1: others would not leave rows contiguous.

    Raises
    ------
    IndexError
        For a row out of range, and for anything that selects other things than rows.
    """
    if isinstance(key, tuple):
        key, *rest = key or (...,)
        if any(
            part is not ... and not (isinstance(part, slice) and part == slice(None))
            for part in rest
        ):
            raise IndexError("only rows can be selected, as in X[rows] or X[rows, ...]")
    if key is ...:
        key = slice(None)
    if isinstance(key, slice):
        start, stop, step = key.indices(n_samples)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    reading.refuse_masked(key, "the index")
    index = np.asarray(key)
    if index.size == 0 and isinstance(key, list):
        index = index.astype(np.intp)
    if index.dtype.kind == "b" and index.ndim == 1:
        if len(index) != n_samples:
            raise IndexError(f"the mask has {len(index)} entries for {n_samples} rows")
        return np.flatnonzero(index)
    if index.dtype.kind not in "iu" or index.ndim > 1:
        raise IndexError(f"rows are selected by an integer, a slice or a 1-d array, not by {key!r}")
    beyond = index[(index < -n_samples) | (index >= n_samples)]
    if beyond.size:
        raise IndexError(f"row {beyond.flat[0]} is out of range for {n_samples} rows")
    rows = index.astype(np.intp)
    rows = np.where(rows < 0, rows + n_samples, rows)
    return int(rows) if rows.ndim == 0 else rows


def take_rows(array: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return the selected rows, a view for a slice."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def take_factors(
    values: FloatArray, offsets: NDArray[np.int64], n_features: int, rows: Rows
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Select rows of flat factors, values as a view for a slice; the offsets start at 0 again."""
    if isinstance(rows, slice):
        offsets = offsets[rows.start : rows.stop + 1]
        return values[n_features * offsets[0] : n_features * offsets[-1]], offsets - offsets[0]
    ranks = np.diff(offsets)[rows]
    packed = cumulated(ranks)
    entries = np.arange(n_features * packed[-1])
    entries += np.repeat(n_features * (offsets[rows] - packed[:-1]), n_features * ranks)
    return values[entries], packed


# ---- packing, joining and expanding ----------------------------------------------------------


def cumulated(ranks: ArrayLike) -> NDArray[np.int64]:
    """Return 0 and the partial sums of the ranks."""
    return np.concatenate([[0], np.cumsum(ranks, dtype=np.int64)])


def read_factors(factors: Any) -> tuple[FloatArray, NDArray[np.int64] | None, tuple[int, int]]:
    """Read factors, an (n, d, r) array or a list of (d, r_i), as values, offsets and (n, d)."""
    listed = isinstance(factors, np.ndarray) and factors.dtype == object and factors.ndim == 1
    if (listed or isinstance(factors, list | tuple)) and len(factors):
        axes = ("n_features", "rank")
        each = [as_float_array(factor, f"factors[{i}]", *axes) for i, factor in enumerate(factors)]
        for i, factor in enumerate(each):
            require_shape(factor, f"factors[{i}]", len(each[0]), "rank")
        values, offsets = pack_factors(each, [factor.shape[1] for factor in each], len(each[0]))
        if beyond_limits(values).any():  # the core would see the packed array, not the list
            for i, factor in enumerate(each):
                refuse_where(beyond_limits(factor), f"factors[{i}]", "it must be finite", factor)
        return values, offsets, (len(each), len(each[0]))
    values = as_float_array(factors, "factors", "n_samples", "n_features", "rank")
    return values, None, (values.shape[0], values.shape[1])


def pack_factors(
    factors: Sequence[FloatArray], ranks: ArrayLike, n_features: int
) -> tuple[FloatArray, NDArray[np.int64] | None]:
    """Store row-major (d, rank_i) factors, given in any grouping, without padding.

    Returns an (n, d, rank) array and None when all ranks agree, else a flat one and the offsets.
    """
    flat, offsets = np.concatenate([factor.reshape(-1) for factor in factors]), cumulated(ranks)
    n_samples = len(offsets) - 1
    if n_samples and (np.diff(offsets) == offsets[1]).all():
        return flat.reshape(n_samples, n_features, offsets[1]), None
    return flat, offsets


def join(
    batches: Sequence[Covariances],
) -> tuple[Kind, FloatArray | None, bool, NDArray[np.int64] | None, FloatArray | None]:
    """Join batches as the smallest kind that holds all of them.

    Returns kind, values, squared, offsets and diagonal_values, as `Covariances` stores them.
    """
    kind = max((batch.kind for batch in batches), key=KINDS.index)
    if kind == "zero":
        return kind, None, False, None, None
    if kind != "low_rank":
        squared = kind != "full" and all(b.squared for b in batches if b.kind != "zero")
        values = np.concatenate([_values_as(kind, batch, squared=squared) for batch in batches])
        return kind, values, squared, None, None
    factors, ranks = zip(*map(_factors_and_ranks, batches), strict=True)
    values, offsets = pack_factors(factors, np.concatenate(ranks), batches[0].n_features)
    if all(b.kind == "zero" or (b.kind == kind and b.diagonal_values is None) for b in batches):
        return kind, values, False, offsets, None
    added = np.concatenate([_values_as("diagonal", batch) for batch in batches])
    return kind, values, False, offsets, added


def _values_as(kind: Kind, batch: Covariances, *, squared: bool = False) -> FloatArray:
    """Return a batch in the form of a larger kind; low_rank as diagonal is what it adds there.

    Zeros are float32, so that they fit any dtype; squares are float64, where none overflows.
    """
    if kind == "full" and batch.kind not in {"zero", "full"}:
        return dense(batch)
    values = batch.diagonal_values if batch.kind == "low_rank" else batch.values
    n, d = batch.shape
    shape = {"isotropic": (n,), "full": (n, d, d)}.get(kind, (n, d))
    if values is None:
        return np.zeros(shape, np.float32)
    if batch.squared and not squared:
        values = np.square(values, dtype=np.float64)
    return values if values.ndim == len(shape) else np.broadcast_to(values[:, np.newaxis], shape)


def _factors_and_ranks(batch: Covariances) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the factors of a batch, flat, and the rank of each: 0 where there is none."""
    if batch.kind != "low_rank" or batch.values is None:
        return np.empty(0, np.float32), np.zeros(len(batch), np.int64)
    if batch.offsets is None:
        return batch.values.reshape(-1), np.full(len(batch), batch.values.shape[2])
    return batch.values, np.diff(batch.offsets)


def factor_groups(batch: Covariances) -> Iterator[tuple[Rows, NDArray[np.float64]]]:
    """Yield the rows of each rank and their (n_rows, d, rank) factors, in float64."""
    if batch.offsets is None and batch.values is not None:
        yield slice(None), batch.values.astype(np.float64, copy=False)
        return
    flat, ranks = _factors_and_ranks(batch)
    starts, d = batch.n_features * cumulated(ranks), batch.n_features
    for rank in np.unique(ranks):
        rows = np.flatnonzero(ranks == rank)
        entries = starts[rows, np.newaxis] + np.arange(d * rank)
        yield rows, flat[entries].astype(np.float64).reshape(len(rows), d, rank)


def dense_diagonal(batch: Covariances) -> NDArray[np.float64]:
    """Return the (n, d) variances of a batch, a view where they are stored as such."""
    variances: NDArray[np.float64]
    if batch.kind == "full" and batch.values is not None:
        variances = np.einsum("ndd->nd", batch.values).astype(np.float64)
        return variances
    variances = np.ascontiguousarray(_values_as("diagonal", batch), dtype=np.float64)
    if batch.kind == "low_rank":
        variances = variances.copy()
        for rows, factors in factor_groups(batch):
            variances[rows] += np.einsum("ndr,ndr->nd", factors, factors)
    return variances


def dense(batch: Covariances) -> NDArray[np.float64]:
    """Return the (n, d, d) matrices of a batch, a view where they are stored as such."""
    if batch.kind == "full" and batch.values is not None:
        return batch.values.astype(np.float64, copy=False)
    matrices = np.zeros((*batch.shape, batch.n_features))
    np.einsum("ndd->nd", matrices)[...] = _values_as("diagonal", batch)
    if batch.kind == "low_rank":
        for rows, factors in factor_groups(batch):
            matrices[rows] += factors @ factors.transpose(0, 2, 1)
    return matrices


def scaled(
    batch: Covariances, factors: NDArray[np.float64]
) -> tuple[Kind, FloatArray | None, FloatArray | None]:
    """Return kind, values and diagonal_values of a batch whose features are multiplied."""
    values, added, squares = batch.values, batch.diagonal_values, np.square(factors)
    if values is None:
        return batch.kind, None, None
    if batch.kind in ("isotropic", "diagonal"):
        own = factors if batch.squared else squares
        if batch.kind == "isotropic" and (own == own[0]).all():
            return "isotropic", values * own[0], None
        return "diagonal", (values if values.ndim == 2 else values[:, np.newaxis]) * own, None
    if batch.kind == "full":
        return "full", values * np.multiply.outer(factors, factors), None
    added = None if added is None else added * squares
    if batch.offsets is None:
        return "low_rank", values * factors[:, np.newaxis], added
    rows = np.tile(factors, len(batch))
    return (
        "low_rank",
        values * np.repeat(rows, np.repeat(np.diff(batch.offsets), len(factors))),
        added,
    )


def core_view_of(batch: Covariances) -> _core.Covariances:
    """Make the core's view of the arrays of a batch."""
    if batch.values is None:
        return _core.Covariances.zero(*batch.shape)
    if batch.kind == "isotropic":
        return _core.Covariances.isotropic(batch.values, batch.n_features, batch.squared)
    if batch.kind == "diagonal":
        return _core.Covariances.diagonal(batch.values, batch.squared)
    if batch.kind == "full":
        return _core.Covariances.full(batch.values)
    return _core.Covariances.low_rank(
        batch.values, batch.n_features, batch.offsets, batch.diagonal_values
    )
