"""MeasurementRegressor: the way from measurements with errors to values, chosen by validation.

Values with errors and targets enter; predicted values leave, and a table that says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted

from halosvm.checks import reading
from halosvm.checks.estimator import (
    GaussianRegressor,
    read_example_weights,
    read_groups,
    require_index_of,
)
from halosvm.measurement.candidates import regressors
from halosvm.measurement.choice import MeasurementChoice
from halosvm.population.measurements import paule_mandel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.measurement.candidates import Candidate, Fitted
    from halosvm.measurement.features import MeasurementFeatures

    Array = NDArray[np.float64]


class MeasurementRegressor(GaussianRegressor, MeasurementChoice):
    """Values from measurements with errors, by the ways that validation chose.

    Values alone, or posterior means of the true values (`EmpiricalBayes`), with a line or with
    trees behind them, are compared by the squared error of the same left-out rows, and those chosen
    are fitted to all rows.

    Parameters
    ----------
    candidates : "auto" or list, default="auto"
        As of `MeasurementClassifier`.
    combine : {"mean", "best"}, default="mean"
        Of those within a standard error of the best, by their paired difference, "mean" takes the
        mean of the three best, or fewer; "best" takes the simplest.
    cv : int, splitter or iterable, default=5
        Which rows are left out.
    features : MeasurementFeatures, optional
        Settings of the population.
    max_rows : int, default=4000
        Candidates are compared on at most so many rows, drawn at random, and those chosen are
        fitted to all.
    n_jobs : int or None, default=None
        Number of folds that are fitted at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is random.
    verbose : int, default=0
        If positive, progress and the table are printed.

    Attributes
    ----------
    table_, best_, chosen_, weights_, advice_, fitted_, features_
        As of `MeasurementClassifier`; the loss is the squared error.
    target_variance_ : float
        With `y_std`: the variance of y about what a line tells, beyond its errors.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If all names are strings.

    See Also
    --------
    UncertainSVR : For examples that are distributions and no measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import MeasurementRegressor
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=(200, 2))
    >>> errors = rng.uniform(0.1, 2.0, size=(200, 2))
    >>> X, y = true + errors * rng.normal(size=(200, 2)), true @ [1.0, 2.0]
    >>> model = MeasurementRegressor(random_state=0).fit(X, y, X_std=errors)
    >>> model.best_
    'means, ridge'
    """

    _needs = "predict"

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "mean",
        cv: Any = 5,
        features: MeasurementFeatures | None = None,
        max_rows: int = 4000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.cv = cv
        self.features = features
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
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
        groups: ArrayLike | None = None,
    ) -> Self:
        """Compare the candidates, and fit those chosen to all rows.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Measurements, or only their values; NaN and masked entries are missing.
        y : array-like of shape (n_samples,)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples, in fits and losses.
        X_std, X_cov : optional
            Errors, as in `EmpiricalBayes.fit`.
        y_std : array-like of shape (n_samples,), optional
            Standard deviations of the errors of y. A row is weighted by 1 / (v + y_std^2), where v
            is the variance of y about what a line tells (`target_variance_`), found from the
            residuals and their errors (Paule and Mandel).
        groups : array-like of shape (n_samples,), optional
            Rows of one group are left out together.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self.__dict__.pop("target_variance_", None)
            data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
            y = np.asarray(y, dtype=np.float64)
            weights = read_example_weights(data, sample_weight, len(data))
            if y_std is not None:
                require_index_of(X, "y_std", y_std)
                error = reading.as_float_array(y_std, "y_std", len(y)).astype(np.float64)
                wrong = ~((error >= 0) & (error < np.inf))
                reading.refuse_where(wrong, "y_std", "it must be >= 0 and finite", error)
                weights = weights * self._precision(data, y, weights, error)
            given = sample_weight is not None or y_std is not None
            groups = read_groups(X, groups, len(data))
            self._choose(data, y, weights, groups, given=given)
        return self

    def _precision(self, data: Gaussians, y: Array, weights: Array, error: Array) -> Array:
        """Return weights of rows by the errors of y, 1 in the mean."""
        missing = np.isnan(data.mean)
        there = np.where(missing, 0.0, data.mean)
        line = Ridge(1e-6 * max(float(np.square(there).sum()), 1e-300) / len(y))
        residuals = y - cross_val_predict(line, there, y, cv=min(5, len(y)))
        used = weights > 0
        _, variance, resolution = paule_mandel(
            residuals[used], error[used] ** 2, weights[used], tol=1e-3
        )
        self.target_variance_ = max(variance, resolution)
        total = self.target_variance_ + error**2
        if not total.any():
            return np.ones(len(y))
        precision = 1.0 / np.maximum(total, 1e-12 * total.max())
        return np.asarray(precision / np.average(precision, weights=weights))

    def predict(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return predicted values.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`; those without errors are certain.

        Returns
        -------
        ndarray of shape (n_samples,)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        return self._combined(X, X_std, X_cov)

    # ---- what the choice asks for ----------------------------------------------------------------
    def _built_in(self) -> list[Candidate]:
        return regressors()

    def _answers(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        return fitted.predict(blocks)

    def _losses(
        self,
        candidate: Candidate,  # noqa: ARG002
        answers: Array,
        y: Any,
        weights: Array,  # noqa: ARG002
        fold: NDArray[np.intp],  # noqa: ARG002
    ) -> Array:
        squares: Array = (answers - y) ** 2
        return squares

    def _final(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        return fitted.predict(blocks)
