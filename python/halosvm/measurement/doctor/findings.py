"""What errors are like: measurements in; their sizes, and what they tell of classes, out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

_PERMUTATIONS = 999
_FOLDS = 5
_RESOLVED = 1e-8


class Sizes(NamedTuple):
    """How large the errors of each feature are.

    Attributes
    ----------
    shares : ndarray of shape (n_features,)
        Mean variance of the errors over the variance of the measured values; NaN where that is 0.
    share : float
        Their mean.
    low, high : ndarray of shape (n_features,)
        What a tenth of the standard deviations of errors stays below, and a tenth exceeds, in units
        of the standard deviation of the values; NaN where no value is.
    missing : ndarray of shape (n_features,)
        Shares of values that are missing.
    """

    shares: Array
    share: float
    low: Array
    high: Array
    missing: Array

    @property
    def unevenness(self) -> Array:
        """The ratio of both: 1 where errors are equal, infinite beside values without error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.high / self.low


class News(NamedTuple):
    """Whether errors, and what is missing, tell two or more kinds of rows apart.

    Attributes
    ----------
    p_value : float
        Probability of so large a difference if errors are dealt out to the rows at random.
    log_loss : float
        Left-out log loss of a logistic regression on the logarithms of errors.
    log_loss_of_shares : float
        The same of the shares of the kinds alone.
    """

    p_value: float
    log_loss: float
    log_loss_of_shares: float


class NewRows(NamedTuple):
    """How other rows compare with those of training.

    Attributes
    ----------
    n_rows : int
    missing : float
        Share of values that are missing.
    outside : float
        Share of the rows with an error outside of the range of training.
    outside_by_chance : float
        At most this share is expected of rows that are like those of training.
    never_missing : tuple of int
        Features of which values are missing here alone.
    p_value : float
        As of `News`, of errors of the other rows against those of training; NaN where no error or
        missing value differs from another.
    """

    n_rows: int
    missing: float
    outside: float
    outside_by_chance: float
    never_missing: tuple[int, ...]
    p_value: float


def deviations(X: Gaussians) -> Array:
    """Return the standard deviations of errors, NaN where a value is missing."""
    variances = np.asarray(X.covariances.variances(), np.float64)
    return np.where(np.isnan(X.mean), np.nan, np.sqrt(variances))


def sizes_of(X: Gaussians, weights: Array) -> Sizes:
    """Compare errors with the spread of values, feature by feature."""
    std, x = deviations(X), np.asarray(X.mean, np.float64)
    there = ~np.isnan(x) & (weights > 0)[:, np.newaxis]
    c = np.where(there, weights[:, np.newaxis], 0.0)
    total = np.maximum(c.sum(axis=0), np.finfo(float).tiny)
    mean = (c * np.where(there, x, 0.0)).sum(axis=0) / total
    variance = (c * np.where(there, x - mean, 0.0) ** 2).sum(axis=0) / total
    noise = (c * np.where(there, std, 0.0) ** 2).sum(axis=0) / total
    low, high = np.full((2, x.shape[1]), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(variance > 0, noise / variance, np.nan)
        for j in np.flatnonzero(there.any(axis=0)):
            ends = np.quantile(std[there[:, j], j], [0.1, 0.9])
            low[j], high[j] = ends / np.sqrt(variance[j])
    known = shares[~np.isnan(shares)]
    missing = np.isnan(x).mean(axis=0)
    return Sizes(shares, float(known.mean()) if known.size else np.nan, low, high, missing)


def news_of(
    std: Array, kinds: NDArray[np.intp], rng: np.random.RandomState, *, judged: bool = True
) -> News | None:
    """Test whether errors tell kinds of rows apart; None where all errors are alike.

    The statistic is the part of the variance of the kinds that logarithms of errors, their squares
    and what is missing explain (Pillai's trace). It is compared with that of permuted kinds, which
    keeps its level whatever the errors are like.
    """
    features = _logarithms(std)
    if not features.shape[1]:
        return None
    n = len(std)
    of_kinds = np.eye(kinds.max() + 1)[kinds]
    shares = of_kinds.mean(axis=0)
    of_kinds = (of_kinds - shares) / np.sqrt(np.maximum(shares, 1.0 / n))
    both = np.hstack([features, features**2 - (features**2).mean(axis=0)])
    basis = _orthonormal(both if 4 * both.shape[1] <= n else features)

    def explained(rows: NDArray[np.intp]) -> float:
        return float(np.sum((basis.T @ of_kinds[rows]) ** 2))

    own = explained(np.arange(n)) * (1.0 - _RESOLVED)
    as_large = sum(explained(rng.permutation(n)) >= own for _ in range(_PERMUTATIONS))
    p_value = (1.0 + as_large) / (1.0 + _PERMUTATIONS)
    folds = min(_FOLDS, int(np.bincount(kinds).min()))
    if not judged or folds < 2:
        return News(p_value, np.nan, np.nan)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=rng)
    model = LogisticRegression(max_iter=1000)
    found = cross_val_predict(model, features, kinds, cv=splitter, method="predict_proba")
    codes = np.arange(len(shares))
    alone = np.tile(shares, (n, 1))
    return News(
        p_value,
        float(log_loss(kinds, found, labels=codes)),
        float(log_loss(kinds, alone, labels=codes)),
    )


def compared(X: Gaussians, new: Gaussians, rng: np.random.RandomState) -> NewRows:
    """Compare the errors and missing values of other rows with those of training."""
    ours, theirs = deviations(X), deviations(new)
    known = ~np.isnan(ours).all(axis=0)
    low = np.where(known, np.nanmin(ours, axis=0, initial=np.inf), -np.inf)
    high = np.where(known, np.nanmax(ours, axis=0, initial=-np.inf), np.inf)
    room = 1.0 + _RESOLVED
    outside = (theirs * room < low) | (theirs > high * room)
    differ = high > low * room
    chance = 1.0 - float(np.prod(1.0 - 2.0 * differ / (1.0 + (~np.isnan(ours)).sum(axis=0))))
    only_here = np.isnan(theirs).any(axis=0) & ~np.isnan(ours).any(axis=0)
    kinds = np.repeat([0, 1], [len(ours), len(theirs)])
    news = news_of(np.vstack([ours, theirs]), kinds, rng, judged=False)
    return NewRows(
        len(theirs),
        float(np.isnan(theirs).mean()),
        float(outside.any(axis=1).mean()),
        chance,
        tuple(np.flatnonzero(only_here).tolist()),
        np.nan if news is None else news.p_value,
    )


def _logarithms(std: Array) -> Array:
    """Return log errors and indicators of what is missing or certain, standardised, if they vary.

    Where an error is 0 or missing, its logarithm is the mean of the others.
    """
    missing, certain = np.isnan(std), std == 0
    read = ~missing & ~certain
    logs = np.log(np.where(read, std, 1.0))
    counts = np.maximum(read.sum(axis=0), 1)
    mean = np.where(read, logs, 0.0).sum(axis=0) / counts
    columns = np.hstack([np.where(read, logs - mean, 0.0), missing, certain]).astype(np.float64)
    columns -= columns.mean(axis=0)
    size = columns.std(axis=0)
    varies = size > _RESOLVED * max(1.0, float(np.abs(mean).max(initial=0.0)))
    standardised: Array = columns[:, varies] / size[varies]
    return standardised


def _orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis of the columns."""
    U, values, _ = np.linalg.svd(columns, full_matrices=False)
    basis: Array = U[:, values > _RESOLVED * values.max(initial=0.0)]
    return basis
