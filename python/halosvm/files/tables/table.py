"""`read_table`: a file of any format in; examples with their errors, labels or values out.

The uncertainty of a feature stands in a column named after it: ``radius`` and ``radius_std``. A
feature without such a column is certain. The values of a regression are read like a feature. Every
error is one line that says where in the file the trouble is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.error_names import ErrorColumn
from halosvm.checks.reading import LARGEST
from halosvm.files.tables.cells import (
    column_of,
    complete_rows,
    convert,
    name_and_unit,
    numbers_of,
    weights_of,
    with_unit,
)
from halosvm.files.tables.documents import TextFile, read_documents
from halosvm.files.tables.labels import is_missing_label, with_equal_numbers_spelt_alike
from halosvm.files.tables.long import by_objects
from halosvm.files.tables.numerical import Matrices, read_npz, read_svmlight
from halosvm.files.tables.opening import (
    format_by_content,
    format_of,
    read_bytes,
    refuse_other_formats,
    shown,
)
from halosvm.files.tables.reading import PLAIN, Reading, refuse_options_of_others
from halosvm.files.tables.roles import find_roles, require_columns
from halosvm.files.tables.text import TextColumns
from halosvm.files.tables.trouble import ChoiceError, TableError, counted, listing, named
from halosvm.files.tables.typed import WITH_COLUMNS, TypedColumns
from halosvm.gaussians.gaussians import Gaussians, as_gaussians

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from halosvm.checks.limits import Limits
    from halosvm.files.tables.cells import Columns
    from halosvm.gaussians.covariances import Covariances

    Array = npt.NDArray[np.float64]

OWN = "\0own"  # labels or values that a format has a place for, and no column


@dataclass(frozen=True)
class Table:
    """What was read from a table.

    Attributes
    ----------
    path : str
        What the table is called in messages.
    features : tuple of str
        Names of the features, with their units in brackets where they have some.
    errors : dict of str to ErrorColumn
        The error column of every feature that has one.
    mean : ndarray or sparse array of shape (n_samples, n_features)
        NaN where a value is missing that is to be imputed.
    std : ndarray of shape (n_samples, n_features) or None
        Standard deviations, 0 for certain features; None when no feature has an error column.
    covariances : Covariances or None
        Instead of them, from a file of matrices.
    labels : list of str
        The label cells as they stand in the file, but equal numbers in one spelling; empty when no
        label column was asked for.
    lines : sequence of int or str
        The line of the file on which each row ends, or its number, counted from 1.
    limits : Limits or None
        Lower and upper limits, where `mean` is NaN; None if there is none.
    values, values_std : ndarray of shape (n_samples,) or None
        The values of a regression and their standard deviations; None when no column of values was
        asked for, and when it has no error column.
    target_unit : str or None
        The unit of the values.
    weights : ndarray of shape (n_samples,) or None
        How much each row counts; None when no column of weights was asked for.
    roles : dict of str to ErrorColumn, or None
        The error columns of features and values by the names of columns; None without columns.
    kept : dict of str to ndarray
        Other columns that were asked for, as they stand in the file; their names have the units.
    notes : tuple of str
        What was left out or taken for something.
    """

    path: str
    features: tuple[str, ...]
    errors: dict[str, ErrorColumn]
    mean: Any
    std: Array | None
    labels: list[str]
    lines: Any
    covariances: Covariances | None = None
    limits: Limits | None = None
    values: Array | None = None
    values_std: Array | None = None
    target_unit: str | None = None
    weights: Array | None = None
    roles: dict[str, ErrorColumn] | None = None
    kept: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit_of_rows: str = "row"

    def place(self, row: int) -> str:
        """Name a row in a message."""
        return f"{self.path}, {self.unit_of_rows} {self.lines[row]}"

    def kept_as(self, column: str) -> str:
        """Return the name, with its unit, under which a column is kept."""
        return next(name for name in self.kept if name == column or name.startswith(f"{column} ["))

    @cached_property
    def examples(self) -> Gaussians:
        """The rows as Gaussians, those with missing values for `EmpiricalBayes` alone."""
        names = np.array(self.features, dtype=object)
        self._refuse_too_large()
        with named(self.path):
            lower, upper = self.limits or (None, None)
            X = as_gaussians(
                self.mean,
                X_std=self.std,
                X_cov=self.covariances,
                X_lower=lower,
                X_upper=upper,
                sparse=True,
                missing=True,
            )
        return X.replaced(feature_names=names)

    def _refuse_too_large(self) -> None:
        if hasattr(self.mean, "toarray"):
            return
        row, column = np.unravel_index(int(np.argmax(np.abs(self.mean) > LARGEST)), self.mean.shape)
        value = self.mean[row, column]
        if np.abs(value) > LARGEST:
            raise TableError(
                f"{self.place(int(row))}, column {self.features[column]!r}: {value:g} is larger "
                f"than {LARGEST:g}, whose square overflows; take another unit"
            )

    @property
    def uncertain(self) -> str:
        """What is known of errors, in words."""
        if self.covariances is not None:
            return "with covariances"
        return f"{len(self.errors)} of them with an error column"


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    model_features: Sequence[str] | None = None,
    own_label: str | None = None,
    target_unit: str | None = None,
    weight: str | None = None,
    own_weight: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    group: str | None = None,
    reading: Reading = PLAIN,
) -> Table:
    """Read features, their errors and labels from a table.

    Parameters
    ----------
    path : path-like
        A file, or - for standard input.
    label : str, optional
        The label column, never a feature; OWN for formats with a place for labels.
    target : str, optional
        Instead of it, the column of the values of a regression, which may have an error column.
    features : sequence of str, optional
        The features, in this order. By default every column that is not the label or target, not
        dropped, and not the error of another column. A column named here is always a feature.
    model_features : sequence of str, optional
        Instead of them, the features of a model, which values are converted to the units of.
    own_label, target_unit : str, optional
        The column of labels or values of a table of columns for OWN, and the unit of the values.
    weight : str, optional
        The column of what each row counts, which is never a feature.
    own_weight : str, optional
        That of a model, for where none is given.
    drop : sequence of str
        Columns to leave out: features, or error columns of features or the target.
    keep : sequence of str
        Columns to return as they are, and no features.
    group : str, optional
        One more of them, which names what rows belong to.
    reading : Reading

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
    name, data = shown(path), read_bytes(path, reading.room)
    three = reading.labels is not None or reading.covariances is not None
    form = reading.format or ("svm-gsu" if three else None) or format_of(path)
    if form is None or str(path) == "-":
        form = form or format_by_content(data)
    refuse_options_of_others(
        name,
        form,
        reading,
        {"features": features is not None, "drop": drop, "keep": keep}
        | {"weight": weight, "group": group},
    )
    kept = keep if group is None else (*keep, group)
    if form not in WITH_COLUMNS:
        table = _from_matrices(
            name, _matrices(form, name, data, model_features, reading), label, target
        )
    else:
        base: TextColumns | TypedColumns
        if form == "csv":
            refuse_other_formats(name, data)
            base = TextColumns(name, data, reading.dialect)
        else:
            base = TypedColumns(name, data, form, reading.room)
            base.with_units = reading.units
        own = None if own_label is None else column_of(own_label, target_unit, base.names)
        if own is not None:
            label, target = (own if name == OWN else name for name in (label, target))
        base.target = target
        columns: Columns = base
        if reading.long is not None:
            asked = (label, target, weight, own_weight, *kept)
            columns, reading = by_objects(base, reading, asked, model_features)
        if weight is None and own_weight in columns.names:
            weight = own_weight
        table = _from_columns(
            columns, label, target, weight, features, model_features, drop, kept, reading
        )
        if target is not None:
            unit = columns.unit(target)
            in_brackets = name_and_unit(target, ())[1]
            table = _in_unit(table, in_brackets if unit is None else unit, target_unit)
    notes = list(table.notes)
    if own_weight is not None and table.weights is None:
        notes.append(f"no column {own_weight!r}, the weights of the model: all rows count alike")
    labels, told = with_equal_numbers_spelt_alike(table.labels)
    return replace(table, labels=labels, notes=(*notes, *told))


def _in_unit(table: Table, unit: Any, wanted: str | None) -> Table:
    """Return a table whose values are in the unit that a model was trained in."""
    own = None if unit is None else str(unit)
    if own == wanted or wanted is None:
        return replace(table, target_unit=own)
    if own is None:
        raise TableError(f"{table.path}: the values have no unit, those of the model {wanted}")
    from astropy.units import Unit  # type: ignore[import-untyped, unused-ignore]

    try:
        factor = Unit(own).to(Unit(wanted))
    except (ValueError, TypeError) as error:
        raise TableError(
            f"{table.path}: the values are in {own}, the model was trained in {wanted}: {error}"
        ) from error
    std = None if table.values_std is None else table.values_std * factor
    return replace(table, values=table.values * factor, values_std=std, target_unit=wanted)


def _matrices(
    form: str, name: str, data: bytes, features: Sequence[str] | None, reading: Reading
) -> Matrices:
    if form == "svmlight":
        return read_svmlight(name, data, features, reading.room)
    if form == "npz":
        return read_npz(name, data, reading.room)
    labels, covariances = (
        None if path is None else TextFile(shown(path), read_bytes(path, reading.room))
        for path in (reading.labels, reading.covariances)
    )
    return read_documents(
        TextFile(name, data),
        labels,
        covariances,
        form=reading.covariance_kind,
        features=features,
        room=reading.room,
    )


def _from_matrices(name: str, matrices: Matrices, label: str | None, target: str | None) -> Table:
    asked = label if target is None else target
    if asked not in (None, OWN):
        raise ChoiceError(f"{name} has no columns with names; leave --label {asked} out")
    if asked is not None and not matrices.targets:
        raise TableError(f"{name} has no labels")
    table = Table(
        path=name,
        features=matrices.names,
        errors={},
        mean=matrices.means,
        std=None,
        labels=matrices.targets,
        lines=matrices.rows,
        covariances=matrices.covariances,
        notes=matrices.notes,
    )
    for row, cell in enumerate(table.labels):
        if is_missing_label(cell):
            raise TableError(f"{table.place(row)}: missing label {cell!r}")
    return table if target is None else _with_values(table)


def _with_values(table: Table) -> Table:
    values = np.empty(len(table.labels))
    for row, cell in enumerate(table.labels):
        try:
            values[row] = float(cell)
        except ValueError:
            values[row] = np.nan
        if not np.isfinite(values[row]):
            raise TableError(f"{table.place(row)}: the value {cell!r} is not a finite number")
    return replace(table, values=values, labels=[])


def _from_columns(
    columns: Columns,
    label: str | None,
    target: str | None,
    weight: str | None,
    features: Sequence[str] | None,
    model_features: Sequence[str] | None,
    drop: Sequence[str],
    keep: Sequence[str],
    reading: Reading,
) -> Table:
    if OWN in (label, target):
        raise ChoiceError(
            f"{columns.path}: which column holds the labels? Give --label; its columns are "
            f"{listing(columns.names)}"
        )
    called = list(model_features or ())
    numbered = any(called == [str(k + first) for k in range(len(called))] for first in (0, 1))
    if called and numbered and not set(called) & set(columns.names):
        raise TableError(
            f"{columns.path} has columns with names, the model has no feature names; train it on a "
            "table or a data frame"
        )
    wanted = [name_and_unit(name, columns.names) for name in model_features or ()]
    chosen = features if model_features is None else [name for name, _ in wanted]
    require_columns(columns.path, columns.names, keep)
    if weight is not None and weight in (label, target):
        raise ChoiceError(f"column {weight!r} is given as the label and as the weight")
    roles = find_roles(
        columns.path,
        columns.names,
        # A model names its features: what is kept beside them may be one, or the errors of one.
        not_features=[
            *(name for name in (label, weight) if name is not None),
            *reading.limits.values(),
            *(keep if chosen is None else ()),
        ],
        target=target,
        features=chosen,
        drop=drop,
        rules=reading.errors,
    )
    numbers = [*roles.features, *([] if target is None else [target])]
    values, std, notes = numbers_of(columns, roles, numbers, reading)
    of_each = tuple(columns.unit(name) for name in numbers)
    n_features = len(roles.features)
    limits = columns.limits.of(roles.features)
    if limits is not None:
        notes.append(f"{counted(int(limits.there.sum()), 'reading')} known by a limit alone")
    if model_features is None:
        names = tuple(with_unit(n, u) for n, u in zip(roles.features, of_each, strict=False))
    else:
        names = tuple(model_features)
        convert(columns, values, std, roles.features, [unit for _, unit in wanted], limits)
    labels = [] if label is None else columns.cells(label)
    if weight is not None:
        numbers.append(weight)
        values = np.column_stack([values, weights_of(columns, weight, reading)])
    rows, more = complete_rows(columns, values, labels, label, numbers, n_features, reading)
    errors = {f: e for f, e in roles.errors.items() if f != target}
    has_values_std = target in roles.errors
    return Table(
        path=columns.path,
        features=names,
        errors=errors,
        mean=np.ascontiguousarray(values[rows, :n_features]),
        std=np.ascontiguousarray(std[rows, :n_features]) if errors else None,
        limits=None if limits is None else limits.taken(rows),
        labels=[labels[row] for row in rows] if labels else [],
        lines=columns.lines[rows],
        values=None if target is None else values[rows, n_features].copy(),
        values_std=std[rows, -1].copy() if has_values_std else None,
        weights=None if weight is None else values[rows, -1].copy(),
        roles=roles.errors,
        kept={with_unit(name, columns.unit(name)): columns.column(name)[rows] for name in keep},
        notes=(*columns.notes, *roles.notes, *notes, *more),
        unit_of_rows=columns.unit_of_rows,
    )
