"""The verdict on a fit: is its certificate true, and is its objective that of its model?

In:  a Problem; coefficients, intercept, objective and certified suboptimality of a fit.
Out: a Verdict, with the gap that the judge can prove.
"""

from dataclasses import dataclass

import numpy as np

from .certain import minimise_certain
from .newton import LD, Smoothed
from .problem import to_fraction

MARGIN = 1e-9  # relative: a thousandth of the default tol, a thousand times the rounding of a sum

PASSES = (0.1, 1e-4), (0.3, 1e-6), (0.5, 1e-8)  # fast first, then careful


@dataclass
class Verdict:
    """What is proved about a fit. Numbers are relative to the optimum or the objective."""

    certificate: str  # "true", "false", or "open" when the judge could prove neither
    excess: float  # how far the claimed bound lies above the least value found
    objective_error: float
    objective_true: bool
    gap: float  # a bound of (J - J*) / J* of the model
    representable: bool | None = None  # whether doubles hold a model of gap below tol


def minimise(smoothed, done):
    """Call done(u, J(u), bound of min J) with ever better ones, until it returns True."""
    with np.errstate(all="ignore"):  # steps that overflow are not taken
        if smoothed.problem.certain and minimise_certain(smoothed, done):
            return
        for factor, tight in PASSES:
            if smoothed.minimise(done, factor, tight):
                return


def judge(problem, w, b, objective, suboptimality, *, tol=1e-6):
    """Return the Verdict of one fit."""
    value, rounding = problem.objective(w, b)
    error = abs(LD(objective) - value)
    claimed = max(LD(objective), value - rounding) / (1 + LD(suboptimality))  # a bound of J*
    smoothed = Smoothed(problem.reduced())
    best = {"value": LD(np.inf), "bound": LD(0), "u": None}
    certified = suboptimality <= tol

    def done(u, found, bound):
        if found < best["value"]:
            best.update(value=found, u=u)
        best["bound"] = max(best["bound"], bound)
        if best["value"] + smoothed.rounding(u) < claimed * (1 - LD(MARGIN)):
            return True
        proved = best["bound"] >= claimed * (1 - LD(MARGIN))
        near = certified or best["bound"] * (1 + LD(1e-8)) >= best["value"]
        return proved and near

    minimise(smoothed, done)
    low, least = best["bound"], min(value, best["value"] + smoothed.rounding(best["u"]))
    optimum = best["u"][:-1] / smoothed.unit, best["u"][-1]
    certificate = "open"
    if low >= claimed * (1 - LD(MARGIN)):
        certificate = "true"
    elif least < claimed * (1 - LD(MARGIN)):
        certificate = "false"
        if smoothed.problem.certain and least < value:
            exact = smoothed.problem.exact_hinge_objective(*optimum)
            assert exact < to_fraction(claimed), "the judge is wrong"
    verdict = Verdict(
        certificate,
        float(claimed / least - 1),
        float(error / value) if value > 0 else float(error),
        bool(error <= LD(MARGIN) * value + rounding + problem.margin_rounding(w, b)),
        float(value / low - 1) if low > 0 else np.inf,
    )
    if not certified and low > 0 and smoothed.problem is problem:
        w, b = problem.round_to_model(*optimum)
        value, _ = problem.objective(w, b if problem.fit_intercept else 0.0)
        verdict.representable = bool(value <= low * (1 + tol / 2))
    return verdict
