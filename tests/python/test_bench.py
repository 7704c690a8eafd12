"""The benchmark suite: what it measures is what it says, and its report is complete. No speed."""

import argparse
import dataclasses
import json
import math
import sys
import time
import warnings

import numpy as np
import pytest

from halosvm import Gaussians, UncertainSVC, benchmark, reference
from halosvm.benchmark import certain, memory, passes, rivals, sampling, timing, uncertain
from halosvm.benchmark.data import make_examples, make_toy
from halosvm.benchmark.settings import Settings
from halosvm.benchmark.suite import format_machine, run_suite

TINY = dataclasses.replace(
    Settings.quick(),
    repeats=2,
    shape=(300, 4),
    narrow_shape=(200, 2),
    tiny_shape=(20, 2),
    certain_lams=(1e-2,),
    uncertain_lams=(1e-2,),
    pass_bytes=64_000,
    pass_features=(4,),
    growth_rows=(100, 200),
    growth_features=3,
    width_rows=100,
    width_features=(2, 3),
    classes=3,
    classes_shape=(150, 5),
    memory_shape=None,
    draws=(1, 10),
    gaussians=20,
    draw_repeats=2,
)
LAM = 1e-2


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The JSON file of a run of everything on tiny data, and the name of the files."""
    stem = tmp_path_factory.mktemp("bench") / "tiny"
    run_suite(TINY, benchmark.MEASURES, str(stem))
    return json.loads(stem.with_suffix(".json").read_text(encoding="utf-8")), stem


def test_report_has_every_measure_with_finite_positive_ratios(report):
    found, _ = report
    assert set(found) == {"machine", "settings", "options", "sections"}
    assert list(found["sections"]) == list(benchmark.MEASURES)
    for section in found["sections"].values():
        assert section["rows"]
        assert section["details"]
        for row in section["rows"]:
            assert row["case"]
            assert row["rival"]
            assert 0 < row["low"] <= row["ratio"] <= row["high"]
            assert min(row["ours"], row["theirs"]) > 0
    assert found["machine"]["threads"] >= 1
    assert found["machine"]["config"]["halosvm"]
    assert found["settings"]["repeats"] == 2


def test_every_rival_is_measured_or_reported_missing(report):
    found, _ = report
    missing = found["machine"]["missing"]
    names = {row["rival"].split(",")[0] for s in found["sections"].values() for row in s["rows"]}
    packages = {"LIBLINEAR": "liblinear-official", "cyanure": "cyanure", "cvxpy": "cvxpy"}
    for name, package in packages.items():
        assert (name in names) != (package in missing)
    assert {"L-BFGS-B", "LinearSVC", "SGDClassifier", "bandwidth"} <= names


def test_gaps_are_above_an_optimum_that_the_rivals_confirm(report):
    found, _ = report
    for race in found["sections"]["uncertain"]["details"].values():
        assert race["optimum, halosvm"] == pytest.approx(
            race["optimum, best of L-BFGS-B"], rel=1e-6
        )
        assert race["optimum, halosvm"] <= race["optimum"] * (1 + 1e-9)
        for trace in race["traces"].values():
            assert min(trace["gaps"]) >= -1e-12
            assert min(trace["gaps"]) <= 1e-6
            assert trace["seconds"] == sorted(trace["seconds"])
    for race in found["sections"]["certain"]["details"].values():
        assert min(race["gaps"].values()) >= 0
        assert race["gaps"]["fit, tol 1e-06"] <= 1e-6


def test_plot_is_a_picture(report):
    pytest.importorskip("matplotlib")
    content = report[1].with_suffix(".png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500


def test_options_choose_size_measures_and_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Settings, "quick", classmethod(lambda _: TINY))
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    stem = tmp_path / "out"
    benchmark.run(parser.parse_args(["--quick", "--only", "passes", "--output", str(stem)]))
    out, err = capsys.readouterr()
    assert list(json.loads(stem.with_suffix(".json").read_text())["sections"]) == ["passes"]
    assert "of the bandwidth" in out
    assert str(stem.with_suffix(".json")) in out
    assert "measuring passes" in err
    default = parser.parse_args([])
    assert (default.quick, tuple(default.only)) == (False, benchmark.MEASURES)


def test_missing_folder_is_reported_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run_suite(TINY, benchmark.MEASURES, str(tmp_path / "nowhere" / "out"))


def test_without_optional_packages_the_rest_runs_and_they_are_named(tmp_path, capsys, monkeypatch):
    for module in ("liblinear", "liblinear.liblinearutil", "cyanure", "cyanure.estimators"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("cvxpy", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    run_suite(TINY, ("certain",), str(tmp_path / "out"))
    out = capsys.readouterr().out
    assert "left out: liblinear-official, cyanure, cvxpy, matplotlib" in out
    assert "LinearSVC" in out
    assert "python -m pip install matplotlib" in out
    assert not (tmp_path / "out.png").exists()


def test_a_busy_machine_is_reported():
    machine = timing.describe_machine() | {"threads": 2}
    assert "busy (load 1.5)" in format_machine(TINY, machine | {"load at start": 1.5})
    assert "busy" not in format_machine(TINY, machine | {"load at start": 0.4})
    assert "busy" not in format_machine(TINY, machine | {"load at start": None})


def test_contestants_take_turns_and_slow_ones_only_one():
    order = []
    runs = timing.interleave(
        {
            "a": lambda: order.append("a"),
            "b": lambda: order.append("b"),
            "c": lambda: (order.append("c"), time.sleep(0.02)),
        },
        3,
        slow=0.01,
    )
    assert order == list("abcabab")
    assert [len(run.seconds) for run in runs.values()] == [3, 3, 1]


def test_ratio_is_that_of_the_medians_and_its_range_that_of_the_turns():
    row = timing.compare("case", [1.0, 2.0, 4.0], "rival", [8.0, 6.0, 4.0])
    assert (row.ours, row.theirs, row.ratio, row.low, row.high) == (2.0, 6.0, 3.0, 1.0, 8.0)
    row = timing.compare("case", [1.0, 2.0], "rival", [6.0], ours_over_theirs=True)
    assert (row.ratio, row.low, row.high) == (0.25, 1 / 6, 1 / 3)


@pytest.mark.parametrize("features", ["independent", "correlated"])
def test_examples_are_standardised_overlapping_and_reproducible(features):
    data = make_examples((20_000, 30), features, seed=3)
    again = make_examples((20_000, 30), features, seed=3)
    np.testing.assert_array_equal(data.mean, again.mean)
    np.testing.assert_array_equal(data.variance, again.variance)
    np.testing.assert_allclose(data.mean.mean(axis=0), 0, atol=0.1)
    eigenvalues = np.linalg.eigvalsh(np.cov(data.mean.T))
    condition = eigenvalues[-1] / eigenvalues[0]
    assert 50 < condition < 500 if features == "correlated" else condition < 3
    np.testing.assert_allclose(data.mean.std(axis=0), 1, atol=0.35)
    assert data.variance.min() > 0.004
    assert data.variance.max() <= 0.5
    accuracy = (
        UncertainSVC(0.01).fit(data.certain.gaussians(), data.codes).score(data.mean, data.codes)
    )
    assert accuracy == pytest.approx(0.885, abs=0.015)  # Phi(1.2), the best there is


def test_float32_examples_and_more_classes():
    data = make_examples((500, 6), "correlated", seed=0, classes=4, dtype=np.float32)
    assert data.mean.dtype == data.variance.dtype == np.float32
    assert set(data.codes) == {0, 1, 2, 3}
    assert make_examples((50, 6), "independent", seed=0, uncertain=False).variance is None


def test_solver_traces_agree_on_the_optimum_and_on_how_to_find_it():
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


@pytest.mark.parametrize("uncertain_data", [True, False])
def test_conic_solver_agrees_with_halosvm(uncertain_data):
    pytest.importorskip("cvxpy")
    data = make_examples((40, 3), "correlated", seed=2, uncertain=uncertain_data)
    with warnings.catch_warnings(action="ignore"):
        w = rivals.cvxpy_fit(data, LAM)()
    clf = rivals.halosvm_fit(data, LAM, 1e-8)()
    value = rivals.best_value(data.gaussians(), data.y, w, LAM)
    assert clf.objective_ <= value * (1 + 1e-7)
    assert value == pytest.approx(clf.objective_, rel=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_plain_rivals_solve_the_hinge_problem_of_the_same_lambda():
    data = make_examples((500, 4), "independent", seed=4, uncertain=False)
    X, y = data.gaussians(), data.y
    best = rivals.halosvm_fit(data, LAM, 1e-8)().objective_
    solvers = {
        "LinearSVC": rivals.linear_svc(data, LAM, {"tol": 1e-8, "max_iter": 100_000}),
        "LIBLINEAR": rivals.liblinear(data, LAM, "-s 3 -B 1 -e 1e-6"),
        "SGDClassifier": rivals.sgd_classifier(data, LAM, {"tol": 1e-6, "max_iter": 1000}),
        "cyanure": rivals.cyanure(data, LAM),
    }
    close = {"LinearSVC": 1e-3, "LIBLINEAR": 1e-3, "SGDClassifier": 0.1, "cyanure": 0.5}
    for name, solve in solvers.items():
        if solve is None:
            continue
        value = rivals.best_value(X, y, solve(), LAM)
        assert best * (1 - 1e-7) <= value <= best * (1 + close[name]), name


def test_best_value_chooses_the_intercept():
    data = make_examples((200, 3), "independent", seed=5)
    X, w = data.gaussians(), np.array([0.3, -0.2, 0.1])
    value = rivals.best_value(X, data.y, w, LAM)
    around = [
        reference.objective_and_gradient(X, data.y, w, b, LAM)[0] for b in np.linspace(-2, 2, 401)
    ]
    assert value <= min(around)
    assert value == pytest.approx(min(around), rel=1e-4)


def test_draws_have_the_moments_of_their_gaussians():
    X, y = make_toy(3, 4, seed=0)
    seen = []
    roots = np.linalg.cholesky(X.covariances.values)
    sampled = sampling._Sampled(X, y, roots, 20_000, seen.append)
    sampled()
    sampled()
    assert not np.array_equal(seen[0].mean, seen[1].mean)
    draws = seen[0].mean.reshape(4, 20_000, 3)
    np.testing.assert_array_equal(seen[0].y.reshape(4, -1), np.repeat(y, 20_000).reshape(4, -1))
    np.testing.assert_allclose(draws.mean(axis=1), X.mean, atol=0.06)
    for one, (_, covariance) in zip(draws, X, strict=True):
        np.testing.assert_allclose(np.cov(one.T), covariance, atol=0.15)


def test_plain_svm_on_more_draws_is_nearer_to_the_exact_fit():
    settings = dataclasses.replace(TINY, draws=(1, 1000), draw_repeats=5)
    details = sampling.measure(settings).details
    for found in details.values():
        assert found["halosvm, hinge, 1000"]["angle"] < 0.3 * found["halosvm, hinge, 1"]["angle"]


def test_angle_is_in_degrees_and_ignores_lengths():
    assert sampling._angle(np.array([1.0, 0.0]), np.array([3.0, 3.0])) == pytest.approx(45)
    assert sampling._angle(np.array([1.0, 0.0]), np.array([2.0, 0.0])) == 0


@pytest.mark.parametrize("kernel", list(passes.READS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_yardsticks_read_every_number(kernel, dtype):
    part = np.arange(1.0, 1001.0).astype(dtype)
    before = passes.READS[kernel](part)
    for word in (0, 249, 499):
        changed = part.copy()
        changed.view(np.int64)[word] = 0x7E7E7E7E7E7E7E7E
        assert passes.READS[kernel](changed) != before


def test_memory_of_a_fit_is_measured_in_a_process_of_its_own():
    try:
        memory.peak()
    except OSError:
        pytest.skip("this system does not tell the peak of the memory in use")
    section = timing.Section("scaling", "", "", "")
    from halosvm.benchmark import scaling

    scaling._memory(section, (2000, 50))
    found = section.details["memory"]
    assert found["data"] == 2 * 2000 * 50 * 8
    assert 0 <= found["extra"] < 50e6
    assert "2,000 x 50" in section.notes[-1]


def test_failure_of_the_memory_process_is_a_note(monkeypatch):
    from halosvm.benchmark import scaling

    monkeypatch.setattr(scaling.sys, "executable", sys.executable)
    section = timing.Section("scaling", "", "", "")
    scaling._memory(section, (2000, 0))
    assert "not measured" in section.notes[-1]
    assert "memory" not in section.details


def test_examples_become_gaussians_in_place():
    data = make_examples((10, 2), "independent", seed=0)
    X = data.gaussians()
    assert isinstance(X, Gaussians)
    assert np.shares_memory(X.mean, data.mean)
    assert np.shares_memory(X.covariances.values, data.variance)


def test_halosvm_row_of_a_rival_is_the_fastest_tolerance_that_is_no_worse(report):
    found, _ = report
    details = found["sections"]["certain"]["details"]
    for row in found["sections"]["certain"]["rows"]:
        case, step = row["case"].split(": ")
        race = details[case]
        if "squared" in row["rival"]:
            assert step == certain.LAST
        elif race["gaps"][step] > race["gaps"][row["rival"]]:
            assert step == certain.LAST
            assert "halosvm" in row["note"]


def test_gap_note_never_shows_a_negative_gap():
    assert uncertain.gap_note(-1e-17) == "true gap 0.0e+00"
    assert uncertain.gap_note(1.26e-5) == "true gap 1.3e-05"
