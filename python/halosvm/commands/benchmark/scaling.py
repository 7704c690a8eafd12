"""How the time of a fit grows with rows, features and classes.

Here halosvm is its own rival: the small problem is what the large one is compared with.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from . import rivals
from . import settings as table
from .data import Examples, make_examples
from .report import Section
from .timing import announce, interleave

if TYPE_CHECKING:
    from .settings import Settings

LAM = 1e-4
TOL = 1e-6
NOTES = """
* The time of the larger fit over that of the smaller one; correlated features, float64, diagonal
  covariances but for the certain rows.
* iterations: of the larger fit and of the smaller. Of L-BFGS, with which uncertain data begin, an
  iteration is one pass over the data; of interior points it is more.
"""


def measure(settings: Settings) -> Section:
    """Fit to tol 1e-6 at growing sizes."""
    title = f"Scaling of a fit to tol {TOL:g}, lam {LAM:g}"
    section = Section("scaling", title, "s", "times the time", NOTES)
    _rows(section, settings)
    problems = {
        f"{d} features": make_examples((settings.width_rows, d), "correlated", seed=settings.seed)
        for d in settings.width_features
    }
    _compare(section, settings, "features", problems)
    _classes(section, settings)
    return section


def _rows(section: Section, settings: Settings) -> None:
    few, many = settings.growth_rows
    shape = (many, settings.growth_features)
    large = make_examples(shape, "correlated", seed=settings.seed)
    assert large.variance is not None
    small = Examples(large.mean[:few], large.variance[:few], large.codes[:few])
    names, target = (f"{few:,} rows", f"{many:,} rows"), f"<= {table.ROWS_RATIO:g}"
    problems = dict(zip(names, (small, large), strict=True))
    _compare(section, settings, "uncertain", problems, target)
    certain = {name: data.certain for name, data in problems.items()}
    _compare(section, settings, "certain", certain, target)


def _classes(section: Section, settings: Settings) -> None:
    k = settings.classes
    data = make_examples(
        settings.classes_shape, "correlated", seed=settings.seed, classes=k, separation=4.0
    )
    one = data._replace(codes=(data.codes == 0).astype("int16"))
    problems = {"one against the rest": one, f"{k} classes": data}
    _compare(section, settings, "classes", problems, f"<= {table.CLASSES_RATIO:g}")


def _compare(
    section: Section, settings: Settings, key: str, problems: dict[str, Examples], target: str = ""
) -> None:
    """Fit problems of growing size in turn, and compare each with the one before it."""
    announce(f"scaling: {key}")
    fits = {name: rivals.halosvm_fit(data, LAM, TOL) for name, data in problems.items()}
    runs = interleave(fits, settings.repeats, settings.slow)
    iterations = {name: run.results[0].n_iter_ for name, run in runs.items()}
    for small, large in itertools.pairwise(problems):
        n, d = problems[large].mean.shape
        section.add(
            f"{key}: {large} ({n:,} x {d})",
            runs[large].seconds,
            small,
            runs[small].seconds,
            ours_over_theirs=True,
            note=f"iterations {iterations[large]} and {iterations[small]}"
            + rivals.doubt(runs[large].results + runs[small].results),
            target=target,
        )
    section.details[key] = {
        name: {
            "shape": problems[name].mean.shape,
            "seconds": run.seconds,
            "iterations": iterations[name],
            "status": run.results[0].status_,
        }
        for name, run in runs.items()
    }
