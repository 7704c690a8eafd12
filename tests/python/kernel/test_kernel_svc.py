"""UncertainKernelSVC against scikit-learn's SVC, the dual problem's conditions, and Monte Carlo."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from cases import KINDS, each
from estimator_checks import pass_checks
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from halosvm import Covariances, Gaussians, UncertainKernelSVC, expected_kernel
from halosvm.kernel import expansions, training_gram
from halosvm.kernel.expected_kernel import ExpectedKernel


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        UncertainKernelSVC(),
        UncertainKernelSVC(kernel="laplacian", n_threads=1, normalize=True),
    ],
    ids=repr,
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(scope="module")
def sets(heart):
    """Return means and labels of real data sets."""
    cancer = load_breast_cancer()
    return {
        "heart_scale": heart,
        "breast cancer": (StandardScaler().fit_transform(cancer.data), cancer.target),
        "iris": load_iris(return_X_y=True),
    }


@pytest.mark.parametrize("name", ["heart_scale", "breast cancer", "iris"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_certain_examples_give_the_model_of_scikit_learn(sets, name, kernel):
    X, y = sets[name]
    Z = X.mean(axis=0) + X.std(axis=0) * np.random.default_rng(0).normal(size=(80, X.shape[1]))
    options = {"kernel": kernel, "gamma": 0.05, "C": 2.0, "tol": 1e-9, "degree": 2, "coef0": 1.0}
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    for sample_weight in (None, weights):
        model = UncertainKernelSVC(**options).fit(X, y, sample_weight=sample_weight)
        plain = SVC(**options).fit(X, y, sample_weight=sample_weight)
        for points in (X, Z):
            np.testing.assert_allclose(
                model.decision_function(points), plain.decision_function(points), atol=1e-6
            )
            np.testing.assert_array_equal(model.predict(points), plain.predict(points))
        np.testing.assert_array_equal(model.support_gaussians_.mean, X[model.support_])


def test_examples_of_weight_zero_count_as_absent(make_gaussians):
    X, y = make_gaussians("diagonal", n=60, d=4)
    weights = np.arange(60) % 4 * 1.0
    used = np.flatnonzero(weights)
    one = UncertainKernelSVC(tol=1e-9).fit(X, y, sample_weight=weights)
    other = UncertainKernelSVC(tol=1e-9).fit(X[used], y[used], sample_weight=weights[used])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.support_gaussians_.mean, X.mean[one.support_])


def test_class_weights_multiply_c(heart):
    X, y = heart
    weight = {-1: 3.0, 1: 0.5}
    one = UncertainKernelSVC(gamma=0.1, tol=1e-9, class_weight=weight).fit(X, y)
    each = np.where(y > 0, 0.5, 3.0)
    other = UncertainKernelSVC(gamma=0.1, tol=1e-9).fit(X, y, sample_weight=each)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-7)


def test_balanced_class_weights_count_a_weight_as_repetitions(make_gaussians):
    X, y = make_gaussians("diagonal", n=60, d=4)
    times = np.where(y > 0, np.arange(60) % 4, 1)
    again = np.repeat(np.arange(60), times)
    options = {"gamma": 0.4, "tol": 1e-9, "class_weight": "balanced"}
    one = UncertainKernelSVC(**options).fit(X, y, sample_weight=times)
    other = UncertainKernelSVC(**options).fit(X[again], y[again])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)


@each("kind", KINDS)
@each("diagonal", ["product", "unit"])
def test_model_meets_the_conditions_of_the_dual_problem(make_gaussians, kind, diagonal):
    X, y = make_gaussians(kind, n=60, d=4)
    C = 3.0
    model = UncertainKernelSVC(C=C, gamma=0.4, tol=1e-10, diagonal=diagonal).fit(X, y)
    alpha = np.zeros(60)
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    assert ((alpha >= 0) & (alpha <= C)).all()
    assert abs(alpha @ y) < 1e-9
    # The dual solver holds kernel values in float32, an error of 6e-8 of the sum of all alpha each.
    margin = y * (expected_kernel(X, gamma=0.4, diagonal=diagonal) @ (alpha * y) + model.intercept_)
    assert (margin[alpha == 0] >= 1 - 3e-6).all()
    assert (margin[alpha == C] <= 1 + 3e-6).all()
    np.testing.assert_allclose(margin[(alpha > 0) & (alpha < C)], 1.0, atol=3e-6)


@pytest.mark.parametrize("diagonal", ["product", "unit"])
def test_predictions_use_the_product_formula_even_on_training_examples(make_gaussians, diagonal):
    X, y = make_gaussians("full", n=50, d=4)
    model = UncertainKernelSVC(gamma=0.4, diagonal=diagonal).fit(X, y)
    K = expected_kernel(X, X[model.support_], gamma=0.4)
    expected = K @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-10, atol=1e-12)


def test_decision_value_of_an_uncertain_example_is_the_mean_over_its_points(make_gaussians):
    X, y = make_gaussians("diagonal", n=60, d=4)
    model = UncertainKernelSVC(C=5.0, gamma=0.4).fit(X, y)
    rng, n_draws = np.random.default_rng(0), 40_000
    for mean, covariance in (X[i] for i in range(5)):
        values = model.decision_function(
            rng.multivariate_normal(mean, covariance, n_draws), X_std=0
        )
        value = model.decision_function(mean[None], X_cov=covariance[None])[0]
        assert abs(value - values.mean()) <= 4 * values.std() / np.sqrt(n_draws)


def test_several_classes_vote_as_in_scikit_learn(make_gaussians):
    X, _ = make_gaussians("low_rank", n=90, d=4)
    y = np.array(["a", "b", "c", "d"])[np.arange(90) % 4]
    model = UncertainKernelSVC(gamma=0.4, tol=1e-9).fit(X, y)
    K = expected_kernel(X, gamma=0.4)
    plain = SVC(kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(K))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(K), atol=1e-9)


def test_decision_values_and_spreads_of_pairs_stand_beside_each_other(make_gaussians):
    X, _ = make_gaussians("diagonal", n=90, d=4)
    y = np.arange(90) % 4
    model = UncertainKernelSVC(gamma=0.4, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    K = expected_kernel(X, gamma=0.4)
    plain = SVC(kernel="precomputed", tol=1e-9, decision_function_shape="ovo").fit(K, y)
    values = model.decision_function(X)
    assert values.shape == model.decision_std(X).shape == (90, 6)
    np.testing.assert_allclose(values, plain.decision_function(K), atol=1e-9)
    plain.set_params(decision_function_shape="ovr", break_ties=True)
    np.testing.assert_array_equal(model.predict(X), plain.predict(K))
    rng, (mean, covariance) = np.random.default_rng(0), X[0]
    draws = model.decision_function(rng.multivariate_normal(mean, covariance, 20_000), X_std=0)
    np.testing.assert_allclose(model.decision_std(X[:1])[0], draws.std(axis=0), rtol=0.05)
    two = UncertainKernelSVC(gamma=0.4, decision_function_shape="ovo").fit(X, y > 1)
    assert two.decision_function(X).shape == (90,)


@pytest.mark.parametrize(("kernel", "huge"), [("poly", 1e120), ("linear", 1e149)])
def test_decision_values_that_overflow_are_refused(make_gaussians, kernel, huge):
    X, y = make_gaussians("diagonal", n=40, d=4)
    model = UncertainKernelSVC(kernel=kernel).fit(X, y)
    model.dual_coef_ *= 1e200 if kernel == "linear" else 1.0
    message = "X: row 1 is so large that" if kernel == "linear" else "the poly kernel overflows"
    for function in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=message):
            function([[0.0] * 4, [huge] * 4], X_std=0)


def test_errors_can_be_given_beside_the_means(make_gaussians):
    X, y = make_gaussians("diagonal_std", n=60, d=4)
    std = X.covariances.values
    one = UncertainKernelSVC().fit(X, y)
    other = UncertainKernelSVC().fit(X.mean, y, X_std=std)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    values = one.decision_function(X)
    np.testing.assert_array_equal(values, other.decision_function(X.mean, X_std=std))
    np.testing.assert_array_equal(one.predict(X), other.predict(X.mean, X_std=std))
    assert (values != one.decision_function(X.mean, X_std=0)).any()


def test_score_counts_the_errors_that_it_is_given(make_gaussians):
    X, y = make_gaussians("diagonal_std", n=60, d=4)
    std = 10.0 * X.covariances.values
    model = UncertainKernelSVC(C=10.0, gamma=0.4).fit(X, y)
    weights = np.arange(60.0)
    right = model.predict(X.mean, X_std=std) == y
    assert (right != (model.predict(X.mean, X_std=0) == y)).any()
    assert model.score(X.mean, y, X_std=std) == right.mean()
    assert model.score(X.mean, y, X_cov=std**2) == right.mean()
    expected = pytest.approx(np.average(right, weights=weights))
    assert model.score(X.mean, y, weights, X_std=std) == expected
    assert model.score(Gaussians(X.mean, std=std), y) == right.mean()


def test_predictions_in_blocks_are_those_of_the_whole(make_gaussians, monkeypatch):
    X, y = make_gaussians("diagonal", n=70, d=4)
    model = UncertainKernelSVC().fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(expansions, "_BLOCK", 16 * len(model.support_))
    np.testing.assert_allclose(model.decision_function(X), whole, rtol=1e-12, atol=1e-13)


def test_only_support_examples_are_kept_through_pickling(make_gaussians):
    X, y = make_gaussians("diagonal", n=300, d=2, gap=6.0)
    model = UncertainKernelSVC(C=10.0).fit(X, y)
    assert len(model.support_gaussians_) == len(model.support_) < 100
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert len(pickle.dumps(model)) < len(pickle.dumps(X))


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_gaussians(make_gaussians):
    X, y = make_gaussians("diagonal", n=90, d=4, gap=2.0)
    search = GridSearchCV(UncertainKernelSVC(), {"gamma": [1e-4, 0.3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"gamma": 0.3}
    assert search.score(X, y) > 0.8


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_a_search_over_c_computes_each_gram_matrix_once(make_gaussians, monkeypatch, tmp_path):
    X, y = make_gaussians("diagonal", n=60, d=4)
    computed = []

    def count(kernel, X, Y=None, **options):
        if Y is None:
            computed.append(len(X))
        return gram(kernel, X, Y, **options)

    gram = ExpectedKernel.gram
    monkeypatch.setattr(ExpectedKernel, "gram", count)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    plain = GridSearchCV(UncertainKernelSVC(), grid, cv=3).fit(X, y)
    assert len(computed) == 3 * 2 * 3 + 1
    mapped = joblib.Memory(tmp_path / "mapped", mmap_mode="r", verbose=0)
    for memory, new in ((str(tmp_path), 7), (str(tmp_path), 0), (mapped, 7), (mapped, 0)):
        computed.clear()
        search = GridSearchCV(UncertainKernelSVC(memory=memory), grid, cv=3).fit(X, y)
        assert sorted(computed) == ([40] * 6 + [60])[:new]
        for key in ("mean_test_score", "std_test_score"):
            np.testing.assert_array_equal(search.cv_results_[key], plain.cv_results_[key])


@pytest.mark.parametrize(
    "change", [{"kernel": "linear"}, {"kernel": "poly"}, {"normalize": True}, {"gamma": 9.0}]
)
def test_parameters_set_after_the_fit_do_not_change_its_predictions(make_gaussians, change):
    X, y = make_gaussians("diagonal", n=40, d=4)
    model = UncertainKernelSVC(gamma=0.3).fit(X, y)
    values, spreads = model.decision_function(X), model.decision_std(X)
    model.set_params(**change)
    np.testing.assert_array_equal(model.decision_function(X), values)
    np.testing.assert_array_equal(model.decision_std(X), spreads)


def test_memory_may_be_a_path(make_gaussians, tmp_path):
    X, y = make_gaussians("diagonal", n=40, d=4)
    UncertainKernelSVC(memory=tmp_path).fit(X, y)
    assert list(tmp_path.rglob("output.pkl"))


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_a_cached_gram_matrix_belongs_to_its_examples_and_its_kernel(make_gaussians, tmp_path):
    X, y = make_gaussians("diagonal", n=40, d=4)
    other = Gaussians(X.mean, variance=2.0 * X.covariances.values)
    for data in (X, other):
        for options in (
            {"gamma": 0.3},
            {"gamma": 0.3, "diagonal": "unit"},
            {"gamma": 0.3, "level2": "gaussian"},
            {"gamma": 0.3, "normalize": True},
            {"gamma": 0.3, "kernel": "laplacian"},
            {"gamma": 0.3, "kernel": "poly"},
            {"gamma": 0.3, "kernel": "poly", "coef0": 2.0},
            {"gamma": 0.3, "kernel": "poly", "degree": 2},
        ):
            cached = UncertainKernelSVC(memory=str(tmp_path), n_threads=1, **options).fit(data, y)
            plain = UncertainKernelSVC(**options).fit(data, y)
            np.testing.assert_array_equal(cached.dual_coef_, plain.dual_coef_)


def test_a_gram_matrix_beyond_memory_is_refused_before_anything_is_computed(monkeypatch):
    X = Gaussians(np.zeros((1000, 2)), cov=Covariances.zero(1000, 2))
    monkeypatch.setattr(training_gram, "free_memory", lambda: 7.9e6)
    monkeypatch.setattr(ExpectedKernel, "gram", lambda *a, **b: pytest.fail("computed"))
    model = UncertainKernelSVC()
    advice = r"at most 993 rows fit: train on a part of the rows, or use UncertainSVC"
    with pytest.raises(
        MemoryError, match=rf"X has 1000 rows: .* 0\.008 GB, and 0\.0079 GB.*{advice}"
    ):
        model.fit(X, np.arange(1000) % 2)
    assert not hasattr(model, "n_features_in_")


def test_a_failed_fit_leaves_the_model_as_it_was(make_gaussians):
    X, y = make_gaussians("diagonal", n=60, d=4)
    model = UncertainKernelSVC().fit(X, y)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="gamma is -1"):
        model.set_params(gamma=-1.0).fit(X, y)
    model.set_params(gamma="scale")
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[key] is before[key] for key in before)


def test_an_early_end_warns(make_gaussians):
    X, y = make_gaussians("diagonal", n=60, d=4)
    with pytest.warns(ConvergenceWarning):
        UncertainKernelSVC(max_iter=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert UncertainKernelSVC(max_iter=2).fit(X, y).n_iter_ == 2
    assert clone(UncertainKernelSVC(max_iter=2)).max_iter == 2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [10, 100])
def test_fit_of_kernels_too_large_for_the_solver_ends_and_says_so(offset, n_classes):
    """Cubes of data around 100 are 1e12, and differ by less than single precision tells."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = offset + rng.normal(size=(60, 3)) + y[:, np.newaxis]
    with pytest.warns(ConvergenceWarning, match="^the dual solver ended .*standardise the feature"):
        model = UncertainKernelSVC(kernel="poly").fit(X, y, X_std=np.full(60, 0.2))
    assert model.n_iter_ <= 1_000_000 + 100 * 60
    UncertainKernelSVC(kernel="poly", max_iter=-1).fit(X - offset, y, X_std=np.full(60, 0.2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "RBF"}, ValueError, "kernel must be one of rbf, .*; got 'RBF'"),
        ({"C": -1.0}, ValueError, "^C must be positive, got -1"),
        ({"C": np.nan}, ValueError, "^C must be positive, got nan"),
        ({"C": True}, TypeError, "^C must be a number, got True"),
        ({"tol": 0.0}, ValueError, "^tol must be positive and finite, got 0"),
        ({"max_iter": 0}, ValueError, "^max_iter must be >= 1, got 0"),
        ({"max_iter": 2.0}, TypeError, "^max_iter must be an integer, got 2.0"),
        ({"cache_size": "1"}, TypeError, "^cache_size must be a number, got '1'"),
        ({"n_threads": 0}, ValueError, "^n_threads must be >= 1, got 0"),
        ({"decision_function_shape": "OVO"}, ValueError, "^decision_function_shape must be one of"),
        ({"class_weight": {1: np.nan}}, ValueError, "^class_weight of class 1 is nan"),
        ({"class_weight": {1: -1.0}}, ValueError, "^class_weight of class 1 is -1"),
        ({"diagonal": "none"}, ValueError, "diagonal must be one of"),
    ],
)
def test_bad_parameters_are_refused(make_gaussians, options, error, message):
    X, y = make_gaussians("diagonal", n=20, d=4)
    with pytest.raises(error, match=message):
        UncertainKernelSVC(**options).fit(X, y)
