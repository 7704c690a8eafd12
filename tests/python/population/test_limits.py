"""EmpiricalBayes with limits of readings: equivalences, simulations, and who refuses them."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from halosvm import (
    ClassPopulations,
    EmpiricalBayes,
    Gaussians,
    MeasurementClassifier,
    MeasurementFeatures,
    UncertainSVC,
    doctor,
    load_model,
    save_model,
)


def limited(n=300, d=3, share=0.3, seed=0, one_a_row=False):
    """Return true values, and readings with errors of which a share is known to lie below."""
    rng = np.random.default_rng(seed)
    half = np.random.default_rng(5).normal(size=(d, d))
    v = rng.normal(size=(n, d)) @ half + 2.0
    std = rng.uniform(0.1, 0.8, (n, d))
    x = v + std * rng.normal(size=(n, d))
    level = np.broadcast_to(np.quantile(x, share, axis=0), x.shape)
    below = x < level
    if one_a_row:
        below &= np.cumsum(below, axis=1) == 1
    return v, np.where(below, np.nan, x), std, np.where(below, level, np.nan), below


def posterior_of(x, std, lower=None, upper=None, **options):
    given = {"X_std": std, "X_lower": lower, "X_upper": upper}
    return EmpiricalBayes(tol=1e-9, **options).fit_transform(x, **given)


def same(one, other, tol=1e-6):
    assert one.mean == pytest.approx(other.mean, abs=tol)
    assert one.covariances.to_full() == pytest.approx(other.covariances.to_full(), abs=tol)


def test_a_limit_that_says_nothing_is_a_missing_value():
    _, x, std, upper, _ = limited()
    same(posterior_of(x, std, upper=np.where(np.isnan(upper), np.nan, 1e6)), posterior_of(x, std))


def test_a_narrow_interval_is_a_reading_with_its_error():
    _, x, std, _, _ = limited(share=0.0)
    hidden = np.zeros(x.shape, dtype=bool)
    hidden[::3, 1] = hidden[1::4, 2] = True
    lower, upper = (np.where(hidden, x + half, np.nan) for half in (-5e-6, 5e-6))
    same(posterior_of(np.where(hidden, np.nan, x), std, lower, upper), posterior_of(x, std))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
def test_mirrored_permuted_and_scaled_measurements_have_such_posteriors(covariance):
    _, x, std, upper, _ = limited(one_a_row=True)
    options = {"covariance": covariance, "n_factors": 1 if covariance == "factors" else None}
    options["reg_covar"] = 0.0
    plain = posterior_of(x, std, upper=upper, **options)
    mirrored = posterior_of(-x, std, lower=-upper, **options)
    assert mirrored.mean == pytest.approx(-plain.mean, abs=1e-4)
    rows, columns = np.random.default_rng(1).permutation(len(x)), [2, 0, 1]
    parts = (each[rows][:, columns] for each in (x, std, upper))
    x_p, std_p, upper_p = parts
    permuted = posterior_of(x_p, std_p, upper=upper_p, **options)
    assert permuted.mean == pytest.approx(plain.mean[rows][:, columns], abs=1e-4)
    unit = np.array([1e3, 1.0, 1e-2])
    scaled = posterior_of(x * unit, std * unit, upper=upper * unit, **options)
    assert scaled.mean / unit == pytest.approx(plain.mean, abs=1e-4)


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7])
def test_the_population_is_found_again_and_missing_values_are_not_limits(share):
    v, x, std, upper, below = limited(n=3000, share=share)
    model = EmpiricalBayes().fit(x, X_std=std, X_upper=upper)
    unaware = EmpiricalBayes().fit(x, X_std=std)
    apart = np.abs(model.means_[0] - v.mean(axis=0)) / v.std(axis=0)
    assert apart.max() < 0.1
    assert (np.abs(unaware.means_[0] - v.mean(axis=0)) / v.std(axis=0)).max() > 2 * apart.max()
    spread = model.covariances_[0] / np.cov(v.T)
    assert np.abs(np.diag(spread) - 1).max() < 0.2
    recovered = model.transform(x, X_std=std, X_upper=upper).mean
    error = np.sqrt(np.mean((recovered - v)[below] ** 2))
    other = np.sqrt(np.mean((unaware.transform(x, X_std=std).mean - v)[below] ** 2))
    assert error < 0.7 * other
    assert (np.diff(model.log_likelihood_) >= 0).all()


def test_components_weights_and_the_criterion_know_of_limits():
    rng = np.random.default_rng(0)
    v = np.concatenate([rng.normal(-2, 0.4, 400), rng.normal(2, 0.4, 400)])
    x = (v + 0.3 * rng.normal(size=800))[:, np.newaxis]
    upper = np.where(x < -2.0, -2.0, np.nan)
    X = Gaussians(np.where(x < -2.0, np.nan, x), std=np.full(x.shape, 0.3), upper=upper)
    chosen = EmpiricalBayes("bic", random_state=0).fit(X)
    assert chosen.n_components_ == 2
    assert np.sort(chosen.means_[:, 0]) == pytest.approx([-2, 2], abs=0.1)
    doubled = EmpiricalBayes(2, random_state=0, tol=1e-9).fit(X, sample_weight=np.full(800, 2.0))
    twice = EmpiricalBayes(2, random_state=0, tol=1e-9).fit(Gaussians.concatenate([X, X]))
    assert np.sort(doubled.means_[:, 0]) == pytest.approx(np.sort(twice.means_[:, 0]), abs=1e-4)
    assert chosen.bic(X) < EmpiricalBayes(1).fit(X).bic(X)
    # Densities of all that can be told of a reading: a limit or a value.
    grid = np.linspace(-2, 8, 4001)
    values = chosen.score_samples(grid[:, np.newaxis], X_std=np.full((4001, 1), 0.3))
    limit = np.full((1, 1), np.nan)
    below = chosen.score_samples(limit, X_std=[[0.3]], X_upper=[[-2.0]])
    assert np.exp(below[0]) + np.trapezoid(np.exp(values), grid) == pytest.approx(1, abs=1e-6)


def test_gaussians_carry_limits_through_rows_columns_units_and_pickles():
    _, x, std, upper, _ = limited(n=20)
    X = Gaussians(x, std=std, upper=upper)
    assert (X[3:9].limits.upper == upper[3:9])[~np.isnan(upper[3:9])].all()
    assert np.array_equal(X[:, [2, 0]].limits.upper, upper[:, [2, 0]], equal_nan=True)
    assert X[~np.isnan(x).any(axis=1)].limits is None
    together = Gaussians.concatenate([X[:5], X[5:]])
    assert np.array_equal(together.limits.upper, upper, equal_nan=True)
    beside = np.hstack([X, np.ones((20, 1))])
    assert beside.limits.upper.shape == (20, 4)
    again = pickle.loads(pickle.dumps(X))
    assert np.array_equal(again.limits.upper, upper, equal_nan=True)
    fitted = EmpiricalBayes().fit(X)
    expected = fitted.transform(x, X_std=std, X_upper=upper)
    assert (fitted.transform(X).mean == expected.mean).all()


def test_a_pipeline_routes_limits_to_the_step_that_asks():
    v, x, std, upper, _ = limited()
    y = (v[:, 0] > np.median(v[:, 0])).astype(int)
    steps = EmpiricalBayes(output="mean"), LogisticRegression()
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(*steps).fit(x, y, X_std=std, X_upper=upper)
        answer = routed.predict_proba(x, X_std=std, X_upper=upper)
    carried = make_pipeline(*steps).fit(Gaussians(x, std=std, upper=upper), y)
    assert answer == pytest.approx(carried.predict_proba(Gaussians(x, std=std, upper=upper)))


def test_class_populations_know_of_limits():
    v, x, std, upper, _ = limited(n=600, share=0.6)
    y = (v[:, 0] > np.median(v[:, 0])).astype(int)
    X = Gaussians(x, std=std, upper=upper)
    model = ClassPopulations(n_components=1, tied=False).fit(X[:400], y[:400])
    blind = ClassPopulations(n_components=1, tied=False).fit(x[:400], y[:400], X_std=std[:400])
    aware = model.score(X[400:], y[400:])
    assert aware >= blind.score(x[400:], y[400:], X_std=std[400:])
    free = ClassPopulations(n_components=1, tied=False, reg_covar=0, tol=1e-8).fit(X, y)
    joint = np.log(free.priors_) + np.zeros((600, 2))
    for c in range(2):  # each class is fitted to its own rows
        own = EmpiricalBayes(reg_covar=0, tol=1e-8).fit(X[y == c])
        assert free.populations_[c].means_ == pytest.approx(own.means_, abs=1e-2)
        joint[:, c] += free.populations_[c].score_samples(X)
    assert free.log_odds(X)[:, 0] == pytest.approx(joint[:, 1] - joint[:, 0], abs=1e-9)
    share = 1.0 / (1.0 + np.exp(joint[:, :1] - joint[:, 1:]))
    means = [each.transform(X).mean for each in free.populations_]
    assert free.posterior_mean(X) == pytest.approx(
        (1 - share) * means[0] + share * means[1], abs=1e-9
    )
    far = Gaussians(np.full((1, 3), np.nan), std=np.ones((1, 3)), lower=[[1e149, np.nan, np.nan]])
    assert np.isfinite(model.predict_proba(far)).all()


def test_machines_that_know_nothing_of_limits_say_so():
    v, x, std, upper, _ = limited(n=60)
    y = (v[:, 0] > np.median(v[:, 0])).astype(int)
    X = Gaussians(x, std=std, upper=upper)
    told = r"is a limit, < .*, which EmpiricalBayes and ClassPopulations alone take"
    for machine in (
        UncertainSVC(),
        MeasurementClassifier(),
        MeasurementFeatures(features=["means"]),
    ):
        with pytest.raises(ValueError, match=told):
            machine.fit(X, y)
    whole = np.where(np.isnan(x), 0.0, x)
    for given in ((X, None), (Gaussians(whole, std=std), X)):
        with pytest.raises(ValueError, match=r"is a limit, < .*the doctor does not examine"):
            doctor(given[0], X_test=given[1])
    machine = UncertainSVC().fit(Gaussians(whole, std=std), y)
    with pytest.raises(ValueError, match=told):
        machine.predict(X)
    for error_scale in ("estimate", "feature"):
        with pytest.raises(
            ValueError, match=r"is a limit, < .*the size of errors is not estimated"
        ):
            EmpiricalBayes(error_scale=error_scale).fit(X)
    with pytest.raises(ValueError, match="the size of errors is not estimated"):
        EmpiricalBayes().error_test(X)


def test_a_factor_of_the_errors_that_is_given_is_that_of_limited_readings_too():
    _, x, std, upper, _ = limited(n=100)
    same(posterior_of(x, std / 2, upper=upper, error_scale=2.0), posterior_of(x, std, upper=upper))


def test_columns_of_limits_alone_have_their_warning():
    _, x, std, upper, _ = limited(n=40)
    x[:, 1], upper[:, 1] = np.nan, 1.0
    with pytest.warns(UserWarning, match=r"column 1 has limits on one side and no value"):
        EmpiricalBayes(tol=0.1).fit(x, X_std=std, X_upper=upper)
    lower = np.where(np.isnan(upper), np.nan, upper - np.linspace(0.5, 2.0, 40)[:, np.newaxis])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EmpiricalBayes().fit(x, X_std=std, X_lower=lower, X_upper=upper)


def test_a_saved_model_reads_limits(tmp_path):
    _, x, std, upper, _ = limited(n=50)
    model = EmpiricalBayes().fit(x, X_std=std, X_upper=upper)
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json").transform(x, X_std=std, X_upper=upper)
    same(again, model.transform(x, X_std=std, X_upper=upper), tol=0)
