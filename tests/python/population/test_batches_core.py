"""Offsets of batches in the compiled core against dense normal distributions and the reference."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from halosvm import _core
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.reference import offset_posteriors, offset_step

SHARES = np.array([0.4, 0.6])


def definite(d, rng):
    half = rng.normal(size=(d, d))
    return half @ half.T / d + 0.2 * np.eye(d)


def dense(x, S, g, means, V, W):
    """Return log p(x), posteriors of offsets and of true values: all rows of a batch as one."""
    d, total = x.shape[1], 0.0
    o, P, b, B = [], [], np.empty_like(x), np.empty((*x.shape, d))
    for each in range(g.max() + 1):
        rows = np.flatnonzero(g == each)
        k = len(rows)
        joint = np.kron(np.ones((k, k)), W) + np.kron(np.eye(k), V)
        for i, row in enumerate(rows):
            joint[i * d : (i + 1) * d, i * d : (i + 1) * d] += S[row]
        rest = (x[rows] - means[rows]).ravel()
        there = ~np.isnan(rest)
        joint, rest = joint[np.ix_(there, there)], rest[there]
        total += multivariate_normal(cov=joint).logpdf(rest) if len(rest) else 0.0
        of_offset = np.kron(np.ones(k), W)[:, there]
        o.append(of_offset @ np.linalg.solve(joint, rest))
        P.append(W - of_offset @ np.linalg.solve(joint, of_offset.T))
        for i, row in enumerate(rows):
            of_row = np.kron(np.eye(k)[i], V)[:, there]
            b[row] = means[row] + of_row @ np.linalg.solve(joint, rest)
            B[row] = V - of_row @ np.linalg.solve(joint, of_row.T)
    return total, np.array(o), np.array(P), b, B


class Problem:
    """Rows of two classes in seven batches, one of which has one row and one one class."""

    def __init__(self, make_covariances, kind="diagonal", missing=0.0, seed=0, n=40, d=3):
        rng = np.random.default_rng(seed)
        self.g = np.r_[np.arange(7), rng.integers(6, size=n - 7)]
        self.y = np.where(self.g == 2, 1, rng.integers(2, size=n))
        self.m, self.V, self.W = rng.normal(size=(2, d)), definite(d, rng), definite(d, rng)
        self.cov = make_covariances(kind, n, d, rng, scale=1.0)
        self.S = self.cov.to_full().astype(np.float64)
        noise = np.stack([rng.multivariate_normal(np.zeros(d), S) for S in self.S])
        v = self.m[self.y] + rng.multivariate_normal(np.zeros(d), self.V, n)
        offset = rng.multivariate_normal(np.zeros(d), self.W, 7)
        self.x = v + offset[self.g] + noise
        self.x[rng.random((n, d)) < missing] = np.nan
        self.d = d
        self.gaussians = as_gaussians(self.x, X_cov=self.cov, missing=True)
        self.view = self.gaussians.core_view(missing=True)

    def population(self, form="full", W=None):
        matrices = np.stack([self.V, self.V])
        made = _core.Population("full", SHARES, self.m, matrices=matrices)
        made = made.labelled(np.array([0, 1]), True)
        return made.with_offsets(self.W if W is None else W, form)

    def fit(self, start=None, **options):
        settings = {"max_iterations": 500, "tolerance": 0.0, "prior": np.zeros(self.d)}
        settings |= {"scale": np.ones(self.d), "labels": self.y, "batches": self.g}
        return _core.fit_population(self.view, start or self.population(), **(settings | options))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_offsets_and_posteriors_are_those_of_all_rows_as_one(
    kind, missing, make_covariances
):
    p = Problem(make_covariances, kind, missing)
    total, o, P, b, B = dense(p.x, p.S, p.g, p.m[p.y], p.V, p.W)
    found = p.fit(max_iterations=1)
    means, covariances = found["offsets"]
    np.testing.assert_allclose(found["history"][0], total + np.log(SHARES)[p.y].sum(), rtol=1e-12)
    np.testing.assert_allclose(means, o, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(covariances, P, rtol=1e-9, atol=1e-11)
    alone = _core.remove_offsets(
        p.population(), p.view, p.g, p.y, means, covariances, np.ones(len(p.x))
    )
    for c in (0, 1):
        mine = np.flatnonzero(p.y == c)
        rows = as_gaussians(alone["means"][mine], X_cov=alone["matrices"][mine], missing=True)
        one = p.population().of_class(c)
        posterior = _core.true_value_posteriors(one, rows.core_view(missing=True), True)
        np.testing.assert_allclose(posterior["means"], b[mine], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(posterior["matrices"], B[mine], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("form", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_step_is_that_of_the_reference(form, missing, make_covariances):
    p = Problem(make_covariances, missing=missing)
    W = {"full": p.W, "diagonal": np.diag([0.5, 1.0, 2.0]), "isotropic": 0.7 * np.eye(3)}[form]
    found = p.fit(p.population(form, W), max_iterations=2, accelerate=False)
    (m, V, expected), log_density = offset_step(p.x, p.S, p.g, p.y, p.m, p.V, W)
    if form != "full":
        expected = np.diag(np.diag(expected))
    if form == "isotropic":
        expected = np.trace(expected) / 3 * np.eye(3)
    population = found["population"]
    np.testing.assert_allclose(
        found["history"][0], log_density + np.log(SHARES)[p.y].sum(), rtol=1e-12
    )
    np.testing.assert_allclose(population.means, m, rtol=1e-10)
    np.testing.assert_allclose(population.matrices, [V, V], rtol=1e-10)
    np.testing.assert_allclose(population.offsets, expected, rtol=1e-10, atol=1e-13)
    # at the new point, by the posteriors of the reference
    after = offset_posteriors(p.x, p.S, p.g, m[p.y], V, expected)[2]
    shares = np.bincount(p.y) / len(p.y)
    np.testing.assert_allclose(found["history"][1], after + np.log(shares)[p.y].sum(), rtol=1e-12)


@pytest.mark.parametrize("form", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize("more_batches", [0.0, 4.0])
def test_no_small_change_of_a_fit_is_more_likely(form, more_batches, make_covariances):
    p = Problem(make_covariances, missing=0.1, n=60)
    start = {"full": p.W, "diagonal": np.eye(3), "isotropic": np.eye(3)}[form]
    D = np.array([0.5, 1.0, 2.0])
    found = p.fit(p.population(form, start), offset_prior=D, offset_prior_weight=more_batches)
    assert found["iterations"] < 200
    assert (np.diff(found["history"]) > 0).all()
    fitted = found["population"]

    def objective(m, V, W):
        apart = np.linalg.solve(W, np.diag(D))
        prior = np.trace(apart) - np.linalg.slogdet(apart)[1]
        density = offset_posteriors(p.x, p.S, p.g, m[p.y], V, W)[2]
        return density - 0.5 * more_batches * prior

    floor = 1e-12 * np.eye(3)
    best = objective(fitted.means, fitted.matrices[0], fitted.offsets + floor)
    shares = np.bincount(p.y) / len(p.y)
    np.testing.assert_allclose(found["history"][-1], best + np.log(shares)[p.y].sum(), atol=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(30):
        m = fitted.means + 1e-3 * rng.normal(size=fitted.means.shape)
        turn = np.eye(3) + 1e-3 * rng.normal(size=(3, 3))
        V = turn @ fitted.matrices[0] @ turn.T
        if form == "full":
            turn = np.eye(3) + 1e-3 * rng.normal(size=(3, 3))
        else:
            turn = np.diag(
                1.0 + 1e-3 * rng.normal(size=3 if form == "diagonal" else 1) * np.ones(3)
            )
        assert objective(m, V, turn @ fitted.offsets @ turn.T + floor) < best + 1e-6


def mixture(make_covariances, seed, kind="diagonal", missing=0.0):
    """Rows of unknown components, and a population of two or three that are not tied."""
    p = Problem(make_covariances, kind, missing, seed)
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    V = np.stack([definite(p.d, rng) for _ in range(k)])
    start = _core.Population("full", np.full(k, 1 / k), rng.normal(size=(k, p.d)), matrices=V)
    return p, start.with_offsets(p.W, ("full", "diagonal", "isotropic")[seed % 3])


@pytest.mark.parametrize("accelerate", [False, True])
def test_the_bound_of_mixtures_never_falls(accelerate, make_covariances):
    kinds = ("diagonal", "full", "isotropic", "low_rank")
    for seed in range(24):
        p, start = mixture(make_covariances, seed, kinds[seed % 4], 0.2 * (seed % 2))
        found = p.fit(
            start, labels=[], max_iterations=40, accelerate=accelerate, prior=np.full(3, 1e-3)
        )
        assert (np.diff(found["history"]) > 0).all()


def test_the_bound_of_mixtures_is_below_the_likelihood_and_near_it(make_covariances):
    # The likelihood by a sum over all assignments of the rows of each batch to components.
    p, start = mixture(make_covariances, 0)
    rows = np.flatnonzero(p.g < 3)
    rows = np.concatenate([rows[p.g[rows] == b][:6] for b in range(3)])
    x, S, g = p.x[rows], p.S[rows], p.g[rows]
    a, m, V, W = start.weights, start.means, start.matrices, start.offsets
    total = 0.0
    for b in range(3):
        mine = np.flatnonzero(g == b)
        terms = []
        for code in range(2 ** len(mine)):
            z = code >> np.arange(len(mine)) & 1
            joint = np.kron(np.ones((len(mine),) * 2), W)
            for i, row in enumerate(mine):
                joint[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += V[z[i]] + S[row]
            rest = (x[mine] - m[z]).ravel()
            terms.append(np.log(a[z]).sum() + multivariate_normal(cov=joint).logpdf(rest))
        total += np.logaddexp.reduce(terms)
    view = as_gaussians(x, X_std=None, X_cov=S, missing=True).core_view(missing=True)
    settings = {"max_iterations": 1, "tolerance": 0.0, "prior": np.zeros(3), "scale": np.ones(3)}
    found = _core.fit_population(view, start, batches=g, **settings)
    assert total - 0.25 * len(rows) < found["history"][0] < total


@pytest.mark.parametrize("kind", ["diagonal", "isotropic", "zero"])
def test_rows_of_few_errors_are_summed_to_the_same(kind, make_covariances):
    # Groups of rows with equal errors are read as one; a weight that differs by rounding is not.
    rng = np.random.default_rng(0)
    n, d = 400, 3
    g, y = rng.integers(5, size=n), rng.integers(2, size=n)
    x = rng.normal(size=(n, d)) + y[:, None] + rng.normal(size=(5, d))[g]
    x[rng.random(n) < 0.2, 1] = np.nan
    std = np.array([[0.5, 1.0, 2.0], [1.0, 1.0, 1.0]])[rng.integers(2, size=n)]
    std = {"diagonal": std, "isotropic": std[:, 0], "zero": None}[kind]
    p = Problem(make_covariances)
    settings = {"max_iterations": 4, "tolerance": 0.0, "prior": np.zeros(d), "scale": np.ones(d)}
    settings |= {"batches": g, "labels": y, "accelerate": False}
    settings["sample_weight"] = 1.0 + rng.integers(3, size=n)
    grouped = as_gaussians(x, X_std=std, missing=True)
    jitter = (1.0 + 1e-13 * rng.random((n, d))) * (1e-9 if std is None else 1.0)
    wide = np.broadcast_to(np.ones((n, d)) if std is None else np.reshape(std, (n, -1)), (n, d))
    single = as_gaussians(x, X_std=wide * jitter, missing=True)
    found, expected = (
        _core.fit_population(each.core_view(missing=True), p.population(), **settings)
        for each in (grouped, single)
    )
    np.testing.assert_allclose(found["history"], expected["history"], rtol=1e-9)
    np.testing.assert_allclose(found["population"].matrices, expected["population"].matrices)
    np.testing.assert_allclose(found["offsets"][0], expected["offsets"][0], atol=1e-8)


def test_results_do_not_depend_on_the_number_of_threads(make_covariances):
    for seed in (0, 1):
        p, start = mixture(make_covariances, seed)
        labelled = [p.fit(max_iterations=20, n_threads=n) for n in (1, 3)]
        mixtures = [p.fit(start, labels=[], max_iterations=20, n_threads=n) for n in (1, 3)]
        for one, other in (labelled, mixtures):
            np.testing.assert_array_equal(one["history"], other["history"])
            np.testing.assert_array_equal(one["offsets"][0], other["offsets"][0])
            np.testing.assert_array_equal(one["offsets"][1], other["offsets"][1])


def test_batches_of_more_rows_than_the_cache_holds_equal_the_reference(make_covariances):
    rng = np.random.default_rng(0)
    n, d = 6000, 4
    g = (rng.random(n) < 0.8).astype(np.intp)  # 4800 rows: 600 blocks of which 400 are kept
    m, V, W = np.zeros((1, d)), definite(d, rng), definite(d, rng)
    std = np.exp(rng.normal(size=(n, d)))
    x = rng.multivariate_normal(np.zeros(d), V, n) + rng.normal(size=(2, d))[g]
    x += std * rng.normal(size=(n, d))
    S = np.zeros((n, d, d))
    np.einsum("ndd->nd", S)[...] = std**2
    o, P, log_density = offset_posteriors(x, S, g, m[0], V, W)
    start = _core.Population("full", np.ones(1), m, matrices=V[None]).with_offsets(W, "full")
    settings = {"max_iterations": 1, "tolerance": 0.0, "prior": np.zeros(d), "scale": np.ones(d)}
    view = as_gaussians(x, X_std=std).core_view(missing=True)
    found = _core.fit_population(view, start, batches=g, **settings)
    np.testing.assert_allclose(found["history"][0], log_density, rtol=1e-12)
    np.testing.assert_allclose(found["offsets"][0], o, rtol=1e-9)
    np.testing.assert_allclose(found["offsets"][1], P, rtol=1e-9, atol=1e-14)


def test_far_offsets_keep_their_digits(make_covariances):
    p = Problem(make_covariances)
    start = p.population(W=1e16 * np.eye(3))
    near = p.fit(start, max_iterations=1)
    p.x += (2.0**26 * np.arange(7))[p.g][:, None]
    p.view = as_gaussians(p.x, X_cov=p.cov).core_view(missing=True)
    far = p.fit(start, max_iterations=1)
    # offsets of 4e8 are read with a resolution of 1e-7
    moved = far["offsets"][0] - (2.0**26 * np.arange(7))[:, None]
    np.testing.assert_allclose(moved, near["offsets"][0], atol=1e-5)
    expected = 0.5 * np.sum((2.0**26 * np.arange(7)) ** 2) * 3e-16
    np.testing.assert_allclose(near["history"][0] - far["history"][0], expected, rtol=1e-5)


def test_a_covariance_of_offsets_of_zero_is_a_fit_without_batches(make_covariances):
    p = Problem(make_covariances)
    found = p.fit(p.population(W=np.zeros((3, 3))), max_iterations=5, accelerate=False)
    plain = _core.Population("full", SHARES, p.m, matrices=np.stack([p.V, p.V]))
    expected = p.fit(
        plain.labelled(np.array([0, 1]), True), batches=[], max_iterations=5, accelerate=False
    )
    np.testing.assert_allclose(found["history"], expected["history"], rtol=1e-12)
    np.testing.assert_array_equal(found["population"].offsets, 0.0)
    np.testing.assert_array_equal(found["offsets"][0], 0.0)
    np.testing.assert_allclose(found["population"].means, expected["population"].means, rtol=1e-10)


def test_a_singular_row_is_named(make_covariances):
    p = Problem(make_covariances, "zero")
    matrices = np.zeros((2, 3, 3))
    start = _core.Population("full", SHARES, p.m, matrices=matrices)
    start = start.labelled(np.array([0, 1]), True).with_offsets(p.W, "full")
    with pytest.raises(ValueError, match=r"component \d .* row \d+ of X"):
        p.fit(start)


@pytest.mark.parametrize("labelled", [False, True])
def test_rows_of_equal_errors_keep_components_of_their_own(labelled):
    # Only where each row is of one component may rows of equal errors be read as their mean.
    rng = np.random.default_rng(0)
    n, d = 300, 2
    g, y = rng.integers(4, size=n), rng.integers(2, size=n)
    x = rng.normal(size=(n, d)) + 4.0 * rng.integers(2, size=(n, 1)) + rng.normal(size=(4, d))[g]
    means = np.array([[0.0, 0.0], [4.0, 4.0], [0.5, 0.0], [4.0, 4.5]])[: 4 if labelled else 2]
    k = len(means)
    start = _core.Population("full", np.full(k, 1 / k), means, matrices=np.stack([np.eye(d)] * k))
    if labelled:
        start = start.labelled(np.array([0, 0, 1, 1]), True)
    start = start.with_offsets(np.eye(d), "full")
    settings = {"max_iterations": 4, "tolerance": 0.0, "prior": np.zeros(d), "scale": np.ones(d)}
    settings |= {"labels": y if labelled else [], "batches": g, "accelerate": False}
    equal = as_gaussians(x, X_std=np.full((n, d), 0.5)).core_view(missing=True)
    other = as_gaussians(x, X_std=0.5 + 1e-13 * rng.random((n, d))).core_view(missing=True)
    found, expected = (_core.fit_population(each, start, **settings) for each in (equal, other))
    np.testing.assert_allclose(found["history"], expected["history"], rtol=1e-9)
    np.testing.assert_allclose(found["offsets"][0], expected["offsets"][0], atol=1e-7)
    plain = start.labelled(np.arange(k), False)
    found, expected = (_core.batch_offsets(plain, each, g) for each in (equal, other))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-7)
