"""Where this installation keeps the core for C++ programs: `cmake_dir`, `include_dir`."""

from __future__ import annotations

from pathlib import Path

import halosvm

_PLACE = "embed"  # in the package


def cmake_dir() -> str:
    """Return the folder of the CMake package, for ``-Dhalosvm_DIR=`` of a C++ project.

    ``find_package(halosvm)`` then adds the sources of the core to the project, which compiles
    them with its own compiler and flags, and links ``halosvm::halosvm``.

    Returns
    -------
    str

    Raises
    ------
    ImportError
        If halosvm runs from its source tree, where it has not been installed.
    """
    return str(_existing("cmake", "halosvmConfig.cmake").parent)


def include_dir() -> str:
    """Return the folder of the headers, of which ``halosvm/halosvm.hpp`` includes all others.

    Programs that are not built by CMake need ``-DEIGEN_MAX_ALIGN_BYTES=64`` for each file that uses
    Eigen.

    Returns
    -------
    str

    Raises
    ------
    ImportError
        If halosvm runs from its source tree, where it has not been installed.
    """
    return str(_existing("cpp", "include", "halosvm", "halosvm.hpp").parents[1])


def _existing(*parts: str) -> Path:
    # An editable installation keeps the package's Python in the source tree and the rest elsewhere.
    for folder in halosvm.__path__:
        path = Path(folder, _PLACE, *parts)
        if path.exists():
            return path
    raise ImportError(
        f"{'/'.join((_PLACE, *parts))} is not in {', '.join(halosvm.__path__)}: install halosvm "
        "with pip, or in its source tree name the folder cpp/include and add_subdirectory the tree"
    )
