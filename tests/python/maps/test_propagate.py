"""Propagate through affine transformers: A S A' of every kind, and what is not affine refused."""

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import RFE, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from halosvm import EmpiricalBayes, Gaussians, Propagate, UncertainStandardScaler

N, D = 60, 6


def swapped(x):
    """Turn the features round: affine, which nothing can know of a function."""
    return x[:, ::-1] + 1.0


AFFINE = {
    "standard": StandardScaler(),
    "standard, no std": StandardScaler(with_std=False),
    "min max": MinMaxScaler((-1, 2)),
    "max abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust, no scaling": RobustScaler(with_scaling=False),
    "pca": PCA(3),
    "pca, all": PCA(),
    "pca, whitened": PCA(3, whiten=True),
    "incremental pca": IncrementalPCA(2, whiten=True),
    "svd": TruncatedSVD(2, random_state=0),
    "ica": FastICA(2, random_state=0, tol=1e-2, max_iter=1000),
    "discriminants": LinearDiscriminantAnalysis(n_components=1),
    "neighbours": NeighborhoodComponentsAnalysis(2, max_iter=3, random_state=0),
    "k best": SelectKBest(k=2),
    "elimination": RFE(LogisticRegression(), n_features_to_select=3),
    "threshold": VarianceThreshold(0.5),
    "gaussian projection": GaussianRandomProjection(3, random_state=0),
    "sparse projection": SparseRandomProjection(4, random_state=0, dense_output=True),
    "identity": FunctionTransformer(),
    "uncertain scaler": UncertainStandardScaler(),
    "frozen": FrozenEstimator(PCA(2).fit(np.random.default_rng(3).normal(size=(20, D)))),
    "pipeline": make_pipeline(RobustScaler(), "passthrough", PCA(4), MinMaxScaler()),
    "columns": ColumnTransformer(
        [("s", StandardScaler(), [4, 1]), ("p", PCA(1), slice(0, 3)), ("no", "drop", [3])],
        remainder="passthrough",
    ),
    "columns, masked": ColumnTransformer([("m", MaxAbsScaler(), np.arange(D) % 2 == 1)]),
    "union": FeatureUnion(
        [("s", StandardScaler()), ("p", PCA(2)), ("same", "passthrough"), ("no", "drop")],
        transformer_weights={"p": 3.0},
    ),
    "nested": Propagate(FunctionTransformer(swapped), jacobian=np.eye(D)[::-1]),
}


def examples(make_covariances, kind, dtype=np.float64):
    rng = np.random.default_rng(1)
    y = np.arange(N) % 2
    mean = rng.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.0, 3.0, 1.0] + 0.7 * y[:, None] + 2.0
    return Gaussians(mean.astype(dtype), cov=make_covariances(kind, N, D, rng, dtype, 0.3)), y


def matrix_of(transform):
    """Return A of x -> A x + t by what the transformer makes of 0 and the unit vectors."""
    images = transform(np.concatenate([np.zeros((1, D)), np.eye(D)]))
    return (images[1:] - images[0]).T


@each("kind", KINDS)
@each("name", AFFINE)
def test_affine_transformers_map_every_kind_exactly(make_covariances, kind, name):
    X, y = examples(make_covariances, kind)
    through = Propagate(AFFINE[name]).fit(X, y)
    image = through.transform(X)
    np.testing.assert_array_equal(image.mean, through.transformer_.transform(X.mean))
    A = matrix_of(through.transformer_.transform)
    np.testing.assert_allclose(through.known_map_.matrix.toarray(), A, atol=1e-13)
    expected = A @ X.covariances.to_full() @ A.T
    np.testing.assert_allclose(image.covariances.to_full(), expected, atol=1e-12)
    np.testing.assert_array_equal(through.transform(X.mean), image.mean)


@each("kind", KINDS)
@each("k", [1, 3, 6])
def test_principal_components_equal_the_matrix_formula(make_covariances, kind, k):
    X, _ = examples(make_covariances, kind)
    pca = PCA(k).fit(X.mean)
    image = Propagate(PCA(k)).fit_transform(X)
    V = pca.components_
    np.testing.assert_allclose(image.mean, (X.mean - X.mean.mean(axis=0)) @ V.T, atol=1e-12)
    expected = np.array([V @ S @ V.T for S in X.covariances.to_full()])
    np.testing.assert_allclose(image.covariances.to_full(), expected, atol=1e-13)


def test_the_smallest_faithful_kind_is_kept(make_covariances):
    same, scaling, selection = "frozen", "standard", "k best"
    for stored, name, expected in (
        ("isotropic", "pca", "isotropic"),
        ("isotropic", "standard, no std", "isotropic"),
        ("isotropic", selection, "isotropic"),
        ("isotropic", scaling, "diagonal"),
        ("isotropic", "pca, whitened", "diagonal"),
        ("diagonal", scaling, "diagonal"),
        ("diagonal", selection, "diagonal"),
        ("diagonal", "columns, masked", "diagonal"),
        ("diagonal", "pca", "full"),
        ("diagonal", "union", "low_rank"),
        ("low_rank", "pca", "low_rank"),
        ("low_rank", "gaussian projection", "low_rank"),
        ("ragged", "pipeline", "low_rank"),
        ("low_rank_diagonal", scaling, "low_rank"),
        ("full", same, "full"),
        ("zero", "pca", "zero"),
    ):
        X, y = examples(make_covariances, stored)
        image = Propagate(AFFINE[name]).fit(X, y).transform(X)
        assert image.covariances.kind == expected, (stored, name)


@pytest.mark.parametrize("method", ["linear", "unscented", "monte_carlo"])
def test_a_named_approximation_changes_nothing_of_an_affine_map(make_covariances, method):
    X, _ = examples(make_covariances, "full")
    exact = Propagate(PCA(2)).fit_transform(X)
    other = Propagate(PCA(2), method).fit_transform(X)
    np.testing.assert_array_equal(other.covariances.values, exact.covariances.values)


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_the_type_of_numbers_is_kept(make_covariances, kind, dtype):
    X, y = examples(make_covariances, kind, dtype)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    for name in ("standard", "pca", "columns", "k best"):
        through = Propagate(AFFINE[name]).fit(X, y)
        image = through.transform(X)
        assert image.dtype == dtype
        assert image.covariances.certain or image.covariances.dtype == dtype
        A = through.known_map_.matrix.toarray().astype(np.float64)
        expected = A @ X.covariances.to_full() @ A.T
        size = max(np.abs(expected).max(), 1e-3)
        error = np.abs(image.covariances.to_full() - expected).max()
        assert error <= tolerance * size, name


class Doubled(StandardScaler):
    """A scaler that does more than its class says."""

    def transform(self, X):
        return 2.0 * super().transform(X) ** 2


NOT_AFFINE = {
    r"MinMaxScaler\(clip=True\)": MinMaxScaler(clip=True),
    "FunctionTransformer of log": FunctionTransformer(np.log),
    "FunctionTransformer of swapped": FunctionTransformer(swapped),
    "PowerTransformer": PowerTransformer(),
    "Normalizer": make_pipeline(StandardScaler(), Normalizer(), PCA(2)),
    "SplineTransformer": ColumnTransformer(
        [("a", StandardScaler(), [0]), ("b", SplineTransformer(), [1])]
    ),
    "KernelPCA": FeatureUnion([("a", PCA(1)), ("b", KernelPCA(2))]),
    "Doubled": Doubled(),
    "Binarizer": Binarizer(),
}


@pytest.mark.parametrize("words", NOT_AFFINE)
def test_what_is_not_affine_is_refused_by_name_until_an_approximation_is_named(
    make_covariances, words
):
    X, y = examples(make_covariances, "diagonal")
    X = Gaussians(np.abs(X.mean) + 1.0, std=0.01 * X.covariances.variances())
    with pytest.raises(ValueError, match=words + " is not known to be affine.*method='linear'"):
        Propagate(NOT_AFFINE[words]).fit(X, y)
    method = "monte_carlo" if words == "Binarizer" else "linear"
    image = Propagate(NOT_AFFINE[words], method, random_state=0).fit(X, y).transform(X)
    assert not image.covariances.certain


def test_steps_have_no_slopes():
    x = np.arange(20.0).reshape(10, 2)
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    for method in ("linear", "unscented"):
        for transformer in (bins, make_pipeline(Normalizer(), bins)):
            with pytest.raises(ValueError, match="makes steps"):
                Propagate(transformer, method).fit(x)


def test_certain_rows_stay_certain(make_covariances):
    X, y = examples(make_covariances, "half_certain")
    for name in AFFINE:
        image = Propagate(AFFINE[name]).fit(X, y).transform(X)
        assert not image.covariances.variances()[::2].any()


def test_a_transformer_that_is_fitted_and_frozen_stays_as_it_is(make_covariances):
    X, _ = examples(make_covariances, "diagonal")
    pca = PCA(2).fit(X.mean[:20])
    image = Propagate(FrozenEstimator(pca)).fit(X[20:]).transform(X)
    np.testing.assert_array_equal(image.mean, pca.transform(X.mean))
    refitted = Propagate(pca).fit(X[20:]).transformer_
    assert not np.allclose(refitted.components_, pca.components_)


@each("kind", KINDS)
def test_a_given_matrix_is_tried_on_the_means(make_covariances, kind):
    X, _ = examples(make_covariances, kind)
    A = np.eye(D)[::-1]
    image = Propagate(FunctionTransformer(swapped), jacobian=A).fit_transform(X)
    expected = X.covariances.to_full()[:, ::-1, ::-1]
    np.testing.assert_array_equal(image.covariances.to_full(), expected)
    with pytest.raises(ValueError, match="from row 0 to row 1 of X output 0 changes by"):
        Propagate(FunctionTransformer(swapped), jacobian=np.eye(D)).fit(X)
    with pytest.raises(ValueError, match="by jacobian it would by"):
        Propagate(FunctionTransformer(np.square), jacobian=np.eye(D)).fit(X)
    with pytest.raises(ValueError, match=r"jacobian has shape \(5, 6\), expected \(6, 6\)"):
        Propagate(FunctionTransformer(swapped), jacobian=A[1:]).fit(X)


def test_weights_and_labels_reach_the_transformer(make_covariances):
    X, y = examples(make_covariances, "diagonal")
    weights = np.arange(N) % 3
    through = Propagate(StandardScaler()).fit(X, sample_weight=weights)
    expected = StandardScaler().fit(X.mean, sample_weight=weights)
    np.testing.assert_array_equal(through.transformer_.scale_, expected.scale_)
    assert not np.array_equal(expected.scale_, StandardScaler().fit(X.mean).scale_)
    best = Propagate(SelectKBest(k=1)).fit(X, y)
    np.testing.assert_array_equal(
        best.transformer_.get_support(), SelectKBest(k=1).fit(X.mean, y).get_support()
    )


def test_arrays_of_any_layout_are_read_and_never_written_to(tmp_path):
    rng = np.random.default_rng(7)
    x, std = rng.normal(size=(30, D)), rng.uniform(size=(30, D))
    expected = Propagate(PCA(2)).fit_transform(x, X_std=std)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "std.npy", std)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("x", "std")]
    locked = [array.copy() for array in (x, std)]
    for array in locked:
        array.flags.writeable = False
    for a, b in (mapped, locked, (np.asfortranarray(x), np.repeat(std, 2, axis=1)[:, ::2])):
        found = Propagate(PCA(2)).fit_transform(a, X_std=b)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-13)
        np.testing.assert_allclose(found.covariances.values, expected.covariances.values)


def test_units_are_converted_to_those_of_the_fit_and_taken_off():
    u = pytest.importorskip("astropy.units")
    rng = np.random.default_rng(9)
    x, std = rng.normal(size=(20, 2)), rng.uniform(size=(20, 2))
    X = Gaussians(x * u.m, std=std * u.m)
    through = Propagate(PCA(1)).fit(X)
    image = through.transform(Gaussians((x * u.m).to(u.cm), std=(std * u.m).to(u.mm)))
    expected = Propagate(PCA(1)).fit_transform(x, X_std=std)
    assert image.feature_units is None
    np.testing.assert_allclose(image.mean, expected.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(image.covariances.to_full(), expected.covariances.to_full())


def test_sparse_outputs_are_taken_as_dense():
    x = np.random.default_rng(10).integers(0, 3, (30, 2)).astype(float)
    hot = Propagate(OneHotEncoder(handle_unknown="ignore"), "monte_carlo", random_state=0).fit(x)
    assert hot.transform(x).sum(axis=1).tolist() == [2.0] * 30
    assert hot.transform(x, X_std=np.zeros((30, 2))).shape == (30, 6)


def test_bad_input_is_named():
    x = np.arange(6.0).reshape(3, 2) ** 2
    for error, call, message in (
        (ValueError, lambda: Propagate(PCA(1), "exact").fit(x), "method must be one of auto, lin"),
        (TypeError, lambda: Propagate(3.0).fit(x), "transformer must have fit and transform"),
        (TypeError, lambda: Propagate(LogisticRegression()).fit(x), "fit and transform, got Log"),
        (ValueError, lambda: Propagate(PCA(1), n_draws=1).fit(x), "n_draws must be >= 2"),
        (
            ValueError,
            lambda: Propagate(PCA(1), jacobian=np.ones_like).fit(x),
            "jacobian is a function, but method is 'auto'",
        ),
        (
            TypeError,
            lambda: Propagate(EmpiricalBayes(), "linear").fit(x),
            "EmpiricalBayes, which takes Gaussians by itself",
        ),
        (ValueError, lambda: Propagate(PCA(1)).fit(x).transform(x[:, :1]), "1 features, but"),
        (
            ValueError,
            lambda: Propagate(StandardScaler()).fit(1e-152 * x).transform(1e-152 * x, X_std=x),
            "the errors of X, transformed, row 0, column 1",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_pipelines_of_unknown_steps_are_unknown():
    steps = Pipeline([("a", FunctionTransformer(swapped)), ("b", PCA(1)), ("c", StandardScaler())])
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert Propagate(steps, "linear").fit(x).known_map_.matrix is None
    logs = make_pipeline(MinMaxScaler((1, 2)), FunctionTransformer(np.log), StandardScaler())
    known = Propagate(logs, "linear").fit(x).known_map_
    assert known.matrix is None
    assert known.inputs.tolist() == [0, 1, 2]
