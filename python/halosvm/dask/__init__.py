"""Machines whose examples are on many computers, by dask.distributed.

`UncertainSVC` and `UncertainSVR` are those of `halosvm` for dask arrays, data frames, and lists of
futures or delayed objects that are Gaussians. The data stay on the workers; models come back.
"""

from halosvm.dask.estimators import UncertainSVC, UncertainSVR

__all__ = ["UncertainSVC", "UncertainSVR"]
