"""JSON text: strict reading into values that know their place, and writing in readable lines.

In:  bytes of a file that may be anything, or a document of plain values.
Out: a tree whose every complaint names its place; text.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEEPEST = 64
_LONGEST_INTEGER = 20  # digits, beyond which nothing here is an integer, and reading takes long
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


class _Refused:
    """What JSON's grammar has, or Python's reader takes, and no model; told where it is met."""

    def __init__(self, what: str) -> None:
        self.what = what


def parse(text: bytes) -> Node:
    """Return the document in a text; ValueError tells line and column, or the byte."""
    _require_shallow(text)
    try:
        content = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from error
    value = json.loads(
        content,
        parse_constant=lambda constant: _Refused(f"{constant} is not a number"),
        parse_int=_integer,
        object_pairs_hook=_object,
    )
    return Node(value, "")


def _require_shallow(text: bytes) -> None:
    """Raise for brackets that are nested so deep that a recursive reader would end the process."""
    depth = 0
    for token in _TOKENS.finditer(text):
        first = token[0][:1]
        depth += 1 if first in b"[{" else -1 if first in b"]}" else 0
        if depth > _DEEPEST:
            line = text.count(b"\n", 0, token.start()) + 1
            column = token.start() - text.rfind(b"\n", 0, token.start())
            raise ValueError(
                f"brackets are nested more than {_DEEPEST} deep: line {line} column {column}"
            )


def _integer(digits: str) -> Any:
    if len(digits) > _LONGEST_INTEGER:
        return _Refused(f"{digits[:_LONGEST_INTEGER]}... is too long for an integer")
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return _Refused(f"{key[:40]!r} is there twice")


class Node:
    """A value of a document, and its place there."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: str) -> None:
        self.value, self.place = value, place

    def fail(self, what: str) -> NoReturn:
        """Raise ValueError that names the place."""
        raise ValueError(f"{self.place or 'the document'}: {what}")

    def _expect(self, types: type[Any] | tuple[type[Any], ...], name: str) -> Any:
        if isinstance(self.value, _Refused):
            self.fail(self.value.what)
        if not isinstance(self.value, types) or (
            isinstance(self.value, bool) and types is not bool
        ):
            self.fail(f"expected {name}, got {_shown(self.value)}")
        return self.value

    def fields(
        self, needed: Iterable[str] = (), others: Iterable[str] | None = ()
    ) -> dict[str, Node]:
        """Return the members of an object: those needed are there, and none but these and others.

        None for others lets any be there.
        """
        members = self._expect(dict, "an object")
        for key in needed:
            if key not in members:
                self.fail(f"{key!r} is missing")
        if others is not None:
            for key in members.keys() - {*needed, *others}:
                self.fail(f"{key[:40]!r} is unknown")
        before = f"{self.place}." if self.place else ""
        return {key: Node(value, f"{before}{key[:40]}") for key, value in members.items()}

    def items(self) -> list[Node]:
        """Return the elements of an array."""
        elements = self._expect(list, "an array")
        return [Node(value, f"{self.place}[{i}]") for i, value in enumerate(elements)]

    def text(self) -> str:
        """Return a string."""
        value: str = self._expect(str, "a string")
        return value

    def choice(self, allowed: Iterable[str]) -> str:
        """Return a string that is one of some."""
        value, allowed = self.text(), list(allowed)
        if value not in allowed:
            self.fail(f"expected one of {', '.join(allowed)}; got {_shown(value)}")
        return value

    def flag(self) -> bool:
        """Return a truth value."""
        value: bool = self._expect(bool, "true or false")
        return value

    def count(self) -> int:
        """Return an integer >= 0."""
        value: int = self._expect(int, "an integer")
        if not 0 <= value < 2**63:
            self.fail(f"expected an integer >= 0 and below 2^63, got {value}")
        return value

    def number(self) -> float:
        """Return a finite number."""
        value = float(self._expect((int, float), "a number"))
        if not math.isfinite(value):
            self.fail("the number is beyond the largest one")
        return value

    def scalar(self) -> str | int | float | bool | None:
        """Return whatever is not made of others."""
        if isinstance(self.value, float):
            return self.number()
        if isinstance(self.value, _Refused | dict | list):
            self._expect((str, int), "a single value")
        value: str | int | bool | None = self.value
        return value


def _shown(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", type(None): "null", bool: "true or false"}
    return kinds.get(type(value), repr(value)[:60])


def written(document: dict[str, Any]) -> str:
    """Return the text of a document: a member or a row of numbers on each line."""
    return _lines(document, "\n") + "\n"


def _lines(value: Any, newline: str) -> str:
    inner = newline + " "
    if isinstance(value, dict) and any(isinstance(each, dict | list) for each in value.values()):
        members = (f"{json.dumps(key)}: {_lines(each, inner)}" for key, each in value.items())
        return "{" + inner + ("," + inner).join(members) + newline + "}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return (
            "[" + inner + ("," + inner).join(_lines(each, inner) for each in value) + newline + "]"
        )
    return json.dumps(value, allow_nan=False)
