"""Parts of a population that are given: they stay, and the others are where EM would rest."""

import itertools

import numpy as np
import pytest

from halosvm import Covariances, EmpiricalBayes, Gaussians, load_model, reference, save_model

N, D, K = 200, 2, 3
RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0], [5.0, 1.0], [0.0, 6.0]])
STD = RNG.uniform(0.2, 1.0, (N, D))
ROOTS = 0.4 * RNG.normal(size=(N, D, D))
X = CENTRES[np.arange(N) % K] + RNG.normal(size=(N, D)) + STD * RNG.normal(size=(N, D))
X[5, 1] = X[7, 0] = np.nan
KINDS = {
    "diagonal": Covariances.from_std(STD),
    "full": Covariances.full(ROOTS @ ROOTS.transpose(0, 2, 1)),
    "certain": Covariances.zero(N, D),
}
INIT = np.array([0.5, 0.3, 0.2]), CENTRES + 0.2, np.stack([np.diag([1.5, 0.8])] * K)
PARTS = ("weights", "means", "covariances")


def step(x, S, a, m, V, fixed, covariance):
    """One step of expectation maximisation with parts that stay, component by component."""
    _, r, b, B = reference.true_value_posterior(x, S, a, m, V)
    q = r.sum(axis=0)
    held = {part: np.isin(np.arange(K), fixed.get(part, [])) for part in PARTS}
    free = ~held["weights"]
    a_next = np.where(free, q * (1.0 - a[~free].sum()) / max(q[free].sum(), 1e-300), a)
    m_next = np.einsum("nk,nkd->kd", r, b) / q[:, None]
    m_next[held["means"]] = m[held["means"]]
    apart = b - m_next
    V_next = np.einsum("nk,nki,nkj->kij", r, apart, apart) + np.einsum("nk,nkij->kij", r, B)
    V_next /= q[:, None, None]
    if covariance == "diagonal":
        V_next *= np.eye(D)
    V_next[held["covariances"]] = V[held["covariances"]]
    return a_next, m_next, V_next


CASES = [{part: which} for part, which in itertools.product(PARTS, ([0], [1, 2], [0, 1, 2]))] + [
    {"weights": [0], "means": [1], "covariances": [0, 2]}
]


@pytest.mark.parametrize("fixed", CASES, ids=str)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_stays_and_a_step_leads_nowhere(kind, covariance, fixed):
    data = Gaussians(X, cov=KINDS[kind])
    settings = {"covariance": covariance, "reg_covar": 0.0, "tol": 1e-9}
    model = EmpiricalBayes(K, init=INIT, fixed=fixed, **settings).fit(data)
    assert model.converged_
    found = model.weights_, model.means_, model.covariances_.to_full()
    for part, values, given in zip(PARTS, found, INIT, strict=True):
        held = fixed.get(part, [])
        np.testing.assert_allclose(values[held], given[held], rtol=1e-12)
    assert found[0].sum() == pytest.approx(1.0, abs=1e-12)
    S = data.covariances.to_full().astype(float)
    for value, after in zip(found, step(X, S, *found, fixed, covariance), strict=True):
        np.testing.assert_allclose(value, after, atol=3e-4)
    assert (np.diff(model.log_likelihood_) >= 0).all()


def test_factors_with_given_means_are_more_likely_nowhere_near():
    data = Gaussians(X, std=STD)
    model = EmpiricalBayes(
        K, init=INIT, fixed={"means": True}, covariance="factors", n_factors=1, tol=1e-9
    ).fit(data)
    np.testing.assert_allclose(model.means_, INIT[1], rtol=1e-12)
    free = EmpiricalBayes(K, init=INIT, covariance="factors", n_factors=1, tol=1e-9).fit(data)
    assert free.score(data) > model.score(data)
    best = model.score(data)
    values, own = (
        np.asarray(each) for each in (model.covariances_.values, model.covariances_.diagonal_values)
    )
    for change in 0.05 * np.random.default_rng(0).normal(size=(20, K, D)):
        model.covariances_ = Covariances.low_rank(values + change[..., None], own * np.exp(change))
        assert model.score(data) < best


def test_a_component_that_is_held_far_from_all_data_keeps_its_weight_and_moves_nothing():
    weights, _, V = INIT
    means = np.array([[0.0, 0.0], [5.0, 1.0], [1e6, 1e6]])
    held = {"weights": [2], "means": [2]}
    for form in ("full", "diagonal", "factors"):
        model = EmpiricalBayes(K, init=(weights, means, V), fixed=held, covariance=form)
        model.fit(X, X_std=STD)
        assert model.weights_[2] == pytest.approx(weights[2], rel=1e-12)
        np.testing.assert_allclose(model.means_[2], 1e6, rtol=1e-12)
        assert np.isfinite(model.covariances_.to_full()).all()
        assert model.converged_


def test_everything_fixed_is_the_start():
    fixed = dict.fromkeys(PARTS, True)
    model = EmpiricalBayes(K, init=INIT, fixed=fixed).fit(X, X_std=STD)
    for values, given in zip(
        (model.weights_, model.means_, model.covariances_.to_full()), INIT, strict=True
    ):
        np.testing.assert_allclose(values, given, rtol=1e-12)
    assert model.bic(X, X_std=STD) == pytest.approx(-2.0 * N * model.score(X, X_std=STD))


def test_criterion_counts_what_is_free_and_files_keep_the_setting(tmp_path):
    fixed = {"weights": [0], "means": [1, 2]}
    model = EmpiricalBayes(K, init=INIT, fixed=fixed).fit(X, X_std=STD)
    free = (K - 1 - 1) + D + K * D * (D + 1) // 2
    expected = free * np.log(N) - 2.0 * N * model.score(X, X_std=STD)
    assert model.bic(X, X_std=STD) == pytest.approx(expected)
    save_model(model, tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").fixed == fixed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fixed": {"means": True}}, "fixed needs init="),
        ({"fixed": {"mean": True}, "init": INIT}, "fixed has the key 'mean'; it can have weights"),
        ({"fixed": {"means": [3]}, "init": INIT}, "fixed: means names component 3; there are 3"),
        ({"fixed": {"means": 0}, "init": INIT}, "fixed: means must be True or a list of numbers"),
        ({"fixed": "means", "init": INIT}, "fixed must be a dict of weights, means, covariances"),
        (
            {"fixed": {"covariances": True}, "init": INIT, "tied": True},
            "fixed holds covariances, and tied=True estimates one for all",
        ),
    ],
)
def test_what_cannot_stay_is_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EmpiricalBayes(K, **settings).fit(X, X_std=STD)
