"""Sizes of errors that are told up to factors.

In:  measurements whose errors have covariances D S_i D, D = diag(sqrt h), and a fit of populations.
Out: the most likely factors h of groups of features, their intervals, and tests of h = 1.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax

from halosvm import _core
from halosvm.checks.parameters import require_number
from halosvm.gaussians.covariance_kinds import storage_of

from .populations import posterior_covariances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .fitting import Fitter

    Array = NDArray[np.float64]
    Groups = list[NDArray[np.intp]]

# log h from where on factors are as good as infinite, and 0.
_BOUND = 2.0 * np.log(1000.0)
# What fits of a population may be short of its likelihood, for each row: ratios of likelihoods are
# differences of such fits.
_TOL = 1e-6
# Factors of which each is profiled; of more, intervals and tests are those of the curvature.
PROFILED = 10
_SCANNED = 10.0 ** np.arange(-1.5, 3.1, 0.5)  # common factors, to find the highest maximum
_LONGEST = 1.0  # step of log h
_NORMAL = 1.959964  # of an interval of 95 %
_CLOSE = 0.02  # standard errors
_FLATTEST = 1e-2  # curvature over what is expected of it
_EQUAL = 1e-9
_BLOCK = 1 << 20
NO_ERRORS = "there are no errors"
SIZES_NEED_READINGS = (
    ", from which the size of errors is not estimated: leave error_scale a number, and test errors "
    "with the rows that have no limit"
)


class Profile:
    """The log likelihood of factors of groups of features, with the best population for them.

    Its slope is that of the likelihood at that population, by the envelope theorem. Everything is
    in logarithms of h, in units of about their standard errors: z.
    """

    def __init__(self, fitter: Fitter, start: Any, groups: Groups) -> None:
        self.fitter, self.groups, self.told = copy(fitter), groups, fitter.data
        self.result = start
        self.passes = int(start["iterations"])
        self.history = [float(each) for each in start["history"]]
        there = ~np.isnan(self.told.mean)
        errors = np.where(there, self.told.covariances.variances(), 0.0)
        share = errors / (errors + fitter.scale**2)
        known = 0.5 * fitter.weights @ (share * share)
        self.unit = 1.0 / np.sqrt([max(known[group].sum(), 1.0) for group in groups])
        self.bound = _BOUND / self.unit

    def scales(self, z: Array) -> Array:
        """Return the factor of the standard deviations of each feature."""
        out = np.ones(self.told.shape[1])
        for group, log_h in zip(self.groups, z * self.unit, strict=True):
            out[group] = np.exp(0.5 * log_h)
        return out

    def __call__(self, z: Array) -> tuple[float, Array]:
        """Return the log likelihood and its slope; the population is in `result`."""
        fitter = self.fitter
        fitter.data = with_scaled_errors(self.told, self.scales(z))
        self.result = fitter.fit_from(self.result["population"], tol=_TOL)
        self.passes += int(self.result["iterations"])
        each = slopes(self.result["population"], fitter)
        slope = np.array([each[group].sum() for group in self.groups])
        return float(self.result["history"][-1]), slope * self.unit

    def maximise(self, near: float | None = None) -> tuple[Array, float]:
        """Return the best z and the log likelihood there.

        It begins with the best common factor, which is `near` or looked for: likelihoods may have
        several maxima, and errors of another unit may be too small to have a slope.
        """
        best: tuple[float, Array, Any] | None = None

        def falling(z: Array) -> tuple[float, Array]:
            nonlocal best
            value, slope = self(z)
            if best is None or value > best[0]:
                best = value, z.copy(), self.result
                self._note(value)
            self.result = best[2]
            return -value, -slope

        def of_common(log_factor: float) -> float:
            return falling(2.0 * log_factor / self.unit)[0]

        if near is None:
            scanned = np.log(_SCANNED)
            at = int(np.argmin([of_common(each) for each in scanned]))
            ends = scanned[[max(at - 1, 0), min(at + 1, len(scanned) - 1)]]
            tolerance = 0.1 * _CLOSE * self.unit.min()
            minimize_scalar(
                of_common, bounds=tuple(ends), method="bounded", options={"xatol": tolerance}
            )
        else:
            of_common(float(np.log(near)))
        assert best is not None
        if len(self.groups) > 1:
            limits = np.column_stack([-self.bound, self.bound])
            options = {"ftol": 0.0, "gtol": _CLOSE}
            minimize(falling, best[1], jac=True, method="L-BFGS-B", bounds=limits, options=options)
        value, z, self.result = best
        return z, value

    def _note(self, value: float) -> None:
        if value > self.history[-1]:
            self.history.append(value)

    def curvature(self, z: Array) -> Array:
        """Return minus the second derivatives, from differences of slopes."""
        kept, n = self.result, len(z)
        out = np.empty((n, n))
        slope = self(z)[1]
        for g in range(n):
            step = 0.5 if z[g] <= 0 else -0.5
            other = z.copy()
            other[g] += step
            out[g] = (slope - self(other)[1]) / step
            self.result = kept
        values, vectors = np.linalg.eigh(0.5 * (out + out.T))
        regular: Array = (vectors * np.maximum(values, _FLATTEST)) @ vectors.T
        return regular

    def held(self, z: Array, at: int, curvature: Array) -> tuple[float, float, Array]:
        """Return the log likelihood of one factor with the best of the others, its slope, and them.

        What the others are short of their best is made up for by the curvature.
        """
        free = (np.arange(len(z)) != at) & (np.abs(z) < self.bound)
        own = curvature[np.ix_(free, free)]
        for _ in range(20):
            value, slope = self(z)
            way = np.linalg.solve(own, slope[free])
            short = 0.5 * float(way @ slope[free])
            if short < _CLOSE:
                break
            z = z.copy()
            way *= min(1.0, _LONGEST / np.abs(way * self.unit[free]).max())
            z[free] = np.clip(z[free] + way, -self.bound[free], self.bound[free])
        return value + short, float(slope[at] - curvature[at, free] @ way), z

    def interval(self, z: Array, value: float, at: int, curvature: Array) -> tuple[float, float]:
        """Return the ends of where a factor is likely, of standard deviations, by its profile."""
        if len(z) > PROFILED:
            error = _NORMAL * self.standard_error(at, curvature)
            ends = [z[at] - error, z[at] + error]
            open_ended = np.where(np.abs(ends) < self.bound[at], ends, np.sign(ends) * np.inf)
            low, high = np.exp(0.5 * open_ended * self.unit[at])
            return float(low), float(high)
        best, ends = self.result, []
        for side in (-1.0, 1.0):
            self.result = best
            end = self._end(z, value, at, curvature, side) * self.unit[at]
            ends.append(float(np.exp(0.5 * end)))
        self.result = best
        return ends[0], ends[1]

    def standard_error(self, at: int, curvature: Array) -> float:
        """Return the standard error of one z."""
        return float(np.sqrt(np.linalg.inv(curvature)[at, at]))

    def _end(self, z: Array, value: float, at: int, curvature: Array, side: float) -> float:
        """Newton's method on the root of the likelihood ratio, which is nearly straight."""
        free = (np.arange(len(z)) != at) & (np.abs(z) < self.bound)
        follow = np.zeros(len(z))  # how the others move with this one
        follow[free] = -np.linalg.solve(curvature[np.ix_(free, free)], curvature[free, at])
        follow[at] = 1.0
        own = float(curvature[at] @ follow)
        inside, outside = z[at], side * self.bound[at]
        t = inside + side * _NORMAL / np.sqrt(max(own, _FLATTEST))
        others = z
        while side * (outside - inside) > _CLOSE:
            t = outside if side * t >= side * outside else t
            others = np.clip(others + (t - others[at]) * follow, -self.bound, self.bound)
            top, slope, others = self.held(others, at, curvature)
            root = np.sqrt(max(0.0, 2.0 * (value - top)))
            if abs(root - _NORMAL) < _CLOSE:
                return float(t)
            if root < _NORMAL:
                if abs(t) >= self.bound[at]:
                    break
                inside = t
            else:
                outside = t
            steep = -side * slope / root if root > 0 else 0.0
            way = (_NORMAL - root) / steep if steep > 0 else np.inf
            most = 2.0 * _LONGEST / self.unit[at]
            t += side * float(np.clip(way, -most, most))
            if not side * inside < side * t < side * outside:
                t = outside if abs(outside) >= self.bound[at] else 0.5 * (inside + outside)
        return side * np.inf if abs(outside) >= self.bound[at] else float(t)


def with_scaled_errors(data: Gaussians, scales: Array) -> Gaussians:
    """Return measurements whose standard deviations are those of each feature times a factor."""
    if (scales == 1.0).all():
        return data
    covariances = data.covariances.scaled(scales)
    covariances.require_in_range("X with errors times error_scale_")
    return data.replaced(covariances=covariances)


def slopes(population: Any, fitter: Fitter) -> Array:
    """Return the slope of the log likelihood by the log h of each feature, the population as it is.

    1/2 sum c (E[(x - v)^2] / S - 1) under the posterior where errors are diagonal, over values that
    are read with an error; in general 1/2 sum c E_k[w_j (S w)_j - (T^-1 S)_jj], w = T^-1 (x - m).
    """
    data, c = fitter.data, fitter.weights
    there = ~np.isnan(data.mean)
    if storage_of(data.covariances).independent:
        found = _core.true_value_posteriors(
            population, data.core_view(missing=True), True, n_threads=fitter.n_threads
        )
        errors = data.covariances.variances()
        read = there & (errors > 0)
        rest = np.where(read, data.mean - found["means"], 0.0)
        second = rest**2 + posterior_covariances(found).variances()
        along: Array = 0.5 * c @ np.where(read, second / np.where(read, errors, 1.0) - 1.0, 0.0)
        return along
    V = fitter.form.covariances(population).to_full()
    total = np.zeros(data.shape[1])
    size = max(1, _BLOCK // data.shape[1] ** 2)
    for begin in range(0, len(data), size):
        rows = np.arange(begin, min(begin + size, len(data)))
        total += c[rows] @ _slopes_of_rows(population, V, data[rows], there[rows])
    return total


def _slopes_of_rows(population: Any, V: Array, data: Gaussians, there: NDArray[np.bool_]) -> Array:
    both = there[:, :, np.newaxis] & there[:, np.newaxis, :]
    S = np.where(both, data.covariances.to_full(), 0.0)
    unseen = np.eye(data.shape[1]) * ~there[:, :, np.newaxis]
    each, densities = [], []
    for weight, mean, spread in zip(population.weights, population.means, V, strict=True):
        T = spread * both + S + unseen
        inverse = np.linalg.inv(T)
        rest = np.where(there, data.mean - mean, 0.0)
        w = np.einsum("nij,nj->ni", inverse, rest)
        pulled = np.einsum("nij,nj->ni", S, w)
        each.append(0.5 * (w * pulled - np.einsum("nij,nji->ni", inverse, S)))
        with np.errstate(divide="ignore"):  # a component without members
            distance = np.einsum("ni,ni->n", w, rest) + np.linalg.slogdet(T)[1]
            densities.append(np.log(weight) - 0.5 * distance)
    parts = softmax(np.array(densities), axis=0)
    mean_slope: Array = np.einsum("kn,knj->nj", parts, np.array(each))
    return mean_slope


def require_error_scale(error_scale: Any) -> None:
    """Raise unless the parameter is a number, a word or lists of numbers of features."""
    if isinstance(error_scale, str):
        if error_scale not in ("estimate", "feature"):
            raise ValueError(
                "error_scale must be a number, 'estimate', 'feature' or lists of numbers of "
                f"features, got {error_scale!r}"
            )
    elif isinstance(error_scale, list | tuple):
        groups = [np.asarray(group) for group in error_scale]
        if not groups or any(g.ndim != 1 or g.dtype.kind not in "iu" for g in groups):
            raise TypeError(
                f"error_scale must hold lists of numbers of features, got {error_scale!r}"
            )
        members, counts = np.unique(np.concatenate(groups), return_counts=True)
        if counts.max() > 1:
            raise ValueError(f"error_scale names feature {members[counts > 1][0]} twice")
    else:
        require_number(error_scale, "error_scale")


def groups_of(error_scale: Any, n_features: int) -> Groups | None:
    """Return the groups of features whose factors are to be estimated, None for a given factor."""
    if isinstance(error_scale, str):
        each = np.arange(n_features)
        return [each] if error_scale == "estimate" else list(each[:, np.newaxis])
    if not isinstance(error_scale, list | tuple):
        return None
    groups = [np.asarray(group, dtype=np.intp) for group in error_scale]
    members = np.concatenate(groups)
    outside = members[(members < 0) | (members >= n_features)]
    if outside.size:
        raise ValueError(
            f"error_scale names feature {outside[0]}, X has {n_features} features, from 0"
        )
    return groups


def why_unknown(fitter: Fitter, group: NDArray[np.intp]) -> str:
    """Say why the factor of a group cannot be known, if so: its errors add to a free covariance."""
    covariances = fitter.data.covariances
    there = ~np.isnan(fitter.data.mean) & (fitter.weights > 0)[:, np.newaxis]
    variances = np.where(there, covariances.variances(), 0.0)[:, group]
    if not variances.any():
        return NO_ERRORS
    if not _equal(variances, there[:, group]):
        return ""
    if not storage_of(covariances).independent:
        if not fitter.form.any_matrix:
            return ""
        S = covariances.to_full()
        for j in group:
            both = there & there[:, [j]]
            if not _equal(np.where(both, S[:, j], 0.0), both):
                return ""
    return (
        "its errors are equal in all rows, so that they cannot be told from the spread of the true "
        "values"
    )


def _equal(values: Array, there: NDArray[np.bool_]) -> bool:
    lowest = np.where(there, values, np.inf).min(axis=0)
    highest = np.where(there, values, -np.inf).max(axis=0)
    room = _EQUAL * np.maximum(np.abs(lowest), np.abs(highest))
    return not (highest - lowest > room)[there.any(axis=0)].any()


class Estimated(NamedTuple):
    """Factors of standard deviations, (n_features,), their intervals, and the fit with them."""

    scales: Array
    intervals: Array
    data: Gaussians
    result: Any


def estimate(fitter: Fitter, result: Any, groups: Groups) -> Estimated:
    """Return the most likely factors, from a fit with errors as they are told."""
    names = fitter.data.feature_names
    known = []
    for group in groups:
        why = why_unknown(fitter, group)
        if not why:
            known.append(group)
        elif why != NO_ERRORS or len(groups) == 1:
            which = [str(j) if names is None else f"{j} ({names[j]})" for j in group[:10].tolist()]
            raise ValueError(
                f"error_scale: the factor of {'column' if len(group) == 1 else 'columns'} "
                f"{', '.join(which)}{', ...' * (len(group) > 10)} of X cannot be known: {why}; "
                "leave error_scale at 1"
            )
    profile = Profile(fitter, result, known)
    z, value = profile.maximise()
    best = profile.result
    curvature = profile.curvature(z)
    scales = profile.scales(z)
    intervals = np.full((len(scales), 2), np.nan)
    for at, group in enumerate(known):
        intervals[group] = profile.interval(z, value, at, curvature)
    best = best | {"history": np.array(profile.history), "iterations": profile.passes}
    return Estimated(scales, intervals, with_scaled_errors(fitter.data, scales), best)
