"""GaussianMixtures: examples that are mixtures of Gaussians, for expected kernels and losses.

In:  the components of all mixtures in order, their weights, and how many each mixture has.
Out: one object that scikit-learn can index, split and pickle, and that the core views in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np

from halosvm import _core
from halosvm.checks import reading
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians, as_gaussians, dense_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from halosvm.checks.frames import FeatureNames, Labels
    from halosvm.checks.units import FeatureUnits

    Array = NDArray[np.float64]


class GaussianMixtures(arrays.Frozen):
    r"""Uncertain examples of any shape: each is a mixture of Gaussians.

    Example i has the density :math:`\sum_a \pi_a N(\mu_a, \Sigma_a)` over its own components.
    Expected kernels take such examples like Gaussians, with
    :math:`k(P, Q) = \sum_{ab} \pi_a \pi_b k(P_a, Q_b)`; expected losses are the sums
    :math:`\sum_a \pi_a L(P_a)`.

    Parameters
    ----------
    components : Gaussians or array-like of shape (n_components_total, n_features)
        The components of the first mixture, then those of the second, and so on; an array holds
        certain points, which make a mixture a bag of points. Their arrays are used in place.
    weights : array-like of shape (n_components_total,)
        Probability of each component within its mixture, >= 0; of each mixture they sum to 1 up to
        rounding, 1e-6, and are divided by their sum.
    n_components : int or array-like of shape (n_samples,)
        Number of components of each mixture, at least 1; one number is for all.

    Attributes
    ----------
    components : Gaussians
        All components, in order.
    weights : ndarray of float64 of shape (n_components_total,)
        Their weights, read-only.
    offsets : ndarray of int64 of shape (n_samples + 1,)
        Mixture i has the components ``offsets[i]`` to ``offsets[i + 1] - 1``.
    feature_names, feature_units
        Those of the components.
    shape, ndim, dtype
        ``(n_samples, n_features)``, 2, and the type of the components' means.

    Raises
    ------
    ValueError
        For numbers of components that do not agree, negative weights, and weights whose sum is not
        1, with the row or the mixture and the value; and for what `Gaussians` refuses.
    TypeError
        For arrays that do not hold numbers of the right type.

    Notes
    -----
    ``X[rows]`` with a slice, an index array or a mask is GaussianMixtures; with an integer it is
    the pair ``(weights, components)`` of that example.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, GaussianMixtures, expected_kernel
    >>> components = Gaussians(np.array([[0.0], [2.0], [1.0]]), std=np.array([[0.5], [0.5], [0.0]]))
    >>> X = GaussianMixtures(components, weights=[0.5, 0.5, 1.0], n_components=[2, 1])
    >>> X
    GaussianMixtures(n_samples=2, n_features=1, n_components=1 to 2, covariances='diagonal')
    >>> expected_kernel(X, gamma=0.5).round(3)
    array([[0.516, 0.6  ],
           [0.6  , 1.   ]])
    """

    __slots__ = _state = ("components", "weights", "offsets")

    components: Gaussians
    weights: Array
    offsets: NDArray[np.int64]
    _view: _core.Mixtures | None

    ndim = 2

    def __init__(
        self,
        components: Gaussians | ArrayLike,
        weights: ArrayLike,
        n_components: int | ArrayLike,
    ) -> None:
        if not isinstance(components, Gaussians):
            components = Gaussians(components)
        components = dense_alone(components)
        components.require_complete("components")
        offsets = _read_offsets(n_components, len(components))
        values = reading.as_float_array(weights, "weights", len(components)).astype(np.float64)
        if len(values):
            _core.Mixtures(components.core_view(), offsets, values)  # checks the weights
            values /= np.repeat(np.add.reduceat(values, offsets[:-1]), np.diff(offsets))
        self.__setstate__((components, values, offsets))

    @classmethod
    def _of(cls, components: Gaussians, weights: Array, offsets: NDArray[np.int64]) -> Self:
        """Assemble mixtures of parts that are known to be valid."""
        mixtures = cls.__new__(cls)
        mixtures.__setstate__((components, weights, offsets))
        return mixtures

    @classmethod
    def from_sklearn(cls, models: Sequence[Any]) -> Self:
        """Make a mixture of each fitted scikit-learn mixture model.

        Parameters
        ----------
        models : sequence of GaussianMixture or BayesianGaussianMixture
            One for each example, with any covariance_type: spherical ones become isotropic, diag
            diagonal, full and tied ones full covariances; of several types, the smallest kind that
            holds all.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.mixture import GaussianMixture
        >>> bags = np.random.default_rng(0).normal(size=(3, 100, 2))
        >>> GaussianMixtures.from_sklearn([GaussianMixture(2).fit(bag) for bag in bags]).shape
        (3, 2)
        """
        if not isinstance(models, Iterable):
            raise TypeError(
                f"models must be a sequence, one model for each example, got {models!r}"
            )
        fitted = list(models)
        if not fitted:
            raise ValueError("models is empty; at least one model is needed")
        for i, model in enumerate(fitted):
            if not hasattr(model, "weights_") or not hasattr(model, "covariance_type"):
                raise TypeError(f"models[{i}] is not a fitted mixture model, but {model!r}")
            if len(model.means_[0]) != (d := len(fitted[0].means_[0])):
                raise ValueError(
                    f"models[{i}] has {len(model.means_[0])} features, models[0] has {d}"
                )
        components = Gaussians(
            np.concatenate([model.means_ for model in fitted]),
            cov=Covariances.concatenate(map(_covariances_of, fitted)),
        )
        weights = np.concatenate([model.weights_ for model in fitted])
        return cls(components, weights, [len(model.weights_) for model in fitted])

    @classmethod
    def concatenate(cls, parts: Iterable[GaussianMixtures]) -> Self:
        """Join mixtures of the same features, in order, as `Gaussians.concatenate` does.

        Parameters
        ----------
        parts : iterable of GaussianMixtures
            At least one.
        """
        batches = list(parts)
        for i, part in enumerate(batches):
            if not isinstance(part, GaussianMixtures):
                raise TypeError(f"parts[{i}] is {type(part).__name__}, expected GaussianMixtures")
        components = Gaussians.concatenate(part.components for part in batches)
        weights = np.concatenate([part.weights for part in batches])
        counts = np.concatenate([np.diff(part.offsets) for part in batches])
        return cls._of(components, weights, arrays.cumulated(counts))

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_features)``."""
        return len(self), self.components.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the components' means."""
        return self.components.dtype

    @property
    def feature_names(self) -> FeatureNames | None:
        """Those of the components."""
        return self.components.feature_names

    @property
    def feature_units(self) -> FeatureUnits:
        """Those of the components."""
        return self.components.feature_units

    def in_units(self, feature_units: FeatureUnits, argument: str, other: str) -> Self:
        """Return these mixtures in other units, as `Gaussians.in_units` does."""
        components = self.components.in_units(feature_units, argument, other)
        return self._of(components, self.weights, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> Any:
        rows = arrays.select_rows(key, len(self))
        if isinstance(rows, int):
            own = slice(*self.offsets[rows : rows + 2])
            return self.weights[own], self.components[own]
        chosen: arrays.Rows
        if isinstance(rows, slice):
            offsets = self.offsets[rows.start : rows.stop + 1]
            chosen, offsets = slice(offsets[0], offsets[-1]), offsets - offsets[0]
        else:
            counts = np.diff(self.offsets)[rows]
            offsets = arrays.cumulated(counts)
            shifts = np.repeat(self.offsets[rows] - offsets[:-1], counts)
            chosen = np.arange(offsets[-1]) + shifts
        return self._of(self.components[chosen], self.weights[chosen], offsets)

    def moments(self) -> tuple[Array, Array]:
        """Return the means, (n_samples, n_features), and the traces of the covariances.

        The covariance of a mixture is that within its components plus that of their means.
        """
        first = self.components.mean[self.offsets[:-1]].astype(np.float64)
        counts = np.diff(self.offsets)
        from_first = self.components.mean - np.repeat(first, counts, axis=0)  # exact if all equal
        shifts = self.sums(self.weights[:, np.newaxis] * from_first)
        means, apart = first + shifts, from_first - np.repeat(shifts, counts, axis=0)
        traces = self.components.covariances.trace() + np.einsum("nd,nd->n", apart, apart)
        return means, self.sums(self.weights * traces)

    def sums(self, values: Array) -> Array:
        """Return the sums of values of components over those of each mixture."""
        if len(self) == 0:
            return values
        return np.asarray(np.add.reduceat(values, self.offsets[:-1], axis=0))

    def variances_of(self, means: Array, variances: Array) -> Array:
        """Return variances of a value of which those and means (n_components_total, k) are known.

        They are within components and between their means.
        """
        apart = means - np.repeat(self.means_of(means), np.diff(self.offsets), axis=0)
        return self.means_of(variances + np.square(apart))

    def means_of(self, values: Array) -> Array:
        """Return the means of values of components (n_components_total, ...), by their weights."""
        return self.sums((values.T * self.weights).T)

    def truncate(self, p: float, *, mean: str = "keep", n_threads: int | None = None) -> Self:
        """Truncate the covariance of each component, as `Gaussians.truncate` does.

        Parameters
        ----------
        p, mean, n_threads
            As there.
        """
        return self.replaced(components=self.components.truncate(p, mean=mean, n_threads=n_threads))

    def with_spreads_times(self, factors: Array, argument: str) -> Self:
        """Return mixtures that are wider by factors >= 0 around their means, () or (n_samples,).

        As the covariances of components, the distances of their means are part of the error.
        """
        if (factors == 1.0).all():
            return self
        counts = np.diff(self.offsets)
        of_each = np.repeat(np.broadcast_to(factors, len(self)), counts)
        centres = np.repeat(self.moments()[0], counts, axis=0)
        means = centres + of_each[:, np.newaxis] * (self.components.mean - centres)
        around = self.components.replaced(mean=means)
        return self.replaced(components=around.with_spreads_times(of_each, argument))

    def core_view(self) -> _core.Mixtures:
        """Return the core's view of the stored arrays, made at the first call."""
        view = self._view
        if view is None:
            view = _core.Mixtures(self.components.core_view(), self.offsets, self.weights)
            object.__setattr__(self, "_view", view)
        return view

    def __repr__(self) -> str:
        counts = np.diff(self.offsets) if len(self) else np.zeros(1, np.int64)
        low, high = counts.min(), counts.max()
        return (
            f"GaussianMixtures(n_samples={len(self)}, n_features={self.shape[1]}, n_components="
            f"{low if low == high else f'{low} to {high}'}, "
            f"covariances={self.components.covariances.kind!r})"
        )

    def __array__(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "GaussianMixtures are not one array; expected_kernel, UncertainKernelSVC, UncertainSVC "
            "and UncertainSVR take them, and .moments() has the mean of each"
        )


Examples: TypeAlias = Gaussians | GaussianMixtures


def as_examples(
    X: Examples | ArrayLike,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
    labels: Labels | None = None,
    **takes: bool,
) -> Examples:
    """Read examples as `as_gaussians` does, but let mixtures pass."""
    if not isinstance(X, GaussianMixtures):
        return as_gaussians(X, X_std=X_std, X_cov=X_cov, labels=labels, **takes)
    for name, value in (("X_std", X_std), ("X_cov", X_cov)):
        if value is not None:
            raise ValueError(f"{name} is given, but X is GaussianMixtures, which have covariances")
    return X


def moments_of(X: Examples) -> tuple[NDArray[Any], Array]:
    """Return the mean and the trace of the covariance of each example."""
    if isinstance(X, GaussianMixtures):
        return X.moments()
    return X.mean, X.covariances.trace()


def components_of(
    X: Examples, weights: Array | None
) -> tuple[Gaussians, Array | None, NDArray[np.intp] | slice]:
    """Return examples as Gaussians, their weights, and the row of X that each belongs to.

    The expectation of a mixture is a sum over its components: a component is an example
    whose weight is its share of that of the mixture. Those without a share are left out.
    """
    if isinstance(X, Gaussians):
        return X, weights, slice(None)
    used = np.flatnonzero(X.weights)
    rows = np.repeat(np.arange(len(X)), np.diff(X.offsets))[used]
    shares = X.weights[used]
    return X.components[used], shares if weights is None else shares * weights[rows], rows


def _read_offsets(n_components: Any, total: int) -> NDArray[np.int64]:
    reading.refuse_masked(n_components, "n_components")
    counts = np.asarray(n_components)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"n_components must be integers, got {n_components!r}")
    if counts.ndim == 0:
        each = reading.as_count(n_components, "n_components", 1)
        if total % each:
            raise ValueError(f"components has {total} rows, which {each} does not divide")
        counts = np.full(total // each, each)
    reading.require_shape(counts, "n_components", "n_samples")
    reading.refuse_where(counts < 1, "n_components", "it must be at least 1", counts)
    beyond = counts > total  # their sum could wrap
    reading.refuse_where(beyond, "n_components", f"components has {total} rows", counts)
    offsets = arrays.cumulated(counts)
    if offsets[-1] != total:
        raise ValueError(f"n_components sum to {offsets[-1]}, components has {total} rows")
    return offsets


def _covariances_of(model: Any) -> Covariances:
    """Return the covariances of the components of a scikit-learn mixture model."""
    n, d = model.means_.shape
    if model.covariance_type == "spherical":
        return Covariances.isotropic(model.covariances_, d)
    if model.covariance_type == "diag":
        return Covariances.diagonal(model.covariances_)
    return Covariances.full(np.array(np.broadcast_to(model.covariances_, (n, d, d))))
