"""The NumPy version of limits against sums over grids of true values."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from halosvm.reference import limited_posterior, true_value_posterior


def test_posterior_equals_the_sum_over_a_grid_of_true_values():
    a, m = np.array([0.3, 0.7]), np.array([[0.0, 1.0], [1.5, -0.5]])
    V = np.array([[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.3], [-0.3, 1.2]]])
    S = np.diag([0.2, 0.4])
    axis = np.linspace(-9, 9, 1201)
    v = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    of_reading = norm.pdf(0.7, v[..., 0], np.sqrt(S[0, 0]))
    sd = np.sqrt(S[1, 1])
    of_limits = norm.cdf(0.4, v[..., 1], sd) - norm.cdf(-1.0, v[..., 1], sd)
    total, r, b, B = limited_posterior(np.array([0.7, np.nan]), S, 1, -1.0, 0.4, a, m, V)
    masses = []
    for k in range(2):
        p = a[k] * multivariate_normal.pdf(v, m[k], V[k]) * of_reading * of_limits
        masses.append(p.sum() * (axis[1] - axis[0]) ** 2)
        mean = np.einsum("ij,ijd->d", p, v) / p.sum()
        apart = v - mean
        covariance = np.einsum("ij,ijd,ije->de", p, apart, apart) / p.sum()
        assert b[k] == pytest.approx(mean, abs=1e-9)
        assert B[k] == pytest.approx(covariance, abs=1e-9)
    assert total == pytest.approx(np.log(sum(masses)), abs=1e-9)
    assert r == pytest.approx(np.array(masses) / sum(masses), abs=1e-9)


def test_a_limit_that_says_nothing_is_a_missing_value():
    a, m, V = np.ones(1), np.zeros((1, 2)), np.array([[[1.0, 0.5], [0.5, 1.0]]])
    x, S = np.array([0.3, np.nan]), np.diag([0.1, 0.2])
    found = limited_posterior(x, S, 1, -np.inf, 60.0, a, m, V)
    expected = true_value_posterior(x[np.newaxis], S[np.newaxis], a, m, V)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(np.asarray(other)[0], abs=1e-12)
