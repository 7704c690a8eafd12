"""Rules of the source tree that no compiler checks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    allowed = {"cpp/include/halosvm/loss", "cpp/src/loss.cpp"}
    files = [
        path
        for path in _files("cpp")
        if not any(str(path.relative_to(ROOT)).startswith(folder) for folder in allowed)
    ]
    assert _naming(names, files) == set()


def test_solvers_know_no_kind_of_covariances():
    sources = [p for p in _files("cpp/src", "cpp/include/halosvm") if p.parent.name != "covariance"]
    solvers = [p for p in sources if not {"kernel", "maps", "covariance"} & set(p.parts)]
    allowed = {
        "cpp/include/halosvm/halosvm.hpp",
        "cpp/include/halosvm/subspace.hpp",
        "cpp/src/subspace.cpp",
    }
    kinds = r"covariance/(zero|isotropic|diagonal|low_rank|full|scaled)\.hpp|kind\(\) =="
    assert _naming(kinds, solvers) - allowed == set()
