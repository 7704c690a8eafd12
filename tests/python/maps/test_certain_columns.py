"""Columns without errors beside maps of Gaussians, in the tools of scikit-learn that join both."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
)

N = 90
NUMBERS = ["a", "b"]


@pytest.fixture(scope="module", name="table")
def table_of_measurements():
    """Return two measured columns and one of categories, errors of the first, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    table = pd.DataFrame(rng.normal(size=(N, 2)) + 0.8 * y[:, None], columns=NUMBERS)
    table["c"] = np.where(rng.random(N) < 0.7, np.array(["x", "y"])[y], "z")
    std = pd.DataFrame(rng.uniform(0.1, 1.0, size=(N, 2)), columns=NUMBERS)
    return table, std, y


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def columns_of(map_, **options):
    parts = [("numbers", map_, NUMBERS), ("categories", OneHotEncoder(**options), ["c"])]
    return ColumnTransformer(parts)


def by_hand(map_, table, std):
    """Return the same with columns of zeros among the variances."""
    own = map_.fit_transform(Gaussians(table[NUMBERS].to_numpy(), std=std.to_numpy()))
    coded = OneHotEncoder(sparse_output=False).fit_transform(table[["c"]])
    d = 2 + coded.shape[1]
    matrices = np.zeros((len(table), d, d))
    matrices[:, :2, :2] = own.covariances.to_full()
    return Gaussians(np.hstack([own.mean, coded]), cov=matrices)


MAPS = {"posterior": EmpiricalBayes(), "scaled": UncertainStandardScaler()}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize("machine", [UncertainSVC(tol=1e-9), UncertainKernelSVC(tol=1e-9)])
def test_encoded_categories_are_certain_beside_a_map(table, name, sparse_output, machine):
    X, std, y = table
    columns = columns_of(MAPS[name], sparse_output=sparse_output)
    expected = by_hand(MAPS[name], X, std)
    found = columns.fit_transform(X, X_std=std)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(
        found.covariances.to_full(), expected.covariances.to_full(), atol=1e-15
    )
    assert found.covariances.kind == "columns"
    names = ["numbers__a", "numbers__b", *(f"categories__c_{each}" for each in "xyz")]
    assert columns.get_feature_names_out().tolist() == names
    model = make_pipeline(columns, clone(machine)).fit(X, y, X_std=std)
    plain = clone(machine).fit(expected, y)
    np.testing.assert_allclose(
        model.decision_function(X, X_std=std), plain.decision_function(expected), atol=1e-5
    )
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        loaded.decision_function(X, X_std=std), model.decision_function(X, X_std=std)
    )


def test_unions_take_dense_columns(table):
    X, std, _ = table
    coded = make_pipeline(
        FunctionTransformer(lambda each: each > 0), OneHotEncoder(sparse_output=False)
    )
    union = FeatureUnion([("coded", coded), ("same", UncertainStandardScaler())])
    found = union.fit_transform(X[NUMBERS], X_std=std)
    assert type(found) is Gaussians
    assert found.shape == (N, 6)
    own = UncertainStandardScaler().fit_transform(X[NUMBERS], X_std=std)
    np.testing.assert_array_equal(found.covariances.variances()[:, :4], 0.0)
    np.testing.assert_allclose(
        found.covariances.variances()[:, 4:], own.covariances.variances(), rtol=1e-14
    )


def test_scores_and_searches_are_those_of_columns_joined_by_hand(table):
    X, std, y = table
    pipeline = make_pipeline(columns_of(UncertainStandardScaler()), UncertainSVC())
    routed = {"params": {"X_std": std}, "error_score": "raise"}
    scores = cross_val_score(pipeline, X, y, **routed)
    coded = OneHotEncoder().fit_transform(X[["c"]]).toarray()
    together = np.hstack([Gaussians(X[NUMBERS].to_numpy(), std=std.to_numpy()), coded])
    joined = make_pipeline(
        ColumnTransformer(
            [("numbers", UncertainStandardScaler(), [0, 1]), ("same", "passthrough", [2, 3, 4])]
        ),
        UncertainSVC(),
    )
    np.testing.assert_array_equal(scores, cross_val_score(joined, together, y))
    grid = {"columntransformer__numbers__with_std": [True, False], "uncertainsvc__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y, X_std=std)
    plain = GridSearchCV(joined, grid, cv=3, error_score="raise").fit(together, y)
    assert search.best_params_ == plain.best_params_
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_what_scikit_learn_would_make_sparse_or_a_frame_is_refused_with_the_remedy(table):
    X, std, _ = table
    many = X.assign(c=[f"k{i % 30}" for i in range(N)])
    columns = columns_of(EmpiricalBayes())
    with pytest.raises(TypeError, match="ColumnTransformer needs sparse_threshold=0"):
        columns.fit_transform(many, X_std=std)
    columns.set_params(sparse_threshold=0)
    assert columns.fit_transform(many, X_std=std).shape == (N, 32)
    union = FeatureUnion([("a", UncertainStandardScaler()), ("b", OneHotEncoder())])
    with pytest.raises(TypeError, match=r"FeatureUnion encoders with sparse_output=False"):
        union.fit_transform(X[NUMBERS], X_std=std)
    framed = columns_of(EmpiricalBayes(), sparse_output=False).set_output(transform="pandas")
    with pytest.raises(TypeError, match="set_output makes no frames of Gaussians"):
        framed.fit_transform(X, X_std=std)


def test_without_errors_columns_are_an_array(table):
    X, _, y = table
    for map_ in (EmpiricalBayes(), UncertainStandardScaler(), UncertainFourierFeatures(6)):
        assert type(columns_of(map_).fit_transform(X)) is np.ndarray
    framed = columns_of(EmpiricalBayes(), sparse_output=False).set_output(transform="pandas")
    assert framed.fit_transform(X).columns[0] == "numbers__a"
    assert make_pipeline(columns_of(EmpiricalBayes()), UncertainSVC()).fit(X, y).score(X, y) > 0.7
