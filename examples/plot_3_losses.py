"""
Which loss?
===========

An example enters a linear machine as two numbers, its margin deficit :math:`m = 1 - y(w'x + b)` and
the spread :math:`s` of its score. A loss is a function of the two, and says what an error bar does.
"""

# %%
# Five losses
# -----------
# The expected hinge charges an example what it costs on average; the worst case what it costs at
# the worst point within the error bar, the best case at the best one. Without an error bar, at
# :math:`s = 0`, all three are the hinge.

import matplotlib.pyplot as plt
import numpy as np

from halosvm import UncertainSVC, reference

m = np.linspace(-3, 3, 201)
colours = {
    "hinge": "black",
    "expected_hinge": "C3",
    "worst_case": "C2",
    "best_case": "C4",
    "expected_logistic": "C5",
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, s in zip(axes, (0.0, 1.0), strict=True):
    for name, colour in colours.items():
        value, *_ = reference.LOSSES[name](m, np.full_like(m, s))
        ax.plot(m, value, color=colour, label=name)
    ax.set(title=f"s = {s:g}", xlabel="margin deficit m", ylim=(0, 4))
axes[0].set_ylabel("loss")
axes[0].legend()
plt.show()

# %%
# What they do to a border
# ------------------------
# Two groups; one point of the left one has strayed to the right, and has a large error bar along
# the first feature. The plain hinge takes it at its word. In expectation it counts for less and
# turns the border; the worst case leaves room for every error; the best case lets the
# error excuse it.

rng = np.random.default_rng(3)
x = np.vstack(
    [rng.normal([-1.5, 0], 0.5, (12, 2)), rng.normal([1.5, 0], 0.5, (12, 2)), [[0.9, 1.8]]]
)
y = np.repeat([0, 1, 0], [12, 12, 1])
std = np.full(x.shape, 0.1)
std[-1] = 1.2, 0.1

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for label in (0, 1):
    rows = y == label
    ax.errorbar(*x[rows].T, xerr=std[rows, 0], yerr=std[rows, 1], fmt="o", ms=4, elinewidth=0.7)
height = np.array([-3.0, 3.0])
for loss in ("hinge", "expected_hinge", "worst_case", "best_case"):
    clf = UncertainSVC(C=10.0, loss=loss).fit(x, y, X_std=std)
    (w,), (b,) = clf.coef_, clf.intercept_
    ax.plot(-(w[1] * height + b) / w[0], height, color=colours[loss], label=loss)
    print(f"{loss:15}  w = {w.round(2)}  b = {b:.2f}")
ax.set(xlim=(-3.2, 3.2), ylim=(-1.8, 2.6), xlabel="feature 1", ylabel="feature 2")
ax.legend(loc="lower left")
plt.show()

# %%
# Take the expected hinge, the default, for distributions; the worst case for tolerances within
# which the label must hold; the best case seldom: it is not convex, and on the data measured for
# the accuracy page it was nowhere clearly better. For measurements the loss matters little, and
# posteriors matter much.
