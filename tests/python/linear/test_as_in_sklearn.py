"""What users of scikit-learn's machines are used to: arguments, weights and limits of threads."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    SafeSVC,
    TotalSVC,
    UncertainKernelSVC,
    UncertainSVC,
    UncertainSVR,
    show_config,
)
from halosvm.checks.parameters import thread_count

MACHINES = [
    UncertainSVC(),
    UncertainSVR(),
    UncertainKernelSVC(),
    IsotropicKernelSVC(),
    TotalSVC(),
    TotalSVC(kernel="rbf"),
    SafeSVC(bounds=(0.0, 0.5), random_state=0),
]
ALL = pytest.mark.parametrize("machine", MACHINES, ids=repr)
N = 40


@pytest.fixture(scope="module")
def data():
    """Return means, one standard deviation for each row, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 3)) + y[:, None], rng.uniform(0.1, 0.5, N), y


def output(machine, X, **errors):
    values = "predict" if isinstance(machine, UncertainSVR) else "decision_function"
    return getattr(machine, values)(X, **errors)


@ALL
def test_weights_come_third(data, machine):
    X, _, y = data
    weights = np.random.default_rng(1).uniform(0.5, 2, N)
    third = output(sklearn.base.clone(machine).fit(X, y, weights), X)
    named = output(sklearn.base.clone(machine).fit(X, y, sample_weight=weights), X)
    np.testing.assert_array_equal(third, named)


@ALL
def test_a_negative_weight_leaves_its_row_out_and_says_so(data, machine):
    X, _, y = data
    weights = np.ones(N)
    weights[5] = 0.0
    expected = output(sklearn.base.clone(machine).fit(X, y, weights), X)
    weights[5] = -2.0
    with pytest.warns(UserWarning, match="sample_weight row 5 is -2;.*this row is left out"):
        model = sklearn.base.clone(machine).fit(X, y, weights)
    np.testing.assert_array_equal(output(model, X), expected)


@ALL
def test_errors_of_new_examples_are_read_and_checked_by_every_method(data, machine):
    X, std, y = data
    model = sklearn.base.clone(machine).fit(X, y)
    for name, given in (("X_std", std), ("X_cov", std**2)):
        values = output(model, X, **{name: given})
        if not isinstance(machine, UncertainKernelSVC):  # whose kernel is an expectation
            np.testing.assert_array_equal(values, output(model, X))
        labels = model.predict(X, **{name: given})
        score = model.score(X, y, **{name: given})
        if not isinstance(machine, UncertainSVR):
            np.testing.assert_array_equal(labels, model.classes_[(values > 0).astype(int)])
            assert score == np.mean(labels == y)
        with pytest.raises(ValueError, match=f"{name} has {N - 1} rows, X has {N}"):
            model.predict(X, **{name: given[1:]})
        with pytest.raises(ValueError, match=f"{name} has {N - 1} rows, X has {N}"):
            model.score(X, y, **{name: given[1:]})


@ALL
def test_errors_are_asked_for_in_fit_and_in_scores(data, machine):
    X, std, y = data
    if isinstance(machine, SafeSVC):
        with sklearn.config_context(enable_metadata_routing=True):
            assert "X_std" not in machine.get_metadata_routing().fit.requests
        return
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(machine, X, y, cv=3, params={"X_std": std}, error_score="raise")
    if isinstance(machine, IsotropicKernelSVC):
        return  # Gaussians of features are not its examples
    whole = cross_validate(machine, Gaussians(X, std=std), y, cv=3, error_score="raise")
    np.testing.assert_allclose(routed["test_score"], whole["test_score"], rtol=1e-12)


@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC()], ids=repr)
def test_coefficients_are_doubles_for_single_precision_as_those_of_liblinear_and_libsvm(
    data, machine
):
    X, _, y = data
    theirs = SVC() if isinstance(machine, UncertainKernelSVC) else LinearSVC()
    name = "dual_coef_" if isinstance(machine, UncertainKernelSVC) else "coef_"
    ours = getattr(sklearn.base.clone(machine).fit(X.astype(np.float32), y), name)
    assert ours.dtype == getattr(theirs.fit(X.astype(np.float32), y), name).dtype


@pytest.mark.parametrize("machine", [UncertainSVC(), UncertainKernelSVC()], ids=repr)
def test_a_class_weight_of_an_absent_class_is_named(data, machine):
    X, _, y = data
    model = sklearn.base.clone(machine)
    with pytest.raises(ValueError, match=r"has the class 7, which y has not; .* 0, 1$"):
        model.set_params(class_weight={0: 1, 7: 3}).fit(X, y)
    model.set_params(class_weight={0: 1, 1: 1, 7: 3}).fit(X, y)  # as in a fold without class 7


def test_limits_of_threads_hold_where_no_number_is_given():
    assert thread_count(3) == 3
    with threadpool_limits(1):
        assert thread_count(None) == 1
        assert show_config("dict")["n_threads"] == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_the_environment_sets_the_number_of_threads(threads):
    program = "from halosvm.checks.parameters import thread_count; print(thread_count(None))"
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == str(threads)


def test_workers_of_joblib_share_the_processors():
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        counts = joblib.Parallel(n_jobs=2)(joblib.delayed(thread_count)(None) for _ in range(2))
    assert counts == [1, 1]
