"""Model files of the public tool SVM-GSU: linear machines of the classes -1 and 1, as text.

In:  a machine, or one with a logistic curve; or the text of a file, whose curve is
     1 / (1 + exp(sigmA f + sigmB)), as `PlattScaling` has it.
Out: the text, whose numbers keep their last bit; or the machine.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.calibration.platt import PlattScaling
from halosvm.linear.linear_model import LinearModel
from halosvm.linear.svc import UncertainSVC

HEADER = "SVM-GSU Model_File"
_ONE_NUMBER = ("lambda", "sigmA", "sigmB", "b", "gamma")
_KINDS = ("full", "diagonal", "isotropic")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def svmgsu_text(estimator: Any) -> str:
    """Return the text of a linear machine of the classes -1 and 1, calibrated or not."""
    check_is_fitted(estimator)
    machine, curve = estimator, None
    if isinstance(estimator, UncertainCalibratedClassifier):
        machine, [curve, *_] = estimator.estimator_, estimator.curves_
        if isinstance(machine, FrozenEstimator):
            machine = machine.estimator
    if not isinstance(machine, LinearModel) or not hasattr(machine, "coef_"):
        raise TypeError(
            f"estimator is a {type(machine).__name__}; SVM-GSU model files hold linear classifiers"
        )
    if curve is not None and not isinstance(curve, PlattScaling):
        raise ValueError("SVM-GSU model files hold logistic curves alone; use method='sigmoid'")
    if machine.classes_.dtype.kind not in "iuf" or machine.classes_.tolist() != [-1, 1]:
        raise ValueError(
            f"SVM-GSU model files are of the classes -1 and 1, classes_ are "
            f"{machine.classes_.tolist()}"
        )
    if hasattr(machine, "feature_units_in_"):
        raise ValueError("features have units, which SVM-GSU model files cannot hold")
    w, b = machine.coef_[0].tolist(), float(machine.intercept_[0])
    if not all(map(math.isfinite, (*w, b))):
        raise ValueError("a coefficient is not finite")
    lines = [HEADER, "kernel_type linear"]
    if curve is not None:
        lines += [f"sigmA {float(curve.slope_)!r}", f"sigmB {float(curve.offset_)!r}"]
    return "\n".join([*lines, "w " + " ".join(map(repr, w)), f"b {b!r}"]) + "\n"


def svmgsu_model(text: bytes) -> UncertainSVC | UncertainCalibratedClassifier:
    """Return the machine in a text; ValueError tells the line.

    A machine with a curve comes calibrated. `lambda`, which is of a mean of losses, and the kind of
    the training data's covariances are not kept.
    """
    try:
        lines = text.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not ASCII") from error
    found: dict[str, Any] = {}
    for number, line in enumerate(lines[1:], 2):
        key, *words = line.split() or [""]
        if not key:
            continue
        if key in found:
            raise ValueError(f"line {number}: {key} is there twice")
        found[key] = _value_of(key, words, f"line {number}")
    for key in ("w", "b"):
        if key not in found:
            raise ValueError(f"line {len(lines) + 1}: {key} is missing")
    machine = UncertainSVC()
    machine.classes_ = np.array([-1, 1])
    machine.coef_, machine.intercept_ = found["w"][np.newaxis], np.array([found["b"]])
    machine.n_features_in_ = machine.coef_.shape[1]
    if ("sigmA" in found) != ("sigmB" in found):
        raise ValueError(f"line {len(lines) + 1}: sigmA and sigmB go together")
    return _calibrated(machine, found["sigmA"], found["sigmB"]) if "sigmA" in found else machine


def _value_of(key: str, words: list[str], place: str) -> Any:
    if key == "kernel_type":
        if words != ["linear"]:
            raise ValueError(
                f"{place}: kernel_type is {' '.join(words)[:40]!r}; only linear is read"
            )
        return words[0]
    if key == "cov_mat_type":
        if len(words) != 1:
            raise ValueError(f"{place}: cov_mat_type is one word, as {', '.join(_KINDS)}")
        return words[0]
    if key not in (*_ONE_NUMBER, "w"):
        raise ValueError(f"{place}: {key[:40]!r} is unknown")
    if not words or (key != "w" and len(words) > 1):
        raise ValueError(f"{place}: {key} has {len(words)} numbers")
    numbers = np.empty(len(words))
    for j, word in enumerate(words):
        numbers[j] = float(word) if _NUMBER.fullmatch(word) else np.nan
        if not math.isfinite(numbers[j]):
            raise ValueError(f"{place}: {key} has {word[:40]!r}, which is not a finite number")
    return numbers if key == "w" else float(numbers[0])


def _calibrated(
    machine: UncertainSVC, slope: float, offset: float
) -> UncertainCalibratedClassifier:
    curve = PlattScaling()
    curve.slope_, curve.offset_ = slope, offset
    classifier = UncertainCalibratedClassifier(UncertainSVC())
    classifier.estimator_, classifier.curves_ = machine, [curve]
    classifier.classes_, classifier.n_features_in_ = machine.classes_, machine.n_features_in_
    return classifier
