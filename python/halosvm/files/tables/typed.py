"""Tables whose columns have types: Parquet, Feather, FITS, ECSV and VOTable in; columns out.

pyarrow reads the first two, astropy the others, with units and masks.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.files.tables.claims import check_ecsv, check_fits, check_votable, read_arrow
from halosvm.files.tables.limits import LimitColumns
from halosvm.files.tables.opening import require_package
from halosvm.files.tables.room import Room
from halosvm.files.tables.trouble import TableError, remedy_for_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

BY_PYARROW = ("parquet", "feather")
BY_ASTROPY = ("fits", "ecsv", "votable")
PACKAGES = dict.fromkeys(BY_PYARROW, "pyarrow") | dict.fromkeys(BY_ASTROPY, "astropy")
WITH_COLUMNS = ("csv", *BY_PYARROW, *BY_ASTROPY)
_NAMES = {
    "parquet": "Parquet",
    "feather": "Feather",
    "fits": "FITS",
    "ecsv": "ECSV",
    "votable": "VOTable",
}


class TypedColumns:
    """The columns of a table with types.

    Attributes
    ----------
    path : str
        What the file is called in messages.
    names : list of str
    lines : ndarray of shape (n_rows,)
        The rows, counted from 1.
    notes : list of str
        What the reader of the format says.
    target : str or None
        The column of the values of a regression.
    with_units : bool
        Whether columns have the units of the file, or none.
    """

    unit_of_rows = "row"
    target: str | None = None
    with_units: bool = True

    def __init__(self, path: str, data: bytes, form: str, room: Room) -> None:
        self.path = path
        self.notes: list[str] = []
        load = _load_arrow if form in BY_PYARROW else _load_astropy
        require_package(PACKAGES[form], f"{_NAMES[form]} ({path})")
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self._columns, n_rows = load(path, data, form, room)
        except TableError:
            raise
        # what a damaged file makes of the readers is of all kinds
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise TableError(f"{path} is not a readable {_NAMES[form]} table: {reason}") from error
        unknown = {str(unit) for _, _, unit in self._columns.values() if _is_unknown(unit)}
        told = [" ".join(str(each.message).split()) for each in said]
        of_units = [text for text in told if "did not parse as" in text]
        self.notes += [text for text in told if text not in of_units][:3]
        if unknown:
            self.notes.append(f"units that astropy does not know: {', '.join(sorted(unknown))}")
        self.names = list(self._columns)
        self.lines = np.arange(1, n_rows + 1)
        if not n_rows or not self.names:
            raise TableError(f"{path} has a header and no rows")
        self.limits = LimitColumns(n_rows)

    def unit(self, name: str) -> Any:
        """Return the unit of a column, None for none."""
        return self._columns[name][2] if self.with_units else None

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return columns of numbers side by side, NaN for cells that are missing."""
        block = np.empty((len(self.lines), len(names)))
        for j, name in enumerate(names):
            values, missing, _ = self._columns[name]
            if values.ndim != 1 or values.dtype.kind not in "biuf":
                holds = "text or other things" if values.ndim == 1 else "more numbers in each row"
                raise TableError(
                    f"{self.path}: column {name!r} holds {holds}, not one number in each row"
                    + remedy_for_text(name, self.target)
                )
            block[:, j] = values
            block[missing, j] = np.nan
        return block

    def cells(self, name: str) -> list[str]:
        """Return the entries of a column as text, empty where they are missing."""
        values, missing, _ = self._columns[name]
        if values.ndim != 1:
            raise TableError(f"{self.path}: column {name!r} holds more than one entry in each row")
        return [
            "" if absent else _text(value)
            for value, absent in zip(values.tolist(), missing, strict=True)
        ]

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column as it stands in the file, masked where some of it is missing."""
        values, missing, _ = self._columns[name]
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            return np.array(self.cells(name), dtype=object)
        return np.ma.array(values, mask=missing) if missing.any() else values


_Columns = dict[str, tuple["npt.NDArray[Any]", "npt.NDArray[np.bool_]", Any]]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="backslashreplace")
    return str(value).strip()


def _nullable() -> dict[Any, Any]:
    """Return the types that keep integers and flags beside missing ones, which become floats."""
    import pandas as pd
    import pyarrow as pa

    sizes = [f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)]
    known = {getattr(pa, size.lower())(): getattr(pd, f"{size}Dtype")() for size in sizes}
    return known | {pa.bool_(): pd.BooleanDtype()}


def _is_unknown(unit: Any) -> bool:
    return type(unit).__name__ == "UnrecognizedUnit"


def _load_arrow(path: str, data: bytes, form: str, room: Room) -> tuple[_Columns, int]:
    import pandas as pd

    table, nested = read_arrow(path, data, form, room)
    frame = table.to_pandas(types_mapper=_nullable().get)
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=named) if named else frame
    columns: _Columns = {}
    for name in frame.columns:
        series = frame[name]
        missing = series.isna().to_numpy(dtype=bool)
        if pd.api.types.is_numeric_dtype(series.dtype):
            own = getattr(series.dtype, "numpy_dtype", series.dtype)
            values = series.fillna(np.zeros((), own)[()]).to_numpy(dtype=own)
            if values.dtype.kind == "f":
                missing = missing | np.isnan(values)
        elif isinstance(series.dtype, pd.CategoricalDtype):
            entries = np.array([*series.cat.categories, ""], dtype=object)  # the last is missing
            values = entries[series.cat.codes.to_numpy()]
        else:
            values = series.to_numpy(dtype=object)
        columns[str(name)] = (values, missing, None)
    for name in nested:
        columns[name] = (np.empty((len(frame), 0)), np.zeros(len(frame), dtype=bool), None)
    return columns, len(frame)


def _load_astropy(path: str, data: bytes, form: str, room: Room) -> tuple[_Columns, int]:
    from astropy.table import Table  # type: ignore[import-untyped, unused-ignore]
    from astropy.units import Unit  # type: ignore[import-untyped, unused-ignore]

    formats = {"ecsv": "ascii.ecsv"}
    # of a stream of text astropy would read the bytes, of a text without a line break a file
    source = data.decode("utf-8").splitlines() if form == "ecsv" else io.BytesIO(data)
    if isinstance(source, list):
        check_ecsv(path, source, room)
    else:
        (check_fits if form == "fits" else check_votable)(path, data, room)
    options = {"use_names_over_ids": True} if form == "votable" else {}
    table = Table.read(source, format=formats.get(form, form), **options)
    columns: _Columns = {}
    for name in table.colnames:
        column = table[name]
        missing = np.zeros(len(table), dtype=bool)
        mask = getattr(column, "mask", None)
        plain = np.asarray(getattr(column, "value", column))
        plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)  # FITS has the other order
        if mask is not None and plain.ndim == 1:
            missing |= np.broadcast_to(mask, plain.shape)
        unit = getattr(column, "unit", None)
        if _is_unknown(unit):  # to the standard of the format; astropy knows more
            with contextlib.suppress(ValueError):
                unit = Unit(str(unit))
        columns[name] = (plain, missing, None if unit is None or str(unit) == "" else unit)
    return columns, len(table)
