"""Files of skops: what JSON cannot hold comes back to the last bit, and nothing strange is made."""

import json
import os
import sys
from io import BytesIO
from types import SimpleNamespace
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import halosvm.files
from halosvm import (
    Gaussians,
    MeasurementClassifier,
    MeasurementFeatures,
    MeasurementRegressor,
    UncertainKernelSVC,
    load_model,
    save_model,
)
from halosvm.files.model_file import ModelFileError
from halosvm.measurement.candidates import classifiers, regressors

io = pytest.importorskip("skops.io")

N = 90
RNG = np.random.default_rng(4)
LABELS = np.array(["blue", "green", "red"])[np.arange(N) % 3]
STD = RNG.uniform(0.1, 1.5, size=(N, 2))
VALUES = (np.arange(N) % 3)[:, None] + STD * RNG.normal(size=(N, 2))
VALUES[RNG.uniform(size=(N, 2)) < 0.1] = np.nan
FACTORS = 0.3 * RNG.normal(size=(N, 2, 2))
NUMBERS = np.nan_to_num(VALUES).sum(axis=1)
FEW = ["values, logistic", "means, logistic", "posteriors, kernel", "means, kernel"]


def frame(values):
    return pd.DataFrame(values, columns=["mass", "flux"])


EXAMPLES = {
    "arrays": (VALUES, {"X_std": STD}),
    "frames": (frame(VALUES), {"X_std": frame(STD)}),
    "Gaussians": (Gaussians(np.nan_to_num(VALUES), cov=FACTORS @ FACTORS.transpose(0, 2, 1)), {}),
}


def same(model, path):
    save_model(model, path)
    return load_model(path)


@pytest.mark.parametrize("combine", ["mean", "best"])
@pytest.mark.parametrize("given", EXAMPLES)
def test_classifier_comes_back_to_the_last_bit(tmp_path, given, combine):
    X, errors = EXAMPLES[given]
    model = MeasurementClassifier(FEW, combine=combine, cv=3, random_state=0)
    model.fit(X, LABELS, **errors)
    found = same(model, tmp_path / "model.skops")
    probabilities = model.predict_proba(X, **errors)
    assert found.predict_proba(X, **errors).tobytes() == probabilities.tobytes()
    assert (found.predict(X, **errors) == model.predict(X, **errors)).all()
    assert str(found.table_) == str(model.table_)
    assert found.table_.dtype == model.table_.dtype
    assert (found.chosen_, found.advice_) == (model.chosen_, model.advice_)
    assert vars(found).keys() == vars(model).keys()
    assert found.get_params()["candidates"] == FEW
    if given == "frames":
        assert found.feature_names_in_.tolist() == ["mass", "flux"]


# One way for each kind of estimator, and columns of every kind; "posteriors, kernel" is above.
WAYS = ["values, kernel", "means and errors, boosting", "all, trees", "posteriors, linear"]


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_classes_can_be_kept(tmp_path, name):
    y = LABELS == "red"
    model = MeasurementClassifier([name], cv=2, random_state=0).fit(VALUES, y, X_std=STD)
    found = same(model, tmp_path / "model.skops")
    answers = [each.predict_proba(VALUES, X_std=STD).tobytes() for each in (found, model)]
    assert answers[0] == answers[1]


def test_every_kind_of_estimator_is_among_those_ways():
    kinds = {each.name: type(each.estimator) for each in classifiers(curves=False)}
    assert {kinds[name] for name in WAYS + FEW} == set(kinds.values())


@pytest.mark.parametrize("combine", ["mean", "best"])
def test_regressor_comes_back_to_the_last_bit(tmp_path, combine):
    ways = [each.name for each in regressors() if combine == "mean" or "values" not in each.name]
    model = MeasurementRegressor(ways, combine=combine, cv=2, random_state=0)
    model.fit(VALUES, NUMBERS, X_std=STD, y_std=np.ones(N))
    found = same(model, tmp_path / "model.skops")
    answers = [each.predict(VALUES, X_std=STD).tobytes() for each in (found, model)]
    assert answers[0] == answers[1]
    assert vars(found).keys() == vars(model).keys()


@pytest.mark.parametrize("name", [each.name for each in regressors()[:3]])
def test_every_way_to_values_can_be_kept(tmp_path, name):
    model = MeasurementRegressor([name], cv=2, random_state=0).fit(VALUES, NUMBERS, X_std=STD)
    found = same(model, tmp_path / "model.skops")
    answers = [each.predict(VALUES, X_std=STD).tobytes() for each in (found, model)]
    assert answers[0] == answers[1]


def test_features_and_what_stands_behind_them_come_back_to_the_last_bit(tmp_path):
    kinds = ("values", "means", "sds", "log_errors", "missing", "log_odds")
    features = MeasurementFeatures(kinds, random_state=0)
    model = make_pipeline(features, RandomForestClassifier(5, random_state=0))
    X = Gaussians(VALUES, std=STD)
    model.fit(X, LABELS)
    found = same(model, tmp_path / "model.skops")
    assert found[0].transform(X).tobytes() == model[0].transform(X).tobytes()
    assert (found[0].get_feature_names_out() == model[0].get_feature_names_out()).all()
    assert found.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.fixture(scope="module")
def fitted():
    return MeasurementClassifier(FEW[:2], cv=3, random_state=0).fit(VALUES, LABELS, X_std=STD)


def test_json_refuses_and_tells_the_ending(tmp_path, fitted):
    with pytest.raises(TypeError, match=r"MeasurementClassifier.*name the file \*\.skops"):
        save_model(fitted, tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_settings_of_new_fits_that_are_no_data_become_the_default(tmp_path):
    cache = UncertainKernelSVC(memory=str(tmp_path / "remembered"))
    model = MeasurementClassifier([("kernel", cache)], cv=StratifiedKFold(3), random_state=0)
    model.fit(np.nan_to_num(VALUES), LABELS, X_std=STD)
    path = tmp_path / "model.skops"
    found = same(model, path)
    assert found.cv == 5
    assert found.candidates[0][1].memory is None
    assert found.fitted_["kernel"].estimator.memory is None
    assert b"remembered" not in path.read_bytes()
    assert isinstance(model.cv, StratifiedKFold)  # the saved one is as it was
    assert model.fitted_["kernel"].estimator.memory is not None


def test_folder_of_a_cache_in_a_file_is_not_taken(tmp_path):
    model = UncertainKernelSVC().fit(np.nan_to_num(VALUES), LABELS, X_std=STD)
    model.memory = "elsewhere"
    assert load_model(written(tmp_path, model)).memory is None


# ---- what may be in a file, and what not ---------------------------------------------------------
def written(folder, estimator, table=None, version=halosvm.__version__, **options):
    path = folder / "given.skops"
    document = {"halosvm": version, "estimator": estimator, "table": table}
    path.write_bytes(io.dumps(document, **options))
    return path


def renamed(path, old, new):
    """Put other words into the description of an archive."""
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts["schema.json"]
    parts["schema.json"] = parts["schema.json"].replace(old, new)
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("strange", "name"),
    [
        (os.system, r"posix\.system|nt\.system"),
        (json.JSONDecoder, r"json\.decoder\.JSONDecoder"),
        (SimpleNamespace(a=1), r"types\.SimpleNamespace"),
    ],
)
def test_other_types_are_refused_by_name_in_a_line(tmp_path, strange, name):
    path = written(tmp_path, LogisticRegression(), {"label": strange})
    with pytest.raises(ModelFileError, match=f"no .skops file may hold ({name})$") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_types_of_trusted_modules_are_refused_alike(tmp_path, fitted):
    path = tmp_path / "model.skops"
    save_model(fitted, path)
    renamed(path, b'"Candidate"', b'"Counter"')  # which that module imports
    with pytest.raises(ModelFileError, match=r"may hold halosvm\.measurement\.candidates\.Counter"):
        load_model(path)


def test_damaged_files_are_told_in_a_line(tmp_path, fitted):
    path = tmp_path / "model.skops"
    save_model(fitted, path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    with ZipFile(BytesIO(content)) as archive:
        first = archive.infolist()[0]
        of_data = first.header_offset + 30 + len(first.filename) + first.file_size // 2
    places = [of_data, *(rng.integers(0, len(content), size=10))]
    damaged = [content[:100], content[: len(content) // 2], content[:-1]]
    damaged += [content[:i] + bytes([content[i] ^ 16]) + content[i + 1 :] for i in places]
    told = 0
    for each in damaged:
        path.write_bytes(each)
        try:
            found = load_model(path)
        except ModelFileError as error:
            message = str(error)
        else:  # a byte that means nothing, such as one of a date
            answers = [m.predict_proba(VALUES, X_std=STD).tobytes() for m in (found, fitted)]
            assert answers[0] == answers[1]
            continue
        told += 1
        assert "\n" not in message
        assert str(path) in message
    assert told > 10


WHOLE = {"halosvm": "1", "estimator": LogisticRegression(), "table": None}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ({"estimator": LogisticRegression()}, {}, "KeyError: 'halosvm'"),
        ({"halosvm": "1", "estimator": 3, "table": None}, {}, "3 is not an estimator instance"),
        (WHOLE, {}, "This LogisticRegression instance is not fitted yet"),
        ([1, 2], {"compression": ZIP_DEFLATED}, "its parts are compressed"),
    ],
)
def test_other_archives_are_told_in_a_line(tmp_path, content, options, message):
    path = tmp_path / "model.skops"
    path.write_bytes(io.dumps(content, **options))
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def test_what_would_not_be_read_is_not_written(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"earlier")
    X = np.nan_to_num(VALUES)
    ways = {
        r"_kd_tree\.KDTree": KNeighborsClassifier(algorithm="kd_tree"),
        r"test_skops_file\.doubled": make_pipeline(
            FunctionTransformer(doubled), LogisticRegression()
        ),
    }
    for name, way in ways.items():
        model = MeasurementClassifier([way], cv=2, random_state=0).fit(X, LABELS, X_std=STD)
        with pytest.raises(TypeError, match=f"MeasurementClassifier.*{name}"):
            save_model(model, path)
    assert path.read_bytes() == b"earlier"


def doubled(X):
    return 2 * X


def test_file_appears_whole_or_not_at_all(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.skops"
    save_model(UncertainKernelSVC().fit(np.nan_to_num(VALUES), LABELS), path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_model(fitted, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_another_version_is_told(tmp_path, fitted):
    path = written(tmp_path, fitted, version="0.0.1")
    with pytest.warns(UserWarning, match=r"written by halosvm 0\.0\.1, this is"):
        load_model(path)


def test_missing_skops_is_told_with_what_to_type(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.skops"
    save_model(fitted, path)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.delitem(sys.modules, "halosvm.files.skops_file")
    monkeypatch.delattr(halosvm.files, "skops_file")
    for use in (lambda: load_model(path), lambda: save_model(fitted, path)):
        with pytest.raises(ImportError, match=r'need skops: pip install "halosvm\[io\]"'):
            use()
