"""What `EmpiricalBayes` does where errors are Student's t, and where they are normal.

In:  measurements that are read and checked. Out: fitters, posteriors and log densities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm.checks.parameters import require_number, thread_count

from .fitting import Fitter
from .heavy_tails import Tails
from .population_model import PopulationModel
from .populations import form_of
from .student import StudentFitter, parts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .heavy_tails import Expected
    from .populations import Form

    Array = NDArray[np.float64]

_NOISES = ("gaussian", "student")


class HeavyTailed(PopulationModel):
    """The parameters `noise` and `nu`, and what they change."""

    noise: str
    nu: float | None
    error_scale: Any
    nu_: float

    def _check_noise(self) -> None:
        if not isinstance(self.noise, str) or self.noise not in _NOISES:
            raise ValueError(f"noise must be one of {', '.join(_NOISES)}; got {self.noise!r}")
        if self.nu is not None:
            if self.noise != "student":
                raise ValueError(f"nu is given, but noise is {self.noise!r}")
            if not (isinstance(self.nu, float) and self.nu == np.inf):
                require_number(self.nu, "nu")
        if self.noise == "gaussian" or self.nu == np.inf:
            return
        if isinstance(self.error_scale, str | list | tuple):
            raise ValueError(  # noqa: TRY004
                f"error_scale is {self.error_scale!r}, to be estimated, and noise is 'student', "
                "which tells large errors by their tails; give error_scale a number"
            )
        if getattr(self, "tied", False) or getattr(self, "fixed", None):
            raise ValueError("noise='student' fits all parameters: leave tied and fixed out")
        if self.covariance == "factors":
            raise ValueError("noise='student' needs covariance 'full' or 'diagonal', got 'factors'")

    def _fitter(self, data: Gaussians, weights: Array, form: Form) -> Fitter:
        settings: Any = self
        if self.noise == "gaussian" or self.nu == np.inf or data.covariances.certain:
            return Fitter(settings, data, weights, form)
        return StudentFitter(settings, data, weights, form).with_tails(self.nu)

    def _remember_tails(self, result: Any) -> None:
        self.__dict__.pop("nu_", None)
        if self.noise == "student":
            otherwise = np.inf if self.nu is None else self.nu
            self.nu_ = float(result.get("nu", otherwise))

    def _expected(self, data: Gaussians) -> Expected | None:
        """Return what heavy tails leave of measurements; None where errors are normal."""
        nu = getattr(self, "nu_", np.inf)
        if nu == np.inf or data.covariances.certain:
            return None
        form = form_of(self.covariance, self.n_factors, self.n_features_in_)
        tails = Tails(data, form, thread_count(self.n_threads))
        return tails.expect(parts_of(self._population(), form), nu)

    def _log_density(self, data: Gaussians) -> Array:
        found = self._expected(data)
        return super()._log_density(data) if found is None else found.density

    def _posteriors(self, data: Gaussians, *, joined: bool, covariances: bool) -> dict[str, Any]:
        found = self._expected(data)
        if found is None:
            return super()._posteriors(data, joined=joined, covariances=covariances)
        r, means, B = found.responsibilities, found.means, found.matrices
        d = means.shape[2]
        if not joined:
            return {
                "means": means.reshape(-1, d),
                "responsibilities": r,
                "kind": "full",
                "matrices": B.reshape(-1, d, d),
            }
        mean = np.einsum("nk,nkd->nd", r, means)
        out: dict[str, Any] = {"means": mean, "kind": "full"}
        if covariances:
            apart = means - mean[:, np.newaxis]
            out["matrices"] = np.einsum("nk,nkij->nij", r, B)
            out["matrices"] += np.einsum("nk,nki,nkj->nij", r, apart, apart)
        return out
