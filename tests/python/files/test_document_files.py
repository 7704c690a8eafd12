"""SVM-GSU's three files, written: what is read again equals what was written, to the last bit."""

import numpy as np
import pytest
from commands.running import run

from halosvm import Covariances, Gaussians
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import OWN, read_table

N, D = 7, 3


def means():
    X = np.random.default_rng(3).normal(size=(N, D)) * 10.0 ** np.arange(-4, 3)[:, None]
    X[0] = 0.0  # a line of its own, and a last feature that only others have
    X[2, 1] = -0.0
    X[:, 2] = 0.0
    return X


def full():
    R = np.random.default_rng(4).normal(size=(N, D, D))
    S = R @ R.transpose(0, 2, 1)
    return (S + S.transpose(0, 2, 1)) / 2


def certain_but_one(S):
    S = S.copy()
    S[1:] = 0.0
    return S


ERRORS = {
    "full": ("X_cov", full()),
    "full without entries beside the diagonal": ("X_cov", full() * np.eye(D)),
    "diagonal": ("X_var", full()[:, 0] ** 2),
    "diagonal of the first feature alone": ("X_var", full()[:, 0] ** 2 * [1, 0, 0]),
    "diagonal of one example": ("X_var", certain_but_one(full()[:, 0] ** 2)),
    "isotropic": ("X_var", full()[:, 0, 0]),
}


@pytest.mark.parametrize("case", ERRORS)
def test_three_files_are_read_as_they_were_written(tmp_path, capsys, case):
    name, errors = ERRORS[case]
    source, again = tmp_path / "t.npz", tmp_path / "again.npz"
    y = np.array(["b", "a", "-1", "b:", "a", "1", "ж"])
    np.savez(source, X=means(), y=y, **{name: errors})
    paths = [tmp_path / f"{part}.dat" for part in ("mean", "labels", "cov")]
    to = ("--to-labels", paths[1], "--to-covariances", paths[2])
    status, _, err = run(capsys, "convert", source, paths[0], *to)
    assert status == 0, err
    isotropic = case == "isotropic"
    assert ("covariances are isotropic, which --covariances-are has to tell" in err) == isotropic
    options = ["--labels", paths[1], "--covariances", paths[2]]
    options += ["--covariances-are", "isotropic"] if isotropic else []
    status, _, err = run(capsys, "convert", paths[0], again, *options)
    assert status == 0, err
    with np.load(source) as first, np.load(again) as second:
        assert second["X"].tobytes() == first["X"].tobytes()  # also the signs of zeros
        assert second["y"].tolist() == first["y"].tolist()
        kept = second[name]
        expected = first[name]
        if kept.ndim == 2 and expected.ndim == 1:
            expected = np.broadcast_to(expected[:, None], kept.shape)
        np.testing.assert_array_equal(kept, expected)
    kind = {"full": "full", "diag": "diagonal", "isot": "isotropic"}[case[:4]]
    given = Reading(
        labels=paths[1], covariances=paths[2], covariance_kind=kind if isotropic else None
    )
    assert read_table(paths[0], label=OWN, reading=given).covariances.kind == kind


def test_standard_deviations_come_back_to_the_last_bit(tmp_path, capsys):
    std = (
        np.abs(np.random.default_rng(5).normal(size=(200, 2)))
        * 10.0 ** np.linspace(-70, 70, 200)[:, None]
    )
    source, files = tmp_path / "t.csv", [tmp_path / name for name in ("m", "l", "c")]
    rows = [f"1.5,{a!r},-2,{b!r},{'xy'[k % 2]}" for k, (a, b) in enumerate(std.tolist())]
    source.write_text("\n".join(["a,a_std,b,b_std,kind", *rows, ""]))
    to = ("--to-labels", files[1], "--to-covariances", files[2])
    status, _, err = run(capsys, "convert", source, files[0], "--label", "kind", *to)
    assert status == 0, err
    back = ("--labels", files[1], "--covariances", files[2])
    status, _, err = run(capsys, "convert", files[0], tmp_path / "b.csv", *back)
    assert status == 0, err
    table = read_table(tmp_path / "b.csv", label="label")
    np.testing.assert_array_equal(table.std, std)
    assert table.labels == ["x", "y"] * 100


def test_sparse_means_values_and_compression(tmp_path, capsys):
    source = tmp_path / "t.svm"
    source.write_text("1.5 1:2 4:-0.25\n-3 2:1e-300\n0.1\n")
    files = [tmp_path / name for name in ("m.dat.gz", "l.dat.xz")]
    regression = ("--task", "regression", "--to-labels", files[1])
    assert run(capsys, "convert", source, files[0], *regression)[0] == 0
    assert files[0].read_bytes()[:2] == b"\x1f\x8b"
    table = read_table(files[0], target=OWN, reading=Reading(labels=files[1]))
    assert table.values.tolist() == [1.5, -3, 0.1]
    expected = [[2, 0, 0, -0.25], [0, 1e-300, 0, 0], [0, 0, 0, 0]]
    assert np.asarray(table.mean).tolist() == expected


def test_low_rank_covariances_are_written_as_matrices(tmp_path):
    from halosvm.files.tables.documents import DocumentFiles
    from halosvm.files.tables.table import Table
    from halosvm.files.tables.writing import write_table

    S = Covariances.low_rank(np.random.default_rng(6).normal(size=(2, D, 1)))
    X = Gaussians(means()[:2], cov=S)
    table = Table("t", tuple("abc"), {}, X.mean, None, ["u", "v"], [1, 2], covariances=S)
    files = DocumentFiles(tmp_path / "l", tmp_path / "c")
    assert write_table(table, tmp_path / "m", "svm-gsu", "label", files) == []
    given = Reading(labels=files.labels, covariances=files.covariances)
    again = read_table(tmp_path / "m", label=OWN, reading=given)
    np.testing.assert_array_equal(again.covariances.to_full(), S.to_full())


@pytest.mark.parametrize(
    ("text", "options", "status", "message"),
    [
        ("x,x_std,y\n1,1,a\n2,1,b\n", ["--to-labels", "l"], 1, "has covariances; name a file"),
        ("x,x_std,y\n1,1,a\n2,1,b\n", ["--to-covariances", "c"], 1, "has labels; name a file"),
        (
            "x,y\n1,a\n2,b\n",
            ["--to-labels", "l", "--to-covariances", "c"],
            1,
            "has no covariances; leave --to-covariances out",
        ),
        ("x,y\n1,a b\n2,b\n", ["--to-labels", "l"], 1, "line 2: the label 'a b' would be read"),
        ("x,y\n1,a\n2,+b\n", ["--to-labels", "l"], 1, "line 3: the label '+b' would be read"),
        (
            "x,y,y_std\n1,1,1\n2,2,1\n",
            ["--to-labels", "l", "--task", "regression"],
            1,
            "has errors of its values",
        ),
        ("x,y\n1,a\n2,b\n", ["--to-labels", "m"], 2, "are one file; each output needs its own"),
        ("x,y\n1,a\n2,b\n", ["--to-labels", "l", "--to", "csv"], 2, "are of svm-gsu, not of csv"),
        ("x,y\n1,a\n2,b\n", ["--to-labels", "no/l"], 1, "there is no folder"),
    ],
)
def test_what_three_files_cannot_hold_is_refused(
    tmp_path, capsys, monkeypatch, text, options, status, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(text)
    found, out, err = run(capsys, "convert", "t.csv", "m", "--label", "y", *options)
    assert (found, out) == (status, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
