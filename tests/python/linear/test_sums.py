"""Sums over parts are as accurate as the whole: far from 0, and where the minimum is at w = 0.

Oracle: the fit of the same examples in memory, and NumPy on means that are moved beforehand.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halosvm import Gaussians, UncertainSVC, UncertainSVR, _core, chunks

LOSSES = ("expected_hinge", "expected_squared_hinge", "expected_logistic")
VALUES = ("squared_epsilon_insensitive", "huber", "squared_error")


def in_chunks(X, y):
    parts = np.array_split(np.arange(len(y)), 3)
    return chunks(lambda: ((X[rows], y[rows]) for rows in parts))


def both(estimator, X, y):
    """Return the fits of chunks and in memory, after a look at their certificates."""
    found, expected = clone(estimator).fit(in_chunks(X, y)), clone(estimator).fit(X, y)
    for fit, other in ((found, expected), (expected, found)):
        assert np.max(fit.suboptimality_) <= 1e-6
        bound = fit.objective_ / (1 + fit.suboptimality_)
        assert (bound <= np.asarray(other.objective_) * (1 + 1e-8)).all()
    return found, expected


def classes(seed, offset, n_classes=2, apart=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, 200)
    means = rng.normal(size=(200, 3)) * [1.0, 5.0, 0.2] + apart * np.eye(n_classes, 3)[y]
    sign = np.array([1.0, -1.0, 1.0])
    return Gaussians(means + sign * offset, std=rng.uniform(0.1, 0.5, (200, 3))), y


@pytest.mark.parametrize("offset", [0.0, 2.0**14, 2.0**24])
@pytest.mark.parametrize("loss", LOSSES)
def test_examples_far_from_0_are_certified_as_in_memory(loss, offset):
    for seed, n_classes in ((0, 2), (1, 3)):
        both(UncertainSVC(loss=loss), *classes(seed, offset, n_classes))


@pytest.mark.parametrize("loss", VALUES)
def test_values_of_examples_far_from_0_are_certified_as_in_memory(loss):
    X, _ = classes(2, 2.0**24)
    y = X.mean @ [1.0, -1.0, 2.0]
    both(UncertainSVR(loss=loss, delta=0.5), X, y - y.mean() + 2.0**20)


def test_sparse_examples_far_from_0_are_certified_as_in_memory():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 300)
    X = scipy.sparse.random(300, 6, 0.3, "csr", random_state=3).toarray()
    X[:, 0] = rng.normal(size=300) + y + 2.0**24  # in each row
    X[:100, 1] = 2.0**20 + rng.normal(size=100)  # in one chunk alone
    both(UncertainSVC(loss="expected_logistic"), scipy.sparse.csr_matrix(X), y)


@pytest.mark.parametrize("loss", ["expected_hinge", "worst_case"])
@pytest.mark.parametrize("offset", [0.0, 2.0**24])
def test_a_minimum_at_w_0_is_proved_as_in_memory(loss, offset):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = (np.arange(120) % rng.choice([5, 12, 30]) == 0).astype(int)
        means = rng.normal(size=(120, 3)) + 0.3 * y[:, np.newaxis]
        X = Gaussians(means + offset, std=10 ** rng.uniform(0.3, 2.0, (120, 3)))
        with pytest.warns(ConvergenceWarning, match="least at w = 0") as told:
            found, expected = both(UncertainSVC(loss=loss), X, y)
        assert len(told) == 2
        assert not found.coef_.any()
        assert not expected.coef_.any()
        assert found.n_iter_ < 1000
        np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_part_seen_from_a_centre_is_that_of_moved_means(sparse):
    """Sparse columns are not moved, but evaluations are as if they were."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 4))
    X[:, 0] += 100.0
    if sparse:
        X[:, 1:] *= rng.random((40, 3)) < 0.2
    codes = (np.arange(40) % 2).astype(np.int16)
    centre, std = np.array([100.0, -2.0, 3.0, 0.5]), rng.uniform(0.1, 1.0, (40, 4))
    stored = scipy.sparse.csr_matrix(X) if sparse else X
    part, moved = (
        _core.Objective(Gaussians(m, std=std).core_view(), codes, 1, None, 0.1, centre=c)
        for m, c in ((stored, centre), (X - centre, None))
    )
    W, b = rng.normal(size=(1, 4)), rng.normal(size=1)
    found, expected = part(W, b), moved(W, b)
    for name in ("value", "slope", "dual", "curvature", "coef", "intercept"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-11)
