"""Arrays that hold their errors: those of the packages uncertainties and astropy.

Both are recognised by their attributes, so that neither has to be installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from halosvm import covariance_arrays as arrays
from halosvm.covariances import Covariances


def holds_errors(values: Any) -> bool:
    """Tell whether values are astropy NDData or an array of numbers of `uncertainties`."""
    return _is_nddata(values) or _is_uncertainties(values)


def split(values: Any) -> tuple[arrays.FloatArray, Covariances]:
    """Return the (n, d) values and their covariances, whose errors are called those of values."""
    if _is_nddata(values):
        return _split_nddata(values)
    return _split_uncertainties(np.asarray(values))


def standard_deviations(errors: Any) -> Any:
    """Return errors as they are, unless they are an astropy NDUncertainty."""
    if not hasattr(errors, "uncertainty_type"):
        return errors
    array, kind = errors.array, errors.uncertainty_type
    if errors.unit is not None:
        raise ValueError(f"errors have the unit {errors.unit}, values have none; pass NDData")
    return _as_std(array, kind, "errors")


def _as_std(array: Any, kind: str, argument: str) -> Any:
    """Return the standard deviations of an NDUncertainty's array."""
    if kind == "std":
        return array
    variance = arrays.as_float_array(array, argument)
    if kind == "ivar":
        variance = arrays.inverse_of(variance, argument)
    elif kind != "var":
        raise ValueError(f"{argument} are of the type {kind!r}; std, var and ivar can be read")
    arrays.refuse_where(~(variance >= 0), argument, "a variance must be >= 0", variance)
    return np.sqrt(variance)


def _is_nddata(values: Any) -> bool:
    return hasattr(values, "uncertainty") and hasattr(values, "data") and hasattr(values, "mask")


def _split_nddata(values: Any) -> tuple[arrays.FloatArray, Covariances]:
    uncertainty, unit = values.uncertainty, values.unit
    if uncertainty is None:
        raise ValueError("values are NDData without an uncertainty")
    kind = uncertainty.uncertainty_type
    if uncertainty.unit is not None and unit is not None:
        expected = {"std": 1, "var": 2, "ivar": -2}.get(kind, 1)
        if uncertainty.unit != unit**expected:
            raise ValueError(
                f"values are in {unit}, their {kind} uncertainty is in {uncertainty.unit}; "
                f"convert it to {unit**expected}"
            )
    data = values.data if values.mask is None else np.ma.array(values.data, mask=values.mask)
    read = arrays.as_float_array(data, "values", "n_samples", "n_features")
    arrays.refuse_where(arrays.beyond_limits(read), "values", "it must be finite", read)
    std = arrays.as_float_array(_as_std(uncertainty.array, kind, "errors"), "errors", *read.shape)
    return read, Covariances.from_std(std, argument="errors")


def _is_uncertainties(values: Any) -> bool:
    array = values if isinstance(values, np.ndarray) else None
    if array is None and isinstance(values, list | tuple):
        array = np.array(values, dtype=object)
    if array is None or array.dtype.kind != "O" or array.size == 0:
        return False
    return any(hasattr(each, "derivatives") for each in array.flat)


def _split_uncertainties(values: Any) -> tuple[arrays.FloatArray, Covariances]:
    arrays.require_shape(values, "values", "n_samples", "n_features")
    nominal = np.array([[getattr(v, "nominal_value", v) for v in row] for row in values], float)
    arrays.refuse_where(arrays.beyond_limits(nominal), "values", "it must be finite", nominal)
    std = np.array([[getattr(v, "std_dev", 0.0) for v in row] for row in values], float)
    independent = Covariances.from_std(std, argument="errors of values")
    rows = [[_components(v) for v in row] for row in values]
    if all(sum(map(len, row)) == len(set().union(*row)) for row in rows):
        return nominal, independent
    return nominal, Covariances.low_rank([_factor(row) for row in rows])


def _components(value: Any) -> dict[Any, float]:
    """Return what each independent variable adds to the error, with its sign, where it is not 0."""
    derivatives = getattr(value, "derivatives", {})
    parts = {variable: slope * variable.std_dev for variable, slope in derivatives.items()}
    return {variable: part for variable, part in parts.items() if part}


def _factor(row: list[dict[Any, float]]) -> arrays.FloatArray:
    variables = {variable: k for k, variable in enumerate(dict.fromkeys(v for c in row for v in c))}
    factor = np.zeros((len(row), len(variables)))
    for j, components in enumerate(row):
        for variable, part in components.items():
            factor[j, variables[variable]] = part
    return factor
