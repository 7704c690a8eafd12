"""A pytest plugin: scikit-learn's own tests, run with a class of this package in place of theirs.

In:  HALOSVM_SWAP, the name of the class of scikit-learn that is replaced; HALOSVM_REPORT, a file.
Out: a line of that file for each test that called the class: how it ended, and why.

A test that passes a parameter which does not exist here is skipped, and its reason is the name of
the parameter.
"""

import functools
import inspect
import json
import os
import re
from pathlib import Path

import pytest
import sklearn.linear_model
import sklearn.svm

import halosvm

SWAPS = {
    "LinearSVC": (sklearn.svm, halosvm.UncertainSVC),
    "LinearSVR": (sklearn.svm, halosvm.UncertainSVR),
    "SVC": (sklearn.svm, halosvm.UncertainKernelSVC),
    "SGDClassifier": (sklearn.linear_model, halosvm.UncertainSVC),
}
NAME = os.environ["HALOSVM_SWAP"]


def _observed(cls, seen):
    """Return the class, whose constructor now tells what it is called with."""
    original = cls.__init__
    parameters = set(inspect.signature(original).parameters)

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        seen["called"] = True
        unknown = sorted(set(kwargs) - parameters)
        if unknown:
            pytest.skip(f"parameter {unknown[0]}", allow_module_level=True)
        original(self, *args, **kwargs)

    cls.__init__ = init
    return cls


_SEEN = {"called": False}
_MODULE, _CLASS = SWAPS[NAME]
_THEIRS = getattr(_MODULE, NAME)
setattr(_MODULE, NAME, _observed(_CLASS, _SEEN))
_RESULTS: dict[str, dict[str, str]] = {}


def pytest_collection_modifyitems(config, items):
    """Keep the tests whose text, or whose parameters, name the class."""
    kept = [item for item in items if _names_the_class(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _names_the_class(item):
    function = getattr(item, "function", None)
    if function is None:
        return False
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    if any(re.search(rf"\b{_CLASS.__name__}\b", repr(value)) for value in values):
        return True
    return re.search(rf"\b{NAME}\b", _source(function)) is not None


@functools.cache
def _source(function):
    """Return the text of a function, and of the functions of its module that it names."""
    text = inspect.getsource(function)
    module = inspect.getmodule(function)
    for word in set(re.findall(r"\b[A-Za-z_]\w+", text)):
        other = getattr(module, word, None)
        if inspect.isfunction(other) and other.__module__ == module.__name__:
            text += inspect.getsource(other)
    return text


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _SEEN["called"] = False
    return (yield)


def pytest_runtest_logreport(report):
    if report.when == "teardown" or (report.when == "setup" and report.passed):
        return
    reason = ""
    if report.skipped:
        skip = report.longrepr
        reason = str(skip[2]) if isinstance(skip, tuple) else "expected to fail"
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = str(report.longrepr)[-500:] if crash is None else crash.message
    if _SEEN["called"] or report.failed:
        test = report.nodeid.partition("sklearn/")[2] or report.nodeid
        _RESULTS[test] = {"outcome": report.outcome, "reason": reason}


def pytest_sessionfinish():
    Path(os.environ["HALOSVM_REPORT"]).write_text(json.dumps(_RESULTS), encoding="utf-8")
