"""UncertainStandardScaler: what it measures, and that errors stay with their features."""

import pickle

import numpy as np
import pytest
from cases import DTYPES, KINDS, each
from estimator_checks import pass_checks
from scipy import sparse
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import (
    EmpiricalBayes,
    GaussianMixtures,
    Gaussians,
    UncertainStandardScaler,
    UncertainSVC,
)

N, D = 40, 3
SCALES = np.array([1e-3, 1.0, 500.0])


@pytest.mark.parametrize(
    "estimator",
    [
        UncertainStandardScaler(),
        UncertainStandardScaler(variance="total"),
        UncertainStandardScaler(with_mean=False, variance="true"),
        UncertainStandardScaler(with_std=False),
    ],
    ids=repr,
)
def test_transformer_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


@pytest.fixture(name="X")
def examples(make_covariances, kind, dtype):
    """Return examples of every kind, of features of very different size."""
    return _examples(make_covariances, kind, dtype)


def _examples(make_covariances, kind, dtype=np.float64):
    rng = np.random.default_rng(0)
    mean = (rng.normal(size=(N, D)) + 2.0) * SCALES
    covariances = make_covariances(kind, N, D, rng, dtype, scale=0.1)
    return Gaussians(mean.astype(dtype), cov=covariances)


def test_it_equals_scaling_by_hand_for_every_kind(X):
    t, centre = X.mean.std(axis=0, dtype=np.float64), X.mean.mean(axis=0, dtype=np.float64)
    scaled = UncertainStandardScaler().fit_transform(X)
    tolerance = 1e-12 if X.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(scaled.mean, (X.mean - centre) / t, rtol=0, atol=10 * tolerance)
    expected = X.covariances.to_full() / np.outer(t, t)
    size = np.sqrt(np.einsum("nii->ni", expected))
    error = np.abs(scaled.covariances.to_full() - expected)
    assert (error <= tolerance * size[:, :, None] * size[:, None, :]).all()
    assert scaled.dtype == X.dtype
    assert scaled.covariances.certain or scaled.covariances.dtype == X.covariances.dtype
    kept = "diagonal" if X.covariances.kind == "isotropic" else X.covariances.kind
    assert scaled.covariances.kind == kept


@each("kind", KINDS)
def test_a_machine_after_it_equals_one_on_data_scaled_by_hand(make_covariances, kind):
    X = _examples(make_covariances, kind)
    y = np.where(X.mean[:, 1] + np.arange(N) % 3 > 3, 1, 0)
    t, centre = X.mean.std(axis=0), X.mean.mean(axis=0)
    means = (X.mean - centre) / t
    pipeline = make_pipeline(UncertainStandardScaler(), UncertainSVC()).fit(X, y)
    scaled = pipeline[:-1].transform(X)
    machine = UncertainSVC().fit(Gaussians(means, cov=X.covariances.scaled(1 / t)), y)
    np.testing.assert_allclose(pipeline[-1].coef_, machine.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        pipeline.decision_function(X), machine.decision_function(means), rtol=0, atol=1e-10
    )
    dense = Gaussians(means, cov=X.covariances.to_full() / np.outer(t, t))
    np.testing.assert_allclose(
        machine.decision_std(scaled), machine.decision_std(dense), rtol=1e-10, atol=1e-10
    )
    exact = UncertainSVC(tol=1e-13)
    np.testing.assert_allclose(
        clone(exact).fit(scaled, y).objective_, exact.fit(dense, y).objective_, rtol=1e-10
    )


@each("dtype", DTYPES)
def test_its_means_and_scales_are_those_of_scikit_learn(dtype):
    x = ((np.random.default_rng(1).normal(size=(200, D)) + 3.0) * SCALES).astype(dtype)
    weights = np.arange(200) % 4
    ours = UncertainStandardScaler().fit(x, sample_weight=weights)
    theirs = StandardScaler().fit(x.astype(np.float64), sample_weight=weights)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-12)
    rtol = 1e-6 if dtype is np.float32 else 1e-12
    plain = UncertainStandardScaler().fit_transform(x)
    np.testing.assert_allclose(plain, StandardScaler().fit_transform(x), rtol=rtol, atol=50 * rtol)
    assert plain.dtype == dtype


def test_without_mean_or_std_it_leaves_them():
    X = Gaussians(np.array([[1.0, 4.0], [3.0, 0.0]]), std=np.array([[1.0, 2.0], [3.0, 4.0]]))
    centred = UncertainStandardScaler(with_std=False).fit(X)
    np.testing.assert_array_equal(centred.scale_, 1.0)
    np.testing.assert_array_equal(centred.transform(X).mean, [[-1, 2], [1, -2]])
    np.testing.assert_array_equal(centred.transform(X).covariances.values, X.covariances.values)
    divided = UncertainStandardScaler(with_mean=False).fit_transform(X)
    np.testing.assert_array_equal(divided.mean, [[1, 2], [3, 0]])
    np.testing.assert_array_equal(divided.covariances.values, [[1, 1], [3, 2]])


@each("kind", KINDS)
def test_total_variance_is_that_of_draws_from_all_examples(make_covariances, kind):
    X = _examples(make_covariances, kind)
    weights = np.random.default_rng(2).integers(1, 4, N)
    scaler = UncertainStandardScaler(variance="total").fit(X, sample_weight=weights)
    rng = np.random.default_rng(3)
    draws = 5000
    roots = np.linalg.cholesky(X.covariances.to_full() + 1e-15 * np.eye(D))
    rows = np.repeat(np.arange(N), weights)
    sample = X.mean[rows] + np.einsum(
        "nij,knj->kni", roots[rows], rng.normal(size=(draws, len(rows), D))
    )
    np.testing.assert_allclose(scaler.scale_, sample.std(axis=(0, 1)), rtol=4 / np.sqrt(draws))


def test_true_variance_is_that_of_the_values_behind_the_measurements():
    rng = np.random.default_rng(4)
    n = 40000
    truth = rng.normal(size=(n, D)) * SCALES + 5.0 * SCALES
    std = rng.uniform(0.2, 1.5, (n, D)) * SCALES
    X = Gaussians(truth + std * rng.normal(size=(n, D)), std=std)
    scale = UncertainStandardScaler(variance="true").fit(X).scale_
    # the variance of the means, about 2, errs by sqrt(2 / n) of it, and a scale by half of that
    np.testing.assert_allclose(scale, SCALES, rtol=5 * np.sqrt(2 / n))
    assert (UncertainStandardScaler().fit(X).scale_ > 1.2 * SCALES).all()


def test_true_variance_of_no_spread_is_its_standard_error_and_told():
    rng = np.random.default_rng(5)
    n = 200
    x = np.column_stack([rng.normal(size=n), 0.5 * rng.normal(size=n), np.ones(n), np.arange(n)])
    std = np.column_stack([np.full(n, 2.0), np.ones(n), np.zeros(n), np.ones(n)])
    with pytest.warns(UserWarning, match=r"errors of 2 features \(0, 1\) explain all"):
        scaler = UncertainStandardScaler(variance="true").fit(x, X_std=std)
    least = np.sqrt(std[0, :2] ** 2 * np.sqrt(2 / n))
    np.testing.assert_allclose(scaler.scale_[:2], least, rtol=1e-5)
    expected = [1.0, np.sqrt(x[:, 3].var(ddof=1) - 1)]
    np.testing.assert_allclose(scaler.scale_[2:], expected, rtol=1e-10)


@pytest.mark.parametrize("size", [1e-140, 1.0, 1e70])
def test_true_variance_solves_the_equation_of_paule_and_mandel(size):
    rng = np.random.default_rng(8)
    n, weights = 60, rng.integers(1, 4, 60)
    std = rng.lognormal(0.0, 1.0, n)
    x = 3.0 * rng.normal(size=n) + std * rng.normal(size=n) + 7.0

    def excess(variance):
        w = weights / (variance + std**2)
        return w @ (x - w @ x / w.sum()) ** 2 - (weights.sum() - 1)

    variance = brentq(excess, 1e-3, 1e3, xtol=1e-14)
    w = weights / (variance + std**2)
    scaler = UncertainStandardScaler(variance="true")
    scaler.fit(size * x[:, None], X_std=size * std[:, None], sample_weight=weights)
    assert scaler.scale_[0] / size == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert scaler.mean_[0] / size == pytest.approx(w @ x / w.sum(), rel=1e-9)


def test_true_variance_of_certain_values_is_their_sample_variance():
    x = np.random.default_rng(9).normal(size=(30, D)) + 100.0
    scaler = UncertainStandardScaler(variance="true").fit(x)
    np.testing.assert_allclose(scaler.scale_, x.std(axis=0, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(scaler.mean_, x.mean(axis=0), rtol=1e-12)


def test_constant_features_are_only_shifted_however_their_numbers_are_rounded():
    x = np.column_stack([np.full(30, 0.1), np.arange(30.0)])
    scaler = UncertainStandardScaler().fit(x, X_std=np.full((30, 2), 0.5))
    assert scaler.scale_[0] == 1.0
    scaled = scaler.transform(x, X_std=np.full((30, 2), 0.5))
    np.testing.assert_array_equal(scaled.mean[:, 0], 0.0)
    np.testing.assert_array_equal(scaled.covariances.values[:, 0], 0.5)
    total = UncertainStandardScaler(variance="total").fit(x, X_std=np.full((30, 2), 0.5))
    assert total.scale_[0] == pytest.approx(0.5, rel=1e-15)


def test_weights_are_repetitions_and_0_is_absent():
    rng = np.random.default_rng(6)
    x, std = rng.normal(size=(20, 2)), rng.uniform(size=(20, 2))
    weights = rng.integers(0, 3, 20)
    rows = np.repeat(np.arange(20), weights)
    for variance in ("means", "total", "true"):
        scaler = UncertainStandardScaler(variance=variance)
        one = clone(scaler).fit(x, X_std=std, sample_weight=weights)
        other = clone(scaler).fit(x[rows], X_std=std[rows])
        np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-9)
        np.testing.assert_allclose(one.mean_, other.mean_, atol=1e-9)


@each("kind", KINDS)
def test_both_ways_in_give_the_same(make_covariances, kind):
    X = _examples(make_covariances, kind)
    scaler = UncertainStandardScaler(variance="total").fit(X)
    other = UncertainStandardScaler(variance="total").fit(X.mean, X_cov=X.covariances)
    np.testing.assert_array_equal(scaler.scale_, other.scale_)
    one, two = scaler.transform(X), scaler.transform(X.mean, X_cov=X.covariances)
    np.testing.assert_array_equal(one.covariances.to_full(), two.covariances.to_full())
    np.testing.assert_array_equal(scaler.transform(X.mean), one.mean)


def test_the_inverse_leads_back(X):
    scaler = UncertainStandardScaler().fit(X)
    back = scaler.inverse_transform(scaler.transform(X))
    rtol = 1e-12 if X.dtype == np.float64 else 2e-6
    np.testing.assert_allclose(back.mean, X.mean, rtol=rtol, atol=10 * rtol * SCALES.max())
    size = np.sqrt(X.covariances.variances())
    error = np.abs(back.covariances.to_full() - X.covariances.to_full())
    assert (error <= 10 * rtol * size[:, :, None] * size[:, None, :]).all()
    np.testing.assert_allclose(
        scaler.inverse_transform(scaler.transform(X.mean)), back.mean, rtol=rtol
    )
    with pytest.raises(ValueError, match="X has 2 features, the scaler was fitted to 3"):
        scaler.inverse_transform(X.mean[:, :2])


def test_a_clone_and_a_pickle_do_the_same(make_covariances):
    X = _examples(make_covariances, "diagonal")
    scaler = UncertainStandardScaler(variance="total", with_mean=False)
    assert clone(scaler).get_params() == scaler.get_params()
    again = pickle.loads(pickle.dumps(scaler.fit(X))).transform(X)
    np.testing.assert_array_equal(again.covariances.values, scaler.transform(X).covariances.values)


def test_units_leave_with_the_scale_and_come_back():
    u = pytest.importorskip("astropy.units")
    values, std = np.array([[1.0, 2.0], [3.0, 5.0]]) * u.m, np.full((2, 2), 10.0) * u.cm
    scaler = UncertainStandardScaler().fit(values, X_std=std)
    scaled = scaler.transform(values.to(u.km), X_std=std)
    assert scaled.feature_units is None
    np.testing.assert_allclose(scaled.mean, [[-1, -1], [1, 1]])
    np.testing.assert_allclose(scaled.covariances.values, [[0.1, 0.1 / 1.5]] * 2)
    assert scaler.inverse_transform(scaled).feature_units == (u.m, u.m)
    kept = UncertainStandardScaler(with_std=False).fit_transform(values, X_std=std)
    assert kept.feature_units == (u.m, u.m)
    with pytest.raises(ValueError, match="no unit"):
        scaler.transform(values.value)


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 5.0, 1.0]}, index=[4, 5, 6])
    std = pd.DataFrame({"b_err": [1.0, 1.0, 2.0], "a_err": [0.1, 0.2, 0.3]}, index=[6, 5, 4])
    scaler = UncertainStandardScaler().set_output(transform="pandas").fit(x, X_std=std)
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]
    scaled = scaler.transform(x, X_std=std)
    assert type(scaled) is Gaussians
    assert scaled.feature_names.tolist() == ["a", "b"]
    errors = np.array([[0.3, 2.0], [0.2, 1.0], [0.1, 1.0]])
    np.testing.assert_allclose(np.sqrt(scaled.covariances.variances()), errors / scaler.scale_)
    frame = scaler.transform(x)
    assert frame.columns.tolist() == ["a", "b"]
    assert frame.index.tolist() == [4, 5, 6]
    with pytest.raises(ValueError, match="feature names should match"):
        scaler.transform(x[["b", "a"]])


@pytest.mark.parametrize("estimator", [EmpiricalBayes(), UncertainStandardScaler()])
def test_set_output_makes_no_frames_of_gaussians(estimator):
    pytest.importorskip("pandas")
    X = Gaussians(np.arange(8.0).reshape(4, 2) ** 1.5, std=np.ones((4, 2)))
    estimator = clone(estimator).set_output(transform="pandas")
    assert type(estimator.fit_transform(X)) is Gaussians
    assert type(estimator.transform(X)) is Gaussians


def test_arrays_of_any_layout_are_read_and_never_written_to(tmp_path):
    rng = np.random.default_rng(7)
    x, std = rng.normal(size=(30, D)), rng.uniform(size=(30, D))
    expected = UncertainStandardScaler().fit_transform(x, X_std=std)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "std.npy", std)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("x", "std")]
    locked = [array.copy() for array in (x, std)]
    for array in locked:
        array.flags.writeable = False
    wide = [np.repeat(array, 2, axis=1)[:, ::2] for array in (x, std)]
    for a, b in (mapped, locked, wide, (np.asfortranarray(x), np.asfortranarray(std))):
        found = UncertainStandardScaler().fit_transform(a, X_std=b)
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.covariances.values, expected.covariances.values)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("weights", [None, np.arange(40.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_arrays_that_leave_can_be_written_to_and_share_nothing(make, dtype, weights, read_only):
    rng = np.random.default_rng(0)
    X = make((rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5)).astype(dtype))
    given = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for part in given:
        part.flags.writeable = not read_only
    scaler = UncertainStandardScaler(with_mean=False).fit(X, sample_weight=weights)
    theirs = StandardScaler(with_mean=False).fit(X, sample_weight=weights)
    np.testing.assert_allclose(scaler.scale_, theirs.scale_, rtol=1e-6)
    assert scaler.scale_.dtype == np.float64
    for out in (scaler.transform(X), scaler.inverse_transform(X)):
        assert out.dtype == dtype
        left = [out.data, out.indices, out.indptr] if sparse.issparse(out) else [out]
        assert all(part.flags.writeable for part in left)
        assert not any(np.shares_memory(a, b) for a in left for b in given)


def test_bad_input_is_named():
    x = np.arange(6.0).reshape(3, 2) ** 2
    for call, message in (
        (lambda: UncertainStandardScaler(variance="all").fit(x), "variance must be one of"),
        (lambda: UncertainStandardScaler().fit(x, X_std=-x), "X_std row 0, column 1 is -1"),
        (lambda: UncertainStandardScaler().fit(np.where(x == 4, np.nan, x)), "row 1, column 0"),
        (
            lambda: UncertainStandardScaler().fit(x, sample_weight=[0, 0, 0]),
            "0 for all rows|one non-zero",
        ),
        (lambda: UncertainStandardScaler().fit(x, sample_weight=[1, -1, 0]), "row 1 is -1"),
        (lambda: UncertainStandardScaler().fit(Gaussians(x), X_std=x), "X_std is given, but X is"),
        (
            lambda: UncertainStandardScaler().fit(1e-200 * x).transform(x),
            r"X, scaled, row 0, column 1 is .*e\+1",
        ),
        (
            lambda: UncertainStandardScaler().fit(1e-200 * x).transform(1e-200 * x, X_std=x),
            "the errors of X, scaled, row 0, column 1",
        ),
        (
            lambda: UncertainStandardScaler().fit(1e-60 * x).transform(1e-60 * x, X_std=1e20 * x),
            "the errors of X, scaled, row 0, column 1 is .*e.79",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_float32_out_of_range_is_named():
    x = np.array([[1e-30], [3e-30]], np.float32)
    scaler = UncertainStandardScaler().fit(x)
    np.testing.assert_allclose(scaler.transform(x).ravel(), [-1, 1])
    with pytest.raises(ValueError, match=r"X, scaled, row 0, column 0 is inf"):
        scaler.transform(np.array([[1e30]], np.float32))


def test_mixtures_are_refused(make_gaussians):
    X, _ = make_gaussians("diagonal", 4, 2)
    with pytest.raises(TypeError, match="X is GaussianMixtures"):
        UncertainStandardScaler().fit(GaussianMixtures(X, np.ones(4), np.ones(4, int)))
