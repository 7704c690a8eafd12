"""Extreme deconvolution: time of a pass of EmpiricalBayes against NumPy and astroML.

The rivals take one step of expectation maximisation from the same population; EmpiricalBayes takes
some passes, and its time is that of one of them, with all that a fit does beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm import reference
from halosvm.population import EmpiricalBayes

from . import settings as table
from .report import Section
from .timing import announce, interleave, optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .settings import Settings

    Array = NDArray[np.float64]

NOTES = """
* seconds a pass: of EmpiricalBayes, a fit from arrays over its number of passes, checks and
  accelerated steps included; NumPy is halosvm.reference.deconvolution_step; astroML's is a step of
  XDGMM without the likelihood that its fit computes beside.
"""


def measure(settings: Settings) -> Section:
    """Time passes over measurements with full covariances, several components."""
    section = Section("deconvolution", "Extreme deconvolution", "s a pass", "times faster", NOTES)
    n, d = settings.deconvolution_shape
    X, S, start = make_measurements(n, d, settings.components, settings.seed)
    case = f"{n:,} x {d}, {settings.components} components"
    announce(f"deconvolution: {case}")

    def ours() -> EmpiricalBayes:
        maker = EmpiricalBayes(
            settings.components, init=start, tol=0.0, reg_covar=0.0, max_iter=settings.passes
        )
        return maker.fit(X, X_cov=S)

    contestants: dict[str, Any] = {
        "halosvm": ours,
        "NumPy": lambda: reference.deconvolution_step(X, S, *start)[0],
    }
    astro = optional("astroML.density_estimation")
    if astro is not None:
        contestants["astroML"] = lambda: _astro_step(astro, X, S, start)
    runs = interleave(contestants, settings.repeats, settings.slow)
    fits = runs["halosvm"]
    mine = [s / fit.n_iter_ for s, fit in zip(fits.seconds, fits.results, strict=True)]
    for name in contestants:
        if name != "halosvm":
            target = f">= {table.DECONVOLUTION_RATIO:g}"
            section.add(case, mine, name, runs[name].seconds, target=target)
    means = runs["NumPy"].results[0][1]
    section.details[case] = {
        "seconds": {name: run.seconds for name, run in runs.items()},
        "passes": [fit.n_iter_ for fit in fits.results],
        "largest difference of a step": {
            name: float(np.abs(runs[name].results[0][1] - means).max())
            for name in contestants
            if name != "halosvm"
        },
    }
    return section


def make_measurements(
    n: int, d: int, n_components: int, seed: int
) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Return measurements, their (n, d, d) covariances, and a population to start from."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.normal(size=(n_components, d))
    truth = centres[rng.integers(n_components, size=n)] + rng.normal(size=(n, d))
    factors = rng.normal(size=(n, d, d)) / np.sqrt(d)
    S = factors @ factors.transpose(0, 2, 1) + 0.01 * np.eye(d)
    noise = np.linalg.cholesky(S) @ rng.normal(size=(n, d, 1))
    weights = np.full(n_components, 1.0 / n_components)
    start = weights, centres + 0.3, np.tile(2.0 * np.eye(d), (n_components, 1, 1))
    return truth + noise[:, :, 0], S, start


def _astro_step(astro: Any, X: Array, S: Array, start: tuple[Array, Array, Array]) -> Any:
    rival = astro.XDGMM(len(start[0]))
    rival.alpha, rival.mu, rival.V = (part.copy() for part in start)
    rival._EMstep(X, S)  # noqa: SLF001 (its fit would choose the start, and weigh likelihoods)
    return rival.alpha, rival.mu, rival.V
