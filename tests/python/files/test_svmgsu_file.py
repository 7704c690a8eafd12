"""Model files of the public tool SVM-GSU: read, and written so that they read the same."""

import numpy as np
import pytest
from model_files.machines import EXAMPLES, TWO
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from halosvm import (
    SafeSVC,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
    load_model,
    save_model,
)
from halosvm.files.model_file import ModelFileError

SIGNS = np.where(TWO == "yes", 1, -1)
# Of the form that the tool writes.
LINES = [
    "SVM-GSU Model_File",
    "kernel_type linear",
    "lambda 0.001",
    "sigmA -0.5",
    "sigmB 3.25",
    "cov_mat_type diagonal",
    "w 2.5 -1.25 1e-3",
    "b 33.0391",
]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_files_of_the_tool_are_read_with_their_curve(tmp_path):
    model = load_model(written(tmp_path / "model.dat", LINES))
    machine = model.estimator_
    assert machine.coef_.tolist() == [[2.5, -1.25, 1e-3]]
    assert machine.intercept_.tolist() == [33.0391]
    x = np.array([[1.0, 2.0, 3.0], [-20.0, 1.0, 0.0]])
    f = x @ [2.5, -1.25, 1e-3] + 33.0391
    np.testing.assert_array_equal(model.predict(x), np.where(expit(0.5 * f - 3.25) > 0.5, 1, -1))
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], expit(0.5 * f - 3.25), rtol=1e-13)


def test_files_without_a_curve_are_linear_machines(tmp_path):
    lines = [line for line in LINES if not line.startswith("sigm")]
    model = load_model(written(tmp_path / "model.dat", lines))
    assert type(model) is UncertainSVC
    assert model.predict([[0.0, 0.0, 0.0], [-20.0, 0.0, 0.0]]).tolist() == [1, -1]


@pytest.mark.parametrize(
    "model",
    [UncertainSVC(), SafeSVC(random_state=0), UncertainCalibratedClassifier(UncertainSVC())],
)
def test_what_is_written_reads_the_same_to_the_last_bit(tmp_path, model):
    X = EXAMPLES["certain"]
    model.fit(X, SIGNS)
    save_model(model, tmp_path / "model.dat", format="svm-gsu")
    assert (tmp_path / "model.dat").read_text().startswith("SVM-GSU Model_File\nkernel_type linear")
    loaded = load_model(tmp_path / "model.dat")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if isinstance(model, UncertainCalibratedClassifier):
        assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        model, loaded = model.estimator_, loaded.estimator_
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()


@pytest.mark.parametrize(
    ("model", "y", "error", "message"),
    [
        (UncertainSVC(), TWO, ValueError, "classes -1 and 1, classes_ are"),
        (UncertainSVC(), np.arange(60) % 3, ValueError, r"classes_ are \[0, 1, 2\]"),
        (UncertainKernelSVC(), SIGNS, TypeError, "UncertainKernelSVC; SVM-GSU model files hold"),
        (UncertainSVR(), SIGNS, TypeError, "UncertainSVR; SVM-GSU model files hold linear"),
        (LogisticRegression(), SIGNS, TypeError, "LogisticRegression; SVM-GSU model files hold"),
        (
            UncertainCalibratedClassifier(method="isotonic"),
            SIGNS,
            ValueError,
            "logistic curves alone",
        ),
    ],
)
def test_models_that_the_format_cannot_hold_are_refused(tmp_path, model, y, error, message):
    X = EXAMPLES["certain"]
    model.fit(X.mean if isinstance(model, LogisticRegression) else X, y)
    with pytest.raises(error, match=message):
        save_model(model, tmp_path / "model.dat", format="svm-gsu")
    assert not (tmp_path / "model.dat").exists()


def test_a_format_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(ValueError, match="format must be one of halosvm, svm-gsu; got 'libsvm'"):
        save_model(UncertainSVC(), tmp_path / "model", format="libsvm")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel_type linear", "kernel_type rbf", "line 2: kernel_type is 'rbf'; only linear"),
        ("w 2.5", "w NaN", "line 7: w has 'NaN', which is not a finite number"),
        ("w 2.5", "w 1e999", "line 7: w has '1e999'"),
        ("w 2.5", "w 2,5", "line 7: w has '2,5'"),
        ("w 2.5", "w 1_0", "line 7: w has '1_0'"),
        ("w 2.5 -1.25 1e-3", "w", "line 7: w has 0 numbers"),
        ("b 33.0391", "b 1 2", "line 8: b has 2 numbers"),
        ("b 33.0391", "", "line 8: b is missing"),
        ("b 33.0391", "b 1\nb 2", "line 9: b is there twice"),
        ("lambda 0.001", "nu 0.001", "line 3: 'nu' is unknown"),
        ("sigmB 3.25", "", "line 9: sigmA and sigmB go together"),
        ("cov_mat_type diagonal", "cov_mat_type", "line 6: cov_mat_type is one word"),
        ("lambda", "l\u00e4mbda", "byte [0-9]* is not ASCII"),
    ],
)
def test_damage_is_told_with_its_line(tmp_path, old, new, message):
    path = tmp_path / "model.dat"
    path.write_text("\n".join(LINES).replace(old, new), encoding="utf-8")
    with pytest.raises(ModelFileError, match=f"model.dat is damaged: {message}"):
        load_model(path)
