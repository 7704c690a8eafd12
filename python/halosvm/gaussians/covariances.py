"""Covariances: one covariance matrix per example, each batch in the smallest form that holds it.

In:  arrays of variances, standard deviations, factors or matrices, used in place and checked once.
Out: a batch to index, join and pickle, which the core views and reads without expanding it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from scipy.sparse import issparse

from halosvm.checks.frames import labels_of
from halosvm.checks.reading import as_count, as_float_array, as_rows, require_shape
from halosvm.gaussians import covariance_arrays as arrays
from halosvm.gaussians import covariance_kinds as kinds
from halosvm.gaussians import subspace
from halosvm.gaussians.covariance_storage import Stored
from halosvm.gaussians.linear_maps import placing
from halosvm.gaussians.sample_covariances import estimate_covariances

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from halosvm import _core
    from halosvm.checks.reading import FloatArray
    from halosvm.gaussians.covariance_storage import Kind
    from halosvm.gaussians.linear_maps import LinearMap
    from halosvm.gaussians.sample_covariances import BagKind, Of, Shrinkage


class Covariances(arrays.Frozen):
    """An immutable batch of covariance matrices, one per example.

    Batches are made by the class methods. ``batch[rows]`` with a slice, an index array or a mask is
    a batch (a view for a slice); with an integer it is the dense matrix of that example.

    Attributes
    ----------
    kind : {"zero", "isotropic", "diagonal", "low_rank", "full", "sparse_diagonal", "columns"}
        How the matrices are stored.
    n_samples, n_features : int
        Number of matrices and their order.
    values : ndarray or csr_array of float32 or float64, or None
        The stored numbers, read-only: None for zero, (n,) isotropic, (n, d) diagonal, (n, d, d)
        full, (n, d, r) low_rank, a csr_array (n, d) sparse_diagonal. Where ranks differ, low_rank
        is flat: ``values[d * offsets[i] : d * offsets[i + 1]]`` is the row-major (d, r_i) factor
        of example i.
    squared : bool
        True when isotropic or diagonal `values` are standard deviations, to be read as squares.
    offsets : ndarray of int64 of shape (n + 1,), or None
        Cumulative ranks of low_rank batches whose ranks differ.
    diagonal_values : ndarray of shape (n, d), or None
        Variances that a low_rank batch adds to the diagonal.
    columns, inner : ndarray of shape (k,) and Covariances of k features, or None
        Of a batch of few columns: which they are, and their covariances. `values` is then None.

    Notes
    -----
    Float32 and float64 arrays in C order are used in place, read-only ones and memory maps too; do
    not change them afterwards. Others are converted once. Standard deviations and factors have the
    unit of the features, variances its square; 0 means certain. They are plain numbers: quantities
    with a unit raise TypeError here, and are for `Gaussians`. Variances that are negative, NaN,
    infinite or above 1e150, and matrices that are not symmetric and positive semi-definite beyond
    rounding, raise ValueError with the row and the value.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import Covariances
    >>> batch = Covariances.from_std(np.array([[0.1, 0.2], [0.0, 0.5], [1.0, 2.0]]))
    >>> batch[:2]
    Covariances(kind='diagonal', n_samples=2, n_features=2, dtype=float64)
    >>> batch[2]
    array([[1., 0.],
           [0., 4.]])
    """

    __slots__ = _state = (
        "kind",
        "n_samples",
        "n_features",
        "values",
        "squared",
        "offsets",
        "diagonal_values",
        "columns",
        "inner",
    )

    kind: Kind
    n_samples: int
    n_features: int
    values: FloatArray | None
    squared: bool
    offsets: NDArray[np.int64] | None
    diagonal_values: FloatArray | None
    columns: NDArray[np.intp] | None
    inner: Covariances | None
    _view: _core.Covariances | None

    def __init__(self) -> None:
        raise TypeError(
            "Covariances are made by zero, isotropic, diagonal, low_rank, full, from_std, "
            "from_variance, from_inverse_variance, from_correlation, from_samples or concatenate"
        )

    @classmethod
    def _of(
        cls,
        kind: Kind,
        shape: tuple[int, ...],
        values: FloatArray | None = None,
        *,
        squared: bool = False,
        offsets: NDArray[np.int64] | None = None,
        added: FloatArray | None = None,
        columns: NDArray[np.intp] | None = None,
        inner: Covariances | None = None,
        argument: str | None = None,
    ) -> Self:
        """Assemble a batch; with the name of an argument, the core checks the values first."""
        batch = cls.__new__(cls)
        state = (kind, shape[0], shape[1], values, squared, offsets, added, columns, inner)
        batch.__setstate__(state)
        if argument is not None and batch.n_samples:
            batch.core_view().check(argument)
        return batch

    # ---- constructors ------------------------------------------------------------------------

    @classmethod
    def zero(cls, n_samples: int, n_features: int) -> Self:
        """Make the covariances of certain examples; nothing is stored.

        Parameters
        ----------
        n_samples, n_features : int
            Numbers of examples (>= 0) and features (>= 1).
        """
        n_samples = as_count(n_samples, "n_samples", 0)
        return cls._of("zero", (n_samples, as_count(n_features, "n_features", 1)))

    @classmethod
    def isotropic(cls, variance: ArrayLike, n_features: int, *, argument: str = "variance") -> Self:
        """Make ``variance[i] * identity``.

        Parameters
        ----------
        variance : array-like of shape (n_samples,)
            One variance per example.
        n_features : int
            Number of features.
        argument : str
            Name of the array in error messages, here and below.
        """
        values = as_float_array(variance, argument, "n_samples")
        return cls._spread(values, n_features, argument)

    @classmethod
    def diagonal(
        cls,
        variances: ArrayLike,
        *,
        columns: ArrayLike | None = None,
        n_features: int | None = None,
        argument: str = "variances",
    ) -> Self:
        """Make diagonal matrices: errors that are independent between features.

        Parameters
        ----------
        variances : array-like or sparse array of shape (n_samples, n_features)
            One variance per example and feature; what a sparse array does not store is certain.
        columns : array-like of int of shape (k,), optional
            The features that are uncertain, if not all are: `variances` is then (n_samples, k).
        n_features : int, optional
            Number of all features; needed with `columns`, here and below.

        Examples
        --------
        >>> import numpy as np
        >>> Covariances.diagonal(np.array([[4.0], [9.0]]), columns=[1], n_features=3)[1]
        array([[0., 0., 0.],
               [0., 9., 0.],
               [0., 0., 0.]])
        """
        values = as_rows(variances, argument, "n_samples", "n_features")
        return cls._of_columns(cls._spread(values, None, argument), columns, n_features, argument)

    @classmethod
    def from_std(
        cls, std: ArrayLike, n_features: int | None = None, *, argument: str = "std"
    ) -> Self:
        """Make isotropic or diagonal covariances from standard deviations, stored as they are.

        Parameters
        ----------
        std : array-like of shape (n_samples,) or (n_samples, n_features)
            One standard deviation per example, or per example and feature.
        n_features : int, optional
            Number of features; needed for a 1-d `std`.
        """
        return cls._spread(as_rows(std, argument), n_features, argument, squared=True)

    @classmethod
    def from_variance(
        cls, variance: ArrayLike, n_features: int | None = None, *, argument: str = "variance"
    ) -> Self:
        """Make isotropic or diagonal covariances from variances; parameters as in `from_std`."""
        return cls._spread(as_rows(variance, argument), n_features, argument)

    @classmethod
    def from_inverse_variance(
        cls, inverse_variance: ArrayLike, n_features: int | None = None
    ) -> Self:
        """Make isotropic or diagonal covariances from inverse variances (precisions).

        Parameters
        ----------
        inverse_variance : array-like of shape (n_samples,) or (n_samples, n_features)
            Positive; infinity means certain, 0 (an infinite variance) raises ValueError.
        n_features : int, optional
            Number of features; needed for a 1-d array.
        """
        argument = "inverse_variance"
        values = arrays.inverse_of(as_float_array(inverse_variance, argument), argument)
        return cls._spread(values, n_features, argument)

    @classmethod
    def _spread(
        cls, values: FloatArray, n_features: int | None, argument: str, *, squared: bool = False
    ) -> Self:
        """Make an isotropic batch of a 1-d array and a diagonal one of a 2-d array."""
        if n_features is not None:
            n_features = as_count(n_features, "n_features", 1)
        if values.ndim == 1:
            if n_features is None:
                raise ValueError(f"{argument} is 1-d, which needs n_features as well")
            shape = (len(values), n_features)
            return cls._of("isotropic", shape, values, squared=squared, argument=argument)
        require_shape(values, argument, "n_samples", n_features or "n_features")
        if issparse(values):
            kind: Kind = "sparse_diagonal"
            return cls._of(kind, values.shape, values, squared=squared, argument=argument)
        return cls._of("diagonal", values.shape, values, squared=squared, argument=argument)

    @classmethod
    def _of_columns(
        cls, inner: Self, columns: ArrayLike | None, n_features: int | None, argument: str
    ) -> Self:
        """Make covariances of all features from those of the columns; None stands for all."""
        if columns is None:
            if n_features is not None and n_features != inner.n_features:
                raise ValueError(
                    f"{argument} has {inner.n_features} features, n_features is {n_features}; "
                    "pass columns to say which of them these are"
                )
            return inner
        if n_features is None:
            raise ValueError(f"{argument} is given for columns, which needs n_features as well")
        d = as_count(n_features, "n_features", 1)
        chosen = np.asarray(columns)
        if chosen.dtype.kind not in "iu" or chosen.shape != (inner.n_features,):
            raise ValueError(
                f"columns has shape {chosen.shape} and dtype {chosen.dtype}; it needs a number for "
                f"each of the {inner.n_features} features of {argument}"
            )
        chosen = chosen.astype(np.intp)
        batch = cls._of("columns", (len(inner), d), columns=chosen, inner=inner)
        batch.core_view()  # which checks the columns
        return batch

    @classmethod
    def low_rank(
        cls,
        factors: Any,
        diagonal: ArrayLike | None = None,
        *,
        columns: ArrayLike | None = None,
        n_features: int | None = None,
    ) -> Self:
        """Make ``F F' + diag(diagonal)`` from factors F.

        Parameters
        ----------
        factors : array-like of shape (n_samples, n_features, rank), or list of arrays
            One factor per example; in a list of (n_features, rank_i) arrays the ranks may differ.
            Rank 0 is allowed. A list is copied, without padding.
        diagonal : array-like of shape (n_samples, n_features), optional
            Variances to add.
        columns, n_features : optional
            As in `diagonal`: the features that factors and diagonal are of, if not of all.

        Examples
        --------
        >>> import numpy as np
        >>> Covariances.low_rank(np.array([[[1.0], [2.0]]]))[0]
        array([[1., 2.],
               [2., 4.]])
        """
        values, offsets, shape = arrays.read_factors(factors)
        added = None
        if diagonal is not None:
            added = as_float_array(diagonal, "diagonal", *shape)
            cls.diagonal(added, argument="diagonal")
        cls._of("low_rank", shape, values, offsets=offsets, argument="factors")
        batch = cls._of("low_rank", shape, values, offsets=offsets, added=added)
        return cls._of_columns(batch, columns, n_features, "factors")

    @classmethod
    def full(
        cls,
        covariances: ArrayLike,
        *,
        columns: ArrayLike | None = None,
        n_features: int | None = None,
        argument: str = "covariances",
    ) -> Self:
        """Make covariances of dense matrices.

        Parameters
        ----------
        covariances : array-like of shape (n_samples, n_features, n_features)
            Symmetric positive semi-definite matrices.
        columns, n_features : optional
            As in `diagonal`: the features that the matrices are of, if not of all.
        """
        axes = ("n_samples", "n_features", "n_features")
        values = as_float_array(covariances, argument, *axes)
        batch = cls._of("full", values.shape, values, argument=argument)
        return cls._of_columns(batch, columns, n_features, argument)

    @classmethod
    def from_correlation(cls, correlation: ArrayLike, std: ArrayLike) -> Self:
        """Make full covariances ``correlation * outer(std[i], std[i])``, in float64.

        Parameters
        ----------
        correlation : array-like of shape ([n_samples, ] n_features, n_features)
            One correlation matrix for each example, or one for all.
        std : array-like of shape (n_samples, n_features)
            Standard deviations, whose columns have the order of the result where both have labels.
        """
        spread = as_float_array(std, "std", "n_samples", "n_features")
        cls.from_std(spread)
        each = arrays.read_correlation(correlation, spread.shape, labels_of(std, "std"))
        cls.full(each, argument="correlation")
        values = arrays.correlated(spread, each)
        return cls._of("full", values.shape, values)

    @classmethod
    def from_samples(
        cls,
        samples: Iterable[ArrayLike],
        kind: BagKind = "full",
        *,
        shrinkage: Shrinkage = None,
        of: Of = "observations",
    ) -> Self:
        """Estimate a covariance from each bag of repeated observations, unbiased (ddof = 1).

        Parameters
        ----------
        samples : iterable of array-like of shape (N_i, n_features)
            The observations of each example, two or more: one tells nothing of its spread.
        kind : {"full", "diagonal", "low_rank"}
            What to keep; low_rank is exact, with factors of rank at most N_i - 1.
        shrinkage, of
            As in `halosvm.uncertainty.from_samples`.
        """
        values, offsets, added, shape = estimate_covariances(samples, kind, shrinkage, of)
        return cls._of(kind, shape, values, offsets=offsets, added=added, argument="samples")

    @classmethod
    def concatenate(cls, parts: Iterable[Covariances]) -> Self:
        """Join batches of one number of features, in order.

        Different kinds become the smallest kind that holds all of them. The result is float32 when
        all parts are and none had to be squared or expanded, else float64.
        """
        batches = arrays.require_alike(parts, Covariances)
        return cls._stored(kinds.join(batches), sum(map(len, batches)), batches[0].n_features)

    @classmethod
    def _stored(cls, stored: Stored, n_samples: int, n_features: int) -> Self:
        batch = cls.__new__(cls)
        batch.__setstate__((stored.kind, n_samples, n_features, *stored[1:]))
        return batch

    # ---- what a batch offers -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_features)``."""
        return self.n_samples, self.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers, float64 if there are none."""
        if self.inner is not None:
            return self.inner.dtype
        return np.dtype(np.float64) if self.values is None else self.values.dtype

    @property
    def certain(self) -> bool:
        """Whether nothing is stored: all examples are certain, and the kind is zero."""
        return self.values is None and self.inner is None

    def inside(self) -> tuple[Covariances, NDArray[np.intp]]:
        """Return the covariances of a batch of few columns, and these (for the package)."""
        assert self.inner is not None
        assert self.columns is not None
        return self.inner, self.columns

    def among(self, columns: NDArray[np.intp], n_features: int) -> Covariances:
        """Return these as covariances of some columns among certain ones (for the package)."""
        if self.certain:
            return self.zero(len(self), n_features)
        if len(columns) == n_features:
            return self
        if kinds.storage_of(self).few:
            return self.mapped(placing(columns, n_features))
        stored = Stored("columns", columns=columns, inner=self)
        return self._stored(stored, len(self), n_features)

    def expanded(self) -> Covariances:
        """Return the same matrices stored for all features; most batches are that already."""
        return kinds.storage_of(self).expanded(self)

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, key: Any) -> Any:
        rows = arrays.select_rows(key, self.n_samples)
        if isinstance(rows, int):
            return self[rows : rows + 1].to_full()[0]
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        if self.inner is not None:
            return self.replaced(n_samples=n_rows, inner=self.inner[rows])
        values, offsets, added = self.values, self.offsets, self.diagonal_values
        if values is not None and offsets is not None:
            values, offsets = arrays.take_factors(values, offsets, self.n_features, rows)
        elif values is not None:
            values = arrays.take_rows(values, rows)
        added = None if added is None else arrays.take_rows(added, rows)
        return self.replaced(
            n_samples=n_rows, values=values, offsets=offsets, diagonal_values=added
        )

    def variances(self) -> NDArray[np.float64]:
        """Return the diagonals, (n_samples, n_features), as variances; maybe a read-only view."""
        return kinds.storage_of(self).variances(self)

    def trace(self) -> NDArray[np.float64]:
        """Return the sums of the diagonals, (n_samples,)."""
        return kinds.storage_of(self).trace(self)

    def truncate(self, p: float, *, n_threads: int | None = None) -> Covariances:
        """Keep the largest eigenvalues of each matrix that hold a fraction of its variance.

        Full matrices become low_rank, of a rank for each example. Diagonal ones stay so, with the
        smaller variances 0. An added diagonal is kept whole. Tied eigenvalues are kept or dropped
        together, hence isotropic matrices whole.

        Parameters
        ----------
        p : float
            Above 0 and at most 1; 1 keeps every eigenvalue that is not rounding.
        n_threads : int, optional
            Number of threads; None uses every processor, within the limits of
            OMP_NUM_THREADS, `threadpool_limits` and joblib's workers.

        Examples
        --------
        >>> import numpy as np
        >>> Covariances.diagonal(np.array([[4.0, 5.0, 1.0]])).truncate(0.9).values
        array([[4., 5., 0.]])
        """
        if self.inner is not None:
            return self.replaced(inner=self.inner.truncate(p, n_threads=n_threads))
        kind, values, offsets = subspace.truncate(self, p, n_threads)
        return self.replaced(kind=kind, values=values, offsets=offsets)

    def scaled(self, factors: NDArray[np.float64]) -> Covariances:
        """Return the covariances of features times factors: (d,), or (n or 1, d or 1).

        The type of the numbers is kept, by which is told what of them is rounding, where it holds
        the results.
        """
        factors = np.atleast_2d(factors)
        if self.inner is not None:
            own = factors if factors.shape[1] == 1 else factors[:, self.columns]
            return self.replaced(inner=self.inner.scaled(own))
        kind, values, added = kinds.storage_of(self).scaled(self, factors)
        values, added = (arrays.in_type(each, self.dtype) for each in (values, added))
        return self.replaced(kind=kind, values=values, diagonal_values=added)

    def require_in_range(self, argument: str) -> None:
        """Raise unless the core takes the size of all numbers, which were made of valid ones.

        `argument` names them in messages. Whether matrices are semi-definite is not asked again.
        """
        batch = self if self.inner is None else self.inner
        for numbers in (batch.values, batch.diagonal_values):
            # The check of the core also looks at eigenvalues, which takes long.
            if numbers is not None and not arrays.largest(numbers) < arrays.CLEARLY_IN_RANGE:
                self.core_view().check(argument)

    def mapped(self, A: LinearMap) -> Covariances:
        """Return ``A S A'`` of each S, as x -> A x makes it, in the smallest kind that holds it.

        Isotropic where A A' is a multiple of the identity; diagonal where no two rows of A read the
        same feature; factors stay factors. Errors that were independent and no longer are become
        low_rank if n_features < k, else full. The type of the numbers is kept.

        Parameters
        ----------
        A : ndarray or csr_array of shape (k, n_features), or ndarray of (n_samples, k, n_features)
            One matrix for all examples, or one for each.
        """
        return self._stored(kinds.storage_of(self).mapped(self, A), len(self), A.shape[-2])

    def to_full(self) -> NDArray[np.float64]:
        """Return dense matrices, (n_samples, n_features, n_features); maybe a read-only view.

        This expands every kind but full to n_samples * n_features**2 numbers.
        """
        return kinds.storage_of(self).dense(self)

    def core_view(self) -> _core.Covariances:
        """Return the core's view of the stored arrays, made at the first call."""
        view = self._view
        if view is None:
            view = kinds.storage_of(self).core_view(self)
            object.__setattr__(self, "_view", view)
        return view

    def __repr__(self) -> str:
        return (
            f"Covariances(kind={self.kind!r}, n_samples={self.n_samples}, "
            f"n_features={self.n_features}, dtype={self.dtype})"
        )

    def __array__(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError("Covariances are not one array: use .values, .variances() or .to_full()")
