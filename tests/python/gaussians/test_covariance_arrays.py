"""Arrays as users have them: used in place, converted once, or refused by name."""

import pickle
import tracemalloc

import numpy as np
import pytest

from halosvm import Covariances

DTYPES = [np.float32, np.float64]

# ---- in place ----------------------------------------------------------------------------------

IN_PLACE = [
    ("isotropic", (6,), lambda a: Covariances.isotropic(a, 4)),
    ("diagonal", (6, 4), Covariances.diagonal),
    ("from_std 1-d", (6,), lambda a: Covariances.from_std(a, 4)),
    ("from_std 2-d", (6, 4), Covariances.from_std),
    ("from_variance", (6, 4), Covariances.from_variance),
    ("low_rank", (6, 4, 2), Covariances.low_rank),
    ("full", (6, 3, 3), Covariances.full),
]
in_place = pytest.mark.parametrize(
    ("shape", "construct"), [case[1:] for case in IN_PLACE], ids=[case[0] for case in IN_PLACE]
)


def positive(shape, dtype):
    """Values that every constructor takes: all ones is positive semi-definite, too."""
    return np.ones(shape, dtype)


@in_place
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("read_only", [False, True])
def test_contiguous_arrays_are_used_in_place(shape, construct, dtype, read_only):
    array = positive(shape, dtype)
    array.flags.writeable = not read_only
    batch = construct(array)
    assert batch.values.dtype == dtype
    assert batch.values.shape == shape
    assert np.shares_memory(batch.values, array)
    assert array.flags.writeable != read_only  # ours is a view; the caller's array stays as it was


@in_place
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_maps_are_used_in_place(shape, construct, dtype, tmp_path):
    np.save(tmp_path / "values.npy", positive(shape, dtype))
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    batch = construct(mapped)
    assert np.shares_memory(batch.values, mapped)
    assert batch[2:4].values.base is not None


def unpickled(array):
    return pickle.loads(pickle.dumps(array))


def tagged(array):
    return array.view(np.dtype(array.dtype, metadata={"unit": "mm"}))


@in_place
@pytest.mark.parametrize("disguise", [unpickled, tagged])
def test_equal_dtypes_that_are_not_the_same_object_are_used_in_place(shape, construct, disguise):
    array = disguise(positive(shape, np.float64))
    batch = construct(array)
    assert batch.values.dtype is np.dtype(np.float64)
    np.testing.assert_array_equal(batch.values, positive(shape, np.float64))


def strided(array):
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def unaligned(array):
    buffer = np.zeros(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "unaligned": unaligned,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "int": lambda a: a.astype(np.int64),
    "uint8": lambda a: a.astype(np.uint8),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "list": lambda a: a.tolist(),
    "unmasked": np.ma.array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_layouts_are_converted_once(layout, dtype):
    values = np.random.default_rng(0).integers(0, 9, (5, 3)).astype(dtype)
    batch = Covariances.diagonal(LAYOUTS[layout](values))
    kept = {"fortran", "strided", "reversed", "unaligned", "big-endian", "unmasked"}
    assert batch.values.dtype is np.dtype(dtype if layout in kept else np.float64)
    assert batch.values.flags.c_contiguous
    assert batch.values.flags.aligned
    np.testing.assert_array_equal(batch.values, values)
    batch.core_view()


def test_construction_and_slicing_allocate_no_memory_of_the_size_of_the_data():
    std = np.ones((20_000, 50))
    Covariances.from_std(std[:10]).core_view()  # whatever is allocated once
    tracemalloc.start()
    try:
        batch = Covariances.from_std(std)
        batch[5000:15000].core_view()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < std.nbytes / 100


# ---- values refused ---------------------------------------------------------------------------

BAD_VALUES = [-0.5, np.nan, np.inf, -np.inf, 1e200]


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bad_spreads_are_named_with_argument_row_column_and_value(value, dtype):
    if dtype == np.float32 and value == 1e200:
        value = np.inf
    table = np.ones((9, 4), dtype)
    table[7, 2] = value
    shown = str(value).replace("+", r"\+")
    for construct, argument in (
        (Covariances.diagonal, "variances"),
        (Covariances.from_std, "std"),
        (Covariances.from_variance, "variance"),
        (lambda a: Covariances.from_std(a, argument="X_std"), "X_std"),
        (lambda a: Covariances.from_variance(a, argument="X_cov"), "X_cov"),
        (lambda a: Covariances.low_rank(np.ones((9, 4, 1)), a), "diagonal"),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}:? row 7, column 2 is {shown}"):
            construct(table)
    for construct, argument in (
        (lambda a: Covariances.isotropic(a, 3), "variance"),
        (lambda a: Covariances.isotropic(a, 3, argument="spread"), "spread"),
        (lambda a: Covariances.from_std(a, 3), "std"),
        (lambda a: Covariances.from_variance(a, 3), "variance"),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}:? row 7(, column 0)? is {shown}"):
            construct(table[:, 2].copy())


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_bad_factors_and_matrices_are_named_with_row_and_value(value):
    shown = str(value).replace("+", r"\+")
    factors = np.ones((5, 3, 2))
    factors[3, 1, 1] = value
    with pytest.raises(ValueError, match=rf"^factors:? row 3\b.* is {shown}"):
        Covariances.low_rank(factors)
    for listed in (list(factors), [*factors, np.ones((3, 1))]):
        with pytest.raises(ValueError, match=rf"^factors\[3\] row 1, column 1 is {shown}"):
            Covariances.low_rank(listed)
    matrices = np.ones((5, 3, 3))
    matrices[3, 1, 2] = matrices[3, 2, 1] = value
    with pytest.raises(ValueError, match=rf"^covariances:? row 3\b.* is {shown}"):
        Covariances.full(matrices)


@pytest.mark.parametrize("dtype", DTYPES)
def test_asymmetric_and_indefinite_matrices_are_named_with_row_and_value(dtype):
    matrices = np.array([np.eye(2)] * 4, dtype)
    matrices[2, 0, 1] = 0.25
    with pytest.raises(ValueError, match=r"^covariances:? row 2 .*symmetric.*0\.25"):
        Covariances.full(matrices)
    matrices[2] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match=r"^X_cov:? row 2 .*-1"):
        Covariances.full(matrices, argument="X_cov")


def test_matrices_within_rounding_of_semi_definite_are_accepted():
    singular = np.array([[[1.0, 1.0 + 1e-12], [1.0, 1.0]]])
    np.testing.assert_array_equal(Covariances.full(singular).to_full(), singular)


@pytest.mark.parametrize(
    ("inverse", "message"),
    [
        (
            [[1.0, 0.0]],
            "row 0, column 1 is 0; it must be > 0, and its inverse, the variance, at most",
        ),
        ([[1.0, 1.0], [-2.0, 1.0]], "row 1, column 0 is -2;"),
        ([[np.nan, 1.0]], "row 0, column 0 is nan"),
        ([[1.0, -np.inf]], "row 0, column 1 is -inf"),
        ([[1e-200, 1.0]], "row 0, column 0 is 1e-200"),
        (np.array([[1e-44, 1.0]], np.float32), "row 0, column 0 is 9.80909e-45"),
        ([1.0, -0.0], "row 1 is -0;"),
    ],
)
def test_inverse_variances_without_a_finite_variance_are_named(inverse, message):
    with pytest.raises(ValueError, match=f"^inverse_variance: {message}"):
        Covariances.from_inverse_variance(inverse, 2)


@pytest.mark.parametrize(
    ("correlation", "message"),
    [
        ([[1.0, 0.2], [0.2, 0.9]], r"correlation: row 0, column 1 is 0\.9; the diagonal must be 1"),
        (
            [[1.0, 1.5], [1.5, 1.0]],
            r"correlation: row 0, entry \(0, 1\) is 1\.5; it must be between",
        ),
        ([[1.0, np.nan], [0.2, 1.0]], r"correlation: row 0, entry \(0, 1\) is nan"),
        ([[1.0, 0.2], [0.3, 1.0]], "correlation:? row 0 .*symmetric"),
        ([[1.0, 0.2, 0.1]], r"correlation has shape \(1, 1, 3\), expected \(1, 2, 2\)"),
        (np.ones((2, 2, 2)), r"correlation has shape \(2, 2, 2\), expected \(3, 2, 2\)"),
    ],
)
def test_impossible_correlations_are_named(correlation, message):
    with pytest.raises(ValueError, match=message):
        Covariances.from_correlation(correlation, np.ones((3, 2)))


def test_indefinite_correlation_is_named_with_its_row():
    impossible = [[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]
    with pytest.raises(ValueError, match=r"^correlation:? row 1 .*-0\.8"):
        Covariances.from_correlation([np.eye(3), impossible], np.ones((2, 3)))


def test_std_of_a_correlation_is_checked():
    with pytest.raises(ValueError, match=r"^std:? row 1, column 0 is -1"):
        Covariances.from_correlation(np.eye(2), [[1.0, 1.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "samples is empty"),
        ([np.ones((3, 2)), np.ones((1, 2))], r"samples\[1\] holds 1 observation"),
        ([np.ones((3, 2)), np.ones((0, 2))], r"samples\[1\] holds 0 observation"),
        ([np.ones((3, 2)), np.ones((3, 4))], r"samples\[1\] has shape \(3, 4\), expected .*2\)"),
        ([np.ones(3)], r"samples\[0\] has shape \(3,\)"),
        ([np.ones((3, 0))], "at least one feature"),
        ([[[1.0], [np.nan]]], r"samples\[0\] row 1, column 0 is nan"),
        ([[[1.0], [1e200]]], r"samples\[0\] row 1, column 0 is 1e\+200"),
        ([[[0.0], [1e100]]], r"samples:? row 0"),
    ],
)
def test_bags_without_a_covariance_are_named(samples, message):
    with pytest.raises(ValueError, match=message):
        Covariances.from_samples(samples)


def test_unknown_kind_of_sample_covariance_is_refused():
    with pytest.raises(ValueError, match="'full', 'diagonal' or 'low_rank', got 'zero'"):
        Covariances.from_samples([np.ones((2, 2))], kind="zero")


# ---- types and shapes refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "message"),
    [
        (lambda: Covariances.isotropic(np.ones((3, 2)), 2), r"variance has shape \(3, 2\)"),
        (lambda: Covariances.isotropic(np.float64(1), 2), r"variance has shape \(\)"),
        (lambda: Covariances.isotropic(np.ones(3), 0), "n_features must be at least 1, got 0"),
        (
            lambda: Covariances.diagonal(np.ones(3)),
            r"variances has shape \(3,\), expected \(n_samp",
        ),
        (lambda: Covariances.diagonal(np.ones((3, 0))), "at least one feature"),
        (lambda: Covariances.from_std(np.ones(3)), "std is 1-d, which needs n_features"),
        (lambda: Covariances.from_std(np.ones((3, 2)), 4), r"std has shape \(3, 2\), .* 4\)"),
        (lambda: Covariances.from_std(np.ones((3, 2, 2))), r"std has shape \(3, 2, 2\)"),
        (lambda: Covariances.full(np.ones((3, 3))), r"covariances has shape \(3, 3\)"),
        (lambda: Covariances.full(np.ones((3, 2, 4))), r"covariances has shape \(3, 2, 4\)"),
        (lambda: Covariances.low_rank(np.ones((3, 2))), r"factors has shape \(3, 2\)|factors\[0\]"),
        (lambda: Covariances.low_rank([]), r"factors has shape \(0,\)"),
        (lambda: Covariances.low_rank([np.ones((2, 1)), np.ones(2)]), r"factors\[1\] has shape"),
        (
            lambda: Covariances.low_rank([np.ones((2, 1)), np.ones((3, 1))]),
            r"factors\[1\] has shape",
        ),
        (
            lambda: Covariances.low_rank(np.ones((3, 2, 1)), np.ones((3, 4))),
            r"diagonal has shape \(3, 4\), expected \(3, 2\)",
        ),
        (lambda: Covariances.zero(-1, 2), "n_samples must be at least 0, got -1"),
        (lambda: Covariances.zero(1, 0), "n_features must be at least 1, got 0"),
    ],
)
def test_wrong_shapes_are_named(construct, message):
    with pytest.raises(ValueError, match=message):
        construct()


@pytest.mark.parametrize("count", [1.5, "3", None])
def test_counts_must_be_integers(count):
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        Covariances.zero(count, 2)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2), complex), "variances has dtype complex128; real numbers are needed"),
        (np.array([[1.0, {}]]), r"variances: row 0, column 1 is \{\}, which is no number"),
        (np.array([["1", 2.0]], object), "variances: row 0, column 0 is '1', which is text"),
        (np.array([["1", "2"]]), "variances has dtype <U1"),
        (np.zeros((2, 2), "datetime64[s]"), "variances has dtype datetime64"),
        ([[1, None]], "variances: row 0, column 1 is None, which is no number"),
    ],
)
def test_data_that_are_not_real_numbers_are_a_type_error(array, message):
    with pytest.raises(TypeError, match=message):
        Covariances.diagonal(array)


def test_sparse_matrices_are_a_type_error_with_advice():
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(2))
    with pytest.raises(TypeError, match=r"variance is sparse; pass variance.toarray\(\)"):
        Covariances.isotropic(sparse, 2)


def test_ragged_lists_are_an_error_that_names_the_argument():
    with pytest.raises(ValueError, match="variances is not an array of numbers"):
        Covariances.diagonal([[1.0], [1.0, 2.0]])


def test_masked_entries_do_not_pass():
    masked = np.ma.array(np.ones((3, 2)), mask=[[0, 0], [0, 0], [0, 1]])
    for array in (masked, list(masked)):
        with pytest.raises(ValueError, match="variances: row 2, column 1 is masked"):
            Covariances.diagonal(array)
    with pytest.raises(ValueError, match=r"factors\[1\]: row 2, column 1 is masked"):
        Covariances.low_rank([np.ones((3, 2)), masked])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 9, 17, 64, 65])  # eight at a time up to 64
def test_matrix_that_is_not_definite_is_named_wherever_it_stands_among_others(d):
    rng = np.random.default_rng(d)
    Q = np.linalg.qr(rng.normal(size=(21, d, d)))[0]
    spectra = rng.uniform(0.0, 1.0, (21, d)) * (rng.random((21, d)) < 0.8)  # singular ones, too
    good = (Q * spectra[:, np.newaxis]) @ Q.transpose(0, 2, 1)
    good = 0.5 * (good + good.transpose(0, 2, 1))
    Covariances.full(good)
    for row in (0, 7, 8, 20):
        bad = good.copy()
        bad[row] -= 1e-6 * np.eye(d) + np.outer(Q[row, :, 0], Q[row, :, 0]) * spectra[row, 0]
        with pytest.raises(ValueError, match=f"row {row} has the eigenvalue -"):
            Covariances.full(bad)
