"""Linear maps of covariances: every kind against A S A' of dense matrices, in the smallest kind."""

import tracemalloc

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, DTYPES, each, in_pairs
from scipy import sparse

from halosvm import Covariances

N, D = 7, 5


def matrices(rng):
    """Return maps of all patterns, by what they do."""
    orthonormal = np.linalg.qr(rng.normal(size=(D, D)))[0]
    scales = rng.uniform(0.5, 2.0, D)
    groups = np.zeros((2, D))
    groups[0, [0, 3]], groups[1, 1:3] = rng.normal(size=2), rng.normal(size=2)
    return {
        "common factor": 3.0 * np.eye(D),
        "scaling": np.diag(scales),
        "selection": np.eye(D)[[4, 1]],
        "scaled selection": np.diag(scales)[[3, 0, 2]],
        "repetition": np.eye(D)[[1, 1, 2]],
        "sums of groups": groups,
        "rotation": orthonormal,
        "projection": orthonormal[:3],
        "any, to fewer": rng.normal(size=(3, D)),
        "any, to more": rng.normal(size=(9, D)),
        "nothing": np.zeros((2, D)),
        "one row": rng.normal(size=(1, D)),
    }


MATRICES = matrices(np.random.default_rng(0))


def dense_image(covariances, A):
    S, each = covariances.to_full(), np.broadcast_to(A, (N, *A.shape[-2:]))
    return np.array([a @ s @ a.T for a, s in zip(each, S, strict=True)])


@pytest.fixture(name="A", params=MATRICES)
def map_of(request):
    """Return a map of each pattern."""
    return MATRICES[request.param]


def assert_image(mapped, expected, dtype):
    assert mapped.shape == (N, expected.shape[1])
    tolerance = 1e-12 if dtype is np.float64 else 2e-6
    np.testing.assert_allclose(
        mapped.to_full(), expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1e-3)
    )
    mapped.core_view().check("mapped")


@in_pairs
@each("A", MATRICES.values())
@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_every_kind_maps_as_its_dense_matrices(make_covariances, kind, dtype, A):
    S = make_covariances(kind, N, D, np.random.default_rng(1), dtype)
    for form in (A, sparse.csr_array(A)):
        mapped = S.mapped(form)
        assert_image(mapped, dense_image(S, A), dtype)
        assert mapped.certain or mapped.dtype == S.dtype


@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_every_kind_maps_by_a_matrix_of_each_example(make_covariances, kind, dtype):
    rng = np.random.default_rng(2)
    S = make_covariances(kind, N, D, rng, dtype)
    apart = np.zeros((N, 3, D))
    apart[:, [0, 1, 2], [4, 0, 2]] = rng.normal(size=(N, 3))
    for own in (rng.normal(size=(N, 3, D)), rng.normal(size=(N, 12, D)), apart):
        assert_image(S.mapped(own), dense_image(S, own), dtype)


FULL_FROM_INDEPENDENT = {"repetition", "rotation", "projection", "any, to fewer"}
KINDS_OF_IMAGES = {
    "isotropic": {"repetition": "full", "scaling": "diagonal", "scaled selection": "diagonal"}
    | {"sums of groups": "diagonal", "any, to fewer": "full", "any, to more": "low_rank"},
    "diagonal": dict.fromkeys(FULL_FROM_INDEPENDENT, "full") | {"any, to more": "low_rank"},
    "low_rank_diagonal": dict.fromkeys(FULL_FROM_INDEPENDENT, "full"),
}


@each("form", MATRICES)
@each("stored", ["zero", "isotropic", "diagonal", "low_rank", "full"])
def test_the_smallest_kind_that_holds_the_image_is_kept(make_covariances, stored, form):
    S = make_covariances(stored, N, D, np.random.default_rng(3))
    expected = KINDS_OF_IMAGES.get(stored, {}).get(form, stored)
    assert S.mapped(MATRICES[form]).kind == expected
    assert S.mapped(sparse.csr_array(MATRICES[form])).kind == expected


@pytest.mark.parametrize("form", MATRICES)
def test_factors_with_a_diagonal_stay_low_rank_unless_full_is_smaller(make_covariances, form):
    S = make_covariances("low_rank_diagonal", N, D, np.random.default_rng(4))
    expected = KINDS_OF_IMAGES["low_rank_diagonal"].get(form, "low_rank")
    assert S.mapped(MATRICES[form]).kind == expected
    many = np.random.default_rng(5).normal(size=(9, D))  # for 3 factors and 5 variances
    assert S.mapped(many).kind == "low_rank"
    assert S.mapped(many[:8]).kind == "full"


def test_standard_deviations_stay_so_where_each_feature_is_read_alone(make_covariances):
    for stored in ("isotropic_std", "diagonal_std"):
        S = make_covariances(stored, N, D, np.random.default_rng(6))
        assert S.mapped(MATRICES["scaled selection"]).squared
    S = Covariances.from_std(np.full((N, D), 1e-170))
    np.testing.assert_allclose(S.mapped(2e170 * np.eye(D)).variances(), 4.0)
    S = Covariances.from_std(np.full(N, 1e60), D)
    np.testing.assert_allclose(S.mapped(1e-200 * np.eye(D)).values, 1e-140)


def test_certain_rows_stay_certain(make_covariances, A):
    rng = np.random.default_rng(7)
    for stored in ("diagonal", "low_rank", "low_rank_diagonal", "full"):
        S = make_covariances(stored, N, D, rng)
        parts = [S[:3], Covariances.zero(1, D), S[4:]]
        mapped = Covariances.concatenate(parts).mapped(A)
        assert not mapped[3].any()


def test_what_cancels_is_no_negative_variance():
    rng = np.random.default_rng(8)
    u = rng.normal(size=(50, 3))
    S = Covariances.full(np.einsum("ni,nj->nij", u, u))
    away = np.array([np.cross(row, rng.normal(size=3)) for row in u])  # normal to each u
    S.mapped(away[:, np.newaxis]).core_view().check("mapped")
    assert (S.mapped(away[:, np.newaxis]).values >= 0).all()


def test_memory_is_that_of_the_result(peak_memory_of):
    n, d = 20000, 20
    rng = np.random.default_rng(9)
    F = rng.normal(size=(n, d, 2))
    S = Covariances.full(F @ F.transpose(0, 2, 1) + np.eye(d))
    A = rng.normal(size=(3, d))
    result = n * 9 * 8
    assert peak_memory_of(lambda: S.mapped(A)) < result + 60e6  # the covariances hold 64 MB
    one = Covariances.diagonal(rng.uniform(size=(n, 400)))
    wide = rng.normal(size=(10, 400))
    assert peak_memory_of(lambda: one.mapped(wide)) < n * 100 * 8 + 30e6


@each("A", MATRICES.values())
@each("kind", COVARIANCE_KINDS)
def test_no_examples_map_to_none(make_covariances, kind, A):
    S = make_covariances(kind, N, D, np.random.default_rng(10))[:0]
    assert S.mapped(A).shape == (0, len(A))


@pytest.fixture
def peak_memory_of():
    """Return what measures the bytes that NumPy takes at most during a call."""

    def measure(call):
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure
