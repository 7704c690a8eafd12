"""`next_measurement`: a machine, measurements and errors of a new reading in; what it gains out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.checks import units
from halosvm.checks.estimator import GaussianEstimator, first_index
from halosvm.checks.parameters import require_count
from halosvm.checks.reading import as_float_array
from halosvm.core.progress import say
from halosvm.measurement.candidates import first_of
from halosvm.measurement.classifier import MeasurementClassifier
from halosvm.population import ClassPopulations, EmpiricalBayes

from .judges import judge_of, steps_of
from .outlook import Outlook, Population
from .table import ReadingTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

_NUMBERS = 4_000_000  # of one block of rows


def next_measurement(
    machine: Any,
    X: Gaussians | ArrayLike,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
    new_error: ArrayLike | None = None,
    cost: ArrayLike = 1.0,
    population: EmpiricalBayes | ClassPopulations | None = None,
    epsilon: float = 0.05,
    n_draws: int = 1024,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int = 0,
) -> ReadingTable:
    r"""Tell which reading of which object makes a classifier less often wrong, and by how much.

    One more reading of feature j of an object, of error :math:`\tau`, makes its true value known
    better, and moves what is known of it to one side or the other. Both are known in the mean
    before the reading is made, by the posterior of the true values.

    Parameters
    ----------
    machine : classifier
        Fitted. One with `predict_proba` is asked for the probability that its label is wrong,
        1 - max p. Any other tells a label of true values, and is wrong where the label of the true
        value is not the one that is told. In pipelines that begin with `EmpiricalBayes`, the steps
        after it see true values.
    X : Gaussians or array-like of shape (n_samples, n_features)
        Measurements of the objects, or only their values; NaN and masked entries are missing, and
        can be measured for the first time.
    X_std, X_cov
        Their errors, as of `EmpiricalBayes.fit`.
    new_error : float or array-like of shape (n_features,) or (n_samples, n_features), optional
        Standard deviation of the error of a new reading, told as those of `X` are; infinite where
        there can be none. None takes the median error of each feature in `X`.
    cost : float or array-like of shape (n_features,) or (n_samples, n_features), default=1.0
        What a reading costs, in any unit.
    population : EmpiricalBayes or ClassPopulations, optional
        That of the true values, fitted. None takes that of the machine: of a pipeline, of
        `ClassPopulations` and `MeasurementClassifier`. Where there is none, true values could be
        any, and posteriors are the measurements as they are.
    epsilon : float, default=0.05
        Probability of another label that `largest_error` allows, below 1/2.
    n_draws : int, default=1024
        Draws of true values of each object, for machines that are neither linear nor have
        `predict_proba`; rounded up to a power of 2.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.
    verbose : int, default=0
        If positive, progress is printed.

    Returns
    -------
    ReadingTable of shape (n_readings,)
        A structured array, the largest gain per cost first, which prints as a table and makes a
        frame by ``pandas.DataFrame``: ``row``, its number in `X`; ``object``, its label in the
        index of `X`, or else the number; ``feature``, its name or number; ``wrong``, the
        probability of a wrong label as of now, ``wrong_after`` in the mean after the reading, and
        their difference ``gain``; ``cost`` and ``gain_per_cost``; and ``largest_error``, of the
        reading that there is: with it the label is wrong with probability `epsilon`, all else
        unchanged. It is infinite where the reading is not needed, 0 where not even an exact one
        does, and NaN where there is no formula: it is there for linear machines of two classes and
        populations of one component.

    Raises
    ------
    ValueError, TypeError
        For data, errors, costs or machines that make no sense.

    Warns
    -----
    ErrorsLeftOutWarning
        If the examples of the fit had errors, and `X` is an array without any.

    See Also
    --------
    halosvm.reference.wrong_after_reading : The formula of a linear machine in NumPy.

    Notes
    -----
    New readings are independent of old ones, and join them by their errors. For linear machines of
    two classes and one component the result is exact, in Owen's T function. With more components
    it is an integral over the values of the reading by 256 points, to about 1e-4. Probabilities are
    asked for at 64 values of each reading, which takes 64 times as many rows and features: that is
    to about 1e-3, or to 0.01 where they change within a tenth of the spread of a reading. With n
    draws, probabilities and gains of linear machines came out right to 0.1 / sqrt(n) in the root
    mean square, and to 1 / sqrt(n) in the worst of 1,000; no reading counts as more exact than a
    tenth of what is not known of its feature.

    What a reading gains is counted where it changes the label: by how much the new label is then
    more probable than the old one. If probabilities are those of posteriors, that is the fall of
    1 - max p in the mean. Sizes of errors that tell classes apart (`errors_as_news`) say something
    else of a reading that was chosen: leave them out.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import EmpiricalBayes, UncertainSVC, next_measurement
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> errors = rng.uniform(0.1, 2.0, (200, 2))
    >>> X = np.column_stack([2.0 * y, 0.0 * y]) + rng.normal(size=(200, 2)) * (0.5 + errors)
    >>> from halosvm import Gaussians
    >>> model = make_pipeline(EmpiricalBayes(), UncertainSVC()).fit(Gaussians(X, std=errors), y)
    >>> table = next_measurement(model, X, X_std=errors, new_error=0.2)
    >>> int(table["feature"][0]), bool(table["gain"][0] > 0.2)
    (0, True)
    """
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon must be above 0 and below 1/2, got {epsilon!r}")
    require_count(n_draws, "n_draws")
    inner = _innermost(machine)
    if not hasattr(inner, "predict"):
        raise TypeError(f"machine must be a classifier, got {machine!r}")
    check_is_fitted(inner)
    if not hasattr(inner, "classes_"):
        raise TypeError(f"machine must be a classifier, but {type(inner).__name__} has no classes_")
    own, machine_of_values = _parts(inner)
    known = own if population is None else population
    if known is not None and not isinstance(known, EmpiricalBayes | ClassPopulations):
        raise TypeError(
            f"population must be EmpiricalBayes or ClassPopulations, got {type(known).__name__}"
        )
    if known is not None:
        check_is_fitted(known)
    believed = None if known is None else Population(known)
    told = EmpiricalBayes()._read(X, X_std, X_cov, reset=True)  # noqa: SLF001
    errors, data = _errors_of(new_error, told), told
    first = first_of(inner)
    if isinstance(first, GaussianEstimator):
        first._warn_if_errors_left_out(X, X_std, X_cov)  # noqa: SLF001
        data = first._check_features(data)  # noqa: SLF001
    if believed is None:
        if np.isnan(data.mean).any():
            row, column = np.argwhere(np.isnan(data.mean))[0]
            raise ValueError(
                f"X: row {row}, column {column} is missing, and without a population any true "
                "value is possible; give population=EmpiricalBayes().fit(...)"
            )
    else:
        data = believed.read(data)
    wanted = "the training data"
    factors = units.error_factors(told.feature_units, data.feature_units, 2, "new_error", wanted)
    factors = np.ones(data.shape[1]) if factors is None else factors
    costs = _of_each(cost, "cost", data.shape)
    bad = np.argwhere(~(costs > 0.0) | np.isinf(costs))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"cost of row {row}, feature {column} is {costs[row, column]:g}; it must be positive "
            "and finite"
        )
    index = first_index({"X": X, "X_std": X_std, "X_cov": X_cov})[1]
    found = _gains(
        inner,
        machine_of_values,
        data,
        believed,
        errors * factors,
        epsilon,
        {"n_draws": n_draws, "random_state": random_state},
        verbose,
    )
    rows, features = np.nonzero(np.isfinite(errors))
    names = data.feature_names
    wrong, gain = found[0][rows], found[1][rows, features]
    largest = (found[2] / factors)[rows, features]
    return ReadingTable.of(
        row=rows,
        object=rows if index is None else np.asarray(index)[rows],
        feature=features if names is None else np.asarray(names.tolist())[features],
        wrong=wrong,
        wrong_after=wrong - gain,
        gain=gain,
        cost=costs[rows, features],
        gain_per_cost=gain / costs[rows, features],
        largest_error=largest,
    )


def _gains(
    machine: Any,
    machine_of_values: Any,
    data: Gaussians,
    population: Population | None,
    errors: Array,
    epsilon: float,
    draws: dict[str, Any],
    verbose: int,
) -> tuple[Array, Array, Array]:
    """Return probabilities of wrong labels, (n,), gains, (n, d), and largest errors, (n, d)."""
    n, d = data.shape
    wrong, gain, largest = np.empty(n), np.zeros((n, d)), np.empty((n, d))
    scale = np.ones(d) if population is None else population.error_scale
    some = Outlook.of(data[: min(n, 100)], population)
    judge = judge_of(machine, machine_of_values, some, population, **draws)
    components = some.r.shape[1]
    per_row = components * d * d + components * judge.numbers_a_row
    size = max(1, _NUMBERS // per_row)
    begin = time.perf_counter()
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        rows = Outlook.of(data[part], population)
        wrong[part] = judge.now(rows)
        largest[part] = judge.largest_error(rows, epsilon)
        for j in range(d):
            offered = np.isfinite(errors[part, j])
            if offered.any():
                tau = np.where(offered, errors[part, j], 0.0) * scale[j]
                gain[part, j] = judge.gain(rows, j, tau)
        seconds = time.perf_counter() - begin
        say(f"{part.stop} of {n} rows   {seconds:.1f} s", verbose=verbose)
    return wrong, gain, largest


# ---- what is given -------------------------------------------------------------------------------
def _innermost(machine: Any) -> Any:
    """Return the classifier within searches and frozen ones."""
    while True:
        if isinstance(machine, FrozenEstimator):
            machine = machine.estimator
        elif hasattr(machine, "best_estimator_"):
            machine = machine.best_estimator_
        else:
            return machine


def _parts(machine: Any) -> tuple[Any, Any]:
    """Return the population of a machine, None for none, and what takes true values."""
    if isinstance(machine, ClassPopulations):
        return machine, machine
    if isinstance(machine, MeasurementClassifier):
        found = machine.features_
        of_all = getattr(found, "population_", None)
        return getattr(found, "class_populations_", None) if of_all is None else of_all, machine
    if isinstance(machine, UncertainCalibratedClassifier):
        return _parts(_innermost(machine.estimator_))[0], machine
    steps = steps_of(machine)
    at = [k for k, step in enumerate(steps) if isinstance(step, EmpiricalBayes)]
    if not at:
        return None, machine
    if at[0] > 0:
        raise ValueError(
            f"machine: {type(steps[0]).__name__} stands before EmpiricalBayes, so that its "
            "population is not that of X; put EmpiricalBayes first"
        )
    rest = steps[1:]
    return steps[0], rest[0] if len(rest) == 1 else Pipeline(
        [(str(k), s) for k, s in enumerate(rest)]
    )


def _errors_of(new_error: Any, data: Gaussians) -> Array:
    """Return the error of each possible reading, infinite where there can be none."""
    if new_error is not None:
        errors = _of_each(new_error, "new_error", data.shape)
        bad = np.argwhere(~(errors >= 0.0))
        if bad.size:
            row, column = bad[0]
            raise ValueError(
                f"new_error of row {row}, feature {column} is {errors[row, column]:g}; it must "
                "be >= 0"
            )
        return errors
    std = np.where(np.isnan(data.mean), np.nan, np.sqrt(data.covariances.variances()))
    lost = np.flatnonzero(np.isnan(std).all(axis=0))
    if data.covariances.certain or lost.size:
        what = "X has no errors" if not lost.size else f"X has no value in column {lost[0]}"
        raise ValueError(f"{what}, whose median new_error is by default; give new_error")
    return np.broadcast_to(np.nanmedian(std, axis=0), data.shape)


def _of_each(given: Any, argument: str, shape: tuple[int, int]) -> Array:
    """Return a number for each object and feature, of one, one a feature, or all of them."""
    values = as_float_array(given, argument).astype(np.float64)
    if values.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"{argument} has shape {values.shape}, expected a number, ({shape[1]},) or {shape}"
        )
    return np.broadcast_to(values, shape)
