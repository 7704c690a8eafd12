"""Gaussians: how arguments are read, what is copied, and how examples are selected."""

import copy
import io
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halosvm import Covariances, Gaussians
from halosvm.checks.frames import Labels
from halosvm.gaussians.gaussians import as_gaussians

N, D = 6, 3


def means(n=N, d=D, dtype=np.float64):
    return np.arange(n * d, dtype=dtype).reshape(n, d)


def spread(shape):
    return 1 + np.arange(np.prod(shape), dtype=float).reshape(shape) / 4


class Frame:
    """What data frames of all libraries have in common."""

    def __init__(self, array, columns):
        self.array, self.columns = np.asarray(array), columns

    def to_numpy(self):
        return self.array


# ---- reading the arguments -------------------------------------------------------------------

std_rows, std_table, matrices = (
    spread(N),
    spread((N, D)),
    np.array([np.diag(v) for v in spread((N, D))]),
)


@pytest.mark.parametrize(
    ("arguments", "kind", "dense"),
    [
        ({}, "zero", np.zeros((N, D, D))),
        ({"std": std_rows}, "isotropic", (std_rows**2)[:, None, None] * np.eye(D)),
        ({"std": std_table}, "diagonal", (std_table**2)[:, :, None] * np.eye(D)),
        ({"variance": std_rows}, "isotropic", std_rows[:, None, None] * np.eye(D)),
        ({"variance": std_table}, "diagonal", std_table[:, :, None] * np.eye(D)),
        ({"cov": std_rows}, "isotropic", std_rows[:, None, None] * np.eye(D)),
        ({"cov": std_table}, "diagonal", std_table[:, :, None] * np.eye(D)),
        ({"cov": matrices}, "full", matrices),
        ({"cov": matrices.tolist()}, "full", matrices),
        ({"cov": Covariances.full(matrices)}, "full", matrices),
    ],
)
def test_spreads_are_read_by_keyword_and_dimensions(arguments, kind, dense):
    X = Gaussians(means(), **arguments)
    assert (X.shape, X.ndim, len(X), X.dtype) == ((N, D), 2, N, np.float64)
    assert X.covariances.kind == kind
    np.testing.assert_array_equal(X.covariances.to_full(), dense)
    np.testing.assert_array_equal(X.mean, means())


def test_given_covariances_are_kept_as_they_are():
    covariances = Covariances.low_rank(np.ones((N, D, 1)))
    assert Gaussians(means(), cov=covariances).covariances is covariances


def test_one_feature_and_one_row_leave_nothing_open():
    X = Gaussians([[5.0]], std=[3.0])
    np.testing.assert_array_equal(X.covariances.to_full(), [[[9.0]]])
    for cov in ([9.0], [[9.0]], [[[9.0]]]):
        np.testing.assert_array_equal(Gaussians([[5.0]], cov=cov).covariances.to_full(), [[[9.0]]])
    single = Gaussians(means(1), std=[2.0])
    np.testing.assert_array_equal(single.covariances.to_full(), [4.0 * np.eye(D)])


def test_square_tables_of_std_and_variance_can_only_mean_rows_and_features():
    table = spread((4, 4))
    np.testing.assert_array_equal(Gaussians(means(4, 4), std=table).covariances.values, table)
    np.testing.assert_array_equal(Gaussians(means(4, 4), variance=table).covariances.values, table)


# Covariances calls that an error message may advise; each must be the whole truth when evaluated.
ADVICE = [
    # arguments, shape of the means, what the advice must say, the dense matrices it must give
    (
        "std",
        [1.0, 2.0, 3.0],
        (3, 3),
        {
            "Covariances.from_std(std, n_features=3)": [v * np.eye(3) for v in (1, 4, 9)],
            "Covariances.from_std(np.broadcast_to(std, (3, 3)))": [np.diag([1, 4, 9])] * 3,
        },
    ),
    (
        "variance",
        [1.0, 2.0, 3.0],
        (3, 3),
        {
            "Covariances.isotropic(variance, n_features=3)": [v * np.eye(3) for v in (1, 2, 3)],
            "Covariances.diagonal(np.broadcast_to(variance, (3, 3)))": [np.diag([1, 2, 3])] * 3,
        },
    ),
    (
        "cov",
        [1.0, 2.0, 3.0],
        (3, 3),
        {
            "Covariances.isotropic(cov, n_features=3)": [v * np.eye(3) for v in (1, 2, 3)],
            "Covariances.diagonal(np.broadcast_to(cov, (3, 3)))": [np.diag([1, 2, 3])] * 3,
        },
    ),
    (
        "cov",
        np.eye(3),
        (3, 3),
        {
            "Covariances.diagonal(cov)": [np.diag(row) for row in np.eye(3)],
            "Covariances.full(np.broadcast_to(cov, (3, 3, 3)))": [np.eye(3)] * 3,
        },
    ),
    (
        "cov",
        np.eye(3),
        (5, 3),
        {"Covariances.full(np.broadcast_to(cov, (5, 3, 3)))": [np.eye(3)] * 5},
    ),
    ("cov", np.eye(3), (1, 3), {"Covariances.full(np.broadcast_to(cov, (1, 3, 3)))": [np.eye(3)]}),
    (
        "std",
        [1.0, 2.0, 3.0],
        (5, 3),
        {"Covariances.from_std(np.broadcast_to(std, (5, 3)))": [np.diag([1, 4, 9])] * 5},
    ),
    (
        "variance",
        [1.0, 2.0, 3.0],
        (5, 3),
        {"Covariances.diagonal(np.broadcast_to(variance, (5, 3)))": [np.diag([1, 2, 3])] * 5},
    ),
    (
        "std",
        2.0,
        (5, 3),
        {"Covariances.from_std(np.broadcast_to(std, (5, 3)))": [4 * np.eye(3)] * 5},
    ),
    (
        "cov",
        2.0,
        (5, 3),
        {"Covariances.diagonal(np.broadcast_to(cov, (5, 3)))": [2 * np.eye(3)] * 5},
    ),
]


@pytest.mark.parametrize(("keyword", "value", "shape", "advice"), ADVICE)
def test_open_meaning_is_an_error_whose_advice_works(keyword, value, shape, advice):
    with pytest.raises(ValueError, match=f"^{keyword} ") as caught:
        Gaussians(means(*shape), **{keyword: value})
    for call, dense in advice.items():
        assert f"pass cov={call}" in str(caught.value)
        covariances = eval(call, {"Covariances": Covariances, "np": np, keyword: value})
        np.testing.assert_array_equal(covariances.to_full(), dense)
        assert Gaussians(means(*shape), cov=covariances).covariances is covariances


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"std": np.ones((6, 4))}, "std has 4 columns, mean has 3"),
        ({"std": np.ones((5, 3))}, "std has 5 rows, mean has 6"),
        ({"std": np.ones(5)}, "std has 5 rows, mean has 6"),
        ({"variance": np.ones((6, 2))}, "variance has 2 columns, mean has 3"),
        ({"cov": np.ones((6, 2, 2))}, "cov has 2 columns, mean has 3"),
        ({"cov": np.ones((6, 3, 2))}, r"cov has shape \(6, 3, 2\)"),
        ({"cov": np.ones((6, 3, 3, 1))}, r"cov has shape \(6, 3, 3, 1\): too many dimensions"),
        ({"cov": Covariances.zero(5, 3)}, "cov has 5 rows, mean has 6"),
        ({"cov": Covariances.zero(6, 2)}, "cov has 2 columns, mean has 3"),
        ({"std": np.ones((6, 3, 3))}, "std has shape .*too many dimensions.* given as cov"),
        ({"variance": np.ones((6, 3, 3))}, "variance has shape .*too many dimensions"),
        ({"std": np.ones(6), "variance": np.ones(6)}, "std and variance are both given"),
        ({"std": np.ones(6), "cov": np.ones(6)}, "std and cov are both given"),
        ({"variance": np.ones(6), "cov": np.ones(6)}, "variance and cov are both given"),
    ],
)
def test_arguments_that_do_not_fit_are_named_with_their_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        Gaussians(means(), **arguments)


@pytest.mark.parametrize("keyword", ["std", "variance", "cov"])
@pytest.mark.parametrize("value", [-0.5, np.nan, -np.inf])
def test_bad_spreads_are_named_with_keyword_row_column_and_value(keyword, value):
    table = np.ones((N, D))
    table[4, 1] = value
    with pytest.raises(ValueError, match=rf"^{keyword}:? row 4, column 1 is {value}"):
        Gaussians(means(), **{keyword: table})


def test_indefinite_matrix_is_named_with_keyword_and_row():
    indefinite = matrices.copy()
    indefinite[2] *= -1
    with pytest.raises(ValueError, match=r"^cov:? row 2 "):
        Gaussians(means(), cov=indefinite)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_bad_means_are_named_with_row_column_and_value(value):
    mean = means()
    mean[3, 2] = value
    shown = str(value).replace("+", r"\+")
    with pytest.raises(ValueError, match=rf"^mean:? row 3, column 2 is {shown}"):
        Gaussians(mean, std=np.ones(N))


@pytest.mark.parametrize(
    ("mean", "error", "message"),
    [
        (np.ones(3), ValueError, r"mean has shape \(3,\), expected \(n_samples, n_features\)"),
        (np.ones((3, 2, 1)), ValueError, r"mean has shape \(3, 2, 1\)"),
        (5.0, ValueError, r"mean has shape \(\)"),
        (np.ones((3, 0)), ValueError, "at least one feature"),
        ([[1.0], [1.0, 2.0]], ValueError, "mean is not an array of numbers"),
        (np.ones((3, 2), complex), TypeError, "mean has dtype complex128"),
        ([["a"]], TypeError, "mean has dtype <U1"),
        (Gaussians([[1.0]]), TypeError, r"use \.mean"),
    ],
)
def test_means_must_be_a_table_of_real_numbers(mean, error, message):
    with pytest.raises(error, match=message):
        Gaussians(mean)


def test_covariances_are_not_taken_for_standard_deviations():
    with pytest.raises(TypeError, match="std is Covariances; pass them as cov"):
        Gaussians(means(), std=Covariances.zero(N, D))


# ---- data frames -----------------------------------------------------------------------------


def test_a_frame_gives_means_and_feature_names():
    X = Gaussians(Frame(means(), ["a", "b", "c"]), std=Frame(std_table, ["a", "b", "c"]))
    assert X.feature_names.dtype == object
    assert list(X.feature_names) == list(X[2:].feature_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(X.mean, means())
    np.testing.assert_array_equal(X.covariances.values, std_table)


@pytest.mark.parametrize("keyword", ["std", "variance", "cov"])
def test_columns_in_another_order_are_paired_by_their_names(keyword):
    for affix in ("{}", "{}_err", "e_{}", "(± {} 1 sd)"):
        other = Frame(std_table, [affix.format(name) for name in ["a", "c", "b"]])
        X = Gaussians(Frame(means(), ["a", "b", "c"]), **{keyword: other})
        np.testing.assert_array_equal(X.covariances.values, std_table[:, [0, 2, 1]])


@pytest.mark.parametrize(
    ("columns", "place", "expected"),
    [
        (["a", "b", "d"], "column 2 named 'd'", "'c'"),
        (["b_err", "sigma_a", "c_err"], "column 0 named 'b_err'", "'a'"),
        (["first", "c error", "last"], "column 1 named 'c error'", "'b'"),
        (["b", "b", "c"], "column 0 named 'b'", "'a'"),
    ],
)
def test_columns_that_contradict_those_of_the_means_are_refused(columns, place, expected):
    with pytest.raises(ValueError, match=f"std has {place}, in mean it is {expected}"):
        Gaussians(Frame(means(), ["a", "b", "c"]), std=Frame(std_table, columns))


def test_a_name_inside_another_name_is_no_contradiction():
    X = Gaussians(Frame(means(), ["a", "b", "c"]), std=Frame(std_table, ["bar", "abc", "cab"]))
    np.testing.assert_array_equal(X.covariances.values, std_table)


@pytest.mark.parametrize("keyword", ["std", "variance", "cov"])
def test_errors_may_have_names_of_their_own_but_not_some_of_the_features(keyword):
    frame, own = Frame(means(), ["a", "b", "c"]), ["a error", "b error", "c error"]
    X = Gaussians(frame, **{keyword: Frame(std_table, own)})
    assert list(X.feature_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(X.covariances.values, std_table)
    with pytest.raises(ValueError, match=f"{keyword} has column 0 named 'a error', in mean it is"):
        Gaussians(frame, **{keyword: Frame(std_table, ["a error", "b", "c"])})


@pytest.mark.parametrize("columns", [range(D), np.arange(D)])
def test_columns_without_names_are_not_compared(columns):
    assert Gaussians(Frame(means(), columns)).feature_names is None
    named = Gaussians(Frame(means(), ["a", "b", "c"]), std=Frame(std_table, columns))
    assert list(named.feature_names) == ["a", "b", "c"]
    assert Gaussians(means(), std=Frame(std_table, ["a", "b", "c"])).feature_names is None


def test_partly_named_columns_are_a_type_error():
    with pytest.raises(TypeError, match="mean has column names that are only partly strings"):
        Gaussians(Frame(means(), ["a", 1, 2]))


def test_pandas_frames_are_read():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(means(), columns=["a", "b", "c"])
    X = Gaussians(frame, std=frame + 1)
    assert list(X.feature_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(X.covariances.values, means() + 1)


def test_nullable_pandas_frames_are_read_and_missing_values_refused_by_machines():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(means(), columns=["a", "b", "c"]).astype("Float64")
    frame["b"] = frame["b"].round().astype("Int64")
    plain = frame.to_numpy(float)
    X = Gaussians(frame, std=frame.abs()["a"])
    np.testing.assert_array_equal(X.mean, plain)
    np.testing.assert_array_equal(X.covariances.values, np.abs(plain[:, 0]))
    np.testing.assert_array_equal(as_gaussians(frame, X_std=frame.abs()).mean, plain)
    frame.iloc[1, 2] = pandas.NA
    with pytest.raises(ValueError, match="row 1, column 2 is nan"):
        as_gaussians(frame)
    np.testing.assert_array_equal(np.isnan(Gaussians(frame).mean), frame.isna())
    with pytest.raises(TypeError, match=r"mean: row 0, column 3 is '1\.5', which is text"):
        Gaussians(frame.assign(d="1.5"))


# ---- indexing, joining, copying --------------------------------------------------------------


def named(n=N, d=D):
    columns = [f"x{i}" for i in range(d)]
    return Gaussians(Frame(means(n, d), columns), std=spread((n, d)))


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, 4),
        slice(None, None, -2),
        [2, 0, 2],
        [],
        np.array([0, 5], np.uint16),
        np.array([1, 0, 1, 0, 0, 1], bool),
        ...,
    ],
    ids=repr,
)
def test_selecting_rows_selects_means_and_covariances(rows):
    X = named()
    expected = np.array(rows, int) if isinstance(rows, list) else rows
    for part in (X[rows], X[rows, ...], X[rows, :]):
        assert isinstance(part, Gaussians)
        assert len(part) == len(part.covariances) == len(means()[expected])
        np.testing.assert_array_equal(part.mean, means()[expected])
        np.testing.assert_array_equal(part.covariances.values, spread((N, D))[expected])
        assert list(part.feature_names) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("row", [0, -1, np.int32(3)])
def test_an_integer_gives_mean_and_matrix(row):
    mean, covariance = named()[row]
    np.testing.assert_array_equal(mean, means()[row])
    np.testing.assert_array_equal(covariance, np.diag(spread((N, D))[row] ** 2))


def test_iteration_visits_each_example():
    pairs = list(named())
    np.testing.assert_array_equal([mean for mean, _ in pairs], means())
    assert len(pairs) == N


@pytest.mark.parametrize("key", [6, [0, 9], "x0", (0, 1), [True], 1.0, None])
def test_wrong_index_is_an_index_error(key):
    with pytest.raises(IndexError, match="row"):
        named()[key]


@settings(deadline=None)
@given(
    n=st.integers(1, 7),
    d=st.integers(1, 4),
    kind=st.sampled_from(["zero", "std", "ragged"]),
    data=st.data(),
)
def test_indexing_and_joining_act_on_means_and_covariances_alike(n, d, kind, data):
    rng = np.random.default_rng(n)
    factors = [rng.integers(0, 4, (d, r % 3)).astype(float) for r in range(n)]
    dense = {
        "zero": np.zeros((n, d, d)),
        "std": (spread((n, d)) ** 2)[:, :, None] * np.eye(d),
        "ragged": np.array([f @ f.T for f in factors]),
    }[kind]
    covariances = {
        "zero": Covariances.zero(n, d),
        "std": Covariances.from_std(spread((n, d))),
        "ragged": Covariances.low_rank(factors),
    }[kind]
    X = Gaussians(means(n, d), cov=covariances)
    rows = data.draw(st.lists(st.integers(-n, n - 1), max_size=9))
    cut = data.draw(st.integers(0, n))
    index = np.array(rows, int)
    np.testing.assert_array_equal(X[rows].mean, means(n, d)[index])
    np.testing.assert_array_equal(X[rows].covariances.to_full(), dense[index])
    joined = Gaussians.concatenate([X[:cut], X[cut:], X[rows]])
    np.testing.assert_array_equal(joined.mean, np.concatenate([means(n, d), means(n, d)[index]]))
    np.testing.assert_array_equal(
        joined.covariances.to_full(), np.concatenate([dense, dense[index]])
    )


def test_joined_parts_keep_names_only_if_all_have_the_same():
    assert list(Gaussians.concatenate([named(2), named(3)]).feature_names) == ["x0", "x1", "x2"]
    for parts in ([named(2), Gaussians(means())], [Gaussians(means()), named(2)]):
        assert Gaussians.concatenate(parts).feature_names is None
    other = Gaussians(Frame(means(), ["x0", "y", "x2"]))
    with pytest.raises(ValueError, match=r"parts\[1\] has column 1 named 'y', in parts\[0\] it is"):
        Gaussians.concatenate([named(), other])


def test_joined_means_of_mixed_dtype_are_float64():
    single, double = Gaussians(means(dtype=np.float32)), Gaussians(means())
    assert Gaussians.concatenate([single, single]).dtype == np.float32
    assert Gaussians.concatenate([single, double]).dtype == np.float64


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "parts is empty"),
        ([named(), means()], TypeError, r"parts\[1\] is ndarray, expected Gaussians"),
        ([named(), named(d=2)], ValueError, r"parts\[1\] has 2 features, parts\[0\] has 3"),
    ],
)
def test_joining_names_the_part_that_does_not_fit(parts, error, message):
    with pytest.raises(error, match=message):
        Gaussians.concatenate(parts)


def through_joblib(X):
    file = io.BytesIO()
    joblib.dump(X, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "through", [lambda X: pickle.loads(pickle.dumps(X)), through_joblib, copy.copy, copy.deepcopy]
)
def test_a_round_trip_keeps_everything(through, dtype):
    X = Gaussians(Frame(means(dtype=dtype), ["a", "b", "c"]), std=std_table.astype(dtype))
    X.core_view()
    back = through(X)
    assert (back.dtype, back.covariances.dtype, back.covariances.kind) == (dtype, dtype, "diagonal")
    np.testing.assert_array_equal(back.mean, means())
    np.testing.assert_array_equal(back.covariances.values, std_table)
    assert list(back.feature_names) == ["a", "b", "c"]
    back.core_view().check("back")


def test_equal_gaussians_hash_alike_for_cached_pipelines():
    first, second = named(), named()
    first.core_view()
    assert joblib.hash(first) == joblib.hash(second)
    assert joblib.hash(first) != joblib.hash(Gaussians(means(), std=std_table + 1))


def test_gaussians_are_immutable():
    X = named()
    with pytest.raises(AttributeError, match="immutable: mean"):
        X.mean = means()
    with pytest.raises(ValueError, match="read-only"):
        X.mean[0, 0] = 1.0


def test_conversion_to_an_array_does_not_drop_the_covariances():
    for convert in (np.asarray, np.array, np.sum, lambda X: np.ones(D) + X):
        with pytest.raises(TypeError, match=r"lose the covariances; use \.mean"):
            convert(named())


def test_repr_tells_size_and_kind():
    assert repr(Gaussians(means(dtype=np.float32), std=np.ones(N))) == (
        "Gaussians(n_samples=6, n_features=3, covariances='isotropic', dtype=float32)"
    )


# ---- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("read_only", [False, True])
def test_contiguous_arrays_are_used_in_place(dtype, read_only):
    mean, std = means(dtype=dtype), std_table.astype(dtype)
    mean.flags.writeable = std.flags.writeable = not read_only
    X = Gaussians(mean, std=std)
    assert np.shares_memory(X.mean, mean)
    assert np.shares_memory(X.covariances.values, std)
    assert np.shares_memory(X[2:4].mean, mean)
    assert np.shares_memory(X[2:4].covariances.values, std)
    assert mean.flags.writeable != read_only


def test_memory_maps_are_used_in_place(tmp_path):
    np.save(tmp_path / "mean.npy", means())
    mapped = np.load(tmp_path / "mean.npy", mmap_mode="r")
    assert np.shares_memory(Gaussians(mapped, std=mapped).mean, mapped)
    assert np.shares_memory(Gaussians(mapped, std=mapped).covariances.values, mapped)


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a.astype(">f8"),
        lambda a: a.astype(int),
        lambda a: a.tolist(),
        lambda a: a.astype(np.longdouble),
    ],
)
def test_other_layouts_are_converted(layout):
    X = Gaussians(layout(means()))
    assert X.mean.flags.c_contiguous
    assert X.dtype is np.dtype(np.float64)
    np.testing.assert_array_equal(X.mean, means())


def test_long_doubles_beyond_float64_are_named():
    mean = means().astype(np.longdouble)
    mean[1, 1] = np.finfo(np.longdouble).max
    with pytest.raises(ValueError, match=r"^mean:? row 1, column 1 is inf"):
        Gaussians(mean)


def test_construction_copies_nothing():
    mean, std = np.ones((20_000, 50)), np.ones((20_000, 50))
    Gaussians(mean[:10], std=std[:10])
    tracemalloc.start()
    try:
        Gaussians(mean, std=std)[100:].core_view()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < mean.nbytes / 100


# ---- arguments of estimators -----------------------------------------------------------------


def test_as_gaussians_returns_gaussians_as_they_are():
    X = named()
    assert as_gaussians(X) is X


@pytest.mark.parametrize("keyword", ["X_std", "X_cov"])
def test_as_gaussians_refuses_a_second_spread(keyword):
    with pytest.raises(ValueError, match=f"{keyword} is given, but X is Gaussians"):
        as_gaussians(named(), **{keyword: std_table})


def test_as_gaussians_reads_means_and_spreads():
    np.testing.assert_array_equal(as_gaussians(means()).covariances.to_full(), np.zeros((N, D, D)))
    std = as_gaussians(means(), X_std=std_table).covariances
    np.testing.assert_array_equal(std.variances(), std_table**2)
    cov = as_gaussians(means(), X_cov=matrices).covariances
    np.testing.assert_array_equal(cov.to_full(), matrices)


@pytest.mark.parametrize(
    ("X", "arguments", "message"),
    [
        (means(), {"X_std": np.ones((N, 4))}, "X_std has 4 columns, X has 3"),
        (means(), {"X_cov": Covariances.zero(5, 3)}, "X_cov has 5 rows, X has 6"),
        (means(), {"X_std": np.ones(N), "X_cov": np.ones(N)}, "X_std and X_cov are both given"),
        (
            means(),
            {"X_std": np.ones(3)},
            r"X_std .*pass X_cov=Covariances.from_std\(np.broadcast_to",
        ),
        (means(), {"X_cov": np.eye(3)}, r"X_cov .*pass X_cov=Covariances.full\(np.broadcast_to"),
        (means(), {"X_std": -std_table}, "^X_std:? row 0, column 0 is -1"),
        (means(), {"X_cov": -std_table}, "^X_cov:? row 0, column 0 is -1"),
        (means(), {"X_cov": -matrices}, "^X_cov:? row 0 "),
        (np.full((N, D), np.nan), {}, "^X:? row 0, column 0 is nan"),
        (np.full((N, D), 1e200), {}, r"^X:? row 0, column 0 is 1e\+200"),
        (np.ones(3), {}, r"X has shape \(3,\)"),
    ],
)
def test_as_gaussians_speaks_of_x(X, arguments, message):
    with pytest.raises(ValueError, match=message):
        as_gaussians(X, **arguments)


def test_as_gaussians_compares_columns_with_known_feature_names():
    names = np.array(["a", "b", "c"], dtype=object)
    std = Frame(std_table, ["b", "d", "c"])
    with pytest.raises(ValueError, match="X_std has column 0 named 'b', in X it is 'a'"):
        as_gaussians(means(), X_std=std, labels=Labels(names))
    X = as_gaussians(means(), X_std=Frame(std_table, names), labels=Labels(names))
    assert list(X.feature_names) == ["a", "b", "c"]


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_gaussians_from_buffers_that_are_not_aligned_are_of_use(offset):
    # As they come from a network, where a buffer begins in the middle of a message.
    X = Gaussians(np.arange(12.0).reshape(6, 2), std=np.arange(12.0).reshape(6, 2))
    buffers = []
    data = pickle.dumps(X, protocol=5, buffer_callback=buffers.append)
    moved = []
    for buffer in buffers:
        message = bytearray(offset + buffer.raw().nbytes)
        message[offset:] = buffer.raw()
        moved.append(memoryview(message)[offset:])
    other = pickle.loads(data, buffers=moved)
    assert other.core_view().n_samples == 6
    np.testing.assert_array_equal(other.mean, X.mean)
    np.testing.assert_array_equal(other.covariances.to_full(), X.covariances.to_full())
