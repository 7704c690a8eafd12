"""The total SVM in a ball: the convex problem (8), its dual (9), and the claim of a global minimum.

Oracles: Clarabel by cvxpy, all kinks, and a search from 100 starts.
"""

import numpy as np
import pytest
from cases import each

from halosvm.linear.total.ball import Ball


def random_ball(seed, *, largest=60):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, largest), rng.integers(1, 8)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    X = rng.normal(size=(n, d)) + rng.uniform(0, 2) * y[:, None]
    X *= 10 ** rng.uniform(-2, 2)
    c = rng.uniform(0.1, 1, n)
    gamma = 10 ** rng.uniform(-2, 2)
    radii = rng.uniform(0, 10 ** rng.uniform(-2, 1), n)
    return Ball(X, y, c / c.sum(), 1.0 - gamma * radii, gamma)


def scale_of(ball):
    return ball.c @ np.maximum(0.0, ball.margins)


@each("seed", range(40))
def test_value_is_that_of_a_conic_solver_for_the_problem_and_its_dual(seed):
    cp = pytest.importorskip("cvxpy")
    ball = random_ball(seed)
    w, b, a = cp.Variable(ball.X.shape[1]), cp.Variable(), cp.Variable(len(ball.y))
    losses = cp.pos(ball.margins - cp.multiply(ball.y, ball.X @ w + b))
    primal = cp.Problem(cp.Minimize(ball.c @ losses), [cp.norm(w) <= ball.gamma])
    pulls = ball.gamma * cp.norm(ball.X.T @ cp.multiply(ball.y, a))
    limits = [a >= 0, a <= ball.c, ball.y @ a == 0]
    dual = cp.Problem(cp.Minimize(pulls - ball.margins @ a), limits)
    for problem in (primal, dual):
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    found = ball.minimize(1e-6, 200)
    assert found.converged
    value = ball.value(found.coef, found.intercept)
    size = max(scale_of(ball), 1e-3)  # what the rival resolves
    assert np.linalg.norm(found.coef) <= ball.gamma * (1 + 1e-12)
    assert abs(value - primal.value) <= 1e-6 * size
    assert abs(value + dual.value) <= 1e-6 * size
    assert found.lower_bound <= primal.value + 1e-8 * size


def test_every_problem_of_500_is_certified_to_the_tolerance():
    for seed in range(500):
        ball = random_ball(seed)
        found = ball.minimize(1e-6, 200)
        value = ball.value(found.coef, found.intercept)
        assert found.converged, seed
        assert value - found.lower_bound <= 1e-6 * scale_of(ball), seed
        length = np.linalg.norm(found.coef)
        assert length <= ball.gamma * (1 + 1e-12), seed
        assert found.on_sphere == (length >= ball.gamma * (1 - 1e-12)), seed


def test_best_intercept_is_the_best_of_all_kinks():
    for seed in range(200):
        ball = random_ball(seed, largest=12)
        if seed % 2:  # intervals of minima need equal weights
            n = len(ball.y)
            ball = Ball(ball.X, ball.y, np.full(n, 1 / n), ball.margins, ball.gamma)
        w = np.random.default_rng(seed).normal(size=ball.X.shape[1])
        b, value = ball.best_intercept(w)
        kinks = ball.y * ball.margins - ball.X @ w
        assert value == ball.value(w, b)
        assert value <= min(ball.value(w, kink) for kink in kinks) + 1e-12 * (1 + abs(value))


def loss_with_errors(ball, radii, W, B):
    """Return sum c max(0, 1 - y f - delta |w|) of models, a row each."""
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    deficits = 1.0 - ball.y * (W @ ball.X.T + B) - radii * lengths
    return np.maximum(0.0, deficits) @ ball.c


def lowest_of_100_starts(ball, radii, rng, rounds=1500):
    """Search in the ball by random steps that shrink, from 100 starts side by side."""
    d = ball.X.shape[1]
    W = rng.normal(size=(100, d))
    W *= ball.gamma * rng.random((100, 1)) ** (1 / d) / np.linalg.norm(W, axis=1, keepdims=True)
    B = rng.normal(size=(100, 1)) * (1 + ball.gamma)
    values = loss_with_errors(ball, radii, W, B)
    for i in range(rounds):
        size = 10 ** (-5.0 * i / rounds)
        V = W + size * ball.gamma * rng.normal(size=W.shape)
        V *= np.minimum(1.0, ball.gamma / np.linalg.norm(V, axis=1, keepdims=True))
        A = B + size * (1 + ball.gamma) * rng.normal(size=B.shape)
        tried = loss_with_errors(ball, radii, V, A)
        better = tried < values
        W[better], B[better], values[better] = V[better], A[better], tried[better]
    return values.min()


def test_no_search_from_100_starts_finds_less_than_what_is_called_global():
    called = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(6, 20), rng.integers(1, 4)
        y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
        X = rng.normal(size=(n, d)) + 0.5 * y[:, None]
        gamma, radii = rng.uniform(0.2, 2.0), rng.uniform(0, 0.6, n)
        ball = Ball(X, y, np.full(n, 1 / n), 1.0 - gamma * radii, gamma)
        found = ball.minimize(1e-6, 200)
        w, b = found.coef[None], np.array([[found.intercept]])
        value = loss_with_errors(ball, radii, w, b)[0]
        lowest = lowest_of_100_starts(ball, radii, rng)
        if found.on_sphere:
            called += 1
            assert value <= lowest + 1e-6
            assert lowest <= value + 0.02  # a search that finds nothing shows nothing
        else:
            assert found.lower_bound <= lowest + 1e-9
    assert 8 <= called < 20


def test_points_that_coincide_have_their_minimum_inside():
    """Both classes at 0, errors that reach gamma: (8) is solved by w = 0, w = 1 and -1 by (7)."""
    y = np.array([-1.0, 1.0])
    found = Ball(np.zeros((2, 1)), y, np.full(2, 0.5), np.zeros(2), 1.0).minimize(1e-6, 100)
    assert not found.on_sphere
    assert found.coef[0] == 0.0


def test_minimum_that_is_not_alone_is_taken_on_the_sphere():
    """Classes so far apart that many w have no loss: one is as long as the ball allows."""
    X = np.array([[-10.0, 0.0], [-11.0, 1.0], [10.0, 0.0], [11.0, 1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    found = Ball(X, y, np.full(4, 0.25), np.full(4, 1.0), 5.0).minimize(1e-6, 100)
    assert found.on_sphere
    assert np.linalg.norm(found.coef) == pytest.approx(5.0, rel=1e-14)


def test_iterations_that_end_first_leave_it_unproved():
    ball = random_ball(3)
    found = ball.minimize(1e-6, 2)
    assert found.n_iter == 2
    assert not found.converged
