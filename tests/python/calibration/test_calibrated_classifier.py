"""Calibrated probabilities: against draws, Platt's own fit, scikit-learn, and on unequal errors."""

import numpy as np
import pandas as pd
import pytest
from cases import each, in_pairs
from scipy.special import expit
from scipy.stats import wilcoxon
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

from halosvm import (
    Gaussians,
    PlattScaling,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
)
from halosvm.calibration.scores import scores

METHODS = ("sigmoid", "isotonic", "temperature")


def examples(n=240, n_classes=2, seed=0, spread=1.0):
    """Return measured Gaussians with unequal errors and labels of their true values."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    truth = 1.5 * np.eye(max(n_classes, 2))[y] * 2 + rng.normal(size=(n, max(n_classes, 2)))
    std = spread * rng.lognormal(-1.0, 1.0, size=truth.shape)
    return Gaussians(truth + std * rng.normal(size=truth.shape), std=std), y


def std_of(X):
    return np.sqrt(np.diagonal(X.covariances.to_full(), axis1=1, axis2=2))


@pytest.fixture(params=METHODS)
def method(request):
    """Every method."""
    return request.param


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_means_over_draws(method, n_classes):
    X, y = examples(n_classes=n_classes)
    clf = UncertainCalibratedClassifier(method=method).fit(X, y)
    rng = np.random.default_rng(1)
    for row in range(3):
        draws = X.mean[row] + rng.normal(size=(200_000, X.shape[1])) * std_of(X)[row]
        expected = clf.predict_proba(draws, X_std=0).mean(axis=0)
        np.testing.assert_allclose(
            clf.predict_proba(X[row : row + 1])[0], expected, atol=4e-3
        )  # of 0.5 / sqrt(n)


def test_certain_examples_get_the_curve_of_platt():
    X, y = examples(spread=0.0)
    clf = UncertainCalibratedClassifier(UncertainSVC(), cv=4).fit(X, y)
    left_out = cross_val_predict(UncertainSVC(), X, y, cv=4, method="decision_function")
    curve = PlattScaling().fit(left_out, y == 1)
    decision = UncertainSVC().fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        clf.predict_proba(X.mean, X_std=0)[:, 1], curve.probability(decision), rtol=1e-12
    )


def test_certain_examples_get_the_probabilities_of_scikit_learn(method):
    """Ours keeps its targets off 0 and 1 as Platt does, as does scikit-learn's sigmoid."""
    if method == "temperature":
        pytest.skip("scikit-learn's temperature is of other numbers, and newer")
    X, y = examples(spread=0.0)
    ours = UncertainCalibratedClassifier(method=method, cv=4).fit(X.mean, y)
    theirs = CalibratedClassifierCV(UncertainSVC(), method=method, cv=4, ensemble=False)
    theirs.fit(X.mean, y)
    np.testing.assert_allclose(ours.predict_proba(X.mean), theirs.predict_proba(X.mean), atol=1e-4)


def test_curve_is_that_of_values_without_their_errors():
    """Decision values, their errors and labels drawn from a known curve give it back."""
    rng = np.random.default_rng(2)
    n = 40_000
    true = 2.0 * rng.normal(size=n)
    std = rng.uniform(0.0, 2.5, size=n)
    positive = rng.random(n) < expit(1.7 * true - 0.4)
    # Errors that say nothing of the labels: what is seen is given, the true value lies around it.
    curve = PlattScaling().fit(true, positive)
    seen = true.copy()
    around = seen + std * rng.normal(size=n)
    labels = rng.random(n) < expit(1.7 * around - 0.4)
    with_errors = PlattScaling().fit(seen, labels, std=std)
    without = PlattScaling().fit(seen, labels)
    assert -with_errors.slope_ == pytest.approx(1.7, abs=0.08)
    assert with_errors.offset_ == pytest.approx(0.4, abs=0.06)
    assert -without.slope_ < 1.3 < -curve.slope_


def test_errors_of_test_rows_lower_the_log_loss():
    """On unequal errors, against the same curve that ignores those of the test rows."""
    X, y = examples(n=3000, seed=3, spread=2.0)
    train, test = X[:1500], X[1500:]
    for method in METHODS:
        clf = UncertainCalibratedClassifier(method=method).fit(train, y[:1500])
        knowing = clf.predict_proba(test)
        ignoring = clf.predict_proba(test.mean, X_std=0)
        rows, codes = np.arange(1500), y[1500:]
        losses = [-np.log(np.clip(p[rows, codes], 1e-6, 1.0)) for p in (knowing, ignoring)]
        assert losses[0].mean() < losses[1].mean()
        assert wilcoxon(losses[1] - losses[0], alternative="greater").pvalue < 1e-3 or (
            log_loss(codes, knowing[:, 1]) < 0.8 * log_loss(codes, ignoring[:, 1])
        )


def test_wide_errors_draw_probabilities_to_what_is_known_of_the_classes(method):
    X, y = examples()
    clf = UncertainCalibratedClassifier(method=method).fit(X, y)
    point = np.repeat(X.mean[:1], 4, axis=0)
    size = np.array([0.0, 1.0, 10.0, 1e4])
    p = clf.predict_proba(point, X_std=size)[:, 0]
    assert (np.diff(p) < 0).all()
    assert p[-1] == pytest.approx(0.5, abs=0.1)


def test_keywords_gaussians_and_frozen_estimators_agree(method):
    X, y = examples()
    one = UncertainCalibratedClassifier(method=method).fit(X, y)
    other = UncertainCalibratedClassifier(method=method).fit(X.mean, y, X_std=std_of(X))
    np.testing.assert_array_equal(
        one.predict_proba(X), other.predict_proba(X.mean, X_std=std_of(X))
    )
    np.testing.assert_array_equal(one.predict(X), one.classes_[one.predict_proba(X).argmax(axis=1)])
    frozen = FrozenEstimator(UncertainSVC().fit(X, y))
    kept = UncertainCalibratedClassifier(frozen, method=method).fit(X, y)
    assert kept.estimator_ is frozen
    assert kept.score(X, y) > 0.8
    with pytest.raises(ValueError, match=r"y has the classes \[1, 2\], the frozen .* \[0, 1\]"):
        UncertainCalibratedClassifier(frozen).fit(X, y + 1)


def test_weights_are_those_of_repeated_rows():
    X, y = examples(n=90)
    repeat = np.tile([1, 2, 3], 30)
    split = [
        (np.flatnonzero(np.arange(90) % 3 != k), np.flatnonzero(np.arange(90) % 3 == k))
        for k in range(3)
    ]
    rows = np.repeat(np.arange(90), repeat)
    many = [(np.flatnonzero(rows % 3 != k), np.flatnonzero(rows % 3 == k)) for k in range(3)]
    options = {"estimator": UncertainSVC(tol=1e-10)}
    once = UncertainCalibratedClassifier(**options, cv=split).fit(X, y, repeat.astype(float))
    each = UncertainCalibratedClassifier(**options, cv=many).fit(X[rows], y[rows])
    np.testing.assert_allclose(once.predict_proba(X), each.predict_proba(X), atol=1e-5)


def test_pipelines_kernels_and_searches_are_calibrated():
    X, y = examples()
    for model in (
        make_pipeline(UncertainStandardScaler(), UncertainSVC()),
        UncertainKernelSVC(gamma=0.3),
    ):
        clf = UncertainCalibratedClassifier(model, cv=3).fit(X, y)
        assert clf.predict_proba(X)[np.arange(len(y)), y].mean() > 0.7
    search = GridSearchCV(
        UncertainCalibratedClassifier(UncertainSVC(), cv=3),
        {"estimator__C": [0.1, 1.0], "method": ["sigmoid", "temperature"]},
        scoring="neg_log_loss",
        cv=2,
    )
    assert search.fit(X, y).best_score_ > -0.6
    plain = UncertainCalibratedClassifier(SVC(), cv=3).fit(X.mean, y)
    assert plain.score(X.mean, y) > 0.8


@pytest.mark.parametrize(("smallest", "parts"), [(2, 2), (3, 3), (20, 5)])
def test_there_are_five_parts_or_as_many_as_the_smallest_class_has_examples(smallest, parts):
    X, y = examples(n=60)
    rows = np.concatenate([np.flatnonzero(y == y[0])[:smallest], np.flatnonzero(y != y[0])])
    found = UncertainCalibratedClassifier().fit(X[rows], y[rows])
    told = UncertainCalibratedClassifier(cv=parts).fit(X[rows], y[rows])
    np.testing.assert_array_equal(found.predict_proba(X), told.predict_proba(X))


def test_a_class_of_one_example_is_too_small_for_two_parts():
    X, y = examples(n=60)
    rows = np.concatenate([np.flatnonzero(y == y[0])[:1], np.flatnonzero(y != y[0])])
    with pytest.raises(ValueError, match=r"cv is 2, and class .* has only 1 examples"):
        UncertainCalibratedClassifier().fit(X[rows], y[rows])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "platt"}, ValueError, "method must be one of sigmoid, isotonic, temperature"),
        ({"cv": 50}, ValueError, "cv is 50, and class 0 has only 20 examples"),
        (
            {"cv": StratifiedKFold(2).split(np.zeros(10), np.arange(10) % 2)},
            ValueError,
            "never leaves out row 10",
        ),
        ({"estimator": SVC()}, TypeError, "Gaussians|no decision_std"),
    ],
)
def test_bad_input_is_named(options, error, message):
    X, y = examples(n=40)
    with pytest.raises(error, match=message):
        UncertainCalibratedClassifier(**options).fit(X, y)


@pytest.mark.parametrize("steps", [[], [UncertainStandardScaler()]])
def test_frames_without_errors_keep_their_names_on_the_way_to_the_classifier_within(steps):
    rng = np.random.default_rng(0)
    y, std = np.arange(60) % 2, np.full(60, 0.3)
    frame = pd.DataFrame(y[:, np.newaxis] + rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    estimator = make_pipeline(*steps, UncertainSVC())
    # Warnings are errors here, also the one about names that are lost.
    clf = UncertainCalibratedClassifier(estimator).fit(frame, y, X_std=std)
    bare = UncertainCalibratedClassifier(estimator).fit(frame.to_numpy(), y, X_std=std)
    expected = bare.predict_proba(frame.to_numpy(), X_std=0)
    np.testing.assert_array_equal(clf.predict_proba(frame, X_std=0), expected)


def test_weights_reach_the_steps_of_a_pipeline_that_ask_for_them():
    X, y = examples(120)
    weights = np.arange(120) % 4 / 2.0
    with config_context(enable_metadata_routing=True):
        machine = UncertainSVC(tol=1e-10).set_fit_request(sample_weight=True)
        scaler = UncertainStandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, machine)
        routed = UncertainCalibratedClassifier(pipeline).fit(X, y, sample_weight=weights)
    plain = make_pipeline(UncertainStandardScaler(), UncertainSVC(tol=1e-10))
    expected = UncertainCalibratedClassifier(plain).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.predict_proba(X), expected.predict_proba(X))


def clusters(n_classes, n=200, spread=0.5):
    """Return points of classes that lie apart, in which no machine errs."""
    rng = np.random.default_rng(4)
    y = np.arange(n) % n_classes
    angle = 2 * np.pi * y / n_classes
    return 5 * np.column_stack([np.cos(angle), np.sin(angle)]) + spread * rng.normal(size=(n, 2)), y


@in_pairs
@each("method", METHODS)
@each("n_classes", [3, 5])
@each(
    "wrapped",
    [
        lambda svc: svc,
        FrozenEstimator,
        lambda svc: make_pipeline(UncertainStandardScaler(), svc),
        lambda svc: GridSearchCV(svc, {"C": [1.0]}, cv=2),
        lambda svc: BaggingClassifier(svc, 3, random_state=0),
        lambda svc: StackingClassifier([("a", svc), ("b", LinearDiscriminantAnalysis())], svc),
    ],
)
@each("machine", [SVC, UncertainKernelSVC])
def test_calibration_does_not_depend_on_the_shape_of_the_decision_values(
    machine, wrapped, n_classes, method
):
    X, y = clusters(n_classes)
    p = []
    for shape in ("ovo", "ovr"):
        clf = wrapped(machine(decision_function_shape=shape))
        if isinstance(clf, StackingClassifier):
            clf.set_params(a__decision_function_shape="ovo")  # its features
        if isinstance(clf, FrozenEstimator):
            clf.estimator.fit(X, y)
        p.append(UncertainCalibratedClassifier(clf, method=method, cv=3).fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(p[0], p[1])
    assert (p[0].argmax(axis=1) == y).all()


@pytest.mark.parametrize("n_classes", [3, 4])
def test_errors_of_machines_of_pairs_reach_the_values_of_the_classes(n_classes):
    """Against draws of the decision values of the pairs."""
    X, y = clusters(n_classes, 60)
    G = Gaussians(X, std=np.random.default_rng(5).uniform(0.0, 3.0, X.shape))
    machine = UncertainKernelSVC().fit(G, y)
    mean, covariance = scores(machine, G, logits=False)
    machine.set_params(decision_function_shape="ovo")
    pairs, std = machine.decision_function(G), machine.decision_std(G)
    draws = pairs + std * np.random.default_rng(6).normal(size=(5_000, *pairs.shape))
    values = np.array([_ovr_decision_function(f < 0, -f, n_classes) for f in draws])
    np.testing.assert_allclose(mean, values.mean(axis=0), atol=0.05)
    for row in range(0, 60, 7):
        np.testing.assert_allclose(covariance[row], np.cov(values[:, row].T), atol=0.05)
    for shape in ("ovo", "ovr"):
        clf = UncertainCalibratedClassifier(UncertainKernelSVC(decision_function_shape=shape))
        assert clf.fit(G, y).score(G, y) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_calibrated_where_there_are_no_decision_values(method, n_classes):
    X, y = clusters(n_classes, spread=4.0)
    forest = RandomForestClassifier(20, random_state=0)
    ours = UncertainCalibratedClassifier(forest, method=method, cv=3).fit(X, y)
    theirs = CalibratedClassifierCV(forest, method=method, cv=3, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    with pytest.raises(TypeError, match="RandomForestClassifier has no decision_std, so that it"):
        ours.set_params(estimator=FrozenEstimator(forest.fit(X, y))).fit(
            X, y, X_std=np.ones(len(X))
        )


class _OfPairs(SVC):
    """Pairs of classes, and no parameter that says so."""

    def decision_function(self, X):
        return np.tile(super().decision_function(X), 2)


def test_decision_values_that_are_not_one_a_class_are_refused():
    X, y = clusters(3)
    with pytest.raises(ValueError, match="_OfPairs has 6 columns for 3 classes; calibration needs"):
        UncertainCalibratedClassifier(_OfPairs()).fit(X, y)
    with pytest.raises(TypeError, match="has neither decision_function nor predict_proba"):
        UncertainCalibratedClassifier(VotingClassifier([("svc", SVC())])).fit(X, y)
