"""Checks of parameters that estimators and functions have in common; errors name the parameter."""

from __future__ import annotations

import numbers
from typing import Any

import joblib
import numpy as np
from sklearn.utils._openmp_helpers import (
    _openmp_effective_n_threads,
    _openmp_parallelism_enabled,
)

_MOST_THREADS = np.iinfo(np.int32).max


def require_number(
    value: Any, name: str, *, or_zero: bool = False, or_infinity: bool = False
) -> None:
    """Raise unless the parameter is a positive and finite number, or what else is allowed."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    allowed = (or_zero and value == 0) or (or_infinity and value == np.inf)
    if not (0.0 < float(value) < np.inf or allowed):
        rule = ">= 0" if or_zero else "positive"
        rule += "" if or_infinity else " and finite"
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def require_count(value: Any, name: str) -> None:
    """Raise unless the parameter is an integer of at least 1."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value!r}")


def require_choice(value: Any, name: str, allowed: tuple[Any, ...]) -> None:
    """Raise unless the parameter is one of the values that are allowed."""
    if not isinstance(value, str | numbers.Real) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}")


def thread_count(n_threads: Any) -> int:
    """Return `n_threads`; for None as many as scikit-learn takes where OpenMP lets it choose.

    That is every processor this process may use, unless OMP_NUM_THREADS, `threadpool_limits`, or
    joblib for its workers, sets a limit.
    """
    if n_threads is None:
        if _openmp_parallelism_enabled():
            return int(_openmp_effective_n_threads(None, False))
        return int(joblib.cpu_count())
    require_count(n_threads, "n_threads")
    if n_threads > _MOST_THREADS:
        raise ValueError(f"n_threads must be at most {_MOST_THREADS}, got {n_threads!r}")
    return int(n_threads)
