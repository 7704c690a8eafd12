"""Formats with columns: what was written is read, with units and masks, and damage is told."""

import sys

import astropy.units as u
import numpy as np
import pandas as pd
import pytest
from astropy.table import MaskedColumn, QTable, Table

from halosvm.files.tables.opening import FORMATS
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError
from halosvm.files.tables.writing import WITH_COLUMNS, write_columns, write_table

SUFFIXES = {kind: FORMATS[kind][0] for kind in WITH_COLUMNS}
ASTROPY = ("fits", "ecsv", "votable")
NAMES = {"fits": "fits", "ecsv": "ascii.ecsv", "votable": "votable"}


@pytest.fixture(scope="module")
def columns():
    """Numbers of all sizes, integers, and text that is not ASCII but for FITS, which is."""
    rng = np.random.default_rng(2)
    return {
        "a": rng.normal(size=30) * 10.0 ** rng.integers(-300, 300, 30),
        "b": rng.integers(-9, 9, 30),
        "a_err": rng.uniform(1e-9, 1e9, 30),
        "kind": np.array(["left one", "right"] * 15),
    }


@pytest.mark.parametrize("kind", WITH_COLUMNS)
@pytest.mark.parametrize("compression", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_columns_are_read_bit_for_bit_as_they_were_written(tmp_path, columns, kind, compression):
    path = tmp_path / f"t{SUFFIXES[kind]}{compression}"
    write_columns(columns, path, kind)
    table = read_table(path, label="kind")
    assert table.features == ("a", "b")
    np.testing.assert_array_equal(table.mean, np.column_stack([columns["a"], columns["b"]]))
    np.testing.assert_array_equal(table.std[:, 0], columns["a_err"])
    assert table.labels == columns["kind"].tolist()
    assert table.mean.dtype == np.float64


@pytest.mark.parametrize("kind", [k for k in WITH_COLUMNS if k != "fits"])
def test_text_of_any_alphabet_is_kept(tmp_path, kind):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    write_columns({"größe": np.array([1.0, 2.0]), "art": np.array(["кот", "犬"])}, path, kind)
    table = read_table(path, label="art")
    assert (table.features, table.labels) == (("größe",), ["кот", "犬"])


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_types_of_pandas_are_labels_and_numbers(tmp_path, kind):
    frame = pd.DataFrame(
        {
            "small": np.array([1, 2, 3], dtype=np.int8),
            "nullable": pd.array([1, 2, 3], dtype="Int64"),
            "flag": [True, False, True],
            "single": np.array([0.5, 1.5, 2.5], dtype=np.float32),
            "kind": pd.Categorical(["a", "b", "a"]),
        }
    )
    path = tmp_path / f"t.{kind}"
    getattr(frame, f"to_{kind}")(path)
    table = read_table(path, label="kind")
    assert table.mean.tolist() == [[1, 1, 1, 0.5], [2, 2, 0, 1.5], [3, 3, 1, 2.5]]
    assert table.labels == ["a", "b", "a"]
    assert read_table(path, label="flag", drop=["kind"]).labels == ["True", "False", "True"]
    frame.loc[1, "nullable"] = pd.NA
    frame.loc[2, "kind"] = None
    getattr(frame, f"to_{kind}")(path)
    with pytest.raises(TableError, match="row 2, column 'nullable': missing value"):
        read_table(path, label="kind")
    assert read_table(path, label="kind", reading=Reading(missing="drop")).labels == ["a"]
    with pytest.raises(TableError, match="column 'kind' holds text or other things"):
        read_table(path, label="flag")


def catalogue():
    """Fluxes whose errors have another unit, magnitudes, and a mask."""
    return QTable(
        {
            "flux": [1.0, 2.0, 3.0, 4.0] * u.mJy,
            "flux_err": [100.0, 200.0, 300.0, 400.0] * u.uJy,
            "mag": [15.0, 16.0, 17.0, 18.0] * u.mag,
            "e_mag": [10.0, 20.0, 30.0, 40.0] * u.mmag,
            "type": ["star", "star", "qso", "qso"],
        }
    )


@pytest.mark.parametrize("kind", ASTROPY)
def test_errors_are_converted_to_the_unit_of_their_values(tmp_path, kind):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    catalogue().write(path, format=NAMES[kind])
    table = read_table(path, label="type")
    assert table.features == ("flux [mJy]", "mag [mag]")
    assert table.mean.tolist() == [[1, 15], [2, 16], [3, 17], [4, 18]]
    np.testing.assert_allclose(table.std, [[k / 10, k / 100] for k in (1, 2, 3, 4)], rtol=1e-15)


@pytest.mark.parametrize("kind", ASTROPY)
@pytest.mark.parametrize(("name", "power"), [("var", 2), ("ivar", -2)])
def test_units_of_variances_are_squares(tmp_path, kind, name, power):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    given = QTable({"f": [1.0, 2.0] * u.m, f"f_{name}": ([20.0, 30.0] * u.cm) ** power})
    given.write(path, format=NAMES[kind])
    np.testing.assert_allclose(read_table(path).std, [[0.2], [0.3]], rtol=1e-14)


@pytest.mark.parametrize("kind", ASTROPY)
def test_masked_cells_are_missing(tmp_path, kind):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    given = Table(catalogue())
    given["flux"] = MaskedColumn([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0], unit="mJy")
    given["n"] = MaskedColumn([1, 2, 3, 4], mask=[0, 0, 0, 1])
    given.write(path, format=NAMES[kind])
    with pytest.raises(TableError, match="row 2, column 'flux': missing value"):
        read_table(path, label="type")
    table = read_table(path, label="type", reading=Reading(missing="drop"))
    assert table.mean[:, 0].tolist() == [1.0, 3.0]
    assert table.lines.tolist() == [1, 3]
    table = read_table(path, label="type", reading=Reading(missing="impute"))
    np.testing.assert_array_equal(np.isnan(table.mean).sum(axis=0), [1, 0, 1])


@pytest.mark.parametrize("kind", ASTROPY)
def test_units_that_do_not_fit_are_refused_with_their_columns(tmp_path, kind):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    QTable({"f": [1.0] * u.m, "f_err": [1.0] * u.s}).write(path, format=NAMES[kind])
    with pytest.raises(TableError, match="'f_err'"):
        read_table(path)
    QTable({"f": [1.0] * u.m, "f_err": [1.0]}).write(path, format=NAMES[kind], overwrite=True)
    with pytest.raises(TableError, match="'f_err' has no unit, column 'f' has the unit m"):
        read_table(path)


def test_values_are_converted_to_the_units_of_a_model(tmp_path):
    path = tmp_path / "t.fits"
    given = catalogue()
    given["flux"], given["mag"] = given["flux"].to(u.Jy), given["mag"].to(u.mmag)
    given.write(path)
    table = read_table(path, model_features=["flux [mJy]", "mag [mag]"])
    np.testing.assert_allclose(table.mean[0], [1, 15], rtol=1e-14)
    np.testing.assert_allclose(table.std[0], [0.1, 0.01], rtol=1e-14)
    with pytest.raises(TableError, match=r"'flux' has the unit Jy, the model .* in no unit"):
        read_table(path, model_features=["flux"])
    with pytest.raises(TableError, match=r"'mag' has the unit mmag, the model .* in s: "):
        read_table(path, model_features=["mag [s]"])
    plain = tmp_path / "t.csv"
    plain.write_text("flux,mag [mag]\n1,2\n")
    with pytest.raises(TableError, match=r"'flux' has no unit, the model .* in mJy"):
        read_table(plain, model_features=["flux [mJy]"])
    assert read_table(plain, model_features=["mag [mag]"]).mean.tolist() == [[2]]


def test_columns_with_several_numbers_are_no_features(tmp_path):
    path = tmp_path / "t.fits"
    Table({"a": [1.0, 2.0], "spectrum": np.ones((2, 5))}).write(path)
    with pytest.raises(TableError, match="'spectrum' holds more numbers in each row"):
        read_table(path)
    assert read_table(path, drop=["spectrum"]).features == ("a",)


@pytest.mark.parametrize("kind", [k for k in WITH_COLUMNS if k != "csv"])
def test_damaged_files_are_told(tmp_path, columns, kind):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    write_columns(columns, path, kind)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match=r"t\.\w+ is not a readable \w+ table: "):
        read_table(path)
    path.write_bytes(b"")
    with pytest.raises(TableError, match=r"t\.\w+ is not a readable \w+ table: "):
        read_table(path)


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("fits", "astropy")])
def test_package_that_is_not_there_is_named_with_its_extra(
    tmp_path, columns, kind, package, monkeypatch
):
    path = tmp_path / f"t{SUFFIXES[kind]}"
    write_columns(columns, path, kind)
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TableError, match=rf"needs {package}: pip install 'halosvm\[io\]'"):
        read_table(path, label="kind")
    with pytest.raises(TableError, match=rf"needs {package}: pip install 'halosvm\[io\]'"):
        write_columns(columns, path, kind)


@pytest.mark.parametrize("kind", ASTROPY)
def test_tables_are_written_with_their_units(tmp_path, kind):
    source = tmp_path / "t.fits"
    catalogue().write(source)
    table = read_table(source, label="type")
    path = tmp_path / f"out{SUFFIXES[kind]}"
    write_table(table, path, kind, "type")
    again = read_table(path, label="type")
    assert again.features == table.features
    np.testing.assert_array_equal(again.mean, table.mean)
    np.testing.assert_array_equal(again.std, table.std)
