"""CSV and TSV: text in some dialect in; its columns, read by pandas, out.

The first line that is no comment names the columns, or, where that is a row already, the last
comment above it does. The separator is the one that makes most cells of that line, quotes
respected, among those that make as many of the next.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from array import array
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from halosvm.files.tables.rows import count_cells
from halosvm.files.tables.trouble import TableError, counted, remedy_for_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

SEPARATORS = (",", "\t", ";", "|", " ")
_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat", "?", "-", "--")
_MISSING = frozenset(_WORDS)
_HEAD = 102  # a header and a row of as many lines as they may have
# pandas compares letter by letter
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w"\r\n])"?', re.IGNORECASE)
_SPELLINGS = sorted({f(w) for w in _WORDS for f in (str.lower, str.upper, str.title)} | {"NaN"})


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


class TextColumns:
    """The columns of a CSV or TSV file.

    Attributes
    ----------
    path : str
        What the file is called in messages.
    names : list of str
    lines : ndarray of shape (n_rows,)
        The line on which each row ends, counted from 1.
    notes : list of str
        What was left out.
    target : str or None
        The column of the values of a regression.
    """

    unit_of_rows = "line"
    target: str | None = None

    def __init__(self, path: str, data: bytes, dialect: Dialect) -> None:
        self.path = path
        self.notes: list[str] = []
        self._decimal = dialect.decimal
        self._body = _as_utf8(path, data, dialect.encoding)
        lines = _lines_of_head(self._body)
        dialect = _with_separator_line(lines, dialect)
        if dialect.separator == dialect.decimal:
            raise TableError(f"{path}: {dialect.decimal!r} cannot be separator and decimal point")
        header, first, separator = _find_header(path, lines, dialect)
        self._separator = separator
        self.names = header
        skipped = sum(line.startswith("#") for line in lines[:first])
        if skipped and not dialect.header:
            self.notes.append(f"{counted(skipped, 'line')} above the rows left out, as comments")
        self._begin = _begin_of_line(self._body, first)
        rows = self._counted(first, dialect)
        if rows is None:
            lines = self._body[self._begin :].decode("utf-8").split("\n")
            body, rows = self._rows(lines, first, dialect)
            self._body, self._begin = body.encode("utf-8"), 0
        self.lines = rows
        if not len(self.lines):
            raise TableError(f"{path} has a header and no rows")

    def unit(self, name: str) -> None:
        """Return the unit of a column, which text does not have."""

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return columns of numbers side by side, NaN for cells that are missing."""
        try:
            frame = self._read(names, dtype=np.float64, na_values=_SPELLINGS, na_filter=True)
            return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))
        except (ValueError, OverflowError):
            return self._numbers_cell_by_cell(names)

    def cells(self, name: str) -> list[str]:
        """Return the cells of a column without the blanks around them."""
        return [str(cell).strip() for cell in self._texts([name]).iloc[:, 0]]

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column as it stands in the file."""
        return np.array(self.cells(name), dtype=object)

    def _counted(self, first: int, dialect: Dialect) -> npt.NDArray[np.int64] | None:
        """Return the line of each row, where bytes alone tell the rows and all are as they must."""
        body, separator, quote = self._body, self._separator, dialect.quote
        comment = None if dialect.comment is None else dialect.comment.encode("utf-8")
        if separator == " " or not separator.isascii():
            return None
        if comment and (
            body.startswith(comment, self._begin) or body.find(b"\n" + comment, self._begin) >= 0
        ):
            return None
        self._quoted = quote != "none" and body.find(b'"', self._begin) >= 0
        text = memoryview(body)[self._begin :]
        rows = count_cells(text, ord(separator), quoted=self._quoted)
        if rows is None:
            return None
        spans = np.diff(rows.lines, prepend=-1)
        wrong = rows.cells != len(self.names)
        if self._quoted and quote is None and separator == "\t" and (wrong | (spans > 1)).any():
            return None  # the quotes may be letters
        initials = np.frombuffer(text, dtype=np.uint8)[rows.begins]
        if len(self.names) == 1:  # of which a blank line has as many
            wrong |= (initials <= ord(" ")) | (initials >= 128)
        for row in np.flatnonzero(wrong).tolist():
            end = rows.begins[row + 1] if row + 1 < len(rows.begins) else len(text)
            line = bytes(text[rows.begins[row] : end]).decode("utf-8")
            wrong[row] = _is_blank(line.rstrip("\n"), separator)  # which is no row
            if rows.cells[row] != len(self.names) and not wrong[row]:
                last = int(rows.lines[row]) + first + 1
                self._refuse_cells(last, int(rows.cells[row]), line)
        self._tell_marked(int(np.sum(initials[~wrong] == ord("#"))))
        broken = np.flatnonzero(spans > 1)
        if broken.size:
            last = int(rows.lines[broken[0]]) + first + 1
            self._tell_broken(broken.size, last - int(spans[broken[0]]) + 1, last)
        of_rows: npt.NDArray[np.int64] = rows.lines[~wrong] + (first + 1)
        return of_rows

    def _tell_marked(self, count: int) -> None:
        if count:
            self.notes.append(
                f"{counted(count, 'line')} below the header with # in front read like any other; "
                "--comment '#' leaves out such lines"
            )

    def _tell_broken(self, count: int, first: int, last: int) -> None:
        self.notes.append(
            f"{counted(count, 'row')} with a line break inside of quotes, such as lines {first} to "
            f"{last}; where quotes are letters, give --quote none"
        )

    def _refuse_cells(self, last: int, cells: int, line: str) -> NoReturn:
        advice = "; where it is a comment, give --comment '#'" if line.startswith("#") else ""
        raise TableError(
            f"{self.path}, line {last} has {counted(cells, 'cell')}, the header has "
            f"{len(self.names)}; cells are separated by {_named(self._separator)}{advice}"
        )

    def _rows(
        self, body: list[str], first: int, dialect: Dialect
    ) -> tuple[str, npt.NDArray[np.int64]]:
        """Return the rows without comments, and the line on which each ends."""
        comment = dialect.comment
        numbers, quoted = range(first + 1, first + len(body) + 1), False
        if comment is None:
            self._tell_marked(sum(line.startswith("#") for line in body))
            return "\n".join(body), self._checked(body, numbers, dialect.quote)
        kept, where = [], array("q")
        for number, line in zip(numbers, body, strict=True):
            if quoted or not line.startswith(comment):
                kept.append(line)
                where.append(number)
                quoted ^= line.count('"') % 2 == 1
        if len(kept) < len(body):
            left_out = counted(len(body) - len(kept), "comment line")
            self.notes.append(f"{left_out} below the header left out")
        return "\n".join(kept), self._checked(kept, where, dialect.quote)

    def _checked(
        self, body: list[str], numbers: Sequence[int], quote: str | None
    ) -> npt.NDArray[np.int64]:
        """Return the line of each row after a check that all have as many cells as the header."""
        ends, wanted = array("q"), len(self.names)
        for last, cells in self._counts(body, numbers, quote):
            if cells != wanted:
                self._refuse_cells(last, cells, body[bisect_left(numbers, last)])
            ends.append(last)
        return np.frombuffer(ends, dtype=np.int64) if ends else np.empty(0, np.int64)

    def _counts(self, body: list[str], numbers: Sequence[int], quote: str | None) -> Any:
        """Return the line on which each row ends, and the number of its cells."""
        separator = self._separator
        self._quoted = quote != "none" and any('"' in line for line in body)
        if self._quoted and quote is None and separator == "\t":
            self._quoted = self._rows_are_lines(body) or not self._plain_lines_fit(body)
        if not self._quoted:
            for number, line in zip(numbers, body, strict=True):
                if not _is_blank(line, separator):
                    yield number, len(_split(line, separator))
            return
        reader = _csv_reader([line + "\n" for line in body], separator)
        broken = []
        while True:
            begin = reader.line_num
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise TableError(
                    f"{self.path}, line {numbers[min(begin, len(numbers) - 1)]}: {error}; a quote "
                    "is not closed, or not doubled inside of quotes; where quotes are letters, "
                    "give --quote none"
                ) from error
            if row is None:
                break
            if row and (len(row) > 1 or row[0].strip()):
                if reader.line_num - begin > 1:
                    broken.append((numbers[begin], numbers[reader.line_num - 1]))
                yield numbers[reader.line_num - 1], len(row)
        if broken:
            self._tell_broken(len(broken), *broken[0])

    def _rows_are_lines(self, body: list[str]) -> bool:
        """Tell whether each line is a row of as many cells as the header, by its quotes."""
        reader, line = _csv_reader([line + "\n" for line in body], self._separator), 0
        try:
            for row in reader:
                full = row and (len(row) > 1 or row[0].strip())
                if reader.line_num != line + 1 or (full and len(row) != len(self.names)):
                    return False
                line += 1
        except csv.Error:
            return False
        return True

    def _plain_lines_fit(self, body: list[str]) -> bool:
        """Tell whether each line is a row of as many cells as the header, quotes being letters."""
        return all(
            _is_blank(line, self._separator)
            or len(_split(line, self._separator)) == len(self.names)
            for line in body
        )

    def _texts(self, names: Sequence[str]) -> Any:
        return self._read(names, dtype=str, na_filter=False)

    def _read(self, names: Sequence[str], **options: Any) -> Any:
        import pandas as pd

        where = {name: position for position, name in enumerate(self.names)}
        positions = [where[name] for name in names]
        stream = io.BytesIO(self._body)  # which shares the bytes
        stream.seek(self._begin)
        frame = pd.read_csv(
            stream,
            sep=r"\s+" if self._separator == " " else self._separator,
            header=None,
            names=range(len(self.names)),
            usecols=sorted(set(positions)),
            index_col=False,
            quoting=csv.QUOTE_MINIMAL if self._quoted else csv.QUOTE_NONE,
            skipinitialspace=True,
            decimal=self._decimal,
            **_exact(pd.__version__),
            keep_default_na=False,
            low_memory=False,
            **options,
        )
        if len(frame) != len(self.lines):
            raise TableError(f"{self.path}: its rows cannot be told apart; check its quotes")
        read = {position: j for j, position in enumerate(sorted(set(positions)))}
        return frame.iloc[:, [read[position] for position in positions]]

    def _numbers_cell_by_cell(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Read the columns that pandas does not cell by cell, and name the first that is no number.

        The other columns are left to pandas.
        """
        frame = self._read(names, na_values=_SPELLINGS, na_filter=True)
        values = np.empty(frame.shape)
        failed = []
        for j in range(len(names)):
            if frame.dtypes.iloc[j].kind in "iuf":
                values[:, j] = frame.iloc[:, j]
            else:
                failed.append(j)
        del frame
        first: tuple[int, int, str] | None = None  # in the order of rows, then of columns
        for j in failed:
            for row, cell in enumerate(self._texts([names[j]]).iloc[:, 0].tolist()):
                value = _number(cell, self._decimal)
                if value is None:
                    first = min(first or (row, j, cell), (row, j, cell))
                    break
                values[row, j] = value
        if first is not None:
            row, j, cell = first
            raise TableError(
                f"{self.path}, line {self.lines[row]}, column {names[j]!r}: {cell.strip()!r} is "
                f"not a number{_advice(cell.strip(), names[j], self.target)}"
            )
        return values


def _exact(version: str) -> dict[str, str]:
    """Return the option that older versions of pandas need to read what `repr` wrote."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _as_utf8(path: str, data: bytes, encoding: str | None) -> bytes:
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


def _lines_of_head(text: bytes) -> list[str]:
    """Return as many first lines as it takes to tell the header."""
    size = 1 << 16
    while size < len(text):
        lines = text[: text.rfind(b"\n", 0, size) + 1].decode("utf-8").split("\n")
        if sum(not line.startswith("#") and bool(line.strip()) for line in lines) > _HEAD:
            return lines
        size *= 4
    return text.decode("utf-8").split("\n")


def _begin_of_line(text: bytes, number: int) -> int:
    """Return the first byte of a line counted from 0."""
    begin = 0
    for _ in range(number):
        begin = text.find(b"\n", begin) + 1
        if not begin:
            return len(text)
    return begin


def _find_header(path: str, lines: list[str], dialect: Dialect) -> tuple[list[str], int, str]:
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
            k for k, e in enumerate(lines) if not (_is_blank(e, separator) or e.startswith(begin))
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
        value = _number(name, dialect.decimal)
        if value is not None and not math.isnan(value) and not name.strip("+-").isdecimal():
            raise TableError(
                f"{path}, line {first + 1}: {name!r} stands where the names of columns should; "
                "add a line of names, or give --no-header, which calls the columns 1, 2, ..."
            )
    return _unique(path, names), below, separator


def _with_separator_line(lines: list[str], dialect: Dialect) -> Dialect:
    """Return the dialect of a first line ``sep=;``, as Excel takes it, and blank the line."""
    found = _SEPARATOR_LINE.fullmatch(lines[0])
    if found is None:
        return dialect
    lines[0] = ""
    return replace(dialect, separator=dialect.separator or found[1])


def _is_blank(line: str, separator: str) -> bool:
    """Tell a line that is no row; of tabs alone it is one of missing cells."""
    return not line.strip(" " if separator == "\t" else None)


def _are_names(cells: list[str]) -> bool:
    return all(cell and _number(cell) is None for cell in cells)


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


def _split(line: str, separator: str) -> list[str]:
    return line.split() if separator == " " else line.split(separator)


def _cells(
    path: str, lines: list[str], first: int, separator: str, quote: str | None
) -> tuple[list[str], int]:
    """Return the cells of a row that begins on a line, and the number of the line below it."""
    if quote == "none" or (separator == " " and '"' not in lines[first]):
        return [cell.strip() for cell in _split(lines[first], separator)], first + 1
    reader = _csv_reader([line + "\n" for line in lines[first : first + 100]], separator)
    try:
        row = next(reader)
    except csv.Error as error:
        raise TableError(
            f"{path}, line {first + 1}: {error}; a quote is not closed, or not doubled inside of "
            "quotes"
        ) from error
    return [cell.strip() for cell in row], first + reader.line_num


def _csv_reader(lines: list[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def _named(separator: str) -> str:
    return {"\t": "tabs", " ": "blanks"}.get(separator, repr(separator))


def _number(cell: str, decimal: str = ".") -> float | None:
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


def _advice(cell: str, name: str, target: str | None) -> str:
    for pattern, remedy in _REMEDIES:
        if pattern.search(cell):
            return f"; {remedy}"
    if _number(cell, ",") is not None:
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
