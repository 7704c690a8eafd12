"""Classes of unequal size on the command line: how C is chosen, and who is told of one class."""

import csv

import numpy as np
import pytest
from commands.running import run, summary
from sklearn.model_selection import StratifiedKFold

from halosvm import Gaussians, UncertainStandardScaler, UncertainSVC, load_model
from halosvm.calibration.curves import margin_log_loss
from halosvm.commands.tables.tasks import C_GRID


def rare(seed=3, n=100, apart=1.5, std=0.6):
    """Return measurements of two classes, one of which has 15 of 100 examples."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 20 < 3).astype(int)
    truth = rng.normal(size=(n, 2)) + apart * y[:, np.newaxis]
    return truth + std * rng.normal(size=truth.shape), np.full(truth.shape, std), y


def write(path, x, std, y):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "a_std", "b_std", "kind"])
        writer.writerows(
            [*map(repr, map(float, (*v, *s))), ("usual", "rare")[k]]
            for v, s, k in zip(x, std, y, strict=True)
        )
    return path


@pytest.mark.filterwarnings("ignore:the objective is least at w = 0")
def test_c_finds_a_rare_class_where_no_c_has_a_higher_accuracy(tmp_path, capsys):
    x, std, y = rare()
    X, accuracy = Gaussians(x, std=std), []
    for C in C_GRID:
        hits = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
            scaler = UncertainStandardScaler().fit(X[train])
            clf = UncertainSVC(C=C).fit(scaler.transform(X[train]), y[train])
            hits.append(clf.score(scaler.transform(X[test]), y[test]))
        accuracy.append(np.mean(hits))
    assert max(accuracy) == accuracy[0] == pytest.approx(0.85)  # the larger class alone
    path, model = write(tmp_path / "t.csv", x, std, y), tmp_path / "m.json"
    options = ("--label", "kind", "--errors", "distribution", "--output", model)
    status, out, err = run(capsys, "train", path, *options)
    assert status == 0
    assert "only the class" not in err
    assert summary(out)["accuracy"].endswith("with the best of 9 values of C by log loss")
    found = load_model(model).predict(X)
    assert set(found) == {"rare", "usual"}


def test_one_class_alone_is_told_in_training_and_evaluation(tmp_path, capsys):
    path, model = write(tmp_path / "t.csv", *rare()), tmp_path / "m.json"
    options = ("--label", "kind", "--errors", "distribution", "--output", model)
    told = "note: only the class 'usual' is predicted of all rows"
    status, _, err = run(capsys, "train", path, *options, "--C", "0.01")
    assert status == 0
    assert told in err
    assert "try --class-weight balanced" in err
    status, _, err = run(capsys, "evaluate", model, path, "--label", "kind")
    assert status == 0
    assert told in err
    status, _, err = run(capsys, "train", path, *options, "--class-weight", "balanced")
    assert status == 0
    assert "only the class" not in err


def test_loss_of_margins_is_that_of_the_best_slope():
    rng = np.random.default_rng(0)
    for k in (2, 3):
        codes = rng.integers(0, k, 60)
        f = rng.normal(size=(60, k)) + 1.5 * np.eye(k)[codes]
        weights = rng.uniform(0.5, 2.0, 60)
        if k == 2:
            f = np.column_stack([np.zeros(60), f[:, 1] - f[:, 0]])
        scaled = np.geomspace(1e-3, 1e2, 20_000)[:, np.newaxis, np.newaxis] * f
        logs = np.log(np.exp(scaled - scaled.max(axis=2, keepdims=True)).sum(axis=2))
        mine = scaled[:, np.arange(60), codes] - scaled.max(axis=2) - logs
        expected = (-mine @ weights).min() / weights.sum()
        decision = f[:, 1] if k == 2 else f
        for unit in (1.0, 1e-6, 1e6):
            found = margin_log_loss(unit * decision, codes, weights)
            assert found == pytest.approx(expected, rel=1e-5)


def test_margins_that_say_nothing_or_the_opposite_have_the_loss_of_a_coin():
    y = np.arange(40) % 2
    for f in (np.zeros(40), np.where(y == 1, -1.0, 1.0)):
        assert margin_log_loss(f, y, np.ones(40)) == pytest.approx(np.log(2.0), rel=1e-2)
