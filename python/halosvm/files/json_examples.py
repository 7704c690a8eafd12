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
    from halosvm.files.json_tree import Node


def covariances_to_json(covariances: Covariances) -> dict[str, Any]:
    """Prepare covariances by what they store."""
    kind, shape = covariances.kind, list(covariances.shape)
    if kind == "sparse_diagonal":
        raise TypeError("sparse covariances cannot be saved; keep the estimator by joblib.dump")
    document: dict[str, Any] = {"kind": kind, "shape": shape}
    if kind == "columns":
        inner, columns = covariances.inside()
        return document | {
            "columns": array_to_json(columns.astype(np.int64)),
            "inner": covariances_to_json(inner),
        }
    if kind in ("isotropic", "diagonal"):
        document["squared"] = bool(covariances.squared)
    for name in ("values", "offsets", "diagonal_values"):
        array = getattr(covariances, name)
        if array is not None:
            document[name] = array_to_json(array)
    return document


def covariances_from_json(node: Node) -> Covariances:
    """Read covariances back; their own constructors check them."""
    arrays = ("squared", "values", "offsets", "diagonal_values", "columns", "inner")
    fields = node.fields(("kind", "shape"), arrays)
    kinds = ("zero", "isotropic", "diagonal", "low_rank", "full", "columns")
    kind = fields["kind"].choice(kinds)
    shape = [each.count() for each in fields["shape"].items()]
    if len(shape) != 2:
        fields["shape"].fail("expected two numbers")
    try:
        covariances = _covariances_of(kind, shape, fields, node)
    except (ValueError, TypeError) as error:
        if str(error).startswith(node.place):
            raise
        node.fail(str(error))
    if list(covariances.shape) != shape:
        fields["shape"].fail(f"is {shape}, the numbers are of {list(covariances.shape)}")
    return covariances


def _covariances_of(
    kind: str, shape: list[int], fields: dict[str, Node], node: Node
) -> Covariances:
    n, d = shape
    if kind == "zero":
        return Covariances.zero(n, d)
    if kind == "columns":
        own = node.fields(("kind", "shape", "columns", "inner"))
        columns, inner = array_from_json(own["columns"]), covariances_from_json(own["inner"])
        return Covariances._of_columns(inner, columns, d, "inner")  # noqa: SLF001
    if "values" not in fields:
        node.fail("'values' is missing")
    values = array_from_json(fields["values"])
    if kind in ("isotropic", "diagonal"):
        if values.ndim != (1 if kind == "isotropic" else 2):
            fields["values"].fail(f"has {values.ndim} dimensions")
        squared = "squared" in fields and fields["squared"].flag()
        make = Covariances.from_std if squared else Covariances.from_variance
        return make(values, d)
    if kind == "full":
        return Covariances.full(values)
    diagonal = array_from_json(fields["diagonal_values"]) if "diagonal_values" in fields else None
    if "offsets" not in fields:
        return Covariances.low_rank(values, diagonal)
    offsets = array_from_json(fields["offsets"])
    steps = np.diff(offsets) if offsets.ndim == 1 and offsets.dtype.kind == "i" else np.array([-1])
    if len(offsets) != n + 1 or offsets[0] != 0 or (steps < 0).any():
        fields["offsets"].fail("expected ranks summed up, from 0")
    if values.ndim != 1 or d < 1 or len(values) != d * int(offsets[-1]):
        fields["values"].fail(f"holds {values.size} numbers, offsets need {d * int(offsets[-1])}")
    parts = [values[d * i : d * j].reshape(d, j - i) for i, j in pairwise(offsets)]
    return Covariances.low_rank(parts, diagonal)


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
