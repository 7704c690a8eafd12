"""What maps into features of a kernel share: examples in, Gaussians of their features out.

In:  Gaussians, mixtures of them, or arrays with errors; how the features' covariances are told.
Out: Gaussians whose means are the expected features, or the array of these means.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import GaussianEstimator
from halosvm.checks.gaussians_out import GaussiansOut, has_errors
from halosvm.checks.parameters import require_choice, require_count, require_number, thread_count
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures
from halosvm.kernel.expected_kernel import median_gamma, resolve_gamma

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]
    FloatArray = NDArray[np.floating[Any]]

COVARIANCES = ("low_rank", "diagonal", "full", "bound")
_OUTPUTS = ("auto", "gaussian", "mean")


class FeatureMap(ClassNamePrefixFeaturesOutMixin, GaussiansOut, GaussianEstimator):  # type: ignore[misc]
    """Base class of `UncertainFourierFeatures` and `UncertainNystroem`."""

    _example_types = (Gaussians, GaussianMixtures)

    n_components: int
    gamma: ArrayLike | str
    covariance: str
    output: str
    radius: float
    norm: float
    dtype: DTypeLike
    random_state: int | np.random.RandomState | None
    n_threads: int | None
    n_features_in_: int
    gamma_: Array
    _n_features_out: int

    @abstractmethod
    def _fit_to(self, X: Examples, rng: np.random.RandomState) -> None:
        """Set the fitted attributes, after `gamma_`."""

    @abstractmethod
    def _means(self, X: Gaussians) -> FloatArray:
        """Return the expected features, (n_samples, n_components)."""

    @abstractmethod
    def _write(self, X: Gaussians, **out: Any) -> None:
        """Write `means`, and of `variances`, `factors` and `matrices` those that are given."""

    @abstractmethod
    def _bounds(self, X: Gaussians) -> Covariances:
        """Return covariances of which |R'w| bounds the change of w'phi within a ball of inputs."""

    @abstractmethod
    def _check_own_parameters(self) -> None:
        """Raise for parameters of one map alone."""

    _has_rest: ClassVar[bool] = True  # whether low_rank has a diagonal beside the factors

    def fit(
        self,
        X: Examples | ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : Gaussians, GaussianMixtures or array-like of shape (n_samples, n_features)
            Examples, or only their means.
        y : ignored
            There for pipelines.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations, for an `X` that holds only means.
        X_cov : Covariances or array-like, optional
            Covariances; an array is read by its dimensions, as by `Gaussians`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, errors or parameters that make no sense.
        """
        with self._all_or_nothing():
            self._check_parameters()
            data = self._read_new_examples(X, X_std, X_cov)
            rng = check_random_state(self.random_state)
            if isinstance(self.gamma, str) and self.gamma == "median":
                self.gamma_ = np.array([median_gamma(data, random_state=rng)])
            elif isinstance(self.gamma, str) and self.gamma != "scale":
                raise ValueError(
                    f"gamma must be 'scale', 'median', a number or an array, got {self.gamma!r}"
                )
            else:
                self.gamma_ = resolve_gamma(self.gamma, data, "rbf")
            self._fit_to(data, rng)
        return self

    def transform(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Any:
        """Return the features of examples; each row by itself, so that slices can be mapped.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without errors are certain, and so are their features.

        Returns
        -------
        Gaussians or ndarray of shape (n_samples, n_components)
            As `output` and `covariance` say.

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        self._check_parameters()
        bound = self.covariance == "bound"  # whose means know of no errors
        data = (self._read_data if bound else self._read_with_errors)(X, X_std, X_cov)
        alone = self.output == "mean"
        if self.output == "auto":
            alone = not has_errors(X, X_std, X_cov)
        if bound:
            if isinstance(data, GaussianMixtures):
                raise TypeError("X is GaussianMixtures; covariance='bound' is for sets of one ball")
            means = self._means(Gaussians(data.mean))
            if alone:
                return means
            covariances = self._bounds(data)
        elif alone:
            if not isinstance(data, GaussianMixtures):
                return self._means(data)
            means = data.weights[:, np.newaxis] * self._means(data.components)
            return data.sums(means).astype(self.dtype, copy=False)
        elif isinstance(data, GaussianMixtures):
            components = self._moments(data.components)
            means, covariances = _joined(data, *components, self.covariance)
        else:
            means, covariances = self._moments(data)
        if isinstance(data, GaussianMixtures):
            return Gaussians(means, cov=covariances)
        return data.mapped_to(means, covariances)

    def _moments(self, X: Gaussians) -> tuple[FloatArray, Covariances]:
        """Return expectations and covariances of the features of Gaussians."""
        shape = len(X), self._n_features_out
        if X.covariances.certain:
            return self._means(X), Covariances.zero(*shape)
        means = np.empty(shape, self.dtype)
        if self.covariance == "full":
            matrices = np.empty((*shape, shape[1]), self.dtype)
            self._write(X, means=means, matrices=matrices)
            return means, Covariances.full(matrices)
        variances = np.empty(shape, self.dtype)
        if self.covariance == "diagonal":
            self._write(X, means=means, variances=variances)
            return means, Covariances.diagonal(variances)
        factors = np.empty((*shape, _core.latent_rank(X.core_view())), self.dtype)
        if not self._has_rest:
            self._write(X, means=means, factors=factors)
            return means, Covariances.low_rank(factors)
        self._write(X, means=means, variances=variances, factors=factors)
        return means, Covariances.low_rank(factors, variances)

    def _check_parameters(self) -> None:
        require_count(self.n_components, "n_components")
        require_choice(self.covariance, "covariance", COVARIANCES)
        require_choice(self.output, "output", _OUTPUTS)
        require_number(self.radius, "radius", or_zero=True)
        require_choice(self.norm, "norm", (1, 2, np.inf))
        try:
            known = np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:
            known = False
        if not known:
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        thread_count(self.n_threads)
        self._check_own_parameters()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _joined(
    X: GaussianMixtures, means: FloatArray, covariances: Covariances, form: str
) -> tuple[FloatArray, Covariances]:
    """Return means and covariances of mixtures from those of their components, in the same form."""
    dtype, weights = means.dtype, X.weights[:, np.newaxis]
    joint = X.sums(weights * means)
    apart = means - np.repeat(joint, np.diff(X.offsets), axis=0)
    joint = joint.astype(dtype)
    if form == "diagonal":
        variances = X.sums(weights * (covariances.variances() + np.square(apart)))
        return joint, Covariances.diagonal(variances.astype(dtype))
    if form == "full":
        outer = apart[:, :, np.newaxis] * apart[:, np.newaxis, :]
        matrices = X.sums(weights[:, :, np.newaxis] * (covariances.to_full() + outer))
        return joint, Covariances.full(matrices.astype(dtype))
    factors = np.empty((*means.shape, 0)) if covariances.values is None else covariances.values
    factors = np.concatenate([factors, apart[:, :, np.newaxis]], axis=2)
    factors = (np.sqrt(weights)[:, :, np.newaxis] * factors).astype(dtype)
    stacked = [
        factors[begin:end].transpose(1, 0, 2).reshape(means.shape[1], -1)
        for begin, end in zip(X.offsets[:-1], X.offsets[1:], strict=True)
    ]
    rest = covariances.diagonal_values
    if rest is not None:
        rest = X.sums(weights * rest).astype(dtype)
    return joint, Covariances.low_rank(stacked, rest)
