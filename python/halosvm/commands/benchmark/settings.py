"""Every size, tolerance and option of the benchmark suite, ours and the rivals', in one place.

The rivals' options are the fastest that were found for the data of this suite; where two settings
trade time for accuracy, both are run and both are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# -- halosvm -------------------------------------------------------------------------------------
GAPS = (1e-2, 1e-4, 1e-6)  # (J - J*)/J* that the time is taken to
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)  # for the loosest that matches a rival
OPTIMUM_TOLERANCE = 1e-10  # of the fit that finds J*; with kinks it gets as far as it can

# -- rivals on the same objective ----------------------------------------------------------------
LBFGSB: dict[str, Any] = {"maxcor": 30, "ftol": 0.0, "gtol": 0.0, "maxiter": 1000, "maxfun": 1000}
CVXPY: dict[str, Any] = {"solver": "CLARABEL"}
CVXPY_TANGENTS = 200  # planes below the expected hinge loss, in z = m/s from -4 to 4

# -- rivals with the hinge loss (LIBLINEAR and LinearSVC also regularise the intercept) ----------
LINEAR_SVC: dict[str, dict[str, Any]] = {
    "tol 0.1": {"tol": 1e-1, "max_iter": 1000},
    "default": {"tol": 1e-4, "max_iter": 1000},
    "patient": {"tol": 1e-6, "max_iter": 3000},
}
LIBLINEAR = {"default": "-s 3 -B 1 -e 0.1", "tight": "-s 3 -B 1 -e 0.001"}  # at most 300 rounds
SGD: dict[str, dict[str, Any]] = {"default": {}, "averaged": {"average": True, "tol": 1e-4}}

# -- a rival with another objective --------------------------------------------------------------
CYANURE: dict[str, Any] = {"loss": "sqhinge", "penalty": "l2", "solver": "auto", "tol": 1e-3}

# -- targets of the full size --------------------------------------------------------------------
LBFGSB_RATIO = 10.0  # at least, at a true gap of 1e-6
LINEAR_SVC_RATIO = 20.0  # at least, uncertain data against the fit on the means
CERTAIN_RATIO = 10.0  # at least, against the best of LinearSVC and of LIBLINEAR
BANDWIDTH_SHARE = {16: 0.5, 64: 0.8, 100: 0.8, 784: 0.8}  # at least, float64
ROWS_RATIO = 12.0  # at most, for ten times the rows
CLASSES_RATIO = 5.0  # at most, for ten classes
DECONVOLUTION_RATIO = 30.0  # at least, for a pass


@dataclass(frozen=True)
class Settings:
    """Sizes of the data and numbers of repeats; the defaults are the full suite."""

    mode: str = "full"
    repeats: int = 5  # timings of each contestant, taken in turn
    slow: float = 60.0  # seconds; a contestant that takes longer is timed only once
    seed: int = 0  # of the data

    # Fits to a given gap: rows and features, how features depend on each other (see `data`), lam.
    shape: tuple[int, int] = (200_000, 100)
    features: tuple[str, ...] = ("correlated", "independent")
    lams: tuple[float, ...] = (1e-4, 1e-6)
    narrow_shape: tuple[int, int] = (200_000, 5)  # where coordinate descent is strong
    tiny_shape: tuple[int, int] = (200, 10)  # which cvxpy can do

    # Passes over data of so many bytes, far beyond the caches; steps of the stochastic reference.
    pass_bytes: int = 1_000_000_000
    pass_features: tuple[int, ...] = (16, 64, 100, 784)
    steps: int = 2000

    # Scaling with rows, with features, and with classes.
    growth_rows: tuple[int, int] = (100_000, 1_000_000)
    growth_features: int = 50
    width_rows: int = 50_000
    width_features: tuple[int, ...] = (25, 100, 400)
    classes: int = 10
    classes_shape: tuple[int, int] = (60_000, 784)

    memory_shape: tuple[int, int] = (1_000_000, 100)

    # Draws from each of some Gaussians, for a plain SVM, and how often.
    gaussians: int = 50
    draws: tuple[int, ...] = (1, 10, 100, 1000, 10_000)
    draw_repeats: int = 15
    libsvm_points: int = 10_000  # draws in all, at most, where LIBSVM takes part

    # Gram matrices and fits of kernel machines, and rows of the NumPy rival.
    gram_shape: tuple[int, int] = (3000, 50)
    factor_shape: tuple[int, int] = (2000, 784)
    gram_rows: int = 100

    # Extreme deconvolution: measurements with full covariances, components, passes of ours.
    deconvolution_shape: tuple[int, int] = (100_000, 5)
    components: int = 3
    passes: int = 10

    @classmethod
    def quick(cls) -> Settings:
        """Return sizes that take less than two minutes."""
        return cls(
            mode="quick",
            repeats=3,
            slow=1.0,
            shape=(20_000, 50),
            lams=(1e-4,),
            narrow_shape=(20_000, 5),
            pass_bytes=256_000_000,
            steps=500,
            growth_rows=(10_000, 100_000),
            width_rows=5_000,
            classes_shape=(6_000, 100),
            memory_shape=(100_000, 100),
            draws=(1, 10, 100, 1000),
            draw_repeats=9,
            libsvm_points=1_000,
            gram_shape=(1000, 50),
            factor_shape=(300, 784),
            gram_rows=20,
            deconvolution_shape=(5_000, 5),
        )
