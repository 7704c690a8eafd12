"""ClassPopulations: a population of true values for each class, and Bayes' rule over them.

Measurements with labels enter; log odds and probabilities of classes leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianClassifier, GaussianEstimator, read_example_weights

from .empirical_bayes import EmpiricalBayes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class ClassPopulations(GaussianClassifier, GaussianEstimator):
    """Bayes' rule with a population for each class."""

    __metadata_request__predict_proba = {"X_std": True, "X_cov": True}  # noqa: RUF012
    _takes_missing = True

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        tied: bool | str = "auto",
        covariance: str = "full",
        n_factors: int | None = None,
        priors: Any = None,
        max_components: int = 3,
        cv: Any = 5,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.tied = tied
        self.covariance = covariance
        self.n_factors = n_factors
        self.priors = priors
        self.max_components = max_components
        self.cv = cv
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        sample_weight: Any = None,
        groups: Any = None,  # noqa: ARG002
    ) -> Self:
        """Estimate the population of each class."""
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        weights = read_example_weights(data, sample_weight, len(data))
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.n_components_, self.tied_ = 1, False
        self.priors_ = np.bincount(codes, weights) / weights.sum()
        self.populations_ = [
            EmpiricalBayes(random_state=self.random_state).fit(
                data[codes == k], sample_weight=weights[codes == k]
            )
            for k in range(len(self.classes_))
        ]
        return self

    def _log_joint(self, X: Any, X_std: Any, X_cov: Any) -> Array:
        check_is_fitted(self)
        data = self._read_with_errors(X, X_std, X_cov)
        densities = [each.score_samples(data) for each in self.populations_]
        joint: Array = np.column_stack(densities) + np.log(self.priors_)
        return joint

    def log_odds(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return log odds against the first class, (n, n_classes - 1)."""
        joint = self._log_joint(X, X_std, X_cov)
        odds: Array = joint[:, 1:] - joint[:, :1]
        return odds

    def decision_function(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return log odds of two classes, log joint densities of more."""
        joint = self._log_joint(X, X_std, X_cov)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict_proba(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Array:
        """Return the probability of each class."""
        proba: Array = softmax(self._log_joint(X, X_std, X_cov), axis=1)
        return proba
