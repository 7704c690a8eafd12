"""scikit-learn's own tests, as its wheel has them, pass with classes of this package in place.

Every test that calls the class passes, but for those that are listed with a reason.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

from halosvm import _core

HERE = Path(__file__).parent
SKLEARN = Path(sklearn.__file__).parent
PACKAGE = Path(_core.__file__).parents[1]
FILES = {
    "LinearSVC": (
        "svm/tests/test_svm.py",
        "svm/tests/test_bounds.py",
        "ensemble/tests/test_common.py",
        "ensemble/tests/test_forest.py",
        "ensemble/tests/test_stacking.py",
        "feature_extraction/tests/test_text.py",
        "feature_selection/tests/test_from_model.py",
        "linear_model/tests/test_common.py",
        "metrics/tests/test_score_objects.py",
        "model_selection/tests/test_search.py",
        "model_selection/tests/test_successive_halving.py",
        "model_selection/tests/test_validation.py",
        "tests/test_calibration.py",
        "tests/test_multiclass.py",
        "tests/test_multioutput.py",
    ),
    "LinearSVR": (
        "svm/tests/test_svm.py",
        "ensemble/tests/test_stacking.py",
        "feature_selection/tests/test_rfe.py",
        "linear_model/tests/test_common.py",
    ),
    "SGDClassifier": (
        "linear_model/tests/test_sgd.py",
        "feature_selection/tests/test_from_model.py",
        "model_selection/tests/test_search.py",
        "model_selection/tests/test_validation.py",
        "tests/test_calibration.py",
        "tests/test_multiclass.py",
        "tests/test_multioutput.py",
    ),
    "SVC": (
        "svm/tests/test_svm.py",
        "ensemble/tests/test_bagging.py",
        "ensemble/tests/test_common.py",
        "ensemble/tests/test_stacking.py",
        "ensemble/tests/test_voting.py",
        "ensemble/tests/test_weight_boosting.py",
        "feature_selection/tests/test_rfe.py",
        "metrics/_plot/tests/test_confusion_matrix_display.py",
        "metrics/tests/test_classification.py",
        "metrics/tests/test_ranking.py",
        "model_selection/tests/test_classification_threshold.py",
        "model_selection/tests/test_search.py",
        "model_selection/tests/test_split.py",
        "model_selection/tests/test_successive_halving.py",
        "model_selection/tests/test_validation.py",
        "tests/test_multiclass.py",
        "tests/test_pipeline.py",
    ),
}


def module_of(name):
    """Return a file of this folder, whose modules have no package."""
    space = {}
    exec((HERE / f"{name}.py").read_text(encoding="utf-8"), space)
    return space


LISTS = module_of("deselected")


def run(name, folder):
    """Return how each test that calls the class ended, and why."""
    report = folder / "report.json"
    environment = os.environ | {
        "HALOSVM_SWAP": name,
        "HALOSVM_REPORT": str(report),
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(HERE)]),
        "PYTEST_ADDOPTS": "",
    }
    options = ["-pswap", "-pno:cacheprovider", "-pno:xdist", "-q", "--tb=short", "-Wignore"]
    options += [f"--rootdir={SKLEARN}", f"--confcutdir={SKLEARN}"]
    options += [f"--deselect={test}" for test in LISTS["SLOW"]]
    files = [str(SKLEARN / file) for file in FILES[name] if (SKLEARN / file).exists()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(report.read_text(encoding="utf-8"))


@pytest.mark.campaign
@pytest.mark.parametrize("name", FILES)
def test_every_test_that_calls_the_class_passes_but_for_those_listed(name, tmp_path):
    results = run(name, tmp_path)
    listed = tuple(LISTS["DESELECTED"][name])
    failed = {test: r["reason"] for test, r in results.items() if r["outcome"] == "failed"}
    assert {t: reason for t, reason in failed.items() if not t.startswith(listed)} == {}
    passing = [
        beginning for beginning in listed if not any(t.startswith(beginning) for t in failed)
    ]
    assert [b for b in passing if any(t.startswith(b) for t in results)] == []
    lacking = {
        r["reason"].rpartition("parameter ")[2]
        for r in results.values()
        if "Skipped" in r["reason"]
    }
    assert lacking <= set(LISTS["PARAMETERS"])
    assert sum(r["outcome"] == "passed" for r in results.values()) > 0
