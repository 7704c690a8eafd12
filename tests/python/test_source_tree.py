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
