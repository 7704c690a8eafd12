"""Fits of linear models: the one place where an objective is built and a solver runs.

In:  Gaussians or mixtures of them, codes of classes or values, weights, settings of an estimator.
Out: coefficients, how good they are certified to be, and a warning where that is not enough.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.parameters import require_count, require_number, thread_count
from halosvm.checks.targets import one_class_alone
from halosvm.core.progress import listener
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import components_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]

BATCH_SOLVERS = ("auto", "lbfgs", "interior_point", "dual_coordinate")
STOCHASTIC_SOLVERS = ("sgd", "proximal_sgd")
SOLVERS = (*BATCH_SOLVERS, *STOCHASTIC_SOLVERS)
_AVERAGING = ("weighted", "none")
_ROWS = 1000  # looked at together for a second class


class Status(Enum):
    """How a run of a solver ended; the core has a sentence for each."""

    CONVERGED = "converged"
    ZERO_MODEL = "zero_model"
    STATIONARY = "stationary"
    MAX_ITERATIONS = "max_iterations"
    STALLED = "stalled"


@dataclass(frozen=True, eq=False)
class Result:
    """The linear models of all problems, and what is known of them.

    Attributes
    ----------
    coef, intercept : ndarray of shape (n_problems, n_features), (n_problems,)
        The models.
    objective, lower_bound : ndarray of shape (n_problems,)
        J, and a bound that no model is below.
    suboptimality : ndarray of shape (n_problems,)
        A certified upper bound on (J - J*) / J*, rounding included; NaN where the loss is not
        convex.
    n_iter : int
        Iterations or, of stochastic solvers, passes over the data.
    status : Status
        How the run ended.
    message : str
        The same as a sentence.
    """

    coef: Array
    intercept: Array
    objective: Array
    lower_bound: Array
    suboptimality: Array
    n_iter: int
    status: Status
    message: str

    @classmethod
    def of_core(cls, run: _core.Result) -> Self:
        """Return what the core found."""
        models = (run["coef"], run["intercept"], run["objective"], run["lower_bound"])
        status = Status(run["status"])
        return cls(*models, run["suboptimality"], run["epochs"], status, run["message"])

    def describe(self, estimator: Any) -> None:
        """Set the attributes that tell of the fit; those of a single problem are numbers."""
        one = len(self.objective) == 1
        estimator.objective_ = float(self.objective[0]) if one else self.objective
        estimator.suboptimality_ = float(self.suboptimality[0]) if one else self.suboptimality
        estimator.n_iter_ = self.n_iter
        estimator.status_ = self.message


@dataclass(frozen=True)
class Settings:
    """The parameters of estimators that a linear fit depends on, under the same names."""

    C: float
    solver: str
    tol: float
    max_iter: int
    fit_intercept: bool
    n_threads: int | None
    loss: str = "expected_hinge"
    norm: float = 2.0
    batch_size: int = 32
    averaging: str = "weighted"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @classmethod
    def of(cls, estimator: Any, solvers: Sequence[str] = SOLVERS, **others: Any) -> Self:
        """Return the settings of an estimator after a check, or others in their place.

        What it has no parameter for gets its default.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        given = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
        settings = cls(**(given | others))
        settings._check(solvers)
        return settings

    def _check(self, solvers: Sequence[str]) -> None:
        require_number(self.C, "C")
        require_number(self.tol, "tol", or_zero=True)
        require_count(self.max_iter, "max_iter")
        require_count(self.batch_size, "batch_size")
        thread_count(self.n_threads)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        for name, allowed in (
            ("loss", _core.loss_names()),
            ("solver", solvers),
            ("averaging", _AVERAGING),
        ):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def fit_linear(
    data: Examples,
    classes: NDArray[Any],
    codes: NDArray[np.int16],
    weights: Array | None,
    settings: Settings,
    start: tuple[Array, Array] | None = None,
    restarts: Iterable[Array] = (),
) -> Result:
    """Fit one linear model to two classes, or one for each of more classes against the rest.

    Parameters
    ----------
    data : Gaussians or GaussianMixtures
        The examples.
    classes, codes : ndarray of shape (n_classes,), (n_samples,)
        The labels, and the place among them of each example's.
    weights : ndarray of shape (n_samples,), or None
        Weights of the losses; None for 1.
    settings : Settings
        Of an estimator, checked.
    start : (coef, intercept), optional
        Where the solver starts, if the shapes are those of the problem; otherwise at 0.
    restarts : iterable of coef, optional
        Of one problem whose loss is not convex: where it starts again. The lowest end counts.

    Warns
    -----
    ConvergenceWarning
        If the suboptimality `tol` was not certified, if the objective is least at w = 0, or if one
        class alone is predicted of all examples that have a weight.
    """
    n_problems = 1 if len(classes) == 2 else len(classes)
    lam = _lambda_of(settings.C, len(data), weights)
    parts, shares, rows = components_of(data, weights)
    objective = make_objective(parts, codes[rows], n_problems, shares, lam, settings)
    result = minimize(objective, n_problems, data.shape[1], settings, start, restarts)
    alone = one_class_alone(classes, _predicted(data, weights, result, settings))
    remedy = "; try class_weight='balanced', or another C"
    complain(result, settings.tol, least_at_zero(result, classes) or (alone and alone + remedy))
    return result


def _predicted(
    data: Examples, weights: NDArray[Any] | None, result: Result, settings: Settings
) -> NDArray[np.intp]:
    """Return the places of the classes that models speak for, up to the second one."""
    means = data.mean if isinstance(data, Gaussians) else data.moments()[0]
    threads = thread_count(settings.n_threads)
    seen: list[int] = []
    for begin in range(0, len(data), _ROWS):
        part = slice(begin, begin + _ROWS)
        values = _core.decision_function(means[part], result.coef, result.intercept, threads)
        one = values.shape[1] == 1
        places = (values[:, 0] > 0.0).astype(np.intp) if one else values.argmax(axis=1)
        if weights is not None:
            places = places[weights[part] > 0.0]
        if len(places):
            seen += [places.min(), places.max()]
        if min(seen, default=0) != max(seen, default=0):
            break
    return np.array(seen, np.intp)


def hessian_product(
    data: Gaussians,
    codes: NDArray[np.int16],
    weights: Array | None,
    settings: Settings,
    model: tuple[Array, float],
) -> Callable[[Array, float], tuple[Array, float]]:
    """Return the product with the Hessian of the objective of two classes, at a model.

    It takes and returns what belongs to the coefficients and to the intercept.
    """
    lam = _lambda_of(settings.C, len(data), weights)
    objective = make_objective(data, codes, 1, weights, lam, settings)
    W, b = model[0][np.newaxis], np.array([model[1]])

    def product(v: Array, v0: float) -> tuple[Array, float]:
        by_w, by_b = objective.hessian_vector(W, b, v[np.newaxis], np.array([v0]))
        return by_w[0], float(by_b[0])

    return product


def make_objective(
    data: Gaussians,
    codes: NDArray[np.int16],
    n_problems: int,
    weights: Array | None,
    lam: float,
    settings: Settings,
    offsets: Array | None = None,
    variances: Array | None = None,
    *,
    is_part: bool = False,
    centre: Array | None = None,
) -> _core.Objective:
    """Return the objective of examples, or of a part of them, where a class may be missing.

    Intercepts are those for means that are seen from the centre, if there is one.
    """
    return _core.Objective(
        data.core_view(),
        codes,
        n_problems,
        weights,
        lam,
        loss=settings.loss,
        fit_intercept=settings.fit_intercept,
        n_threads=thread_count(settings.n_threads),
        is_part=is_part,
        offsets=offsets,
        variances=variances,
        norm=float(settings.norm),
        centre=centre,
    )


def minimize(
    objective: _core.Objective | _core.SummedObjective,
    n_problems: int,
    n_features: int,
    settings: Settings,
    start: tuple[Array, Array] | None,
    restarts: Iterable[Array] = (),
) -> Result:
    """Return what the solver finds from a start and from other coefficients, without complaint."""
    coef, intercept = np.zeros((n_problems, n_features)), np.zeros(n_problems)
    if start is not None and start[0].shape == coef.shape:
        coef, intercept = start[0], start[1] if settings.fit_intercept else intercept
    result = Result.of_core(_run(objective, coef, intercept, settings))
    for other in restarts:
        again = Result.of_core(_run(objective, other, intercept, settings))
        result = min(result, again, key=lambda run: float(run.objective[0]))
    if not (np.isfinite(result.coef).all() and np.isfinite(result.intercept).all()):
        raise ValueError(
            f"the coefficients overflow: features of this size need a C far below {settings.C:g}"
        )
    return result


def complain(result: Result, tol: float, at_zero: str = "") -> None:
    """Warn of a tolerance that is not certified, or of what a minimum at w = 0 means."""
    complaint = _complaint(result, tol) or at_zero
    if complaint:
        warn_user(complaint)


def _lambda_of(C: float, n_samples: int, weights: Array | None) -> float:
    """Return the papers' lambda, 1 / (C sum(c))."""
    with np.errstate(over="ignore"):
        total = float(n_samples) if weights is None else float(weights.sum())
    return lambda_of(C, total)


def lambda_of(C: float, total: float) -> float:
    """Return the papers' lambda for weights of that sum."""
    if not 0.0 < total < np.inf:
        raise ValueError(f"sample_weight sums to {total:g}; the sum must be positive and finite")
    lam = 1.0 / total / float(C)
    if not 0.0 < lam < np.inf:
        raise ValueError(
            f"C is {C:g} and the weights sum to {total:g}, which makes lambda = "
            f"1 / (C sum(c)) {lam:g}; it must be positive and finite"
        )
    return lam


def _run(
    objective: _core.Objective | _core.SummedObjective,
    coef: Array,
    intercept: Array,
    settings: Settings,
) -> _core.Result:
    report = listener(verbose=bool(settings.verbose))
    if settings.solver in STOCHASTIC_SOLVERS and isinstance(objective, _core.Objective):
        seed = check_random_state(settings.random_state).randint(np.iinfo(np.int32).max)
        return _core.minimize_sgd(
            objective,
            coef=coef,
            intercept=intercept,
            batch_size=settings.batch_size,
            max_epochs=settings.max_iter,
            tolerance=settings.tol,
            averaging=settings.averaging,
            seed=int(seed),
            report=report,
            proximal=settings.solver == "proximal_sgd",
        )
    return _core.minimize(
        objective,
        coef=coef,
        intercept=intercept,
        max_iterations=settings.max_iter,
        tolerance=settings.tol,
        report=report,
        method=settings.solver,
    )


def _complaint(result: Result, tol: float) -> str:
    """Say what is wrong with the fit, and what to do; nothing when all is well."""
    largest = np.max(result.suboptimality)
    gap = f"{largest:.2g}, above tol = {tol:g}"
    if result.status is Status.STALLED:
        at = "" if np.isinf(largest) else f" at a certified suboptimality of {gap}"
        return (
            f"the search stalled after {result.n_iter} iterations{at}: rounding leaves no more "
            "digits, or the solver no longer gets ahead, so more iterations will not help; centre "
            "and standardise the features, give covariances of low rank by their factors, try "
            "another solver, or raise tol"
        )
    if result.status is Status.MAX_ITERATIONS:
        so_far = "search goes on" if np.isinf(largest) else f"certified suboptimality is {gap}"
        return (
            f"after {result.n_iter} iterations the {so_far}; increase max_iter or tol, or "
            "standardise the features"
        )
    return ""


def least_at_zero(result: Result, classes: NDArray[Any]) -> str:
    """Say what a minimum at w = 0 means to a classifier."""
    zero = ~result.coef.any(axis=1)
    if result.status not in (Status.ZERO_MODEL, Status.STATIONARY) or not zero.any():
        return ""
    several = len(result.coef) > 1
    of = f" of {', '.join(map(str, classes[zero]))} against rest" if several else ""
    if result.status is Status.STATIONARY:
        return (
            f"the search{of} ended at w = 0, where only the larger side is predicted: the means of "
            "the classes are too close to begin from; try class_weight='balanced' or a larger C"
        )
    return (
        f"the objective{of} is least at w = 0, where only the larger side is predicted: no "
        "boundary does better, since the errors are large or the classes overlap, and one is "
        "rare; try class_weight='balanced'"
    )
