"""Limits in tables: cells such as ``<0.25``, and columns of flags beside columns of numbers.

In:  cells of text, or numbers with flags.
Out: lower and upper limits of features, NaN where there is none; a reading of neither is missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.limits import Limits
from halosvm.files.tables.labels import is_missing_label
from halosvm.files.tables.text_numbers import number_of
from halosvm.files.tables.trouble import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

# A limit that a reading may be equal to has the same probability.
_SIDES = {"<": "upper", "<=": "upper", "\u2264": "upper", ">": "lower", ">=": "lower"}
_SIDES["\u2265"] = "lower"
_LIMIT = re.compile(f"\\s*({'|'.join(sorted(_SIDES, key=len, reverse=True))})\\s*(.+)")


def limit_of(cell: str, decimal: str = ".") -> tuple[str, float] | None:
    """Return "lower" or "upper" and the number of a cell such as ``< 0.25``, None for another."""
    found = _LIMIT.fullmatch(cell)
    number = None if found is None else number_of(found[2], decimal)
    if found is None or number is None or not np.isfinite(number):
        return None
    return _SIDES[found[1]], number


class LimitColumns:
    """The limits of some columns, found cell by cell."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._found: dict[str, Limits] = {}

    def add(self, name: str, row: int, side: str, value: float) -> None:
        """Note a limit of a cell."""
        none = np.full((2, self._n_rows), np.nan)
        getattr(self._found.setdefault(name, Limits(*none)), side)[row] = value

    def refuse_but_for(self, allowed: Iterable[str], names: Iterable[str], columns: Any) -> None:
        """Raise TableError for the first limit in a column of another role than a feature's."""
        for name in names:
            if name in self._found and name not in set(allowed):
                row = int(np.argmax(self._found[name].there))
                raise TableError(
                    f"{columns.path}, {columns.unit_of_rows} {columns.lines[row]}, column "
                    f"{name!r}: a limit stands where a number is needed; features alone have limits"
                )

    def of(self, names: Sequence[str]) -> Limits | None:
        """Return the limits of columns side by side, None if there is none."""
        if not any(name in self._found for name in names):
            return None
        none = Limits(*np.full((2, self._n_rows), np.nan))
        each = [self._found.get(name, none) for name in names]
        return Limits(*(np.column_stack(side) for side in zip(*each, strict=True)))


def take_flags(
    columns: Any,
    flags: Mapping[str, str],
    block: Array,
    names: Sequence[str],
    features: Sequence[str],
) -> None:
    """Turn numbers whose flag says so into limits of the columns, in place."""
    for feature, name in flags.items():
        if feature not in features:
            raise TableError(f"--limit {feature}=...: {feature!r} is no feature")
        j = list(names).index(feature)
        for row, cell in enumerate(columns.cells(name)):
            if is_missing_label(cell) or cell == "=" or np.isnan(block[row, j]):
                continue
            side = _SIDES.get(cell.strip())
            if side is None:
                raise TableError(
                    f"{columns.path}, {columns.unit_of_rows} {columns.lines[row]}, column "
                    f"{name!r}: {cell!r} is no flag of a limit, which are <, > or nothing"
                )
            columns.limits.add(feature, row, side, float(block[row, j]))
            block[row, j] = np.nan
