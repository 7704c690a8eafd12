"""UncertainKernelSVC in place of `SVC`: attributes, kernels and limits that users find there."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from halosvm import GaussianMixtures, Gaussians, UncertainKernelSVC, expected_kernel

N = 60


@pytest.fixture(scope="module")
def iris():
    """Return three classes that overlap, and errors of their values."""
    X, y = load_iris(return_X_y=True)
    return X[:, :3], np.random.default_rng(0).uniform(0, 0.3, (len(X), 3)), y


def both(X, y, **options):
    return UncertainKernelSVC(**options).fit(X, y), SVC(**({"tol": 1e-7} | options)).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_attributes_of_the_linear_kernel_are_those_of_svc(iris, n_classes):
    X, _, y = iris
    X, y = X[y < n_classes], y[y < n_classes]
    ours, theirs = both(X, y, kernel="linear")
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="read-only"):
        ours.coef_[0, 0] = 1.0
    assert not hasattr(UncertainKernelSVC().fit(X, y), "coef_")


def test_the_linear_coefficients_of_mixtures_make_their_decision_values(iris):
    X, std, y = iris
    components = Gaussians(np.repeat(X, 2, axis=0), std=np.repeat(std, 2, axis=0))
    parts = GaussianMixtures(components, np.full(len(components), 0.5), n_components=2)
    model = UncertainKernelSVC(kernel="linear", decision_function_shape="ovo").fit(parts, y)
    np.testing.assert_allclose(
        X @ model.coef_.T + model.intercept_, model.decision_function(parts), atol=1e-9
    )


@pytest.mark.parametrize("options", [{"gamma": "auto"}, {"kernel": "poly", "degree": 2}], ids=repr)
def test_defaults_of_the_kernel_are_those_of_svc(iris, options):
    X, _, y = iris
    ours, theirs = both(X, y, **options)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_an_infinite_c_is_a_hard_margin(iris):
    X, std, y = iris
    X, std, y = X[y < 2], std[y < 2] / 10, y[y < 2]
    model = UncertainKernelSVC(C=np.inf, kernel="linear").fit(X, y, X_std=std)
    assert np.min(np.where(y > 0, 1, -1) * model.decision_function(X, X_std=0)) == pytest.approx(
        1, abs=1e-5
    )


def test_decisions_follow_changes_of_the_dual_coefficients(iris):
    X, _, y = iris
    model = UncertainKernelSVC(decision_function_shape="ovo").fit(X, y)
    before = model.decision_function(X)
    model.dual_coef_ = 2.0 * model.dual_coef_
    np.testing.assert_allclose(
        model.decision_function(X) - model.intercept_, 2 * (before - model.intercept_), atol=1e-12
    )


def test_a_gram_matrix_gives_the_model_of_its_kernel(iris):
    X, std, y = iris
    examples, train = Gaussians(X, std=std), np.arange(len(y)) % 3 > 0
    K = expected_kernel(examples[train], gamma=0.5)
    across = expected_kernel(examples[~train], examples[train], gamma=0.5)
    weights = np.where(np.arange(train.sum()) % 7 == 0, 0.0, 1.0)
    ours = UncertainKernelSVC(gamma=0.5).fit(examples[train], y[train], weights)
    given = UncertainKernelSVC(kernel="precomputed").fit(K, y[train], weights)
    np.testing.assert_array_equal(given.support_, ours.support_)
    np.testing.assert_allclose(
        given.decision_function(across), ours.decision_function(examples[~train]), atol=1e-9
    )
    assert given.support_vectors_.shape == (0, 0)


def test_cross_validation_slices_a_gram_matrix_on_both_sides(iris):
    X, std, y = iris
    examples = Gaussians(X, std=std)
    K = expected_kernel(examples, gamma=0.5)
    np.testing.assert_array_equal(
        cross_val_score(UncertainKernelSVC(kernel="precomputed"), K, y, error_score="raise"),
        cross_val_score(UncertainKernelSVC(gamma=0.5), examples, y),
    )


def test_a_function_gets_arrays_of_certain_examples_and_else_gaussians(iris):
    X, std, y = iris
    seen = []

    def kernel(A, B):
        seen.append((type(A), type(B)))
        if isinstance(A, np.ndarray):
            return rbf_kernel(A, B, gamma=0.5)
        return expected_kernel(A, B, gamma=0.5)

    for errors in ({}, {"X_std": std}):
        given = UncertainKernelSVC(kernel=kernel).fit(X, y, **errors)
        ours = UncertainKernelSVC(gamma=0.5).fit(X, y, **errors)
        np.testing.assert_allclose(
            given.decision_function(X, X_std=0), ours.decision_function(X, X_std=0), atol=1e-6
        )
    assert seen[0] == seen[1] == (np.ndarray, np.ndarray)
    assert seen[2] == seen[3] == (Gaussians, Gaussians)


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"kernel": "precomputed"}, {}, r"X has shape \(60, 3\); .* must be a square matrix"),
        ({"kernel": "precomputed"}, {"X_std": np.ones(N)}, "X, which have no errors; expected_k"),
        ({"kernel": "precomputed", "normalize": True}, {}, "normalize, level2 and diagonal are of"),
        (
            {"kernel": lambda A, B: A @ A[:5].T},
            {},
            r"kernel returned shape \(60, 5\) for 60 and 60",
        ),
        ({"kernel": "cosine"}, {}, "kernel must be one of rbf"),
        ({"C": 0.0}, {}, "C must be positive, got 0.0"),
        ({"gamma": "best"}, {}, "gamma must be 'scale', 'auto', a number or an array"),
    ],
)
def test_kernels_that_make_no_sense(options, fit, message):
    X, y = np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2
    with pytest.raises(ValueError, match=message):
        UncertainKernelSVC(**options).fit(X, y, **fit)


def test_a_function_has_no_spread_in_closed_form(iris):
    X, _, y = iris
    model = UncertainKernelSVC(kernel=linear_kernel).fit(X, y)
    with pytest.raises(ValueError, match="kernel of your own has no closed form"):
        model.decision_std(X)


def test_a_machine_that_predicts_one_class_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 2)), (np.arange(N) % 10 == 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="only the class 0 is predicted of all training"):
        model = UncertainKernelSVC(C=0.01).fit(X, y, X_std=np.full(N, 3.0))
    assert not model.predict(X, X_std=0).any()


def test_labels_are_those_of_the_largest_decision_value():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 4, 200)  # many ties of votes
    model = UncertainKernelSVC(gamma=1.0).fit(X, y)
    Z = rng.normal(size=(500, 2))
    np.testing.assert_array_equal(model.predict(Z), model.decision_function(Z).argmax(axis=1))
