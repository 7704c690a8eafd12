"""All experiments: `python bench/papers/run.py [--quick] [--only NAME ...] [--output FOLDER]`.

Quick, they take a few minutes on two processors; the full sizes are those of the README.
"""

from __future__ import annotations

import time

import batches
import choice
import clips
import doctor
import eeg
import kepler
import kernels
import limits
import losses
import measurements
import mnist
import mnist_all
import mnist_size
import next_measurement
import random_features
import repeats
import robust
import sampling
import tsvc
import wdbc
import when_errors_pay
from common import Options, format_columns, parser

EXPERIMENTS = {
    module.__name__: module
    for module in (
        mnist,
        mnist_all,
        kepler,
        wdbc,
        clips,
        eeg,
        mnist_size,
        sampling,
        kernels,
        measurements,
        batches,
        next_measurement,
        choice,
        losses,
        limits,
        tsvc,
        robust,
        random_features,
        doctor,
        repeats,
        when_errors_pay,
    )
}


def main() -> None:
    """Run the experiments one after the other, and tell the time of each."""
    arguments = parser(__doc__)
    arguments.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    found = arguments.parse_args()
    options = Options(found.quick, found.output, found.seed)
    rows = []
    for name in found.only:
        module = EXPERIMENTS[name]
        print(f"== {name} ==\n{module.__doc__}", flush=True)
        start = time.perf_counter()
        module.experiment(options)
        rows.append([name, f"{time.perf_counter() - start:.0f}"])
    print(format_columns(["experiment", "seconds"], rows))


if __name__ == "__main__":
    main()
