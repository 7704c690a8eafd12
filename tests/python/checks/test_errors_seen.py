"""Errors that the fit had: left out later, which is told, or counted before, and then not again."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from halosvm import (
    EmpiricalBayes,
    ErrorsLeftOutWarning,
    GaussianMixtures,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    Propagate,
    UncertainCalibratedClassifier,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
    load_model,
    save_model,
)

TOLD = partial(pytest.warns, ErrorsLeftOutWarning, match="was fitted to examples with errors")
FOLDS = StratifiedKFold(3)


def measurements(n, seed):
    """Return measurements of two classes whose features depend on each other, and their errors.

    Half of the values have small errors, the others errors beyond the spread of the true values.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    apart = np.where(y == 1, 0.6, -0.6)[:, None] * [1.0, -1.0, 1.0, -1.0]
    truth = 2.0 * rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, 4)) + apart
    std = np.where(rng.random((n, 4)) < 0.5, 0.2, 3.0) * rng.lognormal(0.0, 0.3, (n, 4))
    return truth + std * rng.normal(size=(n, 4)), y, std


def with_holes(X, seed):
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.1, np.nan, X)


X, Y, STD = measurements(600, 0)
X_TEST, Y_TEST, STD_TEST = measurements(2000, 1)
SMALL = slice(40)


def by_hand(X, y, std):
    """Return the mean accuracy of folds that are fitted and judged step by step, with arrays."""
    scores = []
    for train, test in FOLDS.split(X, y):
        population = EmpiricalBayes().fit(X[train], X_std=std[train])
        machine = UncertainSVC().fit(population.transform(X[train], X_std=std[train]), y[train])
        right = machine.predict(population.transform(X[test], X_std=std[test])) == y[test]
        scores.append(right.mean())
    return float(np.mean(scores))


# ---- accuracy --------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [False, True])
def test_the_right_way_has_the_right_accuracy_and_the_other_warns(holes):
    x, x_test = (with_holes(X, 2), with_holes(X_TEST, 3)) if holes else (X, X_TEST)
    examples, test = Gaussians(x, std=STD), Gaussians(x_test, std=STD_TEST)
    pipeline = make_pipeline(EmpiricalBayes(), UncertainSVC())
    expected = by_hand(x, Y, STD)
    right = pipeline.fit(examples, Y).score(test, Y_TEST)
    assert cross_val_score(pipeline, examples, Y, cv=FOLDS).mean() == expected
    search = GridSearchCV(pipeline, {"uncertainsvc__C": [1.0]}, cv=FOLDS)
    assert search.fit(examples, Y).best_score_ == expected
    with sklearn.config_context(enable_metadata_routing=True):
        assert search.fit(x, Y, X_std=STD).best_score_ == expected
    # What scikit-learn's own message leads to.
    pipeline.fit(x, Y, empiricalbayes__X_std=STD)
    assert pipeline.score(test, Y_TEST) == right
    with TOLD():
        wrong = pipeline.score(x_test, Y_TEST)
    with TOLD():
        search.fit(x, Y, empiricalbayes__X_std=STD)
    with TOLD():
        left_out = {"empiricalbayes__X_std": STD}
        scores = cross_val_score(pipeline, x, Y, cv=FOLDS, params=left_out)
    assert scores.mean() == search.best_score_
    # Three standard errors of a difference, those of the two samples together.
    assert right - wrong > 3 * np.sqrt(0.5 / len(Y_TEST))
    assert expected - search.best_score_ > 3 * np.sqrt(0.5 / len(Y))
    assert abs(expected - right) < 3 * np.sqrt(0.25 / len(Y) + 0.25 / len(Y_TEST))


# ---- who warns -------------------------------------------------------------------------------


def few():
    return X[SMALL], Y[SMALL], STD[SMALL]


WHO_WARNS = {
    EmpiricalBayes: ["transform", "score_samples", "score", "bic"],
    UncertainKernelSVC: ["predict", "decision_function", "decision_std"],
    UncertainCalibratedClassifier: ["predict", "predict_proba"],
    UncertainFourierFeatures: ["transform"],
    UncertainNystroem: ["transform"],
    UncertainSVC: ["decision_std", "side_probability"],
    IsotropicKernelSVC: ["decision_std"],
    partial(Propagate, FunctionTransformer(np.tanh), "unscented"): ["transform"],
    partial(Propagate, FunctionTransformer(np.tanh), "monte_carlo"): ["transform"],
}


@pytest.mark.parametrize(("make", "name"), [(m, name) for m in WHO_WARNS for name in WHO_WARNS[m]])
def test_a_method_whose_answer_depends_on_errors_warns_once_without_them(make, name):
    x, y, std = few()
    given = std[:, 0] if make is IsotropicKernelSVC else std
    machine = make().fit(x, y, X_std=given)
    method = getattr(machine, name)
    with TOLD() as told:
        exact = method(x)
    assert len(told) == 1
    assert told[0].filename == __file__
    # Said to be exact, or given.
    zeros = np.zeros_like(given)
    for said in (
        {"X_std": 0}, {"X_cov": 0.0}, {"X_std": np.float32(0)}, {"X_std": zeros}, {"X_std": given}
    ):  # fmt: skip
        result = method(x, **said)
        if said.get("X_std") is not given:
            np.testing.assert_allclose(means_of(result), means_of(exact), rtol=1e-6, atol=1e-9)
    for certain in (Gaussians(x), Gaussians(x, std=0), Gaussians(x, std=given)):
        method(certain)
    # A fit without errors, or with none that are above 0, has nothing to miss.
    getattr(make().fit(x, y), name)(x)
    getattr(make().fit(x, y, X_std=0), name)(x)
    getattr(machine.fit(x, y), name)(x)


def means_of(result):
    return getattr(result, "mean", result) if isinstance(result, Gaussians) else result


def test_a_score_warns_once():
    x, y, std = few()
    for machine in (UncertainKernelSVC(), UncertainCalibratedClassifier()):
        with TOLD() as told:
            machine.fit(x, y, X_std=std).score(x, y)
        assert len(told) == 1
        machine.score(x, y, X_std=0)


def test_what_does_not_depend_on_errors_does_not_warn():
    x, y, std = few()
    linear = UncertainSVC().fit(x, y, X_std=std)
    linear.predict(x), linear.decision_function(x), linear.score(x, y)
    UncertainSVR().fit(x, y, X_std=std).predict(x)
    isotropic = IsotropicKernelSVC().fit(x, y, X_std=std[:, 0])
    isotropic.predict(x), isotropic.decision_function(x)
    make_pipeline(UncertainStandardScaler(), UncertainSVC()).fit(Gaussians(x, std=std), y).predict(
        x
    )
    make_pipeline(Propagate(StandardScaler()), UncertainSVC()).fit(Gaussians(x, std=std), y).score(
        x, y
    )
    for make in (UncertainFourierFeatures, UncertainNystroem):  # of which only the bound has errors
        make(covariance="bound", radius=1.0).fit(x, X_std=std).transform(x)


def test_scalers_leave_it_to_what_comes_after():
    x, y, std = few()
    pipeline = make_pipeline(UncertainStandardScaler(), UncertainKernelSVC())
    pipeline.fit(Gaussians(x, std=std), y)
    with TOLD() as told:
        pipeline.predict(x)
    assert len(told) == 1


def test_mixtures_have_errors():
    x, y, _ = few()
    machine = UncertainKernelSVC().fit(GaussianMixtures(np.repeat(x, 2, 0), np.full(80, 0.5), 2), y)
    with TOLD():
        machine.predict(x)
    machine.predict(Gaussians(x))


def test_a_stream_remembers_the_errors_of_any_part():
    x, y, std = few()
    machine = UncertainSVC().partial_fit(x, y, classes=[0, 1]).partial_fit(x, y, X_std=std)
    with TOLD():
        machine.decision_std(x)
    with TOLD():
        machine.partial_fit(x, y)


def test_calibration_of_a_frozen_machine_misses_the_errors_of_its_fit():
    x, y, std = few()
    frozen = FrozenEstimator(UncertainKernelSVC().fit(x, y, X_std=std))
    with TOLD():
        UncertainCalibratedClassifier(frozen).fit(x, y)
    calibrated = UncertainCalibratedClassifier(frozen).fit(x, y, X_std=std)
    with TOLD() as told:
        calibrated.predict_proba(x)
    assert len(told) == 1
    UncertainCalibratedClassifier(frozen).fit(Gaussians(x), y).predict(x, X_std=0)


def test_platt_scaling_misses_standard_deviations_of_its_fit():
    decision, positive = np.linspace(-2, 2, 20), np.arange(20) >= 9
    scaling = PlattScaling().fit(decision, positive, std=np.full(20, 0.5))
    with pytest.warns(ErrorsLeftOutWarning, match="pass std"):
        exact = scaling.probability(decision)
    np.testing.assert_array_equal(scaling.probability(decision, 0.0), exact)
    PlattScaling().fit(decision, positive).probability(decision)
    scaling.fit(decision, positive).probability(decision)


def test_the_warning_can_be_filtered():
    x, y, std = few()
    machine = UncertainKernelSVC().fit(x, y, X_std=std)
    assert issubclass(ErrorsLeftOutWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ErrorsLeftOutWarning)
        machine.predict(x)


@pytest.mark.parametrize("way", ["pickle", "clone of a fit", "model file"])
@pytest.mark.parametrize("make", [m for m in WHO_WARNS if isinstance(m, type)])
def test_the_memory_travels_with_the_fit(make, way, tmp_path):
    x, y, std = few()
    given = std[:, 0] if make is IsotropicKernelSVC else std
    fitted = make_pipeline(make().fit(x, y, X_std=given))
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(fitted))
    elif way == "model file":
        save_model(fitted, tmp_path / "model.json")
        copy = load_model(tmp_path / "model.json")
    else:
        copy = sklearn.base.clone(FrozenEstimator(fitted)).estimator
    method = getattr(copy[-1], WHO_WARNS[make][0])
    with TOLD():
        method(x)
    method(x, X_std=0)


@pytest.mark.parametrize("make", [m for m in WHO_WARNS if isinstance(m, type)])
def test_a_model_file_of_a_fit_without_errors_remembers_none(make, tmp_path):
    x, y, _ = few()
    save_model(make().fit(x, y), tmp_path / "model.json")
    assert "had_errors" not in (tmp_path / "model.json").read_text()
    getattr(load_model(tmp_path / "model.json"), WHO_WARNS[make][0])(x)


# ---- errors that were counted ----------------------------------------------------------------


def plain_means():
    """Return posterior means as plain arrays, which remember nothing."""
    population = EmpiricalBayes(output="mean").fit(X, X_std=STD)
    return np.asarray(population.transform(X, X_std=STD)), np.asarray(
        population.transform(X_TEST, X_std=STD_TEST)
    )


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC()], ids=repr)
@pytest.mark.parametrize(
    "between", [[], [UncertainStandardScaler()], [Propagate(StandardScaler())]]
)
def test_errors_in_posterior_means_do_not_count_twice(machine, between, routing):
    means, tests = plain_means()
    expected = make_pipeline(*between, sklearn.base.clone(machine)).fit(means, Y)
    pipeline = make_pipeline(EmpiricalBayes(output="mean"), *between, machine)
    if not routing:
        pipeline.fit(Gaussians(X, std=STD), Y)
        found = pipeline.decision_function(Gaussians(X_TEST, std=STD_TEST))
    else:
        with sklearn.config_context(enable_metadata_routing=True):
            pipeline.fit(X, Y, X_std=STD)
            found = pipeline.decision_function(X_TEST, X_std=STD_TEST)
    np.testing.assert_array_equal(found, expected.decision_function(tests))


@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC()], ids=repr)
def test_rows_of_posterior_means_remember_as_searches_take_them(machine):
    means, tests = plain_means()
    grid = {"C": [0.1, 1.0]}
    expected = GridSearchCV(sklearn.base.clone(machine), grid, cv=FOLDS).fit(means, Y)
    pipeline = make_pipeline(EmpiricalBayes(output="mean"), GridSearchCV(machine, grid, cv=FOLDS))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, Y, X_std=STD)
        found = pipeline.predict(X_TEST, X_std=STD_TEST)
        copy = pickle.loads(pickle.dumps(pipeline[:-1].transform(X, X_std=STD)))
        again = sklearn.base.clone(machine).fit(copy, Y, X_std=STD[::-1])
    assert pipeline[-1].best_score_ == expected.best_score_
    np.testing.assert_array_equal(found, expected.predict(tests))
    assert not hasattr(again, "coef_") or (again.decision_std(means) == 0).all()


@pytest.mark.parametrize("map_", [UncertainFourierFeatures, UncertainNystroem])
def test_errors_in_mean_features_do_not_count_twice(map_):
    # As many features as there are inputs, so that the errors would fit.
    features = map_(n_components=4, output="mean", random_state=0)
    expected = make_pipeline(features, UncertainSVC()).fit(Gaussians(X, std=STD), Y)
    pipeline = make_pipeline(features, UncertainSVC())
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, Y, X_std=STD)
        found = pipeline.predict(X_TEST, X_std=STD_TEST)
    np.testing.assert_array_equal(found, expected.predict(Gaussians(X_TEST, std=STD_TEST)))


def test_a_second_population_does_not_count_errors_again():
    first, second = EmpiricalBayes(output="mean"), EmpiricalBayes(output="mean")
    means, _ = plain_means()
    expected = EmpiricalBayes().fit(means).means_
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(first, second, UncertainSVC()).fit(X, Y, X_std=STD)
        scaled = make_pipeline(UncertainStandardScaler(), EmpiricalBayes(), UncertainSVC())
        scaled.fit(X, Y, X_std=STD)
    np.testing.assert_array_equal(pipeline[1].means_, expected)
    assert scaled.score(Gaussians(X_TEST, std=STD_TEST), Y_TEST) > 0.8


def test_a_second_fit_is_told_nothing_that_the_first_was_not():
    x, y, std = few()
    for steps in ([EmpiricalBayes()], [UncertainStandardScaler(), EmpiricalBayes(output="mean")]):
        pipeline = make_pipeline(*steps, UncertainSVC())
        with sklearn.config_context(enable_metadata_routing=True):
            first = pipeline.fit(x, y, X_std=std)[-1].coef_
            np.testing.assert_array_equal(pipeline.fit(x, y, X_std=std)[-1].coef_, first)


def test_errors_of_the_means_themselves_count():
    means, _ = plain_means()
    own = np.full_like(means, 0.7)
    expected = UncertainSVC().fit(means, Y, X_std=own).coef_
    with sklearn.config_context(enable_metadata_routing=True):
        marked = EmpiricalBayes(output="mean").fit_transform(X, X_std=STD)
        np.testing.assert_array_equal(UncertainSVC().fit(marked, Y, X_std=own).coef_, expected)
    assert repr(marked) == repr(means)
    assert type(EmpiricalBayes(output="mean").fit_transform(X, X_std=STD)) is np.ndarray


@pytest.mark.parametrize(
    "last", [UncertainSVC(), BaggingClassifier(UncertainSVC(), 2, random_state=0)], ids=repr
)
@pytest.mark.parametrize(
    "steps",
    [
        [EmpiricalBayes(output="mean"), StandardScaler()],
        [EmpiricalBayes(output="mean").set_output(transform="pandas")],
    ],
    ids=["scaler of scikit-learn", "frames"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of errors twice
def test_what_cannot_remember_is_told(steps, last):
    pytest.importorskip("pandas")
    pipeline = make_pipeline(*steps, last)
    told = pytest.warns(UserWarning, match="may count twice.*set_fit_request")
    with sklearn.config_context(enable_metadata_routing=True), told:
        pipeline.fit(X, Y, X_std=STD)
    apart = sklearn.base.clone(make_pipeline(*steps, UncertainSVC()))
    with sklearn.config_context(enable_metadata_routing=True):
        apart[-1].set_fit_request(X_std=False, X_cov=False)
        apart.fit(X, Y, X_std=STD)


def test_frames_with_the_names_of_their_errors_are_told():
    pd = pytest.importorskip("pandas")
    x, std = (pd.DataFrame(each, columns=list("abcd")) for each in (X, STD))
    means = EmpiricalBayes(output="mean").set_output(transform="pandas")
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.warns(UserWarning, match="may count twice"),
    ):
        make_pipeline(means, UncertainSVC()).fit(x, Y, X_std=std)


def test_other_machines_after_posterior_means_are_given_plain_arrays():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(EmpiricalBayes(output="mean"), LogisticRegression())
        pipeline.fit(X, Y, X_std=STD)
        assert type(pipeline[-1].coef_) is np.ndarray
        assert type(pipeline.predict_proba(X, X_std=STD)) is np.ndarray
