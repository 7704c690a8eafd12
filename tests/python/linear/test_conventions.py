"""scikit-learn's conventions, for every linear machine of Gaussians beside UncertainSVC's own test.

Clones, pipelines, searches, cross-validation with errors, metadata routing, spreads of decisions.
"""

import numpy as np
import pytest
import sklearn
from scipy.special import ndtr
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import (
    Gaussians,
    SafeSVC,
    TotalSVC,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

N = 60
MACHINES = {
    "worst case": UncertainSVC(C=2.0, loss="worst_case", radius=1.5),
    "total": TotalSVC(C=2.0, radius=0.5),
    "total rbf": TotalSVC(C=2.0, kernel="rbf", radius=0.5),
    "regression": UncertainSVR(C=2.0, loss="huber", delta=0.5),
}
EVERY = {**MACHINES, "safe": SafeSVC(C=2.0, bounds=(0.0, 0.5), norm=np.inf, random_state=0)}


@pytest.fixture(scope="module")
def data():
    """Return Gaussians, and a target that is a label, or a value for regression."""
    rng = np.random.default_rng(5)
    means = rng.normal(size=(N, 3)) * [1.0, 5.0, 0.2]
    score = means @ [1.0, 0.2, 0.0] + 0.3 * rng.normal(size=N)
    return Gaussians(means, std=rng.uniform(0.05, 0.5, (N, 3)) * [1.0, 5.0, 0.2]), score


def target(machine, score):
    return score if is_regressor(machine) else np.where(score > 0, "up", "down")


def output(machine, X):
    return machine.predict(X) if is_regressor(machine) else machine.decision_function(X)


@pytest.mark.parametrize("name", EVERY)
def test_clones_have_the_parameters_and_nothing_of_the_fit(data, name):
    X, score = data
    machine = clone(EVERY[name])
    machine.fit(X.mean, target(machine, score))
    other = clone(machine)
    assert other.get_params() == EVERY[name].get_params()
    assert not [attribute for attribute in vars(other) if attribute.endswith("_")]
    assert (is_classifier(machine), is_regressor(machine)) == (
        (False, True) if name == "regression" else (True, False)
    )


@pytest.mark.parametrize("name", MACHINES)
def test_gaussians_flow_through_pipelines_and_searches(data, name):
    X, score = data
    machine = clone(MACHINES[name])
    y = target(machine, score)
    pipeline = make_pipeline(UncertainStandardScaler(), machine).fit(X, y)
    scaled = UncertainStandardScaler().fit(X).transform(X)
    direct = clone(machine).fit(scaled, y)
    np.testing.assert_array_equal(output(pipeline, X), output(direct, scaled))
    assert pipeline.score(X, y) > 0.8
    sizes = "error_scale" if name == "regression" else "radius"
    search = GridSearchCV(clone(machine), {sizes: [0.0, 1.0]}, cv=3).fit(X, y)
    best = clone(machine).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(output(search, X), output(best, X))


@pytest.mark.parametrize("name", MACHINES)
def test_cross_validation_splits_errors_with_their_rows(data, name):
    X, score = data
    machine = clone(MACHINES[name])
    y, folds, std = target(machine, score), KFold(3), X.covariances.values
    options = {"cv": folds, "return_estimator": True}
    whole = cross_validate(machine, X, y, **options)
    apart = cross_validate(machine, X.mean, y, params={"X_std": std}, **options)
    for k, (train, test) in enumerate(folds.split(y)):
        expected = clone(machine).fit(X[train], y[train])
        for result in (whole, apart):
            found = result["estimator"][k]
            np.testing.assert_array_equal(output(found, X), output(expected, X))
            assert result["test_score"][k] == expected.score(X[test], y[test])


def test_cross_validation_splits_errors_of_the_values_with_their_rows(data):
    X, score = data
    noise, folds = np.linspace(0.0, 2.0, N), KFold(3)
    result = cross_validate(
        UncertainSVR(), X, score, cv=folds, params={"y_std": noise}, return_estimator=True
    )
    for found, (train, _) in zip(result["estimator"], folds.split(score), strict=True):
        expected = UncertainSVR().fit(X[train], score[train], y_std=noise[train])
        np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_safe_machine_takes_gaussians_that_are_certain_and_scalers(data):
    X, score = data
    machine, certain = EVERY["safe"], Gaussians(X.mean)
    y = target(machine, score)
    of_arrays = cross_validate(clone(machine), X.mean, y, cv=3)["test_score"]
    of_gaussians = cross_validate(clone(machine), certain, y, cv=3)["test_score"]
    np.testing.assert_array_equal(of_arrays, of_gaussians)
    pipeline = make_pipeline(StandardScaler(), clone(machine)).fit(X.mean, y)
    scaled = StandardScaler().fit_transform(X.mean)
    direct = clone(machine).fit(scaled, y)
    np.testing.assert_array_equal(pipeline[-1].std_, direct.std_)
    assert pipeline.score(X.mean, y) > 0.8


FIT_TAKES = {
    "worst case": ["X_cov", "X_std", "radius", "sample_weight"],
    "total": ["X_cov", "X_std", "sample_weight"],
    "total rbf": ["X_cov", "X_std", "sample_weight"],
    "regression": ["X_cov", "X_std", "sample_weight", "y_std"],
    "safe": ["sample_weight"],
}


@pytest.mark.parametrize("name", EVERY)
def test_requests_can_be_set_for_all_that_fit_takes(name):
    asked = dict.fromkeys(FIT_TAKES[name], True)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = clone(EVERY[name]).set_fit_request(**asked)
        assert machine.get_metadata_routing().fit.requests == asked


@pytest.mark.parametrize("name", EVERY)
def test_what_fit_takes_is_routed_through_a_pipeline(data, name):
    X, score = data
    machine = clone(EVERY[name])
    y = target(machine, score)
    given = {
        "X_std": X.covariances.values,
        "y_std": np.linspace(0.0, 1.0, N),
        "radius": np.linspace(0.5, 1.0, N),
        "sample_weight": np.linspace(0.5, 2.0, N),
    }
    given = {key: value for key, value in given.items() if key in FIT_TAKES[name]}
    expected = clone(machine).fit(X.mean, y, **given)
    with sklearn.config_context(enable_metadata_routing=True):
        identity = StandardScaler(with_mean=False, with_std=False)
        identity.set_fit_request(sample_weight=False)
        pipeline = make_pipeline(identity, machine.set_fit_request(**dict.fromkeys(given, True)))
        pipeline.fit(X.mean, y, **given)
        np.testing.assert_array_equal(output(pipeline, X.mean), output(expected, X.mean))


@pytest.mark.parametrize("name", ["worst case", "total", "safe"])
def test_decisions_of_linear_classifiers_have_a_spread(data, name):
    X, score = data
    machine = clone(EVERY[name])
    machine.fit(X.mean, target(machine, score))
    spread = np.sqrt(X.covariances.variances() @ machine.coef_[0] ** 2)
    np.testing.assert_allclose(machine.decision_std(X), spread, rtol=1e-13)
    expected = ndtr(machine.decision_function(X) / spread)
    np.testing.assert_allclose(machine.side_probability(X), expected, rtol=1e-11)
    np.testing.assert_allclose(
        machine.side_probability(X.mean, X_std=X.covariances.values), expected, rtol=1e-11
    )


@pytest.mark.parametrize("method", ["decision_std", "side_probability"])
def test_total_machine_has_a_spread_as_it_was_fitted(data, method):
    X, score = data
    machine = TotalSVC()
    assert hasattr(machine, method)
    machine.fit(X, target(machine, score)).set_params(kernel="rbf")
    assert hasattr(machine, method)
    machine.fit(X, target(machine, score)).set_params(kernel="linear")
    assert not hasattr(machine, method)
    assert not hasattr(TotalSVC(kernel="poly"), method)


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0])
def test_error_scale_multiplies_the_standard_deviations_of_features_alone(data, scale):
    X, score = data
    times = Gaussians(X.mean, std=scale * X.covariances.values)
    noise = np.linspace(0.0, 1.0, N)
    scaled = UncertainSVR(error_scale=scale).fit(X, score, y_std=noise)
    expected = UncertainSVR().fit(times, score, y_std=noise)
    np.testing.assert_allclose(scaled.coef_, expected.coef_, rtol=1e-12)
    assert scaled.intercept_ == pytest.approx(expected.intercept_, rel=1e-12)


def test_error_scale_that_makes_no_sense_is_refused(data):
    X, score = data
    with pytest.raises(ValueError, match=r"error_scale must be >= 0 and finite, got -1\.0"):
        UncertainSVR(error_scale=-1.0).fit(X, score)
