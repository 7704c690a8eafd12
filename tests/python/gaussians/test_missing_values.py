"""Gaussians with missing values: EmpiricalBayes takes them, and nothing else computes with them."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from halosvm import (
    Covariances,
    EmpiricalBayes,
    GaussianMixtures,
    Gaussians,
    IsotropicKernelSVC,
    ObjectivePlot,
    Propagate,
    ReliabilityDisplay,
    SafeSVC,
    SupportPlot,
    TotalSVC,
    UncertainCalibratedClassifier,
    UncertainDecisionBoundaryDisplay,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
    calibrate_scale,
    chunks,
    expected_kernel,
    median_gamma,
)

RNG = np.random.default_rng(0)
N, D = 30, 3
Y = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + Y[:, None]
STD = RNG.uniform(0.1, 1.0, (N, D))
PLACE = (4, 1)
HOLED = X.copy()
HOLED[PLACE] = np.nan
MISSING = Gaussians(HOLED, std=STD)
WHOLE = Gaussians(X, std=STD)
ONE_ERROR = {True: Gaussians(HOLED, std=STD[:, 0]), False: Gaussians(X, std=STD[:, 0])}
CERTAIN = Gaussians(HOLED)

CLASSIFIERS = [
    UncertainSVC(),
    UncertainSVC(subspace=0.9),
    UncertainKernelSVC(),
    TotalSVC(),
    TotalSVC(kernel="rbf"),
    UncertainCalibratedClassifier(),
]
MAPS = [
    UncertainStandardScaler(),
    Propagate(StandardScaler()),
    *(Propagate(FunctionTransformer(np.exp), m) for m in ("linear", "unscented", "monte_carlo")),
    *(UncertainFourierFeatures(n_components=6, output=o) for o in ("gaussian", "mean")),
    *(UncertainNystroem(n_components=4, output=o) for o in ("gaussian", "mean")),
]
METHODS = ["predict", "decision_function", "decision_std", "side_probability", "predict_proba"]


def refuse(function, *arguments, argument="X", **options):
    with pytest.raises(ValueError, match=rf"{argument}: row 4, column 1 is missing.*EmpiricalBay"):
        function(*arguments, **options)


@pytest.mark.parametrize("machine", CLASSIFIERS, ids=lambda machine: repr(machine)[:40])
def test_no_classifier_computes_with_missing_values(machine):
    machine.fit(WHOLE, Y)
    for name in METHODS:
        wrapped = isinstance(machine, UncertainCalibratedClassifier)
        if hasattr(machine, name) and not (wrapped and name == "decision_function"):
            refuse(getattr(machine, name), MISSING)
    refuse(machine.score, MISSING, Y)
    refuse(machine.fit, MISSING, Y)


def test_no_other_machine_computes_with_missing_values():
    values = UncertainSVR().fit(WHOLE, X[:, 0])
    for function in (values.fit, values.partial_fit, values.score):
        refuse(function, MISSING, X[:, 0])
    refuse(values.predict, MISSING)
    refuse(values.predict, MISSING, return_std=True)
    isotropic = IsotropicKernelSVC().fit(ONE_ERROR[False], Y)
    for function in (isotropic.predict, isotropic.decision_function, isotropic.decision_std):
        refuse(function, ONE_ERROR[True])
    refuse(isotropic.fit, ONE_ERROR[True], Y)
    safe = SafeSVC(bounds=(0.0, 0.5), random_state=0).fit(X, Y)
    refuse(safe.fit, CERTAIN, Y)
    refuse(safe.predict, CERTAIN)
    refuse(SafeSVC(bounds=(0.0, 0.5), validation=(CERTAIN, Y)).fit, X, Y)
    refuse(UncertainSVC().partial_fit, MISSING, Y, classes=[0, 1])
    refuse(UncertainSVC().partial_fit(WHOLE, Y, classes=[0, 1]).partial_fit, MISSING, Y)
    refuse(UncertainSVC().fit, chunks(lambda: iter([(MISSING, Y)])))
    refuse(UncertainKernelSVC(kernel=lambda a, b: a.mean @ b.mean.T).fit, MISSING, Y)
    refuse(calibrate_scale, MISSING, Y)
    refuse(calibrate_scale, WHOLE, Y, validation=(CERTAIN, Y))


@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: repr(map_)[:50])
def test_no_map_but_empirical_bayes_computes_with_missing_values(map_):
    map_.fit(WHOLE)
    refuse(map_.transform, MISSING)
    if hasattr(map_, "inverse_transform"):
        refuse(map_.inverse_transform, MISSING)
    refuse(map_.fit, MISSING)


def test_no_function_computes_with_missing_values():
    refuse(expected_kernel, MISSING)
    refuse(expected_kernel, WHOLE, MISSING, argument="Y")
    refuse(median_gamma, MISSING)
    refuse(GaussianMixtures, MISSING, np.ones(N), 1, argument="components")
    refuse(GaussianMixtures, HOLED, np.ones(N), 1, argument="components")
    refuse(MISSING.truncate, 0.9)
    refuse(MISSING.truncate, 0.9, mean="project")
    MISSING.core_view(missing=True)
    refuse(MISSING.core_view)


def test_no_picture_is_drawn_of_missing_values():
    pytest.importorskip("matplotlib").use("Agg")
    machine, wrapped = UncertainSVC().fit(WHOLE, Y), UncertainCalibratedClassifier().fit(WHOLE, Y)
    refuse(UncertainDecisionBoundaryDisplay.from_estimator, machine, MISSING)
    for display in (SupportPlot, ObjectivePlot):
        refuse(display.from_estimator, machine, MISSING, Y)
    refuse(ReliabilityDisplay.from_estimator, wrapped, MISSING, Y)


# ---- what holds them -------------------------------------------------------------------------


@pytest.mark.parametrize("keyword", ["std", "variance", "cov"])
@pytest.mark.parametrize("shape", ["rows", "table", "matrices"])
def test_a_value_is_missing_by_its_mean_or_by_an_infinite_error(keyword, shape):
    if shape == "matrices" and keyword != "cov":
        pytest.skip("matrices are covariances")
    errors = {
        "rows": STD[:, 0],
        "table": STD,
        "matrices": np.einsum("nj,nk->njk", STD, STD) + np.eye(D),
    }[shape]
    infinite, hidden = errors.copy(), errors.copy()
    rows = shape == "rows"
    at = PLACE[:1] if rows else (PLACE + PLACE[1:] if shape == "matrices" else PLACE)
    infinite[at] = np.inf
    hidden[at] = np.nan
    values = X.copy()
    values[4, slice(None) if rows else 1] = np.nan
    by_error = Gaussians(X, **{keyword: infinite})
    by_mean = Gaussians(values, **{keyword: hidden})
    np.testing.assert_array_equal(by_error.mean, values)
    np.testing.assert_array_equal(by_mean.mean, values)
    for examples in (by_error, by_mean):
        assert np.isfinite(examples.covariances.to_full()).all()
    # What is there is as it was.
    there = np.delete(np.arange(N), 4)
    np.testing.assert_array_equal(
        by_error.covariances.to_full()[there],
        Gaussians(X, **{keyword: errors}).covariances.to_full()[there],
    )


def test_errors_that_are_no_numbers_belong_to_missing_values_alone():
    hidden = STD.copy()
    hidden[PLACE] = np.nan
    with pytest.raises(ValueError, match="std: row 4, column 1 is nan, but mean has a value there"):
        Gaussians(X, std=hidden)
    for bad in (-np.inf, -1.0):
        hidden[PLACE] = bad
        with pytest.raises(ValueError, match="std row 4, column 1 is -"):
            Gaussians(HOLED, std=np.where(np.isnan(HOLED), bad, STD))


@pytest.mark.parametrize("value", [np.inf, 1e200])
def test_other_means_are_in_range_beside_missing_ones(value):
    bad = HOLED.copy()
    bad[7, 2] = value
    with pytest.raises(ValueError, match="mean row 7, column 2 is"):
        Gaussians(bad, std=STD)
    with pytest.raises(ValueError, match=r"row 7, column 2 is|Input X contains infinity|row 7"):
        EmpiricalBayes().fit(bad, X_std=STD)


def test_sparse_means_have_no_missing_values():
    with pytest.raises(ValueError, match="mean row 4, column 1 is nan"):
        Gaussians(sparse.csr_array(HOLED), std=STD)


def test_missing_values_go_with_rows_columns_copies_units_and_joints():
    holes = np.isnan(HOLED)

    def same(examples, expected):
        np.testing.assert_array_equal(np.isnan(examples.mean), expected)

    same(MISSING[2:9], holes[2:9])
    same(MISSING[np.array([4, 0, 4])], holes[[4, 0, 4]])
    same(MISSING[:, [1, 2]], holes[:, 1:])
    same(pickle.loads(pickle.dumps(MISSING)), holes)
    same(Gaussians.concatenate([MISSING, WHOLE]), np.concatenate([holes, np.zeros_like(holes)]))
    same(np.hstack([MISSING[:, :2], MISSING[:, 2:]]), holes)
    mean, covariance = MISSING[4]
    np.testing.assert_array_equal(np.isnan(mean), holes[4])
    same(Gaussians(mean[None], cov=covariance[None]), holes[4:5])
    same(Gaussians(MISSING.mean, cov=MISSING.covariances), holes)
    # What no longer holds the row is whole.
    UncertainSVC().fit(MISSING[5:], Y[5:])
    assert repr(MISSING) == repr(WHOLE)


def test_missing_values_are_converted_between_units():
    u = pytest.importorskip("astropy.units")
    metres = Gaussians(HOLED * u.m, std=STD * u.m)
    population = EmpiricalBayes().fit(metres)
    moved = population.transform(Gaussians(HOLED * 100 * u.cm, std=STD * 100 * u.cm))
    np.testing.assert_allclose(moved.mean, population.transform(metres).mean, rtol=1e-12)


def test_frames_and_masked_arrays_have_missing_values():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(HOLED, columns=["a", "b", "c"])
    errors = pd.DataFrame(STD, columns=["c_err", "a_err", "b_err"])
    examples = Gaussians(frame, std=errors)
    assert examples.feature_names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(examples.mean, HOLED)
    masked = np.ma.array(X, mask=np.isnan(HOLED))
    np.testing.assert_array_equal(Gaussians(masked, std=STD).mean, HOLED)


# ---- EmpiricalBayes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "errors",
    [
        {"std": STD},
        {"std": STD[:, 0]},
        {"cov": np.einsum("nj,nk->njk", STD, STD) + np.eye(D)},
        {"cov": Covariances.low_rank(STD[:, :, None], STD**2)},
    ],
    ids=["diagonal", "isotropic", "full", "low_rank"],
)
def test_posteriors_are_those_of_arrays_with_keywords(errors):
    [(name, given)] = errors.items()
    of_arrays = EmpiricalBayes().fit(HOLED, **{f"X_{name}": given})
    examples = Gaussians(HOLED, **errors)
    population = EmpiricalBayes().fit(examples)
    np.testing.assert_array_equal(population.means_, of_arrays.means_)
    expected = of_arrays.transform(HOLED, **{f"X_{name}": given})
    found = population.transform(examples)
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.covariances.to_full(), expected.covariances.to_full())
    # By the formula of the measured features alone, for the row with the hole.
    m, V = population.means_[0], population.covariances_[0]
    measured = [0, 2]
    S = examples.covariances[4][np.ix_(measured, measured)]
    gain = V[:, measured] @ np.linalg.inv(V[np.ix_(measured, measured)] + S)
    np.testing.assert_allclose(found.mean[4], m + gain @ (HOLED[4] - m)[measured], rtol=1e-9)


def test_calibration_of_a_pipeline_leaves_missing_values_to_it():
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    std = rng.uniform(0.1, 1.0, (200, 3))
    x = 2.0 * y[:, None] + rng.normal(size=(200, 3)) + std * rng.normal(size=(200, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    pipeline = make_pipeline(EmpiricalBayes(), UncertainSVC())
    train, test, y_train, y_test = train_test_split(Gaussians(x, std=std), y, random_state=0)
    calibrated = UncertainCalibratedClassifier(pipeline).fit(train, y_train)
    assert calibrated.score(test, y_test) > 0.85
    by_keywords = UncertainCalibratedClassifier(pipeline).fit(x, y, X_std=std)
    whole = UncertainCalibratedClassifier(pipeline).fit(Gaussians(x, std=std), y)
    np.testing.assert_array_equal(
        by_keywords.predict_proba(x, X_std=std), whole.predict_proba(Gaussians(x, std=std))
    )
