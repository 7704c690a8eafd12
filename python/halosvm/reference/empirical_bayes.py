"""From measurements to true values, in pure NumPy: extreme deconvolution, spec N.

Notation (n examples, d features, k components):

    x      (n, d) measurements x_i = v_i + e_i; NaN where a value is missing
    S      (n, d, d) covariances of the errors e_i; what stands at missing values is not read
    a, m, V   (k,), (k, d), (k, d, d) the population of true values, v ~ sum_k a_k N(m_k, V_k)
    r, b, B   (n, k), (n, k, d), (n, k, d, d) the posterior, v_i ~ sum_k r_ik N(b_ik, B_ik)

    g, W   (n,), (d, d) the batch of each row, and the covariance of the offsets of batches,
           x_i = v_i + o_g(i) + e_i, o_g ~ N(0, W)
    o, P   (G, d), (G, d, d) the posterior of the offset of each batch, o_g ~ N(o_g, P_g)

The functions work on whole arrays, example by example only inside `numpy.linalg`. The source is
Bovy, Hogg, Roweis, "Extreme deconvolution", Annals of Applied Statistics 5 (2011).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .losses import normal_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.floating[Any]]
    Population = tuple[Array, Array, Array]


def class_log_odds(
    x: Array, S: Array, priors: ArrayLike, populations: Sequence[Population]
) -> Array:
    """Return log p(c | x_i, S_i) / p(0 | x_i, S_i) of the classes c > 0, shape (n, classes - 1).

    Bayes' rule with a population (a, m, V) of true values for each class, spec P.
    """
    density = [true_value_posterior(x, S, *population)[0] for population in populations]
    joint = np.stack(density, axis=1) + np.log(np.asarray(priors))
    odds: Array = joint[:, 1:] - joint[:, :1]
    return odds


def true_value_posterior(
    x: Array, S: Array, a: Array, m: Array, V: Array
) -> tuple[Array, Array, Array, Array]:
    """Return log p(x_i), shape (n,), and the posterior r, b, B of the true values.

    A missing value takes a row and a column of the identity in T = R V R' + S, and the residual 0:
    it enters neither the density nor the gain K. B = L V L' + K S K' is Joseph's form; L = I - K R
    is S T^-1 where a value is there, so that nothing cancels however small S is.
    """
    d = x.shape[1]
    there = ~np.isnan(x)
    both = there[:, :, np.newaxis] & there[:, np.newaxis, :]
    S = np.where(both, S, 0.0)
    unseen = np.eye(d) * ~there[:, :, np.newaxis]
    log_density, b, B = [], [], []
    for a_k, m_k, V_k in zip(a, m, V, strict=True):
        T = V_k * both + S + unseen
        gain = np.linalg.solve(T, V_k * there[:, :, np.newaxis]).transpose(0, 2, 1)
        rest = np.where(there, x - m_k, 0.0)
        distance = np.einsum("nd,nd->n", rest, np.linalg.solve(T, rest[..., np.newaxis])[..., 0])
        volume = np.linalg.slogdet(T)[1] + there.sum(axis=1) * np.log(2 * np.pi)
        with np.errstate(divide="ignore"):  # a component without examples has the weight 0
            log_density.append(np.log(a_k) - 0.5 * (distance + volume))
        b.append(m_k + np.einsum("nij,nj->ni", gain, rest))
        left = unseen - ~there[:, :, np.newaxis] * gain + np.linalg.solve(T, S).transpose(0, 2, 1)
        B.append(left @ V_k @ left.transpose(0, 2, 1) + gain @ S @ gain.transpose(0, 2, 1))
    joint = np.stack(log_density, axis=1)
    total = np.logaddexp.reduce(joint, axis=1)
    return total, np.exp(joint - total[:, np.newaxis]), np.stack(b, axis=1), np.stack(B, axis=1)


def deconvolution_step(
    x: Array,
    S: Array,
    a: Array,
    m: Array,
    V: Array,
    c: ArrayLike | None = None,
    W: ArrayLike = 0.0,
    nu: float = 0.0,
) -> tuple[Population, float]:
    """Return the population after one step of expectation maximisation, and log p(x) before it.

    `c` holds weights of the examples, (n,). `W`, (d, d), is added to the scatter of each component,
    as that of examples of weight `nu`; log p(x) - 1/2 sum_k [tr(W V_k^-1) + nu log|V_k|] never
    decreases.
    """
    log_density, r, b, B = true_value_posterior(x, S, a, m, V)
    c = np.ones(len(x)) if c is None else np.asarray(c, np.float64)
    r = c[:, np.newaxis] * r
    q = r.sum(axis=0)
    m = np.einsum("nk,nkd->kd", r, b) / q[:, np.newaxis]
    apart = b - m
    scatter = np.einsum("nk,nki,nkj->kij", r, apart, apart) + np.einsum("nk,nkij->kij", r, B)
    V = (scatter + W) / (q + nu)[:, np.newaxis, np.newaxis]
    return (q / c.sum(), m, V), float(c @ log_density)


def wrong_after_reading(
    mean: Array, B: Array, w: Array, intercept: float, j: int, error: float
) -> tuple[float, float]:
    """Return how probably the label of f(v) = w'v + intercept is wrong, now and after a reading.

    The posterior of v is N(mean, B), and the reading is v_j + N(0, error^2), spec O.6. It moves the
    mean of f by N(0, delta) and takes delta from its variance s^2; what is then wrong is
    Phi(-|mu'| / sqrt(s^2 - delta)), of which this is the mean, by the trapezoidal rule.
    """
    mu, s = w @ mean + intercept, np.sqrt(w @ B @ w)
    delta = (w @ B[j]) ** 2 / (B[j, j] + error**2)
    z = np.linspace(-10.0, 10.0, 20_001)
    moved = mu + np.sqrt(delta) * z
    wrong = normal_tail(np.abs(moved) / np.sqrt(s**2 - delta))[1]
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    now = normal_tail(np.abs(mu) / s)[1]
    return float(now), float(np.sum(wrong * density) * (z[1] - z[0]))


def tail_probability(
    x: Array, S: Array, a: Array, m: Array, V: Array, rng: np.random.Generator, n_draws: int
) -> Array:
    """Return the share of draws of measurements that are less likely than each x_i, shape (n,).

    A draw is a true value of the population and an error of covariance S_i, at the values of x_i
    that are there, spec O.7.
    """
    shares = []
    for x_i, S_i in zip(x, S, strict=True):
        there = ~np.isnan(x_i)
        S_i = np.where(np.outer(there, there), S_i, 0.0)
        counts = rng.multinomial(n_draws, a)
        each = zip(m, V, counts, strict=True)
        drawn = np.concatenate(
            [rng.multivariate_normal(*one, check_valid="ignore") for one in each]
        )
        drawn += rng.multivariate_normal(0.0 * m[0], S_i, n_draws, check_valid="ignore")
        drawn[:, ~there] = np.nan
        errors = np.broadcast_to(S_i, (n_draws, *S_i.shape))
        less = true_value_posterior(drawn, errors, a, m, V)[0]
        own = true_value_posterior(x_i[np.newaxis], S_i[np.newaxis], a, m, V)[0]
        shares.append(np.mean(less < own))
    return np.array(shares)


def heavy_tailed_posterior(
    x: Array, S: Array, a: Array, m: Array, V: Array, nu: float, n_nodes: int = 60
) -> tuple[Array, Array, Array]:
    """Return log p(x_i) and the mean and covariance of v_i, for errors of Student's t (spec O.5).

    `S`, (n, d), are squares of scales: an error is N(0, S / u), u of a gamma distribution of shape
    and rate nu / 2. The integral over all u of a row is a sum over a grid, of n_nodes^d points.
    """
    d, shape = x.shape[1], 0.5 * nu
    log_u = np.linspace(-35.0 / max(shape, 1.0), 2.0 + 2.5 / np.sqrt(shape), n_nodes)
    log_weight = shape * (log_u - np.exp(log_u))
    log_weight -= np.logaddexp.reduce(log_weight)
    log_p, means, seconds = [], [], []
    for point in itertools.product(range(n_nodes), repeat=d):
        scaled = (S / np.exp(log_u[list(point)]))[:, :, np.newaxis] * np.eye(d)
        log_density, r, b, B = true_value_posterior(x, scaled, a, m, V)
        log_p.append(log_density + log_weight[list(point)].sum())
        means.append(np.einsum("nk,nkd->nd", r, b))
        outer = np.einsum("nki,nkj->nkij", b, b)
        seconds.append(np.einsum("nk,nkij->nij", r, B + outer))
    total = np.logaddexp.reduce(log_p, axis=0)
    parts = np.exp(np.array(log_p) - total)
    mean = np.einsum("gn,gnd->nd", parts, means)
    second = np.einsum("gn,gnij->nij", parts, seconds)
    return total, mean, second - np.einsum("ni,nj->nij", mean, mean)


def offset_posteriors(
    x: Array, S: Array, g: NDArray[np.intp], m: Array, V: Array, W: Array
) -> tuple[Array, Array, float]:
    """Return the posterior o, P of the offsets of batches, and log p(x), spec O.2.

    One component; `m` is one mean, (d,), or that of the class of each row, (n, d). P_g^-1 is W^-1
    and the sum of T_i^-1 over the rows of g, o_g = P_g sum T_i^-1 (x_i - m). A missing value counts
    as infinitely uncertain.
    """
    there = ~np.isnan(x)
    both = there[:, :, np.newaxis] & there[:, np.newaxis, :]
    unseen = np.eye(x.shape[1]) * ~there[:, :, np.newaxis]
    T = np.where(both, V + S, 0.0) + unseen
    precision = np.linalg.inv(T) - unseen
    rest = np.where(there, x - m, 0.0)
    pull = np.einsum("nij,nj->ni", precision, rest)
    n_batches = g.max() + 1
    A, h = np.zeros((n_batches, *V.shape)), np.zeros((n_batches, len(V)))
    np.add.at(A, g, precision)
    np.add.at(h, g, pull)
    P = np.linalg.inv(np.linalg.inv(W) + A)
    o = np.einsum("gij,gj->gi", P, h)
    alone = np.sum(rest * pull) + np.linalg.slogdet(T)[1].sum() + there.sum() * np.log(2 * np.pi)
    joined = np.sum(h * o) - np.linalg.slogdet(np.eye(len(V)) + W @ A)[1].sum()
    return o, P, float(0.5 * (joined - alone))


def offset_step(
    x: Array, S: Array, g: NDArray[np.intp], y: NDArray[np.intp], m: Array, V: Array, W: Array
) -> tuple[tuple[Array, Array, Array], float]:
    """Return m, V, W after one step of expectation maximisation, and log p(x) before it, spec O.2.

    `m` holds a mean for each class, (classes, d), `y` the class of each row. The mean offset goes
    over to the means of the classes, of which the distribution of x depends on the sum alone.
    """
    o, P, log_density = offset_posteriors(x, S, g, m[y], V, W)
    shift = o.mean(axis=0)
    one = np.ones(1)
    b, B = np.empty_like(x), np.empty((*x.shape, x.shape[1]))
    for i in range(len(x)):
        here = x[i : i + 1] - o[g[i]], S[i : i + 1]
        _, _, mean, open_ = true_value_posterior(*here, one, m[y[i]][np.newaxis], V[np.newaxis])
        # K P K', with K P the mean's answer to an offset
        moved = here[0] + np.linalg.cholesky(P[g[i]]).T
        far = true_value_posterior(
            moved, np.repeat(here[1], len(moved), axis=0), one, m[y[i]][np.newaxis], V[np.newaxis]
        )[2][:, 0]
        K = (far - mean[0]).T
        b[i], B[i] = mean[0, 0], open_[0, 0] + K @ K.T
    m = np.stack([b[y == c].mean(axis=0) for c in range(len(m))])
    apart = b - m[y]
    V = (apart.T @ apart + B.sum(axis=0)) / len(x)
    W = (o - shift).T @ (o - shift) / len(o) + P.mean(axis=0)
    return (m + shift, V, W), log_density
