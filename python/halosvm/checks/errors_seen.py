"""Which errors were seen before: by the fit of an estimator, or by a map before this step.

In:  examples as an estimator is given them; arrays that a map made of measurements with errors.
Out: a warning where the errors that a fit had are left out, and the errors that are left to count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from halosvm.core.user_warning import ErrorsLeftOutWarning, warn_user

if TYPE_CHECKING:
    from numpy.typing import NDArray


def had_errors(estimator: Any) -> bool:
    """Tell whether examples had errors in the fit of an estimator, or of a step of a pipeline."""
    if isinstance(estimator, FrozenEstimator):
        return had_errors(estimator.estimator)
    if isinstance(estimator, Pipeline):
        return any(had_errors(step) for _, step in estimator.steps)
    return bool(getattr(estimator, "_had_errors", False))


def warn_of_errors_left_out(estimator: Any) -> None:
    """Warn that examples are taken as exact, unlike those of the fit."""
    warn_user(
        f"{type(estimator).__name__} was fitted to examples with errors, and X has none here, so "
        "that it is taken as exact; give Gaussians(X, std=errors) as X, whose errors go with it "
        "through pipelines, searches and cross-validation, or X_std or X_cov. X_std=0, or "
        "Gaussians(X), says that X is exact",
        ErrorsLeftOutWarning,
    )


def warn_of_posteriors(estimator: Any, X: Any) -> None:
    """Warn if the examples of a regression are posteriors with their spread.

    E[y | measurement] is linear in the posterior mean where y is linear in the true value; the
    spread, as a further error of the features, shrinks the slopes.
    """
    parts = getattr(X, "components", X)
    if parts.posterior and not parts.covariances.certain:
        warn_user(
            f"{type(estimator).__name__} is fitted to posteriors with their spread, which knows "
            "nothing of y and shrinks the slopes; take posterior means, "
            "EmpiricalBayes(output='mean'), or error_scale=0",
            UserWarning,
        )


class CountedErrors(np.ndarray):
    """What a map made of measurements and their errors, which remembers the errors it counted.

    Where metadata are routed, each step of a pipeline is given the errors of the measurements; to
    the steps after such a map they say nothing new. Rows of this array remember them as well, as
    searches take them; `np.asarray`, and with it most of scikit-learn, makes a plain array of it.
    """

    counted: tuple[Any, ...]

    @classmethod
    def of(cls, values: NDArray[Any], counted: tuple[Any, ...]) -> Self:
        """Return a view of an array."""
        marked = values.view(cls)
        marked.counted = counted
        return marked

    def __array_finalize__(self, other: Any) -> None:
        self.counted = getattr(other, "counted", ())

    def __reduce__(self) -> tuple[Any, ...]:
        return CountedErrors.of, (np.asarray(self), self.counted)

    def __repr__(self) -> str:
        return repr(np.asarray(self))


def with_counted_errors(result: Any, X: Any, *errors: Any) -> Any:
    """Return what a map made of X and errors; arrays remember them where metadata are routed."""
    if not isinstance(result, np.ndarray) or not get_config()["enable_metadata_routing"]:
        return result
    counted = X.counted if isinstance(X, CountedErrors) else ()
    counted = (*counted, *(given for given in errors if given is not None))
    return CountedErrors.of(result, counted) if counted else result


def without_counted_errors(X: Any, X_std: Any, X_cov: Any) -> tuple[Any, Any]:
    """Return the errors of X, but for those routed here that a map before has counted."""
    if not get_config()["enable_metadata_routing"]:
        return X_std, X_cov
    if getattr(X, "origin", None) is not None:  # of Gaussians, which have their own
        return None, None
    if not isinstance(X, CountedErrors):
        return X_std, X_cov
    left = [
        None if given is None or any(_among(given, counted) for counted in X.counted) else given
        for given in (X_std, X_cov)
    ]
    return left[0], left[1]


def _among(errors: Any, counted: Any) -> bool:
    """Tell whether errors are those counted, or some rows of them, by the first."""
    if errors is counted:
        return True
    part, whole = (np.asarray(getattr(each, "values", each)) for each in (errors, counted))
    if part.shape[1:] != whole.shape[1:] or not part.size or part.ndim == 0:
        return False
    same = (whole == part[0]) | ((whole != whole) & (part[0] != part[0]))
    return bool(same.reshape(len(whole), -1).all(axis=1).any())
