"""Timing in turns. In: contestants, as functions without arguments; out: timings and results."""

from __future__ import annotations

import importlib
import math
import statistics
import sys
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import threadpoolctl

from halosvm import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSE = 0.15  # seconds before each timing: OpenBLAS's threads spin for 0.1 s after their work


@dataclass(frozen=True)
class Runs:
    """The timings of one contestant in seconds, and what it returned each time."""

    seconds: list[float]
    results: list[Any]

    @property
    def median(self) -> float:
        """Median of the timings."""
        return statistics.median(self.seconds)


def interleave(
    contestants: Mapping[str, Callable[[], Any]], repeats: int, slow: float = math.inf
) -> dict[str, Runs]:
    """Time the contestants in turn (A B A B ...), so that a busy spell hits all of them alike.

    Parameters
    ----------
    contestants : mapping of str to callable
    repeats : int
    slow : float
        Contestants that take longer than so many seconds only take part in the first turn.
    """
    runs = {name: Runs([], []) for name in contestants}
    with warnings.catch_warnings():
        # Rivals warn that they did not converge; how far they got is in the tables.
        warnings.simplefilter("ignore")
        for turn in range(repeats):
            for name, contestant in contestants.items():
                if turn and runs[name].seconds[0] > slow:
                    continue
                time.sleep(PAUSE)
                start = time.perf_counter()
                result = contestant()
                runs[name].seconds.append(time.perf_counter() - start)
                runs[name].results.append(result)
    return runs


def announce(text: str) -> None:
    """Show on standard error what is being measured."""
    print(f"measuring {text}", file=sys.stderr, flush=True)


def available_threads() -> int:
    """Return the number of processors that this process may use, which is what all get."""
    return _core.thread_count()


def limit_blas(n_threads: int) -> Callable[[], Any]:
    """Return a function that makes contexts in which BLAS has so many threads."""
    pools = threadpoolctl.ThreadpoolController()
    return lambda: pools.limit(limits=n_threads)


def optional(module: str) -> Any:
    """Import a rival that need not be installed; None if it is not, or cannot be loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except (ImportError, OSError):
            return None
