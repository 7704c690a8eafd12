"""Gaussians of images whose position, orientation, size or brightness is uncertain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.fft

from halosvm.checks import reading
from halosvm.core.abandonable import eigh
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

TRANSFORMS = ("shift_x", "shift_y", "rotation", "scale", "gain", "offset")
# Pixels worked on at a time: a few tens of megabytes of generators, whatever the number of images.
_BLOCK = 1 << 20


def image_transform(
    images: ArrayLike,
    *,
    std: ArrayLike | None = None,
    cov: ArrayLike | None = None,
    transforms: Sequence[str] = ("shift_x", "shift_y"),
    center: tuple[float, float] | None = None,
    method: Literal["taylor", "statistical"] = "taylor",
) -> Gaussians:
    r"""Model images under small random transformations as Gaussians of low rank.

    The transformed image is linear in the parameters :math:`t \sim N(0, \Sigma_t)`,
    :math:`f(t) \approx f + G t`, with one generator (column of G) for each transformation:

    .. math:: \mu = f, \qquad \Sigma = G \Sigma_t G' = F F', \qquad F = G \Sigma_t^{1/2}

    No matrix of n_pixels x n_pixels is ever made.

    Parameters
    ----------
    images : array-like of shape (n_samples, height, width)
        Grey images.
    std : array-like of shape (n_transforms,) or (n_samples, n_transforms), optional
        Standard deviations of independent parameters, for all images or for each.
    cov : array-like of shape ([n_samples, ] n_transforms, n_transforms), optional
        Their covariance :math:`\Sigma_t` instead; exactly one of `std` and `cov`.
    transforms : sequence of str, default=("shift_x", "shift_y")
        What is uncertain. With the derivatives I_x and I_y along columns and rows, and the distance
        (x, y) of a pixel from the centre, the generators are

        - "shift_x", "shift_y": -I_x, -I_y; pixels to the right, pixels down;
        - "rotation": y I_x - x I_y; radians, clockwise as displayed with row 0 at the top;
        - "scale": -(x I_x + y I_y); relative, 0.1 is a tenth larger;
        - "gain": I; relative, 0.1 is a tenth brighter;
        - "offset": 1; grey levels.
    center : (float, float), optional
        Column and row about which images turn and grow; default the middle.
    method : {"taylor", "statistical"}, default="taylor"
        "taylor" takes image and derivatives as they are, which holds while shifts are small against
        the details: for a standard deviation of 1.7 pixels the variance is 1.1 times too large for
        details of wavelength 28, 4.4 times for wavelength 5. "statistical" blurs the image with the
        distribution of the shift first: mean and generators are then expectations, exact for
        Gaussian shifts. The blur leaves out what rotation and scale would add to it.

    Returns
    -------
    Gaussians
        Of n_samples x (height * width) pixels in row-major order, with factors of n_transforms
        columns; float32 if the images are.

    Notes
    -----
    Derivatives are central differences, one-sided at the border. Beyond the border the blur sees
    the image reflected.

    References
    ----------
    C. Tzelepis, V. Mezaris and I. Patras, "Linear Maximum Margin Classifier for Learning from
    Uncertain Data", IEEE Transactions on Pattern Analysis and Machine Intelligence 40 (2018),
    appendix B; statistical linearisation after C. Stein's lemma, Cov(f(t), t) = E[f'(t)] Cov(t).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import image_transform
    >>> X = image_transform(np.eye(4)[np.newaxis], std=[0.5, 0.5])
    >>> X.shape, X.covariances.values.shape
    ((1, 16), (1, 16, 2))
    """
    pictures = reading.as_float_array(images, "images", "n_samples", "height", "width")
    if min(pictures.shape[1:]) < 2:
        raise ValueError(
            f"images have shape {pictures.shape[1:]}, at least 2 x 2 pixels are needed"
        )
    reading.require_in_range(pictures, "images")
    names = _read_transforms(transforms)
    if method not in ("taylor", "statistical"):
        raise ValueError(f"method must be 'taylor' or 'statistical', got {method!r}")
    n, h, w = pictures.shape
    parameters = _parameter_covariances(std, cov, n, len(names))
    roots = _symmetric_roots(parameters)
    x, y = _distances(center, h, w)

    mean = np.empty((n, h * w), pictures.dtype)
    factors = np.empty((n, h * w, len(names)), pictures.dtype)
    step = max(1, _BLOCK // (h * w * len(names)))
    for begin in range(0, n, step):
        rows = slice(begin, begin + step)
        block = pictures[rows].astype(np.float64, copy=False)
        if method == "statistical":
            block = _blurred(block, _shift_covariances(_rows_of(parameters, rows), names))
        generators = _generators(block, names, x, y).reshape(len(block), h * w, len(names))
        mean[rows] = block.reshape(len(block), h * w)
        factors[rows] = generators @ _rows_of(roots, rows)
    return Gaussians(mean, cov=Covariances.low_rank(factors))


def _read_transforms(transforms: Sequence[str]) -> list[str]:
    if not isinstance(transforms, Iterable):
        raise TypeError(f"transforms must be names of transformations, got {transforms!r}")
    names = [transforms] if isinstance(transforms, str) else list(transforms)
    for name in names:
        if name not in TRANSFORMS:
            raise ValueError(f"transforms: {name!r} is none of {', '.join(TRANSFORMS)}")
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"transforms must name each transformation once, got {names}")
    return names


def _parameter_covariances(std: Any, cov: Any, n_samples: int, n_transforms: int) -> Array:
    """Return checked (n_samples or 1, g, g) covariances of the parameters."""
    if (std is None) == (cov is None):
        raise ValueError("exactly one of std and cov must be given")
    argument, ndim = ("std", 1) if cov is None else ("cov", 2)
    values = reading.as_float_array(std if cov is None else cov, argument)
    each = values[np.newaxis] if values.ndim == ndim else values
    n = 1 if values.ndim == ndim else n_samples
    reading.require_shape(each, argument, n, *[n_transforms] * ndim)
    if cov is None:
        return Covariances.from_std(each).to_full()
    return Covariances.full(each, argument=argument).to_full()


def _symmetric_roots(matrices: Array) -> Array:
    """Return R with R R' = S for singular matrices too, and R = diag(std) for diagonal ones."""
    eigenvalues, vectors = eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))[:, np.newaxis, :]
    return np.asarray(scaled @ vectors.transpose(0, 2, 1))


def _rows_of(matrices: Array, rows: slice) -> Array:
    return matrices if len(matrices) == 1 else matrices[rows]


def _distances(center: Any, height: int, width: int) -> tuple[Array, Array]:
    """Return each pixel's column and row, counted from the centre."""
    middle = ((width - 1) / 2, (height - 1) / 2) if center is None else center
    cx, cy = reading.as_float_array(middle, "center", 2)
    if not (np.isfinite(cx) and np.isfinite(cy)):
        raise ValueError(f"center must be finite, got {tuple(middle)}")
    y, x = np.mgrid[:height, :width]
    return x - cx, y - cy


def _generators(images: Array, names: list[str], x: Array, y: Array) -> Array:
    """Return the derivatives of (n, h, w) images by the parameters, (n, h, w, g)."""
    along_rows: Array = np.asarray(np.gradient(images, axis=1))
    along_columns: Array = np.asarray(np.gradient(images, axis=2))
    columns: list[Array] = []
    for name in names:
        if name == "shift_x":
            columns.append(-along_columns)
        elif name == "shift_y":
            columns.append(-along_rows)
        elif name == "rotation":
            columns.append(y * along_columns - x * along_rows)
        elif name == "scale":
            columns.append(-(x * along_columns + y * along_rows))
        else:
            columns.append(images if name == "gain" else np.ones_like(images))
    return np.stack(columns, axis=-1)


def _shift_covariances(parameters: Array, names: list[str]) -> Array:
    """Return the (n, 2, 2) covariances of the shifts (x, y) among the parameters."""
    shifts = np.zeros((len(parameters), 2, 2))
    at = {axis: names.index(name) for axis, name in enumerate(TRANSFORMS[:2]) if name in names}
    for i, row in at.items():
        for j, column in at.items():
            shifts[:, i, j] = parameters[:, row, column]
    return shifts


def _blurred(images: Array, shifts: Array) -> Array:
    """Return E I(p - t) for t ~ N(0, shifts): a product with exp(-k'Sk/2) in Fourier space.

    The image is extended by its reflection, which is periodic without a jump.
    """
    h, w = images.shape[1:]
    extended = np.pad(images, ((0, 0), (0, h), (0, w)), mode="symmetric")
    ky = 2 * np.pi * scipy.fft.fftfreq(2 * h)[:, np.newaxis]
    kx = 2 * np.pi * scipy.fft.rfftfreq(2 * w)
    s = shifts[:, :, :, np.newaxis, np.newaxis]
    exponent = s[:, 0, 0] * kx**2 + 2 * s[:, 0, 1] * kx * ky + s[:, 1, 1] * ky**2
    spectrum = scipy.fft.rfft2(extended) * np.exp(-0.5 * exponent)
    blurred: Array = scipy.fft.irfft2(spectrum, s=(2 * h, 2 * w))[:, :h, :w]
    return blurred
