"""Examples larger than memory: chunks that are read again for each pass over the data.

In:  a callable that returns a fresh iterator, shards of .npy files, or a Parquet data set.
Out: chunks (X, y[, sample_weight]) one after another, the next one read ahead in a thread.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from halosvm.checks.parameters import require_count
from halosvm.files.parquet import ParquetColumns
from halosvm.gaussians.gaussians import as_gaussians

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    PathLike: TypeAlias = str | os.PathLike[str]
    Chunk: TypeAlias = tuple[Any, ...]

_WAIT = 0.05  # seconds between two looks for signals
_END: Any = object()


@dataclass(frozen=True)
class Chunks:
    """Chunks of examples that can be read again; made by `halosvm.chunks`.

    Attributes
    ----------
    read : callable
        Returns a fresh iterator of pairs: where a chunk is, in words, and the chunk.
    steps : tuple
        Functions, with further arguments, through which each chunk goes.
    """

    read: Callable[[], Iterable[tuple[str, Chunk]]]
    steps: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()

    @property
    def n_threads(self) -> int | None:
        """How many threads work on a chunk: all, since chunks come one after another."""
        return None

    def then(self, function: Callable[..., Any], *arguments: Any) -> Chunks:
        """Return chunks that the function is applied to whenever they are read."""
        return Chunks(self.read, (*self.steps, (function, arguments)))

    def map(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Return function(chunk, *arguments) of each chunk; two of them are in memory at a time."""
        for number, held in enumerate(_read_ahead(self.read)):
            place, item = held.pop()  # from here alone: the next chunk needs the memory
            with placed(number, place):
                for step, others in (*self.steps, (function, arguments)):
                    item = step(item, *others)
            yield item
            del item

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[list[Any]], Any], *arguments: Any
    ) -> Any:
        """Return what `combine` makes of lists of function(chunk, *arguments), in their order."""
        total: Any = None
        for one in self.map(function, *arguments):
            total = combine([one] if total is None else [total, one])
        if total is None:
            raise ValueError(
                "there are no chunks in a later pass; source must return the same chunks, from the "
                "first, each time"
            )
        return total


def chunks(
    source: Callable[[], Iterable[Chunk]] | PathLike | Sequence[PathLike],
    y: str | Sequence[PathLike] | None = None,
    *,
    X_std: Sequence[PathLike] | None = None,
    sample_weight: str | Sequence[PathLike] | None = None,
    columns: Sequence[str] | None = None,
    rows: int = 65536,
) -> Chunks:
    """Return chunks of examples for the `fit` of `UncertainSVC` and `UncertainSVR`.

    A fit reads all chunks in each of its passes, and holds two of them in memory: one in use, and
    the next, which a thread reads meanwhile. The model is that of all chunks in one array.

    Parameters
    ----------
    source : callable, path, or sequence of paths
        - A callable without arguments that returns a fresh iterator over the same chunks each time.
          A chunk is a tuple (X, y) or (X, y, sample_weight), where X is Gaussians or an array.
        - Paths of .npy files: shards of the means, of shape (n, n_features). They are read by
          memory maps, in chunks of `rows` rows.
        - A Parquet file, a folder of them, or a sequence of files, read by pyarrow.
    y : str or sequence of paths
        The shards of labels or values; of a Parquet data set the name of their column.
    X_std : sequence of paths, optional
        Shards of standard deviations. In a Parquet data set errors stand in columns named after
        the feature, as for `Gaussians.from_frame`: ``radius`` and ``radius_std``, ``radius_err`` or
        ``radius_ivar``; a feature without such a column is certain.
    sample_weight : str or sequence of paths, optional
        Shards, or a column, of weights.
    columns : sequence of str, optional
        The features of a Parquet data set; by default all columns that have no other role.
    rows : int, default=65536
        The most rows of a chunk that is read from files.

    Returns
    -------
    Chunks

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians, UncertainSVC, chunks
    >>> def read():
    ...     for seed in range(3):  # such as one file after another
    ...         rng = np.random.default_rng(seed)
    ...         y = rng.integers(0, 2, 100)
    ...         yield Gaussians(rng.normal(size=(100, 2)) + 3 * y[:, None], std=np.ones(100)), y
    >>> clf = UncertainSVC().fit(chunks(read))
    >>> clf.predict([[0.0, 0.0], [3.0, 3.0]])
    array([0, 1])
    """
    require_count(rows, "rows")
    if callable(source):
        others = {"y": y, "X_std": X_std, "sample_weight": sample_weight, "columns": columns}
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"{name} is given, but source is a callable, whose chunks hold it")
        return Chunks(_Called(source))
    paths = _listed(source)
    if not paths:
        raise ValueError("source is an empty list; at least one path is needed")
    if y is None:
        raise ValueError("y is not given; name the column, or the files, of labels or values")
    if not all(str(path).endswith(".npy") for path in map(Path, paths)):
        if X_std is not None:
            raise ValueError("X_std is given, but errors of a Parquet data set are columns")
        if not isinstance(y, str) or not isinstance(sample_weight, str | None):
            raise TypeError("y and sample_weight of a Parquet data set are names of columns")
        names = None if columns is None else list(columns)
        return Chunks(ParquetColumns([str(path) for path in paths], y, sample_weight, names, rows))
    if columns is not None:
        raise ValueError("columns is given, but .npy files have no names of columns")
    shards = {"X": paths}
    for name, given in (("y", y), ("X_std", X_std), ("sample_weight", sample_weight)):
        if given is None:
            continue
        shards[name] = _listed(given)
        if len(shards[name]) != len(paths):
            raise ValueError(f"{name} has {len(shards[name])} files, source has {len(paths)}")
    return Chunks(_Shards(shards, rows))


def _listed(paths: Any) -> list[Any]:
    one = isinstance(paths, str) or hasattr(paths, "__fspath__")
    return [paths] if one else list(paths)


@dataclass(frozen=True)
class _Called:
    """Chunks that a callable returns."""

    source: Callable[[], Iterable[Chunk]]

    def __call__(self) -> Iterator[tuple[str, Chunk]]:
        for chunk in self.source():
            yield "", chunk


@dataclass(frozen=True)
class _Shards:
    """Arrays in .npy files, a file of each argument for each shard."""

    files: dict[str, list[Any]]
    rows: int

    def __call__(self) -> Iterator[tuple[str, Chunk]]:
        names = list(self.files)
        for files in zip_longest(*self.files.values()):
            of_each = dict(zip(names, files, strict=True))
            sizes = {name: len(np.load(file, mmap_mode="r")) for name, file in of_each.items()}
            for name, size in sizes.items():
                if size != sizes["X"]:
                    raise ValueError(
                        f"{name}: {of_each[name]} has {size} rows, {of_each['X']} has {sizes['X']}"
                    )
            for begin in range(0, sizes["X"], self.rows):
                # Maps are opened for each chunk: what was read of them counts as memory in use.
                some = slice(begin, begin + self.rows)
                place = f"{of_each['X']} from row {begin}"
                read = {name: _rows_of(file, some) for name, file in of_each.items()}
                with located(place):
                    X = as_gaussians(read["X"], X_std=read.get("X_std"))
                yield place, (X, read["y"], read.get("sample_weight"))


def _rows_of(file: Any, some: slice) -> Any:
    return np.array(np.load(file, mmap_mode="r")[some])


def _read_ahead(read: Callable[[], Iterable[tuple[str, Chunk]]]) -> Iterator[list[Any]]:
    """Return what an iterator returns, each in a list, to be taken from there.

    A thread asks for the next item meanwhile.
    """
    iterator = iter(read())
    pool = ThreadPoolExecutor(1, thread_name_prefix="halosvm-chunks")
    held: list[Any] = []
    number, done = 0, False
    try:
        while not done:
            coming = pool.submit(next, iterator, _END)
            if held:
                yield held
            while not coming.done():
                wait([coming], _WAIT)  # in which Ctrl-C is seen
            with placed(number):
                held = [coming.result()]
            del coming
            done = held[0] is _END
            number += 1
    finally:
        if not done and hasattr(iterator, "close"):
            pool.submit(iterator.close)  # in the thread that may be using it
        # A thread that has not ended keeps memory, which the next pass would take anew; but who
        # interrupts does not wait for a chunk.
        pool.shutdown(wait=done)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Say in errors of values where they were read."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{place}: {error}") from error


@contextmanager
def placed(number: int, place: str = "", word: str = "chunk") -> Iterator[None]:
    """Say in errors of values, and in a note to others, in which chunk they were met."""
    at = f"{word} {number} ({place})" if place else f"{word} {number}"
    try:
        with located(at):
            yield
    except (ValueError, TypeError):
        raise
    except Exception as error:
        error.add_note(f"This was in {at}.")
        raise
