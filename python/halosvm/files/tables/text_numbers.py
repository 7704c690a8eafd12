"""Numbers in cells of text: which are numbers, which are missing, and advice about the others."""

from __future__ import annotations

import math
import re

from halosvm.files.tables.trouble import remedy_for_text

_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat", "?", "-", "--")
_MISSING = frozenset(_WORDS)
# pandas compares letter by letter
SPELLINGS = sorted({f(w) for w in _WORDS for f in (str.lower, str.upper, str.title)} | {"NaN"})


def number_of(cell: str, decimal: str = ".") -> float | None:
    """Return a number, NaN for a missing one, None for what is neither."""
    cell = cell.strip()
    if cell.lower() in _MISSING:
        return math.nan
    # Python reads 1_000 as a number; no table means that. A point beside a decimal comma parts
    # thousands, or is a slip.
    if "_" in cell or (decimal != "." and "." in cell):
        return None
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return None


def advice_on(cell: str, name: str, target: str | None) -> str:
    """Return what to do about a cell that is no number, for the end of a message."""
    for pattern, remedy in _REMEDIES:
        if pattern.search(cell):
            return f"; {remedy}"
    if number_of(cell, ",") is not None:
        return "; where a comma is the decimal point, give --decimal ,"
    return remedy_for_text(name, target)


_REMEDIES = (
    (
        re.compile("\u00b1|\\+/?-|^[-+\\d.]+ ?\\([\\d.]+\\)$"),
        "a value with its error in one cell: write the error in a column of its own, such as x_err",
    ),
    (
        re.compile("^[\u2212\u2013\u2012\ufe63\uff0d]\\s*[\\d.,]"),
        "its minus is another character than -; replace it by -",
    ),
    (
        re.compile(r"^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$"),
        "commas that part thousands have to go; where one is the decimal point, give --decimal ,",
    ),
    (
        re.compile("^[-+]?\\d{1,3}([ '\u2019\u00a0\u202f.]\\d{3})+([.,]\\d*)?$"),
        "what parts its thousands has to go: write the number without it",
    ),
)
