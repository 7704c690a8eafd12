"""``halosvm next``: what it writes is what `next_measurement` says of the same model and table."""

import csv
import io

import numpy as np
import pytest
from commands.running import run, without_pairs

from halosvm import Gaussians, load_model, next_measurement

RNG = np.random.default_rng(0)
N = 60
Y = np.where(np.arange(N) % 2, "star", "galaxy")
ERRORS = RNG.uniform(0.1, 2.0, (N, 2))
X = np.column_stack([2.0 * (Y == "star"), np.zeros(N)]) + RNG.normal(size=(N, 2)) * (0.5 + ERRORS)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    columns = [[f"s{i}" for i in range(N)], *np.round(X, 4).T, *np.round(ERRORS, 4).T, Y]
    rows = zip(*columns, strict=True)
    head = "id,flux,size,flux_err,size_err,kind"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def train(tmp_path, capsys, table, *options):
    model = tmp_path / "model.json"
    words = ("--label", "kind", "--drop", "id", "--C", 1, "--folds", 0, "--output", model)
    assert run(capsys, "train", table, *words, *options)[0] == 0
    return model


def test_readings_are_those_of_the_function_with_columns_to_keep(tmp_path, capsys, table):
    model = train(tmp_path, capsys, table, "--errors", "measurement")
    words = ("--new-error", 0.5, "--new-error", "flux=0.2", "--cost", "flux=4", "--top", 7)
    status, out, err = run(capsys, "next", model, table, "--keep", "id", *words)
    assert status == 0
    assert without_pairs(err).startswith("halosvm next: note: 60 rows; 2 features, 2 of them with")
    rows = list(csv.DictReader(io.StringIO(out)))
    data = Gaussians(np.round(X, 4), std=np.round(ERRORS, 4))
    expected = next_measurement(load_model(model), data, new_error=[0.2, 0.5], cost=[4.0, 1.0])[:7]
    assert [row["feature"] for row in rows] == [["flux", "size"][j] for j in expected["feature"]]
    assert [row["id"] for row in rows] == [f"s{i}" for i in expected["row"]]
    assert [int(row["line"]) for row in rows] == [i + 2 for i in expected["row"]]
    for name in ("wrong", "wrong_after", "gain", "cost", "gain_per_cost", "largest_error"):
        found = [float(row[name]) for row in rows]
        np.testing.assert_allclose(found, expected[name], rtol=1e-12)


def test_features_without_an_error_are_not_read_again(tmp_path, capsys, table):
    model = train(tmp_path, capsys, table, "--errors", "measurement")
    _, out, _ = run(capsys, "next", model, table, "--new-error", "size=0.2", "--top", 1000)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == N
    assert {row["feature"] for row in rows} == {"size"}


def test_machines_without_formulas_have_no_largest_error(tmp_path, capsys, table):
    options = ("--errors", "measurement", "--calibrate", "sigmoid", "--folds", 3)
    model = train(tmp_path, capsys, table, *options)
    status, out, _ = run(capsys, "next", model, table)
    assert status == 0
    assert out.splitlines()[0] == "line,feature,wrong,wrong_after,gain,cost,gain_per_cost"
    assert len(out.splitlines()) == 21


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--new-error", "colour=1"), 2, "--new-error colour: the model has no such feature; it"),
        (("--new-error", "-1"), 2, "argument --new-error: '-1' is not a positive number"),
        (("--epsilon", "0.7"), 1, "epsilon must be above 0 and below 1/2, got 0.7"),
        (("--to", "svmlight"), 2, "what to measure has columns, svmlight has none"),
        (("--keep", "gain"), 2, "--keep gain: the readings have a column 'gain' of their own"),
    ],
)
def test_options_that_make_no_sense_are_told(tmp_path, capsys, table, words, status, message):
    model = train(tmp_path, capsys, table)
    if "gain" in words:
        table.write_text(table.read_text().replace("id,", "gain,", 1))
    try:
        found = run(capsys, "next", model, table, *words)
    except SystemExit as end:
        found = (end.code, *capsys.readouterr())
    assert found[0] == status
    assert message in found[2]


def test_readings_are_not_told_for_a_regression(tmp_path, capsys, table):
    model = tmp_path / "model.json"
    words = ("--target", "size", "--drop", "id,kind,size_err", "--task", "regression", "--C", 1)
    assert run(capsys, "train", table, *words, "--folds", 0, "--output", model)[0] == 0
    status, _, err = run(capsys, "next", model, table)
    assert status == 2
    assert "predicts values; readings are judged for classes" in err
