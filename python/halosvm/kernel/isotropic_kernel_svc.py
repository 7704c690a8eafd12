"""Classification by a kernel, with isotropic errors in its feature space: IsotropicKernelSVC.

Points with one standard deviation each and labels enter; coefficients of the points, decision
values and their spread leave. In the span of the points the problem is that of `UncertainSVC`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianClassifier, GaussianEstimator
from halosvm.checks.frames import labels_of, paired
from halosvm.checks.parameters import thread_count
from halosvm.checks.reading import as_float_array
from halosvm.checks.targets import encode_labels, raw_weights, weighted_rows
from halosvm.checks.units import refuse, text
from halosvm.core.abandonable import eigh
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.kernel.expansions import expansion_values
from halosvm.kernel.expected_kernel import ExpectedKernel, check_kernel
from halosvm.kernel.training_gram import cached, require_memory
from halosvm.linear.linear_fit import BATCH_SOLVERS, Settings, fit_linear

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.checks.frames import Labels

    Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-13  # eigenvalues of the Gram matrix below this share of the largest are dropped
_MATRICES = (
    5  # at a time: the Gram matrix, a copy, the eigenvectors, and twice its size to find them
)


class IsotropicKernelSVC(GaussianClassifier, GaussianEstimator):
    r"""Kernel support vector machine for examples with isotropic errors in the feature space.

    The image of example i is normal around :math:`\varphi(x_i)` with the standard deviation
    :math:`\sigma_i` in every direction of the kernel's feature space, and is charged the expected
    hinge loss (KSVM-iGSU):

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i\, E \max(0, m_i + s_i Z), \quad
        m_i = 1 - y_i (\langle w, \varphi(x_i) \rangle + b), \quad s_i = \sigma_i |w|

    With all errors zero this is the kernel support vector machine. More than two classes are
    handled one against the rest.

    Errors are NOT those of the features: they have the unit of :math:`|\varphi(x)|`, the root of
    k(x, x), which is 1 for "rbf" and "laplacian". For errors of measured features, of any shape,
    use `UncertainKernelSVC`, which averages the kernel over them.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser, as in `UncertainSVC`.
    kernel : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
    gamma, degree, coef0
        Of the kernel, as in `expected_kernel` for certain points; gamma="scale" counts examples by
        their weights.
    solver, tol, max_iter, class_weight, fit_intercept, n_threads
        As in `UncertainSVC`, without the solver "sgd".
    memory : str, path, joblib.Memory or None, default=None
        Where to keep the decompositions of Gram matrices, as in `UncertainKernelSVC`: a search over
        C or over the sizes of errors computes that of each fold once for each kernel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order. With two classes, `classes_[1]` is the positive one.
    support_ : ndarray of shape (n_support,)
        Rows of the examples whose coefficients are not exactly zero: as a rule all of positive
        weight, since the coefficients are computed in the span of the examples, not one by one.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Those examples.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Coefficients of w = sum_j dual_coef_[j] phi(support_vectors_[j]); a row per class if there
        are more than two.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b.
    objective_, suboptimality_, n_iter_, status_
        Of the fit, as in `UncertainSVC`.
    gamma_ : ndarray of shape (1,) or (n_features,)
        The gamma in use.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.
    feature_units_in_ : tuple of units
        Units of the features, if the training data had units; examples to predict need theirs too,
        and are converted.

    See Also
    --------
    UncertainKernelSVC : Errors in the features, of any covariance.
    UncertainSVC : The linear machine, for many examples.

    Notes
    -----
    w lies in the span of the examples. The eigendecomposition of their Gram matrix gives them
    coordinates there, in which the problem is linear with isotropic covariances; eigenvalues below
    1e-13 of the largest, which are rounding, are dropped. It takes time of the order n_samples^3.

    References
    ----------
    C. Tzelepis, V. Mezaris and I. Patras, "Video Event Detection Using Kernel Support Vector
    Machine with Isotropic Gaussian Sample Uncertainty (KSVM-iGSU)", MultiMedia Modeling (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import IsotropicKernelSVC
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> clf = IsotropicKernelSVC(C=10.0, gamma=1.0).fit(X, [0, 0, 1, 1], X_std=np.full(4, 0.1))
    >>> clf.predict([[0.1, 0.1], [0.9, 0.1]])
    array([0, 1])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: ArrayLike | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        solver: str = "auto",
        tol: float = 1e-9,
        max_iter: int = 1000,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        n_threads: int | None = None,
        memory: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.n_threads = n_threads
        self.memory = memory

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Self:
        """Fit the model; a fit that is interrupted leaves the estimator as it was.

        LAPACK cannot be told to stop. Ctrl-C ends the fit at once nevertheless, but an
        eigendecomposition that has begun is left behind in a thread and finished there.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Training examples; Gaussians must have zero or isotropic covariances, whose variances
            are the sigma_i^2.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples' losses.
        X_std : array-like of shape (n_samples,), optional
            The sigma_i, in the unit of the feature space.
        X_cov : Covariances or array-like of shape (n_samples,), optional
            The sigma_i^2.

        Returns
        -------
        self

        Raises
        ------
        MemoryError
            If the Gram matrix and its decomposition would not fit into memory.
        ValueError, TypeError
            For data, labels, weights or parameters that make no sense.

        Warns
        -----
        ConvergenceWarning
            As `UncertainSVC.fit`.
        """
        with self._all_or_nothing():
            return self._fit(X, y, X_std, X_cov, sample_weight)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any) -> Self:
        settings = Settings.of(self, BATCH_SOLVERS)  # before the decomposition, which takes long
        check_kernel(self.kernel, self.degree, self.coef0, argument="kernel")
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        variances = _feature_space_variances(data, _argument(X, X_std))
        classes, codes = encode_labels(y)
        used, weights = weighted_rows(classes, codes, sample_weight)
        codes = codes[used]
        if len(used) < len(data):
            data, variances = data[used], variances[used]
        points = Gaussians(data.mean)
        require_memory(len(points), _MATRICES)
        kernel = ExpectedKernel.for_examples(
            points, weights, self.kernel, self.gamma, self.degree, self.coef0
        )
        decompose = cached(self.memory, decompose_gram)
        values, vectors = decompose(points, kernel, thread_count(self.n_threads))
        scales = np.sqrt(values)
        costs = raw_weights(classes, codes, weights, self.class_weight)
        images = _in_their_span(vectors * scales, variances)
        result = fit_linear(images, classes, codes, costs, settings)
        coefficients = (result.coef / scales) @ vectors.T
        nonzero = coefficients.any(axis=0)
        self.gamma_, self._kernel = kernel.gamma, kernel
        self.classes_ = classes
        self.support_ = used[nonzero]
        self.support_vectors_ = points.mean[nonzero]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, nonzero])
        self.intercept_ = result.intercept
        result.describe(self)
        self._lengths = np.linalg.norm(result.coef, axis=1)  # |w|
        return self

    def decision_function(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the decision values <w, phi(x)> + b, for uncertain examples their means.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; an error in the feature space does not change the mean decision
            value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values speak for `classes_[1]`, or for the class of the column.
        """
        check_is_fitted(self)
        points = as_gaussians(self._read_means(X, X_std, X_cov))
        support = Gaussians(self.support_vectors_)
        values = expansion_values(
            points,
            support,
            self.dual_coef_,
            self.intercept_,
            self._kernel,
            thread_count(self.n_threads),
        )
        return values[:, 0] if len(self.classes_) == 2 else values

    def decision_std(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation sigma |w| of each example's decision value.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`, with sigma in the unit of the feature space; those without errors
            are certain.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        data = self._read_with_errors(X, X_std, X_cov)
        sigmas = np.sqrt(_feature_space_variances(data, _argument(X, X_std)))
        spreads: Array = np.multiply.outer(sigmas, self._lengths)
        return spreads[:, 0] if len(self.classes_) == 2 else spreads

    def _with_errors(self, X: Any, labels: Labels | None, X_std: Any, X_cov: Any) -> Any:
        """Read one error for each row, which has the unit of the feature space, not that of X."""
        if isinstance(X, Gaussians):
            if X.feature_units is not None and not X.covariances.certain:
                raise ValueError(
                    f"X has errors with {text(X.feature_units)}, the feature space has no unit; "
                    "give the means alone as X, and errors in the feature space as X_std"
                )
            return super()._with_errors(X, labels, X_std, X_cov)
        if labels is None:
            labels = labels_of(X, "X")
        points = as_gaussians(X, labels=labels)
        n, d = points.shape
        for argument, value in (("X_std", X_std), ("X_cov", X_cov)):
            refuse(value, argument)
        if n == d and X_cov is None and np.shape(X_std) == (n,):  # also where both fit
            std = paired(as_float_array(X_std, "X_std"), X_std, "X_std", labels, "X")
            X_std, X_cov = None, Covariances.from_std(std, d, argument="X_std")
        elif n == d and X_std is None and np.shape(X_cov) == (n,):
            variance = paired(as_float_array(X_cov, "X_cov"), X_cov, "X_cov", labels, "X")
            X_cov = Covariances.from_variance(variance, d, argument="X_cov")
        data = super()._with_errors(points.mean, labels, X_std, X_cov)
        return data.replaced(feature_units=points.feature_units)

    def _check_features(self, X: Any) -> Any:
        """Convert the means alone."""
        return super()._check_features(X).replaced(covariances=X.covariances)


def _argument(X: Any, X_std: Any) -> str:
    """Return the name of the argument that the errors came in."""
    if isinstance(X, Gaussians):
        return "X"
    return "X_cov" if X_std is None else "X_std"


def _feature_space_variances(data: Gaussians, argument: str) -> Array:
    """Return one variance for each example."""
    if not storage_of(data.covariances).spherical:
        raise ValueError(
            f"{argument} has {data.covariances.kind} covariances; the feature space of a kernel "
            "takes one standard deviation or variance for each example, of shape (n_samples,). For "
            "errors of each feature use UncertainKernelSVC"
        )
    return data.covariances.trace() / data.shape[1]


def decompose_gram(X: Gaussians, kernel: ExpectedKernel, n_threads: int) -> tuple[Array, Array]:
    """Return the eigenvalues of the Gram matrix that are not rounding, and their eigenvectors."""
    K = kernel.gram(X, n_threads=n_threads)
    values, vectors = eigh(K)
    if values[-1] <= 0.0:  # all examples lie at the origin of the feature space
        return np.ones(1), np.zeros((len(K), 1))
    kept = values > RANK_TOLERANCE * values[-1]
    return values[kept], vectors[:, kept]


def _in_their_span(coordinates: Array, variances: Array) -> Gaussians:
    """Return the examples in an orthonormal basis of their span."""
    coordinates = np.ascontiguousarray(coordinates)
    if not variances.any():
        return Gaussians(coordinates)
    return Gaussians(coordinates, cov=Covariances.isotropic(variances, coordinates.shape[1]))
