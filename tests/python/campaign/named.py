"""Problems on which a solver once failed, by name.

Each makes the Case that it is: what the estimator is given, and the Problem that the judge reads.
"""

import numpy as np

from halosvm import Covariances

from .generator import Case
from .problem import EPS, Problem


def _case(X, y, C, fit=None, parameters=None, **parts):
    return Case("", X, y, Problem(X, y, C, **parts), {"C": C, **(parameters or {})}, fit or {})


def _four_certain_points():
    X = [[6.9, 1.6, 0.9, -0.2], [-5.1, -0.2, -2.2, 1.7], [-5.8, -0.4, -0.8, -1.3]]
    X = np.array([*X, [4.2, -1.1, -0.7, -1.2]])
    return _case(X, np.array([1, -1, -1, 1]), 0.33)


def _rank_1_matrices():
    rng = np.random.default_rng(3394)
    X, F = rng.normal(size=(8, 3)), 0.1 * rng.normal(size=(8, 3, 1))
    parts = {"F": F.transpose(0, 2, 1), "dense": True, "slack": 3 * EPS}
    return _case(X, np.arange(8) % 2, 1000.0, {"X_cov": F @ F.transpose(0, 2, 1)}, **parts)


def _rare_class_of_many_features(d, **parameters):
    rng = np.random.default_rng(7)
    X, S = np.zeros((45, d)), np.zeros((45, d))
    X[:, :9] = rng.normal(size=(45, 9))
    X[:, 9:] = 1e-6 * rng.normal(size=(45, d - 9))
    S[:, :9] = 0.1
    y = (np.arange(45) < 1).astype(int)
    return _case(X, y, 1e4, {"X_std": S}, parameters, V=S.astype(np.longdouble) ** 2)


def far_from_the_origin(C, shift=2.0**21):
    """Eight separable points, moved by a number that keeps them exact."""
    rng = np.random.default_rng(3997)
    y = np.where(np.arange(8) % 2, 1, -1)
    X = np.round(64 * rng.normal(size=(8, 2))) / 64
    X[:, 0] += 2 * y
    return _case(X + shift, y, C)


def _minimum_at_zero():
    rng = np.random.default_rng(5044)
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 8))
    n_positive = int(rng.integers(1, max(2, n // 3)))
    X, y = rng.normal(size=(n, d)), (np.arange(n) < n_positive).astype(int)
    S = np.full((n, d), float(rng.choice([1.0, 2.0, 3.0])))
    S[rng.random(n) < rng.choice([0, 0.3, 0.6])] = 0
    C = float(rng.choice([1.0, 100.0, 1e4]))
    return _case(X, y, C, {"X_std": S}, V=S.astype(np.longdouble) ** 2)


def _few_ragged_factors(count):
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    X[:, 0] += y
    F = np.zeros((200, 1, 2))
    F[:count, 0] = rng.normal(size=(count, 2))
    factors = [row.T if row.any() else np.zeros((2, 0)) for row in F]
    fit = {"X_cov": Covariances.low_rank(factors)}
    return _case(X, y, 10.0, fit, {"solver": "interior_point"}, F=F)


NAMED = {
    "four certain points": _four_certain_points,
    "8 x 3 of rank-1 matrices": _rank_1_matrices,
    "rare class, 4001 features": lambda: _rare_class_of_many_features(4001),
    "rare class, 30 features, lbfgs": lambda: _rare_class_of_many_features(30, solver="lbfgs"),
    "offset of 2^21": lambda: far_from_the_origin(1e6),
    "offset of 2^30": lambda: far_from_the_origin(1e6, 2.0**30),
    "minimum at w = 0, some certain": _minimum_at_zero,
    "factors on 12 of 200": lambda: _few_ragged_factors(12),
    "factors on 13 of 200": lambda: _few_ragged_factors(13),
}
