"""Expected kernels k(X, Y) = E k(x, y) of independent Gaussians x and y, in pure NumPy.

Gaussians (means + covariances) -> Gram matrix, row by row. Notation, for one row x and m columns y:

    S, T       (d, d) covariances of x and y, and of each column; S = diag(v) + F F' + M in parts:
    v, F, M    variances (m, d or 1), factors (m, d, r), dense matrices (m, d, d) or None
    gamma      scalar or (d,), as in scikit-learn: exp(-sum_k gamma_k (x_k - y_k)^2)

The features are scaled first, so that gamma = 1/2 (rbf) or 1 (laplacian, poly) in what follows.
PK is Chen, Georgiou, Tannenbaum, "Probabilistic kernel support vector machines" (2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import erfcx

from .linear import _factors, shared_product
from .losses import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.gaussians.mixtures import GaussianMixtures


class _Parts(NamedTuple):
    """Means and the parts of the covariances of a batch."""

    mean: Array
    v: Array
    F: Array
    M: Array | None

    def row(self, i: int) -> _Parts:
        return _Parts(*(None if part is None else part[i : i + 1] for part in self))  # type: ignore[arg-type]


def expected_kernel(
    X: Gaussians, Y: Gaussians | None = None, *, kind: str = "rbf", gamma: ArrayLike = 1.0,
    degree: int = 3, coef0: float = 1.0,
) -> Array:  # fmt: skip
    """Return the Gram matrix (n, m) of independent copies, also on the diagonal if Y is None."""
    power = {"rbf": 0.5, "laplacian": 1.0, "poly": 0.5, "linear": 0.5}[kind]
    scale = np.asarray(gamma if kind != "linear" else 1.0, dtype=np.float64) ** power
    if kind == "rbf":
        scale = scale * np.sqrt(2.0)
    x, y = _parts(X, scale), _parts(X if Y is None else Y, scale)
    if kind in ("rbf", "laplacian"):
        log_row = _log_rbf if kind == "rbf" else _log_laplacian
        return np.exp(np.stack([log_row(x.row(i), y) for i in range(len(X))]))
    order, constant = (1, 0.0) if kind == "linear" else (degree, coef0)
    return np.stack([_polynomial(x.row(i), y, order, constant) for i in range(len(X))])


def mixture_kernel(X: GaussianMixtures, Y: GaussianMixtures | None = None, **kernel: Any) -> Array:
    """Return the Gram matrix of mixtures: sum_ab pi_a pi_b k(P_a, Q_b)."""
    A, B = (_membership(mixtures) for mixtures in (X, X if Y is None else Y))
    K = expected_kernel(X.components, None if Y is None else Y.components, **kernel)
    return A @ K @ B.T


def _membership(X: GaussianMixtures) -> Array:
    """Return (n, n_components_total): the weight of each component in its mixture, else 0."""
    weights = np.zeros((len(X), len(X.weights)))
    owner = np.repeat(np.arange(len(X)), np.diff(X.offsets))
    weights[owner, np.arange(len(owner))] = X.weights
    return weights


def expansion_variance(
    X: Gaussians, Z: Gaussians, coefficients: Array, *, gamma: ArrayLike
) -> Array:
    """Return Var f_p(x) over x ~ N(mu_i, S_i), (n, p), of f_p(x) = sum_j c_pj E k(x, z_j), rbf.

    With the densities of (x - z_j, x - z_l): E h_j h_l = |C|^-1/2 exp(-1/2 D'C^-1 D) where
    C = [[I + S + T_j, S], [S, I + S + T_l]] and D = (mu - z_j, mu - z_l); the variance is
    c'(G - g g')c. It loses digits where S is small.
    """
    scale = np.broadcast_to(np.sqrt(2.0 * np.asarray(gamma)), X.shape[1])
    n = len(scale)
    T = np.eye(n) + Z.covariances.to_full() * np.outer(scale, scale)
    C, out = np.empty((len(Z), 2 * n, 2 * n)), np.empty((len(X), len(coefficients)))
    for i, S in enumerate(X.covariances.to_full() * np.outer(scale, scale)):
        d = np.subtract(X.mean[i], Z.mean, dtype=np.float64) * scale
        g = np.exp(-0.5 * _quadratic_and_log_determinant(S + T, d))
        G = np.empty((len(Z), len(Z)))
        C[:, :n, n:] = C[:, n:, :n] = S
        C[:, n:, n:] = S + T
        for j, row in enumerate(G):
            C[:, :n, :n] = S + T[j]
            D = np.hstack([np.broadcast_to(d[j], d.shape), d])
            row[:] = np.exp(-0.5 * _quadratic_and_log_determinant(C, D))
        out[i] = np.einsum("pj,jl,pl->p", coefficients, G - np.outer(g, g), coefficients)
    return out


def level2_kernel(K: Array, of_rows: Array, of_columns: Array, tau: float) -> Array:
    """Return exp(-(r_i + c_j - 2 K_ij) / (2 tau^2)); r and c are of examples with themselves."""
    return np.asarray(np.exp(-(np.add.outer(of_rows, of_columns) - 2.0 * K) / (2.0 * tau**2)))


def _log_rbf(x: _Parts, y: _Parts) -> Array:
    """Return -1/2 log |A + F F'| - 1/2 d'(A + F F')^-1 d, A = I + diag(v); PK (6), sign corrected.

    With F the determinant is |A| |I + F'A^-1 F|, and the inverse follows by Woodbury's formula.
    """
    d, a = x.mean - y.mean, 1.0 + x.v + y.v
    F = np.concatenate([np.broadcast_to(x.F, (len(d), *x.F.shape[1:])), y.F], axis=2)
    if x.M is not None or y.M is not None:
        total = F @ F.transpose(0, 2, 1) + np.eye(d.shape[1]) * a[:, :, np.newaxis]
        total += sum(M for M in (x.M, y.M) if M is not None)
        return np.asarray(-0.5 * _quadratic_and_log_determinant(total, d))
    log_determinant = np.broadcast_to(np.log(a), d.shape).sum(axis=1)
    exponent = log_determinant + (d * d / a).sum(axis=1)
    if F.shape[2]:
        B = F / a[:, :, np.newaxis]
        inner, u = np.eye(F.shape[2]) + F.transpose(0, 2, 1) @ B, np.einsum("jkr,jk->jr", B, d)
        exponent += _quadratic_and_log_determinant(inner, u, sign=-1.0)
    return np.asarray(-0.5 * exponent)


def _quadratic_and_log_determinant(A: Array, u: Array, sign: float = 1.0) -> Array:
    """Return sign * u'A^-1 u + log |A| for each of the positive definite A."""
    L = np.linalg.cholesky(A)
    h = np.linalg.solve(L, u[:, :, np.newaxis])[:, :, 0]
    logs = np.log(np.einsum("jrr->jr", L)).sum(axis=1)
    return np.asarray(sign * (h * h).sum(axis=1) + 2.0 * logs)


def _log_laplacian(x: _Parts, y: _Parts) -> Array:
    """Return log E exp(-|x - y|_1), a product over the coordinates: |mu + r Z|, r = sqrt(v).

    With t = |mu|/r it is e^(-t^2/2) [erfcx((r - t)/sqrt 2) + erfcx((r + t)/sqrt 2)]/2; for r < t
    erfcx(-a) = 2 e^(a^2) - erfcx(a) avoids an overflow.
    """
    if x.F.shape[2] or y.F.shape[2] or x.M is not None or y.M is not None:
        raise ValueError("the laplacian kernel needs zero, isotropic or diagonal covariances")
    mu, v = np.abs(x.mean - y.mean), np.broadcast_to(x.v + y.v, y.mean.shape)
    r = np.sqrt(np.maximum(v, 1e-200))
    am, ap = (r - mu / r) / np.sqrt(2.0), erfcx((r + mu / r) / np.sqrt(2.0))
    near = -0.5 * (mu / r) ** 2 + np.log(0.5 * (erfcx(np.maximum(am, 0.0)) + ap))
    inner = np.exp(-np.minimum(am * am, 700.0)) * (ap - erfcx(np.maximum(-am, 0.0)))
    far = 0.5 * v - mu + np.log1p(0.5 * np.minimum(inner, 1.0))
    return np.asarray(np.where(v == 0.0, -mu, np.where(am >= 0.0, near, far)).sum(axis=1))


def _polynomial(x: _Parts, y: _Parts, degree: int, c: float) -> Array:
    """Return E (x'y + c)^degree for degree 1, 2 or 3, with a = x'y + c.

    a;  a^2 + q;  a^3 + 3 a q + 6 x'T S y, where q = tr(S T) + x'T x + y'S y.
    """
    a: Array = y.mean @ x.mean[0] + c
    if degree == 1:
        return a
    Tx, Sy = _product(y, x.mean), _product(x, y.mean)
    q = _trace_of_product(x, y) + Tx @ x.mean[0] + (Sy * y.mean).sum(axis=1)
    cross = (Tx * Sy).sum(axis=1)
    return np.asarray(a**2 + q if degree == 2 else a**3 + 3.0 * a * q + 6.0 * cross)


def _product(S: _Parts, w: Array) -> Array:
    """Return S w, (m, d), for one S or m, and one w or m."""
    rows = w[:, np.newaxis, :]
    dense = rows @ S.F @ S.F.transpose(0, 2, 1)
    if S.M is not None:
        dense = dense + rows @ S.M
    return np.asarray(S.v * w + dense[:, 0])


def _trace_of_product(S: _Parts, T: _Parts) -> Array:
    """Return tr(S T) for one S and each T."""
    diagonal = T.v + np.square(T.F).sum(axis=2)
    if T.M is not None:
        diagonal = diagonal + np.einsum("jkk->jk", T.M)
    total = (S.v * diagonal).sum(axis=1)
    for f in S.F[0].T:
        total += _product(T, f[np.newaxis]) @ f
    if S.M is not None:
        for k, column in enumerate(S.M[0]):
            total += _product(T, column[np.newaxis])[:, k]
    return np.asarray(total)


def _parts(X: Gaussians, scale: Array) -> _Parts:
    """Return means and parts of the covariances with each feature multiplied by its scale."""
    cov, (n, d) = X.covariances.expanded(), X.mean.shape
    each = np.broadcast_to(scale, d)
    v: Array = np.zeros((n, 1))
    F, M = np.zeros((n, d, 0)), None
    if cov.kind in ("isotropic", "diagonal"):
        v = shared_product(cov, np.ones(d))
    elif cov.kind == "low_rank":
        F = np.asarray(_factors(cov), dtype=np.float64)
        v = v if cov.diagonal_values is None else np.asarray(cov.diagonal_values, dtype=np.float64)
    elif cov.kind == "full":
        M = np.asarray(cov.values) * np.outer(each, each)
    mean = np.asarray(X.mean, dtype=np.float64)  # a scale that is a number would leave float32
    return _Parts(mean * scale, v * scale**2, F * each[:, np.newaxis], M)
