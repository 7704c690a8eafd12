"""The bytes of a table and their format: a path, or - for standard input, in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from halosvm.files.tables.trouble import TableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from halosvm.files.tables.room import Room

FORMATS = {
    "csv": (".csv", ".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "feather": (".feather", ".arrow", ".ftr"),
    "fits": (".fits", ".fit", ".fts"),
    "ecsv": (".ecsv",),
    "votable": (".vot", ".votable", ".xml"),
    "svmlight": (".svmlight", ".svm", ".libsvm"),
    "npz": (".npz",),
    "svm-gsu": (),
}
COVARIANCE_KINDS = ("full", "diagonal", "isotropic")  # of the files of SVM-GSU
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_BY_SUFFIX = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}
_PAIRS = re.compile(rb"\S+(\s+\d+:\S+)+\s*(#.*)?")
_TARGETS = re.compile(rb"[-+0-9.eE,]+")


def shown(path: str | os.PathLike[str]) -> str:
    """Return what a file is called in messages."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: str | os.PathLike[str], room: Room) -> bytes:
    """Return what a file holds, decompressed by what its first bytes say, as far as room is."""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise TableError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    for magic, (name, opened) in _DECOMPRESSORS.items():
        if data.startswith(magic):
            try:
                return _unpacked(shown(path), opened(data), room)
            except TableError:
                raise
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise TableError(f"{shown(path)} is a damaged {name} file: {error}") from error
    return data


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a name, before that of a compression."""
    name = PurePath(path)
    if name.suffix.lower() in COMPRESSIONS:
        name = name.with_suffix("")
    return name.suffix.lower()


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format that the ending of a name stands for, None for none."""
    return _BY_SUFFIX.get(ending_of(path))


def format_by_content(data: bytes) -> str:
    """Return the format of text under a name that does not tell.

    Lines of ``index:value`` are svmlight where they begin with a number, else the means of SVM-GSU.
    """
    for line in data[: 1 << 20].splitlines():
        if line.strip() and not line.startswith(b"#"):
            if not _PAIRS.fullmatch(line):
                return "csv"
            return "svmlight" if _TARGETS.fullmatch(line.split()[0]) else "svm-gsu"
    return "csv"


_OTHERS = {
    b"\x89HDF": "an HDF5 file; write its table as Parquet, by pandas for instance",
    b"\x93NUMPY": "an array of NumPy without labels; numpy.savez(file, X=..., y=...) makes an .npz",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel; save its sheet as CSV",
    b"PAR1": "Parquet; give --format parquet",
    b"ARROW1": "Feather; give --format feather",
    b"SIMPLE  =": "FITS; give --format fits",
    b"{": "JSON; write its table as CSV or Parquet, by pandas for instance",
    b"[{": "JSON; write its table as CSV or Parquet, by pandas for instance",
    b"\x80\x04": "a pickle; write its table as Parquet, by pandas for instance",
}


def refuse_other_formats(name: str, data: bytes) -> None:
    """Raise TableError for what is no text of a table, with what to do about it."""
    found = next((told for begin, told in _OTHERS.items() if data.startswith(begin)), None)
    if data.startswith(b"PK\x03\x04"):
        found = "a zip archive; unpack it, and give the table inside"
        if b"xl/" in data or b"[Content_Types].xml" in data[:100]:
            found = "a workbook of Excel; save its sheet as CSV"
        elif b".npy" in data[:1000]:
            found = "an archive of NumPy; give --format npz"
    if found is not None:
        raise TableError(f"{name} is {found}")


def require_package(name: str, use: str) -> None:
    """Raise TableError unless a package can be imported, with the reason where it is there."""
    try:
        import_module(name)
    except ImportError as error:
        if find_spec(name) is None:
            raise TableError(f"{use} needs {name}: pip install 'halosvm[io]'") from error
        raise TableError(f"{use} needs {name}, which cannot be imported: {error}") from error


def _unpacked(path: str, stream: Any, room: Room) -> bytes:
    """Return what a compressed stream holds; none says how much that is before it is read."""
    parts: list[bytes] = []
    size, most = 0, room.bytes()
    with stream:
        while part := stream.read(_PART):
            parts.append(part)
            size += len(part)
            if size > most:
                room.require(path, size, "what it holds in compressed form, up to here,")
    return b"".join(parts)


def _zstd(data: bytes) -> Any:
    require_package("pyarrow", "zstd compression")
    import pyarrow as pa

    return pa.input_stream(pa.BufferReader(data), compression="zstd")


_PART = 1 << 20
_DECOMPRESSORS: dict[bytes, tuple[str, Callable[[bytes], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda data: gzip.GzipFile(fileobj=io.BytesIO(data))),
    b"BZh": ("bzip2", lambda data: bz2.BZ2File(io.BytesIO(data))),
    b"\xfd7zXZ\x00": ("xz", lambda data: lzma.LZMAFile(io.BytesIO(data))),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
