"""The demo: how variances arise, and that its table holds what independent code computes."""

import io
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC

from halosvm import UncertainSVC, demo
from halosvm.cli import main


@pytest.fixture(scope="module")
def cells():
    return demo.load_cells()


@pytest.fixture(scope="module")
def train():
    return np.random.default_rng(5).permutation(569)[:512]


@pytest.fixture(scope="module")
def quick_outcomes():
    return demo.run(demo.Setup.quick(splits=3, seed=1))


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


def test_isotropic_version_has_the_same_total_variance(cells, train):
    means, variances = demo.scale(cells.features, cells.standard_errors, train)
    diagonal = demo.with_treatment("errors", means, variances).covariances
    isotropic = demo.with_treatment("isotropic", means, variances).covariances
    assert (diagonal.kind, isotropic.kind) == ("diagonal", "isotropic")
    np.testing.assert_allclose(isotropic.trace(), variances.sum(axis=1), rtol=1e-13)
    np.testing.assert_array_equal(diagonal.variances(), variances)
    assert demo.with_treatment("none", means, variances).covariances.kind == "zero"


def test_accuracy_without_errors_agrees_with_libsvm(quick_outcomes):
    setup = demo.Setup.quick(splits=3, seed=1)
    data = load_breast_cancer()
    X, y = data.data, 1 - data.target
    splits = StratifiedShuffleSplit(3, test_size=0.1, random_state=1).split(X, y)
    accuracy = []
    for number, (train, test) in enumerate(splits):
        centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
        folds = StratifiedKFold(3, shuffle=True, random_state=1 + number)
        search = GridSearchCV(SVC(kernel="linear"), {"C": setup.grid}, cv=folds)
        search.fit((X[train] - centre) / spread, y[train])
        accuracy.append(search.score((X[test] - centre) / spread, y[test]))
    np.testing.assert_allclose(quick_outcomes["none"].accuracy, accuracy, rtol=1e-12)


def test_numbers_are_those_of_fits_on_the_training_rows_alone(quick_outcomes, cells):
    splitter = StratifiedShuffleSplit(3, test_size=0.1, random_state=1)
    for number, (train, test) in enumerate(splitter.split(cells.features, cells.labels)):
        means, variances = demo.scale(cells.features, cells.standard_errors, train)
        errors = {
            "errors": {"X_cov": variances[train]},
            "isotropic": {"X_cov": variances[train].mean(axis=1)},
            "none": {},
        }
        for key, outcome in quick_outcomes.items():
            clf = UncertainSVC(
                outcome.chosen_c[number],
                loss="hinge" if key == "none" else "expected_hinge",
                random_state=1 + number,
            )
            clf.fit(means[train], cells.labels[train], **errors[key])
            assert clf.score(means[test], cells.labels[test]) == outcome.accuracy[number]
            # It depends on every training row, unlike the accuracy.
            assert outcome.suboptimality[number] == clf.suboptimality_


def test_every_method_is_run_on_every_split(quick_outcomes):
    assert list(quick_outcomes) == ["errors", "isotropic", "none"]
    for outcome in quick_outcomes.values():
        assert outcome.accuracy.shape == outcome.seconds.shape == (3,)
        # Accuracies are counts of the 57 test rows.
        counts = 57 * outcome.accuracy
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        assert np.all(outcome.accuracy > 0.85)
        assert set(outcome.chosen_c) <= set(demo.Setup.quick().grid)


def test_same_seed_gives_the_same_numbers_and_another_seed_other_splits():
    setup = demo.Setup(splits=2, seed=3, folds=2, grid=(0.1,))
    first, second = demo.run(setup), demo.run(setup)
    other = demo.run(demo.Setup(splits=2, seed=4, folds=2, grid=(0.1,)))
    for key, outcome in first.items():
        np.testing.assert_array_equal(second[key].accuracy, outcome.accuracy)
        np.testing.assert_array_equal(second[key].suboptimality, outcome.suboptimality)
        assert np.any(other[key].suboptimality != outcome.suboptimality)


def test_standard_error_is_that_of_the_mean():
    values = np.array([0.9, 0.95, 1.0, 0.92])
    outcome = demo.Outcome(values, values, values, values)
    assert outcome.standard_error == pytest.approx(stats.sem(values), rel=1e-14)
    one = values[:1]
    assert demo.Outcome(one, one, one, one).standard_error == 0


def outcomes_of(errors, isotropic, none):
    values = {"errors": errors, "isotropic": isotropic, "none": none}
    zeros = np.zeros(len(errors))
    return {
        key: demo.Outcome(np.array(accuracy), zeros + 0.012, zeros + 0.1, zeros + 1e-3)
        for key, accuracy in values.items()
    }


def test_table_holds_means_standard_errors_and_the_numbers_of_the_paper():
    outcomes = outcomes_of([0.9, 1.0, 0.95], [0.9, 0.9, 0.9], [0.8, 1.0, 0.9])
    lines = demo.format_table(outcomes).splitlines()
    # Mean 0.95; standard deviation 0.05, over the square root of 3.
    shown = " ".join(lines[2].split())
    assert shown == "with errors (diagonal) 95.00 +- 2.89 % LSVM-GSU 97.14 % 12.0 ms 0.1 1.0e-03"
    assert "90.00 +- 0.00 %" in lines[3]
    assert "LSVM-iso 96.53 %" in lines[3]
    assert "90.00 +- 5.77 %" in lines[4]
    assert "LSVM 95.15 %" in lines[4]
    assert len({len(line) for line in lines[:5]}) == 1


def test_p_value_is_that_of_the_paired_t_test():
    outcomes = outcomes_of([0.95, 0.97, 0.99], [0.94, 0.96, 0.98], [0.94, 0.95, 0.96])
    *_, isotropic, none = demo.format_table(outcomes).splitlines()
    assert "isotropic errors: +1.00 points, the same in every split" in isotropic
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3) with two degrees of freedom, for which the
    # distribution is p = 1 - t / sqrt(2 + t^2).
    t = 2 * np.sqrt(3)
    assert (
        f"without errors: +2.00 points, paired t-test p = {1 - t / np.sqrt(2 + t * t):.2g}" in none
    )


def test_command_prints_the_table_and_the_next_command_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    assert main(["demo", "--quick", "--splits", "2", "--output", str(picture)]) == 0
    out, err = capsys.readouterr()
    for text in ("97.14 %", "96.53 %", "95.15 %", "sd/sqrt(N)", "paired t-test", str(picture)):
        assert text in out or (text == "paired t-test" and "the same in every split" in out)
    assert out.splitlines()[-1].startswith("Your own table next: halosvm train ")
    assert err == "split 1 of 2\nsplit 2 of 2\n"
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500


def test_without_matplotlib_the_demo_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    setup = demo.Setup(splits=1, folds=2, grid=(0.1,))
    demo.main(setup, str(tmp_path / "demo.png"))
    out = capsys.readouterr().out
    assert "python -m pip install matplotlib" in out
    assert "halosvm train" in out
    assert not (tmp_path / "demo.png").exists()


def test_progress_on_a_terminal_stays_on_one_line_and_is_wiped():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    demo.run(demo.Setup(splits=2, folds=2, grid=(0.1,)), stream)
    shown = stream.getvalue()
    assert "\n" not in shown
    steps = shown.split("\r")
    assert sum("split 2 of 2" in step for step in steps) == 3
    assert max(len(step) for step in steps) <= 79
    assert not steps[-2].strip()
    assert not steps[-1]
