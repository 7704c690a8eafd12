"""Print requirements, a line each: of the build, of an extra, or the oldest at run time."""

import sys
import tomllib
from pathlib import Path

table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
name = sys.argv[1]
extras = table["project"]["optional-dependencies"]
oldest = [line.replace(">=", "==") for line in table["project"]["dependencies"]]
print(*{"build": table["build-system"]["requires"], "oldest": oldest, **extras}[name], sep="\n")
