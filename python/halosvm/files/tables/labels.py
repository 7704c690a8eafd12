"""Labels: cells of a column in; text, integers or booleans out, and which of them are missing."""

from __future__ import annotations

import contextlib
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


def codes_by_cell(classes: Iterable[Any]) -> dict[str | float, int]:
    """Return the number of each class by its text and, where no two are equal, by its value.

    Classes that were "0.0" and "1.0" are those that another table calls 0 and 1.
    """
    texts = [str(value) for value in classes]
    codes: dict[str | float, int] = {text: code for code, text in enumerate(texts)}
    values = [_number(text) for text in texts]
    if None not in values and len(set(values)) == len(values):
        codes |= {value: code for code, value in enumerate(values) if value is not None}
    return codes


def code_of(cell: str, codes: dict[str | float, int]) -> int | None:
    """Return the number of the class of a cell, None for no known class."""
    code = codes.get(cell)
    if code is None:
        value = _number(cell)
        code = None if value is None else codes.get(value)
    return code


def _number(cell: str) -> float | None:
    with contextlib.suppress(ValueError):
        return float(cell)
    return None


def _is_integer(cell: str) -> bool:
    digits = cell.removeprefix("-")
    fits = digits.isascii() and digits.isdecimal() and len(digits) < 19
    return fits and str(int(cell)) == cell
