"""Model files that are damaged at random: an error with its place, or a finite model."""

import itertools
import os
import time

from model_files.mutations import run

_SECONDS = 4.0


def seeds():
    """As many as HALOSVM_MUTATIONS says, else those of a few seconds."""
    count = os.environ.get("HALOSVM_MUTATIONS")
    if count is not None:
        yield from range(int(count))
        return
    end = time.monotonic() + _SECONDS
    yield from itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


def test_damage_is_told_or_leaves_a_finite_model(tmp_path):
    counts = run(tmp_path, seeds())
    assert counts["refused"] > counts["read"] > 0
