"""Platt scaling: decision values to class probabilities, also for uncertain decision values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from halosvm import _core
from halosvm.checks import reading
from halosvm.checks.errors_seen import had_errors
from halosvm.checks.estimator import first_index, require_one_order
from halosvm.checks.frames import Labels, labels_of, paired
from halosvm.checks.targets import exact_labels
from halosvm.core.user_warning import ErrorsLeftOutWarning, warn_user

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    _Array = NDArray[np.float64]

_STEEPEST = 1e3  # slopes where decision values have the standard deviation 1


class PlattScaling(BaseEstimator):  # type: ignore[misc]
    r"""Probabilities :math:`p = 1 / (1 + \exp(A f + B))` from decision values f.

    `UncertainCalibratedClassifier` fits them to cross-validated decision values. They take the
    spread of a decision value into account.

    Attributes
    ----------
    slope_, offset_ : float
        A and B.

    Warns
    -----
    ErrorsLeftOutWarning
        By `probability` without `std`, if `fit` had some.

    References
    ----------
    H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector
    machines", Machine Learning 68 (2007).

    Examples
    --------
    >>> from halosvm import PlattScaling
    >>> scaling = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [False, False, True, True])
    >>> bool(scaling.probability([3.0])[0] > 0.5)
    True
    """

    def fit(
        self,
        decision: ArrayLike,
        positive: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        std: ArrayLike | None = None,
    ) -> Self:
        """Fit A and B by maximum likelihood with targets drawn in from 0 and 1.

        With `std` the likelihood is that of the expected probabilities, so that the curve is one of
        decision values without their errors.

        Parameters
        ----------
        decision : array-like of shape (n_samples,)
            Decision values, best from cross-validation.
        positive : array-like of bool, shape (n_samples,)
            Whether the example is of the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0.
        std : array-like of shape (n_samples,), optional
            Standard deviations of the decision values (`decision_std`), which are brought into the
            order of their index; None if they are certain.

        Returns
        -------
        self
        """
        columns = {"decision": decision, "positive": positive, "sample_weight": sample_weight}
        require_one_order({}, columns)
        other, index = first_index(columns)
        decision = reading.as_float_array(decision, "decision")
        values = check_array(decision, ensure_2d=False, dtype=np.float64, input_name="decision")
        reading.refuse_lost(positive, "positive")
        flags = np.asarray(exact_labels(positive, "positive"))
        if flags.dtype != np.bool_:
            raise TypeError(
                f"positive must be boolean, got {flags.dtype}: pass y == positive_class"
            )
        weights = None
        if sample_weight is not None:
            weights = reading.as_float_array(sample_weight, "sample_weight").astype(np.float64)
        spreads = None
        if std is not None:
            spreads = reading.as_float_array(std, "std").astype(np.float64)
        given = {"decision": values, "positive": flags, "sample_weight": weights, "std": spreads}
        for name, array in given.items():
            if array is not None and array.ndim != 1:
                raise ValueError(f"{name} has shape {array.shape}, expected (n_samples,)")
        check_consistent_length(*given.values())
        if spreads is not None:
            spreads = paired(spreads, std, "std", Labels(index=index), other)
        self.slope_, self.offset_ = _core.fit_platt(values, flags, weights)
        self.__dict__.pop("_had_errors", None)
        if spreads is not None and spreads.any():
            if not (np.isfinite(spreads) & (spreads >= 0.0)).all():
                row = int(np.flatnonzero(~(np.isfinite(spreads) & (spreads >= 0.0)))[0])
                raise ValueError(f"std: row {row} is {spreads[row]:g}; it must be >= 0 and finite")
            c = np.ones(len(values)) if weights is None else weights
            self._fit_to_uncertain(values, flags, c, spreads)
            self._had_errors = True
        return self

    def _fit_to_uncertain(
        self, f: _Array, positive: NDArray[np.bool_], c: _Array, std: _Array
    ) -> None:
        """Go on to the parameters under which expected probabilities make the classes most likely.

        Where errors explain all confusion the best curve is a step: slopes end at a large one.
        """
        centre = float(np.average(f, weights=c))
        width = float(np.sqrt(np.average((f - centre) ** 2, weights=c))) or 1.0
        x, v = (f - centre) / width, std / width
        n_pos, n_neg = c[positive].sum(), c[~positive].sum()
        target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))

        def loss(at: _Array) -> tuple[float, _Array]:
            a, b = at
            m, s = a * x + b, np.abs(a) * v
            p = _core.evaluate_loss("expected_logistic", m, s)[1]
            q = _core.evaluate_loss("expected_logistic", -m, s)[1]
            in_m, in_s, _ = _core.loss_curvature("expected_logistic", m, s)
            tiny = np.finfo(np.float64).tiny
            p, q = np.maximum(p, tiny), np.maximum(q, tiny)
            value = -(c @ (target * np.log(p) + (1.0 - target) * np.log(q)))
            slope = -c * (target / p - (1.0 - target) / q)
            in_a = slope @ (in_m * x + in_s * v * np.sign(a))
            return float(value / c.sum()), np.array([in_a, slope @ in_m]) / c.sum()

        start = np.array([-self.slope_ * width, -(self.offset_ + self.slope_ * centre)])
        box = [(-_STEEPEST, _STEEPEST), (None, None)]
        found = minimize(loss, np.clip(start, -_STEEPEST, _STEEPEST), jac=True, bounds=box)
        a, b = found.x
        self.slope_, self.offset_ = -float(a) / width, -float(b - a * centre / width)

    def probability(self, decision: ArrayLike, std: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return P(positive), for uncertain decision values its expectation.

        Parameters
        ----------
        decision : array-like
            Decision values, or their means.
        std : array-like, optional
            Their standard deviations (`decision_std`), of a shape that broadcasts; 0 and None are
            certain.

        Returns
        -------
        ndarray
            Probabilities; with `std` within 1e-4 of the exact expectation.
        """
        check_is_fitted(self)
        if std is None and had_errors(self):
            warn_user(
                "PlattScaling was fitted to decision values with standard deviations, and these "
                "have none, so that they are taken as exact; pass std=decision_std(X), or std=0",
                ErrorsLeftOutWarning,
            )
        std = 0.0 if std is None else std
        spreads = reading.as_float_array(std, "std").astype(np.float64, copy=False)
        spreads = paired(spreads, std, "std", labels_of(decision, "decision"), "decision")
        values: NDArray[np.float64] = _core.platt_probability(
            reading.as_float_array(decision, "decision").astype(np.float64, copy=False),
            spreads,
            self.slope_,
            self.offset_,
        )
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags
