"""How large errors really are, as validation data see it: one factor for all given covariances.

Gaussians, labels and validation data enter; the factor of the standard deviations leaves.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from halosvm import _core
from halosvm.checks.estimator import read_targets
from halosvm.checks.frames import require_equal_names
from halosvm.checks.parameters import require_count, require_number
from halosvm.checks.targets import encode_labels, raw_weights, read_labels
from halosvm.core.user_warning import warn_user
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.linear import validation as judges
from halosvm.linear.box_descent import descend_in_box
from halosvm.linear.linear_fit import Settings, fit_linear, hessian_product
from halosvm.linear.smoothed_robust import smoothed_hinge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

_STARTS = 9
# Of the fits, whose errors the loss of the search must not show.
_TOLERANCE = 1e-11
_ENOUGH = 1e-6  # of them where rounding ends a fit


class ScaleCalibration(NamedTuple):
    """What `calibrate_scale` found.

    Attributes
    ----------
    scale : float
        tau: the factor of the standard deviations.
    validation_losses : ndarray of shape (n_steps + 1,)
        The validation loss at the start and after each step; it never increases.
    """

    scale: float
    validation_losses: Array


def calibrate_scale(
    X: Gaussians | ArrayLike,
    y: ArrayLike,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    C: float = 1.0,
    bounds: tuple[float, float] = (0.01, 100.0),
    validation: Any = 0.3,
    tol: float = 1e-4,
    max_iter: int = 50,
    class_weight: Mapping[Any, float] | str | None = None,
    fit_intercept: bool = True,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
    verbose: int = 0,
) -> ScaleCalibration:
    r"""Find the factor of all standard deviations whose machine does best on validation data.

    The machine is `UncertainSVC` with the expected hinge, on :math:`N(x_i, \tau^2 \Sigma_i)`; the
    scale :math:`\tau` is the one whose fit has the least hinge loss at the means of validation
    data. Above 1, the errors are larger than stated; where they are of no use, the scale goes to
    its lower bound.

    Parameters
    ----------
    X, y, X_std, X_cov, sample_weight
        Training examples, labels and weights, as in `UncertainSVC.fit`; some must be uncertain.
    C : float, default=1.0
        Weight of the losses against the regulariser.
    bounds : pair of float, default=(0.01, 100.0)
        Smallest and largest scale.
    validation : float, int, splitter, iterable or (X, y), default=0.3
        As of `SafeSVC`. Errors of validation examples do not count. Where the covariances tell how
        the examples vary, as of images under shifts, give examples (X, y) that do vary.
    tol : float, default=1e-4
        Stop when a step decreases the validation loss by less than this share of it.
    max_iter : int, default=50
        Largest number of steps.
    class_weight, fit_intercept, random_state, n_threads, verbose
        As of `SafeSVC`.

    Returns
    -------
    ScaleCalibration
        The scale, and the validation losses of the search.

    Raises
    ------
    ValueError, TypeError
        For data and parameters that make no sense, and if no example has errors.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps end before the loss comes to rest, if the fit does not end at its
        minimum, and where the best model predicts one class for all, so that its scale says
        nothing.

    Notes
    -----
    The search is the one of `SafeSVC`, over the logarithm of the scale, from the best of nine; the
    validation loss is smoothed as there. The derivative of the fit takes no account of certain
    examples at their kink, so that the search may end early where most examples are certain.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import calibrate_scale
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = y[:, None] + rng.normal(size=(200, 2))
    >>> found = calibrate_scale(X, y, X_std=np.tile([0.1, 0.5], (200, 1)), random_state=0)
    >>> 0.01 <= found.scale <= 100.0
    True
    """
    settings = Settings.of(
        SimpleNamespace(
            C=C,
            solver="auto",
            tol=_TOLERANCE,
            max_iter=1000,
            fit_intercept=fit_intercept,
            n_threads=n_threads,
        )
    )
    require_number(tol, "tol", or_zero=True)
    require_count(max_iter, "max_iter")
    low, high = _read_bounds(bounds)
    y, sample_weight = read_targets(X, y, sample_weight)
    data = as_gaussians(X, X_std=X_std, X_cov=X_cov)
    classes, codes = encode_labels(read_labels(y, len(data)))
    weights = raw_weights(classes, codes, sample_weight, class_weight)
    if not data.covariances.trace().any():
        raise ValueError("X has no errors, or all are 0; there is nothing to scale")
    parts = []
    if judges.is_given(validation):
        given = judges.read_given(validation, lambda X: _means_like(X, data), classes)
        parts.append(_Part(data, codes, weights, *given, None))
    else:
        for fitted, judging in judges.split(validation, classes, codes, weights, random_state):
            own, others = (None if weights is None else weights[r] for r in (fitted, judging))
            means = data.mean[judging]
            parts.append(_Part(data[fitted], codes[fitted], own, means, codes[judging], others))
    for part in parts:
        part.centre(fit_intercept=fit_intercept)
    width = np.log(high / low)

    def evaluate(point: Array) -> tuple[float, Array]:
        tau = low * np.exp(point[0] * width)
        pairs = [part.loss_and_slope(tau, classes, settings) for part in parts]
        loss, slope = np.mean(pairs, axis=0)
        return float(loss), np.array([slope * width])

    starts = [np.array([share]) for share in np.linspace(0.0, 1.0, _STARTS)]
    found = descend_in_box(evaluate, starts, max_iter, tol, verbose=verbose)
    evaluate(found.point)
    if not all((part.suboptimality <= _ENOUGH).all() for part in parts):
        worst = max(float(part.suboptimality.max()) for part in parts)
        warn_user(
            f"the fit at the scale found is certain to {worst:.2g} of its objective alone, so that "
            "the scale may be another than the best; standardise the features, or decrease C"
        )
    if not any(part.coef.any() for part in parts):
        warn_user(
            "the best model on the validation data is w = 0, which predicts one class for all, so "
            "that its scale says nothing; try class_weight='balanced', or another C"
        )
    return ScaleCalibration(float(low * np.exp(found.point[0] * width)), found.losses)


def _read_bounds(bounds: Any) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(f"bounds must be a pair (smallest, largest), got {bounds!r}")
    for i, value in enumerate(bounds):
        require_number(value, f"bounds[{i}]")
    if not bounds[0] < bounds[1]:
        raise ValueError(f"bounds[0] must be below bounds[1], got {bounds!r}")
    return float(bounds[0]), float(bounds[1])


def _means_like(X: Any, data: Gaussians) -> NDArray[Any]:
    """Return the means of examples, whose features must be those of the training data."""
    given = as_gaussians(X)
    if given.shape[1] != data.shape[1]:
        raise ValueError(f"X has {given.shape[1]} features, the training data have {data.shape[1]}")
    require_equal_names("X", given.feature_names, "the training data", data.feature_names)
    means: NDArray[Any] = given.in_units(data.feature_units, "X", "the training data").mean
    return means


class _Part:
    """Examples to fit, examples to judge by, and the coefficients of the last fit."""

    def __init__(
        self,
        data: Gaussians,
        codes: NDArray[Any],
        weights: Array | None,
        judging: NDArray[Any],
        judging_codes: NDArray[Any],
        judging_weights: Array | None,
    ) -> None:
        self.data, self.codes, self.weights = data, codes, weights
        self.judging = judging.astype(np.float64)
        self.judging_codes = judging_codes
        c = np.ones(len(judging)) if judging_weights is None else judging_weights
        self.judging_weights = c / c.sum()
        self.coef, self.suboptimality = np.zeros((0, data.shape[1])), np.zeros(0)

    def centre(self, *, fit_intercept: bool) -> None:
        """Take the mean off all examples, where an intercept makes up for it."""
        means = self.data.mean.astype(np.float64)
        if fit_intercept:
            middle = np.average(means, axis=0, weights=self.weights)
            means, self.judging = means - middle, self.judging - middle
        self.data = self.data.replaced(mean=means)
        c = np.ones(len(means)) if self.weights is None else self.weights
        size = np.sqrt((c @ np.square(means) + c @ self.data.covariances.variances()) / c.sum())
        self.unit = np.append(np.where(size > 0.0, size, 1.0), 1.0)

    def loss_and_slope(
        self, tau: float, classes: NDArray[Any], settings: Settings
    ) -> tuple[float, float]:
        """Return the validation loss at a scale, and its derivative by the logarithm of that."""
        factors = np.full(self.data.shape[1], tau)
        scaled = self.data.replaced(covariances=self.data.covariances.scaled(factors))
        with warnings.catch_warnings():
            # of fits on the way: an optimum at w = 0, or digits that rounding does not leave
            warnings.simplefilter("ignore", ConvergenceWarning)
            # not from the last fit: the loss is to be a function of the scale alone
            found = fit_linear(scaled, classes, self.codes, self.weights, settings)
        self.coef, self.suboptimality = found.coef, found.suboptimality
        loss = slope = 0.0
        for k, (w, b) in enumerate(zip(found.coef, found.intercept, strict=True)):
            positive = 1 if len(found.coef) == 1 else k
            sides = np.where(self.judging_codes == positive, 1.0, -1.0)
            psi, theta, _ = smoothed_hinge(1.0 - sides * (self.judging @ w + b))
            loss += float(self.judging_weights @ psi)
            a = -self.judging_weights * theta * sides
            push = np.append(a @ self.judging, a.sum() if settings.fit_intercept else 0.0)
            y = np.where(self.codes == positive, 1.0, -1.0)
            slope += scale_hypergradient(
                scaled, y, w, b, settings.C, self.weights, push, self.unit, settings.fit_intercept
            )
        return loss / len(found.coef), slope / len(found.coef)


def scale_hypergradient(
    X: Gaussians,
    y: Array,
    w: Array,
    b: float,
    C: float,
    weights: Array | None,
    push: Array,
    unit: Array,
    fit_intercept: bool,
) -> float:
    """Return the derivative by log tau of a function of the fit at tau, whose gradient is push.

    -push'H^-1 M: H is the Hessian of the expected hinge's objective in (w, b), and M the derivative
    of its gradient by log tau, sum_i c_i [y phi z x + (1 + z^2)(phi/s) S w; y phi z]. CG solves
    with H in the coordinates w o unit.
    """
    c = np.ones(len(y)) if weights is None else weights
    c = c / c.sum()
    covariances = X.covariances.core_view()
    m, s = 1.0 - y * (X.mean @ w + b), _core.decision_std(covariances, w[np.newaxis], 1)[:, 0]
    curve = _core.evaluate_loss("expected_hinge", m, s)[2]
    z = np.divide(m, s, out=np.zeros_like(m), where=curve > 0.0)
    along_x = c * y * curve * s * z
    mixed = along_x @ X.mean
    mixed = mixed + covariances.weighted_product(c * (1.0 + z**2) * curve, w[np.newaxis])[0]
    settings = Settings(C, "auto", 1.0, 1, bool(fit_intercept), None)
    bend = hessian_product(X, (y > 0.0).astype(np.int16), weights, settings, (w, float(b)))

    def product(v: Array) -> Array:
        v = np.ravel(v) / unit
        by_w, by_b = bend(v[:-1], v[-1] * fit_intercept)
        # a shift for what data do not determine, as an intercept that no example bends
        return np.append(by_w, by_b if fit_intercept else v[-1]) / unit + 1e-12 * v

    operator = LinearOperator((len(push),) * 2, product)
    u, _ = cg(operator, push / unit, rtol=1e-10, maxiter=20 * len(push))
    return -float(np.append(mixed, along_x.sum() * fit_intercept) @ (u / unit))
