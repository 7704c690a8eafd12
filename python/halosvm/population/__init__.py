"""Populations of true values: measurements in, what is known of the true values out.

EmpiricalBayes             measurements -> what is known of the true values behind them
"""

from .empirical_bayes import EmpiricalBayes

__all__ = ["EmpiricalBayes"]
