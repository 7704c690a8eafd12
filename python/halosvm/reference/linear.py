"""The linear machine in pure NumPy, top to bottom in the order of the flow.

Gaussians (means + covariances) -> (m, s) -> loss -> objective -> solver -> linear model -> Platt.
Notation (n samples, d features; arithmetic in float64):

    X          Gaussians: X.mean (n, d) holds the x_i, X.covariances the S_i
    cov        Covariances: n symmetric matrices (d, d), stored as `kind` says
    w, b       (d,) coefficients and intercept of the score f(x) = w'x + b
    m, s, z    (n,) mean and standard deviation of 1 - y f(X), or of -y f(X) for the logistic loss:
               m = 1 - y f(x), s = sqrt(w'S w); m/s
    psi, loss  the loss, a function of (m, s), and its name in `losses.LOSSES`
    y, weights (n,) labels -1 or +1; (n,) c_i >= 0, None for equal ones, normalised inside to sum 1
    lam        factor of the regulariser in J = lam/2 |w|^2 + sum_i c_i psi(m_i, s_i)
SVM-GSU is Tzelepis, Mezaris, Patras, "SVM with Gaussian Sample Uncertainty" (2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from .losses import (
    LOGISTIC_SHARES,
    LOGISTIC_VARIANCES,
    LOSSES,
    MARGINS,
    Array,
    curvature,
    expected_hinge,
    ratio,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

Rows = NDArray[np.int64] | slice | None
Known = Array | None  # the shared product of a vector, where the caller has it already
Weights = ArrayLike | None
Gradient = tuple[float, Array, float]  # value, grad_w, grad_b
GSU = "expected_hinge"


# -- covariances: every kind is only a way to compute S w and w'S w ------------------------------
def shared_product(cov: Covariances, w: Array) -> Array:
    """Return what w'S_i w and S_i w share: variances (n, d or 1), F_i'w (n, r), or S_i w (n, d)."""
    cov = cov.expanded()
    if cov.kind == "zero":
        return np.zeros((len(cov), 1))
    if cov.kind == "low_rank":
        return w @ _factors(cov)
    values: Array = np.asarray(cov.values)
    if cov.kind == "full":
        return values @ w
    variances = values.astype(np.float64, copy=False).reshape(len(cov), -1)
    return np.square(variances) if cov.squared else variances


def bilinear(cov: Covariances, w: Array, v: Array, of_w: Known = None, of_v: Known = None) -> Array:
    """Return w'S_i v, shape (n,)."""
    cov = cov.expanded()
    of_v = shared_product(cov, v) if of_v is None else of_v
    if cov.kind == "full":
        return of_v @ w
    if cov.kind == "low_rank":
        form: Array = np.einsum("ir,ir->i", shared_product(cov, w) if of_w is None else of_w, of_v)
        return form if cov.diagonal_values is None else form + cov.diagonal_values @ (w * v)
    return of_v @ (w * v) if cov.kind == "diagonal" else of_v[:, 0] * (w @ v)


def spread_squared(cov: Covariances, w: Array, of_w: Known = None) -> Array:
    """Return s_i^2 = w'S_i w >= 0, shape (n,)."""
    of_w = shared_product(cov, w) if of_w is None else of_w
    return np.maximum(bilinear(cov, w, w, of_w, of_w), 0.0)


def covariance_product(cov: Covariances, w: Array, rows: Rows = None) -> Array:
    """Return S_i w for every sample, or for those in `rows`, shape (n, d)."""
    cov = cov.expanded()
    cov = cov if rows is None else cov[rows]
    of_w = shared_product(cov, w)
    if cov.kind == "low_rank":
        product = (_factors(cov) @ of_w[:, :, np.newaxis])[:, :, 0]
        return product if cov.diagonal_values is None else product + cov.diagonal_values * w
    return of_w if cov.kind == "full" else of_w * w


def weighted_product(cov: Covariances, a: Array, w: Array, of_w: Known = None) -> Array:
    """Return sum_i a_i S_i w, shape (d,), for coefficients `a` (n,)."""
    cov = cov.expanded()
    if not a.any():
        return np.zeros_like(w)
    of_w = shared_product(cov, w) if of_w is None else of_w
    if cov.kind == "low_rank":
        total = a @ (_factors(cov) @ of_w[:, :, np.newaxis])[:, :, 0]
        return total if cov.diagonal_values is None else total + (a @ cov.diagonal_values) * w
    return a @ of_w if cov.kind == "full" else (a @ of_w) * w


def trace(cov: Covariances) -> Array:
    """Return tr S_i, shape (n,)."""
    cov = cov.expanded()
    ones = np.ones(cov.shape[1])
    if cov.kind == "full":
        return np.asarray(np.einsum("ijj->i", np.asarray(cov.values), dtype=np.float64))
    if cov.kind == "low_rank":
        total: Array = np.square(_factors(cov), dtype=np.float64).sum(axis=(1, 2))
        return total if cov.diagonal_values is None else total + cov.diagonal_values @ ones
    return spread_squared(cov, ones)


def _factors(cov: Covariances) -> Array:
    """Return the F_i of S_i = F_i F_i', shape (n, d, r), padded with zeros if the ranks differ."""
    values = np.asarray(cov.values)
    if cov.offsets is None:
        return values
    d, ranks = cov.shape[1], np.diff(cov.offsets)
    factors = np.zeros((len(cov), d, ranks.max(initial=0)))
    for factor, start, rank in zip(factors, cov.offsets[:-1], ranks, strict=True):
        factor[:, :rank] = values[d * start : d * (start + rank)].reshape(d, rank)
    return factors


# -- objective J(w, b) = lam/2 |w|^2 + sum_i c_i psi(m_i, s_i) -----------------------------------
def objective_and_gradient(
    X: Gaussians, y: Array, w: Array, b: float, lam: float, weights: Weights = None, loss: str = GSU
) -> Gradient:
    """Return J, grad_w J (d,) and dJ/db; SVM-GSU (3), (7) and (8), the last two corrected.

    grad_w J = lam w - sum_i c_i y_i psi_m x_i + sum_i c_i (psi_s/s) S_i w;
    dJ/db = -sum_i c_i y_i psi_m. (In print the factors y_i are missing, and 1/2 in eq. (8).)
    """
    value, grad_w, grad_b = _weighted_loss(X, y, _normalised(weights, y), w, b, loss)
    return 0.5 * lam * float(w @ w) + value, lam * w + grad_w, grad_b


def hessian_vector(
    X: Gaussians, y: Array, w: Array, b: float, v: Array, v0: float, lam: float,
    weights: Weights = None, loss: str = GSU,
) -> tuple[Array, float]:  # fmt: skip
    """Return the Hessian of J at (w, b) times (v, v0), as a vector (d,) and a number.

    With the directional derivatives m' = -y (x'v + v0) and s' = w'S v/s, a sample contributes
    -y (psi_mm m' + psi_ms s') (x, 1) + [psi_ms m' + (psi_ss - psi_s/s) s']/s S w + psi_s/s S v.
    """
    c, cov = _normalised(weights, y), X.covariances
    (m, s, of_w), of_v = _margin(X, y, w, b, loss), shared_product(cov, v)
    (mm, ms, ss), safe_s = curvature(loss, m, s), ratio(m, s)[1]
    slope_s2 = LOSSES[loss](m, s)[2]
    m_dot, s_dot = -y * (X.mean @ v + v0), bilinear(cov, w, v, of_w, of_v) / safe_s
    along_x = -c * y * (mm * m_dot + ms * s_dot)
    along_q = c * (ms * m_dot + (ss - slope_s2) * s_dot) / safe_s
    product = lam * v + along_x @ X.mean + weighted_product(cov, along_q, w, of_w)
    return product + weighted_product(cov, c * slope_s2, v, of_v), float(along_x.sum())


def exact_intercept(
    X: Gaussians, y: Array, w: Array, weights: Weights = None, loss: str = GSU
) -> float:
    """Return the b that minimises J for given w: the midpoint of {b : dJ/db = 0}.

    g(b) = -dJ/db = sum_i c_i y_i psi_m(y_i (t_i - b), s_i), t_i = y_i - w'x_i, never increases and
    jumps at t_i where s_i = 0: b is a smoothed weighted quantile of the t_i. Both ends of the root
    interval are bracketed, where |g| = 1e-12 of the weight of the lighter class.
    """
    c, s, t = _normalised(weights, y), _margin(X, y, w, 0.0, loss)[1], y - X.mean @ w
    psi, lighter = LOSSES[loss if s.any() else "hinge"], min(c[y > 0.0].sum(), c[y < 0.0].sum())
    if lighter <= 0.0:
        raise ValueError("y: both classes need a positive weight to determine the intercept")

    def excess(b: float, level: float) -> float:
        return float((c * y) @ psi(y * (t - b), s)[1] - level * lighter)

    reach = 10.0 * s.max() + np.abs(t).max() + 1.0
    ends = [brentq(excess, -2 * reach, 2 * reach, g, 1e-16, 1e-15, 1000) for g in (1e-12, -1e-12)]
    return 0.5 * float(sum(ends))


def suboptimality_bound(
    X: Gaussians, y: Array, w: Array, b: float, lam: float, weights: Weights = None, loss: str = GSU
) -> tuple[float, float]:
    """Return J and a bound on J - min J: |grad_w J|^2/(2 lam) or J when b is the exact intercept.

    For any b it is the duality gap of theta = psi_m and (psi_s/s) S w, once sum_i c_i y_i theta_i
    is made 0: samples at the kink m = s = 0 may take any theta in [0, 1] and are used first; then
    the class of larger mass is scaled down by r <= 1, which costs sum_i (1 - r) c_i psi_i.
    """
    c, positive = _normalised(weights, y), y > 0.0
    m, s, of_w = _margin(X, y, w, b, loss)
    psi, theta, slope_s = LOSSES[loss](m, s)
    kink = np.maximum(np.abs(m), s) <= 2e-15 * (1.0 + np.abs(X.mean @ w) + abs(b))
    if c[kink].any():
        needed = c[kink & ~positive].sum() - np.sum((c * y * theta)[~kink])
        share = np.clip(needed / c[kink].sum(), 0.0, 1.0)
        theta = np.where(kink, np.where(positive, share, 1.0 - share), theta)
        slope_s = np.where(kink, 0.0, slope_s)
    mass = np.array([np.sum((c * theta)[~positive]), np.sum((c * theta)[positive])])
    scale = (mass.min() / np.where(mass > 0.0, mass, 1.0))[positive.astype(int)]
    cost = np.where(kink, np.maximum(psi - scale * theta * m, 0.0), (1.0 - scale) * psi)
    gradient = lam * w - (scale * c * y * theta) @ X.mean
    gradient += weighted_product(X.covariances, scale * c * slope_s, w, of_w)
    value = 0.5 * lam * float(w @ w) + float(c @ psi)
    return value, min(value, 0.5 / lam * float(gradient @ gradient) + float(c @ cost))


def _normalised(weights: Weights, y: Array) -> Array:
    c = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    return c / float(c.sum())


def _margin(X: Gaussians, y: Array, w: Array, b: float, loss: str) -> tuple[Array, Array, Any]:
    """Return m, s and the shared product of w; to the hinge every sample is certain."""
    m = MARGINS[loss] - y * (X.mean @ w + b)
    if loss == "hinge":
        return m, np.zeros(len(m)), None
    of_w = shared_product(X.covariances, w)
    return m, np.sqrt(spread_squared(X.covariances, w, of_w)), of_w


def _weighted_loss(X: Gaussians, y: Array, c: Array, w: Array, b: float, loss: str) -> Gradient:
    """Return sum_i c_i psi(m_i, s_i) and its derivatives with respect to w and b."""
    m, s, of_w = _margin(X, y, w, b, loss)
    psi, slope_m, slope_s = LOSSES[loss](m, s)
    a = -c * y * slope_m
    grad_w = a @ X.mean + weighted_product(X.covariances, c * slope_s, w, of_w)
    return float(c @ psi), grad_w, float(a.sum())


# -- solver --------------------------------------------------------------------------------------
def sgd(
    X: Gaussians, y: Array, lam: float, *, steps: int, weights: Weights = None, loss: str = GSU,
    batch_size: int = 32, averaging: str = "weighted", fit_intercept: bool = True, seed: int = 0,
    start: tuple[Array, float] | None = None,
) -> tuple[Array, float]:  # fmt: skip
    """Minimise J by stochastic gradient descent, SVM-GSU Algorithm 1 corrected; return (w, b).

    A step is w -= eta (lam w + g_w), b -= eta g_b with the gradient g of a mini-batch of
    `batch_size` rows (all rows, once each, if there are no more), and then |w| <= 1/sqrt(lam).
    averaging "none": eta = 1/(lam t), returns the last iterate; "weighted": means centred on
    xbar = sum_i c_i x_i, eta = 1/(lam (t + t0)), t0 = sum_i c_i (|x_i - xbar|^2 + 1 + tr S_i)/lam,
    returns the average of w weighted by t, and its exact intercept.
    """
    c = scaled = _normalised(weights, y)
    n_samples, n_features = X.mean.shape
    centre, delay = np.zeros(n_features), 0.0
    if averaging == "weighted":
        centre = c @ X.mean if fit_intercept else centre
        own = 0.0 if loss == "hinge" else trace(X.covariances)
        delay = float(c @ (np.square(X.mean - centre).sum(axis=1) + 1.0 + own)) / lam
    w, b = (np.zeros(n_features), 0.0) if start is None else start
    average, b = w, b + float(w @ centre)  # from here on b is the intercept for centred means
    batches: Iterable[Any] = [slice(None)] * steps
    if batch_size < n_samples:
        batches, scaled = _batches(n_samples, batch_size, steps, seed), c * n_samples / batch_size
    for t, rows in enumerate(batches, start=1):
        _, g_w, g_b = _weighted_loss(X[rows], y[rows], scaled[rows], w, b - float(w @ centre), loss)
        eta = 1.0 / (lam * (t + delay))
        w = (1.0 - eta * lam) * w - eta * (g_w - g_b * centre)
        w /= max(1.0, float(np.sqrt(lam * (w @ w))))
        b -= eta * g_b if fit_intercept else 0.0
        average = average + 2.0 / (t + 1.0) * (w - average)
    if averaging != "weighted":
        return w, b
    return average, exact_intercept(X, y, average, c, loss) if fit_intercept else 0.0


def _batches(n_samples: int, size: int, steps: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each step, drawn with replacement by the counter-based SplitMix64."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    key = _mix(np.array([seed % 2**64], dtype=np.uint64) + golden)
    for first in range(0, steps, 256):  # many steps at a time: NumPy is slow on short arrays
        draws = np.arange(first * size, min(first + 256, steps) * size, dtype=np.uint64)
        uniform = (_mix(key + (draws + np.uint64(1)) * golden) >> np.uint64(11)) * 2.0**-53
        yield from (uniform * n_samples).astype(np.int64).reshape(-1, size)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# -- linear model --------------------------------------------------------------------------------
def decision_function(X: Gaussians, w: Array, b: float) -> Array:
    """Return the mean of the score, w'x_i + b, shape (n,)."""
    return np.asarray(X.mean @ w + b)


def decision_std(X: Gaussians, w: Array) -> Array:
    """Return the standard deviation of the score, sqrt(w'S_i w), shape (n,)."""
    return np.sqrt(spread_squared(X.covariances, w))


def side_probability(X: Gaussians, w: Array, b: float) -> Array:
    """Return P(f(X_i) > 0) = Phi(f(x_i)/s_i), or 0, 1/2, 1 by the sign of f(x_i) if s_i = 0."""
    return expected_hinge(decision_function(X, w, b), decision_std(X, w))[1]


# -- Platt scaling -------------------------------------------------------------------------------
def fit_platt(f: ArrayLike, positive: ArrayLike, weights: Weights = None) -> tuple[float, float]:
    """Return (A, B) of p(y = 1 | f) = 1/(1 + exp(A f + B)) for decision values f.

    Newton's method (Lin, Lin, Weng 2007) for sum_i weights_i [t_i u_i + log(1 + exp(-u_i))] with
    u_i = A f_i + B, t = (N+ + 1)/(N+ + 2) and 1/(N- + 2) for the classes of weight N+ and N-.
    """
    positive, given = np.asarray(positive, dtype=bool), np.asarray(f, dtype=np.float64)
    c = np.ones(np.size(f)) if weights is None else np.asarray(weights, dtype=np.float64)
    centre = np.average(given, weights=c)
    width = np.abs(given - centre).max() or 1.0
    design = np.column_stack([(given - centre) / width, np.ones(np.size(f))])
    n_pos, n_neg = c[positive].sum(), c[~positive].sum()
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))

    def cost(params: Array) -> float:
        u = design @ params
        return float(c @ ((target - (u < 0.0)) * u + np.log1p(np.exp(-np.abs(u)))))

    params = np.array([0.0, np.log((n_neg + 1.0) / (n_pos + 1.0))])
    for _ in range(100):
        p, q = expit(-design @ params), expit(design @ params)
        gradient = (c * (target - p)) @ design
        hessian = (c * p * q * design.T) @ design
        step = -np.linalg.solve(hessian + 1e-12 * np.trace(hessian) * np.eye(2), gradient)
        if -gradient @ step < 1e-24 * c.sum():
            break
        value, size = (1.0 + 1e-15) * cost(params), 1.0
        while size > 1e-10 and cost(params + size * step) > value + 1e-4 * size * gradient @ step:
            size *= 0.5
        params = params + size * step
    return float(params[0] / width), float(params[1] - params[0] * centre / width)


def platt_probability(f: ArrayLike, a: float, b: float) -> Array:
    """Return 1/(1 + exp(a f + b)) for decision values f."""
    return np.asarray(expit(-np.add(np.multiply(a, f), b)))


def expected_platt_probability(mean: ArrayLike, std: ArrayLike, a: float, b: float) -> Array:
    """Return E 1/(1 + exp(a f + b)) for f ~ N(mean, std^2) within 1e-4.

    The logistic law is nearly a mixture of three normal laws; what that is off without errors is
    taken off while errors are small.
    """
    u = np.add(np.multiply(a, mean), b)[..., np.newaxis]
    s2 = np.square(np.multiply(a, std))[..., np.newaxis]
    weights, variances = np.array(LOGISTIC_SHARES), np.array(LOGISTIC_VARIANCES)
    off = ndtr(-u / np.sqrt(variances)) @ weights - expit(-u[..., 0])
    mixture = ndtr(-u / np.sqrt(variances + s2)) @ weights
    return np.asarray(np.clip(mixture - np.exp(-1.5 * s2[..., 0]) * off, 0.0, 1.0))
