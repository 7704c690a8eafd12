"""`halosvm doctor` from end to end: a small table in; a screen, a figure and refusals out."""

import csv
import os
import sys

import numpy as np
import pandas as pd
import pytest
from commands.running import run
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, r2_score
from sklearn.pipeline import make_pipeline

import halosvm


@pytest.fixture
def table(tmp_path):
    """Return the path of a table whose errors are told half as large."""
    return written(tmp_path / "table.csv", 160, told=0.5)


def written(path, n, told=1.0, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    v = 2.0 * y[:, None] + rng.normal(size=(n, 2))
    std = scale * np.exp(0.8 * rng.normal(size=(n, 2)))
    x = v + std * rng.normal(size=(n, 2))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", "mass", "flux", "mass_err", "flux_err"])
        rows = zip(y, x.tolist(), (told * std).tolist(), strict=True)
        writer.writerows([f"k{k}", *a, *e] for k, a, e in rows)
    return path


def test_screen_is_that_of_the_function(capsys, table):
    status, out, err = run(capsys, "doctor", table, "--label", "kind", "--seed", "3")
    assert status == 0
    assert "taken as errors" in err
    lines = table.read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    x = np.array([cell[1:] for cell in cells], float)
    X = halosvm.Gaussians(x[:, :2], std=x[:, 2:])
    found = halosvm.doctor(X, [cell[0] for cell in cells], random_state=3)
    assert f"{found.error_tests[0].factor:.3g}" in out
    for part in ("1 How large", "2 Are they", "3 Do errors", "4 What is", "5 What do", "6 Advice"):
        assert f"\n{part}" in out
    best = sorted(found.candidates, key=lambda each: each.log_loss)
    for candidate in best[:3]:  # not all of many
        assert f"{candidate.log_loss:.3f}" in out
    typed = " ".join(out.replace("\\\n", "").split())
    assert f"halosvm doctor {table} --label kind --output model.skops" in typed
    assert max(map(len, out.splitlines())) <= max(100, len(str(table)) + 30)


def test_the_command_that_is_advised_runs(capsys, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = run(capsys, "doctor", table.name, "--label", "kind")
    words = out[out.index("halosvm doctor ", 20) :].replace("\\", "").split()
    pytest.importorskip("skops")
    status, _, _ = run(capsys, *words[1:])
    assert status == 0
    assert halosvm.load_model("model.skops").classes_.tolist()


def test_rows_of_another_table_are_compared_without_their_labels(capsys, table, tmp_path):
    other = written(tmp_path / "other.csv", 60, seed=1, scale=8.0)
    status, out, _ = run(capsys, "doctor", table, "--label", "kind", "--test", other)
    assert status == 0
    assert "Of 60 other rows" in out
    assert "do not let a classifier read sizes" in out.replace("\n ", "")


def test_matplotlib_that_is_missing_is_told_before_the_work(capsys, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run(capsys, "doctor", table, "--figure", "figure.png")
    assert (status, out) == (1, "")
    assert "pip install 'halosvm[plot]'" in err


def test_figure_appears_whole_or_not_at_all(capsys, table, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = tmp_path / "figure.png"
    status, _, _ = run(capsys, "doctor", table, "--drop", "kind", "--figure", figure)
    assert status == 0
    assert plt.imread(figure).std() > 0
    before = figure.read_bytes()

    calls = []

    def full(*_):
        calls.append(None)
        if len(calls) > 1:  # the first is the trial before the work
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    status, _, err = run(capsys, "doctor", table, "--drop", "kind", "--figure", figure)
    assert status == 1
    assert "no space left" in err
    assert figure.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "table.csv"]


def test_values_to_tell_are_a_regression(capsys, table):
    status, out, _ = run(capsys, "doctor", table, "--label", "mass", "--drop", "kind,mass_err")
    assert status == 0
    assert "160 different numbers are values of a regression" in out
    assert "--task regression" in out


def test_missing_cells_are_counted(capsys, table):
    text = table.read_text().splitlines()
    for line in range(1, 17):
        cells = text[line].split(",")
        cells[1] = cells[3] = ""
        text[line] = ",".join(cells)
    table.write_text("\n".join(text))
    status, out, _ = run(capsys, "doctor", table, "--drop", "kind")
    assert status == 0
    assert "5 % of the values are missing" in out


def without_cells(table, lines, *columns):
    """Make cells of a table empty."""
    rows = [line.split(",") for line in table.read_text().splitlines()]
    for line in lines:
        for column in columns:
            rows[line][column] = ""
    table.write_text("\n".join(map(",".join, rows)) + "\n")


def columns_of(path):
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def numbers(cells):
    return np.array([float(cell or "nan") for cell in cells])


def test_what_was_chosen_predicts_and_is_judged(capsys, table, tmp_path):
    model, answers = tmp_path / "model.skops", tmp_path / "answers.csv"
    new = written(tmp_path / "new.csv", 50, told=0.5, seed=7)
    without_cells(table, range(1, 20), 1, 3)
    without_cells(new, range(1, 6), 2, 4)
    pytest.importorskip("skops")
    status, out, err = run(capsys, "doctor", table, "--label", "kind", "--output", model)
    assert status == 0, err
    assert "6 Advice" in out

    found = halosvm.load_model(model)
    assert isinstance(found, halosvm.MeasurementClassifier)
    assert found.feature_names_in_.tolist() == ["mass", "flux"]
    cells = columns_of(new)
    values = pd.DataFrame({name: numbers(cells[name]) for name in ("mass", "flux")})
    errors = np.column_stack([numbers(cells[name]) for name in ("mass_err", "flux_err")])
    wanted = found.predict_proba(values, X_std=errors)[:, 1]
    status, _, err = run(capsys, "predict", model, new, "--missing", "impute", "--output", answers)
    assert status == 0, err
    assert f"answered by {found.chosen_[0]!r}" in err
    predicted = columns_of(answers)
    assert list(predicted) == ["label", "probability"]
    assert numbers(predicted["probability"]).tobytes() == wanted.tobytes()

    right = sum(a == b for a, b in zip(predicted["label"], cells["kind"], strict=True))
    status, out, err = run(capsys, "evaluate", model, new, "--missing", "impute")
    assert status == 0, err
    assert f"({right} of 50 rows)" in out
    ranking = average_precision_score([kind == "k1" for kind in cells["kind"]], wanted)
    assert f"average precision {ranking:.4f} of k1, by probability" in out
    assert "mean error of the probability of k1" in out


COLUMNS = halosvm.MeasurementFeatures(("values", "means", "missing"), random_state=0)


@pytest.mark.parametrize(
    ("model", "ending", "answered"),
    [
        (halosvm.ClassPopulations(1), "json", "answered by 'ClassPopulations'"),
        (halosvm.ClassPopulations(1), "skops", "answered by 'ClassPopulations'"),
        (make_pipeline(COLUMNS, LogisticRegression()), "skops", "by 'MeasurementFeatures'"),
    ],
)
def test_models_that_know_missing_values_estimate_them(
    capsys, table, tmp_path, model, ending, answered
):
    if ending == "skops":
        pytest.importorskip("skops")
    without_cells(table, range(1, 20), 1, 3)
    cells = columns_of(table)
    values, errors = (
        np.column_stack([numbers(cells[name + kind]) for name in ("mass", "flux")])
        for kind in ("", "_err")
    )
    X = halosvm.Gaussians(values, std=errors)
    model.fit(X, cells["kind"])
    path, answers = tmp_path / f"model.{ending}", tmp_path / "answers.csv"
    halosvm.save_model(model, path)
    text = table.read_text().replace("mass", "1").replace("flux", "2")  # what it calls them
    table.write_text(text)
    words = (path, table, "--missing", "impute")
    status, _, err = run(capsys, "predict", *words, "--output", answers)
    assert status == 0, err
    assert answered in err
    wanted = model.predict_proba(X)[:, 1]
    assert numbers(columns_of(answers)["probability"]).tobytes() == wanted.tobytes()
    status, out, err = run(capsys, "evaluate", *words, "--label", "kind")
    assert status == 0, err
    assert f"{average_precision_score(np.array(cells['kind']) == 'k1', wanted):.4f} of k1" in out


def test_values_of_a_chosen_regression_are_predicted_and_judged(capsys, tmp_path):
    pytest.importorskip("skops")
    rng = np.random.default_rng(2)
    X, errors = rng.normal(size=(80, 2)), rng.uniform(0.1, 0.5, size=(80, 2))
    y = X @ [1.0, 2.0]
    frame = pd.DataFrame(X, columns=["mass", "flux"])
    model, new, answers = (tmp_path / name for name in ("m.skops", "new.csv", "answers.csv"))
    ways = ["values, ridge", "means, ridge"]
    regressor = halosvm.MeasurementRegressor(ways, random_state=0).fit(frame, y, X_std=errors)
    halosvm.save_model(regressor, model)
    frame.assign(mass_err=errors[:, 0], flux_err=errors[:, 1], value=y).to_csv(new, index=False)
    status, _, err = run(capsys, "predict", model, new, "--output", answers)
    assert status == 0, err
    predicted = numbers(columns_of(answers)["value"])
    assert predicted.tobytes() == regressor.predict(frame, X_std=errors).tobytes()
    status, out, err = run(capsys, "evaluate", model, new, "--label", "value")
    assert status == 0, err
    assert f"R^2                  {r2_score(y, predicted):.4f} (80 rows)" in out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--label", "nothing"], 1, "'nothing'"),
        (["--figure", "figure.txt"], 2, "its ending must be one of .png, .pdf, .svg"),
        (["--output", "model.skops"], 2, "--output needs --label"),
        (["--label", "kind", "--output", "model.json"], 2, "name the file *.skops"),
        (["--label", "kind", "--output", "-"], 2, "name the file *.skops"),
        (["--features", "mass"], 1, "no column of errors"),
        (["--drop", "kind", "--test", "nothing.csv"], 1, "nothing.csv"),
    ],
)
def test_refusals_are_one_line(capsys, table, tmp_path, monkeypatch, words, status, message):
    monkeypatch.chdir(tmp_path)
    if "mass" in words:
        table.write_text("kind,mass\na,1\nb,2\n")
    found, _, err = run(capsys, "doctor", table, *words)
    assert found == status
    last = err.strip().splitlines()[-1]
    assert last.startswith("halosvm doctor: error: ")
    assert message in last


def test_a_bad_cell_is_named_by_file_line_and_column(capsys, table):
    text = table.read_text().splitlines()
    text[5] = text[5].rsplit(",", 1)[0] + ",-2"
    table.write_text("\n".join(text))
    status, _, err = run(capsys, "doctor", table, "--label", "kind")
    assert status == 1
    assert "table.csv, line 6, column 'flux_err'" in err
    assert "-2" in err


def test_the_figure_is_not_written_over_the_table(capsys, tmp_path):
    table = written(tmp_path / "table.png", 40)
    before = table.read_bytes()
    status, _, err = run(
        capsys, "doctor", table, "--format", "csv", "--drop", "kind", "--figure", table
    )
    assert status == 2
    assert "which is an input" in err
    assert table.read_bytes() == before
