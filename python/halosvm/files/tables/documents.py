"""The three files of SVM-GSU: means, labels and covariances by the id of a document.

A line of each begins with the id, and zeros are left out:

    doc_3 1:-0.21 2:0.1 3:-0.43          means
    doc_3 +1                             labels
    doc_3 1,1:0.25 2,2:0.01 3,3:0.1      covariances

The files need not have the same order, nor the same documents: those in all are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halosvm.files.tables.numerical import Matrices
from halosvm.files.tables.trouble import TableError, counted, listing
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

COVARIANCE_KINDS = ("full", "diagonal", "isotropic")


class TextFile(NamedTuple):
    """A name for messages and what the file holds."""

    path: str
    data: bytes


def read_documents(
    means: TextFile,
    labels: TextFile | None,
    covariances: TextFile | None,
    *,
    form: str | None,
    features: Sequence[str] | None,
) -> Matrices:
    """Read documents that are in all files given, in the order of the means.

    Parameters
    ----------
    means, labels, covariances : TextFile
    form : {"full", "diagonal", "isotropic"} or None
        None for full where an entry stands beside the diagonal, else diagonal.
    features : sequence of str or None
        Those of a model, which are called 1, 2, ...
    """
    vectors = {name: (line, cells) for name, line, cells in _documents(means)}
    targets = {} if labels is None else _labels(labels)
    matrices = {} if covariances is None else {n: (k, c) for n, k, c in _documents(covariances)}
    given: list[tuple[TextFile | None, Mapping[str, Any]]] = [
        (means, vectors),
        (labels, targets),
        (covariances, matrices),
    ]
    present = [(file, documents) for file, documents in given if file is not None]
    common = [name for name in vectors if all(name in documents for _, documents in present)]
    if not common:
        raise TableError(f"{means.path}: no document is in all of the files")
    notes = []
    everything = {name for _, documents in present for name in documents}
    for file, documents in present:
        absent = [name for name in everything if name not in documents]
        if absent:
            notes.append(
                f"{counted(len(absent), 'document')} not in {file.path} left out, such as "
                f"{min(absent)!r}"
            )
    d = 0 if features is None else len(features)
    if features is not None and list(features) != [str(k + 1) for k in range(d)]:
        raise TableError(
            f"{means.path} has features 1, 2, ..., the model was trained on {listing(features, 4)}"
        )
    X = _means(means, [vectors[name] for name in common], d)
    S = None
    if covariances is not None:
        entries = [matrices[name] for name in common]
        S = _covariances(covariances, entries, form, X.shape[1])
    names = tuple(str(k + 1) for k in range(X.shape[1]))
    rows = [vectors[name][0] for name in common]
    return Matrices(names, X, S, [targets[name] for name in common if labels], rows, tuple(notes))


def _documents(file: TextFile) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the id, the line and the entries of each document."""
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"{file.path} is not UTF-8 text") from error
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split()
        if not cells:
            continue
        # in the format's own example one file writes doc_3, another doc_3:
        name = cells[0].removesuffix(":")
        if name in seen:
            raise TableError(
                f"{file.path}, line {number}: document {name!r} is on line {seen[name]} already"
            )
        seen[name] = number
        yield name, number, cells[1:]
    if not seen:
        raise TableError(f"{file.path} is empty: a line for each document is needed")


def _labels(file: TextFile) -> dict[str, str]:
    labels = {}
    for name, number, cells in _documents(file):
        if len(cells) != 1:
            raise TableError(
                f"{file.path}, line {number} has {counted(len(cells), 'cell')} behind the id; "
                "one label is needed"
            )
        labels[name] = cells[0].removeprefix("+")
    return labels


def _means(
    file: TextFile, documents: Sequence[tuple[int, list[str]]], d: int
) -> npt.NDArray[np.float64]:
    rows, columns, values = [], [], []
    for row, (line, cells) in enumerate(documents):
        for cell in cells:
            (index,), value = _entry(file, line, cell, 1)
            rows.append(row)
            columns.append(index)
            values.append(value)
    largest = max(columns, default=-1) + 1
    if d and largest > d:
        raise TableError(f"{file.path} has {largest} features, the model {d}")
    if not largest:
        raise TableError(f"{file.path} holds no entry index:value")
    # a slip in an index must not cost more memory than there are data
    if largest > 1000 * len(set(columns)) + 1000:
        raise TableError(
            f"{file.path}: the largest index is {largest}, and {len(set(columns))} are in use; "
            "renumber them"
        )
    X = np.zeros((len(documents), d or largest))
    X[rows, columns] = values
    _refuse_repeated(file, [line for line, _ in documents], rows, columns)
    return X


def _covariances(
    file: TextFile, documents: Sequence[tuple[int, list[str]]], form: str | None, d: int
) -> Covariances:
    rows, first, second, values = [], [], [], []
    for row, (line, cells) in enumerate(documents):
        for cell in cells:
            (i, j), value = _entry(file, line, cell, 2)
            if max(i, j) >= d:
                raise TableError(
                    f"{file.path}, line {line}: {cell!r} is beyond the {d} features of the means"
                )
            rows.append(row)
            first.append(i)
            second.append(j)
            values.append(value)
    lines = [line for line, _ in documents]
    _refuse_repeated(file, lines, rows, [i * d + j for i, j in zip(first, second, strict=True)])
    beside = next((k for k in range(len(rows)) if first[k] != second[k]), None)
    if form is None:
        if d > 1 and beside is None and set(first) == {0}:
            raise TableError(
                f"{file.path}: no entry but 1,1; say by --covariances-are isotropic or diagonal "
                "what it means"
            )
        form = "diagonal" if beside is None else "full"
    n = len(documents)
    if form != "full" and beside is not None:
        raise TableError(
            f"{file.path}, line {lines[rows[beside]]}: entry {first[beside] + 1},"
            f"{second[beside] + 1} does not go with --covariances-are {form}"
        )
    if form == "isotropic" and any(first):
        k = next(k for k in range(len(first)) if first[k])
        raise TableError(
            f"{file.path}, line {lines[rows[k]]}: entry {first[k] + 1},{first[k] + 1} does not go "
            "with --covariances-are isotropic, which has 1,1 alone"
        )
    if form == "full" and n * d * d > 100 * len(values) + 10**8:
        raise TableError(
            f"{file.path}: full covariances of {n} documents with {d} features would take "
            f"{8e-9 * n * d * d:.0f} GB; --covariances-are diagonal needs entries i,i alone"
        )
    try:
        if form == "full":
            matrices = np.zeros((n, d, d))
            matrices[rows, first, second] = values
            return Covariances.full(matrices, argument=file.path)
        variances = np.zeros((n, d))
        variances[rows, first] = values
        if form == "isotropic":
            return Covariances.isotropic(variances[:, 0].copy(), d, argument=file.path)
        return Covariances.diagonal(variances, argument=file.path)
    except ValueError as error:
        raise TableError(f"{error} (rows are those of the means, from 0)") from error


def _entry(file: TextFile, line: int, cell: str, n_indices: int) -> tuple[tuple[int, ...], float]:
    """Read index:value or index,index:value; indices count from 1."""
    place, _, number = cell.partition(":")
    indices = place.split(",")
    shape = "index:value" if n_indices == 1 else "index,index:value"
    if len(indices) != n_indices or not all(
        index.isascii() and index.isdecimal() and 0 < len(index) < 10 for index in indices
    ):
        raise TableError(f"{file.path}, line {line}: {cell!r} is not {shape}")
    if "0" in {index.lstrip("0") or "0" for index in indices}:
        raise TableError(f"{file.path}, line {line}: {cell!r} has the index 0; they begin with 1")
    try:
        value = float(number)
    except ValueError:
        value = np.nan
    if not np.isfinite(value) or "_" in number:
        raise TableError(f"{file.path}, line {line}: {cell!r} does not hold a finite number")
    return tuple(int(index) - 1 for index in indices), value


def _refuse_repeated(file: TextFile, lines: list[int], rows: list[int], places: list[int]) -> None:
    seen: set[tuple[int, int]] = set()
    for pair in zip(rows, places, strict=True):
        if pair in seen:
            raise TableError(f"{file.path}, line {lines[pair[0]]} gives an entry twice")
        seen.add(pair)
