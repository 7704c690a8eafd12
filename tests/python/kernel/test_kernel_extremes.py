"""Expected kernels of very uncertain Gaussians and of examples far from all others."""

import mpmath
import numpy as np
import pytest
from cases import each, in_pairs
from sklearn.metrics import pairwise

from halosvm import Covariances, Gaussians, expected_kernel

SMOOTH = ("zero", "isotropic", "diagonal", "low_rank", "low_rank_diagonal", "full")


# -- examples far from all others ----------------------------------------------------------------


@in_pairs
@each("far", [1e6, -1e9, 1e12, 1e16, -1e20])
@each("n_far", [1, 40])
@each("kind", SMOOTH)
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


@each("scale", [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@each("diagonal", [None, np.array([0.0, 0.01, 3.0, 1e4])])
@each("rank", [1, 2, 3])
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


# -- full matrices far beyond the bandwidth ------------------------------------------------------


def matrices(shape, scale, d, rng):
    """Return four matrices F F' of integers times powers of two, which are exact."""
    F = rng.integers(-8, 9, size=(4, d, d)).astype(float)
    F[0, 0, 0] = 9.0  # no factor is 0
    if shape == "one direction each":
        F[:, :, 1:] = 0.0
    elif shape == "one direction of all":
        F[:, :, 1:] = 0.0
        F[1:] = F[:1] * np.array([2.0, -1.0, 4.0])[:, None, None]
    elif shape == "two directions of all":
        F[:, :, 2:] = 0.0
        F[1:] = F[:1] * np.array([2.0, 1.0, 4.0])[:, None, None]
    elif shape == "wide and narrow features":
        F[:, 1:] /= scale
        F[:, 1:, 0] = 0.0
    F *= scale
    return F @ F.transpose(0, 2, 1)


def exact_exponents(X, S, Y=None, T=None):
    """Return -log of the kernels of exp(-|x - y|^2 / 2) in as many digits as they need."""
    Y, T = (X, S) if Y is None else (Y, T)
    out = np.empty((len(X), len(Y)), object)
    with mpmath.workdps(700):
        for i, j in np.ndindex(*out.shape):
            B = mpmath.eye(X.shape[1]) + mpmath.matrix(S[i].tolist()) + mpmath.matrix(T[j].tolist())
            d = mpmath.matrix(X[i].tolist()) - mpmath.matrix(Y[j].tolist())
            out[i, j] = (mpmath.log(mpmath.det(B)) + (d.T * mpmath.lu_solve(B, d))[0]) / 2
    return out


SHAPES = (
    "all directions",
    "one direction each",
    "one direction of all",
    "two directions of all",
    "wide and narrow features",
)


@in_pairs
@each("power", [0, 10, 20, 27, 30, 40, 60, 120, 230])
@each("shape", SHAPES)
@each("other", ["same", "certain", "diagonal", "low_rank", "narrow"])
def test_wide_matrices_equal_mpmath(other, shape, power):
    rng = np.random.default_rng(power)
    scale, d = 2.0**power, 4
    S = matrices(shape, scale, d, rng)
    X, Y = rng.integers(-3, 4, size=(2, 4, d)) / 2.0
    x, y, T = Gaussians(X, cov=Covariances.full(S)), None, None
    if other == "certain":
        y, T = Gaussians(Y), np.zeros_like(S)
    elif other == "diagonal":
        variances = rng.choice([0.0, 0.25, 3.0, 1024.0], size=(4, d))
        y, T = Gaussians(Y, variance=variances), variances[:, :, None] * np.eye(d)
    elif other == "low_rank":
        F = scale * rng.integers(1, 5, size=(4, d, 1)).astype(float)
        y, T = Gaussians(Y, cov=Covariances.low_rank(F)), F @ F.transpose(0, 2, 1)
    elif other == "narrow":
        T = matrices("all directions", 0.25, d, rng)
        y = Gaussians(Y, cov=Covariances.full(T))
    exact = exact_exponents(X, S) if y is None else exact_exponents(X, S, Y, T)
    expected = np.array([[float(mpmath.exp(-v)) for v in row] for row in exact])
    for pair, transposed in (((x, y), False), ((y, x), True)):
        if pair[0] is None:
            continue
        K = expected_kernel(*pair, gamma=0.5)
        K = K.T if transposed else K
        seen = expected > 1e-300
        np.testing.assert_allclose(K[seen], expected[seen], rtol=1e-10)
        assert (K[~seen] < 1e-299).all()
    if y is None:
        normalised = expected_kernel(x, gamma=0.5, normalize=True)
        own = exact.diagonal() / 2
        with mpmath.workdps(30):
            expected = [
                [float(mpmath.exp(own[i] + own[j] - exact[i, j])) for j in range(4)]
                for i in range(4)
            ]
        np.testing.assert_allclose(normalised, expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("shape", SHAPES)
def test_wide_matrices_in_units_of_a_tiny_bandwidth_equal_mpmath(shape):
    unit, d = 2.0**-230, 4
    rng = np.random.default_rng(0)
    S = matrices(shape, 2.0**230, d, rng)  # 1e138 times the bandwidth
    X = rng.integers(-3, 4, size=(4, d)) / 2.0
    x = Gaussians(X * unit, cov=Covariances.full(S))
    K = expected_kernel(x, gamma=0.5 / unit**2, normalize=True)
    exact = exact_exponents(X, S / unit**2)
    own = exact.diagonal() / 2
    with mpmath.workdps(30):
        expected = [
            [float(mpmath.exp(own[i] + own[j] - exact[i, j])) for j in range(4)] for i in range(4)
        ]
    np.testing.assert_allclose(K, expected, rtol=1e-10, atol=1e-300)


def test_matrices_that_overflow_in_units_of_the_bandwidth_have_a_kernel_of_zero():
    S = 1e140 * np.array([np.eye(3), np.ones((3, 3))])
    for other in (None, np.zeros((2, 3))):
        K = expected_kernel(
            Gaussians(np.zeros((2, 3)), cov=Covariances.full(S)), other, gamma=1e300
        )
        assert (K == 0.0).all()
