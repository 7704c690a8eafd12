"""A training problem in extended precision: its objective at a model, exactly or nearly so.

In:  means, covariances as factors, labels, weights, C.
Out: J of a model in doubles, and the centred, standardised problem that the minimisers work on.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from .normal import LD, expected_hinge

EPS = np.finfo(np.float64).eps


def to_fraction(value):
    """Return a longdouble as an exact rational: two doubles hold its 64 bits."""
    high = float(value)
    return Fraction(high) + Fraction(float(value - LD(high)))


def from_fraction(value):
    """Return the longdouble next to a rational, but for its last bit."""
    high = float(value)
    return LD(high) + LD(float(value - Fraction(high)))


@dataclass
class Problem:
    """Gaussians N(X_i, F_i' F_i + diag(V_i)), labels -1 or 1, weights of sum 1, and lambda.

    `slack` >= 0 is relative to the diagonals of the covariances: matrices that were rounded need
    not be positive semidefinite, and the problem judged has that much more variance. `dense` says
    that the fit sees whole matrices and cannot know w'Sw better than to rounding.
    """

    X: np.ndarray
    y: np.ndarray
    C: float
    F: np.ndarray | None = None  # (n, rank, d)
    V: np.ndarray | None = None  # (n, d)
    weights: np.ndarray | None = None
    fit_intercept: bool = True
    dense: bool = False
    slack: float = 0.0
    c: np.ndarray = field(init=False)
    lam: LD = field(init=False)
    total: LD = field(init=False)

    def __post_init__(self):
        n, d = self.X.shape
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights)
        self.total = weights.astype(LD).sum()
        self.c = weights.astype(LD) / self.total
        self.lam = 1 / (LD(self.C) * self.total)
        used = weights > 0
        self.c = self.c[used]
        self.X, self.y = self.X[used], np.where(self.y > 0, 1, -1)[used]
        self.F = np.zeros((n, 0, d), LD) if self.F is None else self.F.astype(LD)
        self.V = np.zeros((n, d), LD) if self.V is None else self.V.astype(LD)
        self.F, self.V = self.F[used], self.V[used]
        diagonal = np.einsum("nrd,nrd->nd", self.F, self.F)
        self.certain = not (diagonal.any() or self.V.any())
        if self.slack:
            self.V = self.V + self.slack * diagonal
        centre = (self.c @ self.X) if self.fit_intercept else np.zeros(d, LD)
        self.centre = centre.astype(np.float64)
        self.side = self.X.astype(LD) - self.centre

    def variance(self, w):
        """w'Sw of each example, a sum of squares."""
        n, rank, d = self.F.shape
        p = (self.F.reshape(n * rank, d) @ w).reshape(n, rank)
        return np.einsum("nr,nr->n", p, p) + self.V @ w**2

    def centred_intercept(self, w, b):
        """b + w'centre, exact but for the last bit of a longdouble."""
        terms = (
            Fraction(float(a)) * Fraction(float(x)) for a, x in zip(w, self.centre, strict=True)
        )
        return from_fraction(sum(terms, Fraction(float(b))))

    def objective(self, w, b):
        """J of a model in doubles, and how far the rounding of w'Sw can move it."""
        beta, w = self.centred_intercept(w, b), np.asarray(w).astype(LD)
        m = 1 - self.y * (self.side @ w + beta)
        variance = self.variance(w)
        ridge = self.lam / 2 * (w @ w)
        value = ridge + self.c @ expected_hinge(m, np.sqrt(variance))
        unknown = self.slack + (len(w) + 2) * EPS * self.dense
        if not unknown:
            return value, LD(0)
        absolute = np.einsum("nrd,nre->nde", np.abs(self.F), np.abs(self.F))
        absolute = np.einsum("nde,d,e->n", absolute, np.abs(w), np.abs(w)) + self.V @ w**2
        error = unknown * absolute
        high = self.c @ expected_hinge(m, np.sqrt(variance + error))
        low = self.c @ expected_hinge(m, np.sqrt(np.maximum(variance - error, 0)))
        return value, high - low

    def margin_rounding(self, w, b):
        """How far J moves by the rounding of margins to doubles, computed from centred means."""
        sizes = np.abs(self.side) @ np.abs(np.asarray(w).astype(LD))
        return (len(w) + 4) * EPS * (1 + abs(self.centred_intercept(w, b)) + self.c @ sizes)

    def exact_hinge_objective(self, w, beta):
        """J of (w, intercept of centred means) on certain data, as a rational."""
        w, beta = [to_fraction(v) for v in w], to_fraction(beta)
        centre = [Fraction(float(v)) for v in self.centre]
        total = to_fraction(self.lam) / 2 * sum(v * v for v in w)
        for c, x, y in zip(self.c, self.X.astype(LD), self.y, strict=True):
            centred = [to_fraction(v) - a for v, a in zip(x, centre, strict=True)]
            score = sum((v * x for v, x in zip(w, centred, strict=True)), beta)
            total += to_fraction(c) * max(Fraction(0), 1 - int(y) * score)
        return total

    def round_to_model(self, w, beta):
        """Return the model in doubles next to (w, intercept of centred means)."""
        rounded = w.astype(np.float64)
        shift = sum(
            Fraction(float(a)) * Fraction(float(x))
            for a, x in zip(rounded, self.centre, strict=True)
        )
        return rounded, float(to_fraction(beta) - shift)

    def reduced(self):
        """Return a problem of the same minimum and few features: those without any variance count
        only by their span.
        """
        noisy = self.V.any(axis=0) | self.F.any(axis=(0, 1))
        if (~noisy).sum() <= len(self.X):
            return self
        basis = []
        for row in self.side[:, ~noisy]:
            rest = row
            for _ in range(3):  # Gram-Schmidt, again against rounding
                for other in basis:
                    rest = rest - (other @ rest) * other
            norm = np.sqrt(rest @ rest)
            if norm > LD(1e-16) * np.sqrt(row @ row):
                basis.append(rest / norm)
        flat = self.side[:, ~noisy] @ np.array(basis, LD).reshape(len(basis), (~noisy).sum()).T
        rank = np.zeros((*self.F.shape[:2], len(basis)), LD)
        return Problem(
            np.hstack([self.side[:, noisy], flat]),
            self.y,
            float(1 / (self.lam * self.total)),
            F=np.concatenate([self.F[:, :, noisy], rank], axis=2),
            V=np.hstack([self.V[:, noisy], np.zeros(flat.shape, LD)]),
            weights=self.c * self.total,
            fit_intercept=self.fit_intercept,
        )
