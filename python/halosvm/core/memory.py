"""How much memory is free: nothing comes in, a number of bytes goes out."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> float:
    """Return the bytes that can be allocated without swapping; infinity if that is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = {line.split(":")[0]: line.split()[1] for line in lines}
        return 1024.0 * int(fields["MemAvailable"])
    except (OSError, KeyError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
