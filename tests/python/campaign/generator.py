"""Random small training problems, one for each kind and seed.

In:  a kind and a seed.
Out: a Case: what the estimator is given, and the Problem that the judge reads.
"""

import zlib
from dataclasses import dataclass, field

import numpy as np

from halosvm import Covariances
from halosvm.uncertainty import from_samples

from .problem import EPS, LD, Problem


@dataclass
class Case:
    """One fit: estimator parameters, data, keywords of `fit`, and the problem as judged."""

    name: str
    X: object
    y: np.ndarray
    problem: Problem
    parameters: dict = field(default_factory=dict)
    fit: dict = field(default_factory=dict)


def _dyadic(values, bits=10):
    """Round to multiples of 2^-bits, so that products and sums of a few stay exact."""
    return np.round(np.ldexp(values, bits)) / 2.0**bits


def _means(rng, n, d, y, overlap):
    X = rng.normal(size=(n, d))
    direction = rng.normal(size=d)
    return X + overlap * np.where(y, 1, -1)[:, None] * direction / np.linalg.norm(direction)


def _labels(rng, n, rare=False):
    y = np.zeros(n, int)
    count = 1 if rare else int(rng.integers(1, n))
    y[rng.permutation(n)[:count]] = 1
    if not rare and rng.random() < 0.5:
        y = np.arange(n) % 2
    return y if rng.random() < 0.5 or not rare else 1 - y


def _size(rng, largest=30):
    n = int(rng.integers(4, largest + 1)) if rng.random() < 0.9 else int(rng.integers(30, 121))
    return n, int(rng.integers(1, 9))


def _spread(rng):
    return float(10.0 ** rng.uniform(-2, 1))


# Each of the following returns keywords of fit and the parts of the Problem that follow from them.


def _certain(rng, n, d):
    return {}, {}


def _isotropic(rng, n, d):
    std = _spread(rng) * rng.uniform(0.2, 1.0, n)
    if rng.random() < 0.5:
        return {"X_cov": Covariances.from_std(std, n_features=d)}, {
            "V": np.repeat(std[:, None].astype(LD) ** 2, d, axis=1)
        }
    batch = Covariances.isotropic(std**2, n_features=d)
    return {"X_cov": batch}, {"V": np.repeat((std**2)[:, None], d, axis=1)}


def _diagonal(rng, n, d):
    std = _spread(rng) * rng.uniform(0.05, 1.0, (n, d))
    if rng.random() < 0.5:
        return {"X_std": std}, {"V": std.astype(LD) ** 2}
    return {"X_cov": Covariances.diagonal(std**2)}, {"V": std**2}


def _mixed(rng, n, d):
    std = _spread(rng) * rng.uniform(0.2, 1.0, (n, d))
    std[rng.random(n) < rng.uniform(0.1, 0.9)] = 0
    if rng.random() < 0.3:
        std[:, rng.random(d) < 0.5] = 0
    return {"X_std": std}, {"V": std.astype(LD) ** 2}


def _low_rank(rng, n, d):
    factors = _spread(rng) * rng.normal(size=(n, d, int(rng.integers(1, d + 1))))
    return {"X_cov": Covariances.low_rank(factors)}, {"F": factors.transpose(0, 2, 1)}


def _low_rank_diagonal(rng, n, d):
    factors = _spread(rng) * rng.normal(size=(n, d, int(rng.integers(1, d + 1))))
    variances = _spread(rng) ** 2 * rng.uniform(0, 1, (n, d)) * (rng.random((n, d)) < 0.5)
    batch = Covariances.low_rank(factors, variances)
    return {"X_cov": batch}, {"F": factors.transpose(0, 2, 1), "V": variances}


def _ragged(rng, n, d):
    ranks = rng.integers(0, d + 1, n) * (rng.random(n) < rng.uniform(0.05, 1))
    ranks[0] = max(ranks[0], 1)
    factors = [_spread(rng) * rng.normal(size=(d, rank)) for rank in ranks]
    padded = np.zeros((n, max(ranks), d))
    for row, factor in zip(padded, factors, strict=True):
        row[: factor.shape[1]] = factor.T
    return {"X_cov": Covariances.low_rank(factors)}, {"F": padded}


def _full_of(factors, *, exact):
    """Keywords for matrices F'F of (n, rank, d) factors; with a slack if they are rounded."""
    matrices = factors.transpose(0, 2, 1) @ factors
    matrices = (matrices + matrices.transpose(0, 2, 1)) / 2
    if exact:
        return {"X_cov": matrices}, {"F": factors, "dense": True}
    return {"X_cov": matrices}, {"F": factors, "dense": True, "slack": factors.shape[2] * EPS}


def _full(rng, n, d):
    return _full_of(_spread(rng) * rng.normal(size=(n, d + 2, d)), exact=False)


def _rank_1_full(rng, n, d):
    return _full_of(_spread(rng) * rng.normal(size=(n, 1, d)), exact=False)


def _rank_1_exact(rng, n, d):
    return _full_of(_dyadic(_spread(rng) * rng.normal(size=(n, 1, d))), exact=True)


def _deficient_full(rng, n, d):
    """Ranks of 0 to d - 1 in one batch, exact."""
    factors = _spread(rng) * rng.normal(size=(n, max(d - 1, 1), d))
    factors *= np.arange(max(d - 1, 1))[None, :, None] < rng.integers(0, d, n)[:, None, None]
    factors[0, 0] = 1
    return _full_of(_dyadic(factors), exact=True)


def _mixed_full(rng, n, d):
    """Some examples certain, the others of full or deficient rank."""
    factors = _spread(rng) * rng.normal(size=(n, int(rng.integers(1, d + 1)), d))
    factors[rng.random(n) < rng.uniform(0.1, 0.9)] = 0
    factors[0, 0] = 1
    return _full_of(_dyadic(factors), exact=True)


COVARIANCES = {
    "certain": _certain,
    "isotropic": _isotropic,
    "diagonal": _diagonal,
    "mixed": _mixed,
    "low_rank": _low_rank,
    "low_rank_diagonal": _low_rank_diagonal,
    "ragged": _ragged,
    "full": _full,
    "rank_1_full": _rank_1_full,
    "rank_1_exact": _rank_1_exact,
    "deficient_full": _deficient_full,
    "mixed_full": _mixed_full,
}
UNCERTAIN = tuple(COVARIANCES)[1:]


def _problem(rng, covariances, *, rare=False, wide=False, extreme=False, shift=0, scale=None):
    """Return a Case of those covariances, with all that can be varied besides them varied."""
    n, d = _size(rng)
    if wide:
        n, d = int(rng.integers(4, 13)), int(rng.integers(13, 41))
    y = _labels(rng, n, rare)
    X = _means(rng, n, d, y, rng.choice([0, 0, 0.5, 2.0]))
    fit, parts = COVARIANCES[covariances](rng, n, d)
    if rng.random() < 0.1:  # repeated means, also of the other class
        X = X[rng.integers(0, n, n)]
    if rng.random() < 0.15:
        X = np.round(2 * X) / 2
    if shift:
        X = np.ldexp(np.round(np.ldexp(X, 6)), -6) + 2.0**shift
    if scale is not None:
        X, fit, parts = _scaled(rng, X, fit, parts, scale)
    weights = None
    if rng.random() < 0.2:
        weights = rng.uniform(0.01, 3, n)
        weights[rng.random(n) < 0.1] = 0
        weights[[np.argmax(y), np.argmin(y)]] = 1
        fit["sample_weight"] = weights
    C = float(10.0 ** (rng.uniform(-8, 8) if extreme else rng.uniform(-2, 4)))
    parameters = {"C": C}
    if not shift and rng.random() < 0.1:
        parameters["fit_intercept"] = False
    problem = Problem(
        X, y, C, weights=weights, fit_intercept=parameters.get("fit_intercept", True), **parts
    )
    return Case("", X, y, problem, parameters, fit)


def _scaled(rng, X, fit, parts, per_feature):
    """Change the units of the features by powers of two between 1e-8 and 1e8: exactly."""
    d = X.shape[1]
    unit = np.exp2(rng.integers(-26, 27, d if per_feature else 1)) * np.ones(d)
    parts = dict(parts)
    if "F" in parts:
        parts["F"] = parts["F"] * unit
    if "V" in parts:
        parts["V"] = parts["V"] * unit**2
    cov = fit.get("X_cov")
    if "X_std" in fit:
        fit = {"X_std": fit["X_std"] * unit}
    elif isinstance(cov, np.ndarray) and cov.ndim == 3:
        fit = {"X_cov": cov * np.multiply.outer(unit, unit)}
    elif cov is not None and "F" in parts:
        factors = np.ascontiguousarray(parts["F"].transpose(0, 2, 1))
        fit = {"X_cov": Covariances.low_rank(factors, parts.get("V"))}
    elif cov is not None:
        variances = np.asarray(parts["V"], np.float64)
        fit, parts["V"] = {"X_cov": Covariances.diagonal(variances)}, variances
    return X * unit, fit, parts


def _bags(rng, storage):
    n, d = int(rng.integers(4, 31)), int(rng.integers(1, 7))
    y = _labels(rng, n)
    centres = _means(rng, n, d, y, rng.choice([0, 0.5, 2.0]))
    spread = _spread(rng)
    bags = [m + spread * rng.normal(size=(int(rng.integers(2, 6)), d)) for m in centres]
    X = from_samples(bags, kind=storage, of="observations")
    C = float(10.0 ** rng.uniform(-2, 4))
    size = max(map(len, bags))
    factors = np.zeros((n, size, d))
    for row, bag in zip(factors, bags, strict=True):
        row[: len(bag)] = (bag - bag.mean(axis=0)) / np.sqrt(len(bag) - 1)
    parts = {"F": factors, "slack": 16 * d * EPS, "dense": storage == "full"}
    problem = Problem(np.asarray(X.mean, np.float64), y, C, **parts)
    return Case("", X, y, problem, {"C": C})


def _rare_noisy(rng):
    """One class of few, large errors, some examples certain: the minimum is often at w = 0."""
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 8))
    y = (np.arange(n) < int(rng.integers(1, max(2, n // 3)))).astype(int)
    X = rng.normal(size=(n, d))
    std = np.full((n, d), float(rng.choice([1.0, 2.0, 3.0])))
    std[rng.random(n) < rng.choice([0, 0.3, 0.6])] = 0
    C = float(rng.choice([1.0, 100.0, 1e4]))
    problem = Problem(X, y, C, V=std.astype(LD) ** 2)
    return Case("", X, y, problem, {"C": C}, {"X_std": std})


def _any(rng):
    return str(rng.choice(UNCERTAIN))


KINDS = {
    **{name: lambda rng, name=name: _problem(rng, name) for name in COVARIANCES},
    "bags_full": lambda rng: _bags(rng, "full"),
    "bags_low_rank": lambda rng: _bags(rng, "low_rank"),
    "rare": lambda rng: _problem(rng, str(rng.choice(tuple(COVARIANCES))), rare=True),
    "rare_noisy": _rare_noisy,
    "wide": lambda rng: _problem(rng, str(rng.choice(tuple(COVARIANCES))), wide=True),
    "offset_certain": lambda rng: _problem(rng, "certain", shift=int(rng.integers(10, 31))),
    "offset": lambda rng: _problem(rng, _any(rng), shift=int(rng.integers(10, 31))),
    "units_certain": lambda rng: _problem(rng, "certain", scale=rng.random() < 0.5),
    "units": lambda rng: _problem(rng, _any(rng), scale=rng.random() < 0.5),
    "any_C_certain": lambda rng: _problem(rng, "certain", extreme=True),
    "any_C": lambda rng: _problem(rng, _any(rng), extreme=True),
    "extreme": lambda rng: _problem(
        rng, str(rng.choice(tuple(COVARIANCES))), extreme=True, scale=rng.random() < 0.5
    ),
}


def make(kind, seed):
    """Return the Case of that kind and seed; the same one everywhere."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    case = KINDS[kind](rng)
    case.name = f"{kind}/{seed}"
    return case
