"""The choice among ways to classify measurements: its table by hand, and what it chooses."""

import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import xlogy
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from halosvm import (
    EmpiricalBayes,
    ErrorsLeftOutWarning,
    Gaussians,
    MeasurementClassifier,
    MeasurementFeatures,
    PlattScaling,
    UncertainSVC,
)

LINES = ["values, logistic", "means, logistic", "values and errors, logistic"]
FOLDS = list(KFold(4).split(np.zeros(120)))


def noisy(n, seed=0):
    """Two classes behind unequal noise: errors that pay."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    errors = np.exp(rng.normal(0.0, 1.2, size=(n, 3)))
    true = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 3))
    true[:, 0] += 1.2 * y
    return true + errors * rng.normal(size=(n, 3)), errors, y


def telling(n, seed=0):
    """Two classes of equal values, whose errors differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    errors = 0.1 * np.exp(rng.normal(1.0 * y[:, None], 0.5, size=(n, 2)))
    return rng.normal(size=(n, 2)), errors, y


def fitted(candidates, X, errors, y, **options):
    made = MeasurementClassifier(candidates, **({"random_state": 0} | options))
    return made.fit(X, y, X_std=errors)


def log_losses(p, y):
    return -xlogy(np.column_stack([y == 0, y == 1]), p).sum(axis=1)


def by_hand(way, X, errors, y, folds):
    """Return the loss of each left-out row, of a function from training and test rows."""
    losses = np.empty(len(y))
    for train, test in folds:
        p = way(X[train], errors[train], y[train], X[test], errors[test])
        losses[test] = log_losses(p, y[test])
    return losses


def values_alone(X, errors, y, X_new, errors_new):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return model.predict_proba(X_new)


def posterior(estimator, X, errors, y, X_new, errors_new):
    population = EmpiricalBayes(output="mean").fit(X, X_std=errors)
    means, new = (
        population.transform(X, X_std=errors),
        population.transform(X_new, X_std=errors_new),
    )
    return clone(estimator).fit(means, y).predict_proba(new)


def posterior_means(*given):
    return posterior(make_pipeline(StandardScaler(), LogisticRegression()), *given)


def test_table_is_that_of_a_loop_by_hand():
    X, errors, y = noisy(120)
    table = fitted(LINES[:2], X, errors, y, cv=FOLDS).table_
    values = by_hand(values_alone, X, errors, y, FOLDS)
    means = by_hand(posterior_means, X, errors, y, FOLDS)
    np.testing.assert_allclose(table["loss"], [values.mean(), means.mean()], rtol=1e-6)
    np.testing.assert_allclose(table["error"][0], values.std(ddof=1) / np.sqrt(120), rtol=1e-6)
    np.testing.assert_allclose(table["difference"][1], (means - values).mean(), rtol=1e-5)
    # Nadeau and Bengio: 1 / folds of the variance of a fold become 1 / folds + test / training.
    of_fold = (means - values).var(ddof=1) / 30
    np.testing.assert_allclose(
        table["difference_error"][1], np.sqrt((1 / 4 + 30 / 90) * of_fold), rtol=1e-5
    )


def test_curves_of_scores_are_fitted_to_other_left_out_rows():
    X, errors, y = noisy(120)
    scores = np.empty(120)
    for train, test in FOLDS:
        scaler = StandardScaler().fit(X[train])
        machine = SVC(gamma="auto", tol=1e-6).fit(scaler.transform(X[train]), y[train])
        scores[test] = machine.decision_function(scaler.transform(X[test]))
    losses = np.empty(120)
    for train, test in FOLDS:
        p = PlattScaling().fit(scores[train], y[train] == 1).probability(scores[test])
        losses[test] = log_losses(np.column_stack([1 - p, p]), y[test])
    model = fitted(["values, kernel"], X, errors, y, cv=FOLDS)
    assert model.table_["loss"][0] == pytest.approx(losses.mean(), rel=1e-6)
    scaler = StandardScaler().fit(X)
    machine = SVC(gamma="auto", tol=1e-6).fit(scaler.transform(X), y)
    p = (
        PlattScaling()
        .fit(scores, y == 1)
        .probability(machine.decision_function(scaler.transform(X)))
    )
    np.testing.assert_allclose(model.predict_proba(X, X_std=errors)[:, 1], p, rtol=1e-5)


def test_whole_weights_are_repetitions():
    X, errors, y = noisy(120)
    weights = 1 + np.arange(120) % 3
    row = np.repeat(np.arange(120), weights)
    inside = [np.isin(row, test) for _, test in FOLDS]
    folds = [(np.flatnonzero(~each), np.flatnonzero(each)) for each in inside]
    one = MeasurementClassifier(LINES, cv=FOLDS).fit(X, y, weights, X_std=errors)
    other = MeasurementClassifier(LINES, cv=folds).fit(X[row], y[row], X_std=errors[row])
    np.testing.assert_allclose(one.table_["loss"], other.table_["loss"], rtol=1e-4)
    np.testing.assert_allclose(one.table_["error"], other.table_["error"], rtol=1e-4)
    p, q = (each.predict_proba(X, X_std=errors) for each in (one, other))
    np.testing.assert_allclose(p, q, atol=1e-4)


def test_order_of_rows_and_units_of_features_make_no_difference():
    X, errors, y = noisy(120)
    X[3, 1] = errors[3, 1] = np.nan
    p = fitted(LINES, X, errors, y, cv=FOLDS).predict_proba(X, X_std=errors)
    order = np.random.default_rng(1).permutation(120)
    place = np.argsort(order)
    folds = [(place[train], place[test]) for train, test in FOLDS]
    unit = np.array([1e3, 1.0, 1e-3])
    moved = fitted(LINES, X[order] * unit, errors[order] * unit, y[order], cv=folds)
    q = moved.predict_proba(X * unit, X_std=errors * unit)
    np.testing.assert_allclose(p, q, atol=1e-4)


def test_where_errors_are_noise_posterior_means_are_chosen():
    X, errors, y = noisy(400)
    model = fitted(LINES, X, errors, y, combine="best")
    assert model.chosen_ == ["means, logistic"]
    assert model.advice_.startswith("Errors help")
    X_new, errors_new, y_new = noisy(2000, seed=1)
    own = log_losses(model.predict_proba(X_new, X_std=errors_new), y_new).mean()
    ignoring = log_losses(values_alone(X, errors, y, X_new, errors_new), y_new).mean()
    assert own < ignoring - 0.05


def test_where_errors_are_news_they_become_features():
    X, errors, y = telling(200)
    model = fitted([*LINES, "means and errors, kernel"], X, errors, y)
    assert "values and errors, logistic" in model.chosen_
    X_new, errors_new, y_new = telling(1000, seed=1)
    assert log_losses(model.predict_proba(X_new, X_std=errors_new), y_new).mean() < 0.5
    with pytest.raises(ValueError, match="errors_as_news"):
        fitted(["values and errors, logistic"], X, errors, y, errors_as_news=False)


def test_rows_whose_errors_are_all_smaller_are_from_elsewhere():
    rng = np.random.default_rng(4)
    y = np.arange(300) % 2
    errors = np.exp(0.5 * rng.normal(size=(300, 8)) + 0.7 * y[:, None])
    X = rng.normal(size=(300, 8)) + y[:, None] + errors * rng.normal(size=(300, 8))
    model = fitted(["means, logistic", "means and errors, logistic"], X, errors, y)
    assert "means and errors, logistic" in model.chosen_
    assert model.advice_.startswith(("No candidate ignores", "Errors"))
    same = np.exp(0.5 * rng.normal(size=(300, 8)) + 0.7 * y[:, None])
    assert model._outside(Gaussians(X, std=same)).mean() < 0.03
    # A tenth of two deviations each is far for the mean of eight alone.
    assert model._outside(Gaussians(X, std=0.2 * same)).mean() > 0.5


def test_where_nothing_helps_errors_are_ignored_at_no_loss():
    rng = np.random.default_rng(3)
    y = np.arange(300) % 2
    X, errors = rng.normal(size=(300, 2)) + y[:, None], rng.uniform(0.01, 0.05, size=(300, 2))
    ways = [*LINES, "values, kernel", "class populations"]
    model = fitted(ways, X, errors, y)
    assert model.advice_.startswith("Nothing beats ignoring the errors")
    assert all(name.startswith("values, ") for name in model.chosen_)
    X_new = rng.normal(size=(1000, 2)) + (y_new := np.arange(1000) % 2)[:, None]
    own = log_losses(model.predict_proba(X_new, X_std=np.full((1000, 2), 0.03)), y_new)
    alone = log_losses(values_alone(X, errors, y, X_new, None), y_new)
    apart = own - alone
    assert apart.mean() < apart.std() / np.sqrt(1000)


def test_rows_with_errors_out_of_range_are_answered_without_them():
    X, errors, y = telling(200)
    model = fitted(LINES, X, errors, y)
    low, high = np.quantile(np.log(errors), [0.01, 0.99], axis=0)
    border = np.exp(high + 0.5 * (high - low))
    usual = np.exp(np.median(np.log(errors), axis=0))
    inside, beyond = ([usual[0], part * border[1]] for part in (0.999, 1.001))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(X[:2], X_std=np.tile(inside, (2, 1)))
    new = np.vstack([inside, beyond])
    with pytest.warns(UserWarning, match="1 of 2 rows lie outside"):
        found = model.predict_proba(X[:2], X_std=new)
    rest = fitted(LINES[:2], X, errors, y)
    parts = [_alone(name, X, errors, y, X[1:2], new[1:]) for name in LINES[:2]]
    np.testing.assert_allclose(found[1], np.mean(parts, axis=0)[0], rtol=1e-9)
    assert rest.classes_.tolist() == [0, 1]
    trusting = fitted(LINES, X, errors, y, errors_as_news=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trusting.predict_proba(X[:2], X_std=new)


def _alone(name, X, errors, y, X_new, errors_new):
    return fitted([name], X, errors, y).predict_proba(X_new, X_std=errors_new)


def test_mean_is_that_of_the_three_best_within_a_standard_error():
    X, errors, y = noisy(120)
    ways = [("means, logistic", 1.0), ("weak", 1e-3), ("weaker", 0.3), ("strong", 3.0)]
    ways = [(name, make_pipeline(StandardScaler(), LogisticRegression(C=C))) for name, C in ways]
    losses = np.array([
        by_hand(lambda *given, k=k: posterior(ways[k][1], *given), X, errors, y, FOLDS)
        for k in range(4)
    ])  # fmt: skip
    best = losses.mean(axis=1).argmin()
    apart = losses - losses[best]
    near = apart.mean(axis=1) <= apart.std(axis=1, ddof=1) / np.sqrt(120) * np.sqrt(1 + 4 / 3)
    assert not near[1]
    order = [k for k in np.argsort(losses.mean(axis=1)) if near[k]][:3]
    model = fitted(ways, X, errors, y, cv=FOLDS)
    assert model.chosen_ == [ways[k][0] for k in order]
    assert fitted(ways, X, errors, y, cv=FOLDS, combine="best").chosen_ == [
        ways[int(np.flatnonzero(near)[0])][0]
    ]
    p = np.mean([posterior(ways[k][1], X, errors, y, X, errors) for k in order], axis=0)
    np.testing.assert_allclose(model.predict_proba(X, X_std=errors), p, rtol=1e-6)


def test_estimators_of_the_user_get_what_they_take():
    X, errors, y = noisy(120)
    own = [
        ("plain", LogisticRegression()),
        ("margins", LinearSVC()),
        ("measured", make_pipeline(EmpiricalBayes(), UncertainSVC())),
        ("values", make_pipeline(MeasurementFeatures(("values",)), LogisticRegression())),
        "values, logistic",
    ]
    model = fitted(own, X, errors, y, cv=FOLDS)
    assert model.table_["name"].tolist() == [*(name for name, _ in own[:4]), "values, logistic"]
    direct = by_hand(
        lambda X, s, y, X_new, s_new: LogisticRegression().fit(X, y).predict_proba(X_new),
        X, errors, y, FOLDS,
    )  # fmt: skip
    np.testing.assert_allclose(model.table_["loss"][3], direct.mean(), rtol=1e-6)
    assert model.table_["difference"][3] == 0.0  # the first that ignores errors


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "empty list"),
        ("all", "must be 'auto' or a list"),
        (["kernels"], "no candidate is named 'kernels'; there are values, logistic"),
        ([LogisticRegression(), LogisticRegression()], "two candidates are named"),
    ],
)
def test_candidates_must_make_sense(candidates, message):
    X, errors, y = noisy(40)
    with pytest.raises(ValueError, match=message):
        fitted(candidates, X, errors, y)


def test_exact_examples_leave_the_ways_of_errors_out():
    X, _, y = noisy(60)
    model = MeasurementClassifier(random_state=0).fit(X, y)
    assert all(name.startswith("values, ") for name in model.table_["name"])
    assert model.advice_.startswith("All candidates ignore the errors")


def test_classes_may_have_names_and_rows_groups():
    X, errors, y = noisy(120)
    labels = np.array(["quasar", "star"])[y]
    groups = np.arange(120) // 4
    model = MeasurementClassifier(LINES, random_state=0)
    model.fit(Gaussians(X, std=errors), labels, groups=groups)
    assert model.classes_.tolist() == ["quasar", "star"]
    assert set(model.predict(Gaussians(X, std=errors))) <= {"quasar", "star"}
    logs = model.predict_log_proba(Gaussians(X, std=errors))
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)


def test_each_row_has_one_group():
    X, errors, y = noisy(30)
    with pytest.raises(ValueError, match=r"groups has shape \(5,\), expected \(30,\)"):
        MeasurementClassifier(LINES).fit(X, y, X_std=errors, groups=np.arange(5))


def test_groups_are_left_out_together_and_count_as_one():
    X, errors, y = noisy(120)
    groups = np.repeat(np.arange(30), 4)  # four copies of a row, which no fold may share
    row = groups * 4
    folds = [(np.flatnonzero(groups % 3 != k), np.flatnonzero(groups % 3 == k)) for k in range(3)]
    model = MeasurementClassifier(LINES[:1], cv=folds)
    table = model.fit(X[row], y[np.arange(120) // 4], X_std=errors[row], groups=groups).table_
    losses = by_hand(values_alone, X[row], errors[row], y[np.arange(120) // 4], folds)
    assert table["error"][0] == pytest.approx(losses[::4].std(ddof=1) / np.sqrt(30), rel=1e-6)


def test_classes_of_one_row_are_refused():
    X, errors, y = noisy(30)
    y[0] = 2
    with pytest.raises(ValueError, match="class 2 has 1 sample"):
        fitted("auto", X, errors, y)


def test_fits_are_cloned_pickled_and_split_by_jobs_to_the_same():
    X, errors, y = noisy(120)
    model = fitted(LINES, X, errors, y)
    p = model.predict_proba(X, X_std=errors)
    with parallel_config("threading"):
        again = clone(model).set_params(n_jobs=2).fit(X, y, X_std=errors)
    for other in (pickle.loads(pickle.dumps(model)), again):
        np.testing.assert_array_equal(other.predict_proba(X, X_std=errors), p)
        assert str(other.table_) == str(model.table_)


def test_errors_reach_it_through_cross_validation():
    X, errors, y = noisy(120)
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(
            MeasurementClassifier(LINES, random_state=0), X, y, cv=3, params={"X_std": errors}
        )["test_score"]
    whole = cross_validate(
        MeasurementClassifier(LINES, random_state=0), Gaussians(X, std=errors), y, cv=3
    )["test_score"]
    np.testing.assert_array_equal(routed, whole)


def test_errors_that_are_left_out_later_are_missed_once():
    X, errors, y = telling(200)
    model = fitted(LINES, X, errors, y)
    assert "values and errors, logistic" in model.chosen_
    with pytest.warns(ErrorsLeftOutWarning) as caught:
        p = model.predict_proba(X)
    assert len(caught) == 1
    # Exact rows are unlike those of training, whose errors told the classes apart.
    exact = np.zeros_like(X)
    parts = [_alone(name, X, errors, y, X, exact) for name in LINES[:2]]
    np.testing.assert_allclose(p, np.mean(parts, axis=0), rtol=1e-9)


def test_many_rows_are_compared_in_part_and_fitted_whole(capsys):
    X, errors, y = noisy(300)
    model = fitted(LINES[:1], X, errors, y, max_rows=100, verbose=1)
    said = capsys.readouterr().out
    assert "comparison on 100 of 300 rows" in said
    assert "fold 5 of 5" in said
    p = values_alone(X, errors, y, X, errors)
    np.testing.assert_allclose(model.predict_proba(X, X_std=errors), p, rtol=1e-5)
