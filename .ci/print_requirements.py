"""Print requirements of pyproject.toml, a line each: of the build, or of one of the extras."""

import sys
import tomllib
from pathlib import Path

table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
name = sys.argv[1]
extras = table["project"]["optional-dependencies"]
print(*(table["build-system"]["requires"] if name == "build" else extras[name]), sep="\n")
