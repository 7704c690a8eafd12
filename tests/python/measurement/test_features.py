"""Columns from measurements with errors: each by an oracle, and as a transformer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from halosvm import EmpiricalBayes, ErrorsLeftOutWarning, Gaussians, MeasurementFeatures
from halosvm.population.class_populations import ClassPopulations

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
ERRORS = RNG.uniform(0.1, 1.5, size=(60, 3))
X = RNG.normal(size=(60, 3)) + Y[:, None] + ERRORS * RNG.normal(size=(60, 3))
X[4, 1] = ERRORS[4, 1] = np.nan
ERRORS[7, 2] = 0.0
ALL = ("values", "means", "sds", "log_errors", "missing", "log_odds")


def columns(**options):
    populations = ClassPopulations(1, tied=False)
    return MeasurementFeatures(class_populations=populations, random_state=0, **options)


def test_log_odds_of_training_rows_are_those_of_a_loop_that_leaves_them_out():
    folds = list(KFold(4).split(X))
    found = columns(features=("log_odds",), cv=folds).fit_transform(X, Y, X_std=ERRORS)
    measured = Gaussians(X, std=ERRORS)
    for train, test in folds:
        own = ClassPopulations(1, tied=False, random_state=0).fit(measured[train], Y[train])
        np.testing.assert_allclose(found[test], own.log_odds(measured[test]), rtol=1e-9)


def test_log_odds_of_new_rows_are_those_of_all_training_rows():
    fitted = columns(features=("log_odds",)).fit(X, Y, X_std=ERRORS)
    whole = ClassPopulations(1, tied=False, random_state=0).fit(X, Y, X_std=ERRORS)
    new = fitted.transform(X[:9], X_std=ERRORS[:9])
    np.testing.assert_allclose(new, whole.log_odds(X[:9], X_std=ERRORS[:9]), rtol=1e-9)


def test_means_and_spreads_are_those_of_the_posteriors():
    found = columns(features=("means", "sds")).fit_transform(X, X_std=ERRORS)
    posterior = EmpiricalBayes().fit_transform(X, X_std=ERRORS)
    spreads = np.sqrt(posterior.covariances.variances())
    np.testing.assert_allclose(found, np.hstack([posterior.mean, spreads]), rtol=1e-10)


def test_errors_of_0_and_of_missing_values_have_the_documented_logarithms():
    found = columns(features=("log_errors", "missing")).fit_transform(X, X_std=ERRORS)
    logs = np.log(np.where(ERRORS > 0, ERRORS, np.nan))
    logs[7, 2] = np.nanmin(logs[:, 2])
    there = np.sort(logs[~np.isnan(logs[:, 1]), 1])
    logs[4, 1] = there[(len(there) - 1) // 2]
    np.testing.assert_allclose(found[:, :3], logs, rtol=1e-12)
    np.testing.assert_array_equal(found[:, 3], np.arange(60) == 4)


def test_missing_values_are_filled_with_the_weighted_mean():
    weights = RNG.uniform(size=60)
    found = columns(features=("values",)).fit_transform(X, X_std=ERRORS, sample_weight=weights)
    there = ~np.isnan(X[:, 1])
    assert found[4, 1] == pytest.approx(np.average(X[there, 1], weights=weights[there]))


def test_columns_have_names_in_frames():
    frame = pd.DataFrame(X, columns=["u", "g", "r"])
    labels = np.array(["a", "b", "c"])[Y]
    made = columns(features=ALL).set_output(transform="pandas")
    found = made.fit_transform(frame, labels, X_std=ERRORS)
    assert list(found.columns[:4]) == ["u_value", "g_value", "r_value", "u_mean"]
    assert list(found.columns[-3:]) == ["g_missing", "log_odds_b", "log_odds_c"]


def test_gaussians_are_the_same_as_an_array_beside_its_errors():
    one = columns(features=ALL).fit_transform(X, Y, X_std=ERRORS)
    other = columns(features=ALL).fit_transform(Gaussians(X, std=ERRORS), Y)
    np.testing.assert_array_equal(one, other)


def test_populations_of_many_rows_are_estimated_from_some():
    made = columns(features=("means", "log_odds"), max_rows=40)
    found = made.fit_transform(X, Y, X_std=ERRORS)
    assert made.population_.log_likelihood_[-1] != pytest.approx(
        EmpiricalBayes().fit(X, X_std=ERRORS).log_likelihood_[-1]
    )
    new = made.transform(X, X_std=ERRORS)[:, 3:]
    same = (found[:, 3:] == new).all(axis=1)
    assert same.sum() == 20  # what no population saw, nothing needs to leave out


def test_errors_that_are_left_out_later_are_missed():
    fitted = columns().fit(X, X_std=ERRORS)
    with pytest.warns(ErrorsLeftOutWarning, match="MeasurementFeatures"):
        fitted.transform(X)


def test_any_classifier_of_points_can_stand_behind_them():
    steps = make_pipeline(columns(features=ALL), LogisticRegression(max_iter=1000))
    assert steps.fit(Gaussians(X, std=ERRORS), Y).score(Gaussians(X, std=ERRORS), Y) > 0.6


@pytest.mark.parametrize("features", ["means", (), ("means", "modes")])
def test_features_must_be_known(features):
    with pytest.raises(ValueError, match="features must be"):
        columns(features=features).fit(X, X_std=ERRORS)
