"""Sizes of errors told up to factors: against the maximum of normal densities, and simulations."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from halosvm import Covariances, EmpiricalBayes, Gaussians, load_model, save_model
from halosvm.population.error_scale import slopes
from halosvm.population.fitting import Fitter
from halosvm.population.populations import form_of


def measured(n=80, d=2, told=0.5, seed=0, missing=0.0):
    """Return values, errors as they are told, and weights."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    std = np.exp(0.8 * rng.normal(size=(n, d)) - 0.3)
    x = v + std * rng.normal(size=(n, d))
    x[rng.random(x.shape) < missing] = np.nan
    return x, told * std, rng.integers(1, 4, n).astype(float)


def correlated(std, seed=3):
    """Return full matrices with these standard deviations, each with its own correlations."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(len(std), std.shape[1], 2))
    A /= np.linalg.norm(A, axis=2)[:, :, None]
    return (
        std[:, :, None]
        * (A @ A.transpose(0, 2, 1) * 0.8 + 0.2 * np.eye(std.shape[1]))
        * (std[:, None, :])
    )


def log_likelihood(x, S, c, m, V, factors):
    """Add up normal log densities over the values that are there, pattern by pattern."""
    T = V + factors[:, None] * S * factors
    total = 0.0
    for there in np.unique(~np.isnan(x), axis=0):
        rows = np.flatnonzero((~np.isnan(x) == there).all(axis=1))
        rest = (x - m)[np.ix_(rows, there)]
        own = T[np.ix_(rows, there, there)]
        distance = np.einsum("ni,ni->n", rest, np.linalg.solve(own, rest[..., None])[..., 0])
        volume = np.linalg.slogdet(own)[1] + there.sum() * np.log(2 * np.pi)
        total -= 0.5 * c[rows] @ (distance + volume)
    return total


def brute_force(x, S, c, groups):
    """Return the factors and the log likelihood at the maximum over mean, covariance and them."""
    d = x.shape[1]
    lower = np.tril_indices(d)

    def unpacked(theta):
        L = np.zeros((d, d))
        L[lower] = theta[d : d + len(lower[0])]
        factors = np.ones(d)
        for group, value in zip(groups, theta[d + len(lower[0]) :], strict=True):
            factors[group] = np.exp(value)
        return theta[:d], L @ L.T, factors

    start = np.concatenate([np.nanmean(x, axis=0), np.eye(d)[lower], np.zeros(len(groups))])
    found = minimize(
        lambda theta: -log_likelihood(x, S, c, *unpacked(theta)),
        start,
        method="BFGS",
        options={"gtol": 1e-3},
    )
    return unpacked(found.x)[2], -found.fun


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("error_scale", ["estimate", "feature"])
def test_factors_and_likelihood_are_those_of_the_maximum_by_brute_force(kind, error_scale):
    x, std, c = measured(missing=0.1)
    S = correlated(std) if kind == "full" else np.stack([np.diag(e**2) for e in std])
    given = {"X_cov": Covariances.full(S)} if kind == "full" else {"X_std": std}
    eb = EmpiricalBayes(error_scale=error_scale, reg_covar=0)
    eb.fit(x, sample_weight=c, **given)
    groups = [np.arange(2)] if error_scale == "estimate" else [[0], [1]]
    factors, best = brute_force(x, S, c, groups)
    # A likelihood that is lower by 1e-3 lies within sqrt(2e-3) = 0.045 standard errors.
    assert abs(eb.log_likelihood_[-1] - best) < 2e-3
    width = np.diff(eb.error_scale_interval_)[:, 0] / 3.92
    assert np.all(np.abs(eb.error_scale_ - factors) < 0.05 * width)
    assert np.all(np.diff(eb.log_likelihood_) >= 0)


def test_interval_and_test_are_those_of_likelihood_ratios_by_brute_force():
    x, std, c = measured(seed=1)
    S = np.stack([np.diag(e**2) for e in std])
    settings = EmpiricalBayes(reg_covar=0)
    common, joint, first, _ = settings.error_test(x, X_std=std, sample_weight=c)
    _, top = brute_force(x, S, c, [[0], [1]])
    _, at_one = brute_force(x, S, c, [])
    _, first_at_one = brute_force(x, S, c, [[1]])
    assert joint.statistic == pytest.approx(2 * (top - at_one), abs=0.01)
    assert joint.p_value == pytest.approx(chi2.sf(joint.statistic, 2))
    assert first.statistic == pytest.approx(2 * (top - first_at_one), abs=0.05)
    _, alike = brute_force(x, S, c, [[0, 1]])
    assert common.statistic == pytest.approx(2 * (alike - at_one), abs=0.01)
    for end in (first.low, first.high):
        scaled = S.copy()
        scaled[:, 0, 0] *= end**2
        _, other = brute_force(x, scaled, c, [[1]])
        assert np.sqrt(2 * (top - other)) == pytest.approx(1.96, abs=0.06)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
@pytest.mark.parametrize("kind", ["diagonal", "full", "low_rank"])
def test_slopes_are_differences_of_the_log_density(covariance, kind):
    x, std, c = measured(60, 3, missing=0.2, seed=2)
    if kind == "low_rank":
        rng = np.random.default_rng(0)
        cov = Covariances.low_rank(std[:, :, None] * rng.normal(size=(60, 3, 2)), std**2)
    else:
        cov = Covariances.full(correlated(std)) if kind == "full" else Covariances.from_std(std)
    X = Gaussians(x, cov=cov)
    eb = EmpiricalBayes(2, covariance=covariance, n_factors=1 if covariance == "factors" else None)
    eb.fit(X, sample_weight=c)
    fitter = Fitter(eb, X, c, form_of(covariance, 1 if covariance == "factors" else None, 3))
    slope = slopes(eb._population(), fitter)
    for j in range(3):
        ends = []
        for factor in np.exp([0.5e-4, -0.5e-4]):
            scaled = cov.scaled(np.where(np.arange(3) == j, factor, 1.0))
            ends.append(c @ eb.score_samples(X.replaced(covariances=scaled)))
        assert slope[j] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-5, abs=1e-5)


def test_posteriors_and_densities_of_new_rows_use_the_factor(tmp_path):
    x, std, _ = measured(200)
    eb = EmpiricalBayes(error_scale="estimate").fit(x[:150], X_std=std[:150])
    factor = eb.error_scale_[0]
    assert 1.6 < factor < 2.4
    told = EmpiricalBayes(init=(eb.weights_, eb.means_, eb.covariances_.to_full()))
    told.fit(x[:150], X_std=factor * std[:150])
    new = x[150:], std[150:]
    ours = eb.transform(new[0], X_std=new[1])
    theirs = told.transform(new[0], X_std=factor * new[1])
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-3)
    assert eb.score(new[0], X_std=new[1]) == pytest.approx(
        told.score(new[0], X_std=factor * new[1]), abs=1e-3
    )
    save_model(eb, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.transform(new[0], X_std=new[1]).mean, ours.mean)


def test_a_number_multiplies_errors_as_they_would_be_told():
    x, std, _ = measured()
    ours = EmpiricalBayes(error_scale=3.0).fit(x, X_std=std)
    theirs = EmpiricalBayes().fit(x, X_std=3.0 * std)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
    np.testing.assert_array_equal(ours.error_scale_, 3.0)
    np.testing.assert_allclose(
        ours.transform(x, X_std=std).mean, theirs.transform(x, X_std=3.0 * std).mean
    )


def test_groups_share_a_factor_and_others_keep_one(tmp_path):
    x, std, _ = measured(400, 4)
    eb = EmpiricalBayes(error_scale=[[0, 2], [3]]).fit(x, X_std=std)
    assert eb.error_scale_[0] == eb.error_scale_[2] != eb.error_scale_[3]
    assert eb.error_scale_[1] == 1
    assert np.isnan(eb.error_scale_interval_[1]).all()
    low, high = eb.error_scale_interval_[0]
    assert low < eb.error_scale_[0] < high
    save_model(eb, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").error_scale_, eb.error_scale_)


def test_mixtures_find_the_factor_where_one_component_is_wrong():
    rng = np.random.default_rng(5)
    v = np.where(rng.random((600, 1)) < 0.5, -4.0, 4.0) + rng.normal(size=(600, 2))
    std = np.exp(0.7 * rng.normal(size=v.shape))
    x = v + std * rng.normal(size=v.shape)
    eb = EmpiricalBayes(2, error_scale="estimate", random_state=0).fit(x, X_std=std / 2)
    low, high = eb.error_scale_interval_[0]
    assert low < 2 < high
    assert high - low < 0.5


@pytest.mark.parametrize(
    ("std", "why"),
    [
        (np.full((80, 2), 0.7), "its errors are equal in all rows"),
        (np.zeros((80, 2)), "there are no errors"),
    ],
)
def test_what_cannot_be_known_is_refused_and_told_by_the_test(std, why):
    x, _, _ = measured()
    with pytest.raises(ValueError, match=rf"columns 0, 1 of X cannot be known: {why}"):
        EmpiricalBayes(error_scale="estimate").fit(x, X_std=std)
    (row,) = EmpiricalBayes().error_test(x, X_std=std)
    assert why in row.note
    assert "cannot be known" in str(row)


def test_equal_full_errors_are_known_beside_independent_true_values_alone():
    x, _, _ = measured(300)
    S = np.tile([[1.0, 0.9], [0.9, 1.0]], (300, 1, 1))
    with pytest.raises(ValueError, match="cannot be known"):
        EmpiricalBayes(error_scale="estimate").fit(x, X_cov=Covariances.full(S))
    eb = EmpiricalBayes(covariance="diagonal", error_scale="estimate")
    assert np.isfinite(eb.fit(x, X_cov=Covariances.full(S)).error_scale_).all()


def test_only_the_features_of_equal_errors_are_unknown():
    x, std, _ = measured(200, 3)
    std[:, 1] = 0.5
    with pytest.raises(ValueError, match="column 1 of X cannot be known"):
        EmpiricalBayes(error_scale="feature").fit(x, X_std=std)
    rows = EmpiricalBayes().error_test(x, X_std=std)
    assert [row.name for row in rows] == ["all features", "each feature"] + [
        f"feature {j}" for j in range(3)
    ]
    assert [bool(row.note) for row in rows] == [False, False, False, True, False]
    assert rows[1].degrees == 2


@pytest.mark.parametrize(
    ("error_scale", "error", "match"),
    [
        ("common", ValueError, "'estimate', 'feature' or lists .*'common'"),
        (0, ValueError, "must be positive and finite, got 0"),
        (None, TypeError, "must be a number, got None"),
        ([], TypeError, "must hold lists of numbers of features"),
        ([[0.5]], TypeError, "must hold lists of numbers of features"),
        ([[0], [2]], ValueError, "names feature 2, X has 2 features"),
        ([[0], [0, 1]], ValueError, "names feature 0 twice"),
    ],
)
def test_bad_parameters_are_named(error_scale, error, match):
    x, std, _ = measured()
    with pytest.raises(error, match=match):
        EmpiricalBayes(error_scale=error_scale).fit(x, X_std=std)


def test_right_errors_are_kept_and_wrong_ones_found():
    refused, found, inside = 0, 0, 0
    for seed in range(12):
        x, std, _ = measured(150, 2, told=1.0, seed=seed)
        refused += EmpiricalBayes().error_test(x, X_std=std)[0].p_value < 0.05
        row = EmpiricalBayes().error_test(x, X_std=std / 2)[0]
        found += row.p_value < 0.05
        inside += row.low < 2 < row.high
    assert refused <= 3  # binomial(12, 0.05): more have the probability 0.002
    assert found == 12
    assert inside >= 9


@pytest.mark.parametrize("columns", [[0, 2], [0, 2, 3], [0, 2, 6, 7], list(range(10))])
def test_no_common_factor_is_likelier_than_the_one_found(columns):
    """Features that depend on each other have a likelihood with several maxima."""
    data = load_breast_cancer().data
    x, std = data[:, columns], data[:, [j + 10 for j in columns]]

    def log_likelihood(factor):
        population = EmpiricalBayes(tol=1e-7, max_iter=2000)
        return population.fit(x, X_std=factor * std).log_likelihood_[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where the factor is far too large
        found = EmpiricalBayes().error_test(x, X_std=std, features=[])[0].factor
        best = log_likelihood(found)
        for factor in (0.05, 0.1, 0.17, 0.25, 0.5, 0.7, 1.0):
            assert log_likelihood(factor) <= best + 0.1


def test_errors_in_another_unit_are_found():
    x, std, _ = measured(100, 2, told=0.002)
    row = EmpiricalBayes().error_test(x, X_std=std)[0]
    assert row.low < 500 < row.high < 750
    assert row.p_value < 1e-6


def test_intervals_are_open_where_errors_say_nothing():
    x, std, _ = measured(60, 2, told=1.0)
    x[:, 1] = np.random.default_rng(0).normal(size=60)
    tiny = np.column_stack([std[:, 0], 1e-6 * std[:, 1]])
    row = EmpiricalBayes().error_test(x, X_std=tiny)[-1]
    assert (row.low, row.high) == (0, np.inf)
    assert row.statistic < 0.1


def test_many_factors_are_tested_by_the_curvature_about_as_by_their_profiles(monkeypatch):
    x, std, _ = measured(500, 3, told=0.7)
    exact = EmpiricalBayes().error_test(x, X_std=std)[2:]
    monkeypatch.setattr("halosvm.population.error_scale.PROFILED", 2)
    monkeypatch.setattr("halosvm.population.error_test.PROFILED", 2)
    for row, other in zip(EmpiricalBayes().error_test(x, X_std=std)[2:], exact, strict=True):
        assert row.factor == other.factor
        # the likelihood of a logarithm is normal up to the square root of the number of rows
        np.testing.assert_allclose([row.low, row.high], [other.low, other.high], rtol=0.05)
        assert row.statistic == pytest.approx(other.statistic, rel=0.25, abs=0.5)


def test_features_that_are_not_asked_for_share_a_factor():
    x, std, _ = measured(300, 4)
    rows = EmpiricalBayes().error_test(x, X_std=std, features=[2, 0])
    assert [row.name for row in rows] == ["all features", "each feature", "feature 2", "feature 0"]
    assert rows[1].degrees == 3
    assert rows[2].low < 2 < rows[2].high
    with pytest.raises(IndexError, match="out of range"):
        EmpiricalBayes().error_test(x, X_std=std, features=[4])


def test_features_that_are_unknown_have_their_notes_where_no_other_is_asked_for():
    x, std, _ = measured(200, 3)
    std[:, 1] = 0.5
    common, row = EmpiricalBayes().error_test(x, X_std=std, features=[1])
    assert common.p_value < 1e-3
    assert "equal in all rows" in row.note
