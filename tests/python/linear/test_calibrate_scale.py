"""calibrate_scale: its derivative, the scale it finds, and what it refuses.

Oracles: central differences, fits by UncertainSVC on a grid, and errors stated wrong by a known
factor.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from halosvm import Covariances, Gaussians, UncertainSVC, calibrate_scale
from halosvm.linear.calibrate_scale import scale_hypergradient
from halosvm.linear.smoothed_robust import FLOOR, smoothed_hinge
from halosvm.reference import hessian_vector, objective_and_gradient


def make_data(seed=0, n=300, d=6, m=4000, n_classes=2):
    """Return examples that are distributions, their labels, and draws from them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = 1.6 * (n_classes - 1) * np.eye(n_classes, d)
    mean = rng.normal(size=(n, d)) + centres[y] - centres.mean(axis=0)
    std = rng.lognormal(-0.3, 1.0, (n, d)) * np.linspace(3.0, 0.3, d)
    rows = rng.integers(0, n, m)
    return mean, std, y, (mean[rows] + rng.normal(size=(m, d)) * std[rows], y[rows])


def validation_loss(clf, judging, labels):
    """Return the smoothed hinge, the mean of one class against the rest if there are more."""
    scores = clf.decision_function(judging).reshape(len(labels), -1)
    classes = clf.classes_[1:] if scores.shape[1] == 1 else clf.classes_
    signs = np.where(labels[:, None] == classes, 1.0, -1.0)
    return smoothed_hinge((1 - signs * scores).ravel())[0].mean()


# ---- the scale -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_errors_stated_twice_too_large_or_too_small_are_put_right(seed):
    mean, std, y, judging = make_data(seed)
    found = {
        factor: calibrate_scale(mean, y, X_std=factor * std, validation=judging, tol=1e-7)
        for factor in (0.5, 1.0, 2.0)
    }
    # tau and the statement only enter by their product, and the draws know the true errors
    for factor, result in found.items():
        np.testing.assert_allclose(result.scale * factor, found[1.0].scale, rtol=0.02)
        assert (np.diff(result.validation_losses) <= 0).all()
    assert 0.85 < found[1.0].scale < 1.15


@pytest.mark.filterwarnings("ignore:the objective of .* against rest is least at w = 0")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_scale_on_a_grid_has_a_lower_validation_loss(n_classes):
    mean, std, y, judging = make_data(3, n_classes=n_classes)
    found = calibrate_scale(mean, y, X_std=std, validation=judging, tol=1e-7)
    losses = [
        validation_loss(UncertainSVC().fit(mean, y, X_std=tau * std), *judging)
        for tau in found.scale * np.geomspace(0.25, 4.0, 17)
    ]
    assert found.validation_losses[-1] <= min(losses) * (1 + 1e-4)
    np.testing.assert_allclose(found.validation_losses[-1], losses[8], rtol=1e-3)


def test_the_loss_is_the_mean_over_folds_of_the_smoothed_hinge():
    mean, std, y, _ = make_data()
    found = calibrate_scale(mean, y, X_std=std, validation=3)
    parts = StratifiedKFold(3).split(mean, y)
    losses, hinges = [], []
    for train, test in parts:
        clf = UncertainSVC(tol=1e-9).fit(mean[train], y[train], X_std=found.scale * std[train])
        losses.append(validation_loss(clf, mean[test], y[test]))
        margins = (2 * y[test] - 1) * clf.decision_function(mean[test])
        hinges.append(np.maximum(0, 1 - margins).mean())
    np.testing.assert_allclose(found.validation_losses[-1], np.mean(losses), rtol=1e-4)
    assert 0 <= np.mean(losses) - np.mean(hinges) <= FLOOR / np.sqrt(2 * np.pi)


def test_errors_that_mislead_are_scaled_down_to_the_lower_bound():
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) + 1.5 * np.array([1.0, 0.0]) * (2 * y[:, None] - 1)
    std = np.tile([5.0, 0.01], (200, 1))  # as if what tells the classes apart were noise
    found = calibrate_scale(X, y, X_std=std, C=0.01, bounds=(0.02, 5.0), random_state=0)
    np.testing.assert_allclose(found.scale, 0.02, rtol=1e-9)


@pytest.mark.parametrize("kind", ["isotropic_std", "low_rank_diagonal", "full"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kind_of_covariances_is_scaled(kind, dtype, make_gaussians):
    X, y = make_gaussians(kind, n=90, gap=2.0, dtype=dtype)
    found = calibrate_scale(X, y, random_state=0)
    half = X.replaced(covariances=X.covariances.scaled(np.full(4, 0.5)))
    other = calibrate_scale(half, y, random_state=0, bounds=(0.02, 200.0))
    np.testing.assert_allclose(other.scale, 2 * found.scale, rtol=0.2)


def test_a_column_far_away_changes_nothing():
    mean, std, y, (judging, labels) = make_data()
    one = calibrate_scale(mean, y, X_std=std, validation=(judging, labels))
    other = calibrate_scale(mean + 1e4, y, X_std=std, validation=(judging + 1e4, labels))
    np.testing.assert_allclose(other.scale, one.scale, rtol=1e-3)


# ---- the derivative --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["isotropic", "diagonal_std", "low_rank_diagonal", "full"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_derivative_by_the_scale_equals_central_differences_through_new_fits(
    kind, fit_intercept, make_gaussians
):
    X, y = make_gaussians(kind, n=80, d=3, scale=1.0)
    rng = np.random.default_rng(6)
    c, C = rng.uniform(0.5, 2.0, 80), 0.3
    push = np.append(rng.normal(size=3), rng.normal() * fit_intercept)

    size, lam = 3 + fit_intercept, 1 / (C * c.sum())

    def fit(log_tau):
        scaled = X.replaced(covariances=X.covariances.scaled(np.full(3, np.exp(log_tau))))
        clf = UncertainSVC(C, fit_intercept=fit_intercept).fit(scaled, y, sample_weight=c)
        w, b = clf.coef_[0], clf.intercept_[0]
        for _ in range(4):  # Newton's steps, for the digits that a certificate of 1e-6 leaves open
            _, by_w, by_b = objective_and_gradient(scaled, y, w, b, lam, c)
            columns = [hessian_vector(scaled, y, w, b, e[:3], e[3], lam, c) for e in np.eye(4)]
            hessian = np.array([np.append(*column) for column in columns])[:size, :size]
            step = np.zeros(4)
            step[:size] = np.linalg.solve(hessian, np.append(by_w, by_b)[:size])
            w, b = w - step[:3], b - step[3]
        assert np.abs(np.append(by_w, by_b)[:size]).max() < 1e-13
        return scaled, w, b

    def of_fit(log_tau):
        _, w, b = fit(log_tau)
        return push @ np.append(w, b)

    scaled, w, b = fit(0.1)
    unit = np.array([1.0, 2.0, 0.5, 1.0])
    found = scale_hypergradient(scaled, y, w, b, C, c, push, unit, fit_intercept)
    h = 3e-3
    one, two = ((of_fit(0.1 + k * h) - of_fit(0.1 - k * h)) / (2 * k * h) for k in (1, 2))
    np.testing.assert_allclose(found, (4 * one - two) / 3, rtol=1e-7, atol=1e-9)
    assert abs(found) > 1e-3


def test_the_derivative_at_w_zero_is_zero(make_gaussians):
    X, y = make_gaussians("diagonal_std", n=30, d=3)
    none = scale_hypergradient(X, y, np.zeros(3), 0.2, 1.0, None, np.ones(4), np.ones(4), True)
    assert none == 0.0


# ---- input -----------------------------------------------------------------------------------


def test_gaussians_arrays_and_frames_give_the_same_scale():
    mean, std, y, judging = make_data(n=100)
    one = calibrate_scale(mean, y, X_std=std, validation=judging)
    frame = pd.DataFrame(mean, columns=list("abcdef"))
    for X, errors in (
        (Gaussians(mean, std=std), {}),
        (mean, {"X_cov": Covariances.diagonal(std**2)}),
        (frame, {"X_std": pd.DataFrame(std[:, ::-1], columns=list("fedcba"))}),
    ):
        other = calibrate_scale(X, y, validation=judging, **errors)
        np.testing.assert_allclose(other.scale, one.scale, rtol=1e-6)
    named = pd.DataFrame(judging[0], columns=list("gbcdef"))
    with pytest.raises(ValueError, match=r"^validation: X has column 0 named 'g'"):
        calibrate_scale(frame, y, X_std=std, validation=(named, judging[1]))


def test_units_of_the_validation_data_are_converted():
    u = pytest.importorskip("astropy.units")
    mean, std, y, (judging, labels) = make_data(n=100)
    one = calibrate_scale(mean, y, X_std=std, validation=(judging, labels))
    X = Gaussians(mean * u.m, std=std * u.m)
    other = calibrate_scale(X, y, validation=(judging * 100 * u.cm, labels))
    np.testing.assert_allclose(other.scale, one.scale, rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"^validation: X has no unit, the training data has the unit m"
    ):
        calibrate_scale(X, y, validation=(judging, labels))


def test_weights_and_class_weights_reach_the_fits():
    mean, std, y, judging = make_data(n=100)
    counts = np.random.default_rng(0).integers(1, 3, 100)
    weighted = calibrate_scale(mean, y, X_std=std, validation=judging, sample_weight=counts)
    repeated = np.repeat(np.arange(100), counts)
    other = calibrate_scale(mean[repeated], y[repeated], X_std=std[repeated], validation=judging)
    np.testing.assert_allclose(weighted.scale, other.scale, rtol=1e-4)
    halves = list(StratifiedKFold(2).split(mean, y))
    options = {"bounds": (0.9, 1.1), "validation": halves, "max_iter": 1, "tol": 1.0}
    weighted = calibrate_scale(mean, y, X_std=std, sample_weight=counts, **options)
    losses = []
    for train, test in halves:
        clf = UncertainSVC(tol=1e-9).fit(
            mean[train], y[train], X_std=weighted.scale * std[train], sample_weight=counts[train]
        )
        rows = np.repeat(test, counts[test])
        losses.append(validation_loss(clf, mean[rows], y[rows]))
    np.testing.assert_allclose(weighted.validation_losses[-1], np.mean(losses), rtol=1e-4)
    heavy = calibrate_scale(mean, y, X_std=std, validation=judging, class_weight={1: 2.0})
    by_hand = calibrate_scale(
        mean, y, X_std=std, validation=judging, sample_weight=np.where(y == 1, 2.0, 1.0)
    )
    np.testing.assert_allclose(heavy.scale, by_hand.scale, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bounds": (1.0, 1.0)}, ValueError, r"^bounds\[0\] must be below bounds\[1\]"),
        ({"bounds": (0.0, 1.0)}, ValueError, r"^bounds\[0\] must be positive"),
        ({"bounds": 3.0}, ValueError, r"^bounds must be a pair"),
        ({"C": -1.0}, ValueError, r"^C must be positive"),
        ({"tol": -1.0}, ValueError, r"^tol must be >= 0"),
        ({"max_iter": 0}, ValueError, r"^max_iter must be >= 1"),
        ({"n_threads": 0}, ValueError, r"^n_threads must be >= 1"),
        ({"validation": 2.0}, ValueError, r"^validation must be above 0 and below 1"),
        (
            {"validation": (np.zeros((2, 3)), [0, 1])},
            ValueError,
            r"^validation: X has 3 features, the training data have 6",
        ),
        (
            {"validation": (np.full((2, 6), np.nan), [0, 1])},
            ValueError,
            r"^validation: X row 0, column 0 is nan",
        ),
        (
            {"validation": (np.zeros((0, 6)), [])},
            ValueError,
            r"^validation: X has 0 rows; at least 1 is needed",
        ),
        (
            {"validation": (np.zeros((2, 6)), [0, 3])},
            ValueError,
            r"^validation: y row 1 is 3, which no example to fit has",
        ),
        ({"X_std": None}, ValueError, r"^X has no errors, or all are 0"),
        ({"X_std": np.zeros((50, 6))}, ValueError, r"^X has no errors, or all are 0"),
    ],
)
def test_bad_input_is_named(options, error, message):
    mean, std, y, judging = make_data(n=50)
    with pytest.raises(error, match=message):
        calibrate_scale(mean, y, **{"X_std": std, "validation": judging, **options})


def test_a_scale_that_says_nothing_is_told():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, 2)), (np.arange(60) % 6 == 0).astype(int)
    std = np.full((60, 2), 50.0)
    with pytest.warns(ConvergenceWarning, match="^the best model on the validation data is w = 0"):
        calibrate_scale(X, y, X_std=std, bounds=(0.5, 2.0), random_state=0)


def test_a_search_that_is_cut_short_warns():
    mean, std, y, judging = make_data()
    with pytest.warns(ConvergenceWarning, match="^after 1 steps the validation loss still falls"):
        calibrate_scale(
            mean, y, X_std=std, validation=judging, max_iter=1, bounds=(1e-4, 1e5), tol=1e-12
        )


@pytest.mark.parametrize("log_size", [-20, 20])
def test_the_scale_does_not_depend_on_the_unit_of_the_features(log_size):
    mean, std, y, (judging, labels) = make_data(1, n=100, m=1000)
    size = 2.0**log_size
    one = calibrate_scale(mean, y, X_std=std, validation=(judging, labels))
    other = calibrate_scale(
        mean * size, y, X_std=std * size, validation=(judging * size, labels), C=size**-2
    )
    np.testing.assert_allclose(other.scale, one.scale, rtol=1e-6)
    assert len(other.validation_losses) == len(one.validation_losses)
