"""Expected kernels of very uncertain Gaussians and of examples far from all others."""

import numpy as np
import pytest
from sklearn.metrics import pairwise

from halosvm import Gaussians, expected_kernel

SMOOTH = ("zero", "isotropic", "diagonal", "low_rank", "low_rank_diagonal", "full")


# -- examples far from all others ----------------------------------------------------------------


@pytest.mark.parametrize("far", [1e6, -1e9, 1e12, 1e16, -1e20])
@pytest.mark.parametrize("n_far", [1, 40])
@pytest.mark.parametrize("kind", SMOOTH)
def test_far_examples_leave_the_kernels_of_all_others_alone(make_gaussians, kind, n_far, far):
    X, _ = make_gaussians(kind, n=60, d=5, seed=1)
    means = np.array(X.mean)
    means[:n_far, 2] = far
    near = slice(n_far, None)
    kinds = ("rbf", "laplacian") if kind in ("zero", "isotropic", "diagonal") else ("rbf",)
    for name in kinds:
        K = expected_kernel(Gaussians(means, cov=X.covariances), kind=name, gamma=0.3)
        expected = expected_kernel(X[near], kind=name, gamma=0.3)
        np.testing.assert_allclose(K[near, near], expected, rtol=1e-13)
        assert (K[:n_far, near] == 0.0).all()


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
@pytest.mark.parametrize("row", [0, 1, 500, 501])
def test_one_far_point_among_many_leaves_the_kernels_of_scikit_learn(kind, row):
    x = 3.0 + np.random.default_rng(0).normal(size=(1000, 4))
    x[row] = [1e20, -1e20, 1e100, 0.0]
    plain = getattr(pairwise, f"{kind}_kernel")
    others = np.delete(x, row, axis=0)
    K = expected_kernel(others, x, kind=kind, gamma=0.5)
    np.testing.assert_allclose(np.delete(K, row, axis=1), plain(others, gamma=0.5), rtol=1e-12)
    assert (K[:, row] == 0.0).all()
