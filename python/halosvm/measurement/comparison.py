"""Comparison: the left-out losses of candidates as a table, and what of it is chosen.

In:  a loss for each candidate and each left-out row, their weights and groups.
Out: means and paired differences with standard errors; the candidates to combine, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from halosvm.population.fitting import as_repetitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.measurement.candidates import Candidate

    Array = NDArray[np.float64]

_COMBINED = 3


class ComparisonTable(np.ndarray):
    """A structured array, a row for each candidate, that prints as a table."""

    def __new__(cls, rows: Any) -> Self:
        """Return the rows of a structured array as such a table."""
        return np.asarray(rows).view(cls)

    def __str__(self) -> str:
        if self.dtype.names is None or self.ndim != 1:
            return super().__str__()
        width = max([9, *(len(name) for name in self["name"])])
        head = f"{'candidate':{width}}  {'loss':>8} {'error':>7}  {'difference':>10} {'error':>7}"
        lines = [f"{head}  {'weight':>6}"]
        for name, loss, error, difference, of_it, weight in self.tolist():
            own = f"{name:{width}}  {loss:8.3f} {error:7.3f}"
            share = f"  {weight:6.2f}" if weight else ""
            lines.append(f"{own}  {difference:+10.3f} {of_it:7.3f}{share}")
        return "\n".join(lines)

    __repr__ = __str__


@dataclass
class LeftOut:
    """Losses of left-out rows.

    Attributes
    ----------
    losses : ndarray of shape (n_candidates, n_rows)
    weights : ndarray of shape (n_rows,)
    groups : ndarray of shape (n_rows,) or None
        Rows of one group do not count as independent.
    overlap : float
        Sum over the folds of the number of test rows over that of training rows.
    """

    losses: Array
    weights: Array
    groups: Any
    overlap: float

    def mean(self) -> Array:
        """Return the mean loss of each candidate."""
        means: Array = self.losses @ self.weights / self.weights.sum()
        return means

    def error(self, values: Array, *, widened: bool) -> float:
        """Return the standard error of the weighted mean of one value a row.

        Widened by what fits to overlapping training rows have in common (Nadeau and Bengio).
        """
        w = as_repetitions(self.weights)
        total = w.sum()
        apart = values - w @ values / total
        if self.groups is None:
            n, variance = total, w @ apart**2 / total
        else:
            _, code = np.unique(self.groups, return_inverse=True)
            n = len(np.unique(code[w > 0]))
            sums = np.bincount(code, w * apart)
            variance = n * (sums @ sums) / total**2
        variance *= 1.0 + self.overlap if widened else 1.0
        return float(np.sqrt(variance / max(n - 1.0, 1.0)))

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Return by how much the first candidate loses more than the second, and its error."""
        apart = self.losses[first] - self.losses[second]
        mean = float(apart @ self.weights / self.weights.sum())
        return mean, self.error(apart, widened=True)


def table_of(
    candidates: list[Candidate], left_out: LeftOut, reference: int, shares: dict[str, float]
) -> ComparisonTable:
    """Return the table, with differences to the reference."""
    names = [each.name for each in candidates]
    numbers = ("loss", "error", "difference", "difference_error", "weight")
    kinds = [("name", f"U{max(map(len, names))}"), *((name, np.float64) for name in numbers)]
    rows = [
        (
            name,
            left_out.mean()[i],
            left_out.error(left_out.losses[i], widened=False),
            *left_out.difference(i, reference),
            shares.get(name, 0.0),
        )
        for i, name in enumerate(names)
    ]
    return ComparisonTable(np.array(rows, dtype=kinds))


def chosen_of(among: list[int], left_out: LeftOut, combine: str) -> list[int]:
    """Return the candidates to combine: the three best, or the simplest.

    Only of those within a standard error of the best: where one is right, others add noise.
    """
    means = left_out.mean()
    order = sorted(among, key=lambda i: (means[i], i))
    apart = {i: left_out.difference(i, order[0]) for i in order}
    near = [i for i, (more, error) in apart.items() if more <= error]
    return near[:_COMBINED] if combine == "mean" else [min(near)]


def eligible_of(candidates: list[Candidate], left_out: LeftOut) -> tuple[list[int], str]:
    """Return the candidates that may be chosen, and a sentence that says why.

    Where no way to count errors beats the best one without them, errors are ignored. A gain need
    not be clear: with few rows hardly any is, and what an unclear one costs is less than what
    ignoring a true one does (bench/papers/when_errors_pay.py, 60 rows).
    """
    means = left_out.mean()
    everything = list(range(len(candidates)))
    without = [i for i in everything if candidates[i].ignores_errors]
    others = [i for i in everything if i not in without]
    if not without or not others:
        what = "No candidate ignores" if not without else "All candidates ignore"
        return everything, f"{what} the errors, so that there is nothing to tell of their use."
    plain, best = (min(those, key=lambda i: means[i]) for those in (without, others))
    gain, error = left_out.difference(plain, best)
    measured = (
        f"the best with errors, {candidates[best].name!r}, loses {means[best]:.3f}, the best "
        f"without, {candidates[plain].name!r}, {means[plain]:.3f}; the difference is {gain:.3f} "
        f"+- {error:.3f}"
    )
    if gain > error:
        return everything, f"Errors help: {measured}."
    if gain > 0.0:
        return everything, f"Errors seem to help, though chance could do as much: {measured}."
    return without, f"Nothing beats ignoring the errors, which is done here: {measured}."
