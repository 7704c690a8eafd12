"""How much memory a table may take: asked before anything is made whose size a file only claims."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

from halosvm.core.memory import free_memory
from halosvm.files.tables.trouble import TableError

_SHARE = 0.5  # of the free memory; a fit needs the other half


@dataclass(frozen=True)
class Room:
    """The memory for one table.

    Attributes
    ----------
    limit : float or None
        Bytes; None for half of the memory that is free when it is asked for.
    """

    limit: float | None = None

    def bytes(self) -> float:
        """Return how many bytes there are."""
        return _SHARE * free_memory() if self.limit is None else self.limit

    def require(self, path: str, needed: float, what: str) -> None:
        """Raise TableError for what takes more bytes than there are."""
        room = self.bytes()
        if needed > room:
            told = "half of the memory that is free" if self.limit is None else "the limit"
            raise TableError(
                f"{path}: {what} would take {_shown(needed)}, and {told} is {_shown(room)}; "
                "--memory SIZE sets another limit"
            )


def parse_size(text: str) -> float:
    """Read a number of bytes, as 500M or 8G."""
    factor = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:].upper())
    with suppress(ValueError):
        size = float(text if factor is None else text[:-1]) * (factor or 1.0)
        if 0.0 < size < math.inf:
            return size
    raise ValueError(f"{text!r} is not a size in bytes, as 500M or 8G")


def _shown(size: float) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
