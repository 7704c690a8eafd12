"""Warnings that point at the user's line, however many calls of the package lie between."""

from __future__ import annotations

import inspect
import os
import warnings
from pathlib import Path

import joblib
import sklearn
from sklearn.exceptions import ConvergenceWarning

# A pipeline or a search calls fit on behalf of the user, too.
_PASSED_OVER = tuple(
    str(folder) + os.sep
    for folder in (
        Path(__file__).parents[1],
        Path(sklearn.__file__).parent,
        Path(joblib.__file__).parent,
    )
)


class ErrorsLeftOutWarning(UserWarning):
    """Examples without errors are taken as exact, by what was fitted to examples with errors."""


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the innermost call from outside this package and scikit-learn."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PASSED_OVER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
