"""The compiled fit of populations with labels against NumPy and its own plain steps."""

import numpy as np
import pytest

from halosvm import Gaussians, _core
from halosvm.reference import deconvolution_step

N, D = 60, 3
CLASSES = np.array([0, 0, 1, 1, 1])


def problem(form):
    """Return measurements, their labels and a start of which all covariances are one."""
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(N, D))
    x[rng.random((N, D)) < 0.1] = np.nan
    errors = rng.uniform(0.3, 1.5, (N, D))
    labels = rng.integers(2, size=N)
    a, m = rng.dirichlet(np.full(5, 3.0)), rng.normal(size=(5, D))
    half = rng.normal(size=(D, D))
    V = half @ half.T / D + 0.3 * np.eye(D)
    v = rng.uniform(0.5, 1.5, D)
    if form == "full":
        start = _core.Population("full", a, m, matrices=np.stack([V] * 5))
    elif form == "diagonal":
        start, V = _core.Population("diagonal", a, m, variances=np.stack([v] * 5)), np.diag(v)
    else:
        L = np.stack([rng.normal(size=(D, 1))] * 5)
        start = _core.Population("factors", a, m, variances=np.stack([v] * 5), factors=L)
    return x, errors, labels, start, V


def fit(x, errors, labels, start, *, tied, **options):
    settings = {"max_iterations": 2000, "tolerance": 1e-12, "prior": np.zeros(D)}
    measured = Gaussians(x, std=np.where(np.isnan(x), np.nan, errors))
    return _core.fit_population(
        measured.core_view(missing=True),
        start.labelled(CLASSES, tied),
        labels=labels,
        scale=np.ones(D),
        **(settings | options),
    )


@pytest.mark.parametrize("form", ["full", "diagonal"])
@pytest.mark.parametrize("borrows", [False, True])
def test_a_tied_step_is_the_mean_of_the_steps_of_the_components(form, borrows):
    x, errors, labels, start, V = problem(form)
    rng = np.random.default_rng(1)
    half = rng.normal(size=(D, D))
    W, nu = np.diag(rng.uniform(0.5, 1.0, D)), 2.0
    options = {"prior": np.diag(W).copy(), "prior_weight": nu} if borrows else {}
    if borrows and form == "full":
        options["prior_scatter"] = half @ half.T
        W = W + half @ half.T
    W, nu = (W, nu) if borrows else (0.0 * W, 0.0)
    found = fit(x, errors, labels, start, tied=True, accelerate=False, max_iterations=2, **options)
    S = errors[:, :, np.newaxis] * np.eye(D) * errors[:, np.newaxis]
    weights, means, scatter = [], [], 0.0
    for c in range(2):
        mine, part = labels == c, np.equal(CLASSES, c)
        share = start.weights[part] / start.weights[part].sum()
        (a, m, own), _ = deconvolution_step(
            x[mine], S[mine], share, start.means[part], np.stack([V] * part.sum()), W=W, nu=nu
        )
        q = a * mine.sum()
        weights.append(q / N)
        means.append(m)
        scatter = scatter + np.einsum("k,kij->ij", q + nu, own)
    right = scatter / (N + 5 * nu)
    population = found["population"]
    np.testing.assert_allclose(population.weights, np.concatenate(weights), rtol=1e-10)
    np.testing.assert_allclose(population.means, np.concatenate(means), rtol=1e-9, atol=1e-12)
    for k in range(5):
        if form == "full":
            np.testing.assert_allclose(population.matrices[k], right, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_allclose(population.variances[k], np.diag(right), rtol=1e-9)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("form", ["full", "diagonal", "factors"])
def test_accelerated_steps_end_where_plain_ones_do(form, tied):
    x, errors, labels, start, _ = problem(form)
    # Strong enough for one maximum, which few members of many components do not have.
    options = {"prior": np.full(D, 20.0), "prior_weight": 20.0}
    if form == "full":
        options["prior_scatter"] = np.full((D, D), 5.0)
    fast = fit(x, errors, labels, start, tied=tied, **options)
    slow = fit(
        x, errors, labels, start, tied=tied, accelerate=False, max_iterations=20000, **options
    )
    for found in (fast, slow):
        assert (np.diff(found["history"]) >= 0).all()
    assert fast["history"][-1] == pytest.approx(slow["history"][-1], abs=1e-4)
    assert fast["iterations"] < slow["iterations"]
