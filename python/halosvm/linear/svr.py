"""Linear regression of Gaussians: UncertainSVR.

Gaussians and values enter, both with errors; coefficients, predictions and their spread leave.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.errors_seen import warn_of_posteriors
from halosvm.checks.estimator import ERRORS, GaussianRegressor, have_errors, read_targets
from halosvm.checks.parameters import require_number
from halosvm.checks.reading import as_float_array, require_finite
from halosvm.checks.targets import weight_of_each
from halosvm.files.chunks import Chunks
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures, components_of
from halosvm.linear.error_sizes import require_error_scale, with_sizes
from halosvm.linear.linear_fit import SOLVERS, Settings
from halosvm.linear.linear_model import LinearScores
from halosvm.linear.residual_losses import LOSSES, ResidualLoss
from halosvm.linear.residuals import HalvesOf, Scale, fit_residuals, variances_of
from halosvm.linear.stream import Stream
from halosvm.linear.summed_fit import fit_values, refuse_arguments, survey_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples
    from halosvm.linear.linear_fit import Result
    from halosvm.linear.sums import Source

    Array = NDArray[np.float64]


class UncertainSVR(GaussianRegressor, LinearScores):
    r"""Linear support vector regression whose examples are Gaussians.

    Every residual :math:`r_i = y_i - w'X_i - b` of an example :math:`X_i \sim N(x_i, \Sigma_i)` is
    itself Gaussian, and is charged its expected loss, in closed form:

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i\, E\, \mathrm{loss}(r_i)

    This is right where the example is a distribution (a tolerance, the frames of a clip). A mixture
    of Gaussians is charged the sum over its components, each times its weight. Where the values of
    X are measurements of true values that y depends on, ``EmpiricalBayes(output="mean")`` comes
    first: else slopes are shrunk towards 0, as they are by every regression on noisy features.
    Posteriors as Gaussians or mixtures shrink them as well, for the spread of a posterior knows
    nothing of y; `fit` warns of them.

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
    solver : {"auto", "lbfgs", "interior_point", "dual_coordinate", "sgd", "proximal_sgd"}
        As in `UncertainSVC`, with "auto" as default. Interior points know "epsilon_insensitive" and
        "pinball" without errors of y; "dual_coordinate" takes no errors at all.
    tol : float, default=1e-6
        Stop when the certified suboptimality (J - J*) / J* is below.
    max_iter : int, default=1000
        Largest number of iterations; of passes over the data but for "interior_point".
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
        Iterations; passes over the data but for "interior_point".
    objective_ : float
        lambda / 2 |w|^2 + sum_i c_i loss_i with weights c_i normalised to sum 1, and
        lambda = 1 / (C sum(c)), of the numbers in `coef_` and `intercept_`.
    suboptimality_ : float
        Certified upper bound of (J - J*) / J*; infinite when nothing is known. The rounding of
        `intercept_` counts: it may cost values of 1e9 that have errors of 1e-3 more than `tol`.
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
    __metadata_request__partial_fit: ClassVar = {**ERRORS, "y_std": True}
    _example_types = (Gaussians, GaussianMixtures)
    _takes_sparse = True

    coef_: Array
    intercept_: float

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
        X: Examples | ArrayLike | Chunks,
        y: ArrayLike | None = None,
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
        X : Gaussians or GaussianMixtures, or array-like or sparse array of shape (n_samples, \
n_features)
            Training examples, or only their means; or `halosvm.chunks`, alone, for data larger than
            memory.
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
            Standard deviations of the errors of `y`, which add to those that X brings about. Where
            they and X or `y` have an index, they are brought into its order.

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
        UserWarning
            If X is posteriors of `EmpiricalBayes` with their spread, in place of posterior means.
        """
        with self._all_or_nothing():
            self.__dict__.pop("_stream", None)
            if isinstance(X, Chunks):
                others = {"y": y, "X_std": X_std, "X_cov": X_cov, "sample_weight": sample_weight}
                refuse_arguments(self, **others)
                return self._fit_chunks(X, y_std)
            return self._fit(X, y, X_std, X_cov, y_std, sample_weight)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, y_std: Any, sample_weight: Any) -> Self:
        loss = self._checked_loss()
        settings = Settings.of(self, SOLVERS, loss=loss.half)
        rows = {"X": X, "X_std": X_std, "X_cov": X_cov, "y": y}
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        data = with_sizes(data, X, self.error_scale)
        warn_of_posteriors(self, data)
        values = as_float_array(y, "y", len(data)).astype(np.float64)
        require_finite(values, "y")
        weights = weight_of_each(sample_weight, len(data))
        scale = Scale.of(values, weights, self.delta if self.loss == "huber" else None)
        shift = scale.centre if self.fit_intercept else 0.0

        noise = variances_of(y_std, len(data), scale.unit, **rows)
        halves = self._halves(scale, shift)
        settings = dataclasses.replace(settings, C=self.C * scale.unit ** (loss.degree - 2))
        result = fit_residuals(data, values, weights, noise, halves, settings, self._start())
        return self._take(result, scale)

    def partial_fit(
        self,
        X: Examples | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        y_std: ArrayLike | None = None,
        n_total: float = 10_000,
    ) -> Self:
        """Go on with one step of averaged gradient descent for each example, in their order.

        Everything is as in `UncertainSVC.partial_fit`, and values should be of order 1, too.

        Parameters
        ----------
        X, y, X_std, X_cov, y_std, sample_weight
            Examples as in `fit`.
        n_total : float, default=10000
            The number of examples that `C` is meant for, in all calls the same.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            settings = Settings.of(self, SOLVERS, loss=self._checked_loss().half)
            first = not hasattr(self, "coef_")
            rows = {"X": X, "X_std": X_std, "X_cov": X_cov, "y": y}
            if first:
                data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
            else:
                y, sample_weight = read_targets(**rows, sample_weight=sample_weight, values=True)
                data = self._read_with_errors(X, X_std, X_cov)
                self._remember_errors(self._had_errors or have_errors(data))
            data = with_sizes(data, X, self.error_scale)
            if first:
                warn_of_posteriors(self, data)
            values = as_float_array(y, "y", len(data)).astype(np.float64)
            require_finite(values, "y")
            weights = weight_of_each(sample_weight, len(data), is_part=True)
            noise = variances_of(y_std, len(data), 1.0, **rows)
            parts, shares, of = components_of(data, weights)
            assert shares is not None
            noise = None if noise is None else noise[of]
            halves = self._halves(Scale(0.0, 1.0), 0.0)(values[of], shares, noise)
            stream = self.__dict__.get("_stream")
            if stream is None:
                start = (np.zeros((1, data.shape[1])), np.zeros(1))
                if not first:
                    start = (self.coef_[None], np.array([self.intercept_]))
                stream = Stream.at(*start, settings, n_total)
            stream.require_same(settings, n_total)
            self._stream = stream.follow(parts, shares, halves=halves, shares=self._shares())
            coef, intercept = self._stream.model
            self.coef_, self.intercept_ = coef[0], float(intercept[0])
            self._stream.describe(self)
            return self

    def _fit_chunks(self, X: Source, y_std: Any) -> Self:
        loss = self._checked_loss()
        if y_std is not None and np.ndim(y_std):
            raise ValueError("y_std must be one number where X is chunks, the same for all values")
        rows, summary, settings = survey_values(X, self, loss.half)
        unit = self.delta if self.loss == "huber" else None
        scale = Scale.of_moments(summary.centre, summary.square**0.5, unit)
        shift = scale.centre if self.fit_intercept else 0.0
        noise = variances_of(y_std, 1, scale.unit)
        halves = self._halves(scale, shift, None if noise is None else float(noise[0]))
        settings = dataclasses.replace(settings, C=self.C * scale.unit ** (loss.degree - 2))
        result = fit_values(rows, summary, halves, settings, self._start())
        self._remember_features(summary)
        self._remember_units(summary)
        self._remember_errors(not summary.certain)
        return self._take(result, scale)

    def _halves(self, scale: Scale, shift: float, noise: float | None = None) -> HalvesOf:
        epsilon = self.epsilon if "epsilon" in self.loss else 0.0
        return HalvesOf(shift, scale.unit, epsilon, self._shares(), noise)

    def _shares(self) -> tuple[float, float]:
        return (self.quantile, 1.0 - self.quantile) if self.loss == "pinball" else (1.0, 1.0)

    def _take(self, result: Result, scale: Scale) -> Self:
        self.coef_, self.intercept_ = result.coef[0], float(result.intercept[0])
        result.describe(self)
        self.objective_ *= sum(self._shares()) * scale.unit ** LOSSES[self.loss].degree
        return self

    def predict(
        self,
        X: Examples | ArrayLike,
        *,
        return_std: bool = False,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Return the predicted values w'x + b, for uncertain examples their means.

        Parameters
        ----------
        X : Gaussians, GaussianMixtures or array-like of shape (n_samples, n_features)
            Examples; a covariance does not change the mean.
        return_std : bool, default=False
            Whether to return also what the errors of X alone do to the prediction,
            sqrt(w'Sw), S the covariance of a Gaussian or a mixture.
        X_std, X_cov : optional
            Errors of `X` for that, as in `fit`; they do not change the mean.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
        """
        check_is_fitted(self)
        if not return_std:
            return self._values(X, X_std, X_cov)
        data = self._read_with_errors(X, X_std, X_cov)
        return self._values(data), self._spreads(data, None, None, self.coef_[None])[:, 0]

    def _values(self, X: Any, X_std: Any = None, X_cov: Any = None) -> Array:
        model = self.coef_[None], np.array([self.intercept_])
        values: Array = self._scores(X, *model, X_std, X_cov)[:, 0]
        return values

    def _checked_loss(self) -> ResidualLoss:
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

    def _start(self) -> tuple[Array, Array] | None:
        """Return the last fit's model, if it is wanted."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return self.coef_[None], np.array([self.intercept_])
