"""The array work of Covariances and Gaussians: reading, checking, selecting rows, packing factors.

In:  array-likes, masked arrays, data frames, index expressions.
Out: C-contiguous, aligned, native float32 or float64 arrays, in the memory of the argument where
it is one already. Types and shapes are checked here, the values of plain arrays by the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from halosvm.checks import reading
from halosvm.checks.frames import paired
from halosvm.checks.reading import (
    FloatArray,
    as_float_array,
    beyond_limits,
    refuse_where,
    require_shape,
)
from halosvm.core.abandonable import eigh

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from halosvm.checks.frames import Labels
    from halosvm.gaussians.covariances import Covariances

    Batch = TypeVar("Batch", bound=Covariances)

Rows: TypeAlias = slice | NDArray[np.intp]

CLEARLY_IN_RANGE = np.sqrt(reading.LARGEST)  # also for what is squared


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
                kept = np.require(value, requirements=["ALIGNED"]).view()  # buffers may not be
                kept.flags.writeable = False  # of our view, not of the array given
            elif sparse.issparse(value):
                kept = reading.frozen_csr(value, value.data)
            object.__setattr__(self, name, kept)
        object.__setattr__(self, "_view", None)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored arrays."""
        total = 0
        for value in self.__getstate__():
            held = list(value) if isinstance(value, tuple) else [value]
            if sparse.issparse(value):
                held = [value.data, value.indices, value.indptr]
            total += sum(one.nbytes for one in held if isinstance(one, np.ndarray | Frozen))
        return total

    def replaced(self, **parts: Any) -> Self:
        """Return the same with other parts (for the package, which knows them valid)."""
        state = dict(zip(self._state, self.__getstate__(), strict=True)) | parts
        other = type(self).__new__(type(self))
        other.__setstate__(tuple(state.values()))
        return other


# ---- reading and checking --------------------------------------------------------------------


def read_correlation(array: Any, shape: tuple[int, ...], labels: Labels) -> FloatArray:
    """Read (n or 1, d, d) correlations for (n, d) data: diagonals 1, entries at most 1 in size.

    `labels` are those of the standard deviations, into the order of which they are brought.
    """
    n_samples, n_features = shape
    correlation = as_float_array(array, "correlation")
    if correlation.ndim == 2:
        correlation, n_samples = correlation[np.newaxis], 1
    require_shape(correlation, "correlation", n_samples, n_features, n_features)
    if np.ndim(array) == 2:
        correlation = paired(correlation[0], array, "correlation", labels, "std", rows=False)[None]
    else:
        correlation = paired(correlation, array, "correlation", labels, "std")
    rounding = 1e-6 if correlation.dtype == np.float32 else 1e-8
    units = np.einsum("ndd->nd", correlation)
    refuse_where(~(np.abs(units - 1) <= rounding), "correlation", "the diagonal must be 1", units)
    outside = ~(np.abs(correlation) <= 1 + rounding)
    refuse_where(outside, "correlation", "it must be between -1 and 1", correlation)
    return correlation


def correlated(std: FloatArray, correlation: FloatArray) -> NDArray[np.float64]:
    """Return the matrices of standard deviations (n, d) and correlations (n or 1, d, d)."""
    # float64, because in float32 the product of two valid standard deviations can overflow
    values = std[:, :, np.newaxis] * std[:, np.newaxis, :].astype(np.float64)
    values *= correlation
    return np.asarray(values)


def largest(numbers: Any) -> float:
    """Return the largest size in an array that may be sparse, NaN if one is."""
    numbers = numbers.data if sparse.issparse(numbers) else numbers
    return max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))


def in_type(numbers: Any, dtype: np.dtype[Any]) -> Any:
    """Return numbers, or None, in a type, or as they are if one would overflow or lose digits."""
    if numbers is None or numbers.dtype == dtype:
        return numbers
    with np.errstate(over="ignore", under="ignore"):
        kept = numbers.astype(dtype)
    sizes, limits = np.abs(numbers.data if sparse.issparse(numbers) else numbers), np.finfo(dtype)
    outside = (sizes > limits.max) | ((sizes < limits.tiny) & (sizes > 0.0))
    return numbers if outside.any() else kept


def inverse_of(inverse: FloatArray, argument: str) -> FloatArray:
    """Return 1 / inverse, after a check that every result is a valid variance."""
    with np.errstate(divide="ignore", over="ignore"):
        variance = 1 / inverse
    verdict = f"it must be > 0, and its inverse, the variance, at most {reading.LARGEST:g}"
    refuse_where(~(inverse > 0) | beyond_limits(variance), argument, verdict, inverse)
    return variance


def require_alike(parts: Iterable[Any], of: type[Batch]) -> list[Batch]:
    """Return batches of a type as a list, at least one, after a check of their features."""
    batches = list(parts)
    if not batches:
        raise ValueError("parts is empty; at least one batch is needed")
    for i, part in enumerate(batches):
        if not isinstance(part, of):
            raise TypeError(f"parts[{i}] is {type(part).__name__}, expected {of.__name__}")
        if part.n_features != (d := batches[0].n_features):
            raise ValueError(f"parts[{i}] has {part.n_features} features, parts[0] has {d}")
    return batches


# ---- selecting rows --------------------------------------------------------------------------


def select_rows(key: Any, n_samples: int, axis: str = "row") -> int | Rows:
    """Translate what stands in the brackets into one row, a range of rows, or row numbers.

    Parameters
    ----------
    key : int, slice, integer or boolean array-like, or a tuple of one of them and ``...`` or ``:``
        The index expression.
    n_samples : int
        Number of rows; negative indices count from there.
    axis : str
        What the rows are called in messages.

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
        if not all(map(_is_all, rest)):
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
            raise IndexError(f"the mask has {len(index)} entries for {n_samples} {axis}s")
        return np.flatnonzero(index)
    if index.dtype.kind not in "iu" or index.ndim > 1:
        raise IndexError(
            f"{axis}s are selected by an integer, a slice or a 1-d array, not by {key!r}"
        )
    beyond = index[(index < -n_samples) | (index >= n_samples)]
    if beyond.size:
        raise IndexError(f"{axis} {beyond.flat[0]} is out of range for {n_samples} {axis}s")
    rows = index.astype(np.intp)
    rows = np.where(rows < 0, rows + n_samples, rows)
    return int(rows) if rows.ndim == 0 else rows


def select_columns(key: Any, n_features: int) -> NDArray[np.intp] | None:
    """Return the features that ``X[:, columns]`` selects, None where only rows are selected."""
    whole = isinstance(key, tuple) and len(key) == 2
    if not whole or not _is_all(key[0]) or _is_all(key[1]):
        return None
    columns = key[1]
    if np.ndim(columns) != 1 and not isinstance(columns, slice):
        raise IndexError(f"a feature is selected as a column, by [{columns!r}]")
    selected = select_rows(columns, n_features, "feature")
    chosen = np.atleast_1d(np.arange(n_features)[selected])
    if not len(chosen):
        raise IndexError("no feature is selected; it needs at least one")
    return chosen


def _is_all(part: Any) -> bool:
    return part is ... or (isinstance(part, slice) and part == slice(None))


def take_rows(array: Any, rows: Rows) -> Any:
    """Return the selected rows, a view for a slice of an array that is not sparse."""
    if sparse.issparse(array):
        return sparse.csr_array(array)[rows]
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def join_rows(parts: Sequence[Any]) -> Any:
    """Return the rows of all parts one below the other, sparse where one part is."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def join_columns(parts: Sequence[Any]) -> Any:
    """Return the columns of all parts side by side, sparse where one part is."""
    if any(map(sparse.issparse, parts)):
        return sparse.hstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts, axis=1)


def take_columns(array: Any, columns: NDArray[np.intp]) -> Any:
    """Return the selected columns."""
    if sparse.issparse(array):
        return reading.as_rows(sparse.csr_array(array)[:, columns], "X")
    return np.ascontiguousarray(array[:, columns])


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


# ---- packing factors -------------------------------------------------------------------------


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
                reading.require_in_range(factor, f"factors[{i}]")
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


def roots_of(matrices: FloatArray) -> NDArray[np.float64]:
    """Return R of covariances R R', (n, d, d)."""
    values, vectors = eigh(matrices)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :])
