"""UncertainStandardScaler: features to mean 0 and standard deviation 1, with their errors.

Examples enter, with errors or without; the same examples in units of each feature's spread leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianEstimator, read_example_weights
from halosvm.checks.gaussians_out import (
    GaussiansOut,
    has_errors,
    in_type_of,
    refuse_mixtures,
    require_representable,
)
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.centring import centred, column_spreads
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.population.measurements import paule_mandel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances

    Array = NDArray[np.float64]

_VARIANCES = ("means", "total", "true")


class UncertainStandardScaler(OneToOneFeatureMixin, GaussiansOut, GaussianEstimator):  # type: ignore[misc]
    r"""Features to mean 0 and standard deviation 1, with the errors in the same units.

    With the mean :math:`\mu_j` and the scale :math:`t_j` of feature j, an example
    :math:`N(x, S)` becomes :math:`N((x - \mu) / t, D S D)`, :math:`D = \mathrm{diag}(1 / t)`. A
    scaler of scikit-learn before an estimator that is given `X_std` or `X_cov` as a keyword scales
    the means alone, and the errors no longer belong to them: nothing can see that from inside the
    estimator. This one takes the errors along.

    Parameters
    ----------
    with_mean : bool, default=True
        Whether to subtract the means.
    with_std : bool, default=True
        Whether to divide by the scales.
    variance : {"means", "total", "true"}, default="means"
        What the square of a scale is. "means": the variance of the means, as `StandardScaler` has
        it. "total": that plus the mean variance of the errors, which is the variance of draws from
        all examples; for examples that are distributions. "true": that of the true values behind
        measurements, with the errors taken off: with weights 1 / (variance + error^2) the squared
        deviations from their mean sum to n - 1 (Paule and Mandel). Where the errors explain all
        of the spread, it is the standard error of what is left, and a warning names the features.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        What is subtracted: weighted means of the features, 0 without `with_mean`. With
        variance="true" each example counts by 1 / (variance + error^2), too.
    scale_ : ndarray of shape (n_features,)
        What is divided by: 1 for features that are constant and certain, and without `with_std`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    Propagate : Takes the errors through transformers of scikit-learn.

    Notes
    -----
    Each kind of covariances is kept; isotropic ones become diagonal unless all scales are equal.
    What has errors, or is Gaussians, becomes Gaussians; an array without errors becomes an array.
    Features that had units are plain numbers after a division by their scale. A sparse array stays
    sparse, which needs ``with_mean=False``.

    References
    ----------
    R. C. Paule and J. Mandel, "Consensus values and weighting factors", Journal of Research of the
    National Bureau of Standards 87 (1982).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, UncertainStandardScaler
    >>> X = Gaussians(np.array([[1.0, 10.0], [3.0, 30.0]]), std=np.array([[0.1, 5.0], [0.2, 0.0]]))
    >>> scaled = UncertainStandardScaler().fit_transform(X)
    >>> scaled.mean
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> np.sqrt(scaled.covariances.variances())
    array([[0.1, 0.5],
           [0.2, 0. ]])
    """

    _takes_sparse = True
    __metadata_request__inverse_transform: ClassVar = {"X_std": True, "X_cov": True}

    def __init__(
        self, *, with_mean: bool = True, with_std: bool = True, variance: str = "means"
    ) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.variance = variance

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Measure means and scales.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples, or only their means.
        y : ignored
            There for pipelines.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the errors.
        X_cov : Covariances or array-like, optional
            Covariances of the errors; an array is read by its dimensions, as by `Gaussians`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples; a weight of 2 equals a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, errors, weights or parameters that make no sense.

        Warns
        -----
        UserWarning
            With variance="true", if the errors of a feature explain all of its spread.
        """
        with self._all_or_nothing():
            if not isinstance(self.variance, str) or self.variance not in _VARIANCES:
                raise ValueError(
                    f"variance must be one of {', '.join(_VARIANCES)}; got {self.variance!r}"
                )
            refuse_mixtures(X)
            data = self._read_new_examples(X, X_std, X_cov)
            self._refuse_to_fill(data)
            weights = read_example_weights(X, sample_weight, len(data))
            if not weights.all():
                data, weights = data[weights > 0], weights[weights > 0]
            means, scales = self._measure(data, weights)
            self.mean_ = means if self.with_mean else np.zeros(len(means))
            self.scale_ = scales if self.with_std else np.ones(len(scales))
        return self

    def _measure(self, data: Gaussians, weights: Array) -> tuple[Array, Array]:
        """Return means and scales as `variance` says, whatever is used of them."""
        if data.is_sparse:
            # sums in the type of the weights, which are float64
            rows = sparse.csr_matrix(data.mean, dtype=weights.dtype)
            means, variances = mean_variance_axis(rows, 0, weights=weights)
            if self.variance == "total":
                variances = variances + _mean_variances(data.covariances, weights)
            return means, np.where(variances > 0, np.sqrt(variances), 1.0)
        spreads = column_spreads(data.mean, weights)
        if self.variance == "true":
            means, spreads = self._true_values(data, weights, spreads)
        else:
            means = centred(data.mean, weights)[0]
        if self.variance == "total" and not data.covariances.certain:
            variances = data.covariances.variances()
            errors = np.sqrt(np.average(variances, axis=0, weights=weights))
            spreads = np.hypot(spreads, errors)
        return means, np.where(spreads > 0, spreads, 1.0)

    def _refuse_to_fill(self, data: Gaussians) -> None:
        if not data.is_sparse:
            return
        if self.with_mean:
            raise ValueError("X is sparse, and would be dense once centred; pass with_mean=False")
        if self.variance == "true":
            raise ValueError("X is sparse, which variance='true' does not take; use 'means'")

    def _true_values(self, data: Gaussians, weights: Array, spreads: Array) -> tuple[Array, Array]:
        errors = data.covariances.variances()
        means, left, unclear = np.empty(len(spreads)), np.empty(len(spreads)), []
        for j, spread in enumerate(spreads):
            if spread == 0 and not errors[:, j].any():
                means[j], left[j] = data.mean[0, j], 0.0
                continue
            # in a unit of its own, where no square can underflow or overflow
            unit = np.hypot(spread, np.sqrt(errors[:, j].min()))
            first = float(data.mean[0, j])
            x = (data.mean[:, j].astype(np.float64) - first) / unit
            error = np.square(np.sqrt(errors[:, j]) / unit)
            mean, variance, resolution = paule_mandel(x, error, weights, tol=1e-12)
            means[j], left[j] = first + unit * mean, unit * np.sqrt(max(variance, resolution))
            if error.any() and variance < resolution:
                unclear.append(j)
        if unclear:
            names = getattr(self, "feature_names_in_", np.arange(len(spreads)))
            which = ", ".join(str(names[j]) for j in unclear[:5])
            more = ", ..." if len(unclear) > 5 else ""
            warn_user(
                f"the errors of {len(unclear)} features ({which}{more}) explain all of their "
                "spread; they are scaled by the standard error of what is left of it. Leave them "
                "out, or use variance='means'",
                UserWarning,
            )
        return means, left

    def transform(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Any:
        """Return examples in units of the scales.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`.

        Returns
        -------
        Gaussians or ndarray of shape (n_samples, n_features)
            An array for an array without errors.
        """
        check_is_fitted(self)
        refuse_mixtures(X)
        data = self._read_data(X, X_std, X_cov)
        self._refuse_to_fill(data)
        with np.errstate(over="ignore"):
            if data.is_sparse:
                means = _columns_divided(data.mean, self.scale_)
            else:
                means = in_type_of((data.mean - self.mean_) / self.scale_, data.mean)
        units = None if self.with_std else data.feature_units
        scaled = self._mapped(data, means, 1.0 / self.scale_, units, "X, scaled,")
        return scaled if has_errors(X, X_std, X_cov) else means

    def inverse_transform(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Any:
        """Return scaled examples in the units that they had before.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as `transform` returns them.

        Returns
        -------
        Gaussians or ndarray of shape (n_samples, n_features)
            An array for an array without errors.
        """
        check_is_fitted(self)
        refuse_mixtures(X)
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov, sparse=True)
        self._refuse_to_fill(data)
        if data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, the scaler was fitted to {self.n_features_in_}"
            )
        with np.errstate(over="ignore"):
            if data.is_sparse:
                means = _columns_divided(data.mean, 1.0 / self.scale_)
            else:
                means = in_type_of(data.mean * self.scale_ + self.mean_, data.mean)
        units = getattr(self, "feature_units_in_", None)
        original = self._mapped(data, means, self.scale_, units, "X, in its former units,")
        return original if has_errors(X, X_std, X_cov) else means

    def _mapped(
        self, data: Gaussians, means: Any, factors: Array, units: Any, argument: str
    ) -> Gaussians:
        A = sparse.csr_array(sparse.diags_array(factors))
        with np.errstate(over="ignore", invalid="ignore"):
            covariances = data.covariances.mapped(A)
        scaled = data.mapped_to(
            means,
            covariances,
            matrix=A,
            feature_names=getattr(self, "feature_names_in_", None),
            feature_units=units,
        )
        return require_representable(scaled, argument)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = not self.with_mean and self.variance != "true"
        return tags


def _columns_divided(rows: Any, scales: Array) -> Any:
    """Return a csr_array with each column divided by a number, which shares no memory."""
    divided = rows.copy()
    divided.data = in_type_of(rows.data / scales[rows.indices], rows.data)
    return divided


def _mean_variances(covariances: Covariances, weights: Array) -> Array:
    """Return the weighted mean of the variances of each feature."""
    step = max(1, (1 << 20) // covariances.n_features)
    total = np.zeros(covariances.n_features)
    for begin in range(0, len(covariances), step):
        total += weights[begin : begin + step] @ covariances[begin : begin + step].variances()
    return np.asarray(total / weights.sum())
