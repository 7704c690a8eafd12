"""What a command asks or tells where a table may mean two things."""

import numpy as np
import pytest
from commands.running import run, summary
from sklearn.datasets import dump_svmlight_file

from halosvm.files.tables.table import OWN, read_table

RNG = np.random.default_rng(1)
N = 60


def write(tmp_path, columns, name="t.csv"):
    path = tmp_path / name
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, r)) for r in rows)]) + "\n")
    return path


def train(tmp_path, capsys, table, *options):
    output = tmp_path / "m.json"
    words = ("train", table, "--label", "y", "--C", 1, "--folds", 0, "--output", output)
    return run(capsys, *words, *options)


@pytest.mark.parametrize("decimals", [0, 1])
def test_labels_that_are_many_numbers_are_asked_about(tmp_path, capsys, decimals):
    y = np.round(np.arange(N) * (1 if decimals == 0 else 0.1), decimals)
    table = write(tmp_path, {"a": RNG.normal(size=N), "y": y})
    status, out, err = train(tmp_path, capsys, table)
    assert (status, out) == (2, "")
    assert "column 'y' holds 60 different numbers in 60 rows; give --task regression if" in err
    assert train(tmp_path, capsys, table, "--task", "regression")[0] == 0
    table = write(tmp_path, {"a": RNG.normal(size=N), "y": y % 5})
    assert train(tmp_path, capsys, table, "--task", "classification")[0] == 0
    table = write(tmp_path, {"a": RNG.normal(size=N), "y": np.arange(N) % 5})
    assert train(tmp_path, capsys, table)[0] == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_text_that_is_to_be_a_value_is_not_to_be_left_out(tmp_path, capsys, ending):
    table = write(tmp_path, {"a": [1, 2, 3], "y": ["x", "z", "x"]})
    if ending == "parquet":
        table = tmp_path / "t.parquet"
        run(capsys, "convert", tmp_path / "t.csv", table, "--label", "y")
    status, _, err = train(tmp_path, capsys, table, "--task", "regression")
    assert status == 1
    assert "a regression needs numbers, and classes are told by --task classification" in err
    assert "--drop" not in err


def test_what_scikit_learn_writes_by_itself_is_read_with_its_own_numbers(tmp_path, capsys):
    X = np.round(RNG.normal(size=(20, 3)), 3) * (RNG.random((20, 3)) < 0.7)
    y = np.arange(20) % 2
    X[0, 0] = 1.0
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"))
    table = read_table(tmp_path / "t.svm", label=OWN)
    assert table.features == ("0", "1", "2")
    np.testing.assert_array_equal(table.mean.toarray(), X)
    assert table.notes == ("its features are counted from 0",)
    words = ("train", tmp_path / "t.svm", "--scale", "none", "--C", 1, "--folds", 0)
    assert run(capsys, *words, "--output", tmp_path / "m.json")[0] == 0
    # a part without the feature 0, which counts from 1 by its looks
    dump_svmlight_file(X[:5] * [0, 1, 1], y[:5], str(tmp_path / "part.svm"))
    dump_svmlight_file(X[:5] * [0, 1, 1], y[:5], str(tmp_path / "one.svm"), zero_based=False)
    out = run(capsys, "predict", tmp_path / "m.json", tmp_path / "part.svm")[1]
    np.savez(tmp_path / "whole.npz", X=X[:5] * [0, 1, 1], feature_names=["0", "1", "2"])
    assert run(capsys, "predict", tmp_path / "m.json", tmp_path / "whole.npz")[1] == out
    assert run(capsys, "predict", tmp_path / "m.json", tmp_path / "one.svm")[0] == 1


def test_numbers_that_look_like_missing_cells_are_told_with_the_option_to_type(tmp_path, capsys):
    a = RNG.normal(size=N)
    table = write(tmp_path, {"a": a, "b": a + 3, "y": np.arange(N) % 2})
    assert "--sentinel" not in train(tmp_path, capsys, table)[2]
    gaps = np.where(np.arange(N) % 4 == 1, -999, a)
    table = write(tmp_path, {"a": gaps, "b": gaps, "c": a, "y": np.arange(N) % 2})
    err = train(tmp_path, capsys, table)[2]
    assert "column 'a' and 1 other column holds -999 in 15 of 60 rows, far from all other" in err
    assert "give --sentinel -999" in err
    status, out, err = train(tmp_path, capsys, table, "--sentinel", -999, "--missing", "drop")
    assert (status, summary(out)["rows"]) == (0, "45")
    assert "looks" not in err
    table = write(tmp_path, {"a": np.arange(-1000, -940), "y": np.arange(N) % 2})
    assert "--sentinel" not in train(tmp_path, capsys, table)[2]


@pytest.mark.parametrize("ending", ["xlsx", "h5", "json"])
def test_predictions_under_the_ending_of_another_format_are_refused(tmp_path, capsys, ending):
    table = write(tmp_path, {"a": RNG.normal(size=N), "y": np.arange(N) % 2})
    train(tmp_path, capsys, table)
    output = tmp_path / f"out.{ending}"
    status, _, err = run(capsys, "predict", tmp_path / "m.json", table, "--output", output)
    assert status == 1
    assert f"out.{ending} names no format" in err
    assert not output.exists()
    for name in ("labels", "labels.txt"):
        words = ("predict", tmp_path / "m.json", table, "--output", tmp_path / name)
        assert run(capsys, *words)[0] == 0


@pytest.mark.parametrize(
    ("column", "meaning"),
    [
        ("a_err", "measurement"),
        ("e_a", "measurement"),
        ("a_ivar", "measurement"),
        ("a_std", "distribution"),
        ("a_var", "distribution"),
        ("b", "distribution"),
    ],
)
def test_names_of_errors_say_what_errors_mean(tmp_path, capsys, column, meaning):
    columns = {"a": RNG.normal(size=N), column: RNG.uniform(1, 2, N), "y": np.arange(N) % 2}
    status, out, _ = train(tmp_path, capsys, write(tmp_path, columns))
    assert status == 0
    assert summary(out)["errors"].startswith(meaning)
    told = f"(--errors {meaning}), by names such as {column!r}"
    assert summary(out)["errors"].endswith(told) == (column != "b")
    for given in ("measurement", "distribution"):
        _, out, _ = train(tmp_path, capsys, tmp_path / "t.csv", "--errors", given)
        assert summary(out)["errors"].startswith(given)
        assert "by names" not in out
