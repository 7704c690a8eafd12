"""Long tables on the command line against the wide tables that say the same."""

import numpy as np
import pytest
from commands.running import run, summary

from halosvm.files.tables.long import Long
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.roles import ErrorRules
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError
from halosvm.uncertainty import combined_readings, pooled_errors

FEATURES = ["Na", "K", "Ca"]
LONG = ["--long", "id,what,value,err"]


def measured(n=60, seed=0):
    """Return names of objects, their classes, values and errors."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    std = np.exp(0.5 * rng.normal(size=(n, 3)))
    x = 2.0 * y[:, None] + std * rng.normal(size=(n, 3))
    return [f"s{i}" for i in range(n)], y, x.round(6), std.round(6)


def write_wide(path, objects, y, x, std):
    lines = ["id," + ",".join(f"{f},{f}_err" for f in FEATURES) + ",class"]
    for name, label, values, errors in zip(objects, y, x, std, strict=True):
        cells = [
            "" if np.isnan(v) else f"{v!r},{e!r}"
            for v, e in zip(values.tolist(), errors.tolist(), strict=True)
        ]
        lines.append(",".join([name, *(c or "," for c in cells), "ab"[label]]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_long(path, objects, y, x, std, seed=0, label=True):
    rows = [(i, j) for i in range(len(x)) for j in range(3) if not np.isnan(x[i, j])]
    # Objects come in the order of the wide table; their other rows come anywhere.
    rest = np.random.default_rng(seed).permutation(len(rows))
    first = [next(r for r in rows if r[0] == i) for i in range(len(x))]
    rows = first + [rows[k] for k in rest if rows[k] not in first]
    lines = ["what,value,err,id" + ",class" * label]
    for i, j in rows:
        end = f",{'ab'[y[i]]}" if label else ""
        lines.append(f"{FEATURES[j]},{x[i, j].item()!r},{std[i, j].item()!r},{objects[i]}{end}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def tables(tmp_path):
    data = measured()
    return write_wide(tmp_path / "wide.csv", *data), write_long(tmp_path / "long.csv", *data)


def test_training_and_predictions_are_those_of_the_wide_table(tables, tmp_path, capsys):
    wide, long = tables
    model, other = tmp_path / "w.json", tmp_path / "l.json"
    common = ["--label", "class", "--C", 1]
    features = ["--features", ",".join(FEATURES)]
    run(capsys, "train", wide, *common, *features, "--output", model)
    status, out, err = run(capsys, "train", long, *common, *LONG, *features, "--output", other)
    assert status == 0, err
    assert summary(out)["errors"].startswith("measurement")
    assert summary(out)["rows"] == "60"
    _, expected, _ = run(capsys, "predict", model, wide, "--keep", "id")
    status, found, err = run(capsys, "predict", other, long, *LONG)
    assert status == 0, err
    assert found == expected
    _, expected, _ = run(capsys, "evaluate", model, wide)
    status, found, err = run(capsys, "evaluate", other, long, *LONG)
    assert status == 0, err
    assert found == expected
    # A model of one kind of table serves the other: error columns are called alike.
    assert run(capsys, "predict", other, wide, "--keep", "id")[1].startswith("id,label")


def test_a_wide_table_is_written(tables, tmp_path, capsys):
    wide, long = tables
    out = tmp_path / "out.csv"
    status, _, err = run(capsys, "convert", long, out, *LONG, "--label", "class")
    assert status == 0, err
    ours, theirs = (
        read_table(out, label="class", keep=["id"]),
        read_table(wide, label="class", keep=["id"]),
    )
    order = [ours.features.index(f) for f in theirs.features]
    np.testing.assert_allclose(ours.mean[:, order], theirs.mean)
    np.testing.assert_allclose(ours.std[:, order], theirs.std)
    assert ours.labels == theirs.labels
    assert ours.kept["id"].tolist() == theirs.kept["id"].tolist()


def test_the_doctor_reads_both_tables_long(tables, tmp_path, capsys):
    data = measured(seed=1)
    test = write_long(tmp_path / "test.csv", *data, label=False)
    status, out, err = run(capsys, "doctor", tables[1], *LONG, "--test", test)
    assert status == 0, err
    assert "60" in out


def test_combinations_without_a_row_are_missing_values(tmp_path, capsys):
    objects, y, x, std = measured()
    x[np.random.default_rng(3).random(x.shape) < 0.2] = np.nan
    x[np.isnan(x).all(axis=1), 1] = 1.0
    wide = write_wide(tmp_path / "wide.csv", objects, y, x, std)
    long = write_long(tmp_path / "long.csv", objects, y, x, std)
    told = read_table(wide, label="class", drop=["id"], reading=Reading(missing="impute"))
    reading = Reading(missing="impute", long=Long("id", "what", "value", "err"))
    table = read_table(long, label="class", features=FEATURES, reading=reading)
    np.testing.assert_array_equal(table.mean, told.mean)
    np.testing.assert_array_equal(table.std, told.std)
    status, _, err = run(
        capsys, "train", long, "--label", "class", *LONG, "--output", tmp_path / "m"
    )
    i = int(np.argmax(np.isnan(x).any(axis=1)))
    assert status == 1
    assert f"object s{i}, column" in err
    assert "missing value (an empty cell)" in err
    model = tmp_path / "m.json"
    impute = ["--missing", "impute", "--errors", "measurement"]
    status, _, err = run(
        capsys, "train", long, "--label", "class", *LONG, *impute, "--C", 1, "--output", model
    )
    assert status == 0, err
    # A table of one object lacks whole features.
    one = tmp_path / "one.csv"
    one.write_text("id,what,value,err\nnew,K,0.5,0.1\n")
    status, out, err = run(capsys, "predict", model, one, *LONG, "--missing", "impute")
    assert status == 0, err
    assert out.splitlines()[1].startswith("new,")


@pytest.mark.parametrize("holds", ["std", "variance", "inverse-variance"])
@pytest.mark.parametrize("with_error", [True, False])
def test_repeats_are_combined_by_their_errors_or_pooled(tmp_path, holds, with_error):
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(15), 2)
    x, std = rng.normal(size=30), np.exp(rng.normal(size=30))
    told = {"std": std, "variance": std**2, "inverse-variance": std**-2.0}[holds]
    rows = [
        f"o{g},K,{v!r},{e!r}" for g, v, e in zip(groups, x.tolist(), told.tolist(), strict=True)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id,what,value,err", *rows]) + "\n")
    long = Long("id", "what", "value", "err" if with_error else None, combined=True)
    table = read_table(path, reading=Reading(errors=ErrorRules(holds=holds), long=long))
    if with_error:
        expected = combined_readings(x[:, None], groups, X_std=std[:, None]).X
    else:
        expected = pooled_errors(x[:, None], groups).X
    np.testing.assert_allclose(table.mean, expected.mean)
    np.testing.assert_allclose(table.std**2, expected.covariances.variances())
    assert "15 of 15 values combined of several readings" in table.notes


def test_units_are_those_of_values_and_errors(tmp_path):
    astropy = pytest.importorskip("astropy.table")
    u = pytest.importorskip("astropy.units")
    path = tmp_path / "t.ecsv"
    table = {"id": ["a", "b"], "band": ["g", "g"], "flux": [1, 2] * u.Jy, "err": [100, 200] * u.mJy}
    astropy.QTable(table).write(path)
    long = Long("id", "band", "flux", "err")
    found = read_table(path, reading=Reading(long=long))
    assert found.features == ("g [Jy]",)
    np.testing.assert_allclose(found.std.ravel(), [0.1, 0.2])
    in_mjy = read_table(path, model_features=["g [mJy]"], reading=Reading(long=long))
    np.testing.assert_allclose(in_mjy.mean.ravel(), [1000, 2000])


@pytest.mark.parametrize("option", ["--label", "--keep", "--group", "--weight"])
def test_columns_that_differ_within_an_object_are_refused(tmp_path, capsys, option):
    path = tmp_path / "t.csv"
    path.write_text("id,what,value,x,class\na,K,1,1,p\nb,K,2,1,q\na,Na,3,2,p\nb,Na,3,1,q\n")
    out = tmp_path / "m.json"
    command = (
        ["convert", path, tmp_path / "o.csv"]
        if option == "--keep"
        else ["train", path, "--output", out]
    )
    command += [] if option in ("--keep", "--label") else ["--label", "class"]
    status, _, err = run(capsys, *command, option, "x", "--long", "id,what,value")
    assert status == 1
    assert "t.csv, line 4, column 'x': object 'a' has '2', and '1' in line 2" in err


@pytest.mark.parametrize(
    ("text", "long", "message"),
    [
        (
            "a,K,1\na,K,2\n",
            ("id", "what", "value"),
            "line 3: object 'a' has a second value of 'K', be",
        ),
        ("a,K,1\n,K,2\n", ("id", "what", "value"), "line 3, column 'id': an empty cell"),
        ("a,K,1\nb,,2\n", ("id", "what", "value"), "line 3, column 'what': an empty cell"),
        ("a,K,1\n", ("id", "what", "val"), "has no column 'val'; its columns are"),
        ("a,K,1\n", ("id", "what", "id"), "--long names column 'id' twice"),
        ("a,K,x\n", ("id", "what", "value"), "line 2, column 'value': 'x' is not a number"),
    ],
)
def test_bad_long_tables_are_refused_by_their_place(tmp_path, text, long, message):
    path = tmp_path / "t.csv"
    path.write_text("id,what,value\n" + text)
    with pytest.raises(TableError, match=message):
        read_table(path, reading=Reading(long=Long(*long)))


def test_options_that_do_not_go_together_are_refused(tables, capsys):
    command = ["train", tables[1], "--label", "class"]
    with pytest.raises(SystemExit, match="2"):
        run(capsys, *command, "--long", "id,what")
    assert "'id,what' is not OBJECT,FEATURE,VALUE[,ERROR]" in capsys.readouterr().err
    status, _, err = run(capsys, *command, "--repeats", "combine")
    assert status == 2
    assert "--repeats is of use only with --long" in err
    status, _, err = run(capsys, *command, "--long", "a,b,c", "--format", "svmlight")
    assert status == 2
    assert "--long is of use only with csv" in err


def test_errors_with_heavy_tails_are_a_parameter_of_the_population(tables, tmp_path, capsys):
    model = tmp_path / "m.json"
    settings = [
        "--errors",
        "measurement",
        "--population",
        "noise=student",
        "--population",
        "nu=4.0",
    ]
    train = ["train", tables[1], *LONG, "--label", "class", "--C", 1, *settings, "--output", model]
    status, _, err = run(capsys, *train)
    assert status == 0, err
    status, out, err = run(capsys, "predict", model, tables[1], *LONG)
    assert status == 0, err
    assert len(out.splitlines()) == 61
