"""Errors of Student's t against quadrature, grids of scales, differences, and simulations."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_t, norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from halosvm import (
    Covariances,
    EmpiricalBayes,
    Gaussians,
    UncertainSVC,
    load_model,
    next_measurement,
    save_model,
)
from halosvm.population.heavy_tails import Population, Tails, nodes_of, tilted
from halosvm.population.populations import form_of
from halosvm.reference import heavy_tailed_posterior


def measured(n=400, d=2, nu=3.0, seed=0, missing=0.0, low=-1.0, high=1.0):
    """Return values, scales of their errors, and true values with mean 1."""
    rng = np.random.default_rng(seed)
    mix = np.tril(np.full((d, d), 0.4)) + 0.6 * np.eye(d)
    v = 1.0 + rng.normal(size=(n, d)) @ mix.T
    s = np.exp(rng.uniform(low, high, (n, d)))
    x = v + s * rng.standard_t(nu, (n, d))
    x[rng.random(x.shape) < missing] = np.nan
    return x, s, v, mix @ mix.T


def tails_of(x, s, covariance="full"):
    d = x.shape[1]
    std = np.where(np.isnan(x), np.inf, s)
    return Tails(Gaussians(x, std=std), form_of(covariance, None, d), 1)


@pytest.mark.parametrize("nu", [0.5, 1.0, 3.0, 30.0, 200.0])
def test_sum_over_nodes_is_the_density_of_students_t(nu):
    r = np.array([0.0, 0.3, 2.0, 10.0, 100.0])
    log_z, _, _ = tilted(np.ones(5), r, np.full(5, 1e-300), nodes_of(nu, 1e4))
    np.testing.assert_allclose(log_z, student.logpdf(r, nu), atol=1e-5)


@pytest.mark.parametrize("nu", [1.0, 3.0, 20.0])
def test_one_value_has_the_posterior_by_quadrature(nu):
    x = np.array([[0.1], [1.5], [6.0], [-40.0]])
    s = np.array([[0.3], [1.0], [1.0], [2.0]])
    found = tails_of(x, s).expect(
        Population(np.ones(1), np.array([[0.5]]), np.array([[[0.8]]])), nu
    )
    for i in range(4):

        def joint(v, i=i):
            return student.pdf((x[i, 0] - v) / s[i, 0], nu) / s[i, 0] * norm.pdf(v, 0.5, 0.8**0.5)

        points = {"points": [x[i, 0], 0.5], "epsabs": 0, "epsrel": 1e-10, "limit": 500}
        ends = (min(-60.0, x[i, 0] - 5), 60.0)
        z = quad(joint, *ends, **points)[0]
        mean = quad(lambda v, f=joint: v * f(v), *ends, **points)[0] / z
        var = quad(lambda v, f=joint, m=mean: (v - m) ** 2 * f(v), *ends, **points)[0] / z
        assert found.density[i] == pytest.approx(np.log(z), abs=1e-5)
        assert found.means[i, 0, 0] == pytest.approx(mean, abs=1e-5)
        assert found.matrices[i, 0, 0, 0] == pytest.approx(var, rel=1e-5)


def test_two_values_have_nearly_the_posterior_of_the_grid():
    # What expectation propagation leaves is a matter of the two scales' dependence.
    x, s, _, V = measured(300)
    population = Population(np.ones(1), np.ones((1, 2)), V[None])
    found = tails_of(x, s).expect(population, 3.0)
    log_p, mean, B = heavy_tailed_posterior(x, s**2, *population, 3.0, 40)
    sd = np.sqrt(np.einsum("nii->ni", B))
    assert np.abs(found.density - log_p).max() < 0.02
    assert abs(np.mean(found.density - log_p)) < 5e-4
    apart = (found.means[:, 0] - mean) / sd
    assert np.sqrt(np.mean(apart**2)) < 0.01
    ours = np.sqrt(np.einsum("nii->ni", found.matrices[:, 0]))
    assert np.sqrt(np.mean(np.log(ours / sd) ** 2)) < 0.01


def test_components_and_missing_values_are_those_of_the_grid():
    x, s, _, V = measured(60, missing=0.3)
    x[0] = np.nan
    population = (np.array([0.3, 0.7]), np.array([[1.0, 1.0], [-2.0, 0.0]]), np.stack([V, 0.5 * V]))
    found = tails_of(x, s).expect(Population(*population), 4.0)
    log_p, mean, _ = heavy_tailed_posterior(x, s**2, *population, 4.0, 40)
    np.testing.assert_allclose(found.density, log_p, atol=0.03)
    joined = np.einsum("nk,nkd->nd", found.responsibilities, found.means)
    np.testing.assert_allclose(joined, mean, atol=0.06)
    assert found.density[0] == pytest.approx(0.0, abs=1e-9)
    # Nothing couples the scales of rows with one value.
    one = (~np.isnan(x)).sum(axis=1) == 1
    np.testing.assert_allclose(found.density[one], log_p[one], atol=1e-5)
    np.testing.assert_allclose(joined[one], mean[one], atol=1e-4)


@pytest.mark.parametrize("kind", ["full", "low_rank"])
def test_errors_that_depend_on_each_other_share_a_scale(kind):
    # Far wider than the errors, the population adds nothing to the spread of x but its own.
    rng = np.random.default_rng(2)
    F = rng.normal(size=(40, 3, 2))
    cov = Covariances.low_rank(F, np.full((40, 3), 0.2))
    S = cov.to_full()
    cov = cov if kind == "low_rank" else Covariances.full(S)
    x = 3.0 * rng.normal(size=(40, 3))
    x[3, 1] = np.nan
    population = Population(np.ones(1), np.zeros((1, 3)), 1e-12 * np.eye(3)[None])
    found = Tails(Gaussians(x, cov=cov), form_of("full", None, 3), 1).expect(population, 3.0)
    for i in range(40):
        there = ~np.isnan(x[i])
        own = multivariate_t(shape=S[i][np.ix_(there, there)], df=3.0)
        assert found.density[i] == pytest.approx(own.logpdf(x[i, there]), abs=1e-5)
    # With a population as wide: a sum over a fine grid of scales.
    V = np.eye(3) + 0.3
    wide = Tails(Gaussians(x, cov=cov), form_of("full", None, 3), 1).expect(
        Population(np.ones(1), np.zeros((1, 3)), V[None]), 3.0
    )
    log_u = np.linspace(-18, 3, 400)
    w = 1.5 * (log_u - np.exp(log_u))
    w -= np.logaddexp.reduce(w)
    i = 5
    logs, means = [], []
    for u, log_w in zip(np.exp(log_u), w, strict=True):
        T = V + S[i] / u
        logs.append(
            log_w - 0.5 * (x[i] @ np.linalg.solve(T, x[i]) + np.linalg.slogdet(2 * np.pi * T)[1])
        )
        means.append(V @ np.linalg.solve(T, x[i]))
    total = np.logaddexp.reduce(logs)
    assert wide.density[i] == pytest.approx(total, abs=1e-6)
    np.testing.assert_allclose(wide.means[i, 0], np.exp(logs - total) @ means, atol=1e-6)


def test_slope_of_the_density_is_that_of_its_moments():
    # Where propagation has converged, its density is stationary in the sites: d/dm is V^-1 (b - m).
    x, s, _, V = measured(50, 3)
    tails, m = tails_of(x, s), np.array([0.7, 1.1, 0.9])

    def value(mean, matrix):
        population = Population(np.ones(1), mean[None], matrix[None])
        return tails.expect(population, 3.0, sweeps=500, tol=1e-11)

    found = value(m, V)
    slope = np.linalg.solve(V, (found.means[:, 0] - m).sum(axis=0))
    apart = found.means[:, 0] - m
    inner = apart.T @ apart + found.matrices[:, 0].sum(axis=0) - 50 * V
    of_V = 0.5 * np.linalg.solve(V, np.linalg.solve(V, inner).T)
    for j in range(3):
        e = 1e-4 * np.eye(3)[j]
        numeric = (value(m + e, V).density.sum() - value(m - e, V).density.sum()) / 2e-4
        assert numeric == pytest.approx(slope[j], rel=1e-4, abs=1e-4)
        E = np.diag(e)
        numeric = (value(m, V + E).density.sum() - value(m, V - E).density.sum()) / 2e-4
        assert numeric == pytest.approx(of_V[j, j], rel=1e-3, abs=1e-3)


def test_one_feature_has_the_maximum_of_the_likelihood_by_brute_force():
    x, s, _, _ = measured(150, 1)
    tails = tails_of(x, s)
    grid = norm.ppf((np.arange(500) + 0.5) / 500)

    def lost(theta):
        v = theta[0] + np.exp(theta[1]) * grid
        density = student.pdf((x - v) / s, 3.0) / s
        return -np.log(density.mean(axis=1)).sum()

    best = minimize(lost, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-5})
    eb = EmpiricalBayes(noise="student", nu=3.0, reg_covar=0, tol=1e-8).fit(x, X_std=s)
    assert eb.log_likelihood_[-1] == pytest.approx(-best.fun, abs=0.02)
    assert eb.means_[0, 0] == pytest.approx(best.x[0], abs=0.01)
    assert 0.5 * np.log(eb.covariances_[0][0, 0]) == pytest.approx(best.x[1], abs=0.02)
    assert tails.expect(
        Population(eb.weights_, eb.means_, eb.covariances_.to_full()), 3.0
    ).density.sum() == pytest.approx(eb.score(x, X_std=s) * 150)


def test_population_is_found_within_its_errors_and_values_better_than_by_normal_errors():
    found, gains = [], []
    for seed in range(12):
        x, s, v, V = measured(300, 2, seed=seed)
        eb = EmpiricalBayes(noise="student", nu=3.0).fit(x, X_std=s)
        found.append(np.concatenate([eb.means_[0], eb.covariances_[0][np.tril_indices(2)]]))
        right = EmpiricalBayes().fit(x, X_std=np.sqrt(3.0) * s)  # errors of the same variance
        normal = right.transform(x, X_std=np.sqrt(3.0) * s).mean
        ours = eb.transform(x, X_std=s).mean
        gains.append(np.mean((normal - v) ** 2) - np.mean((ours - v) ** 2))
    truth = np.concatenate([np.ones(2), V[np.tril_indices(2)]])
    found = np.array(found)
    assert np.all(np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0, ddof=1) / np.sqrt(12))
    assert np.mean(gains) > 5 * np.std(gains) / np.sqrt(12)


def test_degrees_of_freedom_are_found():
    x, s, _, _ = measured(1000, 3, seed=4)
    assert 2.3 < EmpiricalBayes(noise="student").fit(x, X_std=s).nu_ < 3.9
    rng = np.random.default_rng(5)
    x = 1.0 + rng.normal(size=(1000, 3)) + s * rng.normal(size=(1000, 3))
    assert EmpiricalBayes(noise="student").fit(x, X_std=s).nu_ > 15


def test_degrees_of_freedom_of_rows_are_found():
    rng = np.random.default_rng(6)
    A = 0.6 * rng.normal(size=(500, 2, 2))
    S = A @ A.transpose(0, 2, 1) + 0.2 * np.eye(2)
    e = np.einsum("nij,nj->ni", np.linalg.cholesky(S), rng.normal(size=(500, 2)))
    x = rng.normal(size=(500, 2)) + e / np.sqrt(rng.gamma(1.5, 1 / 1.5, 500))[:, None]
    eb = EmpiricalBayes(noise="student").fit(x, X_cov=S)
    assert 1.9 < eb.nu_ < 4.5
    # One scale a row leaves nothing to approximate, and plain steps never lose.
    assert np.all(np.diff(eb.log_likelihood_) >= 0)


def test_infinite_degrees_of_freedom_and_no_errors_are_normal_exactly():
    x, s, _, _ = measured(100, missing=0.1)
    normal = EmpiricalBayes().fit(x, X_std=s)
    ours = EmpiricalBayes(noise="student", nu=np.inf).fit(x, X_std=s)
    np.testing.assert_array_equal(ours.means_, normal.means_)
    np.testing.assert_array_equal(
        ours.transform(x, X_std=s).mean, normal.transform(x, X_std=s).mean
    )
    assert ours.score(x, X_std=s) == normal.score(x, X_std=s)
    certain = EmpiricalBayes(noise="student", output="gaussian").fit(x)
    np.testing.assert_array_equal(certain.means_, EmpiricalBayes().fit(x).means_)


def test_many_degrees_of_freedom_are_nearly_normal():
    x, s, _, _ = measured(100, nu=1e6)
    ours = EmpiricalBayes(noise="student", nu=1e5, tol=1e-8).fit(x, X_std=s)
    normal = EmpiricalBayes(tol=1e-8).fit(x, X_std=s)
    assert ours.log_likelihood_[-1] == pytest.approx(normal.log_likelihood_[-1], abs=0.02)
    a, b = ours.transform(x, X_std=s), normal.transform(x, X_std=s)
    np.testing.assert_allclose(a.mean, b.mean, atol=0.02)
    np.testing.assert_allclose(a.covariances.variances(), b.covariances.variances(), rtol=0.02)


def test_values_without_error_stay_where_they_are():
    x, s, _, _ = measured(80)
    s[:40, 0] = 0.0
    eb = EmpiricalBayes(noise="student", nu=3.0).fit(x, X_std=s)
    posterior = eb.transform(x, X_std=s)
    # Within 1e-4 of a standard deviation of the true values, their least error.
    np.testing.assert_allclose(posterior.mean[:40, 0], x[:40, 0], atol=1e-6)
    assert posterior.covariances.variances()[:40, 0].max() < 1e-7


def test_units_and_places_do_not_matter():
    x, s, _, _ = measured(150)
    unit = np.array([1e-6, 1e5])
    ours = EmpiricalBayes(noise="student", nu=3.0).fit(x, X_std=s)
    other = EmpiricalBayes(noise="student", nu=3.0).fit(unit * (x + 100), X_std=unit * s)
    np.testing.assert_allclose(other.means_ / unit - 100, ours.means_, atol=1e-3)
    np.testing.assert_allclose(
        other.transform(unit * (x + 100), X_std=unit * s).mean / unit - 100,
        ours.transform(x, X_std=s).mean,
        atol=1e-3,
    )


def test_outlying_readings_count_for_little():
    x, s, _, _ = measured(200, low=-1.5, high=-0.5)
    eb = EmpiricalBayes(noise="student", nu=3.0).fit(x, X_std=s)
    far = x[:1].copy()
    far[0, 0] = 1e4
    posterior = eb.transform(far, X_std=s[:1])
    alone = far.copy()
    alone[0, 0] = np.nan
    without = eb.transform(alone, X_std=s[:1])
    np.testing.assert_allclose(posterior.mean, without.mean, atol=0.02)


def test_outputs_weights_and_files(tmp_path):
    x, s, _, _ = measured(120)
    eb = EmpiricalBayes(2, noise="student", nu=4.0, random_state=0).fit(x, X_std=s)
    joined = eb.transform(x[:9], X_std=s[:9])
    mixtures = eb.set_params(output="mixture").transform(x[:9], X_std=s[:9])
    np.testing.assert_allclose(mixtures.moments()[0], joined.mean, atol=1e-10)
    means = eb.set_params(output="mean").transform(x[:9], X_std=s[:9])
    np.testing.assert_allclose(means, joined.mean)
    save_model(eb, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.transform(x[:9], X_std=s[:9]), means)
    assert loaded.nu_ == 4.0
    far = np.concatenate([x, [[1e120, np.nan]]]), np.concatenate([s, [[1.0, 1.0]]])
    eb.fit(far[0], X_std=far[1], sample_weight=np.append(np.ones(120), 0.0))
    np.testing.assert_allclose(eb.means_, loaded.means_, atol=1e-6)
    one = EmpiricalBayes(noise="student", nu=4.0, tol=1e-7)
    twice = one.fit(np.repeat(x, 2, axis=0), X_std=np.repeat(s, 2, axis=0)).means_
    weighted = one.fit(x, X_std=s, sample_weight=np.full(120, 2.0)).means_
    np.testing.assert_allclose(weighted, twice, atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": "cauchy"}, "noise must be one of gaussian, student; got 'cauchy'"),
        ({"noise": "student", "nu": 0}, "nu"),
        ({"noise": "student", "nu": -1.0}, "nu.*-1"),
        ({"noise": "student", "nu": np.nan}, "nu.*nan"),
        ({"nu": 3.0}, "nu is given, but noise is 'gaussian'"),
        ({"noise": "student", "error_scale": "estimate"}, "error_scale is 'estimate', to be"),
        ({"noise": "student", "tied": True}, "leave tied and fixed out"),
        ({"noise": "student", "covariance": "factors"}, "needs covariance 'full' or 'diagonal'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    x, s, _, _ = measured(20, 3)
    with pytest.raises(ValueError, match=message):
        EmpiricalBayes(**parameters).fit(x, X_std=s)


def test_sizes_of_errors_are_tested_for_normal_ones():
    x, s, _, _ = measured(20)
    with pytest.raises(ValueError, match="error_test is of normal errors, and noise is 'student'"):
        EmpiricalBayes(noise="student").error_test(x, X_std=s)


def test_what_knows_normal_errors_alone_refuses_heavy_tails():
    x, s, _, _ = measured(60)
    eb = EmpiricalBayes(2, noise="student", nu=3.0, random_state=0).fit(x, X_std=s)
    with pytest.raises(ValueError, match="tail_probability knows normal errors only"):
        eb.tail_probability(x, X_std=s)
    svc = make_pipeline(eb, UncertainSVC()).fit(x, x[:, 0] > 1, empiricalbayes__X_std=s)
    with pytest.raises(ValueError, match="next_measurement knows normal errors only"):
        next_measurement(svc, x, X_std=s)
    mixture = clone(eb).set_params(output="mixture").fit(x, X_std=s).transform(x, X_std=s)
    np.testing.assert_allclose(eb.responsibilities(x, X_std=s).ravel(), mixture.weights)


def test_a_new_fit_forgets_the_tails_of_the_last(tmp_path):
    x, s, _, _ = measured(60)
    eb = EmpiricalBayes(noise="student", nu=3.0).fit(x, X_std=s)
    again = eb.set_params(noise="gaussian", nu=None).fit(x, X_std=s)
    normal = EmpiricalBayes().fit(x, X_std=s)
    assert again.score(x, X_std=s) == normal.score(x, X_std=s)
    save_model(EmpiricalBayes(noise="student", nu=np.inf).fit(x, X_std=s), tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").score(x, X_std=s) == normal.score(x, X_std=s)
