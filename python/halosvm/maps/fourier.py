"""UncertainFourierFeatures: random Fourier features of Gaussians, which make linear machines RBF.

Gaussians enter; Gaussians of their features leave, or points with the radius that bounded errors
move them by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm import _core
from halosvm.checks.parameters import require_choice, thread_count
from halosvm.gaussians.covariances import Covariances

from .feature_map import FeatureMap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]
    FloatArray = NDArray[np.floating[Any]]


class UncertainFourierFeatures(FeatureMap):
    r"""Random Fourier features of uncertain examples: they make a linear machine a kernel machine.

    With frequencies :math:`\omega_j` from N(0, 2 gamma I), inner products of the features

    .. math:: \phi(x) = \sqrt{2/D}\, (\cos \omega_1'x, ..., \cos \omega_{D/2}'x, \sin \omega_1'x ..)

    estimate the RBF kernel :math:`\exp(-\gamma |x - z|^2)`, with an error like D^(-1/2). Of an
    example :math:`X \sim N(x, \Sigma)` the expectation and the covariance of its features are known
    in closed form, and `transform` returns the Gaussian that has them: inner products of expected
    features estimate the expected kernel, and `UncertainSVC` after this map is a kernel machine
    that takes time in proportion to the number of examples. The Gaussian is what is approximate:
    features of Gaussians are bounded and not normal.

    Parameters
    ----------
    n_components : int, default=100
        Number D of features.
    gamma : "scale", "median", float or array-like of shape (n_features,), default="scale"
        Inverse bandwidth of the kernel, one for all features or one for each. "scale" is
        1 / (n_features * variance of all values), in which errors count; "median" that of
        `median_gamma`.
    map : {"paired", "phase"}, default="paired"
        "paired" has the cosine and the sine of D/2 frequencies, of norm 1; "phase" is
        :math:`\sqrt{2/D} \cos(\omega_j'x + \nu_j)` with D frequencies and a random phase for each,
        as `sklearn.kernel_approximation.RBFSampler`. An odd D leaves "paired" one frequency without
        its sine; that cosine, the last of them, has a random phase, which keeps inner products free
        of bias; the square of the norm is then within 1/D of 1.
    covariance : {"low_rank", "diagonal", "full", "bound"}, default="low_rank"
        What is told of the features' covariance, beside their exact expectation:

        - "low_rank": factors :math:`E\,\phi'(X)\, R` with :math:`R R' = \Sigma`, that is the linear
          part of the features, plus the diagonal of the rest, so that variances are exact and
          covariances approximate, the better the smaller errors are to 1 / sqrt(gamma).
          D (rank + 1) numbers for each example, where the rank of a diagonal :math:`\Sigma` is
          n_features.
        - "diagonal": the exact variances alone. D numbers for each example; that features vary
          together is lost, so that the spread of a sum of them is not exact.
        - "full": the exact covariance, D^2 numbers for each example.
        - "bound": for errors that are bounds instead of distributions, x + R u with
          :math:`|u|_p \le` `radius`. The mean is :math:`\phi(x)`, and the covariance isotropic with
          a standard deviation that :math:`|\phi(x + R u) - \phi(x)|` never exceeds. It is for
          ``UncertainSVC(loss="worst_case", radius=1)`` alone.
    output : {"auto", "gaussian", "mean"}, default="auto"
        What `transform` returns. "auto": Gaussians for Gaussians, mixtures and what comes with
        errors, an array for an array without. "gaussian": Gaussians of all, which are then certain.
        "mean": the array of the means alone, for any estimator of scikit-learn.
    radius, norm : float, default=1.0 and 2
        Of "bound": radius and p, 1, 2 or infinity, of the ball of u. With p = 2 the set is an
        ellipsoid; with infinity and diagonal covariances a box of `radius` standard deviations to
        either side. For other p than 2 the set depends on the root R: that of a diagonal is
        diagonal, factors are their own, and full matrices are refused.
    bound : {"tight", "printed"}, default="tight"
        Of "bound": the least known bound, or the paper's, which is looser, for comparison.
    dtype : {float64, float32}, default=float64
        Type of the features; they are computed in float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies.
    n_threads : int or None, default=None
        Number of threads; None uses every processor this process may use.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_features)
        The :math:`\omega_j`.
    phases_ : ndarray of shape (n_phases,) or None
        The :math:`\nu_j`: one for each frequency of the map "phase"; of "paired" one for the last
        frequency if D is odd, else None.
    gamma_ : ndarray of shape (1,) or (n_features,)
        Inverse bandwidth.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names that are all strings.

    See Also
    --------
    UncertainNystroem : Features from examples instead of from random numbers.
    UncertainKernelSVC : The kernel machine itself, for up to some 10,000 examples.
    halosvm.reference.fourier_features : The formulas in NumPy.

    Notes
    -----
    Certain examples have certain features. The features of a mixture have the mean and the
    covariance of the mixture of its components' features. In a pipeline, `X_std` and `X_cov` reach
    this step as metadata, which it asks for by itself. Each row is mapped by itself: where the
    result would not fit into memory, transform slices.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines" (2007); N. Couellan
    and S. Jan, "Feature uncertainty bounding schemes for large robust nonlinear SVM
    classifiers" (2017), for "bound".

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, UncertainFourierFeatures, UncertainSVC
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = Gaussians(rng.normal(size=(200, 2)), std=np.full((200, 2), 0.2))
    >>> y = np.sum(X.mean**2, axis=1) > 1.2
    >>> features = UncertainFourierFeatures(100, gamma=0.5, random_state=0)
    >>> clf = make_pipeline(features, UncertainSVC())
    >>> bool(clf.fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        gamma: ArrayLike | str = "scale",
        map: str = "paired",  # noqa: A002
        covariance: str = "low_rank",
        output: str = "auto",
        radius: float = 1.0,
        norm: float = 2,
        bound: str = "tight",
        dtype: DTypeLike = np.float64,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.map = map
        self.covariance = covariance
        self.output = output
        self.radius = radius
        self.norm = norm
        self.bound = bound
        self.dtype = dtype
        self.random_state = random_state
        self.n_threads = n_threads

    def _fit_to(self, X: Examples, rng: np.random.RandomState) -> None:
        D, paired = int(self.n_components), self.map == "paired"
        n_frequencies = (D + 1) // 2 if paired else D
        normal = rng.normal(size=(n_frequencies, X.shape[1]))
        self.frequencies_ = normal * np.sqrt(2.0 * self.gamma_)
        n_phases = D % 2 if paired else D
        self.phases_ = rng.uniform(0.0, 2.0 * np.pi, n_phases) if n_phases else None
        self._n_features_out = D

    def _means(self, X: Gaussians) -> FloatArray:
        means = np.empty((len(X), self._n_features_out), self.dtype)
        self._write(X, means=means)
        return means

    def _write(self, X: Gaussians, **out: Any) -> None:
        threads = thread_count(self.n_threads)
        map_ = (self.frequencies_, self.phases_)
        _core.fourier_features(*map_, X.core_view(), **out, n_threads=threads)

    def _bounds(self, X: Gaussians) -> Covariances:
        moves = _core.fourier_bound(
            self.frequencies_,
            self.phases_,
            X.core_view(),
            float(self.radius),
            float(self.norm),
            self.bound == "printed",
            thread_count(self.n_threads),
        )
        return Covariances.from_std(moves, self._n_features_out, argument="bound")

    def _check_own_parameters(self) -> None:
        require_choice(self.map, "map", ("paired", "phase"))
        require_choice(self.bound, "bound", ("tight", "printed"))
