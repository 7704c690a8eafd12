"""What a reading gains: formulas are quadratures and brute force; labels, costs and bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from halosvm import (
    ClassPopulations,
    Covariances,
    EmpiricalBayes,
    ErrorsLeftOutWarning,
    Gaussians,
    MeasurementClassifier,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
    next_measurement,
    reference,
)

N, D, TAU = 120, 3, 0.3
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
STD = RNG.uniform(0.2, 2.0, (N, D))
X = np.column_stack([2.0 * Y, 0.0 * Y, 0.5 * Y]) + RNG.normal(size=(N, D)) * 0.7
X[:, 2] += 0.8 * X[:, 0]
X += STD * RNG.normal(size=(N, D))
X[5, 1] = X[7, 0] = np.nan
STD[9, 2] = 0.0
ROOTS = RNG.normal(size=(N, D, D)) * 0.5
KINDS = {
    "diagonal": Covariances.from_std(STD),
    "isotropic": Covariances.isotropic(STD[:, 0] ** 2, D),
    "full": Covariances.full(ROOTS @ ROOTS.transpose(0, 2, 1)),
    "low_rank": Covariances.low_rank(ROOTS[:, :, :1], STD**2),
    "certain": Covariances.zero(N, D),
}


@pytest.fixture(params=KINDS)
def data(request):
    return Gaussians(X, cov=KINDS[request.param])


MEASURED = Gaussians(X, std=STD)


def gains(table, column="wrong_after"):
    """The numbers of a table by row and feature."""
    found = np.full((table["row"].max() + 1, table["feature"].max() + 1), np.nan)
    found[table["row"], table["feature"]] = table[column]
    return found


def parts(population):
    """Weights, means and covariances as the reference takes them."""
    return population.weights_, population.means_, population.covariances_.to_full()


def errors_of(data, scale=1.0):
    S = data.covariances.to_full() * np.outer(scale, scale) * np.ones((len(data), 1, 1))
    return np.where(np.isnan(data.mean)[:, :, None] | np.isnan(data.mean)[:, None], 0.0, S)


def read_again(x, S, j, tau, z):
    """A measurement with one more reading z of feature j: information adds."""
    there = ~np.isnan(x)
    if not there[j]:
        mean, cov = x.copy(), S.copy()
        mean[j], cov[j, j] = z, tau**2
        return mean, cov
    gain = S[:, j] / (S[j, j] + tau**2)
    mean = x + gain * (z - x[j])
    return mean, S - np.outer(gain, S[j])


def test_gain_of_a_linear_machine_is_the_quadrature_of_the_reference(data):
    model = make_pipeline(
        EmpiricalBayes(error_scale=1.3), UncertainStandardScaler(), UncertainSVC()
    ).fit(data, Y)
    table = next_measurement(model, data, new_error=TAU)
    after, now = gains(table), gains(table, "wrong")
    scaled = EmpiricalBayes(output="gaussian", error_scale=1.3).fit(data)
    posterior = scaled.transform(data)
    w = model[2].coef_[0] / model[1].scale_
    b = model[2].intercept_[0] - w @ model[1].mean_
    for i in range(0, N, 5):
        B = posterior.covariances[i]
        for j in range(D):
            if w @ B @ w < 1e-12:  # certain: nothing is wrong, and no reading tells more
                assert now[i, j] == after[i, j] == 0.0
                continue
            expected = reference.wrong_after_reading(posterior.mean[i], B, w, b, j, 1.3 * TAU)
            np.testing.assert_allclose((now[i, j], after[i, j]), expected, atol=1e-6)


def test_gain_is_the_share_of_labels_that_a_simulated_reading_puts_right():
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    posterior = model[0].transform(MEASURED)
    w, b = model[1].coef_[0], model[1].intercept_[0]
    after = gains(next_measurement(model, MEASURED, new_error=TAU))
    rng, n = np.random.default_rng(1), 1_000_000
    for i, j in ((0, 0), (5, 1), (11, 2)):
        m, B = posterior.mean[i], posterior.covariances[i]
        v = rng.multivariate_normal(m, B, n)
        z = v[:, j] + TAU * rng.normal(size=n)
        mean = m @ w + b + (z - m[j]) * (w @ B[:, j]) / (B[j, j] + TAU**2)
        wrong = np.mean((v @ w + b > 0) != (mean > 0))
        assert abs(wrong - after[i, j]) < 5 * np.sqrt(wrong / n)


def simulated(population, data, i, j, tau, wrong_of, n=400):
    """Mean and error of P(wrong) over readings drawn from the posterior of one row."""
    rng = np.random.default_rng(3)
    x, S = data.mean[i], errors_of(data)[i]
    _, r, b, B = reference.true_value_posterior(x[None], S[None], *population)
    k = rng.choice(len(r[0]), n, p=r[0] / r[0].sum())
    z = b[0, k, j] + np.sqrt(B[0, k, j, j] + tau**2) * rng.normal(size=n)
    again = [read_again(x, S, j, tau, value) for value in z]
    found = wrong_of(np.array([m for m, _ in again]), np.array([c for _, c in again]))
    return found.mean(), found.std() / np.sqrt(n)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_gain_under_a_mixture_is_that_of_simulated_readings(kind):
    data = Gaussians(X, cov=KINDS[kind])
    population = EmpiricalBayes(3, random_state=0, reg_covar=0.1, tol=1e-3).fit(data)
    machine = UncertainSVC().fit(population.transform(data), Y)
    w, b = machine.coef_[0], machine.intercept_[0]

    def wrong_of(x, S):
        _, r, mean, B = reference.true_value_posterior(x, S, *parts(population))
        z = (mean @ w + b) / np.sqrt(np.einsum("i,nkij,j->nk", w, B, w))
        return np.minimum(np.sum(r * norm.cdf(z), axis=1), np.sum(r * norm.cdf(-z), axis=1))

    after = gains(next_measurement(machine, data, new_error=TAU, population=population))
    for i, j in ((0, 0), (5, 1), (11, 2), (20, 1)):
        expected, error = simulated(parts(population), data, i, j, TAU, wrong_of)
        assert abs(after[i, j] - expected) < 5 * error + 1e-4


def test_mixture_of_equal_components_is_one_component():
    one = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    _, means, V = parts(one[0])
    twice = EmpiricalBayes(2).fit(MEASURED)
    twice.weights_, twice.means_ = np.array([0.3, 0.7]), np.tile(means, (2, 1))
    twice.covariances_ = Covariances.full(np.concatenate([V, V]))
    found = [
        next_measurement(one[1], MEASURED, new_error=TAU, population=each)
        for each in (one[0], twice)
    ]
    np.testing.assert_allclose(gains(found[1]), gains(found[0]), rtol=1e-3, atol=2e-5)
    assert np.isnan(found[1]["largest_error"]).all()


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_gain_of_probabilities_is_that_of_simulated_readings(kind):
    data = Gaussians(X, cov=KINDS[kind])
    model = ClassPopulations(2, tied=False, random_state=0, tol=1e-3, reg_covar=10.0).fit(data, Y)
    each = [parts(own) for own in model.populations_]
    mixture = (
        np.concatenate([p * own[0] for p, own in zip(model.priors_, each, strict=True)]),
        *(np.concatenate([own[k] for own in each]) for k in (1, 2)),
    )

    def wrong_of(x, S):
        odds = reference.class_log_odds(x, S, model.priors_, each)[:, 0]
        return 1.0 / (1.0 + np.exp(np.abs(odds)))

    table = next_measurement(model, data, new_error=TAU)
    after = gains(table)
    assert table["gain"].min() >= 0.0
    for i, j in ((0, 0), (5, 1), (11, 2), (9, 2)):
        expected, error = simulated(mixture, data, i, j, TAU, wrong_of)
        assert abs(after[i, j] - expected) < 5 * error + 1e-3


def test_gain_of_a_kernel_machine_is_that_of_simulated_readings():
    few = MEASURED[:12]
    model = make_pipeline(EmpiricalBayes(), UncertainKernelSVC(C=10.0)).fit(MEASURED, Y)
    rng = np.random.default_rng(5)

    def wrong_of(x, S):
        _, _, mean, B = reference.true_value_posterior(x, S, *parts(model[0]))
        v = [rng.multivariate_normal(m, C, 400) for m, C in zip(mean[:, 0], B[:, 0], strict=True)]
        share = (
            (model[1].decision_function(Gaussians(np.concatenate(v))) > 0)
            .reshape(len(x), -1)
            .mean(axis=1)
        )
        return np.minimum(share, 1.0 - share)

    table = next_measurement(model, few, new_error=TAU)
    after = gains(table)
    assert table["gain"].min() >= 0.0
    for i, j in ((0, 0), (5, 1), (11, 2), (7, 0)):
        expected, error = simulated(parts(model[0]), few, i, j, TAU, wrong_of)
        assert abs(after[i, j] - expected) < 5 * error + 0.015
    again = next_measurement(model, few, new_error=TAU)
    np.testing.assert_array_equal(again["gain"], table["gain"])


def test_draws_agree_with_the_formula_of_a_linear_machine_and_useless_features_gain_nothing():
    few = MEASURED[:30]
    linear = make_pipeline(EmpiricalBayes(covariance="diagonal"), UncertainSVC()).fit(MEASURED, Y)
    linear[1].coef_[0, 1] = 0.0

    class Hidden(BaseEstimator):
        """The same labels, of which no formula is known."""

        classes_ = linear[1].classes_

        def __sklearn_is_fitted__(self):
            return True

        def fit(self, X, y):
            return self

        def predict(self, X):
            return linear[1].predict(X)

    drawn = next_measurement(Hidden(), few, new_error=TAU, population=linear[0], n_draws=4096)
    exact = next_measurement(linear, few, new_error=TAU)
    for column in ("wrong", "wrong_after"):
        np.testing.assert_allclose(gains(drawn, column), gains(exact, column), atol=0.01)
    for table in (drawn, exact):
        assert np.abs(gains(table, "gain")[:, 1]).max() < 1e-3


def test_three_classes_are_wrong_by_what_their_largest_share_leaves():
    labels = np.arange(N) % 3
    values = X + 4.0 * np.eye(3)[labels]
    data = Gaussians(values, std=STD)
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(data, labels)
    table = next_measurement(model, data[:10], new_error=0.1)
    posterior = model[0].transform(data)
    v = np.random.default_rng(0).multivariate_normal(
        posterior.mean[3], posterior.covariances[3], 20_000
    )
    shares = np.bincount(model[1].predict(v), minlength=3) / len(v)
    assert abs(gains(table, "wrong")[3, 0] - (1.0 - shares.max())) < 0.02
    assert table["gain"].min() >= 0.0


@pytest.mark.parametrize("population", [None, "given"])
def test_largest_error_leaves_the_label_wrong_with_epsilon(data, population):
    if population is None:  # true values could be any
        data = data.replaced(mean=np.nan_to_num(data.mean))
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(data, Y)
    given = model[0] if population else None
    epsilon = 0.1
    table = next_measurement(model[1], data, new_error=1.0, population=given, epsilon=epsilon)
    largest = gains(table, "largest_error")
    w, b = model[1].coef_[0], model[1].intercept_[0]
    S, checked = errors_of(data), 0

    def law(i, S_i, x):
        if given is None:
            return S_i
        return reference.true_value_posterior(x[None], S_i[None], *parts(given))[3][0, 0]

    for i in range(N):
        x = data.mean[i]
        start = x.copy()
        if given is None:
            mean = x @ w + b
        else:
            mean = (
                reference.true_value_posterior(x[None], S[i][None], *parts(given))[2][0, 0] @ w + b
            )
        for j in range(D):
            error = largest[i, j]
            x = np.where(np.isnan(start) & (np.arange(D) == j), 0.0, start)
            for tried in (error,) if 0 < error < np.inf else (1e6,) if error else (1e-9,):
                S_i = S[i].copy()
                S_i[j, j] = tried**2 if np.isnan(start[j]) else S_i[j, j] + tried**2 - S[i][j, j]
                if tried == 1e-9 and not np.isnan(start[j]):
                    # As exact as the errors of the other features let this one be.
                    others = np.delete(np.arange(D), j)
                    others = others[~np.isnan(start[others])]
                    pull = S_i[j, others] @ np.linalg.pinv(S[i][np.ix_(others, others)])
                    S_i[j, j] = pull @ S_i[others, j] + 1e-12
                s = np.sqrt(max(w @ law(i, S_i, x) @ w, 1e-300))
                wrong = norm.cdf(-abs(mean) / s)
                if 0 < error < np.inf:
                    np.testing.assert_allclose(wrong, epsilon, rtol=1e-5)
                    checked += 1
                elif error == 0:
                    assert wrong > epsilon * (1 - 1e-6)
                else:
                    assert wrong < epsilon * (1 + 1e-3) or w[j] == 0
    assert checked > 10


def test_certain_rows_say_how_large_an_error_would_be_too_large():
    """|mu| / (z |w_j|), where nothing else is uncertain."""
    model = UncertainSVC().fit(np.nan_to_num(X), Y)
    table = next_measurement(model, np.nan_to_num(X), new_error=1.0, epsilon=0.05)
    f = model.decision_function(np.nan_to_num(X))
    expected = np.abs(f[:, None] / model.coef_) / norm.isf(0.05)
    np.testing.assert_allclose(gains(table, "largest_error"), expected, rtol=1e-9)
    assert (table["gain"] == 0).all()


def test_table_is_sorted_by_gain_per_cost_and_keeps_labels_and_names():
    names, index = ["flux", "colour", "size"], [f"star {i}" for i in range(N)]
    frame, std = (pd.DataFrame(values, index, names) for values in (X, STD))
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(Gaussians(frame, std=std), Y)
    cost = np.array([1.0, 10.0, 0.5])
    errors = np.full((N, D), TAU)
    errors[:, 1], errors[0] = 0.5, np.inf
    table = next_measurement(model, frame, X_std=std, new_error=errors, cost=cost)
    assert len(table) == (N - 1) * D
    assert (np.diff(table["gain_per_cost"]) <= 0).all()
    place = {name: k for k, name in enumerate(names)}
    columns = np.array([place[name] for name in table["feature"]])
    np.testing.assert_array_equal(table["cost"], cost[columns])
    np.testing.assert_allclose(table["gain"], table["wrong"] - table["wrong_after"], atol=1e-15)
    assert [f"star {i}" for i in table["row"]] == table["object"].tolist()
    plain = next_measurement(model, Gaussians(X, std=STD), new_error=errors, cost=cost)
    np.testing.assert_array_equal(plain["gain"], table["gain"])
    assert plain["object"].tolist() == plain["row"].tolist()
    shown = str(table).splitlines()
    assert shown[0].split()[:2] == ["object", "feature"]
    assert shown[-1] == f"and {len(table) - 20} others that gain no more"
    assert pd.DataFrame(table).shape == (*table.shape, 9)


def test_new_readings_have_the_median_error_of_their_feature_by_default():
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    found = next_measurement(model, MEASURED)
    median = np.nanmedian(np.where(np.isnan(X), np.nan, STD), axis=0)
    expected = next_measurement(model, MEASURED, new_error=median)
    np.testing.assert_allclose(found["gain"], expected["gain"], rtol=1e-12)


def test_errors_of_new_readings_have_the_units_of_the_examples():
    u = pytest.importorskip("astropy.units")
    values = np.nan_to_num(X)
    model = make_pipeline(EmpiricalBayes(), UncertainSVC())
    model.fit(Gaussians(values * u.m, std=STD * u.m), Y)
    found = [
        next_measurement(model, Gaussians(values * k * unit, std=STD * k * unit), new_error=TAU * k)
        for unit, k in ((u.m, 1.0), (u.cm, 100.0))
    ]
    np.testing.assert_allclose(gains(found[1], "gain"), gains(found[0], "gain"), atol=1e-12)
    largest = [gains(table, "largest_error") for table in found]
    np.testing.assert_allclose(largest[1], 100.0 * largest[0], rtol=1e-9)


def machines():
    linear = make_pipeline(EmpiricalBayes(), UncertainSVC())
    names = ["means, logistic", "class populations"]
    return {
        "calibrated": UncertainCalibratedClassifier(linear),
        "logistic": make_pipeline(EmpiricalBayes(output="mean"), LogisticRegression()),
        "forest": make_pipeline(EmpiricalBayes(output="mean"), RandomForestClassifier(10)),
        "measurement": MeasurementClassifier(names, random_state=0, cv=3),
    }


@pytest.mark.parametrize("name", ["calibrated", "logistic", "forest", "measurement"])
def test_probability_of_a_wrong_label_is_what_the_machine_says(name):
    model = machines()[name].fit(MEASURED, Y)
    few = MEASURED[:20]
    table = next_measurement(model, few, new_error=TAU)
    wrong = 1.0 - model.predict_proba(few).max(axis=1)
    np.testing.assert_allclose(gains(table, "wrong"), np.tile(wrong[:, None], D), atol=1e-12)
    assert table["gain"][0] > 0.02


def test_errors_that_are_left_out_are_warned_of():
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    with pytest.warns(ErrorsLeftOutWarning, match="EmpiricalBayes was fitted to examples with"):
        table = next_measurement(model, np.nan_to_num(X), new_error=TAU)
    assert (table["gain"] == 0.0).all()


def test_progress_is_told_where_it_is_asked_for(capsys):
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    next_measurement(model, MEASURED, new_error=TAU)
    assert capsys.readouterr().out == ""
    next_measurement(model, MEASURED, new_error=TAU, verbose=1)
    assert f"{N} of {N} rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"new_error": [0.1, 0.2]}, r"new_error has shape \(2,\), expected a number, \(3,\) or"),
        ({"new_error": [0.1, -0.2, 1.0]}, "new_error of row 0, feature 1 is -0.2; it must be >= 0"),
        ({"new_error": 1.0, "cost": 0.0}, "cost of row 0, feature 0 is 0; it must be positive"),
        ({"new_error": 1.0, "epsilon": 0.5}, "epsilon must be above 0 and below 1/2, got 0.5"),
        ({"new_error": 1.0, "n_draws": 0}, "n_draws must be >= 1, got 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(given, message):
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    with pytest.raises(ValueError, match=message):
        next_measurement(model, MEASURED, **given)


def test_machines_and_populations_that_do_not_fit_are_refused():
    model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(MEASURED, Y)
    with pytest.raises(ValueError, match="X: row 5, column 1 is missing, and without a population"):
        next_measurement(model[1], MEASURED, new_error=1.0)
    with pytest.raises(TypeError, match="machine must be a classifier, got EmpiricalBayes"):
        next_measurement(model[0], MEASURED, new_error=1.0)
    with pytest.raises(TypeError, match="population must be EmpiricalBayes or ClassPopulations"):
        next_measurement(model[1], MEASURED, new_error=1.0, population=model[1])
    behind = make_pipeline(UncertainStandardScaler(), EmpiricalBayes(), UncertainSVC())
    behind.fit(MEASURED.replaced(mean=np.nan_to_num(X)), Y)
    with pytest.raises(ValueError, match="UncertainStandardScaler stands before EmpiricalBayes"):
        next_measurement(behind, MEASURED, new_error=1.0)
    with pytest.raises(ValueError, match="X has no errors, whose median new_error is by default"):
        next_measurement(model, Gaussians(X))
    with pytest.raises(ValueError, match="X has 2 features, but EmpiricalBayes is expecting 3"):
        next_measurement(model, MEASURED[:, :2], new_error=1.0)
