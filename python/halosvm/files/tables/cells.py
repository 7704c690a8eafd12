"""Cells of columns: numbers with their errors; which are missing, and what becomes of them.

In:  columns of a table and their roles.
Out: values and standard deviations, NaN where a value is missing, and the rows to use.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from halosvm.checks import units
from halosvm.checks.error_names import INVERSE_VARIANCE, STD, unequal_sides_told
from halosvm.files.tables.labels import is_missing_label
from halosvm.files.tables.limits import take_flags
from halosvm.files.tables.trouble import TableError, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from halosvm.checks.error_names import ErrorColumn
    from halosvm.checks.limits import Limits
    from halosvm.files.tables.long import LongColumns
    from halosvm.files.tables.reading import Reading
    from halosvm.files.tables.roles import Roles
    from halosvm.files.tables.text import TextColumns
    from halosvm.files.tables.typed import TypedColumns

    Columns: TypeAlias = TextColumns | TypedColumns | LongColumns
    Array = npt.NDArray[np.float64]


def numbers_of(
    columns: Columns, roles: Roles, numbers: Sequence[str], reading: Reading
) -> tuple[Array, Array, list[str]]:
    """Return values and standard deviations side by side, both NaN where the value is missing.

    Where a feature has a limit, which `columns.limits` then holds, the value alone is NaN.
    """
    names = [*numbers, *(name for error in roles.errors.values() for name in error.names)]
    block = finite(columns, names, reading, roles.features)
    take_flags(columns, reading.limits, block, names, roles.features)
    limited = limited_cells(columns, numbers)
    if reading.missing == "error":
        _refuse_missing(columns, block, names, roles, limited)
    values = block[:, : len(numbers)].copy()
    std = np.zeros_like(values)
    where = {name: j for j, name in enumerate(numbers)}
    begin, without = len(numbers), 0
    sides: dict[str, Array] = {}
    for feature, error in roles.errors.items():
        end, j = begin + len(error.names), where[feature]
        factor = _error_factor(columns, feature, error)
        std[:, j] = _standard_deviations(columns, error, block[:, begin:end]) * factor
        if len(error.names) > 1:
            sides[feature] = block[:, begin:end]
        begin = end
        missing = np.isnan(std[:, j]) & ~np.isnan(values[:, j])
        without += int(np.sum(missing))
        values[missing, j] = np.nan
        std[np.isnan(values[:, j]) & ~limited[:, j], j] = np.nan
        _refuse_limits_without_errors(columns, feature, error, limited[:, j] & np.isnan(std[:, j]))
    notes = [*_sentinels_told(block, names), *filter(None, [unequal_sides_told(sides)])]
    if without and reading.missing == "impute":
        notes.append(f"{counted(without, 'value')} without an error taken as missing")
    return values, std, notes


_SENTINELS = tuple(sign * v for v in (99, 99.9, 99.99, 999, 999.9, 9999, 99999) for sign in (-1, 1))
_SENTINELS += (-32768, 32767, -1e20, 1e20, -1e30, 1e30, 9.96921e36, -9.96921e36)


def _sentinels_told(block: Array, names: Sequence[str]) -> Iterator[str]:
    """Tell of numbers that stand for missing ones in many tables, and far from all others here."""
    if not block.size:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns where all is missing
        ends = {-1: np.nanmin(block, axis=0), 1: np.nanmax(block, axis=0)}
    for sentinel in _SENTINELS:
        near = np.isclose(ends[1 if sentinel > 0 else -1], sentinel, rtol=1e-6, atol=0)
        held = {}
        for j in np.flatnonzero(near).tolist():
            column = block[:, j]
            at = np.isclose(column, sentinel, rtol=1e-6, atol=0)
            others = column[~at & ~np.isnan(column)]
            far = others.size and np.abs(others - sentinel).min() > np.ptp(others)
            if far:
                held[names[j]] = int(at.sum())
        if held:
            first = next(iter(held))
            more = f" and {counted(len(held) - 1, 'other column')}" if held.keys() - {first} else ""
            yield (
                f"column {first!r}{more} holds {sentinel:g} in {held[first]} of {len(block)} rows, "
                "far from all other values; where it stands for a missing one, give --sentinel "
                f"{sentinel:g}"
            )


def weights_of(columns: Columns, name: str, reading: Reading) -> Array:
    """Return how much each row counts, NaN where that is missing."""
    weights = finite(columns, [name], reading)[:, 0]
    _refuse_negative(columns, name, weights, "a weight")
    if not np.nansum(weights):
        raise TableError(f"{columns.path}, column {name!r}: no weight is above 0")
    return weights


def limited_cells(columns: Columns, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Mark the cells of columns that have a limit."""
    found = columns.limits.of(names)
    shape = len(columns.lines), len(names)
    return np.zeros(shape, dtype=bool) if found is None else found.there


def _refuse_limits_without_errors(
    columns: Columns, feature: str, error: ErrorColumn, bad: npt.NDArray[np.bool_]
) -> None:
    if bad.any():
        raise TableError(
            f"{_place(columns, int(np.argmax(bad)))}, column {error.names[0]!r}: no error beside "
            f"the limit of {feature!r}; write that of the reading, 0 where the limit is of the "
            "true value itself"
        )


def finite(
    columns: Columns, names: Sequence[str], reading: Reading, features: Sequence[str] = ()
) -> Array:
    """Return columns of numbers, NaN where one is missing, after a check that none is infinite.

    Limits of features are NaN, too, and others refused.
    """
    block = columns.numbers(names)
    columns.limits.refuse_but_for(features, names, columns)
    for sentinel in reading.sentinels:
        block[block == sentinel] = np.nan
        if abs(sentinel) < np.finfo(np.float32).max:
            block[block == np.float64(np.float32(sentinel))] = np.nan  # in columns of float32
    _refuse(columns, np.isinf(block), block, names, "is not a finite number")
    return block


def _refuse_missing(
    columns: Columns,
    block: Array,
    names: Sequence[str],
    roles: Roles,
    limited: npt.NDArray[np.bool_],
) -> None:
    """Raise for the first row with a missing cell, or with an error that is infinite."""
    inverse = {e.names[0] for e in roles.errors.values() if e.holds == INVERSE_VARIANCE}
    absent = np.isnan(block)
    absent[:, : limited.shape[1]] &= ~limited
    absent |= (block == 0) & np.array([name in inverse for name in names])
    rows = np.flatnonzero(absent.any(axis=1))
    if rows.size:
        name = names[int(np.argmax(absent[rows[0]]))]
        raise _missing(columns, name, int(rows[0]))


def _standard_deviations(columns: Columns, error: ErrorColumn, given: Array) -> Array:
    """Turn the numbers of an error column into standard deviations, NaN where one is missing."""
    if len(error.names) == 2:
        signs = [np.sign(side[~np.isnan(side)]) for side in given.T]
        upper, lower = (set(sign.tolist()) - {0.0} for sign in signs)
        if len(upper) > 1 or len(lower) > 1:
            at = 0 if len(upper) > 1 else 1
            _refuse_negative(columns, error.names[at], given[:, at])
        given = np.abs(given).mean(axis=1, keepdims=True)
    column = given[:, 0]
    _refuse_negative(columns, error.names[0], column)
    if error.holds == STD:
        return column
    if error.holds == INVERSE_VARIANCE:
        # nothing is known of a value whose error is infinite
        column = np.divide(1.0, column, out=np.full(len(column), np.nan), where=column != 0)
    return np.sqrt(column)


def _refuse_negative(columns: Columns, name: str, values: Array, what: str = "an error") -> None:
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise TableError(
            f"{_place(columns, row)}, column {name!r}: {values[row]:g} is negative; {what} must "
            f"be >= 0, and a number that stands for a missing cell is named by --sentinel "
            f"{values[row]:g}"
        )


def _error_factor(columns: Columns, feature: str, error: ErrorColumn) -> float:
    """Return what turns standard deviations of an error column into the unit of its feature."""
    wanted = columns.unit(feature)
    for name in error.names:
        unit = columns.unit(name)
        if unit is None and wanted is None:
            return 1.0
        power = 1 if error.holds == STD else 2
        try:
            given = unit**-1 if error.holds == INVERSE_VARIANCE and unit is not None else unit
            factors = units.error_factors(
                (given,), (wanted,), 2, f"column {name!r}", f"column {feature!r}", power=power
            )
        except (ValueError, TypeError) as error_of_units:
            raise TableError(
                f"{columns.path}: column {name!r} in {unit}, of column {feature!r} in {wanted}: "
                f"{error_of_units}; --ignore-units takes numbers as they are"
            ) from error_of_units
        factor = 1.0 if factors is None else float(factors[0])
        if unit != columns.unit(error.names[0]):
            raise TableError(f"{columns.path}: {' and '.join(error.names)} have different units")
    return factor if power == 1 else float(np.sqrt(factor))


def complete_rows(
    columns: Columns,
    values: Array,
    labels: list[str],
    label: str | None,
    numbers: Sequence[str],
    n_features: int,
    reading: Reading,
) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the rows to use, and what is to be told of the others."""
    missing = np.isnan(values)
    missing[:, :n_features] &= ~limited_cells(columns, numbers[:n_features])
    no_label = np.array([is_missing_label(cell) for cell in labels], dtype=bool)
    if reading.missing == "drop":
        bad = np.asarray(missing.any(axis=1)) | (no_label if labels else False)
        rows = np.flatnonzero(~bad)
        if not rows.size:
            raise TableError(f"{columns.path}: every row has a missing cell")
        left_out = f"{int(bad.sum())} of {counted(len(bad), 'row')} with missing cells left out"
        return rows, [left_out] if bad.any() else []
    if no_label.any():
        row = int(np.argmax(no_label))
        cell = f" {labels[row]!r}" if labels[row] else ""
        raise TableError(
            f"{_place(columns, row)}, column {label!r}: missing label{cell}; --missing drop leaves "
            "out such rows"
        )
    absent = np.argwhere(missing[:, n_features:])
    if len(absent):
        row, j = (int(index) for index in absent[0])
        raise _missing(columns, numbers[n_features + j], row, of_target=True)
    told = f"{counted(int(missing.sum()), 'missing value')} estimated from the others of their rows"
    return np.arange(len(values)), [told] if missing.any() else []


def _missing(columns: Columns, column: str, row: int, *, of_target: bool = False) -> TableError:
    cell = columns.cells(column)[row]
    why = f"missing value {repr(cell) if cell else '(an empty cell)'}"
    if of_target and not is_missing_label(cell):
        why = f"no error beside the value {cell}"
    remedy = "--missing drop leaves out such rows"
    if not of_target:
        remedy += ", --missing impute estimates values"
    return TableError(f"{_place(columns, row)}, column {column!r}: {why}; {remedy}")


def _refuse(
    columns: Columns, bad: npt.NDArray[np.bool_], block: Array, names: Sequence[str], why: str
) -> None:
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        raise TableError(
            f"{_place(columns, row)}, column {names[column]!r}: {block[row, column]} {why}"
        )


def _place(columns: Columns, row: int) -> str:
    return f"{columns.path}, {columns.unit_of_rows} {columns.lines[row]}"


# ---- units ------------------------------------------------------------------------------------

_IN_BRACKETS = re.compile(r"(.+) \[([^\[\]]+)\]")


def with_unit(name: str, unit: Any) -> str:
    """Return the name that a model keeps: with the unit, for files of models hold names alone."""
    return name if unit is None else f"{name} [{unit}]"


def column_of(name: str, unit: str | None, names: Sequence[str]) -> str | None:
    """Return the column of a name, which may have its unit in brackets there, or not have it."""
    bare, _ = name_and_unit(name, ())
    return next((n for n in (name, with_unit(bare, unit), bare) if n in names), None)


def name_and_unit(name: str, names: Sequence[str]) -> tuple[str, str | None]:
    """Return the column of a feature of a model, and the unit to convert it to."""
    found = None if name in names else _IN_BRACKETS.fullmatch(name)
    return (name, None) if found is None else (found[1], found[2])


def convert(
    columns: Columns,
    values: Array,
    std: Array,
    names: Sequence[str],
    wanted: Sequence[str | None],
    limits: Limits | None = None,
) -> None:
    """Convert values, errors and limits to the units a model was trained in, in place."""
    for j, (name, text) in enumerate(zip(names, wanted, strict=True)):
        unit = columns.unit(name)
        if text is None and unit is None:
            continue
        own = f"{columns.path}: column {name!r} has {units.text(None if unit is None else (unit,))}"
        if text is None or unit is None:
            raise TableError(f"{own}, the model was trained on it in {text or 'no unit'}")
        from astropy.units import Unit  # type: ignore[import-untyped, unused-ignore]

        try:
            target = Unit(text)
            for array in (values, *(limits or ())):
                array[:, j : j + 1] = units.converted(
                    array[:, j : j + 1], (unit,), (target,), "it", "the model"
                )
            factors = units.error_factors((unit,), (target,), 2, "it", "the model")
        except (ValueError, TypeError) as error:
            raise TableError(f"{own}, the model was trained on it in {text}: {error}") from error
        std[:, j] *= 1.0 if factors is None else float(factors[0])
