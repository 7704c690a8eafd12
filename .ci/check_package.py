"""Fail unless the wheel holds the package and nothing else, and the sdist what it is built from."""

import importlib.metadata
import subprocess
import sys
import tarfile

# The files of the wheel that the README's lines have built and installed.
names = [str(path) for path in importlib.metadata.files("halosvm")]
names = [name for name in names if "__pycache__" not in name and not name.startswith("..")]
stray = [name for name in names if not name.startswith(("halosvm/", "halosvm-"))]
kinds = {name.rpartition(".")[2] for name in names if name.startswith("halosvm/")}
if stray or not kinds <= {"py", "pyi", "so", "pyd", "typed"}:
    sys.exit(f"unexpected files in the wheel: {stray or sorted(kinds)}")
modules = {name.split("/")[1].split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
if modules not in ({"_processor", "_core_baseline"}, {"_processor", "_core_avx2"}):
    sys.exit(f"extension modules of a build from source: {sorted(modules)}, expected one core")
print(f"wheel: {len(names)} files, package only")

with tarfile.open(sys.argv[1]) as archive:
    packed = {name.partition("/")[2] for name in archive.getnames()}
command = [
    "git",
    "ls-files",
    "cpp",
    "python",
    "tests",
    "third_party",
    "CMakeLists.txt",
    "pyproject.toml",
]
tracked = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
missing = sorted(set(tracked) - packed)
if missing:
    sys.exit(f"missing in the source distribution: {missing}")
print(f"sdist: {len(packed)} files, with all that the build needs")
