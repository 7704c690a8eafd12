"""The table that a command names: options of the command line in, its contents out."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halosvm.checks.error_names import PATTERNS
from halosvm.commands.choices import CommandError
from halosvm.files.table_models import NOTHING, Trained
from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.long import Long
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.roles import ErrorRules
from halosvm.files.tables.room import Room
from halosvm.files.tables.table import OWN, read_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from halosvm.files.tables.table import Table


def read(
    arguments: argparse.Namespace,
    *,
    labelled: bool = False,
    values: bool = False,
    weighted: bool = False,
    features: Sequence[str] | None = None,
    model_features: Sequence[str] | None = None,
    trained: Trained = NOTHING,
) -> Table:
    """Read the table, with labels, values of a regression and weights where they are asked for.

    Columns that no option names have the roles that they had for a model.
    """
    column = arguments.label if getattr(arguments, "label", None) is not None else OWN
    table = read_table(
        arguments.table,
        label=column if labelled else None,
        target=column if values else None,
        features=features,
        model_features=model_features,
        own_label=trained.label,
        target_unit=trained.unit,
        weight=arguments.weight if weighted else None,
        own_weight=trained.weight if weighted else None,
        drop=getattr(arguments, "drop", ()),
        keep=_kept(arguments, trained),
        group=getattr(arguments, "group", None),
        reading=reading_of(arguments, trained),
    )
    for note in table.notes:
        tell(arguments.command, f"{table.path}: {note}")
    return table


def _kept(arguments: argparse.Namespace, trained: Trained) -> list[str]:
    """Return the columns to keep: those asked for, that of the batches, and that of objects.

    The last where a table is written, by objects.
    """
    keep = [*getattr(arguments, "keep", ())]
    if arguments.long is not None and hasattr(arguments, "keep"):
        keep.insert(0, arguments.long[0])
    batch = getattr(arguments, "batch", None) or trained.batch
    if batch is not None:
        keep.append(batch)
    return list(dict.fromkeys(keep))


def reading_of(arguments: argparse.Namespace, trained: Trained = NOTHING) -> Reading:
    """Return how the options say that a table is to be read, or else a model."""
    known = trained.errors if arguments.errors_in is None else None
    patterns = PATTERNS if arguments.errors_in is None else tuple(arguments.errors_in)
    return Reading(
        format=arguments.format,
        dialect=Dialect(
            separator=arguments.separator,
            decimal=arguments.decimal,
            encoding=arguments.encoding,
            header=not arguments.no_header,
            comment=arguments.comment,
            quote=arguments.quote,
        ),
        errors=ErrorRules(patterns, dict(arguments.error), arguments.errors_are, known),
        missing=arguments.missing,
        units=not arguments.ignore_units,
        sentinels=tuple(arguments.sentinel),
        limits={feature: column for feature, (column, *_) in arguments.limit},
        labels=getattr(arguments, "labels", None),
        covariances=arguments.covariances,
        covariance_kind=arguments.covariances_are,
        room=Room(arguments.memory),
        long=_long(arguments),
    )


def _long(arguments: argparse.Namespace) -> Long | None:
    if arguments.long is None and arguments.repeats is not None:
        raise CommandError("--repeats is of use only with --long")
    if arguments.long is None:
        return None
    long = Long(*arguments.long)
    return replace(long, combined=arguments.repeats == "combine")


def refuse_one_file_for_both(arguments: argparse.Namespace) -> None:
    """Raise CommandError where a file to write is one to read, or two to write are one."""
    inputs = {
        name: getattr(arguments, name, None)
        for name in ("table", "model", "labels", "covariances", "test")
    }
    outputs = {
        name: getattr(arguments, name, None)
        for name in ("output", "to_labels", "to_covariances", "figure")
    }
    read = [(path, _file(path, sys.stdin)) for path in inputs.values() if path is not None]
    written: dict[Any, str] = {}
    for path in outputs.values():
        if path is None:
            continue
        file = _file(path, sys.stdout)
        other = next((p for p, each in read if file is not None and each == file), None)
        if other is not None:
            called = "standard input" if other == "-" else other
            raise CommandError(f"the output {path} is the file of {called}, which is an input")
        file = file or os.path.realpath(path)
        if file in written:
            raise CommandError(
                f"{path} and {written[file]} are one file; each output needs its own"
            )
        written[file] = path


def _file(path: str, stream: Any) -> tuple[int, int] | None:
    """Return what a file is known by whatever its name, None where there is no regular one."""
    try:
        found = os.fstat(stream.fileno()) if path == "-" else Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def tell(command: str, text: str) -> None:
    """Write a note to standard error."""
    print(f"halosvm {command}: note: {text}", file=sys.stderr)


def progress(text: str) -> None:
    """Write what is going on to standard error, where that is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
