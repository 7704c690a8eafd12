"""Problems of every loss, far from the origin, with weights and C of any size, and their judge.

In:  a seed, or a Problem with the name of a loss.
Out: a Draw, what the estimator is given; J of a model in extended precision; points of lower J.
"""

from dataclasses import dataclass, field

import numpy as np

from halosvm import Covariances

from .newton import solve_positive
from .normal import LD, cdf, expected_hinge, hinge_parts, pdf
from .problem import Problem

LOSSES = (
    "expected_hinge",
    "hinge",
    "expected_squared_hinge",
    "expected_huber_hinge",
    "expected_logistic",
    "worst_case",
)
MIXTURE = ((0.32329402, 1.32870897), (0.56606181, 3.38999510), (0.11064417, 8.50457061))
KINKED = ("hinge", "expected_hinge", "worst_case")

# Each of the following returns psi, psi_m, psi_s, psi_mm, psi_ms and psi_ss at m and s > 0.


def _hinge(m, s):
    value, density, theta = hinge_parts(m, s)
    z = m / s
    return value, theta, density, density / s, -z * density / s, z * z * density / s


def _tail(t):
    """(t^2 + 1) Phi(-t) - t phi(t) of t > 0, by Laplace's continued fraction."""
    a = before = np.zeros_like(t)
    for k in range(79, 0, -1):
        a, before = k / (t + a), a
    return pdf(t) / (t + a) * a * before


def _squared_hinge(m, s):
    z = np.clip(m / s, -60, 60)
    theta, density = cdf(z), pdf(z)
    value = np.where(
        z < -5, s * s * _tail(np.maximum(-z, 1)), (m * m + s * s) * theta + m * s * density
    )
    slope = 2 * expected_hinge(m, s)
    return value, slope, 2 * theta * s, 2 * theta, 2 * density, 2 * (theta - z * density)


def _huber_hinge(m, s):
    both = zip(_squared_hinge(m, s), _squared_hinge(m - 1, s), strict=True)
    return tuple((a - b) / 2 for a, b in both)


def _logistic(m, s):
    total = [LD(0)] * 6
    for share, variance in MIXTURE:
        width = np.sqrt(s * s + LD(variance))
        r = s / width
        value, dm, ds, mm, ms, ss = _hinge(m, width)
        bend = ss * r * r + ds * LD(variance) / width**3
        parts = value, dm, ds * r, mm, ms * r, bend
        total = [a + LD(share) * b for a, b in zip(total, parts, strict=True)]
    return tuple(total)


SMOOTH = {
    "expected_squared_hinge": _squared_hinge,
    "expected_huber_hinge": _huber_hinge,
    "expected_logistic": _logistic,
}


class AnyLoss:
    """J of a Problem with a loss, in u = (w * unit, intercept of centred means)."""

    def __init__(self, problem, loss):
        self.problem, self.loss, self.c = problem, loss, problem.c
        self.margin = LD(0 if loss == "expected_logistic" else 1)
        blind = LD(loss != "hinge")
        F, V = blind * problem.F, blind * problem.V
        unit = np.sqrt(self.c @ (problem.side**2 + np.einsum("nrd,nrd->nd", F, F) + V))
        unit[unit == 0] = 1
        self.unit, self.ridge = unit, problem.lam / unit**2
        self.F, self.V = F / unit, V / unit**2
        free = np.full((len(self.c), 1), LD(problem.fit_intercept))
        self.slopes = -problem.y[:, None] * np.hstack([problem.side / unit, free])

    def point(self, w, b):
        """Return u of a model in doubles."""
        return np.append(np.asarray(w).astype(LD) * self.unit, self.problem.centred_intercept(w, b))

    def rounding(self, u):
        """Bound the rounding error of J at u, in longdoubles."""
        return LD(1e-18) * len(u) * (1 + self.c @ (np.abs(self.slopes) @ np.abs(u)))

    def _deficits(self, u):
        p = self.F @ u[:-1]
        square = np.einsum("nr,nr->n", p, p) + self.V @ u[:-1] ** 2
        return self.margin + self.slopes @ u, square, p

    def value(self, u):
        """J at u."""
        m, square, _ = self._deficits(u)
        s = np.sqrt(square)
        if self.loss in SMOOTH:
            psi = SMOOTH[self.loss](m, np.maximum(s, LD(1e-30)))[0]
        elif self.loss == "expected_hinge":
            psi = expected_hinge(m, s)
        else:
            psi = np.maximum(m + {"hinge": 0, "worst_case": 1, "best_case": -1}[self.loss] * s, 0)
        return self.ridge @ u[:-1] ** 2 / 2 + self.c @ psi

    def _smoothed(self, m, square, floor):
        """s, and psi with its derivatives, with kinks rounded off over the width of the floor."""
        if self.loss in SMOOTH:
            s = np.sqrt(square + LD(1e-60))
            return s, SMOOTH[self.loss](m, s)
        if self.loss == "worst_case":
            s = np.sqrt(square + LD(1e-6) * floor**2)
            value, theta, _, bend, _, _ = _hinge(m + s, floor + 0 * m)
            return s, (value, theta, theta, bend, bend, bend)
        s = np.sqrt(square + floor**2)
        return s, _hinge(m, s)

    def _newton(self, u, floor):
        """Smoothed J, its gradient and its Hessian."""
        m, square, p = self._deficits(u)
        s, (psi, dm, ds, mm, ms, ss) = self._smoothed(m, square, floor)
        c, A, w = self.c, self.slopes, u[:-1]
        pull = np.einsum("nr,nrd->nd", p, self.F) + self.V * w
        E = np.pad(pull / s[:, None], [(0, 0), (0, 1)])
        gradient = (c * dm) @ A + (c * ds) @ E
        cross = (A.T * (c * ms)) @ E
        hessian = (A.T * (c * mm)) @ A + cross + cross.T + (E.T * (c * (ss - ds / s))) @ E
        curved = (self.F * np.sqrt(c * ds / s)[:, None, None]).reshape(-1, len(w))
        hessian[:-1, :-1] += curved.T @ curved
        gradient[:-1] += self.ridge * w
        diagonal = np.einsum("ii->i", hessian)
        diagonal[:-1] += self.ridge + (c * ds / s) @ self.V
        diagonal[-1] += LD(1e-300 if self.problem.fit_intercept else 1)
        return self.ridge @ w**2 / 2 + c @ psi, gradient, hessian

    def least(self, start, enough):
        """Return the least J that damped Newton steps find; they end below `enough`."""
        origin = np.zeros_like(start)
        best = min(self.value(start), self.value(origin))
        floors = [LD(10) ** -k for k in range(18 if self.loss in KINKED else 1)]
        for u in (start, origin):
            for floor in floors:
                u = self._descend(u, floor)
                best = min(best, self.value(u))
                if best < enough:
                    return best
        return best

    def _descend(self, u, floor):
        damping = LD(0)
        value, gradient, hessian = self._newton(u, floor)
        for _ in range(60):
            damped = hessian.copy()
            np.einsum("ii->i", damped)[:] += damping
            step = -solve_positive(damped, gradient)
            slope = gradient @ step
            if not -slope > LD(1e-16) * value or damping > 1e8:
                break
            for length in (LD(1), LD(0.5), LD(0.2)):
                trial = self._newton(u + length * step, floor)
                if trial[0] <= value + LD(1e-4) * length * slope:
                    u, (value, gradient, hessian) = u + length * step, trial
                    damping = damping / 20 if damping > 1e-14 else LD(0)
                    break
            else:
                damping = max(10 * damping, LD(1e-8))
        return u


@dataclass
class Draw:
    """One fit: estimator parameters, data, keywords of `fit`, and the problem as judged."""

    X: np.ndarray
    y: np.ndarray
    problem: Problem
    parameters: dict
    fit: dict = field(default_factory=dict)


def _covariances(rng, n, d):
    """Keywords of fit, and the parts of the Problem that follow from them."""
    size = 10.0 ** rng.uniform(-3, 5 if rng.random() < 0.2 else 1)
    kind = rng.choice(["certain", "diagonal", "mixed", "low_rank", "full"])
    if kind in ("diagonal", "mixed"):
        std = size * rng.uniform(0.05, 1, (n, d))
        std[rng.random(n) < (kind == "mixed") * rng.uniform(0.1, 0.9)] = 0
        return {"X_std": std}, {"V": std.astype(LD) ** 2}
    if kind == "low_rank":
        factors = size * rng.normal(size=(n, d, int(rng.integers(1, d + 1))))
        return {"X_cov": Covariances.low_rank(factors)}, {"F": factors.transpose(0, 2, 1)}
    if kind == "full":
        rank = int(rng.integers(1, d + 2))
        factors = np.round(256 * min(size, 100.0) * rng.normal(size=(n, rank, d))) / 256
        return {"X_cov": factors.transpose(0, 2, 1) @ factors}, {"F": factors}
    return {}, {}


def draw(seed):
    """Return the Draw of that seed; the same one everywhere."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 21)), int(rng.integers(1, 6))
    y = np.arange(n) % 2
    if rng.random() < 0.5:
        y = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    direction = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(n, d)) + rng.choice([0, 0.5, 2, 5]) * np.outer(2 * y - 1, direction)
    far = rng.random() < 0.5
    if far:
        X = np.round(64 * X) / 64 + 2.0 ** rng.integers(0, 34)
    loss = str(rng.choice(LOSSES))
    fit, parts = _covariances(rng, n, d)
    weights = None
    if rng.random() < 0.3:
        weights = 10.0 ** rng.uniform(-12, 12, n) if rng.random() < 0.5 else rng.uniform(0.01, 3, n)
        fit["sample_weight"] = weights
    certain = loss == "hinge" or not parts
    solvers = ["auto", "lbfgs", "sgd", "proximal_sgd"]
    solvers += ["interior_point"] * (loss in KINKED)
    solvers += ["dual_coordinate"] * (certain and loss != "expected_logistic")
    solver = str(rng.choice(solvers))
    parameters = {
        "C": 10.0 ** rng.uniform(-3, 9),
        "loss": loss,
        "solver": solver,
        "max_iter": int(rng.choice([4, 30, 100] if "sgd" in solver else [3, 10, 100, 1000])),
        "fit_intercept": bool(far or rng.random() < 0.9),
        "random_state": 0,
    }
    problem = Problem(
        X, y, parameters["C"], weights=weights, fit_intercept=parameters["fit_intercept"], **parts
    )
    return Draw(X, y, problem, parameters, fit)
