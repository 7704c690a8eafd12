"""The contestants: each is prepared outside its timing and returned as a function to be timed.

halosvm is timed as a user calls it, from plain arrays to the certified result, and once more as
the bare solver, where a rival's bare solver is timed too. Of the rivals only the call that solves
is timed, not what prepares it, nor the evaluation of the objective afterwards.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from halosvm import _core, reference
from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.svc import UncertainSVC

from . import settings as table
from .timing import available_threads, limit_blas, optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .data import Array, Examples

    Solver = Callable[[], "Array"]  # returns w (d,)


class Trace(NamedTuple):
    """The values of the objective that a solver met, and when, in seconds from its start."""

    seconds: Array
    values: Array

    def time_to(self, value: float) -> float:
        """Return when the objective was first at most `value`; infinity if it never was."""
        reached = np.flatnonzero(self.values <= value)
        return float(self.seconds[reached[0]]) if len(reached) else np.inf


class _Reached(Exception):  # noqa: N818 (leaves SciPy's solver, which cannot be stopped otherwise)
    """The objective is low enough."""


# -- halosvm -------------------------------------------------------------------------------------
def halosvm_fit(
    data: Examples, lam: float, tol: float, *, n_threads: int = 0
) -> Callable[[], UncertainSVC]:
    """Fit UncertainSVC from arrays to a certified suboptimality, checks of the data included."""
    C, n_threads = 1.0 / (lam * len(data.codes)), n_threads or available_threads()

    def fit() -> UncertainSVC:
        clf = UncertainSVC(C, tol=tol, n_threads=n_threads)
        return clf.fit(data.mean, data.codes, X_cov=data.variance)

    return fit


def halosvm_best(data: Examples, lam: float) -> UncertainSVC:
    """Return the best fit that halosvm can do."""
    with warnings.catch_warnings(action="ignore"):  # that it falls short is told by its attributes
        return halosvm_fit(data, lam, table.OPTIMUM_TOLERANCE)()


def doubt(fits: Sequence[UncertainSVC]) -> str:
    """Return a remark on fits that are not certified to their tolerance, else nothing."""
    certified = max(float(np.max(fit.suboptimality_)) for fit in fits)
    return "" if certified <= fits[0].tol else f", NOT certified: {certified:.1e}"


def halosvm_trace(X: Gaussians, codes: Any, lam: float, tol: float) -> Callable[[], Trace]:
    """Run the default solver from w = 0 on data that have been read, and note each iterate."""

    def solve() -> Trace:
        start, met = time.perf_counter(), []
        objective = _core.Objective(
            X.core_view(), codes, 1, None, lam, n_threads=available_threads()
        )

        def note(_iteration: int, value: float, _gap: float) -> None:
            met.append((time.perf_counter() - start, value))

        _core.minimize(
            objective,
            coef=np.zeros((1, X.shape[1])),
            intercept=np.zeros(1),
            tolerance=tol,
            report=note,
        )
        return Trace(*np.array(met).T)

    return solve


# -- the same objective --------------------------------------------------------------------------
def lbfgsb_trace(
    X: Gaussians, y: Array, lam: float, enough: float, *, n_threads: int
) -> Callable[[], Trace]:
    """Run SciPy's L-BFGS-B on `halosvm.reference` until the objective is at most `enough`.

    It starts at w = 0 as halosvm does; its clock stops at the first evaluation that is low enough,
    whether or not its own stopping criteria could tell. The matrix products have `n_threads`.
    """
    limited = limit_blas(n_threads)

    def solve() -> Trace:
        start, met = time.perf_counter(), []

        def evaluate(u: Array) -> tuple[float, Array]:
            value, grad_w, grad_b = reference.objective_and_gradient(
                X, y, u[:-1], float(u[-1]), lam
            )
            met.append((time.perf_counter() - start, value))
            if value <= enough:
                raise _Reached
            return value, np.append(grad_w, grad_b)

        u = np.zeros(X.shape[1] + 1)
        with limited(), contextlib.suppress(_Reached):
            minimize(evaluate, u, jac=True, method="L-BFGS-B", options=table.LBFGSB)
        return Trace(*np.array(met).T)

    return solve


def cvxpy_fit(data: Examples, lam: float) -> Solver | None:
    """Solve a tiny problem by a general conic solver.

    The expected hinge is the largest of theta m + phi(Phi^-1(theta)) s over theta in [0, 1]; that
    of `CVXPY_TANGENTS` values of theta makes it a second-order cone programme, a little too low.
    For certain examples it is the hinge, a quadratic programme, and exact.
    """
    cp = optional("cvxpy")
    if cp is None:
        return None
    n, d = data.mean.shape
    w, b, loss = cp.Variable(d), cp.Variable(), cp.Variable(n)
    m = 1 - cp.multiply(data.y, data.mean @ w + b)
    constraints = [loss >= m, loss >= 0]
    if data.variance is not None:
        s = cp.Variable(n)
        rows = cp.Constant(np.ones((n, 1))) @ cp.reshape(w, (1, d), order="C")
        constraints.append(cp.norm(cp.multiply(np.sqrt(data.variance), rows), axis=1) <= s)
        z = np.linspace(-4.0, 4.0, table.CVXPY_TANGENTS)
        constraints += [
            loss >= theta * m + phi * s for theta, phi in zip(norm.cdf(z), norm.pdf(z), strict=True)
        ]
    problem = cp.Problem(cp.Minimize(0.5 * lam * cp.sum_squares(w) + cp.sum(loss) / n), constraints)
    problem.get_problem_data(table.CVXPY["solver"])  # compiled and cached, outside the timing

    def solve() -> Array:
        problem.solve(**table.CVXPY)
        return np.asarray(w.value)

    return solve


# -- the hinge loss on the means -----------------------------------------------------------------
def linear_svc(data: Examples, lam: float, options: dict[str, Any]) -> Solver:
    """Fit scikit-learn's LinearSVC (LIBLINEAR's dual coordinate descent) with the hinge loss."""
    C = 1.0 / (lam * len(data.codes))
    model = LinearSVC(loss="hinge", C=C, random_state=0, **options)
    return lambda: np.asarray(model.fit(data.mean, data.codes).coef_[0])


def libsvm(data: Examples, lam: float) -> Solver:
    """Fit scikit-learn's SVC (LIBSVM) with the linear kernel: the same objective as the hinge."""
    model = SVC(kernel="linear", C=1.0 / (lam * len(data.codes)))
    return lambda: np.asarray(model.fit(data.mean, data.codes).coef_[0])


def sgd_classifier(data: Examples, lam: float, options: dict[str, Any]) -> Solver:
    """Fit scikit-learn's SGDClassifier with the hinge loss."""
    model = SGDClassifier(loss="hinge", alpha=lam, random_state=0, **options)
    return lambda: np.asarray(model.fit(data.mean, data.codes).coef_[0])


def liblinear(data: Examples, lam: float, options: str) -> Solver | None:
    """Train LIBLINEAR's own library through its Python interface."""
    util = optional("liblinear.liblinearutil")
    if util is None:
        return None
    problem = util.problem(data.y, sparse.csr_matrix(data.mean))
    C = 1.0 / (lam * len(data.codes))

    def solve() -> Array:
        model = util.train(problem, util.parameter(f"{options} -c {C!r} -q"))
        sign = 1.0 if model.label[0] == 1 else -1.0
        return sign * np.array(model.w[: data.mean.shape[1]])

    return solve


def cyanure(data: Examples, lam: float) -> Solver | None:
    """Fit cyanure's Classifier, which has no hinge loss, with the squared hinge."""
    estimators = optional("cyanure.estimators")
    if estimators is None:
        return None
    how = {"fit_intercept": True, "verbose": False, "n_threads": available_threads()}
    model = estimators.Classifier(lambda_1=lam, **how, **table.CYANURE)
    return lambda: np.ravel(model.fit(data.mean, data.y).coef_)


# -- how good a result is ------------------------------------------------------------------------
def best_value(X: Gaussians, codes: Any, w: Array, lam: float) -> float:
    """Return the objective of halosvm at w with the best intercept for it.

    Rivals that regularise the intercept are not charged for that, and get it chosen for free.
    """
    objective = _core.Objective(X.core_view(), codes, 1, None, lam, n_threads=available_threads())
    W = np.ascontiguousarray(w, dtype=np.float64).reshape(1, -1)
    return float(objective(W, objective.exact_intercept(W)).value[0])
