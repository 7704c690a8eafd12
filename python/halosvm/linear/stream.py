"""Streams: examples in calls of any length, one step for each; the walk so far is kept in between.

In:  examples, codes of classes or halves of a loss of residuals, and the walk before them.
Out: the walk after them, whose average is the model.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from halosvm import _core
from halosvm.checks.parameters import require_number
from halosvm.linear.linear_fit import lambda_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.linear.linear_fit import Settings
    from halosvm.linear.residuals import Halves

    Array = NDArray[np.float64]

STATUS = "one pass over a stream; its objective is not known, and so no bound"


def can_follow_streams(estimator: Any) -> bool:
    """Return True; raise AttributeError for parameters that need all examples at once."""
    loss, class_weight = estimator.loss, str(estimator.class_weight)
    if class_weight == "balanced":
        raise AttributeError(
            f"class_weight is {class_weight!r}, which needs all examples; for partial_fit give the "
            "weight of each class, as a dict"
        )
    if loss in _core.loss_names() and not _core.loss_traits(loss)["convex"]:
        raise AttributeError(
            f"loss is {loss!r}, which is not convex; partial_fit is for the other losses"
        )
    return True


@dataclass(frozen=True, eq=False)
class Stream:
    """A walk along a stream, which can be pickled in the middle and goes on with the same bits.

    Attributes
    ----------
    state : tuple of arrays and numbers
        Of the core.
    parameters : dict
        What must not change on the way.
    """

    state: _core.StreamState
    parameters: dict[str, Any]

    @classmethod
    def at(cls, coef: Array, intercept: Array, settings: Settings, n_total: float) -> Self:
        """Return a walk that begins at a model."""
        require_number(n_total, "n_total")
        names = ("C", "loss", "norm", "fit_intercept")
        parameters = {name: getattr(settings, name) for name in names} | {"n_total": n_total}
        b = intercept if settings.fit_intercept else np.zeros_like(intercept)
        return cls(_core.begin_stream(coef, b), parameters)

    def require_same(self, settings: Settings, n_total: float) -> None:
        """Raise ValueError for a parameter that has changed since the walk began."""
        for name, before in self.parameters.items():
            now = n_total if name == "n_total" else getattr(settings, name)
            if now != before:
                raise ValueError(
                    f"{name} is {now!r}, in the first call of partial_fit it was {before!r}; a "
                    "stream has one objective: begin anew with sklearn.base.clone, or with fit"
                )

    def follow(
        self,
        data: Gaussians,
        weights: Array | None,
        *,
        codes: NDArray[np.int16] | None = None,
        halves: Halves | None = None,
        shares: tuple[float, float] = (1.0, 1.0),
    ) -> Self:
        """Return the walk after further examples, with codes of classes or with halves."""
        of = self.parameters
        values: dict[str, Any] = {}
        if halves is not None:
            values = {"high": halves.high, "low": -halves.low, "variances": halves.variances}
            values |= {"share_high": shares[0], "share_low": shares[1]}
        state = _core.follow_stream(
            data.core_view(),
            self.state,
            lam=lambda_of(of["C"], of["n_total"]),
            loss=of["loss"],
            fit_intercept=of["fit_intercept"],
            norm=float(of["norm"]),
            codes=codes,
            sample_weight=weights,
            **values,
        )
        if not all(np.isfinite(part).all() for part in state):
            raise ValueError("the coefficients overflow: standardise the features")
        return dataclasses.replace(self, state=state)

    @property
    def model(self) -> tuple[Array, Array]:
        """Coefficients and intercepts: those of the average, before the first step of the start."""
        return _core.stream_model(self.state)

    def describe(self, estimator: Any) -> None:
        """Set the attributes that tell of a fit, beside the model: that nothing is known."""
        k = np.size(estimator.intercept_)
        estimator.objective_ = np.nan if k == 1 else np.full(k, np.nan)
        estimator.suboptimality_ = np.inf if k == 1 else np.full(k, np.inf)
        estimator.n_iter_ = 1
        estimator.status_ = STATUS
