"""Total support vector classification: TotalSVC.

Points with bounded errors and labels enter; a machine leaves, and the corrections that speak for
it: the points within the errors that fit it best.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import GaussianClassifier
from halosvm.checks.parameters import require_number, thread_count
from halosvm.checks.reading import as_count
from halosvm.checks.targets import encode_labels, raw_weights, weighted_rows
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.gaussians import Gaussians
from halosvm.kernel.expansions import expansion_values
from halosvm.kernel.expected_kernel import ExpectedKernel, check_kernel
from halosvm.kernel.training_gram import require_memory
from halosvm.linear.error_sizes import with_sizes
from halosvm.linear.linear_fit import Settings, fit_linear
from halosvm.linear.linear_model import LinearModel
from halosvm.linear.total.alternation import alternate, corrected, random_corrections
from halosvm.linear.total.ball import Ball, InBall
from halosvm.linear.total.corrections import farthest
from halosvm.linear.total.problem import KernelProblem
from halosvm.linear.total.span import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances

    Array = NDArray[np.float64]

_KERNELS = ("linear", "rbf", "poly")
_FORMULATIONS = ("penalised", "ball")
_ENDED_FIRST = "the allowed number of iterations ended first"


def _is_linear(machine: TotalSVC) -> bool:
    """Tell whether a machine is linear as it was fitted or, before that, as it would be."""
    fitted = hasattr(machine, "coef_") or hasattr(machine, "dual_coef_")
    if hasattr(machine, "coef_") if fitted else machine.kernel == "linear":
        return True
    raise AttributeError(
        "the spread of decision values has a closed form with kernel='linear' alone; with another "
        "kernel, take decision_function of draws from the errors"
    )


class TotalSVC(GaussianClassifier, LinearModel):
    r"""Support vector machine that corrects its points within their errors, to fit them best.

    Every example may lie anywhere in :math:`|R_i^{-1} (x - x_i)| \le r`,
    :math:`\Sigma_i = R_i R_i'` (isotropic: a ball of the radius :math:`\delta_i = r \sigma_i`), and
    is charged the hinge loss of the best point there (TSVC):

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i c_i \max(0, 1 - y_i f(x_i) - r |R_i'w|)

    An error that can explain why its point is on the wrong side makes that point free. The problem
    is not convex. Classes are two.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; "ball" has none.
    kernel : {"linear", "rbf", "poly"}, default="linear"
    formulation : {"penalised", "ball"}, default="penalised"
        - "penalised": the problem above. Machines and corrections in turn, from the ordinary
          machine on: with "linear" as `UncertainSVC` does with the loss "best_case", with kernels
          by Algorithm 1 of the paper, safeguarded. The objective never rises; no bound is known.
        - "ball": :math:`\min \sum_i c_i \xi_i` with :math:`|w| \le \gamma` and margins
          :math:`1 - \gamma \delta_i`, which is convex. Where its minimum has
          :math:`|w| = \gamma` it is the global minimum of
          :math:`\sum_i c_i \max(0, 1 - y_i f(x_i) - \delta_i |w|)` over the ball; `is_global_`
          tells. Errors must be isotropic. With a kernel :math:`\delta_i` is the largest distance
          that an error makes in the feature space.
    gamma, degree, coef0
        Of the kernel, as in `expected_kernel` for certain points; gamma is "scale", "auto" or
        a number.
    radius : float, default=1.0
        r, in standard deviations.
    ball_radius : float, default=1.0
        The :math:`\gamma` of "ball". The smaller, the stronger the regularisation.
    n_restarts : int, default=0
        Of "penalised": how often to start again from random corrections; the lowest objective
        counts.
    random_state : int, RandomState instance or None, default=None
        Seed of the restarts.
    tol : float, default=1e-6
        "penalised" ends when a round lowers the objective by less than a hundredth of this share;
        "ball" when the loss is certified to be above its minimum by at most this share of the loss
        of f = 0.
    max_iter : int, default=1000
        Largest number of iterations; of rounds for a kernel.
    class_weight, n_threads
        As in `UncertainSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        w, of the linear machine.
    dual_coef_, support_vectors_ : ndarray of shape (1, n_support), (n_support, n_features)
        w = sum_j dual_coef_[j] phi(support_vectors_[j]), of machines with a kernel; those of
        "penalised" are corrected points.
    intercept_ : ndarray of shape (1,)
        b.
    corrections_ : ndarray of shape (n_samples, n_features)
        What was added to each example, dx_i. Of "ball" with a kernel there are none: corrections
        are in the feature space there.
    is_global_ : bool
        Whether the fit is proved to be the global minimum: for "ball" as above, to `tol`;
        "penalised" proves nothing.
    classes_ : ndarray of shape (2,)
        Labels in ascending order; `classes_[1]` is the positive one.
    objective_ : float
        The sum of c_i times the losses above, the c_i normalised to sum 1; of "penalised" with
        lambda / 2 |w|^2, lambda = 1 / (C sum(c)).
    n_iter_, status_
        Iterations of the run that counts, and how it ended, in one sentence.
    gamma_ : ndarray of shape (1,)
        The gamma in use, of kernels.
    n_features_in_, feature_names_in_, feature_units_in_
        As of `UncertainSVC`.

    See Also
    --------
    UncertainSVC : Errors that count against an example, or on average.

    Notes
    -----
    With a kernel, time grows with n_samples^2 in each round of "penalised", n_samples^3 in "ball".

    References
    ----------
    J. Bi and T. Zhang, "Support Vector Classification with Input Data Uncertainty", Advances in
    Neural Information Processing Systems 17 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import TotalSVC
    >>> X = np.array([[-1.0, 0.0], [0.2, 1.0], [1.0, 0.0], [2.0, -1.0]])
    >>> clf = TotalSVC(C=10.0).fit(X, [0, 0, 1, 1], X_std=np.array([0.0, 0.8, 0.0, 0.0]))
    >>> bool(clf.corrections_[1, 0] < 0.0)
    True
    >>> clf.predict([[0.5, 0.0]])
    array([1])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        formulation: str = "penalised",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        radius: float = 1.0,
        ball_radius: float = 1.0,
        n_restarts: int = 0,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Mapping[Any, float] | str | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.formulation = formulation
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.radius = radius
        self.ball_radius = ball_radius
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_threads = n_threads

    def fit(
        self,
        X: Gaussians | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Self:
        """Fit the model; a fit that is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : Gaussians or array-like of shape (n_samples, n_features)
            Training examples, or only their means.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the examples' losses.
        X_std : array-like of shape (n_samples,) or (n_samples, n_features), optional
            Standard deviations of the values in `X`, in the same units. A scaler of scikit-learn
            before this step scales `X` alone; see `UncertainStandardScaler` and `Propagate`.
        X_cov : Covariances or array-like, optional
            Covariances, as in `UncertainSVC.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For data, labels, weights or parameters that make no sense, among them more than two
            classes, and errors that are not isotropic for a ball.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ends the fit, if the machine of a round is above its minimum, or if the
            minimum in a ball is not on its sphere.
        """
        with self._all_or_nothing():
            return self._fit(X, y, X_std, X_cov, sample_weight)

    def _fit(self, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any) -> Self:
        settings = self._settings()
        data, y, sample_weight = self._read_training_data(X, y, X_std, X_cov, sample_weight)
        classes, codes = encode_labels(y)
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes. Only binary classification is supported; wrap "
                "TotalSVC in sklearn.multiclass.OneVsRestClassifier"
            )
        data = with_sizes(data, X, radius=self.radius)
        for name in ("coef_", "corrections_", "dual_coef_", "support_vectors_", "gamma_"):
            self.__dict__.pop(name, None)
        self.classes_, self.is_global_ = classes, False
        if self.formulation == "penalised" and self.kernel == "linear":
            costs = raw_weights(classes, codes, sample_weight, self.class_weight)
            return self._fit_linear(data, codes, costs, settings)
        problem, used = self._problem(data, classes, codes, sample_weight)
        fit = self._fit_kernel if self.formulation == "penalised" else self._fit_ball
        fit(problem, used, settings)
        if self.kernel != "linear":
            self.gamma_, self._kernel = problem.kernel.gamma, problem.kernel
        return self

    def _problem(
        self, data: Gaussians, classes: NDArray[Any], codes: NDArray[np.int16], weights: Any
    ) -> tuple[KernelProblem, NDArray[np.intp]]:
        """Return the problem of all examples, and the rows of those that have weight."""
        used, weights = weighted_rows(classes, codes, weights)
        costs = np.zeros(len(data))
        given = raw_weights(classes, codes[used], weights, self.class_weight)
        costs[used] = 1.0 if given is None else given
        certain = Gaussians(data.mean[used])
        kernel = ExpectedKernel.for_examples(
            certain, weights, self.kernel, self.gamma, self.degree, self.coef0
        )
        signs = np.where(codes > 0, 1.0, -1.0)
        return KernelProblem(data, signs, costs, kernel, thread_count(self.n_threads)), used

    def _settings(self) -> Settings:
        """Check all parameters and return those that a linear fit depends on."""
        for name, allowed in (("kernel", _KERNELS), ("formulation", _FORMULATIONS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
        check_kernel(self.kernel, self.degree, self.coef0, argument="kernel")
        if np.ndim(self.gamma):
            raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {self.gamma!r}")
        require_number(self.radius, "radius", or_zero=True)
        require_number(self.ball_radius, "ball_radius")
        as_count(self.n_restarts, "n_restarts", 0)
        return Settings.of(self, loss="best_case", solver="auto", fit_intercept=True)

    def _fit_linear(
        self, data: Gaussians, codes: NDArray[np.int16], costs: Array | None, settings: Settings
    ) -> Self:
        """Leave the rounds to the core."""
        random = check_random_state(self.random_state)
        size2 = np.var(data.mean, axis=0, dtype=np.float64)
        size2 = size2 + data.covariances.variances().mean(axis=0)
        unit = np.divide(1.0, np.sqrt(size2), where=size2 > 0.0, out=np.zeros(len(size2)))
        starts = (random.normal(size=(1, len(unit))) * unit for _ in range(self.n_restarts))
        result = fit_linear(data, self.classes_, codes, costs, settings, restarts=starts)
        result.describe(self)
        del self.suboptimality_
        self.coef_, self.intercept_ = result.coef, result.intercept
        self._correct(data, np.where(codes > 0, 1.0, -1.0))
        return self

    def _correct(self, data: Gaussians, signs: Array) -> None:
        """Set the corrections of a linear machine (Lemma 1)."""
        self.corrections_ = signs[:, np.newaxis] * farthest(data.covariances, self.coef_)

    def _fit_kernel(self, whole: KernelProblem, used: NDArray[np.intp], settings: Settings) -> None:
        """Run Algorithm 1 from no corrections, and from random ones."""
        require_memory(len(used), 2)
        random = check_random_state(self.random_state)
        problem = replace(whole.of_rows(used), costs=settings.C * whole.costs[used])
        starts = [np.zeros(problem.data.shape)]
        starts += [random_corrections(problem, random) for _ in range(self.n_restarts)]
        tol = 0.01 * settings.tol
        runs = (alternate(problem, start, tol, settings.max_iter) for start in starts)
        best = min(runs, key=lambda run: run.objective)
        self.support_vectors_, self.dual_coef_ = best.points, best.coefficients[np.newaxis]
        self.intercept_ = np.array([best.intercept])
        self.objective_ = best.objective / float(problem.costs.sum())
        self.corrections_ = best.corrections
        if len(used) < len(whole.signs):
            self.corrections_ = corrected(whole, best, np.zeros(whole.data.shape))
            self.corrections_[used] = best.corrections
        self.n_iter_ = best.n_iter
        self.status_ = "no round leads further down" if best.converged else _ENDED_FIRST
        if not best.solved:
            self.status_ = f"the dual solver of round {best.n_iter} ended above its minimum"
            warn_user(
                f"{self.status_}: kernels are large, or differ by less than single precision "
                "tells; standardise the features, or decrease C, gamma or coef0"
            )
        elif not best.converged:
            warn_user(f"after {best.n_iter} rounds the objective falls; increase max_iter or tol")

    def _fit_ball(self, whole: KernelProblem, used: NDArray[np.intp], settings: Settings) -> None:
        """Solve the convex problem in coordinates of the points' span."""
        problem, gamma = whole.of_rows(used), float(self.ball_radius)
        given = problem.radii()
        span = Span(problem, linear=self.kernel == "linear")
        radii = span.radii(given)
        weights = problem.costs / problem.costs.sum()
        ball = Ball(span.coordinates, problem.signs, weights, 1.0 - gamma * radii, gamma)
        found = ball.minimize(settings.tol, settings.max_iter)
        for name, value in span.attributes(found.coef, found.intercept).items():
            setattr(self, name, value)
        length = float(np.linalg.norm(found.coef))
        gained = (gamma - length) * radii  # by which (8) counts less than (7)
        deficits = ball.deficits(found.coef, found.intercept) + gained
        self.objective_ = float(weights @ np.maximum(0.0, deficits))
        if self.kernel == "linear":
            self._correct(whole.data, whole.signs)
        self._tell(found, length, gamma)

    def _tell(self, found: InBall, length: float, gamma: float) -> None:
        self.n_iter_ = found.n_iter
        self.is_global_ = found.on_sphere and found.converged
        if self.is_global_:
            self.status_ = "the global minimum, |w| = ball_radius"
        elif found.converged:
            self.status_ = f"|w| is {length:.3g} at the minimum, below ball_radius = {gamma:g}"
            warn_user(
                f"{self.status_}: its margins were too small, and it is no total support vector "
                "machine; reduce ball_radius, or take formulation='penalised'"
            )
        else:
            self.status_ = _ENDED_FIRST
            warn_user(
                f"after {found.n_iter} iterations the loss is not certified to tol = {self.tol:g}; "
                "increase max_iter or tol, or standardise the features"
            )

    def decision_function(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the decision values f(x), for uncertain examples those of their means.

        Parameters
        ----------
        X, X_std, X_cov
            Examples as in `fit`; a covariance does not change the decision value.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive values speak for `classes_[1]`.
        """
        check_is_fitted(self)
        if hasattr(self, "coef_"):
            return super().decision_function(X, X_std=X_std, X_cov=X_cov)
        points = Gaussians(self._read_means(X, X_std, X_cov))
        support = Gaussians(self.support_vectors_)
        machine = (self.dual_coef_, self.intercept_, self._kernel)
        return self._squeezed(
            expansion_values(points, support, *machine, thread_count(self.n_threads))
        )

    decision_std = available_if(_is_linear)(LinearModel.decision_std)
    side_probability = available_if(_is_linear)(LinearModel.side_probability)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
