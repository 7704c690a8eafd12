"""What classifiers have in common whose answers are probabilities.

In:  examples as their `predict_proba` takes them.
Out: labels, and logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halosvm.checks.estimator import ERRORS, GaussianClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ProbabilityClassifier(GaussianClassifier):
    """Mixin of classifiers whose labels are those of the largest probabilities."""

    __metadata_request__predict_proba: ClassVar = ERRORS
    __metadata_request__predict_log_proba: ClassVar = ERRORS

    predict_proba: Any

    def predict_log_proba(
        self, X: Any, *, X_std: Any = None, X_cov: Any = None
    ) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            logs: NDArray[np.float64] = np.log(self.predict_proba(X, X_std=X_std, X_cov=X_cov))
        return logs

    def predict(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> NDArray[Any]:
        """Return the most probable class of each example.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.predict_proba(X, X_std=X_std, X_cov=X_cov).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels
