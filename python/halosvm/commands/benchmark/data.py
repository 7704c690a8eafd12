"""Made-up examples: Gaussians of overlapping classes, in blocks of rows, so that nothing is copied.

The features have mean 0 and standard deviation about 1, as after standardisation. Latent normal
variables z have the identity as covariance, and the class centres lie on a sphere around 0. The
features are x = z ("independent"), or x = A z ("correlated") where the covariance A A' has the
eigenvalues 1/k^1.5, k = 1, 2, ..., up to the scaling of the features: measurements that repeat each
other, as most tables have them. (For 100 features its condition number is about 1000.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halosvm.gaussians.gaussians import Gaussians

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.floating[Any]]

BLOCK = 4096
LARGEST_VARIANCE = 0.5  # of a feature of an uncertain example; the smallest is a hundredth of that


class Examples(NamedTuple):
    """Means (n, d), variances (n, d) or None for certain examples, and class codes (n,)."""

    mean: Array
    variance: Array | None
    codes: npt.NDArray[np.int16]

    @property
    def y(self) -> Array:
        """Labels -1 and +1 of two classes."""
        return np.where(self.codes > 0, 1.0, -1.0)

    @property
    def certain(self) -> Examples:
        """The means alone."""
        return self._replace(variance=None)

    def gaussians(self) -> Gaussians:
        """Return the same arrays as Gaussians."""
        return Gaussians(self.mean, variance=self.variance)


def make_examples(
    shape: tuple[int, int],
    features: str,
    *,
    seed: int,
    classes: int = 2,
    separation: float = 1.2,
    uncertain: bool = True,
    dtype: Any = np.float64,
) -> Examples:
    """Draw examples of equally likely classes.

    Parameters
    ----------
    shape : tuple of int
        Rows and features.
    features : {"independent", "correlated"}
    seed, classes : int
    separation : float
        From a class centre to 0, in standard deviations; that of two classes is twice that.
    uncertain : bool
        Whether to draw variances, or to leave them out.
    dtype : dtype
        float64 or float32.
    """
    n, d = shape
    rng = np.random.default_rng(seed)
    mixing = None
    if features == "correlated":
        directions = np.linalg.qr(rng.normal(size=(d, d)))[0]
        mixing = np.arange(1.0, d + 1.0)[:, None] ** -0.75 * directions
        mixing /= np.sqrt(np.square(mixing).sum(axis=0))
    centres = rng.normal(size=(classes, d))
    centres *= separation / np.linalg.norm(centres, axis=1, keepdims=True)
    if classes == 2:
        centres[0] = -centres[1]
    codes = rng.integers(classes, size=n).astype(np.int16)
    codes[:classes] = np.arange(classes)
    mean = np.empty(shape, dtype)
    variance = np.empty(shape, dtype) if uncertain else None
    for begin in range(0, n, BLOCK):
        rows = slice(begin, min(n, begin + BLOCK))
        latent = rng.normal(size=mean[rows].shape) + centres[codes[rows]]
        mean[rows] = latent if mixing is None else latent @ mixing
        if variance is not None:
            size = rng.uniform(0.1, 1.0, (len(latent), 1)) * rng.uniform(0.1, 1.0, latent.shape)
            variance[rows] = LARGEST_VARIANCE * size
    return Examples(mean, variance, codes)


def make_toy(n_features: int, n_gaussians: int, *, seed: int) -> tuple[Gaussians, Array]:
    """Draw Gaussians in few dimensions with full covariances of random shape, and labels +-1."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_gaussians) % 2 == 0, 1.0, -1.0)
    mean = 0.7 * rng.normal(size=(n_gaussians, n_features))
    mean[:, 0] += 1.5 * y
    axes = np.linalg.qr(rng.normal(size=(n_gaussians, n_features, n_features)))[0]
    lengths = np.exp(rng.uniform(np.log(0.1), np.log(2.0), (n_gaussians, 1, n_features)))
    factors = axes * lengths
    return Gaussians(mean, cov=factors @ factors.transpose(0, 2, 1)), y
