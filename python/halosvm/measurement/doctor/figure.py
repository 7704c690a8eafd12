"""The figure of the doctor: a diagnosis in; four panels of matplotlib out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.core.plotting import require_matplotlib

from .words import SIGNIFICANT, short

if TYPE_CHECKING:
    from .examination import Diagnosis

_BLUE, _RED, _GREY = "#0072B2", "#D55E00", "#999999"
_MOST = 20
_LEAST = 1e-3


def draw(found: Diagnosis, figure: Any = None) -> Any:
    """Draw shares of errors, their factors and ranges, and gains of the ways to learn."""
    if figure is None:
        require_matplotlib("the doctor")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2)
    order = np.argsort(-np.nan_to_num(found.sizes.shares), kind="stable")[:_MOST]
    holes = [f" ({100 * m:.0f} % missing)" if m > 0 else "" for m in found.sizes.missing[order]]
    names = [short(found.features[j], 18) + hole for j, hole in zip(order, holes, strict=True)]
    at = np.arange(len(order))[::-1]

    axes = panels[0, 0]
    axes.barh(at, 100 * np.nan_to_num(found.sizes.shares[order]), color=_BLUE)
    axes.set_yticks(at, names)
    axes.set_xlabel("errors in % of the variance of values")

    axes = panels[0, 1]
    tests = {row.name: row for row in found.error_tests if not row.note}
    far = [abs(np.log10(max(row.factor, _LEAST))) for row in tests.values()]
    least, most = (10.0 ** (sign * max([1.0, *(1.1 * each for each in far)])) for sign in (-1, 1))
    for j, height in zip(order, at, strict=True):
        row = tests.get(found.features[j])
        if row is not None:
            colour = _RED if row.p_value < SIGNIFICANT else _BLUE
            axes.plot(np.clip([row.low, row.high], least, most), [height, height], color=colour)
            axes.plot(np.clip(row.factor, least, most), height, "o", color=colour)
    if found.error_tests and not found.error_tests[0].note:
        common = found.error_tests[0]
        axes.axvspan(*np.clip([common.low, common.high], least, most), color=_GREY, alpha=0.3)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(least, most)
    axes.set_yticks(at, names)
    axes.set_xlabel("factor of errors, 95 %; grey: of all features")

    axes = panels[1, 0]
    ends = found.sizes.high[order]
    begins = np.maximum(found.sizes.low[order], _LEAST * ends)  # errors of 0 have no logarithm
    drawn = np.isfinite(ends) & (ends > 0)
    axes.hlines(at[drawn], begins[drawn], ends[drawn], color=_BLUE, linewidth=4)
    axes.set_xscale("log")
    axes.set_yticks(at, names)
    axes.set_xlabel("errors of the middle 80 % of the rows, in spreads of the values")

    axes = panels[1, 1]
    ways = sorted(found.candidates, key=lambda each: -each.log_loss)[-_MOST:]
    for height, each in enumerate(ways):
        colour = (_BLUE if each.gain > 0 else _RED) if each.clear else _GREY
        axes.errorbar(each.gain, height, xerr=each.gain_error, fmt="o", color=colour, capsize=3)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(ways)), [short(each.name, 40) for each in ways])
    axes.set_xlabel("gain of left-out log loss against values alone")
    return figure
