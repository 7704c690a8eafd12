"""Maps: Gaussians in, Gaussians out, before a classifier sees them.

EmpiricalBayes             measurements -> what is known of the true values behind them
UncertainStandardScaler    features of any size -> features of spread 1
Propagate                  what a transformer of scikit-learn makes of them
"""

from .empirical_bayes import EmpiricalBayes
from .propagate import Propagate
from .standard_scaler import UncertainStandardScaler

__all__ = ["EmpiricalBayes", "Propagate", "UncertainStandardScaler"]
