"""``python -m halosvm`` is the command ``halosvm``."""

import sys

from halosvm.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
