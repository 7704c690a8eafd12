"""Ctrl-C ends a long call soon and leaves the estimator as it was; threads and forks do no harm."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from halosvm import Gaussians, UncertainSVC

# A call that never looks for signals would go on for hours; half a second is what is aimed at, and
# what is beyond it is for machines that are busy with other things.
LONGEST = 2.0

PREAMBLE = """
import json, os, signal, threading, time, warnings
import numpy as np
from scipy import sparse
from halosvm import Covariances, GaussianMixtures, Gaussians, UncertainSVC, _core, expected_kernel

warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in background jobs
rng = np.random.default_rng(0)
results = {}

def interrupt(name, call, delay=0.2, state=dict, ready=lambda: True):
    sent = []
    def send():
        while not ready():
            time.sleep(0.01)
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        while True:  # in case that one call ends before the signal
            before = state()
            call()
    except KeyboardInterrupt:
        latency = time.perf_counter() - sent[0]
    sender.join()
    after = state()
    same = after.keys() == before.keys() and all(after[key] is before[key] for key in before)
    results[name] = {"latency": latency, "unchanged": same}
"""

SCRIPT = """
def fit(name, X, y, *, delay=0.2, solver="sgd", **options):
    options = {"max_iter": 10**9, "tol": 0.0, "random_state": 0, "solver": solver, **options}
    clf = UncertainSVC(max_iter=1).fit(X[:100], y[:100]).set_params(**options)
    interrupt(name, lambda: clf.fit(X, y), delay, lambda: dict(clf.__dict__))
    clf.predict(X[:10])

X = Gaussians(rng.random((300_000, 20), np.float32), variance=rng.random((300_000, 20)))
y = np.arange(300_000) % 2
fit("one thread", X, y, n_threads=1)
fit("two threads", X, y, n_threads=2)
fit("several classes, one thread", X, np.arange(300_000) % 8, n_threads=1, delay=0.9)
fit("several classes, two threads", X, np.arange(300_000) % 8, n_threads=2, delay=0.6)
fit("all rows in a batch", X, y, batch_size=10**9)
fit("literal schedule", X, y, averaging="none")
fit("hinge", X, y, loss="hinge")
fit("verbose", X, y, verbose=1)
few = Gaussians(rng.random((20, 100_000)), variance=rng.random((20, 100_000)))
fit("many features", few, np.arange(20) % 2)
dense = Gaussians(rng.random((2000, 50)), cov=Covariances.full(np.tile(np.eye(50), (2000, 1, 1))))
fit("full covariances", dense, np.arange(2000) % 2)

for solver in ("lbfgs", "interior_point"):
    fit(f"{solver}, one thread", X, y, solver=solver, n_threads=1)
    fit(f"{solver}, two threads", X, y, solver=solver, n_threads=2)
    fit(f"{solver}, several classes", X, np.arange(300_000) % 8, solver=solver)
    fit(f"{solver}, full covariances", dense, np.arange(2000) % 2, solver=solver)
fit("auto, uncertain", X, y, solver="auto")
fit("auto, certain", X, y, solver="auto", loss="hinge")
fit("auto, verbose", X, y, solver="auto", verbose=1)
fit("auto, many features", few, np.arange(20) % 2, solver="auto")
columns = rng.integers(0, 5_000, 20 * 300_000)
few = sparse.csr_array((rng.random(columns.size), columns, np.arange(0, columns.size + 1, 20)))
few.sum_duplicates()
for threads in (1, 2):
    options = {"solver": "dual_coordinate", "loss": "hinge", "n_threads": threads}
    fit(f"dual_coordinate, {threads} threads", few, y, **options)
    fit(f"dual_coordinate, several classes, {threads}", few, np.arange(300_000) % 8, **options)
wide = Gaussians(rng.random((300, 2000)), variance=rng.random((300, 2000)))
fit("interior_point, many features", wide, np.arange(300) % 2, solver="interior_point")

first = UncertainSVC(max_iter=10**9, tol=0.0, solver="sgd")
interrupt("first fit", lambda: first.fit(X, y), state=lambda: dict(first.__dict__))
results["first fit"]["unchanged"] &= not hasattr(first, "coef_")

F = np.tile(np.eye(250), (300, 1, 1))
interrupt("check of matrices", lambda: Covariances.full(F))
means = rng.random((500_000, 20))
interrupt("check of means", lambda: Gaussians(means))
interrupt("check of standard deviations", lambda: Covariances.from_std(means))
clf = UncertainSVC(max_iter=1).fit(means[:100], np.arange(100) % 2)
X = Gaussians(means, std=means)
interrupt("decision values", lambda: clf.decision_function(X))
interrupt("spread of decision values", lambda: clf.decision_std(X))
for name, data, kind in (
    ("expected kernel, diagonal", X[:8000], "rbf"),
    ("expected kernel, laplacian", X[:8000], "laplacian"),
    ("expected kernel, full", dense, "rbf"),
    ("expected kernel, full polynomial", dense, "poly"),
    ("expected kernel, mixtures", GaussianMixtures(X[:16000], np.full(16000, 0.5), 2), "rbf"),
):
    out = np.empty((len(data), len(data)), np.float32)
    interrupt(name, lambda: expected_kernel(data, kind=kind, gamma=1.0, out=out))
some, many, ones = X[:9].core_view(), X[:20000].core_view(), np.ones((1, 20000))
spread = lambda: _core.expansion_variance(some, many, ones, np.ones(1))
interrupt("spread of a kernel expansion", spread)
"""

# These leave calculations behind that keep processors busy: they have a process of their own.
KERNEL_SCRIPT = """
from halosvm import IsotropicKernelSVC, UncertainKernelSVC

left = lambda: [one for one in threading.enumerate() if one.daemon and one.is_alive()]

def fit(name, clf, n, n_classes=2, C=1e8):
    X = rng.normal(size=(n, 5))
    y = ((X[:, 0] + rng.normal(size=n)).argsort().argsort() * n_classes) // n
    clf.fit(X[::n // 20], y[::n // 20]).set_params(C=C)
    before = set(left())
    begun = lambda: not before.issuperset(left())  # what is left behind once the signal has come
    state = lambda: dict(clf.__dict__)
    interrupt(name, lambda: clf.fit(X, y, X_std=np.full(n, 0.1)), 0.2, state, begun)
    results[name]["running"] = begun()
    clf.predict(X[:10])

fit("several pairs of classes", UncertainKernelSVC(gamma=0.1), 4000, 20, C=1e3)
for _ in range(200):  # ten seconds, of the minute that all pairs would take
    time.sleep(0.05 * bool(left()))
results["several pairs of classes"]["running"] = bool(left())
fit("eigendecomposition", IsotropicKernelSVC(), 2000)
fit("dual problem", UncertainKernelSVC(), 1500)

X = rng.normal(size=(200_000, 5))
few = Gaussians(X[:400], std=np.full((400, 5), 0.1))
many = Gaussians(X, std=np.full((len(X), 5), 0.1))
for kernel in ("rbf", "poly"):
    clf = UncertainKernelSVC(kernel=kernel, degree=2).fit(few, np.arange(400) % 2)
    interrupt(f"{kernel}, decision values", lambda: clf.decision_function(many))
    interrupt(f"{kernel}, labels", lambda: clf.predict(many))
    interrupt(f"{kernel}, spread of decision values", lambda: clf.decision_std(many))
wide = Gaussians(rng.normal(size=(1_000_000, 20)), std=np.full((1_000_000, 20), 0.1))
clf.fit(wide[:100], np.arange(100) % 2)
interrupt("poly, spread of many decision values", lambda: clf.decision_std(wide))
clf = IsotropicKernelSVC().fit(X[:400], np.arange(400) % 2)
interrupt("isotropic errors, decision values", lambda: clf.decision_function(X))
"""

OTHER_SCRIPT = """
from scipy import sparse
from halosvm import (
    EmpiricalBayes, SafeSVC, TotalSVC, UncertainCalibratedClassifier, UncertainFourierFeatures,
    UncertainNystroem, UncertainStandardScaler, UncertainSVR, calibrate_scale,
)

n = 300_000
X = rng.normal(size=(n, 20))
std = rng.random((n, 20)) + 0.1
y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
uncertain = Gaussians(X, std=std)

def fit(name, estimator, *data, delay=0.2, few=200, **errors):
    estimator.fit(*(part[:few] for part in data), **{key: e[:few] for key, e in errors.items()})
    interrupt(name, lambda: estimator.fit(*data, **errors), delay, lambda: dict(estimator.__dict__))

for loss in ("worst_case", "best_case", "expected_squared_hinge"):
    fit(loss, UncertainSVC(loss=loss), X, y, X_std=std)
fit("regression", UncertainSVR(), X, X[:, 0], X_std=std)
fit("total", TotalSVC(), X, y)
fit("safe", SafeSVC(max_iter=20), X, y)
interrupt("scale of errors", lambda: calibrate_scale(uncertain, y, tol=0.0, max_iter=10**6))
fit("calibrated", UncertainCalibratedClassifier(), X, y, X_std=std)
fit("calibrated, isotonic", UncertainCalibratedClassifier(method="isotonic"), X, y, X_std=std)
three = y[:999] * (1 + (X[:999, 1] > 0))
clf = UncertainCalibratedClassifier(cv=2).fit(X[:999], three, X_std=std[:999])
interrupt("calibrated, probabilities", lambda: clf.predict_proba(X, X_std=std))
fit("measurements", EmpiricalBayes(n_components=4, max_iter=10), X, X_std=std)
few = slice(0, 200)
bayes = EmpiricalBayes(n_components=8, max_iter=2).fit(X[few], X_std=std[few])
interrupt("posteriors", lambda: bayes.transform(X, X_std=std))
fourier = UncertainFourierFeatures(n_components=1000, random_state=0).fit(X[few])
interrupt("Fourier features", lambda: fourier.transform(X[:100_000], X_std=std[:100_000]))
fit("Nystroem", UncertainNystroem(n_components=2000), X[:20_000], X_std=std[:20_000])
nystroem = UncertainNystroem(n_components=100).fit(X[few], X_std=std[few])
interrupt("Nystroem features", lambda: nystroem.transform(X, X_std=std))
fit("scaler", UncertainStandardScaler(), uncertain)
interrupt("scaled", lambda: UncertainStandardScaler().fit(uncertain[:200]).transform(uncertain))
stream = UncertainSVC().partial_fit(X[few], y[few], classes=[0, 1], X_std=std[few])
state = lambda: dict(stream.__dict__)
interrupt("stream", lambda: stream.partial_fit(X, y, X_std=std), state=state)
S = sparse.random_array((50_000, 1000), density=0.01, random_state=rng, format="csr")
fit("sparse", UncertainSVC(loss="hinge"), S, y[:50_000])
"""

END = """
print("\\n" + json.dumps(results), flush=True)  # a signal may have cut a line of progress
"""

CALLS = (
    "one thread",
    "two threads",
    "several classes, one thread",
    "several classes, two threads",
    "all rows in a batch",
    "literal schedule",
    "hinge",
    "verbose",
    "many features",
    "full covariances",
    "lbfgs, one thread",
    "lbfgs, two threads",
    "lbfgs, several classes",
    "lbfgs, full covariances",
    "interior_point, one thread",
    "interior_point, two threads",
    "interior_point, several classes",
    "interior_point, full covariances",
    "interior_point, many features",
    "auto, uncertain",
    "auto, certain",
    "auto, verbose",
    "auto, many features",
    "first fit",
    "check of matrices",
    "check of means",
    "check of standard deviations",
    "decision values",
    "spread of decision values",
    "expected kernel, diagonal",
    "expected kernel, laplacian",
    "expected kernel, full",
    "expected kernel, full polynomial",
    "expected kernel, mixtures",
    "spread of a kernel expansion",
)
KERNEL_CALLS = (
    "several pairs of classes",
    "dual problem",
    "eigendecomposition",
    "rbf, decision values",
    "rbf, labels",
    "rbf, spread of decision values",
    "poly, decision values",
    "poly, labels",
    "poly, spread of decision values",
    "poly, spread of many decision values",
    "isotropic errors, decision values",
)

OTHER_CALLS = (
    "worst_case",
    "best_case",
    "expected_squared_hinge",
    "regression",
    "total",
    "safe",
    "scale of errors",
    "calibrated",
    "calibrated, isotonic",
    "calibrated, probabilities",
    "measurements",
    "posteriors",
    "Fourier features",
    "Nystroem",
    "Nystroem features",
    "scaler",
    "scaled",
    "stream",
    "sparse",
)


# With the threads of OpenBLAS: an eigendecomposition that is left behind may be using them.
ENVIRONMENT = {k: value for k, value in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}


def run(*command):
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=ENVIRONMENT,
    )


def measure(script):
    """Return what became of each long call that a signal met, in a process of its own."""
    done = run(PREAMBLE + script + END)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def measured():
    return measure(SCRIPT)


@pytest.fixture(scope="module")
def measured_kernels():
    return measure(KERNEL_SCRIPT)


@pytest.fixture(scope="module")
def measured_others():
    return measure(OTHER_SCRIPT)


@pytest.mark.parametrize("call", CALLS)
def test_interrupt_arrives_soon_and_changes_nothing(measured, call):
    assert measured[call]["latency"] < LONGEST
    assert measured[call]["unchanged"]


@pytest.mark.campaign
@pytest.mark.parametrize("call", KERNEL_CALLS)
def test_interrupt_of_a_kernel_machine_arrives_soon_and_changes_nothing(measured_kernels, call):
    assert measured_kernels[call]["latency"] < LONGEST
    assert measured_kernels[call]["unchanged"]


@pytest.mark.parametrize("call", OTHER_CALLS)
def test_interrupt_of_other_estimators_arrives_soon_and_changes_nothing(measured_others, call):
    assert measured_others[call]["latency"] < LONGEST
    assert measured_others[call]["unchanged"]


ENDING = """
def send():
    while threading.active_count() < 3:
        time.sleep(0.01)
    time.sleep(float(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGINT)

import sys
from halosvm import IsotropicKernelSVC
X, y = rng.normal(size=(2500, 5)), np.arange(2500) % 2
threading.Thread(target=send).start()
try:
    IsotropicKernelSVC().fit(X, y, X_std=np.full(2500, 0.1))
except KeyboardInterrupt:
    print("interrupted")
sys.exit(3)
"""


@pytest.mark.campaign
@pytest.mark.parametrize("delay", [0.1, 0.5])
def test_process_ends_beside_an_eigendecomposition_that_was_left_behind(delay):
    # OpenBLAS waits in its destructor for threads that the eigendecomposition may be using.
    done = run(PREAMBLE + ENDING, str(delay))
    assert done.returncode == 3, done.stderr
    assert done.stdout in ("interrupted\n", "")  # nothing if it had ended before


@pytest.mark.campaign
def test_what_was_left_behind_runs_on_but_skips_the_pairs_of_classes_to_come(measured_kernels):
    assert measured_kernels["eigendecomposition"]["running"]
    assert not measured_kernels["several pairs of classes"]["running"]


def problem(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 2000)
    return Gaussians(rng.normal(size=(2000, 10)) + y[:, None], std=rng.random((2000, 10))), y


def fit(data, **options):
    X, y = data
    return UncertainSVC(tol=0.0, max_iter=16, random_state=0, **options).fit(X, y)


SOLVERS = ("auto", "lbfgs", "interior_point", "sgd")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_fits_in_several_python_threads_give_the_results_of_fits_one_by_one(solver):
    problems = [problem(seed) for seed in range(6)]
    serial = [fit(data, solver=solver) for data in problems]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda data: fit(data, solver=solver), problems * 3))
    for clf, expected in zip(together, serial * 3, strict=True):
        np.testing.assert_array_equal(clf.coef_, expected.coef_)
        np.testing.assert_array_equal(clf.intercept_, expected.intercept_)
        np.testing.assert_array_equal(clf.suboptimality_, expected.suboptimality_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_batch_of_gaussians_serves_several_threads_at_once():
    # Its view for the core is made at first use, here by all of them.
    for seed in range(5):
        X, y = problem(seed)
        expected = fit((Gaussians(X.mean, cov=X.covariances), y))
        with ThreadPoolExecutor(6) as pool:
            together = list(pool.map(fit, [(X, y)] * 6))
        for clf in together:
            np.testing.assert_array_equal(clf.coef_, expected.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_progress_of_several_threads_is_printed_without_a_deadlock(capsys, solver):
    problems = [problem(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        fits = list(pool.map(lambda data: fit(data, solver=solver, verbose=1), problems))
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("iteration ") for line in lines)
    if solver == "sgd":
        assert len(lines) == 8 * 5  # after 1, 2, 4, 8, 16 passes
    else:
        assert len(lines) >= sum(clf.n_iter_ for clf in fits)


@pytest.mark.parametrize("solver", ["lbfgs", "interior_point", "sgd"])
def test_other_threads_run_python_during_a_fit(solver):
    rng = np.random.default_rng(0)
    X = Gaussians(rng.random((100_000, 20)), std=rng.random((100_000, 20)))
    y = np.arange(100_000) % 2
    clf = UncertainSVC(tol=0.0, max_iter=16, solver=solver, random_state=0, n_threads=1)

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(X, y)

    # Python gives the interpreter away every 5 ms; a fit that kept it would end first.
    thread = threading.Thread(target=run)
    thread.start()
    turns = 0
    while thread.is_alive() and turns < 1000:
        thread.join(0)
        turns += 1
    alive = thread.is_alive()
    thread.join()
    assert alive
    assert turns == 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fit_in_a_forked_process_gives_the_same_result():
    script = """
    import os, sys, warnings
    import numpy as np
    from halosvm import UncertainSVC

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 5)), np.arange(800) % 4
    def coef():
        options = {"tol": 0.0, "max_iter": 3, "random_state": 0, "n_threads": 2}
        return [
            UncertainSVC(solver=solver, **options).fit(X, y, X_std=np.ones(800)).coef_
            for solver in ("auto", "lbfgs", "interior_point", "sgd")
        ]
    expected = coef()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(coef(), expected) else 1)
    status = os.waitpid(child, 0)[1]
    assert np.array_equal(coef(), expected)
    sys.exit(os.waitstatus_to_exitcode(status))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
