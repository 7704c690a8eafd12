"""Linear machines of mixtures of Gaussians against their components by hand, and quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, cross_val_score

from halosvm import (
    Covariances,
    EmpiricalBayes,
    GaussianMixtures,
    Gaussians,
    TotalSVC,
    UncertainCalibratedClassifier,
    UncertainSVC,
    UncertainSVR,
)
from halosvm.calibration.scores import scores

COUNTS = np.array([1, 3, 2, 5, 1, 4, 2, 1, 2, 3, 1, 2] * 3)
N, TOTAL = len(COUNTS), COUNTS.sum()
Y = np.where(np.arange(N) % 4 == 0, "rare", "usual")
VALUES = np.random.default_rng(5).normal(size=N)
WEIGHTS = np.random.default_rng(6).uniform(0.2, 2.0, size=N)
ROWS = np.repeat(np.arange(N), COUNTS)
EXPECTED = [
    "expected_hinge",
    "expected_squared_hinge",
    "expected_logistic",
    "expected_huber_hinge",
]


def make(kind="diagonal", n_features=3):
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(TOTAL, n_features)) + 1.5 * (Y[ROWS] == "rare")[:, np.newaxis]
    F = 0.4 * rng.normal(size=(TOTAL, n_features, 2))
    cov = {
        "diagonal": Covariances.diagonal(rng.uniform(0.05, 1.0, mean.shape)),
        "low_rank": Covariances.low_rank(F),
        "full": Covariances.full(F @ F.transpose(0, 2, 1)),
    }[kind]
    shares = np.concatenate([rng.dirichlet(np.ones(count)) for count in COUNTS])
    return GaussianMixtures(Gaussians(mean, cov=cov), shares, COUNTS)


def alike(model, other, rtol=1e-6):
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=rtol, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=rtol, atol=1e-7)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-9)


@pytest.mark.parametrize("kind", ["diagonal", "low_rank", "full"])
@pytest.mark.parametrize("loss", EXPECTED)
def test_a_mixture_is_its_components_with_shares_of_its_weight(kind, loss):
    X = make(kind)
    model = UncertainSVC(C=2.0, loss=loss, tol=1e-10).fit(X, Y, WEIGHTS)
    by_hand = UncertainSVC(C=2.0, loss=loss, tol=1e-10)
    alike(model, by_hand.fit(X.components, Y[ROWS], WEIGHTS[ROWS] * X.weights), 1e-5)
    assert model.suboptimality_ <= 1e-10


def test_balanced_classes_count_examples_and_not_components():
    X, counts = make(), {"rare": (Y == "rare").sum(), "usual": (Y == "usual").sum()}
    factors = np.array([N / (2 * counts[label]) for label in Y])
    model = UncertainSVC(class_weight="balanced").fit(X, Y)
    alike(model, UncertainSVC().fit(X.components, Y[ROWS], factors[ROWS] * X.weights))


def test_components_without_a_share_count_for_nothing():
    X = make()
    padded = GaussianMixtures(
        Gaussians.concatenate(
            [
                Gaussians.concatenate(
                    [X[i][1], Gaussians(np.full((1, 3), 1e3), variance=np.full((1, 3), 1e3))]
                )
                for i in range(N)
            ]
        ),
        np.concatenate([np.append(X[i][0], 0.0) for i in range(N)]),
        COUNTS + 1,
    )
    for machine, y in ((UncertainSVC(), Y), (UncertainSVR(), VALUES)):
        model = machine.fit(padded, y)
        coef = np.array(model.coef_)
        np.testing.assert_allclose(coef, machine.fit(X, y).coef_, rtol=1e-5, atol=1e-7)


def test_the_objective_is_the_expected_loss_by_quadrature():
    X, C = make(), 0.7
    model = UncertainSVC(C=C, tol=1e-10).fit(X, Y, WEIGHTS)
    w, b = model.coef_[0], model.intercept_[0]
    total = 0.5 * w @ w / (C * WEIGHTS.sum())
    for i in range(N):
        share, part = X[i]
        sign = 1.0 if Y[i] == "usual" else -1.0
        for pi, m, S in zip(share, part.mean, part.covariances.to_full(), strict=True):
            law = norm(1.0 - sign * (w @ m + b), np.sqrt(w @ S @ w))
            top = max(law.mean() + 12 * law.std(), 0.0)
            loss = quad(lambda t, law=law: t * law.pdf(t), 0.0, top, points=[max(law.mean(), 0.0)])
            total += WEIGHTS[i] / WEIGHTS.sum() * pi * loss[0]
    assert model.objective_ == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("kind", ["diagonal", "low_rank", "full"])
def test_decisions_are_those_of_the_law_of_f(kind):
    X = make(kind)
    model = UncertainSVC().fit(X, Y)
    w, b = model.coef_[0], model.intercept_[0]
    values, std, side = (
        function(X)
        for function in (model.decision_function, model.decision_std, model.side_probability)
    )
    np.testing.assert_array_equal(model.predict(X), model.classes_[(values > 0).astype(int)])
    for i in range(0, N, 5):
        share, part = X[i]
        m, s = part.mean @ w + b, np.sqrt(np.einsum("d,nde,e->n", w, part.covariances.to_full(), w))

        def density(t, share=share, m=m, s=s):
            return share @ norm.pdf(t, m, s)

        low, high = (m - 12 * s).min(), (m + 12 * s).max()
        options = {"points": sorted(m), "epsabs": 1e-11, "limit": 200}
        mean = quad(lambda t: t * density(t), low, high, **options)[0]
        square = quad(lambda t: t**2 * density(t), low, high, **options)[0] - mean**2
        assert values[i] == pytest.approx(mean, abs=1e-8)
        assert std[i] == pytest.approx(np.sqrt(square), rel=1e-6)
        above = quad(density, min(0.0, high), high, **options)[0] if high > 0 else 0.0
        assert side[i] == pytest.approx(above, abs=1e-7)


def test_several_classes_take_mixtures_as_well():
    X = make()
    y = X.moments()[0].argmax(axis=1)
    model = UncertainSVC(tol=1e-9).fit(X, y)
    by_hand = UncertainSVC(tol=1e-9).fit(X.components, y[ROWS], X.weights)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-4, atol=1e-6)
    assert model.decision_std(X).shape == model.side_probability(X).shape == (N, 3)
    _, covariance = scores(model, X, logits=False)
    np.testing.assert_allclose(
        np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), model.decision_std(X), rtol=1e-9
    )
    rng, (share, part) = np.random.default_rng(0), X[3]
    counts = rng.multinomial(200_000, share)
    draws = np.concatenate(
        [rng.multivariate_normal(*part[k], count) for k, count in enumerate(counts)]
    )
    expected = np.cov(model.decision_function(draws, X_std=0).T)
    np.testing.assert_allclose(covariance[3], expected, atol=0.03 * expected.max())


def test_mixtures_of_one_component_are_gaussians():
    components = make().components
    X, y = GaussianMixtures(components, np.ones(TOTAL), 1), Y[ROWS]
    model, other = UncertainSVC().fit(X, y), UncertainSVC().fit(components, y)
    alike(model, other)
    for method in ("decision_function", "decision_std", "side_probability"):
        np.testing.assert_allclose(
            getattr(model, method)(X), getattr(model, method)(components), rtol=1e-12
        )


def test_folds_searches_and_calibration_split_mixtures():
    X = make()
    for machine, y in ((UncertainSVC(), Y), (UncertainSVR(), VALUES)):
        found = cross_val_score(machine, X, y, cv=3)
        assert len(found) == 3
        assert np.isfinite(found).all()
    assert GridSearchCV(UncertainSVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, Y).predict(X).shape == (N,)
    clf = UncertainCalibratedClassifier(UncertainSVC(), cv=3).fit(X, Y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0])
def test_error_scale_widens_a_mixture_around_its_mean(scale):
    X = make()
    centres = np.repeat(X.moments()[0], COUNTS, axis=0)
    means = centres + scale * (X.components.mean - centres)
    by_hand = Gaussians(means, variance=scale**2 * X.components.covariances.values)
    model = UncertainSVC(error_scale=scale, tol=1e-9).fit(X, Y)
    alike(model, UncertainSVC(tol=1e-9).fit(by_hand, Y[ROWS], X.weights), 1e-4)
    if scale == 0:
        alike(model, UncertainSVC(tol=1e-9).fit(X.moments()[0], Y), 1e-4)


def test_a_subspace_is_that_of_each_component():
    X = make("full")
    model = UncertainSVC(subspace=0.7).fit(X, Y)
    alike(model, UncertainSVC(subspace=0.7).fit(X.components, Y[ROWS], X.weights))


@pytest.mark.parametrize("loss", ["hinge", "worst_case", "best_case", "marginal_logistic"])
def test_losses_that_are_no_expectations_refuse_mixtures(loss):
    with pytest.raises(ValueError, match=f"loss='{loss}' is no expectation, and of GaussianMix"):
        UncertainSVC(loss=loss).fit(make(), Y)


def test_what_does_not_fit_mixtures_is_refused():
    X = make()
    with pytest.raises(ValueError, match=f"y has {N - 1} values, X has {N} rows"):
        UncertainSVC().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        UncertainSVC().fit(X, Y, np.ones(TOTAL))
    with pytest.raises(ValueError, match="X_std is given, but X is GaussianMixtures"):
        UncertainSVC().fit(X, Y, X_std=np.ones(N))
    with pytest.raises(ValueError, match="X has 2 features, but UncertainSVC is expecting 3"):
        UncertainSVC().fit(X, Y).decision_function(make(n_features=2))
    with pytest.raises(TypeError, match="UncertainKernelSVC, UncertainSVC and UncertainSVR take"):
        TotalSVC().fit(X, Y)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "pinball", "squared_error"])
@pytest.mark.parametrize("noise", [None, np.linspace(0.0, 0.5, N)])
def test_regression_takes_components_with_shares_of_the_weight(loss, noise):
    X, options = make(), {"C": 0.8, "loss": loss, "tol": 1e-10}
    model = UncertainSVR(**options).fit(X, VALUES, WEIGHTS, y_std=noise)
    by_hand = UncertainSVR(**options).fit(
        X.components,
        VALUES[ROWS],
        WEIGHTS[ROWS] * X.weights,
        y_std=None if noise is None else noise[ROWS],
    )
    alike(model, by_hand, 1e-4)
    values, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(values, X.moments()[0] @ model.coef_ + model.intercept_)
    apart = X.components.mean - np.repeat(X.moments()[0], COUNTS, axis=0)
    S = X.components.covariances.to_full() + apart[:, :, np.newaxis] * apart[:, np.newaxis]
    S = np.add.reduceat(X.weights[:, np.newaxis, np.newaxis] * S, X.offsets[:-1])
    expected = np.sqrt(np.einsum("d,nde,e->n", model.coef_, S, model.coef_))
    np.testing.assert_allclose(std, expected, rtol=1e-9)


def test_streams_take_a_step_for_each_component():
    X = make()
    model = UncertainSVC().partial_fit(X, Y, ["rare", "usual"], WEIGHTS, n_total=N)
    other = UncertainSVC().partial_fit(
        X.components, Y[ROWS], ["rare", "usual"], WEIGHTS[ROWS] * X.weights, n_total=N
    )
    np.testing.assert_array_equal(model.coef_, other.coef_)
    model = UncertainSVR().partial_fit(X, VALUES, y_std=WEIGHTS)
    other = UncertainSVR().partial_fit(X.components, VALUES[ROWS], X.weights, y_std=WEIGHTS[ROWS])
    np.testing.assert_array_equal(model.coef_, other.coef_)


def test_posterior_mixtures_go_into_a_classifier():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    truth = np.where(y[:, np.newaxis] == 1, 2.0, -2.0 * rng.choice([-2.0, 1.0], size=(120, 1)))
    truth = truth + 0.3 * rng.normal(size=(120, 2))
    X = Gaussians(truth + 0.7 * rng.normal(size=truth.shape), std=np.full(truth.shape, 0.7))
    posteriors = EmpiricalBayes(3, output="mixture", random_state=0).fit_transform(X)
    model = UncertainSVC().fit(posteriors, y)
    by_hand = UncertainSVC().fit(posteriors.components, np.repeat(y, 3), posteriors.weights)
    alike(model, by_hand)
