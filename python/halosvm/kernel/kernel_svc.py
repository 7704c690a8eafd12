"""Classification of Gaussians by an expected kernel: UncertainKernelSVC.

Gaussians and labels enter; support Gaussians, their coefficients, and decision values leave.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianClassifier
from halosvm.checks.parameters import (
    require_choice,
    require_count,
    require_number,
    thread_count,
)
from halosvm.checks.targets import (
    encode_labels,
    one_class_alone,
    raw_weights,
    weighted_rows,
)
from halosvm.core.user_warning import warn_user
from halosvm.kernel.dual import GAP_TO_TELL, DualSolver, iteration_limit, largest_gap, solve_dual
from halosvm.kernel.expansions import KernelExpansion, expansion_values
from halosvm.kernel.expected_kernel import ExpectedKernel, check_diagonal, check_kernel
from halosvm.kernel.given_kernel import PrecomputedKernel, given_kernel
from halosvm.kernel.level2 import check_level2, resolve_tau
from halosvm.kernel.spread import SPREADS
from halosvm.kernel.training_gram import require_memory, training_gram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]

_SHAPES = ("ovr", "ovo")


class UncertainKernelSVC(GaussianClassifier, KernelExpansion):
    r"""Support vector machine with an expected kernel, for examples that are Gaussians or mixtures.

    Examples are compared by :math:`E\, k(x_i, x_j)` for independent :math:`x_i \sim X_i` and
    :math:`x_j \sim X_j`; the decision value of an uncertain example is the expectation of that of
    the points it may be. With all examples certain it is scikit-learn's `SVC`, which solves the
    dual problem here too.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser, as in `SVC`; infinite for a hard margin.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        "precomputed": X holds kernel values, a column for each training example, as that of
        `expected_kernel` does. A function of two sets of examples returns their kernel values; it
        gets arrays if both are certain, else Gaussians or GaussianMixtures.
    gamma, degree, coef0, normalize
        Of the other kernels, as in `expected_kernel`, but coef0 is 0 unless given, as in `SVC`, and
        gamma="scale" counts the covariances, and
        examples by their weights.
    diagonal : {"product", "unit"}, default="product"
        Diagonal of the Gram matrix that is trained on, as in `expected_kernel`: "unit" adds a ridge
        to each uncertain example. Predictions use the product formula always.
    level2, tau
        The level-2 kernel of `expected_kernel`, a Gaussian of the distances by the expected kernel.
        Decision values are no expectations then. "median" is that of the training examples by their
        weights, in predictions too.
    tol : float, default=1e-7
        Tolerance of the dual solver, at which weights equal repeated rows to seven digits.
    max_iter : int or None, default=None
        Limit of its iterations. None is a million and a hundred for each row; -1 is no limit.
    cache_size : float, default=200
        Size of its cache in MB.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of each class. "balanced" counts examples by their weights, so that
        a weight of 2 equals a repetition; `SVC` counts rows.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What `decision_function` returns of more than two classes, as in `SVC`: a value for each
        class, or for each pair of classes, beside which `decision_std` stands.
    spread : {"auto", "exact", "slopes", "draws"}, default="auto"
        How `decision_std` finds the standard deviation of a decision value, and with it
        `UncertainCalibratedClassifier`; it can be set after the fit.

        - "exact": in closed form, for "rbf", "linear" and "poly" of degree 1 or 2. With "rbf" it
          takes all pairs of support examples for each example: milliseconds from 1,000 on.
        - "draws": of points drawn from each example, always the same way, for any kernel: 64, or
          twice the number of features between 32 and 128. Exact where the decision value is linear
          over an example of at most 128 features; else within about a tenth.
        - "slopes": to first order, :math:`\sqrt{g'\Sigma g}` with the slopes g at the mean; for
          errors far below the bandwidth alone.
        - "auto": "exact" where there is a closed form and, with "rbf", no more than 256 support
          examples, or 256 / r of covariances with r factors, r = n_features of full ones; else
          "draws".
    n_threads : int or None, default=None
        Number of threads for kernels; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.
    memory : str, path, joblib.Memory or None, default=None
        Where to keep Gram matrices of training examples, as in `Pipeline`: a search over C, `tol`
        or `class_weight` computes that of each fold once for each kernel. Kernels of different
        gamma share nothing: of uncertain examples the determinant and the quadratic form both
        depend on gamma and the covariances together. A matrix takes 8 n_samples^2 bytes on disk, is
        found by the content of its examples, and is not deleted; clear it after an upgrade.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order. With two classes, `classes_[1]` is the positive one.
    support_ : ndarray of shape (n_support,)
        Rows of the support examples in the training data.
    support_gaussians_ : Gaussians or GaussianMixtures
        The support examples, all that is kept of the data; not of a precomputed kernel.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Their means.
    n_support_ : ndarray of shape (n_classes,)
        How many there are of each class.
    coef_ : ndarray of shape (n_classes * (n_classes - 1) / 2, n_features)
        With kernel="linear" the w of each pair of classes, as in `SVC`.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support)
        Coefficients of the support examples, times their labels, as in `SVC`.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Intercepts, one for each pair of classes.
    gamma_ : ndarray of shape (1,) or (n_features,)
        The gamma in use; None of a kernel of the user's.
    tau_ : float or None
        The tau in use, None without a level-2 kernel.
    n_iter_ : int
        Largest number of iterations among the pairs of classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.
    feature_units_in_ : tuple of units
        Units of the features, if the training data had units; examples to predict need theirs too,
        and are converted.

    See Also
    --------
    UncertainSVC : The linear machine with the expected hinge loss, for many examples.
    expected_kernel : The Gram matrix.

    References
    ----------
    Y. Chen, T. T. Georgiou and A. Tannenbaum, "Probabilistic Kernel Support Vector Machines"
    (2019), with the sign of the determinant's exponent corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import UncertainKernelSVC
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> clf = UncertainKernelSVC(C=10.0, gamma=1.0).fit(X, [0, 0, 1, 1], X_std=np.full((4, 2), 0.1))
    >>> clf.predict([[0.1, 0.1], [0.9, 0.1]], X_std=0)
    array([0, 1])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: ArrayLike | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        diagonal: str = "product",
        normalize: bool = False,
        level2: str | None = None,
        tau: float | str = "median",
        tol: float = 1e-7,
        max_iter: int | None = None,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        spread: str = "auto",
        n_threads: int | None = None,
        memory: Any = None,
    ) -> None:
        self.C = C
        self.kernel: Any = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.diagonal = diagonal
        self.normalize = normalize
        self.level2 = level2
        self.tau = tau
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.spread = spread
        self.n_threads = n_threads
        self.memory = memory

    def fit(
        self,
        X: Examples | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Self:
        """Fit the model; a fit that is interrupted leaves the estimator as it was.

        `SVC` cannot be told to stop. Ctrl-C ends the fit at once nevertheless, but leaves `SVC`
        behind in a thread: it goes on with the pair of classes that it is at, keeping one processor
        busy and the Gram matrix in memory, until that is solved, `max_iter` is reached, or the
        process ends.

        Parameters
        ----------
        X : Gaussians, GaussianMixtures or array-like of shape (n_samples, n_features)
            Training examples, or only their means.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), optional
            Factors for C of each example.
        X_std, X_cov : array-like, optional
            Standard deviations or covariances, as in `UncertainSVC.fit`.

        Returns
        -------
        self

        Raises
        ------
        MemoryError
            If the Gram matrix would not fit into memory; nothing is computed then.
        ValueError, TypeError
            For data, labels, weights or parameters that make no sense.

        Warns
        -----
        ConvergenceWarning
            If the dual solver ends at `max_iter` or above the minimum, or if one class is predicted
            of all examples.
        """
        with self._all_or_nothing():
            return self._fit(X, y, X_std, X_cov, sample_weight)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        classes, codes = encode_labels(y)
        used, weights = weighted_rows(classes, codes, sample_weight)
        # `SVC` drops the others itself, but then counts support examples among the rest.
        codes = codes[used]
        costs = raw_weights(classes, codes, weights, self.class_weight)
        require_memory(len(used))
        given = given_kernel(self.kernel)
        kernel, gram = (
            self._expected_gram(data[used], weights)
            if given is None
            else (given, given.training_gram(data, used))
        )
        dual = solve_dual(
            gram,
            codes,
            costs,
            C=self.C,
            tol=self.tol,
            max_iter=iteration_limit(len(used)) if self.max_iter is None else self.max_iter,
            cache_size=self.cache_size,
        )
        self.gamma_, self.tau_, self._kernel = kernel.gamma, kernel.tau, kernel
        self.classes_ = classes
        self.support_ = used[dual.support_]
        self.__dict__.pop("support_gaussians_", None)
        if self.kernel != "precomputed":
            self.support_gaussians_ = data[self.support_]
        self.n_support_ = dual.n_support_
        self.dual_coef_ = dual.dual_coef_
        self.intercept_ = dual.intercept_
        self.n_iter_ = int(dual.n_iter_.max())
        values = gram[:, dual.support_] @ self._pairs.T + self.intercept_
        predicted = self._codes(values)
        self._tell(dual, values, codes, np.ones(len(codes)) if costs is None else costs)
        alone = one_class_alone(classes, predicted)
        if alone:
            warn_user(f"{alone}; try class_weight='balanced', or another C or gamma")
        return self

    def _tell(self, dual: DualSolver, values: Array, codes: NDArray[Any], costs: Array) -> None:
        """Warn unless the machine of each pair of classes is at the minimum of its objective."""
        if dual.fit_status_ == 1:
            warn_user(
                f"the dual solver ended at max_iter = {dual.max_iter} before tol = {self.tol:g} "
                "was reached; increase max_iter or tol, or standardise the features"
            )
            return
        gap = largest_gap(dual, self._pairs, values, codes, self.C * costs)
        if gap > GAP_TO_TELL:
            warn_user(
                f"the dual solver ended {gap:.2g} of the objective above its bound, as the "
                "kernels are large and differ by less than single precision tells; standardise the "
                "features, or decrease gamma or coef0"
            )

    def _expected_gram(self, data: Examples, weights: Array | None) -> tuple[ExpectedKernel, Array]:
        """Return a kernel that has a name, with all its parameters, and the Gram matrix."""
        kernel = ExpectedKernel.for_examples(
            data, weights, self.kernel, self.gamma, self.degree, self.coef0, self.normalize
        )
        memory, threads = self.memory, thread_count(self.n_threads)
        if self.level2 is not None:
            tau = resolve_tau(
                self.tau, data, lambda rows: training_gram(memory, rows, kernel, threads), weights
            )
            kernel = dataclasses.replace(kernel, tau=tau)
        return kernel, training_gram(memory, data, kernel, threads, self.diagonal)

    @property
    def coef_(self) -> Array:
        """The w of the decision values w'x + b, with kernel="linear" alone."""
        if self.kernel != "linear" or self.normalize or self.level2 is not None:
            raise AttributeError("coef_ is there with kernel='linear' alone")
        coef = np.asarray(self._pairs @ self.support_vectors_)
        coef.flags.writeable = False  # what is written into it would be lost
        return coef

    def _check_parameters(self) -> None:
        require_number(self.C, "C", or_infinity=True)
        for name in ("tol", "cache_size"):
            require_number(getattr(self, name), name)
        if isinstance(self.max_iter, bool) or self.max_iter not in (None, -1):
            require_count(self.max_iter, "max_iter")
        thread_count(self.n_threads)
        if given_kernel(self.kernel) is None:
            check_kernel(self.kernel, self.degree, self.coef0, self.normalize, "kernel")
            check_diagonal(self.diagonal, self.kernel, self.normalize)
            check_level2(self.level2, self.tau, self.diagonal)
        elif self.normalize or self.level2 is not None or self.diagonal != "product":
            raise ValueError("normalize, level2 and diagonal are of the kernels with a name alone")
        require_choice(self.decision_function_shape, "decision_function_shape", _SHAPES)
        require_choice(self.spread, "spread", SPREADS)

    def decision_function(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the decision values, for uncertain examples their expectations.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; those without covariances are certain.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Positive values speak for `classes_[1]`. Of more than two classes, with "ovr" the
            largest value tells the class that wins most pairs; with "ovo" these are the values of
            the pairs (0, 1), (0, 2), ..., (1, 2), ..., where positive ones speak for the first.

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        values = self._pair_values(X, X_std, X_cov)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return self._of_classes(values)

    def predict(
        self,
        X: Examples | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return the class label of each example, of many classes that which wins most pairs.

        Among classes that win as many the decision values of their pairs tell.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; a covariance changes the decision value.

        Returns
        -------
        ndarray of shape (n_samples,)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        codes = self._codes(self._pair_values(X, X_std, X_cov))
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def _codes(self, values: Array) -> NDArray[np.intp]:
        """Return the places of the classes that the decision values of all pairs speak for."""
        if len(self.classes_) == 2:
            return (values[:, 0] > 0).astype(np.intp)
        return np.asarray(self._of_classes(values).argmax(axis=1))

    def _of_classes(self, values: Array) -> Array:
        """Return a value for each class: the pairs that it wins, and a little by how much."""
        return np.asarray(_ovr_decision_function(values < 0, -values, len(self.classes_)))

    def _pair_values(self, X: Any, X_std: Any, X_cov: Any) -> Array:
        """Return the decision value of each pair of classes, (n_samples, n_pairs)."""
        check_is_fitted(self)
        data = self._read_with_errors(X, X_std, X_cov)
        threads = thread_count(self.n_threads)
        precomputed = isinstance(self._kernel, PrecomputedKernel)
        support = self.support_ if precomputed else self.support_gaussians_
        return expansion_values(data, support, self._pairs, self.intercept_, self._kernel, threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
