"""Propagate: a transformer of scikit-learn for Gaussians.

Examples with errors enter; their images under the transformer, with the errors mapped along, leave.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianEstimator, require_index_of
from halosvm.checks.gaussians_out import (
    GaussiansOut,
    has_errors,
    refuse_mixtures,
    require_representable,
)
from halosvm.checks.parameters import require_count
from halosvm.gaussians.centring import column_spreads
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians

from .approximations import Problem, by_draws, by_points, by_slopes
from .known_maps import KnownMap, affine, known_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

_METHODS = ("auto", "linear", "unscented", "monte_carlo")
_ROWS = 100  # on which a given Jacobian is tried


def _transformer_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "transformer_", self.transformer), name)


class Propagate(GaussiansOut, GaussianEstimator):
    r"""A transformer of scikit-learn for examples with errors.

    An affine transformer maps :math:`N(x, S)` to :math:`N(A x + t, A S A')`, exactly; scalers, PCA,
    TruncatedSVD, FastICA, LinearDiscriminantAnalysis, selectors, random projections, and
    ColumnTransformer, FeatureUnion and Pipeline of such are known to be affine. The image of a
    Gaussian under any other transformer is not a Gaussian, and is approximated by one of equal mean
    and covariance, as `method` says.

    Parameters
    ----------
    transformer : transformer
        A clone of it is fitted to the means of the examples. One that is fitted already stays as it
        is in scikit-learn's ``FrozenEstimator(transformer)``.
    method : {"auto", "linear", "unscented", "monte_carlo"}, default="auto"
        What to do with a transformer that is not affine; affine ones are mapped exactly by all.

        "auto"
            Refuse it.
        "linear"
            Take it as linear about each mean: the mean becomes its image, the covariance
            :math:`J S J'`. Errs by terms with the second derivatives of the transformer, times the
            variance; for errors that are small beside the distance over which slopes change.
        "unscented"
            Look at the images of the mean and of :math:`\pm \sqrt 3` standard deviations in each
            direction of a factor of S. The shift of the mean is exact for polynomials up to degree
            5 of one direction, the covariance for those up to degree 2; what two directions do to
            each other beyond a sum is neglected, as products of two features are.
        "monte_carlo"
            Take mean and covariance of draws from each example. They err at random, the mean by
            :math:`1/\sqrt n` standard deviations and a standard deviation by about
            :math:`1/\sqrt{2 n}` of itself for n draws.
    jacobian : array-like of shape (n_outputs, n_features) or callable, optional
        The matrix A, for a transformer that is affine though nothing here knows it; it is tried on
        the means. Or a function that returns the Jacobian at each of n means, (n, n_outputs,
        n_features), or (n, n_features) where each output depends on the feature of its place alone,
        for "linear", which else takes differences of fourth order.
    n_draws : int, default=1000
        Number of draws of "monte_carlo".
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; with an integer each call draws the same.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    known_map_ : tuple
        What is known of it: ``known_map_.matrix`` is the sparse A of an affine transformer, None of
        others, ``known_map_.inputs`` the one feature that each output depends on, if that is so.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    UncertainStandardScaler : Scaling that can take the errors into account.

    Notes
    -----
    The result has the smallest kind of covariances that holds it. Scaling and selection keep every
    kind but that isotropic ones become diagonal unless all factors are equal; PCA and projections
    keep low rank, and isotropic errors isotropic where the directions are orthonormal. Errors that
    were independent become dependent where outputs share features: low_rank if there are more
    outputs than features, else full, for no smaller kind is faithful. Where each output depends on
    one feature alone, as of logarithms and PowerTransformer, approximations keep independent errors
    so. Certain examples stay certain.

    An array without errors becomes what the transformer makes of it. Units of features are taken
    off, for nothing tells the units of the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, Propagate
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> x = np.array([[1.0, 2.0, 0.5], [2.0, 4.1, 0.3], [3.0, 5.9, 0.1], [4.0, 8.0, 0.2]])
    >>> X = Gaussians(x, std=np.full(4, 0.1))
    >>> Propagate(PCA(2)).fit_transform(X).covariances
    Covariances(kind='isotropic', n_samples=4, n_features=2, dtype=float64)
    >>> logs = Propagate(FunctionTransformer(np.log), method="linear").fit_transform(X)
    >>> np.sqrt(logs.covariances.variances()[0]).round(3)
    array([0.1 , 0.05, 0.2 ])
    """

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = {"sample_weight": None}

    def __init__(
        self,
        transformer: Any,
        method: str = "auto",
        *,
        jacobian: Any = None,
        n_draws: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.transformer = transformer
        self.method = method
        self.jacobian = jacobian
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the transformer to the means.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples, or only their means.
        y : array-like of shape (n_samples,), optional
            Labels or values, for transformers that learn from them.
        X_std : array-like of shape (n_samples, n_features) or (n_samples,), optional
            Standard deviations of the errors.
        X_cov : Covariances or array-like, optional
            Covariances of the errors; an array is read by its dimensions, as by `Gaussians`.
        **fit_params
            What else the `fit` of the transformer takes, as `sample_weight`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data and parameters that make no sense, and with method="auto" for a transformer
            that is not known to be affine.
        """
        with self._all_or_nothing():
            self._check_parameters()
            refuse_mixtures(X)
            data = self._read_new_examples(X, X_std, X_cov)
            require_index_of(X, "sample_weight", fit_params.get("sample_weight"))
            table = self._table(data.mean)
            self.transformer_ = clone(self.transformer).fit(table, y, **fit_params)
            self.known_map_ = self._known_map(data.mean)
            if self.known_map_.matrix is None and self.method == "auto":
                raise ValueError(
                    f"{self.known_map_.not_affine} is not known to be affine, and a Gaussian has "
                    "no Gaussian image under any other map; name an approximation, "
                    "method='linear', 'unscented' or 'monte_carlo', or give its matrix as jacobian"
                )
            if self.known_map_.in_steps and self.method in ("linear", "unscented"):
                raise ValueError(
                    f"{self.known_map_.not_affine} makes steps, whose slopes say nothing; use "
                    "method='monte_carlo'"
                )
            self._spreads = column_spreads(data.mean)
        return self

    def transform(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Any:
        """Return the images of examples.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`.

        Returns
        -------
        Gaussians or ndarray of shape (n_samples, n_outputs)
            An array for an array without errors.
        """
        check_is_fitted(self)
        self._check_parameters()
        refuse_mixtures(X)
        # Other images of a mean are what they are, with errors or without.
        shifted = self.known_map_.matrix is None and self.method in ("unscented", "monte_carlo")
        data = (self._read_with_errors if shifted else self._read_data)(X, X_std, X_cov)
        means = self._apply(data.mean)
        if not has_errors(X, X_std, X_cov):
            return means
        names = None
        if hasattr(self, "feature_names_in_") and hasattr(self, "get_feature_names_out"):
            names = np.asarray(self.get_feature_names_out(), dtype=object)
        with np.errstate(over="ignore", invalid="ignore"):  # which the check of the range names
            means, covariances = self._image(data, means)
        image = data.mapped_to(
            means, covariances, matrix=self.known_map_.matrix, feature_names=names
        )
        return require_representable(image, "X, transformed,")

    @available_if(_transformer_has("get_feature_names_out"))  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the outputs, which are those of the transformer.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the features.

        Returns
        -------
        ndarray of str objects of shape (n_outputs,)
        """
        check_is_fitted(self)
        names: NDArray[np.object_] = self.transformer_.get_feature_names_out(input_features)
        return names

    def _image(self, data: Gaussians, means: Any) -> tuple[Any, Covariances]:
        A, k = self.known_map_.matrix, means.shape[1]
        if data.covariances.certain or len(data) == 0:
            return means, Covariances.zero(len(data), k)
        if A is not None:
            return means, data.covariances.mapped(A)
        problem = Problem(self._apply, data, k, self.known_map_.inputs, self._spreads)
        if self.method == "linear":
            return means, by_slopes(problem, self.jacobian)
        if self.method == "unscented":
            shifts, covariances = by_points(problem)
        else:
            rng = check_random_state(self.random_state)
            shifts, covariances = by_draws(problem, self.n_draws, rng)
        return (means + shifts).astype(means.dtype, copy=False), covariances

    def _apply(self, values: NDArray[Any]) -> Any:
        """Return what the transformer makes of an array, as a dense array of floats."""
        result = self.transformer_.transform(self._table(values))
        if isinstance(result, Gaussians):
            raise TypeError(
                f"transformer is {type(self.transformer_).__name__}, which takes Gaussians by "
                "itself; Propagate is for transformers of arrays"
            )
        result = result.toarray() if sparse.issparse(result) else np.asarray(result)
        kept = result.dtype if result.dtype in (np.float64, np.float32) else np.float64
        return np.ascontiguousarray(result, kept)

    def _table(self, values: NDArray[Any]) -> Any:
        """Return an array, with the names of its columns if it has some that can be kept."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return values
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return values
        return pandas.DataFrame(values, columns=names, copy=False)

    def _known_map(self, means: NDArray[Any]) -> KnownMap:
        if self.jacobian is None or callable(self.jacobian):
            return known_map(self.transformer_, self.n_features_in_)
        matrix = self.jacobian
        if not sparse.issparse(matrix):
            matrix = np.asarray(matrix, dtype=np.float64)
        step = max(1, len(means) // _ROWS)
        tried = means[::step]
        images = self._apply(tried)
        expected = (images.shape[1], means.shape[1])
        if matrix.shape != expected:
            raise ValueError(f"jacobian has shape {matrix.shape}, expected {expected}")
        known = affine(matrix)
        x = tried.astype(np.float64)
        moved, told = images - images[0], (x - x[0]) @ known.matrix.T
        size = np.abs(images) + np.abs(images[0]) + (np.abs(x) + np.abs(x[0])) @ abs(known.matrix).T
        bad = np.argwhere(~(np.abs(moved - told) <= np.sqrt(np.finfo(images.dtype).eps) * size))
        if bad.size:
            i, j = bad[0]
            raise ValueError(
                "jacobian is not that of the transformer: from row 0 to row "
                f"{i * step} of X output {j} changes by {moved[i, j]:g}, by jacobian it would by "
                f"{told[i, j]:g}"
            )
        return known

    def _check_parameters(self) -> None:
        if not isinstance(self.method, str) or self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {self.method!r}")
        require_count(self.n_draws, "n_draws")
        if self.n_draws < 2:
            raise ValueError("n_draws must be >= 2, got 1")
        if callable(self.jacobian) and self.method != "linear":
            raise ValueError(f"jacobian is a function, but method is {self.method!r}, not 'linear'")
        if not hasattr(self.transformer, "fit") or not hasattr(self.transformer, "transform"):
            raise TypeError(f"transformer must have fit and transform, got {self.transformer!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.transformer)
        tags.target_tags.required = inner.target_tags.required
        if inner.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = inner.transformer_tags.preserves_dtype
        tags.non_deterministic = self.method == "monte_carlo" or inner.non_deterministic
        return tags
