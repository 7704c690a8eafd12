"""Dialects of text: separators, decimal commas, encodings, comments and compression."""

import bz2
import gzip
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError
from halosvm.files.tables.writing import write_columns

TEXT = "kind,a,b\nx,1.5,2\ny,-4,0.25\n"
MEAN = [[1.5, 2], [-4, 0.25]]


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, *, label="kind", **dialect):
    return read_table(path, label=label, reading=Reading(dialect=Dialect(**dialect)))


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", "  ", " \t "])
def test_separator_is_found(tmp_path, separator):
    table = read(write(tmp_path, TEXT.replace(",", separator)))
    np.testing.assert_array_equal(table.mean, MEAN)
    assert table.features == ("a", "b")
    assert table.labels == ["x", "y"]


def test_separator_that_rows_agree_on_is_preferred(tmp_path):
    # as many commas as semicolons stand in the header, and no commas in the rows
    table = read(write(tmp_path, "flux (J, H, K);a;kind\n1;2;x\n3;4;y\n"))
    assert table.features == ("flux (J, H, K)", "a")


def test_given_separator_is_obeyed(tmp_path):
    path = write(tmp_path, "a,b;kind\n1;x\n2;y\n")
    assert read(path, separator=";").features == ("a,b",)
    path = write(tmp_path, "kind^a\nx^1\ny^2\n")
    assert read(path, separator="^").mean.tolist() == [[1], [2]]
    with pytest.raises(TableError, match="no column 'kind'"):
        read(path)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_comma_is_read_and_asked_for(tmp_path, separator):
    text = TEXT.replace(",", separator).replace(".", ",")
    path = write(tmp_path, text)
    np.testing.assert_array_equal(read(path, decimal=",").mean, MEAN)
    with pytest.raises(TableError, match=r"'1,5' is not a number; .* give --decimal ,"):
        read(path)


def test_decimal_comma_separates_nothing(tmp_path):
    path = write(tmp_path, "a,b;kind\n1,5;x\n2,5;y\n")
    assert read(path, decimal=",").mean.tolist() == [[1.5], [2.5]]
    with pytest.raises(TableError, match="',' cannot be separator and decimal point"):
        read(path, decimal=",", separator=",")


def test_decimal_comma_is_exact_and_takes_no_point(tmp_path):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(60, 2)) * 10.0 ** rng.integers(-300, 300, size=(60, 2))
    rows = [";".join(repr(v).replace(".", ",") for v in row) for row in values.tolist()]
    path = write(tmp_path, "\n".join(["a;b", *rows]))
    np.testing.assert_array_equal(read(path, label=None, decimal=",").mean, values)
    with pytest.raises(TableError, match=r"'1\.234' is not a number"):
        read(write(tmp_path, "a;b\n1.234;2\n"), label=None, decimal=",")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = write(tmp_path, "größe,kind\n1,ü\n2,é\n".encode(encoding))
    table = read(path, encoding=encoding)
    assert (table.features, table.labels) == (("größe",), ["ü", "é"])


def test_utf_16_is_known_by_its_mark_and_others_are_asked_for(tmp_path):
    assert read(write(tmp_path, TEXT.encode("utf-16"))).labels == ["x", "y"]
    with pytest.raises(TableError, match="line 2 holds the byte 0xfc; name its --encoding"):
        read(write(tmp_path, "a,kind\n1,ü\n".encode("latin-1")))
    with pytest.raises(TableError, match="--encoding: 'klingon' is not known"):
        read(write(tmp_path, TEXT), encoding="klingon")


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda data: pa.compress(data, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_files_are_read_and_damaged_ones_told(tmp_path, suffix, compress):
    path = write(tmp_path, compress(TEXT.encode()), "t.csv" + suffix)
    np.testing.assert_array_equal(read(path).mean, MEAN)
    path.rename(tmp_path / "renamed")
    np.testing.assert_array_equal(read(tmp_path / "renamed").mean, MEAN)
    rows = "".join(f"x,{value!r},1\n" for value in np.random.default_rng(0).normal(size=500))
    whole = compress((TEXT + rows).encode())
    with pytest.raises(TableError, match=r"t\.csv.* is a damaged .* file"):
        read(write(tmp_path, whole[: len(whole) // 2], "t.csv" + suffix))


def test_rows_that_begin_with_a_hash_are_rows(tmp_path):
    text = "id,a,kind\n#1,1,x\n#2,2,y\n#N/A,3,x\n4,5,y\n"
    table = read_table(write(tmp_path, text), label="kind", keep=["id"])
    assert table.mean.tolist() == [[1], [2], [3], [5]]
    assert table.kept["id"].tolist() == ["#1", "#2", "#N/A", "4"]
    [note] = table.notes
    assert note.startswith(
        "3 lines below the header with # in front read like any other; --comment"
    )
    for cell in ("#N/A", "#REF!"):
        with pytest.raises(TableError, match=f"line 3, column 'a': .*{cell}"):
            read(write(tmp_path, f"a,kind\n1,x\n{cell},y\n"))


@pytest.mark.parametrize("comment", ["#", "//"])
def test_comments_below_the_header_are_left_out_where_that_is_asked_for(tmp_path, comment):
    path = write(tmp_path, TEXT + f"{comment} the end\nz,#1,7\n")
    with pytest.raises(TableError, match="line 5, column 'a': '#1' is not a number"):
        read(path, comment=comment)
    path = write(tmp_path, TEXT + f"{comment} the end\n")
    table = read(path, comment=comment)
    assert table.notes == ("1 comment line below the header left out",)
    assert table.lines.tolist() == [2, 3]
    with pytest.raises(TableError, match="line 4 has 1 cell, the header has"):
        read(path)
    with pytest.raises(TableError, match="where it is a comment, give --comment '#'"):
        read(write(tmp_path, TEXT + "# the end\n"))


def test_a_column_called_hash_is_one(tmp_path):
    table = read(write(tmp_path, "#,a,kind\n1,2,x\n2,3,y\n"))
    assert table.features == ("#", "a")
    assert table.mean.tolist() == [[1, 2], [2, 3]]


def test_comments_above_rows_without_a_header_are_told(tmp_path):
    table = read(write(tmp_path, "#1,2\n3,4\n5,6\n"), label=None, header=False)
    assert table.notes == ("1 line above the rows left out, as comments",)


@pytest.mark.parametrize("first", ["#id", "id"])
def test_what_begins_with_a_hash_is_quoted_where_it_is_written(tmp_path, first):
    entries = np.array(["#1", 'a "b", c', "#N/A"], dtype=object)
    write_columns({first: entries, "a": np.array([1.0, 2.5, 3.0])}, tmp_path / "t.csv", "csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert not any(line.startswith("#") for line in lines)
    table = read_table(tmp_path / "t.csv", keep=[first])
    assert table.kept[first].tolist() == entries.tolist()
    assert table.mean.tolist() == [[1.0], [2.5], [3.0]]


def test_hash_inside_of_quotes_is_no_comment(tmp_path):
    path = write(tmp_path, 'kind,a\n"two\n# lines",1\ny,2\n')
    assert read(path).labels == ["two\n# lines", "y"]


def test_old_line_endings_are_read(tmp_path):
    np.testing.assert_array_equal(read(write(tmp_path, TEXT.replace("\n", "\r"))).mean, MEAN)


def test_rows_below_a_quoted_line_break_keep_their_numbers(tmp_path):
    path = write(tmp_path, 'kind,a\n"two\nlines",1\n\ny,2\nz,much\n')
    with pytest.raises(TableError, match="line 6, column 'a': 'much' is not a number"):
        read(path)


@pytest.mark.parametrize("quoting", [0, 1, 2])
def test_what_pandas_writes_is_read(tmp_path, quoting):
    frame = pd.DataFrame(
        {'a "b", c': [0.1, 1e-300], "kind": ['say "x", y', "z\nz"], "d;e": [1, -2]}
    )
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, quoting=quoting)
    table = read(path)
    assert table.features == ('a "b", c', "d;e")
    np.testing.assert_array_equal(table.mean, [[0.1, 1], [1e-300, -2]])
    assert table.labels == ['say "x", y', "z\nz"]


@pytest.mark.parametrize("row", ["x,1", "x,1,2,3", "x,1,2,", 'x,"1,2"'])
def test_rows_of_another_length_are_refused_also_where_pandas_takes_them(tmp_path, row):
    path = write(tmp_path, TEXT + f"{row}\n")
    with pytest.raises(TableError, match=r"line 4 has \d cells?, the header has 3; .* by ','"):
        read(path)
    path = write(tmp_path, f"kind,a,b\n{row}\n" + TEXT.split("\n", 1)[1])
    with pytest.raises(TableError, match="line 2 has"):
        read(path)


# ---- lines that are no rows, and rows that look like none ----------------------------------------


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@pytest.mark.parametrize("row", [0, 1, 3])
def test_line_of_separators_alone_is_a_row_of_missing_cells(tmp_path, separator, row, quote):
    rows = [["1", "2", f"{quote}x{quote}"], ["3", "4", "y"], ["5", "6", "z"]]
    rows.insert(row, ["", "", ""])
    lines = [separator.join(cells) for cells in [["a", "b", "kind"], *rows]]
    text = "\n".join(lines) + "\n"
    with pytest.raises(TableError, match=rf"line {row + 2}, column 'a': missing value \(an empty"):
        read(write(tmp_path, text))
    reading = Reading(missing="drop")
    table = read_table(write(tmp_path, text), label="kind", reading=reading)
    assert table.mean.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.labels == ["x", "y", "z"]
    assert table.notes == ("1 of 4 rows with missing cells left out",)


@pytest.mark.parametrize("separator", [None, "\t"])
def test_line_of_tabs_is_the_first_row_where_no_header_is(tmp_path, separator):
    path = write(tmp_path, "# no names\n\t\n1\t2\n")
    with pytest.raises(TableError, match="line 2, column '1': missing value"):
        read(path, label=None, header=False, separator=separator)


def test_lines_without_cells_are_no_rows(tmp_path):
    path = write(tmp_path, "\n  \na\tkind\n\n1\tx\n  \n2\ty\n\n")
    assert read(path).mean.tolist() == [[1], [2]]


@pytest.mark.parametrize("line", ["sep={}", "SEP={}", '"sep={}"', "sep={}\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "^"])
def test_first_line_of_excel_names_the_separator(tmp_path, line, separator):
    text = f"{line.format(separator)}\n{TEXT.replace(',', separator)}"
    table = read(write(tmp_path, text))
    np.testing.assert_array_equal(table.mean, MEAN)
    assert list(table.lines) == [3, 4]
    path = write(tmp_path, text.split("\n", 1)[0] + f"\n1{separator}2\n3{separator}4\n")
    assert read(path, label=None, header=False).mean.tolist() == [[1, 2], [3, 4]]


def test_separator_of_the_options_overrules_the_line_of_excel(tmp_path):
    path = write(tmp_path, "sep=;\n" + TEXT)
    assert read(path, separator=",").features == ("a", "b")
    with pytest.raises(TableError, match="',' cannot be separator and decimal point"):
        read(write(tmp_path, "sep=,\n" + TEXT), decimal=",")


def test_column_may_be_called_like_the_line_of_excel(tmp_path):
    assert read(write(tmp_path, "sep=x,kind\n1,u\n")).features == ("sep=x",)
    assert read(write(tmp_path, "kind,a\nsep=;,1\n")).labels == ["sep=;"]
