"""What is no plain array of numbers: objects, tables, and what scikit-learn was told to trust."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from astropy.nddata import NDDataRef, StdDevUncertainty
from astropy.table import Table
from cases import each
from sklearn import config_context
from uncertainties import unumpy

from halosvm import (
    Covariances,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    TotalSVC,
    UncertainKernelSVC,
    UncertainSVC,
)
from halosvm.gaussians.gaussians import as_gaussians
from halosvm.uncertainty import (
    asymmetric_errors,
    from_samples,
    image_transform,
    intervals,
    quantiles,
    standard_errors,
    welch,
)

RNG = np.random.default_rng(4)
N, D = 20, 2
Y = np.arange(N) % 2
X = np.round(RNG.normal(size=(N, D)) + Y[:, None], 3)
STD = np.round(RNG.uniform(0.1, 1.0, (N, D)), 3)
MACHINES = [UncertainSVC, UncertainKernelSVC, IsotropicKernelSVC, TotalSVC]


def decimals(array):
    objects = np.empty(array.shape, object)
    objects.flat = [Decimal(repr(value)) for value in array.ravel().tolist()]
    return objects


OBJECTS = {
    "objects": lambda a: a.astype(object),
    "Decimal": decimals,
    "list of Decimal": lambda a: decimals(a).tolist(),
    "Fraction": lambda a: np.vectorize(Fraction, otypes=[object])(decimals(a)),
    "frame of objects": lambda a: pd.DataFrame(a).astype(object),
    "frame of Decimal": lambda a: pd.DataFrame(decimals(a)),
}


@pytest.mark.parametrize("wrap", OBJECTS.values(), ids=OBJECTS)
def test_objects_are_read_as_numbers_in_every_argument(wrap):
    plain = UncertainSVC().fit(X, Y, X_std=STD, sample_weight=STD[:, 0])
    weights = wrap(STD)[0] if isinstance(wrap(STD), pd.DataFrame) else [r[0] for r in wrap(STD)]
    clf = UncertainSVC().fit(wrap(X), Y, X_std=wrap(STD), sample_weight=weights)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    np.testing.assert_array_equal(clf.decision_function(wrap(X)), plain.decision_function(X))
    np.testing.assert_array_equal(
        clf.decision_std(wrap(X), X_std=wrap(STD)), plain.decision_std(X, X_std=STD)
    )
    made = Gaussians(wrap(X), std=wrap(STD))
    np.testing.assert_array_equal(made.covariances.values, STD)
    np.testing.assert_array_equal(Covariances.diagonal(wrap(STD)).values, STD)
    np.testing.assert_array_equal(standard_errors(wrap(X), wrap(STD)).mean, X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is None, which is no number"),
        ("high", "is 'high', which is text"),
        ("1.5", "is '1.5', which is text"),
        ({"a": 1}, r"is \{'a': 1\}, which is no number: float\(\) argument must be"),
        (1j, "is 1j, which is no number"),
    ],
)
def test_the_first_object_that_is_no_number_is_named(value, message):
    objects = X.astype(object)
    objects[7, 1] = value
    objects[9, 0] = None
    for array in (objects, pd.DataFrame(objects)):
        for argument, fit in (
            ("X", lambda a: UncertainSVC().fit(a, Y)),
            ("X", UncertainSVC().fit(X, Y).predict),
            ("X_std", lambda a: UncertainSVC().fit(X, Y, X_std=a)),
            ("mean", Gaussians),
        ):
            with pytest.raises(TypeError, match=f"^{argument}: row 7, column 1 {message}"):
                fit(array)


def structured(array):
    return np.array([tuple(row) for row in array], dtype=[("a", "f8"), ("b", "f8")])


@pytest.mark.parametrize("make", MACHINES)
@pytest.mark.parametrize("table", [lambda a: Table(a, names=["a", "b"]), structured])
def test_tables_are_data_frames(make, table):
    frame = pd.DataFrame(X, columns=["a", "b"])
    errors = {"X_std": STD[:, 0]} if make is IsotropicKernelSVC else {"X_std": table(STD)}
    expected = {"X_std": STD[:, 0]} if make is IsotropicKernelSVC else {"X_std": STD}
    plain, clf = make().fit(frame, Y, **expected), make().fit(table(X), Y, **errors)
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    values = plain.decision_function(frame, X_std=0)
    np.testing.assert_array_equal(clf.decision_function(table(X), X_std=0), values)
    np.testing.assert_array_equal(clf.decision_function(frame, X_std=0), values)
    np.testing.assert_array_equal(plain.decision_function(table(X), X_std=0), values)
    renamed = Table(X, names=["a", "c"])
    with pytest.raises(ValueError, match="X has feature 1 named 'c', in fit it was 'b'"):
        clf.predict(renamed)


def test_columns_of_a_table_that_are_no_numbers_are_named():
    table = Table({"a": X[:, 0], "name": ["x"] * N})
    with pytest.raises(TypeError, match=r"X\['name'\] has dtype <U1; real numbers are needed"):
        UncertainSVC().fit(table, Y)


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
def test_dates_and_durations_are_refused_everywhere(dtype):
    dates = X.astype(int).astype(dtype)
    for argument, fit in (
        ("X", lambda a: UncertainSVC().fit(a, Y)),
        ("X_std", lambda a: UncertainSVC().fit(X, Y, X_std=a)),
        ("decision", lambda a: PlattScaling().fit(a[:, 0], Y == 1)),
    ):
        with pytest.raises(TypeError, match=f"^{argument} has dtype {dtype[:10]}"):
            fit(dates)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", MACHINES)
def test_messages_are_true_when_data_are_assumed_finite(make, value):
    clf = make().fit(X, Y)
    bad = X.copy()
    bad[7, 1] = value
    with config_context(assume_finite=True):
        for function in (clf.predict, clf.decision_function, lambda a: make().fit(a, Y)):
            with pytest.raises(
                ValueError, match=f"^X:? row 7, column 1 is {value}; it must be fin"
            ):
                function(bad)
    linear = UncertainSVC(C=1e-3).fit(X, Y)
    linear.coef_ = linear.coef_ * 1e200
    with pytest.raises(ValueError, match="row 0 is so large that its decision value overflows"):
        linear.predict(np.full((1, D), 1e140))


# -- values that no computation can take ---------------------------------------------------------
READERS = {
    "means": (as_gaussians, "X row 1, column 1"),
    "standard errors": (lambda a: standard_errors(a, np.ones_like(a)), "values row 1, column 1"),
    "asymmetric errors": (
        lambda a: asymmetric_errors(a, np.ones_like(a), np.ones_like(a)),
        "values row 1, column 1",
    ),
    "intervals": (lambda a: intervals(a, a), "low row 1, column 1"),
    "intervals from above": (lambda a: intervals(np.zeros_like(a), a), "high row 1, column 1"),
    "NDData": (
        lambda a: standard_errors(NDDataRef(a, uncertainty=StdDevUncertainty(np.ones_like(a)))),
        "values row 1, column 1",
    ),
    "uncertainties": (
        lambda a: standard_errors(unumpy.uarray(a, np.ones_like(a))),
        "values row 1, column 1",
    ),
    "bags": (lambda a: Covariances.from_samples([a]), r"samples\[0\] row 1, column 1"),
    "observations": (lambda a: from_samples(a, [0, 0, 0], of="mean"), "samples row 1, column 1"),
    "factors": (lambda a: Covariances.low_rank([a]), r"factors\[0\] row 1, column 1"),
    "signals": (
        lambda a: welch([a], 1.0, [(0.4, 0.6)], of="observations", nperseg=2, noverlap=1),
        r"signals\[0\] row 1, column 1",
    ),
    "images": (
        lambda a: image_transform(a[np.newaxis], std=[0.5, 0.5]),
        r"images: row 0, entry \(1, 1\)",
    ),
    "quantiles": (
        lambda a: quantiles(a[:, np.newaxis], (0.2, 0.4, 0.6)),
        r"values: row 1, entry \(0, 1\)",
    ),
}


@each("reader", READERS)
@each(
    "value, verdict",
    [
        (np.nan, "is nan; it must be finite"),
        (-np.inf, "is -inf; it must be finite"),
        (1e200, r"is 1e\+200; (values beyond 1e\+150 overflow|.*at most 1e\+150 in size)"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_place_and_a_true_reason(reader, value, verdict):
    read, place = READERS[reader]
    array = np.arange(9.0).reshape(3, 3)
    read(array)
    array[1, 1] = value
    with pytest.raises(ValueError, match=rf"^{place} {verdict}"):
        read(array)
