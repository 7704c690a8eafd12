"""`UncertainDecisionBoundaryDisplay`: the border of a classifier among examples with error bars.

A fitted classifier and examples come in; their ellipses, the border and its band go on axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from halosvm.checks.estimator import read_targets
from halosvm.checks.parameters import require_count, require_number
from halosvm.checks.reading import as_float_array
from halosvm.checks.targets import read_labels
from halosvm.display import drawing, plane
from halosvm.gaussians.gaussians import Gaussians, as_gaussians
from halosvm.kernel.isotropic_kernel_svc import IsotropicKernelSVC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

_BAND_RESOLUTION = 60  # kernel machines take long for a standard deviation
_TINT, _SHADE = 0.12, 0.22  # of the sides, and of the band


class UncertainDecisionBoundaryDisplay:
    r"""Border of a classifier in the plane of two features, with the error bars of examples.

    scikit-learn's `DecisionBoundaryDisplay` with two things that error bars add: the covariance
    ellipses of the examples, and the band along the border in which an example is in doubt.

    Make it by `from_estimator`. All that is drawn is kept in attributes.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (resolution, resolution)
        The grid, as of `numpy.meshgrid`.
    response : ndarray of shape (resolution, resolution) or (resolution, resolution, n_classes)
        Decision values of certain points, as of `decision_function`.
    classes : ndarray of shape (n_classes,)
        Labels.
    band : tuple of three ndarrays, optional
        A grid of its own (xx0, xx1), and how many standard deviations an example there is away from
        the border; of two classes with the sign of the decision value.
    examples : Gaussians of two features, optional
        What to draw as points and ellipses.
    codes : ndarray of int of shape (n_samples,), optional
        The place in `classes` of the label of each example; None draws all alike.
    levels : sequence of float, default=(1.0,)
        How many standard deviations the ellipses are from their centres.
    xlabel, ylabel : str, optional
        Names of the features.

    Attributes
    ----------
    ax_, figure_
        Axes and figure, of the last `plot`.
    surface_ : list of ContourSet
        The tinted sides of the classes.
    border_ : list of ContourSet
        The border; of more than two classes a line around each.
    band_ : ContourSet or None
    points_ : list of Line2D
        The means, one line for each class.
    ellipses_ : list of EllipseCollection
        One for each class and level.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import UncertainDecisionBoundaryDisplay, UncertainSVC
    >>> X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [2.0, -1.0]])
    >>> X_std, y = np.full((4, 2), [0.1, 0.5]), [0, 0, 1, 1]
    >>> clf = UncertainSVC().fit(X, y, X_std=X_std)
    >>> display = UncertainDecisionBoundaryDisplay.from_estimator(clf, X, X_std=X_std, y=y)
    >>> display.figure_.savefig("border.pdf")  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        xx0: Array,
        xx1: Array,
        response: Array,
        classes: NDArray[Any],
        band: tuple[Array, Array, Array] | None = None,
        examples: Gaussians | None = None,
        codes: NDArray[np.intp] | None = None,
        levels: Sequence[float] = (1.0,),
        xlabel: str | None = None,
        ylabel: str | None = None,
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.classes = classes
        self.band = band
        self.examples = examples
        self.codes = codes
        self.levels = levels
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        y: Any = None,
        features: Sequence[int | str] = (0, 1),
        fixed: ArrayLike | None = None,
        levels: Sequence[float] = (1.0,),
        band: bool = True,
        grid_resolution: int = 150,
        ax: Any = None,
    ) -> Self:
        r"""Draw the border of a fitted classifier among examples.

        The band is where a new example of typical error is within one standard deviation of the
        border: with the mean :math:`\bar\Sigma` of the covariances of `X`, the x for which
        :math:`|E f(Z)| \le \mathrm{sd} f(Z)`, :math:`Z \sim N(x, \bar\Sigma)`. Of more classes f is
        the difference between the decision values of the best and the second, or that of the pair.
        The meaning is the same for linear and for kernel machines, and for pipelines, through whose
        steps Z goes. A linear machine has :math:`E f(Z) = f(x)` and a band of constant width.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `decision_function`, and with `decision_std` for the band; or a pipeline
            that ends in one.
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples, which also say how large the picture is.
        X_std, X_cov : array-like, optional
            Their standard deviations or covariances, as in `UncertainSVC.fit`.
        y : array-like of shape (n_samples,), optional
            Their labels, for colours.
        features : pair of int or str, default=(0, 1)
            The two features to draw, by place or name.
        fixed : array-like of shape (n_features,), optional
            Where the other features of the border and the band are; None is the medians of `X`.
            The examples are drawn as projections, wherever their other features are.
        levels : sequence of float, default=(1.0,)
            Ellipses to draw, in standard deviations; () draws none.
        band : bool, default=True
            Whether to draw the band, where there are errors.
        grid_resolution : int, default=150
            Points of the grid along each feature.
        ax : Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        UncertainDecisionBoundaryDisplay
        """
        drawing.pyplot(cls.__name__)
        _require_decisions(estimator)
        require_count(grid_resolution, "grid_resolution")
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution}")
        for level in levels:
            require_number(level, "levels")
        data = as_gaussians(X, X_std=X_std, X_cov=X_cov)
        last = plane.last_step(estimator)
        if isinstance(last, IsotropicKernelSVC) and not data.covariances.certain:
            raise TypeError(
                "IsotropicKernelSVC has errors in the feature space of its kernel, not in the "
                "plane that is drawn; leave the errors of X out"
            )
        pair = _places(features, data)
        given = np.median(data.mean, axis=0) if fixed is None else as_float_array(fixed, "fixed")
        at = given.astype(np.float64)
        if at.shape != (data.shape[1],):
            raise ValueError(f"fixed has shape {at.shape}, X has {data.shape[1]} features")
        labels = None if y is None else read_targets(X, y, None, X_std=X_std, X_cov=X_cov)[0]
        codes = None if labels is None else _codes(labels, len(data), estimator.classes_)
        projected = data[:, pair]
        axes = plane.limits(projected, max(levels, default=0.0))
        xx0, xx1 = np.meshgrid(*(np.linspace(*ends, grid_resolution) for ends in axes))
        response = plane.decisions(estimator, plane.on_plane(at, pair, xx0, xx1), data)
        width = None
        if band and not data.covariances.certain:
            if not hasattr(last, "decision_std"):
                raise TypeError(
                    f"{type(last).__name__} has no decision_std, which the band needs; pass "
                    "band=False"
                )
            size = min(grid_resolution, _BAND_RESOLUTION)
            grid = np.meshgrid(*(np.linspace(*ends, size) for ends in axes))
            away = plane.deviations(estimator, plane.on_plane(at, pair, *grid), data)
            width = (grid[0], grid[1], away.reshape(grid[0].shape))
        names = data.feature_names
        return cls(
            xx0=xx0,
            xx1=xx1,
            response=response.reshape(*xx0.shape, *response.shape[1:]),
            classes=estimator.classes_,
            band=width,
            examples=projected,
            codes=codes,
            levels=tuple(levels),
            xlabel=f"feature {pair[0]}" if names is None else str(names[pair[0]]),
            ylabel=f"feature {pair[1]}" if names is None else str(names[pair[1]]),
        ).plot(ax=ax)

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a new figure.
        legend : bool, default=True
            Whether to explain what is drawn.

        Returns
        -------
        self
        """
        self.ax_ = ax = drawing.one_axes(ax, type(self).__name__)
        self.figure_ = ax.figure
        self._draw_sides()
        self.band_ = None
        if self.band is not None:
            *grid, away = self.band
            lowest = -1.0 if len(self.classes) == 2 else 0.0
            if away.min() < 1.0 and away.max() > lowest:
                self.band_ = ax.contourf(
                    *grid, away, levels=[lowest, 1.0], colors=["0.2"], alpha=_SHADE, zorder=0.5
                )
        self._draw_examples()
        ax.set_xlim(self.xx0.min(), self.xx0.max())
        ax.set_ylim(self.xx1.min(), self.xx1.max())
        ax.set_xlabel(self.xlabel)
        ax.set_ylabel(self.ylabel)
        if legend:
            self._explain()
        return self

    def _draw_sides(self) -> None:
        self.surface_, self.border_ = [], []
        for k, lead in enumerate(plane.leads(self.response, len(self.classes))):
            if lead.max() <= 0.0:
                continue
            grid, tint = (self.xx0, self.xx1), drawing.colour(k)
            top = 2.0 * lead.max()
            self.surface_.append(
                self.ax_.contourf(
                    *grid, lead, levels=[0.0, top], colors=[tint], alpha=_TINT, zorder=0.1
                )
            )
            # Both sides of two classes have the same border.
            if lead.min() < 0.0 and (len(self.classes) > 2 or k == 1):
                self.border_.append(
                    self.ax_.contour(
                        *grid, lead, levels=[0.0], colors=["black"], linewidths=1.4, zorder=3
                    )
                )

    def _draw_examples(self) -> None:
        from matplotlib.collections import EllipseCollection

        self.points_, self.ellipses_ = [], []
        if self.examples is None:
            return
        kinds = [None] if self.codes is None else range(len(self.classes))
        uncertain = not self.examples.covariances.certain
        alpha = float(np.clip(np.sqrt(40 / len(self.examples)), 0.25, 0.6))
        for k in kinds:
            rows = slice(None) if k is None else np.flatnonzero(self.codes == k)
            part = self.examples[rows]
            if not len(part):
                continue
            tint = "0.3" if k is None else drawing.colour(k)
            widths, heights, angles = plane.ellipses(part.covariances.to_full())
            for level in self.levels if uncertain else ():
                ellipses = EllipseCollection(
                    2.0 * level * widths, 2.0 * level * heights, angles, units="xy",
                    offsets=part.mean, offset_transform=self.ax_.transData, facecolors="none",
                    edgecolors=tint, linewidths=0.7, alpha=alpha, zorder=1,
                )  # fmt: skip
                self.ax_.add_collection(ellipses, autolim=False)
                self.ellipses_.append(ellipses)
            [points] = self.ax_.plot(
                *part.mean.T, drawing.marker(k or 0), ms=4, color=tint, mec="white", mew=0.4,
                ls="none", zorder=2, label=None if k is None else str(self.classes[k]),
            )  # fmt: skip
            self.points_.append(points)

    def _explain(self) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        shown = [line for line in self.points_ if self.codes is not None]
        if self.ellipses_:
            levels = ", ".join(f"{level:g}" for level in self.levels)
            shown.append(
                Line2D([], [], marker="o", ms=9, mfc="none", mec="0.4", ls="none",
                       label=f"error, {levels} sd")
            )  # fmt: skip
        if self.border_:
            shown.append(Line2D([], [], color="black", lw=1.4, label="border"))
        if self.band_ is not None:
            shown.append(Patch(color="0.2", alpha=_SHADE, lw=0, label="new example within 1 sd"))
        if shown:
            self.ax_.legend(handles=shown, fontsize="small", framealpha=0.85, edgecolor="none")


def _require_decisions(estimator: Any) -> None:
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise TypeError(f"estimator is {name}, which is no classifier and has no border")
    if not hasattr(estimator, "decision_function"):
        raise TypeError(
            f"estimator is {name}, which has no decision_function; pass the classifier within"
        )


def _places(features: Sequence[int | str], data: Gaussians) -> list[int]:
    """Return the places of two different features."""
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(f"features must be two of those of X, got {features!r}")
    names = [] if data.feature_names is None else data.feature_names.tolist()
    places: list[int] = []
    for feature in features:
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(f"features names {feature!r}, which X does not have")
            places.append(names.index(feature))
        elif not 0 <= feature < data.shape[1]:
            raise ValueError(f"features has {feature}, but X has {data.shape[1]} features")
        else:
            places.append(int(feature))
    if places[0] == places[1]:
        raise ValueError(f"features must be two different ones, got {features!r}")
    return places


def _codes(y: Any, n_samples: int, classes: NDArray[Any]) -> NDArray[np.intp]:
    labels = read_labels(y, n_samples)
    known = {label: k for k, label in enumerate(classes.tolist())}
    for row, label in enumerate(labels.tolist()):
        if label not in known:
            raise ValueError(f"y: row {row} is {label!r}, the classifier knows {classes.tolist()}")
    return np.array([known[label] for label in labels.tolist()], dtype=np.intp)
