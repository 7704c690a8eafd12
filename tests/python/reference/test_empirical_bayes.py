"""The NumPy version of EmpiricalBayes against closed forms, mpmath and brute force."""

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import multivariate_normal

from halosvm.reference import deconvolution_step, true_value_posterior


def problem(n=40, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, d, d)) / 2
    S = half @ half.transpose(0, 2, 1)
    half = rng.normal(size=(k, d, d))
    V = half @ half.transpose(0, 2, 1) + 0.1 * np.eye(d)
    m = rng.normal(size=(k, d))
    a = rng.dirichlet(np.ones(k))
    x = rng.normal(size=(n, d)) * 1.5
    return x, S, a, m, V


def test_posterior_of_complete_data_is_the_product_of_two_gaussians():
    x, S, a, m, V = problem()
    total, r, b, B = true_value_posterior(x, S, a, m, V)
    density = np.array(
        [
            [a[k] * multivariate_normal.pdf(x[i], m[k], V[k] + S[i]) for k in range(len(a))]
            for i in range(len(x))
        ]
    )
    np.testing.assert_allclose(total, np.log(density.sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(r, density / density.sum(axis=1, keepdims=True), rtol=1e-10)
    for i, k in ((0, 0), (7, 1)):
        precision = np.linalg.inv(V[k]) + np.linalg.inv(S[i])
        right = np.linalg.solve(V[k], m[k]) + np.linalg.solve(S[i], x[i])
        np.testing.assert_allclose(B[i, k], np.linalg.inv(precision), rtol=1e-8)
        np.testing.assert_allclose(b[i, k], np.linalg.solve(precision, right), rtol=1e-8)


def test_missing_values_give_the_conditional_moments_and_the_marginal_density():
    x, _, _, m, V = problem(k=1)
    x[0, [0, 2]] = np.nan
    x[1] = np.nan
    total, _, b, B = true_value_posterior(x, np.zeros((len(x), 3, 3)), np.ones(1), m, V)
    (m,), (V,) = m, V
    np.testing.assert_allclose(b[0, 0, 1], x[0, 1], rtol=1e-14)
    expected = m[[0, 2]] + V[[0, 2], 1] / V[1, 1] * (x[0, 1] - m[1])
    np.testing.assert_allclose(b[0, 0, [0, 2]], expected, rtol=1e-12)
    rest = V[np.ix_([0, 2], [0, 2])] - np.outer(V[[0, 2], 1], V[1, [0, 2]]) / V[1, 1]
    np.testing.assert_allclose(B[0, 0][np.ix_([0, 2], [0, 2])], rest, rtol=1e-10)
    np.testing.assert_allclose(B[0, 0, 1], 0, atol=1e-14)
    np.testing.assert_allclose(total[0], multivariate_normal.logpdf(x[0, 1], m[1], V[1, 1]))
    assert total[1] == 0
    np.testing.assert_array_equal(b[1, 0], m)
    np.testing.assert_array_equal(B[1, 0], V)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_posterior_covariance_keeps_its_digits_at_extreme_noise(size):
    mp.dps = 60
    _, _, _, m, V = problem(k=1, seed=3)
    S = size**2 * np.diag([1.0, 2.0, 3.0])
    _, _, _, B = true_value_posterior(np.ones((1, 3)), S[np.newaxis], np.ones(1), m, V)
    exact = (mp.matrix(V[0].tolist()) ** -1 + mp.matrix(S.tolist()) ** -1) ** -1
    np.testing.assert_allclose(
        B[0, 0] / min(size**2, 1.0), np.array(exact.tolist(), float) / min(size**2, 1.0), atol=1e-12
    )


@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_objective_never_decreases(reg):
    x, S, *population = problem(seed=5)
    x[::4, 1] = np.nan
    c = np.random.default_rng(1).uniform(0.5, 2, len(x))
    W = reg * np.eye(3)
    values = []
    for _ in range(50):
        V = population[2]
        population, value = deconvolution_step(x, S, *population, c, W)
        values.append(value - 0.5 * np.trace(W @ np.linalg.inv(V), axis1=1, axis2=2).sum())
    assert (np.diff(values) > -1e-10).all()
    assert values[-1] > values[0] + 1


def test_a_step_without_errors_is_that_of_a_gaussian_mixture():
    x, S, a, m, V = problem(seed=6)
    (a1, m1, V1), _ = deconvolution_step(x, np.zeros_like(S), a, m, V)
    density = np.array([a[k] * multivariate_normal.pdf(x, m[k], V[k]) for k in range(2)]).T
    r = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(a1, r.mean(axis=0), rtol=1e-12)
    for k in range(2):
        np.testing.assert_allclose(m1[k], np.average(x, axis=0, weights=r[:, k]), rtol=1e-10)
        cov = np.cov(x.T, aweights=r[:, k], ddof=0)
        np.testing.assert_allclose(V1[k], cov, rtol=1e-9, atol=1e-12)
