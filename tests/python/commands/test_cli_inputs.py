"""Inputs that were once misread: each is read as it is meant, or refused in one line."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from commands.running import run, summary

from halosvm import load_model

ROWS = "x,kind\n-2,a\n-1,a\n1,b\n2,b\n"


def train(capsys, path, *options, label="kind"):
    model = path.with_name("model.json")
    common = ["train", path, "--label", label, "--C", 1, "--output", model]
    return *run(capsys, *common, *options), model


def table(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        'x,kind\n-2,a\n-1,"a\n1,b\n2,b\n',
        'x,kind\n-2,a\n-1,b\n1,a\n2,"b\n',
        'kind,x\na,"-2\na,-1\nb,1\nb,2\n',
    ],
)
def test_quote_that_is_not_closed_is_refused_with_its_line(tmp_path, capsys, text):
    status, out, err, model = train(capsys, table(tmp_path, text))
    line = 1 + text[: text.index('"')].count("\n")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert f"line {line}: " in err
    assert "quote" in err
    assert not model.exists()


@pytest.mark.parametrize("word", ["NA", "nan", "null", "N/A", "?", "NaN"])
def test_words_for_nothing_are_no_class(tmp_path, capsys, word):
    path = table(tmp_path, ROWS + f"3,{word}\n")
    status, _, err, _ = train(capsys, path)
    assert status == 1
    assert f"line 6, column 'kind': missing label {word!r}" in err
    status, out, err, _ = train(capsys, path, "--missing", "drop")
    assert (status, summary(out)["classes"]) == (0, "a (2), b (2)")
    assert "1 of 5 rows with missing cells left out" in err


def test_classes_may_be_called_none_and_minus(tmp_path, capsys):
    path = table(tmp_path, ROWS.replace("a", "none").replace("b", "-"))
    status, out, _, _ = train(capsys, path)
    assert (status, summary(out)["classes"]) == (0, "- (2), none (2)")


def test_blank_before_a_quote_belongs_to_no_label(tmp_path, capsys):
    path = table(tmp_path, 'x,kind\n-2,"a"\n-1, "a"\n1,b\n2, "b"\n')
    status, out, _, _ = train(capsys, path)
    assert (status, summary(out)["classes"]) == (0, "a (2), b (2)")


def test_index_that_pandas_wrote_is_dropped_as_the_error_says(tmp_path, capsys):
    path = table(tmp_path, ",x,kind\n0,-2,a\n1,-1,a\n2,1,b\n3,2,b\n")
    status, _, err, _ = train(capsys, path)
    assert status == 1
    assert "leave it out by --drop ''" in err
    status, _, _, model = train(capsys, path, "--drop", "")
    assert status == 0
    assert load_model(model).feature_names_in_.tolist() == ["x"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_comma_inside_of_quotes_separates_nothing(tmp_path, capsys, separator):
    text = f'"flux (J, H)"{separator}kind\n' + ROWS.split("\n", 1)[1].replace(",", separator)
    status, _, _, model = train(capsys, table(tmp_path, text))
    assert status == 0
    assert load_model(model).feature_names_in_.tolist() == ["flux (J, H)"]


def test_header_may_begin_with_a_hash(tmp_path, capsys):
    path = table(tmp_path, "# a catalogue\n#x,z,kind\n-2,1,a\n-1,2,a\n1,1,b\n2,2,b\n")
    status, out, _, model = train(capsys, path)
    assert (status, summary(out)["rows"]) == (0, "4")
    assert load_model(model).feature_names_in_.tolist() == ["x", "z"]


def test_comment_above_a_header_is_no_header(tmp_path, capsys):
    path = table(tmp_path, "# made, by hand\n" + ROWS)
    status, out, _, model = train(capsys, path)
    assert (status, summary(out)["rows"]) == (0, "4")
    assert load_model(model).feature_names_in_.tolist() == ["x"]


def test_numbers_are_no_header(tmp_path, capsys):
    path = table(tmp_path, "-2.5,a\n-1,a\n1,b\n2,b\n")
    status, _, err, _ = train(capsys, path, label="a")
    assert status == 1
    assert "line 1: '-2.5' stands where the names of columns should" in err
    status, out, _, _ = train(capsys, path, "--no-header", label="2")
    assert (status, summary(out)["classes"]) == (0, "a (2), b (2)")


def test_forty_thousand_columns_are_read(tmp_path, capsys):
    d = 20_000
    names = [f"f{j}" for j in range(d)]
    values = np.random.default_rng(0).uniform(1, 2, size=(4, 2 * d))
    rows = [",".join(["kind", *names, *(f"{name}_std" for name in names)])]
    rows += [",".join(["ab"[i % 2], *map(repr, row)]) for i, row in enumerate(values.tolist())]
    status, out, _, model = train(capsys, table(tmp_path, "\n".join(rows)), "--folds", 0)
    assert status == 0
    assert summary(out)["features"] == "20000, 20000 of them with an error column"
    assert load_model(model).coef_.shape == (1, d)


@pytest.mark.parametrize(
    ("one", "other"), [("0.0 1.0", "0 1"), ("0 1", "0.0 1.0"), ("-1 +1", "-1 1")]
)
def test_labels_of_training_and_evaluation_are_compared_as_numbers(tmp_path, capsys, one, other):
    texts = []
    for words in (one, other):
        low, high = words.split()
        texts.append(ROWS.replace("a\n", f"{low}\n").replace("b\n", f"{high}\n"))
    _, _, _, model = train(capsys, table(tmp_path, texts[0]))
    path = table(tmp_path, texts[1], "other.csv")
    status, out, _ = run(capsys, "evaluate", model, path, "--label", "kind")
    assert status == 0
    assert "(4 of 4 rows)" in out


def halosvm(*arguments, **options):
    command = [sys.executable, "-m", "halosvm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, **options)


def test_outputs_are_utf_8_whatever_the_locale_says(tmp_path):
    path = table(tmp_path, ROWS.replace("a\n", "кот\n").replace("b\n", "犬\n"))
    model = tmp_path / "model.json"
    env = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    options = ["--label", "kind", "--C", "1", "--output", model]
    done = halosvm("train", path, *options, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "кот (2), 犬 (2)" in done.stdout.decode("utf-8")
    done = halosvm("predict", model, path, env=env)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode("utf-8"))))
    assert [row["label"] for row in rows] == ["кот", "кот", "犬", "犬"]


@pytest.mark.parametrize("command", ["train", "predict", "convert"])
def test_output_in_no_folder_is_refused_before_any_work(tmp_path, capsys, command):
    output = tmp_path / "nodir" / "m.csv"
    before = {
        "train": ["train", "absent.csv", "--label", "kind", "--output", output],
        "predict": ["predict", "absent.json", "absent.csv", "--output", output],
        "convert": ["convert", "absent.csv", output],
    }[command]
    status, out, err = run(capsys, *before)
    assert (status, out) == (1, "")
    assert f"cannot write {output}: there is no folder {output.parent}" in err
    assert ".tmp" not in err


def test_output_that_is_a_folder_is_refused(tmp_path, capsys):
    status, _, err = run(capsys, "train", "absent.csv", "--label", "y", "--output", tmp_path)
    assert status == 1
    assert "it is a folder" in err


def test_pipes_go_in_and_out(tmp_path):
    text = ROWS.encode()
    done = halosvm("train", "-", "--label", "kind", "--C", 1, "--output", "-", input=text)
    assert done.returncode == 0
    assert json.loads(done.stdout)["feature_names"] == ["x"]
    assert b"a (2), b (2)" in done.stderr
    model = tmp_path / "model.json"
    model.write_bytes(done.stdout)
    done = halosvm("predict", model, "-", "--output", "-", "--keep", "kind", input=text)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [row["kind"] for row in rows] == [row["label"] for row in rows] == list("aabb")
    done = halosvm("convert", "-", "-", "--to", "ecsv", "--label", "kind", input=text)
    assert done.returncode == 0
    assert done.stdout.startswith(b"# %ECSV")


def test_notes_and_results_stay_apart_and_progress_needs_a_terminal(tmp_path):
    path = table(tmp_path, ROWS)
    done = halosvm("train", path, "--label", "kind", "--C", 1, "--output", tmp_path / "m.json")
    assert (done.returncode, done.stderr) == (0, b"")


OF_TEXT = (("--separator", ";"), ("--decimal", ","), ("--encoding", "latin-1"), ("--no-header",))
OF_COLUMNS = (
    *(("--missing", "drop"), ("--sentinel", "-999"), ("--errors-in", "_sigma")),
    *(("--error", "a=b"), ("--errors-are", "variance"), ("--drop", "a"), ("--features", "a")),
    *(("--keep", "a"), ("--weight", "a"), ("--group", "a")),
)
OF_DOCUMENTS = (("--labels", "l"), ("--covariances", "c"), ("--covariances-are", "full"))


@pytest.mark.parametrize(
    ("formats", "options"),
    [
        (["parquet", "feather", "fits", "ecsv", "votable", "npz", "svmlight", "svm-gsu"], OF_TEXT),
        (["npz", "svmlight", "svm-gsu"], OF_COLUMNS),
        (["csv", "parquet", "fits", "npz", "svmlight"], OF_DOCUMENTS),
    ],
)
def test_options_of_other_formats_are_refused(tmp_path, capsys, formats, options):
    path = tmp_path / "t.dat"
    path.write_bytes(b"1 1:1\n")
    for form in formats:
        for option in options:
            command = "train" if option[0] in ("--weight", "--group") else "convert"
            output = ["--output", tmp_path / "m"] if command == "train" else [tmp_path / "m.csv"]
            status, _, err = run(capsys, command, path, *output, "--format", form, *option)
            assert status == 2
            told = f"{option[0]} is of use only with "
            assert err.startswith(f"halosvm {command}: error: {told}"), (err, form)
            assert err.endswith(f", and {path} is {form}\n")


def test_kind_of_covariances_needs_covariances(tmp_path, capsys):
    path = tmp_path / "t.dat"
    path.write_bytes(b"a 1:1\n")
    status, _, err = run(capsys, "convert", path, tmp_path / "m.csv", "--covariances-are", "full")
    assert status == 2
    assert "--covariances-are is of use only with --covariances" in err


@pytest.mark.parametrize("how", [("--label", "kind"), ("--label", "x", "--task", "regression")])
def test_ranks_need_two_classes(tmp_path, capsys, how):
    path, model = table(tmp_path, "x,z,kind\n1,1,a\n2,3,b\n3,2,c\n4,4,a\n"), tmp_path / "m.json"
    drop = ("--drop", "kind") if "--task" in how else ()
    status, _, err = run(capsys, "train", path, *how, *drop, "--C", 1, "--output", model)
    assert status == 0, err
    assert run(capsys, "evaluate", model, path)[0] == 0
    status, out, err = run(capsys, "evaluate", model, path, "--at", "2")
    assert (status, out) == (2, "")
    assert "--at is of use only with a model of two classes" in err
