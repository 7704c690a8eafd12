"""Fits of populations: where they stop, what weights mean, what keeps them regular; warnings."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from halosvm import EmpiricalBayes, Gaussians


def two_groups(n, rng, d=2):
    z = rng.random(n) < 0.35
    return np.where(z[:, np.newaxis], 2.0, -1.5) + rng.normal(size=(n, d))


def measured(seed):
    """Return a random case: measurements, their errors, and a number of components."""
    rng = np.random.default_rng([1, seed])
    n, d, groups = int(np.exp(rng.uniform(3.4, 6.4))), int(rng.integers(1, 5)), rng.integers(1, 4)
    half = rng.normal(size=(groups, d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
    z = rng.integers(groups, size=n)
    v = 2 * rng.normal(size=(groups, d))[z] + np.einsum(
        "nij,nj->ni", half[z], rng.normal(size=(n, d))
    )
    errors = np.exp(rng.uniform(np.log(0.3), np.log(3))) * np.exp(0.4 * rng.normal(size=(n, d)))
    x = v + errors * rng.normal(size=(n, d))
    if seed % 2:
        x[rng.random((n, d)) < 0.2] = np.nan
    return x, errors, int(groups + rng.integers(2))


def log_likelihood(x, errors, weights, means, covariances):
    """Sum the log densities of the values that are there, by scipy."""
    total = 0.0
    for row, error in zip(x, errors, strict=True):
        o = np.flatnonzero(~np.isnan(row))
        if not len(o):
            continue
        of_each = [
            np.log(a) + multivariate_normal.logpdf(row[o], m[o], (V + np.diag(error**2))[o][:, o])
            for a, m, V in zip(weights, means, covariances, strict=True)
            if a > 0
        ]
        total += np.logaddexp.reduce(of_each)
    return total


UNITS = ([1.0, 1.0, 1.0, 1.0, 1.0], [1e-12, 1.0, 1e12, 1e-6, 1e6])


@pytest.mark.parametrize("n", [3, 200, 200_000])
@pytest.mark.parametrize(("unit", "offset"), [(UNITS[0], 0.0), (UNITS[1], 0.0), (UNITS[0], 1e8)])
def test_dependent_columns_have_the_moments_of_the_data(n, unit, offset):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n))
    X = np.column_stack([a, b, a + b, np.full(n, 3.0), a]) * unit + offset
    eb = EmpiricalBayes().fit(X)
    varying = [0, 1, 2, 4]
    spread = np.array(unit)[varying]
    expected = np.cov(X[:, varying] / spread, rowvar=False, ddof=0)
    found = eb.covariances_[0][varying][:, varying] / np.outer(spread, spread)
    # The prior holds 1e-6 examples, or 1e-9 of all, of the variance of each feature.
    held = 5 * max(1e-6 / n, 1e-9) * expected.max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=held + 1e-15 * offset)
    np.testing.assert_allclose(eb.means_[0], X.mean(axis=0), rtol=1e-6)
    assert np.linalg.eigvalsh(found)[0] > 0
    hidden = X[:1].copy()
    hidden[0, 2] = np.nan
    # Two columns tell the third, but for what the regularisation leaves open.
    told = eb.transform(hidden).mean[0, 2]
    np.testing.assert_allclose(told, X[0, 2], rtol=0, atol=1e-5 * unit[2])


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_mixtures_of_dependent_columns_have_a_fit(covariance, offset):
    rng = np.random.default_rng(0)
    X = two_groups(3000, rng)
    X = np.column_stack([X, X.sum(axis=1), np.full(len(X), 7.0), X[:, 0]]) + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        eb = EmpiricalBayes(2, covariance=covariance, random_state=0, max_iter=200).fit(X)
    assert (np.diff(eb.log_likelihood_) > 0).all()
    np.testing.assert_allclose(np.sort(eb.weights_), [0.35, 0.65], atol=0.05)


def test_regularisation_has_a_floor_and_none_if_it_is_told():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 1)) @ np.ones((1, 2))
    eb = EmpiricalBayes(reg_covar=1e-300).fit(X)
    least = np.linalg.eigvalsh(eb.covariances_[0])[0]
    np.testing.assert_allclose(least, 1e-9 * X[:, 0].var(), rtol=1e-3)
    with pytest.raises(ValueError, match="reg_covar is too small: component 0"):
        EmpiricalBayes(reg_covar=0).fit(X)


@pytest.mark.parametrize("seed", [12, 58])
def test_components_without_members_have_weight_0_and_the_shape_of_the_largest(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 150)), int(rng.integers(1, 4))
    x, errors = rng.normal(size=(n, d)), np.exp(rng.uniform(-1, 1) + 0.5 * rng.normal(size=(n, d)))
    x += errors * rng.normal(size=(n, d))
    if seed % 2:
        x[rng.random(x.shape) < 0.3] = np.nan
    for k in (4, 8):
        for tol in (1e-5, 1e-8):
            eb = EmpiricalBayes(k, random_state=0, tol=tol, max_iter=1500).fit(x, X_std=errors)
            assert eb.covariances_.variances().max() < 20 * np.nanvar(x)
            assert np.abs(eb.means_).max() < 2 * np.nanmax(np.abs(x))
    far = np.where(np.arange(3)[:, np.newaxis] == 2, 1e4, np.arange(3)[:, np.newaxis] * np.ones(d))
    start = (np.array([0.5, 0.5, 1e-3]), far, np.stack([np.eye(d)] * 3))
    eb = EmpiricalBayes(3, init=start).fit(x, X_std=errors)
    largest = eb.weights_.argmax()
    assert eb.weights_[2] == 0
    np.testing.assert_array_equal(eb.means_[2], eb.means_[largest])
    np.testing.assert_array_equal(eb.covariances_[2], eb.covariances_[largest])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("nan", r"column 1 \(colour\) has no value: nothing is known"),
        ("infinite errors", r"column 1 \(colour\) has no value: nothing is known"),
        ("weight 0", r"column 1 \(colour\) has no value: nothing is known"),
        ("one value", r"column 1 \(colour\) has one value: it does not tell"),
        ("large errors", r"column 1 \(colour\) has values that differ far less than their errors"),
    ],
)
def test_columns_that_tell_nothing_are_named(case, message):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    X, errors, weights = two_groups(50, rng, 3), np.full((50, 3), 0.5), np.ones(50)
    if case == "nan":
        X[:, 1] = np.nan
    elif case == "infinite errors":
        errors[:, 1] = np.inf
    elif case == "weight 0":
        X[10:, 1], weights[:10] = np.nan, 0
    elif case == "one value":
        X[1:, 1] = np.nan
    else:
        errors[:, 1] = 500.0
    frame = pd.DataFrame(X, columns=["flux", "colour", "size"])
    eb = EmpiricalBayes(2, random_state=0)
    with pytest.warns(UserWarning, match=f"^X: {message}"):
        posterior = eb.fit(frame, X_std=errors, sample_weight=weights).transform(
            frame[:2], X_std=errors[:2]
        )
    if "no value" in message:  # as the docs say: N(0, 1), independent of the others
        np.testing.assert_allclose(eb.means_[:, 1], 0.0, atol=1e-12)
        for V in eb.covariances_.to_full():
            np.testing.assert_allclose(V[1], [0.0, 1.0, 0.0], atol=1e-12)
    if case == "nan":
        np.testing.assert_allclose(posterior.mean[:, 1], 0.0, atol=1e-12)


def test_errors_that_are_right_are_not_warned_of():
    rng = np.random.default_rng(3)
    for n in (2, 5, 50, 5000):
        errors = 100 * np.exp(rng.normal(size=(n, 4)))
        EmpiricalBayes(tol=1e-3).fit(errors * rng.normal(size=(n, 4)), X_std=errors)


@pytest.mark.parametrize("scale", [1 / 300, 1e-200, 123.4])
def test_scale_of_weights_that_are_no_counts_does_not_matter(scale):
    rng = np.random.default_rng(4)
    X = two_groups(300, rng)
    uneven = rng.uniform(0.5, 1.5, 300)
    for weights in (np.ones(300), uneven):
        plain = EmpiricalBayes("bic", random_state=0).fit(X, sample_weight=weights)
        other = EmpiricalBayes("bic", random_state=0).fit(X, sample_weight=weights * scale)
        assert plain.n_components_ == other.n_components_ == 2
        assert abs(plain.n_iter_ - other.n_iter_) <= 2
        np.testing.assert_allclose(other.means_, plain.means_, atol=1e-4)


def test_whole_weights_equal_repetitions_for_criterion_prior_and_stop():
    rng = np.random.default_rng(5)
    X = two_groups(300, rng)
    errors = rng.uniform(0.2, 0.6, X.shape)
    counts = rng.integers(0, 4, 300)
    rows = np.repeat(np.arange(300), counts)
    one = EmpiricalBayes(reg_covar=10.0).fit(X, X_std=errors, sample_weight=counts)
    other = EmpiricalBayes(reg_covar=10.0).fit(X[rows], X_std=errors[rows])
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_allclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-10)
    np.testing.assert_allclose(one.covariances_[0], other.covariances_[0], rtol=1e-8)
    one = EmpiricalBayes("bic", random_state=0).fit(X, X_std=errors, sample_weight=counts)
    other = EmpiricalBayes("bic", random_state=0).fit(X[rows], X_std=errors[rows])
    assert one.n_components_ == other.n_components_ == 2
    np.testing.assert_allclose(one.log_likelihood_[-1], other.log_likelihood_[-1], atol=0.01)


def test_converged_fits_are_within_tol_of_their_limit():
    short = []
    for seed in range(40):
        x, errors, k = measured(seed)
        eb = EmpiricalBayes(k, random_state=0).fit(x, X_std=errors)
        assert eb.converged_, seed
        start = (eb.weights_, eb.means_, eb.covariances_)
        limit = EmpiricalBayes(k, init=start, tol=1e-13, max_iter=20_000).fit(x, X_std=errors)
        short.append(limit.log_likelihood_[-1] - eb.log_likelihood_[-1] > 1e-5 * len(x))
    assert np.mean(short) <= 0.05


@pytest.mark.parametrize("covariance", ["full", "diagonal", "factors"])
def test_no_small_change_of_a_fit_is_more_likely(covariance):
    rng = np.random.default_rng(6)
    x, errors = two_groups(60, rng, 3), rng.uniform(0.3, 1.0, (60, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    n_factors = 1 if covariance == "factors" else None
    eb = EmpiricalBayes(
        2,
        covariance=covariance,
        n_factors=n_factors,
        reg_covar=0,
        tol=1e-10,
        max_iter=5000,
        random_state=0,
    ).fit(x, X_std=errors)
    a, m, V = eb.weights_, eb.means_, eb.covariances_.to_full()
    best = log_likelihood(x, errors, a, m, V)
    np.testing.assert_allclose(eb.log_likelihood_[-1], best, rtol=1e-10)
    for _ in range(20):
        shift, turn = 0.01 * rng.normal(size=(2, 3)), 0.01 * rng.normal(size=(2, 3, 3))
        b = a * np.exp(0.01 * rng.normal(size=2))
        if covariance != "full":  # these keep the form of the covariances
            turn = turn * np.eye(3)
        near = [(np.eye(3) + t) @ each @ (np.eye(3) + t).T for t, each in zip(turn, V, strict=True)]
        assert log_likelihood(x, errors, b / b.sum(), m + shift, near) < best + 1e-8


def test_tol_is_a_gain_of_each_row():
    x, errors, k = measured(3)
    options = {"n_components": k, "random_state": 0, "reg_covar": 0, "tol": 1e-6}
    one = EmpiricalBayes(**options).fit(x, X_std=errors)
    many = EmpiricalBayes(**options).fit(x, X_std=errors, sample_weight=np.full(len(x), 1000))
    assert one.n_iter_ / 2 < many.n_iter_ < 2 * one.n_iter_
    of_row = one.log_likelihood_[-1] / len(x), many.log_likelihood_[-1] / (1000 * len(x))
    np.testing.assert_allclose(*of_row, rtol=0, atol=2e-6)


def test_gaussians_without_names_are_told_by_the_number_of_the_column():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    errors = Gaussians(X, std=np.full(X.shape, [0.1, 1e6]))
    with pytest.warns(UserWarning, match="^X: column 1 has values that differ far less"):
        EmpiricalBayes().fit(errors)
