"""Gaussians from repeated observations of each example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halosvm.checks import units
from halosvm.checks.frames import Labels, common_names, feature_names_of
from halosvm.gaussians.centring import centred
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.gaussians.sample_covariances import as_bags, split_by_group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.gaussians.sample_covariances import BagKind, Of, Shrinkage


def from_samples(
    samples: Iterable[ArrayLike] | ArrayLike,
    groups: ArrayLike | None = None,
    *,
    of: Of,
    kind: BagKind = "full",
    shrinkage: Shrinkage = None,
) -> Gaussians:
    r"""Estimate the mean and the covariance of each example from its repeated observations.

    With the observations :math:`x_1, \ldots, x_N` of one example, their mean :math:`\bar x`, and
    :math:`C = \sum_k (x_k - \bar x)(x_k - \bar x)' / (N - 1)`,

    .. math:: S = (1 - a)\,C + a\,\frac{\operatorname{tr} C}{d}\,I, \qquad
              \Sigma = S \text{ or } S / N

    Parameters
    ----------
    samples : iterable of array-like of shape (N_i, n_features), or one array
        The observations of each example, two or more. With `groups`, one array of shape
        (n_observations, n_features).
    groups : array-like of shape (n_observations,), optional
        Which example a row of `samples` belongs to: numbers or names. The examples are returned in
        the order of ``np.unique(groups)``, which is not that in which they appear; `groups` of the
        result holds it, and its method `labels_by_group` brings labels into it.
    of : {"observations", "mean"}
        Whose covariance to return. "observations", S: the example is one more observation drawn
        like those given. "mean", S / N: the example is the true value, which the mean of N
        independent observations estimates. The two differ by the factor N, so there is no default.
    kind : {"full", "diagonal", "low_rank"}, default="full"
        What to keep of the covariance. "low_rank" loses nothing: a thin singular value
        decomposition of the centred observations, of rank at most N_i - 1, which takes
        N_i * n_features numbers, fewer than a matrix where observations are fewer than features.
    shrinkage : float, "ledoit_wolf" or None, default=None
        a, from 0 to 1; "ledoit_wolf" estimates it for each example [1]_. Low-rank covariances keep
        the shrunk part as an added diagonal.

    Returns
    -------
    Gaussians
        One for each bag, in the units of the observations, of the first bag if they differ, with
        the feature names of data frames, and with `groups`, if there are some.

    Raises
    ------
    ValueError, TypeError
        For fewer than two observations, missing or infinite values, and bags of different features.

    References
    ----------
    .. [1] O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm.uncertainty import from_samples
    >>> X = from_samples([[[1.0], [3.0]], [[0.0], [1.0], [2.0]]], of="mean")
    >>> X.mean.ravel(), X.covariances.variances().ravel()
    (array([2., 1.]), array([1.        , 0.33333333]))

    Labels are brought into the order of the groups:

    >>> scans = [[5.0], [6.0], [1.0], [2.0], [3.0]]
    >>> patients = ["P2", "P2", "P10", "P10", "P10"]
    >>> diagnoses = ["ill", "ill", "well", "well", "well"]
    >>> X = from_samples(scans, patients, of="mean")
    >>> X.groups.tolist(), X.labels_by_group(diagnoses, patients).tolist()
    (['P10', 'P2'], ['well', 'ill'])
    """
    if groups is None:
        each, found = list(samples), None  # type: ignore[arg-type]
        split = [units.split(bag) for bag in each]
        bags = as_bags(bag for bag, _ in split)
        d = bags[0].shape[1]
        of_each = [units.for_features(unit, d) for _, unit in split]
        bags = [
            units.converted(bag, of_bag, of_each[0], f"samples[{i}]", "samples[0]")
            for i, (bag, of_bag) in enumerate(zip(bags, of_each, strict=True))
        ]
        names = common_names(
            [feature_names_of(bag, f"samples[{i}]") for i, bag in enumerate(each)], "samples"
        )
    else:
        bare, unit = units.split(samples)
        found, bags = split_by_group(bare, groups)
        of_each = [units.for_features(unit, bags[0].shape[1])]
        names = feature_names_of(samples, "samples")
    mean = np.stack([centred(bag)[0] for bag in bags])
    covariances = Covariances.from_samples(bags, kind, shrinkage=shrinkage, of=of)
    gaussians = as_gaussians(mean, X_cov=covariances, labels=Labels(names))
    return gaussians.replaced(feature_units=of_each[0], groups=found)
