"""The doctor: its numbers against NumPy and simulated tables, its tests' levels, its screen."""

import numpy as np
import pandas as pd
import pytest

import halosvm
from halosvm import Gaussians
from halosvm.measurement.classifier import MeasurementClassifier
from halosvm.measurement.doctor.examination import Candidate
from halosvm.measurement.doctor.findings import compared, news_of, sizes_of


class Comparison:
    """Stands for a MeasurementClassifier: its table is given."""

    def __init__(self, *rows):
        self.rows = rows

    def fit(self, X, y, **given):
        self.given = given
        self.table_ = list(self.rows)
        self.best_ = min(self.rows, key=lambda row: row[1])[0]
        self.advice_ = f"{self.best_} is best."
        return self


NOTHING = Comparison(("values, logistic", 0.5, 0.02, 0.0, 0.0), ("means", 0.51, 0.02, 0.01, 0.02))
GAIN = Comparison(("values, logistic", 0.5, 0.02, 0.0, 0.0), ("means", 0.3, 0.02, -0.2, 0.03))


def measured(n=200, d=3, told=1.0, seed=0, noise=1.0):
    """Return values, errors as they are told, and labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    v = 1.5 * y[:, None] * (np.arange(d) < 2) + rng.normal(size=(n, d))
    std = noise * np.exp(0.8 * rng.normal(size=(n, d)))
    return v + std * rng.normal(size=(n, d)), told * std, y


def test_shares_are_mean_variances_of_errors_over_those_of_values():
    x, std, _ = measured()
    x[:20, 1] = np.nan
    sizes = sizes_of(Gaussians(x, std=std), np.ones(200))
    there = ~np.isnan(x[:, 1])
    assert sizes.shares[1] == pytest.approx(np.mean(std[there, 1] ** 2) / np.var(x[there, 1]))
    assert sizes.shares[0] == pytest.approx(np.mean(std[:, 0] ** 2) / np.var(x[:, 0]))
    assert sizes.share == pytest.approx(sizes.shares.mean())
    low, high = np.quantile(std[:, 0], [0.1, 0.9])
    assert sizes.unevenness[0] == pytest.approx(high / low)
    np.testing.assert_allclose(sizes.missing, [0, 0.1, 0])


def test_shares_do_not_depend_on_units_and_weights_repeat_rows():
    x, std, _ = measured()
    c = np.arange(200) % 3.0
    one = sizes_of(Gaussians(x, std=std), c)
    units = np.array([1e-3, 1.0, 1e4])
    other = sizes_of(Gaussians(x * units + 5, std=std * units), c)
    np.testing.assert_allclose(other.shares, one.shares, rtol=1e-6)
    rows = np.repeat(np.arange(200), c.astype(int))
    again = sizes_of(Gaussians(x[rows], std=std[rows]), np.ones(len(rows)))
    np.testing.assert_allclose(again.shares, one.shares)


def test_errors_that_say_nothing_of_classes_raise_false_alarms_at_their_level():
    alarms = 0
    for seed in range(30):
        _, std, y = measured(100, 3, seed=seed)
        std[std > np.quantile(std, 0.9)] = np.nan
        alarms += news_of(std, y, np.random.RandomState(seed), judged=False).p_value <= 0.05
    assert alarms <= 5  # binomial(30, 0.05): more have the probability 0.003


@pytest.mark.parametrize("how", ["larger", "wider", "missing", "zero"])
def test_errors_that_tell_classes_apart_are_found(how):
    _, std, y = measured(300)
    ones = np.flatnonzero(y == 1)
    if how == "larger":
        std[ones, 0] *= 2
    elif how == "wider":
        std[ones, 0] **= 3
    else:
        std[ones[:50], 1] = np.nan if how == "missing" else 0.0
    news = news_of(std, y, np.random.RandomState(0))
    assert news.p_value == 0.001
    if how != "wider":
        assert news.log_loss < news.log_loss_of_shares == pytest.approx(np.log(2))


def test_equal_errors_tell_nothing():
    _, _, y = measured()
    assert news_of(np.tile([1.0, 2.0, 0.0], (200, 1)), y, np.random.RandomState(0)) is None


def test_new_rows_like_training_pass_and_others_are_told():
    x, std, _ = measured(400)
    X = Gaussians(x, std=std)
    rng = np.random.RandomState(0)
    alike = compared(X[:300], X[300:], rng)
    assert alike.p_value > 0.05
    assert alike.outside <= 3 * alike.outside_by_chance
    holes = x.copy()
    holes[300:, 1] = np.nan
    other = compared(X[:300], Gaussians(holes, std=5 * std)[300:], rng)
    assert other.p_value < 0.01
    assert other.outside > 10 * alike.outside_by_chance
    assert other.never_missing
    assert other.missing > 0.2


def test_what_is_told_of_errors_is_that_of_the_test_of_populations():
    x, std, y = measured(300, told=0.5)
    found = halosvm.doctor(x, y, X_std=std, classifier=GAIN)
    rows = halosvm.EmpiricalBayes().error_test(x, X_std=std)
    assert found.error_tests == rows
    assert found.told_right is False
    assert "too small" in str(found)
    right = halosvm.doctor(x, y, X_std=2 * std, classifier=GAIN)
    assert right.told_right is True
    assert "Yes, as far as rows tell" in str(right)


def test_advice_follows_the_comparison_and_the_factor():
    x, std, y = measured(300, told=0.5)
    found = halosvm.doctor(x, y, X_std=std, classifier=GAIN)
    assert found.worth_it
    factor = f"{found.error_tests[0].factor:.3g}"
    assert found.code == (f"halosvm.MeasurementClassifier().fit(X, y, X_std={factor} * X_std)")
    assert found.command == "halosvm doctor TABLE --output model.skops"
    found = halosvm.doctor(x, y, X_std=2 * std, classifier=NOTHING)
    assert not found.worth_it
    assert found.code == "halosvm.UncertainSVC().fit(X, y)"
    assert found.command.endswith("--errors distribution --error-scale 0")
    assert "values, logistic is best." in str(found)
    found = halosvm.doctor(x, X_cov=4 * std**2)
    assert found.code == "halosvm.EmpiricalBayes().fit(X, X_cov=X_cov)"


def test_a_gain_of_values_alone_is_none_of_errors():
    rows = (("values, kernel", 0.2, 0.02, -0.3, 0.02), ("means", 0.3, 0.02, -0.2, 0.03))
    x, std, y = measured()
    found = halosvm.doctor(x, y, X_std=std, classifier=Comparison(*NOTHING.rows[:1], *rows))
    assert not found.worth_it
    assert found.best.name == "values, kernel"
    assert found.best.gain == pytest.approx(0.3)
    assert found.best.clear
    assert not Candidate("means", 0.5, 0.01, 0.01).clear


def test_weights_and_groups_reach_the_comparison_and_groups_leave_the_permutation_out():
    x, std, y = measured()
    compare = Comparison(*GAIN.rows)
    found = halosvm.doctor(
        x, y, X_std=std, sample_weight=np.full(200, 2.0), groups=y, classifier=compare
    )
    np.testing.assert_array_equal(compare.given["sample_weight"], 2.0)
    np.testing.assert_array_equal(compare.given["groups"], y)
    assert found.news is None


def test_values_of_a_regression_are_told_and_ways_not_compared():
    x, std, _ = measured()
    found = halosvm.doctor(x, x[:, 0] ** 2, X_std=std, X_test=x, X_test_std=std)
    assert found.values == 200
    assert not found.candidates
    text = str(found)
    assert "200 different numbers are values of a regression" in text
    assert "UncertainSVR" in found.code
    assert all(f"\n{k} " in text for k in (1, 2, 4, 5, 6))


def test_without_labels_errors_alone_are_examined():
    x, std, _ = measured()
    text = str(halosvm.doctor(x, X_std=std))
    assert "\n1 " in text
    assert "\n2 " in text
    assert "\n3 " not in text
    assert "\n5 " not in text


def test_no_line_is_longer_than_100_characters_and_all_fits_one_screen():
    x, std, _ = measured(200, 14, told=0.5)
    x[::7, 3] = np.nan
    y = [f"class of a long name {k % 12}" for k in range(200)]
    names = [f"a feature of a very long name, number {j}" for j in range(14)]
    many = Comparison(
        *((f"candidate of a very long name {k} " * 3, 0.5, 0.1, -k, 0.1) for k in range(30))
    )
    X = pd.DataFrame(x, columns=names)
    found = halosvm.doctor(
        X, y, X_std=std, X_test=X, X_test_std=3 * std, classifier=many, random_state=1
    )
    lines = str(found).split("\n")
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 60
    assert "and 4 features with smaller shares" in str(found)
    assert all(line == line.rstrip() for line in lines)


def test_equal_errors_are_told_to_be_unknown():
    x, _, y = measured()
    text = str(halosvm.doctor(x, y, X_std=np.full(x.shape, 0.5), classifier=NOTHING))
    assert "That cannot be known: its errors are equal in all rows" in text.replace("\n  ", " ")


def test_missing_values_without_errors_are_examined():
    x, _, y = measured()
    x[::5, 0] = np.nan
    found = halosvm.doctor(x, y, classifier=NOTHING)
    assert not found.error_tests
    assert "6.7 % of the values are missing" in str(found)
    assert found.code.startswith("halosvm.MeasurementClassifier")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "neither errors nor missing values"),
        ({"X_std": -np.ones((200, 3))}, "row 0"),
        ({"X_std": np.ones((200, 3)), "X_test": np.ones((5, 2))}, "X_test has 2 features, X has 3"),
        ({"X_std": np.ones((200, 3)), "y": np.zeros(200)}, "one class only: 0.0"),
        ({"X_std": np.ones((200, 3)), "y": np.zeros(7)}, "y has 7 values, X has 200 rows"),
    ],
)
def test_bad_input_is_named(given, match):
    x, _, _ = measured()
    with pytest.raises(ValueError, match=match):
        halosvm.doctor(x, **given)


def test_new_rows_have_the_columns_and_units_of_training():
    x, std, _ = measured()
    X = pd.DataFrame(x, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="feature names should match"):
        halosvm.doctor(X, X_std=std, X_test=X[["b", "a", "c"]], X_test_std=std)
    with pytest.warns(halosvm.ErrorsLeftOutWarning):
        halosvm.doctor(X, X_std=std, X_test=X)


def test_figure_has_four_panels_of_data():
    pytest.importorskip("matplotlib")
    x, std, y = measured()
    x[::9, 2] = np.nan
    figure = halosvm.doctor(x, y, X_std=std, classifier=GAIN).plot()
    assert len(figure.axes) == 4
    assert all(axes.has_data() for axes in figure.axes)
    figure.canvas.draw()


def test_signs_that_are_clear_are_those_of_many_new_rows():
    """Left-out gains that are clear have the sign of the gain on ten times as many rows."""
    right, clear = 0, 0
    for seed in range(2):
        x, std, y = measured(2300, 4, seed=seed, noise=1.5)
        train, test = np.arange(300), np.arange(300, 2300)
        X = Gaussians(x, std=std)
        ways = ["values, logistic", "means, logistic", "posteriors, linear"]
        compare = MeasurementClassifier(ways, random_state=0)
        found = halosvm.doctor(X[train], y[train], classifier=compare)
        ways = [each for each in found.candidates if each.clear]
        if not ways:
            continue
        losses = {}
        for name in {each.name for each in ways} | {"values, logistic"}:
            model = MeasurementClassifier([name], random_state=0)
            p = model.fit(X[train], y[train]).predict_proba(X[test])
            losses[name] = -np.log(p[np.arange(2000), y[test]]).mean()
        for each in ways:
            clear += 1
            right += (losses["values, logistic"] - losses[each.name]) * each.gain > 0
    assert right >= 0.9 * clear
    assert clear


def test_factors_far_from_1_stand_where_they_are_in_the_figure():
    pytest.importorskip("matplotlib")
    x, std, _ = measured(400)
    found = halosvm.doctor(x, X_std=30 * std)
    axes = found.plot().axes[1]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    factors = [row.factor for row in found.error_tests if row.name in found.features]
    np.testing.assert_allclose(sorted(points), sorted(np.maximum(factors, 1e-3)))
    least, most = axes.get_xlim()
    assert min(factors) < 0.1
    assert least < min(points) < 1 < most
