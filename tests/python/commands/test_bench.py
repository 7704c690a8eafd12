"""The benchmark suite: what it measures is what it says, and its report is complete. No speed."""

import dataclasses
import json
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from halosvm import reference
from halosvm.commands import benchmark
from halosvm.commands.benchmark import fits, memory, report, rivals, sampling, throughput, timing
from halosvm.commands.benchmark.data import make_examples, make_toy
from halosvm.commands.benchmark.settings import Settings
from halosvm.commands.benchmark.suite import run_suite
from halosvm.commands.cli import main

LAM = 1e-2
TINY = dataclasses.replace(
    Settings.quick(),
    repeats=2,
    shape=(300, 4),
    features=("correlated",),
    lams=(LAM,),
    narrow_shape=(200, 2),
    tiny_shape=(20, 2),
    pass_bytes=64_000,
    pass_features=(16,),
    steps=20,
    growth_rows=(100, 200),
    growth_features=3,
    width_rows=100,
    width_features=(2, 3),
    classes=3,
    classes_shape=(150, 5),
    memory_shape=(2000, 50),
    draws=(1, 10),
    gaussians=20,
    draw_repeats=2,
    gram_shape=(60, 3),
    factor_shape=(20, 5),
    gram_rows=10,
    deconvolution_shape=(50, 2),
    components=2,
    passes=3,
)


@pytest.fixture(autouse=True, scope="module")
def no_pauses():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "PAUSE", 0.0)
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """What the command writes about tiny data: the content of its JSON file, and the plot."""
    stem = tmp_path_factory.mktemp("bench") / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "quick", classmethod(lambda _: TINY))
        assert main(["bench", "--quick", "--output", str(stem)]) == 0
    return json.loads(stem.with_suffix(".json").read_text()), stem.with_suffix(".png")


def test_report_has_every_measure_with_finite_ratios_and_every_rival_or_its_absence(tiny):
    found, _ = tiny
    assert list(found["sections"]) == list(benchmark.MEASURES)
    rows = [row for section in found["sections"].values() for row in section["rows"]]
    for row in rows:
        assert row["low"] <= row["ratio"] <= row["high"] < math.inf
        assert min(row["ours"], row["theirs"]) >= 0
    names = {row["rival"].split(",")[0] for row in rows}
    assert {"L-BFGS-B", "LinearSVC", "SGDClassifier", "bandwidth", "halosvm.reference"} <= names
    assert {"NumPy", "rbf_kernel", "SVC"} <= names
    packages = {"LIBLINEAR": "liblinear-official", "cyanure": "cyanure", "cvxpy": "cvxpy"}
    packages["astroML"] = "astroML"
    for name, package in packages.items():
        assert (name in names) != (package in found["machine"]["missing"])


def test_every_number_with_a_target_is_in_the_report(tiny):
    found, _ = tiny
    targets = {
        (key, row["case"].split(":")[0], row["rival"].split(",")[0], row["target"])
        for key, section in found["sections"].items()
        for row in section["rows"]
        if row["target"]
    }
    case = f"correlated, lam {LAM:g}"
    expected = {
        ("uncertain", case, "L-BFGS-B", ">= 10"),
        ("uncertain", case, "LinearSVC", ">= 20"),
        ("certain", case, "LinearSVC", ">= 10"),
        ("passes", "d = 16, float64", "bandwidth", ">= 0.5"),
        ("scaling", "uncertain", "100 rows", "<= 12"),
        ("scaling", "certain", "100 rows", "<= 12"),
        ("scaling", "classes", "one against the rest", "<= 5"),
    }
    if "liblinear-official" not in found["machine"]["missing"]:
        expected.add(("certain", case, "LIBLINEAR", ">= 10"))
    for rival in {"NumPy", "astroML"} - set(found["machine"]["missing"]):
        expected.add(("deconvolution", "50 x 2, 2 components", rival, ">= 30"))
    if Path("/proc/self/status").exists():
        expected.add(("memory", "uncertain, 2 MB of data", "64 MB + 2 %", "<= 1"))
    assert targets == expected


def test_gaps_are_above_an_optimum_that_the_rivals_confirm(tiny):
    found, _ = tiny
    for race in found["sections"]["uncertain"]["details"].values():
        assert race["optimum, halosvm"] == pytest.approx(
            race["optimum, best of L-BFGS-B"], rel=1e-6
        )
        for trace in race["traces"].values():
            assert -1e-12 <= min(trace["gaps"]) <= 1e-6
            assert trace["seconds"] == sorted(trace["seconds"])
    for race in found["sections"]["certain"]["details"].values():
        assert min(race["gaps"].values()) >= 0
        assert race["gaps"]["fit, tol 1e-06"] <= 1e-6


def test_kernels_that_are_raced_are_equal_and_rows_left_out_are_told(tiny):
    found, _ = tiny
    section = found["sections"]["kernels"]
    for case, race in section["details"].items():
        far = race["largest difference"]
        assert (
            far > 1e-3 if case == "diagonal, 60 x 3: fit" else far < 1e-4 * ("fit" in case) + 1e-6
        )
    notes = {row["case"]: row["note"] for row in section["rows"] if row["rival"] == "NumPy"}
    assert notes["diagonal, 60 x 3: Gram matrix"] == "NumPy: 10 rows, times 6"
    for row in section["rows"]:
        if row["rival"] == "NumPy":
            seconds = section["details"][row["case"].split(":")[0]]["seconds"]["NumPy"]
            share = 6 if "diagonal" in row["case"] else 2
            assert row["theirs"] == pytest.approx(share * np.median(seconds))


def test_a_step_of_expectation_maximisation_is_the_same_by_all_and_ours_takes_passes(tiny):
    found, _ = tiny
    [race] = found["sections"]["deconvolution"]["details"].values()
    assert max(race["largest difference of a step"].values()) < 1e-12
    rows = found["sections"]["deconvolution"]["rows"]
    seconds = np.divide(race["seconds"]["halosvm"], race["passes"])
    assert race["passes"] == [3, 3]
    assert rows[0]["ours"] == pytest.approx(np.median(seconds))


def test_plot_is_a_picture(tiny):
    pytest.importorskip("matplotlib")
    assert tiny[1].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_without_optional_packages_the_rest_runs_and_they_are_named(tmp_path, capsys, monkeypatch):
    for module in [*report.OPTIONAL, "matplotlib.figure"]:
        monkeypatch.setitem(sys.modules, module, None)
    run_suite(TINY, ("certain",), str(tmp_path / "out"))
    out = capsys.readouterr().out
    assert "left out: liblinear-official, cyanure, cvxpy, astroML, matplotlib" in out
    assert "LinearSVC" in out
    assert "python -m pip install 'halosvm[plot]'" in out
    assert not (tmp_path / "out.png").exists()


def test_only_chosen_measures_run_and_a_plot_that_is_not_drawn_is_not_promised(tmp_path, capsys):
    report_of = run_suite(TINY, ("steps",), str(tmp_path / "out"))
    assert list(report_of["sections"]) == ["steps"]
    assert ".png" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_missing_folder_is_reported_before_the_work(tmp_path, capsys):
    assert main(["bench", "--output", str(tmp_path / "nowhere" / "out")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_contestants_take_turns_and_slow_ones_only_one():
    order = []
    contestants = {
        "a": lambda: order.append("a"),
        "b": lambda: (order.append("b"), time.sleep(0.2)),
    }
    runs = timing.interleave(contestants, 3, slow=0.1)
    assert order == list("abaa")
    assert [len(run.seconds) for run in runs.values()] == [3, 1]


def test_ratio_is_that_of_the_medians_and_its_range_that_of_the_turns():
    row = report.compare("case", [1.0, 2.0, 4.0], "rival", [8.0, 6.0, 4.0])
    assert (row.ours, row.theirs, row.ratio, row.low, row.high) == (2.0, 6.0, 3.0, 1.0, 8.0)
    row = report.compare("case", [1.0, 2.0], "rival", [6.0], ours_over_theirs=True)
    assert (row.ratio, row.low, row.high) == (0.25, 1 / 6, 1 / 3)


def test_targets_are_listed_once_more_and_said_to_be_of_the_full_size():
    section = report.Section("key", "title", "s", "times faster")
    section.add("first case", [1.0], "a rival", [12.0], target=">= 10")
    section.add("second case", [1.0], "a rival", [2.0])
    text = report.format_targets([section], "quick")
    assert "in the full size; these are of the quick one" in text
    assert "12 [12, 12]" in text
    assert ">= 10" in text
    assert "second case" not in text
    assert report.format_targets([], "full") == ""


def test_rival_is_compared_with_the_loosest_tolerance_that_matches_it():
    gaps = fits.LADDER | {"fine": 2e-4, "too good": 1e-12, "squared": 1.0}
    assert fits.matching_step(gaps, "fine") == "fit, tol 0.0001"
    assert fits.matching_step(gaps, "too good") == fits.LAST
    assert fits.matching_step(gaps, "squared") == fits.LAST


@pytest.mark.parametrize("features", ["independent", "correlated"])
def test_examples_are_standardised_and_as_correlated_as_said(features):
    data = make_examples((20_000, 30), features, seed=3)
    np.testing.assert_array_equal(data.mean, make_examples((20_000, 30), features, seed=3).mean)
    np.testing.assert_allclose(data.mean.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(data.mean.std(axis=0), 1, atol=0.35)
    assert 0.004 < data.variance.min() < data.variance.max() <= 0.5
    condition = np.linalg.cond(np.cov(data.mean.T))
    assert 50 < condition < 500 if features == "correlated" else condition < 3
    X = data.gaussians()
    assert np.shares_memory(X.mean, data.mean)
    assert np.shares_memory(X.covariances.values, data.variance)


def test_traces_end_at_the_same_optimum_and_tell_when_a_value_was_reached():
    data = make_examples((400, 5), "correlated", seed=1)
    X = data.gaussians()
    theirs = rivals.lbfgsb_trace(X, data.y, LAM, enough=0.0, n_threads=1)()
    ours = rivals.halosvm_trace(X, data.codes, LAM, 1e-9)()
    assert ours.values.min() == pytest.approx(theirs.values.min(), rel=1e-8)
    assert ours.values[0] == pytest.approx(1.0, rel=1e-14)  # both start at w = 0
    assert theirs.values[0] == pytest.approx(1.0, rel=1e-14)
    half = 0.5 * (1.0 + theirs.values.min())
    stopped = rivals.lbfgsb_trace(X, data.y, LAM, enough=half, n_threads=1)()
    assert stopped.values[-1] <= half
    assert np.all(stopped.values[:-1] > half)
    assert stopped.time_to(half) == stopped.seconds[-1]
    assert stopped.time_to(0.0) == math.inf


@pytest.mark.parametrize("uncertain", [True, False])
def test_conic_solver_agrees_with_halosvm(uncertain):
    data = make_examples((40, 3), "correlated", seed=2, uncertain=uncertain)
    solve = rivals.cvxpy_fit(data, LAM)
    if solve is None:
        pytest.skip("cvxpy is not installed")
    with warnings.catch_warnings(action="ignore"):
        value = rivals.best_value(data.gaussians(), data.codes, solve(), LAM)
    best = rivals.halosvm_best(data, LAM).objective_
    assert best * (1 - 1e-9) <= value <= best * (1 + 1e-4)


def test_plain_rivals_solve_the_hinge_problem_of_the_same_lambda():
    data = make_examples((500, 4), "independent", seed=4, uncertain=False)
    best = rivals.halosvm_best(data, LAM).objective_
    # The penalty on the intercept, some 1e-3 of the loss, is what separates the optima; stochastic
    # gradients are further off, and the squared hinge is another problem.
    solvers = {
        1e-3: rivals.linear_svc(data, LAM, {"tol": 1e-8, "max_iter": 100_000}),
        2e-3: rivals.liblinear(data, LAM, "-s 3 -B 1 -e 1e-6"),
        0.1: rivals.sgd_classifier(data, LAM, {"tol": 1e-6, "max_iter": 1000}),
        0.5: rivals.cyanure(data, LAM),
    }
    for far, solve in solvers.items():
        if solve is not None:
            with warnings.catch_warnings(action="ignore"):
                value = rivals.best_value(data.gaussians(), data.codes, solve(), LAM)
            assert best * (1 - 1e-9) <= value <= best * (1 + far)


def test_best_value_chooses_the_intercept():
    data = make_examples((200, 3), "independent", seed=5)
    X, w = data.gaussians(), np.array([0.3, -0.2, 0.1])
    value = rivals.best_value(X, data.codes, w, LAM)
    around = [
        reference.objective_and_gradient(X, data.y, w, b, LAM)[0] for b in np.linspace(-2, 2, 401)
    ]
    assert value <= min(around)
    assert value == pytest.approx(min(around), rel=1e-4)


def test_draws_are_new_each_time_and_have_the_moments_of_their_gaussians():
    X, y = make_toy(3, 4, seed=0)
    seen = []
    draw = sampling.fit_on_draws(X, y, 20_000, seen.append)
    draw()
    draw()
    assert not np.array_equal(seen[0].mean, seen[1].mean)
    np.testing.assert_array_equal(seen[0].y, np.repeat(y, 20_000))
    for draws, (mean, covariance) in zip(seen[0].mean.reshape(4, -1, 3), X, strict=True):
        # Five standard errors, for variances of up to 4.
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * math.sqrt(4 / 20_000))
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5 * 4 * math.sqrt(2 / 20_000))


def test_angle_is_in_degrees_and_ignores_lengths():
    assert sampling.angle(np.array([1.0, 0.0]), np.array([3.0, 3.0])) == pytest.approx(45)
    assert sampling.angle(np.array([1.0, 0.0]), np.array([2.0, 0.0])) == 0


@pytest.mark.parametrize("kernel", list(throughput.READS))
def test_yardsticks_read_every_number(kernel):
    part = np.arange(1.0, 1001.0)
    before = throughput.READS[kernel](part)
    for place in (0, 499, 999):
        changed = part.copy()
        changed[place] = 1e300
        assert throughput.READS[kernel](changed) != before


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_section_counts_the_data_and_tells_why_a_fit_was_not_measured(tiny):
    found = tiny[0]["sections"]["memory"]
    assert found["details"]["uncertain"]["data"] == 2 * 2000 * 50 * 8
    assert found["details"]["certain"]["data"] == 2000 * 50 * 8
    broken = memory.measure(dataclasses.replace(TINY, memory_shape=(2000, 0)))
    assert broken.rows == []
    assert "certain: not measured: ValueError" in broken.notes
