"""Every estimator from the command line: models are those of the API, options agree or are told."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from commands.running import run, summary, without_pairs
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    SafeSVC,
    TotalSVC,
    UncertainCalibratedClassifier,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainStandardScaler,
    UncertainSVC,
    load_model,
    save_model,
)
from halosvm.commands.cli import main
from halosvm.display.reliability import ReliabilityDisplay


@pytest.fixture(scope="module")
def data():
    """Return features, errors and labels of two moons, in unlike units."""
    rng = np.random.default_rng(4)
    angle = rng.uniform(0, np.pi, 120)
    labels = np.where(np.arange(120) % 2, "up", "down")
    sign = np.where(labels == "up", 1.0, -1.0)
    X = np.column_stack([np.cos(angle) + 0.5 * sign, sign * (np.sin(angle) - 0.3)])
    X += 0.15 * rng.normal(size=X.shape)
    return X * [1.0, 50.0], rng.uniform(0.05, 0.2, X.shape) * [1.0, 50.0], labels


@pytest.fixture
def table(tmp_path, data):
    X, errors, labels = data
    path = tmp_path / "table.csv"
    columns = {"id": np.arange(120), "kind": labels, "a": X[:, 0], "b": X[:, 1]}
    columns |= {"a_err": errors[:, 0], "b_err": errors[:, 1]}
    pd.DataFrame(columns).to_csv(path, index=False, float_format="%.17g")
    return path


@pytest.fixture(scope="module")
def any_model_file(tmp_path_factory):
    """Skip where model files hold linear machines alone."""
    machine = UncertainKernelSVC().fit([[0.0], [1.0]], [0, 1])
    try:
        save_model(machine, tmp_path_factory.mktemp("any") / "m.json")
    except (TypeError, ValueError):
        pytest.skip("model files of this version hold linear machines alone")


def train(capsys, table, *options):
    path = table.with_name("model.json")
    common = [
        "train",
        table,
        "--label",
        "kind",
        "--drop",
        "id",
        "--C",
        1,
        "--errors",
        "distribution",
        "--output",
        path,
    ]
    status, out, err = run(capsys, *common, *options)
    assert (status, without_pairs(err)) == (0, "")
    return path, summary(out)


def predictions(capsys, model, table, *options):
    status, out, _ = run(capsys, "predict", model, table, *options)
    assert status == 0
    return list(csv.DictReader(io.StringIO(out)))


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


@pytest.mark.parametrize(
    ("options", "machine", "told"),
    [
        (["--estimator", "SafeSVC"], SafeSVC(random_state=0), "SafeSVC"),
        (
            ["--estimator", "SafeSVC", "--set", "bounds=(0.1, 0.5)", "--max-iter", 50],
            SafeSVC(bounds=(0.1, 0.5), max_iter=50, random_state=0),
            "SafeSVC",
        ),
        (["--estimator", "TotalSVC"], TotalSVC(random_state=0), "TotalSVC, kernel linear"),
        (
            ["--subspace", 0.9, "--tol", 1e-8],
            UncertainSVC(subspace=0.9, tol=1e-8, random_state=0),
            "UncertainSVC",
        ),
        (
            ["--solver", "lbfgs", "--set", "fit_intercept=False"],
            UncertainSVC(solver="lbfgs", fit_intercept=False, random_state=0),
            "UncertainSVC",
        ),
    ],
)
def test_linear_machines_are_those_of_the_api(capsys, table, data, options, machine, told):
    X, errors, labels = data
    if isinstance(machine, SafeSVC):  # which learns the errors
        options = [*options, "--features", "a,b", "--errors-in", "none_"]
    model, lines = train(capsys, table, *options)
    given = Gaussians(X, std=errors)
    scaled = UncertainStandardScaler().fit(given).transform(given)
    if isinstance(machine, SafeSVC):
        scaled = scaled.mean
        assert load_model(model).get_params() == machine.get_params()
    direct = machine.fit(scaled, labels)
    assert lines["estimator"] == told
    values = column(predictions(capsys, model, table), "decision_value")
    np.testing.assert_allclose(values, direct.decision_function(scaled), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "steps", "told"),
    [
        (["--kernel", "rbf"], [UncertainKernelSVC()], "UncertainKernelSVC, kernel rbf"),
        (
            ["--kernel", "poly", "--degree", 2, "--gamma", 0.5, "--coef0", 1],
            [UncertainKernelSVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0)],
            "UncertainKernelSVC, kernel poly",
        ),
        (
            ["--kernel", "poly", "--degree", 3],  # whose decision_std has no closed form
            [UncertainKernelSVC(kernel="poly", degree=3)],
            "UncertainKernelSVC, kernel poly",
        ),
        (
            ["--estimator", "IsotropicKernelSVC", "--gamma", "auto"],
            [IsotropicKernelSVC(gamma="auto")],
            "IsotropicKernelSVC, kernel rbf",
        ),
        (
            ["--approximate", "fourier:50", "--gamma", 2],
            [
                UncertainFourierFeatures(50, gamma=2.0, random_state=0),
                UncertainSVC(random_state=0),
            ],
            "UncertainSVC after 50 fourier features",
        ),
        (
            ["--approximate", "nystroem:40", "--seed", 3],
            [UncertainNystroem(n_components=40, random_state=3), UncertainSVC(random_state=3)],
            "UncertainSVC after 40 nystroem features",
        ),
    ],
)
@pytest.mark.usefixtures("any_model_file")
def test_kernel_machines_are_those_of_the_api(capsys, table, data, options, steps, told):
    X, errors, labels = data
    # its feature space takes one error for each row
    certain = ["--errors-in", "none_"] if isinstance(steps[0], IsotropicKernelSVC) else []
    model, lines = train(capsys, table, *options, *certain, "--features", "a,b")
    given = Gaussians(X) if certain else Gaussians(X, std=errors)
    direct = make_pipeline(UncertainStandardScaler(), *steps).fit(given, labels)
    assert lines["estimator"] == told
    rows = predictions(capsys, model, table, *certain)
    values = column(rows, "decision_value")
    np.testing.assert_allclose(values, direct.decision_function(given), atol=1e-5)
    assert [row["label"] for row in rows] == direct.predict(given).tolist()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.usefixtures("any_model_file")
def test_calibrated_models_give_the_probabilities_of_the_api(capsys, table, data, method):
    X, errors, labels = data
    model, lines = train(capsys, table, "--calibrate", method)
    assert lines["estimator"] == f"UncertainSVC, calibrated ({method})"
    given = Gaussians(X, std=errors)
    pipeline = make_pipeline(UncertainStandardScaler(), UncertainSVC(random_state=0))
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    direct = UncertainCalibratedClassifier(pipeline, method=method, cv=cv).fit(given, labels)
    rows = predictions(capsys, model, table, "--keep", "id,kind")
    expected = direct.predict_proba(given)[:, 1]
    np.testing.assert_allclose(column(rows, "probability"), expected, atol=1e-5)
    assert list(rows[0])[:3] == ["id", "kind", "label"]
    assert [row["id"] for row in rows] == [str(k) for k in range(120)]
    status, out, _ = run(capsys, "evaluate", model, table, "--label", "kind")
    assert status == 0
    display = ReliabilityDisplay(y_true=labels == "up", y_prob=expected)
    assert f"calibration  {100 * display.calibration_error:.2f} %" in out


def test_lambda_is_c_times_the_number_of_rows(capsys, table):
    one, _ = train(capsys, table, "--C", 0.5)
    coef = load_model(one).coef_
    path = table.with_name("other.json")
    lam = repr(1 / (0.5 * 120))
    common = [
        "train",
        table,
        "--label",
        "kind",
        "--drop",
        "id",
        "--errors",
        "distribution",
        "--output",
        path,
    ]
    assert run(capsys, *common, "--lambda", lam)[0] == 0
    np.testing.assert_allclose(load_model(path).coef_, coef, rtol=1e-9)


def test_evaluation_ranks_by_decision_values(capsys, table, data):
    _, _, labels = data
    model, _ = train(capsys, table)
    rows = predictions(capsys, model, table)
    values = column(rows, "decision_value")
    truth = labels == "up"
    status, out, _ = run(capsys, "evaluate", model, table, "--label", "kind", "--at", "3,50,500")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    predicted = np.array([row["label"] for row in rows]) == "up"
    assert ["F1", f"{f1_score(truth, predicted):.4f}", "of", "up"] in lines
    assert f"average precision {average_precision_score(truth, values):.4f} of up" in out
    for k in (3, 50):
        hits = truth[np.argsort(-values)[:k]].sum()
        expected = ["precision", f"{hits / k:.4f}", "recall", f"{hits / truth.sum():.4f}"]
        assert ["first", str(k), *expected] in lines
    assert not any(line[:2] == ["first", "500"] for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "UncertainSVR"], "--estimator UncertainSVR is not for --task class"),
        (
            ["--task", "regression", "--estimator", "SafeSVC"],
            "--estimator SafeSVC is not for --task regression",
        ),
        (["--task", "regression", "--calibrate", "sigmoid"], "--calibrate is of use only with"),
        (["--degree", 2], "--degree is of use only with UncertainKernelSVC or Isotropic"),
        (["--estimator", "UncertainSVC", "--kernel", "rbf"], "--kernel is of use only with"),
        (["--estimator", "SafeSVC", "--loss", "worst_case"], "--loss is of use only with"),
        (["--kernel", "rbf", "--subspace", 0.5], "--subspace is of use only with UncertainSVC"),
        (["--set", "colour=red"], "--set colour: UncertainSVC has the parameters C, averaging"),
        (
            ["--missing", "impute", "--errors", "distribution"],
            "--missing impute is of use only with --errors measurement",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_the_table_is_read(
    tmp_path, capsys, options, message
):
    common = ["train", tmp_path / "absent.csv", "--label", "y", "--output", tmp_path / "m.json"]
    status, out, err = run(capsys, *common, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "colour"], "'colour' is not NAME=VALUE"),
        (["--error", "flux"], "'flux' is not FEATURE=COLUMN"),
        (["--errors-in", "a{}=b,c,d"], "no pattern such as"),
        (["--approximate", "chebyshev"], "'chebyshev' is not fourier or nystroem"),
        (["--separator", "ab"], "'ab' is not one character"),
        (["--gamma", "-1"], "'-1' is not a positive number"),
        (["--lambda", "0"], "'0' is not a positive number"),
        (["--C", "1", "--lambda", "1"], "not allowed with argument"),
        (["--kernel", "sigmoid"], "invalid choice: 'sigmoid'"),
    ],
)
def test_values_of_options_are_checked(capsys, options, message):
    with pytest.raises(SystemExit) as caught:
        main(["train", "t.csv", "--label", "y", *options])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
