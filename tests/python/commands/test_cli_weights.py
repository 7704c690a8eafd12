"""Weights of rows: a weight of two is a row twice, in training and in evaluation."""

import csv
import json

import numpy as np
import pytest
from commands.running import run, summary

from halosvm import load_model
from halosvm.files.model_file import ModelFileError
from halosvm.files.table_models import load

N = 60


def rows(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 2
    x = rng.normal(size=(N, 2)) + y[:, None]
    std = rng.uniform(0.2, 1, size=(N, 2))
    z = x @ [1.0, -2.0] + 0.3 * rng.normal(size=N)
    w = rng.integers(0, 4, N)
    return [
        [*map(repr, (*map(float, a), *map(float, s))), ["no", "yes"][k], repr(float(v)), int(c)]
        for a, s, k, v, c in zip(x, std, y, z, w, strict=True)
    ]


NAMES = ["a", "b", "a_std", "b_std", "kind", "z", "w"]


def write(path, rows, names=NAMES):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture
def weighted(tmp_path):
    return write(tmp_path / "weighted.csv", rows())


@pytest.fixture
def repeated(tmp_path):
    """The same rows, each as often as it weighs."""
    return write(
        tmp_path / "repeated.csv", [r[:-1] for r in rows() for _ in range(r[-1])], NAMES[:-1]
    )


TASKS = {
    "classification": ("--label", "kind", "--drop", "z"),
    "regression": ("--task", "regression", "--label", "z", "--drop", "kind"),
    "errors of values": (
        *("--task", "regression", "--label", "z", "--features", "a,b", "--error", "z=b_std"),
        *("--loss", "squared_error"),
    ),
    "measurement": ("--label", "kind", "--drop", "z", "--errors", "measurement"),
    "kernel": ("--label", "kind", "--drop", "z", "--kernel", "rbf", "--gamma", "0.5"),
}
# C times the weight is what a row costs; the tolerances are those of the optimum
FIT = ("--C", 0.5, "--folds", 0, "--tol", 1e-10)


def predictions(capsys, model, path):
    status, out, err = run(capsys, "predict", model, path)
    assert status == 0, err
    lines = list(csv.DictReader(out.splitlines()))
    name = "value" if "value" in lines[0] else "decision_value"
    return np.array([float(line[name]) for line in lines])


@pytest.mark.parametrize("task", TASKS)
def test_weight_of_two_is_a_row_twice_in_training(tmp_path, capsys, weighted, repeated, task):
    found = []
    for path, how in ((weighted, ("--weight", "w")), (repeated, ())):
        model = tmp_path / "m.json"
        status, out, err = run(capsys, "train", path, *TASKS[task], *how, *FIT, "--output", model)
        assert status == 0, err
        assert summary(out)["features"].startswith("2, ")
        assert ("weights" in summary(out)) == bool(how)
        found.append(predictions(capsys, model, weighted))
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    plain = tmp_path / "plain.json"
    drop = (*TASKS[task], *FIT, "--output", plain)
    if "--features" not in drop:
        at = drop.index("--drop") + 1
        drop = (*drop[:at], drop[at] + ",w", *drop[at + 1 :])
    assert run(capsys, "train", weighted, *drop)[0] == 0
    assert np.abs(predictions(capsys, plain, weighted) - found[0]).max() > 1e-3


@pytest.mark.parametrize("errors", ["distribution", "measurement"])
def test_rows_without_weight_change_nothing(tmp_path, capsys, errors):
    """Neither the population, nor the scale, the machine or the curve of probabilities."""
    found = []
    for moved in (0.0, 50.0):
        table = [[float(r[0]) + moved * (r[-1] == 0), *r[1:]] for r in rows()]
        path, model = write(tmp_path / "t.csv", table), tmp_path / "m.json"
        options = ("--label", "kind", "--drop", "z", "--weight", "w", "--errors", errors)
        fit = ("--calibrate", "sigmoid", "--C", 0.5, "--tol", 1e-10, "--output", model)
        status, out, err = run(capsys, "train", path, *options, *fit)
        assert status == 0, err
        points = write(tmp_path / "new.csv", rows(1))
        status, out, _ = run(capsys, "predict", model, points)
        assert status == 0
        found.append([[float(c) for c in line.split(",")[1:]] for line in out.splitlines()[1:]])
        assert "probability" in out
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_weights_count_in_cross_validation(tmp_path, capsys, weighted):
    """Rows of weight 0 that are mislabelled do not lower the accuracy, with weight 1 they do."""
    told = []
    for weight in (0, 1):
        good = [[f"{3 if k % 2 else -3}", "ab"[k % 2], 1] for k in range(20)]
        bad = [[f"{3 if k % 2 else -3}", "ba"[k % 2], weight] for k in range(8)]
        path = write(tmp_path / "t.csv", [*good, *bad], ["x", "kind", "w"])
        options = ("--label", "kind", "--weight", "w", "--output", tmp_path / "m.json")
        for C in ((), ("--C", 1)):
            status, out, err = run(capsys, "train", path, *options, *C)
            assert status == 0, err
            told.append(summary(out)["accuracy"].split(" %")[0])
    assert told[:2] == ["100.00", "100.00"]
    assert max(map(float, told[2:])) < 80


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_what_weights_are_counted_in_changes_nothing_of_the_search(tmp_path, capsys, task):
    found = []
    for unit in (1.0, 1e-6, 1e6):
        table = [[*r[:-1], repr(unit * (k % 3))] for k, r in enumerate(rows())]
        path = write(tmp_path / "t.csv", table)
        model = tmp_path / "m.json"
        options = (*TASKS[task], "--weight", "w", "--output", model)
        status, out, err = run(capsys, "train", path, *options)
        assert status == 0, err
        score = summary(out)["accuracy" if task == "classification" else "R^2"].split(" by ")[0]
        found.append((score, load_model(model).C * unit, predictions(capsys, model, path)))
    for score, C, values in found[1:]:
        assert score == found[0][0]
        assert pytest.approx(found[0][1], rel=1e-9) == C
        np.testing.assert_allclose(values, found[0][2], rtol=1e-3, atol=1e-4)


def test_weight_of_two_is_a_row_twice_in_evaluation(tmp_path, capsys, weighted, repeated):
    for task in ("classification", "regression"):
        model = tmp_path / f"{task}.json"
        options = (*TASKS[task], "--weight", "w", *FIT, "--output", model)
        assert run(capsys, "train", weighted, *options)[0] == 0
        status, out, _ = run(capsys, "evaluate", model, weighted)
        assert status == 0
        assert out.startswith("weights      of column 'w', in all but counts of rows")
        found = out.splitlines()[1:]
        status, out, err = run(capsys, "evaluate", model, repeated)
        assert "no column 'w', the weights of the model: all rows count alike" in err
        expected = out.splitlines()
        if task == "regression":
            assert [line.split(" (")[0] for line in found] == [
                line.split(" (")[0] for line in expected
            ]
            continue
        for name in ("accuracy", "expected", "F1", "ranking"):
            lines = [next(x for x in each if x.startswith(name)) for each in (found, expected)]
            assert lines[0].split(" (")[0] == lines[1].split(" (")[0]
        for label in ("no", "yes"):
            last = [
                [x for x in each if x.startswith(f"{label} ")][-1] for each in (found, expected)
            ]
            assert last[0].split()[:4] == last[1].split()[:4]


def test_first_rows_are_judged_by_their_weights(tmp_path, capsys):
    train = [[x, "ab"[x > 0], 1] for x in (-2, -1, 1, 2)]
    path, model = write(tmp_path / "t.csv", train, ["x", "kind", "w"]), tmp_path / "m.json"
    options = ("--label", "kind", "--weight", "w", "--C", 1, "--output", model)
    assert run(capsys, "train", path, *options)[0] == 0
    ranked = [[9, "b", 3], [8, "a", 1], [7, "b", 2], [-9, "a", 5]]
    write(path, ranked, ["x", "kind", "w"])
    _, out, _ = run(capsys, "evaluate", model, path, "--at", "2,3")
    lines = [line.split() for line in out.splitlines() if line.startswith("  first")]
    assert lines[0][1::2] == ["2", "0.7500", "0.6000"]  # 3 of 4, 3 of 5
    assert lines[1][1::2] == ["3", f"{5 / 6:.4f}", "1.0000"]


def test_weights_of_training_are_no_feature_and_needed_for_no_prediction(
    tmp_path, capsys, weighted
):
    model = tmp_path / "m.json"
    options = ("--label", "kind", "--drop", "z", "--weight", "w", *FIT, "--output", model)
    assert run(capsys, "train", weighted, *options)[0] == 0
    assert load_model(model).feature_names_in_.tolist() == ["a", "b"]
    assert json.loads(model.read_text())["table"]["weight"] == "w"
    without = write(tmp_path / "t.csv", [r[:4] for r in rows()], NAMES[:4])
    bad = write(tmp_path / "bad.csv", [[*r[:-1], "-1"] for r in rows()])
    np.testing.assert_array_equal(
        predictions(capsys, model, without), predictions(capsys, model, bad)
    )


@pytest.mark.parametrize(
    ("cell", "options", "status", "message"),
    [
        ("-1", (), 1, "line 3, column 'w': -1 is negative; a weight must be >= 0"),
        ("", (), 1, "line 3, column 'w': missing value (an empty cell); --missing drop"),
        ("much", (), 1, "line 3, column 'w': 'much' is not a number"),
        ("inf", (), 1, "line 3, column 'w': inf is not a finite number"),
        (
            "1",
            ("--features", "a,w"),
            1,
            "'w' is given as a feature and as the label or weight",
        ),
        ("1", ("--label", "w"), 2, "column 'w' is given as the label and as the weight"),
        ("1", ("--weight", "u"), 1, "has no column 'u'"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path, capsys, cell, options, status, message):
    table = [[*r[:-1], "1"] for r in rows()]
    table[1][-1] = cell
    path = write(tmp_path / "t.csv", table)
    common = ("--label", "kind", "--drop", "z", "--weight", "w", "--output", tmp_path / "m.json")
    found, _, err = run(capsys, "train", path, *common, *options)
    assert found == status
    assert message in err


def test_rows_without_a_weight_are_dropped_where_that_is_asked_for(tmp_path, capsys):
    table = [[*r[:-1], "" if k % 10 == 3 else "2"] for k, r in enumerate(rows())]
    path = write(tmp_path / "t.csv", table)
    options = ("--label", "kind", "--drop", "z", "--weight", "w", "--missing", "drop", *FIT)
    status, out, err = run(capsys, "train", path, *options, "--output", tmp_path / "m.json")
    assert (status, summary(out)["rows"]) == (0, "54")
    assert summary(out)["weights"] == "2 to 2, of column 'w'"
    assert "6 of 60 rows with missing cells left out" in err


def test_no_weight_above_0_is_refused(tmp_path, capsys):
    path = write(tmp_path / "t.csv", [[*r[:-1], 0] for r in rows()])
    status, _, err = run(capsys, "train", path, "--label", "kind", "--weight", "w")
    assert status == 1
    assert "column 'w': no weight is above 0" in err


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        ({"weight": 3}, "table.weight: expected a string"),
        ({"label": ["x"]}, "table.label: expected a string"),
        ({"errors": {"a": {"columns": "a_std", "holds": "std"}}}, "table.errors.a.columns: expec"),
        (
            {"errors": {"a": {"columns": [], "holds": "std"}}},
            "errors.a.columns: expected one",
        ),
        ({"errors": {"a": {"columns": ["b"], "holds": "x"}}}, "table.errors.a.holds: expected one"),
        ({"errors": []}, "table.errors: expected an object"),
        ({"more": 1}, "table: 'more' is unknown"),
        (7, "table: expected an object"),
    ],
)
def test_damaged_memory_of_a_table_is_told_with_its_place(
    tmp_path, capsys, weighted, damage, place
):
    model = tmp_path / "m.json"
    options = ("--label", "kind", "--drop", "z", "--weight", "w", *FIT, "--output", model)
    assert run(capsys, "train", weighted, *options)[0] == 0
    document = json.loads(model.read_text())
    document["table"] = document["table"] | damage if isinstance(damage, dict) else damage
    model.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="is damaged") as caught:
        load(model)
    assert place in str(caught.value)
