"""`doctor`: measurements, errors and labels in; a `Diagnosis` of what the errors are worth out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from halosvm.checks.estimator import read_example_weights, read_targets
from halosvm.checks.targets import many_numbers, read_labels
from halosvm.measurement.classifier import MeasurementClassifier
from halosvm.population import EmpiricalBayes

from . import words
from .findings import NewRows, News, Sizes, compared, deviations, news_of, sizes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.population.error_test import ErrorTest

    Array = NDArray[np.float64]

# Tests of the sizes of errors take some seconds with so many rows, and rows times features^2.
_ROWS_OF_TESTS, _FEWEST, _WORK = 2000, 500, 400_000
_WIDE = 30  # features, beyond which a population has factors
_CLEAR = 2.0  # standard errors
_NO_LIMITS = ", which the doctor does not examine: leave out such rows"


@dataclass(frozen=True)
class Candidate:
    """What one way to learn is worth.

    Attributes
    ----------
    name : str
    log_loss : float
        Mean left-out log loss.
    gain, gain_error : float
        What the log loss is below that of values alone, and its standard error.
    """

    name: str
    log_loss: float
    gain: float
    gain_error: float

    @property
    def ignores_errors(self) -> bool:
        """Whether it is of values alone, by its name."""
        return self.name.partition(",")[0] in ("values", "values alone")

    @property
    def clear(self) -> bool:
        """Whether the gain is more than two standard errors, up or down."""
        return abs(self.gain) > _CLEAR * self.gain_error > 0


@dataclass(frozen=True)
class Diagnosis:
    """What `doctor` found; as text, one screen.

    Attributes
    ----------
    features : tuple of str
        Names of the features.
    n_rows : int
    classes : dict of str to int
        Rows of each class; empty without labels, or if they are values.
    values : int
        Number of different values of a regression; 0 for classes.
    sizes : Sizes
        How large errors are, how uneven, and what is missing, by feature.
    error_tests : list of ErrorTest
        Whether errors are told right; empty without errors.
    news : News or None
        Whether errors tell the classes apart; None where there are no classes, or errors are alike.
    new_rows : NewRows or None
        How the test rows compare with those of training.
    candidates : list of Candidate
        What each way to learn gains, values alone among them.
    classifier : MeasurementClassifier or None
        The one that compared them, fitted to all rows.
    n_tested : int
        Rows of `error_tests`.
    errors_as : str
        The argument that errors were given by; empty for Gaussians.
    source : str
        What the table is called.
    label : str or None
        The column of labels.
    """

    features: tuple[str, ...]
    n_rows: int
    sizes: Sizes
    error_tests: list[ErrorTest]
    classes: dict[str, int] = field(default_factory=dict)
    values: int = 0
    news: News | None = None
    new_rows: NewRows | None = None
    candidates: list[Candidate] = field(default_factory=list)
    classifier: Any = None
    n_tested: int = 0
    errors_as: str = ""
    source: str = "TABLE"
    label: str | None = None

    @property
    def best(self) -> Candidate | None:
        """The candidate of the lowest left-out log loss."""
        return min(self.candidates, key=lambda each: each.log_loss, default=None)

    @property
    def worth_it(self) -> bool:
        """Whether the comparison chose a way that uses the errors."""
        if self.classifier is None:
            return False
        chosen = getattr(self.classifier, "chosen_", [self.classifier.best_])
        return any(each.name in chosen and not each.ignores_errors for each in self.candidates)

    @property
    def told_right(self) -> bool | None:
        """Whether errors are told right, as far as rows tell; None where it cannot be known."""
        known = [row.p_value for row in self.error_tests[:1] if not row.note]
        return None if not known else known[0] >= words.SIGNIFICANT

    @property
    def code(self) -> str:
        """The line of Python that does what is advised."""
        return words.code(self)

    @property
    def command(self) -> str:
        """The command that does what is advised."""
        return words.command(self)

    def __str__(self) -> str:
        return words.screen(self)

    def plot(self, figure: Any = None) -> Any:
        """Draw the numbers into a figure of matplotlib, a new one if none is given; return it."""
        from .figure import draw

        return draw(self, figure)


def doctor(
    X: Gaussians | ArrayLike,
    y: ArrayLike | None = None,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
    X_test: Gaussians | ArrayLike | None = None,
    X_test_std: ArrayLike | None = None,
    X_test_cov: Covariances | ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    classifier: Any = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> Diagnosis:
    """Examine measurements with errors: what errors are like, and what they are worth.

    It tells how large errors are beside the spread of the values, whether they are told right,
    whether they tell the classes apart, what is missing and whether new rows are like those of
    training, and what each way to learn from errors gains against values alone.

    Parameters
    ----------
    X : Gaussians or array-like of shape (n_samples, n_features)
        Measurements, or only their values; NaN and masked entries are missing.
    y : array-like of shape (n_samples,), optional
        Labels of the classes. Many different numbers are taken for values of a regression, of which
        ways to learn are not compared; without labels neither.
    X_std, X_cov
        Errors, as of `EmpiricalBayes.fit`.
    X_test, X_test_std, X_test_cov
        Rows without labels that answers are wanted for, and their errors.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows.
    groups : array-like of shape (n_samples,), optional
        What rows belong to, such as a patient: rows of one are left out together. The test whether
        errors tell the classes apart, which takes rows for independent, is then left out.
    classifier : MeasurementClassifier, optional
        The ways to compare; None takes ``MeasurementClassifier()``.
    random_state : int, RandomState instance or None, default=0
        Seed of folds and permutations.
    n_jobs : int, optional
        Fits at a time.

    Returns
    -------
    Diagnosis
        ``print`` shows it on one screen; ``plot()`` draws it; ``code`` and ``command`` are what to
        type next.

    Raises
    ------
    ValueError, TypeError
        For data, errors or labels that make no sense, and without errors and missing values.

    Examples
    --------
    >>> import numpy as np
    >>> import halosvm
    >>> rng = np.random.default_rng(0)
    >>> error = rng.uniform(0.2, 2.0, (300, 2))
    >>> X = rng.normal(size=(300, 2)) + error * rng.normal(size=(300, 2))
    >>> found = halosvm.doctor(X, X_std=error)
    >>> found.sizes.share > 0.5, found.told_right
    (True, True)
    """
    rng = check_random_state(random_state)
    reader = EmpiricalBayes()
    data = reader._read(X, X_std, X_cov, reset=True)  # noqa: SLF001
    data.require_no_limits("X", ", which the doctor does not examine: leave out such rows")
    if data.covariances.certain and not np.isnan(data.mean).any():
        raise ValueError("X has neither errors nor missing values; give X_std or X_cov")
    weights = read_example_weights(X, sample_weight, len(data))
    names = data.feature_names
    found: dict[str, Any] = {
        "features": tuple(
            f"feature {j}" if names is None else str(names[j]) for j in range(data.shape[1])
        ),
        "n_rows": len(data),
        "sizes": sizes_of(data, weights),
        "error_tests": [],
        "errors_as": "X_std" if X_std is not None else "" if X_cov is None else "X_cov",
    }
    if not data.covariances.certain:
        d = data.shape[1]
        rows = _some_rows(weights, max(_FEWEST, min(_ROWS_OF_TESTS, _WORK // d**2)), rng)
        found["n_tested"] = len(rows)
        largest = np.argsort(-np.nan_to_num(found["sizes"].shares), kind="stable")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that say nothing: the tests say it
            found["error_tests"] = EmpiricalBayes(
                covariance="full" if d <= _WIDE else "factors"
            ).error_test(
                data[rows],
                sample_weight=weights[rows],
                features=np.sort(largest[: words.MOST_FEATURES]).tolist(),
            )
    if X_test is not None:
        columns = getattr(X_test, "shape", np.shape(X_test))[1:]
        if columns != data.shape[1:]:
            raise ValueError(f"X_test has {columns[0]} features, X has {data.shape[1]} features")
        new = reader._read(X_test, X_test_std, X_test_cov, reset=False)  # noqa: SLF001
        new.require_no_limits("X_test", _NO_LIMITS)
        found["new_rows"] = compared(data, new, rng)
    if y is None:
        return Diagnosis(**found)
    labels, _ = read_targets(X, y, sample_weight, X_std=X_std, X_cov=X_cov)
    labels = read_labels(labels, len(data))
    if values := many_numbers(labels.tolist()):
        return Diagnosis(**found, values=values)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only: {classes[:1].tolist()[0]!r}")
    found["classes"] = {str(k): int(n) for k, n in zip(classes.tolist(), counts, strict=True)}
    if groups is None:
        used = np.flatnonzero(weights > 0)
        found["news"] = news_of(deviations(data)[used], codes[used], rng)
    if classifier is None:
        seed = int(rng.randint(np.iinfo(np.int32).max))
        classifier = MeasurementClassifier(n_jobs=n_jobs, random_state=seed)
    given = {} if groups is None else {"groups": groups}
    given |= {} if sample_weight is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(data, labels, **given)
    return Diagnosis(**found, candidates=_candidates(classifier.table_), classifier=classifier)


def _some_rows(weights: Array, most: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    used = np.flatnonzero(weights > 0)
    return used if len(used) <= most else np.sort(rng.choice(used, most, replace=False))


def _candidates(table: Sequence[Any]) -> list[Candidate]:
    """Read the rows of a comparison: name, log loss, its error, the difference and its error."""
    rows = [tuple(row)[:5] for row in table]
    return [Candidate(str(n), float(loss), -float(more), float(e)) for n, loss, _, more, e in rows]
