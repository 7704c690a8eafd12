"""What is known of fitted transformers of scikit-learn: matrices of affine maps, and their inputs.

In:  a fitted transformer, maybe made of others, and the number of its features.
Out: A of x -> A x + t where the transformer is affine, and of any the one feature that each of its
outputs depends on, where that is so. A transformer is one rule here and one line in `_RULES`.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from halosvm.gaussians.linear_maps import read_alone
from halosvm.population import EmpiricalBayes

from .feature_map import FeatureMap
from .standard_scaler import UncertainStandardScaler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray


class KnownMap(NamedTuple):
    """What is known of a transformer.

    Attributes
    ----------
    matrix : csr_array of shape (k, d), or None
        A of x -> A x + t, if it is affine.
    inputs : ndarray of shape (k,), or None
        The one feature that each output depends on, if there is none that depends on two.
    not_affine : str
        What is not affine, in words.
    in_steps : bool
        Whether something is constant but for jumps, so that its slopes say nothing.
    """

    matrix: Any
    inputs: NDArray[np.intp] | None
    not_affine: str = ""
    in_steps: bool = False


def known_map(transformer: Any, d: int) -> KnownMap:
    """Return what is known of a fitted transformer of d features."""
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return _scaling(np.ones(d))
    for kind, rule in _RULES.items():
        if isinstance(transformer, kind) and _is_inherited(type(transformer), kind):
            return rule(transformer, d)
    told = getattr(transformer, "known_map_", None)
    return told if isinstance(told, KnownMap) else _unknown(transformer)


def _is_inherited(own: type[Any], kind: type[Any]) -> bool:
    """Tell whether a class transforms as the one of a rule: another method may do anything."""
    return getattr_static(own, "transform", None) is getattr_static(kind, "transform", None)


def affine(matrix: Any) -> KnownMap:
    """Return what is known of x -> A x + t by its matrix, dense or sparse."""
    rows = sparse.csr_array(matrix)
    alone = read_alone(rows)
    return KnownMap(rows, None if alone is None else alone[0])


def _scaling(factors: ArrayLike) -> KnownMap:
    return affine(sparse.diags_array(np.asarray(factors)))


def _unknown(transformer: Any, detail: str = "", *, in_steps: bool = False) -> KnownMap:
    return KnownMap(None, None, type(transformer).__name__ + detail, in_steps)


def _refused(transformer: Any, d: int) -> KnownMap:  # noqa: ARG001
    raise TypeError(
        f"transformer is {type(transformer).__name__}, which takes Gaussians by itself; Propagate "
        "is for transformers of arrays"
    )


def _of_one_feature_each(transformer: Any, d: int, detail: str = "", each: int = 1) -> KnownMap:
    return KnownMap(None, np.repeat(np.arange(d), each), type(transformer).__name__ + detail)


# -- transformers of one kind ----------------------------------------------------------------------
def _divided(transformer: Any, d: int) -> KnownMap:
    return _scaling(np.ones(d) if transformer.scale_ is None else 1.0 / transformer.scale_)


def _max_abs(transformer: MaxAbsScaler, d: int) -> KnownMap:
    if getattr(transformer, "clip", False):
        return _of_one_feature_each(transformer, d, "(clip=True)")
    return _divided(transformer, d)


def _min_max(transformer: MinMaxScaler, d: int) -> KnownMap:
    if transformer.clip:
        return _of_one_feature_each(transformer, d, "(clip=True)")
    return _scaling(transformer.scale_)


def _robust(transformer: RobustScaler, d: int) -> KnownMap:
    return _divided(transformer, d) if transformer.with_scaling else _scaling(np.ones(d))


def _principal_components(transformer: PCA, d: int) -> KnownMap:  # noqa: ARG001
    components = transformer.components_
    if transformer.whiten:
        spreads = np.sqrt(transformer.explained_variance_)
        components = components / np.maximum(spreads, np.finfo(spreads.dtype).eps)[:, np.newaxis]
    return affine(components)


def _components(transformer: Any, d: int) -> KnownMap:  # noqa: ARG001
    return affine(transformer.components_)


def _discriminants(transformer: LinearDiscriminantAnalysis, d: int) -> KnownMap:  # noqa: ARG001
    return affine(transformer.scalings_[:, : len(transformer.get_feature_names_out())].T)


def _selection(transformer: SelectorMixin, d: int) -> KnownMap:
    return affine(_selecting(transformer.get_support(indices=True), d))


def _selecting(columns: NDArray[np.intp], d: int) -> sparse.csr_array:
    k = len(columns)
    return sparse.csr_array((np.ones(k), (np.arange(k), columns)), shape=(k, d))


def _function(transformer: FunctionTransformer, d: int) -> KnownMap:
    func = transformer.func
    if func is None:
        return _scaling(np.ones(d))
    detail = f" of {getattr(func, '__name__', repr(func))}"
    if isinstance(func, np.ufunc) and func.nin == func.nout == 1 and not transformer.kw_args:
        return _of_one_feature_each(transformer, d, detail)
    return _unknown(transformer, detail)


def _spline(transformer: SplineTransformer, d: int) -> KnownMap:
    return _of_one_feature_each(transformer, d, each=transformer.n_features_out_ // d)


def _in_steps(transformer: Any, d: int) -> KnownMap:  # noqa: ARG001
    return _unknown(transformer, in_steps=True)


# -- transformers made of others -------------------------------------------------------------------
def _frozen(transformer: FrozenEstimator, d: int) -> KnownMap:
    return known_map(transformer.estimator, d)


def _pipeline(transformer: Pipeline, d: int) -> KnownMap:
    whole = _scaling(np.ones(d))
    for _, step in transformer.steps:
        if whole.matrix is None and whole.inputs is None:
            # what follows cannot make it known, and of how many features it is, neither
            last = known_map(step, getattr(step, "n_features_in_", 1))
            whole = whole._replace(in_steps=whole.in_steps or last.in_steps)
            continue
        size = len(whole.inputs) if whole.inputs is not None else whole.matrix.shape[0]
        whole = _one_after_the_other(whole, known_map(step, size))
    return whole


def _one_after_the_other(first: KnownMap, second: KnownMap) -> KnownMap:
    in_steps = first.in_steps or second.in_steps
    if first.matrix is not None and second.matrix is not None:
        return affine(second.matrix @ first.matrix)
    inputs = None
    if first.inputs is not None and second.inputs is not None:
        inputs = first.inputs[second.inputs]
    return KnownMap(None, inputs, first.not_affine or second.not_affine, in_steps)


def _columns(transformer: ColumnTransformer, d: int) -> KnownMap:
    parts = []
    of_each = transformer._transformer_to_input_indices  # noqa: SLF001 (columns as numbers)
    for name, columns in of_each.items():
        fitted = transformer.named_transformers_.get(name, "drop")
        place = transformer.output_indices_.get(name, slice(0, 0))
        if len(columns) == 0 or (isinstance(fitted, str) and fitted == "drop"):
            continue
        selection = affine(_selecting(np.asarray(columns), d))
        part = _one_after_the_other(selection, known_map(fitted, len(columns)))
        parts.append((place.start, part))
    return _side_by_side([part for _, part in sorted(parts, key=lambda each: each[0])])


def _union(transformer: FeatureUnion, d: int) -> KnownMap:
    weights = transformer.transformer_weights or {}
    parts = []
    for name, each in transformer.transformer_list:
        if isinstance(each, str) and each == "drop":
            continue
        part = known_map(each, d)
        if part.matrix is not None:
            part = part._replace(matrix=part.matrix * weights.get(name, 1.0))
        parts.append(part)
    return _side_by_side(parts)


def _side_by_side(parts: Iterable[KnownMap]) -> KnownMap:
    matrices, inputs, unknown, steps = zip(*parts, strict=True)
    if all(matrix is not None for matrix in matrices):
        return affine(sparse.vstack(matrices))
    alone = None if any(part is None for part in inputs) else np.concatenate(inputs)
    return KnownMap(None, alone, next(filter(None, unknown)), any(steps))


_RULES: dict[type[Any], Callable[[Any, int], KnownMap]] = {
    StandardScaler: _divided,
    UncertainStandardScaler: _divided,
    EmpiricalBayes: _refused,
    FeatureMap: _refused,
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    RobustScaler: _robust,
    PCA: _principal_components,
    IncrementalPCA: _principal_components,
    TruncatedSVD: _components,
    FastICA: _components,
    NeighborhoodComponentsAnalysis: _components,
    GaussianRandomProjection: _components,
    SparseRandomProjection: _components,
    LinearDiscriminantAnalysis: _discriminants,
    SelectorMixin: _selection,
    FunctionTransformer: _function,
    PowerTransformer: _of_one_feature_each,
    QuantileTransformer: _of_one_feature_each,
    SplineTransformer: _spline,
    Binarizer: _in_steps,
    KBinsDiscretizer: _in_steps,
    OneHotEncoder: _in_steps,
    OrdinalEncoder: _in_steps,
    FrozenEstimator: _frozen,
    Pipeline: _pipeline,
    ColumnTransformer: _columns,
    FeatureUnion: _union,
}
