"""Gaussians, mixtures and covariances as JSON and back, by the arrays that they store.

What is read goes through their own constructors, which check the numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from halosvm.files.json_values import array_from_json, array_to_json
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halosvm.files.json_tree import Node

    Array = NDArray[Any]


# ---- covariances ---------------------------------------------------------------------------------
_ARRAYS = ("values", "offsets", "diagonal_values", "columns")


def covariances_to_json(covariances: Covariances) -> dict[str, Any]:
    """Prepare covariances by what they store."""
    if sparse.issparse(covariances.values):
        raise TypeError("sparse covariances are not kept in JSON; name the file *.skops")
    document: dict[str, Any] = {"kind": covariances.kind, "shape": list(covariances.shape)}
    if covariances.squared:
        document["squared"] = True
    for name in _ARRAYS:
        array = getattr(covariances, name)
        if array is not None:
            kept = array.astype(np.int64) if array.dtype.kind == "i" else array
            document[name] = array_to_json(kept)
    if covariances.inner is not None:
        document["inner"] = covariances_to_json(covariances.inner)
    return document


def covariances_from_json(node: Node) -> Covariances:
    """Read covariances back; their own constructors check them."""
    fields = node.fields(("kind", "shape"), ("squared", "inner", *_ARRAYS))
    shape = [each.count() for each in fields["shape"].items()]
    if len(shape) != 2:
        fields["shape"].fail("expected two numbers")
    needed, read = _READERS[fields["kind"].choice(_READERS)]
    node.fields(("kind", "shape", *needed), None)
    parts = {name: array_from_json(each) for name, each in fields.items() if name in _ARRAYS}
    squared = "squared" in fields and fields["squared"].flag()
    inner = covariances_from_json(fields["inner"]) if "inner" in fields else None
    try:
        covariances = read(*shape, squared=squared, inner=inner, **parts)
    except (ValueError, TypeError) as error:
        node.fail(str(error))
    if list(covariances.shape) != shape:
        fields["shape"].fail(f"is {shape}, the numbers are of {list(covariances.shape)}")
    return covariances


def _zero(n: int, d: int, **_: Any) -> Covariances:
    return Covariances.zero(n, d)


def _spread(n: int, d: int, *, values: Array, squared: bool, **_: Any) -> Covariances:  # noqa: ARG001
    make = Covariances.from_std if squared else Covariances.from_variance
    return make(values, d, argument="values")


def _full(n: int, d: int, *, values: Array, **_: Any) -> Covariances:  # noqa: ARG001
    return Covariances.full(values, argument="values")


def _low_rank(
    n: int,
    d: int,
    *,
    values: Array,
    offsets: Array | None = None,
    diagonal_values: Array | None = None,
    **_: Any,
) -> Covariances:
    if offsets is None:
        return Covariances.low_rank(values, diagonal_values)
    if offsets.shape != (n + 1,) or offsets.dtype.kind != "i" or offsets[0] != 0:
        raise ValueError("offsets must be ranks summed up, from 0")
    if (np.diff(offsets) < 0).any() or values.shape != (d * int(offsets[-1]),) or d < 1:
        raise ValueError(f"values have shape {values.shape}, offsets end at {offsets[-1]}")
    parts = [values[d * i : d * j].reshape(d, j - i) for i, j in pairwise(offsets)]
    return Covariances.low_rank(parts, diagonal_values)


def _columns(n: int, d: int, *, columns: Array, inner: Covariances, **_: Any) -> Covariances:  # noqa: ARG001
    return Covariances._of_columns(inner, columns, d, "inner")  # noqa: SLF001


_READERS: dict[str, tuple[tuple[str, ...], Callable[..., Covariances]]] = {
    "zero": ((), _zero),
    "isotropic": (("values",), _spread),
    "diagonal": (("values",), _spread),
    "low_rank": (("values",), _low_rank),
    "full": (("values",), _full),
    "columns": (("columns", "inner"), _columns),
}


# ---- examples ------------------------------------------------------------------------------------
def examples_to_json(examples: Gaussians | GaussianMixtures) -> dict[str, Any]:
    """Prepare Gaussians, or mixtures of them."""
    if isinstance(examples, GaussianMixtures):
        return {
            "components": examples_to_json(examples.components),
            "weights": array_to_json(examples.weights),
            "offsets": array_to_json(examples.offsets),
        }
    if sparse.issparse(examples.mean):
        raise TypeError("sparse examples cannot be saved; keep the estimator by joblib.dump")
    return {
        "mean": array_to_json(examples.mean),
        "covariances": covariances_to_json(examples.covariances),
    }


def examples_from_json(node: Node) -> Gaussians | GaussianMixtures:
    """Read examples back."""
    if "components" in node.fields((), None):
        return _mixtures_from_json(node)
    fields = node.fields(("mean", "covariances"))
    mean = array_from_json(fields["mean"])
    covariances = covariances_from_json(fields["covariances"])
    if mean.dtype.kind != "f" or mean.shape != covariances.shape:
        fields["mean"].fail(f"has shape {mean.shape}, covariances have {covariances.shape}")
    return Gaussians(mean, cov=covariances)


def _mixtures_from_json(node: Node) -> GaussianMixtures:
    fields = node.fields(("components", "weights", "offsets"))
    components = examples_from_json(fields["components"])
    weights, offsets = array_from_json(fields["weights"]), array_from_json(fields["offsets"])
    if not isinstance(components, Gaussians):
        fields["components"].fail("expected Gaussians")
    if offsets.ndim != 1 or offsets.dtype.kind != "i" or len(offsets) < 2 or offsets[0] != 0:
        fields["offsets"].fail("expected numbers of components summed up, from 0")
    try:
        checked = GaussianMixtures(components, weights, np.diff(offsets))
    except (ValueError, TypeError) as error:
        node.fail(str(error))
    # as they were saved: weights that are normalised once more may change their last bit
    return checked.replaced(weights=np.asarray(weights, dtype=np.float64))
