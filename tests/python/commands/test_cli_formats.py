"""The command line on files of all formats: catalogues with units, public examples, conversions."""

import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import astropy.units as u
import numpy as np
import pytest
from astropy.table import MaskedColumn, QTable, Table
from commands.running import run, summary

from halosvm import Gaussians, UncertainSVC, load_model, reference
from halosvm.commands.cli import main
from halosvm.files.tables.opening import FORMATS
from halosvm.files.tables.table import read_table

DATA = Path(__file__).parents[1] / "data"
TOY = DATA / "toy_svmgsu"


@pytest.mark.parametrize("kind", ["diag", "iso"])
def test_public_example_is_trained_to_a_millionth_of_its_optimum(tmp_path, capsys, toy, kind):
    means, variances, y = toy
    model = tmp_path / "toy.json"
    labels = ["--labels", TOY / "labels.dat.gz"]
    errors = ["--covariances", TOY / f"cov_{kind}.dat.gz"]
    errors += ["--covariances-are", "isotropic"] if kind == "iso" else []
    options = ["--lambda", 0.001, "--scale", "none", "--folds", 0, "--output", model]
    status, out, err = run(capsys, "train", TOY / "mean.dat.gz", *labels, *errors, *options)
    assert (status, err) == (0, "")
    lines = summary(out)
    objective = float(lines["objective"])
    loaded = load_model(model)
    if kind == "diag":
        best = 1.5988772786e-4  # to ten digits, by an independent solver
        assert best * (1 - 1e-9) <= objective <= best * (1 + 1e-6)
        X = Gaussians(means, variance=variances)
        value, *_ = reference.objective_and_gradient(
            X, y, loaded.coef_[0], loaded.intercept_[0], 1e-3
        )
        assert objective == pytest.approx(value, rel=1e-9)
    status, out, _ = run(
        capsys, "predict", model, TOY / "mean.dat.gz", *errors, "--output", tmp_path / "p.parquet"
    )
    assert (status, out) == (0, "")
    predicted = read_table(tmp_path / "p.parquet", label="label")
    assert [int(label) for label in predicted.labels] == y.tolist()
    status, out, _ = run(capsys, "evaluate", model, TOY / "mean.dat.gz", *labels)
    assert status == 0
    assert out.startswith("accuracy     100.00 % (10000 of 10000 rows)\n")


def test_svmlight_example_is_trained_as_it_is(tmp_path, capsys, heart):
    X, y = heart
    model, path = tmp_path / "m.json", DATA / "heart_scale" / "heart_scale"
    options = ["--scale", "none", "--C", 1, "--output", model]
    status, out, _ = run(capsys, "train", path, *options)
    assert status == 0
    assert "-1 (150), 1 (120)" in out
    direct = UncertainSVC(random_state=0).fit(X, y)
    np.testing.assert_allclose(load_model(model).coef_, direct.coef_, atol=1e-6)
    status, out, _ = run(capsys, "evaluate", model, path)
    assert f"({int(np.sum(direct.predict(X) == y))} of 270 rows)" in out


@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "rbf"),
        ("--estimator", "IsotropicKernelSVC"),
        ("--estimator", "TotalSVC"),
        ("--kernel", "rbf", "--calibrate", "sigmoid"),
        ("--approximate", "fourier:10"),
        ("--errors", "measurement"),
    ],
)
def test_models_that_take_no_sparse_data_take_svmlight_in_full(tmp_path, capsys, heart, options):
    X, y = heart
    svmlight, npz = DATA / "heart_scale" / "heart_scale", tmp_path / "t.npz"
    np.savez(npz, X=X, y=y)
    told = []
    for path in (svmlight, npz):
        model = tmp_path / "m.json"
        train = ("train", path, "--scale", "none", "--C", 1, "--folds", 2, "--output", model)
        status, _, err = run(capsys, *train, *options)
        assert status == 0, err
        predicted, evaluated = (run(capsys, word, model, path) for word in ("predict", "evaluate"))
        assert (predicted[0], evaluated[0]) == (0, 0)
        told.append((predicted[1], evaluated[1]))
    assert told[0] == told[1]


@pytest.fixture
def stars():
    """Fluxes whose errors have another unit, colours with a mask, and an id."""
    rng = np.random.default_rng(8)
    n = 80
    kind = np.where(np.arange(n) % 2, "star", "qso")
    flux = rng.lognormal(size=n) + 2.0 * (kind == "star")
    table = Table(
        QTable(
            {
                "flux": flux * u.mJy,
                "e_flux": rng.uniform(50, 300, n) * u.uJy,
                "colour": rng.normal(size=n) * u.mag,
                "e_colour": rng.uniform(10, 50, n) * u.mmag,
                "id": np.arange(n),
                "type": kind,
            }
        )
    )
    mask = np.arange(n) % 10 == 3
    table["colour"] = MaskedColumn(table["colour"], mask=mask, unit=u.mag)
    return table, mask


@pytest.mark.parametrize(("suffix", "kind"), [("fits", "fits"), ("vot", "votable")])
def test_catalogue_trains_with_its_own_units_and_masks(tmp_path, capsys, stars, suffix, kind):
    table, mask = stars
    path, model = tmp_path / f"stars.{suffix}", tmp_path / "m.json"
    table.write(path, format=kind)
    common = [
        "train",
        path,
        "--label",
        "type",
        "--drop",
        "id",
        "--C",
        1,
        "--errors",
        "distribution",
        "--output",
        model,
    ]
    status, _, err = run(capsys, *common)
    assert status == 1
    assert "row 4, column 'colour': missing value" in err
    status, out, err = run(capsys, *common, "--missing", "drop")
    assert status == 0
    assert "8 of 80 rows with missing cells left out" in err
    X = Gaussians(
        np.column_stack([table["flux"], table["colour"].filled(0)])[~mask],
        std=np.column_stack([table["e_flux"] / 1000, table["e_colour"] / 1000])[~mask],
    )
    loaded = load_model(model)
    assert loaded.feature_names_in_.tolist() == ["flux [mJy]", "colour [mag]"]
    unit, centre = X.mean.std(axis=0), X.mean.mean(axis=0)
    scaled = Gaussians((X.mean - centre) / unit, std=np.sqrt(X.covariances.variances()) / unit)
    direct = UncertainSVC(random_state=0).fit(scaled, np.asarray(table["type"])[~mask].astype(str))
    np.testing.assert_allclose(
        loaded.decision_function(Gaussians(X.mean)), direct.decision_function(scaled), atol=1e-6
    )
    # the same catalogue in other units gives the same predictions
    _, expected, _ = run(capsys, "predict", model, path, "--missing", "drop", "--keep", "id")
    other = Table(QTable(table))
    other["flux"] = (np.asarray(table["flux"]) * 1000) * u.uJy
    other["e_flux"] = (np.asarray(table["e_flux"]) * 1e-6) * u.Jy
    other.write(path, format=kind, overwrite=True)
    _, out, _ = run(capsys, "predict", model, path, "--missing", "drop", "--keep", "id")
    rows = [list(csv.reader(io.StringIO(text))) for text in (out, expected)]
    assert [row[:2] for row in rows[0]] == [row[:2] for row in rows[1]]
    numbers = [np.array([row[2:] for row in each[1:]], dtype=float) for each in rows]
    np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-12)
    plain = tmp_path / "plain.csv"
    plain.write_text("flux,colour\n1,2\n")
    status, _, err = run(capsys, "predict", model, plain)
    assert status == 1
    assert "column 'flux' has no unit, the model was trained on it in mJy" in err


@pytest.mark.parametrize(("suffix", "kind"), [("fits", "fits"), ("vot", "votable")])
def test_masked_values_are_estimated_where_errors_are_measurements(
    tmp_path, capsys, stars, suffix, kind
):
    table, _ = stars
    path, model = tmp_path / f"stars.{suffix}", tmp_path / "m.json"
    table.write(path, format=kind)
    options = ["--errors", "measurement", "--missing", "impute", "--C", 1, "--output", model]
    status, out, err = run(capsys, "train", path, "--label", "type", "--drop", "id", *options)
    assert status == 0
    assert "rows           80\n" in out
    assert "8 missing values estimated from the others of their rows" in err
    status, out, _ = run(capsys, "predict", model, path, "--missing", "impute")
    assert status == 0
    values = np.array([row.split(",")[1] for row in out.splitlines()[1:]], dtype=float)
    assert len(values) == 80
    assert np.isfinite(values).all()
    assert run(capsys, "predict", model, path)[0] == 1
    status, _, err = run(capsys, "evaluate", model, path, "--label", "type", "--missing", "impute")
    assert status == 0


WRITTEN = [kind for kind in FORMATS if kind not in ("svm-gsu", "svmlight")]


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("source", WRITTEN)
def test_every_format_is_converted_to_every_other_bit_for_bit(tmp_path, capsys, source, target):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)) * 10.0 ** rng.integers(-60, 60, (12, 2))
    first = tmp_path / "first.npz"
    labels = np.where(np.arange(12) % 2, "up", "down")
    np.savez(first, X=X, X_std=np.abs(X) / 3, y=labels, feature_names=["a", "b"])
    one, other = tmp_path / f"one.{source}", tmp_path / f"other.{target}"
    named = {"votable": ".vot"}
    one, other = (
        path.with_suffix(named.get(kind, f".{kind}"))
        for path, kind in ((one, source), (other, target))
    )
    assert run(capsys, "convert", first, one)[0] == 0
    label = [] if source == "npz" else ["--label", "label"]
    status, out, err = run(capsys, "convert", one, other, *label)
    assert (status, out) == (0, "")
    assert "12 rows; 2 features" in err
    table = read_table(other, label=None if target == "npz" else "label")
    assert table.features == ("a", "b")
    np.testing.assert_array_equal(table.mean, X)
    got = table.examples.covariances
    np.testing.assert_array_equal(
        np.sqrt(got.values**2) if got.squared else got.values, np.abs(X) / 3
    )
    assert table.labels == labels.tolist()


def test_conversion_needs_a_format(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    status, _, err = run(capsys, "convert", path, tmp_path / "out.dat")
    assert status == 1
    assert "names no format; name one by --to" in err
    assert run(capsys, "convert", path, tmp_path / "out.dat", "--to", "csv")[0] == 0
    assert (tmp_path / "out.dat").read_text() == "a,b\n1.0,2.0\n"


def test_numbers_are_written_and_read_alike_in_a_locale_with_decimal_commas(tmp_path):
    if shutil.which("locale") is None:
        pytest.skip("there is no command that tells which locales are installed")
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    name = next((n for n in locales.split() if n.lower().startswith("de_de")), None)
    if name is None:
        pytest.skip("the locale de_DE is not installed")
    path = tmp_path / "t.csv"
    path.write_text("x,x_std,kind\n-2.5,0.1,a\n-1.25,0.2,a\n1.5,0.3,b\n2.125,0.4,b\n")
    outputs = []
    for locale in ("C.UTF-8", name):
        model = tmp_path / f"{locale}.json"
        env = os.environ | {"LC_ALL": locale}
        halosvm = [sys.executable, "-c", _WITH_LOCALE]
        arguments = ["train", path, "--label", "kind", "--C", "1", "--output", model]
        subprocess.run([*halosvm, *arguments], env=env, check=True, capture_output=True)
        done = subprocess.run(
            [*halosvm, "predict", model, path], env=env, check=True, capture_output=True
        )
        outputs.append((model.read_bytes(), done.stdout))
    assert outputs[0] == outputs[1]


_WITH_LOCALE = """
import locale, sys
locale.setlocale(locale.LC_ALL, "")
from halosvm.commands.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_show_config_tells_versions(capsys):
    status, out, _ = run(capsys, "show-config")
    assert status == 0
    assert out.startswith("halosvm")


@pytest.mark.parametrize("command", ["", "train", "predict", "evaluate", "convert"])
def test_help_has_examples_and_exit_statuses(capsys, command):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"] if command else ["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "examples:\n  halosvm " in out
    assert "exit status: 0; 1 for" in out


DOCS = Path(__file__).parents[3] / "docs" / "command_line.md"


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")
def test_documented_commands_run_and_documented_options_exist(tmp_path, capsys, monkeypatch):
    text = DOCS.read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line.startswith("    halosvm ")]
    for folder in ("toy_svmgsu", "heart_scale"):
        (tmp_path / folder).symlink_to(DATA / folder)
    monkeypatch.chdir(tmp_path)
    ran = [shlex.split(line)[1:] for line in commands if "toy" in line or "heart" in line]
    assert [arguments[0] for arguments in ran] == ["train", "predict", "evaluate", "train"]
    for arguments in ran:
        status, out, err = run(capsys, *arguments)
        assert status == 0, err
        if arguments[0] == "train" and "toy.json" in arguments:
            assert "objective      0.0001598877" in out
    known = ""
    for command in ("doctor", "train", "predict", "evaluate", "convert", "next"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        known += capsys.readouterr().out
    options = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", text)) - {"--help"}
    assert len(options) > 30
    assert {option for option in options if not re.search(rf"{option}(?![\w-])", known)} == set()


def test_progress_is_told_on_a_terminal_alone(tmp_path, capsys, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(12)))
    common = ["train", path, "--label", "kind", "--folds", 2, "--output", tmp_path / "m.json"]
    assert run(capsys, *common)[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "trying 9 values of C on 2 folds\n" in run(capsys, *common)[2]


def test_readers_of_tables_are_imported_where_tables_are_read_alone():
    # scikit-learn imports pandas by itself where it is there
    code = "import sys; sys.modules |= dict.fromkeys(['pandas', 'pyarrow', 'astropy']); import "
    done = subprocess.run([sys.executable, "-c", code + "halosvm.commands.cli"], check=False)
    assert done.returncode == 0


def test_predictions_refuse_what_they_cannot_do(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("x,label\n" + "".join(f"{k},{'ab'[k > 5]}\n" for k in range(12)))
    train = ["train", path, "--label", "label", "--C", 1, "--output", model]
    assert run(capsys, *train)[0] == 0
    status, _, err = run(capsys, "predict", model, path, "--missing", "impute")
    assert status == 2
    assert "was trained without --errors measurement and knows no population" in err
    status, _, err = run(capsys, "predict", model, path, "--keep", "label")
    assert status == 2
    assert "--keep label: the predictions have a column 'label' of their own" in err
    status, _, err = run(capsys, "predict", model, path, "--output", tmp_path / "p.npz")
    assert status == 2
    assert "predictions have columns, npz has none" in err
    status, _, err = run(capsys, "train", path, "--C", 1, "--output", model)
    assert status == 2
    assert "which column holds the labels? Give --label; its columns are 'x', 'label'" in err
