"""The choice among ways to predict values of measurements: its table by hand, and its weights."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import EmpiricalBayes, MeasurementRegressor

LINES = ["values, ridge", "means, ridge"]
FOLDS = list(KFold(4).split(np.zeros(200)))


def noisy(n=200, seed=0):
    rng = np.random.default_rng(seed)
    errors = np.exp(rng.normal(0.0, 1.0, size=(n, 3)))
    true = rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, 3))
    y = true @ [2.0, -1.0, 0.5] + 0.1 * rng.normal(size=n)
    return true + errors * rng.normal(size=(n, 3)), errors, y


def test_table_is_that_of_a_loop_by_hand():
    X, errors, y = noisy()
    losses = np.empty((200, 2))
    for train, test in FOLDS:
        population = EmpiricalBayes(output="mean").fit(X[train], X_std=errors[train])
        parts = [population.transform(X[rows], X_std=errors[rows]) for rows in (train, test)]
        for k, (known, new) in enumerate([(X[train], X[test]), parts]):
            line = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 7)))
            losses[test, k] = (line.fit(known, y[train]).predict(new) - y[test]) ** 2
    model = MeasurementRegressor(LINES, cv=FOLDS).fit(X, y, X_std=errors)
    np.testing.assert_allclose(model.table_["loss"], losses.mean(axis=0), rtol=1e-8)


def test_posterior_means_are_chosen_where_errors_are_noise():
    X, errors, y = noisy()
    model = MeasurementRegressor(LINES, combine="best", random_state=0).fit(X, y, X_std=errors)
    assert model.chosen_[0].startswith("means")
    X_new, errors_new, y_new = noisy(2000, seed=1)
    line = make_pipeline(StandardScaler(), RidgeCV()).fit(X, y)
    own = np.mean((model.predict(X_new, X_std=errors_new) - y_new) ** 2)
    assert own < 0.9 * np.mean((line.predict(X_new) - y_new) ** 2)


def test_errors_of_the_target_are_weights_of_the_rows():
    X, errors, y = noisy()
    rng = np.random.default_rng(5)
    y_std = np.exp(rng.normal(size=200))
    read = y + y_std * rng.normal(size=200)
    model = MeasurementRegressor(LINES, cv=FOLDS).fit(X, read, X_std=errors, y_std=y_std)
    assert model.target_variance_ > 0
    weights = 1.0 / (model.target_variance_ + y_std**2)
    other = MeasurementRegressor(LINES, cv=FOLDS)
    other.fit(X, read, weights / weights.mean(), X_std=errors)
    np.testing.assert_allclose(model.table_["loss"], other.table_["loss"], rtol=1e-9)
    new = model.predict(X, X_std=errors)
    np.testing.assert_allclose(new, other.predict(X, X_std=errors), rtol=1e-9)


def test_the_variance_beyond_the_errors_of_the_target_is_found():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 2))
    y_std = np.exp(rng.normal(size=4000))
    y = X @ [1.0, 1.0] + 0.7 * rng.normal(size=4000) + y_std * rng.normal(size=4000)
    model = MeasurementRegressor(["values, ridge"], random_state=0).fit(X, y, y_std=y_std)
    # Relative standard error of a variance among unequal errors: below 5 % here.
    assert model.target_variance_ == pytest.approx(0.49, rel=0.15)


def test_errors_of_the_target_must_be_numbers():
    X, errors, y = noisy()
    with pytest.raises(ValueError, match="y_std: row 3 is -1"):
        MeasurementRegressor(LINES).fit(
            X, y, X_std=errors, y_std=np.where(np.arange(200) == 3, -1.0, 1.0)
        )
