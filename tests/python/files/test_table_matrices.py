"""Files of matrices: svmlight, .npz and the three files of SVM-GSU, read, written and refused."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from halosvm.files.tables.reading import Reading
from halosvm.files.tables.table import OWN, read_table
from halosvm.files.tables.trouble import TableError
from halosvm.files.tables.writing import write_table

DATA = Path(__file__).parents[1] / "data"


def write(path, text):
    path.write_text(text)
    return path


# ---- svmlight ---------------------------------------------------------------------------------


def test_svmlight_stays_sparse_and_is_what_its_own_writer_wrote(tmp_path):
    X = sparse.random_array(
        (20, 50), density=0.1, random_state=np.random.default_rng(0), format="csr"
    )
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # scikit-learn 1.6
    y = np.arange(20) % 3
    path = tmp_path / "t.svmlight"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    table = read_table(path, label=OWN, model_features=[str(k + 1) for k in range(50)])
    assert sparse.issparse(table.mean)
    np.testing.assert_allclose(table.mean.toarray(), X.toarray(), rtol=1e-15)
    assert table.labels == [str(label) for label in y]
    assert table.examples.is_sparse


def test_svmlight_is_written_and_read_bit_for_bit(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-300, 300, (30, 4))
    np.savez(tmp_path / "t.npz", X=X, y=rng.integers(-3, 3, 30))
    table = read_table(tmp_path / "t.npz", label=OWN)
    write_table(table, tmp_path / "t.svmlight", "svmlight", "label")
    again = read_table(tmp_path / "t.svmlight", label=OWN)
    np.testing.assert_array_equal(again.mean.toarray(), X)
    assert again.labels == table.labels


def test_svmlight_of_a_name_that_does_not_tell_is_known_by_its_lines(heart):
    X, y = heart
    table = read_table(DATA / "heart_scale" / "heart_scale", label=OWN)
    np.testing.assert_array_equal(table.mean.toarray(), X)
    assert [int(label) for label in table.labels] == y.tolist()


def test_svmlight_values_of_a_regression(tmp_path):
    path = write(tmp_path / "t.svm", "1.5 1:2\n-2 2:1 # a comment\n")
    table = read_table(path, target=OWN)
    assert table.values.tolist() == [1.5, -2.0]
    assert table.labels == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("1 2:1 1:1\n", "is not svmlight text"),
        ("1 a:1\n", "is not svmlight text"),
        ("1 1:x\n", "is not svmlight text"),
        ("1 1:nan\n-1 1:1\n", "holds nan; all values must be finite"),
        ("1 1:1\n-1 1999999999:1\n", "the largest index is 1999999999, and 2 indices are in use"),
    ],
)
def test_svmlight_that_is_none_is_refused(tmp_path, text, message):
    with pytest.raises(TableError, match=rf"t\.svm.* {message}"):
        read_table(write(tmp_path / "t.svm", text), label=OWN)


def test_features_beyond_those_of_the_model_are_refused(tmp_path):
    path = write(tmp_path / "t.svm", "1 1:1 3:1\n")
    assert read_table(path, model_features=list("1234")).mean.shape == (1, 4)
    with pytest.raises(TableError, match="has 3 features, the model 2"):
        read_table(path, model_features=list("12"))
    with pytest.raises(
        TableError, match=r"has features 1, 2, \.\.\., the model was trained on 'a'"
    ):
        read_table(path, model_features=["a"])
    with pytest.raises(TableError, match="--drop is of use only with csv"):
        read_table(path, drop=["1"])
    with pytest.raises(TableError, match="has no columns with names; leave --label kind out"):
        read_table(path, label="kind")


# ---- npz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["X_std", "X_var"])
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_npz_holds_standard_deviations_or_variances(tmp_path, name, shape):
    errors = np.random.default_rng(0).uniform(1, 2, shape)
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2)), y=["a", "b", "a"], **{name: errors})
    table = read_table(tmp_path / "t.npz", label=OWN)
    variances = errors**2 if name == "X_std" else errors
    expected = np.broadcast_to(variances.reshape(3, -1), (3, 2))
    np.testing.assert_array_equal(table.examples.covariances.variances(), expected)
    assert table.labels == ["a", "b", "a"]


def test_npz_holds_full_covariances_and_names(tmp_path):
    A = np.random.default_rng(0).normal(size=(3, 2, 2))
    S = A @ A.transpose(0, 2, 1)
    np.savez_compressed(tmp_path / "t.npz", X=np.ones((3, 2)), X_cov=S, feature_names=["u", "v"])
    table = read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.examples.covariances.to_full(), S)
    assert table.features == ("u", "v")
    write_table(table, tmp_path / "again.npz", "npz", "label")
    again = read_table(tmp_path / "again.npz")
    np.testing.assert_array_equal(again.examples.covariances.to_full(), S)
    with pytest.raises(TableError, match="covariances between features, which columns cannot"):
        write_table(table, tmp_path / "t.csv", "csv", "label")
    with pytest.raises(TableError, match="has errors, which svmlight cannot hold"):
        write_table(table, tmp_path / "t.svm", "svmlight", "label")


@pytest.mark.parametrize("kind", ["npz", "csv", "fits"])
def test_standard_deviations_survive_bit_for_bit(tmp_path, kind):
    rng = np.random.default_rng(3)
    X, std = rng.normal(size=(40, 3)), rng.lognormal(size=(40, 3))
    np.savez(tmp_path / "t.npz", X=X, X_std=std, y=np.arange(40) % 2)
    table = read_table(tmp_path / "t.npz", label=OWN)
    path = tmp_path / f"out.{kind}"
    write_table(table, path, kind, "label")
    again = read_table(path, label=OWN if kind == "npz" else "label")
    np.testing.assert_array_equal(again.mean, X)
    got = again.examples.covariances
    assert got.squared
    np.testing.assert_array_equal(got.values, std)
    assert again.labels == table.labels


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [1]}, "has no array 'X'; its arrays are 'y'"),
        ({"X": np.ones(3)}, r"X has shape \(3,\) and dtype float64; one row of numbers"),
        ({"X": np.array([["a"]])}, "X has shape .* and dtype <U1"),
        ({"X": np.array([[{}]], dtype=object)}, "X.npy holds Python objects"),
        ({"X": np.ones((3, 2)), "y": [1]}, r"y has shape \(1,\), X has 3 rows"),
        ({"X": [[np.nan]]}, "holds nan; all values must be finite"),
        ({"X": np.ones((3, 2)), "X_std": np.ones((2, 2))}, r"X_std has shape \(2, 2\)"),
        ({"X": np.ones((1, 1)), "X_std": [[-1.0]]}, "X_std"),
        ({"X": np.ones((1, 1)), "X_std": [1.0], "X_var": [1.0]}, "X_std and X_var; errors are"),
        ({"X": np.ones((1, 2)), "X_cov": [[[1.0, 2], [2, 1]]]}, "X_cov"),
    ],
)
def test_npz_that_makes_no_sense_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=r"t\.npz.*" + message):
        read_table(tmp_path / "t.npz")


def test_npz_that_claims_more_than_it_holds_is_refused_without_making_room(tmp_path):
    claim = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**3)}
    np.lib.format.write_array_header_1_0(claim, header)
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", claim.getvalue() + bytes(800))
    with pytest.raises(TableError, match=r"X\.npy does not hold as many numbers as it says"):
        read_table(path)


def test_archives_that_are_none_are_refused(tmp_path):
    path = write(tmp_path / "t.npz", "no archive")
    with pytest.raises(TableError, match=r"t\.npz is not a readable \.npz archive"):
        read_table(path)
    np.savez(path, X=np.ones((10, 10)))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(TableError, match=r"t\.npz is not a readable \.npz archive"):
        read_table(path)


# ---- the three files of SVM-GSU ---------------------------------------------------------------

MEANS = "doc_1 1:0.13 3:0.12\ndoc_3 1:-0.21 2:0.1 3:-0.43\ndoc_5 1:0.11 2:-0.21\n"
LABELS = "doc_5 -1\ndoc_3 +1\ndoc_6 -1\n"
COVARIANCES = "doc_3: 1,1:0.25 2,2:0.01 3,3:0.1\ndoc_5: 1,1:0.25 2,2:0.02 3,3:0.1\n"


@pytest.fixture
def three(tmp_path):
    def make(means=MEANS, labels=LABELS, covariances=COVARIANCES, kind=None):
        paths = [tmp_path / f"{name}.dat" for name in ("mean", "labels", "cov")]
        for path, text in zip(paths, (means, labels, covariances), strict=True):
            path.write_text(text)
        reading = Reading(labels=paths[1], covariances=paths[2], covariance_kind=kind)
        return read_table(paths[0], label=OWN, reading=reading)

    return make


def test_documents_of_all_files_are_joined_by_their_ids_and_others_told(three):
    table = three()
    assert table.mean.tolist() == [[-0.21, 0.1, -0.43], [0.11, -0.21, 0.0]]
    variances = table.examples.covariances.variances()
    assert variances.tolist() == [[0.25, 0.01, 0.1], [0.25, 0.02, 0.1]]
    assert table.labels == ["1", "-1"]
    notes = [note.replace(table.path, "mean.dat") for note in table.notes]
    assert [note.split(" not in ")[0] for note in notes] == [
        "1 document",
        "1 document",
        "2 documents",
    ]
    assert "'doc_6'" in notes[0]
    assert "'doc_1'" in notes[1]


def test_full_covariances_are_those_of_their_entries(three):
    full = "doc_3 1,1:1 1,2:0.5 2,1:0.5 2,2:2\ndoc_5 3,3:4\n"
    S = three(covariances=full).examples.covariances.to_full()
    assert S.tolist() == [
        [[1, 0.5, 0], [0.5, 2, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 4]],
    ]


def test_isotropic_covariances_are_said_to_be(three):
    text = "doc_3 1,1:0.5\ndoc_5 1,1:0.25\n"
    with pytest.raises(TableError, match=r"no entry but 1,1; say by --covariances-are isotropic"):
        three(covariances=text)
    batch = three(covariances=text, kind="isotropic").examples.covariances
    assert batch.kind == "isotropic"
    assert batch.variances().tolist() == [[0.5] * 3, [0.25] * 3]
    batch = three(covariances=text, kind="diagonal").examples.covariances
    assert batch.variances().tolist() == [[0.5, 0, 0], [0.25, 0, 0]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("means", "a 1:1\na 1:2\n", r"mean\.dat, line 2: document 'a' is on line 1 already"),
        ("means", "doc_3 1:x\n", r"mean\.dat, line 1: '1:x' does not hold a finite number"),
        ("means", "doc_3 1:inf\n", "'1:inf' does not hold a finite number"),
        ("means", "doc_3 0:1\n", "'0:1' has the index 0; they begin with 1"),
        ("means", "doc_3 -1:1\n", "'-1:1' is not index:value"),
        ("means", "doc_3 1:1 1:2\n", "line 1 gives an entry twice"),
        ("means", "doc_3 1:1 99999999:2\n", "the largest index is 99999999, and 2 are in use"),
        ("means", "\n", r"mean\.dat is empty"),
        ("means", "other 1:1\n", "no document is in all of the files"),
        ("labels", "doc_3 1 2\n", r"labels\.dat, line 1 has 2 cells behind the id"),
        ("labels", "doc_3 nan\ndoc_5 1\n", "missing label 'nan'"),
        ("covariances", "doc_3 4,4:1\ndoc_5 1,1:1\n", "'4,4:1' is beyond the 3 features"),
        ("covariances", "doc_3 1:1\n doc_5 1,1:1\n", "'1:1' is not index,index:value"),
        ("covariances", "doc_3 2,2:-1\ndoc_5 1,1:1\n", r"cov\.dat"),
        ("covariances", "doc_3 1,2:1\ndoc_5 1,1:1\n", r"cov\.dat"),
    ],
)
def test_documents_that_make_no_sense_are_refused(three, name, text, message):
    with pytest.raises(TableError, match=message) as caught:
        three(**{name: text})
    assert "\n" not in str(caught.value)


def test_entries_that_do_not_go_with_the_kind_are_refused(three):
    full = "doc_3 1,1:1 1,2:0.5 2,1:0.5 2,2:2\ndoc_5 3,3:4\n"
    with pytest.raises(TableError, match=r"line 1: entry 1,2 does not go with .*diagonal"):
        three(covariances=full, kind="diagonal")
    with pytest.raises(TableError, match=r"line 1: entry 2,2 does not go with .*isotropic"):
        three(kind="isotropic")


def test_public_example_is_read_as_a_plain_parser_reads_it(toy):
    means, variances, y = toy
    folder = DATA / "toy_svmgsu"
    reading = Reading(labels=folder / "labels.dat.gz", covariances=folder / "cov_diag.dat.gz")
    table = read_table(folder / "mean.dat.gz", label=OWN, reading=reading)
    np.testing.assert_array_equal(table.mean, means)
    np.testing.assert_array_equal(table.examples.covariances.variances(), variances)
    assert [int(label) for label in table.labels] == y.tolist()
    assert table.notes == ()


def test_other_order_of_the_files_changes_nothing(tmp_path, three):
    turned = "".join(reversed(COVARIANCES.splitlines(keepends=True)))
    one, other = three(), three(covariances=turned)
    np.testing.assert_array_equal(
        one.examples.covariances.variances(), other.examples.covariances.variances()
    )
    packed = tmp_path / "mean.dat.gz"
    packed.write_bytes(gzip.compress(MEANS.encode()))
    table = read_table(packed, model_features=list("1234"))
    assert table.mean.shape == (3, 4)
