"""Tests of whether errors are told right: measurements in; factors, intervals and p values out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy.special import chdtrc
from sklearn.base import clone

from halosvm.checks.estimator import read_example_weights

from .error_scale import PROFILED, SIZES_NEED_READINGS, Profile, why_unknown
from .fitting import Fitter
from .populations import form_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    from .error_scale import Groups


class ErrorTest(NamedTuple):
    """Whether errors are told right: a factor, and the likelihood ratio against 1.

    Attributes
    ----------
    name : str
        "all features" for one factor in common, "each feature" for one each, or a feature.
    factor : float
        What the standard deviations that are told are to be multiplied by; NaN for "each feature",
        and where it cannot be known.
    low, high : float
        Interval of 95 % of it, by the profile of the likelihood; 0 or infinity where it is open.
    statistic : float
        Twice the difference of the log likelihoods, of the best factors and of 1.
    degrees : int
        Number of factors that are 1 if errors are told right.
    p_value : float
        Probability of so large a statistic if they are, by chi^2.
    note : str
        Why the factor cannot be known; empty where it can.
    """

    name: str
    factor: float = np.nan
    low: float = np.nan
    high: float = np.nan
    statistic: float = np.nan
    degrees: int = 0
    p_value: float = np.nan
    note: str = ""

    def __str__(self) -> str:
        if self.note:
            return f"{self.name}: cannot be known: {self.note}"
        between = f"{self.factor:.3g} ({self.low:.3g} to {self.high:.3g}), "
        ratio = f"chi^2 = {self.statistic:.2f} on {self.degrees}, p = {self.p_value:.2g}"
        return f"{self.name}: {'' if np.isnan(self.factor) else between}{ratio}"


class ErrorTested:
    """The method `error_test`, of estimators of populations."""

    def error_test(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        features: Sequence[int] | None = None,
    ) -> list[ErrorTest]:
        """Test whether errors are told right, or have to be multiplied by a factor.

        Populations are fitted with the errors that are told and with such factors; that needs no
        `fit`, and changes nothing. The likelihood tells the factor because errors differ from row
        to row: rows of larger errors have to be wider spread, by as much as is told.

        Parameters
        ----------
        X, X_std, X_cov, sample_weight
            Measurements as in `fit`.
        features : sequence of int, optional
            Numbers of the features to test each; None takes all. The others share a factor.

        Returns
        -------
        list of ErrorTest
            One factor for all features; one for each, tested together; and each of these, the
            others at their best. Where a factor cannot be known, its note says why. Beyond 10
            factors, each is tested by the curvature of the likelihood, in logarithms.

        Notes
        -----
        As `fit`, it takes the true values for a mixture of `n_components` normal distributions. If
        they are far from it and errors depend on them, the test may take the one for the other.

        Examples
        --------
        >>> import numpy as np
        >>> from halosvm import EmpiricalBayes
        >>> rng = np.random.default_rng(0)
        >>> error = rng.uniform(0.2, 2.0, (500, 2))
        >>> X = rng.normal(size=(500, 2)) + error * rng.normal(size=(500, 2))
        >>> told_half = EmpiricalBayes().error_test(X, X_std=error / 2)
        >>> told_half[0].p_value < 0.05, told_half[0].low < 2.0 < told_half[0].high
        (True, True)
        """
        settings = cast("Any", clone(cast("Any", self)))
        if settings.noise != "gaussian":
            raise ValueError(
                f"error_test is of normal errors, and noise is {settings.noise!r}, whose nu_ tells "
                "how heavy tails are"
            )
        settings._check_parameters()  # noqa: SLF001
        settings._refuse_batches("error_test")  # noqa: SLF001
        data = settings._read(X, X_std, X_cov, reset=True)  # noqa: SLF001
        data.require_no_limits("X", SIZES_NEED_READINGS)
        weights = read_example_weights(X, sample_weight, len(data))
        form = form_of(settings.covariance, settings.n_factors, data.shape[1])
        fitter = Fitter(settings, data, weights, form)
        if settings.n_components == "bic":
            right, _ = fitter.fit_by_criterion()
        else:
            right = fitter.fit_best(settings.n_components)
        names = data.feature_names
        d = data.shape[1]
        names = [f"feature {j}" if names is None else str(names[j]) for j in range(d)]
        chosen = range(d) if features is None else [range(d)[j] for j in features]
        each = {j: why_unknown(fitter, np.array([j])) for j in chosen}
        known = [j for j, why in each.items() if not why]
        why = why_unknown(fitter, np.arange(d))
        if why:
            return [ErrorTest("all features", note=why)]
        rows = _tested(fitter, right, ["all features"], [np.arange(d)])
        if d == 1:
            return rows
        groups = [np.array([j]) for j in known]
        rest = np.setdiff1d(np.arange(d), list(each))
        if known and rest.size and not why_unknown(fitter, rest):
            groups.append(rest)
        alone = [*(names[j] for j in known), "the others"][: len(groups)]
        found = _tested(fitter, right, alone, groups, rows[0].factor) if known else []
        rows += found[len(groups) :]
        of_each = iter(found)
        rows += [ErrorTest(names[j], note=why) if why else next(of_each) for j, why in each.items()]
        return rows


def _tested(
    fitter: Fitter, right: Any, names: list[str], groups: Groups, common: float | None = None
) -> list[ErrorTest]:
    """Test the factors of some groups, each alone and, of several, all together in the last row."""
    profile = Profile(fitter, right, groups)
    # The start may be less near to its maximum than what is compared with it.
    at_one, _ = profile(np.zeros(len(groups)))
    z, value = profile.maximise(common)
    best, curvature, scales = profile.result, profile.curvature(z), profile.scales(z)
    rows = []
    for at, (name, group) in enumerate(zip(names, groups, strict=True)):
        profile.result = best
        held = np.where(np.arange(len(z)) == at, 0.0, z)
        if len(groups) == 1:
            other = at_one
        elif len(groups) > PROFILED:
            other = value - 0.5 * (z[at] / profile.standard_error(at, curvature)) ** 2
        else:
            other = profile.held(held, at, curvature)[0]
        profile.result = best
        row = ErrorTest(name, float(scales[group[0]]), *profile.interval(z, value, at, curvature))
        rows.append(_with_ratio(row, value - other, 1))
    if len(groups) > 1:
        rows.append(_with_ratio(ErrorTest("each feature"), value - at_one, len(groups)))
    return rows


def _with_ratio(row: ErrorTest, gain: float, degrees: int) -> ErrorTest:
    statistic = 2.0 * max(0.0, gain)
    p_value = float(chdtrc(degrees, statistic))
    return row._replace(statistic=statistic, degrees=degrees, p_value=p_value)
