"""How large errors are taken to be: `error_scale` of all losses, `radius` and `norm` of some.

In:  examples as they were given, the two parameters of an estimator, and a radius for each example.
Out: the examples with the errors that the loss is to see.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeVar

import numpy as np

from halosvm import _core
from halosvm.checks import reading
from halosvm.checks.estimator import require_index_of
from halosvm.checks.parameters import require_number
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

Data = TypeVar("Data", Gaussians, GaussianMixtures)


def require_error_scale(error_scale: Any) -> None:
    """Raise unless the parameter is a number >= 0."""
    require_number(error_scale, "error_scale", or_zero=True)


def require_radius(radius: Any, radii: Any, loss: str) -> None:
    """Raise unless the parameter is a number >= 0, and 1 without others for a loss without radius.

    `radii` is what `fit` was given, None for nothing.
    """
    require_number(radius, "radius", or_zero=True)
    if _core.loss_traits(loss)["has_radius"] or (radius == 1 and radii is None):
        return
    given = f"radius is {radius!r}" if radii is None else "radius is given to fit"
    raise ValueError(
        f"{given}, but loss={loss!r} has no radius, as only {_losses_of_bounded_errors()} have; "
        "leave it at 1, or multiply all errors by error_scale"
    )


def require_norm(norm: Any, loss: str) -> None:
    """Raise unless the parameter is a number >= 1, and 2 for a loss of errors without bounds."""
    if isinstance(norm, bool | np.bool_) or not isinstance(norm, Real):
        raise TypeError(f"norm must be a number, got {norm!r}")
    if not float(norm) >= 1:
        raise ValueError(f"norm must be >= 1, or infinity, got {norm!r}")
    if norm != 2 and not _core.loss_traits(loss)["has_radius"]:
        raise ValueError(
            f"norm is {norm!r}, but loss={loss!r} takes errors for normal, as all but "
            f"{_losses_of_bounded_errors()} do; leave it at 2"
        )


def _losses_of_bounded_errors() -> str:
    names = _core.loss_names()
    return ", ".join(name for name in names if _core.loss_traits(name)["has_radius"])


def with_sizes(
    data: Data, X: Any, error_scale: float = 1.0, radius: float = 1.0, radii: Any = None
) -> Data:
    """Return examples whose standard deviations are multiplied by all three.

    Parameters
    ----------
    data : Gaussians or GaussianMixtures
        The examples as they were read.
    X : Gaussians or array-like
        The same as they were given, with the labels of their rows.
    error_scale, radius : float
        Checked parameters.
    radii : array-like of shape (n_samples,), optional
        A radius for each example, to check here.
    """
    scale = np.array(float(error_scale) * float(radius))
    if radii is None:
        return data.with_spreads_times(scale, "X with errors times error_scale and radius")
    require_index_of(X, "radius", radii)
    each = reading.as_float_array(radii, "radius", len(data)).astype(np.float64)
    bad = ~(each >= 0.0) | reading.beyond_limits(each)
    rule = f"it must be >= 0 and at most {reading.LARGEST:g}"
    reading.refuse_where(bad, "radius", rule, each)
    return data.with_spreads_times(scale * each, "X with errors times error_scale and radius")
