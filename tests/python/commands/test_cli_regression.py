"""Regression on the command line: its files hold what the Python API computes."""

import csv
import io
import json

import numpy as np
import pytest
from commands.running import run, summary, without_pairs
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from halosvm import EmpiricalBayes, Gaussians, UncertainStandardScaler, UncertainSVR, load_model
from halosvm.commands.tables.tasks import C_GRID

N, NAMES = 80, ("a", "b", "c")


@pytest.fixture(scope="module")
def measured():
    """Return features, errors of the first two, values and their errors, in unlike units."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)) * [1.0, 100.0, 0.01] + [5.0, 0.0, 1.0]
    errors = rng.uniform(0.0, 0.5, (N, 2)) * [1.0, 100.0]
    noise = rng.uniform(0.1, 3.0, N)
    y = 4.0 * X[:, 0] + 0.05 * X[:, 1] + noise * rng.normal(size=N)
    return X, errors, y, noise


def write(path, X, errors, y, noise=None, *, suffix="_std"):
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    columns |= {NAMES[j] + suffix: errors[:, j] for j in range(errors.shape[1])}
    columns["y"] = y
    if noise is not None:
        columns["y" + suffix] = noise
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return path


@pytest.fixture
def table(tmp_path, measured):
    return write(tmp_path / "table.csv", *measured)


def columns_of(text):
    return np.loadtxt(io.StringIO(text), skiprows=1, delimiter=",")


def train(capsys, table, *options):
    """Train a regression; return the model, its path and the lines of the summary."""
    path = table.with_name("model.json")
    status, out, err = run(
        capsys,
        "train",
        table,
        "--task",
        "regression",
        "--target",
        "y",
        "--errors",
        "distribution",
        *options,
        "--output",
        path,
    )
    assert (status, err.count("\n") <= 1) == (0, True)
    return load_model(path), path, summary(out)


def spreads(errors):
    return np.column_stack([errors, np.zeros(len(errors))])


def direct(measured, noise=None, **parameters):
    """Return the fit on standardised features, and the features as it takes them."""
    X, errors, y, _ = measured
    unit = X.std(axis=0)
    scaled = Gaussians((X - X.mean(axis=0)) / unit, std=spreads(errors) / unit)
    return UncertainSVR(random_state=0, **parameters).fit(scaled, y, y_std=noise), scaled


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--epsilon", 0.5], {"epsilon": 0.5}),
        (["--loss", "squared_epsilon_insensitive"], {"loss": "squared_epsilon_insensitive"}),
        (["--loss", "huber", "--delta", 2.5], {"loss": "huber", "delta": 2.5}),
        (["--loss", "pinball", "--quantile", 0.8], {"loss": "pinball", "quantile": 0.8}),
        (["--loss", "squared_error"], {"loss": "squared_error"}),
        (["--error-scale", 0.5], {"error_scale": 0.5}),
    ],
)
def test_trained_model_is_the_fit_on_standardised_features_and_errors_of_both_sides(
    capsys, table, measured, options, parameters
):
    X, errors, _, noise = measured
    loaded, _, lines = train(capsys, table, "--C", 2, *options)
    expected, scaled = direct(measured, noise, C=2.0, **parameters)
    np.testing.assert_allclose(
        loaded.predict(Gaussians(X, std=spreads(errors))), expected.predict(scaled), rtol=1e-8
    )
    assert loaded.feature_names_in_.tolist() == list(NAMES)
    assert lines["rows"] == "80"
    assert lines["features"] == "3, 2 of them with an error column"
    assert lines["values"].endswith(", with an error column")
    told = lines["loss"].split(", ")
    assert told[0] == parameters.get("loss", "epsilon_insensitive")
    for name, value in parameters.items():
        text = f"errors times {value}" if name == "error_scale" else f"{name} {value}"
        assert name == "loss" or text in told


def test_errors_of_the_values_are_used_unless_their_column_is_dropped(capsys, table, measured):
    X, *_ = measured
    without, _, lines = train(capsys, table, "--C", 2, "--drop", "y_std")
    assert lines["values"].endswith(", no error column")
    expected, scaled = direct(measured, C=2.0)
    np.testing.assert_allclose(
        without.predict(Gaussians(X[:5])), expected.predict(scaled[:5]), rtol=1e-8
    )
    with_noise, *_ = train(capsys, table, "--C", 2)
    assert np.abs(with_noise.coef_ - without.coef_).max() > 1e-3 * np.abs(without.coef_).max()


def test_variances_of_the_values_equal_squared_standard_deviations(tmp_path, capsys, measured):
    X, errors, y, noise = measured
    one, *_ = train(capsys, write(tmp_path / "s.csv", X, errors, y, noise), "--C", 1)
    variances = write(tmp_path / "v.csv", X, errors**2, y, noise**2, suffix="_var")
    other, *_ = train(capsys, variances, "--C", 1, "--errors-in", "_var")
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)


def test_predictions_are_values_and_their_spread_from_the_errors_of_features(
    tmp_path, capsys, table, measured
):
    X, errors, *_ = measured
    _, path, _ = train(capsys, table, "--C", 1)
    status, out, err = run(capsys, "predict", path, table)
    assert status == 0
    assert "80 rows; 3 features, 2 of them with an error column" in err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["value", "value_std"]
    content = json.loads(path.read_text())
    w, b = np.array(content["coef"][0]), content["intercept"][0]
    value = np.array([float(row["value"]) for row in rows])
    size = np.abs(X) @ np.abs(w) + abs(b)
    assert np.all(np.abs(value - (X @ w + b)) <= 1e-14 * size)
    spread = [float(row["value_std"]) for row in rows]
    np.testing.assert_allclose(spread, np.sqrt(spreads(errors) ** 2 @ w**2), rtol=1e-13)
    certain = write(tmp_path / "certain.csv", X, np.empty((N, 0)), np.zeros(N))
    _, out, _ = run(capsys, "predict", path, certain)
    assert out.splitlines()[0] == "value"


def test_evaluation_measures_the_distance_to_the_predictions(tmp_path, capsys, table, measured):
    _, _, y, _ = measured
    _, path, _ = train(capsys, table, "--C", 1)
    predicted = columns_of(run(capsys, "predict", path, table)[1])[:, 0]
    status, out, _ = run(capsys, "evaluate", path, table, "--target", "y")
    assert status == 0
    share = 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)
    assert out.splitlines() == [
        f"R^2                  {share:.4f} (80 rows)",
        f"mean absolute error  {np.abs(y - predicted).mean():.6g}",
    ]
    one = tmp_path / "one.csv"
    one.write_text("a,b,c,y\n5,0,1,20\n")
    status, out, _ = run(capsys, "evaluate", path, one, "--label", "y")
    assert (status, out.splitlines()[0]) == (0, "R^2                  not defined (1 row)")


def test_quantiles_are_judged_by_their_own_loss(capsys, table, measured):
    X, _, y, noise = measured
    options = ["--loss", "pinball", "--quantile", 0.9, "--C", 2, "--folds", 4]
    loaded, path, lines = train(capsys, table, *options)
    losses = []
    for fitted, judged in KFold(4, shuffle=True, random_state=0).split(X):
        part = tuple(whole[fitted] for whole in measured)
        model, _ = direct(part, noise[fitted], C=2.0, loss="pinball", quantile=0.9)
        scaled = (X[judged] - X[fitted].mean(axis=0)) / X[fitted].std(axis=0)
        r = y[judged] - model.predict(scaled)
        losses.append(np.mean(np.maximum(0.9 * r, -0.1 * r)))
    told, how = lines["pinball loss"].split(" by ")
    assert float(told) == pytest.approx(np.mean(losses), rel=1e-5)
    assert how == "4-fold cross-validation"
    _, out, _ = run(capsys, "evaluate", path, table, "--label", "y")
    r = y - loaded.predict(Gaussians(X))
    assert f"pinball loss         {np.mean(np.maximum(0.9 * r, -0.1 * r)):.6g} at the" in out
    assert f"{100 * np.mean(r <= 0):.2f} % of the rows at or below their prediction" in out


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber"])
def test_cross_validated_c_is_the_best_of_a_grid_in_the_unit_of_the_values(
    tmp_path, capsys, measured, loss
):
    X, errors, y, noise = measured
    unit = np.std(y) if loss == "epsilon_insensitive" else 1.0
    options = ["--loss", loss, "--folds", 3]
    loaded, _, lines = train(capsys, write(tmp_path / "t.csv", *measured), *options)
    shares = []
    for C in C_GRID:
        scores = []
        for fitted, judged in KFold(3, shuffle=True, random_state=0).split(X):
            part = tuple(whole[fitted] for whole in measured)
            model, _ = direct(part, noise[fitted], C=C * unit, loss=loss)
            scaled = (X[judged] - X[fitted].mean(axis=0)) / X[fitted].std(axis=0)
            scores.append(model.score(scaled, y[judged]))
        shares.append(np.mean(scores))
    best = unit * C_GRID[int(np.argmax(shares))]
    np.testing.assert_allclose(loaded.C, best, rtol=1e-12)
    assert lines["R^2"].startswith(f"{max(shares):.4f} by 3-fold")
    # The same in another unit of the values: the same C of the grid, and predictions in that unit.
    length = ["--epsilon", 100.0] if loss == "epsilon_insensitive" else ["--delta", 1000.0]
    other = write(tmp_path / "u.csv", X, errors, 1000 * y, 1000 * noise)
    scaled, _, _ = train(capsys, other, *options, *length)
    np.testing.assert_allclose(
        scaled.predict(Gaussians(X)), 1000 * loaded.predict(Gaussians(X)), rtol=1e-6
    )


def test_slopes_of_measurements_are_those_of_true_values(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 3))
    errors = np.ones((3000, 2))
    X = truth + rng.normal(size=(3000, 3)) * [1.0, 1.0, 0.0]
    y = truth.sum(axis=1) + 0.1 * rng.normal(size=3000)
    path = write(tmp_path / "t.csv", X, errors, y)
    as_they_are, *_ = train(capsys, path, "--C", 10)
    loaded, model, lines = train(capsys, path, "--C", 10, "--errors", "measurement")
    assert [type(step) for _, step in loaded.steps] == [EmpiricalBayes, UncertainSVR]
    assert lines["errors"].startswith("measurement: each row is replaced by the posterior mean")
    # the slopes are 1, and 1/3 where errors as large as the spread count twice
    np.testing.assert_allclose(as_they_are.coef_, [1 / 3, 1 / 3, 1.0], atol=0.15)
    np.testing.assert_allclose(loaded[-1].coef_, 1.0, atol=0.15)
    given = Gaussians(X, std=spreads(errors))
    means = EmpiricalBayes(output="mean", random_state=0)
    machine = UncertainSVR(10.0, random_state=0)
    direct = make_pipeline(means, UncertainStandardScaler(), machine)
    expected = direct.fit(given, y).predict(given)
    np.testing.assert_allclose(loaded.predict(given), expected, atol=1e-6)
    told = columns_of(run(capsys, "predict", model, path)[1])
    np.testing.assert_allclose(told[:, 0], loaded.predict(given), rtol=1e-13, atol=1e-13)
    posterior = clone(loaded[0]).set_params(output="gaussian").fit(given).transform(given)
    spread = posterior.covariances.to_full()
    w = loaded[-1].coef_
    np.testing.assert_allclose(told[:, 1] ** 2, np.einsum("j,ijk,k->i", w, spread, w), rtol=1e-4)
    status, out, _ = run(capsys, "evaluate", model, path, "--target", "y")
    assert (status, out.splitlines()[1]) == (
        0,
        f"mean absolute error  {np.abs(y - told[:, 0]).mean():.6g}",
    )


ROWS = "a,a_std,y,y_std\n1,0.1,2,0.1\n2,0.1,4,0.1\n3,0.1,6,0.1\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (ROWS.replace(",6,", ",six,"), [], "line 4, column 'y': 'six' is not a number"),
        (ROWS.replace(",6,", ",,"), [], "line 4, column 'y': missing value (an empty cell)"),
        (ROWS.replace("6,0.1", "6,-1"), [], "line 4, column 'y_std': -1 is negative"),
        (ROWS, ["--features", "a,y"], "column 'y' is given as a feature and as the label"),
        (
            ROWS.replace("y", "z"),
            [],
            "has no column 'y'; its columns are 'a', 'a_std', 'z', 'z_std'",
        ),
        (ROWS, [], "3 rows: too few for cross-validation, give --C a number"),
        (ROWS, ["--epsilon", "-1"], "epsilon must be >= 0 and finite, got -1.0"),
        (ROWS, ["--error-scale", "nan"], "error_scale must be >= 0 and finite, got nan"),
        (
            ROWS,
            ["--loss", "pinball", "--quantile", 1.5],
            "quantile must be between 0 and 1, got 1.5",
        ),
        (
            ROWS,
            ["--loss", "hinge"],
            "--loss hinge is not for --task regression, whose losses are eps",
        ),
        (ROWS, ["--radius", 2], "--radius is of use only with --loss worst_case or best_case"),
        (ROWS, ["--delta", 2], "--delta is of use only with --loss huber"),
        (ROWS, ["--class-weight", "balanced"], "--class-weight is of use only with --task class"),
    ],
)
def test_bad_data_are_status_1_and_bad_requests_2_in_one_line(
    tmp_path, capsys, text, options, message
):
    path = tmp_path / "t.csv"
    path.write_text(text)
    given = [] if "cross-validation" in message else ["--C", 1]
    output = ["--output", tmp_path / "m.json"]
    common = ["train", path, "--task", "regression", "--target", "y", *given, *output]
    status, out, err = run(capsys, *common, *options)
    assert (status, out) == (2 if message.startswith("--") else 1, "")
    assert without_pairs(err).startswith("halosvm train: error: ")
    assert message in err
    assert without_pairs(err).count("\n") == 1
    assert not (tmp_path / "m.json").exists()


def test_few_rows_are_fitted_with_a_given_c_and_not_judged(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    loaded, _, lines = train(capsys, path, "--C", 100)
    assert lines["R^2"] == "not estimated: 3 rows"
    assert isinstance(loaded, UncertainSVR)
