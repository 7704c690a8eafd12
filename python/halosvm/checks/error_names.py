"""Columns of errors by their names: names of columns in; which hold the errors of which out.

What `PATTERNS` says is a pair is one: `flux_err` holds the errors of `flux`. What only looks like
one, as `psfMagErr_u` beside `psfMag_u` does, is told, and stays a feature.
"""

from __future__ import annotations

import re
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

STD, VARIANCE, INVERSE_VARIANCE = "std", "variance", "inverse-variance"
KINDS = (STD, VARIANCE, INVERSE_VARIANCE)


class Pattern(NamedTuple):
    """How the name of an error column, or of an upper and a lower one, follows from a feature's.

    `feature` and `columns` hold {} for the same text; `holds` is None where the name does not say
    whether the numbers are variances.
    """

    columns: tuple[str, ...]
    holds: str | None = None
    feature: str = "{}"

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the error columns of a feature, none where the pattern is for others."""
        before, _, behind = self.feature.partition("{}")
        fits = len(name) > len(before) + len(behind)
        if not (fits and name.startswith(before) and name.endswith(behind)):
            return ()
        core = name[len(before) : len(name) - len(behind)]
        return tuple(column.replace("{}", core) for column in self.columns)

    def columns_beside(self, name: str, names: set[str]) -> tuple[str, ...]:
        """Return the error columns among the names, `flux_std [mJy]` too of `flux [mJy]`."""
        columns = self.columns_of(name)
        core, bracket, unit = name.partition(" [")
        if bracket and name.endswith("]") and not (columns and names.issuperset(columns)):
            columns = tuple(f"{column} [{unit}" for column in self.columns_of(core))
        return columns if names.issuperset(columns) else ()


class ErrorColumn(NamedTuple):
    """The column that holds the errors of a feature, or those of its upper and lower ones."""

    names: tuple[str, ...]
    holds: str


PATTERNS = (
    Pattern(("E_{}", "e_{}")),
    Pattern(("{}_err1", "{}_err2")),
    Pattern(("{}_std",), STD),
    Pattern(("{}_err",)),
    Pattern(("{}_error",)),
    Pattern(("{}_e",)),
    Pattern(("e_{}",)),
    Pattern(("err_{}",)),
    Pattern(("MAGERR_{}",), None, "MAG_{}"),
    Pattern(("FLUXERR_{}",), None, "FLUX_{}"),
    Pattern(("{}_var",), VARIANCE),
    Pattern(("{}_variance",), VARIANCE),
    Pattern(("{}_ivar",), INVERSE_VARIANCE),
    Pattern(("{}_STD",), STD),
    Pattern(("{}_ERR",)),
    Pattern(("{}_ERROR",)),
    Pattern(("{}_VAR",), VARIANCE),
    Pattern(("{}_IVAR",), INVERSE_VARIANCE),
    Pattern(("FLUX_IVAR_{}",), INVERSE_VARIANCE, "FLUX_{}"),
)


def error_columns(
    numbers: Sequence[str],
    free: set[str],
    remedy: str,
    patterns: Sequence[Pattern] = PATTERNS,
    holds: str = STD,
) -> dict[str, ErrorColumn]:
    """Return the error column of every feature that has one.

    Parameters
    ----------
    numbers : sequence of str
        The features.
    free : set of str
        The columns that may hold errors.
    remedy : str
        What to do about two error columns of one feature, for the message of the ValueError.
    patterns : sequence of Pattern
    holds : str
        What numbers are whose column does not say it in its name.
    """
    errors: dict[str, ErrorColumn] = {}
    for name in filter(None, numbers):
        for pattern in patterns:
            columns = pattern.columns_beside(name, free)
            if not columns or name in columns:
                continue
            if name not in errors:
                errors[name] = ErrorColumn(columns, pattern.holds or holds)
            elif not set(columns) & set(errors[name].names):
                raise ValueError(
                    f"column {name!r} has two error columns, {errors[name].names[0]!r} and "
                    f"{columns[0]!r}; {remedy}"
                )
    of_errors = {name for error in errors.values() for name in error.names}
    return {name: error for name, error in errors.items() if name not in of_errors}


def held_by(columns: Sequence[str], otherwise: str) -> str:
    """Return what columns hold, by their names if these say it."""
    for pattern in PATTERNS:
        before, _, behind = pattern.columns[0].partition("{}")
        if pattern.holds and columns[0].startswith(before) and columns[0].endswith(behind):
            return pattern.holds
    return otherwise


def of_measurements(errors: Mapping[str, ErrorColumn]) -> list[str]:
    """Return the error columns whose names say that values were measured: all but spreads."""
    names = [name for error in errors.values() for name in error.names]
    return [n for n in names if held_by((n.partition(" [")[0],), "") not in (STD, VARIANCE)]


def pairs_in_words(errors: Mapping[str, ErrorColumn]) -> str:
    """Return every error column with its feature, for a message."""
    return ", ".join(f"{' and '.join(map(repr, e.names))} of {f!r}" for f, e in errors.items())


# ---- what looks like errors ---------------------------------------------------------------------

# These may be one piece with the rest of a name, in any case of their letters.
_GLUED = (
    "sigcom",
    "error",
    "stddev",
    "stdev",
    "stderr",
    "sigma",
    "ivar",
    "err",
    "std",
    "sig",
    "unc",
)
_WORDS = {*_GLUED, "errors", "uncert", "uncertainty", "variance", "var", "dev", "sd", "se", "sem"}
_WORDS |= {
    "e",
    "d",
    "del",
    "delta",
    "epos",
    "eneg",
    "errlo",
    "errhi",
    "errup",
    "errlow",
    "errdown",
    "errp",
    "errm",
}
_WORDS |= {"loerr", "hierr", "uperr", "lolim", "hilim"}
_LOWER = {"lo", "low", "lower", "m", "minus", "neg", "down"}
_UPPER = {"hi", "high", "upper", "p", "plus", "pos", "up"}
_MEAN = {"mean", "avg", "average", "median", "value", "val"}
# A name with one of these says error even where it is nobody's.
_ALONE = {*_GLUED, "errors", "uncert", "uncertainty", "sd", "sem"}
_ALONE_AT_END = ("err", "sigma", "ivar", "sig")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_UNIT = re.compile(r"\s*[\[(][^\[\]()]*[\])]$")
_SHORTEST = 3  # letters by which the end of a name is known


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PARTS.findall(name)]


def _choices(part: str) -> Iterator[tuple[str, str]]:
    """Return what is left of a part of a name without a word of error, and of which kind that is.

    The kinds: e of errors, l and u of their sides, and 1 for a number, which says nothing alone.
    """
    yield part, ""
    for words, kind in ((_WORDS, "e"), (_LOWER, "l"), (_UPPER, "u"), ({"1", "2"}, "1")):
        if part in words:
            yield "", kind
    for word in _GLUED:
        at = part.find(word) if len(part) > len(word) else -1
        while at >= 0:
            yield part[:at] + part[at + len(word) :], "e"
            at = part.find(word, at + 1)
    if part.startswith("d") and len(part) > 1:
        yield part[1:], "e"
        if part.startswith("del") and len(part) > len("del"):
            yield part[len("del") :], "e"


def _reductions(name: str) -> Iterator[tuple[str, str]]:
    """Return what names are left without words of error, and the kinds of these."""
    for text in dict.fromkeys((name, _UNIT.sub("", name))):
        parts = _parts(text)
        for choice in islice(product(*map(_choices, parts)), 1, 256):
            kinds = "".join(kind for _, kind in choice)
            rest = "".join(left for left, _ in choice)
            if rest and set(kinds) - {"1"}:
                yield rest, kinds


def look_alikes(names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return the names that look like the errors of a known column, each with that column.

    Less a word of error, at any place and in any case, they are the name of the other, which may
    say that it is a mean, or have a word more in front. Sides alone count where both are there.
    """
    owners: dict[str, str] = {}
    for name in known:
        for text in dict.fromkeys((name, _UNIT.sub("", name))):
            parts = _parts(text)
            owners.setdefault("".join(parts), name)
            owners.setdefault("".join(part for part in parts if part not in _MEAN), name)
    owners.pop("", None)
    sides: dict[str, dict[str, list[str]]] = {}
    found: dict[str, str] = {}
    rests: dict[str, list[str]] = {}
    for name in names:
        for rest, kinds in _reductions(name):
            owner = owners.get(rest, name)
            if "e" in kinds:
                rests.setdefault(name, []).append(rest)
                if owner != name:
                    found.setdefault(name, owner)
            elif owner != name and len(kinds.replace("1", "")) == 1:
                both = sides.setdefault(owner, {"l": [], "u": []})
                both["l" if "l" in kinds else "u"].append(name)
    for owner, both in sides.items():
        if both["l"] and both["u"]:
            found.update({name: owner for name in both["l"] + both["u"] if name not in found})
    unknown = {name: those for name, those in rests.items() if name not in found}
    if unknown:
        found |= _by_ends(unknown, owners)
    return {name: found[name] for name in names if name in found}


def _by_ends(unknown: Mapping[str, Sequence[str]], owners: Mapping[str, str]) -> dict[str, str]:
    """Return owners whose names end like what is left: `HIflux` for the `flux` of `sigflux`."""
    ends: dict[str, str] = {}
    for key, owner in owners.items():
        for begin in range(1, len(key) - _SHORTEST + 1):
            ends.setdefault(key[begin:], owner)
    found = {}
    for name, rests in unknown.items():
        fit = [ends[rest] for rest in rests if ends.get(rest, name) != name]
        if fit and _says_error(name):
            found[name] = fit[0]
    return found


def named_like_errors(names: Iterable[str]) -> list[str]:
    """Return the names that speak of errors, whosever these are."""
    return [name for name in names if _says_error(name)]


def _says_error(name: str) -> bool:
    begins = any(re.match(r"err|sig(?!n|h)", part) for part in _parts(name))
    ends = any(part in _ALONE or part.endswith(_ALONE_AT_END) for part in _parts(name))
    return begins or ends or name.lower().endswith(("_e", "_var", "_variance"))


_UNEQUAL = 2.0


def unequal_sides_told(sides: Mapping[str, NDArray[np.float64]]) -> str:
    """Tell of upper and lower errors too different for one Gaussian to say what they do, or "".

    `sides` are the errors of each feature, (n, 2), NaN where one is missing.
    """
    counts = {}
    for feature, each in sides.items():
        small, large = np.sort(np.abs(each), axis=1).T
        counts[feature] = int(np.sum(large > _UNEQUAL * small))
    told = [f"{f!r} in {n} row{'s' * (n > 1)}" for f, n in counts.items() if n]
    if not told:
        return ""
    return (
        f"upper and lower errors differ by more than a factor of {_UNEQUAL:g}, of "
        f"{', '.join(told[:10])}{', ...' * (len(told) > 10)}; a Gaussian of their mean size stands "
        "for both"
    )
