"""
The first fit with error bars
=============================

Nine examples, each a Gaussian: a mean and a covariance. A plain support vector machine sees the
means alone; `UncertainSVC` charges each example the hinge loss that it costs *on average*, so that
an example with a wide error bar pulls the line in the directions in which it is well known.
"""

# %%
# The examples
# ------------
# Most have round error bars. Two of them, near the border, are long and thin: their position along
# one direction is hardly known, and across it very well.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from halosvm import Covariances, Gaussians, UncertainSVC

means = np.array(
    [[-1, 0.1], [-1.1, -1.9], [-2.7, 1.5], [-3.2, -0.6],
     [1, -0.1], [1.1, 1.9], [2.6, -1.3], [3.3, 0.7], [2.4, 2.6]]
)  # fmt: skip
labels = np.array(["left"] * 4 + ["right"] * 5)

round_ones = np.tile(0.09 * np.eye(2), (len(means), 1, 1))
along, across = np.array([0.67, -0.74]), np.array([0.74, 0.67])
long_one = 1.3**2 * np.outer(along, along) + 0.15**2 * np.outer(across, across)
covariances = round_ones
covariances[[0, 4]] = long_one

X = Gaussians(means, cov=Covariances.full(covariances))
print(X)

# %%
# Two fits
# --------
# The plain machine is the same estimator with the plain hinge loss. Both fits end at a certified
# optimum: ``suboptimality_`` bounds how far the objective is from its minimum.

uncertain = UncertainSVC(C=10.0).fit(X, labels)
plain = UncertainSVC(C=10.0, loss="hinge").fit(X, labels)
for name, clf in (("plain", plain), ("uncertain", uncertain)):
    print(f"{name:9}  w = {clf.coef_[0].round(2)}  certified gap {clf.suboptimality_:.0e}")

# %%
# The picture
# -----------
# The ellipses are one and two standard deviations. The solid line runs along the two long ones.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for mean, covariance, label in zip(means, covariances, labels, strict=True):
    colour = "C0" if label == "left" else "C1"
    (small, large), directions = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(*directions[::-1, 1]))
    for deviations in (1, 2):
        size = 2 * deviations * np.sqrt([large, small])
        axes.add_patch(Ellipse(mean, *size, angle=angle, color=colour, alpha=0.25, lw=0))
    axes.plot(*mean, "o", color=colour)
height = np.array([-4.5, 4.5])
for clf, style, name in ((plain, "k--", "means alone"), (uncertain, "k-", "with covariances")):
    (w,), (b,) = clf.coef_, clf.intercept_
    axes.plot(-(w[1] * height + b) / w[0], height, style, label=name)
axes.set(xlim=(-5, 5), ylim=(-3.4, 3.8), xlabel="feature 1", ylabel="feature 2", aspect="equal")
axes.legend(loc="lower left")
plt.show()

# %%
# New examples
# ------------
# Examples to predict need no errors. With them, ``decision_std`` is the standard deviation of the
# decision value and ``side_probability`` the probability of the side of ``classes_[1]``.

new = Gaussians([[0.3, 0.2], [0.3, 0.2]], std=[[0.05, 0.05], [1.0, 1.0]])
print(uncertain.predict(new), uncertain.side_probability(new).round(2))
