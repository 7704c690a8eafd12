"""Expected kernels against the NumPy reference, Monte Carlo, scikit-learn, mpmath and limits."""

import itertools

import mpmath
import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from sklearn.metrics import pairwise

from halosvm import Covariances, Gaussians, _core, expected_kernel, median_gamma, reference

D = 5
GAMMAS = np.array([0.1, 0.4, 0.9, 0.2, 0.5])
KERNELS = {
    "rbf": {"kind": "rbf", "gamma": 0.3},
    "rbf per feature": {"kind": "rbf", "gamma": GAMMAS},
    "laplacian": {"kind": "laplacian", "gamma": 0.3},
    "laplacian per feature": {"kind": "laplacian", "gamma": GAMMAS},
    "poly 2": {"kind": "poly", "gamma": 0.3, "degree": 2, "coef0": 0.7},
    "poly 3": {"kind": "poly", "gamma": GAMMAS, "degree": 3, "coef0": 0.7},
    "linear": {"kind": "linear"},
}
DIAGONAL_KINDS = (
    "zero",
    "isotropic",
    "isotropic_std",
    "diagonal",
    "diagonal_std",
    "half_certain",
    "sparse_diagonal",
    "sparse_std",
    "columns_diagonal",
)
OTHER_KINDS = (
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
    "columns_low_rank",
    "columns_full",
)
POINTS = (np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0, 2, 15).reshape(5, 3) ** 2)


@pytest.fixture(params=KERNELS)
def kernel(request):
    """Every kernel, with its parameters."""
    return KERNELS[request.param]


def partners(kernel, kind):
    """Return the covariance kinds that the kernel can combine with one of them."""
    if kernel["kind"] != "laplacian":
        return DIAGONAL_KINDS + OTHER_KINDS
    return DIAGONAL_KINDS if kind in DIAGONAL_KINDS else ()


def one(mean, **spread):
    """Return one Gaussian."""
    return Gaussians(np.atleast_2d(mean), **spread)


# -- values --------------------------------------------------------------------------------------


@in_pairs
@each("dtype", DTYPES)
@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_every_pair_of_kinds_equals_the_reference(make_gaussians, kind, kernel, dtype):
    X, _ = make_gaussians(kind, n=37, d=D, seed=1, dtype=dtype)
    for other in partners(kernel, kind):
        Y, _ = make_gaussians(other, n=43, d=D, seed=2, dtype=dtype)
        expected = reference.expected_kernel(X, Y, **kernel)
        scale = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(expected_kernel(X, Y, **kernel), expected, 1e-12, scale)


@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_gram_matrix_of_one_batch_equals_the_reference_and_is_symmetric(
    make_gaussians, kind, kernel
):
    if kind not in partners(kernel, kind):
        pytest.skip("no closed form")
    X, _ = make_gaussians(kind, n=210, d=D, seed=1)  # more than a tile
    K = expected_kernel(X, **kernel)
    expected = reference.expected_kernel(X, **kernel)
    np.testing.assert_allclose(K, expected, 1e-12, 1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(K, K.T)


@each("kernel", KERNELS.values())
@each("kind", ["zero", "isotropic", "diagonal", "low_rank", "low_rank_diagonal", "full"])
def test_expected_kernels_are_means_over_independent_draws(make_gaussians, kind, kernel):
    n_draws, rng = 40_000, np.random.default_rng(5)
    X, _ = make_gaussians(kind, n=2, d=D, seed=3)
    for other in set(partners(kernel, kind)) & {
        "zero", "isotropic", "diagonal", "low_rank", "low_rank_diagonal", "full"
    }:  # fmt: skip
        Y, _ = make_gaussians(other, n=2, d=D, seed=4)
        x, y = (
            rng.multivariate_normal(G.mean[1], G.covariances.to_full()[1], n_draws, method="eigh")
            for G in (X, Y)
        )
        gamma = np.broadcast_to(kernel.get("gamma", 1.0), D)
        dots = (x * y) @ gamma + kernel.get("coef0", 0.0)
        values = {
            "rbf": lambda: np.exp(-((x - y) ** 2) @ gamma),  # noqa: B023
            "laplacian": lambda: np.exp(-np.abs(x - y) @ gamma),  # noqa: B023
            "poly": lambda: dots ** kernel["degree"],  # noqa: B023
            "linear": lambda: dots,  # noqa: B023
        }[kernel["kind"]]()
        error = values.std() / np.sqrt(n_draws)
        value = expected_kernel(X, Y, **kernel)[1, 1]
        assert abs(value - values.mean()) <= 4 * error + 1e-12 * abs(value), other


def test_golden_values():
    X = one([0.3, 0.1, -0.4], cov=np.array([[[2, 0.5, 0], [0.5, 1, -0.2], [0, -0.2, 0.8]]]))
    Y = one([0.0, 1.0, 0.0], cov=Covariances.diagonal([[0.1, 0.2, 0.3]]))
    assert expected_kernel(X, Y, gamma=1 / 2.42) == pytest.approx(0.24493067817609079, rel=1e-14)
    poly = {"kind": "poly", "gamma": 1.0}
    assert expected_kernel(X, Y, **poly, degree=2) == pytest.approx(2.909, rel=1e-14)
    assert expected_kernel(X, Y, **poly, degree=3) == pytest.approx(7.2917, rel=1e-14)


@each("mu", [0.0, 1e-9, 0.7, 3.0, 30.0, 600.0])
@each("v", [0.0, 1e-30, 1e-6, 0.9, 25.0, 1e4, 1e12])
def test_laplacian_equals_a_quadrature(mu, v):
    value = expected_kernel(
        one([mu], cov=Covariances.diagonal([[v]])), one([0.0]), kind="laplacian", gamma=1.0
    )[0, 0]
    with mpmath.workdps(60):
        m, r = mpmath.mpf(mu), mpmath.sqrt(mpmath.mpf(v))
        tail = lambda t: mpmath.erfc(t / mpmath.sqrt(2)) / 2  # noqa: E731
        expected = mpmath.exp(-m)
        if v:  # the two sides of the absolute value, each a normal law with its mean moved
            expected = mpmath.exp(r**2 / 2 - m) * tail(r - m / r)
            expected += mpmath.exp(r**2 / 2 + m) * tail(r + m / r)
    assert value == pytest.approx(float(expected), rel=2e-13)


@pytest.mark.parametrize("kind", ["rbf", "laplacian", "poly", "linear"])
def test_certain_points_have_the_kernels_of_scikit_learn(kind):
    x, y = (np.random.default_rng(s).normal(size=(n, 30)) for s, n in ((0, 250), (1, 70)))
    options = {} if kind == "linear" else {"gamma": 0.05}
    plain = getattr(pairwise, f"{kind.replace('poly', 'polynomial')}_kernel")
    for other in (None, y):
        K = expected_kernel(x, other, kind=kind, **options)
        np.testing.assert_allclose(K, plain(x, other, **options), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_equal_points_have_distance_zero_and_close_ones_keep_their_digits(offset):
    rng = np.random.default_rng(0)
    x = offset + rng.normal(size=(300, 40))
    near = x + 1e-5 * rng.normal(size=x.shape)
    assert (expected_kernel(x, x.copy(), gamma=3.0).diagonal() == 1.0).all()
    exact = np.exp(-1e8 * np.square(x - near).sum(axis=1))
    K = expected_kernel(x, near, gamma=1e8)
    np.testing.assert_allclose(K.diagonal(), exact, rtol=1e-10 * (1 + offset / 1e3))


@each("kind", KINDS)
def test_gamma_for_each_feature_is_a_change_of_units(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=20, d=D)
    unit = np.sqrt(GAMMAS)
    cov = Covariances.full(X.covariances.to_full() * np.outer(unit, unit))
    scaled = Gaussians(X.mean * unit, cov=cov)
    np.testing.assert_allclose(
        expected_kernel(X, gamma=GAMMAS), expected_kernel(scaled, gamma=1.0), rtol=1e-12
    )


# -- positive semi-definiteness ------------------------------------------------------------------


@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_gram_matrices_are_positive_semi_definite(make_gaussians, kind, kernel):
    if kind not in partners(kernel, kind):
        pytest.skip("no closed form")
    for seed in range(5):
        X, _ = make_gaussians(kind, n=40, d=D, seed=seed, scale=(0.2, 1.0, 3.0)[seed % 3])
        K = expected_kernel(X[np.r_[0:40, 0:10]], **kernel)  # some of them twice
        assert np.linalg.eigvalsh(K / np.abs(K).max())[0] > -1e-10


def test_printed_exponent_of_the_determinant_makes_an_indefinite_kernel():
    S = 3.0
    X = one([[0.0], [0.0]], variance=[[0.0], [S]])
    K = expected_kernel(X, gamma=0.5)
    np.testing.assert_allclose(K, [[1, (1 + S) ** -0.5], [(1 + S) ** -0.5, (1 + 2 * S) ** -0.5]])
    assert np.linalg.eigvalsh(K)[0] > 0
    printed = 1.0 / K  # equal means leave only the determinant
    assert np.linalg.det(printed) == pytest.approx(np.sqrt(1 + 2 * S) - (1 + S))
    assert np.linalg.eigvalsh(printed)[0] < 0


# -- many features, large and small numbers ------------------------------------------------------


@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "low_rank", "low_rank_diagonal"])
def test_many_features_neither_overflow_nor_underflow(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=4, d=800, scale=2.0)
    assert (expected_kernel(X[:2], X[2:], gamma=1.0) == 0.0).all()
    K = expected_kernel(X, gamma=1.0, normalize=True)
    assert (K.diagonal() == 1.0).all()
    logs = np.empty((4, 4))
    for i, j in itertools.combinations_with_replacement(range(4), 2):
        S, d = np.eye(800) / 2 + X.covariances[i] + X.covariances[j], X.mean[i] - X.mean[j]
        logs[i, j] = logs[j, i] = -0.5 * (np.linalg.slogdet(2 * S)[1] + d @ np.linalg.solve(S, d))
    expected = np.exp(logs - 0.5 * (logs.diagonal()[:, None] + logs.diagonal()))
    np.testing.assert_allclose(K, expected, rtol=1e-9)


@each("kind", KINDS)
def test_values_below_the_smallest_number_are_zero_and_never_nan(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=20, d=D)
    huge = Gaussians(X.mean * 1e100, cov=X.covariances)
    K = expected_kernel(huge, gamma=1.0)
    assert np.isfinite(K).all()
    assert (K[~np.eye(20, dtype=bool)] == 0.0).all()
    np.testing.assert_allclose(K.diagonal(), expected_kernel(X, gamma=1.0).diagonal(), rtol=1e-11)


@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_normalised_kernel_is_divided_by_the_roots_of_both_diagonals(make_gaussians, kind, kernel):
    if kind not in partners(kernel, kind):
        pytest.skip("no closed form")
    X, _ = make_gaussians(kind, n=30, d=D, seed=1)
    Y, _ = make_gaussians("isotropic", n=20, d=D, seed=2)
    of_x, of_y = (expected_kernel(G, **kernel).diagonal() for G in (X, Y))
    expected = expected_kernel(X, Y, **kernel) / np.sqrt(np.outer(of_x, of_y))
    np.testing.assert_allclose(
        expected_kernel(X, Y, **kernel, normalize=True), expected, rtol=1e-12
    )
    np.testing.assert_allclose(expected_kernel(X, **kernel, normalize=True).diagonal(), 1.0)


def test_unit_diagonal_adds_a_ridge(make_gaussians):
    X, _ = make_gaussians("full", n=30, d=D)
    K, unit = expected_kernel(X, gamma=0.3), expected_kernel(X, gamma=0.3, diagonal="unit")
    np.testing.assert_array_equal(unit.diagonal(), 1.0)
    np.testing.assert_array_equal(unit - np.diag(unit.diagonal()), K - np.diag(K.diagonal()))
    assert (K.diagonal() < 1.0).all()


# -- memory and threads --------------------------------------------------------------------------


@pytest.mark.parametrize("out_type", [np.float64, np.float32])
def test_out_may_be_a_part_of_an_array_or_a_memory_map(make_gaussians, tmp_path, out_type):
    X, _ = make_gaussians("diagonal", n=90, d=D)
    K = expected_kernel(X, gamma=0.3)
    wide = np.full((100, 100), -1.0, out_type)
    part = wide[5:95, 7:97]
    assert expected_kernel(X, gamma=0.3, out=part) is part
    np.testing.assert_array_equal(part, K.astype(out_type))
    part[:] = -1.0
    assert (wide == -1.0).all()
    mapped = np.memmap(tmp_path / "gram", out_type, "w+", shape=(90, 90))
    for i in range(0, 90, 40):
        expected_kernel(X[i : i + 40], X, gamma=0.3, out=mapped[i : i + 40])
    np.testing.assert_allclose(mapped, K.astype(out_type), rtol=1e-6)


def test_dtype_is_that_of_the_result(make_gaussians):
    X, _ = make_gaussians("diagonal", n=9, d=D)
    K = expected_kernel(X, gamma=0.3, dtype=np.float32)
    assert K.dtype == np.float32
    np.testing.assert_array_equal(K, expected_kernel(X, gamma=0.3).astype(np.float32))


def test_arrays_of_any_layout_are_read(make_gaussians):
    X, _ = make_gaussians("diagonal", n=20, d=D)
    K = expected_kernel(X.mean, gamma=0.3)
    frozen = X.mean.copy()
    frozen.flags.writeable = False
    for array in (np.asfortranarray(X.mean), np.repeat(X.mean, 2, axis=1)[:, ::2], frozen):
        np.testing.assert_array_equal(expected_kernel(array, gamma=0.3), K)


@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_result_does_not_depend_on_the_number_of_threads(make_gaussians, kind, kernel):
    if kind not in partners(kernel, kind):
        pytest.skip("no closed form")
    X, _ = make_gaussians(kind, n=130, d=D)
    K = expected_kernel(X, **kernel, n_threads=1)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(expected_kernel(X, **kernel, n_threads=n_threads), K)


def test_no_rows_make_an_empty_matrix():
    X, none = np.zeros((3, 2)), Gaussians(np.zeros((0, 2)))
    assert expected_kernel(none, X, gamma=1.0).shape == (0, 3)
    assert expected_kernel(X, none, gamma=1.0).shape == (3, 0)
    assert expected_kernel(none, gamma=1.0).shape == (0, 0)


def test_an_error_in_the_report_of_progress_ends_the_call(make_gaussians):
    X, _ = make_gaussians("diagonal", n=3000, d=50)

    def report(fraction):
        assert 0.0 <= fraction < 1.0
        raise RuntimeError("enough")

    def run():  # long enough: it is asked every 50 ms at most
        out = np.empty((3000, 3000))
        for _ in range(100):
            _core.gram(X.core_view(), None, out, "laplacian", np.ones(1), report=report)

    with pytest.raises(RuntimeError, match="enough"):
        run()


# -- bandwidths ----------------------------------------------------------------------------------


@each("kind", KINDS)
def test_scale_counts_the_covariances(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=20, d=D)
    variance = X.mean.var() + np.trace(X.covariances.to_full(), axis1=1, axis2=2).mean() / D
    expected = expected_kernel(X, gamma=1 / (D * variance))
    np.testing.assert_allclose(expected_kernel(X), expected, rtol=1e-12)


@each("kind", KINDS)
def test_median_gamma_is_one_over_the_median_expected_squared_distance(make_gaussians, kind):
    X, _ = make_gaussians(kind, n=31, d=D)
    traces = [np.trace(S) for S in X.covariances.to_full()]
    distances = [
        np.sum((X.mean[i] - X.mean[j]) ** 2) + traces[i] + traces[j]
        for i in range(31)
        for j in range(i)
    ]
    assert median_gamma(X) == pytest.approx(1 / np.median(distances), rel=1e-12)


def test_median_gamma_of_a_draw_is_close_and_depends_on_the_seed(make_gaussians):
    X, _ = make_gaussians("diagonal", n=2000, d=D)
    draws = [median_gamma(X, max_samples=500, random_state=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert draws == pytest.approx([median_gamma(X, max_samples=2000)] * 3, rel=0.1)


def test_scale_is_that_of_the_second_argument(make_gaussians):
    X, _ = make_gaussians("diagonal", n=20, d=4)
    K = expected_kernel(X, gamma="scale")
    np.testing.assert_allclose(expected_kernel(X[:5], X, gamma="scale"), K[:5], rtol=1e-14)


@pytest.mark.parametrize("far", [1e9, 1e12, 1e15])
def test_median_gamma_keeps_its_digits_beside_a_row_far_away(far):
    points = np.random.default_rng(0).normal(size=(40, 3))
    points[7] = far
    exact = [((p - q) ** 2).sum() for i, p in enumerate(points) for q in points[:i]]
    assert median_gamma(points) == pytest.approx(1 / np.median(exact), rel=1e-12)


# -- bad input -----------------------------------------------------------------------------------

SMALL = Gaussians(np.zeros((3, 2)), std=np.ones((3, 2)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "sigmoid"}, ValueError, "kind must be one of rbf, laplacian, poly, linear"),
        ({"gamma": 0.0}, ValueError, "gamma is 0; it must be positive and finite"),
        ({"gamma": [1.0, np.nan]}, ValueError, r"gamma\[1\] is nan"),
        ({"gamma": np.ones(3)}, ValueError, "one for each of the 2 features"),
        ({"gamma": "best"}, ValueError, "gamma must be 'scale', 'auto', a number or an array"),
        ({"gamma": {}}, TypeError, "gamma must be"),
        (
            {"gamma": None},
            TypeError,
            "gamma must be 'scale', 'auto', a number or an array, got None",
        ),
        (
            {"gamma": True},
            TypeError,
            "gamma must be 'scale', 'auto', a number or an array, got True",
        ),
        ({"gamma": [[1.0], [1.0, 2.0]]}, TypeError, "gamma must be 'scale'"),
        ({"n_threads": 0}, ValueError, "n_threads must be >= 1, got 0"),
        ({"n_threads": 2.5}, TypeError, "n_threads must be an integer, got 2.5"),
        ({"n_threads": "a"}, TypeError, "n_threads must be an integer, got 'a'"),
        ({"n_threads": True}, TypeError, "n_threads must be an integer, got True"),
        (
            {"n_threads": 10**10},
            ValueError,
            "n_threads must be at most 2147483647, got 10000000000",
        ),
        ({"kind": "poly", "degree": 4}, ValueError, "degree must be 1, 2 or 3, got 4"),
        ({"degree": 2.0}, TypeError, "degree must be an integer"),
        ({"coef0": np.inf}, ValueError, "coef0 must be >= 0 and finite"),
        ({"kind": "poly", "coef0": -1.0}, ValueError, "coef0 must be >= 0"),
        ({"coef0": "1"}, TypeError, "coef0 must be a number"),
        ({"normalize": 1}, TypeError, "normalize must be True or False"),
        ({"diagonal": "one"}, ValueError, "diagonal must be one of product, unit"),
        ({"diagonal": "unit", "Y": SMALL}, ValueError, "needs Y=None"),
        ({"diagonal": "unit", "normalize": True}, ValueError, "give one"),
        ({"diagonal": "unit", "kind": "poly"}, ValueError, "for rbf and laplacian, not poly"),
        ({"Y": np.zeros((2, 3))}, ValueError, "Y has 3 features, X has 2"),
        ({"Y": np.full((2, 2), np.nan)}, ValueError, "Y row 0, column 0 is nan"),
        ({"out": np.zeros((3, 2))}, ValueError, r"out has shape \(3, 2\), expected \(3, 3\)"),
        ({"out": np.zeros((3, 3), int)}, TypeError, "out must be an array of float32 or float64"),
        ({"out": np.zeros((3, 3), order="F")}, TypeError, "whose rows are contiguous"),
        ({"out": np.broadcast_to(0.0, (3, 3))}, ValueError, "out is read-only"),
        ({"out": np.zeros((3, 3)), "dtype": np.float32}, ValueError, "dtype is float32, out has"),
        ({"dtype": np.int64}, ValueError, "dtype must be float32 or float64, got int64"),
    ],
)
def test_bad_input_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        expected_kernel(SMALL, **options)


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"kind": "poly"}, np.float64),
        ({"kind": "poly", "normalize": True}, np.float64),
        ({"kind": "poly", "level2": "gaussian"}, np.float64),
        ({"kind": "poly", "level2": "gaussian", "tau": 1.0}, np.float32),
        ({"kind": "linear"}, np.float32),
    ],
)
def test_values_that_overflow_are_refused(options, dtype):
    X = np.array([[0.0, 1.0], [1e120, 1.0], [1.0, 1.0]])
    computed = "float64" if "level2" in options else np.dtype(dtype)
    with pytest.raises(ValueError, match=rf"kernel overflows {computed}: means are up to 1e\+120"):
        expected_kernel(X, gamma=1.0, dtype=dtype, **options)


def test_columns_of_both_sides_must_agree():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=["a", "b"])
    with pytest.raises(ValueError, match="Y has column 0 named 'b', in X it is 'a'"):
        expected_kernel(frame, frame[["b", "a"]])
    np.testing.assert_array_equal(expected_kernel(frame, frame), expected_kernel(frame))


def test_laplacian_refuses_correlated_errors():
    X = Gaussians(np.zeros((2, 2)), cov=np.tile(np.eye(2), (2, 1, 1)))
    with pytest.raises(ValueError, match=r"laplacian needs zero, isotropic or diagonal cov.*full"):
        expected_kernel(X, kind="laplacian")


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.zeros((1, 2)), {}, ValueError, "X has 1 rows; a distance needs 2"),
        (np.zeros((5, 2)), {}, ValueError, "median distance of 0"),
        (POINTS[0], {"max_samples": 1}, ValueError, "max_samples must be >= 2"),
        (POINTS[0], {"max_samples": 9.5}, TypeError, "max_samples must be an integer"),
    ],
)
def test_median_gamma_refuses_bad_input(X, options, error, message):
    with pytest.raises(error, match=message):
        median_gamma(X, **options)
