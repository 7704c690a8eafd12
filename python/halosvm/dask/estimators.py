"""UncertainSVC and UncertainSVR of partitions: collections in, models and lazy predictions out."""

from __future__ import annotations

import itertools
from numbers import Real
from typing import Any, ClassVar, Self

import dask
import numpy as np

import halosvm.linear.svc
import halosvm.linear.svr
from halosvm.checks.estimator import read_targets
from halosvm.dask.partitions import (
    client_that_waits,
    computed,
    cut_alike,
    in_columns,
    is_array,
    is_collection,
    of_whole_rows,
    partitions_of,
    pieces,
)
from halosvm.files.chunks import placed


class _Lazy:
    """What both machines do with collections: methods of a fitted model go to each partition."""

    _local_type: ClassVar[type]
    _score: Any
    predict: Any

    def to_local(self) -> Any:
        """Return the same model as one of `halosvm`, for data that are here and for `save_model`.

        Returns
        -------
        halosvm.UncertainSVC or halosvm.UncertainSVR
        """
        model: Any = object.__new__(self._local_type)
        model.__dict__.update(self.__dict__)
        return model

    def _on_partitions(self, method: str, X: Any, n_columns: int, dtype: Any, **errors: Any) -> Any:
        """Return a collection like X of what the method returns for its rows."""
        model = self.to_local()
        if any(_is_zero(value) for value in errors.values()):
            model.__dict__.pop("_had_errors", None)  # X is exact, as is said
        errors = cut_alike(X, **_collections(**errors))
        names = list(errors)
        if isinstance(X, list | tuple):
            columns = [pieces(value, name) for name, value in errors.items()]
            call = dask.delayed(_call, pure=True)
            return [call(model, method, names, *each) for each in zip(X, *columns, strict=True)]
        for name, value in errors.items():
            if is_array(value) != is_array(X):
                raise TypeError(
                    f"{name} is {type(value).__name__}, X is {type(X).__name__}; {method} needs "
                    "both to be dask arrays, or both data frames"
                )
        if not is_array(X):
            one = (method, dtype)
            meta: Any = one if n_columns == 1 else dict.fromkeys(model.classes_.tolist(), dtype)
            others = (*errors.values(), model, method, names)
            return X.map_partitions(_framed, *others, meta=meta, align_dataframes=False)
        import dask.array as da

        # Axis 0 is that of the rows, 1 that of classes; all others are an array's own.
        axes, arrays = itertools.count(2), [of_whole_rows(each) for each in (X, *errors.values())]
        of_each = [(each, (0, *itertools.islice(axes, each.ndim - 1))) for each in arrays]
        return da.blockwise(
            _of_blocks,
            (0,) if n_columns == 1 else (0, 1),
            *itertools.chain.from_iterable(of_each),
            model=model,
            method=method,
            names=names,
            new_axes={} if n_columns == 1 else {1: n_columns},
            concatenate=True,
            align_arrays=False,
            dtype=dtype,
            meta=np.empty((0,) * (1 if n_columns == 1 else 2), dtype),
        )

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_std: Any = None, X_cov: Any = None
    ) -> float:
        """Return the score of `predict` as the estimators of `halosvm` have it.

        Parameters
        ----------
        X, y, sample_weight, X_std, X_cov
            As in `fit`. Of collections only labels or values, weights and predictions come back;
            `y` and `sample_weight` of arrays and frames may be cut in any way.

        Returns
        -------
        float
        """
        local = self.to_local()
        if not is_collection(X):
            errors = {"X_std": X_std, "X_cov": X_cov}
            return float(local.score(X, y, sample_weight, **errors))
        _require_targets(self, y)
        errors = _collections(X_std=X_std, X_cov=X_cov)
        if isinstance(X, list | tuple):
            columns = in_columns(X, y=y, sample_weight=sample_weight, **errors)
            call = dask.delayed(_paired_in_partition, pure=True)
            parts = enumerate(zip(*columns, strict=True))
            paired = [call(local, number, list(errors), *each) for number, each in parts]
            found = [each for each in computed(paired) if len(each[0])]
        else:
            # Rows are paired by their order as a whole: partitions may differ, or be of unknown
            # sizes.
            given = (_in_one(each) for each in (y, sample_weight))
            found = [_paired(*map(computed, (self.predict(X, **errors), *given)))]
        if not found or not len(found[0][0]):
            raise ValueError("X has 0 rows; at least 1 is needed")
        of_all = (None if of[0] is None else np.concatenate(of) for of in zip(*found, strict=True))
        return float(self._score(*of_all))


def _is_zero(value: Any) -> bool:
    return isinstance(value, Real) and value == 0


def _collections(**errors: Any) -> dict[str, Any]:
    """Return the errors that are given as collections; 0 means none."""
    for name, value in errors.items():
        if isinstance(value, Real) and value != 0:
            raise ValueError(
                f"{name} is a single number, {value:g}; pass a collection like X, or 0"
            )
    return {
        name: value
        for name, value in errors.items()
        if value is not None and not isinstance(value, Real)
    }


def _call(model: Any, method: str, names: list[str], X: Any, *errors: Any) -> Any:
    return getattr(model, method)(X, **dict(zip(names, errors, strict=True)))


def _of_blocks(X: Any, *errors: Any, model: Any, method: str, names: list[str]) -> Any:
    if not len(X):
        for name, error in zip(names, errors, strict=True):
            if len(error):
                raise ValueError(f"{name} has {len(error)} rows in a partition, X has 0")
        several = method != "predict" and len(model.coef_) > 1
        return np.empty((0, len(model.coef_)) if several else 0)
    return _call(model, method, names, X, *errors)


def _in_one(column: Any) -> Any:
    """Return a list of partitions as one delayed array, and all else as it is."""
    several = isinstance(column, list | tuple) and is_collection(column)
    return dask.delayed(np.concatenate)(column) if several else column


def _paired(predicted: Any, y: Any, weights: Any, X: Any = None) -> tuple[Any, Any, Any]:
    """Return targets, predictions and weights after a check that they are of the same rows."""
    numbers = np.asarray(predicted).dtype.kind == "f"
    y, weights = read_targets(predicted if X is None else X, y, weights, values=numbers)
    for name, value in (("y", y), ("sample_weight", weights)):
        if value is not None and len(value) != len(predicted):
            raise ValueError(f"{name} has {len(value)} values, X has {len(predicted)} rows")
    return np.asarray(y), np.asarray(predicted), weights


def _paired_in_partition(
    model: Any, number: int, names: list[str], X: Any, y: Any, weights: Any, *errors: Any
) -> tuple[Any, Any, Any]:
    with placed(number, word="partition"):
        predicted = _of_blocks(X, *errors, model=model, method="predict", names=names)
        return _paired(predicted, y, weights, X)


def _framed(X: Any, *others: Any) -> Any:
    import pandas as pd  # which dask's data frames are made of

    *errors, model, method, names = others
    values = _of_blocks(X, *errors, model=model, method=method, names=names)
    if values.ndim == 1:
        return pd.Series(values, index=X.index, name=method)
    return pd.DataFrame(values, index=X.index, columns=model.classes_)


class UncertainSVC(_Lazy, halosvm.linear.svc.UncertainSVC):
    """`halosvm.UncertainSVC` of examples on the workers of a dask cluster.

    Parameters, attributes and the certificate are those of `halosvm.UncertainSVC`, and so is the
    model. Solvers that need all rows are refused: `solver` is "auto" or "lbfgs". `n_threads` are
    those of one partition; None is one, since workers have a thread for each processor.

    A first pass finds labels, weights and moments; then each evaluation sends coefficients to each
    worker once, and each partition returns as many numbers as there are coefficients, and eight
    more. They are summed in the order of the partitions, so that the model does not depend on which
    worker answers first. A partition whose worker is lost is computed again from the collection.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from halosvm.dask import UncertainSVC
    >>> client = Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0")
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 1000)
    >>> X = da.from_array(rng.normal(size=(1000, 3)) + 3 * labels[:, None], chunks=(250, 3))
    >>> y = da.from_array(labels, chunks=250)
    >>> clf = UncertainSVC().fit(X, y, X_std=da.full((1000, 3), 0.5, chunks=(250, 3)))
    >>> bool((clf.predict(X) == y).mean().compute() > 0.99)
    True
    >>> client.close()
    """

    _local_type = halosvm.linear.svc.UncertainSVC

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        radius: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : dask array or data frame, or list of futures or delayed objects
            Training examples, or only their means; the items of a list are Gaussians or arrays.
            What is none of these is fitted here, as by `halosvm.UncertainSVC`.
        y : dask array, series, or list of as many futures, delayed objects or arrays
            Labels, in partitions like those of `X`. Arrays of known sizes, and frames of known
            divisions, are cut like it, here and in all other methods; others must have as many
            partitions.
        X_std, X_cov, sample_weight : likewise, optional
            As in `halosvm.UncertainSVC.fit`. Partitions may be empty, or hold a single class.
        radius : optional
            Not for collections.

        Returns
        -------
        self
        """
        if not is_collection(X):
            errors = {"X_std": X_std, "X_cov": X_cov}
            super().fit(X, y, sample_weight=sample_weight, radius=radius, **errors)
            return self
        if radius is not None:
            raise ValueError("radius of each example is not for collections; leave it out")
        _require_targets(self, y)
        with self._all_or_nothing():
            given = _collections(X_std=X_std, X_cov=X_cov)
            of_each = given.get("X_std"), given.get("X_cov")
            data = partitions_of(client_that_waits(), X, y, *of_each, sample_weight)
            return self._fit_chunks(data)

    def predict(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Any:
        """Return the most likely label of each example, of collections lazily: of their means."""
        if not is_collection(X):
            return super().predict(X, X_std=X_std, X_cov=X_cov)
        errors = {"X_std": X_std, "X_cov": X_cov}
        return self._on_partitions("predict", X, 1, self.classes_.dtype, **errors)

    def decision_function(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Any:
        """Return the decision values, of collections lazily: of their means."""
        if not is_collection(X):
            return super().decision_function(X, X_std=X_std, X_cov=X_cov)
        errors = {"X_std": X_std, "X_cov": X_cov}
        return self._on_partitions("decision_function", X, len(self.coef_), np.float64, **errors)

    def decision_std(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Any:
        """Return the standard deviations of the decision values, of collections lazily."""
        if not is_collection(X):
            return super().decision_std(X, X_std=X_std, X_cov=X_cov)
        errors = {"X_std": X_std, "X_cov": X_cov}
        return self._on_partitions("decision_std", X, len(self.coef_), np.float64, **errors)

    def side_probability(self, X: Any, *, X_std: Any = None, X_cov: Any = None) -> Any:
        """Return the probabilities P(f(X) > 0), of collections lazily."""
        if not is_collection(X):
            return super().side_probability(X, X_std=X_std, X_cov=X_cov)
        errors = {"X_std": X_std, "X_cov": X_cov}
        return self._on_partitions("side_probability", X, len(self.coef_), np.float64, **errors)


class UncertainSVR(_Lazy, halosvm.linear.svr.UncertainSVR):
    """`halosvm.UncertainSVR` of examples on the workers of a dask cluster.

    Everything is as in `halosvm.dask.UncertainSVC`, with values in place of labels.
    """

    _local_type = halosvm.linear.svr.UncertainSVR

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        y_std: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, X_std, X_cov, sample_weight
            As in `halosvm.dask.UncertainSVC.fit`, with values in place of labels.
        y_std : float, optional
            Standard deviation of the errors of `y`, for collections the same for all.

        Returns
        -------
        self
        """
        if not is_collection(X):
            others = {"X_std": X_std, "X_cov": X_cov, "y_std": y_std}
            super().fit(X, y, sample_weight=sample_weight, **others)
            return self
        _require_targets(self, y)
        with self._all_or_nothing():
            given = _collections(X_std=X_std, X_cov=X_cov)
            of_each = given.get("X_std"), given.get("X_cov")
            data = partitions_of(client_that_waits(), X, y, *of_each, sample_weight)
            return self._fit_chunks(data, y_std)

    def predict(
        self, X: Any, *, return_std: bool = False, X_std: Any = None, X_cov: Any = None
    ) -> Any:
        """Return the predicted values, of collections lazily and without `return_std`."""
        if not is_collection(X):
            return super().predict(X, return_std=return_std, X_std=X_std, X_cov=X_cov)
        if return_std:
            raise ValueError("return_std=True is not for collections; use map_partitions")
        errors = {"X_std": X_std, "X_cov": X_cov}
        return self._on_partitions("predict", X, 1, np.float64, **errors)


def _require_targets(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
