"""A parser of words that tells what is wrong with them in one line, and what may be meant."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHOICE = re.compile(r"(.*invalid choice: '?([^']*)'?) \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line each."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        found = _CHOICE.fullmatch(message)
        if found is not None:
            choices = [each.strip(" '") for each in found[3].split(",")]
            message = found[1] + (_meant(found[2], choices) or f"; choose from {found[3]}")
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Return what words mean; a word that the parser does not know is an error."""
        known, others = super().parse_known_args(args, namespace)
        if others:
            word = next((each for each in others if each.startswith("-")), others[0])
            word = word.partition("=")[0]
            what = "option" if word.startswith("-") else "argument"
            options = sorted(set(re.findall(r"--[\w-]+", self.format_help())))
            self.error(f"there is no {what} {word}{_meant(word, options)}")
        return known, others


def _meant(word: str, choices: Iterable[str]) -> str:
    close = get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
