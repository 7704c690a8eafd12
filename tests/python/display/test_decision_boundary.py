"""`UncertainDecisionBoundaryDisplay`: what is drawn is where the border, band and errors are."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    IsotropicKernelSVC,
    Propagate,
    UncertainDecisionBoundaryDisplay,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

plt = pytest.importorskip("matplotlib.pyplot")
draw = UncertainDecisionBoundaryDisplay.from_estimator


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def examples(n_classes=2, d=2, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    angles = 0.4 + 2 * np.pi * np.arange(n_classes) / n_classes
    centres = np.zeros((n_classes, d))
    centres[:, 0], centres[:, 1] = 2.5 * np.cos(angles), 2.5 * np.sin(angles)
    factors = 0.4 * rng.normal(size=(n, d, d))
    cov = factors @ factors.transpose(0, 2, 1)
    return centres[y] + rng.normal(size=(n, d)), cov, np.array(["a", "b", "c", "d"])[y]


def vertices(contours):
    return np.concatenate([path.vertices for path in contours.get_paths()])


def inner(points, display):
    """Return the points that are not on the frame of the picture."""
    low = np.array([display.xx0.min(), display.xx1.min()])
    high = np.array([display.xx0.max(), display.xx1.max()])
    pad = 1e-6 * (high - low)
    return points[((points > low + pad) & (points < high - pad)).all(axis=1)]


def test_border_is_where_the_decision_value_is_zero():
    X, cov, y = examples()
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    [border] = draw(clf, X, X_cov=cov, y=y).border_
    f = vertices(border) @ clf.coef_[0] + clf.intercept_[0]
    # The decision value is linear, which contours interpolate without error.
    np.testing.assert_allclose(f, 0.0, atol=1e-9)


def test_band_of_a_linear_machine_ends_one_standard_deviation_of_the_mean_covariance_away():
    X, cov, y = examples()
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    display = draw(clf, X, X_cov=cov, y=y)
    w = clf.coef_[0]
    ends = inner(vertices(display.band_), display) @ w + clf.intercept_[0]
    np.testing.assert_allclose(np.abs(ends), np.sqrt(w @ cov.mean(axis=0) @ w), rtol=1e-9)
    assert {1, -1} == set(np.sign(ends))


def test_band_of_a_kernel_machine_is_where_drawn_examples_have_a_mean_within_their_deviation():
    X, cov, y = examples(n=30)
    clf = UncertainKernelSVC(C=10.0).fit(X, y, X_cov=cov)
    xx0, xx1, away = draw(clf, X, X_cov=cov, y=y).band
    rng = np.random.default_rng(1)
    noise = rng.multivariate_normal(np.zeros(2), cov.mean(axis=0), size=20_000)
    for at in ((5, 50), (30, 30), (40, 12)):
        values = clf.decision_function(np.array([xx0[at], xx1[at]]) + noise, X_std=0)
        expected = values.mean() / values.std()
        # The deviation of a ratio of moments of that many draws, four times.
        assert away[at] == pytest.approx(expected, abs=4 * (1 + abs(expected)) / np.sqrt(20_000))


@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC(C=10.0)])
def test_sides_of_more_classes_are_those_of_the_prediction(machine):
    X, cov, y = examples(4)
    clf = machine.fit(X, y, X_cov=cov)
    display = draw(clf, X, X_cov=cov, y=y)
    points = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    best = display.response.reshape(-1, 4).argmax(axis=1)
    np.testing.assert_array_equal(clf.classes_[best], clf.predict(points, X_std=0))
    assert len(display.surface_) == len(display.border_) == len(np.unique(best))


def test_band_of_more_classes_is_that_of_the_difference_of_the_best_two():
    X, cov, y = examples(3)
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    xx0, xx1, away = draw(clf, X, X_cov=cov, y=y).band
    S = cov.mean(axis=0)
    for at in ((0, 0), (30, 30), (59, 10), (20, 55)):
        f = clf.decision_function([[xx0[at], xx1[at]]])[0]
        second, first = np.argsort(f)[-2:]
        w = clf.coef_[first] - clf.coef_[second]
        assert away[at] == pytest.approx((f[first] - f[second]) / np.sqrt(w @ S @ w), rel=1e-9)


def test_pairs_of_classes_give_the_same_band_whatever_shape_their_values_have():
    X, cov, y = examples(3, n=30)
    bands = [
        draw(
            UncertainKernelSVC(decision_function_shape=shape).fit(X, y, X_cov=cov), X, X_cov=cov
        ).band[2]
        for shape in ("ovr", "ovo")
    ]
    np.testing.assert_array_equal(*bands)
    two = np.isin(y, ["a", "b"])
    pair = UncertainKernelSVC().fit(X[two], y[two], X_cov=cov[two])
    assert pair.decision_std(X[:1], X_cov=cov[:1]) > 0


def test_ellipses_have_the_mahalanobis_distance_of_their_level():
    X, cov, y = examples(n=10)
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    display = draw(clf, X, X_cov=cov, y=y, levels=(1.0, 2.5))
    assert len(display.ellipses_) == 4
    for ellipses, level, label in zip(display.ellipses_, (1, 2.5) * 2, "aabb", strict=True):
        rows = np.flatnonzero(y == label)
        np.testing.assert_array_equal(ellipses.get_offsets(), X[rows])
        angles = np.radians(ellipses.get_angles())
        for row, width, height, turn in zip(
            rows, ellipses.get_widths(), ellipses.get_heights(), angles, strict=True
        ):
            for at in np.linspace(0, 2 * np.pi, 7):
                x, z = 0.5 * width * np.cos(at), 0.5 * height * np.sin(at)
                point = [x * np.cos(turn) - z * np.sin(turn), x * np.sin(turn) + z * np.cos(turn)]
                distance = np.sqrt(point @ np.linalg.solve(cov[row], point))
                assert distance == pytest.approx(level, rel=1e-6)


def test_other_features_are_at_their_medians_or_where_they_are_told():
    X, cov, y = examples(d=4)
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    fixed = np.array([9.0, 1.0, 9.0, -1.0])
    for at, options in ((np.median(X, axis=0), {}), (fixed, {"fixed": fixed})):
        display = draw(clf, X, X_cov=cov, y=y, features=(2, 0), **options)
        points = np.tile(at, (display.xx0.size, 1))
        points[:, 2], points[:, 0] = display.xx0.ravel(), display.xx1.ravel()
        expected = clf.decision_function(points)
        np.testing.assert_allclose(display.response.ravel(), expected, rtol=1e-12)
    [first, _] = display.points_
    np.testing.assert_array_equal(np.column_stack(first.get_data()), X[y == "a"][:, [2, 0]])
    # The error of a new example is one of all features.
    w, S = clf.coef_[0], cov.mean(axis=0)
    xx0, xx1, away = display.band
    point = np.array([xx1[7, 9], 1.0, xx0[7, 9], -1.0])
    assert away[7, 9] == pytest.approx(clf.decision_function([point])[0] / np.sqrt(w @ S @ w))


def test_new_examples_of_a_pipeline_go_through_its_steps_with_their_errors():
    X, cov, y = examples()
    data = Gaussians(X, cov=cov)
    for step in (EmpiricalBayes(), Propagate(PCA(2))):
        pipe = make_pipeline(step, UncertainSVC()).fit(data, y)
        display = draw(pipe, data, y=y)
        xx0, xx1, away = display.band
        point = [[xx0[20, 40], xx1[20, 40]]]
        new = pipe[0].transform(Gaussians(point, cov=cov.mean(axis=0)[np.newaxis]))
        expected = pipe[-1].decision_function(new)[0] / pipe[-1].decision_std(new)[0]
        assert away[20, 40] == pytest.approx(expected, rel=1e-9)


def test_names_of_frames_label_the_axes_and_reach_the_classifier():
    X, _, y = examples(d=3)
    frame = pd.DataFrame(X, columns=["mass", "age", "size"])
    for clf, std in (
        (UncertainSVC(), np.full(60, 0.3)),
        (make_pipeline(StandardScaler(), SVC()), None),
    ):
        display = draw(clf.fit(frame, y), frame, X_std=std, y=y, features=("size", "mass"))
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("size", "mass")
        assert (display.band_ is None) == (std is None)


def test_names_and_units_reach_the_steps_of_a_pipeline_and_machines_that_know_them():
    units = pytest.importorskip("astropy.units")
    X, _, y = examples()
    frame, std = pd.DataFrame(X, columns=["mass", "age"]), np.full(60, 0.3)
    pipe = make_pipeline(UncertainStandardScaler(), UncertainSVC())
    pipe.fit(Gaussians(frame, std=std), y)
    one, other = draw(pipe, frame, X_std=std), draw(pipe, Gaussians(frame, std=std))
    np.testing.assert_array_equal(one.response, other.response)
    clf = UncertainSVC().fit(X * units.m, y, X_std=np.full(X.shape, 0.3) * units.m)
    bare = draw(clf, X * units.m, X_std=np.full(X.shape, 0.3) * units.m)
    small = draw(clf, 100 * X * units.cm, X_std=np.full(X.shape, 30.0) * units.cm)
    np.testing.assert_allclose(small.response, bare.response, atol=1e-9)
    np.testing.assert_allclose(small.band[2], bare.band[2], rtol=1e-9)
    np.testing.assert_allclose(small.xx0, 100 * bare.xx0, rtol=1e-12)


def test_points_may_be_posteriors_of_which_a_classifier_of_points_knows_the_means():
    X, cov, y = examples()
    data = EmpiricalBayes().fit_transform(Gaussians(X, cov=cov))
    display = draw(SVC().fit(data.mean, y), data, y=y, band=False)
    assert display.border_
    assert display.ellipses_


def test_band_and_ellipses_are_left_out_where_there_are_no_errors():
    X, _, y = examples()
    display = draw(UncertainSVC().fit(X, y), X, y=y)
    assert display.band is display.band_ is None
    assert display.ellipses_ == []
    shown = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert shown == ["a", "b", "border"]


def test_drawing_again_on_axes_of_ones_own_keeps_the_figure():
    X, cov, y = examples()
    display = draw(UncertainSVC().fit(X, y, X_cov=cov), X, X_cov=cov)
    figure, ax = plt.subplots()
    assert display.plot(ax=ax, legend=False).ax_ is ax
    assert display.figure_ is figure
    assert ax.get_legend() is None


def test_isotropic_kernel_machines_are_drawn_without_errors():
    X, cov, y = examples(n=20)
    clf = IsotropicKernelSVC().fit(X, y, X_std=np.full(20, 0.1))
    assert draw(clf, X, y=y).border_
    with pytest.raises(TypeError, match="errors in the feature space of its kernel"):
        draw(clf, X, X_cov=cov)


def test_estimators_without_border_or_band_are_refused_by_name():
    X, cov, y = examples(n=20)
    with pytest.raises(TypeError, match="UncertainSVR, which is no classifier"):
        draw(UncertainSVR().fit(X, X[:, 0]), X)
    with pytest.raises(TypeError, match=r"SVC has no decision_std, .* band=False"):
        draw(SVC().fit(X, y), X, X_cov=cov)
    assert draw(SVC().fit(X, y), X, X_cov=cov, y=y, band=False).ellipses_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": (0, 2)}, "features has 2, but X has 2 features"),
        ({"features": (1, 1)}, "two different ones"),
        ({"features": (0, "mass")}, "'mass', which X does not have"),
        ({"features": "ab"}, "features must be two"),
        ({"fixed": np.zeros(3)}, r"fixed has shape \(3,\), X has 2 features"),
        ({"levels": (1.0, -2.0)}, "levels must be positive and finite, got -2"),
        ({"grid_resolution": 1}, "grid_resolution must be at least 2, got 1"),
        ({"y": ["a"] * 19 + ["z"]}, "y: row 19 is 'z', the classifier knows"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(options, message):
    X, cov, y = examples(n=20)
    with pytest.raises(ValueError, match=message):
        draw(UncertainSVC().fit(X, y, X_cov=cov), X, X_cov=cov, **options)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    X, _, y = examples(n=20)
    clf = UncertainSVC().fit(X, y)
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'halosvm\[plot\]'"):
        draw(clf, X)


def test_share_of_new_examples_across_a_border_at_the_end_of_the_band_is_that_of_one_deviation():
    X, cov, y = examples()
    clf = UncertainSVC().fit(X, y, X_cov=cov)
    display = draw(clf, X, X_cov=cov, y=y)
    end = inner(vertices(display.band_), display)[:1]
    share = clf.side_probability(end, X_cov=cov.mean(axis=0)[np.newaxis])[0]
    assert min(share, 1 - share) == pytest.approx(stats.norm.sf(1), rel=1e-6)
