"""Values of estimators as JSON and back: parameters, classes, arrays, measures of a fit.

JSON has no infinity and no NaN, which parameters and measures may be; its keys are strings alone.
Whoever reads checks lengths against what is there before anything is made of them.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from halosvm.files.json_tree import Node

_AS_NUMBERS = (
    4096  # longer arrays are for machines alone: a third of the digits, a tenth of the time
)
_TYPES = ("<f8", "<f4", "<i8", "<i4", "|b1")
_MOST_PADDING = 2**24
# NumPy's functions of one array that a model may hold by their names
_FUNCTIONS = {
    name: getattr(np, name)
    for name in (
        *("abs", "arccosh", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "negative", "reciprocal", "sin", "sinh", "sqrt"),
        *("square", "tan", "tanh"),
    )
}


# ---- parameters ----------------------------------------------------------------------------------
def parameter_to_json(name: str, value: Any) -> Any:
    """Prepare a parameter.

    A dict (`class_weight`, `fixed`) becomes pairs, for JSON's keys are strings, a tuple (`bounds`)
    its numbers or arrays of numbers, and infinity (`norm`) its name; a generator, which only a new
    fit would use, is left out.
    """
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, dict):
        return {"pairs": [[_scalar(name, key), _item(name, item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [np.asarray(part, dtype=np.float64).tolist() for part in value]}
    if isinstance(value, type | np.dtype) and value is not bool:
        return {"dtype": _type_of(name, value)}
    if isinstance(value, np.ufunc) and value in _FUNCTIONS.values():
        return {"function": value.__name__}
    if isinstance(value, list | np.ndarray):
        return {"array": array_to_json(_numbers_of(name, value))}
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return measure_to_json(float(value))
    return _scalar(name, value)


def parameter_from_json(node: Node) -> Any:
    """Read a parameter back."""
    if not isinstance(node.value, dict):
        return node.scalar()
    kinds = ("pairs", "tuple", "dtype", "array", "number", "function")
    fields = node.fields((), kinds)
    if len(fields) != 1:
        node.fail(f"expected one of {', '.join(kinds)}")
    [(form, content)] = fields.items()
    if form == "pairs":
        pairs = [pair.items() for pair in content.items()]
        if any(len(pair) != 2 for pair in pairs):
            content.fail("expected pairs")
        return {key.scalar(): _item_of(item) for key, item in pairs}
    if form == "tuple":
        parts = content.items()
        return tuple(
            _nested(each) if isinstance(each.value, list) else each.number() for each in parts
        )
    if form == "dtype":
        return np.dtype(content.choice(_TYPES)).type
    if form == "array":
        return array_from_json(content)
    if form == "function":
        return _FUNCTIONS[content.choice(_FUNCTIONS)]
    return measure_from_json(node)


def _item(name: str, value: Any) -> Any:
    """Prepare what a dict holds: a scalar, or a list of them."""
    return (
        [_scalar(name, each) for each in value] if isinstance(value, list) else _scalar(name, value)
    )


def _item_of(node: Node) -> Any:
    if isinstance(node.value, list):
        return [each.scalar() for each in node.items()]
    return node.scalar()


def _scalar(name: str, value: Any) -> str | int | float | bool | None:
    """Return the value as a type of JSON that reads back equal."""
    if isinstance(value, np.generic):
        value = value.item()
    if (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    kind = "a function" if callable(value) else f"{value!r} of type {type(value).__name__}"
    raise TypeError(
        f"{name} holds {kind}, which cannot be saved; keep the estimator by joblib.dump"
    )


def _type_of(name: str, value: Any) -> str:
    try:
        code = str(np.dtype(value).str)
    except TypeError:
        code = ""
    if code not in _TYPES:
        raise TypeError(f"{name} holds the type {value!r}, which cannot be saved")
    return code


def _numbers_of(name: str, value: Any) -> npt.NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.newbyteorder("<").str not in _TYPES:
        raise TypeError(
            f"{name} holds {value!r} of type {type(value).__name__}, which cannot be saved"
        )
    return array


# ---- classes -------------------------------------------------------------------------------------
def classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Keep the dtype with the classes, so that predictions come back as the same type."""
    return {
        "dtype": "object" if classes.dtype == object else classes.dtype.str,
        "values": [_scalar("classes_", value) for value in classes],
    }


def classes_from_json(node: Node) -> npt.NDArray[Any]:
    """Read classes back, after a check that they go with their dtype and are distinct."""
    fields = node.fields(("dtype", "values"))
    values = [each.scalar() for each in fields["values"].items()]
    try:
        dtype = np.dtype(fields["dtype"].text())
    except TypeError:
        fields["dtype"].fail("there is no such dtype")
    wanted: dict[str, Any] = {
        "b": bool,
        "i": int,
        "u": int,
        "f": float,
        "U": str,
        "O": (str, int, float),
    }
    # texts are padded to the length that the dtype tells, whatever that is
    if dtype.kind not in wanted or dtype.itemsize * len(values) > _MOST_PADDING:
        fields["dtype"].fail(f"classes cannot have dtype {dtype.str!r}")
    for i, value in enumerate(values):
        if not isinstance(value, wanted[dtype.kind]) or (
            isinstance(value, bool) and dtype.kind not in "bO"
        ):
            fields["values"].items()[i].fail(f"class {value!r} does not go with {dtype.str!r}")
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            fields["values"].fail(f"classes {values!r} do not fit into dtype {dtype.str!r}")
    try:
        classes = np.array(values, dtype=dtype)
    except (OverflowError, ValueError):
        fields["values"].fail(f"classes do not fit into dtype {dtype.str!r}")
    if classes.tolist() != values:
        fields["values"].fail(f"classes {values!r} do not fit into dtype {dtype.str!r}")
    if len(set(values)) != len(values):
        fields["values"].fail(f"classes {values!r} are not distinct")
    return classes


# ---- arrays --------------------------------------------------------------------------------------
def array_to_json(array: npt.NDArray[Any], *, readable: bool = False) -> Any:
    """Prepare an array: float64 as lists of lists; other types, and long ones, with their shape.

    Readable ones are never long. Arrays by columns stay so: products depend on it in the last bit.
    """
    kept = array.dtype.newbyteorder("<")
    by_columns = array.ndim == 2 and min(array.shape) > 1 and array.strides[0] < array.strides[1]
    if readable or (kept.str == "<f8" and 0 < array.size <= _AS_NUMBERS and not by_columns):
        return array.tolist()
    if by_columns:
        return {"columns": array_to_json(array.T)}
    described = {"dtype": kept.str, "shape": list(array.shape)}
    if array.size <= _AS_NUMBERS:
        return described | {"values": array.ravel().tolist()}
    content = np.ascontiguousarray(array, kept).tobytes()
    return described | {"base64": base64.b64encode(content).decode("ascii")}


def array_from_json(node: Node) -> npt.NDArray[Any]:
    """Read an array of finite numbers back."""
    if isinstance(node.value, list):
        return _nested(node)
    if "columns" in node.fields((), None):
        columns = array_from_json(node.fields(("columns",))["columns"])
        if columns.ndim != 2:
            node.fail("expected columns of a matrix")
        return columns.T
    content = "base64" if "base64" in node.fields((), None) else "values"
    fields = node.fields(("dtype", "shape", content))
    dtype = np.dtype(fields["dtype"].choice(_TYPES))
    shape = [each.count() for each in fields["shape"].items()]
    if len(shape) > 4:
        fields["shape"].fail("expected at most 4 dimensions")
    size = math.prod(shape)
    if content == "values":
        given = fields["values"].items()
        if len(given) != size:
            fields["values"].fail(f"holds {len(given)} numbers, shape {shape} needs {size}")
        return _typed(fields["values"], given, dtype).reshape(shape)
    try:
        data = base64.b64decode(fields["base64"].text(), validate=True)
    except (binascii.Error, ValueError) as error:
        fields["base64"].fail(f"is not base64: {error}")
    if len(data) != size * dtype.itemsize:
        fields["base64"].fail(
            f"holds {len(data)} bytes, shape {shape} needs {size * dtype.itemsize}"
        )
    array = np.frombuffer(data, dtype).reshape(shape)
    if dtype.kind == "b" and (np.frombuffer(data, np.uint8) > 1).any():
        fields["base64"].fail("holds a truth value that is none")
    if dtype.kind == "f" and not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        fields["base64"].fail(f"the number at {place} is not finite")
    return array.astype(dtype.newbyteorder("="))


def _typed(node: Node, given: list[Node], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind == "b":
        return np.array([each.flag() for each in given], dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            array = np.array([each.number() for each in given], dtype)
        if not np.isfinite(array).all():
            node.fail(f"a number does not fit into {dtype.str}")
        return array
    values = [each.count() for each in given]
    if values and max(values) > np.iinfo(dtype).max:
        node.fail(f"a number does not fit into {dtype.str}")
    return np.array(values, dtype)


def _nested(node: Node) -> npt.NDArray[np.float64]:
    """Return lists of lists, all of one length, of numbers."""
    rows = node.value
    if not isinstance(rows, list) or not rows:
        node.fail("must be numbers, at least one")
    if not any(isinstance(row, list) for row in rows):
        if {*map(type, rows)} <= {int, float}:
            array = np.array(rows, dtype=np.float64)
            if np.isfinite(array).all():
                return array
        return np.array([each.number() for each in node.items()])
    parts = [_nested(each) for each in node.items()]
    for i, part in enumerate(parts):
        if part.shape != parts[0].shape:
            node.items()[i].fail(f"has shape {part.shape}, the first has {parts[0].shape}")
    return np.array(parts)


# ---- measures ------------------------------------------------------------------------------------
def measure_to_json(value: Any) -> Any:
    """Prepare a number, text or array; a number that is not finite becomes its name."""
    if isinstance(value, np.ndarray):
        return [measure_to_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value


def measure_from_json(node: Node) -> Any:
    """Read a measure back."""
    if isinstance(node.value, list):
        values = [measure_from_json(item) for item in node.items()]
        known = all(isinstance(value, int | float | np.ndarray) for value in values)
        if not known or len({np.shape(value) for value in values}) > 1:
            node.fail("expected numbers, or rows of equal length")
        return np.array(values)
    if isinstance(node.value, dict):
        return float(node.fields(("number",))["number"].choice(("inf", "-inf", "nan")))
    return node.scalar()
