"""Rows of text by its bytes: those of `csv`, in little memory, and Python looks at what fails."""

import csv
import io
import tracemalloc

import numpy as np
import pytest

from halosvm.files.tables import rows, text
from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import read_table
from halosvm.files.tables.text import TextColumns

LETTERS = np.array(list('ab ",,"\n\n;é'))


def of_csv(content):
    """The last line, and the number of cells, of each row, or None for what is no CSV."""
    lines = [line + "\n" for line in content.split("\n")]
    lines = lines[:-1] if lines[-1] == "\n" else lines
    reader, found = csv.reader(lines, strict=True), []
    try:
        found.extend((reader.line_num - 1, max(len(row), 1)) for row in reader)
    except csv.Error:
        return None
    return found


@pytest.mark.parametrize("part", [1, 3, 7, 1 << 20])
def test_rows_are_those_of_csv_wherever_the_bytes_tell(monkeypatch, part):
    monkeypatch.setattr(rows, "_PART", part)
    rng = np.random.default_rng(part)
    told = 0
    for _ in range(1500):
        content = "".join(rng.choice(LETTERS, rng.integers(1, 25)))
        got = rows.count_cells(memoryview(content.encode()), ord(","), quoted=True)
        if got is not None:
            told += 1
            assert list(zip(got.lines.tolist(), got.cells.tolist(), strict=True)) == of_csv(content)
    assert told > 200
    for _ in range(200):
        cells = [["".join(rng.choice(LETTERS, rng.integers(0, 6))) for _ in range(3)] for _ in "ab"]
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows(cells)
        content = stream.getvalue()
        got = rows.count_cells(memoryview(content.encode()), ord(","), quoted=True)
        assert got is not None
        assert list(zip(got.lines.tolist(), got.cells.tolist(), strict=True)) == of_csv(content)


def test_reading_by_bytes_is_reading_line_by_line(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(
        'a,kind\n\n1,"x, y"\n  \n"2","two\nlines"\n3,"""z"""\n#4,x\n4,é\n'.replace("#4", "5")
    )
    by_bytes = read_table(path, label="kind")
    monkeypatch.setattr(text, "count_cells", lambda *_args, **_options: None)
    by_lines = read_table(path, label="kind")
    assert by_bytes.labels == by_lines.labels == ["x, y", "two\nlines", '"z"', "x", "é"]
    assert by_bytes.lines.tolist() == by_lines.lines.tolist() == [3, 6, 7, 8, 9]
    assert by_bytes.notes == by_lines.notes
    np.testing.assert_array_equal(by_bytes.mean, by_lines.mean)


def test_rows_are_found_in_little_memory(monkeypatch):
    monkeypatch.setattr(rows, "_PART", 1 << 14)
    line = b"1.2345678901234567,-1.2345678901234567,3.2345678901234567,no\n"
    data = b"a,b,c,kind\n" + line * 40000
    tracemalloc.start()
    columns = TextColumns("t.csv", data, Dialect())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(columns.lines) == 40000
    assert peak < 2 * len(data)  # a list of the lines alone takes as much again, and objects


def test_python_looks_at_the_column_that_fails_alone(tmp_path, monkeypatch):
    values = np.random.default_rng(0).normal(size=(50, 4))
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    lines[30] = " NA ," + lines[30].split(",", 1)[1]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,d", *lines]) + "\n")
    seen = []
    number = text.number_of
    monkeypatch.setattr(text, "number_of", lambda *given: seen.append(given) or number(*given))
    table = read_table(path, reading=Reading(missing="drop"))
    np.testing.assert_array_equal(table.mean, np.delete(values, 30, axis=0))
    assert len(seen) < 2 * len(values)
