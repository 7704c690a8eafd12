"""Parquet data sets: columns by their names in, chunks of Gaussians with targets out.

pyarrow is imported when the first chunk is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.error_names import error_columns
from halosvm.gaussians.frames_with_errors import standard_deviations, warn_of_errors_among
from halosvm.gaussians.gaussians import as_gaussians

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.checks.error_names import ErrorColumn


@dataclass(frozen=True)
class ParquetColumns:
    """What the columns of a data set mean.

    Attributes
    ----------
    paths : list of str
        A file, a folder of files, or files.
    y, sample_weight : str
        The columns of targets and of weights, if any.
    features : list of str, or None
        The columns of features; None for all that have no other role.
    rows : int
        The most rows of a chunk.
    """

    paths: list[str]
    y: str
    sample_weight: str | None
    features: list[str] | None
    rows: int

    def __call__(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Return a fresh iterator over the chunks, each with where it is, in words."""
        try:
            from pyarrow import dataset
        except ImportError as error:
            raise ImportError(
                "Parquet data sets are read by pyarrow: pip install 'halosvm[io]'"
            ) from error
        where = self.paths[0] if len(self.paths) == 1 else self.paths
        data = dataset.dataset(where, format="parquet")
        features, errors = self._roles(data.schema.names)
        warn_of_errors_among(features)
        columns = [*features, *(name for e in errors.values() for name in e.names), self.y]
        columns += [] if self.sample_weight is None else [self.sample_weight]
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # our own thread reads ahead, too
        begin = 0
        for batch in data.to_batches(columns=columns, batch_size=self.rows, **ahead):
            yield f"from row {begin} of the data set", self._chunk(batch, features, errors)
            begin += batch.num_rows

    def _roles(self, names: list[str]) -> tuple[list[str], dict[str, ErrorColumn]]:
        """Return the features, and the column of errors of each that has one."""
        wanted = [self.y, *(self.features or [])]
        wanted += [] if self.sample_weight is None else [self.sample_weight]
        for name in wanted:
            if name not in names:
                raise ValueError(f"there is no column {name!r}; there are {', '.join(names)}")
        # what pandas calls an index without a name
        names = [name for name in names if not re.fullmatch(r"__index_level_\d+__", name)]
        others = [name for name in names if name not in {self.y, self.sample_weight}]
        numbers = others if self.features is None else self.features
        free = set(others) - set(self.features or ())
        errors = error_columns(numbers, free, "leave one out of the data set")
        used = {name for error in errors.values() for name in error.names}
        features = [name for name in numbers if name not in used]
        if not features:
            raise ValueError("there is no column of a feature")
        return features, errors

    def _chunk(
        self, batch: Any, features: list[str], errors: dict[str, ErrorColumn]
    ) -> tuple[Any, ...]:
        mean = np.column_stack([_numbers(batch, name) for name in features])
        std = None
        if errors:
            std = np.zeros(mean.shape, mean.dtype)
            for j, name in enumerate(features):
                if name in errors:
                    given = np.column_stack([_numbers(batch, own) for own in errors[name].names])
                    std[:, j] = standard_deviations(given, errors[name])
        X = as_gaussians(mean, X_std=std)
        X = X.replaced(feature_names=np.array(features, dtype=object))
        weights = None if self.sample_weight is None else _numbers(batch, self.sample_weight)
        return X, _plain(batch, self.y), weights


def _numbers(batch: Any, name: str) -> NDArray[Any]:
    values = _plain(batch, name)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"column {name!r} has dtype {values.dtype}; real numbers are needed")
    return values


def _plain(batch: Any, name: str) -> NDArray[Any]:
    """Return a column as an array after a check that nothing is missing."""
    column = batch.column(name)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"column {name!r}, row {row} is missing; fill it or leave out its row")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
