"""Offsets and variances of targets: values, derivatives and bounds of the objective have them.

Oracles: the loss of the reference at the margins and spreads computed here, central differences.
"""

import numpy as np
import pytest
from cases import each

from halosvm import _core, reference

LAM = 0.05
N, D = 40, 3


@pytest.fixture
def problem(make_gaussians, kind):
    X, y = make_gaussians(kind, n=N, d=D)
    rng = np.random.default_rng(7)
    arrays = {
        "offsets": rng.normal(size=N),
        "variances": rng.uniform(0.0, 0.5, N) * (np.arange(N) % 3 > 0),
    }
    c = rng.uniform(0.1, 2.0, N)
    return X, np.asarray(y == np.max(y), dtype=np.int16), c, arrays


def objective_of(problem, loss):
    X, codes, c, arrays = problem
    return _core.Objective(X.core_view(), codes, 1, c, LAM, loss=loss, n_threads=1, **arrays)


def expected(problem, loss, w, b):
    X, codes, c, arrays = problem
    sign = np.where(codes == 1, 1.0, -1.0)
    m = arrays["offsets"] - sign * (np.asarray(X.mean, dtype=float) @ w + b)
    s2 = np.einsum("j,ijk,k->i", w, X.covariances.to_full(), w)
    variances = 0.0 if loss == "hinge" else arrays["variances"]
    psi = reference.LOSSES[loss](m, np.sqrt(np.maximum(s2, 0.0) + variances))[0]
    return LAM / 2 * w @ w + c @ psi / c.sum()


LOSSES = [name for name in _core.loss_names() if not _core.loss_traits(name)["has_radius"]]


@each("loss", LOSSES)
def test_value_is_that_of_the_shifted_margins(problem, loss):
    rng = np.random.default_rng(1)
    for _ in range(5):
        w, b = rng.normal(size=D), rng.normal()
        found = objective_of(problem, loss)(w[None], np.array([b])).value[0]
        assert found == pytest.approx(expected(problem, loss, w, b), rel=1e-12)


@each("loss", [name for name in LOSSES if name != "hinge"])
def test_gradient_and_hessian_equal_central_differences(problem, loss):
    objective = objective_of(problem, loss)
    rng = np.random.default_rng(2)
    w, b, v, v0 = rng.normal(size=(1, D)), rng.normal(size=1), rng.normal(size=(1, D)), np.ones(1)

    def at(t):
        return objective(w + t * v, b + t * v0)

    step = 1e-6
    here, after, before = at(0.0), at(step), at(-step)
    slope = (here.coef * v).sum() + here.intercept @ v0
    assert slope == pytest.approx((after.value - before.value)[0] / (2 * step), rel=1e-7)
    coef, intercept = objective.hessian_vector(w, b, v, v0)
    np.testing.assert_allclose(coef, (after.coef - before.coef) / (2 * step), rtol=1e-5, atol=1e-7)
    change = (after.intercept - before.intercept) / (2 * step)
    np.testing.assert_allclose(intercept, change, rtol=1e-5, atol=1e-7)


@each("loss", [name for name in LOSSES if _core.loss_traits(name)["convex"]])
def test_bound_is_below_the_optimum_and_meets_it(problem, loss):
    objective = objective_of(problem, loss)
    zero = {"coef": np.zeros((1, D)), "intercept": np.zeros(1)}
    run = _core.minimize(objective, **zero, max_iterations=2000, tolerance=1e-9)
    assert run["suboptimality"][0] <= 1e-8
    best = expected(problem, loss, run["coef"][0], run["intercept"][0])
    assert run["objective"][0] == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(3)
    for far in (1.0, 0.1, 0.01):
        W = run["coef"] + far * rng.normal(size=(1, D))
        assert objective.lower_bound(W, run["intercept"])[0] <= best * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("offsets", np.nan, "offsets row 2 is nan; an offset must be finite"),
        ("variances", -1.0, "variances row 2 is -1; a variance must be >= 0 and finite"),
    ],
)
def test_bad_targets_are_refused_with_row_and_value(make_gaussians, name, value, rule):
    X, y = make_gaussians("diagonal", n=N, d=D)
    array = np.ones(N)
    array[2] = value
    codes = np.asarray(y == np.max(y), dtype=np.int16)
    with pytest.raises(ValueError, match=rule):
        _core.Objective(X.core_view(), codes, 1, None, LAM, **{name: array})
