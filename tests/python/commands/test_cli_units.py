"""Units of values and of columns that are kept outlive conversions, training and predictions."""

import csv

import astropy.units as u
import numpy as np
import pandas as pd
import pytest
from astropy.table import QTable, Table
from commands.running import run
from pyarrow import parquet

from halosvm import load_model

RNG = np.random.default_rng(3)
N = 20
X = RNG.normal(size=N)
VALUES = 3.0 * X + 0.01 * RNG.normal(size=N)
FORMATS = {"fits": "fits", "ecsv": "ascii.ecsv", "vot": "votable"}
IDS = [2**62 + 3 * k + 1 for k in range(N)]


def catalogue(path, factor=1.0, unit=u.km):
    columns = {
        "x": X * u.mJy,
        "d": VALUES * factor * unit,
        "d_err": np.full(N, 0.1 * factor) * unit,
        "ra": np.arange(N) * u.deg,
        "id": np.array(IDS),
    }
    QTable(columns).write(path, format=FORMATS[path.suffix[1:]])
    return path


def converted(capsys, source, path):
    options = ("--task", "regression", "--label", "d", "--features", "x")
    status, _, err = run(capsys, "convert", source, path, *options)
    assert status == 0, err
    return err


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("to", FORMATS)
def test_the_unit_of_values_is_written_with_them(tmp_path, capsys, suffix, to):
    path = tmp_path / f"out.{to}"
    converted(capsys, catalogue(tmp_path / f"t.{suffix}"), path)
    table = QTable.read(path, format=FORMATS[to])
    assert table.colnames == ["x", "d", "d_std"]
    assert [str(table[name].unit) for name in table.colnames] == ["mJy", "km", "km"]
    np.testing.assert_array_equal(table["d"].value, VALUES)


@pytest.mark.parametrize("to", ["csv", "tsv", "parquet", "feather"])
def test_the_unit_of_values_stands_in_brackets_where_columns_have_none(tmp_path, capsys, to):
    source, path = catalogue(tmp_path / "t.ecsv"), tmp_path / f"out.{to}"
    converted(capsys, source, path)
    names = ["x [mJy]", "d [km]", "d_std [km]"]
    if to in ("csv", "tsv"):
        assert path.read_text().splitlines()[0] == ("," if to == "csv" else "\t").join(names)
    elif to == "parquet":
        assert parquet.read_table(path).column_names == names
    back = tmp_path / "back.ecsv"
    options = ("--task", "regression", "--label", "d [km]")
    assert run(capsys, "convert", path, back, *options)[0] == 0
    again = QTable.read(back, format="ascii.ecsv")
    assert [str(again[name].unit) for name in ("x", "d", "d_std")] == ["mJy", "km", "km"]
    np.testing.assert_array_equal(again["d"].value, VALUES)
    np.testing.assert_array_equal(again["d_std"].value, np.full(N, 0.1))


@pytest.mark.parametrize("to", ["npz", "svmlight"])
def test_formats_without_a_place_for_the_unit_tell_it(tmp_path, capsys, to):
    path = tmp_path / "t.ecsv"
    QTable({"x": X, "d": VALUES * u.km}).write(path, format="ascii.ecsv")
    err = converted(capsys, path, tmp_path / f"out.{to}")
    assert f"{to} has no place for the unit of the values, km" in err


def test_models_know_values_by_their_name_in_every_format(tmp_path, capsys):
    source, model = catalogue(tmp_path / "t.ecsv"), tmp_path / "m.json"
    options = ("--task", "regression", "--label", "d", "--features", "x", "--folds", "0")
    assert run(capsys, "train", source, *options, "--C", "1", "--output", model)[0] == 0
    expected = run(capsys, "evaluate", model, source)
    assert expected[0] == 0
    text = tmp_path / "t.csv"
    converted(capsys, source, text)
    assert run(capsys, "evaluate", model, text)[:2] == expected[:2]
    metres = catalogue(tmp_path / "metres.fits", 1000.0, u.m)
    assert run(capsys, "evaluate", model, metres)[:2] == expected[:2]
    own = tmp_path / "own.json"
    options = ("--task", "regression", "--label", "d [km]", "--folds", "0", "--C", "1")
    assert run(capsys, "train", text, *options, "--output", own)[0] == 0
    np.testing.assert_allclose(load_model(own).coef_, load_model(model).coef_, rtol=1e-9)
    assert run(capsys, "evaluate", own, metres)[:2] == expected[:2]


@pytest.mark.parametrize("to", ["csv", "parquet", *FORMATS])
def test_predictions_have_the_unit_of_the_values_and_columns_that_are_kept_theirs(
    tmp_path, capsys, to
):
    source, model = catalogue(tmp_path / "t.ecsv"), tmp_path / "m.json"
    options = ("--task", "regression", "--label", "d", "--features", "x", "--folds", "0")
    assert run(capsys, "train", source, *options, "--C", "1", "--output", model)[0] == 0
    path = tmp_path / f"out.{to}"
    keep = ("--keep", "id,ra")
    assert run(capsys, "predict", model, source, *keep, "--output", path)[0] == 0
    values = load_model(model).predict(pd.DataFrame({"x [mJy]": X}))
    if to in FORMATS:
        table = Table.read(path, format=FORMATS[to])
        assert [str(table[name].unit) for name in ("id", "ra", "value")] == ["None", "deg", "km"]
        ids, found = table["id"].tolist(), table["value"].tolist()
    elif to == "csv":
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["id", "ra [deg]", "value [km]"]
        ids = [int(row["id"]) for row in rows]
        found = [float(row["value [km]"]) for row in rows]
    else:
        table = parquet.read_table(path)
        ids, found = table["id"].to_pylist(), table["value [km]"].to_pylist()
    assert ids == IDS
    np.testing.assert_allclose(found, values, rtol=1e-14, atol=1e-14)
