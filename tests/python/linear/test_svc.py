"""UncertainSVC against SciPy, scikit-learn's SVC, direct formulas, and its own symmetries."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from scipy import special
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from halosvm import Covariances, Gaussians, UncertainSVC, reference

ALL_ROWS = 10**9  # a batch of all rows: full gradients, hence no draws that could differ
SOLVERS = ("auto", "lbfgs", "interior_point", "sgd")
WITH_CERTAIN = ("zero", "half_certain", "ragged")  # kinds of which some examples have no spread
CLOSE = 1e-10  # certified suboptimality of the fits that are compared


def make(**options):
    """Return a classifier that ends close to the optimum."""
    return UncertainSVC(**{"C": 0.5, "tol": CLOSE, "random_state": 0, **options})


def fit(X, y, *, X_std=None, X_cov=None, sample_weight=None, **options):
    """Fit to the optimum: a fit that does not arrive ends with a warning, which is an error."""
    return make(**options).fit(X, y, X_std=X_std, X_cov=X_cov, sample_weight=sample_weight)


def walk(X, y, *, X_std=None, X_cov=None, sample_weight=None, **options):
    """Fit by the steps of SGD, or of another solver, in few passes."""
    options = {"solver": "sgd", "tol": 0.0, "max_iter": 8, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(**options).fit(X, y, X_std=X_std, X_cov=X_cov, sample_weight=sample_weight)


def assert_equal_bits(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


def assert_close(one, other, tolerance=1e-10):
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=tolerance, atol=tolerance)


def assert_same_optimum(one, other, lam=1 / (0.5 * 60), scale=1.0):
    """Assert that two fits end at the same optimum, the coefficients of `one` times `scale`.

    J is strongly convex: |w - w*|^2 <= 2 (J - J*) / lam, and the certificates bound J - J*.
    """
    gap_one, gap_other = (np.max(clf.suboptimality_ * clf.objective_) for clf in (one, other))
    room = gap_one + gap_other + 1e-13 * np.max(one.objective_)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=0, atol=room)
    reach = np.sqrt(2 * room / lam) * 2
    assert np.linalg.norm(scale * one.coef_ - other.coef_, axis=1).max() <= reach
    assert gap_one <= CLOSE * np.max(one.objective_)  # so that the assertions above say something
    assert gap_other <= CLOSE * np.max(other.objective_)


# ---- what is minimised ---------------------------------------------------------------------------


@in_pairs
@each("solver", SOLVERS)
@each("loss", ["expected_hinge", "hinge"])
@each("fit_intercept", [True, False])
@each("weighted", [True, False])
def test_suboptimality_is_a_true_bound_on_the_distance_to_the_optimum(
    make_gaussians, bracket, solver, loss, fit_intercept, weighted
):
    X, y = make_gaussians("full", n=80)
    weights = np.random.default_rng(1).uniform(0, 2, 80) if weighted else None
    total = 80.0 if weights is None else weights.sum()
    options = {"C": 0.2, "loss": loss, "fit_intercept": fit_intercept, "tol": 0.01}
    clf = make(solver=solver, **options).fit(X, y, sample_weight=weights)
    lam = 1 / (0.2 * total)
    value, *_ = reference.objective_and_gradient(
        X, y, clf.coef_[0], clf.intercept_[0], lam, weights, loss
    )
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    _, high = bracket(X, y, lam, weights, loss, fit_intercept=fit_intercept)
    assert value / high - 1 <= clf.suboptimality_ + 1e-12
    assert clf.suboptimality_ <= 0.01


@each("kind", KINDS)
@each("solver, tol", [("sgd", 0.3), ("sgd", 0.03), ("auto", 1e-3), ("auto", 1e-6), ("auto", 1e-9)])
def test_tolerance_is_met_when_no_warning_is_given(make_gaussians, bracket, kind, solver, tol):
    X, y = make_gaussians(kind, n=200)
    clf = make(C=0.05, solver=solver, tol=tol, max_iter=10_000).fit(X, y)
    assert clf.suboptimality_ <= tol
    value, *_ = reference.objective_and_gradient(
        X, y, clf.coef_[0], clf.intercept_[0], 1 / (0.05 * 200)
    )
    assert value <= bracket(X, y, 1 / (0.05 * 200))[1] * (1 + tol)


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_default_ends_within_a_millionth_of_the_optimum(make_gaussians, bracket, kind, dtype):
    X, y = make_gaussians(kind, dtype=dtype)
    clf = UncertainSVC(C=0.5).fit(X, y)
    assert clf.suboptimality_ <= 1e-6
    low, _ = bracket(X, y, 1 / (0.5 * 60))
    assert low <= clf.objective_ * (1 + 1e-13)
    assert clf.objective_ <= low * (1 + 1.1e-6)  # the bracket itself is 1e-9 wide


@each("kind", KINDS)
@each("loss", ["expected_hinge", "hinge"])
def test_solvers_end_at_the_same_optimum(make_gaussians, kind, loss):
    X, y = make_gaussians(kind)
    expected = fit(X, y, loss=loss)
    # Without a spread SGD certifies little, and L-BFGS needs many passes.
    certain = loss == "hinge" or kind in WITH_CERTAIN
    for solver, tol in (
        ("interior_point", CLOSE),
        ("lbfgs", 1e-4 if certain else CLOSE),
        ("sgd", 0.05 if certain else 0.01),
    ):
        if solver == "lbfgs" and kind in WITH_CERTAIN:
            continue  # alone it may end short of the tolerance
        clf = make(solver=solver, tol=tol, max_iter=20_000, loss=loss).fit(X, y)
        assert clf.suboptimality_ <= tol
        assert expected.objective_ <= clf.objective_ * (1 + CLOSE)
        assert clf.objective_ <= expected.objective_ * (1 + tol)


def test_certain_examples_give_the_linear_support_vector_machine(heart):
    X, y = heart
    clf = UncertainSVC(C=0.05).fit(X, y)
    svc = SVC(kernel="linear", C=0.05, tol=1e-8).fit(X, y)
    lam = 1 / (0.05 * len(y))
    certain = Gaussians(X)
    values = [
        reference.objective_and_gradient(certain, y, m.coef_[0], m.intercept_[0], lam)[0]
        for m in (clf, svc)
    ]
    assert values[0] <= values[1] * (1 + 1e-6)
    # J is strongly convex: |w - w*|^2 <= 2 (J - J*) / lam. Both are within 1e-6.
    distance = np.linalg.norm(clf.coef_ - svc.coef_)
    assert distance <= 2 * np.sqrt(2 * 1e-6 * values[1] / lam)


def test_sgd_ends_certified_on_the_toy_example_of_svm_gsu(toy):
    means, variances, y = toy
    lam, best = 1e-3, 1.5988772786e-4
    clf = UncertainSVC(C=1 / (lam * len(y)), solver="sgd", random_state=0)
    clf.fit(means, y, X_cov=variances)
    X = Gaussians(means, variance=variances)
    value, *_ = reference.objective_and_gradient(X, y, clf.coef_[0], clf.intercept_[0], lam)
    assert best * (1 - 1e-9) <= value
    assert value / best - 1 <= clf.suboptimality_ <= 1e-6
    assert (clf.predict(means) == y).all()


# Spec A.6: 80 % at +a, the rest at -a, standard deviation 2 a: w* = 0, b* = 1, J* = 2 * 0.2.
MAJORITY = np.repeat([[1.0], [-1.0]], [80, 20], axis=0), np.repeat(["many", "few"], [80, 20])


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_minimiser_at_zero_is_recognised_and_explained(solver):
    X, y = MAJORITY
    clf = UncertainSVC(C=0.1, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"least at w = 0.*class_weight='balanced'"):
        clf.fit(X, y, X_std=np.full((100, 1), 2.0))
    assert clf.coef_[0, 0] == 0.0
    assert clf.intercept_[0] == pytest.approx(1.0, rel=1e-12)  # "many" is the positive class
    assert clf.objective_ == pytest.approx(0.4, rel=1e-12)
    assert "w = 0" in clf.status_
    assert (clf.predict([[5.0], [0.0], [-0.5]]) == "many").all()


def test_one_class_alone_is_told_where_w_is_not_zero():
    rng = np.random.default_rng(3)
    y = np.where(np.arange(100) % 20 < 3, "few", "many")
    x = rng.normal(size=(100, 2)) + 1.5 * (y == "few")[:, np.newaxis]
    clf = UncertainSVC(C=0.01)
    message = r"only the class 'many' is predicted of all training examples.*class_weight='balan"
    with pytest.warns(ConvergenceWarning, match=message):
        clf.fit(x, y, X_std=np.full((100, 2), 0.6))
    assert (clf.predict(x) == "many").all()
    assert clf.coef_.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_params(class_weight="balanced").fit(x, y, X_std=np.full((100, 2), 0.6))
        clf.set_params(class_weight=None, C=10.0).fit(x, y)
    assert set(clf.predict(x)) == {"few", "many"}


def test_balanced_weights_move_the_minimiser_away_from_zero():
    X, y = MAJORITY
    clf = fit(X, y, X_std=np.full((100, 1), 2.0), C=0.1, class_weight="balanced")
    assert clf.coef_[0, 0] > 0.01
    assert (clf.predict([[1.0], [-1.0]]) == ["many", "few"]).all()


def test_sgd_accepts_a_minimiser_at_zero_and_predicts_the_majority():
    X, y = MAJORITY
    clf = walk(X, y, X_std=np.full((100, 1), 2.0), C=0.1, max_iter=256)
    assert 0.4 * (1 - 1e-12) <= clf.objective_ <= 0.4 * 1.01
    assert (clf.predict([[5.0], [0.0], [-0.5]]) == "many").all()


def test_uncertain_feature_loses_weight(make_gaussians):
    X, y = make_gaussians("zero", n=300, d=2)
    std = np.zeros((300, 2))
    weights = []
    for error in (0.0, 1.0, 4.0):
        std[:, 1] = error
        clf = UncertainSVC(C=0.1, class_weight="balanced").fit(X.mean, y, X_std=std)
        weights.append(np.abs(clf.coef_[0]))
    assert weights[0][1] > weights[1][1] > weights[2][1]
    assert weights[2][0] > weights[2][1]


def test_accuracy_on_real_data_is_that_of_linear_classifiers(heart):
    X, y = heart
    train, test = np.arange(270) % 3 != 0, np.arange(270) % 3 == 0
    clf = UncertainSVC(C=0.05)
    clf.fit(X[train], y[train], X_std=np.full((180, 13), 0.1))
    svc = SVC(kernel="linear", C=0.05).fit(X[train], y[train])
    assert clf.score(X[test], y[test]) >= 0.75
    assert clf.score(X[test], y[test]) >= svc.score(X[test], y[test]) - 0.05


# ---- symmetries ----------------------------------------------------------------------------------


def test_swapped_labels_change_only_the_sign(make_gaussians):
    X, y = make_gaussians("full")
    one, other = fit(X, y), fit(X, -y)
    assert_same_optimum(one, other, scale=-1.0)
    assert one.intercept_[0] == pytest.approx(-other.intercept_[0], abs=1e-4)
    one, other = walk(X, y), walk(X, -y)
    np.testing.assert_array_equal(one.coef_, -other.coef_)
    np.testing.assert_allclose(one.intercept_, -other.intercept_, rtol=1e-12)


@each("kind", KINDS)
def test_shifted_means_change_only_the_intercept(make_gaussians, kind):
    X, y = make_gaussians(kind)
    shift = np.array([3.0, -100.0, 0.5, 1000.0])
    one, other = fit(X, y), fit(X.mean + shift, y, X_cov=X.covariances)
    assert_same_optimum(one, other)
    value = reference.objective_and_gradient(  # the intercept is right if this is the optimum
        X, y, other.coef_[0], other.intercept_[0] + other.coef_[0] @ shift, 1 / (0.5 * 60)
    )[0]
    assert value == pytest.approx(one.objective_, rel=2 * CLOSE)
    one, other = walk(X, y), walk(X.mean + shift, y, X_cov=X.covariances)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9)
    np.testing.assert_allclose(other.intercept_, one.intercept_ - one.coef_ @ shift, rtol=1e-7)


@each("kind", KINDS)
def test_rotated_data_rotate_the_coefficients(make_gaussians, kind):
    X, y = make_gaussians(kind)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    turned = rotation @ X.covariances.to_full() @ rotation.T
    turned = (turned + turned.transpose(0, 2, 1)) / 2
    one, other = fit(X, y), fit(X.mean @ rotation.T, y, X_cov=turned)
    other.coef_ = other.coef_ @ rotation
    assert_same_optimum(one, other)
    one, other = walk(X, y), walk(X.mean @ rotation.T, y, X_cov=turned)
    np.testing.assert_allclose(other.coef_, one.coef_ @ rotation.T, rtol=0, atol=1e-9)


@each("kind", KINDS)
@each("order", ["reversed", "shuffled"])
def test_order_of_examples_and_features_does_not_matter(make_gaussians, kind, order):
    X, y = make_gaussians(kind)
    rng = np.random.default_rng(3)
    rows = np.arange(60)[::-1] if order == "reversed" else rng.permutation(60)
    columns = np.arange(4)[::-1] if order == "reversed" else rng.permutation(4)
    one, other = fit(X, y), fit(X[rows], y[rows])
    assert_same_optimum(one, other)
    full = X.covariances.to_full()[:, columns][:, :, columns]
    other = fit(X.mean[:, columns], y, X_cov=full)
    other.coef_ = other.coef_[:, np.argsort(columns)]
    assert_same_optimum(one, other)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 0.5, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["diagonal", "half_certain", "zero"])
def test_unit_of_the_features_does_not_matter_with_c_in_the_same_unit(make_gaussians, kind, unit):
    X, y = make_gaussians(kind)
    variances = X.covariances.variances()
    one = fit(X.mean, y, X_cov=variances)
    other = fit(X.mean * unit, y, X_cov=variances * unit**2, C=0.5 / unit**2)
    assert other.objective_ == pytest.approx(one.objective_, rel=2 * CLOSE)
    other.coef_ = other.coef_ * unit
    assert_same_optimum(one, other)


def test_copies_of_a_feature_share_its_weight(make_gaussians):
    # Perfectly correlated copies: k columns of x / sqrt(k) are the same problem as one of x.
    X, y = make_gaussians("full")
    spread = np.zeros((8, 4))
    spread[np.arange(8), np.arange(8) // 2] = np.sqrt(0.5)
    copies = Gaussians(X.mean @ spread.T, cov=spread @ X.covariances.to_full() @ spread.T)
    one, other = fit(X, y), fit(copies, y)
    np.testing.assert_allclose(other.coef_[:, ::2], other.coef_[:, 1::2], rtol=0, atol=1e-9)
    other.coef_ = other.coef_ @ spread
    assert_same_optimum(one, other)


# ---- ways to say the same ------------------------------------------------------------------------


def test_gaussians_std_and_cov_are_the_same_data(make_gaussians):
    X, y = make_gaussians("diagonal_std")
    means, std = X.mean, X.covariances.values
    by_std = fit(means, y, X_std=std)
    assert_equal_bits(fit(X, y), by_std)
    assert_equal_bits(fit(Gaussians(means, std=std), y), by_std)
    assert_equal_bits(fit(means, y, X_cov=Covariances.from_std(std)), by_std)
    # The same numbers as variances are read by other code, which may round differently.
    for data in (
        {"X_cov": std**2},
        {"X_cov": (std**2)[:, :, None] * np.eye(4)},
        {"X_std": list(map(list, std))},
    ):
        assert_same_optimum(fit(means, y, **data), by_std)
        assert_close(walk(means, y, **data), walk(X, y))
    assert_same_optimum(fit(Gaussians(means, variance=std**2), y), by_std)


def test_one_standard_deviation_per_example_is_the_same_for_every_feature(make_gaussians):
    X, y = make_gaussians("isotropic_std")
    std = X.covariances.values
    repeated = fit(X.mean, y, X_std=np.repeat(std[:, None], 4, axis=1))
    assert_same_optimum(fit(X.mean, y, X_std=std), repeated)
    assert_same_optimum(fit(X.mean, y, X_cov=std**2), repeated)


def test_without_covariances_examples_are_certain(make_gaussians):
    X, y = make_gaussians("zero")
    certain = fit(X, y)
    assert_equal_bits(fit(X.mean, y), certain)
    assert_same_optimum(fit(X.mean, y, X_std=np.zeros((60, 4))), certain)
    assert_close(walk(X.mean, y, X_std=np.zeros((60, 4))), walk(X, y))


@each("kind", KINDS)
@each("solver", SOLVERS)
def test_hinge_ignores_the_covariances(make_gaussians, kind, solver):
    X, y = make_gaussians(kind)
    clf = walk(X, y, solver=solver, loss="hinge")
    assert_equal_bits(walk(X.mean, y, solver=solver, loss="hinge"), clf)
    if solver != "lbfgs":
        assert_equal_bits(walk(X.mean, y, solver=solver), clf)  # certain examples


# ---- labels and weights --------------------------------------------------------------------------

LABELS = {
    "integers": np.array([-5, 0, 7]),
    "small integers": np.array([3, 100, 200], np.uint8),
    "whole floats": np.array([-1.0, 0.0, 1.0]),
    "single floats": np.array([0.0, 1.0, 2.0], np.float32),
    "strings": np.array(["a", "bc", "d"]),
    "object strings": np.array(["a", "bc", "d"], object),
    "object integers": np.array([10, 20, 30], object),
    "big integers": np.array([2**62, 2**62 + 1, 2**62 + 2]),
    "dates": np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]"),
}


@pytest.mark.filterwarnings("ignore:the objective of")  # these labels are random
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_any_type_come_back(make_gaussians, labels, n_classes):
    X, _ = make_gaussians()
    codes = np.arange(60) % n_classes
    clf, expected = fit(X, labels[codes]), fit(X, codes)
    assert_equal_bits(clf, expected)
    np.testing.assert_array_equal(clf.classes_, labels[:n_classes])
    predicted = clf.predict(X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, labels[expected.predict(X)])


@pytest.mark.parametrize("dtype", [bool, object])
def test_booleans_are_labels_with_true_as_the_positive_class(make_gaussians, dtype):
    X, y = make_gaussians()
    clf = fit(X, (y > 0).astype(dtype))
    assert_equal_bits(clf, fit(X, y))
    np.testing.assert_array_equal(clf.classes_, [False, True])
    np.testing.assert_array_equal(clf.predict(X), clf.decision_function(X) > 0)


@pytest.mark.parametrize("as_labels", [list, tuple])
def test_labels_may_be_sequences(make_gaussians, as_labels):
    X, y = make_gaussians()
    assert_equal_bits(fit(X, as_labels(np.where(y > 0, "yes", "no"))), fit(X, y))


def test_many_examples_of_every_class_are_encoded_alike(make_gaussians):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 7, 70_000)  # several of the blocks in which labels are encoded
    X = rng.normal(size=(70_000, 1)) + y[:, None]
    names = np.array(["g", "f", "e", "d", "c", "b", "a"])[y]
    clf = walk(X, names, solver="lbfgs", max_iter=1)
    expected = walk(X, 6 - y, solver="lbfgs", max_iter=1)
    assert_equal_bits(clf, expected)


@each("kind", KINDS)
def test_several_classes_are_separated_one_against_the_rest(make_gaussians, kind):
    X, _ = make_gaussians(kind)
    codes = np.arange(60) % 4
    X = Gaussians(X.mean + 3.0 * np.eye(4)[codes], cov=X.covariances)
    y = np.array(["c", "a", "b", "d"])[codes]
    clf = fit(X, y)
    assert clf.coef_.shape == (4, 4)
    assert clf.intercept_.shape == (4,)
    assert clf.objective_.shape == clf.suboptimality_.shape == (4,)
    steps = walk(X, y)
    for k, label in enumerate("abcd"):
        alone = fit(X, y == label)
        assert clf.objective_[k] == pytest.approx(alone.objective_, rel=2 * CLOSE)
        reach = 2 * np.sqrt(2 * CLOSE * alone.objective_ * 0.5 * 60)
        assert np.linalg.norm(clf.coef_[k] - alone.coef_[0]) <= reach
        alone = walk(X, y == label)
        np.testing.assert_allclose(steps.coef_[k], alone.coef_[0], rtol=1e-10)
        np.testing.assert_allclose(steps.intercept_[k], alone.intercept_[0], rtol=1e-8)
    values = clf.decision_function(X)
    np.testing.assert_allclose(
        values, X.mean @ clf.coef_.T + clf.intercept_, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(clf.predict(X), np.array(list("abcd"))[values.argmax(axis=1)])


def test_two_classes_have_one_row_of_coefficients_and_flat_decision_values(make_gaussians):
    X, y = make_gaussians()
    clf = fit(X, y)
    assert clf.coef_.shape == (1, 4)
    assert clf.intercept_.shape == (1,)
    assert isinstance(clf.objective_, float)
    assert isinstance(clf.suboptimality_, float)
    assert clf.decision_function(X).shape == clf.decision_std(X).shape == (60,)
    assert clf.side_probability(X).shape == (60,)


@each("kind", KINDS)
def test_integer_weights_equal_duplicated_examples(make_gaussians, kind):
    X, y = make_gaussians(kind)
    counts = np.random.default_rng(1).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), counts)
    lam = 1 / (0.5 * counts.sum())
    weighted, repeated = fit(X, y, sample_weight=counts), fit(X[rows], y[rows])
    assert_same_optimum(weighted, repeated, lam)
    some = counts > 0  # rows without weight are as good as none
    assert_same_optimum(fit(X[some], y[some], sample_weight=counts[some]), weighted, lam)
    weighted = walk(X, y, sample_weight=counts, batch_size=ALL_ROWS, max_iter=100)
    repeated = walk(X[rows], y[rows], batch_size=ALL_ROWS, max_iter=100)
    assert_close(weighted, repeated, 1e-8)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)


def test_factor_of_the_weights_is_a_factor_of_c(make_gaussians):
    X, y = make_gaussians()
    weights = np.random.default_rng(1).uniform(0, 2, 60)
    assert_equal_bits(
        fit(X, y, sample_weight=weights, C=2.0), fit(X, y, sample_weight=4 * weights, C=0.5)
    )
    assert_equal_bits(fit(X, y, sample_weight=2.0, C=0.5), fit(X, y, C=1.0))


def test_weights_of_any_number_type_are_the_same(make_gaussians):
    X, y = make_gaussians()
    weights = np.arange(60) % 4
    expected = fit(X, y, sample_weight=weights.astype(float))
    for other in (weights, weights.tolist(), weights.astype(np.float32), weights.astype(">f8")):
        assert_equal_bits(fit(X, y, sample_weight=other), expected)


@pytest.mark.parametrize("labels", [[-1, 1], ["no", "yes"]])
def test_class_weights_multiply_the_weights_of_the_examples(make_gaussians, labels):
    X, y = make_gaussians()
    named = np.where(y > 0, labels[1], labels[0])
    factors = np.where(y > 0, 0.5, 3.0)
    weights = np.random.default_rng(1).uniform(0, 2, 60)
    class_weight = {labels[0]: 3.0, labels[1]: 0.5}
    assert_equal_bits(fit(X, named, class_weight=class_weight), fit(X, y, sample_weight=factors))
    assert_equal_bits(
        fit(X, named, class_weight=class_weight, sample_weight=weights),
        fit(X, y, sample_weight=factors * weights),
    )
    assert_equal_bits(
        fit(X, named, class_weight={labels[1]: 2.0}), fit(X, y, sample_weight=np.where(y > 0, 2, 1))
    )


def test_balanced_classes_have_equal_weight_in_total(make_gaussians):
    X, _ = make_gaussians()
    y = np.repeat([0, 1, 2], [10, 20, 30])
    expected = walk(X, y, sample_weight=np.repeat([2.0, 1.0, 2 / 3], [10, 20, 30]))
    assert_close(walk(X, y, class_weight="balanced"), expected)
    weights = np.random.default_rng(1).uniform(0.1, 2, 60)
    totals = np.bincount(y, weights)[y]
    expected = walk(X, y, sample_weight=weights / totals * weights.sum() / 3)
    assert_close(walk(X, y, class_weight="balanced", sample_weight=weights), expected)


# ---- parameters ----------------------------------------------------------------------------------


def test_without_intercept_the_hyperplane_goes_through_the_origin(make_gaussians):
    X, y = make_gaussians()
    clf = fit(X, y, fit_intercept=False)
    assert clf.intercept_.tolist() == [0.0]
    np.testing.assert_allclose(clf.decision_function(X), X.mean @ clf.coef_[0], rtol=1e-12)
    assert clf.decision_function(np.zeros((1, 4))) == 0.0


@pytest.mark.parametrize("averaging", ["weighted", "none"])
def test_model_is_that_of_the_reference_with_the_same_seed(make_gaussians, averaging):
    X, y = make_gaussians()
    clf = walk(X, y, averaging=averaging, random_state=3, batch_size=7, max_iter=5)
    seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    options = {"batch_size": 7, "averaging": averaging, "seed": int(seed)}
    w, b = reference.sgd(X, y, 1 / (0.5 * 60), steps=5 * 9, **options)
    np.testing.assert_allclose(clf.coef_[0], w, rtol=0, atol=1e-9 * np.abs(w).max())
    assert clf.intercept_[0] == pytest.approx(b, rel=1e-8)


def test_one_seed_gives_one_result(make_gaussians):
    X, y = make_gaussians()
    expected = walk(X, y, random_state=5)
    assert_equal_bits(walk(X, y, random_state=5), expected)
    assert_equal_bits(walk(X, y, random_state=np.random.RandomState(5)), expected)
    assert (walk(X, y, random_state=6).coef_ != expected.coef_).any()


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "interior_point"])
def test_solvers_of_all_rows_need_no_seed(make_gaussians, solver):
    X, y = make_gaussians()
    expected = fit(X, y, solver=solver, random_state=None)
    assert_equal_bits(fit(X, y, solver=solver, random_state=1), expected)


def test_random_state_instance_gives_a_new_seed_to_each_fit(make_gaussians):
    X, y = make_gaussians()
    clf = make(solver="sgd", tol=0.0, max_iter=8, random_state=np.random.RandomState(5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second = clf.fit(X, y).coef_, clf.fit(X, y).coef_
    assert (first != second).any()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_number_of_threads_does_not_change_a_bit(make_gaussians, n_classes, solver):
    X, _ = make_gaussians("full", n=500)
    y = np.arange(500) % n_classes
    expected = walk(X, y, solver=solver, n_threads=1)
    for n_threads in (2, 4, None):
        clf = walk(X, y, solver=solver, n_threads=n_threads)
        assert_equal_bits(clf, expected)
        np.testing.assert_array_equal(clf.decision_std(X), expected.decision_std(X))
        np.testing.assert_array_equal(clf.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_iterations_are_counted(make_gaussians, solver):
    X, y = make_gaussians()
    for max_iter in (1, 3, 8):
        assert walk(X, y, solver=solver, max_iter=max_iter).n_iter_ == max_iter
    clf = make(C=0.05, tol=0.5, solver=solver).fit(X, y)
    assert 1 <= clf.n_iter_ < 100


def test_verbose_sgd_prints_a_line_after_1_2_4_passes(make_gaussians, capsys):
    X, y = make_gaussians()
    clf = walk(X, y, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[1]) for line in lines] == [1, 2, 4, 8]
    assert float(lines[-1].split()[3]) == pytest.approx(clf.objective_, rel=1e-8)
    assert float(lines[-1].split()[6]) == pytest.approx(clf.suboptimality_, rel=0.05)
    walk(X, y, verbose=0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "interior_point"])
def test_verbose_fit_prints_a_line_for_each_iteration(make_gaussians, capsys, solver):
    X, y = make_gaussians()
    clf = fit(X, y, solver=solver, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    numbers = [int(line.split()[1]) for line in lines]
    assert numbers == list(range(numbers[0], clf.n_iter_ + 1))
    assert numbers[0] <= 1
    assert all(line.startswith("iteration ") for line in lines)
    assert float(lines[-1].split()[3]) == pytest.approx(clf.objective_, rel=1e-8)
    assert float(lines[-1].split()[6]) <= CLOSE
    fit(X, y, solver=solver, verbose=0)
    assert capsys.readouterr() == ("", "")


@each("kind", KINDS)
@each("solver", ["auto", "interior_point"])
def test_warm_starts_along_a_path_of_c_end_at_the_optima_of_cold_starts(
    make_gaussians, kind, solver
):
    X, y = make_gaussians(kind)
    tol = CLOSE
    clf = make(solver=solver, warm_start=True, tol=tol)
    for C in (0.01, 0.1, 1.0, 10.0, 0.1):
        clf.set_params(C=C).fit(X, y)
        cold = fit(X, y, C=C)
        assert clf.suboptimality_ <= tol
        assert clf.objective_ == pytest.approx(cold.objective_, rel=1.01 * tol + CLOSE)


def test_warm_start_saves_passes(make_gaussians):
    X, y = make_gaussians("full", n=500)
    clf = make(solver="lbfgs", warm_start=True).fit(X, y)
    cold = clf.n_iter_
    assert clf.set_params(C=0.5).fit(X, y).n_iter_ <= 3  # it is there already
    assert clf.set_params(C=0.55).fit(X, y).n_iter_ < cold


def test_warm_start_of_sgd_goes_on_from_the_last_coefficients(make_gaussians):
    X, y = make_gaussians()
    clf = make(C=0.1, tol=1e-3, max_iter=100_000, solver="sgd", warm_start=True)
    clf.fit(X, y)
    n_iter, start = clf.n_iter_, (clf.coef_[0], clf.intercept_[0])
    assert_equal_bits(clf, clone(clf).set_params(warm_start=False).fit(X, y))
    clf.set_params(tol=0.0, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    w, b = reference.sgd(X, y, 1 / (0.1 * 60), steps=2, seed=seed, start=start)
    np.testing.assert_allclose(clf.coef_[0], w, rtol=0, atol=1e-9)
    assert clf.intercept_[0] == pytest.approx(b, rel=1e-8)
    assert n_iter > 1
    assert clf.suboptimality_ < 0.1  # a cold start is far from there after a pass
    assert walk(X, y, C=0.1, max_iter=1).suboptimality_ > 0.1


def test_warm_start_starts_anew_when_the_shape_has_changed(make_gaussians):
    X, y = make_gaussians()
    clf = fit(X, y, warm_start=True)
    labels = (X.mean[:, 0] > 0) + (X.mean[:, 0] > 1)
    assert_equal_bits(clf.fit(X, labels), fit(X, labels))
    narrow = Gaussians(X.mean[:, :2], cov=X.covariances.variances()[:, :2])
    assert_equal_bits(clf.fit(narrow, y), fit(narrow, y))
    assert clf.n_features_in_ == 2


def test_parameters_of_numpy_types_are_accepted(make_gaussians):
    X, y = make_gaussians()
    clf = walk(
        X,
        y,
        C=np.float32(0.5),
        max_iter=np.int64(8),
        batch_size=np.uint8(32),
        fit_intercept=np.True_,
        warm_start=np.False_,
        n_threads=np.int32(1),
        tol=0,
    )
    assert_equal_bits(clf, walk(X, y))


# ---- prediction ----------------------------------------------------------------------------------


@pytest.fixture(params=[2, 3], ids=["binary", "multiclass"])
def fitted(request, make_gaussians):
    """Return a fitted classifier and coefficients, intercepts as (K, d) and (K,)."""
    X, _ = make_gaussians("diagonal", n=90)
    return walk(X, np.arange(90) % request.param, max_iter=3)


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_decision_values_and_their_spread_follow_the_formulas(make_gaussians, kind, dtype, fitted):
    X, _ = make_gaussians(kind, n=150, seed=9, dtype=dtype)
    W, b = fitted.coef_, fitted.intercept_
    values = X.mean.astype(float) @ W.T + b
    spread = np.sqrt(np.einsum("ki,nij,kj->nk", W, X.covariances.to_full(), W))
    if len(W) == 1:
        values, spread = values[:, 0], spread[:, 0]
    np.testing.assert_allclose(fitted.decision_function(X), values, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(fitted.decision_std(X), spread, rtol=1e-7, atol=1e-13)
    with np.errstate(divide="ignore"):
        expected = special.ndtr(values / spread)  # +-inf for certain examples
    np.testing.assert_allclose(fitted.side_probability(X), expected, rtol=1e-7, atol=1e-13)
    codes = values.argmax(axis=1) if len(W) > 1 else (values > 0).astype(int)
    np.testing.assert_array_equal(fitted.predict(X), codes)


def test_side_probability_is_the_share_of_draws_on_the_positive_side(make_gaussians):
    X, y = make_gaussians("full", n=30, d=3)
    clf = fit(X, y)
    rng = np.random.default_rng(0)
    n_draws = 20_000
    shares = [
        np.mean(
            rng.multivariate_normal(m, s, n_draws, method="eigh") @ clf.coef_[0] > -clf.intercept_
        )
        for m, s in zip(X.mean, X.covariances.to_full(), strict=True)
    ]
    probability = clf.side_probability(X)
    standard_error = np.sqrt(probability * (1 - probability) / n_draws) + 1e-5
    assert (np.abs(shares - probability) <= 5 * standard_error).all()


def test_certain_examples_have_no_spread_and_side_probability_0_half_or_1():
    clf = walk(np.array([[-1.0], [1.0]]), [0, 1])
    assert clf.intercept_[0] == 0.0
    points = np.array([[-2.0], [0.0], [3.0]])
    np.testing.assert_array_equal(clf.decision_std(points), 0.0)
    np.testing.assert_array_equal(clf.side_probability(points), [0, 0.5, 1])


def test_points_and_gaussians_get_the_same_labels_and_values(make_gaussians, fitted):
    X, _ = make_gaussians("full", seed=9)
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(X.mean))
    np.testing.assert_array_equal(fitted.decision_function(X), fitted.decision_function(X.mean))


def test_spread_may_be_given_in_any_way_at_prediction(make_gaussians, fitted):
    X, _ = make_gaussians("diagonal_std", seed=9)
    std = X.covariances.values
    for function in (fitted.decision_std, fitted.side_probability):
        expected = function(X)
        np.testing.assert_array_equal(function(X.mean, X_std=std), expected)
        np.testing.assert_array_equal(function(X.mean, X_cov=X.covariances), expected)
        np.testing.assert_allclose(function(X.mean, X_cov=std**2), expected, rtol=1e-12)


def test_prediction_of_one_example_equals_that_of_many(make_gaussians, fitted):
    X, _ = make_gaussians("low_rank_diagonal", n=200, seed=9)
    for function in (fitted.decision_function, fitted.decision_std, fitted.side_probability):
        single = np.concatenate([function(X[i : i + 1]) for i in range(200)])
        np.testing.assert_allclose(single, function(X), rtol=1e-12, atol=1e-14)


def test_score_is_the_share_of_right_labels_of_gaussians(make_gaussians):
    X, y = make_gaussians()
    clf = fit(X, y)
    assert clf.score(X, y) == np.mean(clf.predict(X.mean) == y)


# ---- feature names -------------------------------------------------------------------------------


class Frame:
    """As much of a data frame as a reader needs."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def __len__(self):
        return len(self.values)

    def to_numpy(self):
        return self.values


def test_names_of_the_features_are_kept_and_compared(make_gaussians):
    X, y = make_gaussians()
    names = ["mass", "flux", "age", "size"]
    named = Gaussians(Frame(X.mean, names), cov=X.covariances)
    clf = fit(named, y)
    assert clf.feature_names_in_.tolist() == names
    assert_equal_bits(clf, fit(X, y))
    other = Gaussians(Frame(X.mean, ["mass", "age", "flux", "size"]), cov=X.covariances)
    for function in (clf.predict, clf.decision_function, clf.decision_std, clf.side_probability):
        function(named)
        function(X)
        with pytest.raises(ValueError, match="feature 1 named 'age', in fit it was 'flux'"):
            function(other)
    assert not hasattr(clf.fit(X, y), "feature_names_in_")


def test_names_of_means_and_errors_must_agree(make_gaussians):
    X, y = make_gaussians("diagonal_std")
    std = X.covariances.values
    means, errors = Frame(X.mean, list("abcd")), Frame(std, list("abed"))
    with pytest.raises(ValueError, match="std has column 2 named 'e', in mean it is 'c'"):
        Gaussians(means, std=errors)
    named = Gaussians(means, std=Frame(std, list("abcd")))
    assert fit(named, y).feature_names_in_.tolist() == list("abcd")


def test_columns_of_errors_may_have_names_of_their_own():
    pytest.importorskip("pandas")
    data = load_breast_cancer(as_frame=True)
    means, errors = data.data.iloc[:, :10], data.data.iloc[:, 10:20]
    clf = UncertainSVC(C=1e-3).fit(means, data.target, X_std=errors)
    plain = UncertainSVC(C=1e-3).fit(means.to_numpy(), data.target, X_std=errors.to_numpy())
    assert_equal_bits(clf, plain)
    assert clf.feature_names_in_.tolist() == means.columns.tolist()
    np.testing.assert_array_equal(
        clf.decision_std(means, X_std=errors),
        plain.decision_std(means.to_numpy(), X_std=errors.to_numpy()),
    )


# ---- life of an estimator ------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [lambda c: pickle.loads(pickle.dumps(c)), copy.deepcopy])
def test_copies_predict_the_same(make_gaussians, copied):
    X, y = make_gaussians("full")
    clf = fit(X, np.where(y > 0, "yes", "no"))
    other = copied(clf)
    assert_equal_bits(other, clf)
    np.testing.assert_array_equal(other.predict(X), clf.predict(X))
    np.testing.assert_array_equal(other.decision_std(X), clf.decision_std(X))
    assert other.get_params() == clf.get_params()


def test_clone_has_the_parameters_but_is_not_fitted(make_gaussians):
    X, y = make_gaussians()
    clf = fit(X, y, loss="hinge", class_weight={-1: 2.0})
    other = clone(clf)
    assert other.get_params() == clf.get_params()
    assert not hasattr(other, "coef_")


def same_state(one, other):
    return one.keys() == other.keys() and all(one[key] is other[key] for key in one)


@pytest.mark.parametrize("prepared", [True, False], ids=["fitted", "unfitted"])
def test_failing_fit_leaves_the_estimator_as_it_was(make_gaussians, prepared):
    X, y = make_gaussians()
    clf = fit(X, y) if prepared else make()
    before = dict(clf.__dict__)
    narrow = X.mean[:, :2]
    failures = [
        (narrow, np.ones(60), {}),
        (narrow, np.linspace(0, 1, 60), {}),
        (narrow, y, {"X_std": np.ones((60, 3))}),
        (narrow, y, {"X_std": -np.ones((60, 2))}),
        (narrow, y, {"sample_weight": np.zeros(60)}),
        (Gaussians(narrow), y, {"X_std": np.ones((60, 2))}),
        (Gaussians(narrow), y[:-1], {}),
        (np.full((60, 2), np.nan), y, {}),
    ]
    for means, labels, others in failures:
        with pytest.raises(ValueError, match=r"\w"):
            clf.fit(means, labels, **others)
        assert same_state(clf.__dict__, before)
    clf.C = -1.0
    before = dict(clf.__dict__)
    with pytest.raises(ValueError, match="C must be positive"):
        clf.fit(X, y)
    assert same_state(clf.__dict__, before)


def test_data_are_not_changed(make_gaussians):
    X, y = make_gaussians("diagonal_std")
    means, std, weights = X.mean.copy(), X.covariances.values.copy(), np.arange(60.0)
    kept = [array.copy() for array in (means, std, weights, y)]
    clf = fit(means, y, X_std=std, sample_weight=weights)
    clf.side_probability(means, X_std=std)
    for array, expected in zip((means, std, weights, y), kept, strict=True):
        np.testing.assert_array_equal(array, expected)
        assert array.flags.writeable


@pytest.mark.parametrize("solver", SOLVERS)
def test_end_before_the_tolerance_is_a_warning_with_the_numbers(make_gaussians, solver):
    X, y = make_gaussians()
    with pytest.warns(ConvergenceWarning) as caught:
        clf = UncertainSVC(max_iter=3, tol=1e-5, solver=solver, random_state=0).fit(X, y)
    [warning] = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert "after 3 iterations" in text
    assert f"certified suboptimality is {clf.suboptimality_:.2g}" in text
    assert clf.suboptimality_ > 1e-5
    assert "above tol = 1e-05" in text
    assert "increase max_iter" in text
    assert "passes" in clf.status_ or "iterations" in clf.status_
    assert clf.coef_.any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_status_tells_that_the_tolerance_is_met(make_gaussians, solver):
    X, y = make_gaussians()
    clf = make(C=0.05, tol=0.1, solver=solver).fit(X, y)
    assert clf.suboptimality_ <= 0.1
    assert "within the tolerance" in clf.status_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["lbfgs", "auto"])
def test_a_warm_start_may_find_some_classes_at_rest(solver):
    y = np.arange(300) % 3
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 6)) + 3.2 * np.eye(3, 6)[y]
        std = rng.lognormal(-0.3, 1.0, (300, 6))
        clf = UncertainSVC(solver=solver, warm_start=True, n_threads=1).fit(X, y, X_std=std)
        for tol in (1e-7, 1e-8, 1e-9, 1e-10):
            before = clf.objective_
            clf.set_params(tol=tol).fit(X, y, X_std=std)
            assert (clf.objective_ <= before * (1 + 1e-12)).all()
