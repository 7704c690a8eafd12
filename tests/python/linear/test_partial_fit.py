"""Streams: one step for each example, the same wherever calls end, and near the optimum at last.

Oracle: the same walk in NumPy, with the formulas of `halosvm.reference`; `fit` for where it ends.
"""

import pickle

import numpy as np
import pytest
from cases import KINDS, each, in_pairs
from scipy import sparse
from sklearn.base import clone

from halosvm import Covariances, Gaussians, UncertainSVC, UncertainSVR, reference

LOSSES = ["expected_hinge", "expected_squared_hinge", "expected_logistic", "hinge"]
SHARPEST = {"expected_squared_hinge": 2.0}


def walk(X, terms, lam, loss, weights, fit_intercept=True):
    """Return coefficients and intercept of the average; `terms` are (offsets, signs, share)."""
    n, d = X.shape
    full = X.covariances.to_full()
    w, b, average, average_b = np.zeros(d), 0.0, np.zeros(d), 0.0
    centre, square, total, t = np.zeros(d), 0.0, 0.0, 0
    for i in range(n):
        c, x, S = weights[i], X.mean[i], full[i] * (loss != "hinge")
        if c == 0:
            continue
        total += c
        before = x - centre
        if fit_intercept:
            centre = centre + c / total * before
        square += c / total * (before @ (x - centre) + np.trace(S) - square)
        a, phi = 0.0, 0.0
        for offsets, signs, share in terms:
            m = np.array([offsets[i] - signs[i] * (x @ w + b)])
            _, theta, slope_s2 = reference.LOSSES[loss](m, np.sqrt(np.array([w @ S @ w])))
            a -= c * share * signs[i] * theta[0]
            phi += c * share * slope_s2[0]
        own = (x - centre) @ (x - centre) + 1 + np.trace(S)
        t += 1
        eta = 1 / (lam * t + SHARPEST.get(loss, 1.0) * max(square + 1, c * own))
        slope = a if fit_intercept else 0.0
        from_centre = b + w @ centre
        w = (1 - eta * lam) * w - eta * (a * x + phi * S @ w - slope * centre)
        b = from_centre - eta * slope - w @ centre if fit_intercept else 0.0
        average, average_b = (
            average + 2 / (t + 1) * (w - average),
            average_b + 2 / (t + 1) * (b - average_b),
        )
    return average, average_b


@pytest.fixture
def data(make_gaussians):
    X, y = make_gaussians("diagonal", n=300)
    return Gaussians(X.mean + 0.7 * y[:, None], cov=X.covariances), y


@in_pairs
@each("kind", KINDS)
@each("loss", LOSSES)
@each("fit_intercept", [True, False])
def test_the_walk_is_that_of_its_formulas(make_gaussians, kind, loss, fit_intercept):
    X, y = make_gaussians(kind, n=60)
    weights = np.random.default_rng(0).random(60)
    weights[[3, 50]] = 0.0
    clf = UncertainSVC(2.0, loss=loss, fit_intercept=fit_intercept)
    clf.partial_fit(X, y, np.unique(y), sample_weight=weights, n_total=100)
    terms = [(np.full(60, reference.MARGINS[loss]), y, 1.0)]
    w, b = walk(X, terms, 1 / 200, loss, weights, fit_intercept)
    np.testing.assert_allclose(clf.coef_[0], w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.intercept_[0], b, rtol=1e-9, atol=1e-12)


def test_the_walk_of_a_regression_is_that_of_its_formulas(data):
    X, _ = data
    y = X.mean @ [1.0, -1.0, 0.5, 0.0] + np.random.default_rng(0).normal(size=300)
    reg = UncertainSVR(loss="pinball", quantile=0.3).partial_fit(X, y, n_total=50)
    ones = np.ones(300)
    w, b = walk(X, [(y, ones, 0.3), (-y, -ones, 0.7)], 1 / 50, "expected_hinge", ones)
    np.testing.assert_allclose(reg.coef_, w, rtol=1e-9)
    np.testing.assert_allclose(reg.intercept_, b, rtol=1e-9)


@pytest.mark.parametrize("edges", [[1, 2, 150], list(range(1, 300)), [299]])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_calls_end_changes_no_bit(data, edges, n_classes):
    X, _ = data
    y = np.sort(np.arange(300) % n_classes)  # calls hold a single class
    weights = np.random.default_rng(0).random(300)
    classes = np.arange(n_classes)
    whole = UncertainSVC().partial_fit(X, y, classes, sample_weight=weights)
    clf = UncertainSVC()
    for rows in np.split(np.arange(300), edges):
        clf.partial_fit(X[rows], y[rows], classes, sample_weight=weights[rows])
    np.testing.assert_array_equal(clf.coef_, whole.coef_)
    np.testing.assert_array_equal(clf.intercept_, whole.intercept_)


@pytest.mark.parametrize("estimator", [UncertainSVC(), UncertainSVR()])
def test_an_estimator_pickled_in_the_middle_goes_on_with_the_same_bits(data, estimator):
    X, y = data
    classes = {"classes": [-1, 1]} if isinstance(estimator, UncertainSVC) else {}
    whole = clone(estimator).partial_fit(X, y, **classes)
    half = clone(estimator).partial_fit(X[:100], y[:100], **classes)
    again = pickle.loads(pickle.dumps(half)).partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    np.testing.assert_array_equal(again.intercept_, whole.intercept_)
    half.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(half.coef_, whole.coef_)


def few_columns(kind, n=400, d=150):
    """Return Gaussians of which each stores a few of many columns, and their labels.

    The first column is always stored, and every 20th row stores all.
    """
    rng = np.random.default_rng(3)
    mask = rng.random((n, d)) < 5 / d
    mask[:, 0] = True
    mask[::20] = True
    mean = np.where(mask, rng.normal(size=(n, d)), 0.0)
    mean[:, 0] += 4.0
    y = np.where(mean @ rng.normal(size=d) + rng.normal(size=n) > 0, 1, -1)
    X = sparse.csr_array(mean)
    errors = {
        "certain": {},
        "isotropic": {"std": rng.random(n)},
        "sparse": {"std": sparse.csr_array(np.where(mask, rng.random((n, d)), 0.0))},
        "columns": {"cov": Covariances.diagonal(rng.random((n, 2)), columns=[1, 7], n_features=d)},
        "dense": {"variance": rng.random((n, d))},
    }
    return Gaussians(X, **errors[kind]), y


@in_pairs
@each("loss", LOSSES)
@each("fit_intercept", [True, False])
@each("columns", ["certain", "isotropic", "sparse", "columns", "dense"])
def test_the_walk_along_few_columns_is_that_of_its_formulas(columns, loss, fit_intercept):
    X, y = few_columns(columns, n=200, d=40)
    dense = Gaussians(X.mean.toarray(), cov=X.covariances)
    weights = np.random.default_rng(0).random(200)
    clf = UncertainSVC(2.0, loss=loss, fit_intercept=fit_intercept)
    clf.partial_fit(X, y, [-1, 1], sample_weight=weights, n_total=100)
    terms = [(np.full(200, reference.MARGINS[loss]), y, 1.0)]
    w, b = walk(dense, terms, 1 / 200, loss, weights, fit_intercept)
    np.testing.assert_allclose(clf.coef_[0], w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(clf.intercept_[0], b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("edges", [[1, 2, 150], list(range(1, 400)), [399]])
@pytest.mark.parametrize("columns", ["certain", "isotropic", "sparse", "columns", "dense"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_calls_end_changes_no_bit_of_a_walk_along_few_columns(columns, edges, n_classes):
    X, _ = few_columns(columns)
    y = np.arange(400) % n_classes
    whole = UncertainSVC().partial_fit(X, y, np.arange(n_classes))
    clf = UncertainSVC()
    for rows in np.split(np.arange(400), edges):
        clf = pickle.loads(pickle.dumps(clf.partial_fit(X[rows], y[rows], np.arange(n_classes))))
    np.testing.assert_array_equal(clf.coef_, whole.coef_)
    np.testing.assert_array_equal(clf.intercept_, whole.intercept_)


def test_sparse_and_dense_examples_follow_each_other_in_one_stream():
    X, y = few_columns("sparse")
    dense = Gaussians(X.mean.toarray(), cov=X.covariances)
    mixed, whole = UncertainSVC(), UncertainSVC().partial_fit(dense, y, [-1, 1])
    for i, rows in enumerate(np.split(np.arange(400), [30, 90, 300])):
        mixed.partial_fit((dense if i % 2 else X)[rows], y[rows], [-1, 1])
    np.testing.assert_allclose(mixed.coef_, whole.coef_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(mixed.intercept_, whole.intercept_, rtol=1e-10)


def objective(coef, intercept, X, y, lam):
    m = 1 - y * (X.mean @ coef + intercept)
    s = np.sqrt(reference.spread_squared(X.covariances, coef))
    return lam / 2 * coef @ coef + reference.expected_hinge(m, s)[0].mean()


@pytest.mark.parametrize("place", [0.0, 1e3])
def test_a_long_stream_ends_near_the_model_of_fit(place):
    rng = np.random.default_rng(0)
    n = 40_000
    y = np.where(rng.random(n) < 0.3, 1, -1)
    X = Gaussians(rng.normal(size=(n, 5)) + 0.5 * y[:, None] + place, std=rng.random((n, 5)))
    best = UncertainSVC(0.01).fit(X, y)
    clf = UncertainSVC(0.01)
    gaps = []
    for rows in np.split(np.arange(n), [2000, 10_000]):
        clf.partial_fit(X[rows], y[rows], [-1, 1], n_total=n)
        value = objective(clf.coef_[0], clf.intercept_[0], X, y, 1 / (0.01 * n))
        gaps.append(value / best.objective_ - 1)
    # Of averaged steps the gap falls like 1 / t.
    assert gaps[2] < 1e-3
    assert gaps[2] < 0.5 * gaps[0]
    assert clf.suboptimality_ == np.inf
    assert np.isnan(clf.objective_)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "squared_error"])
def test_a_long_stream_of_values_ends_near_the_model_of_fit(loss):
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(40_000, 3)), std=0.5 * rng.random((40_000, 3)))
    y = X.mean @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=40_000) + 2.0
    best = UncertainSVR(loss=loss).fit(X, y, y_std=0.1)
    reg = UncertainSVR(loss=loss).partial_fit(X, y, y_std=0.1, n_total=40_000)
    np.testing.assert_allclose(reg.coef_, best.coef_, atol=0.03)
    assert reg.intercept_ == pytest.approx(best.intercept_, abs=0.03)


def test_one_example_of_an_absurd_size_does_not_end_the_walk(data):
    X, y = data
    mean = np.concatenate([X.mean, [[1e8, 0, 0, 0]], X.mean])
    labels = np.concatenate([y, [1], y])
    clf = UncertainSVC(loss="expected_squared_hinge")
    clf.partial_fit(mean, labels, [-1, 1], X_std=np.full(mean.shape, 0.1))
    assert np.abs(clf.coef_).max() < 10


def test_a_walk_after_a_fit_begins_at_its_model(data):
    X, y = data
    fitted = UncertainSVC().fit(X, y)
    before = fitted.coef_.copy()
    fitted.partial_fit(X[:1], y[:1], n_total=1e9)
    assert 0 < np.abs(fitted.coef_ - before).max() < 0.5
    fitted.partial_fit(X[1:], y[1:], n_total=1e9)
    np.testing.assert_array_equal(fitted.fit(X, y).coef_, before)
    assert not hasattr(fitted, "_stream")


def test_class_weights_multiply_the_weights_of_examples(data):
    X, y = data
    factors = {-1: 0.5, 1: 3.0}
    weights = np.where(y > 0, 3.0, 0.5)
    found = UncertainSVC(class_weight=factors).partial_fit(X, y, [-1, 1])
    expected = UncertainSVC().partial_fit(X, y, [-1, 1], sample_weight=weights)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_call_whose_weights_are_all_0_changes_no_bit_and_reads_its_examples(data, n_classes):
    X, y = data
    values = X.mean[:, 0] if n_classes == 0 else np.arange(len(y)) % n_classes
    options = {"classes": np.arange(n_classes)} if n_classes else {}
    none = {"sample_weight": np.zeros(len(y))} | options
    plain = UncertainSVC() if n_classes else UncertainSVR()

    def same(one, other):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)

    walk, other = clone(plain).partial_fit(X, values, **none), clone(plain)
    assert not walk.coef_.any()
    assert walk.predict(X).shape == y.shape
    for _ in range(2):
        same(walk.partial_fit(X, values, **options), other.partial_fit(X, values, **options))
        same(walk.partial_fit(X, values, **none), other)
    with pytest.raises(ValueError, match="X has 1 features"):
        walk.partial_fit(X.mean[:, :1], values, **none)
    with pytest.raises(ValueError, match=r"^y has (shape|\d+ values)"):
        walk.partial_fit(X, values[1:], **none)
    with pytest.raises(ValueError, match="sample_weight is zero for all examples"):
        clone(plain).fit(X, values, sample_weight=np.zeros(len(y)))


def test_a_call_that_fails_leaves_the_walk_as_it_was(data):
    X, y = data
    clf = UncertainSVC().partial_fit(X[:100], y[:100], [-1, 1])
    before = dict(clf.__dict__)
    for arguments, message in (
        ((X[100:][:, [0, 1]], y[100:]), "X has 2 features, but UncertainSVC is expecting 4"),
        ((X[100:], y[100:] * 2), "y row 0 is -?2, not one of"),
        ((X[100:], y[100:], [0, 1]), "but the model has the classes"),
        ((X[100:], y[50:]), "y has 250 values, X has 200 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.partial_fit(*arguments)
    with pytest.raises(ValueError, match="n_total is 7, in the first call of partial_fit"):
        clf.partial_fit(X, y, n_total=7)
    with pytest.raises(ValueError, match=r"C is 2.0, in the first call .* it was 1.0"):
        clf.set_params(C=2.0).partial_fit(X, y)
    clf.set_params(C=1.0)
    assert clf.__dict__.keys() == before.keys()
    assert all(clf.__dict__[name] is before[name] or name == "C" for name in before)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {}, "classes must be passed on the first call to partial_fit"),
        ({}, {"classes": [1]}, "y has only one class"),
        ({}, {"classes": [-1, 1], "n_total": 0}, "n_total must be positive"),
    ],
)
def test_first_calls_that_make_no_sense_are_refused(data, options, arguments, message):
    X, y = data
    clf = UncertainSVC(**options)
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(X, y, **arguments)
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "best_case"}, "loss is 'best_case', which is not convex"),
        ({"loss": "marginal_logistic"}, "loss is 'marginal_logistic', which is not convex"),
        ({"class_weight": "balanced"}, "class_weight is 'balanced', which needs all examples"),
    ],
)
def test_what_needs_all_examples_has_no_partial_fit_and_says_why(options, message):
    with pytest.raises(AttributeError) as caught:
        _ = UncertainSVC(**options).partial_fit
    assert message in str(caught.value.__cause__)
