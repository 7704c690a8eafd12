"""The demo: how variances arise, and that its table holds what independent code computes."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC

from halosvm import (
    EmpiricalBayes,
    MeasurementClassifier,
    UncertainCalibratedClassifier,
    UncertainSVC,
)
from halosvm.commands import demo
from halosvm.commands.cli import main
from halosvm.commands.demo import digits, measurements, probabilities
from halosvm.commands.demo.fits import METHODS, Progress
from halosvm.commands.demo.statistics import standard_error

SETUP = demo.Setup.quick(splits=2, seed=1)


@pytest.fixture(scope="module")
def cells():
    return demo.load_cells()


@pytest.fixture(scope="module")
def train():
    return np.random.default_rng(5).permutation(569)[:512]


@pytest.fixture(scope="module")
def quick():
    return demo.run(SETUP)


def test_data_are_those_of_scikit_learn_with_malignant_as_positive_class(cells):
    data = load_breast_cancer()
    assert cells.features.shape == (569, 30)
    assert np.count_nonzero(cells.labels == "malignant") == 212
    assert sorted(set(cells.labels)) == ["benign", "malignant"]
    for j in range(10):
        what = data.feature_names[j].removeprefix("mean ")
        column = data.feature_names.tolist().index(f"{what} error")
        np.testing.assert_array_equal(cells.standard_errors[:, j], data.data[:, column])


def test_largest_training_variance_is_80_percent_of_the_range(cells, train):
    means, variances = demo.scale(cells.features, cells.standard_errors, train)
    for j in range(10):
        column = means[train, j]
        largest = max(variances[i, j] for i in train)
        assert largest == pytest.approx(0.8 * (column.max() - column.min()), rel=1e-14)
    assert not variances[:, 10:].any()


def test_standard_deviations_are_proportional_to_standard_errors(cells, train):
    _, variances = demo.scale(cells.features, cells.standard_errors, train)
    for j in range(10):
        fit = stats.linregress(cells.standard_errors[:, j], np.sqrt(variances[:, j]))
        assert fit.rvalue == pytest.approx(1, abs=1e-12)
        assert fit.intercept == pytest.approx(0, abs=1e-12)


def test_features_are_standardised_by_the_training_rows(cells, train):
    means, _ = demo.scale(cells.features, cells.standard_errors, train)
    np.testing.assert_allclose(means[train].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(means[train].std(axis=0), 1, rtol=1e-12)


def test_test_rows_do_not_influence_the_training_rows(cells, train):
    features, errors = cells.features.copy(), cells.standard_errors.copy()
    rest = np.setdiff1d(np.arange(569), train)
    features[rest] *= 100
    errors[rest] *= 100
    before = demo.scale(cells.features, cells.standard_errors, train)
    after = demo.scale(features, errors, train)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[train], other[train])


def test_variances_do_not_depend_on_the_units_of_the_measurements(cells, train):
    units = 2.0 ** np.arange(-15, 15)
    before = demo.scale(cells.features, cells.standard_errors, train)
    after = demo.scale(cells.features * units, cells.standard_errors * units[:10], train)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_noise_is_what_the_errors_say_and_as_large_as_told():
    values = np.zeros((4000, 10))
    X = measurements.measure(values, 3.0, np.random.default_rng(0))
    std = np.sqrt(X.covariances.variances())
    assert stats.kstest((X.mean / std).ravel(), "norm").pvalue > 0.01
    # log(std / 3) ~ N(-1/2, 1), whose exponential has mean 1 and variance e - 1.
    assert stats.kstest(np.log(std / 3.0).ravel(), stats.norm(-0.5, 1.0).cdf).pvalue > 0.01
    assert abs(std.mean() / 3.0 - 1.0) < 4 * np.sqrt((np.e - 1) / std.size)


def test_noise_of_all_sizes_is_the_same_but_for_its_size():
    values = np.random.default_rng(1).normal(size=(5, 3))
    one, other = (measurements.measure(values, s, np.random.default_rng(0)) for s in (0.5, 2.0))
    np.testing.assert_allclose(other.mean - values, 4 * (one.mean - values), atol=1e-12)


def outcomes_of(situations, title):
    [found] = [situation for situation in situations if situation.title == title]
    return found.outcomes


def test_accuracy_with_true_values_agrees_with_libsvm(quick):
    data = load_breast_cancer()
    X, y = stats.zscore(data.data[:, :10]), 1 - data.target
    splitter, accuracy = StratifiedShuffleSplit(2, test_size=0.4, random_state=1), []
    for number, (train, test) in enumerate(splitter.split(X, y)):
        folds = StratifiedKFold(3, shuffle=True, random_state=number)
        search = GridSearchCV(SVC(kernel="linear"), {"C": SETUP.grid}, cv=folds)
        accuracy.append(search.fit(X[train], y[train]).score(X[test], y[test]))
    np.testing.assert_allclose(quick[0].ideal, accuracy, rtol=1e-12)


def test_own_errors_are_compared_on_fits_to_the_training_rows_alone(quick, cells):
    splitter = StratifiedShuffleSplit(2, test_size=0.1, random_state=1)
    for number, (train, test) in enumerate(splitter.split(cells.features, cells.labels)):
        means, variances = demo.scale(cells.features, cells.standard_errors, train)
        for key, outcome in outcomes_of(quick, "own standard errors").items():
            loss = "hinge" if key == "ignored" else "expected_hinge"
            clf = UncertainSVC(outcome.chosen_c[number], loss=loss)
            clf.fit(means[train], cells.labels[train], X_cov=variances[train])
            assert clf.score(means[test], cells.labels[test]) == outcome.accuracy[number]
            # It depends on every training row, unlike the accuracy.
            assert clf.suboptimality_ == pytest.approx(outcome.suboptimality[number], rel=1e-6)


def test_posteriors_come_from_the_training_rows_alone(quick):
    truth = measurements.true_values()
    splitter = StratifiedShuffleSplit(2, test_size=0.4, random_state=1)
    for number, (train, test) in enumerate(splitter.split(truth.values, truth.labels)):
        X = measurements.measure(truth.values, 1.0, np.random.default_rng((1, number)))
        population = EmpiricalBayes().fit(X[train])
        known, asked = population.transform(X[train]).mean, population.transform(X[test]).mean
        outcome = outcomes_of(quick, "noise 1")["means"]
        clf = UncertainSVC(outcome.chosen_c[number]).fit(known, truth.labels[train])
        assert clf.score(asked, truth.labels[test]) == outcome.accuracy[number]
        choice = MeasurementClassifier(list(measurements.CANDIDATES), random_state=number)
        choice.fit(X[train], truth.labels[train])
        outcome = outcomes_of(quick, "noise 1")["chosen"]
        assert choice.score(X[test], truth.labels[test]) == outcome.accuracy[number]


def test_shifts_move_the_centre_of_mass_as_told():
    images, _ = digits.load_images()
    assert images.shape == (1797, 8, 8)
    assert (images.min(), images.max()) == (0.0, 1.0)
    # A dot far from the border moves with its image, by the mean and the spread of the shifts.
    dots = np.zeros((500, 8, 8))
    dots[:, 3:5, 3:5] = 1.0
    moved = digits.shifted(dots, np.random.default_rng(0)).reshape(-1, 8, 8)
    assert len(moved) == 500 * digits.COPIES
    for axis in (1, 2):
        along = moved.sum(axis=3 - axis)
        centre = along @ np.arange(8) / along.sum(axis=1) - 3.5
        assert stats.kstest(centre / digits.SHIFT, "norm").pvalue > 0.01


def test_every_method_is_run_on_every_split_and_every_linear_fit_is_certified(quick):
    assert [situation.title for situation in quick] == [
        "noise 0.1",
        "noise 0.3",
        "noise 1",
        "noise 3",
        "upright test images",
        "shifted test images",
        "own standard errors",
    ]
    for situation in quick:
        measured = situation.story == measurements.STORY
        assert list(situation.outcomes) == list(METHODS)[: 5 if measured else 2]
        for key, outcome in situation.outcomes.items():
            assert outcome.accuracy.shape == (2,)
            assert ((outcome.accuracy > 0.5) & (outcome.accuracy <= 1.0)).all()
            if key == "kernel":
                assert set(outcome.chosen_c) <= set(SETUP.kernel_grid)
            elif key != "chosen":
                assert set(outcome.chosen_c) <= set(SETUP.grid)
                assert (outcome.suboptimality <= UncertainSVC().tol).all()


def test_same_seed_gives_the_same_numbers_and_another_seed_other_splits(quick):
    again = demo.cells.own_errors(SETUP, Progress(None))
    other = demo.cells.own_errors(demo.Setup.quick(splits=2, seed=4), Progress(None))
    for key, outcome in outcomes_of(quick, "own standard errors").items():
        np.testing.assert_array_equal(again.outcomes[key].suboptimality, outcome.suboptimality)
        assert np.any(other.outcomes[key].suboptimality != outcome.suboptimality)


def test_standard_error_is_that_of_the_mean_and_grows_with_shared_rows():
    values = np.array([0.9, 0.95, 1.0, 0.92])
    assert standard_error(values) == pytest.approx(stats.sem(values), rel=1e-14)
    wider = np.sqrt(1 + 4 * 0.5)
    assert standard_error(values, 0.5) == pytest.approx(wider * stats.sem(values), rel=1e-14)
    assert standard_error(values[:1]) == 0


def outcome(*accuracy, gap=1e-7):
    zeros = np.zeros(len(accuracy))
    return demo.Outcome(np.array(accuracy), zeros + 0.1, zeros + gap)


def situations_of(chosen=(0.95, 0.97, 0.99), ignored=(0.94, 0.95, 0.96), **others):
    """Return one situation of each story; of the first, what two methods reach is given."""
    first = {"ignored": outcome(*ignored), "distribution": outcome(0.90, 0.92, 0.93)}
    first |= {"means": outcome(*ignored), "kernel": outcome(*chosen, gap=np.nan)}
    first |= {"chosen": outcome(*chosen, gap=np.nan)}
    same = {"ignored": outcome(0.9, 0.8, 0.9), "distribution": outcome(0.9, 0.8, 0.9)}
    return [
        demo.Situation(measurements.STORY, "noise 1", 0.0, first, 1.0),
        demo.Situation(digits.STORY, "shifted", 0.0, same),
        demo.Situation(demo.cells.STORY, "own", 0.0, dict(same)),
    ]


def test_table_holds_means_standard_errors_and_marks_of_clear_differences():
    lines = demo.format_table(situations_of()).splitlines()
    [row] = [line for line in lines if line.strip().startswith("noise 1")]
    # Standard deviations 0.01, 0.0153, 0.02, over the square root of 3. Differences to errors
    # ignored: -4, -3, -3 points, t = -10; and 1, 2, 3 points, t = 3.46 with p = 0.074.
    shown = "noise 1 95.0 (0.6) 91.7 (0.9) - 95.0 (0.6) 97.0 (1.2) 97.0 (1.2)"
    assert " ".join(row.split()) == shown
    assert "21 of 21 linear fits" in "".join(lines)


def test_fits_beyond_the_tolerance_are_counted():
    situations = situations_of()
    situations[1].outcomes["ignored"] = outcome(0.9, 0.8, 0.9, gap=2e-3)
    text = demo.format_table(situations)
    assert "18 of 21 linear fits" in text
    assert "2.0e-03" in text


def conclusions(**accuracies):
    return " ".join(demo.format_conclusions(situations_of(**accuracies)).split())


def test_conclusions_follow_from_the_numbers():
    gained = conclusions(chosen=(0.96, 0.97, 0.98))
    assert "Chosen by validation: better with noise 1 (+2.0 points, p = 0)" in gained
    assert "N(x, S) as it is: worse with noise 1 (-3.3 points, p = 0.01)" in gained
    assert "So use MeasurementClassifier." in gained
    lost = conclusions(chosen=(0.90, 0.92, 0.93))
    assert "Chosen by validation: worse with noise 1" in lost
    assert "So here the errors are better ignored." in lost
    assert "use MeasurementClassifier" not in lost
    unclear = conclusions(chosen=(0.95, 0.97, 0.99))
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3) with two degrees of freedom, for which the
    # distribution is p = 1 - t / sqrt(2 + t^2).
    t = 2 * np.sqrt(3)
    p = 1 - t / np.sqrt(2 + t * t)
    assert f"no clear difference with noise 1 (+2.0 points, p = {p:.1g})" in unclear
    assert "So here nothing is gained that these splits can tell." in unclear
    assert "use MeasurementClassifier" not in unclear


def test_better_in_one_situation_and_worse_in_another_is_left_to_validation():
    better, worse = (
        situations_of(chosen=(0.96, 0.97, 0.98)),
        situations_of(chosen=(0.90, 0.92, 0.93)),
    )
    text = " ".join(demo.format_conclusions([*better, *worse]).split())
    assert "So let validation tell whether to use MeasurementClassifier." in text


def test_command_prints_table_conclusions_and_the_next_command_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    assert main(["demo", "--quick", "--splits", "1", "--output", str(picture)]) == 0
    out, err = capsys.readouterr()
    for text in (
        "noise 3",
        "accuracy of the surest 90 %",
        "calibration error",
        "shifted test images",
        "certified",
        "Chosen by validation: ",
        str(picture),
    ):
        assert text in out
    assert out.splitlines()[-1].startswith("Your own table next: halosvm doctor ")
    assert max(map(len, out.splitlines())) <= 110
    assert err.splitlines()[0] == "cells without noise"
    assert err.splitlines()[-1] == "probabilities of cells"
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500


def test_without_matplotlib_the_demo_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(demo, "run", lambda setup, progress: situations_of())
    demo.main(SETUP, str(tmp_path / "demo.png"))
    out = capsys.readouterr().out
    assert "python -m pip install 'halosvm[plot]'" in out
    assert "halosvm doctor" in out
    assert not (tmp_path / "demo.png").exists()


def test_progress_on_a_terminal_stays_on_one_line_and_is_wiped():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    progress = Progress(stream)
    assert list(progress.steps("a part of the work", 3)) == [0, 1, 2]
    progress.end()
    shown = stream.getvalue()
    assert "\n" not in shown
    steps = shown.split("\r")
    assert sum("a part of the work" in step for step in steps) == 3
    assert max(len(step) for step in steps) <= 79
    assert not steps[-2].strip()
    assert not steps[-1]


@pytest.mark.parametrize("name", ["figure", "figure.png", "of v1.2"])
def test_figure_is_where_the_demo_says(monkeypatch, capsys, tmp_path, name):
    pytest.importorskip("matplotlib")
    for part in ("introduction", "format_table", "format_probabilities", "format_conclusions"):
        monkeypatch.setattr(demo, part, lambda _: "")
    monkeypatch.setattr(demo, "run", lambda *_: [])
    monkeypatch.setattr(demo, "judge_probabilities", lambda *_: {})
    monkeypatch.setattr(demo, "draw", lambda *arguments: Path(arguments[-1]).touch())
    demo.main(None, str(tmp_path / name))
    said = re.search("The figure is in (.*)", capsys.readouterr().out)[1]
    assert said == str(tmp_path / (name if name.endswith(".png") else f"{name}.png"))
    assert (tmp_path / said).exists()


def test_noise_of_probabilities_is_what_the_errors_say_and_one_for_each_row():
    X = probabilities.measure(np.zeros((3000, 10)), np.random.default_rng(0))
    std = np.sqrt(X.covariances.variances())
    np.testing.assert_array_equal(std, np.tile(std[:, :1], 10))
    assert stats.kstest((X.mean / std).ravel(), "norm").pvalue > 0.01
    assert stats.kstest(np.log(std[:, 0]), "norm").pvalue > 0.01


def test_accuracy_of_the_surest_counts_rows_far_from_one_half():
    p = np.array([0.9, 0.2, 0.55, 0.45, 0.01])
    positive = np.array([True, True, True, True, False])
    expected = {0.2: 1.0, 0.4: 1.0, 0.6: 2 / 3, 0.8: 3 / 4, 1.0: 3 / 5}
    for share, accuracy in expected.items():
        # A share a little larger, so that rounding takes no row away.
        found = probabilities.accuracy_of_surest(p, positive, share + 1e-9)
        assert found == pytest.approx(accuracy)


def test_probabilities_are_of_test_rows_from_fits_to_training_rows_alone():
    judged = demo.judge_probabilities(SETUP, Progress(None))
    truth = measurements.true_values()
    splitter = StratifiedShuffleSplit(2, test_size=0.4, random_state=1)
    for number, (train, test) in enumerate(splitter.split(truth.values, truth.labels)):
        X = probabilities.measure(truth.values, np.random.default_rng((1, number)))
        population = EmpiricalBayes(n_components=2, random_state=number).fit(X[train])
        clf = UncertainCalibratedClassifier(UncertainSVC(), cv=3)
        clf.fit(population.transform(X[train]), truth.labels[train])
        asked = population.transform(X[test])
        for way, errors in (("with", asked.covariances), ("without", 0)):
            p, y = (
                clf.predict_proba(asked.mean, X_cov=errors)[:, 1],
                truth.labels[test] == "malignant",
            )
            surest = np.argsort(-np.abs(p - 0.5))[: int(0.9 * len(y))]
            assert judged[way].surest[number] == np.mean((p > 0.5)[surest] == y[surest])
            assert judged[way].accuracy[number, -1] == np.mean((p > 0.5) == y)
            parts = np.array_split(np.argsort(p), 10)
            error = sum(abs(p[part].sum() - y[part].sum()) for part in parts) / len(y)
            assert judged[way].calibration_error[number] == pytest.approx(error, abs=0.01)


def test_verdict_on_probabilities_calls_a_smaller_calibration_error_better():
    some = np.array([0.90, 0.91, 0.92])
    errors = np.array([0.050, 0.052, 0.051])
    used = probabilities.Judged(some[:, np.newaxis], some, errors)
    alone = used._replace(calibration_error=errors + np.array([0.0200, 0.0205, 0.0195]))
    text = " ".join(demo.format_probabilities({"with": used, "without": alone}).split())
    assert "accuracy of the surest 90 % no clear difference (+0.0 points" in text
    assert "calibration error better (-2.0 points" in text
    swapped = " ".join(demo.format_probabilities({"with": alone, "without": used}).split())
    assert "calibration error worse (+2.0 points" in swapped
