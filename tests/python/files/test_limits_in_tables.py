"""Limits in tables: cells such as <0.25 and columns of flags, read or refused and never lost."""

import numpy as np
import pandas as pd
import pytest

from halosvm import EmpiricalBayes, Gaussians
from halosvm.commands.cli import main
from halosvm.files.tables.dialects import Dialect
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.roles import ErrorRules
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError

TEXT = """a,a_err,b,b_err,kind
1.0,0.1,2.0,0.2,x
<0.5,0.1,2.2,0.2,x
0.7,0.1,> 3,0.3,y
1.2,0.1,\u22641.5,0.2,y
1.4,0.1,2.4,0.2,x
1.1,0.1,\u2265 2.6,0.2,y
0.9,0.1,<= 2.1,0.2,x
1.3,0.1,2.9,0.2,y
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(capsys, *arguments):
    status = main([str(each) for each in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_cells_are_limits_of_features_and_keep_their_errors(table):
    read = read_table(table, label="kind")
    lower, upper = np.full((2, 8, 2), np.nan)
    upper[1, 0], upper[3, 1], upper[6, 1] = 0.5, 1.5, 2.1
    lower[2, 1], lower[5, 1] = 3.0, 2.6
    assert np.array_equal(read.limits.lower, lower, equal_nan=True)
    assert np.array_equal(read.limits.upper, upper, equal_nan=True)
    assert np.isnan(read.mean[read.limits.there]).all()
    assert read.std[2, 1] == 0.3
    assert "5 readings known by a limit alone" in read.notes
    posterior = EmpiricalBayes().fit_transform(read.examples).mean
    X = Gaussians(read.mean, std=read.std, lower=lower, upper=upper)
    assert (posterior == EmpiricalBayes().fit_transform(X).mean).all()


def test_a_decimal_comma_and_an_interval_of_spaces_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;kind\n1,0;x\n <  0,25;y\n2,5;x\n")
    reading = Reading(dialect=Dialect(decimal=","))
    assert read_table(path, label="kind", reading=reading).limits.upper[1, 0] == 0.25


def test_a_sentinel_is_missing_in_a_table_of_one_column_of_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1.0,x\n-999,y\n2.5,x\n")
    reading = Reading(sentinels=(-999.0,), missing="impute")
    assert np.isnan(read_table(path, label="kind", reading=reading).mean[1, 0])


@pytest.mark.parametrize("flag", ["<", "\u2264", "<="])
def test_flags_turn_numbers_into_limits(tmp_path, flag):
    path = tmp_path / "t.csv"
    path.write_text(f"a,l_a,kind\n1,,x\n2,{flag},y\n3,>,x\n4,=,y\n", encoding="utf-8")
    read = read_table(path, label="kind", reading=Reading(limits={"a": "l_a"}))
    assert read.features == ("a",)
    assert np.array_equal(read.limits.upper[:, 0], [np.nan, 2, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(read.limits.lower[:, 0], [np.nan, np.nan, 3, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,a_err,kind\n1,<0.1,x\n2,0.1,y\n", {}, r"line 2, column 'a_err': a limit stands where"),
        ("a,v\n1,<2\n2,3\n", {"target": "v"}, r"line 2, column 'v': a limit stands where"),
        ("a,a_err,k\n<1,,x\n2,0.1,y\n", {"missing": "impute"}, r"no error beside the limit of 'a'"),
        ("a,l_a,k\n1,~,x\n2,,y\n", {"limits": {"a": "l_a"}}, r"column 'l_a': '~' is no flag"),
        ("a,l_a,k\n1,,x\n2,,y\n", {"limits": {"q": "l_a"}}, r"--limit q=...: 'q' is no feature"),
        ("a,k\n<x,x\n2,y\n", {}, r"'<x' is not a number"),
    ],
)
def test_what_is_no_limit_of_a_feature_is_refused(tmp_path, text, options, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    target = options.pop("target", None)
    label = None if target else text.split("\n", 1)[0].rsplit(",", 1)[1]
    with pytest.raises(TableError, match=message):
        read_table(path, label=label, target=target, reading=Reading(**options))


def test_limits_are_no_missing_cells(table):
    assert len(read_table(table, label="kind", reading=Reading(missing="drop")).lines) == 8


def test_commands_take_limits_or_say_why_not(capsys, table, tmp_path):
    model, other = tmp_path / "m.json", tmp_path / "n.json"
    status, _, said = run(capsys, "train", table, "--label", "kind", "--C", 1, "--output", model)
    assert status == 0, said
    status, out, _ = run(capsys, "predict", model, table)
    assert status == 0
    assert "nan" not in out
    for command in (
        ("train", table, "--label", "kind", "--errors", "distribution", "--output", other),
        ("convert", table, tmp_path / "o.csv", "--label", "kind"),
        ("doctor", table, "--label", "kind"),
    ):
        status, _, said = run(capsys, *command)
        assert status == 1
        assert "is a limit, < 0.5, which" in said
    complete = tmp_path / "c.csv"
    complete.write_text("a,b,kind\n1,2,x\n2,1,y\n3,5,x\n4,3,y\n")
    run(capsys, "train", complete, "--label", "kind", "--C", 1, "--output", other)
    status, _, said = run(capsys, "predict", other, table)
    assert status == 1
    assert "one that is trained with --errors measurement takes it" in said


def test_upper_and_lower_errors_far_apart_have_one_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,a_up,a_low,k\n1,0.3,-0.1,x\n2,0.2,-0.1,y\n3,0.1,-0.5,x\n4,0.1,,y\n")
    rules = ErrorRules(pairs={"a": ("a_up", "a_low")})
    read = read_table(path, label="k", reading=Reading(missing="impute", errors=rules))
    [told] = [note for note in read.notes if "differ by more than a factor of 2" in note]
    assert "of 'a' in 2 rows; a Gaussian of their mean size stands for both" in told
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "up": [0.3, 0.2, 0.1], "low": [0.1, 0.1, 0.1]})
    with pytest.warns(UserWarning, match="of 'a' in 1 row;"):
        Gaussians.from_frame(frame, errors={"a": ("up", "low")})
