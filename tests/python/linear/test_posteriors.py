"""What the spread of a posterior does to linear machines, and who warns of it."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    Propagate,
    UncertainFourierFeatures,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

SLOPES = np.array([1.0, -2.0, 0.5])
MESSAGE = "UncertainSVR is fitted to posteriors with their spread, which knows nothing of y"


def measured(n, widest=1.2):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n, 3))
    std = rng.uniform(0.1, widest, size=(n, 3))
    X = Gaussians(truth + std * rng.normal(size=(n, 3)), std=std)
    return truth, X, truth @ SLOPES + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_error"])
def test_posterior_means_have_the_slopes_that_posteriors_shrink(loss):
    """Of 3,000 examples slopes are known to 0.03: |y| and errors of 1 over the root of 3,000."""
    _, X, y = measured(3000)
    errors = {}
    for output in ("mean", "gaussian", "mixture"):
        posteriors = EmpiricalBayes(output=output).fit_transform(X)
        reg = UncertainSVR(C=1.0, loss=loss, error_scale=1.0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MESSAGE)
            reg.fit(posteriors, y)
        errors[output] = np.abs(reg.coef_ - SLOPES).max()
    assert errors["mean"] < 0.09
    assert min(errors["gaussian"], errors["mixture"]) > 5 * errors["mean"]


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (UncertainStandardScaler(),),
        (Propagate(StandardScaler()),),
        (UncertainFourierFeatures(20, random_state=0),),
    ],
)
@pytest.mark.parametrize("output", ["gaussian", "mixture"])
def test_regression_on_posteriors_warns_once_behind_any_map(steps, output):
    if steps and output == "mixture":
        pytest.skip("these maps take Gaussians alone, or make them of mixtures")
    _, X, y = measured(100)
    pipeline = make_pipeline(EmpiricalBayes(output=output), *steps, UncertainSVR())
    with pytest.warns(UserWarning, match=MESSAGE) as told:
        pipeline.fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert "EmpiricalBayes(output='mean')" in str(told[0].message)


def test_parts_of_posteriors_are_posteriors():
    _, X, y = measured(100)
    posteriors = EmpiricalBayes().fit_transform(X)
    parts = {
        "rows": posteriors[:60],
        "mask": posteriors[y > -100],
        "columns": posteriors[:, [0, 2]],
        "side by side": np.hstack([X.mean[:, :1], posteriors[:, [1]]]),
        "together": Gaussians.concatenate([posteriors, posteriors]),
    }
    for name, part in parts.items():
        with pytest.warns(UserWarning, match=MESSAGE):
            UncertainSVR().fit(part, np.resize(y, len(part)))
        assert part.posterior, name
    with pytest.warns(UserWarning, match=MESSAGE):
        machine = UncertainSVR().partial_fit(posteriors, y)
    machine.partial_fit(posteriors, y)


def test_there_is_silence_without_the_spread_of_a_posterior():
    truth, X, y = measured(100)
    UncertainSVR().fit(EmpiricalBayes(output="mean").fit_transform(X), y)
    UncertainSVR(error_scale=0).fit(EmpiricalBayes().fit_transform(X), y)
    UncertainSVR().fit(X, y)
    UncertainSVR().fit(EmpiricalBayes(output="gaussian").fit_transform(Gaussians(truth)), y)
    UncertainSVC().fit(EmpiricalBayes().fit_transform(X), y > 0)


def test_expected_logistic_of_posteriors_is_under_confident():
    """Means say what comes true; 2,000 labels tell the share that is right to 0.01."""
    rng = np.random.default_rng(1)
    truth, X, _ = measured(4000)
    y = rng.random(4000) < 1.0 / (1.0 + np.exp(-2.0 * truth @ SLOPES))
    said = {}
    for output in ("mean", "gaussian"):
        maker = EmpiricalBayes(output=output).fit(X[:2000])
        model = UncertainSVC(loss="expected_logistic").fit(maker.transform(X[:2000]), y[:2000])
        f = model.decision_function(maker.transform(X[2000:]))
        p = 1.0 / (1.0 + np.exp(-np.abs(f)))
        said[output] = p.mean() - np.mean((f > 0) == y[2000:])
    assert abs(said["mean"]) < 0.03
    assert said["gaussian"] < -0.05
