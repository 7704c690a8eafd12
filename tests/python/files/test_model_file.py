"""Model files: what is loaded predicts bit for bit what was saved; every defect is told."""

import json
import math
import os
import shutil

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
    load_model,
    save_model,
)
from halosvm.files.model_file import ModelFileError

LABELS = {
    "strings": ["no", "yes, \u00e9\u4e2d"],
    "integers": [-1, 1],
    "booleans": [False, True],
    "floats": [-0.0, 2.0],
    "three strings": ["a", "b", "c"],
    "four integers": [3, 5, 7, 2**40],
}


def problem(labels, n_samples=60):
    """Overlapping classes around different centres, with errors."""
    rng = np.random.default_rng(11)
    codes = np.arange(n_samples) % len(labels)
    mean = rng.normal(size=(n_samples, 3)) + 2 * rng.normal(size=(len(labels), 3))[codes]
    return Gaussians(mean, std=rng.uniform(0, 1, size=mean.shape)), np.array(labels)[codes]


@pytest.fixture
def fitted():
    X, y = problem(["no", "yes"])
    return UncertainSVC(C=0.5, random_state=0).fit(X, y)


def edit(path, **changes):
    """Replace top-level entries of a model file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("kind", LABELS)
def test_loaded_model_predicts_bit_for_bit_the_same(tmp_path, kind):
    X, y = problem(LABELS[kind])
    model = UncertainSVC(C=0.3, random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert loaded.decision_std(X).tobytes() == model.decision_std(X).tobytes()
    assert loaded.side_probability(X).tobytes() == model.side_probability(X).tobytes()
    assert loaded.n_features_in_ == 3


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [1, 2], [0.1, 1 / 3]])
def test_classes_of_dtype_object_keep_their_types(tmp_path, fitted, labels):
    fitted.classes_ = np.array(labels, dtype=object)
    save_model(fitted, tmp_path / "model.json")
    classes = load_model(tmp_path / "model.json").classes_
    assert classes.dtype == object
    assert [type(value) for value in classes] == [type(value) for value in labels]
    assert classes.tolist() == labels


def test_file_holds_the_model_in_plain_numbers(tmp_path, fitted):
    save_model(fitted, tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    X, _ = problem(["no", "yes"])
    by_hand = [
        math.fsum(w * x for w, x in zip(content["coef"][0], row, strict=True))
        + content["intercept"][0]
        for row in X.mean.tolist()
    ]
    # Four products and sums of terms of this size.
    bound = 8 * np.finfo(float).eps * (np.abs(X.mean) @ np.abs(fitted.coef_[0]) + 1)
    assert np.all(np.abs(fitted.decision_function(X) - by_hand) <= bound)
    assert content["classes"]["values"] == ["no", "yes"]
    assert content["parameters"]["C"] == 0.5


def test_every_float_survives(tmp_path, fitted):
    fitted.coef_ = np.array([[1 / 3, 5e-324, -np.nextafter(1e308, np.inf)]])
    fitted.intercept_ = np.array([-0.0])
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.coef_.tobytes() == fitted.coef_.tobytes()
    assert loaded.intercept_.tobytes() == fitted.intercept_.tobytes()


def test_parameters_and_measures_of_the_fit_survive(tmp_path):
    X, y = problem([1, 2])
    model = UncertainSVC(
        C=np.float64(0.25), loss="hinge", class_weight={1: 2.0, np.int64(2): 1}, random_state=4
    ).fit(X, y)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.get_params() == model.get_params()
    assert list(loaded.class_weight) == [1, 2]
    for name in ("n_iter_", "objective_", "suboptimality_", "status_"):
        value = getattr(model, name)
        np.testing.assert_array_equal(getattr(loaded, name), value)
        assert isinstance(getattr(loaded, name), np.ndarray) == isinstance(value, np.ndarray)
    again = loaded.fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("value", [math.inf, math.nan, np.array([0.1, math.inf])])
def test_bound_that_is_not_known_survives(tmp_path, fitted, value):
    fitted.suboptimality_ = value
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").suboptimality_, value)


def test_random_generator_is_saved_as_none(tmp_path, fitted):
    fitted.random_state = np.random.RandomState(0)
    save_model(fitted, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").random_state is None


def test_feature_names_survive(tmp_path, fitted):
    fitted.feature_names_in_ = np.array(["a", "b, c", "\u00e9"], dtype=object)
    save_model(fitted, tmp_path / "model.json")
    names = load_model(tmp_path / "model.json").feature_names_in_
    assert names.dtype == object
    assert names.tolist() == ["a", "b, c", "\u00e9"]


def test_model_without_feature_names_gets_none(tmp_path, fitted):
    save_model(fitted, tmp_path / "model.json")
    assert not hasattr(load_model(tmp_path / "model.json"), "feature_names_in_")


def test_failed_write_leaves_the_earlier_file_and_nothing_else(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    before = path.read_bytes()

    def fail(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    fitted.intercept_ = fitted.intercept_ + 1
    with pytest.raises(OSError, match="disk full"):
        save_model(fitted, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_file_behind_a_symbolic_link_is_replaced_not_the_link(tmp_path, fitted):
    (tmp_path / "link.json").symlink_to(tmp_path / "model.json")
    save_model(fitted, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "model.json").is_file()


def test_only_a_fitted_linear_machine_of_finite_numbers_is_saved(tmp_path, fitted):
    path = tmp_path / "model.json"
    with pytest.raises(
        TypeError,
        match=r"estimator is a LogisticRegression, which .* cannot hold; it holds UncertainSVC, ",
    ):
        save_model(LogisticRegression(), path)
    with pytest.raises(NotFittedError):
        save_model(UncertainSVC(), path)
    fitted.coef_[0, 1] = np.nan
    with pytest.raises(ValueError, match="coef_ of UncertainSVC: a value is not finite"):
        save_model(fitted, path)
    assert not path.exists()


def test_class_or_parameter_that_json_cannot_hold_is_named(tmp_path, fitted):
    fitted.classes_ = np.array([1 + 2j, 3j])
    with pytest.raises(TypeError, match=r"classes_ holds .* of type complex"):
        save_model(fitted, tmp_path / "model.json")
    fitted.classes_ = np.array(["no", "yes"])
    fitted.C = {1.0}
    with pytest.raises(TypeError, match=r"C holds .* of type set"):
        save_model(fitted, tmp_path / "model.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a model file: Expecting value"),
        (b"\xff\xfe\x00", "is not a model file"),
        (b"[" * 100_000, "is not a model file"),
        (b"[1, 2]", "is not a model file: the document: expected an object, got an array"),
        (b'{"coef": [[1]]}', 'has no "format": "halosvm-model"'),
        (b'{"format": "halosvm-model"\n ]', "is not a model file: .*: line 2 column 2"),
        (b'{"format": "halosvm-model", "format": ""}', "'format' is there twice"),
        (b'\n {"a":' + b"[" * 64, "nested more than 64 deep: line 2 column 70"),
        (b'["' + b'\\"' * 1_000_000, "is not a model file"),
        (
            b'{"format": "halosvm-model"}',
            "format_version None; this version of halosvm reads 1 to 3",
        ),
    ],
)
def test_other_files_are_not_models(tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 4}, "format_version 4; this version of halosvm reads 1 to 3"),
        ({"format_version": True}, "format_version True"),
        ({"format_version": 2}, "'population' is missing"),
        ({"format_version": "1"}, "format_version '1'"),
        ({"estimator": "LinearSVC"}, "estimator: expected one of UncertainSVC, .* got 'LinearSVC'"),
        ({"coef": [[1.0, 2.0, 1e999]]}, r"coef\[0\]\[2\]: the number is beyond"),
        ({"coef": [1.0, 2.0]}, "coef: must be numbers in 2 dimensions"),
        ({"coef": [["1", "2", "3"]]}, r"coef\[0\]\[0\]: expected a number, got '1'"),
        ({"coef": [[1, True, 3]]}, r"coef\[0\]\[1\]: expected a number, got true or false"),
        ({"coef": [[1, 2, 10**30]]}, r"coef\[0\]\[2\]: 10000000000000000000... is too long"),
        ({"coef": [[1, 2], [3]]}, r"coef\[1\]: has shape \(1,\), the first has \(2,\)"),
        ({"coef": [[]]}, r"coef\[0\]: must be numbers, at least one"),
        ({"coef": {"dtype": "<f8", "shape": [1, 10**15], "base64": "AAAA"}}, "holds 3 bytes"),
        ({"coef": {"dtype": "<f8", "shape": [1, -3], "values": []}}, "integer >= 0"),
        ({"coef": {"dtype": "|O8", "shape": [1, 3], "values": []}}, "coef.dtype: expected one of"),
        ({"coef": {"dtype": "<f8", "shape": [1, 3], "values": [1, 2]}}, "2 numbers, .* needs 3"),
        ({"coef": {"dtype": "<f8", "shape": [1, 1], "base64": "AAAAAAAA+H8="}}, "is not finite"),
        ({"n_features": 2}, "n_features: has 2 features, coef has 3"),
        ({"colour": "red"}, "'colour' is unknown"),
        ({"coef": [[1, 2, 3], [4, 5, 6]]}, "coef: .*|intercept: has 1 models, coef has 2"),
        ({"intercept": [0.0, 1.0]}, "intercept: has 2 models, coef has 1"),
        ({"classes": {"dtype": "<U3", "values": ["a"]}}, "1 classes are too few"),
        ({"classes": {"dtype": "<U3", "values": ["a", "a"]}}, "are not distinct"),
        ({"classes": {"dtype": "<U3", "values": ["yess", "no"]}}, "do not fit into dtype"),
        ({"classes": {"dtype": "<U99999999", "values": ["a", "b"]}}, "classes cannot have dtype"),
        ({"classes": {"dtype": "<i8", "values": [True, 2]}}, "class True does not go with"),
        ({"classes": {"dtype": "|i1", "values": [1, 300]}}, "damaged"),
        ({"classes": {"dtype": "<i8", "values": ["a", "b"]}}, "class 'a' does not go with '<i8'"),
        ({"classes": {"dtype": "<c16", "values": [1, 2]}}, "classes cannot have dtype"),
        ({"classes": {"dtype": "O", "values": [None, "b"]}}, "class None does not go with"),
        ({"classes": {"dtype": "no such", "values": [1, 2]}}, "damaged"),
        ({"classes": {"values": [1, 2]}}, "classes: 'dtype' is missing"),
        ({"classes": [1, 2]}, "damaged"),
        ({"feature_names": ["a"]}, "feature_names: has 1 features, coef has 3"),
        ({"feature_names": ["a", "b", 3]}, r"feature_names\[2\]: expected a string, got 3"),
        ({"parameters": {"C": 1.0, "colour": "red"}}, "parameters: .*colour"),
        ({"parameters": {"C": -1.0}}, "parameters: C must be positive"),
        ({"parameters": {"n_threads": "all"}}, "parameters: n_threads must be an integer"),
        ({"parameters": {"loss": {"function": "system"}}}, "function: expected one of abs, "),
        ({"parameters": None}, "damaged"),
        ({"fit": {"objective_": {"number": "many"}}}, "damaged"),
    ],
)
def test_damaged_files_are_told(tmp_path, fitted, changes, message):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    # json writes 1e999 as Infinity, which no JSON has: keep the digits.
    edit(path, **changes)
    path.write_text(path.read_text().replace("Infinity", "1e999"))
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert "model.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["estimator", "parameters", "classes", "coef", "intercept", "fit"])
def test_missing_part_is_named(tmp_path, fitted, key):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=f"damaged: the document: '{key}' is missing"):
        load_model(path)


def test_truncated_file_is_not_a_model(tmp_path, fitted):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelFileError, match="is not a model file"):
        load_model(path)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_json_does_not_have_are_refused_with_their_place(tmp_path, fitted, constant):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    content = json.loads(path.read_text())
    content["coef"][0][1] = math.nan
    path.write_text(json.dumps(content).replace("NaN", constant))
    with pytest.raises(ModelFileError, match=rf"coef\[0\]\[1\]: {constant} is not a number"):
        load_model(path)


def test_key_that_is_there_twice_is_told(tmp_path, fitted):
    path = tmp_path / "model.json"
    save_model(fitted, path)
    path.write_text(path.read_text().replace('"C": 0.5', '"C": 0.5, "C": 2.0'))
    with pytest.raises(ModelFileError, match="parameters: 'C' is there twice"):
        load_model(path)


def test_absent_file_is_told(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot read .*: No such file"):
        load_model(tmp_path / "absent.json")


def test_folder_of_a_cache_is_neither_saved_nor_loaded(tmp_path):
    """A fit with one unpickles what lies there, which runs code."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.arange(20) % 2
    path, folder = tmp_path / "model.json", tmp_path / "cache"
    for made in (
        make_pipeline(UncertainStandardScaler(), UncertainSVC(), memory=str(folder)),
        UncertainKernelSVC(memory=str(folder)),
        IsotropicKernelSVC(memory=str(folder)),
    ):
        save_model(made.fit(Gaussians(X, std=np.ones(20)), y), path)
        shutil.rmtree(folder)
        document = json.loads(path.read_text(encoding="utf-8"))
        assert "memory" not in document["parameters"]
        document["parameters"]["memory"] = str(folder)
        path.write_text(json.dumps(document), encoding="utf-8")
        loaded = load_model(path)
        assert loaded.memory is None
        loaded.fit(Gaussians(X, std=np.ones(20)), y)
        assert not folder.exists()


def test_key_that_is_there_twice_among_many_is_found_in_linear_time(tmp_path):
    members = ",".join(f'"k{k}": 1' for k in range(200_000))  # of which squares take minutes
    (tmp_path / "model.json").write_text(f'{{{members}, "k199999": 2}}', encoding="ascii")
    with pytest.raises(ModelFileError, match="'k199999' is there twice"):
        load_model(tmp_path / "model.json")
