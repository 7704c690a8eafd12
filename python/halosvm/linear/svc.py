"""Linear classification of Gaussians: UncertainSVC.

Gaussians and labels enter; coefficients, class labels, decision values and their spread leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from halosvm.checks.estimator import ERRORS, GaussianClassifier, have_errors, read_targets
from halosvm.checks.targets import (
    codes_among,
    encode_labels,
    exact_labels,
    raw_weights,
    read_labels,
    weights_of_part,
)
from halosvm.files.chunks import Chunks
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures, components_of
from halosvm.gaussians.subspace import require_fraction, require_mean
from halosvm.linear.error_sizes import (
    require_error_scale,
    require_norm,
    require_radius,
    with_sizes,
)
from halosvm.linear.linear_fit import Settings, fit_linear
from halosvm.linear.linear_model import LinearModel
from halosvm.linear.stream import Stream, can_follow_streams
from halosvm.linear.summed_fit import fit_classes, refuse_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples
    from halosvm.linear.sums import Source

    Array = NDArray[np.float64]


class UncertainSVC(GaussianClassifier, LinearModel):
    r"""Linear support vector machine whose training examples are Gaussians.

    Every example :math:`X_i \sim N(x_i, \Sigma_i)` is charged the expected hinge loss, in closed
    form, so that each example counts by how likely it lies on the wrong side:

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i\, E \max(0, 1 - y_i (w'X_i + b))

    A mixture of Gaussians is charged the expectation over it, the sum over its components, each
    times its weight, and predicted by its mean. `error_scale` widens it around its mean, `subspace`
    truncates its components; losses that are no expectations refuse it.

    Certain examples (:math:`\Sigma_i = 0`) are charged the hinge loss; if all are certain, this is
    the linear support vector machine. More than two classes are handled one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; the papers' lambda is 1 / (C sum(c)).
    loss : str, default="expected_hinge"
        - "expected_hinge": of SVM-GSU, as above.
        - "hinge" ignores the covariances: the linear support vector machine on the means.
        - "expected_squared_hinge": :math:`E \max(0, 1 - y f(X))^2`, smooth; outliers count
          by their square. Without errors it is `LinearSVC` with an intercept that is not
          regularised.
        - "expected_logistic": :math:`E \log(1 + \exp(-y f(X)))`, within 4e-5; without errors it is
          `LogisticRegression`.
        - "marginal_logistic": :math:`-\log E\,\sigma(y f(X))` with :math:`\sigma(u) = 1 / (1 +
          e^{-u})`, minus the log likelihood of the label of a true input that is only known to be
          of :math:`N(x_i, \Sigma_i)`: the loss of posteriors (`EmpiricalBayes`). It is not convex:
          the fit descends from the model of "expected_logistic", which is nowhere below it, or
          from that of a warm start, to a point where the gradient vanishes, and no bound is known.
          Only "auto" solves it.
        - "expected_huber_hinge": :math:`E h(1 - y f(X))`, where h(m) is m^2 / 2 from 0 to 1 and
          m - 1/2 beyond: smooth, and outliers count as in the hinge.
        - "worst_case": :math:`\max(0, 1 - y f(x) + r \sqrt{w' \Sigma w})`, the hinge loss of the
          worst point within `radius` r standard deviations of the mean (robust SVM), for errors
          with a bound. With r of `halosvm.uncertainty.confidence_radius` for epsilon an example
          whose loss is :math:`\xi` keeps its margin, :math:`y f(X) \ge 1 - \xi`, with probability
          1 - epsilon.
        - "best_case": :math:`\max(0, 1 - y f(x) - r \sqrt{w' \Sigma w})`, that of the best point
          (TSVC). It is not convex: the fit ends at a point that no further round improves, and no
          bound is known; only "auto" solves it, by a sequence of plain support vector machines that
          begins with that of the means. `TotalSVC` tells the points, and tries other starts.

        Interior points know "expected_hinge", "hinge" and "worst_case"; "auto" takes L-BFGS for
        what is smooth.
    radius : float, default=1.0
        Multiplies all standard deviations for the losses "worst_case" and "best_case"; must be left
        at 1 for others. `fit` takes one for each example besides.
    norm : float, default=2
        The p >= 1 of the same two losses. An example may be anywhere in x + R u with
        :math:`|u|_p` at most the radius and :math:`\Sigma = R R'`, which makes its spread
        :math:`|R' w|_q`, 1/p + 1/q = 1: an ellipsoid for 2, a box for infinity, and for 1 one error
        at a time. R is the diagonal of standard deviations or the factors of low-rank covariances;
        of full ones only 2 makes sense. Interior points know 1, 2 and infinity; L-BFGS comes to an
        end for 1 < p < infinity.
    error_scale : float, default=1.0
        Multiplies all standard deviations, for every loss; 0 ignores them. A search over it weighs
        errors as given against none. `subspace` refers to the errors as given, as do the methods
        that take errors of test examples.
    subspace : float or None, default=None
        Keep of each covariance the largest eigenvalues that hold this fraction of its variance
        (`Covariances.truncate`): fewer numbers to train on, and a loss that is never above the full
        one. None keeps all.
    subspace_mean : {"keep", "project"}, default="keep"
        "project" is the printed form of SVM-GSU, section 3.2, which also cuts from each mean what
        lies outside of its subspace, often the part that tells the classes apart; for comparison.
    solver : {"auto", "lbfgs", "interior_point", "dual_coordinate", "sgd", "proximal_sgd"}
        "lbfgs" is best where all examples are uncertain, features are many, or examples are very
        many, "interior_point" where a tenth of fewer examples or more is certain,
        "dual_coordinate" where all are and X is sparse or wide or C small, unless it is large: it
        takes one dual variable at a time, of every loss here but "expected_logistic",
        "marginal_logistic" and "best_case". "auto", the default, starts with the one that suits the
        data and goes over to another when it is slow; few low-rank factors of many features it
        solves in their span.
        "sgd" is stochastic gradient descent with averaging, which seldom certifies a `tol` below
        1e-4; "proximal_sgd" divides by 1 + eta lambda after each step in place of a step along the
        regulariser.
    tol : float, default=1e-6
        Stop when the certified suboptimality (J - J*) / J* is below.
    max_iter : int, default=1000
        Largest number of iterations; of passes over the data but for "interior_point".
    batch_size : int, default=32
        Examples in a step of the stochastic solvers. From n_samples on, each step uses every
        example once.
    averaging : {"weighted", "none"}, default="weighted"
        Of the iterates of the same two. "none" is Algorithm 1 of SVM-GSU with its step size to the
        letter, for comparison: no centring, no averaging, and the last iterate as it is.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of each class. "balanced" counts examples by their weights, so that
        a weight of 2 equals a repetition.
    fit_intercept : bool, default=True
        Whether to have an intercept; it is never regularised.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the mini-batches. One seed gives one result, on any number of threads.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.
    verbose : int, default=0
        If positive, `fit` prints a line of progress after each iteration, for "sgd" after 1, 2, 4,
        8, ... passes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        w, in the units of 1 / feature; one row per class if there are more than two.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b.
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order. With two classes, `classes_[1]` is the positive one.
    n_iter_ : int
        Iterations; passes over the data but for "interior_point".
    objective_ : float or ndarray of shape (n_classes,)
        lambda / 2 |w|^2 + sum_i c_i loss_i with weights c_i normalised to sum 1. Covariances that
        are whole matrices count without the negative eigenvalues that rounding gives them.
    suboptimality_ : float or ndarray of shape (n_classes,)
        Certified upper bound of (J - J*) / J*, the rounding of the model included; infinite when
        nothing is known, as for "best_case" and "marginal_logistic".
    status_ : str
        How the fit ended, in one sentence.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.
    feature_units_in_ : tuple of units
        Units of the features, if the training data had units; examples to predict need theirs too,
        and are converted.

    See Also
    --------
    Gaussians : A batch of examples with error bars.
    UncertainStandardScaler, Propagate : Scalers and other transformers that take errors along.
    TotalSVC, SafeSVC : Other machines of bounded errors.
    UncertainSVR : Regression.

    References
    ----------
    C. Tzelepis, V. Mezaris and I. Patras, "Linear Maximum Margin Classifier for Learning from
    Uncertain Data", IEEE Transactions on Pattern Analysis and Machine Intelligence 40 (2018).

    N. Couellan and S. Jan, "Feature uncertainty bounding schemes for large robust
    nonlinear SVM classifiers" (2017), for "worst_case"; J. Bi and T. Zhang, "Support Vector
    Classification with Input Data Uncertainty", Advances in Neural Information Processing Systems
    17 (2004), for "best_case" and, eq. (1), "marginal_logistic".

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import UncertainSVC
    >>> X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [2.0, -1.0]])
    >>> errors = np.array([[0.1, 2.0], [0.1, 2.0], [0.1, 2.0], [0.1, 2.0]])
    >>> clf = UncertainSVC(C=10.0).fit(X, [0, 0, 1, 1], X_std=errors)
    >>> clf.predict([[0.5, 3.0]])
    array([1])
    """

    __metadata_request__partial_fit: ClassVar = ERRORS
    _example_types = (Gaussians, GaussianMixtures)
    _takes_sparse = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "expected_hinge",
        radius: float = 1.0,
        norm: float = 2,
        error_scale: float = 1.0,
        subspace: float | None = None,
        subspace_mean: str = "keep",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        batch_size: int = 32,
        averaging: str = "weighted",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.radius = radius
        self.norm = norm
        self.error_scale = error_scale
        self.subspace = subspace
        self.subspace_mean = subspace_mean
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.averaging = averaging
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.loss != "best_case"  # whose solver moves every mean
        return tags

    def fit(
        self,
        X: Examples | ArrayLike | Chunks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        radius: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Arrays that are C-contiguous float64 or float32 are used in place, also read-only ones and
        memory maps. A fit that is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : Gaussians or GaussianMixtures, or array-like or sparse array of shape (n_samples, \
n_features)
            Training examples, or only their means; or `halosvm.chunks`, alone, for data larger than
            memory.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples' losses.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the values in `X`, in the same units. A scaler of scikit-learn
            before this step scales `X` alone; see `UncertainStandardScaler` and `Propagate`.
        X_cov : Covariances or array-like, optional
            Covariances; an array is read by its dimensions: (n_samples,) isotropic,
            (n_samples, n_features) diagonal, (n_samples, n_features, n_features) full.
        radius : array-like of shape (n_samples,), optional
            Radii >= 0 of the examples, which the parameter `radius` multiplies.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, labels, weights or parameters that make no sense, with the argument, the
            row and the value.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations end, or the search stalls, before the suboptimality `tol` is
            certified, if the objective is least at w = 0, or if one class is predicted of all
            training examples.
        """
        with self._all_or_nothing():
            self.__dict__.pop("_stream", None)
            if isinstance(X, Chunks):
                errors = {"X_std": X_std, "X_cov": X_cov, "radius": radius}
                refuse_arguments(self, y=y, sample_weight=sample_weight, **errors)
                return self._fit_chunks(X)
            return self._fit(X, y, X_std, X_cov, sample_weight, radius)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any, radii: Any) -> Self:
        settings = Settings.of(self)
        self._check_parameters(radii)
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        data = self._sized(data, X, radii)
        classes, codes = encode_labels(y)
        weights = raw_weights(classes, codes, sample_weight, self.class_weight)
        result = fit_linear(data, classes, codes, weights, settings, self._start(classes))
        self.classes_ = classes
        self.coef_ = result.coef
        self.intercept_ = result.intercept
        result.describe(self)
        return self

    def _fit_chunks(self, X: Source) -> Self:
        Settings.of(self)
        self._check_parameters(None)
        self.classes_, result, summary = fit_classes(X, self, self._start)
        self._remember_features(summary)
        self._remember_units(summary)
        self._remember_errors(not summary.certain)
        self.coef_ = result.coef
        self.intercept_ = result.intercept
        result.describe(self)
        return self

    @available_if(can_follow_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Examples | ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        n_total: float = 10_000,
    ) -> Self:
        """Go on with one step of averaged gradient descent for each example, in their order.

        A stream is read once, in calls of any length: where calls end changes not one bit, and an
        estimator that is pickled in between goes on with the same bits. After `fit` the walk begins
        at its model. Features should be of order 1. `solver`, `tol`, `max_iter`, `batch_size` and
        `averaging` are without effect, and no bound is known: `suboptimality_` is infinite.

        Parameters
        ----------
        X, X_std, X_cov, sample_weight
            Examples as in `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,)
            All labels of the stream; needed in the first call.
        n_total : float, default=10000
            The number of examples, or sum of their weights, that `C` is meant for: lambda is
            1 / (C n_total), in all calls the same. With the length of the stream, if it is known,
            the objective is that of `fit` to all of it; the default makes lambda, for C = 1, the
            1e-4 of scikit-learn's `SGDClassifier`.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            settings = Settings.of(self)
            self._check_parameters(None)
            first = not hasattr(self, "coef_")
            if first:
                if classes is None:
                    raise ValueError("classes must be passed on the first call to partial_fit")
                data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
                known = np.unique(exact_labels(classes, "classes"))
                self.classes_ = encode_labels(np.repeat(known, 3))[0]
            else:
                y, sample_weight = read_targets(X, y, sample_weight, X_std=X_std, X_cov=X_cov)
                data = self._read_with_errors(X, X_std, X_cov)
                self._remember_errors(self._had_errors or have_errors(data))
                y = read_labels(y, len(data))
                if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                    raise ValueError(
                        f"classes is {classes!r}, but the model has the classes {self.classes_}"
                    )
            data = self._sized(data, X)
            codes = codes_among(self.classes_, y)
            weights = weights_of_part(self.classes_, codes, sample_weight, self.class_weight)
            stream = self.__dict__.get("_stream")
            if stream is None:
                k = 1 if len(self.classes_) == 2 else len(self.classes_)
                zero: tuple[Array, Array] = (np.zeros((k, data.shape[1])), np.zeros(k))
                start = zero if first else (self.coef_, self.intercept_)
                stream = Stream.at(*start, settings, n_total)
            stream.require_same(settings, n_total)
            parts, shares, rows = components_of(data, weights)
            self._stream = stream.follow(parts, shares, codes=codes[rows])
            self.coef_, self.intercept_ = self._stream.model
            self._stream.describe(self)
            return self

    def _sized(self, data: Any, X: Any, radii: Any = None) -> Any:
        """Return the examples with the errors that the loss is to see."""
        if isinstance(data, GaussianMixtures) and not self.loss.startswith("expected_"):
            raise ValueError(
                f"loss={self.loss!r} is no expectation, and of GaussianMixtures only those are "
                "known; X.moments()[0] are their means"
            )
        if self.subspace is not None:
            p, mean = float(self.subspace), self.subspace_mean
            data = data.truncate(p, mean=mean, n_threads=self.n_threads)
        return with_sizes(data, X, self.error_scale, self.radius, radii)

    def _check_parameters(self, radii: Any) -> None:
        require_error_scale(self.error_scale)
        require_radius(self.radius, radii, self.loss)
        require_norm(self.norm, self.loss)
        if self.subspace is not None:
            require_fraction(self.subspace, "subspace")
        require_mean(self.subspace_mean, "subspace_mean")
        if not isinstance(self.warm_start, bool | np.bool_):
            raise TypeError(f"warm_start must be True or False, got {self.warm_start!r}")

    def _start(self, classes: NDArray[Any]) -> tuple[Array, Array] | None:
        """Return the last fit's coefficients if they are wanted and of the same classes."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return (self.coef_, self.intercept_) if np.array_equal(self.classes_, classes) else None
