"""Real data: without errors the model is LIBSVM's, with errors it is the known optimum."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC

from halosvm import Gaussians, UncertainSVC, reference

DATA = Path(__file__).parents[1] / "data"


def standardised(features):
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def read_table(name, *, label, header=0):
    """Return the features of a table and labels in {-1, +1}."""
    with gzip.open(DATA / name, "rt") as file:
        table = np.loadtxt(
            file, delimiter=",", skiprows=header, converters=to_number, encoding="utf-8"
        )
    return np.delete(table, label, axis=1), np.where(table[:, label] > 0, 1, -1)


def to_number(text):
    return {"R": 0.0, "M": 1.0}.get(text.strip()) if text.strip() in "RM" else float(text)


@pytest.fixture(scope="module")
def real_data(heart):
    """Return the means and labels of six sets."""
    cancer = load_breast_cancer()
    tables = {
        name: read_table(f"uci/{name}.dat.gz", label=-1)
        for name in ("sonar", "australian", "spambase")
    }
    tables["wdbc"] = cancer.data, np.where(cancer.target > 0, 1, -1)
    sets = {name: (standardised(X), y) for name, (X, y) in tables.items()}
    return sets | {
        "heart_scale": heart,
        "a1a": read_table("a1a/a1a_dense.csv.gz", label=0, header=1),
    }


SHAPES = {
    "heart_scale": (270, 13),
    "a1a": (1605, 123),
    "sonar": (208, 60),
    "australian": (690, 14),
    "spambase": (4597, 57),
    "wdbc": (569, 30),
}


@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("name", SHAPES)
def test_certain_examples_have_the_optimum_of_libsvm(real_data, name, lam):
    X, y = real_data[name]
    assert X.shape == SHAPES[name]
    assert (np.bincount(y + 1)[[0, 2]] > 50).all()
    C = 1 / (lam * len(y))
    # LIBSVM takes minutes for one of them beyond this.
    tol = 1e-4 if (name, lam) == ("australian", 1e-4) else 1e-8
    svc = SVC(kernel="linear", C=C, tol=tol, cache_size=500).fit(X, y)
    clf = UncertainSVC(C=C).fit(X, y)

    certain = Gaussians(X)
    best, value = (
        reference.objective_and_gradient(certain, y, m.coef_[0], m.intercept_[0], lam)[0]
        for m in (svc, clf)
    )
    assert value <= best * (1 + 1e-6)
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    assert clf.suboptimality_ <= 1e-6
    assert clf.objective_ / (1 + clf.suboptimality_) <= best
    # The dual value of LIBSVM's solution is a bound from below that owes nothing to halosvm.
    alpha = svc.dual_coef_[0]
    w = alpha @ svc.support_vectors_
    dual = lam * (np.abs(alpha).sum() - 0.5 * w @ w)
    assert dual <= value * (1 + 1e-12)
    assert value <= dual * (1 + 1.1e-6)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "interior_point"])
def test_toy_example_of_svm_gsu_is_solved_to_a_millionth(toy, solver):
    means, variances, y = toy
    lam, best = 1e-3, 1.5988772786e-4  # the optimum to ten digits, by an independent solver
    clf = UncertainSVC(C=1 / (lam * len(y)), solver=solver).fit(means, y, X_cov=variances)
    X = Gaussians(means, variance=variances)
    value, *_ = reference.objective_and_gradient(X, y, clf.coef_[0], clf.intercept_[0], lam)
    assert value <= best * (1 + 1e-6)
    assert value >= best * (1 - 1e-10)
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    assert clf.suboptimality_ <= 1e-6
    assert value / best - 1 <= clf.suboptimality_ + 1e-10
    assert (clf.predict(means) == y).all()


def test_errors_of_real_data_are_fitted_to_a_millionth(bracket):
    # Standard errors of ten measurements of cells, one of three in the units of the data.
    cancer = load_breast_cancer()
    means, errors = cancer.data[:, :10], cancer.data[:, 10:20]
    y = np.where(cancer.target > 0, 1, -1)
    spread = means.std(axis=0)
    X = Gaussians(standardised(means), std=errors / spread)
    for lam in (1e-1, 1e-3, 1e-5):
        clf = UncertainSVC(C=1 / (lam * len(y))).fit(X, y)
        low, high = bracket(X, y, lam)
        assert low * (1 - 1e-12) <= clf.objective_ <= high * (1 + 1e-6)
        assert clf.objective_ / (1 + clf.suboptimality_) <= high * (1 + 1e-12)
        in_units = UncertainSVC(C=1 / (lam * len(y))).fit(means, y, X_std=errors)
        low, high = bracket(Gaussians(means, std=errors), y, lam)
        assert low * (1 - 1e-12) <= in_units.objective_ <= high * (1 + 1e-6)
