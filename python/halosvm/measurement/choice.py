"""The choice among candidates: what `MeasurementClassifier` and `MeasurementRegressor` share.

In:  measurements that are read, targets, weights and groups.
Out: candidates that were compared on the same left-out rows, chosen, and fitted to all rows.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from halosvm.checks.estimator import GaussianEstimator, have_errors
from halosvm.checks.parameters import require_choice, require_count
from halosvm.core.progress import say
from halosvm.core.user_warning import warn_user
from halosvm.measurement.candidates import candidates_of
from halosvm.measurement.comparison import LeftOut, chosen_of, eligible_of, table_of
from halosvm.measurement.features import MeasurementFeatures
from halosvm.measurement.folds import splits_of, without_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halosvm.gaussians.gaussians import Gaussians
    from halosvm.measurement.candidates import Candidate, Fitted
    from halosvm.measurement.comparison import ComparisonTable
    from halosvm.measurement.folds import Split

    Array = NDArray[np.float64]

_FEW_ROWS = 20_000  # up to which threads cost more than they gain


class MeasurementChoice(GaussianEstimator):
    """Base class of the estimators that choose among candidates."""

    _takes_missing = True
    _needs: ClassVar[str]  # the method that candidates answer with

    candidates: Any
    combine: str
    cv: Any
    features: MeasurementFeatures | None
    max_rows: int
    n_jobs: int | None
    random_state: Any
    verbose: int
    table_: ComparisonTable

    # ---- what the two say for themselves ---------------------------------------------------------
    @abstractmethod
    def _built_in(self) -> list[Candidate]:
        """Return the candidates of "auto", the simplest first."""

    @abstractmethod
    def _answers(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        """Return what a fitted candidate says before any curve."""

    @abstractmethod
    def _losses(
        self, candidate: Candidate, answers: Array, y: Any, weights: Array, fold: NDArray[np.intp]
    ) -> Array:
        """Return the loss of each left-out row, by answers and the number of its fold."""

    def _curves(self, candidate: Candidate, answers: Array, y: Any, weights: Array) -> list[Any]:  # noqa: ARG002
        """Return the curves of a candidate."""
        return []

    def _allowed(self, candidate: Candidate) -> bool:  # noqa: ARG002
        """Tell whether the parameters let a candidate take part."""
        return True

    # ---- fit -------------------------------------------------------------------------------------
    def _choose(self, data: Gaussians, y: Any, weights: Array, groups: Any, *, given: bool) -> None:
        """Compare, choose, and fit to all rows; `given` tells whether weights are the user's."""
        self._check_parameters()
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        values = self._needs == "predict"
        splits = self._within_limit(
            splits_of(self.cv, y, groups, rng, values=values), len(data), rng
        )
        candidates = self._candidates(data, splits)
        rows = np.concatenate([test for _, test in splits])
        if len(np.unique(rows)) < len(rows):
            raise ValueError("cv leaves out a row twice; each can be left out once")
        fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
        self._settings = self._feature_settings(
            candidates, data[rows], y[rows], weights[rows], seed
        )
        answers = self._left_out(
            candidates, data, y, weights if given else None, groups, splits, seed
        )
        of_rows = y[rows], weights[rows]
        losses = [
            self._losses(each, answers[i], *of_rows, fold) for i, each in enumerate(candidates)
        ]
        overlap = sum(len(test) / len(train) for train, test in splits)
        own = None if groups is None else groups[rows]
        left_out = LeftOut(np.array(losses), weights[rows], own, overlap)
        eligible, self.advice_ = eligible_of(candidates, left_out)
        chosen = chosen_of(eligible, left_out, self.combine)
        others = [i for i in eligible if not candidates[i].uses_news]
        # Where errors of new rows are unlike those of the fit, these answer alone.
        fallback = chosen_of(others, left_out, self.combine) if others else chosen
        plain = [i for i, each in enumerate(candidates) if each.ignores_errors]
        self.chosen_ = [candidates[i].name for i in chosen]
        self.weights_ = np.full(len(chosen), 1.0 / len(chosen))
        self.best_ = candidates[int(np.argmin(left_out.mean()))].name
        shares = dict(zip(self.chosen_, self.weights_.tolist(), strict=True))
        self.table_ = table_of(candidates, left_out, plain[0] if plain else 0, shares)
        say(f"{self.table_}\n{self.advice_}", verbose=self.verbose)
        self._fallback = [candidates[i].name for i in fallback]
        if not any(candidates[i].uses_news for i in chosen):
            self._fallback = self.chosen_
        kept = sorted({*chosen, *(i for i in fallback if self._fallback != self.chosen_)})
        curves = {
            candidates[i].name: self._curves(candidates[i], answers[i], *of_rows) for i in kept
        }
        self._refit([candidates[i] for i in kept], curves, data, y, weights, groups, seed, given)

    def _candidates(self, data: Gaussians, splits: list[Split]) -> list[Candidate]:
        built_in = self._built_in()
        if isinstance(self.candidates, str):
            n = min(len(train) for train, _ in splits)
            exact = not have_errors(data) and not np.isnan(data.mean).any()
            built_in = [
                each
                for each in built_in
                if self._allowed(each)
                and each.least_rows <= n
                and len(data) <= each.most_rows
                and data.shape[1] <= each.most_features
                and (each.ignores_errors or not exact)
            ]
        found = candidates_of(self.candidates, built_in, self._needs)
        if not all(self._allowed(each) for each in found):
            raise ValueError("candidates use sizes of errors, and errors_as_news is False")
        return found

    def _within_limit(self, splits: list[Split], n: int, rng: Any) -> list[Split]:
        """Return the folds among at most `max_rows` rows, drawn at random."""
        if n <= self.max_rows:
            return splits
        kept = np.zeros(n, dtype=bool)
        kept[rng.choice(n, self.max_rows, replace=False)] = True
        say(f"comparison on {self.max_rows} of {n} rows", verbose=self.verbose)
        return [(train[kept[train]], test[kept[test]]) for train, test in splits]

    def _left_out(
        self,
        candidates: list[Candidate],
        data: Gaussians,
        y: Any,
        weights: Array | None,
        groups: Any,
        splits: list[Split],
        seed: int,
    ) -> list[Array]:
        """Return the answers of each candidate to all left-out rows, fold after fold."""
        tasks = [(train, test, None if groups is None else groups[train]) for train, test in splits]
        begin = time.perf_counter()
        found = []
        run = Parallel(n_jobs=self.n_jobs, return_as="generator")
        for i, answers in enumerate(
            run(
                delayed(_one_fold)(
                    self,
                    candidates,
                    data[train],
                    y[train],
                    None if weights is None else weights[train],
                    own,
                    data[test],
                    seed,
                )
                for train, test, own in tasks
            )
        ):
            found.append(answers)
            seconds = time.perf_counter() - begin
            say(
                f"fold {i + 1} of {len(splits)}   {len(candidates)} candidates   {seconds:.1f} s",
                verbose=self.verbose,
            )
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _refit(
        self,
        candidates: list[Candidate],
        curves: dict[str, list[Any]],
        data: Gaussians,
        y: Any,
        weights: Array,
        groups: Any,
        seed: int,
        given: bool,
    ) -> None:
        self.features_ = clone(self._settings)
        needed = {name for each in candidates for name in each.features}
        used = weights > 0
        with _threads(len(data)):
            blocks = self.features_.learn(data, y, weights, groups, needed)
            blocks["measurements"] = data
            self.fitted_ = {}
            for each in candidates:
                begin = time.perf_counter()
                self.fitted_[each.name] = each.fit(blocks, y, weights if given else None, seed)
                self.fitted_[each.name].curves = curves[each.name]
                seconds = time.perf_counter() - begin
                say(
                    f"{each.name} fitted to {len(data)} rows   {seconds:.1f} s",
                    verbose=self.verbose,
                )
        logs = self.features_.log_errors(data)[used]
        self._centre = np.array([np.median(own[~np.isnan(own)]) for own in logs.T])
        self._range = _fences(self._levels(logs))
        exact = (data.covariances.variances()[used] == 0) & ~np.isnan(logs)
        self._some_exact = exact.any(axis=0)

    def _feature_settings(
        self,
        candidates: list[Candidate],  # noqa: ARG002
        data: Gaussians,  # noqa: ARG002
        y: Any,  # noqa: ARG002
        weights: Array,  # noqa: ARG002
        seed: int,
    ) -> MeasurementFeatures:
        """Return the features of all fits, unfitted; they choose nothing in each fold anew."""
        settings = MeasurementFeatures() if self.features is None else clone(self.features)
        if settings.random_state is None:
            settings.random_state = seed
        return settings

    # ---- new rows --------------------------------------------------------------------------------
    def _combined(self, X: Any, X_std: Any, X_cov: Any) -> Array:
        """Return the mean answer; without news of errors for rows with errors out of range."""
        data = self._read_with_errors(X, X_std, X_cov)
        news = self._fallback != self.chosen_ and self._watches()
        outside = self._outside(data) if news else np.zeros(len(data), dtype=bool)
        # Where nothing is told of errors there is a warning already.
        if outside.any() and self._tells_of_errors(X, X_std, X_cov):
            warn_user(
                f"the errors of {outside.sum()} of {len(data)} rows lie outside of those of "
                "training, which some candidates learnt from; these rows are answered by "
                "candidates that do not use sizes of errors as features",
                UserWarning,
            )
        names = list(self.chosen_) if not outside.all() else []
        names += [name for name in self._fallback if name not in names] if outside.any() else []
        needed = {name for each in names for name in self.fitted_[each].candidate.features}
        blocks = self.features_.blocks(data, needed)
        blocks["measurements"] = data
        with without_warnings():  # of errors left out, which `X` itself is told of
            answers = {each: self._final(self.fitted_[each], blocks) for each in names}
        first = answers[names[0]]
        result = np.zeros_like(first)
        for part, of_part in ((~outside, self.chosen_), (outside, self._fallback)):
            if part.any():
                result[part] = np.mean([answers[each][part] for each in of_part], axis=0)
        return result

    def _watches(self) -> bool:
        """Tell whether errors of new rows may make a difference to who answers."""
        return True

    @abstractmethod
    def _final(self, fitted: Fitted, blocks: dict[str, Any]) -> Array:
        """Return the answers of a fitted candidate, after its curve."""

    def _outside(self, data: Gaussians) -> NDArray[np.bool_]:
        """Tell which rows have an error unlike those of training; see `_fences`."""
        logs = self.features_.log_errors(data)
        lower, upper = self._range
        levels = self._levels(logs)
        exact = (data.covariances.variances() == 0) & ~np.isnan(logs) & ~self._some_exact
        outside = (levels < lower) | (levels > upper)
        return np.asarray(exact.any(axis=1) | outside.any(axis=1))

    def _levels(self, logs: Array) -> Array:
        """Return logarithms of errors, and by how much those of a row are larger than usual.

        Rows of another survey have errors that are all somewhat smaller, or larger, of which none
        alone need be unusual.
        """
        apart = logs - self._centre
        there = ~np.isnan(apart)
        level = np.where(there, apart, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        return np.column_stack([logs, level])

    def _check_parameters(self) -> None:
        require_choice(self.combine, "combine", ("mean", "best"))
        require_count(self.max_rows, "max_rows")
        if self.features is not None and not isinstance(self.features, MeasurementFeatures):
            raise TypeError(f"features must be MeasurementFeatures or None, got {self.features!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _one_fold(
    choice: MeasurementChoice,
    candidates: list[Candidate],
    train: Gaussians,
    y: Any,
    weights: Array | None,
    groups: Any,
    test: Gaussians,
    seed: int,
) -> list[Array]:
    """Return the answers of all candidates to the rows that are left out; features are shared."""
    needed = {name for each in candidates for name in each.features}
    with without_warnings(), _threads(len(train)):
        features = clone(choice._settings)  # noqa: SLF001
        each_row = np.ones(len(train)) if weights is None else weights
        blocks = features.learn(train, y, each_row, groups, needed)
        of_test = features.blocks(test, needed)
        blocks["measurements"], of_test["measurements"] = train, test
        return [
            choice._answers(each.fit(blocks, y, weights, seed), of_test)  # noqa: SLF001
            for each in candidates
        ]


def _threads(n_rows: int) -> Any:
    return threadpool_limits(1) if n_rows <= _FEW_ROWS else nullcontext()


def _fences(logs: Array) -> tuple[Array, Array]:
    """Return the range of each column of levels of errors.

    From the quantile of 1 % to that of 99 %, and half of their distance beyond each.
    """
    lower, upper = np.full(logs.shape[1], -np.inf), np.full(logs.shape[1], np.inf)
    for j in range(logs.shape[1]):
        there = logs[~np.isnan(logs[:, j]), j]
        if there.size:
            low, high = np.quantile(there, [0.01, 0.99])
            beyond = 0.5 * (high - low) + 1e-6
            lower[j], upper[j] = low - beyond, high + beyond
    return lower, upper
