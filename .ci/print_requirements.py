"""Print requirements, a line each: of the build, of an extra, or the oldest that read files."""

import sys
import tomllib
from pathlib import Path

table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
name = sys.argv[1]
extras = table["project"]["optional-dependencies"]
# newer packages that read files refuse an old NumPy, which their metadata do not say
named = [*table["project"]["dependencies"], *extras["io"]]
oldest = [line.replace(">=", "==") for line in named]
print(*{"build": table["build-system"]["requires"], "oldest": oldest, **extras}[name], sep="\n")
