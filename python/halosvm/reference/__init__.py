"""The mathematics of halosvm in pure NumPy: short, readable, slow.

It shares no code with the compiled core: the tests use it as an oracle, the benchmarks as a rival.

    losses             (m, s) -> psi and its derivatives
    linear             Gaussians -> (m, s) -> loss -> objective -> solver -> linear model -> Platt
    kernels            Gaussians -> Gram matrix of an expected kernel
    empirical_bayes    measurements -> population and posteriors of true values
"""

from .empirical_bayes import deconvolution_step, true_value_posterior
from .kernels import expansion_variance, expected_kernel, level2_kernel, mixture_kernel
from .linear import (
    bilinear,
    covariance_product,
    decision_function,
    decision_std,
    exact_intercept,
    expected_platt_probability,
    fit_platt,
    hessian_vector,
    objective_and_gradient,
    platt_probability,
    sgd,
    shared_product,
    side_probability,
    spread_squared,
    suboptimality_bound,
    trace,
    weighted_product,
)
from .losses import (
    LOGISTIC_SHARES,
    LOGISTIC_VARIANCES,
    LOSSES,
    MARGINS,
    curvature,
    expected_hinge,
    expected_huber_hinge,
    expected_logistic,
    expected_squared_hinge,
    hinge,
    normal_tail,
    squared_hinge_tail,
)

__all__ = [
    "LOGISTIC_SHARES",
    "LOGISTIC_VARIANCES",
    "LOSSES",
    "MARGINS",
    "bilinear",
    "covariance_product",
    "curvature",
    "decision_function",
    "decision_std",
    "deconvolution_step",
    "exact_intercept",
    "expansion_variance",
    "expected_hinge",
    "expected_huber_hinge",
    "expected_kernel",
    "expected_logistic",
    "expected_platt_probability",
    "expected_squared_hinge",
    "fit_platt",
    "hessian_vector",
    "hinge",
    "level2_kernel",
    "mixture_kernel",
    "normal_tail",
    "objective_and_gradient",
    "platt_probability",
    "sgd",
    "shared_product",
    "side_probability",
    "spread_squared",
    "squared_hinge_tail",
    "suboptimality_bound",
    "trace",
    "true_value_posterior",
    "weighted_product",
]
