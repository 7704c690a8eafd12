"""Long calculations of other libraries that Ctrl-C must end, though they look for no signals.

A function that computes without Python enters; its result leaves, or KeyboardInterrupt at once.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from halosvm import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

T = TypeVar("T")

_WAIT = 0.05  # seconds between two looks for signals


def _do_nothing() -> None:
    pass


def abandonable(function: Callable[[], T], abandon: Callable[[], None] = _do_nothing) -> T:
    """Return what a function returns; an interrupt leaves it behind, in a thread that still runs.

    Threads cannot be ended from outside. One that is left behind goes on until its function
    returns, and ends with the process at the latest, which then skips the destructors of libraries.
    Only the main thread receives signals; elsewhere the function is simply called.

    Parameters
    ----------
    function : callable
        It must give up the interpreter while it computes, and must change nothing that is in use.
    abandon : callable, optional
        Called when the function is left behind, to bring it to its end sooner.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # it is raised in the thread that waits
            outcome.set_exception(error)

    try:
        threading.Thread(target=run, daemon=True).start()
        while not outcome.done():
            wait([outcome], _WAIT)  # not Thread.join, which takes an interrupt for the thread's end
    except BaseException:
        _core.begin_left_behind()
        outcome.add_done_callback(lambda _: _core.end_left_behind())
        abandon()
        raise
    return outcome.result()


def eigh(matrices: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what `numpy.linalg.eigh` does, of one large matrix or many small ones."""
    values, vectors = abandonable(lambda: np.linalg.eigh(matrices))
    return values, vectors
