"""Who hears how far a fit is: nobody, standard output where `verbose` asks for it, or a recorder.

Reports of solvers come in, one after each certificate; lines, or a list of them, go out.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listener = Callable[[int, float, float], None]

_recorder: ContextVar[Listener | None] = ContextVar("recorder", default=None)


class Report(NamedTuple):
    """How far a fit was: of several problems the largest objective and the largest bound.

    `suboptimality` is the certified bound of (J - J*) / J*, infinite where none is known, and
    `seconds` the time since the recording began.
    """

    iteration: int
    objective: float
    suboptimality: float
    seconds: float


def listener(*, verbose: bool) -> Listener | None:
    """Return what a solver is to call after each certificate, None for nothing."""
    return _recorder.get() or (_print_line if verbose else None)


@contextmanager
def recorded() -> Iterator[list[Report]]:
    """Record the reports of the fits of this thread inside a `with`, in place of their lines."""
    reports: list[Report] = []
    begin = time.perf_counter()

    def record(iteration: int, objective: float, suboptimality: float) -> None:
        reports.append(Report(iteration, objective, suboptimality, time.perf_counter() - begin))

    token = _recorder.set(record)
    try:
        yield reports
    finally:
        _recorder.reset(token)


def _print_line(iteration: int, objective: float, suboptimality: float) -> None:
    known = "" if np.isinf(suboptimality) else f"   certified suboptimality {suboptimality:.1e}"
    say(f"iteration {iteration:>7}   objective {objective:.8e}{known}")


def say(text: str, *, verbose: int = 1) -> None:
    """Print a line of progress where `verbose` asks for it; in one piece, as threads may print."""
    if verbose:
        print(f"{text}\n", end="", flush=True)
