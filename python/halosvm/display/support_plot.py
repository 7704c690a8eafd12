"""`SupportPlot`: which examples act on the border, and how much of each lies across it.

A fitted machine and its training examples come in; weights and probabilities go on axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halosvm import _core
from halosvm.checks.estimator import read_targets
from halosvm.checks.targets import encode_labels, raw_weights
from halosvm.display import drawing
from halosvm.gaussians.mixtures import GaussianMixtures
from halosvm.kernel.isotropic_kernel_svc import IsotropicKernelSVC
from halosvm.kernel.kernel_svc import UncertainKernelSVC
from halosvm.linear.svc import UncertainSVC

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


class SupportPlot:
    r"""How strongly each training example acts on the border, against how much lies across it.

    The weight of an example is its dual variable, the slope of its share of the objective in the
    margin: for `UncertainSVC` :math:`C c_i\, \partial \ell / \partial m`, for kernel machines the
    size of its coefficient. It is 0 for examples that could as well be left out (but for what their
    errors do to the shape of the border). Across lies :math:`P(y_i f(X_i) < 0)`, the probability
    that the example is on the other side than its label says; its own errors are all that counts.

    Make it by `from_estimator`.

    Parameters
    ----------
    weight : ndarray of shape (n_samples,)
        Dual variables >= 0.
    across : ndarray of shape (n_samples,)
        Probabilities of lying on the other side.
    positive : ndarray of bool of shape (n_samples,)
        Whether the label is that of the positive side.
    names : pair of str, optional
        What the negative and the positive side are called.

    Attributes
    ----------
    ax_, figure_
        Axes and figure, of the last `plot`.
    points_ : list of Line2D
        The examples, one line for each side.

    Examples
    --------
    >>> import numpy as np
    >>> from halosvm import SupportPlot, UncertainSVC
    >>> X, y = np.array([[-3.0], [-1.0], [1.0], [3.0]]), [0, 0, 1, 1]
    >>> X_std = np.array([0.1, 1.0, 0.1, 0.1])
    >>> clf = UncertainSVC().fit(X, y, X_std=X_std)
    >>> plot = SupportPlot.from_estimator(clf, X, y, X_std=X_std)
    >>> int(plot.across.argmax())
    1
    """

    def __init__(
        self,
        *,
        weight: Array,
        across: Array,
        positive: NDArray[np.bool_],
        names: tuple[str, str] | None = None,
    ) -> None:
        self.weight = weight
        self.across = across
        self.positive = positive
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: UncertainSVC | UncertainKernelSVC | IsotropicKernelSVC,
        X: Any,
        y: ArrayLike,
        *,
        X_std: Any = None,
        X_cov: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw how the training examples act on the border of a fitted machine.

        Parameters
        ----------
        estimator : UncertainSVC, UncertainKernelSVC or IsotropicKernelSVC
            Fitted.
        X, y, X_std, X_cov, sample_weight
            What it was fitted to.
        pos_label : label, optional
            The class whose border against the rest is meant; needed for more than two classes.
            `UncertainKernelSVC`, which tells pairs apart, is taken for two classes only.
        ax : Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        SupportPlot

        Notes
        -----
        Decision values of kernel machines are taken as Gaussian. Examples right at the kink of a
        loss, of "hinge", "worst_case" and "best_case", have any weight up to C; what is shown is
        the slope on one side.
        """
        drawing.pyplot(cls.__name__)
        kinds = (UncertainSVC, UncertainKernelSVC, IsotropicKernelSVC)
        if not isinstance(estimator, kinds):
            raise TypeError(
                f"estimator is {type(estimator).__name__}; expected "
                f"{', '.join(kind.__name__ for kind in kinds)}"
            )
        check_is_fitted(estimator)
        y, sample_weight = read_targets(X, y, sample_weight)
        data = estimator._read_data(X, X_std, X_cov)  # noqa: SLF001 (as the package reads it)
        if isinstance(estimator, UncertainSVC) and isinstance(data, GaussianMixtures):
            raise TypeError(
                "X is GaussianMixtures, each of which is several points to UncertainSVC; "
                "SupportPlot shows them with UncertainKernelSVC alone"
            )
        labels = np.asarray(y)
        if len(labels) != len(data):
            raise ValueError(f"y has {len(labels)} labels, X has {len(data)} rows")
        classes, codes = encode_labels(labels)
        if not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"y has the classes {classes.tolist()}, the machine {estimator.classes_.tolist()}"
            )
        k = _side(estimator, pos_label)
        positive = codes == k
        f = np.asarray(estimator.decision_function(data))
        std = np.asarray(estimator.decision_std(data))
        if len(classes) == 2:
            f, std = (f, std) if k == 1 else (-f, std)
        else:
            f, std = f[:, k], std[:, k]
        signed = np.where(positive, f, -f)
        across = _core.side_probability(np.ascontiguousarray(-signed), np.ascontiguousarray(std))
        if isinstance(estimator, UncertainSVC):
            weights = raw_weights(classes, codes, sample_weight, estimator.class_weight)
            weight = _slopes(estimator, data, X, signed, k)
            weight *= estimator.C * (1.0 if weights is None else weights)
        else:
            weight = np.zeros(len(data))
            if estimator.support_.max(initial=-1) >= len(data):
                raise ValueError(
                    f"X has {len(data)} rows, but row {estimator.support_.max()} of the training "
                    "data is a support example; pass what the machine was fitted to"
                )
            row = k if len(classes) > 2 else 0
            weight[estimator.support_] = np.abs(estimator.dual_coef_[row])
        other = str(classes[1 - k]) if len(classes) == 2 else "others"
        names = (other, str(classes[k]))
        return cls(weight=weight, across=across, positive=positive, names=names).plot(ax=ax)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a new figure.
        **kwargs
            For `matplotlib.axes.Axes.plot`, such as ``ms``.

        Returns
        -------
        self
        """
        self.ax_ = ax = drawing.one_axes(ax, type(self).__name__)
        self.figure_ = ax.figure
        self.points_ = []
        for k, rows in enumerate((~self.positive, self.positive)):
            label = None if self.names is None else self.names[k]
            style = {
                "marker": drawing.marker(k), "color": drawing.colour(k), "ms": 4.5, "mec": "white",
                "mew": 0.4, "ls": "none", "alpha": 0.8,
            } | kwargs  # fmt: skip
            self.points_ += ax.plot(self.across[rows], self.weight[rows], label=label, **style)
        ax.axvline(0.5, color="0.6", lw=0.9, zorder=0)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel("probability of lying across the border")
        ax.set_ylabel("weight in the border (dual variable)")
        if self.names is not None:
            ax.legend(fontsize="small", frameon=False)
        return self


def _side(estimator: Any, pos_label: Any) -> int:
    """Return the place of the positive class."""
    classes = estimator.classes_.tolist()
    if len(classes) > 2 and isinstance(estimator, UncertainKernelSVC):
        raise ValueError(
            f"UncertainKernelSVC tells {len(classes)} classes apart in pairs, and an example has a "
            "weight in each; fit it to two classes"
        )
    if pos_label is None:
        if len(classes) > 2:
            raise ValueError(f"pos_label must be given, one of {classes}")
        return 1
    if pos_label not in classes:
        raise ValueError(f"pos_label is {pos_label!r}, the classes are {classes}")
    return int(classes.index(pos_label))


def _slopes(machine: UncertainSVC, data: Any, X: Any, signed: Array, k: int) -> Array:
    """Return the slopes of the losses in their margins, at the errors that the loss saw."""
    sized = machine._sized(data, X)  # noqa: SLF001 (the errors as `fit` takes them)
    coef = machine.coef_[k if len(machine.coef_) > 1 else 0][np.newaxis]
    std = _core.decision_std(sized.covariances.core_view(), np.ascontiguousarray(coef))[:, 0]
    margin = _core.loss_traits(machine.loss)["margin"]
    slopes: Array = _core.evaluate_loss(machine.loss, margin - signed, std)[1].copy()
    return slopes
