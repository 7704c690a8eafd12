"""Linear regression of Gaussians: UncertainSVR.

Gaussians and values enter, both with errors; coefficients, predictions and their spread leave.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import ERRORS, GaussianRegressor
from halosvm.checks.parameters import require_number
from halosvm.checks.reading import as_float_array, refuse_where, require_finite
from halosvm.checks.targets import weight_of_each
from halosvm.linear.error_sizes import require_error_scale, with_sizes
from halosvm.linear.linear_fit import SOLVERS, Halves, Settings, fit_residuals
from halosvm.linear.linear_model import LinearScores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]


class _Loss(NamedTuple):
    """A loss of residuals as two halves of a loss of margin deficits, spec K.3."""

    half: str  # the name of the core's loss
    degree: int  # loss(t r) = t^degree loss(r), where all lengths grow


LOSSES = {
    "epsilon_insensitive": _Loss("expected_hinge", 1),
    "squared_epsilon_insensitive": _Loss("expected_squared_hinge", 2),
    "huber": _Loss("expected_huber_hinge", 2),
    "pinball": _Loss("expected_hinge", 1),
    "squared_error": _Loss("expected_squared_hinge", 2),
}


class UncertainSVR(GaussianRegressor, LinearScores):
    r"""Linear support vector regression whose examples are Gaussians.

    Every residual :math:`r_i = y_i - w'X_i - b` of an example :math:`X_i \sim N(x_i, \Sigma_i)` is
    itself Gaussian, and is charged its expected loss, in closed form:

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i\, E\, \mathrm{loss}(r_i)

    This is right where the example is a distribution (a tolerance, the frames of a clip). Where
    the values of X are measurements of true values that y depends on,
    ``EmpiricalBayes(output="mean")`` comes first: else slopes are shrunk towards 0, as they are by
    every regression on noisy features. Posteriors as Gaussians would shrink them again, for the
    spread of a posterior knows nothing of y.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser.
    loss : str, default="epsilon_insensitive"
        - "epsilon_insensitive": max(0, abs(r) - epsilon).
        - "squared_epsilon_insensitive": its square.
        - "huber": r^2 / 2 up to `delta`, delta abs(r) - delta^2 / 2 beyond.
        - "pinball": quantile r for r > 0, (quantile - 1) r for r < 0: regression to a quantile.
        - "squared_error": r^2, ridge regression with its matrix increased by the covariances.
    epsilon : float, default=0.1
        Residuals up to here cost nothing, in the unit of y; of the first two losses alone.
    quantile : float, default=0.5
        Of "pinball", between 0 and 1.
    delta : float, default=1.0
        Of "huber", in the unit of y.
    error_scale : float, default=1.0
        Multiplies the standard deviations of X, not those of y; 0 ignores them.
    solver : {"auto", "lbfgs", "interior_point", "sgd", "proximal_sgd"}, default="auto"
        As in `UncertainSVC`. Interior points know "epsilon_insensitive" and "pinball" without
        errors of y.
    tol : float, default=1e-6
        Stop when the certified suboptimality (J - J*) / J* is below.
    max_iter : int, default=1000
        Largest number of iterations; of passes over the data for "lbfgs" and the stochastic ones.
    fit_intercept : bool, default=True
        Whether to have an intercept; it is never regularised.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the mini-batches.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.
    verbose : int, default=0
        If positive, `fit` prints a line of progress after each iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w, in the units of y / feature.
    intercept_ : float
        b, in the unit of y.
    n_iter_ : int
        Iterations; passes over the data for "lbfgs" and the stochastic solvers.
    objective_ : float
        lambda / 2 |w|^2 + sum_i c_i loss_i with weights c_i normalised to sum 1, and
        lambda = 1 / (C sum(c)).
    suboptimality_ : float
        Certified upper bound of (J - J*) / J*; infinite when nothing is known.
    status_ : str
        How the fit ended, in one sentence.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.
    feature_units_in_ : tuple of units
        Units of the features, if the training data had units.

    See Also
    --------
    UncertainSVC : Classification.
    EmpiricalBayes : True values behind measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import UncertainSVR
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> reg = UncertainSVR(C=100.0, epsilon=0.0).fit(x, [1.0, 3.0, 5.0, 7.0], X_std=0.1 * x)
    >>> reg.predict([[4.0]]).round(1)
    array([8.9])
    """

    __metadata_request__fit: ClassVar = {**ERRORS, "y_std": True}

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        quantile: float = 0.5,
        delta: float = 1.0,
        error_scale: float = 1.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.delta = delta
        self.error_scale = error_scale
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        y_std: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        A fit that is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Training examples, or only their means.
        y : array-like of shape (n_samples,)
            Values.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples' losses.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the values in `X`, in the same units. A scaler of scikit-learn
            before this step scales `X` alone; see `UncertainStandardScaler` and `Propagate`.
        X_cov : Covariances or array-like, optional
            Covariances, as in `UncertainSVC.fit`.
        y_std : float or array-like of shape (n_samples,), optional
            Standard deviations of the errors of `y`, which add to those that X brings about.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, values, weights or parameters that make no sense, with the argument, the
            row and the value.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations end, or the search stalls, before the suboptimality `tol` is
            certified.
        """
        with self._all_or_nothing():
            return self._fit(X, y, X_std, X_cov, y_std, sample_weight)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, y_std: Any, sample_weight: Any) -> Self:
        loss = self._checked_loss()
        settings = Settings.of(self, SOLVERS, loss=loss.half)
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        data = with_sizes(data, X, self.error_scale)
        values = as_float_array(y, "y", len(data)).astype(np.float64)
        require_finite(values, "y")
        if sample_weight is not None and not np.any(sample_weight):
            raise ValueError("sample_weight is zero for all examples; give one of them a weight")
        weights = weight_of_each(sample_weight, len(data))
        scale = Scale.of(values, weights, self.delta if self.loss == "huber" else None)
        shift = scale.centre if self.fit_intercept else 0.0

        # In units in which the values are of order 1; all lengths are scaled, and C with them.
        r = (values - shift) / scale.unit
        epsilon = self.epsilon / scale.unit if "epsilon" in self.loss else 0.0
        shares = (self.quantile, 1.0 - self.quantile) if self.loss == "pinball" else (1.0, 1.0)
        noise = _variances(y_std, len(data), scale.unit)
        halves = Halves(r - epsilon, r + epsilon, noise, (shares[0] * weights, shares[1] * weights))
        settings = dataclasses.replace(settings, C=self.C * scale.unit ** (loss.degree - 2))
        result = fit_residuals(data, halves, settings, self._start(scale.unit, shift))
        self.coef_ = result.coef[0] * scale.unit
        self.intercept_ = float(result.intercept[0] * scale.unit + shift)
        result.describe(self)
        self.objective_ *= sum(shares) * scale.unit**loss.degree
        return self

    def predict(
        self,
        X: Gaussians | ArrayLike,
        *,
        return_std: bool = False,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Return the predicted values w'x + b, for uncertain examples their means.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples; a covariance does not change the mean.
        return_std : bool, default=False
            Whether to return also what the errors of X alone do to the prediction,
            sqrt(w'Sw).
        X_std, X_cov : optional
            Errors of `X` for that, as in `fit`; they do not change the mean.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
        """
        check_is_fitted(self)
        if not return_std:
            return self._values(X, X_std, X_cov)
        data = self._read_data(X, X_std, X_cov)
        return self._values(data), self._spreads(data, None, None, self.coef_[None])[:, 0]

    def _values(self, X: Any, X_std: Any = None, X_cov: Any = None) -> Array:
        model = self.coef_[None], np.array([self.intercept_])
        values: Array = self._scores(X, *model, X_std, X_cov)[:, 0]
        return values

    def _checked_loss(self) -> _Loss:
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {self.loss!r}")
        require_number(self.epsilon, "epsilon", or_zero=True)
        require_number(self.delta, "delta")
        require_error_scale(self.error_scale)
        require_number(self.quantile, "quantile")
        if self.quantile >= 1:
            raise ValueError(f"quantile must be between 0 and 1, got {self.quantile!r}")
        if not isinstance(self.warm_start, bool | np.bool_):
            raise TypeError(f"warm_start must be True or False, got {self.warm_start!r}")
        return LOSSES[self.loss]

    def _start(self, unit: float, shift: float) -> tuple[Array, Array] | None:
        """Return the last fit's model in the units of this one, if it is wanted."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return self.coef_[None] / unit, np.array([(self.intercept_ - shift) / unit])


class Scale(NamedTuple):
    """Where values are and how wide they spread: what solvers take for 0 and for 1."""

    centre: float
    unit: float

    @classmethod
    def of(cls, values: Array, weights: Array, unit: float | None) -> Self:
        """Return median and mean absolute deviation of the values that have a weight."""
        values = values[weights > 0]
        centre = float(np.median(values))
        if unit is None:
            widths = (np.abs(values - centre).mean(), abs(centre))
            unit = next((float(width) for width in widths if 0 < width < np.inf), 1.0)
        return cls(centre, unit)


def _variances(y_std: Any, n: int, unit: float) -> Array | None:
    """Return the variances of the values, or None if they are certain."""
    if y_std is None:
        return None
    std = as_float_array(y_std, "y_std")
    if std.ndim == 0:
        std = np.full(n, std)
    std = as_float_array(std, "y_std", n)
    require_finite(std, "y_std")
    refuse_where(~(std >= 0), "y_std", "a standard deviation must be >= 0", std)
    variances = np.asarray(std / unit, dtype=np.float64) ** 2
    return variances if variances.any() else None
