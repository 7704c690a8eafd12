"""``halosvm doctor``: a table with errors in; what they are worth, a figure and a model out."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from halosvm.commands.choices import CommandError
from halosvm.commands.tables.groups import groups_of
from halosvm.commands.tables.reading import progress, read, refuse_one_file_for_both
from halosvm.core.plotting import require_matplotlib
from halosvm.files.atomic import require_writable, write_figure
from halosvm.files.model_file import is_skops, require_form
from halosvm.files.table_models import Trained, save
from halosvm.files.tables.labels import parse_labels
from halosvm.files.tables.trouble import TableError
from halosvm.measurement.doctor import doctor as examine

if TYPE_CHECKING:
    import argparse

    from halosvm.files.tables.table import Table

_ENDINGS = (".png", ".pdf", ".svg")


def doctor(arguments: argparse.Namespace) -> None:
    """Examine a table, print what was found, and write what is asked for."""
    _check_options(arguments)
    labelled = arguments.label is not None or arguments.labels is not None
    progress(f"reading {arguments.table}")
    table = read(arguments, labelled=labelled, weighted=True, features=arguments.features)
    groups = None if arguments.group is None else groups_of(table, arguments.group)
    trained = Trained(
        arguments.label,
        table.target_unit,
        table.roles,
        arguments.weight,
        arguments.group,
        None if groups is None else np.unique(groups).tolist(),
    )
    other = None if arguments.test is None else _other(arguments, table, trained)
    progress("comparing ways to learn; this may take a minute")
    X = table.examples
    if X.covariances.certain and not np.isnan(X.mean).any():
        raise TableError(
            f"{table.path}: no column of errors was found, and no value is missing; name error "
            "columns by --errors-in or --error"
        )
    found = examine(
        X,
        parse_labels(table.labels) if labelled else None,
        X_test=None if other is None else other.examples,
        sample_weight=table.weights,
        groups=groups,
        random_state=arguments.seed,
    )
    given = "X_cov" if table.std is None else "X_std"
    found = replace(found, errors_as=given, source=arguments.table, label=arguments.label)
    print(found)
    if arguments.figure is not None:
        write_figure(arguments.figure, found.plot(), dpi=120)
    if arguments.output is not None:
        if found.classifier is None:
            raise CommandError(
                "--output: there is no model to keep; ways to learn are compared for classes alone"
            )
        found.classifier.feature_names_in_ = np.array(table.features, dtype=object)
        save(found.classifier, arguments.output, trained)


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.output is not None:
        if arguments.label is None and arguments.labels is None:
            raise CommandError("--output needs --label: without labels there is no model to keep")
        if not is_skops(arguments.output):
            raise CommandError(
                f"--output {arguments.output}: what is chosen among may hold trees, which JSON "
                "cannot; name the file *.skops"
            )
        require_form(arguments.output)
    refuse_one_file_for_both(arguments)
    for path in (arguments.output, arguments.figure):
        if path is not None:
            require_writable(path)
    if arguments.figure is not None and Path(arguments.figure).suffix.lower() not in _ENDINGS:
        raise CommandError(
            f"--figure {arguments.figure}: its ending must be one of {', '.join(_ENDINGS)}"
        )
    if arguments.figure is not None:
        require_matplotlib("the doctor")


def _other(arguments: argparse.Namespace, table: Table, trained: Trained) -> Table:
    """Read the table of new rows as a model would that was trained on the first one."""
    own = copy.copy(arguments)
    own.table, own.label, own.labels, own.keep, own.group = arguments.test, None, None, (), None
    own.drop, own.weight = (), None
    return read(own, model_features=table.features, trained=trained)
