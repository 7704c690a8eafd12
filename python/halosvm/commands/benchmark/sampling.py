"""To sample or not to sample: a plain SVM on N draws from each Gaussian, against the exact fit.

SVM-GSU, section 3.3 and figures 3 and 4: with many draws the plain SVM has the same solution as the
expected hinge loss. The angle between the two, and the time, against N, in 2 and 3 dimensions.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.linear.svc import UncertainSVC

from . import rivals
from . import settings as table
from .data import Examples, make_toy
from .report import Section
from .timing import announce, available_threads, interleave

if TYPE_CHECKING:
    from collections.abc import Callable

    from halosvm.gaussians.gaussians import Gaussians

    from .data import Array
    from .settings import Settings

LAM = 1e-2
TOL = 1e-6
NOTES = """
* The exact fit from the Gaussians against drawing from them and fitting. angle: between the two
  directions, root mean square over the draws.
* LinearSVC: at default settings. SVC: LIBSVM with a linear kernel, until draws are too many for it.
  halosvm, hinge: on the draws, to tell the error of the draws from that of an early end.
"""


def measure(settings: Settings) -> Section:
    """Draw, fit and compare, in 2 and 3 dimensions, with new draws at each repeat."""
    title = f"A plain SVM on N draws from each of {settings.gaussians} Gaussians, lam {LAM:g}"
    section = Section("sampling", title, "s", "times faster", NOTES)
    for d in (2, 3):
        _draw_and_fit(section, settings, d)
    return section


def _draw_and_fit(section: Section, settings: Settings, d: int) -> None:
    announce(f"sampling: {d} dimensions")
    X, y = make_toy(d, settings.gaussians, seed=settings.seed)
    clf = UncertainSVC(1.0 / (LAM * len(y)), tol=TOL, n_threads=available_threads())
    exact = clf.fit(X, y).coef_[0].copy()
    contestants: dict[str, Callable[[], Any]] = {"exact": lambda: clf.fit(X, y)}
    cases = [
        (n_draws, rival)
        for n_draws, rival in itertools.product(settings.draws, RIVALS)
        if rival != "SVC" or n_draws * len(y) <= settings.libsvm_points
    ]
    for n_draws, rival in cases:
        contestants[f"{rival}, {n_draws}"] = fit_on_draws(X, y, n_draws, RIVALS[rival])
    interleave({"exact": contestants["exact"]}, 1)  # warms up
    runs = interleave(contestants, settings.draw_repeats)
    details: dict[str, Any] = {"exact": {"seconds": runs["exact"].seconds}}
    for n_draws, rival in cases:
        run = runs[f"{rival}, {n_draws}"]
        angles = [angle(w, exact) for w in run.results]
        typical = float(np.sqrt(np.mean(np.square(angles))))
        details[f"{rival}, {n_draws}"] = {
            "draws": n_draws,
            "rival": rival,
            "seconds": run.seconds,
            "angles": angles,
            "angle": typical,
        }
        section.add(
            f"{d}-d, N = {n_draws:,}",
            runs["exact"].seconds,
            rival,
            run.seconds,
            note=f"angle {typical:.2g} degrees",
        )
    section.details[f"{d}-d"] = details


def fit_on_draws(
    X: Gaussians, y: Array, n_draws: int, fit: Callable[[Examples], Array]
) -> Callable[[], Array]:
    """Return a function that draws examples, new ones at each call, and fits a plain SVM on them.

    Parameters
    ----------
    X, y : Gaussians with full covariances, labels -1 and +1 (n,)
    n_draws : int
        Draws from each Gaussian.
    fit : callable
        From certain examples to w (d,).
    """
    roots = np.linalg.cholesky(np.asarray(X.covariances.values))
    codes = np.repeat((y > 0).astype(np.int16), n_draws)
    seeds = itertools.count()

    def solve() -> Array:
        rng = np.random.default_rng((next(seeds), n_draws))
        normal = rng.normal(size=(len(X), n_draws, X.shape[1]))
        draws = X.mean[:, None, :] + normal @ roots.transpose(0, 2, 1)
        return fit(Examples(draws.reshape(len(codes), -1), None, codes))

    return solve


RIVALS: dict[str, Callable[[Examples], Array]] = {
    "LinearSVC": lambda data: rivals.linear_svc(data, LAM, table.LINEAR_SVC["default"])(),
    "SVC": lambda data: rivals.libsvm(data, LAM)(),
    "halosvm, hinge": lambda data: np.asarray(rivals.halosvm_fit(data, LAM, TOL)().coef_[0]),
}


def angle(one: Array, other: Array) -> float:
    """Return the angle between two directions, in degrees."""
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
