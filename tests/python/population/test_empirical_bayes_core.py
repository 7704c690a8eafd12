"""The compiled arithmetic of EmpiricalBayes against the NumPy reference and mpmath."""

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from mpmath import mp

from halosvm import Covariances, _core
from halosvm.reference import deconvolution_step, true_value_posterior

FORMS = ("full", "diagonal", "factors")


def make_population(form, k, d, rng, h=2):
    """Return a population and its weights, means and dense covariances."""
    a, m = rng.dirichlet(np.full(k, 3.0)), rng.normal(size=(k, d))
    if form == "full":
        half = rng.normal(size=(k, d, d))
        V = half @ half.transpose(0, 2, 1) / d + 0.3 * np.eye(d)
        return _core.Population("full", a, m, matrices=V), (a, m, V)
    v = rng.uniform(0.3, 2.0, (k, d))
    V = np.stack([np.diag(each) for each in v])
    if form == "diagonal":
        return _core.Population("diagonal", a, m, variances=v), (a, m, V)
    L = rng.normal(size=(k, d, min(h, d - 1)))
    population = _core.Population("factors", a, m, variances=v, factors=L)
    return population, (a, m, L @ L.transpose(0, 2, 1) + V)


def dense(found, d):
    """Return the dense covariances of posteriors."""
    total = len(found["means"])
    if found["kind"] == "full":
        return found["matrices"]
    V = np.zeros((total, d, d))
    if found["kind"] in ("diagonal", "low_rank"):
        np.einsum("ndd->nd", V)[...] = found["variances"]
    if found["kind"] == "low_rank":
        V += found["factors"] @ found["factors"].transpose(0, 2, 1)
    return V


def dense_population(population, form):
    if form == "full":
        return population.matrices
    V = np.stack([np.diag(v) for v in population.variances])
    return (
        V if form == "diagonal" else V + population.factors @ population.factors.transpose(0, 2, 1)
    )


def fit(data, population, d, **options):
    settings = {"max_iterations": 1000, "tolerance": 0.0, "prior": np.zeros(d), "scale": np.ones(d)}
    return _core.fit_population(data, population, **(settings | options))


@pytest.fixture(params=["complete", "missing", "patterns"])
def values(request):
    """Make values of which none, any or those of three patterns are missing."""

    def make(n, d, rng):
        x = 2 * rng.normal(size=(n, d))
        if request.param == "missing":
            x[rng.random((n, d)) < 0.3] = np.nan
            x[3] = np.nan
        if request.param == "patterns":
            x[(rng.random((3, d)) < 0.5)[np.arange(n) % 3]] = np.nan
        return x

    return make


@each("dtype", DTYPES)
@each("kind", KINDS)
@each("form", FORMS)
@each("d", [1, 5])
def test_densities_posteriors_and_a_step_equal_the_reference(
    kind, form, d, values, dtype, make_covariances
):
    rng = np.random.default_rng(0)
    n, k = 53, 3
    x = values(n, d, rng).astype(dtype)
    cov = make_covariances(kind, n, d, rng, dtype)
    S = cov.to_full()
    x64 = x.astype(np.float64)
    population, (a, m, V) = make_population(form, k, d, rng)
    data = _core.Gaussians(x, cov.core_view())
    total, r, b, B = true_value_posterior(x64, S, a, m, V)
    np.testing.assert_allclose(
        _core.measurement_log_density(population, data), total, rtol=1e-11, atol=1e-10
    )
    apart = _core.true_value_posteriors(population, data, False)
    np.testing.assert_allclose(apart["responsibilities"], r, atol=1e-10)
    np.testing.assert_allclose(apart["means"].reshape(n, k, d), b, atol=1e-10)
    np.testing.assert_allclose(dense(apart, d).reshape(n, k, d, d), B, atol=1e-10)
    joined = _core.true_value_posteriors(population, data, True)
    mean = np.einsum("nk,nkd->nd", r, b)
    away = b - mean[:, np.newaxis]
    cov_joined = np.einsum("nk,nkij->nij", r, B) + np.einsum("nk,nki,nkj->nij", r, away, away)
    np.testing.assert_allclose(joined["means"], mean, atol=1e-10)
    np.testing.assert_allclose(dense(joined, d), cov_joined, atol=1e-10)
    if form == "factors":
        return
    c = rng.uniform(0.0, 2.0, n)
    c[7] = 0.0
    W = 0.1 * np.eye(d)
    expected = (a, m, V)
    for _ in range(4):
        expected, _ = deconvolution_step(x64, S, *expected, c, W, 0.3)
        if form == "diagonal":
            expected = (*expected[:2], expected[2] * np.eye(d))
    found = fit(
        data,
        population,
        d,
        sample_weight=c,
        max_iterations=5,
        prior=np.full(d, 0.1),
        prior_weight=0.3,
        accelerate=False,
    )["population"]
    np.testing.assert_allclose(found.weights, expected[0], atol=1e-8)
    np.testing.assert_allclose(found.means, expected[1], atol=1e-8)
    np.testing.assert_allclose(dense_population(found, form), expected[2], atol=1e-8)


def factor_step(x, s, m, L, psi):
    """One step for one component of factors, from the joint Gaussian of (v, z)."""
    d, h = L.shape
    joint = np.block([[L @ L.T + np.diag(psi), L], [L.T, np.eye(h)]])
    first, second = [], []
    for row, errors in zip(x, s, strict=True):
        there = np.flatnonzero(~np.isnan(row))
        T = joint[np.ix_(there, there)] + np.diag(errors[there])
        gain = np.linalg.solve(T, joint[there]).T
        mean = gain @ (row[there] - m[there])
        mean[:d] += m
        first.append(mean)
        second.append(joint - gain @ joint[there] + np.outer(mean, mean))
    mean, moment = np.mean(first, axis=0), np.mean(second, axis=0)
    scatter = moment - np.outer(mean, mean)
    slope = scatter[:d, d:] @ np.linalg.inv(scatter[d:, d:])
    own = np.diag(scatter[:d, :d] - slope @ scatter[d:, :d])
    return mean[:d] - slope @ mean[d:], slope, own


@pytest.mark.parametrize("stored", ["diagonal", "full"])
def test_a_step_of_factors_is_the_regression_on_their_expectations(stored, values):
    rng = np.random.default_rng(2)
    n, d = 40, 6
    x, s = values(n, d, rng), rng.uniform(0.1, 2.0, (n, d))
    population, (_, m, _) = make_population("factors", 1, d, rng)
    m, L, psi = m[0], population.factors[0], population.variances[0]
    cov = Covariances.diagonal(s)
    if stored == "full":
        cov = Covariances.full(cov.to_full())
    found = fit(
        _core.Gaussians(x, cov.core_view()), population, d, max_iterations=3, accelerate=False
    )
    for _ in range(2):
        m, L, psi = factor_step(x, s, m, L, psi)
    np.testing.assert_allclose(found["population"].means[0], m, atol=1e-9)
    np.testing.assert_allclose(found["population"].factors[0], L, atol=1e-9)
    np.testing.assert_allclose(found["population"].variances[0], psi, atol=1e-9)


def test_objective_never_decreases_on_500_random_problems(make_covariances):
    kinds = ("zero", "isotropic", "diagonal", "low_rank_diagonal", "ragged", "full", "half_certain")
    for seed in range(500):
        rng = np.random.default_rng(seed)
        n, d, k = rng.integers(3, 40), rng.integers(1, 6), rng.integers(1, 4)
        form = FORMS[seed % 3]
        if form == "factors" and d == 1:
            form = "full"
        x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3)
        if seed % 2:
            x[rng.random((n, d)) < 0.3] = np.nan
        cov = make_covariances(kinds[seed % 7], n, d, rng)
        population, (_, _, V) = make_population(form, k, d, rng)
        reg = 10.0 ** rng.integers(-6, 0)
        result = fit(
            _core.Gaussians(x, cov.core_view()),
            population,
            d,
            prior=np.full(d, reg),
            max_iterations=60,
            tolerance=1e-6,
            accelerate=bool(seed % 5),
        )
        history, found = result["history"], result["population"]
        assert np.isfinite(history).all(), seed
        assert (np.diff(history) >= 0).all(), seed
        # The last value is that of the population that is returned.
        a, m, V = found.weights, found.means, dense_population(found, form)
        value = true_value_posterior(x, cov.to_full(), a, m, V)[0].sum()
        lives = a > 0
        if form == "full":
            value -= 0.5 * reg * np.trace(np.linalg.inv(V[lives]), axis1=1, axis2=2).sum()
        else:
            value -= 0.5 * reg * np.sum(1 / found.variances[lives])
        np.testing.assert_allclose(history[-1], value, rtol=1e-6, atol=1e-5, err_msg=str(seed))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", ["diagonal", "full"])
def test_acceleration_takes_a_third_of_the_passes_where_noise_is_three_times_the_spread(
    form, noise
):
    rng = np.random.default_rng(4)
    n, d = 600, 4
    v = np.where(rng.random((n, 1)) < 0.4, 2.0, -2.0) + rng.normal(size=(n, d))
    s = 9 * np.exp(0.5 * rng.normal(size=(n, d)))
    x = v + np.sqrt(s) * rng.normal(size=(n, d))
    cov = Covariances.diagonal(s)
    if noise == "full":
        cov = Covariances.full(cov.to_full())
    population, _ = make_population(form, 2, d, rng)
    data = _core.Gaussians(x, cov.core_view())
    options = {"prior": np.full(d, 1e-6), "max_iterations": 5000}
    fast = fit(data, population, d, tolerance=1e-2, **options)
    assert fast["converged"]
    slow = fit(
        data,
        population,
        d,
        accelerate=False,
        **(options | {"max_iterations": 3 * fast["iterations"]}),
    )
    assert slow["history"][-1] < fast["history"][-1]


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", ["diagonal", "full"])
def test_posteriors_keep_their_digits_at_any_size_of_noise(size, form, noise):
    mp.dps = 60
    rng = np.random.default_rng(5)
    d = 3
    population, (_, m, V) = make_population(form, 1, d, rng)
    S = size**2 * np.diag([1.0, 2.0, 3.0])
    x = m[0] + np.sqrt(1 + size**2) * np.array([1.0, -2.0, 0.5])
    cov = Covariances.diagonal(np.diag(S)[np.newaxis].copy())
    if noise == "full":
        cov = Covariances.full(S[np.newaxis])
    found = _core.true_value_posteriors(
        population, _core.Gaussians(x[np.newaxis], cov.core_view()), True
    )
    precisions = [mp.matrix(each.tolist()) ** -1 for each in (V[0], S)]
    exact = (precisions[0] + precisions[1]) ** -1
    mean = exact * (
        precisions[0] * mp.matrix(m[0].tolist()) + precisions[1] * mp.matrix(x.tolist())
    )
    unit = min(size**2, 1.0)
    np.testing.assert_allclose(
        dense(found, d)[0] / unit, np.array(exact.tolist(), float) / unit, atol=1e-11
    )
    # Relative to what the posterior leaves open, but for the rounding of the values themselves.
    np.testing.assert_allclose(
        found["means"][0], np.array(mean.tolist(), float)[:, 0], rtol=1e-13, atol=1e-12
    )


def test_posteriors_equal_importance_sampling():
    rng = np.random.default_rng(6)
    d, draws = 2, 400_000
    population, (a, m, V) = make_population("full", 2, d, rng)
    x = np.array([[0.5, -1.0], [1.0, np.nan]])
    S = np.array([[[0.8, 0.3], [0.3, 0.5]], [[0.4, 0.0], [0.0, 0.0]]])
    found = _core.true_value_posteriors(
        population, _core.Gaussians(x, Covariances.full(S).core_view()), True
    )
    component = rng.choice(2, draws, p=a)
    root = np.linalg.cholesky(V)
    v = m[component] + np.einsum("nij,nj->ni", root[component], rng.normal(size=(draws, d)))
    for i in range(2):
        there = ~np.isnan(x[i])
        rest = x[i, there] - v[:, there]
        weight = np.exp(
            -0.5 * np.einsum("ni,ij,nj->n", rest, np.linalg.inv(S[i][np.ix_(there, there)]), rest)
        )
        weight /= weight.sum()
        mean = weight @ v
        cov = (v - mean).T @ (weight[:, np.newaxis] * (v - mean))
        error = 5 * np.sqrt(np.sum(weight**2))  # five standard errors of an average
        np.testing.assert_allclose(found["means"][i], mean, atol=error * 2)
        np.testing.assert_allclose(found["matrices"][i], cov, atol=error * 4)


@pytest.mark.parametrize("form", FORMS)
def test_results_do_not_depend_on_the_number_of_threads(form, values, make_covariances):
    rng = np.random.default_rng(7)
    n, d = 700, 3
    x = values(n, d, rng)
    for kind in ("diagonal", "full", "zero"):
        data = _core.Gaussians(x, (cov := make_covariances(kind, n, d, rng)).core_view())
        population, _ = make_population(form, 2, d, rng)
        results = []
        for n_threads in (1, 2, 5):
            result = fit(
                data, population, d, max_iterations=6, prior=np.full(d, 1e-3), n_threads=n_threads
            )
            posterior = _core.true_value_posteriors(population, data, True, n_threads=n_threads)
            results.append((result["history"], result["population"].means, posterior["means"]))
        for other in results[1:]:
            for one, two in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(one, two)
        assert len(cov) == n


@pytest.mark.parametrize("d", [10, 30, 100])
@pytest.mark.parametrize("shared", [False, True])
def test_many_features_equal_the_reference(d, shared):
    rng = np.random.default_rng(8)
    n = 24
    x = rng.normal(size=(n, d))
    x[
        (rng.random((n, d)) < 0.2) if not shared else (rng.random((2, d)) < 0.2)[np.arange(n) % 2]
    ] = np.nan
    s = np.full((n, d), 0.5) if shared else rng.uniform(0.1, 2, (n, d))
    population, (a, m, V) = make_population("full", 2, d, rng)
    data = _core.Gaussians(x, Covariances.diagonal(s).core_view())
    S = Covariances.diagonal(s).to_full()
    expected, before = deconvolution_step(x, S, a, m, V, None, 0.1 * np.eye(d))
    result = fit(data, population, d, max_iterations=2, prior=np.full(d, 0.1), accelerate=False)
    prior = -0.05 * np.trace(np.linalg.inv(V), axis1=1, axis2=2).sum()
    np.testing.assert_allclose(result["history"][0], before + prior, rtol=1e-11)
    np.testing.assert_allclose(result["population"].matrices, expected[2], atol=1e-9)
