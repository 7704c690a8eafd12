"""Features of Gaussians: selected, and put side by side with what their errors share."""

import pickle

import numpy as np
import pytest

from halosvm import Covariances, Gaussians

N, D = 6, 4


@pytest.fixture(name="X")
def examples(make_covariances, kind):
    """Return examples of every kind."""
    rng = np.random.default_rng(0)
    return Gaussians(rng.normal(size=(N, D)), cov=make_covariances(kind, N, D, rng))


@pytest.mark.parametrize("columns", [[2, 0], [1, 1], slice(1, 3), [-1], np.arange(D) % 2 == 0])
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


def test_what_is_no_batch_of_the_same_rows_is_refused(X):
    with pytest.raises(TypeError, match="part 1 is ndarray, the others are Gaussians"):
        np.hstack([X, X.mean])
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
