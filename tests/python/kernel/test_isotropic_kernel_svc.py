"""IsotropicKernelSVC against SVC, UncertainSVC, SciPy, and a bound from the dual problem."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from cases import DTYPES, each
from estimator_checks import pass_checks
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import SVC

from halosvm import (
    Covariances,
    Gaussians,
    IsotropicKernelSVC,
    UncertainSVC,
    expected_kernel,
    reference,
)
from halosvm.kernel import expansions, training_gram
from halosvm.kernel.expected_kernel import ExpectedKernel

GAMMA = 1.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        IsotropicKernelSVC(),
        IsotropicKernelSVC(kernel="laplacian", solver="interior_point", n_threads=1),
        IsotropicKernelSVC(kernel="poly", degree=2, class_weight="balanced"),
    ],
    ids=repr,
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(scope="module")
def moons():
    """Return points of two classes, labels -1 and 1, and standard deviations, some of them 0."""
    X, y = make_moons(90, noise=0.3, random_state=0)
    sigma = np.random.default_rng(1).uniform(0.0, 0.4, 90)
    sigma[::9] = 0.0
    return X, 2 * y - 1, sigma


def objective(K, y, sigma, alpha, b, lam, weights=None):
    """Return J of w = sum alpha_j phi(x_j), and what the dual bound needs: c, theta, pdf/s."""
    c = np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum()
    square = max(alpha @ K @ alpha, 0.0)
    m, s = 1.0 - y * (K @ alpha + b), sigma * np.sqrt(square)
    value = 0.5 * lam * square + c @ reference.expected_hinge(m, s)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(s > 0, m / s, np.sign(m) * np.inf)
        slope = np.where(s > 0, norm.pdf(z) / s, 0.0)
    return value, c, ndtr(z), slope


def dual_bound(K, y, sigma, alpha, b, lam, weights=None):
    """Return a lower bound of min J in the feature space, from the given point (spec A.8)."""
    _, c, theta, slope = objective(K, y, sigma, alpha, b, lam, weights)
    mass = np.array([(c * theta)[y < 0].sum(), (c * theta)[y > 0].sum()])
    share = np.where(y > 0, *(mass.min() / mass)[::-1])  # so that sum c y theta = 0
    shrink = share * c * slope * sigma**2
    beta = (share * c * y * theta - shrink.sum() * alpha) / lam
    return (share * c) @ theta - 0.5 * lam * beta @ K @ beta


def coefficients(model, n):
    """Return the coefficients of all training examples."""
    alpha = np.zeros(n)
    alpha[model.support_] = model.dual_coef_[0]
    return alpha


# -- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_bound_of_the_dual_problem_confirms_the_optimum(moons, kernel):
    X, y, sigma = moons
    sigma = sigma + 0.05  # certain examples at the kink have no theta of their own
    K = expected_kernel(X, kind=kernel, gamma=GAMMA)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 90)
    for C in (0.05, 1.0):
        lam = 1.0 / (C * weights.sum())
        model = IsotropicKernelSVC(C, kernel=kernel, gamma=GAMMA, tol=1e-8)
        model.fit(X, y, X_std=sigma, sample_weight=weights)
        point = coefficients(model, 90), model.intercept_[0], lam, weights
        value, bound = objective(K, y, sigma, *point)[0], dual_bound(K, y, sigma, *point)
        assert model.objective_ == pytest.approx(value, rel=1e-10)
        assert bound <= value * (1 + 1e-12)
        assert value <= bound * (1 + 2e-8)
        assert model.suboptimality_ <= 1e-8


def test_certain_examples_give_the_model_of_scikit_learn(moons):
    X, y, _ = moons
    Z = np.random.default_rng(0).normal(size=(50, 2))
    for options in ({"kernel": "rbf", "gamma": GAMMA}, {"kernel": "poly", "degree": 2}):
        plain = SVC(C=2.0, coef0=1.0, **{"gamma": 1.0, **options}, tol=1e-10).fit(X, y)
        model = IsotropicKernelSVC(C=2.0, **{"gamma": 1.0, **options}, tol=1e-11).fit(X, y)
        for points in (X, Z):
            # |w - w*|^2 <= 2 gap / lam; SVC rounds kernel values to float32.
            np.testing.assert_allclose(
                model.decision_function(points), plain.decision_function(points), atol=2e-4
            )


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "interior_point"])
def test_linear_kernel_is_the_linear_machine(make_gaussians, solver):
    X, y = make_gaussians("isotropic", n=60, d=4)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    options = {"C": 0.5, "tol": 1e-10, "class_weight": "balanced"}
    model = IsotropicKernelSVC(kernel="linear", solver=solver, **options)
    model.fit(X, y, sample_weight=weights)
    plain = UncertainSVC(**options).fit(X, y, sample_weight=weights)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    w = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(w, plain.coef_, atol=1e-4)
    np.testing.assert_allclose(model.decision_std(X), plain.decision_std(X), atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-4)


def test_direct_minimisation_over_the_coefficients_gets_no_lower(moons):
    X, y, sigma = (part[:24] for part in moons)
    sigma, lam = sigma + 0.1, 1.0 / 24
    K = expected_kernel(X, gamma=GAMMA)

    def value(u):
        return objective(K, y, sigma, u[:-1], u[-1], lam)[0]

    start = np.append(1e-3 * y, 0.0)
    found = minimize(value, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    model = IsotropicKernelSVC(gamma=GAMMA, tol=1e-9).fit(X, y, X_std=sigma)
    assert model.objective_ <= found.fun * (1 + 1e-9)
    assert model.objective_ == pytest.approx(found.fun, rel=1e-5)


def test_a_singular_gram_matrix_and_repeated_examples_are_weights(moons):
    X, y, sigma = moons
    times = np.random.default_rng(0).integers(0, 4, 90)
    rows = np.repeat(np.arange(90), times)
    for kernel in ("rbf", "poly", "linear"):
        options = {"kernel": kernel, "gamma": GAMMA, "tol": 1e-10}
        repeated = IsotropicKernelSVC(**options).fit(X[rows], y[rows], X_std=sigma[rows])
        weighted = IsotropicKernelSVC(**options).fit(X, y, X_std=sigma, sample_weight=times)
        assert repeated.objective_ == pytest.approx(weighted.objective_, rel=1e-9)
        np.testing.assert_allclose(
            repeated.decision_function(X), weighted.decision_function(X), atol=3e-4
        )
        assert set(weighted.support_) <= set(np.flatnonzero(times))


def pegasos(K, y, sigma, lam, steps, seed):
    """Return (alpha, b) after steps of stochastic gradient descent, an example each."""
    rng, alpha, b = np.random.default_rng(seed), np.zeros(len(y)), 0.0
    for t in range(1, steps + 1):
        i, eta = rng.integers(len(y)), 1.0 / (lam * t)
        s = sigma[i] * np.sqrt(alpha @ K @ alpha)
        m = 1.0 - y[i] * (K[i] @ alpha + b)
        theta = ndtr(m / s) if s > 0 else float(m > 0)
        shrink = norm.pdf(m / s) * sigma[i] ** 2 / s if s > 0 else 0.0
        alpha *= 1.0 - eta * (lam + shrink)
        alpha[i] += eta * y[i] * theta
        b += eta * y[i] * theta
    return alpha, b


def test_two_thousand_stochastic_steps_end_above_the_certified_optimum(moons):
    X, y, sigma = moons
    K, lam = expected_kernel(X, gamma=GAMMA), 1.0 / 90
    best = IsotropicKernelSVC(gamma=GAMMA).fit(X, y, X_std=sigma).objective_
    gaps = [
        objective(K, y, sigma, *pegasos(K, y, sigma, lam, 2000, seed), lam)[0] / best - 1.0
        for seed in range(5)
    ]
    assert all(1e-4 < gap < 1.0 for gap in gaps)


# -- predictions ---------------------------------------------------------------------------------


def test_decision_values_and_their_spread_are_those_of_the_expansion(moons):
    X, y, sigma = moons
    Z, tau = np.random.default_rng(0).normal(size=(20, 2)), np.linspace(0, 1, 20)
    model = IsotropicKernelSVC(gamma=GAMMA).fit(X, y, X_std=sigma)
    alpha = coefficients(model, 90)
    values = expected_kernel(Z, X, gamma=GAMMA) @ alpha + model.intercept_
    np.testing.assert_allclose(model.decision_function(Z), values, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(model.predict(Z), np.where(values > 0, 1, -1))
    spread = tau * np.sqrt(alpha @ expected_kernel(X, gamma=GAMMA) @ alpha)
    for options in ({"X_std": tau}, {"X_cov": tau**2}):
        np.testing.assert_allclose(model.decision_std(Z, **options), spread, rtol=1e-9)
    np.testing.assert_allclose(model.decision_std(Gaussians(Z, std=tau)), spread, rtol=1e-9)
    assert (model.decision_std(Z, X_std=0) == 0.0).all()


@each("dtype", DTYPES)
def test_errors_can_be_given_in_every_form_and_count(moons, dtype):
    X, y, sigma = moons
    X, sigma = X.astype(dtype), sigma.astype(dtype)
    model = IsotropicKernelSVC().fit(X, y, X_std=sigma)
    for arguments in (
        {"X": Gaussians(X, std=sigma)},
        {"X": X, "X_cov": Covariances.from_std(sigma, 2)},
        {"X": np.asfortranarray(X), "X_std": sigma},
    ):
        other = IsotropicKernelSVC().fit(y=y, **arguments)
        np.testing.assert_allclose(other.dual_coef_, model.dual_coef_, rtol=1e-6, atol=1e-9)
    plain = IsotropicKernelSVC().fit(X, y)
    assert np.abs(plain.decision_function(X) - model.decision_function(X)).max() > 0.1
    assert (plain.gamma_ == model.gamma_).all()  # errors are not in the unit of the features


def test_several_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    names, std = np.array(["a", "b", "c"])[y], np.full(150, 0.1)
    model = IsotropicKernelSVC(gamma=0.5, tol=1e-9).fit(X, names, X_std=std)
    values, spreads = model.decision_function(X), model.decision_std(X, X_std=std)
    assert values.shape == spreads.shape == (150, 3)
    for k, name in enumerate(model.classes_):
        one = IsotropicKernelSVC(gamma=0.5, tol=1e-9).fit(X, names == name, X_std=std)
        np.testing.assert_allclose(values[:, k], one.decision_function(X), atol=1e-3)
        np.testing.assert_allclose(spreads[:, k], one.decision_std(X, X_std=std), atol=1e-3)
        assert model.objective_[k] == pytest.approx(one.objective_, rel=1e-8)
    np.testing.assert_array_equal(model.predict(X), model.classes_[values.argmax(axis=1)])
    assert model.score(X, names) > 0.95


def test_errors_that_drown_the_classes_give_the_zero_model_and_a_warning(moons):
    X, y, _ = moons
    few = np.r_[np.flatnonzero(y > 0), np.flatnonzero(y < 0)[:5]]
    with pytest.warns(ConvergenceWarning, match="objective is least at w = 0"):
        model = IsotropicKernelSVC().fit(X[few], y[few], X_std=np.full(len(few), 50.0))
    assert len(model.support_) == 0
    assert (model.decision_function(X) == model.intercept_[0]).all()
    assert (model.decision_std(X, X_std=np.ones(90)) == 0.0).all()


def test_points_at_the_origin_of_the_feature_space_have_only_an_intercept():
    with pytest.warns(ConvergenceWarning, match="objective is least at w = 0"):
        model = IsotropicKernelSVC(kernel="linear").fit(np.zeros((5, 2)), [0, 1, 1, 1, 0])
    assert model.predict(np.ones((2, 2))).tolist() == [1, 1]


def test_predictions_in_blocks_are_those_of_the_whole(moons, monkeypatch):
    X, y, sigma = moons
    model = IsotropicKernelSVC().fit(X, y, X_std=sigma)
    whole = model.decision_function(X)
    monkeypatch.setattr(expansions, "_BLOCK", 16 * len(model.support_))
    np.testing.assert_allclose(model.decision_function(X), whole, rtol=1e-11, atol=1e-12)


# -- among scikit-learn's tools, and what fails ---------------------------------------------------


def test_grid_search_cross_validation_and_pickling(moons):
    X, y, sigma = moons
    G = Gaussians(X, std=sigma)
    search = GridSearchCV(IsotropicKernelSVC(), {"gamma": [1e-4, 1.0]}, cv=3).fit(G, y)
    assert search.best_params_ == {"gamma": 1.0}
    assert search.score(G, y) > 0.8
    folds = cross_validate(IsotropicKernelSVC(gamma=1.0), X, y, cv=3, params={"X_std": sigma})
    assert folds["test_score"].tolist() == [
        search.cv_results_[f"split{k}_test_score"][1] for k in range(3)
    ]
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert clone(IsotropicKernelSVC(max_iter=7)).max_iter == 7


def test_a_search_over_c_decomposes_each_gram_matrix_once(moons, monkeypatch, tmp_path):
    X, y, sigma = moons
    decomposed = []

    def count(K, eigh=np.linalg.eigh):
        decomposed.append(len(K))
        return eigh(K)

    monkeypatch.setattr(np.linalg, "eigh", count)
    grid, G = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, Gaussians(X, std=sigma)
    plain = GridSearchCV(IsotropicKernelSVC(), grid, cv=3).fit(G, y)
    assert len(decomposed) == 3 * 2 * 3 + 1
    decomposed.clear()
    memory = joblib.Memory(tmp_path, mmap_mode="r", verbose=0)
    for data in (G, Gaussians(X, std=2.0 * sigma), G):
        search = GridSearchCV(IsotropicKernelSVC(memory=memory), grid, cv=3).fit(data, y)
    assert decomposed == [60] * 6 + [90]
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_memory_may_be_a_path(moons, tmp_path):
    X, y, sigma = moons
    IsotropicKernelSVC(memory=tmp_path).fit(X, y, X_std=sigma)
    assert list(tmp_path.rglob("output.pkl"))


def test_a_failed_fit_leaves_the_model_as_it_was(moons):
    X, y, sigma = moons
    model = IsotropicKernelSVC().fit(X, y, X_std=sigma)
    before = dict(model.__dict__)
    for options, error in (({"C": -1.0}, "C must be positive"), ({"gamma": 0.0}, "gamma is 0")):
        with pytest.raises(ValueError, match=error):
            model.set_params(**options).fit(X, y)
        model.set_params(C=1.0, gamma="scale")
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[key] is before[key] for key in before if key.endswith("_"))


def test_errors_are_per_row_also_where_features_are_as_many_as_rows():
    X = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [1.0, 1.0, 3.0]])
    sigma = np.array([0.1, 0.5, 0.3])
    model = IsotropicKernelSVC().fit(X, [0, 1, 0], X_std=sigma)
    expected = IsotropicKernelSVC().fit(
        X, [0, 1, 0], X_cov=Covariances.from_std(sigma, n_features=3)
    )
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
    spread = model.decision_std(np.ones((3, 3)), X_cov=sigma**2)
    np.testing.assert_allclose(spread / spread[0], sigma / sigma[0], rtol=1e-14)
    with pytest.raises(ValueError, match="X_std row 1 is -1"):
        IsotropicKernelSVC().fit(X, [0, 1, 0], X_std=[1.0, -1.0, 0.0])


def test_decision_values_that_overflow_are_refused(moons):
    X, y, sigma = moons
    model = IsotropicKernelSVC(kernel="poly").fit(X, y, X_std=sigma)
    with pytest.raises(ValueError, match="poly kernel overflows float64: means are up to 1e\\+120"):
        model.predict([[0.0, 0.0], [1e120, 1e120]])


def test_parameters_set_after_the_fit_do_not_change_its_predictions(moons):
    X, y, sigma = moons
    model = IsotropicKernelSVC().fit(X, y, X_std=sigma)
    values = model.decision_function(X)
    model.set_params(kernel="linear", degree=1)
    np.testing.assert_array_equal(model.decision_function(X), values)


def test_an_early_end_warns(moons):
    X, y, sigma = moons
    with pytest.warns(ConvergenceWarning, match="after 1 iterations"):
        model = IsotropicKernelSVC(max_iter=1).fit(X, y, X_std=sigma)
    assert model.n_iter_ == 1
    assert model.suboptimality_ > 1e-6


def test_a_decomposition_beyond_memory_is_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(training_gram, "free_memory", lambda: 39e6)
    monkeypatch.setattr(ExpectedKernel, "gram", lambda *a, **b: pytest.fail("computed"))
    message = r"X has 1000 rows: .* 5 times 0\.008 GB, that is 0\.04 GB, and 0\.039 GB.*at most 987"
    with pytest.raises(MemoryError, match=message):
        IsotropicKernelSVC().fit(np.zeros((1000, 2)), np.arange(1000) % 2)


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        ({}, {"X_std": np.ones((3, 2))}, ValueError, "X_std has diagonal covariances; .*one stand"),
        ({}, {"X_cov": np.ones((3, 2))}, ValueError, "X_cov has diagonal covariances"),
        ({}, {"X_cov": np.array([np.eye(2)] * 3)}, ValueError, "X_cov has full covariances"),
        ({}, {"X_std": [1.0, -1.0, 0.0]}, ValueError, "X_std row 1 is -1"),
        ({"solver": "sgd"}, {}, ValueError, "solver must be one of auto, lbfgs, interior_point"),
        ({"kernel": "sigmoid"}, {}, ValueError, "kernel must be one of"),
        ({"n_threads": True}, {}, TypeError, "n_threads must be an integer, got True"),
        (
            {"kernel": "poly", "gamma": 1e200},
            {},
            ValueError,
            "the poly kernel overflows float64: means are up to 2, gamma",
        ),
        ({"tol": -1.0}, {}, ValueError, "tol must be >= 0"),
        ({"max_iter": 0}, {}, ValueError, "max_iter must be >= 1"),
    ],
)
def test_bad_input_is_refused(options, arguments, error, message):
    X = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    with pytest.raises(error, match=message):
        IsotropicKernelSVC(**options).fit(X, [0, 1, 0], **arguments)
    low_rank = Gaussians(X, cov=Covariances.low_rank(np.ones((3, 2, 1))))
    with pytest.raises(ValueError, match="X has low_rank covariances"), warnings.catch_warnings():
        IsotropicKernelSVC().fit(X, [0, 1, 0]).decision_std(low_rank)


@pytest.mark.parametrize("options", [{"C": 0.0}, {"tol": -1.0}, {"max_iter": 0}])
def test_bad_parameters_are_refused_before_the_decomposition(moons, monkeypatch, options):
    def decompose(*_, **__):
        raise AssertionError("decomposed")

    monkeypatch.setattr("halosvm.kernel.isotropic_kernel_svc.decompose_gram", decompose)
    X, y, _ = moons
    with pytest.raises(ValueError, match=next(iter(options))):
        IsotropicKernelSVC(**options).fit(X, y)
