"""Shapes, types and memory layouts of arrays never change a fit: property tests."""

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from halosvm import Covariances, Gaussians, UncertainSVC


def fit(X, y, solver="auto", **data):
    options = {"C": 1.0, "tol": 0.0, "max_iter": 3, "batch_size": 4, "random_state": 0}
    clf = UncertainSVC(**options, solver=solver, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y, **data)


def assert_equal_bits(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.classes_, other.classes_)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    """Return the same numbers with gaps between them in every direction."""
    wide = np.full(
        tuple(2 * size for size in array.shape), np.nan if array.dtype.kind == "f" else 1
    )
    wide = wide.astype(array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def reversed_view(array):
    turned = tuple(slice(None, None, -1) for _ in array.shape)
    return array[turned].copy()[turned]


def misaligned(array):
    raw = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
    return raw.view(array.dtype).reshape(array.shape)


def memory_mapped(array):
    file, name = tempfile.mkstemp()
    os.write(file, array.tobytes())
    os.close(file)
    mapped = np.memmap(name, array.dtype, "r", shape=array.shape)
    Path(name).unlink()  # the mapping keeps the data
    return mapped


def broadcast_rows(array):
    """Return the same numbers as a view without a row stride; only for rows that are all equal."""
    return np.broadcast_to(array[:1], array.shape)


LAYOUTS = {
    "C order": np.array,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed": reversed_view,
    "read-only": read_only,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "misaligned": misaligned,
    "memory-mapped": memory_mapped,
    "list": lambda a: a.tolist(),
    "subclass": lambda a: a.view(np.recarray),
}
layouts = st.sampled_from(sorted(LAYOUTS))
seeds = st.integers(0, 2**32 - 1)
# One feature, two rows and more features than rows are all among these.
rows, columns = st.integers(2, 12), st.integers(1, 6)
solvers = st.sampled_from(["lbfgs", "interior_point", "sgd"])
KINDS = ("std", "isotropic", "diagonal", "full", "low_rank", "low_rank_diagonal")


def random_data(n, d, seed, dtype):
    """Return means, labels of two or three classes, and errors of every kind."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % min(n, 2 + seed % 2)
    factors = rng.normal(size=(n, d, 2)).astype(dtype)
    full = factors.astype(float) @ factors.astype(float).transpose(0, 2, 1)
    errors = {
        "std": rng.uniform(0.1, 1, (n, d)),
        "isotropic": rng.uniform(0.1, 1, n),
        "diagonal": rng.uniform(0.1, 1, (n, d)),
        "full": full + 0.01 * np.eye(d),
        "low_rank": factors,
        "low_rank_diagonal": rng.uniform(0.1, 1, (n, d)),
    }
    errors = {kind: array.astype(dtype) for kind, array in errors.items()}
    return rng.normal(size=(n, d)).astype(dtype), y, errors


def covariances(kind, errors, layout, n_features):
    """Return the covariances of a kind, made of arrays of a layout."""
    if kind == "std":
        return Covariances.from_std(layout(errors["std"]))
    if kind == "isotropic":
        return Covariances.isotropic(layout(errors["isotropic"]), n_features)
    if kind == "low_rank":
        return Covariances.low_rank(layout(errors["low_rank"]))
    if kind == "low_rank_diagonal":
        return Covariances.low_rank(layout(errors["low_rank"]), layout(errors[kind]))
    return getattr(Covariances, kind)(layout(errors[kind]))


@settings(max_examples=100)
@given(
    n=rows,
    d=columns,
    seed=seeds,
    kind=st.sampled_from(KINDS),
    dtype=st.sampled_from([np.float64, np.float32]),
    of_means=layouts,
    of_errors=layouts,
    solver=solvers,
)
def test_layout_of_means_and_covariances_does_not_matter(
    n, d, seed, kind, dtype, of_means, of_errors, solver
):
    # A list holds Python floats, which are read as float64, as are big-endian means of 4 bytes: the
    # same numbers, other storage, and sums in another order.
    X, y, errors = random_data(n, d, seed, dtype)
    expected = fit(X, y, solver, X_cov=covariances(kind, errors, np.array, d))
    cov = covariances(kind, errors, LAYOUTS[of_errors], d)
    clf = fit(LAYOUTS[of_means](X), y, solver, X_cov=cov)
    if dtype == np.float32 and ("list" in (of_means, of_errors) or of_means == "big-endian"):
        np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(clf.intercept_, expected.intercept_, rtol=1e-6, atol=1e-9)
    else:
        assert_equal_bits(clf, expected)


@settings(max_examples=60)
@given(n=rows, d=columns, seed=seeds, of_means=layouts, of_errors=layouts, by_rows=st.booleans())
def test_layout_of_arrays_given_as_keywords_does_not_matter(
    n, d, seed, of_means, of_errors, by_rows
):
    assume(not (by_rows and n == d > 1))  # a 1-d array of that length would be open to two readings
    X, y, errors = random_data(n, d, seed, np.float64)
    std = errors["isotropic" if by_rows else "std"]
    expected = fit(X, y, X_std=std)
    assert_equal_bits(fit(LAYOUTS[of_means](X), y, X_std=LAYOUTS[of_errors](std)), expected)
    full = LAYOUTS[of_errors](errors["full"])
    assert_equal_bits(fit(LAYOUTS[of_means](X), y, X_cov=full), fit(X, y, X_cov=errors["full"]))


@settings(max_examples=40)
@given(n=rows, d=columns, seed=seeds, of_labels=layouts, of_weights=layouts, solver=solvers)
def test_layout_of_labels_and_weights_does_not_matter(n, d, seed, of_labels, of_weights, solver):
    X, y, errors = random_data(n, d, seed, np.float64)
    weights = np.random.default_rng(seed).uniform(0.1, 1, n)
    expected = fit(X, y, solver, X_std=errors["std"], sample_weight=weights)
    clf = fit(
        X,
        LAYOUTS[of_labels](y),
        solver,
        X_std=errors["std"],
        sample_weight=LAYOUTS[of_weights](weights),
    )
    assert_equal_bits(clf, expected)


@settings(max_examples=40)
@given(
    n=rows,
    d=columns,
    seed=seeds,
    type_name=st.sampled_from(["i1", "u1", "i2", ">i4", "i8", "u8", "?", "f2", "f4", "f8", "g"]),
)
def test_numbers_of_any_type_are_the_same_numbers(n, d, seed, type_name):
    rng = np.random.default_rng(seed)
    low, high = (0, 2) if type_name == "?" else (0, 100)
    X, std = rng.integers(low, high, (n, d)), rng.integers(low, high, (n, d))
    y = np.arange(n) % 2
    expected = fit(X.astype(float), y, X_std=std.astype(float))
    clf = fit(X.astype(type_name), y, X_std=std.astype(type_name))
    # float32 storage is converted block by block, where sums may be formed in another order.
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.intercept_, expected.intercept_, rtol=1e-6, atol=1e-9)


@settings(max_examples=40)
@given(n=rows, d=columns, seed=seeds, kind=st.sampled_from(KINDS), layout=layouts)
def test_layout_of_data_does_not_matter_at_prediction(n, d, seed, kind, layout):
    X, y, errors = random_data(n, d, seed, np.float64)
    clf = fit(X, y)
    points = LAYOUTS[layout](X)
    cov = covariances(kind, errors, LAYOUTS[layout], d)
    clean = covariances(kind, errors, np.array, d)
    np.testing.assert_array_equal(clf.predict(points), clf.predict(X))
    np.testing.assert_array_equal(clf.decision_function(points), clf.decision_function(X))
    np.testing.assert_array_equal(
        clf.decision_std(points, X_cov=cov), clf.decision_std(X, X_cov=clean)
    )
    np.testing.assert_array_equal(
        clf.side_probability(Gaussians(points, cov=cov)), clf.side_probability(X, X_cov=clean)
    )


@settings(max_examples=40)
@given(n=rows, d=columns, seed=seeds, dtype=st.sampled_from([np.float64, np.float32]))
def test_covariance_given_once_for_all_rows_is_read_as_a_view(n, d, seed, dtype):
    X, y, errors = random_data(n, d, seed, dtype)
    for make, array in (
        (Covariances.from_std, errors["std"]),
        (Covariances.diagonal, errors["diagonal"]),
        (Covariances.full, errors["full"]),
    ):
        same = np.repeat(array[:1], n, axis=0)
        assert_equal_bits(fit(X, y, X_cov=make(broadcast_rows(same))), fit(X, y, X_cov=make(same)))


@settings(max_examples=40)
@given(n=rows, d=columns, seed=seeds, kind=st.sampled_from(KINDS))
def test_float32_is_read_as_the_numbers_it_holds(n, d, seed, kind):
    X, y, errors = random_data(n, d, seed, np.float32)
    double = {name: array.astype(float) for name, array in errors.items()}
    clf = fit(X, y, X_cov=covariances(kind, errors, np.array, d))
    expected = fit(X.astype(float), y, X_cov=covariances(kind, double, np.array, d))
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.intercept_, expected.intercept_, rtol=1e-6, atol=1e-9)


@settings(max_examples=40)
@given(n=rows, d=columns, seed=seeds, kind=st.sampled_from([k for k in KINDS if k != "low_rank"]))
def test_order_of_examples_does_not_matter(n, d, seed, kind):
    X, y, errors = random_data(n, d, seed, np.float64)
    order = np.random.default_rng(seed).permutation(n)
    cov = covariances(kind, errors, np.array, d)
    models = []
    for rows_ in (slice(None), order):
        # w = 0 may be the optimum, which a warning tells.
        clf = UncertainSVC(C=1.0, tol=1e-9, n_threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(clf.fit(X[rows_], y[rows_], X_cov=cov[rows_]))
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-8)
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rows_ in (slice(None), order):
            options = {"C": 1.0, "tol": 0.0, "max_iter": 20, "batch_size": 100}
            clf = UncertainSVC(**options, solver="sgd", averaging="none")
            models.append(clf.fit(X[rows_], y[rows_], X_cov=cov[rows_]))
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-8, atol=1e-10)
