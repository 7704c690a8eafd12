"""Files of matrices: svmlight text and .npz archives in; means, covariances and targets out.

No size that such a file claims is believed before its data are there.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halosvm.files.tables.room import Room
from halosvm.files.tables.trouble import TableError, listing
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class Matrices(NamedTuple):
    """What a file of matrices holds.

    Attributes
    ----------
    names : tuple of str
    means : ndarray or sparse array of shape (n_samples, n_features)
    covariances : Covariances or None
        None where nothing is uncertain.
    targets : list of str
        Labels or values as text; empty for none.
    rows : sequence of int or str
        Where each row stands.
    notes : tuple of str
    """

    names: tuple[str, ...]
    means: Any
    covariances: Covariances | None
    targets: list[str]
    rows: Sequence[int | str]
    notes: tuple[str, ...] = ()


_NAME = 64.0  # bytes of the name of a feature


def read_svmlight(path: str, data: bytes, features: Sequence[str] | None, room: Room) -> Matrices:
    """Read svmlight text, whose features are called 1, 2, ..., or 0, 1, ... where an index is 0.

    `features`, where given, are those of a model: a file that lacks the last of them is completed,
    and counts as the model does.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(data), zero_based=True)
    except Exception as error:
        raise TableError(
            f"{path} is not svmlight text, lines of a label and index:value with indices that "
            f"rise from 0 or 1: {' '.join(str(error).split())}"
        ) from error
    if not X.shape[0]:
        raise TableError(f"{path} is empty: a line for each example is needed")
    from_zero = bool((X.indices == 0).any())
    first = 0 if from_zero or list(features or ())[:1] == ["0"] else 1
    X = X[:, first:]
    notes = ("its features are counted from 0",) if from_zero and features is None else ()
    largest, used = X.shape[1], len(np.unique(X.indices))
    if largest > 1000 * used + 1_000_000:
        raise TableError(
            f"{path}: the largest index is {largest}, and {used} indices are in use; renumber them"
        )
    room.require(path, _NAME * largest, f"the names of {largest} features")
    _require_finite(path, X.data)
    rows = range(1, X.shape[0] + 1)
    wanted = largest if features is None else len(features)
    names = tuple(str(k + first) for k in range(wanted))
    if features is not None and tuple(features) != names:
        raise TableError(
            f"{path} has features {first}, {first + 1}, ..., the model was trained on "
            f"{listing(features, 4)}"
        )
    if largest > wanted:
        raise TableError(f"{path} has {largest} features, the model {wanted}")
    X.resize(X.shape[0], wanted)
    targets = [_plain(v) for v in y.tolist()]
    if (np.abs(y) >= 2**53).any():
        targets = [t.removeprefix("+") for t in _first_cells(data)]  # which floats would round
    return Matrices(names, X.tocsr(), None, targets, rows, notes)


def _first_cells(data: bytes) -> list[str]:
    """Return the targets as they stand in svmlight text."""
    parts = [line.split(b"#", 1)[0].split() for line in io.BytesIO(data)]
    return [cells[0].decode("ascii") for cells in parts if cells]


_ERRORS = ("X_std", "X_var", "X_cov")
_KNOWN = ("X", "y", *_ERRORS, "feature_names")


def read_npz(path: str, data: bytes, room: Room) -> Matrices:
    """Read X, y, one of X_std, X_var and X_cov, and feature_names from a .npz archive."""
    arrays, rest = _arrays(path, data, room)
    notes = [f"arrays {listing(rest)} left out"] if rest else []
    if "X" not in arrays:
        there = sorted([*arrays, *rest])
        raise TableError(f"{path} has no array 'X'; its arrays are {listing(there)}")
    X = arrays["X"]
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.shape[0] or not X.shape[1]:
        raise TableError(
            f"{path}: X has shape {X.shape} and dtype {X.dtype}; one row of numbers for each "
            "example is needed"
        )
    n, d = X.shape
    _require_finite(path, X)
    given = [name for name in _ERRORS if name in arrays]
    if len(given) > 1:
        raise TableError(f"{path} has {' and '.join(given)}; errors are given once")
    y = arrays.get("y")
    if y is not None and y.shape != (n,):
        raise TableError(f"{path}: y has shape {y.shape}, X has {n} rows")
    names = arrays.get("feature_names")
    if names is not None and names.shape != (d,):
        raise TableError(f"{path}: feature_names has shape {names.shape}, X has {d} columns")
    called = range(1, d + 1) if names is None else names.tolist()
    return Matrices(
        tuple(str(name) for name in called),
        np.ascontiguousarray(X, dtype=np.float64),
        _covariances(path, given[0], arrays[given[0]], n, d) if given else None,
        [] if y is None else [str(value) for value in y.tolist()],
        range(1, n + 1),
        tuple(notes),
    )


def _covariances(path: str, name: str, values: npt.NDArray[Any], n: int, d: int) -> Covariances:
    shapes = {"X_std": ((n,), (n, d)), "X_var": ((n,), (n, d)), "X_cov": ((n, d, d),)}[name]
    if values.shape not in shapes or values.dtype.kind not in "biuf":
        expected = " or ".join(map(str, shapes))
        raise TableError(
            f"{path}: {name} has shape {values.shape} and dtype {values.dtype}, {expected} is "
            "expected"
        )
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    try:
        if numbers.ndim == 3:
            return Covariances.full(numbers, argument=name)
        make = Covariances.from_std if name == "X_std" else Covariances.from_variance
        return make(numbers, d if numbers.ndim == 1 else None, argument=name)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def _arrays(path: str, data: bytes, room: Room) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """Return the arrays that have a meaning, and the names of the others, which are not read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {
                name.removesuffix(".npy"): name
                for name in archive.namelist()
                if name.endswith(".npy")
            }
            asked = {name: members[name] for name in _KNOWN if name in members}
            size = sum(archive.getinfo(member).file_size for member in asked.values())
            room.require(path, size, "its arrays")
            arrays = {
                name: _array(path, member, archive.read(member)) for name, member in asked.items()
            }
            # bytes and truth values become numbers of eight bytes
            numbers = sum(array.size for array in arrays.values() if array.dtype.kind in "biuf")
            room.require(path, 8.0 * numbers, f"its {numbers} numbers")
            return arrays, sorted(members.keys() - asked.keys())
    except TableError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TableError(f"{path} is not a readable .npz archive: {reason}") from error


def _array(path: str, name: str, data: bytes) -> npt.NDArray[Any]:
    """Return an array of the bytes that are there; NumPy would first set apart what it claims."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise TableError(f"{path}: {name} is of version {version} of the format, not (1, 0)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of archives that Python 2 wrote, which read as others do
        shape, fortran, dtype = readers[version](stream)
    if dtype.hasobject:
        raise TableError(f"{path}: {name} holds Python objects; numbers or text are needed")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise TableError(f"{path}: {name} does not hold as many numbers as it says")
    flat = np.frombuffer(data, dtype=dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _require_finite(path: str, values: npt.NDArray[np.float64]) -> None:
    if not np.isfinite(values).all():
        value = values[~np.isfinite(values)][0]
        raise TableError(f"{path} holds {value}; all values must be finite")


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
