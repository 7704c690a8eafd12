"""Partitions of collections on the workers of a dask cluster, in their order.

In:  dask arrays, data frames, or lists of futures or delayed objects.
Out: futures that stay where their data are, and the small results of functions of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from distributed import Future

from halosvm.checks.estimator import require_one_order
from halosvm.files.chunks import placed
from halosvm.gaussians.gaussians import Gaussians, as_gaussians

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Client

_BRANCHES = 8  # results that are added up on a worker
_MUCH = 4_000_000  # bytes that may come back from all partitions in one evaluation
_LITTLE = 200_000  # bytes that may go to all partitions one by one


@dataclass(frozen=True)
class Partitions:
    """Futures of the items, one for each partition; other workers are asked again if one is lost.

    Attributes
    ----------
    client : distributed.Client
    futures : list of Future
    """

    client: Client
    futures: list[Future]

    @property
    def n_threads(self) -> int | None:
        """How many threads work on a partition: workers have a thread for each processor."""
        return 1

    def then(self, function: Callable[..., Any], *arguments: Any) -> Partitions:
        """Return the partitions that the function makes, which stay on their workers."""
        return Partitions(self.client, self._begin(function, arguments))

    def map(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Return function(item, *arguments) of each partition, in their order."""
        yield from self._gathered(self._begin(function, arguments))

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[list[Any]], Any], *arguments: Any
    ) -> Any:
        """Return what `combine` makes of lists of function(item, *arguments), in their order.

        A tree of sums on the workers where the results are many and large.
        """
        futures = self._begin(function, arguments)
        size = _bytes(arguments)
        everything = list(futures)
        with self._cancelled_if_left(everything):
            while len(futures) > _BRANCHES and len(futures) * size > _MUCH:
                groups = [futures[i : i + _BRANCHES] for i in range(0, len(futures), _BRANCHES)]
                futures = [self.client.submit(combine, group, pure=False) for group in groups]
                everything += futures
            return combine(self.client.gather(futures))

    def _begin(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Future]:
        call: Any = _Call(function, arguments)
        if _bytes(arguments) * len(self.futures) > _LITTLE:
            # A task holds it, from which each worker fetches it once; for little that only takes
            # longer than sending it along with each task.
            call = self.client.submit(_Call, function, arguments, pure=False)
        numbers = range(len(self.futures))
        futures: list[Future] = self.client.map(
            _apply, self.futures, numbers, call=call, pure=False
        )
        return futures

    def _gathered(self, futures: list[Future]) -> list[Any]:
        with self._cancelled_if_left(futures):
            results: list[Any] = self.client.gather(futures)
            return results

    @contextmanager
    def _cancelled_if_left(self, futures: list[Future]) -> Iterator[None]:
        try:
            yield
        except BaseException:  # an interrupt, or the error of one of them
            self.client.cancel([*futures, *self.futures])
            raise


def _bytes(arguments: tuple[Any, ...]) -> int:
    return sum(one.nbytes for one in arguments if isinstance(one, np.ndarray))


class _Call:
    """A function with all arguments but the first."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments


def _apply(item: Any, number: int, call: _Call) -> Any:
    with placed(number, word="partition"):
        return call.function(item, *call.arguments)


def partitions_of(
    client: Client, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any
) -> Partitions:
    """Return partitions of tuples (X, y, sample_weight), X as Gaussians, on the workers.

    Raises
    ------
    ValueError, TypeError
        For collections that are not cut alike.
    """
    parts = pieces(X, "X")
    columns = [parts]
    for name, given in (
        ("y", y),
        ("X_std", X_std),
        ("X_cov", X_cov),
        ("sample_weight", sample_weight),
    ):
        columns.append(_like(X, parts, given, name))
    read = dask.delayed(_read, pure=False)
    tuples = [read(number, *each) for number, each in enumerate(zip(*columns, strict=True))]
    return Partitions(client, client.compute(tuples))


def is_collection(X: Any) -> bool:
    """Tell whether an argument is for dask: a collection, or a list of futures or delayed objects.

    Lists may hold Gaussians as well.
    """
    if isinstance(X, list | tuple):
        kinds = (Future, Gaussians)
        return bool(X) and all(isinstance(x, kinds) or dask.is_dask_collection(x) for x in X)
    return bool(dask.is_dask_collection(X))


def pieces(collection: Any, argument: str) -> list[Any]:
    """Return the partitions of a collection, in their order, as delayed objects or as they are."""
    if isinstance(collection, list | tuple):
        return list(collection)
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{argument} is {type(collection).__name__}; a dask array, a dask data frame or a list "
            "of futures or delayed objects is needed"
        )
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def _like(X: Any, parts: Sequence[Any], given: Any, argument: str) -> list[Any]:
    """Return the partitions of what belongs to the rows of X; of what is not given, None."""
    if given is None:
        return [None] * len(parts)
    if hasattr(X, "chunks") and hasattr(given, "rechunk"):
        rows, own = X.chunks[0], given.chunks[0]
        if rows != own and not np.isnan([*rows, *own]).any():
            if sum(rows) != sum(own):
                raise ValueError(f"{argument} has {sum(own)} values, X has {sum(rows)} rows")
            given = given.rechunk({0: rows})
    elif hasattr(X, "chunks") and not is_collection(given):
        rows = X.chunks[0]
        if np.isnan(rows).any():
            raise ValueError(f"{argument} must be a dask array, since X has chunks of unknown size")
        values = np.asarray(given)
        if len(values) != sum(rows):
            raise ValueError(f"{argument} has {len(values)} values, X has {sum(rows)} rows")
        return np.split(values, np.cumsum(rows)[:-1])
    found = pieces(given, argument)
    if len(found) != len(parts):
        raise ValueError(
            f"{argument} has {len(found)} partitions, X has {len(parts)}; both must be cut alike"
        )
    return found


def _read(number: int, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any) -> Any:
    with placed(number, word="partition"):
        order = {"X": X, "X_std": X_std, "X_cov": X_cov}
        require_one_order(order, {"y": y, "sample_weight": sample_weight})
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov, sparse=True)
        return data, y, sample_weight
