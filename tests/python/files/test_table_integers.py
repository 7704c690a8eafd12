"""Integers of columns: of any size, with missing ones among them, none goes through a float."""

import astropy.units as u
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from astropy.table import MaskedColumn, Table
from cases import each, in_pairs
from pyarrow import feather, parquet

from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import OWN, read_table
from halosvm.files.tables.typed import WITH_COLUMNS
from halosvm.files.tables.writing import write_columns, write_table

SUFFIXES = {kind: f".{kind}" for kind in WITH_COLUMNS}
TYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
IDS = [2**62 + 3 * i + 1 for i in range(5)]
LABELS = [10**17, 10**17 + 1, 10**17, 2**53 + 1, 2**53]


def extremes(dtype):
    """Both ends of a type, 0, and what masked arrays of NumPy hold under their mask."""
    if dtype == "bool":
        return np.array([True, False, True, False])
    ends = np.iinfo(dtype)
    return np.array([ends.min, min(999_999, ends.max - 1), 0, ends.max], dtype)


@in_pairs
@each("kind", WITH_COLUMNS)
@each("dtype", TYPES)
@each("mask", [None, [False, False, True, False]])
def test_columns_of_integers_are_written_and_read_as_they_are(tmp_path, kind, dtype, mask):
    values = extremes(dtype)
    column = values if mask is None else np.ma.array(values, mask=mask)
    path = tmp_path / f"t{SUFFIXES[kind]}"
    write_columns({"x": np.arange(4.0), "id": column}, path, kind)
    read = read_table(path, keep=["id"]).kept["id"]
    as_text = ["" if value is None else str(value) for value in column.tolist()]
    assert ["" if value is None else str(value) for value in read.tolist()] == as_text
    if kind in ("parquet", "feather"):
        assert np.ma.getdata(read).dtype == dtype


def masked(values, dtype):
    missing = [value is None for value in values]
    return MaskedColumn(np.array([v or 0 for v in values], dtype), mask=missing)


def write_ids(path, kind, dtype, ids, labels):
    """Write a table by the package of its format, or by Python, with None for missing cells."""
    x = np.arange(float(len(ids)))
    if kind == "csv":
        rows = [f"{i},{a},{b}" for i, a, b in zip(ids, x, labels, strict=True)]
        path.write_text("\n".join(["id,x,class", *rows]).replace("None", ""))
    elif kind in ("parquet", "feather"):
        arrays = {"id": pa.array(ids, dtype), "x": x, "class": pa.array(labels, dtype)}
        table = pa.table(arrays)
        (parquet.write_table if kind == "parquet" else feather.write_feather)(table, path)
    else:
        columns = {"id": masked(ids, dtype), "x": x, "class": masked(labels, dtype)}
        formats = {"ecsv": "ascii.ecsv"}
        Table(columns).write(path, format=formats.get(kind, kind))


@pytest.mark.parametrize("kind", WITH_COLUMNS)
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_a_missing_integer_leaves_the_others_as_they_are(tmp_path, kind, dtype):
    if (kind, dtype) == ("votable", "uint64"):
        pytest.skip("VOTable has no such type")
    path = tmp_path / f"t{SUFFIXES[kind]}"
    ids, labels = [*IDS[:2], None, *IDS[3:]], [*LABELS[:4], None]
    write_ids(path, kind, dtype, ids, labels)
    table = read_table(path, label="class", keep=["id"], reading=Reading(missing="drop"))
    assert table.labels == [str(label) for label in labels[:4]]
    assert [str(value) for value in table.kept["id"].tolist() if value] == [
        str(value) for value in ids[:4] if value is not None
    ]


def test_dictionaries_of_integers_keep_them(tmp_path):
    path = tmp_path / "t.parquet"
    labels = pa.array([*LABELS[:4], None]).dictionary_encode()
    parquet.write_table(pa.table({"x": np.arange(5.0), "class": labels}), path)
    table = read_table(path, label="class", reading=Reading(missing="drop"))
    assert table.labels == [str(label) for label in LABELS[:4]]
    empty = pa.array([None] * 5, pa.int64()).dictionary_encode()
    parquet.write_table(pa.table({"x": np.arange(5.0), "class": empty}), path)
    assert not any(read_table(path, keep=["class"]).kept["class"].tolist())


def test_flags_with_a_missing_one_are_flags(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"flag": pd.array([True, None, False], "boolean"), "x": [1.0, 2.0, 3.0]})
    frame.to_parquet(path)
    table = read_table(path, label="flag", reading=Reading(missing="drop"))
    assert table.labels == ["True", "False"]
    assert read_table(path, reading=Reading(missing="drop")).mean.tolist() == [[1, 1], [0, 3]]


def test_labels_of_svmlight_are_not_floats(tmp_path):
    path = tmp_path / "t.svmlight"
    path.write_text("".join(f"{label:+d} 1:{k}.5 # row\n\n" for k, label in enumerate(LABELS)))
    assert read_table(path, label=OWN).labels == [str(label) for label in LABELS]


@pytest.mark.parametrize("kind", [*WITH_COLUMNS, "npz", "svmlight"])
def test_labels_are_converted_to_every_format_as_they_are(tmp_path, kind):
    source, path = tmp_path / "t.parquet", tmp_path / f"out.{kind}"
    write_ids(source, "parquet", "int64", IDS, LABELS)
    table = read_table(source, label="class", drop=["id"])
    write_table(table, path, kind, "class")
    label = "class" if kind in WITH_COLUMNS else OWN
    assert read_table(path, label=label).labels == [str(value) for value in LABELS]


def test_numbers_of_fits_are_in_the_order_of_this_machine(tmp_path):
    source, path = tmp_path / "t.fits", tmp_path / "out.parquet"
    write_ids(source, "fits", "int64", IDS, LABELS)
    kept = read_table(source, label="class", keep=["id"]).kept
    write_columns(kept, path, "parquet")
    assert parquet.read_table(path)["id"].to_pylist() == IDS


@pytest.mark.parametrize("kind", ["fits", "ecsv", "votable"])
def test_columns_that_are_kept_keep_their_units(tmp_path, kind):
    source, path = tmp_path / f"t.{kind}", tmp_path / f"out.{kind}"
    given = Table({"x": [1.0, 2.0], "ra": [10.0, 20.0] * u.deg})
    formats = {"ecsv": "ascii.ecsv"}
    given.write(source, format=formats.get(kind, kind))
    write_columns(read_table(source, keep=["ra"]).kept, path, kind)
    again = Table.read(path, format=formats.get(kind, kind))
    assert again.colnames == ["ra"]
    assert again["ra"].unit == u.deg
