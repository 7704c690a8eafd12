"""Threads: the extension needs no GIL, and calls at the same time give what they give one by one.

Needs nothing but the package and pytest, so that it runs where other tools are missing.
"""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import halosvm
from halosvm import Covariances, EmpiricalBayes, Gaussians, UncertainKernelSVC, UncertainSVC

N_THREADS = 8
N, D = 150, 6

_rng = np.random.default_rng(0)
Y = np.arange(N) % 3
MEAN = 5.0 * np.eye(3, D)[Y] + _rng.normal(size=(N, D))
STD = _rng.uniform(0.1, 1.0, (N, D))


def at_once(call):
    """Return the results of calls of one function that all begin together."""
    barrier = threading.Barrier(N_THREADS)

    def wait_and_call(number):
        barrier.wait()
        return call(number)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(wait_and_call, range(N_THREADS)))


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL to disable"
)
def test_imports_leave_the_gil_disabled():
    assert halosvm.UncertainSVC is not None
    assert not sys._is_gil_enabled()


@pytest.mark.parametrize("loss", ["expected_hinge", "expected_logistic", "worst_case"])
def test_fits_of_shared_gaussians_in_threads_equal_fits_one_by_one(loss):
    X = Gaussians(MEAN, std=STD)

    def fit(number):
        svc = UncertainSVC(C=0.1 * (number + 1), loss=loss, n_threads=1 + number % 2)
        return svc.fit(X, Y).coef_

    one_by_one = [fit(number) for number in range(N_THREADS)]
    np.testing.assert_array_equal(at_once(fit), one_by_one)


@pytest.mark.parametrize("kind", ["zero", "diagonal", "low_rank", "full"])
def test_predictions_of_one_model_in_threads_equal_those_one_by_one(kind):
    factors = _rng.normal(size=(N, D, 2))
    covariances = {
        "zero": Covariances.zero(N, D),
        "diagonal": Covariances.diagonal(STD**2),
        "low_rank": Covariances.low_rank(factors),
        "full": Covariances.full(factors @ factors.transpose(0, 2, 1) + np.eye(D)),
    }[kind]
    X = Gaussians(MEAN, cov=covariances)
    svc = UncertainSVC().fit(X, Y)
    expected = svc.decision_function(X), svc.decision_std(X)
    for values, spreads in at_once(lambda _: (svc.decision_function(X), svc.decision_std(X))):
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(spreads, expected[1])


def test_streams_kernels_and_maps_in_threads_equal_those_one_by_one():
    X = Gaussians(MEAN, std=STD)

    def run(number):
        seed = number % 3
        stream = UncertainSVC(solver="sgd", random_state=seed)
        for part in range(3):
            stream.partial_fit(X[part::3], Y[part::3], classes=[0, 1, 2])
        kernel = UncertainKernelSVC(C=1.0 + seed).fit(X, Y)
        truth = EmpiricalBayes(random_state=seed).fit(X)
        return np.concatenate(
            [
                stream.coef_.ravel(),
                kernel.decision_function(X).ravel(),
                truth.transform(X).mean.ravel(),
            ]
        )

    one_by_one = [run(number) for number in range(N_THREADS)]
    np.testing.assert_array_equal(at_once(run), one_by_one)


def test_first_use_of_a_name_in_many_threads_gives_one_object():
    halosvm.__dict__.pop("SafeSVC", None)
    assert len({id(found) for found in at_once(lambda _: halosvm.SafeSVC)}) == 1
