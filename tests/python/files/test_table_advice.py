"""What is wrong with a table is told with the remedy that helps."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from astropy.io import fits

from halosvm import chunks
from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, **dialect):
    return read_table(path, label="kind", reading=Reading(dialect=Dialect(**dialect)))


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("1.2\u00b10.1", "a value with its error in one cell"),
        ("1.2 +/- 0.1", "a value with its error in one cell"),
        ("1.2(3)", "a value with its error in one cell"),
        ("\u22121.5", "its minus is another character than -"),
        ("1,234,567.5", "commas that part thousands have to go"),
        ("1,234", "thousands have to go; where one is the decimal point, give --decimal ,"),
        ("1 234.5", "what parts its thousands has to go"),
        ("1'234", "what parts its thousands has to go"),
        ("1,5", "give --decimal ,"),
        ("red", "leave the column out by --drop a"),
    ],
)
def test_cells_that_are_no_numbers_are_told_what_to_do(tmp_path, cell, remedy):
    path = write(tmp_path, f"a;kind\n1;x\n{cell};y\n")
    with pytest.raises(TableError, match=r"line 3, column 'a': .* is not a number") as caught:
        read(path)
    assert remedy in str(caught.value)
    assert ("--drop" in str(caught.value)) == (cell == "red")


def zipped(*names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    return stream.getvalue()


def bytes_of(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


FRAME = pd.DataFrame({"a": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("t.xlsx", zipped("[Content_Types].xml", "xl/workbook.xml"), "a workbook of Excel; save"),
        (
            "t.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            "a workbook of Excel",
        ),
        ("t.zip", zipped("t.csv"), "a zip archive; unpack it"),
        ("t.zip", bytes_of(lambda s: np.savez(s, X=np.ones((2, 2)))), "give --format npz"),
        ("t.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file; write its table as Parquet"),
        ("t.npy", bytes_of(lambda s: np.save(s, np.ones((2, 2)))), r"numpy\.savez\(file, X="),
        ("t.json", b'[{"a": 1}]', "JSON; write its table as CSV"),
        ("t.json", b'{"a": [1]}', "JSON; write its table as CSV"),
        ("t.csv", bytes_of(FRAME.to_parquet), "Parquet; give --format parquet"),
    ],
)
def test_files_that_are_no_text_are_called_what_they_are(tmp_path, name, content, remedy):
    with pytest.raises(TableError, match=remedy) as caught:
        read_table(write(tmp_path, content, name))
    assert "encoding" not in str(caught.value)


# ---- quotes --------------------------------------------------------------------------------

LETTERS = 'a\tsize\tkind\n1\t5\tx\n2\t6\t"y\n3\t7\tx\n4\t8\tz"\n5\t9\tx\n6\t1\tx\n'


def test_quotes_of_a_table_with_tabs_are_letters_where_lines_fit_without_them(tmp_path):
    path = write(tmp_path, LETTERS, "t.tsv")
    assert read(path).labels == ["x", '"y', "x", 'z"', "x", "x"]
    assert read(path).mean.tolist() == [[1, 5], [2, 6], [3, 7], [4, 8], [5, 9], [6, 1]]
    table = read(path, quote="double")
    assert len(table.labels) == 4
    assert any(
        "1 row with a line break inside of quotes, such as lines 3 to 5" in n for n in table.notes
    )
    assert read(write(tmp_path, LETTERS.replace("\t", ",")), quote="none").labels[3] == 'z"'


@pytest.mark.parametrize("cell", ["two\nlines", "a\tb", '5" wide', "plain"])
@pytest.mark.parametrize("quoting", [0, 1])
def test_what_pandas_quotes_of_a_table_with_tabs_is_read_as_it_was(tmp_path, cell, quoting):
    path = tmp_path / "t.tsv"
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [3, 4], "kind": [cell, "y"]})
    frame.to_csv(path, sep="\t", index=False, quoting=quoting)
    table = read(path)
    assert table.labels == [cell, "y"]
    assert table.mean.tolist() == [[1.5, 3], [2.5, 4]]
    assert any("line break" in note for note in table.notes) == ("\n" in cell)


# ---- columns with types ----------------------------------------------------------------------


def test_an_index_with_a_name_is_a_column(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]}, index=pd.Index([7, 8], name="id"))
    frame.to_parquet(path)
    table = read_table(path, label="kind", keep=["id"])
    assert table.kept["id"].tolist() == [7, 8]
    assert table.features == ("a",)
    assert set(read_table(path, label="kind").features) == {"a", "id"}
    frame.set_axis([7, 9], axis=0).to_parquet(path)
    assert read_table(path, label="kind").features == ("a",)
    [(X, _, _)] = chunks(path, "kind").map(lambda chunk: chunk)
    assert X.feature_names.tolist() == ["a"]


def of_fits(tmp_path, unit):
    columns = [
        fits.Column(name="f", format="D", array=np.arange(4.0) + 1, unit=unit),
        fits.Column(name="f_ivar", format="D", array=np.full(4, 4.0), unit=f"1/{unit}^2"),
    ]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "t.fits")
    return tmp_path / "t.fits"


def test_units_beside_the_standard_of_fits_are_those_of_astropy(tmp_path):
    table = read_table(of_fits(tmp_path, "nanomaggy"))
    assert table.features == ("f [nmgy]",)
    np.testing.assert_array_equal(table.std, np.full((4, 1), 0.5))


def test_units_that_nobody_knows_are_told_with_their_column_and_can_be_ignored(tmp_path):
    path = of_fits(tmp_path, "stuff")
    with pytest.raises(TableError, match=r"t\.fits: column 'f_ivar' in 1/stuff\^2.*--ignore-units"):
        read_table(path)
    table = read_table(path, reading=Reading(units=False))
    assert table.features == ("f",)
    np.testing.assert_array_equal(table.std, np.full((4, 1), 0.5))
