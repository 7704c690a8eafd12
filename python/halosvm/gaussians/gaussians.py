"""Gaussians: the examples, each with a mean and a covariance; the first station of the flow.

In:  means with standard deviations, variances or covariances, read by their dimensions.
Out: one object that scikit-learn can index, split and pickle, and that the core views in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from scipy import sparse

from halosvm import _core
from halosvm.checks import frames, units
from halosvm.checks.error_arguments import OWN_NAMES, X_NAMES, Names, read_examples
from halosvm.checks.limits import Limits, joined
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians import frames_with_errors, subspace
from halosvm.gaussians.covariances import Covariances
from halosvm.gaussians.groups import labels_in_order
from halosvm.gaussians.side_by_side import origin_of, side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from halosvm.checks.error_arguments import State
    from halosvm.checks.frames import FeatureNames
    from halosvm.checks.reading import Rows
    from halosvm.checks.units import FeatureUnits
    from halosvm.gaussians.side_by_side import Origin


_TAKES_LIMITS = (
    ", which EmpiricalBayes and ClassPopulations alone take: put the former before, as "
    "make_pipeline(EmpiricalBayes(output='mean'), ...), or give a value and its error in place of "
    "the limit"
)


class Gaussians(arrays.Frozen):
    """Uncertain examples: row i is normal with mean ``mean[i]`` and covariance ``covariances[i]``.

    Parameters
    ----------
    mean : array-like or sparse array of shape (n_samples, n_features)
        A sparse array or matrix of SciPy stays sparse, in CSR format; others are converted once.
        Float32 and float64 arrays in C order are used in place, read-only ones and memory maps too;
        do not change them afterwards. A data frame also gives the feature names.
        Quantities of astropy and pint, and astropy tables with units, also give the units.
        NaN and masked entries are missing, but in sparse arrays: `EmpiricalBayes` estimates them.
    std : array-like of shape (n_samples,) or (n_samples, n_features), optional
        Standard deviations, in the unit of the features: one per example, or one per example and
        feature; 0 means certain, and can stand alone for all; infinity means that the value is
        missing, whose error may be NaN. A data frame is paired with that of the means by its index
        and by its columns, whose names may differ by one prefix and one suffix, as `a_err` and `a`
        do, or altogether; labels that contradict those of the means are refused.
    variance : array-like of shape (n_samples,) or (n_samples, n_features), optional
        The squares of standard deviations.
    cov : Covariances or array-like, optional
        An array is read by its dimensions: (n_samples,) isotropic, (n_samples, n_features)
        diagonal, (n_samples, n_features, n_features) full.

        At most one of `std`, `variance` and `cov` can be given; without any, the examples are
        certain. Where the means have units, these need theirs too, and are converted.
    lower, upper : array-like of shape (n_samples, n_features), optional
        Limits of readings that are not known themselves: above `lower`, below `upper`, or between
        both; NaN where there is none. The mean is NaN there, and the error that of the reading. A
        limit is not a missing value: `EmpiricalBayes` takes it for what it tells.

    Attributes
    ----------
    mean : ndarray or csr_array of float32 or float64 of shape (n_samples, n_features)
        The means, read-only; NaN where a value is missing.
    covariances : Covariances
        Their covariances, finite; what they are where a value is missing says nothing.
    feature_names : ndarray of str objects of shape (n_features,), or None
        The columns of the data frame that gave the means, if all are strings.
    feature_units : tuple of units, or None
        The unit of each feature, if the means had units; means and covariances are in them.
    groups : ndarray of shape (n_samples,), or None
        Of Gaussians of repeated observations, what each example was called; see
        `halosvm.uncertainty.from_samples` and `labels_by_group`.
    limits : pair of ndarray of shape (n_samples, n_features), or None
        The limits `lower` and `upper`, NaN where there is none.
    shape, ndim, dtype
        Those of `mean`.

    Raises
    ------
    ValueError
        For shapes that do not agree; means that are infinite or above 1e150; errors that are NaN
        where there is a value, or negative; matrices that are not symmetric and positive
        semi-definite; and for arrays whose meaning is open: one matrix for all examples, or as many
        examples as features where the dimensions do not tell the two apart. The message names the
        constructor to use.
    TypeError
        For arrays that do not hold real numbers.

    Notes
    -----
    ``X[rows]`` with a slice, an index array or a mask is Gaussians (a view for a slice); with an
    integer it is the pair ``(mean, covariance)`` of that example, as arrays. ``X[:, columns]`` with
    a slice, an index array or a mask is Gaussians of these features. ``np.hstack`` puts features of
    the same examples side by side again, where it is known how their errors depend on each other;
    columns of arrays, sparse arrays and data frames beside them are certain.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Gaussians
    >>> X = Gaussians(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), std=np.array([0.1, 0.0, 2.0]))
    >>> X
    Gaussians(n_samples=3, n_features=2, covariances='isotropic', dtype=float64)
    >>> X[1:].mean
    array([[3., 4.],
           [5., 6.]])
    >>> mean, covariance = X[2]
    >>> covariance
    array([[4., 0.],
           [0., 4.]])
    """

    _state = ("mean", "covariances", "feature_names", "feature_units", "groups", "limits")
    __slots__ = (*_state, "origin", "posterior")

    mean: Rows
    covariances: Covariances
    feature_names: FeatureNames | None
    feature_units: FeatureUnits
    groups: NDArray[Any] | None
    limits: Limits | None
    origin: Origin | None  # which a map leaves here, and which ends with a pickle
    posterior: bool  # what is known of true values, and what is made of that; ends with a pickle
    _view: _core.Gaussians | None

    ndim = 2

    def __init__(
        self,
        mean: ArrayLike,
        *,
        std: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        cov: Covariances | ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> None:
        labels = frames.labels_of(mean, "mean")
        if labels.names is not None and std is None and variance is None and cov is None:
            frames_with_errors.warn_of_errors_among(labels.names)
        spreads = {"std": std, "variance": variance, "cov": cov, "lower": lower, "upper": upper}
        self.__setstate__(read_examples(OWN_NAMES, mean, labels, missing=True, **spreads))

    @classmethod
    def of_state(cls, state: State) -> Gaussians:
        """Make Gaussians of what `read_examples` returned."""
        gaussians = cls.__new__(cls)
        gaussians.__setstate__(state)
        return gaussians

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str | Sequence[str] | None = None,
        errors: Mapping[str, str | tuple[str, str]] | None = None,
    ) -> Self:
        """Make Gaussians of a frame whose errors stand in columns beside those of the values.

        Parameters
        ----------
        frame : data frame of pandas or polars, or table of pyarrow or astropy
            All columns but labels and errors are features; one without errors is certain. Units of
            an astropy table are kept, and errors are converted.
        label : str or sequence of str, optional
            Columns that are no features, such as the labels.
        errors : mapping of str to str or pair of str, optional
            The error column of each feature that has one, or its upper and lower one, whose mean
            size is taken. By default names say it, as on the command line: ``flux_err``,
            ``e_flux``, ``flux_var``, ``flux_ivar`` and others of ``flux``; a warning names every
            pair that was taken, and each feature that only looks like errors.

        Returns
        -------
        Gaussians

        Examples
        --------
        >>> import pandas as pd
        >>> from halosvm import Gaussians
        >>> stars = pd.DataFrame({"flux": [1.0, 2.0], "flux_err": [0.1, 0.2], "kind": ["a", "b"]})
        >>> X = Gaussians.from_frame(stars, label="kind", errors={"flux": "flux_err"})
        >>> X.feature_names, X.covariances.to_full().ravel().tolist()
        (array(['flux'], dtype=object), [0.010000000000000002, 0.04000000000000001])
        """
        features, pairs = frames_with_errors.features_and_errors(frame, label, errors)
        chosen = frames_with_errors.columns_of(frame, features)
        made = cls.__new__(cls)
        labels = frames.labels_of(chosen, "frame")
        made.__setstate__(read_examples(Names("frame"), chosen, labels))
        if not pairs:
            return made
        std = frames_with_errors.read_std(frame, features, pairs, made.feature_units)
        return made.replaced(covariances=Covariances.from_std(std))

    @classmethod
    def concatenate(cls, parts: Iterable[Gaussians]) -> Gaussians:
        """Join Gaussians of the same features, in order.

        Covariances are joined as by `Covariances.concatenate`. Feature names are kept if all parts
        have them, in which case they must be equal, and groups if all parts have them. Units become
        those of the first part.

        Parameters
        ----------
        parts : iterable of Gaussians
            At least one.
        """
        batches = list(parts)
        for i, part in enumerate(batches):
            if not isinstance(part, Gaussians):
                raise TypeError(f"parts[{i}] is {type(part).__name__}, expected Gaussians")
        if batches:
            wanted = batches[0].feature_units
            batches = [p.in_units(wanted, f"parts[{i}]", "parts[0]") for i, p in enumerate(batches)]
        covariances = Covariances.concatenate(part.covariances for part in batches)
        of_each = [part.groups for part in batches if part.groups is not None]
        return batches[0].replaced(
            mean=arrays.join_rows([part.mean for part in batches]),
            covariances=covariances,
            feature_names=frames.common_names([part.feature_names for part in batches], "parts"),
            groups=np.concatenate(of_each) if len(of_each) == len(batches) else None,
            limits=joined([part.limits for part in batches], [part.shape for part in batches]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_features)``."""
        return self.covariances.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the means."""
        dtype: np.dtype[Any] = self.mean.dtype
        return dtype

    # Not named sparse, by which scikit-learn 1.7 tells data frames.
    @property
    def is_sparse(self) -> bool:
        """Whether the means are stored as a sparse array."""
        return bool(sparse.issparse(self.mean))

    def __len__(self) -> int:
        return self.covariances.n_samples

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        super().__setstate__((*state, None)[: len(self._state)])  # of older pickles, too
        object.__setattr__(self, "origin", None)
        object.__setattr__(self, "posterior", False)

    def replaced(self, **parts: Any) -> Self:
        """Return the same with other parts (for the package, which knows them valid)."""
        return super().replaced(**parts).as_posteriors(self.posterior)

    def as_posteriors(self, posterior: bool = True) -> Self:
        """Mark these, which are new, as posteriors of true values, or not, and return them."""
        object.__setattr__(self, "posterior", posterior)
        return self

    def __getitem__(self, key: Any) -> Any:
        columns = arrays.select_columns(key, self.shape[1])
        if columns is not None:
            return self._features(columns)
        rows = arrays.select_rows(key, len(self))
        if isinstance(rows, int):
            mean = self.mean[rows : rows + 1].toarray()[0] if self.is_sparse else self.mean[rows]
            return mean, self.covariances[rows]
        groups = None if self.groups is None else arrays.take_rows(self.groups, rows)
        mean = arrays.take_rows(self.mean, rows)
        limits = None if self.limits is None else self.limits.taken(rows)
        covariances = self.covariances[rows]
        return self.replaced(mean=mean, covariances=covariances, groups=groups, limits=limits)

    def _features(self, columns: NDArray[np.intp]) -> Gaussians:
        d, k = self.shape[1], len(columns)
        A = sparse.csr_array((np.ones(k), (np.arange(k), columns)), shape=(k, d))
        names, of_each = self.feature_names, self.feature_units
        return self.mapped_to(
            arrays.take_columns(self.mean, columns),
            self.covariances.mapped(A),
            matrix=A,
            feature_names=None if names is None else names[columns],
            feature_units=None if of_each is None else tuple(of_each[j] for j in columns),
            limits=None if self.limits is None else self.limits.taken((slice(None), columns)),
        )

    def mapped_to(
        self,
        mean: Rows,
        covariances: Covariances,
        *,
        matrix: Any = None,
        feature_names: FeatureNames | None = None,
        feature_units: FeatureUnits = None,
        limits: Limits | None = None,
    ) -> Gaussians:
        """Return what a map makes of these, which remembers what it was made of.

        `matrix` is that of a linear map, sparse or dense; without it the map is any other one.
        """
        image = self.replaced(
            mean=mean,
            covariances=covariances,
            feature_names=feature_names,
            feature_units=feature_units,
            limits=limits,
        )
        object.__setattr__(image, "origin", origin_of(self).followed_by(matrix))
        return image

    def labels_by_group(self, labels: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Return the label of each example, in the order of `groups`, which need not be that given.

        Parameters
        ----------
        labels : mapping, Series or array-like
            The label of each group: a mapping, or a Series whose index names the groups. With
            `groups`, the label of each observation, of shape (n_observations,).
        groups : array-like of shape (n_observations,), optional
            The group of each observation, as given to `halosvm.uncertainty.from_samples`.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a group has no label, or two that differ.

        Examples
        --------
        >>> from halosvm.uncertainty import from_samples
        >>> X = from_samples([[3.0], [2.0], [0.0], [1.0]], ["b", "b", "a", "a"], of="mean")
        >>> X.groups
        array(['a', 'b'], dtype=object)
        >>> X.labels_by_group({"b": 1, "a": 0})
        array([0, 1])
        """
        return labels_in_order(self.groups, labels, groups)

    def in_units(self, feature_units: FeatureUnits, argument: str, other: str) -> Self:
        """Return these Gaussians in the units that `other` has; both names are for messages."""
        given = self.feature_units
        if units.equal(given, feature_units):
            return self
        mean = units.converted(self.mean, given, feature_units, argument, other)
        covariances = self.covariances
        if not covariances.certain:
            factors = units.error_factors(given, feature_units, 2, argument, other)
            covariances = covariances if factors is None else covariances.scaled(factors)
        limits = self.limits
        if limits is not None:
            of_each = (units.converted(x, given, feature_units, argument, other) for x in limits)
            limits = Limits(*of_each)
        return self.replaced(
            mean=mean, covariances=covariances, feature_units=feature_units, limits=limits
        )

    def with_spreads_times(self, factors: NDArray[np.float64], argument: str) -> Self:
        """Return these Gaussians with standard deviations times factors >= 0, () or (n_samples,).

        Where all factors are 0, the examples are certain. `argument` names the result in messages.
        """
        if self.covariances.certain or (factors == 1.0).all():
            return self
        if not factors.any():
            return self.replaced(covariances=Covariances.zero(*self.shape))
        with np.errstate(over="ignore", invalid="ignore"):  # the check says what is too large
            covariances = self.covariances.scaled(np.reshape(factors, (-1, 1)))
        covariances.require_in_range(argument)
        return self.replaced(covariances=covariances)

    def truncate(self, p: float, *, mean: str = "keep", n_threads: int | None = None) -> Gaussians:
        """Truncate the covariances to the subspace of each that holds a fraction of its variance.

        Parameters
        ----------
        p, n_threads
            As in `Covariances.truncate`.
        mean : {"keep", "project"}, default="keep"
            "project" is the printed form of SVM-GSU, section 3.2, which also replaces each mean by
            its part in the subspace. All that lies outside of it is lost, for certain examples the
            whole mean: it is there to reproduce the paper.
        """
        subspace.require_mean(mean, "mean")
        self.require_complete("X")
        if mean == "project" and self.is_sparse:
            raise TypeError("mean='project' would make sparse means dense; give them as an array")
        covariances = self.covariances.truncate(p, n_threads=n_threads)
        means = self.mean if mean == "keep" else subspace.project_means(self.mean, covariances)
        return self.replaced(mean=means, covariances=covariances)

    def require_complete(self, argument: str) -> None:
        """Raise ValueError that names the first missing value, if there is one."""
        if self.is_sparse or not np.isnan(self.mean.min(initial=0.0)):
            return
        self.require_no_limits(argument)
        row, column = np.argwhere(np.isnan(self.mean))[0]
        raise ValueError(
            f"{argument}: row {row}, column {column} is missing (nan), which EmpiricalBayes alone "
            "takes, and estimates: put it before, as make_pipeline(EmpiricalBayes(), ...), or "
            "leave out the row"
        )

    def require_no_limits(self, argument: str, instead: str = "") -> None:
        """Raise ValueError that names the first limit, if there is one, and says what to do."""
        if self.limits is not None:
            raise ValueError(f"{argument}: {self.limits.first()}{instead or _TAKES_LIMITS}")

    def core_view(self, *, missing: bool = False, limits: bool = False) -> _core.Gaussians:
        """Return the core's view of the stored arrays, made at the first call.

        Values that are missing, and limits, are refused, but for functions that know of them.
        """
        if missing:
            if not limits:
                self.require_no_limits("X")
            return _core.Gaussians(self.mean, self.covariances.core_view())
        view = self._view
        if view is None:
            self.require_complete("X")
            view = _core.Gaussians(self.mean, self.covariances.core_view())
            object.__setattr__(self, "_view", view)
        return view

    def __repr__(self) -> str:
        return (
            f"Gaussians({'sparse, ' if self.is_sparse else ''}"
            f"n_samples={self.shape[0]}, n_features={self.shape[1]}, "
            f"covariances={self.covariances.kind!r}, dtype={self.dtype})"
        )

    def __array__(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "Gaussians are not one array, and their means alone would lose the covariances; use "
            ".mean where only the means are wanted, EmpiricalBayes(output='mean') before an "
            "estimator of arrays, UncertainStandardScaler or "
            "Propagate(transformer) where both are to be transformed, and .mean with X_std or "
            "X_cov as routed metadata in tools of scikit-learn that make arrays of X. Beside "
            "sparse columns, ColumnTransformer needs sparse_threshold=0 and FeatureUnion encoders "
            "with sparse_output=False; set_output makes no frames of Gaussians"
        )

    def __iter__(self) -> Iterator[Any]:  # by which data frames ask for the array, which refuses
        return (self[i] for i in range(len(self)))

    def __array_function__(self, func: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        axis = kwargs.get("axis", args[1] if len(args) > 1 else 0)
        if func is np.hstack or (func is np.concatenate and axis in (1, -1)):
            return side_by_side(args[0])
        if func is np.concatenate and axis == 0:
            return Gaussians.concatenate(args[0])
        return func._implementation(*args, **kwargs)  # noqa: SLF001 (NumPy's word for its own)


def as_gaussians(
    X: Gaussians | ArrayLike,
    *,
    X_std: ArrayLike | None = None,
    X_cov: Covariances | ArrayLike | None = None,
    X_lower: ArrayLike | None = None,
    X_upper: ArrayLike | None = None,
    labels: frames.Labels | None = None,
    sparse: bool = False,
    missing: bool = False,
    limits: bool = False,
) -> Gaussians:
    """Read the examples that an estimator was given; errors speak of X, X_std and X_cov.

    Parameters
    ----------
    X : Gaussians or array-like of shape (n_samples, n_features)
        Gaussians are returned as they are.
    X_std, X_cov : array-like, optional
        `std` and `cov` of Gaussians, for an `X` that holds only means; at most one.
    X_lower, X_upper : array-like, optional
        `lower` and `upper` of Gaussians, likewise.
    labels : Labels, optional
        Those of the data frame whose bare array `X` is.
    sparse : bool
        Whether the caller takes sparse means, and covariances of few features. If not, sparse means
        are refused, and covariances stored as if they were of all features.
    missing : bool
        Whether the caller takes missing values. If not, they are refused.
    limits : bool
        Likewise for limits, where it takes missing values.

    Returns
    -------
    Gaussians

    Raises
    ------
    ValueError, TypeError
        As `Gaussians`; also if `X` is Gaussians and `X_std` or `X_cov` is given.
    """
    if isinstance(X, Gaussians):
        for name, value in (("X_std", X_std), ("X_cov", X_cov)):
            if value is not None:
                raise ValueError(f"{name} is given, but X is Gaussians, which have covariances")
        for name, value in (("X_lower", X_lower), ("X_upper", X_upper)):
            if value is not None:
                raise ValueError(f"{name} is given, but X is Gaussians, which have their limits")
        if not missing:
            X.require_complete("X")
        elif not limits:
            X.require_no_limits("X")
        return X if sparse else dense_alone(X)
    if not sparse and hasattr(X, "toarray"):
        raise TypeError("X is sparse; pass X.toarray()")
    if labels is None:
        labels = frames.labels_of(X, "X")
    given = {"std": X_std, "cov": X_cov, "lower": X_lower, "upper": X_upper}
    state = read_examples(X_NAMES, X, labels, missing=missing, **given)
    gaussians = Gaussians.of_state(state)
    return gaussians if sparse else dense_alone(gaussians)


def dense_alone(X: Gaussians) -> Gaussians:
    """Return Gaussians as those need them that know nothing of few features, or refuse them."""
    if X.is_sparse:
        raise TypeError(
            "X is Gaussians with sparse means, which UncertainSVC and UncertainSVR take and this "
            "does not; make them of X.mean.toarray()"
        )
    covariances = X.covariances.expanded()
    if covariances is X.covariances:
        return X
    expanded = X.replaced(covariances=covariances)
    object.__setattr__(expanded, "origin", origin_of(X))  # so that parts know each other again
    return expanded
