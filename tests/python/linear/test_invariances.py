"""What a change of the data that changes nothing must not change, and fits from many threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
)

LINEAR = pytest.mark.parametrize(
    "machine",
    [
        UncertainSVC(tol=1e-13),
        UncertainSVC(loss="expected_huber_hinge", tol=1e-13),
        UncertainSVC(loss="worst_case", tol=1e-13),
        UncertainSVR(tol=1e-13),
    ],
    ids=repr,
)
N = 120


@pytest.fixture(scope="module")
def data():
    """Return means, standard deviations, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 4)) + y[:, None], rng.uniform(0.1, 0.8, (N, 4)), y


@LINEAR
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_coefficients_do_not_depend_on_origin_order_or_repetition(data, machine):
    X, std, y = data
    coef = clone(machine).fit(X, y, X_std=std).coef_
    order = np.random.default_rng(1).permutation(N)
    twice = np.repeat(np.arange(N), 2)
    for name, other in {
        "origin": clone(machine).fit(X + 100.0, y, X_std=std),
        "order": clone(machine).fit(X[order], y[order], X_std=std[order]),
        "repetition": clone(machine).fit(
            X[twice], y[twice], sample_weight=np.full(2 * N, 0.5), X_std=std[twice]
        ),
    }.items():
        np.testing.assert_allclose(other.coef_, coef, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "machine",
    [UncertainSVC(tol=1e-12), UncertainKernelSVC(), IsotropicKernelSVC(tol=1e-12)],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_weight_of_two_is_the_row_twice_with_its_errors_and_zero_is_its_absence(data, machine):
    X, std, y = data
    std = std[:, 0]
    weights = np.random.default_rng(2).integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    weighted = clone(machine).fit(X, y, weights, X_std=std)
    repeated = clone(machine).fit(X[rows], y[rows], X_std=std[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X, X_std=0),
        repeated.decision_function(X, X_std=0),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "machine", [UncertainSVC(), UncertainKernelSVC(), IsotropicKernelSVC()], ids=repr
)
def test_labels_are_those_that_decision_values_speak_for(data, machine, n_classes):
    X, std, _ = data
    names = np.array(["delta", "alpha", "charlie", "bravo"])
    y = names[np.arange(N) % n_classes]
    X = X + 3.0 * np.eye(4)[np.arange(N) % n_classes]
    model = clone(machine).fit(X, y, X_std=std[:, 0] / 4)
    Z = Gaussians(np.random.default_rng(3).normal(size=(400, 4)))
    values = model.decision_function(Z)
    assert values.shape == ((400,) if n_classes == 2 else (400, n_classes))
    codes = (values > 0).astype(int) if n_classes == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(Z), np.sort(names[:n_classes])[codes])


@pytest.mark.parametrize(
    "machine",
    [
        UncertainSVC(),
        UncertainSVC(solver="sgd", tol=0.05, random_state=0),
        UncertainSVR(),
        UncertainKernelSVC(),
        IsotropicKernelSVC(),
        UncertainFourierFeatures(21, output="mean", random_state=0),
    ],
    ids=repr,
)
def test_eight_threads_at_once_give_the_bits_of_one_after_another(data, machine):
    X, std, y = data
    parts = [slice(10 * i, 10 * i + 50) for i in range(8)]

    def fit(part):
        model = clone(machine).fit(X[part], y[part], X_std=std[part, 0])
        if hasattr(model, "transform"):
            return model.transform(Gaussians(X))
        exact = Gaussians(X)
        return model.decision_function(exact) if hasattr(model, "classes_") else model.predict(X)

    one_by_one = [fit(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(fit, parts))
    for expected, found in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(found, expected)
