"""The command line: its files hold what the Python API computes, and errors take one line."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from commands.running import run
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold

import halosvm
from halosvm import Gaussians, UncertainSVC, load_model
from halosvm.commands.cli import main
from halosvm.commands.tables.tasks import C_GRID
from halosvm.files.tables.labels import parse_labels


def write_table(path, features, errors, labels, *, names=None, suffix="_std"):
    """A CSV file with label column `kind`; numbers keep all their digits."""
    names = names or [f"f{j}" for j in range(features.shape[1])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        with_errors = names[: errors.shape[1]]
        writer.writerow(["kind", *names, *(name + suffix for name in with_errors)])
        for label, x, e in zip(labels.tolist(), features.tolist(), errors.tolist(), strict=True):
            writer.writerow([label, *x, *e])


@pytest.fixture(scope="module")
def cancer():
    """Five measurements of real cells, three of them with standard errors; in the units given."""
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    return data.data[:, :5], data.data[:, 10:13], labels


@pytest.fixture
def cancer_csv(tmp_path, cancer):
    path = tmp_path / "cancer.csv"
    write_table(path, *cancer)
    return path


@pytest.fixture
def model(tmp_path, cancer_csv):
    path = tmp_path / "model.json"
    assert (
        main(["train", str(cancer_csv), "--label", "kind", "--C", "1", "--output", str(path)]) == 0
    )
    return path


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def in_standard_units(features, errors):
    """Standardised features, and the errors of the first ones in the same units, 0 for the rest."""
    spread = features.std(axis=0)
    std = np.zeros_like(features)
    std[:, : errors.shape[1]] = errors
    return (features - features.mean(axis=0)) / spread, std / spread


def test_trained_model_is_the_fit_on_standardised_features(model, cancer):
    features, errors, labels = cancer
    means, std = in_standard_units(features, errors)
    direct = UncertainSVC(C=1.0, random_state=0).fit(means, labels, X_std=std)
    loaded = load_model(model)
    # The same arithmetic up to the order of roundings, on features of size up to 2500 / 350 = 7.
    np.testing.assert_allclose(
        loaded.decision_function(Gaussians(features)),
        direct.decision_function(means),
        rtol=0,
        atol=1e-9,
    )
    np.testing.assert_allclose(loaded.coef_ * features.std(axis=0), direct.coef_, rtol=1e-9)
    assert loaded.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3", "f4"]


@pytest.mark.parametrize("last_digit", [0.0, 2e-17])
def test_constant_column_has_no_weight(tmp_path, capsys, cancer, last_digit):
    features, errors, labels = (part[:150] for part in cancer)
    constant = np.full((len(labels), 1), 0.1)
    constant[::2] += last_digit  # what two ways to compute 0.1 may differ by
    assert constant.std() > 0.0
    path, moved, model = (tmp_path / name for name in ("table.csv", "moved.csv", "model.json"))
    write_table(path, np.hstack([features, constant]), errors, labels)
    write_table(moved, np.hstack([features, constant + 0.01]), errors, labels)
    run(capsys, "train", path, "--label", "kind", "--C", 0.1, "--output", model)
    assert abs(load_model(model).coef_[0, -1]) < 1e-12
    predicted = [rows_of(run(capsys, "predict", model, file)[1]) for file in (path, moved)]
    assert [row["label"] for row in predicted[0]] == [row["label"] for row in predicted[1]]


def test_without_standardising_the_model_is_the_plain_fit(tmp_path, cancer_csv, cancer):
    features, errors, labels = cancer
    std = np.zeros_like(features)
    std[:, :3] = errors
    path = tmp_path / "plain.json"
    options = ["--label", "kind", "--C", "0.01", "--scale", "none", "--output", str(path)]
    assert main(["train", str(cancer_csv), *options]) == 0
    direct = UncertainSVC(C=0.01, random_state=0).fit(features, labels, X_std=std)
    np.testing.assert_array_equal(load_model(path).coef_, direct.coef_)
    np.testing.assert_array_equal(load_model(path).intercept_, direct.intercept_)


def test_predictions_equal_those_of_the_api(capsys, model, cancer_csv, cancer):
    features, errors, _ = cancer
    std = np.zeros_like(features)
    std[:, :3] = errors
    status, out, err = run(capsys, "predict", model, cancer_csv)
    assert status == 0
    assert "5 features, 3 of them with an error column" in err
    content = json.loads(model.read_text())
    w, b = np.array(content["coef"][0]), content["intercept"][0]
    rows = rows_of(out)
    value = np.array([float(row["decision_value"]) for row in rows])
    spread = np.array([float(row["decision_std"]) for row in rows])
    side = np.array([float(row["side_probability"]) for row in rows])
    # f = w'x + b and its standard deviation sqrt(sum w^2 s^2), computed without the package.
    size = np.abs(features) @ np.abs(w) + abs(b)
    assert np.all(np.abs(value - (features @ w + b)) <= 1e-14 * size)
    np.testing.assert_allclose(spread, np.sqrt(std**2 @ w**2), rtol=1e-13)
    np.testing.assert_allclose(side, ndtr(value / spread), rtol=1e-11)
    assert [row["label"] for row in rows] == np.where(value > 0, "malignant", "benign").tolist()
    loaded = load_model(model)
    X = Gaussians(features, std=std)
    np.testing.assert_array_equal(value, loaded.decision_function(X))
    np.testing.assert_array_equal(spread, loaded.decision_std(X))


def test_prediction_of_certain_rows_has_no_spread(tmp_path, capsys, model, cancer):
    features, _, labels = cancer
    path = tmp_path / "certain.csv"
    write_table(path, features, np.empty((len(features), 0)), labels)
    status, out, _ = run(capsys, "predict", model, path)
    assert status == 0
    assert out.splitlines()[0] == "label,decision_value"


def test_order_of_columns_and_format_do_not_matter(tmp_path, capsys, model, cancer_csv):
    _, expected, _ = run(capsys, "predict", model, cancer_csv)
    with cancer_csv.open(newline="") as file:
        rows = [row[::-1] for row in csv.reader(file)]
    path = tmp_path / "turned.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    _, out, _ = run(capsys, "predict", model, path)
    assert out == expected


def test_output_file_holds_what_would_be_printed(tmp_path, capsys, model, cancer_csv):
    _, printed, _ = run(capsys, "predict", model, cancer_csv)
    path = tmp_path / "out.csv"
    status, out, _ = run(capsys, "predict", model, cancer_csv, "--output", path)
    assert (status, out) == (0, "")
    assert path.read_text() == printed


def test_variance_columns_equal_squared_standard_deviations(tmp_path, capsys, cancer):
    features, errors, labels = cancer
    write_table(tmp_path / "s.csv", features, errors, labels)
    write_table(tmp_path / "v.csv", features, errors**2, labels, suffix="_var")
    fit = ["--label", "kind", "--C", "1"]
    assert main(["train", str(tmp_path / "s.csv"), *fit, "--output", str(tmp_path / "s.json")]) == 0
    fit += ["--output", str(tmp_path / "v.json")]
    status, out, _ = run(capsys, "train", tmp_path / "v.csv", *fit)
    assert status == 0
    assert "5, 3 of them with an error column" in out
    # sqrt(v**2) differs from v by roundings; the solver's path amplifies them only little.
    np.testing.assert_allclose(
        load_model(tmp_path / "s.json").coef_, load_model(tmp_path / "v.json").coef_, rtol=1e-6
    )


def test_summary_counts_the_table_and_names_the_model(tmp_path, capsys, cancer_csv):
    path = tmp_path / "m.json"
    status, out, _ = run(
        capsys, "train", cancer_csv, "--label", "kind", "--C", "0.5", "--output", path
    )
    assert status == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert lines["rows"] == "569"
    assert lines["classes"] == "benign (357), malignant (212)"
    assert lines["features"] == "5, 3 of them with an error column"
    assert lines["C"] == "0.5"
    assert lines["accuracy"].endswith("% by 5-fold cross-validation")
    fitted = load_model(path)
    expected = f"at most {fitted.suboptimality_:.1e}: {fitted.status_}"
    assert lines["suboptimality"] == expected
    assert lines["model"] == str(path)


def test_model_that_knows_only_the_larger_class_is_told(tmp_path, capsys):
    # The errors are so large, and one class so rare, that the best model is w = 0 (spec A.6).
    path = tmp_path / "t.csv"
    features = np.repeat([[1.0], [-1.0]], [80, 20], axis=0)
    labels = np.repeat(["many", "few"], [80, 20])
    write_table(path, features, np.full((100, 1), 2.0), labels)
    fit = ["--label", "kind", "--C", "0.1", "--scale", "none", "--output", tmp_path / "m.json"]
    status, out, _ = run(capsys, "train", path, *fit)
    assert status == 0
    assert re.search(r"suboptimality  at most \S+: the objective is least at w = 0", out)


def test_cross_validated_c_is_the_best_of_the_grid(tmp_path, capsys, cancer):
    features, errors, labels = (part[:150] for part in cancer)
    path = tmp_path / "t.csv"
    write_table(path, features, errors, labels)
    options = ["--label", "kind", "--folds", "3", "--output", tmp_path / "m.json"]
    status, out, _ = run(capsys, "train", path, *options)
    assert status == 0
    assert "(chosen by cross-validation)" in out
    std = np.zeros_like(features)
    std[:, :3] = errors
    found = []
    for C in C_GRID:
        scores = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(std, labels):
            centre, spread = features[train].mean(axis=0), features[train].std(axis=0)
            clf = UncertainSVC(C=C, random_state=0)
            clf.fit((features[train] - centre) / spread, labels[train], X_std=std[train] / spread)
            f = clf.decision_function((features[test] - centre) / spread)
            signed = np.where(labels[test] == clf.classes_[1], f, -f)
            slopes = np.geomspace(1e-3, 1e5, 4000) / np.abs(f).max()
            loss = np.logaddexp(0.0, -np.outer(slopes, signed)).mean(axis=1).min()
            scores.append((loss, np.mean(signed > 0)))
        found.append(np.mean(scores, axis=0))
    loss, accuracy = np.transpose(found)
    chosen = C_GRID.index(load_model(tmp_path / "m.json").C)
    assert f"{100 * accuracy[chosen]:.2f} % by 3-fold" in out
    assert "the best of 9 values of C by log loss" in out
    assert loss[chosen] == pytest.approx(loss.min(), rel=1e-3)  # of the slopes tried


def test_evaluation_counts_what_prediction_says(capsys, model, cancer_csv, cancer):
    _, _, labels = cancer
    _, out, _ = run(capsys, "predict", model, cancer_csv)
    rows = rows_of(out)
    predicted = np.array([row["label"] for row in rows])
    side = np.array([float(row["side_probability"]) for row in rows])
    status, out, _ = run(capsys, "evaluate", model, cancer_csv, "--label", "kind")
    assert status == 0
    right = int(np.sum(predicted == labels))
    assert f"accuracy     {100 * right / 569:.2f} % ({right} of 569 rows)" in out
    expected = np.mean(np.where(labels == "malignant", side, 1 - side))
    assert f"expected     {100 * expected:.2f} %" in out
    cells = [line.split() for line in out.splitlines()]
    for true in ("benign", "malignant"):
        counts = [int(np.sum((labels == true) & (predicted == p))) for p in ("benign", "malignant")]
        assert [true, *map(str, counts)] in cells
    measures = precision_recall_fscore_support(labels, predicted)
    for k, name in enumerate(("benign", "malignant")):
        p, r, f1, n = (measure[k] for measure in measures)
        assert [name, f"{p:.4f}", f"{r:.4f}", f"{f1:.4f}", str(n)] in cells


def test_three_classes_give_a_column_for_each(tmp_path, capsys):
    data = load_iris()
    path, model = tmp_path / "iris.csv", tmp_path / "iris.json"
    write_table(path, data.data, np.full((150, 4), 0.1), data.target)
    status, out, _ = run(capsys, "train", path, "--label", "kind", "--C", 1, "--output", model)
    assert status == 0
    assert "0 (50), 1 (50), 2 (50)" in out
    assert load_model(model).classes_.dtype == np.int64
    _, out, _ = run(capsys, "predict", model, path)
    rows = rows_of(out)
    assert list(rows[0])[:4] == ["label", *(f"decision_value_{k}" for k in range(3))]
    assert list(rows[0])[7:] == [f"side_probability_{k}" for k in range(3)]
    values = np.array([[float(row[f"decision_value_{k}"]) for k in range(3)] for row in rows])
    assert [int(row["label"]) for row in rows] == values.argmax(axis=1).tolist()
    status, out, _ = run(capsys, "evaluate", model, path, "--label", "kind")
    right = int(np.sum(values.argmax(axis=1) == data.target))
    assert f"({right} of 150 rows)" in out
    assert "expected" not in out


def test_labels_keep_the_type_that_prints_like_the_cells():
    assert parse_labels(["1", "-2", "1"]).dtype == np.int64
    assert parse_labels(["True", "False"]).tolist() == [True, False]
    for cells in (["1.0", "2"], ["01", "2"], ["a", "1"], ["1", "9" * 30], ["-", "1"], ["--1"]):
        labels = parse_labels(cells)
        assert labels.dtype.kind == "U"
        assert labels.tolist() == cells


def test_numeric_labels_are_compared_as_numbers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2))
    labels = (features[:, 0] > 0).astype(int)
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    none = np.empty((40, 0))
    write_table(path, features, none, labels)
    run(capsys, "train", path, "--label", "kind", "--C", 1, "--output", model)
    _, as_integers, _ = run(capsys, "evaluate", model, path, "--label", "kind")
    write_table(path, features, none, labels.astype(float))
    status, as_floats, _ = run(capsys, "evaluate", model, path, "--label", "kind")
    assert status == 0
    assert as_floats == as_integers


def test_class_of_one_row_needs_a_given_c(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("kind,x\na,1\na,2\na,1.5\nb,9\n")
    status, _, err = run(capsys, "train", path, "--label", "kind")
    assert status == 1
    assert "a class has one row: too few for cross-validation, give --C a number" in err
    options = ["--C", 1, "--output", tmp_path / "m.json"]
    status, out, _ = run(capsys, "train", path, "--label", "kind", *options)
    assert status == 0
    assert "not estimated: a class has one row" in out


def test_dropped_columns_and_listed_features_are_obeyed(tmp_path, capsys, cancer_csv):
    path = tmp_path / "m.json"
    common = ["train", cancer_csv, "--label", "kind", "--C", 1, "--output", path]
    assert run(capsys, *common, "--drop", "f0,f4")[0] == 0
    assert load_model(path).feature_names_in_.tolist() == ["f1", "f2", "f3"]
    assert run(capsys, *common, "--features", '"f4",f1')[0] == 0
    assert load_model(path).feature_names_in_.tolist() == ["f4", "f1"]


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"halosvm {halosvm.__version__}\n"


def test_module_runs_as_the_command(model, cancer_csv):
    done = subprocess.run(
        [sys.executable, "-m", "halosvm", "evaluate", model, cancer_csv, "--label", "kind"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("accuracy     9")


def test_reader_that_leaves_early_ends_the_command_quietly(model, cancer_csv):
    process = subprocess.Popen(
        [sys.executable, "-m", "halosvm", "predict", model, cancer_csv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    process.stdout.close()
    err = process.stderr.read().decode()
    assert process.wait() == 141  # as a process that SIGPIPE ends
    process.stderr.close()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err
