"""Chunks from callables, .npy shards and Parquet data sets hold what is in them, in its order."""

import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest

from halosvm import Gaussians, UncertainSVC, chunks


def all_of(source):
    """Return means, standard deviations, targets and weights of all chunks, and their sizes."""
    each = list(source.map(tuple))
    std = [np.sqrt(np.diagonal(X.covariances.to_full(), axis1=1, axis2=2)) for X, _, _ in each]
    columns = [[X.mean for X, _, _ in each], std, [y for _, y, _ in each]]
    if each[0][2] is not None:
        columns.append([w for _, _, w in each])
    return [np.concatenate(one) for one in columns], [len(X) for X, _, _ in each]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X, std = rng.normal(size=(100, 3)), rng.random((100, 3))
    return X, std, rng.integers(0, 2, 100), rng.random(100)


def save(folder, name, array, edges=(0, 37, 100)):
    paths = []
    for i, (begin, end) in enumerate(itertools.pairwise(edges)):
        paths.append(folder / f"{name}{i}.npy")
        np.save(paths[-1], array[begin:end])
    return paths


def test_shards_are_read_in_order_in_chunks_of_so_many_rows(tmp_path, table):
    names = ("X", "std", "y", "w")
    X, std, y, w = (save(tmp_path, name, each) for name, each in zip(names, table, strict=True))
    source = chunks(X, y, X_std=std, sample_weight=w, rows=20)
    for _ in range(2):
        found, sizes = all_of(source)
        assert sizes == [20, 17, 20, 20, 20, 3]
        for mine, expected in zip(found, table, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-15)


def test_shards_that_do_not_fit_are_refused(tmp_path, table):
    X, y = save(tmp_path, "X", table[0]), save(tmp_path, "y", table[2], (0, 30, 100))
    with pytest.raises(ValueError, match=r"chunk 0: y: .*y0.npy has 30 rows, .*X0.npy has 37"):
        list(chunks(X, y).map(tuple))
    with pytest.raises(ValueError, match="y has 1 files, source has 2"):
        chunks(X, y[:1])
    table[0][40, 2] = np.nan
    X = save(tmp_path, "X", table[0])
    y = save(tmp_path, "y", table[2])
    with pytest.raises(ValueError, match=r"chunk 1: .*X1.npy from row 0: X.*row 3, column 2"):
        UncertainSVC().fit(chunks(X, y))


@pytest.fixture
def parquet(tmp_path, table):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, std, y, w = table
    columns = {"a": X[:, 0], "b": X[:, 1], "b_std": std[:, 1], "c": X[:, 2], "c_std": std[:, 2]}
    columns |= {"class": np.array(["no", "yes"])[y], "weight": w}
    whole = pa.table(columns)
    for i, (begin, end) in enumerate([(0, 37), (37, 100)]):
        parquet.write_table(whole.slice(begin, end - begin), tmp_path / f"part{i}.parquet")
    return tmp_path


def test_a_parquet_data_set_is_read_by_the_names_of_its_columns(parquet, table):
    X, std, y, w = table
    source = chunks(parquet, "class", sample_weight="weight", rows=30)
    for _ in range(2):
        (mean, errors, labels, weights), sizes = all_of(source)
        assert max(sizes) <= 30
        np.testing.assert_array_equal(mean, X)
        np.testing.assert_allclose(errors, std * [0, 1, 1], rtol=1e-15)
        np.testing.assert_array_equal(labels, np.array(["no", "yes"])[y])
        np.testing.assert_array_equal(weights, w)
    some = chunks(parquet, "class", columns=["c", "a"])
    first = next(iter(some.map(tuple)))[0]
    assert first.feature_names.tolist() == ["c", "a"]
    np.testing.assert_array_equal(first.mean, X[: len(first), [2, 0]])


def test_a_model_of_a_parquet_data_set_is_that_of_its_rows(parquet, table):
    X, std, y, _ = table
    clf = UncertainSVC(tol=1e-8)
    found = clf.fit(chunks(parquet, "class", columns=["b", "c"]))
    assert found.feature_names_in_.tolist() == ["b", "c"]
    expected = UncertainSVC(tol=1e-8).fit(X[:, 1:], y, X_std=std[:, 1:])
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    assert found.classes_.tolist() == ["no", "yes"]


def test_bad_columns_are_named(parquet, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet as files

    for arguments, message in (
        ({"y": "label"}, "there is no column 'label'; there are a, b, b_std"),
        ({"y": "class", "columns": ["a", "z"]}, "there is no column 'z'"),
    ):
        with pytest.raises(ValueError, match=message):
            list(chunks(parquet, **arguments).map(tuple))
    with pytest.raises(TypeError, match="column 'class' has dtype object; real numbers"):
        list(chunks(parquet, "a").map(tuple))
    path = tmp_path / "holes.parquet"
    files.write_table(pa.table({"a": [1.0, None], "y": ["u", "v"]}), path)
    with pytest.raises(ValueError, match=r"chunk 0: column 'a', row 1 is missing"):
        list(chunks(path, "y").map(tuple))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((list, "y"), "y is given, but source is a callable"),
        (("a.npy",), "y is not given"),
        (([], "y"), "source is an empty list"),
    ],
)
def test_unclear_sources_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        chunks(*arguments)


def test_the_next_chunk_is_read_while_one_is_in_use_and_no_further_one():
    begun = [threading.Event() for _ in range(4)]

    def read():
        for i in range(4):
            begun[i].set()
            yield Gaussians(np.full((2, 1), float(i))), [0, 1]

    for i, _ in enumerate(chunks(read).map(tuple)):
        if i < 3:
            assert begun[i + 1].wait(10)
        if i < 2:
            assert not begun[i + 2].wait(0.05)


def test_importing_the_package_imports_neither_dask_nor_pyarrow():
    # pandas, which scikit-learn imports if it is there, imports pyarrow where it can.
    script = """
import sys
for name in ("dask", "distributed", "pyarrow"):
    sys.modules[name] = None  # an import of it fails
import halosvm, halosvm.files.chunks, halosvm.files.parquet
try:
    list(halosvm.chunks("data.parquet", "y").map(tuple))
except ImportError as error:
    print(error)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "Parquet data sets are read by pyarrow: pip install 'halosvm[io]'\n"
