"""The compiled arithmetic of limits against mpmath, the NumPy reference and sums over grids."""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import multivariate_normal, norm

from halosvm import Covariances, Gaussians, _core
from halosvm.reference import limited_posterior, true_value_posterior

from .test_empirical_bayes_core import FORMS, dense, fit, make_population

UNIT = _core.Population("full", np.ones(1), np.zeros((1, 1)), matrices=np.ones((1, 1, 1)))


def core_view(x, cov):
    return Gaussians(x, cov=cov).core_view(missing=True)


def truncated(lower, upper):
    """Return log mass, mean and variance of N(0, 1) between limits, by tails in 80 digits."""
    with mp.workdps(80):
        lower, upper = mpf(lower), mpf(upper)
        mirrored = upper <= 0
        if mirrored:
            lower, upper = -upper, -lower
        tail = mp.erfc(lower / mp.sqrt(2)) / 2 - mp.erfc(upper / mp.sqrt(2)) / 2
        low, high = (0 if mp.isinf(z) else z * mp.npdf(z) for z in (lower, upper))
        mean = (mp.npdf(lower) - mp.npdf(upper)) / tail
        variance = 1 + (low - high) / tail - mean**2
        return [float(each) for each in (mp.log(tail), -mean if mirrored else mean, variance)]


LIMITS = [
    *((-np.inf, z) for z in (-150.0, -40.5, -39.5, -8.0, -1.0, -0.1, 0.0, 0.1, 1.0, 8.0)),
    *((z, z + w) for z in (-12.0, -2.0, 0.0, 0.5, 30.0) for w in (1e-8, 1e-3, 0.5, 4.9, 5.1, 30)),
    *((150.0, 150.0 + f / 150) for f in (1e-6, 1.0, 12.4, 12.6, 40.0)),
]


@pytest.mark.parametrize("mirrored", [False, True])
def test_moments_within_limits_keep_their_digits_far_out_and_in_narrow_intervals(mirrored):
    lower, upper = np.array(LIMITS).T.copy()
    if mirrored:
        lower, upper = -upper, -lower
    limits = tuple(np.where(np.isinf(z), np.nan, z)[:, np.newaxis] for z in (lower, upper))
    data = core_view(np.full((len(lower), 1), np.nan), Covariances.zero(len(lower), 1))
    log_mass = _core.measurement_log_density(UNIT, data, 1, limits)
    found = _core.true_value_posteriors(UNIT, data, True, limits=limits)
    for i, pair in enumerate(zip(lower, upper, strict=True)):
        expected = truncated(*pair)
        # Limits are rounded, which widths of 1e-8 and variances feel.
        largest = max(1.0, *(abs(z) for z in pair if np.isfinite(z)))
        room = 1e-13 + 4e-16 * largest / (pair[1] - pair[0])
        assert log_mass[i] == pytest.approx(expected[0], rel=room, abs=room)
        assert found["means"][i, 0] == pytest.approx(expected[1], rel=room, abs=1e-16)
        assert found["matrices"][i, 0] == pytest.approx(expected[2], rel=4 * room)


def test_the_far_tail_is_exponential():
    t = np.array([1e4, 1e6, 1e9])
    data = core_view(np.full((3, 1), np.nan), Covariances.zero(3, 1))
    limits = (t[:, np.newaxis], np.full((3, 1), np.nan))
    found = _core.true_value_posteriors(UNIT, data, True, limits=limits)
    assert found["means"][:, 0] == pytest.approx(t + 1 / t, rel=1e-15)
    assert found["matrices"][:, 0, 0] == pytest.approx(1 / t**2, rel=1e-7)
    log_mass = _core.measurement_log_density(UNIT, data, 1, limits)
    assert log_mass == pytest.approx(-0.5 * t**2 - np.log(t * np.sqrt(2 * np.pi)), rel=1e-12)


def one_limit_a_row(n, d, rng, missing=False):
    """Return values and limits, of which each row has one: below, above or both in turn."""
    x = 1.5 * rng.normal(size=(n, d))
    lower, upper = np.full((2, n, d), np.nan)
    at, j = np.arange(n), rng.integers(d, size=n)
    lower[at, j] = np.where(at % 3 == 0, np.nan, x[at, j] - 0.4)
    upper[at, j] = np.where(at % 3 == 1, np.nan, x[at, j] + 0.3)
    x[at, j] = np.nan
    if missing:
        x[rng.random((n, d)) < 0.2] = np.nan
    return x, lower, upper, j


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [False, True])
def test_densities_and_posteriors_of_one_limit_a_row_equal_the_reference(
    kind, form, missing, make_covariances
):
    rng = np.random.default_rng(1)
    n, d, k = 9, 4, 2
    x, lower, upper, j = one_limit_a_row(n, d, rng, missing)
    cov = make_covariances(kind, n, d, rng, np.float64)
    S = cov.to_full()
    population, (a, m, V) = make_population(form, k, d, rng)
    limits = (lower, upper)
    total = _core.measurement_log_density(population, core_view(x, cov), 1, limits)
    found = _core.true_value_posteriors(population, core_view(x, cov), False, limits=limits)
    joined = _core.true_value_posteriors(population, core_view(x, cov), True, limits=limits)
    r, b = found["responsibilities"], found["means"].reshape(n, k, d)
    B, whole = dense(found, d).reshape(n, k, d, d), dense(joined, d)
    for i in range(n):
        low, high = np.nan_to_num([lower[i, j[i]], -upper[i, j[i]]], nan=-np.inf) * [1, -1]
        of_row = limited_posterior(x[i], S[i], j[i], low, high, a, m, V)
        for got, expected in zip((total[i], r[i], b[i], B[i]), of_row, strict=True):
            assert got == pytest.approx(expected, rel=1e-9, abs=1e-10)
        mean = r[i] @ b[i]
        apart = b[i] - mean
        assert joined["means"][i] == pytest.approx(mean, abs=1e-10)
        spread = np.einsum("k,kij->ij", r[i], B[i] + apart[:, :, None] * apart[:, None])
        assert whole[i] == pytest.approx(spread, abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_plain_steps_of_one_limit_a_row_never_fall_and_the_first_is_that_of_the_moments(
    kind, form, make_covariances
):
    rng = np.random.default_rng(2)
    n, d, k = 15, 3, 2
    x, lower, upper, j = one_limit_a_row(n, d, rng)
    whole = 1.5 * rng.normal(size=(n, d))  # rows without limits beside them
    x, cov = np.vstack([x, whole]), make_covariances(kind, 2 * n, d, rng, np.float64)
    none = np.full((n, d), np.nan)
    limits = (np.vstack([lower, none]), np.vstack([upper, none]))
    population, (a, m, V) = make_population(form, k, d, rng)
    settings = {"accelerate": False, "limits": limits, "prior_weight": 0.0, "n_threads": 1}
    history = fit(core_view(x, cov), population, d, max_iterations=20, **settings)["history"]
    assert (np.diff(history) > 0).all()
    if form != "full":
        return
    S = cov.to_full()
    q, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for i in range(2 * n):
        if i < n:
            low, high = np.nan_to_num([lower[i, j[i]], -upper[i, j[i]]], nan=-np.inf) * [1, -1]
            _, r, b, B = limited_posterior(x[i], S[i], j[i], low, high, a, m, V)
        else:
            _, r, b, B = (
                each[0] for each in true_value_posterior(x[i : i + 1], S[i : i + 1], a, m, V)
            )
        q += r
        first += r[:, None] * b
        second += r[:, None, None] * (B + b[:, :, None] * b[:, None])
    step = fit(core_view(x, cov), population, d, max_iterations=2, **settings)["population"]
    means = first / q[:, None]
    assert step.weights == pytest.approx(q / q.sum(), rel=1e-10)
    assert step.means == pytest.approx(means, rel=1e-9, abs=1e-10)
    spread = second / q[:, None, None] - means[:, :, None] * means[:, None]
    assert step.matrices == pytest.approx(spread, rel=1e-9, abs=1e-9)


def on_a_grid(V, S, lower, upper, n=71):
    """Return log mass, mean and covariance of v ~ N(0, V) given limits of readings, by a grid."""
    d = len(V)
    axis = np.linspace(-7, 7, n)
    v = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    p = multivariate_normal.pdf(v, np.zeros(d), V)
    for j in range(d):
        sd = np.sqrt(S[j])
        p = p * (norm.cdf(upper[j], v[:, j], sd) - norm.cdf(lower[j], v[:, j], sd))
    mean = p @ v / p.sum()
    second = np.einsum("n,ni,nj->ij", p, v - mean, v - mean) / p.sum()
    return np.log(p.sum() * (axis[1] - axis[0]) ** d), mean, second


# Correlation, and what the approximation was seen to lack: of the log mass, of means in standard
# deviations, of standard deviations in themselves.
@pytest.mark.parametrize(
    ("correlation", "mass", "mean", "spread"),
    [(0.0, 1e-9, 1e-9, 1e-9), (0.5, 3e-3, 3e-3, 0.01), (0.9, 0.02, 0.02, 0.06)],
)
@pytest.mark.parametrize("d", [2, 3])
def test_several_limits_are_about_right(correlation, mass, mean, spread, d):
    V = np.full((d, d), correlation) + (1 - correlation) * np.eye(d)
    population = _core.Population("full", np.ones(1), np.zeros((1, d)), matrices=V[np.newaxis])
    S = np.array([0.3, 0.2, 0.4])[:d]
    for limits in (
        np.array([[-np.inf, -0.5], [-np.inf, -0.5], [-np.inf, 0.3]])[:d],
        np.array([[-0.3, 0.8], [0.2, np.inf], [-np.inf, 0.1]])[:d],
    ):
        expected = on_a_grid(V, S, *limits.T)
        lower, upper = (np.where(np.isinf(z), np.nan, z)[np.newaxis] for z in limits.T)
        data = core_view(np.full((1, d), np.nan), Covariances.diagonal(S[np.newaxis]))
        log_mass = _core.measurement_log_density(population, data, 1, (lower, upper))[0]
        found = _core.true_value_posteriors(population, data, True, limits=(lower, upper))
        sd, true_sd = np.sqrt(np.diag(dense(found, d)[0])), np.sqrt(np.diag(expected[2]))
        assert log_mass == pytest.approx(expected[0], abs=mass)
        assert (np.abs(found["means"][0] - expected[1]) / true_sd).max() < mean
        assert np.abs(sd / true_sd - 1).max() < spread


@pytest.mark.parametrize("correlation", [0.9, 1 - 1e-6, -0.3])
@pytest.mark.parametrize("far", [0.0, -3.0, -1e4])
def test_many_limits_have_finite_moments_that_errors_cannot_make_negative(correlation, far):
    rng = np.random.default_rng(0)
    d = 12
    V = np.full((d, d), correlation) + (1 - correlation) * np.eye(d)
    if correlation < 0:
        V = np.linalg.inv(np.eye(d) + 0.5 * np.ones((d, d)))
    population = _core.Population("full", np.ones(1), np.zeros((1, d)), matrices=V[np.newaxis])
    upper = far + rng.normal(size=(5, d))
    lower = np.where(rng.random((5, d)) < 0.3, upper - 10.0 ** rng.uniform(-9, 1, (5, d)), np.nan)
    data = core_view(np.full((5, d), np.nan), Covariances.isotropic(np.full(5, 1e-4), d))
    found = _core.true_value_posteriors(population, data, True, limits=(lower, upper))
    assert np.isfinite(found["means"]).all()
    assert np.linalg.eigvalsh(dense(found, d)).min() > -1e-15 * np.abs(dense(found, d)).max()
    densities = _core.measurement_log_density(population, data, 1, (lower, upper))
    assert np.isfinite(densities).all()


def test_threads_do_not_change_results():
    rng = np.random.default_rng(3)
    n, d, k = 400, 3, 2
    x, lower, upper, _ = one_limit_a_row(n, d, rng)
    x[::5] = np.where(np.isnan(x[::5]), 0.3, x[::5])
    lower[::5], upper[::5] = np.nan, np.nan
    data = core_view(x, Covariances.diagonal(rng.uniform(0.1, 1, (n, d))))
    population, _ = make_population("full", k, d, rng)
    for threads in (2, 5):
        one = fit(data, population, d, max_iterations=5, limits=(lower, upper), n_threads=1)
        many = fit(data, population, d, max_iterations=5, limits=(lower, upper), n_threads=threads)
        assert (one["history"] == many["history"]).all()
        for joined in (False, True):
            a, b = (
                _core.true_value_posteriors(
                    population, data, joined, limits=(lower, upper), n_threads=count
                )
                for count in (1, threads)
            )
            assert (a["means"] == b["means"]).all()
            assert (a["matrices"] == b["matrices"]).all()


def test_rows_without_limits_are_to_the_last_bit_what_they_were():
    rng = np.random.default_rng(4)
    x, S = rng.normal(size=(30, 3)), rng.uniform(0.1, 1, (30, 3))
    population, _ = make_population("full", 2, 3, rng)
    alone = _core.true_value_posteriors(population, core_view(x, Covariances.diagonal(S)), True)
    upper = np.full((31, 3), np.nan)
    upper[30, 1] = 0.2
    more = core_view(
        np.vstack([x, [0.1, np.nan, 0.3]]), Covariances.diagonal(np.vstack([S, S[:1]]))
    )
    beside = _core.true_value_posteriors(population, more, True, limits=(upper * np.nan, upper))
    for name in ("means", "matrices"):
        assert (beside[name].reshape(31, -1)[:30] == alone[name].reshape(30, -1)).all()


def test_the_core_refuses_limits_beside_values_and_crossed_ones():
    data = core_view(np.array([[0.0, np.nan]]), Covariances.zero(1, 2))
    none = np.full((1, 2), np.nan)
    population, _ = make_population("full", 1, 2, np.random.default_rng(0))
    for lower, upper, message in (
        (
            none,
            np.array([[1.0, np.nan]]),
            r"X_upper row 0, column 0 is 1; X has the value 0 there",
        ),
        (np.array([[np.nan, 2.0]]), np.array([[np.nan, 1.0]]), r"X_lower row 0, column 1 is 2"),
        (np.array([[np.nan, np.inf]]), none, r"X_lower row 0, column 1 is inf"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.measurement_log_density(population, data, 1, (lower, upper))


def test_a_component_whose_mass_underflows_leaves_the_others_as_they_are():
    means, matrices = np.array([[0.0], [1e149]]), np.array([[[1.0]], [[1e-20]]])
    population = _core.Population("full", np.full(2, 0.5), means, matrices=matrices)
    data = core_view(np.full((1, 1), np.nan), Covariances.zero(1, 1))
    limits = (np.full((1, 1), np.nan), np.zeros((1, 1)))
    log_density = _core.measurement_log_density(population, data, 1, limits)
    assert log_density == pytest.approx(np.log(0.25), rel=1e-14)
    found = _core.true_value_posteriors(population, data, True, limits=limits)
    assert found["means"][0, 0] == pytest.approx(-np.sqrt(2 / np.pi), rel=1e-13)
    assert found["matrices"][0, 0, 0] == pytest.approx(1 - 2 / np.pi, rel=1e-13)
