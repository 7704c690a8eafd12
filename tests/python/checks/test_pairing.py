"""Order of rows and columns: labels of any kind pair what belongs together, in all arguments."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from halosvm import (
    Covariances,
    EmpiricalBayes,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    ReliabilityDisplay,
    SafeSVC,
    UncertainSVC,
    UncertainSVR,
    expected_kernel,
)
from halosvm.uncertainty import intervals, standard_errors

RNG = np.random.default_rng(8)
N, D = 12, 3
Y = np.arange(N) % 2
MEAN = RNG.normal(size=(N, D)) + Y[:, None]
STD = RNG.uniform(0.1, 1.0, (N, D))
FULL = np.einsum("ni,nj->nij", STD, STD) + 0.1 * np.eye(D)
ROWS, COLUMNS = RNG.permutation(N), np.array([2, 0, 1])
IDS = [f"star {k}" for k in range(N)]
LABELS = {
    "numbers": [400.0, 500.5, 600.0],
    "default": range(D),
    "dates": pd.date_range("2020-01-01", periods=D),
    "levels": pd.MultiIndex.from_product([["band"], ["g", "r", "i"]]),
    "two levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    "text": list("gri"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("keyword", ["std", "variance", "cov"])
def test_columns_of_any_labels_are_paired_by_them(labels, keyword):
    mean, std = (pd.DataFrame(values, columns=labels) for values in (MEAN, STD))
    made = Gaussians(mean, **{keyword: std.iloc[:, COLUMNS]})
    np.testing.assert_array_equal(made.covariances.values, STD)
    other = {"X_cov": std.iloc[:, COLUMNS] ** 2} if keyword == "cov" else {}
    errors = other or {"X_std": std.iloc[:, COLUMNS]}
    expected = UncertainSVC().fit(MEAN, Y, X_std=STD)
    clf = UncertainSVC().fit(mean, Y, **errors)
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-12)
    values = clf.decision_std(mean, **errors)
    np.testing.assert_allclose(values, expected.decision_std(MEAN, X_std=STD), rtol=1e-12)
    prior = EmpiricalBayes().fit(mean, **errors)
    np.testing.assert_allclose(prior.means_, EmpiricalBayes().fit(MEAN, X_std=STD).means_)
    np.testing.assert_array_equal(standard_errors(mean, errors=std.iloc[:, COLUMNS]).mean, MEAN)


def test_columns_of_levels_are_known_by_the_level_in_which_they_differ():
    mean = pd.DataFrame(MEAN, columns=pd.MultiIndex.from_product([list("gri"), ["mean"]]))
    std = pd.DataFrame(STD, columns=pd.MultiIndex.from_product([["std"], list("gri")]))
    for errors in (std, std.iloc[:, COLUMNS]):
        np.testing.assert_array_equal(Gaussians(mean, std=errors).covariances.values, STD)
        plain = pd.DataFrame(MEAN, columns=list("gri"))
        np.testing.assert_array_equal(Gaussians(plain, std=errors).covariances.values, STD)


def test_labels_that_agree_in_part_are_refused_and_others_say_nothing():
    mean = pd.DataFrame(MEAN, columns=[1, 2, 3])
    with pytest.raises(ValueError, match="std has column 0 named 0, in mean it is 1; give them eq"):
        Gaussians(mean, std=pd.DataFrame(STD))
    for columns in ([10, 20, 30], list("abc")):
        made = Gaussians(mean, std=pd.DataFrame(STD, columns=columns))
        np.testing.assert_array_equal(made.covariances.values, STD)


def labelled(values, *, rows=None, columns=None, dims=("star", "band", "other")):
    """An array of xarray, in another order of its coordinates if one is given."""
    coords = {dims[0]: IDS, dims[1]: list("gri"), dims[2]: list("gri")}
    array = xr.DataArray(
        values, dims=dims[: values.ndim], coords={d: coords[d] for d in dims[: values.ndim]}
    )
    if rows is not None:
        array = array.isel({dims[0]: rows})
    if columns is not None:
        array = array.isel(dict.fromkeys(array.dims[1:], columns))
    return array


def test_coordinates_of_xarray_pair_as_those_of_frames():
    x = labelled(MEAN)
    mixed = {"rows": ROWS, "columns": COLUMNS}
    for given, argument in ((STD, "std"), (STD, "variance"), (STD, "cov"), (FULL, "cov")):
        expected = Gaussians(MEAN, **{argument: given}).covariances.values
        for order in ({"rows": ROWS}, {"columns": COLUMNS}, mixed):
            made = Gaussians(x, **{argument: labelled(given, **order)})
            np.testing.assert_array_equal(made.covariances.values, expected)
    made = Gaussians(x, std=labelled(STD[:, 0], rows=ROWS))
    np.testing.assert_array_equal(made.covariances.values, STD[:, 0])
    expected = UncertainSVC().fit(MEAN, Y, X_std=STD)
    clf = UncertainSVC().fit(x, Y, X_std=labelled(STD, **mixed))
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    std = clf.decision_std(x, X_std=labelled(STD, **mixed))
    np.testing.assert_array_equal(std, expected.decision_std(MEAN, X_std=STD))
    frame = pd.DataFrame(STD, index=IDS, columns=list("gri")).iloc[ROWS, COLUMNS]
    np.testing.assert_array_equal(Gaussians(x, std=frame).covariances.values, STD)
    other = labelled(STD).assign_coords(star=[*IDS[:-1], "moon"])
    with pytest.raises(ValueError, match="std has no row labelled 'star 11', which is row 11"):
        Gaussians(x, std=other)
    high = labelled(MEAN + STD, **mixed)
    np.testing.assert_allclose(intervals(x, high).mean, intervals(MEAN, MEAN + STD).mean)
    plain = Gaussians(x.drop_vars(["star", "band"]), std=labelled(STD, **mixed))
    np.testing.assert_array_equal(plain.covariances.values, STD[ROWS][:, COLUMNS])


def test_dimensions_of_xarray_that_are_exchanged_are_refused():
    x, std = (xr.DataArray(values[:D], dims=("star", "band")) for values in (MEAN, STD))
    assert Gaussians(x, std=std).shape == (D, D)
    with pytest.raises(ValueError, match=r"std has the dimensions \('band', 'star'\), mean has"):
        Gaussians(x, std=std.T)
    assert Gaussians(x, std=std.T.transpose("star", "band")).shape == (D, D)


WRAPPERS = {
    "pandas": (
        lambda values: pd.DataFrame(values, index=IDS),
        lambda values: pd.Series(values, index=IDS),
        lambda column: column.iloc[ROWS],
    ),
    "xarray": (
        lambda values: labelled(values).drop_vars("band"),
        labelled,
        lambda column: column.isel(star=ROWS),
    ),
}


@pytest.fixture(params=WRAPPERS)
def wrappers(request):
    return WRAPPERS[request.param]


def test_errors_of_values_are_paired_with_them(wrappers):
    table, column, shuffled = wrappers
    y, y_std = MEAN @ [1.0, -2.0, 0.5], 5.0 * STD[:, 0]
    for fit in (
        lambda *data, **errors: UncertainSVR().fit(*data, **errors),
        lambda *data, **errors: UncertainSVR().partial_fit(*data, **errors),
    ):
        expected = fit(MEAN, y, y_std=y_std).coef_
        for data in ((table(MEAN), y), (MEAN, column(y)), (table(MEAN), column(y))):
            for std in (column(y_std), shuffled(column(y_std))):
                np.testing.assert_array_equal(fit(*data, y_std=std).coef_, expected)
        assert not np.array_equal(fit(MEAN, y, y_std=shuffled(column(y_std))).coef_, expected)


def test_labels_and_weights_in_another_order_are_refused_by_every_estimator(wrappers):
    table, column, shuffled = wrappers
    x, y, w = table(MEAN), column(Y), column(STD[:, 0])
    y_message = f"y has row 0 labelled 'star {ROWS[0]}', in X it is 'star 0'"
    for fit in (UncertainSVC().fit, UncertainSVC().fit(x, y).score, UncertainSVR().fit):
        with pytest.raises(ValueError, match=y_message):
            fit(x, shuffled(y))
        with pytest.raises(ValueError, match="sample_weight has row 0 labelled"):
            fit(x, y, sample_weight=shuffled(w))
        with pytest.raises(ValueError, match=r"sample_weight has row 0 labelled .*, in y it is"):
            fit(MEAN, y, sample_weight=shuffled(w))
        with pytest.raises(ValueError, match=r"y has row 0 labelled .*, in X_std it is"):
            fit(MEAN, shuffled(y), X_std=table(STD))
    with pytest.raises(ValueError, match="sample_weight has row 0 labelled"):
        EmpiricalBayes().fit(x, sample_weight=shuffled(w))
    with pytest.raises(ValueError, match="radius has row 0 labelled"):
        UncertainSVC(loss="worst_case").fit(x, y, X_std=table(STD), radius=shuffled(w))


def test_decision_values_are_paired_with_labels_and_their_errors(wrappers):
    _, column, shuffled = wrappers
    f, std, positive = MEAN[:, 0], STD[:, 0], Y == 1
    plain = PlattScaling().fit(f, positive, std=std)
    for given in (column(std), shuffled(column(std))):
        made = PlattScaling().fit(column(f), column(positive), std=given)
        assert (made.slope_, made.offset_) == (plain.slope_, plain.offset_)
        p = made.probability(column(f), given)
        np.testing.assert_array_equal(p, plain.probability(f, std))
    with pytest.raises(ValueError, match=r"positive has row 0 labelled .*, in decision it is"):
        PlattScaling().fit(column(f), shuffled(column(positive)))
    with pytest.raises(ValueError, match=r"sample_weight has row 0 labelled .*, in positive it is"):
        PlattScaling().fit(f, column(positive), shuffled(column(std)))
    with pytest.raises(ValueError, match=r"y_prob has row 0 labelled .*, in y_true it is"):
        ReliabilityDisplay.from_predictions(column(Y), shuffled(column(std)))


def test_one_error_for_each_row_is_paired_also_where_rows_are_as_many_as_features(wrappers):
    _, column, shuffled = wrappers
    means = RNG.normal(size=(N, N)) + Y[:, None]
    frame = xr.DataArray(means, dims=("star", "band"), coords={"star": IDS})
    if isinstance(column(Y), pd.Series):
        frame = pd.DataFrame(means, index=IDS)
    expected = IsotropicKernelSVC().fit(means, Y, X_std=STD[:, 0]).decision_function(means)
    for errors in ({"X_std": column(STD[:, 0])}, {"X_cov": column(STD[:, 0] ** 2)}):
        [(name, given)] = errors.items()
        clf = IsotropicKernelSVC().fit(frame, Y, **{name: shuffled(given)})
        np.testing.assert_allclose(clf.decision_function(means), expected, rtol=1e-9)


def test_kernels_take_labelled_arrays():
    x = Gaussians(labelled(MEAN), std=labelled(STD, rows=ROWS))
    np.testing.assert_array_equal(
        expected_kernel(x, gamma=0.5), expected_kernel(Gaussians(MEAN, std=STD), gamma=0.5)
    )


def test_correlations_are_brought_into_the_order_of_the_standard_deviations():
    correlation = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 1.0]])
    expected = Covariances.from_correlation(correlation, STD).values
    for labels in LABELS.values():
        frame = pd.DataFrame(correlation, index=labels, columns=labels)
        std = pd.DataFrame(STD, columns=labels)
        for given in (frame, frame.iloc[COLUMNS, COLUMNS], frame.iloc[COLUMNS]):
            made = Covariances.from_correlation(given, std)
            np.testing.assert_array_equal(made.values, expected)
    each = labelled(np.broadcast_to(correlation, (N, D, D)), rows=ROWS, columns=COLUMNS)
    made = Covariances.from_correlation(each, labelled(STD))
    np.testing.assert_array_equal(made.values, expected)


def test_bounds_of_features_are_known_by_their_names():
    x = pd.DataFrame(MEAN, columns=list("gri"))
    high = pd.Series([0.5, 1.0, 0.0], index=list("gri"))
    plain = SafeSVC(bounds=(0.0, high.to_numpy()), random_state=0).fit(MEAN, Y)
    clf = SafeSVC(bounds=(0.0, high.iloc[COLUMNS]), random_state=0).fit(x, Y)
    np.testing.assert_array_equal(clf.std_, plain.std_)
    assert clf.std_[2] == 0.0
