"""Gaussians in scikit-learn's hands: every tool that splits or passes data keeps rows whole."""

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing, indexable, resample, shuffle
from sklearn.utils.validation import _check_feature_names, _num_features, _num_samples

from halosvm import Gaussians

N, D = 6, 3


def means(n=N, d=D):
    return np.arange(n * d, dtype=float).reshape(n, d)


def spread(shape):
    return 1 + np.arange(np.prod(shape), dtype=float).reshape(shape) / 4


def gaussians():
    return Gaussians(means(), std=spread((N, D)))


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that refuses all but Gaussians whose parts agree, and predicts by the mean."""

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def _check(self, X):
        assert type(X) is Gaussians
        # means() and the spreads of labelled() count rows alike: each row must keep its covariance
        np.testing.assert_array_equal(X.covariances.values[:, 0], 1 + X.mean[:, 0] / 8)
        return X

    def fit(self, X, y, X_std=None):
        assert len(self._check(X)) == len(y)
        self.classes_ = np.unique(y)
        self.n_rows_ = len(X)
        if X_std is not None:
            np.testing.assert_array_equal(X_std, X.mean[:, 0])
        return self

    def decision_function(self, X):
        return self._check(X).mean[:, 0] - self.threshold

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Same(TransformerMixin, BaseEstimator):
    """A transformer that lets Gaussians pass."""

    def fit(self, X, y=None):
        assert type(X) is Gaussians
        return self

    def transform(self, X):
        assert type(X) is Gaussians
        return X


def labelled(n=24):
    mean = means(n, 2)
    order = np.random.default_rng(0).permutation(n)
    X = Gaussians(mean, cov=1 + mean / 8)[order]
    return X, (order >= n // 2).astype(int)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([3, 1]),
        [3, 1],
        (3, 1),
        np.arange(6) % 2 == 0,
        [True, False] * 3,
        slice(2, 5),
        range(2),
    ],
    ids=repr,
)
def test_safe_indexing_selects_rows(rows):
    X = gaussians()
    part = _safe_indexing(X, np.array(rows) if isinstance(rows, range) else rows)
    index = list(rows) if isinstance(rows, (tuple, range)) else rows
    assert type(part) is Gaussians
    np.testing.assert_array_equal(part.mean, means()[index])
    np.testing.assert_array_equal(part.covariances.values, spread((N, D))[index])


def test_safe_indexing_of_one_row_and_of_columns():
    mean, covariance = _safe_indexing(gaussians(), 2)
    assert mean.shape == (D,)
    assert covariance.shape == (D, D)
    part = _safe_indexing(gaussians(), [2, 0], axis=1)
    np.testing.assert_array_equal(part.mean, means()[:, [2, 0]])
    np.testing.assert_array_equal(part.covariances.values, spread((N, D))[:, [2, 0]])


def test_sizes_are_those_scikit_learn_sees():
    X = gaussians()
    assert (_num_samples(X), _num_features(X)) == (N, D)
    assert indexable(X, np.ones(N))[0] is X
    estimator = Recorder()
    _check_feature_names(estimator, X, reset=True)
    assert not hasattr(estimator, "feature_names_in_")


def test_train_test_split_shuffle_and_resample_keep_rows_together():
    X, y = labelled()
    train, test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    for part, labels in ((train, y_train), (test, y_test)):
        Recorder().fit(part, labels)
    assert len(train) + len(test) == len(X)
    for mixed, labels in (shuffle(X, y, random_state=0), resample(X, y, random_state=0)):
        Recorder().fit(mixed, labels)
    covariances = train_test_split(X.covariances, shuffle=False)[0]
    np.testing.assert_array_equal(covariances.values, X.covariances.values[: len(covariances)])


@pytest.mark.parametrize("cv", [KFold(4, shuffle=True, random_state=0), StratifiedKFold(3), 3])
def test_cross_validate(cv):
    X, y = labelled()
    result = cross_validate(
        Recorder(threshold=23.0), X, y, cv=cv, return_train_score=True, error_score="raise"
    )
    np.testing.assert_array_equal(result["test_score"], 1.0)
    np.testing.assert_array_equal(result["train_score"], 1.0)


def test_cross_validate_splits_arrays_given_to_fit():
    X, y = labelled()
    params = {"X_std": X.mean[:, 0]}
    scores = cross_validate(Recorder(23.0), X, y, params=params, error_score="raise")["test_score"]
    np.testing.assert_array_equal(scores, 1.0)


def test_grid_search_over_a_pipeline_finds_the_threshold():
    X, y = labelled()
    grid = {"recorder__threshold": [-1.0, 23.0, 99.0]}
    search = GridSearchCV(make_pipeline(Same(), Recorder()), grid, error_score="raise").fit(X, y)
    assert search.best_params_ == {"recorder__threshold": 23.0}
    assert search.best_estimator_[-1].n_rows_ == len(X)
    np.testing.assert_array_equal(search.predict(X), y)
    assert search.score(X, y) == 1.0


def test_successive_halving():
    X, y = labelled(60)
    grid = {"threshold": [-1.0, 59.0, 999.0]}
    search = HalvingGridSearchCV(Recorder(), grid, error_score="raise", random_state=0).fit(X, y)
    assert search.best_params_ == {"threshold": 59.0}


def test_pipelines_that_cache_their_steps(tmp_path):
    X, y = labelled()
    pipeline = make_pipeline(Same(), Recorder(23.0), memory=joblib.Memory(tmp_path, verbose=0))
    for _ in range(2):
        np.testing.assert_array_equal(clone(pipeline).fit(X, y).predict(X), y)


def test_other_model_selection_tools():
    X, y = labelled()
    np.testing.assert_array_equal(cross_val_predict(Recorder(23.0), X, y, cv=3), y)
    sizes, scores, _ = learning_curve(
        Recorder(23.0), X, y, cv=3, train_sizes=[8, 16], shuffle=True, error_score="raise"
    )
    np.testing.assert_array_equal(sizes, [8, 16])
    np.testing.assert_array_equal(scores, 1.0)
    score, _, _ = permutation_test_score(Recorder(23.0), X, y, n_permutations=2, random_state=0)
    assert score == 1.0


def test_meta_estimators():
    X, y = labelled()
    calibrated = CalibratedClassifierCV(Recorder(23.0), cv=3).fit(X, y)
    np.testing.assert_array_equal(calibrated.predict(X), y)
    np.testing.assert_array_equal(OneVsRestClassifier(Recorder(23.0)).fit(X, y).predict(X), y)


def test_estimators_for_points_refuse_gaussians_with_advice():
    X, y = labelled()
    with pytest.raises(TypeError, match=r"use \.mean"):
        LogisticRegression().fit(X, y)


@pytest.mark.parametrize(
    "name", ["sparse", "dtypes", "iloc", "__dataframe__", "__array_interface__"]
)
def test_gaussians_have_no_attribute_by_which_scikit_learn_tells_other_containers(name):
    assert not hasattr(Gaussians(np.zeros((2, 3)), std=np.ones((2, 3))), name)
