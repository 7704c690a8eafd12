"""`ObjectivePlot`: how a fit comes to its optimum.

The reports of a solver come in; value and certified bound go on axes.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halosvm.checks.parameters import require_choice
from halosvm.core.progress import recorded
from halosvm.display import drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_AGAINST = ("iterations", "seconds")
_RATIO = 1.0  # of the heights


class ObjectivePlot:
    """Value and certified bound of the objective against iterations or seconds.

    Above the value J and the largest bound so far that the optimum J* is certified not to be below;
    below the certified suboptimality, which bounds (J - J*) / J*, and the tolerance of the fit. Of
    more than two classes these are the largest of all problems where the solver takes them
    together; interior points take one after the other, which makes a curve for each, as do other
    repetitions of the solver within a fit.

    Make it by `from_estimator`.

    Parameters
    ----------
    iterations : ndarray of shape (n_reports,)
        As `n_iter_` counts: passes over the data, but for interior points.
    seconds : ndarray of shape (n_reports,)
        Time since the fit began.
    objective : ndarray of shape (n_reports,)
        Value of the objective.
    suboptimality : ndarray of shape (n_reports,)
        Certified bound of (J - J*) / J*; infinite where none is known.
    tol : float, optional
        What the fit was to reach.
    name : str, optional
        Of the curve, for the legend.

    Attributes
    ----------
    run : ndarray of int of shape (n_reports,)
        Counts the runs of the solver, which begin where `iterations` does not rise.
    lower_bound : ndarray of shape (n_reports,)
        The largest bound of J* so far in the run, -inf where none is known.
    ax_, suboptimality_ax_, figure_
        Axes of the last `plot`; `suboptimality_ax_` is None where there is only one.
    value_, bound_, suboptimality_line_ : Line2D
        What is drawn; None where there is no bound or no second axes.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import ObjectivePlot, UncertainSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = y[:, None] + rng.normal(size=(200, 5))
    >>> plot = ObjectivePlot.from_estimator(UncertainSVC(), X, y, X_std=np.full(200, 0.3))
    >>> bool(plot.lower_bound[-1] <= plot.objective[-1] <= (1 + 1e-6) * plot.lower_bound[-1])
    True
    """

    def __init__(
        self,
        *,
        iterations: NDArray[np.intp],
        seconds: Array,
        objective: Array,
        suboptimality: Array,
        tol: float | None = None,
        name: str | None = None,
    ) -> None:
        self.iterations = iterations
        self.seconds = seconds
        self.objective = objective
        self.suboptimality = suboptimality
        self.tol = tol
        self.name = name
        self.run = np.cumsum(np.diff(iterations, prepend=iterations[:1] - 1) <= 0)
        # (J - J*) / J* <= g says J* >= J / (1 + g).
        known = np.isfinite(suboptimality)
        bounds = np.full(len(objective), -np.inf)
        bounds[known] = objective[known] / (1.0 + suboptimality[known])
        runs = np.split(bounds, self._begins())
        self.lower_bound = np.concatenate([np.maximum.accumulate(one) for one in runs])

    def _begins(self) -> NDArray[np.intp]:
        """Return where the second run and all further ones begin."""
        begins: NDArray[np.intp] = np.flatnonzero(np.diff(self.run)) + 1
        return begins

    def _drawn(self, values: NDArray[Any]) -> Array:
        """Return values with gaps between the runs, and where they are infinite."""
        shown = np.where(np.isfinite(values), values, np.nan)
        return np.insert(shown, self._begins(), np.nan)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        against: str = "iterations",
        name: str | None = None,
        ax: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit a clone of an estimator, record what its solver reports, and draw it.

        Parameters
        ----------
        estimator : UncertainSVC, UncertainSVR or another of the linear solvers
            Fitted or not; it stays as it is.
        X, y
            Training examples, as in its `fit`.
        against : {"iterations", "seconds"}, default="iterations"
            The horizontal axis.
        name : str, optional
            Of the curve, for the legend.
        ax : Axes or pair of Axes, optional
            Where to draw the value and, below, the suboptimality; a single one shows the value
            alone. None makes a new figure.
        **fit_params
            Further arguments of `fit`: `X_std`, `X_cov`, `sample_weight`, ...

        Returns
        -------
        ObjectivePlot

        Raises
        ------
        TypeError
            If nothing is reported: `UncertainKernelSVC` has scikit-learn's dual solver, which does
            not tell how far it is.
        """
        drawing.pyplot(cls.__name__)
        require_choice(against, "against", _AGAINST)
        one = clone(estimator)
        with recorded() as reports, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # which the picture shows
            one.fit(X, **({} if y is None else {"y": y}), **fit_params)
        if not reports:
            raise TypeError(
                f"{type(estimator).__name__} reports no progress; UncertainSVC, UncertainSVR and "
                "others of the linear solvers do"
            )
        iterations, objective, gap, seconds = (
            np.array(each) for each in zip(*reports, strict=True)
        )
        return cls(
            iterations=iterations,
            seconds=seconds,
            objective=objective,
            suboptimality=gap,
            tol=getattr(one, "tol", None),
            name=name,
        ).plot(ax=ax, against=against)

    def plot(self, ax: Any = None, *, against: str = "iterations", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            As in `from_estimator`.
        against : {"iterations", "seconds"}, default="iterations"
            The horizontal axis.
        **kwargs
            For `matplotlib.axes.Axes.plot`, such as ``color``.

        Returns
        -------
        self
        """
        require_choice(against, "against", _AGAINST)
        ax, below = drawing.two_axes(ax, type(self).__name__, _RATIO)
        self.ax_, self.suboptimality_ax_, self.figure_ = ax, below, ax.figure
        drawn = sum(line.get_label().startswith("_bound") for line in ax.lines)
        style = {"color": drawing.colour(drawn), "lw": 1.5} | kwargs
        x = self._drawn(self.iterations if against == "iterations" else self.seconds)
        values, bounds = self._drawn(self.objective), self._drawn(self.lower_bound)
        label = "value" if self.name is None else self.name
        [self.value_] = ax.plot(x, values, label=label, **style)
        [self.bound_] = ax.plot(x, bounds, ls="--", label=f"_bound {drawn}", **style)
        if not drawn:
            ax.plot([], [], color=style["color"], ls="--", lw=1.2, label="certified bound")
        ax.fill_between(x, bounds, values, color=style["color"], alpha=0.12, lw=0)
        ax.set_yscale("log")
        ax.set_ylabel("objective")
        ax.legend(fontsize="small", frameon=False)
        lowest, self.suboptimality_line_ = ax, None
        if below is not None:
            lowest = below
            [self.suboptimality_line_] = below.plot(x, self._drawn(self.suboptimality), **style)
            if self.tol is not None and not drawn:
                below.axhline(self.tol, color="0.5", lw=0.9, ls=":")
                below.annotate(
                    "tol", (1.0, self.tol), (-3, 2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="right", color="0.4", fontsize="small",
                )  # fmt: skip
            below.set_yscale("log")
            below.set_ylabel("certified suboptimality")
        if against == "iterations":
            lowest.xaxis.get_major_locator().set_params(integer=True)
        lowest.set_xlabel(against)
        return self
