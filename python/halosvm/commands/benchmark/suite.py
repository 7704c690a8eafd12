"""The suite itself: measures in, printed tables, a JSON file and a plot out."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

from halosvm.files.atomic import require_writable, write_bytes

from . import deconvolution, fits, kernels, memory, sampling, scaling, throughput
from . import settings as table
from .plot import draw
from .report import (
    describe_machine,
    format_machine,
    format_section,
    format_targets,
    load,
    plain,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Collection

    from .report import Section
    from .settings import Settings

MEASURES = {
    "uncertain": fits.measure_uncertain,
    "certain": fits.measure_certain,
    "passes": throughput.measure_passes,
    "steps": throughput.measure_steps,
    "scaling": scaling.measure,
    "memory": memory.measure,
    "sampling": sampling.measure,
    "kernels": kernels.measure,
    "deconvolution": deconvolution.measure,
}


def run_suite(settings: Settings, only: Collection[str], output: str) -> dict[str, Any]:
    """Run measures, print their tables, and write OUTPUT.json and OUTPUT.png.

    Parameters
    ----------
    settings : Settings
    only : collection of str
        The measures to run, of `MEASURES`.
    output : str
        Name of the files without the ending.

    Returns
    -------
    dict
        What the JSON file holds: "machine", "settings", "options" (of all solvers), "sections".

    Raises
    ------
    OSError
        If one of the files cannot be written, before any work.
    """
    for ending in ("json", "png"):
        require_writable(f"{output}.{ending}")
    machine = describe_machine()
    print(format_machine(settings, machine), flush=True)
    report: dict[str, Any] = {
        "machine": machine,
        "settings": dataclasses.asdict(settings),
        "options": {name: value for name, value in vars(table).items() if name.isupper()},
        "sections": {},
    }
    sections: list[Section] = []
    start = time.perf_counter()
    for name, measure in MEASURES.items():
        if name not in only:
            continue
        sections.append(measure(settings))
        print(f"\n{format_section(sections[-1])}", flush=True)
        report["sections"][name] = dataclasses.asdict(sections[-1])
        machine["load at end"] = load()
        machine["seconds"] = time.perf_counter() - start
        text = json.dumps(plain(report), indent=1, allow_nan=False)
        write_bytes(f"{output}.json", f"{text}\n".encode())
    print(f"\n{format_targets(sections, settings.mode)}".rstrip())
    print(f"\n{machine['seconds']:.0f} s in all. Every number is in {output}.json")
    try:
        if draw(sections, f"{output}.png"):
            print(f"The plot is in {output}.png")
    except ImportError:
        print("For a plot: python -m pip install 'halosvm[plot]'")
    return report
