"""Error models: where the covariances of examples come from.

In:  repeated observations, images, signals, catalogue columns with error bars, quantiles, limits.
Out: Gaussians, for every estimator. No function lets a missing value pass as a number.
"""

from halosvm.uncertainty.bounded import confidence_radius, intervals
from halosvm.uncertainty.images import image_transform
from halosvm.uncertainty.long_tables import from_long
from halosvm.uncertainty.repeats import combined_readings, pooled_errors
from halosvm.uncertainty.reported import asymmetric_errors, quantiles, standard_errors
from halosvm.uncertainty.samples import from_samples
from halosvm.uncertainty.spectra import welch

__all__ = [
    "asymmetric_errors",
    "combined_readings",
    "confidence_radius",
    "from_long",
    "from_samples",
    "image_transform",
    "intervals",
    "pooled_errors",
    "quantiles",
    "standard_errors",
    "welch",
]
