"""`ReliabilityDisplay`: bins of equal counts, their shares and standard errors."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from halosvm import ReliabilityDisplay, UncertainCalibratedClassifier, UncertainSVC

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def calibrated(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.5, size=n)
    return rng.uniform(size=n) < p, p


def test_bins_hold_equal_counts_and_their_means():
    y, p = calibrated(1003)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=7)
    assert display.counts.sum() == 1003
    assert np.ptp(display.counts) <= 1
    order, begin = np.argsort(p), 0
    for k, count in enumerate(display.counts):
        rows = order[begin : begin + count]
        begin += count
        assert display.prob_pred[k] == pytest.approx(p[rows].mean(), rel=1e-12)
        assert display.prob_true[k] == pytest.approx(y[rows].mean(), rel=1e-12)


def test_standard_errors_are_the_spread_of_shares_over_repetitions():
    _, p = calibrated(400)
    rng = np.random.default_rng(3)
    runs = [
        ReliabilityDisplay(y_true=rng.uniform(size=400) < p, y_prob=p, n_bins=8)
        for _ in range(2000)
    ]
    spread = np.std([run.prob_true for run in runs], axis=0)
    # A standard deviation of 2000 values is known within 1/sqrt(4000), times the kurtosis.
    np.testing.assert_allclose(runs[0].standard_error, spread, rtol=0.12)


def test_calibrated_probabilities_are_within_their_errors_and_others_are_not():
    y, p = calibrated()
    good = ReliabilityDisplay.from_predictions(y, p)
    bad = ReliabilityDisplay.from_predictions(y, p**2)
    away = [np.square((d.prob_true - d.prob_pred) / d.standard_error).sum() for d in (good, bad)]
    assert away[0] < 29.6  # of chi-squared with ten degrees of freedom, 1e-3
    assert away[1] > 100
    assert good.calibration_error < bad.calibration_error


def test_equal_probabilities_stand_in_one_bin_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    p = np.repeat([0.1, 0.4, 0.4, 0.9], 25)
    y = rng.uniform(size=100) < p
    order = rng.permutation(100)
    one = ReliabilityDisplay.from_predictions(y, p)
    other = ReliabilityDisplay.from_predictions(y[order], p[order])
    np.testing.assert_array_equal(one.counts, [25, 50, 25])
    np.testing.assert_allclose(one.prob_pred, [0.1, 0.4, 0.9], rtol=1e-12)
    np.testing.assert_allclose(one.prob_true, other.prob_true, rtol=1e-12)
    single = ReliabilityDisplay.from_predictions([0, 1], [0.5, 0.5])
    assert single.counts.tolist() == [2]


def test_curve_error_bars_and_histogram_show_the_numbers():
    y, p = calibrated(300)
    display = ReliabilityDisplay.from_predictions(y, p, name="a")
    line, _, [bars] = display.line_
    np.testing.assert_array_equal(line.get_xdata(), display.prob_pred)
    np.testing.assert_array_equal(line.get_ydata(), display.prob_true)
    half = [np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments()]
    np.testing.assert_allclose(half, display.standard_error, rtol=1e-9)
    heights = display.histogram_ax_.patches[0].get_xy()[:, 1]
    assert heights.max() == np.histogram(p, np.linspace(0, 1, 21))[0].max()


def test_further_curves_share_the_axes_and_differ_in_colour_and_marker():
    y, p = calibrated(300)
    one = ReliabilityDisplay.from_predictions(y, p, name="a")
    two = ReliabilityDisplay.from_predictions(y, p**2, name="b", ax=(one.ax_, one.histogram_ax_))
    assert two.ax_ is one.ax_
    assert two.figure_ is one.figure_
    first, second = one.line_[0], two.line_[0]
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()
    assert [text.get_text() for text in one.ax_.get_legend().get_texts()] == ["a", "b"]
    assert sum(line.get_label() == "_diagonal" for line in one.ax_.lines) == 1
    assert len(one.histogram_ax_.patches) == 2


def test_a_single_axes_has_the_curve_alone():
    y, p = calibrated(100)
    _, ax = plt.subplots()
    display = ReliabilityDisplay.from_predictions(y, p, ax=ax)
    assert display.ax_ is ax
    assert display.histogram_ax_ is None
    assert ax.get_xlabel() == "probability of the positive class"


def uncertain(n_classes=2, n=120):
    rng = np.random.default_rng(1)
    y = np.arange(n) % n_classes
    X = 2.5 * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes))
    return X, np.array(["a", "b", "c"])[y], rng.lognormal(-0.5, 1.0, size=n)


def test_errors_of_new_examples_reach_the_probabilities():
    X, y, std = uncertain()
    clf = UncertainCalibratedClassifier(UncertainSVC()).fit(X, y, X_std=std)
    draw = ReliabilityDisplay.from_estimator
    with_errors, without = draw(clf, X, y, X_std=std), draw(clf, X, y, X_std=0)
    np.testing.assert_array_equal(with_errors.y_prob, clf.predict_proba(X, X_std=std)[:, 1])
    np.testing.assert_array_equal(without.y_prob, clf.predict_proba(X, X_std=0)[:, 1])
    np.testing.assert_array_equal(with_errors.y_true, y == "b")
    other = draw(clf, X, y, X_std=0, pos_label="a")
    np.testing.assert_allclose(other.y_prob, 1 - without.y_prob, rtol=1e-12)
    assert other.histogram_ax_.get_xlabel() == "probability of a"


def test_of_more_classes_it_is_judged_whether_the_most_probable_is_right():
    X, y, _ = uncertain(3)
    clf = LogisticRegression().fit(X, y)
    display = ReliabilityDisplay.from_estimator(clf, X, y)
    np.testing.assert_array_equal(display.y_true, clf.predict(X) == y)
    np.testing.assert_array_equal(display.y_prob, clf.predict_proba(X).max(axis=1))
    one = ReliabilityDisplay.from_estimator(clf, X, y, pos_label="c")
    np.testing.assert_array_equal(one.y_true, y == "c")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.5, 1.5]), {}, "y_prob: row 1 is 1.5; probabilities are from 0 to 1"),
        (([0, 1], [np.nan, 0.5]), {}, "y_prob: row 0 is nan"),
        (([0, 1], [[0.5, 0.5]] * 2), {}, r"y_prob has shape \(2, 2\)"),
        (([0, 1, 2], [0.1, 0.2, 0.3]), {}, r"y_true has the labels \[0, 1, 2\]; pass pos_label"),
        ((["x"], [0.1]), {}, r"y_true has the labels \['x'\]; pass pos_label"),
        (([0, 1], [0.1, 0.2]), {"pos_label": 7}, "pos_label is 7, which y_true does not have"),
        (([0, 1], [0.1, 0.2]), {"n_bins": 0}, "n_bins must be >= 1, got 0"),
        (([0, 1], [0.1]), {}, "inconsistent numbers of samples"),
    ],
)
def test_bad_predictions_are_refused_by_name_and_value(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(*arguments, **options)


def test_bad_axes_and_classifiers_are_refused():
    X, y, _ = uncertain()
    with pytest.raises(TypeError, match="UncertainSVC, which has no predict_proba"):
        ReliabilityDisplay.from_estimator(UncertainSVC().fit(X, y), X, y)
    clf = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="pos_label is 'z', the classes are"):
        ReliabilityDisplay.from_estimator(clf, X, y, pos_label="z")
    axes = plt.subplots(3)[1]
    with pytest.raises(ValueError, match="a pair of them, got 3 objects"):
        ReliabilityDisplay.from_estimator(clf, X, y, ax=axes)
