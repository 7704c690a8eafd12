"""Limits for one piece of work, as the reading of a damaged file: memory and processor time."""

import contextlib
import os
import signal
import sys
from pathlib import Path

MEMORY = 10**9  # bytes, beside what is there before
SECONDS = 2.0  # of a processor, for what takes milliseconds


class OvertimeError(BaseException):
    """The work takes too long; none of the exceptions that programs expect."""


@contextlib.contextmanager
def limited():
    """Let work beyond MEMORY end in MemoryError and beyond SECONDS in OvertimeError, on Linux."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    def end(*_):
        raise OvertimeError(f"more than {SECONDS} s")

    # Private memory that can be written, which is what arrays take, and not the address space.
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    before = resource.getrlimit(resource.RLIMIT_DATA)
    handler = signal.signal(signal.SIGPROF, end)
    resource.setrlimit(
        resource.RLIMIT_DATA, (pages * os.sysconf("SC_PAGESIZE") + MEMORY, before[1])
    )
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        resource.setrlimit(resource.RLIMIT_DATA, before)
        signal.signal(signal.SIGPROF, handler)
