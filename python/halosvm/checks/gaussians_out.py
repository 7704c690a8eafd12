"""What maps share as transformers of scikit-learn: errors as keywords, Gaussians that stay so.

In:  examples as Gaussians, or as arrays with X_std or X_cov, which are asked for as metadata.
Out: what `transform` returns; only arrays of it become the frames that `set_output` asks for.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container

from halosvm.checks.errors_seen import with_counted_errors, without_counted_errors
from halosvm.checks.reading import require_in_range
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances


class _FitThenTransform:
    """A base of its own, because scikit-learn would wrap a method of the mixin itself."""

    fit: Any
    transform: Any

    def fit_transform(
        self,
        X: Gaussians | ArrayLike,
        y: Any = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        **fit_params: Any,
    ) -> Any:
        """Fit to examples, and return what `transform` makes of them.

        Parameters
        ----------
        X, y, X_std, X_cov
            As in `fit`.
        **fit_params
            Other arguments of `fit`, as `sample_weight`; limits are for `transform`, too.

        Returns
        -------
        As `transform`.
        """
        self.fit(X, y, X_std=X_std, X_cov=X_cov, **fit_params)
        limits = {name: fit_params[name] for name in ("X_lower", "X_upper") if name in fit_params}
        return self.transform(X, X_std=X_std, X_cov=X_cov, **limits)


class GaussiansOut(_FitThenTransform, TransformerMixin):  # type: ignore[misc]
    """Mixin of maps, whose `fit` and `transform` take X, X_std and X_cov."""

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = {"X_std": True, "X_cov": True}
    __metadata_request__transform: ClassVar = {"X_std": True, "X_cov": True}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("transform", "fit_transform"):
            if name in cls.__dict__:  # wrapped by scikit-learn, which would make frames of all
                setattr(cls, name, _without_frames_of_gaussians(getattr(cls, name).__wrapped__))


def _without_frames_of_gaussians(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Let `set_output` make frames of arrays alone: in a frame the covariances would be lost."""

    @wraps(transform)
    def method(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("X_std"), kwargs.get("X_cov")
        if any(errors is not None for errors in given):
            kwargs["X_std"], kwargs["X_cov"] = without_counted_errors(X, *given)
        result = transform(self, X, *args, **kwargs)
        if isinstance(result, Gaussians | GaussianMixtures):
            return result
        framed = _wrap_data_with_container("transform", result, X, self)
        return with_counted_errors(framed, X, *given)

    return method


def has_errors(X: Any, X_std: Any, X_cov: Any) -> bool:
    """Tell whether examples come with errors; what has none may leave a map as an array."""
    return isinstance(X, Gaussians | GaussianMixtures) or X_std is not None or X_cov is not None


def refuse_mixtures(X: Any) -> None:
    """Raise TypeError for mixtures, of which these maps would need the image of each component."""
    if isinstance(X, GaussianMixtures):
        raise TypeError("X is GaussianMixtures; this map takes Gaussians")


def require_representable(X: Gaussians, argument: str) -> Gaussians:
    """Return Gaussians after a check that their numbers are in the range that the core takes."""
    require_in_range(X.mean, argument)
    X.covariances.require_in_range(f"the errors of {argument}")
    return X


def in_type_of(values: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Return computed values in the type of the given ones, as rows of C."""
    with np.errstate(over="ignore"):  # which a check of the range names
        return np.ascontiguousarray(values, given.dtype)
