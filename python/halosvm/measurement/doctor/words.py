"""The words of the doctor: a diagnosis in; one screen of text, a line of Python, a command out."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .examination import Candidate, Diagnosis

WIDTH = 96
MOST_FEATURES = 10
_MOST_CANDIDATES, _ALL_CANDIDATES = 8, 12
_MOST_CLASSES = 6
_NAME = 22
SIGNIFICANT = 0.05
_ESTIMATE = ", error_scale='estimate'"


def screen(found: Diagnosis) -> str:
    """Return all that was found, no line longer than 100 characters."""
    parts = (_head, _sizes, _told, _news, _missing, _gains, _advice)
    return "\n".join(line.rstrip() for part in parts for line in part(found))


def code(found: Diagnosis) -> str:
    """Return the line of Python that does what is advised."""
    wrong = found.told_right is False
    told = f", {found.errors_as}={found.errors_as}" if found.errors_as else ""
    if found.values:
        before = f"halosvm.EmpiricalBayes(output='mean'{_ESTIMATE * wrong})"
        return f"make_pipeline({before}, halosvm.UncertainSVR()).fit(X, y{told})"
    if not found.classes:
        return f"halosvm.EmpiricalBayes({(_ESTIMATE * wrong)[2:]}).fit(X{told})"
    if found.worth_it or found.sizes.missing.any():
        if wrong and found.errors_as:
            factor = found.error_tests[0].factor ** (1 if found.errors_as == "X_std" else 2)
            told = f", {found.errors_as}={factor:.3g} * {found.errors_as}"
        return f"halosvm.MeasurementClassifier().fit(X, y{told})"
    return f"halosvm.UncertainSVC().fit({'X' if found.errors_as else 'X.mean'}, y)"


def command(found: Diagnosis) -> str:
    """Return the command that does what is advised."""
    table = shlex.quote(found.source)
    if not found.classes and not found.values:
        return f"halosvm doctor {table} --label COLUMN"
    label = "" if found.label is None else f" --label {shlex.quote(found.label)}"
    task = " --task regression" if found.values else ""
    if found.classes and (found.worth_it or found.sizes.missing.any()):
        return f"halosvm doctor {table}{label} --output model.skops"
    if found.values or found.sizes.missing.any():
        errors = " --errors measurement"
        if found.sizes.missing.any():
            errors += " --missing impute"
        if found.told_right is False:
            errors += " --population error_scale=estimate"
    else:
        errors = " --errors distribution --error-scale 0"
    return f"halosvm train {table}{label}{task}{errors}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _percent(share: float) -> str:
    if np.isnan(share):
        return "-"
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"


def short(name: str, width: int) -> str:
    """Cut a name that is longer than a width."""
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _head(found: Diagnosis) -> Iterator[str]:
    said = f"{short(found.source, 40)}: {found.n_rows} rows, {len(found.features)} features"
    if found.values:
        said += f", {found.values} different values to tell"
    if found.classes:
        named = [f"{short(k, 12)} {n}" for k, n in list(found.classes.items())[:_MOST_CLASSES]]
        more = ", ..." * (len(found.classes) > _MOST_CLASSES)
        said += f", {len(found.classes)} classes ({', '.join(named)}{more})"
    yield from textwrap.wrap(said, WIDTH)


def _sizes(found: Diagnosis) -> Iterator[str]:
    sizes = found.sizes
    yield "1 How large are the errors?"
    if not found.error_tests:
        yield "  There are none: values are certain, or missing."
        return
    share = _percent(sizes.share)
    said = f"They make {share} of the variance of the values, in the mean over features"
    uneven = sizes.unevenness[~np.isnan(sizes.unevenness)]
    if uneven.size:
        typical = float(np.median(uneven))
        said += (
            ", and are equal in most rows."
            if typical < 1.01
            else f"; the 90 % quantile over rows is {typical:.3g} times the 10 % quantile."
        )
    yield from _wrapped(said)
    tests = {row.name: row for row in found.error_tests}
    order = np.argsort(-np.nan_to_num(sizes.shares), kind="stable")
    yield f"  {'feature':<{_NAME}}{'share':>8}{'90 % / 10 %':>14}{'missing':>10}   factor (95 %), p"
    for j in order[:MOST_FEATURES]:
        name = found.features[j]
        row = tests.get(name, found.error_tests[0])
        told = (
            "cannot be known"
            if row.note
            else f"{_number(row.factor)} ({row.low:.3g} to {row.high:.3g}), {row.p_value:.2g}"
        )
        yield (
            f"  {short(name, _NAME - 1):<{_NAME}}{_percent(sizes.shares[j]):>8}"
            f"{_number(sizes.unevenness[j]):>14}{_percent(sizes.missing[j]):>10}   {told}"
        )
    if len(order) > MOST_FEATURES:
        yield f"  and {len(order) - MOST_FEATURES} features with smaller shares"


def _told(found: Diagnosis) -> Iterator[str]:
    if not found.error_tests:
        return
    yield "2 Are they told right?"
    common = found.error_tests[0]
    if common.note:
        yield from _wrapped(f"That cannot be known: {common.note}.")
        return
    between = f"{_number(common.factor)} ({common.low:.3g} to {common.high:.3g})"
    ratio = f"{between}, p = {common.p_value:.2g}"
    if found.told_right:
        said = f"Yes, as far as rows tell: the factor of all is {ratio}."
    else:
        way = "small" if common.factor > 1 else "large"
        said = f"No, they are too {way}: multiply standard deviations by {ratio}."
    each = [row for row in found.error_tests[2:] if not row.note]
    wrong = [row for row in each if row.p_value * len(each) < SIGNIFICANT]
    if wrong and found.told_right:
        worst = min(wrong, key=lambda row: row.p_value)
        said += f" But not of {short(worst.name, 30)}: {_number(worst.factor)}."
    if found.n_tested < found.n_rows:
        said += f" By {found.n_tested} rows drawn from all."
    yield from _wrapped(said)


def _news(found: Diagnosis) -> Iterator[str]:
    if not found.classes or not found.error_tests:
        return
    yield "3 Do errors tell the classes apart?"
    news = found.news
    if news is None:
        yield "  Not asked: all errors are alike, or rows have groups."
        return
    losses = (
        ""
        if np.isnan(news.log_loss)
        else f"; left-out log loss of errors alone {news.log_loss:.3f}, of shares of classes "
        f"{news.log_loss_of_shares:.3f}"
    )
    if news.p_value >= SIGNIFICANT:
        said = f"Not as far as rows tell (p = {news.p_value:.2g}{losses})."
    else:
        said = f"Yes (p = {news.p_value:.2g}{losses}). "
        said += "Use that only if errors of new rows arise as these."
    yield from _wrapped(said)


def _missing(found: Diagnosis) -> Iterator[str]:
    yield "4 What is missing, and are new rows like these?"
    share = float(found.sizes.missing.mean())
    said = "No value is missing." if share == 0 else f"{_percent(share)} of the values are missing."
    new = found.new_rows
    if new is None:
        yield from _wrapped(f"{said} No other rows were given (--test, X_test).")
        return
    said += f" Of {new.n_rows} other rows, {_percent(new.missing)} of the values are missing"
    said += (
        f", and {_percent(new.outside)} have an error outside of the range of training "
        f"({_percent(new.outside_by_chance)} by chance)."
    )
    if not np.isnan(new.p_value):
        said += (
            f" Errors and missing values differ from those of training (p = {new.p_value:.2g}): do "
            "not let a classifier read sizes of errors."
            if new.p_value < SIGNIFICANT
            else f" They are like training as far as rows tell (p = {new.p_value:.2g})."
        )
    if new.never_missing:
        names = ", ".join(short(found.features[j], 20) for j in new.never_missing[:3])
        said += f" Missing there alone: {names}{', ...' * (len(new.never_missing) > 3)}."
    yield from _wrapped(said)


def _gains(found: Diagnosis) -> Iterator[str]:
    if found.values:
        yield "5 What do errors gain?"
        yield from _wrapped(
            f"Not compared: {found.values} different numbers are values of a regression, and the "
            "ways that are compared tell classes."
        )
    if not found.candidates:
        return
    yield "5 What do errors gain? Left-out log loss, and how far it is below that of values alone"
    order = sorted(found.candidates, key=lambda each: each.log_loss)
    shown = [k for k, each in enumerate(order) if k < _MOST_CANDIDATES or each.ignores_errors]
    for each in (order[k] for k in shown[:_ALL_CANDIDATES]):
        yield f"  {short(each.name, 47):<48}{each.log_loss:>8.3f}{_gain(each):>34}"
    if len(order) > len(shown):
        yield f"  and {len(order) - len(shown)} other ways that are worse"


def _gain(each: Candidate) -> str:
    if each.gain == 0 and each.gain_error == 0:
        return ""
    word = ("better" if each.gain > 0 else "worse") if each.clear else "not clear"
    return f"{each.gain:+.3f} +- {each.gain_error:.3f}  {word:<9}"


def _advice(found: Diagnosis) -> Iterator[str]:
    yield "6 Advice"
    if found.classifier is not None:
        yield from _wrapped(str(found.classifier.advice_))
    if found.told_right is False and found.candidates:
        yield from _wrapped(
            "The comparison took errors as they are told: repeat it when they are right."
        )
    for line in (found.code, found.command):
        yield from _continued(line)


def _continued(line: str) -> list[str]:
    """Break a line where Python or a shell goes on reading."""
    end = " \\" if line.startswith("halosvm ") else ""
    parts = textwrap.wrap(
        line, WIDTH - 4, break_long_words=False, break_on_hyphens=False, subsequent_indent="    "
    )
    return [f"  {part}{end if part != parts[-1] else ''}" for part in parts]
