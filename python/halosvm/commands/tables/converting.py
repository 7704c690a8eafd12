"""``halosvm convert``: a table of one format in; its examples, errors and labels in another out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halosvm.commands.choices import CommandError
from halosvm.commands.tables.reading import read, refuse_one_file_for_both, tell
from halosvm.files.tables.documents import MEANS_ALONE, DocumentFiles
from halosvm.files.tables.writing import output_format, require_table, write_table

if TYPE_CHECKING:
    import argparse


def convert(arguments: argparse.Namespace) -> None:
    """Write what is understood of a table to a file of another format."""
    documents = DocumentFiles(arguments.to_labels, arguments.to_covariances)
    default = None if documents == MEANS_ALONE else "svm-gsu"
    form = output_format(arguments.output, arguments.to or default, None)
    outputs = [name for name in (arguments.output, *documents) if name is not None]
    if form != "svm-gsu" and len(outputs) > 1:
        raise CommandError(f"--to-labels and --to-covariances are of svm-gsu, not of {form}")
    if arguments.missing == "impute":
        raise CommandError(
            "--missing impute is of use where a model is trained or asked; convert estimates "
            "nothing"
        )
    refuse_one_file_for_both(arguments)
    for name in outputs:
        require_table(name, form)
    regression = arguments.task == "regression"
    # formats with a place for labels give theirs unasked
    table = read(
        arguments,
        labelled=arguments.label is not None and not regression,
        values=regression,
        features=arguments.features,
    )
    notes = write_table(table, arguments.output, form, arguments.label or "label", documents)
    for note in notes:
        tell(arguments.command, note)
    tell(
        arguments.command,
        f"{len(table.lines)} rows; {len(table.features)} features, {table.uncertain}",
    )
