"""Support vector machines for data with error bars.

Every training example is a Gaussian, a mean with a covariance, instead of a point.
"""

from halosvm import reference, uncertainty
from halosvm.calibration import PlattScaling
from halosvm.config import show_config
from halosvm.covariances import Covariances
from halosvm.gaussians import Gaussians
from halosvm.gram import expected_kernel
from halosvm.isotropic_kernel_svc import IsotropicKernelSVC
from halosvm.kernel_svc import UncertainKernelSVC
from halosvm.kernels import median_gamma
from halosvm.maps import EmpiricalBayes
from halosvm.mixtures import GaussianMixtures
from halosvm.model_file import load_model, save_model
from halosvm.svc import UncertainSVC

__version__ = "0.1.0"

__all__ = [
    "Covariances",
    "EmpiricalBayes",
    "GaussianMixtures",
    "Gaussians",
    "IsotropicKernelSVC",
    "PlattScaling",
    "UncertainKernelSVC",
    "UncertainSVC",
    "expected_kernel",
    "load_model",
    "median_gamma",
    "reference",
    "save_model",
    "show_config",
    "uncertainty",
]
