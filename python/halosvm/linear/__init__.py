"""Linear machines: Gaussians and targets come in, weights of features go out.

svc              `UncertainSVC`
svr              `UncertainSVR`
total            `TotalSVC`, a folder
safe_svc         `SafeSVC`: sizes of the errors learnt from validation data
calibrate_scale  one factor of all errors, learnt from validation data
residual_losses  the losses of `UncertainSVR`
error_sizes      how large errors are taken to be
linear_fit       the one place where an objective is built and a solver runs
linear_model     decision values of linear models, and their spread
calibration      `PlattScaling`: decision values to probabilities

What `SafeSVC` and `calibrate_scale` share or need:

smoothed_robust  fits that are a smooth function of the sizes of the errors
validation       who is fitted and who judges the fit
box_descent      the search for the least validation loss
"""
