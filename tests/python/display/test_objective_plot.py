"""`ObjectivePlot`: it shows what the solver reports, and bounds that hold."""

import numpy as np
import pytest

from halosvm import ObjectivePlot, TotalSVC, UncertainKernelSVC, UncertainSVC, UncertainSVR

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def examples(n_classes=2, n=150):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return 1.5 * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes)), y, np.full(n, 0.4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "interior_point", "sgd"])
def test_every_bound_holds_for_the_optimum(solver, n_classes):
    X, y, std = examples(n_classes)
    clf = UncertainSVC(solver=solver, max_iter=30, random_state=0)
    plot = ObjectivePlot.from_estimator(clf, X, y, X_std=std)
    best = UncertainSVC(tol=1e-9).fit(X, y, X_std=std)
    optima = np.atleast_1d(best.objective_)
    # Interior points take one problem after the other, the others all at once.
    assert plot.run.max() == (n_classes - 1 if solver == "interior_point" and n_classes > 2 else 0)
    of_run = optima if plot.run.any() else [optima.max()]
    for run, optimum in enumerate(of_run):
        rows = plot.run == run
        assert (plot.lower_bound[rows] <= optimum * (1 + 1e-12)).all()
        assert (plot.objective[rows] >= optimum * (1 - 1e-8)).all()
        known = plot.lower_bound[rows][np.isfinite(plot.lower_bound[rows])]
        assert (np.diff(known) >= 0).all()


def test_runs_are_drawn_apart():
    reports = {"iterations": np.array([0, 1, 0, 1, 2]), "seconds": np.arange(5.0)}
    gaps = np.array([np.inf, 0.5, 3.0, np.nan, 0.1])
    values = np.array([9.0, 3.0, 8.0, 2.0, 1.1])
    plot = ObjectivePlot(objective=values, suboptimality=gaps, **reports).plot()
    np.testing.assert_array_equal(plot.run, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(plot.lower_bound, [-np.inf, 2, 2, 2, 2])
    np.testing.assert_array_equal(plot.value_.get_xdata(), [0, 1, np.nan, 0, 1, 2])
    np.testing.assert_array_equal(plot.value_.get_ydata(), [9, 3, np.nan, 8, 2, 1.1])


def test_reports_are_those_of_a_fit_that_leaves_the_estimator_and_standard_output_alone(capsys):
    X, y, std = examples()
    clf = UncertainSVC(verbose=1)
    plot = ObjectivePlot.from_estimator(clf, X, y, X_std=std)
    assert not hasattr(clf, "coef_")
    assert not capsys.readouterr().out
    fitted = clf.fit(X, y, X_std=std)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(plot.iterations)
    for line, at, value in zip(lines, plot.iterations, plot.objective, strict=True):
        assert line.startswith(f"iteration {at:>7}   objective {value:.8e}")
    assert plot.objective[-1] == pytest.approx(fitted.objective_, rel=1e-6)
    assert plot.suboptimality[-1] <= plot.tol == fitted.tol
    assert (np.diff(plot.seconds) >= 0).all()


def test_lines_hold_value_bound_and_suboptimality():
    X, y, std = examples()
    plot = ObjectivePlot.from_estimator(UncertainSVC(), X, y, X_std=std)
    np.testing.assert_array_equal(plot.value_.get_xdata(), plot.iterations)
    np.testing.assert_array_equal(plot.value_.get_ydata(), plot.objective)
    known = np.isfinite(plot.lower_bound)
    np.testing.assert_array_equal(plot.bound_.get_ydata()[known], plot.lower_bound[known])
    assert np.isnan(plot.bound_.get_ydata()[~known]).all()
    shown = np.isfinite(plot.suboptimality)
    drawn = plot.suboptimality_line_.get_ydata()
    np.testing.assert_array_equal(drawn[shown], plot.suboptimality[shown])
    assert plot.suboptimality_ax_.get_xlabel() == "iterations"
    again = plot.plot(against="seconds")
    np.testing.assert_array_equal(again.value_.get_xdata(), plot.seconds)


def test_several_fits_share_axes_and_differ_in_colour():
    X, y, std = examples()
    draw = ObjectivePlot.from_estimator
    one = draw(UncertainSVC(), X, y, X_std=std, name="A", against="seconds")
    axes = one.ax_, one.suboptimality_ax_
    two = draw(UncertainSVC(solver="lbfgs"), X, y, X_std=std, name="B", against="seconds", ax=axes)
    assert one.value_.get_color() != two.value_.get_color()
    names = [text.get_text() for text in one.ax_.get_legend().get_texts()]
    assert names == ["A", "certified bound", "B"]
    _, ax = plt.subplots()
    alone = one.plot(ax=ax)
    assert alone.suboptimality_ax_ is alone.suboptimality_line_ is None


def test_values_and_losses_that_are_not_convex_are_shown_too():
    X, y, std = examples()
    assert len(ObjectivePlot.from_estimator(UncertainSVR(), X, X[:, 0], X_std=std).objective)
    total = ObjectivePlot.from_estimator(UncertainSVC(loss="best_case"), X, y, X_std=std)
    assert np.isneginf(total.lower_bound).all()
    assert len(ObjectivePlot.from_estimator(TotalSVC(), X, y, X_std=std).objective)


def test_estimators_that_do_not_report_are_refused():
    X, y, std = examples(n=20)
    with pytest.raises(TypeError, match="UncertainKernelSVC reports no progress"):
        ObjectivePlot.from_estimator(UncertainKernelSVC(), X, y, X_std=std)
    with pytest.raises(ValueError, match="against must be one of iterations, seconds; got 'hours'"):
        ObjectivePlot.from_estimator(UncertainSVC(), X, y, against="hours")
