"""UncertainSVC(loss="worst_case"): the robust machine of bounded errors, certified.

Oracles: the NumPy reference, the worst perturbation itself, draws, and cvxpy where it is installed.
"""

import warnings

import numpy as np
import pytest

from halosvm import Covariances, Gaussians, UncertainSVC, _core, reference, uncertainty

KINDS = ("isotropic", "diagonal", "low_rank", "full", "zero")


def problem(seed, kind=None):
    """Return Gaussians of any kind, some certain, factors R of their covariances, labels and C."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 80)), int(rng.integers(1, 12))
    y = (rng.random(n) < 0.5).astype(int)
    y[:2] = 0, 1
    X = rng.normal(size=(n, d))
    X[:, 0] += rng.uniform(0, 3) * y
    size = 10 ** rng.uniform(-2, 0.5) * (rng.random(n) > 0.2)
    kind = kind or KINDS[seed % len(KINDS)]
    if kind == "isotropic":
        variances = size * rng.uniform(0, 1, n)
        R, cov = np.sqrt(variances)[:, None, None] * np.eye(d), variances
    elif kind == "diagonal":
        variances = size[:, None] * rng.uniform(0, 1, (n, d))
        R, cov = np.sqrt(variances)[:, :, None] * np.eye(d), variances
    elif kind == "low_rank":
        R = size[:, None, None] * rng.normal(size=(n, d, 2))
        cov = Covariances.low_rank(R)
    elif kind == "full":
        R = size[:, None, None] * rng.normal(size=(n, d, d)) / np.sqrt(d)
        cov = R @ R.transpose(0, 2, 1)
    else:
        R, cov = np.zeros((n, d, 1)), None
    return Gaussians(X, cov=cov), R, y, 10 ** rng.uniform(-2, 2)


def objective(X, R, y, C, radius, w, b):
    """Return J as the definition has it."""
    sign = np.where(y == 1, 1.0, -1.0)
    spread = np.linalg.norm(np.einsum("ijk,j->ik", R, w), axis=1)
    loss = np.maximum(0.0, 1 - sign * (X.mean @ w + b) + radius * spread)
    return w @ w / (2 * C * len(y)) + loss.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_optimum_is_certified_and_no_neighbour_is_better(kind):
    for seed in range(20):
        X, R, y, C = problem(seed, kind)
        radius = (0.3, 1.0, 3.0)[seed % 3]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the objective is least at w = 0")
            clf = UncertainSVC(C=C, loss="worst_case", radius=radius).fit(X, y)
        assert clf.suboptimality_ <= 1e-6
        w, b = clf.coef_[0], clf.intercept_[0]
        found = objective(X, R, y, C, radius, w, b)
        assert clf.objective_ == pytest.approx(found, rel=1e-9)
        rng = np.random.default_rng(seed)
        for step in 10.0 ** -np.arange(0, 7):
            for _ in range(20):
                u = step * rng.normal(size=len(w) + 1)
                assert found <= objective(X, R, y, C, radius, w + u[1:], b + u[0]) * (1 + 1e-6)


def test_optimum_is_that_of_cvxpy():
    cp = pytest.importorskip("cvxpy")
    for seed in range(6):
        X, R, y, C = problem(1000 + seed)
        n, d = X.shape
        sign = np.where(y == 1, 1.0, -1.0)
        w, b = cp.Variable(d), cp.Variable()
        losses = [cp.pos(1 - sign[i] * (X.mean[i] @ w + b) + cp.norm(R[i].T @ w)) for i in range(n)]
        convex = cp.Problem(cp.Minimize(cp.sum_squares(w) / (2 * C * n) + sum(losses) / n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            convex.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
            clf = UncertainSVC(C=C, loss="worst_case").fit(X, y)
        assert clf.objective_ == pytest.approx(convex.value, rel=1e-6)


def test_the_worst_perturbation_is_charged():
    X, _, y, _ = problem(3)
    C = 10.0
    clf = UncertainSVC(C=C, loss="worst_case", radius=0.5).fit(X, y)
    sign, w = np.where(y == 1, 1.0, -1.0), clf.coef_[0]
    moved = X.mean + reference.worst_perturbation(X.covariances, sign, w, 0.5)
    loss = np.maximum(0.0, 1 - sign * (moved @ w + clf.intercept_[0])).mean()
    assert clf.objective_ == pytest.approx(w @ w / (2 * C * len(y)) + loss, rel=1e-12)


@pytest.mark.parametrize("loss", ["worst_case", "best_case"])
def test_without_a_radius_it_is_the_hinge(loss):
    for seed in range(10):
        X, _, y, C = problem(seed, "diagonal")
        hinge = UncertainSVC(C=C, loss="hinge").fit(X, y)
        other = UncertainSVC(C=C, loss=loss, radius=0.0).fit(X, y)
        assert other.objective_ == pytest.approx(hinge.objective_, rel=2e-6)
        np.testing.assert_allclose(other.coef_, hinge.coef_, rtol=2e-2, atol=2e-3)


def test_losses_are_ordered_at_every_margin_and_spread():
    rng = np.random.default_rng(0)
    m, s = rng.normal(size=10000) * 5, np.abs(rng.normal(size=10000)) * 3
    values = {name: _core.evaluate_loss(name, m, s)[0] for name in _core.loss_names()}
    assert (values["best_case"] <= values["hinge"]).all()
    assert (values["hinge"] <= values["expected_hinge"] * (1 + 1e-14)).all()
    highest = values["hinge"] + s / np.sqrt(2 * np.pi)
    assert (values["expected_hinge"] <= highest * (1 + 1e-14)).all()
    assert (values["hinge"] <= values["worst_case"]).all()


@pytest.mark.parametrize("law", ["gaussian", "chebyshev"])
def test_constraints_hold_with_the_confidence_that_the_radius_is_for(law):
    epsilon = 0.1
    X, _, y, C = problem(6, "diagonal")
    radius = uncertainty.confidence_radius(epsilon, law=law)
    clf = UncertainSVC(C=C, loss="worst_case", radius=radius).fit(X, y)
    sign, w, b = np.where(y == 1, 1.0, -1.0), clf.coef_[0], clf.intercept_[0]
    spread = clf.decision_std(X)
    slack = np.maximum(0.0, 1 - sign * (X.mean @ w + b) + radius * spread)
    draws = np.random.default_rng(0).normal(size=(20000, 1)) * spread
    kept = (sign * (X.mean @ w + b + draws) >= 1 - slack - 1e-12).mean(axis=0)
    assert (kept >= 1 - epsilon - 5 * np.sqrt(epsilon / 20000)).all()


def test_several_classes_weights_and_predictions_are_there():
    rng = np.random.default_rng(4)
    y = np.arange(90) % 3
    X = Gaussians(3 * np.eye(3)[y] + rng.normal(size=(90, 3)), std=rng.uniform(0, 0.5, (90, 3)))
    clf = UncertainSVC(loss="worst_case", radius=0.5).fit(X, y, sample_weight=1.0 + (y == 1))
    assert clf.coef_.shape == (3, 3)
    assert (clf.suboptimality_ <= 1e-6).all()
    assert clf.score(X, y) > 0.8
    assert clf.side_probability(X).shape == (90, 3)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("solver", ["lbfgs", "interior_point", "sgd", "proximal_sgd"])
def test_solvers_find_one_optimum(solver, norm, make_gaussians):
    X, y = make_gaussians("diagonal", n=200, d=4, gap=2.0, scale=0.2)
    robust = UncertainSVC(loss="worst_case", radius=0.5, norm=norm)
    best = robust.fit(X, y).objective_
    if solver == "interior_point" and norm in (1.5, 3):
        with pytest.raises(ValueError, match="take 1, 2 and infinity"):
            robust.set_params(solver=solver).fit(X, y)
        return
    if solver == "lbfgs" and norm in (1, np.inf):
        return  # they have kinks that no floor rounds off
    options = {"loss": "worst_case", "radius": 0.5, "norm": norm, "max_iter": 3000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = UncertainSVC(solver=solver, random_state=0, **options).fit(X, y)
    assert best <= clf.objective_ * (1 + 1e-6)
    assert clf.objective_ <= best * (1.01 if "sgd" in solver else 1.0001)
    assert clf.objective_ / (1 + clf.suboptimality_) <= best * (1 + 1e-12)


# -- norms other than 2 --------------------------------------------------------------------------
NORMS = (1, 1.3, 1.5, 3, 5, np.inf)
FACTORED = ("isotropic", "diagonal", "low_rank", "low_rank_and_diagonal", "zero")


def conjugate(norm):
    return {1: np.inf, np.inf: 1}.get(norm) or norm / (norm - 1)


def problem_with_factors(seed, kind):
    """Return the same as `problem`, for kinds that norms other than 2 know."""
    if kind != "low_rank_and_diagonal":
        return problem(seed, kind)
    X, R, y, C = problem(seed, "low_rank")
    std = (
        np.random.default_rng(seed).uniform(0, 1, X.shape)
        * (np.abs(R).sum(axis=(1, 2)) > 0)[:, None]
    )
    cov = Covariances.low_rank(R, diagonal=std**2)
    return (
        Gaussians(X.mean, cov=cov),
        np.concatenate([R, std[:, :, None] * np.eye(X.shape[1])], axis=2),
        y,
        C,
    )


def objective_in(norm, X, R, y, C, w, b):
    sign = np.where(y == 1, 1.0, -1.0)
    spread = np.linalg.norm(np.einsum("ijk,j->ik", R, w), ord=conjugate(norm), axis=1)
    return w @ w / (2 * C * len(y)) + np.maximum(0.0, 1 - sign * (X.mean @ w + b) + spread).mean()


@pytest.mark.parametrize("kind", FACTORED)
@pytest.mark.parametrize("norm", NORMS)
def test_optimum_in_other_norms_is_certified_and_no_neighbour_is_better(norm, kind):
    for seed in range(8):
        X, R, y, C = problem_with_factors(seed, kind)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the objective is least at w = 0")
            clf = UncertainSVC(C=C, loss="worst_case", norm=norm, max_iter=5000).fit(X, y)
        assert clf.suboptimality_ <= 1e-6
        w, b = clf.coef_[0], clf.intercept_[0]
        found = objective_in(norm, X, R, y, C, w, b)
        assert clf.objective_ == pytest.approx(found, rel=1e-9)
        rng = np.random.default_rng(seed)
        for step in 10.0 ** -np.arange(0, 7):
            for _ in range(20):
                u = step * rng.normal(size=len(w) + 1)
                assert found <= objective_in(norm, X, R, y, C, w + u[1:], b + u[0]) * (1 + 1e-6)


@pytest.mark.parametrize("norm", [1, 1.5, 3, np.inf])
def test_optimum_in_other_norms_is_that_of_cvxpy(norm):
    cp = pytest.importorskip("cvxpy")
    for seed in range(4):
        X, R, y, C = problem_with_factors(seed, FACTORED[seed % 4])
        n, d = X.shape
        sign = np.where(y == 1, 1.0, -1.0)
        w, b = cp.Variable(d), cp.Variable()
        spreads = cp.hstack([cp.norm(R[i].T @ w, conjugate(norm)) for i in range(n)])
        losses = cp.sum(cp.pos(1 - cp.multiply(sign, X.mean @ w + b) + spreads)) / n
        convex = cp.Problem(cp.Minimize(cp.sum_squares(w) / (2 * C * n) + losses))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            convex.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
            clf = UncertainSVC(C=C, loss="worst_case", norm=norm, max_iter=5000).fit(X, y)
        assert clf.objective_ == pytest.approx(convex.value, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_optimum_of_many_examples_is_certified_in_every_norm(norm):
    # So many that a search prepares itself on some of them.
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 3 % 2
    mean, std = rng.normal(size=(2000, 4)), rng.uniform(0, 0.5, (2000, 4))
    mean += 2 * y[:, np.newaxis]
    clf = UncertainSVC(loss="worst_case", norm=norm, C=0.01).fit(Gaussians(mean, std=std), y)
    assert clf.suboptimality_ <= 1e-6
    w, b = clf.coef_[0], clf.intercept_[0]
    value = objective_in(norm, Gaussians(mean), std[:, :, np.newaxis] * np.eye(4), y, 0.01, w, b)
    assert clf.objective_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("norm", [*NORMS, 2])
def test_bounds_of_fits_that_end_early_are_true(norm):
    for seed in range(12):
        X, _, y, C = problem_with_factors(100 + seed, FACTORED[seed % 4])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"C": C, "loss": "worst_case", "norm": norm}
            best = UncertainSVC(max_iter=5000, **options).fit(X, y).objective_
            for passes in (1, 2, 4, 8, 30):
                early = UncertainSVC(max_iter=passes, **options).fit(X, y)
                assert early.objective_ / (1 + early.suboptimality_) <= best * (1 + 1e-12)


@pytest.mark.parametrize("norm", [*NORMS, 2])
@pytest.mark.parametrize("loss", ["worst_case", "best_case"])
def test_value_and_gradient_are_those_of_the_reference_in_every_norm(norm, loss):
    charge = getattr(reference, loss)
    for seed, kind in enumerate(FACTORED[:4]):
        X, _, y, C = problem_with_factors(50 + seed, kind)
        sign, (n, d) = np.where(y == 1, 1.0, -1.0), X.shape
        lam, w = 1 / (C * n), np.random.default_rng(seed).normal(size=d)
        codes = y.astype(np.int16)
        core = _core.Objective(X.core_view(), codes, 1, None, lam, loss, norm=norm)
        at = core(w[np.newaxis], np.array([0.3]))
        value, by_w, by_b = reference.robust_objective(X, sign, w, 0.3, lam, 1.0, norm, loss=charge)
        assert at.value[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(at.coef[0], by_w, rtol=1e-9, atol=1e-11)
        assert at.intercept[0] == pytest.approx(by_b, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("norm", [1, 1.5, np.inf])
def test_the_worst_perturbation_in_other_norms_is_charged(norm):
    X, _, y, _ = problem_with_factors(3, "low_rank_and_diagonal")
    C = 10.0
    clf = UncertainSVC(C=C, loss="worst_case", norm=norm, radius=0.2).fit(X, y)
    sign, w = np.where(y == 1, 1.0, -1.0), clf.coef_[0]
    moved = X.mean + reference.worst_perturbation(X.covariances, sign, w, 0.2, norm)
    loss = np.maximum(0.0, 1 - sign * (moved @ w + clf.intercept_[0])).mean()
    assert clf.objective_ == pytest.approx(w @ w / (2 * C * len(y)) + loss, rel=1e-12)


def test_labels_hold_in_the_whole_box_of_intervals():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    middle = rng.normal(size=(40, 3)) + 8.0 * y[:, None]
    width = rng.uniform(0.1, 0.5, (40, 3))
    X = uncertainty.intervals(middle - width, middle + width)
    clf = UncertainSVC(C=1e3, loss="worst_case", norm=np.inf).fit(X, y)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    for corner in corners:
        assert clf.score(middle + corner * width, y) == 1.0
    margins = np.where(y == 1, 1, -1) * clf.decision_function(middle)
    assert margins - width @ np.abs(clf.coef_[0]) == pytest.approx(
        np.maximum(1.0, margins - width @ np.abs(clf.coef_[0])), abs=1e-3
    )


def test_wide_data_are_solved_in_their_span_in_every_norm():
    rng = np.random.default_rng(5)
    y = np.arange(30) % 2
    R = 0.1 * rng.normal(size=(30, 400, 2))
    X = Gaussians(rng.normal(size=(30, 400)) + 0.2 * y[:, None], cov=Covariances.low_rank(R))
    for norm in (1, 2, np.inf):
        clf = UncertainSVC(loss="worst_case", norm=norm).fit(X, y)
        assert clf.suboptimality_ <= 1e-6
        found = objective_in(norm, X, R, y, 1.0, clf.coef_[0], clf.intercept_[0])
        assert clf.objective_ == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"norm": 0.5}, ValueError, "norm must be >= 1, or infinity, got 0.5"),
        ({"norm": np.nan}, ValueError, "norm must be >= 1, or infinity, got nan"),
        ({"norm": "2"}, TypeError, "norm must be a number, got '2'"),
        ({"norm": True}, TypeError, "norm must be a number, got True"),
        ({"norm": 1, "loss": "hinge"}, ValueError, "norm is 1, but loss='hinge' takes errors for"),
    ],
)
def test_norms_that_make_no_sense_are_refused(parameters, error, message):
    X = Gaussians(np.array([[-1.0], [1.0]]), std=np.ones((2, 1)))
    with pytest.raises(error, match=message):
        UncertainSVC(**{"loss": "worst_case"} | parameters).fit(X, [0, 1])


def test_full_covariances_are_refused_where_they_do_not_tell_the_norm():
    X, _, y, _ = problem(1, "full")
    with pytest.raises(ValueError, match="norm is 1, but full covariances say nothing of"):
        UncertainSVC(loss="worst_case", norm=1).fit(X, y)
