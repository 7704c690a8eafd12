"""How much memory a fit takes beside its data: the peak of the resident set of a new process.

That counts everything: NumPy's memory, the core's, and a copy made by anybody. The process is
``python -m halosvm.commands.benchmark.memory ROWS FEATURES KIND``; it prints JSON. Linux only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import rivals
from .data import make_examples
from .report import Section
from .timing import announce

if TYPE_CHECKING:
    from .settings import Settings

LAM = 1e-4
TOL = 1e-6
ALLOWED = (64e6, 0.02)  # bytes, and a share of the data


def measure(settings: Settings) -> Section:
    """Fit uncertain and certain examples, each in a process of its own."""
    n, d = settings.memory_shape
    title = f"Memory that a fit takes beside its data: {n:,} x {d} float64, default solver"
    section = Section("memory", title, "MB", "of what is allowed")
    trouble = ""
    for name in ("uncertain", "certain"):
        announce(f"memory: {name}")
        command = [sys.executable, "-m", "halosvm.commands.benchmark.memory", str(n), str(d), name]
        # With a fixed threshold, freed arrays go back to the system instead of hiding a copy.
        environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )  # fmt: skip
        if done.returncode != 0:
            reason = done.stderr.strip().rpartition("\n")[2]
            trouble += f"* {name}: not measured: {reason}\n"
            continue
        found: dict[str, Any] = json.loads(done.stdout)
        section.details[name] = found
        allowed = ALLOWED[0] + ALLOWED[1] * found["data"]
        section.add(
            f"{name}, {found['data'] / 1e6:.0f} MB of data",
            [found["extra"] / 1e6],
            f"{ALLOWED[0] / 1e6:.0f} MB + {100 * ALLOWED[1]:g} %",
            [allowed / 1e6],
            ours_over_theirs=True,
            note=f"iterations {found['iterations']}",
            target="<= 1" if name == "uncertain" else "",
        )
    return dataclasses.replace(section, notes=trouble)


def resident(what: str) -> int:
    """Return the size of the resident set, "VmRSS", or its peak, "VmHWM", in bytes.

    Raises
    ------
    OSError
        Where the system does not tell.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))


def fit_and_measure(n: int, d: int, *, uncertain: bool) -> dict[str, int]:
    """Fit n examples of d features; return bytes of the data, extra bytes, and iterations."""
    small = make_examples((200, 2), "independent", seed=0, uncertain=uncertain)
    rivals.halosvm_fit(small, LAM, TOL)()  # libraries load on first use
    data = make_examples((n, d), "correlated", seed=0, uncertain=uncertain)
    with contextlib.suppress(OSError):  # a new peak, or else the making of the data counts as peak
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = resident("VmHWM")
    clf = rivals.halosvm_fit(data, LAM, TOL)()
    extra = resident("VmHWM") - before
    size = data.mean.nbytes + (0 if data.variance is None else data.variance.nbytes)
    return {"data": size, "extra": extra, "iterations": clf.n_iter_}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n, d = int(sys.argv[1]), int(sys.argv[2])
    print(json.dumps(fit_and_measure(n, d, uncertain=sys.argv[3] == "uncertain")))
