"""Linear subspaces: of each covariance the leading part that holds a fraction of its variance.

In:  covariances and the fraction p; means.
Out: what `Covariances` stores of low rank, or of diagonals with some variances 0; projected means.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.parameters import thread_count
from halosvm.gaussians.covariance_kinds import storage_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_storage import Kind
    from halosvm.gaussians.covariances import Covariances


def require_fraction(p: Any, argument: str) -> float:
    """Return p as a float, if it is a number above 0 and at most 1."""
    if not isinstance(p, numbers.Real) or isinstance(p, bool):
        raise TypeError(f"{argument} must be a number, got {p!r}")
    if not 0.0 < float(p) <= 1.0:
        raise ValueError(f"{argument} must be above 0 and at most 1, got {p!r}")
    return float(p)


def require_mean(mean: Any, argument: str) -> None:
    """Raise ValueError unless this says what to do with the means."""
    if not isinstance(mean, str) or mean not in ("keep", "project"):
        raise ValueError(f"{argument} must be one of keep, project; got {mean!r}")


def truncate(
    covariances: Covariances, p: Any, n_threads: int | None
) -> tuple[Kind, FloatArray | None, NDArray[np.int64] | None]:
    """Return kind, values and offsets of the truncated batch, in the type of the given one."""
    share, threads = require_fraction(p, "p"), thread_count(n_threads)
    if len(covariances) == 0:
        return covariances.kind, covariances.values, covariances.offsets
    return storage_of(covariances).truncated(covariances, share, threads)


def project_means(means: FloatArray, covariances: Covariances) -> FloatArray:
    """Return U U'x for each mean x, with an orthonormal basis U of the range of its covariance.

    Factors must have orthogonal columns, as those of truncated covariances have.
    """
    covariances = covariances.expanded()
    if covariances.diagonal_values is not None:
        raise ValueError(
            "subspace_mean='project' needs covariances without an added diagonal, whose range is "
            "the whole space"
        )
    if storage_of(covariances).independent:
        return np.asarray(np.where(covariances.variances() > 0, means, np.zeros((), means.dtype)))
    projected = np.zeros(means.shape)
    for rows, factors in storage_of(covariances).factor_groups(covariances):
        lengths = np.einsum("ndr,ndr->nr", factors, factors)
        along = np.einsum("ndr,nd->nr", factors, means[rows].astype(np.float64)) / lengths
        projected[rows] = np.einsum("ndr,nr->nd", factors, along)
    return projected.astype(means.dtype)
