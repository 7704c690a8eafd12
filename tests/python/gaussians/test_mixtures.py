"""GaussianMixtures as a container, and in expected kernels and UncertainKernelSVC."""

import pickle

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, DTYPES, each, in_pairs
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score

from halosvm import (
    GaussianMixtures,
    Gaussians,
    UncertainKernelSVC,
    _core,
    expected_kernel,
    median_gamma,
    reference,
)

D = 4
COUNTS = np.array([1, 3, 2, 5, 1, 150, 4, 1, 2])  # one of them larger than any tile of factors
KERNELS = {
    "rbf": {"kind": "rbf", "gamma": 0.3},
    "rbf per feature": {"kind": "rbf", "gamma": [0.1, 0.4, 0.9, 0.2]},
    "laplacian": {"kind": "laplacian", "gamma": 0.3},
    "poly": {"kind": "poly", "gamma": 0.3, "degree": 3, "coef0": 0.7},
    "linear": {"kind": "linear"},
}
CORRELATED = (
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
    "columns_low_rank",
    "columns_full",
)


@pytest.fixture(params=KERNELS)
def kernel(request):
    """Every kernel, with its parameters."""
    return KERNELS[request.param]


@pytest.fixture
def make_mixtures(make_gaussians):
    """Return the function of that name."""

    def make(kind="diagonal", counts=COUNTS, seed=0, **options):
        components, _ = make_gaussians(kind, n=int(np.sum(counts)), d=D, seed=seed, **options)
        rng = np.random.default_rng(seed)
        weights = np.concatenate([rng.dirichlet(np.ones(count)) for count in counts])
        return GaussianMixtures(components, weights, counts)

    return make


def skip_without_closed_form(kernel, kind):
    if kernel["kind"] == "laplacian" and kind in CORRELATED:
        pytest.skip("no closed form")


# -- values --------------------------------------------------------------------------------------


@in_pairs
@each("dtype", DTYPES)
@each("kernel", KERNELS.values())
@each("kind", COVARIANCE_KINDS)
def test_kernels_of_mixtures_equal_the_reference(make_mixtures, kind, kernel, dtype):
    skip_without_closed_form(kernel, kind)
    X = make_mixtures(kind, dtype=dtype)
    Y = make_mixtures("isotropic", counts=[2, 1, 70, 3], seed=1, dtype=dtype)
    for other in (None, Y):
        expected = reference.mixture_kernel(X, other, **kernel)
        K = expected_kernel(X, other, **kernel)
        np.testing.assert_allclose(K, expected, 1e-12, 1e-12 * np.abs(expected).max())
    K = expected_kernel(X, **kernel)
    np.testing.assert_array_equal(K, K.T)


@each("kernel", KERNELS.values())
@each("kind", COVARIANCE_KINDS)
def test_a_mixture_of_one_component_is_that_gaussian(make_gaussians, kind, kernel):
    skip_without_closed_form(kernel, kind)
    X, _ = make_gaussians(kind, n=70, d=D)
    Y, _ = make_gaussians("isotropic", n=20, d=D, seed=1)
    mixtures = GaussianMixtures(X, np.ones(70), 1)
    for normalize in (False, True):
        options = {**kernel, "normalize": normalize}
        np.testing.assert_array_equal(
            expected_kernel(mixtures, **options), expected_kernel(X, **options)
        )
        np.testing.assert_array_equal(
            expected_kernel(mixtures, Y, **options), expected_kernel(X, Y, **options)
        )
    assert expected_kernel(mixtures, Y.mean).shape == (70, 20)


@each("kernel", KERNELS.values())
@each("kind", COVARIANCE_KINDS)
def test_splitting_a_component_into_halves_changes_nothing(make_mixtures, kind, kernel):
    skip_without_closed_form(kernel, kind)
    X = make_mixtures(kind)
    order = np.repeat(np.arange(len(X.weights)), 2)
    halves = GaussianMixtures(X.components[order], X.weights[order] / 2, 2 * COUNTS)
    for normalize in (False, True):
        options = {**kernel, "normalize": normalize}
        K = expected_kernel(X, **options)
        size = 1e-12 * np.abs(K).max()
        np.testing.assert_allclose(expected_kernel(halves, **options), K, 1e-12, size)
        np.testing.assert_allclose(expected_kernel(halves, X, **options), K, 1e-12, size)


@each("kernel", KERNELS.values())
@each("kind", COVARIANCE_KINDS)
def test_kernels_of_mixtures_are_means_over_independent_draws(make_mixtures, kind, kernel):
    skip_without_closed_form(kernel, kind)
    rng, n_draws = np.random.default_rng(3), 40_000
    X = make_mixtures(kind, counts=[3, 2])

    def draw(i):
        weights, components = X[i]
        counts = rng.multinomial(n_draws, weights)
        points = np.concatenate(
            [
                rng.multivariate_normal(*components[a], count, method="eigh")
                for a, count in enumerate(counts)
            ]
        )
        return rng.permutation(points)

    x, y = draw(0), draw(1)
    gamma = np.broadcast_to(kernel.get("gamma", 1.0), D)
    dots = (x * y) @ gamma + kernel.get("coef0", 0.0)
    values = {
        "rbf": np.exp(-((x - y) ** 2) @ gamma),
        "laplacian": np.exp(-np.abs(x - y) @ gamma),
        "poly": dots ** kernel.get("degree", 1),
        "linear": dots,
    }[kernel["kind"]]
    error = values.std() / np.sqrt(n_draws)
    assert abs(expected_kernel(X, **kernel)[0, 1] - values.mean()) <= 4 * error


@each("kernel", KERNELS.values())
@each("kind", COVARIANCE_KINDS)
def test_gram_matrices_of_mixtures_are_positive_semi_definite(make_mixtures, kind, kernel):
    skip_without_closed_form(kernel, kind)
    for seed in range(3):
        X = make_mixtures(kind, counts=np.arange(30) % 4 + 1, seed=seed, scale=(0.2, 1, 3)[seed])
        X = X[np.r_[0:30, 0:10]]
        K = expected_kernel(X, **kernel)
        assert np.linalg.eigvalsh(K / np.abs(K).max())[0] > -1e-10
        K = expected_kernel(X, **kernel, normalize=True)
        np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-12)
        own = expected_kernel(X, **kernel).diagonal()
        expected = expected_kernel(X, **kernel) / np.sqrt(np.outer(own, own))
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)
        assert K.max() <= 1.0 + 1e-12


def test_normalised_kernels_of_many_features_do_not_underflow(make_gaussians):
    components, _ = make_gaussians("diagonal", n=6, d=900, scale=2.0)
    X = GaussianMixtures(components, np.tile([0.25, 0.75], 3), 2)
    assert (expected_kernel(X, gamma=1.0) == 0.0).all()
    K = expected_kernel(X, gamma=1.0, normalize=True)
    np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-12)


def test_components_of_weight_zero_count_as_absent(make_mixtures, kernel):
    X = make_mixtures(counts=[2, 2, 2])
    with_zero = GaussianMixtures(X.components, [0.0, 1.0, 0.5, 0.5, 1.0, 0.0], 2)
    without = GaussianMixtures(X.components[1:5], [1.0, 0.5, 0.5, 1.0], [1, 2, 1])
    for normalize in (False, True):
        options = {**kernel, "normalize": normalize}
        K = expected_kernel(without, **options)
        np.testing.assert_allclose(expected_kernel(with_zero, **options), K, rtol=1e-14)


@each("kernel", KERNELS.values())
@each("kind", ["isotropic", "diagonal", "ragged_diagonal", "full"])
def test_result_does_not_depend_on_the_number_of_threads(make_mixtures, kind, kernel):
    skip_without_closed_form(kernel, kind)
    X = make_mixtures(kind, counts=np.tile(COUNTS, 3))
    for options in (kernel, {**kernel, "normalize": True}):
        K = expected_kernel(X, **options, n_threads=1)
        for n_threads in (2, 5):
            np.testing.assert_array_equal(expected_kernel(X, **options, n_threads=n_threads), K)


def test_out_may_be_a_part_of_an_array_of_float32(make_mixtures):
    X = make_mixtures()
    wide = np.full((20, 20), -1.0, np.float32)
    part = wide[3 : 3 + len(X), 5 : 5 + len(X)]
    assert expected_kernel(X, gamma=0.3, out=part) is part
    np.testing.assert_array_equal(part, expected_kernel(X, gamma=0.3).astype(np.float32))
    part[:] = -1.0
    assert (wide == -1.0).all()


def test_progress_is_reported_and_an_error_in_it_ends_the_call(make_mixtures):
    X = make_mixtures(counts=np.tile(COUNTS, 12))
    seen = []

    def report(fraction):
        seen.append(fraction)
        if len(seen) == 3:
            raise RuntimeError("enough")

    def run():  # long enough: it is asked every 50 ms at most
        out = np.empty((len(X), len(X)))
        for _ in range(1000):
            _core.gram(X.core_view(), None, out, "laplacian", np.ones(1), report=report)

    with pytest.raises(RuntimeError, match="enough"):
        run()
    assert all(0.0 <= fraction <= 1.0 for fraction in seen)


def test_unit_diagonal_is_the_kernel_of_a_point_with_itself(make_mixtures):
    X = make_mixtures()
    K, unit = expected_kernel(X, gamma=0.3), expected_kernel(X, gamma=0.3, diagonal="unit")
    np.fill_diagonal(K, 1.0)
    np.testing.assert_array_equal(unit, K)


# -- bandwidths ----------------------------------------------------------------------------------


def total_moments(X):
    """Return the mean and the trace of the covariance of each mixture, from the definition."""
    means, traces = [], []
    for weights, components in X:
        each = components.mean.astype(np.float64)
        mean = weights @ each
        second = components.covariances.to_full() + np.einsum("ai,aj->aij", each, each)
        means.append(mean)
        traces.append(np.trace(np.tensordot(weights, second, 1) - np.outer(mean, mean)))
    return np.array(means), np.array(traces)


@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_moments_are_those_of_the_whole_mixture(make_mixtures, kind, dtype):
    X = make_mixtures(kind, dtype=dtype)
    for value, expected in zip(X.moments(), total_moments(X), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


@each("kind", COVARIANCE_KINDS)
def test_scale_counts_the_spread_within_mixtures(make_mixtures, kind):
    X = make_mixtures(kind)
    means, traces = total_moments(X)
    gamma = 1 / (D * (means.var() + traces.mean() / D))
    np.testing.assert_allclose(expected_kernel(X), expected_kernel(X, gamma=gamma), rtol=1e-11)


@each("kind", COVARIANCE_KINDS)
def test_median_gamma_counts_the_spread_within_mixtures(make_mixtures, kind):
    X = make_mixtures(kind)
    means, traces = total_moments(X)
    distances = [
        np.sum((means[i] - means[j]) ** 2) + traces[i] + traces[j]
        for i in range(len(X))
        for j in range(i)
    ]
    assert median_gamma(X) == pytest.approx(1 / np.median(distances), rel=1e-11)
    assert median_gamma(X, max_samples=5, random_state=0) > 0.0


# -- the container -------------------------------------------------------------------------------


@each("kind", COVARIANCE_KINDS)
@each("rows", [slice(1, 4), slice(None, None, 2), [3, 0, 3], COUNTS > 1, slice(5, 5), [-1]])
def test_selected_rows_keep_their_components_and_weights(make_mixtures, kind, rows):
    X = make_mixtures(kind)
    chosen = X[rows]
    index = np.arange(len(X))[rows]
    assert type(chosen) is GaussianMixtures
    assert chosen.shape == (len(index), D)
    for i, (weights, components) in zip(index, chosen, strict=True):
        own = slice(X.offsets[i], X.offsets[i + 1])
        np.testing.assert_array_equal(weights, X.weights[own])
        np.testing.assert_array_equal(components.mean, X.components.mean[own])
        np.testing.assert_array_equal(
            components.covariances.to_full(), X.components.covariances[own].to_full()
        )
    K = expected_kernel(X, gamma=0.3)
    np.testing.assert_allclose(
        expected_kernel(chosen, X, gamma=0.3), K[index], rtol=1e-12, atol=1e-15
    )


def test_joined_mixtures_are_those_of_the_parts(make_mixtures):
    X, Z = make_mixtures("diagonal"), make_mixtures("low_rank")
    joined = GaussianMixtures.concatenate([X[:3], Z, X[3:]])
    assert len(joined) == len(X) + len(Z)
    options = {"gamma": 0.3}
    K = np.concatenate([expected_kernel(part, X, **options) for part in (X[:3], Z, X[3:])])
    np.testing.assert_allclose(expected_kernel(joined, X, **options), K, rtol=1e-12)
    with pytest.raises(TypeError, match=r"parts\[1\] is Gaussians, expected GaussianMixtures"):
        GaussianMixtures.concatenate([X, X.components])
    with pytest.raises(ValueError, match="parts is empty"):
        GaussianMixtures.concatenate([])


def test_pickling_keeps_everything(make_mixtures):
    X = make_mixtures("ragged")
    again = pickle.loads(pickle.dumps(X))
    assert repr(again) == repr(X)
    np.testing.assert_array_equal(again.offsets, X.offsets)
    np.testing.assert_array_equal(expected_kernel(again), expected_kernel(X))


def test_mixtures_cannot_be_changed_or_taken_for_an_array(make_mixtures):
    X = make_mixtures()
    with pytest.raises(AttributeError, match="immutable"):
        X.weights = None
    with pytest.raises(ValueError, match="read-only"):
        X.weights[0] = 1.0
    with pytest.raises(TypeError, match="not one array; expected_kernel, UncertainKernelSVC"):
        np.asarray(X)


def test_an_array_of_components_is_a_bag_of_points():
    points = np.arange(12.0).reshape(6, 2)
    X = GaussianMixtures(points, np.full(6, 1 / 3), 3)
    K = expected_kernel(points, gamma=0.1)
    np.testing.assert_allclose(
        expected_kernel(X, gamma=0.1), K.reshape(2, 3, 2, 3).mean(axis=(1, 3)), rtol=1e-13
    )


def test_weights_are_divided_by_their_sum():
    X = GaussianMixtures(np.zeros((3, 2)), np.float32([0.1, 0.2, 0.7]), 3)
    assert X.weights.dtype == np.float64
    assert X.weights.sum() == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_fitted_models_of_scikit_learn_become_mixtures(covariance_type):
    rng = np.random.default_rng(0)
    models = [
        GaussianMixture(count, covariance_type=covariance_type, random_state=0).fit(
            rng.normal(size=(60, 3)) * (1, 2, 3)
        )
        for count in (2, 1, 3)
    ]
    X = GaussianMixtures.from_sklearn(models)
    kinds = {"full": "full", "tied": "full", "diag": "diagonal", "spherical": "isotropic"}
    assert X.components.covariances.kind == kinds[covariance_type]
    points = rng.normal(size=(200, 3))
    for (weights, components), fitted in zip(X, models, strict=True):
        density = np.zeros(200)
        for weight, (mean, S) in zip(weights, components, strict=True):
            apart = points - mean
            quadratic = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(S), apart)
            density += weight * np.exp(-quadratic / 2) / np.sqrt(np.linalg.det(2 * np.pi * S))
        np.testing.assert_allclose(np.log(density), fitted.score_samples(points), rtol=1e-9)
    other = BayesianGaussianMixture(
        n_components=2, covariance_type=covariance_type, max_iter=1000, random_state=0
    ).fit(points)
    weights, components = GaussianMixtures.from_sklearn([*models, other])[3]
    np.testing.assert_array_equal(components.mean, other.means_)
    np.testing.assert_allclose(weights, other.weights_, rtol=1e-14)


@pytest.mark.parametrize(
    ("weights", "n_components", "error", "message"),
    [
        ([0.5, -0.5, 1.0], [2, 1], ValueError, r"weights row 1 is -0.5; it must be >= 0"),
        ([0.5, np.nan, 1.0], [2, 1], ValueError, "weights row 1 is nan"),
        ([0.5, 0.5, 0.9], [2, 1], ValueError, "weights of mixture 1 have the sum 0.9; it must be"),
        ([0.5, 0.5], [2, 1], ValueError, r"weights has shape \(2,\), expected \(3,\)"),
        (np.ones(3), [2, 2], ValueError, "n_components sum to 4, components has 3 rows"),
        (np.ones(3), [3, 0], ValueError, "n_components: row 1 is 0; it must be at least 1"),
        (np.ones(3), 2, ValueError, "components has 3 rows, which 2 does not divide"),
        (np.ones(3), 0, ValueError, "n_components must be at least 1, got 0"),
        (
            np.ones(3),
            [2**62] * 4,
            ValueError,
            "n_components: row 0 is 4.6.*; components has 3 rows",
        ),
        (np.ones(3), [1.0, 2.0], TypeError, "n_components must be integers"),
        (np.ones(3), [[1, 2]], ValueError, r"n_components has shape \(1, 2\)"),
        (["a"] * 3, 1, TypeError, "weights has dtype"),
    ],
)
def test_bad_mixtures_are_refused(weights, n_components, error, message):
    with pytest.raises(error, match=message):
        GaussianMixtures(np.zeros((3, 2)), weights, n_components)


def test_bad_models_are_refused():
    with pytest.raises(TypeError, match=r"models\[0\] is not a fitted mixture model"):
        GaussianMixtures.from_sklearn([GaussianMixture()])
    with pytest.raises(ValueError, match="models is empty"):
        GaussianMixtures.from_sklearn([])
    with pytest.raises(TypeError, match="models must be a sequence, one model for each example"):
        GaussianMixtures.from_sklearn(GaussianMixture())
    fitted = [GaussianMixture(1).fit(np.random.default_rng(0).normal(size=(9, d))) for d in (2, 3)]
    with pytest.raises(ValueError, match=r"models\[1\] has 3 features, models\[0\] has 2"):
        GaussianMixtures.from_sklearn(fitted)


def test_no_rows_make_an_empty_matrix():
    none = GaussianMixtures(np.zeros((0, 2)), [], [])
    assert expected_kernel(none, np.zeros((3, 2)), gamma=1.0).shape == (0, 3)
    assert repr(none).startswith("GaussianMixtures(n_samples=0, n_features=2")


# -- UncertainKernelSVC --------------------------------------------------------------------------


@pytest.fixture
def problem(make_gaussians):
    """Return mixtures of two components about the means of two classes, and the labels."""
    around, y = make_gaussians("diagonal", n=80, d=D, gap=1.5)
    rng = np.random.default_rng(0)
    order = np.repeat(np.arange(80), 2)
    mean = around.mean[order] + 0.5 * rng.normal(size=(160, D))
    components = Gaussians(mean, cov=around.covariances[order])
    return GaussianMixtures(components, np.tile([0.3, 0.7], 80), 2), y


def test_kernel_machine_on_mixtures_uses_their_gram_matrix(problem):
    X, y = problem
    model = UncertainKernelSVC(gamma=0.3, tol=1e-9).fit(X, y)
    support = model.support_gaussians_
    assert type(support) is GaussianMixtures
    np.testing.assert_array_equal(support.weights, X[model.support_].weights)
    K = expected_kernel(X, X[model.support_], gamma=0.3)
    np.testing.assert_allclose(
        model.decision_function(X), K @ model.dual_coef_[0] + model.intercept_, rtol=1e-10
    )
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, 1, -1))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_models_of_mixtures_and_of_gaussians_take_both(problem):
    X, y = problem
    components, weights = X.components, X.weights.reshape(80, 2)
    model = UncertainKernelSVC(gamma=0.3).fit(components[::2], y)
    by_component = model.decision_function(components).reshape(80, 2)
    np.testing.assert_allclose(
        model.decision_function(X), (weights * by_component).sum(axis=1), rtol=1e-10
    )
    model = UncertainKernelSVC(gamma=0.3).fit(X, y)
    single = GaussianMixtures(components, np.ones(160), 1)
    np.testing.assert_array_equal(
        model.decision_function(components), model.decision_function(single)
    )


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_mixtures_pass_through_the_searches_of_scikit_learn(problem):
    X, y = problem
    scores = cross_val_score(UncertainKernelSVC(), X, y, cv=3)
    assert scores.mean() > 0.8
    search = GridSearchCV(UncertainKernelSVC(), {"gamma": [1e-4, 0.3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"gamma": 0.3}


def test_errors_beside_mixtures_and_other_features_are_refused(problem):
    X, y = problem
    with pytest.raises(ValueError, match="X_std is given, but X is GaussianMixtures"):
        UncertainKernelSVC().fit(X, y, X_std=np.ones(80))
    model = UncertainKernelSVC().fit(X, y)
    wider = GaussianMixtures(np.zeros((2, D + 1)), [0.5, 0.5], 2)
    with pytest.raises(ValueError, match=f"X has {D + 1} features, but UncertainKernelSVC"):
        model.predict(wider)
