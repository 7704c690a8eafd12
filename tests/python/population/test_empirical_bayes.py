"""EmpiricalBayes: populations and posteriors against closed forms and scikit-learn; bad input."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import each, in_pairs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture

from halosvm import Covariances, EmpiricalBayes, GaussianMixtures, Gaussians
from halosvm.reference import true_value_posterior


def mixture_data(n=500, d=3, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random(n) < 0.35
    return np.where(z[:, None], 2.0, -1.5) + rng.normal(size=(n, d)) * np.where(
        z[:, None], 0.6, 1.0
    )


@pytest.mark.parametrize(("covariance", "of_sklearn"), [("full", "full"), ("diagonal", "diag")])
def test_without_errors_it_is_the_gaussian_mixture_of_scikit_learn(covariance, of_sklearn):
    X = mixture_data()
    weights, means = np.full(2, 0.5), np.array([[1.0, 1, 1], [-1, -1, 0]])
    V = np.stack([np.eye(3)] * 2)
    ours = EmpiricalBayes(
        2, output="gaussian", covariance=covariance, init=(weights, means, V), reg_covar=0, tol=1e-9
    ).fit(X)
    precisions = V if of_sklearn == "full" else np.ones((2, 3))
    theirs = GaussianMixture(
        2,
        covariance_type=of_sklearn,
        weights_init=weights,
        means_init=means,
        precisions_init=precisions,
        reg_covar=0,
        tol=1e-13,
        max_iter=10000,
    ).fit(X)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=1e-6)
    own = ours.covariances_.to_full() if covariance == "full" else ours.covariances_.values
    np.testing.assert_allclose(own, theirs.covariances_, atol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    np.testing.assert_allclose(ours.bic(X), theirs.bic(X), atol=1e-4)
    posterior = ours.transform(X)
    assert posterior.covariances.kind == "zero"
    np.testing.assert_array_equal(posterior.mean, X)


def test_missing_values_of_one_component_have_the_conditional_moments():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + 3
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = np.nan
    eb = EmpiricalBayes().fit(X)
    m, V = eb.means_[0], eb.covariances_[0]
    posterior = eb.transform(X)
    for i, row in enumerate(X):
        o, u = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        gain = np.linalg.solve(V[np.ix_(o, o)], V[np.ix_(o, u)]).T
        mean, cov = posterior[i]
        np.testing.assert_array_equal(mean[o], row[o])
        np.testing.assert_allclose(mean[u], m[u] + gain @ (row[o] - m[o]), rtol=1e-9, atol=1e-9)
        expected = V[np.ix_(u, u)] - gain @ V[np.ix_(o, u)]
        np.testing.assert_allclose(cov[np.ix_(u, u)], expected, rtol=1e-9, atol=1e-9)
        assert not cov[o].any()
    np.testing.assert_array_equal(posterior.mean[0], m)
    np.testing.assert_array_equal(posterior.covariances[0], V)


def test_parameters_of_a_mixture_behind_noise_are_recovered():
    rng = np.random.default_rng(2)
    n, d = 20_000, 2
    z = (rng.random(n) < 0.3).astype(int)
    m = np.array([[0.0, 0.0], [4.0, -1.0]])
    V = np.array([[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 2.0]]])
    v = m[z] + np.einsum("nij,nj->ni", np.linalg.cholesky(V)[z], rng.normal(size=(n, d)))
    std = np.exp(0.6 * rng.normal(size=(n, d)))
    x = v + std * rng.normal(size=(n, d))
    eb = EmpiricalBayes(2, random_state=0).fit(x, X_std=std)
    order = np.argsort(eb.means_[:, 0])
    # Standard errors from the scatter of fits of ten parts of the data.
    parts = []
    start = (eb.weights_, eb.means_, eb.covariances_)
    for part in np.array_split(np.arange(n), 10):
        one = EmpiricalBayes(2, init=start).fit(x[part], X_std=std[part])
        parts.append(
            np.r_[
                one.weights_[order],
                one.means_[order].ravel(),
                one.covariances_.to_full()[order].ravel(),
            ]
        )
    error = np.std(parts, axis=0, ddof=1) / np.sqrt(10)
    found = np.r_[
        eb.weights_[order], eb.means_[order].ravel(), eb.covariances_.to_full()[order].ravel()
    ]
    truth = np.r_[0.7, 0.3, m.ravel(), V.ravel()]
    assert (np.abs(found - truth) < 4.5 * error).all(), (found - truth) / error
    # Posterior means are nearer to the true values than the measurements, and honest about it.
    posterior = eb.transform(x, X_std=std)
    apart = posterior.mean - v
    assert np.mean(apart**2) < 0.6 * np.mean((x - v) ** 2)
    distance = np.einsum(
        "ni,nij,nj->n", apart, np.linalg.inv(posterior.covariances.to_full()), apart
    )
    assert abs(distance.mean() / d - 1) < 0.05


@pytest.mark.parametrize(
    ("covariance", "k", "errors", "output", "expected"),
    [
        ("full", 1, None, "gaussian", "zero"),
        ("diagonal", 1, "std", "gaussian", "diagonal"),
        ("diagonal", 3, "std", "mixture", "diagonal"),
        ("diagonal", 2, "std", "gaussian", "low_rank"),
        ("factors", 1, "std", "gaussian", "low_rank"),
        ("full", 1, "std", "gaussian", "full"),
        ("diagonal", 1, "full", "gaussian", "full"),
    ],
)
def test_posteriors_are_of_the_smallest_exact_kind(covariance, k, errors, output, expected):
    X = mixture_data(60, 5)
    keywords = {}
    if errors == "std":
        keywords["X_std"] = np.full(X.shape, 0.5)
    if errors == "full":
        keywords["X_cov"] = np.broadcast_to(0.3 * np.eye(5) + 0.1, (60, 5, 5))
    n_factors = 2 if covariance == "factors" else None
    eb = EmpiricalBayes(
        k, covariance=covariance, n_factors=n_factors, output=output, random_state=0, tol=1.0
    )
    found = eb.fit_transform(X, **keywords)
    if output == "mixture":
        assert type(found) is GaussianMixtures
        found = found.components
    assert found.covariances.kind == expected
    dense = Gaussians(X, std=keywords["X_std"]).covariances if errors == "std" else None
    if dense is None:
        return
    parts = true_value_posterior(
        X, dense.to_full(), eb.weights_, eb.means_, eb.covariances_.to_full()
    )
    mean = np.einsum("nk,nkd->nd", parts[1], parts[2])
    eb.set_params(output="mean")
    np.testing.assert_allclose(eb.transform(X, **keywords), mean, atol=1e-10)


def test_likelihood_grows_and_weights_equal_repetitions():
    X = mixture_data(80, 2)
    std = np.random.default_rng(3).uniform(0.1, 0.5, X.shape)
    counts = np.random.default_rng(4).integers(0, 3, 80)
    start = (np.full(2, 0.5), np.array([[1.0, 1.0], [-1.0, -1.0]]), np.stack([np.eye(2)] * 2))
    options = {"init": start, "reg_covar": 0.0, "tol": 1e-8}
    one = EmpiricalBayes(2, **options).fit(X, X_std=std, sample_weight=counts)
    rows = np.repeat(np.arange(80), counts)
    other = EmpiricalBayes(2, **options).fit(X[rows], X_std=std[rows])
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-5)
    assert (np.diff(one.log_likelihood_) > 0).all()
    assert one.converged_
    assert one.n_iter_ >= len(one.log_likelihood_)
    np.testing.assert_allclose(
        other.log_likelihood_[-1], len(rows) * other.score(X[rows], X_std=std[rows]), rtol=1e-12
    )


def test_infinite_errors_masked_entries_and_nan_are_missing_alike():
    X = mixture_data(60, 3)
    std = np.random.default_rng(5).uniform(0.2, 1, X.shape)
    gone = np.random.default_rng(6).random(X.shape) < 0.2
    with_nan = np.where(gone, np.nan, X)
    expected = EmpiricalBayes().fit(with_nan, X_std=std)
    for values, errors in (
        (X, np.where(gone, np.inf, std)),
        (np.ma.array(X, mask=gone), std),
        (with_nan, np.where(gone, np.nan, std)),
    ):
        other = EmpiricalBayes().fit(values, X_std=errors)
        np.testing.assert_array_equal(other.means_, expected.means_)
        a, b = expected.transform(with_nan, X_std=std), expected.transform(values, X_std=errors)
        np.testing.assert_array_equal(a.mean, b.mean)
    S = np.einsum("nj,jk->njk", std**2, np.eye(3))
    S[gone] = np.nan
    S.transpose(0, 2, 1)[gone] = np.nan
    full = EmpiricalBayes().fit(with_nan, X_cov=S)
    np.testing.assert_allclose(full.means_, expected.means_, rtol=1e-8)


def test_errors_of_values_that_are_there_must_be_numbers():
    X, std = mixture_data(5, 2), np.ones((5, 2))
    std[3, 1] = np.nan
    with pytest.raises(ValueError, match="X_std: row 3, column 1 is nan, but X has a value there"):
        EmpiricalBayes().fit(X, X_std=std)
    std[3, 1] = -1
    with pytest.raises(ValueError, match="X_std row 3, column 1 is -1"):
        EmpiricalBayes().fit(X, X_std=std)


@pytest.mark.parametrize("value", [1.1e75, -1e80, 1e149])
def test_values_whose_squares_overflow_are_refused_where_they_count(value):
    X = mixture_data(12, 2)
    X[3, 1] = value
    message = re.escape(f"X: row 3, column 1 is {value:g}; values whose square is beyond 1e+150")
    with pytest.raises(ValueError, match=message):
        EmpiricalBayes().fit(X, X_std=np.full(X.shape, 0.1))
    weights = (np.arange(12) != 3).astype(float)
    left_out = EmpiricalBayes().fit(X, X_std=np.full(X.shape, 0.1), sample_weight=weights)
    rest = EmpiricalBayes().fit(np.delete(X, 3, 0), X_std=np.full((11, 2), 0.1))
    np.testing.assert_allclose(left_out.means_, rest.means_, rtol=1e-8)


@in_pairs
@each("covariance", ["full", "diagonal", "factors"])
@each(
    "case",
    [
        "nan in every column",
        "one row",
        "wide",
        "equal rows",
        "empty column",
        "no row complete",
        "constant column",
        "nothing measured",
        "one value",
        "copies",
    ],
)
@each("noisy", [False, True])
@each("k", [1, 3])
def test_degenerate_data_give_a_result_or_one_clear_error(covariance, case, noisy, k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4)) + 5
    if case == "nan in every column":
        X[np.arange(4), np.arange(4)] = np.nan
    elif case == "one row":
        X = X[:1]
    elif case == "wide":
        X = rng.normal(size=(6, 20))
    elif case == "equal rows":
        X[:] = X[0]
    elif case == "empty column":
        X[:, 2] = np.nan
    elif case == "no row complete":
        X[np.arange(12), np.arange(12) % 4] = np.nan
    elif case == "constant column":
        X[:, 1] = 7.0
    elif case == "nothing measured":
        X[:] = np.nan
    elif case == "one value":
        X[:] = np.nan
        X[2, 1] = 4.0
    elif case == "copies":
        X[:, 3] = X[:, 0]
    keywords = {"X_std": np.full(X.shape, 0.3)} if noisy else {}
    eb = EmpiricalBayes(k, covariance=covariance, output="gaussian", random_state=0, max_iter=200)
    if case == "one row" and k == 3:
        with pytest.raises(ValueError, match="n_components is 3, X has 1 rows"):
            eb.fit(X, **keywords)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        posterior = eb.fit_transform(X, **keywords)
    assert np.isfinite(eb.means_).all()
    assert np.isfinite(eb.covariances_.to_full()).all()
    assert np.isfinite(eb.log_likelihood_).all()
    assert (np.diff(eb.log_likelihood_) >= 0).all()
    assert np.isfinite(posterior.mean).all()
    Gaussians(posterior.mean, cov=posterior.covariances)
    Covariances.full(posterior.covariances.to_full())  # positive semi-definite, or this raises
    if not noisy:
        there = ~np.isnan(X)
        np.testing.assert_array_equal(posterior.mean[there], X[there])


def test_a_component_that_dies_keeps_its_place_with_weight_zero():
    X = mixture_data(100, 2)
    start = (
        np.array([0.5, 0.5, 1e-3]),
        np.array([[2.0, 2.0], [-1.5, -1.5], [1e4, 1e4]]),
        np.stack([np.eye(2)] * 3),
    )
    eb = EmpiricalBayes(3, init=start).fit(X, X_std=np.full(X.shape, 0.1))
    assert eb.weights_[2] == 0
    assert np.isfinite(eb.means_).all()
    posterior = eb.transform(X, X_std=np.full(X.shape, 0.1))
    assert np.isfinite(posterior.mean).all()
    assert np.isfinite(posterior.covariances.to_full()).all()
    eb.set_params(output="mixture").transform(X, X_std=0)
    assert len(eb.sample(10)[0]) == 10


def test_singular_population_without_prior_is_one_clear_error():
    X = mixture_data(30, 2)
    X[:, 1] = X[:, 0]
    with pytest.raises(ValueError, match=r"reg_covar is too small: component 0 .* row \d+"):
        EmpiricalBayes(reg_covar=0).fit(X)
    eb = EmpiricalBayes().fit(X)  # the default keeps it regular
    np.testing.assert_allclose(eb.transform([[1.0, np.nan]]).mean[0], [1, 1], atol=1e-3)


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e6, 1e12])
def test_noise_of_any_size_gives_finite_populations(size):
    rng = np.random.default_rng(8)
    v = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3))
    std = size * np.exp(0.5 * rng.normal(size=v.shape))
    x = v + std * rng.normal(size=v.shape)
    for covariance in ("full", "diagonal", "factors"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            eb = EmpiricalBayes(
                covariance=covariance,
                n_factors=1 if covariance == "factors" else None,
                max_iter=300,
            )
            posterior = eb.fit_transform(x, X_std=std)
        assert np.isfinite(posterior.covariances.to_full()).all()
        assert (np.diff(eb.log_likelihood_) >= 0).all()
        if size < 1e-3:
            np.testing.assert_allclose(posterior.mean, x, atol=20 * size)
            variance = posterior.covariances.variances()
            np.testing.assert_allclose(variance, std**2, rtol=1e-3 + size)
    # Half of the rows as good as exact: those alone decide, however bad the others are.
    std[:40] = 1e-12
    x[:40] = v[:40]
    eb = EmpiricalBayes().fit(x, X_std=std)
    if size > 1e3:
        expected = np.cov(v[:40].T, ddof=0)
        np.testing.assert_allclose(eb.covariances_[0], expected, rtol=1e-3, atol=1e-3)


def test_units_of_features_do_not_matter():
    X = mixture_data(200, 3)
    std = np.random.default_rng(9).uniform(0.2, 2, X.shape)
    unit = np.array([1e-8, 1.0, 1e9])
    one = EmpiricalBayes(2, random_state=0).fit(X, X_std=std)
    other = EmpiricalBayes(2, random_state=0).fit(X * unit, X_std=std * unit)
    np.testing.assert_allclose(other.means_ / unit, one.means_, rtol=1e-6)
    np.testing.assert_allclose(
        other.transform(X * unit, X_std=std * unit).mean / unit,
        one.transform(X, X_std=std).mean,
        rtol=1e-6,
    )


def test_criterion_finds_the_number_of_components():
    X = mixture_data(600, 2)
    std = np.full(X.shape, 0.3)
    eb = EmpiricalBayes("bic", random_state=0).fit(X, X_std=std)
    assert eb.n_components_ == 2
    assert eb.bic(X, X_std=std) < EmpiricalBayes(1).fit(X, X_std=std).bic(X, X_std=std)
    assert (
        EmpiricalBayes("bic", random_state=0)
        .fit(np.random.default_rng(0).normal(size=(300, 2)))
        .n_components_
        == 1
    )


def test_more_starts_never_give_less():
    X = mixture_data(200, 2)
    one = EmpiricalBayes(4, init="random", tol=0.1, random_state=0).fit(
        X, X_std=np.full(X.shape, 0.3)
    )
    ten = EmpiricalBayes(4, init="random", n_init=5, tol=0.1, random_state=0).fit(
        X, X_std=np.full(X.shape, 0.3)
    )
    assert ten.log_likelihood_[-1] >= one.log_likelihood_[-1]


def test_samples_have_the_moments_of_the_population():
    X = mixture_data(300, 2)
    eb = EmpiricalBayes(2, random_state=0).fit(X)
    draws, component = eb.sample(50_000)
    np.testing.assert_allclose(np.bincount(component) / 50_000, eb.weights_, atol=0.01)
    np.testing.assert_allclose(draws.mean(axis=0), X.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(X.T), atol=0.1)


def test_clone_pickle_and_frames():
    X = mixture_data(50, 2)
    frame = pd.DataFrame(X, columns=["flux", "colour"])
    errors = pd.DataFrame(np.full(X.shape, 0.4), columns=["flux_err", "colour_err"])
    eb = EmpiricalBayes(2, covariance="factors", n_factors=1, random_state=0)
    assert not hasattr(clone(eb.fit(frame, X_std=errors)), "means_")
    assert eb.get_feature_names_out().tolist() == ["flux", "colour"]
    posterior = eb.transform(frame, X_std=errors)
    assert posterior.feature_names.tolist() == ["flux", "colour"]
    again = pickle.loads(pickle.dumps(eb)).transform(frame, X_std=errors)
    np.testing.assert_array_equal(again.mean, posterior.mean)
    means = (
        eb.set_params(output="mean").set_output(transform="pandas").transform(frame, X_std=errors)
    )
    assert means.columns.tolist() == ["flux", "colour"]
    np.testing.assert_array_equal(means.to_numpy(), posterior.mean)
    with pytest.raises(ValueError, match="feature names"):
        eb.transform(frame[["colour", "flux"]], X_std=errors)
    # Errors are paired by the names of their columns.
    swapped = frame[["colour", "flux"]].abs()
    means = eb.fit(frame, X_std=swapped).means_
    np.testing.assert_array_equal(means, eb.fit(frame, X_std=swapped[["flux", "colour"]]).means_)
    with pytest.raises(ValueError, match="X_std has"):
        eb.fit(frame, X_std=swapped.rename(columns={"flux": "other"}))


def test_gaussians_equal_arrays_with_errors():
    X = mixture_data(50, 2)
    std = np.random.default_rng(0).uniform(0.1, 1, X.shape)
    eb = EmpiricalBayes().fit(Gaussians(X, std=std))
    np.testing.assert_array_equal(eb.means_, EmpiricalBayes().fit(X, X_std=std).means_)
    with pytest.raises(ValueError, match="X_std is given, but X is Gaussians"):
        eb.transform(Gaussians(X, std=std), X_std=std)
    with pytest.raises(ValueError, match="X has 1 features"):
        eb.transform(Gaussians(X[:, :1]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be >= 1"),
        ({"n_components": "aic"}, "n_components must be an integer or 'bic', got 'aic'"),
        ({"covariance": "tied"}, "covariance must be one of full, diagonal, factors; got 'tied'"),
        ({"n_factors": 2}, "n_factors is given, but covariance is 'full'"),
        (
            {"covariance": "factors", "n_factors": 3},
            "n_factors is 3; it must be below n_features = 3",
        ),
        ({"output": "std"}, "output must be one of auto, gaussian, mixture, mean; got 'std'"),
        ({"init": "best"}, "init must be one of kmeans, random; got 'best'"),
        ({"init": (np.ones(1), np.zeros((1, 2)), np.ones((1, 2)))}, "init means has shape"),
        ({"tol": -1.0}, "tol must be >= 0 and finite, got -1.0"),
        ({"reg_covar": -1.0}, "reg_covar must be >= 0 and finite, got -1.0"),
        ({"max_iter": 0}, "max_iter must be >= 1, got 0"),
        ({"n_components": 99}, "n_components is 99, X has 20 rows"),
    ],
)
def test_parameters_that_make_no_sense_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        EmpiricalBayes(**parameters).fit(mixture_data(20, 3))


def test_passes_that_are_used_up_are_told_and_failed_fits_change_nothing():
    X = mixture_data(100, 2)
    std = np.full(X.shape, 1.0)
    with pytest.warns(ConvergenceWarning, match="after 2 passes over the data"):
        eb = EmpiricalBayes(2, max_iter=2, random_state=0).fit(X, X_std=std)
    assert not eb.converged_
    assert eb.status_ == "max_iter passes over the data are used up"
    before = dict(vars(eb))
    with pytest.raises(ValueError, match="sample_weight"):
        eb.fit(X, sample_weight=np.full(100, -1.0))
    assert vars(eb) == before
    with pytest.raises(NotFittedError):
        EmpiricalBayes().transform(X)


@pytest.mark.parametrize("seed", range(5))
def test_posteriors_are_measurements_that_it_takes_itself(seed):
    # Errors and true values each fill few dimensions: in the others nothing but rounding is left.
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 12))
    errors = Covariances.low_rank(0.3 * rng.normal(size=(200, 12, 2)))
    model = EmpiricalBayes().fit(Gaussians(truth, cov=errors))
    posterior = model.transform(Gaussians(truth, cov=errors))
    for matrix in posterior.covariances.to_full():
        assert np.linalg.eigvalsh(matrix)[0] >= -1e-14 * np.abs(matrix).max()
    assert len(model.transform(posterior)) == 200
