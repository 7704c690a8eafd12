"""Rules of the source tree that no compiler checks."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "halosvm"
if not PACKAGE.exists():
    pytest.skip("the source tree is not here", allow_module_level=True)

# The kinds of kernels are told apart in one file; the reference is an oracle of its own.
ASK_FOR_KINDS = {PACKAGE / "kernel" / "expected_kernel.py"} | set((PACKAGE / "reference").iterdir())
DECOMPOSITIONS = re.compile(
    r"#include <Eigen/(?!Core>)|Eigen::\w*(LLT|LDLT|QR|SVD|LU|EigenSolver|Tridiagonalization)\b"
)


def test_decompositions_of_eigen_are_compiled_in_linalg_alone():
    sources = [path for path in (ROOT / "cpp").rglob("*.[ch]pp") if path.is_file()]
    users = {path for path in sources if DECOMPOSITIONS.search(path.read_text(encoding="utf-8"))}
    linalg = ROOT / "cpp" / "src" / "linalg"
    assert users == {linalg / f"{name}.cpp" for name in ("cholesky", "eigen", "lu", "qr")}


def _files(*folders):
    return [p for folder in folders for p in (ROOT / folder).rglob("*.[ch]pp") if p.is_file()]


def _naming(pattern, files):
    return {
        str(path.relative_to(ROOT)) for path in files if re.search(pattern, path.read_text("utf-8"))
    }


def test_no_loss_is_named_outside_of_the_losses():
    names = r"expected_(hinge|squared_hinge|logistic)\b|\"hinge\"|\b(Expected)?(Squared)?Hinge\b"
    names += r"|best_case\b|\bBestCase\b|marginal_logistic\b|\bMarginalLogistic\b"
    files = [path for path in _files("cpp") if path.parent.name != "loss"]
    assert _naming(names, files) == set()


def test_solvers_know_no_kind_of_covariances():
    folders = [
        f"cpp/{place}/{station}"
        for place in ("src", "include/halosvm")
        for station in ("loss", "objective", "solver", "model", "core")
    ]
    named = "zero|isotropic|diagonal|sparse_diagonal|low_rank|full|columns|scaled"
    kinds = rf"covariances/({named})\.hpp|kind\(\) =="
    assert _naming(kinds, _files(*folders)) == set()


def questions_about_kinds(source):
    """Return the lines that compare what is called kind, but for that of NumPy's types."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        sides += [node.subject] if isinstance(node, ast.Match) else []
        for side in sides:
            named = isinstance(side, ast.Name) and side.id == "kind"
            held = isinstance(side, ast.Attribute) and side.attr == "kind"
            if named or (held and "dtype" not in ast.unparse(side.value)):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("if X.covariances.kind != 'zero':\n    pass", [1]),
        ("x = 1\ny = kind in ('zero', 'full')", [2]),
        ("y = 'full' == batch.kind", [1]),
        ("match batch.kind:\n    case 'full':\n        pass", [1]),
        ("y = values.dtype.kind in 'iuf' or dtype.kind == 'b' or kinds == 1", []),
        ("y = STORAGES[batch.kind]", []),
    ],
)
def test_questions_about_kinds_are_found(source, lines):
    assert questions_about_kinds(source) == lines


def test_nothing_asks_a_batch_of_covariances_of_what_kind_it_is():
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path not in ASK_FOR_KINDS
        for line in questions_about_kinds(path.read_text(encoding="utf-8"))
    }
    assert not found


def test_solvers_run_in_one_place():
    call = re.compile(r"_core\.(minimize|Objective\()")
    measured = PACKAGE / "commands" / "benchmark"  # whose clock stands between the two
    users = {
        path
        for path in PACKAGE.rglob("*.py")
        if measured not in path.parents and call.search(path.read_text(encoding="utf-8"))
    }
    assert users == {PACKAGE / "linear" / "linear_fit.py"}


def test_the_reference_stays_an_oracle_that_the_package_does_not_lean_on():
    imports = re.compile(
        r"^\s*(from halosvm\.reference|from halosvm import .*\breference\b)", re.MULTILINE
    )
    measured = PACKAGE / "commands" / "benchmark"  # of which it is a rival
    users = {
        path
        for path in PACKAGE.rglob("*.py")
        if measured not in path.parents and imports.search(path.read_text(encoding="utf-8"))
    }
    assert users == {PACKAGE / "__init__.py"}


def test_files_are_written_in_one_place_which_completes_them():
    """Nothing else opens a file to write it, or lets others do so by its name."""
    writes = re.compile(
        r"^\s*\w+\.savefig\(|\.write_(text|bytes)\((?!\"5\")|\bopen\([^)]*[\"'][wxa]b?[\"']|\.tofile\(",
        re.MULTILINE,
    )
    users = {
        path for path in PACKAGE.rglob("*.py") if writes.search(path.read_text(encoding="utf-8"))
    }
    assert users == {PACKAGE / "files" / "atomic.py"}
