"""EmpiricalBayes among scikit-learn's tools: its own checks, pipelines, searches and routing."""

import json

import numpy as np
import pytest
import sklearn
from estimator_checks import pass_checks
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    UncertainKernelSVC,
    UncertainSVC,
    load_model,
    save_model,
)


# The checks put in missing values, whose posteriors are no array to compare unless means are asked
# for; and they take data as they come, where steps may be slow.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        EmpiricalBayes(output="mean"),
        EmpiricalBayes(2, covariance="diagonal", output="mean", random_state=0, n_threads=2),
        EmpiricalBayes("bic", covariance="diagonal", output="mean", random_state=0),
        EmpiricalBayes(covariance="factors", n_factors=1, output="mean"),
    ],
    ids=repr,
)
def test_transformer_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(scope="module")
def cells():
    """Two classes that differ by 1.5 of the spread, measured with errors of unequal size."""
    rng = np.random.default_rng(0)
    n, d = 300, 5
    y = rng.integers(2, size=n)
    common = rng.normal(size=(n, 1))
    v = 1.5 * y[:, None] + common + 0.4 * rng.normal(size=(n, d))
    std = 2.0 * np.exp(0.8 * rng.normal(size=(n, d)))
    return v + std * rng.normal(size=(n, d)), std, y


@pytest.mark.filterwarnings("ignore::halosvm.ErrorsLeftOutWarning")
def test_an_array_leaves_where_neither_fit_nor_transform_had_errors(cells, tmp_path):
    x, std, y = cells
    holes = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, np.nan, x)
    errors = {"X": x, "X_std": std}, {"X": x, "X_cov": std**2}, {"X": Gaussians(x)}, {"X": holes}
    alone = EmpiricalBayes().fit(x)
    assert not alone.with_errors_
    found = alone.transform(x)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, x)
    for given in errors:
        assert type(alone.transform(**given)) is Gaussians
        with_errors = EmpiricalBayes().fit(**given)
        assert with_errors.with_errors_
        assert type(with_errors.transform(x)) is Gaussians
        for model in (alone, with_errors):
            save_model(model, tmp_path / "model.json")
            loaded = load_model(tmp_path / "model.json")
            assert type(loaded.transform(x)) is type(model.transform(x))
    certain = alone.set_params(output="gaussian").transform(x)
    assert certain.covariances.kind == "zero"
    np.testing.assert_array_equal(certain.mean, x)
    pipeline = make_pipeline(EmpiricalBayes(), LogisticRegression())
    plain = LogisticRegression().fit(x, y)
    np.testing.assert_array_equal(pipeline.fit(x, y)[-1].coef_, plain.coef_)


def test_files_that_do_not_tell_of_errors_in_the_fit_give_gaussians(cells, tmp_path):
    save_model(EmpiricalBayes().fit(cells[0]), tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    del record["with_errors"]
    (tmp_path / "model.json").write_text(json.dumps(record))
    assert type(load_model(tmp_path / "model.json").transform(cells[0])) is Gaussians


def test_gaussians_flow_through_to_the_classifier(cells):
    x, std, y = cells
    X = Gaussians(x, std=std)
    pipeline = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(X, y)
    posterior = EmpiricalBayes().fit(X).transform(X)
    np.testing.assert_array_equal(pipeline[-1].coef_, UncertainSVC().fit(posterior, y).coef_)
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].predict(posterior))
    scores = cross_validate(pipeline, X, y, cv=4, error_score="raise")["test_score"]
    plain = cross_val_score(UncertainSVC(), X, y, cv=4)
    assert scores.mean() > plain.mean()


def test_keywords_reach_it_as_metadata_that_it_asks_for_by_itself(cells):
    x, std, y = cells
    expected = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(Gaussians(x, std=std), y)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = UncertainSVC().set_fit_request(X_std=False, X_cov=False)
        pipeline = make_pipeline(EmpiricalBayes(), svc)
        pipeline.fit(x, y, X_std=std)
        np.testing.assert_array_equal(pipeline[-1].coef_, expected[-1].coef_)
        np.testing.assert_array_equal(
            pipeline.predict(x, X_std=std), expected.predict(Gaussians(x, std=std))
        )
        pipeline.fit(x, y, X_cov=std**2)
        np.testing.assert_allclose(pipeline[-1].coef_, expected[-1].coef_, rtol=1e-6)
        forest = RandomForestClassifier(5, random_state=0)
        means = make_pipeline(EmpiricalBayes(output="mean"), forest)
        scores = cross_validate(means, x, y, cv=3, params={"X_std": std}, error_score="raise")
        assert (scores["test_score"] > 0.5).all()
        search = GridSearchCV(pipeline, {"empiricalbayes__n_components": [1, 2]}, cv=3)
        search.fit(x, y, X_std=std)
        assert search.best_score_ > 0.5
        own = EmpiricalBayes().fit(x, X_std=std)
        scored = cross_validate(EmpiricalBayes(), x, cv=3, params={"X_std": std})
        assert abs(scored["test_score"].mean() - own.score(x, X_std=std)) < 1


def test_keywords_reach_it_by_the_name_of_its_step(cells):
    x, std, y = cells
    expected = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(Gaussians(x, std=std), y)
    pipeline = make_pipeline(EmpiricalBayes(), UncertainSVC())
    pipeline.fit(x, y, empiricalbayes__X_std=std)
    np.testing.assert_array_equal(pipeline[-1].coef_, expected[-1].coef_)


def test_a_search_over_components_equals_one_by_hand(cells):
    x, std, y = cells
    X = Gaussians(x, std=std)
    folds = StratifiedKFold(3)
    pipeline = make_pipeline(EmpiricalBayes(output="mean", random_state=0), LogisticRegression())
    grid = {"empiricalbayes__n_components": [1, 2, 3]}
    search = GridSearchCV(pipeline, grid, cv=folds, error_score="raise").fit(X, y)
    by_hand = []
    for k in (1, 2, 3):
        scores = []
        for train, test in folds.split(x, y):
            eb = EmpiricalBayes(k, output="mean", random_state=0).fit(X[train])
            model = LogisticRegression().fit(eb.transform(X[train]), y[train])
            scores.append(model.score(eb.transform(X[test]), y[test]))
        by_hand.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)


def test_mixtures_reach_the_kernel_classifier(cells):
    x, std, y = cells
    X = Gaussians(x, std=std)[:100]
    eb = EmpiricalBayes(2, covariance="diagonal", output="mixture", random_state=0)
    pipeline = make_pipeline(eb, UncertainKernelSVC()).fit(X, y[:100])
    assert pipeline.score(X, y[:100]) > 0.6


def test_missing_values_pass_to_a_classifier_that_takes_none(cells):
    x, _, y = cells
    gone = np.random.default_rng(1).random(x.shape) < 0.3
    pipeline = make_pipeline(EmpiricalBayes(output="mean"), LogisticRegression())
    pipeline.fit(np.where(gone, np.nan, x), y)
    assert pipeline.score(np.where(gone, np.nan, x), y) > 0.6
    assert cross_val_score(pipeline, np.where(gone, np.nan, x), y, cv=3).mean() > 0.5
