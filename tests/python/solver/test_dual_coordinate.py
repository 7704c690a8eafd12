"""The dual coordinate solver, for certain examples: is it at the optimum, and is its bound true?

Oracles: LIBSVM, LIBLINEAR where there is no intercept, and, where cvxpy is installed, Clarabel on
the problem as it stands.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from halosvm import Gaussians, UncertainSVC, UncertainSVR, _core, reference

# What a loss is without errors.
HINGES = {
    "hinge": lambda cp, m: cp.pos(m),
    "expected_hinge": lambda cp, m: cp.pos(m),
    "worst_case": lambda cp, m: cp.pos(m),
    "expected_squared_hinge": lambda cp, m: cp.square(cp.pos(m)),
    "expected_huber_hinge": lambda cp, m: cp.huber(cp.pos(m), 1.0) / 2,
}


def make_data(n=120, d=30, *, stored=6, seed=0, share=0.5):
    """Return rows of a few numbers, some of them twice and some without any, and labels."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=stored / d, random_state=rng, format="csr")
    X.data[:] = rng.normal(size=X.nnz)
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    y = (score > np.quantile(score, 1 - share)).astype(int)
    twice = np.r_[np.arange(n), np.arange(n // 5)]
    X, y = X[twice], y[twice]
    keep = sparse.diags_array((np.arange(len(y)) % 11 != 3).astype(float))
    X = sparse.csr_array(keep @ X)
    X.eliminate_zeros()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # scikit-learn 1.6
    y[3 : len(y) : 22], y[14 : len(y) : 22] = 0, 1  # rows of zeros are on both sides
    return X, y


def optimum(X, y, C, loss="hinge", weights=None, *, fit_intercept=True):
    """Return Clarabel's least |w|^2 / 2 + C sum c loss over C sum c, and w."""
    cp = pytest.importorskip("cvxpy")
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    c = np.ones(len(y)) if weights is None else weights
    sign = np.where(y > 0, 1.0, -1.0)
    m = 1 - cp.multiply(sign, X @ w + b * fit_intercept)
    lam = 1 / (C * c.sum())
    value = lam / 2 * cp.sum_squares(w) + (c / c.sum()) @ HINGES[loss](cp, m)
    precise = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL, **precise)
    return problem.value, w.value


def assert_certified(clf, X, y, best, C, loss="hinge", weights=None):
    """Assert that the objective is J of the model, and lies between the optimum and the bound."""
    total = len(y) if weights is None else weights.sum()
    points = Gaussians(X.toarray())
    signs = np.where(y > 0, 1.0, -1.0)
    value = reference.objective_and_gradient(
        points, signs, clf.coef_[0], clf.intercept_[0], 1 / (C * total), weights, loss
    )[0]
    assert clf.objective_ == pytest.approx(value, rel=1e-11)
    assert clf.objective_ >= best * (1 - 1e-8)
    assert clf.objective_ / (1 + clf.suboptimality_) <= best * (1 + 1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("loss", list(HINGES))
def test_optimum_is_that_of_a_conic_solver(loss, C, fit_intercept):
    X, y = make_data()
    best, w = optimum(X, y, C, loss, fit_intercept=fit_intercept)
    options = {"solver": "dual_coordinate", "fit_intercept": fit_intercept, "max_iter": 20000}
    clf = UncertainSVC(C=C, loss=loss, tol=1e-8, **options).fit(X, y)
    assert clf.suboptimality_ <= 1e-8
    assert_certified(clf, X, y, best, C, loss)
    distance = np.linalg.norm(clf.coef_[0] - w)
    assert distance <= 2 * np.sqrt(2 * 2e-8 * best * C * len(y))  # strongly convex in w
    dense = UncertainSVC(C=C, loss=loss, tol=1e-8, **options).fit(X.toarray(), y)
    assert dense.objective_ == pytest.approx(clf.objective_, rel=2e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_iter", [1, 3, 10, 5000])
def test_certificate_is_true_wherever_the_run_ends_with_a_rare_class_and_weights(seed, max_iter):
    X, y = make_data(seed=seed, share=0.05 if seed % 2 else 0.5)
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0.0, 2.0, len(y)) * (rng.uniform(size=len(y)) < 0.8)
    weights[[np.argmax(y), np.argmin(y)]] = 1.0
    C = 10.0 ** (seed - 3)
    best, _ = optimum(X, y, C, weights=weights)
    clf = UncertainSVC(C=C, loss="hinge", tol=1e-9, max_iter=max_iter, solver="dual_coordinate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y, sample_weight=weights)
    if max_iter <= 10 and clf.suboptimality_ > 1e-9:
        assert clf.n_iter_ == max_iter
        assert (
            clf.status_
            == "the allowed number of iterations ended before the tolerance was certified"
        )
    if max_iter > 10 and C <= 1:
        assert clf.suboptimality_ <= 1e-9
    assert_certified(clf, X, y, best, C, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_optimum_is_that_of_libsvm(C, weighted):
    X, y = make_data(300, 60, stored=9, seed=4)
    weights = np.random.default_rng(5).lognormal(0.0, 1.0, len(y)) if weighted else np.ones(len(y))
    rival = SVC(kernel="linear", C=C, tol=1e-10).fit(X.toarray(), y, sample_weight=weights)
    clf = UncertainSVC(C=C, loss="hinge", tol=1e-8, solver="dual_coordinate", max_iter=20000)
    clf.fit(X, y, sample_weight=weights)
    assert clf.suboptimality_ <= 1e-8
    signs = np.where(y > 0, 1.0, -1.0)
    # Its intercept is a mean over support vectors; the best one for its w is at a kink.
    lam, scores = 1 / (C * weights.sum()), X @ rival.coef_[0]
    losses = np.maximum(0.0, 1 - signs * (scores + (signs - scores)[:, None])) @ weights
    best = lam / 2 * rival.coef_[0] @ rival.coef_[0] + losses.min() / weights.sum()
    assert best * (1 - 1e-5) <= clf.objective_ <= best * (1 + 1e-8)  # its stopping rule is not J's
    assert clf.objective_ / (1 + clf.suboptimality_) <= best


@pytest.mark.parametrize("seed", [2, 8, 12])
def test_an_estimate_of_few_examples_does_not_end_the_search(seed):
    """What the few that take part seem to leave may be far below what all leave."""
    X, y = make_data(300, 60, stored=9, seed=seed)
    clf = UncertainSVC(C=10.0, loss="hinge", tol=1e-8, solver="dual_coordinate", max_iter=20000)
    assert clf.fit(X, y).suboptimality_ <= 1e-8


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_optimum_without_intercept_is_that_of_liblinear(C):
    X, y = make_data(600, 200, stored=20, seed=8)
    rival = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6).fit(X, y)
    clf = UncertainSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-9, solver="dual_coordinate")
    clf.set_params(max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(
        clf.coef_, rival.coef_, rtol=0, atol=2 * np.sqrt(2e-9 * clf.objective_ * C * len(y))
    )


@pytest.mark.parametrize("C", [1e4, 1e8])
@pytest.mark.parametrize("kind", ["overlap", "separable"])
def test_certificate_is_true_and_the_default_converges_where_steps_in_the_dual_are_slow(C, kind):
    X, y = make_data(60, 20, seed=3)
    if kind == "separable":
        X, y = X[:15], y[:15]
    best, _ = optimum(X, y, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        slow = UncertainSVC(C=C, loss="hinge", solver="dual_coordinate").fit(X, y)
    assert_certified(slow, X, y, best, C)
    clf = UncertainSVC(C=C, loss="hinge").fit(X, y)
    assert clf.suboptimality_ <= 1e-6
    assert_certified(clf, X, y, best, C)


@pytest.mark.parametrize("loss", list(HINGES))
@pytest.mark.parametrize("seed", range(6))
def test_classes_that_overlap_are_solved_with_an_intercept(seed, loss):
    """More rows than features, labels by chance: the constraint of b decides how fast."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 5)), rng.permutation(np.arange(30) % 2)
    weights = rng.integers(0, 4, 30) if seed % 2 else np.ones(30)
    weights[[np.argmax(y), np.argmin(y)]] = 1.0
    for C in (0.01, 1.0, 10.0, 100.0):
        options = {"C": C, "loss": loss, "class_weight": "balanced" if seed == 4 else None}
        clf = UncertainSVC(solver="dual_coordinate", **options).fit(X, y, sample_weight=weights)
        assert clf.status_.startswith("the certified suboptimality is within the tolerance")
        assert clf.suboptimality_ <= clf.tol
        other = UncertainSVC(**options).fit(X, y, sample_weight=weights)
        assert clf.objective_ == pytest.approx(other.objective_, rel=clf.tol)


@pytest.mark.filterwarnings("ignore:the objective.* is least at w = 0")
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_several_classes_and_values_that_overlap_are_solved_with_an_intercept(C):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 4))
    machines = [(UncertainSVC(C=C, loss="hinge"), rng.permutation(np.arange(40) % 3))]
    for loss in ("epsilon_insensitive", "pinball", "huber"):
        machines += [(UncertainSVR(C=C, loss=loss), rng.normal(size=40))]
    for machine, target in machines:
        best = np.copy(machine.fit(X, target).objective_)
        machine.set_params(solver="dual_coordinate").fit(X, target)
        assert np.max(machine.suboptimality_) <= machine.tol
        np.testing.assert_allclose(machine.objective_, best, rtol=machine.tol)


def test_sparse_certain_examples_are_solved_so_by_default():
    X, y = make_data(2000, 400, stored=20, seed=9)
    one = UncertainSVC(loss="hinge", tol=1e-6).fit(X, y)
    other = UncertainSVC(loss="hinge", tol=1e-6, solver="dual_coordinate").fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.suboptimality_ <= 1e-6


@pytest.mark.filterwarnings("ignore:the objective.* is least at w = 0")
def test_bits_do_not_depend_on_threads_and_classes_are_as_they_are_alone():
    X, _ = make_data(800, 60, stored=10, seed=10)
    rng = np.random.default_rng(10)
    y = np.argmax(X @ rng.normal(size=(60, 11)), axis=1)  # more than are solved side by side
    options = {"loss": "hinge", "C": 0.03, "tol": 1e-5, "solver": "dual_coordinate"}
    one, two, four = (UncertainSVC(n_threads=n, **options).fit(X, y) for n in (1, 2, 4))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.coef_, four.coef_)
    np.testing.assert_array_equal(one.intercept_, four.intercept_)
    assert one.n_iter_ == two.n_iter_ == four.n_iter_
    for k in (0, 10):
        alone = UncertainSVC(**options).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], one.coef_[k])


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression_without_errors_is_the_same_with_both_solvers(loss):
    X, _ = make_data(seed=11)
    rng = np.random.default_rng(11)
    values = 3.0 + X @ rng.normal(size=X.shape[1]) + 0.2 * rng.normal(size=X.shape[0])
    options = {"loss": loss, "C": 0.1, "tol": 1e-7, "max_iter": 20000}
    one = UncertainSVR(solver="dual_coordinate", **options).fit(X, values)
    other = UncertainSVR(solver="auto", **options).fit(X.toarray(), values)
    assert one.objective_ == pytest.approx(other.objective_, rel=2e-7)


@pytest.mark.parametrize("shape", [(1500, 90), (15_000, 50)])
def test_the_default_takes_it_where_few_steps_of_dense_examples_are_needed(shape):
    rng = np.random.default_rng(17)
    X = rng.normal(size=shape)
    y = X[:, 0] + rng.normal(size=len(X)) > 0
    pull = (X**2).sum(axis=1).mean()  # per C

    def steps(data, target, times, **options):
        clf = UncertainSVC(C=times / pull, **options).fit(data, target)
        assert clf.suboptimality_ <= 1e-6
        return clf.n_iter_

    for target in (y, y * (X[:, 1] > 0)):
        assert steps(X, target, 0.1) == steps(X, target, 0.1, solver="dual_coordinate") < 20
    clf = UncertainSVC(C=0.1 / pull, warm_start=True).fit(X, y)
    assert clf.n_iter_ == clf.fit(X, y).n_iter_  # not those of L-BFGS from a model, which are more
    # Not where C is large, weights make a few examples count, or means are far from the origin.
    assert steps(X, y, 30.0) != steps(X, y, 30.0, solver="dual_coordinate")
    assert steps(X + 2.0, y, 0.1) != steps(X + 2.0, y, 0.1, solver="dual_coordinate")
    heavy = {"X": X, "y": y, "sample_weight": np.where(np.arange(len(y)) % 100, 0.001, 100.0)}
    clf = UncertainSVC(C=0.1 / pull)
    other = UncertainSVC(C=0.1 / pull, solver="dual_coordinate")
    assert clf.fit(**heavy).n_iter_ != other.fit(**heavy).n_iter_


def test_features_far_from_the_origin_are_seen_from_their_centre():
    X, y = make_data(seed=12)
    far = X.toarray()
    far[:, 0] += 1e7
    options = {"loss": "hinge", "tol": 1e-6, "solver": "dual_coordinate", "max_iter": 5000}
    near = UncertainSVC(**options).fit(X, y)
    for data in (far, sparse.csr_array(far)):
        clf = UncertainSVC(**options).fit(data, y)
        assert clf.suboptimality_ <= 1e-6
        assert clf.objective_ == pytest.approx(near.objective_, rel=2e-6)


def test_progress_is_reported_and_gets_better():
    X, y = make_data(1000, 100, seed=13)
    objective = _core.Objective(
        Gaussians(X).core_view(), y.astype(np.int16), 1, None, 1e-4, loss="hinge"
    )
    seen = []
    result = _core.minimize(
        objective,
        coef=np.zeros((1, 100)),
        intercept=np.zeros(1),
        tolerance=1e-8,
        report=lambda *at: seen.append(at),
        method="dual_coordinate",
    )
    passes, values, gaps = map(np.array, zip(*seen, strict=True))
    assert len(seen) >= 2
    assert (np.diff(passes) > 0).all()
    assert passes[-1] == result["epochs"]
    assert (np.diff(values) <= 0).all()
    assert (np.diff(gaps) <= 0).all()


def test_what_it_does_not_know_is_refused_with_what_to_use_instead():
    X, y = make_data()
    points = X.toarray()
    clf = UncertainSVC(solver="dual_coordinate")
    with pytest.raises(ValueError, match="objective has uncertain examples, but the dual coord"):
        clf.fit(X, y, X_std=np.where(np.arange(len(y)) == 7, 0.1, 0.0)[:, None] * np.ones(30))
    with pytest.raises(ValueError, match="loss is 'expected_logistic', whose dual the dual coord"):
        clf.set_params(loss="expected_logistic").fit(points, y)
    with pytest.raises(ValueError, match="loss is 'best_case', which is not convex"):
        clf.set_params(loss="best_case").fit(points, y)
