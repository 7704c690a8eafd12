"""Objectives that are sums of parts: the model and the certificate are those of the whole.

Oracle: the whole in one object; and parts in NumPy, which share nothing with the core.
"""

import pickle

import numpy as np
import pytest
from cases import COVARIANCE_KINDS, each, in_pairs

from halosvm import Gaussians, _core, reference

LAM = 0.02
CONVEX = [name for name in _core.loss_names() if _core.loss_traits(name)["convex"]]
LOSSES = ["expected_hinge", "expected_squared_hinge", "expected_logistic"]


def whole(X, codes, n_problems=1, loss="expected_hinge", weights=None, **options):
    return _core.Objective(
        X.core_view(), codes.astype(np.int16), n_problems, weights, LAM, loss=loss, **options
    )


def minimize(objective, n_problems=1, d=4, tolerance=1e-9, **options):
    start = {"coef": np.zeros((n_problems, d)), "intercept": np.zeros(n_problems)}
    return _core.minimize(objective, **start, tolerance=tolerance, **options)


def summed(X, codes, pieces, n_problems=1, loss="expected_hinge", fit_intercept=True):
    parts = [
        whole(X[rows], codes[rows], n_problems, loss, fit_intercept=fit_intercept, is_part=True)
        for rows in pieces
    ]
    return _core.SummedObjective(
        parts,
        weights=[float(len(rows)) for rows in pieces],
        n_problems=n_problems,
        n_features=X.shape[1],
        lam=LAM,
        loss=loss,
        fit_intercept=fit_intercept,
    )


def assert_same_optimum(found, expected, tolerance=1e-9):
    assert found["converged"], found["message"]
    assert (found["suboptimality"] <= tolerance).all()
    np.testing.assert_allclose(found["objective"], expected["objective"], rtol=2 * tolerance)
    # J is strongly convex in w: |w - w*|^2 <= 2 (J - J*) / lam, for both models.
    distance = np.linalg.norm(found["coef"] - expected["coef"], axis=1)
    assert (distance <= 2 * np.sqrt(2 * tolerance * expected["objective"] / LAM)).all()


# ---- parts of the core ---------------------------------------------------------------------------


@in_pairs
@each("kind", COVARIANCE_KINDS)
@each("loss", LOSSES)
@each("fit_intercept", [True, False])
def test_two_halves_have_the_model_of_the_whole(make_gaussians, kind, loss, fit_intercept):
    X, y = make_gaussians(kind, n=80)
    codes = (y > 0).astype(int)
    halves = [np.arange(0, 35), np.arange(35, 80)]
    tolerance = 1e-3 if kind in ("zero", "half_certain", "ragged") else 1e-9  # kinks: L-BFGS alone
    if loss != "expected_hinge":
        tolerance = 1e-9
    together = summed(X, codes, halves, loss=loss, fit_intercept=fit_intercept)
    found = minimize(together, tolerance=tolerance)
    expected = minimize(whole(X, codes, loss=loss, fit_intercept=fit_intercept))
    assert_same_optimum(found, expected, tolerance)


def test_parts_of_a_single_class_are_allowed(make_gaussians):
    X, y = make_gaussians("diagonal", n=80)
    codes = (y > 0).astype(int)
    pieces = [np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)]
    assert_same_optimum(minimize(summed(X, codes, pieces)), minimize(whole(X, codes)))
    with pytest.raises(ValueError, match="positive total weight in every class"):
        whole(X[pieces[0]], codes[pieces[0]])


@pytest.mark.parametrize("loss", LOSSES)
def test_several_problems_are_summed_side_by_side(make_gaussians, loss):
    X, _ = make_gaussians("low_rank", n=90)
    codes = np.arange(90) % 3
    X = Gaussians(X.mean + 2.0 * np.eye(3, 4)[codes], cov=X.covariances)
    pieces = np.array_split(np.random.default_rng(0).permutation(90), 4)
    found = minimize(summed(X, codes, pieces, 3, loss), 3)
    assert_same_optimum(found, minimize(whole(X, codes, 3, loss), 3))


EVALUATED = ["value", "slope", "square", "dual", "dual_positive", "dual_size", "curvature"]
EVALUATED += ["coef", "intercept"]


@in_pairs
@each("kind", COVARIANCE_KINDS)
@each("loss", _core.loss_names())
@each("fit_intercept", [True, False])
def test_evaluations_and_moments_of_a_sum_are_those_of_the_whole(
    make_gaussians, kind, loss, fit_intercept
):
    X, y = make_gaussians(kind, n=80)
    codes = (y > 0).astype(int)
    pieces = [np.arange(0, 20), np.arange(20, 80)]
    rng = np.random.default_rng(3)
    w, b = rng.normal(size=(1, 4)), rng.normal(size=1)
    total = whole(X, codes, loss=loss, fit_intercept=fit_intercept)
    together = summed(X, codes, pieces, loss=loss, fit_intercept=fit_intercept)
    for floor in (0.0, 0.1):
        expected, found = total(w, b, floor), together(w, b, floor)
        for name in EVALUATED:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14
            )
    expected, found = total.moments(), together.moments()
    for name in ("mean", "centre", "variance", "widest"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14
        )


def test_a_sum_is_a_part_of_another_sum(make_gaussians):
    X, y = make_gaussians("diagonal", n=80)
    codes = (y > 0).astype(int)
    inner = summed(X[:60], codes[:60], [np.arange(0, 20), np.arange(20, 60)])
    parts = [inner, whole(X[60:], codes[60:], is_part=True)]
    options = {"weights": [60.0, 20.0], "n_problems": 1, "n_features": 4, "lam": LAM}
    found = minimize(_core.SummedObjective(parts, **options))
    assert_same_optimum(found, minimize(whole(X, codes)))


def test_one_heavy_part_and_one_without_weight(make_gaussians):
    X, y = make_gaussians("full", n=80)
    codes = (y > 0).astype(int)
    parts = [whole(X[:60], codes[:60], is_part=True), whole(X[60:], codes[60:], is_part=True)]
    options = {"n_problems": 1, "n_features": 4, "lam": LAM}
    objective = _core.SummedObjective(parts, weights=[1e300, 0.0], **options)
    assert_same_optimum(minimize(objective), minimize(whole(X[:60], codes[:60])))


def test_rare_class_and_large_errors_end_at_zero_or_certified():
    rng = np.random.default_rng(5)
    X = Gaussians(rng.normal(size=(60, 4)), std=10 * rng.random((60, 4)))
    codes = (np.arange(60) % 20 == 0).astype(int)
    expected = minimize(whole(X, codes))
    found = minimize(summed(X, codes, [np.arange(30), np.arange(30, 60)]))
    assert found["objective"][0] <= expected["objective"][0] * (1 + 1e-9)
    assert found["objective"][0] / (1 + found["suboptimality"][0]) <= expected["objective"][0]


@in_pairs
@each("kind", COVARIANCE_KINDS)
@each("loss", CONVEX)
@each("positive", [1, 3, 40])
def test_intercept_of_a_sum_is_as_good_as_that_of_the_whole(make_gaussians, kind, loss, positive):
    X, _ = make_gaussians(kind, n=80)
    codes = (np.arange(80) < positive).astype(int)
    total = whole(X, codes, loss=loss)
    together = summed(X, codes, [np.arange(0, 30), np.arange(30, 80)], loss=loss)
    for size in (0.0, 1e-3, 1.0, 100.0):
        w = size * np.random.default_rng(0).normal(size=(1, 4))
        values = [total(w, part.exact_intercept(w)).value[0] for part in (total, together)]
        assert values[1] == pytest.approx(values[0], rel=1e-12), size


def test_intercept_of_certain_points_that_tell_nothing_is_at_their_kink():
    X, codes = Gaussians(np.zeros((60, 4))), (np.arange(60) < 3).astype(int)
    objective = summed(X, codes, [np.arange(30), np.arange(30, 60)])
    found = minimize(objective, tolerance=1e-3)
    assert found["objective"][0] == pytest.approx(0.1, rel=1e-12)  # 2 min(p, 1 - p)


# ---- parts of one's own --------------------------------------------------------------------------


class NumpyPart:
    """A part of an objective in NumPy."""

    def __init__(self, X, y, loss):
        self.X, self.y, self.loss, self.calls = X, y, loss, 0

    def __call__(self, W, b, floor):
        self.calls += 1
        X, y, w = self.X, self.y, W[0]
        m = reference.MARGINS[self.loss] - y * (X.mean @ w + b[0])
        s = np.sqrt(reference.spread_squared(X.covariances, w) + floor**2)
        value, theta, slope_s2 = reference.LOSSES[self.loss](m, s)
        minorant = value + theta * (reference.MARGINS[self.loss] - m) - slope_s2 * s**2
        coef = LAM * w - (y * theta) @ X.mean / len(y)
        coef += reference.weighted_product(X.covariances, slope_s2 / len(y), w)
        terms = {
            "value": value.mean() + LAM / 2 * w @ w,
            "slope": np.abs(theta).mean(),
            "square": (theta**2 + (slope_s2 * s) ** 2).mean(),
            "dual": minorant.mean(),
            "dual_positive": (minorant * (y * theta > 0)).mean(),
            "dual_size": (value + np.abs(theta * m) + np.abs(theta) + slope_s2 * s**2).mean(),
            "curvature": slope_s2.mean(),
            "intercept": -(y * theta).mean(),
        }
        return _core.Evaluation(coef=coef[None], **{k: np.array([v]) for k, v in terms.items()})

    def moments(self):
        mean = self.X.mean.mean(axis=0)
        own = np.diagonal(self.X.covariances.to_full(), axis1=1, axis2=2).mean(axis=0)
        variance = ((self.X.mean - mean) ** 2).mean(axis=0) + own
        return _core.Moments(mean=mean, centre=mean, variance=variance)


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_written_in_numpy_have_the_model_of_the_core(make_gaussians, loss):
    X, y = make_gaussians("low_rank", n=80)
    parts = [NumpyPart(X[:30], y[:30], loss), NumpyPart(X[30:], y[30:], loss)]
    options = {"weights": [30.0, 50.0], "n_problems": 1, "n_features": 4, "lam": LAM, "loss": loss}
    found = minimize(_core.SummedObjective(parts, **options))
    assert_same_optimum(found, minimize(whole(X, (y > 0).astype(int), loss=loss)))
    assert parts[0].calls == parts[1].calls


def test_an_error_in_a_part_ends_the_search_as_it_is(make_gaussians):
    X, y = make_gaussians("diagonal")
    part = NumpyPart(X, y, "expected_hinge")

    class Failing(NumpyPart):
        def __call__(self, W, b, floor):
            if self.calls == 2:
                raise ConnectionError("the machine is gone")
            return super().__call__(W, b, floor)

    options = {"weights": [1.0, 1.0], "n_problems": 1, "n_features": 4, "lam": LAM}
    with pytest.raises(ConnectionError, match="the machine is gone"):
        minimize(_core.SummedObjective([part, Failing(X, y, "expected_hinge")], **options))
    Failing.__call__ = lambda *_: None
    with pytest.raises(TypeError, match="a part must return an Evaluation"):
        minimize(_core.SummedObjective([part, Failing(X, y, "expected_hinge")], **options))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [1.0]}, "weights has 1 entries, parts has 2"),
        ({"weights": [1.0, -1.0]}, "weights.*row 1.*-1"),
        ({"weights": [0.0, 0.0]}, "weights must have a positive and finite sum"),
        ({"lam": 0.0}, "regularisation is 0; it must be positive and finite"),
        ({"n_problems": 0}, "n_problems must be positive"),
        ({"loss": "logistic"}, "loss is 'logistic'; it must be one of"),
    ],
)
def test_bad_sums_are_refused(make_gaussians, changes, message):
    X, y = make_gaussians("diagonal")
    parts = [whole(X, (y > 0).astype(int))] * 2
    options = {"weights": [1.0, 1.0], "n_problems": 1, "n_features": 4, "lam": LAM} | changes
    with pytest.raises(ValueError, match=message):
        _core.SummedObjective(parts, **options)


@pytest.mark.parametrize(
    ("method", "who"),
    [("interior_point", "interior points"), ("dual_coordinate", "the dual coordinate solver")],
)
def test_solvers_that_read_examples_refuse_sums(make_gaussians, method, who):
    X, y = make_gaussians("diagonal")
    objective = summed(X, (y > 0).astype(int), [np.arange(60)])
    with pytest.raises(ValueError, match=f"objective is a sum of parts, but {who} need"):
        _core.minimize(objective, coef=np.zeros((1, 4)), intercept=np.zeros(1), method=method)


def test_evaluations_and_moments_can_travel(make_gaussians):
    X, y = make_gaussians("full")
    objective = whole(X, (y > 0).astype(int))
    at = objective(np.ones((1, 4)), np.zeros(1))
    copy = pickle.loads(pickle.dumps(at))
    for name in ("value", "dual", "dual_size", "coef", "intercept"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(at, name))
    moments = objective.moments()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(moments)).widest, moments.widest)
