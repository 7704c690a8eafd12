"""Linear machines: Gaussians and labels come in, weights of features go out.

svc            `UncertainSVC`
total          `TotalSVC`
linear_fit     the one place where an objective is built and a solver runs
error_sizes    how large errors are taken to be
linear_model   decision values of linear models, and their spread
calibration    `PlattScaling`: decision values to probabilities
"""
