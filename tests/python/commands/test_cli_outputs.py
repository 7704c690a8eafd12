"""Outputs: what cannot be written is refused before any work, the others hold what they say."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands.running import run

from halosvm import UncertainSVC, load_model, save_model
from halosvm.files.tables.table import OWN, read_table
from halosvm.files.tables.typed import WITH_COLUMNS

ROWS = "x,kind\n-2,a\n-1,a\n1,b\n2,b\n"
COMMANDS = {
    "train": ("train", "absent.csv", "--label", "kind", "--output"),
    "predict": ("predict", "absent.json", "absent.csv", "--to", "csv", "--output"),
    "convert": ("convert", "absent.csv", "--to", "csv"),
    "demo": ("demo", "--quick", "--output"),
    "bench": ("bench", "--quick", "--only", "steps", "--output"),
}


@pytest.fixture
def trained(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "model.json"
    path.write_text(ROWS)
    assert run(capsys, "train", path, "--label", "kind", "--C", 1, "--output", model)[0] == 0
    return model, path


def halosvm(*arguments, **options):
    command = [sys.executable, "-m", "halosvm", *map(str, arguments)]
    return subprocess.run(command, check=False, **options)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_in_a_folder_that_takes_no_files_is_refused_before_any_work(capsys, command):
    status, out, err = run(capsys, *COMMANDS[command], "/proc/out.png")
    assert (status, out) == (1, "")
    assert "cannot write /proc/out." in err
    assert ".tmp" not in err


@pytest.mark.parametrize("link", ["same", "symbolic", "hard", "dots"])
def test_an_output_that_is_an_input_is_refused_and_stays_as_it_was(tmp_path, capsys, trained, link):
    model, table = trained

    def again(path):
        other = path.with_name(f"other_{path.name}")
        if link == "symbolic":
            other.symlink_to(path)
        elif link == "hard":
            os.link(path, other)
        return {"same": path, "dots": path.parent / ".." / path.parent.name / path.name}.get(
            link, other
        )

    of_table, of_model = again(table), again(model)
    for words in (
        ("train", table, "--label", "kind", "--C", 1, "--output", of_table),
        ("predict", model, table, "--output", of_table),
        ("predict", model, table, "--to", "csv", "--output", of_model),
        ("convert", table, of_table, "--label", "kind"),
        ("convert", table, tmp_path / "m", "--label", "kind", "--to-labels", of_table),
    ):
        before = table.read_bytes(), model.read_bytes()
        status, out, err = run(capsys, *words)
        assert (status, out) == (2, "")
        assert "which is an input" in err
        assert (table.read_bytes(), model.read_bytes()) == before
    assert not (tmp_path / "m").exists()


def test_an_output_that_is_standard_input_is_refused(tmp_path, trained):
    table = trained[1]
    with table.open() as stream:
        done = halosvm("convert", "-", table, "--label", "kind", stdin=stream, capture_output=True)
    assert done.returncode == 2
    assert b"is the file of standard input, which is an input" in done.stderr
    assert table.read_text() == ROWS


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_output_in_a_folder_of_others_is_refused_before_any_work(tmp_path, capsys):
    tmp_path.chmod(0o500)
    status, _, err = run(capsys, *COMMANDS["train"], tmp_path / "m.json")
    tmp_path.chmod(0o700)
    assert status == 1
    assert f"cannot write {tmp_path / 'm.json'}: permission denied" in err


def test_check_of_an_output_leaves_nothing_behind_and_what_was_there_as_it_was(tmp_path, capsys):
    old = tmp_path / "old.json"
    old.write_text("old")
    for name in ("new.json", "old.json"):
        assert run(capsys, *COMMANDS["train"], tmp_path / name)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert old.read_text() == "old"


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@needs_full
@pytest.mark.parametrize("command", ["train", "predict", "convert"])
def test_full_device_is_refused_before_any_work(capsys, command):
    status, out, err = run(capsys, *COMMANDS[command], "/dev/full")
    assert (status, out) == (1, "")
    assert "cannot write /dev/full: no space left on device" in err


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        ("train", "absent.csv", "--label", "kind"),
        ("predict", "absent.json", "absent.csv"),
        ("evaluate", "absent.json", "absent.csv"),
        ("show-config",),
    ],
)
def test_full_standard_output_is_refused_before_any_work(words):
    with Path("/dev/full").open("w") as full:
        done = halosvm(*words, stdout=full, stderr=subprocess.PIPE, text=True)
    told = f"halosvm {words[0]}: error: cannot write standard output: no space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
def test_pipe_by_its_name_is_written_like_standard_output(trained):
    model, path = trained
    outputs = [
        halosvm("predict", model, path, "--to", "csv", "--output", name, capture_output=True)
        for name in ("-", "/dev/stdout")
    ]
    assert outputs[1].returncode == 0
    assert outputs[0].stdout == outputs[1].stdout != b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_named_pipe_is_written_as_it_is(tmp_path, trained):
    model, path = trained
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    # a reader that waited for a writer would wait for ever where there is none
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        assert halosvm("predict", model, path, "--output", pipe).returncode == 0
        assert reader.read().startswith(b"label,decision_value\na,-")


@pytest.mark.parametrize("ending", ["npz", "csv", "tsv", "svm", "parquet", "fits", "vot", "ecsv"])
@pytest.mark.parametrize(
    ("compression", "magic"),
    [
        ("gz", b"\x1f\x8b"),
        ("bz2", b"BZh"),
        ("xz", b"\xfd7zXZ\x00"),
        ("zst", b"\x28\xb5\x2f\xfd"),
    ],
)
def test_every_format_is_compressed_as_its_name_says(tmp_path, capsys, ending, compression, magic):
    source, path = tmp_path / "t.csv", tmp_path / f"out.{ending}.{compression}"
    source.write_text("x,y\n-2,0\n-1.5,1\n")
    assert run(capsys, "convert", source, path, "--label", "y")[0] == 0
    assert path.read_bytes().startswith(magic)
    named = ending not in ("npz", "svm")
    table = read_table(path, label="y" if named else OWN)
    assert np.asarray(getattr(table.mean, "todense", lambda: table.mean)()).tolist() == [
        [-2],
        [-1.5],
    ]
    assert table.labels == ["0", "1"]


def test_name_of_two_compressions_names_no_format(tmp_path, capsys):
    source = tmp_path / "t.csv"
    source.write_text(ROWS)
    status, _, err = run(capsys, "convert", source, tmp_path / "t.csv.gz.bz2", "--label", "kind")
    assert status == 1
    assert "names no format" in err


def test_model_file_under_a_name_of_compressed_ones_is_refused(tmp_path, capsys):
    path = tmp_path / "model.json.gz"
    status, _, err = run(capsys, *COMMANDS["train"], path)
    assert status == 1
    assert f"cannot write {path}: model files are not compressed; leave .gz out" in err
    fitted = UncertainSVC().fit(np.array([[-1.0], [1.0]]), [0, 1])
    for form in ("halosvm", "svm-gsu"):
        with pytest.raises(ValueError, match=r"leave \.gz out"):
            save_model(fitted, path, format=form)
    save_model(fitted, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").coef_ == fitted.coef_


@pytest.mark.parametrize(
    ("form", "package"), [("parquet", "pyarrow"), ("fits", "astropy"), ("csv.zst", "pyarrow")]
)
def test_package_that_an_output_needs_is_missed_before_any_work(
    tmp_path, capsys, monkeypatch, form, package
):
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"out.{form}"
    for command in (["convert", "absent.csv", path], ["predict", "a", "b", "--output", path]):
        status, _, err = run(capsys, *command)
        assert status == 1
        assert f"needs {package}: pip install 'halosvm[io]'" in err


@pytest.mark.parametrize("form", [form for form in WITH_COLUMNS if form != "fits"])
def test_labels_and_names_of_any_letters_are_kept(tmp_path, capsys, form):
    source, path = tmp_path / "t.csv", tmp_path / "out"
    source.write_text("größe,тип\n-2,кот\n-1,犬\n", encoding="utf-8")
    assert run(capsys, "convert", source, path, "--label", "тип", "--to", form)[0] == 0
    status, out, err = run(
        capsys, "convert", path, "-", "--label", "тип", "--format", form, "--to", "csv"
    )
    assert (status, out) == (0, "größe,тип\n-2.0,кот\n-1.0,犬\n"), err


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("x,kind\n-2,кот\n-1,b\n", "кот"),
        ("größe,kind\n-2,a\n-1,b\n", "größe"),
        ("x [µJy],kind\n-2,a\n-1,b\n", "µJy"),
    ],
)
def test_text_that_fits_has_no_letters_for_is_refused(tmp_path, capsys, text, strange):
    source, path = tmp_path / "t.csv", tmp_path / "out.fits"
    source.write_text(text, encoding="utf-8")
    status, _, err = run(capsys, "convert", source, path, "--label", "kind")
    assert status == 1
    assert f"FITS holds printable ASCII text alone, not {strange!r}; write ecsv, votable" in err
    assert not path.exists()


def test_package_that_is_there_and_broken_is_told_with_the_reason(tmp_path, capsys, monkeypatch):
    (tmp_path / "pyarrow.py").write_text("raise ImportError('it wants another NumPy')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    status, _, err = run(capsys, "convert", "absent.csv", tmp_path / "t.parquet")
    assert status == 1
    assert "needs pyarrow, which cannot be imported: it wants another NumPy" in err
