"""The table that a command names: options of the command line in, its contents out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halosvm.files.table import read_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from halosvm.files.table import Table


class CommandError(ValueError):
    """A request that cannot be met; the message is one line."""


def read(
    arguments: argparse.Namespace,
    *,
    label: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
) -> Table:
    """Read the table, with labels or with the values of a regression where they are asked for."""
    return read_table(
        arguments.table,
        label=label,
        target=target,
        features=features,
        drop=getattr(arguments, "drop", ()),
        std_suffix=arguments.std_suffix,
        variance_suffix=arguments.variance_suffix,
    )
