"""Displays cost nothing until they draw."""

import subprocess
import sys


def test_package_is_imported_without_matplotlib():
    code = "import sys, halosvm; halosvm.ReliabilityDisplay; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
