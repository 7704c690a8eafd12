"""UncertainNystroem: moments against quadrature, draws and the reference; what they mean."""

import pickle

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem

from halosvm import (
    GaussianMixtures,
    Gaussians,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainSVC,
    _core,
    expected_kernel,
    reference,
)

LANDMARKS = pytest.mark.parametrize("landmarks", ["means", "gaussians"])


def features(X, n_components=9, gamma=0.3, **parameters):
    return UncertainNystroem(
        n_components=n_components, gamma=gamma, random_state=0, **parameters
    ).fit(X)


def expectation(f, mean, S, n_nodes=40):
    """Return E f(x) for x ~ N(mean, S) in two dimensions by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = np.outer(weights, weights).reshape(-1) / weights.sum() ** 2
    values, vectors = np.linalg.eigh(S)
    z = np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
    return np.tensordot(weights, f((mean[:, None] + (vectors * np.sqrt(values)) @ z).T), 1)


# -- moments -------------------------------------------------------------------------------------


def test_every_entry_of_mean_and_covariance_is_its_integral(make_gaussians):
    X, _ = make_gaussians("full", n=12, d=2, scale=0.7)
    fitted = features(X, n_components=6, covariance="full")
    Z, P = fitted.landmarks_.mean, fitted.projection_
    found = fitted.transform(X)

    def phi(points):
        return np.exp(-0.3 * np.square(points[:, None] - Z).sum(-1)) @ P.T

    for i in range(len(X)):
        mean, S = X[i]
        first = expectation(phi, mean, S)
        second = expectation(lambda x: phi(x)[:, :, None] * phi(x)[:, None, :], mean, S)
        np.testing.assert_allclose(found.mean[i], first, rtol=0, atol=1e-10)
        expected = second - np.outer(first, first)
        np.testing.assert_allclose(found.covariances[i], expected, rtol=0, atol=1e-10)


@LANDMARKS
@each("dtype", DTYPES)
@each("kind", KINDS)
def test_every_kind_of_covariance_has_the_moments_of_the_reference(
    landmarks, kind, dtype, make_gaussians
):
    X, _ = make_gaussians(kind, n=30, d=4, dtype=dtype)
    gamma = np.array([0.3, 0.1, 0.5, 0.2])
    fitted = features(X, gamma=gamma, covariance="full", landmarks=landmarks)
    P = fitted.projection_
    means = reference.expected_kernel(X, fitted.landmarks_, gamma=gamma) @ P.T
    rounding = 1e-12 * np.abs(P).sum(axis=1).max() ** 2
    full = fitted.transform(X)
    np.testing.assert_allclose(full.mean, means, rtol=0, atol=rounding)
    pairs = np.concatenate([P, P[:1] + P[1:2]])
    variances = reference.expansion_variance(X, fitted.landmarks_, pairs, gamma=gamma)
    # A singular matrix that is rounded to float32 has eigenvalues below 0, which count as 0.
    atol = 1e-5 if (kind, dtype) == ("full", np.float32) else rounding
    own = full.covariances.variances()
    np.testing.assert_allclose(own, variances[:, :-1], rtol=0, atol=atol)
    mixed = 0.5 * (variances[:, -1] - variances[:, 0] - variances[:, 1])
    dense = full.covariances.to_full()
    np.testing.assert_allclose(dense[:, 0, 1], mixed, rtol=0, atol=atol)
    np.testing.assert_array_equal(dense, dense.transpose(0, 2, 1))
    diagonal = clone(fitted).set_params(covariance="diagonal").fit(X).transform(X)
    np.testing.assert_allclose(diagonal.mean, full.mean, rtol=0, atol=rounding)
    np.testing.assert_allclose(diagonal.covariances.variances(), own, rtol=0, atol=rounding)
    means = clone(fitted).set_params(output="mean").fit(X).transform(X)
    np.testing.assert_allclose(means, full.mean, rtol=0, atol=rounding)


@LANDMARKS
@each("kind", KINDS)
def test_factors_are_the_expected_jacobian_times_a_root(landmarks, kind, make_gaussians):
    X, _ = make_gaussians(kind, n=20, d=4)
    fitted = features(X, landmarks=landmarks)
    P, Z = fitted.projection_, fitted.landmarks_
    covariances, step = fitted.transform(X[:4]).covariances, 1e-5
    if kind == "zero":
        assert covariances.certain
        return
    dense = X.covariances[:4]
    shifted = [
        [
            reference.expected_kernel(Gaussians(X.mean[:4] + e, cov=dense), Z, gamma=0.3) @ P.T
            for e in (step * axis, -step * axis)
        ]
        for axis in np.eye(4)
    ]
    jacobians = np.stack([(a - b) / (2 * step) for a, b in shifted], axis=2)
    expected = jacobians @ dense.to_full() @ jacobians.transpose(0, 2, 1)
    np.testing.assert_allclose(covariances.to_full(), expected, atol=1e-7 * np.abs(P).max())


def test_linear_part_is_all_there_is_of_small_errors(make_gaussians):
    left = []
    for scale in (0.1, 0.01):
        X, _ = make_gaussians("full", n=20, scale=scale)
        exact = features(X, covariance="full").transform(X).covariances.to_full()
        linear = features(X, covariance="low_rank").transform(X).covariances.to_full()
        assert (np.einsum("njj->nj", exact) > (1 - 1e-9) * np.einsum("njj->nj", linear)).all()
        left.append(np.abs(linear - exact).max() / np.abs(exact).max())
    assert left[0] < 0.1
    assert 50 < left[0] / left[1] < 200


def test_certain_examples_have_the_features_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(80, 3))
    fitted = features(X, n_components=20, output="gaussian")
    ours = fitted.transform(X)
    assert ours.covariances.certain
    theirs = Nystroem(gamma=0.3, n_components=20).fit(X)
    theirs.components_ = fitted.landmarks_.mean
    K = np.exp(-0.3 * np.square(theirs.components_[:, None] - theirs.components_).sum(-1))
    values, vectors = np.linalg.eigh(K)
    theirs.normalization_ = (vectors / np.sqrt(values)) @ vectors.T
    theirs = theirs.transform(X)
    np.testing.assert_allclose(ours.mean @ ours.mean.T, theirs @ theirs.T, atol=1e-9)


def test_certain_rows_among_others_stay_certain(make_gaussians):
    X, _ = make_gaussians("half_certain", n=10)
    for covariance in ("low_rank", "diagonal", "full", "bound"):
        found = features(X, covariance=covariance).transform(X)
        assert not found.covariances[::2].variances().any()
        assert (found.covariances[1::2].trace() > 0).all()


def test_all_examples_as_landmarks_reproduce_the_expected_kernel(make_gaussians):
    X, _ = make_gaussians("diagonal", n=50, d=3)
    fitted = features(X, n_components=1000, landmarks="gaussians", output="mean", gamma=3.0)
    means = fitted.transform(X)
    assert len(fitted.landmarks_) == 50
    np.testing.assert_allclose(means @ means.T, expected_kernel(X, gamma=3.0), atol=1e-7)


def test_landmarks_that_repeat_each_other_count_once(make_gaussians):
    X, _ = make_gaussians("diagonal", n=10, d=3)
    twice = Gaussians.concatenate([X, X])
    one = features(X, n_components=10).transform(X)
    fitted = features(twice, n_components=20)
    assert fitted.projection_.shape == (10, 20)
    assert len(fitted.get_feature_names_out()) == 10
    two = fitted.transform(X)
    np.testing.assert_allclose(one.mean @ one.mean.T, two.mean @ two.mean.T, atol=1e-8)
    for i in range(10):
        spread = np.linalg.norm(one.covariances[i])
        np.testing.assert_allclose(np.linalg.norm(two.covariances[i]), spread, rtol=1e-6)


def test_mixtures_have_the_moments_of_their_components_mixed(make_gaussians):
    components, _ = make_gaussians("diagonal", n=7, d=3)
    X = GaussianMixtures(components, [0.2, 0.8, 1.0, 0.5, 0.25, 0.125, 0.125], [2, 1, 4])
    fitted = features(X, n_components=3, covariance="full")
    parts = fitted.transform(components)
    dense = parts.covariances.to_full()
    found = fitted.transform(X)
    for i, (b, e) in enumerate(((0, 2), (2, 3), (3, 7))):
        w, m = X.weights[b:e], parts.mean[b:e]
        second = np.einsum("k,ki,kj->ij", w, m, m) + np.einsum("k,kij->ij", w, dense[b:e])
        np.testing.assert_allclose(found.mean[i], w @ m, atol=1e-12)
        expected = second - np.outer(w @ m, w @ m)
        np.testing.assert_allclose(found.covariances[i], expected, atol=1e-12)
    low_rank = clone(fitted).set_params(covariance="low_rank").fit(X).transform(X)
    np.testing.assert_allclose(low_rank.mean, found.mean, atol=1e-12)
    np.testing.assert_allclose(low_rank.covariances[1], features(X, 3).transform(components[2:3])
                               .covariances[0], atol=1e-12)  # fmt: skip
    with pytest.raises(TypeError, match="landmarks='gaussians' needs Gaussians"):
        features(X, landmarks="gaussians")


# -- results -------------------------------------------------------------------------------------


@each("kind", KINDS)
@each("covariance", ["low_rank", "diagonal", "full", "bound"])
def test_results_do_not_depend_on_the_number_of_threads(covariance, kind, make_gaussians):
    X, _ = make_gaussians(kind, n=60)
    one, three = (features(X, 40, covariance=covariance, n_threads=n).transform(X) for n in (1, 3))
    np.testing.assert_array_equal(one.mean, three.mean)
    if not one.covariances.certain:
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
    X, _ = make_gaussians(n=200)
    first, second = features(X), features(X)
    np.testing.assert_array_equal(first.landmark_indices_, second.landmark_indices_)
    np.testing.assert_array_equal(first.landmarks_.mean, X.mean[first.landmark_indices_])
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(restored.transform(X).mean, first.transform(X).mean)


def test_a_linear_machine_on_features_is_certified_and_near_to_the_kernel_machine():
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(1500, 2)), std=rng.uniform(0, 0.4, (1500, 2)))
    y = np.sum(X.mean**2, axis=1) + 0.3 * rng.normal(size=1500) > 1.2
    train, test = slice(0, 1000), slice(1000, None)
    kernel = UncertainKernelSVC(gamma=0.5).fit(X[train], y[train]).score(X[test], y[test])
    for covariance in ("low_rank", "diagonal"):
        fitted = features(X[train], 60, 0.5, covariance=covariance)
        clf = UncertainSVC(tol=1e-4).fit(fitted.transform(X[train]), y[train])
        assert clf.suboptimality_ <= 1e-4
        accuracy = clf.score(fitted.transform(X[test]), y[test])
        assert accuracy > kernel - np.sqrt(kernel * (1 - kernel) / 500)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, "kernel must be one of rbf; got 'poly'"),
        ({"landmarks": "kmeans"}, "landmarks must be one of means, gaussians; got 'kmeans'"),
        ({"bound": "tight"}, "bound must be one of kernel, landmarks, printed; got 'tight'"),
        (
            {"bound": "landmarks", "landmarks": "gaussians"},
            "bound='landmarks' needs landmarks='means', got 'gaussians'",
        ),
        ({"bound": "printed", "norm": 1}, "bound='printed' is for norm=2, got 1"),
        ({"n_components": 0}, "n_components must be >= 1, got 0"),
        ({"gamma": "auto"}, "gamma must be 'scale', 'median', a number or an array, got 'auto'"),
        ({"covariance": "none"}, "covariance must be one of low_rank, diagonal, full, bound; got"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(parameters, message, make_gaussians):
    X, _ = make_gaussians()
    with pytest.raises(ValueError, match=message):
        UncertainNystroem(**parameters).fit(X)


def test_data_that_make_no_sense_are_refused_with_their_place(make_gaussians):
    X, _ = make_gaussians()
    with pytest.raises(NotFittedError):
        UncertainNystroem().transform(X)
    fitted = features(X)
    with pytest.raises(ValueError, match="X has 3 features, but UncertainNystroem is expecting"):
        fitted.transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="X_std row 0, column 1 is -1"):
        fitted.transform(np.zeros((1, 4)), X_std=np.array([[0, -1.0, 0, 0]]))


def test_landmarks_so_wide_that_their_kernel_is_0_are_refused():
    X = Gaussians(np.zeros((5, 200)), std=np.full(5, 1e4))
    with pytest.raises(ValueError, match="the expected kernel of all landmarks is 0: errors are"):
        features(X, landmarks="gaussians")
    assert features(X).transform(X).mean.shape == (5, 1)


def test_the_core_refuses_what_does_not_fit():
    X = Gaussians(np.zeros((3, 2)), std=np.ones((3, 2))).core_view()
    Z, gamma, P = Gaussians(np.zeros((5, 2))).core_view(), np.ones(1), np.ones((4, 5))
    means, variances, factors = np.empty((3, 4)), np.empty((3, 4)), np.empty((3, 4, 2))
    with pytest.raises(ValueError, match="projection has 6 columns, Z has 5"):
        _core.nystroem_features(Z, gamma, np.ones((4, 6)), X, means)
    with pytest.raises(ValueError, match="Z has 3 features, X has 2"):
        _core.nystroem_features(Gaussians(np.zeros((5, 3))).core_view(), gamma, P, X, means)
    with pytest.raises(ValueError, match="gamma is 0; it must be positive and finite"):
        _core.nystroem_features(Z, np.zeros(1), P, X, means)
    with pytest.raises(ValueError, match="factors have no variances beside them"):
        _core.nystroem_features(Z, gamma, P, X, means, variances, factors)
