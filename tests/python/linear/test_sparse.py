"""Sparse means in the linear machines: the same models as dense ones, and nothing made dense."""

import pickle
import re

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, DTYPES, each
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from halosvm import (
    Covariances,
    Gaussians,
    IsotropicKernelSVC,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
    _core,
    chunks,
    reference,
)


def twins(make_gaussians, kind, *, d=6, **options):
    """Return Gaussians whose means are mostly 0, stored sparsely and densely, and their labels."""
    X, y = make_gaussians(kind, n=90, d=d, gap=3.0, scale=0.5, **options)
    mean = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.6, 0, X.mean)
    mean[:, 0] += 3.0  # a feature that is always there, and not about 0
    dense = X.replaced(mean=mean.astype(X.dtype))
    return dense.replaced(mean=sparse.csr_array(dense.mean)), dense, y


# ---- the same objective and the same models --------------------------------------------------


@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_objective_and_gradient_equal_those_of_dense_means_and_the_reference(
    make_gaussians, kind, dtype
):
    few, dense, y = twins(make_gaussians, kind, dtype=dtype)
    rng = np.random.default_rng(2)
    w, b = rng.normal(size=6), 0.3
    codes = (y > 0).astype(np.int16)
    one, other = (
        _core.Objective(X.core_view(), codes, 1, None, 0.1)(w[None], np.array([b]))
        for X in (few, dense)
    )
    value, grad_w, grad_b = reference.objective_and_gradient(dense, y, w, b, 0.1)
    for at in (one, other):
        np.testing.assert_allclose(at.value, [value], rtol=1e-12)
        np.testing.assert_allclose(at.coef[0], grad_w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(at.intercept, [grad_b], rtol=0, atol=1e-12)


@each("kind", COVARIANCE_KINDS)
def test_hessian_products_and_moments_equal_those_of_dense_means(make_gaussians, kind):
    few, dense, _ = twins(make_gaussians, kind)
    rng = np.random.default_rng(3)
    W, b, V, v0 = (rng.normal(size=shape) for shape in ((3, 6), 3, (3, 6), 3))
    codes = (np.arange(90) % 3).astype(np.int16)
    one, other = (_core.Objective(X.core_view(), codes, 3, None, 0.1) for X in (few, dense))
    for a, c in zip(
        one.hessian_vector(W, b, V, v0), other.hessian_vector(W, b, V, v0), strict=True
    ):
        np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-12)
    for name in ("mean", "centre", "variance"):
        a, c = getattr(one.moments(), name), getattr(other.moments(), name)
        np.testing.assert_allclose(a, c, rtol=1e-12, atol=1e-13)


@each("kind", COVARIANCE_KINDS)
@each("solver", ["auto", "lbfgs"])
def test_sparse_means_have_the_optimum_of_dense_ones(make_gaussians, kind, solver):
    few, dense, y = twins(make_gaussians, kind)
    tol = 1e-9 if solver == "auto" else 1e-5
    one, other = (UncertainSVC(C=0.5, tol=tol, solver=solver).fit(X, y) for X in (few, dense))
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2 * tol)
    np.testing.assert_array_equal(one.decision_std(few), one.decision_std(dense))
    np.testing.assert_allclose(
        one.decision_function(few), one.decision_function(dense), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        one.side_probability(few), one.side_probability(dense), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(one.predict(few), one.predict(dense))
    assert one.score(few, y) == one.score(dense, y)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("hinge", {}),
        ("expected_squared_hinge", {}),
        ("expected_logistic", {}),
        ("marginal_logistic", {}),
        ("expected_huber_hinge", {}),
        ("worst_case", {"norm": np.inf, "radius": 0.3}),
    ],
)
@pytest.mark.parametrize("kind", ["diagonal", "sparse_std", "columns_low_rank"])
def test_every_loss_has_the_optimum_of_dense_means(make_gaussians, kind, loss, options):
    few, dense, y = twins(make_gaussians, kind)
    one, other = (UncertainSVC(loss=loss, tol=1e-8, **options).fit(X, y) for X in (few, dense))
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-8)


@pytest.mark.parametrize("solver", ["sgd", "proximal_sgd"])
@pytest.mark.parametrize(
    "kind", ["diagonal", "zero", "sparse_std", "columns_diagonal", "isotropic"]
)
@pytest.mark.parametrize("d", [6, 400])
def test_stochastic_descent_takes_the_same_steps(make_gaussians, solver, kind, d):
    few, dense, y = twins(make_gaussians, kind, d=d)
    if d > 6:  # so few numbers in a batch that a step changes these columns alone
        mean = np.where(np.random.default_rng(2).uniform(size=few.shape) < 0.01, dense.mean, 0.0)
        few, dense = few.replaced(mean=sparse.csr_array(mean)), dense.replaced(mean=mean)
    options = {"solver": solver, "max_iter": 20, "random_state": 0, "tol": 0.0, "batch_size": 4}
    with pytest.warns(ConvergenceWarning):
        one, other = (UncertainSVC(**options).fit(X, y) for X in (few, dense))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-11)


@each("kind", COVARIANCE_KINDS)
def test_regression_has_the_optimum_of_dense_means(make_gaussians, kind):
    few, dense, y = twins(make_gaussians, kind)
    values = dense.mean @ np.arange(6.0) + 0.1 * y
    one, other = (UncertainSVR(tol=1e-8).fit(X, values, y_std=0.1) for X in (few, dense))
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-8)
    for a, b in zip(
        one.predict(few, return_std=True), one.predict(dense, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_several_classes_and_weights_have_the_optimum_of_dense_means(make_gaussians):
    few, dense, _ = twins(make_gaussians, "columns_diagonal")
    y = np.arange(90) % 3
    weights = np.random.default_rng(0).uniform(size=90)
    one, other = (
        UncertainSVC(tol=1e-8, class_weight="balanced").fit(X, y, sample_weight=weights)
        for X in (few, dense)
    )
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-8)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_a_feature_far_from_the_origin_costs_no_digits(offset):
    rng = np.random.default_rng(4)
    y = np.arange(400) % 2
    mean = np.where(rng.uniform(size=(400, 50)) < 0.9, 0.0, rng.normal(size=(400, 50)))
    mean[:, 7] = offset + y + rng.normal(size=400)
    mean[3, 7] = 0.0  # one that is not stored
    mean = np.round(mean, 3)
    one, other = (
        UncertainSVC(loss="expected_squared_hinge", tol=1e-7).fit(X, y)
        for X in (sparse.csr_array(mean), mean)
    )
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-7)


@pytest.mark.parametrize("kind", ["zero", "sparse_diagonal", "columns_full"])
def test_results_do_not_depend_on_the_number_of_threads(make_gaussians, kind):
    X, y = make_gaussians(kind, n=3000, d=30, gap=3.0, scale=0.3)
    mean = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.8, 0, X.mean)
    few = X.replaced(mean=sparse.csr_array(mean))
    one, other = (UncertainSVC(n_threads=k, tol=1e-4).fit(few, y) for k in (1, 3))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.decision_function(few), other.decision_function(few))


# ---- formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("is_array", [True, False])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_format_of_scipy_gives_the_same_model(make_gaussians, form, is_array, index):
    few, dense, y = twins(make_gaussians, "zero")
    make = getattr(sparse, f"{form}_{'array' if is_array else 'matrix'}")
    X = make(dense.mean)
    for name in ("indices", "indptr"):
        if hasattr(X, name):
            setattr(X, name, getattr(X, name).astype(index))
    std = make(np.sqrt(np.abs(dense.mean)))
    model = UncertainSVC().fit(X, y, X_std=std)
    expected = UncertainSVC().fit(Gaussians(few.mean, std=std.tocsr()), y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(few))


def test_duplicates_zeros_and_unsorted_columns_mean_what_they_mean_in_scipy():
    data = np.array([1.0, 2.0, 3.0, 0.0, 5.0, -1.0])
    indices, indptr = np.array([2, 0, 2, 1, 1, 0]), np.array([0, 4, 6])
    X = sparse.csr_array((data, indices, indptr), shape=(2, 3))
    std, before = abs(X.copy()), (X.data.copy(), X.indices.copy())
    read = Gaussians(X, std=std).mean
    np.testing.assert_array_equal(read.toarray(), X.toarray())
    assert read.has_sorted_indices
    np.testing.assert_array_equal(X.data, before[0])  # what was given is as it was
    np.testing.assert_array_equal(X.indices, before[1])


@each("dtype", DTYPES)
@each("index", [np.int32, np.int64])
def test_arrays_are_used_in_place(dtype, index):
    X = sparse.random_array((50, 9), density=0.3, random_state=0, format="csr", dtype=dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    read = Gaussians(X).mean
    for name in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(read, name), getattr(X, name))
        assert not getattr(read, name).flags.writeable
        assert getattr(X, name).flags.writeable


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_a_value_that_is_not_finite_is_named_with_its_place(bad):
    X = sparse.random_array((40, 30), density=0.2, random_state=0, format="csr")
    X.data[57] = bad
    row, column = (int(part[57]) for part in (X.tocoo().row, X.tocoo().col))
    place = re.escape(f"X row {row}, column {column} is {bad:g};")
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match=place):
        UncertainSVC().fit(X, y)
    fine = X.copy()
    fine.data[57] = 1.0
    model = UncertainSVC().fit(fine, y)
    with pytest.raises(ValueError, match=place):
        model.decision_function(X)
    with pytest.raises(ValueError, match=place.replace("X", "mean", 1)):
        Gaussians(X)
    with pytest.raises(ValueError, match=place.replace("X", "X_std", 1)):
        UncertainSVC().fit(fine, y, X_std=X)


def test_complex_numbers_and_wrong_shapes_are_refused():
    X = sparse.eye_array(4, format="csr")
    with pytest.raises(TypeError, match="mean has dtype complex128; real numbers are needed"):
        Gaussians(X.astype(complex))
    with pytest.raises(ValueError, match="X_std has 3 columns, X has 4"):
        UncertainSVC().fit(X, [0, 1, 0, 1], X_std=abs(X[:, :3]))


def test_a_negative_standard_deviation_is_named_with_its_place():
    X = sparse.eye_array(4, format="csr")
    with pytest.raises(ValueError, match="X_std row 0, column 0 is -1; it must be >= 0"):
        UncertainSVC().fit(X, [0, 1, 0, 1], X_std=-X)


# ---- Gaussians -------------------------------------------------------------------------------


@each("kind", COVARIANCE_KINDS)
@each("key", [slice(3, 30), slice(None, None, 7), [5, 2, 2], np.arange(90) % 2 == 0, -1])
def test_selected_rows_equal_those_of_dense_means(make_gaussians, kind, key):
    few, dense, _ = twins(make_gaussians, kind)
    if isinstance(key, int):
        for a, b in zip(few[key], dense[key], strict=True):
            np.testing.assert_array_equal(a, b)
        return
    assert len(few[key]) == len(dense[key])
    np.testing.assert_array_equal(few[key].mean.toarray(), dense[key].mean)
    np.testing.assert_array_equal(few[key].covariances.to_full(), dense[key].covariances.to_full())


@each("kind", COVARIANCE_KINDS)
def test_columns_parts_and_pickles_equal_those_of_dense_means(make_gaussians, kind):
    few, dense, _ = twins(make_gaussians, kind)
    pairs = (
        (few[:, [4, 0]], dense[:, [4, 0]]),
        (pickle.loads(pickle.dumps(few)), dense),
        (
            Gaussians.concatenate([few[50:], few[:50]]),
            Gaussians.concatenate([dense[50:], dense[:50]]),
        ),
        (
            Gaussians.concatenate([few[50:], dense[:50]]),
            Gaussians.concatenate([dense[50:], dense[:50]]),
        ),
        (np.hstack([few[:, :2], few[:, 2:]]), dense),
    )
    for a, b in pairs:
        assert a.is_sparse
        np.testing.assert_array_equal(a.mean.toarray(), b.mean)
        np.testing.assert_allclose(
            a.covariances.to_full(), b.covariances.to_full(), rtol=1e-14, atol=1e-15
        )
        a.core_view().check("X")
    assert "sparse" in repr(few)


# ---- among scikit-learn's tools --------------------------------------------------------------


def test_svmlight_files_go_straight_into_a_fit(tmp_path, make_gaussians):
    few, dense, y = twins(make_gaussians, "zero")
    dump_svmlight_file(few.mean, y, str(tmp_path / "data.svm"))
    X, labels = load_svmlight_file(str(tmp_path / "data.svm"))
    assert sparse.issparse(X)
    model, expected = UncertainSVC().fit(X, labels), UncertainSVC().fit(dense, y)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=2e-6)


def test_searches_and_calibration_take_sparse_examples(make_gaussians):
    few, dense, y = twins(make_gaussians, "sparse_std")
    grid = {"C": [0.1, 1.0]}
    for X in (few, few.mean):
        search = GridSearchCV(UncertainSVC(), grid, cv=3).fit(X, y)
        whole = GridSearchCV(UncertainSVC(), grid, cv=3).fit(dense if X is few else dense.mean, y)
        assert search.best_params_ == whole.best_params_
    np.testing.assert_allclose(
        CalibratedClassifierCV(UncertainSVC(tol=1e-9), cv=3).fit(few, y).predict_proba(few),
        CalibratedClassifierCV(UncertainSVC(tol=1e-9), cv=3).fit(dense, y).predict_proba(dense),
        atol=1e-3,
    )


@each("kind", COVARIANCE_KINDS)
@each("variance", ["means", "total"])
def test_a_scaler_without_mean_keeps_examples_sparse(make_gaussians, kind, variance):
    few, dense, y = twins(make_gaussians, kind)
    one, other = (
        UncertainStandardScaler(with_mean=False, variance=variance).fit(X) for X in (few, dense)
    )
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-10)
    scaled = one.transform(few)
    assert scaled.is_sparse
    np.testing.assert_allclose(scaled.mean.toarray(), other.transform(dense).mean, rtol=1e-10)
    np.testing.assert_allclose(
        scaled.covariances.to_full(),
        other.transform(dense).covariances.to_full(),
        rtol=1e-9,
        atol=1e-12,
    )
    np.testing.assert_allclose(one.inverse_transform(scaled).mean.toarray(), dense.mean, rtol=1e-12)
    alone = UncertainStandardScaler(with_mean=False).fit_transform(few.mean)
    assert sparse.issparse(alone)
    scores = cross_val_score(make_pipeline(one, UncertainSVC()), few, y, cv=3)
    assert np.isfinite(scores).all()


def test_a_scaler_that_centres_refuses_sparse_examples(make_gaussians):
    few, *_ = twins(make_gaussians, "zero")
    for X in (few, few.mean):
        with pytest.raises(ValueError, match=r"X is sparse, .*; pass with_mean=False"):
            UncertainStandardScaler().fit(X)


@pytest.mark.parametrize("machine", [UncertainKernelSVC(), IsotropicKernelSVC()])
def test_kernel_machines_refuse_sparse_examples_in_a_sentence(make_gaussians, machine):
    few, _, y = twins(make_gaussians, "zero")
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        machine.fit(few, y)
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        machine.fit(few.mean, y)


# ---- many features ---------------------------------------------------------------------------


def many_features(n=300, d=20_000):
    rng = np.random.default_rng(5)
    y = np.arange(n) % 2
    X = sparse.random_array((n, d), density=20 / d, random_state=rng, format="csr")
    return X, y


def test_interior_points_say_when_there_are_too_many_features():
    X, y = many_features()
    with pytest.raises(ValueError, match="20000 features of sparse means; interior points"):
        UncertainSVC(solver="interior_point").fit(X, y)


@pytest.mark.parametrize("errors", ["none", "few", "isotropic", "sparse"])
def test_a_fit_needs_no_memory_for_what_is_not_stored(errors):
    n, d = 20_000, 200_000  # 32 GB if they were dense
    X, y = many_features(n, d)
    cov = {
        "none": None,
        "few": Covariances.diagonal(np.full((n, 2), 0.1), columns=[3, d - 1], n_features=d),
        "isotropic": np.full(n, 1e-3),
        "sparse": abs(X),
    }[errors]
    model = UncertainSVC(loss="expected_squared_hinge", tol=1e-2).fit(X, y, X_cov=cov)
    assert model.suboptimality_ <= 1e-2
    assert model.coef_.any()


def test_a_loss_that_moves_means_refuses_sparse_ones(make_gaussians):
    few, _, y = twins(make_gaussians, "diagonal")
    with pytest.raises(
        ValueError,
        match="'best_case', whose solver moves every mean, so that it does not take sparse",
    ):
        UncertainSVC(loss="best_case").fit(few, y)


def test_chunks_streams_and_calibration_take_sparse_examples():
    rng = np.random.default_rng(4)
    X = sparse.random_array((400, 30), density=0.15, format="csr", random_state=rng)
    y = np.asarray(X.sum(axis=1)).ravel() + 0.2 * rng.normal(size=400) > 2.0
    examples = Gaussians(X, variance=0.1 * X)
    whole = UncertainSVC(tol=1e-9).fit(examples, y)
    read = [(examples[i : i + 100], y[i : i + 100]) for i in range(0, 400, 100)]
    parts = UncertainSVC(tol=1e-9).fit(chunks(lambda: iter(read)))
    assert parts.objective_ == pytest.approx(whole.objective_, rel=2e-9)
    dense = Gaussians(X.toarray(), variance=0.1 * X.toarray())
    streams = [UncertainSVC().partial_fit(each, y, [False, True]) for each in (examples, dense)]
    np.testing.assert_allclose(streams[0].coef_, streams[1].coef_, rtol=1e-10)
    probabilities = [
        UncertainCalibratedClassifier(UncertainSVC(tol=1e-9)).fit(each, y).predict_proba(each)
        for each in (examples, dense)
    ]
    np.testing.assert_allclose(*probabilities, atol=1e-5)
