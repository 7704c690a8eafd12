"""Populations of true values: measurements in, what is known of the true values out.

EmpiricalBayes             measurements -> what is known of the true values behind them
ClassPopulations           measurements with labels -> probabilities of classes
"""

from .class_populations import ClassPopulations
from .empirical_bayes import EmpiricalBayes

__all__ = ["ClassPopulations", "EmpiricalBayes"]
