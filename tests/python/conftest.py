"""What several test files share: data of every covariance kind, real data, and the true optimum."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from cases import DTYPES, KINDS
from hypothesis import settings
from scipy import sparse
from scipy.special import ndtr
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from halosvm import Covariances, Gaussians, _core, reference

settings.register_profile("halosvm", deadline=None)  # nothing here is about time
settings.load_profile("halosvm")

# A worker of pytest-xdist has one processor. OpenBLAS has threads for all of them, for small
# matrices too, and they wait by spinning: an eigendecomposition takes ten times as long.
threadpool_limits(1, "blas")
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes that tests start

DATA = Path(__file__).parent / "data"

# Files whose tests compare what the compiled core computes: those to run with each build of it, a
# file or two for each part of the core. The C++ tests run with the baseline's flags as well; these
# see the loops that are compiled for speed.
COMPUTING = (
    "core/normal",
    "files/models_of_the_core",
    "gaussians/covariances",
    "kernel/kernels",
    "linear/libsvm",
    "linear/sparse",
    "loss/loss",
    "loss/marginal_logistic",
    "population/empirical_bayes_core",
    "maps/fourier_features",
    "maps/nystroem",
    "objective/objective",
    "solver/best_case",
    "solver/dual_coordinate",
    "solver/large_spreads",
    "solver/sgd",
    "solver/wide_data",
)


def _computing_paths():
    files = (name.split("/") for name in COMPUTING)
    return {Path(__file__).parent / folder / f"test_{name}.py" for folder, name in files}


def pytest_ignore_collect(collection_path, config):
    """Leave files unread whose tests `-m computes` would leave out: most of them."""
    left_out = config.option.markexpr == "computes" and collection_path.suffix == ".py"
    return True if left_out and collection_path not in _computing_paths() else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    paths = _computing_paths()
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise pytest.UsageError(f"COMPUTING names files that do not exist: {missing}")
    for item in items:
        if item.path in paths:
            item.add_marker("computes")


@pytest.fixture(params=KINDS)
def kind(request):
    """Every way to store covariances."""
    return request.param


@pytest.fixture(params=DTYPES, ids=("float64", "float32"))
def dtype(request):
    """Both types that the core reads in place."""
    return request.param


def _make_covariances(kind, n, d, rng, dtype=np.float64, scale=1.0):
    """Return random covariances of one kind, of standard deviations around `scale`."""
    variances = (scale**2 * rng.uniform(0.05, 1.0, (n, d))).astype(dtype)
    factors = (scale * rng.normal(size=(n, d, 3)) / 2).astype(dtype)
    ranks = np.r_[0, d, rng.integers(0, d + 1, n)][:n]
    ragged = [(scale * rng.normal(size=(d, rank)) / 2).astype(dtype) for rank in ranks]
    some = sparse.csr_array(variances * (rng.uniform(size=(n, d)) < 0.5))
    columns = rng.permutation(d)[: max(1, d // 2)]
    in_columns = {"columns": columns, "n_features": d}
    full = factors.astype(np.float64) @ factors.astype(np.float64).transpose(0, 2, 1)
    if dtype == np.float32:  # rounding to float32 must not cost a matrix its definiteness
        full += 1e-3 * scale**2 * np.eye(d)
    makers = {
        "zero": lambda: Covariances.zero(n, d),
        "isotropic": lambda: Covariances.isotropic(variances[:, 0].copy(), d),
        "isotropic_std": lambda: Covariances.from_std(np.sqrt(variances[:, 0]), d),
        "diagonal": lambda: Covariances.diagonal(variances),
        "diagonal_std": lambda: Covariances.from_std(np.sqrt(variances)),
        "half_certain": lambda: Covariances.diagonal(
            variances * (np.arange(n) % 2).astype(dtype)[:, None]
        ),
        "low_rank": lambda: Covariances.low_rank(factors),
        "low_rank_diagonal": lambda: Covariances.low_rank(factors, variances),
        "ragged": lambda: Covariances.low_rank(ragged),
        "ragged_diagonal": lambda: Covariances.low_rank(ragged, variances),
        "full": lambda: Covariances.full(full.astype(dtype)),
        "sparse_diagonal": lambda: Covariances.diagonal(some),
        "sparse_std": lambda: Covariances.from_std(some.sqrt()),
        "columns_diagonal": lambda: Covariances.diagonal(
            variances[:, : len(columns)].copy(), **in_columns
        ),
        "columns_low_rank": lambda: Covariances.low_rank(
            factors[:, : len(columns)].copy(), **in_columns
        ),
        "columns_full": lambda: Covariances.full(
            full[:, : len(columns), : len(columns)].astype(dtype), **in_columns
        ),
    }
    return makers[kind]()


def _make_gaussians(kind="diagonal", n=60, d=4, *, seed=0, dtype=np.float64, scale=1.0, gap=0.7):
    """Return Gaussians of overlapping classes and their labels in {-1, +1}."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, -1, 1)
    mean = gap * y[:, None] / np.sqrt(d) + rng.normal(size=(n, d)) + 0.5
    covariances = _make_covariances(kind, n, d, rng, dtype, scale)
    return Gaussians(mean.astype(dtype), cov=covariances), y


def _solve(X, y, solver="auto", *, lam=0.02, weights=None, loss="expected_hinge", **options):
    """Run a solver that reads all rows in each step; options of objective and solver together."""
    n_problems = options.pop("n_problems", 1)
    codes = np.asarray(y if n_problems > 1 else np.asarray(y) > 0, dtype=np.int16)
    objective = _core.Objective(
        X.core_view(),
        codes,
        n_problems,
        weights,
        lam,
        loss=loss,
        fit_intercept=options.pop("fit_intercept", True),
        n_threads=options.pop("n_threads", 1),
    )
    start = np.zeros((n_problems, X.shape[1])), np.zeros(n_problems)
    coef, intercept = options.pop("start", start)
    return _core.minimize(objective, coef=coef, intercept=intercept, method=solver, **options)


@pytest.fixture(scope="session")
def solve():
    """Return the function of that name."""
    return _solve


class _SmoothedProblem:
    """J in standardised features u = (w * unit, intercept of centred means), sqrt(s^2 + floor^2)
    in place of s: value, Newton's step, and bounds of min J itself (spec A.4, A.7, A.8).
    """

    def __init__(self, X, y, lam, weights, loss, fit_intercept):
        c = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        used = c > 0
        self.c, self.y, self.free = c[used] / c.sum(), np.asarray(y)[used], float(fit_intercept)
        means = X.mean[used].astype(np.float64)
        means -= self.free * (self.c @ means)
        S = X.covariances.to_full()[used] * (loss != "hinge")
        unit = np.sqrt(self.c @ (means**2 + np.einsum("njj->nj", S)))
        unit[unit == 0.0] = 1.0
        self.ridge, self.S = lam / unit**2, S / (unit[:, None] * unit)
        self.side = np.column_stack([means / unit, np.full(len(means), self.free)])

    def look(self, u, floor):
        q = self.S @ u[:-1]
        spread = np.sqrt(np.maximum(q @ u[:-1], 0.0) + floor**2)
        return 1.0 - self.y * (self.side @ u), spread, q

    def value(self, u, floor):
        m, s, _ = self.look(u, floor)
        return 0.5 * self.ridge @ u[:-1] ** 2 + self.c @ reference.expected_hinge(m, s)[0]

    def newton_step(self, u, floor):
        m, s, q = self.look(u, floor)
        curve = self.c * np.exp(-0.5 * (m / s) ** 2) / np.sqrt(2 * np.pi) / s
        gradient = np.append(self.ridge * u[:-1] + curve @ q, 0.0)
        gradient -= (self.c * ndtr(m / s) * self.y) @ self.side
        a = -self.y[:, None] * self.side
        a[:, :-1] -= (m / s**2)[:, None] * q
        hessian = (a.T * curve) @ a
        hessian[:-1, :-1] += np.einsum("n,nij->ij", curve, self.S) - (q.T * (curve / s**2)) @ q
        hessian[:-1, :-1] += np.diag(self.ridge)
        hessian[-1, -1] += 1.0 - self.free
        scale = 1.0 / np.sqrt(np.maximum(hessian.diagonal(), 1e-100))
        hessian = hessian * scale[:, None] * scale + 1e-14 * np.eye(len(u))
        step = -scale * np.linalg.solve(hessian, scale * gradient)
        return step, gradient @ step

    def lower_bound(self, u, floor):
        m, s, q = self.look(u, floor)
        theta, share = ndtr(m / s), np.ones(len(m))
        if self.free:  # sum_i c_i y_i theta_i = 0, by scaling down the heavier side
            mass = np.array([(self.c * theta)[self.y * sign > 0].sum() for sign in (1, -1)])
            share = np.where(self.y > 0, *np.minimum(1.0, mass[::-1] / np.maximum(mass, 1e-300)))
        curve = self.c * share * np.exp(-0.5 * (m / s) ** 2) / np.sqrt(2 * np.pi) / s
        dual = (self.c * share * theta * self.y) @ self.side[:, :-1] - curve @ q
        return (self.c * share) @ theta - 0.5 * np.sum(dual**2 / self.ridge)


def _bracket(X, y, lam, weights=None, loss="expected_hinge", *, fit_intercept=True, relative=1e-9):
    """Return bounds of the optimal objective from below and above, as close as `relative` if
    rounding allows: Newton's method in NumPy on smoothed problems. It shares no code with the core.
    """
    problem = _SmoothedProblem(X, y, lam, weights, loss, fit_intercept)
    u, floor = np.zeros(X.shape[1] + 1), 1.0
    low, high = 0.0, 1.0  # J >= 0, and J(0, 0) = 1
    while high - low > relative * high and floor > 1e-13:
        for _ in range(60):
            step, slope = problem.newton_step(u, floor)
            value, length = problem.value(u, floor), 1.0
            while problem.value(u + length * step, floor) > value + 1e-4 * length * slope:
                length *= 0.5
                if length < 1e-10:
                    break
            if length < 1e-10:
                break
            u = u + length * step
            if -slope < 1e-4 * relative * value:
                break
        low = max(low, problem.lower_bound(u, floor))
        high = min(high, problem.value(u, 0.0))
        floor *= 0.2
    return low, high


@pytest.fixture(scope="session")
def bracket():
    """Return the function of that name."""
    return _bracket


@pytest.fixture(scope="session")
def make_covariances():
    """Return the function of that name."""
    return _make_covariances


@pytest.fixture(scope="session")
def make_gaussians():
    """Return the function of that name."""
    return _make_gaussians


@pytest.fixture(scope="session")
def heart():
    """Return means (270, 13) and labels of a real data set, LIBSVM's heart_scale."""
    X, y = load_svmlight_file(str(DATA / "heart_scale" / "heart_scale"))
    return X.toarray(), y.astype(int)


@pytest.fixture(scope="session")
def toy():
    """Return means, variances (10000, 16) and labels of the toy example of SVM-GSU."""

    def read(name):
        with gzip.open(DATA / "toy_svmgsu" / f"{name}.dat.gz", "rt") as lines:
            return np.array(
                [[float(f.rsplit(":")[-1]) for f in line.split()[1:]] for line in lines]
            )

    return read("mean"), read("cov_diag"), read("labels")[:, 0].astype(int)
