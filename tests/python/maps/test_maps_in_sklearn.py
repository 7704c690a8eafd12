"""Scaling and propagation among scikit-learn's tools: checks, pipelines, columns, searches."""

import pickle

import numpy as np
import pytest
import sklearn
from cases import KINDS, each
from estimator_checks import pass_checks
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    Propagate,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
)

N, D = 90, 4


@pytest.mark.parametrize(
    "estimator",
    [
        Propagate(StandardScaler()),
        Propagate(PCA(1, svd_solver="full")),
        Propagate(make_pipeline(StandardScaler(), Normalizer()), "linear"),
        Propagate(PowerTransformer(), "unscented"),
        Propagate(make_union(UncertainStandardScaler(), PCA(1)), "monte_carlo", random_state=0),
    ],
    ids=repr,
)
def test_transformer_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(scope="module")
def data():
    """Return Gaussians with features of very different sizes, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    scales = np.array([0.01, 1.0, 30.0, 500.0])
    mean = (rng.normal(size=(N, D)) + 0.8 * y[:, None] + 5.0) * scales
    return Gaussians(mean, std=rng.uniform(0.1, 1.0, (N, D)) * scales), y


def test_pipelines_equal_what_their_steps_make(data):
    X, y = data
    steps = UncertainStandardScaler(), Propagate(PCA(2)), UncertainSVC()
    pipeline = make_pipeline(*map(clone, steps)).fit(X, y)
    image = steps[1].fit_transform(steps[0].fit_transform(X))
    machine = steps[2].fit(image, y)
    np.testing.assert_array_equal(pipeline[-1].coef_, machine.coef_)
    np.testing.assert_array_equal(pipeline.predict(X), machine.predict(image))
    assert pipeline.score(X, y) > 0.7
    kernel = make_pipeline(UncertainStandardScaler(), UncertainKernelSVC()).fit(X, y)
    assert kernel.score(X, y) > 0.7
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.decision_function(X), pipeline.decision_function(X))


def test_scaled_errors_are_those_of_the_machine_and_raw_ones_are_not(data):
    X, y = data
    right = make_pipeline(UncertainStandardScaler(), UncertainSVC()).fit(X, y)
    scaler = StandardScaler().fit(X.mean)
    by_hand = UncertainSVC().fit(
        scaler.transform(X.mean), y, X_std=X.covariances.values / scaler.scale_
    )
    np.testing.assert_allclose(right[-1].coef_, by_hand.coef_, rtol=1e-5)
    wrong = make_pipeline(StandardScaler(), UncertainSVC())
    with pytest.warns(UserWarning, match="beside an X that was changed by StandardScaler"):
        wrong.fit(X.mean, y, uncertainsvc__X_std=X.covariances.values)
    assert not np.allclose(wrong[-1].coef_, by_hand.coef_, rtol=0.1)


@each("kind", KINDS)
def test_columns_are_mapped_apart_and_keep_what_their_errors_share(make_covariances, kind):
    rng = np.random.default_rng(1)
    X = Gaussians(rng.normal(size=(N, D)) + 3.0, cov=make_covariances(kind, N, D, rng))
    columns = ColumnTransformer(
        [
            ("scaled", UncertainStandardScaler(), [2, 0]),
            ("main", Propagate(PCA(1)), slice(1, 4)),
            ("same", "passthrough", [3]),
        ]
    )
    image = columns.fit_transform(X)
    assert type(image) is Gaussians
    A = np.zeros((4, D))
    scale = X.mean.std(axis=0)
    A[0, 2], A[1, 0] = 1 / scale[2], 1 / scale[0]
    A[2, 1:] = columns.named_transformers_["main"].transformer_.components_
    A[3, 3] = 1.0
    expected = A @ X.covariances.to_full() @ A.T
    np.testing.assert_allclose(image.covariances.to_full(), expected, atol=1e-13)
    plain = [("scaled", StandardScaler(), [2, 0]), ("main", PCA(1), [1, 2, 3])]
    plain.append(("same", "passthrough", [3]))
    whole = Propagate(ColumnTransformer(plain)).fit_transform(X)
    np.testing.assert_allclose(whole.mean, image.mean, atol=1e-13)
    np.testing.assert_allclose(whole.covariances.to_full(), expected, atol=1e-13)
    test = columns.transform(X[:5])
    np.testing.assert_allclose(test.covariances.to_full(), expected[:5], atol=1e-13)


@each("kind", KINDS)
def test_unions_keep_what_the_errors_of_their_parts_share(make_covariances, kind):
    rng = np.random.default_rng(2)
    X = Gaussians(rng.normal(size=(N, D)), cov=make_covariances(kind, N, D, rng))
    union = FeatureUnion(
        [
            ("both", make_pipeline(UncertainStandardScaler(), Propagate(PCA(2)))),
            ("same", "passthrough"),
        ]
    )
    image = union.fit_transform(X)
    A = np.concatenate([np.zeros((2, D)), np.eye(D)])
    pca = union["both"][1].transformer_
    A[:2] = pca.components_ / X.mean.std(axis=0)
    expected = A @ X.covariances.to_full() @ A.T
    np.testing.assert_allclose(image.covariances.to_full(), expected, atol=1e-13)
    whole = Propagate(make_union(make_pipeline(StandardScaler(), PCA(2)), "passthrough"))
    found = whole.fit_transform(X).covariances.to_full()
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_columns_with_maps_that_are_not_linear_need_independent_errors(data, make_covariances):
    X, y = data
    logs = Propagate(FunctionTransformer(np.log), "linear")
    columns = ColumnTransformer([("log", logs, [3]), ("rest", UncertainStandardScaler(), [0, 1])])
    pipeline = make_pipeline(columns, UncertainSVC()).fit(X, y)
    image = pipeline[0].transform(X)
    assert image.covariances.kind == "diagonal"
    relative = X.covariances.values[:, 3] / X.mean[:, 3]
    np.testing.assert_allclose(np.sqrt(image.covariances.variances()[:, 0]), relative, rtol=1e-9)
    full = Gaussians(X.mean, cov=make_covariances("full", N, D, np.random.default_rng(3)))
    with pytest.raises(ValueError, match=r"their features depend on each other.*Propagate"):
        columns.fit_transform(full)
    plain = [("log", FunctionTransformer(np.log), [3]), ("rest", StandardScaler(), [0, 1])]
    whole = Propagate(ColumnTransformer(plain), "linear").fit_transform(X)
    np.testing.assert_allclose(
        whole.covariances.variances(), image.covariances.variances(), rtol=1e-9
    )
    assert Propagate(ColumnTransformer(plain), "linear").fit_transform(full).shape == (N, 3)


def test_posteriors_of_columns_come_together_where_errors_are_independent(data):
    X, _ = data
    image = ColumnTransformer(
        [("posterior", EmpiricalBayes(), [0, 1]), ("rest", "passthrough", [2, 3])]
    ).fit_transform(X)
    own = EmpiricalBayes().fit_transform(X[:, :2])
    found = image.covariances.to_full()
    np.testing.assert_array_equal(found[:, :2, :2], own.covariances.to_full())
    assert not found[:, :2, 2:].any()


def test_searches_over_parameters_of_maps_equal_those_by_hand(data):
    X, y = data
    folds = StratifiedKFold(3)
    pipeline = make_pipeline(UncertainStandardScaler(), Propagate(PCA()), UncertainSVC())
    grid = {
        "uncertainstandardscaler__variance": ["means", "total"],
        "propagate__transformer__n_components": [1, 3],
    }
    search = GridSearchCV(pipeline, grid, cv=folds, error_score="raise").fit(X, y)
    by_hand = []
    for params in search.cv_results_["params"]:
        scores = []
        for train, test in folds.split(X.mean, y):
            scaler = UncertainStandardScaler(variance=params["uncertainstandardscaler__variance"])
            pca = Propagate(PCA(params["propagate__transformer__n_components"]))
            machine = UncertainSVC().fit(
                pca.fit_transform(scaler.fit_transform(X[train])), y[train]
            )
            image = pca.transform(scaler.transform(X[test]))
            scores.append(machine.score(image, y[test]))
        by_hand.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    over_maps = GridSearchCV(
        make_pipeline(UncertainStandardScaler(), UncertainSVC()),
        {"uncertainstandardscaler": ["passthrough", UncertainStandardScaler(), Propagate(PCA(2))]},
        cv=folds,
        error_score="raise",
        n_jobs=2,
    ).fit(X, y)
    assert over_maps.best_score_ > 0.6


def test_keywords_reach_the_first_step_that_asks_for_them(data):
    X, y = data
    expected = make_pipeline(UncertainStandardScaler(), UncertainSVC()).fit(X, y)
    std = X.covariances.values
    by_name = make_pipeline(UncertainStandardScaler(), UncertainSVC())
    by_name.fit(X.mean, y, uncertainstandardscaler__X_std=std)
    np.testing.assert_array_equal(by_name[-1].coef_, expected[-1].coef_)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = UncertainSVC().set_fit_request(X_std=False, X_cov=False)
        for first in (UncertainStandardScaler(), Propagate(StandardScaler())):
            pipeline = make_pipeline(first, clone(svc)).fit(X.mean, y, X_std=std)
            np.testing.assert_allclose(pipeline[-1].coef_, expected[-1].coef_, rtol=1e-5)
            scores = cross_validate(
                pipeline, X.mean, y, cv=3, params={"X_std": std}, error_score="raise"
            )
            by_gaussians = cross_val_score(pipeline, X, y, cv=3, error_score="raise")
            np.testing.assert_array_equal(scores["test_score"], by_gaussians)


def test_weights_reach_the_transformer_as_metadata(data):
    X, y = data
    weights = np.arange(N) % 3
    expected = StandardScaler().fit(X.mean, sample_weight=weights).scale_
    with sklearn.config_context(enable_metadata_routing=True):
        first = Propagate(StandardScaler()).set_fit_request(sample_weight=True)
        svc = UncertainSVC().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(first, svc).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].transformer_.scale_, expected)
    scaler = UncertainStandardScaler()
    pipeline = make_pipeline(scaler, svc).fit(X, y, uncertainstandardscaler__sample_weight=weights)
    np.testing.assert_allclose(scaler.scale_, expected, rtol=1e-12)


def test_names_of_features_follow_the_transformer():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    x = pd.DataFrame(rng.normal(size=(20, 3)) + 5, columns=["a", "b", "c"])
    columns = ColumnTransformer([("p", PCA(1), ["b", "c"]), ("s", StandardScaler(), ["a"])])
    through = Propagate(columns).fit(x, X_std=np.ones((20, 3)))
    assert through.get_feature_names_out().tolist() == ["p__pca0", "s__a"]
    image = through.transform(x, X_std=np.ones((20, 3)))
    assert image.feature_names.tolist() == ["p__pca0", "s__a"]
    again = through.transform(Gaussians(x, std=np.ones((20, 3))))
    np.testing.assert_array_equal(again.covariances.values, image.covariances.values)
    through.set_output(transform="pandas")
    assert type(through.transform(x, X_std=np.ones((20, 3)))) is Gaussians
    frame = through.transform(x)
    assert frame.columns.tolist() == ["p__pca0", "s__a"]
    np.testing.assert_array_equal(frame.to_numpy(), image.mean)
    with pytest.raises(ValueError, match="named 'b', in fit it was 'a'"):
        through.transform(Gaussians(x[["b", "a", "c"]], std=np.ones((20, 3))))
    nameless = Propagate(FunctionTransformer(np.log), "linear").fit(x, X_std=np.ones((20, 3)))
    assert not hasattr(nameless, "get_feature_names_out")
    assert nameless.transform(x, X_std=np.ones((20, 3))).feature_names is None


def test_clones_and_pickles_do_the_same(data):
    X, _ = data
    through = Propagate(
        QuantileTransformer(n_quantiles=20), "monte_carlo", n_draws=20, random_state=1
    ).fit(X)
    assert clone(through).get_params(deep=False).keys() == through.get_params(deep=False).keys()
    image, again = through.transform(X), pickle.loads(pickle.dumps(through)).transform(X)
    np.testing.assert_array_equal(again.covariances.values, image.covariances.values)
    assert clone(through).fit(X).transform(X).mean.tolist() == image.mean.tolist()


def test_scalers_of_points_refuse_gaussians_and_name_what_takes_them(data):
    X, y = data
    for step in (StandardScaler(), PCA(2)):
        with pytest.raises(TypeError, match="UncertainStandardScaler or Propagate"):
            make_pipeline(step, UncertainSVC()).fit(X, y)
