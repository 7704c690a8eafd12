"""Fail unless the installed package starts on old processors and picks the right build on newer.

Disassembles what every processor loads, and fits on emulated processors if there is qemu-x86_64.
"""

import platform
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

# Registers and instructions of SSE3 and later. tzcnt is absent on purpose: old processors read it
# as bsf, and compilers rely on that.
NEWER = re.compile(
    r"%[yz]mm|%xmm(1[6-9]|2\d|3[01])|%k[0-7]\b|\tv(?!err|erw)[a-z0-9]+ |"
    r"\t(andn|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe|popcnt|crc32|"
    r"addsubp[sd]|h(add|sub)p[sd]|lddqu|mov(s[lh]|d)dup|pshufb|ph(add|sub)s?[wd]|pmaddubsw|pmulhrsw|psign[bwd]|"
    r"pabs[bwd]|palignr|p?blend\w*|dpp[sd]|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmp(eq|gt)q|pcmp[ei]str[im]|"
    r"p(ext|ins)r[bdq]|phminposuw|p(max|min)(s[bd]|u[wd])|pmov[sz]x\w+|pmul(dq|ld)|ptest|round[sp][sd]|"
    r"aes\w+|pclmul\w+|sha(1|256)\w+|gf2p8\w+)[lqw]? "
)
FIT = """
import numpy as np, halosvm
rng = np.random.default_rng(0)
y = np.arange(300) % 3
X = np.eye(3, 20)[y] + rng.normal(size=(300, 20))
clf = halosvm.UncertainSVC().fit(X, y, X_std=rng.uniform(0.1, 1.0, X.shape))
assert clf.score(X, y) > 0.5
print(halosvm.show_config("dict")["isa"])
"""
# Of 2008, the oldest that NumPy's wheels run on, and of 2013.
PROCESSORS = {"Nehalem": "baseline", "Haswell": "avx2"}


def newer_instructions(module: str) -> list[str]:
    """Return the instructions of a module of the package that the first x86-64 processors lack."""
    (package,) = find_spec("halosvm").submodule_search_locations
    (path,) = [p for s in EXTENSION_SUFFIXES if (p := Path(package, module + s)).exists()]
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 100, f"objdump shows no code in {path}"
    return [line for line in lines if NEWER.search(line + " ")]


def main() -> None:
    """Check the installed package."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        print("no x86-64 processor: one build only, nothing to check")
        return
    for module in ("_processor", "_core_baseline"):
        found = newer_instructions(module)
        if found:
            sys.exit("\n".join([f"{module} has {len(found)} newer instructions:", *found[:10]]))
        print(f"{module}: nothing newer than x86-64")
    assert newer_instructions("_core_avx2"), "the search for newer instructions finds none in AVX2"

    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        print("no qemu-x86_64 (Debian: qemu-user): no run on emulated processors")
        return
    running = {}
    for processor in PROCESSORS:
        command = [emulator, "-cpu", processor, sys.executable, "-W", "ignore", "-c", FIT]
        running[processor] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    for processor, process in running.items():
        out, error = process.communicate()
        if out.strip() != PROCESSORS[processor]:
            sys.exit(f"{processor}: {out}{error}")
        print(f"{processor}: fits with {out.strip()}")


if __name__ == "__main__":
    main()
