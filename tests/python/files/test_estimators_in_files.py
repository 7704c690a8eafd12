"""Every public estimator in files: what is loaded says bit for bit what was saved."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from model_files.machines import (
    EXAMPLES,
    MACHINES,
    MEANS,
    THREE,
    TWO,
    VALUES,
    fitted,
    fitted_platt,
    told,
)
from model_files.machines import parts_of as parts
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import halosvm
from halosvm import (
    EmpiricalBayes,
    Gaussians,
    Propagate,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
    load_model,
    save_model,
)
from halosvm.files.model_file import ModelFileError
from halosvm.files.saved_estimators import SAVED


def there_and_back(machine, tmp_path):
    save_model(machine, tmp_path / "model.json")
    return load_model(tmp_path / "model.json")


def test_every_public_estimator_is_among_those_tried():
    public = {
        name
        for name in halosvm.__all__
        if isinstance(getattr(halosvm, name), type)
        and issubclass(getattr(halosvm, name), BaseEstimator)
        and not name.startswith("Measurement")  # see test_skops_file
    }
    tried = {type(each).__name__ for name in MACHINES for each in parts(fitted(name)[0])}
    assert public <= tried | {"PlattScaling"}
    assert set(SAVED) <= tried | {"IsotonicCurve", "Temperature"}


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_loaded_says_the_same_to_the_last_bit(tmp_path, name):
    machine, X = fitted(name)
    loaded = there_and_back(machine, tmp_path)
    answers = told(machine, X)
    assert answers
    assert told(loaded, X) == answers
    save_model(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize("name", MACHINES)
def test_every_attribute_of_a_fit_comes_back_but_those_that_are_said_not_to(tmp_path, name):
    machine, _ = fitted(name)
    loaded = there_and_back(machine, tmp_path)
    assert type(loaded) is type(machine)
    assert set(vars(machine)) - {"corrections_"} == set(vars(loaded))
    assert {*map(type, parts(loaded))} == {*map(type, parts(machine))}


def test_curve_of_platt_comes_back(tmp_path):
    curve = fitted_platt()
    loaded = there_and_back(curve, tmp_path)
    assert loaded.probability(VALUES).tobytes() == curve.probability(VALUES).tobytes()


def test_long_arrays_come_back_from_their_bytes(tmp_path):
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(300, 40)), std=rng.uniform(0.1, 1.0, size=(300, 40)))
    machine = UncertainKernelSVC().fit(X, np.arange(300) % 3)
    loaded = there_and_back(machine, tmp_path)
    assert '"base64"' in (tmp_path / "model.json").read_text()
    assert told(loaded, X) == told(machine, X)


def test_machine_of_many_features_is_written_in_plain_numbers(tmp_path):
    machine = UncertainSVC().fit(np.eye(40, 10_000), np.arange(40) % 2)
    save_model(machine, tmp_path / "model.json")
    assert "base64" not in (tmp_path / "model.json").read_text()


def test_streams_go_on_with_the_same_bits(tmp_path):
    X, rest = EXAMPLES["diagonal"][:30], EXAMPLES["diagonal"][30:]
    classifier = UncertainSVC().partial_fit(X, THREE[:30], classes=[0, 1, 2], n_total=60)
    loaded = there_and_back(classifier, tmp_path)
    classifier.partial_fit(rest, THREE[30:], n_total=60)
    loaded.partial_fit(rest, THREE[30:], n_total=60)
    assert loaded.coef_.tobytes() == classifier.coef_.tobytes()
    assert loaded.intercept_.tobytes() == classifier.intercept_.tobytes()
    regression = UncertainSVR().partial_fit(X, VALUES[:30])
    loaded = there_and_back(regression, tmp_path)
    assert told(loaded, X) == told(regression, X)
    assert (
        loaded.partial_fit(rest, VALUES[30:]).coef_.tobytes()
        == regression.partial_fit(rest, VALUES[30:]).coef_.tobytes()
    )


def test_streams_of_sparse_examples_go_on_with_the_same_bits(tmp_path):
    """Their state is more than weights: factors of all columns, and sums."""
    X = sparse.random_array((60, 80), density=0.05, format="csr", random_state=0)
    y = np.arange(60) % 2
    machine = UncertainSVC().partial_fit(X[:30], y[:30], classes=[0, 1])
    loaded = there_and_back(machine, tmp_path)
    assert loaded.coef_.tobytes() == machine.coef_.tobytes()
    for each in (machine, loaded):
        each.partial_fit(X[30:], y[30:])
    assert loaded.coef_.tobytes() == machine.coef_.tobytes()
    assert loaded.intercept_.tobytes() == machine.intercept_.tobytes()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("factors", lambda rows: [row[:4] for row in rows]),
        ("along_centre", lambda row: [*row, 0.0]),
        ("centre", lambda row: row[:2]),
        ("average", lambda rows: [row[:2] for row in rows]),
        ("scale", lambda _: [1.0]),
        ("changed", lambda _: -1),
    ],
)
def test_streams_whose_arrays_do_not_fit_are_refused(tmp_path, name, damage):
    machine = UncertainSVC().partial_fit(EXAMPLES["diagonal"], TWO, classes=np.unique(TWO))
    save_model(machine, tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    record["stream"][name] = damage(record["stream"][name])
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelFileError, match=r"stream"):
        load_model(tmp_path / "model.json")


def test_frames_that_were_asked_for_are_made_again(tmp_path):
    pipeline = make_pipeline(EmpiricalBayes(output="mean"), UncertainSVC())
    pipeline.set_output(transform="pandas")
    frame = pd.DataFrame(MEANS, columns=["a", "b", "c"])
    pipeline.fit(frame, TWO)
    loaded = there_and_back(pipeline, tmp_path)
    assert isinstance(loaded[0].transform(frame), pd.DataFrame)
    np.testing.assert_array_equal(loaded.predict(frame), pipeline.predict(frame))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (
            SVC(),
            "estimator is a SVC, which a model file of JSON cannot hold.*name the file \\*.skops",
        ),
        (make_pipeline(StandardScaler(), SVC()), "step 'svc': estimator is a SVC"),
        (FeatureUnion([("all", StandardScaler())]), "estimator is a FeatureUnion"),
        (
            ColumnTransformer([("all", StandardScaler(), [0, 1])]),
            "estimator is a ColumnTransformer",
        ),
        (UncertainKernelSVC(kernel=lambda a, b: a @ b.T), "kernel holds a function"),
        (
            make_pipeline(FunctionTransformer(lambda X: 2 * X), UncertainSVC()),
            "step 'functiontransformer': func holds a function",
        ),
        (
            make_pipeline(FunctionTransformer(np.square, kw_args={"where": True}), UncertainSVC()),
            "kw_args are arguments of a function",
        ),
        (Propagate(FunctionTransformer(abs), method="linear"), "func holds a function"),
        (UncertainCalibratedClassifier(SVC()), "estimator is a SVC"),
    ],
)
def test_what_is_more_than_data_is_refused_by_its_name(tmp_path, machine, message):
    with pytest.raises(TypeError, match=message):
        save_model(machine.fit(MEANS, TWO), tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


LOADER = """
import pickle, sys
import joblib
from halosvm import load_model
folder, tests = sys.argv[1:]
sys.path.insert(0, tests)
from model_files.machines import told
for name, (X, answer) in pickle.load(open(f"{folder}/answers", "rb")).items():
    for machine in (
        load_model(f"{folder}/{name}.json"),
        load_model(f"{folder}/{name}.skops"),
        pickle.load(open(f"{folder}/{name}.pickle", "rb")),
        joblib.load(f"{folder}/{name}.joblib"),
    ):
        assert told(machine, X) == answer, name
    print(name)
"""


def test_a_fresh_process_says_the_same_to_the_last_bit(tmp_path):
    answers = {}
    for name in MACHINES:
        machine, X = fitted(name)
        answers[name] = X, told(machine, X)
        save_model(machine, tmp_path / f"{name}.json")
        save_model(machine, tmp_path / f"{name}.skops")
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(machine))
        joblib.dump(machine, tmp_path / f"{name}.joblib")
    (tmp_path / "answers").write_bytes(pickle.dumps(answers))
    command = [sys.executable, "-c", LOADER, tmp_path, Path(__file__).parents[1]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(MACHINES)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("calibrated", lambda d: d.pop("n_features"), "the document: 'n_features' is missing"),
        ("calibrated", lambda d: d["curves"].append(d["curves"][0]), "2 curves do not go with 2"),
        ("calibrated", lambda d: d.update(machine=d["curves"][0]), "those of the machine \\[\\]"),
        ("pipeline", lambda d: d["steps"].reverse(), r"steps\[0\]: a UncertainSVC can be the last"),
        (
            "pipeline",
            lambda d: d["steps"][0].update(name="uncertainsvc"),
            "two steps have the same",
        ),
        ("pipeline", lambda d: d["steps"][0].update(weights=[2.0]), "steps.0..weights: holds 2 at"),
        ("kernel", lambda d: d["kernel"].update(gamma=[-1.0]), "kernel.gamma: holds -1 at"),
        ("kernel", lambda d: d["kernel"].update(kind="mine"), "kernel.kind: expected one of rbf"),
        ("kernel", lambda d: d["kernel"].update(degree=10**15), "kernel.degree: 10+ is too large"),
        ("kernel", lambda d: d["intercept"].append(1.0), "2 classes do not go with 2 intercepts"),
        ("kernel of values", lambda d: d.update(n_features=5), "support has [0-9]+, of 5 columns"),
        ("scaler", lambda d: d["scale"].__setitem__(1, 0.0), r"scale: holds 0 at \[1\]"),
        ("paired", lambda d: d.update(phases=[1.0, 2.0]), "2 phases do not go with 4 frequencies"),
        ("pca", lambda d: d["parameters"].update(method="any"), "method must be one of"),
        ("one against the rest", lambda d: d["estimators"].pop(), "2 machines do not go with 3"),
    ],
)
def test_parts_that_do_not_go_together_are_told_with_their_place(tmp_path, name, change, message):
    path = tmp_path / "model.json"
    save_model(fitted(name)[0], path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        load_model(path)
