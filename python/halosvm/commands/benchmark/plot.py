"""One picture of what was measured: panels for the measures that were run."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.files.atomic import write_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .report import Section

FLOOR = 1e-12  # of a gap on a logarithmic axis
COLOURS = [f"C{number}" for number in range(10)]
GAP_AXES = {"xscale": "log", "yscale": "log", "xlabel": "seconds", "ylabel": "true gap (J - J*)/J*"}


def draw(sections: Sequence[Section], output: str) -> bool:
    """Draw the panels and write a PNG file; return whether there was anything to draw.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    from matplotlib.figure import Figure

    panels = [
        (section, panel)
        for section in sections
        if section.details
        for panel in PANELS.get(section.key, ())
    ]
    if not panels:
        return False
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(6 * columns, 4.8 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (section, panel) in zip(grid, panels, strict=False):
        panel(axes, section)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    write_figure(output, figure, dpi=110)
    return True


def _legend_below(axes: Any) -> None:
    """Put a long legend where it hides nothing."""
    axes.legend(fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13))


def _uncertain(axes: Any, section: Section) -> None:
    for colour, (case, found) in zip(COLOURS, section.details.items(), strict=False):
        for name, style in (("halosvm", "-o"), ("L-BFGS-B", "--x")):
            trace = found["traces"][name]
            gaps = np.maximum(np.minimum.accumulate(np.asarray(trace["gaps"])), FLOOR)
            axes.plot(trace["seconds"], gaps, style, ms=3, color=colour, label=f"{name}, {case}")
        axes.axvline(statistics.median(found["seconds"]["LinearSVC"]), color=colour, ls=":")
    axes.set(**GAP_AXES, title="Uncertain examples (dotted: LinearSVC on the means ends)")
    _legend_below(axes)


def _certain(axes: Any, section: Section) -> None:
    markers = {"LinearSVC": "s", "LIBLINEAR": "^", "SGDClassifier": "x", "cvxpy": "*"}
    for colour, (case, found) in zip(COLOURS, section.details.items(), strict=False):
        times = {name: statistics.median(seconds) for name, seconds in found["seconds"].items()}
        gaps = {name: max(gap, FLOOR) for name, gap in found["gaps"].items()}
        ours = [name for name in times if name.startswith("fit")]
        line = [times[name] for name in ours], [gaps[name] for name in ours]
        axes.plot(*line, "-o", ms=4, lw=0.8, color=colour, label=f"halosvm, {case}")
        for name, seconds in times.items():
            if marker := markers.get(name.split(",")[0]):
                axes.plot(seconds, gaps[name], marker, color=colour, ms=7, mfc="none")
    for name, marker in markers.items():
        axes.plot([], [], marker, color="0.3", mfc="none", label=name)
    axes.set(**GAP_AXES, title="Certain examples, each at several tolerances")
    _legend_below(axes)


def _passes(axes: Any, section: Section) -> None:
    places = np.arange(len(section.rows))
    axes.bar(places - 0.2, [row.ours for row in section.rows], 0.4, label="value + gradient")
    axes.bar(places + 0.2, [row.theirs for row in section.rows], 0.4, label="read bandwidth")
    axes.set_xticks(places, [row.case.replace(", ", "\n") for row in section.rows], fontsize=7)
    axes.margins(y=0.2)
    axes.set(ylabel="GB/s", title="One pass over the data")
    axes.legend(fontsize=8, ncols=2, loc="upper center")


def _scaling(axes: Any, section: Section) -> None:
    largest = 1.0
    for name, axis in (("uncertain", 0), ("certain", 0), ("features", 1)):
        fits = section.details[name].values()
        size = [fit["shape"][axis] for fit in fits]
        time = [statistics.median(fit["seconds"]) for fit in fits]
        label = name if axis else f"rows, {name}"
        axes.plot(np.divide(size, size[0]), np.divide(time, time[0]), "-o", label=label)
        largest = max(largest, size[-1] / size[0])
    axes.plot([1.0, largest], [1.0, largest], ":", color="0.3", label="in proportion")
    axes.set(xscale="log", yscale="log", title="Scaling of a fit")
    axes.set(xlabel="size, of the smallest", ylabel="time, of the smallest")
    axes.legend(fontsize=8)


def _sampling(axes: Any, section: Section, across: str) -> None:
    for colour, (dimensions, found) in zip(COLOURS, section.details.items(), strict=False):
        for rival, style in (("LinearSVC", "--s"), ("SVC", ":^"), ("halosvm, hinge", "-o")):
            runs = [run for run in found.values() if run.get("rival") == rival]
            x = [np.median(run[across]) for run in runs]
            label = f"{rival}, {dimensions}"
            axes.plot(x, [run["angle"] for run in runs], style, ms=4, color=colour, label=label)
        if across == "seconds":
            axes.axvline(statistics.median(found["exact"]["seconds"]), color=colour, ls=":")
    axes.set(xscale="log", yscale="log", ylabel="angle to the exact solution (degrees)")
    axes.xaxis.set_minor_formatter("")  # within one decade, labels would overlap
    axes.legend(fontsize=8)


def _sampling_by_draws(axes: Any, section: Section) -> None:
    _sampling(axes, section, "draws")
    axes.set(xlabel="draws from each Gaussian", title="A plain SVM on draws")


def _sampling_by_time(axes: Any, section: Section) -> None:
    _sampling(axes, section, "seconds")
    axes.set(xlabel="seconds (dotted: the exact fit)", title="A plain SVM on draws, against time")


def _kernels(axes: Any, section: Section) -> None:
    rows = [row for row in section.rows if not row.rival.startswith("halosvm")]
    places = np.arange(len(rows))
    axes.bar(places - 0.2, [row.ours for row in rows], 0.4, label="halosvm")
    axes.bar(places + 0.2, [row.theirs for row in rows], 0.4, label="NumPy, rbf_kernel, SVC")
    names = [f"{row.case.replace(': ', ', ')}, {row.rival}".replace(", ", "\n") for row in rows]
    axes.set_xticks(places, names, fontsize=6)
    axes.set(yscale="log", ylabel="seconds", title="Kernel machines")
    axes.legend(fontsize=8)


PANELS: dict[str, tuple[Any, ...]] = {
    "uncertain": (_uncertain,),
    "certain": (_certain,),
    "passes": (_passes,),
    "scaling": (_scaling,),
    "sampling": (_sampling_by_draws, _sampling_by_time),
    "kernels": (_kernels,),
}
