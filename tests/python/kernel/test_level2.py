"""The level-2 kernel against the NumPy reference, its width, memory and very many features."""

import tracemalloc

import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from estimator_checks import pass_checks
from sklearn.svm import SVC

from halosvm import Gaussians, UncertainKernelSVC, expected_kernel, reference
from halosvm.kernel import level2

KERNELS = {
    "rbf": {"kind": "rbf", "gamma": 0.3},
    "laplacian": {"kind": "laplacian", "gamma": 0.3},
    "poly": {"kind": "poly", "gamma": 0.3, "degree": 3, "coef0": 0.7},
    "linear": {"kind": "linear"},
}
LEVEL2 = {"level2": "gaussian", "tau": 0.8}


@pytest.fixture(params=KERNELS)
def kernel(request):
    """Every kernel, with its parameters."""
    return KERNELS[request.param]


def without_closed_form(kernel, kind):
    certain_axes = ("zero", "isotropic", "isotropic_std", "diagonal", "diagonal_std")
    return kernel["kind"] == "laplacian" and kind not in (*certain_axes, "half_certain")


def expected(X, Y, kernel, tau, *, normalize=False):
    """Return the level-2 kernel of the reference."""
    both = Gaussians.concatenate([X, Y])
    K = reference.expected_kernel(both, **kernel)
    if normalize:
        K = K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    n = len(X)
    return reference.level2_kernel(K[:n, n:], K.diagonal()[:n], K.diagonal()[n:], tau)


@in_pairs
@each("dtype", DTYPES)
@each("kernel", KERNELS.values())
@each("kind", KINDS)
@each("normalize", [False, True])
def test_every_kind_equals_the_reference(make_gaussians, kind, kernel, normalize, dtype):
    if without_closed_form(kernel, kind):
        pytest.skip("no closed form")
    X, _ = make_gaussians(kind, n=41, d=4, seed=1, dtype=dtype)
    tau = 40.0 if kernel["kind"] in ("poly", "linear") else 0.8
    options = {**kernel, "level2": "gaussian", "tau": tau, "normalize": normalize}
    # Rounding of k of size K is K / tau^2 in the exponent.
    rounding = 1e-12 if normalize else 1e-12 * max(1.0, 1e4 / tau**2)
    K = expected_kernel(X, **options)
    np.testing.assert_allclose(K, expected(X, X, kernel, tau, normalize=normalize), 0, rounding)
    np.testing.assert_array_equal(K, K.T)
    assert (K.diagonal() == 1.0).all()
    value = expected_kernel(X[:30], X[30:], **options)
    wanted = expected(X[:30], X[30:], kernel, tau, normalize=normalize)
    np.testing.assert_allclose(value, wanted, 0, rounding)


@each("kind", KINDS)
def test_two_kinds_of_covariances_equal_the_reference(make_gaussians, kind):
    X, _ = make_gaussians("diagonal", n=23, d=4, seed=1)
    Y, _ = make_gaussians(kind, n=31, d=4, seed=2)
    kernel = KERNELS["rbf"]
    K = reference.expected_kernel(X, Y, **kernel)
    own = [reference.expected_kernel(G, **kernel).diagonal() for G in (X, Y)]
    wanted = reference.level2_kernel(K, *own, 0.3)
    value = expected_kernel(X, Y, **kernel, level2="gaussian", tau=0.3)
    np.testing.assert_allclose(value, wanted, 0, 1e-12)


def test_blocks_are_the_whole_and_float32_is_the_rounded_float64(make_gaussians, monkeypatch):
    X, _ = make_gaussians("diagonal", n=90, d=4)
    Y, _ = make_gaussians("full", n=37, d=4, seed=5)
    options = {"gamma": 0.3, "level2": "gaussian", "tau": 1e-3}  # where float32 would lose digits
    for other in (None, Y):
        whole = expected_kernel(X, other, **options)
        monkeypatch.setattr(level2, "_BLOCK", 17 * 90)
        np.testing.assert_array_equal(expected_kernel(X, other, **options), whole)
        wide = np.full((100, 100), -1.0, np.float32)
        out = wide[3:93, 2 : 2 + whole.shape[1]]
        assert expected_kernel(X, other, **options, out=out) is out
        # An ulp of k in float64 is 1e-10 in the exponent.
        np.testing.assert_allclose(out, whole, rtol=2e-7, atol=1e-9)
        out[:] = -1.0
        assert (wide == -1.0).all()
        monkeypatch.undo()
    small = expected_kernel(X, **options, dtype=np.float32)
    np.testing.assert_array_equal(small, small.T)


def test_nothing_of_the_size_of_the_matrix_is_allocated(make_gaussians, monkeypatch):
    X, _ = make_gaussians("isotropic", n=1500, d=2)
    out = np.empty((1500, 1500))
    monkeypatch.setattr(level2, "_BLOCK", 10_000)
    tracemalloc.start()
    expected_kernel(X, gamma=0.3, level2="gaussian", tau=1.0, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * out.nbytes


@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_matrices_are_positive_semi_definite(make_gaussians, kind, kernel):
    if without_closed_form(kernel, kind):
        pytest.skip("no closed form")
    for seed, tau in enumerate((0.1, 1.0, "median")):
        X, _ = make_gaussians(kind, n=40, d=5, seed=seed, scale=(0.2, 1.0, 3.0)[seed])
        rows = X[np.r_[0:40, 0:10]]  # some of them twice
        K = expected_kernel(rows, **kernel, level2="gaussian", tau=tau)
        assert np.linalg.eigvalsh(K)[0] > -1e-9


def many_features(n=80, d=784):
    """Return examples of many features, whose Gram matrix is diagonal but for rounding."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2 == 0, -1, 1)
    mean = rng.normal(size=(n, d)) + 0.15 * y[:, None]
    return Gaussians(mean, variance=rng.uniform(0.1, 0.3, (n, d))), y


@pytest.mark.parametrize("kind", ["diagonal", "low_rank", "full"])
def test_hundreds_of_features_give_entries_of_one_size(make_gaussians, kind):
    n, d = (3, 200) if kind == "full" else (12, 784)  # the reference takes a second a pair of those
    X, _ = make_gaussians(kind, n=n, d=d)
    kernel = {"kind": "rbf", "gamma": 1e-2}
    K = expected_kernel(X, **kernel)
    scale = K.diagonal().max()
    tau = np.sqrt(scale)
    value = expected_kernel(X, **kernel, level2="gaussian", tau=tau)
    assert K[~np.eye(n, dtype=bool)].max() < 0.1 * scale < 0.1
    assert 0.1 < value.min() < value[~np.eye(n, dtype=bool)].max() < 1.0
    np.testing.assert_allclose(value, expected(X, X, kernel, tau), rtol=1e-12)


def test_kernels_that_vanish_give_no_distances_and_that_is_said():
    X, _ = many_features()
    with pytest.raises(ValueError, match=r"tau='median' is 0.*normalize=True"):
        expected_kernel(Gaussians(X.mean, std=np.ones(X.shape)), gamma=1e3, level2="gaussian")
    K = expected_kernel(X, gamma=1e3, normalize=True, level2="gaussian")  # all equally far
    np.testing.assert_allclose(K[~np.eye(len(X), dtype=bool)], np.exp(-0.5), rtol=1e-12)


@each("kind", KINDS)
def test_median_is_that_of_two_different_training_examples(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=25, d=4)
    Z, _ = make_gaussians("diagonal", n=9, d=4, seed=7)
    K = reference.expected_kernel(X, gamma=0.3)
    squares = K.diagonal()[:, None] + K.diagonal() - 2 * K
    pairs = np.sort(squares[np.triu_indices(25, 1)])
    tau = np.sqrt(pairs[len(pairs) // 2 - 1])  # of an even number, the lower one in the middle
    for one, other in ((X, None), (Z, X)):  # in predictions that of the second argument
        value = expected_kernel(one, other, gamma=0.3, level2="gaussian")
        wanted = expected_kernel(one, other, gamma=0.3, level2="gaussian", tau=tau)
        np.testing.assert_allclose(value, wanted, rtol=1e-9)


@pytest.mark.parametrize("n_equal", [1, 2, 9])
def test_median_of_points_at_one_distance_is_that_distance(n_equal):
    K = expected_kernel([[0.0]] * n_equal + [[1.0]], gamma=1.0, level2="gaussian")
    np.testing.assert_allclose(K[:-1, -1], np.exp(-0.5), rtol=1e-14)


def test_weights_of_the_median_equal_repetitions(make_gaussians):
    X, y = make_gaussians("diagonal", n=25, d=4)
    times = np.random.default_rng(0).integers(1, 9, 25)
    again = np.repeat(np.arange(25), times)
    options = {"gamma": 0.3, "level2": "gaussian"}
    one = UncertainKernelSVC(**options).fit(X, y, sample_weight=times)
    other = UncertainKernelSVC(**options).fit(X[again], y[again])
    assert one.tau_ == pytest.approx(other.tau_, rel=1e-12)
    assert one.tau_ != UncertainKernelSVC(**options).fit(X, y).tau_


def test_median_of_many_is_that_of_evenly_spaced_rows(make_gaussians, monkeypatch):
    X, _ = make_gaussians("isotropic", n=100, d=2)
    monkeypatch.setattr(level2, "_MEDIAN_ROWS", 34)
    value = expected_kernel(X[:5], X, gamma=0.3, level2="gaussian")
    wanted = expected_kernel(X[:5], X[::3], gamma=0.3, level2="gaussian")
    np.testing.assert_allclose(value[:, ::3], wanted, rtol=1e-13)


# -- UncertainKernelSVC --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_estimator_passes_the_checks_of_scikit_learn():
    pass_checks(UncertainKernelSVC(level2="gaussian"))


@pytest.mark.parametrize("normalize", [False, True])
def test_estimator_predicts_with_the_tau_of_training(make_gaussians, normalize):
    X, y = make_gaussians("diagonal", n=70, d=4)
    Z, _ = make_gaussians("low_rank", n=20, d=4, seed=3)
    options = {"gamma": 0.3, "normalize": normalize, "level2": "gaussian"}
    model = UncertainKernelSVC(tol=1e-9, **options).fit(X, y)
    tau = UncertainKernelSVC(tau=model.tau_, **options).fit(X, y).tau_
    assert tau == model.tau_ > 0
    plain = SVC(kernel="precomputed", tol=1e-9).fit(expected_kernel(X, **options), y)
    for points in (X, Z, X[:1]):
        K = expected_kernel(points, X, **options, tau=tau)
        np.testing.assert_allclose(
            model.decision_function(points), plain.decision_function(K), atol=1e-9
        )


def test_tau_belongs_to_the_fit(make_gaussians):
    X, y = make_gaussians("diagonal", n=40, d=4)
    model = UncertainKernelSVC(gamma=0.3, level2="gaussian").fit(X, y)
    values = model.decision_function(X)
    model.set_params(level2=None, tau=5.0)
    np.testing.assert_array_equal(model.decision_function(X), values)
    plain = UncertainKernelSVC(gamma=0.3).fit(X, y)
    assert model.fit(X, y).tau_ is None
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_estimator_learns_from_hundreds_of_features():
    X, y = many_features(n=160)
    model = UncertainKernelSVC(C=10.0, gamma=0.5 / 784, level2="gaussian").fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.9


# -- bad input -----------------------------------------------------------------------------------

SMALL = Gaussians(np.zeros((3, 2)), std=np.ones((3, 2)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level2": "rbf"}, ValueError, "level2 must be None or 'gaussian', got 'rbf'"),
        ({"level2": True}, ValueError, "level2 must be None or 'gaussian', got True"),
        ({"tau": 0.0}, ValueError, "tau is 0; it must be positive and finite"),
        ({"tau": np.nan}, ValueError, "tau is nan"),
        ({"tau": "mean"}, ValueError, "tau must be 'median' or a number, got 'mean'"),
        ({"tau": None}, TypeError, "tau must be 'median' or a number, got None"),
        ({"tau": True}, TypeError, "tau must be"),
        ({"level2": "gaussian", "diagonal": "unit"}, ValueError, "exclude each other"),
        ({"level2": "gaussian"}, ValueError, "tau='median' is 0"),
    ],
)
def test_bad_input_is_refused_by_function_and_estimator(options, error, message):
    with pytest.raises(error, match=message):
        expected_kernel(SMALL, gamma=1.0, **options)
    with pytest.raises(error, match=message):
        UncertainKernelSVC(gamma=1.0, **options).fit(SMALL, [0, 1, 0])
