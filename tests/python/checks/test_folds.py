"""Arrays of errors in cross-validation: each row keeps its own, a cut matrix is refused."""

import functools
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)

from halosvm import Covariances, ErrorsLeftOutWarning, Gaussians, UncertainKernelSVC, UncertainSVC

ROUTING = pytest.mark.parametrize("routing", [False, True])
D = 12


@pytest.fixture(scope="module")
def square():
    """Return as many examples as features, labels, and one covariance matrix."""
    rng = np.random.default_rng(0)
    y = np.arange(D) % 2
    factor = rng.uniform(0.1, 1, (D, D))
    return rng.normal(size=(D, D)) + y[:, None], y, factor @ factor.T


@ROUTING
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("search", [False, True])
def test_one_matrix_for_all_rows_is_refused_where_folds_would_cut_it(
    square, routing, diagonal, search
):
    X, y, cov = square
    cov = np.diag(np.diag(cov)) if diagonal else cov
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    options = {"cv": folds, "error_score": "raise"}
    with sklearn.config_context(enable_metadata_routing=routing):
        if search:
            grid = GridSearchCV(UncertainSVC(), {"C": [1]}, refit=False, **options)
            run = functools.partial(grid.fit, X, y, X_cov=cov)
        else:
            params = {"X_cov": cov}
            run = functools.partial(cross_validate, UncertainSVC(), X, y, params=params, **options)
        with pytest.raises(
            ValueError, match="rows of one symmetric matrix, cut as one of 12 examples"
        ):
            run()


def test_what_the_refusal_offers_works(square):
    X, y, cov = square
    each = Covariances.full(np.array(np.broadcast_to(cov, (D, D, D))))
    scores = cross_val_score(UncertainSVC(), X, y, cv=3, params={"X_cov": each})
    np.testing.assert_array_equal(
        scores, cross_val_score(UncertainSVC(), Gaussians(X, cov=each), y, cv=3)
    )


@pytest.mark.parametrize("values", ["random", "same in each row", "few", "same everywhere"])
def test_variances_of_wide_data_are_no_cut_matrix(values):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 20)), np.arange(8) % 2
    variances = {
        "random": rng.uniform(0.1, 1, X.shape),
        "same in each row": np.tile(rng.uniform(0.1, 1, 20), (8, 1)),
        "few": rng.integers(1, 4, X.shape).astype(float),
        "same everywhere": np.full(X.shape, 0.5),
    }[values]
    UncertainSVC().fit(X, y, X_cov=variances)


def test_variances_of_a_fold_of_as_many_rows_as_features_are_clear():
    rng = np.random.default_rng(0)
    X, variances = rng.normal(size=(9, 6)), rng.uniform(0.1, 1, (9, 6))
    y = np.arange(9) % 2
    found = cross_validate(
        UncertainSVC(), X, y, cv=KFold(3), params={"X_cov": variances}, error_score="raise"
    )
    whole = cross_validate(UncertainSVC(), Gaussians(X, variance=variances), y, cv=KFold(3))
    np.testing.assert_array_equal(found["test_score"], whole["test_score"])
    symmetric = np.ones((6, 6)) + np.eye(6)
    with pytest.raises(ValueError, match="for one matrix for all rows"):
        UncertainSVC().fit(X[:6], y[:6], X_cov=symmetric)


@ROUTING
@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC()], ids=repr)
def test_three_ways_to_search_find_the_same_scores(routing, machine):
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    X, std = rng.normal(size=(60, 3)) + y[:, None], rng.uniform(0, 2, (60, 3))
    grid, folds = {"C": [0.01, 0.1, 1.0]}, StratifiedKFold(3)
    examples = Gaussians(X, std=std)
    with sklearn.config_context(enable_metadata_routing=routing):
        # Without routing scikit-learn hands errors to fit alone, of which kernel machines warn.
        exact = not routing and isinstance(machine, UncertainKernelSVC)
        with pytest.warns(ErrorsLeftOutWarning) if exact else nullcontext():
            keywords = GridSearchCV(machine, grid, cv=folds).fit(X, y, X_std=std)
    whole = GridSearchCV(machine, grid, cv=folds).fit(examples, y)
    by_hand = []
    for C in grid["C"]:
        model = sklearn.base.clone(machine).set_params(C=C)
        for train, test in folds.split(X, y):
            model.fit(X[train], y[train], X_std=std[train])
            seen = {"X_std": std[test] if routing else 0}
            by_hand.append(model.score(X[test], y[test], **seen))
    by_hand = np.mean(np.reshape(by_hand, (3, 3)), axis=1)
    np.testing.assert_array_equal(keywords.cv_results_["mean_test_score"], by_hand)
    if routing or isinstance(machine, UncertainSVC):
        np.testing.assert_array_equal(whole.cv_results_["mean_test_score"], by_hand)
        assert whole.best_params_ == keywords.best_params_
