"""Fits to chunks: the model and its certificate are those of all chunks in one array.

Oracle: the fit of the same estimator in memory, which shares the solver but not the sums.
"""

import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halosvm import Gaussians, UncertainSVC, UncertainSVR, chunks

LOSSES = ["expected_hinge", "expected_squared_hinge", "expected_logistic", "worst_case"]
UNCERTAIN = ["isotropic", "diagonal", "low_rank", "full"]


def in_chunks(X, y, edges, weights=None):
    edges = [0, *edges, len(X)]

    def read():
        for begin, end in itertools.pairwise(edges):
            targets = (y,) if weights is None else (y, weights)
            yield X[begin:end], *(each[begin:end] for each in targets)

    return chunks(read)


def assert_same_model(found, expected, C, n, relative=1e-9):
    """Both are certified: J is strongly convex in w, |w - w*|^2 <= 2 (J - J*) / lam."""
    assert np.max(found.suboptimality_) <= found.tol
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=relative)
    coef, other = np.atleast_2d(found.coef_), np.atleast_2d(expected.coef_)
    distance = np.linalg.norm(coef - other, axis=1)
    J = np.atleast_1d(expected.objective_)
    assert (distance <= 2 * np.sqrt(2 * J * found.tol * C * n)).all()


@pytest.fixture
def data(make_gaussians):
    X, y = make_gaussians("diagonal", n=240)
    return Gaussians(X.mean + 0.7 * y[:, None], cov=X.covariances), y


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", UNCERTAIN)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_chunks_have_the_model_of_one_array(make_gaussians, kind, loss, fit_intercept):
    X, y = make_gaussians(kind, n=240)
    X = Gaussians(X.mean + 0.7 * y[:, None], cov=X.covariances)
    clf = UncertainSVC(loss=loss, tol=1e-9, fit_intercept=fit_intercept)
    expected = clf.fit(X, y)
    found = UncertainSVC(**clf.get_params()).fit(in_chunks(X, y, [1, 1, 100]))
    assert_same_model(found, expected, 1.0, 240)
    assert found.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("edges", [[], [0, 120], [40, 80, 120, 160, 200], [0, 0, 240]])
def test_where_chunks_end_changes_nothing_but_rounding(data, edges):
    X, y = data
    found = UncertainSVC(tol=1e-9).fit(in_chunks(X, y, edges))
    expected = UncertainSVC(tol=1e-9).fit(in_chunks(X, y, []))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-9)
    assert found.n_iter_ == expected.n_iter_


def half_certain(n=3000, d=10):
    """Return examples of which two of three chunks of a thousand are certain, and labels."""
    rng = np.random.default_rng(4)
    y = np.where(np.arange(n) % 2, 1, -1)
    std = rng.uniform(0.1, 0.5, (n, d)) * (np.arange(n) >= n // 3)[:, None]
    std[1500:2500] = 0.0
    return Gaussians(rng.normal(size=(n, d)) + 0.3 * y[:, None], std=std), y


@pytest.mark.parametrize("kind", ["certain", "half certain"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_many_certain_examples_are_seen_in_the_first_pass_and_need_no_more_passes(kind, tol):
    X, y = half_certain()
    X = Gaussians(X.mean) if kind == "certain" else X
    found = UncertainSVC(tol=tol).fit(in_chunks(X, y, [1000, 2000]))
    expected = UncertainSVC(tol=tol, solver="lbfgs").fit(X, y)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * tol)
    assert found.suboptimality_ <= tol
    assert found.n_iter_ <= 2 * expected.n_iter_ + 10


def test_certain_values_in_chunks_need_no_more_passes():
    X, y = half_certain()
    X, y = X.mean, X.mean @ np.arange(10.0) + np.sin(np.arange(3000))
    options = {"tol": 1e-3, "C": 0.1}
    found = UncertainSVR(**options).fit(in_chunks(X, y, [1000, 2000]))
    expected = UncertainSVR(solver="lbfgs", **options).fit(X, y)
    assert found.suboptimality_ <= 1e-3
    assert found.n_iter_ <= 2 * expected.n_iter_ + 10


@pytest.mark.filterwarnings("ignore:the search stalled")
@pytest.mark.parametrize(
    "kind", ["isotropic", "diagonal", "low_rank"]
)  # in full ones w'S w cancels
def test_models_of_chunks_and_of_one_array_agree_to_nine_digits_where_rounding_ends_both(
    make_gaussians, kind
):
    # A certificate g proves |w - w*|^2 <= 2 g J / lam: for 1e-9 it would be below rounding.
    X, y = make_gaussians(kind, n=240)
    X = Gaussians(X.mean + 0.7 * y[:, None], cov=X.covariances)
    found = UncertainSVC(tol=1e-14).fit(in_chunks(X, y, [1, 100]))
    expected = UncertainSVC(tol=1e-14).fit(X, y)
    assert max(found.suboptimality_, expected.suboptimality_) <= 1e-9
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 1.0, "bb": 0.5, "ccc": 3.0}])
def test_labels_of_several_classes_and_weights_are_those_of_all_chunks(data, class_weight):
    X, _ = data
    codes = np.sort(np.arange(240) % 3)  # a chunk of a single class, whose text is shorter
    y = np.array(["a", "bb", "ccc"])[codes]
    X = Gaussians(X.mean + 2.0 * np.eye(3, 4)[codes], cov=X.covariances)
    weights = np.random.default_rng(0).random(240)
    weights[200:210] = 0.0
    parts = [(slice(0, 80), "<U1"), (slice(80, 160), "<U2"), (slice(160, 240), "<U3")]

    def read():
        return [(X[rows], y[rows].astype(kind), weights[rows]) for rows, kind in parts]

    clf = UncertainSVC(tol=1e-9, class_weight=class_weight)
    found = UncertainSVC(**clf.get_params()).fit(chunks(read))
    expected = clf.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert_same_model(found, expected, 3.0, 240)


REGRESSION = ["epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"]


@pytest.mark.parametrize("loss", [*REGRESSION, "squared_error"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_values_in_chunks_have_the_model_of_one_array(data, loss, fit_intercept):
    X, _ = data
    rng = np.random.default_rng(0)
    y = 100.0 * fit_intercept + X.mean @ [1.0, -2.0, 3.0, 0.0] + rng.normal(size=240)
    weights = rng.random(240)
    options = {"loss": loss, "quantile": 0.3, "tol": 1e-9, "fit_intercept": fit_intercept}
    expected = UncertainSVR(**options).fit(X, y, y_std=0.5, sample_weight=weights)
    found = UncertainSVR(**options).fit(in_chunks(X, y, [7, 150], weights), y_std=0.5)
    assert_same_model(found, expected, 1.0, 240)
    assert found.intercept_ == pytest.approx(expected.intercept_, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("estimator", [UncertainSVC(), UncertainSVR()])
def test_a_chunk_whose_weights_are_all_0_is_absent(data, estimator):
    X, y = data
    targets = y if isinstance(estimator, UncertainSVC) else X.mean[:, 0] + y
    weights = np.ones(len(y))
    weights[10:30] = 0.0
    found = clone(estimator).fit(in_chunks(X, targets, [10, 30], weights))
    expected = clone(estimator).fit(X, targets, sample_weight=weights)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-5)


def test_parameters_that_change_the_errors_reach_each_chunk(data):
    X, y = data
    options = {"error_scale": 0.5, "loss": "worst_case", "radius": 0.3, "norm": np.inf, "tol": 1e-8}
    options["subspace"] = 0.9
    found = UncertainSVC(**options).fit(in_chunks(X, y, [100]))
    # Kinks leave no more than what is certified.
    assert_same_model(found, UncertainSVC(**options).fit(X, y), 1.0, 240, options["tol"])


@pytest.mark.parametrize("estimator", [UncertainSVC(), UncertainSVR()])
def test_a_pass_over_the_data_is_an_iteration(data, estimator):
    X, y = data
    passes = []

    def read():
        passes.append(0)
        yield X[:100], y[:100]
        yield X[100:], y[100:]

    clf = estimator.fit(chunks(read))
    # One more finds labels, weights and moments, and another two may certify; the search
    # for the best intercept of w = 0, which would be 50 or 100, costs none.
    assert len(passes) <= clf.n_iter_ + 3


def test_a_warm_start_begins_at_the_last_model(data):
    X, y = data
    clf = UncertainSVC(warm_start=True, tol=1e-7).fit(X, y)
    before = clf.coef_
    clf.fit(in_chunks(X, y, [50]))
    assert clf.n_iter_ <= 2
    np.testing.assert_allclose(clf.coef_, before, rtol=1e-3)


def test_certain_examples_end_with_an_honest_status(data):
    X, y = data
    expected = UncertainSVC().fit(X.mean, y)
    clf = UncertainSVC(tol=1e-3).fit(in_chunks(Gaussians(X.mean), y, [100]))
    assert clf.suboptimality_ <= 1e-3
    assert clf.objective_ <= expected.objective_ * (1 + clf.suboptimality_) * (1 + 1e-6)
    tight = UncertainSVC(tol=1e-12, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="after 30 iterations"):
        tight.fit(in_chunks(Gaussians(X.mean), y, [100]))
    lower = tight.objective_ / (1 + tight.suboptimality_)
    assert lower <= expected.objective_ * (1 + 1e-9)


def test_names_and_units_of_features_are_remembered(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X.mean, columns=list("abcd"))
    std = np.full(240, 0.5)
    parts = [(Gaussians(frame[:100], std=std[:100]), y[:100]), (frame[100:], y[100:])]
    clf = UncertainSVC(tol=1e-3).fit(chunks(lambda: parts))
    assert clf.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[list("badc")])


def test_progress_is_printed_as_for_data_in_memory(data, capsys):
    X, y = data
    clf = UncertainSVC(verbose=1).fit(in_chunks(X, y, [100]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == clf.n_iter_
    assert all(line.startswith("iteration ") for line in lines)


# ---- what is refused -----------------------------------------------------------------------------


def bad_chunks(changes):
    """Return three chunks of 5 rows, of which the second is changed."""
    rng = np.random.default_rng(0)
    good = (rng.normal(size=(5, 2)), np.array([0, 1, 0, 1, 1]))
    return chunks(lambda: [good, changes(*(each.copy() for each in good)), good])


def lost(X, y):
    X[3, 1] = np.nan
    return X, y


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lost, ValueError, r"chunk 1: X.*row 3, column 1"),
        (lambda X, y: (X, y[:4]), ValueError, "chunk 1: y has 4 values, X has 5 rows"),
        (lambda X, y: (X, y, np.ones(4)), ValueError, "chunk 1: sample_weight.shape == \\(4,\\)"),
        (lambda X, y: (X[:, :1], y), ValueError, "chunk 1: X has 1 features.* before have 2"),
        (lambda X, y: X, TypeError, r"chunk 1: a chunk is a tuple \(X, y\).*got ndarray"),
        (lambda X, y: (X, y + 0.5), ValueError, "chunk 1: Unknown label type: continuous"),
        (lambda X, y: (X, y.astype(str)), TypeError, "chunk 1: y has labels of dtype <U"),
    ],
)
def test_errors_name_the_chunk_and_the_row(change, error, message):
    clf = UncertainSVC()
    with pytest.raises(error, match=message):
        clf.fit(bad_chunks(change))
    assert not hasattr(clf, "classes_")


def test_other_errors_of_a_source_are_as_they_are_with_a_note():
    def read():
        yield np.ones((2, 1)), [0, 1]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone") as caught:
        UncertainSVC().fit(chunks(read))
    assert caught.value.__notes__ == ["This was in chunk 1."]


def test_chunks_that_change_between_passes_are_refused(data):
    X, y = data
    passes = []

    def read():
        passes.append(0)
        yield X[: 100 if len(passes) == 1 else 99], y[: 100 if len(passes) == 1 else 99]
        yield X[100:], y[100:]

    with pytest.raises(ValueError, match="chunk 0 has 99 rows, in the first pass it had 100"):
        UncertainSVC().fit(chunks(read))
    again = iter([(X, y)])
    with pytest.raises(ValueError, match="there are no chunks in a later pass"):
        UncertainSVC().fit(chunks(lambda: again))
    labels = iter([y, y + 5])
    with pytest.raises(ValueError, match=r"chunk 0: y row 0 is .*, no label in the first pass"):
        UncertainSVC().fit(chunks(lambda: [(X, next(labels))]))


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"solver": "sgd"}, {}, "solver is 'sgd', which needs all rows in memory"),
        ({"solver": "interior_point"}, {}, "solver is 'interior_point', which needs all rows"),
        ({"solver": "dual_coordinate"}, {}, "solver is 'dual_coordinate', which needs all rows"),
        ({"loss": "best_case"}, {}, "loss is 'best_case', which is not convex and needs all rows"),
        ({"loss": "marginal_logistic"}, {}, "loss is 'marginal_logistic', which is not convex and"),
        ({}, {"y": [0, 1]}, "y is given, but X is chunks"),
        ({}, {"X_std": [0, 1]}, "X_std is given, but X is chunks"),
        ({}, {"sample_weight": [0, 1]}, "sample_weight is given, but X is chunks"),
    ],
)
def test_what_needs_all_rows_is_refused(data, options, arguments, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        UncertainSVC(**options).fit(in_chunks(X, y, [10]), **arguments)


def test_classes_without_weight_or_without_another_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="sample_weight is 0 for all examples of class 1"):
        UncertainSVC().fit(in_chunks(X, y, [10], 1.0 * (y < 0)))
    with pytest.raises(ValueError, match="y has only one class"):
        UncertainSVC().fit(in_chunks(X, np.ones(240), [10]))
    with pytest.raises(ValueError, match="X has 1 chunks and no rows"):
        UncertainSVC().fit(chunks(lambda: [(np.empty((0, 2)), [])]))
    with pytest.raises(ValueError, match="y_std must be one number"):
        UncertainSVR().fit(in_chunks(X, y, []), y_std=np.ones(240))


# ---- memory and interrupts -----------------------------------------------------------------------

LIMITED = """
import resource, sys
import numpy as np
from halosvm import Gaussians, UncertainSVC, chunks

N, ROWS, D = {n_chunks}, 10_000, 50

def read():
    for seed in range(N):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, ROWS)
        yield Gaussians(rng.normal(size=(ROWS, D)) + 0.3 * y[:, None], std=rng.random((ROWS, D))), y

# RLIMIT_DATA counts private memory that can be written, which arrays are, and not the address
# space of shared libraries and of the stacks of threads, which RLIMIT_AS would.
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
limit = used + {room}
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
clf = UncertainSVC(n_threads=2).fit(chunks(read))
assert clf.suboptimality_ <= 1e-6
try:
    np.ones(N * ROWS * D * 2)
except MemoryError:
    print("certified, and all at once would not fit")
"""


@pytest.mark.unsanitized
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_a_fit_needs_no_more_memory_than_a_few_chunks():
    script = LIMITED.format(n_chunks=20, room=100_000_000)  # 160 MB in chunks of 8 MB
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "certified, and all at once would not fit\n", done.stderr


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from halosvm import UncertainSVC, chunks

signal.signal(signal.SIGINT, signal.default_int_handler)
reading = threading.Event()
X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
passes = []

def read():
    passes.append(0)
    yield X, y
    if len(passes) > 2:
        reading.set()
        time.sleep(3)  # a slow disk
    yield X, y

def send():
    reading.wait()
    time.sleep(0.1)
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=send).start()
clf = UncertainSVC()
try:
    clf.fit(chunks(read))
except KeyboardInterrupt:
    print(time.perf_counter() - sent < 2.0, vars(clf) == vars(UncertainSVC()))
"""


def test_interrupt_does_not_wait_for_the_chunk_to_come():
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "True True\n", done.stderr
