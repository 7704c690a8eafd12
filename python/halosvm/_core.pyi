# Types of the compiled core; private, may change at any time. In step with python/bindings.

from collections.abc import Callable, Sequence
from typing import Any, NotRequired, Protocol, TypeAlias, TypedDict, overload

import numpy as np
from numpy.typing import NDArray

_Doubles: TypeAlias = NDArray[np.float64]

# normal
def normal_pdf(z: _Doubles) -> Any: ...
def normal_cdf(z: _Doubles) -> Any: ...
def normal_tail(t: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles, _Doubles]: ...

# loss
class _LossTraits(TypedDict):
    convex: bool
    has_radius: bool
    kinked: bool
    margin: float
    steepest: float

def loss_names() -> list[str]: ...
def loss_traits(loss: str) -> _LossTraits: ...
def evaluate_loss(loss: str, m: _Doubles, s: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]: ...
def loss_curvature(loss: str, m: _Doubles, s: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]: ...

# gaussians
class Covariances:
    @staticmethod
    def zero(n_samples: int, n_features: int) -> Covariances: ...
    @staticmethod
    def isotropic(values: NDArray[Any], n_features: int, squared: bool = False) -> Covariances: ...
    @staticmethod
    def diagonal(values: NDArray[Any], squared: bool = False) -> Covariances: ...
    @staticmethod
    def low_rank(
        factors: NDArray[Any],
        n_features: int,
        offsets: NDArray[np.int64] | None = None,
        diagonal: NDArray[Any] | None = None,
    ) -> Covariances: ...
    @staticmethod
    def full(values: NDArray[Any]) -> Covariances: ...
    @staticmethod
    def sparse_diagonal(values: Any, squared: bool = False) -> Covariances: ...
    @staticmethod
    def columns(inner: Covariances, columns: list[int], n_features: int) -> Covariances: ...
    @property
    def kind(self) -> str: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def weighted_product(self, a: _Doubles, w: _Doubles) -> _Doubles: ...
    def check(self, argument: str) -> None: ...

class Gaussians:
    def __init__(self, means: Any, covariances: Covariances) -> None: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def check(self, argument: str) -> None: ...

class Mixtures:
    @overload
    def __init__(self, components: Gaussians) -> None: ...
    @overload
    def __init__(
        self, components: Gaussians, offsets: NDArray[np.int64], weights: _Doubles
    ) -> None: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...

# subspace
def truncate(
    covariances: Covariances, p: float, n_threads: int = 0
) -> tuple[_Doubles, NDArray[np.int64]]: ...
def truncate_float32(
    covariances: Covariances, p: float, n_threads: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
def truncate_diagonal(
    covariances: Covariances, p: float, n_threads: int = 0
) -> NDArray[np.bool_]: ...

# empirical_bayes
class Population:
    def __init__(
        self,
        kind: str,
        weights: _Doubles,
        means: _Doubles,
        matrices: _Doubles | None = None,
        variances: _Doubles | None = None,
        factors: _Doubles | None = None,
    ) -> None: ...
    @property
    def classes(self) -> list[int]: ...
    def labelled(self, classes: Sequence[int] | NDArray[np.intp], tied: bool) -> Population: ...
    def holding(
        self, weights: Sequence[bool], means: Sequence[bool], covariances: Sequence[bool]
    ) -> Population: ...
    def with_offsets(self, covariance: _Doubles, form: str) -> Population: ...
    @property
    def offsets(self) -> _Doubles: ...
    def of_class(self, c: int) -> Population: ...
    @property
    def weights(self) -> _Doubles: ...
    @property
    def means(self) -> _Doubles: ...
    @property
    def matrices(self) -> _Doubles: ...
    @property
    def variances(self) -> _Doubles: ...
    @property
    def factors(self) -> _Doubles: ...

class PopulationFit(TypedDict):
    population: Population
    history: _Doubles
    iterations: int
    predicted_gain: float
    converged: bool
    message: str
    offsets: NotRequired[tuple[_Doubles, _Doubles]]

def fit_population(
    X: Gaussians,
    start: Population,
    *,
    labels: Sequence[int] | NDArray[np.intp] = (),
    batches: Sequence[int] | NDArray[np.intp] = (),
    offset_prior: _Doubles | None = None,
    offset_prior_weight: float = 0.0,
    sample_weight: _Doubles | None = None,
    max_iterations: int,
    tolerance: float,
    prior: _Doubles,
    prior_weight: float = 0.0,
    prior_scatter: _Doubles | None = None,
    scale: _Doubles,
    accelerate: bool = True,
    n_threads: int = 0,
    report: Callable[[int, float, float], None] | None = None,
    limits: tuple[_Doubles, _Doubles] | None = None,
) -> PopulationFit: ...
def batch_offsets(
    population: Population,
    X: Gaussians,
    batches: NDArray[np.intp],
    means: _Doubles | None = None,
    covariances: _Doubles | None = None,
    n_threads: int = 0,
) -> tuple[_Doubles, _Doubles]: ...
def remove_offsets(
    population: Population,
    X: Gaussians,
    batches: NDArray[np.intp],
    labels: NDArray[np.intp],
    means: _Doubles,
    covariances: _Doubles,
    parts: _Doubles,
    n_threads: int = 0,
) -> dict[str, _Doubles]: ...
def measurement_log_density(
    population: Population,
    X: Gaussians,
    n_threads: int = 0,
    limits: tuple[_Doubles, _Doubles] | None = None,
) -> _Doubles: ...
def true_value_posteriors(
    population: Population,
    X: Gaussians,
    joined: bool,
    covariances: bool = True,
    n_threads: int = 0,
    limits: tuple[_Doubles, _Doubles] | None = None,
) -> dict[str, Any]: ...
def latent_rank(X: Gaussians) -> int: ...
def largest_steps(
    X: Gaussians, scale: _Doubles, radius: float, norm: float, n_threads: int = 0
) -> _Doubles: ...
def fourier_features(
    frequencies: _Doubles,
    phases: _Doubles | None,
    X: Gaussians,
    means: NDArray[Any] | None,
    variances: NDArray[Any] | None = None,
    factors: NDArray[Any] | None = None,
    matrices: NDArray[Any] | None = None,
    n_threads: int = 0,
) -> None: ...
def fourier_bound(
    frequencies: _Doubles,
    phases: _Doubles | None,
    X: Gaussians,
    radius: float,
    norm: float,
    printed: bool = False,
    n_threads: int = 0,
) -> _Doubles: ...
def nystroem_features(
    Z: Gaussians,
    gamma: _Doubles,
    projection: _Doubles,
    X: Gaussians,
    means: NDArray[Any] | None,
    variances: NDArray[Any] | None = None,
    factors: NDArray[Any] | None = None,
    matrices: NDArray[Any] | None = None,
    n_threads: int = 0,
) -> None: ...

# kernel
def gram(
    X: Gaussians | Mixtures,
    Y: Gaussians | Mixtures | None,
    out: NDArray[Any],
    kind: str,
    gamma: _Doubles,
    degree: int = 3,
    coef0: float = 1.0,
    normalize: bool = False,
    n_threads: int = 0,
    report: Callable[[float], None] | None = None,
) -> None: ...
def gram_diagonal(
    X: Gaussians | Mixtures,
    kind: str,
    gamma: _Doubles,
    degree: int = 3,
    coef0: float = 1.0,
    n_threads: int = 0,
) -> _Doubles: ...
def expansion_variance(
    X: Gaussians | Mixtures,
    Z: Gaussians | Mixtures,
    coefficients: _Doubles,
    gamma: _Doubles,
    normalize: bool = False,
    n_threads: int = 0,
) -> _Doubles: ...

# objective
class Objective:
    def __init__(
        self,
        data: Gaussians,
        labels: NDArray[np.int16],
        n_problems: int,
        sample_weight: _Doubles | None,
        lam: float,
        loss: str = "expected_hinge",
        fit_intercept: bool = True,
        n_threads: int = 0,
        *,
        is_part: bool = False,
        offsets: _Doubles | None = None,
        variances: _Doubles | None = None,
        norm: float = 2.0,
        centre: _Doubles | None = None,
    ) -> None: ...
    def __call__(self, W: _Doubles, b: _Doubles, floor: float = 0.0) -> Evaluation: ...
    def moments(self) -> Moments: ...
    def hessian_vector(
        self, W: _Doubles, b: _Doubles, V: _Doubles, v0: _Doubles
    ) -> tuple[_Doubles, _Doubles]: ...
    def exact_values(
        self, W: _Doubles, b: _Doubles, margin: float = 0.0, unit: float = 1.0
    ) -> _Doubles: ...  # values and errors
    def exact_intercept(self, W: _Doubles) -> _Doubles: ...
    def has_many_kinks(self) -> bool: ...
    def lower_bound(self, W: _Doubles, b: _Doubles) -> _Doubles: ...

# summed_objective
class Evaluation:
    def __init__(
        self,
        *,
        value: _Doubles,
        slope: _Doubles,
        square: _Doubles,
        dual: _Doubles,
        dual_positive: _Doubles,
        dual_size: _Doubles,
        curvature: _Doubles,
        coef: _Doubles,
        intercept: _Doubles,
    ) -> None: ...
    @staticmethod
    def zero(n_problems: int, n_features: int) -> Evaluation: ...
    def add(self, other: Evaluation, share: float) -> None: ...
    value: _Doubles
    slope: _Doubles
    square: _Doubles
    dual: _Doubles
    dual_positive: _Doubles
    dual_size: _Doubles
    curvature: _Doubles
    coef: _Doubles
    intercept: _Doubles

class Moments:
    def __init__(
        self, *, mean: _Doubles, centre: _Doubles, variance: _Doubles, widest: _Doubles = ...
    ) -> None: ...
    mean: _Doubles
    centre: _Doubles
    variance: _Doubles
    widest: _Doubles

class Part(Protocol):
    def __call__(self, W: _Doubles, b: _Doubles, floor: float, /) -> Evaluation: ...
    def moments(self) -> Moments: ...

class SummedObjective:
    def __init__(
        self,
        parts: Sequence[Part],
        *,
        weights: Sequence[float],
        n_problems: int,
        n_features: int,
        lam: float,
        loss: str = "expected_hinge",
        fit_intercept: bool = True,
        at_origin: float | None = None,
        many_kinks: bool = False,
    ) -> None: ...
    def __call__(self, W: _Doubles, b: _Doubles, floor: float = 0.0) -> Evaluation: ...
    def moments(self) -> Moments: ...
    def exact_intercept(self, W: _Doubles) -> _Doubles: ...
    def has_many_kinks(self) -> bool: ...

# solvers
class Result(TypedDict):
    coef: _Doubles
    intercept: _Doubles
    objective: _Doubles
    lower_bound: _Doubles
    suboptimality: _Doubles
    steps: int
    epochs: int
    converged: bool
    status: str
    message: str

def minimize_sgd(
    objective: Objective,
    *,
    coef: _Doubles,
    intercept: _Doubles,
    batch_size: int = 32,
    max_epochs: int = 100,
    max_steps: int = 0,
    tolerance: float = 0.01,
    averaging: str = "weighted",
    seed: int = 0,
    report: Callable[[int, float, float], None] | None = None,
    proximal: bool = False,
) -> Result: ...
def minimize(
    objective: Objective | SummedObjective,
    *,
    coef: _Doubles,
    intercept: _Doubles,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
    report: Callable[[int, float, float], None] | None = None,
    method: str = "auto",
) -> Result: ...

class Judged(TypedDict):
    suboptimality: _Doubles
    status: str
    message: str

def judge(
    objective: _Doubles,
    lower_bound: _Doubles,
    error: _Doubles,
    steps: int,
    max_iterations: int,
    tolerance: float,
) -> Judged: ...
def sgd_row(seed: int, draw: int, n_rows: int) -> int: ...

# stream
# Of the core: arrays and numbers, to be kept and given back.
StreamState: TypeAlias = tuple[_Doubles | float | int, ...]

def begin_stream(coef: _Doubles, intercept: _Doubles) -> StreamState: ...
def stream_model(state: StreamState) -> tuple[_Doubles, _Doubles]: ...
def follow_stream(
    data: Gaussians,
    before: StreamState,
    *,
    lam: float,
    loss: str,
    fit_intercept: bool,
    norm: float = 2.0,
    codes: NDArray[np.int16] | None = None,
    high: _Doubles | None = None,
    low: _Doubles | None = None,
    share_high: float = 1.0,
    share_low: float = 1.0,
    variances: _Doubles | None = None,
    sample_weight: _Doubles | None = None,
) -> StreamState: ...

# linear_model
def decision_function(
    means: Any, coef: _Doubles, intercept: _Doubles, n_threads: int = 0
) -> _Doubles: ...
def write_linear_model(
    coef: _Doubles,
    intercept: _Doubles,
    *,
    estimator: str,
    loss: str,
    C: float,
    classes: list[Any],
    feature_names: list[str],
) -> str: ...
def read_linear_model(text: str | bytes) -> dict[str, Any]: ...
def decision_std(covariances: Covariances, coef: _Doubles, n_threads: int = 0) -> _Doubles: ...
def move_intercepts(coef: _Doubles, intercept: _Doubles, centre: _Doubles) -> _Doubles: ...
def side_probability(mean: _Doubles, std: _Doubles) -> Any: ...

# calibration
def fit_platt(
    decision: _Doubles, positive: NDArray[np.bool_], weights: _Doubles | None = None
) -> tuple[float, float]: ...
def platt_probability(mean: _Doubles, std: _Doubles, slope: float, offset: float) -> Any: ...

# config
class _BuildInfo(TypedDict):
    isa: str
    compiler: str
    eigen: str
    pybind11: str

def build_info() -> _BuildInfo: ...
def thread_count() -> int: ...

# left_behind
def begin_left_behind() -> None: ...
def end_left_behind() -> None: ...
