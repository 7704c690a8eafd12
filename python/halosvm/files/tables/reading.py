"""How a table is read: what options say of its format, dialect, errors and missing cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.roles import ErrorRules
from halosvm.files.tables.room import Room
from halosvm.files.tables.trouble import ChoiceError
from halosvm.files.tables.typed import BY_ASTROPY, WITH_COLUMNS

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from halosvm.files.tables.long import Long


@dataclass(frozen=True)
class Reading:
    """How a table is read, beside which of its columns.

    Attributes
    ----------
    format : str or None
        One of `halosvm.files.tables.opening.FORMATS`; None to tell it by the ending of the name, or
        of a text by its content.
    dialect : Dialect
        Of CSV and TSV.
    errors : ErrorRules
    missing : {"error", "drop", "impute"}
        What to do with missing cells: an error, leave out their rows, or leave them to
        `EmpiricalBayes`.
    units : bool
        Whether units are used, or numbers taken as they are.
    sentinels : sequence of float
        Numbers that stand for missing cells.
    limits : mapping of str to str
        The column of flags, < or >, of a feature whose numbers are limits there.
    labels, covariances : path-like or None
        The other files of SVM-GSU's three.
    covariance_kind : {"full", "diagonal", "isotropic"} or None
    room : Room
        The memory that the table may take.
    long : Long or None
        The columns of a long table, which has a row for each value.
    """

    format: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    errors: ErrorRules = field(default_factory=ErrorRules)
    missing: Literal["error", "drop", "impute"] = "error"
    units: bool = True
    sentinels: Sequence[float] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    labels: str | os.PathLike[str] | None = None
    covariances: str | os.PathLike[str] | None = None
    covariance_kind: str | None = None
    room: Room = field(default_factory=Room)
    long: Long | None = None


PLAIN = Reading()


def refuse_options_of_others(
    name: str, form: str, reading: Reading, of_columns: Mapping[str, Any]
) -> None:
    """Raise for options that mean something to other formats, and would do nothing."""
    dialect, rules = reading.dialect, reading.errors
    given: dict[tuple[str, ...], dict[str, Any]] = {
        ("csv",): {
            "separator": dialect.separator is not None,
            "decimal": dialect.decimal != PLAIN.dialect.decimal,
            "encoding": dialect.encoding is not None,
            "no-header": not dialect.header,
            "comment": dialect.comment is not None,
            "quote": dialect.quote is not None,
        },
        WITH_COLUMNS: {
            **of_columns,
            "missing": reading.missing != "error",
            "long": reading.long is not None,
            "sentinel": reading.sentinels,
            "limit": reading.limits,
            "errors-in": rules.patterns != PLAIN.errors.patterns,
            "error": rules.pairs,
            "errors-are": rules.holds != PLAIN.errors.holds,
        },
        BY_ASTROPY: {"ignore-units": not reading.units},
        ("svm-gsu",): {
            "labels": reading.labels is not None,
            "covariances": reading.covariances is not None,
            "covariances-are": reading.covariance_kind is not None,
        },
    }
    for formats, options in given.items():
        for option, value in options.items():
            if value and form not in formats:
                raise ChoiceError(
                    f"--{option} is of use only with {' or '.join(formats)}, and {name} is {form}"
                )
    if reading.covariance_kind is not None and reading.covariances is None:
        raise ChoiceError("--covariances-are is of use only with --covariances")
