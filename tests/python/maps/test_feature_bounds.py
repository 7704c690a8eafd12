"""Bounds of how far features of bounded inputs move: against gradient ascent, and worst cases."""

import numpy as np
import pytest
from cases import DTYPES, KINDS, each

from halosvm import (
    Gaussians,
    UncertainFourierFeatures,
    UncertainNystroem,
    UncertainSVC,
    _core,
    reference,
)
from halosvm.reference import differentiable_fourier, differentiable_nystroem, strongest_move

NORMS = pytest.mark.parametrize("norm", [1, 2, np.inf])


def root_of(X, i):
    """Return the R of which the documentation speaks: diag(sd) beside the factors."""
    part = X.covariances[i : i + 1]
    own = part.diagonal_values if part.diagonal_values is not None else None
    if part.values is not None and part.offsets is None and part.values.ndim == 3:
        factor = part.values[0]
        return factor if own is None else np.hstack([np.diag(np.sqrt(own[0])), factor])
    return np.diag(np.sqrt(part.variances()[0]))


@NORMS
@each("form, D", [("paired", 30), ("paired", 5), ("phase", 30)])
@each("sort", ["isotropic", "diagonal", "low_rank", "low_rank_diagonal"])
def test_no_perturbation_moves_fourier_features_beyond_their_bounds(
    form, D, sort, norm, make_gaussians
):
    X, _ = make_gaussians(sort, n=4, d=3, scale=0.7)
    rng = np.random.default_rng(0)
    for gamma, radius in ((0.1, 0.5), (0.5, 2.0), (3.0, 1.0)):
        fitted = UncertainFourierFeatures(
            D, gamma=gamma, map=form, covariance="bound", radius=radius, norm=norm, random_state=0
        ).fit(X)
        tight = fitted.transform(X).covariances
        loose = fitted.set_params(bound="printed").transform(X).covariances
        features = differentiable_fourier(fitted.frequencies_, fitted.phases_)
        for i in range(len(X)):
            found = strongest_move(features, X.mean[i], root_of(X, i), radius, norm, rng)
            bound, printed = (np.sqrt(c[i][0, 0]) for c in (tight, loose))
            assert found <= bound * (1 + 1e-12)
            assert bound <= printed * (1 + 1e-12)
            assert bound < 2.6 * found  # 2 because corners differ, sqrt(2) for want of sines


@NORMS
@pytest.mark.parametrize("sort", ["isotropic", "diagonal", "low_rank", "low_rank_diagonal"])
@pytest.mark.parametrize("landmarks", ["means", "gaussians"])
def test_no_perturbation_moves_nystroem_features_beyond_their_bound(
    sort, norm, landmarks, make_gaussians
):
    X, _ = make_gaussians(sort, n=40, d=3, scale=0.7)
    rng = np.random.default_rng(0)
    for gamma in (0.2, np.array([0.2, 1.0, 0.05])):
        fitted = UncertainNystroem(
            gamma=gamma, n_components=30, covariance="bound", radius=0.8, norm=norm,
            landmarks=landmarks, random_state=0,
        ).fit(X)  # fmt: skip
        bounds = fitted.transform(X[:3]).covariances
        if landmarks == "means":
            features = differentiable_nystroem(fitted.landmarks_.mean, gamma, fitted.projection_)
        else:  # whose sections have no short gradient: random points of the ball
            fitted.set_params(covariance="full", output="mean")
            features = None
        for i in range(3):
            R, bound = root_of(X, i), np.sqrt(bounds[i][0, 0])
            if features is None:
                u = rng.normal(size=(500, R.shape[1]))
                u *= 0.8 / np.linalg.norm(u, norm, axis=1, keepdims=True)
                moved = fitted.transform(X.mean[i] + u @ R.T, X_std=0)
                apart = moved - fitted.transform(X.mean[i : i + 1], X_std=0)
                found = np.linalg.norm(apart, axis=1).max()
            else:
                found = strongest_move(features, X.mean[i], R, 0.8, norm, rng)
                assert bound < 3 * found
            assert found <= bound * (1 + 1e-12)


@pytest.mark.parametrize("n", [50, 300])
def test_gradient_ascent_comes_within_two_percent_of_the_joint_bound(n):
    """The setting of spec G.5: isotropic, D = 1000, where the printed bound is 6 to 11 times it."""
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(1, n)), std=np.full(1, 0.1 / np.sqrt(n) * np.sqrt(50)))
    fitted = UncertainFourierFeatures(1000, gamma=0.1, covariance="bound", random_state=0).fit(X)
    bound = np.sqrt(fitted.transform(X).covariances[0][0, 0])
    printed = np.sqrt(fitted.set_params(bound="printed").transform(X).covariances[0][0, 0])
    features = differentiable_fourier(fitted.frequencies_, None)
    R = np.sqrt(X.covariances[0][0, 0]) * np.eye(n)
    found = strongest_move(features, X.mean[0], R, 1.0, 2, rng, n_starts=20, n_steps=200)
    assert found <= bound * (1 + 1e-12)
    assert bound < 1.02 * found
    assert printed > 4 * bound


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_bounds_are_those_of_the_reference(kind, dtype, make_gaussians):
    X, _ = make_gaussians(kind, n=9, d=4, dtype=dtype)
    fitted = UncertainFourierFeatures(40, gamma=0.2, covariance="bound", radius=0.7, random_state=0)
    tight = fitted.fit(X).transform(X).covariances.variances()[:, 0]
    printed = fitted.set_params(bound="printed").transform(X).covariances.variances()[:, 0]
    for i, S in enumerate(X.covariances.to_full().astype(np.float64)):
        values, vectors = np.linalg.eigh(S)
        R = vectors * np.sqrt(np.maximum(values, 0.0))
        bounds = reference.fourier_bounds(fitted.frequencies_, R, 0.7)
        expected = min(bounds["frequencies"], bounds["joint"])
        np.testing.assert_allclose(tight[i], expected**2, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(printed[i], bounds["printed"] ** 2, rtol=1e-6, atol=1e-12)
        nystroem = UncertainNystroem(gamma=0.2, n_components=9, covariance="bound", radius=0.7)
        bounds = reference.nystroem_bounds(X.mean.astype(np.float64), 0.2, X.mean[i], R, 0.7)
        for name, (gamma, T) in bounds.items():
            moved = nystroem.set_params(bound=name).fit(X).transform(X).covariances.variances()[i]
            # Landmarks are all, so that eigenvalues are the same, the largest one first.
            expected = gamma**2 * np.diag(T)[::-1] ** 2
            np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-12)


@NORMS
@pytest.mark.parametrize("feature_norm", [1, 2, np.inf])
def test_bounds_of_the_reference_hold_in_every_norm(norm, feature_norm):
    rng = np.random.default_rng(0)
    W, R = rng.normal(size=(10, 3)), rng.normal(size=(3, 3)) / 3
    for radius in (0.1, 1.0, 5.0):
        bounds = reference.fourier_bounds(W, R, radius, norm, feature_norm)
        u = rng.normal(size=(20_000, 3))
        u *= radius * rng.random((20_000, 1)) / np.linalg.norm(u, norm, axis=1, keepdims=True)
        t = u @ R.T @ W.T
        blocks = np.sqrt(2 / 20) * np.hstack([np.cos(t) - 1, np.sin(t)])
        found = np.linalg.norm(blocks, feature_norm, axis=1).max()
        assert all(found <= bound for bound in bounds.values())
        assert bounds["frequencies"] <= bounds["printed"] * (1 + 1e-12)
        assert bounds["frequencies"] < 12 * found


def test_nystroem_bounds_of_the_reference_hold_for_every_direction():
    rng = np.random.default_rng(0)
    Z, x, R = rng.normal(size=(12, 3)), rng.normal(size=3), rng.normal(size=(3, 3)) / 4
    values, U = np.linalg.eigh(np.exp(-0.3 * np.square(Z[:, None] - Z).sum(-1)))
    features = differentiable_nystroem(Z, 0.3, (U / np.sqrt(values)).T)
    for radius in (0.1, 1.0):
        bounds = reference.nystroem_bounds(Z, 0.3, x, R, radius)
        u = rng.normal(size=(5000, 3))
        u *= radius / np.linalg.norm(u, axis=1, keepdims=True)
        moved = features(x + u @ R.T)[0] - features(x[None])[0]
        for gamma, T in bounds.values():  # over all w: the length of the move before T
            assert np.linalg.norm(moved @ np.linalg.inv(T), axis=1).max() <= gamma
        own, printed = bounds["landmarks"][0], bounds["printed"][0]
        assert own < printed


def test_the_worst_case_on_bounds_is_above_that_of_every_perturbation():
    rng = np.random.default_rng(1)
    X = Gaussians(rng.normal(size=(80, 2)), std=rng.uniform(0.02, 0.1, (80, 2)))
    y = np.where(np.sum(X.mean**2, axis=1) > 1.2, 1, -1)
    for features in (
        UncertainFourierFeatures(60, gamma=0.5, covariance="bound", radius=2.0, random_state=0),
        UncertainNystroem(gamma=0.5, n_components=40, covariance="bound", radius=2.0),
        UncertainNystroem(
            gamma=0.5, n_components=10, covariance="bound", radius=2.0, bound="landmarks"
        ),
    ):
        lifted = features.fit_transform(X)
        clf = UncertainSVC(10.0, loss="worst_case").fit(lifted, y)
        spread = clf.decision_std(lifted)
        worst = y * clf.decision_function(lifted.mean) - spread
        for _ in range(50):
            u = rng.normal(size=(80, 2))
            u *= 2.0 / np.linalg.norm(u, axis=1, keepdims=True)
            points = Gaussians(X.mean + u * np.sqrt(X.covariances.variances()))
            moved = features.transform(points).mean
            assert (y * clf.decision_function(moved) >= worst - 1e-9).all()


def test_wide_data_have_a_bound_that_holds():
    """Beyond 256 on the smaller side, the spectral norm of a row is bounded by a larger one."""
    rng = np.random.default_rng(0)
    X = Gaussians(rng.normal(size=(2, 300)), std=rng.uniform(0.15, 0.2, (2, 300)))
    fitted = UncertainFourierFeatures(600, gamma=0.01, covariance="bound", random_state=0).fit(X)
    bounds = np.sqrt(fitted.transform(X).covariances.variances()[:, 0])
    printed = fitted.set_params(bound="printed").transform(X).covariances.variances()[:, 0]
    for i in range(2):
        R = np.diag(np.sqrt(X.covariances.variances()[i]))
        norm = np.linalg.norm(fitted.frequencies_ @ R, 2)
        joint = 2 * np.sin(min(np.pi, norm / np.sqrt(300)) / 2)
        assert joint * (1 - 1e-12) <= bounds[i] < 1.3 * joint
        assert bounds[i] < 0.5 * np.sqrt(printed[i])
    round_ones = Gaussians(X.mean, std=np.full(2, 0.2))
    bound = np.sqrt(fitted.set_params(bound="tight").transform(round_ones).covariances[0][0, 0])
    norm = 0.2 * np.linalg.norm(fitted.frequencies_, 2)
    np.testing.assert_allclose(bound, 2 * np.sin(norm / np.sqrt(300) / 2), rtol=1e-10)
    dense = Gaussians(X.mean, cov=X.covariances.to_full())
    largest = np.sqrt(fitted.transform(dense).covariances.variances()[:, 0])
    assert (largest >= bounds * (1 - 1e-9)).all()


@pytest.mark.parametrize("norm", [3.0, 0.5, np.nan])
def test_the_core_refuses_other_norms_and_radii(norm):
    X = Gaussians(np.zeros((3, 2)), std=np.ones(3)).core_view()
    with pytest.raises(ValueError, match=f"norm is {norm:g}; it must be 1, 2 or infinity"):
        _core.largest_steps(X, np.ones(1), 1.0, norm)
    with pytest.raises(ValueError, match="radius is -1; it must be finite and >= 0"):
        _core.fourier_bound(np.ones((1, 2)), None, X, -1.0, 2.0)
    with pytest.raises(ValueError, match="scale has 3 features, X has 2"):
        _core.largest_steps(X, np.ones(3), 1.0, 2.0)
