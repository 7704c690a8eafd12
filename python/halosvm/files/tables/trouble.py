"""What is wrong with a table: `TableError`, and words for its messages."""

from __future__ import annotations

import csv
import io
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TableError(ValueError):
    """A table that cannot be used; the message is one line and names the place."""


class ChoiceError(TableError):
    """Options that do not go with a table, or leave a choice open."""


@contextmanager
def named(path: str) -> Iterator[None]:
    """Let errors about the numbers of a table name it; they count its rows from 0."""
    try:
        yield
    except TableError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        rows = " (rows from 0)" if "row " in str(error) else ""
        raise TableError(f"{path}: {error}{rows}") from error


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
