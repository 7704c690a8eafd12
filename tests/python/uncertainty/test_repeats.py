"""Errors from repeats against Bayes' rule by quadrature, least squares, and simulations."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import polygamma
from scipy.stats import chi2, kstest
from scipy.stats import t as student

from halosvm import Covariances, Gaussians
from halosvm.uncertainty import combined_readings, from_samples, pooled_errors
from halosvm.uncertainty.repeats import trigamma_inverse


def readings(n=3000, nu_0=6.0, scale=0.5, sizes=(1, 2, 3, 4), seed=0):
    """Return readings of n objects, which each is of, and the true values."""
    rng = np.random.default_rng(seed)
    truth = 5.0 * rng.normal(size=n)
    sd = scale * (np.ones(n) if np.isinf(nu_0) else np.sqrt(nu_0 / rng.chisquare(nu_0, n)))
    groups = np.repeat(np.arange(n), rng.choice(sizes, n))
    x = truth[groups] + sd[groups] * rng.normal(size=len(groups))
    return x[:, None], groups, truth


@pytest.mark.parametrize("y", [1e-9, 1e-3, 0.4, 1.0, 7.3, 400.0, 1e8])
def test_inverse_of_trigamma_inverts_it(y):
    assert trigamma_inverse(float(polygamma(1, y))) == pytest.approx(y, rel=1e-6)


def test_prior_of_variances_is_found_within_its_error():
    found = np.array(
        [pooled_errors(*readings(2000, seed=seed)[:2])[2:4] for seed in range(20)]
    ).reshape(20, 2)
    # Of the moments, that of nu_0 is trigamma(nu_0 / 2).
    of_moments = np.column_stack([polygamma(1, found[:, 0] / 2), np.log(found[:, 1])])
    for values, truth in zip(of_moments.T, (polygamma(1, 3.0), np.log(0.25)), strict=True):
        assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(20)


def test_moderated_variance_is_the_posterior_of_bayes_rule():
    # 1 / E[1 / sigma^2] by quadrature; under the prior, nu_0 s_0^2 / sigma^2 is chi^2.
    x, groups, _ = readings(200)
    found = pooled_errors(x, groups)
    nu_0, s_0 = found.prior_nu[0], found.prior_variance[0]
    for i in range(8):
        own = x[groups == i, 0]
        squares, half = np.sum((own - own.mean()) ** 2), (len(own) - 1) / 2

        def density(p, half=half, squares=squares):
            return chi2.pdf(nu_0 * s_0 * p, nu_0) * p**half * np.exp(-p * squares / 2)

        ends = (0, 60 / s_0)
        total = quad(density, *ends, epsabs=0, limit=200)[0]
        mean = quad(lambda p, f=density: p * f(p), *ends, epsabs=0, limit=200)[0] / total
        of_mean = found.X.covariances.variances()[i, 0]
        assert of_mean == pytest.approx(1 / mean / len(own), rel=1e-6)
        assert found.X.mean[i, 0] == pytest.approx(own.mean(), rel=1e-14)
        assert found.nu[i, 0] == pytest.approx(nu_0 + len(own) - 1)
        assert found.counts[i, 0] == len(own)


def test_prior_is_that_of_the_moments_of_log_variances():
    x, groups, _ = readings(50)
    found = pooled_errors(x, groups)
    e, trigammas = [], []
    for i in np.unique(groups):
        own = x[groups == i, 0]
        if len(own) > 1:
            half = (len(own) - 1) / 2
            e.append(np.log(own.var(ddof=1)) - polygamma(0, half) + np.log(half))
            trigammas.append(polygamma(1, half))
    excess = np.var(e, ddof=1) - np.mean(trigammas)
    half = found.prior_nu[0] / 2
    assert polygamma(1, half) == pytest.approx(excess, rel=1e-9)
    expected = np.exp(np.mean(e) + polygamma(0, half) - np.log(half))
    assert found.prior_variance[0] == pytest.approx(expected, rel=1e-9)


def test_errors_of_means_over_their_size_are_students_t():
    x, groups, truth = readings(20_000, nu_0=4.0)
    found = pooled_errors(x, groups)
    ratio = (found.X.mean[:, 0] - truth) / np.sqrt(found.X.covariances.variances()[:, 0])
    ranks = student.cdf(ratio, found.nu[:, 0])
    # Estimates of the prior move ranks by less than the test sees in so many objects.
    assert kstest(ranks, "uniform").pvalue > 1e-3
    of_single = ranks[found.counts[:, 0] == 1]
    assert kstest(of_single, "uniform").pvalue > 1e-3


def test_equal_errors_are_pooled_into_one_variance_and_are_normal():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 3)
    x = rng.normal(size=30)[groups] + 0.1 * rng.permutation(np.tile([-1.0, 0.0, 1.0], 30))
    x = np.sort(x.reshape(30, 3), axis=1)
    x = x.mean(axis=1, keepdims=True) + 0.1 * np.array([-1.0, 0.0, 1.0])  # no excess at all
    found = pooled_errors(x.reshape(-1, 1), groups)
    assert found.prior_nu[0] == np.inf
    assert np.isinf(found.nu).all()
    assert found.prior_variance[0] == pytest.approx(0.01)
    np.testing.assert_allclose(found.X.covariances.variances(), 0.01 / 3)


def test_objects_with_missing_readings_count_those_that_are_there():
    x, groups, _ = readings(60)
    both = np.column_stack([x[:, 0], 7.0 * x[:, 0]])
    both[groups == 5, 1] = np.nan
    rows = np.flatnonzero(groups == 7)
    both[rows[0], 1] = np.nan
    found = pooled_errors(both, groups)
    alone = pooled_errors(both[~np.isnan(both[:, 1]), 1:], groups[~np.isnan(both[:, 1])])
    there = np.isin(np.arange(60), alone.X.groups)
    assert not there[5]
    np.testing.assert_allclose(found.X.mean[there, 1], alone.X.mean[:, 0])
    np.testing.assert_allclose(
        found.X.covariances.variances()[there, 1], alone.X.covariances.variances()[:, 0]
    )
    assert np.isnan(found.X.mean[5, 1])
    assert np.isnan(found.nu[5, 1])
    assert found.counts[7].tolist() == [len(rows), len(rows) - 1]


def test_units_and_places_do_not_change_the_prior():
    x, groups, _ = readings(100)
    found, moved = pooled_errors(x, groups), pooled_errors(1e-9 * x + 1e-3, groups)
    assert moved.prior_nu[0] == pytest.approx(found.prior_nu[0], rel=1e-5)
    assert moved.prior_variance[0] == pytest.approx(1e-18 * found.prior_variance[0], rel=1e-5)


def test_equal_readings_count_as_a_small_part_of_the_median_and_are_told():
    x, groups, _ = readings(100, sizes=(2, 3))
    spreads = [np.var(x[groups == i], ddof=1) for i in range(1, 100)]
    rows = np.flatnonzero(groups == 0)
    x[rows] = 0.1
    with pytest.warns(UserWarning, match="1 of 100 objects have readings of column 0 that are all"):
        found = pooled_errors(x, groups)
    other = x.copy()  # whose variance is that part of the median
    other[rows[:2], 0] += np.sqrt(1e-5 * np.median(spreads) * (len(rows) - 1) / 2) * np.array(
        [1, -1]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = pooled_errors(other, groups)
    assert found.prior_nu[0] == pytest.approx(near.prior_nu[0], rel=1e-6)
    nu_0, nu = found.prior_nu[0], len(rows) - 1
    expected = nu_0 * found.prior_variance[0] / (nu_0 + nu) / len(rows)
    assert found.X.covariances.variances()[0, 0] == pytest.approx(expected)


def test_names_and_groups_are_those_of_the_readings():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"K": [1.0, 2.0, 4.0, 5.5, 3.0], "Na": [1.0, 1.5, 2.0, 2.5, np.nan]})
    X = pooled_errors(frame, ["b", "b", "a", "a", "b"]).X
    assert X.feature_names.tolist() == ["K", "Na"]
    assert X.groups.tolist() == ["a", "b"]
    assert X.labels_by_group({"a": 1, "b": 0}).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("x", "groups", "message"),
    [
        ([[1.0], [2.0], [3.0]], [0, 0, 1], r"1 object\(s\) have two or more readings of column 0"),
        ([[1.0], [2.0]], [0, 1], r"0 object\(s\) have two or more"),
        ([[1.0], [1.0], [3.0], [3.0]], [0, 0, 1, 1], "equal in column 0, so that they tell no err"),
        ([[1.0], [np.inf], [3.0], [3.0]], [0, 0, 1, 1], "row 1.*inf"),
        ([[1.0], [1.2]], [0], r"groups has shape \(1,\), X has 2 rows"),
        (Gaussians([[1.0], [1.2]], std=[[1.0], [1.0]]), [0, 0], "X has errors; combined_readings"),
    ],
)
def test_readings_that_tell_no_error_are_refused(x, groups, message):
    with pytest.raises(ValueError, match=message):
        pooled_errors(x, groups)


def test_samples_of_one_observation_name_the_way_for_them():
    with pytest.raises(ValueError, match=r"'a' has one observation.*pooled_errors"):
        from_samples([[1.0], [2.0], [3.0]], ["a", "b", "b"], of="mean")


# ---- readings with errors of their own ---------------------------------------------------------


def with_errors(kind, seed=0, n=25, d=3, missing=0.0):
    """Return readings with their errors, and which object each is of."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 5, n)))
    N = len(groups)
    units = np.array([1.0, 1e4, 1e-5])[:d]
    F = units[:, None] * rng.normal(size=(N, d, 2)) * 0.4
    own = (units * np.exp(rng.normal(size=(N, d)) - 1)) ** 2
    if kind == "isotropic":
        cov = Covariances.isotropic(np.exp(rng.normal(size=N)), d)
    elif kind == "diagonal":
        cov = Covariances.diagonal(own)
    elif kind == "low_rank":
        cov = Covariances.low_rank(F, own)
    else:
        cov = Covariances.full(F @ F.transpose(0, 2, 1) + own[:, :, None] * np.eye(d))
    S = cov.to_full()
    L = np.linalg.cholesky(S)
    x = (units * rng.normal(size=(n, d)) * 10)[groups]
    x = x + np.einsum("nij,nj->ni", L, rng.normal(size=(N, d)))
    x[rng.random(x.shape) < missing] = np.nan
    return x, S, cov, groups


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "low_rank", "full"])
def test_combined_readings_are_generalised_least_squares(kind, missing):
    x, S, cov, groups = with_errors(kind, missing=missing)
    found = combined_readings(Gaussians(x, cov=cov), groups)
    total = 0.0
    for i in range(25):
        rows = np.flatnonzero(groups == i)
        A, b = [], []  # readings, whitened
        for r in rows:
            there = ~np.isnan(x[r])
            L = np.linalg.cholesky(S[r][np.ix_(there, there)])
            A.append(np.linalg.solve(L, np.eye(3)[there]))
            b.append(np.linalg.solve(L, x[r][there]))
        A, b = np.concatenate(A), np.concatenate(b)
        read = A.any(axis=0)
        unit = np.linalg.norm(A[:, read], axis=0)
        mean, *_ = np.linalg.lstsq(A[:, read] / unit, b)
        np.testing.assert_allclose(found.X.mean[i, read], mean / unit, rtol=1e-9)
        spread = np.linalg.inv((A[:, read] / unit).T @ (A[:, read] / unit)) / np.outer(unit, unit)
        ours = found.X.covariances.to_full()[i][np.ix_(read, read)]
        scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
        np.testing.assert_allclose(ours / scale, spread / scale, atol=1e-10)
        squares = np.sum((b - (A[:, read] / unit) @ mean) ** 2)
        assert found.chi2[i] == pytest.approx(squares, rel=1e-8, abs=1e-10)
        degrees = len(b) - read.sum()
        assert found.degrees[i] == degrees
        if degrees:
            assert found.p_value[i] == pytest.approx(chi2.sf(squares, degrees), rel=1e-6)
        else:
            assert np.isnan(found.p_value[i])
        assert np.isnan(found.X.mean[i, ~read]).all()
        total += squares
    assert found.total[0] == pytest.approx(total)
    assert found.total[1] == found.degrees.sum()
    assert found.total[2] == pytest.approx(chi2.sf(total, found.degrees.sum()))


def test_p_values_are_uniform_where_errors_are_right_and_small_where_they_are_not():
    x, _, cov, groups = with_errors("full", n=3000)
    found = combined_readings(x, groups, X_cov=cov)
    assert kstest(found.p_value[found.degrees > 0], "uniform").pvalue > 1e-3
    assert 1e-3 < found.total[2] < 1 - 1e-3
    told_small = combined_readings(x, groups, X_cov=cov.scaled(np.full(3, 0.9)))
    assert told_small.total[2] < 1e-6


def test_deviations_keep_their_digits_far_from_0():
    x = np.array([[1e9 + 1.0], [1e9 + 3.0]])
    found = combined_readings(x, [0, 0], X_std=[1.0, 1.0])
    assert found.chi2[0] == 2.0
    assert found.X.mean[0, 0] == 1e9 + 2


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ({"X_std": [[1.0, 0.0], [1.0, 1.0]]}, "row 0, column 1 is 0; readings are weighted"),
        ({}, "row 0, column 0 is 0"),
        ({"X_cov": np.ones((2, 2, 2))}, "covariance of row 0 is singular"),
        ({"X_std": [[1.0, -1.0], [1.0, 1.0]]}, "X_std row 0, column 1"),
    ],
)
def test_errors_that_weigh_nothing_are_refused(errors, message):
    with pytest.raises(ValueError, match=message):
        combined_readings([[1.0, 2.0], [3.0, 4.0]], [0, 0], **errors)
