"""The compiled core: the build of it that suits this processor. Its types are in `_core.pyi`."""

from halosvm.core.isa import load_core

globals().update(
    (name, value) for name, value in vars(load_core()).items() if not name.startswith("_")
)
