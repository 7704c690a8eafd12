"""Features of Gaussians: selected, and put side by side with what their errors share."""

import pickle

import numpy as np
import pytest
from cases import each
from scipy import sparse

from halosvm import Covariances, Gaussians

N, D = 6, 4


@pytest.fixture(name="X")
def examples(make_covariances, kind):
    """Return examples of every kind."""
    rng = np.random.default_rng(0)
    return Gaussians(rng.normal(size=(N, D)), cov=make_covariances(kind, N, D, rng))


@each("columns", [[2, 0], [1, 1], slice(1, 3), [-1], np.arange(D) % 2 == 0])
def test_features_are_selected_with_their_covariances(X, columns):
    part = X[:, columns]
    index = np.arange(D)[columns]
    np.testing.assert_array_equal(part.mean, X.mean[:, index])
    expected = X.covariances.to_full()[:, index[:, None], index]
    np.testing.assert_allclose(part.covariances.to_full(), expected, atol=1e-14)


def test_names_units_and_groups_follow_their_features():
    pd = pytest.importorskip("pandas")
    X = Gaussians(pd.DataFrame(np.eye(3), columns=["a", "b", "c"]), std=np.ones((3, 3)))
    part = X[:, [2, 0]]
    assert part.feature_names.tolist() == ["c", "a"]
    assert np.hstack([part, X[:, [1]]]).feature_names.tolist() == ["c", "a", "b"]
    other = X.replaced(feature_units=("m", None, "s"), groups=np.arange(3))
    assert np.hstack([other[:, [2]], other[:, :2]]).feature_units == ("s", "m", None)
    assert other[:, [1]].groups.tolist() == [0, 1, 2]


def test_what_the_errors_of_the_parts_share_is_kept(X):
    together = np.hstack([X[:, [3]], X[:, [0, 1]], X[:, [3, 2]]])
    order = np.array([3, 0, 1, 3, 2])
    np.testing.assert_array_equal(together.mean, X.mean[:, order])
    expected = X.covariances.to_full()[:, order[:, None], order]
    np.testing.assert_allclose(together.covariances.to_full(), expected, atol=1e-14)
    again = np.concatenate([together[:, [0, 4]], X], axis=1)
    order = np.array([3, 2, 0, 1, 2, 3])
    expected = X.covariances.to_full()[:, order[:, None], order]
    np.testing.assert_allclose(again.covariances.to_full(), expected, atol=1e-14)


def test_all_features_in_another_order_are_of_the_same_kind(X):
    assert np.hstack([X[:, 2:], X[:, :2]]).covariances.kind == X.covariances.kind


def not_linear(part, covariances=None):
    return part.mapped_to(np.exp(part.mean), covariances or part.covariances)


def test_independent_features_stay_so_through_maps_that_are_not_linear(make_covariances):
    rng = np.random.default_rng(1)
    X = Gaussians(rng.normal(size=(N, D)), std=rng.uniform(size=(N, D)))
    for kind in ("diagonal", "low_rank", "low_rank_diagonal", "ragged", "full", "zero"):
        own = make_covariances(kind, N, 2, rng)
        together = np.hstack([not_linear(X[:, [1, 3]], own), X[:, [0]]])
        expected = np.zeros((N, 3, 3))
        expected[:, :2, :2] = own.to_full()
        expected[:, 2, 2] = X.covariances.variances()[:, 0]
        np.testing.assert_allclose(together.covariances.to_full(), expected, atol=1e-15)
    assert np.hstack([not_linear(X[:, :2]), X[:, 2:]]).covariances.kind == "diagonal"


def test_parts_whose_errors_may_depend_on_each_other_are_refused(make_covariances):
    rng = np.random.default_rng(2)
    X = Gaussians(rng.normal(size=(N, D)), std=rng.uniform(size=(N, D)))
    with pytest.raises(ValueError, match="feature 1 is read by two of them"):
        np.hstack([not_linear(X[:, [0, 1]]), X[:, [1]]])
    full = Gaussians(X.mean, cov=make_covariances("full", N, D, rng))
    with pytest.raises(ValueError, match="their features depend on each other"):
        np.hstack([not_linear(full[:, [0]]), full[:, [1]]])
    for other in (Gaussians(X.mean, std=X.covariances.values), pickle.loads(pickle.dumps(X))):
        with pytest.raises(ValueError, match="parts 0 and 1 are not known to come from the same"):
            np.hstack([X, other])
    with pytest.raises(ValueError, match=r"parts 0 and 2 .*Propagate"):
        np.hstack([X[:, [0]], X[:, [1]], X[::-1][:, [1]]])


def test_certain_parts_need_no_common_origin(X):
    certain = Gaussians(np.ones((N, 2)))
    together = np.hstack([certain, X[:, [1]], certain])
    assert together.shape == (N, 5)
    expected = np.zeros((N, 5, 5))
    expected[:, 2, 2] = X.covariances.variances()[:, 1]
    np.testing.assert_allclose(together.covariances.to_full(), expected, atol=1e-15)
    assert np.hstack([certain, certain]).covariances.kind == "zero"


COLUMNS = np.random.default_rng(3).integers(-2, 3, size=(N, 2))
ARRAYS = {
    "floats": COLUMNS.astype(float),
    "float32": COLUMNS.astype(np.float32),
    "integers": COLUMNS,
    "one column": COLUMNS[:, :1],
    "truth values": COLUMNS > 0,
    "csr_array": sparse.csr_array(COLUMNS),
    "csc_matrix": sparse.csc_matrix(COLUMNS.astype(float)),
    "list": COLUMNS.tolist(),
}


@each("name", ARRAYS)
def test_columns_of_arrays_are_certain(X, name):
    columns = ARRAYS[name]
    values = columns.toarray() if sparse.issparse(columns) else np.asarray(columns)
    k, kind = values.shape[1], X.covariances.kind
    for join in (np.hstack, lambda parts: np.concatenate(parts, axis=1)):
        for left, right in (((), (columns,)), ((columns,), ()), ((columns,), (columns,))):
            together = join([*left, X, *right])
            begin = k * len(left)
            dense = [values] * len(left) + [X.mean] + [values] * len(right)
            mean = together.mean.toarray() if together.is_sparse else together.mean
            assert together.is_sparse == sparse.issparse(columns)
            np.testing.assert_array_equal(mean, np.hstack(dense))
            expected = np.zeros((N, *[mean.shape[1]] * 2))
            own = slice(begin, begin + D)
            expected[:, own, own] = X.covariances.to_full()
            np.testing.assert_array_equal(together.covariances.to_full(), expected)
            together.core_view().check("X")
    smallest = kind if kind in ("zero", "sparse_diagonal") else "columns"
    assert together.covariances.kind == smallest
    if kind not in ("sparse_diagonal", "columns"):
        assert together.covariances.nbytes <= X.covariances.nbytes + 8 * D  # only which they are


def test_columns_of_arrays_stand_beside_several_parts_of_one_batch(X):
    together = np.hstack([COLUMNS, X[:, [3]], COLUMNS, X[:, [0, 3]]])
    again = np.hstack([together[:, 3:], COLUMNS, together[:, [2, 0]]])
    order = np.array([-1, -1, 0, 3, -1, -1, 3, -1])
    expected = X.covariances.to_full()[:, order[:, None], order]
    expected[:, order < 0], expected[:, :, order < 0] = 0.0, 0.0
    np.testing.assert_allclose(again.covariances.to_full(), expected, atol=1e-14)
    if X.covariances.kind not in ("zero", "sparse_diagonal"):
        assert again.covariances.kind == "columns"
        assert set(again.covariances.columns) <= {2, 3, 6}


def test_one_uncertain_part_beside_arrays_may_be_of_any_map_and_any_errors(make_covariances):
    rng = np.random.default_rng(4)
    for kind in ("full", "low_rank", "diagonal"):
        source = Gaussians(rng.normal(size=(N, D)), cov=make_covariances(kind, N, D, rng))
        part = not_linear(source[:, [2, 0]])
        for known in (part, pickle.loads(pickle.dumps(part))):
            together = np.hstack([COLUMNS, known])
            np.testing.assert_array_equal(
                together.covariances.to_full()[:, 2:, 2:], part.covariances.to_full()
            )
            assert together.covariances.trace() == pytest.approx(part.covariances.trace())


def test_columns_without_errors_count_as_mapped_where_a_part_of_them_was():
    mapped = not_linear(Gaussians(np.ones((N, 2))))
    assert np.hstack([mapped, COLUMNS]).origin is not None
    assert np.hstack([Gaussians(np.ones((N, 2))), COLUMNS]).origin is None


def test_names_units_and_groups_come_from_the_parts_that_have_them():
    pd = pytest.importorskip("pandas")
    X = Gaussians(pd.DataFrame(np.eye(3), columns=["a", "b", "c"]), std=np.ones((3, 3)))
    X = X.replaced(groups=np.arange(3), feature_units=("m", None, "s"))
    frame = pd.DataFrame({"d": [1, 2, 3]})
    together = np.hstack([frame, X])
    assert together.feature_names.tolist() == ["d", "a", "b", "c"]
    assert together.feature_units == (None, "m", None, "s")
    assert together.groups.tolist() == [0, 1, 2]
    assert np.hstack([X, frame.to_numpy()]).feature_names is None
    assert np.hstack([X, np.empty((3, 0))]).shape == (3, 3)


def test_what_is_no_batch_of_the_same_rows_is_refused(X):
    with pytest.raises(ValueError, match=r"part 1 has shape \(6,\), expected"):
        np.hstack([X, X.mean[:, 0]])
    with pytest.raises(ValueError, match="part 0 row 0, column 1 is nan"):
        np.hstack([np.where(np.arange(2) > 0, np.nan, np.ones((N, 2))), X])
    with pytest.raises(TypeError, match="part 1 has dtype <U1; real numbers are needed"):
        np.hstack([X, np.full((N, 1), "a")])
    with pytest.raises(ValueError, match="part 1 has 5 rows, part 0 has 6"):
        np.hstack([X, X.mean[1:]])
    with pytest.raises(ValueError, match="part 1 has 5 rows, part 0 has 6"):
        np.hstack([X, X[1:]])
    for columns, message in (
        (0, r"selected as a column, by \[0\]"),
        ([], "no feature"),
        ([4], "feature 4 is out of range for 4 features"),
        ([True, False], "2 entries for 4 features"),
    ):
        with pytest.raises(IndexError, match=message):
            X[:, columns]
    with pytest.raises(IndexError, match="only rows can be selected"):
        X[[0, 1], [0, 1]]


def test_numpy_joins_rows_and_sees_sizes(X):
    both = np.concatenate([X, X])
    np.testing.assert_array_equal(both.mean, np.concatenate([X.mean, X.mean]))
    assert np.shape(X) == (N, D)
    with pytest.raises(TypeError, match="their means alone would lose the covariances"):
        np.median(X, axis=0)


def test_an_origin_ends_with_a_selection_of_rows_and_a_pickle(X):
    part = X[:, [0]]
    assert part.origin is not None
    assert part[1:].origin is None
    assert pickle.loads(pickle.dumps(part)).origin is None
    assert isinstance(part.covariances, Covariances)
