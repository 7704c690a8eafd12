"""Expected kernels k(X, Y) = E k(x, y) of independent x ~ X and y ~ Y, in closed form.

In:  the parameters of a kernel, and the examples that a bandwidth is taken from.
Out: `ExpectedKernel`, the one form in which the package holds a kernel, and its Gram matrices.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.checks.reading import refuse_masked
from halosvm.checks.units import refuse
from halosvm.gaussians.mixtures import as_examples, moments_of
from halosvm.kernel.level2 import write_level2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.mixtures import Examples

    Array = NDArray[np.float64]

KINDS = ("rbf", "laplacian", "poly", "linear")
_DIAGONALS = ("product", "unit")


@dataclass(frozen=True, eq=False)
class ExpectedKernel:
    """An expected kernel with all its parameters, or the level-2 kernel of the distances it gives.

    Attributes
    ----------
    kind : {"rbf", "laplacian", "poly", "linear"}
        As in `expected_kernel`, like `degree`, `coef0` and `normalize`.
    gamma : ndarray of shape (1,) or (n_features,)
        Inverse bandwidth; of "linear" it is 1.
    tau : float or None
        Width of the level-2 kernel; None stands for the expected kernel itself.
    """

    kind: str
    gamma: Array
    degree: int = 3
    coef0: float = 1.0
    normalize: bool = False
    tau: float | None = None

    @classmethod
    def for_examples(
        cls,
        X: Examples,
        weights: Array | None,
        kind: str,
        gamma: ArrayLike | str,
        degree: int,
        coef0: float,
        normalize: bool = False,
    ) -> Self:
        """Return a kernel, whose parameters were checked, with the bandwidth for the examples."""
        gammas = resolve_gamma(gamma, X, kind, weights)
        return cls(kind, gammas, int(degree), float(coef0), bool(normalize))

    @property
    def order(self) -> int | None:
        """Degree of a polynomial kernel, None of one of distances."""
        return {"poly": self.degree, "linear": 1}.get(self.kind)

    @property
    def spread_has_closed_form(self) -> bool:
        """Whether sums of kernels have a standard deviation in closed form, unless normalised."""
        return self.kind == "rbf" or self.order in (1, 2)

    @property
    def inverse_squares(self) -> Array:
        """The inverse squared bandwidth of the features."""
        return np.square(self.gamma) if self.kind == "laplacian" else self.gamma

    def write(self, X: Examples, Y: Examples | None, out: NDArray[Any], n_threads: int) -> None:
        """Write the Gram matrix, of X with itself when Y is None."""
        if self.tau is not None:
            write_level2(self, X, Y, out, n_threads)
        else:
            self.write_expectations(X, Y, out, n_threads)

    def gram(
        self, X: Examples, Y: Examples | None = None, *, diagonal: str = "product", n_threads: int
    ) -> Array:
        """Return the Gram matrix, of X with itself when Y is None, its diagonal as told."""
        out = np.empty((len(X), len(X if Y is None else Y)))
        if out.size:
            self.write(X, Y, out, n_threads)
        if diagonal == "unit":
            np.fill_diagonal(out, 1.0)
        return out

    def write_expectations(
        self, X: Examples, Y: Examples | None, out: NDArray[Any], n_threads: int
    ) -> None:
        """Write the Gram matrix of the expected kernel, whatever tau is."""
        other = None if Y is None else Y.core_view()
        parameters = (self.kind, self.gamma, self.degree, self.coef0, self.normalize)
        _core.gram(X.core_view(), other, out, *parameters, n_threads)
        if self.order is not None:
            self._require_finite(X, Y, out)

    def expectations_with_themselves(self, X: Examples, n_threads: int) -> Array:
        """Return the expected kernel of each example with itself, whatever tau is."""
        if self.normalize and self.order is None:
            return np.ones(len(X))  # divided in logarithms: these cannot vanish
        parameters = (self.kind, self.gamma, self.degree, self.coef0)
        values = _core.gram_diagonal(X.core_view(), *parameters, n_threads)
        return (values > 0.0).astype(np.float64) if self.normalize else values

    def _require_finite(self, X: Examples, Y: Examples | None, K: NDArray[Any]) -> None:
        if np.isfinite(K.min()) and np.isfinite(K.max()):
            return
        largest = max(np.abs(moments_of(side)[0]).max() for side in (X, Y) if side is not None)
        raise ValueError(
            f"the {self.kind} kernel overflows {K.dtype}: means are up to {largest:g}, gamma is up "
            f"to {self.gamma.max():g}; scale the features"
        )


def resolve_gamma(
    gamma: ArrayLike | str, X: Examples, kind: str, weights: Array | None = None
) -> Array:
    """Return gamma as a vector, of one value or one for each feature, all positive and finite.

    With weights, "scale" is that of examples repeated so many times.
    """
    if kind == "linear":
        return np.ones(1)
    if isinstance(gamma, str):
        if gamma == "auto":
            return np.array([1.0 / X.shape[1]])
        if gamma != "scale":
            raise ValueError(f"gamma must be 'scale', 'auto', a number or an array, got {gamma!r}")
        variance = _variance(X, weights)
        return np.array([1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0])
    refuse(gamma, "gamma")
    refuse_masked(gamma, "gamma")
    try:
        given = np.atleast_1d(np.asarray(gamma))
    except ValueError:  # lists of different lengths
        given = np.empty(0, object)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"gamma must be 'scale', 'auto', a number or an array, got {gamma!r}")
    values = given.astype(np.float64)
    if values.ndim != 1 or len(values) not in (1, X.shape[1]):
        raise ValueError(
            f"gamma has shape {np.shape(gamma)}; it must be one number or one for each of the "
            f"{X.shape[1]} features"
        )
    bad = np.flatnonzero(~((values > 0.0) & (values < np.inf)))
    if bad.size:
        place = f"gamma[{bad[0]}]" if np.ndim(gamma) else "gamma"
        raise ValueError(f"{place} is {values[bad[0]]:g}; it must be positive and finite")
    return values


def median_gamma(
    X: Examples | ArrayLike,
    *,
    max_samples: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    r"""Return the median heuristic's gamma for "rbf", with the uncertainty counted.

    The squared distance of two examples has the expectation
    :math:`|x_i - x_j|^2 + \mathrm{tr}\,\Sigma_i + \mathrm{tr}\,\Sigma_j`; gamma is 1 over its
    median, which is 1 / (2 sigma^2) for a sigma^2 of half the median.

    Parameters
    ----------
    X : Gaussians, GaussianMixtures or array-like of shape (n_samples, n_features)
        Two or more examples.
    max_samples : int, default=1000
        If there are more examples, this many are drawn from them.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    float
    """
    x = as_examples(X)
    if not isinstance(max_samples, numbers.Integral) or isinstance(max_samples, bool):
        raise TypeError(f"max_samples must be an integer, got {max_samples!r}")
    if max_samples < 2:
        raise ValueError(f"max_samples must be >= 2, got {max_samples!r}")
    if len(x) < 2:
        raise ValueError(f"X has {len(x)} rows; a distance needs 2")
    if len(x) > max_samples:
        x = x[check_random_state(random_state).choice(len(x), int(max_samples), replace=False)]
    means, traces = moments_of(x)
    rows, columns = np.triu_indices(len(x), k=1)
    median = float(np.median(pdist(means, "sqeuclidean") + traces[rows] + traces[columns]))
    if not median > 0.0:
        raise ValueError("X has a median distance of 0; more than half of its pairs are equal")
    return 1.0 / median


def _variance(X: Examples, weights: Array | None) -> float:
    """Return the variance of all values: of the means, plus the mean trace per feature."""
    if len(X) == 0:
        return 1.0
    means, traces = moments_of(X)
    from_first = means - means[:1, :1].astype(np.float64)  # exact where all values are equal
    centre = np.average(from_first.mean(axis=1), weights=weights)
    spreads = np.square(from_first - centre).mean(axis=1)
    return float(np.average(spreads + traces / X.shape[1], weights=weights))


def check_kernel(
    kind: Any, degree: Any, coef0: Any, normalize: Any = False, argument: str = "kind"
) -> None:
    """Raise for a kernel that does not exist, whose name came in the given argument."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{argument} must be one of {', '.join(KINDS)}; got {kind!r}")
    if not isinstance(degree, numbers.Integral) or isinstance(degree, bool):
        raise TypeError(f"degree must be an integer, got {degree!r}")
    if kind == "poly" and degree not in (1, 2, 3):
        raise ValueError(f"degree must be 1, 2 or 3, got {degree!r}")
    if not isinstance(coef0, numbers.Real) or isinstance(coef0, bool):
        raise TypeError(f"coef0 must be a number, got {coef0!r}")
    if not np.isfinite(float(coef0)) or (kind == "poly" and coef0 < 0):
        raise ValueError(f"coef0 must be >= 0 and finite, got {coef0!r}")
    if not isinstance(normalize, bool | np.bool_):
        raise TypeError(f"normalize must be True or False, got {normalize!r}")


def check_diagonal(diagonal: Any, kind: str, normalize: bool) -> None:
    """Raise for a diagonal of Gram matrices that does not exist, or not with such a kernel."""
    if not isinstance(diagonal, str) or diagonal not in _DIAGONALS:
        raise ValueError(f"diagonal must be one of {', '.join(_DIAGONALS)}; got {diagonal!r}")
    if diagonal == "unit" and kind not in ("rbf", "laplacian"):
        raise ValueError(f"diagonal='unit' is for rbf and laplacian, not {kind}")
    if diagonal == "unit" and normalize:
        raise ValueError("diagonal='unit' and normalize=True both set the diagonal; give one")
