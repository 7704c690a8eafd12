"""Dialects of text: bytes in; the names of the columns, where rows begin and what parts cells, out.

The first line that is no comment names the columns, or, where that is a row already, the last
comment above it does. The separator is the one that makes most cells of that line, quotes
respected, among those that make as many of the next.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from halosvm.files.tables.text_numbers import number_of
from halosvm.files.tables.trouble import TableError

SEPARATORS = (",", "\t", ";", "|", " ")
_HEAD = 102  # a header and a row of as many lines as they may have
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w"\r\n])"?', re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How the text of a table is written.

    Attributes
    ----------
    separator : str or None
        One character, a blank for any white space; None to find it.
    decimal : str
        The decimal point.
    encoding : str or None
        None for UTF-8, or UTF-16 where the text begins with its mark.
    header : bool
        Whether a line names the columns; else they are called 1, 2, ...
    quote : {"double", "none"} or None
        Whether double quotes enclose cells or are letters; None for what fits of a table with tabs,
        and for quotes of others.
    comment : str or None
        How lines begin that are no rows; None for # above the header and no others.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True
    quote: str | None = None
    comment: str | None = None


def as_utf8(path: str, data: bytes, encoding: str | None) -> bytes:
    """Return text as UTF-8 with a line feed at the end of each line."""
    if encoding is None:
        marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if marked else "utf-8-sig"
    try:
        if encoding != "utf-8-sig":
            data = data.decode(encoding).encode("utf-8")
        elif not data.isascii():
            data = data.removeprefix(codecs.BOM_UTF8)
            data.decode("utf-8")
    except LookupError as error:
        raise TableError(f"--encoding: {encoding!r} is not known") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        name = encoding.removesuffix("-sig").upper()
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{path} is not {name} text: line {line} holds the byte 0x{byte:02x}; name its "
            "--encoding, such as latin-1"
        ) from error
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise TableError(f"{path}, line {line} holds a zero byte, which no text does")
    return data


def lines_of_head(text: bytes) -> list[str]:
    """Return as many first lines as it takes to tell the header."""
    size = 1 << 16
    while size < len(text):
        lines = text[: text.rfind(b"\n", 0, size) + 1].decode("utf-8").split("\n")
        if sum(not line.startswith("#") and bool(line.strip()) for line in lines) > _HEAD:
            return lines
        size *= 4
    return text.decode("utf-8").split("\n")


def begin_of_line(text: bytes, number: int) -> int:
    """Return the first byte of a line counted from 0."""
    begin = 0
    for _ in range(number):
        begin = text.find(b"\n", begin) + 1
        if not begin:
            return len(text)
    return begin


def find_header(path: str, lines: list[str], dialect: Dialect) -> tuple[list[str], int, str]:
    """Return the names of the columns, the number of lines above the rows, and the separator."""
    begin = dialect.comment or "#"
    full = [k for k, line in enumerate(lines) if line.strip() and not line.startswith(begin)]
    comments = [k for k, line in enumerate(lines) if line.startswith(begin) and line.strip("# \t")]
    if not full:
        raise TableError(f"{path} is empty: a header line with column names is needed")
    first = full[0]
    if not dialect.header:
        separator = _separator_of(lines[first], lines[first], dialect)
        first = next(
            k for k, e in enumerate(lines) if not (is_blank(e, separator) or e.startswith(begin))
        )
        row = _cells(path, lines, first, separator, dialect.quote)[0]
        return [str(k + 1) for k in range(len(row))], first, separator
    above = [k for k in comments if k < first]
    if above:
        comment = lines[above[-1]].removeprefix(begin).lstrip("#").strip(" ")
        separator = _separator_of(comment, lines[first], dialect)
        names, _ = _cells(path, [comment], 0, separator, dialect.quote)
        names = ["#", *names[1:]] if names[0] == "" else names  # as some call a column of numbers
        row, _ = _cells(path, lines, first, separator, dialect.quote)
        if len(names) == len(row) and _are_names(names) and not _are_names(row):
            return _unique(path, names), first, separator
    following = lines[full[1]] if len(full) > 1 else lines[first]
    separator = _separator_of(lines[first], following, dialect)
    names, below = _cells(path, lines, first, separator, dialect.quote)
    for name in names:
        value = number_of(name, dialect.decimal)
        if value is not None and not math.isnan(value) and not name.strip("+-").isdecimal():
            raise TableError(
                f"{path}, line {first + 1}: {name!r} stands where the names of columns should; "
                "add a line of names, or give --no-header, which calls the columns 1, 2, ..."
            )
    return _unique(path, names), below, separator


def with_separator_line(lines: list[str], dialect: Dialect) -> Dialect:
    """Return the dialect of a first line ``sep=;``, as Excel takes it, and blank the line."""
    found = _SEPARATOR_LINE.fullmatch(lines[0])
    if found is None:
        return dialect
    lines[0] = ""
    return replace(dialect, separator=dialect.separator or found[1])


def is_blank(line: str, separator: str) -> bool:
    """Tell a line that is no row; of tabs alone it is one of missing cells."""
    return not line.strip(" " if separator == "\t" else None)


def _are_names(cells: list[str]) -> bool:
    return all(cell and number_of(cell) is None for cell in cells)


def _unique(path: str, names: list[str]) -> list[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen and name:
            raise TableError(f"{path} has {names.count(name)} columns called {name!r}")
        seen.add(name)
    return names


def _separator_of(header: str, row: str, dialect: Dialect) -> str:
    """Return the separator that is given, or makes most cells of both lines, or of the first."""
    if dialect.separator is not None:
        return dialect.separator

    def cells(line: str, separator: str) -> int:
        if separator == " ":
            return len(line.split())
        with_quotes = csv.reader([line], delimiter=separator, skipinitialspace=True)
        try:
            return len(next(with_quotes, []))
        except csv.Error:  # a cell as long as a wide header, which the right one cuts
            return 1

    characters = [s for s in SEPARATORS[:-1] if s != dialect.decimal]
    counts = {s: cells(header, s) for s in characters}
    both = [s for s in characters if counts[s] > 1 and cells(row, s) == counts[s]]
    if both:
        return max(both, key=counts.__getitem__)
    blank = cells(header, " ")
    best = max(characters, key=counts.__getitem__)
    if counts[best] == 1 and blank > 1 and blank == cells(row, " ") and '"' not in header:
        return " "
    return best


def split_line(line: str, separator: str) -> list[str]:
    """Return the cells of a line without quotes."""
    return line.split() if separator == " " else line.split(separator)


def _cells(
    path: str, lines: list[str], first: int, separator: str, quote: str | None
) -> tuple[list[str], int]:
    """Return the cells of a row that begins on a line, and the number of the line below it."""
    if quote == "none" or (separator == " " and '"' not in lines[first]):
        return [cell.strip() for cell in split_line(lines[first], separator)], first + 1
    reader = csv_reader([line + "\n" for line in lines[first : first + 100]], separator)
    try:
        row = next(reader)
    except csv.Error as error:
        raise TableError(
            f"{path}, line {first + 1}: {error}; a quote is not closed, or not doubled inside of "
            "quotes"
        ) from error
    return [cell.strip() for cell in row], first + reader.line_num


def csv_reader(lines: list[str], separator: str) -> Any:
    """Return what reads rows by their quotes, and complains."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def named(separator: str) -> str:
    """Return what a separator is called in messages."""
    return {"\t": "tabs", " ": "blanks"}.get(separator, repr(separator))
