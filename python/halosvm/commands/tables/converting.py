"""``halosvm convert``: a table of one format in; its examples, errors and labels in another out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halosvm.commands.tables.reading import read, tell
from halosvm.files.atomic import require_writable
from halosvm.files.tables.writing import output_format, write_table

if TYPE_CHECKING:
    import argparse


def convert(arguments: argparse.Namespace) -> None:
    """Write what is understood of a table to a file of another format."""
    form = output_format(arguments.output, arguments.to, None)
    require_writable(arguments.output)
    regression = arguments.task == "regression"
    # formats with a place for labels give theirs unasked
    table = read(
        arguments,
        labelled=arguments.label is not None and not regression,
        values=regression,
        features=arguments.features,
    )
    write_table(table, arguments.output, form, arguments.label or "label")
    tell(
        arguments.command,
        f"{len(table.lines)} rows; {len(table.features)} features, {table.uncertain}",
    )
