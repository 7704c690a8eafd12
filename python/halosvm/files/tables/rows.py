"""Where the rows of a text end and how many cells each has: bytes in, arrays out, in one pass.

For text whose quotes enclose whole cells; what they do elsewhere, `csv` has to tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_PART = 1 << 20  # bytes at a time: what is counted in them takes more memory than they do
_QUOTE, _LINE = ord('"'), ord("\n")


class Rows(NamedTuple):
    """Rows of a text, blank ones too.

    Attributes
    ----------
    begins : ndarray of shape (n_rows,)
        The first byte of each.
    lines : ndarray of shape (n_rows,)
        On which line of the text each ends, counted from 0.
    cells : ndarray of shape (n_rows,)
        Separators outside of quotes, and 1.
    """

    begins: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]


def count_cells(text: memoryview, separator: int, *, quoted: bool) -> Rows | None:
    """Return the rows of a text, None where a quote neither begins nor ends a cell.

    Parameters
    ----------
    text : memoryview
        UTF-8, with a line feed at the end of each line.
    separator : int
        Its byte.
    quoted : bool
        Whether double quotes enclose cells; else they are letters.
    """
    whole = np.frombuffer(text, dtype=np.uint8)
    ends, at_ends, lines = [], [], []
    n_separators = n_lines = n_quotes = 0
    for begin in range(0, len(whole), _PART):
        part = whole[begin : begin + _PART]
        is_end, is_separator = part == _LINE, part == separator
        n_line_feeds = np.cumsum(is_end) + n_lines if quoted else None
        if quoted:
            counts = np.cumsum(part == _QUOTE) + n_quotes
            if not _quotes_enclose_cells(whole, begin, part, counts, separator):
                return None
            n_quotes, outside = int(counts[-1]), counts % 2 == 0
            is_end, is_separator = is_end & outside, is_separator & outside
        here = np.flatnonzero(is_end)
        counts = np.cumsum(is_separator) + n_separators
        ends.append(here + begin)
        at_ends.append(counts[here])
        n_separators = int(counts[-1])
        if n_line_feeds is None:
            lines.append(np.arange(n_lines, n_lines + len(here)))
            n_lines += len(here)
        else:
            lines.append(n_line_feeds[here] - 1)
            n_lines = int(n_line_feeds[-1])
    if n_quotes % 2:
        return None
    if len(whole) and whole[-1] != _LINE:  # the last line may lack its end
        ends.append(np.array([len(whole)]))
        at_ends.append(np.array([n_separators]))
        lines.append(np.array([n_lines]))
    of_rows = [np.concatenate(each) if each else np.empty(0, np.int64) for each in (ends, at_ends)]
    begins = np.concatenate([[0], of_rows[0][:-1] + 1]) if len(of_rows[0]) else of_rows[0]
    last = np.concatenate(lines) if lines else np.empty(0, np.int64)
    return Rows(begins.astype(np.int64), last, np.diff(of_rows[1], prepend=0) + 1)


def _quotes_enclose_cells(
    whole: npt.NDArray[np.uint8],
    begin: int,
    part: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
    separator: int,
) -> bool:
    """Tell whether quotes begin and end cells, or are doubled inside of them."""
    at = np.flatnonzero(part == _QUOTE)
    opening = counts[at] % 2 == 1
    before = at[opening] + begin - 1
    behind = at[~opening] + begin + 1
    beside = np.concatenate([whole[before[before >= 0]], whole[behind[behind < len(whole)]]])
    return bool(np.isin(beside, (separator, _LINE, _QUOTE)).all())
