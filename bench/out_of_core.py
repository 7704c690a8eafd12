"""Fit 2 GB of chunks with 400 MB of memory, and compare model, memory and time with one array.

    python bench/out_of_core.py [--gigabytes 2]

Shards are written to a temporary folder. One process, whose private memory is limited, fits the
chunks; another one, if there is memory for it, the whole. Reading alone is measured between them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

ROWS, D = 50_000, 100  # of a shard of 80 MB
CHUNK = 10_000
LIMIT = 400_000_000


def write(folder: Path, n_shards: int) -> None:
    w = np.random.default_rng(0).normal(size=D)
    for i in range(n_shards):
        rng = np.random.default_rng(i + 1)
        std = rng.random((ROWS, D))
        X = rng.normal(size=(ROWS, D))
        y = (X @ w + 3.0 * rng.normal(size=ROWS) > 0).astype(np.int64)
        for name, array in (("X", X), ("std", std), ("y", y)):
            np.save(folder / f"{name}{i:03}.npy", array)


def shards(folder: Path) -> dict[str, list[Path]]:
    return {name: sorted(folder.glob(f"{name}*.npy")) for name in ("X", "std", "y")}


def drop_caches(paths: Iterable[Path]) -> None:
    """Have the next reading come from the disk."""
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_alone(folder: Path) -> float:
    """Return the seconds that reading all shards takes."""
    start = time.perf_counter()
    buffer = bytearray(1 << 24)
    for path in sorted(folder.glob("*.npy")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - start


def peak() -> float:
    """Return the largest resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1000


def fit_chunks(folder: Path, *, cold: bool) -> None:
    import resource

    from halosvm import Gaussians, UncertainSVC, chunks

    # Private memory that can be written; 290 MB of it, most never touched, are there after imports.
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    before = peak()
    files = shards(folder)
    drop_caches(folder.glob("*.npy"))

    def read() -> Iterator[tuple[Gaussians, np.ndarray]]:
        for paths in zip(*files.values(), strict=True):
            stored = [np.load(path, mmap_mode="r") for path in paths]
            for begin in range(0, ROWS, CHUNK):
                X, std, y = (np.array(array[begin : begin + CHUNK]) for array in stored)
                yield Gaussians(X, std=std), y
            del stored
            drop_caches(paths)

    source = (
        chunks(read) if cold else chunks(files["X"], files["y"], X_std=files["std"], rows=CHUNK)
    )
    start = time.perf_counter()
    clf = UncertainSVC(tol=1e-9).fit(source)
    report(clf, start, before)


def fit_whole(folder: Path) -> None:
    from halosvm import UncertainSVC

    before = peak()
    files = shards(folder)
    X, std, y = (np.concatenate([np.load(path) for path in paths]) for paths in files.values())
    start = time.perf_counter()
    clf = UncertainSVC(tol=1e-9).fit(X, y, X_std=std)
    report(clf, start, before)


def report(clf: object, start: float, before: float) -> None:
    names = ("coef_", "intercept_", "objective_", "suboptimality_", "n_iter_")
    found = {name: np.asarray(getattr(clf, name)).tolist() for name in names}
    found |= {"seconds": time.perf_counter() - start, "peak": peak(), "before": before}
    print(json.dumps(found))


def run(what: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--fit", what, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--fit", choices=("chunks", "cold", "whole"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-whole", action="store_true", help="leave the fit in memory out")
    options = parser.parse_args()
    if options.fit:
        if options.fit == "whole":
            fit_whole(options.folder)
        else:
            fit_chunks(options.folder, cold=options.fit == "cold")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, max(1, round(options.gigabytes * 1e9 / (ROWS * D * 16))))
        os.sync()
        size = sum(path.stat().st_size for path in folder.glob("*.npy"))
        found = run("chunks", folder)
        cold = run("cold", folder)
        drop_caches(folder.glob("*.npy"))
        from_disk, again = read_alone(folder), read_alone(folder)
        passes = found["n_iter_"] + 2  # the first one, and the one that certifies
        each = found["seconds"] / passes
        print(f"{size / 1e9:.2f} GB, at most {LIMIT / 1e6:.0f} MB of private memory")
        print(f"peak {found['peak']:.0f} MB resident, {found['before']:.0f} MB before the fit")
        print(f"certified suboptimality {found['suboptimality_']:.1e} in {passes} passes")
        print(f"{each:.2f} s a pass, {size / each / 1e9:.2f} GB/s")
        each = cold["seconds"] / (cold["n_iter_"] + 2)
        print(f"{each:.2f} s where all passes read the disk, {size / each / 1e9:.2f} GB/s")
        for where, reading in (("from the disk", from_disk), ("once more", again)):
            print(
                f"{reading:.2f} s to read the files alone {where}, {size / reading / 1e9:.2f} GB/s"
            )
        if options.no_whole:
            return
        whole = run("whole", folder)
        objective = found["objective_"] / whole["objective_"] - 1
        coef = np.abs(np.subtract(found["coef_"], whole["coef_"])).max()
        print(f"in one array: peak {whole['peak']:.0f} MB, {whole['n_iter_']} passes")
        print(f"objective {objective:+.1e} relative, coefficients within {coef:.1e}")


if __name__ == "__main__":
    main()
