"""Truncated covariances against NumPy's eigendecomposition and the bounds of the mathematics."""

import pickle

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, DTYPES, each, in_pairs

from halosvm import Covariances, Gaussians, UncertainSVC, _core, reference
from halosvm.gaussians.subspace import project_means


def spectrum_batch(spectra, seed=0, dtype=np.float64):
    """Return full matrices with given eigenvalues (n, d) and random eigenvectors."""
    spectra = np.atleast_2d(spectra)
    rng = np.random.default_rng(seed)
    n, d = spectra.shape
    Q = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    S = (Q * spectra[:, None, :]) @ Q.transpose(0, 2, 1)
    return ((S + S.transpose(0, 2, 1)) / 2).astype(dtype)


def rank_of(eigenvalues, p):
    """Spec B written out, for exact eigenvalues in any order."""
    values = np.sort(np.asarray(eigenvalues, float))[::-1]
    positive = np.count_nonzero(values > 0)
    if p == 1:
        return positive
    rank = 0
    while rank < positive and values[:rank].sum() < p * values.sum() * (1 - 1e-12):
        rank += 1
    while 0 < rank < positive and values[rank] >= values[rank - 1] * (1 - 1e-10):
        rank += 1
    return rank


def truncated_by_numpy(S, rank):
    eigenvalues, U = np.linalg.eigh(np.asarray(S, float))
    F = U[:, ::-1][:, :rank] * np.sqrt(np.maximum(eigenvalues[::-1][:rank], 0))
    return F @ F.T


def ranks_of(batch):
    if batch.offsets is not None:
        return np.diff(batch.offsets).tolist()
    return [batch.values.shape[2]] * len(batch)


DECAYS = {
    "geometric": lambda d: 0.9 ** np.arange(d),
    "fast": lambda d: 0.6 ** np.arange(d),
    "power": lambda d: (1.0 + np.arange(d)) ** -2,
    "slow": lambda d: (1.0 + np.arange(d)) ** -0.5,
    "spikes": lambda d: np.where(np.arange(d) < 5, 50.0 + np.arange(d), 0.1),
    "flat": lambda d: 1 + 0.3 * np.cos(np.arange(d)),
}


# ---- full ------------------------------------------------------------------------------------


@in_pairs
@each("p", [0.2, 0.5, 0.9, 0.999, 1.0])
@each("d", [1, 2, 7, 60, 200])
@each("decay", DECAYS)
def test_full_matrices_are_truncated_as_numpy_does(decay, d, p):
    spectrum = DECAYS[decay](d)
    S = spectrum_batch([spectrum] * 3)
    batch = Covariances.full(S).truncate(p)
    assert batch.kind == "low_rank"
    values = np.sort(spectrum)[::-1]
    values[values <= d * np.finfo(float).eps * values[0]] = 0.0
    rank = rank_of(values, p)
    assert ranks_of(batch) == [rank] * 3
    for i in range(3):
        F = batch[i : i + 1].values.reshape(d, rank)
        assert np.abs(F @ F.T - truncated_by_numpy(S[i], rank)).max() < 1e-10 * values[0]
        gram = F.T @ F
        assert np.abs(gram - np.diag(values[:rank])).max() < 1e-9 * values[0]  # orthogonal columns


def test_ranks_differ_between_examples_and_nothing_is_padded():
    spectra = np.zeros((6, 8))
    for i in range(6):
        spectra[i, : i + 1] = 1.0 + np.arange(i + 1)
    batch = Covariances.full(spectrum_batch(spectra)).truncate(1.0)
    assert ranks_of(batch) == [1, 2, 3, 4, 5, 6]
    assert batch.values.size == 8 * 21
    assert ranks_of(pickle.loads(pickle.dumps(batch))[2:4]) == [3, 4]


@pytest.mark.parametrize("d", [20, 70, 200])
def test_tied_eigenvalues_are_kept_together(d):
    spectrum = np.r_[10.0, [3.0] * 9, 0.01 ** np.arange(1, d - 9)]
    S = spectrum_batch(spectrum)
    for p, rank in ((0.25, 1), (0.3, 10), (0.5, 10), (0.9, 10)):
        batch = Covariances.full(S).truncate(p)
        assert ranks_of(batch) == [rank]
        expected = truncated_by_numpy(S[0], rank)
        assert np.abs(batch.to_full()[0] - expected).max() < 1e-9


@pytest.mark.parametrize("d", [5, 60, 200])
def test_identity_and_zero_matrices(d):
    batch = Covariances.full(np.stack([np.eye(d), np.zeros((d, d))])).truncate(0.4)
    assert ranks_of(batch) == [d, 0]
    np.testing.assert_allclose(batch.to_full()[0], np.eye(d), atol=1e-12)
    assert ranks_of(Covariances.full(np.zeros((2, d, d))).truncate(1.0)) == [0, 0]


def test_a_fraction_that_a_sum_meets_exactly_needs_no_more():
    S = np.diag([2.0, 2.0, 1.0, 1.0])[None]
    assert ranks_of(Covariances.full(S).truncate(2 / 6)) == [2]
    assert ranks_of(Covariances.full(S).truncate(4 / 6)) == [2]
    assert ranks_of(Covariances.full(S).truncate(4.001 / 6)) == [4]


@pytest.mark.parametrize("rank", [1, 3, 40])
def test_rank_deficient_matrices_have_their_rank_at_p_one(rank):
    F = np.random.default_rng(1).normal(size=(4, 60, rank))
    S = F @ F.transpose(0, 2, 1)
    batch = Covariances.full(S).truncate(1.0)
    assert ranks_of(batch) == [rank] * 4
    np.testing.assert_allclose(batch.to_full(), S, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e140])
def test_the_scale_does_not_matter(scale):
    S = spectrum_batch(DECAYS["geometric"](200))
    batch = Covariances.full(scale * S).truncate(0.8)
    expected = Covariances.full(S).truncate(0.8)
    assert ranks_of(batch) == ranks_of(expected)
    np.testing.assert_allclose(batch.to_full() / scale, expected.to_full(), atol=1e-10)


@pytest.mark.parametrize("d", [9, 60, 200])
def test_float32_stays_float32(d):
    S = spectrum_batch([DECAYS["geometric"](d), DECAYS["fast"](d)], dtype=np.float32)
    for p in (0.8, 1.0):
        batch = Covariances.full(S).truncate(p)
        assert batch.dtype == np.float32
        for i, rank in enumerate(ranks_of(batch)):
            assert np.abs(batch[i] - truncated_by_numpy(S[i], rank)).max() < 3e-6
            # eigenvalues that rounding to float32 has made are not kept
            values = np.linalg.eigvalsh(S[i].astype(float))[::-1]
            assert values[rank - 1] > d * 2.0**-24


@pytest.mark.parametrize("d", [30, 200])
def test_the_result_is_that_of_one_thread_and_of_one_example(d):
    S = spectrum_batch(np.array([DECAYS[name](d) for name in DECAYS] * 3))
    S.flags.writeable = False
    batch = Covariances.full(S)
    one, many = batch.truncate(0.9, n_threads=1), batch.truncate(0.9, n_threads=7)
    assert (one.values == many.values).all()
    assert (one.offsets == many.offsets).all()
    assert (batch[4:5].truncate(0.9).to_full()[0] == one[4]).all()


# ---- diagonal, low_rank and the others -------------------------------------------------------


@in_pairs
@each("dtype", DTYPES)
@each("p", [0.1, 0.5, 0.9, 1.0])
@each("squared", [False, True])
def test_diagonals_keep_their_largest_variances(p, squared, dtype):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 6, (50, 9)).astype(dtype)
    values[3] = 0
    batch = (Covariances.from_std if squared else Covariances.diagonal)(values)
    kept = batch.truncate(p)
    assert kept.kind == "diagonal"
    assert (kept.dtype, kept.squared) == (dtype, squared)
    for before, after in zip(batch.variances(), kept.variances(), strict=True):
        rank = rank_of(before, p)
        least = np.sort(before)[::-1][rank - 1] if rank else np.inf
        np.testing.assert_array_equal(after, np.where(before >= least, before, 0))
    assert not kept.variances()[3].any()


@in_pairs
@each("dtype", DTYPES)
@each("p", [0.3, 0.8, 1.0])
@each("d", [3, 12, 300])
@each("with_diagonal", [False, True])
def test_factors_are_truncated_as_their_matrices(p, d, with_diagonal, dtype):
    rng = np.random.default_rng(3)
    factors = [(rng.normal(size=(d, r)) * 0.7 ** np.arange(r)).astype(dtype) for r in (0, 1, 4, 6)]
    factors.append(np.repeat(factors[3][:, :3], 2, axis=1))  # rank 3 in 6 columns
    added = rng.uniform(0.1, 1, (5, d)).astype(dtype) if with_diagonal else None
    kept = Covariances.low_rank(factors, added).truncate(p)
    assert kept.dtype == dtype
    for i, factor in enumerate(factors):
        S = factor.astype(float) @ factor.astype(float).T
        eigenvalues = np.linalg.eigvalsh(S)
        eigenvalues[eigenvalues <= 1e-6 * max(eigenvalues[-1], 1e-300)] = 0
        rank = rank_of(eigenvalues, p)
        assert ranks_of(kept)[i] == rank
        expected = truncated_by_numpy(S, rank) + (0 if added is None else np.diag(added[i]))
        tolerance = 1e-12 if dtype == np.float64 else 3e-6
        np.testing.assert_allclose(kept[i], expected, atol=tolerance * max(1, eigenvalues[-1]))


def test_few_columns_never_cost_a_matrix_of_all_features():
    d = 100_000  # a matrix would take 80 GB
    factors = np.random.default_rng(4).normal(size=(2, d, 3)) * [3.0, 1.0, 0.1]
    kept = Covariances.low_rank(factors).truncate(0.99)
    assert kept.values.shape == (2, d, 2)
    np.testing.assert_allclose(kept.trace(), (factors[..., :2] ** 2).sum(axis=(1, 2)), rtol=0.01)


def test_isotropic_and_zero_stay_as_they_are():
    for batch in (Covariances.zero(3, 4), Covariances.isotropic([1.0, 0.0, 2.0], 4)):
        kept = batch.truncate(0.5)
        assert (kept.to_full() == batch.to_full()).all()
        assert kept.kind == batch.kind


def test_an_empty_batch_stays_empty():
    for batch in (Covariances.full(np.zeros((0, 3, 3))), Covariances.diagonal(np.zeros((0, 3)))):
        assert batch.truncate(0.5).shape == (0, 3)


# ---- losses and gradients --------------------------------------------------------------------


@each("kind", COVARIANCE_KINDS)
def test_p_one_reproduces_every_loss_and_gradient(kind, make_gaussians):
    X, y = make_gaussians(kind, n=40, d=6)
    T = X.truncate(1.0)
    rng = np.random.default_rng(5)
    codes = (y > 0).astype(np.int16)
    for _ in range(5):
        W, b = rng.normal(size=(1, 6)), rng.normal(size=1)
        values = [
            (at.value, at.coef, at.intercept)
            for at in (_core.Objective(Z.core_view(), codes, 1, None, 0.1)(W, b) for Z in (X, T))
        ]
        for full, kept in zip(*values, strict=True):
            np.testing.assert_allclose(kept, full, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
def test_the_loss_falls_by_no_more_than_the_bound(p):
    rng = np.random.default_rng(6)
    n, d = 40, 12
    S = Covariances.full(spectrum_batch(rng.exponential(size=(n, d)) ** 3))
    T = S.truncate(p)
    ordered = np.linalg.eigvalsh(S.values)[:, ::-1]
    following = np.array(
        [np.r_[row, 0.0][rank] for row, rank in zip(ordered, ranks_of(T), strict=True)]
    )
    for _ in range(20):
        w, m = rng.normal(size=d), rng.normal(size=n)
        s, t = (np.sqrt(np.einsum("i,nij,j->n", w, batch.to_full(), w)) for batch in (S, T))
        lost = reference.expected_hinge(m, s)[0] - reference.expected_hinge(m, t)[0]
        assert (lost > -1e-13).all()
        assert (lost <= (s - t) / np.sqrt(2 * np.pi) + 1e-13).all()
        assert (s**2 - t**2 <= following * (w @ w) * (1 + 1e-10) + 1e-13).all()
    kept, total = T.trace(), S.trace()
    assert (kept >= p * total * (1 - 1e-10)).all()


# ---- projected means -------------------------------------------------------------------------


@each("dtype", DTYPES)
@each("kind", COVARIANCE_KINDS)
def test_projected_means_are_those_of_the_pseudo_inverse(kind, make_gaussians, dtype):
    X, _ = make_gaussians(kind, n=20, d=5, dtype=dtype)
    if kind in ("low_rank_diagonal", "ragged_diagonal"):
        with pytest.raises(ValueError, match="without an added diagonal"):
            X.truncate(0.7, mean="project")
        return
    T = X.truncate(0.7, mean="project")
    assert T.mean.dtype == dtype
    for i in range(20):
        S = T.covariances[i]
        projection = S @ np.linalg.pinv(S, rcond=1e-5, hermitian=True)
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(T.mean[i], projection @ X.mean[i], atol=tolerance)
    assert (X.truncate(0.7).mean == X.mean).all()


def test_projecting_loses_a_class_direction_that_is_certain():
    rng = np.random.default_rng(7)
    y = np.arange(200) % 2
    mean = rng.normal(size=(200, 4)) * 0.1
    mean[:, 0] += 2.0 * y - 1.0  # known exactly, and all that tells the classes apart
    X = Gaussians(mean, std=np.tile([0.0, 1.0, 1.0, 1.0], (200, 1)))
    keep = UncertainSVC(subspace=0.9).fit(X, y)
    project = UncertainSVC(subspace=0.9, subspace_mean="project").fit(X, y)
    assert keep.score(X.mean, y) == 1.0
    assert abs(project.coef_[0, 0]) < 1e-6
    assert np.abs(project_means(X.mean, X.covariances)[:, 0]).max() == 0.0


# ---- the estimator and bad input -------------------------------------------------------------


def test_the_estimator_truncates_before_it_fits(make_gaussians):
    X, y = make_gaussians("full", n=60, d=5, scale=0.3)
    a = UncertainSVC(subspace=0.6, tol=1e-9).fit(X, y)
    b = UncertainSVC(tol=1e-9).fit(X.truncate(0.6), y)
    assert (a.coef_ == b.coef_).all()
    assert a.objective_ <= UncertainSVC(tol=1e-9).fit(X, y).objective_
    whole = UncertainSVC(subspace=1.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(whole.objective_, UncertainSVC(tol=1e-9).fit(X, y).objective_, 3e-9)
    by_array = UncertainSVC(subspace=0.6, tol=1e-9).fit(X.mean, y, X_cov=X.covariances.values)
    assert (by_array.coef_ == a.coef_).all()


@pytest.mark.parametrize("p", [0.0, -0.5, 1.5, np.nan, np.inf])
def test_fractions_outside_of_their_range_are_refused(p, make_gaussians):
    X, y = make_gaussians("full", n=6, d=2)
    with pytest.raises(ValueError, match="p must be above 0 and at most 1"):
        X.truncate(p)
    with pytest.raises(ValueError, match="subspace must be above 0 and at most 1"):
        UncertainSVC(subspace=p).fit(X, y)
    for truncate in (_core.truncate, _core.truncate_float32):
        with pytest.raises(ValueError, match="p must be above 0 and at most 1"):
            truncate(X.covariances.core_view(), p)


@pytest.mark.parametrize("p", ["0.5", None, True, [0.5]])
def test_fractions_that_are_no_numbers_are_refused(p, make_gaussians):
    X, y = make_gaussians("diagonal", n=6, d=2)
    with pytest.raises(TypeError, match="p must be a number"):
        X.covariances.truncate(p)
    if p is not None:
        with pytest.raises(TypeError, match="subspace must be a number"):
            UncertainSVC(subspace=p).fit(X, y)


def test_unknown_means_and_kinds_are_refused(make_gaussians):
    X, y = make_gaussians("diagonal", n=6, d=2)
    with pytest.raises(ValueError, match="mean must be one of keep, project; got 'drop'"):
        X.truncate(0.5, mean="drop")
    with pytest.raises(ValueError, match="subspace_mean must be one of keep, project"):
        UncertainSVC(subspace_mean=1).fit(X, y)
    with pytest.raises(ValueError, match="covariances are diagonal, expected full or low_rank"):
        _core.truncate(X.covariances.core_view(), 0.5)
    with pytest.raises(ValueError, match="covariances are zero, expected diagonal"):
        _core.truncate_diagonal(Covariances.zero(2, 2).core_view(), 0.5)


def test_bad_numbers_of_threads_are_refused():
    for batch in (Covariances.diagonal(np.ones((2, 3))), Covariances.full(np.array([np.eye(3)]))):
        with pytest.raises(TypeError, match="n_threads must be an integer, got 'a'"):
            batch.truncate(0.5, n_threads="a")
        with pytest.raises(ValueError, match="n_threads must be >= 1, got -1"):
            batch.truncate(0.5, n_threads=-1)


def test_bad_numbers_of_threads_are_refused_in_predictions():
    clf = UncertainSVC().fit([[0.0], [1.0]], [0, 1]).set_params(n_threads=0)
    for function in (clf.decision_function, clf.decision_std):
        with pytest.raises(ValueError, match="n_threads must be >= 1, got 0"):
            function([[0.5]])
