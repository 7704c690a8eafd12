"""The three files of SVM-GSU, read and written: means, labels and covariances by document.

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
from halosvm.gaussians.covariance_kinds import storage_of
from halosvm.gaussians.covariances import Covariances

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from halosvm.files.tables.room import Room
    from halosvm.files.tables.table import Table


class TextFile(NamedTuple):
    """A name for messages and what the file holds."""

    path: str
    data: bytes


class DocumentFiles(NamedTuple):
    """Where labels and covariances are to be written."""

    labels: str | os.PathLike[str] | None = None
    covariances: str | os.PathLike[str] | None = None


MEANS_ALONE = DocumentFiles()


def read_documents(
    means: TextFile,
    labels: TextFile | None,
    covariances: TextFile | None,
    *,
    form: str | None,
    features: Sequence[str] | None,
    room: Room,
) -> Matrices:
    """Read documents that are in all files given, in the order of the means.

    Parameters
    ----------
    means, labels, covariances : TextFile
    form : {"full", "diagonal", "isotropic"} or None
        None for full where an entry stands beside the diagonal, else diagonal.
    features : sequence of str or None
        Those of a model, which are called 1, 2, ...
    room : Room
        The memory that the documents may take.
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
    X = _means(means, [vectors[name] for name in common], d, room)
    S = None
    if covariances is not None:
        entries = [matrices[name] for name in common]
        S = _covariances(covariances, entries, form, X.shape[1], room)
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
    file: TextFile, documents: Sequence[tuple[int, list[str]]], d: int, room: Room
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
    n, d = len(documents), d or largest
    room.require(file.path, 8.0 * n * d, f"the means of {n} documents with {d} features")
    X = np.zeros((n, d))
    X[rows, columns] = values
    _refuse_repeated(file, [line for line, _ in documents], rows, columns)
    return X


def _covariances(
    file: TextFile,
    documents: Sequence[tuple[int, list[str]]],
    form: str | None,
    d: int,
    room: Room,
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
    if form == "full":
        what = f"full covariances of {n} documents with {d} features"
        room.require(file.path, 8.0 * n * d * d, what)
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


# ---- writing -------------------------------------------------------------------------------------
def documents_text(table: Table, files: DocumentFiles) -> tuple[tuple[str, str, str], list[str]]:
    """Return means, labels and covariances as text, and what is to be known for reading them.

    Documents are called by their number in the table.
    """
    targets = table.labels if table.values is None else [repr(v) for v in table.values.tolist()]
    S = table.covariances
    if table.std is not None:
        S = Covariances.from_std(table.std)
    given = {
        "labels": (bool(targets), files.labels),
        "covariances": (S is not None, files.covariances),
    }
    for what, (there, path) in given.items():
        if there and path is None:
            raise TableError(f"{table.path} has {what}; name a file for them by --to-{what}")
        if path is not None and not there:
            raise TableError(f"{table.path} has no {what}; leave --to-{what} out")
    if table.values_std is not None:
        raise TableError(f"{table.path} has errors of its values, which svm-gsu cannot hold")
    for row, cell in enumerate(targets):
        if cell.startswith("+") or len(cell.split()) != 1:
            raise TableError(
                f"{table.place(row)}: the label {cell!r} would be read otherwise; svm-gsu holds "
                "words without blanks that do not begin with +"
            )
    names = [f"doc_{row + 1}" for row in range(len(table.lines))]
    labels = "".join(f"{name} {cell}\n" for name, cell in zip(names, targets, strict=False))
    covariances, notes = ("", []) if S is None else _covariance_lines(names, S)
    return (_mean_lines(names, table.mean), labels, covariances), notes


def _mean_lines(names: Sequence[str], mean: Any) -> str:
    lines = []
    for row, name in enumerate(names):
        values = mean[[row]].toarray()[0] if hasattr(mean, "toarray") else mean[row]
        # the last feature tells how many there are
        lines.append(_line(name, [(j,) for j in _entries(values, last=row == 0)], values))
    return "".join(lines)


def _covariance_lines(names: Sequence[str], S: Covariances) -> tuple[str, list[str]]:
    """Return the entries of covariances, of which the first document tells the kind."""
    d = S.shape[1]
    if storage_of(S).spherical:
        lines = [_line(n, [(0, 0)], v[:1, None]) for n, v in zip(names, S.variances(), strict=True)]
        note = "covariances are isotropic, which --covariances-are has to tell"
        return "".join(lines), [note] if d > 1 else []
    if storage_of(S).independent:
        lines = []
        for row, (name, variances) in enumerate(zip(names, S.variances(), strict=True)):
            places = [(j, j) for j in _entries(variances, last=row == 0)]
            lines.append(_line(name, places, np.diag(variances)))
        return "".join(lines), []
    lines = []
    for row, name in enumerate(names):
        matrix = S[[row]].to_full()[0]
        there = _there(matrix)
        there[0, -1] |= row == 0
        places = [divmod(int(at), d) for at in np.flatnonzero(there)]
        lines.append(_line(name, places, matrix))
    return "".join(lines), []


def _entries(values: npt.NDArray[np.float64], *, last: bool) -> list[int]:
    there = _there(values)
    there[-1] |= last
    places: list[int] = np.flatnonzero(there).tolist()
    return places


def _there(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell what is not +0."""
    return np.asarray((values != 0) | np.signbit(values))


def _line(name: str, places: Sequence[tuple[int, ...]], values: npt.NDArray[np.float64]) -> str:
    cells = (f"{','.join(str(k + 1) for k in at)}:{float(values[at])!r}" for at in places)
    return " ".join([name, *cells]) + "\n"
