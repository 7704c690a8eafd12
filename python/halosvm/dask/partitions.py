"""Partitions of collections on the workers of a dask cluster, in their order.

In:  dask arrays, data frames, or lists of futures or delayed objects.
Out: futures that stay where their data are, and the small results of functions of them.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from dask.utils import parse_timedelta
from distributed import Future, default_client, get_client

from halosvm.checks.estimator import require_one_order
from halosvm.files.chunks import placed
from halosvm.gaussians.gaussians import Gaussians, as_gaussians

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

_BRANCHES = 8  # results that are added up on a worker
_MUCH = 4_000_000  # bytes that may come back from all partitions in one evaluation
_LOOK = 0.5  # seconds between two looks for workers, while results are waited for
_SILENCE = 4.0  # seconds without workers before a warning
_PATIENCE = "300 s"  # without workers, unless dask's own limit is set
_LIMIT = "distributed.scheduler.no-workers-timeout"
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
            return combine(self._results(futures))

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
            return self._results(futures)

    def _results(self, futures: list[Future]) -> list[Any]:
        results: list[Any] = self.client.sync(_gathered, self.client, futures)
        return results

    @contextmanager
    def _cancelled_if_left(self, futures: list[Future]) -> Iterator[None]:
        try:
            yield
        except BaseException:  # an interrupt, or the error of one of them
            self.client.sync(_cancelled, self.client, [*futures, *self.futures])
            raise


async def _gathered(client: Client, futures: list[Future]) -> Any:
    """Return the results of futures; give up a scheduler that is gone, or has no workers for long.

    Workers may come only when there are tasks, so that they are looked for after those are sent.
    """
    results = asyncio.ensure_future(client.gather(futures, asynchronous=True))
    results.add_done_callback(lambda done: done.cancelled() or done.exception())  # if left below
    begin, warned = time.monotonic(), False
    while not (await asyncio.wait({results}, timeout=_LOOK))[0]:
        if client.status != "running":
            raise ConnectionError(f"the connection to the dask scheduler is lost: {client}")
        if await client.scheduler.ncores():
            begin, warned = time.monotonic(), False
            continue
        waited = time.monotonic() - begin
        limit = parse_timedelta(dask.config.get(_LIMIT, None) or _PATIENCE)
        found = (
            f"the dask cluster at {client.scheduler.address} has no workers since {waited:.0f} s"
        )
        remedy = f"start workers, or set another limit by dask.config.set({{'{_LIMIT}': '1 h'}})"
        if waited >= limit:
            raise TimeoutError(f"{found}; {remedy}")
        if waited >= _SILENCE and not warned:
            warnings.warn(f"{found}, and is given up after {limit:g} s: {remedy}", stacklevel=2)
            warned = True
    return results.result()


async def _cancelled(client: Client, futures: list[Future]) -> None:
    """Cancel futures; a scheduler that is gone has none, and is not waited for."""
    if client.status == "running":
        with suppress(OSError):  # timeouts, too: what is raised afterwards is the first error
            await asyncio.wait_for(client.cancel(futures, asynchronous=True), _SILENCE)


def client_that_waits() -> Client:
    """Return the current client of dask.

    Raises
    ------
    ValueError
        For none, and in the event loop of one that was made with ``asynchronous=True``.
    """
    client = get_client()
    _refuse_asynchronous(client)
    return client


def computed(value: Any) -> Any:
    """Return the value of a collection, by the current client or in threads of this process."""
    client = None
    with suppress(ValueError):  # there may be none
        client = default_client()
    if client is not None:
        _refuse_asynchronous(client)
    return dask.compute(value)[0]


def _refuse_asynchronous(client: Client) -> None:
    if client.asynchronous:
        raise ValueError(
            "the dask client was made with asynchronous=True, whose event loop fit and score would "
            "block; call them by asyncio.to_thread, or make the client without asynchronous=True"
        )


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
    rows = {"y": y, "X_std": X_std, "X_cov": X_cov, "sample_weight": sample_weight}
    columns = in_columns(X, **rows)
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


def in_columns(X: Any, **given: Any) -> list[list[Any]]:
    """Return the partitions of X and of what belongs to its rows; None for what is not given."""
    parts = pieces(X, "X")
    found = cut_alike(X, **given)
    return [
        parts,
        *(pieces(found[name], name) if name in found else [None] * len(parts) for name in given),
    ]


def pieces(collection: Any, argument: str) -> list[Any]:
    """Return the partitions of a collection, in their order, as delayed objects or as they are."""
    if isinstance(collection, list | tuple):
        return list(collection)
    if is_array(collection):
        collection = of_whole_rows(collection)
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{argument} is {type(collection).__name__}; a dask array, a dask data frame or a list "
            "of futures or delayed objects is needed"
        )
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def is_array(collection: Any) -> bool:
    """Tell whether a collection is a dask array."""
    return hasattr(collection, "rechunk")


def of_whole_rows(array: Any) -> Any:
    """Return a dask array that is cut along its rows alone."""
    return array.rechunk(dict.fromkeys(range(1, array.ndim), -1))


def cut_alike(X: Any, **given: Any) -> dict[str, Any]:
    """Return the collections that are given for the rows of X, cut as X is.

    Arrays of known sizes and frames of known divisions are cut anew. Of others the number of
    partitions is all that is known here; who reads a partition finds what differs in it.

    Raises
    ------
    ValueError, TypeError
        For what cannot be cut like X.
    """
    found = {}
    for name, value in given.items():
        if value is None:
            continue
        value = _cut_like(X, value, name)
        count, own = _count(X, "X"), _count(value, name)
        if own != count:
            raise ValueError(
                f"{name} has {own} partitions, X has {count}; both must be cut alike, which is "
                "done here for dask arrays of known sizes (compute_chunk_sizes finds them) and for "
                "data frames of known divisions"
            )
        found[name] = value
    return found


def _cut_like(X: Any, given: Any, argument: str) -> Any:
    if is_array(X) and (is_array(given) or not is_collection(given)):
        rows = X.chunks[0]
        if not is_array(given):
            if np.isnan(rows).any():
                raise ValueError(
                    f"{argument} must be a dask array, since X has chunks of unknown size"
                )
            given = _as_dask_array(given)
        own = given.chunks[0] if given.ndim else ()
        if rows != own and not np.isnan([*rows, *own]).any():
            if sum(rows) != sum(own):
                raise ValueError(f"{argument} has {sum(own)} values, X has {sum(rows)} rows")
            given = given.rechunk({0: rows})
    elif _has_divisions(X) and _has_divisions(given) and X.divisions != given.divisions:
        ends, own = ((each.divisions[0], each.divisions[-1]) for each in (X, given))
        if ends != own:
            raise ValueError(
                f"{argument} has an index from {own[0]} to {own[1]}, X from {ends[0]} to {ends[1]}"
            )
        given = given.repartition(divisions=X.divisions)
    return given


def _as_dask_array(given: Any) -> Any:
    import dask.array as da

    return da.from_array(np.asarray(given), chunks=-1)


def _has_divisions(collection: Any) -> bool:
    return bool(getattr(collection, "known_divisions", False))


def _count(collection: Any, argument: str) -> int:
    if is_array(collection):
        return int(collection.numblocks[0])
    if hasattr(collection, "npartitions") and not isinstance(collection, list | tuple):
        return int(collection.npartitions)
    return len(pieces(collection, argument))


def _read(number: int, X: Any, y: Any, X_std: Any, X_cov: Any, sample_weight: Any) -> Any:
    with placed(number, word="partition"):
        order = {"X": X, "X_std": X_std, "X_cov": X_cov}
        require_one_order(order, {"y": y, "sample_weight": sample_weight})
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov, sparse=True)
        return data, y, sample_weight
