"""``halosvm train --batch``: errors that rows of a night share, in tables."""

import csv

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from halosvm import EmpiricalBayes, Gaussians, UncertainStandardScaler, UncertainSVC
from halosvm.commands.cli import main


def write(path, seed, first):
    rng = np.random.default_rng(seed)
    n, d = 240, 3
    y, night = rng.integers(2, size=n), np.arange(n) % 12
    v = 2.0 * y[:, None] + rng.normal(size=(n, d))
    std = np.exp(0.5 * rng.normal(size=(n, d)))
    x = v + 4.0 * rng.normal(size=(12, d))[night] + std * rng.normal(size=(n, d))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", "night", "a", "b", "c", "a_err", "b_err", "c_err"])
        rows = zip(y, night, x.tolist(), std.tolist(), strict=True)
        writer.writerows([f"k{k}", f"n{g + first}", *each, *e] for k, g, each, e in rows)
    return x, std, np.array([f"k{k}" for k in y]), np.array([f"n{g + first}" for g in night])


@pytest.fixture
def tables(tmp_path):
    known, asked = tmp_path / "known.csv", tmp_path / "asked.csv"
    return known, write(known, 0, 0), asked, write(asked, 1, 12)


def run(capsys, *arguments):
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_predictions_are_those_of_the_pipeline_and_new_nights_have_their_offsets(
    capsys, tmp_path, tables
):
    known, (x, std, y, night), asked, (new, new_std, new_y, new_night) = tables
    model, output = tmp_path / "model.json", tmp_path / "out.csv"
    options = ["--label", "kind", "--C", 1, "--output", model]
    status, out, _ = run(capsys, "train", known, *options, "--batch", "night")
    assert status == 0
    assert "batches        12, of column 'night'" in out
    truth = EmpiricalBayes(batch_covariance="full", random_state=0)
    posterior = truth.fit_transform(Gaussians(x, std=std), y, batch=night)
    machine = make_pipeline(UncertainStandardScaler(), UncertainSVC(random_state=0))
    machine.fit(posterior, y)
    expected = machine.predict(truth.transform(Gaussians(new, std=new_std), batch=new_night))
    status, _, _ = run(capsys, "predict", model, asked, "--output", output)
    assert status == 0
    with output.open() as file:
        rows = list(csv.DictReader(file))
    assert "night" not in rows[0]
    np.testing.assert_array_equal([row["label"] for row in rows], expected)
    status, out, _ = run(capsys, "evaluate", model, asked, "--label", "kind")
    assert status == 0
    assert f"accuracy     {100 * np.mean(expected == new_y):.2f} %" in out
    run(capsys, "predict", model, asked, "--output", output, "--keep", "night")
    with output.open() as file:
        assert next(csv.DictReader(file))["night"] == "n12"


def test_folds_by_night_judge_the_gain(capsys, tmp_path, tables):
    known = tables[0]
    options = ["--label", "kind", "--group", "night", "--output", tmp_path / "model.json"]
    options += ["--errors", "measurement"]

    def accuracy(*more):
        status, out, _ = run(capsys, "train", known, *options, *more)
        assert status == 0
        line = next(line for line in out.splitlines() if line.startswith("accuracy"))
        return float(line.split()[1])

    with_offsets = accuracy("--batch", "night", "--population", "batch_covariance=diagonal")
    assert with_offsets > accuracy("--drop", "night") + 10.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", "plate"], "plate"),
        (["--batch", "night", "--errors", "distribution"], "--batch is of use only with"),
        (["--batch", "night", "--calibrate", "sigmoid"], "--batch does not go with --calibrate"),
    ],
)
def test_what_makes_no_sense_is_one_line(capsys, tmp_path, tables, options, message):
    model = tmp_path / "model.json"
    status, _, err = run(capsys, "train", tables[0], "--label", "kind", "--output", model, *options)
    assert status in (1, 2)
    assert message in err


def test_a_table_without_the_column_of_the_batches_is_refused(capsys, tmp_path, tables):
    known, _, asked, _ = tables
    model = tmp_path / "model.json"
    options = ["--label", "kind", "--C", 1, "--folds", 0, "--output", model]
    run(capsys, "train", known, *options, "--batch", "night")
    text = asked.read_text().replace("night", "plate", 1)
    asked.write_text(text)
    status, _, err = run(capsys, "predict", model, asked)
    assert status == 1
    assert "night" in err
    asked.write_text(text.replace("plate", "night", 1).replace(",n13,", ",,", 1))
    status, _, err = run(capsys, "predict", model, asked)
    assert status == 1
    assert "line 3, column 'night': the batch is missing" in err
