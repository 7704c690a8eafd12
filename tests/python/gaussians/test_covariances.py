"""Covariances: every kind against dense matrices that NumPy makes.

Stored numbers are small multiples of 1/4, so that squares, products and sums are exact in float32
and the expected matrices can be compared without a tolerance.
"""

import copy
import io
import pickle
from itertools import pairwise

import joblib
import numpy as np
import pytest
from cases import each, in_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from halosvm import Covariances
from halosvm.gaussians.covariance_kinds import storage_of

DTYPES = [np.float32, np.float64]
KINDS = [
    "zero",
    "isotropic",
    "isotropic_std",
    "diagonal",
    "diagonal_std",
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
]


def quarters(rng, shape, low=0, dtype=np.float64):
    return (rng.integers(4 * low, 13, shape) / 4).astype(dtype)


def dense_of(factors, diagonal=None):
    """F F' + diag, one example at a time."""
    matrices = [np.asarray(f, np.float64) @ np.asarray(f, np.float64).T for f in factors]
    if diagonal is not None:
        matrices = [
            m + np.diag(v.astype(np.float64)) for m, v in zip(matrices, diagonal, strict=True)
        ]
    return np.array(matrices)


def make(kind, n=5, d=3, dtype=np.float64, seed=0):
    """Return a batch of some kind and its dense matrices, which owe nothing to the batch."""
    rng = np.random.default_rng(seed)
    eye = np.eye(d)
    if kind == "zero":
        return Covariances.zero(n, d), np.zeros((n, d, d))
    if kind == "isotropic":
        variance = quarters(rng, n, dtype=dtype)
        return Covariances.isotropic(variance, d), variance.astype(float)[:, None, None] * eye
    if kind == "isotropic_std":
        std = quarters(rng, n, dtype=dtype)
        return Covariances.from_std(std, d), (std.astype(float) ** 2)[:, None, None] * eye
    if kind == "diagonal":
        variances = quarters(rng, (n, d), dtype=dtype)
        return Covariances.diagonal(variances), variances.astype(float)[:, :, None] * eye
    if kind == "diagonal_std":
        std = quarters(rng, (n, d), dtype=dtype)
        return Covariances.from_std(std), (std.astype(float) ** 2)[:, :, None] * eye
    if kind == "full":
        matrices = dense_of(quarters(rng, (n, d, d), -3))
        return Covariances.full(matrices.astype(dtype)), matrices
    added = quarters(rng, (n, d), dtype=dtype) if kind.endswith("_diagonal") else None
    if kind.startswith("ragged"):
        factors = [quarters(rng, (d, rank), -3, dtype) for rank in rng.permutation(n) % 4]
        return Covariances.low_rank(factors, added), dense_of(factors, added)
    factors = quarters(rng, (n, d, 2), -3, dtype)
    return Covariances.low_rank(factors, added), dense_of(factors, added)


# ---- constructors and attributes -------------------------------------------------------------


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each("n, d", [(5, 3), (1, 1), (1, 4), (4, 4), (6, 1)])
def test_every_kind_equals_its_dense_matrices(kind, n, d, dtype):
    batch, dense = make(kind, n, d, dtype)
    assert len(batch) == batch.n_samples == n
    assert batch.shape == (n, d)
    assert batch.n_features == d
    full = batch.to_full()
    assert full.dtype == batch.variances().dtype == batch.trace().dtype == np.float64
    np.testing.assert_array_equal(full, dense)
    np.testing.assert_array_equal(batch.variances(), np.diagonal(dense, axis1=1, axis2=2))
    np.testing.assert_array_equal(batch.trace(), np.trace(dense, axis1=1, axis2=2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_stored_values_keep_their_dtype_and_are_read_only(kind, dtype):
    batch, _ = make(kind, dtype=dtype)
    assert batch.dtype == batch.values.dtype == dtype
    for array in (batch.values, batch.offsets, batch.diagonal_values):
        assert array is None or not array.flags.writeable


@pytest.mark.parametrize(
    ("kind", "stored", "squared", "shape"),
    [
        ("isotropic", "isotropic", False, (5,)),
        ("isotropic_std", "isotropic", True, (5,)),
        ("diagonal", "diagonal", False, (5, 3)),
        ("diagonal_std", "diagonal", True, (5, 3)),
        ("low_rank", "low_rank", False, (5, 3, 2)),
        ("ragged", "low_rank", False, (3 * (0 + 1 + 2 + 3 + 0),)),
        ("full", "full", False, (5, 3, 3)),
    ],
)
def test_each_kind_stores_no_more_than_it_needs(kind, stored, squared, shape):
    batch, _ = make(kind)
    assert (batch.kind, batch.squared, batch.values.shape) == (stored, squared, shape)
    assert batch.diagonal_values is None


def test_zero_stores_nothing():
    batch = Covariances.zero(7, 2)
    assert (batch.kind, batch.values, batch.dtype) == ("zero", None, np.float64)
    assert Covariances.zero(0, 2).to_full().shape == (0, 2, 2)


def test_ragged_factors_lie_end_to_end():
    first, second, third = np.ones((2, 1)), np.zeros((2, 0)), np.array([[1.0, 2.0], [3.0, 4.0]])
    batch = Covariances.low_rank([first, second, third])
    assert batch.offsets.dtype == np.int64
    np.testing.assert_array_equal(batch.offsets, [0, 1, 1, 3])
    np.testing.assert_array_equal(batch.values, [1, 1, 1, 2, 3, 4])


def test_factors_of_one_rank_are_stored_without_offsets():
    factors = [np.ones((2, 1)), 2 * np.ones((2, 1))]
    batch = Covariances.low_rank(factors)
    assert batch.offsets is None
    np.testing.assert_array_equal(batch.values, np.stack(factors))


def test_low_rank_of_rank_zero_is_zero():
    for factors in (np.zeros((3, 2, 0)), [np.zeros((2, 0))] * 3):
        np.testing.assert_array_equal(Covariances.low_rank(factors).to_full(), np.zeros((3, 2, 2)))


def test_low_rank_accepts_an_object_array_of_factors():
    factors = np.empty(2, dtype=object)
    factors[:] = [np.ones((2, 1)), np.ones((2, 3))]
    np.testing.assert_array_equal(
        Covariances.low_rank(factors).to_full(), [np.ones((2, 2)), np.full((2, 2), 3.0)]
    )


def test_low_rank_keeps_each_of_two_dtypes_in_place():
    factors, added = np.ones((2, 3, 1), np.float32), np.full((2, 3), 0.1)
    batch = Covariances.low_rank(factors, added)
    assert np.shares_memory(batch.values, factors)
    assert np.shares_memory(batch.diagonal_values, added)
    np.testing.assert_array_equal(
        batch.to_full(), np.ones((3, 3)) + 0.1 * np.eye(3) * np.ones((2, 1, 1))
    )


def test_from_variance_reads_the_dimensions():
    flat, table = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    assert Covariances.from_variance(flat, 3).kind == "isotropic"
    assert (
        Covariances.from_variance(table).kind
        == Covariances.from_variance(table, 2).kind
        == "diagonal"
    )
    np.testing.assert_array_equal(Covariances.from_variance(table).variances(), table)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_variances_give_their_reciprocals_and_infinity_means_certain(dtype):
    inverse = np.array([[4.0, 0.5], [np.inf, 1.0]], dtype)
    batch = Covariances.from_inverse_variance(inverse)
    assert batch.dtype == dtype
    np.testing.assert_array_equal(batch.variances(), [[0.25, 2.0], [0.0, 1.0]])
    flat = Covariances.from_inverse_variance(inverse[:, 0], n_features=2)
    np.testing.assert_array_equal(flat.variances(), [[0.25, 0.25], [0.0, 0.0]])


@pytest.mark.parametrize("shared", [True, False])
def test_correlation_and_std_give_the_covariance(shared):
    rng = np.random.default_rng(1)
    std = rng.random((4, 3))
    correlation = np.array([np.corrcoef(rng.normal(size=(3, 20))) for _ in std])
    correlation = (correlation + correlation.transpose(0, 2, 1)) / 2
    each = np.broadcast_to(correlation[0], correlation.shape) if shared else correlation
    batch = Covariances.from_correlation(correlation[0] if shared else correlation, std)
    expected = [np.diag(s) @ r @ np.diag(s) for s, r in zip(std, each, strict=True)]
    np.testing.assert_allclose(batch.to_full(), expected, rtol=1e-14)  # three products each
    np.testing.assert_array_equal(batch.to_full(), batch.to_full().transpose(0, 2, 1))


def test_product_of_large_float32_deviations_does_not_overflow():
    batch = Covariances.from_correlation(np.eye(2), np.full((1, 2), 1e25, np.float32))
    np.testing.assert_array_equal(batch.variances(), np.full((1, 2), float(np.float32(1e25)) ** 2))


@pytest.mark.parametrize("kind", ["full", "diagonal", "low_rank"])
def test_samples_give_the_unbiased_covariance(kind):
    rng = np.random.default_rng(2)
    bags = [rng.normal(size=(size, 4)) for size in (2, 3, 50)]
    batch = Covariances.from_samples(bags, kind)
    expected = np.array([np.cov(bag, rowvar=False) for bag in bags])
    if kind == "diagonal":
        expected = expected * np.eye(4)
    assert batch.kind == kind
    np.testing.assert_allclose(batch.to_full(), expected, rtol=1e-12, atol=1e-14)


def test_sample_factors_have_the_rank_of_the_centred_observations():
    rng = np.random.default_rng(3)
    line = np.outer(np.arange(5.0), [1.0, 2.0, 3.0])
    bags = [rng.normal(size=(2, 3)), rng.normal(size=(9, 3)), line, np.full((4, 3), 0.1)]
    batch = Covariances.from_samples(bags, "low_rank")
    np.testing.assert_array_equal(np.diff(batch.offsets), [1, 3, 1, 0])


def test_samples_may_be_any_iterable():
    bags = np.array([[[0.0], [2.0]], [[1.0], [1.0]]])
    np.testing.assert_array_equal(
        Covariances.from_samples(iter(bags)).to_full().ravel(), [2.0, 0.0]
    )


def test_trace_of_isotropic_covariances_expands_nothing():
    huge = Covariances.isotropic([0.5, 2.0], 10**15)  # whose diagonals no machine could hold
    np.testing.assert_array_equal(huge.trace(), [0.5e15, 2e15])


def test_class_is_not_called_directly():
    with pytest.raises(TypeError, match="from_std"):
        Covariances()


def test_batch_is_immutable():
    batch, _ = make("diagonal")
    with pytest.raises(AttributeError, match="immutable: values"):
        batch.values = None
    with pytest.raises(ValueError, match="read-only"):
        batch.values[0, 0] = -1.0


def test_conversion_to_an_array_needs_a_choice():
    batch, _ = make("diagonal")
    with pytest.raises(TypeError, match=r"\.to_full\(\)"):
        np.asarray(batch)


def test_repr_tells_kind_and_size():
    assert repr(Covariances.diagonal(np.ones((2, 3), np.float32))) == (
        "Covariances(kind='diagonal', n_samples=2, n_features=3, dtype=float32)"
    )


# ---- indexing --------------------------------------------------------------------------------

SELECTIONS = [
    slice(None),
    slice(1, 4),
    slice(-3, None),
    slice(4, 1),
    slice(None, None, 2),
    slice(None, None, -1),
    [3, 0, 0, -1],
    [],
    np.array([2, 4], np.uint8),
    np.array([True, False, True, True, False]),
    [False, True, False, False, False],
    np.zeros(5, bool),
    np.int8([-5, 4]),
]


@each("rows", SELECTIONS)
@each("kind", KINDS)
def test_selecting_rows_selects_matrices(kind, rows):
    batch, dense = make(kind)
    expected = dense[np.asarray(rows, dtype=int) if isinstance(rows, list) and not rows else rows]
    for part in (batch[rows], batch[rows, ...], batch[rows, :], batch[(rows,)]):
        assert isinstance(part, Covariances)
        assert (part.kind, part.squared) == (batch.kind, batch.squared)
        assert part.shape == expected.shape[:2]
        np.testing.assert_array_equal(part.to_full(), expected)
        assert part.values is None or part.values.flags.c_contiguous
        if len(part):
            part.core_view().check("part")


@each("kind", KINDS)
@each("row", [0, 4, -1, -5, np.int64(2), np.array(3)])
def test_an_integer_gives_the_dense_matrix(kind, row):
    batch, dense = make(kind)
    np.testing.assert_array_equal(batch[row], dense[row])
    np.testing.assert_array_equal(batch[row, ...], dense[row])


@pytest.mark.parametrize("kind", KINDS)
def test_iteration_visits_each_matrix(kind):
    batch, dense = make(kind)
    np.testing.assert_array_equal(list(batch), dense)


@pytest.mark.parametrize("all_rows", [..., (), (...,), (..., slice(None))])
def test_ellipsis_selects_all_rows(all_rows):
    batch, dense = make("diagonal")
    np.testing.assert_array_equal(batch[all_rows].to_full(), dense)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_slice_is_a_view(kind):
    batch, _ = make(kind)
    part = batch[1:4]
    assert np.shares_memory(part.values, batch.values)
    if batch.diagonal_values is not None:
        assert np.shares_memory(part.diagonal_values, batch.diagonal_values)


@pytest.mark.parametrize("kind", ["ragged", "ragged_diagonal"])
def test_a_selection_of_a_selection_of_ragged_factors_is_right(kind):
    batch, dense = make(kind, n=9)
    np.testing.assert_array_equal(batch[2:8][[4, 1, 1]][1:].to_full(), dense[2:8][[4, 1, 1]][1:])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, "row 5 is out of range for 5 rows"),
        (-6, "row -6 is out of range for 5 rows"),
        ([0, 7], "row 7 is out of range for 5 rows"),
        (np.array([2**64 - 1], np.uint64), "out of range for 5 rows"),
        ([True, False], "mask has 2 entries for 5 rows"),
        (1.5, "not by 1.5"),
        ("a", "not by 'a'"),
        (None, "not by None"),
        (True, "not by True"),
        (np.zeros((2, 2), int), "1-d array"),
        (np.ones((5, 3), bool), "1-d array"),
        (np.array([]), "1-d array"),
        ((0, 1), "only rows can be selected"),
        ((slice(None), [0, 1]), "only rows can be selected"),
        ((..., 0), "only rows can be selected"),
    ],
)
def test_wrong_index_is_an_index_error(key, message):
    batch, _ = make("diagonal")
    with pytest.raises(IndexError, match=message):
        batch[key]


# ---- concatenation ---------------------------------------------------------------------------


@each("second", KINDS)
@each("first", KINDS)
def test_concatenation_of_any_two_kinds_joins_their_matrices(first, second):
    batches, matrices = zip(make(first, n=3), make(second, n=4, seed=5), strict=True)
    joined = Covariances.concatenate(batches)
    np.testing.assert_array_equal(joined.to_full(), np.concatenate(matrices))
    joined.core_view().check("joined")


def test_concatenation_takes_the_smallest_kind_that_holds_all():
    order = ["zero", "isotropic", "diagonal", "low_rank", "full"]
    for i, small in enumerate(order):
        for j, large in enumerate(order):
            joined = Covariances.concatenate([make(small)[0], make(large)[0]])
            assert joined.kind == order[max(i, j)]


def test_concatenation_expands_a_diagonal_only_where_one_is_needed():
    zero, diagonal, factors = make("zero")[0], make("diagonal_std")[0], make("low_rank")[0]
    assert Covariances.concatenate([factors, zero]).diagonal_values is None
    joined = Covariances.concatenate([factors, diagonal])
    np.testing.assert_array_equal(joined.diagonal_values[:5], np.zeros((5, 3)))
    np.testing.assert_array_equal(joined.diagonal_values[5:], diagonal.values**2)
    assert joined.values.size == factors.values.size


def test_concatenated_standard_deviations_stay_so():
    std = make("isotropic_std")[0]
    assert Covariances.concatenate([std, make("zero")[0], make("diagonal_std")[0]]).squared
    assert not Covariances.concatenate([std, make("isotropic")[0]]).squared


@pytest.mark.parametrize("kind", KINDS[1:])
def test_concatenation_is_float32_only_if_all_parts_are(kind):
    single, double = make(kind, dtype=np.float32)[0], make(kind)[0]
    assert Covariances.concatenate([single, single, Covariances.zero(2, 3)]).dtype == np.float32
    assert Covariances.concatenate([single, double]).dtype == np.float64


def test_squares_of_float32_deviations_survive_concatenation():
    std = np.full(1, 1e25, np.float32)
    joined = Covariances.concatenate(
        [Covariances.from_std(std, 2), Covariances.isotropic(np.ones(1, np.float32), 2)]
    )
    np.testing.assert_array_equal(joined.values, [float(std[0]) ** 2, 1.0])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "parts is empty"),
        ([Covariances.zero(1, 2), np.eye(2)], TypeError, r"parts\[1\] is ndarray"),
        (
            [Covariances.zero(1, 2), Covariances.zero(1, 2), Covariances.zero(1, 3)],
            ValueError,
            r"parts\[2\] has 3 features, parts\[0\] has 2",
        ),
    ],
)
def test_concatenation_names_the_part_that_does_not_fit(parts, error, message):
    with pytest.raises(error, match=message):
        Covariances.concatenate(parts)


# ---- properties ------------------------------------------------------------------------------

arbitrary = st.builds(
    make,
    st.sampled_from(KINDS),
    n=st.integers(1, 6),
    d=st.integers(1, 4),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)


def selections(n):
    return st.one_of(
        st.slices(n),
        st.lists(st.integers(-n, n - 1), max_size=2 * n),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda mask: np.array(mask, bool)),
    )


@settings(deadline=None)
@given(arbitrary, st.data())
def test_indexing_commutes_with_expansion(made, data):
    batch, dense = made
    rows = data.draw(selections(len(batch)))
    expected = dense[np.array(rows, int) if isinstance(rows, list) else rows]
    np.testing.assert_array_equal(batch[rows].to_full(), expected)


@settings(deadline=None)
@given(arbitrary, st.data())
def test_concatenated_pieces_are_the_original(made, data):
    batch, dense = made
    cuts = sorted(data.draw(st.lists(st.integers(0, len(batch)), max_size=3)))
    edges = [0, *cuts, len(batch)]
    joined = Covariances.concatenate(batch[start:stop] for start, stop in pairwise(edges))
    assert (joined.kind, joined.squared) == (batch.kind, batch.squared)
    assert joined.dtype == batch.dtype
    np.testing.assert_array_equal(joined.to_full(), dense)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), st.sampled_from(DTYPES))
def test_mixed_concatenation_joins_the_matrices(kinds, dtype):
    batches, matrices = zip(
        *[make(k, dtype=dtype, seed=i) for i, k in enumerate(kinds)], strict=True
    )
    np.testing.assert_array_equal(
        Covariances.concatenate(batches).to_full(), np.concatenate(matrices)
    )


# ---- copies ----------------------------------------------------------------------------------


def through_pickle(batch, _tmp_path):
    return pickle.loads(pickle.dumps(batch))


def through_old_pickle(batch, _tmp_path):
    return pickle.loads(pickle.dumps(batch, protocol=2))


def through_joblib(batch, _tmp_path):
    file = io.BytesIO()
    joblib.dump(batch, file)
    file.seek(0)
    return joblib.load(file)


def through_mapped_joblib(batch, tmp_path):
    joblib.dump(batch, tmp_path / "batch.joblib")
    return joblib.load(tmp_path / "batch.joblib", mmap_mode="r")


def deep_copied(batch, _tmp_path):
    return copy.deepcopy(batch)


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each(
    "through",
    [through_pickle, through_old_pickle, through_joblib, through_mapped_joblib, deep_copied],
)
def test_a_round_trip_keeps_everything(kind, dtype, through, tmp_path):
    batch, dense = make(kind, dtype=dtype)
    batch.core_view()
    back = through(batch, tmp_path)
    assert (back.kind, back.shape, back.dtype) == (batch.kind, batch.shape, batch.dtype)
    assert back.squared == batch.squared
    np.testing.assert_array_equal(back.to_full(), dense)
    back.core_view().check("back")
    assert back.values is None or not back.values.flags.writeable


def test_pickled_slice_holds_only_its_rows():
    batch = Covariances.diagonal(np.ones((1000, 10)))
    assert len(pickle.dumps(batch[:5])) < 2000


def test_batches_selected_from_a_checked_batch_are_not_checked_again():
    array = np.ones((4, 2))
    batch = Covariances.diagonal(array)
    array[1, 1] = -1.0
    assert batch[:3].variances()[1, 1] == -1.0
    assert batch[[1]].variances()[0, 1] == -1.0


# ---- what the kinds answer -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_quadratic_forms_equal_those_of_the_dense_matrices(kind, dtype):
    batch, S = make(kind, 6, 4, dtype)
    rng = np.random.default_rng(3)
    M, v, weights = (quarters(rng, shape, -3) for shape in ((4, 4), (6, 4), 6))
    M = M + M.T
    storage = storage_of(batch)
    np.testing.assert_array_equal(
        storage.weighted_sum(batch, weights), (weights[:, None, None] * S).sum(axis=0)
    )
    trace, squared, slope = storage.quadratic_forms(batch, M, v)
    np.testing.assert_array_equal(trace, [np.trace(M @ one) for one in S])
    np.testing.assert_array_equal(squared, [np.trace(M @ one @ M @ one) for one in S])
    np.testing.assert_array_equal(slope, [x @ one @ x for one, x in zip(S, v, strict=True)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_promises_only_what_its_matrices_keep(kind):
    batch, S = make(kind)
    storage = storage_of(batch)
    diagonal = np.diagonal(S, axis1=1, axis2=2)[:, :, None] * np.eye(3)
    assert batch.certain == (not S.any())
    assert storage.independent == np.array_equal(S, diagonal)
    assert storage.spherical == np.array_equal(S, S[:, :1, :1] * np.eye(3))
