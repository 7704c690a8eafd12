"""`ReliabilityDisplay`: how often things happen that were said to be so likely.

Labels and probabilities come in; observed shares in bins of equal counts go on axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from halosvm.checks.estimator import read_targets, require_one_order
from halosvm.checks.parameters import require_count
from halosvm.checks.reading import as_float_array, refuse_lost
from halosvm.checks.targets import exact_labels, read_labels
from halosvm.display import drawing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

_STEPS = 20  # of the histogram
_RATIO = 3.0  # of the heights


class ReliabilityDisplay:
    r"""Reliability diagram: observed shares against probabilities, with standard errors.

    The examples stand in bins of equal counts, so that all points are known about equally well. The
    error bars are the standard deviations that the shares would have if the probabilities were
    right, :math:`\sqrt{\sum_i p_i (1 - p_i)} / n` in a bin of n: two of three points of a
    calibrated classifier are within one of the diagonal. Below, a histogram tells which
    probabilities are given at all.

    Make it by `from_estimator` or `from_predictions`.

    Parameters
    ----------
    y_true : ndarray of bool of shape (n_samples,)
        Whether it happened.
    y_prob : ndarray of shape (n_samples,)
        How likely it was said to be.
    n_bins : int, default=10
        Number of bins; fewer where many probabilities are equal.
    name : str, optional
        Of the curve, for the legend.
    event : str, default="the positive class"
        What is predicted, for the label of the axis.

    Attributes
    ----------
    prob_pred, prob_true, standard_error, counts : ndarray of shape (n_bins,)
        Of each bin: the mean probability, the observed share, the standard error of the latter, and
        the number of examples.
    calibration_error : float
        Mean of the distances of observed shares from mean probabilities, weighted by the counts.
    ax_, histogram_ax_, figure_
        Axes of the last `plot`; `histogram_ax_` is None where there is only one.
    line_ : ErrorbarContainer
        The curve.

    Examples
    --------
    Two curves on one pair of axes:

    >>> import numpy as np
    >>> from halosvm import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p
    >>> one = ReliabilityDisplay.from_predictions(y, p, name="calibrated")
    >>> axes = one.ax_, one.histogram_ax_
    >>> two = ReliabilityDisplay.from_predictions(y, p**3, name="not calibrated", ax=axes)
    >>> bool(one.calibration_error < 0.04 < two.calibration_error)
    True
    """

    def __init__(
        self,
        *,
        y_true: NDArray[np.bool_],
        y_prob: Array,
        n_bins: int = 10,
        name: str | None = None,
        event: str = "the positive class",
    ) -> None:
        self.y_true = y_true
        self.y_prob = y_prob
        self.n_bins = n_bins
        self.name = name
        self.event = event
        order = np.argsort(y_prob, kind="stable")
        p, happened = y_prob[order], y_true[order].astype(np.float64)
        ends = np.linspace(0, len(p), n_bins + 1).round().astype(np.intp)
        # Equal probabilities stand in one bin, or the order of the rows would decide.
        begins = np.unique(np.searchsorted(p, p[ends[:-1].clip(max=len(p) - 1)]))
        self.counts = np.diff(np.append(begins, len(p)))
        self.prob_pred = np.add.reduceat(p, begins) / self.counts
        self.prob_true = np.add.reduceat(happened, begins) / self.counts
        self.standard_error = np.sqrt(np.add.reduceat(p * (1.0 - p), begins)) / self.counts
        distances = np.abs(self.prob_true - self.prob_pred)
        self.calibration_error = float(self.counts @ distances / len(p))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        pos_label: Any = None,
        n_bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the reliability diagram of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba`, such as `UncertainCalibratedClassifier`.
        X : Gaussians or array-like of shape (n_samples, n_features)
            Examples that the classifier has not seen.
        y : array-like of shape (n_samples,)
            Their labels.
        X_std, X_cov : array-like, optional
            Errors of the examples, for a classifier whose `predict_proba` takes them.
        pos_label : label, optional
            The class whose probability is judged. None is ``classes_[1]`` of two; of more classes
            it judges whether the most probable class is right.
        n_bins : int, default=10
            Number of bins.
        name : str, optional
            Of the curve; None is the name of the class of the estimator.
        ax : Axes or pair of Axes, optional
            Where to draw the curve and, below, the histogram; a single one has no histogram. None
            makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        drawing.pyplot(cls.__name__)
        check_is_fitted(estimator)
        kind = type(estimator).__name__
        if not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator is {kind}, which has no predict_proba; put it in "
                "UncertainCalibratedClassifier"
            )
        classes = estimator.classes_
        if pos_label is not None and pos_label not in classes.tolist():
            raise ValueError(f"pos_label is {pos_label!r}, the classes are {classes.tolist()}")
        errors = {"X_std": X_std, "X_cov": X_cov}
        given = {key: value for key, value in errors.items() if value is not None}
        probabilities = np.asarray(estimator.predict_proba(X, **given), dtype=np.float64)
        labels = read_labels(read_targets(X, y, None, **errors)[0], len(probabilities))
        if pos_label is None and len(classes) > 2:
            best = probabilities.argmax(axis=1)
            p, happened, event = (
                probabilities.max(axis=1),
                classes[best] == labels,
                "a right prediction",
            )
        else:
            k = 1 if pos_label is None else classes.tolist().index(pos_label)
            p, happened, event = probabilities[:, k], labels == classes[k], str(classes[k])
        return cls._checked(happened, p, n_bins, kind if name is None else name, event, ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: Any = None,
        n_bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the reliability diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of two classes; with `pos_label` of any number.
        y_prob : array-like of shape (n_samples,)
            The probability of the positive class.
        pos_label : label, optional
            The positive class; None is the larger one of two labels, or of 0 or -1 and 1.
        n_bins, name, ax
            As in `from_estimator`.

        Returns
        -------
        ReliabilityDisplay
        """
        drawing.pyplot(cls.__name__)
        p = as_float_array(y_prob, "y_prob").astype(np.float64)
        if p.ndim != 1:
            raise ValueError(
                f"y_prob has shape {p.shape}; pass the probabilities of one class, (n_samples,)"
            )
        require_one_order({}, {"y_true": y_true, "y_prob": y_prob})
        refuse_lost(y_true, "y_true")
        labels = np.asarray(exact_labels(y_true, "y_true"))
        check_consistent_length(labels, p)
        if pos_label is None:
            found = np.unique(labels).tolist()
            if len(found) == 1 and found[0] in (-1, 0, 1):
                found = [found[0], 1]
            if len(found) != 2:
                raise ValueError(f"y_true has the labels {found}; pass pos_label")
            pos_label = found[1]
        elif pos_label not in labels.tolist():
            raise ValueError(f"pos_label is {pos_label!r}, which y_true does not have")
        event = "the positive class" if labels.dtype.kind in "biuf" else str(pos_label)
        return cls._checked(labels == pos_label, p, n_bins, name, event, ax)

    @classmethod
    def _checked(
        cls, happened: NDArray[np.bool_], p: Array, n_bins: int, name: Any, event: str, ax: Any
    ) -> Self:
        require_count(n_bins, "n_bins")
        outside = np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))
        if outside.size:
            row = outside[0]
            raise ValueError(f"y_prob: row {row} is {p[row]:g}; probabilities are from 0 to 1")
        if not p.size:
            raise ValueError("y_prob is empty; one example or more is needed")
        return cls(y_true=happened, y_prob=p, n_bins=n_bins, name=name, event=event).plot(ax=ax)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            As in `from_estimator`.
        name : str, optional
            Of the curve, in place of the one known.
        **kwargs
            For `matplotlib.axes.Axes.errorbar`, such as ``color``.

        Returns
        -------
        self
        """
        self.ax_, self.histogram_ax_ = ax, below = drawing.two_axes(ax, type(self).__name__, _RATIO)
        self.figure_ = ax.figure
        k = len(ax.containers)
        if not k:
            ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", lw=0.9, zorder=0, label="_diagonal")
        style = {
            "color": drawing.colour(k), "marker": drawing.marker(k), "ms": 4.5, "mec": "white",
            "mew": 0.5, "lw": 1.4, "elinewidth": 0.9, "capsize": 2.0,
        } | kwargs  # fmt: skip
        label = self.name if name is None else name
        self.line_ = ax.errorbar(
            self.prob_pred, self.prob_true, self.standard_error, label=label, **style
        )
        ax.set_ylabel("observed share")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.04, 1.04)
        if label is not None:
            ax.legend(loc="upper left", fontsize="small", frameon=False)
        lowest = ax
        if below is not None:
            steps = np.linspace(0.0, 1.0, _STEPS + 1)
            below.hist(self.y_prob, steps, histtype="step", color=style["color"], lw=1.2)
            below.set_ylabel("count")
            lowest = below
        lowest.set_xlabel(f"probability of {self.event}")
        return self
