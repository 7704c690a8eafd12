"""SafeSVC: its derivatives, its search, what it learns, and scikit-learn's conventions.

Oracles: central differences, the dense NumPy reference, BFGS of SciPy, LIBSVM.
"""

import numpy as np
import pandas as pd
import pytest
from cases import each, in_pairs
from estimator_checks import pass_checks
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from halosvm import Gaussians, SafeSVC, reference
from halosvm.linear.smoothed_robust import (
    BEND,
    FLOOR,
    SmoothedRobust,
    fit_robust,
    smoothed_hinge,
)

NOISY = [2, 5, 7]


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimator_passes_the_checks_of_scikit_learn():
    pass_checks(
        SafeSVC(norm=np.inf, validation=2, max_iter=3, class_weight="balanced", n_threads=1),
        {"check_sample_weight_equivalence_on_dense_data": "copies of a row are in several folds"},
    )


def test_repeated_rows_weights_and_order_of_rows_are_the_same_data():
    X, y = make_data(60, gap=0.3)
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 4, 60)
    order = rng.permutation(weights.sum())
    weighted = SafeSVC(C=2.0, random_state=0).fit(X, y, weights)
    repeated = SafeSVC(C=2.0, random_state=0)
    repeated.fit(X.repeat(weights, axis=0)[order], y.repeat(weights)[order])
    np.testing.assert_array_equal(repeated.coef_, weighted.coef_)
    np.testing.assert_array_equal(repeated.std_, weighted.std_)


def test_class_of_one_example_is_fitted():
    X, y = make_data(20)
    single = np.r_[0, np.flatnonzero(y)]
    clf = SafeSVC(random_state=0).fit(X[single], y[single])
    assert clf.decision_function(X[:1])[0] < clf.decision_function(X[1:2])[0]


def make_data(n=120, d=4, seed=0, gap=0.6):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + gap * (2 * y[:, None] - 1), y


def make_noisy(n=1000, seed=0):
    """Return examples that were measured well, and others with noise in 3 of 10 features."""
    X, y = make_data(2 * n, 10, seed, gap=0.5)
    X[n:, NOISY] += 3.0 * np.random.default_rng(seed + 100).normal(size=(n, 3))
    return X[:n], y[:n], (X[n:], y[n:])


# ---- the lower level -------------------------------------------------------------------------


def lower_level(q, *, fit_intercept=True, seed=0):
    """Return a problem of unequal weights and features of unequal size, and variances."""
    X, y = make_data(80, 4, seed)
    rng = np.random.default_rng(seed + 1)
    size = np.array([1.0, 100.0, 0.01, 3.0])
    c = rng.uniform(0.5, 2.0, 80)
    arguments = (X * size + size, 2.0 * y - 1, c / c.sum(), 0.02 / size[1] ** 2, q)
    problem = SmoothedRobust(*arguments, fit_intercept=fit_intercept)
    return problem, (rng.uniform(0.1, 0.5, 4) * size) ** 2, arguments


QS = pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 4.0])


@QS
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradient_and_hessian_equal_central_differences(q, fit_intercept):
    problem, variances, _ = lower_level(q, fit_intercept=fit_intercept)
    point, h = np.random.default_rng(2).normal(size=4 + fit_intercept), 1e-6

    def both(p):
        return problem.value_and_gradient(p, variances)

    product = problem.hessian(point, variances)
    for e in h * np.eye(len(point)):
        (above, right), (below, left) = both(point + e), both(point - e)
        slope = both(point)[1] @ e / h
        np.testing.assert_allclose(slope, (above - below) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(product(e / h), (right - left) / (2 * h), atol=1e-6)


def test_the_problem_is_that_of_the_reference():
    problem, variances, (X, y, c, lam, _) = lower_level(2.0)
    point = np.random.default_rng(3).normal(size=5)
    w, b = problem.model(point)
    spread = np.sqrt(variances @ w**2 + BEND**2)
    psi = reference.expected_hinge(1 - y * (X @ w + b) + spread, np.full(80, FLOOR))[0]
    value = problem.value_and_gradient(point, variances)[0]
    np.testing.assert_allclose(value, lam / 2 * w @ w + c @ psi, rtol=1e-13)


@QS
def test_the_smoothed_objective_lies_above_the_robust_one_by_the_floors_at_most(q):
    problem, variances, (X, y, c, lam, _) = lower_level(q)
    exact = Gaussians(X, std=np.tile(np.sqrt(variances), (80, 1)))
    norm = np.inf if q == 1 else q / (q - 1)
    for point in np.random.default_rng(4).normal(size=(50, 5)):
        value = problem.value_and_gradient(point, variances)[0]
        w, b = problem.model(point)
        robust = reference.robust_objective(exact, y, w, b, lam, 1.0, norm, c)[0]
        assert -1e-12 <= value - robust <= FLOOR / np.sqrt(2 * np.pi) + BEND + 1e-12


@QS
def test_the_fit_is_the_minimum_that_bfgs_finds(q):
    problem, variances, _ = lower_level(q)
    point = fit_robust(problem, variances)[0]
    value, gradient = problem.value_and_gradient(point, variances)
    assert np.abs(gradient).max() < 1e-7
    other = optimize.minimize(
        problem.value_and_gradient, np.ones(5), (variances,), jac=True, method="BFGS"
    )
    np.testing.assert_allclose(value, other.fun, rtol=1e-8)


@QS
@in_pairs
@each("log_size", [-10, 0, 7, 14])
@each("gap", [0.6, 3.0])
@each("std", [0.0, 0.1])
def test_no_method_gets_below_the_fit_whatever_the_size_of_features_and_objective(
    q, log_size, gap, std
):
    """J of classes that lie apart is as small as 1e-12 where features are large."""
    X, y = make_data(100, 5, gap=gap)
    problem = SmoothedRobust(
        X * 2.0**log_size, 2.0 * y - 1, np.full(100, 0.01), 0.01, q, fit_intercept=True
    )
    variances = np.full(5, (std * 2.0**log_size) ** 2)
    point, value, converged = fit_robust(problem, variances)
    assert converged
    assert value == problem.value_and_gradient(point, variances)[0]

    def share(at):
        J, gradient = problem.value_and_gradient(at, variances)
        return J / value, gradient / value

    for start in (point, 0.9 * point):
        other = optimize.minimize(share, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        assert other.fun >= 1.0 - 1e-8


@QS
@pytest.mark.parametrize("seed", range(3))
def test_hypergradient_equals_central_differences_through_new_fits(q, seed):
    problem, variances, _ = lower_level(q, seed=seed)
    judging, labels = make_data(50, 4, seed + 10)
    size = np.array([1.0, 100.0, 0.01, 3.0])
    sides = (2 * labels - 1)[:, None] * problem.rows(judging * size + size, fit_intercept=True)

    def loss(variances):
        return smoothed_hinge(1 - sides @ fit_robust(problem, variances)[0])[0].mean()

    point = fit_robust(problem, variances)[0]
    push = -smoothed_hinge(1 - sides @ point)[1] @ sides / 50
    by_variance = problem.hypergradient(point, variances, push) * variances
    h = 1e-4 if q > 1 else 3e-5  # the box has bends as sharp as BEND
    differences = [
        (loss(variances * (1 + e)) - loss(variances * (1 - e))) / (2 * h) for e in h * np.eye(4)
    ]
    assert np.abs(by_variance).max() > 1e-3
    np.testing.assert_allclose(by_variance, differences, atol=1e-5)


def test_hypergradient_equals_the_dense_one_of_the_reference():
    X, y = make_data(80, 4)
    judging, labels = make_data(50, 4, 1)
    signs, others, std = 2.0 * y - 1, 2.0 * labels - 1, np.array([0.1, 0.5, 0.3, 0.7])
    problem = SmoothedRobust(X, signs, np.full(80, 1 / 80), 0.05, 2.0, fit_intercept=True)
    point = fit_robust(problem, std**2)[0]
    sides = others[:, None] * problem.rows(judging, fit_intercept=True)
    push = -smoothed_hinge(1 - sides @ point)[1] @ sides / 50
    w, b = problem.model(point)
    expected = reference.safe_hypergradient(
        X, signs, std, w, b, 0.05, FLOOR, BEND, (judging, others), FLOOR
    )
    found = problem.hypergradient(point, std**2, push) * 2 * std
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


# ---- what it learns --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("norm", [2, np.inf])
def test_noise_in_three_of_ten_features_is_singled_out(norm, seed):
    X, y, judging = make_noisy(seed=seed)
    clf = SafeSVC(bounds=(0, 3), norm=norm, validation=judging).fit(X, y)
    assert set(np.argsort(clf.std_)[-3:]) == set(NOISY)
    test, labels = make_noisy(seed=seed + 50)[2]
    plain = SVC(kernel="linear").fit(X, y)
    assert clf.score(test, labels) > plain.score(test, labels) + 0.03
    assert np.abs(clf.coef_[0, NOISY]).max() < 0.5 * np.abs(plain.coef_[0, NOISY]).min()


@pytest.mark.parametrize("norm", [2, 3, np.inf])
@pytest.mark.parametrize("validation", [0.3, 3, "given"])
def test_the_validation_loss_never_increases_and_sizes_stay_in_the_box(norm, validation):
    X, y, judging = make_noisy(200, seed=5)
    low = np.array([0.0, 0.1, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
    high = np.array([0.5, 0.1, 2.0, 0.25, 1, 1, 1, 1, 1, 1])
    clf = SafeSVC(bounds=(low, high), norm=norm, random_state=0)
    clf.set_params(validation=judging if validation == "given" else validation).fit(X, y)
    assert len(clf.validation_losses_) == clf.n_iter_ + 1
    assert clf.n_iter_ > 1 or validation != "given"
    assert (np.diff(clf.validation_losses_) <= 0).all()
    assert (clf.std_ >= low * (1 - 1e-15)).all()
    assert (clf.std_ <= high * (1 + 1e-15)).all()


def test_no_point_near_the_learnt_sizes_has_a_lower_validation_loss():
    X, y, (judging, labels) = make_noisy(300, seed=7)
    X, judging = X[:, [0, 2]], judging[:, [0, 2]]
    clf = SafeSVC(bounds=(0, 3), validation=(judging, labels), tol=1e-9).fit(X, y)

    def loss(std):
        fixed = SafeSVC(bounds=(std, std), validation=(judging, labels)).fit(X, y)
        return fixed.validation_losses_[-1]

    np.testing.assert_allclose(loss(clf.std_), clf.validation_losses_[-1], rtol=1e-7)
    grid = np.linspace(-0.3, 0.3, 7)
    best = min(loss(np.clip(clf.std_ + np.array([a, b]), 0, 3)) for a in grid for b in grid)
    assert clf.validation_losses_[-1] <= best * (1 + 1e-4)


def test_the_loss_is_the_mean_hinge_of_the_validation_data_but_for_the_floor():
    X, y, (judging, labels) = make_noisy(300)
    clf = SafeSVC(bounds=(0.5, 0.5), validation=(judging, labels)).fit(X, y)
    hinge = np.maximum(0, 1 - (2 * labels - 1) * clf.decision_function(judging)).mean()
    assert hinge <= clf.validation_losses_[-1] <= hinge + FLOOR / np.sqrt(2 * np.pi)


def test_folds_average_their_losses():
    X, y = make_data()
    folds = list(StratifiedKFold(3).split(X, y))
    options = {"bounds": (0.4, 0.4), "C": 0.5}
    whole = SafeSVC(validation=StratifiedKFold(3), **options).fit(X, y)
    each = [
        SafeSVC(validation=(X[test], y[test]), **options).fit(X[train], y[train])
        for train, test in folds
    ]
    mean = np.mean([clf.validation_losses_[-1] for clf in each])
    np.testing.assert_allclose(whole.validation_losses_, [mean], rtol=1e-10)
    given = SafeSVC(validation=folds, **options).fit(X, y)
    np.testing.assert_array_equal(given.coef_, whole.coef_)


def test_sizes_zero_are_the_linear_svm_but_for_the_floors():
    X, y = make_data()
    clf = SafeSVC(bounds=(0, 0)).fit(X, y)
    svm = SVC(kernel="linear").fit(X, y)

    def objective(w, b):
        return w @ w / 2 + np.maximum(0, 1 - (2 * y - 1) * (X @ w + b)).sum()

    least = objective(svm.coef_[0], svm.intercept_[0])
    assert objective(clf.coef_[0], clf.intercept_[0]) <= least + 120 * (
        FLOOR / np.sqrt(2 * np.pi) + BEND
    )


def test_units_of_the_features_are_those_of_the_sizes():
    X, y = make_data()
    size = np.array([1.0, 1000.0, 0.01, 5.0])
    options = {"C": 1e3, "random_state": 0, "tol": 1e-3}
    one = SafeSVC(bounds=(0, np.ones(4)), **options).fit(X, y)
    other = SafeSVC(bounds=(0, 0.01 * np.ones(4)), **{**options, "C": 1e7}).fit(0.01 * X, y)
    np.testing.assert_allclose(other.std_, 0.01 * one.std_, atol=1e-5)
    np.testing.assert_allclose(other.coef_, 100 * one.coef_, rtol=1e-3, atol=1e-1)
    shifted = SafeSVC(bounds=(0, size), **options).fit(X * size + 50 * size, y)
    assert np.isfinite(shifted.std_).all()


@pytest.mark.parametrize("gap", [0.6, 3.0])
@pytest.mark.parametrize("log_size", [-10, 14])
def test_the_model_does_not_depend_on_the_unit_of_the_features(log_size, gap):
    X, y = make_data(gap=gap)
    judging, labels = make_data(seed=1, gap=0.6)
    size = 2.0**log_size

    def fit(X, judging, C, bound):
        return SafeSVC(C=C, bounds=(0, bound), validation=(judging, labels)).fit(X, y)

    one, other = fit(X, judging, 10.0, 2.0), fit(X * size, judging * size, 10 / size**2, 2 * size)
    np.testing.assert_allclose(other.coef_ * size, one.coef_, rtol=1e-6)
    np.testing.assert_allclose(other.std_ / size, one.std_, rtol=1e-6)
    np.testing.assert_allclose(other.objective_ * size**2, one.objective_, rtol=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_objective_and_validation_loss_are_those_of_the_model(size):
    X, y = make_data(gap=3.0)
    judging, labels = make_data(seed=1)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    clf = SafeSVC(C=2.0, bounds=(0, size), validation=(judging * size, labels))
    clf.fit(X * size, y, weights)
    w, b = clf.coef_[0], clf.intercept_[0]
    losses = smoothed_hinge(1 - (2 * labels - 1) * (judging * size @ w + b))[0]
    assert losses.mean() == pytest.approx(clf.validation_losses_[-1], rel=1e-9)
    deficits = 1 - (2 * y - 1) * (X * size @ w + b) + np.sqrt(clf.std_**2 @ w**2 + BEND**2)
    J = w @ w / 2 + 2.0 * weights @ smoothed_hinge(deficits)[0]
    assert clf.objective_ == pytest.approx(J, rel=1e-9)


def test_fit_that_rounding_keeps_from_its_minimum_is_a_warning():
    X, y = make_data(gap=3.0)
    with pytest.warns(ConvergenceWarning, match="keeps a fit for given sizes of the errors from"):
        SafeSVC(C=1e100, bounds=(0, 0), validation=make_data(seed=1)).fit(X, y)


def test_weights_are_repetitions_where_the_validation_data_are_given():
    X, y = make_data()
    judging = make_data(seed=1)
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"validation": judging, "C": 0.1}
    weighted = SafeSVC(**options).fit(X, y, sample_weight=counts)
    repeated = SafeSVC(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.std_, repeated.std_, atol=1e-5)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


def test_class_weights_move_the_boundary():
    X, y = make_data(gap=0.2)
    counts = [
        np.count_nonzero(SafeSVC(class_weight={1: w}, random_state=0).fit(X, y).predict(X))
        for w in (0.3, 1.0, 3.0)
    ]
    assert counts[0] < counts[1] < counts[2]


def test_gaussian_test_points_have_their_spread_and_probability():
    X, y = make_data()
    clf = SafeSVC(random_state=0).fit(Gaussians(X), y)
    G = Gaussians(X, std=np.full(X.shape, 0.5))
    np.testing.assert_allclose(clf.decision_std(G), 0.5 * np.linalg.norm(clf.coef_))
    assert clf.side_probability(G).shape == (120,)
    assert cross_val_score(SafeSVC(random_state=0), Gaussians(X), y, cv=3).mean() > 0.7


def test_three_classes_go_through_one_vs_rest():
    X, y = make_data(150)
    y = y + (X[:, 0] > 1.5)
    assert OneVsRestClassifier(SafeSVC(random_state=0)).fit(X, y).score(X, y) > 0.6


def test_frames_keep_their_names_and_validation_frames_are_checked():
    X, y = make_data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = SafeSVC(validation=(frame, y)).fit(frame, y)
    assert list(clf.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match=r"^validation: .*feature names"):
        SafeSVC(validation=(frame.rename(columns={"a": "e"}), y)).fit(frame, y)


# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bounds": (0.0, 1.0, 2.0)}, ValueError, "^bounds must be a pair"),
        ({"bounds": 1.0}, ValueError, "^bounds must be a pair"),
        ({"bounds": (-1.0, 1.0)}, ValueError, r"^bounds\[0\] of feature 0 is -1; it must be"),
        ({"bounds": (0.0, [1, 1, np.nan, 1])}, ValueError, r"^bounds\[1\] of feature 2 is nan"),
        ({"bounds": (0.0, [1, 1])}, ValueError, r"^bounds\[1\] has shape \(2,\); give one number"),
        ({"bounds": ([0, 2, 0, 0], 1.0)}, ValueError, r"^bounds\[0\] of feature 1 is 2; it must"),
        ({"norm": 1}, ValueError, "^norm must be above 1, got 1"),
        ({"norm": "2"}, TypeError, "^norm must be a number"),
        ({"C": 0.0}, ValueError, "^C must be positive"),
        ({"max_iter": 0}, ValueError, "^max_iter must be >= 1"),
        ({"fit_intercept": 1}, TypeError, "^fit_intercept must be True or False"),
        ({"validation": 1.5}, ValueError, "^validation must be above 0 and below 1, got 1.5"),
        ({"validation": None}, TypeError, "^validation must be a fraction"),
        ({"validation": "half"}, TypeError, "^validation must be a fraction"),
        (
            {"validation": (np.zeros((2, 3)), [0, 1])},
            ValueError,
            "^validation: X has 3 features, but SafeSVC is expecting 4",
        ),
        (
            {"validation": (np.zeros((2, 4)), [0, 7])},
            ValueError,
            "^validation: y row 1 is 7, which no example to fit has",
        ),
        (
            {"validation": (np.zeros((2, 4)), [0])},
            ValueError,
            "^validation: y has 1 values, X has 2 rows",
        ),
        (
            {"validation": (np.full((1, 4), np.nan), [0])},
            ValueError,
            "^validation: X: row 0, column 0 is nan|^validation: .*NaN",
        ),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    X, y = make_data()
    with pytest.raises(error, match=message):
        SafeSVC(**options).fit(X, y)


def test_errors_of_training_data_are_refused_with_the_way_to_use_them():
    X, y = make_data()
    with pytest.raises(
        ValueError, match=r"^X has errors, and SafeSVC learns them.*calibrate_scale"
    ):
        SafeSVC().fit(Gaussians(X, std=np.ones(X.shape)), y)


def test_a_part_without_one_of_the_classes_is_named():
    X, y = make_data()
    order = np.argsort(y)
    with pytest.raises(ValueError, match=r"^validation: part 0 has no example of class 0 to fit"):
        SafeSVC(validation=KFold(2)).fit(X[order], y[order])
    with pytest.raises(ValueError, match=r"^validation: part 0 has no example to judge"):
        SafeSVC(validation=[(np.arange(120), np.arange(0))]).fit(X, y)


def test_examples_of_weight_zero_count_as_missing():
    X, y = make_data()
    (fitted, judging), *_ = folds = list(StratifiedKFold(2).split(X, y))
    for lost, message in (
        (judging, "^validation: part 0 has no example to judge the fit by"),
        (fitted[y[fitted] == 1], "^validation: part 0 has no example of class 1 to fit"),
    ):
        weights = np.ones(120)
        weights[lost] = 0.0
        with pytest.raises(ValueError, match=message):
            SafeSVC(validation=folds).fit(X, y, sample_weight=weights)


def test_a_search_that_is_cut_short_warns():
    X, y, judging = make_noisy(200)
    with pytest.warns(ConvergenceWarning, match="^after 1 steps the validation loss still falls"):
        SafeSVC(bounds=(0, 3), validation=judging, max_iter=1).fit(X, y)


def test_one_seed_gives_one_result_and_a_splitter_needs_none():
    X, y = make_data()
    one, two = (SafeSVC(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    other = SafeSVC(random_state=4).fit(X, y)
    assert not np.array_equal(one.validation_losses_, other.validation_losses_)
    splitter = ShuffleSplit(2, random_state=0)
    one, two = (SafeSVC(validation=splitter).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_verbose_prints_the_loss_of_each_step(capsys):
    X, y = make_data()
    clf = SafeSVC(random_state=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("step     0   validation loss")
    assert len(lines) >= clf.n_iter_
