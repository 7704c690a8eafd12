"""What tables with types claim: read, and held against their bytes and the room, before their data.

In:  bytes that may be anything, the memory for the table.
Out: nothing, or a `TableError`; of Parquet and Feather the table, whose arrays are checked.
"""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np

from halosvm.files.tables.trouble import TableError, counted

if TYPE_CHECKING:
    from halosvm.files.tables.room import Room

_VIEWS = ("string_view", "binary_view")
_CELL = 9  # bytes of a number, and whether it is missing


def _require_cells(path: str, n_rows: int, n_cells: float, room: Room, more: float = 0.0) -> None:
    """Raise TableError for rows of so many cells, and `more` bytes, that the room cannot hold."""
    what = f"{counted(n_rows, 'row')} of {n_cells:.0f} cells"
    room.require(path, _CELL * n_rows * n_cells + more, what)


# ---- Parquet and Feather -------------------------------------------------------------------------
def read_arrow(path: str, data: bytes, form: str, room: Room) -> tuple[Any, list[str]]:
    """Return a sound table of pyarrow, small enough to be made columns of, and what it lacks.

    Columns of lists and of other things with parts are not in it, but told by their names.
    """
    table, nested = (
        _read_parquet(path, data, room) if form == "parquet" else _read_feather(path, data)
    )
    # the reader checks no offsets, and what follows them ends the process
    table.validate(full=True)
    table = table.drop_columns([name for name in nested if name in table.column_names])
    # views of texts may all show the same bytes
    texts = sum(
        _shown_bytes(chunk)
        for column in table.columns
        if str(column.type) in _VIEWS
        for chunk in column.chunks
    )
    _require_cells(path, table.num_rows, table.num_columns + len(nested), room, texts)
    return table, nested


def _read_parquet(path: str, data: bytes, room: Room) -> tuple[Any, list[str]]:
    from pyarrow import parquet

    with parquet.ParquetFile(io.BytesIO(data)) as file:
        claims, schema, names = file.metadata, file.schema, file.schema_arrow.names
        # lists may repeat a number for ever within one row
        nested = _with_parts(file.schema_arrow)
        flat = [name for name in names if name not in nested]
        columns = [schema.column(j) for j in range(len(schema))]
        # a text that is stored once may stand in each row: in a dictionary it stays one
        texts = [
            column.path
            for column in columns
            if column.physical_type == "BYTE_ARRAY" and column.path in flat
        ]
        # what is said of single columns is not asked: where it is damaged, that ends the process
        groups = [claims.row_group(i) for i in range(claims.num_row_groups)]
        n_rows = sum(group.num_rows for group in groups)
        row = sum(max(column.length or 0, _CELL) for column in columns if column.path in flat)
        more = sum(group.total_byte_size for group in groups)
        _require_cells(path, n_rows, row / _CELL, room, more)
    with parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts) as file:
        table = file.read(columns=flat, use_threads=False)
    return table, nested


def _has_parts(kind: Any) -> bool:
    """Tell types whose entries are made of others, or may be, and of dictionaries odd ones."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
        return types.is_nested(kind) or str(kind) in _VIEWS
    return bool(types.is_nested(kind)) or str(kind).startswith("run_end_encoded")


def _with_parts(schema: Any) -> list[str]:
    return [n for n, kind in zip(schema.names, schema.types, strict=True) if _has_parts(kind)]


def _read_feather(path: str, data: bytes) -> tuple[Any, list[str]]:
    from pyarrow import feather

    if data.startswith(b"FEA1"):  # whose reader follows every offset
        raise TableError(
            f"{path} is Feather of version 1, which is not read; write it as version 2 or Parquet"
        )
    table = feather.read_table(io.BytesIO(data), memory_map=False, use_threads=False)
    return table, _with_parts(table.schema)


def _shown_bytes(views: Any) -> int:
    """Return the lengths of texts, summed up, that are kept as views of 16 bytes."""
    lengths = np.frombuffer(views.buffers()[1], dtype="<i4")[::4]
    return int(lengths[views.offset : views.offset + len(views)].sum(dtype=np.int64))


# ---- FITS ----------------------------------------------------------------------------------------
def check_fits(path: str, data: bytes, room: Room) -> None:
    """Raise TableError for tables that say more than there is, or would take too much."""
    from astropy.io import fits  # type: ignore[import-untyped, unused-ignore]

    with fits.open(io.BytesIO(data), memmap=False) as hdus:
        for hdu in hdus:
            if not isinstance(hdu, fits.BinTableHDU | fits.TableHDU):
                continue
            width, n_rows = int(hdu.header["NAXIS1"]), int(hdu.header["NAXIS2"])
            if min(width, n_rows) < 0 or width * n_rows > len(data):
                raise TableError(f"{path}: {n_rows} rows of {width} bytes are not in the file")
            _require_cells(path, n_rows, int(hdu.header["TFIELDS"]), room, 8 * len(data))
            if n_rows == 0 or not isinstance(hdu, fits.BinTableHDU):
                continue
            stored = np.asarray(hdu.data)
            for column in hdu.columns:
                # rows of arrays of any length tell it, and may all show the same bytes
                if re.match(r"\d*[PQ]", str(column.format)):
                    lengths = stored[column.name].reshape(n_rows, -1)[:, 0].astype(np.int64)
                    if (lengths < 0).any():
                        raise TableError(f"{path}: column {column.name!r} has a negative length")
                    room.require(path, 16.0 * lengths.sum(), f"column {column.name!r}")


# ---- ECSV ----------------------------------------------------------------------------------------
def check_ecsv(path: str, lines: list[str], room: Room) -> None:
    """Raise TableError for a header whose YAML multiplies itself, or columns that do."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    header = []
    for line in filter(None, map(str.strip, lines)):
        if not line.startswith("#"):
            break
        header.append(line.removeprefix("#").removeprefix(" "))
    node = yaml.compose("\n".join(header[1:]), Loader=yaml.SafeLoader)
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or not isinstance(each, yaml.CollectionNode):
            continue
        seen.add(id(each))
        if not isinstance(each, yaml.MappingNode):
            waiting += each.value
            continue
        waiting += [part for pair in each.value for part in pair]
        for key, value in each.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise TableError(f"{path}: its header has a merge key, <<, which no table needs")
            if key.value in ("datatype", "subtype") and isinstance(value.value, str):
                kind, _, shape = value.value.partition("[")
                n_cells = math.prod(_whole(digits) for digits in re.findall(r"\d+", shape))
                _require_cells(path, len(lines), n_cells * _size_of(kind) / 8, room)


def _size_of(kind: str) -> int:
    try:
        return np.dtype(kind).itemsize
    except (TypeError, ValueError):  # string, json, or none
        return 8


# ---- VOTable -------------------------------------------------------------------------------------
class _Claims:
    """What the elements of a VOTable say of sizes and of other files."""

    def __init__(self, path: str, room: Room) -> None:
        self.path, self.room = path, room
        self.n_rows, self.n_cells = 0, 0.0

    def doctype(self, _name: str, _system: Any, _public: Any, own: int) -> None:
        """Refuse entities and default attributes; a mere name, as of old files, is not followed."""
        if own:
            raise TableError(f"{self.path} declares entities or attributes, which no table needs")

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the claims of an element."""
        tag = tag.rpartition(":")[2].upper()
        given = {key.rpartition(":")[2].lower(): value for key, value in attributes.items()}
        if tag == "STREAM" and "href" in given:
            raise TableError(
                f"{self.path}: its rows are in another place, {given['href'][:200]!r}, which is "
                "not opened; write a file that holds its rows"
            )
        if tag == "TABLE":
            self.n_rows, self.n_cells = _whole(given.get("nrows", "0")), 0.0
            self.counted_rows = 0
        if tag == "TR":
            self.counted_rows += 1
        if tag in ("FIELD", "PARAM"):
            cells = self._cells(given)
            self.n_cells += cells
            _require_cells(self.path, 1, cells, self.room)

    def end(self, tag: str) -> None:
        """Hold the claims of a table against the room."""
        if tag.rpartition(":")[2].upper() == "TABLE":
            n_rows = max(self.n_rows, self.counted_rows)
            _require_cells(self.path, n_rows, self.n_cells, self.room)

    counted_rows = 0

    def _cells(self, field: dict[str, str]) -> float:
        size = field.get("arraysize", "1")
        of_text = field.get("datatype", "").lower() in ("char", "unicodechar")
        if not of_text and size.endswith("*"):  # of any length, which the rows tell
            size = size.rpartition("x")[0]
        numbers = [_whole(digits) for digits in re.findall(r"\d+", size)]
        if 0 in numbers:
            raise TableError(f"{self.path}: a field has the arraysize {size[:40]!r}")
        return float(math.prod(numbers)) * (0.5 if of_text else 1.0)


def _whole(text: str) -> int:
    return int(text[:18]) if text.strip().isdigit() else 0


def check_votable(path: str, data: bytes, room: Room) -> None:
    """Raise TableError for what names other places, multiplies itself, or would take too much."""
    claims, parser = _Claims(path, room), expat.ParserCreate()
    parser.StartDoctypeDeclHandler = claims.doctype
    parser.StartElementHandler = claims.begin
    parser.EndElementHandler = claims.end
    parser.Parse(data, True)
