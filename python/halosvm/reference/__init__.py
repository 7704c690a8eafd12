"""The mathematics of halosvm in pure NumPy: short, readable, slow.

It shares no code with the compiled core: the tests use it as an oracle, the benchmarks as a rival.

    losses             (m, s) -> psi and its derivatives
    linear             Gaussians -> (m, s) -> loss -> objective -> solver -> linear model -> Platt
    robust             worst and best cases of bounded errors, spreads in other norms
    safe               sizes of the errors that validation data ask for
    total              examples that may move to where they fit best
    regression         losses of residuals
    kernels            Gaussians -> Gram matrix of an expected kernel
    features           Gaussians or bounded inputs -> features of a kernel, or how far these move
    perturbations      bounded inputs -> the strongest ones that gradient ascent finds
    empirical_bayes    measurements -> population, posteriors of true values, log odds, tails
    limits             a measurement with one limit, and a population -> its posterior
"""

from .empirical_bayes import (
    class_log_odds,
    deconvolution_step,
    heavy_tailed_posterior,
    offset_posteriors,
    offset_step,
    tail_probability,
    true_value_posterior,
    wrong_after_reading,
)
from .features import fourier_bounds, fourier_features, nystroem_bounds, section_moments
from .kernels import expansion_variance, expected_kernel, level2_kernel, mixture_kernel
from .limits import limited_posterior
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
    best_case,
    curvature,
    expected_hinge,
    expected_huber_hinge,
    expected_logistic,
    expected_squared_hinge,
    hinge,
    marginal_logistic,
    normal_tail,
    squared_hinge_tail,
    worst_case,
)
from .perturbations import differentiable_fourier, differentiable_nystroem, strongest_move
from .regression import (
    REGRESSION_LOSSES,
    expected_epsilon_insensitive,
    expected_huber,
    expected_pinball,
    expected_squared_epsilon_insensitive,
    expected_squared_error,
)
from .robust import (
    norm_spread,
    robust_lower_bound,
    robust_objective,
    worst_perturbation,
)
from .safe import safe_hypergradient, safe_lower_level
from .total import (
    ball_dual,
    ball_objective,
    best_corrections,
    total_kernel_svc,
    total_logistic,
    total_objective,
    total_squared_error,
    total_svc,
)

__all__ = [
    "LOGISTIC_SHARES",
    "LOGISTIC_VARIANCES",
    "LOSSES",
    "MARGINS",
    "REGRESSION_LOSSES",
    "ball_dual",
    "ball_objective",
    "best_case",
    "best_corrections",
    "bilinear",
    "class_log_odds",
    "covariance_product",
    "curvature",
    "decision_function",
    "decision_std",
    "deconvolution_step",
    "differentiable_fourier",
    "differentiable_nystroem",
    "exact_intercept",
    "expansion_variance",
    "expected_epsilon_insensitive",
    "expected_hinge",
    "expected_huber",
    "expected_huber_hinge",
    "expected_kernel",
    "expected_logistic",
    "expected_pinball",
    "expected_platt_probability",
    "expected_squared_epsilon_insensitive",
    "expected_squared_error",
    "expected_squared_hinge",
    "fit_platt",
    "fourier_bounds",
    "fourier_features",
    "heavy_tailed_posterior",
    "hessian_vector",
    "hinge",
    "level2_kernel",
    "limited_posterior",
    "marginal_logistic",
    "mixture_kernel",
    "norm_spread",
    "normal_tail",
    "nystroem_bounds",
    "objective_and_gradient",
    "offset_posteriors",
    "offset_step",
    "platt_probability",
    "robust_lower_bound",
    "robust_objective",
    "safe_hypergradient",
    "safe_lower_level",
    "section_moments",
    "sgd",
    "shared_product",
    "side_probability",
    "spread_squared",
    "squared_hinge_tail",
    "strongest_move",
    "suboptimality_bound",
    "tail_probability",
    "total_kernel_svc",
    "total_logistic",
    "total_objective",
    "total_squared_error",
    "total_svc",
    "trace",
    "true_value_posterior",
    "weighted_product",
    "worst_case",
    "worst_perturbation",
    "wrong_after_reading",
]
