"""Features of the same examples side by side, with what their errors have to do with each other.

In:  Gaussians that were made of the same examples, each by a map of its own.
Out: one batch with the features of all. How the errors of two parts depend on each other stands in
neither of them: it is known where all parts are linear images of one batch, and where they read
different features of a batch whose features are independent. Anything else is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from halosvm.checks.frames import FeatureNames
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

_REMEDY = (
    "; for a transformer of scikit-learn, wrap the whole: "
    "Propagate(ColumnTransformer(...)) or Propagate(FeatureUnion(...))"
)


class Origin(NamedTuple):
    """What Gaussians were made of: covariances, the features read, the matrix of a linear map."""

    source: Covariances
    columns: NDArray[np.intp]
    matrix: sparse.csr_array | None

    def followed_by(self, A: Any) -> Origin:
        """Return the origin of what a map makes of these; A is its matrix if it is linear."""
        if A is None or self.matrix is None:
            return Origin(self.source, self.columns, None)
        matrix = sparse.csr_array(sparse.csr_array(A) @ self.matrix)
        return Origin(self.source, np.unique(matrix.indices[matrix.data != 0]), matrix)


def origin_of(X: Gaussians) -> Origin:
    """Return what these Gaussians were made of, themselves if nothing is known."""
    if X.origin is not None:
        return X.origin
    d = X.shape[1]
    return Origin(X.covariances, np.arange(d), sparse.eye_array(d, format="csr"))


def side_by_side(parts: Sequence[Any]) -> Gaussians:
    """Return Gaussians with the features of all parts, which belong to the same examples."""
    for i, part in enumerate(parts):
        if not hasattr(part, "covariances"):
            raise TypeError(
                f"part {i} is {type(part).__name__}, the others are Gaussians; make it Gaussians, "
                "too, which are certain if no errors are given"
            )
        if len(part) != len(parts[0]):
            raise ValueError(f"part {i} has {len(part)} rows, part 0 has {len(parts[0])}")
    units = [part.feature_units for part in parts]
    names = [part.feature_names for part in parts]
    together: FeatureNames | None = None
    if all(part is not None for part in names):
        together = np.concatenate(names)
    of_each = None
    if any(part is not None for part in units):
        each = zip(parts, units, strict=True)
        of_each = tuple(u for X, own in each for u in own or (None,) * X.shape[1])
    covariances, origin = _joint(parts)
    joined: Gaussians = parts[0].replaced(
        mean=arrays.join_columns([part.mean for part in parts]),
        covariances=covariances,
        feature_names=together,
        feature_units=of_each,
    )
    object.__setattr__(joined, "origin", origin)
    return joined


def _joint(parts: Sequence[Gaussians]) -> tuple[Covariances, Origin | None]:
    """Return the covariances of all features together, and what they were made of."""
    uncertain = [i for i, part in enumerate(parts) if not part.covariances.certain]
    if not uncertain:
        return Covariances.zero(len(parts[0]), sum(part.shape[1] for part in parts)), None
    origins = {i: origin_of(parts[i]) for i in uncertain}
    source = origins[uncertain[0]].source
    for i in uncertain:
        if origins[i].source is not source:
            raise ValueError(
                f"parts {uncertain[0]} and {i} are not known to come from the same examples, so "
                "that what their errors have to do with each other is lost (as between processes, "
                f"with n_jobs > 1){_REMEDY}"
            )
    if all(origin.matrix is not None for origin in origins.values()):
        certain = (sparse.csr_array((part.shape[1], source.n_features)) for part in parts)
        rows = [origins[i].matrix if i in origins else zero for i, zero in enumerate(certain)]
        matrix = sparse.csr_array(sparse.vstack(rows))
        return source.mapped(matrix), Origin(source, np.arange(source.n_features), matrix)
    read = np.concatenate([origin.columns for origin in origins.values()])
    readers = np.bincount(read)
    if not storage_of(source.expanded()).independent or readers.max() > 1:
        shared = int(np.argmax(readers)) if readers.max() > 1 else None
        why = "their features depend on each other"
        if shared is not None:
            why = f"feature {shared} is read by two of them"
        raise ValueError(
            "the errors of parts that are not linear images of the examples can be put side by "
            f"side only where they are independent, and {why}{_REMEDY}"
        )
    covariances = _independent([part.covariances for part in parts])
    return covariances, Origin(source, read, None)


def _independent(blocks: Sequence[Covariances]) -> Covariances:
    """Return the covariances of features that are independent between blocks."""
    blocks = [block.expanded() for block in blocks]
    stores = [storage_of(block) for block in blocks]
    n, d = len(blocks[0]), sum(block.n_features for block in blocks)
    ends = np.cumsum([block.n_features for block in blocks])
    columns = [slice(end - block.n_features, end) for end, block in zip(ends, blocks, strict=True)]
    if any(store.whole for store in stores):
        matrices = np.zeros((n, d, d))
        for place, block in zip(columns, blocks, strict=True):
            matrices[:, place, place] = block.to_full()
        return Covariances.full(matrices)
    own = [store.own_diagonal(block) for store, block in zip(stores, blocks, strict=True)]
    diagonal = np.concatenate(own, axis=1)
    if all(store.independent for store in stores):
        return Covariances.diagonal(diagonal)
    groups = [list(store.factor_groups(b)) for store, b in zip(stores, blocks, strict=True)]
    ranks = [max((F.shape[2] for _, F in each), default=0) for each in groups]
    factors = np.zeros((n, d, sum(ranks)))
    begin = 0
    for place, each, rank in zip(columns, groups, ranks, strict=True):
        for rows, F in each:
            factors[rows, place, begin : begin + F.shape[2]] = F
        begin += rank
    return Covariances.low_rank(factors, diagonal if diagonal.any() else None)
