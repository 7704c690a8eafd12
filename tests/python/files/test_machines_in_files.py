"""Model files of every linear machine: what is loaded predicts bit for bit what was saved."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    SafeSVC,
    TotalSVC,
    UncertainSVC,
    UncertainSVR,
    load_model,
    save_model,
)
from halosvm.files.model_file import ModelFileError

MACHINES = {
    "worst case": UncertainSVC(C=0.3, loss="worst_case", radius=1.64, error_scale=0.5),
    "best case": UncertainSVC(C=0.3, loss="best_case", radius=np.float64(0.5)),
    "marginal logistic": UncertainSVC(loss="marginal_logistic", error_scale=0.5),
    "huber hinge": UncertainSVC(loss="expected_huber_hinge"),
    "regression": UncertainSVR(C=3.0, epsilon=0.01, error_scale=0.5),
    "quantile": UncertainSVR(loss="pinball", quantile=0.9, fit_intercept=False),
    "total": TotalSVC(C=0.3, radius=0.5, n_restarts=1, random_state=0),
    "total in a ball": TotalSVC(formulation="ball", ball_radius=0.3),
    "safe": SafeSVC(bounds=(0.0, 0.5), random_state=0),
    "safe in a box": SafeSVC(bounds=(np.zeros(3), [0.5, 0.2, 1.0]), norm=np.inf, validation=3),
}


@pytest.fixture(scope="module")
def data():
    """Return Gaussians with isotropic errors, which all machines take, and a score."""
    rng = np.random.default_rng(11)
    means = rng.normal(size=(60, 3))
    score = means @ [1.0, -1.0, 0.3] + 0.5 * rng.normal(size=60)
    return Gaussians(means, std=rng.uniform(0, 1, size=60)), score


def fitted(machine, data):
    X, score = data
    y = score if is_regressor(machine) else np.where(score > 0, "yes", "no")
    return clone(machine).fit(X.mean if isinstance(machine, SafeSVC) else X, y)


def there_and_back(machine, tmp_path):
    save_model(machine, tmp_path / "model.json")
    return load_model(tmp_path / "model.json")


@pytest.mark.parametrize("name", MACHINES)
def test_loaded_machine_predicts_bit_for_bit_the_same(tmp_path, data, name):
    X, _ = data
    machine = fitted(MACHINES[name], data)
    loaded = there_and_back(machine, tmp_path)
    assert type(loaded) is type(machine)
    assert loaded.predict(X).dtype == machine.predict(X).dtype
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    if is_regressor(machine):
        values, spread = loaded.predict(X, return_std=True)
        expected = machine.predict(X, return_std=True)
        assert (values.tobytes(), spread.tobytes()) == tuple(map(np.ndarray.tobytes, expected))
        assert isinstance(loaded.intercept_, float)
        assert loaded.coef_.shape == (3,)
        return
    for method in ("decision_function", "decision_std", "side_probability"):
        assert getattr(loaded, method)(X).tobytes() == getattr(machine, method)(X).tobytes()


KEPT = {
    UncertainSVC: ["n_iter_", "objective_", "suboptimality_", "status_"],
    UncertainSVR: ["n_iter_", "objective_", "suboptimality_", "status_"],
    TotalSVC: ["n_iter_", "objective_", "status_", "is_global_"],
    SafeSVC: ["n_iter_", "std_", "validation_losses_"],
}


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_known_of_the_fit_survives(tmp_path, data, name):
    machine = fitted(MACHINES[name], data)
    loaded = there_and_back(machine, tmp_path)
    for attribute in KEPT[type(machine)]:
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(machine, attribute))
    assert loaded.n_features_in_ == 3
    fit_only = {"corrections_"} if isinstance(machine, TotalSVC) else set()
    assert set(vars(machine)) - set(vars(loaded)) == fit_only


@pytest.mark.parametrize("name", MACHINES)
def test_loaded_machine_fits_as_the_saved_one(tmp_path, data, name):
    machine = fitted(MACHINES[name], data)
    again = fitted(there_and_back(machine, tmp_path), data)
    np.testing.assert_array_equal(again.coef_, machine.coef_)
    np.testing.assert_array_equal(again.intercept_, machine.intercept_)
    own, other = again.get_params(), machine.get_params()
    if isinstance(machine, SafeSVC):
        np.testing.assert_array_equal(own.pop("bounds")[1], other.pop("bounds")[1])
    assert own == other


@pytest.mark.parametrize("validation", [StratifiedKFold(2), "data"])
def test_splits_and_validation_data_are_not_kept(tmp_path, data, validation):
    X, score = data
    given = (X.mean, np.where(score > 0, "yes", "no")) if validation == "data" else validation
    loaded = there_and_back(fitted(SafeSVC(validation=given), data), tmp_path)
    assert loaded.validation == 0.3


@pytest.mark.parametrize("name", ["worst case", "total in a ball", "regression", "safe"])
def test_pipelines_that_begin_with_a_population_are_kept(tmp_path, data, name):
    X, score = data
    machine = clone(MACHINES[name])
    # Posteriors are not isotropic, and shrink the slopes of a regression.
    mean = isinstance(machine, SafeSVC) or name in ("total in a ball", "regression")
    population = EmpiricalBayes(output="mean" if mean else "gaussian", random_state=0)
    pipeline = make_pipeline(population, machine)
    pipeline.fit(X, score if is_regressor(machine) else score > 0)
    loaded = there_and_back(pipeline, tmp_path)
    assert [type(step) for _, step in loaded.steps] == [EmpiricalBayes, type(machine)]
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


@pytest.mark.filterwarnings("ignore:UncertainSVR is fitted to posteriors:UserWarning")
@pytest.mark.parametrize("output", ["gaussian", "mean"])
def test_names_of_features_stay_where_a_pipeline_reads_them(tmp_path, data, output):
    X, score = data
    named = Gaussians(pd.DataFrame(X.mean, columns=["a", "b", "c"]), cov=X.covariances)
    pipeline = make_pipeline(EmpiricalBayes(output=output), UncertainSVR()).fit(named, score)
    loaded = there_and_back(pipeline, tmp_path)
    for step, saved in zip(loaded, pipeline, strict=True):
        assert hasattr(step, "feature_names_in_") == hasattr(saved, "feature_names_in_")
    assert loaded[0].feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(loaded.predict(named), pipeline.predict(named))


def test_file_of_a_regression_holds_plain_numbers(tmp_path, data):
    machine = fitted(MACHINES["regression"], data)
    save_model(machine, tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["estimator"] == "UncertainSVR"
    assert content["coef"] == [machine.coef_.tolist()]
    assert content["intercept"] == [machine.intercept_]
    assert "classes" not in content


def test_files_from_before_there_were_radii_and_scales_load(tmp_path):
    content = {
        "format": "halosvm-model",
        "format_version": 1,
        "estimator": "UncertainSVC",
        "parameters": {"C": 0.5, "loss": "expected_hinge", "tol": 1e-06, "random_state": 0},
        "classes": {"dtype": "<U3", "values": ["no", "yes"]},
        "feature_names": None,
        "coef": [[0.5, -0.25]],
        "intercept": [0.125],
        "fit": {"n_iter_": 9, "objective_": 0.5, "suboptimality_": 1e-07, "status_": "converged"},
    }
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    loaded = load_model(path)
    assert (loaded.C, loaded.radius, loaded.error_scale) == (0.5, 1.0, 1.0)
    assert loaded.decision_function([[1.0, 2.0]]).tolist() == [0.125]
    assert loaded.predict([[1.0, 3.0]]).tolist() == ["no"]


def test_a_class_of_its_own_is_not_saved_as_another(tmp_path, data):
    class Mine(UncertainSVC):
        """Predicts something else."""

    with pytest.raises(
        TypeError, match="estimator is a Mine, which a model file of JSON cannot hold"
    ):
        save_model(fitted(Mine(), data), tmp_path / "model.json")


# As version 2 wrote it, but for the numbers.
WITH_POPULATION = {
    "format": "halosvm-model",
    "format_version": 2,
    "estimator": "UncertainSVC",
    "parameters": {"C": 0.5, "loss": "expected_hinge", "tol": 1e-06, "random_state": 0},
    "feature_names": ["a", "b"],
    "coef": [[0.5, -0.25]],
    "intercept": [0.125],
    "fit": {"n_iter_": 9, "objective_": 0.5, "suboptimality_": 1e-07, "status_": "converged"},
    "classes": {"dtype": "<U3", "values": ["no", "yes"]},
    "population": {
        "parameters": {"n_components": 1, "covariance": "full", "output": "mean", "init": "kmeans"},
        "weights": [1.0],
        "means": [[1.0, 2.0]],
        "covariances": {"values": [[[2.0, 0.0], [0.0, 3.0]]]},
        "fit": {"log_likelihood": -3.5, "n_iter": 4, "converged": True, "status": "at rest"},
    },
}


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
def test_files_of_version_2_load(tmp_path, covariance):
    content = json.loads(json.dumps(WITH_POPULATION))
    population = content["population"]
    population["parameters"]["covariance"] = covariance
    if covariance == "diagonal":
        population["covariances"] = {"values": [[2.0, 3.0]]}
    if covariance == "factors":
        population["covariances"] = {"values": [[[0.0], [1.0]]], "diagonal_values": [[2.0, 2.0]]}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    truth, machine = load_model(path)
    assert truth.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(machine, "feature_names_in_")
    assert (truth.n_iter_, truth.converged_, truth.status_) == (4, True, "at rest")
    assert truth.log_likelihood_.tolist() == [-3.5]
    # mean 1 and variance 2, measured as 3 with variance 2: half-way; likewise 2 and 5 with 3
    measured = pd.DataFrame([[3.0, 5.0]], columns=["a", "b"])
    errors = pd.DataFrame([[2.0**0.5, 3.0**0.5]], columns=["a", "b"])
    posterior = truth.transform(measured, X_std=errors)
    np.testing.assert_allclose(posterior, [[2.0, 3.5]], rtol=1e-14)
    assert machine.decision_function(posterior)[0] == pytest.approx(0.25, rel=1e-13)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("regression", {"coef": [[1, 2, 3], [4, 5, 6]]}, "intercept: has 1 models, coef has 2"),
        ("regression", {"intercept": [0.0, 1.0]}, "intercept: has 2 models, coef has 1"),
        ("regression", {"coef": [1, 2, 3]}, "coef: must be numbers in 2 dimensions"),
        ("total", {"coef": [[1, 2, 3]] * 2}, "coef: has 2 models, intercept has 1"),
        ("safe", {"classes": {}}, "'dtype' is missing"),
        ("safe", {"estimator": "TotalSVC"}, "damaged: .*unexpected keyword"),
        ("safe", {"estimator": ["SafeSVC"]}, "damaged"),
        (
            "safe",
            {
                "classes": {"dtype": "<i8", "values": [0, 1, 2]},
                "coef": [[1, 2, 3]] * 3,
                "intercept": [0, 0, 0],
            },
            "SafeSVC has 2 classes, not 3",
        ),
    ],
)
def test_damaged_files_are_told(tmp_path, data, name, changes, message):
    path = tmp_path / "model.json"
    save_model(fitted(MACHINES[name], data), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelFileError, match=message):
        load_model(path)
