"""MeasurementFeatures: plain columns of numbers from measurements with errors.

Values with errors enter, some of them missing; posterior means, their spreads, sizes of errors and
log odds of classes leave, as an array for any estimator of scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from halosvm.checks.estimator import GaussianEstimator, read_example_weights, read_groups
from halosvm.checks.gaussians_out import GaussiansOut
from halosvm.checks.parameters import require_count
from halosvm.measurement.folds import splits_of, without_warnings
from halosvm.population.class_populations import ClassPopulations
from halosvm.population.empirical_bayes import EmpiricalBayes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

# What a column can be, and what its name ends in.
_ENDINGS = {
    "values": "value",
    "means": "mean",
    "sds": "sd",
    "log_errors": "log_error",
    "missing": "missing",
}
FEATURES = (*_ENDINGS, "log_odds")
_OF_POPULATION = {"means", "sds", "posteriors"}


class MeasurementFeatures(GaussiansOut, GaussianEstimator):
    """Plain columns from measurements with errors, for any estimator of scikit-learn.

    Parameters
    ----------
    features : sequence of str, default=("means",)
        Which columns, in this order:

        - "values": what was measured; the mean of the feature where a value is missing.
        - "means": posterior means of the true values (`EmpiricalBayes`).
        - "sds": posterior standard deviations.
        - "log_errors": logarithms of the standard deviations of the errors. An error of 0 counts as
          the smallest positive one of the fit in this feature (1 where there is none), and where a
          value is missing stands the median of the feature.
        - "missing": 1 where a value is missing, else 0, for each feature that lacks one in the fit.
        - "log_odds": logarithms of the odds of each class against the first, by a population for
          each class (`ClassPopulations`). `fit_transform` returns those of fits that left the row
          out, `transform` those of the fit to all.

        Sizes of errors tell classes apart where errors go with them, as of faint objects. They
        belong to the survey: leave "sds", "log_errors" and "missing" out if the errors of new
        examples come from elsewhere.
    population : EmpiricalBayes, optional
        The population behind "means" and "sds"; None is ``EmpiricalBayes()``.
    class_populations : ClassPopulations, optional
        Those behind "log_odds"; None is ``ClassPopulations()``. What it chooses by itself, it
        chooses once, on all rows.
    cv : int, splitter or iterable, default=5
        Folds of the left-out log odds.
    max_rows : int, default=20000
        Populations are estimated from at most so many rows, drawn at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws, the folds and the populations.

    Attributes
    ----------
    population_ : EmpiricalBayes
        If needed.
    class_populations_ : ClassPopulations
        If needed.
    classes_ : ndarray of shape (n_classes,)
        With "log_odds".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If all names are strings.

    See Also
    --------
    EmpiricalBayes : The posteriors themselves.
    MeasurementClassifier : Chooses among such features and classifiers.

    Notes
    -----
    Of correlated errors "log_errors" see the standard deviations alone.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import MeasurementFeatures
    >>> X = np.array([[1.0, 1.2], [2.0, np.nan], [3.0, 2.9], [4.0, 4.3]])
    >>> errors = np.array([[0.1, 0.1], [0.1, np.nan], [0.1, 0.1], [0.1, 2.0]])
    >>> columns = MeasurementFeatures(features=("means", "missing"))
    >>> columns.fit_transform(X, X_std=errors).round(1)
    array([[1. , 1.2, 0. ],
           [2. , 2.1, 1. ],
           [3. , 2.9, 0. ],
           [4. , 3.7, 0. ]])
    >>> columns.get_feature_names_out()
    array(['x0_mean', 'x1_mean', 'x1_missing'], dtype=object)
    """

    _takes_missing = True

    def __init__(
        self,
        features: Any = ("means",),
        *,
        population: EmpiricalBayes | None = None,
        class_populations: ClassPopulations | None = None,
        cv: Any = 5,
        max_rows: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.features = features
        self.population = population
        self.class_populations = class_populations
        self.cv = cv
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Estimate the populations.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Measurements, or only their values; NaN and masked entries are missing.
        y : array-like of shape (n_samples,)
            Labels, which "log_odds" need.
        X_std, X_cov : optional
            Their errors, as in `EmpiricalBayes.fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are left out together.

        Returns
        -------
        self
        """
        self._fit_blocks(X, y, X_std, X_cov, sample_weight, groups, left_out=False)
        return self

    def fit_transform(  # type: ignore[override]  # named what others take as fit_params
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Estimate the populations, and return the columns, with log odds of left-out rows.

        Parameters
        ----------
        X, y, X_std, X_cov, sample_weight, groups
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        blocks = self._fit_blocks(X, y, X_std, X_cov, sample_weight, groups, left_out=True)
        return np.hstack([blocks[name] for name in self.features])

    def _fit_blocks(
        self, X: Any, y: Any, X_std: Any, X_cov: Any, weight: Any, groups: Any, *, left_out: bool
    ) -> dict[str, Any]:
        self._check_parameters()
        with self._all_or_nothing():
            if "log_odds" in self.features:
                data, y, weight = self._read_training_data(X, y, X_std, X_cov, weight)
            else:
                data, _ = self._read_first(X, X_std, X_cov)
            weights = read_example_weights(X, weight, len(data))
            groups = read_groups(X, groups, len(data))
            return self.learn(data, y, weights, groups, self.features, left_out=left_out)

    def transform(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Any:
        """Return the columns of measurements.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`; those without errors are certain.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        blocks = self.blocks(self._read_with_errors(X, X_std, X_cov), self.features)
        return np.hstack([blocks[name] for name in self.features])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns: that of the feature, and what is told of it.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the features, if the fit knew none.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        names: list[str] = []
        for block in self.features:
            if block == "log_odds":
                names += [f"log_odds_{label}" for label in self.classes_[1:]]
            else:
                kept = given[self._lacking] if block == "missing" else given
                names += [f"{name}_{_ENDINGS[block]}" for name in kept]
        return np.array(names, dtype=object)

    # ---- what MeasurementClassifier shares among its candidates: examples that are read already --
    def learn(
        self,
        data: Gaussians,
        y: Any,
        weights: Array,
        groups: Any,
        needed: Any,
        *,
        left_out: bool = True,
    ) -> dict[str, Any]:
        """Fit what the needed columns need, and return those of the training rows, by name."""
        rng = check_random_state(self.random_state)
        self._learn_columns(data, weights)
        used = np.flatnonzero(weights > 0)
        if len(used) > self.max_rows:
            used = np.sort(rng.choice(used, self.max_rows, replace=False))
        if _OF_POPULATION & set(needed):
            population = EmpiricalBayes() if self.population is None else clone(self.population)
            if population.random_state is None:
                population.random_state = rng.randint(2**31 - 1)
            # Covariances of many features are large, and posterior means do without.
            population.output = "gaussian" if {"sds", "posteriors"} & set(needed) else "mean"
            self.population_ = population.fit(data[used], sample_weight=weights[used])
        if "log_odds" not in needed:
            return self.blocks(data, needed)
        y = np.asarray(y)
        self.classes_ = np.unique(y)
        given = self.class_populations
        populations = ClassPopulations() if given is None else clone(given)
        if populations.random_state is None:
            populations.random_state = rng.randint(2**31 - 1)
        self.class_populations_ = populations.fit(data[used], y[used], sample_weight=weights[used])
        blocks = self.blocks(data, needed)
        if left_out:
            chosen = clone(populations).set_params(**_chosen(populations))
            own = None if groups is None else groups[used]
            for train, test in splits_of(self.cv, y[used], own, rng):
                train, test = used[train], used[test]
                with without_warnings():
                    fold = clone(chosen).fit(data[train], y[train], sample_weight=weights[train])
                blocks["log_odds"][test] = fold.log_odds(data[test])
        return blocks

    def blocks(self, data: Gaussians, needed: Any) -> dict[str, Any]:
        """Return the needed columns by name, and as "posteriors" the posteriors as Gaussians."""
        found: dict[str, Any] = {}
        missing = np.isnan(data.mean)
        if "values" in needed:
            found["values"] = np.where(missing, self._mean, data.mean).astype(np.float64)
        if _OF_POPULATION & set(needed):
            posteriors = self.population_.transform(data)
            if self.population_.output == "mean":
                found["means"] = posteriors
            else:
                found["posteriors"], found["means"] = posteriors, posteriors.mean
                found["sds"] = np.sqrt(posteriors.covariances.variances())
        if "log_errors" in needed:
            found["log_errors"] = np.where(missing, self._median, self.log_errors(data))
        if "missing" in needed:
            found["missing"] = missing[:, self._lacking].astype(np.float64)
        if "log_odds" in needed:
            found["log_odds"] = self.class_populations_.log_odds(data)
        return found

    def log_errors(self, data: Gaussians) -> Array:
        """Return logarithms of the errors, NaN where a value is missing."""
        variances = data.covariances.variances().astype(np.float64)
        logs = 0.5 * np.log(variances, where=variances > 0, out=np.full(data.shape, -np.inf))
        return np.where(np.isnan(data.mean), np.nan, np.where(logs == -np.inf, self._least, logs))

    def _learn_columns(self, data: Gaussians, weights: Array) -> None:
        """Find what stands for missing values and for errors of 0."""
        rows = weights > 0
        missing = np.isnan(data.mean)
        self._lacking = np.flatnonzero(missing[rows].any(axis=0))
        w = np.where(missing, 0.0, weights[:, np.newaxis])
        total = w.sum(axis=0)
        sums = np.einsum("nj,nj->j", w, np.where(missing, 0.0, data.mean))
        self._mean = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        self._least = np.full(data.shape[1], np.inf)
        logs = np.where(missing, np.inf, self.log_errors(data))[rows]
        least = logs.min(axis=0)
        self._least = np.where(np.isfinite(least), least, 0.0)
        logs = self.log_errors(data)[rows]
        self._median = np.array([_median(logs[:, j], weights[rows]) for j in range(data.shape[1])])

    def _check_parameters(self) -> None:
        if isinstance(self.features, str) or not len(self.features):
            raise ValueError(f"features must be a list of {', '.join(FEATURES)}")
        for name in self.features:
            if name not in FEATURES:
                raise ValueError(f"features must be among {', '.join(FEATURES)}; got {name!r}")
        require_count(self.max_rows, "max_rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = "log_odds" in self.features
        return tags


def _chosen(populations: Any) -> dict[str, Any]:
    """Return what ClassPopulations chose by itself, which its folds are to keep."""
    kept = {"n_components": int, "tied": bool}
    found = {name: getattr(populations, f"{name}_", None) for name in kept}
    return {name: each for name, each in found.items() if isinstance(each, kept[name])}


def _median(values: Array, weights: Array) -> float:
    """Return a weighted median of the values that are there, 0 if none is."""
    there = ~np.isnan(values)
    if not there.any():
        return 0.0
    order = np.argsort(values[there])
    values, shares = values[there][order], np.cumsum(weights[there][order])
    return float(values[np.searchsorted(shares, 0.5 * shares[-1])])
