"""Outputs: complete or not there, with the permissions of what they replace."""

import errno
import os
import stat
import subprocess
import sys
import time

import pytest

from halosvm.files.atomic import write_bytes, write_figure

posix = pytest.mark.skipif(os.name != "posix", reason="needs permissions")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_file_keeps_the_permissions_of_the_one_it_replaces(tmp_path, mode):
    path = tmp_path / "model.json"
    path.write_text("before")
    path.chmod(mode)
    write_bytes(path, b"after")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"after"


@posix
def test_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text("before")
    path.chmod(0o600)
    seen = []

    def watch(descriptor):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", watch)
    write_bytes(path, b"after")
    assert seen == [0o600]


@posix
def test_new_file_has_the_permissions_of_the_mask(tmp_path):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "model.json", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == 0o640


def test_next_writer_removes_what_killed_ones_have_left_of_the_same_file_alone(tmp_path):
    killed = (
        "import os, pathlib, halosvm.files.atomic as a\n"
        "os.fsync = lambda _: os._exit(9)\n"
        f"a.write_bytes(pathlib.Path({str(tmp_path)!r}) / 'model.json', b'half')\n"
    )
    assert subprocess.run([sys.executable, "-c", killed]).returncode == 9
    (left,) = tmp_path.iterdir()
    write_bytes(tmp_path / "model.json", b"of another writer, which may still be at work")
    assert left.exists()
    os.utime(left, (time.time() - 7200,) * 2)
    other = tmp_path / ".other.json.0123456789abcdef.tmp"
    other.write_bytes(b"")
    os.utime(other, (0, 0))
    write_bytes(tmp_path / "model.json", b"after")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "model.json"]


def test_name_as_long_as_names_may_be_is_written(tmp_path):
    path = tmp_path / ("\u00e9" * 100 + "m" * 50)
    write_bytes(path, b"text")
    assert path.read_bytes() == b"text"


def test_figure_on_a_device_that_fills_up_leaves_the_earlier_file(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    path = tmp_path / "figure.png"
    write_figure(path, figure, dpi=50)
    before = path.read_bytes()
    assert before.startswith(b"\x89PNG")

    def fill_up(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fill_up)
    figure.text(0.5, 0.5, "another")
    with pytest.raises(OSError, match=r"cannot write .*figure\.png: no space left"):
        write_figure(path, figure, dpi=50)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
