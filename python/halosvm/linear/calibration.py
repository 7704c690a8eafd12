"""Platt scaling: decision values to class probabilities, also for uncertain decision values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from halosvm import _core
from halosvm.checks import reading

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class PlattScaling(BaseEstimator):  # type: ignore[misc]
    r"""Probabilities :math:`p = 1 / (1 + \exp(A f + B))` from decision values f.

    For classifiers of certain points, scikit-learn's CalibratedClassifierCV does the same with
    cross-validation; this one also takes the spread of a decision value into account.

    Attributes
    ----------
    slope_, offset_ : float
        A and B.

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
    ) -> Self:
        """Fit A and B by maximum likelihood with targets drawn in from 0 and 1.

        Parameters
        ----------
        decision : array-like of shape (n_samples,)
            Decision values, best from cross-validation.
        positive : array-like of bool, shape (n_samples,)
            Whether the example is of the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        self
        """
        decision = reading.as_float_array(decision, "decision")
        values = check_array(decision, ensure_2d=False, dtype=np.float64, input_name="decision")
        reading.refuse_lost(positive, "positive")
        flags = np.asarray(positive)
        if flags.dtype != np.bool_:
            raise TypeError(
                f"positive must be boolean, got {flags.dtype}: pass y == positive_class"
            )
        weights = None
        if sample_weight is not None:
            weights = reading.as_float_array(sample_weight, "sample_weight").astype(np.float64)
        given = {"decision": values, "positive": flags, "sample_weight": weights}
        for name, array in given.items():
            if array is not None and array.ndim != 1:
                raise ValueError(f"{name} has shape {array.shape}, expected (n_samples,)")
        check_consistent_length(*given.values())
        self.slope_, self.offset_ = _core.fit_platt(values, flags, weights)
        return self

    def probability(self, decision: ArrayLike, std: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Return P(positive), for uncertain decision values its expectation.

        Parameters
        ----------
        decision : array-like
            Decision values, or their means.
        std : array-like, default=0.0
            Their standard deviations (`decision_std`), of a shape that broadcasts.

        Returns
        -------
        ndarray
            Probabilities; with `std` within 0.018 of the exact expectation.
        """
        check_is_fitted(self)
        values: NDArray[np.float64] = _core.platt_probability(
            reading.as_float_array(decision, "decision").astype(np.float64, copy=False),
            reading.as_float_array(std, "std").astype(np.float64, copy=False),
            self.slope_,
            self.offset_,
        )
        return values
