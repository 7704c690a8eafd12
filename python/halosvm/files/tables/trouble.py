"""What is wrong with a table: `TableError`, and words for its messages."""

from __future__ import annotations

import csv
import io
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class TableError(ValueError):
    """A table that cannot be used; the message is one line and names the place."""


class ChoiceError(TableError):
    """Options that do not go with a table, or leave a choice open."""


def listing(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, cut short when there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def remedy_for_text(name: str, target: str | None) -> str:
    """Return what to do about a column that holds no numbers, for the end of a message."""
    if name == target:
        return "; a regression needs numbers, and classes are told by --task classification"
    return f"; leave the column out by --drop {as_option(name)}, or choose --features"


def as_option(name: str, before: str = "") -> str:
    """Return a name of a column as an option of the command line takes it in a shell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([name])
    return shlex.quote(before + text.getvalue())
