"""Support vector machines for data with error bars.

Every training example is a Gaussian, a mean with a covariance, instead of a point.

Examples   `Gaussians`, `Covariances`, `GaussianMixtures`; error models in `halosvm.uncertainty`
Labels     `UncertainSVC` (on average, in the worst or the best case), `TotalSVC`, `SafeSVC`;
           `ClassPopulations`: true values of each class behind measurements
Kernels    `UncertainKernelSVC`, `IsotropicKernelSVC`, `expected_kernel`, `median_gamma`
Values     `UncertainSVR`
Advice     `doctor`: what the errors of a table are worth, and whether they are told right;
           `next_measurement`: which reading of which object to make next
Before     `EmpiricalBayes`: true values behind measurements; `calibrate_scale`: sizes of errors;
           `UncertainStandardScaler` and `Propagate`: scalers and other transformers, with errors
           `UncertainFourierFeatures`, `UncertainNystroem`: kernel machines of very many examples
Choice     `MeasurementClassifier`, `MeasurementRegressor`: which of these ways serves measurements;
           `MeasurementFeatures`: measurements as plain columns
After      `UncertainCalibratedClassifier`, `PlattScaling`: probabilities
           `save_model`, `load_model`; `ErrorsLeftOutWarning`: of test examples without errors
Pictures   `UncertainDecisionBoundaryDisplay`, `ObjectivePlot`, `SupportPlot`, `ReliabilityDisplay`
Scale      `chunks`: data larger than memory
C++        `cmake_dir`, `include_dir`: the core for other programs

`halosvm.reference` is the same mathematics in plain NumPy.

Each name is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# At once, so that an installation without a core for this processor says so here.
from halosvm import _core as _core

if TYPE_CHECKING:
    from halosvm import reference as reference
    from halosvm import uncertainty as uncertainty
    from halosvm.calibration.calibrated_classifier import (
        UncertainCalibratedClassifier as UncertainCalibratedClassifier,
    )
    from halosvm.calibration.platt import PlattScaling as PlattScaling
    from halosvm.core.config import show_config as show_config
    from halosvm.core.embedding import cmake_dir as cmake_dir
    from halosvm.core.embedding import include_dir as include_dir
    from halosvm.core.user_warning import ErrorsLeftOutWarning as ErrorsLeftOutWarning
    from halosvm.display.decision_boundary import (
        UncertainDecisionBoundaryDisplay as UncertainDecisionBoundaryDisplay,
    )
    from halosvm.display.objective_plot import ObjectivePlot as ObjectivePlot
    from halosvm.display.reliability import ReliabilityDisplay as ReliabilityDisplay
    from halosvm.display.support_plot import SupportPlot as SupportPlot
    from halosvm.files.chunks import chunks as chunks
    from halosvm.files.model_file import load_model as load_model
    from halosvm.files.model_file import save_model as save_model
    from halosvm.gaussians.covariances import Covariances as Covariances
    from halosvm.gaussians.gaussians import Gaussians as Gaussians
    from halosvm.gaussians.mixtures import GaussianMixtures as GaussianMixtures
    from halosvm.kernel.expected_kernel import median_gamma as median_gamma
    from halosvm.kernel.gram import expected_kernel as expected_kernel
    from halosvm.kernel.isotropic_kernel_svc import IsotropicKernelSVC as IsotropicKernelSVC
    from halosvm.kernel.kernel_svc import UncertainKernelSVC as UncertainKernelSVC
    from halosvm.linear.calibrate_scale import calibrate_scale as calibrate_scale
    from halosvm.linear.safe_svc import SafeSVC as SafeSVC
    from halosvm.linear.svc import UncertainSVC as UncertainSVC
    from halosvm.linear.svr import UncertainSVR as UncertainSVR
    from halosvm.linear.total import TotalSVC as TotalSVC
    from halosvm.maps.fourier import UncertainFourierFeatures as UncertainFourierFeatures
    from halosvm.maps.nystroem import UncertainNystroem as UncertainNystroem
    from halosvm.maps.propagate import Propagate as Propagate
    from halosvm.maps.standard_scaler import UncertainStandardScaler as UncertainStandardScaler
    from halosvm.measurement.classifier import MeasurementClassifier as MeasurementClassifier
    from halosvm.measurement.doctor import doctor as doctor
    from halosvm.measurement.features import MeasurementFeatures as MeasurementFeatures
    from halosvm.measurement.readings import next_measurement as next_measurement
    from halosvm.measurement.regressor import MeasurementRegressor as MeasurementRegressor
    from halosvm.population.class_populations import ClassPopulations as ClassPopulations
    from halosvm.population.empirical_bayes import EmpiricalBayes as EmpiricalBayes

__version__ = "0.1.0"

# The same again for the interpreter: in which module each public name stands.
_PLACES = {
    "ClassPopulations": "population.class_populations",
    "Covariances": "gaussians.covariances",
    "EmpiricalBayes": "population.empirical_bayes",
    "ErrorsLeftOutWarning": "core.user_warning",
    "GaussianMixtures": "gaussians.mixtures",
    "Gaussians": "gaussians.gaussians",
    "IsotropicKernelSVC": "kernel.isotropic_kernel_svc",
    "MeasurementClassifier": "measurement.classifier",
    "MeasurementFeatures": "measurement.features",
    "MeasurementRegressor": "measurement.regressor",
    "ObjectivePlot": "display.objective_plot",
    "PlattScaling": "calibration.platt",
    "Propagate": "maps.propagate",
    "ReliabilityDisplay": "display.reliability",
    "SafeSVC": "linear.safe_svc",
    "SupportPlot": "display.support_plot",
    "TotalSVC": "linear.total",
    "UncertainCalibratedClassifier": "calibration.calibrated_classifier",
    "UncertainDecisionBoundaryDisplay": "display.decision_boundary",
    "UncertainFourierFeatures": "maps.fourier",
    "UncertainKernelSVC": "kernel.kernel_svc",
    "UncertainNystroem": "maps.nystroem",
    "UncertainSVC": "linear.svc",
    "UncertainSVR": "linear.svr",
    "UncertainStandardScaler": "maps.standard_scaler",
    "calibrate_scale": "linear.calibrate_scale",
    "chunks": "files.chunks",
    "cmake_dir": "core.embedding",
    "doctor": "measurement.doctor",
    "expected_kernel": "kernel.gram",
    "include_dir": "core.embedding",
    "load_model": "files.model_file",
    "median_gamma": "kernel.expected_kernel",
    "next_measurement": "measurement.readings",
    "reference": "reference",
    "save_model": "files.model_file",
    "show_config": "core.config",
    "uncertainty": "uncertainty",
}

__all__ = sorted(_PLACES)


if not TYPE_CHECKING:  # which would take every name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"halosvm.{_PLACES[name]}")
        value = module if name == _PLACES[name] else getattr(module, name)
        return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
