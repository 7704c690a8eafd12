"""Expected kernels of very uncertain Gaussians and of examples far from all others."""

import mpmath
import numpy as np
import pytest
from sklearn.metrics import pairwise

from halosvm import Covariances, Gaussians, expected_kernel

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


# -- factors far beyond the bandwidth ------------------------------------------------------------


def exponent(x, F, y, G, diagonal):
    """Return -log of the kernel of exp(-|x - y|^2 / 2) with 60 digits."""
    with mpmath.workdps(60):
        d = mpmath.matrix(x) - mpmath.matrix(y)
        B = mpmath.diag([1 + 2 * mpmath.mpf(v) for v in diagonal])
        B += mpmath.matrix(F) * mpmath.matrix(F).T + mpmath.matrix(G) * mpmath.matrix(G).T
        return (mpmath.log(mpmath.det(B)) + (d.T * mpmath.lu_solve(B, d))[0]) / 2


def wide(scale, rank, d, rng):
    """Return means that differ by the errors, and factors of one span: no column is independent."""
    shared = rng.normal(size=(d, rank))
    F = scale * shared @ rng.normal(size=(4, rank, rank))
    return rng.normal(size=(4, d)) + (F @ rng.normal(size=(4, rank, 1)))[:, :, 0], F


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("diagonal", [None, np.array([0.0, 0.01, 3.0, 1e4])])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_wide_factors_equal_mpmath(rank, diagonal, scale):
    X, F = wide(scale, rank, 4, np.random.default_rng(rank))
    added = np.zeros(4) if diagonal is None else diagonal
    exact = np.empty((4, 4), object)
    for i, j in np.ndindex(4, 4):
        exact[i, j] = exponent(X[i], F[i], X[j], F[j], added)
    cov = Covariances.low_rank(F, None if diagonal is None else np.tile(diagonal, (4, 1)))
    # Up to 16 bits may cancel; beyond, roundings of the factors themselves count, some 50 of them.
    rtol = 1e-10 + 1e-14 * scale
    for normalize in (False, True):
        K = expected_kernel(Gaussians(X, cov=cov), gamma=0.5, normalize=normalize)
        own = exact.diagonal() * (0.5 * normalize)
        expected = [[mpmath.exp(own[i] + own[j] - exact[i, j]) for j in range(4)] for i in range(4)]
        np.testing.assert_allclose(K, np.array(expected, float), rtol=rtol)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("diagonal", [None, [0.0, 0.01, 0.2]])
@pytest.mark.parametrize("normalize", [False, True])
def test_wide_factors_along_a_feature_equal_diagonal_covariances(normalize, diagonal, scale):
    X = np.array([[0.0, 0, 0], [0, 1, 0], [scale, 1, 0.3], [-0.7 * scale, 0, 0.1]])
    F = scale * np.array([1.0, 1, 2, 0.5])[:, np.newaxis, np.newaxis] * np.eye(3, 1)
    variance = F[:, :, 0] ** 2 + (0.0 if diagonal is None else np.array(diagonal))
    added = None if diagonal is None else np.tile(diagonal, (4, 1))
    options = {"gamma": 0.5, "normalize": normalize}
    np.testing.assert_allclose(
        expected_kernel(Gaussians(X, cov=Covariances.low_rank(F, added)), **options),
        expected_kernel(Gaussians(X, variance=variance), **options),
        rtol=1e-10,
    )
