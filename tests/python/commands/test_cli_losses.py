"""Losses and sizes of errors on the command line, and models that it does not train itself."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from commands.running import run, without_pairs

from halosvm import Gaussians, SafeSVC, TotalSVC, UncertainSVC, load_model, save_model


@pytest.fixture(scope="module")
def data():
    """Return two features, their errors and labels."""
    rng = np.random.default_rng(1)
    labels = np.where(np.arange(60) % 2, "up", "down")
    X = rng.normal(size=(60, 2)) * [1.0, 50.0]
    X[:, 0] += 1.5 * (labels == "up")
    return X, rng.uniform(0.1, 0.6, (60, 2)) * [1.0, 50.0], labels


@pytest.fixture
def table(tmp_path, data):
    X, errors, labels = data
    path = tmp_path / "table.csv"
    frame = {"a": X[:, 0], "b": X[:, 1], "a_std": errors[:, 0], "b_std": errors[:, 1]}
    pd.DataFrame({"kind": labels, **frame}).to_csv(path, index=False, float_format="%.17g")
    return path


@pytest.mark.parametrize(
    ("options", "parameters", "told"),
    [
        (
            ["--radius", 1.64],
            {"loss": "worst_case", "radius": 1.64},
            "worst_case, radius 1.64, norm 2",
        ),
        (["--radius", 0.5], {"loss": "best_case", "radius": 0.5}, "best_case, radius 0.5, norm 2"),
        ([], {"loss": "worst_case"}, "worst_case, radius 1, norm 2"),
        (
            ["--norm", "inf"],
            {"loss": "worst_case", "norm": np.inf},
            "worst_case, radius 1, norm inf",
        ),
        (
            ["--error-scale", 2],
            {"loss": "expected_logistic", "error_scale": 2.0},
            "expected_logistic, errors times 2",
        ),
        ([], {"loss": "marginal_logistic"}, "marginal_logistic"),
    ],
)
def test_losses_and_sizes_are_those_of_the_api(capsys, table, data, options, parameters, told):
    X, errors, labels = data
    path = table.with_name("model.json")
    common = ["train", table, "--label", "kind", "--C", 1, "--loss", parameters["loss"]]
    status, out, _ = run(capsys, *common, *options, "--output", path)
    assert status == 0
    unit = X.std(axis=0)
    scaled = Gaussians((X - X.mean(axis=0)) / unit, std=errors / unit)
    direct = UncertainSVC(random_state=0, **parameters).fit(scaled, labels)
    loaded = load_model(path)
    assert loaded.get_params() == direct.get_params()
    # rounding of the scales may lead a fit to another point within its tolerance
    np.testing.assert_allclose(
        loaded.decision_function(Gaussians(X)), direct.decision_function(scaled), atol=1e-6
    )
    assert f"loss           {told}\n" in out
    assert ("no bound known" in out) == (parameters["loss"] in ("best_case", "marginal_logistic"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--radius", 1.64], "--radius is of use only with --loss worst_case or best_case"),
        (["--radius", 1], "--radius is of use only with --loss worst_case or best_case"),
        (["--loss", "worst_case", "--radius", -1], "radius must be >= 0 and finite, got -1.0"),
        (["--error-scale", -1], "error_scale must be >= 0 and finite, got -1.0"),
        (
            ["--loss", "huber"],
            "--loss huber is not for --task classification, whose losses are exp",
        ),
        (["--quantile", 0.9], "--quantile is of use only with --loss pinball"),
        (
            ["--epsilon", 0.9],
            "--epsilon is of use only with --loss epsilon_insensitive or squared_epsilon_insens",
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, capsys, table, options, message):
    path = tmp_path / "m.json"
    common = ["train", table, "--label", "kind", "--C", 1, "--output", path]
    status, out, err = run(capsys, *common, *options)
    assert (status, out) == (1 if "must be" in message else 2, "")
    assert message in err
    assert without_pairs(err).count("\n") == 1
    assert not path.exists()


@pytest.mark.parametrize("machine", [SafeSVC(random_state=0), TotalSVC(radius=0.5)])
def test_machines_that_were_saved_by_the_api_predict_and_are_evaluated(
    tmp_path, capsys, table, data, machine
):
    X, errors, labels = data
    frame = pd.DataFrame(X / [1.0, 50.0], columns=["a", "b"])
    machine.fit(frame, labels)
    path = tmp_path / "m.json"
    save_model(machine, path)
    status, out, _ = run(capsys, "predict", path, table)
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    given = Gaussians(X, std=errors)
    for name in ("decision_function", "decision_std", "side_probability"):
        column = [float(row[name.replace("function", "value")]) for row in rows]
        np.testing.assert_array_equal(column, getattr(machine, name)(given))
    status, out, _ = run(capsys, "evaluate", path, table, "--label", "kind")
    assert status == 0
    right = int(np.sum(machine.predict(given) == labels))
    assert f"({right} of 60 rows)" in out
