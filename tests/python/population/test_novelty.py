"""Measurements unlike anything seen: tails are chi^2 and brute force, p-values keep their level."""

import numpy as np
import pytest
from scipy.stats import chi2, zscore
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from halosvm import (
    Covariances,
    EmpiricalBayes,
    Gaussians,
    load_model,
    reference,
    save_model,
)

N, D = 150, 3
RNG = np.random.default_rng(0)
STD = RNG.uniform(0.2, 2.0, (N, D))
ROOTS = RNG.normal(size=(N, D, D)) * 0.5
X = RNG.normal(size=(N, D)) + 5.0 * np.eye(4, D)[np.arange(N) % 4] + STD * RNG.normal(size=(N, D))
X[5, 1] = X[7, 0] = X[7, 2] = np.nan
X[8] = np.nan
COVARIANCES = {
    "diagonal": Covariances.from_std(STD),
    "isotropic": Covariances.isotropic(STD[:, 0] ** 2, D),
    "full": Covariances.full(ROOTS @ ROOTS.transpose(0, 2, 1)),
    "low_rank": Covariances.low_rank(ROOTS[:, :, :1], STD**2),
    "certain": Covariances.zero(N, D),
}


@pytest.fixture(params=COVARIANCES)
def data(request):
    return Gaussians(X, cov=COVARIANCES[request.param])


def parts(population):
    return population.weights_, population.means_, population.covariances_.to_full()


def test_tail_of_one_component_is_chi_squared_of_the_whitened_residual(data):
    model = EmpiricalBayes().fit(data)
    tails = model.tail_probability(data)
    m, V = model.means_[0], model.covariances_[0]
    for i in range(N):
        o = np.flatnonzero(~np.isnan(X[i]))
        T = (V + data.covariances[i])[np.ix_(o, o)]
        rest = X[i, o] - m[o]
        expected = chi2.sf(rest @ np.linalg.solve(T, rest), len(o)) if len(o) else 1.0
        np.testing.assert_allclose(tails[i], expected, rtol=1e-8)


def test_tail_of_a_mixture_is_the_share_of_draws_with_the_errors_of_the_row(data):
    model = EmpiricalBayes(3, random_state=0, reg_covar=0.1, tol=1e-3).fit(data)
    rows = np.array([0, 1, 2, 3, 5, 7, 9, 60])
    tails = model.tail_probability(data[rows])
    S = data.covariances.to_full()[rows].astype(float)
    n = 10_000
    shares = reference.tail_probability(X[rows], S, *parts(model), np.random.default_rng(1), n)
    # 512 draws that fill the law evenly are nearer to it than as many random ones.
    error = np.sqrt(shares * (1 - shares) * (1 / n + 1 / 512)) + 1 / n
    assert (np.abs(tails - shares) < 4 * error).all()
    assert model.tail_probability(data)[8] == 1.0


def test_tail_beyond_all_draws_is_that_of_the_nearest_component():
    model = EmpiricalBayes().fit(X, X_std=STD)
    twice = EmpiricalBayes(2).fit(X, X_std=STD)
    _, means, V = parts(model)
    twice.weights_, twice.means_ = np.array([0.4, 0.6]), np.tile(means, (2, 1))
    twice.covariances_ = Covariances.full(np.concatenate([V, V]))
    far = means[0] + np.outer(np.linspace(0.0, 20.0, 60), [1.0, -1.0, 0.5])
    exact, found = (each.tail_probability(far, X_std=STD[:60]) for each in (model, twice))
    assert exact.min() < 1e-12
    assert np.abs(np.log(found / exact)).max() < 0.5
    assert (np.diff(twice.tail_probability(far, X_std=np.ones(60))) <= 0).all()


def draw(rng, n, K, d):
    """Measurements whose true values have K components."""
    v = rng.normal(size=(n, d)) + 4.0 * np.eye(K, d)[rng.integers(K, size=n)]
    std = rng.uniform(0.2, 2.0, (n, d))
    values = v + std * rng.normal(size=(n, d))
    values[rng.random((n, d)) < 0.05] = np.nan
    return Gaussians(values, std=std)


@pytest.mark.parametrize("K", [1, 4])
def test_one_in_a_hundred_new_measurements_has_a_p_value_of_one_in_a_hundred(K):
    n, tables, n_new = 199, 8, 300
    rng = np.random.default_rng(K)
    straight, honest = [], []
    for seed in range(tables):
        seen, new = draw(rng, n, K, 6), draw(rng, n_new, K, 6)
        model = EmpiricalBayes(K, random_state=seed, tol=1e-3).fit(seen).calibrate_p_values(seen)
        straight.append(np.mean(model.tail_probability(new) <= 0.01))
        honest.append(np.mean(model.p_values(new) <= 0.01))
    # Of one table the share follows Beta(2, 198): two of 200 ranks are up to 1 %. Populations of
    # four fifths of the rows are a little worse, which makes p-values a little larger.
    spread = np.sqrt(0.01 * 0.99 / (n + 2) / tables) + np.sqrt(0.01 / (n_new * tables))
    assert 0.01 - 4 * spread < np.mean(honest) < 0.01 + 3 * spread
    assert np.mean(straight) > np.mean(honest)


def test_left_out_tails_are_those_of_populations_of_the_others():
    data = Gaussians(X, std=STD)
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    model = EmpiricalBayes(2, random_state=0, error_scale=1.5).fit(data)
    model.calibrate_p_values(data, cv=folds)
    expected = np.empty(N)
    for train, test in folds:
        part = EmpiricalBayes(2, random_state=0, error_scale=1.5).fit(data[train])
        expected[test] = part.tail_probability(data[test])
    np.testing.assert_allclose(model.left_out_tails_, np.sort(expected), rtol=1e-9)
    p = model.p_values(data)
    own = model.tail_probability(data)
    ranks = [(1 + np.sum(expected <= each * (1 + 1e-12))) / (N + 1) for each in own]
    np.testing.assert_allclose(p, ranks, rtol=1e-12)


def test_rows_of_one_group_are_left_out_together_and_those_of_no_weight_altogether():
    copies = np.repeat(np.arange(N), 2)
    data = Gaussians(X, std=STD)[copies]
    weights = np.ones(2 * N)
    weights[:40] = 0.0
    model = EmpiricalBayes().fit(data, sample_weight=weights)
    tails = {}
    for groups in (None, copies):
        model.calibrate_p_values(data, sample_weight=weights, groups=groups, cv=2 * N - 40)
        tails[groups is None] = model.left_out_tails_
        assert len(model.left_out_tails_) == 2 * N - 40
    # A copy that stays in the fit draws the population towards itself.
    there = tails[True] < 0.2
    assert (tails[False][there] <= tails[True][there] * (1 + 1e-9)).all()


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_class_left_out_is_better_told_with_errors_than_without(kind):
    values, y = load_wine(return_X_y=True)
    values = zscore(values)
    rng = np.random.default_rng(kind)
    std = np.exp(rng.normal(-0.5, 1.0, values.shape))
    data = Gaussians(values + std * rng.normal(size=values.shape), std=std)
    known = np.flatnonzero(y != kind)
    train, rest = known[::2], np.r_[known[1::2], np.flatnonzero(y == kind)]
    found = []
    for examples in (data, Gaussians(data.mean)):
        model = EmpiricalBayes().fit(examples[train]).calibrate_p_values(examples[train])
        found.append(roc_auc_score(y[rest] == kind, -model.p_values(examples[rest])))
    assert found[0] > found[1] + 0.05


def test_p_values_are_kept_with_the_model_and_end_with_a_new_fit(tmp_path):
    data = Gaussians(X, std=STD)
    model = EmpiricalBayes().fit(data)
    with pytest.raises(NotFittedError, match="call calibrate_p_values with the measurements of"):
        model.p_values(data)
    p = model.calibrate_p_values(data).p_values(data)
    save_model(model, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").p_values(data), p)
    model.fit(data[:100])
    with pytest.raises(NotFittedError):
        model.p_values(data)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cv": 1}, "cv is 1, and there are 150 rows; at least 2 folds are needed"),
        ({"groups": np.zeros(N)}, "cv is 5, and there are 1 groups; at least 2 folds are needed"),
        ({"sample_weight": np.zeros(N)}, "sample_weight is zero for all examples"),
    ],
)
def test_what_cannot_be_left_out_is_refused(given, message):
    model = EmpiricalBayes().fit(X, X_std=STD)
    with pytest.raises(ValueError, match=message):
        model.calibrate_p_values(X, X_std=STD, **given)


def test_responsibilities_are_those_of_the_reference(data):
    model = EmpiricalBayes(3, random_state=0, reg_covar=0.1, tol=1e-3).fit(data)
    S = data.covariances.to_full().astype(float)
    expected = reference.true_value_posterior(X, S, *parts(model))[1]
    np.testing.assert_allclose(model.responsibilities(data), expected, atol=1e-9)
