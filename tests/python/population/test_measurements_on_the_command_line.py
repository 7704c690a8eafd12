"""The command line with errors as measurements: the map is trained, kept and applied again."""

import csv
import io
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    UncertainStandardScaler,
    UncertainSVC,
    load_model,
    save_model,
)
from halosvm.commands.cli import main
from halosvm.files.model_file import ModelFileError


@pytest.fixture
def table(tmp_path):
    """Return the path of a table of measurements, its values and errors."""
    rng = np.random.default_rng(0)
    n, d = 120, 3
    y = rng.integers(2, size=n)
    v = 2.0 * y[:, None] + rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, d))
    std = 1.5 * np.exp(0.7 * rng.normal(size=(n, d)))
    x = (v + std * rng.normal(size=(n, d))) * [1.0, 100.0, 0.01] + [0.0, 50.0, 3.0]
    std = std * [1.0, 100.0, 0.01]
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", "a", "b", "c", "a_std", "b_std", "c_std"])
        writer.writerows(
            [f"k{k}", *row, *e] for k, row, e in zip(y, x.tolist(), std.tolist(), strict=True)
        )
    return path, x, std, np.array([f"k{k}" for k in y])


def run(capsys, *arguments):
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_trained_model_holds_the_population_and_predict_applies_it(capsys, tmp_path, table):
    path, x, std, y = table
    model = tmp_path / "model.json"
    status, out, _ = run(
        capsys,
        "train",
        path,
        "--label",
        "kind",
        "--C",
        1,
        "--errors",
        "measurement",
        "--output",
        model,
    )
    assert status == 0
    assert "errors         measurement: each row is replaced by the posterior" in out
    assert json.loads(model.read_text())["format_version"] == 3
    # The same by the API, whose machine takes standardised posteriors.
    X = Gaussians(x, std=std)
    truth, machine = EmpiricalBayes(random_state=0), UncertainSVC(random_state=0)
    direct = make_pipeline(truth, UncertainStandardScaler(), machine).fit(X, y)
    loaded = load_model(model)
    assert [type(step) for _, step in loaded.steps] == [EmpiricalBayes, UncertainSVC]
    expected = direct.decision_function(X)
    np.testing.assert_allclose(loaded.decision_function(Gaussians(x, std=std)), expected, atol=1e-6)
    status, out, err = run(capsys, "predict", model, path)
    assert status == 0
    assert "errors: measurement" in err
    rows = list(csv.DictReader(io.StringIO(out)))
    np.testing.assert_allclose([float(row["decision_value"]) for row in rows], expected, atol=1e-6)
    spread = direct[-1].decision_std(direct[:-1].transform(X))
    np.testing.assert_allclose([float(row["decision_std"]) for row in rows], spread, atol=1e-6)
    status, out, _ = run(capsys, "evaluate", model, path, "--label", "kind")
    assert status == 0
    right = int(np.sum(direct.predict(X) == y))
    assert f"({right} of 120 rows)" in out


def test_a_distribution_is_a_model_of_its_own_and_is_said(capsys, tmp_path, table):
    path, *_ = table
    model = tmp_path / "model.json"
    words = ("train", path, "--label", "kind", "--errors", "distribution")
    status, out, _ = run(capsys, *words, "--C", 1, "--output", model)
    assert status == 0
    assert "errors         distribution: each row is taken as a Gaussian" in out
    assert type(load_model(model)) is UncertainSVC
    assert json.loads(model.read_text())["format_version"] == 1
    assert "errors: distribution" in run(capsys, "predict", model, path)[2]
    status, _, err = run(capsys, *words, "--components", 2)
    assert status == 2
    assert "--components is of use only with --errors measurement" in err


def test_parameters_of_the_population_are_given_by_name(capsys, tmp_path, table):
    path, *_ = table
    model = tmp_path / "model.json"
    start = ("train", path, "--label", "kind", "--C", 1, "--output", model)
    measured = ("--errors", "measurement")
    options = ("--population", "reg_covar=1e-4", "--population", "covariance=diagonal")
    assert run(capsys, *start, *measured, *options)[0] == 0
    truth = load_model(model)[0].get_params()
    assert (truth["reg_covar"], truth["covariance"]) == (1e-4, "diagonal")
    for rest, message in (
        (
            ("--errors", "distribution", *options),
            "--population is of use only with --errors measurement",
        ),
        ((*measured, "--population", "C=1"), "--population C: EmpiricalBayes has the parameters"),
        ((*measured, "--population", "reg_covar=-1"), "reg_covar must be >= 0"),
    ):
        status, _, err = run(capsys, *start, *rest)
        assert status != 0
        assert message in err


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
def test_saved_pipelines_predict_bit_for_bit_the_same(tmp_path, table, covariance):
    _, x, std, y = table
    n_factors = 1 if covariance == "factors" else None
    eb = EmpiricalBayes(2, covariance=covariance, n_factors=n_factors, random_state=0, tol=0.1)
    X = Gaussians(x, std=std)
    pipeline = make_pipeline(eb, UncertainSVC(tol=1e-2)).fit(X, y)
    path = tmp_path / "model.json"
    save_model(pipeline, path)
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert loaded[0].score(X) == eb.score(X)
    assert loaded[0].get_params() == eb.get_params()
    damaged = json.loads(path.read_text())
    damaged["steps"][0]["means"] = [[0.0]]
    path.write_text(json.dumps(damaged))
    with pytest.raises(ModelFileError, match=r"steps\[0\].means: has 1 components, "):
        load_model(path)


def test_other_pipelines_are_refused(tmp_path, table):
    _, x, _, y = table
    other = make_pipeline(EmpiricalBayes(output="mean"), LogisticRegression()).fit(x, y)
    with pytest.raises(
        TypeError, match="step 'logisticregression': estimator is a LogisticRegression"
    ):
        save_model(other, tmp_path / "model.json")
