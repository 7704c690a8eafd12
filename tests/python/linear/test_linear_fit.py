"""The fit that all linear estimators share: its status, its sentences, its settings."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from halosvm import Gaussians, IsotropicKernelSVC, UncertainSVC
from halosvm.linear.linear_fit import BATCH_SOLVERS, Settings, Status, fit_linear

# What ends a run in each way, and a part of the sentence and of the warning about it.
ENDS = {
    Status.CONVERGED: ({}, {}, "within the tolerance", None),
    Status.STATIONARY: ({}, {"loss": "best_case"}, "no step of the search leads down", None),
    Status.MAX_ITERATIONS: ({}, {"max_iter": 1}, "iterations ended before", "increase max_iter"),
    Status.STALLED: ({}, {"tol": 0.0, "max_iter": 100_000}, "stalled", "the search stalled"),
    Status.ZERO_MODEL: ({"std": 100.0, "rare": True}, {}, "least at w = 0", "least at w = 0"),
}


def problem(std=0.3, *, rare=False):
    """Return Gaussians and codes of two classes, of which one may be rare."""
    rng = np.random.default_rng(7)
    codes = (np.arange(60) % 20 == 0 if rare else np.arange(60) % 2).astype(np.int16)
    means = rng.normal(size=(60, 3)) + codes[:, np.newaxis]
    return Gaussians(means, std=np.full(means.shape, std)), codes


@pytest.mark.parametrize("status", Status)
def test_each_end_has_a_status_a_sentence_and_the_right_warning(status):
    data, parameters, sentence, complaint = ENDS[status]
    X, codes = problem(**data)
    settings = Settings.of(UncertainSVC(**parameters))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = fit_linear(X, np.array(["a", "b"]), codes, None, settings)
    assert result.status is status
    assert sentence in result.message
    assert [complaint in str(warning.message) for warning in told] == [True] * bool(complaint)
    assert all(warning.category is ConvergenceWarning for warning in told)
    assert (status in {Status.CONVERGED, Status.ZERO_MODEL}) == (
        result.suboptimality.max() <= settings.tol
    )
    assert status is not Status.ZERO_MODEL or not result.coef.any()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", [s for s in BATCH_SOLVERS if s != "dual_coordinate"])
def test_two_estimators_of_one_problem_are_told_of_the_same_fit(solver, n_classes):
    """A linear kernel of orthonormal points has the coordinates that the linear machine has."""
    X, y = np.eye(6), np.arange(6) % n_classes
    linear = UncertainSVC(solver=solver).fit(X, y, X_std=np.full(6, 0.5)[:, None] * np.ones(6))
    kernel = IsotropicKernelSVC(kernel="linear", solver=solver).fit(X, y, X_std=np.full(6, 0.5))
    assert np.shape(kernel.objective_) == np.shape(linear.objective_)
    assert isinstance(kernel.objective_, float) == (n_classes == 2)
    np.testing.assert_allclose(kernel.objective_, linear.objective_, 2e-6)
    assert np.max(kernel.suboptimality_) <= kernel.tol
    assert kernel.status_ == linear.status_


@pytest.mark.parametrize("estimator", [UncertainSVC(), IsotropicKernelSVC()])
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"C": 0.0}, ValueError, "C must be positive and finite, got 0.0"),
        ({"tol": -1.0}, ValueError, "tol must be >= 0 and finite, got -1.0"),
        ({"max_iter": 0}, ValueError, "max_iter must be >= 1, got 0"),
        ({"fit_intercept": 1}, TypeError, "fit_intercept must be True or False, got 1"),
        ({"n_threads": 0}, ValueError, "n_threads must be >= 1, got 0"),
        ({"solver": "newton"}, ValueError, "solver must be one of auto, lbfgs, interior_point"),
    ],
)
def test_settings_are_checked_before_data_are_read(estimator, bad, error, message):
    estimator.set_params(**{**type(estimator)().get_params(), **bad})
    with pytest.raises(error, match=message):
        estimator.fit(object(), object())
