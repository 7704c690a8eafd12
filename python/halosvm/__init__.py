"""Support vector machines for data with error bars.

Every training example is a Gaussian, a mean with a covariance, instead of a point.

Examples   `Gaussians`, `Covariances`, `GaussianMixtures`; error models in `halosvm.uncertainty`
Labels     `UncertainSVC` (on average, in the worst or the best case), `TotalSVC`, `SafeSVC`
Kernels    `UncertainKernelSVC`, `IsotropicKernelSVC`, `expected_kernel`, `median_gamma`
Values     `UncertainSVR`
Before     `EmpiricalBayes`: true values behind measurements; `calibrate_scale`: sizes of errors;
           `UncertainStandardScaler` and `Propagate`: scalers and other transformers, with errors
           `UncertainFourierFeatures`, `UncertainNystroem`: kernel machines of very many examples
After      `UncertainCalibratedClassifier`, `PlattScaling`: probabilities
           `save_model`, `load_model`
Pictures   `UncertainDecisionBoundaryDisplay`, `ObjectivePlot`, `SupportPlot`, `ReliabilityDisplay`
Scale      `chunks`: data larger than memory

`halosvm.reference` is the same mathematics in plain NumPy.
"""

from halosvm import reference, uncertainty
from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.calibration.platt import PlattScaling
from halosvm.core.config import show_config
from halosvm.display.decision_boundary import UncertainDecisionBoundaryDisplay
from halosvm.display.objective_plot import ObjectivePlot
from halosvm.display.reliability import ReliabilityDisplay
from halosvm.display.support_plot import SupportPlot
from halosvm.files.chunks import chunks
from halosvm.files.model_file import load_model, save_model
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import Gaussians
from halosvm.gaussians.mixtures import GaussianMixtures
from halosvm.kernel.expected_kernel import median_gamma
from halosvm.kernel.gram import expected_kernel
from halosvm.kernel.isotropic_kernel_svc import IsotropicKernelSVC
from halosvm.kernel.kernel_svc import UncertainKernelSVC
from halosvm.linear.calibrate_scale import calibrate_scale
from halosvm.linear.safe_svc import SafeSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR
from halosvm.linear.total import TotalSVC
from halosvm.maps import (
    EmpiricalBayes,
    Propagate,
    UncertainFourierFeatures,
    UncertainNystroem,
    UncertainStandardScaler,
)

__version__ = "0.1.0"

__all__ = [
    "Covariances",
    "EmpiricalBayes",
    "GaussianMixtures",
    "Gaussians",
    "IsotropicKernelSVC",
    "ObjectivePlot",
    "PlattScaling",
    "Propagate",
    "ReliabilityDisplay",
    "SafeSVC",
    "SupportPlot",
    "TotalSVC",
    "UncertainCalibratedClassifier",
    "UncertainDecisionBoundaryDisplay",
    "UncertainFourierFeatures",
    "UncertainKernelSVC",
    "UncertainNystroem",
    "UncertainSVC",
    "UncertainSVR",
    "UncertainStandardScaler",
    "calibrate_scale",
    "chunks",
    "expected_kernel",
    "load_model",
    "median_gamma",
    "reference",
    "save_model",
    "show_config",
    "uncertainty",
]
