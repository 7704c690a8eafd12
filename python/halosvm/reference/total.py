"""Total machines in pure NumPy: every example may move, within its error, to where it fits best.

Spec I; BZ is Bi, Zhang, "Support vector classification with input data uncertainty" (2004).
Notation (n examples, d features; labels y of -1 and +1):

    x, dx      (n, d) examples, and the corrections that were found, |dx_i| <= delta_i
    delta      (n,) radii
    C          factor of the losses in 1/2 |w|^2 + C sum_i loss_i
The inner fits of Algorithm 1 are LIBSVM's, whose kernels are in single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.svm import SVC

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .losses import Array, Triple

    # K(x, z) of all pairs, and its gradient in x, (n, m, d).
    Kernel = Callable[[Array, Array], Array]


# -- closed inner minima, as losses of (m, s) ----------------------------------------------------
def total_squared_error(mu: ArrayLike, s: ArrayLike, variance: float = 1.0) -> Triple:
    """Return psi = mu^2/(2 (variance + s^2)), psi_mu and psi_s/s: total least squares, BZ (3).

    The least of (mu + w'dx)^2/(2 variance) + |dx|^2/(2 sigma^2) over dx, with s = sigma |w| and
    mu = y - f(x); `variance` is that of y.
    """
    total = variance + np.square(s)
    share = np.asarray(np.divide(mu, total))
    return np.asarray(0.5 * np.multiply(mu, share)), share, -np.square(share)


def total_logistic(m: ArrayLike, s: ArrayLike) -> Triple:
    """Return psi, psi_m and psi_s/s of total logistic regression, BZ (4), m = -y f(x).

    The least of log(1 + exp(m - y w'dx)) + |dx|^2/(2 sigma^2) over dx = y tau sigma^2 w, whose tau
    is the root of tau = 1/(1 + exp(tau s^2 - m)), s = sigma |w|, here by bisection.
    """
    m, s = np.broadcast_arrays(np.asarray(m, np.float64), np.asarray(s, np.float64))
    low, high = np.zeros(m.shape), np.ones(m.shape)
    for _ in range(60):
        tau = 0.5 * (low + high)
        left = tau < expit(m - tau * np.square(s))
        low, high = np.where(left, tau, low), np.where(left, high, tau)
    value = np.logaddexp(0.0, m - tau * np.square(s)) + 0.5 * np.square(tau * s)
    return value, tau, -np.square(tau)


# -- TSVC: the hinge -----------------------------------------------------------------------------
def best_corrections(y: Array, delta: Array, directions: Array, before: Array) -> Array:
    """Return dx_i = y_i delta_i v_i/|v_i| for directions v_i, (n, d); where v_i = 0 the old dx_i.

    Of a linear machine all v_i are w: Lemma 1 of BZ.
    """
    size = np.linalg.norm(directions, axis=1, keepdims=True)
    moved = (y * delta)[:, np.newaxis] * directions / np.where(size > 0.0, size, 1.0)
    return np.where(size > 0.0, moved, before)


def total_objective(x: Array, y: Array, delta: Array, w: Array, b: float, C: float) -> float:
    """Return 1/2 |w|^2 + C sum_i max(0, 1 - y_i f(x_i) - delta_i |w|), BZ (7)."""
    m = 1.0 - y * (x @ w + b) - delta * np.linalg.norm(w)
    return 0.5 * float(w @ w) + C * float(np.maximum(m, 0.0).sum())


def total_svc(
    x: Array, y: Array, delta: Array, C: float, dx: Array | None = None, rounds: int = 100
) -> tuple[Array, float, Array, list[float]]:
    """Return w, b, dx and the objectives (7) of all rounds of the linear Algorithm 1 of BZ.

    A support vector machine on x + dx, and the best dx for it, in turn, until the objective falls
    by less than 1e-8 of itself; it is the concave-convex procedure on (7), and never rises. From
    dx = 0 the first machine is the ordinary one.
    """
    dx, history = np.zeros_like(x) if dx is None else dx, [np.inf]
    for _ in range(rounds):
        moved = x + dx
        a, b = _dual_svm(moved @ moved.T, y, C)
        w = (a * y) @ moved
        dx = best_corrections(y, delta, np.broadcast_to(w, x.shape), dx)
        history.append(total_objective(x, y, delta, w, b, C))
        if history[-2] - history[-1] <= 1e-8 * history[-1]:
            break
    return w, b, dx, history[1:]


def total_kernel_svc(
    x: Array, y: Array, delta: Array, C: float, kernel: Kernel, gradient: Kernel, rounds: int = 100
) -> tuple[Array, float, Array, list[float]]:
    """Return a, b, dx and the objectives (6) of all rounds of Algorithm 1 of BZ with a kernel.

    f = sum_j y_j a_j k(., x_j + dx_j) + b. dx_i is sought along the gradient of f at x_i; the best
    by f itself of the old one and 1, 1/2, 1/4 and 0 times the new one is kept, without which the
    objective could rise.
    """
    best, history = np.zeros_like(x), [np.inf]
    for _ in range(rounds):
        dx, centres = best, x + best
        K = kernel(centres, centres)
        a, b = _dual_svm(K, y, C)
        history.append(
            0.5 * (a * y) @ K @ (a * y) + C * np.maximum(1.0 - y * (K @ (a * y) + b), 0.0).sum()
        )
        if history[-2] - history[-1] <= 1e-8 * history[-1]:
            break
        slopes = np.einsum("j,ijd->id", a * y, gradient(x, centres))
        proposed = best_corrections(y, delta, slopes, dx)
        trials = np.stack([dx, *(share * proposed for share in (1.0, 0.5, 0.25, 0.0))])
        scores = [y * (kernel(x + trial, centres) @ (a * y)) for trial in trials]
        best = trials[np.argmax(scores, axis=0), np.arange(len(x))]
    return a, b, dx, history[1:]


def _dual_svm(K: Array, y: Array, C: float) -> tuple[Array, float]:
    """Return multipliers 0 <= a <= C, (n,), and intercept of the support vector machine."""
    machine, a = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, y), np.zeros(len(y))
    a[machine.support_] = np.abs(machine.dual_coef_[0])
    return a, float(machine.intercept_[0])


# -- TSVC on a ball ------------------------------------------------------------------------------
def ball_objective(x: Array, y: Array, delta: Array, w: Array, b: float, gamma: float) -> float:
    """Return sum_i max(0, 1 - gamma delta_i - y_i f(x_i)), BZ (8), over |w| <= gamma.

    Where |w| = gamma at its minimum, that is the global minimum of the best case on the ball.
    """
    return float(np.maximum(1.0 - gamma * delta - y * (x @ w + b), 0.0).sum())


def ball_dual(K: Array, y: Array, delta: Array, a: Array, gamma: float) -> float:
    """Return gamma sqrt(a'YKYa) - sum_i (1 - gamma delta_i) a_i, BZ (9).

    Its minimum over 0 <= a <= 1, a'y = 0 is minus that of (8); there w is gamma times the unit
    vector along sum_i a_i y_i x_i.
    """
    norm = np.sqrt(max(float((a * y) @ K @ (a * y)), 0.0))
    return float(gamma * norm - (1.0 - gamma * delta) @ a)
