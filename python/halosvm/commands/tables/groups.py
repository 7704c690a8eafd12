"""Rows of one object or batch, by a column that names it.

In:  a table that was read with the column among those to keep.
Out: the groups of its rows, never on both sides of a split, or their batches; and of a table to
judge a model by, the rows of other objects.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.commands.choices import CommandError
from halosvm.files.tables.labels import is_missing_label
from halosvm.files.tables.trouble import TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from halosvm.files.tables.table import Table


def groups_of(table: Table, column: str, what: str = "group") -> npt.NDArray[np.str_]:
    """Return what each row's object, or batch, is called."""
    kept = table.kept[table.kept_as(column)]
    names = ["" if name is np.ma.masked else str(name).strip() for name in kept]
    for row, name in enumerate(names):
        if is_missing_label(name):
            raise TableError(f"{table.place(row)}, column {column!r}: the {what} is missing")
    return np.array(names, dtype=np.str_)


def without_groups(table: Table, column: str, known: Sequence[str] | None) -> tuple[Table, int]:
    """Return the rows of objects that a model was not trained on, and how many are left out."""
    if known is None:
        raise CommandError("--group: the model was trained without --group, and knows no objects")
    rows = np.flatnonzero(~np.isin(groups_of(table, column), list(known)))
    left_out = len(table.lines) - len(rows)
    if not rows.size:
        raise TableError(f"{table.path}: the model was trained on the objects of all rows")
    if not left_out:
        return table, 0
    part: dict[str, Any] = {
        name: None if getattr(table, name) is None else getattr(table, name)[rows]
        for name in ("mean", "std", "values", "values_std", "weights", "lines")
    }
    part["kept"] = {name: cells[rows] for name, cells in table.kept.items()}
    part["labels"] = [table.labels[row] for row in rows] if table.labels else []
    return replace(table, **part), left_out


def batches_of(table: Table, column: str | None) -> npt.NDArray[np.str_] | None:
    """Return what the batch of each row is called, None without a column."""
    return None if column is None else groups_of(table, column, "batch")
