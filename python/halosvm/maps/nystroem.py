"""UncertainNystroem: features from kernel sections at landmarks, which make linear machines RBF.

Gaussians enter; Gaussians of their features leave, or points with the radius that bounded errors
move them by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halosvm import _core
from halosvm.checks.parameters import require_choice, thread_count
from halosvm.core.abandonable import eigh
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures, moments_of
from halosvm.kernel.expansions import expansion_values
from halosvm.kernel.expected_kernel import ExpectedKernel

from .feature_map import FeatureMap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]
    FloatArray = NDArray[np.floating[Any]]

# Eigenvalues of the landmarks' kernel below this part of the largest one are dropped: whitening
# would divide by them, and make of the rounding of covariances more than what else is lost.
_SMALLEST = 1e-8


class UncertainNystroem(FeatureMap):
    r"""Nystroem features of uncertain examples: they make a linear machine a kernel machine.

    With landmarks :math:`z_1, ..., z_m` drawn from the training examples, their kernel matrix
    :math:`K = U \Lambda U'` and the kernel sections :math:`h_j(x) = k(x, z_j)`, the features

    .. math:: \phi(x) = \Lambda^{-1/2} U'h(x)

    are the coordinates of x in the span of the landmarks, and their inner products the best
    approximation of the RBF kernel :math:`\exp(-\gamma |x - z|^2)` from there. Of an example
    :math:`X \sim N(x, \Sigma)` the expectation and the covariance of its features are known in
    closed form, and `transform` returns the Gaussian that has them, which is what is approximate:
    the features are not normal. `UncertainSVC` after this map is a kernel machine that takes time
    in proportion to the number of examples.

    Parameters
    ----------
    kernel : {"rbf"}, default="rbf"
        Of others the moments of sections have no closed form here.
    gamma : "scale", "median", float or array-like of shape (n_features,), default="scale"
        Inverse bandwidth of the kernel, one for all features or one for each. "scale" is
        1 / (n_features * variance of all values), in which errors count; "median" that of
        `median_gamma`.
    n_components : int, default=100
        Number m of landmarks, of all examples if there are not as many. Directions of the landmarks
        that are others' combinations are left out, so that there may be fewer features.
    landmarks : {"means", "gaussians"}, default="means"
        "means" are points. "gaussians" are the training examples with their errors; sections are
        then expected kernels :math:`h_j(x) = E\,k(x, Z_j)`, and the features span what
        `UncertainKernelSVC` would.
    covariance : {"low_rank", "diagonal", "full", "bound"}, default="low_rank"
        What is told of the features' covariance, beside their exact expectation:

        - "low_rank": factors :math:`E\,\phi'(X)\, R` with :math:`R R' = \Sigma`, that is the linear
          part of the features alone: an approximation from below, the better the smaller errors are
          to 1 / sqrt(gamma). Time like m D n_features for each example.
        - "diagonal": the exact variances alone; that features vary together is lost. Time like
          m^2 (D + n_features) for each example, as for "full".
        - "full": the exact covariance, D^2 numbers for each example.
        - "bound": for errors that are bounds instead of distributions, x + R u with
          :math:`|u|_p \le` `radius`. The mean is :math:`\phi(x)`, and of the covariance T
          :math:`\sqrt{w'Tw}` is what :math:`|w'(\phi(x + R u) - \phi(x))|` never exceeds. It is
          for ``UncertainSVC(loss="worst_case", radius=1)`` alone.
    output : {"auto", "gaussian", "mean"}, default="auto"
        What `transform` returns. "auto": Gaussians for Gaussians, mixtures and what comes with
        errors, an array for an array without. "gaussian": Gaussians of all, which are then certain.
        "mean": the array of the means alone, for any estimator of scikit-learn.
    radius, norm : float, default=1.0 and 2
        Of "bound": radius and p, 1, 2 or infinity, of the ball of u. With p = 2 the set is an
        ellipsoid; with infinity and diagonal covariances a box of `radius` standard deviations to
        either side. For other p than 2 the set depends on the root R: that of a diagonal is
        diagonal, factors are their own, and full matrices are refused.
    bound : {"kernel", "landmarks", "printed"}, default="kernel"
        Of "bound". "kernel": T is isotropic, from the distance in the kernel's feature space.
        "landmarks": T is diagonal, from the range of each section; it is smaller along the largest
        eigenvalues of K and much larger along the smallest. "printed": the paper's, of the same
        form but looser, for comparison. Both need landmarks="means".
    dtype : {float64, float32}, default=float64
        Type of the features; they are computed in float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks.
    n_threads : int or None, default=None
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.

    Attributes
    ----------
    landmarks_ : Gaussians
        The landmarks.
    landmark_indices_ : ndarray of shape (n_landmarks,)
        Their rows in the training data, ascending.
    projection_ : ndarray of shape (n_features_out, n_landmarks)
        :math:`\Lambda^{-1/2} U'`, the largest eigenvalue first.
    gamma_ : ndarray of shape (1,) or (n_features,)
        Inverse bandwidth.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    UncertainFourierFeatures : Features from random numbers, cheaper, and exact variances with
        "low_rank".
    UncertainKernelSVC : The kernel machine itself, for up to some 10,000 examples.
    halosvm.reference.section_moments : The formulas in NumPy.

    Notes
    -----
    The map is a contraction of the kernel's feature space, hence the bound "kernel", the distance
    there: :math:`\sqrt{2 (1 - \exp(-\gamma r^2))}` for inputs that move by at most r.

    Certain examples have certain features. The features of a mixture have the mean and the
    covariance of the mixture of its components' features. In a pipeline, `X_std` and `X_cov` reach
    this step as metadata, which it asks for by itself.

    References
    ----------
    C. K. I. Williams and M. Seeger, "Using the Nystroem Method to Speed Up Kernel Machines" (2001);
    N. Couellan and S. Jan, "Feature uncertainty bounding schemes for large robust
    nonlinear SVM classifiers" (2017), for "bound", of which theirs are looser.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, UncertainNystroem, UncertainSVC
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = Gaussians(rng.normal(size=(200, 2)), std=np.full((200, 2), 0.2))
    >>> y = np.sum(X.mean**2, axis=1) > 1.2
    >>> clf = make_pipeline(UncertainNystroem(gamma=0.5, random_state=0), UncertainSVC())
    >>> bool(clf.fit(X, y).score(X, y) > 0.9)
    True
    """

    _has_rest: ClassVar[bool] = False

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: ArrayLike | str = "scale",
        n_components: int = 100,
        landmarks: str = "means",
        covariance: str = "low_rank",
        output: str = "auto",
        radius: float = 1.0,
        norm: float = 2,
        bound: str = "kernel",
        dtype: DTypeLike = np.float64,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.landmarks = landmarks
        self.covariance = covariance
        self.output = output
        self.radius = radius
        self.norm = norm
        self.bound = bound
        self.dtype = dtype
        self.random_state = random_state
        self.n_threads = n_threads

    def _fit_to(self, X: Examples, rng: np.random.RandomState) -> None:
        if self.landmarks == "means":
            X = Gaussians(moments_of(X)[0])
        elif isinstance(X, GaussianMixtures):
            raise TypeError("X is GaussianMixtures; landmarks='gaussians' needs Gaussians")
        size = min(int(self.n_components), len(X))
        rows = np.sort(rng.choice(len(X), size, replace=False))
        self.landmark_indices_, self.landmarks_ = rows, X[rows]
        gram = self._kernel().gram(self.landmarks_, n_threads=thread_count(self.n_threads))
        values, vectors = eigh(gram)
        if not values[-1] > 0.0:
            raise ValueError(
                "the expected kernel of all landmarks is 0: errors are far larger than "
                "1 / sqrt(gamma); take a smaller gamma, or landmarks='means'"
            )
        kept = values > _SMALLEST * values[-1]
        whitened = (vectors[:, kept] / np.sqrt(values[kept])).T
        self.projection_ = np.ascontiguousarray(whitened[::-1])
        self._n_features_out = len(self.projection_)

    def _kernel(self) -> ExpectedKernel:
        return ExpectedKernel("rbf", self.gamma_)

    def _means(self, X: Gaussians) -> FloatArray:
        intercepts = np.zeros(self._n_features_out)
        threads = thread_count(self.n_threads)
        expansion = (self.landmarks_, self.projection_, intercepts, self._kernel())
        return expansion_values(X, *expansion, threads).astype(self.dtype, copy=False)

    def _write(self, X: Gaussians, **out: Any) -> None:
        _core.nystroem_features(
            self.landmarks_.core_view(),
            self.gamma_,
            self.projection_,
            X.core_view(),
            **out,
            n_threads=thread_count(self.n_threads),
        )

    def _bounds(self, X: Gaussians) -> Covariances:
        scale, ball = np.sqrt(2.0 * self.gamma_), (float(self.radius), float(self.norm))
        steps = _core.largest_steps(X.core_view(), scale, *ball, thread_count(self.n_threads))
        if self.bound == "kernel":
            moves = np.sqrt(-2.0 * np.expm1(-0.5 * np.square(steps)))
            return Covariances.from_std(moves, self._n_features_out, argument="bound")
        whitening = np.square(self.projection_).sum(axis=1)  # 1 / eigenvalue
        if self.bound == "landmarks":
            squared = self._by_landmarks(X.mean * scale, steps)
        else:
            squared = self._printed(X, scale, steps)
        return Covariances.diagonal(squared[:, np.newaxis] * whitening, argument="bound")

    def _by_landmarks(self, points: FloatArray, steps: Array) -> Array:
        """Return sum_j of the square of the largest change of h_j, from its range (spec G.6)."""
        total = np.zeros(len(points))
        for z in self.landmarks_.mean * np.sqrt(2.0 * self.gamma_):
            distance = np.linalg.norm(points - z, axis=1)
            nearest = np.maximum(0.0, distance - steps)
            k, least, most = (
                np.exp(-0.5 * np.square(d)) for d in (distance, distance + steps, nearest)
            )
            total += np.square(np.maximum(k - least, most - k))
        return total

    def _printed(self, X: Gaussians, scale: Array, steps: Array) -> Array:
        """Return r sum_j k^2 (1 / tau^2 + 1 - 2 rho tau) of Couellan and Jan (spec G.6)."""
        total, rho = np.zeros(len(X)), np.exp(-0.5 * np.square(steps))
        for z in self.landmarks_.mean:
            apart = X.mean * scale - z * scale
            k = np.exp(-0.5 * np.square(apart).sum(axis=1))
            products = storage_of(X.covariances).products(X.covariances, apart * scale)
            slope = np.sqrt(np.maximum(0.0, np.einsum("nd,nd->n", products, apart * scale)))
            with np.errstate(over="ignore"):  # what is infinite is refused with its row
                growth = np.exp(2.0 * float(self.radius) * slope)
                tau = np.exp(-float(self.radius) * slope)
                total += np.square(k) * (growth + 1.0 - 2.0 * rho * tau)
        return len(self.projection_) * total

    def _check_own_parameters(self) -> None:
        require_choice(self.kernel, "kernel", ("rbf",))
        require_choice(self.landmarks, "landmarks", ("means", "gaussians"))
        require_choice(self.bound, "bound", ("kernel", "landmarks", "printed"))
        if self.bound != "kernel" and self.landmarks != "means":
            raise ValueError(f"bound={self.bound!r} needs landmarks='means', got 'gaussians'")
        if self.bound == "printed" and self.norm != 2:
            raise ValueError(f"bound='printed' is for norm=2, got {self.norm!r}")
