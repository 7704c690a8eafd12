"""Labels: cells of a column in; text, integers or booleans out, and which of them are missing."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

# of words: "none" and "-" are classes in many tables
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "<na>", "nat", "?"})


def is_missing_label(cell: str) -> bool:
    """Tell whether a cell says that there is no label."""
    return cell.lower() in _MISSING


def parse_labels(cells: Sequence[str]) -> npt.NDArray[Any]:
    """Labels as integers or booleans where every cell is exactly one, else as text.

    Parameters
    ----------
    cells : sequence of str

    Returns
    -------
    ndarray of int64, bool or str
        An array whose entries print as the cells: "1.0" and "01" therefore stay text.
    """
    kinds = set(cells)
    if kinds <= {"True", "False"}:
        return np.array([cell == "True" for cell in cells])
    if all(_is_integer(cell) for cell in kinds):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return np.array(cells, dtype=np.str_)


def with_equal_numbers_spelt_alike(cells: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the cells with ``1.0`` as ``1`` where both are there, and what is to be told of it.

    That is done where every cell is a number: beside words, ``1`` and ``1.0`` may be names.
    """
    values = {cell: _number(cell) for cell in dict.fromkeys(cells)}
    if None in values.values() or len(set(values.values())) == len(values):
        return list(cells), []
    first: dict[Any, str] = {}
    for cell, value in values.items():
        first.setdefault(value, cell)
    one, other = next((c, first[v]) for c, v in values.items() if first[v] != c)
    if all(value is not None and _is_whole(value) for value in first):
        first = {value: str(int(value)) for value in first}
    return [first[values[cell]] for cell in cells], [f"labels {other} and {one} are one class"]


def codes_by_cell(classes: Iterable[Any]) -> dict[str | Decimal, int]:
    """Return the number of each class by its text and, where no two are equal, by its value.

    Classes that were "0.0" and "1.0" are those that another table calls 0 and 1.
    """
    texts = [str(value) for value in classes]
    codes: dict[str | Decimal, int] = {text: code for code, text in enumerate(texts)}
    values = [_number(text) for text in texts]
    if None not in values and len(set(values)) == len(values):
        codes |= {value: code for code, value in enumerate(values) if value is not None}
    return codes


def code_of(cell: str, codes: dict[str | Decimal, int]) -> int | None:
    """Return the number of the class of a cell, None for no known class."""
    code = codes.get(cell)
    if code is None:
        value = _number(cell)
        code = None if value is None else codes.get(value)
    return code


def _number(cell: str) -> Decimal | None:
    """Return the number exactly, for identifiers are longer than the digits of a float."""
    try:
        value = Decimal(cell)
    except InvalidOperation:
        return None
    return value if value.is_finite() and "_" not in cell else None


def _is_whole(value: Decimal) -> bool:
    return value.adjusted() < 18 and value == value.to_integral_value()


def _is_integer(cell: str) -> bool:
    digits = cell.removeprefix("-")
    fits = digits.isascii() and digits.isdecimal() and len(digits) < 19
    return fits and str(int(cell)) == cell
