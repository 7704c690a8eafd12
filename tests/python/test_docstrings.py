"""The examples of all docstrings: they run, and print what they say."""

import doctest
import importlib
import pkgutil

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
