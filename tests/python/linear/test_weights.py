"""Weights are repetitions: scikit-learn's own checks, for every loss and solver at default `tol`.

They ask for the same decision values to seven digits. That is possible of a solver whose steps are
those of the objective alone, not of the order or number of its rows, and where the optimum is not
among kinks; of the others the objectives are compared, as far as they are certified.
"""

import numpy as np
import pytest
from cases import each
from sklearn.utils import shuffle
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from halosvm import UncertainSVC, UncertainSVR, _core
from halosvm.linear.residual_losses import LOSSES
from halosvm.linear.residuals import Scale

MACHINES = [UncertainSVC(loss=loss) for loss in _core.loss_names()]
MACHINES += [UncertainSVR(loss=loss) for loss in LOSSES]
CONVEX = [m for m in MACHINES if m.loss not in ("best_case", "marginal_logistic")]
SMOOTH = ("expected_squared_hinge", "expected_huber_hinge", "expected_logistic", "huber")
SMOOTH += ("squared_epsilon_insensitive", "squared_error")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def with_solver(machine, solver):
    return type(machine)(loss=machine.loss, solver=solver)


EXACT = [(machine, "auto") for machine in MACHINES]
EXACT += [(m, "lbfgs") for m in MACHINES if m.loss in SMOOTH]
EXACT += [(m, "interior_point") for m in CONVEX if m.loss not in SMOOTH]
EXACT += [(m, "dual_coordinate") for m in CONVEX if m.loss not in ("expected_logistic", "pinball")]

UNKNOWN = {(loss, "interior_point") for loss in SMOOTH} | {("expected_logistic", "dual_coordinate")}
SOLVERS = ("auto", "lbfgs", "interior_point", "dual_coordinate", "sgd", "proximal_sgd")


@each("machine, solver", EXACT)
def test_decision_values_are_those_of_repeated_rows(machine, solver):
    estimator = with_solver(machine, solver)
    check_sample_weight_equivalence_on_dense_data(type(machine).__name__, estimator)
    if machine.loss != "best_case":  # which takes no sparse means
        check_sample_weight_equivalence_on_sparse_data(type(machine).__name__, estimator)


@pytest.mark.parametrize("solver", ["lbfgs", "dual_coordinate"])
@pytest.mark.parametrize("machine", CONVEX, ids=repr)
def test_objectives_are_those_of_repeated_rows_as_far_as_certified(machine, solver):
    if (machine.loss, solver) == ("expected_logistic", "dual_coordinate"):
        pytest.skip("no such solver")
    rng = np.random.default_rng(0)
    X, y, counts = rng.normal(size=(30, 5)), np.arange(30) % 2, rng.integers(0, 5, 30)
    repeated = with_solver(machine, solver).fit(X.repeat(counts, axis=0), y.repeat(counts))
    X, y, counts = shuffle(X, y, counts, random_state=0)
    weighted = with_solver(machine, solver).fit(X, y, sample_weight=counts)
    certified = max(weighted.suboptimality_, repeated.suboptimality_)  # more than tol if stalled
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=certified)


@each("solver", SOLVERS)
@each("machine", CONVEX)
def test_models_are_as_near_to_those_of_repeated_rows_as_their_certificates_say(machine, solver):
    """J is strongly convex in w: |w - w*|^2 / 2 <= J - J* in the units of C, whatever the path."""
    if (machine.loss, solver) in UNKNOWN:
        pytest.skip("no such solver")
    rng = np.random.default_rng(1)
    X, y, counts = rng.normal(size=(30, 5)), np.arange(30) % 2, rng.integers(0, 5, 30)
    repeated = with_solver(machine, solver).fit(X.repeat(counts, axis=0), y.repeat(counts))
    X, y, counts = shuffle(X, y, counts, random_state=0)
    weighted = with_solver(machine, solver).fit(X, y, sample_weight=counts)
    reach = 0.0
    for fitted in (weighted, repeated):
        assert fitted.suboptimality_ < 0.1
        gap = fitted.objective_ * fitted.suboptimality_ / (1 + fitted.suboptimality_)
        reach += np.sqrt(2 * gap * counts.sum() * fitted.C)  # lam = 1 / (C n)
    assert np.linalg.norm(weighted.coef_ - repeated.coef_) <= reach + 1e-12


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e9, 1 / 3])
@pytest.mark.parametrize("seed", range(5))
def test_median_and_unit_of_weighted_values_are_those_of_repeated_ones(seed, unit):
    rng = np.random.default_rng(seed)
    values, counts = rng.normal(size=20), rng.integers(0, 4, 20)
    found = Scale.of(values, unit * counts, None)
    each = values.repeat(counts)
    assert found.centre == np.median(each)
    width = np.abs(each - found.centre).mean()
    assert found.unit == 2.0 ** np.floor(np.log2(width))  # of which products round nothing
