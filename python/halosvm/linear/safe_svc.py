"""Robust classification with errors of unknown size: SafeSVC.

Means and labels enter; the sizes of the errors that validation data ask for, and a model, leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import type_of_target
from threadpoolctl import threadpool_limits

from halosvm.checks import reading
from halosvm.checks.estimator import ERRORS, GaussianClassifier
from halosvm.checks.frames import paired
from halosvm.checks.parameters import require_count, require_number, thread_count
from halosvm.checks.targets import encode_labels, raw_weights
from halosvm.core.user_warning import warn_user
from halosvm.linear import validation
from halosvm.linear.box_descent import descend_in_box
from halosvm.linear.linear_model import LinearModel
from halosvm.linear.smoothed_robust import SmoothedRobust, fit_robust, smoothed_hinge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.checks.frames import Labels
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

# Starts of the search, as shares of the largest sizes: each is half of the next.
_SHARES = (0.0, *(0.5**k for k in range(8, -1, -1)))


class SafeSVC(GaussianClassifier, LinearModel):
    r"""Linear support vector machine that learns how large the errors of its features are.

    All examples may be anywhere in an ellipsoid (or box) around them, of half-axes
    :math:`\sigma_k`, one for each feature, and the machine fits the worst case:

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i \max(0, 1 - y_i (w'x_i + b)
              + |\sigma \circ w|_q)

    The sizes are those whose machine has the least hinge loss on validation data, found within
    `bounds` by projected gradients: what matters of the errors need not be known beforehand, and
    features that are noise are seen to be. The examples to fit are then fitted once more, together
    with those that were split off.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser.
    bounds : pair of float or array-like of shape (n_features,), default=(0.0, 1.0)
        Smallest and largest sizes, for all features or for each, in the units of the features.
    norm : float, default=2
        p > 1 of the errors, :math:`|u|_p \le 1` in :math:`x + \sigma \circ u`: 2 is an ellipsoid,
        inf a box. At p = 1 a single feature would bear all of the errors.
    validation : float, int, splitter, iterable or (X, y), default=0.3
        The data to judge the sizes by: a fraction of the distinct examples of each class, drawn at
        random; a number of folds, a splitter or splits, as `cv` of scikit-learn, whose mean loss
        counts; or the data.
    tol : float, default=1e-4
        Stop when a step decreases the validation loss by less than this share of it.
    max_iter : int, default=100
        Largest number of steps, each of which takes one fit or a few.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of each class, in fits and in the validation loss.
    fit_intercept : bool, default=True
        Whether to have an intercept; it is never regularised.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw for a fraction.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.
    verbose : int, default=0
        If positive, `fit` prints the loss after each step.

    Attributes
    ----------
    std_ : ndarray of shape (n_features,)
        The sizes, in the units of the features.
    validation_losses_ : ndarray of shape (n_steps + 1,)
        Mean hinge loss on the validation data at the start and after each step; it never increases.
        The last is that of `std_`, the lowest of all that were tried; where the validation data are
        given it is that of the model itself.
    objective_ : float
        The objective of the model, with rounded-off kinks.
    coef_ : ndarray of shape (1, n_features)
        w, in the units of 1 / feature.
    intercept_ : ndarray of shape (1,)
        b.
    classes_ : ndarray of shape (2,)
        Labels in ascending order; `classes_[1]` is the positive one.
    n_iter_ : int
        Steps.
    n_features_in_, feature_names_in_, feature_units_in_
        As of `UncertainSVC`.

    Notes
    -----
    All losses have their kink rounded off over a width of 0.05, which raises them by 0.02 at most:
    with it the fit has a derivative by the sizes, which the implicit function theorem gives. The
    search starts from the best of ten sizes in proportion to the upper bounds; its end is a local
    minimum. Standardise the features, or give bounds for each.

    References
    ----------
    N. Couellan and S. Jan, "Feature uncertainty bounding schemes for large robust
    nonlinear SVM classifiers" (2017), eq. (7).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import SafeSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = np.column_stack([y + 0.3 * rng.normal(size=60), rng.normal(size=60)])
    >>> clf = SafeSVC(C=10.0, random_state=0).fit(X, y)
    >>> clf.predict([[0.0, 2.0], [1.0, -2.0]])
    array([0, 1])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        bounds: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        norm: float = 2,
        validation: Any = 0.3,
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.bounds = bounds
        self.norm = norm
        self.validation = validation
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    __metadata_request__fit: ClassVar = dict.fromkeys(ERRORS, UNUSED)  # they are to be learnt

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self, X: Gaussians | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the sizes of the errors, and fit the model.

        A fit that is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Training examples; Gaussians must be certain, since their errors are to be learnt.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples, in fits and in the validation loss.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, labels, weights or parameters that make no sense, with the argument, the row
            and the value.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` steps end before the validation loss comes to rest, or if a fit for given
            sizes does not end at its minimum.
        """
        with self._all_or_nothing(), threadpool_limits(self.n_threads, "blas"):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        q = self._check_parameters()
        data, y, sample_weight = self._read_training_data(X, y, None, None, sample_weight)
        if not data.covariances.certain:
            raise ValueError(
                "X has errors, and SafeSVC learns them; pass the means alone, or find the scale of "
                "given errors by calibrate_scale"
            )
        self.classes_, codes = encode_labels(y)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: y has {len(self.classes_)} classes; wrap SafeSVC in "
                "sklearn's OneVsRestClassifier"
            )
        weights = raw_weights(self.classes_, codes, sample_weight, self.class_weight)
        training = _Examples.of(data.mean, codes, weights)
        if validation.is_given(self.validation):
            parts = [(training, self._given_validation())]
        else:
            if validation.is_fraction(self.validation):
                training = training.distinct()
                codes, weights = (training.y > 0.0).astype(codes.dtype), training.weights
            rows = validation.split(
                self.validation, self.classes_, codes, weights, self.random_state
            )
            parts = [(training.take(fitted), training.take(judging)) for fitted, judging in rows]
        low, high = self._read_bounds(data.shape[1], self._labels_of(X))
        search = _SizeSearch(parts, low, high, self.C, q, fit_intercept=self.fit_intercept)
        found = descend_in_box(
            search.loss_and_gradient, search.starts(), self.max_iter, self.tol, verbose=self.verbose
        )
        variances = search.variances(found.point)
        self.std_ = np.sqrt(variances)
        self.validation_losses_ = found.losses
        self.n_iter_ = len(found.losses) - 1
        if validation.is_given(self.validation):
            (problem, _, _), (fit, objective) = search.parts[0], search.best_fits[0]
        else:
            problem = training.problem(self.C, q, fit_intercept=self.fit_intercept)
            fit, objective, converged = fit_robust(problem, variances)
            search.converged &= converged
        if not search.converged:
            warn_user(
                "rounding keeps a fit for given sizes of the errors from its minimum, so that the "
                "sizes may be others than the best; standardise the features, or decrease C"
            )
        coef, intercept = problem.model(fit)
        self.objective_ = objective * self.C * float(training.weights.sum())
        self.coef_, self.intercept_ = coef[np.newaxis], np.array([intercept])
        return self

    def _check_parameters(self) -> float:
        """Check all parameters but bounds and validation data; return the conjugate of the norm."""
        require_number(self.C, "C")
        require_number(self.tol, "tol", or_zero=True)
        require_count(self.max_iter, "max_iter")
        thread_count(self.n_threads)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        if self.norm == np.inf:
            return 1.0
        require_number(self.norm, "norm")
        if self.norm <= 1:
            raise ValueError(f"norm must be above 1, got {self.norm!r}; near 1 few features count")
        return float(self.norm) / (float(self.norm) - 1.0)

    def _read_bounds(self, n_features: int, labels: Labels) -> tuple[Array, Array]:
        """Return the smallest and the largest sizes of all features, in their order."""
        if not isinstance(self.bounds, tuple | list | np.ndarray) or len(self.bounds) != 2:
            raise ValueError(f"bounds must be a pair (smallest, largest), got {self.bounds!r}")
        sides = []
        for i, given in enumerate(self.bounds):
            name = f"bounds[{i}]"
            side = reading.as_float_array(given, name).astype(np.float64)
            if side.shape not in ((), (n_features,)):
                raise ValueError(
                    f"{name} has shape {side.shape}; give one number or {n_features}, one for each "
                    "feature"
                )
            side = paired(side, given, name, labels, "X", rows=False)
            side = np.broadcast_to(side, n_features)
            _refuse(~((side >= 0.0) & (side <= 1e75)), name, side, "it must be finite and >= 0")
            sides.append(side)
        low, high = sides
        _refuse(low > high, "bounds[0]", low, "it must not be above bounds[1]")
        return low, high

    def _given_validation(self) -> _Examples:
        """Return the examples that were given to judge by."""
        means, codes = validation.read_given(self.validation, self._read_means, self.classes_)
        weights = None
        if self.class_weight is not None and len(np.unique(codes)) == 2:
            weights = raw_weights(self.classes_, codes, None, self.class_weight)
        return _Examples.of(means, codes, weights)


def _refuse(bad: NDArray[np.bool_], name: str, values: Array, rule: str) -> None:
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"{name} of feature {k} is {values[k]:g}; {rule}")


class _Examples(NamedTuple):
    """Means, labels -1 and +1, and weights."""

    X: Array
    y: Array
    weights: Array

    @classmethod
    def of(cls, means: NDArray[Any], codes: NDArray[Any], weights: Array | None) -> Self:
        """Return examples of classes 0 and 1, whose weights are 1 unless they are given."""
        X, y = means.astype(np.float64, copy=False), np.where(codes > 0, 1.0, -1.0)
        return cls(X, y, np.ones(len(y)) if weights is None else weights)

    def distinct(self) -> _Examples:
        """Return each example once, with the sum of its weights, those of weight 0 left out.

        So a repeated example cannot be fitted and judge the fit as well, and it is the same as one
        of a higher weight; nor does the draw depend on the order.
        """
        rows = self.weights > 0.0
        table = np.column_stack([self.y, self.X])[rows]
        table, places = np.unique(table, axis=0, return_inverse=True)
        weights = np.zeros(len(table))
        np.add.at(weights, places, self.weights[rows])
        return _Examples(np.ascontiguousarray(table[:, 1:]), table[:, 0], weights)

    def take(self, rows: NDArray[np.intp]) -> _Examples:
        """Return some of the examples."""
        return _Examples(self.X[rows], self.y[rows], self.weights[rows])

    def problem(self, C: float, q: float, *, fit_intercept: bool) -> SmoothedRobust:
        """Return the problem of the lower level."""
        total = float(self.weights.sum())
        return SmoothedRobust(
            self.X, self.y, self.weights / total, 1.0 / (C * total), q, fit_intercept=fit_intercept
        )


class _SizeSearch:
    """The upper level: the validation loss as a function of the variances in units of the box.

    Variances and not sizes, because every derivative by a size vanishes where the size is 0.
    """

    def __init__(
        self,
        parts: list[tuple[_Examples, _Examples]],
        low: Array,
        high: Array,
        C: float,
        q: float,
        *,
        fit_intercept: bool,
    ) -> None:
        self.low, self.width = np.square(low), np.square(high) - np.square(low)
        self.parts = []
        for fitted, judging in parts:
            problem = fitted.problem(C, q, fit_intercept=fit_intercept)
            sides = judging.y[:, np.newaxis] * problem.rows(judging.X, fit_intercept=fit_intercept)
            self.parts.append((problem, sides, judging.weights / judging.weights.sum()))
        # where each fit begins; the fits of the least loss, each with its J
        self.points: list[Array | None] = [None] * len(self.parts)
        self.converged, self.least = True, np.inf
        self.best_fits: list[tuple[Array, float]] = []

    def variances(self, point: Array) -> Array:
        """Return the variances of a point of the unit box."""
        return np.asarray(self.low + point * self.width)

    def starts(self) -> list[Array]:
        """Return points whose sizes are shares of the largest."""
        largest = self.low + self.width
        shares = [np.square(share) * largest - self.low for share in _SHARES]
        width = np.where(self.width > 0.0, self.width, 1.0)
        return [np.clip(share / width, 0.0, 1.0) for share in shares]

    def loss_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Return the mean over the parts of the validation loss, and its gradient."""
        variances, loss, gradient = self.variances(point), 0.0, np.zeros_like(point)
        fits = []
        for i, (problem, sides, weights) in enumerate(self.parts):
            fit, objective, converged = fit_robust(problem, variances, self.points[i])
            self.points[i], self.converged = fit, self.converged and converged
            fits.append((fit, objective))
            psi, slope, _ = smoothed_hinge(1.0 - sides @ fit)
            loss += float(weights @ psi)
            gradient += problem.hypergradient(fit, variances, -(weights * slope) @ sides)
        if loss < self.least:
            self.least, self.best_fits = loss, fits
        return loss / len(self.parts), np.asarray(gradient * self.width / len(self.parts))
