"""Errors that the rows of a batch share, as those of a night or a plate.

In:  measurements, the label of the batch of each row, and labels of classes, if they are known.
Out: fits with offsets of batches, what is known of these, and rows without them.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.multiclass import type_of_target

from halosvm import _core
from halosvm.checks.estimator import require_index_of
from halosvm.checks.parameters import thread_count
from halosvm.checks.reading import refuse_lost
from halosvm.checks.targets import exact_labels, read_labels
from halosvm.gaussians.gaussians import as_gaussians

from .fitting import Fitter, print_progress
from .populations import class_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians

    from .empirical_bayes import EmpiricalBayes
    from .populations import Form

    Array = NDArray[np.float64]
    Rows = NDArray[np.intp]

FORMS = ("full", "diagonal", "isotropic")
# What new rows need of a fit with batches.
BATCH_PARTS = ("batches_", "batch_covariance_", "batch_offsets_", "batch_offset_covariances_")
_ROUNDS = 5
_ROUGH = 1e-3  # tol of a first fit
_LEAST = 1e-6  # of the variance of offsets in that of true values
_BLOCK = 1 << 21  # doubles of the covariances of a block of rows


class Batches(NamedTuple):
    """The batches of a fit, and the classes of its rows."""

    labels: NDArray[Any]  # of the batches
    codes: Rows  # of each row
    classes: NDArray[Any] | None  # labels of the classes, None where they do not matter
    class_codes: Rows  # of each row, or empty

    @property
    def n_classes(self) -> int:
        """Number of classes, 1 if there are none."""
        return 1 if self.classes is None else len(self.classes)


def read_batches(X: Any, batch: Any, n_samples: int) -> NDArray[Any]:
    """Return the label of the batch of each row, after checks."""
    require_index_of(X, "batch", batch)
    refuse_lost(batch, "batch")
    labels = np.asarray(exact_labels(batch, "batch", objects=True))
    if labels.shape != (n_samples,):
        raise ValueError(
            f"batch has shape {labels.shape}, expected ({n_samples},): a label for each row of X"
        )
    return labels


def batches_of_fit(X: Any, y: Any, batch: Any, weights: Array) -> Batches:
    """Read the batches of a fit, and refuse those whose offsets cannot be known."""
    given = read_batches(X, batch, len(weights))
    counted = weights > 0
    labels = _unique(given[counted])[0]
    codes = _places(labels, given)
    classes, class_codes = None, np.empty(0, np.intp)
    if y is not None:
        require_index_of(X, "y", y)
        refuse_lost(y, "y")
        if type_of_target(y, input_name="y") in ("binary", "multiclass"):
            told = read_labels(exact_labels(y, "y"), len(weights))
            classes = np.unique(told[counted])
            class_codes = np.maximum(_places(classes, told), 0)
    found = Batches(labels, np.maximum(codes, 0), classes, class_codes)
    _require_known(found, counted)
    return found


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    try:
        values, inverse = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"batch has labels of types {', '.join(kinds)}; use one type") from None
    return values, inverse.reshape(-1)


def _places(labels: NDArray[Any], given: NDArray[Any]) -> Rows:
    """Return where each of the given labels stands, -1 where it does not."""
    place = {label: i for i, label in enumerate(labels.tolist())}
    return np.array([place.get(label, -1) for label in given.tolist()], dtype=np.intp)


def _require_known(batches: Batches, counted: NDArray[np.bool_]) -> None:
    codes = batches.codes[counted]
    n_batches = len(batches.labels)
    if n_batches == 1:
        raise ValueError(
            f"batch is {batches.labels.tolist()[0]!r} in all rows: the offset of one batch cannot "
            "be told from the mean of the population; leave out batch and batch_covariance"
        )
    if len(codes) == n_batches:
        raise ValueError(
            "batch is another one in each row: what rows of a batch share cannot be told from how "
            "true values differ; leave out batch and batch_covariance"
        )
    if batches.classes is None:
        return
    joins = sparse.coo_array(
        (np.ones(len(codes)), (codes, n_batches + batches.class_codes[counted])),
        shape=(n_batches + batches.n_classes,) * 2,
    )
    if connected_components(joins, directed=False)[0] == n_batches:
        raise ValueError(
            "batch: each batch has classes of its own, so that offsets cannot be told from the "
            "means of the classes; a class has to be in two batches, or y to be left out"
        )


class BatchFitter(Fitter):
    """Fits of populations behind measurements whose batches have offsets.

    Starts are those of measurements less a first guess of the offsets, from means of batches and
    classes.
    """

    def __init__(
        self,
        settings: EmpiricalBayes,
        data: Gaussians,
        weights: Array,
        form: Form,
        batches: Batches,
    ) -> None:
        self.measured, self.batches = data, batches
        guess = _additive_means(data, weights, batches)
        self.class_means, variance = guess.class_means, guess.variance
        centred = data.replaced(mean=data.mean - guess.offsets[batches.codes])
        super().__init__(settings, centred, weights, form)
        if settings.batch_covariance == "isotropic":
            variance = np.full_like(variance, variance.mean())
        self.offsets = np.diag(variance)

    def fit_from(self, start: _core.Population, tol: float | None = None) -> Any:
        """Return the fit of the core that begins with a population.

        Of few batches the full W that is most likely is next to singular, and takes the offsets of
        new ones for known in many directions: as many more batches as there are features have the
        variances of a diagonal W, and no correlations.
        """
        form = str(self.settings.batch_covariance)
        if form != "full" or not self.prior_weight > 0:
            return self._fit(start, form, tol)
        first = self._fit(start, "diagonal", max(_ROUGH, self.settings.tol))
        population = first["population"]
        variances = np.maximum(np.diag(population.offsets), _LEAST * self.scale**2)
        prior = {"offset_prior": variances, "offset_prior_weight": float(len(variances))}
        result = self._fit(population, form, tol, **prior)
        result["iterations"] += first["iterations"]
        return result

    def _fit(self, start: _core.Population, form: str, tol: float | None, **prior: Any) -> Any:
        settings, offsets = self.settings, prior.get("offset_prior")
        offsets = self.offsets if offsets is None else np.diag(offsets)
        return _core.fit_population(
            self.measured.core_view(missing=True),
            start.with_offsets(offsets, form),
            **prior,
            labels=self.batches.class_codes,
            batches=self.batches.codes,
            sample_weight=self.weights,
            max_iterations=int(settings.max_iter),
            tolerance=float(settings.tol) if tol is None else tol,
            prior=self.prior,
            prior_weight=self.prior_weight,
            scale=self.scale,
            n_threads=self.n_threads,
            report=print_progress if settings.verbose and tol is None else None,
        )

    def _start(self, k: int) -> _core.Population:
        if self.batches.classes is None:
            return super()._start(k)
        if self.settings.init != "kmeans":
            raise ValueError("init must be 'kmeans' where fit is given batch and classes")
        shares = np.bincount(self.batches.class_codes, weights=self.weights) / self.weights.sum()
        one = self._tied(shares, self.class_means, np.diag(self.scale**2)[np.newaxis])
        one = one.labelled(np.arange(self.batches.n_classes), True)
        return one if k == 1 else self._clusters(k, self.fit_from(one, tol=_ROUGH))

    def _tied(self, weights: Array, means: Array, matrices: Array) -> _core.Population:
        return self.form.population(weights, means, np.repeat(matrices, len(means), axis=0))

    def _clusters(self, k: int, one: Any) -> _core.Population:
        """Clusters of each class, of posterior means under one component a class."""
        population, codes = one["population"], self.batches.class_codes
        values = self.measured.mean - one["offsets"][0][self.batches.codes]
        x, points = self.measured.replaced(mean=values), np.empty(values.shape)
        for c in range(self.batches.n_classes):
            mine = np.flatnonzero(codes == c)
            points[mine] = _core.true_value_posteriors(
                population.of_class(c),
                x[mine].core_view(missing=True),
                True,
                covariances=False,
                n_threads=self.n_threads,
            )["means"]
        used = self.weights > 0
        whole = self.form.covariances(population)[0]
        start = class_start(
            self.form,
            k,
            points[used],
            codes[used],
            self.weights[used],
            whole,
            self.scale,
            self.random_state,
        )
        matrices = self.form.covariances(start).to_full()
        mean = np.average(matrices, axis=0, weights=start.weights)[np.newaxis]
        return self._tied(start.weights, start.means, mean).labelled(
            np.asarray(start.classes, np.intp), True
        )


class _Guess(NamedTuple):
    offsets: Array  # (n_batches, d)
    class_means: Array  # (n_classes, d)
    variance: Array  # of the offsets, (d,)


def _additive_means(data: Gaussians, weights: Array, batches: Batches) -> _Guess:
    """Fit values by an effect of the class and one of the batch, each value by its error."""
    values = data.mean.astype(np.float64)
    there = ~np.isnan(values) & (weights > 0)[:, np.newaxis]
    x = np.where(there, values, 0.0)
    counts = np.maximum(there.sum(axis=0), 1)
    centre = x.sum(axis=0) / counts
    x = np.where(there, x - centre, 0.0)
    spread = np.maximum((x**2).sum(axis=0) / counts, np.finfo(np.float64).tiny)
    w = np.where(there, weights[:, np.newaxis] / (spread + data.covariances.variances()), 0.0)

    def means(codes: Rows, size: int, rest: Array) -> tuple[Array, Array]:
        ones = np.ones(len(codes))
        sums = sparse.csr_array((ones, (codes, np.arange(len(codes)))), shape=(size, len(codes)))
        total = sums @ w
        return np.divide(sums @ (w * rest), total, out=np.zeros_like(total), where=total > 0), total

    classes = batches.class_codes if len(batches.class_codes) else np.zeros(len(x), np.intp)
    offsets = np.zeros((len(batches.labels), x.shape[1]))
    for _ in range(_ROUNDS):
        of_class, _ = means(classes, batches.n_classes, x - offsets[batches.codes])
        offsets, total = means(batches.codes, len(offsets), x - of_class[classes])
        offsets -= offsets.mean(axis=0)
    of_class, _ = means(classes, batches.n_classes, x - offsets[batches.codes])
    chance = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0).mean(axis=0)
    found = offsets.var(axis=0)
    variance = np.maximum(found - chance, np.maximum(0.1 * found, 1e-3 * spread))
    return _Guess(offsets, of_class + centre, variance)


class BatchedErrors:
    """What `EmpiricalBayes` has for errors that rows of a batch share."""

    __metadata_request__fit: ClassVar = {"batch": True}
    __metadata_request__transform: ClassVar = {"batch": True}
    __metadata_request__score: ClassVar = {"batch": True}

    batch_covariance: str | None
    n_threads: int | None
    batches_: NDArray[Any]
    batch_offsets_: Array
    batch_offset_covariances_: Array
    component_classes_: NDArray[Any]

    def _check_batch_parameters(self: Any) -> None:
        if self.batch_covariance is None:
            return
        self._check_choice("batch_covariance", FORMS)
        for name, out in (("n_components", "bic"), ("noise", "student"), ("tied", True)):
            if getattr(self, name) == out:
                raise ValueError(f"{name} is {out!r}, which does not go with batch_covariance")
        if self.fixed:
            raise ValueError("fixed holds parts, which does not go with batch_covariance")
        if isinstance(self.error_scale, numbers.Real):
            return
        raise ValueError("error_scale is to be estimated, which does not go with batch_covariance")

    def _refuse_batches(self, method: str) -> None:
        if self.batch_covariance is not None:
            raise ValueError(f"{method} knows no batches, and batch_covariance is given")

    def _forget_batches(self) -> None:
        for name in (*BATCH_PARTS, "component_classes_"):
            self.__dict__.pop(name, None)

    def _batches_of_fit(self, X: Any, y: Any, batch: Any, weights: Array) -> Batches | None:
        if self.batch_covariance is None:
            if batch is not None:
                raise ValueError(
                    "batch is given, but batch_covariance is None; say what form the covariance of "
                    f"the offsets of batches has: one of {', '.join(FORMS)}"
                )
            return None
        if batch is None:
            raise ValueError(
                f"batch_covariance is {self.batch_covariance!r}, but batch is not given: fit needs "
                "the label of the batch of each row"
            )
        return batches_of_fit(X, y, batch, weights)

    def _remember_batches(self, batches: Batches, result: Any) -> None:
        population = result["population"]
        self.batches_ = batches.labels
        self.batch_covariance_ = population.offsets
        self.batch_offsets_, self.batch_offset_covariances_ = result["offsets"]
        if batches.classes is not None:
            self.component_classes_ = batches.classes[population.classes]

    def _with_offsets(self: Any, population: _core.Population) -> _core.Population:
        if not hasattr(self, "batches_"):
            return population
        return population.with_offsets(self.batch_covariance_, "full")

    def _rows_alone(
        self: Any, X: Any, data: Gaussians, batch: Any, counted: tuple[Any, Array] | None = None
    ) -> Iterator[Gaussians]:
        """Yield measurements that tell by themselves what all rows of their batches tell.

        Without batches these are the data. Else they come in blocks, since their errors are full.

        Parameters
        ----------
        counted : tuple, optional
            Labels and weights of rows that the offsets of the fit were found with.
        """
        if not hasattr(self, "batches_"):
            if batch is not None:
                raise ValueError("batch is given, but fit had no batches")
            yield data
            return
        if batch is None:
            raise ValueError(
                "batch is not given, but fit had batches: give the label of each row; a row of "
                "a batch of its own has a label that no other row has"
            )
        given = read_batches(X, batch, len(data))
        labels, codes = _unique(given)
        population, n_threads = self._population(), thread_count(self.n_threads)
        classes, parts = np.empty(0, np.intp), np.ones(len(data))
        means, covariances = self._offsets_before(labels)
        if counted is None:
            means, covariances = _core.batch_offsets(
                population, data.core_view(missing=True), codes, means, covariances, n_threads
            )
        else:
            y, weights = counted
            parts = np.minimum(weights, 1.0)
            if hasattr(self, "component_classes_"):
                known, of_component = np.unique(self.component_classes_, return_inverse=True)
                population = population.labelled(of_component, False)
                told = read_labels(exact_labels(y, "y"), len(data))
                classes = np.maximum(_places(known, told), 0)
        step = max(64, _BLOCK // data.shape[1] ** 2)
        for begin in range(0, len(data), step):
            rows = np.arange(begin, min(begin + step, len(data)))
            part = data[rows]
            found = _core.remove_offsets(
                population,
                part.core_view(missing=True),
                codes[rows],
                classes[rows] if len(classes) else classes,
                means,
                covariances,
                parts[rows],
                n_threads,
            )
            yield as_gaussians(found["means"], X_cov=found["matrices"], missing=True)

    def _offsets_before(self: Any, labels: NDArray[Any]) -> tuple[Array, Array]:
        """Return what the fit tells of the offsets of batches: those of new ones are N(0, W)."""
        places = _places(self.batches_, labels)
        new = (places < 0)[:, np.newaxis]
        means = np.where(new, 0.0, self.batch_offsets_[places])
        covariances = np.where(
            new[..., np.newaxis], self.batch_covariance_, self.batch_offset_covariances_[places]
        )
        return means, covariances
