"""What this installation consists of: `show_config`, for bug reports and benchmarks."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, overload

from halosvm import _core
from halosvm._processor import x86_64_level
from halosvm.checks.parameters import thread_count
from halosvm.core.isa import available_isas, processor_name

if TYPE_CHECKING:
    Config = dict[str, Any]


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dict"]) -> Config: ...
def show_config(mode: str = "stdout") -> Config | None:
    """Show which build of the compiled core is in use, and the versions of everything around it.

    On x86-64 wheels hold the core built for the baseline and for AVX2, and the faster that the
    processor runs is imported; a build from source holds the one for its own processor. The
    environment variable HALOSVM_ISA, set before the import to "baseline" or "avx2", forces one.

    Parameters
    ----------
    mode : {"stdout", "dict"}, default="stdout"
        Whether to print the configuration or to return it.

    Returns
    -------
    dict or None
        With "dict": the version of halosvm, the instruction set in use (`isa`) and those there are
        for this processor (`isa_available`), the level of the processor, the number of threads of
        a call that leaves it to the core, and versions.

    Examples
    --------
    >>> import halosvm
    >>> halosvm.show_config("dict")["isa"] in {"baseline", "avx2"}
    True
    """
    if mode not in {"stdout", "dict"}:
        raise ValueError(f"mode is {mode!r}; it can be 'stdout' or 'dict'")
    config = _config()
    if mode == "dict":
        return config
    width = max(map(len, config))
    for name, value in config.items():
        print(f"{name:{width}}  {', '.join(value) if isinstance(value, list) else value}")
    return None


def _config() -> Config:
    from halosvm import __version__  # defined after this module is imported

    build = _core.build_info()
    return {
        "halosvm": __version__,
        "isa": build["isa"],
        "isa_available": available_isas(),
        "processor": processor_name(x86_64_level()),
        "n_threads": thread_count(None),
        "platform": platform.platform(),
        "compiler": build["compiler"],
        "eigen": build["eigen"],
        "pybind11": build["pybind11"],
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit-learn": version("scikit-learn"),
    }
