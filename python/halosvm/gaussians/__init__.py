"""Gaussians: the examples, each a mean with a covariance. The first station of the flow.

gaussians                            `Gaussians`, a batch of examples
mixtures                             `GaussianMixtures`, examples of several components
covariances                          `Covariances`, a batch of matrices in its smallest form
covariance_kinds, covariance_arrays  how each kind stores its numbers, and work on those arrays
covariance_storage                   what a kind must answer
linear_maps, side_by_side            covariances of features that are mapped, and joined
sample_covariances, groups           covariances of repeated observations
centring                             deviations that are exactly 0 where values are equal
subspace                             the leading part of each covariance
"""
