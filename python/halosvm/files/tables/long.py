"""Long tables: columns of a row for each value in; columns of a row for each object out.

An object's labels and other columns stand in each of its rows, and have to agree.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.error_names import INVERSE_VARIANCE, STD, VARIANCE, ErrorColumn, held_by
from halosvm.files.tables.cells import finite, name_and_unit
from halosvm.files.tables.limits import LimitColumns
from halosvm.files.tables.roles import require_columns
from halosvm.files.tables.trouble import ChoiceError, TableError, named
from halosvm.uncertainty.long_tables import occurrences
from halosvm.uncertainty.repeats import combined_readings, pooled_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from halosvm.files.tables.reading import Reading
    from halosvm.files.tables.text import TextColumns
    from halosvm.files.tables.typed import TypedColumns

    Array = npt.NDArray[np.float64]

_POWER = {STD: 1.0, VARIANCE: 0.5, INVERSE_VARIANCE: -0.5}  # which makes standard deviations
_POOLED = "error"


@dataclass(frozen=True)
class Long:
    """The columns of a long table, and whether several values of an object are combined."""

    object: str
    feature: str
    value: str
    error: str | None = None
    combined: bool = False


class LongColumns:
    """The columns of a long table, by objects, in the order in which these appear.

    Those of values and errors are called after their feature, `K` and `K_err`. Attributes and
    methods are those of `TextColumns`; a row is an object, and `lines` holds what it is called.

    Attributes
    ----------
    errors : dict of str to ErrorColumn or None
        The error column of each feature; None without errors.
    """

    unit_of_rows = "object"

    def __init__(
        self,
        columns: TextColumns | TypedColumns,
        reading: Reading,
        long: Long,
        asked: Sequence[str | None],
        model_features: Sequence[str] | None,
    ) -> None:
        self._base, self._long, self.path = columns, long, columns.path
        self.target: str | None = columns.target
        self.notes = columns.notes
        own = [each for each in (long.object, long.feature, long.value, long.error) if each]
        require_columns(self.path, columns.names, own)
        twice = [name for name, count in Counter(own).items() if count > 1]
        if twice:
            raise ChoiceError(f"--long names column {twice[0]!r} twice")
        objects, self._row = self._named(long.object)
        features, self._column = self._named(long.feature)
        self.lines = np.array([*objects, None], dtype=object)[:-1]
        self.limits = LimitColumns(len(objects))
        called = [name_and_unit(name, features)[0] for name in model_features or ()]
        if set(called) & set(features):  # of objects without a row of them they are missing
            features += [name for name in called if name not in features]
        self._place = {name: j for j, name in enumerate(features)}
        n_columns = len(features) * (1 if long.error is None and not long.combined else 2)
        room = 8.0 * len(objects) * n_columns
        reading.room.require(self.path, room, "a row for each object")
        self._first = np.full(len(objects), -1, dtype=np.intp)
        self._first[self._row[::-1]] = np.arange(len(self._row))[::-1]
        beside = self._beside(asked, reading)
        self.errors = self._error_columns(features, beside, reading)
        of_errors = [] if self.errors is None else [e.names[0] for e in self.errors.values()]
        self._feature_of = dict(zip(of_errors, features, strict=False))
        self.names = [*features, *of_errors, *beside]
        self._read(reading)

    def unit(self, name: str) -> Any:
        """Return the unit of a column, None for none."""
        if name in self._place:
            return self._base.unit(self._long.value)
        if name in self._feature_of:
            return self._base.unit(self._long.error or self._long.value)
        return self._base.unit(name)

    def numbers(self, names: Sequence[str]) -> Array:
        """Return columns of numbers side by side, NaN for values that are missing."""
        block = np.empty((len(self.lines), len(names)))
        for j, name in enumerate(names):
            if name in self._place:
                block[:, j] = self._values[:, self._place[name]]
            elif name in self._feature_of:
                block[:, j] = self._errors[:, self._place[self._feature_of[name]]]
            else:
                block[:, j] = self._base.numbers([name])[self._first, 0]
        return block

    def cells(self, name: str) -> list[str]:
        """Return the cells of a column, empty where there are none."""
        if name not in self._place and name not in self._feature_of:
            cells = self._base.cells(name)
            return [cells[row] for row in self._first]
        return ["" if np.isnan(x) else f"{x:g}" for x in self.numbers([name])[:, 0].tolist()]

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column as it stands in the file."""
        if name not in self._place and name not in self._feature_of:
            return self._base.column(name)[self._first]
        values = self.numbers([name])[:, 0]
        return np.ma.array(values, mask=np.isnan(values))

    def _where(self, row: int) -> str:
        return f"{self.path}, {self._base.unit_of_rows} {self._base.lines[row]}"

    def _named(self, column: str) -> tuple[list[str], npt.NDArray[np.intp]]:
        """Return the names in a column in the order in which they appear, and that of each row."""
        cells = self._base.cells(column)
        if "" in cells:
            raise TableError(f"{self._where(cells.index(''))}, column {column!r}: an empty cell")
        place: dict[str, int] = {}
        codes = [place.setdefault(cell, len(place)) for cell in cells]
        return list(place), np.array(codes, dtype=np.intp)

    def _beside(self, asked: Sequence[str | None], reading: Reading) -> list[str]:
        """Return the columns that are asked for and no features, after a check that they agree."""
        asked = [name for name in asked if name is not None]
        wanted = dict.fromkeys(name for name in asked if name in self._base.names)
        free = set(self._base.names)
        if self.target in wanted:
            for pattern in reading.errors.patterns:
                wanted |= dict.fromkeys(pattern.columns_beside(self.target, free))
            wanted |= dict.fromkeys(reading.errors.pairs.get(self.target, ()))
        for name in wanted:
            if name in self._place:
                raise TableError(f"{self.path}: {name!r} is a column and a feature; rename one")
            require_columns(self.path, self._base.names, [name])
            cells = self._base.cells(name)
            for row, cell in enumerate(cells):
                first = self._first[self._row[row]]
                if cell != cells[first]:
                    raise TableError(
                        f"{self._where(row)}, column {name!r}: object "
                        f"{self.lines[self._row[row]]!r} has {cell!r}, and {cells[first]!r} in "
                        f"{self._base.unit_of_rows} {self._base.lines[first]}; a column of labels, "
                        "or one that is kept, has to be the same in all rows of an object"
                    )
        return list(wanted)

    def _error_columns(
        self, features: Sequence[str], beside: Sequence[str], reading: Reading
    ) -> dict[str, ErrorColumn] | None:
        end = self._long.error or (_POOLED if self._long.combined else None)
        if end is None:
            return None
        names = [f"{feature}_{end}" for feature in features]
        both = set(names) & {*features, *beside}
        if both:
            raise TableError(
                f"{self.path}: {min(both)!r} is called like the errors of another feature, in "
                f"column {end!r}; rename that column"
            )
        holds = STD
        if self._long.error is not None:
            of_model = {e.names: e.holds for e in (reading.errors.known or {}).values()}
            holds = of_model.get((names[0],), held_by((f"_{end}",), reading.errors.holds))
        return {f: ErrorColumn((n,), holds) for f, n in zip(features, names, strict=True)}

    def _read(self, reading: Reading) -> None:
        """Put values and errors in their places."""
        long, shape = self._long, (len(self.lines), len(self._place))
        x = finite(self._base, [long.value], reading)[:, 0]
        errors = None if long.error is None else finite(self._base, [long.error], reading)[:, 0]
        kept = np.flatnonzero(~np.isnan(x))
        row, column = self._row[kept], self._column[kept]
        again = occurrences(row, column)
        self._values, self._errors = np.full(shape, np.nan), np.full(shape, np.nan)
        if not long.combined:
            if again.any():
                self._refuse_second(kept, int(np.argmax(again > 0)))
            self._values[row, column] = x[kept]
            if errors is not None:
                self._errors[row, column] = errors[kept]
            return
        # A row for each object and number of a reading.
        n, d = shape
        at = again * n + row, column
        wide = np.full((n * (int(again.max(initial=0)) + 1), d), np.nan)
        wide[at] = x[kept]
        of_rows = np.tile(np.arange(n), len(wide) // n)
        read = np.flatnonzero(~np.isnan(wide).all(axis=0))  # features of the model may be elsewhere
        with named(self.path):
            if errors is None:
                X, power = pooled_errors(wide[:, read], of_rows).X, 1.0
            else:
                assert self.errors is not None
                bad = kept[~(errors[kept] > 0)]
                if bad.size:
                    raise TableError(
                        f"{self._where(int(bad[0]))}, column {long.error!r}: readings are weighted "
                        f"by their errors, and {errors[bad[0]]:g} is not above 0"
                    )
                power = _POWER[next(iter(self.errors.values())).holds]
                std = np.ones(wide.shape)
                std[at] = errors[kept] ** power
                X = combined_readings(wide[:, read], of_rows, X_std=std[:, read]).X
        there = ~np.isnan(X.mean)
        std = np.sqrt(X.covariances.variances(), out=np.full(X.shape, np.nan), where=there)
        self._values[:, read] = X.mean
        self._errors[:, read] = std ** (1.0 / power)
        combined = int(np.count_nonzero(again == 1))
        self.notes.append(f"{combined} of {int(there.sum())} values combined of several readings")

    def _refuse_second(self, kept: npt.NDArray[np.intp], at: int) -> None:
        second = int(kept[at])
        same = (self._row == self._row[second]) & (self._column == self._column[second])
        first = int(kept[np.argmax(same[kept])])
        feature = list(self._place)[self._column[second]]
        raise TableError(
            f"{self._where(second)}: object {self.lines[self._row[second]]!r} has a second value "
            f"of {feature!r}, beside {self._base.unit_of_rows} {self._base.lines[first]}; "
            "--repeats combine makes one of them"
        )


def by_objects(
    columns: TextColumns | TypedColumns,
    reading: Reading,
    asked: Sequence[str | None],
    model_features: Sequence[str] | None,
) -> tuple[LongColumns, Reading]:
    """Return the columns of a long table by objects, and how they are read from there on.

    Parameters
    ----------
    columns : TextColumns or TypedColumns
    reading : Reading
        Its `long` names the columns.
    asked : sequence of str or None
        Columns of labels, weights and others that are asked for, where they are there.
    model_features : sequence of str or None
        The features of a model, of which a table of few objects may hold only some.
    """
    assert reading.long is not None
    long = LongColumns(columns, reading, reading.long, asked, model_features)
    if long.errors is None:
        return long, reading
    rules = replace(reading.errors, known={**(reading.errors.known or {}), **long.errors})
    return long, replace(reading, errors=rules)
