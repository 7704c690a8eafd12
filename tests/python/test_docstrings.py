"""The examples of all docstrings: they run, and print what they say."""

import doctest
import importlib
import pkgutil
import re

import pytest

import halosvm

MODULES = [
    module.name
    for module in pkgutil.walk_packages(halosvm.__path__, "halosvm.")
    if not module.ispkg and "._" not in module.name and "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


def test_examples_are_found():
    assert doctest.testmod(importlib.import_module("halosvm.linear.svc")).attempted > 0


@pytest.mark.parametrize("name", ["halosvm", "halosvm.reference", "halosvm.uncertainty"])
def test_first_sentences_hold_no_full_stop_that_would_end_them(name):
    """Tables of the reference show them up to the first full stop before a blank."""
    module = importlib.import_module(name)
    public = [getattr(module, each) for each in module.__all__]
    firsts = [(each.__doc__ or "").split("\n\n")[0] for each in public if callable(each)]
    assert len(firsts) > 5
    cut = re.compile(r"\b(eqs?|sec|fig|no|cf|resp)\. ", re.IGNORECASE)
    assert [first for first in firsts if cut.search(first)] == []
