"""Outputs: bytes and a path, or - for standard output, in; a file that is complete out."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a file of this name can be made; for the time before the work.

    Parameters
    ----------
    path : path-like
        A file, or - for standard output.
    """
    if str(path) == "-":
        return
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not folder.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: permission denied")


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it appears under its name when it is complete.

    An interrupted or failed call leaves an earlier file as it was. What is no regular file, such as
    a pipe, is written as it is.
    """
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
