"""The public names: each is where the package says, and none costs the others' imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import halosvm


def imported_for_types():
    """Return the names that the package imports for type checkers, with their modules."""
    tree = ast.parse(Path(halosvm.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    names = {}
    for line in block.body:
        (alias,) = line.names
        assert alias.asname == alias.name
        names[alias.name] = line.module
    return names


def test_type_checkers_and_the_interpreter_find_the_same_names_in_the_same_modules():
    places = {
        name: "halosvm" if name == place else f"halosvm.{place}"
        for name, place in halosvm._PLACES.items()
    }
    assert imported_for_types() == places


@pytest.mark.parametrize("name", halosvm.__all__)
def test_public_name_is_the_object_of_its_module_and_listed(name):
    value = getattr(halosvm, name)
    assert getattr(value, "__name__", name).rpartition(".")[2] == name
    assert name in dir(halosvm)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'halosvm' has no attribute 'UncertainSVM'"):
        _ = halosvm.UncertainSVM


def imported_by(program, first="import numpy, sklearn.base"):
    """Return the modules that a program imports beyond those of its first line."""
    lines = [
        "import sys",
        first,
        "before = set(sys.modules)",
        program,
        "print(*(set(sys.modules) - before))",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_package_itself_imports_nothing_but_the_core_and_numpy():
    modules = imported_by("import halosvm", first="import numpy")
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert foreign == {"halosvm"}
    ours = {name for name in modules if name.startswith("halosvm.")}
    cores = {name for name in ours if name.startswith("halosvm._core_")}
    assert len(cores) == 1
    assert ours - cores == {
        "halosvm._core",
        "halosvm._processor",
        "halosvm.core",
        "halosvm.core.isa",
    }


def test_linear_machine_imports_no_other_machine_and_nothing_that_draws_or_reads_tables():
    names = "Gaussians", "UncertainSVC", "UncertainSVR"
    modules = imported_by("import halosvm; " + "; ".join(f"halosvm.{name}" for name in names))
    heavy = (
        "astropy",
        "dask",
        "matplotlib",
        "pyarrow",
        "sklearn.calibration",
        "sklearn.decomposition",
        "sklearn.ensemble",
        "sklearn.mixture",
        "sklearn.neighbors",
        "sklearn.svm",
        "halosvm.calibration",
        "halosvm.display",
        "halosvm.kernel",
        "halosvm.maps",
        "halosvm.population",
        "halosvm.reference",
        "halosvm.uncertainty",
    )
    assert not [module for module in modules if module.startswith(heavy)]
