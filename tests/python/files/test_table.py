"""Tables: what is read equals what was written, and every defect is told with its place."""

import csv
import gzip
import shlex

import numpy as np
import pytest

from halosvm.commands.values import names
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.roles import ErrorRules, parse_pattern
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError, listing

TABLE = "kind,a,a_std,b,c\nx,1,0.5,2,3\ny,-4,0,5e-1,6\n"


def by_patterns(*patterns, **options):
    """Errors stand in columns of these patterns alone."""
    return Reading(errors=ErrorRules(tuple(map(parse_pattern, patterns)), **options))


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_named_after_a_feature_are_its_standard_deviations(tmp_path):
    table = read_table(write(tmp_path, TABLE), label="kind")
    assert table.features == ("a", "b", "c")
    np.testing.assert_array_equal(table.mean, [[1, 2, 3], [-4, 0.5, 6]])
    np.testing.assert_array_equal(table.std, [[0.5, 0, 0], [0, 0, 0]])
    assert table.labels == ["x", "y"]
    assert table.mean.flags.c_contiguous
    assert table.lines.tolist() == [2, 3]


def test_variance_column_becomes_its_square_root(tmp_path):
    path = write(tmp_path, "a,a_var,b,b_err\n1,4,2,3\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.std, [[2, 3]])
    assert [error.holds for error in table.errors.values()] == ["variance", "std"]


def test_table_without_error_columns_has_no_standard_deviations(tmp_path):
    assert read_table(write(tmp_path, "a,b\n1,2\n")).std is None


def test_without_patterns_every_column_is_a_feature(tmp_path):
    table = read_table(write(tmp_path, TABLE), label="kind", reading=by_patterns())
    assert table.features == ("a", "a_std", "b", "c")
    assert table.std is None


def test_suffix_without_its_feature_is_a_feature(tmp_path):
    assert read_table(write(tmp_path, "a,b_std\n1,2\n")).features == ("a", "b_std")


def test_dropped_feature_takes_its_errors_along(tmp_path):
    table = read_table(write(tmp_path, TABLE), label="kind", drop=["a"])
    assert table.features == ("b", "c")
    assert table.std is None


def test_dropped_error_column_makes_its_feature_certain(tmp_path):
    table = read_table(write(tmp_path, TABLE), label="kind", drop=["a_std"])
    assert table.features == ("a", "b", "c")
    assert table.std is None


def test_listed_features_come_in_the_order_of_the_list(tmp_path):
    table = read_table(write(tmp_path, TABLE), features=["c", "a"])
    np.testing.assert_array_equal(table.mean, [[3, 1], [6, -4]])
    np.testing.assert_array_equal(table.std, [[0, 0.5], [0, 0]])


def test_listed_error_column_is_a_feature_and_no_error(tmp_path):
    table = read_table(write(tmp_path, TABLE), features=["a", "a_std"])
    np.testing.assert_array_equal(table.mean, [[1, 0.5], [-4, 0]])
    assert table.std is None


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_separator_and_line_ending_reads_the_same(tmp_path, delimiter, newline):
    text = TABLE.replace(",", delimiter).replace("\n", newline)
    path = tmp_path / "table.txt"
    path.write_bytes(text.encode())
    np.testing.assert_array_equal(read_table(path, label="kind").mean, [[1, 2, 3], [-4, 0.5, 6]])


def test_gzip_is_recognised_by_content(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(TABLE.encode()))
    assert read_table(path, label="kind").labels == ["x", "y"]


def test_byte_order_mark_comments_and_blank_lines_are_skipped_and_counted(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbf# from an archive\n\n" + b"a,b\n1,2\n\n3,x\n")
    with pytest.raises(TableError, match=r"line 6, column 'b': 'x' is not a number"):
        read_table(path)
    assert read_table(path, features=["a"]).lines.tolist() == [4, 6]


def test_quoted_cells_with_separators_and_line_breaks(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["the, name", "b"], ["two\nlines", "1"], ["x", "2"]])
    table = read_table(path, label="the, name")
    assert table.labels == ["two\nlines", "x"]
    assert table.lines.tolist() == [3, 4]


def test_unused_columns_may_hold_anything(tmp_path):
    path = write(tmp_path, "id,a\nrow one,1\n,2\n")
    np.testing.assert_array_equal(read_table(path, drop=["id"]).mean, [[1], [2]])


def test_numbers_are_read_exactly(tmp_path):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-300, 300, size=(50, 3))
    lines = ["a,b,c", *(",".join(repr(float(v)) for v in row) for row in values)]
    np.testing.assert_array_equal(read_table(write(tmp_path, "\n".join(lines))).mean, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"table\.csv is empty"),
        ("\n# nothing\n", r"table\.csv is empty"),
        ("a,b\n", "has a header and no rows"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cell, the header has 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, the header has 2"),
        ("a,b,a\n1,2,3\n", "has 2 columns called 'a'"),
        ("a,b\n1,2\n3,much\n", "line 3, column 'b': 'much' is not a number"),
        ("a,b\n1,1_000\n", "line 2, column 'b': '1_000' is not a number"),
        ("a,b\n1,\n", r"line 2, column 'b': missing value \(an empty cell\)"),
        ("a,b\nNA,1\n", "line 2, column 'a': missing value 'NA'"),
        ("a,b\n1,2\nnan,1\n", "line 3, column 'a': missing value 'nan'"),
        ("a,b\n1,-inf\n", "line 2, column 'b': -inf is not a finite number"),
        ("a,b\n1,1e999\n", "line 2, column 'b': inf is not a finite number"),
        ("a,a_std\n1,2\n3,-0.5\n", "line 3, column 'a_std': -0.5 is negative; an error must be"),
        (",a\n1,2\n", "column 1 has no name in the header"),
        ("a,b\n1,2\x00\n", "line 2 holds a zero byte"),
    ],
)
def test_defects_are_told_with_file_line_column_and_value(tmp_path, text, message):
    with pytest.raises(TableError, match=message) as caught:
        read_table(write(tmp_path, text))
    assert "table.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "species"}, "no column 'species'; its columns are 'kind', 'a', 'a_std'"),
        ({"features": ["a", "z"]}, "no column 'z'"),
        ({"drop": ["z"]}, "no column 'z'"),
        ({"features": ["a", "a"]}, "column 'a' is given as a feature twice"),
        ({"features": ["a"], "label": "a"}, "'a' is given as a feature and as the label"),
        ({"drop": ["kind", "a", "b", "c"]}, "has no feature among"),
    ],
)
def test_impossible_choices_are_told(tmp_path, options, message):
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, TABLE), **options)


def test_two_error_columns_for_one_feature_are_rejected(tmp_path):
    path = write(tmp_path, "a,a_std,a_var\n1,2,3\n")
    with pytest.raises(TableError, match="'a' has two error columns, 'a_std' and 'a_var'"):
        read_table(path)


@pytest.mark.parametrize("name", ["a", "flux (J, H)", 'say "x"', "it's"])
def test_advice_can_be_pasted_into_a_shell(tmp_path, name):
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[name, "b"], ["much", "1"]])
    with pytest.raises(TableError, match="is not a number; leave the column out") as caught:
        read_table(tmp_path / "t.csv")
    advice = str(caught.value).split("leave the column out by ")[1].split(", or choose")[0]
    option, value = shlex.split(advice)
    assert option == "--drop"
    assert read_table(tmp_path / "t.csv", drop=names(value)).features == ("b",)


def test_missing_label_is_told_with_its_line(tmp_path):
    with pytest.raises(TableError, match=r"line 3, column 'y': missing label"):
        read_table(write(tmp_path, "y,a\nnone,1\n ,2\n"), label="y")


def test_unnamed_column_can_be_dropped(tmp_path):
    assert read_table(write(tmp_path, ",a\n0,2\n"), drop=[""]).features == ("a",)


def test_unreadable_files_are_told(tmp_path):
    with pytest.raises(TableError, match=r"cannot read .*absent\.csv: No such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(TableError, match=r"cannot read .*: Is a directory"):
        read_table(tmp_path)
    latin = tmp_path / "latin.csv"
    latin.write_bytes("a,b\n1,\u00e9".encode("latin-1"))
    with pytest.raises(
        TableError, match=r"latin\.csv is not UTF-8 text: line 2 holds the byte 0xe9"
    ):
        read_table(latin)
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress((TABLE + "x,1,2,3,4\n" * 99).encode())[:-20])
    with pytest.raises(TableError, match=r"broken\.csv\.gz is a damaged gzip file"):
        read_table(broken, label="kind")


def test_long_lists_of_names_are_cut_short():
    assert listing(["a", "b"]) == "'a', 'b'"
    assert listing(list("abcde"), most=2) == "'a', 'b' and 3 more"


def test_values_of_a_regression_are_read_like_a_feature_and_stand_apart(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,a,b,y_std,a_std\n1.5,2,3,0.5,0.25\n-2,4,5,0,1\n")
    table = read_table(path, target="y")
    assert table.features == ("a", "b")
    assert table.errors == {"a": (("a_std",), "std")}
    assert table.mean.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert table.mean.flags.c_contiguous
    assert table.std.tolist() == [[0.25, 0.0], [1.0, 0.0]]
    assert table.values.tolist() == [1.5, -2.0]
    assert table.values_std.tolist() == [0.5, 0.0]
    assert table.labels == []


@pytest.mark.parametrize(
    ("options", "has_std", "has_values_std"),
    [
        ({"drop": ["y_std"]}, True, False),
        ({"drop": ["a_std"]}, False, True),
        ({"features": ["b"]}, False, True),
        ({"reading": by_patterns("_error"), "features": ["a"]}, False, False),
    ],
)
def test_errors_of_features_and_values_are_told_apart(tmp_path, options, has_std, has_values_std):
    path = tmp_path / "t.csv"
    path.write_text("y,a,b,y_std,a_std\n1.5,2,3,0.5,0.25\n-2,4,5,0,1\n")
    table = read_table(path, target="y", **options)
    assert (table.std is not None, table.values_std is not None) == (has_std, has_values_std)
    assert table.values.tolist() == [1.5, -2.0]


def test_values_are_variances_where_the_suffix_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,a,y_var\n1.5,2,4\n")
    table = read_table(path, target="y")
    assert (table.values_std.tolist(), table.std) == ([2.0], None)


def test_numbers_whose_squares_overflow_are_read_and_are_no_examples(tmp_path):
    table = read_table(write(tmp_path, "a,b\n1,2\n3,-1e200\n"))
    assert table.mean[1, 1] == -1e200
    with pytest.raises(TableError, match=r"line 3, column 'b': -1e\+200 is larger than 1e\+150"):
        _ = table.examples
