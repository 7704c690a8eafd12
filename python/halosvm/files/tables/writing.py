"""Tables, written: columns, or examples with their errors and labels, in; a file of any format out.

Numbers are written with as many digits as it takes to read them again as they were.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import warnings
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.error_names import of_measurements
from halosvm.files.atomic import require_writable, write_bytes
from halosvm.files.tables.cells import name_and_unit, with_unit
from halosvm.files.tables.documents import MEANS_ALONE, DocumentFiles, documents_text
from halosvm.files.tables.labels import parse_labels
from halosvm.files.tables.opening import FORMATS, ending_of, format_of, require_package
from halosvm.files.tables.trouble import TableError
from halosvm.files.tables.typed import PACKAGES, WITH_COLUMNS
from halosvm.gaussians.covariance_kinds import storage_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy.typing as npt

    from halosvm.files.tables.table import Table
    from halosvm.gaussians.covariances import Covariances


def output_format(path: str | os.PathLike[str], given: str | None, default: str | None) -> str:
    """Return the format to write, from an option or else from the ending of the name.

    The default is for standard output, and names without an ending or with one of any text.
    """
    found = given or format_of(path)
    if found is None and ending_of(path) in ("", ".txt", ".dat", ".out"):
        found = default
    if found is None:
        raise ValueError(
            f"the ending of {path} names no format; name one by --to: {', '.join(FORMATS)}"
        )
    return found


def require_table(path: str | os.PathLike[str], form: str) -> None:
    """Raise before the work unless a table of a format can be written under a name."""
    if form in PACKAGES:
        require_package(PACKAGES[form], f"writing {form}")
    if PurePath(path).suffix.lower() == ".zst":
        require_package("pyarrow", "zstd compression")
    require_writable(path)


def write_columns(
    columns: Mapping[str, npt.NDArray[Any]], path: str | os.PathLike[str], form: str
) -> None:
    """Write columns of numbers or text, with units that stand in brackets behind their names.

    Parameters
    ----------
    columns : mapping of str to ndarray
        What is missing of numbers is masked.
    path : path-like
        A file, or - for standard output; its ending says how to compress, and parts .tsv from .csv.
    form : str
        One of the formats with columns.
    """
    if form not in WITH_COLUMNS:
        raise ValueError(f"{form} has no columns with names; use one of {', '.join(WITH_COLUMNS)}")
    writers = {"csv": _as_csv, "parquet": _as_arrow, "feather": _as_arrow}
    if form in PACKAGES:
        require_package(PACKAGES[form], f"writing {form}")
    write_bytes(path, _compressed(writers.get(form, _as_astropy)(columns, path, form), path))


def write_table(
    table: Table,
    path: str | os.PathLike[str],
    form: str,
    label: str,
    documents: DocumentFiles = MEANS_ALONE,
) -> list[str]:
    """Write the examples of a table with their errors, and its labels or values.

    Parameters
    ----------
    table : Table
    path : path-like
    form : str
        Errors that a format has no place for are refused.
    label : str
        What the column of labels or values is to be called.
    documents : DocumentFiles
        The other files of svm-gsu.

    Returns
    -------
    list of str
        What is to be known for reading it again.
    """
    if table.limits is not None:
        raise TableError(
            f"{table.path}: {table.limits.first()}, which the formats to write have no place for"
        )
    if form in WITH_COLUMNS:
        write_columns(_columns(table, label), path, form)
        return []
    notes = []
    if table.target_unit is not None:
        notes.append(f"{form} has no place for the unit of the values, {table.target_unit}")
    if form == "npz":
        write_bytes(path, _compressed(_as_npz(table), path))
    elif form == "svmlight":
        write_bytes(path, _compressed(_as_svmlight(table), path))
    else:
        texts, more = documents_text(table, documents)
        for name, text in zip((path, *documents), texts, strict=True):
            if name is not None:
                write_bytes(name, _compressed(text.encode("utf-8"), name))
        notes += more
    return notes


def _columns(table: Table, label: str) -> dict[str, npt.NDArray[Any]]:
    mean = table.mean.toarray() if hasattr(table.mean, "toarray") else table.mean
    std = table.std
    if table.covariances is not None:
        if not storage_of(table.covariances).independent:
            raise TableError(
                f"{table.path} has covariances between features, which columns cannot hold; write "
                "npz"
            )
        std = _standard_deviations(table.covariances)
    columns: dict[str, npt.NDArray[Any]] = dict(table.kept)
    # Names tell measurements from distributions, here as in the table.
    word = "err" if of_measurements(table.errors) else "std"
    for j, name in enumerate(table.features):
        column, unit = name_and_unit(name, ())
        columns[name] = mean[:, j]
        if std is not None and (
            table.covariances is not None or {name, column} & set(table.errors)
        ):
            columns[f"{column}_{word}" + (f" [{unit}]" if unit else "")] = std[:, j]
    if table.values is not None:
        column, unit = name_and_unit(label, ())[0], table.target_unit
        columns[with_unit(column, unit)] = table.values
        if table.values_std is not None:
            columns[with_unit(f"{column}_{word}", unit)] = table.values_std
    elif table.labels:
        columns[label] = parse_labels(table.labels)
    return columns


def _as_csv(
    columns: Mapping[str, npt.NDArray[Any]], path: str | os.PathLike[str], _kind: str
) -> bytes:
    separator = "\t" if ending_of(path) in {".tsv", ".tab"} else ","
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    # what begins with # would be a comment to many readers
    quoting = csv.writer(
        text, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    for row in (tuple(columns), *rows):
        (quoting if str(row[0]).startswith("#") else writer).writerow(row)
    return text.getvalue().encode("utf-8")


def _as_arrow(
    columns: Mapping[str, npt.NDArray[Any]], _path: str | os.PathLike[str], form: str
) -> bytes:
    import pyarrow as pa
    from pyarrow import feather, parquet

    arrays = {
        name: pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
        for name, values in columns.items()
    }
    stream = io.BytesIO()
    (parquet.write_table if form == "parquet" else feather.write_feather)(pa.table(arrays), stream)
    return stream.getvalue()


def _as_astropy(
    columns: Mapping[str, npt.NDArray[Any]], _path: str | os.PathLike[str], form: str
) -> bytes:
    from astropy.table import Table as AstropyTable  # type: ignore[import-untyped, unused-ignore]

    table = AstropyTable()
    for name, values in columns.items():
        column, unit = name_and_unit(name, ())
        if column in table.colnames:
            raise TableError(
                f"two columns would be named {column!r}, which {form} parts from units"
            )
        table[column] = _as_held(values, form)
        table[column].unit = unit
        if form == "fits":
            _require_ascii(column, table[column], unit)
    if form == "ecsv":
        text = io.StringIO()
        table.write(text, format="ascii.ecsv")
        return text.getvalue().encode("utf-8")
    stream = io.BytesIO()
    options = {"tabledata_format": "binary2"} if form == "votable" else {}
    with warnings.catch_warnings():
        # names that are no identifiers get one beside them
        warnings.simplefilter("ignore")
        table.write(stream, format=form, **options)
    return stream.getvalue()


def _as_held(values: npt.NDArray[Any], form: str) -> npt.NDArray[Any]:
    """Return a column in a type that the format has, each entry as it is, if need be as text."""
    held, missing = values.dtype, np.ma.is_masked(values)
    if held == np.object_:
        return values.astype(np.str_)
    if form in ("fits", "votable") and held == np.int8:  # which FITS takes for flags
        return values.astype(np.int16)
    if form == "votable" and held in (np.uint16, np.uint32, np.uint64):
        fits = np.ma.compressed(values).max(initial=0) < 2**63
        return values.astype(np.int64) if fits else _as_text(values)
    if form == "fits" and held == np.bool_ and missing:
        return _as_text(values)
    if form == "fits" and np.issubdtype(held, np.integer) and missing:
        # the number that stands for missing ones must not be one of the others
        used, ends = set(np.ma.compressed(values).tolist()), np.iinfo(held)
        free = next((v for v in range(ends.min, ends.max + 1) if v not in used), None)
        if free is None:
            return _as_text(values)
        return np.ma.array(values, fill_value=free, copy=True)
    return values


def _as_text(values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    return np.ma.filled(values.astype(np.str_), "")


def _require_ascii(name: str, values: npt.NDArray[Any], unit: str | None) -> None:
    """Raise for text that FITS has no letters for."""
    texts = [
        name,
        unit or "",
        *(dict.fromkeys(values.tolist()) if values.dtype.kind == "U" else ()),
    ]
    strange = next((text for text in texts if not (text.isascii() and text.isprintable())), None)
    if strange is not None:
        raise TableError(
            f"column {name!r}: FITS holds printable ASCII text alone, not {strange!r}; write ecsv, "
            "votable or parquet"
        )


def _as_npz(table: Table) -> bytes:
    mean = table.mean.toarray() if hasattr(table.mean, "toarray") else table.mean
    arrays: dict[str, Any] = {"X": mean, "feature_names": np.array(table.features, dtype=np.str_)}
    if table.std is not None:
        arrays["X_std"] = table.std
    elif table.covariances is not None and storage_of(table.covariances).independent:
        squared = table.covariances.squared
        arrays["X_std" if squared else "X_var"] = (
            _standard_deviations(table.covariances) if squared else table.covariances.variances()
        )
    elif table.covariances is not None:
        arrays["X_cov"] = table.covariances.to_full()
    if table.values is not None:
        arrays["y"] = table.values
    elif table.labels:
        arrays["y"] = parse_labels(table.labels)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _as_svmlight(table: Table) -> bytes:
    if table.std is not None or table.covariances is not None:
        raise TableError(f"{table.path} has errors, which svmlight cannot hold; write npz or csv")
    targets = table.values if table.values is not None else _numeric_labels(table)
    lines = []
    for row, target in enumerate(targets):
        at = table.mean[[row]].toarray()[0] if hasattr(table.mean, "toarray") else table.mean[row]
        entries = (f"{j + 1}:{float(at[j])!r}" for j in np.flatnonzero(at))
        # scikit-learn's own writer gives 16 digits, which do not always read as they were
        lines.append(" ".join([str(target), *entries]))
    return ("\n".join(lines) + "\n").encode("ascii")


def _numeric_labels(table: Table) -> Any:
    labels = parse_labels(table.labels) if table.labels else np.zeros(len(table.lines), np.int64)
    if labels.dtype.kind in "iu":
        return labels.tolist()
    raise TableError(f"{table.path} has labels that are not integers, which svmlight cannot hold")


def _standard_deviations(covariances: Covariances) -> npt.NDArray[np.float64]:
    """Return them as they are stored where they are, for a square would round them."""
    values = covariances.values
    if covariances.squared and values is not None:
        return np.array(np.broadcast_to(values.reshape(len(values), -1), covariances.shape))
    return np.sqrt(covariances.variances())


def _compressed(content: bytes, path: str | os.PathLike[str]) -> bytes:
    suffix = PurePath(path).suffix.lower()
    if suffix == ".gz":
        return gzip.compress(content, mtime=0)
    if suffix == ".bz2":
        return bz2.compress(content)
    if suffix == ".xz":
        return lzma.compress(content)
    if suffix == ".zst":
        require_package("pyarrow", "zstd compression")
        import pyarrow as pa

        packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
        return packed
    return content
