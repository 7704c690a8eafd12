"""One covariance for all components: scikit-learn without errors, EM's fixed point with them."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from halosvm import Covariances, EmpiricalBayes, Gaussians, load_model, reference, save_model

N, D = 200, 3
RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0, 0.0], [4.0, 1.0, 0.0]])
STD = RNG.uniform(0.2, 1.5, (N, D))
ROOTS = 0.5 * RNG.normal(size=(N, D, D))
TRUE = CENTRES[np.arange(N) % 2] + RNG.normal(size=(N, D)) @ np.array(
    [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]]
)
X = TRUE + STD * RNG.normal(size=(N, D))
X[5, 1] = X[7, 0] = np.nan
KINDS = {
    "diagonal": Covariances.from_std(STD),
    "full": Covariances.full(ROOTS @ ROOTS.transpose(0, 2, 1)),
    "low_rank": Covariances.low_rank(ROOTS[:, :, :1], STD**2),
    "certain": Covariances.zero(N, D),
}


def test_without_errors_it_is_the_tied_mixture_of_scikit_learn():
    model = EmpiricalBayes(2, tied=True, reg_covar=0.0, tol=1e-10, random_state=0).fit(TRUE)
    theirs = GaussianMixture(
        2, covariance_type="tied", tol=1e-10, max_iter=10_000, reg_covar=0.0, random_state=0
    ).fit(TRUE)
    ours, order = np.argsort(model.means_[:, 0]), np.argsort(theirs.means_[:, 0])
    np.testing.assert_allclose(model.means_[ours], theirs.means_[order], atol=1e-4)
    np.testing.assert_allclose(model.weights_[ours], theirs.weights_[order], atol=1e-4)
    for V in model.covariances_.to_full():
        np.testing.assert_allclose(V, theirs.covariances_, atol=1e-4)
    assert model.score(TRUE) == pytest.approx(theirs.score(TRUE), abs=1e-8)
    assert model.bic(TRUE) == pytest.approx(theirs.bic(TRUE), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_with_errors_a_step_of_the_reference_leads_nowhere(kind, covariance):
    data = Gaussians(X, cov=KINDS[kind])
    settings = {"tied": True, "reg_covar": 0.0, "tol": 1e-9, "random_state": 0}
    model = EmpiricalBayes(2, covariance=covariance, **settings).fit(data)
    a, m, V = model.weights_, model.means_, model.covariances_.to_full()
    assert (V[0] == V[1]).all()
    S = data.covariances.to_full().astype(float)
    (a_next, m_next, V_next), _ = reference.deconvolution_step(X, S, a, m, V)
    V_next = np.einsum("k,kij->ij", a_next, V_next)
    if covariance == "diagonal":
        V_next = np.diag(np.diag(V_next))
    # tol leaves sqrt(2 n tol) of the standard errors, about 1 / sqrt(n).
    for found, expected in ((a, a_next), (m, m_next), (V[0], V_next)):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_factors_are_one_for_all_and_errors_of_unknown_size_are_found():
    told = Gaussians(X, std=STD / 2.0)
    model = EmpiricalBayes(2, tied=True, error_scale="estimate", random_state=0).fit(told)
    low, high = model.error_scale_interval_[0]
    assert low < 2.0 < high
    V = model.covariances_.to_full()
    assert (V[0] == V[1]).all()
    factors = EmpiricalBayes(2, tied=True, covariance="factors", n_factors=1, random_state=0)
    V = factors.fit(X, X_std=STD).covariances_.to_full()
    assert (V[0] == V[1]).all()


def test_criterion_counts_one_covariance_and_files_keep_the_setting(tmp_path):
    model = EmpiricalBayes("bic", tied=True, random_state=0).fit(X, X_std=STD)
    k = model.n_components_
    n_parameters = k * D + k - 1 + D * (D + 1) // 2
    expected = n_parameters * np.log(N) - 2.0 * N * model.score(X, X_std=STD)
    assert model.bic(X, X_std=STD) == pytest.approx(expected, rel=1e-12)
    save_model(model, tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").tied is True


def test_what_is_no_answer_is_refused():
    with pytest.raises(TypeError, match="tied must be True or False, got 'auto'"):
        EmpiricalBayes(2, tied="auto").fit(X, X_std=STD)
