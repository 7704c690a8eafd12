"""The derivative of a validation loss by the sizes of the errors against central differences."""

import numpy as np
import pytest
from scipy import optimize

from halosvm import Gaussians
from halosvm.reference import expected_hinge, robust_objective, safe_hypergradient, safe_lower_level

LAM, FLOOR, BEND = 0.05, 0.05, 0.02


def problem(seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    x = rng.normal(size=(n, d)) + 0.6 * y[:, None] * np.array([1.0, 0.5, 0.0, -0.5])[:d]
    return (x[: n // 2], y[: n // 2]), (x[n // 2 :], y[n // 2 :]), rng.uniform(0.05, 0.4, d)


def solve(x, y, std):
    def both(p):
        return safe_lower_level(x, y, std, p[:-1], p[-1], LAM, FLOOR, BEND)[:2]

    start = np.append(np.zeros(x.shape[1]), 0.0)
    point = optimize.minimize(both, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    for _ in range(5):  # Newton's steps with differences of the gradient take the rest
        h = 1e-6 * np.eye(len(point))
        hessian = np.array([(both(point + e)[1] - both(point - e)[1]) / 2e-6 for e in h])
        point = point - np.linalg.solve(hessian, both(point)[1])
    assert np.abs(both(point)[1]).max() < 1e-12
    return point[:-1], point[-1]


def test_gradient_of_the_smoothed_objective_equals_central_differences():
    (x, y), _, std = problem()
    point, h = np.array([0.5, -0.2, 0.3, 0.1, 0.2]), 1e-6

    def value(p):
        return safe_lower_level(x, y, std, p[:4], p[4], LAM, FLOOR, BEND)[0]

    differences = [(value(point + e) - value(point - e)) / (2 * h) for e in h * np.eye(5)]
    gradient = safe_lower_level(x, y, std, point[:4], point[4], LAM, FLOOR, BEND)[1]
    np.testing.assert_allclose(gradient, differences, atol=1e-9)


def test_smoothed_objective_is_the_robust_one_of_one_ellipsoid_but_for_the_floors():
    (x, y), _, std = problem()
    X, w, b = Gaussians(x, std=np.tile(std, (len(x), 1))), np.array([0.5, -0.2, 0.3, 0.1]), 0.2
    robust = robust_objective(X, y, w, b, LAM)[0]
    smoothed = safe_lower_level(x, y, std, w, b, LAM, FLOOR, BEND)[0]
    assert robust <= smoothed <= robust + FLOOR / np.sqrt(2 * np.pi) + BEND


@pytest.mark.parametrize("validation_floor", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_hypergradient_equals_central_differences_through_new_fits(seed, validation_floor):
    (x, y), (x_val, y_val), std = problem(seed)

    def loss(std):
        w, b = solve(x, y, std)
        m = 1 - y_val * (x_val @ w + b)
        if validation_floor == 0.0:
            assert np.abs(m).min() > 1e-4  # the differences do not cross a kink
        return expected_hinge(m, np.full(len(m), validation_floor))[0].mean()

    w, b = solve(x, y, std)
    found = safe_hypergradient(x, y, std, w, b, LAM, FLOOR, BEND, (x_val, y_val), validation_floor)
    h = 1e-5
    differences = [(loss(std + e) - loss(std - e)) / (2 * h) for e in h * np.eye(4)]
    assert np.abs(found).max() > 1e-3
    np.testing.assert_allclose(found, differences, atol=1e-8, rtol=1e-5)
