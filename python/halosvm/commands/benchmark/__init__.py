"""The benchmark suite, ``halosvm bench``: halosvm and named rivals in one run on the same data.

In go sizes (`settings`); out come tables of ratios, a JSON file with every number, and a plot
(`report`, `plot`). The measures: `fits` (time to a given true gap), `throughput` (bytes and steps
per second), `scaling` (rows, features, classes), `memory`, `sampling` (a plain SVM on draws),
`kernels` (Gram matrices and kernel machines), `deconvolution` (passes of EmpiricalBayes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

MEASURES = (
    "uncertain",
    "certain",
    "passes",
    "steps",
    "scaling",
    "memory",
    "sampling",
    "kernels",
    "deconvolution",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the suite to a parser."""
    parser.add_argument(
        "--quick", action="store_true", help="smaller data and fewer repeats: under two minutes"
    )
    parser.add_argument(
        "--only", nargs="+", choices=MEASURES, default=MEASURES, metavar="MEASURE",
        help=f"some of: {', '.join(MEASURES)}",
    )  # fmt: skip
    parser.add_argument(
        "--output", default="halosvm_bench", metavar="STEM",
        help="write STEM.json and STEM.png (default: %(default)s)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Run the suite as the options say."""
    # Here, not above: the command line loads this file, but no other command needs the rivals.
    from .settings import Settings
    from .suite import run_suite

    settings = Settings.quick() if arguments.quick else Settings()
    run_suite(settings, arguments.only, arguments.output)
