"""``halosvm next``: a model and a table in; which reading of which row to make next, out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import is_regressor

from halosvm.commands.choices import CommandError
from halosvm.commands.tables.predicting import require_population
from halosvm.commands.tables.reading import progress, read, refuse_one_file_for_both, tell
from halosvm.files.table_models import as_taken, load, machine_of, meaning_of_errors
from halosvm.files.tables.trouble import named
from halosvm.files.tables.typed import WITH_COLUMNS
from halosvm.files.tables.writing import output_format, require_table, write_columns
from halosvm.measurement.readings import next_measurement

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import numpy.typing as npt

_COLUMNS = ("wrong", "wrong_after", "gain", "cost", "gain_per_cost", "largest_error")


def next_(arguments: argparse.Namespace) -> None:
    """Write the readings that gain most, the best first."""
    output = arguments.output or "-"
    form = output_format(output, arguments.to, "csv")
    if form not in WITH_COLUMNS:
        raise CommandError(
            f"what to measure has columns, {form} has none; one of {', '.join(WITH_COLUMNS)}"
        )
    refuse_one_file_for_both(arguments)
    require_table(output, form)
    model, known, trained = load(arguments.model)
    if is_regressor(machine_of(model)):
        raise CommandError(f"{arguments.model} predicts values; readings are judged for classes")
    require_population(arguments, model)
    errors = _of_features(arguments.new_error, known, "--new-error", math.inf)
    costs = _of_features(arguments.cost, known, "--cost", 1.0)
    table = read(arguments, model_features=known, trained=trained)
    progress(f"judging {len(table.lines)} rows times {len(known)} features")
    with named(table.path):
        found = next_measurement(
            model,
            as_taken(model, table.examples),
            new_error=errors,
            cost=1.0 if costs is None else costs,
            epsilon=arguments.epsilon,
            random_state=arguments.seed,
        )
    best = np.asarray(found)[: arguments.top]
    rows = best["row"]
    own = {
        table.unit_of_rows: np.asarray(list(table.lines))[rows],
        "feature": best["feature"],
        **{name: best[name] for name in _COLUMNS},
    }
    if np.isnan(own["largest_error"]).all():
        del own["largest_error"]
    kept = {name: column[rows] for name, column in table.kept.items()}
    for name in set(kept) & set(own):
        raise CommandError(f"--keep {name}: the readings have a column {name!r} of their own")
    write_columns(kept | own, output, form)
    tell(
        arguments.command,
        f"{len(table.lines)} rows; {len(known)} features, {table.uncertain}; errors: "
        f"{meaning_of_errors(model)}",
    )


def _of_features(
    given: Sequence[tuple[str, float]], names: Sequence[str], option: str, other: float
) -> npt.NDArray[np.float64] | None:
    """Return a number for each feature: its own, or that without a name; None if none is given."""
    if not given:
        return None
    of_names = dict(given)
    unknown = [name for name in of_names if name and name not in names]
    if unknown:
        raise CommandError(
            f"{option} {unknown[0]}: the model has no such feature; it has {', '.join(names[:10])}"
            f"{', ...' * (len(names) > 10)}"
        )
    common = of_names.get("", other)
    return np.array([of_names.get(name, common) for name in names])
