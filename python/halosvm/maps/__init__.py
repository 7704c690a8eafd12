"""Maps: Gaussians in, Gaussians out, before a classifier sees them.

UncertainStandardScaler    features of any size -> features of spread 1
Propagate                  what a transformer of scikit-learn makes of them
UncertainFourierFeatures   examples -> random features of the RBF kernel
UncertainNystroem          examples -> features of the RBF kernel from landmarks
"""

from .fourier import UncertainFourierFeatures
from .nystroem import UncertainNystroem
from .propagate import Propagate
from .standard_scaler import UncertainStandardScaler

__all__ = [
    "Propagate",
    "UncertainFourierFeatures",
    "UncertainNystroem",
    "UncertainStandardScaler",
]
