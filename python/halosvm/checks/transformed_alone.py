"""Whether a pipeline changed X and not its errors: the last step is given both, and can tell.

In:  the last step of a pipeline, and the X that reached it beside errors.
Out: a warning, if the X that the pipeline was given is another.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from halosvm.checks.errors_seen import had_errors
from halosvm.core.user_warning import warn_user


def warn_if_transformed_alone(estimator: Any, X: Any, errors: list[Any]) -> None:
    """Warn if the errors beside X belong to another X, which earlier steps were given."""
    pipeline, before, original = _pipeline_of(estimator)
    if pipeline is None:
        return
    counted = [repr(step) for step in before if had_errors(step)]
    if counted:
        warn_user(
            f"errors are given beside an X in which {', '.join(counted)} counted errors before, so "
            f"that they may count twice; {type(estimator).__name__}()"
            ".set_fit_request(X_std=False, X_cov=False) does not ask for them",
            UserWarning,
        )
        return
    if pipeline.steps[-1][1] is not estimator:
        return
    if all(hasattr(given, "columns") for given in errors):  # which have to agree
        return
    if original is X or np.array_equal(np.asarray(original), np.asarray(X)):
        return
    steps = [repr(step) for step in before if not isinstance(step, str)]
    warn_user(
        f"errors are given beside an X that was changed by {', '.join(steps)}, and were not "
        "changed with it; put UncertainStandardScaler or Propagate(transformer) in its place, "
        "which take errors along",
        UserWarning,
    )


def _pipeline_of(estimator: Any) -> tuple[Pipeline | None, list[Any], Any]:
    """Return the pipeline that is being fitted, the steps before the estimator, and its X.

    The estimator is one of its steps, or is fitted by the last one, as in a search.
    """
    frame = inspect.currentframe()
    transforming = None
    while frame is not None:
        name, own = frame.f_code.co_name, frame.f_locals.get("self")
        if isinstance(own, Pipeline) and name == "_fit":
            transforming = own
        elif isinstance(own, Pipeline) and name in ("fit", "fit_predict"):
            steps = [step for _, step in own.steps]
            place = len(steps) - 1
            if own is transforming:
                place = next((i for i, step in enumerate(steps) if step is estimator), 0)
            if place:
                return own, steps[:place], frame.f_locals.get("X")
        frame = frame.f_back
    return None, [], None
