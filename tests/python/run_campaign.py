"""Fit random small problems, judge each fit independently, and report what is wrong.

python tests/python/run_campaign.py --seeds 0 4000 --processes 2
python tests/python/run_campaign.py --seeds 3394 3395 --kind rank_1_full --show
"""

import argparse
import collections
import multiprocessing
import statistics
import time

from campaign.generator import KINDS
from campaign.runner import run_seeds

CHUNK = 50


def _work(job):
    kind, first, last, parameters = job
    return run_seeds(kind, range(first, last), **parameters)


def _listed(records, limit):
    shown = " ".join(f"{r.kind}/{r.seed}" for r in records[:limit])
    return shown + (f" ... ({len(records)} in all)" if len(records) > limit else "")


def _slow(records):
    """Fits that take more than 100 times the median of their size."""
    sizes = collections.defaultdict(list)
    for r in records:
        sizes[r.n.bit_length(), r.d.bit_length()].append(r.seconds)
    medians = {size: statistics.median(times) for size, times in sizes.items()}
    ratios = [(r.seconds / medians[r.n.bit_length(), r.d.bit_length()], r) for r in records]
    return sorted(ratios, key=lambda pair: -pair[0])


def report(records, limit):
    """Print the counts of each kind, then the seeds of each fault."""
    faults = {
        "false certificate": lambda r: r.false,
        "objective_ is not J": lambda r: r.mismatched,
        "uncertified": lambda r: r.uncertified,
        "stalled with reason": lambda r: not r.error and not r.certified and not r.uncertified,
        "not judged": lambda r: r.unjudged,
        "exception": lambda r: bool(r.error),
    }
    heads = ["false", "obj", "uncert", "stalled", "open", "error"]
    print(f"{'kind':18}{'fits':>7}" + "".join(f"{h:>9}" for h in heads) + "   fit ms  judge ms")
    kinds = collections.defaultdict(list)
    for r in records:
        kinds[r.kind].append(r)
    for kind, some in [*kinds.items(), ("all", records)]:
        counts = [sum(map(test, some)) for test in faults.values()]
        times = [
            1e3 * statistics.mean(getattr(r, name) for r in some) for name in ("seconds", "judging")
        ]
        print(
            f"{kind:18}{len(some):7}"
            + "".join(f"{count:9}" for count in counts)
            + f"{times[0]:9.2f}{times[1]:10.2f}"
        )
    for name, test in faults.items():
        found = [r for r in records if test(r)]
        if found:
            print(f"\n{name}: {_listed(found, limit)}")
    ends = collections.Counter(
        (r.status, "representable" if r.verdict.representable else "not representable")
        for r in records
        if not r.error and not r.certified
    )
    for (status, which), count in ends.most_common():
        print(f"\nuncertified, {which}: {count} x {status!r}")
    for message, count in collections.Counter(r.error for r in records if r.error).most_common(9):
        print(f"\n{count} x {message}")
    fits = [r for r in records if not r.error]
    for ratio, r in _slow(fits)[: 1 if len(fits) < 3 else 10]:
        if ratio > 100 or r is _slow(fits)[0][1]:
            print(
                f"\n{ratio:.0f} x the median of its size: {r.kind}/{r.seed}, {r.n} x {r.d}, "
                f"{1e3 * r.seconds:.1f} ms, {r.iterations} iterations"
            )


def main():
    """Read the arguments, share the seeds among processes, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 200), metavar=("FIRST", "END"))
    parser.add_argument("--kind", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--limit", type=int, default=30, help="seeds listed of each fault")
    parser.add_argument("--show", action="store_true", help="print each record")
    options = parser.parse_args()
    first, end = options.seeds
    jobs = [
        (kind, a, min(a + CHUNK, end), {"solver": options.solver})
        for kind in options.kind
        for a in range(first, end, CHUNK)
    ]
    start = time.perf_counter()
    with multiprocessing.Pool(options.processes) as pool:
        records = [r for some in pool.imap(_work, jobs) for r in some]
    if options.show:
        print(*records, sep="\n")
    print(f"{len(records)} fits in {time.perf_counter() - start:.0f} s, seeds {first} to {end - 1}")
    report(records, options.limit)


if __name__ == "__main__":
    main()
