"""
What an error bar means
=======================

Measurements, missing values and true values. Most data with error bars are measurements: true value
+ noise of known size. Then the example is not the Gaussian around the number that was read. What
one knows of the true value is its *posterior* under the population of all true values, and
`EmpiricalBayes` estimates both.
"""

# %%
# Cells, measured badly
# ---------------------
# Two standardised features of cells, read with noise of another size for every value, as large as
# the spread of the features on average. One value in ten is missing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from halosvm import EmpiricalBayes, Gaussians, UncertainSVC

data = load_breast_cancer()
truth = data.data[:, :10]
truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
y = data.target
rng = np.random.default_rng(0)
std = rng.lognormal(-0.3, 0.7, truth.shape)
measured = truth + std * rng.normal(size=truth.shape)

holes = rng.random(truth.shape) < 0.1
with_holes = np.where(holes, np.nan, measured)

# %%
# Posteriors
# ----------
# A missing value is a measurement of infinite error, so nothing else is needed for it. The
# posterior of each example lies nearer to where true values lie, and is narrower than the error
# bar.

posterior = EmpiricalBayes().fit_transform(with_holes, X_std=std)


def distance(guess, where):
    """Return the root mean square of what a guess is off the true values."""
    return np.sqrt(np.mean((guess - truth)[where] ** 2))


print("distance from the true values")
print(f"  as measured      {distance(measured, ~holes):.2f}")
print(f"  posterior means  {distance(posterior.mean, ~holes):.2f}")
print("and where values are missing")
print(f"  mean of the feature  {distance(np.nanmean(with_holes, axis=0), holes):.2f}")
print(f"  posterior means      {distance(posterior.mean, holes):.2f}")

# %%
# The picture shows fifty cells: what was read, with error bars, and what is known after all cells
# have been looked at. Small dots are the true values, which no fit has seen.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
few = np.flatnonzero(~holes[:, [0, 7]].any(axis=1))[:50]
spread = np.sqrt(posterior.covariances.variances())
for ax, centre, error, title in (
    (axes[0], measured, std, "as measured"),
    (axes[1], posterior.mean, spread, "posteriors"),
):
    for label, colour in ((0, "C1"), (1, "C0")):
        rows = few[y[few] == label]
        place, bars = centre[rows][:, [0, 7]].T, error[rows][:, [0, 7]].T
        ax.errorbar(*place, xerr=bars[0], yerr=bars[1], fmt="o", ms=4, color=colour, elinewidth=0.5)
        ax.plot(*truth[rows][:, [0, 7]].T, ".", color="black", ms=3)
    ax.set(title=title, xlabel=data.feature_names[0], xlim=(-4.5, 5.5), ylim=(-4.5, 5.5))
axes[0].set_ylabel(data.feature_names[7])
plt.show()

# %%
# What it is worth
# ----------------
# Test examples are measurements, too. Here the posteriors gain several points over ignoring the
# errors, with either classifier behind them, and Gaussians around the raw values gain nothing: they
# answer another question, the one for examples that *are* distributions.

X = Gaussians(measured, std=std)
candidates = {
    "errors ignored": (UncertainSVC(loss="hinge"), X),
    "N(x, S) as it is": (UncertainSVC(), X),
    "posteriors": (make_pipeline(EmpiricalBayes(), UncertainSVC()), X),
    "posterior means, SVC": (make_pipeline(EmpiricalBayes(output="mean"), SVC()), X),
}
for name, (model, examples) in candidates.items():
    print(f"{name:22} {100 * cross_val_score(model, examples, y).mean():.1f} %")

# %%
# With noise of a third of the spread or less, no difference is clear; where in doubt, compare by
# cross-validation as above.
