"""TotalSVC: linear and with kernels, with a penalty and in a ball.

Oracles: SVC of scikit-learn, `UncertainSVC`, the definitions in NumPy, central differences.
"""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from cases import KINDS, each
from estimator_checks import pass_checks
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from halosvm import Covariances, Gaussians, TotalSVC, UncertainSVC
from halosvm.kernel.expected_kernel import ExpectedKernel
from halosvm.linear.total.alternation import _gradients, alternate, corrected
from halosvm.linear.total.corrections import farthest
from halosvm.linear.total.problem import KernelProblem
from halosvm.linear.total.span import Span

KERNELS = ("linear", "rbf", "poly")
BALL = {"formulation": "ball", "ball_radius": 0.1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        TotalSVC(),
        TotalSVC(kernel="rbf"),
        TotalSVC(n_restarts=1, random_state=0),
        TotalSVC(**BALL),
        TotalSVC(kernel="rbf", **BALL),
    ],
    ids=repr,
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


def kernel_matrix(model, A, B):
    if model.kernel == "linear":
        return A @ B.T
    options = {"gamma": model.gamma_[0]}
    if model.kernel == "poly":
        options |= {"degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(A, B, metric=model.kernel, **options)


def square_of(model):
    """Return |w|^2."""
    if hasattr(model, "coef_"):
        return float(model.coef_[0] @ model.coef_[0])
    Z, a = model.support_vectors_, model.dual_coef_[0]
    return float(a @ kernel_matrix(model, Z, Z) @ a)


def values_of(model, X):
    if hasattr(model, "coef_"):
        return X @ model.coef_[0] + model.intercept_[0]
    return kernel_matrix(model, X, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_errors_it_is_the_support_vector_machine(make_gaussians, kernel):
    X, y = make_gaussians("zero", gap=1.0)
    model = TotalSVC(C=2.0, kernel=kernel, degree=2).fit(X, y)
    gamma = getattr(model, "gamma_", [1.0])[0]
    rival = SVC(C=2.0, kernel=kernel, gamma=gamma, degree=2, coef0=1.0, tol=1e-9).fit(X.mean, y)
    np.testing.assert_allclose(
        model.decision_function(X), rival.decision_function(X.mean), atol=2e-4
    )
    assert not model.corrections_.any()
    assert not model.is_global_


@each("kind", KINDS)
@each("kernel", KERNELS)
def test_objective_and_corrections_are_those_of_the_definition(make_gaussians, kind, kernel):
    X, y = make_gaussians(kind, scale=0.7)
    model = TotalSVC(C=2.0, kernel=kernel, degree=2, radius=1.5).fit(X, y)
    moved = values_of(model, X.mean + model.corrections_)
    np.testing.assert_allclose(model.decision_function(X), values_of(model, X.mean), rtol=1e-9)
    losses = np.maximum(0.0, 1.0 - y * moved)
    expected = square_of(model) / (2 * 2.0 * 60) + losses.mean()
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    S = 1.5**2 * X.covariances.to_full()
    for dx, cov in zip(model.corrections_, S, strict=True):
        size2 = dx @ np.linalg.lstsq(cov, dx, rcond=1e-10)[0]
        assert size2 <= 1 + 1e-9
        np.testing.assert_allclose(cov @ np.linalg.pinv(cov, rcond=1e-10) @ dx, dx, atol=1e-9)


@each("kind", KINDS)
def test_linear_machine_is_that_of_the_best_case(make_gaussians, kind):
    X, y = make_gaussians(kind)
    model = TotalSVC(C=2.0, radius=0.5).fit(X, y)
    same = UncertainSVC(C=2.0, loss="best_case", radius=0.5).fit(X, y)
    # Errors of few features are seen as errors of all, and summed in another order.
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-12)
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-14)
    assert not hasattr(model, "suboptimality_")
    gains = y * (model.corrections_ @ model.coef_[0])
    np.testing.assert_allclose(gains, 0.5 * same.decision_std(X), rtol=1e-9, atol=1e-12)


def problem_of(X, y, kind="rbf", *, C=1.0, degree=2, gamma=0.3):
    kernel = ExpectedKernel(kind, np.array([1.0 if kind == "linear" else gamma]), degree, 1.0)
    return KernelProblem(X, y.astype(float), np.full(len(y), C), kernel, 1)


@each("kind", KINDS)
def test_alternation_with_a_linear_kernel_ends_where_the_core_does(make_gaussians, kind):
    X, y = make_gaussians(kind)
    found = alternate(problem_of(X, y, "linear"), np.zeros(X.shape), 1e-8, 1000)
    model = TotalSVC().fit(X, y)
    assert found.objective / 60 == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize("kind", KERNELS)
def test_gradients_are_central_differences(make_gaussians, kind):
    X, y = make_gaussians("diagonal", n=20)
    problem = problem_of(X, y, kind)
    machine = alternate(problem, np.zeros(X.shape), 1e-6, 3)
    gradients = np.broadcast_to(_gradients(problem, machine), X.shape)

    def value(points):
        K = problem.kernel.gram(Gaussians(points), Gaussians(machine.points), n_threads=1)
        return K @ machine.coefficients

    for j, step in enumerate(1e-5 * np.eye(4)):
        slope = (value(X.mean + step) - value(X.mean - step)) / 2e-5
        np.testing.assert_allclose(gradients[:, j], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_objective_of_kernels_never_rises(make_gaussians, kernel):
    falls = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        kind = ("isotropic", "diagonal_std", "half_certain", "low_rank", "full")[seed % 5]
        X, y = make_gaussians(kind, 20, 2, seed=seed, scale=10 ** rng.uniform(-1, 1))
        parameters = {"kernel": kernel, "degree": 2, "C": 10 ** rng.uniform(-1, 2)}
        values = [TotalSVC(max_iter=k, **parameters).fit(X, y).objective_ for k in (1, 2, 3, 5, 9)]
        assert (np.diff(values) <= 0.0).all(), seed
        falls += values[-1] < 0.9 * values[0]
    assert falls >= 7  # otherwise nothing was tried


def test_a_step_never_makes_an_example_worse(make_gaussians):
    """Errors as wide as the kernel: the step that the gradient proposes goes much too far."""
    X, y = make_gaussians("diagonal", scale=3.0)
    problem = problem_of(X, y)
    machine = alternate(problem, np.zeros(X.shape), 1e-6, 2)

    def gains(corrections):
        K = problem.kernel.gram(
            Gaussians(X.mean + corrections), Gaussians(machine.points), n_threads=1
        )
        return y * (K @ machine.coefficients)

    step = corrected(problem, machine, machine.corrections)
    assert (gains(step) >= gains(machine.corrections)).all()
    assert (gains(step) >= gains(np.zeros(X.shape))).all()
    proposed = farthest(X.covariances, y[:, None] * _gradients(problem, machine))
    assert (gains(proposed) < gains(machine.corrections)).any()


@each("kind", KINDS)
def test_farthest_points_beat_all_others_within_the_errors(make_gaussians, kind):
    X, _ = make_gaussians(kind)
    rng = np.random.default_rng(0)
    v = rng.normal(size=X.shape)
    found = np.einsum("nd,nd->n", farthest(X.covariances, v), v)
    values, axes = np.linalg.eigh(X.covariances.to_full())
    roots = axes * np.sqrt(np.maximum(values, 0.0))[:, None]
    for _ in range(200):
        u = rng.normal(size=X.shape)
        other = np.einsum("nij,nj->ni", roots, u / np.linalg.norm(u, axis=1, keepdims=True))
        assert (np.einsum("nd,nd->n", other, v) <= found + 1e-9).all()
    assert not farthest(X.covariances, np.zeros(4)).any()
    tiny = farthest(X.covariances, 1e-200 * v)
    np.testing.assert_allclose(tiny, farthest(X.covariances, v), rtol=1e-12)


# ---- restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_restarts_keep_the_best_and_one_seed_gives_one_result(make_gaussians, kernel):
    gains = []
    for seed in range(3):
        X, y = make_gaussians("isotropic", n=25, d=2, gap=0.2, seed=seed, scale=1.5)
        once = TotalSVC(kernel=kernel).fit(X, y)
        again = TotalSVC(kernel=kernel, n_restarts=8, random_state=0).fit(X, y)
        same = TotalSVC(kernel=kernel, n_restarts=8, random_state=0).fit(X, y)
        assert again.objective_ <= once.objective_
        assert again.objective_ == same.objective_
        np.testing.assert_array_equal(again.corrections_, same.corrections_)
        gains.append(once.objective_ - again.objective_)
    assert max(gains) > 1e-3


def test_restarts_find_the_minima_of_points_that_coincide():
    """Both classes at 0: the minima are w = 1 and w = -1, of which no first step knows."""
    X = Gaussians(np.zeros((2, 1)), std=np.ones((2, 1)))
    with pytest.warns(ConvergenceWarning, match="ended at w = 0"):
        TotalSVC(C=50.0).fit(X, [0, 1])
    model = TotalSVC(C=50.0, n_restarts=1, random_state=0).fit(X, [0, 1])
    assert abs(model.coef_[0, 0]) == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(np.abs(model.corrections_), 1.0)


# ---- the ball ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_machine_in_a_ball_is_as_long_as_its_radius_and_has_its_loss(make_gaussians, kernel):
    X, y = make_gaussians("isotropic", scale=0.3, gap=1.0)
    weights = np.random.default_rng(1).integers(1, 4, 60)
    model = TotalSVC(kernel=kernel, degree=2, **BALL).fit(X, y, sample_weight=weights)
    assert model.is_global_
    assert square_of(model) == pytest.approx(0.1**2, rel=1e-6)
    assert model.status_ == "the global minimum, |w| = ball_radius"
    radii = np.sqrt(X.covariances.variances()[:, 0])
    if kernel == "rbf":
        radii = np.sqrt(-2.0 * np.expm1(-model.gamma_[0] * radii**2))
    if kernel == "poly":
        radii = Span(problem_of(X, y, "poly", gamma=model.gamma_[0]), linear=False).radii(radii)
    losses = np.maximum(0.0, 1.0 - y * values_of(model, X.mean) - 0.1 * radii)
    assert model.objective_ == pytest.approx(weights @ losses / weights.sum(), rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), values_of(model, X.mean), rtol=1e-6)


@pytest.mark.parametrize("kind", ["rbf", "poly"])
def test_radii_in_the_feature_space_are_the_farthest_that_errors_go(make_gaussians, kind):
    X, y = make_gaussians("isotropic", n=20, d=2)
    problem = problem_of(X, y, kind, degree=3)
    radii = np.sqrt(X.covariances.variances()[:, 0])
    found = Span(problem, linear=False).radii(radii)
    angles = np.linspace(0, 2 * np.pi, 721)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    farthest_seen = np.zeros(20)
    for i, mean in enumerate(X.mean):
        errors = radii[i] * np.vstack([np.zeros(2), 0.5 * circle, circle])
        K = problem.kernel.gram(Gaussians(mean + errors), n_threads=1)
        farthest_seen[i] = np.sqrt((K[0, 0] - 2 * K[0] + K.diagonal()).max())
    assert (farthest_seen <= found * (1 + 1e-7)).all()
    np.testing.assert_allclose(farthest_seen, found, rtol=1e-4)


def test_ball_does_not_depend_on_the_coordinates(make_gaussians):
    """30 points in 4 dimensions, and turned into 50, where there are more features than points."""
    X, y = make_gaussians("isotropic", n=30)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 4)))[0]
    wide = Gaussians(X.mean @ turn.T, std=np.sqrt(X.covariances.variances()[:, 0]))
    narrow, other = (TotalSVC(**BALL).fit(data, y) for data in (X, wide))
    assert other.objective_ == pytest.approx(narrow.objective_, rel=1e-6)
    np.testing.assert_allclose(other.coef_ @ turn, narrow.coef_, atol=1e-6)
    np.testing.assert_allclose(other.corrections_ @ turn, narrow.corrections_, atol=1e-4)


def test_ball_that_is_too_large_is_reported(make_gaussians):
    X, y = make_gaussians("isotropic", gap=0.2)
    with pytest.warns(ConvergenceWarning, match=r"\|w\| is .*, below ball_radius = 100: its marg"):
        model = TotalSVC(formulation="ball", ball_radius=100.0).fit(X, y)
    assert not model.is_global_
    assert "below ball_radius = 100" in model.status_
    assert np.linalg.norm(model.coef_) < 100.0


def test_ball_takes_isotropic_errors_alone(make_gaussians):
    X, y = make_gaussians("diagonal")
    with pytest.raises(ValueError, match=r"X has diagonal covariances; formulation='ball' takes"):
        TotalSVC(**BALL).fit(X, y)


# ---- as an estimator -----------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{"kernel": "rbf"}, BALL, {"kernel": "rbf", **BALL}])
def test_weights_are_repetitions(make_gaussians, parameters):
    X, y = make_gaussians("isotropic", n=40, scale=0.5)
    weights = np.random.default_rng(3).integers(0, 3, 40)
    rows = np.repeat(np.arange(40), weights)
    weighted = TotalSVC(**parameters).fit(X, y, sample_weight=weights)
    repeated = TotalSVC(**parameters).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    if hasattr(weighted, "corrections_"):
        assert weighted.corrections_.shape == X.shape
        assert weighted.corrections_[weights == 0].any()


def test_class_weights_are_sample_weights(make_gaussians):
    X, y = make_gaussians("isotropic", n=40, scale=0.5)
    for parameters in ({}, {"kernel": "rbf", "gamma": 0.3}, BALL):
        model = TotalSVC(class_weight={-1: 3.0}, **parameters).fit(X, y)
        same = TotalSVC(**parameters).fit(X, y, sample_weight=np.where(y < 0, 3.0, 1.0))
        assert model.objective_ == pytest.approx(same.objective_, rel=1e-12)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": "laplacian"}, ValueError, "kernel must be one of linear, rbf, poly; got 'lap"),
        ({"formulation": "dual"}, ValueError, "formulation must be one of penalised, ball; got"),
        ({"gamma": [1.0, 2.0]}, ValueError, "gamma must be 'scale', 'auto' or a number"),
        ({"degree": 5, "kernel": "poly"}, ValueError, "degree must be 1, 2 or 3, got 5"),
        ({"radius": -1.0}, ValueError, "radius must be >= 0 and finite, got -1.0"),
        ({"ball_radius": 0.0}, ValueError, "ball_radius must be positive and finite, got 0.0"),
        ({"n_restarts": -1}, ValueError, "n_restarts must be at least 0, got -1"),
        ({"n_restarts": 1.5}, TypeError, "n_restarts must be an integer, got 1.5"),
        ({"C": 0.0}, ValueError, "C must be positive and finite"),
        ({"max_iter": 0}, ValueError, "max_iter must be >= 1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_before_data_are_read(parameters, error, message):
    with pytest.raises(error, match=message):
        TotalSVC(**parameters).fit(object(), object())


def test_three_classes_are_refused_and_can_be_wrapped(make_gaussians):
    X, _ = make_gaussians("zero")
    y = np.digitize(X.mean[:, 0], [-0.5, 1.0])
    with pytest.raises(ValueError, match=r"y has 3 classes.*Only binary classification is support"):
        TotalSVC().fit(X, y)
    assert OneVsRestClassifier(TotalSVC(kernel="rbf")).fit(X.mean, y).score(X.mean, y) > 0.8


def test_a_new_fit_leaves_nothing_of_the_last_one(make_gaussians):
    X, y = make_gaussians("isotropic", scale=0.3)
    model = TotalSVC(kernel="rbf").fit(X, y)
    model.set_params(kernel="linear").fit(X, y)
    assert not hasattr(model, "dual_coef_")
    assert not hasattr(model, "gamma_")
    np.testing.assert_array_equal(
        model.decision_function(X), TotalSVC().fit(X, y).decision_function(X)
    )
    model.set_params(kernel="rbf", **BALL).fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "corrections_")


def test_a_fit_that_fails_leaves_the_last_one(make_gaussians):
    X, y = make_gaussians("diagonal", scale=0.3)
    model = TotalSVC(kernel="rbf").fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="diagonal covariances"):
        model.set_params(**BALL).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_iterations_that_end_first_are_told(make_gaussians, kernel):
    X, y = make_gaussians("isotropic", gap=0.2)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        model = TotalSVC(kernel=kernel, max_iter=2).fit(X, y)
    assert "ended" in model.status_
    with pytest.warns(ConvergenceWarning, match="after 2 iterations the loss is not certified"):
        model.set_params(**BALL).fit(X, y)
    assert not model.is_global_


@pytest.mark.parametrize("offset", [10, 100])
def test_rounds_end_with_the_first_machine_above_its_minimum(offset):
    """Cubes of data around 100 are 1e12, and differ by less than single precision tells."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = offset + rng.normal(size=(40, 3)) + y[:, np.newaxis]
    with pytest.warns(ConvergenceWarning, match="^the dual solver of round 1 ended above its"):
        model = TotalSVC(kernel="poly").fit(X, y, X_std=np.full(40, 0.2))
    assert model.n_iter_ == 1
    assert "above its minimum" in model.status_


def test_search_over_the_radius_and_errors_as_arguments(make_gaussians):
    X, y = make_gaussians("isotropic_std", n=60)
    std = X.covariances.values
    search = GridSearchCV(TotalSVC(kernel="rbf"), {"radius": [0.0, 0.5]}, cv=3).fit(X, y)
    assert search.best_estimator_.corrections_.shape == X.shape
    given = clone(search.best_estimator_).fit(X.mean, y, X_std=std)
    np.testing.assert_allclose(
        given.decision_function(X), search.best_estimator_.decision_function(X), rtol=1e-9
    )
    variances = Covariances.isotropic(std**2, 4)
    again = clone(search.best_estimator_).fit(X.mean, y, X_cov=variances)
    assert again.objective_ == pytest.approx(given.objective_, rel=1e-9)


def test_problem_of_some_rows_keeps_their_errors(make_gaussians):
    X, y = make_gaussians("full")
    problem = dataclasses.replace(problem_of(X, y), costs=np.arange(60.0))
    part = problem.of_rows(np.array([3, 5]))
    np.testing.assert_array_equal(part.data.covariances.to_full(), X.covariances.to_full()[[3, 5]])
    np.testing.assert_array_equal(part.costs, [3.0, 5.0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_quantities_keep_their_units(make_gaussians, kernel):
    units = pytest.importorskip("astropy.units")
    X, y = make_gaussians("diagonal_std", n=40, scale=0.5)
    std = X.covariances.values
    model = TotalSVC(kernel=kernel).fit(X.mean * units.m, y, X_std=1e3 * std * units.mm)
    plain = TotalSVC(kernel=kernel).fit(X.mean, y, X_std=std)
    values = model.decision_function(1e3 * X.mean * units.mm)
    np.testing.assert_allclose(values, plain.decision_function(X.mean), atol=1e-4)
    np.testing.assert_allclose(model.corrections_, plain.corrections_, atol=1e-4)


def test_labels_of_rows_and_masks_are_heeded(make_gaussians):
    X, y = make_gaussians("diagonal_std", n=12)
    frame = pd.DataFrame(X.mean, index=[f"r{i}" for i in range(12)])
    with pytest.raises(ValueError, match="y has row 0 labelled 'r11', in X it is 'r0'"):
        TotalSVC().fit(frame, pd.Series(y, index=frame.index)[::-1])
    with pytest.raises(ValueError, match="masked"):
        TotalSVC().fit(X.mean, y, X_std=np.ma.masked_greater(X.covariances.values, 0.5))
