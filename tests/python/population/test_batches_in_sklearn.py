"""Batches among scikit-learn's tools: routing, pipelines, searches by the same column, frames."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC

PLAIN = {"X_std": False, "X_cov": False}


@pytest.fixture(scope="module")
def nights():
    rng = np.random.default_rng(0)
    n, d = 480, 3
    night, y = np.arange(n) % 16, rng.integers(2, size=n)
    v = 2.0 * y[:, None] + rng.normal(size=(n, d))
    std = np.exp(0.5 * rng.normal(size=(n, d)))
    x = v + 3.0 * rng.normal(size=(16, d))[night] + std * rng.normal(size=(n, d))
    return x, std, y, np.array([f"night {i}" for i in night])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_batches_reach_it_as_metadata_that_it_asks_for_by_itself(nights):
    x, std, y, night = nights
    svc = UncertainSVC().set_fit_request(**PLAIN)
    pipeline = make_pipeline(EmpiricalBayes(batch_covariance="full"), svc)
    pipeline.fit(x, y, X_std=std, batch=night)
    own = EmpiricalBayes(batch_covariance="full")
    posterior = own.fit_transform(x, y, X_std=std, batch=night)
    np.testing.assert_array_equal(pipeline[-1].coef_, UncertainSVC().fit(posterior, y).coef_)
    np.testing.assert_array_equal(
        pipeline.predict(x, X_std=std, batch=night),
        pipeline[-1].predict(own.transform(x, X_std=std, batch=night)),
    )
    assert pipeline.score(x, y, X_std=std, batch=night) > 0.85


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("machine", [LogisticRegression(), UncertainSVC(loss="hinge")])
def test_a_search_leaves_whole_nights_out_and_gains_by_them(nights, machine):
    x, std, y, night = nights
    if isinstance(machine, UncertainSVC):
        machine.set_fit_request(**PLAIN)
    made = EmpiricalBayes(output="mean", batch_covariance="diagonal")
    grid = {"empiricalbayes__batch_covariance": ["diagonal", "isotropic"]}
    search = GridSearchCV(make_pipeline(made, machine), grid, cv=GroupKFold(4), error_score="raise")
    search.fit(x, y, X_std=std, batch=night, groups=night)
    without = cross_validate(
        make_pipeline(EmpiricalBayes(output="mean"), machine),
        x,
        y,
        cv=GroupKFold(4),
        params={"X_std": std, "groups": night},
        error_score="raise",
    )
    assert search.best_score_ > without["test_score"].mean() + 0.1


@pytest.mark.usefixtures("routing")
def test_density_of_left_out_nights_is_higher_with_offsets(nights):
    x, std, _, night = nights
    params = {"X_std": std, "groups": night}
    options = {"cv": GroupKFold(4), "error_score": "raise"}
    with_offsets = cross_validate(
        EmpiricalBayes(batch_covariance="full"), x, params=params | {"batch": night}, **options
    )
    without = cross_validate(EmpiricalBayes(), x, params=params, **options)
    assert with_offsets["test_score"].mean() > without["test_score"].mean() + 1.0


@pytest.mark.usefixtures("routing")
def test_values_to_predict_go_with_batches(nights):
    x, std, y, night = nights
    rng = np.random.default_rng(1)
    values = 2.0 * y + 0.1 * rng.normal(size=len(y))
    made = EmpiricalBayes(output="mean", batch_covariance="diagonal")
    model = make_pipeline(made, LinearRegression()).fit(x, values, X_std=std, batch=night)
    assert model.score(x, values, X_std=std, batch=night) > 0.5


def test_batches_reach_it_by_the_name_of_its_step(nights):
    x, std, y, night = nights
    X = Gaussians(x, std=std)
    made = EmpiricalBayes(batch_covariance="full")
    pipeline = make_pipeline(made, UncertainSVC()).fit(X, y, empiricalbayes__batch=night)
    posterior = made.fit_transform(X, y, batch=night)
    np.testing.assert_array_equal(pipeline[-1].coef_, UncertainSVC().fit(posterior, y).coef_)


def test_frames_bring_names_and_their_index_is_that_of_the_batches(nights):
    x, std, y, night = nights
    frame = pd.DataFrame(x, columns=["a", "b", "c"], index=np.arange(len(x)) + 7)
    errors = pd.DataFrame(std, columns=["a", "b", "c"], index=frame.index)
    column = pd.Series(night, index=frame.index)
    model = EmpiricalBayes(batch_covariance="full", output="mean").set_output(transform="pandas")
    found = model.fit_transform(frame, y, X_std=errors, batch=column)
    assert list(found.columns) == ["a", "b", "c"]
    assert found.index.equals(frame.index)
    expected = EmpiricalBayes(batch_covariance="full", output="mean").fit_transform(
        x, y, X_std=std, batch=night
    )
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="batch"):
        model.fit(frame, y, X_std=errors, batch=column[::-1])
