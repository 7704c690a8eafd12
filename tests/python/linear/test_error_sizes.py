"""`error_scale` and `radius` multiply the errors of training examples, and nothing else.

Oracle: the same fit to errors that were multiplied by hand.
"""

import numpy as np
import pandas as pd
import pytest
from cases import DTYPES, KINDS, each

from halosvm import (
    Covariances,
    Gaussians,
    TotalSVC,
    UncertainSVC,
    _core,
    load_model,
    save_model,
)

LOSSES = _core.loss_names()
WITH_RADIUS = [loss for loss in LOSSES if _core.loss_traits(loss)["has_radius"]]


def multiplied(X, factors):
    """Return examples whose matrices are multiplied by factors^2."""
    full = X.covariances.to_full() * np.reshape(factors, (-1, 1, 1)) ** 2
    return Gaussians(X.mean, cov=Covariances.full(full))


def fitted(X, y, loss="expected_hinge", *, radii=None, **parameters):
    return UncertainSVC(loss=loss, **parameters).fit(X, y, radius=radii)


@each("dtype", DTYPES)
@each("kind", KINDS)
@each("factors", [np.array(2.0), np.array([2.0, 0.0, 0.5] * 20)])
def test_every_kind_is_multiplied_in_its_own_kind(make_gaussians, kind, dtype, factors):
    X, _ = make_gaussians(kind, dtype=dtype)
    found = X.with_spreads_times(factors, "X")
    assert found.covariances.kind == X.covariances.kind
    assert np.shares_memory(found.mean, X.mean)
    expected = multiplied(X, factors).covariances.to_full()
    np.testing.assert_allclose(found.covariances.to_full(), expected, rtol=1e-6, atol=1e-14)


@each("kind", KINDS)
def test_factors_of_one_copy_nothing_and_factors_of_zero_leave_certain_points(make_gaussians, kind):
    X, _ = make_gaussians(kind)
    for one in (np.array(1.0), np.ones(60)):
        assert X.with_spreads_times(one, "X") is X
    for zero in (np.array(0.0), np.zeros(60)):
        assert X.with_spreads_times(zero, "X").covariances.certain


def single_precision_matrices(seed=0, n=40, d=6, rank=2):
    """Return matrices of small rank: rounding in float32 makes eigenvalues of -1e-7."""
    rng = np.random.default_rng(seed)
    R = 0.3 * rng.normal(size=(n, d, rank))
    S = (R @ R.transpose(0, 2, 1)).astype(np.float32)
    smallest = np.linalg.eigvalsh(S.astype(np.float64))[:, 0]
    assert (smallest < -1e-8 * S.max(axis=(1, 2))).any()
    y = np.arange(n) % 2
    return Gaussians(rng.normal(size=(n, d)) + y[:, np.newaxis], cov=S), y


@pytest.mark.parametrize("seed", range(5))
def test_matrices_of_single_precision_stay_valid_when_multiplied(seed):
    X, y = single_precision_matrices(seed)
    found = fitted(X, y, error_scale=0.7)
    expected = fitted(Gaussians(X.mean, cov=X.covariances.values * np.float32(0.49)), y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
    fitted(X, y, "worst_case", radius=0.3)
    fitted(X, y, "worst_case", radii=np.linspace(0.1, 3.0, 40))
    TotalSVC(kernel="rbf", radius=0.3).fit(X, y)
    both = Gaussians.concatenate([X, Gaussians(X.mean, cov=np.tile(np.eye(6), (40, 1, 1)))])
    assert both.covariances.dtype == np.float64
    fitted(both, np.tile(y, 2), error_scale=0.7)


@each("dtype", DTYPES)
@each("kind", KINDS)
def test_the_type_of_the_numbers_is_kept_where_it_holds_them(make_gaussians, kind, dtype):
    X, _ = make_gaussians(kind, dtype=dtype)
    found = X.with_spreads_times(np.array(0.7), "X")
    assert found.covariances.dtype == X.covariances.dtype
    X, _ = single_precision_matrices()
    kept = X.with_spreads_times(np.array(0.7), "X").covariances.truncate(1.0)
    np.testing.assert_array_equal(kept.offsets, X.covariances.truncate(1.0).offsets)
    wide = X.with_spreads_times(np.array(1e25), "X").covariances
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide.values, X.covariances.to_full() * 1e50, rtol=1e-12)


def test_products_that_are_too_large_are_refused_with_their_row():
    std = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    X = Gaussians(np.array([[0.0, 0.0], [1e75, 0.0], [0.0, 1e75]]), std=std)
    with pytest.raises(ValueError, match=r"errors times error_scale and radius row 2, column 1"):
        fitted(X, [0, 1, 1], error_scale=1.8e74)


@pytest.mark.filterwarnings("ignore:the objective is least at w = 0")
@each("kind", KINDS)
@each("loss", LOSSES)
def test_error_scale_multiplies_errors_for_every_loss(make_gaussians, kind, loss):
    X, y = make_gaussians(kind)
    for scale in (0.5, 2.0, 0.0):
        found = fitted(X, y, loss, error_scale=scale)
        expected = fitted(multiplied(X, scale), y, loss)
        assert found.objective_ == pytest.approx(expected.objective_, rel=3e-6)
    points = fitted(Gaussians(X.mean), y, loss)
    np.testing.assert_array_equal(found.coef_, points.coef_)


@each("kind", KINDS)
@each("loss", WITH_RADIUS)
def test_radius_multiplies_errors_as_a_number_and_for_each_example(make_gaussians, kind, loss):
    X, y = make_gaussians(kind, gap=3.0, scale=0.05)  # of which no worst case leaves only w = 0
    radii = np.tile([0.5, 1.0, 2.0], 20)
    for given, factors in (
        ({"radius": 0.5}, 0.5),
        ({"radii": radii}, radii),
        ({"radius": 0.5, "radii": radii, "error_scale": 3.0}, 1.5 * radii),
    ):
        found = fitted(X, y, loss, **given)
        expected = fitted(multiplied(X, factors), y, loss)
        assert found.objective_ == pytest.approx(expected.objective_, rel=3e-6)
    points, none = fitted(Gaussians(X.mean), y, loss), fitted(X, y, loss, radius=0)
    np.testing.assert_array_equal(none.coef_, points.coef_)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in WITH_RADIUS])
def test_losses_without_radius_refuse_one(make_gaussians, loss):
    X, y = make_gaussians("diagonal")
    with pytest.raises(ValueError, match=f"radius is 2.0, but loss='{loss}' has no radius"):
        fitted(X, y, loss, radius=2.0)
    with pytest.raises(ValueError, match=f"radius is given to fit, but loss='{loss}' has no radi"):
        fitted(X, y, loss, radii=np.ones(60))


@pytest.mark.parametrize(
    ("parameter", "error", "message"),
    [
        ({"error_scale": -1.0}, ValueError, "error_scale must be >= 0 and finite, got -1.0"),
        ({"error_scale": np.nan}, ValueError, "error_scale must be >= 0 and finite, got nan"),
        ({"error_scale": "2"}, TypeError, "error_scale must be a number, got '2'"),
        ({"radius": np.inf}, ValueError, "radius must be >= 0 and finite, got inf"),
        ({"radius": [1.0]}, TypeError, "radius must be a number, got"),
        ({"radii": [1.0, -2.0]}, ValueError, "radius: row 1 is -2; it must be >= 0"),
        ({"radii": [np.nan, 1.0]}, ValueError, "radius: row 0 is nan; it must be >= 0"),
        ({"radii": [1.0, 1.0, 1.0]}, ValueError, r"radius has shape \(3,\), expected \(2,\)"),
        ({"radii": 2.0}, ValueError, r"radius has shape \(\), expected \(2,\)"),
        ({"radii": ["a", "b"]}, TypeError, "radius has dtype"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(parameter, error, message):
    X = Gaussians(np.array([[-1.0], [1.0]]), std=np.ones((2, 1)))
    with pytest.raises(error, match=message):
        fitted(X, [0, 1], "best_case", **parameter)


def test_radii_are_paired_with_the_rows_of_a_frame(make_gaussians):
    X, y = make_gaussians("diagonal_std", n=12)
    frame = pd.DataFrame(X.mean, index=[f"r{i}" for i in range(12)])
    radii = pd.Series(np.linspace(0, 2, 12), index=frame.index)
    clf, errors = UncertainSVC(loss="best_case"), X.covariances.values
    paired = clf.fit(frame, y, X_std=errors, radius=radii).coef_
    plain = clf.fit(X.mean, y, X_std=errors, radius=radii.to_numpy()).coef_
    np.testing.assert_array_equal(paired, plain)
    with pytest.raises(ValueError, match=r"radius has row 0 labelled 'r11', in X it is 'r0'"):
        clf.fit(frame, y, X_std=errors, radius=radii[::-1])


def test_errors_of_test_examples_are_taken_as_they_are_given(make_gaussians):
    X, y = make_gaussians("diagonal")
    for parameters in ({"error_scale": 0.5}, {"loss": "best_case", "radius": 2.0}):
        clf = UncertainSVC(**parameters).fit(X, y)
        s = np.sqrt(X.covariances.variances() @ clf.coef_[0] ** 2)
        np.testing.assert_allclose(clf.decision_std(X), s, rtol=1e-13)


def test_subspaces_are_those_of_the_errors_as_given(make_gaussians):
    X, y = make_gaussians("full")
    parameters = {"subspace": 0.8, "subspace_mean": "project"}
    means = X.truncate(0.8, mean="project").mean
    found = fitted(X, y, error_scale=0.0, **parameters)
    np.testing.assert_array_equal(found.coef_, fitted(Gaussians(means), y).coef_)


def test_model_files_keep_the_sizes_and_a_fit_without_bound(make_gaussians, tmp_path):
    X, y = make_gaussians("diagonal")
    clf = UncertainSVC(loss="best_case", radius=0.5, error_scale=2.0).fit(X, y)
    save_model(clf, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.get_params() == clf.get_params()
    assert np.isposinf(loaded.suboptimality_)
    assert loaded.status_ == clf.status_
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(loaded.side_probability(X), clf.side_probability(X))


def test_three_classes_are_fitted_one_against_the_rest(make_gaussians):
    X, _ = make_gaussians("diagonal", n=90)
    y = np.random.default_rng(1).permutation(90) % 3
    clf = UncertainSVC(loss="best_case").fit(X, y)
    assert np.isposinf(clf.suboptimality_).tolist() == [True] * 3
    for k in range(3):
        one = UncertainSVC(loss="best_case").fit(X, y == k)
        np.testing.assert_array_equal(clf.coef_[k], one.coef_[0])


def test_a_search_that_ends_at_zero_says_so():
    X = Gaussians(np.zeros((4, 1)), std=np.ones((4, 1)))
    with pytest.warns(UserWarning, match="the search ended at w = 0, where only the larger side"):
        fitted(X, [0, 1, 0, 1], "best_case")


def test_progress_of_a_loss_that_is_not_convex_tells_no_bound(make_gaussians, capsys):
    X, y = make_gaussians("diagonal")
    clf = fitted(X, y, "best_case", verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"iteration {clf.n_iter_:>7}   objective {clf.objective_:.8e}"
