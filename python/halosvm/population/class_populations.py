"""ClassPopulations: Bayes' rule with a population of true values for each class.

Measurements with errors and labels enter; probabilities of classes and log odds leave.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.estimator import (
    ERRORS,
    have_errors,
    read_example_weights,
    read_groups,
    require_one_order,
)
from halosvm.checks.parameters import require_choice, require_count, require_number, thread_count
from halosvm.checks.reading import as_float_array
from halosvm.checks.targets import encode_labels
from halosvm.core.user_warning import warn_user

from .class_fitting import (
    Candidate,
    ClassFitter,
    LabelledRows,
    choose,
    folds_of,
)
from .class_model import ClassModel
from .empirical_bayes import EmpiricalBayes
from .fitting import as_repetitions, warn_of_columns
from .populations import form_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    from .populations import Form

    Array = NDArray[np.float64]

_COVARIANCES = ("full", "diagonal", "factors")
# What the population of each class has in common with the classifier.
_SHARED = (
    *("n_features_in_", "feature_names_in_", "feature_units_in_", "_had_errors"),
    *("log_likelihood_", "n_iter_", "converged_", "status_"),
)


class ClassPopulations(ClassModel):
    r"""Classifier of measurements: a population of true values for each class, and Bayes' rule.

    Each example is a measurement :math:`x_i = v_i + e_i` with an error :math:`e_i \sim N(0, S_i)`
    of known covariance, and the true values of class c are drawn from a population
    :math:`\sum_k a_{ck} N(m_{ck}, V_{ck})`. The probability of a class is

    .. math:: p(c \mid x, S) \propto \pi_c \sum_k a_{ck} N(x; m_{ck}, V_{ck} + S)

    over the values that are there: the errors of a new example, and what is missing of it, enter
    its own density. Without errors and with one component this is discriminant analysis, linear if
    the :math:`V` are one and quadratic if each class has its own.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of Gaussians that the population of a class is made of, fewer in a class of fewer
        rows. "auto" takes up to `max_components`, by left-out log loss.
    tied : bool or "auto", default="auto"
        Whether one covariance serves all components of all classes, or each has its own. "auto"
        decides by left-out log loss.
    covariance : {"full", "diagonal", "factors"}, default="full"
        Form of the covariances, as in `EmpiricalBayes`.
    n_factors : int, optional
        Number of factors of "factors"; None takes 10, or as many as there are features less one.
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes, in the order of `classes_`; None takes their part of the
        weights.
    max_components : int, default=3
        Largest number of components that "auto" tries; it stops where one more does not help.
    cv : int, splitter or iterable, default=5
        Which examples are left out in turn for "auto", as in scikit-learn. A number, or None for 5,
        makes so many parts that have of each class its part; copies of an example stay together.
    tol, max_iter
        As in `EmpiricalBayes`, of the fit to all classes together.
    reg_covar : float or "auto", default="auto"
        What a class of few examples borrows: so many more examples, that have the covariance common
        to all classes, are members of each component that has its own. "auto" is the number of
        features. 0 is none, and refuses features of which a class has one value without errors.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of what is left out.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, as in `EmpiricalBayes`.
    verbose : int, default=0
        If positive, `fit` prints a line of progress after each pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    priors_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    populations_ : list of EmpiricalBayes
        The fitted population of each class; `log_likelihood_` and how the fit ended are those of
        all classes together.
    n_components_ : int
        Number of components that was given or chosen.
    tied_ : bool
        Whether all covariances are one.
    cv_results_ : dict of ndarray
        If anything was chosen: `n_components`, `tied`, left-out `log_loss` and its `standard_error`
        of each candidate that was tried, `difference` to the least and `difference_error`; and the
        index `chosen`. Model files do not keep it.
    log_likelihood_ : ndarray of shape (n,)
        Log likelihood of examples and labels, times weights, plus the log prior of `reg_covar`, at
        each point that the fit went to; it never decreases.
    n_iter_ : int
        Passes over the data.
    converged_ : bool
        Whether the fit ended below `tol`, or at the end of double precision.
    status_ : str
        How the fit ended, in one sentence.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    EmpiricalBayes : One population of all examples, for other classifiers to follow.
    halosvm.reference.class_log_odds : Bayes' rule in NumPy.

    Notes
    -----
    Covariances are those of the largest likelihood, whose scatter is divided by the number of
    examples: so does scikit-learn's linear discriminant analysis, while its quadratic one divides
    by the number of a class less one. Of more than 2,000 examples, about 2,000 drawn at random
    choose; the fit that they lead to is continued on all. Two classes of one covariance and
    unequal errors have no linear border: what is measured badly is nearer to the priors.

    Whether errors are large or small is itself no sign of a class here. A class of one example has
    the common covariance; the example is never left out in the choice.

    References
    ----------
    J. Bovy, D. W. Hogg and S. T. Roweis, "Extreme deconvolution: Inferring complete distribution
    functions from noisy, heterogeneous and incomplete observations", Annals of Applied Statistics 5
    (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import ClassPopulations
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(300) % 2
    >>> errors = rng.uniform(0.1, 2.0, size=(300, 2))
    >>> X = rng.normal(size=(300, 2)) * np.where(y, 1.0, 0.2)[:, None] + errors * rng.normal(
    ...     size=(300, 2)
    ... )
    >>> clf = ClassPopulations(random_state=0).fit(X, y, X_std=errors)
    >>> sure, unsure = clf.predict_proba([[1.5, 1.5]] * 3, X_std=[0.1, 2.0, 2.0])[:2, 1]
    >>> bool(sure > 0.99 > 0.7 > unsure)
    True
    """

    __metadata_request__fit: ClassVar = {**ERRORS, "groups": True}

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        tied: bool | str = "auto",
        covariance: str = "full",
        n_factors: int | None = None,
        priors: ArrayLike | None = None,
        max_components: int = 3,
        cv: Any = 5,
        tol: float = 1e-5,
        max_iter: int = 1000,
        reg_covar: float | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.tied = tied
        self.covariance = covariance
        self.n_factors = n_factors
        self.priors = priors
        self.max_components = max_components
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Estimate the population of each class.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Measurements, or only their values; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Their labels, of two classes or more.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the errors.
        X_cov : Covariances or array-like, optional
            Covariances of the errors; an array is read by its dimensions, as by `Gaussians`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0, as in `EmpiricalBayes.fit`: whole numbers count repetitions.
        groups : array-like of shape (n_samples,), optional
            Examples of one group are left out together.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If `max_iter` passes end before `tol` is reached.
        UserWarning
            For columns of which measurements do not tell what true values are like.
        """
        with self._all_or_nothing():
            self._check_parameters()
            require_one_order({"X": X, "X_std": X_std, "X_cov": X_cov}, {"y": y, "groups": groups})
            data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
            self.classes_, codes = encode_labels(np.asarray(y))
            weights = as_repetitions(read_example_weights(data, sample_weight, len(data)))
            groups = read_groups(X, groups, len(data))
            rows = LabelledRows(data, codes.astype(np.intp), weights, len(self.classes_))
            return self._fit(rows, groups)

    def _fit(self, whole: LabelledRows, groups: NDArray[Any] | None) -> Self:
        used = np.flatnonzero(whole.weights > 0)
        rows = whole if len(used) == len(whole.codes) else whole.part(used)
        shares = rows.shares()
        lost = np.flatnonzero(shares == 0)
        if lost.size:
            label = self.classes_.tolist()[lost[0]]
            raise ValueError(f"sample_weight is 0 for all examples of class {label!r}")
        given = None if self.priors is None else self._read_priors(len(shares))
        form = form_of(self.covariance, self.n_factors, self.n_features_in_)
        random_state = check_random_state(self.random_state)
        chosen_rows = rows.subset(random_state)
        few = rows if len(chosen_rows) == len(rows.codes) else rows.part(chosen_rows)
        candidates = self._candidates()
        self.__dict__.pop("cv_results_", None)
        candidate = candidates[0]
        if len(candidates) > 1:
            labels, part = self.classes_.tolist(), used[chosen_rows]
            folds = folds_of(self.cv, whole, part, groups, labels, random_state)
            candidate, self.cv_results_ = choose(self, form, few, candidates, given, folds)
        self.n_components_, self.tied_ = candidate
        fitter = ClassFitter(self, form, few)
        result = fitter.fit(candidate)
        if few is not rows:
            borrowed = None if self.tied_ else fitter.fit(candidate._replace(tied=True))
            result = ClassFitter(self, form, rows).fit_from(
                result["population"], None if borrowed is None else borrowed["population"]
            )
        warn_of_columns(rows.data, rows.weights)
        self.priors_ = shares if given is None else given
        self._take(result, form, have_errors(rows.data) or bool(np.isnan(rows.data.mean).any()))
        if not self.converged_:
            warn_user(
                f"after {self.n_iter_} passes over the data the log likelihood still grows by more "
                f"than tol = {self.tol:g} for each example; increase max_iter or tol, or use fewer "
                "components"
            )
        return self

    def _candidates(self) -> list[Candidate]:
        counts = (
            range(1, self.max_components + 1)
            if isinstance(self.n_components, str)
            else [int(self.n_components)]
        )
        ties = (True, False) if isinstance(self.tied, str) else (bool(self.tied),)
        return [Candidate(k, tied) for k in counts for tied in ties]

    def _take(self, result: _core.PopulationFit, form: Form, with_errors: bool) -> None:
        self.log_likelihood_ = result["history"]
        self.n_iter_ = result["iterations"]
        self.converged_ = result["converged"]
        self.status_ = result["message"]
        self.populations_ = []
        for c in range(len(self.classes_)):
            own = result["population"].of_class(c)
            model = EmpiricalBayes(
                len(own.weights),
                covariance=self.covariance,
                n_factors=self.n_factors,
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=self.random_state,
                n_threads=self.n_threads,
            )
            model.weights_, model.means_ = own.weights, own.means
            model.covariances_ = form.covariances(own)
            model.n_components_ = len(own.weights)
            model.with_errors_ = with_errors
            for name in _SHARED:
                if name in self.__dict__:
                    setattr(model, name, self.__dict__[name])
            self.populations_.append(model)

    def _check_parameters(self) -> None:
        for name in ("n_components", "tied", "reg_covar"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise ValueError(f"{name} is {value!r}; the only word that it can be is 'auto'")
        if not isinstance(self.n_components, str):
            require_count(self.n_components, "n_components")
        if not isinstance(self.tied, str | bool | np.bool_):
            raise TypeError(f"tied must be True, False or 'auto', got {self.tied!r}")
        require_choice(self.covariance, "covariance", _COVARIANCES)
        if self.n_factors is not None:
            require_count(self.n_factors, "n_factors")
            if self.covariance != "factors":
                raise ValueError(f"n_factors is given, but covariance is {self.covariance!r}")
        for name in ("max_components", "max_iter"):
            require_count(getattr(self, name), name)
        if isinstance(self.cv, numbers.Integral) and self.cv < 2:
            raise ValueError(f"cv must be 2 parts or more, got {self.cv!r}")
        require_number(self.tol, "tol", or_zero=True)
        if not isinstance(self.reg_covar, str):
            require_number(self.reg_covar, "reg_covar", or_zero=True)
        thread_count(self.n_threads)

    def _read_priors(self, n_classes: int) -> Array:
        priors = as_float_array(self.priors, "priors", n_classes).astype(np.float64)
        bad = np.flatnonzero(~(priors > 0))
        if bad.size:
            raise ValueError(
                f"priors: that of class {bad[0]} is {priors[bad[0]]:g}; it must be > 0"
            )
        if abs(priors.sum() - 1.0) > 1e-6:
            raise ValueError(f"priors sum to {priors.sum():g}, not to 1")
        normalised: Array = priors / priors.sum()
        return normalised
