"""Fail unless the wheel holds the package and its metadata, and nothing else."""

import sys
import zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
stray = [name for name in names if not name.startswith(("halosvm/", "halosvm-"))]
kinds = {name.rpartition(".")[2] for name in names if name.startswith("halosvm/")}
if stray or not kinds <= {"py", "pyi", "so", "pyd", "typed"}:
    sys.exit(f"unexpected files in the wheel: {stray or sorted(kinds)}")
modules = {name.split("/")[1].split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
expected = {"_processor", "_core_baseline"}
if "x86_64" in sys.argv[1]:
    expected |= {"_core_avx2", "_core_avx512"}
if modules != expected:
    sys.exit(f"extension modules of the wheel: {sorted(modules)}, expected {sorted(expected)}")
print(f"{len(names)} files, package only")
