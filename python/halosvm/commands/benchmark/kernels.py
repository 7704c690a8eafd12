"""Kernel machines: time of Gram matrices against NumPy and scikit-learn, and of fits against SVC.

The NumPy rival is `halosvm.reference.expected_kernel`, one vectorised row at a time; of large
matrices it computes some rows only, and its time is that of as many rows as the matrix has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from halosvm import reference
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.kernel.gram import expected_kernel
from halosvm.kernel.kernel_svc import UncertainKernelSVC

from .data import make_examples
from .report import Section
from .timing import announce, available_threads, interleave

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import Settings

NOTES = """
* NumPy: halosvm.reference.expected_kernel; where it computed some rows only, its time is that of
  these times the number of all rows over theirs.
* rbf_kernel has the threads of BLAS. Beside float32 results stands rbf_kernel of float32 data,
  which also computes in float32; ours reads float64 data, computes in float64, and rounds.
* fit: of UncertainKernelSVC, the Gram matrix and then SVC's solver on it; SVC's own computes the
  kernel values that it needs, with one thread. Uncertain examples are compared to it on the means,
  another problem.
"""


def measure(settings: Settings) -> Section:
    """Time Gram matrices of diagonal, low-rank and zero covariances, and fits."""
    section = Section("kernels", "Expected RBF kernel", "s", "times faster", NOTES)
    data = make_examples(settings.gram_shape, "independent", seed=settings.seed)
    (n, d), (rows, width) = settings.gram_shape, settings.factor_shape
    _against_numpy(section, settings, f"diagonal, {n:,} x {d}", data.gaussians())
    _against_numpy(section, settings, f"low rank 2, {rows:,} x {width}", _low_rank(settings))
    points, gamma = data.mean, 1.0 / d
    _race(
        section, settings, f"certain, {n:,} x {d}: Gram matrix", "rbf_kernel",
        lambda: expected_kernel(points, gamma=gamma),
        lambda: rbf_kernel(points, gamma=gamma),
    )  # fmt: skip
    single = points.astype(np.float32)
    _race(
        section, settings, f"certain, {n:,} x {d}: Gram matrix, float32", "rbf_kernel",
        lambda: expected_kernel(points, gamma=gamma, dtype=np.float32),
        lambda: rbf_kernel(single, gamma=gamma),
    )  # fmt: skip
    for case, X in (("certain", Gaussians(points)), ("diagonal", data.gaussians())):

        def ours(X: Gaussians = X) -> Any:
            model = UncertainKernelSVC(gamma=gamma, tol=SVC().tol).fit(X, data.codes)
            return model.decision_function(points[:9])

        def theirs() -> Any:
            return SVC(gamma=gamma).fit(points, data.codes).decision_function(points[:9])

        _race(section, settings, f"{case}, {n:,} x {d}: fit", "SVC", ours, theirs)
    return section


def _low_rank(settings: Settings) -> Gaussians:
    """Return Gaussians of many features with covariances of rank 2, as of shifted images."""
    n, d = settings.factor_shape
    rng = np.random.default_rng(settings.seed)
    factors = rng.normal(size=(n, d, 2)) / 4.0
    return Gaussians(rng.normal(size=(n, d)), cov=Covariances.low_rank(factors))


def _against_numpy(section: Section, settings: Settings, case: str, X: Gaussians) -> None:
    """Race the whole Gram matrix against rows of the NumPy reference."""
    announce(f"kernels: {case}")
    gamma, rows = 1.0 / X.shape[1], min(settings.gram_rows, len(X))
    contestants = {
        "halosvm": lambda: expected_kernel(X, gamma=gamma),
        "one thread": lambda: expected_kernel(X, gamma=gamma, n_threads=1),
        "NumPy": lambda: reference.expected_kernel(X[:rows], X, gamma=gamma),
    }
    runs = interleave(contestants, settings.repeats, settings.slow)
    share = len(X) / rows
    note = "" if rows == len(X) else f"NumPy: {rows} rows, times {share:g}"
    theirs = [share * seconds for seconds in runs["NumPy"].seconds]
    section.add(f"{case}: Gram matrix", runs["halosvm"].seconds, "NumPy", theirs, note=note)
    section.add(
        f"{case}: Gram matrix, {available_threads()} threads",
        runs["halosvm"].seconds, "halosvm, 1 thread", runs["one thread"].seconds,
    )  # fmt: skip
    found, expected = runs["halosvm"].results[0][:rows], runs["NumPy"].results[0]
    section.details[case] = {
        "seconds": {name: run.seconds for name, run in runs.items()},
        "rows of NumPy": rows,
        "largest difference": np.abs(found - expected).max(),
    }


def _race(
    section: Section,
    settings: Settings,
    case: str,
    rival: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
) -> None:
    announce(f"kernels: {case}")
    runs = interleave({"halosvm": ours, rival: theirs}, settings.repeats, settings.slow)
    section.add(case, runs["halosvm"].seconds, rival, runs[rival].seconds)
    section.details[case] = {
        "seconds": {name: run.seconds for name, run in runs.items()},
        "largest difference": np.abs(runs["halosvm"].results[0] - runs[rival].results[0]).max(),
    }
