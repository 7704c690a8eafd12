"""What the papers' experiments share: baselines, tests and draws are what they say."""

import csv
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from halosvm import (
    Covariances,
    EmpiricalBayes,
    Gaussians,
    TotalSVC,
    UncertainKernelSVC,
    UncertainSVC,
)

PATH = Path(__file__).parents[2] / "bench" / "papers" / "common.py"

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not PATH.exists(), reason="the experiments are not here"),
]


@pytest.fixture(scope="module")
def common():
    spec = importlib.util.spec_from_file_location("papers_common", PATH)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def load():
    """Return a function that imports a module, which imports its neighbours by bare names."""
    names = {path.stem for path in PATH.parent.glob("*.py")}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PATH.parent))
        for name in names & set(sys.modules):
            patch.delitem(sys.modules, name)
        yield importlib.import_module
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def kernels(load):
    return load("kernels")


@pytest.fixture(scope="module")
def measurements(load):
    return load("measurements")


@pytest.fixture(scope="module")
def losses(load):
    return load("losses")


@pytest.fixture(scope="module")
def tsvc(load):
    return load("tsvc")


@pytest.fixture(scope="module")
def robust(load):
    return load("robust")


@pytest.fixture
def examples(make_gaussians):
    return make_gaussians("diagonal", 60, 4)


def test_isotropic_errors_keep_the_total_variance(common, examples):
    X, _ = examples
    one, other = (c.covariances.variances().sum(axis=1) for c in (X, common.isotropic(X)))
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("kind", ["diagonal", "low_rank", "full", "of two ranks", "with diagonal"])
def test_draws_have_the_covariance_of_their_gaussian(common, make_gaussians, kind):
    X, _ = make_gaussians(kind if kind in ("diagonal", "full") else "low_rank", 3, 4)
    if kind == "of two ranks":
        X = Gaussians.concatenate([X[:2], Gaussians(X.mean[2:])])
    elif kind == "with diagonal":
        cov = Covariances.low_rank(X.covariances.values, np.full(X.shape, 0.5))
        X = Gaussians(X.mean, cov=cov)
    n = 40_000
    draws = common.draw(X, n, np.random.default_rng(0)).reshape(n, 3, 4) - X.mean
    for i, true in enumerate(X.covariances.to_full()):
        # An entry of the sample covariance has the variance (S_jj S_kk + S_jk^2) / n.
        variances = np.diag(true)
        error = np.sqrt((np.outer(variances, variances) + true**2) / n)
        assert (np.abs(draws[:, i].T @ draws[:, i] / n - true) <= 5 * error + 1e-12).all()


def test_standardised_covariances_are_those_of_the_scaled_features(common, make_gaussians):
    X, _ = make_gaussians("full", 30, 3)
    scaled, points = common.standardise(X, X.mean)
    np.testing.assert_allclose(points, scaled.mean)
    np.testing.assert_allclose(scaled.mean.std(axis=0), 1.0)
    change = np.diag(1.0 / X.mean.std(axis=0))
    expected = change @ X.covariances.to_full() @ change
    np.testing.assert_allclose(scaled.covariances.to_full(), expected, atol=1e-12)


def test_draws_of_certain_examples_are_the_plain_svm(common, examples):
    X, y = examples
    certain = Gaussians(X.mean, variance=np.zeros(X.shape))
    sampled = common.SamplingSVC(1.0, n_draws=3).fit(certain, y)
    plain = UncertainSVC(1.0, loss="hinge").fit(X.mean, y)
    assert sampled.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_paired_p_without_overlap_is_the_t_test_and_grows_with_overlap(common):
    rng = np.random.default_rng(0)
    one = rng.normal(size=20)
    other = one + 0.3 + rng.normal(size=20)
    expected = stats.ttest_rel(one, other).pvalue
    assert common.paired_p(one, other) == pytest.approx(expected, rel=1e-9)
    assert common.paired_p(one, other, 0.5) > expected
    assert common.paired_p(one, one) == 1.0


def test_mcnemar_counts_only_disagreements(common):
    one = np.array([True] * 9 + [False] + [True] * 50)
    other = np.array([False] * 9 + [True] + [True] * 50)
    assert common.mcnemar_p(one, other) == pytest.approx(2 * 11 / 2**10)
    assert common.mcnemar_p(one, one) == 1.0


def test_the_best_by_validation_is_chosen_run_by_run(common):
    scores = []
    for validation in ([0.9, 0.1], [0.2, 0.8]):
        made = common.Scores([(v + 1.0,) for v in validation], [{"C": 1.0}] * 2, validation)
        made.right, made.gaps, made.seconds = [np.array([True])] * 2, [0.0] * 2, [0.0] * 2
        scores.append(made)
    np.testing.assert_allclose(common.best_by_validation(scores).score(), [1.9, 1.8])


def test_every_experiment_is_registered(load):
    scripts = {
        path.stem for path in PATH.parent.glob("*.py") if "def experiment(" in path.read_text()
    }
    assert set(load("run").EXPERIMENTS) == scripts


@pytest.mark.parametrize("shape", ["means", "correlations", "lobes"])
def test_the_best_possible_is_bayes_rule_with_the_true_densities(load, shape):
    module = load("when_errors_pay")
    setting = module.Setting(shape=shape, features=3, rows=10, told=2.0, sharper=10.0)
    run, optimum = module.table(setting, np.random.default_rng(0))
    classes = module.populations(shape, 3, np.random.default_rng(0))
    moments = [each.covariance + each.means.T @ each.means / len(each.means) for each in classes]
    np.testing.assert_allclose(np.diag(np.mean(moments, axis=0)), 1.0, rtol=1e-12)
    errors = run.X_test.covariances.variances() / setting.told**2
    for x, variance, found in zip(run.X_test.mean[:20], errors, optimum, strict=False):
        densities = [
            np.mean([stats.multivariate_normal.pdf(x, m, V + np.diag(variance)) for m in means])
            for means, V in classes
        ]
        np.testing.assert_allclose(found, densities / np.sum(densities), rtol=1e-9)


def test_a_table_is_read_back_from_its_file(common, tmp_path):
    options = common.Options(quick=True, output=tmp_path / "new", seed=0)
    options.table("numbers", ["name, unit", "value"], [["a", 0.1], ["b", 1e-17]])
    with (tmp_path / "new" / "numbers.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["name, unit", "value"]
    assert [(name, float(value)) for name, value in rows] == [("a", 0.1), ("b", 1e-17)]


# -- kernel machines -----------------------------------------------------------------------------


def test_kernel_machine_on_means_ignores_errors_and_the_others_do_not(kernels, examples):
    X, y = examples
    plain = SVC(gamma=0.3).fit(X.mean, y).predict(X.mean)
    np.testing.assert_array_equal(kernels.MeansSVC(gamma=0.3).fit(X, y).predict(X), plain)
    pk = UncertainKernelSVC(gamma=0.3).fit(X, y)
    in_training = kernels.TrainingErrorsSVC(gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(in_training.dual_coef_, pk.dual_coef_)
    np.testing.assert_array_equal(in_training.predict(X), pk.predict(Gaussians(X.mean)))


def test_noise_of_the_radar_returns_is_what_their_errors_say(kernels):
    clean = np.random.default_rng(1).normal(size=(2000, 5)) * np.arange(1, 6)
    X = kernels.with_noise(clean, np.random.default_rng(0))
    std = np.sqrt(X.covariances.variances())
    scores = (X.mean - clean) / std
    assert stats.kstest(scores.ravel(), "norm").pvalue > 0.01
    relative = std / clean.std(axis=0)
    assert 0.1 <= relative.min() < 0.11 < 1.9 < relative.max() <= 2.0


def test_errors_of_training_and_test_examples_are_in_the_same_unit(kernels, make_gaussians):
    X, _ = make_gaussians("diagonal", 50, 3)
    known, asked = kernels.standardise(X[:30], X[30:])
    spread = X.mean[:30].std(axis=0)
    variances = X.covariances.variances() / spread**2
    np.testing.assert_allclose(known.covariances.variances(), variances[:30])
    np.testing.assert_allclose(asked.covariances.variances(), variances[30:])


def test_runs_keep_training_and_test_examples_apart(kernels):
    [run] = kernels.ionosphere_runs(1, 0)
    assert (len(run.X), len(run.X_test)) == (245, 106)
    assert len(run.y) + len(run.y_test) == 351
    assert set(run.y) == {"b", "g"}
    together = np.concatenate([run.X.mean, run.X_test.mean])
    assert len(np.unique(together, axis=0)) == 351


def test_table_has_the_difference_to_the_plain_machine_and_its_p(kernels, common):
    named, results = kernels.methods((0.1,)), {}
    for key, gain in (("svc", 0.0), ("pk", 0.1)):
        values = [(0.5 + 0.01 * i + gain * i, 0.5) for i in range(5)]
        results[key] = common.Scores(values, [{"C": 1.0, "gamma": 0.1}] * 5, seconds=[0.002] * 5)
    last = kernels.format_accuracies(named, results, 0.4).splitlines()[-1].split("  ")
    p = common.paired_p(results["pk"].score(), results["svc"].score(), 0.4)
    assert {"PkSVM", "+20.00", f"{p:.2g}", "2.0"} <= {cell.strip() for cell in last}


# -- measurements --------------------------------------------------------------------------------


def test_tables_are_standardised_and_no_feature_is_constant(measurements):
    tables = measurements.tables()
    shapes = {name: values.shape for name, (values, _) in tables.items()}
    assert shapes == {"cells": (569, 10), "ionosphere": (351, 32 + 1), "wine": (178, 13)}
    for values, _ in tables.values():
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(values.std(axis=0), 1.0)


@pytest.fixture(scope="module")
def noisy(measurements):
    """Return two runs each of the wine with given errors that are right, half and twice."""
    values, y = measurements.tables()["wine"]
    return [
        list(measurements.noisy_runs(values, y, 1.0, factor, 2, 0)) for factor in (1.0, 0.5, 2.0)
    ]


def test_wrong_errors_are_wrong_by_their_factor_and_the_values_are_the_same(noisy):
    right, half, twice = noisy
    for one, low, high in zip(right, half, twice, strict=True):
        np.testing.assert_array_equal(one.X.mean, low.X.mean)
        np.testing.assert_array_equal(one.X_test.mean, high.X_test.mean)
        variances = [run.X.covariances.variances() for run in (one, low, high)]
        np.testing.assert_allclose(variances[1], variances[0] / 4)
        np.testing.assert_allclose(variances[2], variances[0] * 4)


def test_values_are_deleted_at_the_rate_told(measurements):
    values = np.zeros((1000, 10))
    [run] = measurements.incomplete_runs(values, np.repeat([0, 1], 500), 0.3, 1, 0)
    missing = np.isnan(np.concatenate([run.X, run.X_test])).mean()
    assert abs(missing - 0.3) < 4 * np.sqrt(0.3 * 0.7 / values.size)


def test_views_show_what_their_names_say(measurements, noisy):
    run = noisy[0][0]
    X, Z = run.X, run.X_test
    [(known, asked)] = measurements.as_features(X, Z)
    assert (known.shape, asked.shape) == ((106, 26), (72, 26))
    np.testing.assert_allclose(asked[:, 13:] ** 2, Z.covariances.variances())
    population = EmpiricalBayes().fit(X)
    [(known, asked)] = measurements.posteriors(X, Z)
    np.testing.assert_array_equal(known.mean, population.transform(X).mean)
    np.testing.assert_array_equal(asked, population.transform(Z).mean)
    several = measurements.validated_posterior_means(X, Z)
    assert len(several) == 1 + len(measurements.COMPONENTS)
    np.testing.assert_array_equal(several[0][0], X.mean)
    np.testing.assert_array_equal(several[1][0], known.mean)


def test_the_test_part_does_not_choose_what_a_method_sees(measurements, noisy):
    run = noisy[0][0]

    def views(X, Z):
        return [(X.mean, Z.mean), (np.zeros(X.shape), Z.mean)]

    plain = UncertainSVC(loss="hinge")
    method = measurements.Contestant("", views, plain, {"C": (0.1,)})
    one = measurements.Contestant("", measurements.ignored, plain, {"C": (0.1,)})
    # Validation prefers the values to zeros, from which nothing can be learnt.
    assert measurements.score(method, run, 0) == measurements.score(one, run, 0)


def test_every_method_does_better_than_chance_on_measured_wine(measurements, noisy):
    methods = measurements.contestants(quick=True)
    found = measurements.compare(methods, noisy[0][:1])
    assert list(found) == list(methods)
    assert all(accuracy[0] > 0.6 for accuracy in found.values())
    values, y = measurements.tables()["wine"]
    imputers = measurements.imputing()
    runs = list(measurements.incomplete_runs(values, y, 0.1, 1, 0))
    assert all(accuracy[0] > 0.8 for accuracy in measurements.compare(imputers, runs).values())


def test_cells_are_marked_where_a_difference_is_clear(measurements):
    reference, gain = np.array([0.80, 0.81, 0.79]), np.array([0.10, 0.11, 0.10])
    assert measurements.cell(reference + gain, reference, 0.0).endswith("+")
    assert measurements.cell(reference - gain, reference, 0.0).endswith("-")
    assert measurements.cell(reference + gain * [1, -1, 1], reference, 0.0).endswith(" ")


# -- losses --------------------------------------------------------------------------------------


def tasks_of_wine(losses, make, factor):
    return list(make(*losses.binary_tables()["wine"], factor, 2, 0))


@pytest.mark.parametrize("make", ["measured", "distributed"])
def test_errors_told_are_wrong_by_their_factor_and_all_else_is_the_same(losses, make):
    right, half, learnt = (
        tasks_of_wine(losses, getattr(losses, make), factor) for factor in (1.0, 0.5, None)
    )
    for one, low, own in zip(right, half, learnt, strict=True):
        variances = one.X.covariances.variances()
        np.testing.assert_allclose(low.X.covariances.variances(), variances / 4)
        np.testing.assert_allclose(own.X.covariances.variances(), own.factor**2 * variances)
        for other in (low, own):
            np.testing.assert_array_equal(other.X.mean, one.X.mean)
            np.testing.assert_array_equal(other.points.mean, one.points.mean)
            np.testing.assert_array_equal(other.y, one.y)
            np.testing.assert_array_equal(other.y_test, one.y_test)
    factors = [task.factor for task in learnt]
    assert factors[0] != factors[1]
    assert all(0.25 <= factor <= 4.0 for factor in factors)


def test_measurements_have_noise_in_all_points_and_distributions_in_those_to_judge_by(losses):
    values = losses.binary_tables()["wine"][0]
    true = {tuple(row) for row in values}
    for made in tasks_of_wine(losses, losses.measured, 1.0):
        n = len(made.y)
        np.testing.assert_array_equal(made.points.mean[:n], made.X.mean)
        assert not any(tuple(row) in true for row in made.points.mean)
        assert not made.points.covariances.certain
    scores = []
    for made in tasks_of_wine(losses, losses.distributed, 1.0):
        n = len(made.y)
        assert all(tuple(row) in true for row in made.X.mean)
        assert made.points.covariances.certain
        std = np.sqrt(made.X.covariances.variances())
        scores.append((made.points.mean[:n] - made.X.mean) / std)
    assert stats.kstest(np.ravel(scores), "norm").pvalue > 0.01


def test_images_are_as_certain_as_their_shifts_are_small(losses):
    digits = losses.digits()._replace(test=losses.digits().test[:20])
    digits = digits._replace(test_labels=digits.test_labels[:20])
    [right], [half] = (list(losses.shifted(digits, factor, 1, 0)) for factor in (1.0, 0.5))
    np.testing.assert_array_equal(half.points.mean, right.points.mean)
    np.testing.assert_allclose(
        half.X.covariances.variances(), right.X.covariances.variances() / 4, atol=1e-12
    )
    assert right.y.sum() == 25
    assert len(right.y) == 50
    assert len(right.points) == 70


@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "low_rank", "certain"])
def test_folds_fit_examples_and_are_judged_by_points_of_others(losses, make_gaussians, kind):
    X, y = make_gaussians("diagonal" if kind == "certain" else kind, 30, 3)
    known = X.mean if kind == "certain" else X
    points = X.mean + 100.0
    both, labels, folds = losses.with_judges(known, points, y, 0)
    np.testing.assert_array_equal(labels, np.concatenate([y, y]))
    means = both if kind == "certain" else both.mean
    judged_rows = []
    for fitted, judged in folds:
        assert fitted.max() < 30 <= judged.min()
        assert not set(fitted) & set(judged - 30)
        np.testing.assert_array_equal(means[judged], points[judged - 30])
        judged_rows.extend(judged - 30)
        if kind != "certain":
            assert both.covariances.kind == kind
            np.testing.assert_allclose(
                both[fitted].covariances.variances(), X[fitted].covariances.variances()
            )
    assert sorted(judged_rows) == list(range(30))


def test_learnt_errors_are_chosen_from_multiples_of_those_told_and_none(losses):
    [made, _] = tasks_of_wine(losses, losses.measured, 1.0)
    seen = losses.scaled(losses.given)(made.X, made.points)
    variances = made.X.covariances.variances()
    assert losses.SCALES[0] == 0.0
    for scale, (known, asked) in zip(losses.SCALES, seen, strict=True):
        np.testing.assert_allclose(known.covariances.variances(), scale**2 * variances)
        np.testing.assert_array_equal(asked, made.points.mean)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_points_of_the_test_do_not_choose(losses):
    [made, _] = tasks_of_wine(losses, losses.measured, 1.0)
    n, plain = len(made.y), UncertainSVC(loss="hinge", n_threads=1)

    def views(X, Z):
        # Nothing can be learnt from zeros; the points of the test say the opposite.
        asked = np.concatenate([Z.mean[:n], np.zeros_like(Z.mean[n:])])
        return [(X.mean, Z.mean), (np.zeros(X.shape), asked)]

    method = losses.Contestant("", views, plain, {"C": (0.1,)})
    one = losses.Contestant("", losses.ignored, plain, {"C": (0.1,)})
    assert losses.score(method, made, 0) == losses.score(one, made, 0) > 0.6


def test_the_best_case_is_the_linear_total_machine(losses):
    [made, _] = tasks_of_wine(losses, losses.measured, 0.5)
    best = losses.contestants()["best_case"].estimator.fit(made.X, made.y)
    total = TotalSVC(n_threads=1).fit(made.X, made.y)
    np.testing.assert_array_equal(total.coef_, best.coef_)


def test_the_scale_found_is_compared_with_the_true_one(losses, monkeypatch):
    [made, _] = tasks_of_wine(losses, losses.measured, 0.5)

    class Found:
        scale = 3.0
        validation_losses = np.array([1.0])

    monkeypatch.setattr(losses, "calibrate_scale", lambda *_args, **_options: Found)
    accuracy, scale = losses.calibrated(made, 0)
    assert scale == 1.5
    clf = UncertainSVC(0.01, error_scale=3.0).fit(made.X, made.y)
    assert accuracy == clf.score(made.points.mean[len(made.y) :], made.y_test)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_loss_does_better_than_chance_where_errors_are_small(losses, monkeypatch):
    monkeypatch.setattr(losses, "SIZE", 0.1)
    methods = losses.contestants()
    tasks = {
        name: tasks_of_wine(losses, losses.measured, factor)[:1]
        for name, factor in (("right", 1.0), ("learnt", None))
    }
    found = losses.compare(methods, tasks)
    assert set(found.columns["right"]) == set(methods) - {"calibrated"}
    assert set(found.columns["learnt"]) == set(methods)
    assert all(value[0] > 0.8 for column in found.columns.values() for value in column.values())
    assert found.scales.shape == (1,)


# -- total support vector machines ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [("linear", [[0.0, 1.0]], [[1.0, 0.0]]), ("quadratic", [[1.0, -2.8]], [[1.0, -2.9]])],
)
def test_targets_are_those_of_the_paper(tsvc, name, inside, outside):
    target = tsvc.TARGETS[name]
    assert target(np.array(inside)) < 0 < target(np.array(outside))


def test_outliers_are_a_tenth_of_the_points(tsvc):
    for number in range(20):
        made = tsvc.synthetic(tsvc.circle, 100, 1.0, np.random.default_rng(number))
        radii = np.sqrt(made.X.covariances.variances()[:, 0])
        assert ((radii >= 0.1) & (radii <= 2.0)).all()
        assert 0 < (radii > 0.8).sum() <= 10


def test_outliers_are_among_the_fifth_nearest_to_the_boundary(tsvc, monkeypatch):
    monkeypatch.setattr(tsvc, "USUAL", (1e-9, 2e-9))
    monkeypatch.setattr(tsvc, "OUTLYING", (1e-7, 2e-7))
    made = tsvc.synthetic(tsvc.circle, 100, 1.0, np.random.default_rng(0))
    outlying = np.flatnonzero(made.X.covariances.variances()[:, 0] > 1e-15)
    near = np.argsort(np.abs(tsvc.circle(made.X.mean)))[:20]
    assert len(outlying) == 10
    assert set(outlying) < set(near)


def test_sigma_read_as_a_variance_has_its_root_as_radius(tsvc):
    std, variance = (
        tsvc.synthetic(tsvc.line, 30, power, np.random.default_rng(0)) for power in (1.0, 0.5)
    )
    np.testing.assert_allclose(
        variance.X.covariances.variances(), np.sqrt(std.X.covariances.variances())
    )
    np.testing.assert_array_equal(std.y, variance.y)


def test_test_points_have_no_noise(tsvc):
    made = tsvc.synthetic(tsvc.line, 20, 1.0, np.random.default_rng(0))
    assert np.abs(made.X_test).max() <= 5.0
    np.testing.assert_array_equal(made.y_test, made.X_test[:, 0] > made.X_test[:, 1])


def test_digits_that_are_not_turned_are_the_first_and_the_last(tsvc, monkeypatch):
    monkeypatch.setattr(tsvc, "TURN", 0.0)
    made = tsvc.turned_digits(100, np.random.default_rng(0))
    images, digit = load_digits(return_X_y=True)
    scaler = StandardScaler().fit(images[:100])
    np.testing.assert_allclose(made.X.mean, scaler.transform(images[:100]), atol=1e-12)
    np.testing.assert_allclose(made.X_test, scaler.transform(images[-1000:]), atol=1e-12)
    np.testing.assert_array_equal(made.y_test, digit[-1000:] % 2 == 1)


def test_without_errors_the_quadratic_machines_agree(tsvc):
    made = tsvc.synthetic(tsvc.circle, 50, 1.0, np.random.default_rng(0))
    plain = tsvc.QUADRATIC["svc"].estimator
    plain = clone(plain).set_params(C=0.1, tol=1e-8).fit(made.X, made.y)
    total = clone(tsvc.QUADRATIC["total"].estimator).set_params(C=0.1, radius=0.0)
    total.fit(made.X, made.y)
    expected = plain.decision_function(made.X_test)
    # (x'z)^2 has no linear term.
    np.testing.assert_allclose(plain.decision_function(-made.X_test), expected, atol=1e-9)
    np.testing.assert_allclose(
        total.decision_function(made.X_test), expected, atol=1e-4 * np.abs(expected).max()
    )


def test_errors_stand_beside_those_of_the_paper(tsvc):
    block = next(block for block in tsvc.blocks() if block.name == "linear")
    plain, better = np.array([8.0, 9.0, 10.0]), np.array([6.0, 7.5, 8.0])
    found = {n: {"svc": plain, "total": better, "ball": plain} for n in block.sizes}
    row = tsvc.format_block(block, found).splitlines()[2 + len(block.sizes)].split("  ")
    cells = {cell.strip() for cell in row}
    p = stats.ttest_rel(better, plain).pvalue
    assert {"20", "7.17 +- 0.60", "6.1", "-1.83", f"{p:.2g}", "better"} <= cells


def test_machines_learn_the_targets_from_many_points(tsvc):
    for name, machines in (("linear", tsvc.LINEAR), ("quadratic", tsvc.QUADRATIC)):
        made = tsvc.synthetic(tsvc.TARGETS[name], 150, 1.0, np.random.default_rng(1))
        found = tsvc.errors({key: machines[key] for key in ("svc", "total")}, [made])
        assert all(error[0] < 12.0 for error in found.values())


# -- robust and safe machines --------------------------------------------------------------------


def test_robust_tables_are_standardised(robust):
    tables = robust.tables()
    shapes = {name: values.shape for name, (values, _) in tables.items()}
    assert shapes == {"australian": (690, 14), "sonar": (208, 60), "cells": (569, 30)}
    for values, y in tables.values():
        np.testing.assert_allclose(values.std(axis=0), 1.0)
        assert len(np.unique(y)) == 2


def test_accuracies_under_noise_are_those_of_draws(robust, make_gaussians):
    X, y = make_gaussians("diagonal", 40, 3)
    clf = UncertainSVC(loss="hinge").fit(X.mean, y)
    by = robust.UnderNoise(0.5)
    n = 40_000
    draws = X.mean + 0.5 * np.random.default_rng(0).normal(size=(n, 40, 3))
    right = clf.predict(draws.reshape(-1, 3)).reshape(n, 40) == y
    error = 5.0 * np.sqrt(0.25 / n)
    np.testing.assert_allclose(by.holds(clf, X.mean, y), right.mean(axis=0), atol=error)
    assert by.noisy(clf, X.mean, y) == pytest.approx(right.mean(), abs=error)
    share = by.holds(clf, X.mean, y)
    assert by.safe(clf, X.mean, y) == np.mean(share >= 0.95)


def test_noise_does_not_change_the_label_of_a_constant_machine(robust):
    class Constant:
        coef_ = np.zeros((1, 2))
        classes_ = np.array([0, 1])

        def decision_function(self, X):
            return np.ones(len(X))

    share = robust.UnderNoise(1.0).holds(Constant(), np.zeros((3, 2)), np.array([1, 0, 1]))
    np.testing.assert_array_equal(share, [1.0, 0.0, 1.0])


def test_noise_is_in_training_examples_alone_and_of_the_size_told(robust):
    values, y = robust.tables()["cells"]
    [run] = robust.noisy_runs(values, y, 0.3, 1, 0)
    true = {tuple(row) for row in values}
    assert all(tuple(row) in true for row in run.X_test)
    np.testing.assert_allclose(run.X.covariances.variances(), 0.09)
    _, train, _ = next(robust.splits(y, 1, 0))
    noise = (run.X.mean - values[train]) / 0.3
    assert stats.kstest(noise.ravel(), "norm").pvalue > 0.01


def test_printed_radius_does_not_keep_the_chance_constraint_and_the_others_do(robust):
    rows = robust.coverage(*robust.tables()["cells"], 0)
    radii, normal, worst = np.array([row[1:] for row in rows], dtype=float).T
    np.testing.assert_allclose(radii, [0.2294, 1.6449, 4.3589], atol=5e-4)
    # Each holds with the probability Phi(radius) under a normal law.
    np.testing.assert_allclose(normal, stats.norm.cdf(radii), atol=2e-3)
    np.testing.assert_allclose(worst, [0.05, 0.7301, 0.95], atol=1e-3)


def test_growth_of_sizes_is_their_rank_correlation_with_the_noise(robust):
    rising = {0.0: np.array([0.1, 0.2]), 0.5: np.array([0.3, 0.3]), 1.0: np.array([0.4, 0.9])}
    assert robust.growth(rising) == (pytest.approx(1.0), 0.5)  # both of 2 runs rise: 2 / 2^2
    one_falls = rising | {1.0: np.array([0.4, 0.1])}
    assert robust.growth(one_falls)[0] == pytest.approx((1.0 - 0.5) / 2)


def test_the_safe_machine_may_learn_up_to_the_largest_radius(robust):
    safe = robust.methods(0.3)["safe"].estimator
    assert safe.bounds == (0.0, pytest.approx(0.3 * np.sqrt(19.0)))


# -- features of many examples -------------------------------------------------------------------


@pytest.fixture(scope="module")
def random_features(load):
    return load("random_features")


def test_labels_of_the_made_up_distributions_are_those_of_draws(random_features):
    X, y = random_features.examples(20_000, 0)
    again, _ = random_features.examples(20_000, 0)
    np.testing.assert_array_equal(X.mean, again.mean)
    deviations = np.sqrt(X.covariances.variances())
    assert deviations.min() > 0
    assert deviations.max() <= 1
    # Where errors are small, the label is that of the mean.
    certain = deviations.max(axis=1) < 0.25
    outside = np.sum(X.mean[:, :3] ** 2, axis=1) > 2.4 + X.mean[:, 3]
    assert np.mean(outside[certain] == y[certain]) > 0.85
    assert np.mean(outside == y) < np.mean(outside[certain] == y[certain]) - 0.03


def test_machines_of_features_come_near_to_the_kernel_machine(random_features):
    X, y = random_features.examples(600, 0)
    points, truth = random_features.examples(1000, 1)
    scores = {
        name: clf.fit(X, y).score(points, truth)
        for name, clf in random_features.machines(1.0, 0.03).items()
    }
    assert min(scores.values()) > 0.75
    assert abs(scores["Nystroem, expectations"] - scores["kernel"]) < 0.02


def test_bounds_hold_and_ours_are_the_smaller_ones(random_features):
    cases = list(random_features.nystroem_cases(0.1, 100, 0))
    cases.append(random_features.fourier_case("fourier", 20, "paired", "", 100, 0))
    for _, printed, ours, found, _ in cases:
        assert found <= ours * (1 + 1e-12)
        assert printed is None or printed > 1.9 * ours
    table = random_features.format_bounds(cases).splitlines()
    ratio = cases[-1][2] / cases[-1][3]
    assert f"{ratio:.2f}" in table[-1].split()


def test_a_gram_matrix_that_does_not_fit_is_told_by_its_size(random_features):
    rows = [["kernel", 100_000, None, None, 8e10, None], ["Fourier", 1000, 0.9, 1.0, 2e6, 1e-5]]
    lines = random_features.format_machines(rows).splitlines()
    assert "Gram matrix of 80 GB" in lines[2]
    assert lines[3].split() == ["Fourier", "1,000", "90.00", "+-", "0.42", "1.0", "2", "1e-05"]


def test_a_reading_that_is_joined_weighs_by_its_precision(load):
    module = load("next_measurement")
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(5, 3))
    X = Gaussians(truth + 1.0, std=np.full((5, 3), 0.4))
    features, noise = np.array([0, 1, 2, 0, 1]), rng.normal(size=5)
    again = module.read_again(X, truth, features, noise)
    for i, j in enumerate(features):
        old, new = 1.0 / 0.4**2, 1.0 / module.ERROR**2
        reading = truth[i, j] + module.ERROR * noise[i]
        expected = (old * X.mean[i, j] + new * reading) / (old + new)
        assert again.mean[i, j] == pytest.approx(expected)
        assert again.covariances.variances()[i, j] == pytest.approx(1.0 / (old + new))
    untouched = np.arange(3) != features[:, None]
    assert (again.mean[untouched] == X.mean[untouched]).all()
