"""Values of options: text in, numbers and names out, or an error in one line."""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import math
from typing import TYPE_CHECKING, Any

from halosvm.commands.choices import MAPS

if TYPE_CHECKING:
    from collections.abc import Callable


def names(text: str) -> list[str]:
    """Split a list such as ``a,b,"c,d"``; the empty text is the column without a name."""
    return next(csv.reader([text]), []) or [""]


def at_least(least: int) -> Any:
    """Return what reads an integer that must not be smaller."""

    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return integer


def positive(text: str) -> float:
    """Read a positive number."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def c_value(text: str) -> float | str:
    """Read a positive number, or cv for a search."""
    if text == "cv":
        return text
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a positive number nor cv")


def components(text: str) -> int | str:
    """Read a number of Gaussians, or bic."""
    return text if text == "bic" else int(at_least(1)(text))


def folds(text: str) -> int:
    """Read a number of folds, 0 for none."""
    return 0 if text == "0" else int(at_least(2)(text))


def ranks(text: str) -> tuple[int, ...]:
    """Read numbers of first rows."""
    return tuple(at_least(1)(part) for part in text.split(","))


def gamma(text: str) -> float | str:
    """Read a positive number, scale or auto."""
    return text if text in ("scale", "auto") else positive(text)


def separator(text: str) -> str:
    """Read one character, or a name of one."""
    text = {"tab": "\t", "\\t": "\t", "blank": " ", "space": " "}.get(text, text)
    if len(text) != 1 or text in '"\n\r':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, tab or blank")
    return text


def pair(text: str) -> tuple[str, tuple[str, ...]]:
    """Read FEATURE=COLUMN or FEATURE=UPPER,LOWER."""
    feature, found, columns = text.partition("=")
    parts = tuple(names(columns))
    if not found or not feature or not all(parts) or len(parts) > 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not FEATURE=COLUMN or FEATURE=UPPER,LOWER")
    return feature, parts


def of_feature(text: str) -> tuple[str, float]:
    """Read FEATURE=NUMBER, or NUMBER of all that are not named; a name may hold signs of equality.

    Features without a name have the empty one.
    """
    feature, _, number = text.rpartition("=")
    return feature, positive(number)


def long_columns(text: str) -> list[str]:
    """Read OBJECT,FEATURE,VALUE or OBJECT,FEATURE,VALUE,ERROR."""
    parts = names(text)
    if not all(parts) or len(parts) not in (3, 4):
        raise argparse.ArgumentTypeError(f"{text!r} is not OBJECT,FEATURE,VALUE[,ERROR]")
    return parts


def approximation(text: str) -> tuple[str, int]:
    """Read a form of approximate features, and their number."""
    form, _, count = text.partition(":")
    if form not in MAPS:
        raise argparse.ArgumentTypeError(f"{text!r} is not {' or '.join(MAPS)}, with :NUMBER")
    return form, int(at_least(1)(count or "500"))


def told(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse show the message of an error, which it hides of ValueError."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reader


def parse_setting(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as Python writes it or as plain text."""
    name, found, value = text.partition("=")
    if not found or not name.isidentifier():
        raise ValueError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
