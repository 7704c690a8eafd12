"""CSV and TSV: text in some dialect in; its columns, read by pandas, out."""

from __future__ import annotations

import csv
import io
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from halosvm.files.tables.dialects import (
    Dialect,
    as_utf8,
    begin_of_line,
    csv_reader,
    find_header,
    is_blank,
    lines_of_head,
    named,
    split_line,
    with_separator_line,
)
from halosvm.files.tables.limits import LimitColumns, limit_of
from halosvm.files.tables.rows import count_cells
from halosvm.files.tables.text_numbers import SPELLINGS, advice_on, number_of
from halosvm.files.tables.trouble import TableError, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


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
        self._body = as_utf8(path, data, dialect.encoding)
        lines = lines_of_head(self._body)
        dialect = with_separator_line(lines, dialect)
        if dialect.separator == dialect.decimal:
            raise TableError(f"{path}: {dialect.decimal!r} cannot be separator and decimal point")
        header, first, separator = find_header(path, lines, dialect)
        self._separator = separator
        self.names = header
        skipped = sum(line.startswith("#") for line in lines[:first])
        if skipped and not dialect.header:
            self.notes.append(f"{counted(skipped, 'line')} above the rows left out, as comments")
        self._begin = begin_of_line(self._body, first)
        rows = self._counted(first, dialect)
        if rows is None:
            lines = self._body[self._begin :].decode("utf-8").split("\n")
            body, rows = self._rows(lines, first, dialect)
            self._body, self._begin = body.encode("utf-8"), 0
        self.lines = rows
        if not len(self.lines):
            raise TableError(f"{path} has a header and no rows")
        self.limits = LimitColumns(len(self.lines))

    def unit(self, name: str) -> None:
        """Return the unit of a column, which text does not have."""

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return columns of numbers side by side, NaN for cells that are missing."""
        try:
            frame = self._read(names, dtype=np.float64, na_values=SPELLINGS, na_filter=True)
            # one column is what pandas holds, which must not be written to
            return np.require(frame.to_numpy(dtype=np.float64), requirements=["C", "W"])
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
            wrong[row] = is_blank(line.rstrip("\n"), separator)  # which is no row
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
            f"{len(self.names)}; cells are separated by {named(self._separator)}{advice}"
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
                if not is_blank(line, separator):
                    yield number, len(split_line(line, separator))
            return
        reader = csv_reader([line + "\n" for line in body], separator)
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
        reader, line = csv_reader([line + "\n" for line in body], self._separator), 0
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
            is_blank(line, self._separator)
            or len(split_line(line, self._separator)) == len(self.names)
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
        frame = self._read(names, na_values=SPELLINGS, na_filter=True)
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
                value = number_of(cell, self._decimal)
                limit = limit_of(cell, self._decimal) if value is None else None
                if limit is not None:
                    self.limits.add(names[j], row, *limit)
                    value = np.nan
                if value is None:
                    first = min(first or (row, j, cell), (row, j, cell))
                    break
                values[row, j] = value
        if first is not None:
            row, j, cell = first
            raise TableError(
                f"{self.path}, line {self.lines[row]}, column {names[j]!r}: {cell.strip()!r} is "
                f"not a number{advice_on(cell.strip(), names[j], self.target)}"
            )
        return values


def _exact(version: str) -> dict[str, str]:
    """Return the option that older versions of pandas need to read what `repr` wrote."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}
