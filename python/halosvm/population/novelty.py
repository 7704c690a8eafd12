"""Measurements unlike anything seen: a population and measurements in; p-values out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from scipy.special import chdtrc, chdtri, ndtri
from scipy.stats import qmc
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import read_example_weights, read_groups
from halosvm.checks.parameters import require_count, thread_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from halosvm.gaussians.covariances import Covariances
    from halosvm.gaussians.gaussians import Gaussians

    Array = NDArray[np.float64]

_POWER = 9  # 2^9 draws for each row
_LAST = 16  # draws, beyond which the tail is that of the nearest component
_NUMBERS = 4_000_000  # of one block of rows


class NoveltyTested:
    """The methods that tell measurements unlike those of the fit, of estimators of populations."""

    def tail_probability(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        r"""Return how probably a measurement with the same errors is less likely than each one.

        A draw has a true value of the population and an error of the covariance :math:`S_i` of the
        row, and counts where its density under :math:`\sum_k a_k N(m_k, V_k + S_i)` is lower. It
        takes the population for known: `p_values` are right where that is estimated.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            1 where nothing is measured.

        Notes
        -----
        Exact for one component, by :math:`\chi^2` of the whitened residual. For several it is a
        share of 512 draws, the same ones at each call; below 16 of these it is the tail of
        :math:`\chi^2` that meets them there, as that of the nearest component.
        """
        check_is_fitted(cast("Any", self))
        data = cast("Any", self)._read(X, X_std, X_cov, reset=False)  # noqa: SLF001
        return _tails(self, data)

    def calibrate_p_values(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cv: Any = 5,
    ) -> Self:
        """Learn what `tail_probability` is of rows that are like the others, and left out.

        Populations of the same settings are fitted to the other rows in turn; `fit` itself takes no
        time for that, and forgets it.

        Parameters
        ----------
        X, X_std, X_cov, sample_weight
            The measurements of the fit. Those of weight 0 are left out.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are left out together.
        cv : int, splitter or iterable, default=5
            Which rows are left out, as in scikit-learn.

        Returns
        -------
        self
            With `left_out_tails_`, the sorted tail probabilities of the rows that were left out.
        """
        own = cast("Any", self)
        check_is_fitted(own)
        data = own._read(X, X_std, X_cov, reset=False)  # noqa: SLF001
        weights = read_example_weights(X, sample_weight, len(data))
        codes = read_groups(X, groups, len(data))
        used = np.flatnonzero(weights > 0)
        # Errors have their right size by now; what the fit chose is not chosen again.
        settings = clone(own).set_params(n_components=own.n_components_, verbose=0)
        if hasattr(settings, "error_scale"):
            settings.set_params(error_scale=1.0)
        tails = np.full(len(data), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has said it
            for train, test in _folds(cv, used, codes, own.random_state):
                model = clone(settings).fit(data[train], sample_weight=weights[train])
                tails[test] = _tails(model, data[test])
        own.left_out_tails_ = np.sort(tails[~np.isnan(tails)])
        return self

    def p_values(
        self,
        X: Gaussians | ArrayLike,
        *,
        X_std: ArrayLike | None = None,
        X_cov: Covariances | ArrayLike | None = None,
    ) -> Array:
        """Return the p-value of each measurement: small where it is unlike those of the fit.

        Of measurements like those of the fit, a share of 1 % has a p-value up to 1 %, whatever the
        population is like: it is the rank of `tail_probability` among rows that were left out,
        which `calibrate_p_values` has to find first.

        Parameters
        ----------
        X, X_std, X_cov
            Measurements as in `fit`; not those of the fit itself.

        Returns
        -------
        ndarray of shape (n_samples,)
            (1 + number of left-out rows that are as far out or farther) / (1 + their number).

        Raises
        ------
        NotFittedError
            Before `calibrate_p_values`.

        Examples
        --------
        >>> import numpy as np
        >>> from halosvm import EmpiricalBayes
        >>> rng = np.random.default_rng(0)
        >>> error = rng.uniform(0.1, 1.0, (400, 2))
        >>> X = rng.normal(size=(400, 2)) + error * rng.normal(size=(400, 2))
        >>> model = EmpiricalBayes().fit(X, X_std=error).calibrate_p_values(X, X_std=error)
        >>> precise, vague = model.p_values([[4.0, -4.0]] * 2, X_std=[[0.1, 0.1], [4.0, 4.0]])
        >>> bool(precise < 0.01), bool(vague > 0.1)
        (True, True)
        """
        check_is_fitted(cast("Any", self))
        known = getattr(self, "left_out_tails_", None)
        if known is None:
            raise NotFittedError(
                "p_values are ranks among rows that were left out: call calibrate_p_values with "
                "the measurements of the fit first; tail_probability needs none"
            )
        tails = self.tail_probability(X, X_std=X_std, X_cov=X_cov)
        farther = np.searchsorted(known, tails, side="right").astype(np.float64)
        return np.asarray((1.0 + farther) / (1.0 + len(known)))


def _folds(cv: Any, used: NDArray[np.intp], groups: Any, random_state: Any) -> Any:
    """Yield training and test rows among those used."""
    own = None if groups is None else groups[used]
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        require_count(cv, "cv")
        most = len(used) if own is None else len(np.unique(own))
        if min(cv, most) < 2:
            raise ValueError(
                f"cv is {cv}, and there are {most} {'rows' if own is None else 'groups'}; at least "
                "2 folds are needed"
            )
        seed = check_random_state(random_state).randint(2**31 - 1)
        kind = KFold if own is None else GroupKFold
        cv = kind(min(int(cv), most), shuffle=True, random_state=seed)
    for train, test in check_cv(cv).split(np.zeros((len(used), 1)), groups=own):
        yield used[train], used[test]


def _tails(model: Any, data: Gaussians) -> Array:
    """Return the tail probability of measurements whose errors have their right size."""
    model._require_normal_errors("tail_probability")  # noqa: SLF001
    model._refuse_batches("tail_probability")  # noqa: SLF001
    population = model._population()  # noqa: SLF001
    threads = thread_count(model.n_threads)
    density = _core.measurement_log_density(population, data.core_view(missing=True), threads)
    there = ~np.isnan(data.mean)
    n_there = there.sum(axis=1)
    used = np.flatnonzero(model.weights_ > 0)
    if len(used) == 1:
        at_mean = data.replaced(mean=np.where(there, model.means_[used[0]], np.nan))
        view = at_mean.core_view(missing=True)
        highest = _core.measurement_log_density(population, view, threads)
        squares = np.maximum(2.0 * (highest - density), 0.0)
        return np.where(n_there > 0, chdtrc(n_there, squares), 1.0)
    V = model.covariances_.to_full()[used].astype(np.float64)
    law = np.log(model.weights_[used]), model.means_[used], V
    sobol = qmc.Sobol(data.shape[1] + 1, rng=0).random_base2(_POWER)
    component = np.searchsorted(np.cumsum(model.weights_[used])[:-1], sobol[:, 0], side="right")
    nodes = ndtri(np.clip(sobol[:, 1:], 1e-12, 1.0 - 1e-12))
    tails = np.ones(len(data))
    d = data.shape[1]
    size = max(1, _NUMBERS // (len(nodes) * d + len(V) * d * d))
    for start in range(0, len(data), size):
        rows = np.arange(start, min(start + size, len(data)))
        rows = rows[n_there[rows] > 0]
        if not len(rows):
            continue
        drawn = _densities_of_draws(data[rows], there[rows], law, component, nodes)
        own = density[rows, np.newaxis]
        counts = np.sum(drawn < own, axis=1)
        last = np.partition(drawn, _LAST - 1, axis=1)[:, _LAST - 1]
        meets = chdtri(n_there[rows], _LAST / len(nodes))
        beyond = chdtrc(n_there[rows], meets + 2.0 * np.maximum(last - density[rows], 0.0))
        tails[rows] = np.where(counts < _LAST, beyond, counts / len(nodes))
    return tails


def _densities_of_draws(
    data: Gaussians,
    there: NDArray[np.bool_],
    law: tuple[Array, Array, Array],
    component: NDArray[np.intp],
    nodes: Array,
) -> Array:
    """Return log densities of draws with the errors and missing values of each row, (n, m).

    A missing value has a variance of 1 of its own and the residual 0, which count for nothing.
    """
    log_weights, means, V = law
    both = there[:, :, np.newaxis] & there[:, np.newaxis]
    S = np.where(both, data.covariances.to_full(), 0.0) + np.eye(there.shape[1]) * ~there[..., None]
    roots = [np.linalg.cholesky(np.where(both, own, 0.0) + S) for own in V]
    inverses = [np.linalg.inv(root) for root in roots]
    volumes = [2.0 * np.log(np.einsum("nii->ni", root)).sum(axis=1) for root in roots]
    constant = np.log(2.0 * np.pi) * there.sum(axis=1)
    found = np.empty((len(there), len(nodes)))
    for k, root in enumerate(roots):
        mine = component == k
        drawn = means[k] + nodes[mine] @ root.transpose(0, 2, 1)
        each = []
        for log_weight, mean, inverse, volume in zip(
            log_weights, means, inverses, volumes, strict=True
        ):
            apart = np.where(there[:, np.newaxis], drawn - mean, 0.0)
            white = apart @ inverse.transpose(0, 2, 1)
            square = np.einsum("nmd,nmd->nm", white, white)
            each.append(log_weight - 0.5 * (square + (volume + constant)[:, np.newaxis]))
        logs = np.array(each)
        largest = logs.max(axis=0)
        found[:, mine] = largest + np.log(np.exp(logs - largest).sum(axis=0))
    return found
