"""MeasurementClassifier: the way from measurements with errors to classes, chosen by validation.

Values with errors and labels enter; probabilities of classes leave, and a table that says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from halosvm.calibration.curves import normalised
from halosvm.calibration.platt import PlattScaling
from halosvm.checks.estimator import read_example_weights, read_groups
from halosvm.checks.parameters import require_choice
from halosvm.checks.probabilities import ProbabilityClassifier
from halosvm.checks.targets import exact_labels
from halosvm.measurement.candidates import Candidate, classifiers
from halosvm.measurement.choice import MeasurementChoice
from halosvm.measurement.folds import without_warnings
from halosvm.population.class_populations import ClassPopulations

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.measurement.candidates import Fitted
    from halosvm.measurement.features import MeasurementFeatures

    Array = NDArray[np.float64]


# Of a row, in all passes to come, below which the populations of classes are fitted well enough: on
# cells with noise of 1 and 3, 1e-5 to 1e-3 give the same log loss to three digits.
_GAIN = 1e-3
# Rows up to which classes have one component, or two: of 300 rows a second one took the log loss of
# two lobes from .304 to .279, and moved that of cells and Kepler objects by .005 (bench/papers).
_FEW_ROWS, _SOME_ROWS = 200, 1000


class MeasurementClassifier(ProbabilityClassifier, MeasurementChoice):
    """Probabilities of classes from measurements with errors, by the ways that validation chose.

    Whether errors help, and how, differs from table to table: posterior means of the true values
    (`EmpiricalBayes`), a population for each class (`ClassPopulations`), errors as features,
    kernels on posteriors, or values alone. The candidates are compared by the log loss of the same
    left-out rows, and those chosen are fitted to all rows.

    Parameters
    ----------
    candidates : "auto" or list, default="auto"
        A list of names of those of "auto", of estimators, and of pairs (name, estimator), the
        simplest first. Estimators of this package, and pipelines that begin with one, are given the
        measurements with their errors; others posterior means. A pipeline that begins with
        `MeasurementFeatures` says by itself what it uses.
    combine : {"mean", "best"}, default="mean"
        Of those within a standard error of the best, by their paired difference, "mean" takes the
        mean of the probabilities of the three best, or fewer; "best" takes the simplest.
    cv : int, splitter or iterable, default=5
        Which rows are left out; a number makes stratified folds, by `groups` if there are any.
    errors_as_news : {"auto", True, False}, default="auto"
        Whether sizes of errors may be features: they tell classes apart where errors go with them,
        and mislead where new rows come from another survey. "auto": they may, but rows with an
        error outside the range of training are answered by the best candidates without them, with
        a warning. The range goes from the 1 % quantile of the logarithms of the errors of a feature
        to the 99 % quantile, and half of their distance beyond, and likewise of their mean over
        features; 0 is outside where no row of training has it.
    calibrate : {"auto", True}, default="auto"
        Scores become probabilities by a logistic curve through left-out scores: where a candidate
        has no trustworthy probabilities of its own, or for all.
    features : MeasurementFeatures, optional
        Settings of the populations; which columns are used, the candidates say. By default what
        `ClassPopulations` chooses by itself, it chooses once, on all rows that are compared, with
        one component a class below 200 of them, and two at most below 1,000.
    max_rows : int, default=4000
        Candidates are compared on at most so many rows, drawn at random, and those chosen are
        fitted to all; their curves come from the comparison.
    n_jobs : int or None, default=None
        Number of folds that are fitted at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is random.
    verbose : int, default=0
        If positive, progress and the table are printed.

    Attributes
    ----------
    table_ : structured array of shape (n_candidates,)
        ``name``, mean left-out log ``loss``, its standard ``error``, the paired ``difference`` to
        the first candidate that ignores errors, ``difference_error``, and ``weight`` in the
        combination; it prints as a table. Errors of differences are widened for what fits to
        overlapping training rows have in common (Nadeau and Bengio, 2003).
    best_ : str
        Name of the candidate with the lowest loss.
    chosen_ : list of str
        Names of those that are combined.
    weights_ : ndarray
        Their weights.
    advice_ : str
        Whether errors help, in a sentence. Where nothing beats ignoring them, they are
        ignored.
    classes_ : ndarray of shape (n_classes,)
    fitted_ : dict
        What was fitted to all rows, by name.
    features_ : MeasurementFeatures
        The populations, fitted to all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If all names are strings.

    See Also
    --------
    MeasurementFeatures : The columns that candidates use.
    UncertainSVC : For examples that are distributions and no measurements.

    Notes
    -----
    "auto" leaves candidates out that do not suit the size of the table: trees and boosting below
    60 rows, populations of classes above 20 features, kernels above some thousand rows; and, where
    there are no errors and no missing values, all that would count them.

    The losses of the table chose; for an honest estimate of what was chosen, cross-validate this
    classifier. `save_model` keeps it in a file whose name ends in ``.skops``.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import MeasurementClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> errors = rng.uniform(0.1, 2.0, size=(120, 2))
    >>> X = 2.0 * y[:, None] + rng.normal(size=(120, 2)) * (0.5 + errors)
    >>> names = ["values, logistic", "means, logistic", "class populations"]
    >>> clf = MeasurementClassifier(names, random_state=0).fit(X, y, X_std=errors)
    >>> clf.predict_proba(X[:3], X_std=errors[:3]).shape
    (3, 2)
    >>> len(clf.table_)
    3
    """

    _needs = "predict_proba"

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "mean",
        cv: Any = 5,
        errors_as_news: str | bool = "auto",
        calibrate: str | bool = "auto",
        features: MeasurementFeatures | None = None,
        max_rows: int = 4000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.cv = cv
        self.errors_as_news = errors_as_news
        self.calibrate = calibrate
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
        groups: ArrayLike | None = None,
    ) -> Self:
        """Compare the candidates, and fit those chosen to all rows.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Measurements, or only their values; NaN and masked entries are missing.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples, in fits and losses.
        X_std, X_cov : optional
            Errors, as in `EmpiricalBayes.fit`.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are left out together.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
            check_classification_targets(exact_labels(y, "y", objects=True))
            y = np.asarray(y)
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class, {self.classes_.tolist()[0]!r}; two are needed")
            weights = read_example_weights(data, sample_weight, len(data))
            groups = read_groups(X, groups, len(data))
            self._choose(data, y, weights, groups, given=sample_weight is not None)
        return self

    def predict_proba(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`; those without errors are certain.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        UserWarning
            If errors are outside of the range of training, and sizes of errors were features.
        """
        check_is_fitted(self)
        return self._combined(X, X_std, X_cov)

    # ---- what the choice asks for ----------------------------------------------------------------
    def _built_in(self) -> list[Candidate]:
        return classifiers(curves=self.calibrate is True)

    def _feature_settings(
        self, candidates: list[Candidate], data: Gaussians, y: Any, weights: Array, seed: int
    ) -> MeasurementFeatures:
        settings = super()._feature_settings(candidates, data, y, weights, seed)
        if settings.class_populations is None and any("log_odds" in c.features for c in candidates):
            most = 1 if len(data) < _FEW_ROWS else 2 if len(data) < _SOME_ROWS else 3
            populations = ClassPopulations(max_components=most, tol=_GAIN, random_state=seed)
            with without_warnings():
                populations.fit(data, y, sample_weight=weights)
            settings.class_populations = ClassPopulations(
                populations.n_components_, tied=populations.tied_, tol=_GAIN, random_state=seed
            )
        return settings

    def _allowed(self, candidate: Candidate) -> bool:
        return self.errors_as_news is not False or not candidate.uses_news

    def _watches(self) -> bool:
        return self.errors_as_news == "auto"

    def _answers(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        answers = fitted.scores(blocks)
        known = np.asarray(fitted.estimator.classes_)
        if len(known) != len(self.classes_):
            raise ValueError("cv leaves out all examples of a class; use a stratified splitter")
        return answers

    def _curves(self, candidate: Candidate, answers: Array, y: Any, weights: Array) -> list[Any]:
        if not candidate.curve:
            return []
        if answers.ndim == 1:
            return [PlattScaling().fit(answers, y == self.classes_[1], weights)]
        return [
            PlattScaling().fit(answers[:, k], y == label, weights)
            for k, label in enumerate(self.classes_)
        ]

    def _losses(
        self, candidate: Candidate, answers: Array, y: Any, weights: Array, fold: NDArray[np.intp]
    ) -> Array:
        codes = np.searchsorted(self.classes_, y)
        probabilities = np.empty((len(y), len(self.classes_)))
        for k in range(fold.max() + 1):
            # The curve of a fold is one through the scores of all others.
            other, own = fold != k, fold == k
            curves = self._curves(candidate, answers[other], y[other], weights[other])
            probabilities[own] = _probabilities(answers[own], curves)
        p = probabilities[np.arange(len(y)), codes]
        return np.asarray(-np.log(np.maximum(p, np.finfo(np.float64).eps)))

    def _final(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        return _probabilities(fitted.scores(blocks), fitted.curves)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice(self.errors_as_news, "errors_as_news", ("auto", True, False))
        require_choice(self.calibrate, "calibrate", ("auto", True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _probabilities(answers: Array, curves: list[Any]) -> Array:
    """Return the probabilities of classes of scores, or answers that are probabilities already."""
    if not curves:
        return answers
    if answers.ndim == 1:
        p = curves[0].probability(answers)
        return np.column_stack([1.0 - p, p])
    each = np.column_stack([curve.probability(answers[:, k]) for k, curve in enumerate(curves)])
    return normalised(each)
