"""Reports of fits: they are recorded inside a `with` of their own thread, and printed elsewhere."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from halosvm import EmpiricalBayes, UncertainSVC
from halosvm.core.progress import listener, recorded

X, Y = np.array([[-1.0], [0.5], [-0.5], [2.0]]), [0, 0, 1, 1]


def test_nobody_listens_to_a_fit_that_is_not_verbose(capsys):
    assert listener(verbose=False) is None
    UncertainSVC().fit(X, Y)
    assert not capsys.readouterr().out


def test_recording_ends_with_its_block_also_by_an_exception(capsys):
    with pytest.raises(ValueError, match="C must be"), recorded():
        UncertainSVC(C=-1).fit(X, Y)
    with recorded() as outer:
        with recorded() as inner:
            UncertainSVC(verbose=1).fit(X, Y)
        assert inner
        assert not outer
    assert not capsys.readouterr().out
    UncertainSVC(verbose=1).fit(X, Y)
    assert "iteration" in capsys.readouterr().out


def test_fits_of_other_threads_are_not_recorded():
    with recorded() as reports, ThreadPoolExecutor(1) as pool:
        pool.submit(UncertainSVC().fit, X, Y).result()
        assert not reports


def test_a_line_of_progress_is_written_in_one_piece(monkeypatch):
    # What another thread prints comes between two pieces.
    class Stream(io.StringIO):
        pieces = ()

        def write(self, text):
            Stream.pieces += (text,) if text else ()
            return len(text)

    monkeypatch.setattr(sys, "stdout", Stream())
    UncertainSVC(verbose=1).fit(X, Y)
    EmpiricalBayes(verbose=1).fit(X, X_std=np.ones(4))
    assert len(Stream.pieces) > 2
    assert all(piece.endswith("\n") for piece in Stream.pieces)
