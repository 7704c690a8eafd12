"""``halosvm demo``: what error bars are worth to a classifier, on data that come with scikit-learn.

An error bar has two meanings. Either an example is a measurement, a true value plus noise of known
size: `measurements`, where the posterior of the true value is what a classifier needs. Or the
example is a distribution: `digits` under unknown shifts, where it goes to the expected hinge loss
as it is. And there are data whose errors are too small to matter: the `cells` with their own
standard errors. Last, `probabilities` of measurements widen with their errors. Out come two tables
and one figure, and a sentence each of what to conclude, which
is computed from the numbers (`report`, `figure`). `fits` and `statistics` are what they share.
"""

from __future__ import annotations

import sys
from typing import IO

from halosvm.files.atomic import require_writable

from .cells import HOW_VARIANCES_ARISE, load_cells, own_errors, scale
from .digits import shifted_digits
from .figure import draw
from .fits import Outcome, Progress, Setup, Situation
from .measurements import noisy_cells
from .probabilities import judge_probabilities
from .report import format_conclusions, format_probabilities, format_table, introduction

__all__ = [
    "HOW_VARIANCES_ARISE",
    "Outcome",
    "Setup",
    "Situation",
    "draw",
    "format_conclusions",
    "format_probabilities",
    "format_table",
    "judge_probabilities",
    "load_cells",
    "main",
    "run",
    "scale",
]


def run(setup: Setup, progress: IO[str] | None = None) -> list[Situation]:
    """Train and test on all data.

    Parameters
    ----------
    setup : Setup
    progress : text stream, optional
        Where to show how far the work is.

    Returns
    -------
    list of Situation
        In the order of the table.
    """
    shown = Progress(progress)
    situations = [*noisy_cells(setup, shown), *shifted_digits(setup, shown)]
    situations.append(own_errors(setup, shown))
    shown.end()
    return situations


def main(setup: Setup, output: str) -> None:
    """Run the demo: print what it does and finds, and draw the figure.

    Parameters
    ----------
    setup : Setup
    output : str
        Name of the PNG file.
    """
    path = output if output.endswith(".png") else f"{output}.png"
    require_writable(path)
    print(introduction(setup), flush=True)
    situations = run(setup, sys.stderr)
    judged = judge_probabilities(setup, Progress(sys.stderr))
    print(format_table(situations))
    print(f"\n{format_probabilities(judged)}")
    print(f"\n{format_conclusions(situations)}")
    try:
        draw(situations, judged, setup, path)
        print(f"\nThe figure is in {path}")
    except ImportError:
        print("\nFor a figure of this: python -m pip install 'halosvm[plot]'")
    print("Your own table next: halosvm doctor your_table.csv --label COLUMN")
