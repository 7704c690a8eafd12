"""The command line meets trouble: one line that names the place, and exit status 1 or 2."""

import subprocess
import sys

import numpy as np
import pytest
from commands.running import run

from halosvm import UncertainSVC, save_model
from halosvm.commands.cli import main

TABLE = "kind,f0,f1\nbenign,-1,2\nbenign,-2,1\nmalignant,1,2\nmalignant,2,3\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def model(tmp_path, table):
    path = tmp_path / "model.json"
    assert main(["train", str(table), "--label", "kind", "--C", "1", "--output", str(path)]) == 0
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("kind,f0\n", "has a header and no rows"),
        ("kind,f0\na,1\nb,x\n", "line 3, column 'f0': 'x' is not a number"),
        ("kind,f0\na,1\nb,\n", "line 3, column 'f0': missing value"),
        ("kind,f0,f0_std\na,1,1\nb,2,-1\n", "line 3, column 'f0_std': -1 is negative"),
        ("class,f0\na,1\nb,2\n", "has no column 'kind'"),
        ("kind,f0\na,1\na,2\n", "column 'kind' holds one class only: 'a'"),
        ("kind\na\nb\n", "has no feature among 'kind'"),
        ("kind,f0\na,1e300\nb,-1e300\n", "1e+"),
    ],
)
def test_bad_training_table_is_one_line_and_status_1(tmp_path, capsys, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    options = ["--C", 1, "--scale", "none", "--output", tmp_path / "model.json"]
    status, out, err = run(capsys, "train", path, "--label", "kind", *options)
    assert (status, out) == (1, "")
    assert err.startswith("halosvm train: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_error_about_numbers_that_is_found_after_the_table_was_read_names_it(
    tmp_path, capsys, command
):
    path, model = tmp_path / "table.csv", tmp_path / "model.json"
    options = ["--label", "kind", "--C", "1", "--kernel", "poly", "--folds", "0"]
    if command != "train":
        path.write_text(TABLE)
        train = ["train", str(path), "--estimator", "UncertainKernelSVC", *options]
        assert main([*train, "--output", str(model)]) == 0
        capsys.readouterr()
        options = ["--label", "kind"] if command == "evaluate" else []
    else:
        options = ["--label", "kind", "--errors", "measurement", "--output", model]
    path.write_text(TABLE.replace("2,3", "2,3e149"))
    inputs = [path] if command == "train" else [model, path]
    status, out, err = run(capsys, command, *inputs, *options)
    assert (status, out) == (1, "")
    assert err.startswith(f"halosvm {command}: error: {path}: ")
    assert "overflow" in err
    assert err.count("\n") == 1


def test_prediction_needs_every_feature_of_the_model(tmp_path, capsys, model):
    path = tmp_path / "new.csv"
    path.write_text("f0,f2\n1,2\n")
    status, out, err = run(capsys, "predict", model, path)
    assert (status, out) == (1, "")
    assert err == (
        f"halosvm predict: error: {path} has no column 'f1'; its columns are 'f0', 'f2'\n"
    )


def test_evaluation_names_the_line_of_an_unknown_label(tmp_path, capsys, model):
    path = tmp_path / "new.csv"
    path.write_text("kind,f0,f1\nbenign,1,2\n\nother,1,2\n")
    status, _, err = run(capsys, "evaluate", model, path, "--label", "kind")
    assert status == 1
    assert "line 4: the model has no class 'other'; its classes are 'benign', 'malignant'" in err
    assert err.count("\n") == 1


def test_bad_model_file_is_one_line_and_status_1(tmp_path, capsys, table):
    path = tmp_path / "absent.json"
    status, _, err = run(capsys, "predict", path, table)
    assert status == 1
    assert err == f"halosvm predict: error: cannot read {path}: No such file or directory\n"
    path.write_text("{}")
    status, _, err = run(capsys, "predict", path, table)
    assert status == 1
    assert "is not a model file" in err
    assert err.count("\n") == 1


def test_model_without_feature_names_is_told(tmp_path, capsys, table):
    path = tmp_path / "nameless.json"
    save_model(UncertainSVC(random_state=0).fit(np.array([[-1.0], [1.0]]), [0, 1]), path)
    status, _, err = run(capsys, "predict", path, table)
    assert status == 1
    assert "has no feature names" in err


def test_output_that_cannot_be_written_is_told(tmp_path, capsys, table, model):
    absent = tmp_path / "absent" / "file"
    for arguments in (
        ["train", table, "--label", "kind", "--C", 1],
        ["predict", model, table],
    ):
        status, _, err = run(capsys, *arguments, "--output", absent)
        assert status == 1
        assert "there is no folder" in err
        assert err.count("\n") == 1


def test_interrupt_ends_with_status_130(capsys, table, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("halosvm.commands.tables.reading.read_table", interrupt)
    status, out, err = run(capsys, "train", table, "--label", "kind")
    assert (status, out, err) == (130, "", "\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn"], "invalid choice: 'learn'"),
        (["train"], "required: table"),
        (["train", "t.csv", "--label", "y", "--C", "-1"], "'-1' is neither a positive number"),
        (["train", "t.csv", "--label", "y", "--C", "nan"], "'nan' is neither a positive number"),
        (["train", "t.csv", "--label", "y", "--C", "big"], "'big' is neither a positive number"),
        (["train", "t.csv", "--label", "y", "--folds", "1"], "1 is less than 2"),
        (["train", "t.csv", "--label", "y", "--loss", "absolute"], "invalid choice: 'absolute'"),
        (["demo", "--splits", "0"], "0 is less than 1"),
        (["demo", "--splits", "few"], "invalid integer value: 'few'"),
    ],
)
def test_bad_arguments_end_with_status_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["train", "t.csv", "--lable", "y"],
            "train: error: there is no option --lable; did you me",
        ),
        (["train", "t.csv", "--lable=y"], "there is no option --lable; did you mean --label?"),
        (["predict", "m", "t", "u"], "predict: error: there is no argument u (halosvm predict"),
        (["trian"], "error: argument command: invalid choice: 'trian'; did you mean train?"),
        (["train", "t", "--task", "regresion"], "invalid choice: 'regresion'; did you mean regres"),
        (["train", "t", "--task", "x"], "'x'; choose from"),
        (["train"], "train: error: the following arguments are required: table"),
        (["--colour"], "halosvm: error: there is no option --colour"),
    ],
)
def test_words_that_are_unknown_are_told_in_one_line_with_what_may_be_meant(capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        main(words)
    out, err = capsys.readouterr()
    assert (caught.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_command_alone_shows_its_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "usage: halosvm" in out
    assert "fit a model to a table" in out


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["train", "--help"], ["trian"], []])
def test_words_alone_import_nothing_that_loads_slowly(words):
    program = f"""
import sys
from halosvm.commands.cli import main
try:
    main({words!r})
except SystemExit:
    pass
print(sorted({{"sklearn", "pandas", "scipy", "joblib", "pyarrow", "astropy"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"[]"
