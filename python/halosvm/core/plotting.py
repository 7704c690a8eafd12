"""matplotlib, an extra: whether it is there, or how to get it."""

from __future__ import annotations

from importlib.util import find_spec


def require_matplotlib(who: str) -> None:
    """Raise ImportError if matplotlib, with which `who` draws, is missing."""
    try:
        found = find_spec("matplotlib")
    except ValueError:  # blocked
        found = None
    if found is None:
        raise ImportError(
            f"{who} draws with matplotlib, which is not installed: "
            "python -m pip install 'halosvm[plot]'"
        )
