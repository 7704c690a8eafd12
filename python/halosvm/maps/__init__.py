"""Maps: Gaussians in, Gaussians out, before a classifier sees them.

EmpiricalBayes    measurements -> what is known of the true values behind them
"""

from .empirical_bayes import EmpiricalBayes

__all__ = ["EmpiricalBayes"]
