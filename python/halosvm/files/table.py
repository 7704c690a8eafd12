"""Tables with error bars: a CSV or TSV file in; means, standard deviations, labels or values out.

A table is UTF-8 text, plain or compressed by gzip, with a header line. Cells are separated by
commas, tabs or semicolons, whichever the header holds most of; blank lines, and lines that begin
with ``#`` above the header, are skipped. The uncertainty of a feature stands in a column named
after it: ``radius`` and ``radius_std``. A feature without such a column is certain. The values of
a regression are read like a feature. Every error is one line that says where in the file the
trouble is.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from array import array
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


class TableError(ValueError):
    """A table that cannot be used; the message is one line and names the place."""


class ErrorColumn(NamedTuple):
    """The column that holds the uncertainty of a feature."""

    name: str
    is_variance: bool


@dataclass(frozen=True)
class Table:
    """What was read from a table.

    Attributes
    ----------
    features : tuple of str
        Names of the feature columns.
    errors : dict of str to ErrorColumn
        The error column of every feature that has one.
    mean : ndarray of shape (n_samples, n_features)
    std : ndarray of shape (n_samples, n_features) or None
        Standard deviations, 0 for certain features; None when no feature has an error column.
    labels : list of str
        The label cells as they stand in the file; empty when no label column was asked for.
    lines : ndarray of shape (n_samples,)
        The line of the file on which each row ends, counted from 1.
    values, values_std : ndarray of shape (n_samples,) or None
        The values of a regression and their standard deviations; None when no column of values was
        asked for, and when it has no error column.
    """

    features: tuple[str, ...]
    errors: dict[str, ErrorColumn]
    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64] | None
    labels: list[str]
    lines: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64] | None = None
    values_std: npt.NDArray[np.float64] | None = None

    def with_values_apart(self) -> Table:
        """Return the table with its last feature as the values."""
        *features, target = self.features
        errors = {name: error for name, error in self.errors.items() if name != target}
        std = np.zeros_like(self.mean) if self.std is None else self.std
        return replace(
            self,
            features=tuple(features),
            errors=errors,
            mean=np.ascontiguousarray(self.mean[:, :-1]),
            std=np.ascontiguousarray(std[:, :-1]) if errors else None,
            values=self.mean[:, -1].copy(),
            values_std=std[:, -1].copy() if target in self.errors else None,
        )


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    std_suffix: str = "_std",
    variance_suffix: str = "",
) -> Table:
    """Read features, their errors and labels from a CSV or TSV file.

    Parameters
    ----------
    path : path-like
    label : str, optional
        The label column, never a feature.
    target : str, optional
        Instead of it, the column of the values of a regression, which may have an error column.
    features : sequence of str, optional
        The features, in this order. By default every column that is not the label or target, not
        dropped, and not the error of another column. A column named here is always a feature.
    drop : sequence of str
        Columns to leave out: features, or error columns of features or the target.
    std_suffix, variance_suffix : str
        What the name of an error column ends in, after the name of the feature, when it holds
        standard deviations or variances. An empty suffix matches nothing.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        When the file cannot be read, a named column is not there, no feature or no row is left, a
        feature has two error columns, a row has the wrong number of cells, or a cell is missing,
        not a finite number, or a negative error.
    """
    try:
        with Path(path).open("rb") as raw:
            zipped = raw.peek(2)[:2] == b"\x1f\x8b"
            binary = gzip.GzipFile(fileobj=raw) if zipped else raw
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                reader = _Reader(str(path), text)
                suffixes = (std_suffix, variance_suffix)
                chosen = reader.choose_features(label or target, features, drop, suffixes)
                numbers = chosen if target is None else (*chosen, target)
                errors = reader.find_errors(numbers, drop, suffixes)
                table = reader.read(numbers, errors, label)
                return table if target is None else table.with_values_apart()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise TableError(f"{path} is not UTF-8 text: it holds the byte 0x{byte:02x}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is a damaged gzip file: {error}") from error
    except csv.Error as error:
        raise TableError(f"{path} is not a table of separated values: {error}") from error
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}") from error


def parse_labels(cells: Sequence[str]) -> npt.NDArray[Any]:
    """Labels as integers or booleans where every cell is exactly one, else as text.

    Parameters
    ----------
    cells : sequence of str

    Returns
    -------
    ndarray of int64, bool or str
        An array whose entries print as the cells: "1.0" and "01" therefore stay text.
    """
    kinds = set(cells)
    if kinds <= {"True", "False"}:
        return np.array([cell == "True" for cell in cells])
    if all(_is_integer(cell) for cell in kinds):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return np.array(cells, dtype=np.str_)


def listing(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, cut short when there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


class _Reader:
    """The header of an open table, and the rows below it."""

    def __init__(self, path: str, text: IO[str]) -> None:
        self.path = path
        self._skipped, header = _find_header(text)
        if not header:
            raise TableError(f"{path} is empty: a header line with column names is needed")
        # The commonest separator of the header; max() takes the comma when there is none at all.
        delimiter = max(",\t;", key=header.count)
        self._rows = csv.reader(chain([header], text), delimiter=delimiter)
        self.names = [name.strip() for name in next(self._rows)]
        for name, count in Counter(self.names).items():
            if count > 1 and name:
                raise TableError(f"{path} has {count} columns called {name!r}")

    def choose_features(
        self,
        label: str | None,
        features: Sequence[str] | None,
        drop: Sequence[str],
        suffixes: tuple[str, str],
    ) -> tuple[str, ...]:
        """Return the names of the feature columns; see `read_table`."""
        named = [*([] if label is None else [label]), *(features or ()), *drop]
        for name in named:
            if name not in self.names:
                columns = listing(self.names)
                raise TableError(f"{self.path} has no column {name!r}; its columns are {columns}")
        if features is not None:
            for name, count in Counter(features).items():
                if count > 1 or name == label:
                    why = "twice" if count > 1 else "and as the label"
                    raise TableError(f"column {name!r} is given as a feature {why}")
            return tuple(features)
        known = set(self.names)
        errors = {name + end for name in known if name for end in suffixes if end}
        chosen = [name for name in self.names if name not in errors | {label, *drop}]
        if "" in chosen:
            raise TableError(
                f"{self.path}: column {self.names.index('') + 1} has no name in the header; name "
                "it, list the --features to use, or leave it out by --drop ''"
            )
        if not chosen:
            raise TableError(f"{self.path} has no feature among {listing(self.names)}")
        return tuple(chosen)

    def find_errors(
        self, features: tuple[str, ...], drop: Sequence[str], suffixes: tuple[str, str]
    ) -> dict[str, ErrorColumn]:
        """Find the error column of every feature that has one; see `read_table`."""
        known = set(self.names) - set(features) - set(drop)
        errors: dict[str, ErrorColumn] = {}
        for feature in features:
            for suffix, is_variance in zip(suffixes, (False, True), strict=True):
                name = feature + suffix
                if not suffix or name not in known:
                    continue
                if feature in errors:
                    raise TableError(
                        f"{self.path}: column {feature!r} has two error columns, "
                        f"{errors[feature].name!r} and {name!r}"
                    )
                errors[feature] = ErrorColumn(name, is_variance)
        return errors

    def read(
        self, features: tuple[str, ...], errors: dict[str, ErrorColumn], label: str | None
    ) -> Table:
        """Read all rows of the chosen columns."""
        wanted = [*features, *(error.name for error in errors.values())]
        where = [self.names.index(name) for name in wanted]
        label_at = None if label is None else self.names.index(label)
        values, lines = array("d"), array("q")
        labels: list[str] = []
        for row in self._rows:
            if not row:
                continue
            line = self._rows.line_num + self._skipped
            if len(row) != len(self.names):
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                place = f"{self.path}, line {line}"
                raise TableError(f"{place} has {cells}, the header has {len(self.names)}")
            numbers = [row[i] for i in where]
            # Python reads 1_000 as a number; no table means that.
            if "_" in "".join(numbers):
                self._reject(line, wanted, numbers)
            try:
                values.extend(map(float, numbers))
            except ValueError:
                self._reject(line, wanted, numbers)
            lines.append(line)
            if label_at is not None:
                labels.append(row[label_at].strip())
                if not labels[-1]:
                    raise TableError(f"{self.path}, line {line}, column {label!r}: missing label")
        if not lines:
            raise TableError(f"{self.path} has a header and no rows")
        block = np.frombuffer(values, dtype=np.float64).reshape(len(lines), len(wanted))
        self._check(block, wanted, lines, n_features=len(features))
        return Table(
            features=features,
            errors=errors,
            mean=np.ascontiguousarray(block[:, : len(features)]),
            std=_standard_deviations(block, features, errors),
            labels=labels,
            lines=np.frombuffer(lines, dtype=np.int64),
        )

    def _reject(self, line: int, names: list[str], cells: list[str]) -> NoReturn:
        """Raise the error of the first cell of a row that is not a number."""
        name, cell = next(
            pair for pair in zip(names, cells, strict=True) if not _is_number(pair[1])
        )
        place = f"{self.path}, line {line}, column {name!r}"
        if cell.strip().lower() in MISSING:
            what = f"missing value {cell!r}" if cell.strip() else "missing value (an empty cell)"
            raise TableError(f"{place}: {what}")
        raise TableError(f"{place}: {cell!r} is not a number")

    def _check(
        self,
        block: npt.NDArray[np.float64],
        names: list[str],
        lines: array[int],
        *,
        n_features: int,
    ) -> None:
        """Reject numbers that mean nothing: NaN, infinity, a negative error."""
        bad = ~np.isfinite(block)
        bad[:, n_features:] |= block[:, n_features:] < 0
        if not bad.any():
            return
        row, column = (int(index) for index in np.argwhere(bad)[0])
        value = float(block[row, column])
        place = f"{self.path}, line {lines[row]}, column {names[column]!r}"
        if math.isnan(value):
            raise TableError(f"{place}: missing value 'nan'")
        if math.isinf(value):
            raise TableError(f"{place}: {value} is not a finite number")
        raise TableError(f"{place}: {value:g} is negative; an error must be >= 0")


def _find_header(text: IO[str]) -> tuple[int, str]:
    """Count the lines above the header; return the header, '' when the file has none."""
    skipped = 0
    for line in text:
        if line.strip() and not line.startswith("#"):
            return skipped, line
        skipped += 1
    return skipped, ""


def _is_integer(cell: str) -> bool:
    digits = cell.removeprefix("-")
    fits = digits.isascii() and digits.isdecimal() and len(digits) < 19
    return fits and str(int(cell)) == cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _standard_deviations(
    block: npt.NDArray[np.float64], features: tuple[str, ...], errors: dict[str, ErrorColumn]
) -> npt.NDArray[np.float64] | None:
    """Spread the error columns, which follow the features in `block`, over all features."""
    if not errors:
        return None
    std = np.zeros((len(block), len(features)))
    for column, (feature, error) in enumerate(errors.items(), start=len(features)):
        values = block[:, column]
        std[:, features.index(feature)] = np.sqrt(values) if error.is_variance else values
    return std
