"""Rows of one object: together in each split, and left out of a judgement where they were seen."""

import json

import numpy as np
import pytest
from commands.running import run, summary

from halosvm.commands.tables import tasks

RNG = np.random.default_rng(3)
N_OBJECTS, EACH = 30, 6
OBJECT = np.repeat(np.arange(N_OBJECTS), EACH)
LABEL = np.array(["no", "yes"])[RNG.integers(0, 2, N_OBJECTS)][OBJECT]
# What is seen of an object says which it is, and nothing of its label.
SEEN = RNG.normal(size=(N_OBJECTS, 40))[OBJECT] + 0.01 * RNG.normal(size=(len(OBJECT), 40))


def write(path, rows):
    names = [f"f{j}" for j in range(SEEN.shape[1])]
    lines = [",".join(["star", *names, "kind"])]
    lines += [",".join([f"s{OBJECT[i]}", *map(repr, SEEN[i].tolist()), LABEL[i]]) for i in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def score(out):
    return float(summary(out)["accuracy"].split()[0])


def test_objects_that_are_seen_on_both_sides_no_longer_flatter_the_score(tmp_path, capsys):
    table = write(tmp_path / "t.csv", range(len(OBJECT)))
    common = ("train", table, "--label", "kind", "--C", 1, "--output", tmp_path / "m.json")
    _, flattered, _ = run(capsys, *common, "--drop", "star")
    status, out, _ = run(capsys, *common, "--group", "star")
    assert status == 0
    assert score(flattered) == 100
    assert score(out) < 80
    assert summary(out)["groups"].startswith("30, of column 'star', none on both sides")
    assert "star" not in json.loads((tmp_path / "m.json").read_text())["feature_names"]


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("classification", ["--C", "cv"]),
        ("classification", ["--calibrate", "sigmoid"]),
        ("regression", ["--C", "cv"]),
    ],
)
def test_no_split_has_rows_of_an_object_on_both_sides(tmp_path, capsys, monkeypatch, options, task):
    seen = []
    folds = tasks.Task.folds

    def watched(self, *arguments):
        seen.append(folds(self, *arguments))
        return seen[-1]

    monkeypatch.setattr(tasks.Task, "folds", watched)
    table = write(tmp_path / "t.csv", range(0, len(OBJECT), 2))
    target = "kind" if task == "classification" else "f0"
    words = ("train", table, "--label", target, "--task", task, "--group", "star", *options)
    drop = () if target == "kind" else ("--drop", "kind")
    assert run(capsys, *words, *drop, "--output", tmp_path / "m.json")[0] == 0
    objects = OBJECT[::2]
    assert len(seen) == (2 if "--calibrate" in options else 1)
    for splits in seen:
        assert len(splits) == 5
        for train, test in splits:
            assert set(objects[train]).isdisjoint(objects[test])
        assert sorted(np.concatenate([test for _, test in splits])) == list(range(len(objects)))


def test_objects_of_the_training_are_left_out_of_the_judgement(tmp_path, capsys):
    first = np.flatnonzero(OBJECT < 20)
    train = write(tmp_path / "train.csv", first)
    both = write(tmp_path / "both.csv", range(len(OBJECT)))
    new = write(tmp_path / "new.csv", np.flatnonzero(OBJECT >= 20))
    model = tmp_path / "m.json"
    common = ("train", "--label", "kind", "--C", 1, "--folds", 0, "--output", model)
    assert run(capsys, *common, train, "--group", "star")[0] == 0
    expected = run(capsys, "evaluate", model, new)[1]
    status, out, err = run(capsys, "evaluate", model, both, "--group", "star")
    assert (status, out) == (0, expected)
    assert "120 rows left out: the model was trained on their 'star'" in err
    assert "--group star leaves out" in run(capsys, "evaluate", model, both)[2]
    status, _, err = run(capsys, "evaluate", model, train, "--group", "star")
    assert status == 1
    assert "the model was trained on the objects of all rows" in err
    run(capsys, *common, train, "--drop", "star")
    status, _, err = run(capsys, "evaluate", model, both, "--group", "star")
    assert status == 2
    assert "the model was trained without --group" in err


def test_a_row_without_its_group_is_named(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("star,a,kind\ns1,1,x\n,2,y\n")
    words = ("train", path, "--label", "kind", "--C", 1, "--output", tmp_path / "m.json")
    status, _, err = run(capsys, *words, "--group", "star")
    assert status == 1
    assert "line 3, column 'star': the group is missing" in err
