"""EmpiricalBayes: from measurements to what is known of the true values.

Values with errors enter, some of them missing; the posterior of each true value under the
population of all leaves, as Gaussians, as mixtures, or as posterior means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import read_example_weights
from halosvm.checks.gaussians_out import GaussiansOut, has_errors
from halosvm.checks.parameters import require_count, require_number, thread_count
from halosvm.checks.reading import LARGEST, refuse_where
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

from .batches import BatchedErrors, BatchFitter
from .error_scale import SIZES_NEED_READINGS, estimate, groups_of, require_error_scale
from .error_test import ErrorTested
from .fitting import as_repetitions, require_start, warn_of_columns
from .fixed_parts import require_fixed
from .heavy_tailed import HeavyTailed
from .novelty import NoveltyTested
from .population_model import MEASUREMENT_PARTS, PopulationModel
from .populations import form_of, joined_parts, posterior_covariances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

_COVARIANCES = ("full", "diagonal", "factors")
_OUTPUTS = ("auto", "gaussian", "mixture", "mean")
_SHARED_NEED_READINGS = ", from which offsets of batches are not estimated: leave out batch"


class EmpiricalBayes(
    OneToOneFeatureMixin,  # type: ignore[misc]
    GaussiansOut,
    HeavyTailed,
    ErrorTested,
    NoveltyTested,
    BatchedErrors,
    PopulationModel,
):
    r"""What measurements with errors tell of the true values behind them.

    Each example is a measurement :math:`x_i = v_i + e_i` with an error :math:`e_i \sim N(0, S_i)`
    of known covariance, and the true values :math:`v_i` are drawn from a population
    :math:`\sum_k a_k N(m_k, V_k)`. `fit` estimates the population from all measurements (extreme
    deconvolution); `transform` returns the posterior of each true value. It lies nearer to where
    true values lie, most so where the error is large, and uses what the better measured features
    of the same example say. A value that is missing is a measurement of infinite error; one of
    which a limit alone is known, such as "below 0.25", is not missing (see `X_lower` of `fit`).

    Use it where an error bar means "measured with this error". Where the example itself is a
    distribution (an image under unknown shifts, the frames of a clip), it goes to the classifier as
    it is. How many components pay, and whether any do, is chosen by validation.

    Parameters
    ----------
    n_components : int or "bic", default=1
        Number of Gaussians that the population is made of; "bic" takes more, up to 10, while that
        lowers the Bayesian information criterion.
    covariance : {"full", "diagonal", "factors"}, default="full"
        Form of the :math:`V_k`: any matrix; features that are independent within a component; or
        `n_factors` factors plus a diagonal, for many features.
    n_factors : int, optional
        Number of factors of "factors"; None takes 10, or as many as there are features less one.
    tied : bool, default=False
        Whether one covariance serves all components, which few rows tell better than several.
    output : {"auto", "gaussian", "mixture", "mean"}, default="auto"
        What `transform` returns. "gaussian": the Gaussian of each posterior's mean and covariance.
        "mixture": the posteriors themselves as `GaussianMixtures`. "mean": an array of posterior
        means, for any other estimator of scikit-learn. "auto": as "gaussian", but an array for an
        array if neither it nor what `fit` was given has errors or missing values, where nothing is
        left to tell of true values.
    error_scale : float, "estimate", "feature" or list of lists of int, default=1.0
        What standard deviations of the errors are multiplied by, here and in `transform`, where
        they are told up to a factor: a number; "estimate" finds the one factor that makes the
        measurements most likely, "feature" one for each feature, and lists of numbers of features
        one for each list, 1 for the others. `error_test` tells whether it is needed.
    noise : {"gaussian", "student"}, default="gaussian"
        Distribution of the errors. "student": Student's t with heavy tails, its scale the told
        standard deviation, for readings of which some are far off; see the notes.
    nu : float, optional
        Degrees of freedom of "student", infinite for "gaussian"; None finds them, 0.5 to 200.
    batch_covariance : {"full", "diagonal", "isotropic"}, optional
        Form of the covariance :math:`W` of errors that the rows of a batch share, as those of a
        night, a plate or a calibration: :math:`x_i = v_i + o_{g(i)} + e_i`, :math:`o_g \sim N(0,
        W)`. `fit` and `transform` then need the batch of each row. None: rows share no errors.
    n_init : int, default=1
        Number of starts; the best of the fits is kept.
    init : {"kmeans", "random"} or tuple, default="kmeans"
        Start of several components: clusters of the posterior means under one component, or such
        means drawn at random; or weights (k,), means (k, d) and covariances of the components.
    fixed : dict, optional
        What of `init`, which has to be given, stays as it is: "weights", "means" and "covariances",
        each True for all components, or a list of their numbers. Weights that are free share the
        rest.
    max_iter : int, default=1000
        Largest number of passes over the data.
    tol : float, default=1e-5
        Stop when all further passes together are expected to raise the log likelihood by less than
        this for each example; useful from 1e-3, a rough fit, to 1e-10, near the end of double
        precision. Both a model of the slope and what the later half of the passes gained have to
        say so, since mixtures can rest on flat stretches for a while. With n examples, parameters
        are then within about sqrt(2 n tol) of their standard errors of the maximum that the fit
        goes to, by the meaning of a likelihood ratio; others may be higher (see `n_init`).
    reg_covar : float, default=1e-6
        Keeps covariances regular: so many more examples, fractions of one, that have the variance
        of each feature and no correlations, are members of each component. At least 1e-9 of the
        number of examples, so that variances do not fall below about 1e-9 of the feature's, in no
        direction: double precision resolves no less where features depend on one another. 0 is
        none: such features, without errors, are then refused.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers. Results do not depend on
        it.
    verbose : int, default=0
        If positive, `fit` prints a line of progress after each pass.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Parts :math:`a_k` of the population. A component that has lost its members, less
        than 1e-8 of all, keeps its place: its weight is 0, its mean and covariance are those of the
        largest.
    means_ : ndarray of shape (n_components, n_features)
        Means :math:`m_k`.
    covariances_ : Covariances
        The :math:`V_k`, full, diagonal or low_rank with a diagonal; ``covariances_[k]`` is a
        matrix, ``covariances_.to_full()`` all of them.
    error_scale_ : ndarray of shape (n_features,)
        The factor of the standard deviations of each feature.
    error_scale_interval_ : ndarray of shape (n_features, 2)
        Intervals of 95 % of the factors that were estimated, by the profile of the likelihood,
        open ones to 0 or infinity; NaN for the others.
    nu_ : float
        Degrees of freedom of the errors, of "student" alone.
    batches_ : ndarray of shape (n_batches,)
        Labels of the batches of the fit, sorted. This and what follows is there with
        `batch_covariance` alone.
    batch_covariance_ : ndarray of shape (n_features, n_features)
        The covariance :math:`W` of offsets, the most likely one.
    batch_offsets_ : ndarray of shape (n_batches, n_features)
        Posterior mean of the offset of each batch.
    batch_offset_covariances_ : ndarray of shape (n_batches, n_features, n_features)
        Its posterior covariance.
    component_classes_ : ndarray of shape (n_components,)
        Class of each component, if `fit` was given classes beside batches.
    log_likelihood_ : ndarray of shape (n,)
        Log likelihood of all examples, times their weights, plus the log prior of `reg_covar`, at
        each point that the fit went to; it never decreases.
    n_iter_ : int
        Passes over the data.
    converged_ : bool
        Whether the fit ended below `tol`, or at the end of double precision.
    status_ : str
        How the fit ended, in one sentence.
    left_out_tails_ : ndarray of shape (n,)
        After `calibrate_p_values`: tail probabilities of rows that were left out, in order.
    with_errors_ : bool
        Whether `fit` was given errors, Gaussians or missing values.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    MeasurementFeatures : Posterior means beside log errors and log odds, as plain columns.
    halosvm.reference.deconvolution_step : One step in NumPy.

    Notes
    -----
    In a pipeline, `X_std` and `X_cov` reach this step as metadata, which it asks for by itself;
    what comes behind it gets posteriors, and reads no others. Posteriors are of the smallest
    exact kind: certain for measurements without errors, diagonal for one diagonal component and
    diagonal errors, low_rank for factors, else full.

    What no measurement tells, `fit` warns of, by the column. Without any value in a column, its
    true values are N(0, 1) and independent of the others, also in `transform`: leave it out. Of a
    column with one value the spread is not known, and found to be as good as 0. Where values
    differ far less than their errors let expect, the errors are too large, and all posteriors are
    near the mean of the column.

    With one limit in a row, posteriors and likelihood are exact. With several, expectation
    propagation stands in for the integral over all of them: where limited values are correlated by
    up to 0.5, moments were within 0.01 standard deviations of those of draws; where two that are
    limited on the same side are almost copies of one another, standard deviations come out up to
    10 % too small. `error_scale` cannot be estimated from limits.
    With `batch_covariance` offsets are integrated, which is exact where each row is of one known
    component. With several components for a row, or new rows of unknown classes, components and
    offsets are found in turn, and `log_likelihood_` is a lower bound. A "full" :math:`W` is joined
    by as many batches as there are features, of the variances of a "diagonal" one, unless
    `reg_covar` is 0. `transform` takes the rows of a batch together, and as new ones; errors and
    posteriors are then full matrices.

    The fit takes steps of expectation maximisation first, then of L-BFGS, or again of expectation
    maximisation where that fails.

    An error of "student" is N(0, S / u), u of a gamma distribution: one for each of independent
    errors, by expectation propagation, else one for each row, which is exact.

    References
    ----------
    J. Bovy, D. W. Hogg and S. T. Roweis, "Extreme deconvolution: Inferring complete distribution
    functions from noisy, heterogeneous and incomplete observations", Annals of Applied Statistics 5
    (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import EmpiricalBayes
    >>> X = np.array([[1.0, 1.2], [2.0, np.nan], [3.0, 2.9], [4.0, 4.3]])
    >>> errors = np.array([[0.1, 0.1], [0.1, np.nan], [0.1, 0.1], [0.1, 2.0]])
    >>> posterior = EmpiricalBayes().fit_transform(X, X_std=errors)
    >>> posterior.mean.round(1)
    array([[1. , 1.2],
           [2. , 2.1],
           [3. , 2.9],
           [4. , 3.7]])
    """

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = MEASUREMENT_PARTS
    __metadata_request__transform: ClassVar = MEASUREMENT_PARTS

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        covariance: str = "full",
        n_factors: int | None = None,
        tied: bool = False,
        output: str = "auto",
        error_scale: float | str | Sequence[Sequence[int]] = 1.0,
        noise: str = "gaussian",
        nu: float | None = None,
        batch_covariance: str | None = None,
        n_init: int = 1,
        init: str | tuple[Any, Any, Any] = "kmeans",
        fixed: dict[str, Any] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        reg_covar: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.n_factors = n_factors
        self.tied = tied
        self.output = output
        self.error_scale = error_scale
        self.noise = noise
        self.nu = nu
        self.batch_covariance = batch_covariance
        self.n_init = n_init
        self.init = init
        self.fixed = fixed
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> Self:
        """Estimate the population of true values.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Measurements, or only their values; NaN and masked entries are missing.
        y : array-like of shape (n_samples,), optional
            With `batch`, labels of classes, each of which then has `n_components` components of its
            own, with one covariance for all: so classes whose shares differ between batches are not
            taken for offsets. Ignored without `batch`, and if it holds values instead of classes;
            whole numbers are classes.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the errors; infinite where a value is missing.
        X_cov : Covariances or array-like, optional
            Covariances of the errors; an array is read by its dimensions, as by `Gaussians`.
        X_lower, X_upper : array-like of shape (n_samples, n_features), optional
            Limits of readings that are not known themselves: above `X_lower`, below `X_upper`, or
            between both; NaN where there is none. `X` is NaN there, and the error that of the
            reading, 0 where the limit is of the true value itself.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples. If all are whole numbers, they count repetitions. Any
            others tell how examples compare, such as 1 / n or probabilities: their scale does not
            matter, and they count as (sum w)^2 / sum w^2 examples in all, for "bic" and
            `reg_covar`, too.
        batch : array-like of shape (n_samples,), optional
            Label of the batch of each row, for `batch_covariance`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, errors, weights or parameters that make no sense.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` passes end before `tol` is reached.
        UserWarning
            For columns of which measurements do not tell what true values are like.
        """
        with self._all_or_nothing():
            self._check_parameters()
            data = self._read(X, X_std, X_cov, X_lower, X_upper, reset=True)
            self.with_errors_ = has_errors(X, X_std, X_cov) or bool(np.isnan(data.mean).any())
            return self._fit(X, y, data, sample_weight, batch)

    def _fit(self, X: Any, y: Any, data: Gaussians, sample_weight: Any, batch: Any) -> Self:
        if self.fixed and isinstance(self.init, str):  # which files do not keep
            raise ValueError("fixed needs init=(weights, means, covariances), whose values stay")
        self.__dict__.pop("left_out_tails_", None)  # of another fit
        self._forget_batches()
        weights = read_example_weights(X, sample_weight, len(data))
        counted = (weights > 0)[:, np.newaxis]
        refuse_where(
            counted & (np.abs(data.mean) > np.sqrt(LARGEST)),
            "X",
            f"values whose square is beyond {LARGEST:g} overflow: rescale",
            data.mean,
        )
        groups = groups_of(self.error_scale, data.shape[1])
        if groups is not None:
            data.require_no_limits("X", SIZES_NEED_READINGS)
        if groups is None:
            self.error_scale_ = np.full(data.shape[1], float(self.error_scale))
            data = self._in_right_size(data)
        form = form_of(self.covariance, self.n_factors, data.shape[1])
        batches = self._batches_of_fit(X, y, batch, weights)
        if batches is None:
            fitter = self._fitter(data, weights, form)
        else:
            data.require_no_limits("X", _SHARED_NEED_READINGS)
            fitter = BatchFitter(self, data, weights, form, batches)
        if self.n_components == "bic":
            result, self.n_components_ = fitter.fit_by_criterion()
        else:
            self.n_components_ = int(self.n_components)
            if self.n_components_ > np.count_nonzero(weights):
                raise ValueError(
                    f"n_components is {self.n_components_}, X has {np.count_nonzero(weights)} rows"
                )
            result = fitter.fit_best(self.n_components_)
        self.error_scale_interval_ = np.full((data.shape[1], 2), np.nan)
        if groups is not None:
            found = estimate(fitter, result, groups)
            self.error_scale_, self.error_scale_interval_ = found.scales, found.intervals
            data, result = found.data, found.result
        self._remember_tails(result)
        warn_of_columns(data, weights)
        population = result["population"]
        if batches is not None:
            self._remember_batches(batches, result)
            self.n_components_ = len(population.weights)
        self.weights_ = population.weights
        self.means_ = population.means
        self.covariances_ = form.covariances(population)
        self.log_likelihood_ = result["history"]
        self.n_iter_ = result["iterations"]
        self.converged_ = result["converged"]
        self.status_ = result["message"]
        if not self.converged_:
            gain = result["predicted_gain"] / fitter.weights.sum()
            left = f"expected to gain {gain:.2g} more" if np.isfinite(gain) else "still growing"
            warn_user(
                f"after {self.n_iter_} passes over the data the log likelihood of an example is "
                f"{left}, and tol is {self.tol:g}; increase max_iter or tol, or use fewer "
                "components"
            )
        return self

    def fit_transform(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Any:
        """Fit to measurements, and return what is known of the true values behind them.

        With batches, the offset of a row is what `fit` found, each row and its class counted once:
        the class of a row tells of the offset of the others, never of its own true value.

        Parameters
        ----------
        X, y, X_std, X_cov, X_lower, X_upper, batch
            As in `fit`.
        **fit_params
            Other arguments of `fit`, as `sample_weight`.

        Returns
        -------
        As `transform`.
        """
        parts = {"X_std": X_std, "X_cov": X_cov, "X_lower": X_lower, "X_upper": X_upper}
        self.fit(X, y, **parts, batch=batch, **fit_params)
        if batch is None:
            return self._transform(X, parts, None)
        n_samples = len(np.asarray(batch))
        weights = read_example_weights(X, fit_params.get("sample_weight"), n_samples)
        return self._transform(X, parts, batch, (y, as_repetitions(weights)))

    def transform(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        X_lower: ArrayLike | None = None,
        X_upper: ArrayLike | None = None,
        batch: ArrayLike | None = None,
    ) -> Any:
        """Return what is known of the true values behind measurements.

        Parameters
        ----------
        X, X_std, X_cov, X_lower, X_upper
            Measurements as in `fit`; those without errors are certain.
        batch : array-like of shape (n_samples,), optional
            Label of the batch of each row, if `fit` had batches. What is known of an offset is what
            `fit` tells of it, nothing but `batch_covariance_` for batches that it did not have,
            together with all rows of the batch in `X`, which count as new ones; their classes are
            not known. For the rows of `fit` themselves see `fit_transform`.

        Returns
        -------
        Gaussians, GaussianMixtures or ndarray of shape (n_samples, n_features)
            As `output` says.

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        parts = {"X_std": X_std, "X_cov": X_cov, "X_lower": X_lower, "X_upper": X_upper}
        return self._transform(X, parts, batch)

    def _transform(
        self,
        X: Any,
        parts: dict[str, Any],
        batch: Any,
        counted: tuple[Any, Array] | None = None,
    ) -> Any:
        check_is_fitted(self)
        self._check_choice("output", _OUTPUTS)
        data = self._read(X, **parts, reset=False)
        joined, alone = self.output != "mixture", self.output == "mean"
        if self.output == "auto":
            # Older files and pickles do not tell.
            of_fit = getattr(self, "with_errors_", True)
            told = has_errors(X, parts["X_std"], parts["X_cov"])
            alone = not (of_fit or told or np.isnan(data.mean).any())
        found = joined_parts(
            self._posteriors(rows, joined=joined, covariances=not alone)
            for rows in self._rows_alone(X, data, batch, counted)
        )
        means = found["means"]
        if alone:
            return means
        names = getattr(self, "feature_names_in_", None)
        covariances = posterior_covariances(found)
        of_each = getattr(self, "feature_units_in_", None)
        posterior = data.mapped_to(means, covariances, feature_names=names, feature_units=of_each)
        posterior.as_posteriors()
        if joined:
            return posterior
        counts = np.full(len(data), self.n_components_)
        return GaussianMixtures(posterior, found["responsibilities"].reshape(-1), counts)

    def _check_parameters(self) -> None:
        if self.n_components != "bic":
            if isinstance(self.n_components, str):
                raise ValueError(
                    f"n_components must be an integer or 'bic', got {self.n_components!r}"
                )
            require_count(self.n_components, "n_components")
        self._check_choice("covariance", _COVARIANCES)
        self._check_choice("output", _OUTPUTS)
        if not isinstance(self.tied, bool | np.bool_):
            raise TypeError(f"tied must be True or False, got {self.tied!r}")
        require_fixed(self.fixed, tied=bool(self.tied))
        require_error_scale(self.error_scale)
        self._check_noise()
        self._check_batch_parameters()
        if self.n_factors is not None:
            require_count(self.n_factors, "n_factors")
            if self.covariance != "factors":
                raise ValueError(f"n_factors is given, but covariance is {self.covariance!r}")
        for name in ("n_init", "max_iter"):
            require_count(getattr(self, name), name)
        require_number(self.tol, "tol", or_zero=True)
        require_number(self.reg_covar, "reg_covar", or_zero=True)
        thread_count(self.n_threads)
        require_start(self.init, self.n_components)

    def _check_choice(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
