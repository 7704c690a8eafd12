"""The NumPy total machines against numerical inner minima, cvxpy, LIBSVM and searches."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.svm import SVC

from halosvm import reference
from halosvm.reference import (
    ball_dual,
    ball_objective,
    total_kernel_svc,
    total_logistic,
    total_objective,
    total_squared_error,
    total_svc,
)

# LIBSVM keeps kernels in single precision, which its objective inherits
ROUNDING = 6e-8


def problem(n=40, d=2, seed=0, gap=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    x = rng.normal(size=(n, d)) + gap * y[:, None]
    return x, y, rng.uniform(0.0, 0.5, n)


# -- closed inner minima ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_total_losses_are_the_least_over_all_corrections(seed):
    rng = np.random.default_rng(seed)
    w, x, y = rng.normal(size=3), rng.normal(size=3), rng.choice([-1.0, 1.0])
    sigma, variance, target = rng.uniform(0.2, 2.0), rng.uniform(0.2, 2.0), rng.normal()
    s = sigma * np.linalg.norm(w)

    def squared(dx):
        return (target - w @ (x + dx)) ** 2 / (2 * variance) + dx @ dx / (2 * sigma**2)

    def logistic(dx):
        return np.logaddexp(0, -y * (w @ (x + dx))) + dx @ dx / (2 * sigma**2)

    for cost, found in (
        (squared, total_squared_error(target - w @ x, s, variance)),
        (logistic, total_logistic(-y * (w @ x), s)),
    ):
        least = optimize.minimize(cost, np.zeros(3), options={"gtol": 1e-7}).fun
        np.testing.assert_allclose(found[0], least, rtol=1e-9)


@pytest.mark.parametrize("loss", [total_squared_error, total_logistic])
def test_slopes_of_total_losses_equal_central_differences(loss):
    rng = np.random.default_rng(1)
    m, s, h = 3 * rng.normal(size=200), rng.uniform(0.1, 3.0, 200), 1e-5
    _, slope_m, slope_s2 = loss(m, s)
    by_m = (loss(m + h, s)[0] - loss(m - h, s)[0]) / (2 * h)
    by_s = (loss(m, s + h)[0] - loss(m, s - h)[0]) / (2 * h)
    np.testing.assert_allclose(slope_m, by_m, atol=1e-8)
    np.testing.assert_allclose(slope_s2 * s, by_s, atol=1e-8)


def test_total_losses_without_spread_are_the_usual_ones():
    m = np.linspace(-20, 20, 41)
    np.testing.assert_allclose(total_squared_error(m, 0.0)[0], m**2 / 2)
    np.testing.assert_allclose(total_logistic(m, 0.0)[0], np.logaddexp(0, m), rtol=1e-15)


# -- Algorithm 1 -----------------------------------------------------------------------------------


def test_the_best_correction_is_the_one_of_lemma_1():
    x, y, delta = problem()
    w, b = np.array([1.0, -2.0]), 0.3
    dx = reference.best_corrections(y, delta, np.broadcast_to(w, x.shape), np.zeros_like(x))
    moved = np.maximum(1 - y * ((x + dx) @ w + b), 0)
    np.testing.assert_allclose(np.linalg.norm(dx, axis=1), delta)
    np.testing.assert_allclose(
        total_objective(x, y, delta, w, b, 2.0), w @ w / 2 + 2 * moved.sum(), rtol=1e-13
    )
    angles = np.linspace(0, 2 * np.pi, 100)
    for u in np.column_stack([np.cos(angles), np.sin(angles)]):
        others = np.maximum(1 - y * ((x + delta[:, None] * u) @ w + b), 0)
        assert (others >= moved - 1e-12).all()


def test_without_a_direction_the_old_corrections_stay():
    before = np.ones((2, 3))
    kept = reference.best_corrections(np.ones(2), np.ones(2), np.zeros((2, 3)), before)
    np.testing.assert_array_equal(kept, before)


@pytest.mark.parametrize("seed", range(10))
def test_the_linear_objective_never_increases_and_starts_from_the_svm(seed):
    x, y, delta = problem(seed=seed, gap=0.5)
    w, b, dx, history = total_svc(x, y, delta, C=1.0)
    assert (np.diff(history) <= ROUNDING * history[0]).all()
    svm = SVC(kernel="linear", C=1.0, tol=1e-9).fit(x, y)
    first = total_objective(x, y, delta, svm.coef_[0], svm.intercept_[0], 1.0)
    np.testing.assert_allclose(history[0], first, rtol=1e-7)
    np.testing.assert_allclose(total_objective(x, y, delta, w, b, 1.0), history[-1], rtol=1e-12)
    assert (np.linalg.norm(dx, axis=1) <= delta * (1 + 1e-12)).all()


def test_radius_zero_is_the_svm():
    x, y, _ = problem()
    w, b, _, history = total_svc(x, y, np.zeros(40), C=1.0)
    svm = SVC(kernel="linear", C=1.0, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(w, svm.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(b, svm.intercept_[0], rtol=1e-5, atol=1e-7)
    assert len(history) == 2


def test_the_linear_machine_ends_where_no_small_step_gets_lower():
    x, y, delta = problem(seed=3, gap=0.5)
    w, b, _, history = total_svc(x, y, delta, C=1.0)
    rng = np.random.default_rng(4)
    for size in (1e-2, 1e-3, 1e-4):
        for step in size * rng.normal(size=(300, 3)):
            near = total_objective(x, y, delta, w + step[:2], b + step[2], 1.0)
            assert near >= history[-1] * (1 - 1e-7)


def rbf(width):
    def kernel(x, z):
        return np.exp(-((x[:, None] - z) ** 2).sum(axis=2) / (2 * width**2))

    def gradient(x, z):
        return -(x[:, None] - z) * kernel(x, z)[:, :, None] / width**2

    return kernel, gradient


def poly(degree):
    def kernel(x, z):
        return (x @ z.T + 1.0) ** degree

    def gradient(x, z):
        return degree * ((x @ z.T + 1.0) ** (degree - 1))[:, :, None] * z

    return kernel, gradient


@pytest.mark.parametrize("pair", [rbf(0.5), rbf(2.0), poly(2), poly(3)])
def test_the_kernel_objective_never_increases_within_the_radii(pair):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 2))
    y = np.where((x**2).sum(axis=1) > 1.5, 1.0, -1.0)
    x += 0.3 * rng.normal(size=(40, 2))
    delta = rng.uniform(0.1, 0.5, 40)
    a, b, dx, history = total_kernel_svc(x, y, delta, 2.0, *pair)
    assert len(history) > 2
    assert history[-1] < 0.95 * history[0]
    assert (np.diff(history) <= ROUNDING * history[0]).all()
    assert (np.linalg.norm(dx, axis=1) <= delta * (1 + 1e-12)).all()
    svm = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(pair[0](x + dx, x + dx), y)
    np.testing.assert_allclose(np.abs(svm.dual_coef_[0]), a[svm.support_], rtol=1e-6)
    np.testing.assert_allclose(b, svm.intercept_[0], atol=1e-6)


def test_the_linear_kernel_gives_the_linear_machine():
    x, y, delta = problem(seed=6, gap=0.5)
    a, b, dx, _ = total_kernel_svc(
        x,
        y,
        delta,
        1.0,
        lambda x, z: x @ z.T,
        lambda x, z: np.broadcast_to(z, (len(x), *z.shape)),
    )
    w, other, _, _ = total_svc(x, y, delta, 1.0)
    np.testing.assert_allclose((a * y) @ (x + dx), w, rtol=1e-3)
    np.testing.assert_allclose(b, other, atol=1e-3)


# -- the ball --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("gamma", [0.1, 0.4, 1.8])
def test_ball_and_its_dual_have_the_optimum_of_cvxpy_with_opposite_signs(gamma):
    cp = pytest.importorskip("cvxpy")
    x, y, delta = problem(seed=7, gap=0.5)
    w, b, a = cp.Variable(2), cp.Variable(), cp.Variable(40)
    slack = cp.pos(1 - gamma * delta - cp.multiply(y, x @ w + b))
    primal = cp.Problem(cp.Minimize(cp.sum(slack)), [cp.norm(w) <= gamma])
    value = primal.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(
        ball_objective(x, y, delta, w.value, b.value, gamma), value, rtol=1e-6
    )
    shifted = gamma * cp.norm(x.T @ cp.multiply(y, a)) - (1 - gamma * delta) @ a
    dual = cp.Problem(cp.Minimize(shifted), [a >= 0, a <= 1, a @ y == 0])
    np.testing.assert_allclose(dual.solve(solver=cp.CLARABEL), -value, rtol=1e-6)
    np.testing.assert_allclose(ball_dual(x @ x.T, y, delta, a.value, gamma), -value, rtol=1e-6)
    if gamma > 1.0:
        assert np.linalg.norm(w.value) < 0.9 * gamma  # and this is no total machine
        return
    direction = x.T @ (y * a.value)
    np.testing.assert_allclose(
        gamma * direction / np.linalg.norm(direction), w.value, atol=1e-4 * gamma
    )
    # |w| = gamma: the global minimum of the best case on the ball, which no search gets below
    np.testing.assert_allclose(np.linalg.norm(w.value), gamma, rtol=1e-6)

    def in_polar_coordinates(p):
        size = gamma * np.tanh(p[0])
        f = x @ (size * np.array([np.cos(p[1]), np.sin(p[1])])) + p[2]
        return np.maximum(1 - y * f - delta * abs(size), 0).sum()

    for start in 2 * np.random.default_rng(8).normal(size=(20, 3)):
        found = optimize.minimize(
            in_polar_coordinates,
            start,
            method="Nelder-Mead",
            options={"maxiter": 2000},
        )
        assert found.fun >= value * (1 - 1e-6)


def test_the_counterexample_where_the_ball_is_not_the_total_machine():
    # two examples at 0 with opposite labels and radius 1: (8) is solved by w = 0, (7) by |w| = 1
    x, y, delta = np.zeros((2, 1)), np.array([1.0, -1.0]), np.ones(2)
    assert ball_objective(x, y, delta, np.zeros(1), 0.0, 1.0) == 0.0
    assert total_objective(x, y, delta, np.zeros(1), 0.0, 10.0) == 20.0
    assert total_objective(x, y, delta, np.ones(1), 0.0, 10.0) == 0.5


def test_weak_duality_of_the_ball_holds_for_every_feasible_pair():
    x, y, delta = problem(seed=9)
    rng = np.random.default_rng(10)
    for _ in range(200):
        gamma = rng.uniform(0.1, 2.0)
        w = rng.normal(size=2)
        w *= gamma * rng.random() / np.linalg.norm(w)
        a = rng.random(40)
        a[y > 0] *= a[y < 0].sum() / a[y > 0].sum()
        a /= max(1.0, a.max())
        value = ball_objective(x, y, delta, w, rng.normal(), gamma)
        assert -ball_dual(x @ x.T, y, delta, a, gamma) <= value + 1e-12
