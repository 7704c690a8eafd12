"""Print requirements, a line each: to build, to run, of extras, or the oldest that read files."""

import sys
import tomllib
from pathlib import Path

table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
extras = table["project"]["optional-dependencies"]
# Newer packages that read files refuse an old NumPy, which their metadata do not say.
named = [*table["project"]["dependencies"], *extras["io"]]
oldest = [line.replace(">=", "==") for line in named]
known = {
    "build": table["build-system"]["requires"],
    "run": table["project"]["dependencies"],
    "oldest": oldest,
    **extras,
}
print(*(line for name in sys.argv[1:] for line in known[name]), sep="\n")
