"""Rows and sections of ratios, what the machine is, and both as text and JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl

import halosvm

from .timing import available_threads, optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .settings import Settings

OPTIONAL = {  # what is imported, and the package that pip knows
    "liblinear.liblinearutil": "liblinear-official",
    "cyanure.estimators": "cyanure",
    "cvxpy": "cvxpy",
    "astroML.density_estimation": "astroML",
    "matplotlib": "matplotlib",
}


@dataclass(frozen=True)
class Row:
    """One line of a table: ours, a rival's, their ratio, and its range over the repeats.

    `target` is what the ratio should be in the full size, such as ">= 10"; most rows have none.
    """

    case: str
    ours: float
    rival: str
    theirs: float
    ratio: float
    low: float
    high: float
    note: str = ""
    target: str = ""


@dataclass(frozen=True)
class Section:
    """The outcome of one measure.

    Attributes
    ----------
    key, title : str
        Name of the measure, and the heading of its table.
    unit : str
        Of `Row.ours` and `Row.theirs`.
    ratio : str
        What the ratio says.
    notes : str
        What a reader must know to judge the rows.
    rows : list of Row
    details : dict
        Everything else that was measured, for the JSON file and the plot.
    """

    key: str
    title: str
    unit: str
    ratio: str
    notes: str = ""
    rows: list[Row] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(
        self, case: str, ours: Sequence[float], rival: str, theirs: Sequence[float], **more: Any
    ) -> None:
        """Add the row that `compare` makes."""
        self.rows.append(compare(case, ours, rival, theirs, **more))


def compare(
    case: str,
    ours: Sequence[float],
    rival: str,
    theirs: Sequence[float],
    *,
    ours_over_theirs: bool = False,
    note: str = "",
    target: str = "",
) -> Row:
    """Make a row with the ratio of the medians, theirs over ours unless told otherwise.

    The range is that of the ratios of the same turn.
    """
    above, below = (ours, theirs) if ours_over_theirs else (theirs, ours)
    if len(above) == len(below):
        ratios = [a / b for a, b in zip(above, below, strict=True)]
    else:
        ratios = [a / b for a in above for b in below]
    middle = statistics.median(above) / statistics.median(below)
    mine, other = statistics.median(ours), statistics.median(theirs)
    return Row(case, mine, rival, other, middle, min(ratios), max(ratios), note, target)


# -- text ----------------------------------------------------------------------------------------
def format_section(section: Section) -> str:
    """Return the table of one measure, and its notes."""
    title = f"{section.title} ({section.unit})"
    table = format_table(title, f"{section.ratio} [range]", section.rows)
    return f"{table}\n{section.notes.strip()}".rstrip()


def format_targets(sections: Sequence[Section], mode: str) -> str:
    """Return the rows that have a target once more, from all measures; nothing if there is none."""
    rows = [
        dataclasses.replace(row, case=f"{section.key}: {row.case}")
        for section in sections
        for row in section.rows
        if row.target
    ]
    if not rows:
        return ""
    title = "The numbers that have a target"
    if mode != "full":
        title += f" (in the full size; these are of the {mode} one)"
    return format_table(title, "ratio [range]", rows)


def format_table(title: str, ratio: str, rows: Sequence[Row]) -> str:
    """Return a title and one line for each row, in columns."""
    head = ("case", "halosvm", "compared to", "", ratio, "target", "")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    if not any(row.target for row in rows):
        lines, widths = [(*line[:5], "", line[6]) for line in lines], [*widths[:5], 0, widths[6]]
    text = [
        "  ".join(
            cell.rjust(width) if i in (1, 3) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            if width
        ).rstrip()
        for line in lines
    ]
    return "\n".join([title, text[0], "-" * len(text[0]), *text[1:]])


def _cells(row: Row) -> tuple[str, ...]:
    ratio = f"{row.ratio:>7.3g} [{row.low:.3g}, {row.high:.3g}]"
    return (
        row.case, f"{row.ours:.3g}", row.rival, f"{row.theirs:.3g}", ratio, row.target, row.note,
    )  # fmt: skip


# -- the machine ---------------------------------------------------------------------------------
def describe_machine() -> dict[str, Any]:
    """Return processor, threads, versions, the rivals' thread pools, and which are missing."""
    # The rivals are imported first, so that their libraries are among the thread pools.
    missing = [package for module, package in OPTIONAL.items() if optional(module) is None]
    pools = threadpoolctl.threadpool_info()
    return {
        "processor": _processor(),
        "threads": available_threads(),
        "load at start": load(),
        "config": halosvm.show_config("dict"),
        "thread pools": [_pool(pool) for pool in pools],
        "missing": missing,
    }


def format_machine(settings: Settings, machine: dict[str, Any]) -> str:
    """Say where and how the numbers arise."""
    config = machine["config"]
    versions = [f"{name} {config[name]}" for name in ("python", "numpy", "scipy", "scikit-learn")]
    lines = [
        f"halosvm {config['halosvm']} ({config['isa']}), benchmark suite, {settings.mode} size",
        f"{machine['processor']}, {machine['threads']} threads; {', '.join(versions)}",
        f"thread pools of the rivals: {', '.join(machine['thread pools']) or 'none'}",
        f"medians of {settings.repeats} timings in turn; in brackets the range over the turns",
    ]
    if machine["missing"]:
        lines.append(
            f"not installed, hence left out: {', '.join(machine['missing'])} "
            '(python -m pip install "halosvm[bench]")'
        )
    busy = machine["load at start"]
    if busy is not None and busy > 0.5 * machine["threads"]:
        lines.append(f"The machine is busy (load {busy:.1f}): expect the ratios to be off.")
    return "\n".join(lines)


def load() -> float | None:
    """Return how many processes have wanted a processor in the last minute, where that is known."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _pool(pool: dict[str, Any]) -> str:
    """Say which package brought a thread pool, and how many threads it has."""
    package = Path(pool["filepath"]).parent.name.removesuffix(".libs")
    kind = f" for {pool['architecture']}" if "architecture" in pool else ""
    return f"{package} {pool['internal_api']}{kind} {pool['num_threads']}"


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


# -- JSON ----------------------------------------------------------------------------------------
def plain(value: Any) -> Any:
    """Return what JSON can hold: arrays as lists, and None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if np.isfinite(value) else None
