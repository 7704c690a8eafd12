"""The spread of decision values by draws and by slopes, against the closed form and many draws."""

import numpy as np
import pytest
from cases import KINDS, each

from halosvm import (
    Covariances,
    GaussianMixtures,
    Gaussians,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    expected_kernel,
)
from halosvm.kernel import spread

KERNELS = {
    "rbf": {"gamma": 0.3},
    "rbf per feature": {"gamma": [0.1, 0.4, 0.9, 0.2]},
    "rbf normalised": {"gamma": 0.3, "normalize": True},
    "laplacian": {"kernel": "laplacian", "gamma": 0.3},
    "poly 2": {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 0.7},
    "poly 3": {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 0.7},
    "linear": {"kernel": "linear"},
}
CORRELATED = (
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
    "columns_low_rank",
    "columns_full",
)
WAYS = ("exact", "draws", "slopes")


@pytest.fixture(params=KERNELS)
def kernel(request):
    """Every kernel that has a spread, with its parameters."""
    return KERNELS[request.param]


def fitted(make_gaussians, kind, kernel, n=40):
    X, y = make_gaussians(kind, n=n, d=4, seed=1)
    if kernel.get("kernel") == "laplacian" and kind in CORRELATED:
        pytest.skip("the Laplacian kernel takes independent features alone")
    return UncertainKernelSVC(**kernel).fit(X, y), X


def of_many_draws(model, mean, covariance, n=30_000):
    """Return the standard deviation of f over a normal law, and the standard error of that."""
    rng = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(covariance)
    points = mean + rng.normal(size=(n, len(mean))) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    f = model.decision_function(points, X_std=0)
    squares = np.square(f - f.mean())
    std = np.sqrt(squares.mean())
    return std, squares.std() / np.sqrt(n) / max(2 * std, 1e-300)


@pytest.mark.filterwarnings("ignore:only the class:sklearn.exceptions.ConvergenceWarning")
@each("kernel", KERNELS.values())
@each("kind", KINDS)
def test_every_kind_and_kernel_agrees_with_many_draws(make_gaussians, kind, kernel):
    model, X = fitted(make_gaussians, kind, kernel)
    row = int(np.argmax(X.covariances.trace()))
    std, error = of_many_draws(model, *X[row])
    if kernel.get("normalize"):  # as the decision value of the example is divided
        unit = Gaussians(X.mean[row : row + 1], cov=Covariances.full(X[row][1][np.newaxis]))
        own = np.sqrt(expected_kernel(unit, gamma=kernel["gamma"])[0, 0])
        std, error = std / own, error / own
    one = X[row : row + 1]
    # 32 values of the even part of f tell its variance to sqrt((kurtosis - 1) / 32): about 1/3
    assert model.set_params(spread="draws").decision_std(one)[0] == pytest.approx(std, rel=0.3)
    if kernel.get("kernel") == "laplacian" or kernel.get("degree") == 3:
        with pytest.raises(ValueError, match="no closed form of the standard deviation"):
            model.set_params(spread="exact").decision_std(one)
    else:
        exact = model.set_params(spread="exact").decision_std(one)[0]
        assert abs(exact - std) <= 5 * error + 1e-12


@each("kind", KINDS)
@each("way", ["draws", "slopes"])
def test_a_linear_function_has_no_error(make_gaussians, kind, way):
    model, X = fitted(make_gaussians, kind, KERNELS["linear"])
    exact = np.sqrt(
        np.einsum("i,nij,j->n", model.coef_[0], X.covariances.to_full(), model.coef_[0])
    )
    found = model.set_params(spread=way).decision_std(X)
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-12)


def test_draws_are_unbiased_for_squares():
    """The mean over many directions of Var(u_1^2) and Var(u_1 u_2) is 2 and 1, as of normal u."""
    rng, n = np.random.default_rng(0), 32
    Q = np.linalg.qr(rng.normal(size=(4000, n, n)))[0] * np.sqrt(n)
    factor = (n + 2) / (n - 1)
    squares, products = np.square(Q[:, :, 0]), Q[:, :, 0] * Q[:, :, 1]
    assert factor * squares.var(axis=1).mean() == pytest.approx(2.0, rel=0.03)
    assert factor * products.var(axis=1).mean() == pytest.approx(1.0, rel=0.05)


def test_draws_have_little_bias_and_scatter_over_rows(make_gaussians):
    model, X = fitted(make_gaussians, "diagonal", KERNELS["rbf"], n=200)
    exact, draws = (model.set_params(spread=way).decision_std(X) for way in ("exact", "draws"))
    ratio = draws / exact
    assert abs(ratio.mean() - 1.0) < 0.03
    assert ratio.std() < 0.12  # 64 independent draws have 0.09, antithetic pairs of them 0.125


@pytest.mark.parametrize(("d", "rtol"), [(70, 1e-8), (300, 0.25)])
def test_many_features_are_drawn_in_more_directions(make_gaussians, d, rtol):
    X, y = make_gaussians("diagonal", n=60, d=d)  # 128 directions tell a variance to 1 / 8
    model = UncertainKernelSVC(kernel="linear").fit(X, y)
    exact, draws = (model.set_params(spread=way).decision_std(X) for way in ("exact", "draws"))
    np.testing.assert_allclose(draws, exact, rtol=rtol)


def test_slopes_are_those_of_the_gradient(make_gaussians):
    """f(x) = sum c exp(-gamma |x - z|^2) of certain support has -2 gamma sum c (x - z) k."""
    Z, y = make_gaussians("zero", n=40, d=4)
    X, _ = make_gaussians("full", n=6, d=4, seed=3)
    model = UncertainKernelSVC(gamma=0.3, spread="slopes").fit(Z, y)
    apart = X.mean[:, np.newaxis] - model.support_vectors_
    k = np.exp(-0.3 * np.square(apart).sum(axis=2))
    slope = -0.6 * np.einsum("j,nj,njd->nd", model.dual_coef_[0], k, apart)
    expected = np.sqrt(np.einsum("ni,nij,nj->n", slope, X.covariances.to_full(), slope))
    np.testing.assert_allclose(model.decision_std(X), expected, rtol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_narrow_examples_keep_their_digits(make_gaussians, way):
    model, X = fitted(make_gaussians, "diagonal", KERNELS["rbf"])
    std = np.sqrt(X.covariances.variances())
    unit = model.set_params(spread="slopes").decision_std(Gaussians(X.mean, std=std))
    model.set_params(spread=way)
    for scale in (1e-5, 1e-9, 1e-100):
        found = model.decision_std(Gaussians(X.mean, std=scale * std))
        np.testing.assert_allclose(found / scale, unit, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_a_row_does_not_depend_on_those_beside_it(make_gaussians, way, monkeypatch):
    for kind in ("ragged_diagonal", "full", "half_certain"):
        model, X = fitted(make_gaussians, kind, KERNELS["rbf"])
        found = model.set_params(spread=way).decision_std(X)
        certain = X.covariances.trace() == 0
        assert (found[certain] == 0).all()
        alone = np.concatenate([model.decision_std(X[i : i + 1]) for i in range(len(X))])
        np.testing.assert_allclose(alone, found, rtol=1e-8, atol=1e-14)
        with monkeypatch.context() as patch:
            patch.setattr(spread, "_BLOCK", 1)
            np.testing.assert_allclose(model.decision_std(X), found, rtol=1e-8, atol=1e-14)


def test_a_bag_of_points_has_the_spread_of_their_values(make_gaussians):
    model, X = fitted(make_gaussians, "zero", KERNELS["rbf"])
    weights = np.tile([0.2, 0.5, 0.3], 4)
    bags = GaussianMixtures(X.mean[:12], weights, 3)
    f = model.decision_function(X.mean[:12], X_std=0).reshape(4, 3)
    centre = f @ [0.2, 0.5, 0.3]
    expected = np.sqrt(np.square(f - centre[:, np.newaxis]) @ [0.2, 0.5, 0.3])
    for way in WAYS:
        found = model.set_params(spread=way).decision_std(bags)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "rbf normalised"])
def test_mixtures_by_draws_are_near_the_closed_form(make_gaussians, name):
    model, X = fitted(make_gaussians, "diagonal", KERNELS[name])
    mixtures = GaussianMixtures(X, np.tile([0.3, 0.7], 20), 2)
    exact, draws = (
        model.set_params(spread=way).decision_std(mixtures) for way in ("exact", "draws")
    )
    np.testing.assert_allclose(draws, exact, rtol=0.2)


def test_auto_takes_the_closed_form_of_few_support_examples(make_gaussians, monkeypatch):
    model, X = fitted(make_gaussians, "diagonal", KERNELS["rbf"])
    found = {way: model.set_params(spread=way).decision_std(X) for way in ("auto", *WAYS)}
    np.testing.assert_array_equal(found["auto"], found["exact"])
    monkeypatch.setattr(spread, "_EXACT_PAIRS", len(model.support_) ** 2 - 1)
    model.set_params(spread="auto")
    np.testing.assert_array_equal(model.decision_std(X), found["draws"])
    np.testing.assert_allclose(model.decision_std(X[:3]), found["draws"][:3], rtol=1e-12)


def test_auto_counts_the_factors_of_the_support(make_gaussians, monkeypatch):
    for kind, rank in (("full", 4), ("low_rank", None)):
        model, X = fitted(make_gaussians, kind, KERNELS["rbf"])
        rank = rank or X.covariances.values.shape[2]
        exact = model.set_params(spread="exact").decision_std(X)
        cost = (len(model.support_) * rank) ** 2
        for limit, same in ((cost, True), (cost - 1, False)):
            monkeypatch.setattr(spread, "_EXACT_PAIRS", limit)
            assert (model.set_params(spread="auto").decision_std(X) == exact).all() == same


def test_a_kernel_without_closed_form_can_be_calibrated(make_gaussians):
    X, y = make_gaussians("diagonal", n=80, d=4)
    machine = UncertainKernelSVC(kernel="laplacian")
    clf = UncertainCalibratedClassifier(machine).fit(X, y)
    std = clf.estimator_.decision_std(X)
    expected = clf.curves_[0].probability(clf.estimator_.decision_function(X), std)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], expected)
    assert (std > 0).all()


def test_a_way_that_does_not_exist_is_refused(make_gaussians):
    X, y = make_gaussians("diagonal", n=40, d=4)
    message = "spread must be one of auto, exact, slopes, draws; got 'sobol'"
    with pytest.raises(ValueError, match=message):
        UncertainKernelSVC(spread="sobol").fit(X, y)
    with pytest.raises(ValueError, match=message):
        UncertainKernelSVC().fit(X, y).set_params(spread="sobol").decision_std(X)


def test_draws_are_not_divided_by_a_kernel_that_vanishes(make_gaussians, monkeypatch):
    rng = np.random.default_rng(0)
    X = Gaussians(0.01 * rng.normal(size=(20, 500)), std=np.full((20, 500), 3.0))
    model = UncertainKernelSVC(gamma=5.0, normalize=True).fit(X, np.arange(20) % 2)
    monkeypatch.setattr(spread, "_EXACT_PAIRS", 0)
    assert np.isfinite(model.decision_std(X)).all()
    with pytest.raises(ValueError, match="kernel of row 0 with itself vanishes; spread must be"):
        model.set_params(spread="draws").decision_std(X)
