"""UncertainSVR: certified optima of every loss of residuals, and scikit-learn's conventions.

Oracles: the formulas of the losses in NumPy and SciPy's minimisers, quadrature, LinearSVR,
QuantileRegressor, HuberRegressor and Ridge for examples without errors.
"""

import numpy as np
import pytest
from estimator_checks import pass_checks
from scipy import optimize
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import HuberRegressor, QuantileRegressor, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR, LinearSVR

from halosvm import Covariances, EmpiricalBayes, Gaussians, UncertainSVR, chunks

LOSSES = (
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "huber",
    "pinball",
    "squared_error",
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", [UncertainSVR(), UncertainSVR(loss="huber", warm_start=True, tol=1e-14)], ids=repr
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator):
    pass_checks(estimator)


def hinge(m, s):
    z = m / s
    return m * ndtr(z) + s * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def square(m, s):
    z = m / s
    return (m * m + s * s) * ndtr(z) + m * s * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def expected_loss(reg, r, s):
    """Return the expected loss of residuals N(r, s^2), s > 0, by the formulas of spec K.3."""
    e, q, k = reg.epsilon, reg.quantile, reg.delta
    return {
        "epsilon_insensitive": lambda: hinge(r - e, s) + hinge(-r - e, s),
        "squared_epsilon_insensitive": lambda: square(r - e, s) + square(-r - e, s),
        "huber": lambda: (r * r + s * s) / 2 - (square(r - k, s) + square(-r - k, s)) / 2,
        "pinball": lambda: q * hinge(r, s) + (1 - q) * hinge(-r, s),
        "squared_error": lambda: r * r + s * s,
    }[reg.loss]()


def plain_loss(reg, r):
    beyond = np.maximum(np.abs(r) - reg.epsilon, 0.0)
    near = np.abs(r) <= reg.delta
    return {
        "epsilon_insensitive": beyond,
        "squared_epsilon_insensitive": beyond**2,
        "huber": np.where(near, r * r / 2, reg.delta * np.abs(r) - reg.delta**2 / 2),
        "pinball": np.maximum(reg.quantile * r, (reg.quantile - 1) * r),
        "squared_error": r * r,
    }[reg.loss]


def objective(reg, X, y, y_std, c, coef, intercept):
    lam = 1.0 / (reg.C * c.sum())
    s2 = np.einsum("j,ijk,k->i", coef, X.covariances.to_full(), coef) + y_std**2
    r = y - X.mean.astype(float) @ coef - intercept
    s = np.sqrt(np.maximum(s2, 0.0))
    psi = expected_loss(reg, r, s) if (s > 0).all() else plain_loss(reg, r)
    return lam / 2 * coef @ coef + (c / c.sum()) @ psi


def problem(seed, loss, kind):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(5, 60), rng.integers(1, 6)
    scale = 10 ** rng.uniform(-3, 3)
    means = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d) + rng.normal() * 3
    y = scale * (means @ rng.normal(size=d) + rng.standard_t(2, n) + 10 * rng.normal())
    std = rng.uniform(0.05, 1.0, (n, d))
    X = {
        "zero": lambda: Gaussians(means),
        "diagonal": lambda: Gaussians(means, std=std),
        "low_rank": lambda: Gaussians(
            means, cov=Covariances.low_rank(rng.normal(size=(n, d, 2)) * 0.3, std**2)
        ),
        "full": lambda: Gaussians(
            means, cov=np.einsum("ijk,ilk->ijl", *2 * [rng.normal(size=(n, d, d)) * 0.4])
        ),
    }[kind]()
    reg = UncertainSVR(
        C=10 ** rng.uniform(-2, 2),
        loss=loss,
        epsilon=scale * rng.uniform(0, 0.5),
        quantile=rng.uniform(0.1, 0.9),
        delta=scale * rng.uniform(0.3, 2.0),
    )
    c = rng.uniform(0.2, 2.0, n) * (rng.random(n) > 0.1)
    c[0] = 1.0
    y_std = scale * rng.uniform(0.1, 0.5, n)
    return reg, X, y, y_std, c


def least_by_scipy(reg, X, y, noise, c):
    """Return the least objective that SciPy finds from the fitted model."""

    def of(u):
        return objective(reg, X, y, noise, c, u[:-1], u[-1])

    return optimize.minimize(of, np.r_[reg.coef_, reg.intercept_], method="Powell").fun


@pytest.mark.parametrize("kind", ["diagonal", "low_rank", "full"])
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_of_uncertain_examples_is_certified_and_that_of_scipy(loss, kind):
    for seed in range(20):
        reg, X, y, y_std, c = problem(seed, loss, kind)
        noise = y_std if seed % 2 else np.zeros(len(y))
        reg.fit(X, y, y_std=noise, sample_weight=c)
        assert reg.suboptimality_ <= 1e-6
        found = objective(reg, X, y, noise, c, reg.coef_, reg.intercept_)
        assert reg.objective_ == pytest.approx(found, rel=1e-9)
        best = least_by_scipy(reg, X, y, noise, c)
        assert found <= best * (1 + 1e-6)
        assert found <= best * (1 + reg.suboptimality_) * (1 + 1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_neighbour_of_a_certain_optimum_is_better(loss, fit_intercept):
    for seed in range(20):
        reg, X, y, _, c = problem(100 + seed, loss, "zero")
        reg.set_params(fit_intercept=fit_intercept).fit(X, y, sample_weight=c)
        assert reg.suboptimality_ <= 1e-6
        none = np.zeros(len(y))
        found = objective(reg, X, y, none, c, reg.coef_, reg.intercept_)
        assert reg.objective_ == pytest.approx(found, rel=1e-8)
        rng = np.random.default_rng(seed)
        for step in 10.0 ** -np.arange(1, 7):
            for _ in range(20):
                w = reg.coef_ + step * rng.normal(size=len(reg.coef_)) * np.abs(reg.coef_).max()
                b = reg.intercept_ + fit_intercept * step * rng.normal() * np.abs(y).max()
                assert found <= objective(reg, X, y, none, c, w, b) * (1 + 1e-6)


def certain_data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_t(3, 150) + 4.0


def test_without_errors_it_is_ridge():
    X, y = certain_data()
    reg = UncertainSVR(C=0.7, loss="squared_error", tol=1e-12).fit(X, y)
    ridge = Ridge(alpha=1 / (2 * 0.7)).fit(X, y)
    np.testing.assert_allclose(reg.coef_, ridge.coef_, atol=1e-5)
    assert reg.intercept_ == pytest.approx(ridge.intercept_, abs=1e-5)


def test_without_errors_it_is_the_huber_regressor():
    # whose scale is fitted too; at its scale, C is 1 / (4 alpha scale)
    X, y = certain_data()
    huber = HuberRegressor(epsilon=1.5, alpha=0.3, tol=1e-9, max_iter=10000).fit(X, y)
    reg = UncertainSVR(
        C=1 / (huber.alpha * huber.scale_), loss="huber", delta=1.5 * huber.scale_, tol=1e-12
    ).fit(X, y)
    np.testing.assert_allclose(reg.coef_, huber.coef_, atol=1e-5)
    assert reg.intercept_ == pytest.approx(huber.intercept_, abs=1e-5)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_without_errors_and_regulariser_it_is_the_quantile_regressor(quantile):
    X, y = certain_data()
    reg = UncertainSVR(C=1e6, loss="pinball", quantile=quantile, tol=1e-9).fit(X, y)
    other = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(reg.coef_, other.coef_, atol=1e-5)
    assert reg.intercept_ == pytest.approx(other.intercept_, abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("epsilon_insensitive", SVR(kernel="linear", C=2.0, epsilon=0.2, tol=1e-9)),
        (
            "squared_epsilon_insensitive",  # the scale leaves nothing of what the intercept costs
            LinearSVR(C=2.0, epsilon=0.2, dual=False, intercept_scaling=1e3, tol=1e-9),
        ),
    ],
)
def test_without_errors_it_is_libsvm_and_liblinear(loss, other):
    X, y = certain_data()
    reg = UncertainSVR(C=2.0, loss=loss, epsilon=0.2, tol=1e-10).fit(X, y)
    other.set_params(**({"loss": loss} if isinstance(other, LinearSVR) else {})).fit(X, y)
    np.testing.assert_allclose(reg.coef_, np.ravel(other.coef_), atol=1e-5)
    assert reg.intercept_ == pytest.approx(float(other.intercept_[0]), abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_expected_loss_of_a_residual_is_its_mean_over_draws(loss):
    # at w = 0, which one example asks for, the residual is y - b +- y_std
    nodes, shares = np.polynomial.hermite_e.hermegauss(180)
    reg = UncertainSVR(loss=loss, fit_intercept=False, epsilon=0.3, quantile=0.7, delta=0.8)
    reg.fit([[0.0], [0.0]], [0.6, -1.1], y_std=[0.5, 0.9])
    draws = plain_loss(reg, np.array([[0.6], [-1.1]]) + np.array([[0.5], [0.9]]) * nodes)
    expected = (draws @ shares / shares.sum()).mean()
    assert reg.objective_ == pytest.approx(expected, rel=2e-3)  # the quadrature of a kink


@pytest.mark.parametrize("loss", LOSSES)
def test_everything_scales_with_the_unit_of_the_values(loss):
    reg, X, y, y_std, c = problem(3, loss, "diagonal")
    one = clone(reg).fit(X, y, y_std=y_std, sample_weight=c)
    degree = 1 if loss in ("epsilon_insensitive", "pinball") else 2
    for t in (1e-9, 1e9):
        other = clone(reg).set_params(
            C=reg.C * t ** (2 - degree), epsilon=reg.epsilon * t, delta=reg.delta * t
        )
        other.fit(X, y * t, y_std=y_std * t, sample_weight=c)
        np.testing.assert_allclose(other.coef_, one.coef_ * t, rtol=1e-6, atol=1e-9 * t)
        assert other.objective_ == pytest.approx(one.objective_ * t**degree, rel=1e-6)


def test_errors_of_the_values_add_to_those_of_the_examples():
    # y_std is what a further feature of weight 1, known but for that error, would bring
    reg, X, y, y_std, c = problem(8, "squared_error", "diagonal")
    reg.set_params(tol=1e-12)
    without = clone(reg).fit(X, y, sample_weight=c)
    with_noise = clone(reg).fit(X, y, y_std=2 * y_std, sample_weight=c)
    np.testing.assert_allclose(with_noise.coef_, without.coef_, rtol=1e-5)
    added = (c * (2 * y_std) ** 2).sum() / c.sum()
    assert with_noise.objective_ == pytest.approx(without.objective_ + added, rel=2e-6)


@pytest.mark.filterwarnings("ignore:UncertainSVR is fitted to posteriors:UserWarning")
@pytest.mark.parametrize(("output", "slope"), [("mean", 1.0), ("gaussian", 0.5)])
def test_means_of_posteriors_have_the_slope_of_true_values_and_their_spread_halves_it(
    output, slope
):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 1))
    X = Gaussians(truth + rng.normal(size=(3000, 1)), std=np.ones((3000, 1)))
    reg = UncertainSVR(C=10.0, loss="squared_error")
    make_pipeline(EmpiricalBayes(output=output), reg).fit(X, truth[:, 0])
    # posteriors have mean x / 2 and variance 1/2: cov(v, x/2) = 1/2 over 1/2, or over 1/2 + 1/2
    assert reg.coef_[0] == pytest.approx(slope, abs=0.06)


@pytest.mark.parametrize("loss", LOSSES)
def test_values_within_the_tube_need_no_slope(loss):
    X = np.random.default_rng(0).normal(size=(20, 2))
    for level in (0.0, 7.3):
        reg = UncertainSVR(loss=loss, epsilon=0.5).fit(X, np.full(20, level))
        assert reg.suboptimality_ == 0
        assert reg.objective_ == 0
        assert not reg.coef_.any()
        np.testing.assert_allclose(reg.predict(X), level, atol=0.5)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "sgd"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_values_that_cost_nothing_end_at_once_without_a_word_of_classes(solver, fit_intercept):
    """The least J is 0: w = 0 is the minimum, whether values are in memory or in chunks."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.uniform(-0.09, 0.07, 30)
    y += 1.7e9 if fit_intercept else 0.0
    for loss in LOSSES[:2]:
        reg = UncertainSVR(loss=loss, solver=solver, fit_intercept=fit_intercept)
        sources = [(X, y)] if solver == "sgd" else [(X, y), (chunks(lambda: [(X, y), (X, y)]),)]
        for source in sources:
            reg.fit(*source)
            assert not reg.coef_.any()
            assert (reg.objective_, reg.suboptimality_, reg.n_iter_) == (0.0, 0.0, 1)
            assert np.abs(y - reg.intercept_).max() <= 0.1
            assert "class" not in reg.status_


def test_a_minimum_at_w_0_is_not_told_in_words_of_classes():
    X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), [0.0, 0.0, 1.0, 1.0]
    reg = UncertainSVR(epsilon=0.0).fit(X, y, X_std=np.full((4, 1), 9.0))
    assert not reg.coef_.any()
    assert "w = 0" in reg.status_
    assert "class" not in reg.status_


def test_predictions_have_the_spread_of_their_inputs():
    X, y = certain_data()
    reg = UncertainSVR().fit(X, y, X_std=np.full(150, 0.1))
    values, std = reg.predict(X[:5], return_std=True, X_std=np.full((5, 4), 0.2))
    np.testing.assert_allclose(values, X[:5] @ reg.coef_ + reg.intercept_)
    np.testing.assert_allclose(std, 0.2 * np.linalg.norm(reg.coef_))
    np.testing.assert_allclose(
        reg.predict(Gaussians(X[:5], std=np.full(5, 0.2)), return_std=True)[1], std
    )
    assert not reg.predict(X[:5], return_std=True, X_std=0)[1].any()
    assert reg.score(X, y) > 0.8
    assert reg.score(Gaussians(X, std=np.full(150, 0.2)), y) == reg.score(X, y)


def test_gaussians_flow_through_searches():
    X, y = certain_data()
    data = Gaussians(X, std=np.full(150, 0.1))
    assert cross_val_score(UncertainSVR(), data, y, cv=3).min() > 0.7
    assert make_pipeline(UncertainSVR()).fit(data, y).score(data, y) > 0.8


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"loss": "hinge"}, {}, "loss must be one of epsilon_insensitive, squared_eps"),
        ({"epsilon": -1.0}, {}, "epsilon must be >= 0 and finite, got -1.0"),
        ({"quantile": 1.0}, {}, "quantile must be between 0 and 1, got 1.0"),
        ({"delta": 0.0}, {}, "delta must be positive and finite, got 0.0"),
        ({}, {"y_std": [0.1, -0.2, 0.3]}, "y_std: row 1 is -0.2; a standard deviation must be"),
        ({}, {"y_std": [0.1, np.nan, 0.3]}, "y_std contains NaN: row 1 is nan"),
        ({}, {"y_std": [0.1, 0.2]}, r"y_std has shape \(2,\), expected \(3,\)"),
        ({}, {"sample_weight": [0, 0, 0]}, "sample_weight is zero for all examples"),
        ({}, {"y": [[1, 2], [3, 4], [5, 6]]}, "y should be a 1d array"),
        ({}, {"y": [1.0, np.inf, 2.0]}, "infinity"),
        ({"solver": "interior_point"}, {"y_std": 0.1}, "errors of the targets"),
        ({"solver": "interior_point", "loss": "huber"}, {}, "expected_huber_hinge"),
    ],
)
def test_bad_input_is_told_with_argument_row_and_value(options, data, message):
    data = {"X": [[1.0], [2.0], [4.0]], "y": [1.0, 2.0, 3.0]} | data
    with pytest.raises(ValueError, match=message):
        UncertainSVR(**options).fit(**data)


def test_predictions_need_a_fit():
    for options in ({}, {"return_std": True}):
        with pytest.raises(NotFittedError):
            UncertainSVR().predict([[1.0]], **options)


def test_warm_start_begins_at_the_last_model():
    reg, X, y, _, c = problem(11, "squared_epsilon_insensitive", "diagonal")
    reg.set_params(warm_start=True, tol=1e-9)
    first = reg.fit(X, y, sample_weight=c).n_iter_
    assert reg.fit(X, y, sample_weight=c).n_iter_ < first
