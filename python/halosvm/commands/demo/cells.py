"""The cells with the standard errors that come with them, as the SVM-GSU paper has them.

In go the Wisconsin Diagnostic Breast Cancer data that scikit-learn ships: 569 images of cells, and
for each of ten measurements of the cell nuclei the mean over the cells of an image, the standard
error of that mean, and the largest values.

References
----------
C. Tzelepis, V. Mezaris, I. Patras: Linear Maximum Margin Classifier for Learning from Uncertain
Data. IEEE TPAMI 40(12), 2018. Section 4.3 and Table 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit

from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.svc import UncertainSVC
from halosvm.maps import UncertainStandardScaler

from .fits import Record, Setup, Situation, choose_and_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .fits import Progress

    Floats = NDArray[np.float64]

STORY = "own errors"
TEST = 0.1
N_UNCERTAIN = 10
LARGEST_VARIANCE = 0.8

HOW_VARIANCES_ARISE = (
    "A standard error is sd/sqrt(N) with N unknown, so the variances of a measurement are its\n"
    "squared standard errors times one factor, which makes the largest variance in the training\n"
    "part 80 % of the range of the measurement there, both in standardised units; the other 20\n"
    "features (the standard errors themselves and the largest values) are taken as certain."
)


class Cells(NamedTuple):
    """The data: features (569, 30), standard errors of the first ten (569, 10), labels, names."""

    features: Floats
    standard_errors: Floats
    labels: NDArray[np.str_]
    names: list[str]


def load_cells() -> Cells:
    """Load the data of scikit-learn; labels are "benign" and "malignant" (positive)."""
    data = load_breast_cancer()
    errors = data.data[:, N_UNCERTAIN : 2 * N_UNCERTAIN]
    return Cells(data.data, errors, data.target_names[data.target], list(data.feature_names))


def scale(
    features: Floats, standard_errors: Floats, train: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Standardise the features and turn standard errors into variances, by the training rows.

    The paper gives feature j the variances sigma_j^2 whose "maximum variance is set to 80 % of the
    range of the corresponding mean value". A variance and a range have different units, so the
    sentence has a meaning only for numbers without units. (Taken as it stands for the raw columns
    it would give the standard deviation of the smoothness, about 0.1, an error of up to 0.3.) Here
    both are measured after standardisation, in units of the feature's standard deviation over the
    training rows. Each feature has its own factor, as the word "corresponding" says. One factor
    for all ten, which a common N would mean, could be at most 0.18 for the rule to hold in every
    feature: an N below one.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    standard_errors : ndarray of shape (n_samples, n_uncertain)
        Standard errors of the first `n_uncertain` features, in their units.
    train : ndarray of int
        The rows that fix the location, the scale and the factors.

    Returns
    -------
    means : ndarray of shape (n_samples, n_features)
        Standardised features.
    variances : ndarray of shape (n_samples, n_features)
        Variances in the same units; 0 for features without standard error.
    """
    n_uncertain = standard_errors.shape[1]
    errors = np.zeros_like(features)
    errors[:, :n_uncertain] = standard_errors
    scaler = UncertainStandardScaler().fit(features[train])
    X = scaler.transform(features, X_std=errors)
    variances = X.covariances.variances()
    largest = variances[train].max(axis=0)
    ranges = np.ptp(X.mean[train], axis=0)
    factors = np.divide(LARGEST_VARIANCE * ranges, largest, where=largest > 0, out=0.0 * largest)
    return X.mean, factors * variances


def own_errors(setup: Setup, progress: Progress) -> Situation:
    """Compare the cells with their standard errors and without, on 90/10 splits."""
    cells = load_cells()
    splitter = StratifiedShuffleSplit(setup.splits, test_size=TEST, random_state=setup.seed)
    splits = list(splitter.split(cells.features, cells.labels))
    record = Record()
    for number in progress.steps("cells with their own standard errors", setup.splits):
        train, test = splits[number]
        means, variances = scale(cells.features, cells.standard_errors, train)
        for key, loss, X in (
            ("ignored", "hinge", Gaussians(means)),
            ("distribution", "expected_hinge", Gaussians(means, variance=variances)),
        ):
            fitted = choose_and_fit(
                UncertainSVC(loss=loss), X[train], cells.labels[train], setup, number
            )
            record.add(key, fitted, fitted.score(X[test], cells.labels[test]))
    return Situation(STORY, "own standard errors", TEST / (1.0 - TEST), record.outcomes())
