"""Data files whose bytes were changed: each trains a finite model or is refused in one line.

A few seconds by default; HALOSVM_MUTATIONS=1000 in the environment changes as many of each format.
"""

import functools
import gzip
import os
import time
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from astropy.table import QTable
from astropy.units import mJy, uJy
from limits import OvertimeError, limited
from pyarrow import feather, parquet

from halosvm import load_model
from halosvm.commands import cli
from halosvm.files.table_models import machine_of

COUNT = int(os.environ.get("HALOSVM_MUTATIONS", "0"))
SECONDS = 1.5  # of each format, where no number is asked for
TOKENS = [
    *(b"nan", b"inf", b"-1e999", b"1e308", b"-0", b"999999999999", b"", b'"', b"'", b",", b";"),
    *(b"\n", b"\r", b"\t", b":", b"#", b"\x00", b"\xff", b"\xef\xbb\xbf", b"1:1", b"1,1:1", b"-"),
]


def _rows():
    rng = np.random.default_rng(1)
    y = np.arange(12) % 2
    return rng.normal(size=(12, 3)).round(3) + y[:, np.newaxis], rng.uniform(0.1, 0.9, (12, 3)), y


def _csv(folder):
    X, std, y = _rows()
    lines = ['kind,a,"b, c",d,a_std,e_d,"b, c_err"']
    for x, s, label in zip(X.tolist(), std.tolist(), y, strict=True):
        lines.append(",".join([f'"{label}"', *map(repr, x), *map(repr, s)]))
    (folder / "t.csv").write_text("# made by hand\n" + "\n".join(lines) + "\n")
    return ["t.csv"], ["--label", "kind"]


def _tsv(folder):
    X, std, y = _rows()
    lines = ["kind\ta\tb\tc\tera\terb\terc"]
    for x, s, label in zip(X.tolist(), std.tolist(), y, strict=True):
        lines.append("\t".join([f"k{label}", *map(repr, x), *map(repr, s)]))
    (folder / "t.tsv").write_text("\n".join(lines) + "\n")
    return ["t.tsv"], ["--label", "kind", "--errors-in", "er{}"]


def _packed(folder):
    _csv(folder)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return ["t.csv.gz"], ["--label", "kind"]


def _svmlight(folder):
    X, _, y = _rows()
    lines = [
        f"{2 * label - 1} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row))
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    (folder / "t.svm").write_text("\n".join(lines) + "\n")
    return ["t.svm"], ["--scale", "none"]


def _documents(folder):
    X, std, y = _rows()
    texts = {"mean.dat": [], "labels.dat": [], "cov.dat": []}
    for k, (x, s, label) in enumerate(zip(X.tolist(), std.tolist(), y, strict=True)):
        texts["mean.dat"].append(" ".join([f"d{k}", *(f"{j + 1}:{v}" for j, v in enumerate(x))]))
        texts["labels.dat"].append(f"d{k} {2 * label - 1:+}")
        texts["cov.dat"].append(" ".join([f"d{k}:", *(f"{j},{j}:{v}" for j, v in enumerate(s, 1))]))
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    others = ["--labels", str(folder / "labels.dat"), "--covariances", str(folder / "cov.dat")]
    return list(texts), others


def _npz(folder):
    X, std, y = _rows()
    np.savez(folder / "t.npz", X=X, X_std=std, y=y)
    return ["t.npz"], []


def _arrays(folder):
    X, std, y = _rows()
    for name, array in (("X", X), ("X_std", std), ("y", y)):
        np.save(folder / f"{name}.npy", array)
    return ["X.npy", "X_std.npy", "y.npy"], []


def _pack(folder):
    """Put arrays into an archive whose checksums are right."""
    with zipfile.ZipFile(folder / "t.npz", "w") as archive:
        for name in ("X.npy", "X_std.npy", "y.npy"):
            archive.write(folder / name, name)
    return "t.npz"


def _by_astropy(name, form, **options):
    def write(folder):
        X, std, y = _rows()
        columns = {
            "a": X[:, 0] * mJy,
            "a_err": std[:, 0] * uJy,
            "b": X[:, 1],
            "kind": y.astype(str),
        }
        QTable(columns).write(folder / name, format=form, **options)
        return [name], ["--label", "kind"]

    return write


def _by_pyarrow(name, **options):
    def write(folder):
        X, std, y = _rows()
        kinds = pa.array([f"k{label}" for label in y])
        columns = {"a": X[:, 0], "a_std": std[:, 0], "b": X[:, 1], "n": np.arange(12)}
        table = pa.table({**columns, "kind": kinds, "again": kinds.dictionary_encode()})
        written = parquet.write_table if name.endswith("parquet") else feather.write_feather
        written(table, str(folder / name), **options)
        return [name], ["--label", "kind", "--drop", "again"]

    return write


WRITERS = {
    "parquet": _by_pyarrow("t.parquet", compression="zstd"),
    "parquet, plain": _by_pyarrow("t.parquet", compression="none", use_dictionary=False),
    "feather": _by_pyarrow("t.feather", compression="uncompressed"),
    "feather, packed": _by_pyarrow("t.feather", compression="lz4"),
    "csv": _csv,
    "tsv": _tsv,
    "csv.gz": _packed,
    "svmlight": _svmlight,
    "documents": _documents,
    "npz": _npz,
    "arrays": _arrays,
    "fits": _by_astropy("t.fits", "fits"),
    "ecsv": _by_astropy("t.ecsv", "ascii.ecsv"),
    "votable": _by_astropy("t.vot", "votable"),
    "votable, binary": _by_astropy("t.vot", "votable", tabledata_format="binary2"),
}


def changed(data, rng):
    """Return bytes of which a few were flipped, left out, repeated, moved or replaced."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not data:
            break
        at, length = int(rng.integers(len(data))), int(rng.integers(1, 12))
        match rng.integers(6):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                data[at : at + length] = TOKENS[rng.integers(len(TOKENS))]
            case 4:
                to = int(rng.integers(len(data)))
                data[to : to + length] = data[at : at + length]
            case _:
                if rng.random() < 0.1:
                    del data[at:]
                else:
                    data[at : at + 1] = bytes([rng.integers(256)])
    return bytes(data)


def outcome(folder, table, options, capsys):
    """Train, check that the model is finite or that one line refuses it, and tell which."""
    model = folder / "model.json"
    model.unlink(missing_ok=True)
    common = ["--memory", "300M", "--C", "1", "--folds", "0", "--output", str(model)]
    with limited():
        status = cli.main(["train", str(folder / table), *common, *options])
    lines = capsys.readouterr().err.splitlines()
    if status == 0:
        machine = machine_of(load_model(model))
        assert np.isfinite(machine.coef_).all()
        assert np.isfinite(machine.intercept_).all()
        return "trained"
    assert status in (1, 2)
    errors = [line for line in lines if not line.startswith("halosvm train: note: ")]
    assert len(errors) == 1, lines
    # a message of our own, for what is foreign does not know the file
    assert errors[0].startswith("halosvm train: error: "), lines
    assert str(folder) in errors[0], lines
    assert not model.exists()
    return "refused"


@pytest.fixture(autouse=True)
def one_parser(monkeypatch):
    """Make the parser of the command line once: it takes longer than what is tested."""
    monkeypatch.setattr(cli, "make_parser", functools.cache(cli.make_parser))


@pytest.mark.parametrize("name", WRITERS)
def test_changed_files_train_a_finite_model_or_are_refused_in_one_line(tmp_path, capsys, name):
    files, options = WRITERS[name](tmp_path)
    whole = {file: (tmp_path / file).read_bytes() for file in files}
    counts, found = {"trained": 0, "refused": 0}, []
    begin = time.monotonic()
    for seed in range(COUNT or 10**6):
        if not COUNT and time.monotonic() - begin > SECONDS:
            break
        rng = np.random.default_rng(seed)
        file = files[rng.integers(len(files))]
        (tmp_path / file).write_bytes(changed(whole[file], rng))
        table = _pack(tmp_path) if name == "arrays" else files[0]
        try:
            counts[outcome(tmp_path, table, options, capsys)] += 1
        except (Exception, OvertimeError) as error:
            found.append(f"seed {seed}: {type(error).__name__}: {error}")
        (tmp_path / file).write_bytes(whole[file])
    assert not found, "\n".join(found)
    assert counts["refused"] > 0
    if COUNT:
        print(f"{name}: {counts}")
