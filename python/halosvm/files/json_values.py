"""Values of estimators as JSON and back: parameters, classes, arrays, measures of a fit.

JSON has no infinity and no NaN, which parameters and measures may be; its keys are strings alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def parameter_to_json(name: str, value: Any) -> Any:
    """Prepare a parameter.

    A dict (`class_weight`) becomes pairs, for JSON's keys are strings, a tuple (`bounds`) its
    numbers or arrays of numbers, and infinity (`norm`) its name; a generator, which only a new fit
    would use, is left out.
    """
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, dict):
        pairs = [[_scalar(name, key), _scalar(name, item)] for key, item in value.items()]
        return {"pairs": pairs}
    if isinstance(value, tuple):
        return {"tuple": [np.asarray(part, dtype=np.float64).tolist() for part in value]}
    if isinstance(value, float) and math.isinf(value):
        return measure_to_json(value)
    return _scalar(name, value)


def parameter_from_json(value: Any) -> Any:
    """Read a parameter back."""
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(value["tuple"])
    return dict(value["pairs"]) if "pairs" in value else measure_from_json(value)


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
    raise TypeError(f"{name} holds {value!r} of type {type(value).__name__}, which cannot be saved")


def classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Keep the dtype with the classes, so that predictions come back as the same type."""
    return {
        "dtype": "object" if classes.dtype == object else classes.dtype.str,
        "values": [_scalar("classes_", value) for value in classes],
    }


def classes_from_json(record: dict[str, Any]) -> npt.NDArray[Any]:
    """Read classes back, after a check that they go with their dtype and are distinct."""
    dtype = np.dtype(record["dtype"])
    values = record["values"]
    wanted: dict[str, Any] = {
        "b": bool,
        "i": int,
        "u": int,
        "f": float,
        "U": str,
        "O": (str, int, float),
    }
    if dtype.kind not in wanted:
        raise ValueError(f"classes cannot have dtype {dtype.str!r}")
    for value in values:
        if not isinstance(value, wanted[dtype.kind]):
            raise TypeError(f"class {value!r} does not go with dtype {dtype.str!r}")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values:
        raise ValueError(f"classes {values!r} do not fit into dtype {dtype.str!r}")
    if len(set(values)) != len(values):
        raise ValueError(f"classes {values!r} are not distinct")
    return classes


def finite_array(document: dict[str, Any], name: str, *, n_dims: int) -> npt.NDArray[np.float64]:
    """Return an entry of a document as an array, after a check that it is one of finite numbers."""
    array = np.array(document[name])
    if array.ndim != n_dims or array.dtype.kind not in "if" or array.size == 0:
        raise ValueError(f"{name} must be numbers in {n_dims} dimensions")
    # Digits such as 1e999 read as infinity without being JSON's forbidden constants.
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a value that is not finite")
    return array.astype(np.float64)


def measure_to_json(value: Any) -> Any:
    """Prepare a number, text or array; a number that is not finite becomes its name."""
    if isinstance(value, np.ndarray):
        return [measure_to_json(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value


def measure_from_json(value: Any) -> Any:
    """Read a measure back."""
    if isinstance(value, list):
        return np.array([measure_from_json(item) for item in value])
    if isinstance(value, dict):
        return float(value["number"])
    return value


def reject_constant(constant: str) -> float:
    """Raise for NaN and Infinity, which Python's reader would take."""
    raise ValueError(f"{constant} is not a number")
