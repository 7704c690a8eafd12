"""The spread of a kernel machine's decision value against mpmath, quadrature, draws and limits."""

import mpmath
import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from scipy.integrate import quad
from scipy.stats import norm

from halosvm import (
    Covariances,
    GaussianMixtures,
    Gaussians,
    UncertainKernelSVC,
    _core,
    expected_kernel,
    reference,
)

SUPPORT_KINDS = ("zero", "isotropic", "diagonal", "low_rank", "ragged_diagonal", "full")
GAMMAS = np.array([0.2, 0.7, 0.4])
CLOSED = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "rbf per feature": {"kernel": "rbf", "gamma": [0.1, 0.4, 0.9, 0.2]},
    "rbf normalised": {"kernel": "rbf", "gamma": 0.3, "normalize": True},
    "linear": {"kernel": "linear"},
    "poly 1": {"kernel": "poly", "degree": 1, "gamma": [0.1, 0.4, 0.9, 0.2]},
    "poly 2": {"kernel": "poly", "degree": 2, "gamma": [0.1, 0.4, 0.9, 0.2], "coef0": 0.7},
}


@pytest.fixture(params=CLOSED)
def closed(request):
    """Every kernel that has a closed form, with its parameters."""
    return CLOSED[request.param]


@pytest.fixture(params=SUPPORT_KINDS)
def support_kind(request):
    """Kinds of the support examples."""
    return request.param


def scaled_to(X, scale):
    """Return Gaussians with all covariances multiplied by scale^2, of the same kind."""
    cov = X.covariances
    if cov.kind == "zero":
        return X
    if cov.kind == "low_rank":
        factors = [F[:] for F in factors_of(cov)]
        added = cov.diagonal_values
        added = None if added is None else added * scale**2
        return Gaussians(X.mean, cov=Covariances.low_rank([scale * F for F in factors], added))
    if cov.kind == "full":
        return Gaussians(X.mean, cov=Covariances.full(cov.values * scale**2))
    make = Covariances.from_std if cov.squared else Covariances.from_variance
    return Gaussians(
        X.mean, cov=make(cov.values * (scale if cov.squared else scale**2), X.shape[1])
    )


def factors_of(cov):
    """Return the factors of low-rank covariances as a list."""
    if cov.offsets is None:
        return list(cov.values)
    ranks, starts = np.diff(cov.offsets), cov.n_features * cov.offsets
    return [
        cov.values[starts[i] : starts[i + 1]].reshape(cov.n_features, rank)
        for i, rank in enumerate(ranks)
    ]


def dense(X):
    """Return the covariances as matrices, in mpmath's numbers: factors are multiplied there."""
    cov = X.covariances
    out = []
    for i in range(len(X)):
        if cov.kind == "low_rank":
            F = mpmath.matrix(factors_of(cov)[i].tolist() or [[0]] * X.shape[1])
            S = F * F.T if F.cols else mpmath.zeros(X.shape[1])
            if cov.diagonal_values is not None:
                S += mpmath.diag([mpmath.mpf(float(v)) for v in cov.diagonal_values[i]])
        elif cov.kind in ("isotropic", "diagonal") and cov.squared:
            std = np.broadcast_to(np.atleast_1d(cov.values[i]), X.shape[1])
            S = mpmath.diag([mpmath.mpf(float(v)) ** 2 for v in std])
        else:
            S = mpmath.matrix(cov[i].tolist())
        out.append(S)
    return out


def exact_variance(X, Z, c, gamma):
    """Return Var sum_j c_j E k(x, z_j) over x ~ X_0 from the definition, in 120 digits."""
    with mpmath.workdps(120):
        d = X.shape[1]
        g = [mpmath.sqrt(2 * mpmath.mpf(float(v))) for v in np.broadcast_to(gamma, d)]
        unit = mpmath.eye(d)
        [S], T = dense(X), dense(Z)
        scale = mpmath.diag(g)
        S, T = scale * S * scale, [unit + scale * T_j * scale for T_j in T]
        apart = [
            scale * (mpmath.matrix(X.mean[0].tolist()) - mpmath.matrix(z.tolist())) for z in Z.mean
        ]

        def bump(C, D):
            return mpmath.exp(-(D.T * mpmath.lu_solve(C, D))[0] / 2) / mpmath.sqrt(mpmath.det(C))

        h = [bump(S + T_j, d_j) for T_j, d_j in zip(T, apart, strict=True)]
        total = mpmath.mpf(0)
        for j in range(len(Z)):
            for m in range(len(Z)):
                C, D = mpmath.zeros(2 * d), mpmath.zeros(2 * d, 1)
                C[:d, :d], C[d:, d:], C[:d, d:], C[d:, :d] = S + T[j], S + T[m], S, S
                D[:d, 0], D[d:, 0] = apart[j], apart[m]
                total += float(c[j]) * float(c[m]) * (bump(C, D) - h[j] * h[m])
        return float(total)


def variance(X, Z, c, gamma, **options):
    X, Z = (part.replaced(covariances=part.covariances.expanded()) for part in (X, Z))
    return _core.expansion_variance(
        X.core_view(), Z.core_view(), np.atleast_2d(c), np.atleast_1d(gamma), **options
    )


# -- the rbf kernel ------------------------------------------------------------------------------


@in_pairs
@each("support_kind", SUPPORT_KINDS)
@each("scale", [1e-9, 1e-5, 1e-2, 0.3, 1.0, 30.0])
@each("kind", ["isotropic_std", "diagonal", "low_rank", "low_rank_diagonal", "full"])
def test_variance_is_exact_to_many_digits_however_small_it_is(
    make_gaussians, kind, support_kind, scale
):
    X, _ = make_gaussians(kind, n=1, d=3, seed=5)
    Z, _ = make_gaussians(support_kind, n=3, d=3, seed=6)
    X, c = scaled_to(X, scale), np.array([1.0, -0.7, 0.4])
    gamma = 0.4 if scale < 1e-5 else GAMMAS
    # Rounding may cost what the derivatives of the h_j are larger than that of f, a few times.
    expected = exact_variance(X, Z, c, gamma)
    assert variance(X, Z, c, gamma)[0, 0] == pytest.approx(expected, rel=2e-12)


@in_pairs
@each("scale", [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@each("added", [None, np.array([[0.0, 0.01, 0.3]])])
@each("support", ["zero", "diagonal", "wide", "parallel"])
def test_variance_of_wide_factors_is_exact(support, added, scale):
    rng = np.random.default_rng(2)
    F = scale * rng.normal(size=(1, 3, 1))
    X = Gaussians(rng.normal(size=(1, 3)), cov=Covariances.low_rank(F, added))
    cov = {
        "zero": None,
        "diagonal": Covariances.diagonal(rng.uniform(0.1, 1.0, size=(3, 3))),
        "wide": Covariances.low_rank(scale * rng.normal(size=(3, 3, 1))),
        "parallel": Covariances.low_rank(F * np.array([1.0, 2.0, 0.5])[:, None, None]),
    }[support]
    Z, c = Gaussians(rng.normal(size=(3, 3)), cov=cov), np.array([1.0, -0.7, 0.4])
    # Roundings of parallel factors move what lies between them.
    rel = 1e-11 + (1e-16 * scale if support == "parallel" else 0.0)
    assert variance(X, Z, c, 0.5)[0, 0] == pytest.approx(
        exact_variance(X, Z, c, 0.5), rel=rel, abs=0
    )


@in_pairs
@each("scale", [2.0**power for power in (0, 10, 20, 27, 30, 40)])
@each("rank", [1, 2, 3])
@each("kinds", ["wide, certain", "wide, narrow", "narrow, wide", "wide, wide"])
def test_variance_of_wide_matrices_is_exact(kinds, rank, scale):
    rng = np.random.default_rng(rank)

    def batch(n, kind):
        F = rng.integers(-8, 9, size=(n, 3, 3)).astype(float)
        if kind == "certain":
            return Gaussians(rng.normal(size=(n, 3)))
        if kind == "narrow":
            F /= 16.0
        else:
            F[:, 0, 0] = 9.0
            F[:, :, rank:] = 0.0
            F *= scale
        cov = Covariances.full(F @ F.transpose(0, 2, 1))
        return Gaussians(rng.integers(-3, 4, size=(n, 3)) / 2.0, cov=cov)

    kind, support = kinds.split(", ")
    X, Z, c = batch(1, kind), batch(3, support), np.array([1.0, -0.7, 0.4])
    expected = exact_variance(X, Z, c, 0.5)
    # Roundings of two wide factors move what lies between them.
    rel = 1e-9 + (1e-16 * scale if kinds == "wide, wide" else 0.0)
    assert variance(X, Z, c, 0.5)[0, 0] == pytest.approx(expected, rel=rel, abs=1e-300)


@in_pairs
@each("dtype", DTYPES)
@each("support_kind", SUPPORT_KINDS)
@each("kind", KINDS)
def test_variance_equals_the_reference_for_every_pair_of_kinds(
    make_gaussians, kind, support_kind, dtype
):
    X, _ = make_gaussians(kind, n=2, d=4, seed=1, dtype=dtype)
    few = {"low_rank", "ragged_diagonal", "full"} & {kind, support_kind}
    n = 20 if few else 140  # more than a tile
    Z, _ = make_gaussians(support_kind, n=n, d=4, seed=2, dtype=dtype)
    c = np.random.default_rng(0).normal(size=(2, len(Z)))
    gamma = np.array([0.1, 0.4, 0.9, 0.2])
    expected = reference.expansion_variance(X, Z, c, gamma=gamma)
    value = variance(X, Z, c, gamma)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12 * np.abs(c).sum() ** 2)


@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "low_rank", "low_rank_diagonal", "full"])
def test_small_covariances_give_the_first_order_formula(make_gaussians, kind, support_kind):
    X, _ = make_gaussians(kind, n=5, d=4)
    Z, _ = make_gaussians(support_kind, n=60, d=4, seed=1)
    c = np.random.default_rng(0).normal(size=60)
    X = scaled_to(X, 1e-8)
    gamma = 0.4
    for i, (mean, S) in enumerate(X):
        B = np.eye(4) / (2 * gamma) + Z.covariances.to_full()
        inward = np.linalg.solve(B, (Z.mean - mean)[:, :, None])[:, :, 0]
        h = expected_kernel(mean[None], Z, gamma=gamma)[0]
        gradient = (c * h) @ inward
        expected = gradient @ S @ gradient
        assert variance(X[i : i + 1], Z, c, gamma)[0, 0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("s", [0.01, 0.8, 12.0])
def test_deviation_in_one_dimension_equals_a_quadrature(s):
    z, t, c = np.array([-1.0, 0.3, 2.0]), np.array([0.0, 0.5, 1.5]), np.array([1.0, -2.0, 0.7])
    Z = Gaussians(z[:, None], std=t[:, None])
    X = Gaussians(np.array([[0.4]]), std=np.array([[s]]))

    def f(x):
        return expected_kernel(np.array([[x]]), Z, gamma=0.6)[0] @ c

    def moment(power):
        points = 0.4 + s * np.array([-1.0, 0.0, 1.0])
        limits = 0.4 - 10 * s, 0.4 + 10 * s
        integrand = lambda x: (f(x) - centre) ** power * norm.pdf(x, 0.4, s)  # noqa: E731
        points = np.sort(np.r_[points, z])
        points = points[(points > limits[0]) & (points < limits[1])]
        return quad(integrand, *limits, points=points, epsabs=0, epsrel=1e-10, limit=500)[0]

    centre = 0.0
    centre = moment(1)
    assert variance(X, Z, c, 0.6)[0, 0] == pytest.approx(moment(2), rel=1e-8)


def test_far_and_many_dimensional_examples_give_finite_numbers(make_gaussians, support_kind):
    d = 40 if support_kind in ("ragged_diagonal", "full") else 200
    for kind in ("isotropic", "diagonal", "low_rank"):
        X, _ = make_gaussians(kind, n=2, d=d, scale=3.0)
        Z, _ = make_gaussians(support_kind, n=5, d=d, seed=1, scale=3.0)
        for normalize in (False, True):
            assert np.isfinite(variance(X, Z, np.ones(5), 1.0, normalize=normalize)).all()
            for distance in (1e6, 1e100, 1e149):
                far = Gaussians(X.mean + distance, cov=X.covariances)
                assert (variance(far, Z, np.ones(5), 50.0, normalize=normalize) == 0.0).all()


def test_normalised_deviation_of_many_features_does_not_underflow():
    d = 3000  # all of k(X, X), k(Z, Z) and E h h below the smallest number
    X = Gaussians(np.zeros((1, d)), std=np.full((1, d), 1.5))
    Z = Gaussians(np.full((1, d), 0.01), std=np.full((1, d), 0.7))
    value = variance(X, Z, [1.0], 0.5, normalize=True)[0, 0]
    s, t, apart = 2.25, 0.49, 0.01
    b, q = 1 + s + t, (1 + t) * (1 + t + 2 * s)
    log_second = -0.5 * d * (np.log(q) + 2 * apart**2 * (b - s) / q)
    log_first = -0.5 * d * (np.log(b) + apart**2 / b)
    log_norms = 0.5 * d * (np.log1p(2 * s) + np.log1p(2 * t))
    expected = np.exp(log_second + log_norms) - np.exp(2 * log_first + log_norms)
    assert value == pytest.approx(expected, rel=1e-9)


@each("support_kind", SUPPORT_KINDS)
@each("kind", KINDS)
def test_sum_of_cancelling_sections_has_no_variance(make_gaussians, kind, support_kind):
    X, _ = make_gaussians(kind, n=5, d=4)
    Z, _ = make_gaussians(support_kind, n=4, d=4, seed=1)
    twice, c = Z[np.r_[0:4, 0:4]], np.array([1.0, 2.0, -3.0, 0.5])
    size = variance(X, Z, np.abs(c), 0.3).max()
    assert (variance(X, twice, np.r_[c, -c], 0.3) <= 1e-14 * size).all()


@each("support_kind", SUPPORT_KINDS)
@each("kind", KINDS)
def test_result_does_not_depend_on_the_number_of_threads(make_gaussians, kind, support_kind):
    X, _ = make_gaussians(kind, n=7, d=4)
    Z, _ = make_gaussians(support_kind, n=40, d=4, seed=1)
    c = np.random.default_rng(0).normal(size=(3, 40))
    value = variance(X, Z, c, 0.3, n_threads=1)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(variance(X, Z, c, 0.3, n_threads=n_threads), value)


# -- the estimator -------------------------------------------------------------------------------


@pytest.fixture
def fit(make_gaussians):
    """Return a function that fits a model on Gaussians of two classes, or more."""

    def fit(kind="diagonal", n_classes=2, **options):
        X, y = make_gaussians(kind, n=60, d=4)
        y = y if n_classes == 2 else np.arange(60) % n_classes
        return UncertainKernelSVC(C=2.0, spread="exact", **options).fit(X, y)

    return fit


@in_pairs
@each("closed", CLOSED.values())
@each("support_kind", ["diagonal", "full"])
@each("kind", ["isotropic", "low_rank_diagonal", "full"])
def test_deviation_is_that_over_draws_of_the_example(
    make_gaussians, fit, kind, support_kind, closed
):
    model = fit(support_kind, **closed)
    X, _ = make_gaussians(kind, n=2, d=4, seed=7, scale=1.5)
    rng, n_draws = np.random.default_rng(0), 10_000
    own = (
        expected_kernel(X, gamma=closed["gamma"]).diagonal() if closed.get("normalize") else [1, 1]
    )
    for i, (mean, S) in enumerate(X):
        values = model.decision_function(
            Gaussians(rng.multivariate_normal(mean, S, n_draws, method="eigh"))
        )
        values /= np.sqrt(own[i])
        squares = np.square(values - values.mean())
        error = squares.std() / np.sqrt(n_draws)
        variance = model.decision_std(mean[None], X_cov=S[None])[0] ** 2
        assert abs(variance - squares.mean()) <= 4 * error


@each("closed", CLOSED.values())
@each("support_kind", SUPPORT_KINDS)
def test_certain_examples_have_no_deviation(make_gaussians, fit, support_kind, closed):
    model = fit(support_kind, **closed)
    X, _ = make_gaussians("zero", n=9, d=4, seed=1)
    assert (model.decision_std(X) == 0.0).all()
    assert (model.decision_std(X.mean, X_std=np.zeros((9, 4))) == 0.0).all()
    half, _ = make_gaussians("half_certain", n=9, d=4, seed=1)
    std = model.decision_std(half)
    assert std.shape == (9,)
    np.testing.assert_array_equal(std > 0.0, np.arange(9) % 2 == 1)


def test_all_kinds_of_the_same_covariance_agree(make_gaussians, fit, closed):
    model = fit(**closed)
    rng = np.random.default_rng(0)
    mean, variances = rng.normal(size=(9, 4)), rng.uniform(0.1, 2.0, (9, 4))
    matrices = np.einsum("nd,de->nde", variances, np.eye(4))
    factors = np.sqrt(matrices)
    same = [
        Covariances.diagonal(variances),
        Covariances.full(matrices),
        Covariances.low_rank(factors),
        Covariances.low_rank(factors * np.sqrt(0.3), 0.7 * variances),
    ]
    first, *others = (model.decision_std(mean, X_cov=cov) for cov in same)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-9)


def test_several_classes_have_a_deviation_for_each_pair(make_gaussians, fit, closed):
    model = fit(n_classes=4, **closed)
    X, _ = make_gaussians("diagonal", n=5, d=4, seed=1, scale=1e-7)
    std = model.decision_std(X)
    assert std.shape == (5, 6)
    moved = X.mean + X.covariances.values**0.5  # to first order along each feature by itself
    for pair in range(6):
        gradient_step = np.zeros((5, 4))
        for k in range(4):
            step = np.zeros((5, 4))
            step[:, k] = 1e-4
            values = [
                expected_kernel_values(model, X.mean + sign * step)[:, pair] for sign in (1, -1)
            ]
            gradient_step[:, k] = (values[0] - values[1]) / 2e-4 * (moved - X.mean)[:, k]
        if model.normalize:
            gradient_step /= np.sqrt(expected_kernel(X, gamma=model.gamma_).diagonal())[:, None]
        expected = np.linalg.norm(gradient_step, axis=1)
        np.testing.assert_allclose(std[:, pair], expected, rtol=1e-4)


def expected_kernel_values(model, points):
    """Return the decision values of the pairs of classes at points."""
    return model._pair_values(Gaussians(points), None, None)


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
def test_mixtures_have_the_deviation_of_their_draws(make_gaussians, closed):
    components, y = make_gaussians("diagonal", n=120, d=4)
    X = GaussianMixtures(components, np.tile([0.3, 0.7], 60), 2)
    model = UncertainKernelSVC(C=2.0, tol=1e-3, spread="exact", **closed).fit(X, y[::2])
    rng, n_draws = np.random.default_rng(0), 10_000
    own = [1.0] * 3
    if closed.get("normalize"):
        own = expected_kernel(X[:3], gamma=closed["gamma"]).diagonal()
    std = model.decision_std(X[:3])
    for i in range(3):
        weights, parts = X[i]
        counts = rng.multinomial(n_draws, weights)
        points = np.concatenate(
            [rng.multivariate_normal(*parts[a], count) for a, count in enumerate(counts)]
        )
        values = model.decision_function(points, X_std=0) / np.sqrt(own[i])
        squares = np.square(values - values.mean())
        assert abs(std[i] ** 2 - squares.mean()) <= 4 * squares.std() / np.sqrt(n_draws)
    halves = X.components[np.repeat(np.arange(6), 2)]
    halves = GaussianMixtures(halves, np.repeat(X.weights[:6], 2) / 2, 4)
    np.testing.assert_allclose(model.decision_std(halves), std, rtol=1e-9)
    alone = GaussianMixtures(components[:5], np.ones(5), 1)
    np.testing.assert_allclose(
        model.decision_std(alone), model.decision_std(components[:5]), rtol=1e-12
    )


@each("kind", KINDS)
def test_polynomial_of_degree_one_and_linear_agree_with_the_gradient(make_gaussians, fit, kind):
    X, _ = make_gaussians(kind, n=9, d=4, seed=1)
    for options in ({"kernel": "linear"}, {"kernel": "poly", "degree": 1, "gamma": 1.0}):
        model = fit(**options)
        unit = model.decision_function(np.eye(4), X_std=0) - model.decision_function(
            np.zeros((1, 4)), X_std=0
        )
        expected = np.sqrt(np.einsum("i,nij,j->n", unit, X.covariances.to_full(), unit))
        np.testing.assert_allclose(model.decision_std(X), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level2": "gaussian"}, "level2='gaussian' has no standard deviation"),
        ({"kernel": "laplacian"}, "kernel laplacian has no closed form of the standard deviation"),
        ({"kernel": "poly", "degree": 3}, "kernel poly of degree 3 has no closed form"),
        ({"kernel": "linear", "normalize": True}, "normalize=True with kernel linear has no"),
    ],
)
def test_kernels_without_closed_form_are_refused(make_gaussians, fit, options, message):
    X, _ = make_gaussians("diagonal", n=9, d=4, seed=1)
    with pytest.raises(ValueError, match=message):
        fit(**options).decision_std(X)


def test_a_model_that_is_not_fitted_and_wrong_data_are_refused(fit):
    with pytest.raises(Exception, match="not fitted yet"):
        UncertainKernelSVC().decision_std(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="X has 3 features, but UncertainKernelSVC is expecting 4"):
        fit().decision_std(Gaussians(np.zeros((1, 3))))
