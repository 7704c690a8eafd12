"""The parts of a sum: each chunk's share in an objective, and all shares as one.

In:  checked chunks, and what a problem makes of their labels or values.
Out: evaluations of all chunks together, and J in the caller's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halosvm import _core
from halosvm.checks.targets import codes_among
from halosvm.linear.linear_fit import Settings, make_objective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.linear.residuals import HalvesOf
    from halosvm.linear.sums import Rows, Source, Summary

    Array = NDArray[np.float64]


class Piece(NamedTuple):
    """Codes and weights of the examples of a chunk, and for values their offsets and variances.

    Their total `weight` is in units of 1 / lambda, so that weights can be of any size.
    """

    codes: NDArray[np.int16]
    weights: Array | None
    weight: float
    offsets: Array | None = None
    variances: Array | None = None
    targets: Array | None = None  # what the offsets are of, in the caller's numbers


@dataclass
class Part:
    """The share that one chunk has in an objective."""

    data: Gaussians
    pieces: list[Piece]
    n_problems: int
    lam: float
    settings: Settings
    centre: Array | None  # from where the means are seen

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "objectives"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.pieces = [Piece(*map(_aligned, piece)) for piece in self.pieces]
        self.centre = _aligned(self.centre)

    def __sizeof__(self) -> int:
        held = (one for piece in self.pieces for one in piece if isinstance(one, np.ndarray))
        return self.data.nbytes + sum(one.nbytes for one in held)

    @cached_property
    def objectives(self) -> list[tuple[float, _core.Objective]]:
        """The weight and the objective of each piece that has a weight."""
        return [
            (piece.weight, self._objective(piece, piece.offsets, self.centre))
            for piece in self.pieces
            if piece.weight > 0.0
        ]

    def in_callers_numbers(self) -> Iterator[tuple[float, _core.Objective]]:
        """Yield the same with targets and means as they are."""
        for piece in self.pieces:
            if piece.weight > 0.0:
                yield piece.weight, self._objective(piece, piece.targets, None)

    def _objective(
        self, piece: Piece, offsets: Array | None, centre: Array | None
    ) -> _core.Objective:
        return make_objective(
            self.data,
            piece.codes,
            self.n_problems,
            piece.weights,
            self.lam,
            self.settings,
            offsets,
            piece.variances,
            is_part=True,
            centre=centre,
        )


def _aligned(value: Any) -> Any:
    """Return an array that came from elsewhere in memory that the core can look into."""
    return np.require(value, None, "A") if isinstance(value, np.ndarray) else value


class Evaluated(NamedTuple):
    """What a chunk, or several, add to a sum: rows, their weight, and weight times evaluation."""

    sizes: tuple[int, ...]
    weight: float
    evaluation: _core.Evaluation


def evaluate(part: Part, W: Array, b: Array, floor: float) -> Evaluated:
    """Return the share of one chunk in value and gradient."""
    total = _core.Evaluation.zero(*W.shape)
    weight = 0.0
    for mine, objective in part.objectives:
        total.add(objective(W, b, floor), mine)
        weight += mine
    return Evaluated((len(part.data),), weight, total)


def add_up(evaluated: list[Evaluated]) -> Evaluated:
    """Return the sum of what chunks add, in their order."""
    total = _core.Evaluation.zero(*evaluated[0].evaluation.coef.shape)
    for one in evaluated:
        total.add(one.evaluation, 1.0)
    sizes = tuple(size for one in evaluated for size in one.sizes)
    return Evaluated(sizes, sum(one.weight for one in evaluated), total)


def evaluate_exactly(
    part: Part, W: Array, b: Array, margin: float, unit: float
) -> tuple[float, Array]:
    """Return the weight of one chunk, and that times J of models in the caller's numbers.

    With J come its errors, as of the core's `exact_values`.
    """
    weight, total = 0.0, np.zeros((2, *b.shape))
    for mine, objective in part.in_callers_numbers():
        total += mine * objective.exact_values(W, b, margin, unit)
        weight += mine
    return weight, total


def add_up_values(evaluated: list[tuple[float, Array]]) -> tuple[float, Array]:
    """Return the sum of weights and values, in their order."""
    weights, values = zip(*evaluated, strict=True)
    return sum(weights), np.sum(values, axis=0)


@dataclass(frozen=True)
class Classes:
    """Makes of a chunk its part in the problems of a classifier."""

    classes: NDArray[Any]
    factors: Array | None
    lam: float
    settings: Settings
    centre: Array | None

    @property
    def n_problems(self) -> int:
        """One for two classes."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def __call__(self, rows: Rows) -> Part:
        """Return the part."""
        y, weights = rows.y, rows.weights
        codes = np.zeros(len(y), np.int16)
        if len(y):
            again = "no label in the first pass; a source must return the same chunks each time"
            codes = codes_among(self.classes, y, again)
        if self.factors is not None:
            factors = self.factors[codes]
            weights = factors if weights is None else factors * weights
        total = float(len(y)) if weights is None else float(weights.sum())
        pieces = [Piece(codes, weights, total * self.lam)]
        return Part(rows.data, pieces, self.n_problems, self.lam, self.settings, self.centre)


@dataclass(frozen=True)
class Residuals:
    """Makes of a chunk its part in a regression.

    `halves` takes values and their weights, and is pickled with its parameters.
    """

    halves: HalvesOf
    lam: float
    settings: Settings
    centre: Array | None

    n_problems = 1

    def __call__(self, rows: Rows) -> Part:
        """Return the part: the chunk's examples as those of two problems, one for each half."""
        n = len(rows.y)
        halves = self.halves(rows.y, np.ones(n) if rows.weights is None else rows.weights)
        pieces = [
            Piece(
                np.full(n, code, np.int16),
                weights,
                float(weights.sum()) * self.lam,
                offsets,
                halves.variances,
                targets,
            )
            for code, offsets, targets, weights in zip(
                (1, 0), (halves.high, -halves.low), (rows.y, -rows.y), halves.weights, strict=True
            )
        ]
        return Part(rows.data, pieces, 1, self.lam, self.settings, self.centre)


class Whole:
    """All chunks as one part of an objective, which asks each of them in their order."""

    def __init__(self, parts: Source, summary: Summary, moments: _core.Moments) -> None:
        self._parts = parts
        self._summary = summary
        self._moments = moments
        self._last: tuple[tuple[bytes, bytes, float], _core.Evaluation] | None = None
        self.at_zero: Callable[[Array, Array, float], _core.Evaluation] | None = None

    def moments(self) -> _core.Moments:
        """Return location and scale of the features."""
        return self._moments

    def __call__(self, W: Array, b: Array, floor: float) -> _core.Evaluation:
        """Return value and gradient, by a pass over all chunks unless they are known without."""
        if self.at_zero is not None and not W.any():
            return self.at_zero(W, b, floor)
        key = (W.tobytes(), b.tobytes(), floor)
        if self._last is None or self._last[0] != key:
            self._last = (key, self._by_a_pass(W, b, floor))
        return self._last[1]

    def exact_values(self, W: Array, b: Array, margin: float = 0.0, unit: float = 1.0) -> Array:
        """Return J of models in the caller's numbers, and its errors, as the core's objective."""
        weight, values = self._parts.reduce(evaluate_exactly, add_up_values, W, b, margin, unit)
        return np.asarray(values / weight)

    def _by_a_pass(self, W: Array, b: Array, floor: float) -> _core.Evaluation:
        total: Evaluated = self._parts.reduce(evaluate, add_up, W, b, floor)
        self._require_same(list(total.sizes))
        mean = _core.Evaluation.zero(*W.shape)
        mean.add(total.evaluation, 1.0 / total.weight)
        return mean

    def _require_same(self, sizes: list[int]) -> None:
        before = self._summary.sizes
        if sizes == before:
            return
        what = f"there are {len(sizes)} chunks, in the first pass there were {len(before)}"
        for number, (now, then) in enumerate(zip(sizes, before, strict=False)):
            if now != then:
                what = f"chunk {number} has {now} rows, in the first pass it had {then}"
                break
        raise ValueError(f"{what}; a source must return the same chunks, from the first, each time")
