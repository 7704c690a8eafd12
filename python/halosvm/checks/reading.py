"""What users pass as numbers: the one door through which every array-like of them comes in.

In:  lists, arrays, masked arrays, data frames, tables, objects that can be read as numbers.
Out: C-contiguous, aligned, native float32 or float64 arrays, in the memory of the argument where
it is one already. Masks, units and missing values never get lost here: they are refused. Types and
shapes are checked here, the values of plain arrays by the core.
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite

from halosvm import _core
from halosvm.checks import units
from halosvm.checks.frames import columns_of

FloatArray: TypeAlias = NDArray[np.floating[Any]]
# Of means and variances: an array, or a csr_array in canonical format.
Rows: TypeAlias = Any

LARGEST = 1e150
_MASKED = "masked; fill it or leave out its row"


def as_float_array(array: Any, argument: str, *axes: str | int) -> FloatArray:
    """Read an array-like of real numbers as a C-contiguous float32 or float64 array.

    Parameters
    ----------
    array : array-like of any shape
        Float32 and float64 arrays of the right layout are returned as they are, also read-only ones
        and memory maps. Other float32 arrays are copied, everything else becomes float64; objects,
        Decimal among them, by `float`. Tables with named columns become two-dimensional.
    argument : str
        Name used in error messages.
    *axes : str or int
        If given, the shape to require, as in `require_shape`.

    Raises
    ------
    TypeError
        For sparse matrices and for complex, text or date data, objects that are no numbers, and
        arrays with a unit, which `units.split` takes off.
    ValueError
        For a wrong shape, ragged lists and masked arrays with a masked entry.
    """
    if hasattr(array, "toarray"):
        raise TypeError(f"{argument} is sparse; pass {argument}.toarray()")
    units.refuse(array, argument)
    plain = _as_numbers(array, argument)
    if axes:
        require_shape(plain, argument, *axes)
    single = plain.dtype.kind == "f" and plain.dtype.itemsize == 4
    with np.errstate(over="ignore"):  # a long double can become inf, which the core then reports
        return np.require(plain, np.float32 if single else np.float64, ["C", "ALIGNED"])


def as_rows(array: Any, argument: str, *axes: str | int) -> Rows:
    """Read an array-like as `as_float_array` does, a sparse one as a csr_array of real numbers.

    A CSR array or matrix of float32 or float64 whose columns ascend without repetition is used in
    place, with indices of 32 or 64 bits. Others are converted once: other formats; columns that do
    not ascend; entries of the same place, which are added.
    """
    if not sparse.issparse(array):
        return as_float_array(array, argument, *axes)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{argument} has dtype {array.dtype}; real numbers are needed")
    if array.ndim == 2:
        rows = sparse.csr_array(array)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        single = rows.dtype.kind == "f" and rows.dtype.itemsize == 4
        with np.errstate(over="ignore"):
            kept = np.require(rows.data, np.float32 if single else np.float64, ["C", "ALIGNED"])
        array = frozen_csr(rows, kept)
    require_shape(array, argument, *(axes or ("rows", "columns")))
    return array


def frozen_csr(rows: Any, data: FloatArray) -> sparse.csr_array:
    """Return a csr_array of read-only views of the indices of another and of data, canonical."""
    other = sparse.csr_array(rows)
    for name, part in (("data", data), ("indices", rows.indices), ("indptr", rows.indptr)):
        wide = part.dtype.kind == "i" and part.dtype.itemsize > 4
        dtype = part.dtype if name == "data" else np.int64 if wide else np.int32
        view = np.require(part, dtype, ["C", "ALIGNED"]).view()
        view.flags.writeable = False
        setattr(other, name, view)
    other.has_canonical_format = True
    return other


def _as_numbers(array: Any, argument: str) -> NDArray[Any]:
    refuse_containers_of_errors(array, argument)
    if (columns := columns_of(array)) is not None:
        each = [as_float_array(c, f"{argument}[{name!r}]", "rows") for name, c in columns.items()]
        return np.stack(each, axis=1) if each else np.empty((len(array), 0))
    refuse_masked(array, argument)
    if hasattr(array, "to_numpy"):
        array = array.to_numpy()
    try:
        plain = np.asarray(array)
    except ValueError as error:
        raise ValueError(f"{argument} is not an array of numbers: {error}") from error
    if plain.dtype == object and plain.ndim:
        return _objects_as_numbers(plain, argument)
    if plain.dtype.kind not in "biuf":
        raise TypeError(f"{argument} has dtype {plain.dtype}; real numbers are needed")
    return plain


def _objects_as_numbers(objects: NDArray[Any], argument: str) -> NDArray[np.float64]:
    """Convert each object as `float` does; pandas.NA becomes NaN, as it does in pandas."""
    numbers = np.empty(objects.shape)
    for index, value in np.ndenumerate(objects):
        if units.unit_of(value) is not None:
            raise TypeError(f"{argument}: {place(index)} is {value!r}; make one array of one unit")
        if isinstance(value, str | bytes):
            raise TypeError(f"{argument}: {place(index)} is {value!r}, which is text, no number")
        try:
            numbers[index] = np.nan if type(value).__name__ == "NAType" else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            at = place(index)
            raise type(error)(
                f"{argument}: {at} is {value!r}, which is no number: {error}"
            ) from None
    return numbers


def needs_own_reading(X: Any) -> bool:
    """Tell whether scikit-learn's checks would lose or not understand something of this argument.

    That is a mask or a unit, a table with named columns, and what is not stored as numbers.
    """
    if hasattr(X, "toarray"):
        return False
    if _is_masked_type(X) or units.holds_quantity(X) or columns_of(X) is not None:
        return True
    if holds_errors_and_masks(X):
        return True
    if hasattr(X, "to_numpy"):
        dtypes = np.atleast_1d(np.array(getattr(X, "dtypes", None), dtype=object))
        return any(d is not None and not _is_numeric_dtype(d) for d in dtypes)
    if isinstance(X, list | tuple):
        return any(
            _is_masked_type(part)
            or units.unit_of(part) is not None
            or isinstance(part, str | bytes)
            for part in _parts(X)
        )
    return getattr(getattr(X, "dtype", None), "kind", "f") in "OmMSU" and X.ndim > 0


def _is_numeric_dtype(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric())
    return isinstance(dtype, np.dtype) and dtype.kind in "biufc"


# ---- masks -----------------------------------------------------------------------------------


def refuse_masked(array: Any, argument: str) -> None:
    """Raise ValueError that names the first masked entry of an array, or of a list of arrays."""
    if _is_masked_type(array):
        refuse_where(np.atleast_1d(_mask_of(array)), argument, _MASKED)
    elif isinstance(array, list | tuple) and any(map(_is_masked_type, _parts(array))):
        refuse_where(np.array(_mask_of(array)), argument, _MASKED)


def _is_masked_type(array: Any) -> bool:
    """Tell whether this is NumPy's masked array or one of astropy's."""
    return isinstance(array, np.ma.MaskedArray) or (
        hasattr(array, "unmasked") and hasattr(array, "mask")
    )


def _mask_of(array: Any) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.getmaskarray(array)
    if _is_masked_type(array):
        return np.broadcast_to(array.mask, array.shape)
    if isinstance(array, list | tuple):
        return [_mask_of(part) for part in array]
    return np.zeros(np.shape(array), bool)


def unmasked(array: Any) -> Any:
    """Return a masked array as a plain one with NaN where it is masked, anything else as it is."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    values: Any = array.astype(np.float64) if array.dtype.kind in "biu" else array
    return values.filled(np.nan)


def _parts(array: Any) -> Any:
    """Yield what nested lists hold."""
    for part in array:
        if isinstance(part, list | tuple):
            yield from _parts(part)
        elif not isinstance(part, int | float):
            yield part


def holds_errors_and_masks(values: Any) -> bool:
    """Tell whether these are astropy NDData, which carry errors, a mask and a unit."""
    return hasattr(values, "uncertainty") and hasattr(values, "data") and hasattr(values, "mask")


def refuse_containers_of_errors(array: Any, argument: str) -> None:
    """Raise TypeError for astropy NDData, of which an array of numbers would lose most."""
    if holds_errors_and_masks(array):
        raise TypeError(
            f"{argument} is {type(array).__name__}, which holds errors and a mask beside the "
            "numbers; halosvm.uncertainty.standard_errors reads it"
        )


def refuse_lost(values: Any, argument: str) -> None:
    """Raise for labels with a mask, a unit or missing entries, which NumPy would pass over."""
    units.refuse(values, argument)
    refuse_masked(values, argument)
    if hasattr(values, "dtype") or hasattr(values, "to_numpy") or isinstance(values, list | tuple):
        try:
            plain = np.asarray(values)
        except ValueError:  # ragged lists, which scikit-learn explains
            return
        if plain.ndim == 1:
            refuse_missing(plain, argument)


def require_finite(array: Rows, argument: str) -> None:
    """Raise ValueError that names the first entry that is not finite, unless told to assume it."""
    if sparse.issparse(array):
        require_in_range(array, argument)
        return
    try:
        assert_all_finite(array, input_name=argument)
    except ValueError as error:
        reason = str(error).split("\n")[0].rstrip(".")
        refuse_where(~np.isfinite(array), reason, "it must be finite", array)


def require_in_range(values: Rows, argument: str) -> None:
    """Raise ValueError unless all values are finite and small enough to be squared.

    The core finds the first that is not, and has the words for it, in tables of rows and columns.
    """
    if values.ndim != 2:
        rule = f"it must be finite and at most {LARGEST:g} in size"
        refuse_where(beyond_limits(values), argument, rule, values)
    elif values.size or (sparse.issparse(values) and values.shape[0]):
        _core.Gaussians(values, _core.Covariances.zero(*values.shape)).check(argument)


def refuse_missing(values: NDArray[Any], argument: str) -> None:
    """Raise ValueError that names the first entry of a 1-d array that is None, NaN, NaT or NA."""
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
    elif values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, values), bool, len(values))
    else:
        return
    refuse_where(missing, argument, "missing")


def is_missing(name: Any) -> bool:
    """Tell whether this is None, NaN, NaT or pandas.NA."""
    try:
        return name is None or bool(name != name)
    except TypeError:  # pandas.NA does not tell
        return True


# ---- shapes, counts and places ---------------------------------------------------------------


def as_count(value: Any, argument: str, smallest: int) -> int:
    """Read an integer argument that must not be below `smallest`."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} must be an integer, got {value!r}") from None
    if count < smallest:
        raise ValueError(f"{argument} must be at least {smallest}, got {count}")
    return count


def require_shape(array: NDArray[Any], argument: str, *axes: str | int) -> None:
    """Raise ValueError unless the array has these axes: a number is a size, a word names any size.

    Equal words stand for equal sizes, and ``n_features`` for at least 1.
    """
    sizes: dict[str, int] = {}
    if array.ndim != len(axes) or any(
        size != (axis if isinstance(axis, int) else sizes.setdefault(axis, size))
        for axis, size in zip(axes, array.shape, strict=True)
    ):
        expected = ", ".join(map(str, axes)) + ("," if len(axes) == 1 else "")
        raise ValueError(f"{argument} has shape {array.shape}, expected ({expected})")
    if sizes.get("n_features") == 0:
        raise ValueError(f"{argument} has shape {array.shape}; it needs at least one feature")


def refuse_where(
    bad: NDArray[np.bool_], argument: str, verdict: str, values: FloatArray | None = None
) -> None:
    """Raise ValueError that names the place, and the value, of the first entry marked bad."""
    if not bad.any():
        return
    index = np.unravel_index(int(np.argmax(bad)), bad.shape)
    value = "" if values is None else f"{values[index]:g}; "
    raise ValueError(f"{argument}: {place(index)} is {value}{verdict}")


def place(index: Any) -> str:
    """Name row and column, or the row and the two indices of its matrix."""
    if len(index) == 3:
        return f"row {index[0]}, entry ({index[1]}, {index[2]})"
    return ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), index, strict=False))


def beyond_limits(values: FloatArray) -> NDArray[np.bool_]:
    """Mark what is NaN, infinite or above 1e150 in size, which float32 cannot be compared with."""
    limit = min(LARGEST, float(np.finfo(values.dtype).max))
    return np.asarray(~(np.abs(values) <= limit))
