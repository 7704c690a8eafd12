"""Which columns are what: names in; features and the columns of their errors out.

An error column is known by its name beside that of its feature, `flux` and `flux_err`, or by an
explicit pair. What looks like one and is none is told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from halosvm.checks.error_names import (
    PATTERNS,
    STD,
    ErrorColumn,
    Pattern,
    error_columns,
    held_by,
    look_alikes,
    named_like_errors,
    pairs_in_words,
)
from halosvm.files.tables.trouble import TableError, as_option, counted, listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class ErrorRules:
    """Where errors stand and what they are.

    Attributes
    ----------
    patterns : sequence of Pattern
        The first that a feature has the columns of holds; more than one that overlap is an error.
    pairs : mapping of str to tuple of str
        The error column of a feature, or its upper and lower one, beside the patterns.
    known : mapping of str to ErrorColumn or None
        Instead of patterns, the error columns of the table that a model was trained on.
    holds : {"std", "variance", "inverse-variance"}
        What numbers are whose column does not say it in its name.
    """

    patterns: Sequence[Pattern] = PATTERNS
    pairs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    holds: str = STD
    known: Mapping[str, ErrorColumn] | None = None


@dataclass(frozen=True)
class Roles:
    """The features, the error column of each that has one, and what is to be told."""

    features: tuple[str, ...]
    errors: dict[str, ErrorColumn]
    notes: tuple[str, ...]


def parse_pattern(text: str) -> Pattern:
    """Read a pattern of the command line.

    `{}_sigma`, or short `_sigma`; `sigma_{}` or `sigma_`; `MAG_{}=MAGERR_{}`; an upper and a lower
    column are parted by a comma.
    """
    feature, found, columns = text.rpartition("=")
    parts = [part if "{}" in part else _with_braces(part) for part in columns.split(",")]
    if not all(part.replace("{}", "") for part in parts) or len(parts) > 2:
        raise ValueError(f"{text!r} is no pattern such as _err, e_ or MAG_{{}}=MAGERR_{{}}")
    if found and feature.count("{}") != 1:
        raise ValueError(f"{text!r}: the name of the feature needs one {{}}")
    known = {pattern.columns: pattern.holds for pattern in PATTERNS}
    return Pattern(tuple(parts), known.get(tuple(parts)), feature if found else "{}")


def _with_braces(part: str) -> str:
    return part + "{}" if part.endswith("_") else "{}" + part


def find_roles(
    path: str,
    names: Sequence[str],
    *,
    not_features: Sequence[str],
    target: str | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
    rules: ErrorRules,
) -> Roles:
    """Find features and errors among the columns of a table.

    Parameters
    ----------
    path : str
        What the table is called in messages.
    names : sequence of str
    not_features : sequence of str
        Columns of another role, such as the labels.
    target : str or None
        The column of values, which may have errors.
    features : sequence of str or None
        None for all columns that have no other role.
    drop : sequence of str
    rules : ErrorRules
    """
    known = set(names)
    taken = set(not_features) | ({target} if target is not None else set())
    paired = [name for pair in rules.pairs.values() for name in pair]
    require_columns(
        path, names, (*not_features, *taken, *(features or ()), *drop, *rules.pairs, *paired)
    )
    _refuse_repeated(features or (), taken)
    free = known - set(drop) - set(features or ()) - taken
    dropped = set(drop)
    candidates = [n for n in names if n not in dropped] if features is None else list(features)
    numbers = [*(n for n in candidates if n not in taken), *([target] if target else [])]
    errors = _find_errors(path, numbers, free, rules)
    used = {name for error in errors.values() for name in error.names}
    # a feature that is dropped takes its errors along
    along = {c for n in dropped if n for p in rules.patterns for c in p.columns_of(n)} - dropped
    used |= along
    chosen = tuple(n for n in candidates if n not in taken and n not in used)
    if "" in chosen:
        raise TableError(
            f"{path}: column {list(names).index('') + 1} has no name in the header; name it, list "
            "the --features to use, or leave it out by --drop ''"
        )
    if not chosen:
        raise TableError(f"{path} has no feature among {listing(names)}")
    kept = {*chosen, target}
    errors = {feature: error for feature, error in errors.items() if feature in kept}
    lost = [name for name in rules.pairs if name not in kept]
    if lost:
        raise TableError(f"--error {lost[0]}=...: {lost[0]!r} is no feature")
    notes = list(_pairs_told(errors, rules))
    if features is None:
        notes += _look_alikes_told(chosen, known - dropped - used)
        lost = [name for name in candidates if name in along]
        notes += [f"left out with their features: {', '.join(map(repr, lost))}"] if lost else []
    else:
        notes += _otherwise(numbers, errors, free, rules)
    return Roles(chosen, errors, (*notes, *_asymmetric(errors)))


def require_columns(path: str, names: Sequence[str], wanted: Iterable[str]) -> None:
    """Raise TableError for the first that is no column."""
    for name in wanted:
        if name not in names:
            raise TableError(f"{path} has no column {name!r}; its columns are {listing(names)}")


def _otherwise(
    numbers: Sequence[str], errors: Mapping[str, ErrorColumn], free: set[str], rules: ErrorRules
) -> Iterator[str]:
    """Tell of features that had errors in training and have none now, and the other way round."""
    if rules.known is None:
        return
    without = [name for name in numbers if name in rules.known and name not in errors]
    if without:
        yield (
            f"{listing(without, 5)} had errors when the model was trained, in "
            f"{listing([rules.known[name].names[0] for name in without], 5)}, and none here"
            f"{_named_otherwise(without, free)}"
        )
    for name in numbers:
        if name in errors or name in rules.known:
            continue
        for pattern in PATTERNS:
            columns = pattern.columns_beside(name, free) if name else ()
            if columns and name not in columns:
                yield (
                    f"column {columns[0]!r} is not used: the model was trained without errors of "
                    f"{name!r}; use it by --error {as_option(columns[0], f'{name}=')}"
                )
                return


def _named_otherwise(without: Sequence[str], free: set[str]) -> str:
    """Return how to use the error column of the first feature that has one of another name."""
    for name in without:
        for pattern in PATTERNS:
            columns = pattern.columns_beside(name, free) if name else ()
            if columns and name not in columns:
                use = as_option(columns[0], f"{name}=")
                return f" by these names; if {columns[0]!r} holds them, use it by --error {use}"
    return ""


def _find_errors(
    path: str, numbers: Sequence[str], free: set[str], rules: ErrorRules
) -> dict[str, ErrorColumn]:
    errors: dict[str, ErrorColumn] = {}
    of_model = rules.known or {}
    for name in numbers:
        if name in rules.pairs:
            if name in rules.pairs[name]:
                raise TableError(f"--error {name}=...: a feature cannot hold its own errors")
            errors[name] = ErrorColumn(rules.pairs[name], held_by(rules.pairs[name], rules.holds))
        elif name in of_model and free.issuperset(of_model[name].names):
            errors[name] = of_model[name]
    others = [name for name in numbers if name not in rules.pairs]
    if rules.known is None:
        remedy = "leave one out by --drop"
        try:
            errors |= error_columns(others, free, remedy, rules.patterns, rules.holds)
        except ValueError as error:
            raise TableError(f"{path}: {error}") from error
    of_errors = {name for error in errors.values() for name in error.names}
    return {name: errors[name] for name in numbers if name in errors and name not in of_errors}


def _refuse_repeated(features: Sequence[str], taken: set[str]) -> None:
    for name, count in Counter(features).items():
        if count > 1 or name in taken:
            why = "twice" if count > 1 else "and as the label or weight"
            raise TableError(f"column {name!r} is given as a feature {why}")


def _pairs_told(errors: Mapping[str, ErrorColumn], rules: ErrorRules) -> Iterator[str]:
    """Tell of the pairs that names alone made."""
    by_name = {f: e for f, e in errors.items() if f not in rules.pairs}
    if by_name and rules.known is None:
        yield (
            f"taken as errors: {pairs_in_words(by_name)}; a column that is named in --features is "
            "a feature"
        )


def _look_alikes_told(chosen: Sequence[str], known: set[str]) -> Iterator[str]:
    """Tell of features that look like errors."""
    owners = look_alikes(chosen, known)
    for name, owner in list(owners.items())[:5]:
        yield (
            f"column {name!r} looks like the errors of {owner!r} and is taken as a feature; use "
            f"it by --error {as_option(name, f'{owner}=')}, or leave it out by --drop "
            f"{as_option(name)}"
        )
    more = list(owners)[5:]
    if more:
        yield f"{counted(len(more), 'more column')} like that taken as features: {', '.join(more)}"
    lonely = named_like_errors(name for name in chosen if name not in owners)
    if lonely:
        yield (
            f"{', '.join(map(repr, lonely))} named like errors of a column that is not there, and "
            "taken as features"
        )


def _asymmetric(errors: Mapping[str, ErrorColumn]) -> Iterator[str]:
    pairs = [error.names for error in errors.values() if len(error.names) > 1]
    if pairs:
        yield (
            f"{counted(len(pairs), 'feature')} with an upper and a lower error ({pairs[0][0]}, "
            f"{pairs[0][1]}{', ...' if len(pairs) > 1 else ''}): the mean of their sizes is taken "
            "as the standard deviation"
        )
