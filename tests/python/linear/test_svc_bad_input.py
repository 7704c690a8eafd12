"""Bad input to UncertainSVC is an error with argument, place and value, or gives a right result.

Every message is matched, so that an error for another reason does not pass as the right one.
"""

import re
import warnings

import numpy as np
import pytest
from cases import each, in_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from halosvm import (
    Covariances,
    Gaussians,
    IsotropicKernelSVC,
    UncertainKernelSVC,
    UncertainSVC,
    _core,
)

N, D = 12, 3
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N, D))
Y = np.arange(N) % 2
STD = _RNG.uniform(0.1, 1, (N, D))
FULL = np.repeat(np.eye(D)[None], N, axis=0)


def fit(means=X, y=Y, *, options=None, **data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = UncertainSVC(**{"random_state": 0, "max_iter": 8, **(options or {})})
        return clf.fit(means, y, **data)


WALKS = {
    "auto": {},
    "lbfgs": {"solver": "lbfgs"},
    "interior_point": {"solver": "interior_point"},
    "sgd": {"solver": "sgd"},
    "literal sgd": {"solver": "sgd", "averaging": "none"},
}


@pytest.fixture(params=WALKS.values(), ids=WALKS)
def solver(request):
    """Return the parameters that choose a solver."""
    return request.param


def changed(array, index, value):
    array = array.astype(float)
    array[index] = value
    return array


def assert_usable(clf):
    """Assert that a fit gave numbers."""
    assert np.isfinite(clf.coef_).all()
    assert np.isfinite(clf.intercept_).all()
    assert np.isfinite(clf.objective_).all()
    assert not np.isnan(clf.suboptimality_).any()


# ---- covariances: shape and meaning --------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"X_cov": np.eye(D)}, "X_cov has shape (3, 3): one matrix for 12 rows"),
        ({"X_cov": np.eye(D)}, "Covariances.full(np.broadcast_to(X_cov, (12, 3, 3)))"),
        ({"X_cov": np.ones(D)}, "Covariances.diagonal(np.broadcast_to(X_cov, (12, 3)))"),
        ({"X_std": np.ones(D)}, "X_std has shape (3,): X has 12 rows"),
        ({"X_std": np.ones(D)}, "Covariances.from_std(np.broadcast_to(X_std, (12, 3)))"),
        ({"X_std": 0.1}, "X_std is a single number"),
        ({"X_cov": np.float64(0.1)}, "X_cov is a single number"),
        ({"X_std": FULL}, "X_std has shape (12, 3, 3): too many dimensions"),
        ({"X_cov": FULL[None]}, "X_cov has shape (1, 12, 3, 3): too many dimensions"),
        ({"X_std": np.ones((N, 4))}, "X_std has 4 columns, X has 3"),
        ({"X_std": np.ones((N, 1))}, "X_std has 1 columns, X has 3"),
        ({"X_std": np.ones((11, D))}, "X_std has 11 rows, X has 12"),
        ({"X_std": np.ones(11)}, "X_std has 11 rows, X has 12"),
        ({"X_cov": np.ones((N, 4))}, "X_cov has 4 columns, X has 3"),
        ({"X_cov": np.ones((11, D, D))}, "X_cov has 11 rows, X has 12"),
        ({"X_cov": np.ones((N, 2, 2))}, "X_cov has 2 columns, X has 3"),
        ({"X_cov": np.ones((N, D, 4))}, "X_cov has shape (12, 3, 4)"),
        ({"X_cov": Covariances.zero(11, D)}, "X_cov has 11 rows, X has 12"),
        ({"X_cov": Covariances.zero(N, 4)}, "X_cov has 4 columns, X has 3"),
        ({"X_std": STD, "X_cov": STD}, "X_std and X_cov are both given"),
        ({"X_std": [[0.1, 0.2, 0.3], [0.1]] * 6}, "X_std is not an array of numbers"),
    ],
)
def test_covariances_of_the_wrong_shape_or_meaning(data, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(**data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"X_cov": np.eye(D)}, "Covariances.diagonal(X_cov)"),
        ({"X_cov": np.eye(D)}, "Covariances.full(np.broadcast_to(X_cov, (3, 3, 3)))"),
        ({"X_std": STD[:D, 0]}, "Covariances.from_std(X_std, n_features=3)"),
        ({"X_cov": STD[:D, 0]}, "Covariances.isotropic(X_cov, n_features=3)"),
        ({"X_cov": STD[:D, 0]}, "Covariances.diagonal(np.broadcast_to(X_cov, (3, 3)))"),
    ],
)
def test_as_many_examples_as_features_leave_the_meaning_open(data, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(X[:D], [0, 1, 1], **data)


def test_as_many_examples_as_features_are_fine_where_the_meaning_is_clear():
    clf = fit(X[:D], [0, 1, 1], X_std=STD[:D])
    other = fit(X[:D], [0, 1, 1], X_cov=Covariances.from_std(STD[:D]))
    np.testing.assert_array_equal(clf.coef_, other.coef_)
    assert_usable(fit(X[:1, :1].repeat(2, 0), [0, 1], X_std=STD[:2, 0]))


def test_gaussians_have_their_covariances_already():
    for name in ("X_std", "X_cov"):
        with pytest.raises(ValueError, match=f"{name} is given, but X is Gaussians"):
            fit(Gaussians(X), **{name: STD})


def test_covariances_are_not_standard_deviations():
    with pytest.raises(TypeError, match="X_std is Covariances; pass them as X_cov"):
        fit(X_std=Covariances.diagonal(STD))


# ---- covariances: values -------------------------------------------------------------------------

BAD_SPREADS = [(-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")]


@pytest.mark.parametrize(("value", "text"), BAD_SPREADS)
@pytest.mark.parametrize("name", ["X_std", "X_cov"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_negative_nan_and_infinite_spreads_are_named_with_their_place(name, value, text, dtype):
    bad = changed(STD, (7, 2), value).astype(dtype)
    expected = rf"{name}:? row 7, column 2 is {text}; it must be >= 0 and finite"
    with pytest.raises(ValueError, match=expected):
        fit(**{name: bad})
    with pytest.raises(ValueError, match=rf"{name}:? row 7.* is {text}; it must be >= 0"):
        fit(**{name: bad[:, 2].copy()})


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (
            (7, 0, 1),
            0.5,
            r"X_cov:? row 7 is not symmetric: entry \((0, 1|1, 0)\) is 0.*0\.5|0\.5.*0",
        ),
        ((7, (0, 1), (1, 0)), 2.0, r"X_cov:? row 7 has the eigenvalue -1;"),
        ((7, 2, 2), -0.5, r"X_cov:? row 7 has the eigenvalue -0.5;"),
        ((7, 0, 1), np.nan, r"X_cov:? row 7.* is nan; it must be finite"),
        ((7, 1, 1), np.inf, r"X_cov:? row 7.* is inf; it must be finite"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrices_that_are_no_covariances_are_named_with_their_row(index, value, message, dtype):
    with pytest.raises(ValueError, match=message):
        fit(X_cov=changed(FULL, index, value).astype(dtype))


def test_first_of_several_bad_rows_is_named():
    bad = changed(changed(STD, (9, 0), -1), (4, 1), -2)
    with pytest.raises(ValueError, match="row 4, column 1 is -2"):
        fit(X_std=bad)
    many = np.ones((300_000, 1))
    many[[299_999, 150_000, 7]] = -1
    for row in (7, 150_000, 299_999):
        with pytest.raises(ValueError, match=f"row {row}, column 0 is -1"):
            Gaussians(np.zeros((300_000, 1)), std=many)
        many[row] = 1


def test_slight_asymmetry_and_indefiniteness_are_rounding():
    rank_one = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    rank_one[0, 1] *= 1 + 1e-10
    rank_one[2, 2] *= 1 - 1e-10
    assert_usable(fit(X_cov=np.repeat(rank_one[None], N, axis=0)))


@pytest.mark.parametrize("value", [1e200, 1e300])
def test_values_that_would_overflow_are_errors(value):
    for data in ({"X_std": changed(STD, (7, 2), value)}, {"X_cov": changed(STD, (7, 2), value)}):
        with pytest.raises(ValueError, match=r"row 7, column 2 is 1e\+[23]00; values beyond"):
            fit(**data)
    for means in (X, -X):
        with pytest.raises(ValueError, match=r"X:? row 7, column 2 is -?1e\+[23]00; values beyond"):
            fit(changed(means, (7, 2), np.copysign(value, means[7, 2])))
    with pytest.raises(ValueError, match=r"X_cov:? row 7.* is 1e\+[23]00; values beyond"):
        fit(X_cov=changed(FULL, (7, 1, 1), value))


# ---- means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_means_that_are_not_finite(value):
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        fit(changed(X, (7, 2), value))
    told = (
        "X: row 7, column 2 is missing" if np.isnan(value) else f"mean row 7, column 2 is {value}"
    )
    with pytest.raises(ValueError, match=told):
        fit(Gaussians(changed(X, (7, 2), value)))


@pytest.mark.parametrize(
    ("means", "y", "message"),
    [
        (np.empty((0, D)), [], "0 sample"),
        (np.empty((N, 0)), Y, "0 feature"),
        (Gaussians(np.empty((0, D))), [], "X has 0 rows"),
        (X[:, 0], Y, "1D array"),
        (X[None], Y, "dim 3"),
        (X[:1], Y[:1], "y has only one class, 0"),
        (Gaussians(X[:1]), Y[:1], "y has only one class, 0"),
        (X * 1j, Y, "Complex data not supported"),
        ([*X[:, :2].tolist()[:-1], [1.0]], Y, "inhomogeneous"),
    ],
)
def test_means_that_are_no_table_of_numbers(means, y, message):
    with pytest.raises(ValueError, match=message):
        fit(means, y)


@pytest.mark.parametrize("text", [np.full((N, D), "1.5"), np.full((N, D), "1.5").tolist()])
def test_text_is_refused_for_means_and_for_errors(text):
    with pytest.raises(TypeError, match="X has dtype <U3; real numbers are needed"):
        fit(text, Y)
    with pytest.raises(TypeError, match="X_std has dtype <U3; real numbers are needed"):
        fit(X, Y, X_std=text)


@pytest.mark.parametrize("bad", [STD.astype(complex), STD.astype(str), STD.astype("M8[s]")])
def test_errors_that_are_not_real_numbers(bad):
    with pytest.raises(TypeError, match=r"X_std has dtype .*; real numbers are needed"):
        fit(X_std=bad)


def test_masked_errors_are_refused():
    with pytest.raises(ValueError, match=r"X_std:? row \d+, column \d is masked"):
        fit(X_std=np.ma.masked_less(STD, 0.5))


# ---- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_gaussians", [False, True])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(N, int), "y has only one class, 1; two or more"),
        (np.full(N, "a"), "y has only one class, 'a'; two or more"),
        (np.zeros(N, bool), "y has only one class, False; two or more"),
        (np.full(N, "a", object), "y has only one class, 'a'; two or more"),
        (np.linspace(0, 1, N), "Unknown label type: continuous"),
        (np.linspace(0, 1, N).astype(object), "Unknown label type: continuous"),
        (np.where(Y, 1.0, np.nan), "y: row 0 is missing"),
        (np.where(Y, 1.0, np.inf), "Input y contains infinity"),
        (np.where(Y, 1.0, np.nan).astype(object), "y: row 0 is missing"),
        (np.where(Y, 1, None), "y: row 0 is missing"),
        (np.where(Y, 1.0, np.inf).astype(object), "Input y contains infinity"),
        (Y[:-1], r"inconsistent numbers of samples: \[12, 11\]|y has 11 values, X has 12 rows"),
        (np.stack([Y, Y], axis=1), r"y should be a 1d array, got an array of shape \(12, 2\)"),
        (np.float64(1.0), r"y should be a 1d array|Expected .*array"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_labels_that_are_no_classes(as_gaussians, y, message):
    with pytest.raises(ValueError, match=message):
        fit(Gaussians(X) if as_gaussians else X, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", 1], "y has labels that cannot be sorted, of the types int, str"),
        ([True, "a"], "y has labels that cannot be sorted, of the types bool, str"),
        ([{}, {"a": 1}], "y has labels that cannot be sorted, of the types dict"),
    ],
)
def test_labels_that_cannot_be_sorted_are_named_by_type(labels, message):
    y = np.empty(N, object)
    y[:] = labels * (N // 2)
    with pytest.raises(TypeError, match=message):
        fit(y=y)


def test_labels_of_bytes_are_refused():
    for y in (np.array([b"a", b"b"])[Y], np.array([b"a", b"b"], object)[Y]):
        with pytest.raises(TypeError, match="bytes"):
            fit(y=y)


def test_column_of_labels_is_taken_with_a_warning():
    for means in (X, Gaussians(X)):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            clf = UncertainSVC(random_state=0, C=0.01, tol=0.5).fit(means, Y[:, None])
        expected = UncertainSVC(random_state=0, C=0.01, tol=0.5).fit(means, Y)
        np.testing.assert_array_equal(clf.coef_, expected.coef_)


def test_too_many_classes_are_an_error():
    n = 2**16
    with pytest.raises(ValueError, match="y has 32768 classes; the limit is 32767"):
        fit(np.zeros((n, 1)), np.arange(n) // 2)


# ---- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (changed(np.ones(N), 7, np.nan), "Input sample_weight contains NaN: row 7 is nan"),
        (changed(np.ones(N), 7, np.inf), "Input sample_weight contains infinity"),
        (np.zeros(N), "(?i)sample.weight.*(non-zero|positive)"),
        (np.full(N, 1e308), "sample_weight sums to inf; the sum must be positive and finite"),
        (np.full(N, 1e-320), r"weights sum to 1\.\d*e-319, which makes lambda"),
        (Y.astype(float), "sample_weight is 0 for all examples of class 0; leave them out"),
        (np.ones(N - 1), r"sample_weight.shape == \(11,\), expected \(12,\)"),
        (np.ones((N, 2)), "1D array or scalar"),
    ],
)
def test_weights_that_make_no_sense(weights, message):
    for means in (X, Gaussians(X)):
        with pytest.raises(ValueError, match=message):
            fit(means, sample_weight=weights)
        with pytest.raises(TypeError, match="sample_weight has dtype <U1; real numbers are needed"):
            fit(means, sample_weight=["a"] * N)


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], ["no", "perhaps", "yes"]])
def test_a_class_without_weight_is_named_by_its_label(labels):
    y = np.array(labels)[np.arange(N) % len(labels)]
    for estimator in (UncertainSVC(), UncertainKernelSVC(), IsotropicKernelSVC()):
        for label in labels:
            message = f"sample_weight is 0 for all examples of class {label!r}"
            with pytest.raises(ValueError, match=message):
                estimator.fit(X, y, sample_weight=(y != label).astype(float))
    clf = UncertainSVC(class_weight={labels[0]: 1e-300})
    message = f"sample_weight times class_weight is 0 for all examples of class {labels[0]!r}"
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y, sample_weight=np.where(y == labels[0], 1e-300, 1.0))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: -1.0}, "class_weight of class 0 is -1; it must be positive and finite"),
        ({0: 0.0}, "class_weight of class 0 is 0; it must be positive and finite"),
        ({1: np.nan}, "class_weight of class 1 is nan; it must be positive and finite"),
        ({1: np.inf}, "class_weight of class 1 is inf; it must be positive and finite"),
        ({5: 1.0}, "class_weight has the class 5, which y has not; the classes of y are 0, 1"),
        ("even", "class_weight"),
        (3, "class_weight"),
    ],
)
def test_class_weights_that_make_no_sense(class_weight, message):
    with pytest.raises(ValueError, match=message):
        fit(options={"class_weight": class_weight})


# ---- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 0.0, -1.0, np.nan, np.inf, -np.inf])
def test_c_must_be_positive_and_finite(value):
    with pytest.raises(ValueError, match=f"C must be positive and finite, got {value}"):
        fit(options={"C": value})


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf])
def test_tol_must_not_be_negative(value):
    with pytest.raises(ValueError, match=f"tol must be >= 0 and finite, got {value}"):
        fit(options={"tol": value})


@pytest.mark.parametrize("name", ["C", "tol"])
@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0]])
def test_c_and_tol_must_be_numbers(name, value):
    with pytest.raises(TypeError, match=re.escape(f"{name} must be a number, got {value!r}")):
        fit(options={name: value})


@pytest.mark.parametrize("name", ["max_iter", "batch_size", "n_threads"])
def test_counts_must_be_positive_integers(name):
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"{name} must be >= 1, got {value}"):
            fit(options={name: value})
    for value in (2.5, "2", True, [1]):
        with pytest.raises(TypeError, match=re.escape(f"{name} must be an integer, got {value!r}")):
            fit(options={name: value})


@pytest.mark.parametrize("name", ["max_iter", "batch_size"])
def test_counts_other_than_threads_must_be_given(name):
    with pytest.raises(TypeError, match=f"{name} must be an integer, got None"):
        fit(options={name: None})


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("loss", ", ".join(_core.loss_names())),
        ("solver", "auto, lbfgs, interior_point, dual_coordinate, sgd, proximal_sgd"),
        ("averaging", "weighted, none"),
    ],
)
@pytest.mark.parametrize("value", ["HINGE", "", None, 0, ["hinge"]])
def test_names_must_be_known(name, allowed, value):
    expected = f"{name} must be one of {allowed}; got {value!r}"
    with pytest.raises(ValueError, match=re.escape(expected)):
        fit(options={name: value})


@pytest.mark.parametrize("name", ["fit_intercept", "warm_start"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_switches_must_be_booleans(name, value):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got {value!r}"):
        fit(options={name: value})


def test_random_state_must_be_a_seed():
    with pytest.raises(ValueError, match="cannot be used to seed"):
        fit(options={"solver": "sgd", "random_state": "seed"})


def test_c_beyond_what_floats_hold_is_an_error():
    with pytest.raises(ValueError, match=r"C is 1e-310 .* lambda = .* inf; it must be positive"):
        fit(options={"C": 1e-310})
    with pytest.raises(ValueError, match=r"C is 1e\+308 .* lambda = .* 0; it must be positive"):
        fit(sample_weight=1e200, options={"C": 1e308})


# ---- strange but valid ---------------------------------------------------------------------------


@in_pairs
@each("solver", WALKS.values())
@each("loss", ["expected_hinge", "hinge"])
@each("n_classes", [2, 3])
@each("scale", [1e-300, 1e-200, 1e-100, 1e-50, 1e50, 1e74, 1e100, 1e149])
def test_values_of_any_size_give_finite_models(solver, loss, n_classes, scale):
    y = np.arange(N) % n_classes
    options = {**solver, "loss": loss, "n_threads": 1}
    small = min(scale, 1e74)  # the variance is its square
    for means, std in ((X * scale, None), (X * scale, STD * small), (X, STD * small)):
        means = np.clip(means, -1e150, 1e150)
        for fit_intercept in (True, False):
            clf = fit(means, y, X_std=std, options={**options, "fit_intercept": fit_intercept})
            assert_usable(clf)
            assert not np.isnan(clf.decision_std(means, X_std=std)).any()
            assert not np.isnan(clf.side_probability(means, X_std=std)).any()


@pytest.mark.parametrize("c", [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300])
def test_any_c_gives_a_finite_model(c, solver):
    for std in (None, STD):
        assert_usable(fit(X_std=std, options={"C": c, **solver}))


def test_steps_that_overflow_are_an_error():
    with pytest.raises(ValueError, match=r"coefficients overflow.*1e\+300"):
        fit(X * 1e75, options={**WALKS["literal sgd"], "C": 1e300, "batch_size": 4})


@pytest.mark.parametrize("std", [None, STD], ids=["certain", "uncertain"])
@pytest.mark.parametrize("exponent", [-100, -20, 20, 100])
def test_unit_of_the_data_does_not_change_the_optimum_or_the_labels(std, exponent):
    unit = 2.0**exponent
    expected = fit(X_std=std, options={"max_iter": 100})
    options = {"C": unit**-2, "max_iter": 100}
    clf = fit(X * unit, X_std=None if std is None else std * unit, options=options)
    assert clf.suboptimality_ <= 1e-6
    assert clf.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    np.testing.assert_array_equal(clf.predict(X * unit), expected.predict(X))


@in_pairs
@each("solver", WALKS.values())
@each("std", [None, STD])
@each("fit_intercept", [True, False])
@each("means", [np.zeros((N, D)), np.ones((N, D)), np.repeat(X[:1], N, axis=0)])
def test_examples_without_a_difference_give_the_majority(means, fit_intercept, std, solver):
    y = np.repeat(["many", "few"], [8, 4])
    options = {"fit_intercept": fit_intercept, "max_iter": 200, **solver}
    clf = fit(means, y, X_std=std, options=options)
    assert_usable(clf)
    if fit_intercept:
        assert (clf.predict(means) == "many").all()
        # w = 0, b = 1: the minority is charged 2, and nothing else costs anything.
        room = 0.05 if solver.get("solver") == "sgd" else 1e-6
        assert 2 / 3 * (1 - 1e-12) <= clf.objective_ <= 2 / 3 * (1 + room)


@pytest.mark.parametrize("name", ["auto", "lbfgs", "interior_point", "sgd"])
def test_constant_features_get_no_weight(name):
    means = np.column_stack([X, np.full(N, 3.0)])
    clf = fit(means, X_std=np.column_stack([STD, np.zeros(N)]), options=WALKS[name])
    assert clf.coef_[0, 3] == pytest.approx(0.0, abs=1e-14)


def test_two_certain_examples_are_separated_in_the_middle(solver):
    options = {"C": 1.0, "max_iter": 4096, **solver}
    clf = fit(np.array([[1.0], [3.0]]), [1, 0], options=options)
    # w = -1, b = 2 touches both margins; J = lam / 2 |w|^2 = 1 / 4.
    room = 0.05 if solver.get("solver") == "sgd" else 1e-6
    assert clf.coef_[0, 0] == pytest.approx(-1.0, abs=np.sqrt(2 * room))
    if solver.get("averaging") != "none":
        assert clf.intercept_[0] == pytest.approx(-2 * clf.coef_[0, 0], rel=1e-9)
    assert 0.25 * (1 - 1e-12) <= clf.objective_ <= 0.25 * (1 + room)


def test_weights_of_very_different_sizes_give_a_finite_model(solver):
    for weights in (10.0 ** np.linspace(-300, 0, N), 10.0 ** np.linspace(0, 300, N)):
        options = {"C": 1 / weights.sum(), **solver}
        assert_usable(fit(X_std=STD, sample_weight=weights, options=options))


@settings(max_examples=300)
@given(
    n=st.integers(2, 8),
    d=st.integers(1, 4),
    means=st.floats(-100, 100),
    errors=st.floats(-150, 74),
    c=st.floats(-100, 100),
    seed=st.integers(0, 2**32 - 1),
    walk=st.sampled_from(list(WALKS.values())),
)
def test_no_scale_of_data_and_c_gives_nan(n, d, means, errors, c, seed, walk):
    rng = np.random.default_rng(seed)
    options = {"C": 10.0**c, "random_state": seed, "n_threads": 1, **walk}
    clf = fit(
        rng.normal(size=(n, d)) * 10.0**means,
        np.arange(n) % 2,
        X_std=rng.uniform(0, 1, (n, d)) * 10.0**errors,
        options=options,
    )
    assert_usable(clf)


# ---- prediction ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """Return a fitted classifier of 3 features."""
    return fit(X_std=STD)


@pytest.mark.parametrize(
    "method", ["predict", "decision_function", "decision_std", "side_probability"]
)
def test_unfitted_classifiers_predict_nothing(method):
    for data in (X, Gaussians(X)):
        with pytest.raises(NotFittedError, match="UncertainSVC instance is not fitted"):
            getattr(UncertainSVC(), method)(data)


@pytest.mark.parametrize(
    "method", ["predict", "decision_function", "decision_std", "side_probability"]
)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[:, :2], "X has 2 features, but UncertainSVC is expecting 3 features as input"),
        (Gaussians(X[:, :2]), "X has 2 features, but UncertainSVC is expecting 3"),
        (X[:, 0], "1D array"),
        (X[:0], "0 sample"),
        (Gaussians(X[:0]), "X has 0 rows"),
        (X * np.nan, "Input X contains NaN"),
    ],
)
def test_data_that_do_not_fit_the_model(fitted, method, data, message):
    with pytest.raises(ValueError, match=message):
        getattr(fitted, method)(data)


@pytest.mark.parametrize("method", ["decision_std", "side_probability"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"X_std": STD[:, :2]}, "X_std has 2 columns, X has 3"),
        ({"X_std": STD[:5]}, "X_std has 5 rows, X has 12"),
        ({"X_std": -STD}, r"X_std:? row 0, column 0 is -0\.\d+; it must be >= 0"),
        ({"X_cov": np.eye(3)}, r"X_cov has shape \(3, 3\): one matrix for 12 rows"),
        ({"X_std": STD, "X_cov": STD}, "X_std and X_cov are both given"),
    ],
)
def test_spread_that_does_not_fit_the_examples(fitted, method, data, message):
    with pytest.raises(ValueError, match=message):
        getattr(fitted, method)(X, **data)
    with pytest.raises(ValueError, match="is given, but X is Gaussians"):
        getattr(fitted, method)(Gaussians(X), X_std=STD)


def test_decision_values_that_overflow_are_an_error_with_the_row():
    clf = fit()
    clf.coef_ = np.array([[8.0, -8.0, 0.0]])
    large = np.zeros((4, 3))
    large[2, :2] = 1e308
    with pytest.raises(ValueError, match="X: row 2 is so large that its decision value overflows"):
        clf.predict(large)
    large[2, :2] = 2.0**664  # products of powers of two are exact, so that they cancel
    assert (clf.decision_function(large) == clf.intercept_).all()
