"""Expected kernels: Gaussians or mixtures of them in, Gram matrix out.

k(X, Y) = E k(x, y) for independent x ~ X and y ~ Y, in closed form, and bandwidths for it.
"""

from __future__ import annotations

import numbers
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from halosvm import _core
from halosvm.frames import require_equal_names
from halosvm.level2 import check_level2, resolve_tau, write_level2
from halosvm.mixtures import as_examples, moments_of
from halosvm.parameters import thread_count
from halosvm.reading import refuse_masked
from halosvm.units import refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from halosvm.mixtures import Examples

    Array = NDArray[np.float64]

KINDS = ("rbf", "laplacian", "poly", "linear")
_DIAGONALS = ("product", "unit")


def expected_kernel(
    X: Examples | ArrayLike,
    Y: Examples | ArrayLike | None = None,
    *,
    kind: str = "rbf",
    gamma: ArrayLike | str = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    diagonal: str = "product",
    normalize: bool = False,
    level2: str | None = None,
    tau: float | str = "median",
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    n_threads: int | None = None,
) -> NDArray[Any]:
    r"""Return the Gram matrix of an expected kernel.

    Its entries are :math:`E\, k(x_i, y_j)` for independent :math:`x_i \sim X_i` and
    :math:`y_j \sim Y_j`, in closed form. It is positive semi-definite for every set of Gaussians;
    between certain points it is the kernel k itself.

    Parameters
    ----------
    X : Gaussians, GaussianMixtures or array-like of shape (n_samples_X, n_features)
        An array holds certain points. Between mixtures it is the sum over all pairs of components,
        each with both weights, at the cost of that many kernels.
    Y : Gaussians, GaussianMixtures or array-like of shape (n_samples_Y, n_features), optional
        None stands for `X`: each pair is then computed once.
    kind : {"rbf", "laplacian", "poly", "linear"}, default="rbf"
        As in `sklearn.metrics.pairwise`. "laplacian" needs zero, isotropic or diagonal covariances.
        "linear" does not depend on the covariances.
    gamma : float, array-like of shape (n_features,), or "scale", default="scale"
        Inverse bandwidth, 1 / (2 sigma^2) for "rbf", of all features or of each:
        exp(-sum_k gamma_k (x_k - y_k)^2), exp(-sum_k gamma_k abs(x_k - y_k)),
        (sum_k gamma_k x_k y_k + coef0)^degree. "scale" is 1 / (n_features v) with the variance v of
        all values in `Y`, or in `X` without `Y`, those of the covariances and between components
        included; thus ``expected_kernel(X_test, X_train)`` and ``expected_kernel(X_train)`` agree.
    degree : int, default=3
        Of "poly": 1, 2 or 3.
    coef0 : float, default=1.0
        Of "poly".
    diagonal : {"product", "unit"}, default="product"
        "product": the kernel of an example with itself, too, is that of two independent copies,
        below 1 if it is uncertain. "unit": it is E k(x_i, x_i) = 1, which adds to each example a
        ridge of its own; only for "rbf" and "laplacian", without `Y` and `normalize`.
    normalize : bool, default=False
        Divide by the square roots of the kernels of both examples with themselves, which keeps
        entries from vanishing where features are many.
    level2 : {"gaussian"} or None, default=None
        "gaussian": the kernel exp(-(k(X, X) + k(Y, Y) - 2 k(X, Y)) / (2 tau^2)) of the distances
        that the expected kernel k gives its examples. Its diagonal is 1, and its entries are of the
        same size where features are many and those of k tiny; but where k(X, Y) is lost in the
        rounding of k(X, X), it cannot tell examples apart: then take a smaller gamma.
    tau : float or "median", default="median"
        Width of the level-2 kernel. "median" is the median distance between examples of `Y`, or of
        `X` without `Y`, that differ. Of more than 1,000 rows, 1,000 evenly spaced ones count.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to write, of float32 or float64 with contiguous rows, a memory map too. A matrix
        larger than memory is best written in blocks of rows,
        ``expected_kernel(X[i:j], X, gamma=g, out=K[i:j])``.
    dtype : {numpy.float32, numpy.float64}, optional
        Type of the result when `out` is not given; float64 by default.
    n_threads : int, optional
        Number of threads; None uses every processor this process may use. The result does not
        depend on it.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        `out`, if given.

    Raises
    ------
    ValueError, TypeError
        For parameters out of range, data that do not fit together, and values that overflow.

    References
    ----------
    Y. Chen, T. T. Georgiou and A. Tannenbaum, "Probabilistic Kernel Support Vector Machines"
    (2019), with the sign of the determinant's exponent corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, expected_kernel
    >>> X = Gaussians(np.array([[0.0], [1.0]]), std=np.array([[0.0], [1.0]]))
    >>> expected_kernel(X, gamma=0.5).round(3)
    array([[1.   , 0.551],
           [0.551, 0.577]])
    """
    x = as_examples(X)
    y = None if Y is None else _as_partner(Y, x)
    gammas = resolve_gamma(gamma, x if y is None else y, kind)
    check_kernel(kind, degree, coef0)
    _check_diagonal(diagonal, kind, y, normalize)
    check_level2(level2, tau, diagonal)
    threads = thread_count(n_threads)
    result = _output(out, dtype, (len(x), len(x if y is None else y)))
    if result.size == 0:
        return result
    kernel = _CoreKernel(kind, gammas, int(degree), float(coef0), bool(normalize), threads)
    if level2 is None:
        kernel.write(x, y, result)
    else:
        width = resolve_tau(tau, x if y is None else y, kernel.gram)
        write_level2(kernel, x, y, result, width)
    if diagonal == "unit":
        np.fill_diagonal(result, 1.0)
    return result


class _CoreKernel(NamedTuple):
    """An expected kernel as the core takes it."""

    kind: str
    gamma: Array
    degree: int
    coef0: float
    normalize: bool
    n_threads: int

    def write(self, X: Examples, Y: Examples | None, out: NDArray[Any]) -> None:
        _core.gram(X.core_view(), None if Y is None else Y.core_view(), out, *self)
        if self.kind in ("poly", "linear") and out.size:
            self._require_finite(X, Y, out)

    def _require_finite(self, X: Examples, Y: Examples | None, K: NDArray[Any]) -> None:
        if np.isfinite(K.min()) and np.isfinite(K.max()):
            return
        largest = max(np.abs(moments_of(side)[0]).max() for side in (X, Y) if side is not None)
        raise ValueError(
            f"the {self.kind} kernel overflows {K.dtype}: means are up to {largest:g}, gamma is up "
            f"to {self.gamma.max():g}; scale the features"
        )

    def gram(self, X: Examples) -> Array:
        out = np.empty((len(X), len(X)))
        self.write(X, None, out)
        return out

    def diagonal(self, X: Examples) -> Array:
        if self.normalize and self.kind in ("rbf", "laplacian"):
            return np.ones(len(X))  # divided in logarithms: these cannot vanish
        view = X.core_view()
        values = _core.gram_diagonal(
            view, self.kind, self.gamma, self.degree, self.coef0, self.n_threads
        )
        return (values > 0.0).astype(np.float64) if self.normalize else values


def resolve_gamma(
    gamma: ArrayLike | str, X: Examples, kind: str, weights: Array | None = None
) -> Array:
    """Return gamma as a vector, of one value or one for each feature, all positive and finite.

    With weights, "scale" is that of examples repeated so many times.
    """
    if kind == "linear":
        return np.ones(1)
    if isinstance(gamma, str):
        if gamma != "scale":
            raise ValueError(f"gamma must be 'scale', a number or an array, got {gamma!r}")
        variance = _variance(X, weights)
        return np.array([1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0])
    refuse(gamma, "gamma")
    refuse_masked(gamma, "gamma")
    try:
        given = np.atleast_1d(np.asarray(gamma))
    except ValueError:  # lists of different lengths
        given = np.empty(0, object)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"gamma must be 'scale', a number or an array, got {gamma!r}")
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


def _as_partner(Y: Examples | ArrayLike, X: Examples) -> Examples:
    try:
        y = as_examples(Y)
    except (ValueError, TypeError) as error:
        raise type(error)(re.sub(r"^X\b", "Y", str(error))) from None
    if y.shape[1] != X.shape[1]:
        raise ValueError(f"Y has {y.shape[1]} features, X has {X.shape[1]}")
    require_equal_names("Y", y.feature_names, "X", X.feature_names)
    return y.in_units(X.feature_units, "Y", "X")


def check_kernel(kind: Any, degree: Any, coef0: Any, argument: str = "kind") -> None:
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


def _check_diagonal(diagonal: Any, kind: str, Y: Examples | None, normalize: Any) -> None:
    if not isinstance(normalize, bool | np.bool_):
        raise TypeError(f"normalize must be True or False, got {normalize!r}")
    if not isinstance(diagonal, str) or diagonal not in _DIAGONALS:
        raise ValueError(f"diagonal must be one of {', '.join(_DIAGONALS)}; got {diagonal!r}")
    if diagonal == "unit":
        if kind not in ("rbf", "laplacian"):
            raise ValueError(f"diagonal='unit' is for rbf and laplacian, not {kind}")
        if Y is not None:
            raise ValueError("diagonal='unit' needs Y=None: only X with itself has a diagonal")
        if normalize:
            raise ValueError("diagonal='unit' and normalize=True both set the diagonal; give one")


def _output(out: Any, dtype: Any, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the array to write to."""
    if out is None:
        wanted = np.dtype(np.float64 if dtype is None else dtype)
        if wanted not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {wanted}")
        return np.empty(shape, wanted)
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float32, np.float64):
        raise TypeError("out must be an array of float32 or float64")
    if dtype is not None and out.dtype != np.dtype(dtype):
        raise ValueError(f"dtype is {np.dtype(dtype)}, out has {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, expected {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    return out
