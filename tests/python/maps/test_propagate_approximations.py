"""Approximations of Propagate against integrals, closed forms and draws, within what they state."""

import numpy as np
import pytest
from cases import KINDS, each
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)

from halosvm import Gaussians, Propagate
from halosvm.maps import approximations

METHODS = ("linear", "unscented", "monte_carlo")
N, D = 12, 3


def squared(x):
    """Return all squares and one product of two features."""
    return np.column_stack([x**2, x[:, 0] * x[:, 1]])


def lengths(x):
    return np.sqrt(np.sum(np.square(x), axis=1, keepdims=True)) * [1.0, 2.0]


@pytest.fixture(name="X")
def examples(make_covariances, kind):
    """Return examples of every kind, far from 0."""
    rng = np.random.default_rng(0)
    covariances = make_covariances(kind, N, D, rng, scale=0.05)
    return Gaussians(rng.uniform(1.0, 3.0, (N, D)), cov=covariances)


def moments(function, X, points=24):
    """Return means and variances of a function of each feature, by Gauss-Hermite quadrature."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    w = w / w.sum()
    values = function(X.mean[..., None] + np.sqrt(X.covariances.variances())[..., None] * z)
    mean = values @ w
    return mean, (values - mean[..., None]) ** 2 @ w


FUNCTIONS = {
    "log": (np.log, FunctionTransformer(np.log), lambda x: 1 / x),
    "sqrt": (np.sqrt, FunctionTransformer(np.sqrt), lambda x: 0.5 / np.sqrt(x)),
    "logistic": (expit, FunctionTransformer(expit), lambda x: expit(x) * expit(-x)),
}


@each("name", FUNCTIONS)
def test_slopes_by_differences_are_the_derivatives(X, name):
    _, transformer, slope = FUNCTIONS[name]
    image = Propagate(transformer, "linear").fit_transform(X)
    J = slope(X.mean)
    expected = X.covariances.to_full() * J[:, :, None] * J[:, None, :]
    np.testing.assert_allclose(image.covariances.to_full(), expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(image.mean, transformer.fit_transform(X.mean))
    kind = X.covariances.expanded().kind
    kept = "diagonal" if kind == "isotropic" else kind
    assert image.covariances.kind == kept


def test_slopes_of_features_together_are_the_jacobian(X):
    image = Propagate(Normalizer(), "linear").fit_transform(X)
    length = np.linalg.norm(X.mean, axis=1)[:, None, None]
    u = X.mean[:, :, None] / length
    J = (np.eye(D) - u @ u.transpose(0, 2, 1)) / length
    expected = J @ X.covariances.to_full() @ J.transpose(0, 2, 1)
    np.testing.assert_allclose(image.covariances.to_full(), expected, rtol=0, atol=1e-11)


def test_slopes_hold_at_any_distance_from_zero_and_at_any_offset():
    x = np.array([[1e-3, 1e5], [0.1, 1e5 + 1], [3.0, 1e5 + 2]])
    X = Gaussians(x, std=1e-4 * x)
    image = Propagate(FunctionTransformer(np.log), "linear").fit_transform(X)
    np.testing.assert_allclose(image.covariances.variances(), 1e-8, rtol=1e-6)
    bend = FunctionTransformer(lambda x: np.tanh(x - [0.0, 1e5]))
    image = Propagate(bend, "linear").fit_transform(X)
    slope = 1 - np.tanh(x - [0.0, 1e5]) ** 2
    np.testing.assert_allclose(
        np.sqrt(image.covariances.variances()), slope * 1e-4 * x, rtol=1e-6, atol=1e-7
    )


def test_given_slopes_are_used():
    rng = np.random.default_rng(1)
    X = Gaussians(rng.uniform(1, 2, (N, D)), std=rng.uniform(0.1, 0.2, (N, D)))
    logs = FunctionTransformer(np.log)
    by_hand = Propagate(logs, "linear", jacobian=lambda x: 1 / x).fit_transform(X)
    by_differences = Propagate(logs, "linear").fit_transform(X)
    np.testing.assert_allclose(
        by_hand.covariances.variances(), by_differences.covariances.variances(), rtol=1e-9
    )

    def jacobian(x):
        J = np.zeros((len(x), D + 1, D))
        J[:, np.arange(D), np.arange(D)] = 2 * x
        J[:, D, 0], J[:, D, 1] = x[:, 1], x[:, 0]
        return J

    image = Propagate(FunctionTransformer(squared), "linear", jacobian=jacobian).fit_transform(X)
    J = jacobian(X.mean)
    expected = J @ X.covariances.to_full() @ J.transpose(0, 2, 1)
    np.testing.assert_allclose(image.covariances.to_full(), expected, rtol=1e-12)
    for wrong, message in (
        (lambda x: np.ones((len(x), 2)), r"returned shape \(12, 2\), expected \(12, 3, 3\), or"),
        (lambda x: np.where(x == X.mean[4], np.nan, x), "returned nan for row 4"),
    ):
        with pytest.raises(ValueError, match=message):
            Propagate(logs, "linear", jacobian=wrong).fit_transform(X)


def test_points_are_exact_for_the_polynomials_that_they_state(make_covariances):
    rng = np.random.default_rng(2)
    for stored in ("diagonal", "isotropic_std", "low_rank", "full", "ragged_diagonal"):
        X = Gaussians(rng.normal(size=(N, D)), cov=make_covariances(stored, N, D, rng))
        x, v = X.mean, X.covariances.variances()
        for function in (np.square, lambda x: x**2):  # known to be of one feature each, and not
            image = Propagate(FunctionTransformer(function), "unscented").fit_transform(X)
            np.testing.assert_allclose(image.mean, x**2 + v, rtol=1e-12)
            if stored in ("diagonal", "isotropic_std"):
                exact = 4 * x**2 * v + 2 * v**2
                np.testing.assert_allclose(image.covariances.variances(), exact, rtol=1e-12)
        fifth = FunctionTransformer(lambda x: x**5)
        image = Propagate(fifth, "unscented").fit_transform(X)
        if stored in ("diagonal", "isotropic_std"):
            np.testing.assert_allclose(image.mean, x**5 + 10 * x**3 * v + 15 * x * v**2, atol=1e-10)


def test_points_neglect_products_of_directions_and_nothing_else():
    x, v = np.array([[1.0, -2.0]]), np.array([[0.3, 0.2]])
    product = FunctionTransformer(lambda x: x[:, :1] * x[:, 1:])
    image = Propagate(product, "unscented").fit_transform(Gaussians(x, variance=v))
    assert image.mean[0, 0] == pytest.approx(-2.0, rel=1e-14)
    neglected = v[0, 0] * v[0, 1]
    exact = x[0, 1] ** 2 * v[0, 0] + x[0, 0] ** 2 * v[0, 1] + neglected
    assert image.covariances[0][0, 0] == pytest.approx(exact - neglected, rel=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_of_approximations_shrink_with_the_variance_as_their_order_says(name):
    function, transformer, _ = FUNCTIONS[name]
    x = np.random.default_rng(3).uniform(1.0, 3.0, (N, D))
    errors = {"linear": [], "unscented": []}
    for size in (0.1, 0.05):
        X = Gaussians(x, std=size * x)
        mean, variance = moments(function, X)
        for method in errors:
            image = Propagate(transformer, method).fit_transform(X)
            relative = np.abs(image.covariances.variances() / variance - 1).max()
            shift = np.abs(image.mean - mean).max()
            errors[method].append((shift, relative))
    for method, orders in {"linear": (2, 2), "unscented": (6, 2)}.items():
        for order, large, small in zip(orders, *errors[method], strict=True):
            assert small < large / 2 ** (0.8 * order), (method, order)
    shifts = [errors[method][0][0] for method in ("linear", "unscented")]
    assert shifts[1] < 0.05 * shifts[0]


@each("name", FUNCTIONS)
def test_draws_err_by_their_standard_error(X, name):
    function, transformer, _ = FUNCTIONS[name]
    draws = 4000
    image = Propagate(transformer, "monte_carlo", n_draws=draws, random_state=0).fit_transform(X)
    mean, variance = moments(function, X)
    assert (np.abs(image.mean - mean) <= 5 * np.sqrt(variance / draws) + 1e-14).all()
    found = image.covariances.variances()
    assert (np.abs(found - variance) <= 5 * 1.2 * variance * np.sqrt(2 / draws) + 1e-28).all()


@each(
    "transformer",
    [
        FunctionTransformer(np.log),
        PowerTransformer(),
        Normalizer(),
        make_pipeline(StandardScaler(), FunctionTransformer(expit), Normalizer()),
        FunctionTransformer(squared),
        FunctionTransformer(lengths),
    ],
)
def test_every_approximation_agrees_with_draws(X, transformer):
    draws = 8000
    image = Propagate(transformer, "monte_carlo", n_draws=draws, random_state=1).fit_transform(X)
    S = image.covariances.to_full()
    variance = np.einsum("njj->nj", S).max(axis=1)[:, None]
    for method in ("linear", "unscented"):
        other = Propagate(transformer, method).fit_transform(X)
        # errors of 5 % of values between 1 and 3: the second order is some percents of the first
        assert (np.abs(other.mean - image.mean) <= 0.15 * np.sqrt(variance) + 1e-15).all()
        error = np.abs(other.covariances.to_full() - S).max(axis=2)
        assert (error <= 0.12 * variance + 1e-15).all()


def test_splines_of_more_outputs_than_features_are_low_rank():
    rng = np.random.default_rng(4)
    X = Gaussians(rng.uniform(size=(80, 2)), std=np.full((80, 2), 0.002))
    splines = SplineTransformer(8, degree=3)
    drawn = Propagate(splines, "monte_carlo", n_draws=20000, random_state=0).fit_transform(X)
    S = drawn.covariances.to_full()
    assert (S[:, :10, 10:] ** 2).max() < 1e-3 * (S**2).max()  # features are independent
    for method in ("linear", "unscented"):
        image = Propagate(splines, method).fit_transform(X)
        assert image.covariances.kind == "low_rank"
        found = image.covariances.to_full()
        assert not found[:, :10, 10:].any()
        np.testing.assert_allclose(found, S, rtol=0, atol=0.1 * S.max())
    few = Propagate(splines, "monte_carlo", n_draws=5, random_state=0).fit_transform(X)
    assert few.covariances.kind == "low_rank"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("function", [np.log, squared, lengths], ids=("log", "squares", "lengths"))
def test_certain_rows_stay_certain(make_covariances, method, function):
    rng = np.random.default_rng(5)
    X = Gaussians(
        rng.uniform(1, 2, (N, D)), cov=make_covariances("half_certain", N, D, rng, scale=0.05)
    )
    through = Propagate(FunctionTransformer(function), method, random_state=0).fit(X)
    image = through.transform(X)
    assert not image.covariances.variances()[::2].any()
    assert image.covariances.variances()[1::2].all()
    np.testing.assert_array_equal(image.mean[::2], function(X.mean)[::2])
    assert through.transform(Gaussians(X.mean)).covariances.certain


@each("method", METHODS)
def test_blocks_of_rows_change_nothing(monkeypatch, X, method):
    for transformer in (FunctionTransformer(np.log), Normalizer(), SplineTransformer(9)):
        through = Propagate(transformer, method, n_draws=30, random_state=0).fit(X)
        whole = through.transform(X)
        with monkeypatch.context() as patch:
            patch.setattr(approximations, "_BLOCK", 500)
            parts = through.transform(X)
        np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-13)
        np.testing.assert_allclose(
            parts.covariances.to_full(), whole.covariances.to_full(), rtol=1e-9, atol=1e-14
        )
        assert parts.covariances.kind == whole.covariances.kind


def test_a_seed_gives_the_same_draws(X):
    seeded = Propagate(Normalizer(), "monte_carlo", n_draws=50, random_state=3).fit(X)
    np.testing.assert_array_equal(seeded.transform(X).mean, seeded.transform(X).mean)
    other = Propagate(Normalizer(), "monte_carlo", n_draws=50, random_state=4).fit_transform(X)
    same = np.array_equal(seeded.transform(X).mean, other.mean)
    assert same == X.covariances.certain


def test_points_outside_of_the_domain_are_refused_with_their_row():
    X = Gaussians(np.array([[5.0], [1.0], [1.0]]), std=np.array([0.1, 0.2, 0.9]))
    logs = FunctionTransformer(np.log)
    with pytest.raises(ValueError, match=r"X row 2: .*the unscented rule; .*method='linear'"):
        Propagate(logs, "unscented").fit_transform(X)
    with pytest.raises(ValueError, match=r"X row 2: .* a draw;"):
        Propagate(logs, "monte_carlo", random_state=0).fit_transform(X)
    image = Propagate(logs, "linear").fit_transform(X)
    np.testing.assert_allclose(np.sqrt(image.covariances.variances().ravel()), [0.02, 0.2, 0.9])


def test_slopes_at_the_edge_of_the_domain_are_refused_unless_the_example_is_certain():
    roots = FunctionTransformer(np.sqrt)
    x, std = np.array([[4.0], [0.0], [1.0]]), np.array([[0.1], [0.0], [0.2]])
    image = Propagate(roots, "linear").fit_transform(x, X_std=std)
    np.testing.assert_allclose(np.sqrt(image.covariances.variances()), [[0.025], [0.0], [0.1]])
    std[1] = 0.1
    with pytest.raises(ValueError, match=r"X row 1: .* its slopes; give them as jacobian"):
        Propagate(roots, "linear").fit_transform(x, X_std=std)


@each("kind", KINDS)
def test_float32_keeps_its_type_and_is_differentiated_in_float64(make_covariances, kind):
    rng = np.random.default_rng(6)
    covariances = make_covariances(kind, N, D, rng, np.float32, scale=0.05)
    X = Gaussians(rng.uniform(1.0, 3.0, (N, D)).astype(np.float32), cov=covariances)
    wide = Gaussians(X.mean.astype(np.float64), cov=covariances.to_full())
    for transformer in (FunctionTransformer(np.log), Normalizer()):
        for method in ("linear", "unscented"):
            image = Propagate(transformer, method).fit_transform(X)
            assert image.dtype == np.float32
            expected = Propagate(transformer, method).fit_transform(wide)
            tolerance = 1e-5 * expected.covariances.to_full().max() + 1e-12
            np.testing.assert_allclose(image.mean, expected.mean, rtol=1e-3)
            if X.covariances.kind in ("full", "zero"):
                np.testing.assert_allclose(
                    image.covariances.to_full(), expected.covariances.to_full(), atol=tolerance
                )
