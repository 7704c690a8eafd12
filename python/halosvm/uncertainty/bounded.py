"""Bounded errors: intervals as Gaussians, and the radius within which values are with a confidence.

In:  lower and upper limits; the probability of a violation that is allowed.
Out: Gaussians and radii for the worst case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from halosvm.checks import reading, units
from halosvm.checks.frames import labels_of
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import as_gaussians

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.checks.frames import Labels
    from halosvm.gaussians.gaussians import Gaussians


def confidence_radius(
    epsilon: ArrayLike, law: Literal["gaussian", "chebyshev"] = "gaussian"
) -> float | NDArray[np.float64]:
    r"""Return the radius for which the worst case holds with probability 1 - epsilon.

    With the `radius` r, the loss :math:`\xi = \max(0, 1 - y f(x) + r \sqrt{w' \Sigma w})` of the
    worst case (norm 2) says that

    .. math:: P(y f(X) \ge 1 - \xi) \ge 1 - \epsilon

    - "gaussian": :math:`r = \Phi^{-1}(1 - \epsilon)`, for :math:`X \sim N(x, \Sigma)`.
    - "chebyshev": :math:`r = \sqrt{(1 - \epsilon) / \epsilon}`, for every law of mean x and
      covariance :math:`\Sigma`; no smaller radius will do for all of them.

    Parameters
    ----------
    epsilon : float or array-like
        Probability of a violation that is allowed, one for all examples or one for each. Between 0
        and 1; for "gaussian" at most 1/2, beyond which the radius would be negative.
    law : {"gaussian", "chebyshev"}, default="gaussian"
        What is known of the errors.

    Returns
    -------
    float or ndarray of the shape of `epsilon`

    Raises
    ------
    ValueError, TypeError
        For an `epsilon` outside of its range, and an unknown law.

    Notes
    -----
    The radius :math:`\sqrt{\epsilon / (1 - \epsilon)}` in print (N. Couellan and S. Jan, 2017) is
    the inverse of the second, and guarantees nothing.

    Examples
    --------
    >>> from halosvm.uncertainty import confidence_radius
    >>> round(confidence_radius(0.05), 3), round(confidence_radius(0.05, "chebyshev"), 3)
    (1.645, 4.359)
    """
    if law not in ("gaussian", "chebyshev"):
        raise ValueError(f"law must be 'gaussian' or 'chebyshev', got {law!r}")
    given = reading.as_float_array(epsilon, "epsilon").astype(np.float64)
    ok = (given > 0) & ((given <= 0.5) if law == "gaussian" else (given < 1))
    rule = "it must be above 0 and " + ("at most 0.5" if law == "gaussian" else "below 1")
    if law == "gaussian":
        rule += ", beyond which a normal law would need a negative radius"
    if given.ndim == 0 and not ok:
        raise ValueError(f"epsilon is {given:g}; {rule}")
    reading.refuse_where(np.atleast_1d(~ok), "epsilon", rule, np.atleast_1d(given))
    # 1 - epsilon would lose the digits of a small epsilon; abs makes the -0.0 of 1/2 a 0
    radius = np.abs(ndtri(given)) if law == "gaussian" else np.sqrt((1.0 - given) / given)
    return float(radius) if given.ndim == 0 else radius


def intervals(low: ArrayLike, high: ArrayLike) -> Gaussians:
    """Read values that are known to lie in intervals, as tolerances and rounded numbers do.

    The mean is the middle of the interval and the standard deviation is half of its width. Meant
    for ``loss="worst_case"``: with ``norm=inf`` the points that count are those of the box of the
    intervals, with the default 2 those of the ellipsoid that touches all of its sides. Other losses
    would read the half-width as one standard deviation of a normal law, of which a third lies
    outside.

    Parameters
    ----------
    low, high : array-like of shape (n_samples, n_features)
        Limits, in one unit or in units that can be converted; equal limits make a certain value.
        Data frames are paired by their index and by the names of their columns, which must be equal
        if both have some.

    Returns
    -------
    Gaussians
        With diagonal covariances.

    Raises
    ------
    ValueError, TypeError
        For limits that are missing or infinite, a `high` below `low`, and labels or units that
        contradict each other.

    Examples
    --------
    >>> from halosvm.uncertainty import intervals
    >>> X = intervals([[1.0, 0.5]], [[2.0, 0.5]])
    >>> X.mean, X.covariances.variances()
    (array([[1.5, 0.5]]), array([[0.25, 0.  ]]))
    """
    bare, unit = units.split(low)
    lower = reading.as_float_array(bare, "low", "n_samples", "n_features")
    reading.require_in_range(lower, "low")
    lower = lower.astype(np.float64, copy=False)
    labels, features = labels_of(low, "low"), units.for_features(unit, lower.shape[1])
    bare, unit = units.split(high)
    upper = reading.as_float_array(bare, "high")
    if upper.shape != lower.shape:
        raise ValueError(f"high has shape {upper.shape}, low has shape {lower.shape}")
    reading.require_in_range(upper, "high")
    _require_equal_names(labels, labels_of(high, "high"))
    upper = units.matched_values(upper, unit, high, "high", labels, features, "low")
    width = upper.astype(np.float64, copy=False) - lower
    reading.refuse_where(width < 0, "high - low", "high must not be below low", width)
    covariances = Covariances.from_std(0.5 * width, argument="(high - low) / 2")
    gaussians = as_gaussians(lower + 0.5 * width, X_cov=covariances, labels=labels)
    return gaussians.replaced(feature_units=features)


def _require_equal_names(low: Labels, high: Labels) -> None:
    """Raise ValueError for columns such as a_low and a_high, whose order names cannot tell."""
    if low.names is None or high.names is None or set(low.names) == set(high.names):
        return
    name: Any = next(n for n in high.names if n not in set(low.names))
    raise ValueError(
        f"high has a column named {name!r}, low has none; give both the names of the features, or "
        "pass high.to_numpy() to pair them by position"
    )
