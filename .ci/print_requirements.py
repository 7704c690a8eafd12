"""Print requirements, a line each: of the build, of extras, or the oldest at run time."""

import sys
import tomllib
from pathlib import Path

table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
extras = table["project"]["optional-dependencies"]
oldest = [line.replace(">=", "==") for line in table["project"]["dependencies"]]
known = {"build": table["build-system"]["requires"], "oldest": oldest, **extras}
print(*(line for name in sys.argv[1:] for line in known[name]), sep="\n")
