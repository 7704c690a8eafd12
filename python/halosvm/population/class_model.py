"""What populations of true values, one a class, tell of measurements: probabilities, draws.

In:  measurements, read and checked; the populations of a fit.
Out: probabilities of classes, log odds, expected true values; draws of true values.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import ERRORS, GaussianClassifier, GaussianEstimator
from halosvm.checks.parameters import require_count, thread_count

from .class_fitting import log_densities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    from .empirical_bayes import EmpiricalBayes

    Array = NDArray[np.float64]

# What brings the square of the largest double, over a spread, back into the range of double.
_NEARER = 1e-50


class ClassModel(GaussianClassifier, GaussianEstimator):
    """A population of true values for each class, as fitted; base class of its estimator."""

    __metadata_request__predict_proba: ClassVar = ERRORS
    __metadata_request__predict_log_proba: ClassVar = ERRORS

    _takes_missing = True
    _takes_limits = True

    random_state: int | np.random.RandomState | None
    n_threads: int | None
    n_features_in_: int
    priors_: Array
    populations_: list[EmpiricalBayes]

    def _log_joint(self, data: Gaussians) -> Array:
        """Return log pi_c + log p(x | S, c), (n, n_classes), up to a constant of each row; finite.

        A row so far away that a density underflows is moved towards the origin, along its ray,
        until none does: there the nearest class, by its own spread, is the same.
        """
        models = [each._population() for each in self.populations_]  # noqa: SLF001
        threads = thread_count(self.n_threads)
        joint = log_densities(models, data, threads)
        lost = np.flatnonzero(~np.isfinite(joint).all(axis=1))
        shrink = 1.0
        while lost.size and shrink > 1e-200:
            shrink *= _NEARER
            far = data[lost]
            nearer = far.replaced(
                mean=far.mean.astype(np.float64) * shrink,
                limits=None if far.limits is None else far.limits.times(shrink),
            )
            joint[lost] = log_densities(models, nearer, threads)
            lost = lost[~np.isfinite(joint[lost]).all(axis=1)]
        joint[lost] = 0.0
        finite: Array = joint + np.log(self.priors_)
        return finite

    def predict_log_proba(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`; those without errors are certain.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Warns
        -----
        ErrorsLeftOutWarning
            If the examples of the fit had errors, and `X` is an array without any.
        """
        check_is_fitted(self)
        joint = self._log_joint(self._read_with_errors(X, X_std, X_cov))
        log_proba: Array = log_softmax(joint, axis=1)
        return log_proba

    def predict_proba(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `predict_log_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        proba: Array = np.exp(self.predict_log_proba(X, X_std=X_std, X_cov=X_cov))
        return proba

    def log_odds(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the logarithm of each class's probability over that of the first.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `predict_log_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes - 1)
        """
        check_is_fitted(self)
        joint = self._log_joint(self._read_with_errors(X, X_std, X_cov))
        odds: Array = joint[:, 1:] - joint[:, :1]
        return odds

    def decision_function(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the log odds of the second of two classes, or log probabilities of more.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `predict_log_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            odds: Array = self.log_odds(X, X_std=X_std, X_cov=X_cov)[:, 0]
            return odds
        return self.predict_log_proba(X, X_std=X_std, X_cov=X_cov)

    def posterior_mean(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the expected true values, over the classes too.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `predict_log_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            sum_c p(c | x, S) E(v | x, S, c).
        """
        check_is_fitted(self)
        data = self._read_with_errors(X, X_std, X_cov)
        proba = np.exp(log_softmax(self._log_joint(data), axis=1))
        mean = np.zeros(data.shape)
        for model, p in zip(self.populations_, proba.T, strict=True):
            found = _core.true_value_posteriors(
                model._population(),  # noqa: SLF001
                data.core_view(missing=True, limits=True),
                True,
                covariances=False,
                n_threads=thread_count(self.n_threads),
                limits=data.limits,
            )
            mean += p[:, np.newaxis] * found["means"]
        return mean

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[Any]]:
        """Draw true values and their classes.

        Parameters
        ----------
        n_samples : int, default=1
            Their number.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        require_count(n_samples, "n_samples")
        random_state = check_random_state(self.random_state)
        codes = random_state.choice(len(self.classes_), n_samples, p=self.priors_)
        X = np.empty((n_samples, self.n_features_in_))
        for c, model in enumerate(self.populations_):
            rows = np.flatnonzero(codes == c)
            if rows.size:
                own = copy.copy(model)
                own.random_state = random_state
                X[rows] = own.sample(len(rows))[0]
        return X, self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
