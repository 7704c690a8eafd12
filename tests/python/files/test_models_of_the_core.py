"""Model files that the core reads and writes: the same numbers as Python, in every locale."""

import json
import locale
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_files.machines import EXAMPLES, MACHINES, fitted, told

from halosvm import UncertainSVC, UncertainSVR, _core, load_model, save_model

LINEAR = ("svc", "svc of three classes", "svr", "safe", "total")


def parts_of(machine):
    """Return what the core is to know of a machine."""
    return {
        "estimator": type(machine).__name__,
        "loss": getattr(machine, "loss", ""),
        "C": machine.C,
        "classes": machine.classes_.tolist() if hasattr(machine, "classes_") else [],
        "feature_names": getattr(machine, "feature_names_in_", np.array([])).tolist(),
    }


@pytest.mark.parametrize("name", LINEAR)
def test_the_core_reads_what_python_writes_and_writes_what_python_reads(tmp_path, name):
    machine, X = fitted(name)
    machine.feature_names_in_ = np.array(["a", 'b "c"\\', "\u00e9\U0001f600"], dtype=object)
    path = tmp_path / "model.json"
    save_model(machine, path)
    found = _core.read_linear_model(path.read_bytes())
    coef, intercept = found.pop("coef"), found.pop("intercept")
    assert coef.tobytes() == machine.coef_.tobytes()
    assert intercept.tobytes() == np.atleast_1d(machine.intercept_).tobytes()
    assert found == parts_of(machine)
    path.write_text(_core.write_linear_model(coef, intercept, **found), encoding="utf-8")
    loaded = load_model(path)
    assert loaded.feature_names_in_.tolist() == machine.feature_names_in_.tolist()
    assert loaded.C == machine.C
    for each in (loaded, machine):
        del each.feature_names_in_
    assert told(loaded, X) == told(machine, X)


def test_the_core_reads_streams_that_python_writes(tmp_path):
    machine = UncertainSVR().partial_fit(EXAMPLES["diagonal"], MACHINES["svr"][2])
    save_model(machine, tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["format_version"] == 3
    found = _core.read_linear_model((tmp_path / "model.json").read_bytes())
    assert found["coef"].tobytes() == machine.coef_.tobytes()


@pytest.mark.parametrize("dtype", [bool, int, float, np.int8, "U9", object])
def test_classes_of_every_type_go_there_and_back(tmp_path, dtype):
    machine = UncertainSVC().fit(EXAMPLES["diagonal"], np.arange(60) % 2)
    machine.classes_ = np.array([False, True] if dtype is bool else [-1, 2]).astype(dtype)
    save_model(machine, tmp_path / "model.json")
    found = _core.read_linear_model((tmp_path / "model.json").read_bytes())
    assert found["classes"] == machine.classes_.tolist()
    text = _core.write_linear_model(found.pop("coef"), found.pop("intercept"), **found)
    (tmp_path / "again.json").write_text(text)
    assert load_model(tmp_path / "again.json").classes_.tolist() == machine.classes_.tolist()


def test_every_float_survives_the_core(tmp_path):
    machine = UncertainSVC().fit(EXAMPLES["diagonal"], np.arange(60) % 2)
    largest = np.finfo(float).max
    numbers = [1 / 3, 5e-324, -largest, -0.0, 123456789012345680.0, 1e22, math.pi, 2.0**-1040]
    machine.coef_, machine.n_features_in_ = np.array([numbers]), len(numbers)
    save_model(machine, tmp_path / "model.json")
    found = _core.read_linear_model((tmp_path / "model.json").read_bytes())
    assert found["coef"].tobytes() == machine.coef_.tobytes()
    text = _core.write_linear_model(found.pop("coef"), found.pop("intercept"), **found)
    (tmp_path / "again.json").write_text(text)
    assert load_model(tmp_path / "again.json").coef_.tobytes() == machine.coef_.tobytes()


def in_the_order_of_the_core(x, w):
    """Return x'w, each product and each sum rounded by itself, in sixteen sums at a time."""
    whole = len(x) // 16 * 16
    lanes, rest = np.zeros(16), np.float64(0.0)
    for j in range(0, whole, 16):
        lanes = lanes + x[j : j + 16] * w[j : j + 16]
    for j in range(whole, len(x)):
        rest = rest + x[j] * w[j]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0] + rest


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_models", [1, 2, 5])
def test_scores_are_the_same_to_the_last_bit_whatever_the_core_was_compiled_for(n_models, dtype):
    rng = np.random.default_rng(3)
    for d in (2, 15, 16, 50):
        X, W = rng.normal(size=(70, d)).astype(dtype), rng.normal(size=(n_models, d))
        b = rng.normal(size=n_models)
        expected = [[in_the_order_of_the_core(x.astype(float), w) for w in W] for x in X]
        found = _core.decision_function(X, W, b, 2)
        assert found.tobytes() == (np.array(expected) + b).tobytes()


GERMAN = """
import locale, pickle, sys
from pathlib import Path
locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ",", locale.localeconv()
sys.path.insert(0, sys.argv[2])
import numpy as np
from halosvm import UncertainSVC, _core, load_model, save_model
from model_files.machines import told
folder = Path(sys.argv[1])
for path in folder.glob("*.pickle"):
    machine, X, answers = pickle.loads(path.read_bytes())
    assert told(load_model(path.with_suffix(".json")), X) == answers, path
    again = path.with_suffix(".german")
    save_model(machine, again)
    assert again.read_bytes() == path.with_suffix(".json").read_bytes(), path
model = load_model(folder / "svc.json")
found = _core.read_linear_model((folder / "svc.json").read_bytes())
assert found["coef"].tobytes() == model.coef_.tobytes()
text = _core.write_linear_model(found.pop("coef"), found.pop("intercept"), **found)
assert _core.read_linear_model(text)["coef"].tobytes() == model.coef_.tobytes()
model.classes_ = np.array([-1, 1])
save_model(model, folder / "tool.german", format="svm-gsu")
assert load_model(folder / "tool.german").coef_.tobytes() == model.coef_.tobytes()
print("done")
"""


def test_files_do_not_depend_on_the_locale(tmp_path):
    name = next(
        (each for each in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8") if _is_there(each)), None
    )
    if name is None:
        pytest.skip("no locale with a decimal comma is installed, as de_DE.UTF-8")
    for kind in (*LINEAR, "kernel", "calibrated", "population"):
        machine, X = fitted(kind)
        (tmp_path / f"{kind}.pickle").write_bytes(pickle.dumps((machine, X, told(machine, X))))
        save_model(machine, tmp_path / f"{kind}.json")
    done = subprocess.run(
        [sys.executable, "-c", GERMAN, tmp_path, Path(__file__).parents[1]],
        env=os.environ | {"LC_ALL": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def _is_there(name):
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, before)
    return True
