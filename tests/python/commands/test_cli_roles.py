"""Columns have the roles in predictions that they had in training; units and options count."""

import csv
import io

import numpy as np
import pytest
from astropy.table import Table
from commands.running import run, summary

ROWS = [
    (x, e, 0.4 * x + 0.3, "ab"[x > 3])
    for x, e in zip(range(8), np.linspace(0.5, 2, 8), strict=True)
]


def write(tmp_path, names, rows=ROWS, name="t.csv"):
    path = tmp_path / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def trained(capsys, path, *options):
    model = path.with_name("model.json")
    status, out, err = run(capsys, "train", path, "--C", 1, *options, "--output", model)
    assert status == 0, err
    return summary(out), err, model


def predicted(capsys, model, path, *options):
    status, out, err = run(capsys, "predict", model, path, *options)
    assert status == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    return rows, [float(row["decision_std"]) for row in rows if "decision_std" in row], err


def test_columns_that_are_kept_stay_features_and_errors(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_err", "z", "kind"])
    _, _, model = trained(capsys, path, "--label", "kind")
    _, expected, _ = predicted(capsys, model, path)
    rows, found, _ = predicted(capsys, model, path, "--keep", "x,x_err")
    assert found == expected
    assert [float(row["x_err"]) for row in rows] == [row[1] for row in ROWS]


def test_error_columns_and_labels_are_those_of_training(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_noise", "z", "kind"])
    how = ("--error", "x=x_noise", "--errors-are", "variance")
    _, _, model = trained(capsys, path, "--label", "kind", *how)
    _, expected, _ = predicted(capsys, model, path, *how)
    _, found, _ = predicted(capsys, model, path)
    assert len(found) == 8
    assert found == expected
    status, out, _ = run(capsys, "evaluate", model, path)
    assert status == 0
    assert "accuracy" in out


def test_errors_that_were_not_used_in_training_are_told_and_not_used(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_err", "z", "kind"])
    _, _, model = trained(capsys, path, "--label", "kind", "--drop", "x_err")
    _, found, err = predicted(capsys, model, path)
    assert found == []
    assert "'x_err' is not used: the model was trained without errors of 'x'" in err
    _, found, _ = predicted(capsys, model, path, "--error", "x=x_err")
    assert len(found) == 8


def test_errors_that_are_gone_are_told(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_err", "z", "kind"])
    _, _, model = trained(capsys, path, "--label", "kind")
    bare = write(tmp_path, ["x", "z"], [(row[0], row[2]) for row in ROWS], "bare.csv")
    _, found, err = predicted(capsys, model, bare)
    assert found == []
    assert "'x' had errors when the model was trained, in 'x_err', and none here" in err


@pytest.mark.parametrize(
    "names", [["X", "X_ERR"], ["x [mJy]", "x_err [mJy]"], ["FLUX_G", "FLUX_IVAR_G"]]
)
def test_errors_are_found_in_upper_case_and_beside_units(tmp_path, capsys, names):
    path = write(tmp_path, [*names, "z", "kind"])
    lines, _, _ = trained(capsys, path, "--label", "kind")
    assert lines["features"] == "2, 1 of them with an error column"


def test_the_name_of_an_explicit_error_column_tells_what_it_holds(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_var", "z", "kind"])
    plain, _, _ = trained(capsys, path, "--label", "kind")
    explicit, _, _ = trained(capsys, path, "--label", "kind", "--error", "x=x_var")
    assert explicit["objective"] == plain["objective"]


def test_two_features_can_share_an_error_column(tmp_path, capsys):
    path = write(tmp_path, ["x", "noise", "z", "kind"])
    lines, _, _ = trained(
        capsys, path, "--label", "kind", "--error", "x=noise", "--error", "z=noise"
    )
    assert lines["features"] == "2, 2 of them with an error column"


def test_sentinels_are_found_in_columns_of_float32(tmp_path, capsys):
    x = np.array([-99.9, *range(1, 8)], dtype=np.float32)
    path = tmp_path / "t.fits"
    Table({"x": x, "kind": [row[3] for row in ROWS]}).write(path)
    how = ("--label", "kind", "--sentinel", "-99.9", "--missing", "drop")
    lines, err, _ = trained(capsys, path, *how)
    assert lines["rows"].split()[0] == "7"
    assert "1 of 8 rows with missing cells left out" in err


def test_values_are_converted_to_the_unit_of_training(tmp_path, capsys):
    metres = {"x": [row[0] for row in ROWS], "d": [1000.0 * row[2] for row in ROWS]}
    tables = {}
    for unit in ("km", "m", "s"):
        table = Table(metres)
        table["d"].unit = "m"
        if unit == "km":
            table["d"] = table["d"].to("km")
        elif unit == "s":
            table["d"].unit = "s"
        tables[unit] = tmp_path / f"{unit}.ecsv"
        table.write(tables[unit])
    _, _, model = trained(capsys, tables["km"], "--task", "regression", "--label", "d")
    results = [run(capsys, "evaluate", model, tables[unit]) for unit in ("km", "m")]
    assert results[0] == results[1]
    status, _, err = run(capsys, "evaluate", model, tables["s"])
    assert status == 1
    assert "the values are in s, the model was trained in km" in err


@pytest.mark.parametrize(
    ("error", "meaning", "written"),
    [
        ("e_x", "measurement", "x_err"),
        ("x_ivar", "measurement", "x_err"),
        ("x_std", "distribution", "x_std"),
        ("x_var", "distribution", "x_std"),
    ],
)
def test_what_errors_mean_outlives_a_conversion(tmp_path, capsys, error, meaning, written):
    path, out = write(tmp_path, ["x", error, "z", "kind"]), tmp_path / "out.csv"
    assert run(capsys, "convert", path, out, "--label", "kind")[0] == 0
    assert out.read_text().splitlines()[0] == f"x,{written},z,kind"
    for table in (path, out):
        assert trained(capsys, table, "--label", "kind")[0]["errors"].startswith(meaning)


def test_an_error_column_of_another_name_than_in_training_is_told(tmp_path, capsys):
    _, _, model = trained(capsys, write(tmp_path, ["x", "x_err", "z", "kind"]), "--label", "kind")
    other = write(tmp_path, ["x", "x_std", "z", "kind"], name="other.csv")
    _, _, err = run(capsys, "predict", model, other)
    assert "if 'x_std' holds them, use it by --error x=x_std" in err


def test_no_conversion_estimates_missing_values(tmp_path, capsys):
    path = write(tmp_path, ["x", "x_err", "z", "kind"])
    options = ("--label", "kind", "--missing", "impute")
    status, _, err = run(capsys, "convert", path, tmp_path / "out.csv", *options)
    assert status == 2
    assert "convert estimates nothing" in err


def test_units_in_brackets_outlive_a_conversion(tmp_path, capsys):
    path = write(tmp_path, ["x [mJy]", "x_err [mJy]", "z", "kind"])
    out = tmp_path / "t.ecsv"
    assert run(capsys, "convert", path, out, "--label", "kind")[0] == 0
    table = Table.read(out)
    assert table.colnames == ["x", "x_err", "z", "kind"]
    assert str(table["x_err"].unit) == "mJy"
    twice = write(tmp_path, ["x [mJy]", "x [Jy]", "z", "kind"], name="twice.csv")
    status, _, err = run(capsys, "convert", twice, out, "--label", "kind")
    assert status == 1
    assert "two columns would be named 'x'" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "rbf", "--degree", "7"], "--degree is of use only with --kernel poly"),
        (["--kernel", "poly", "--approximate", "nystroem:5"], "--approximate is of --kernel rbf"),
        (["--set", "C=3"], "--set C: give it by --C"),
        (["--calibrate", "sigmoid", "--folds", "0"], "--calibrate needs folds, and --folds is 0"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, capsys, options, message):
    path = write(tmp_path, ["x", "x_err", "z", "kind"])
    status, _, err = run(capsys, "train", path, "--label", "kind", *options)
    assert status == 2
    assert message in err
