"""Which columns are errors, of what kind, and which cells are missing."""

import numpy as np
import pytest

from halosvm import EmpiricalBayes
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.roles import ErrorRules, parse_pattern
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError


def write(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def by(*patterns, holds="std", pairs=None):
    rules = ErrorRules(tuple(map(parse_pattern, patterns)), pairs or {}, holds)
    return Reading(errors=rules)


@pytest.mark.parametrize(
    ("feature", "error"),
    [
        ("x", "x_std"),
        ("x", "x_err"),
        ("x", "x_error"),
        ("x", "x_e"),
        ("x", "e_x"),
        ("x", "err_x"),
        ("MAG_AUTO", "MAGERR_AUTO"),
        ("FLUX_g", "FLUXERR_g"),
    ],
)
def test_names_of_errors_are_known(tmp_path, feature, error):
    table = read_table(write(tmp_path, f"{feature},{error},other\n1,0.5,2\n3,0.25,4\n"))
    assert table.features == (feature, "other")
    assert table.errors == {feature: ((error,), "std")}
    assert table.std.tolist() == [[0.5, 0.0], [0.25, 0.0]]
    [note] = table.notes
    assert note.startswith(f"taken as errors: {error!r} of {feature!r}; a column that is named")


def test_a_feature_that_is_left_out_takes_its_errors_along_and_that_is_told(tmp_path):
    table = read_table(write(tmp_path, "x,x_e,b\n1,2,3\n"), drop=["x"])
    assert (table.features, table.notes) == (("b",), ("left out with their features: 'x_e'",))


@pytest.mark.parametrize("names", ["x_err1,x_err2", "E_x,e_x"])
@pytest.mark.parametrize("sign", [1, -1])
def test_upper_and_lower_errors_are_joined_by_their_mean_and_told(tmp_path, names, sign):
    table = read_table(write(tmp_path, f"x,{names},b\n1,0.5,{0.25 * sign},2\n3,1,{sign},4\n"))
    assert table.features == ("x", "b")
    assert table.std.tolist() == [[0.375, 0.0], [1.0, 0.0]]
    assert any("the mean of their sizes is taken" in note for note in table.notes)


def test_sides_with_both_signs_are_refused(tmp_path):
    path = write(tmp_path, "x,x_err1,x_err2\n1,0.5,-0.5\n2,0.5,0.5\n")
    with pytest.raises(TableError, match=r"line 2, column 'x_err2': -0.5 is negative"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "kind", "cell", "std"),
    [
        ("x_var", "std", 4, 2),
        ("x_variance", "std", 9, 3),
        ("x_ivar", "std", 4, 0.5),
        ("x_err", "variance", 4, 2),
        ("x_err", "inverse-variance", 4, 0.5),
        ("x_std", "variance", 4, 4),  # the name says it
    ],
)
def test_variances_and_inverse_variances_become_standard_deviations(
    tmp_path, name, kind, cell, std
):
    path = write(tmp_path, f"x,{name}\n1,{cell}\n2,{cell}\n")
    table = read_table(path, reading=Reading(errors=ErrorRules(holds=kind)))
    assert table.std.tolist() == [[std], [std]]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("_sigma", "x_sigma"),
        ("sigma_", "sigma_x"),
        ("d{}", "dx"),
        ("{}=({})", "(x)"),
        ("_up,_low", "x_up,x_low"),
    ],
)
def test_patterns_that_are_given_hold_alone(tmp_path, pattern, error):
    numbers = "3,3" if "," in error else "3"
    path = write(tmp_path, f"x,{error},x_e\n1,{numbers},9\n")
    table = read_table(path, reading=by(pattern))
    assert table.features == ("x", "x_e")
    assert table.std.tolist() == [[3.0, 0.0]]
    assert "'x_e' looks like the errors of 'x' and is taken as a feature" in table.notes[1]


def test_explicit_pairs_come_first(tmp_path):
    path = write(tmp_path, "flux,flux_sigma,flux_err,b,b_e\n1,2,3,4,5\n")
    pairs = ErrorRules(pairs={"flux": ("flux_sigma",)})
    table = read_table(path, reading=Reading(errors=pairs), drop=["flux_err"])
    assert table.features == ("flux", "b")
    assert table.std.tolist() == [[2.0, 5.0]]
    with pytest.raises(TableError, match="no column 'flax'"):
        read_table(path, reading=by(pairs={"flax": ("flux_err",)}))
    with pytest.raises(TableError, match=r"--error b=\.\.\.: 'b' is no feature"):
        read_table(path, reading=by(pairs={"b": ("b_e",)}), drop=["b"])


@pytest.mark.parametrize("name", ["x_sigma", "sigma_x", "x_unc", "xerr", "x_err1"])
def test_features_that_look_like_errors_are_told(tmp_path, name):
    table = read_table(write(tmp_path, f"x,{name}\n1,2\n"))
    assert table.features == ("x", name)
    [note] = table.notes
    assert f"column {name!r} looks like the errors of 'x'" in note
    assert f"--error x={name}" in note
    assert read_table(write(tmp_path, f"x,{name}\n1,2\n"), drop=[name]).notes == ()


def test_errors_of_no_column_are_told(tmp_path):
    table = read_table(write(tmp_path, "y,x_err\n1,2\n"))
    assert table.features == ("y", "x_err")
    assert "'x_err' named like errors of a column that is not there" in table.notes[0]


# ---- missing cells ------------------------------------------------------------------------------

GAPS = "kind,a,a_std,b\nx,1,0.5,2\ny,,0.5,3\nx,4,,5\ny,6,0.5,NA\nx,7,0.5,8\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (GAPS, r"line 3, column 'a': missing value \(an empty cell\)"),
        (GAPS.replace("y,,", "y,-,"), "line 3, column 'a': missing value '-'"),
        (GAPS.replace("y,,", "y,1,"), "line 4, column 'a_std': missing value"),
        ("a,a_ivar\n1,2\n3,0\n", "line 3, column 'a_ivar': missing value '0'"),
    ],
)
def test_missing_cells_are_refused_with_their_place(tmp_path, text, where):
    with pytest.raises(TableError, match=where + ".*--missing drop"):
        read_table(write(tmp_path, text), label="kind" if "kind" in text else None)


def test_rows_with_missing_cells_are_dropped_and_counted(tmp_path):
    path = write(tmp_path, GAPS + ",1,1,1\n")
    table = read_table(path, label="kind", reading=Reading(missing="drop"))
    assert table.mean.tolist() == [[1, 2], [7, 8]]
    assert table.labels == ["x", "x"]
    assert table.lines.tolist() == [2, 6]
    assert table.notes[1:] == ("4 of 6 rows with missing cells left out",)
    with pytest.raises(TableError, match="every row has a missing cell"):
        read_table(write(tmp_path, "a,b\n1,\n,2\n"), reading=Reading(missing="drop"))


def test_missing_values_are_left_to_empirical_bayes(tmp_path):
    table = read_table(write(tmp_path, GAPS), label="kind", reading=Reading(missing="impute"))
    np.testing.assert_array_equal(
        table.mean, [[1, 2], [np.nan, 3], [np.nan, 5], [6, np.nan], [7, 8]]
    )
    assert "1 value without an error taken as missing" in table.notes
    assert "3 missing values estimated from the others of their rows" in table.notes
    mean = np.array([[1, 2], [np.nan, 3], [np.nan, 5], [6, np.nan], [7, 8.0]])
    std = np.array([[0.5, 0], [0.5, 0], [np.inf, 0], [0.5, 0], [0.5, 0]])
    expected = EmpiricalBayes().fit_transform(mean, X_std=std)
    got = EmpiricalBayes().fit_transform(table.examples)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-12)
    with pytest.raises(TableError, match="line 3, column 'y': missing value"):
        read_table(write(tmp_path, "y,a\n1,2\n,3\n"), target="y", reading=Reading(missing="impute"))


def test_sentinels_are_missing_cells(tmp_path):
    text = "kind,a,b,b_err\nx,1,-999,1\ny,2,3,-99.5\nx,3,4,5\n"
    read = Reading(missing="drop", sentinels=(-999, -99.5))
    assert read_table(write(tmp_path, text), label="kind", reading=read).mean.tolist() == [[3, 4]]
    with pytest.raises(TableError, match="line 2, column 'b': missing value '-999'"):
        read_table(write(tmp_path, text), label="kind", reading=Reading(sentinels=(-999,)))


def test_missing_cells_of_unused_columns_do_not_matter(tmp_path):
    table = read_table(
        write(tmp_path, GAPS), label="kind", features=["b"], reading=Reading(missing="drop")
    )
    assert len(table.mean) == 4


def test_kept_columns_follow_their_rows(tmp_path):
    text = "id,a\nfirst,1\n,\nthird,3\n"
    table = read_table(write(tmp_path, text), keep=["id"], reading=Reading(missing="drop"))
    assert table.features == ("a",)
    assert table.kept["id"].tolist() == ["first", "third"]
