"""Arrays that hold their errors: those of the packages uncertainties and astropy.

Both are recognised by their attributes, so that neither has to be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks import reading, units
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from halosvm.checks.reading import FloatArray

# The power that turns the unit of an uncertainty into that of its standard deviation.
_ROOTS = {"std": 1, "var": 0.5, "ivar": -0.5}


def holds_errors(values: Any) -> bool:
    """Tell whether values are astropy NDData or an array of numbers of `uncertainties`."""
    return reading.holds_errors_and_masks(values) or _is_uncertainties(values)


def split(values: Any) -> tuple[FloatArray, Covariances, Any]:
    """Return the (n, d) values, their covariances, and the unit of both, if there is one."""
    if reading.holds_errors_and_masks(values):
        return _split_nddata(values)
    return *_split_uncertainties(np.asarray(values)), None


def standard_deviations(errors: Any, argument: str = "errors") -> tuple[Any, Any]:
    """Return errors, or what an astropy NDUncertainty holds, as standard deviations, and the unit.

    Values are plain numbers or masked arrays.
    """
    if not hasattr(errors, "uncertainty_type"):
        return units.split(errors)
    std, unit = _as_std(errors.array, errors.uncertainty_type, argument), errors.unit
    return std, None if unit is None else unit ** _ROOTS[errors.uncertainty_type]


def _as_std(array: Any, uncertainty_type: str, argument: str) -> Any:
    """Return the standard deviations of an NDUncertainty's array."""
    if uncertainty_type == "std":
        return array
    variance = reading.as_float_array(array, argument)
    if uncertainty_type == "ivar":
        variance = arrays.inverse_of(variance, argument)
    elif uncertainty_type != "var":
        raise ValueError(
            f"{argument} are of the type {uncertainty_type!r}; std, var and ivar can be read"
        )
    reading.refuse_where(~(variance >= 0), argument, "a variance must be >= 0", variance)
    return np.sqrt(variance)


def _split_nddata(values: Any) -> tuple[FloatArray, Covariances, Any]:
    uncertainty, unit = values.uncertainty, values.unit
    if uncertainty is None:
        raise ValueError("values are NDData without an uncertainty")
    data = values.data if values.mask is None else np.ma.array(values.data, mask=values.mask)
    read = reading.as_float_array(data, "values", "n_samples", "n_features")
    reading.require_in_range(read, "values")
    bars, error_unit = standard_deviations(uncertainty)
    std = reading.as_float_array(bars, "errors", *read.shape)
    if error_unit is not None:  # else the errors are in the unit of the values
        features = units.for_features(unit, read.shape[1])
        factors = units.error_factors(error_unit, features, 2, "errors", "values")
        std = std if factors is None else std * factors
    return read, Covariances.from_std(std, argument="errors"), unit


def _is_uncertainties(values: Any) -> bool:
    array = values if isinstance(values, np.ndarray) else None
    if array is None and isinstance(values, list | tuple):
        array = np.array(values, dtype=object)
    if array is None or array.dtype.kind != "O" or array.size == 0:
        return False
    return any(hasattr(each, "derivatives") for each in array.flat)


def _split_uncertainties(values: Any) -> tuple[FloatArray, Covariances]:
    reading.require_shape(values, "values", "n_samples", "n_features")
    nominal = np.array([[getattr(v, "nominal_value", v) for v in row] for row in values], float)
    reading.require_in_range(nominal, "values")
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


def _factor(row: list[dict[Any, float]]) -> FloatArray:
    variables = {variable: k for k, variable in enumerate(dict.fromkeys(v for c in row for v in c))}
    factor = np.zeros((len(row), len(variables)))
    for j, components in enumerate(row):
        for variable, part in components.items():
            factor[j, variables[variable]] = part
    return factor
