"""`SupportPlot`: weights that make up the border, and probabilities of lying across it."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from halosvm import (
    IsotropicKernelSVC,
    SupportPlot,
    TotalSVC,
    UncertainKernelSVC,
    UncertainSVC,
)

plt = pytest.importorskip("matplotlib.pyplot")
draw = SupportPlot.from_estimator


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def examples(n_classes=2, n=60):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = 2.0 * np.eye(max(n_classes, 2))[y] + rng.normal(size=(n, max(n_classes, 2)))
    return X, y, rng.lognormal(-1.0, 0.7, size=X.shape)


LOSSES = ["expected_hinge", "expected_squared_hinge", "expected_logistic", "marginal_logistic"]


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_balance_at_the_optimum_with_an_intercept(loss):
    # The objective's slope in the intercept is sum_i weight_i y_i.
    X, y, std = examples()
    c = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    clf = UncertainSVC(3.0, loss=loss, tol=1e-10, class_weight={0: 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as near as rounding lets it
        clf.fit(X, y, X_std=std, sample_weight=c)
    plot = draw(clf, X, y, X_std=std, sample_weight=c)
    assert plot.weight.sum() > 1
    signed = np.where(plot.positive, plot.weight, -plot.weight).sum()
    assert abs(signed) < 1e-4 * plot.weight.sum()


def test_weights_are_slopes_of_the_loss_that_the_fit_saw():
    X, y, std = examples()
    clf = UncertainSVC(2.0, error_scale=0.5).fit(X, y, X_std=std)
    plot = draw(clf, X, y, X_std=std)
    w, b = clf.coef_[0], clf.intercept_[0]
    m = 1 - np.where(y == 1, 1, -1) * (X @ w + b)
    s = 0.5 * np.sqrt(np.square(std) @ np.square(w))
    np.testing.assert_allclose(plot.weight, 2.0 * stats.norm.cdf(m / s), rtol=1e-7, atol=1e-12)


def test_share_across_is_that_of_draws_on_the_other_side():
    X, y, std = examples()
    clf = UncertainSVC().fit(X, y, X_std=std)
    plot = draw(clf, X, y, X_std=std)
    rng = np.random.default_rng(2)
    for row in (0, 1, 17, 40):
        drawn = clf.predict(X[row] + std[row] * rng.normal(size=(40_000, 2)))
        assert plot.across[row] == pytest.approx(np.mean(drawn != y[row]), abs=4 * 0.5 / 200)


def test_weights_of_kernel_machines_are_their_dual_coefficients():
    X, y, std = examples()
    clf = UncertainKernelSVC(gamma=0.5).fit(X, y)
    plot = draw(clf, X, y)
    libsvm = SVC(gamma=0.5).fit(X, y)
    expected = np.zeros(len(y))
    expected[libsvm.support_] = np.abs(libsvm.dual_coef_[0])
    np.testing.assert_allclose(plot.weight, expected, atol=1e-2)
    assert set(np.unique(plot.across)) <= {0.0, 1.0}
    isotropic = IsotropicKernelSVC().fit(X, y, X_std=std[:, 0])
    weights = draw(isotropic, X, y, X_std=std[:, 0]).weight
    np.testing.assert_array_equal(weights[isotropic.support_], np.abs(isotropic.dual_coef_[0]))


def test_of_more_classes_it_is_one_against_the_rest():
    X, y, std = examples(3)
    clf = UncertainSVC(tol=1e-9).fit(X, y, X_std=std)
    plot = draw(clf, X, y, X_std=std, pos_label=1)
    one = draw(UncertainSVC(tol=1e-9).fit(X, y == 1, X_std=std), X, y == 1, X_std=std)
    np.testing.assert_array_equal(plot.positive, y == 1)
    np.testing.assert_allclose(plot.weight, one.weight, atol=1e-3)
    np.testing.assert_allclose(plot.across, one.across, atol=1e-3)


def test_either_class_of_two_gives_the_same_numbers():
    X, y, std = examples()
    for machine in (UncertainSVC(), UncertainKernelSVC()):
        clf = machine.fit(X, y, X_std=std)
        one, other = (draw(clf, X, y, X_std=std, pos_label=k) for k in (1, 0))
        np.testing.assert_allclose(one.weight, other.weight, rtol=1e-12)
        np.testing.assert_allclose(one.across, other.across, rtol=1e-12)
        np.testing.assert_array_equal(one.positive, ~other.positive)


def test_points_hold_the_numbers_of_each_side():
    X, y, std = examples()
    plot = draw(UncertainSVC().fit(X, y, X_std=std), X, y, X_std=std)
    for k, line in enumerate(plot.points_):
        np.testing.assert_array_equal(line.get_xdata(), plot.across[y == k])
        np.testing.assert_array_equal(line.get_ydata(), plot.weight[y == k])
        assert line.get_label() == str(k)


def test_what_cannot_be_shown_is_refused():
    X, y, std = examples(3)
    with pytest.raises(ValueError, match=r"pos_label must be given, one of \[0, 1, 2\]"):
        draw(UncertainSVC().fit(X, y, X_std=std), X, y, X_std=std)
    with pytest.raises(ValueError, match="tells 3 classes apart in pairs"):
        draw(UncertainKernelSVC().fit(X, y), X, y, pos_label=1)
    two = y < 2
    with pytest.raises(TypeError, match="estimator is TotalSVC; expected UncertainSVC"):
        draw(TotalSVC().fit(X[two], y[two], X_std=std[two]), X[two], y[two])
    clf = UncertainKernelSVC().fit(X[two], y[two])
    with pytest.raises(ValueError, match="pos_label is 5, the classes are"):
        draw(clf, X[two], y[two], pos_label=5)
    with pytest.raises(ValueError, match=r"y has the classes \[0, 1, 2\], the machine \[0, 1\]"):
        draw(clf, X, y)
    with pytest.raises(ValueError, match="pass what the machine was fitted to"):
        draw(clf, X[two][:5], y[two][:5])
    with pytest.raises(ValueError, match="y has 3 labels, X has 40 rows"):
        draw(clf, X[two], y[:3])
