"""Maps: Gaussians in, Gaussians out, before a classifier sees them.

EmpiricalBayes            measurements -> what is known of the true values behind them
UncertainFourierFeatures  examples -> random features of the RBF kernel
UncertainNystroem         examples -> features of the RBF kernel from landmarks
"""

from .empirical_bayes import EmpiricalBayes
from .fourier import UncertainFourierFeatures
from .nystroem import UncertainNystroem

__all__ = ["EmpiricalBayes", "UncertainFourierFeatures", "UncertainNystroem"]
