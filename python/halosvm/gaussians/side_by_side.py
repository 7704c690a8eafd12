"""Features of the same examples side by side, with what their errors have to do with each other.

In:  Gaussians that were made of the same examples, each by a map of its own; arrays and frames.
Out: one batch with the features of all. How the errors of two parts depend on each other stands in
neither of them: it is known where all parts are linear images of one batch, and where they read
different features of a batch whose features are independent. Anything else is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from halosvm.checks.error_arguments import OWN_NAMES, read_examples
from halosvm.checks.frames import FeatureNames, labels_of
from halosvm.checks.limits import joined as joined_limits
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


def side_by_side(blocks: Sequence[Any]) -> Gaussians:
    """Return Gaussians with the features of all blocks, which belong to the same examples.

    At least one is Gaussians; columns of the others are certain.
    """
    some = next(block for block in blocks if hasattr(block, "covariances"))
    parts: list[Gaussians] = [
        block if hasattr(block, "covariances") else _certain(block, f"part {i}", some)
        for i, block in enumerate(blocks)
        if np.shape(block)[1:] != (0,)  # as an encoder's of one category, with one dropped
    ]
    for i, part in enumerate(parts):
        if len(part) != len(parts[0]):
            raise ValueError(f"part {i} has {len(part)} rows, part 0 has {len(parts[0])}")
    units = [part.feature_units for part in parts]
    names = [part.feature_names for part in parts if part.feature_names is not None]
    together: FeatureNames | None = np.concatenate(names) if len(names) == len(parts) else None
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
        groups=next((part.groups for part in parts if part.groups is not None), None),
        limits=joined_limits([part.limits for part in parts], [p.shape for p in parts], axis=1),
    )
    object.__setattr__(joined, "origin", origin)
    return joined.as_posteriors(any(part.posterior for part in parts))


def _certain(columns: Any, argument: str, some: Gaussians) -> Gaussians:
    """Return an array or a frame as Gaussians; errors call it as `argument`."""
    names, labels = OWN_NAMES._replace(mean=argument), labels_of(columns, argument)
    mean, covariances, feature_names, feature_units, *_ = read_examples(names, columns, labels)
    return some.replaced(
        mean=mean,
        covariances=covariances,
        feature_names=feature_names,
        feature_units=feature_units,
        groups=None,
        limits=None,
    )


def _joint(parts: Sequence[Gaussians]) -> tuple[Covariances, Origin | None]:
    """Return the covariances of all features together, and what they were made of."""
    n, widths = len(parts[0]), [part.shape[1] for part in parts]
    d, starts = sum(widths), np.cumsum([0, *widths])
    uncertain = [i for i, part in enumerate(parts) if not part.covariances.certain]
    if not uncertain:
        zero = Covariances.zero(n, d)
        mapped = any(part.origin is not None for part in parts)
        return zero, Origin(zero, np.arange(d), None) if mapped else None
    origins = {i: origin_of(parts[i]) for i in uncertain}
    source = origins[uncertain[0]].source
    for i in uncertain:
        if origins[i].source is not source:
            raise ValueError(
                f"parts {uncertain[0]} and {i} are not known to come from the same examples, so "
                "that what their errors have to do with each other is lost (as between processes, "
                f"with n_jobs > 1){_REMEDY}"
            )
    matrix = None
    if all(origin.matrix is not None for origin in origins.values()):
        certain = (sparse.csr_array((width, source.n_features)) for width in widths)
        rows = [origins[i].matrix if i in origins else zero for i, zero in enumerate(certain)]
        matrix = sparse.csr_array(sparse.vstack(rows))
        matrix.eliminate_zeros()
    of_all = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in uncertain])
    if len(uncertain) == 1:
        only = parts[uncertain[0]].covariances
        return only.among(of_all, d), Origin(source, origins[uncertain[0]].columns, matrix)
    if matrix is not None:
        made = np.flatnonzero(np.diff(matrix.indptr))  # the others are certain, in all parts
        covariances = source.mapped(matrix[made]).among(made, d)
        return covariances, Origin(source, np.arange(source.n_features), matrix)
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
    covariances = _independent([parts[i].covariances for i in uncertain])
    return covariances.among(of_all, d), Origin(source, read, None)


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
