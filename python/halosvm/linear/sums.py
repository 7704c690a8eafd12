"""Examples that come in chunks: what a fit must know of all of them, from a first pass over them.

In:  chunks one after another, on this machine or on others, as tuples (X, y[, sample_weight]).
Out: checked examples of each chunk, and a summary of all: labels, weights, moments.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from halosvm.checks.estimator import read_targets
from halosvm.checks.reading import as_float_array, require_finite
from halosvm.checks.targets import encode_labels, join_labels, read_labels, weight_of_each
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.linear.error_sizes import with_sizes
from halosvm.linear.linear_fit import Settings, make_objective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from halosvm import _core
    from halosvm.checks.frames import FeatureNames
    from halosvm.checks.units import FeatureUnits

    Array = NDArray[np.float64]


class Source(Protocol):
    """Items in a fixed order, to which functions go that can be pickled."""

    @property
    def n_threads(self) -> int | None:
        """How many threads work on an item unless the estimator says so; None for all."""
        ...

    def map(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Return function(item, *arguments) of each item, in their order."""
        ...

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[list[Any]], Any], *arguments: Any
    ) -> Any:
        """Return what `combine` makes of lists of the same, in their order."""
        ...

    def then(self, function: Callable[..., Any], *arguments: Any) -> Source:
        """Return the source of what the function makes of each item."""
        ...


class Rows(NamedTuple):
    """A chunk after its checks: examples with the errors a fit is to see, targets and weights."""

    data: Gaussians
    y: NDArray[Any]
    weights: Array | None


@dataclass(frozen=True)
class Reader:
    """Reads chunks as an estimator with these parameters reads its arguments."""

    values: bool  # whether targets are numbers; else they are labels
    error_scale: float
    radius: float = 1.0
    subspace: float | None = None
    subspace_mean: str = "keep"
    n_threads: int | None = None

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Self:
        """Return the reader for an estimator whose parameters are checked, or others in place."""
        names = [one.name for one in dataclasses.fields(cls) if hasattr(estimator, one.name)]
        return cls(**({name: getattr(estimator, name) for name in names} | others))

    def __call__(self, chunk: Any) -> Rows:
        """Return what a tuple (X, y[, sample_weight]) holds."""
        if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
            what = f"a tuple of {len(chunk)}" if isinstance(chunk, tuple) else type(chunk).__name__
            raise TypeError(f"a chunk is a tuple (X, y) or (X, y, sample_weight), got {what}")
        X, y, sample_weight = (*chunk, None)[:3]
        y, sample_weight = read_targets(X, y, sample_weight, values=self.values)
        data = as_gaussians(X, sparse=True)
        if self.values:
            y = as_float_array(y, "y", len(data)).astype(np.float64, copy=False)
            require_finite(y, "y")
        else:
            y = read_labels(y, len(data)) if len(data) else np.asarray(y)
        weights = (
            None
            if sample_weight is None
            else weight_of_each(sample_weight, len(data), is_part=True)
        )
        if len(data):
            if self.subspace is not None:
                p, mean = float(self.subspace), self.subspace_mean
                data = data.truncate(p, mean=mean, n_threads=self.n_threads)
            data = with_sizes(data, X, self.error_scale, self.radius)
        return Rows(data, y, weights)


@dataclass
class Share:
    """Some of the examples: their weight, and the moments of their features about their mean."""

    weight: float
    mean: Array
    variance: Array
    widest: Array

    def add(self, other: Share, about_mean: bool) -> None:
        """Count further examples; variances are about the mean, or about 0."""
        if not other.weight:
            return
        if not self.weight:
            self.__dict__.update(other.__dict__)
            return
        total = self.weight + other.weight
        share = other.weight / total
        between = other.mean - self.mean
        self.variance = (1.0 - share) * self.variance + share * other.variance
        if about_mean:
            self.variance = self.variance + share * (1.0 - share) * between**2
        self.mean = self.mean + share * between
        if other.widest.size:
            self.widest = (
                np.maximum(self.widest, other.widest) if self.widest.size else other.widest
            )
        self.weight = total


@dataclass
class Summary:
    """What is known of chunks: of each label, or of all values.

    Attributes
    ----------
    shape : (n_samples, n_features)
    feature_names, feature_units
        Those of `Gaussians`.
    certain : bool
        Whether all examples are.
    labels : ndarray
        The labels that occur, sorted; of values a single 0.
    shares : dict of label to Share
    centre, square : float
        Of values: their weighted mean and their mean square about it.
    low, high : float
        The least and the largest of those that have a weight.
    kinked : int
        Rows of the chunks of which many examples are certain.
    """

    shape: tuple[int, int]
    feature_names: FeatureNames | None
    feature_units: FeatureUnits
    certain: bool
    labels: NDArray[Any]
    shares: dict[Any, Share]
    centre: float = 0.0
    square: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    kinked: int = 0
    sizes: list[int] = field(default_factory=list)  # rows of each chunk

    @property
    def weight(self) -> float:
        """That of all examples together."""
        return sum(share.weight for share in self.shares.values())

    @property
    def many_kinks(self) -> bool:
        """Whether many of all examples are certain, a tenth as the core has it."""
        return 10 * self.kinked >= self.shape[0]


def survey(rows: Rows, settings: Settings, values: bool) -> Summary:
    """Return the summary of one chunk."""
    data, y, weights = rows
    labels = np.zeros(1) if values else np.unique(y)
    if not values and len(labels) > 1:
        encode_labels(
            np.repeat(labels, 3)
        )  # its checks; labels that all differ are taken for values
    shares = {}
    c = np.ones(len(data)) if weights is None else weights
    for label in labels.tolist():
        mine = c if values else np.where(y == label, c, 0.0)
        shares[label] = _share_of(data, mine, settings)
    known = data.shape, data.feature_names, data.feature_units, data.covariances.certain
    summary = Summary(*known, labels, shares)
    if len(data) and _objective_of(data, np.ones(len(data)), settings).has_many_kinks():
        summary.kinked = len(data)
    if values and (total := summary.weight):
        summary.centre = float(c @ y / total)
        summary.square = float(c @ (y - summary.centre) ** 2 / total)
        summary.low, summary.high = float(y[c > 0].min()), float(y[c > 0].max())
    return summary


def _objective_of(data: Gaussians, weights: Array, settings: Settings) -> _core.Objective:
    """Return an objective that knows the examples: all of one class."""
    codes = np.zeros(len(data), dtype=np.int16)
    return make_objective(data, codes, 1, weights, 1.0, settings, is_part=True)


def _share_of(data: Gaussians, weights: Array, settings: Settings) -> Share:
    total = float(weights.sum())
    if not total:
        return Share(0.0, np.zeros(0), np.zeros(0), np.zeros(0))
    moments: _core.Moments = _objective_of(data, weights, settings).moments()
    return Share(total, moments.mean, moments.variance, moments.widest)


def summarise(each: Iterator[Summary], fit_intercept: bool) -> Summary:
    """Return the summary of all chunks from those of each, in their order."""
    total: Summary | None = None
    sizes: list[int] = []
    labels: list[NDArray[Any]] = []
    for number, one in enumerate(each):
        sizes.append(one.shape[0])
        if not one.shape[0]:
            continue
        labels.append(one.labels)
        if total is None:
            total = one
            continue
        _require_same_features(number, one, total)
        _require_same_kind(number, labels)
        weight, more = total.weight, one.weight
        if more:
            share = more / (weight + more)
            between = one.centre - total.centre
            total.square += share * (one.square - total.square + (1.0 - share) * between**2)
            total.centre += share * between
        for label, part in one.shares.items():
            if label in total.shares:
                total.shares[label].add(part, about_mean=fit_intercept)
            else:
                total.shares[label] = part
        labels = [np.unique(join_labels(labels, f"y of chunks up to {number}"))]
        total.shape = (total.shape[0] + one.shape[0], total.shape[1])
        total.kinked += one.kinked
        total.certain &= one.certain
        total.low, total.high = min(total.low, one.low), max(total.high, one.high)
    if total is None:
        raise ValueError(f"X has {len(sizes)} chunks and no rows; at least 1 row is needed")
    total.labels = labels[0]
    total.sizes = sizes
    return total


def _require_same_features(number: int, one: Summary, first: Summary) -> None:
    at = f"chunk {number}: X"
    if one.shape[1] != first.shape[1]:
        raise ValueError(
            f"{at} has {one.shape[1]} features, the chunks before have {first.shape[1]}"
        )
    for what, mine, others in (
        ("features named", one.feature_names, first.feature_names),
        ("the units", one.feature_units, first.feature_units),
    ):
        if (None if mine is None else list(mine)) != (None if others is None else list(others)):
            raise ValueError(f"{at} has {what} {mine}, the chunks before have {others}")


def _require_same_kind(number: int, labels: list[NDArray[Any]]) -> None:
    """Raise TypeError where numbers and texts would be made one."""
    kinds = ["numbers" if each.dtype.kind in "biuf" else "other" for each in labels]
    if kinds[0] != kinds[-1]:
        raise TypeError(
            f"chunk {number}: y has labels of dtype {labels[-1].dtype}, the chunks before have "
            f"{labels[0].dtype}"
        )
