"""Gaussians, mixtures and routed errors through scikit-learn's meta-estimators, or one clear no."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from halosvm import (
    GaussianMixtures,
    Gaussians,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
)

GRID = {"C": [0.1, 1.0]}
N = 80

# Each returns numbers that tell one fit from another.
CURVES = {
    "cross_val_score": lambda m, X, y, **p: cross_val_score(m, X, y, params=p),
    "cross_val_predict": lambda m, X, y, **p: cross_val_predict(
        m, X, y, params=p, method="decision_function"
    ),
    "learning_curve": lambda m, X, y, **p: learning_curve(m, X, y, params=p)[2],
    "validation_curve": lambda m, X, y, **p: validation_curve(
        m, X, y, param_name="C", param_range=GRID["C"], params=p
    )[1],
    "grid": lambda m, X, y, **p: GridSearchCV(m, GRID).fit(X, y, **p).decision_function(X),
    "random": lambda m, X, y, **p: (
        RandomizedSearchCV(m, GRID, n_iter=2, random_state=0).fit(X, y, **p).decision_function(X)
    ),
    "halving": lambda m, X, y, **p: (
        HalvingGridSearchCV(m, GRID, random_state=0).fit(X, y, **p).decision_function(X)
    ),
}
FITS = {
    "calibrated": CalibratedClassifierCV,
    "one against the rest": OneVsRestClassifier,
    "voting": lambda m: VotingClassifier([("a", m), ("b", clone(m))]),
    "tuned threshold": TunedThresholdClassifierCV,
}
STACKING = {"stacking": lambda m: StackingClassifier([("a", m), ("b", clone(m).set_params(C=9.0))])}
ARRAYS = {
    "one against one": OneVsOneClassifier,
    "bagging": lambda m: BaggingClassifier(m, n_estimators=3, random_state=0),
}
NEVER = {
    "AdaBoost": AdaBoostClassifier,
    "elimination": RFE,
    "elimination by folds": RFECV,
}


@pytest.fixture(scope="module")
def data():
    """Return means, standard deviations, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 3)) + y[:, None], rng.uniform(0.1, 2.0, (N, 3)), y


def fitted_values(meta, X, y, **errors):
    """Return what the fit makes of certain points."""
    meta.fit(X, y, **errors)
    points = X.mean if isinstance(X, Gaussians) else X
    for method in ("decision_function", "predict_proba"):
        if hasattr(meta, method):
            return getattr(meta, method)(points)
    return meta.predict(points)


@pytest.mark.parametrize("tool", CURVES)
def test_tools_that_split_carry_errors_both_ways(data, tool):
    X, std, y = data
    whole = CURVES[tool](UncertainSVC(), Gaussians(X, std=std), y)
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            keywords = CURVES[tool](UncertainSVC(), X, y, X_std=std)
        np.testing.assert_array_equal(keywords, whole)
    if tool != "cross_val_score":  # whose numbers are coarse
        assert not np.array_equal(whole, CURVES[tool](UncertainSVC(), X, y))


@pytest.mark.parametrize("tool", CURVES)
def test_tools_that_split_carry_mixtures(data, tool):
    X, std, y = data
    halves = Gaussians(np.repeat(X, 2, axis=0), std=np.repeat(std, 2, axis=0))
    mixtures = GaussianMixtures(halves, np.full(2 * N, 0.5), 2)
    machine = UncertainKernelSVC(gamma=0.3)
    np.testing.assert_allclose(
        CURVES[tool](machine, mixtures, y),
        CURVES[tool](machine, Gaussians(X, std=std), y),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("meta", FITS)
def test_meta_estimators_carry_errors_both_ways(data, meta):
    X, std, y = data
    whole = fitted_values(FITS[meta](UncertainSVC()), Gaussians(X, std=std), y)
    with sklearn.config_context(enable_metadata_routing=True):
        keywords = fitted_values(FITS[meta](UncertainSVC()), X, y, X_std=std)
    np.testing.assert_allclose(keywords, whole, rtol=1e-12)
    halves = Gaussians(np.repeat(X, 2, axis=0), std=np.repeat(std, 2, axis=0))
    mixtures = GaussianMixtures(halves, np.full(2 * N, 0.5), 2)
    assert len(FITS[meta](UncertainKernelSVC()).fit(mixtures, y).predict(mixtures)) == N


def test_stacking_carries_gaussians(data):
    X, std, y = data
    examples = Gaussians(X, std=std)
    stack = STACKING["stacking"](UncertainSVC()).fit(examples, y)
    alone = UncertainSVC().fit(examples, y)
    np.testing.assert_array_equal(stack.estimators_[0].coef_, alone.coef_)
    assert stack.score(examples, y) > 0.6


@pytest.mark.parametrize("meta", ARRAYS)
def test_meta_estimators_that_make_arrays_of_x_take_routed_errors_and_say_so(data, meta):
    X, std, y = data
    with pytest.raises(TypeError, match=r"Gaussians are not one array.*as routed metadata"):
        ARRAYS[meta](UncertainSVC()).fit(Gaussians(X, std=std), y)
    with sklearn.config_context(enable_metadata_routing=True):
        fitted = ARRAYS[meta](UncertainSVC()).fit(X, y, X_std=std)
        plain = ARRAYS[meta](UncertainSVC()).fit(X, y)
    assert not np.array_equal(fitted.estimators_[0].coef_, plain.estimators_[0].coef_)


def test_selection_by_the_model_learns_from_gaussians_and_transforms_points(data):
    X, std, y = data
    examples = Gaussians(X, std=std)
    selection = SelectFromModel(UncertainSVC()).fit(examples, y)
    np.testing.assert_array_equal(selection.estimator_.coef_, UncertainSVC().fit(examples, y).coef_)
    assert len(selection.transform(X)) == N
    with pytest.raises(TypeError, match=r"Gaussians are not one array.*as routed metadata"):
        selection.transform(examples)


@pytest.mark.parametrize("meta", NEVER)
def test_meta_estimators_that_cannot_carry_errors_refuse_them(data, meta):
    X, std, y = data
    with pytest.raises(TypeError, match="Gaussians are not one array"):
        NEVER[meta](UncertainSVC()).fit(Gaussians(X, std=std), y)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises((TypeError, ValueError), match="X_std"),
    ):
        NEVER[meta](UncertainSVC()).fit(X, y, X_std=std)


def test_importance_by_permutation_takes_machines_that_were_fitted_with_errors(data):
    X, std, y = data
    examples = Gaussians(X, std=std)
    model = UncertainSVC().fit(examples, y)
    with pytest.raises(TypeError, match="Gaussians are not one array"):
        permutation_importance(model, examples, y)
    assert permutation_importance(model, X, y, random_state=0).importances_mean.shape == (3,)


def test_columns_of_gaussians_are_scaled_side_by_side(data):
    X, std, y = data
    columns = ColumnTransformer(
        [("first", UncertainStandardScaler(), [0, 1]), ("rest", "passthrough", [2])]
    )
    model = make_pipeline(columns, UncertainSVC()).fit(Gaussians(X, std=std), y)
    parts = UncertainStandardScaler().fit_transform(Gaussians(X[:, :2], std=std[:, :2]))
    variances = np.column_stack([parts.covariances.variances(), std[:, 2] ** 2])
    by_hand = Gaussians(np.column_stack([parts.mean, X[:, 2]]), variance=variances)
    np.testing.assert_allclose(
        model[-1].coef_, UncertainSVC().fit(by_hand, y).coef_, rtol=1e-4, atol=1e-6
    )


def test_routed_errors_reach_scaler_and_machine_with_no_more_words(data):
    X, std, y = data
    pipeline = make_pipeline(UncertainStandardScaler(), UncertainSVC())
    whole = clone(pipeline).fit(Gaussians(X, std=std), y)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(pipeline).fit(X, y, X_std=std)
        scores = cross_val_score(pipeline, X, y, params={"X_std": std}, error_score="raise")
    np.testing.assert_array_equal(routed[-1].coef_, whole[-1].coef_)
    np.testing.assert_array_equal(scores, cross_val_score(pipeline, Gaussians(X, std=std), y))
