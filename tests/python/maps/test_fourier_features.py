"""UncertainFourierFeatures: moments against quadrature, draws and the reference; what they mean."""

import pickle

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from mpmath import mp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from halosvm import (
    Covariances,
    GaussianMixtures,
    Gaussians,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainSVC,
    _core,
    expected_kernel,
    reference,
)

MAPS = pytest.mark.parametrize("form", ["paired", "paired, odd", "phase"])


def features(X, n_components=12, gamma=0.3, map="paired", **parameters):  # noqa: A002
    """Return a fitted map; "paired, odd" has one feature more than it is asked for."""
    name, _, odd = map.partition(", ")
    D = n_components + bool(odd)
    return UncertainFourierFeatures(D, gamma=gamma, map=name, random_state=0, **parameters).fit(X)


def angles_of(fitted, X):
    """Return the angles, (n, D), whose cosines the features are: sines lag a quarter of a turn."""
    nu = [] if fitted.phases_ is None else fitted.phases_
    n_pairs = len(fitted.frequencies_) - len(nu)
    angles = X @ fitted.frequencies_.T + np.r_[np.zeros(n_pairs), nu]
    return np.hstack([angles, angles[:, :n_pairs] - np.pi / 2])


def expected_moments(fitted, X):
    """Return means and covariances by the reference."""
    dense = X.covariances.to_full().astype(np.float64)
    moments = [
        reference.fourier_features(fitted.frequencies_, fitted.phases_, mean, S)
        for mean, S in zip(X.mean.astype(np.float64), dense, strict=True)
    ]
    return [np.array(part) for part in zip(*moments, strict=True)]


def bivariate_expectation(f, mean, Q, n_nodes=80):
    """Return E f(s, t) for (s, t) ~ N(mean, Q) by Gauss and Hermite's rule in both dimensions."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    values, vectors = np.linalg.eigh(Q)
    z = np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
    points = mean[:, np.newaxis] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ z
    return float(np.outer(weights, weights).reshape(-1) @ f(*points))


# -- moments -------------------------------------------------------------------------------------


@MAPS
def test_every_entry_of_mean_and_covariance_is_its_integral(form, make_gaussians):
    X, _ = make_gaussians("full", n=3, d=3, scale=0.9)
    fitted = features(X, n_components=6, map=form, covariance="full")
    found = fitted.transform(X)
    D = found.shape[1]
    assert (D % 2 == 1) is (form == "paired, odd")
    W = fitted.frequencies_
    rows = np.r_[0 : len(W), 0 : len(W)][:D]
    shift = angles_of(fitted, np.zeros((1, 3)))[0]
    for i in range(len(X)):
        mean, S = X[i]
        for j in range(D):
            for k in range(j + 1):
                pair = W[[rows[j], rows[k]]]
                u = pair @ mean + shift[[j, k]]
                Q = pair @ S @ pair.T
                first, second = (
                    bivariate_expectation(lambda s, t: np.cos(s), u[[a, a]], np.diag([q, 0.0]))
                    for a, q in ((0, Q[0, 0]), (1, Q[1, 1]))
                )
                product = bivariate_expectation(lambda s, t: np.cos(s) * np.cos(t), u, Q)
                assert abs(found.mean[i, j] - np.sqrt(2 / D) * first) < 1e-12
                covariance = 2 / D * (product - first * second)
                assert abs(found.covariances[i][j, k] - covariance) < 1e-10


@MAPS
@each("dtype", DTYPES)
@each("kind", KINDS)
def test_every_kind_of_covariance_has_the_moments_of_the_reference(
    form, kind, dtype, make_gaussians
):
    X, _ = make_gaussians(kind, n=37, d=4, dtype=dtype)
    fitted = features(X, map=form, covariance="full")
    means, matrices = expected_moments(fitted, X)
    full = fitted.transform(X)
    np.testing.assert_allclose(full.mean, means, rtol=0, atol=5e-15)
    np.testing.assert_allclose(full.covariances.to_full(), matrices, rtol=0, atol=5e-15)
    variances = np.einsum("njj->nj", matrices)
    diagonal = clone(fitted).set_params(covariance="diagonal").fit(X).transform(X)
    np.testing.assert_array_equal(diagonal.mean, full.mean)
    np.testing.assert_allclose(diagonal.covariances.variances(), variances, rtol=0, atol=5e-15)
    low_rank = clone(fitted).set_params(covariance="low_rank").fit(X).transform(X)
    np.testing.assert_array_equal(low_rank.mean, full.mean)
    np.testing.assert_allclose(low_rank.covariances.variances(), variances, rtol=0, atol=5e-15)


@MAPS
@each("kind", KINDS)
def test_factors_are_the_expected_jacobian_times_a_root(form, kind, make_gaussians):
    X, _ = make_gaussians(kind, n=9, d=4)
    fitted = features(X, map=form)
    covariances = fitted.transform(X).covariances
    if kind == "zero":
        assert covariances.certain
        return
    own = 0.0 if covariances.diagonal_values is None else covariances.diagonal_values
    assert np.min(own) >= 0.0
    W, step = fitted.frequencies_, 1e-5
    dense = X.covariances.to_full()
    for i, S in enumerate(dense):
        jacobian = np.stack(
            [
                (
                    reference.fourier_features(W, fitted.phases_, X.mean[i] + e, S)[0]
                    - reference.fourier_features(W, fitted.phases_, X.mean[i] - e, S)[0]
                )
                / (2 * step)
                for e in step * np.eye(4)
            ],
            axis=1,
        )
        linear = covariances[i] - np.diag(own[i])
        np.testing.assert_allclose(linear, jacobian @ S @ jacobian.T, atol=1e-9)


def test_linear_part_is_all_there_is_of_small_errors(make_gaussians):
    """What it leaves of covariances shrinks like the square of the errors' variance."""
    left = []
    for scale in (0.1, 0.01):
        X, _ = make_gaussians("full", n=20, scale=scale)
        exact = features(X, covariance="full").transform(X).covariances.to_full()
        linear = features(X, covariance="low_rank").transform(X).covariances.to_full()
        left.append(np.abs(linear - exact).max() / np.abs(exact).max())
    assert left[0] < 0.05
    assert 50 < left[0] / left[1] < 200


@MAPS
def test_variances_keep_their_digits_however_small_the_errors_are(form):
    rng = np.random.default_rng(0)
    mean, variances = rng.normal(size=(3, 2)), 10.0 ** np.array([[-30, -31], [-14, -15], [-3, -5]])
    X = Gaussians(mean, variance=variances)
    fitted = features(X, n_components=4, map=form, covariance="diagonal")
    found = fitted.transform(X).covariances.variances()
    W, nu, D = fitted.frequencies_, fitted.phases_, found.shape[1]
    n_pairs = D - len(W)
    with mp.workdps(60):
        for i in range(3):
            for j, w in enumerate(W):
                u = sum(mp.mpf(a) * mp.mpf(b) for a, b in zip(w, mean[i], strict=True))
                u += 0 if j < n_pairs else mp.mpf(nu[j - n_pairs])
                A = sum(mp.mpf(a) ** 2 * mp.mpf(v) for a, v in zip(w, variances[i], strict=True))
                exact = (1 + mp.exp(-2 * A) * mp.cos(2 * u)) / 2 - mp.exp(-A) * mp.cos(u) ** 2
                # 5e-16 is what rounding does to the angle u, of which the sine is squared.
                bound = 1e-14 + 2e-15 / abs(mp.tan(u))
                assert abs(found[i, j] / (2 * exact / D) - 1) < bound


@MAPS
def test_certain_examples_have_certain_features_that_are_exact(form):
    X = np.random.default_rng(0).normal(size=(20, 3)) * 10
    for covariance in ("low_rank", "diagonal", "full", "bound"):
        fitted = features(X, map=form, covariance=covariance, output="gaussian")
        found = fitted.transform(X)
        angles = angles_of(fitted, X)
        expected = np.cos(angles) * np.sqrt(2 / angles.shape[1])
        np.testing.assert_allclose(found.mean, expected, atol=2e-14)  # pi / 2 of 100 is rounded
        assert not found.covariances.variances().any()


def test_certain_rows_among_others_stay_certain(make_gaussians):
    X, _ = make_gaussians("half_certain", n=10)
    for covariance in ("low_rank", "diagonal", "full", "bound"):
        found = features(X, covariance=covariance).transform(X)
        assert not found.covariances[::2].variances().any()
        assert (found.covariances[1::2].trace() > 0).all()


@MAPS
def test_features_of_angles_beyond_the_fast_range_and_of_huge_errors_are_right(form):
    X = Gaussians(np.array([[3e6, 1.0], [1.0, 2.0]]), variance=np.array([[0.1, 0.2], [1e9, 1e12]]))
    for covariance in ("diagonal", "full", "low_rank"):
        fitted = features(X, map=form, covariance=covariance)
        found = fitted.transform(X)
        means, matrices = expected_moments(fitted, X)
        np.testing.assert_allclose(found.mean, means, atol=1e-9)  # 3e6 has an ulp of 5e-10
        variances = np.einsum("njj->nj", matrices)
        np.testing.assert_allclose(found.covariances.variances(), variances, atol=1e-9)
        np.testing.assert_array_equal(found.mean[1], 0.0)


def test_mean_features_reproduce_the_expected_kernel_as_components_grow(make_gaussians):
    """Each frequency gives a number in [-1, 1]: the root mean square is below (D/2)^-1/2."""
    X, _ = make_gaussians("diagonal", n=40, d=3)
    for normal in (0.3, np.array([0.1, 0.4, 0.2])):
        exact = expected_kernel(X, gamma=normal)
        errors = []
        for D in (64, 4096):
            by_seed = []
            for seed in range(4):
                fitted = UncertainFourierFeatures(D, gamma=normal, random_state=seed)
                means = fitted.set_params(output="mean").fit_transform(X)
                by_seed.append(means @ means.T - exact)
            apart = np.stack(by_seed)[:, *np.triu_indices(40, 1)]
            errors.append(np.sqrt(np.mean(apart**2)))
            assert errors[-1] < np.sqrt(2 / D)
        assert 4 < errors[0] / errors[1] < 16  # 8 but for chance


@pytest.mark.parametrize("D", [1, 3, 5])
def test_inner_products_of_an_odd_number_of_features_have_the_kernel_as_their_mean(D):
    """Over seeds, each frequency gives a number in [-1, 1]; without the phase D = 1 has a bias."""
    x = np.array([[0.3, -0.2], [0.9, 0.4]])
    kernel = np.exp(-0.5 * np.sum((x[0] - x[1]) ** 2))
    n = 1_000
    rng = np.random.RandomState(0)
    fitted = UncertainFourierFeatures(D, gamma=0.5, output="mean", random_state=rng)
    products = [z @ z.T for z in (fitted.fit_transform(x) for _ in range(n))]
    for found, exact in ((0, 1.0), (1, kernel)):
        values = np.array([product[0, found] for product in products])
        assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(n)


@MAPS
def test_mixtures_have_the_moments_of_their_components_mixed(form, make_gaussians):
    components, _ = make_gaussians("low_rank_diagonal", n=7, d=3)
    X = GaussianMixtures(components, [0.2, 0.8, 1.0, 0.5, 0.25, 0.125, 0.125], [2, 1, 4])
    fitted = features(components, n_components=6, map=form, covariance="full")
    means, matrices = expected_moments(fitted, components)
    for covariance in ("full", "diagonal", "low_rank"):
        found = clone(fitted).set_params(covariance=covariance).fit(components).transform(X)
        for i, (b, e) in enumerate(((0, 2), (2, 3), (3, 7))):
            w = X.weights[b:e]
            second = np.einsum("k,ki,kj->ij", w, means[b:e], means[b:e])
            second += np.einsum("k,kij->ij", w, matrices[b:e])
            mean = w @ means[b:e]
            expected = second - np.outer(mean, mean)
            np.testing.assert_allclose(found.mean[i], mean, atol=1e-14)
            own = np.diag(found.covariances[i])
            np.testing.assert_allclose(own, np.diag(expected), atol=1e-14)
            if covariance == "full":
                np.testing.assert_allclose(found.covariances[i], expected, atol=1e-14)
    points = fitted.set_params(output="mean").transform(X)
    np.testing.assert_allclose(points, found.mean, atol=1e-14)
    with pytest.raises(TypeError, match=r"X is GaussianMixtures; covariance='bound'"):
        fitted.set_params(output="gaussian", covariance="bound").transform(X)


# -- results -------------------------------------------------------------------------------------


@MAPS
@pytest.mark.parametrize("covariance", ["low_rank", "diagonal", "full", "bound"])
def test_results_do_not_depend_on_the_number_of_threads(form, covariance, make_gaussians):
    X, _ = make_gaussians("low_rank_diagonal", n=500, d=4)
    one, three = (
        features(X, map=form, covariance=covariance, n_threads=n).transform(X) for n in (1, 3)
    )
    np.testing.assert_array_equal(one.mean, three.mean)
    np.testing.assert_array_equal(one.covariances.values, three.covariances.values)


@pytest.mark.parametrize("covariance", ["low_rank", "diagonal", "full", "bound"])
def test_float32_is_float64_rounded(covariance, make_gaussians):
    X, _ = make_gaussians("diagonal", n=30)
    wide = features(X, covariance=covariance).transform(X)
    narrow = features(X, covariance=covariance, dtype="float32").transform(X)
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(narrow.mean, wide.mean.astype(np.float32))
    if covariance != "bound":  # one number for each example
        assert narrow.covariances.dtype == np.float32
        values = wide.covariances.values.astype(np.float32)
        np.testing.assert_array_equal(narrow.covariances.values, values)


def test_a_seed_gives_one_map_and_the_map_survives_pickling(make_gaussians):
    X, _ = make_gaussians()
    first, second = features(X), features(X)
    np.testing.assert_array_equal(first.frequencies_, second.frequencies_)
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(restored.transform(X).mean, first.transform(X).mean)


def test_bandwidth_is_told_by_name_number_or_feature(make_gaussians):
    X, _ = make_gaussians(n=200)
    scale = features(X, gamma="scale").gamma_
    moments = X.mean.var() + X.covariances.trace().mean() / 4
    np.testing.assert_allclose(scale, 1 / (4 * moments))
    apart = np.square(X.mean[:, None] - X.mean).sum(-1)
    traces = X.covariances.trace()
    expected = (apart + traces[:, None] + traces)[np.triu_indices(200, 1)]
    np.testing.assert_allclose(features(X, gamma="median").gamma_, 1 / np.median(expected))
    each = np.array([1e-12, 1.0, 4.0, 9.0])
    W = features(X, n_components=4000, gamma=each).frequencies_
    np.testing.assert_allclose(W.var(axis=0), 2 * each, rtol=0.2)  # 4.5 standard errors


def test_a_linear_machine_on_features_is_certified_and_near_to_the_kernel_machine():
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(1500, 2)), std=rng.uniform(0, 0.4, (1500, 2)))
    y = np.sum(X.mean**2, axis=1) + 0.3 * rng.normal(size=1500) > 1.2
    train, test = slice(0, 1000), slice(1000, None)
    kernel = UncertainKernelSVC(gamma=0.5).fit(X[train], y[train]).score(X[test], y[test])
    for covariance in ("low_rank", "diagonal"):
        fitted = features(X[train], 300, 0.5, covariance=covariance)
        clf = UncertainSVC(tol=1e-4).fit(fitted.transform(X[train]), y[train])
        assert clf.suboptimality_ <= 1e-4
        accuracy = clf.score(fitted.transform(X[test]), y[test])
        assert accuracy > kernel - np.sqrt(kernel * (1 - kernel) / 500)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be >= 1, got 0"),
        ({"gamma": "auto"}, "gamma must be 'scale', 'median', a number or an array, got 'auto'"),
        ({"gamma": -1.0}, "gamma is -1; it must be positive and finite"),
        ({"gamma": [1.0, 2.0]}, "gamma has shape .2,.; it must be one number or one for each"),
        ({"map": "sine"}, "map must be one of paired, phase; got 'sine'"),
        ({"covariance": "none"}, "covariance must be one of low_rank, diagonal, full, bound; got"),
        ({"output": "mixture"}, "output must be one of auto, gaussian, mean; got 'mixture'"),
        ({"bound": "loose"}, "bound must be one of tight, printed; got 'loose'"),
        ({"norm": 3}, "norm must be one of 1, 2, inf; got 3"),
        ({"radius": -1.0}, "radius must be >= 0 and finite, got -1.0"),
        ({"dtype": "int32"}, "dtype must be float64 or float32, got 'int32'"),
        ({"dtype": "double precision"}, "dtype must be float64 or float32, got 'double"),
        ({"n_threads": 0}, "n_threads must be >= 1, got 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(parameters, message, make_gaussians):
    X, _ = make_gaussians()
    defaults = {"n_components": 12, "random_state": 0}
    with pytest.raises(ValueError, match=message):
        UncertainFourierFeatures(**(defaults | parameters)).fit(X)


def test_data_that_make_no_sense_are_refused_with_their_place(make_gaussians):
    X, _ = make_gaussians()
    with pytest.raises(NotFittedError):
        UncertainFourierFeatures().transform(X)
    fitted = features(X)
    with pytest.raises(
        ValueError, match="X has 3 features, but UncertainFourierFeatures is expect"
    ):
        fitted.transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="X_std is given, but X is Gaussians"):
        fitted.transform(X, X_std=np.zeros((60, 4)))
    with pytest.raises(ValueError, match="row 1, column 2 is nan; it must be finite"):
        fitted.transform(np.array([[0, 0, 0, 0], [0, 0, np.nan, 0.0]]))
    with pytest.raises(ValueError, match="X_std row 0, column 1 is -1"):
        fitted.transform(np.zeros((1, 4)), X_std=np.array([[0, -1.0, 0, 0]]))
    full = Gaussians(X.mean, cov=X.covariances.to_full())
    with pytest.raises(ValueError, match="norm is inf, for which full covariances have no root"):
        features(X, covariance="bound", norm=np.inf).transform(full)


def test_a_failed_fit_leaves_the_map_as_it_was(make_gaussians):
    X, _ = make_gaussians()
    fitted = features(X)
    before = fitted.frequencies_
    with pytest.raises(ValueError, match="gamma must be"):
        fitted.set_params(gamma="auto").fit(X)
    assert fitted.frequencies_ is before


def test_the_core_refuses_targets_of_the_wrong_size_or_type():
    X = Gaussians(np.zeros((3, 2))).core_view()
    W = np.ones((4, 2))
    with pytest.raises(ValueError, match="means has 5 numbers, expected 24"):
        _core.fourier_features(W, None, X, means=np.empty(5))
    with pytest.raises(TypeError, match="means must be a C-contiguous array of float32 or float64"):
        _core.fourier_features(W, None, X, means=np.empty((3, 8), int))
    with pytest.raises(ValueError, match="frequencies has 3 columns, X has 2"):
        _core.fourier_features(np.ones((4, 3)), None, X, means=np.empty((3, 8)))
    with pytest.raises(ValueError, match="phases has 5 rows, frequencies has 4"):
        _core.fourier_features(W, np.ones(5), X, means=np.empty((3, 3)))


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_covariances_of_features_are_accepted_as_such(kind, dtype, make_gaussians):
    X, _ = make_gaussians(kind, n=20, dtype=dtype, scale=3.0)
    found = features(X, 40, covariance="full", dtype=dtype).transform(X)
    assert isinstance(found.covariances, Covariances)
    smallest = np.linalg.eigvalsh(found.covariances.to_full().astype(np.float64)).min()
    assert smallest > -40 * np.finfo(dtype).eps
