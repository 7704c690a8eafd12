"""Checks: what users pass comes in; arrays, labels, units and weights that can be trusted go out.

reading            every array-like of numbers, masked or labelled
frames, units      labels of data frames, and units of quantities
error_arguments    std, variance and cov, and what they mean
targets            labels and weights
parameters         numbers that estimators and functions are given
estimator          what all estimators ask of their examples
"""
