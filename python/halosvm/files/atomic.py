"""Outputs: bytes or a figure, and a path or - for standard output, in; a complete file out."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

_STALE = 3600.0  # seconds that no file is written for


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a file of this name can be made; for the time before the work.

    Parameters
    ----------
    path : path-like
        A file, or - for standard output.
    """
    with _told(path):
        if str(path) == "-":
            # a stand-in for standard output has no descriptor
            with contextlib.suppress(io.UnsupportedOperation, AttributeError):
                _require_room(sys.stdout.fileno())
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(f"cannot write {path}: it is a folder")
        if _is_special(path):
            # to open a named pipe would wait for its reader
            if stat.S_ISCHR(Path(path).stat().st_mode):
                descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
                try:
                    _require_room(descriptor)
                finally:
                    os.close(descriptor)
            return
        if not target.parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(f"cannot write {path}: permission denied")
        # permissions do not tell of all folders that take no file, nor of full devices
        _write(target, b"\n").unlink()


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it appears under its name when it is complete.

    An interrupted or failed call leaves an earlier file as it was. What is replaced gives the new
    file its permissions; of a symbolic link it is what the link points to. What is no regular file,
    such as a pipe, is written as it is.
    """
    with _told(path):
        if str(path) == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        elif _is_special(path):
            Path(path).write_bytes(content)
        else:
            target = Path(os.path.realpath(path))
            beside = _write(target, content)
            try:
                beside.replace(target)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise


def write_figure(path: str | os.PathLike[str], figure: Figure, dpi: float) -> None:
    """Write a figure of matplotlib in the format that the ending names, as `write_bytes` does."""
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix[1:].lower(), dpi=dpi)
    write_bytes(path, content.getvalue())


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Tell pipes and devices, of which /dev/stdout may have no real path."""
    return Path(path).exists() and not Path(path).is_file()


def _write(target: Path, content: bytes) -> Path:
    """Write a new file beside another one, with its permissions, or leave none."""
    prefix = f".{target.name[:50]}."
    _clear(target.parent, prefix)
    beside = target.with_name(f"{prefix}{secrets.token_hex(8)}.tmp")
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    allowed = 0o666 if mode is None else mode  # never more, not even while it is written
    try:
        with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, allowed)) as file:
            if mode is not None:
                beside.chmod(mode)  # with what the process's mask has taken off
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


def _clear(folder: Path, prefix: str) -> None:
    """Remove what writers of the same file have left that were killed long ago."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < time.time() - _STALE:
                        Path(entry).unlink()


def _require_room(descriptor: int) -> None:
    """Raise OSError where a device is full, which a write of nothing tells."""
    os.write(descriptor, b"")


@contextlib.contextmanager
def _told(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the system name the output, and not a file beside it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        name = "standard output" if str(path) == "-" else path
        reason = error.strerror or str(error)
        raise type(error)(f"cannot write {name}: {reason[:1].lower()}{reason[1:]}") from error
