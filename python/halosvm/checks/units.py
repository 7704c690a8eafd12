"""Units of features: quantities in, plain numbers and their units out.

Quantities of astropy, pint, quantities and unyt, also inside an array of xarray, are recognised by
their attributes, so that no package has to be installed; they do the conversions. An array without
a unit and one that is dimensionless are the same; between an array with a unit and one without
there is no conversion, and the pair is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from halosvm.checks.frames import is_labelled_array, paired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.checks.frames import Labels
    from halosvm.checks.reading import FloatArray

    Array = NDArray[np.float64]

# The unit of each feature, None for one without; None as a whole when no feature has one.
FeatureUnits: TypeAlias = tuple[Any, ...] | None


def unit_of(array: Any) -> Any:
    """Return the unit of a quantity, None for what has none and for what is dimensionless."""
    array = _unlabelled(array)
    if hasattr(array, "to_numpy") or hasattr(array, "colnames"):
        return None  # of frames and tables these attributes would be columns
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "names", None) is not None:
        return None
    unit = getattr(array, "units" if _has_units(array) else "unit", None)
    if unit is None:
        return None
    try:
        return None if bool(unit == unit**0) else unit
    except (TypeError, ValueError):  # units that cannot be raised to a power
        return unit


def holds_quantity(array: Any) -> bool:
    """Tell whether this has a unit, or is a quantity without dimension."""
    return unit_of(array) is not None or _has_units(_unlabelled(array))


def _unlabelled(array: Any) -> Any:
    """Return the quantity inside an array of xarray, anything else as it is."""
    return array.data if is_labelled_array(array) else array


def _has_units(array: Any) -> bool:
    """Tell whether this is a quantity of pint or a package of its kind, whose word is `units`."""
    return hasattr(array, "units") and (hasattr(array, "magnitude") or hasattr(array, "to_value"))


def split(array: Any) -> tuple[Any, Any]:
    """Return an array without its unit, and the unit: one, one for each column, or None.

    Masks and the names of columns stay with the array.
    """
    array = _unlabelled(array)
    if hasattr(array, "colnames"):
        columns = {name: split(array[name]) for name in array.colnames}
        of_each = tuple(unit for _, unit in columns.values())
        return _Columns({name: c for name, (c, _) in columns.items()}), _or_none(of_each)
    if isinstance(array, list | tuple):
        return array, None
    unit = unit_of(array)
    if _has_units(array):
        return (array.magnitude if hasattr(array, "magnitude") else np.asarray(array)), unit
    if hasattr(array, "unmasked") and hasattr(array, "mask"):
        return np.ma.array(_bare(array.unmasked), mask=array.mask), unit
    return (array if getattr(array, "unit", None) is None else _bare(array)), unit


class _Columns(dict[str, Any]):
    """The columns of a table whose units were taken off."""

    @property
    def colnames(self) -> list[str]:
        return list(self)


def _bare(array: Any) -> Any:
    """Return the numbers of an astropy quantity or column, with the mask of a masked column."""
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.array(np.asarray(array), mask=np.ma.getmaskarray(array))
    return np.asarray(array) if isinstance(array, np.ndarray) else array


def refuse(array: Any, argument: str) -> None:
    """Raise TypeError for a quantity, or a list that holds some."""
    unit, inside = unit_of(array), ""
    if unit is None and isinstance(array, list | tuple):
        inside = " inside a list"
        unit = next((u for u in map(unit_of, _items(array)) if u is not None), None)
    if unit is None and hasattr(array, "colnames"):
        unit = next((u for u in _or_none(split(array)[1]) or () if u is not None), None)
    if unit is not None:
        remedy = "one array of one unit" if inside else "plain numbers"
        raise TypeError(f"{argument} has the unit {unit}{inside}; pass {remedy}")


def _items(array: Any) -> Iterator[Any]:
    for item in array:
        if isinstance(item, list | tuple):
            yield from _items(item)
        elif not isinstance(item, int | float | str):
            yield item


def for_features(unit: Any, n_features: int) -> FeatureUnits:
    """Return the unit of each feature."""
    if unit is None or isinstance(unit, tuple):
        return _or_none(unit)
    return (unit,) * n_features


def _or_none(of_each: FeatureUnits) -> FeatureUnits:
    return None if of_each is None or all(unit is None for unit in of_each) else of_each


def text(of_each: FeatureUnits) -> str:
    """Name the units in a message."""
    if of_each is None:
        return "no unit"
    names = list(dict.fromkeys("none" if unit is None else str(unit) for unit in of_each))
    few = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return f"the unit {few}" if len(names) == 1 else f"the units {few}"


def equal(of_each: FeatureUnits, others: FeatureUnits) -> bool:
    """Tell whether two batches of features have the same units."""
    if of_each is None or others is None:
        return of_each is others
    if len(of_each) != len(others):
        return False
    return all(_same(unit, other) for unit, other in set_of_pairs(of_each, others))


def set_of_pairs(first: tuple[Any, ...], second: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return the pairs that differ as objects: often one for thousands of features."""
    return list({(id(a), id(b)): (a, b) for a, b in zip(first, second, strict=True)}.values())


def matched_errors(
    values: FloatArray,
    unit: Any,
    given: Any,
    argument: str,
    labels: Labels,
    features: FeatureUnits,
    other: str,
    *,
    power: int = 1,
) -> FloatArray:
    """Return errors in the order and in the units of the features.

    Parameters
    ----------
    values, unit
        The errors, as `split` and `as_float_array` made them.
    given : array-like
        What they were made of, which may have labels.
    argument, labels, features, other, power
        As in `frames.paired` and `error_factors`.
    """
    if power == 1:
        _refuse_other_attribute(given, argument, labels, other)
    values, unit = _paired(values, unit, given, argument, labels, other)
    factors = error_factors(unit, features, values.ndim, argument, other, power=power)
    return values if factors is None else values * factors


def matched_values(
    values: FloatArray,
    unit: Any,
    given: Any,
    argument: str,
    labels: Labels,
    features: FeatureUnits,
    other: str,
) -> FloatArray:
    """Return (n, d) values in the order and in the units of the features; see `matched_errors`."""
    _refuse_other_attribute(given, argument, labels, other)
    values, unit = _paired(values, unit, given, argument, labels, other)
    return converted(values, for_features(unit, values.shape[1]), features, argument, other)


def _refuse_other_attribute(given: Any, argument: str, labels: Labels, other: str) -> None:
    """Raise ValueError for arrays of xarray whose attributes name different units."""
    own = given.attrs.get("units") if is_labelled_array(given) else None
    if own is not None and labels.unit is not None and own != labels.unit:
        raise ValueError(
            f"{argument} has the attribute units={own!r}, {other} has {labels.unit!r}; attributes "
            "are not converted: give both one unit, or make quantities of them"
        )


def _paired(
    values: FloatArray, unit: Any, given: Any, argument: str, labels: Labels, other: str
) -> tuple[FloatArray, Any]:
    """Return values, and the unit of each column if they have several, in the order of labels."""
    values = paired(values, given, argument, labels, other)
    if isinstance(unit, tuple) and values.shape[1:] == (len(unit),):
        of_each = np.empty((1, len(unit)), dtype=object)
        of_each[0] = unit
        unit = tuple(paired(of_each, given, argument, labels, other)[0])
    return values, unit


def error_factors(
    unit: Any, features: FeatureUnits, ndim: int, argument: str, other: str, *, power: int = 1
) -> Array | None:
    """Return what turns errors into the units of the features, None for nothing to do.

    Parameters
    ----------
    unit : unit, tuple of units or None
        That of the errors, as `split` returns it.
    features : tuple of units or None
        Those of the features.
    ndim : {1, 2, 3}
        Dimensions of the errors: one for each row, for each feature too, or matrices.
    argument, other : str
        Names of errors and features in error messages.
    power : {1, 2}
        2 for variances.

    Returns
    -------
    ndarray of shape (), (n_features,) or (n_features, n_features), or None
    """
    if unit is None and features is None:
        return None
    n = 1 if features is None else len(features)
    errors = unit if isinstance(unit, tuple) else (unit,) * n
    wanted = (None,) * len(errors) if features is None else features
    if len(errors) != len(wanted):
        return None  # of columns too few or too many, which is another error
    if (unit is None) != (features is None) or any(
        (e is None) != (w is None) for e, w in set_of_pairs(errors, wanted)
    ):
        raise ValueError(
            f"{argument} has {text(for_features(unit, n))}, {other} has {text(features)}; "
            f"give {'both' if features is None or unit is None else 'both in each column'} "
            "their units, or pass both as plain numbers of one unit"
        )
    if ndim == 1 and any(not _same(w, wanted[0]) for w in wanted):
        raise ValueError(
            f"{argument} has one number for each row, {other} has {text(features)}; "
            "give an error for each feature"
        )
    if ndim == 3:
        products = [[_times(a, b) for b in wanted] for a in wanted]
        return np.array([[_factor(unit, p, argument, other) for p in row] for row in products])
    made: dict[tuple[int, int], float] = {}
    for e, w in set_of_pairs(errors, wanted):
        target = w if power == 1 else _times(w, w)
        made[id(e), id(w)] = 1.0 if w is None else _factor(e, target, argument, other)
    factors = np.array([made[id(e), id(w)] for e, w in zip(errors, wanted, strict=True)])
    return factors[0] if ndim == 1 else factors


def converted(
    values: NDArray[Any], given: FeatureUnits, wanted: FeatureUnits, argument: str, other: str
) -> NDArray[Any]:
    """Return (n, d) values in the wanted units, the array itself where nothing changes."""
    if equal(given, wanted):
        return values
    if given is None or wanted is None:
        remedy = "give it a unit" if given is None else "pass plain numbers, as there"
        raise ValueError(f"{argument} has {text(given)}, {other} has {text(wanted)}; {remedy}")
    result = np.array(values, np.float64)
    for j, (unit, target) in enumerate(zip(given, wanted, strict=True)):
        if (unit is None) != (target is None):
            raise ValueError(
                f"{argument} has in column {j} {text((unit,)) if unit else 'no unit'}, in {other} "
                f"it is {text((target,)) if target else 'no unit'}"
            )
        if not _same(unit, target):
            result[:, j] = _convert(result[:, j], unit, target, argument, other)
    return result


def _same(unit: Any, other: Any) -> bool:
    try:
        return unit is other or bool(unit == other)
    except Exception:  # of two registries of pint, as after unpickling, or of two packages
        return str(unit) == str(other)


def _times(unit: Any, other: Any) -> Any:
    """Return the unit of a product of errors; errors of magnitudes are in plain magnitudes."""
    try:
        return _of_differences(unit) * _of_differences(other)
    except (TypeError, ValueError):
        return None


def _of_differences(unit: Any) -> Any:
    return getattr(unit, "function_unit", unit)


def _factor(unit: Any, target: Any, argument: str, other: str) -> float:
    """Return what a difference in `unit` is in `target`, which must be a multiple."""
    if _same(unit, target):
        return 1.0
    source, target = _of_differences(unit), _of_differences(target)
    if _same(source, target):
        return 1.0
    zero, one, two = _convert(np.array([0.0, 1.0, 2.0]), source, target, argument, other)
    if zero != 0.0 or abs(two - 2.0 * one) > 1e-9 * abs(one):
        raise ValueError(
            f"{argument} is in {source}, {other} in {target}, which differ by more than a factor; "
            f"convert {other} to a unit without offset"
        )
    return float(one)


def _convert(values: Array, unit: Any, target: Any, argument: str, other: str) -> Array:
    try:
        if hasattr(unit, "to"):
            return np.asarray(unit.to(target, values))
        if hasattr(unit, "_REGISTRY"):  # of pint, which makes no products with degrees Celsius
            quantity = unit._REGISTRY.Quantity(values, unit)  # noqa: SLF001 (there is no other way)
            return np.asarray(quantity.to(target).magnitude)
        quantity = values * unit
        made = quantity.rescale(target) if hasattr(quantity, "rescale") else quantity.to(target)
        return np.array(made)
    except Exception:  # of a class of its own in each package
        raise ValueError(
            f"{argument} is in {unit}, which cannot be converted to {target}, the unit of {other}"
        ) from None
