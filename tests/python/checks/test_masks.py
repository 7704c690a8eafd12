"""Masked and missing entries: each is refused with its argument and place, whatever hides it."""

import numpy as np
import pandas as pd
import pytest
from astropy.nddata import NDDataArray
from astropy.table import MaskedColumn, Table
from astropy.utils.masked import Masked

from halosvm import (
    Covariances,
    GaussianMixtures,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    SafeSVC,
    UncertainKernelSVC,
    UncertainSVC,
    calibrate_scale,
    expected_kernel,
)
from halosvm.uncertainty import (
    asymmetric_errors,
    confidence_radius,
    from_samples,
    image_transform,
    intervals,
    quantiles,
    standard_errors,
    welch,
)

RNG = np.random.default_rng(1)
N, D = 12, 3
Y = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + Y[:, None]
STD = RNG.uniform(0.1, 1.0, (N, D))
PLACE = (4, 1)
MACHINES = [UncertainSVC, UncertainKernelSVC, IsotropicKernelSVC]


def marked(array, *index):
    mask = np.zeros(np.shape(array), bool)
    mask[index] = True
    return mask


MASKS = {
    "numpy": lambda a, mask: np.ma.array(a, mask=mask),
    "astropy": lambda a, mask: Masked(a, mask=mask),
    "list": lambda a, mask: list(np.ma.array(a, mask=mask)),
    "list of astropy": lambda a, mask: [Masked(*pair) for pair in zip(a, mask, strict=True)],
}


@pytest.fixture(params=sorted(MASKS))
def hide(request):
    def masked(array, *index, nothing=False):
        given = np.zeros(np.shape(array), bool) if nothing else marked(array, *index)
        return MASKS[request.param](np.array(array), given)

    return masked


def refuse(message, function, *arguments, **options):
    with pytest.raises(ValueError, match=f"^{message}"):
        function(*arguments, **options)


@pytest.mark.parametrize("make", MACHINES)
def test_no_argument_of_an_estimator_may_be_masked(make, hide):
    hidden, at = hide(X, *PLACE), "row 4, column 1 is masked"
    refuse(f"X: {at}", make().fit, hidden, Y)
    refuse("y: row 4 is masked", make().fit, X, hide(Y, 4))
    refuse("y: row 4 is masked", make().fit, Gaussians(X), hide(Y, 4))
    refuse("sample_weight: row 4 is masked", make().fit, X, Y, sample_weight=hide(STD[:, 0], 4))
    if make is not IsotropicKernelSVC:
        refuse(f"X_std: {at}", make().fit, X, Y, X_std=hide(STD, *PLACE))
        refuse(f"X_cov: {at}", make().fit, X, Y, X_cov=hide(STD, *PLACE))
    refuse("X_std: row 4 is masked", make().fit, X, Y, X_std=hide(STD[:, 0], 4))
    clf = make().fit(X, Y)
    for function in (clf.predict, clf.decision_function, clf.decision_std):
        refuse(f"X: {at}", function, hidden)
    refuse(f"X: {at}", clf.score, hidden, Y)
    refuse("y: row 4 is masked", clf.score, X, hide(Y, 4))
    refuse("sample_weight: row 4 is masked", clf.score, X, Y, hide(STD[:, 0], 4))
    refuse("X_std: row 4 is masked", clf.decision_std, X, X_std=hide(STD[:, 0], 4))


@pytest.mark.parametrize("make", MACHINES)
def test_masked_arrays_with_nothing_masked_are_arrays(make, hide):
    clf = make().fit(
        hide(X, nothing=True),
        hide(Y, nothing=True),
        X_std=hide(STD[:, 0], nothing=True),
        sample_weight=hide(STD[:, 1], nothing=True),
    )
    plain = make().fit(X, Y, X_std=STD[:, 0], sample_weight=STD[:, 1])
    np.testing.assert_array_equal(
        clf.decision_function(hide(X, nothing=True), X_std=0), clf.decision_function(X, X_std=0)
    )
    np.testing.assert_array_equal(
        clf.decision_function(X, X_std=0), plain.decision_function(X, X_std=0)
    )


def test_masked_means_of_gaussians_are_missing_and_their_errors_are_needed_elsewhere(hide):
    hidden = hide(STD, *PLACE)
    if isinstance(hidden, list):
        refuse("mean: row 4, column 1 is masked", Gaussians, hidden)
        refuse("std: row 4, column 1 is masked", Gaussians, X, std=hidden)
        return
    examples = Gaussians(hidden, std=hidden)
    assert np.argwhere(np.isnan(examples.mean)).tolist() == [list(PLACE)]
    assert np.isfinite(examples.covariances.variances()).all()
    refuse("X: row 4, column 1 is missing.*EmpiricalBayes", UncertainSVC().fit, examples, Y)
    refuse("std: row 4, column 1 is nan, but mean has a value there", Gaussians, X, std=hidden)


def test_no_other_argument_may_be_masked(hide):
    at = "row 4, column 1 is masked"
    hidden = hide(STD, *PLACE)
    refuse(f"X: {at}", expected_kernel, hidden)
    refuse(f"Y: {at}", expected_kernel, X, hidden)
    refuse("gamma: row 1 is masked", expected_kernel, X, gamma=hide(np.ones(D), 1))
    refuse(f"inverse_variance: {at}", Covariances.from_inverse_variance, hidden)
    refuse(
        "n_components: row 1 is masked", GaussianMixtures, X, np.ones(N), hide(np.ones(N, int), 1)
    )
    refuse("weights: row 1 is masked", GaussianMixtures, X, hide(np.ones(N), 1), 1)
    refuse("the index: row 1 is masked", Gaussians(X).__getitem__, hide(np.arange(3), 1))
    refuse(f"values: {at}", standard_errors, hidden, STD)
    refuse(f"errors: {at}", standard_errors, X, hidden)
    refuse(f"n_observations: {at}", standard_errors, X, STD, n_observations=hidden)
    refuse(f"lower: {at}", asymmetric_errors, X, hidden, STD, limits="one_sided")
    refuse(f"upper: {at}", asymmetric_errors, X, STD, hidden, limits="one_sided")
    refuse(f"low: {at}", intervals, hidden, STD)
    refuse(f"high: {at}", intervals, STD, hidden)
    refuse("epsilon: row 1 is masked", confidence_radius, hide(np.full(D, 0.1), 1))
    refuse("groups: row 4 is masked", from_samples, X, hide(Y, 4), of="mean")
    refuse(f"samples: {at}", from_samples, hidden, Y, of="mean")
    refuse(rf"samples\[0\]: {at}", from_samples, [hidden], of="mean")
    refuse("values: row 0, entry", quantiles, hide([[[1.0, 2.0]]], 0, 0, 1), [0.2, 0.8])
    refuse("probabilities: row 1 is masked", quantiles, [[[1.0, 2.0]]], hide([0.2, 0.8], 1))
    refuse("images: row 0", image_transform, hide(np.ones((1, 3, 3)), 0, 0, 1), std=[1, 1])
    refuse(r"signals\[0\]: row 0", welch, [hide(X, 0, 1)], 1.0, [(0, 1)], of="mean", nperseg=2)
    positive = Y == 1
    refuse("decision: row 4 is masked", PlattScaling().fit, hide(X[:, 0], 4), positive)
    refuse("positive: row 4 is masked", PlattScaling().fit, X[:, 0], hide(positive, 4))
    refuse(
        "sample_weight: row 4 is masked", PlattScaling().fit, X[:, 0], positive, hide(STD[:, 0], 4)
    )
    scaling = PlattScaling().fit(X[:, 0], positive)
    refuse("decision: row 4 is masked", scaling.probability, hide(X[:, 0], 4))
    refuse("std: row 4 is masked", scaling.probability, X[:, 0], hide(STD[:, 0], 4))


def test_a_masked_column_of_a_table_is_named():
    table = Table({"a": X[:, 0], "b": MaskedColumn(X[:, 1], mask=np.arange(N) == 7)})
    for function in (Gaussians, lambda t: UncertainSVC().fit(t, Y)):
        with pytest.raises(ValueError, match=r"\['b'\]: row 7 is masked"):
            function(table)


def test_no_data_to_judge_by_may_be_masked(hide):
    at = "row 4, column 1 is masked"
    for learn in (
        lambda judging: SafeSVC(validation=judging).fit(X, Y),
        lambda judging: calibrate_scale(X, Y, X_std=STD, validation=judging),
    ):
        learn((hide(X, nothing=True), Y))
        refuse(f"validation: X: {at}", learn, (hide(X, *PLACE), Y))
        refuse("validation: y: row 4 is masked", learn, (X, hide(Y, 4)))
    refuse(f"X: {at}", SafeSVC().fit, hide(X, *PLACE), Y)
    refuse("y: row 4 is masked", SafeSVC().fit, X, hide(Y, 4))
    refuse(r"bounds\[1\]: row 1 is masked", SafeSVC(bounds=(0, hide(STD[0], 1))).fit, X, Y)
    refuse(f"X: {at}", calibrate_scale, hide(X, *PLACE), Y, X_std=STD)
    refuse(f"X_std: {at}", calibrate_scale, X, Y, X_std=hide(STD, *PLACE))
    refuse("y: row 4 is masked", calibrate_scale, X, hide(Y, 4), X_std=STD)


@pytest.mark.parametrize("make", MACHINES)
def test_missing_numbers_of_pandas_are_named_by_row_and_column(make):
    frame = pd.DataFrame(X, columns=list("abc")).astype("Float64")
    clf = make().fit(frame, Y)
    plain = make().fit(pd.DataFrame(X, columns=list("abc")), Y)
    np.testing.assert_array_equal(clf.decision_function(frame), plain.decision_function(frame))
    assert clf.feature_names_in_.tolist() == list("abc")
    frame.iloc[PLACE] = pd.NA
    with pytest.raises(ValueError, match=r"X:? row 4, column 1 is nan"):
        make().fit(frame, Y)
    with pytest.raises(ValueError, match=r"X:? row 4, column 1 is nan"):
        clf.predict(frame)
    labels = pd.Series(Y, dtype="Int64")
    labels[4] = pd.NA
    weights = pd.Series(STD[:, 0], dtype="Float64")
    weights[4] = pd.NA
    refuse("y: row 4 is missing", make().fit, X, labels)
    refuse(
        "Input sample_weight contains NaN: row 4 is nan", make().fit, X, Y, sample_weight=weights
    )
    objects = pd.DataFrame(X).astype(object)
    objects.iloc[PLACE] = None
    with pytest.raises(TypeError, match="X: row 4, column 1 is None, which is no number"):
        make().fit(objects, Y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named_by_row_and_column(value):
    bad = X.copy()
    bad[PLACE] = value
    for means in (bad, pd.DataFrame(bad), bad.astype(np.float32), bad.tolist()):
        with pytest.raises(ValueError, match=rf"Input X contains .*: row 4, column 1 is {value}"):
            UncertainSVC().fit(means, Y)


def test_containers_of_errors_are_sent_to_their_reader():
    data = NDDataArray(X, mask=marked(X, *PLACE))
    for function in (Gaussians, lambda a: UncertainSVC().fit(a, Y)):
        with pytest.raises(TypeError, match="is NDDataArray, which holds errors and a mask"):
            function(data)
