"""What a population of true values tells of measurements: densities, a criterion, draws.

Measurements enter, read and checked; log densities and numbers made of them leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from halosvm import _core
from halosvm.checks import frames, units
from halosvm.checks.error_arguments import X_NAMES, with_errors
from halosvm.checks.errors_seen import without_counted_errors
from halosvm.checks.estimator import GaussianEstimator, have_errors
from halosvm.checks.parameters import require_count, thread_count
from halosvm.checks.reading import as_float_array, needs_own_reading, unmasked
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

from .error_scale import with_scaled_errors
from .fixed_parts import flags_of
from .populations import form_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances

    Array = NDArray[np.float64]


# What its estimators ask for by themselves where metadata are routed.
MEASUREMENT_PARTS: dict[str, bool | None] = dict.fromkeys(
    ("X_std", "X_cov", "X_lower", "X_upper"), True
)


class PopulationModel(GaussianEstimator):
    """A population sum_k a_k N(m_k, V_k) behind measurements; base class of its estimators."""

    __metadata_request__score: ClassVar = MEASUREMENT_PARTS

    _takes_limits = True

    covariance: str
    n_factors: int | None
    tied: bool
    fixed: dict[str, Any] | None
    random_state: int | np.random.RandomState | None
    n_threads: int | None
    n_components_: int
    n_features_in_: int
    weights_: Array
    means_: Array
    covariances_: Covariances

    def score_samples(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> Array:
        """Return the log density of each measurement, with its error.

        Parameters
        ----------
        X, X_std, X_cov, X_lower, X_upper
            Measurements as in `fit`.
        batch : array-like of shape (n_samples,), optional
            As in `transform`: the density of each row is that beside the other rows of its batch.

        Returns
        -------
        ndarray of shape (n_samples,)
            0 where nothing is measured. A limit enters with the probability that the reading lies
            within it.

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        data = self._read(X, X_std, X_cov, X_lower, X_upper, reset=False)
        return np.concatenate(
            [self._log_density(rows) for rows in self._rows_alone(X, data, batch)]
        )

    def _log_density(self, data: Gaussians) -> Array:
        return _core.measurement_log_density(
            self._population(),
            data.core_view(missing=True, limits=True),
            thread_count(self.n_threads),
            data.limits,
        )

    def _posteriors(self, data: Gaussians, *, joined: bool, covariances: bool) -> dict[str, Any]:
        """Return posteriors of true values as the core tells them."""
        return _core.true_value_posteriors(
            self._population(),
            data.core_view(missing=True, limits=True),
            joined,
            covariances=covariances,
            n_threads=thread_count(self.n_threads),
            limits=data.limits,
        )

    def _require_normal_errors(self, what: str) -> None:
        """Raise ValueError unless errors are normal, for what knows no others."""
        if getattr(self, "nu_", np.inf) < np.inf:
            raise ValueError(f"{what} knows normal errors only, and noise is 'student'")

    def score(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> float:
        """Return the mean log density of measurements.

        Parameters
        ----------
        X, X_std, X_cov, X_lower, X_upper
            Measurements as in `fit`.
        batch : array-like of shape (n_samples,), optional
            As in `score_samples`.
        y : ignored
        """
        given = {"X_std": X_std, "X_cov": X_cov, "X_lower": X_lower, "X_upper": X_upper}
        return float(np.mean(self.score_samples(X, **given, batch=batch)))

    def bic(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> float:
        """Return the Bayesian information criterion; lower is better.

        Parameters
        ----------
        X, X_std, X_cov, X_lower, X_upper
            Measurements as in `fit`.
        batch : array-like of shape (n_samples,), optional
            As in `score_samples`.
        """
        given = {"X_std": X_std, "X_cov": X_cov, "X_lower": X_lower, "X_upper": X_upper}
        densities = self.score_samples(X, **given, batch=batch)
        form = form_of(self.covariance, self.n_factors, self.n_features_in_)
        k, d = self.n_components_, self.n_features_in_
        # Older pickles have neither.
        n_parameters = form.n_parameters(k, d, tied=bool(getattr(self, "tied", False)))
        n_parameters -= flags_of(getattr(self, "fixed", None), k).n_parameters(form, k, d)
        return float(n_parameters * np.log(len(densities)) - 2.0 * densities.sum())

    def responsibilities(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> Array:
        """Return the probability that the true value behind each measurement is of each component.

        Parameters
        ----------
        X, X_std, X_cov, X_lower, X_upper
            Measurements as in `fit`.
        batch : array-like of shape (n_samples,), optional
            As in `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        data = self._read(X, X_std, X_cov, X_lower, X_upper, reset=False)
        parts = self._rows_alone(X, data, batch)
        each = [self._posteriors(rows, joined=False, covariances=False) for rows in parts]
        shares: Array = np.concatenate([found["responsibilities"].ravel() for found in each])
        return shares.reshape(len(data), -1)

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.intp]]:
        """Draw true values from the population.

        Parameters
        ----------
        n_samples : int, default=1
            Their number.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        component : ndarray of shape (n_samples,)
            The component that each comes from.
        """
        check_is_fitted(self)
        require_count(n_samples, "n_samples")
        rng = check_random_state(self.random_state)
        component = rng.choice(self.n_components_, n_samples, p=self.weights_)
        X = np.empty((n_samples, self.n_features_in_))
        for k in range(self.n_components_):
            rows = np.flatnonzero(component == k)
            X[rows] = rng.multivariate_normal(
                self.means_[k], self.covariances_[k], len(rows), check_valid="ignore"
            )
        return X, component

    def _read(
        self,
        X: Any,
        X_std: Any,
        X_cov: Any,
        X_lower: Any = None,
        X_upper: Any = None,
        *,
        reset: bool,
    ) -> Gaussians:
        if isinstance(X, GaussianMixtures):
            raise TypeError("X is GaussianMixtures; measurements have Gaussian errors")
        X_std, X_cov = without_counted_errors(X, X_std, X_cov)
        parts = {"X_std": X_std, "X_cov": X_cov, "X_lower": X_lower, "X_upper": X_upper}
        data = self._read_measurements(X, parts, reset=reset)
        if reset:
            self._remember_units(data)
            self._remember_errors(have_errors(data))
        checked: Gaussians = self._check_features(data)
        if reset:
            return checked
        self._warn_if_errors_left_out(X, X_std, X_cov)
        return self._in_right_size(checked)

    def _in_right_size(self, data: Gaussians) -> Gaussians:
        """Return measurements with their errors times `error_scale_`, if it is there."""
        scales = getattr(self, "error_scale_", None)  # older files and pickles have none
        return data if scales is None else with_scaled_errors(data, scales)

    def _read_measurements(self, X: Any, parts: dict[str, Any], *, reset: bool) -> Gaussians:
        if isinstance(X, Gaussians):
            data = as_gaussians(X, **parts, missing=True, limits=True)
        else:
            labels = frames.labels_of(X, "X")
            bare, unit = units.split(X)
            bare = unmasked(bare)
            if not needs_own_reading(bare):
                means = validate_data(
                    self,
                    bare,
                    reset=reset,
                    dtype=[np.float64, np.float32],
                    order="C",
                    ensure_all_finite="allow-nan",
                )
                means = np.require(means, requirements=["ALIGNED"])
            else:
                means = as_float_array(bare, "X", "n_samples", "n_features")
            of_each = units.for_features(unit, means.shape[1])
            if labels.names is None and labels.columns is None:
                labels = labels._replace(names=getattr(self, "feature_names_in_", None))
            given = {name.removeprefix("X_"): part for name, part in parts.items()}
            state = with_errors(X_NAMES, means, labels, of_each, missing=True, **given)
            data = Gaussians.of_state(state)
            if not needs_own_reading(bare):
                return data
        if reset:
            self._remember_features(data)
        return data

    def _population(self) -> _core.Population:
        form = form_of(self.covariance, self.n_factors, self.n_features_in_)
        population: _core.Population = self._with_offsets(
            form.restored(self.weights_, self.means_, self.covariances_)
        )
        return population

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
