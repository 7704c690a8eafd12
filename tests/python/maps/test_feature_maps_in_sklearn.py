"""The feature maps among scikit-learn's tools: its own checks, pipelines, searches and routing."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from astropy import units as u
from estimator_checks import pass_checks
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    UncertainFourierFeatures,
    UncertainNystroem,
    UncertainSVC,
)

FEATURES = [
    UncertainFourierFeatures(40, random_state=0),
    UncertainNystroem(n_components=40, random_state=0),
]
BOTH = pytest.mark.parametrize("features", FEATURES, ids=["fourier", "nystroem"])


@pytest.mark.parametrize(
    "estimator",
    [
        UncertainFourierFeatures(10, output="mean", random_state=0),
        UncertainFourierFeatures(7, map="phase", covariance="bound", random_state=0),
        UncertainNystroem(random_state=0),
        UncertainNystroem(landmarks="gaussians", output="mean", covariance="bound", random_state=0),
    ],
    ids=repr,
)
def test_transformer_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(scope="module")
def rings():
    """Two classes that no line divides, with errors of unequal size."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(300, 2))
    std = rng.uniform(0, 0.4, (300, 2))
    return mean, std, np.where(np.sum(mean**2, axis=1) > 1.2, "out", "in")


@BOTH
@pytest.mark.parametrize("covariance", ["low_rank", "bound"])
def test_arrays_without_errors_become_arrays_and_all_else_gaussians(features, covariance, rings):
    mean, std, y = rings
    map_ = sklearn.base.clone(features).set_params(covariance=covariance).fit(mean)
    certain = map_.set_params(output="gaussian").transform(mean)
    assert type(certain) is Gaussians
    assert not certain.covariances.variances().any()
    map_.set_params(output="auto")
    found = map_.transform(mean)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, certain.mean)
    frames = map_.set_output(transform="pandas").transform(mean)
    np.testing.assert_array_equal(frames.to_numpy(), found)
    for given in ({"X": Gaussians(mean)}, {"X": mean, "X_std": std}, {"X": mean, "X_cov": std**2}):
        assert type(map_.transform(**given)) is Gaussians
    points = make_pipeline(sklearn.base.clone(features), UncertainSVC(tol=1e-9))
    values = sklearn.base.clone(points).fit(mean, y).decision_function(mean)
    of_gaussians = points.fit(Gaussians(mean), y).decision_function(Gaussians(mean))
    np.testing.assert_allclose(values, of_gaussians, atol=1e-5)


@BOTH
def test_any_classifier_follows_on_arrays(features, rings):
    mean, _, y = rings
    pipeline = make_pipeline(sklearn.base.clone(features), LogisticRegression(C=100.0))
    assert cross_val_score(pipeline, mean, y).mean() > 0.9


@BOTH
def test_gaussians_flow_through_to_the_classifier(features, rings):
    mean, std, y = rings
    X = Gaussians(mean, std=std)
    pipeline = make_pipeline(sklearn.base.clone(features), UncertainSVC()).fit(X, y)
    lifted = sklearn.base.clone(features).fit_transform(X)
    np.testing.assert_array_equal(pipeline[-1].coef_, UncertainSVC().fit(lifted, y).coef_)
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].predict(lifted))
    assert pipeline[-1].decision_std(lifted).min() > 0
    scores = cross_val_score(pipeline, X, y, cv=3)
    assert scores.mean() > np.mean(y == "in") + 0.2  # than which no line is better
    after = make_pipeline(EmpiricalBayes(), sklearn.base.clone(features), UncertainSVC())
    assert after.fit(X, y).score(X, y) > 0.8


@BOTH
def test_keywords_reach_them_as_metadata_that_they_ask_for_by_themselves(features, rings):
    mean, std, y = rings
    clf = make_pipeline(sklearn.base.clone(features), UncertainSVC())
    expected = clf.fit(Gaussians(mean, std=std), y)[-1].coef_
    with sklearn.config_context(enable_metadata_routing=True):
        svc = UncertainSVC().set_fit_request(X_std=False, X_cov=False)
        pipeline = make_pipeline(sklearn.base.clone(features), svc).fit(mean, y, X_std=std)
        np.testing.assert_array_equal(pipeline[-1].coef_, expected)
        search = GridSearchCV(pipeline, {"uncertainsvc__C": [0.1, 1.0]}, cv=3)
        assert search.fit(mean, y, X_std=std).best_score_ > 0.7


@BOTH
def test_a_search_over_the_map_equals_one_by_hand(features, rings):
    mean, std, y = rings
    X, folds = Gaussians(mean, std=std), StratifiedKFold(3)
    step = type(features).__name__.lower()
    grid = {f"{step}__gamma": [0.05, 0.5], f"{step}__n_components": [4, 40]}
    pipeline = make_pipeline(sklearn.base.clone(features), UncertainSVC())
    search = GridSearchCV(pipeline, grid, cv=folds, error_score="raise").fit(X, y)
    by_hand = []
    for gamma in (0.05, 0.5):
        for size in (4, 40):
            scores = []
            for train, test in folds.split(mean, y):
                lift = sklearn.base.clone(features).set_params(gamma=gamma, n_components=size)
                clf = UncertainSVC().fit(lift.fit_transform(X[train]), y[train])
                scores.append(clf.score(lift.transform(X[test]), y[test]))
            by_hand.append(np.mean(scores))
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], by_hand)
    assert search.best_params_[f"{step}__n_components"] == 40


@BOTH
def test_expected_features_are_arrays_for_any_estimator_and_frames_if_asked(features, rings):
    mean, std, y = rings
    X = Gaussians(mean, std=std)
    means = sklearn.base.clone(features).set_params(output="mean")
    pipeline = make_pipeline(means, LogisticRegression(C=100)).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    frame = means.set_output(transform="pandas").fit_transform(X)
    assert isinstance(frame, pd.DataFrame)
    name = type(features).__name__.lower()
    assert list(frame.columns[:2]) == [f"{name}0", f"{name}1"]
    np.testing.assert_array_equal(means.get_feature_names_out(), frame.columns)


@BOTH
def test_names_units_and_groups_of_examples_are_heeded(features, rings):
    mean, std, _ = rings
    fitted = sklearn.base.clone(features)
    frame = pd.DataFrame(mean, columns=["a", "b"])
    plain = fitted.fit_transform(Gaussians(mean, std=std))
    named = fitted.fit_transform(frame, X_std=std)
    np.testing.assert_array_equal(named.mean, plain.mean)
    assert list(fitted.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature 0 named 'b', in fit it was 'a'"):
        fitted.transform(Gaussians(frame[["b", "a"]]))
    metres = Gaussians(mean * u.m, std=std * u.m)
    first = fitted.fit(metres).transform(metres)
    other = fitted.transform(Gaussians(1000 * mean * u.mm, std=1000 * std * u.mm))
    np.testing.assert_allclose(other.mean, first.mean, atol=1e-10)
    grouped = Gaussians(mean, std=std).replaced(groups=np.arange(300))
    np.testing.assert_array_equal(fitted.fit(grouped).transform(grouped).groups, np.arange(300))


@pytest.mark.parametrize("kind", ["fourier", "nystroem"])
def test_frames_are_made_of_arrays_alone(make_gaussians, kind):
    X, _ = make_gaussians("diagonal", n=20, d=3)
    features = (
        UncertainFourierFeatures(4, random_state=0)
        if kind == "fourier"
        else UncertainNystroem(n_components=4, random_state=0)
    ).set_output(transform="pandas")
    assert isinstance(features.fit_transform(X), Gaussians)
    assert isinstance(features.fit(X).transform(X), Gaussians)
    frame = features.set_params(output="mean").fit_transform(X)
    assert list(frame.columns) == list(features.get_feature_names_out())
