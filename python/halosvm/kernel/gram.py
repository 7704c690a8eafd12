"""Gram matrices of expected kernels: Gaussians or mixtures of them in, a matrix out."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.frames import require_equal_names
from halosvm.checks.parameters import thread_count
from halosvm.gaussians.mixtures import as_examples
from halosvm.kernel.expected_kernel import (
    ExpectedKernel,
    check_diagonal,
    check_kernel,
    resolve_gamma,
)
from halosvm.kernel.level2 import check_level2, resolve_tau

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from halosvm.gaussians.mixtures import Examples


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
    gamma : "scale", "auto", float or array-like of shape (n_features,), default="scale"
        Inverse bandwidth, 1 / (2 sigma^2) for "rbf", of all features or of each:
        exp(-sum_k gamma_k (x_k - y_k)^2), exp(-sum_k gamma_k abs(x_k - y_k)),
        (sum_k gamma_k x_k y_k + coef0)^degree. "scale" is 1 / (n_features v) with the variance v of
        all values in `Y`, or in `X` without `Y`, those of the covariances and between components
        included; thus ``expected_kernel(X_test, X_train)`` and ``expected_kernel(X_train)`` agree;
        "auto" is 1 / n_features.
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
        Number of threads; None uses every processor, within the limits of
        OMP_NUM_THREADS, `threadpool_limits` and joblib's workers. The result does not
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
    columns = x if y is None else y
    gammas = resolve_gamma(gamma, columns, kind)
    check_kernel(kind, degree, coef0, normalize)
    check_diagonal(diagonal, kind, normalize)
    if diagonal == "unit" and y is not None:
        raise ValueError("diagonal='unit' needs Y=None: only X with itself has a diagonal")
    check_level2(level2, tau, diagonal)
    threads = thread_count(n_threads)
    result = _output(out, dtype, (len(x), len(columns)))
    if result.size == 0:
        return result
    kernel = ExpectedKernel(kind, gammas, int(degree), float(coef0), bool(normalize))
    if level2 is not None:
        width = resolve_tau(tau, columns, lambda rows: kernel.gram(rows, n_threads=threads))
        kernel = dataclasses.replace(kernel, tau=width)
    kernel.write(x, y, result, threads)
    if diagonal == "unit":
        np.fill_diagonal(result, 1.0)
    return result


def _as_partner(Y: Examples | ArrayLike, X: Examples) -> Examples:
    try:
        y = as_examples(Y)
    except (ValueError, TypeError) as error:
        raise type(error)(re.sub(r"^X\b", "Y", str(error))) from None
    if y.shape[1] != X.shape[1]:
        raise ValueError(f"Y has {y.shape[1]} features, X has {X.shape[1]}")
    require_equal_names("Y", y.feature_names, "X", X.feature_names)
    return y.in_units(X.feature_units, "Y", "X")


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
