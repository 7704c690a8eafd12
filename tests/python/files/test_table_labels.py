"""Labels: equal numbers are one class, longer ones than a float holds are told apart."""

import pytest
from commands.running import run, summary

from halosvm.files.tables.labels import code_of, codes_by_cell, parse_labels
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import OWN, read_table

BIG = 2**53  # and the next integer are one float


def table(tmp_path, cells):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    return path


@pytest.mark.parametrize(
    ("cells", "labels", "told"),
    [
        (["1", "1.0", "0"], ["1", "1", "0"], ("labels 1 and 1.0 are one class",)),
        (["0.0", "1", "+1", "0.0"], ["0", "1", "1", "0"], ("labels 1 and +1 are one class",)),
        (["1e0", "1", "-0", "0"], ["1", "1", "0", "0"], ("labels 1e0 and 1 are one class",)),
        (["0.5", ".5", "0.50", "1"], ["0.5", "0.5", "0.5", "1"], ("labels 0.5 and .5 are one c",)),
        # words beside numbers: names, perhaps of versions
        (["1", "1.0", "old"], ["1", "1.0", "old"], ()),
        (["1", "1_0", "10"], ["1", "1_0", "10"], ()),
        # nothing to merge: left as they stand
        (["01", "02", "03"], ["01", "02", "03"], ()),
        (["1.0", "0.0"], ["1.0", "0.0"], ()),
        ([str(BIG), str(BIG + 1)], [str(BIG), str(BIG + 1)], ()),
        (["1e999999999", "10e999999998"], ["1e999999999"] * 2, ("labels 1e9",)),
    ],
)
def test_numbers_that_are_equal_are_one_class_where_all_are_numbers(tmp_path, cells, labels, told):
    found = read_table(table(tmp_path, cells), label="kind")
    assert found.labels == labels
    assert len(found.notes) == len(told)
    assert all(note.startswith(start) for note, start in zip(found.notes, told, strict=True))


def test_labels_in_two_spellings_train_two_classes(tmp_path, capsys):
    path, model = table(tmp_path, ["0", "0.0", "1.0", "1"]), tmp_path / "m.json"
    train = ("train", path, "--label", "kind", "--C", 1, "--output", model)
    status, out, err = run(capsys, *train)
    assert status == 0
    assert summary(out)["classes"] == "0 (2), 1 (2)"
    assert "labels 0 and 0.0 are one class" in err
    status, out, _ = run(capsys, "evaluate", model, path)
    assert "(4 of 4 rows)" in out


def test_labels_of_documents_in_two_spellings_are_one_class(tmp_path):
    for name, text in (("m", "a 1:1\nb 1:2\nc 1:3\n"), ("l", "a +1\nb 1.0\nc -1\n")):
        (tmp_path / name).write_text(text)
    found = read_table(tmp_path / "m", label=OWN, reading=Reading(labels=tmp_path / "l"))
    assert parse_labels(found.labels).tolist() == [1, 1, -1]


def test_classes_of_a_model_are_compared_exactly():
    codes = codes_by_cell([BIG, BIG + 1])
    assert [code_of(f"{value}.0", codes) for value in (BIG, BIG + 1)] == [0, 1]
    assert code_of(f"{BIG + 2}", codes) is None
