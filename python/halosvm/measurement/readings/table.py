"""The table of what readings gain: a structured array that prints as a table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

_SHOWN = 20
_NUMBERS = ("wrong", "wrong_after", "gain", "cost", "gain_per_cost", "largest_error")


class ReadingTable(np.ndarray):
    """A structured array, a row for each reading that can be made; the best is the first."""

    def __new__(cls, rows: Any) -> Self:
        """Return the rows of a structured array as such a table."""
        return np.asarray(rows).view(cls)

    @classmethod
    def of(cls, **columns: Any) -> Self:
        """Return the table of columns, sorted by gain per cost."""
        order = np.argsort(-columns["gain_per_cost"], kind="stable")
        kinds = [(name, np.asarray(each).dtype) for name, each in columns.items()]
        rows = np.empty(len(order), dtype=kinds)
        for name, each in columns.items():
            rows[name] = each[order]
        return cls(rows)

    def __str__(self) -> str:
        if self.dtype.names is None or self.ndim != 1:
            return super().__str__()
        head = ["object", "feature", "P(wrong)", "after", "gain", "per cost", "largest error"]
        lines = [
            [str(row["object"]), str(row["feature"])]
            + [f"{row[name]:.4f}" for name in _NUMBERS[:3]]
            + [f"{row['gain_per_cost']:.4g}", f"{row['largest_error']:.3g}"]
            for row in self[:_SHOWN]
        ]
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        text = [
            "  ".join(f"{cell:{'<' if i < 2 else '>'}{w}}" for i, (cell, w) in enumerate(pairs))
            for pairs in (zip(line, widths, strict=True) for line in [head, *lines])
        ]
        if len(self) > _SHOWN:
            text.append(f"and {len(self) - _SHOWN} others that gain no more")
        return "\n".join(line.rstrip() for line in text)

    __repr__ = __str__
