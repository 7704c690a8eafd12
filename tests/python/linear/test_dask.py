"""Machines on a dask cluster: the model is the local one, whatever becomes of the workers.

Oracle: the fit in memory, and fits to the same chunks one after another, bit by bit.
"""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.core import Status

import halosvm
from halosvm import Gaussians, chunks
from halosvm.dask import UncertainSVC, UncertainSVR
from halosvm.dask import partitions as module

pytestmark = [
    pytest.mark.campaign,  # its workers start slowly
    pytest.mark.xdist_group("dask"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
N, D = 300, 4


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 2, N))  # sorted: some partitions hold a single class
    X = rng.normal(size=(N, D)) + 0.7 * y[:, None]
    return X, rng.random((N, D)), y, rng.random(N)


def cut(arrays, edges):
    """Return dask arrays whose chunks end at the edges."""
    sizes = tuple(np.diff([0, *edges, N]).tolist())
    split = [np.split(each, edges) for each in arrays]
    return [
        da.concatenate([da.from_delayed(dask.delayed(x), x.shape, x.dtype) for x in parts])
        if sizes
        else None
        for parts in split
    ]


# One partition; two; one of three empty; seven, three of which hold a single class.
CUTS = [[], [120], [100, 100], [40, 80, 120, 160, 200, 260]]


@pytest.mark.parametrize("edges", CUTS)
def test_partitions_have_the_model_of_one_array(client, data, edges):
    X, std, y, w = data
    expected = halosvm.UncertainSVC(tol=1e-9).fit(X, y, X_std=std, sample_weight=w)
    dX, dstd, dy, dw = cut(data, edges)
    found = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd, sample_weight=dw)
    assert found.suboptimality_ <= 1e-9
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    # J is strongly convex in w: |w - w*|^2 <= 2 (J - J*) / lam, for both models.
    bound = 2 * np.sqrt(2 * expected.objective_ * 1e-9 * w.sum())
    assert np.linalg.norm(found.coef_ - expected.coef_) <= bound


@pytest.mark.parametrize("edges", CUTS)
def test_partitions_have_bit_by_bit_the_model_of_the_same_chunks(client, data, edges):
    X, std, y, _ = data
    dX, dstd, dy = cut(data[:3], edges)
    found = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd)
    rows = np.split(np.arange(N), edges)
    source = chunks(lambda: [(Gaussians(X[i], std=std[i]), y[i]) for i in rows])
    expected = halosvm.UncertainSVC(tol=1e-9).fit(source)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)


def test_regression_of_partitions_has_the_model_of_the_same_chunks(client, data):
    X, std, _, w = data
    y = X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).normal(size=N)
    dX, dstd, dy, dw = cut((X, std, y, w), [100, 100])
    found = UncertainSVR(tol=1e-9).fit(dX, dy, X_std=dstd, sample_weight=dw, y_std=0.5)
    options = {"X_std": std, "sample_weight": w, "y_std": 0.5}
    expected = halosvm.UncertainSVR(tol=1e-9).fit(X, y, **options)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    np.testing.assert_array_equal(found.predict(dX).compute(), found.predict(X))


def test_several_classes_and_a_tree_of_sums_have_the_local_model(client, data, monkeypatch):
    monkeypatch.setattr(module, "_MUCH", 100)
    monkeypatch.setattr(module, "_LITTLE", 100)
    monkeypatch.setattr(module, "_BRANCHES", 3)
    X, std, _, _ = data
    y = np.array(["a", "b", "c"])[np.arange(N) % 3]
    X = X + 2.0 * np.eye(3, D)[np.arange(N) % 3]
    dX, dstd, dy = cut((X, std, y), [40, 80, 120, 160, 200, 260])
    found = UncertainSVC(tol=1e-9, class_weight="balanced").fit(dX, dy, X_std=dstd)
    expected = halosvm.UncertainSVC(tol=1e-9, class_weight="balanced").fit(X, y, X_std=std)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    values = found.decision_function(dX)
    assert values.shape == (N, 3)
    np.testing.assert_array_equal(values.compute(), found.decision_function(X))
    np.testing.assert_array_equal(found.predict(dX).compute(), found.predict(X))


def test_frames_and_lists_of_gaussians_have_the_model_of_arrays(client, data):
    import dask.dataframe as dd

    X, std, y, _ = data
    dX, dstd, dy = cut(data[:3], [120])
    expected = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd)

    pieces = [slice(0, 120), slice(120, N)]
    gaussians = [Gaussians(X[i], std=std[i]) for i in pieces]
    for items in (
        [dask.delayed(each) for each in gaussians],
        client.map(lambda i: gaussians[i], range(2)),
        gaussians,
    ):
        found = UncertainSVC(tol=1e-9).fit(items, [y[i] for i in pieces])
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        labels = found.predict(items)
        np.testing.assert_array_equal(np.concatenate(dask.compute(*labels)), found.predict(X))

    frame = pd.DataFrame(X, columns=list("abcd"))
    errors = pd.DataFrame(std, columns=[f"{name}_std" for name in "abcd"])
    dframe, derrors, labels = (
        dd.from_pandas(each, npartitions=2) for each in (frame, errors, pd.Series(y))
    )
    found = UncertainSVC(tol=1e-9).fit(dframe, labels, X_std=derrors)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    assert found.feature_names_in_.tolist() == list("abcd")
    predicted = found.predict(dframe).compute()
    np.testing.assert_array_equal(predicted, found.predict(frame))
    np.testing.assert_array_equal(predicted.index, frame.index)
    sides = found.side_probability(dframe, X_std=derrors).compute()
    np.testing.assert_array_equal(sides, found.side_probability(frame, X_std=errors))


def test_partitions_with_another_order_of_their_index_are_refused(client, data):
    X, std, y, w = data
    frame, errors = pd.DataFrame(X), pd.DataFrame(std)
    items = np.array_split(np.arange(N), 3)
    x, s, labels, weights = (
        [each.iloc[rows] for rows in items] for each in (frame, errors, pd.Series(y), pd.Series(w))
    )
    delayed = [dask.delayed(part) for part in x]
    backwards = lambda parts: [parts[0], parts[1].iloc[::-1], parts[2]]  # noqa: E731
    expected = UncertainSVC().fit(delayed, labels, X_std=s, sample_weight=weights)
    found = UncertainSVC().fit(delayed, labels, X_std=backwards(s), sample_weight=weights)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(ValueError, match="partition 1: y has row 0 labelled 199, in X it is 100"):
        UncertainSVC().fit(delayed, backwards(labels))
    with pytest.raises(ValueError, match="partition 1: sample_weight has row 0 labelled 199"):
        UncertainSVR().fit(delayed, labels, sample_weight=backwards(weights))


def test_predictions_are_lazy_and_those_of_the_local_model(client, data):
    X, std, y, _ = data
    dX, dstd, dy = cut(data[:3], [100, 100])
    clf = UncertainSVC().fit(dX, dy, X_std=dstd)
    for method in ("predict", "decision_function", "decision_std", "side_probability"):
        errors = {"X_std": std} if method in ("decision_std", "side_probability") else {}
        lazy = getattr(clf, method)(dX, **({"X_std": dstd} if errors else {}))
        assert dask.is_dask_collection(lazy)
        np.testing.assert_array_equal(lazy.compute(), getattr(clf, method)(X, **errors))
    assert clf.score(dX, dy) == clf.score(X, y)


def test_no_errors_are_told_by_0_and_missed_without(client, data):
    X = data[0]
    dX, dstd, dy = cut(data[:3], [100, 100])
    exact = UncertainSVC().fit(dX, dy, X_std=0)
    np.testing.assert_array_equal(exact.coef_, UncertainSVC().fit(dX, dy).coef_)
    exact.to_local().decision_std(X)
    clf = UncertainSVC().fit(dX, dy, X_std=dstd)
    with pytest.warns(halosvm.ErrorsLeftOutWarning):
        clf.to_local().decision_std(X)
    assert not clf.decision_std(dX, X_std=0).compute().any()
    with pytest.raises(ValueError, match=r"X_std is a single number, 0\.5; pass a collection"):
        clf.decision_std(dX, X_std=0.5)


def test_a_model_is_saved_as_the_local_one(client, data, tmp_path):
    dX, dy = cut((data[0], data[2]), [120])
    clf = UncertainSVC(loss="expected_squared_hinge").fit(dX, dy)
    local = clf.to_local()
    assert type(local) is halosvm.UncertainSVC
    halosvm.save_model(local, tmp_path / "model.json")
    again = halosvm.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.coef_, clf.coef_)


def test_data_that_are_here_are_fitted_here(data):
    X, std, y, _ = data
    found = UncertainSVC().fit(X, y, X_std=std)
    np.testing.assert_array_equal(found.coef_, halosvm.UncertainSVC().fit(X, y, X_std=std).coef_)


def test_two_fits_at_once_do_not_disturb_each_other(client, data):
    dX, dstd, dy = cut(data[:3], [120])
    fit = lambda C: UncertainSVC(C).fit(dX, dy, X_std=dstd).coef_  # noqa: E731
    expected = [fit(C) for C in (0.1, 10.0)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(fit, (0.1, 10.0)))
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_worker_that_dies_does_not_change_the_model(client, data, monkeypatch):
    dX, dstd, dy = cut(data[:3], [40, 80, 120, 160, 200, 260])
    expected = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd)
    evaluations = []
    reduce = module.Partitions.reduce

    def killing(self, *arguments):
        evaluations.append(0)
        if len(evaluations) == 3:
            held = client.who_has(self.futures)
            [worker] = held[self.futures[0].key]
            os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
        return reduce(self, *arguments)

    monkeypatch.setattr(module.Partitions, "reduce", killing)
    found = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd)
    assert len(evaluations) > 3
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.suboptimality_, expected.suboptimality_)


def test_progress_is_printed_where_the_fit_was_called(client, data, capsys):
    dX, _, dy = cut(data[:3], [120])
    clf = UncertainSVC(verbose=1, tol=1e-2).fit(dX, dy, X_std=0.1 * da.ones_like(dX))
    assert capsys.readouterr().out.count("iteration ") == clf.n_iter_


def test_errors_name_the_partition_and_the_row(client, data):
    X, _, y, _ = data
    X = X.copy()
    X[150, 2] = np.nan
    dX, dy = cut((X, y), [120])
    clf = UncertainSVC()
    with pytest.raises(ValueError, match=r"partition 1: X.*row 30, column 2"):
        clf.fit(dX, dy)
    assert not hasattr(clf, "classes_")
    holed = halosvm.Gaussians(X)  # whose missing value is no number either
    parts = [client.scatter(holed[:120]), client.scatter(holed[120:])]
    with pytest.raises(ValueError, match="partition 1: X: row 30, column 2 is missing"):
        clf.fit(parts, [y[:120], y[120:]])


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"solver": "interior_point"}, {}, "solver is 'interior_point', which needs all rows"),
        ({"solver": "dual_coordinate"}, {}, "solver is 'dual_coordinate', which needs all rows"),
        ({"solver": "sgd"}, {}, "solver is 'sgd', which needs all rows"),
        ({}, {"y": None}, "requires y to be passed"),
        ({}, {"y": np.arange(7)}, "y has 7 values, X has 300 rows"),
        ({}, {"radius": np.ones(N)}, "radius of each example is not for collections"),
        ({}, {"sample_weight": da.ones(N, chunks=N)[:7]}, "sample_weight has 7 values, X has 300"),
    ],
)
def test_what_makes_no_sense_is_refused(client, data, options, arguments, message):
    dX, dy = cut((data[0], data[2]), [120])
    with pytest.raises(ValueError, match=message):
        UncertainSVC(**options).fit(dX, **({"y": dy} | arguments))


def tasks_of(client):
    return set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


def require_no_tasks_but(before, client):
    for _ in range(100):
        gc.collect()  # futures may be in cycles
        left = tasks_of(client) - before
        if not left:
            return
        time.sleep(0.05)
    assert left == set()


@pytest.mark.parametrize("other", [((5, 5), D), ((4, 4, 2), 2), ((3, 0, 3, 4), D)])
def test_errors_are_cut_like_the_rows_they_belong_to(client, data, other):
    X, std, y, _ = (each[::30] for each in data)
    dX, dy = da.from_array(X, chunks=((3, 3, 4), D)), da.from_array(y, chunks=5)
    dstd = da.from_array(std, chunks=other)
    variances = std[:, :1, None] ** 2 * np.eye(D)
    clf = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd)
    aligned = UncertainSVC(tol=1e-9).fit(dX, dy, X_std=dstd.rechunk(dX.chunks))
    np.testing.assert_array_equal(clf.coef_, aligned.coef_)
    for method in ("predict", "decision_function", "decision_std", "side_probability"):
        call = getattr(clf, method)
        np.testing.assert_array_equal(call(dX, X_std=dstd).compute(), call(X, X_std=std))
        np.testing.assert_array_equal(call(dX, X_std=std).compute(), call(X, X_std=std))
        dcov = da.from_array(variances, chunks=(other[0], 2, D))
        np.testing.assert_array_equal(call(dX, X_cov=dcov).compute(), call(X, X_cov=variances))
        with pytest.raises(ValueError, match="X_std has 7 values, X has 10 rows"):
            call(dX, X_std=dstd[:7])
        parts = [dask.delayed(X[rows]) for rows in (slice(3), slice(3, 6), slice(6, 10))]
        with pytest.raises(ValueError, match="X_std has 2 partitions, X has 3; both must be cut"):
            call(parts, X_std=[std[:5], std[5:]])
    assert clf.score(dX, dy, X_std=dstd) == clf.score(X, y)
    unknown = dX[dX[:, 0] > np.inf]  # three empty partitions
    with pytest.raises(ValueError, match=r"X_std has [34] rows in a partition, X has 0"):
        clf.decision_std(unknown, X_std=dX[dX[:, 0] < np.inf]).compute()


def test_errors_of_frames_are_cut_like_the_rows_they_belong_to(client, data):
    import dask.dataframe as dd

    frame, errors = (pd.DataFrame(each[::30]) for each in data[:2])
    labels = pd.Series(data[2][::30])
    X, std, y = (dd.from_pandas(*of) for of in ((frame, 4), (errors, 3), (labels, 2)))
    clf = UncertainSVC(tol=1e-9).fit(X, y, X_std=std)
    expected = halosvm.UncertainSVC(tol=1e-9).fit(frame, labels, X_std=errors)
    np.testing.assert_allclose(clf.objective_, expected.objective_, rtol=1e-9)
    for method in ("predict", "decision_std", "side_probability"):
        call = getattr(clf, method)
        found = call(X, X_std=std).compute()
        np.testing.assert_array_equal(found, call(frame, X_std=errors))
        with pytest.raises(ValueError, match="X_std has an index from 0 to 6, X from 0 to 9"):
            call(X, X_std=dd.from_pandas(errors[:7], 3))
        with pytest.raises(ValueError, match="X_std has 3 partitions, X has 4; both must be cut"):
            call(X, X_std=std.clear_divisions())
        with pytest.raises(TypeError, match="X_std is DataFrame, X is Array"):
            call(da.from_array(frame.to_numpy(), chunks=(4, D)), X_std=std)
        with pytest.raises(TypeError, match="X_std is DataFrame; a dask array, a dask data frame"):
            call(X, X_std=errors)
    assert clf.score(X, y, X_std=std) == clf.score(frame, labels)


@pytest.mark.parametrize("kind", [UncertainSVC, UncertainSVR])
def test_scores_of_partitions_of_unknown_sizes_are_the_local_ones(client, data, kind):
    import dask.dataframe as dd

    X, _, y, w = data
    y = np.roll(y, 20)
    model = kind().fit(X, y)
    expected = model.score(X, y, w)
    frame, labels, weights = (
        dd.from_pandas(make(each), npartitions=count)
        for make, each, count in ((pd.DataFrame, X, 3), (pd.Series, y, 2), (pd.Series, w, 4))
    )
    assert model.score(frame.values, labels.values, weights.values) == expected
    assert model.score(frame.values, y, weights) == expected
    assert model.score(frame, labels, w) == expected
    rows = X[:, 0] > 0
    dX, dy = cut((X, y), [120])
    chosen = dX[:, 0] > 0
    assert model.score(dX[chosen], dy[chosen]) == model.score(X[rows], y[rows])
    with pytest.raises(ValueError, match=f"y has {rows.sum()} values, X has {N} rows"):
        model.score(frame.values, dy[chosen])
    parts = [dask.delayed(each) for each in (X[:120], X[120:120], X[120:])]
    assert model.score(parts, [y[:120], y[:0], y[120:]], [w[:120], w[:0], w[120:]]) == expected
    with pytest.raises(ValueError, match="partition 2: y has 179 values, X has 180 rows"):
        model.score(parts, [y[:120], y[:0], y[121:]])


def test_an_asynchronous_client_is_refused_in_its_event_loop(data):
    dX, dy = cut((data[0], data[2]), [120])
    local = UncertainSVC().fit(data[0], data[2])

    async def refused():
        options = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
        async with Client(asynchronous=True, **options):
            for call in (UncertainSVC().fit, local.score):
                with pytest.raises(ValueError, match=r"asynchronous=True.*by asyncio\.to_thread"):
                    call(dX, dy)
            return await asyncio.to_thread(UncertainSVC().fit, dX, dy)

    fitted = asyncio.run(asyncio.wait_for(refused(), 30))
    np.testing.assert_array_equal(fitted.predict(data[0]), local.predict(data[0]))


def test_a_cluster_without_workers_is_told_of_and_given_up(data, monkeypatch):
    monkeypatch.setattr(module, "_LOOK", 0.05)
    monkeypatch.setattr(module, "_SILENCE", 0.2)
    dX, dy = cut((data[0], data[2]), [120])
    options = {"processes": False, "n_workers": 0, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        clf = UncertainSVC()
        begin = time.perf_counter()
        with (
            dask.config.set({"distributed.scheduler.no-workers-timeout": "500 ms"}),
            pytest.warns(UserWarning, match=r"has no workers since .* given up after 0\.5 s"),
            pytest.raises(TimeoutError, match=r"has no workers since .*no-workers-timeout"),
        ):
            clf.fit(dX, dy)
        assert time.perf_counter() - begin < 10
        require_no_tasks_but(set(), client)
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(lambda: (time.sleep(0.5), cluster.scale(1)))
            with pytest.warns(UserWarning, match="has no workers"):
                clf.fit(dX, dy)  # workers that come late do the work
            late.result()


def test_a_scheduler_that_is_gone_ends_a_fit_soon(data, monkeypatch):
    dX, dy = cut((data[0], data[2]), [120])
    options = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
    cluster = LocalCluster(**options)
    client = Client(cluster, timeout="20 s")  # for which a new connection is tried
    reduce, evaluations, gone = module.Partitions.reduce, [], []

    def closing(self, *arguments):
        evaluations.append(0)
        if len(evaluations) == 3:
            cluster.sync(cluster.scheduler.close)
            gone.append(time.perf_counter())
        return reduce(self, *arguments)

    monkeypatch.setattr(module.Partitions, "reduce", closing)
    with client.as_current(), pytest.raises((OSError, CancelledError)) as caught:
        UncertainSVC(tol=1e-9).fit(dX, dy)
    assert time.perf_counter() - gone[0] < 8
    assert caught.value.__context__ is None
    for each in (client, cluster):
        with suppress(TimeoutError):  # both would wait for the scheduler
            each.close(timeout=0.5)
    cluster.status = Status.closed  # as much as it can be; else it complains when it is collected


INTERRUPTED = """
import os, signal, threading, time
import dask
import numpy as np
from distributed import Client
from halosvm.dask import UncertainSVC

signal.signal(signal.SIGINT, signal.default_int_handler)
client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")
X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
np.begun = threading.Event()  # where a function that was pickled finds it

def slow(i):
    np.begun.set()
    time.sleep(0.5)
    return X

def send():
    np.begun.wait()
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=send).start()
parts = [dask.delayed(slow)(i) for i in range(200)]
clf = UncertainSVC()
try:
    clf.fit(parts, [y] * 200)
except KeyboardInterrupt:
    print(time.perf_counter() - sent < 2.0, vars(clf) == vars(UncertainSVC()))
for _ in range(100):
    left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    if not left:
        break
    time.sleep(0.05)
print(left)
client.close()
"""


def test_interrupt_cancels_what_the_workers_were_to_do():
    command = [sys.executable, "-W", "ignore", "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "True True\n0\n", done.stderr


def test_nothing_is_left_on_the_workers_after_a_fit(client, data):
    before = tasks_of(client)  # of what failed in other tests
    dX, dstd, dy = cut(data[:3], [120])
    UncertainSVC().fit(dX, dy, X_std=dstd)
    require_no_tasks_but(before, client)
