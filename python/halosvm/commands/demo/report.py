"""The words of the demo: results in; a table, and what to conclude from its numbers, out."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from halosvm.linear.svc import UncertainSVC

from . import cells, digits, measurements, probabilities
from .fits import METHODS
from .statistics import SIGNIFICANT, paired_p, standard_error, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fits import Setup, Situation
    from .probabilities import Judged

_COLUMNS = {
    "ignored": ("errors", "ignored"),
    "distribution": ("expected hinge", "on N(x, S)"),
    "means": ("posterior", "means"),
    "kernel": ("exp. kernel on", "posteriors"),
    "chosen": ("chosen by", "validation"),
}
_STORIES = {
    measurements.STORY: "measurements: cells, true value + noise",
    digits.STORY: "distributions: digits under shifts",
    cells.STORY: "cells, 30 features",
}
_MARKS = {"better": "+", "worse": "-", "no clear difference": " "}
_WIDTH = 15


def introduction(setup: Setup) -> str:
    """Say what the demo does."""
    return (
        "What are error bars worth to a classifier? It depends on what they mean.\n"
        "- Measurements: 569 images of cells, ten features, measured with noise of known and\n"
        "  unequal size (mean size in units of a feature's spread). N(x, S) is not what one knows\n"
        "  of the true value; its posterior is, by EmpiricalBayes. MeasurementClassifier chooses\n"
        f"  among {len(measurements.CANDIDATES)} ways by left-out rows.\n"
        "- Distributions: 300 images of digits, 8 x 8 pixels, that may be shifted (by a standard\n"
        f"  deviation of {digits.SHIFT:g} pixels). The example is a distribution, and goes to the\n"
        "  expected hinge loss as it is.\n"
        "- And the cells with their own standard errors, as they come.\n"
        "- Probabilities of cells, each measured with noise of its own size, by\n"
        "  UncertainCalibratedClassifier: with the errors of test rows, and of their means alone.\n"
        f"{setup.splits} random splits, for digits at most {digits.PARTS}; C by {setup.folds}-fold "
        "cross-validation inside the training part.\n"
    )


def format_table(situations: Sequence[Situation]) -> str:
    """Return the accuracy of each method in each situation, and which differences are clear."""
    heads = [f"{text:>{_WIDTH}} " for text in zip(*_COLUMNS.values(), strict=True) for text in text]
    n = len(_COLUMNS)
    lines = [f"{'':<24}{''.join(heads[:n])}", f"{'test accuracy (%)':<24}{''.join(heads[n:])}"]
    lines.append("-" * len(lines[0]))
    for story, rows in groupby(situations, key=lambda situation: situation.story):
        lines.append(_STORIES[story])
        lines.extend(
            f"  {row.title:<22}{''.join(_cell(row, key) for key in METHODS)}" for row in rows
        )
    gaps = np.concatenate(
        [outcome.suboptimality for s in situations for outcome in s.outcomes.values()]
    )
    gaps = gaps[np.isfinite(gaps)]
    tol = UncertainSVC().tol
    lines.append(
        "In brackets the standard error; + better, - worse than errors ignored, p < "
        f"{SIGNIFICANT:g} in a paired\nt-test that accounts for the rows that the splits share. "
        f"{np.sum(gaps <= tol)} of {len(gaps)} linear fits are certified\nto be within {tol:g} of "
        f"the best objective, (J - J*)/J*; the largest bound is {gaps.max():.1e}."
    )
    return "\n".join(line.rstrip() for line in lines)


def _cell(situation: Situation, key: str) -> str:
    if key not in situation.outcomes:
        return f"{'':>{_WIDTH}} "
    accuracy = 100 * situation.outcomes[key].accuracy.mean()
    mark = " " if key == "ignored" else _MARKS[verdict(*situation.gain(key))]
    return f"{f'{accuracy:.1f} ({100 * situation.error(key):.1f})':>{_WIDTH - 2}} {mark} "


def format_probabilities(judged: dict[str, Judged]) -> str:
    """Return what probabilities are worth with errors of test rows and without, and a sentence."""
    overlap = measurements.TEST / (1.0 - measurements.TEST)
    used, alone = (judged[way] for way in probabilities.WAYS)
    surest = f"accuracy of the surest {100 * probabilities.SUREST:.0f} %"
    measures = (
        (surest, used.surest, alone.surest, 1.0),
        ("calibration error", used.calibration_error, alone.calibration_error, -1.0),
    )
    heads = "".join(f"{text:>28}" for text in probabilities.WAYS.values())
    lines = [f"{'probabilities (%)':<32}{heads}"]
    lines.append("-" * len(lines[0]))
    said = []
    for title, one, other, sign in measures:
        cells_ = "".join(
            f"{f'{100 * each.mean():.1f} ({100 * standard_error(each, overlap):.1f})':>28}"
            for each in (one, other)
        )
        lines.append(f"  {title:<30}{cells_}")
        gain, p = float(np.mean(one - other)), paired_p(one, other, overlap)
        word = verdict(sign * gain, p)
        said.append(f"{title} {word} ({100 * gain:+.1f} points, p = {p:.1g})")
    sentence = f"Probabilities, with the errors of test rows: {'; '.join(said)}."
    return "\n".join([*lines, textwrap.fill(sentence, 96, subsequent_indent="  ")])


def format_conclusions(situations: Sequence[Situation]) -> str:
    """Return what to conclude from each story, by its differences and their p values."""
    by_story = {
        story: [situation for situation in situations if situation.story == story]
        for story in _STORIES
    }
    measured, moved, own = by_story.values()
    use = "give N(x, S) to the expected hinge loss"
    paragraphs = (
        f"Measurements. Chosen by validation: {_compared(measured, 'chosen')}. N(x, S) as it is: "
        f"{_compared(measured, 'distribution')}. "
        + _advice(measured, "chosen", "use MeasurementClassifier"),
        f"Distributions. N(x, S): {_compared(moved, 'distribution')}. "
        + _advice(moved, "distribution", use),
        f"The cells' own errors. N(x, S): {_compared(own, 'distribution')}. "
        + _advice(own, "distribution", use),
    )
    wrapped = [textwrap.fill(text, 96, subsequent_indent="  ") for text in paragraphs]
    return "\n".join(["Against errors ignored:", *wrapped])


def _compared(situations: Sequence[Situation], key: str) -> str:
    """Say where a method is better or worse than to ignore the errors, and by how much at most."""
    parts = []
    found = [(situation, *situation.gain(key)) for situation in situations]
    for word in _MARKS:
        which = [one for one in found if verdict(*one[1:]) == word]
        if which:
            most, gain, p = max(which, key=lambda one: abs(one[1]))
            where = ", ".join(one[0].title.removeprefix("noise ") for one in which)
            at = f" at {most.title}" if len(which) > 1 else ""
            noise = "noise " if np.isfinite(most.noise) else ""
            parts.append(f"{word} with {noise}{where} ({100 * gain:+.1f} points{at}, p = {p:.1g})")
    return "; ".join(parts)


def _advice(situations: Sequence[Situation], key: str, use: str) -> str:
    verdicts = {verdict(*situation.gain(key)) for situation in situations}
    if {"better", "worse"} <= verdicts:
        return f"So let validation tell whether to {use}."
    if "better" in verdicts:
        return f"So {use}."
    if "worse" in verdicts:
        return "So here the errors are better ignored."
    return "So here nothing is gained that these splits can tell."
