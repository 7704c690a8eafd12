"""Which build of the compiled core to import: baseline or AVX2.

What the processor supports, what is installed and the environment variable HALOSVM_ISA come in; the
module that `halosvm._core` stands for goes out.
"""

from __future__ import annotations

import os
import platform
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from halosvm._processor import x86_64_level

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

# The level of x86-64 that each build needs, the fastest build first; 0 is any processor.
LEVELS = {"avx2": 3, "baseline": 0}


def load_core() -> ModuleType:
    """Import the build that HALOSVM_ISA asks for, or else the fastest that this processor runs.

    Only ever one build is loaded in a process: each of them defines the same types.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If HALOSVM_ISA is unknown, is not installed, or is too new for this processor.
    """
    isa = choose(os.environ.get("HALOSVM_ISA", ""), installed_isas(), x86_64_level())
    return import_module(f"halosvm._core_{isa}")


def choose(wanted: str, installed: Sequence[str], level: int) -> str:
    """Pick one of the installed builds.

    Parameters
    ----------
    wanted : str
        "baseline" or "avx2"; "" leaves the choice to this function.
    installed : sequence of str
        The builds there are, the fastest first.
    level : int
        The level of x86-64 that the processor reaches, 0 for other processors.

    Returns
    -------
    str
        The build to import.

    Raises
    ------
    ImportError
        If there is no such build, or none for this processor; the message says what to do.
    """
    listing = ", ".join(installed) or "none"
    runnable = [isa for isa in installed if LEVELS[isa] <= level]
    if not installed:
        raise ImportError(
            "no build of the compiled core is installed here: install halosvm with pip, "
            "from its source or from a wheel"
        )
    if not wanted:
        if not runnable:
            raise ImportError(
                f"halosvm is installed for {listing}, which needs an "
                f"x86-64-v{LEVELS[installed[-1]]} processor; this one is {processor_name(level)}: "
                "build halosvm from source on this processor, or install a wheel, which runs on all"
            )
        return runnable[0]
    if wanted not in LEVELS:
        raise ImportError(f"HALOSVM_ISA is {wanted!r}; it can be {', '.join(LEVELS)}")
    if wanted not in installed:
        raise ImportError(
            f"HALOSVM_ISA is {wanted!r}, which is not installed; installed: {listing} (wheels hold "
            "all, and so does a build with -Ccmake.define.HALOSVM_ISA_VARIANTS=all)"
        )
    if wanted not in runnable:
        raise ImportError(
            f"HALOSVM_ISA is {wanted!r}, which needs an x86-64-v{LEVELS[wanted]} processor; "
            f"this one is {processor_name(level)}"
        )
    return wanted


def installed_isas() -> list[str]:
    """Return the builds in this installation, the fastest first."""
    return [isa for isa in LEVELS if find_spec(f"halosvm._core_{isa}") is not None]


def available_isas() -> list[str]:
    """Return the builds in this installation that this processor runs, the fastest first."""
    level = x86_64_level()
    return [isa for isa in installed_isas() if LEVELS[isa] <= level]


def processor_name(level: int) -> str:
    """Return "x86-64", "x86-64-v2" and so on for a level of x86-64, for 0 this machine's name."""
    if level == 0:
        return platform.machine()
    return "x86-64" if level == 1 else f"x86-64-v{level}"
