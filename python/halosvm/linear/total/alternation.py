"""The total SVM with a kernel: Algorithm 1 of Bi and Zhang (2004), safeguarded (spec I.6).

In:  points with bounded errors, their signs and costs, a kernel.
Out: a machine and the corrections that it was fitted with; no further round makes them better.

    J(w, b, dx) = 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i + dx_i)),  |R_i^-1 dx_i| <= 1

falls in each half of a round: dx moves only to where y_i f is larger, and w is the support vector
machine of the points where they are then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halosvm.gaussians.gaussians import Gaussians
from halosvm.kernel.dual import GAP_TO_TELL, iteration_limit, relative_gap, solve_dual
from halosvm.kernel.expansions import expansion_values
from halosvm.linear.total.corrections import farthest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.linear.total.problem import KernelProblem

    Array = NDArray[np.float64]

_SHARES = (1.0, 0.5, 0.25, 0.0)  # of a proposed correction


@dataclass(frozen=True, eq=False)
class Machine:
    """f(x) = sum_j coefficients_j k(x, points_j) + intercept, with the J of its corrections."""

    points: Array
    coefficients: Array
    intercept: float
    corrections: Array
    objective: float
    n_iter: int
    solved: bool  # whether it is the support vector machine of its corrections
    steps: int  # of the dual solver, in all rounds
    converged: bool = False


def alternate(problem: KernelProblem, start: Array, tol: float, max_iter: int) -> Machine:
    """Return the machine after the last round that gained more than the share `tol` of J."""
    limit = iteration_limit(len(problem.costs))  # in all rounds
    best = _machine(problem, start, tol, 1, limit)
    while best.solved and best.n_iter < max_iter and best.steps < limit:
        corrections = corrected(problem, best, best.corrections)
        other = _machine(problem, corrections, tol, best.n_iter + 1, limit - best.steps)
        other = replace(other, steps=best.steps + other.steps)
        if not other.objective < best.objective * (1.0 - tol):
            better = other if other.objective < best.objective else best
            solved = other.solved
            return replace(better, n_iter=other.n_iter, solved=solved, converged=solved)
        best = other
    return best


def random_corrections(problem: KernelProblem, random: np.random.RandomState) -> Array:
    """Return corrections in random directions, as large as the errors are."""
    return farthest(problem.data.covariances, random.normal(size=problem.data.shape))


def corrected(problem: KernelProblem, machine: Machine, corrections: Array) -> Array:
    """Return for each example the best of its correction and of shares of the proposed one."""
    directions = problem.signs[:, np.newaxis] * _gradients(problem, machine)
    proposed = farthest(problem.data.covariances, directions)
    best, gains = corrections, _gains(problem, machine, corrections)
    for share in _SHARES:
        tried = share * proposed
        found = _gains(problem, machine, tried)
        best = np.where((found > gains)[:, np.newaxis], tried, best)
        gains = np.maximum(found, gains)
    return best


def _machine(
    problem: KernelProblem, corrections: Array, tol: float, n_iter: int, limit: int
) -> Machine:
    """Return the support vector machine of the corrected points, after `limit` steps at most."""
    points = problem.points + corrections
    gram = problem.kernel.gram(Gaussians(points), n_threads=problem.n_threads)
    tol = max(tol, 1e-12)
    dual = solve_dual(gram, problem.signs, problem.costs, tol=tol, max_iter=limit)
    support, coefficients = dual.support_, dual.dual_coef_[0]
    intercept = float(dual.intercept_[0])
    values = gram[:, support] @ coefficients
    square = float(coefficients @ values[support])
    values += intercept
    losses = np.maximum(0.0, 1.0 - problem.signs * values)
    objective = 0.5 * square + float(problem.costs @ losses)
    bound = float(np.abs(coefficients).sum())
    gap = relative_gap(problem.signs, values, square, bound, problem.costs, tol)
    return Machine(
        points[support],
        coefficients,
        intercept,
        corrections,
        objective,
        n_iter,
        solved=dual.fit_status_ == 0 and gap <= GAP_TO_TELL,
        steps=int(dual.n_iter_.max()),
    )


def _gains(problem: KernelProblem, machine: Machine, corrections: Array) -> Array:
    """Return y f(x + dx), without the intercept."""
    points, support = Gaussians(problem.points + corrections), Gaussians(machine.points)
    coefficients, none = machine.coefficients[np.newaxis], np.zeros(1)
    values = expansion_values(
        points, support, coefficients, none, problem.kernel, problem.n_threads
    )
    return np.asarray(problem.signs * values[:, 0])


def _gradients(problem: KernelProblem, machine: Machine) -> Array:
    """Return the gradient of f at each x: sum_j a_j grad_1 k(x, z_j)."""
    kernel, X, Z = problem.kernel, problem.points, machine.points
    if kernel.order == 1:
        return np.asarray(kernel.gamma * (machine.coefficients @ Z))[np.newaxis]
    slope = kernel if kernel.order is None else replace(kernel, degree=kernel.order - 1)
    K = slope.gram(Gaussians(X), Gaussians(Z), n_threads=problem.n_threads)
    K *= machine.coefficients
    if kernel.order is None:  # -2 gamma (x - z) k
        return np.asarray(2.0 * kernel.gamma * (K @ Z - K.sum(axis=1)[:, np.newaxis] * X))
    return np.asarray(kernel.order * kernel.gamma * (K @ Z))
