"""The benchmark suite: `python bench/run.py [--quick] [--only MEASURE ...] [--output STEM]`.

The same as `halosvm bench`: the suite is in the package, `halosvm.commands.benchmark`.
"""

import sys

from halosvm.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
