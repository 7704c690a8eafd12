"""Fail unless wheels hold the package and no more, and the sdist what it is built from.

Arguments: the source distribution, and wheels; without wheels, what is installed from a source.
"""

import importlib.metadata
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

LARGEST = 6_000_000
LICENCES = {"LICENSE", "Eigen-MPL-2.0.txt", "pybind11-BSD-3-Clause.txt"}


def tracked(*folders: str) -> set[str]:
    """Return the files that the repository holds, of some folders or all."""
    command = ["git", "ls-files", *folders]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def check_contents(names: list[str], cores: list[set[str]]) -> None:
    """Check the files of a wheel, or those that it has installed."""
    stray = [name for name in names if not name.startswith(("halosvm/", "halosvm-"))]
    embedded = {name for name in names if name.startswith("halosvm/embed/")}
    package = {name for name in names if name.startswith("halosvm/")} - embedded
    kinds = {name.rpartition(".")[2] for name in package}
    if stray or not kinds <= {"py", "pyi", "so", "pyd", "typed"}:
        sys.exit(f"unexpected files in the wheel: {stray or sorted(kinds)}")
    expected = {f"halosvm/embed/{name}" for name in tracked("cpp", "CMakeLists.txt")}
    expected |= {f"halosvm/embed/cmake/halosvmConfig{part}.cmake" for part in ("", "Version")}
    expected.add("halosvm/embed/third_party/eigen.cmake")
    if embedded != expected:
        sys.exit(f"sources for C++ programs: {sorted(embedded ^ expected)} too many or too few")
    modules = {n.split("/")[1].split(".")[0] for n in package if n.endswith((".so", ".pyd"))}
    if modules not in cores:
        sys.exit(f"extension modules: {sorted(modules)}, expected one of {cores}")
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    if licences != LICENCES:
        sys.exit(f"licences in the wheel: {sorted(licences)}, expected {sorted(LICENCES)}")
    print(f"wheel: {len(names)} files, package, sources and licences only")


def check_source(path: str) -> None:
    """Check the source distribution: all that the build and the tests need, and nothing of ours."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        packed = {m.name.partition("/")[2] for m in members if m.isfile()} - {"PKG-INFO"}
    needed = tracked("cpp", "python", "tests", "third_party", "CMakeLists.txt", "pyproject.toml")
    needed |= {"README.md", "LICENSE", "CHANGELOG.md"}
    if needed - packed:
        sys.exit(f"missing in the source distribution: {sorted(needed - packed)}")
    if packed - tracked():
        sys.exit(f"stray in the source distribution: {sorted(packed - tracked())}")
    print(f"sdist: {len(packed)} files, with all that the build needs")


check_source(sys.argv[1])
for wheel in sys.argv[2:]:
    size = Path(wheel).stat().st_size
    print(f"{Path(wheel).name}: {size / 1e6:.2f} MB")
    if size > LARGEST:
        sys.exit(f"that is more than {LARGEST / 1e6:.0f} MB")
    with zipfile.ZipFile(wheel) as archive:
        files = [info.filename for info in archive.infolist() if not info.is_dir()]
        check_contents(files, [{"_processor", "_core_baseline", "_core_avx2"}])
if len(sys.argv) == 2:
    installed = [str(path) for path in importlib.metadata.files("halosvm") or ()]
    installed = [name for name in installed if "__pycache__" not in name and name[:2] != ".."]
    check_contents(installed, [{"_processor", "_core_baseline"}, {"_processor", "_core_avx2"}])
