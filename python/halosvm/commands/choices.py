"""What options of the command line may say: names alone, of which none is slow to import.

What the names stand for is imported by the command that uses it.
"""

from __future__ import annotations

from halosvm import _core
from halosvm.calibration import METHODS as METHODS
from halosvm.files.tables.trouble import ChoiceError
from halosvm.linear.residual_losses import LOSSES as REGRESSION_LOSSES

CLASSIFIERS = ("UncertainSVC", "UncertainKernelSVC", "IsotropicKernelSVC", "TotalSVC", "SafeSVC")
REGRESSORS = ("UncertainSVR",)
ESTIMATORS = (*CLASSIFIERS, *REGRESSORS)
KERNELS = ("linear", "rbf", "poly")
MAPS = {"fourier": "UncertainFourierFeatures", "nystroem": "UncertainNystroem"}
LOSSES_OF = {"UncertainSVC": _core.loss_names(), "UncertainSVR": list(REGRESSION_LOSSES)}
LOSSES = [name for names in LOSSES_OF.values() for name in names]
RANKS = (5, 10, 20, 50, 100, 200, 500, 1000)


class CommandError(ChoiceError):
    """A request that cannot be met; the message is one line."""
