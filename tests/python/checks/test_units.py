"""Units of features: they are converted or refused, and never dropped."""

import copy
import pickle

import astropy.units as u
import numpy as np
import pint
import pytest
import quantities as pq
import xarray as xr
from astropy.nddata import NDData, StdDevUncertainty, VarianceUncertainty
from astropy.table import QTable, Table
from astropy.utils.masked import Masked
from sklearn.model_selection import cross_val_predict

from halosvm import (
    Covariances,
    GaussianMixtures,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    SafeSVC,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
    expected_kernel,
    median_gamma,
    save_model,
)
from halosvm.uncertainty import (
    asymmetric_errors,
    from_samples,
    image_transform,
    intervals,
    quantiles,
    standard_errors,
    welch,
)

registry = pint.UnitRegistry()
Q = registry.Quantity
RNG = np.random.default_rng(0)
N, D = 30, 2
Y = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + 2 * Y[:, None]
STD = RNG.uniform(0.1, 1.0, (N, D))
FULL = np.einsum("ni,nj->nij", STD, STD) + 0.1 * np.eye(D)
MAS = 3_600_000  # in a degree

# a quantity in a large unit, one in a small unit, and how many small ones are in a large one
PACKAGES = {
    "astropy": (lambda v: v * u.deg, lambda v: v * u.mas, lambda v: v * u.mas**2, MAS),
    "pint": (
        lambda v: Q(v, "metre"),
        lambda v: Q(v, "millimetre"),
        lambda v: Q(v, "millimetre ** 2"),
        1000,
    ),
    "quantities": (lambda v: v * pq.m, lambda v: v * pq.mm, lambda v: v * pq.mm**2, 1000),
    "xarray": (
        lambda v: xr.DataArray(Q(np.asarray(v), "metre")),
        lambda v: xr.DataArray(Q(np.asarray(v), "millimetre")),
        lambda v: xr.DataArray(Q(np.asarray(v), "millimetre ** 2")),
        1000,
    ),
}
MACHINES = [
    lambda: UncertainSVC(C=1.0),
    lambda: UncertainKernelSVC(C=1.0, gamma=0.3),
    lambda: IsotropicKernelSVC(C=1.0, gamma=0.3),
]


@pytest.fixture(params=sorted(PACKAGES))
def package(request):
    return PACKAGES[request.param]


def unit_of(quantity):
    inside = quantity.data if isinstance(quantity, xr.DataArray) else quantity
    return inside.units if hasattr(inside, "units") else u.deg


def refuse(message, function, *arguments, error=(ValueError, TypeError), **options):
    with pytest.raises(error, match=message):
        function(*arguments, **options)


# ---- Gaussians -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(N, D), (N,)])
def test_standard_deviations_and_variances_are_converted_to_the_unit_of_the_means(package, shape):
    large, small, square, ratio = package
    std = STD if len(shape) == 2 else STD[:, 0]
    expected = Gaussians(X, std=std).covariances.variances()
    for given in (
        {"std": small(std * ratio)},
        {"variance": square((std * ratio) ** 2)},
        {"cov": square((std * ratio) ** 2)},
        {"std": large(std)},
    ):
        made = Gaussians(large(X), **given)
        np.testing.assert_array_equal(made.mean, X)
        np.testing.assert_allclose(made.covariances.variances(), expected, rtol=1e-14)
        assert made.feature_units == (unit_of(large(X)),) * D


def test_full_covariances_are_converted(package):
    large, _, square, ratio = package
    made = Gaussians(large(X), cov=square(FULL * ratio**2))
    np.testing.assert_allclose(made.covariances.values, FULL, rtol=1e-14)


def test_units_of_one_side_alone_and_other_dimensions_are_refused(package):
    large, small, square, _ = package
    other = STD * u.s if large(1.0).__class__.__module__.startswith("astropy") else Q(STD, "second")
    refuse("std has no unit|std has no unit, mean has the unit", Gaussians, large(X), std=STD)
    refuse("std has the unit .*, mean has no unit; give both", Gaussians, X, std=small(STD))
    refuse("cannot be converted to", Gaussians, large(X), std=other)
    refuse("cannot be converted to", Gaussians, large(X), std=square(STD))
    refuse("cannot be converted to", Gaussians, large(X), variance=small(STD))
    refuse("cov is Covariances", Gaussians, large(X), cov=Covariances.from_std(STD))


def test_quantities_of_two_packages_are_not_mixed():
    refuse("cannot be converted to", Gaussians, X * u.m, std=Q(STD, "metre"))
    refuse("cannot be converted to", Gaussians, Q(X, "metre"), std=STD * u.m)


def test_constructors_of_covariances_refuse_units(package):
    _, small, square, _ = package
    for make, array in (
        (Covariances.from_std, small(STD)),
        (Covariances.from_variance, square(STD)),
        (Covariances.from_inverse_variance, square(STD)),
        (Covariances.diagonal, square(STD)),
        (Covariances.full, square(FULL)),
        (Covariances.low_rank, small(STD[:, :, None])),
        (Covariances.low_rank, list(small(STD[:, :, None]))),
        (lambda v: Covariances.isotropic(v, 2), square(STD[:, 0])),
        (lambda v: Covariances.from_correlation(np.eye(D), v), small(STD)),
        (lambda v: Covariances.from_samples([v]), small(STD)),
    ):
        refuse("has the unit .*; pass plain numbers", make, array, error=TypeError)


def test_dimensionless_numbers_have_no_unit_but_percent_has_one():
    plain = Gaussians(X, std=STD)
    for made in (
        Gaussians(X * u.dimensionless_unscaled, std=STD),
        Gaussians(X, std=Q(STD, "dimensionless")),
        Gaussians(X * u.m / u.m, std=Q(STD, "")),
    ):
        assert made.feature_units is None
        np.testing.assert_array_equal(made.covariances.values, plain.covariances.values)
    for percent in (X * u.percent, Q(X, "percent")):
        refuse("std has no unit, mean has the unit", Gaussians, percent, std=STD)
    made = Gaussians(X * u.percent, std=STD * u.percent)
    np.testing.assert_allclose(made.covariances.values, STD, rtol=1e-14)


def test_units_with_an_offset_are_converted_for_values_and_refused_for_errors():
    celsius = Q(X, "degC")
    refuse("differ by more than a factor|cannot be converted", Gaussians, celsius, std=Q(STD, "K"))
    refuse("differ|cannot", Gaussians, celsius, std=Q(STD, "delta_degC"))
    clf = UncertainSVC().fit(Q(X + 273.15, "kelvin"), Y)
    values = clf.decision_function(Q(X + 273.15, "kelvin"))
    np.testing.assert_allclose(clf.decision_function(celsius), values, rtol=1e-9, atol=1e-9)


def test_errors_of_magnitudes_are_plain_magnitudes():
    for std in (STD * u.mag, 1000 * STD * u.mmag, STD * u.ABmag):
        made = Gaussians(X * u.ABmag, std=std)
        np.testing.assert_allclose(made.covariances.values, STD, rtol=1e-14)


def test_each_column_of_a_table_has_its_unit():
    table = QTable({"ra": X[:, 0] * u.deg, "flux": X[:, 1] * u.Jy})
    errors = QTable({"ra_err": STD[:, 0] * MAS * u.mas, "flux_err": STD[:, 1] * 1000 * u.mJy})
    swapped = errors[["flux_err", "ra_err"]]
    for std in (errors, swapped):
        made = Gaussians(table, std=std)
        assert made.feature_units == (u.deg, u.Jy)
        assert made.feature_names.tolist() == ["ra", "flux"]
        np.testing.assert_allclose(made.covariances.values, STD, rtol=1e-14)
    half = QTable({"ra": X[:, 0] * u.deg, "flux": X[:, 1]})
    refuse("std has the units mas, mJy, mean has the units deg, none", Gaussians, half, std=errors)
    refuse("std has one number for each row", Gaussians, table, std=STD[:, 0] * u.deg)
    columns = Table({"ra": X[:, 0], "flux": X[:, 1]}, units={"ra": "deg", "flux": "Jy"})
    assert Gaussians(columns, std=errors).feature_units == (u.deg, u.Jy)


def test_indexing_copying_and_joining_keep_units(package):
    large, small, _, ratio = package
    made = Gaussians(large(X), std=large(STD))
    for copied in (made[3:], made[[2, 1]], copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert [str(unit) for unit in copied.feature_units] == [
            str(unit) for unit in made.feature_units
        ]
    joined = Gaussians.concatenate([made, Gaussians(small(X * ratio), std=small(STD * ratio))])
    assert joined.feature_units == made.feature_units
    np.testing.assert_allclose(joined.mean, np.concatenate([X, X]), rtol=1e-14)
    np.testing.assert_allclose(joined.covariances.values, np.concatenate([STD, STD]), rtol=1e-14)
    refuse(r"parts\[1\] has no unit", Gaussians.concatenate, [made, Gaussians(X)])
    refuse(r"parts\[1\] has the unit", Gaussians.concatenate, [Gaussians(X), made])


@pytest.mark.parametrize(
    "kind", ["zero", "isotropic", "diagonal", "full", "low_rank", "ragged", "ragged_diagonal"]
)
def test_every_kind_of_covariance_is_scaled_like_its_matrix(make_gaussians, kind):
    batch = make_gaussians(kind, n=5, d=3)[0].covariances
    for factors in (np.array([2.0, 0.5, 3.0]), np.full(3, 7.0)):
        expected = batch.to_full() * np.multiply.outer(factors, factors)
        np.testing.assert_allclose(batch.scaled(factors).to_full(), expected, rtol=1e-14)
    std = Covariances.from_std(np.array([1.0, 2.0])[:, None] * np.ones(3)).scaled(factors)
    np.testing.assert_allclose(std[1], 4.0 * 49.0 * np.eye(3), rtol=1e-14)


# ---- estimators ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MACHINES)
def test_a_fit_to_quantities_is_that_to_numbers_and_predicts_in_any_unit(package, make):
    large, small, square, ratio = package
    isotropic = isinstance(make(), IsotropicKernelSVC)
    errors = {"X_std": STD[:, 0]} if isotropic else {"X_std": STD}
    given = errors if isotropic else {"X_std": small(STD * ratio)}
    plain = make().fit(X, Y, **errors)
    clf = make().fit(large(X), Y, **given)
    assert len(clf.feature_units_in_) == D
    values, std = plain.decision_function(X, X_std=0), plain.decision_std(X, **errors)
    close = {"rtol": 1e-6, "atol": 1e-7}
    np.testing.assert_allclose(clf.decision_function(large(X), X_std=0), values, **close)
    np.testing.assert_allclose(clf.decision_function(small(X * ratio), X_std=0), values, **close)
    np.testing.assert_allclose(clf.decision_std(small(X * ratio), **given), std, **close)
    assert clf.score(small(X * ratio), Y, X_std=0) == plain.score(X, Y, X_std=0)
    for function in (clf.predict, clf.decision_function, clf.decision_std):
        refuse("X has no unit, the training data has the unit", function, X)
        refuse("cannot be converted", function, square(X))
    refuse("X has the unit .*, the training data has no unit", plain.predict, large(X))
    clf.fit(X, Y, **errors)
    assert not hasattr(clf, "feature_units_in_")
    np.testing.assert_array_equal(clf.decision_function(X, X_std=0), values)


def test_sizes_of_errors_are_learnt_in_the_units_of_the_features(package):
    large, small, _, ratio = package
    plain = SafeSVC(validation=(X, Y)).fit(X, Y)
    clf = SafeSVC(validation=(small(X * ratio), Y)).fit(large(X), Y)
    np.testing.assert_allclose(clf.std_, plain.std_, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(clf.predict(small(X * ratio)), plain.predict(X))
    refuse("validation: X has no unit", SafeSVC(validation=(X, Y)).fit, large(X), Y)
    refuse(r"bounds\[1\] has the unit", SafeSVC(bounds=(0.0, large(1.0))).fit, large(X), Y)


def test_gaussians_with_units_are_converted_to_those_of_the_fit(package):
    large, small, _, ratio = package
    clf = UncertainSVC().fit(Gaussians(large(X), std=large(STD)), Y)
    plain = UncertainSVC().fit(Gaussians(X, std=STD), Y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    other = Gaussians(small(X * ratio), std=small(STD * ratio))
    np.testing.assert_allclose(clf.side_probability(other), plain.side_probability(X, X_std=STD))


def test_errors_without_the_unit_of_x_are_refused_by_estimators(package):
    large, small, _, _ = package
    clf = UncertainSVC()
    refuse("X_std has no unit, X has the unit", clf.fit, large(X), Y, X_std=STD)
    refuse("X_std has the unit .*, X has no unit", clf.fit, X, Y, X_std=small(STD))
    refuse("X_cov has the unit .*, X has no unit", clf.fit, X, Y, X_cov=small(STD))
    sigma, isotropic = small(STD[:, 0]), IsotropicKernelSVC()
    refuse("X_std has the unit", isotropic.fit, X, Y, X_std=sigma)
    refuse("the feature space has no unit", isotropic.fit, Gaussians(large(X), std=sigma), Y)


def test_labels_weights_and_parameters_with_units_are_refused(package):
    large, *_ = package
    refuse("y has the unit", UncertainSVC().fit, X, large(Y * 1.0))
    refuse("sample_weight has the unit", UncertainSVC().fit, X, Y, sample_weight=large(STD[:, 0]))
    rows = [large(X[0]), large(X[1])]
    refuse("^Y has the unit .* inside a list", expected_kernel, X, rows, error=TypeError)
    refuse("gamma has the unit", expected_kernel, X, gamma=large(np.ones(2)))
    refuse("decision has the unit", PlattScaling().fit, large(X[:, 0]), Y == 1)
    scaling = PlattScaling().fit(X[:, 0], Y == 1)
    refuse("decision has the unit", scaling.probability, large(X[:, 0]))
    refuse("std has the unit", scaling.probability, X[:, 0], large(X[:, 0]))


def test_units_go_through_cross_validation_and_not_into_model_files(tmp_path):
    predicted = cross_val_predict(UncertainSVC(), X * u.deg, Y, cv=3)
    np.testing.assert_array_equal(predicted, cross_val_predict(UncertainSVC(), X, Y, cv=3))
    clf = UncertainSVC().fit(X * u.deg, Y)
    refuse("the unit deg, which a model file cannot hold", save_model, clf, tmp_path / "model")


def test_lists_of_quantities_are_refused():
    for rows in ([[1.0, 2.0] * u.deg, [3.0, 4.0] * u.arcmin], [[1 * u.deg], [2 * u.deg]]):
        refuse("X has the unit deg inside a list", UncertainSVC().fit, rows, [0, 1])
    with pytest.raises(TypeError, match=r"X: row 0, column 0 is .*make one array of one unit"):
        UncertainSVC().fit(np.array([[1 * u.percent], [2.0]], dtype=object), [0, 1])


# ---- kernels ---------------------------------------------------------------------------------


def test_expected_kernels_between_two_units(package):
    large, small, _, ratio = package
    x, z = Gaussians(large(X), std=large(STD)), Gaussians(small(X * ratio), std=small(STD * ratio))
    plain = Gaussians(X, std=STD)
    expected = expected_kernel(plain, plain, gamma=0.5)
    np.testing.assert_allclose(expected_kernel(x, z, gamma=0.5), expected, rtol=1e-12)
    np.testing.assert_allclose(expected_kernel(x, small(X * ratio), gamma=0.5).shape, (N, N))
    mixtures = GaussianMixtures(z, np.full(N, 0.5), 2)
    expected = expected_kernel(plain, GaussianMixtures(plain, np.full(N, 0.5), 2), gamma=0.5)
    np.testing.assert_allclose(expected_kernel(x, mixtures, gamma=0.5), expected, rtol=1e-12)
    refuse("Y has no unit, X has the unit", expected_kernel, x, X)
    refuse("Y has the unit .*, X has no unit", expected_kernel, X, x)
    np.testing.assert_allclose(median_gamma(x), median_gamma(plain))


# ---- uncertainty -----------------------------------------------------------------------------


def test_standard_errors_converts(package):
    large, small, _, ratio = package
    made = standard_errors(large(X), small(STD * ratio), n_observations=4)
    np.testing.assert_allclose(made.covariances.variances(), 4 * STD**2, rtol=1e-14)
    assert len(made.feature_units) == D
    refuse("errors has no unit, values has the unit", standard_errors, large(X), STD)
    refuse("errors has the unit", standard_errors, X, small(STD))
    refuse("n_observations has the unit", standard_errors, X, STD, n_observations=small(STD))


def test_asymmetric_errors_converts_each_side(package):
    large, small, _, ratio = package
    lower, upper = STD.copy(), 2 * STD
    lower[0, 0] = np.nan
    plain = asymmetric_errors(X, lower, upper, limits=0.5)
    made = asymmetric_errors(large(X), small(lower * ratio), large(upper), limits=large(0.5))
    np.testing.assert_allclose(made.mean, plain.mean, rtol=1e-14)
    np.testing.assert_allclose(
        made.covariances.variances(), plain.covariances.variances(), rtol=1e-13
    )
    for arguments in ((X, small(STD), STD), (X, STD, small(STD)), (large(X), small(STD), STD)):
        refuse("(lower|upper) has (the unit|no unit)", asymmetric_errors, *arguments)
    with_unit = (large(X), large(lower), large(upper))
    refuse("limits has no unit", asymmetric_errors, *with_unit, limits=0.5)


def test_intervals_convert_their_upper_limits(package):
    large, small, _, ratio = package
    plain, made = intervals(X, X + STD), intervals(large(X), small((X + STD) * ratio))
    np.testing.assert_allclose(made.mean, plain.mean, rtol=1e-13)
    np.testing.assert_allclose(
        made.covariances.variances(), plain.covariances.variances(), rtol=1e-11
    )
    assert made.feature_units == intervals(large(X), large(X)).feature_units
    refuse("high has no unit, low has the unit", intervals, large(X), X + STD)
    refuse("high has the unit", intervals, X, large(X + STD))


def test_samples_and_quantiles_keep_their_unit_and_bags_are_converted(package):
    large, small, _, ratio = package
    bags = [X[:10], X[10:]]
    plain = from_samples(bags, of="mean")
    for samples in (
        [large(bags[0]), small(bags[1] * ratio)],
        [large(bags[0]), large(bags[1])],
    ):
        made = from_samples(samples, of="mean")
        assert len(made.feature_units) == D
        np.testing.assert_allclose(made.mean, plain.mean, rtol=1e-13)
        np.testing.assert_allclose(
            made.covariances.values, plain.covariances.values, rtol=1e-11, atol=1e-14
        )
    groups = np.repeat([0, 1], [10, 20])
    assert from_samples(large(X), groups, of="mean").feature_units == made.feature_units
    stacked = large(np.stack([X, X + 1, X + 3], axis=2))
    assert quantiles(stacked, [0.2, 0.5, 0.8]).feature_units == made.feature_units
    refuse(r"samples\[1\] has no unit", from_samples, [large(X), X], of="mean")
    refuse(r"samples\[1\] has the unit", from_samples, [X, large(X)], of="mean")


def test_images_and_signals_with_units_are_refused(package):
    large, *_ = package
    refuse("images has the unit", image_transform, large(np.ones((1, 3, 3))), std=[1, 1])
    refuse("std has the unit", image_transform, np.ones((1, 3, 3)), std=large(np.ones(2)))
    signals = large(np.ones((1, 2, 600)))
    refuse(r"signals\[0\] has the unit", welch, signals, 1.0, [(0, 1)], of="mean")


@pytest.mark.parametrize(
    ("make", "array"),
    [(StdDevUncertainty, STD * 100), (VarianceUncertainty, (STD * 100) ** 2)],
)
def test_uncertainties_of_astropy_are_converted(make, array):
    unit = u.cm if make is StdDevUncertainty else u.cm**2
    for given in (
        (NDData(X, unit="m", uncertainty=make(array, unit=unit)),),
        (X * u.m, make(array, unit=unit)),
    ):
        made = standard_errors(*given)
        assert made.feature_units == (u.m, u.m)
        np.testing.assert_allclose(made.covariances.variances(), STD**2, rtol=1e-13)


def test_masked_quantities_without_a_masked_entry_keep_their_unit():
    masked = Masked(X * u.deg, mask=np.zeros(X.shape, bool))
    assert Gaussians(masked, std=STD * u.deg).feature_units == (u.deg, u.deg)


def test_factors_are_exact_inside_labelled_arrays():
    ids = {"star": list(range(N))}
    x = xr.DataArray(Q(X, "metre"), dims=("star", "axis"), coords=ids)
    std = xr.DataArray(Q(STD, "millimetre"), dims=("star", "axis"), coords=ids)
    for given in (std, std.isel(star=slice(None, None, -1))):
        made = Gaussians(x, std=given)
        np.testing.assert_allclose(made.covariances.variances(), STD**2 / 1e6, rtol=1e-14)
        coef = UncertainSVC().fit(x, Y, X_std=given).coef_
        np.testing.assert_allclose(coef, UncertainSVC().fit(X, Y, X_std=STD / 1e3).coef_)
    variance = xr.DataArray(Q(STD, "millimetre ** 2"), dims=("star", "axis"))
    made = Gaussians(x, variance=variance)
    np.testing.assert_allclose(made.covariances.variances(), STD / 1e6, rtol=1e-14)
    for fit in (
        lambda: UncertainSVR().fit(X, x[:, 0]),
        lambda: UncertainSVR().fit(X, X[:, 0], y_std=std[:, 0]),
        lambda: UncertainSVR().fit(X, X[:, 0], y_std=Q(3.0, "millimetre")),
        lambda: UncertainSVC().fit(X, Y, sample_weight=std[:, 0]),
    ):
        refuse("has the unit", fit, error=TypeError)
    expected = UncertainSVC().fit(X, Y).coef_
    for same in (Q(X, "dimensionless"), xr.DataArray(Q(X, "dimensionless"))):
        np.testing.assert_array_equal(UncertainSVC().fit(same, Y).coef_, expected)


def test_units_in_attributes_of_labelled_arrays_are_compared():
    x, std = xr.DataArray(X, attrs={"units": "m"}), xr.DataArray(STD, attrs={"units": "mm"})
    message = "has the attribute units='mm', .* has 'm'; attributes are not converted"
    refuse(f"std {message}", Gaussians, x, std=std)
    refuse(f"X_std {message}", UncertainSVC().fit, x, Y, X_std=std)
    refuse(f"high {message}", intervals, x, (std + X.max()).assign_attrs(units="mm"))
    for plain in (xr.DataArray(STD), STD, std.assign_attrs(units="m")):
        np.testing.assert_array_equal(Gaussians(x, std=plain).covariances.values, STD)


def test_quantities_of_unyt_are_converted_as_those_of_other_packages():
    unyt = pytest.importorskip("unyt")
    large, small = (lambda v, unit=unit: unyt.unyt_array(v, unit) for unit in ("m", "mm"))
    made = Gaussians(large(X), std=small(1000 * STD))
    np.testing.assert_allclose(made.covariances.values, STD, rtol=1e-14)
    clf = UncertainSVC().fit(large(X), Y, X_std=small(1000 * STD))
    values = clf.decision_function(small(1000 * X))
    np.testing.assert_allclose(values, clf.decision_function(large(X)), rtol=1e-9, atol=1e-12)
    refuse("cannot be converted to", Gaussians, large(X), std=unyt.unyt_array(STD, "s"))
    refuse("std has no unit, mean has the unit m", Gaussians, large(X), std=STD)
    kelvin = UncertainSVC().fit(unyt.unyt_array(X + 273.15, "K"), Y)
    values = kelvin.decision_function(unyt.unyt_array(X + 273.15, "K"))
    found = kelvin.decision_function(unyt.unyt_array(X, "degC"))
    np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-9)
