"""What all displays share: matplotlib, imported only to draw, colours, and axes to draw on."""

from __future__ import annotations

from typing import Any

from halosvm.core.plotting import require_matplotlib

# Colours that can be told apart by everyone (Okabe and Ito), and markers for prints without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def colour(k: int) -> str:
    """Return the colour of class or curve k."""
    return COLOURS[k % len(COLOURS)]


def marker(k: int) -> str:
    """Return the marker of class or curve k; equal colours have different ones."""
    return MARKERS[(k + k // len(COLOURS)) % len(MARKERS)]


def pyplot(who: str) -> Any:
    """Return `matplotlib.pyplot`, or say how to get it."""
    require_matplotlib(who)
    import matplotlib.pyplot as plt

    return plt


def one_axes(ax: Any, who: str) -> Any:
    """Return the axes to draw on, new ones for None."""
    plt = pyplot(who)
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def two_axes(ax: Any, who: str, ratio: float) -> tuple[Any, Any]:
    """Return the axes to draw on and those below, which share the horizontal axis.

    Parameters
    ----------
    ax : Axes, pair of Axes or None
        None makes both; below a single one there is nothing.
    who : str
        The display that draws.
    ratio : float
        The height of the new axes over that of those below.
    """
    plt = pyplot(who)
    if ax is None:
        options = {"height_ratios": [ratio, 1.0]}
        above, below = plt.subplots(
            2, 1, sharex=True, gridspec_kw=options, figsize=(4.8, 4.8), layout="constrained"
        )[1]
        return above, below
    if hasattr(ax, "plot"):
        return ax, None
    axes = tuple(ax)
    if len(axes) != 2 or not all(hasattr(one, "plot") for one in axes):
        raise ValueError(f"ax must be one Axes or a pair of them, got {len(axes)} objects")
    return axes
