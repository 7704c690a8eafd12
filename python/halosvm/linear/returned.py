"""Certificates of models as they are returned: in the caller's numbers, rounded.

In:  a result in numbers that suit a solver, and J of models in the caller's.
Out: the result for the model that the caller gets, whose intercept is the best of its neighbours.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halosvm import _core
from halosvm.linear.linear_fit import Result, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halosvm.linear.linear_fit import Settings

    Array = NDArray[np.float64]

ROUNDING = 2.0**-53
_NEGLIGIBLE = 1e-10  # of J: less than users read of it
_LARGEST = 1e300  # slope that a bound counts with
_STEPS = np.array([0, -1, 1, -2, 2, -4, 4, -16, 16, -64, 64])  # doubles from the best one so far
_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class View:
    """From where a solver sees features and values, and what it takes for 1 among values.

    A model (w, b) of the caller is w / unit, (b + w'centre - shift) / unit to the solver.
    """

    centre: Array
    shift: float = 0.0
    unit: float = 1.0

    @property
    def moves(self) -> bool:
        """Whether anything looks different from there."""
        return bool(self.centre.any()) or self.shift != 0.0 or self.unit != 1.0

    def into(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return models of the caller as the solver sees them."""
        seen = _core.move_intercepts(coef, intercept, self.centre)
        return coef / self.unit, (seen - self.shift) / self.unit

    def out_of(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return models of the solver in the caller's numbers."""
        coef = coef * self.unit
        return coef, _core.move_intercepts(coef, intercept * self.unit + self.shift, -self.centre)

    def rounding(
        self, coef: Array, intercept: Array, returned: Array, moments: Callable[[], _core.Moments]
    ) -> Array:
        """Return how far the solver's scores may be from those with the returned intercepts."""
        between = intercept + self.shift / self.unit
        moved: Array = np.abs([intercept, between, returned / self.unit]).sum(axis=0)
        if np.frexp(self.unit)[0] != 0.5:  # products with powers of two are exact
            about = moments()
            moved += np.abs(coef) @ np.sqrt(about.variance + about.centre**2)
        return ROUNDING * moved


def as_returned(
    result: Result,
    view: View,
    settings: Settings,
    moments: Callable[[], _core.Moments],
    exact_values: Callable[[Array, Array], Array],
    unknown: float = 0.0,
) -> Result:
    """Return the result for the models in the caller's numbers; J stays in the solver's.

    Parameters
    ----------
    result : Result
        Of the models that the solver found.
    moments : callable
        Those of the features in the caller's numbers.
    exact_values : callable
        J of models of the caller and its errors, (2, n_problems, n_intercepts): of coefficients,
        and several intercepts for each problem.
    unknown : float
        How far the targets that the solver saw are from the caller's, root mean square.
    """
    coef, intercept = view.out_of(result.coef, result.intercept)
    lower, value = result.lower_bound, result.objective
    error = np.maximum(lower * (1 + np.where(lower > 0, result.suboptimality, 0)) - value, 0)
    traits = _core.loss_traits(settings.loss)

    def change(moved: Array | float) -> Array:
        """Bound the change of J where scores move: no smooth loss is more curved than squares."""
        most: Array = min(traits["steepest"], _LARGEST) * np.ones_like(value) * moved
        if not traits["kinked"]:
            with np.errstate(over="ignore"):
                smooth = 2 * np.sqrt(value + error) * moved + np.square(moved)
            most = np.where(smooth < most, smooth, most)
        return most

    moved = change(view.rounding(result.coef, result.intercept, intercept, moments) + unknown)
    if (moved > _NEGLIGIBLE * value).any():
        intercept, value, error = _best_intercepts(coef, intercept, settings, exact_values)
    else:
        error = error + moved
    lower = np.maximum(lower - change(unknown), 0)
    judged = _core.judge(value, lower, error, result.n_iter, settings.max_iter, settings.tol)
    status, message = Status(judged["status"]), judged["message"]
    certified = (Status.CONVERGED, Status.ZERO_MODEL)
    if (status in certified) == (result.status in certified):
        status, message = result.status, result.message
    return dataclasses.replace(
        result,
        coef=coef,
        intercept=intercept,
        objective=value,
        lower_bound=lower,
        suboptimality=judged["suboptimality"],
        status=status,
        message=message,
    )


def _best_intercepts(
    coef: Array, intercept: Array, settings: Settings, exact_values: Callable[[Array, Array], Array]
) -> tuple[Array, Array, Array]:
    """Return the best doubles near the intercepts, and J there with its error: J is convex."""
    steps = _STEPS if settings.fit_intercept else _STEPS[:1]
    problems = np.arange(len(coef))
    for _ in range(_ROUNDS):
        near = intercept[:, None] + np.spacing(intercept)[:, None] * steps
        values, errors = exact_values(coef, near)
        best = values.argmin(axis=1)
        intercept, value = near[problems, best], values[problems, best]
        error = errors[problems, best]
        if not best.any():
            break
    return intercept, value, error
